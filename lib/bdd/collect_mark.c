// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Marking. Every thread walks depth first over nodes of the own part. If a child is in
 * another part, the thread posts it to the member of that part, unless a thread of this
 * process has posted it recently. Only the thread that sets a node's mark pushes the node.
 * So, whatever memory holds, marking ends after at most as many nodes as the table has. In a
 * BDD a stack grows by one entry for each level.
 */
#include <string.h>

#include "internal.h"

/* Nodes that a thread visits between two calls of share(): threads rarely wait for the lock */
#define SHARE_AFTER	128
/* Distance at which a thread prefetches the nodes of results, in entries */
#define AHEAD		8

/* Mark the node with this number, which is in the own part. */
static int mark_own(struct kd_crew *me, uint64_t number)
{
	struct kdsm_table *t = me->collector->table;
	struct kdsm_node *node = &t->data[number - t->first];
	uint64_t a = __atomic_load_n(&node->a, __ATOMIC_RELAXED);

	if (a & KD_NODE_MARK)
		return 0;
	if (!(a | __atomic_load_n(&node->b, __ATOMIC_RELAXED)))
		return -EIO;	/* a reachable node is missing */
	a = __atomic_fetch_or(&node->a, KD_NODE_MARK, __ATOMIC_RELAXED);
	if (a & KD_NODE_MARK)
		return 0;
	me->marked++;
	return kd_stack_push(&me->stack, number);
}

static int mark_edge(struct kd_crew *me, kdsm_bdd e)
{
	struct kd_collector *c = me->collector;
	const struct kdsm_table *t = c->table;
	uint64_t number = kd_number(e), *lately;
	int r;

	if (!number)
		return 0;
	if (number - t->first < t->slots)
		return mark_own(me, number);
	if (number >= t->slots * t->parts)
		return -EIO;
	lately = &c->filter[number * UINT64_C(0x9e3779b97f4a7c15) >> 40 & (KD_FILTER - 1)];
	if (__atomic_load_n(lately, __ATOMIC_RELAXED) == number)
		return 0;
	r = kd_post(me, number / t->slots, &number, 1);
	if (r == 0)
		__atomic_store_n(lately, number, __ATOMIC_RELAXED);
	return r;
}

/* Pop a node and mark its children. On -ENOBUFS the node stays on the stack. */
static int mark_children(struct kd_crew *me)
{
	const struct kdsm_table *t = me->collector->table;
	uint64_t number = me->stack.word[--me->stack.count];
	struct kdsm_node node = kd_node_load(&t->data[number - t->first]);
	int r, again;

	kd_spend(1);
	r = mark_edge(me, kd_high(&node, 0));
	if (r == 0)
		r = mark_edge(me, kd_low(&node, 0));
	if (r == -ENOBUFS) {
		/* Retry the node later. Children that are marked by then are skipped. */
		again = kd_stack_push(&me->stack, number);
		return again < 0 ? again : r;
	}
	return r;
}

/* Mark the nodes that the member of a part has posted. */
static int get_box(struct kd_crew *me, unsigned int part)
{
	const struct kdsm_table *t = me->collector->table;
	uint64_t count, at, n, i;
	int r = kd_box_count(me, part, &count);

	for (at = 0; r == 0 && at < count; at += n) {
		n = count - at < KD_CHUNK ? count - at : KD_CHUNK;
		r = kd_box_get(me, part, at, n);
		for (i = 0; r == 0 && i < n; i++)
			r = me->chunk[i] - t->first < t->slots && me->chunk[i] ?
			    mark_own(me, me->chunk[i]) : -EIO;
	}
	return r;
}

/*
 * Move the older half of the stack to the pool, for idle threads. Older entries lead to
 * more nodes. A stack holds about one entry for each level, so a thread shares even two entries.
 */
static int share(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	uint64_t half = me->stack.count / 2, i;
	int r = 0;

	me->visited = 0;
	kd_mutex_lock(&c->lock);
	for (i = 0; r == 0 && i < half; i++)
		r = kd_stack_push(&c->pool, me->stack.word[i]);
	kd_cond_broadcast(&c->change);
	kd_mutex_unlock(&c->lock);
	me->stack.count -= half;
	memmove(me->stack.word, me->stack.word + half, me->stack.count * sizeof(uint64_t));
	return r;
}

