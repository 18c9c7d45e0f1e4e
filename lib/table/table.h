/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the unique table: its layout, and the path that stays in the own part,
 * inline because every step of every BDD operation takes it. What goes to other
 * nodes is in remote.c, opening and blocks in table.c.
 *
 * A part, from its offset in the region:
 *	header		with the list of blocks
 *	index		index_most entries of 8 bytes, of which index_size are in use
 *	data		slots nodes of 16 bytes, in blocks, of which limit are in use
 *
 * The index has so many entries fewer than there are slots that the header takes their
 * place: a slot costs 24 bytes, all told. So of a table that is full to the last entry some
 * slots stay free, in large ones 0.05 per cent; walks find no empty entry long before.
 *
 * Order. A worker stores a node into data, then claims an index entry by
 * compare-and-swap. Who sees the entry, sees the node: here the claim is a
 * release that pairs with the acquire load of the entry. On another node the get
 * of the node starts after the get of the entry has ended, and the node was
 * stored before the entry was claimed, because a claim by CPU is a release, and
 * one by message or device is a system call after the store, which the kernel
 * does not post before (posting orders the CPU's stores before the device's
 * reads). The numbers themselves travel through other words too, such as the
 * operation cache; those are stored with release and loaded with acquire as well.
 *
 * Blocks. Data is handed out in blocks; a block is filled in order by the worker
 * that took it, and a node is final before the next one is begun. So whoever has
 * a number may take everything in front of it in its block for final, and one get
 * brings a window of nodes instead of one (kd_table_fetch()).
 *
 * Collections (collect.c) leave blocks of which some slots are free. Survivors carry
 * KD_NODE_OLD, free slots are zero, and a worker fills the free slots of its block in
 * order, too. So what is in front of a young number is final as before. In front of an
 * old number there may be slots that are being filled right now, so of its window only
 * other old nodes are taken: that bit is set by collections alone, when nobody reads,
 * and a slot in any state between zero and a young node does not have it.
 */
#ifndef KD_TABLE_H
#define KD_TABLE_H

#include <errno.h>
#include <pthread.h>
#include <kdsm/table.h>
#include <linux/kdsm_table.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- hashes ---- */

