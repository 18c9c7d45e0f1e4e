// SPDX-License-Identifier: GPL-2.0
/* Options of kdsm-bench lock and held. */
#include <stdio.h>
#include <string.h>

#include "common/cluster.h"
#include "lock.h"

/* ---- lists ---- */

static int take_share(void *values, unsigned int index, const char *text, char *reason)
{
	return real_parse(text, 0, 100, &((double *)values)[index], reason);
}

static int parse_writers(void *values, const char *text, char *reason)
{
	struct lock_options *lock = &((struct options *)values)->lock;
	int count = list_parse(text, MAX_LIST, take_share, lock->writers, reason);

	if (count < 0)
		return -1;
	lock->writer_count = count;
	return 0;
}

static int take_threshold(void *values, unsigned int index, const char *text, char *reason)
{
	const struct range range = { 1, KDSM_LOCK_T_MAX, 1 };
	struct kdsm_lock_settings *settings = values;
	unsigned int level = index + 2;
	uint64_t value;

	if (number_parse(text, &range, &value, reason))
		return -1;
	settings->t_l[level - 1] = value;
	settings->mask |= KDSM_LOCK_SET_T_L(level);
	return 0;
}

/*
 * Thresholds of level 2 and on. The last one also holds for further levels, but is not in the
 * mask there, because the lock may have fewer levels.
 */
static int parse_levels(void *values, const char *text, char *reason)
{
	struct kdsm_lock_settings *settings = &((struct options *)values)->lock.settings;
	int count = list_parse(text, KDSM_LOCK_LEVELS - 1, take_threshold, settings, reason);
	unsigned int level;

	if (count < 0)
		return -1;
	for (level = count + 2; level <= KDSM_LOCK_LEVELS; level++)
		settings->t_l[level - 1] = settings->t_l[count];
	return 0;
}

/* ---- --vary ---- */

const char *const lock_vary_names[] = {
	[VARY_NOTHING] = "",
	[VARY_THREADS] = "threads",
	[VARY_T_DC] = "t-dc",
	[VARY_T_R] = "t-r",
	[VARY_T_W] = "t-w",
	[VARY_T_L] = "t-l",
	[VARY_KEEP] = "keep",
};

#define VARY_COUNT (sizeof(lock_vary_names) / sizeof(lock_vary_names[0]))

static const struct range vary_ranges[] = {
	[VARY_THREADS] = { 1, MAX_THREADS, 1 },
	[VARY_T_DC] = { 1, KDSM_MAX_NODES, 1 },
	[VARY_T_R] = { 1, KDSM_LOCK_T_MAX, 1 },
	[VARY_T_W] = { 1, KDSM_LOCK_T_MAX, 1 },
	[VARY_T_L] = { 1, KDSM_LOCK_T_MAX, 1 },
	[VARY_KEEP] = { 0, INT64_MAX, 1 },
};

static int take_value(void *values, unsigned int index, const char *text, char *reason)
{
	struct lock_options *lock = values;
	const struct range *range = &vary_ranges[lock->vary];
	uint64_t *value = &lock->values[index];

	if (lock->vary == VARY_KEEP ? time_parse(text, range, value, reason) :
				      number_parse(text, range, value, reason))
		return -1;
	if (!index || value[0] > value[-1])
		return 0;
	snprintf(reason, REASON_SIZE, "values of %s must grow", lock_vary_names[lock->vary]);
	return -1;
}

/* SETTING=VALUE[,VALUE...] */
static int parse_vary(void *values, const char *text, char *reason)
{
	struct lock_options *lock = &((struct options *)values)->lock;
	size_t length = strcspn(text, "=");
	int count;

	for (lock->vary = VARY_THREADS; lock->vary < VARY_COUNT; lock->vary++)
		if (strlen(lock_vary_names[lock->vary]) == length &&
		    !strncmp(text, lock_vary_names[lock->vary], length))
			break;
	if (lock->vary == VARY_COUNT || !text[length]) {
		snprintf(reason, REASON_SIZE, "'%.48s' does not begin with threads=, t-dc=, t-r=, t-w=, t-l= or keep=",
			 text);
		return -1;
	}
	count = list_parse(text + length + 1, MAX_LIST, take_value, lock, reason);
	if (count < 0)
		return -1;
	lock->value_count = count;
	return 0;
}

/* ---- the table ---- */

static const char *const benchmarks[] = {
	"latency", "empty", "single", "workload", "wait", "table", "pair", NULL
};

