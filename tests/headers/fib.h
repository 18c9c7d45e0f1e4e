/* SPDX-License-Identifier: GPL-2.0 */
/* A task that is written in C, for C and C++. */
#ifndef FIB_H
#define FIB_H

#include <kdsm/task.h>

#ifdef __cplusplus
extern "C" {
#endif

KDSM_TASK_DECLARE(uint64_t, fib, unsigned int, n)

#ifdef __cplusplus
}
#endif
#endif
