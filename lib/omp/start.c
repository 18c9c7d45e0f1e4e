// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs of several members. A launcher starts the program once for each member. Before main(),
 * the members join a job, and share the variables, the heap and the stacks of the program. Member 0
 * runs main(), the others serve its teams.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>
#include "job/internal.h"
#include "span.h"

#define MEMORY		(UINT64_C(256) << 20)	/* default of KDSM_MEMORY: of the heap, in bytes */

/* ---- the start ---- */

/* Pointers to code and to libraries' variables travel, so they must mean the same everywhere. */
static void check_places(void)
{
	uint64_t own[3] = {
		(uintptr_t)dlsym(RTLD_DEFAULT, "stdout"), (uintptr_t)ko_round,
		(uintptr_t)dlsym(RTLD_DEFAULT, "_start"),
	};

	if (!ko_rank)
		memcpy(ko_shared->places, own, sizeof(own));
	kdsm_job_barrier(ko_job);
	if (memcmp(ko_shared->places, own, sizeof(own)))
		ko_fatal("member %u has the program or its libraries at other addresses than member 0: "
			 "are they the same files?", ko_rank);
}

/*
 * Start the program again without randomised addresses, unless it has been. The kernel would write
 * the area of rseq(2), which is on each stack, whenever it moves a thread.
 */
static void fix_addresses(char **argv)
{
	int persona = personality(0xffffffff);
	const char *tunables = getenv("GLIBC_TUNABLES");
	char text[1024];

	if (persona & ADDR_NO_RANDOMIZE)
		return;
	if (persona < 0 || personality(persona | ADDR_NO_RANDOMIZE) < 0)
		ko_fatal("cannot switch off the randomisation of addresses: %s", strerror(errno));
	snprintf(text, sizeof(text), "%s%sglibc.pthread.rseq=0", tunables ? tunables : "",
		 tunables ? ":" : "");
	setenv("GLIBC_TUNABLES", text, 1);
	execv("/proc/self/exe", argv);
	ko_fatal("cannot start the program again: %s", strerror(errno));
}

/* Read how many members the program has, and how much memory. */
static void read_launch(struct kd_launch *launch)
{
	const char *bad;

	if (kd_launch_read(launch, &bad))
		ko_fatal("the value of %s is not valid", bad);
	if (!launch->memory)
		launch->memory = MEMORY;
	if (launch->size)
		ko_members = launch->size;
}

static void join(const struct kd_launch *launch)
{
	ko_span_join(launch->memory);
	check_places();
	ko_memory_share();
	ko_image_share();
}

/* ---- main() on a shared stack ---- */

typedef int (*main_function)(int argc, char **argv, char **environment);

static main_function user_main;
static int arguments, result;
static char **argument;
static uint32_t done;		/* main() has returned */

/* Copy strings, which are on the private stack of the process, to shared memory. */
static char **share_strings(char **from)
{
	size_t count = 0, i;
	char **to;

	while (from[count])
		count++;
	to = ko_shared_alloc(16, (count + 1) * sizeof(*to));
	for (i = 0; to && i < count; i++) {
		to[i] = ko_shared_alloc(16, strlen(from[i]) + 1);
		if (!to[i])
			break;
		strcpy(to[i], from[i]);
	}
	if (!to || i < count)
		ko_fatal("no memory for the arguments and the environment");
	to[count] = NULL;
	return to;
}

static void *run_main(void *data)
{
	(void)data;
	ko_team_main();
	result = user_main(arguments, argument, environ);
	__atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
	ko_futex_wake(&done, 1);
	return NULL;
}

/* The others leave as well; memory stays mapped, because the program is still on its stack. */
static void end(void)
{
	static bool ended;

	if (__atomic_exchange_n(&ended, true, __ATOMIC_SEQ_CST))
		return;
	if (!ko_rank && ko_round(KO_ROUND_END) != KO_ROUND_END)
		return;
	kdsm_job_barrier(ko_job);
	kd_job_unwatch(ko_job);
	kd_shared_leave(kdsm_job_cluster(ko_job));
}

static int main_on_stack(int argc, char **argv, char **environment)
{
	pthread_attr_t attr;
	pthread_t thread;
	size_t size = 0;
	void *stack = ko_stack(0, 0, &size);
	int ret;

	atexit(end);
	arguments = argc;
	argument = share_strings(argv);
	environ = share_strings(environment);
	pthread_attr_init(&attr);
	/* pthread_join() would wait for a word of the stack, which no futex in a region can be. */
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ret = pthread_attr_setstack(&attr, stack, size);
	if (!ret)
		ret = pthread_create(&thread, &attr, run_main, NULL);
	if (ret)
		ko_fatal("cannot start main() on a stack of %zu bytes: %s", size, strerror(ret));
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST))
		ko_futex_wait(&done, 0, UINT64_MAX);
	return result;
}

typedef int (*start_function)(main_function main, int argc, char **argv, void (*init)(void),
			      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

int __libc_start_main(main_function main, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*loader_fini)(void), void *stack_end);

/*
 * The first function of a program calls this one instead of libc's. The loader has prepared all
 * libraries by now; the constructors of the program itself have not run.
 */
KO_PUBLIC int __libc_start_main(main_function main, int argc, char **argv, void (*init)(void),
				void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
	start_function start = (start_function)dlsym(RTLD_NEXT, "__libc_start_main");
	struct kd_launch launch;

	read_launch(&launch);
	if (ko_members == 1)
		return start(main, argc, argv, init, fini, loader_fini, stack_end);
	fix_addresses(argv);
	join(&launch);
	user_main = main;
	if (!ko_rank)
		return start(main_on_stack, argc, argv, init, fini, loader_fini, stack_end);
	ko_member_serve();
	end();
	exit(0);
}
