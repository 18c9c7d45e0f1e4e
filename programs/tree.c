// SPDX-License-Identifier: GPL-2.0
/*
 * B-tree, see tree.h. On the way down, an insertion splits full nodes and a removal fills nodes
 * that have the fewest keys, so neither has to go up again.
 */
#include <errno.h>
#include <string.h>

#include "tree.h"

#define LEAST	(TREE_DEGREE - 1)	/* fewest keys of a node that is not the root */

static int node_create(struct kdsm_heap *heap, bool is_leaf, struct tree_node **node)
{
	void *memory;
	int ret = kdsm_allocate(heap, 0, sizeof(**node), &memory);

	if (ret)
		return ret;
	*node = memory;
	memset(*node, 0, sizeof(**node));
	(*node)->is_leaf = is_leaf;
	return 0;
}

int tree_init(struct tree *tree, struct kdsm_heap *heap)
{
	tree->count = 0;
	return node_create(heap, true, &tree->root);
}

/* Number of keys in node that are smaller than key */
static unsigned int place_of(const struct tree_node *node, uint64_t key)
{
	unsigned int i = 0;

	while (i < node->count && node->key[i] < key)
		i++;
	return i;
}

static bool has(const struct tree_node *node, unsigned int i, uint64_t key)
{
	return i < node->count && node->key[i] == key;
}

struct tree_record *tree_find(const struct tree *tree, uint64_t key)
{
	const struct tree_node *node = tree->root;
	unsigned int i;

	for (;;) {
		i = place_of(node, key);
		if (has(node, i, key))
			return node->record[i];
		if (node->is_leaf)
			return NULL;
		node = node->child[i];
	}
}

/* Make room for key i and the child behind it. */
static void open_gap(struct tree_node *node, unsigned int i)
{
	unsigned int behind = node->count - i;

	memmove(&node->key[i + 1], &node->key[i], behind * sizeof(node->key[0]));
	memmove(&node->record[i + 1], &node->record[i], behind * sizeof(node->record[0]));
	memmove(&node->child[i + 2], &node->child[i + 1], behind * sizeof(node->child[0]));
	node->count++;
}

/* Remove key i and the child behind it. */
static void close_gap(struct tree_node *node, unsigned int i)
{
	unsigned int behind = node->count - i - 1;

	memmove(&node->key[i], &node->key[i + 1], behind * sizeof(node->key[0]));
	memmove(&node->record[i], &node->record[i + 1], behind * sizeof(node->record[0]));
	memmove(&node->child[i + 1], &node->child[i + 2], behind * sizeof(node->child[0]));
	node->count--;
}

static void move_key(struct tree_node *to, unsigned int i, const struct tree_node *from,
		     unsigned int k)
{
	to->key[i] = from->key[k];
	to->record[i] = from->record[k];
}

/* ---- insertion ---- */

/* Split the full child i: its middle key moves up, and the keys behind it to a new node. */
static int split(struct tree_node *node, unsigned int i, struct kdsm_heap *heap)
{
	struct tree_node *left = node->child[i], *right;
	int ret = node_create(heap, left->is_leaf, &right);

	if (ret)
		return ret;
	right->count = LEAST;
	memcpy(right->key, &left->key[TREE_DEGREE], LEAST * sizeof(left->key[0]));
	memcpy(right->record, &left->record[TREE_DEGREE], LEAST * sizeof(left->record[0]));
	memcpy(right->child, &left->child[TREE_DEGREE], TREE_DEGREE * sizeof(left->child[0]));
	left->count = LEAST;
	open_gap(node, i);
	move_key(node, i, left, LEAST);
	node->child[i + 1] = right;
	return 0;
}

static int grow(struct tree *tree, struct kdsm_heap *heap)
{
	struct tree_node *root;
	int ret = node_create(heap, false, &root);

	if (ret)
		return ret;
	root->child[0] = tree->root;
	ret = split(root, 0, heap);
	if (ret)
		kdsm_free(heap, root);
	else
		tree->root = root;
	return ret;
}

static int record_create(struct kdsm_heap *heap, uint64_t key, struct tree_record **record)
{
	void *memory;
	int ret = kdsm_allocate(heap, 0, sizeof(**record), &memory);

	if (ret)
		return ret;
	*record = memory;
	**record = (struct tree_record) { .key = key };
	return 0;
}

int tree_insert(struct tree *tree, struct kdsm_heap *heap, uint64_t key,
		struct tree_record **record, bool *is_new)
{
	struct tree_node *node;
	unsigned int i;
	int ret;

	*record = tree_find(tree, key);
	*is_new = !*record;
	if (*record)
		return 0;
	ret = tree->root->count == TREE_KEYS ? grow(tree, heap) : 0;
	for (node = tree->root; !ret && !node->is_leaf; node = node->child[i]) {
		i = place_of(node, key);
		if (node->child[i]->count < TREE_KEYS)
			continue;
		ret = split(node, i, heap);
		if (!ret && key > node->key[i])
			i++;
	}
	if (!ret)
		ret = record_create(heap, key, record);
	if (ret)
		return ret;
	i = place_of(node, key);
	open_gap(node, i);
	node->key[i] = key;
	node->record[i] = *record;
	tree->count++;
	return 0;
}

/* ---- removal ---- */

