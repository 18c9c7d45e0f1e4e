// SPDX-License-Identifier: GPL-2.0
/* Workers of tasks on one node: sleeping, many at once, in several processes, dying */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tasks.h"
#include "task/internal.h"

/* ---- sleepers ---- */

static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

KDSM_VOID_TASK(nothing)
{
}

/* Ends only after another worker has stolen the child. */
KDSM_VOID_TASK(until_stolen)
{
	KDSM_SPAWN(nothing);
	while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
		KDSM_POLL();
	KDSM_SYNC(nothing);
}

static void test_sleepers(void **state)
{
	struct kdsm_tasks_counts before = { .argsz = sizeof(before) };
	struct kdsm_tasks_counts after = { .argsz = sizeof(after) };
	struct timespec begin, end;
	struct job job;
	uint64_t cpu;
	unsigned int i;

	(void)state;
	job_open(&job, 4, DEQUE, KDSM_STEAL_ONE);
	nap(300);
	kdsm_tasks_counts(job.tasks, &before);
	assert_true(before.sleeps >= 4);
	cpu = cpu_time();
	nap(1000);
	/* Four workers look around now and then, and one thread beats. */
	assert_true(cpu_time() - cpu < 100000000);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 0; i < 50; i++) {
		assert_int_equal(KDSM_RUN(job.tasks, NULL, until_stolen), 0);
		nap(2);
	}
	/* A worker that is not woken sleeps for a second or more. */
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 25);
	kdsm_tasks_counts(job.tasks, &after);
	assert_true(after.stolen >= before.stolen + 50);
	assert_true(after.wakes > before.wakes);
	job_close(&job);
}

/* ---- tasks stolen while waiting, nested on one stack ---- */

#define NESTED		400
#define FRAME		16384	/* stack that each nested task uses, in bytes */
#if defined(__SANITIZE_THREAD__)
#define FRAMES		100	/* size of the stack, in frames, with room for the sanitizer */
#else
#define FRAMES		40
#endif

static unsigned int nested;	/* tasks that have begun */
static unsigned int nester;	/* worker that nests the tasks on its stack, plus 1 */

/* Ends when another task has begun, or after 5 ms. */
KDSM_VOID_TASK(until_another)
{
	unsigned int before = __atomic_load_n(&nested, __ATOMIC_RELAXED), ms;

	for (ms = 0; ms < 5 && __atomic_load_n(&nested, __ATOMIC_RELAXED) == before; ms++)
		nap(1);
}

/*
 * Wait for a task that another worker steals, so that this worker steals the next of these
 * tasks meanwhile.
 */
static __attribute__((noinline)) void nest(struct kdsm_worker *kdsm_worker,
					   struct kdsm_task *kdsm_head)
{
	volatile char frame[FRAME];
	unsigned int tries;

	for (tries = 0; tries < FRAME; tries += 512)
		frame[tries] = 1;
	KDSM_SPAWN(until_another);
	for (tries = 0; tries < 50 && !__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED);
	     tries++) {
		KDSM_POLL();
		nap(1);
	}
	KDSM_SYNC(until_another);
	frame[0]++;
}

KDSM_VOID_TASK(one_of_many)
{
	unsigned int none = 0, own = KDSM_WORKER() + 1;

	__atomic_fetch_add(&nested, 1, __ATOMIC_RELAXED);
	__atomic_compare_exchange_n(&nester, &none, own, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (__atomic_load_n(&nester, __ATOMIC_RELAXED) == own)
		nest(kdsm_worker, kdsm_head);
	else
		nap(2);		/* and leave more tasks to the nester */
}

KDSM_VOID_TASK(many)
{
	unsigned int i;

	for (i = 0; i < NESTED; i++)
		KDSM_SPAWN(one_of_many);
	while (__atomic_load_n(&nested, __ATOMIC_RELAXED) < NESTED) {
		KDSM_POLL();
		nap(1);
	}
	for (i = 0; i < NESTED; i++)
		KDSM_SYNC(one_of_many);
}

/* The stack cannot hold all tasks: the waiter stops stealing once half of the stack is used. */
static void test_stack(void **state)
{
	struct job job = { .attr = { .workers = 3, .deque = 1024, .node_workers = 32,
				     .stack = FRAMES * FRAME } };

	(void)state;
	job_region(&job);
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &job.attr, &job.tasks), 0);
	assert_int_equal(KDSM_RUN(job.tasks, NULL, many), 0);
	assert_int_equal(nested, NESTED);
	job_close(&job);
}

