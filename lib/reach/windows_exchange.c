// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Exchange states between windows. Every node has an outbox in its part of the cluster's region:
 * two sets of parcels, one for odd and one for even exchanges, with a parcel for each node. In an
 * exchange a node fills its parcels, the gang closes the step, and each node gets its parcels from
 * the others. A node fills a set again two exchanges later, when all have got its parcels. States
 * for which a parcel has no room wait for the next exchange.
 */
#include <stdlib.h>
#include <string.h>

#include "windows.h"

#define LEAST_ROOM	4096	/* nodes of a parcel */
#define TABLE_SHARE	4	/* the outbox has this part of the table's size, or the least */

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

#pragma GCC visibility push(hidden)
/* Find the new states of the windows of count nodes from first on. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_cut_all, uint32_t, first, uint32_t, count)
/* Pack for count nodes from first on. The result is a terminal or a failure. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_pack_all, uint32_t, first, uint32_t, count)
/* Get the parcels of count nodes from first on, for node to. */
KDSM_TASK_DECLARE(uint32_t, kd_get_all, uint32_t, first, uint32_t, count, uint32_t, to)
/* The union of the parcels of count nodes from first on */
KDSM_TASK_DECLARE(kdsm_bdd, kd_unite_all, uint32_t, first, uint32_t, count)
#pragma GCC visibility pop

/* ---- to other nodes ---- */

KDSM_TASK_DEFINE(kdsm_bdd, kd_cut_all, uint32_t, first, uint32_t, count)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_search *s = w->store->context;
	struct kd_window *window = &s->windows->window[first];
	uint32_t half = (count + 1) / 2;
	kdsm_bdd one;

	if (count == 1) {
		window->rest = KDSM_CALL(kd_and, s->windows->fresh, window->states, 0);
		return window->rest;
	}
	KDSM_SPAWN(kd_cut_all, first + half, count - half);
	one = KDSM_CALL(kd_cut_all, first, half);
	if (!kd_valid(one)) {
		KDSM_DROP();
		return one;
	}
	return KDSM_SYNC(kd_cut_all);
}

int kd_windows_cut(struct kd_search *s)
{
	struct kd_window *own = &s->windows->window[s->gang.node];
	unsigned int i;
	kdsm_bdd last;
	int r;

	if (s->windows->fresh == KDSM_BDD_FALSE)
		return 0;
	do {
		for (i = 0; i < s->gang.nodes; i++)	/* what an attempt left may be a failure */
			s->windows->window[i].rest = KDSM_BDD_FALSE;
		r = KD_RUN(s->worker, &last, kd_cut_all, 0, s->gang.nodes);
		if (r == 0 && !kd_valid(last))
			for (i = 0; i < s->gang.nodes; i++)
				s->windows->window[i].rest = KDSM_BDD_FALSE;
		r = r < 0 ? r : kd_windows_check(s, last);
	} while (r > 0);
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

static kdsm_bdd pack_for(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			 unsigned int to)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_search *s = w->store->context;
	struct kd_window *window = &s->windows->window[to];
	struct kd_parcel parcel = {
		.node = (void *)((char *)kdsm_region_part(s->region) + place(s, to)),
		.room = parcel_room(s->options, s->gang.nodes),
	};
	kdsm_bdd part = window->rest, root, less;

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

KDSM_TASK_DEFINE(kdsm_bdd, kd_pack_all, uint32_t, first, uint32_t, count)
{
	uint32_t half = (count + 1) / 2;
	kdsm_bdd one, other;

	if (count == 1)
		return pack_for(kdsm_worker, kdsm_head, first);
	KDSM_SPAWN(kd_pack_all, first + half, count - half);
	one = KDSM_CALL(kd_pack_all, first, half);
	if (!kd_valid(one)) {
		KDSM_DROP();
		return one;
	}
	other = KDSM_SYNC(kd_pack_all);
	return other;
}

int kd_windows_pack(struct kd_search *s, bool broadcast)
{
	struct kd_windows *d = s->windows;
	unsigned int i;
	kdsm_bdd done;
	int r;

	d->exchanges++;
	if (broadcast && s->gang.node)
		return 0;
	do {
		r = broadcast ? KD_RUN(s->worker, &done, kd_pack_all, 0, 1) :
		    KD_RUN(s->worker, &done, kd_pack_all, 0, s->gang.nodes);
		r = r < 0 ? r : kd_windows_check(s, done);
	} while (r > 0);
	for (i = 0; r == 0 && i < (broadcast ? 1 : s->gang.nodes); i++) {
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

KDSM_TASK_DEFINE(uint32_t, kd_get_all, uint32_t, first, uint32_t, count, uint32_t, to)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_search *s = w->store->context;
	uint32_t half = (count + 1) / 2, from;

	if (count == 1) {
		/* the nodes begin with different ones, so that no adapter has a queue */
		from = (s->gang.node + first) % s->gang.nodes;
		s->windows->window[from].error = get(s, from, to);
		return 0;
	}
	KDSM_SPAWN(kd_get_all, first + half, count - half, to);
	KDSM_CALL(kd_get_all, first, half, to);
	return KDSM_SYNC(kd_get_all);
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_unite_all, uint32_t, first, uint32_t, count)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_search *s = w->store->context;
	uint32_t half = (count + 1) / 2;
	struct kd_parcel *in = &s->windows->window[(s->gang.node + first) % s->gang.nodes].in;
	kdsm_bdd one, other;

	if (count == 1) {
		if (!in->node)
			return KDSM_BDD_FALSE;
		one = KDSM_CALL(kd_unpack, in->head->root, (uintptr_t)in, 0);
		kdsm_table_flush(w->table);
		return one;
	}
	KDSM_SPAWN(kd_unite_all, first + half, count - half);
	one = KDSM_CALL(kd_unite_all, first, half);
	if (!kd_valid(one)) {
		KDSM_DROP();
		return one;
	}
	other = KDSM_SYNC(kd_unite_all);
	return kd_valid(other) ? KD_OR(one, other, 0) : other;
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
	unsigned int nodes = s->gang.nodes, i;
	kdsm_bdd all = KDSM_BDD_FALSE;
	uint32_t none;
	int r;

	if (broadcast && s->gang.node)		/* from node 0 alone */
		r = KD_RUN(s->worker, &none, kd_get_all, nodes - s->gang.node, 1, 0);
	else if (!broadcast && nodes > 1)
		r = KD_RUN(s->worker, &none, kd_get_all, 1, nodes - 1, s->gang.node);
	else
		return 0;
	for (i = 0; r == 0 && i < nodes; i++) {
		r = s->windows->window[i].error;
		s->windows->window[i].error = 0;
	}
	while (r == 0) {
		r = KD_RUN(s->worker, &all, kd_unite_all, 1, nodes - 1);
		r = r < 0 ? r : kd_windows_check(s, all);
		if (r <= 0)
			break;
		forget_made(s);
		r = 0;
	}
	for (i = 0; i < nodes; i++)
		drop(&s->windows->window[i]);
	s->windows->arrived = all;
	return r < 0 ? r : kd_windows_or(s, *received, all, received);
}
