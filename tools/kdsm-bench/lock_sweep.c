// SPDX-License-Identifier: GPL-2.0
/*
 * lock --sweep FILE: the result as comma-separated values, and curves that gnuplot draws. Each
 * benchmark has a picture of locks a second (latency: microseconds) against the share of
 * writers, with a curve for each kind; and on several nodes another picture of remote operations
 * a lock. With --vary, the abscissa is the setting that varies, and each kind and share of
 * writers has a curve.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/cluster.h"
#include "lock.h"

#define NAME_SIZE 4096

struct lock_sweep {
	const struct options *options;
	FILE *csv;
	unsigned int nodes;
	bool png;
	char values[NAME_SIZE], picture[NAME_SIZE], script[NAME_SIZE];
};

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && !strcmp(name + length - tail, end);
}

/* FILE is the picture or the values; the names of the other files derive from it. */
static int set_names(struct lock_sweep *sweep, const char *name)
{
	bool is_picture = ends_in(name, ".svg") || ends_in(name, ".png");

	if (strlen(name) + 16 > NAME_SIZE)
		return -ENAMETOOLONG;
	/* The script quotes the names. */
	if (strpbrk(name, "'\n"))
		return -EINVAL;
	sweep->png = ends_in(name, ".png");
	snprintf(sweep->values, NAME_SIZE, "%s%s", name, is_picture ? ".csv" : "");
	snprintf(sweep->picture, NAME_SIZE, "%s%s", name, is_picture ? "" : ".svg");
	snprintf(sweep->script, NAME_SIZE, "%s.gnuplot", name);
	return 0;
}

/* Columns of the values before those of lock_value_names, see lock_sweep_add() */
#define COLUMNS "benchmark,kind,nodes,threads,writers,varied,t_dc,t_r,t_w,t_l,keep"
#define COLUMN_COUNT 11

static void write_names(FILE *file)
{
	unsigned int i;

	fputs(COLUMNS, file);
	for (i = 0; i < LOCK_VALUES; i++)
		fprintf(file, ",%s", lock_value_names[i]);
	fputs(",locks_per_second_least,locks_per_second_most\n", file);
}

/* The number of a value's column, for gnuplot */
static unsigned int column_of(enum lock_value value)
{
	return COLUMN_COUNT + 1 + value;
}

struct lock_sweep *lock_sweep_begin(const struct options *options, unsigned int nodes)
{
	const char *name = options->lock.sweep;
	struct lock_sweep *sweep = calloc(1, sizeof(*sweep));

	if (!sweep)
		goto fail;
	sweep->options = options;
	sweep->nodes = nodes;
	errno = -set_names(sweep, name);
	if (errno)
		goto fail;
	sweep->csv = fopen(sweep->values, "we");
	if (!sweep->csv)
		goto fail;
	write_names(sweep->csv);
	return sweep;

fail:
	complain(options, "%s: %s", name, strerror(errno));
	free(sweep);
	return NULL;
}

static void write_value(FILE *file, double value)
{
	if (isnan(value))
		fputs(",NaN", file);
	else
		fprintf(file, ",%.3f", value);
}

void lock_sweep_add(struct lock_sweep *sweep, const struct lock_run *run,
		    const struct lock_result *result)
{
	const struct kdsm_lock_settings *settings = &run->info.settings;
	unsigned int level, i;

	fprintf(sweep->csv, "%s,%s,%u,%u,%g,%llu,%u,%u,%u,", run->round.benchmark->name,
		lock_name_of(run->round.kind), run->run.nodes,
		run->round.benchmark->alone ? 1 : run->round.threads, run->round.writers,
		(unsigned long long)run->round.varied, settings->t_dc, settings->t_r,
		settings->t_w);
	/* Thresholds of levels 2 and on, with colons between them */
	for (level = 2; level <= run->info.levels; level++) {
		if (level > 2)
			fputc(':', sweep->csv);
		if (settings->t_l[level - 1] == KDSM_LOCK_T_L_AUTO)
			fputs("auto", sweep->csv);
		else
			fprintf(sweep->csv, "%u", settings->t_l[level - 1]);
	}
	fprintf(sweep->csv, ",%lld", (long long)settings->keep);
	for (i = 0; i < LOCK_VALUES; i++)
		write_value(sweep->csv, result->value[i]);
	write_value(sweep->csv, result->least[LOCK_RATE]);
	write_value(sweep->csv, result->most[LOCK_RATE]);
	fputc('\n', sweep->csv);
}

/* ---- drawing ---- */

static bool is_drawn(const struct lock_sweep *sweep, const struct lock_benchmark *benchmark)
{
	return !sweep->options->lock.benchmark ||
	       !strcmp(sweep->options->lock.benchmark, benchmark->name);
}