static const char *const kinds[] = { "dmcs", "rma-mcs", "rma-rw", "none", NULL };

const struct cli_option lock_options_table[] = {
	{ "benchmark", 0, "BENCHMARK",
	  "Measure only latency, empty, single, workload, wait, table or pair", CLI_WORD,
	  AT(lock.benchmark), .words = benchmarks },
	{ "lock", 0, "KIND", "Measure only locks of kind dmcs, rma-mcs or rma-rw; or with none, without a lock",
	  CLI_WORD, AT(lock.kind), .words = kinds },
	{ "threads", 0, "N", "Threads on each node (1)", CLI_COUNT, AT(lock.threads),
	  .range = { 1, MAX_THREADS, 1 } },
	{ "writers", 0, "PERCENT[,PERCENT...]",
	  "Share of acquisitions for writing (2; with --sweep 0,0.2,2,5,10,20,25,50,100)",
	  CLI_PARSED, .parse = parse_writers },
	{ "t-dc", 0, "N", "rma-rw: every N-th node is a reader home", CLI_COUNT,
	  AT(lock.settings.t_dc), .range = { 1, KDSM_MAX_NODES, 1 } },
	{ "t-r", 0, "N", "rma-rw: nodes that read at once, by reader home, while a writer waits",
	  CLI_COUNT,
	  AT(lock.settings.t_r), .range = { 1, KDSM_LOCK_T_MAX, 1 } },
	{ "t-w", 0, "N", "rma-rw: writers in a row while readers wait", CLI_COUNT,
	  AT(lock.settings.t_w), .range = { 1, KDSM_LOCK_T_MAX, 1 } },
	{ "t-l", 0, "N[,N...]",
	  "rma-mcs, rma-rw: acquisitions in a row inside an element of level 2, 3 and so on; the last N is that of all further levels",
	  CLI_PARSED, .parse = parse_levels },
	{ "keep", 0, "NS", "Time that a node keeps an idle lock, in ns unless it has a suffix (forever)",
	  CLI_TIME, AT(lock.keep), .range = { 0, INT64_MAX, 1 } },
	{ "vary", 0, "SETTING=N[,N...]",
	  "Measure everything with each value of threads, t-dc, t-r, t-w, t-l or keep", CLI_PARSED,
	  .parse = parse_vary },
	{ "repeat", 0, "N", "Measure each line N times, and print medians and the spread (1)",
	  CLI_COUNT, AT(lock.repeat), .range = { 1, MAX_REPEAT, 1 } },
	{ "sweep", 0, "FILE",
	  "Write the results to FILE as comma-separated values, and draw curves into FILE.svg; if FILE ends in .svg or .png, draw into FILE, and write the values to FILE.csv",
	  CLI_TEXT, AT(lock.sweep) },
	{ 0 }
};

const struct cli_option held_options_table[] = {
	{ "threads", 0, "N", "Threads that read concurrently (4)", CLI_COUNT, AT(lock.threads),
	  .range = { 1, MAX_THREADS, 1 } },
	{ "repeat", 0, "N", "Rounds (5)", CLI_COUNT, AT(lock.repeat),
	  .range = { 1, MAX_REPEAT, 1 } },
	{ 0 }
};

/* ---- after all options ---- */

static void complete_settings(struct lock_options *lock)
{
	struct kdsm_lock_settings *settings = &lock->settings;

	if (settings->t_dc)
		settings->mask |= KDSM_LOCK_SET_T_DC;
	if (settings->t_r)
		settings->mask |= KDSM_LOCK_SET_T_R;
	if (settings->t_w)
		settings->mask |= KDSM_LOCK_SET_T_W;
	if (lock->keep == KDSM_LOCK_KEEP_FOREVER)
		return;
	settings->keep = lock->keep;
	settings->mask |= KDSM_LOCK_SET_KEEP;
}

void lock_options_complete(struct lock_options *lock)
{
	static const double shares[] = { 0, 0.2, 2, 5, 10, 20, 25, 50, 100 };

	complete_settings(lock);
	if (!lock->threads)
		lock->threads = 1;
	if (!lock->repeat)
		lock->repeat = 1;
	if (!lock->value_count)
		lock->value_count = 1;
	if (lock->writer_count)
		return;
	if (lock->sweep && !lock->vary) {
		memcpy(lock->writers, shares, sizeof(shares));
		lock->writer_count = sizeof(shares) / sizeof(shares[0]);
	} else {
		lock->writers[lock->writer_count++] = 2;
	}
}
