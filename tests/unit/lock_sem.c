// SPDX-License-Identifier: GPL-2.0
/* Semaphores on the local backend, with threads and processes. */
#include "lock.h"

#define AT	1024		/* offset of the semaphore in bytes, behind the tests' words */
#define NEXT_AT	(AT + KDSM_LINE_SIZE)
#define MOST	KDSM_LINE_MOST

/*
 * Words of a semaphore: the head, whose lower half has a bias, and the ring of entries
 * after the head
 */
#define HEAD(ticket, value)	((uint64_t)(ticket) << 32 | (uint32_t)(0x40000000 + (value)))
#define WAITS(ticket)		((uint64_t)(ticket) << 32 | 1 << 16)
#define POSTED(ticket)	((uint64_t)(ticket) << 32 | 2 << 16)
#define GONE(ticket)	((uint64_t)(ticket) << 32 | 3 << 16)
#define DONE(ticket)	((uint64_t)(ticket) << 32 | 4 << 16)
#define BACK(ticket)	((uint64_t)(ticket) << 32 | 5 << 16)
#define DOUBT(ticket)	((uint64_t)(ticket) << 32 | 6 << 16)
#define RING			8

static struct kdsm_sem make_sem(void **state, uint64_t offset, uint32_t value)
{
	struct unit *unit = *state;
	struct kdsm_sem sem;

	assert_int_equal(kdsm_sem_init(&sem, unit->region, offset, 0, value, NULL), 0);
	return sem;
}

static int32_t value_of(struct kdsm_sem *sem)
{
	int32_t value = 0;

	assert_int_equal(kdsm_sem_value(sem, &value), 0);
	return value;
}

static void bad(void **state)
{
	struct unit *unit = *state;
	uint64_t *words = unit_words(state);
	struct kdsm_sem sem, again;
	int32_t value;

	assert_int_equal(kdsm_sem_init(&sem, unit->region, AT + 8, 0, 0, NULL), -EINVAL);
	assert_int_equal(kdsm_sem_init(&sem, unit->region, AT, 7, 0, NULL), -EINVAL);
	assert_int_equal(kdsm_sem_init(&sem, unit->region, AT, 0, KDSM_SEM_MAX + 1U, NULL),
			 -EINVAL);
	assert_int_equal(kdsm_sem_init(&sem, unit->region, UNIT_PART, 0, 0, NULL), -ERANGE);

	/* Only the first initialization sets the value. */
	sem = make_sem(state, AT, 3);
	again = make_sem(state, AT, 5);
	assert_int_equal(value_of(&again), 3);
	assert_int_equal(kdsm_sem_try(&again), 0);
	assert_int_equal(value_of(&sem), 2);

	/* Words that hold no semaphore: zero, and other data */
	words[AT / 8] = 0;
	assert_int_equal(kdsm_sem_post(&sem), -EPROTO);
	assert_int_equal(kdsm_sem_wait(&sem), -EPROTO);
	assert_int_equal(kdsm_sem_try(&sem), -EPROTO);
	assert_int_equal(kdsm_sem_value(&sem, &value), -EPROTO);
	assert_int_equal(words[AT / 8], 0);
	words[AT / 8] = 0xdeadbeefdeadbeef;
	assert_int_equal(kdsm_sem_post(&sem), -EPROTO);
	assert_int_equal(kdsm_sem_wait(&sem), -EPROTO);
	assert_true(words[AT / 8] == 0xdeadbeefdeadbeef);
}

static void counting(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 2);
	uint64_t begin;

	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 0), 0);
	assert_int_equal(value_of(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	begin = now();
	assert_int_equal(kdsm_sem_timed(&sem, 30 * MS), -ETIMEDOUT);
	assert_true(now() - begin >= 30 * MS);

	/* A waiter that gave up takes no later post. */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of(&sem), 1);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of(&sem), 2);
	assert_int_equal(kdsm_sem_try(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
}

static void largest(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, KDSM_SEM_MAX);

	assert_int_equal(kdsm_sem_post(&sem), -EOVERFLOW);
	assert_int_equal(value_of(&sem), KDSM_SEM_MAX);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of(&sem), KDSM_SEM_MAX);
}