/* Count this thread as idle. Caller holds c->lock. */
static void become_idle(struct kd_collector *c)
{
	__atomic_store_n(&c->idle, c->idle + 1, __ATOMIC_RELAXED);
	if (c->idle == c->threads)
		kd_cond_broadcast(&c->change);
}

/*
 * Wait for numbers in the pool and take an equal share with the other idle threads. Return 1
 * on success, 0 if all threads are idle and the pool is empty, or a negative errno. Only after
 * 0 this thread stays counted as idle.
 */
static int take_some(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	uint64_t n;
	int r = 0;

	kd_mutex_lock(&c->lock);
	become_idle(c);
	while (!c->pool.count && c->idle < c->threads)
		kd_cond_wait(&c->change, &c->lock);
	if (c->pool.count) {
		for (n = (c->pool.count + c->idle - 1) / c->idle; r == 0 && n; n--)
			r = kd_stack_push(&me->stack, c->pool.word[--c->pool.count]);
		__atomic_store_n(&c->idle, c->idle - 1, __ATOMIC_RELAXED);
		r = r < 0 ? r : 1;
	}
	kd_mutex_unlock(&c->lock);
	return r;
}

/* Count this thread as idle from now on, so that other threads do not wait for it. */
static void retire(struct kd_collector *c)
{
	kd_mutex_lock(&c->lock);
	become_idle(c);
	kd_mutex_unlock(&c->lock);
}

/* Mark the roots. Only the first thread calls this function. */
static int mark_roots(struct kd_crew *me)
{
	struct kd_stack *roots = &me->collector->roots;
	int r = 0;

	while (r == 0 && roots->count) {
		r = mark_edge(me, roots->word[roots->count - 1]);
		roots->count -= r == 0;
	}
	return r;
}

/*
 * Work off the stack, then read boxes, then take from the pool. Once a box of this member is
 * full, only read boxes.
 */
static int mark(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	bool full = false;
	unsigned int part;
	int r = 0;

	if (me == c->crew) {
		r = mark_roots(me);
		full = r == -ENOBUFS;
		if (r < 0 && !full)
			goto out;
	}
	for (;;) {
		while (me->stack.count && !full) {
			r = mark_children(me);
			if (r == -ENOBUFS)
				full = true;
			else if (r < 0)
				goto out;
			if (++me->visited >= SHARE_AFTER && me->stack.count > 1 &&
			    __atomic_load_n(&c->idle, __ATOMIC_RELAXED)) {
				r = share(me);
				if (r < 0)
					goto out;
			}
		}
		/*
		 * Read all boxes of the other members even if a box of this member is full,
		 * because the members overwrite them in the next step.
		 */
		if (kd_next_source(c, &part)) {
			r = get_box(me, part);
			if (r < 0)
				goto out;
			continue;
		}
		r = 0;
		if (full)
			goto out;
		r = take_some(me);
		if (r < 0)
			goto out;
		if (!r)
			return 0;
	}
out:
	retire(c);
	return r;
}

/* Add the thread's marks to those of all threads. */
static void count_marks(struct kd_crew *me)
{
	__atomic_add_fetch(&me->collector->marked, me->marked, __ATOMIC_RELAXED);
	me->marked = 0;
}

/* After kd_mark(), on a cluster of one node: mark all nodes that are reachable from an edge. */
static int mark_from(struct kd_crew *me, kdsm_bdd e)
{
	int r = mark_edge(me, e);

	while (r == 0 && me->stack.count)
		r = mark_children(me);
	count_marks(me);
	return r;
}

int kd_mark(struct kd_collector *c)
{
	unsigned int i;
	bool over;
	int r;

	do {
		r = kd_collector_step(c, mark, &over);
	} while (r == 0 && !over);
	for (i = 0; i < c->threads; i++)
		count_marks(&c->crew[i]);
	return r;
}

/* ---- results ---- */

/*
 * Keeping results of the operation cache in a collection (KD_RESULTS), on a cluster of one node.
 *
 * Sweeping moves no node. So a result still holds after a collection if all nodes that the entry
 * names are alive: the operands that are edges, and the result. The number of a dead node soon
 * belongs to another node, so an entry with a dead node must go.
 *
 * Many results are dead although their operands are alive: for example, the successors that
 * saturation has found for a set are only a part of the set that it keeps. An operation that is
 * repeated after the collection needs these results again. So the collection first marks the
 * results of live operands, until a share of the table is alive. A marked result may be an operand
 * of the results that a thread looks at later.
 */

