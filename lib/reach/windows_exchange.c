// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Exchange states between windows. Every node of the team has an outbox in its part of the region:
 * two sets of parcels, one for odd and one for even exchanges, with a parcel for each node. In an
 * exchange a node fills its parcels, the gang closes the step, and each node gets its parcels from
 * the others. A node fills a set again two exchanges later. By then all nodes have got its parcels,
 * because a node closes the next step only after it has got them.
 *
 * Tasks of all workers pack a set of states into the outbox. If the set has more nodes than the
 * parcel has room for, one thread sorts the nodes into an array of its own memory, and the parcel
 * takes the next part of this array in each exchange. Each part comes with the number of nodes of
 * the whole array. The receiver unpacks the array when it has all parts.
 */
#include <stdlib.h>
#include <string.h>

#include "windows.h"

#define LEAST_ROOM	4096	/* of a parcel, in BDD nodes */
#define TABLE_SHARE	4	/* a node's outbox takes this part of its table, or LEAST_ROOM */

uint64_t kd_parcel_room;

static uint64_t parcel_room(const struct kdsm_bdd_attr *bdd, unsigned int nodes)
{
	uint64_t room = bdd->table_bytes / TABLE_SHARE / sizeof(struct kdsm_node) /
			(2 * nodes);

	if (kd_parcel_room)
		return kd_parcel_room;
	return room < LEAST_ROOM ? LEAST_ROOM : room;
}

static uint64_t parcel_bytes(const struct kdsm_bdd_attr *bdd, unsigned int nodes)
{
	return (parcel_room(bdd, nodes) + 1) * sizeof(struct kdsm_node);
}

uint64_t kd_windows_outbox(const struct kdsm_bdd_attr *bdd, unsigned int nodes)
{
	return 2 * nodes * parcel_bytes(bdd, nodes);
}

/* Offset of a parcel for a node in the part that sends it */
static uint64_t place(const struct kd_search *s, unsigned int to)
{
	const struct kd_windows *d = s->windows;
	uint64_t index = (d->exchanges & 1) * d->team->nodes + to;

	return KD_STORE + index * parcel_bytes(&s->bdd, s->cluster.nodes);
}

/* ---- to other nodes ---- */

static kdsm_bdd cut(struct kd_search *s, struct kdsm_worker *kdsm_worker,
		    struct kdsm_task *kdsm_head, unsigned int node, void *data)
{
	struct kd_window *window = &s->windows->window[node];
	kdsm_bdd rest = KDSM_CALL(kd_and, s->windows->fresh, window->states, 0);

	(void)data;
	if (!kd_valid(rest))
		return rest;
	window->rest = rest;
	return KDSM_BDD_FALSE;
}

int kd_windows_cut(struct kd_search *s)
{
	struct kd_window *own = &s->windows->window[s->windows->team->node];
	kdsm_bdd none;
	int r;

	if (s->windows->fresh == KDSM_BDD_FALSE)
		return 0;
	do
		r = kd_windows_steps(s, cut, NULL, 0, s->windows->team->nodes, &none);
	while (r > 0);
	s->windows->fresh = own->rest;
	own->rest = KDSM_BDD_FALSE;
	return r;
}

/* Sort the nodes of a set that has no room in a parcel into window->out. */
static int pack_large(struct kdsm_bdd_worker *w, struct kd_window *window)
{
	struct kd_parcel *out = &window->out;
	const struct kdsm_node *from;
	kdsm_bdd root = window->rest;
	struct kd_walk walk;
	uint64_t i;
	int r;

	r = kd_walk(&walk, w, root);
	if (r == 0)
		r = kd_walk_sort(&walk, &root, 1);
	if (r == 0)
		out->node = calloc(walk.count + 1, sizeof(*out->node));
	if (r == 0 && !out->node)
		r = -ENOMEM;
	for (i = 1; r == 0 && i <= walk.count; i++) {
		from = &walk.node[i];
		out->node[i].a = kd_high(from, 0);
		out->node[i].b = kd_low(from, 0) |
				 (uint64_t)walk.variable[kd_variable(from)] << KD_VARIABLE_SHIFT;
	}
	if (r == 0)
		*out->head = (struct kd_parcel_head){ walk.count, root };
	window->sent = 0;
	kd_walk_destroy(&walk);
	return r;
}