/* ---- limit of concurrent holders ---- */

#define ROUNDS	2000
#define INSIDE	3

struct pool {
	struct kdsm_sem sem;
	uint64_t *words;
	int failures;
};

static void *visit(void *arg)
{
	struct pool *pool = arg;
	uint64_t inside;
	int i, ret;

	for (i = 0; i < ROUNDS; i++) {
		do {
			ret = i % 4 ? kdsm_sem_wait(&pool->sem) :
			      kdsm_sem_timed(&pool->sem, 30000);
		} while (i % 4 == 0 && ret == -ETIMEDOUT);
		UNIT_CHECK(&pool->failures, !ret);
		inside = __atomic_add_fetch(&pool->words[0], 1, __ATOMIC_SEQ_CST);
		UNIT_CHECK(&pool->failures, inside <= INSIDE);
		if (i % 16 == 0)
			sched_yield();
		__atomic_sub_fetch(&pool->words[0], 1, __ATOMIC_SEQ_CST);
		UNIT_CHECK(&pool->failures, !kdsm_sem_post(&pool->sem));
	}
	return NULL;
}

static void so_many_inside(void **state)
{
	struct pool pool = { make_sem(state, AT, INSIDE), unit_words(state), 0 };
	uint64_t begin = now();
	pthread_t threads[5];
	pid_t pids[2];
	int i;

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			visit(&pool);
			_exit(!!pool.failures);
		}
	}
	for (i = 0; i < 5; i++)
		threads[i] = start(visit, &pool);
	for (i = 0; i < 5; i++)
		join(threads[i]);
	for (i = 0; i < 2; i++)
		reap(pids[i]);
	assert_int_equal(pool.failures, 0);
	assert_int_equal(value_of(&pool.sem), INSIDE);
	print_message("# %.2f s\n", (now() - begin) / 1e9);
}

/* Each post hands over to the consumer, which sees all writes before the post. */
static void *produce(void *arg)
{
	struct pool *pool = arg;
	int i;

	for (i = 1; i <= ROUNDS; i++) {
		pool->words[2 + i % 64] = i;
		UNIT_CHECK(&pool->failures, !kdsm_sem_post(&pool->sem));
	}
	return NULL;
}

static void hand_over(void **state)
{
	struct pool pool = { make_sem(state, AT, 0), unit_words(state), 0 };
	pthread_t thread = start(produce, &pool);
	int i;

	for (i = 1; i <= ROUNDS; i++)
		assert_int_equal(kdsm_sem_timed(&pool.sem, 20 * SECOND), 0);
	assert_int_equal(kdsm_sem_try(&pool.sem), -EAGAIN);
	join(thread);
	assert_int_equal(pool.failures, 0);
	assert_int_equal(pool.words[2 + ROUNDS % 64], ROUNDS);
}

/* ---- order ---- */

struct visitor {
	struct kdsm_sem *sem;
	uint64_t *got;
	uint64_t order;
	int ret;
};

