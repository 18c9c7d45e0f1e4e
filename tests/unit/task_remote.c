// SPDX-License-Identifier: GPL-2.0
/* Tasks that move between simulated nodes, whose puts appear byte by byte */
#include <limits.h>
#include <pthread.h>
#include <time.h>
#include "unit.h"
#include "sim.h"
#include "../../tools/kdsm-bench/work.h"
#include "task/internal.h"

#define OFFSET	64
#define S	1000000000ull

struct job {
	struct kdsm_tasks_attr attr;
	struct kdsm_region *region[SIM_NODES];
	struct kdsm_tasks *tasks[SIM_NODES];
};

static const char *const *locations;	/* of the nodes that job_start() starts next */

static void job_start(struct job *job, unsigned int nodes, enum kdsm_domain domain)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	unsigned int i;

	sim_start(nodes);
	sim.tear = true;
	sim.locations = locations;
	job->attr.argsz = sizeof(job->attr);
	job->attr.deque = job->attr.deque ? job->attr.deque : 128;
	job->attr.node_workers = 4;
	job->attr.stack = 8 << 20;
	attr = (struct kdsm_region_attr){
		.argsz = sizeof(struct kdsm_region_attr),
		.size = nodes * (OFFSET + kdsm_tasks_bytes(&job->attr)),
	};
	for (i = 0; i < nodes; i++) {
		sim.kdsm[i]->domain = domain;
		assert_int_equal(kdsm_region_open(sim.kdsm[i], "t", &attr, &job->region[i]), 0);
	}
	for (i = 0; i < nodes; i++)
		assert_int_equal(kdsm_tasks_open(job->region[i], OFFSET, &job->attr,
						 &job->tasks[i]), 0);
}

static void job_stop(struct job *job)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		kdsm_tasks_close(job->tasks[i]);
	for (i = 0; i < sim.nodes; i++)
		kdsm_region_close(job->region[i]);
	sim_stop();
}

static struct kdsm_tasks_counts all_counts(struct job *job)
{
	struct kdsm_tasks_counts sum = { .argsz = sizeof(sum) }, one = { .argsz = sizeof(one) };
	unsigned int i, j;

	for (i = 0; i < sim.nodes; i++) {
		kdsm_tasks_counts(job->tasks[i], &one);
		for (j = 0; j < sizeof(sum) / 8; j++)
			((uint64_t *)&sum)[j] += ((uint64_t *)&one)[j];
	}
	return sum;
}

/* ---- messages ---- */

static void test_messages(void **state)
{
	uint8_t from[112], to[112];
	uint64_t words[16], place[16], copy[16];
	unsigned int length, i, j, n;

	(void)state;
	for (length = 0; length <= sizeof(from); length++) {
		memset(to, 0x55, sizeof(to));
		memset(place, 0, sizeof(place));
		for (i = 0; i < length; i++)
			from[i] = length % 3 ? i * 37 + length : length % 2 ? 0 : 0xff;
		n = kd_task_words(length);
		assert_true(n >= 1 && n * 7 >= length && n <= 16);
		kd_task_encode(words, from, length);
		/* The message has not arrived before its last byte, whichever byte that is. */
		for (i = 0; i < n * 8; i++) {
			assert_false(kd_task_arrived(copy, place, n));
			j = (i * 17 + 3) % (n * 8);
			((uint8_t *)place)[j] = ((uint8_t *)words)[j];
		}
		assert_true(kd_task_arrived(copy, place, n));
		kd_task_decode(to, copy, length);
		assert_memory_equal(from, to, length);
	}
}

/* A failure word has not arrived before its last byte, whichever byte that is. */
static void test_failure_words(void **state)
{
	static const unsigned int nodes[] = { 0, 1, 127, 128, 255, KDSM_MAX_NODES - 1 };
	static const int errors[] = { -1, -EIO, -127, -128, -EHOSTDOWN, -4095 };
	unsigned int i, j, k, bytes, node;
	uint64_t word, part;

	(void)state;
	for (i = 0; i < 6; i++) {
		for (j = 0; j < 6; j++) {
			word = kd_failure_word(nodes[i], errors[j]);
			for (bytes = 0; bytes < 255; bytes++) {
				for (k = 0, part = 0; k < 8; k++)
					if (bytes & 1 << k)
						part |= word & UINT64_C(0xff) << 8 * k;
				assert_int_equal(kd_failure_read(part, KDSM_MAX_NODES, 0, &node),
						 0);
			}
			assert_int_equal(kd_failure_read(word, KDSM_MAX_NODES, 0, &node),
					 errors[j]);
			assert_int_equal(node, nodes[i]);
		}
	}
	/* Another node cannot name a node that does not exist, or no error. */
	assert_int_equal(kd_failure_read(kd_failure_word(3, -EIO), 3, 2, &node), -EIO);
	assert_int_equal(node, 2);
	assert_int_equal(kd_failure_read(kd_failure_word(1, 0), 3, 2, &node), -EPROTO);
	assert_int_equal(kd_failure_read(kd_failure_word(1, -4096), 3, 2, &node), -EPROTO);
}

