// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants: bounds on places, and sets of states in files, against an explicit search;
 * and traces to states that violate them
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>

#include "bdd.h"
#include "explicit.h"
#include "jobs.h"

#define MOST	4096

static char text[MOST][256];
static const char *bound[MOST];
static marking places[MOST];
static unsigned int tokens[MOST], bounds;

static unsigned int tokens_on(marking m)
{
	return __builtin_popcountll(m) + __builtin_popcountll(m >> 64);
}

static void add_bound(const struct kd_net *net, marking set, unsigned int most)
{
	unsigned int p;
	size_t n = 0;

	assert_true(bounds < MOST);
	for (p = 0; p < net->places; p++)
		if (set >> p & 1)
			n += snprintf(text[bounds] + n, sizeof(text[0]) - n, "%s%s", n ? "," : "",
				      net->place[p].id);
	snprintf(text[bounds] + n, sizeof(text[0]) - n, "=%u", most);
	bound[bounds] = text[bounds];
	places[bounds] = set;
	tokens[bounds++] = most;
}

/* Bounds on each place, each pair of places, and some sets of places */
static void add_bounds(const struct kd_net *net)
{
	marking all = ((marking)1 << net->places) - 1, set;
	unsigned int p, q, i;

	bounds = 0;
	for (p = 0; p < net->places; p++) {
		for (q = 0; q <= p; q++) {
			add_bound(net, (marking)1 << p | (marking)1 << q, 0);
			add_bound(net, (marking)1 << p | (marking)1 << q, 1);
		}
	}
	for (i = 0; i < 50; i++) {
		set = (random64() | (marking)random64() << 64) & all;
		if (i % 2)
			set &= (random64() | (marking)random64() << 64);
		if (set && tokens_on(set) < 12)
			add_bound(net, set, random64() % 6);
	}
	add_bound(net, 1, 99999);
}

/* Steps to the nearest state that violates the bound, or -1 */
static long steps_to(const struct explicit *e, unsigned int b)
{
	unsigned int level = 0;
	size_t i;

	for (i = 0; i < e->states; i++) {
		while (i >= e->end[level])
			level++;
		if (tokens_on(e->state[i] & places[b]) > tokens[b])
			return level;
	}
	return -1;
}

/* Parse the names of marked places, separated by spaces. */
static marking read_state(const struct kd_net *net, const char *state)
{
	marking m = 0;
	unsigned int p;
	char id[64];
	int n;

	for (; sscanf(state, " %63s%n", id, &n) == 1; state += n) {
		for (p = 0; strcmp(net->place[p].id, id); )
			assert_true(++p < net->places);
		m |= (marking)1 << p;
	}
	return m;
}

static void compare(const struct explicit *e, const struct kdsm_reach_result *result)
{
	unsigned int b, traces = 0, level = 0;
	const struct kdsm_reach_trace *trace;
	long steps;
	marking m;

	assert_int_equal(result->properties, bounds);
	for (b = 0; b < bounds; b++) {
		steps = steps_to(e, b);
		assert_int_equal(result->verdict[b].violated, steps >= 0);
		if (steps < 0)
			continue;
		assert_int_equal(result->verdict[b].steps, steps);
		trace = &result->trace[traces++];
		assert_string_equal(trace->what, result->verdict[b].name);
		assert_int_equal(trace->steps, steps);
		assert_true(tokens_on(read_state(e->net, trace->step[steps].state) & places[b]) >
			    tokens[b]);
		for (level = 0; level <= steps; level++) {
			m = read_state(e->net, trace->step[level].state);
			assert_true(e->index[slot_of(e, m)]);
			assert_int_equal(e->index[slot_of(e, m)] <= e->end[level], 1);
			if (level)
				assert_true(e->index[slot_of(e, m)] > e->end[level - 1]);
		}
	}
	assert_int_equal(result->traces, traces);
	assert_in_range(traces, 1, bounds - 1);
}

static void check_bounds(const char *model, unsigned int nodes)
{
	struct job job[SIM_NODES];
	struct explicit e;
	char path[8192];
	unsigned int i;

	explore(&e, model, 100000);
	add_bounds(e.net);
	snprintf(path, sizeof(path), "%s/%s.pnml", models, model);
	sim_start(nodes);
	prepare(job, nodes, 1, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.bound = bound;
		job[i].options.bounds = bounds;
		job[i].options.trace = true;
	}
	start(job, nodes);
	finish(job, nodes);
	for (i = 0; i < nodes; i++)
		if (job[i].status)
			fail_msg("node %u: %s", i, job[i].message.text);
	compare(&e, &job[0].result);
	drop(job, nodes);
	sim_stop();
	forget(&e);
}

static void bounds_of_places(void **state)
{
	(void)state;
	check_bounds("peterson", 1);
	check_bounds("token-ring-4", 1);
	check_bounds("philosophers-4", 2);
}

/* Saturation gives no traces, and its number of rounds is no number of steps. */
static void by_saturation(void **state)
{
	struct job job[2];
	struct explicit e;
	char path[8192];
	unsigned int i, b;

	(void)state;
	explore(&e, "peterson", 100000);
	add_bounds(e.net);
	snprintf(path, sizeof(path), "%s/peterson.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	for (i = 0; i < 2; i++) {
		job[i].options.bound = bound;
		job[i].options.bounds = bounds;
		job[i].options.saturation = true;
	}
	start(job, 2);
	finish(job, 2);
	assert_int_equal(job[0].status, 0);
	assert_int_equal(job[0].result.properties, bounds);
	for (b = 0; b < bounds; b++)
		assert_int_equal(job[0].result.verdict[b].violated, steps_to(&e, b) >= 0);
	drop(job, 2);
	sim_stop();
	forget(&e);
}