/* Number of nodes of the next part of a parcel, of which so many have been sent */
static uint64_t next_part(const struct kd_search *s, uint64_t count, uint64_t sent)
{
	uint64_t room = parcel_room(&s->bdd, s->cluster.nodes), left = count - sent;

	return left < room ? left : room;
}

/* Copy the next part of window->out to the parcel in the outbox. */
static void send_part(const struct kd_search *s, struct kd_window *window,
		      struct kd_parcel *parcel)
{
	struct kd_parcel *out = &window->out;
	uint64_t count = next_part(s, out->head->count, window->sent);

	*parcel->head = *out->head;
	memcpy(&parcel->node[1], &out->node[1 + window->sent], count * sizeof(*out->node));
	window->sent += count;
	if (window->sent == out->head->count) {
		free(out->node);
		out->node = NULL;
	}
}

static kdsm_bdd pack(struct kd_search *s, struct kdsm_worker *kdsm_worker,
		     struct kdsm_task *kdsm_head, unsigned int to, void *data)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_window *window = &s->windows->window[to];
	struct kd_parcel parcel = {
		.node = (void *)((char *)kdsm_region_part(s->region) + place(s, to)),
		.room = parcel_room(&s->bdd, s->cluster.nodes),
	};
	kdsm_bdd root;
	int r;

	(void)data;
	if (!window->out.node) {
		parcel.stamp = __atomic_add_fetch(&s->windows->parcels, 1, __ATOMIC_RELAXED);
		parcel.head->count = 0;
		root = KDSM_CALL(kd_pack, window->rest, (uintptr_t)&parcel);
		r = root == kd_failure(-E2BIG) ? pack_large(w, window) : 0;
		if (r < 0)
			return kd_fail(w, r);
		if (!window->out.node && !kd_valid(root))
			return root;
		parcel.head->root = root;
		window->rest = KDSM_BDD_FALSE;
	}
	if (window->out.node)
		send_part(s, window, &parcel);
	return KDSM_BDD_FALSE;
}

int kd_windows_pack(struct kd_search *s, bool broadcast)
{
	unsigned int parcels = broadcast ? 1 : s->windows->team->nodes;
	kdsm_bdd none;
	int r;

	s->windows->exchanges++;
	if (broadcast && s->windows->team->node)
		return 0;
	do
		r = kd_windows_steps(s, pack, NULL, 0, parcels, &none);
	while (r > 0);
	return r;
}

bool kd_windows_more(const struct kd_search *s)
{
	unsigned int i;

	for (i = 0; i < s->windows->team->nodes; i++)
		if (s->windows->window[i].out.node)
			return true;
	return false;
}

/* ---- from other nodes ---- */

static void drop(struct kd_window *window)
{
	free(window->in.node);
	free(window->in.made);
	window->in.known = NULL;
	window->in.node = NULL;
	window->in.made = NULL;
	window->received = 0;
}

void kd_windows_forget(struct kd_search *s)
{
	unsigned int i;

	for (i = 0; i < s->cluster.nodes; i++) {
		drop(&s->windows->window[i]);
		free(s->windows->window[i].out.node);
		s->windows->window[i].out.node = NULL;
	}
}

/* Prepare for a parcel of which the first part has come. */
static int begin_parcel(const struct kd_search *s, struct kd_window *window,
			struct kd_parcel_head head)
{
	if (kd_terminal(head.root))
		head.count = 0;
	/* kd_pack() may pack a node twice, so a parcel of one part may exceed the table */
	if (head.count > parcel_room(&s->bdd, s->cluster.nodes) &&
	    head.count > s->bdd.table_bytes / sizeof(struct kdsm_node))
		return -EIO;
	window->in.node = calloc(head.count + 1, sizeof(*window->in.node));
	window->in.made = calloc(head.count + 1, sizeof(*window->in.made));
	if (!window->in.node || !window->in.made)
		return -ENOMEM;
	*window->in.head = (struct kd_parcel_head){ head.count, head.root & KD_EDGE };
	return 0;
}

