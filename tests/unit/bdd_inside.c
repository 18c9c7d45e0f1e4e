// SPDX-License-Identifier: GPL-2.0
/*
 * BDD operations in tasks of a user, on any worker that runs the task: the same results as
 * outside of tasks, on every number of nodes and workers. bdd_inside_errors.c tests the
 * errors.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bdd_pools.h"
#include "task/internal.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS	2
#define DEPTH	4
#else
#define ROUNDS	8
#define DEPTH	6
#endif

#define FIRST_ACTION	1000000
#define COUNTER		6	/* bits of the counter */

/* All nodes share this process, so tasks reach the stores and relations of their node here. */
static struct pools pools;

static struct kdsm_relation *relations[SIM_NODES];

static struct kdsm_relation *relation_of(const struct kdsm_bdd_worker *w)
{
	unsigned int i;

	for (i = 0; pools.store[i] != w->store; i++)
		;
	return relations[i];
}

/* ---- every operation ---- */

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

struct visits {
	struct kdsm_bdd_worker *worker;
	unsigned int count;
	kdsm_bdd all;
};

/* A callback that calls operations */
static int visit(void *context, const int8_t *values)
{
	struct visits *v = context;
	kdsm_bdd cube = KDSM_BDD_TRUE;
	unsigned int i;

	for (i = QUEENS; i--; )
		if (values[i] >= 0)
			cube = kd_literal(v->worker, i, values[i], cube);
	v->all = kdsm_bdd_xor(v->worker, v->all, cube);
	v->count++;
	return 0;
}

/* Operations that run no tasks themselves. Slow ones get the first row of the board only. */
static uint64_t look_at(struct kdsm_bdd_worker *w, kdsm_bdd a, uint64_t sum)
{
	kdsm_bdd row = queens(w, 1), high, low, *loaded = NULL;
	struct visits visits = { w, 0, KDSM_BDD_FALSE };
	uint32_t variables[FIELDS], variable;
	uint8_t values[FIELDS] = { 0 };
	unsigned int i, count;
	char *text = NULL;
	uint64_t nodes;
	mpz_t states;
	size_t size;
	FILE *file;

	for (i = 0; i < FIELDS; i++)
		variables[i] = i;
	sum = mix(sum, kdsm_bdd_support(w, a));
	sum = mix(sum, kdsm_bdd_look(w, a, &variable, &high, &low) ? 0 : variable);
	sum = mix(mix(sum, high), low);
	sum = mix(sum, kdsm_bdd_evaluate(w, a, values, FIELDS));
	sum = mix(sum, kdsm_bdd_count_nodes(w, a, &nodes) ? 0 : nodes);
	mpz_init(states);
	sum = mix(sum, kdsm_bdd_count_states(w, a, variables, FIELDS, states) ? 0 :
		  mpz_get_ui(states));
	mpz_clear(states);

	sum = mix(sum, kdsm_bdd_cubes(w, row, variables, QUEENS, visit, &visits));
	sum = mix(sum, visits.all == row && visits.count == QUEENS);

	file = open_memstream(&text, &size);
	sum = mix(sum, kdsm_bdd_save(w, file, &a, NULL, 1));
	fclose(file);
	file = fmemopen(text, size, "r");
	sum = mix(sum, kdsm_bdd_load(w, file, &loaded, NULL, &count) || *loaded != a);
	fclose(file);
	free(text);
	free(loaded);
	return sum;
}

static kdsm_bdd reach(struct kdsm_bdd_worker *w, bool back, unsigned int *steps)
{
	const struct kdsm_relation *relation = relation_of(w);
	kdsm_bdd all = KDSM_BDD_TRUE, before;
	unsigned int i;

	for (i = COUNTER; i--; )
		all = kd_literal(w, 2 * i, false, all);
	*steps = 0;
	do {
		before = all;
		all = kdsm_bdd_or(w, all, back ? kdsm_bdd_predecessors(w, all, relation) :
						 kdsm_bdd_successors(w, all, relation));
		++*steps;
	} while (all != before && all != KDSM_BDD_INVALID);
	return all;
}

