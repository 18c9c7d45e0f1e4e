// SPDX-License-Identifier: GPL-2.0
/*
 * BDD operations against truth tables, on one node and on three. Each operation runs on a
 * worker of the next node. Equal results must be equal edges.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd.h"

static void binary(struct fixture *f, unsigned int n, uint64_t x, uint64_t y)
{
	kdsm_bdd a = from_table(w(f), x, plain, n, 0, 0);
	kdsm_bdd b = from_table(w(f), y, plain, n, 0, 0);

	assert_int_equal(kdsm_bdd_not(a), from_table(w(f), ~x & mask(n), plain, n, 0, 0));
	assert_int_equal(kdsm_bdd_and(w(f), a, b), from_table(w(f), x & y, plain, n, 0, 0));
	assert_int_equal(kdsm_bdd_or(w(f), a, b), from_table(w(f), x | y, plain, n, 0, 0));
	assert_int_equal(kdsm_bdd_xor(w(f), a, b), from_table(w(f), x ^ y, plain, n, 0, 0));
}

/* All pairs of functions of three variables */
static void exhaustive(void **state)
{
	struct fixture f;
	unsigned int x, y;

	(void)state;
	begin(&f, 1, 0);
	for (x = 0; x < 256; x++)
		for (y = 0; y < 256; y++)
			binary(&f, 3, x, y);
	end(&f);
}

static void random_functions(unsigned int nodes, unsigned int rounds)
{
	struct fixture f;
	unsigned int i;

	begin(&f, nodes, 0);
	for (i = 0; i < rounds; i++) {
		uint64_t x = random64(), y = random64(), z = random64();
		kdsm_bdd a, b, c;

		binary(&f, 6, x, y);
		a = from_table(w(&f), x, plain, 6, 0, 0);
		b = from_table(w(&f), y, plain, 6, 0, 0);
		c = from_table(w(&f), z, plain, 6, 0, 0);
		assert_int_equal(kdsm_bdd_ite(w(&f), a, b, c),
				 from_table(w(&f), (x & y) | (~x & z), plain, 6, 0, 0));
		assert_int_equal(kdsm_bdd_ite(w(&f), a, b, kdsm_bdd_not(b)),
				 from_table(w(&f), ~(x ^ y), plain, 6, 0, 0));
		assert_int_equal(kdsm_bdd_ite(w(&f), a, kdsm_bdd_not(a), c),
				 from_table(w(&f), ~x & z, plain, 6, 0, 0));
	}
	end(&f);
}

static void random_local(void **state)
{
	(void)state;
	random_functions(1, 2000);
}

static void random_three_nodes(void **state)
{
	(void)state;
	random_functions(3, 300);
}

static void counts(void **state)
{
	struct fixture f;
	unsigned int i, v, n;
	mpz_t count;

	(void)state;
	mpz_init(count);
	begin(&f, 2, 0);
	for (i = 0; i < 1000; i++) {
		uint64_t x = i < 2 ? -(uint64_t)i : random64() & random64();
		uint64_t nodes = 0;
		kdsm_bdd a = from_table(w(&f), x, plain, 6, 0, 0);
		unsigned int set = 0;

		assert_int_equal(kdsm_bdd_count_states(w(&f), a, plain, 6, count), 0);
		assert_int_equal(mpz_get_ui(count), __builtin_popcountll(x));
		for (v = 0; v < 6; v++)
			if (brute_exists(x, 6, 1u << v) != x)
				set |= 1u << v;
		assert_int_equal(kdsm_bdd_support(w(&f), a), cube_of(w(&f), plain, set));
		assert_int_equal(kdsm_bdd_count_nodes(w(&f), a, &nodes), 0);
		assert_in_range(nodes, __builtin_popcount(set), 40);
		for (n = 0; n < 64; n++) {
			uint8_t values[11] = { 0 };

			for (v = 0; v < 6; v++)
				values[2 * v] = n >> v & 1;
			assert_int_equal(kdsm_bdd_evaluate(w(&f), a, values, 11), x >> n & 1);
		}
	}
	/* larger than a machine word: all assignments of 200 variables but one */
	{
		uint32_t many[200];
		kdsm_bdd all;

		for (i = 0; i < 200; i++)
			many[i] = i;
		all = kdsm_bdd_not(kdsm_bdd_cube(w(&f), many, 200));
		assert_int_equal(kdsm_bdd_count_states(w(&f), all, many, 200, count), 0);
		mpz_add_ui(count, count, 1);
		assert_int_equal(mpz_sizeinbase(count, 2), 201);
		assert_int_equal(mpz_scan1(count, 0), 200);
		assert_int_equal(kdsm_bdd_count_states(w(&f), all, many, 100, count), -EINVAL);
	}
	end(&f);
	mpz_clear(count);
}

