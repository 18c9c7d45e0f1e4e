// SPDX-License-Identifier: GPL-2.0
/* Locks of the local backend: opening, locking and unlocking, by threads and processes */
#include "lock.h"

static void opening(void **state)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_lock *lock, *other;
	char name[KDSM_NAME_SIZE + 1];

	assert_int_equal(kdsm_lock_open(region, "a", 0, &lock), -ENOENT);
	assert_null(lock);
	assert_int_equal(kdsm_lock_open(region, NULL, 3, &lock), -ENOENT);
	assert_int_equal(kdsm_lock_create(region, "a", 0, NULL, &lock), 0);
	assert_int_equal(kdsm_lock_kind(lock), KDSM_LOCK_RMA_MCS);
	assert_int_equal(kdsm_lock_levels(lock), 2);
	assert_ptr_equal(kdsm_lock_region(lock), region);

	/* A name and a number, with or without attributes, open the same lock. */
	assert_int_equal(kdsm_lock_open(region, "a", 77, &other), 0);
	assert_int_equal(kdsm_lock_number(other), kdsm_lock_number(lock));
	kdsm_lock_close(other);
	assert_int_equal(kdsm_lock_create(region, NULL, kdsm_lock_number(lock), NULL, &other), 0);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_lock_is_mine(other), 1);
	assert_int_equal(kdsm_unlock(other), 0);
	assert_int_equal(kdsm_lock_is_mine(lock), 0);
	kdsm_lock_close(other);
	assert_int_equal(kdsm_lock_create(region, "a", 0, &attr, &other), -EINVAL);
	attr.kind = KDSM_LOCK_RMA_MCS;
	attr.flags = KDSM_LOCK_EXCL;
	assert_int_equal(kdsm_lock_create(region, "a", 0, &attr, &other), -EEXIST);
	assert_null(other);

	/* Other names and numbers open other locks. */
	assert_int_equal(kdsm_lock_create(region, "b", 0, &attr, &other), 0);
	assert_int_not_equal(kdsm_lock_number(other), kdsm_lock_number(lock));
	kdsm_lock_close(other);
	assert_int_equal(kdsm_lock_create(region, NULL, KDSM_MAX_LOCKS - 1, &attr, &other), 0);
	assert_int_equal(kdsm_lock_number(other), KDSM_MAX_LOCKS - 1);
	kdsm_lock_close(other);

	assert_int_equal(kdsm_lock_create(region, NULL, KDSM_MAX_LOCKS, NULL, &other), -EINVAL);
	assert_int_equal(kdsm_lock_open(region, NULL, KDSM_LOCK_ANY, &other), -EINVAL);
	assert_int_equal(kdsm_lock_create(region, "", 0, NULL, &other), -EINVAL);
	assert_int_equal(kdsm_lock_create(region, "a b", 0, NULL, &other), -EINVAL);
	memset(name, 'n', KDSM_NAME_SIZE);
	name[KDSM_NAME_SIZE] = '\0';
	assert_int_equal(kdsm_lock_create(region, name, 0, NULL, &other), -EINVAL);
	attr.flags = KDSM_LOCK_CREATE;
	attr.flags <<= 4;
	assert_int_equal(kdsm_lock_create(region, "c", 0, &attr, &other), -EINVAL);
	attr.flags = 0;
	attr.kind = 4;
	assert_int_equal(kdsm_lock_create(region, "c", 0, &attr, &other), -EINVAL);
	assert_int_equal(kdsm_lock_open(region, "c", 0, &other), -ENOENT);
	kdsm_lock_close(lock);
	kdsm_lock_close(NULL);

	/* A lock exists until its region ends, even without an open handle. */
	assert_int_equal(kdsm_lock_open(region, "b", 0, &lock), 0);
	kdsm_lock_close(lock);
}

static void all_numbers(void **state)
{
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_lock *lock;
	unsigned int i;

	for (i = 0; i < KDSM_MAX_LOCKS; i++) {
		assert_int_equal(kdsm_lock_create(region, NULL, KDSM_LOCK_ANY, NULL, &lock), 0);
		assert_int_equal(kdsm_lock_number(lock), i);
		kdsm_lock_close(lock);
	}
	assert_int_equal(kdsm_lock_create(region, NULL, KDSM_LOCK_ANY, NULL, &lock), -ENOSPC);
	assert_int_equal(kdsm_lock_create(region, "more", 0, NULL, &lock), -ENOSPC);
	assert_int_equal(kdsm_lock_create(region, NULL, 5, NULL, &lock), 0);
	kdsm_lock_close(lock);
}

static int timed_10ms(struct kdsm_lock *lock)
{
	return kdsm_lock_timed(lock, 10 * MS);
}

