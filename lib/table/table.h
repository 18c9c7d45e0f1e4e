/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The inside of the unique table: its layout, the node cache, and find-or-put in the own
 * part, which is inline because every step of every BDD operation takes this path. Access to
 * other parts is in remote.c and find.c, opening and blocks in table.c. lib/bdd/collect*.c
 * collects garbage. In this folder a "node" is a BDD node unless the text says "cluster node".
 * Each cluster node has one part of the table. A walk is the sequence of index entries that
 * find-or-put examines for a node in one part: kdsm_walk_next() in <kdsm/uapi_table.h>.
 *
 * A part, from its offset in the region:
 *	header		with the list of blocks
 *	index		index_most entries of 8 bytes, of which index_size are in use
 *	data		"slots" places of 16 bytes for nodes, in blocks, of which "limit" are in
 *			use
 *
 * The header takes the memory of some index entries, so the index has fewer entries than the
 * data has slots, and a slot costs 24 bytes including the header. If all entries were used,
 * some slots would still be free, 0.05 % of the slots in a large table. This does not matter,
 * because walks fail to find an empty entry before all entries are used.
 *
 * Order. A worker stores a node into data, and then claims an index entry by
 * compare-and-swap. A reader that sees the entry also sees the node:
 * - In the own part the claim is a release, which pairs with the acquire load of the entry
 *   in kd_table_probe_local().
 * - A reader on another cluster node starts the get of the node after the get of the entry
 *   has ended, and the node was stored before the entry was claimed. For a claim by CPU this
 *   holds because the claim is a release. A claim by message or device is a system call after
 *   the store; the kernel posts the operation later than the store, and posting orders the
 *   stores of the CPU before the reads of the device.
 * - A worker whose own part is full puts the node into another part. It settles this put before
 *   it claims an entry, so both words of the node are there for all readers.
 * - Numbers also travel through other words, such as the operation cache. These words are
 *   stored with release and loaded with acquire semantics, too.
 *
 * Blocks. Workers take data in blocks. The worker that took a block fills it in order, and a
 * node is final before the worker begins the next one. So every node in front of a known
 * number in the same block is final, and one get brings a window of nodes instead of a single
 * node (kd_table_fetch()).
 *
 * Collections leave blocks of which some slots are free. The nodes that a collection keeps
 * ("old" nodes) carry KD_NODE_OLD, free slots are zero, and a worker fills the free slots of
 * its block in order, too. So the nodes in front of a young node in its block are final as
 * before. A worker may be filling the slots in front of an old node, so a reader of an old
 * node uses only the old nodes of the window. The reader can tell them apart: only collections
 * set KD_NODE_OLD, while no worker reads, and a slot in any state between zero and a young
 * node lacks this bit.
 */
#ifndef KD_TABLE_H
#define KD_TABLE_H

#include <errno.h>
#include <pthread.h>
#include <kdsm/table.h>
#include <kdsm/uapi_table.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/thread.h"

/* ---- hashes ---- */