/*
 * Successors by brute force. States have three bits. The truth table of the relation is
 * over the current bits 0 1 2 and the next bits 3 4 5. Bits outside set keep their values.
 */
static unsigned int brute_successors(unsigned int states, uint64_t relation,
				     unsigned int set)
{
	unsigned int s, t, result = 0;

	for (s = 0; s < 8; s++)
		for (t = 0; t < 8; t++)
			if (states >> s & 1 && relation >> (s | t << 3) & 1 &&
			    (s & ~set) == (t & ~set))
				result |= 1u << t;
	return result;
}

static unsigned int brute_predecessors(unsigned int states, uint64_t relation,
				       unsigned int set)
{
	unsigned int s, result = 0;

	for (s = 0; s < 8; s++)
		if (brute_successors(1u << s, relation, set) & states)
			result |= 1u << s;
	return result;
}

/* Interleaved order: bit v of an index is bit order[v] of the brute-force index. */
static const unsigned int order[] = { 0, 3, 1, 4, 2, 5 };

static uint64_t interleave(uint64_t relation)
{
	uint64_t result = 0;
	unsigned int i, v;

	for (i = 0; i < 64; i++) {
		unsigned int from = 0;

		for (v = 0; v < 6; v++)
			from |= (i >> v & 1) << order[v];
		result |= (relation >> from & 1) << i;
	}
	return result;
}

static void one_relation(struct fixture *f, unsigned int set, bool labels)
{
	static const uint32_t all[] = { 0, 1, 2, 3, 4, 5 };
	static const uint32_t current[] = { 0, 2, 4 };
	unsigned int pairs = (set & 1) * 3 | (set & 2) * 6 | (set & 4) * 12;
	unsigned int outside = ~(set | set << 3) & 63, states, i;
	/* the relation does not depend on bits outside the set */
	uint64_t x = random64() & random64(), y = random64() & random64();
	struct kdsm_relation *relation[SIM_NODES];

	x = brute_exists(x, 6, outside);
	y = labels ? brute_exists(y, 6, outside) : x;
	for (i = 0; i < f->nodes; i++) {
		struct kdsm_bdd_worker *worker = f->worker[i];
		kdsm_bdd a, b, r, variables;

		kdsm_bdd_private(worker, 1);
		a = from_table(worker, interleave(x), all, 6, 0, 0);
		b = from_table(worker, interleave(y), all, 6, 0, 0);
		r = kdsm_bdd_ite(worker, kdsm_bdd_variable(worker, 1000003), a, b);
		/* the set is the support of any function */
		variables = kdsm_bdd_not(cube_of(worker, all, pairs));
		assert_int_equal(kdsm_relation_new(worker, r, variables, 1000000,
						   &relation[i]), 0);
		kdsm_bdd_private(worker, 0);
	}
	for (states = 0; states < 256; states += 1 + random64() % 16) {
		unsigned int expected = brute_successors(states, x | y, set);
		kdsm_bdd a = from_table(w(f), states, current, 3, 0, 0);
		unsigned int node = random64() % f->nodes;

		assert_int_equal(kdsm_bdd_successors(f->worker[node], a, relation[node]),
				 from_table(w(f), expected, current, 3, 0, 0));
		expected = brute_predecessors(states, x | y, set);
		assert_int_equal(kdsm_bdd_predecessors(f->worker[node], a, relation[node]),
				 from_table(w(f), expected, current, 3, 0, 0));
	}
	for (i = 0; i < f->nodes; i++)
		kdsm_relation_free(relation[i]);
}

