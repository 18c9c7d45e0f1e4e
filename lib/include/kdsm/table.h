/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The distributed unique table: find-or-put of nodes of 16 bytes in a partitioned region
 * (Oortwijn, van Dijk, van de Pol, "Distributed Binary Decision Diagrams for Symbolic
 * Reachability", SPIN 2017, section 3).
 *
 * In this header a "node" is a node of the table, such as a node of a decision diagram; a
 * machine is a "cluster node".
 *
 * Every part of the region holds two arrays: the index, 8 bytes an entry, which all cluster
 * nodes change by compare-and-swap, and the data, 16 bytes a node, in blocks. One worker
 * fills each block. A number of 40 bits identifies a node: its part times the slots of a
 * part, plus its slot. No node has number 0. A node in the table does not change and does
 * not move. Only kdsm_bdd_collect() of <kdsm/bdd.h> removes nodes.
 *
 * Conventions are those of <kdsm/kdsm.h>. Any number of threads may use a table, each with
 * a worker of its own. All processes of a job open a table with the same region, offset
 * and attributes, except cache_nodes and find.
 */
#ifndef KDSM_TABLE_H
#define KDSM_TABLE_H

#include <kdsm/kdsm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KDSM_NUMBER_BITS	40
#define KDSM_NUMBER_MASK	((UINT64_C(1) << KDSM_NUMBER_BITS) - 1)
#define KDSM_NODE_BYTES		16	/* size of a node */
#define KDSM_ENTRY_BYTES	8	/* size of an index entry */

/*
 * The content of a node, which the user defines. Not all bits are zero. Bits 61 and 62 of a
 * belong to the table: they are zero in every node that the user passes or gets.
 */
struct kdsm_node {
	uint64_t a, b;
};

/* A process's view of a table. */
struct kdsm_table;
/* A thread's view of a table. */
struct kdsm_table_worker;

/* How to find or put a node whose index entry is in the part of another cluster node. */
enum kdsm_table_find {
	KDSM_TABLE_AUTO,	/* the faster of the two, as each worker keeps measuring it */
	KDSM_TABLE_ONE_SIDED,	/* gets of index ranges and of nodes, compare-and-swap */
	KDSM_TABLE_MESSAGE,	/* one message to the kernel there; not in domain HCA */
};

struct kdsm_table_attr {
	size_t argsz;		/* size of this struct */
	/*
	 * Slots for nodes in all parts together, 1 to 2^39, rounded up to blocks. The index
	 * has fewer entries than there are slots, because the header takes the place of some
	 * entries: 0.05 % fewer in large parts, up to 6 % in small ones. Number 0 takes one
	 * slot.
	 */
	uint64_t nodes;
	/*
	 * Nodes of other parts that this process caches, 32 bytes each, rounded up to a power
	 * of two, at least 1024; 0: an eighth of nodes, but at most half of the slots of a part.
	 * A table that may still grow uses as large a part of them as of its slots.
	 */
	uint64_t cache_nodes;
	uint64_t first_nodes;	/* slots in use until the table grows, <= nodes; 0: nodes */
	uint32_t find;		/* enum kdsm_table_find; processes may differ */
};

/*
 * Return the number of bytes that a table needs of every part of a region of cluster_nodes
 * (1 or more) cluster nodes: 24 a slot, and more for the header if a part is small. Return
 * UINT64_MAX if attr->argsz is wrong.
 */
uint64_t kdsm_table_part_bytes(const struct kdsm_table_attr *attr,
			       unsigned int cluster_nodes);

/*
 * Return the largest attr.nodes for which all parts together need at most this number of
 * bytes, at 24 bytes a node; at least 16 for each part. 0 if bytes is 0. cluster_nodes is 1
 * or more.
 */
uint64_t kdsm_table_nodes_for(uint64_t bytes, unsigned int cluster_nodes);

/*
 * Open the table at offset, a multiple of 64, of every part of region. The
 * kdsm_table_part_bytes() bytes there are zero when the first process opens the table. The
 * caller keeps the region open for writing as long as the table, and closes *table with
 * kdsm_table_close(). On failure *table is not stored.
 *
 * -EINVAL	offset or a field of attr is out of range
 * -ERANGE	the table is not inside the part, or the region is coherent
 * -EFBIG	attr->nodes is above 2^39
 * -ENOMEM	this process has no memory for the caches
 * -EOPNOTSUPP	KDSM_TABLE_MESSAGE in domain HCA
 */
int kdsm_table_open(struct kdsm_region *region, uint64_t offset,
		    const struct kdsm_table_attr *attr, struct kdsm_table **table);

/* Close the table, after all its workers are freed. NULL is ignored. */
void kdsm_table_close(struct kdsm_table *table);

/*
 * Create a worker. One thread at a time uses it; the caller frees it with
 * kdsm_table_worker_free(). -ENOMEM: this process has no memory.
 */
int kdsm_table_worker_new(struct kdsm_table *table,
			  struct kdsm_table_worker **worker);
/* Free a worker. NULL is ignored. */
void kdsm_table_worker_free(struct kdsm_table_worker *worker);

/*
 * Find a node, or put it, and store its number in *number. Returns 0 if it was in the table,
 * 1 if this call put it.
 *
 * -ENOSPC	the table is full: no slot is free, or no index entry on the node's walk.
 *		The free slots of a block belong to the worker that fills the block, so up
 *		to 15 for each other worker, or 1/64 of a part if that is more (1,023 at
 *		most), are not available
 * -EINVAL	*node is all zero, or has bits that belong to the table
 * -EIO		the memory of the table holds values that no worker stores; or as kdsm_get()
 * others	those of kdsm_vector()
 */
int kdsm_table_find_or_put(struct kdsm_table_worker *worker,
			   const struct kdsm_node *node, uint64_t *number);

/*
 * As kdsm_table_find_or_put(), with the index entry in part home. The caller computes home
 * from the node's content alone, by the same function in every process. So a cluster node can
 * keep entries that it often looks up in its own part. If home is below 0, the table chooses
 * it. -EINVAL: there is no part home.
 */
int kdsm_table_find_or_put_at(struct kdsm_table_worker *worker, int home,
			      const struct kdsm_node *node, uint64_t *number);

/*
 * Read a node by its number, which a find-or-put gave.
 *
 * -EIO		number is not that of a node (checked only for numbers of other parts); or
 *		as kdsm_get()
 * others	those of kdsm_get()
 */
int kdsm_table_read(struct kdsm_table_worker *worker, uint64_t number,
		    struct kdsm_node *node);

/*
 * Fetch nodes into the cache of the process, so that kdsm_table_read() finds them there. The
 * requests to other nodes overlap. Numbers of this node's part cost nothing. Errors: those
 * of kdsm_table_read().
 */
int kdsm_table_prefetch(struct kdsm_table_worker *worker,
			const uint64_t *numbers, unsigned int count);

/* The part that holds the node of that number. */
unsigned int kdsm_table_part(const struct kdsm_table *table, uint64_t number);

/* Counts of a worker. Operations on this cluster node's part are not counted. */
struct kdsm_table_counts {
	size_t argsz;		/* size of this struct */
	uint64_t found;		/* find-or-puts that found the node */
	uint64_t put;		/* find-or-puts that put it */
	uint64_t index_get;	/* gets of index ranges */
	uint64_t node_get;	/* gets of nodes */
	uint64_t cas;		/* compare-and-swaps of index entries */
	uint64_t other;		/* operations for blocks and nodes in other parts */
	uint64_t torn;		/* index entries read again because they were torn */
	uint64_t false_match;	/* entries with the hash fragment of another node */
	uint64_t find;		/* find-or-puts by message */
};

/* Store the counts in *counts. Errors: those of argsz. */
int kdsm_table_counts(const struct kdsm_table_worker *worker,
		      struct kdsm_table_counts *counts);

/*
 * Store the number of nodes in all parts in *used, and the most that the table in use can
 * hold in *size: its slots or its index entries, whichever are fewer. *used lacks the nodes
 * that workers have put since they last took a block; kdsm_table_flush() adds those of a
 * worker, and so does freeing the worker. Errors: those of kdsm_get().
 */
int kdsm_table_usage(struct kdsm_table *table, uint64_t *used, uint64_t *size);
/* Add the nodes that this worker has put to what kdsm_table_usage() returns. */
void kdsm_table_flush(struct kdsm_table_worker *worker);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_TABLE_H */
