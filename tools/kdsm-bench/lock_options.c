// SPDX-License-Identifier: GPL-2.0
/* The command line of kdsm-bench lock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lock.h"

enum {
	KEY_BENCHMARK = 512,
	KEY_LOCK,
	KEY_THREADS,
	KEY_WRITERS,
	KEY_T_DC,
	KEY_T_R,
	KEY_T_W,
	KEY_T_L,
	KEY_KEEP,
	KEY_VARY,
	KEY_REPEAT,
	KEY_SWEEP,
};

const char *const lock_vary_names[] = {
	[VARY_THREADS] = "threads",
	[VARY_T_DC] = "t-dc",
	[VARY_T_R] = "t-r",
	[VARY_T_W] = "t-w",
	[VARY_T_L] = "t-l",
	[VARY_KEEP] = "keep",
};

#define VARY_COUNT (sizeof(lock_vary_names) / sizeof(lock_vary_names[0]))

static const struct argp_option arguments[] = {
	{ "benchmark", KEY_BENCHMARK, "WHAT", 0,
	  "latency, empty, single, workload, wait or table; default all", 0 },
	{ "lock", KEY_LOCK, "KIND", 0, "dmcs, rma-mcs or rma-rw; default all", 0 },
	{ "threads", KEY_THREADS, "N", 0, "On each node; default 1", 0 },
	{ "writers", KEY_WRITERS, "P[,P...]", 0,
	  "Acquisitions for writing, per cent; default 2, with --sweep 0,0.2,2,5,10,20,25,50,100",
	  0 },
	{ "t-dc", KEY_T_DC, "N", 0, "rma-rw: nodes for one counter of readers", 0 },
	{ "t-r", KEY_T_R, "N", 0, "rma-rw: readers in a row while a writer waits", 0 },
	{ "t-w", KEY_T_W, "N", 0, "rma-rw: writers in a row while readers wait", 0 },
	{ "t-l", KEY_T_L, "N[,N...]", 0,
	  "rma-mcs, rma-rw: in a row inside an element of level 2, 3 and so on; the last N is that of all further levels",
	  0 },
	{ "keep", KEY_KEEP, "NS", 0, "How long a node keeps an idle lock; default for ever", 0 },
	{ "vary", KEY_VARY, "WHAT=N,N[,N...]", 0,
	  "All of it with each value of threads, t-dc, t-r, t-w, t-l or keep", 0 },
	{ "repeat", KEY_REPEAT, "N", 0,
	  "Measure each line so often, and print the one in the middle; default 1", 0 },
	{ "sweep", KEY_SWEEP, "FILE", 0,
	  "Write the results to FILE as comma-separated values, and draw curves into FILE.svg, or, if FILE ends in .svg or .png, into FILE, with the values in FILE.csv",
	  0 },
	{ 0 }
};

static uint64_t number(struct argp_state *state, const char *word, char **end, uint64_t least,
		       uint64_t most)
{
	unsigned long long value;

	errno = 0;
	value = strtoull(word, end, 10);
	if (*end == word || errno || word[0] < '0' || word[0] > '9' ||
	    (**end && **end != ',') || value < least || value > most)
		argp_error(state, "'%s' is not from %llu to %llu", word,
			   (unsigned long long)least, (unsigned long long)most);
	return value;
}

static uint64_t one_number(struct argp_state *state, const char *word, uint64_t least,
			   uint64_t most)
{
	char *end;
	uint64_t value = number(state, word, &end, least, most);

	if (*end)
		argp_error(state, "'%s' is not one number", word);
	return value;
}

static void writers(struct argp_state *state, const char *word, struct lock_options *lock)
{
	double value;
	char *end;

	for (lock->writer_count = 0;; word = end + 1) {
		value = strtod(word, &end);
		if (end == word || (*end && *end != ',') || !(value >= 0 && value <= 100))
			argp_error(state, "'%s' is not from 0 to 100", word);
		if (lock->writer_count == MAX_LIST)
			argp_error(state, "more than %d shares of writers", MAX_LIST);
		lock->writers[lock->writer_count++] = value;
		if (!*end)
			break;
	}
}

static void levels(struct argp_state *state, const char *word, struct lock_options *lock)
{
	unsigned int level = 2;
	uint32_t last = 0;
	char *end;

	for (;; word = end + 1, level++) {
		if (level > KDSM_LOCK_LEVELS)
			argp_error(state, "there are %d levels at most", KDSM_LOCK_LEVELS);
		last = number(state, word, &end, 1, KDSM_LOCK_T_MAX);
		lock->settings.t_l[level - 1] = last;
		lock->settings.mask |= KDSM_LOCK_SET_T_L(level);
		if (!*end)
			break;
	}
	/* Without being asked for: there may be fewer levels. */
	while (++level <= KDSM_LOCK_LEVELS)
		lock->settings.t_l[level - 1] = last;
}

