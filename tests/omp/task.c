// SPDX-License-Identifier: GPL-2.0
/* Tasks: taskwait, if, final, untied, taskgroup, taskloop, dependences, and data of tasks. */
#include <omp.h>
#include <stdio.h>

static long fib(int n)
{
	long x, y;

	if (n < 2)
		return n;
#pragma omp task shared(x) if (n > 5)
	x = fib(n - 1);
#pragma omp task shared(y) final(n < 8) mergeable
	y = fib(n - 2);
#pragma omp taskwait
	return x + y;
}

static void leaves(int depth, long *count)
{
	int i;

	if (!depth) {
#pragma omp atomic
		++*count;
		return;
	}
	for (i = 0; i < 3; i++)
#pragma omp task untied
		leaves(depth - 1, count);
}

static int chain(int length)
{
	int x = 0, y = 0, i, wrong = 0;

	for (i = 0; i < length; i++) {
#pragma omp task depend(inout : x) firstprivate(i) shared(x)
		x = x == i ? x + 1 : -1000000;
#pragma omp task depend(in : x) depend(out : y) firstprivate(i) shared(x, y)
		y = x == i + 1 ? y + 1 : -1000000;
#pragma omp task depend(in : x) firstprivate(i) shared(x, wrong)
		if (x != i + 1)
#pragma omp atomic
			wrong++;
	}
#pragma omp taskwait
	return wrong ? -1 : x * 1000 + y;
}

/* A wavefront: each cell needs its left and upper neighbours. */
static long wavefront(int n)
{
	static long cell[24][24];

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (!i || !j)
#pragma omp task depend(out : cell[i][j])
				cell[i][j] = 1;
			else
#pragma omp task depend(in : cell[i - 1][j], cell[i][j - 1]) depend(out : cell[i][j])
				cell[i][j] = (cell[i - 1][j] + cell[i][j - 1]) % 1000003;
#pragma omp task depend(in : cell[n - 1][n - 1]) if (0)
	cell[0][0] = cell[n - 1][n - 1];
	return cell[0][0];
}

static int values(void)
{
	enum { n = 50 };
	int data[n], sum = 0, i;

	for (i = 0; i < n; i++)
		data[i] = i;
	for (i = 0; i < 10; i++)
#pragma omp task firstprivate(data) shared(sum)
	{
		int own = 0;

		for (int j = 0; j < n; j++)
			own += data[j];
#pragma omp atomic
		sum += own;
	}
	for (i = 0; i < n; i++)
		data[i] = -1;
#pragma omp taskwait
	return sum;
}

int main(void)
{
	long count = 0, seen = 0, loop = 0, serial = 0;
	int final = 0, last = 0, made = 0;

#pragma omp parallel
	{
#pragma omp single
		{
			printf("fib %ld\n", fib(14));
#pragma omp taskgroup
			leaves(5, &count);
			seen = count;
			printf("group %ld\n", seen);
			printf("chain %d\n", chain(20));
			printf("wavefront %ld\n", wavefront(10));
			printf("values %d\n", values());
#pragma omp taskloop grainsize(7) shared(loop)
			for (int i = 0; i < 1000; i++)
#pragma omp atomic
				loop += i;
			printf("taskloop %ld\n", loop);
#pragma omp taskloop num_tasks(13) shared(loop) lastprivate(last)
			for (long i = 1000; i > 0; i -= 3) {
#pragma omp atomic
				loop -= i;
				last = i;
			}
			printf("taskloop %ld, last %d\n", loop, last);
#pragma omp taskloop if (0) shared(loop)
			for (unsigned long i = 3; i < 30; i += 2)
				loop += i;
			printf("taskloop %ld\n", loop);
#pragma omp taskloop shared(loop)
			for (int i = 10; i < 10; i++)
				loop += 1000000;
			printf("taskloop %ld\n", loop);
#pragma omp task final(1) shared(final)
			final = omp_in_final();
#pragma omp taskwait
			printf("final %d\n", final);
#pragma omp task
			leaves(4, &serial);
		}
		/* The tasks complete at the barrier of single. */
		if (serial != 81)
#pragma omp atomic
			made++;
	}
	printf("barrier: %ld leaves, %d threads saw less\n", serial, made);
	/* Tasks outside of a team */
	printf("alone %ld %d\n", fib(10), chain(5));
	/* Every thread creates tasks, and the end of the region waits for them. */
	count = 0;
#pragma omp parallel num_threads(4)
	leaves(3, &count);
	printf("all %ld\n", count);
	return 0;
}
