/* SPDX-License-Identifier: GPL-2.0 */
/* Searches in tests: the same job on all simulated nodes, with one thread for each node */
#ifndef UNIT_JOBS_H
#define UNIT_JOBS_H

#include "sim.h"
#include <kdsm/reach.h>

/* Open and search, for a result that the caller has initialised. */
static inline int reach_once(struct kdsm *kdsm, const struct kdsm_reach_options *options,
			     struct kdsm_reach_result *result,
			     struct kdsm_reach_message *message)
{
	struct kdsm_reach *reach;
	int ret;

	ret = kdsm_reach_open(kdsm, options, &reach, message);
	if (ret == 0)
		ret = kdsm_reach_search(reach, result, message);
	kdsm_reach_close(reach);
	return ret;
}

struct job {
	pthread_t thread;
	struct kdsm *kdsm;
	struct kdsm_reach_options options;
	struct kdsm_reach_result result;
	struct kdsm_reach_message message;
	int status;
};

static inline void *run(void *data)
{
	struct job *job = data;

	job->result.argsz = sizeof(job->result);
	kdsm_reach_result_init(&job->result);
	job->status = reach_once(job->kdsm, &job->options, &job->result, &job->message);
	return NULL;
}

static inline void prepare(struct job *job, unsigned int nodes, unsigned int workers,
			   const char *path)
{
	unsigned int i;

	memset(job, 0, nodes * sizeof(*job));
	for (i = 0; i < nodes; i++)
		job[i].options = (struct kdsm_reach_options){
			.argsz = sizeof(struct kdsm_reach_options),
			.path = path, .job = "test", .workers = workers,
			.timeout = 10000000000, .order = KDSM_REACH_ORDER_FILE,
			.bdd = { .table_bytes = 64 << 20, .cache_bytes = 8 << 20 },
		};
}

static inline void start(struct job *job, unsigned int nodes)
{
	unsigned int i;

	for (i = 0; i < nodes; i++) {
		job[i].kdsm = sim.kdsm[i];
		assert_int_equal(pthread_create(&job[i].thread, NULL, run, &job[i]), 0);
	}
}

static inline void finish(struct job *job, unsigned int nodes)
{
	unsigned int i;

	for (i = 0; i < nodes; i++)
		pthread_join(job[i].thread, NULL);
}

/* Run a search that succeeds on all nodes. */
static inline void run_well(struct job *job, unsigned int nodes)
{
	unsigned int i;

	start(job, nodes);
	finish(job, nodes);
	for (i = 0; i < nodes; i++)
		if (job[i].status)
			fail_msg("%s, node %u of %u: %s", job[i].options.path, i, nodes,
				 job[i].message.text);
}

static inline void drop(struct job *job, unsigned int nodes)
{
	unsigned int i;

	for (i = 0; i < nodes; i++)
		kdsm_reach_result_free(&job[i].result);
}

#endif /* UNIT_JOBS_H */
