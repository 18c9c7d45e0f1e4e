// SPDX-License-Identifier: GPL-2.0
/* Ordered regions run in the order of iterations, with every schedule, also in loops in a row. */
#include <stdio.h>

#define ROUNDS	5

static int order[ROUNDS][100], n[ROUNDS];

static void note(int round, int i)
{
	/* Without a lock: ordered regions exclude each other. */
	order[round][n[round]++] = i;
}

static void check(const char *what, int step)
{
	int round, i, regions = 0, bad = 0;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < n[round]; i++)
			bad += order[round][i] != i * step;
		regions += n[round];
		n[round] = 0;
	}
	printf("%s: %d regions, %d out of order\n", what, regions, bad);
}

#define ORDERED(clause) \
	do { \
		_Pragma("omp parallel") \
		for (int round = 0; round < ROUNDS; round++) { \
			_Pragma(clause) \
			for (int i = 0; i < 60; i += 2) { \
				int x = i * i; \
				_Pragma("omp ordered") \
				note(round, i + 0 * x); \
			} \
		} \
		check(clause, 2); \
	} while (0)

int main(void)
{
	ORDERED("omp for ordered");
	ORDERED("omp for ordered schedule(static, 1)");
	ORDERED("omp for ordered schedule(static, 7)");
	ORDERED("omp for ordered schedule(dynamic)");
	ORDERED("omp for ordered schedule(dynamic, 4)");
	ORDERED("omp for ordered schedule(guided)");
	ORDERED("omp for ordered schedule(runtime)");
	ORDERED("omp for ordered schedule(dynamic) nowait");
	/* Iterations without the region, and a loop without iterations */
#pragma omp parallel
	{
#pragma omp for ordered schedule(dynamic)
		for (int i = 5; i < 5; i++)
#pragma omp ordered
			note(0, i);
#pragma omp for ordered schedule(dynamic)
		for (int i = 0; i < 50; i++)
			if (i % 5 == 0)
#pragma omp ordered
				note(0, i);
	}
	check("some", 5);
#pragma omp parallel for ordered schedule(dynamic, 2)
	for (long i = 0; i < 50; i++)
#pragma omp ordered
		note(0, i);
	check("parallel for", 1);
	return 0;
}