/* Merge child i, the key behind it and child i + 1 into one node. */
static int merge(struct tree_node *node, unsigned int i, struct kdsm_heap *heap)
{
	struct tree_node *left = node->child[i], *right = node->child[i + 1];
	unsigned int at = left->count + 1;

	move_key(left, left->count, node, i);
	memcpy(&left->key[at], right->key, right->count * sizeof(left->key[0]));
	memcpy(&left->record[at], right->record, right->count * sizeof(left->record[0]));
	memcpy(&left->child[at], right->child, (right->count + 1) * sizeof(left->child[0]));
	left->count += 1 + right->count;
	close_gap(node, i);
	return kdsm_free(heap, right);
}

static void take_from_left(struct tree_node *node, unsigned int i)
{
	struct tree_node *child = node->child[i], *left = node->child[i - 1];

	/* open_gap() makes room behind the first child, but the new child comes first. */
	open_gap(child, 0);
	child->child[1] = child->child[0];
	child->child[0] = left->child[left->count];
	move_key(child, 0, node, i - 1);
	move_key(node, i - 1, left, left->count - 1);
	left->count--;
}

static void take_from_right(struct tree_node *node, unsigned int i)
{
	struct tree_node *child = node->child[i], *right = node->child[i + 1];

	move_key(child, child->count, node, i);
	child->count++;
	child->child[child->count] = right->child[0];
	move_key(node, i, right, 0);
	right->child[0] = right->child[1];
	close_gap(right, 0);
}

/*
 * Ensure that child i has more than the fewest keys. A merge may move its keys: *child is the
 * node that has them then.
 */
static int fill(struct tree_node *node, unsigned int i, struct kdsm_heap *heap,
		struct tree_node **child)
{
	int ret = 0;

	if (node->child[i]->count == LEAST) {
		if (i && node->child[i - 1]->count > LEAST) {
			take_from_left(node, i);
		} else if (i < node->count && node->child[i + 1]->count > LEAST) {
			take_from_right(node, i);
		} else {
			if (i == node->count)
				i--;
			ret = merge(node, i, heap);
		}
	}
	*child = node->child[i];
	return ret;
}

/* Move the largest or smallest key below node to key i of another node. */
static int move_end(struct tree_node *node, bool largest, struct kdsm_heap *heap,
		    struct tree_node *to, unsigned int i)
{
	unsigned int end;
	int ret = 0;

	while (!ret && !node->is_leaf)
		ret = fill(node, largest ? node->count : 0, heap, &node);
	end = largest ? node->count - 1 : 0;
	move_key(to, i, node, end);
	close_gap(node, end);
	return ret;
}

/* Replace a root without keys by its child. */
static int shrink(struct tree *tree, struct kdsm_heap *heap)
{
	struct tree_node *root = tree->root;

	if (root->count || root->is_leaf)
		return 0;
	tree->root = root->child[0];
	return kdsm_free(heap, root);
}

int tree_remove(struct tree *tree, struct kdsm_heap *heap, uint64_t key, uint64_t *value)
{
	struct tree_node *node = tree->root;
	struct tree_record *record = tree_find(tree, key);
	unsigned int i;
	int ret = 0;

	if (!record)
		return -ENOENT;
	*value = record->value;
	while (!ret) {
		i = place_of(node, key);
		if (has(node, i, key)) {
			if (node->is_leaf) {
				close_gap(node, i);
				break;
			}
			if (node->child[i]->count > LEAST) {
				ret = move_end(node->child[i], true, heap, node, i);
				break;
			}
			if (node->child[i + 1]->count > LEAST) {
				ret = move_end(node->child[i + 1], false, heap, node, i);
				break;
			}
			ret = merge(node, i, heap);
			node = node->child[i];
		} else {
			ret = fill(node, i, heap, &node);
		}
	}
	if (!ret)
		ret = shrink(tree, heap);
	tree->count--;
	return ret ? ret : kdsm_free(heap, record);
}

/* ---- checking ---- */

struct check {
	void (*visit)(void *context, const struct tree_record *record);
	void *context;
	uint64_t count, next;		/* next: smallest key that may follow */
	int depth;			/* of leaves; -1: no leaf seen yet */
};

static bool check_record(struct check *check, const struct tree_node *node, unsigned int i)
{
	const struct tree_record *record = node->record[i];

	if (node->key[i] < check->next || record->key != node->key[i])
		return false;
	check->next = node->key[i] + 1;
	check->count++;
	if (check->visit)
		check->visit(check->context, record);
	return true;
}

static bool check_node(struct check *check, const struct tree_node *node, int depth,
		       bool is_root)
{
	unsigned int i;

	if (node->count > TREE_KEYS || (!is_root && node->count < LEAST) || depth > 32)
		return false;
	if (node->is_leaf) {
		if (check->depth >= 0 && check->depth != depth)
			return false;
		check->depth = depth;
	}
	for (i = 0; i <= node->count; i++) {
		if (!node->is_leaf && !check_node(check, node->child[i], depth + 1, false))
			return false;
		if (i < node->count && !check_record(check, node, i))
			return false;
	}
	return true;
}

bool tree_check(const struct tree *tree,
		void (*visit)(void *context, const struct tree_record *record),
		void *context)
{
	struct check check = { .visit = visit, .context = context, .depth = -1 };

	return check_node(&check, tree->root, 0, true) && check.count == tree->count;
}
