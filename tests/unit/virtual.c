// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual runs. Each program runs with a price, so its computing takes no time unless the test
 * says otherwise, and no coroutine runs ahead of another one. The times of remote operations are
 * compared exactly with closed forms.
 *
 * A failed assertion of cmocka would jump from the stack of a coroutine to that of the test, so
 * programs of nodes use CHECK().
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include <kdsm/lock.h>
#include <kdsm/task.h>
#include <kdsm/virtual.h>
#include "core/core.h"

#define LATENCY	2000u		/* of a one-sided operation, in ns */
#define MESSAGE	3000u
#define HANDLER	400u
#define GAP	100u
#define BYTE_NS	8u		/* time of one byte, in ns: 1000 / bandwidth */
#define PART	65536u

static int failures;

#define CHECK(condition) \
	((condition) ? 0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), \
			    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED)))

#define CHECK_EQUAL(a, b) check_equal(__LINE__, #a, a, b)

static void check_equal(int line, const char *what, uint64_t a, uint64_t b)
{
	if (a == b)
		return;
	fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, line, what, (long long)a,
		(long long)b);
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static struct kdsm_virtual_attr priced(unsigned int nodes)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };

	kdsm_virtual_attr_init(&attr);
	attr.nodes = nodes;
	attr.one_sided = LATENCY;
	attr.message = MESSAGE;
	attr.handler = HANDLER;
	attr.gap = GAP;
	attr.bandwidth = 1000 / BYTE_NS;
	attr.quantum = 0;
	attr.step = 1;
	return attr;
}

static void run_as(const struct kdsm_virtual_attr *attr,
		   int (*program)(struct kdsm *kdsm, void *argument), void *argument)
{
	failures = 0;
	assert_int_equal(kdsm_virtual_run(attr, program, argument), 0);
	assert_int_equal(failures, 0);
}

static void run(unsigned int nodes, int (*program)(struct kdsm *kdsm, void *argument),
		void *argument)
{
	struct kdsm_virtual_attr attr = priced(nodes);

	run_as(&attr, program, argument);
}

/* Open the region "v", whose parts have PART bytes. The name stays until the run ends. */
static struct kdsm_region *open_region(struct kdsm *kdsm)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = (uint64_t)PART * kdsm_nodes(kdsm), .flags = KDSM_REGION_KEEP,
	};
	struct kdsm_region *region;

	CHECK_EQUAL(kdsm_region_open(kdsm, "v", &attr, &region), 0);
	return region;
}

/* ---- latency and bandwidth ---- */