static uint64_t all_of_it(struct kdsm_bdd_worker *w, unsigned int round)
{
	kdsm_bdd result[RESULTS];
	unsigned int i, steps;
	uint64_t sum = round;

	operate(w, round, result);
	for (i = 0; i < RESULTS; i++)
		sum = mix(sum, result[i]);
	sum = mix(sum, reach(w, round % 2, &steps));
	sum = mix(sum, steps);
	sum = look_at(w, result[1], sum);
	return mix(sum, kdsm_bdd_error(w));
}

KDSM_TASK(uint64_t, in_task, unsigned int, from, unsigned int, to)
{
	unsigned int middle = from + (to - from) / 2;
	uint64_t sum;

	if (to - from == 1) {
		KDSM_BDD_WORKER(w);

		return all_of_it(w, from);
	}
	KDSM_SPAWN(in_task, middle, to);
	sum = KDSM_CALL(in_task, from, middle);
	return sum + KDSM_SYNC(in_task);
}

/* Build the relation of a counter on every node. */
static void make_relations(void)
{
	uint32_t set[2 * COUNTER];
	struct kdsm_bdd_worker *w;
	kdsm_bdd carry, relation;
	unsigned int i, k;

	for (i = 0; i < 2 * COUNTER; i++)
		set[i] = i;
	for (i = 0; i < pools.nodes; i++) {
		w = pools.plain[i];
		kdsm_bdd_private(w, 1);
		carry = KDSM_BDD_TRUE;
		relation = KDSM_BDD_TRUE;
		for (k = 0; k < COUNTER; k++) {
			kdsm_bdd x = kdsm_bdd_variable(w, 2 * k);
			kdsm_bdd y = kdsm_bdd_variable(w, 2 * k + 1);
			kdsm_bdd next = kdsm_bdd_xor(w, x, carry);

			relation = kdsm_bdd_and(w, relation,
						kdsm_bdd_not(kdsm_bdd_xor(w, y, next)));
			carry = kdsm_bdd_and(w, carry, x);
		}
		assert_int_equal(kdsm_relation_new(w, relation,
						   kdsm_bdd_cube(w, set, 2 * COUNTER),
						   FIRST_ACTION, &relations[i]), 0);
		kdsm_bdd_private(w, 0);
	}
}

static void begin_pools(unsigned int nodes, unsigned int workers)
{
	open_pools(&pools, nodes, workers, 16 << 20);
	make_relations();
}

static void end_pools(void)
{
	unsigned int i;

	for (i = 0; i < pools.nodes; i++)
		kdsm_relation_free(relations[i]);
	close_pools(&pools);
}

/* ---- between spawns and syncs ---- */

static kdsm_bdd some(struct kdsm_bdd_worker *w, uint32_t seed)
{
	kdsm_bdd a = kdsm_bdd_variable(w, mix(1, seed) % 12), b, c;

	b = kdsm_bdd_variable(w, mix(2, seed) % 12);
	c = kdsm_bdd_variable(w, mix(3, seed) % 12);
	return kdsm_bdd_xor(w, kdsm_bdd_and(w, a, b), kdsm_bdd_or(w, kdsm_bdd_not(b), c));
}

/* Computes the same function as the task mixed() below. */
static kdsm_bdd plain_mixed(struct kdsm_bdd_worker *w, unsigned int depth, uint32_t seed)
{
	kdsm_bdd a = some(w, seed), b, c, d;

	if (!depth)
		return a;
	d = plain_mixed(w, depth - 1, 4 * seed + 1);
	b = plain_mixed(w, depth - 1, 4 * seed + 2);
	c = plain_mixed(w, depth - 1, 4 * seed + 3);
	return kdsm_bdd_xor(w, a, kdsm_bdd_ite(w, b, c, d));
}

/*
 * Operations with no, one and two children spawned, before and after nested tasks used the
 * same workers
 */
