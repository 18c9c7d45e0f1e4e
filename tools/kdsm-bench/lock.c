// SPDX-License-Identifier: GPL-2.0
/*
 * lock: how often threads of all nodes acquire a lock, for reading and for writing, and how
 * long they take. This file has the order of the lines of the result. lock_round.c runs a round on
 * all nodes, and lock_threads.c the threads of one node; lock_inside.c has what a thread does with
 * the lock, lock_result.c the numbers of a line, lock_report.c the output, lock_options.c the
 * command line, and lock_sweep.c the curves.
 */
#include <stdlib.h>
#include <string.h>
#include "common/cluster.h"
#include "lock.h"

static bool wanted(const char *list, const char *name)
{
	return !list || !strcmp(list, name);
}

/* Set the setting that varies; this overrides the setting's own option. */
static void set_varied(struct lock_round *round, enum lock_vary vary, uint64_t value)
{
	struct kdsm_lock_settings *settings = &round->settings;
	unsigned int i;

	round->varied = value;
	switch (vary) {
	case VARY_NOTHING:
		break;
	case VARY_THREADS:
		round->threads = value;
		break;
	case VARY_T_DC:
		settings->mask |= KDSM_LOCK_SET_T_DC;
		settings->t_dc = value;
		break;
	case VARY_T_R:
		settings->mask |= KDSM_LOCK_SET_T_R;
		settings->t_r = value;
		break;
	case VARY_T_W:
		settings->mask |= KDSM_LOCK_SET_T_W;
		settings->t_w = value;
		break;
	case VARY_T_L:
		settings->mask |= KDSM_LOCK_SET_T_L(2);
		for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
			settings->t_l[i - 1] = value;
		break;
	case VARY_KEEP:
		settings->mask |= KDSM_LOCK_SET_KEEP;
		settings->keep = value;
		break;
	}
}

/* Measure several times, and report the medians. */
static int line_of(struct lock_run *run, const struct lock_round *round,
		   struct lock_worker *workers, struct lock_sweep *sweep)
{
	const struct lock_options *lock = &run->run.options->lock;
	struct lock_result results[MAX_REPEAT], median;
	struct lock_totals *totals = malloc(sizeof(*totals));
	unsigned int i;
	int ret = 0;

	if (!totals)
		return complain(run->run.options, "no memory");
	run->round = *round;
	for (i = 0; i < lock->repeat && !ret; i++) {
		ret = lock_round(run, workers, totals);
		if (!ret && run->run.measures)
			lock_result_of(round, totals, &results[i]);
	}
	free(totals);
	if (ret || !run->run.measures)
		return ret;
	lock_result_median(results, lock->repeat, &median);
	lock_report(run, &median);
	if (sweep)
		lock_sweep_add(sweep, run, &median);
	return 0;
}

/* A line for each kind. LOCK_NONE has one only if --lock names it. */
static int kinds_of(struct lock_run *run, struct lock_round *round,
		    struct lock_worker *workers, struct lock_sweep *sweep)
{
	const char *name = run->run.options->lock.kind;
	unsigned int kind;
	int ret = 0;

	for (kind = LOCK_NONE; kind <= KDSM_LOCK_RMA_RW && !ret; kind++) {
		round->kind = kind;
		if (name ? !strcmp(name, lock_name_of(kind)) : kind != LOCK_NONE)
			ret = line_of(run, round, workers, sweep);
	}
	return ret;
}

/* Lines of neighbouring rows differ in the kind, so that kinds are compared at the same time. */
static int lines(struct lock_run *run, struct lock_worker *workers, struct lock_sweep *sweep)
{
	const struct lock_options *lock = &run->run.options->lock;
	unsigned int i, count = lock->writer_count * lock->value_count;
	struct lock_round round;
	int ret = 0;

	for (round.benchmark = lock_benchmarks; round.benchmark->name; round.benchmark++) {
		if (!wanted(lock->benchmark, round.benchmark->name))
			continue;
		for (i = 0; i < count && !ret; i++) {
			round.writers = lock->writers[i / lock->value_count];
			round.threads = lock->threads;
			round.settings = lock->settings;
			set_varied(&round, lock->vary, lock->values[i % lock->value_count]);
			ret = kinds_of(run, &round, workers, sweep);
		}
	}
	return ret;
}

static unsigned int most_threads(const struct lock_options *lock)
{
	return lock->vary == VARY_THREADS ? lock->values[lock->value_count - 1] : lock->threads;
}

int bench_lock(const struct options *options)
{
	struct lock_sweep *sweep = NULL;
	struct lock_worker *workers;
	struct lock_run run = { .number = 0 };
	int ret;

	ret = run_open(&run.run, options, NULL);
	if (ret)
		return ret;
	workers = calloc(most_threads(&options->lock), sizeof(*workers));
	if (!workers)
		ret = complain(options, "no memory");
	if (!ret && options->lock.sweep && run.run.measures) {
		sweep = lock_sweep_begin(options, run.run.nodes);
		ret = !sweep;
	}
	if (!ret)
		ret = run_region(&run.run, lock_part_bytes(&run.run));
	if (!ret)
		lock_report_begin(&run);
	if (!ret)
		ret = lines(&run, workers, sweep);
	if (sweep)
		ret = lock_sweep_end(sweep, !ret) || ret;
	if (!ret && run.run.measures)
		report_end(&run.run);
	free(workers);
	run_close(&run.run);
	return ret;
}
