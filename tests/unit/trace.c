// SPDX-License-Identifier: GPL-2.0
/*
 * Deadlocks of nets, and traces to them. Each transition of a trace must be enabled, and
 * the last state must enable none. Searches by one node and by three.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "jobs.h"
#include "models.h"

static bool enabled(const struct kd_transition *transition, const bool *marked)
{
	unsigned int i;

	for (i = 0; i < transition->ins; i++)
		if (!marked[transition->in[i].place])
			return false;
	return true;
}

static void fire(const struct kd_net *net, const char *label, bool *marked)
{
	const struct kd_transition *transition = net->transition;
	unsigned int i;

	while (transition < net->transition + net->transitions && strcmp(transition->id, label))
		transition++;
	assert_true(transition < net->transition + net->transitions);
	assert_true(enabled(transition, marked));
	for (i = 0; i < transition->ins; i++)
		marked[transition->in[i].place] = false;
	for (i = 0; i < transition->outs; i++)
		marked[transition->out[i].place] = true;
}

static void shows(const struct kd_net *net, const bool *marked, const char *state)
{
	char expected[4096] = "";
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < net->places; i++)
		if (marked[i])
			n += snprintf(expected + n, sizeof(expected) - n, "%s%s", n ? " " : "",
				      net->place[i].id);
	assert_string_equal(state, expected);
}

static void follow(const struct kd_net *net, const struct kdsm_reach_trace *trace)
{
	bool *marked = calloc(net->places, sizeof(*marked));
	unsigned int i;
	uint64_t k;

	assert_non_null(marked);
	for (i = 0; i < net->places; i++)
		marked[i] = net->place[i].marking;
	shows(net, marked, trace->step[0].state);
	assert_null(trace->step[0].label);
	for (k = 1; k <= trace->steps; k++) {
		fire(net, trace->step[k].label, marked);
		shows(net, marked, trace->step[k].state);
	}
	for (i = 0; i < net->transitions; i++)
		assert_false(enabled(&net->transition[i], marked));
	free(marked);
}

/* steps is the distance of the nearest deadlock, if the net has a deadlock. */
static void search(const char *model, unsigned int nodes, unsigned int deadlocks, uint64_t steps)
{
	struct job job[SIM_NODES];
	struct kd_net *net;
	unsigned int i;
	char path[8192];

	snprintf(path, sizeof(path), "%s/%s.pnml", models, model);
	sim_start(nodes);
	prepare(job, nodes, 1, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.bdd.table_bytes = 8 << 20;
		job[i].options.bdd.cache_bytes = 1 << 20;
		job[i].options.deadlocks = true;
		job[i].options.trace = true;
	}
	start(job, nodes);
	finish(job, nodes);
	for (i = 0; i < nodes; i++)
		assert_int_equal(job[i].status, 0);
	assert_int_equal(mpz_get_ui(job[0].result.deadlocks), deadlocks);
	assert_int_equal(job[0].result.traces, deadlocks != 0);
	if (deadlocks) {
		assert_int_equal(job[0].result.trace->steps, steps);
		net = read_net(path);
		follow(net, job[0].result.trace);
		kd_net_free(net);
	}
	drop(job, nodes);
	sim_stop();
}

/* Deadlocks: all philosophers hold the left fork, or all hold the right one. */
static void philosophers(void **state)
{
	(void)state;
	search("philosophers-4", 1, 2, 4);
	search("philosophers-4", 3, 2, 4);
	search("philosophers-10", 1, 2, 10);
}

static void no_deadlock(void **state)
{
	(void)state;
	search("token-ring-4", 1, 0, 0);
	search("peterson", 3, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(philosophers),
		cmocka_unit_test(no_deadlock),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
