// SPDX-License-Identifier: GPL-2.0
/*
 * Quantification, substitution, enumeration of assignments, and pictures, against truth
 * tables of six variables, by workers of two nodes in turn
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd.h"

#define ROUNDS	1000

static uint64_t brute_forall(uint64_t table, unsigned int n, unsigned int quantified)
{
	return ~brute_exists(~table & mask(n), n, quantified) & mask(n);
}

static kdsm_bdd of(struct fixture *f, uint64_t table)
{
	return from_table(w(f), table, plain, 6, 0, 0);
}

static void quantify(void **state)
{
	struct fixture f;
	unsigned int i;

	(void)state;
	begin(&f, 2, 0);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t x = random64() & random64(), y = random64() | random64();
		unsigned int set = random64() % 64;
		kdsm_bdd a = of(&f, x), b = of(&f, y), cube = cube_of(w(&f), plain, set);

		assert_int_equal(kdsm_bdd_exists(w(&f), a, cube), of(&f, brute_exists(x, 6, set)));
		assert_int_equal(kdsm_bdd_forall(w(&f), b, cube), of(&f, brute_forall(y, 6, set)));
		assert_int_equal(kdsm_bdd_and_exists(w(&f), a, b, cube),
				 of(&f, brute_exists(x & y, 6, set)));
		assert_int_equal(kdsm_bdd_and_exists(w(&f), a, kdsm_bdd_not(b), cube),
				 of(&f, brute_exists(x & ~y, 6, set)));
	}
	/* A function that is no cube is no set of variables. */
	assert_int_equal(kdsm_bdd_and_exists(w(&f), of(&f, 1), of(&f, 3), KDSM_BDD_FALSE),
			 KDSM_BDD_INVALID);
	for (i = 0; i < f.nodes; i++)
		kdsm_bdd_error(f.worker[i]);
	assert_int_equal(kdsm_bdd_and_exists(w(&f), of(&f, 1), KDSM_BDD_INVALID, KDSM_BDD_TRUE),
			 KDSM_BDD_INVALID);
	end(&f);
}

/* Substitute y for variable v of x. */
static uint64_t brute_compose(uint64_t x, unsigned int v, uint64_t y)
{
	uint64_t result = 0;
	unsigned int i, from;

	for (i = 0; i < 64; i++) {
		from = y >> i & 1 ? i | 1u << v : i & ~(1u << v);
		result |= (x >> from & 1) << i;
	}
	return result;
}

static void compose(void **state)
{
	struct fixture f;
	unsigned int i, v;

	(void)state;
	begin(&f, 2, 0);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t x = random64(), y = random64();

		v = random64() % 6;
		assert_int_equal(kdsm_bdd_compose(w(&f), of(&f, x), plain[v], of(&f, y)),
				 of(&f, brute_compose(x, v, y)));
		/* Substitute for a variable that x does not depend on. */
		assert_int_equal(kdsm_bdd_compose(w(&f), of(&f, x), plain[v] + 1, of(&f, y)),
				 of(&f, x));
	}
	assert_int_equal(kdsm_bdd_compose(f.worker[0], KDSM_BDD_TRUE, KDSM_BDD_MAX_VARIABLE + 1,
					  KDSM_BDD_TRUE), KDSM_BDD_INVALID);
	assert_int_equal(kdsm_bdd_error(f.worker[0]), -EINVAL);
	end(&f);
}

