/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A B-tree (Bayer, McCreight 1972) of records in a heap of a coherent region. A caller that
 * changes the tree must exclude all others and have acquired the release of the last change.
 * While no caller changes the tree, any number may read it.
 */
#ifndef PROGRAMS_TREE_H
#define PROGRAMS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <kdsm/heap.h>

#define TREE_DEGREE	8			/* fewest children of a node that is not the root */
#define TREE_KEYS	(2 * TREE_DEGREE - 1)	/* most keys of a node */

/* The tree owns its records. Callers read and write value; key stays as it is. */
struct tree_record {
	uint64_t key, value;
};

struct tree_node {
	uint32_t count;			/* number of keys */
	uint32_t is_leaf;
	uint64_t key[TREE_KEYS];	/* ascending */
	struct tree_record *record[TREE_KEYS];
	struct tree_node *child[TREE_KEYS + 1];
};

struct tree {
	struct tree_node *root;
	uint64_t count;			/* number of records */
};

/* Make an empty tree. Returns 0, -ENOMEM or another error of the heap. */
int tree_init(struct tree *tree, struct kdsm_heap *heap);

/* The record of the key, or NULL */
struct tree_record *tree_find(const struct tree *tree, uint64_t key);

/*
 * Find the record of the key, or make one and set *is_new. Returns 0 or an error of the heap;
 * on errors the content of the tree does not change.
 */
int tree_insert(struct tree *tree, struct kdsm_heap *heap, uint64_t key,
		struct tree_record **record, bool *is_new);

/*
 * Remove and free the record of the key, and store its value in *value. Returns 0, -ENOENT if
 * there is no record, or an error of the heap.
 */
int tree_remove(struct tree *tree, struct kdsm_heap *heap, uint64_t key, uint64_t *value);

/*
 * Whether the whole tree is a B-tree with ascending keys. visit() sees each record in this
 * order, and may be NULL.
 */
bool tree_check(const struct tree *tree,
		void (*visit)(void *context, const struct tree_record *record),
		void *context);

#endif /* PROGRAMS_TREE_H */
