// SPDX-License-Identifier: GPL-2.0
/* kdsmctl lock show and watch: one lock, as text and as JSON. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cluster.h"
#include "common/json.h"
#include "common/waits.h"
#include "commands.h"
#include "lock.h"
#include "print.h"

/* Counters in the order of output: name in JSON, words in text (NULL: not shown in text) */
static const struct {
	const char *name, *words;
	bool of_readers;	/* only a lock of kind rma-rw has it */
} counters[KDSM_LOCK_STAT_COUNT] = {
	[KDSM_LOCK_STAT_LOCKS] = { "locks", "locked by a system call", false },
	[KDSM_LOCK_STAT_FAST] = { "fast", "locked without a system call", false },
	[KDSM_LOCK_STAT_READS] = { "reads", "locked for reading", true },
	[KDSM_LOCK_STAT_BUSY] = { "busy", "tries that found it held", false },
	[KDSM_LOCK_STAT_TIMEDOUT] = { "timed_out", "time-outs and interrupts", false },
	[KDSM_LOCK_STAT_DEAD] = { "dead", "owners that died", false },
	[KDSM_LOCK_STAT_ENTERED] = { "queued", "times that this node queued", false },
	[KDSM_LOCK_STAT_FREE] = { "free", "  and found the lock free", false },
	[KDSM_LOCK_STAT_FREED] = { "freed", "released without a waiter", false },
	[KDSM_LOCK_STAT_ATOMICS] = { "atomics", "remote atomics", false },
	[KDSM_LOCK_STAT_PUTS] = { "puts", "remote writes", false },
	[KDSM_LOCK_STAT_GETS] = { "gets", "remote reads", false },
	[KDSM_LOCK_STAT_MESSAGES] = { "messages", "messages", false },
	[KDSM_LOCK_STAT_SWITCHES] = { "switches", "switches of readers and writers", true },
	[KDSM_LOCK_STAT_READERS_IN_ROW] = { "readers_in_row", "most readers in a row", true },
	[KDSM_LOCK_STAT_WAITED] = { "waited", NULL, false },
	[KDSM_LOCK_STAT_LONGEST] = { "longest", NULL, false },
};

/* ---- numbers ---- */

static uint64_t all_locks(const struct kdsm_lock_info *info)
{
	return info->stats[KDSM_LOCK_STAT_LOCKS] + info->stats[KDSM_LOCK_STAT_FAST] +
	       info->stats[KDSM_LOCK_STAT_READS];
}

/* ---- text ---- */

static void settings_text(const struct kdsm_lock_info *info)
{
	const struct kdsm_lock_settings *settings = &info->settings;
	char time[HUMAN_SIZE];
	unsigned int i;

	printf("%-9s", "settings");
	for (i = 2; i <= info->levels && i <= KDSM_LOCK_LEVELS; i++)
		if (!(settings->mask & KDSM_LOCK_SET_T_L(i)))
			continue;
		else if (settings->t_l[i - 1] == KDSM_LOCK_T_L_AUTO)
			printf("T_L.%u=auto ", i);
		else
			printf("T_L.%u=%u ", i, settings->t_l[i - 1]);
	if (settings->mask & KDSM_LOCK_SET_T_DC)
		printf("T_DC=%u ", settings->t_dc);
	if (settings->mask & KDSM_LOCK_SET_T_R)
		printf("T_R=%u ", settings->t_r);
	if (settings->mask & KDSM_LOCK_SET_T_W)
		printf("T_W=%u ", settings->t_w);
	if (settings->keep == KDSM_LOCK_KEEP_FOREVER)
		printf("keep=forever\n");
	else
		printf("keep=%.15g (%s)\n", settings->keep / 1e3, human_time(settings->keep, time));
}

