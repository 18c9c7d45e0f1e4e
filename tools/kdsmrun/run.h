/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kdsmrun(1): what its files share. The front process starts an agent on each node, by fork() on
 * this node and by ssh on others. The agent starts the members of its node.
 *
 * The front talks to an agent through a pipe, which is the agent's standard input: each byte is the
 * number of a signal for the members, and the end of the pipe asks the agent to end them. So
 * nothing outlives a front that is killed. The agent answers by its exit status.
 */
#ifndef KDSMRUN_RUN_H
#define KDSMRUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

/* The first argument of an agent, by which main() knows one */
#define AGENT_MARK	"--agent"

/* Time that members have to end by themselves after one failed; and after SIGTERM. In ms */
#define RUN_GRACE	2000
#define RUN_KILL	5000

/* The task of an agent */
struct agent {
	const char *folder;		/* where the members run */
	const char *job;		/* name of the job */
	unsigned int size;		/* members of the job */
	unsigned int nodes;		/* nodes with members */
	unsigned int node;		/* number of this one, for messages */
	unsigned int first, count;	/* ranks of its members */
	bool local, label, count_operations;
	char **variables;		/* NAME=VALUE for the members, and NULL */
	char **command;			/* and NULL */
};

/* Run the members. Returns the exit status of the first one that failed, or 0. */
int agent_run(const struct agent *agent);
/* The agent as arguments for main(), and the reverse. The caller frees the array. */
char **agent_pack(const struct agent *agent, const char *program);
int agent_main(int argc, char **argv);

/* Exit status of kdsmrun for the status of a child, as wait() gives it */
int run_status(int status);
/* Time of CLOCK_MONOTONIC, in ms */
int64_t run_now(void);
/*
 * Block the signals that kdsmrun handles, and those that end it, and return a signalfd(2) for them.
 * Children call run_unblock() before exec().
 */
int run_signals(void);
void run_unblock(void);

#endif /* KDSMRUN_RUN_H */