static void relations(unsigned int nodes, unsigned int granularity, unsigned int rounds)
{
	struct fixture f;
	unsigned int i;

	begin(&f, nodes, granularity);
	for (i = 0; i < rounds; i++)
		one_relation(&f, i % 8, i & 8);
	for (i = 1; i < nodes; i++)
		assert_int_equal(kdsm_bdd_private_digest(f.store[i]),
				 kdsm_bdd_private_digest(f.store[0]));
	end(&f);
}

static void relations_local(void **state)
{
	(void)state;
	relations(1, 0, 800);
}

static void relations_three_nodes(void **state)
{
	(void)state;
	relations(3, 0, 160);
	relations(3, 1, 160);	/* results shared at every variable */
	relations(2, 2, 160);
}

/* A bit of which only the current variable is in the set may be read, and keeps its value. */
static void read_only_bit(void **state)
{
	static const uint32_t current[] = { 0, 2 }, set[] = { 0, 2, 3 };
	struct kdsm_relation *relation, *bad;
	struct kdsm_bdd_worker *worker;
	kdsm_bdd r, v, a, expected;
	struct fixture f;

	(void)state;
	begin(&f, 1, 0);
	worker = f.worker[0];
	kdsm_bdd_private(worker, 1);
	r = kdsm_bdd_and(worker, kdsm_bdd_variable(worker, 0), kdsm_bdd_variable(worker, 3));
	v = kdsm_bdd_cube(worker, set, 3);
	assert_int_equal(kdsm_relation_new(worker, r, v, 1000000, &relation), 0);
	v = kdsm_bdd_variable(worker, 3);
	assert_int_equal(kdsm_relation_new(worker, r, v, 1000000, &bad), -EINVAL);
	kdsm_bdd_private(worker, 0);
	a = kdsm_bdd_not(kdsm_bdd_variable(worker, 2));
	expected = kdsm_bdd_cube(worker, current, 2);
	assert_int_equal(kdsm_bdd_successors(worker, a, relation), expected);
	kdsm_relation_free(relation);
	end(&f);
}

static void errors(void **state)
{
	struct kdsm_bdd_worker *worker;
	struct kdsm_node *data;
	struct fixture f;
	kdsm_bdd a, b, bad = KDSM_BDD_INVALID;
	const uint8_t values[8] = { 0 };
	uint64_t count, i;
	mpz_t states;

	(void)state;
	begin(&f, 1, 0);
	worker = f.worker[0];
	a = kdsm_bdd_variable(worker, 4);
	b = kdsm_bdd_variable(worker, 6);
	assert_int_equal(kdsm_bdd_make(worker, 5, a, b), bad);
	assert_int_equal(kdsm_bdd_error(worker), -EINVAL);
	assert_int_equal(kdsm_bdd_error(worker), 0);
	assert_int_equal(kdsm_bdd_variable(worker, KDSM_BDD_MAX_VARIABLE + 1), bad);
	assert_int_equal(kdsm_bdd_error(worker), -EINVAL);
	assert_int_equal(kdsm_bdd_and(worker, a, bad), bad);
	assert_int_equal(kdsm_bdd_ite(worker, a, bad, b), bad);
	assert_int_equal(kdsm_bdd_not(bad), bad);
	assert_int_equal(kdsm_bdd_error(worker), 0);
	/* an edge to no node */
	assert_int_equal(kdsm_bdd_and(worker, a, 123456789), bad);
	assert_int_equal(kdsm_bdd_error(worker), -EIO);
	/* a call that returns its error does not change the stored error of operations */
	assert_int_equal(kdsm_bdd_variable(worker, KDSM_BDD_MAX_VARIABLE + 1), bad);
	assert_int_equal(kdsm_bdd_count_nodes(worker, 123456789, &count), -EIO);
	assert_int_equal(kdsm_bdd_error(worker), -EINVAL);
	assert_int_equal(kdsm_bdd_count_nodes(worker, 123456789, &count), -EIO);
	assert_int_equal(kdsm_bdd_error(worker), 0);
	/* a node that is its own child must not cause an endless recursion */
	data = f.store[0]->table->data;
	i = kd_number(a);
	data[i].a = i;
	data[i].b = i | UINT64_C(4) << KDSM_NUMBER_BITS;
	assert_int_equal(kdsm_bdd_and(worker, a, b), bad);
	assert_int_equal(kdsm_bdd_error(worker), -EIO);
	assert_int_equal(kdsm_bdd_exists(worker, a, kdsm_bdd_variable(worker, 8)), bad);
	assert_int_equal(kdsm_bdd_error(worker), -EIO);
	assert_int_equal(kdsm_bdd_count_nodes(worker, a, &count), 0);
	mpz_init(states);
	assert_int_equal(kdsm_bdd_count_states(worker, a, plain, 6, states), -EIO);
	mpz_clear(states);
	assert_int_equal(kdsm_bdd_evaluate(worker, a, values, 8), -EIO);
	end(&f);
}

