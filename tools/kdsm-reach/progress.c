// SPDX-License-Identifier: GPL-2.0
/* Progress and warnings of kdsm-reach, see progress.h. */
#include <err.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <unistd.h>

#include "common/json.h"
#include "common/number.h"
#include "print.h"
#include "progress.h"

#define MINUTE	(60 * SECOND)
#define NEVER	(INT64_MAX / 2)		/* ns: centuries */

static bool overwrite;	/* one line on a terminal */

/* Remote operations per second since the last report */
static double remote_rate(const struct kdsm_reach_progress *progress)
{
	static double seconds;
	static uint64_t remote;
	double rate = (progress->remote - remote) / (progress->seconds - seconds);

	seconds = progress->seconds;
	remote = progress->remote;
	return rate;
}

static void print_states(FILE *line, const struct kdsm_reach_progress *progress)
{
	mpf_t about;

	if (!mpz_sgn(progress->states))		/* not counted yet, or on another node */
		return;
	mpf_init(about);
	mpf_set_z(about, progress->states);
	if (mpz_sizeinbase(progress->states, 10) > 12)
		gmp_fprintf(line, ", %.2Fe states", about);
	else
		gmp_fprintf(line, ", %Zd states", progress->states);
	mpf_clear(about);
}

/* One write a line, so that lines of other nodes and of signal handlers do not mix with it */
static void print_line(void *context, const struct kdsm_reach_progress *progress)
{
	char text[512] = "";
	FILE *line = fmemopen(text, sizeof(text), "w");

	(void)context;
	if (!line)
		return;
	fprintf(line, "%slevel %u", overwrite ? "\r\033[K" : "kdsm-reach: ", progress->level);
	if (progress->order)
		fprintf(line, ", order %s", order_word(progress->order));
	print_states(line, progress);
	fprintf(line, ", table %.1f %%, %.2e tasks, %.0f s",
		100.0 * progress->table_used / progress->table_size, (double)progress->tasks,
		progress->seconds);
	if (progress->level_seconds >= 1)
		fprintf(line, ", %.0f s since the level", progress->level_seconds);
	if (progress->remote)
		fprintf(line, ", remote %.0f/s", remote_rate(progress));
	if (!overwrite)
		fprintf(line, "\n");
	fclose(line);
	fputs(text, stderr);
}

static void print_object(void *context, const struct kdsm_reach_progress *progress)
{
	struct json_object *object = json_object_new_object();

	(void)context;
	json_text(object, "event", "progress");
	json_number(object, "level", progress->level);
	if (progress->order)
		json_text(object, "order", order_word(progress->order));
	json_mpz(object, "states", progress->states);
	json_number(object, "table_used", progress->table_used);
	json_number(object, "table_size", progress->table_size);
	json_number(object, "tasks", progress->tasks);
	json_number(object, "remote", progress->remote);
	json_seconds(object, "seconds", progress->seconds);
	json_seconds(object, "level_seconds", progress->level_seconds);
	json_line(object, stderr);
}

static void print_warning(void *context, const char *text)
{
	(void)context;
	progress_end();
	warnx("%s", text);
}

void progress_choose(struct kdsm_reach_options *options, uint64_t interval, bool json)
{
	bool chosen = interval != PROGRESS_DEFAULT;

	overwrite = !chosen && isatty(STDERR_FILENO);
	options->progress = json && !overwrite ? print_object : print_line;
	options->warn = print_warning;
	if (!overwrite)
		options->progress_interval = !chosen ? MINUTE : interval ? interval : NEVER;
}

void progress_end(void)
{
	if (!overwrite)
		return;
	fprintf(stderr, "\r\033[K");
	fflush(stderr);
}