/* The full product of two words, folded: wyhash's mixing step. */
static inline uint64_t kd_mix(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

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
 * The node cache: nodes of other parts that this process has seen, and where it
 * has seen them. Lossy, shared by all threads, without locks.
 *
 * Two arrays. Nodes, by number: three words, of which one is a checksum over
 * the number and the other two, so that what two threads left half and half
 * does not pass for a node (Hyatt's lockless hashing). Hints, by content: one
 * word, the number and 24 bits of the hash; whoever follows a hint compares the
 * node that it leads to. Nodes do not change, so nothing is invalidated but all of it,
 * when a collection has removed nodes.
 */
struct kd_nodecache {
	struct kd_cached_node {
		uint64_t check, a, b;
	} *nodes;
	uint64_t *hints;
	uint64_t mask;		/* entries - 1, of both */
};

int kd_nodecache_init(struct kd_nodecache *cache, uint64_t entries);
void kd_nodecache_clear(struct kd_nodecache *cache);	/* nobody may use it meanwhile */
void kd_nodecache_destroy(struct kd_nodecache *cache);

static inline uint64_t kd_cached_check(uint64_t number, uint64_t a, uint64_t b)
{
	/* + 1: an entry that was never used does not pass for number 0. */
	return kd_mix(a ^ UINT64_C(0x8ebc6af09c88c6e3),
		      b ^ UINT64_C(0x589965cc75374cc3)) + number + 1;
}

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

/* The number under which a node of that hash was seen; 0: none known. */
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

/* Entries looked at in one part before going on in the next. The same everywhere. */
#define KD_PROBE_LIMIT	2048
#define KD_WINDOW_NODES	128	/* nodes brought by one get at most */
#define KD_RANGE_MAX	128	/* index entries brought by one get at most */
/*
 * Entries of a run of a walk. In shorter runs there is less of a cluster, but
 * of a full one a get brings less; what one get brings at most costs fewest of them.
 */
#define KD_WALK_RUN	KD_RANGE_MAX
#define KD_BLOCK_MIN	16	/* nodes */
#define KD_BLOCK_MAX	1024

/* Bits of a node's a that are the table's: it survived a collection; it is alive. */
#define KD_NODE_OLD	(UINT64_C(1) << 62)
#define KD_NODE_MARK	(UINT64_C(1) << 61)	/* only while a collection is on */

struct kd_table_header {
	uint64_t blocks __attribute__((aligned(64)));	/* taken, by faa */
	uint64_t used __attribute__((aligned(64)));	/* nodes, by CPUs of the node */
	/*
	 * Since the first collection block i to be taken is list[i], and there are that
	 * many; before, it is block i. Changed by collections alone.
	 */
	uint64_t listed __attribute__((aligned(64)));
	uint32_t list[];
};

struct kdsm_table {
	/* read by every operation */
	uint64_t *index;		/* of the own part */
	struct kdsm_node *data;
	uint64_t slots;			/* of a part: numbers from part to part */
	uint64_t index_size;		/* entries in use, of a part */
	uint64_t first;			/* number of slot 0 of the own part */
	uint32_t run;			/* of kdsm_walk_next() */
	unsigned int self, parts;
	bool cpu_atomics;		/* on the own part */
	enum kdsm_table_find find;
	struct kd_nodecache cache;

	struct kdsm_region *region;
	struct kd_table_header *header;
	uint64_t index_most;		/* entries there are, of a part */
	uint64_t offset;		/* of the header in a part */
	uint64_t index_offset, data_offset;
	uint64_t block;			/* nodes in a block, a power of two */
	uint64_t limit;			/* blocks in use, of a part */
	uint64_t reserve;		/* of these, not given out before the first collection */

	/* collections, all of them collective: the same everywhere */
	uint64_t collections;
	uint64_t touched;		/* blocks of the own part that ever were taken */
	pthread_mutex_t lock;		/* of the list of workers */
	struct kdsm_table_worker *workers;
};

struct kdsm_table_worker {
	struct kdsm_table *table;
	uint64_t next, end;		/* numbers left of a run of free ones */
	uint64_t base;			/* first number of the own block */
	unsigned int source;		/* parts found without blocks so far */
	uint64_t flushed;		/* of counts.put, in header->used */
	uint32_t load;			/* of index entries fetched, of 65536 */
	uint64_t asked;			/* find-or-puts on other parts */
	uint64_t time[2];		/* ns that they take; [true]: by message */
	struct kdsm_table_counts counts;
	uint64_t range[KD_RANGE_MAX];
	struct kdsm_node window[KD_WINDOW_NODES];
	uint64_t free[KD_BLOCK_MAX / 64];	/* slots of the own block, a bit each */
	struct kdsm_table_worker *other, **place;	/* in the table's list */
};

/* table.c */
void kd_table_resize(struct kdsm_table *table, uint64_t limit);
uint64_t kd_table_used_here(struct kdsm_table *table);
void kd_table_restart(struct kdsm_table *table, uint64_t nodes, uint32_t load);
int kd_table_take(struct kdsm_table_worker *w, const struct kdsm_node *node,
		  uint64_t *number);
/* remote.c */
int kd_table_fetch(struct kdsm_table_worker *w, uint64_t number,
		   struct kdsm_node *node);
int kd_table_probe_remote(struct kdsm_table_worker *w, unsigned int part,
			  const struct kdsm_node *node, uint64_t hash,
			  uint64_t *number);
/* table_find.c: that, or by message */
int kd_table_probe_other(struct kdsm_table_worker *w, unsigned int part,
			 const struct kdsm_node *node, uint64_t hash, uint64_t *number);
/* remote.c */
int kd_table_claim_by_op(struct kdsm_table_worker *w, unsigned int part,
			 uint64_t slot, uint64_t entry, uint64_t *former);
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

/* Nodes that fit in what is in use: slots but number 0, as far as the index has entries. */
static inline uint64_t kd_table_size(const struct kdsm_table *t)
{
	uint64_t nodes = t->limit * t->block * t->parts - 1, entries = t->index_size * t->parts;

	return nodes < entries ? nodes : entries;
}

static inline unsigned int kd_table_home(const struct kdsm_table *t, uint64_t hash)
{
	return ((hash >> KDSM_FRAGMENT_BITS & 0xffff) * t->parts) >> 16;
}

/* 0: *node is filled; else a negative errno. */
static inline int kd_table_get(struct kdsm_table_worker *w, uint64_t number,
			       struct kdsm_node *node)
{
	const struct kdsm_table *t = w->table;
	uint64_t slot = number - t->first;

	if (kd_likely(slot < t->slots)) {
		*node = kd_node_load(&t->data[slot]);
		return 0;
	}
	return kd_table_fetch(w, number, node);
}

/* Whatever their age. */
static inline bool kd_node_equal(const struct kdsm_node *x, const struct kdsm_node *y)
{
	return !((x->a ^ y->a) & ~KD_NODE_OLD) && x->b == y->b;
}

/* The number of an entry whose fragment matches: is it that of this node? */
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

/* What probing a part comes to, beside errors. */
enum { KD_FOUND, KD_PUT, KD_OVERFLOW };

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
			/* only a device's atomics, in domain hca, can do that */
			w->counts.torn++;
			if (++torn == 1000)
				return -EIO;
			continue;
		}
		probes++;
		/* a walk ends with a run */
		if (kd_unlikely(!(probes & (t->run - 1))) && probes == KD_PROBE_LIMIT)
			return KD_OVERFLOW;
		slot = kdsm_walk_next(slot, t->index_size, probes, t->run);
	}
}

/* The whole of find-or-put. Returns KD_FOUND, KD_PUT or a negative errno. */
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
