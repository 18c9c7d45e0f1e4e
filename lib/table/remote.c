// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The unique table: one-sided access to other parts. This file fetches ranges of index
 * entries and windows of nodes, and claims index entries. find.c has the access by message,
 * table.h the access to the own part.
 *
 * Nothing that a get brings is trusted: entries must be whole, numbers must be in range, and
 * nodes must not be empty.
 */
#include <errno.h>
#include <string.h>

#include "table/table.h"

/* Most reads of a torn entry: if an entry stays torn, no worker has stored it */
#define MAX_TORN	1000

/*
 * Load of the index, in 1/65536, below which a worker claims the first entry without reading
 * it. Such a claim mostly succeeds. If the claim fails, it returns the entry, so it is as
 * good as a get of one entry.
 */
#define CLAIM_FIRST	(65536 * 3 / 10)

/*
 * The first number of the window that ends with number. The window does not begin before the
 * block: see "Blocks" in table.h.
 */
static uint64_t window_start(const struct kdsm_table *t, uint64_t number)
{
	uint64_t slot = number % t->slots;
	uint64_t start = slot - slot % t->block;	/* earlier blocks may be incomplete */

	if (slot - start >= KD_WINDOW_NODES)
		start = slot - (KD_WINDOW_NODES - 1);
	return number - slot + start;
}

static uint64_t data_offset(const struct kdsm_table *t, uint64_t number)
{
	return t->data_offset + number % t->slots * sizeof(struct kdsm_node);
}

/*
 * Store the usable nodes of a window in the node cache. The last node of the window is the
 * one that the caller wanted. See "Blocks" in table.h.
 */
static void remember(struct kdsm_table *t, uint64_t number,
		     const struct kdsm_node *nodes, unsigned int count)
{
	const uint64_t only = nodes[count - 1].a & KD_NODE_OLD;

	for (; count; count--, number++, nodes++) {
		if (!(nodes->a | nodes->b))	/* free, or its worker gave the slot up */
			continue;
		if ((nodes->a & only) != only)
			continue;
		kd_nodecache_put(&t->cache, number, nodes);
		kd_hint_put(&t->cache, kd_hash(nodes->a & ~KD_NODE_OLD, nodes->b), number);
	}
}

int kd_table_fetch(struct kdsm_table_worker *w, uint64_t number,
		   struct kdsm_node *node)
{
	struct kdsm_table *t = w->table;
	uint64_t start;
	unsigned int count;
	int r;

	if (number >= t->slots * t->parts || number == 0)
		return -EIO;
	/* Who knows a number of the own part also sees the node: see "Order" in table.h. */
	if (number - t->first < t->slots)
		return -EIO;
	if (kd_nodecache_get(&t->cache, number, node))
		return 0;

	start = window_start(t, number);
	count = number - start + 1;
	w->counts.node_get++;
	r = kdsm_get(t->region, number / t->slots, data_offset(t, start),
		     w->window, count * sizeof(*node));
	if (r < 0)
		return r;
	*node = w->window[count - 1];
	if (!(node->a | node->b))
		return -EIO;
	remember(t, start, w->window, count);
	return 0;
}

#define PREFETCH_OPS	8	/* Most gets in flight; their windows take 16 KiB of stack */

/* Get some windows, and store their nodes in the cache. */
static int prefetch_batch(struct kdsm_table_worker *w, struct kdsm_op *ops,
			  const uint64_t *starts, unsigned int count)
{
	struct kdsm_table *t = w->table;
	unsigned int i;
	int r;

	r = kdsm_vector(t->region, ops, count);
	if (r < 0)
		return r;
	w->counts.node_get += count;
	for (i = 0; i < count; i++)
		remember(t, starts[i], (void *)(uintptr_t)ops[i].addr,
			 ops[i].length / sizeof(struct kdsm_node));
	return 0;
}