static int chain(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	static char buffer[1000];
	uint64_t former, begin;
	unsigned int i;

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	for (i = 0; i < 10; i++)
		CHECK_EQUAL(kdsm_get(region, 1, 0, buffer, sizeof(buffer)), 0);
	CHECK_EQUAL(kdsm_virtual_now(), 10 * (LATENCY + 1000 * BYTE_NS));

	begin = kdsm_virtual_now();
	for (i = 0; i < 10; i++)
		CHECK_EQUAL(kdsm_put(region, 1, 0, buffer, sizeof(buffer)), 0);
	CHECK_EQUAL(kdsm_virtual_now() - begin, 10 * (LATENCY + 1000 * BYTE_NS));

	/* the 8 bytes of a message travel there and back */
	begin = kdsm_virtual_now();
	for (i = 0; i < 10; i++) {
		CHECK_EQUAL(kdsm_faa(region, 1, 1024, 1, &former), 0);
		CHECK_EQUAL(former, i);
	}
	CHECK_EQUAL(kdsm_virtual_now() - begin, 10 * (MESSAGE + 2 * 8 * BYTE_NS));

	/* operations on the own part take no time */
	begin = kdsm_virtual_now();
	CHECK_EQUAL(kdsm_get(region, 0, 0, buffer, sizeof(buffer)), 0);
	CHECK_EQUAL(kdsm_faa(region, 0, 1024, 1, &former), 0);
	CHECK_EQUAL(kdsm_virtual_now(), begin);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_chain(void **state)
{
	(void)state;
	run(2, chain, NULL);
}

/* Gets of one vector leave in sequence, and their round trips overlap. */
static int vector(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	unsigned int nodes = kdsm_nodes(kdsm), i;
	struct kdsm_op ops[40];
	char buffer[40][100];
	uint64_t begin;

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	/* from different nodes: each has an adapter of its own */
	for (i = 1; i < nodes; i++)
		ops[i - 1] = kdsm_op_get(i, 0, buffer[i], 100);
	CHECK_EQUAL(kdsm_vector(region, ops, nodes - 1), 0);
	CHECK_EQUAL(kdsm_virtual_now(), (nodes - 2) * GAP + LATENCY + 100 * BYTE_NS);

	/* from one node: its adapter sends the replies in sequence */
	begin = kdsm_virtual_now();
	for (i = 0; i < 40; i++)
		ops[i] = kdsm_op_get(1, 0, buffer[i], 100);
	CHECK_EQUAL(kdsm_vector(region, ops, 40), 0);
	CHECK_EQUAL(kdsm_virtual_now() - begin, LATENCY + 40 * 100 * BYTE_NS);

	/* operations on the own part overlap with the others */
	begin = kdsm_virtual_now();
	for (i = 0; i < 40; i++)
		ops[i] = kdsm_op_get(i & 1, 0, buffer[i], 8);
	CHECK_EQUAL(kdsm_vector(region, ops, 40), 0);
	CHECK_EQUAL(kdsm_virtual_now() - begin, LATENCY + 19 * GAP + 8 * BYTE_NS);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_vector(void **state)
{
	(void)state;
	run(9, vector, NULL);
}

/* ---- contention ---- */

struct hot {
	unsigned int bytes;	/* of a get, or 0: a message */
	uint64_t last;		/* time when the last operation was complete */
};

static int hot_program(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	struct hot *hot = argument;
	char buffer[1000];

	if (!kdsm_node(kdsm))
		goto out;
	if (hot->bytes)
		CHECK_EQUAL(kdsm_get(region, 0, 0, buffer, hot->bytes), 0);
	else
		CHECK_EQUAL(kdsm_faa(region, 0, 0, 1, NULL), 0);
	if (hot->last < kdsm_virtual_now())
		hot->last = kdsm_virtual_now();
out:
	kdsm_region_close(region);
	return 0;
}

static void test_hot_node(void **state)
{
	const unsigned int clients = 100;
	struct hot hot = { .bytes = 1000 };

	(void)state;
	/* the adapter sends one reply at a time */
	run(clients + 1, hot_program, &hot);
	assert_int_equal(hot.last, LATENCY + clients * 1000 * BYTE_NS);

	/* short replies: at least the gap each */
	hot = (struct hot){ .bytes = 8 };
	run(clients + 1, hot_program, &hot);
	assert_int_equal(hot.last, LATENCY + (clients - 1) * GAP + 8 * BYTE_NS);

	/* the kernel handles one message at a time */
	hot = (struct hot){ .bytes = 0 };
	run(clients + 1, hot_program, &hot);
	assert_int_equal(hot.last, MESSAGE + (clients - 1) * HANDLER + 2 * 8 * BYTE_NS);
}

/* ---- barriers ---- */

/*
 * With N = 2^k nodes, node 0 has k children, and a node that is the child of order j of its
 * parent has j children. L is the latency of one way, g the gap, and a word takes no time.
 *
 * Up: a node of order 0 sends at 0, and its word arrives at L. Then the adapter of its parent
 * acknowledges, which takes g, before it sends the parent's word. So a node of order j sends at
 * j (L + g), and the word of the last child arrives at node 0 at k L + (k - 1) g.
 *
 * Down: a node sends the words to its children after the last acknowledgment, g apart, to the
 * child of the highest order first. The path by the highest orders takes k (L + g). Its last
 * node but one waits for the acknowledgment of its last put, which takes another L.
 *
 * Together (2 k + 1) L + (2 k - 1) g.
 */
static uint64_t barrier_time(unsigned int k)
{
	return (2 * k + 1) * (LATENCY / 2) + (2 * k - 1) * GAP;
}

static int barrier(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	uint64_t *end = argument;
	struct kdsm_barrier barrier;

	kdsm_barrier_init(&barrier, region, 0);
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	if (*end < kdsm_virtual_now())
		*end = kdsm_virtual_now();
	kdsm_region_close(region);
	return 0;
}

/* Bytes of memory that the process has in use */
static uint64_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *in = fopen("/proc/self/statm", "r");

	if (!in)
		return 0;
	if (fscanf(in, "%lu %lu", &size, &pages) != 2)
		pages = 0;
	fclose(in);
	return pages * sysconf(_SC_PAGESIZE);
}

static void test_barrier(void **state)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };
	uint64_t end;
	unsigned int k;

	(void)state;
	for (k = 1; k <= 10; k++) {
		attr = priced(1 << k);
		attr.bandwidth = 1000000;
		end = 0;
		run_as(&attr, barrier, &end);
		assert_int_equal(end, barrier_time(k));
	}
}