/* The waiter sleeps until the thief is done. */
KDSM_VOID_TASK(slow)
{
	nap(100);
}

KDSM_VOID_TASK(wait_for_slow)
{
	KDSM_SPAWN(slow);
	while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
		KDSM_POLL();
	KDSM_SYNC(slow);
}

static void test_waiting(void **state)
{
	struct job job;
	uint64_t cpu;
	unsigned int i;

	(void)state;
	job_open(&job, 2, DEQUE, KDSM_STEAL_ONE);
	cpu = cpu_time();
	for (i = 0; i < 10; i++)
		assert_int_equal(KDSM_RUN(job.tasks, NULL, wait_for_slow), 0);
	assert_true(cpu_time() - cpu < 300000000);
	job_close(&job);
}

/* ---- many ---- */

struct caller {
	struct kdsm_tasks *tasks;
	unsigned int number;
	int failures;
};

static void *call_often(void *arg)
{
	struct caller *caller = arg;
	uint64_t result;
	unsigned int i;

	for (i = 0; i < 30; i++) {
		UNIT_CHECK(&caller->failures,
			   !KDSM_RUN(caller->tasks, &result, fib, 10 + caller->number));
		UNIT_CHECK(&caller->failures, result == plain_fib(10 + caller->number));
	}
	return NULL;
}

static void test_callers(void **state)
{
	struct caller callers[6];
	pthread_t threads[6];
	struct job job;
	unsigned int i;

	(void)state;
	job_open(&job, 3, DEQUE, KDSM_STEAL_ONE);
	for (i = 0; i < 6; i++) {
		callers[i] = (struct caller){ job.tasks, i, 0 };
		pthread_create(&threads[i], NULL, call_often, &callers[i]);
	}
	for (i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].failures, 0);
	}
	job_close(&job);
}

static void test_workers(void **state)
{
	static const uint32_t counts[] = { 32, 1, 5, 2, 16 };
	struct job job;
	unsigned int i;

	(void)state;
	job_open(&job, 1, DEQUE, KDSM_STEAL_HALF);
	for (i = 0; i < 5; i++) {
		assert_int_equal(kdsm_tasks_set_workers(job.tasks, counts[i]), 0);
		known_values(job.tasks, 0);
	}
	assert_int_equal(kdsm_tasks_set_workers(job.tasks, 33), -EUSERS);
	known_values(job.tasks, 0);
	job_close(&job);
}

/* Workers join and leave while others work. */
static void *come_and_go(void *arg)
{
	struct kdsm_tasks *tasks;
	struct job *job = arg;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		if (kdsm_tasks_open(job->region, OFFSET, &job->attr, &tasks))
			return arg;
		nap(i % 5);
		kdsm_tasks_close(tasks);
	}
	return NULL;
}

static void test_coming(void **state)
{
	pthread_t thread;
	struct job job;
	void *failed;
	unsigned int i;

	(void)state;
	job_open(&job, 2, DEQUE, KDSM_STEAL_ONE);
	pthread_create(&thread, NULL, come_and_go, &job);
	for (i = 0; i < 10; i++)
		known_values(job.tasks, 2);
	pthread_join(thread, &failed);
	assert_null(failed);
	job_close(&job);
}

/* ---- processes ---- */

/* Pid of the process that runs the task */
KDSM_TASK(int, where, unsigned int, ms)
{
	nap(ms);
	return getpid();
}

KDSM_TASK(unsigned int, others, unsigned int, tasks)
{
	unsigned int count = 0, i;

	for (i = 0; i < tasks; i++)
		KDSM_SPAWN(where, 5);
	for (i = 0; i < tasks; i++)
		count += KDSM_SYNC(where) != getpid();
	return count;
}

