// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sweeping frees the data slots without a mark. Then the collection clears the index and
 * enters every remaining node. The entry belongs in the part of the node's high child, which
 * is mostly the part that holds the node. If the entry belongs in another part, a thread
 * posts the node to the member of that part as two words: hash and number. The bits above
 * the number count the parts that had no room for the entry.
 *
 * A collection that keeps all nodes frees only the slots that workers have filled, but not
 * claimed an index entry for.
 */
#include <string.h>

#include "internal.h"

#define FULL_SHIFT	KDSM_NUMBER_BITS
#define CLEAR		16384	/* bytes that a thread clears at a time */
/*
 * Bytes that a thread sweeps or clears in about the time of one step of a BDD operation, 150 ns,
 * while all threads of a node share the memory's bandwidth. A thread alone sweeps or clears 2,000
 * to 5,000 bytes in this time.
 */
#define BYTES_A_STEP	1024
/* Nodes that a thread enters into the index in this time: one takes about 35 ns with prefetching */
#define NODES_A_STEP	4
/* Distance at which a thread prefetches the places of nodes in the index, in slots */
#define AHEAD		16

/* Take the next block that this part has used. Return false if there is none left. */
static bool next_block(struct kd_collector *c, uint64_t *block)
{
	*block = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
	return *block < c->table->touched;
}

static int sweep(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	struct kdsm_table *t = c->table;
	uint64_t block, alive = 0, i;

	while (next_block(c, &block)) {
		struct kdsm_node *node = &t->data[block * t->block];
		unsigned int here = 0;

		kd_spend(t->block * sizeof(*node) / BYTES_A_STEP);
		for (i = 0; i < t->block; i++, node++) {
			if (node->a & KD_NODE_MARK || (c->keep && (node->a | node->b))) {
				node->a = (node->a & ~KD_NODE_MARK) | KD_NODE_OLD;
				here++;
			} else if (node->a | node->b) {
				*node = (struct kdsm_node){ 0, 0 };
			}
		}
		c->room[block] = t->block - here;
		alive += here;
	}
	__atomic_add_fetch(&c->alive, alive, __ATOMIC_RELAXED);
	return 0;
}

/* Raise t->touched. No worker has ever written to blocks of the own part from there on. */
static void note_touched(struct kdsm_table *t)
{
	uint64_t taken = __atomic_load_n(&t->header->blocks, __ATOMIC_RELAXED), i;

	if (taken > (t->collections ? t->header->listed : t->limit))
		taken = t->collections ? t->header->listed : t->limit;
	for (i = 0; i < taken && i < t->limit; i++) {
		uint64_t block = t->collections ? t->header->list[i] : i;

		if (block >= t->touched && block < t->limit)
			t->touched = block + 1;
	}
}

int kd_sweep(struct kd_collector *c)
{
	kd_table_unclaim(c->table);
	note_touched(c->table);
	c->next = 0;
	return kd_collector_run(c, sweep);
}

/*
 * List the blocks that workers take from now on: first blocks of which at least half is
 * free, then blocks with less room. Full blocks are not in the list.
 */
void kd_list_blocks(struct kd_collector *c, bool reserve)
{
	struct kdsm_table *t = c->table;
	uint64_t room = t->index_size - (reserve ? kd_reserve(t->index_size) : 0);
	uint64_t listed = 0, block;
	bool much;

	for (block = t->touched; block < t->limit; block++)
		c->room[block] = t->block;
	if (t->first == 0 && t->touched)	/* number 0 is the terminal's */
		c->room[0]--;
	room = room > c->alive ? room - c->alive : 0;
	for (much = true; ; much = false) {
		for (block = 0; block < t->limit && room; block++) {
			if (!c->room[block] || (c->room[block] >= t->block / 2) != much)
				continue;
			t->header->list[listed++] = block;
			room -= c->room[block] < room ? c->room[block] : room;
		}
		if (!much)
			break;
	}
	t->header->listed = listed;
}

static int clear(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	uint64_t at, n;

	while (at = __atomic_fetch_add(&c->next, CLEAR, __ATOMIC_RELAXED), at < c->bytes) {
		n = c->bytes - at < CLEAR ? c->bytes - at : CLEAR;
		kd_spend(n / BYTES_A_STEP);
		memset(c->array + at, 0, n);
	}
	return 0;
}

int kd_clear(struct kd_collector *c, void *array, uint64_t bytes)
{
	c->array = array;
	c->bytes = bytes;
	c->next = 0;
	return kd_collector_run(c, clear);
}

/*
 * Insert an entry into the own part's index, which has no entry of an equal node. Return
 * false if the walk finds no empty entry.
 */
