// SPDX-License-Identifier: GPL-2.0
/*
 * The index of the unique table: its walks, the reads that walks cost another node, and the
 * memory that the index takes together with the nodes
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tables.h"

/*
 * The walk by its definition: entry j of run i is run * i * (i + 3) / 2 + j entries from
 * the start.
 */
static void walk(uint64_t entries, uint32_t run)
{
	uint64_t start = random64() % entries, at = start, i, seen = 0;
	bool *visited = entries <= 2048 ? calloc(entries, sizeof(*visited)) : NULL;
	uint32_t done;

	for (done = 1; done <= KDSM_FIND_PROBES_MAX; done++) {
		if (visited && !visited[at]) {
			visited[at] = true;
			seen++;
		}
		at = kdsm_walk_next(at, entries, done, run);
		assert_true(at < entries);
		i = done / run;
		assert_int_equal(at, (start + run * i * (i + 3) / 2 + done % run) % entries);
	}
	/* If the number of entries is a power of two, the walk omits at most one run. */
	if (visited && !(entries & (entries - 1)))
		assert_true(seen == entries || (run < entries && seen + run == entries));
	free(visited);
}

static void walks(void **state)
{
	static const uint32_t runs[] = { 1, 8, KD_WALK_RUN, 1024, 2048, UINT32_C(1) << 31 };
	unsigned int i, k;

	(void)state;
	for (i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		for (k = 1; k <= 300; k++)
			walk(k, runs[i]);
		for (k = 0; k <= 40; k++)
			walk(UINT64_C(1) << k, runs[i]);
		for (k = 0; k < 100; k++)
			walk(1 + random64() % KDSM_NUMBERS, runs[i]);
	}
}

/* Reads of the index for each put into the other node's half of the index, at this load */
static double reads_at(unsigned int load)
{
	const unsigned int capacity = 200000, end = capacity / 100 * load, step = 2000;
	struct kdsm_table_counts before = { .argsz = sizeof(before) };
	struct kdsm_table_counts after = { .argsz = sizeof(after) };
	struct kdsm_table_worker *w[2];
	struct kdsm_node x;
	uint64_t number;
	struct bench b;
	unsigned int i;

	open_tables(&b, 2, capacity);
	for (i = 0; i < 2; i++)
		assert_int_equal(kdsm_table_worker_new(b.table[i], &w[i]), 0);
	for (i = 0; i < end; i++) {
		if (i == end - step)
			kdsm_table_counts(w[0], &before);
		x = node(i);
		assert_int_equal(kdsm_table_find_or_put(w[i < end - step ? i & 1 : 0], &x, &number),
				 1);
	}
	kdsm_table_counts(w[0], &after);
	for (i = 0; i < 2; i++)
		kdsm_table_worker_free(w[i]);
	close_tables(&b);
	return 2.0 * (after.index_get - before.index_get) / step;
}

/* If entries formed clusters at a high load, puts would take more reads. */
static void clusters(void **state)
{
	static const struct { unsigned int load; double most; } bounds[] = {
		{ 50, 1.05 }, { 80, 1.2 }, { 90, 1.3 }, { 95, 1.6 }, { 97, 2.1 },
	};
	unsigned int i;
	double reads;

	(void)state;
	for (i = 0; i < sizeof(bounds) / sizeof(*bounds); i++) {
		reads = reads_at(bounds[i].load);
		print_message("# put at load 0.%u: %.2f reads of the index\n", bounds[i].load,
			      reads);
		assert_true(reads <= bounds[i].most);
	}
}

/*
 * A slot takes 24 bytes, including its share of the header. All slots together take no more
 * than the size of the table. Nearly all slots have an index entry.
 */
static void bytes_a_node(void **state)
{
	static const uint64_t sizes[] = { 1 << 19, 1 << 20, 5000000, 64 << 20, 256 << 20 };
	struct kdsm_table_attr attr = { .argsz = sizeof(attr) };
	uint64_t used, size, all, slots;
	const struct kdsm_table *t;
	unsigned int i, parts;
	struct bench b;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (parts = 1; parts <= SIM_NODES; parts++) {
			attr.nodes = kdsm_table_nodes_for(sizes[i], parts);
			all = kdsm_table_part_bytes(&attr, parts) * parts;
			assert_in_range(all, sizes[i] - sizes[i] / 64, sizes[i]);
			open_tables(&b, parts, attr.nodes);
			t = b.table[parts - 1];
			slots = t->slots * parts;
			assert_int_equal(slots, attr.nodes);
			assert_int_equal(all, 24 * slots);
			/* no two of the areas overlap */
			assert_true((uint8_t *)&t->header->list[t->slots / t->block] <=
				    (uint8_t *)t->index);
			assert_true((uint8_t *)&t->index[t->index_most] <= (uint8_t *)t->data);
			assert_int_equal((uint8_t *)&t->data[t->slots] - (uint8_t *)t->header,
					 all / parts);
			assert_int_equal(kdsm_table_usage(b.table[0], &used, &size), 0);
			if (parts <= 3)
				print_message("# %lu bytes, %u nodes: %.4f a slot, entries for %.3f %%\n",
					      sizes[i], parts, (double)all / slots,
					      100.0 * size / slots);
			assert_true(size < slots && size >= slots - slots / 16);
			if (sizes[i] >= 64 << 20)
				assert_true(size >= slots - slots / 1000);
			close_tables(&b);
		}
	}
	/* The largest table, and the smallest, whose header comes on top */
	for (parts = 1; parts <= 1024; parts *= 2) {
		attr.nodes = UINT64_C(1) << 39;
		all = kdsm_table_part_bytes(&attr, parts) * parts;
		assert_true(all <= 24 * (attr.nodes + UINT64_C(1024) * parts));
		attr.nodes = 1;
		assert_in_range(kdsm_table_part_bytes(&attr, parts), 16 * 24, 16 * 24 + 192);
		assert_int_equal(kdsm_table_nodes_for(1, parts), 16 * parts);
		assert_int_equal(kdsm_table_nodes_for(0, parts), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks),
		cmocka_unit_test(clusters),
		cmocka_unit_test(bytes_a_node),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("table_index", tests, NULL, NULL);
}