/* ---- known values ---- */

static void known_values(struct kdsm_tasks *tasks)
{
	struct board board = { .all = (1 << 8) - 1 };
	uint64_t result = 0;

	assert_int_equal(KDSM_RUN(tasks, &result, fib, 18), 0);
	assert_int_equal(result, 2584);
	assert_int_equal(KDSM_RUN(tasks, &result, queens, board), 0);
	assert_int_equal(result, 92);
	assert_int_equal(KDSM_RUN(tasks, &result, uts, uts_root(UTS_T1_SEED, 5)), 0);
	assert_int_equal(result, plain_uts(uts_root(UTS_T1_SEED, 5)));
}

/* A theft is one active message, and a result is one put. */
static void check_counts(struct job *job)
{
	struct kdsm_tasks_counts sum = all_counts(job);
	struct kdsm_counts remote = { .argsz = sizeof(remote) };
	uint64_t cas = 0, put = 0, steal = 0;
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		kdsm_counts(sim.kdsm[i], &remote);
		cas += remote.cas;
		put += remote.put;
		steal += remote.steal;
		assert_int_equal(remote.faa, 0);
	}
	/*
	 * Each node but node 0 compared the agreed parameters by one compare-and-swap at
	 * node 0.
	 */
	cas -= sim.nodes - 1;
	assert_int_equal(cas, 0);
	assert_int_equal(steal, sum.requests);
	assert_int_equal(put, sum.results + sum.pokes + sum.hungry);
	assert_true(sum.received > 0);
	if (job->attr.steal == KDSM_STEAL_ONE) {
		assert_int_equal(sum.received, sum.requests - sum.refused - sum.empty);
		assert_int_equal(sum.results, sum.received);
	}
}

static void run_known(unsigned int nodes, uint32_t workers, uint32_t steal,
		      enum kdsm_domain domain, unsigned int rounds)
{
	struct job job = { .attr = { .workers = workers, .steal = steal } };
	unsigned int i;

	job_start(&job, nodes, domain);
	for (i = 0; i < rounds; i++)
		known_values(job.tasks[i % nodes]);
	job_stop(&job);
}

static void test_known(void **state)
{
	static const unsigned int nodes[] = { 2, 3, 8 };
	unsigned int i, steal, workers;

	(void)state;
	for (i = 0; i < 3; i++)
		for (steal = KDSM_STEAL_ONE; steal <= KDSM_STEAL_HALF; steal++)
			for (workers = 1; workers <= 2; workers++)
				run_known(nodes[i], workers, steal, KDSM_DOMAIN_SW, 4);
}

static void test_hca(void **state)
{
	(void)state;
	run_known(3, 2, KDSM_STEAL_HALF, KDSM_DOMAIN_HCA, 4);
	run_known(2, 1, KDSM_STEAL_ONE, KDSM_DOMAIN_HCA, 4);
}

/* ---- proxies ---- */

static struct kdsm_task *put_proxy(struct kdsm_tasks *tasks, uint32_t worker, uint32_t slot,
				   struct kdsm_task_origin origin)
{
	struct kdsm_task *task = kd_slot(tasks, worker, slot);
	uint32_t id = 1;

	while (strcmp(kd_task_type(id)->name, "kdsm proxy"))
		id++;
	task->type = id;
	memcpy(task->data, &origin, sizeof(origin));
	return task;
}

static struct kdsm_task *put_fib(struct kdsm_tasks *tasks, uint32_t worker, uint32_t slot,
				 uint32_t n)
{
	struct kdsm_task *task = kd_slot(tasks, worker, slot);

	task->type = fib_kdsm_type.id;
	memcpy(task->data, &n, sizeof(n));
	return task;
}

/*
 * A thief of another node that takes a proxy gets the task behind the proxy, and the proxy
 * is done.
 */