static void restricted(void **state)
{
	unsigned int i, v, smaller = 0, larger = 0;
	uint64_t before = 0, after = 0;
	struct fixture f;

	(void)state;
	begin(&f, 2, 0);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t x = random64(), care = random64() & random64();
		kdsm_bdd a, b, result;

		/* Make x independent of one variable. */
		x = brute_exists(x & random64(), 6, 1u << random64() % 6);
		a = of(&f, x);
		b = of(&f, care);
		result = kdsm_bdd_restrict(w(&f), a, b);
		assert_int_equal(kdsm_bdd_and(w(&f), result, b), of(&f, x & care));
		for (v = 0; v < 6; v++)
			if (brute_exists(x, 6, 1u << v) == x)
				assert_int_equal(kdsm_bdd_compose(w(&f), result, plain[v],
								  KDSM_BDD_TRUE), result);
		assert_int_equal(kdsm_bdd_count_nodes(w(&f), a, &before), 0);
		assert_int_equal(kdsm_bdd_count_nodes(w(&f), result, &after), 0);
		smaller += after < before;
		larger += after > before;
	}
	assert_true(smaller > 9 * larger);
	end(&f);
}

/* ---- assignments ---- */

struct visited {
	uint64_t table;
	unsigned int visits, most;
	bool twice;
};

static int note(void *context, const int8_t *values)
{
	struct visited *visited = context;
	uint64_t these = 0;
	unsigned int i, v;

	for (i = 0; i < 64; i++) {
		for (v = 0; v < 6; v++)
			if (values[v] >= 0 && values[v] != (int8_t)(i >> v & 1))
				break;
		if (v == 6)
			these |= UINT64_C(1) << i;
	}
	visited->twice |= (visited->table & these) != 0;
	visited->table |= these;
	return ++visited->visits == visited->most ? 77 : 0;
}

static void assignments(void **state)
{
	struct fixture f;
	unsigned int i;

	(void)state;
	begin(&f, 2, 0);
	for (i = 0; i < ROUNDS; i++) {
		uint64_t x = i < 2 ? -(uint64_t)i : random64();
		struct visited visited = { 0 };

		assert_int_equal(kdsm_bdd_cubes(w(&f), of(&f, x), plain, 6, note, &visited), 0);
		assert_true(visited.table == x && !visited.twice);
		if (x) {
			visited = (struct visited){ .most = 1 };
			assert_int_equal(kdsm_bdd_cubes(w(&f), of(&f, x), plain, 6, note,
							&visited), 77);
			assert_int_equal(visited.visits, 1);
		}
	}
	assert_int_equal(kdsm_bdd_cubes(w(&f), kdsm_bdd_variable(w(&f), 10), plain, 5, note, NULL),
			 -EINVAL);
	assert_int_equal(kdsm_bdd_cubes(w(&f), kdsm_bdd_variable(w(&f), 3), plain, 6, note, NULL),
			 -EINVAL);
	end(&f);
}

static void picture(void **state)
{
	char *text = NULL, expected[512];
	struct fixture f;
	size_t size;
	FILE *file;
	kdsm_bdd a;

	(void)state;
	begin(&f, 1, 0);
	a = kdsm_bdd_not(kdsm_bdd_variable(w(&f), 7));
	file = open_memstream(&text, &size);
	assert_non_null(file);
	assert_int_equal(kdsm_bdd_dot(w(&f), file, a), 0);
	fclose(file);
	snprintf(expected, sizeof(expected),
		 "digraph bdd {\n\troot [shape=none,label=\"\"];\n\tn0 [shape=box,label=\"0\"];\n"
		 "\troot -> n%llu [arrowhead=dot];\n\tn%llu [label=\"7\"];\n"
		 "\tn%llu -> n0 [style=solid,arrowhead=dot];\n\tn%llu -> n0 [style=dashed];\n}\n",
		 (unsigned long long)kd_number(a), (unsigned long long)kd_number(a),
		 (unsigned long long)kd_number(a), (unsigned long long)kd_number(a));
	assert_string_equal(text, expected);
	free(text);
	file = fopen("/dev/full", "w");
	assert_non_null(file);
	assert_int_equal(kdsm_bdd_dot(w(&f), file, a), -EIO);
	fclose(file);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantify),
		cmocka_unit_test(compose),
		cmocka_unit_test(restricted),
		cmocka_unit_test(assignments),
		cmocka_unit_test(picture),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd_functions", tests, NULL, NULL);
}