/* Save the states of the first levels to a file. */
static void write_set(const struct explicit *e, unsigned int levels, const char *path)
{
	struct fixture f;
	FILE *file = fopen(path, "w");
	kdsm_bdd set;

	assert_non_null(file);
	begin(&f, 1, 0);
	set = set_of(f.worker[0], e, e->end[levels - 1]);
	assert_int_equal(kdsm_bdd_save(f.worker[0], file, &set, NULL, 1), 0);
	end(&f);
	assert_int_equal(fclose(file), 0);
}

/*
 * The set of the states of the first levels is violated at the next level. The set of all
 * states is never violated.
 */
static void sets_of_states(void **state)
{
	static const char *const invariant[] = {
		"/tmp/kdsm-invariant-4.bdd", "/tmp/kdsm-invariant-all.bdd",
	};
	static const char *const saved = "/tmp/kdsm-invariant-saved.bdd";
	char path[8192];
	struct kdsm_reach_result *result;
	struct job job[2];
	struct explicit e;
	unsigned int i;

	(void)state;
	explore(&e, "token-ring-4", 100000);
	write_set(&e, 4, invariant[0]);
	write_set(&e, e.levels, invariant[1]);
	snprintf(path, sizeof(path), "%s/token-ring-4.pnml", models);
	sim_start(2);
	prepare(job, 2, 1, path);
	for (i = 0; i < 2; i++) {
		job[i].options.invariant = invariant;
		job[i].options.invariants = 2;
		job[i].options.save = saved;
	}
	start(job, 2);
	finish(job, 2);
	assert_int_equal(job[0].status, 0);
	result = &job[0].result;
	assert_int_equal(result->properties, 2);
	assert_string_equal(result->verdict[0].name, invariant[0]);
	assert_true(result->verdict[0].violated);
	assert_int_equal(result->verdict[0].steps, 4);
	assert_false(result->verdict[1].violated);
	drop(job, 2);
	sim_stop();

	/* The states that the search saved are those of the explicit search. */
	sim_start(2);
	prepare(job, 2, 1, path);
	for (i = 0; i < 2; i++) {
		job[i].options.invariant = &saved;
		job[i].options.invariants = 1;
	}
	start(job, 2);
	finish(job, 2);
	assert_int_equal(job[0].status, 0);
	assert_false(job[0].result.verdict[0].violated);
	drop(job, 2);
	sim_stop();
	forget(&e);
	unlink(saved);
	unlink(invariant[0]);
	unlink(invariant[1]);
}

static void refused(const char *model, const char *bound_text, const char *file, const char *part)
{
	char path[8192];
	struct job job;

	snprintf(path, sizeof(path), "%s/%s", models, model);
	sim_start(1);
	prepare(&job, 1, 1, path);
	job.options.bound = &bound_text;
	job.options.bounds = !!bound_text;
	job.options.invariant = &file;
	job.options.invariants = !!file;
	start(&job, 1);
	finish(&job, 1);
	if (job.status >= 0)
		fail_msg("not refused: %s", part);
	if (!strstr(job.message.text, part))
		fail_msg("expected '%s' in '%s'", part, job.message.text);
	drop(&job, 1);
	sim_stop();
}

static void mistakes(void **state)
{
	static const char file[] = "/tmp/kdsm-invariant-large.bdd";
	static const char *const wrong[] = {
		"Calm_1", "=1", "Calm_1=", "Calm_1=x", "Calm_1=-1", "Calm_1=1x", "Calm_1 1",
		"Calm_1=99999999999999999999",
	};
	struct explicit e;
	unsigned int i;
	FILE *f;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refused("token-ring-4.pnml", wrong[i], NULL, "not of the form");
	refused("token-ring-4.pnml", "Calm_9=1", NULL, "no place with the id Calm_9");
	refused("token-ring-4.pnml", "Calm_=1", NULL, "no place with the id Calm_");
	refused("token-ring-4.pnml", "Calm_1,=1", NULL, "no place with the id ");
	refused("token-ring-4.pnml", "Calm_1,Calm_2,Calm_1=1", NULL, "Calm_1 is there twice");
	refused("aiger/counter-8.aag", "Calm_1=1", NULL, "has no places");
	refused("token-ring-4.pnml", NULL, "/nonexistent.bdd", "No such file");
	refused("token-ring-4.pnml", NULL, "/tmp", "cannot be read");
	refused("token-ring-4.pnml", NULL, "/dev/null", "ends too early");
	refused("token-ring-4.pnml", NULL, "/dev/zero", "in the .bdd format, and whole");
	explore(&e, "philosophers-4", 100000);
	write_set(&e, e.levels, file);
	refused("token-ring-4.pnml", NULL, file, "more than the 16 bits of a state of token-ring-4");
	f = fopen(file, "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, 300, SEEK_SET), 0);
	putc('x', f);
	fclose(f);
	refused("philosophers-4.pnml", NULL, file, file);
	unlink(file);
	forget(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_of_places),
		cmocka_unit_test(by_saturation),
		cmocka_unit_test(sets_of_states),
		cmocka_unit_test(mistakes),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("invariant", tests, NULL, NULL);
}