static void test_proxies(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	struct kdsm_task_packed packed;
	struct kdsm_task *task, *proxy;
	uint32_t n = 30, thief = KD_THIEF_OF(1, 3);
	struct kd_worker w;
	unsigned int i;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks[0], 0), 0);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks[1], 0), 0);
	/* The thief is no thread of the job. */
	w = (struct kd_worker){ .tasks = job.tasks[1], .number = 3 };
	task = put_fib(job.tasks[0], 1, 5, n);
	proxy = put_proxy(job.tasks[0], 2, 7, (struct kdsm_task_origin){ .worker = 1, .slot = 5 });
	job.tasks[0]->own->crew.used = 3;
	kd_shared(job.tasks[0], 2)->ends = UINT64_C(8) << 32 | 7;
	assert_int_equal(kd_task_rob(&w, 0, 2, &packed), 1);
	assert_int_equal(packed.origin.node, 0);
	assert_int_equal(packed.origin.worker, 1);
	assert_int_equal(packed.origin.slot, 5);
	assert_int_equal(packed.origin.type, fib_kdsm_type.id);
	assert_int_equal(packed.origin.bytes, sizeof(n));
	assert_memory_equal(packed.arguments, &n, sizeof(n));
	assert_int_equal(task->thief, thief);
	for (i = 0; i < sizeof(task->data); i++)
		assert_int_equal(task->data[i], 0);
	assert_int_equal(proxy->thief, KDSM_THIEF_DONE);
	job_stop(&job);
}

KDSM_TASK(uint32_t, thief_of, const struct kdsm_task *, task)
{
	return task->thief;
}

/*
 * A thief that takes a proxy along with other tasks pushes a new proxy for the original
 * task. The stolen proxy is done at once.
 */
static void test_proxy_of_proxy(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	struct kdsm_task *first, *task, *proxy;
	struct kd_worker *w, worker;
	uint64_t result;
	uint32_t thief;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks[0], 0), 0);
	assert_int_equal(kdsm_tasks_set_workers(job.tasks[1], 0), 0);
	/* The thief is no thread of the job. */
	w = &worker;
	*w = (struct kd_worker){ .tasks = job.tasks[0], .shared = kd_shared(job.tasks[0], 0),
				 .deque = kd_slot(job.tasks[0], 0, 0) };
	w->fast = (struct kdsm_worker){
		.split = w->deque, .limit = w->deque + job.attr.deque,
		.attention = &w->shared->attention, .alarm = &job.tasks[0]->own->alarm,
	};
	task = put_fib(job.tasks[0], 1, 5, 15);
	proxy = put_proxy(job.tasks[0], 2, 7, (struct kdsm_task_origin){ .worker = 1, .slot = 5 });
	first = kd_slot(job.tasks[0], 2, 6);
	first->type = thief_of_kdsm_type.id;
	memcpy(first->data, &proxy, sizeof(proxy));
	kd_task_run_taken(w, w->deque, 2, first, 2);
	assert_int_equal(first->thief, KDSM_THIEF_DONE);
	memcpy(&thief, first->data, sizeof(thief));
	assert_int_equal(thief, KDSM_THIEF_DONE);
	assert_int_equal(proxy->thief, KDSM_THIEF_DONE);
	assert_int_equal(task->thief, KDSM_THIEF_DONE);
	memcpy(&result, task->data, sizeof(result));
	assert_int_equal(result, plain_fib(15));
	job_stop(&job);
}

/* ---- one task at a time ---- */

struct wide {
	uint64_t words[10];
};

KDSM_TASK(struct wide, mirror, struct wide, wide)
{
	struct wide mirrored;
	unsigned int i;

	for (i = 0; i < 10; i++)
		mirrored.words[i] = ~wide.words[9 - i];
	return mirrored;
}

KDSM_VOID_TASK(nothing)
{
}

/* Wait until each task is stolen. A node has one worker, so the thief is on another node. */
KDSM_TASK(int, far, unsigned int, rounds)
{
	struct wide wide, mirrored;
	unsigned int i, j;
	int wrong = 0;

	for (i = 0; i < rounds; i++) {
		for (j = 0; j < 10; j++)
			wide.words[j] = i % 3 == 0 ? 0 : i % 3 == 1 ? UINT64_MAX : i * j;
		KDSM_SPAWN(mirror, wide);
		while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
			KDSM_POLL();
		mirrored = KDSM_SYNC(mirror);
		for (j = 0; j < 10; j++)
			wrong += mirrored.words[j] != ~wide.words[9 - j];
		KDSM_SPAWN(nothing);
		KDSM_SYNC(nothing);
	}
	return wrong;
}

