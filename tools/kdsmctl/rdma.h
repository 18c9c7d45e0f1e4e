/* SPDX-License-Identifier: GPL-2.0 */
/* RDMA devices of this machine, as sysfs shows them */
#ifndef KDSMCTL_RDMA_H
#define KDSMCTL_RDMA_H

#include <net/if.h>
#include <stdbool.h>

#define RDMA_NAME	64	/* room for the name of a device, in bytes */

struct rdma_port {
	char device[RDMA_NAME];
	unsigned int port;
	char state[16];		/* ACTIVE, DOWN and so on */
};

/* Find the port of the RDMA device to which a network interface belongs. -1: it has none. */
int rdma_find(const char *interface, struct rdma_port *port);
/* Read the first line of a file of sysfs, without its newline. -1: there is no such file. */
int sysfs_read(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* KDSMCTL_RDMA_H */
