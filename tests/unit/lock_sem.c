// SPDX-License-Identifier: GPL-2.0
/* Semaphores on the local backend, with threads and processes. */
#include "lock.h"
#include "lock/internal.h"

#define AT	1024		/* offset of the semaphore in bytes, behind the tests' words */
#define NEXT_AT	(AT + KDSM_LINE_SIZE)
#define MOST	KDSM_LINE_MOST

/* Words of a semaphore: lib/lock/wait_queue.c describes them. The home is node 0. */
#define TAIL			1
#define RING			8
#define BELLS			(RING + MOST)
#define HEAD(front, value)	make_head(0, front, value)
#define FRONT(ticket)		make_front(slot_of(ticket), 0)
#define WAITS(ticket)		make_entry(ticket, 0)

static struct kdsm_sem make_sem(void **state, uint64_t offset, uint32_t value)
{
	struct unit *unit = *state;
	struct kdsm_sem sem;

	assert_int_equal(kdsm_sem_init(&sem, unit->region, offset, 0, value, NULL), 0);
	return sem;
}

static int32_t value_of_sem(struct kdsm_sem *sem)
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
	assert_int_equal(value_of_sem(&again), 3);
	assert_int_equal(kdsm_sem_try(&again), 0);
	assert_int_equal(value_of_sem(&sem), 2);

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
	assert_int_equal(value_of_sem(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	begin = now();
	assert_int_equal(kdsm_sem_timed(&sem, 30 * MS), -ETIMEDOUT);
	assert_true(now() - begin >= 30 * MS);

	/* A waiter that gave up takes no later post. */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of_sem(&sem), 1);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of_sem(&sem), 2);
	assert_int_equal(kdsm_sem_try(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
}

static void largest(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, KDSM_SEM_MAX);

	assert_int_equal(kdsm_sem_post(&sem), -EOVERFLOW);
	assert_int_equal(value_of_sem(&sem), KDSM_SEM_MAX);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(value_of_sem(&sem), KDSM_SEM_MAX);
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
	assert_int_equal(value_of_sem(&pool.sem), INSIDE);
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
		while (value_of_sem(&sem) > -(i + 1))
			usleep(500);
	}
	for (i = 0; i < 5; i++) {
		assert_int_equal(kdsm_sem_post(&sem), 0);
		assert_true(comes_to(&words[0], i + 1));
		join(threads[i]);
		assert_int_equal(visitors[i].ret, 0);
		assert_int_equal(visitors[i].order, i);
	}
	assert_int_equal(value_of_sem(&sem), 0);
}

/*
 * Threads come in order, and each waits at the tickets after "first", also when their low bits
 * begin again.
 */
static void pass_in_order(void **state, uint64_t first)
{
	struct kdsm_sem sem = make_sem(state, NEXT_AT, 0);
	uint64_t *line = unit_words(state) + NEXT_AT / 8, *got = unit_words(state);
	struct visitor visitors[6];
	pthread_t threads[6];
	unsigned int i;

	line[TAIL] = first - MOST;
	*got = 0;
	for (i = 0; i < 6; i++) {
		visitors[i] = (struct visitor){ &sem, got, 0, 0 };
		threads[i] = start(wait_in_line, &visitors[i]);
		while (value_of_sem(&sem) > -(int)(i + 1))
			usleep(500);
		assert_true(load(&line[RING + slot_of(first + i)]) == WAITS(first + i));
	}
	for (i = 0; i < 6; i++) {
		assert_true(front_of(load(&line[0])) == FRONT(first + i));
		assert_int_equal(kdsm_sem_post(&sem), 0);
		assert_true(comes_to(got, i + 1));
		join(threads[i]);
		assert_int_equal(visitors[i].ret, 0);
		assert_int_equal(visitors[i].order, i);
	}
	assert_true(line[0] == HEAD(0, 0));
	assert_true(line[TAIL] == first + 6 - MOST);
}

