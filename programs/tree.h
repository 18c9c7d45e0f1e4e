/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A B-tree (Bayer, McCreight 1972) of records in a heap of a coherent region. Who
 * changes it must be alone, and have acquired what the one before released; any
 * number may read when nobody changes it.
 */
#ifndef PROGRAMS_TREE_H
#define PROGRAMS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <kdsm/heap.h>

#define TREE_DEGREE	8			/* children of a node, at least; but the root */
#define TREE_KEYS	(2 * TREE_DEGREE - 1)	/* of a node, at most */

/* Of the tree, but what value is belongs to the user. */
struct tree_record {
	uint64_t key, value;
};

struct tree_node {
	uint32_t count;			/* of keys */
	uint32_t is_leaf;
	uint64_t key[TREE_KEYS];	/* in order */
	struct tree_record *record[TREE_KEYS];
	struct tree_node *child[TREE_KEYS + 1];
};

struct tree {
	struct tree_node *root;
	uint64_t count;			/* of records */
};

/* Makes it empty. -ENOMEM and other errors of the heap. */
int tree_init(struct tree *tree, struct kdsm_heap *heap);

/* NULL: there is none. */
struct tree_record *tree_find(const struct tree *tree, uint64_t key);

/*
 * The record of the key, made if there is none; *is_new: it was. Errors of the heap,
 * after which the tree is as it was.
 */
int tree_insert(struct tree *tree, struct kdsm_heap *heap, uint64_t key,
		struct tree_record **record, bool *is_new);

/* Take the record out and free it; *value: what it had. -ENOENT: there is none. */
int tree_remove(struct tree *tree, struct kdsm_heap *heap, uint64_t key, uint64_t *value);

/*
 * Look at all of it: whether it is a B-tree, with keys in order. visit (may be NULL)
 * gets each record, in order.
 */
bool tree_check(const struct tree *tree,
		void (*visit)(void *context, const struct tree_record *record),
		void *context);

#endif /* PROGRAMS_TREE_H */
