// SPDX-License-Identifier: GPL-2.0
/* Loops of all types and schedules: each iteration runs once, and the last value is the last's. */
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static unsigned char hits[4000];

static void check(const char *what, long last)
{
	long i, n = 0, twice = 0, sum = 0;

	for (i = 0; i < (long)sizeof(hits); i++) {
		n += hits[i] != 0;
		twice += hits[i] > 1;
		sum += hits[i] * i;
	}
	printf("%s: %ld iterations, %ld twice, sum %ld, last %ld\n", what, n, twice, sum, last);
	memset(hits, 0, sizeof(hits));
}

static void hit(long i)
{
#pragma omp atomic
	hits[i]++;
}

#define PRAGMA(text)	_Pragma(#text)

/* clause is of the loop, or nothing */
#define LOOP(type, from, relation, to, step, offset, clause) \
	do { \
		type i, last = 0; \
		PRAGMA(omp parallel) \
		{ \
			PRAGMA(omp for lastprivate(last) clause) \
			for (i = from; i relation to; i += step) { \
				hit((long)(i - (offset))); \
				last = i - (offset); \
			} \
		} \
		check(#type " " #from " " #relation " " #to " by " #step " " #clause, (long)last); \
	} while (0)

#define ALL(clause) \
	do { \
		LOOP(int, 0, <, 1000, 1, 0, clause); \
		LOOP(int, 7, <=, 1000, 3, 0, clause); \
		LOOP(int, 1000, >, -1, -7, 0, clause); \
		LOOP(int, 5, <, 5, 1, 0, clause); \
		LOOP(int, 5, <, 7, 1, 0, clause); \
		LOOP(unsigned int, 3000000000U, <, 3000001000U, 3, 3000000000U, clause); \
		LOOP(long, -500L, <, 500L, 1, -500L, clause); \
		LOOP(long, LONG_MAX - 1001, <, LONG_MAX - 1, 10, LONG_MAX - 1001, clause); \
		LOOP(unsigned long, 0UL, <, 3000UL, 2, 0, clause); \
		LOOP(unsigned long, ULONG_MAX - 1000, <, ULONG_MAX - 10, 7, ULONG_MAX - 1000, clause); \
		LOOP(unsigned long, 2000UL, >, 100UL, -19, 0, clause); \
		LOOP(short, -100, <, 100, 3, -100, clause); \
	} while (0)

int main(void)
{
	int chunk = 5;
	long total = 0;

	ALL();
	ALL(schedule(static));
	ALL(schedule(static, 1));
	ALL(schedule(static, 16));
	ALL(schedule(dynamic));
	ALL(schedule(dynamic, 16));
	ALL(schedule(dynamic, chunk));
	ALL(schedule(guided));
	ALL(schedule(guided, 16));
	ALL(schedule(monotonic: dynamic, 3));
	ALL(schedule(nonmonotonic: guided));
	ALL(schedule(auto));
	ALL(schedule(runtime));
	omp_set_schedule(omp_sched_static, 3);
	ALL(schedule(runtime));
	omp_set_schedule(omp_sched_guided, 0);
	ALL(schedule(runtime));
	ALL(ordered schedule(static, 7));
	/* Loops that follow each other without a barrier */
#pragma omp parallel
	for (int round = 0; round < 200; round++) {
#pragma omp for schedule(dynamic) nowait
		for (int i = 0; i < 17; i++)
#pragma omp atomic
			total += i;
#pragma omp for schedule(guided) nowait
		for (int i = 0; i < 23; i++)
#pragma omp atomic
			total += i;
#pragma omp single nowait
		{
#pragma omp atomic
			total += 1000;
		}
	}
	printf("total %ld\n", total);
#pragma omp parallel for collapse(2) schedule(dynamic, 3)
	for (int i = 0; i < 30; i++)
		for (int j = 0; j < 40; j++)
			hit(i * 40 + j);
	check("collapse", 0);
#pragma omp parallel for schedule(dynamic, 3)
	for (long i = 100; i < 400; i += 2)
		hit(i);
	check("parallel for dynamic", 0);
#pragma omp parallel for schedule(runtime)
	for (long i = 100; i < 400; i += 2)
		hit(i);
	check("parallel for runtime", 0);
#pragma omp parallel for schedule(guided)
	for (unsigned long i = 100; i < 400; i += 2)
		hit(i);
	check("parallel for guided", 0);
	return 0;
}
