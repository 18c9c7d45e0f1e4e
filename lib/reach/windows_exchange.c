// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Exchange states between windows. Every node has an outbox in its part of the cluster's region:
 * two sets of parcels, one for odd and one for even exchanges, with a parcel for each node. In an
 * exchange a node fills its parcels, the gang closes the step, and each node gets its parcels from
 * the others. A node fills a set again two exchanges later. By then all have got its parcels, as
 * they do so before they close the next step. States for which a parcel has no room wait for the
 * next exchange.
 */
#include <stdlib.h>
#include <string.h>

#include "windows.h"

#define LEAST_ROOM	4096	/* of a parcel, in BDD nodes */
#define TABLE_SHARE	4	/* a node's outbox takes this part of --table, or LEAST_ROOM */

uint64_t kd_parcel_room;

static uint64_t parcel_room(const struct kdsm_reach_options *options, unsigned int nodes)
{
	uint64_t room = options->bdd.table_bytes / TABLE_SHARE / sizeof(struct kdsm_node) /
			(2 * nodes);

	if (kd_parcel_room)
		return kd_parcel_room;
	return room < LEAST_ROOM ? LEAST_ROOM : room;
}

static uint64_t parcel_bytes(const struct kdsm_reach_options *options, unsigned int nodes)
{
	return (parcel_room(options, nodes) + 1) * sizeof(struct kdsm_node);
}

uint64_t kd_windows_outbox(const struct kdsm_reach_options *options, unsigned int nodes)
{
	return 2 * nodes * parcel_bytes(options, nodes);
}

/* Offset of a parcel for a node in the part that sends it */
static uint64_t place(const struct kd_search *s, unsigned int to)
{
	const struct kd_windows *d = s->windows;
	uint64_t index = (d->exchanges & 1) * s->gang.nodes + to;

	return KD_STORE + index * parcel_bytes(s->options, s->gang.nodes);
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
	struct kd_window *own = &s->windows->window[s->gang.node];
	kdsm_bdd none;
	int r;

	if (s->windows->fresh == KDSM_BDD_FALSE)
		return 0;
	do
		r = kd_windows_steps(s, cut, NULL, 0, s->gang.nodes, &none);
	while (r > 0);
	s->windows->fresh = own->rest;
	own->rest = KDSM_BDD_FALSE;
	return r;
}

/* Part of the states of e: those on one side of the first node that has states on both sides */
static kdsm_bdd half(struct kdsm_bdd_worker *w, kdsm_bdd e)
{
	kdsm_bdd high = KDSM_BDD_FALSE, low = KDSM_BDD_FALSE;
	struct kd_top top;

	if (kd_terminal(e))
		return e;
	if (!kd_top(w, e, &top))
		return kd_give_up(w);
	if (top.high == KDSM_BDD_FALSE)
		low = half(w, top.low);
	else
		high = top.low == KDSM_BDD_FALSE ? half(w, top.high) : top.high;
	if (!kd_valid(high) || !kd_valid(low))
		return kd_valid(high) ? low : high;
	return kd_make(w, top.variable, high, low);
}

static kdsm_bdd pack(struct kd_search *s, struct kdsm_worker *kdsm_worker,
		     struct kdsm_task *kdsm_head, unsigned int to, void *data)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_window *window = &s->windows->window[to];
	struct kd_parcel parcel = {
		.node = (void *)((char *)kdsm_region_part(s->region) + place(s, to)),
		.room = parcel_room(s->options, s->gang.nodes),
	};
	kdsm_bdd part = window->rest, root, less;

	(void)data;
	for (;;) {
		parcel.stamp = __atomic_add_fetch(&s->windows->parcels, 1, __ATOMIC_RELAXED);
		parcel.head->count = 0;
		root = KDSM_CALL(kd_pack, part, (uintptr_t)&parcel);
		if (root != kd_failure(-E2BIG))
			break;
		less = half(w, part);
		if (less == part)	/* a single state, with too many bits for the parcel */
			return kd_fail(w, -ENOSPC);
		if (!kd_valid(less))
			return less;
		part = less;
	}
	if (!kd_valid(root))
		return root;
	parcel.head->root = root;
	window->packed = part;
	return KDSM_BDD_FALSE;
}

