// SPDX-License-Identifier: GPL-2.0
/*
 * Saved functions: the same number of nodes, and another, read what was written. A damaged
 * file is refused, or yields the functions that were written.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd.h"
#include "bdd/bdd.h"
#include "reach/internal.h"

#define ROUNDS	300

static const uint32_t spread[] = { 0, 3, 7, 999999, 1000000, KDSM_BDD_MAX_VARIABLE };

struct text {
	char *bytes;
	size_t size;
};

static int save(struct kdsm_bdd_worker *worker, const kdsm_bdd *functions,
		const kdsm_bdd *variables, unsigned int count, struct text *text)
{
	FILE *file = open_memstream(&text->bytes, &text->size);
	int ret;

	assert_non_null(file);
	ret = kdsm_bdd_save(worker, file, functions, variables, count);
	assert_int_equal(fclose(file), 0);
	return ret;
}

static int load(struct kdsm_bdd_worker *worker, const char *bytes, size_t size,
		kdsm_bdd **functions, kdsm_bdd **variables, unsigned int *count)
{
	char *copy = malloc(size + 1);	/* a sanitizer detects reads beyond its end */
	FILE *file;
	int ret;

	memcpy(copy, bytes, size);
	file = fmemopen(copy, size, "r");
	assert_non_null(file);
	ret = kdsm_bdd_load(worker, file, functions, variables, count);
	fclose(file);
	free(copy);
	return ret;
}

/* Save and load functions of six variables. The edges must be the same. */
static void round_trip(unsigned int nodes, const uint32_t *variable)
{
	kdsm_bdd functions[5], *back, *variables;
	unsigned int i, k, count, n;
	uint64_t table[5];
	struct fixture f;
	struct text text;

	begin(&f, nodes, 0);
	for (i = 0; i < ROUNDS; i++) {
		n = 1 + random64() % 5;
		for (k = 0; k < n; k++) {
			table[k] = random64() % 8 ? random64() : random64() % 2 ? 0 : UINT64_MAX;
			functions[k] = from_table(w(&f), table[k], variable, 6, 0, 0);
		}
		assert_int_equal(save(w(&f), functions, NULL, n, &text), 0);
		assert_int_equal(load(w(&f), text.bytes, text.size, &back, &variables, &count), 0);
		assert_int_equal(count, n);
		for (k = 0; k < n; k++)
			assert_int_equal(back[k], functions[k]);
		free(back);
		free(variables);
		free(text.bytes);
	}
	end(&f);
}

static void round_trips(void **state)
{
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= 3; nodes++) {
		round_trip(nodes, plain);
		round_trip(nodes, spread);
	}
}

/*
 * One of three nodes saves functions whose nodes are mostly on the other two. A single node
 * loads them.
 */
static void elsewhere(void **state)
{
	kdsm_bdd functions[64], *back;
	uint64_t table[64], before;
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	unsigned int i, count;
	struct fixture f;
	struct text text;

	(void)state;
	begin(&f, 3, 0);
	for (i = 0; i < 64; i++) {
		table[i] = random64();
		functions[i] = from_table(f.worker[1 + i % 2], table[i], plain, 6, 0, 0);
	}
	kdsm_counts(sim.kdsm[0], &counts);
	before = counts.get;
	assert_int_equal(save(f.worker[0], functions, NULL, 64, &text), 0);
	/* The save does not fetch nodes one by one: the functions have more than 600 nodes. */
	kdsm_counts(sim.kdsm[0], &counts);
	assert_in_range(counts.get - before, 2, 100);
	end(&f);

	begin(&f, 1, 0);
	assert_int_equal(load(w(&f), text.bytes, text.size, &back, NULL, &count), 0);
	assert_int_equal(count, 64);
	for (i = 0; i < 64; i++)
		assert_int_equal(back[i], from_table(w(&f), table[i], plain, 6, 0, 0));
	free(back);
	free(text.bytes);
	end(&f);
}

/*
 * An initial state and a relation, each with its variables, form a model, which
 * kd_model_read_bdd() reads.
 */
static void model(void **state)
{
	static const uint32_t current[] = { 0, 2 }, both[] = { 0, 1 };
	kdsm_bdd functions[2], variables[2], *back, *back_variables;
	struct kdsm_bdd_worker *worker;
	struct kdsm_reach_message message;
	struct kd_model read;
	unsigned int count;
	struct fixture f;
	struct text text;

	(void)state;
	begin(&f, 2, 0);
	worker = f.worker[1];
	/* initial state: both bits are 0; relation: bit 0 becomes 1 */
	functions[0] = kdsm_bdd_and(worker, kdsm_bdd_not(kdsm_bdd_variable(worker, 0)),
				    kdsm_bdd_not(kdsm_bdd_variable(worker, 2)));
	functions[1] = kdsm_bdd_and(worker, kdsm_bdd_not(kdsm_bdd_variable(worker, 0)),
				    kdsm_bdd_variable(worker, 1));
	variables[0] = kdsm_bdd_cube(worker, current, 2);
	variables[1] = kdsm_bdd_cube(worker, both, 2);
	assert_int_equal(save(f.worker[0], functions, variables, 2, &text), 0);
	assert_int_equal(load(worker, text.bytes, text.size, &back, &back_variables, &count), 0);
	assert_int_equal(count, 2);
	assert_memory_equal(back, functions, sizeof(functions));
	assert_memory_equal(back_variables, variables, sizeof(variables));
	free(back);
	free(back_variables);

	memset(&read, 0, sizeof(read));
	kdsm_bdd_private(worker, 1);
	assert_int_equal(kd_model_read_bdd(worker, "FILE", (unsigned char *)text.bytes, text.size,
					   &read, &message), 0);
	kdsm_bdd_private(worker, 0);
	assert_int_equal(read.bits, 2);
	assert_int_equal(read.relations, 1);
	assert_int_equal(kdsm_bdd_publish(worker, read.initial), functions[0]);
	assert_int_equal(kdsm_bdd_successors(worker, functions[0], read.relation[0]),
			 kdsm_bdd_and(worker, kdsm_bdd_variable(worker, 0),
				      kdsm_bdd_not(kdsm_bdd_variable(worker, 2))));
	kd_model_free(&read);
	free(text.bytes);
	end(&f);
}

