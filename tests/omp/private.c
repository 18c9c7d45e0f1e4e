// SPDX-License-Identifier: GPL-2.0
/* threadprivate, copyin, firstprivate and lastprivate; threadprivate lasts from region to region. */
#include <omp.h>
#include <stdio.h>

/* The table is larger than the stack of a thread. */
static int counter = 7, table[300000];
static __thread int plain;
#pragma omp threadprivate(counter, table)

int main(void)
{
	int wrong = 0, sum = 0, i, first = 42, last = 0;
	int many[300];

	for (i = 0; i < 300; i++)
		many[i] = i;
#pragma omp parallel num_threads(4) reduction(+ : wrong)
	{
		wrong += counter != 7;
		counter = omp_get_thread_num() * 100;
		table[5] = omp_get_thread_num();
		plain = omp_get_thread_num();
	}
#pragma omp parallel num_threads(4) reduction(+ : wrong, sum)
	{
		wrong += counter != omp_get_thread_num() * 100;
		wrong += table[5] != omp_get_thread_num() || plain != omp_get_thread_num();
		sum += counter;
	}
	printf("kept: wrong %d, sum %d\n", wrong, sum);
	counter = 55;
	table[299999] = 66;
#pragma omp parallel num_threads(4) copyin(counter, table) reduction(+ : wrong)
	wrong += counter != 55 || table[299999] != 66;
	printf("copyin: wrong %d\n", wrong);
#pragma omp parallel for num_threads(4) firstprivate(first, many) lastprivate(last) reduction(+ : wrong)
	for (i = 0; i < 100; i++) {
		wrong += first < 42 || many[299] < 299;
		first++;
		many[299]++;
		last = i;
	}
	printf("first %d %d, last %d, wrong %d\n", first, many[299], last, wrong);
	return 0;
}