static pid_t serve(struct job *job, unsigned int steal)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	job->attr.steal = steal;
	if (kdsm_tasks_open(job->region, OFFSET, &job->attr, &job->tasks) ||
	    kdsm_tasks_serve(job->tasks))
		_exit(1);
	kdsm_tasks_close(job->tasks);
	_exit(0);
}

static void test_processes(void **state)
{
	struct job job = { .attr = { .workers = 1, .deque = DEQUE, .node_workers = 8 } };
	unsigned int count = 0, i;
	pid_t pids[5];
	int status;

	(void)state;
	job_region(&job);
	/*
	 * Each process has one worker. With more, two threads of this process may use the
	 * same place in turn. Only the owner of a task in another process orders these
	 * threads, and ThreadSanitizer does not see that order.
	 */
	for (i = 0; i < 5; i++)
		pids[i] = serve(&job, i % 2);
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &job.attr, &job.tasks), 0);
	for (i = 0; i < 5; i++)
		known_values(job.tasks, 4);
	/* Five of six workers are in other processes, once these processes have joined. */
	for (i = 0; i < 60 && count < 60; i++)
		assert_int_equal(KDSM_RUN(job.tasks, &count, others, 100), 0);
	assert_in_range(count, 60, 100);
	assert_int_equal(kdsm_tasks_end(job.tasks), 0);
	for (i = 0; i < 5; i++) {
		waitpid(pids[i], &status, 0);
		assert_int_equal(status, 0);
	}
	job_close(&job);
}

/* ---- errors ---- */

KDSM_VOID_TASK(hold)
{
	nap(60000);
}

KDSM_TASK(int, hold_two, int, unused)
{
	KDSM_SPAWN(hold);
	while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
		KDSM_POLL();
	KDSM_SYNC(hold);
	return unused;
}

static void test_death(void **state)
{
	struct job job = { .attr = { .workers = 1, .deque = DEQUE, .node_workers = 8,
				     .timeout = 1500000000 } };
	struct timespec begin, end;
	int result = 0;
	pid_t pid;

	(void)state;
	job_region(&job);
	pid = fork();
	if (!pid) {
		kdsm_tasks_open(job.region, OFFSET, &job.attr, &job.tasks);
		nap(1000);
		/* The process ends with a task that no worker will finish. */
		_exit(0);
	}
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &job.attr, &job.tasks), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(KDSM_RUN(job.tasks, &result, hold_two, 7), -EOWNERDEAD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 10);
	assert_int_equal(kdsm_tasks_culprit(job.tasks), 0);
	assert_int_equal(KDSM_RUN(job.tasks, &result, hold_two, 7), -EOWNERDEAD);
	assert_int_equal(kdsm_tasks_serve(job.tasks), -EOWNERDEAD);
	waitpid(pid, NULL, 0);
	job_close(&job);
}

static struct kdsm_tasks *inner;

KDSM_TASK(int, nested, int, n)
{
	uint64_t result;

	return KDSM_RUN(inner, &result, fib, n);
}

static void test_errors(void **state)
{
	struct kdsm_tasks_attr attr = { .argsz = sizeof(attr) };
	struct kdsm_tasks *tasks;
	struct job job;
	int result = 0;

	(void)state;
	job_open(&job, 1, DEQUE, KDSM_STEAL_ONE);
	inner = job.tasks;
	assert_int_equal(KDSM_RUN(job.tasks, &result, nested, 5), 0);
	assert_int_equal(result, -EDEADLK);

	attr = job.attr;
	attr.deque++;
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &attr, &tasks), -ERANGE);
	attr.deque -= 2;
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &attr, &tasks), -EPROTO);
	assert_null(tasks);
	attr = job.attr;
	attr.workers = 33;
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &attr, &tasks), -EINVAL);
	attr = job.attr;
	attr.steal = 2;
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &attr, &tasks), -EINVAL);
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET + 8, &job.attr, &tasks), -EINVAL);
	attr = job.attr;
	attr.workers = 32;
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &attr, &tasks), -EUSERS);
	kdsm_tasks_close(NULL);
	known_values(job.tasks, 0);
	job_close(&job);
}

/* ---- contexts ---- */

struct context {
	uint64_t runs;
	bool stopped;
};

static struct context contexts[5];
static unsigned int started;

