// SPDX-License-Identifier: GPL-2.0
/* The task of fib.h. Always compiled as C, so that a program in C++ runs a task of C. */
#include "fib.h"

KDSM_TASK_DEFINE(uint64_t, fib, unsigned int, n)
{
	uint64_t a, b;

	if (n < 2)
		return n;
	KDSM_SPAWN(fib, n - 1);
	a = KDSM_CALL(fib, n - 2);
	b = KDSM_SYNC(fib);
	return a + b;
}
