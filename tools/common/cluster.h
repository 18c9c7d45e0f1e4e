/* SPDX-License-Identifier: GPL-2.0 */
/* Names of enumerators, signs of a cluster, and the message if it cannot be opened */
#ifndef COMMON_CLUSTER_H
#define COMMON_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

/* Names of domains of atomics, by enum kdsm_domain; NULL ends the list. */
extern const char *const domain_names[];

/* Names of ways to find nodes of a table, by enum kdsm_table_find; NULL ends the list. */
extern const char *const find_ways[];

/* Names of kinds of locks, from KDSM_LOCK_DMCS on; NULL ends the list. */
extern const char *const lock_kinds[];
/* The name of an enum kdsm_lock_kind, or "?" if the module is newer and has more kinds. */
const char *lock_kind_name(uint32_t kind);

/* Tell whether kdsm_open() failed with error because this machine has no module. */
bool cluster_absent(int error);

/*
 * Return the sign that this process is meant for a cluster, for a message: a configuration file
 * below root ("" for this machine), or a variable of a job on several nodes. NULL: there is
 * none. The string is valid until the next call.
 */
const char *cluster_sign(const char *root);

/* Warn that a machine without the module, and without such a sign, does the work alone. */
void cluster_warn_alone(const char *doing);

#endif /* COMMON_CLUSTER_H */
