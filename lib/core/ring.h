/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rings inside the library: ring.c is the shell, ring_local.c stands in for the module. */
#ifndef KDSM_CORE_RING_H
#define KDSM_CORE_RING_H

#include <kdsm/ring.h>

#include "core/core.h"

struct kdsm_ring {
	struct kdsm_region *region;
	uint8_t *memory;		/* size bytes, as KDSM_IOC_RING_SETUP lays them out */
	size_t size;
	struct kdsm_ring_head *head;	/* these point into memory */
	struct kdsm_ring_entry *entries;
	struct kdsm_ring_completion *completions;
	uint8_t *buffer;
	size_t buffer_size;
	uint32_t mask;			/* number of entries, minus 1 */
	uint32_t prepared;		/* tail of submissions, with those not submitted */
	int fd;
};

/* ---- ring_local.c ---- */

/*
 * As KDSM_IOC_RING_SETUP, mapping and KDSM_IOC_RING_ENTER, for backends without a module: enter
 * performs the operations by kd_vector() before it returns.
 */
int kdsm_local_ring_setup(struct kdsm_ring_setup *arg, void **memory) KDSM_PRIVATE;
int kdsm_local_ring_enter(struct kdsm_ring *ring, struct kdsm_ring_enter *arg) KDSM_PRIVATE;
/* Every completion has been read: poll() of the ring's file waits again. */
void kdsm_local_ring_empty(struct kdsm_ring *ring) KDSM_PRIVATE;

#endif /* KDSM_CORE_RING_H */