static void *wait_in_line(void *arg)
{
	struct visitor *visitor = arg;

	visitor->ret = kdsm_sem_wait(visitor->sem);
	visitor->order = __atomic_fetch_add(visitor->got, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void first_come_first_served(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	struct visitor visitors[5];
	pthread_t threads[5];
	int i;

	for (i = 0; i < 5; i++) {
		visitors[i] = (struct visitor){ &sem, &words[0], 0, 0 };
		threads[i] = start(wait_in_line, &visitors[i]);
		while (value_of(&sem) > -(i + 1))
			usleep(500);
	}
	for (i = 0; i < 5; i++) {
		assert_int_equal(kdsm_sem_post(&sem), 0);
		assert_true(comes_to(&words[0], i + 1));
		join(threads[i]);
		assert_int_equal(visitors[i].ret, 0);
		assert_int_equal(visitors[i].order, i);
	}
	assert_int_equal(value_of(&sem), 0);
}

/* Tickets continue beyond the end of the ring, and wrap after 32 bits. */
static void wrapping(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	struct visitor visitor;
	unsigned int i;
	pthread_t thread;

	for (i = 0; i < 2 * MOST; i++) {
		assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
		assert_int_equal(kdsm_sem_post(&sem), 0);
		assert_int_equal(kdsm_sem_try(&sem), 0);
	}
	sem = make_sem(state, NEXT_AT, 0);
	words[NEXT_AT / 8] = HEAD(0xfffffffe, 0);
	for (i = 0; i < 4; i++) {
		visitor = (struct visitor){ &sem, &words[0], 0, 0 };
		thread = start(wait_in_line, &visitor);
		while (value_of(&sem) == 0)
			usleep(500);
		assert_int_equal(kdsm_sem_post(&sem), 0);
		join(thread);
		assert_int_equal(visitor.ret, 0);
	}
	assert_true(words[NEXT_AT / 8] == HEAD(2, 0));
}

static void too_many(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	unsigned int i;

	words[AT / 8] = HEAD(MOST, -MOST);
	for (i = 0; i < MOST; i++)
		words[AT / 8 + RING + i] = WAITS(i);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), -EAGAIN);
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(MOST, -MOST));
	assert_true(words[AT / 8 + RING] == WAITS(0));

	/*
	 * The posted waiter of ticket 0 has not left yet: its entry becomes free, but not
	 * now.
	 */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	assert_int_equal(value_of(&sem), -MOST + 1);
}

/* A post reaches a live waiter, however many waiters gave up before. */
static void many_gave_up(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	unsigned int i;

	/*
	 * Waiters that give up give back their tickets, and the tickets of others that
	 * could not.
	 */
	for (i = 0; i < 2 * MOST; i++)
		assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	assert_int_equal(value_of(&sem), 0);
	words[AT / 8] = HEAD(MOST, -MOST);
	for (i = 0; i < MOST; i++)
		words[AT / 8 + RING + i] = GONE(i);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(0, 0));
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);

	/*
	 * Tickets before a live waiter's ticket cannot be given back, so the ring stays
	 * full.
	 */
	words[AT / 8] = HEAD(MOST, -MOST);
	for (i = 0; i < MOST; i++)
		words[AT / 8 + RING + i] = i == MOST - 1 ? WAITS(i) : GONE(i);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(MOST, -MOST));
	assert_true(words[AT / 8 + RING] == GONE(0));
	/* With one in front of them who waits it is the same: they are not so many who wait. */
	words[AT / 8 + RING] = WAITS(0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(MOST, -MOST));
	words[AT / 8 + RING] = GONE(0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_true(words[AT / 8] == HEAD(MOST, 0));
	assert_true(words[AT / 8 + RING + MOST - 1] == POSTED(MOST - 1));
}

/* A poster died after it raised the value, before it passed the post of ticket 0 on. */
static void dead_poster_after_gone(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);

	words[AT / 8] = HEAD(1, 0);
	words[AT / 8 + RING] = GONE(0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), 0);
	assert_true(words[AT / 8] == HEAD(2, 0));
}

/*
 * A ticket was given back, and the next thread draws the ticket again and passes at once.
 * The entry of the ticket must not look as if a post were lost.
 */
static void given_back_and_passed(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);

	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_true(words[AT / 8] == HEAD(1, 0));
	assert_true(words[AT / 8 + RING] == DONE(0 - MOST));

	/* The thread that gave the ticket back died meanwhile. */
	words[AT / 8 + RING] = BACK(0);
	assert_int_equal(kdsm_sem_timed(&sem, 5 * SECOND / 2), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(1, 0));
	assert_true(words[AT / 8 + RING] == DOUBT(0));
}