/* Number of live nodes from which on results stay dead, in a table of this size */
static uint64_t enough(uint64_t size)
{
	return size / 4 * 3;
}

/* By operation: bit i is set if operand i is an edge. An operation without any keeps no result. */
static const uint8_t edges[KD_OPERATIONS] = {
	[KD_OP_AND] = 3, [KD_OP_ITE] = 7, [KD_OP_EXISTS] = 3, [KD_OP_AND_EXISTS] = 7,
	[KD_OP_SUCCESSORS] = 7, [KD_OP_PREDECESSORS] = 7, [KD_OP_RESTRICT] = 3,
	[KD_OP_COMPOSE] = 3, [KD_OP_SATURATE] = 1, [KD_OP_FIRE] = 3, [KD_OP_IMAGE] = 3,
};

/* Whether the collection leaves the node of an edge as it is */
static bool stays(const struct kdsm_table *t, kdsm_bdd e)
{
	uint64_t number = kd_number(e);

	if (!number || number >= KD_PRIVATE_FIRST)
		return true;
	return number < t->slots &&
	       __atomic_load_n(&t->data[number].a, __ATOMIC_RELAXED) & KD_NODE_MARK;
}

/* Whether the entry is a result whose operands stay */
static bool operands_stay(const struct kdsm_table *t, const struct kd_result *e)
{
	struct kd_operation o = kd_result_operation(e);
	unsigned int i;

	if (!edges[o.op] || !kd_result_whole(e))
		return false;
	for (i = 0; i < 3; i++)
		if (edges[o.op] >> i & 1 && !stays(t, o.operand[i]))
			return false;
	return true;
}

/*
 * Prefetch the nodes that an entry names, because each is at a random place. The function must be
 * inline: gcc removes calls of a function that only prefetches.
 */
__attribute__((always_inline))
static inline void prefetch(const struct kdsm_table *t, const struct kd_result *e)
{
	struct kd_operation o = kd_result_operation(e);
	unsigned int i;

	__builtin_prefetch(&t->data[kd_number(e->value)]);
	for (i = 0; i < 3; i++)
		if (edges[o.op] >> i & 1)
			__builtin_prefetch(&t->data[kd_number(o.operand[i])]);
}

/* Take entries of the cache, from *e to *end. Return false if there are none left. */
static bool next_entries(struct kd_collector *c, struct kd_result **e, struct kd_result **end)
{
	const struct kd_opcache *cache = &c->store->cache;
	uint64_t at = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED) * KD_ENTRIES;

	if (at >= cache->count)
		return false;
	kd_spend(KD_ENTRIES / KD_ENTRIES_A_STEP);
	*e = cache->entries + at;
	*end = *e + (cache->count - at < KD_ENTRIES ? cache->count - at : KD_ENTRIES);
	return true;
}

static int mark_results(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	const uint64_t most = enough(kd_table_size(c->table));
	struct kd_result *e, *end;
	int r = 0;

	while (r == 0 && next_entries(c, &e, &end))
		for (; r == 0 && e < end; e++) {
			if (end - e > AHEAD && e[AHEAD].check)
				prefetch(c->table, &e[AHEAD]);
			if (!e->check || stays(c->table, e->value) || !operands_stay(c->table, e))
				continue;
			if (__atomic_load_n(&c->marked, __ATOMIC_RELAXED) >= most)
				return 0;
			r = mark_from(me, e->value);
		}
	return r;
}

static int drop_results(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	struct kd_result *e, *end;

	while (next_entries(c, &e, &end))
		for (; e < end; e++) {
			if (end - e > AHEAD && e[AHEAD].check)
				prefetch(c->table, &e[AHEAD]);
			if (e->check && (!stays(c->table, e->value) || !operands_stay(c->table, e)))
				*e = (struct kd_result){ 0 };
		}
	return 0;
}

int kd_keep_results(struct kd_collector *c)
{
	int r;

	c->next = 0;
	r = kd_collector_run(c, mark_results);
	if (r < 0)
		return r;
	c->next = 0;
	return kd_collector_run(c, drop_results);
}
