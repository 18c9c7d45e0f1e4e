/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What pgas.c (one operation) and vector.c (several) share. */
#ifndef KDSM_OPERATION_H
#define KDSM_OPERATION_H

#include "core/core.h"

/* Do one operation on the own part by the CPU; 0 or its status. */
int kdsm_own_op(struct kdsm_region *region, struct kdsm_op *op) KDSM_PRIVATE;

/* KDSM_OP_FIND in a part of size bytes: 0, -EINVAL, -ERANGE, -EIO. */
int kdsm_find_in(uint8_t *part, uint64_t size, uint64_t index, struct kdsm_find *find) KDSM_PRIVATE;

/* KDSM_OP_STEAL in a part of size bytes, that of node: 0, -EINVAL, -ERANGE, -EIO. */
int kdsm_steal_in(uint8_t *part, uint64_t size, unsigned int node, uint64_t crew,
		  struct kdsm_theft *theft) KDSM_PRIVATE;

/*
 * Whether the CPU may do it: the own part, and nothing with an atomic that a device must do.
 * What a theft changes only CPUs do.
 */
static inline bool kdsm_op_is_own(const struct kdsm_region *region,
				  const struct kdsm_op *op)
{
	return op->node == region->node &&
	       (region->cpu_atomics ||
		op->opcode == KDSM_OP_GET || op->opcode == KDSM_OP_PUT ||
		op->opcode == KDSM_OP_STEAL);
}

#endif /* KDSM_OPERATION_H */