/* The load fails with -EINVAL, or returns the functions that were saved. */
static void refused_or_same(struct fixture *f, const struct text *text, size_t size,
			    const kdsm_bdd *functions, unsigned int n)
{
	unsigned int count;
	kdsm_bdd *back;
	int ret;

	ret = load(f->worker[0], text->bytes, size, &back, NULL, &count);
	if (ret) {
		assert_int_equal(ret, -EINVAL);
		return;
	}
	assert_int_equal(count, n);
	assert_memory_equal(back, functions, n * sizeof(*functions));
	free(back);
}

/* Truncate the file at every byte, and flip every bit. */
static void damaged(void **state)
{
	unsigned int i, same = 0, count;
	kdsm_bdd functions[3], *back;
	struct fixture f;
	struct text text;
	size_t at;

	(void)state;
	begin(&f, 1, 0);
	for (i = 0; i < 3; i++)
		functions[i] = from_table(w(&f), random64(), plain, 6, 0, 0);
	assert_int_equal(save(w(&f), functions, NULL, 3, &text), 0);
	for (at = 0; at < text.size; at++) {
		refused_or_same(&f, &text, at, functions, 3);
		if (load(w(&f), text.bytes, at, &back, NULL, &count) == 0) {
			same++;
			free(back);
		}
	}
	/*
	 * A truncated file loads only if at most a part of the trailer's magic is left of
	 * the trailer.
	 */
	assert_int_equal(same, 8);
	for (at = 0; at < 8 * text.size; at++) {
		text.bytes[at / 8] ^= 1 << at % 8;
		refused_or_same(&f, &text, text.size, functions, 3);
		text.bytes[at / 8] ^= 1 << at % 8;
	}
	free(text.bytes);
	end(&f);
}

/*
 * Change one to eight bytes of a file without a checksum, so that the other checks see the
 * changes.
 */
static void mutated(void **state)
{
	kdsm_bdd functions[3], *back;
	unsigned int i, k, count, read = 0;
	struct text text, copy;
	struct fixture f;
	size_t size;

	(void)state;
	begin(&f, 1, 0);
	for (i = 0; i < 3; i++)
		functions[i] = from_table(w(&f), random64(), plain, 6, 0, 0);
	assert_int_equal(save(w(&f), functions, NULL, 3, &text), 0);
	size = text.size - 24;
	copy.bytes = malloc(size);
	for (i = 0; i < 20000; i++) {
		memcpy(copy.bytes, text.bytes, size);
		for (k = 1 + random64() % 8; k--; )
			copy.bytes[random64() % size] = random64() % 3 ? random64() :
				random64() % 4;
		if (load(w(&f), copy.bytes, size, &back, NULL, &count) == 0) {
			read++;
			for (k = 0; k < count; k++)
				assert_int_equal(kdsm_bdd_xor(w(&f), back[k], back[k]),
						 KDSM_BDD_FALSE);
			free(back);
		}
	}
	assert_in_range(read, 1, 19999);
	free(copy.bytes);
	free(text.bytes);
	end(&f);
}

static void errors(void **state)
{
	kdsm_bdd one[] = { KDSM_BDD_TRUE }, none[] = { KDSM_BDD_INVALID }, *back;
	unsigned int count;
	struct fixture f;
	struct text text;
	FILE *full;

	(void)state;
	begin(&f, 1, 0);
	assert_int_equal(save(w(&f), one, NULL, 0, &text), -EINVAL);
	free(text.bytes);
	assert_int_equal(save(w(&f), none, NULL, 1, &text), -EINVAL);
	free(text.bytes);
	assert_int_equal(save(w(&f), one, none, 1, &text), -EINVAL);
	free(text.bytes);
	full = fopen("/dev/full", "w");
	assert_non_null(full);
	assert_int_equal(kdsm_bdd_save(w(&f), full, one, NULL, 1), -ENOSPC);
	fclose(full);
	full = fopen("/tmp", "r");
	assert_non_null(full);
	assert_int_equal(kdsm_bdd_load(w(&f), full, &back, NULL, &count), -EIO);
	fclose(full);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(model),
		cmocka_unit_test(damaged),
		cmocka_unit_test(mutated),
		cmocka_unit_test(errors),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd_file", tests, NULL, NULL);
}
