/* SPDX-License-Identifier: GPL-2.0 */
/* How much of the machine this process may use, with the limits of its control groups */
#ifndef COMMON_MACHINE_H
#define COMMON_MACHINE_H

#include <stdint.h>

struct machine {
	unsigned int processors;
	uint64_t memory;	/* in bytes, whether other processes use it or not */
	uint64_t available;	/* in bytes, as other processes leave it; at most memory */
};

/* Read what this process may use. Values that the system does not tell are lower bounds. */
void machine_read(struct machine *machine);

/*
 * Lower the values of *machine to those of the files under root: root/proc/meminfo, and the
 * limits of the control groups (version 1 and 2) that root/proc/self/cgroup names, and of all
 * groups above them. Part of a processor counts as a processor.
 */
void machine_limit(struct machine *machine, const char *root);

#endif /* COMMON_MACHINE_H */