static void test_far(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	struct kdsm_tasks_counts sum = { .argsz = sizeof(sum) };
	int wrong = -1;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	assert_int_equal(KDSM_RUN(job.tasks[0], &wrong, far, 200), 0);
	assert_int_equal(wrong, 0);
	sum = all_counts(&job);
	assert_true(sum.received >= 200);
	job_stop(&job);
}

static unsigned int notices, silent;

static void count_notices(const struct kdsm_op *op)
{
	/* A put of 8 bytes carries no result. */
	if (op->opcode != KDSM_OP_PUT || op->length == 8)
		return;
	__atomic_fetch_add(op->flags & KDSM_OP_NOTIFY ? &notices : &silent, 1,
			   __ATOMIC_RELAXED);
}

/* The put of a result wakes the worker that waits for the result. No other message does. */
static void test_notices(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	int wrong = -1;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	notices = 0;
	silent = 0;
	__atomic_store_n(&sim.before, count_notices, __ATOMIC_RELEASE);
	assert_int_equal(KDSM_RUN(job.tasks[0], &wrong, far, 50), 0);
	__atomic_store_n(&sim.before, NULL, __ATOMIC_RELEASE);
	assert_int_equal(wrong, 0);
	/* One notification for each result */
	assert_true(__atomic_load_n(&notices, __ATOMIC_RELAXED) >= 50);
	assert_int_equal(__atomic_load_n(&silent, __ATOMIC_RELAXED), 0);
	job_stop(&job);
}

static void ring_awaited(struct kdsm_tasks *tasks, uint32_t worker)
{
	kd_shared(tasks, worker)->asleep = KD_ASLEEP_RESULT;
	__atomic_add_fetch(&tasks->own->sleepers, 1, __ATOMIC_SEQ_CST);
	kd_task_ring(tasks, worker);
	assert_int_equal(kd_shared(tasks, worker)->asleep, 0);
}

/* A ring that races with the put of a result leaves all bytes of the result as they were put. */
static void test_rung(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	struct kdsm_task *task;
	uint64_t words[1 + sizeof(task->data) / 8];
	unsigned int count, i, rung;
	uint64_t value = 0x0102030405060708, n = 0;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	/* No worker uses this deque. */
	task = kd_slot(job.tasks[0], 2, 5);
	kd_shared(job.tasks[0], 2)->awaited = 5;
	task->type = fib_kdsm_type.id;
	count = 1 + kd_task_words(sizeof(value));
	words[0] = KD_RESULT_BELL;
	kd_task_encode(words + 1, &value, sizeof(value));
	for (i = 0; i <= 8 * count; i++) {
		/* The first i bytes of the put have arrived. */
		task->bell = 0;
		memset(task->data, 0, sizeof(task->data));
		memcpy(&task->bell, words, i);
		for (rung = 0; rung < 130; rung++)
			ring_awaited(job.tasks[0], 2);
		/*
		 * A ring changes no byte that has arrived, and writes the bell only before
		 * the first byte.
		 */
		if (i)
			assert_memory_equal(&task->bell, words, i);
		else
			assert_in_range(task->bell, 1, KD_BELL_LOCAL);
		if (i < 8 * count)
			assert_false(kd_task_result_came(job.tasks[0]->workers[0], task));
		memcpy((uint8_t *)&task->bell + i, (uint8_t *)words + i, 8 * count - i);
		assert_true(kd_task_result_came(job.tasks[0]->workers[0], task));
		memcpy(&n, task->data, sizeof(n));
		assert_int_equal(n, value);
	}
	for (i = 0; i < 8 * count; i++) {
		/* After a ring, all bytes but byte i have arrived. */
		task->bell = 0;
		memset(task->data, 0, sizeof(task->data));
		ring_awaited(job.tasks[0], 2);
		for (n = 0; n < 8 * count; n++)
			if (n != i)
				((uint8_t *)&task->bell)[n] = ((uint8_t *)words)[n];
		assert_false(kd_task_result_came(job.tasks[0]->workers[0], task));
		((uint8_t *)&task->bell)[i] = ((uint8_t *)words)[i];
		assert_true(kd_task_result_came(job.tasks[0]->workers[0], task));
	}
	job_stop(&job);
}