static void wrapping(void **state)
{
	static const uint64_t firsts[] = {
		2 * MOST - 3, (1ULL << 31) - 3, 1ULL << 31, (1ULL << 32) - 3, (1ULL << 63) - 3,
		0 - 8ULL,
	};
	unsigned int i;

	for (i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
		pass_in_order(state, firsts[i]);
}

/*
 * Entries in use by older tickets, one in front: a waiter takes the next slot that is free, and
 * waits for its turn.
 */
static void slots_in_use(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *line = unit_words(state) + AT / 8;
	unsigned int i;

	line[0] = HEAD(FRONT(MOST), 0);
	for (i = 0; i < 5; i++) {
		line[RING + i] = WAITS(MOST + i);
		line[BELLS + i] = 1;
	}
	line[TAIL] = 1ULL << 32;
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	/* The bells ring for the others. */
	for (i = 0; i < 5; i++)
		assert_int_equal(line[BELLS + i], 1);
	assert_true(line[TAIL] == (1ULL << 32) + 6);
	assert_int_equal(value_of_sem(&sem), -5);
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	assert_true(line[TAIL] == (1ULL << 32) + 6);
}

static void too_many(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *line = unit_words(state) + AT / 8;
	unsigned int i;

	line[0] = HEAD(FRONT(MOST), 0);
	line[TAIL] = MOST;
	for (i = 0; i < MOST; i++)
		line[RING + i] = WAITS(MOST + i);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * SECOND), -EAGAIN);
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	assert_true(line[0] == HEAD(FRONT(MOST), 0));
	assert_true(line[RING] == WAITS(MOST));

	/* The first one has not taken the post yet: its slot becomes free, but not now. */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_timed(&sem, 20 * MS), -ETIMEDOUT);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
	assert_int_equal(value_of_sem(&sem), -MOST + 1);

	/* It is dead, and so is the second one. */
	assert_int_equal(kdsm_sem_timed(&sem, 3 * SECOND / 2), -ETIMEDOUT);
	assert_true(line[RING + MOST - 1] == WAITS(2 * MOST - 1));
	assert_true(front_of(line[0]) == FRONT(MOST + 1));
	assert_int_equal(value_of_sem(&sem), -MOST + 2);
}

/* Waiters that gave up leave nothing behind. */
static void many_gave_up(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *line = unit_words(state) + AT / 8;
	unsigned int i;

	for (i = 0; i < 2 * MOST; i++)
		assert_int_equal(kdsm_sem_timed(&sem, 50000), -ETIMEDOUT);
	/* On a busy machine, time may be over before the thread draws a ticket. */
	assert_true(line[TAIL] <= 2 * MOST);
	assert_true(line[0] == HEAD(0, 0));
	for (i = 0; i < MOST; i++)
		assert_true(!line[RING + i]);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	assert_int_equal(kdsm_sem_wait(&sem), 0);
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
	assert_int_equal(value_of_sem(&sem), 1);
}

static pid_t fork_waiter(struct kdsm_sem *sem)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(kdsm_sem_wait(sem) ? 2 : 1);
	while (value_of_sem(sem) == 0)
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

/* The slow waiter finds its slot in use by another ticket, and leaves that alone. */
static void slower_waiter(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *line = unit_words(state) + AT / 8;
	struct visitor visitor = { &sem, unit_words(state), 0, 0 };
	pthread_t thread = start(wait_in_line, &visitor);

	while (load(&line[0]) != HEAD(FRONT(MOST), 0))
		usleep(500);
	store(&line[RING], WAITS((1ULL << 32) + MOST));
	/* The waiter notices, and draws another ticket. */
	assert_true(comes_to(&line[TAIL], 2));
	while (load(&line[RING + 1]) != WAITS(MOST + 1))
		usleep(500);
	assert_true(load(&line[RING]) == WAITS((1ULL << 32) + MOST));
	store(&line[RING], 0);
	/* The front is the old one, which does not react. */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	join(thread);
	assert_int_equal(visitor.ret, 0);
	assert_int_equal(value_of_sem(&sem), 0);
}

/* A poster raises the value and dies before it wakes the front. */
static void dead_poster(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t *line = unit_words(state) + AT / 8;
	struct visitor visitor = { &sem, unit_words(state), 0, 0 };
	pthread_t thread = start(wait_in_line, &visitor);

	while (value_of_sem(&sem) == 0)
		usleep(500);
	usleep(20000);
	__atomic_add_fetch(&line[0], LINE_POST, __ATOMIC_SEQ_CST);
	join(thread);
	assert_int_equal(visitor.ret, 0);
	assert_int_equal(value_of_sem(&sem), 0);
}

/* Threads that only try, or wait for shorter than a look takes, find a dead waiter, too. */
static void impatient(void **state)
{
	struct kdsm_sem sem = make_sem(state, AT, 0);
	uint64_t begin;
	int ret;

	kill_child(fork_waiter(&sem));
	assert_int_equal(kdsm_sem_post(&sem), 0);
	begin = now();
	while ((ret = kdsm_sem_try(&sem)) == -EAGAIN && now() - begin < 20 * SECOND)
		usleep(20000);
	assert_int_equal(ret, 0);

	kill_child(fork_waiter(&sem));
	assert_int_equal(kdsm_sem_post(&sem), 0);
	begin = now();
	while ((ret = kdsm_sem_timed(&sem, 20 * MS)) == -ETIMEDOUT &&
	       now() - begin < 20 * SECOND)
		;
	assert_int_equal(ret, 0);
	assert_int_equal(value_of_sem(&sem), 0);
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
	assert_int_equal(value_of_sem(&sem), 0);
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
		unit_case(slots_in_use),
		unit_case(too_many),
		unit_case(many_gave_up),
		unit_case(interrupted),
		unit_case(dead_waiter),
		unit_case(slow_waiter),
		unit_case(slower_waiter),
		unit_case(dead_poster),
		unit_case(impatient),
		unit_case(with_lock),
	};

	return UNIT_RUN(tests);
}
