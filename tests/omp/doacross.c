// SPDX-License-Identifier: GPL-2.0
/* Needs what libkdsm-omp does not have. */
#include <stdio.h>

int main(void)
{
	int x[20] = { 1 };

#pragma omp parallel for ordered(1)
	for (int i = 1; i < 20; i++) {
#pragma omp ordered depend(sink : i - 1)
		x[i] = x[i - 1] * 2;
#pragma omp ordered depend(source)
	}
	printf("%d\n", x[19]);
	return 0;
}
