// SPDX-License-Identifier: GPL-2.0
/*
 * Compare virtual runs with real time: the same search on the simulated nodes of the unit tests
 * (tests/unit/sim.h), one thread each, and in a virtual run with the same prices of operations and
 * steps. Real threads wait in busy loops (pace.c).
 *
 * usage: validate MODEL NODES ROUNDS OPERATION_NS STEP_NS
 *
 * Prints the shortest times of both searches over the rounds, in ms, and the second as a multiple
 * of the first. tests/validate has the bounds.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/sim.h"
#include "pace.h"
#include <kdsm/reach.h>
#include <kdsm/virtual.h>

static const char *model;
static unsigned int nodes;
static uint64_t price, step;

struct job {
	pthread_t thread;
	struct kdsm *kdsm;
	int status;
	double seconds;
};

/* With a small table */
static int search(struct job *job)
{
	struct kdsm_reach_options options = {
		.argsz = sizeof(options),
		.path = model, .job = "validate", .workers = 1, .timeout = 10000000000,
		.order = KDSM_REACH_ORDER_FILE,
		.bdd = { .table_bytes = 16 << 20, .cache_bytes = 4 << 20 },
	};
	struct kdsm_reach_message message;
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct kdsm_reach *reach;
	int ret;

	kdsm_reach_result_init(&result);
	ret = kdsm_reach_open(job->kdsm, &options, &reach, &message);
	if (!ret)
		ret = kdsm_reach_search(reach, &result, &message);
	if (ret)
		fprintf(stderr, "validate: %s\n", message.text);
	kdsm_reach_close(reach);
	job->seconds = result.seconds;
	kdsm_reach_result_free(&result);
	return ret;
}

static void *run_thread(void *data)
{
	struct job *job = data;

	pace_begin(step);
	job->status = search(job);
	return NULL;
}

/* Returns the time of the search on node 0, in seconds. */
static double real(void)
{
	struct job job[SIM_NODES];
	unsigned int i;
	int failed = 0;

	sim_start(nodes);
	sim.spin = price;
	for (i = 0; i < nodes; i++) {
		job[i] = (struct job){ .kdsm = sim.kdsm[i] };
		sim.kdsm[i]->may_spin = true;
		if (pthread_create(&job[i].thread, NULL, run_thread, &job[i]))
			exit(1);
	}
	for (i = 0; i < nodes; i++) {
		pthread_join(job[i].thread, NULL);
		failed |= job[i].status;
	}
	sim_stop();
	if (failed)
		exit(1);
	return job[0].seconds;
}

static int program(struct kdsm *kdsm, void *argument)
{
	struct job job = { .kdsm = kdsm };
	int ret = search(&job);

	if (!kdsm_node(kdsm))
		*(double *)argument = job.seconds;
	return ret;
}

static double simulated(void)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };
	double seconds = 0;

	kdsm_virtual_attr_init(&attr);
	attr.nodes = nodes;
	attr.step = step;
	attr.one_sided = price;
	attr.message = price;
	attr.handler = 0;
	attr.gap = 0;
	attr.bandwidth = UINT64_C(1) << 40;
	if (kdsm_virtual_run(&attr, program, &seconds))
		exit(1);
	return seconds;
}

int main(int argc, char **argv)
{
	double best[2] = { 1e9, 1e9 }, seconds;
	unsigned int rounds, i, j;

	if (argc != 6) {
		fprintf(stderr, "usage: validate MODEL NODES ROUNDS OPERATION_NS STEP_NS\n");
		return 64;
	}
	model = argv[1];
	nodes = atoi(argv[2]);
	rounds = atoi(argv[3]);
	price = atoi(argv[4]);
	step = atoi(argv[5]);
	if (!nodes || nodes > SIM_NODES || !rounds)
		return 64;
	for (i = 0; i < rounds; i++)
		for (j = 0; j < 2; j++) {
			seconds = j ? simulated() : real();
			if (seconds < best[j])
				best[j] = seconds;
		}
	printf("%u nodes: %.1f ms real, %.1f ms virtual, %.3f\n", nodes, 1e3 * best[0],
	       1e3 * best[1], best[1] / best[0]);
	return 0;
}
