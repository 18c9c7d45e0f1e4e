// SPDX-License-Identifier: GPL-2.0
/*
 * The unique table: on one node and on several, full, with torn reads, and with hostile
 * memory
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tables.h"

static void entries(void **state)
{
	unsigned int i, mask, byte;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint64_t number = random64() & KDSM_NUMBER_MASK, hash = random64();
		uint64_t fragment = kdsm_fragment(hash), e = kdsm_entry(fragment, number);

		assert_int_equal(kdsm_entry_gather(kdsm_entry_spread(random64() >> 8)) >> 56, 0);
		assert_true(kdsm_entry_whole(e));
		assert_int_equal(kdsm_entry_number(e), number);
		assert_int_equal(kdsm_entry_gather(e), number << 16 | (hash & 0xffff));
		assert_int_equal(e & KDSM_FRAGMENT_MASK, fragment);
		/* every partial view of the entry */
		for (mask = 1; mask < 255; mask++) {
			uint64_t torn = 0;

			for (byte = 0; byte < 8; byte++)
				if (mask & 1u << byte)
					torn |= e & UINT64_C(0xff) << (8 * byte);
			assert_int_not_equal(torn, 0);
			assert_false(kdsm_entry_whole(torn));
			assert_int_not_equal(torn & KDSM_FRAGMENT_MASK, fragment);
		}
	}
}

/* ---- clusters of tables ---- */

#define MAX_THREADS	8

/* Nodes of a full table. Walks at a high load leave their first run in a smaller one, too. */
#ifdef __SANITIZE_THREAD__
#define CAPACITY	8192
#else
#define CAPACITY	20000
#endif

struct thread {
	pthread_t id;
	struct kdsm_table *table;
	unsigned int seed, count;
	uint64_t *numbers;
	struct kdsm_table_counts counts;
	int error;
};

/* Put nodes 0 to count - 1, some of them twice. Each thread has an order of its own. */
static void *put_all(void *data)
{
	struct thread *t = data;
	struct kdsm_table_worker *w;
	unsigned int i;
	int r;

	t->counts.argsz = sizeof(t->counts);
	t->error = kdsm_table_worker_new(t->table, &w);
	for (i = 0; t->error == 0 && i < t->count + t->count / 4; i++) {
		unsigned int k = (i * 7919ULL + t->seed * 104729ULL) % t->count;
		struct kdsm_node n = node(k), back;
		uint64_t number;

		r = kdsm_table_find_or_put(w, &n, &number);
		if (r < 0)
			t->error = r;
		else if (t->numbers[k] && t->numbers[k] != number)
			t->error = -EEXIST;
		else if (kdsm_table_read(w, number, &back) || back.a != n.a || back.b != n.b)
			t->error = -EBADF;
		t->numbers[k] = number;
	}
	kdsm_table_counts(w, &t->counts);
	kdsm_table_worker_free(w);
	return NULL;
}

static void together(unsigned int nodes, unsigned int threads, unsigned int count,
		     uint64_t capacity)
{
	struct thread t[MAX_THREADS] = { 0 };
	uint64_t used, size, put = 0;
	struct bench b;
	unsigned int i, k;

	open_tables(&b, nodes, capacity);
	/* A thread may get no block when the other threads have begun the last blocks. */
	assert_true(count + (threads - 1) * b.table[0]->block < nodes * b.table[0]->slots);
	sim.tear = true;
	for (i = 0; i < threads; i++) {
		t[i].table = b.table[i % nodes];
		t[i].seed = i;
		t[i].count = count;
		t[i].numbers = calloc(count, sizeof(uint64_t));
		assert_int_equal(pthread_create(&t[i].id, NULL, put_all, &t[i]), 0);
	}
	for (i = 0; i < threads; i++) {
		pthread_join(t[i].id, NULL);
		assert_int_equal(t[i].error, 0);
		put += t[i].counts.put;
		for (k = 0; k < count; k++)
			assert_int_equal(t[i].numbers[k], t[0].numbers[k]);
	}
	assert_int_equal(put, count);
	assert_int_equal(kdsm_table_usage(b.table[0], &used, &size), 0);
	assert_int_equal(used, count);
	assert_true(size >= capacity - capacity / 64);
	for (i = 0; i < threads; i++)
		free(t[i].numbers);
	close_tables(&b);
}

static void one_thread(void **state)
{
	(void)state;
	together(1, 1, 20000, 25000);
}

static void four_threads(void **state)
{
	(void)state;
	together(1, 4, 20000, 25000);
}

static void three_nodes(void **state)
{
	(void)state;
	together(3, 6, 10000, 13000);
}

static void load_09(void **state)
{
	(void)state;
	together(1, 4, CAPACITY / 10 * 9, CAPACITY);
	together(2, 4, CAPACITY / 10 * 9, CAPACITY);
}