static void test_counts(void **state)
{
	unsigned int steal, i;
	int wrong = -1;

	(void)state;
	for (steal = KDSM_STEAL_ONE; steal <= KDSM_STEAL_HALF; steal++) {
		struct job job = { .attr = { .workers = 1, .steal = steal } };

		job_start(&job, 3, KDSM_DOMAIN_SW);
		for (i = 0; i < 6; i++)
			known_values(job.tasks[i % 3]);
		assert_int_equal(KDSM_RUN(job.tasks[0], &wrong, far, 20), 0);
		assert_int_equal(wrong, 0);
		/* Without workers no message is in flight. */
		for (i = 0; i < 3; i++)
			assert_int_equal(kdsm_tasks_set_workers(job.tasks[i], 0), 0);
		check_counts(&job);
		job_stop(&job);
	}
}

/* ---- sleeping nodes ---- */

static void test_woken(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	struct kdsm_tasks_counts before = { .argsz = sizeof(before) };
	struct kdsm_tasks_counts after = { .argsz = sizeof(after) };
	int wrong = -1;
	unsigned int i;

	(void)state;
	job_start(&job, 5, KDSM_DOMAIN_SW);
	for (i = 0; i < 10; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
		before = all_counts(&job);
		assert_int_equal(KDSM_RUN(job.tasks[i % 5], &wrong, far, 3), 0);
		assert_int_equal(wrong, 0);
		after = all_counts(&job);
		assert_true(after.pokes > before.pokes);
	}
	job_stop(&job);
}

/* Idle workers send requests only once in a while. */
static void test_quiet(void **state)
{
	struct job job = { .attr = { .workers = 2 } };
	struct kdsm_tasks_counts before = { .argsz = sizeof(before) };
	struct kdsm_tasks_counts after = { .argsz = sizeof(after) };

	(void)state;
	job_start(&job, 4, KDSM_DOMAIN_SW);
	known_values(job.tasks[0]);
	nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
	before = all_counts(&job);
	nanosleep(&(struct timespec){ .tv_sec = 2 }, NULL);
	after = all_counts(&job);
	/*
	 * Each of 8 workers wakes at most 3 times in 2 s and sends up to 13 requests each
	 * time.
	 */
	assert_true(after.requests - before.requests <= 8 * 3 * 13);
	job_stop(&job);
}

/* A long task that has no children to give away */
KDSM_VOID_TASK(last_long)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
}

KDSM_TASK(int, two_long, int, n)
{
	KDSM_SPAWN(last_long);
	while (!__atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED))
		KDSM_POLL();
	KDSM_CALL(last_long);
	KDSM_SYNC(last_long);
	return n;
}

/* Three workers of a node are idle, and there is no task to steal. */
static void test_in_vain(void **state)
{
	struct job job = { .attr = { .workers = 4 } };
	struct kdsm_tasks_counts before = { .argsz = sizeof(before) };
	struct kdsm_tasks_counts after = { .argsz = sizeof(after) };
	int result = 0;

	(void)state;
	job_start(&job, 2, KDSM_DOMAIN_SW);
	kdsm_tasks_set_workers(job.tasks[0], 1);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	kdsm_tasks_counts(job.tasks[1], &before);
	__atomic_store_n(&sim.delay, 100000, __ATOMIC_RELAXED);
	assert_int_equal(KDSM_RUN(job.tasks[0], &result, two_long, 7), 0);
	assert_int_equal(result, 7);
	__atomic_store_n(&sim.delay, 0, __ATOMIC_RELAXED);
	kdsm_tasks_counts(job.tasks[1], &after);
	/*
	 * The workers of a node back off together. Each worker by itself would send 12
	 * requests before it sleeps.
	 */
	assert_in_range(after.requests - before.requests, 1, 20);
	job_stop(&job);
}

/* ---- a node that vanishes ---- */

static bool over;