/* The mixing step of wyhash: the full product of two words, folded. */
static inline uint64_t kd_mix(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The hash of a node, without its KD_NODE_OLD and KD_NODE_MARK */
static inline uint64_t kd_hash(uint64_t a, uint64_t b)
{
	uint64_t h = kd_mix(a ^ UINT64_C(0x9e3779b97f4a7c15),
			    b ^ UINT64_C(0xd6e8feb86659fd93));

	return kd_mix(h, UINT64_C(0xa0761d6478bd642f));
}

/* A number below range, from the high bits of the hash. */
static inline uint64_t kd_reduce(uint64_t hash, uint64_t range)
{
	return (uint64_t)(((unsigned __int128)hash * range) >> 64);
}

/* ---- nodecache.c ---- */

/*
 * The node cache holds nodes of other parts that this process has read, and their numbers.
 * It is lossy, and all threads share it without locks. It consists of two arrays:
 * - Nodes, indexed by number: three words, of which one is a checksum over the number and
 *   the other two. The checksum detects an entry that two threads wrote concurrently (Hyatt's
 *   lockless hashing).
 * - Hints, indexed by the hash of the content: one word with the number and 24 bits of the
 *   hash. A reader that follows a hint compares the node of this number.
 * Nodes never change, so no single entry is ever invalidated. A collection clears the whole
 * cache.
 */
struct kd_nodecache {
	struct kd_cached_node {
		uint64_t check, a, b;
	} *nodes;
	uint64_t *hints;
	uint64_t mask;		/* entries in use - 1, of both arrays */
	uint64_t most;		/* entries that have memory - 1 */
};

/* Allocate at least this many entries, rounded up to a power of two. Returns 0 or -ENOMEM. */
int kd_nodecache_init(struct kd_nodecache *cache, uint64_t entries);
/*
 * Use at least this many entries, rounded up to a power of two, as far as there are so many.
 * Entries that are not in use take no memory. No thread uses the cache concurrently.
 */
void kd_nodecache_resize(struct kd_nodecache *cache, uint64_t entries);
void kd_nodecache_clear(struct kd_nodecache *cache);	/* No thread uses it concurrently. */
void kd_nodecache_destroy(struct kd_nodecache *cache);

static inline uint64_t kd_cached_check(uint64_t number, uint64_t a, uint64_t b)
{
	/* + 1: an unused entry, which is all zero, must not pass for number 0. */
	return kd_mix(a ^ UINT64_C(0x8ebc6af09c88c6e3),
		      b ^ UINT64_C(0x589965cc75374cc3)) + number + 1;
}

/* Whether the cache has the node with this number, which the function stores in *node. */
static inline bool kd_nodecache_get(const struct kd_nodecache *cache,
				    uint64_t number, struct kdsm_node *node)
{
	const struct kd_cached_node *e = &cache->nodes[number & cache->mask];
	uint64_t check = __atomic_load_n(&e->check, __ATOMIC_RELAXED);

	node->a = __atomic_load_n(&e->a, __ATOMIC_RELAXED);
	node->b = __atomic_load_n(&e->b, __ATOMIC_RELAXED);
	return (node->a | node->b) &&
	       check == kd_cached_check(number, node->a, node->b);
}

static inline void kd_nodecache_put(struct kd_nodecache *cache, uint64_t number,
				    const struct kdsm_node *node)
{
	struct kd_cached_node *e = &cache->nodes[number & cache->mask];

	__atomic_store_n(&e->check, kd_cached_check(number, node->a, node->b),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&e->a, node->a, __ATOMIC_RELAXED);
	__atomic_store_n(&e->b, node->b, __ATOMIC_RELAXED);
}

#define KD_HINT_SHIFT	KDSM_NUMBER_BITS

/* The number of a node that probably has this hash, or 0 if none is known. */
static inline uint64_t kd_hint_get(const struct kd_nodecache *cache, uint64_t hash)
{
	uint64_t hint = __atomic_load_n(&cache->hints[(hash >> 24) & cache->mask],
					__ATOMIC_RELAXED);

	return hint >> KD_HINT_SHIFT == (hash & 0xffffff) ?
	       hint & KDSM_NUMBER_MASK : 0;
}

static inline void kd_hint_put(struct kd_nodecache *cache, uint64_t hash,
			       uint64_t number)
{
	__atomic_store_n(&cache->hints[(hash >> 24) & cache->mask],
			 (hash & 0xffffff) << KD_HINT_SHIFT | number,
			 __ATOMIC_RELAXED);
}

/* ---- the table ---- */

#define kd_likely(x)	__builtin_expect(!!(x), 1)
#define kd_unlikely(x)	__builtin_expect(!!(x), 0)

/*
 * Length of a walk in one part, in index entries; the search then goes on in the next part.
 * All processes must use the same length.
 */
#define KD_PROBE_LIMIT	2048
#define KD_WINDOW_NODES	128	/* Most nodes that one get brings */
#define KD_RANGE_MAX	128	/* Most index entries that one get brings */
/*
 * Length of a run, in index entries: a walk consists of runs of neighbouring entries. Shorter
 * runs meet smaller clusters of used entries, but a get then brings fewer entries of a full
 * run. Runs as long as the largest get need the fewest gets.
 */
#define KD_WALK_RUN	KD_RANGE_MAX
#define KD_BLOCK_MIN	16	/* Smallest block, in nodes */
#define KD_BLOCK_MAX	1024	/* Largest block, in nodes */

/* Bits of the word a of a node that belong to the table */
#define KD_NODE_OLD	(UINT64_C(1) << 62)	/* the node survived a collection */
#define KD_NODE_MARK	(UINT64_C(1) << 61)	/* the node is alive; set only in a collection */

struct kd_table_header {
	uint64_t blocks __attribute__((aligned(64)));	/* blocks taken; changed by kdsm_faa() */
	uint64_t used __attribute__((aligned(64)));	/* nodes; only own CPUs change it */
	/*
	 * Number of blocks in list. After the first collection workers take list[0], list[1]
	 * and so on; before, they take block 0, 1 and so on. Only collections change these two
	 * fields.
	 */
	uint64_t listed __attribute__((aligned(64)));
	uint32_t list[];
};

struct kdsm_table {
	/* The fields that every operation reads */
	uint64_t *index;		/* of the own part */
	struct kdsm_node *data;		/* of the own part */
	uint64_t slots;			/* slots of a part, and also its range of numbers */
	uint64_t index_size;		/* entries in use, of a part */
	uint64_t first;			/* number of slot 0 of the own part */
	uint32_t run;			/* argument of kdsm_walk_next() */
	unsigned int self, parts;	/* number of the own part, and of all parts */
	bool cpu_atomics;		/* CPUs do the atomics on the own part */
	enum kdsm_table_find find;
	struct kd_nodecache cache;

	struct kdsm_region *region;
	struct kd_table_header *header;
	uint64_t index_most;		/* entries of a part that have memory */
	uint64_t offset;		/* of the header in a part */
	uint64_t index_offset, data_offset;
	uint64_t block;			/* nodes in a block, a power of two */
	uint64_t limit;			/* blocks in use, of a part */
	uint64_t reserve;		/* of these, blocks kept back until the first collection */

	/* Number of collections so far. These are collective, so all processes have the same. */
	uint64_t collections;
	uint64_t touched;		/* blocks of the own part from this one on are unused */
	pthread_mutex_t lock;		/* protects the list of workers */
	struct kdsm_table_worker *workers;
};

struct kdsm_table_worker {
	struct kdsm_table *table;
	uint64_t next, end;		/* the rest of the current run of free numbers */
	uint64_t base;			/* first number of the own block */
	unsigned int source;		/* number of parts found without free blocks */
	uint64_t flushed;		/* part of counts.put that is in header->used */
	uint32_t load;			/* mean load of the index as fetched, in 1/65536 */
	uint64_t asked;			/* find-or-puts on other parts, with KDSM_TABLE_AUTO */
	uint64_t time[2];		/* their mean duration, in ns; [true]: by message */
	struct kdsm_table_counts counts;
	uint64_t range[KD_RANGE_MAX];
	struct kdsm_node window[KD_WINDOW_NODES];
	uint64_t free[KD_BLOCK_MAX / 64];	/* free slots of the own block, a bit each */
	struct kdsm_table_worker *other, **place;	/* next in the table's list; link to this */
};

/* table.c */
/**
 * kd_table_resize() - Set the number of blocks in use, and the size of the index for them
 * @table: the table
 * @limit: blocks in use, of each part
 */
void kd_table_resize(struct kdsm_table *table, uint64_t limit);
/**
 * kd_table_used_here() - Get the number of nodes that this cluster node has put
 * @table: the table; no worker of this process uses it concurrently
 *
 * Return: the number of nodes.
 */
uint64_t kd_table_used_here(struct kdsm_table *table);
/**
 * kd_table_flushed() - Get the number of nodes put here, as far as kdsm_table_flush() counted them
 * @table: the table, which workers may use meanwhile
 *
 * Return: the number of nodes, without a call or a lock.
 */
static inline uint64_t kd_table_flushed(const struct kdsm_table *table)
{
	return __atomic_load_n(&table->header->used, __ATOMIC_RELAXED);
}

/**
 * kd_table_unclaim() - Clear the slots of nodes that turned out to be in the table already
 * @table: the table; no worker of this process uses it concurrently
 */
void kd_table_unclaim(struct kdsm_table *table);
/**
 * kd_table_restart() - Prepare the table for use after a collection
 * @table: the table; no worker of this process uses it concurrently
 * @nodes: new value of kd_table_used_here()
 * @load: load of the index, in 1/65536
 *
 * Takes the blocks away from all workers, and clears the node cache.
 */
void kd_table_restart(struct kdsm_table *table, uint64_t nodes, uint32_t load);
/*
 * Store the node under the next free number without using this number up: kd_table_take()
 * returns the same number again until the caller increments w->next.
 */
int kd_table_take(struct kdsm_table_worker *w, const struct kdsm_node *node,
		  uint64_t *number);
/* remote.c */
/**
 * kd_table_fetch() - Read a node that is probably in another part
 * @w: worker of the calling thread
 * @number: number of the node
 * @node: (out) the node; KD_NODE_OLD may be set in it
 *
 * Looks into the node cache first, and stores a window of nodes in the cache.
 *
 * Return: 0 or a negative errno.
 */
int kd_table_fetch(struct kdsm_table_worker *w, uint64_t number,
		   struct kdsm_node *node);
/*
 * Find-or-put in a part by gets and compare-and-swaps. Returns KD_FOUND, KD_PUT, KD_OVERFLOW
 * or a negative errno.
 */
int kd_table_probe_remote(struct kdsm_table_worker *w, unsigned int part,
			  const struct kdsm_node *node, uint64_t hash,
			  uint64_t *number);
/* find.c: the same as kd_table_probe_remote(), or by message if this is faster */
int kd_table_probe_other(struct kdsm_table_worker *w, unsigned int part,
			 const struct kdsm_node *node, uint64_t hash, uint64_t *number);
/* remote.c */
/* Claim the index entry "slot" of a part; *former is 0 if the claim succeeded. */
int kd_table_claim_by_op(struct kdsm_table_worker *w, unsigned int part,
			 uint64_t slot, uint64_t entry, uint64_t *former);
/* As kd_table_put(), for any home. -ENOSPC: the table is full. */
int kd_table_find_or_put(struct kdsm_table_worker *w, const struct kdsm_node *node,
			 uint64_t hash, unsigned int home, uint64_t *number);

static inline struct kdsm_node kd_node_load(const struct kdsm_node *from)
{
	struct kdsm_node node = {
		__atomic_load_n(&from->a, __ATOMIC_RELAXED),
		__atomic_load_n(&from->b, __ATOMIC_RELAXED),
	};

	return node;
}

/* Number of nodes that the blocks and entries in use can hold; number 0 holds none. */
static inline uint64_t kd_table_size(const struct kdsm_table *t)
{
	uint64_t nodes = __atomic_load_n(&t->limit, __ATOMIC_RELAXED) * t->block * t->parts - 1;
	uint64_t entries = __atomic_load_n(&t->index_size, __ATOMIC_RELAXED) * t->parts;

	return nodes < entries ? nodes : entries;
}

/* The part where the search for a node begins if the caller does not choose one */
static inline unsigned int kd_table_home(const struct kdsm_table *t, uint64_t hash)
{
	return ((hash >> KDSM_FRAGMENT_BITS & 0xffff) * t->parts) >> 16;
}

/* Store the node with this number, which may have KD_NODE_OLD. Returns 0 or a negative errno. */
static inline int kd_table_get(struct kdsm_table_worker *w, uint64_t number,
			       struct kdsm_node *node)
{
	const struct kdsm_table *t = w->table;
	uint64_t slot = number - t->first;

	if (kd_likely(slot < t->slots)) {
		*node = kd_node_load(&t->data[slot]);
		if (kd_likely(node->a | node->b))
			return 0;
	}
	return kd_table_fetch(w, number, node);
}

/* Compare two nodes, either of which may have KD_NODE_OLD set. */
static inline bool kd_node_equal(const struct kdsm_node *x, const struct kdsm_node *y)
{
	return !((x->a ^ y->a) & ~KD_NODE_OLD) && x->b == y->b;
}

/*
 * Whether number, of an entry whose fragment matches, is the number of this node. Returns 1
 * or 0, or a negative errno.
 */
static inline int kd_table_same(struct kdsm_table_worker *w, uint64_t number,
				const struct kdsm_node *node)
{
	struct kdsm_node other;
	int r = kd_table_get(w, number, &other);

	if (kd_unlikely(r < 0))
		return r;
	if (kd_likely(kd_node_equal(&other, node)))
		return 1;
	w->counts.false_match++;
	return 0;
}

/*
 * Outcomes of probing a part; errors are negative. KD_OVERFLOW: the walk has neither the node
 * nor an empty entry.
 */
enum { KD_FOUND, KD_PUT, KD_OVERFLOW };

/* Find-or-put in the own part. Returns KD_FOUND, KD_PUT, KD_OVERFLOW or a negative errno. */
static inline int kd_table_probe_local(struct kdsm_table_worker *w,
				       const struct kdsm_node *node,
				       uint64_t hash, uint64_t *number)
{
	struct kdsm_table *t = w->table;
	const uint64_t fragment = kdsm_fragment(hash);
	uint64_t slot = kd_reduce(hash, t->index_size);
	unsigned int probes = 0, torn = 0;
	int r;

	for (;;) {
		uint64_t e = __atomic_load_n(&t->index[slot], __ATOMIC_ACQUIRE);

		if (e == 0) {
			uint64_t mine, entry;

			r = kd_table_take(w, node, &mine);
			if (kd_unlikely(r < 0))
				return r;
			entry = kdsm_entry(fragment, mine);
			if (kd_unlikely(!t->cpu_atomics)) {
				r = kd_table_claim_by_op(w, t->self, slot, entry, &e);
				if (r < 0)
					return r;
			} else {
				__atomic_compare_exchange_n(&t->index[slot], &e,
							    entry, false,
							    __ATOMIC_RELEASE,
							    __ATOMIC_ACQUIRE);
			}
			if (kd_likely(e == 0)) {
				w->next++;
				w->counts.put++;
				*number = mine;
				return KD_PUT;
			}
		}
		if ((e & KDSM_FRAGMENT_MASK) == fragment) {
			*number = kdsm_entry_number(e);
			r = kd_table_same(w, *number, node);
			if (r) {
				w->counts.found += r > 0;
				return r < 0 ? r : KD_FOUND;
			}
		} else if (kd_unlikely(!kdsm_entry_whole(e))) {
			/* Only an atomic of a device, in domain HCA, can look torn to a CPU. */
			w->counts.torn++;
			if (++torn == 1000)
				return -EIO;
			continue;
		}
		probes++;
		/* KD_PROBE_LIMIT is a multiple of run, so test it only at the end of a run. */
		if (kd_unlikely(!(probes & (t->run - 1))) && probes == KD_PROBE_LIMIT)
			return KD_OVERFLOW;
		slot = kdsm_walk_next(slot, t->index_size, probes, t->run);
	}
}

/**
 * kd_table_put() - Find a node in the table, or put it there
 * @w: worker of the calling thread
 * @node: the node, without KD_NODE_OLD and KD_NODE_MARK
 * @hash: kd_hash() of the node
 * @home: the part whose index the search begins in
 * @number: (out) number of the node
 *
 * Return: KD_FOUND, KD_PUT or a negative errno.
 */
static inline int kd_table_put(struct kdsm_table_worker *w,
			       const struct kdsm_node *node, uint64_t hash,
			       unsigned int home, uint64_t *number)
{
	if (kd_likely(home == w->table->self)) {
		int r = kd_table_probe_local(w, node, hash, number);

		if (kd_likely(r != KD_OVERFLOW))
			return r;
	}
	return kd_table_find_or_put(w, node, hash, home, number);
}

#endif /* KD_TABLE_H */
