// SPDX-License-Identifier: GPL-2.0
/*
 * Three nodes search small models many times. Their workers steal from each other all the
 * time. The results must equal the known ones each time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>

#include "sim.h"
#include "jobs.h"
#include "models.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define REPEAT	5
#else
#define REPEAT	50
#endif

#define NODES	3

static void search_once(const char *path, const struct expected *expected, unsigned int turn)
{
	struct job job[NODES];
	unsigned int i;

	sim_start(NODES);
	sim.tear = turn % 5 == 1;
	prepare(job, NODES, 1 + turn % 3, path);
	for (i = 0; i < NODES; i++)
		job[i].options.bdd.granularity = turn % 5;
	run_well(job, NODES);
	check_result(&job[0].result, expected);
	drop(job, NODES);
	sim_stop();
}

/* Search the models of the directory that have this suffix and one of these names. */
static unsigned int repeat(const char *directory, const char *suffix, const char *const *names)
{
	struct expected expected[32];
	unsigned int n = read_expected_of(directory, expected, 32), count = 0, turn, i;
	const char *const *name;
	char path[8192];

	for (i = 0; i < n; i++) {
		for (name = names; *name && strcmp(*name, expected[i].model); name++)
			;
		if (!*name)
			continue;
		snprintf(path, sizeof(path), "%s/%s.%s", directory, *name, suffix);
		for (turn = 0; turn < REPEAT; turn++)
			search_once(path, &expected[i], turn);
		count++;
	}
	return count;
}

static void demonstration(void **state)
{
	static const char *const names[] = { "peterson", "token-ring-4", "philosophers-4", NULL };

	(void)state;
	assert_int_equal(repeat(models, "pnml", names), 3);
}

/* Optional models, which are not in the repository */
static void shared(void **state)
{
	static const char *const names[] = { "bakery.2", "adding.1", NULL };

	(void)state;
	if (access(shared_models(), X_OK))
		skip();
	assert_int_equal(repeat(shared_models(), "bdd", names), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demonstration),
		cmocka_unit_test(shared),
	};

	if (!find_models())
		return 1;
	kd_operations_alone = 0;	/* small searches use all nodes, too */
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_stress", tests, NULL, NULL);
}
