// SPDX-License-Identifier: GPL-2.0
/*
 * mark COMMAND [ARGUMENT...]: runs the command between two marks (mark.h), so that all it
 * executes, from its start to its end, counts as one operation.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kdsm-bench/mark.h"

int main(int argc, char **argv)
{
	int status = 1;
	pid_t child;

	if (argc < 2) {
		fputs("usage: mark COMMAND [ARGUMENT...]\n", stderr);
		return 2;
	}
	mark_place(MARK_BEGIN);
	child = fork();
	if (!child) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		perror("mark");
	mark_place(MARK_END);
	return !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
