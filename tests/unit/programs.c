// SPDX-License-Identifier: GPL-2.0
/*
 * Parts of the programs: random numbers and the B-tree
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"
#include "../../programs/random.h"
#include "../../programs/tree.h"

static int failures;

/* ---- random numbers ---- */

static void random_numbers(void **state)
{
	uint64_t x = 314159265, y = x;
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_int_equal(lcg_skip(314159265, i), x);
		y = (__uint128_t)y * 1220703125 % (1ULL << 46);
		assert_true(lcg_next(&x) == (double)y / (double)(1ULL << 46));
		assert_int_equal(x, y);
	}
}

/* ---- the tree ---- */

#define KEYS	600
#define NONE	UINT64_MAX

struct grown {
	struct kdsm *kdsm;
	struct kdsm_region *region, *sync;
	struct kdsm_heap *heap;
	struct tree tree;
	uint64_t values[KEYS], count;
};

static struct grown grown;

static int plant(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4 << 20 };
	unsigned int i;

	(void)state;
	grown.count = 0;
	for (i = 0; i < KEYS; i++)
		grown.values[i] = NONE;
	return kdsm_open(KDSM_OPEN_LOCAL, &grown.kdsm) ||
	       kdsm_region_open_coherent(grown.kdsm, "tree", &attr,
					 kdsm_heap_sync_size(attr.size, 0, 1), &grown.region,
					 &grown.sync) ||
	       kdsm_heap_create(grown.region, grown.sync, 0, KDSM_HEAP_DEBUG, &grown.heap) ||
	       tree_init(&grown.tree, grown.heap);
}

static int fell(void **state)
{
	(void)state;
	kdsm_heap_close(grown.heap);
	kdsm_region_close(grown.sync);
	kdsm_region_close(grown.region);
	kdsm_close(grown.kdsm);
	return 0;
}

static void insert(uint64_t key, uint64_t value)
{
	struct tree_record *record;
	bool is_new;

	assert_int_equal(tree_insert(&grown.tree, grown.heap, key, &record, &is_new), 0);
	assert_int_equal(is_new, grown.values[key] == NONE);
	assert_int_equal(record->key, key);
	if (!is_new)
		assert_int_equal(record->value, grown.values[key]);
	grown.count += is_new;
	grown.values[key] = value;
	record->value = value;
}

static void take_out(uint64_t key)
{
	bool is_there = grown.values[key] != NONE;
	uint64_t was = 0;

	assert_int_equal(tree_remove(&grown.tree, grown.heap, key, &was),
			 is_there ? 0 : -ENOENT);
	if (!is_there)
		return;
	assert_int_equal(was, grown.values[key]);
	grown.values[key] = NONE;
	grown.count--;
}

static void same(void *context, const struct tree_record *record)
{
	UNIT_CHECK(&failures, grown.values[record->key] == record->value);
	++*(uint64_t *)context;
}

static void compare(void)
{
	uint64_t visited = 0, key;

	failures = 0;
	assert_true(tree_check(&grown.tree, same, &visited));
	assert_int_equal(failures, 0);
	assert_int_equal(visited, grown.count);
	assert_int_equal(grown.tree.count, grown.count);
	for (key = 0; key < KEYS; key += 7)
		assert_int_equal(!tree_find(&grown.tree, key), grown.values[key] == NONE);
}

static void in_order(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < KEYS; i++, compare())
		insert(i, i);
	for (i = 0; i < KEYS; i++, compare())
		take_out(i);
	for (i = KEYS; i--; compare())
		insert(i, 2 * i);
	for (i = KEYS; i--; compare())
		take_out(i);
	assert_true(grown.tree.root->is_leaf);
}

/* Phases in which the tree grows alternate with phases in which it shrinks. */
static void at_random(void **state)
{
	unsigned int i;
	uint64_t random;

	(void)state;
	for (i = 0; i < 30000; i++) {
		random = mix(i);
		if (random % 10 < (i / 3000 % 2 ? 2 : 8))
			insert(random / 16 % KEYS, i);
		else
			take_out(random / 16 % KEYS);
		compare();
	}
}

/* tree_check() detects each of these faults. */
static void faults(void **state)
{
	struct tree_node *root, *child;
	unsigned int i;

	(void)state;
	for (i = 0; i < 200; i++)
		insert(i, i);
	root = grown.tree.root;
	assert_false(root->is_leaf);
	child = root->child[0];

	child->record[0]->key++;
	assert_false(tree_check(&grown.tree, NULL, NULL));
	child->record[0]->key--;
	assert_true(tree_check(&grown.tree, NULL, NULL));
	root->key[0] = 0;
	assert_false(tree_check(&grown.tree, NULL, NULL));
	root->key[0] = root->record[0]->key;
	assert_true(tree_check(&grown.tree, NULL, NULL));
	i = child->count;
	child->count = 1;
	assert_false(tree_check(&grown.tree, NULL, NULL));
	child->count = i;
	grown.tree.count++;
	assert_false(tree_check(&grown.tree, NULL, NULL));
	grown.tree.count--;
	root->child[0] = root;
	assert_false(tree_check(&grown.tree, NULL, NULL));
	root->child[0] = child;
	assert_true(tree_check(&grown.tree, NULL, NULL));
}

#define TREE_TEST(function) cmocka_unit_test_setup_teardown(function, plant, fell)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_numbers),
		TREE_TEST(in_order),
		TREE_TEST(at_random),
		TREE_TEST(faults),
	};

	return UNIT_RUN(tests);
}