static void taking(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct kdsm_lock *second = make_lock(state, KDSM_LOCK_DMCS);
	uint64_t begin;

	assert_int_equal(kdsm_unlock(lock), -EPERM);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_lock_try(lock), -EDEADLK);
	assert_int_equal(kdsm_lock_timed(lock, KDSM_FOREVER), -EDEADLK);
	assert_int_equal(call_by_other(kdsm_lock_try, lock), -EBUSY);
	assert_int_equal(call_by_other(kdsm_unlock, lock), -EPERM);
	assert_int_equal(call_by_other(kdsm_lock_is_mine, lock), 0);
	begin = now();
	assert_int_equal(call_by_other(timed_10ms, lock), -ETIMEDOUT);
	assert_true(now() - begin >= 10 * MS);

	/* The owner of one lock does not exclude other threads from a second lock. */
	assert_int_equal(call_by_other(lock_and_unlock, second), 0);
	assert_int_equal(kdsm_lock_try(second), 0);
	assert_int_equal(kdsm_unlock(second), 0);

	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(kdsm_unlock(lock), -EPERM);
	assert_int_equal(call_by_other(lock_and_unlock, lock), 0);
	assert_int_equal(kdsm_lock_timed(lock, 0), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(kdsm_lock_interruptible(lock, KDSM_FOREVER), 0);
	assert_int_equal(kdsm_unlock(lock), 0);

	/* This kind of lock has no readers. */
	assert_int_equal(kdsm_read_lock(lock), -EINVAL);
	assert_int_equal(kdsm_read_unlock(lock), -EPERM);
	kdsm_lock_close(second);
	kdsm_lock_close(lock);
}

/* ---- exclusion ---- */

#define ROUNDS 5000

struct crew {
	struct kdsm_lock *lock;
	uint64_t *counter;	/* only the lock's owner changes it, not atomically */
	int failures;
};

static int timed_long(struct kdsm_lock *lock)
{
	return kdsm_lock_timed(lock, 60 * SECOND);
}

static int try_hard(struct kdsm_lock *lock)
{
	int ret;

	while ((ret = kdsm_lock_try(lock)) == -EBUSY)
		sched_yield();
	return ret;
}

static void *work(void *arg)
{
	static int (*const forms[])(struct kdsm_lock *lock) = {
		kdsm_lock, try_hard, kdsm_lock, timed_long,
	};
	struct crew *crew = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		UNIT_CHECK(&crew->failures, !forms[i % 4](crew->lock));
		crew->counter[0]++;
		crew->counter[1]++;
		UNIT_CHECK(&crew->failures, crew->counter[0] == crew->counter[1]);
		UNIT_CHECK(&crew->failures, !kdsm_unlock(crew->lock));
	}
	return NULL;
}

static void threads_exclude(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct crew crew = { lock, unit_words(state), 0 };
	pthread_t threads[6];
	int i;

	for (i = 0; i < 6; i++)
		threads[i] = start(work, &crew);
	for (i = 0; i < 6; i++)
		join(threads[i]);
	assert_int_equal(crew.failures, 0);
	assert_int_equal(crew.counter[0], 6 * ROUNDS);
	kdsm_lock_close(lock);
}

static void processes_exclude(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct crew crew = { lock, unit_words(state), 0 };
	pid_t pids[4];
	int i;

	/*
	 * The parent holds the lock. A child inherits the parent's memory, but must not
	 * pass for the owner.
	 */
	assert_int_equal(kdsm_lock(lock), 0);
	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			UNIT_CHECK(&crew.failures, kdsm_unlock(lock) == -EPERM);
			UNIT_CHECK(&crew.failures, kdsm_lock_try(lock) == -EBUSY);
			__atomic_add_fetch(&crew.counter[2], 1, __ATOMIC_SEQ_CST);
			work(&crew);
			_exit(!!crew.failures);
		}
	}
	assert_true(comes_to(&crew.counter[2], 4));
	usleep(20000);
	assert_int_equal(load(crew.counter), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	for (i = 0; i < 4; i++)
		reap(pids[i]);
	assert_int_equal(crew.counter[0], 4 * ROUNDS);
	kdsm_lock_close(lock);
}

/* A child and its parent open the same lock by name, each for itself. */
static void opened_by_child(void **state)
{
	struct unit *unit = *state;
	uint64_t *words = unit_words(state);
	struct kdsm_lock *lock;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (kdsm_lock_create(unit->region, "family", 0, NULL, &lock) || kdsm_lock(lock))
			_exit(1);
		store(&words[0], 1);
		if (!comes_to(&words[1], 1))
			_exit(2);
		_exit(kdsm_unlock(lock) ? 3 : 0);
	}
	assert_true(comes_to(&words[0], 1));
	assert_int_equal(kdsm_lock_create(unit->region, "family", 0, NULL, &lock), 0);
	assert_int_equal(kdsm_lock_try(lock), -EBUSY);
	store(&words[1], 1);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	reap(pid);
	kdsm_lock_close(lock);
}

/* ---- order ---- */

#define WAITERS 6

struct place {
	struct kdsm_lock *lock;
	uint64_t *asked, *got;
	uint64_t order;
	int ret;
};