static void levels_text(const struct kdsm_lock_info *info)
{
	char words[64];
	unsigned int i;

	for (i = 1; i <= info->levels && i <= KDSM_LOCK_LEVELS; i++) {
		if (i == info->levels)
			snprintf(words, sizeof(words), "level %u: from thread to thread here", i);
		else if (i + 1 == info->levels)
			snprintf(words, sizeof(words), "level %u: from here to another node", i);
		else
			snprintf(words, sizeof(words), "level %u: to another part of level %u", i,
				 i + 1);
		printf("  %-34s %12llu\n", words, (unsigned long long)info->handed[i - 1]);
	}
}

/* Print a line for each class, from the first to the last that is not empty. */
static void histogram_text(const struct kdsm_lock_info *info)
{
	static const char bar[] = "########################################";
	int first = 0, last = KDSM_LOCK_WAITS - 1, i;
	uint64_t most = 1;
	char time[HUMAN_SIZE];

	while (!info->waits[first])
		first++;
	while (!info->waits[last])
		last--;
	for (i = first; i <= last; i++)
		if (info->waits[i] > most)
			most = info->waits[i];
	for (i = first; i <= last; i++)
		printf("  up to %-12s %12llu %.*s\n", human_time(2ULL << i, time),
		       (unsigned long long)info->waits[i],
		       (int)((sizeof(bar) - 1) * info->waits[i] / most), bar);
}

static void waits_text(const struct kdsm_lock_info *info)
{
	uint64_t waits = waits_count(info);
	char mean[HUMAN_SIZE], median[HUMAN_SIZE], longest[HUMAN_SIZE];

	printf("\nwaits    %llu", (unsigned long long)waits);
	if (!waits) {
		printf("\n");
		return;
	}
	printf(": mean %s, median %s, longest %s, which is %.1f times the median\n",
	       human_time((double)info->stats[KDSM_LOCK_STAT_WAITED] / waits, mean),
	       human_time(waits_median(info), median),
	       human_time(info->stats[KDSM_LOCK_STAT_LONGEST], longest), waits_fairness(info));
	histogram_text(info);
}

static int show_text(const struct lock *lock, void *data)
{
	const struct kdsm_lock_info *info = &lock->info;
	bool readers = info->kind == KDSM_LOCK_RMA_RW;
	char buffer[KDSM_NAME_SIZE];
	unsigned int i;

	(void)data;
	printf("lock     %s/%s, number %u\n", lock->region, lock_label(lock, buffer),
	       info->number);
	printf("kind     %s, %u levels\n", lock_kind_name(info->kind), info->levels);
	settings_text(info);
	printf("\non this node\n");
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++) {
		if (!counters[i].words || (counters[i].of_readers && !readers))
			continue;
		printf("  %-34s %12llu\n", counters[i].words, (unsigned long long)info->stats[i]);
	}
	printf("\nhanded over to a waiter\n");
	levels_text(info);
	waits_text(info);
	return 0;
}

/* ---- JSON ---- */

static struct json_object *numbers_json(const uint64_t *numbers, unsigned int count)
{
	struct json_object *array = json_object_new_array();
	unsigned int i;

	for (i = 0; i < count; i++)
		json_object_array_add(array, json_object_new_uint64(numbers[i]));
	return array;
}

static struct json_object *t_l_json(const uint32_t *t_l, unsigned int levels)
{
	struct json_object *array = json_object_new_array();
	unsigned int i;

	for (i = 0; i < levels; i++)
		json_object_array_add(array, t_l[i] == KDSM_LOCK_T_L_AUTO ?
				      json_object_new_string("auto") :
				      json_object_new_int64(t_l[i]));
	return array;
}

struct json_object *lock_json(const struct lock *lock)
{
	const struct kdsm_lock_info *info = &lock->info;
	struct json_object *out = json_object_new_object();
	unsigned int i, levels = info->levels < KDSM_LOCK_LEVELS ? info->levels : KDSM_LOCK_LEVELS;
	uint64_t numbers[KDSM_LOCK_WAITS];

