// SPDX-License-Identifier: GPL-2.0
/* Sections, single with copyprivate, master, masked, and orphaned constructs. */
#include <omp.h>
#include <stdio.h>

static int private;
#pragma omp threadprivate(private)

static int runs[20];

static void orphan(void)
{
	/* Serial if no team is around */
#pragma omp for schedule(dynamic)
	for (int i = 0; i < 10; i++)
#pragma omp atomic
		runs[i]++;
#pragma omp single
	runs[10]++;
#pragma omp sections
	{
#pragma omp section
		runs[11]++;
#pragma omp section
		runs[12]++;
	}
#pragma omp barrier
}

static void show(const char *what)
{
	printf("%s:", what);
	for (int i = 0; i < 20; i++) {
		printf(" %d", runs[i]);
		runs[i] = 0;
	}
	printf("\n");
}

int main(void)
{
	int sum = 0, size = 0, last = 0, round, wrong = 0, value;

	for (round = 0; round < 50; round++) {
#pragma omp parallel private(value)
		{
#pragma omp sections lastprivate(last)
			{
#pragma omp section
				runs[0]++;
#pragma omp section
				runs[1]++;
#pragma omp section
				{
					runs[2]++;
					last = round;
				}
			}
#pragma omp sections nowait
			{
#pragma omp section
				runs[3]++;
#pragma omp section
				runs[4]++;
			}
#pragma omp single
			runs[5]++;
#pragma omp single nowait
			runs[6]++;
#pragma omp master
			runs[7]++;
#pragma omp single copyprivate(value, private)
			{
				value = round * 3;
				private = round * 5;
			}
			if (value != round * 3 || private != round * 5)
#pragma omp atomic
				wrong++;
		}
#pragma omp parallel sections
		{
#pragma omp section
			runs[8]++;
#pragma omp section
			runs[9]++;
		}
	}
	show("sections");
	printf("last %d, wrong %d\n", last, wrong);
	orphan();
	show("orphan, serial");
#pragma omp parallel
	orphan();
	show("orphan");
#pragma omp parallel num_threads(3)
	{
#pragma omp masked filter(2)
		size = omp_get_thread_num();
#pragma omp atomic
		sum += 2;
	}
	printf("masked %d, sum %d\n", size, sum);
	return 0;
}