static int give_context(void *argument, void **context)
{
	assert_ptr_equal(argument, &started);
	if (started == 5)
		return -ENOTTY;
	*context = &contexts[started++];
	return 0;
}

static void take_context(void *context)
{
	((struct context *)context)->stopped = true;
}

/* Returns the number of leaves without those that are dropped. Counts all leaves that run. */
KDSM_TASK(uint64_t, leaves, unsigned int, depth)
{
	struct context *context = KDSM_CONTEXT();
	uint64_t left;

	if (!depth) {
		context->runs += !context->stopped;
		return 1;
	}
	KDSM_SPAWN(leaves, depth - 1);
	left = KDSM_CALL(leaves, depth - 1);
	if (depth == 3) {
		KDSM_DROP();
		return left;
	}
	return left + KDSM_SYNC(leaves);
}

static void test_contexts(void **state)
{
	uint64_t result, runs = 0;
	struct job job = {
		.attr = {
			.workers = 4, .node_workers = 32, .start = give_context,
			.stop = take_context, .argument = &started,
		},
	};
	unsigned int i;

	(void)state;
	job_region(&job);
	assert_int_equal(kdsm_tasks_open(job.region, OFFSET, &job.attr, &job.tasks), 0);
	for (i = 0; i < 10; i++) {
		assert_int_equal(KDSM_RUN(job.tasks, &result, leaves, 14), 0);
		assert_int_equal(result, 1 << 13);
	}
	for (i = 0; i < 4; i++)
		runs += contexts[i].runs;
	/* A task that is stolen before the drop runs. */
	assert_true(runs >= 10 << 13 && runs < 10 << 14);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks, 2), 0);
	assert_int_equal(contexts[0].stopped + contexts[1].stopped + contexts[2].stopped +
			 contexts[3].stopped, 2);
	/* give_context() has one more context, but two workers need one. */
	assert_int_equal(kdsm_tasks_set_workers(job.tasks, 4), -ENOTTY);
	assert_int_equal(KDSM_RUN(job.tasks, &result, leaves, 8), 0);
	assert_int_equal(result, 1 << 7);
	job_close(&job);
	for (i = 0; i < 5; i++)
		assert_true(contexts[i].stopped);
}

/* ---- racing rings ---- */

static struct kdsm_tasks *rung;

static void ring_bell(void)
{
	__atomic_add_fetch(&rung->own->sleepers, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&kd_shared(rung, 2)->asleep, KD_ASLEEP_BELL, __ATOMIC_SEQ_CST);
	kd_task_ring(rung, 2);
}

/* The first ring is about to write the bell, which faults. A second ring overtakes the first. */
static void overtake(int signal)
{
	(void)signal;
	mprotect(rung->region->part, 4096, PROT_READ | PROT_WRITE);
	ring_bell();
}

/*
 * A ring is delayed before it writes the bell, until the sleeper sleeps again and a second
 * ring arrives. The first ring must not undo the second. Of the words that a ring writes,
 * only the bell is in the protected page.
 */
static void test_overtaken(void **state)
{
	const uint64_t offset = 4096 - 64 - offsetof(struct kd_task_node, bell);
	struct sigaction action = { .sa_handler = overtake }, former;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	struct job job = { .attr = { .argsz = sizeof(job.attr), .node_workers = 4 } };

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip();		/* its runtime holds a lock during an atomic operation */
#endif
	attr.size = offset + kdsm_tasks_bytes(&job.attr);
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &job.kdsm), 0);
	assert_int_equal(kdsm_region_open(job.kdsm, "tasks", &attr, &job.region), 0);
	assert_int_equal(kdsm_tasks_open(job.region, offset, &job.attr, &job.tasks), 0);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks, 0), 0);
	rung = job.tasks;
	assert_int_equal(rung->own->bell, 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &former), 0);
	assert_int_equal(mprotect(job.region->part, 4096, PROT_READ), 0);
	ring_bell();
	assert_int_equal(sigaction(SIGSEGV, &former, NULL), 0);
	assert_int_equal(rung->own->bell, 2);
	assert_int_equal(rung->own->sleepers, 0);
	job_close(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleepers),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_coming),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_overtaken),
	};

	return UNIT_RUN(tests);
}