/* At this load most walks leave their first run. All ways of finding take the same walk. */
static void load_098(void **state)
{
	(void)state;
	together(1, 2, CAPACITY / 50 * 49, CAPACITY);
	for (way = KDSM_TABLE_AUTO; way <= KDSM_TABLE_MESSAGE; way++)
		together(3, 6, CAPACITY / 50 * 49, CAPACITY);
	way = KDSM_TABLE_ONE_SIDED;
	mixed = true;
	together(2, 4, CAPACITY / 50 * 49, CAPACITY);
	together(3, 6, CAPACITY / 50 * 49, CAPACITY);
	mixed = false;
}

/*
 * Put nodes first, first + 1, ... into a table of 20000 until it is full. Returns the node
 * that the table refused.
 */
static uint64_t put_until_full(struct kdsm_table_worker *w, uint64_t first)
{
	uint64_t number, n;
	int r;

	for (n = first; ; n++) {
		struct kdsm_node x = node(n);

		r = kdsm_table_find_or_put(w, &x, &number);
		if (r < 0)
			break;
		assert_int_equal(r, 1);
		assert_true(n < 21000);
	}
	assert_int_equal(r, -ENOSPC);
	return n;
}

/* Fill the table. Its nodes must stay findable, and little space may be lost. */
static void fill(unsigned int nodes)
{
	struct kdsm_table_worker *w;
	uint64_t number, used, size, i, n;
	struct bench b;

	open_tables(&b, nodes, 20000);
	assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
	n = put_until_full(w, 0);
	kdsm_table_flush(w);
	assert_int_equal(kdsm_table_usage(b.table[0], &used, &size), 0);
	assert_int_equal(used, n);
	print_message("# full at load %.3f\n", (double)used / size);
	assert_true(used * 100 >= size * 95);
	for (i = 0; i < n; i++) {
		struct kdsm_node x = node(i), y;

		assert_int_equal(kdsm_table_find_or_put(w, &x, &number), 0);
		assert_int_equal(kdsm_table_read(w, number, &y), 0);
		assert_memory_equal(&x, &y, sizeof(x));
	}
	kdsm_table_worker_free(w);
	/* Use the half-empty blocks that workers have left, too. */
	for (i = 0; i < 200; i++) {
		struct kdsm_node x = node(n + 1000 + i);

		assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
		assert_in_range(kdsm_table_find_or_put(w, &x, &number) + ENOSPC, 0, ENOSPC + 1);
		kdsm_table_worker_free(w);
	}
	/* A new worker must find nodes although it gets no slot to offer in its requests. */
	assert_int_equal(kdsm_table_worker_new(b.table[nodes - 1], &w), 0);
	for (i = 0; i < n; i += 7) {
		struct kdsm_node x = node(i);

		assert_int_equal(kdsm_table_find_or_put(w, &x, &number), 0);
	}
	kdsm_table_worker_free(w);
	close_tables(&b);
}

static void full(void **state)
{
	(void)state;
	fill(1);
	fill(3);	/* one node fills the parts of the others, too */
}

/* Other workers keep the free slots of the blocks that they have begun, and no more. */
static void begun_blocks(void **state)
{
	struct kdsm_table_worker *w[4];
	uint64_t number, block, slots, n;
	struct kdsm_node x;
	struct bench b;
	unsigned int i;

	(void)state;
	open_tables(&b, 1, 20000);
	block = b.table[0]->block;
	slots = b.table[0]->slots;
	for (i = 0; i < 4; i++) {
		assert_int_equal(kdsm_table_worker_new(b.table[0], &w[i]), 0);
		x = node(i);
		assert_int_equal(kdsm_table_find_or_put(w[i], &x, &number), 1);
	}
	n = put_until_full(w[0], 4);
	assert_int_equal(n, slots - 1 - 3 * (block - 1));	/* number 0 is never used */
	x = node(n);
	for (i = 1; i < 4; i++) {
		assert_int_equal(kdsm_table_find_or_put(w[i], &x, &number), i == 1);
		kdsm_table_worker_free(w[i]);
	}
	kdsm_table_worker_free(w[0]);
	close_tables(&b);
}

/* The same by message, and by the way that the table chooses */
static void other_ways(void **state)
{
	(void)state;
	for (way = KDSM_TABLE_AUTO; way <= KDSM_TABLE_MESSAGE; way++) {
		if (way == KDSM_TABLE_ONE_SIDED)
			continue;
		together(3, 6, 10000, 13000);
		together(2, 4, 18000, 20000);
		fill(3);
	}
	way = KDSM_TABLE_ONE_SIDED;
}

/* Counts of node 0: at first, after puts at a load, and after finds */
struct measured {
	struct kdsm_table_counts before;
	struct kdsm_table_counts puts;
	struct kdsm_table_counts finds;
};