#define VOTERS	600

/* At least so many of the voters' variables, which are 0, 3, 6 and so on, are true. */
static kdsm_bdd at_least(struct kdsm_bdd_worker *worker, unsigned int votes)
{
	kdsm_bdd *more = calloc(votes + 1, sizeof(*more)), result;
	unsigned int v, n;

	assert_non_null(more);
	more[0] = KDSM_BDD_TRUE;	/* more[n]: at least n of the variables from v on */
	for (n = 1; n <= votes; n++)
		more[n] = KDSM_BDD_FALSE;
	for (v = VOTERS; v--; )
		for (n = votes; n; n--)
			more[n] = kdsm_bdd_make(worker, 3 * v, more[n - 1], more[n]);
	result = more[votes];
	free(more);
	return result;
}

/* Memory of GMP's numbers, in bytes */
static size_t gmp_bytes, most_gmp_bytes;

static void *gmp_resize(void *old, size_t size, size_t new_size)
{
	void *p = realloc(old, new_size);

	assert_non_null(p);
	gmp_bytes += new_size - size;
	if (most_gmp_bytes < gmp_bytes)
		most_gmp_bytes = gmp_bytes;
	return p;
}

static void *gmp_take(size_t size)
{
	return gmp_resize(NULL, 0, size);
}

static void gmp_drop(void *p, size_t size)
{
	gmp_bytes -= size;
	free(p);
}

/*
 * Counts of several hundred bits, with and without a bound that is far below the number of all
 * assignments. GMP, which aborts the process where there is no memory, gets little, however many
 * nodes there are.
 */
static void large_counts(void **state)
{
	static const unsigned int votes[] = { 1, 2, 60, 300, 540, 599, 600 };
	uint32_t variables[VOTERS + 1000];
	mpz_t count, right, one;
	struct fixture f;
	unsigned int i, n, more;
	kdsm_bdd a;

	(void)state;
	mp_set_memory_functions(gmp_take, gmp_resize, gmp_drop);
	mpz_inits(count, right, one, NULL);
	for (i = 0; i < VOTERS + 1000; i++)
		variables[i] = 3 * i;
	begin(&f, 1, 0);
	for (i = 0; i < sizeof(votes) / sizeof(votes[0]); i++) {
		a = at_least(w(&f), votes[i]);
		assert_int_not_equal(a, KDSM_BDD_INVALID);
		mpz_set_ui(right, 0);
		for (n = votes[i]; n <= VOTERS; n++) {
			mpz_bin_uiui(one, VOTERS, n);
			mpz_add(right, right, one);
		}
		most_gmp_bytes = 0;
		for (more = 0; more <= 1000; more += 500) {
			assert_int_equal(kdsm_bdd_count_states(w(&f), a, variables, VOTERS + more,
							       count), 0);
			mpz_fdiv_q_2exp(one, count, more);
			assert_int_equal(mpz_cmp(one, right), 0);
			mpz_mul_2exp(one, one, more);
			assert_int_equal(mpz_cmp(one, count), 0);
		}
		assert_int_equal(kdsm_bdd_count_states(w(&f), kdsm_bdd_not(a), variables, VOTERS,
						       count), 0);
		mpz_add(count, count, right);
		assert_int_equal(mpz_sizeinbase(count, 2), VOTERS + 1);
		assert_int_equal(mpz_scan1(count, 0), VOTERS);
		assert_in_range(most_gmp_bytes, 1, 1 << 14);
	}
	end(&f);
	mpz_clears(count, right, one, NULL);
	mp_set_memory_functions(NULL, NULL, NULL);
}