static void vary(struct argp_state *state, const char *word, struct lock_options *lock)
{
	static const uint64_t most[] = {
		[VARY_THREADS] = 1024,
		[VARY_T_DC] = KDSM_MAX_NODES,
		[VARY_T_R] = KDSM_LOCK_T_MAX,
		[VARY_T_W] = KDSM_LOCK_T_MAX,
		[VARY_T_L] = KDSM_LOCK_T_MAX,
		[VARY_KEEP] = INT64_MAX,
	};
	const char *value = strchr(word, '=');
	uint64_t least, last = 0;
	unsigned int what;
	char *end;

	for (what = VARY_THREADS; value && what < VARY_COUNT; what++)
		if (strlen(lock_vary_names[what]) == (size_t)(value - word) &&
		    !strncmp(word, lock_vary_names[what], value - word))
			break;
	if (!value || what == VARY_COUNT)
		argp_error(state, "'%s' is none of threads=, t-dc=, t-r=, t-w=, t-l= and keep=",
			   word);
	least = what != VARY_KEEP;
	lock->vary = what;
	for (lock->value_count = 0;; value = end) {
		last = number(state, value + 1, &end, least, most[what]);
		if (lock->value_count == MAX_LIST)
			argp_error(state, "more than %d values", MAX_LIST);
		if (lock->value_count && last <= lock->values[lock->value_count - 1])
			argp_error(state, "values of %s must grow", lock_vary_names[what]);
		lock->values[lock->value_count++] = last;
		if (!*end)
			break;
	}
}

static void benchmark(struct argp_state *state, const char *name, struct lock_options *lock)
{
	const struct lock_benchmark *benchmark = lock_benchmarks;

	while (benchmark->name && strcmp(benchmark->name, name))
		benchmark++;
	if (!benchmark->name)
		argp_error(state, "there is no benchmark '%s'", name);
	lock->benchmark = benchmark->name;
}

static void defaults(struct lock_options *lock)
{
	static const double shares[] = { 0, 0.2, 2, 5, 10, 20, 25, 50, 100 };

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

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct lock_options *lock = state->input;
	struct kdsm_lock_settings *settings = &lock->settings;

	switch (key) {
	case ARGP_KEY_INIT:
		lock->threads = 1;
		lock->repeat = 1;
		return 0;
	case KEY_BENCHMARK:
		benchmark(state, arg, lock);
		return 0;
	case KEY_LOCK:
		if (!lock_kind_of(arg))
			argp_error(state, "there is no lock '%s'", arg);
		lock->kind = arg;
		return 0;
	case KEY_THREADS:
		lock->threads = one_number(state, arg, 1, 1024);
		return 0;
	case KEY_WRITERS:
		writers(state, arg, lock);
		return 0;
	case KEY_T_DC:
		settings->t_dc = one_number(state, arg, 1, KDSM_MAX_NODES);
		settings->mask |= KDSM_LOCK_SET_T_DC;
		return 0;
	case KEY_T_R:
		settings->t_r = one_number(state, arg, 1, KDSM_LOCK_T_MAX);
		settings->mask |= KDSM_LOCK_SET_T_R;
		return 0;
	case KEY_T_W:
		settings->t_w = one_number(state, arg, 1, KDSM_LOCK_T_MAX);
		settings->mask |= KDSM_LOCK_SET_T_W;
		return 0;
	case KEY_T_L:
		levels(state, arg, lock);
		return 0;
	case KEY_KEEP:
		settings->keep = one_number(state, arg, 0, INT64_MAX);
		settings->mask |= KDSM_LOCK_SET_KEEP;
		return 0;
	case KEY_VARY:
		vary(state, arg, lock);
		return 0;
	case KEY_REPEAT:
		lock->repeat = one_number(state, arg, 1, MAX_REPEAT);
		return 0;
	case KEY_SWEEP:
		lock->sweep = arg;
		return 0;
	case ARGP_KEY_END:
		defaults(lock);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp lock_argp = {
	.options = arguments,
	.parser = parse,
};