int kdsm_table_prefetch(struct kdsm_table_worker *w, const uint64_t *numbers,
			unsigned int count)
{
	struct kdsm_node window[PREFETCH_OPS][KD_WINDOW_NODES];
	uint64_t starts[PREFETCH_OPS], ends[PREFETCH_OPS];
	struct kdsm_op ops[PREFETCH_OPS];
	struct kdsm_table *t = w->table;
	unsigned int n = 0, i, k;
	struct kdsm_node node;
	int r;

	for (i = 0; i < count; i++) {
		uint64_t number = numbers[i], start;

		if (number - t->first < t->slots || number == 0)
			continue;
		if (number >= t->slots * t->parts)
			return -EIO;
		if (kd_nodecache_get(&t->cache, number, &node))
			continue;
		for (k = 0; k < n; k++)
			if (number >= starts[k] && number <= ends[k])
				break;
		if (k < n)
			continue;
		if (n == PREFETCH_OPS) {
			r = prefetch_batch(w, ops, starts, n);
			if (r < 0)
				return r;
			n = 0;
		}
		start = window_start(t, number);
		starts[n] = start;
		ends[n] = number;
		ops[n] = kdsm_op_get(number / t->slots, data_offset(t, start),
				     window[n], (number - start + 1) * sizeof(node));
		n++;
	}
	return n ? prefetch_batch(w, ops, starts, n) : 0;
}

/*
 * Claim an index entry by an operation on the region. *former is 0 if the claim succeeded.
 * After an error the claim may or may not have succeeded, so the number in the entry must
 * never be used for another node.
 */
int kd_table_claim_by_op(struct kdsm_table_worker *w, unsigned int part,
			 uint64_t slot, uint64_t entry, uint64_t *former)
{
	struct kdsm_table *t = w->table;
	int r;

	w->counts.cas += part != t->self;
	r = kdsm_cas(t->region, part, t->index_offset + slot * sizeof(entry),
		     0, entry, former);
	if (r < 0)
		w->next++;
	return r;
}

/*
 * Number of entries to fetch. On average a walk finds an empty entry within (1 + 1/(1 -
 * load)^2)/2 entries (Oortwijn's thesis, section 3.3). Twice as many mostly contain one, and
 * cost hardly more.
 */
static unsigned int range_size(const struct kdsm_table_worker *w)
{
	uint64_t empty = 65536 - w->load;	/* never 0, because load stays at most 65000 */
	uint64_t size = 1 + (UINT64_C(65536) * 65536) / (empty * empty);

	size = (size + 7) / 8 * 8;
	return size < KD_RANGE_MAX ? size : KD_RANGE_MAX;
}

/* Update the mean load of the index by a range at the beginning of a walk. */
static void note_load(struct kdsm_table_worker *w, unsigned int count)
{
	unsigned int occupied = 0, i;
	int32_t seen;

	for (i = 0; i < count; i++)
		occupied += w->range[i] != 0;
	seen = occupied * UINT64_C(65000) / count;
	w->load += (seen - (int32_t)w->load) / 32;
}

/*
 * Number of entries of the walk that the next get brings: size, but not beyond the row, the
 * entries that are neighbours from slot on. If the get would leave fewer than size entries of
 * the row, it brings these, too, because they are not worth another get.
 */
static unsigned int in_a_row(const struct kdsm_table *t, uint64_t slot, unsigned int probes,
			     unsigned int size)
{
	unsigned int row = t->run - probes % t->run;

	if (row > t->index_size - slot)
		row = t->index_size - slot;
	if (row <= KD_RANGE_MAX && row < 2 * size)
		return row;
	return size < row ? size : row;
}

static int fetch_range(struct kdsm_table_worker *w, unsigned int part,
		       uint64_t slot, unsigned int count)
{
	struct kdsm_table *t = w->table;

	w->counts.index_get++;
	return kdsm_get(t->region, part, t->index_offset + slot * sizeof(uint64_t),
			w->range, count * sizeof(uint64_t));
}

/* Read an entry until it is whole or empty. */
static int mend(struct kdsm_table_worker *w, unsigned int part, uint64_t slot,
		uint64_t *entry)
{
	struct kdsm_table *t = w->table;
	unsigned int n;
	int r;

	for (n = 0; n < MAX_TORN; n++) {
		w->counts.torn++;
		w->counts.index_get++;
		r = kdsm_get(t->region, part,
			     t->index_offset + slot * sizeof(*entry),
			     entry, sizeof(*entry));
		if (r < 0)
			return r;
		if (*entry == 0 || kdsm_entry_whole(*entry))
			return 0;
		kd_yield();
	}
	return -EIO;
}

/*
 * Examine the entry of the walk in this slot, which was e when it was fetched, and claim it if
 * it is empty. Returns KD_FOUND, KD_PUT, KD_OVERFLOW if the entry belongs to another node, or
 * a negative errno.
 */