/* The thread of a dead node must not deliver its result. */
KDSM_VOID_TASK(hold)
{
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

KDSM_TASK(int, hold_two, int, n)
{
	uint32_t thief;

	KDSM_SPAWN(hold);
	while (!(thief = __atomic_load_n(&(kdsm_head - 1)->thief, __ATOMIC_RELAXED)))
		KDSM_POLL();
	__atomic_store_n(&sim.dead, KD_THIEF_NODE(thief) + 1u, __ATOMIC_RELAXED);
	KDSM_SYNC(hold);
	return n;
}

static void test_death(void **state)
{
	struct job job = { .attr = { .workers = 1, .timeout = 2 * S } };
	struct timespec begin, end;
	unsigned int i;
	int result;

	(void)state;
	__atomic_store_n(&over, false, __ATOMIC_RELAXED);
	job_start(&job, 3, KDSM_DOMAIN_SW);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	assert_int_equal(KDSM_RUN(job.tasks[0], &result, hold_two, 5), -EOWNERDEAD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(end.tv_sec - begin.tv_sec < 10);
	for (i = 0; i < 3; i++)
		if (__atomic_load_n(&sim.dead, __ATOMIC_RELAXED) != i + 1)
			assert_int_equal(kdsm_tasks_serve(job.tasks[i]), -EOWNERDEAD);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	job_stop(&job);
}

static int beats_to_fail;

/* Fails gets of the beats of another node as the module does when a connection breaks. */
static int lose_beats(struct kdsm_op *op, bool after)
{
	if (after || op->opcode != KDSM_OP_GET ||
	    op->length != sizeof(((struct kd_task_node *)0)->processes) ||
	    __atomic_load_n(&beats_to_fail, __ATOMIC_RELAXED) <= 0)
		return 0;
	return __atomic_sub_fetch(&beats_to_fail, 1, __ATOMIC_RELAXED) % 2 ? -EIO : -EHOSTDOWN;
}

static void start_losing(struct job *job, int count, uint64_t timeout)
{
	*job = (struct job){ .attr = { .workers = 1, .timeout = timeout } };
	job_start(job, 2, KDSM_DOMAIN_SW);
	__atomic_store_n(&beats_to_fail, count, __ATOMIC_RELAXED);
	__atomic_store_n(&sim.fault, lose_beats, __ATOMIC_RELEASE);
}

/* The job survives gets that fail for less than the timeout. */
static void test_lost_beats(void **state)
{
	uint64_t begin;
	struct job job;

	(void)state;
	start_losing(&job, 6, 30 * S);
	while (!kd_failed(job.tasks[0]) && __atomic_load_n(&beats_to_fail, __ATOMIC_RELAXED) > 0)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	known_values(job.tasks[0]);
	assert_int_equal(kd_failed(job.tasks[0]) | kd_failed(job.tasks[1]), 0);
	job_stop(&job);

	begin = kdsm_now();
	start_losing(&job, INT_MAX, 2 * S);
	assert_int_equal(kdsm_tasks_serve(job.tasks[0]), -EOWNERDEAD);
	assert_true(kdsm_now() - begin >= 2 * S);
	assert_int_equal(kdsm_tasks_serve(job.tasks[1]), -EOWNERDEAD);
	job_stop(&job);
}

/* ---- places ---- */

static void test_distances(void **state)
{
	static const char *const places[] = { "a/x", "a/y", "b/x", "a/x", "", "a", "a/x/1" };
	static const unsigned int near[] = { 3, 6, 1, 5, 2, 4 }, far[] = { 2, 4, 6 };
	struct job job = { .attr = { .workers = 1 } };

	(void)state;
	locations = places;
	job_start(&job, 7, KDSM_DOMAIN_SW);
	locations = NULL;
	assert_int_equal(job.tasks[0]->distances, 3);
	assert_memory_equal(job.tasks[0]->near, near, sizeof(near));
	assert_memory_equal(job.tasks[0]->far, far, sizeof(far));
	assert_int_equal(job.tasks[4]->distances, 1);
	known_values(job.tasks[4]);
	job_stop(&job);
}

static void *serve(void *arg)
{
	return (void *)(intptr_t)kdsm_tasks_serve(arg);
}

static void test_end(void **state)
{
	struct job job = { .attr = { .workers = 1 } };
	pthread_t threads[3];
	unsigned int i;
	void *ret;

	(void)state;
	job_start(&job, 3, KDSM_DOMAIN_SW);
	for (i = 1; i < 3; i++)
		pthread_create(&threads[i], NULL, serve, job.tasks[i]);
	known_values(job.tasks[0]);
	assert_int_equal(kdsm_tasks_end(job.tasks[0]), 0);
	for (i = 1; i < 3; i++) {
		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	job_stop(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_failure_words),
		cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_proxy_of_proxy),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_notices),
		cmocka_unit_test(test_rung),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_hca),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_woken),
		cmocka_unit_test(test_quiet),
		cmocka_unit_test(test_in_vain),
		cmocka_unit_test(test_death),
		cmocka_unit_test(test_lost_beats),
		cmocka_unit_test(test_distances),
		cmocka_unit_test(test_end),
	};

	return UNIT_RUN(tests);
}
