/* SPDX-License-Identifier: GPL-2.0 */
/* Which node of a configuration this machine is */
#ifndef KDSMCTL_LOCAL_H
#define KDSMCTL_LOCAL_H

#include <net/if.h>

#include "config.h"

/*
 * Return the number of the only node that has an address of this machine, or -1 with a sentence
 * in error. path is the file's name in the sentence.
 */
int local_node(const struct config *config, const char *path, char *error,
	       size_t error_size);

/*
 * Store the name of the interface of this machine that has the address of the node. Returns 0, or
 * -1 if there is none.
 */
int local_interface(const struct config_node *node, char name[IF_NAMESIZE]);

#endif /* KDSMCTL_LOCAL_H */
