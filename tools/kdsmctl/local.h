/* SPDX-License-Identifier: GPL-2.0 */
/* The node of a configuration that this machine is. */
#ifndef KDSMCTL_LOCAL_H
#define KDSMCTL_LOCAL_H

#include "config.h"

/* The number of the node, or -1 with a sentence in error. */
int local_node(const struct config *config, const char *path, char *error,
	       size_t error_size);

#endif /* KDSMCTL_LOCAL_H */