static bool insert(struct kdsm_table *t, uint64_t hash, uint64_t number)
{
	const uint64_t entry = kdsm_entry(kdsm_fragment(hash), number);
	uint64_t slot = kd_reduce(hash, t->index_size), e;
	unsigned int probes;

	for (probes = 1; probes <= KD_PROBE_LIMIT; probes++) {
		e = __atomic_load_n(&t->index[slot], __ATOMIC_RELAXED);
		if (e == 0 && __atomic_compare_exchange_n(&t->index[slot], &e, entry, false,
							  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		slot = kdsm_walk_next(slot, t->index_size, probes, t->run);
	}
	return false;
}

/*
 * Insert an entry into the own part's index. If the walk finds no room, push the entry on the
 * stack, so that this thread passes it on to the next part. -ENOSPC: no part has room.
 */
static int insert_or_pass(struct kd_crew *me, uint64_t hash, uint64_t word)
{
	struct kdsm_table *t = me->collector->table;
	int r;

	if (insert(t, hash, word & KDSM_NUMBER_MASK))
		return 0;
	word += UINT64_C(1) << FULL_SHIFT;
	if (word >> FULL_SHIFT >= t->parts)
		return -ENOSPC;
	r = kd_stack_push(&me->stack, word);
	return r < 0 ? r : kd_stack_push(&me->stack, hash);
}

/* Post the entry on top of the stack to the next part. */
static int pass_on(struct kd_crew *me)
{
	const struct kdsm_table *t = me->collector->table;
	const uint64_t *top = &me->stack.word[me->stack.count - 2];
	int r;

	r = kd_post(me, (t->self + 1) % t->parts, (uint64_t[]){ top[1], top[0] }, 2);
	if (r == 0)
		me->stack.count -= 2;
	return r;
}

/* The index entry where the walk for a node of the own data begins */
static uint64_t *first_entry(const struct kdsm_table *t, const struct kdsm_node *node)
{
	return &t->index[kd_reduce(kd_hash(node->a & ~KD_NODE_OLD, node->b), t->index_size)];
}

/* Enter one node of the own data into the index. */
static int enter(struct kd_crew *me, uint64_t slot)
{
	const struct kdsm_table *t = me->collector->table;
	struct kdsm_node node = t->data[slot];
	uint64_t words[2];
	int home;

	if (!(node.a & KD_NODE_OLD))
		return 0;
	words[0] = kd_hash(node.a & ~KD_NODE_OLD, node.b);
	words[1] = t->first + slot;
	home = kd_home(t, &node, words[0]);
	if (home < 0)
		return home;
	return (unsigned int)home == t->self ? insert_or_pass(me, words[0], words[1]) :
	       kd_post(me, home, words, 2);
}

/* Enter the nodes that are left in the thread's block. */
static int enter_block(struct kd_crew *me)
{
	const struct kdsm_table *t = me->collector->table;
	const struct kdsm_node *node;
	unsigned int entered = 0;
	int r = 0;

	for (; me->slot < me->end; me->slot++) {
		node = &t->data[me->slot + AHEAD];
		if (me->end - me->slot > AHEAD && node->a & KD_NODE_OLD)
			__builtin_prefetch(first_entry(t, node), 1);
		r = enter(me, me->slot);
		if (r < 0)
			break;
		entered += !!(t->data[me->slot].a & KD_NODE_OLD);
	}
	kd_spend(entered / NODES_A_STEP);
	return r;
}

/* Enter the nodes that the member of a part has posted. */
static int get_box(struct kd_crew *me, unsigned int part)
{
	const struct kdsm_table *t = me->collector->table;
	uint64_t count, at, n, i;
	int r = kd_box_count(me, part, &count);

	for (at = 0; r == 0 && at < count; at += n) {
		n = count - at < KD_CHUNK ? count - at : KD_CHUNK;
		r = kd_box_get(me, part, at, n);
		for (i = 0; r == 0 && i + 1 < n; i += 2)
			r = (me->chunk[i + 1] & KDSM_NUMBER_MASK) < t->slots * t->parts ?
			    insert_or_pass(me, me->chunk[i], me->chunk[i + 1]) : -EIO;
	}
	return r;
}

/*
 * Enter nodes until there are none left or a box of this member is full. Read all boxes of
 * the other members in any case.
 */
static int fill(struct kd_crew *me)
{
	struct kd_collector *c = me->collector;
	const uint64_t size = c->table->block;
	bool full = false;
	unsigned int part;
	uint64_t block;
	int r;

	for (;;) {
		r = 0;
		if (kd_next_source(c, &part)) {
			r = get_box(me, part);
		} else if (full) {
			return 0;
		} else if (me->stack.count) {
			r = pass_on(me);
		} else if (me->slot < me->end) {
			r = enter_block(me);
		} else if (next_block(c, &block)) {
			me->slot = block * size;
			me->end = me->slot + size;
		} else {
			return 0;
		}
		full |= r == -ENOBUFS;
		if (r < 0 && !full)
			return r;
	}
}

int kd_fill_index(struct kd_collector *c)
{
	bool over;
	int r = kd_clear(c, c->table->index, c->table->index_size * sizeof(*c->table->index));

	c->next = 0;
	do {
		if (r == 0)
			r = kd_collector_step(c, fill, &over);
	} while (r == 0 && !over);
	return r;
}