#define MANY	1024

static uint64_t most_resident;

static int many(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	uint64_t before = *(uint64_t *)argument, now;
	struct kdsm_barrier barrier;

	kdsm_barrier_init(&barrier, region, 0);
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	if (!kdsm_node(kdsm)) {
		now = resident();
		most_resident = now > before ? now - before : 0;
	}
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	kdsm_region_close(region);
	return 0;
}

static void test_many_nodes(void **state)
{
	uint64_t before = resident();

	(void)state;
	run(MANY, many, &before);
	print_message("# %u nodes in a barrier: %llu KiB a node\n", MANY,
		      (unsigned long long)most_resident / MANY / 1024);
	assert_true(most_resident / MANY < 20 << 20);
}

/* ---- threads ---- */

struct thread {
	struct kdsm_region *region;
	pthread_mutex_t *lock;
	uint64_t end;
	unsigned int *running;
	struct kdsm_ticket *ticket;
};

static void *sleeper(void *data)
{
	struct thread *thread = data;

	kd_sleep(5000);
	kdsm_virtual_spend(700);
	thread->end = kdsm_virtual_now();
	return NULL;
}

static int threads(struct kdsm *kdsm, void *argument)
{
	static struct thread nobody;
	struct thread thread[8] = { 0 };
	struct kd_thread started[8];
	unsigned int i;

	(void)kdsm;
	(void)argument;
	kdsm_virtual_spend(1000);
	for (i = 0; i < 8; i++)
		CHECK_EQUAL(kd_thread_start(&started[i], 0, sleeper, &thread[i]), 0);
	/* a join that times out leaves the thread as it is */
	CHECK(!kd_thread_join(&started[0], 0));
	CHECK_EQUAL(kdsm_virtual_now(), 1000);
	CHECK(!kd_thread_join(&started[0], 4000));
	CHECK_EQUAL(kdsm_virtual_now(), 5000);
	for (i = 0; i < 8; i++)
		CHECK(kd_thread_join(&started[i], KDSM_FOREVER));
	CHECK_EQUAL(kdsm_virtual_now(), 6700);
	for (i = 0; i < 8; i++)
		CHECK_EQUAL(thread[i].end, 6700);
	kdsm_virtual_spend(300);
	CHECK_EQUAL(kdsm_virtual_now(), 7000);
	/* nobody joins this thread */
	return kd_thread_start(&started[0], 0, sleeper, &nobody);
}

static void test_threads(void **state)
{
	(void)state;
	run(3, threads, NULL);
}

