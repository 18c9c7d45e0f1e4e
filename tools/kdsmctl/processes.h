/* SPDX-License-Identifier: GPL-2.0 */
/* Processes of this machine that have regions open. */
#ifndef KDSMCTL_PROCESSES_H
#define KDSMCTL_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>
#include <kdsm/uapi.h>

struct process {
	pid_t pid;
	char command[17];	/* as in /proc/PID/comm */
	char (*regions)[KDSM_NAME_SIZE];	/* each once */
	size_t count;
};

/*
 * Call visit() for each process with a region open, in no order. A caller that is not root misses
 * processes of other users.
 */
void processes_walk(void (*visit)(const struct process *process, void *data), void *data);

#endif /* KDSMCTL_PROCESSES_H */