/* ---- signals and death ---- */

static void interrupted(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	timer_t timer = start_signals();

	assert_int_equal(kdsm_sem_wait(&sem), -EINTR);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), -EINTR);
	timer_delete(timer);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of(&sem), 1);
}

static pid_t fork_waiter(struct kdsm_sem *sem)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(kdsm_sem_wait(sem) ? 2 : 1);
	while (value_of(sem) == 0)
		usleep(500);
	usleep(20000);
	return pid;
}

/* A post to a dead waiter passes on to a later waiter. */
static void dead_waiter(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);

	kill_child(fork_waiter(&sem));
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 10 * MS), -ETIMEDOUT);
}

/* A stopped waiter loses its post to another waiter, and waits for the next post. */
static void slow_waiter(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	pid_t pid = fork_waiter(&sem);
	int status;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), 0);
	assert_int_equal(kill(pid, SIGCONT), 0);
	usleep(50000);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
}

/*
 * A thread is so slow between drawing its ticket and joining the ring that other threads
 * take it for dead. Its post goes to another ticket, so the thread draws another ticket.
 */
static void slow_to_come(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	struct visitor visitor = { &sem, &words[0], 0, 0 };
	uint64_t begin = now();
	pthread_t thread;

	words[AT / 8] = HEAD(5, 0);
	words[AT / 8 + RING + 5] = DONE(5);
	thread = start(wait_in_line, &visitor);
	while (value_of(&sem) > -2 && now() - begin < 60 * SECOND)
		usleep(500);
	assert_true(load(&words[AT / 8]) == HEAD(7, -2));
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	join(thread);
	assert_int_equal(visitor.ret, 0);

	/* The entry may belong to a later ticket already. */
	words[AT / 8 + RING + 8] = DONE(8 + MOST);
	words[AT / 8] = HEAD(8, 0);
	assert_int_equal(kdsm_sem_timed(&sem, 10 * MS), -ETIMEDOUT);
	assert_true(words[AT / 8] == HEAD(9, -1));
	assert_true(words[AT / 8 + RING + 8] == DONE(8 + MOST));
}

/* A poster raises the value and dies before it delivers the post. */
static void dead_poster(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *words = unit_words(state);
	struct visitor visitor = { &sem, &words[0], 0, 0 };
	pthread_t thread = start(wait_in_line, &visitor);

	while (value_of(&sem) == 0)
		usleep(500);
	usleep(20000);
	__atomic_add_fetch(&words[AT / 8], 1, __ATOMIC_SEQ_CST);
	join(thread);
	assert_int_equal(visitor.ret, 0);
	assert_int_equal(value_of(&sem), 0);
}

/* A semaphore with a lock: each call holds the lock only for its duration. */
static void with_lock(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct unit *unit = *state;
	struct kdsm_lock_info info;
	struct kdsm_sem sem;

	assert_int_equal(kdsm_sem_init(&sem, unit->region, AT, 0, 0, lock), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), 0);
	assert_int_equal(kdsm_lock_try(lock), 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_FAST], 5);
	/* The caller holds the lock, so the post fails. */
	assert_int_equal(kdsm_sem_post(&sem), -EDEADLK);
	assert_int_equal(value_of(&sem), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(bad),
		unit_case(counting),
		unit_case(largest),
		unit_case(so_many_inside),
		unit_case(hand_over),
		unit_case(first_come_first_served),
		unit_case(wrapping),
		unit_case(too_many),
		unit_case(many_gave_up),
		unit_case(given_back_and_passed),
		unit_case(interrupted),
		unit_case(dead_waiter),
		unit_case(slow_waiter),
		unit_case(slow_to_come),
		unit_case(dead_poster),
		unit_case(dead_poster_after_gone),
		unit_case(with_lock),
	};

	return UNIT_RUN(tests);
}
