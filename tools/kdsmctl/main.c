// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl(8): administration of a cluster. Here: which command, and its usage.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static const char help[] =
"usage: kdsmctl COMMAND [OPTION...]\n"
"\n"
"  up -f FILE [-n NODE] [-w SECONDS] [--atomics auto|sw|hca|glob]\n"
"                          bring this node of the cluster in FILE up\n"
"  down                    take this node down\n"
"  status [--json]         this node, and how it sees the others\n"
"  stats [--json] [-w SECONDS]\n"
"                          counters of remote operations; -w: rates, repeatedly\n"
"  region list [--json]    the regions that this node knows\n"
"  region show NAME [--json]\n"
"                          one of them, and the counters of a coherent one\n"
"  region set NAME lease=TIME\n"
"                          how long a node keeps a block of policy strict, 0s to 1s\n"
"  region destroy NAME     remove a region's name; its memory goes with its last user\n"
"  lock list [--json]      the locks that are open on this node\n"
"  lock show NAME [--json] one of them: its settings, counters and waits\n"
"  lock watch NAME [SECONDS]\n"
"                          the same, every second or so\n"
"  lock set NAME SETTING=VALUE...\n"
"                          T_L.2=N and so on, T_DC=N, T_R=N, T_W=N, keep=US or forever\n"
"                          of a lock in use; NAME is a name, or REGION/NAME, REGION/NUMBER\n"
"\n"
"  -f, --file FILE         configuration, see kdsm.conf(5)\n"
"  -n, --node NODE         number of this node; by default found by its addresses\n"
"  -w, --wait SECONDS      up: wait until all nodes answer, for so long at most\n"
"  -w, --watch SECONDS     stats: how often\n"
"\n"
"Exit status: 0 success, 1 failure, 2 wrong usage. See kdsmctl(8).\n";

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "up", command_up },
	{ "down", command_down },
	{ "status", command_status },
	{ "stats", command_stats },
	{ "region", command_region },
	{ "lock", command_lock },
};

int usage_error(const char *format, ...)
{
	va_list args;

	fputs("kdsmctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs(" (kdsmctl --help)\n", stderr);
	return EXIT_USAGE;
}

int only_json(int argc, char **argv, int *json)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	int c;

	*json = 0;
	while ((c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (c != 'j')
			return usage_error("%s does not take %s", argv[0],
					   argv[optind - 1]);
		*json = 1;
	}
	if (optind < argc)
		return usage_error("%s does not take '%s'", argv[0], argv[optind]);
	return 0;
}

int parse_seconds(const char *word, double *seconds)
{
	char *end;

	errno = 0;
	*seconds = strtod(word, &end);
	if (errno || end == word || *end || !isfinite(*seconds) ||
	    *seconds <= 0 || *seconds > 1e6)
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	int status;

	if (!name)
		return usage_error("which command? up, down, status, stats, region or lock");
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name))
			continue;
		status = commands[i].run(argc - 1, argv + 1);
		/* A full disk or a closed pipe must not look like success. */
		if (fflush(stdout) || ferror(stdout)) {
			fprintf(stderr, "kdsmctl: cannot write the output: %s\n",
				strerror(errno));
			return EXIT_FAILURE;
		}
		return status;
	}
	return usage_error("there is no command '%s'; up, down, status, stats, region and lock are",
			   name);
}
