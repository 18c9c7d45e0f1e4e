/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the entry points for clang share. */
#ifndef KDSM_OMP_KMPC_H
#define KDSM_OMP_KMPC_H

#include "internal.h"

typedef struct kmpc_ident kmpc_ident;
/* Parameters of most entry points: where the call is in the program, and the calling thread */
#define KMPC_IDENT	kmpc_ident *ident
#define KMPC_CALLER	KMPC_IDENT, int32_t gtid

/* The ABI has parameters that this library does not need. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

typedef void (*kmpc_micro)(int32_t *number, int32_t *bound, ...);

#endif /* KDSM_OMP_KMPC_H */
