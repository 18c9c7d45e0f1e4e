// SPDX-License-Identifier: GPL-2.0
/*
 * Objects of the heap: each thread allocates, and others use and free; atomic operations and
 * reductions on them; read(2), write(2), stdio and strings with them.
 */
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N	4000

struct item {
	struct item *next;
	int value;
	char text[20];
};

static volatile sig_atomic_t caught;

static void catch(int number)
{
	caught = number;
}

/* Threads put items in front of a list; then others walk it and free it. */
static void list(void)
{
	struct item *head = NULL, *next;
	long sum = 0, length = 0;

#pragma omp parallel for schedule(dynamic, 5)
	for (int i = 0; i < 200; i++) {
		struct item *item = malloc(sizeof(*item));

		item->value = i;
		snprintf(item->text, sizeof(item->text), "item %d", i);
#pragma omp critical
		{
			item->next = head;
			head = item;
		}
	}
#pragma omp parallel num_threads(3)
#pragma omp single
	for (; head; head = next) {
		next = head->next;
		sum += head->value;
		length += strlen(head->text);
		free(head);
	}
	printf("list: sum %ld, length %ld\n", sum, length);
}

static void atomics(void)
{
	long *count = calloc(8, sizeof(*count));
	double *real = calloc(1, sizeof(*real));
	short *small = calloc(4, sizeof(*small));
	unsigned char *bytes = calloc(8, 1);
	int i;

#pragma omp parallel for
	for (i = 0; i < 800; i++) {
#pragma omp atomic
		count[i % 8] += i;
#pragma omp atomic
		*real += 0.5;
#pragma omp atomic
		small[i % 4]++;
#pragma omp atomic
		bytes[i % 8] ^= i;
	}
	printf("atomic: %ld %ld %g %d %d %d\n", count[0], count[7], *real, small[3], bytes[1],
	       bytes[6]);
	free(count);
	free(real);
	free(small);
	free(bytes);
}

static void calls(void)
{
	char *buffer = malloc(N), *copy = NULL, name[] = "/tmp/kdsm-omp-XXXXXX";
	struct sigaction *action = calloc(1, sizeof(*action));
	int fd = mkstemp(name), i, wrong = 0;
	FILE *file;

#pragma omp parallel for
	for (i = 0; i < N; i++)
		buffer[i] = i % 100 + 1;
	/* The kernel reads memory that other threads wrote, and writes memory that they read. */
	wrong += write(fd, buffer, N) != N;
	copy = calloc(N, 1);
	wrong += pread(fd, copy, N, 0) != N;
#pragma omp parallel for reduction(+ : wrong)
	for (i = 0; i < N; i++)
		wrong += copy[i] != i % 100 + 1;
	file = fdopen(fd, "r+");
	rewind(file);
	fprintf(file, "%s", strcpy(copy, "a line\n"));
	rewind(file);
	wrong += !fgets(buffer, N, file) || strcmp(buffer, copy);
	fclose(file);
	unlink(name);
	action->sa_handler = catch;
	sigaction(SIGUSR1, action, NULL);
	raise(SIGUSR1);
	copy = realloc(copy, 100 * N);
	wrong += strcmp(copy, "a line\n");
	printf("calls: wrong %d, signal %d\n", wrong, caught == SIGUSR1);
	free(copy);
	free(buffer);
	free(action);
}

int main(int argc, char **argv)
{
	int names = 0;

	list();
	atomics();
	calls();
#pragma omp parallel num_threads(4) reduction(+ : names)
	names += argc == 1 && strlen(argv[0]) > 0;
	printf("names %d\n", names);
	return 0;
}
