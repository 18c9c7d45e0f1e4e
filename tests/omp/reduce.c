// SPDX-License-Identifier: GPL-2.0
/* Reductions: one variable, several, arrays, all operators, an own operator, and a barrier after. */
#include <stdio.h>

struct pair {
	long sum, most;
};

#pragma omp declare reduction(join : struct pair : omp_out.sum += omp_in.sum, \
	omp_out.most = omp_out.most > omp_in.most ? omp_out.most : omp_in.most) \
	initializer(omp_priv = { 0, 0 })

static long global;

int main(void)
{
	long sum = 0, product = 1, least = 1 << 30, most = -1;
	unsigned int both = ~0U, any = 0, odd = 0;
	int all = 1, some = 0, round, wrong = 0, i, j;
	struct pair pair = { 5, 5 };
	/* Not static: clang 14 adds to a static array itself, and not to the copy of the thread. */
	double list[8] = { 0 };
	float real = 0;

	for (round = 0; round < 20; round++)
#pragma omp parallel for reduction(+ : global)
		for (i = 0; i < 1000; i++)
			global += i;
	printf("one %ld\n", global);
#pragma omp parallel for reduction(+ : sum, real) reduction(* : product) reduction(min : least) \
	reduction(max : most) reduction(& : both) reduction(| : any) reduction(^ : odd) \
	reduction(&& : all) reduction(|| : some) reduction(join : pair) schedule(dynamic, 7)
	for (i = 1; i <= 100; i++) {
		sum -= i;
		product *= i % 10 == 0 ? 2 : 1;
		least = i < least ? i : least;
		most = i > most ? i : most;
		both &= ~(1U << i % 32 / 2);
		any |= 1U << i % 20;
		odd ^= i;
		all = all && i;
		some = some || i == 50;
		real += 1;
		pair.sum += i;
		pair.most = i > pair.most ? i : pair.most;
	}
	printf("many %ld %ld %ld %ld %x %x %x %d %d %g %ld %ld\n", sum, product, least, most, both,
	       any, odd, all, some, real, pair.sum, pair.most);
#pragma omp parallel private(j)
	for (j = 0; j < 50; j++) {
#pragma omp for reduction(+ : list[:8])
		for (i = 0; i < 80; i++)
			list[i % 8] += i;
		if (list[3] != 390 * (j + 1))
#pragma omp atomic
			wrong++;
#pragma omp barrier
	}
	printf("array");
	for (i = 0; i < 8; i++)
		printf(" %g", list[i]);
	printf(", wrong %d\n", wrong);
	return 0;
}