static void write_curves(const struct lock_sweep *sweep, FILE *file,
			 const struct lock_benchmark *benchmark, enum lock_value value)
{
	const struct lock_options *lock = &sweep->options->lock;
	unsigned int i, y = column_of(value);

	if (!lock->vary) {
		fprintf(file, "plot for [kind in kinds] '%s' \\\n"
			"\tusing (strcol(1) eq '%s' && strcol(2) eq kind ? $5 : NaN):%u \\\n"
			"\twith linespoints title kind\n", sweep->values, benchmark->name, y);
		return;
	}
	for (i = 0; i < lock->writer_count; i++)
		fprintf(file, "%s for [kind in kinds] '%s' \\\n"
			"\tusing (strcol(1) eq '%s' && strcol(2) eq kind && $5 == %g ? $6 : NaN):%u \\\n"
			"\twith linespoints title kind.', %g %% writers'", i ? ", \\\n\t" : "plot",
			sweep->values, benchmark->name, lock->writers[i], y, lock->writers[i]);
	fputc('\n', file);
}

static void write_picture(const struct lock_sweep *sweep, FILE *file,
			  const struct lock_benchmark *benchmark)
{
	const char *alone = "set ylabel 'lock and unlock, median, us'\nset format y '%g'\n";
	const char *speed = "set ylabel 'locks a second'\nset format y '%.1s %c'\n";

	fprintf(file, "set title '%s: %s'\n%s", benchmark->name, benchmark->what,
		benchmark->alone ? alone : speed);
	write_curves(sweep, file, benchmark, benchmark->alone ? LOCK_BOTH_P50 : LOCK_RATE);
	if (sweep->nodes == 1)
		return;
	fprintf(file, "set title '%s, on the network'\n"
		"set ylabel 'remote operations a lock'\nset format y '%%g'\n", benchmark->name);
	write_curves(sweep, file, benchmark, LOCK_REMOTE);
}

/* A nonlinear axis, because small shares of writers matter more. */
static const char few_writers[] =
	"set nonlinear x via sqrt(x) inverse x * x\n"
	"set xrange [0:100]\n"
	"set xtics (0, '' 0.2, 2, 5, 10, 20, '' 25, 50, 100)\n";

static int script_write(const struct lock_sweep *sweep)
{
	const struct lock_options *lock = &sweep->options->lock;
	const struct lock_benchmark *benchmark;
	unsigned int count = 0, kind, rows, columns;
	FILE *file = fopen(sweep->script, "we");

	if (!file)
		return complain(sweep->options, "%s: %s", sweep->script, strerror(errno));
	for (benchmark = lock_benchmarks; benchmark->name; benchmark++)
		count += is_drawn(sweep, benchmark) * (sweep->nodes > 1 ? 2 : 1);
	fputs("kinds = '", file);
	for (kind = 0; lock_kinds[kind] && !lock->kind; kind++)
		fprintf(file, "%s ", lock_kinds[kind]);
	if (lock->kind)
		fputs(lock->kind, file);
	fputs("'\n", file);
	columns = count > 1 ? 2 : 1;
	rows = (count + columns - 1) / columns;
	fprintf(file,
		"set terminal %s size %u,%u font 'sans,11' background rgb 'white'\n"
		"set output '%s'\n"
		"set datafile separator ','\n"
		"set datafile missing NaN\n"
		"set multiplot layout %u,%u\n"
		"set xlabel '%s'\n"
		"set yrange [0:*]\n"
		"set key outside right\n"
		"set grid\n%s", sweep->png ? "pngcairo" : "svg", 640 * columns, 320 * rows,
		sweep->picture, rows, columns,
		lock->vary ? lock_vary_names[lock->vary] : "writers, per cent",
		!lock->vary ? few_writers : lock->values[0] ? "set logscale x 2\n" : "");
	for (benchmark = lock_benchmarks; benchmark->name; benchmark++)
		if (is_drawn(sweep, benchmark))
			write_picture(sweep, file, benchmark);
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
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return complain(sweep->options, "there is no gnuplot here to draw %s (package gnuplot-nox): the values are in %s, run 'gnuplot %s' where gnuplot is",
				sweep->picture, sweep->values, sweep->script);
	return status ? complain(sweep->options, "gnuplot %s failed", sweep->script) : 0;
}

int lock_sweep_end(struct lock_sweep *sweep, bool complete)
{
	int ret = 0;

	if (ferror(sweep->csv) | fclose(sweep->csv))
		ret = complain(sweep->options, "%s: cannot be written", sweep->values);
	if (!ret && complete)
		ret = script_write(sweep);
	if (!ret && complete)
		ret = draw(sweep);
	free(sweep);
	return ret;
}
