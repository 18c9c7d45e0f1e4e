// SPDX-License-Identifier: GPL-2.0
/*
 * Semaphores at node 0, used by threads of two other simulated nodes that stop just
 * before a given operation, so that each test forces one order of the operations. Node 0 does
 * its own operations without the backend and cannot stop. lib/lock/wait_queue.c has the states.
 */
#include <pthread.h>
#include <unistd.h>
#include "unit.h"
#include <kdsm/lock.h>
#include "lock/internal.h"
#include "sim.h"

#define SECOND	1000000000ULL
#define HEAD	0	/* offset of the head */
#define ANY	0xf	/* any operation on the word */

/* A thread that stops once, before an operation on the head or an entry */
struct thread {
	int (*function)(struct kdsm_sem *sem);
	struct kdsm_sem *sem;
	uint64_t place;		/* of the word */
	unsigned int state;	/* of the entry before the change; 0: any change; ANY */
	int stopped, released;
	int ret;
	pthread_t thread;
};

static struct kdsm_region *regions[3];
static struct kdsm_sem sems[3];
static _Thread_local struct thread *self;

static struct thread stopping(int (*function)(struct kdsm_sem *sem), unsigned int node,
			      uint64_t place, unsigned int state)
{
	return (struct thread){
		.function = function,
		.sem = &sems[node],
		.place = place,
		.state = state,
	};
}

static uint64_t entry_place(uint32_t ticket)
{
	return offsetof(struct kdsm_line_area, ring) + ticket % KDSM_LINE_MOST * 8;
}

static uint64_t *word(uint64_t place)
{
	return (uint64_t *)((uint8_t *)kdsm_region_part(regions[0]) + place);
}

static bool is_before(const struct thread *thread, const struct kdsm_op *op)
{
	if (op->offset != thread->place || thread->stopped)
		return false;
	if (!thread->state)
		return op->opcode == KDSM_OP_CAS;
	if (thread->state == ANY)
		return true;
	return op->opcode == KDSM_OP_CAS && entry_state(op->compare) == thread->state;
}