static void *locker(void *data)
{
	struct thread *thread = data;

	kd_mutex_lock(thread->lock);
	CHECK_EQUAL(++*thread->running, 1);
	CHECK_EQUAL(kdsm_faa(thread->region, 1, 0, 1, NULL), 0);
	--*thread->running;
	kd_mutex_unlock(thread->lock);
	thread->end = kdsm_virtual_now();
	return NULL;
}

/* Two threads hold a mutex in turn, each across a remote operation. */
static int mutex(struct kdsm *kdsm, void *argument)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct kdsm_region *region = open_region(kdsm);
	uint64_t one = MESSAGE + 2 * 8 * BYTE_NS;
	struct thread thread[2];
	struct kd_thread started;
	unsigned int running = 0;

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	thread[0] = (struct thread){ .region = region, .lock = &lock, .running = &running };
	thread[1] = thread[0];
	CHECK_EQUAL(kd_thread_start(&started, 0, locker, &thread[0]), 0);
	locker(&thread[1]);
	CHECK(kd_thread_join(&started, KDSM_FOREVER));
	CHECK_EQUAL(thread[1].end, one);
	CHECK_EQUAL(thread[0].end, 2 * one);
	CHECK_EQUAL(kdsm_virtual_now(), 2 * one);
	pthread_mutex_destroy(&lock);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_mutex(void **state)
{
	(void)state;
	run(2, mutex, NULL);
}

/* ---- measured computing ---- */

/* Use this much time of the processor, in ns. */
static void burn(uint64_t ns)
{
	struct timespec ts;
	uint64_t begin = 0, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
		begin = begin ? begin : now;
	} while (now - begin < ns);
}

static void *burner(void *data)
{
	struct thread *thread = data;

	burn(50000000);
	CHECK_EQUAL(kdsm_put(thread->region, 1, 0, "", 1), 0);
	thread->end = kdsm_virtual_now();
	return NULL;
}

/* A thread that computes for long does not keep the adapter from another thread meanwhile. */
static int measured(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	struct thread thread = { .region = region };
	struct kd_thread started;
	uint64_t begin = kdsm_virtual_now();
	unsigned int i;
	char byte;

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	CHECK_EQUAL(kd_thread_start(&started, 0, burner, &thread), 0);
	kd_sleep(1);
	for (i = 0; i < 100; i++)
		CHECK_EQUAL(kdsm_get(region, 1, 0, &byte, 1), 0);
	CHECK(kdsm_virtual_now() - begin >= 100 * LATENCY);
	CHECK(kdsm_virtual_now() - begin < 25000000);
	CHECK(kd_thread_join(&started, KDSM_FOREVER));
	CHECK(thread.end - begin >= 50000000 + LATENCY);
	CHECK(thread.end - begin < 100000000);
	CHECK(kdsm_virtual_now() >= thread.end);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_measured(void **state)
{
	struct kdsm_virtual_attr attr = priced(2);

	(void)state;
	attr.step = 0;
	run_as(&attr, measured, NULL);
}

/* ---- conditions ---- */

struct condition {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool set;
	uint64_t seen;
};

static void *cond_waiter(void *data)
{
	struct condition *c = data;

	kd_mutex_lock(&c->lock);
	while (!c->set)
		kd_cond_wait(&c->change, &c->lock);
	c->seen = kdsm_virtual_now();
	kd_mutex_unlock(&c->lock);
	return NULL;
}

static int condition(struct kdsm *kdsm, void *argument)
{
	struct condition c = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0 };
	struct kd_thread started;

	(void)kdsm;
	(void)argument;
	CHECK_EQUAL(kd_thread_start(&started, 0, cond_waiter, &c), 0);
	kd_mutex_lock(&c.lock);
	kd_cond_wait_for(&c.change, &c.lock, 1234);
	CHECK_EQUAL(kdsm_virtual_now(), 1234);
	c.set = true;
	kd_cond_broadcast(&c.change);
	kdsm_virtual_spend(766);
	kd_mutex_unlock(&c.lock);
	CHECK(kd_thread_join(&started, KDSM_FOREVER));
	CHECK_EQUAL(c.seen, 2000);
	return 0;
}