int kd_windows_pack(struct kd_search *s, bool broadcast)
{
	unsigned int parcels = broadcast ? 1 : s->gang.nodes, i;
	struct kd_windows *d = s->windows;
	kdsm_bdd none;
	int r;

	d->exchanges++;
	if (broadcast && s->gang.node)
		return 0;
	do
		r = kd_windows_steps(s, pack, NULL, 0, parcels, &none);
	while (r > 0);
	for (i = 0; r == 0 && i < parcels; i++) {
		r = kd_windows_and(s, d->window[i].rest,
				   d->window[i].packed ^ KDSM_BDD_COMPLEMENT, &d->window[i].rest);
		d->window[i].packed = KDSM_BDD_FALSE;
	}
	return r;
}

bool kd_windows_more(const struct kd_search *s)
{
	unsigned int i;

	for (i = 0; i < s->gang.nodes; i++)
		if (s->windows->window[i].rest != KDSM_BDD_FALSE)
			return true;
	return false;
}

/* ---- from other nodes ---- */

static void drop(struct kd_window *window)
{
	free(window->in.node);
	free(window->in.made);
	window->in.node = NULL;
	window->in.made = NULL;
}

/* Get a parcel. The checks of what another node writes are here and in kd_unpack(). */
static int get(const struct kd_search *s, unsigned int from, unsigned int to)
{
	struct kd_window *window = &s->windows->window[from];
	struct kd_parcel_head head;
	int r;

	r = kdsm_get(s->region, from, place(s, to), &head, sizeof(head));
	if (r < 0)
		return r;
	if (head.count > parcel_room(s->options, s->gang.nodes))
		return -EIO;
	if (kd_terminal(head.root))
		head.count = 0;
	window->in.node = calloc(head.count + 1, sizeof(*window->in.node));
	window->in.made = calloc(head.count + 1, sizeof(*window->in.made));
	if (!window->in.node || !window->in.made)
		return -ENOMEM;
	if (head.count)
		r = kdsm_get(s->region, from, place(s, to), window->in.node,
			     (head.count + 1) * sizeof(*window->in.node));
	window->in.head->count = head.count;
	window->in.head->root = head.root & KD_EDGE;
	return r;
}

/* Of a step with this number. Each node begins with another sender, so no sender has a queue. */
static unsigned int sender(const struct kd_search *s, unsigned int number)
{
	return (s->gang.node + number) % s->gang.nodes;
}

static kdsm_bdd get_from(struct kd_search *s, struct kdsm_worker *kdsm_worker,
			 struct kdsm_task *kdsm_head, unsigned int number, void *to)
{
	int r = get(s, sender(s, number), *(unsigned int *)to);

	(void)kdsm_head;
	return r < 0 ? kd_fail(KDSM_CONTEXT(), r) : KDSM_BDD_FALSE;
}

static kdsm_bdd unpack(struct kd_search *s, struct kdsm_worker *kdsm_worker,
		       struct kdsm_task *kdsm_head, unsigned int number, void *data)
{
	struct kd_parcel *in = &s->windows->window[sender(s, number)].in;

	(void)data;
	return KDSM_CALL(kd_unpack, in->head->root, (uintptr_t)in, 0);
}

/* Forget the nodes made of the parcels, before another attempt: a collection may remove them. */
static void forget_made(struct kd_search *s)
{
	unsigned int i;

	for (i = 0; i < s->gang.nodes; i++) {
		const struct kd_parcel *in = &s->windows->window[i].in;

		if (in->node)
			memset(in->made, 0, (in->head->count + 1) * sizeof(*in->made));
	}
}

int kd_windows_receive(struct kd_search *s, bool broadcast, kdsm_bdd *received)
{
	unsigned int nodes = s->gang.nodes, to = s->gang.node, first = 1, count = nodes - 1, i;
	kdsm_bdd all = KDSM_BDD_FALSE;
	int r;

	if (broadcast && s->gang.node == 0)
		return 0;
	if (broadcast) {	/* node 0's parcel, which it has packed for itself */
		first = nodes - s->gang.node;
		count = 1;
		to = 0;
	}
	r = kd_windows_steps(s, get_from, &to, first, count, &all);
	while (r == 0 && (r = kd_windows_steps(s, unpack, NULL, first, count, &all)) > 0) {
		forget_made(s);
		r = 0;
	}
	for (i = 0; i < nodes; i++)
		drop(&s->windows->window[i]);
	s->windows->arrived = all;
	return r < 0 ? r : kd_windows_or(s, *received, all, received);
}
