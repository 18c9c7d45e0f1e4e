// SPDX-License-Identifier: GPL-2.0
/*
 * lock --sweep FILE: every line of the result as a line of comma-separated values, and
 * curves of it, drawn by gnuplot: locks a second against the share of writers, one
 * picture for each benchmark, one curve for each kind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lock.h"

struct lock_sweep {
	const struct options *options;
	FILE *csv;
	char script[4096];		/* FILE with .gnuplot behind it */
};

struct lock_sweep *lock_sweep_begin(const struct options *options)
{
	const char *name = options->lock.sweep;
	struct lock_sweep *sweep = calloc(1, sizeof(*sweep));

	if (!sweep)
		goto fail;
	sweep->options = options;
	snprintf(sweep->script, sizeof(sweep->script), "%s.gnuplot", name);
	sweep->csv = fopen(name, "we");
	if (!sweep->csv)
		goto fail;
	fprintf(sweep->csv, "benchmark,kind,nodes,threads,writers,t_dc,t_r,t_w,t_l_2,keep,locks,locks_per_second,median_us,longest_us,remote\n");
	return sweep;

fail:
	complain(options, "%s: %s", name, strerror(errno));
	free(sweep);
	return NULL;
}

void lock_sweep_add(struct lock_sweep *sweep, const struct lock_run *run,
		    const struct lock_totals *totals)
{
	struct kdsm_lock_settings settings = run->round.settings;
	struct kdsm_lock_info info;

	/* As it was in force, defaults and all. */
	if (!kdsm_lock_info(run->lock, &info))
		settings = info.settings;
	fprintf(sweep->csv, "%s,%s,%u,%u,%g,%u,%u,%u,%u,%lld,%llu,%.1f,%.3f,%.3f,%llu\n",
		run->round.benchmark->name, lock_kind_name(run->round.kind), run->run.nodes,
		run->round.benchmark->alone ? 1 : run->run.options->lock.threads,
		run->round.writers, settings.t_dc, settings.t_r, settings.t_w,
		settings.t_l[1], (long long)settings.keep, (unsigned long long)totals->locks,
		totals->elapsed ? totals->locks * 1e9 / totals->elapsed : 0,
		totals->median / 1e3, totals->longest / 1e3,
		(unsigned long long)totals->remote);
}

/* ---- drawing ---- */

static int script_write(const struct lock_sweep *sweep)
{
	const char *csv = sweep->options->lock.sweep;
	const struct lock_benchmark *benchmark;
	unsigned int count = 0;
	FILE *file = fopen(sweep->script, "we");

	if (!file)
		return complain(sweep->options, "%s: %s", sweep->script, strerror(errno));
	for (benchmark = lock_benchmarks; benchmark->name; benchmark++)
		count += !sweep->options->lock.benchmark ||
			 !strcmp(sweep->options->lock.benchmark, benchmark->name);
	fprintf(file,
		"set terminal svg size 640,%u font 'sans,12' background rgb 'white'\n"
		"set output '%s.svg'\n"
		"set datafile separator ','\n"
		"set multiplot layout %u,1\n"
		"set xlabel 'writers, per cent'\n"
		"set ylabel 'locks a second'\n"
		"set yrange [0:*]\n"
		"set key outside right\n"
		"set grid\n", 320 * count, csv, count);
	for (benchmark = lock_benchmarks; benchmark->name; benchmark++) {
		if (sweep->options->lock.benchmark &&
		    strcmp(sweep->options->lock.benchmark, benchmark->name))
			continue;
		fprintf(file, "set title '%s: %s'\n"
			"plot for [kind in 'dmcs rma-mcs rma-rw'] '%s' \\\n"
			"\tusing (strcol(1) eq '%s' && strcol(2) eq kind ? $5 : NaN):12 \\\n"
			"\twith linespoints title kind\n", benchmark->name, benchmark->what,
			csv, benchmark->name);
	}
	if (!fclose(file))
		return 0;
	return complain(sweep->options, "%s: %s", sweep->script, strerror(errno));
}

static int draw(const struct lock_sweep *sweep)
{
	pid_t child = fork();
	int status;

	if (!child) {
		execlp("gnuplot", "gnuplot", sweep->script, NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return complain(sweep->options, "gnuplot: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		complain(sweep->options, "there is no gnuplot here to draw the curves: run 'gnuplot %s' where there is",
			 sweep->script);
		return 0;
	}
	return status ? complain(sweep->options, "gnuplot %s failed", sweep->script) : 0;
}

int lock_sweep_end(struct lock_sweep *sweep)
{
	int ret = 0;

	if (ferror(sweep->csv) | fclose(sweep->csv))
		ret = complain(sweep->options, "%s: cannot be written",
			       sweep->options->lock.sweep);
	if (!ret)
		ret = script_write(sweep);
	if (!ret)
		ret = draw(sweep);
	free(sweep);
	return ret;
}
