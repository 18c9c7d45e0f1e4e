// SPDX-License-Identifier: GPL-2.0
/* Parallel regions: sizes of teams, numbers of threads, nesting, and what a thread sees. */
#include <omp.h>
#include <stdio.h>

static int seen[64];

static void count(const char *what)
{
	int i, n = 0, wrong = 0;

	for (i = 0; i < 64; i++) {
		n += seen[i] != 0;
		wrong += seen[i] > 1;
		seen[i] = 0;
	}
	printf("%s: %d threads, %d seen twice\n", what, n, wrong);
}

static void regions(int threads)
{
	int size = 0;

#pragma omp parallel
	{
#pragma omp atomic
		seen[omp_get_thread_num()]++;
		if (omp_get_thread_num() == omp_get_num_threads() - 1)
			size = omp_get_num_threads();
	}
	printf("size %d, in parallel %d\n", size, omp_in_parallel());
	count("all");
#pragma omp parallel num_threads(threads)
	{
#pragma omp atomic
		seen[omp_get_thread_num()]++;
	}
	count("num_threads");
#pragma omp parallel if (threads > 100)
	{
#pragma omp atomic
		seen[omp_get_thread_num()]++;
		printf("if: level %d, active %d, size %d\n", omp_get_level(), omp_get_active_level(),
		       omp_get_num_threads());
	}
	count("if");
}

static void nested(void)
{
	int inner = 0, levels = 0, ancestors = 0;

	omp_set_max_active_levels(2);
#pragma omp parallel num_threads(3) reduction(+ : inner, levels, ancestors)
	{
		int number = omp_get_thread_num();

#pragma omp parallel num_threads(2) reduction(+ : inner, levels, ancestors)
		{
			inner++;
			levels += omp_get_level();
			ancestors += omp_get_ancestor_thread_num(1) == number &&
				     omp_get_team_size(1) == 3 && omp_get_team_size(2) == 2;
#pragma omp parallel reduction(+ : inner)
			inner += 100 * omp_get_num_threads();
		}
	}
	printf("nested: %d, levels %d, ancestors %d\n", inner, levels, ancestors);
	omp_set_max_active_levels(1);
#pragma omp parallel num_threads(3)
#pragma omp parallel num_threads(2)
#pragma omp atomic
	seen[omp_get_thread_num()]++;
	printf("one level: %d threads with number 0, %d with 1\n", seen[0], seen[1]);
	seen[0] = 0;
	seen[1] = 0;
}

int main(void)
{
	int i, sum = 0, many[20] = { 0 };

	regions(3);
	nested();
	omp_set_num_threads(2);
	printf("max %d\n", omp_get_max_threads());
	regions(5);
	for (i = 0; i < 200; i++)
#pragma omp parallel reduction(+ : sum)
		sum += i;
	printf("sum %d\n", sum);
	/* More than 16 shared variables */
	int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, j = 9, k = 10, l = 11, m = 12;
	int n = 13, o = 14, p = 15, q = 16, r = 17, s = 18, t = 19, u = 20;
#pragma omp parallel num_threads(2) shared(a, b, c, d, e, f, g, h, j, k, l, m, n, o, p, q, r, s, t, u)
	{
#pragma omp critical
		{
			many[0] += a; many[1] += b; many[2] += c; many[3] += d; many[4] += e;
			many[5] += f; many[6] += g; many[7] += h; many[8] += j; many[9] += k;
			many[10] += l; many[11] += m; many[12] += n; many[13] += o; many[14] += p;
			many[15] += q; many[16] += r; many[17] += s; many[18] += t; many[19] += u;
			a++; u++; q++;
		}
	}
	for (i = 0; i < 20; i++)
		printf(" %d", many[i]);
	printf("\n");
	return 0;
}