static void stop_before(const struct kdsm_op *op)
{
	if (!self || !is_before(self, op))
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

/* Start the thread, and return once it has stopped. */
static void start(struct thread *thread)
{
	assert_int_equal(pthread_create(&thread->thread, NULL, run, thread), 0);
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

static int try_for_an_instant(struct kdsm_sem *sem)
{
	return kdsm_sem_timed(sem, 0);
}

static int32_t value(void)
{
	int32_t value = 0;

	assert_int_equal(kdsm_sem_value(&sems[0], &value), 0);
	return value;
}

static int setup(void **state)
{
	struct kdsm_region_attr attr = { .size = 3 * 65536 };
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

/*
 * Two threads of one node give back the same ticket. The first is so slow that its last
 * change comes when the entry is the second one's. A post then goes to neither of them, and
 * is there for the next.
 */
static void two_give_back(void **state)
{
	struct thread first = stopping(try_for_an_instant, 1, entry_place(0), ENTRY_BACK);
	struct thread second = stopping(try_for_an_instant, 1, HEAD, 0);

	(void)state;
	start(&first);
	start(&second);
	assert_int_equal(entry_state(*word(entry_place(0))), ENTRY_BACK);
	assert_int_equal(end(&first), -ETIMEDOUT);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(end(&second), -ETIMEDOUT);
	assert_int_equal(value(), 1);
	assert_int_equal(kdsm_sem_timed(&sems[0], SECOND), 0);
	assert_int_equal(value(), 0);
}

/* A waiter that sees the thread that gives back, and then the poster, as dead */
static int wait_long(struct kdsm_sem *sem)
{
	return kdsm_sem_timed(sem, 60 * SECOND);
}

/*
 * Ticket 0 is about to be given back when its post comes, but both the thread that gives the
 * ticket back and the poster stop. The waiter of ticket 1 takes the entry over.
 */
static void stop_both(struct thread *back, struct thread *poster)
{
	*back = stopping(try_for_an_instant, 1, HEAD, 0);
	*poster = stopping(kdsm_sem_post, 2, entry_place(0), ANY);
	start(back);
	start(poster);
	assert_int_equal(entry_state(*word(entry_place(0))), ENTRY_BACK);
}

/* Let both go on: the waiter passes, and the ticket that was given back timed out. */
static void end_all(struct thread *back, struct thread *poster, pthread_t thread,
		    const struct thread *waiter)
{
	assert_int_equal(end(poster), 0);
	assert_int_equal(end(back), -ETIMEDOUT);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(waiter->ret, 0);
	assert_int_equal(value(), 0);
	assert_int_equal(kdsm_sem_try(&sems[0]), -EAGAIN);
}

static void slow_poster(void **state)
{
	struct thread back, poster;
	pthread_t thread;
	struct thread waiter = stopping(wait_long, 1, UINT64_MAX, 0);

	(void)state;
	stop_both(&back, &poster);
	assert_int_equal(pthread_create(&thread, NULL, run, &waiter), 0);
	while (__atomic_load_n(word(entry_place(0)), __ATOMIC_SEQ_CST) >> 16 == ENTRY_BACK)
		usleep(1000);
	end_all(&back, &poster, thread, &waiter);
}

/* The same, and the entry belongs to the ticket one ring later when the poster comes. */
static void slower_poster(void **state)
{
	struct thread back, poster, waiter = stopping(wait_long, 1, UINT64_MAX, 0);
	struct kdsm_line_head next = { .ticket = KDSM_LINE_MOST };
	pthread_t thread;

	(void)state;
	stop_both(&back, &poster);
	/* The tickets between them have passed. */
	*word(HEAD) += (uint64_t)(next.ticket - 1) << 32;
	assert_int_equal(pthread_create(&thread, NULL, run, &waiter), 0);
	while (!is_of(__atomic_load_n(word(entry_place(0)), __ATOMIC_SEQ_CST), next.ticket,
		      ENTRY_WAITING))
		usleep(1000);
	end_all(&back, &poster, thread, &waiter);
}

/* The ticket was given back, and passed at once when it was drawn again: nothing is due. */
static void dead_after_giving_back(void **state)
{
	struct thread back = stopping(try_for_an_instant, 1, entry_place(0), ENTRY_BACK);

	(void)state;
	start(&back);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(kdsm_sem_wait(&sems[0]), 0);
	assert_int_equal(kdsm_sem_timed(&sems[0], 5 * SECOND / 2), -ETIMEDOUT);
	assert_true(is_of(*word(entry_place(0)), 0, ENTRY_DOUBT));
	assert_int_equal(end(&back), -ETIMEDOUT);
	assert_int_equal(value(), 0);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(kdsm_sem_try(&sems[0]), 0);
	assert_int_equal(kdsm_sem_try(&sems[0]), -EAGAIN);
}

/*
 * The waiter of ticket 0 and its poster are both so slow between head and entry that the
 * ticket one ring later has come and gone when they look at the entry.
 */
static void both_overtaken(void **state)
{
	struct thread waiter = stopping(wait_long, 1, entry_place(0), ANY);
	struct thread poster = stopping(kdsm_sem_post, 2, entry_place(0), ANY);

	(void)state;
	start(&waiter);
	start(&poster);
	*word(HEAD) += (uint64_t)KDSM_LINE_MOST << 32;
	*word(entry_place(0)) = make_entry(KDSM_LINE_MOST, ENTRY_DONE, 0);
	assert_int_equal(end(&poster), 0);
	assert_int_equal(end(&waiter), 0);
	assert_int_equal(value(), 0);
}

/* The same, but the waiter has no time to wait, and the post comes when it has given up. */
static void overtaken_and_over(void **state)
{
	struct thread waiter = stopping(try_for_an_instant, 1, entry_place(0), ANY);

	(void)state;
	start(&waiter);
	*word(HEAD) += (uint64_t)KDSM_LINE_MOST << 32;
	*word(HEAD) -= KDSM_LINE_MOST;
	*word(entry_place(0)) = make_entry(KDSM_LINE_MOST, ENTRY_WAITING, 2);
	assert_int_equal(end(&waiter), -ETIMEDOUT);
	assert_int_equal(value(), -1 - KDSM_LINE_MOST);
	/* For ticket 0, and then for ticket 1, whose waiter has not entered yet */
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(value(), 1 - KDSM_LINE_MOST);
	assert_true(is_of(*word(entry_place(1)), 1, ENTRY_POSTED));
}

/* The poster is not slow, and its post went on to another ticket: only one passes. */
static void overtaken_after_take_over(void **state)
{
	struct thread slow = stopping(wait_long, 1, entry_place(0), ANY);
	struct thread later = stopping(wait_long, 2, UINT64_MAX, 0);
	pthread_t thread;

	(void)state;
	start(&slow);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(kdsm_sem_timed(&sems[0], 20 * SECOND), 0);
	assert_true(is_of(*word(entry_place(0)), 0, ENTRY_MOVED));
	*word(HEAD) += (uint64_t)(KDSM_LINE_MOST - 2) << 32;
	assert_int_equal(pthread_create(&thread, NULL, run, &later), 0);
	while (!is_of(__atomic_load_n(word(entry_place(0)), __ATOMIC_SEQ_CST), KDSM_LINE_MOST,
		      ENTRY_WAITING))
		usleep(1000);
	go_on(&slow);
	while (value() != -2)
		usleep(1000);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(kdsm_sem_post(&sems[0]), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(later.ret, 0);
	assert_int_equal(end(&slow), 0);
	assert_int_equal(value(), 0);
}

/*
 * The poster finds the entry in use by the ticket one ring before. The waiter looks at the
 * entry only when it is free, and has no time to wait, but was posted.
 */
static void posted_before_entering(void **state)
{
	struct thread waiter = stopping(try_for_an_instant, 1, entry_place(0), ANY);

	(void)state;
	start(&waiter);
	*word(entry_place(0)) = make_entry(0 - KDSM_LINE_MOST, ENTRY_POSTED, 0);
	assert_int_equal(kdsm_sem_post(&sems[2]), 0);
	*word(entry_place(0)) = make_entry(0 - KDSM_LINE_MOST, ENTRY_DONE, 0);
	assert_int_equal(end(&waiter), 0);
	assert_int_equal(value(), 0);
}

#define order_case(function) \
	cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		order_case(two_give_back),
		order_case(slow_poster),
		order_case(slower_poster),
		order_case(dead_after_giving_back),
		order_case(both_overtaken),
		order_case(overtaken_and_over),
		order_case(overtaken_after_take_over),
		order_case(posted_before_entering),
	};

	return UNIT_RUN(tests);
}