static void test_condition(void **state)
{
	(void)state;
	run(1, condition, NULL);
}

/* ---- waits ---- */

static int waits(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	uint64_t words[3] = { 1, 2, 3 }, seen[2], begin;
	struct kdsm_op ops[3];

	(void)argument;
	if (kdsm_node(kdsm)) {
		/* the notifying put comes after a long put, although it is short */
		kd_sleep(10000);
		ops[0] = kdsm_op_put(0, 64, words, 16);
		ops[1] = kdsm_op_put(0, 0, &words[2], 8);
		ops[1].flags = KDSM_OP_NOTIFY;
		CHECK_EQUAL(kdsm_vector(region, ops, 2), 0);
		goto out;
	}
	CHECK_EQUAL(kdsm_wait(region, 0, 1, KDSM_FOREVER), 0);
	CHECK_EQUAL(kdsm_wait(region, 0, 0, 0), -ETIMEDOUT);
	CHECK_EQUAL(kdsm_wait(region, PART, 0, 0), -ERANGE);
	CHECK_EQUAL(kdsm_virtual_now(), 0);
	CHECK_EQUAL(kdsm_wait(region, 0, 0, 3000), -ETIMEDOUT);
	CHECK_EQUAL(kdsm_virtual_now(), 3000);
	CHECK_EQUAL(kdsm_wait(region, 0, 0, KDSM_FOREVER), 0);
	/* the gap is shorter than the 16 bytes of the first put */
	CHECK_EQUAL(kdsm_virtual_now(), 10000 + LATENCY / 2 + (16 + 8) * BYTE_NS);
	CHECK_EQUAL(kdsm_get(region, 0, 64, seen, 16), 0);
	CHECK(seen[0] == 1 && seen[1] == 2);
	begin = kdsm_virtual_now();
	CHECK_EQUAL(kdsm_put_notify(region, 0, 0, 9), 0);
	CHECK_EQUAL(kdsm_wait(region, 0, 3, KDSM_FOREVER), 0);
	CHECK_EQUAL(kdsm_virtual_now(), begin);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_waits(void **state)
{
	(void)state;
	run(2, waits, NULL);
}

/* ---- tickets ---- */

static int tickets(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	uint64_t word = 5, seen = 0, own = 0, begin;
	struct kdsm_ticket ticket;
	struct kdsm_op ops[3];

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	ops[0] = kdsm_op_put(1, 0, &word, 8);
	ops[1] = kdsm_op_get(1, 8, &seen, 8);
	ops[2] = kdsm_op_faa(0, 16, 7);
	CHECK_EQUAL(kdsm_submit(region, ops, 3, &ticket), 0);
	CHECK_EQUAL(kdsm_virtual_now(), 0);
	word = 6;	/* the memory of a put may be used again */
	CHECK_EQUAL(kdsm_complete(region, &ticket, 0), -ETIMEDOUT);
	CHECK_EQUAL(kdsm_complete(region, &ticket, 500), -ETIMEDOUT);
	CHECK_EQUAL(kdsm_virtual_now(), 500);
	CHECK_EQUAL(kdsm_complete(region, &ticket, KDSM_FOREVER), 0);
	/* the data of the get waits until the adapter has acknowledged the put */
	CHECK_EQUAL(kdsm_virtual_now(), LATENCY + GAP + 2 * 8 * BYTE_NS);
	CHECK_EQUAL(kdsm_complete(region, &ticket, KDSM_FOREVER), -ENOENT);
	CHECK_EQUAL(kdsm_get(region, 1, 0, &seen, 8), 0);
	CHECK_EQUAL(seen, 5);
	CHECK_EQUAL(kdsm_get(region, 0, 16, &own, 8), 0);
	CHECK_EQUAL(own, 7);

	/* operations that are complete take no more time */
	CHECK_EQUAL(kdsm_submit(region, ops, 2, &ticket), 0);
	kd_sleep(10000);
	begin = kdsm_virtual_now();
	CHECK_EQUAL(kdsm_complete(region, &ticket, 0), 0);
	CHECK_EQUAL(kdsm_virtual_now(), begin);
	CHECK_EQUAL(kdsm_submit(region, ops, 0, &ticket), 0);
	CHECK_EQUAL(kdsm_complete(region, &ticket, KDSM_FOREVER), 0);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_tickets(void **state)
{
	(void)state;
	run(2, tickets, NULL);
}

static void *completer(void *data)
{
	struct thread *thread = data;

	CHECK_EQUAL(kdsm_complete(thread->region, thread->ticket, 100), -EBUSY);
	thread->end = kdsm_virtual_now();
	return NULL;
}

/* Two threads complete a ticket, a copy of a ticket is stale, and some are never completed. */
static int stale_tickets(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	static uint64_t seen;
	struct kdsm_op op = kdsm_op_get(1, 8, &seen, 8);
	struct kdsm_ticket ticket, copy;
	struct kd_thread started;
	struct thread thread = { .region = region, .ticket = &copy };

	(void)argument;
	if (kdsm_node(kdsm))
		goto out;
	CHECK_EQUAL(kdsm_submit(region, &op, 1, &ticket), 0);
	copy = ticket;
	CHECK_EQUAL(kd_thread_start(&started, 0, completer, &thread), 0);
	CHECK_EQUAL(kdsm_complete(region, &ticket, KDSM_FOREVER), 0);
	CHECK(kd_thread_join(&started, KDSM_FOREVER));
	CHECK_EQUAL(thread.end, 0);
	CHECK_EQUAL(kdsm_complete(region, &copy, KDSM_FOREVER), -ENOENT);
	CHECK_EQUAL(kdsm_submit(region, &op, 1, &ticket), 0);
	CHECK_EQUAL(kdsm_submit(region, &op, 1, &copy), 0);
	kd_sleep(2000);
	CHECK_EQUAL(kdsm_submit(region, &op, 1, &ticket), 0);
out:
	kdsm_region_close(region);
	return 0;
}

static void test_stale_tickets(void **state)
{
	(void)state;
	run(2, stale_tickets, NULL);
}

/* ---- shares ---- */

#define WORKERS	3
#define DEPTH	9
#define LEAF	10000u	/* price of a leaf, in ns */

KDSM_TASK(uint64_t, leaves, unsigned int, depth)
{
	uint64_t sum;

	if (!depth) {
		kdsm_virtual_spend(LEAF);
		return 1;
	}
	KDSM_SPAWN(leaves, depth - 1);
	sum = KDSM_CALL(leaves, depth - 1);
	return sum + KDSM_SYNC(leaves);
}

static uint64_t check_times(unsigned int workers)
{
	struct kdsm_virtual_times times = { .argsz = sizeof(times) };
	uint64_t sum = 0;
	unsigned int i;

	kdsm_virtual_times(&times);
	CHECK_EQUAL(times.workers, workers);
	for (i = 0; i < KDSM_VIRTUAL_SHARES; i++)
		sum += times.share[i];
	CHECK_EQUAL(sum, times.workers * times.elapsed);
	return times.share[KDSM_VIRTUAL_COMPUTING];
}

/* The times agree whenever any node asks for them. */
static void *observer(void *data)
{
	const unsigned int *workers = data;

	while (*workers) {
		check_times(*workers);
		kd_sleep(3137);
	}
	return NULL;
}

static void run_leaves(struct kdsm_region *region, unsigned int nodes)
{
	struct kdsm_tasks_attr attr = {
		.argsz = sizeof(attr),
		.workers = WORKERS, .deque = 64, .node_workers = WORKERS, .stack = 1 << 20,
	};
	const uint64_t place = 4096;
	struct kdsm_barrier barrier;
	unsigned int watched = nodes * WORKERS;
	struct kd_thread started;
	struct kdsm_tasks *tasks;
	uint64_t sum = 0;

	kdsm_barrier_init(&barrier, region, 0);
	CHECK_EQUAL(kdsm_tasks_open(region, place, &attr, &tasks), 0);
	kd_sleep(1000);		/* the workers begin */
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	if (kdsm_node(kdsm_region_cluster(region)) == nodes - 1) {
		CHECK_EQUAL(kd_thread_start(&started, 0, observer, &watched), 0);
		kdsm_virtual_reset();
		CHECK_EQUAL(check_times(nodes * WORKERS), 0);
	}
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	if (!kdsm_node(kdsm_region_cluster(region))) {
		CHECK_EQUAL(KDSM_RUN(tasks, &sum, leaves, DEPTH), 0);
		CHECK_EQUAL(sum, 1 << DEPTH);
		CHECK_EQUAL(check_times(nodes * WORKERS), (UINT64_C(1) << DEPTH) * LEAF);
		kdsm_tasks_end(tasks);
	}
	CHECK_EQUAL(kdsm_tasks_serve(tasks), 0);
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	if (watched && kdsm_node(kdsm_region_cluster(region)) == nodes - 1) {
		watched = 0;
		CHECK(kd_thread_join(&started, KDSM_FOREVER));
	}
	kdsm_tasks_close(tasks);
	CHECK_EQUAL(kdsm_barrier_wait(&barrier, KDSM_FOREVER), 0);
	/* workers that have ended still count */
	CHECK_EQUAL(check_times(nodes * WORKERS), (UINT64_C(1) << DEPTH) * LEAF);
}

static int shares(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);

	(void)argument;
	/* before there are workers, the program of a node counts as one */
	kdsm_virtual_spend(1000 * (1 + kdsm_node(kdsm)));
	check_times(kdsm_nodes(kdsm));
	kd_sleep(100000);
	run_leaves(region, kdsm_nodes(kdsm));
	kdsm_region_close(region);
	return 0;
}

static void test_shares(void **state)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };

	(void)state;
	run(1, shares, NULL);
	run(2, shares, NULL);
	attr = priced(7);
	attr.quantum = 3000;
	run_as(&attr, shares, NULL);
}

