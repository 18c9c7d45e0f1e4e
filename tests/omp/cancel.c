// SPDX-License-Identifier: GPL-2.0
/* Without OMP_CANCELLATION, requests to cancel have no effect. */
#include <stdio.h>

int main(void)
{
	int n = 0;

#pragma omp parallel
	{
#pragma omp for reduction(+ : n)
		for (int i = 0; i < 100; i++) {
			n++;
			if (i == 10) {
#pragma omp cancel for
			}
#pragma omp cancellation point for
		}
#pragma omp cancel parallel
	}
	printf("%d iterations\n", n);
	return 0;
}
