// SPDX-License-Identifier: GPL-2.0
/* Critical regions, atomic operations, locks and nested locks exclude threads from each other. */
#include <omp.h>
#include <sched.h>
#include <stdio.h>

#define ROUNDS	200

static omp_lock_t lock;
static omp_nest_lock_t nest;
static long double wide;

/* Add 1, and let other threads run in between, now and then. */
static void increment(long *sum, int i)
{
	long former = *sum;

	if (i % 16 == 0)
		sched_yield();
	*sum = former + 1;
}

static void recurse(int depth, long *sum)
{
	omp_set_nest_lock(&nest);
	increment(sum, *sum % 1000);
	if (depth)
		recurse(depth - 1, sum);
	omp_unset_nest_lock(&nest);
}

int main(void)
{
	long unnamed = 0, first = 0, second = 0, locked = 0, nested = 0, tries = 0, captured = 0;
	double real = 0;
	int small = 0, most = 0, i, threads = 4, depth = 0;
	char byte = 0;
	short word = 0;

	omp_init_lock(&lock);
	omp_init_nest_lock(&nest);
#pragma omp parallel num_threads(threads) private(i) reduction(+ : captured)
	for (i = 0; i < ROUNDS; i++) {
		long old;

#pragma omp critical
		increment(&unnamed, i);
#pragma omp critical(one)
		{
			first++;
#pragma omp critical(two)
			increment(&second, i);
		}
		omp_set_lock(&lock);
		increment(&locked, i);
		omp_unset_lock(&lock);
		while (!omp_test_lock(&lock))
			;
		increment(&tries, i);
		omp_unset_lock(&lock);
		recurse(2, &nested);
#pragma omp atomic
		real += 0.5;
#pragma omp atomic
		wide += 0.25L;
#pragma omp atomic
		byte++;
#pragma omp atomic
		word ^= 3;
#pragma omp atomic capture
		old = small++;
		captured += old;
#pragma omp atomic write
		most = 7;
#pragma omp flush
	}
	printf("critical %ld %ld %ld\n", unnamed, first, second);
	printf("locks %ld %ld %ld\n", locked, tries, nested);
	printf("atomic %g %Lg %d %d %d %ld %d\n", real, wide, byte, word, small,
	       captured, most);
	depth = omp_test_nest_lock(&nest);
	depth = depth * 10 + omp_test_nest_lock(&nest);
	printf("depth %d\n", depth);
	omp_unset_nest_lock(&nest);
	omp_unset_nest_lock(&nest);
	omp_set_lock(&lock);
	printf("held %d\n", omp_test_lock(&lock));
	omp_unset_lock(&lock);
	omp_destroy_lock(&lock);
	omp_destroy_nest_lock(&nest);
	return 0;
}