static int look(struct kdsm_table_worker *w, unsigned int part, uint64_t slot,
		uint64_t e, const struct kdsm_node *node, uint64_t fragment,
		uint64_t *number)
{
	int r;

	if (e && !kdsm_entry_whole(e)) {
		r = mend(w, part, slot, &e);
		if (r < 0)
			return r;
	}
	if (e == 0) {
		uint64_t mine;

		r = kd_table_take(w, node, &mine);
		if (r < 0)
			return r;
		r = kd_table_claim_by_op(w, part, slot, kdsm_entry(fragment, mine), &e);
		if (r < 0)
			return r;
		if (e == 0) {
			w->next++;
			*number = mine;
			return KD_PUT;
		}
		/* A compare-and-swap returns a whole entry, unless no worker stored this entry. */
	}
	if ((e & KDSM_FRAGMENT_MASK) == fragment) {
		*number = kdsm_entry_number(e);
		r = kd_table_same(w, *number, node);
		if (r)
			return r < 0 ? r : KD_FOUND;
	}
	return KD_OVERFLOW;
}

int kd_table_probe_remote(struct kdsm_table_worker *w, unsigned int part,
			  const struct kdsm_node *node, uint64_t hash,
			  uint64_t *number)
{
	struct kdsm_table *t = w->table;
	const uint64_t fragment = kdsm_fragment(hash);
	uint64_t slot = kd_reduce(hash, t->index_size);
	unsigned int size, count, probes = 0, i;
	bool first = true;
	int r;

	if (w->load < CLAIM_FIRST) {
		r = look(w, part, slot, 0, node, fragment, number);
		if (r == -ENOSPC) {
			/* The table has no room for the node, but may contain it. */
			w->load = CLAIM_FIRST;
		} else {
			/* Let each claim without reading update the mean load, too. */
			w->load += ((r == KD_PUT ? 0 : 65000) - (int32_t)w->load) / 64;
			if (r != KD_OVERFLOW)
				return r;
			probes = 1;
			slot = kdsm_walk_next(slot, t->index_size, probes, t->run);
		}
	}
	for (size = range_size(w); probes < KD_PROBE_LIMIT; size *= 2) {
		if (size > KD_RANGE_MAX)
			size = KD_RANGE_MAX;
		count = in_a_row(t, slot, probes, size);
		r = fetch_range(w, part, slot, count);
		if (r < 0)
			return r;
		if (first && probes == 0)
			note_load(w, count);
		first = false;
		for (i = 0; i < count; i++) {
			r = look(w, part, slot + i, w->range[i], node, fragment, number);
			if (r != KD_OVERFLOW)
				return r;
		}
		probes += count;
		slot = kdsm_walk_next(slot + count - 1, t->index_size, probes, t->run);
	}
	return KD_OVERFLOW;
}

/*
 * Find-or-put, beginning in the part home. Each part has one walk for the node, of
 * KD_PROBE_LIMIT entries from the slot of the node's hash on. A node is put into the first
 * empty entry of the first walk that has one, and entries become empty only all at once, in a
 * collection. So a search finds the node before the first empty entry, or the table does not
 * contain the node.
 */
int kd_table_find_or_put(struct kdsm_table_worker *w, const struct kdsm_node *node,
			 uint64_t hash, unsigned int home, uint64_t *number)
{
	struct kdsm_table *t = w->table;
	unsigned int part = home, n;
	struct kdsm_node other;
	uint64_t hint;
	int r;

	if (home != t->self) {
		hint = kd_hint_get(&t->cache, hash);
		if (hint && kd_table_get(w, hint, &other) == 0 &&
		    kd_node_equal(&other, node)) {
			*number = hint;
			w->counts.found++;
			return KD_FOUND;
		}
	}
	for (n = 0; n < t->parts; n++, part = part + 1 == t->parts ? 0 : part + 1) {
		if (part == t->self) {
			r = kd_table_probe_local(w, node, hash, number);
		} else {
			r = kd_table_probe_other(w, part, node, hash, number);
			if (r == KD_FOUND)
				w->counts.found++;
			else if (r == KD_PUT)
				w->counts.put++;
			/* Save the operation when this process looks for the node again. */
			if (r == KD_FOUND || r == KD_PUT)
				kd_hint_put(&t->cache, hash, *number);
		}
		if (r != KD_OVERFLOW)
			return r;
	}
	return -ENOSPC;
}
