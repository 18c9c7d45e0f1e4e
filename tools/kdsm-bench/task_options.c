// SPDX-License-Identifier: GPL-2.0
/* Options of kdsm-bench task and steal. */
#include <kdsm/task.h>

#include "bench.h"

static const char *const programs[] = { "fib", "queens", "uts", "matmul", NULL };

static const char *const amounts[] = {
	[KDSM_STEAL_ONE] = "one",
	[KDSM_STEAL_HALF] = "half",
	NULL
};

const struct cli_option task_options_table[] = {
	{ "workers", 'w', "N", "Workers on each node (2)", CLI_COUNT, AT(task.workers),
	  .range = { 1, 1000, 1 } },
	{ "steal", 0, "AMOUNT", "Number of tasks that a thief takes: one or half (one)", CLI_CHOICE,
	  AT(task.steal), .words = amounts },
	{ 0 }
};

const struct cli_option task_programs_table[] = {
	{ "program", 0, "PROGRAM", "Run only fib, queens, uts or matmul", CLI_WORD,
	  AT(task.program), .words = programs },
	{ "fib", 0, "N", "Number of the Fibonacci number of fib (30)", CLI_COUNT, AT(task.fib),
	  .range = { 5, 60, 1 } },
	{ "depth", 0, "N", "Depth of the tree of uts (8); 10 is tree T1", CLI_COUNT, AT(task.depth),
	  .range = { 2, 20, 1 } },
	{ 0 }
};