/* ---- regions, locks, and what a run refuses ---- */

static int refused(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region_attr coherent = {
		.argsz = sizeof(coherent),
		.size = 4096,
		.policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm_region *region = open_region(kdsm), *other;
	struct kdsm_virtual_attr attr = priced(1);
	struct kdsm_ticket ticket;
	struct kdsm_lock *lock;
	struct kdsm_op op;
	uint64_t word = 0;

	(void)argument;
	CHECK_EQUAL(kdsm_virtual_run(&attr, refused, NULL), -EBUSY);
	CHECK_EQUAL(kdsm_region_open(kdsm, "c", &coherent, &other), -EOPNOTSUPP);
	CHECK_EQUAL(kdsm_region_open(kdsm, "none", NULL, &other), -ENOENT);
	CHECK_EQUAL(kdsm_lock_open(region, "l", 0, &lock), -EOPNOTSUPP);
	CHECK_EQUAL(kdsm_get(region, 2, 0, &word, 8), -EINVAL);
	CHECK_EQUAL(kdsm_faa(region, 70000, 0, 1, &word), -EINVAL);
	/* neither the sender nor the network touches the data of this put */
	op = kdsm_op_put(!kdsm_node(kdsm), 0, &word, UINT32_MAX);
	CHECK_EQUAL(kdsm_vector(region, &op, 1), -EINVAL);
	CHECK_EQUAL(kdsm_submit(region, &op, 1, &ticket), 0);
	CHECK_EQUAL(kdsm_complete(region, &ticket, KDSM_FOREVER), -EINVAL);
	CHECK_EQUAL(kdsm_virtual_now(), 0);
	CHECK_EQUAL(kdsm_get(region, !kdsm_node(kdsm), PART, &word, 8), -ERANGE);
	CHECK_EQUAL(kdsm_faa(region, !kdsm_node(kdsm), 4, 1, &word), -EINVAL);
	kdsm_region_close(region);
	return 0;
}

static int odd(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region *region = open_region(kdsm);
	uint64_t word;

	(void)argument;
	CHECK_EQUAL(kdsm_get(region, !kdsm_node(kdsm), 0, &word, 8), 0);
	CHECK_EQUAL(kdsm_virtual_now(), 2001 + 8 * BYTE_NS);
	kdsm_region_close(region);
	return 0;
}

static int none(struct kdsm *kdsm, void *argument)
{
	(void)kdsm;
	(void)argument;
	return 0;
}

static void test_refused(void **state)
{
	struct kdsm_virtual_attr attr = { .argsz = sizeof(attr) };

	(void)state;
	run(2, refused, NULL);
	/* an odd latency has two different halves */
	attr = priced(2);
	attr.one_sided = 2001;
	run_as(&attr, odd, NULL);
	attr = priced(0);
	assert_int_equal(kdsm_virtual_run(&attr, none, NULL), -EINVAL);
	attr = priced(KDSM_MAX_NODES + 1);
	assert_int_equal(kdsm_virtual_run(&attr, none, NULL), -EINVAL);
	attr = priced(1);
	attr.bandwidth = 0;
	assert_int_equal(kdsm_virtual_run(&attr, none, NULL), -EINVAL);
	attr = priced(1);
	attr.handler = attr.message + 1;
	assert_int_equal(kdsm_virtual_run(&attr, none, NULL), -EINVAL);
}

static int results(struct kdsm *kdsm, void *argument)
{
	(void)argument;
	return kdsm_node(kdsm) < 2 ? 0 : -(int)kdsm_node(kdsm);
}

/* All nodes wait for words that nobody writes. */
static int stuck(struct kdsm *kdsm, void *argument)
{
	struct kdsm_region **region = argument;
	uint64_t local[64];

	memset(local, 1, sizeof(local));
	*region = open_region(kdsm);
	kdsm_wait(*region, 0, local[0] - local[1], KDSM_FOREVER);
	CHECK(false);
	return 0;
}

static void test_results(void **state)
{
	struct kdsm_virtual_attr attr = priced(4);
	struct kdsm_region *region;
	unsigned int i;

	(void)state;
	failures = 0;
	for (i = 0; i < 3; i++) {
		assert_int_equal(kdsm_virtual_run(&attr, results, NULL), -2);
		assert_int_equal(kdsm_virtual_run(&attr, stuck, &region), -EDEADLK);
		run(2, chain, NULL);
	}
	/* outside a run */
	assert_int_equal(kdsm_virtual_now(), 0);
	kdsm_virtual_spend(1);
	kdsm_virtual_reset();
	assert_int_equal(failures, 0);
}

static void *run_chains(void *data)
{
	struct kdsm_virtual_attr attr = priced(2);
	unsigned int i;

	(void)data;
	for (i = 0; i < 50; i++)
		CHECK_EQUAL(kdsm_virtual_run(&attr, waits, NULL), 0);
	return NULL;
}

/* Threads of the process have runs of their own. */
static void test_parallel(void **state)
{
	pthread_t thread[3];
	unsigned int i;

	(void)state;
	failures = 0;
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_chains, NULL), 0);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_vector),
		cmocka_unit_test(test_hot_node),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_many_nodes),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_mutex),
		cmocka_unit_test(test_condition),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_tickets),
		cmocka_unit_test(test_stale_tickets),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_results),
		cmocka_unit_test(test_parallel),
	};

	return UNIT_RUN(tests);
}