/*
 * Get a parcel, or the next part of one. The checks of what another node writes are here and in
 * kd_unpack().
 */
static int get(const struct kd_search *s, unsigned int from, unsigned int to)
{
	struct kd_window *window = &s->windows->window[from];
	unsigned int node = s->windows->team->first + from;
	struct kd_parcel_head head;
	uint64_t count;
	int r;

	r = kdsm_get(s->region, node, place(s, to), &head, sizeof(head));
	if (r == 0 && !window->in.node)
		r = begin_parcel(s, window, head);
	if (r < 0)
		return r;
	count = next_part(s, window->in.head->count, window->received);
	if (count)
		r = kdsm_get(s->region, node, place(s, to) + sizeof(head),
			     &window->in.node[1 + window->received],
			     count * sizeof(*window->in.node));
	window->received += count;
	return r;
}

static bool whole(const struct kd_window *window)
{
	return window->in.node && window->received == window->in.head->count;
}

/* The sender that a step gets from. Nodes begin with different senders, which spreads the gets. */
static unsigned int sender(const struct kd_search *s, unsigned int number)
{
	return (s->windows->team->node + number) % s->windows->team->nodes;
}

static kdsm_bdd get_from(struct kd_search *s, struct kdsm_worker *kdsm_worker,
			 struct kdsm_task *kdsm_head, unsigned int number, void *to)
{
	int r = get(s, sender(s, number), *(unsigned int *)to);

	(void)kdsm_head;
	return r < 0 ? kd_fail(KDSM_CONTEXT(), r) : KDSM_BDD_FALSE;
}

/* The variables of states */
struct known {
	bool *variable;
	uint32_t count;
};

static int begin_known(const struct kd_search *s, struct known *known)
{
	const uint32_t *variable = s->model.variables;
	unsigned int i;

	known->count = s->model.bits ? variable[s->model.bits - 1] + 1 : 0;
	known->variable = calloc(known->count + 1, sizeof(*known->variable));
	for (i = 0; known->variable && i < s->model.bits; i++)
		known->variable[variable[i]] = true;
	return known->variable ? 0 : -ENOMEM;
}

static kdsm_bdd unpack(struct kd_search *s, struct kdsm_worker *kdsm_worker,
		       struct kdsm_task *kdsm_head, unsigned int number, void *data)
{
	struct kd_window *window = &s->windows->window[sender(s, number)];
	const struct known *known = data;
	struct kd_parcel *in = &window->in;

	if (!whole(window))
		return KDSM_BDD_FALSE;
	in->known = known->variable;
	in->variables = known->count;
	return KDSM_CALL(kd_unpack, in->head->root, (uintptr_t)in, 0);
}

/* Forget the nodes made of the parcels, before another attempt: a collection may remove them. */
static void forget_made(struct kd_search *s)
{
	unsigned int i;

	for (i = 0; i < s->windows->team->nodes; i++) {
		const struct kd_parcel *in = &s->windows->window[i].in;

		if (in->node)
			memset(in->made, 0, (in->head->count + 1) * sizeof(*in->made));
	}
}

int kd_windows_receive(struct kd_search *s, bool broadcast, kdsm_bdd *received)
{
	unsigned int nodes = s->windows->team->nodes, to = s->windows->team->node, i;
	unsigned int first = 1, count = nodes - 1;
	kdsm_bdd all = KDSM_BDD_FALSE;
	struct known known;
	int r;

	if (broadcast && s->windows->team->node == 0)
		return 0;
	r = begin_known(s, &known);
	if (r < 0)
		return r;
	if (broadcast) {	/* node 0's parcel, which it has packed for itself */
		first = nodes - s->windows->team->node;
		count = 1;
		to = 0;
	}
	r = kd_windows_steps(s, get_from, &to, first, count, &all);
	while (r == 0 && (r = kd_windows_steps(s, unpack, &known, first, count, &all)) > 0) {
		forget_made(s);
		r = 0;
	}
	free(known.variable);
	for (i = 0; i < nodes; i++)
		if (r < 0 || whole(&s->windows->window[i]))
			drop(&s->windows->window[i]);
	s->windows->arrived = all;
	return r < 0 ? r : kd_windows_or(s, *received, all, received);
}