/* Two nodes fill a table; then node 0 finds nodes that either of them has put. */
static struct measured measure(unsigned int load, unsigned int step, unsigned int first,
			       unsigned int stride)
{
	struct kdsm_table_worker *w[2];
	struct measured m = {
		.before.argsz = sizeof(m.before),
		.puts.argsz = sizeof(m.puts),
		.finds.argsz = sizeof(m.finds),
	};
	struct kdsm_node x;
	uint64_t number;
	struct bench b;
	unsigned int i;

	open_tables(&b, 2, 60000);
	for (i = 0; i < 2; i++)
		assert_int_equal(kdsm_table_worker_new(b.table[i], &w[i]), 0);
	for (i = 0; i < load - step; i++) {
		x = node(i);
		assert_int_equal(kdsm_table_find_or_put(w[i & 1], &x, &number), 1);
	}
	kdsm_table_counts(w[0], &m.before);
	for (; i < load; i++) {
		x = node(i);
		assert_int_equal(kdsm_table_find_or_put(w[0], &x, &number), 1);
	}
	kdsm_table_counts(w[0], &m.puts);
	/* so far apart that a window hardly ever brings the next node */
	for (i = first; i < load - step; i += stride) {
		x = node(i);
		assert_int_equal(kdsm_table_find_or_put(w[0], &x, &number), 0);
	}
	kdsm_table_counts(w[0], &m.finds);
	for (i = 0; i < 2; i++)
		kdsm_table_worker_free(w[i]);
	close_tables(&b);
	return m;
}

/* A find by message is one operation, unless an entry leads to a node in a third part. */
static void messages(void **state)
{
	const unsigned int step = 1000;
	struct measured m;

	(void)state;
	way = KDSM_TABLE_MESSAGE;
	m = measure(54000, step, 1, 130);
	/* half of the index is on node 0 */
	print_message("# put at load 0.9: %.2f messages\n",
		      (double)(m.puts.find - m.before.find) / step);
	assert_in_range(m.puts.find - m.before.find, step * 45 / 100, step * 55 / 100);
	assert_int_equal(m.puts.index_get + m.puts.cas, 0);
	print_message("# find at load 0.9: %.2f messages, %.2f reads\n",
		      (double)(m.finds.find - m.puts.find) / (m.finds.found - m.puts.found),
		      (double)(m.finds.node_get - m.puts.node_get) /
		      (m.finds.found - m.puts.found));
	assert_in_range(m.finds.find - m.puts.find, 0, (m.finds.found - m.puts.found) * 6 / 10);
	way = KDSM_TABLE_ONE_SIDED;
}

/* Remote operations of a find and of a put, when half of the index is remote */
static void operations(void **state)
{
	const unsigned int step = 1000;
	struct measured m;
	double n, get, cas;

	(void)state;
	m = measure(48000, step, 0, 131);
	n = step;
	get = m.puts.index_get - m.before.index_get + m.puts.node_get - m.before.node_get;
	cas = m.puts.cas - m.before.cas;
	print_message("# put at load 0.8: %.2f reads, %.2f atomics\n", get / n, cas / n);
	assert_true(get / n <= 0.7);
	assert_true(cas / n <= 0.6);
	n = m.finds.found - m.puts.found;
	get = m.finds.index_get - m.puts.index_get + m.finds.node_get - m.puts.node_get;
	print_message("# find at load 0.8: %.2f reads\n", get / n);
	assert_true(get / n <= 1.2);
}

/*
 * Other nodes may write any value to the memory. Calls may then fail, and must do no other
 * harm.
 */
static void hostile(void **state)
{
	struct kdsm_table_worker *w;
	struct bench b;
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 80; round++) {
		uint64_t *word, words;
		struct kdsm_node x;
		uint64_t number;

		way = round < 40 ? KDSM_TABLE_ONE_SIDED : KDSM_TABLE_MESSAGE;
		/* Half of the tables are large enough for walks of several runs. */
		open_tables(&b, 2, round & 2 ? 2000 : 6000);
		for (i = 0; i < 2; i++) {
			word = kdsm_region_part(b.region[i]);
			words = kdsm_region_part_size(b.region[i]) / 8;
			for (uint64_t k = 0; k < words; k++)
				if (round % 4 == 0 || random64() % (round % 40 + 1) == 0)
					word[k] = round & 1 ? random64() :
						  random64() | KDSM_ENTRY_TOPS;
		}
		assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
		for (i = 0; i < 50; i++) {
			x = node(i);
			assert_in_range(kdsm_table_find_or_put(w, &x, &number) + 4096, 0, 4097);
			kdsm_table_read(w, random64() & KDSM_NUMBER_MASK, &x);
			number = random64() % 3000;
			kdsm_table_read(w, number, &x);
			kdsm_table_prefetch(w, &number, 1);
		}
		kdsm_table_worker_free(w);
		close_tables(&b);
	}
	way = KDSM_TABLE_ONE_SIDED;
}