	json_text(out, "region", lock->region);
	json_number(out, "number", info->number);
	json_text(out, "name", info->name);
	json_text(out, "kind", lock_kind_name(info->kind));
	json_number(out, "levels", info->levels);
	json_number(out, "t_dc", info->settings.t_dc);
	json_number(out, "t_r", info->settings.t_r);
	json_number(out, "t_w", info->settings.t_w);
	json_object_object_add(out, "t_l", t_l_json(info->settings.t_l, levels));
	json_number(out, "keep", info->settings.keep);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		json_number(out, counters[i].name, info->stats[i]);
	for (i = 0; i < levels; i++)
		numbers[i] = info->handed[i];
	json_object_object_add(out, "handed", numbers_json(numbers, levels));
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		numbers[i] = info->waits[i];
	json_object_object_add(out, "waits", numbers_json(numbers, KDSM_LOCK_WAITS));
	json_object_object_add(out, "fairness", json_object_new_double(waits_fairness(info)));
	return out;
}

static int show_json(const struct lock *lock, void *data)
{
	struct json_object *out = lock_json(lock);

	(void)data;
	json_print(out);
	json_object_put(out);
	return 0;
}

/* ---- the commands ---- */

int lock_show(int argc, char **argv)
{
	const char *name;
	bool json;

	name = parse_name_and_json("Show the settings, counters and waits of a lock that is open "
				   "on this node. NAME is its name, REGION/NAME or REGION/NUMBER.",
				   argc, argv, &json);
	return lock_find(name, O_RDONLY, json ? show_json : show_text, NULL) ?
	       EXIT_FAILURE : EXIT_SUCCESS;
}

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

struct watch {
	uint64_t locks;		/* at the last look, at this time */
	struct timespec time;
};

static int watch_text(const struct lock *lock, void *data)
{
	struct watch *watch = data;
	uint64_t locks = all_locks(&lock->info);
	struct timespec now;
	double passed;

	clock_gettime(CLOCK_MONOTONIC, &now);
	show_text(lock, NULL);
	if (watch->time.tv_sec) {
		passed = now.tv_sec - watch->time.tv_sec +
			 (now.tv_nsec - watch->time.tv_nsec) / 1e9;
		printf("\nlast     %.3g s: %.0f locks a second\n", passed,
		       (locks - watch->locks) / passed);
	}
	watch->locks = locks;
	watch->time = now;
	return 0;
}

struct arguments {
	const char *name;
	uint64_t period;	/* in ns */
};

static int take_argument(void *values, unsigned int index, const char *text, char *reason)
{
	const struct range range = { 1, MOST_SECONDS, SECOND };
	struct arguments *arguments = values;

	if (!index)
		return take_name(&arguments->name, text, reason);
	return time_parse(text, &range, &arguments->period, reason);
}

static const struct cli watch_cli = {
	.doc = "Show a lock every second, or every SECONDS, until interrupted.",
	.args = "NAME [SECONDS]",
	.least = 1,
	.most = 2,
	.argument = take_argument,
};

/* Run until a signal ends the command, the lock is closed, or writing to stdout fails. */
int lock_watch(int argc, char **argv)
{
	struct sigaction at_end = { .sa_handler = end }, ignore = { .sa_handler = SIG_IGN };
	struct arguments arguments = { .period = SECOND };
	struct watch watch = { .locks = 0 };
	struct timespec pause;

	cli_parse(&watch_cli, argc, argv, &arguments);
	sigaction(SIGINT, &at_end, NULL);
	sigaction(SIGTERM, &at_end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	pause.tv_sec = arguments.period / SECOND;
	pause.tv_nsec = arguments.period % SECOND;
	while (!ended) {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		if (lock_find(arguments.name, O_RDONLY, watch_text, &watch))
			return ended ? EXIT_SUCCESS : EXIT_FAILURE;
		if (!isatty(STDOUT_FILENO))
			putchar('\n');
		if (fflush(stdout)) {
			/* A pipe's reader may end: avoid the exit handler's message. */
			if (errno == EPIPE)
				_exit(EXIT_SUCCESS);
			return EXIT_FAILURE;
		}
		if (!ended)
			nanosleep(&pause, NULL);
	}
	return EXIT_SUCCESS;
}
