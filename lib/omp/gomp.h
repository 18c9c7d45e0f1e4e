/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the entry points for gcc share. */
#ifndef KDSM_OMP_GOMP_H
#define KDSM_OMP_GOMP_H

#include "internal.h"

/* The ABI has parameters that this library does not need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Number of iterations of an unsigned loop, which counts up or down */
static inline uint64_t gomp_iterations(bool up, uint64_t start, uint64_t end, uint64_t step)
{
	if (up)
		return start < end ? (end - start - 1) / step + 1 : 0;
	return start > end ? (start - end - 1) / -step + 1 : 0;
}

#endif /* KDSM_OMP_GOMP_H */
