// SPDX-License-Identifier: GPL-2.0
/*
 * Every model, on one node and on several, with few workers and many, with both ways of
 * find-or-put, and with a table so small that the search collects garbage. The results must
 * equal the known ones each time.
 *
 * By default the test searches only models of few BDD nodes, which takes seconds. With
 * KDSM_EVERY in the environment the test searches all models, which takes minutes. With
 * KDSM_SPIN=NS an operation on another node takes NS ns, and the test prints how the work
 * was divided.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "jobs.h"
#include "models.h"

#define FEW		100	/* most BDD nodes of a model without KDSM_EVERY */
#define AMPLE		(64 << 20)	/* table that suffices for all models, in bytes */

struct way {
	unsigned int nodes, workers;
	enum kdsm_table_find find;
};

static void tell(const char *path, const struct way *way, const struct kdsm_reach_result *result)
{
	const struct kdsm_counts *c = &result->remote;

	if (sim.spin && way->nodes > 1)
		printf("# %s, %u nodes of %u workers: %.2f s, %lu to %lu tasks, %.3f operations each\n",
		       strrchr(path, '/') + 1, way->nodes, way->workers, result->seconds,
		       result->tasks_least, result->tasks_most,
		       (double)(c->get + c->put + c->cas + c->faa + c->find + c->steal) /
		       result->tasks);
}

/* Search with a table of this many bytes. Returns 0, or -ENOSPC, which is no failure. */
static int search(const char *path, const struct expected *expected, const struct way *way,
		  uint64_t bytes, uint64_t *collections, uint64_t *used)
{
	struct job job[SIM_NODES];
	unsigned int i;
	int status = 0;

	sim_start(way->nodes);
	sim.spin = getenv("KDSM_SPIN") ? strtoul(getenv("KDSM_SPIN"), NULL, 10) : 0;
	prepare(job, way->nodes, way->workers, path);
	for (i = 0; i < way->nodes; i++) {
		job[i].options.bdd.table_bytes = bytes;
		job[i].options.bdd.cache_bytes = 4 << 20;
		job[i].options.bdd.find = way->find;
	}
	start(job, way->nodes);
	finish(job, way->nodes);
	for (i = 0; i < way->nodes; i++) {
		if (job[i].status == -ENOSPC)
			status = -ENOSPC;
		else if (job[i].status && job[i].status != -ECANCELED)
			fail_msg("%s: %s", path, job[i].message.text);
	}
	for (i = 0; i < way->nodes && !status; i++)
		assert_int_equal(job[i].status, 0);
	if (!status) {
		check_result(&job[0].result, expected);
		*collections = job[0].result.collections.count;
		*used = job[0].result.table_used;
		tell(path, way, &job[0].result);
	}
	drop(job, way->nodes);
	sim_stop();
	return status;
}

/* Returns the number of collections in the search with a small table. */
static uint64_t search_in_way(const char *path, const struct expected *expected,
			      const struct way *way)
{
	uint64_t collections, used, bytes;

	assert_int_equal(search(path, expected, way, AMPLE, &collections, &used), 0);
	if (way->workers != 2)
		return collections;
	/*
	 * Begin with a twentieth of the memory that the nodes used, and enlarge the table
	 * until the search succeeds.
	 */
	bytes = used * 24 / 20;
	while (search(path, expected, way, bytes, &collections, &used))
		bytes += bytes / 2;
	return collections;
}

static void every(const char *directory, const char *suffix)
{
	static const unsigned int workers[] = { 1, 2, 4 };
	const uint64_t few = getenv("KDSM_EVERY") ? UINT64_MAX : FEW;
	struct expected expected[32];
	unsigned int n = read_expected_of(directory, expected, 32), i, k, searches = 0;
	uint64_t collections = 0;
	char path[8192];
	struct way way;

	for (i = 0; i < n; i++) {
		if (expected[i].nodes > few)
			continue;
		assert_in_range(snprintf(path, sizeof(path), "%s/%s.%s", directory,
					 expected[i].model, suffix), 0, sizeof(path) - 1);
		for (way.nodes = 1; way.nodes <= 3; way.nodes++) {
			for (k = 0; k < 3; k++) {
				way.workers = workers[k];
				for (way.find = KDSM_TABLE_ONE_SIDED;
				     way.find <= KDSM_TABLE_MESSAGE; way.find++) {
					collections += search_in_way(path, &expected[i], &way);
					searches++;
				}
			}
		}
	}
	printf("# %u searches, some again, with %lu collections\n", searches, collections);
	assert_true(searches > 0 && collections > 0);
}

static void demonstration(void **state)
{
	(void)state;
	every(models, "pnml");
}

static void hardware(void **state)
{
	char directory[8192];

	(void)state;
	snprintf(directory, sizeof(directory), "%s/aiger", models);
	every(directory, "aag");
}

static void shared(void **state)
{
	(void)state;
	if (access(shared_models(), X_OK))
		skip();
	every(shared_models(), "bdd");
}

int main(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	puts("1..0 # SKIP it would take minutes; reach and reach_stress are for sanitizers");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demonstration),
		cmocka_unit_test(hardware),
		cmocka_unit_test(shared),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_every", tests, NULL, NULL);
}
