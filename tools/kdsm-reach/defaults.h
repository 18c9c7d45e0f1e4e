/* SPDX-License-Identifier: GPL-2.0 */
/* Defaults of kdsm-reach that depend on the machine */
#ifndef DEFAULTS_H
#define DEFAULTS_H

#include <kdsm/reach.h>

#include "common/machine.h"

/*
 * Fill in workers, table and cache of *options where they are 0, for a cluster of that many
 * nodes. On a cluster all nodes must have the same sizes, so there they do not depend on what
 * other processes use, and little on the exact size of the memory.
 */
void defaults_set(struct kdsm_reach_options *options, const struct machine *machine,
		  unsigned int nodes);

/*
 * Fill in table and cache for a virtual run of that many nodes, which share the memory of the
 * machine. They do not depend on what other processes use, so that two runs are the same.
 */
void defaults_virtual(struct kdsm_reach_options *options, const struct machine *machine,
		      unsigned int nodes);

#endif /* DEFAULTS_H */
