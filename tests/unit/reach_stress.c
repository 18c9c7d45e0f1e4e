// SPDX-License-Identifier: GPL-2.0
/*
 * Small models searched again and again by three nodes, whose workers steal from each
 * other all the time: the numbers are the known ones every time.
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

static void search_once(const char *path, const char *states, uint64_t nodes, uint64_t levels,
			unsigned int turn)
{
	struct job job[NODES];
	unsigned int i;
	char *found;

	sim_start(NODES);
	sim.tear = turn % 5 == 1;
	prepare(job, NODES, 1 + turn % 3, path);
	for (i = 0; i < NODES; i++)
		job[i].options.bdd.granularity = turn % 5;
	start(job, NODES);
	finish(job, NODES);
	for (i = 0; i < NODES; i++)
		if (job[i].status)
			fail_msg("%s, turn %u, node %u: %s", path, turn, i, job[i].message.text);
	found = mpz_get_str(NULL, 10, job[0].result.states);
	assert_string_equal(found, states);
	free(found);
	assert_int_equal(job[0].result.nodes, nodes);
	assert_int_equal(job[0].result.levels, levels);
	drop(job, NODES);
	sim_stop();
}

/* In the directory: its models of that suffix whose names are among these. */
static unsigned int repeat(const char *directory, const char *suffix, const char *const *names)
{
	char path[8192], line[256], model[64], states[64];
	unsigned int count = 0, turn;
	uint64_t nodes, levels;
	FILE *file;

	snprintf(path, sizeof(path), "%s/expected.csv", directory);
	file = fopen(path, "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		const char *const *name = names;

		if (sscanf(line, "%63[^,],%63[^,],%lu,%lu", model, states, &nodes, &levels) != 4)
			continue;
		while (*name && strcmp(*name, model))
			name++;
		if (!*name)
			continue;
		snprintf(path, sizeof(path), "%s/%s.%s", directory, model, suffix);
		for (turn = 0; turn < REPEAT; turn++)
			search_once(path, states, nodes, levels, turn);
		count++;
	}
	fclose(file);
	return count;
}

static void demonstration(void **state)
{
	static const char *const names[] = { "peterson", "token-ring-4", "philosophers-4", NULL };

	(void)state;
	assert_int_equal(repeat(models, "pnml", names), 3);
}

/* Where they are; the repository does not have them. */
static void shared(void **state)
{
	static const char *const names[] = { "bakery.2", "adding.1", NULL };
	char directory[4200];

	(void)state;
	snprintf(directory, sizeof(directory), "%s/../../../shared/models", models);
	if (access(directory, X_OK))
		skip();
	assert_int_equal(repeat(directory, "bdd", names), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demonstration),
		cmocka_unit_test(shared),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("reach_stress", tests, NULL, NULL);
}