/* Four workers of two nodes build the same functions in different orders. */
struct builder {
	pthread_t thread;
	struct kdsm_bdd_store *store;
	unsigned int seed;
	kdsm_bdd result[200];
};

static void *build(void *data)
{
	struct builder *b = data;
	struct kdsm_bdd_worker *worker;
	unsigned int i, v, k;

	kdsm_bdd_worker_new(b->store, &worker);
	for (i = 0; i < 200; i++) {
		unsigned int f = (i * 37 + b->seed * 50) % 200;
		kdsm_bdd sum = KDSM_BDD_FALSE;

		for (k = 0; k < 8; k++) {
			kdsm_bdd term = KDSM_BDD_TRUE;

			for (v = 0; v < 24; v++) {
				unsigned int bits = (f * 8 + k + 1) * 2654435761u >> (v % 28);
				kdsm_bdd x = kdsm_bdd_variable(worker, v);

				if (bits & 1)
					term = kdsm_bdd_and(worker, term,
							    bits & 2 ? x : kdsm_bdd_not(x));
			}
			sum = kdsm_bdd_xor(worker, sum, term);
		}
		b->result[f] = sum;
	}
	kdsm_bdd_worker_free(worker);
	return NULL;
}

static void threads(void **state)
{
	static struct builder b[4];
	struct fixture f;
	unsigned int i, k;

	(void)state;
	begin(&f, 2, 1);
	for (i = 0; i < 4; i++) {
		b[i].store = f.store[i % 2];
		b[i].seed = i;
		assert_int_equal(pthread_create(&b[i].thread, NULL, build, &b[i]), 0);
	}
	for (i = 0; i < 4; i++)
		pthread_join(b[i].thread, NULL);
	for (k = 0; k < 200; k++) {
		assert_int_not_equal(b[0].result[k], KDSM_BDD_INVALID);
		for (i = 1; i < 4; i++)
			assert_int_equal(b[i].result[k], b[0].result[k]);
	}
	end(&f);
}

/* The operation cache ignores torn entries and entries of other keys. */
static void cache(void **state)
{
	struct kd_opcache *c;
	struct fixture f;
	uint64_t i, value;

	(void)state;
	begin(&f, 2, 0);
	c = f.worker[0]->cache;
	for (i = 0; i < 5000; i++) {
		struct kd_key key = kd_key(1 + i % 5, random64() & KD_EDGE,
					   random64() & KD_EDGE, random64() & KD_EDGE);
		uint64_t result = random64() & KD_EDGE;
		uint8_t *bytes;

		kd_opcache_put(c, &key, result);
		assert_true(kd_opcache_get(c, &key, &value));
		assert_int_equal(value, result);
		assert_int_equal(kd_opcache_put_home(c, &key, result), 0);
		assert_int_equal(kd_opcache_get_home(c, &key, &value), 1);
		assert_int_equal(value, result);
		bytes = (uint8_t *)kd_opcache_own(c, &key);
		bytes[random64() % sizeof(struct kd_result)] ^= 1 + random64() % 255;
		assert_false(kd_opcache_get(c, &key, &value));
	}
	/* every bit of the three edges is a bit of the key */
	for (i = 0; i < 123; i++) {
		uint64_t bit = UINT64_C(1) << (i % 41 == 40 ? 63 : i % 41);
		struct kd_key one = kd_key(1, 0, 0, 0);
		struct kd_key other = kd_key(1, i / 41 == 0 ? bit : 0, i / 41 == 1 ? bit : 0,
					     i / 41 == 2 ? bit : 0);

		assert_true(one.key0 != other.key0 || one.key1 != other.key1);
		assert_int_equal(__builtin_popcountll(one.key0 ^ other.key0) +
				 __builtin_popcountll(one.key1 ^ other.key1), 1);
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exhaustive),
		cmocka_unit_test(random_local),
		cmocka_unit_test(random_three_nodes),
		cmocka_unit_test(counts),
		cmocka_unit_test(large_counts),
		cmocka_unit_test(relations_local),
		cmocka_unit_test(relations_three_nodes),
		cmocka_unit_test(read_only_bit),
		cmocka_unit_test(errors),
		cmocka_unit_test(threads),
		cmocka_unit_test(cache),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd", tests, NULL, NULL);
}