static void bad_calls(void **state)
{
	struct kdsm_node zero = { 0, 0 }, x = { 1, 1 };
	struct kdsm_table_attr attr = { .argsz = sizeof(attr), .nodes = 1000 };
	struct kdsm_table_worker *w;
	struct kdsm_table *table;
	uint64_t number;
	struct bench b;

	(void)state;
	open_tables(&b, 1, 1000);
	assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
	assert_int_equal(kdsm_table_find_or_put(w, &zero, &number), -EINVAL);
	assert_int_equal(kdsm_table_find_or_put_at(w, 1, &x, &number), -EINVAL);
	assert_true(kdsm_table_read(w, 0, &x) == 0 || kdsm_table_read(w, 0, &x) < 0);
	assert_true(kdsm_table_read(w, 100000, &x) < 0);
	assert_true(kdsm_table_read(w, UINT64_MAX, &x) < 0);
	assert_int_equal(kdsm_table_open(b.region[0], 4, &attr, &table), -EINVAL);
	assert_int_equal(kdsm_table_open(b.region[0], UINT64_MAX - 63, &attr, &table), -ERANGE);
	attr.find = KDSM_TABLE_MESSAGE + 1;
	assert_int_equal(kdsm_table_open(b.region[0], 0, &attr, &table), -EINVAL);
	attr.find = KDSM_TABLE_AUTO;
	attr.nodes = 0;
	assert_int_equal(kdsm_table_open(b.region[0], 0, &attr, &table), -EINVAL);
	attr.nodes = 100000;
	assert_int_equal(kdsm_table_open(b.region[0], 0, &attr, &table), -ERANGE);
	attr.nodes = UINT64_C(1) << 60;
	assert_int_equal(kdsm_table_open(b.region[0], 0, &attr, &table), -EFBIG);
	kdsm_table_worker_free(w);
	close_tables(&b);
}

/* Calls that need a dead node fail, and local calls still work. */
static void peer_gone(void **state)
{
	struct kdsm_table_worker *w;
	unsigned int i, failed = 0;
	uint64_t number;
	struct bench b;

	(void)state;
	open_tables(&b, 2, 2000);
	assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
	sim.dead = 2;
	for (i = 0; i < 500; i++) {
		struct kdsm_node x = node(i);
		int r = kdsm_table_find_or_put(w, &x, &number);

		assert_true(r == 1 || r == -EHOSTDOWN);
		failed += r < 0;
	}
	assert_in_range(failed, 150, 350);
	kdsm_table_worker_free(w);
	close_tables(&b);
}

/* An empty slot is no node, in the own part as in others. */
static void empty_slots(void **state)
{
	struct kdsm_table_worker *w;
	struct kdsm_node x;
	struct bench b;

	(void)state;
	open_tables(&b, 2, 2000);
	assert_int_equal(kdsm_table_worker_new(b.table[0], &w), 0);
	assert_int_equal(kdsm_table_read(w, 5, &x), -EIO);
	assert_int_equal(kdsm_table_read(w, b.table[0]->slots + 5, &x), -EIO);
	kdsm_table_worker_free(w);
	close_tables(&b);
}

/* The node cache does not grow with the parts of all nodes. */
static void cache_of_many(void **state)
{
	struct bench b;
	uint64_t limit;

	(void)state;
	open_tables(&b, 8, 1 << 17);
	assert_int_equal(b.table[0]->slots, 1 << 14);
	assert_int_equal(b.table[0]->cache.mask + 1, 1 << 13);
	/* a table that may grow uses a part of the cache */
	limit = b.table[0]->limit;
	kd_table_resize(b.table[0], limit / 4);
	assert_int_equal(b.table[0]->cache.mask + 1, 1 << 11);
	kd_table_resize(b.table[0], limit);
	assert_int_equal(b.table[0]->cache.mask + 1, 1 << 13);
	close_tables(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries),
		cmocka_unit_test(one_thread),
		cmocka_unit_test(four_threads),
		cmocka_unit_test(three_nodes),
		cmocka_unit_test(load_09),
		cmocka_unit_test(load_098),
		cmocka_unit_test(full),
		cmocka_unit_test(begun_blocks),
		cmocka_unit_test(other_ways),
		cmocka_unit_test(messages),
		cmocka_unit_test(operations),
		cmocka_unit_test(hostile),
		cmocka_unit_test(bad_calls),
		cmocka_unit_test(peer_gone),
		cmocka_unit_test(empty_slots),
		cmocka_unit_test(cache_of_many),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
