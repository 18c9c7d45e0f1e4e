// SPDX-License-Identifier: GPL-2.0
/*
 * Semaphores at node 0, used by threads of two other simulated nodes that stop just
 * before a given operation, so that each test forces one order of the operations. Node 0 does
 * its own operations without the backend and cannot stop. lib/lock/wait_queue.c has the steps.
 */
#include <pthread.h>
#include <unistd.h>
#include "unit.h"
#include <kdsm/lock.h>
#include "lock/internal.h"
#include "sim.h"

#define SECOND	1000000000ULL
#define HEAD	offsetof(struct kdsm_line_area, head)
#define RING	offsetof(struct kdsm_line_area, ring)
#define BELLS	offsetof(struct kdsm_line_area, bells)

/* A thread that stops once, before the first operation that is_before() accepts */
struct thread {
	int (*function)(struct kdsm_sem *sem);
	struct kdsm_sem *sem;
	bool (*is_before)(const struct kdsm_op *op);
	int stopped, released;
	int ret;
	pthread_t thread;
};

static struct kdsm_region *regions[3];
static struct kdsm_sem sems[3];
static _Thread_local struct thread *self;

static struct thread stopping(int (*function)(struct kdsm_sem *sem), unsigned int node,
			      bool (*is_before)(const struct kdsm_op *op))
{
	return (struct thread){
		.function = function,
		.sem = &sems[node],
		.is_before = is_before,
	};
}

static uint64_t *word(uint64_t place)
{
	return (uint64_t *)((uint8_t *)kdsm_region_part(regions[0]) + place);
}

static uint64_t load(uint64_t place)
{
	return __atomic_load_n(word(place), __ATOMIC_SEQ_CST);
}

static void stop_before(const struct kdsm_op *op)
{
	if (!self || self->stopped || !self->is_before(op))
		return;
	__atomic_store_n(&self->stopped, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&self->released, __ATOMIC_SEQ_CST))
		usleep(500);
}

static void *run(void *arg)
{
	self = arg;
	self->ret = self->function(self->sem);
	return NULL;
}

static void start(struct thread *thread)
{
	assert_int_equal(pthread_create(&thread->thread, NULL, run, thread), 0);
}

static void await_stop(struct thread *thread)
{
	while (!__atomic_load_n(&thread->stopped, __ATOMIC_SEQ_CST))
		usleep(500);
}

static void go_on(struct thread *thread)
{
	__atomic_store_n(&thread->released, 1, __ATOMIC_SEQ_CST);
}

static int end(struct thread *thread)
{
	go_on(thread);
	assert_int_equal(pthread_join(thread->thread, NULL), 0);
	return thread->ret;
}

static int32_t value(void)
{
	int32_t value = 0;

	assert_int_equal(kdsm_sem_value(&sems[0], &value), 0);
	return value;
}

static int setup(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 3 * 65536 };
	int i;

	(void)state;
	sim_start(3);
	for (i = 0; i < 3; i++) {
		if (kdsm_region_open(sim.kdsm[i], "order", &attr, &regions[i]) ||
		    kdsm_sem_init(&sems[i], regions[i], 0, 0, 0, NULL))
			return -1;
	}
	sim.before = stop_before;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kdsm_region_close(regions[0]);
	kdsm_region_close(regions[1]);
	kdsm_region_close(regions[2]);
	sim_stop();
	return 0;
}

/* ---- where threads stop ---- */

static bool is_never(const struct kdsm_op *op)
{
	(void)op;
	return false;
}

static bool is_swap(const struct kdsm_op *op, uint64_t place)
{
	return op->opcode == KDSM_OP_CAS && op->offset == place;
}

/* The entry is in the ring, but the head does not know. */
static bool is_joining(const struct kdsm_op *op)
{
	return is_swap(op, HEAD) && !front_of(op->compare) && front_of(op->operand);
}

static bool is_joining_later(const struct kdsm_op *op)
{
	return is_swap(op, HEAD) && op->operand - op->compare == LINE_CHANGE;
}

/* The entry is out of the ring, but the head names the thread. */
static bool is_passing(const struct kdsm_op *op)
{
	return is_swap(op, HEAD) && front_of(op->compare) &&
	       front_of(op->compare) != front_of(op->operand);
}

static bool is_drawing(const struct kdsm_op *op)
{
	return op->offset == offsetof(struct kdsm_line_area, tail);
}

static bool is_entering(const struct kdsm_op *op)
{
	return is_swap(op, RING);
}

static bool is_ringing(const struct kdsm_op *op)
{
	return op->opcode == KDSM_OP_PUT && op->offset >= BELLS;
}

/* ---- orders ---- */

static int wait_long(struct kdsm_sem *sem)
{
	return kdsm_sem_timed(sem, 60 * SECOND);
}

static int wait_shortly(struct kdsm_sem *sem)
{
	return kdsm_sem_timed(sem, SECOND / 20);
}

static void wait_until(bool (*holds)(void))
{
	while (!holds())
		usleep(500);
}

