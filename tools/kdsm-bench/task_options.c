// SPDX-License-Identifier: GPL-2.0
/* The command line of kdsm-bench task and steal. */
#include <stdlib.h>
#include <string.h>
#include <kdsm/task.h>

#include "bench.h"

enum { KEY_WORKERS = 'w', KEY_STEAL = 0x300, KEY_PROGRAM, KEY_FIB, KEY_DEPTH };

static const char *const programs[] = { "fib", "queens", "uts", "matmul", NULL };

static const struct argp_option arguments[] = {
	{ "workers", KEY_WORKERS, "N", 0, "On each node; default 2", 0 },
	{ "steal", KEY_STEAL, "one|half", 0, "How much a thief takes; default one", 0 },
	{ "program", KEY_PROGRAM, "NAME", 0, "task: fib, queens, uts or matmul; default all", 0 },
	{ "fib", KEY_FIB, "N", 0, "task: which Fibonacci number; default 30", 0 },
	{ "depth", KEY_DEPTH, "N", 0, "task: of the tree of uts; default 8; 10 is T1", 0 },
	{ 0 }
};

static uint32_t parse_number(struct argp_state *state, const char *word, long least, long most)
{
	char *end;
	long value = strtol(word, &end, 10);

	if (end == word || *end || value < least || value > most)
		argp_error(state, "'%s' is not from %ld to %ld", word, least, most);
	return value;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct task_options *options = state->input;
	unsigned int i = 0;

	switch (key) {
	case ARGP_KEY_INIT:
		*options = (struct task_options){ .workers = 2, .fib = 30, .depth = 8 };
		return 0;
	case KEY_WORKERS:
		options->workers = parse_number(state, arg, 1, 1000);
		return 0;
	case KEY_STEAL:
		if (strcmp(arg, "one") && strcmp(arg, "half"))
			argp_error(state, "'%s' is not one or half", arg);
		options->half = !strcmp(arg, "half");
		return 0;
	case KEY_PROGRAM:
		while (programs[i] && strcmp(arg, programs[i]))
			i++;
		if (!programs[i])
			argp_error(state, "'%s' is not fib, queens, uts or matmul", arg);
		options->program = programs[i];
		return 0;
	case KEY_FIB:
		options->fib = parse_number(state, arg, 5, 60);
		return 0;
	case KEY_DEPTH:
		options->depth = parse_number(state, arg, 2, 20);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp task_argp = { .options = arguments, .parser = parse };
