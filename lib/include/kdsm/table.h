/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The distributed unique table: find-or-put of 16-byte nodes in a partitioned
 * region (Oortwijn, van Dijk, van de Pol, SPIN 2017, section 3).
 *
 * Two arrays lie in every part of the region: index, 8 bytes an entry, which
 * all nodes of the cluster change by compare-and-swap, and data, 16 bytes a
 * node, in blocks that one worker each fills. A node is known by its number: 40
 * bits, part times slots of a part plus slot. Number 0 is never given out. A
 * node that is in the table does not change and does not move. Only of BDDs nodes are
 * removed again, by kdsm_bdd_collect() (<kdsm/bdd.h>).
 *
 * Conventions as in <kdsm/kdsm.h>: 0 or more is success, a negative errno is
 * failure. A table may be used by any number of threads, each with a worker of
 * its own. All processes of a job open it with the same region, offset and
 * attributes.
 */
#ifndef KDSM_TABLE_H
#define KDSM_TABLE_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KDSM_NUMBER_BITS	40
#define KDSM_NUMBER_MASK	((UINT64_C(1) << KDSM_NUMBER_BITS) - 1)
#define KDSM_NODE_BYTES		16	/* in data */
#define KDSM_ENTRY_BYTES	8	/* in index */

/*
 * What a node means is up to the user; it must not be all zero. Bits 61 and 62 of a are
 * the table's, and zero in what users give and get.
 */
struct kdsm_node {
	uint64_t a, b;
};

struct kdsm_table;
struct kdsm_table_worker;

/* How a node is found or put whose index entry is in the part of another node. */
enum kdsm_table_find {
	KDSM_TABLE_AUTO,	/* as is measured to be faster */
	KDSM_TABLE_ONE_SIDED,	/* gets of ranges of the index and of nodes, compare-and-swap */
	KDSM_TABLE_MESSAGE,	/* the other node's kernel does it; not in domain HCA */
};

struct kdsm_table_attr {
	/*
	 * In all parts together. Each has slots for its share, rounded up to blocks; and index
	 * entries for fewer, by those in whose place its header is: 0.05 per cent in large
	 * parts, up to 6 in small ones. Number 0 is one of them.
	 */
	uint64_t nodes;
	uint64_t cache_nodes;	/* remote nodes kept by this process; 0: an eighth of nodes */
	uint64_t first_nodes;	/* of these, in use until the table grows; 0: all */
	uint32_t find;		/* enum kdsm_table_find, of this process */
};

/*
 * Bytes that a table takes in every part of a region over cluster_nodes nodes: 24 a slot,
 * all told. Where there are fewer than 1024 slots, the header comes on top of it.
 */
uint64_t kdsm_table_part_bytes(const struct kdsm_table_attr *attr,
			       unsigned int cluster_nodes);

/*
 * The attr.nodes for which all parts together take bytes at most, 24 a node; but no fewer
 * than 16 in each part, and 0 for 0.
 */
uint64_t kdsm_table_nodes_for(uint64_t bytes, unsigned int cluster_nodes);

/*
 * Open the table at offset (a multiple of 64) of every part of region. The
 * memory must be zero when the first process opens it. The region must stay
 * open as long as the table.
 *
 * -EINVAL: offset, attr.nodes 0, first_nodes above it, or attr.find. -ERANGE:
 * the parts are too small. -EFBIG: more than 2^39 nodes. -ENOMEM: no memory for the caches.
 * -EOPNOTSUPP: KDSM_TABLE_MESSAGE in domain HCA.
 */
int kdsm_table_open(struct kdsm_table **table, struct kdsm_region *region,
		    uint64_t offset, const struct kdsm_table_attr *attr);

/* All workers must be gone. NULL is ignored. */
void kdsm_table_close(struct kdsm_table *table);

/* A worker: what one thread needs to use the table. -ENOMEM. */
int kdsm_table_worker_new(struct kdsm_table *table,
			  struct kdsm_table_worker **worker);
void kdsm_table_worker_free(struct kdsm_table_worker *worker);

/*
 * Find node, or put it. Returns 0 if it was there, 1 if it is there now; its
 * number is in *number either way.
 *
 * -ENOSPC: the table is full, or the slots that are left are in blocks that other workers
 * have begun: of each worker fewer than 16, or than a 64th of a part if that is more, and
 * never more than 1,023. -EIO: the memory of the table holds what no worker stores, or the
 * operation failed on the wire. -EINVAL: node is zero, or has bits that are the table's.
 * Or another error of an operation on the region.
 */
int kdsm_table_find_or_put(struct kdsm_table_worker *worker,
			   const struct kdsm_node *node, uint64_t *number);

/*
 * The same where the caller says in which part the index entry of the node is:
 * a function of the node's content, the same in every process. What is often
 * looked up by one node of the cluster may thus be local to it. home below 0
 * is kdsm_table_find_or_put().
 */
int kdsm_table_find_or_put_at(struct kdsm_table_worker *worker,
			      const struct kdsm_node *node, int home,
			      uint64_t *number);

/*
 * Read a node by its number, which some worker was given. -EINVAL: no such
 * number. Errors of an operation on the region.
 */
int kdsm_table_read(struct kdsm_table_worker *worker, uint64_t number,
		    struct kdsm_node *node);

/*
 * Bring nodes into the cache of the process, so that reading them is local:
 * the requests to other nodes overlap. Numbers that are local cost nothing.
 */
int kdsm_table_prefetch(struct kdsm_table_worker *worker,
			const uint64_t *numbers, unsigned int count);

/* The part in which a number lies. */
unsigned int kdsm_table_part(const struct kdsm_table *table, uint64_t number);

/* What a worker did. Operations count here if they went to another node. */
struct kdsm_table_counts {
	uint64_t found;		/* find-or-puts that found */
	uint64_t put;		/* find-or-puts that put */
	uint64_t index_get;	/* gets of ranges of the index */
	uint64_t node_get;	/* gets of nodes */
	uint64_t cas;		/* compare-and-swaps of index entries */
	uint64_t other;		/* blocks fetched from, nodes put to, other parts */
	uint64_t torn;		/* entries read again because they were torn */
	uint64_t false_match;	/* fragments equal, nodes not */
	uint64_t find;		/* KDSM_OP_FINDs */
};

void kdsm_table_counts(const struct kdsm_table_worker *worker,
		       struct kdsm_table_counts *counts);

/*
 * Nodes in the table over all parts, and how many it holds at most: slots, or entries of
 * the index, whichever are fewer. Used lags behind by what workers did since they last
 * took a block; a worker brings it up to date with kdsm_table_flush() or when it is freed.
 */
int kdsm_table_usage(struct kdsm_table *table, uint64_t *used, uint64_t *size);
void kdsm_table_flush(struct kdsm_table_worker *worker);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_TABLE_H */