static bool first_is_front(void)
{
	return front_of(load(HEAD)) == make_front(0, 1);
}

static bool second_is_front(void)
{
	return front_of(load(HEAD)) == make_front(1, 2);
}

static bool second_has_joined(void)
{
	return load(RING + 8) && load(HEAD) / LINE_CHANGE == 1;
}

static bool nobody_waits(void)
{
	return !front_of(load(HEAD)) && !load(RING) && !load(RING + 8);
}

/* The front passes when it has not seen the entry of the thread that joins. */
static void joins_while_front_passes(void **state)
{
	struct thread front = stopping(wait_long, 1, is_passing);
	struct thread second = stopping(wait_long, 2, is_never);

	(void)state;
	start(&front);
	wait_until(first_is_front);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	await_stop(&front);
	start(&second);
	wait_until(second_has_joined);
	assert_int_equal(end(&front), 0);
	wait_until(second_is_front);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&second), 0);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* The front passes when the entry is there, and makes its thread the front. */
static void joins_slowly(void **state)
{
	struct thread front = stopping(wait_long, 1, is_never);
	struct thread second = stopping(wait_long, 2, is_joining_later);

	(void)state;
	start(&front);
	wait_until(first_is_front);
	start(&second);
	await_stop(&second);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&front), 0);
	assert_true(second_is_front());
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&second), 0);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* A thread has drawn a ticket, and comes only when later ones have passed. */
static void enters_slowly(void **state)
{
	struct thread slow = stopping(wait_long, 1, is_entering);
	struct thread second = stopping(wait_long, 2, is_never);

	(void)state;
	start(&slow);
	await_stop(&slow);
	start(&second);
	wait_until(second_is_front);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&second), 0);
	go_on(&slow);
	wait_until(first_is_front);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&slow), 0);
	assert_int_equal(value(), 0);
}

/* The post comes after the thread has seen that there is none, before it joins. */
static void posted_while_joining(void **state)
{
	struct thread waiter = stopping(wait_shortly, 1, is_joining);

	(void)state;
	start(&waiter);
	await_stop(&waiter);
	assert_int_equal(kdsm_sem_post(&sems[2]), 0);
	assert_int_equal(end(&waiter), 0);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* Another thread takes that post. */
static void overtaken_while_joining(void **state)
{
	struct thread waiter = stopping(wait_shortly, 1, is_drawing);

	(void)state;
	start(&waiter);
	await_stop(&waiter);
	assert_int_equal(kdsm_sem_post(&sems[2]), 0);
	assert_int_equal(kdsm_sem_try(&sems[2]), 0);
	assert_int_equal(end(&waiter), -ETIMEDOUT);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* The front is about to make a thread the front that gives up meanwhile. */
static void leaves_while_front_passes(void **state)
{
	struct thread front = stopping(wait_long, 1, is_passing);
	struct thread second = stopping(wait_shortly, 2, is_never);

	(void)state;
	start(&front);
	wait_until(first_is_front);
	start(&second);
	wait_until(second_has_joined);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	await_stop(&front);
	assert_int_equal(end(&second), -ETIMEDOUT);
	assert_int_equal(end(&front), 0);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* The front has left the ring when others take it for dead: it waits for the next post. */
static void front_is_slow(void **state)
{
	struct thread front = stopping(wait_long, 1, is_passing);
	struct thread second = stopping(wait_long, 2, is_never);

	(void)state;
	start(&front);
	wait_until(first_is_front);
	start(&second);
	wait_until(second_has_joined);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	await_stop(&front);
	assert_int_equal(pthread_join(second.thread, NULL), 0);
	assert_int_equal(second.ret, 0);
	go_on(&front);
	while (front_of(load(HEAD)) != make_front(2, 1))
		usleep(500);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&front), 0);
	assert_int_equal(value(), 0);
	assert_true(nobody_waits());
}

/* The poster is slow or dead: the front finds the post by itself. */
static void poster_is_slow(void **state)
{
	struct thread front = stopping(wait_long, 1, is_never);
	struct thread poster = stopping(kdsm_sem_post, 2, is_ringing);

	(void)state;
	start(&front);
	wait_until(first_is_front);
	start(&poster);
	await_stop(&poster);
	assert_int_equal(end(&front), 0);
	assert_int_equal(end(&poster), 0);
	assert_int_equal(value(), 0);
	/* The bell that rang too late wakes nobody who has no post. */
	front = stopping(wait_shortly, 1, is_never);
	start(&front);
	assert_int_equal(end(&front), -ETIMEDOUT);
	assert_true(nobody_waits());
}

#define order_case(function) \
	cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		order_case(joins_while_front_passes),
		order_case(joins_slowly),
		order_case(enters_slowly),
		order_case(posted_while_joining),
		order_case(overtaken_while_joining),
		order_case(leaves_while_front_passes),
		order_case(front_is_slow),
		order_case(poster_is_slow),
	};

	return UNIT_RUN(tests);
}