KDSM_TASK(kdsm_bdd, mixed, unsigned int, depth, uint32_t, seed)
{
	KDSM_BDD_WORKER(w);
	kdsm_bdd a, b, c, d, same;

	a = some(w, seed);
	if (!depth)
		return a;
	KDSM_SPAWN(mixed, depth - 1, 4 * seed + 1);
	same = some(w, seed);
	KDSM_SPAWN(mixed, depth - 1, 4 * seed + 2);
	same = kdsm_bdd_and(w, same, some(w, seed));
	c = KDSM_CALL(mixed, depth - 1, 4 * seed + 3);
	{
		KDSM_BDD_WORKER(again);

		same = kdsm_bdd_ite(again, same, some(again, seed), same);
	}
	KDSM_SPAWN(mixed, depth - 1, 4 * seed);
	KDSM_DROP();
	same = kdsm_bdd_and(w, same, some(w, seed));
	b = KDSM_SYNC(mixed);
	same = kdsm_bdd_or(w, same, some(w, seed));
	/* Results of syncs are operands, in any order of evaluation. */
	d = kdsm_bdd_ite(w, b, kdsm_bdd_and(w, c, c), KDSM_SYNC(mixed));
	if (same != a || some(w, seed) != a || kdsm_bdd_error(w))
		return KDSM_BDD_INVALID;
	return kdsm_bdd_xor(w, a, d);
}

static bool enough_moved(unsigned int workers)
{
	uint64_t far, all = moved(&pools, &far);

	return (all || pools.nodes * workers == 1) && (far || pools.nodes == 1);
}

static void same_results(unsigned int nodes, unsigned int workers)
{
	uint64_t inside, outside = 0;
	unsigned int i, node;
	kdsm_bdd result;

	begin_pools(nodes, workers);
	assert_int_equal(KDSM_RUN(pools.tasks[0], &inside, in_task, 0, ROUNDS), 0);
	for (i = 0; i < ROUNDS; i++) {
		forget(&pools);
		outside += all_of_it(pools.plain[i % pools.nodes], i);
	}
	assert_int_equal(inside, outside);
	/* A busy machine may need many rounds until every kind of thief has stolen a task. */
	for (i = 0; i < ROUNDS || (i < 500 && !enough_moved(workers)); i++) {
		node = i % pools.nodes;
		forget(&pools);
		assert_int_equal(KDSM_RUN(pools.tasks[node], &result, mixed, DEPTH, i), 0);
		assert_true(result != KDSM_BDD_INVALID);
		forget(&pools);
		assert_int_equal(result, plain_mixed(pools.plain[node], DEPTH, i));
	}
	assert_true(enough_moved(workers));
	end_pools();
}

static void local(void **state)
{
	(void)state;
	same_results(0, 1);
	same_results(0, 2);
	same_results(0, 4);
}

static void several_nodes(void **state)
{
	(void)state;
	same_results(1, 2);
	same_results(2, 1);
	same_results(2, 2);
	same_results(3, 2);
}

/* ---- a job that fails ---- */

static uint32_t rounds;

/* Runs until the job fails, often in the middle of an operation. */
KDSM_TASK(kdsm_bdd, endless, uint32_t, round)
{
	KDSM_BDD_WORKER(w);
	kdsm_bdd a = KDSM_BDD_FALSE;

	for (;; round++) {
		KDSM_SPAWN(mixed, DEPTH, round);
		a = kdsm_bdd_xor(w, a, queens(w, QUEENS - round % 2));
		a = kdsm_bdd_and(w, a, KDSM_SYNC(mixed));
		__atomic_store_n(&rounds, round, __ATOMIC_RELAXED);
	}
}

static void *fail_soon(void *context)
{
	(void)context;
	while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 2)
		sched_yield();
	kd_task_fail(pools.tasks[0], -EOWNERDEAD, 0);
	return NULL;
}

static void failed_job(void **state)
{
	unsigned int nodes;
	pthread_t thread;
	kdsm_bdd result;

	(void)state;
	for (nodes = 0; nodes <= 2; nodes++) {
		open_pools(&pools, nodes, 2, 16 << 20);
		rounds = 0;
		assert_int_equal(pthread_create(&thread, NULL, fail_soon, NULL), 0);
		assert_int_equal(KDSM_RUN(pools.tasks[0], &result, endless, 0), -EOWNERDEAD);
		pthread_join(thread, NULL);
		/* Outside of tasks a worker still works. */
		assert_int_equal(solutions(pools.plain[0], queens(pools.plain[0], QUEENS)), 4);
		close_pools(&pools);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(local),
		cmocka_unit_test(several_nodes),
		cmocka_unit_test(failed_job),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("bdd_inside", tests, NULL, NULL);
}