static void *wait_in_line(void *arg)
{
	struct place *place = arg;

	place->ret = kdsm_lock(place->lock);
	place->order = (*place->got)++;
	if (!place->ret)
		place->ret = kdsm_unlock(place->lock);
	return NULL;
}

static void first_come_first_served(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	uint64_t *words = unit_words(state);
	struct place places[WAITERS];
	pthread_t threads[WAITERS];
	unsigned int i;

	assert_int_equal(kdsm_lock(lock), 0);
	for (i = 0; i < WAITERS; i++) {
		places[i] = (struct place){ lock, NULL, &words[1], 0, 0 };
		threads[i] = start(wait_in_line, &places[i]);
		assert_true(so_many_wait(lock, i + 1));
	}
	assert_int_equal(kdsm_unlock(lock), 0);
	for (i = 0; i < WAITERS; i++) {
		join(threads[i]);
		assert_int_equal(places[i].ret, 0);
		assert_int_equal(places[i].order, i);
	}
	kdsm_lock_close(lock);
}

static void *keep_until_told(void *arg)
{
	struct place *place = arg;

	place->ret = kdsm_lock(place->lock);
	if (!comes_to(place->got, 1))
		place->ret = 1;
	return kdsm_unlock(place->lock) ? arg : NULL;
}

/*
 * An unlock hands the lock over to the waiter, so the former owner cannot take the lock
 * first.
 */
static void no_overtaking(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct place place = { lock, NULL, &unit_words(state)[0], 0, 0 };
	pthread_t waiter;

	assert_int_equal(kdsm_lock(lock), 0);
	waiter = start(keep_until_told, &place);
	assert_true(so_many_wait(lock, 1));
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(kdsm_lock_try(lock), -EBUSY);
	store(place.got, 1);
	assert_null(join(waiter));
	assert_int_equal(place.ret, 0);
	kdsm_lock_close(lock);
}

/* A waiter that times out leaves the queue intact for the waiters behind. */
static void giving_up(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct call short_wait = { timed_10ms, lock, 0 }, wait = { lock_and_unlock, lock, 0 };
	pthread_t first, second;

	assert_int_equal(kdsm_lock(lock), 0);
	first = start(call_it, &short_wait);
	second = start(call_it, &wait);
	join(first);
	assert_true(so_many_wait(lock, 1));
	assert_int_equal(short_wait.ret, -ETIMEDOUT);
	assert_int_equal(kdsm_unlock(lock), 0);
	join(second);
	assert_int_equal(wait.ret, 0);
	assert_int_equal(lock_and_unlock(lock), 0);
	kdsm_lock_close(lock);
}

/* ---- signals ---- */

static void *hold_until_asked(void *arg)
{
	struct place *place = arg;

	place->ret = kdsm_lock(place->lock);
	store(place->got, 1);
	if (!comes_to(place->asked, 1))
		place->ret = 1;
	usleep(50000);
	return kdsm_unlock(place->lock) ? arg : NULL;
}

static void signals(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	uint64_t *words = unit_words(state);
	struct place place = { lock, &words[0], &words[1], 0, 0 };
	pthread_t holder;
	sigset_t usr1;
	timer_t timer;

	/* Only this thread receives the signals. */
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	holder = start(hold_until_asked, &place);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	assert_true(comes_to(&words[1], 1));

	timer = start_signals();
	assert_int_equal(kdsm_lock_interruptible(lock, KDSM_FOREVER), -EINTR);
	assert_int_equal(kdsm_lock_timed(lock, 20 * MS), -ETIMEDOUT);
	store(&words[0], 1);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	timer_delete(timer);
	assert_null(join(holder));
	assert_int_equal(place.ret, 0);
	kdsm_lock_close(lock);
}

/* ---- speed ---- */

/* An uncontended lock needs no system call. A call would also show in the time. */
static void again_and_again(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	uint64_t begin, best = UINT64_MAX;
	struct kdsm_lock_info info;
	int i, j;

	for (i = 0; i < 100; i++) {
		begin = now();
		for (j = 0; j < 1000; j++)
			if (kdsm_lock(lock) || kdsm_unlock(lock))
				fail();
		if (now() - begin < best)
			best = now() - begin;
	}
	print_message("# lock and unlock: %.1f ns\n", best / 1000.0);
	/*
	 * A native run takes about 100 ns. The bound leaves room for sanitizers and busy
	 * machines.
	 */
	assert_true(best / 1000 < 2000);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_FAST], 100 * 1000);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_LOCKS], 0);
	kdsm_lock_close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(opening),
		unit_case(all_numbers),
		unit_case(taking),
		unit_case(threads_exclude),
		unit_case(processes_exclude),
		unit_case(opened_by_child),
		unit_case(first_come_first_served),
		unit_case(no_overtaking),
		unit_case(giving_up),
		unit_case(signals),
		unit_case(again_and_again),
	};

	return UNIT_RUN(tests);
}
