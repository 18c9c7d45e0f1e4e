// SPDX-License-Identifier: GPL-2.0
/*
 * Threads and processes that die while they hold a lock of the local backend or wait for it
 */
#include "lock.h"

static void *end_with_lock(void *arg)
{
	return kdsm_lock(arg) ? arg : NULL;
}

/* Fork a child that holds the lock, or waits for the lock, until it is killed. */
static pid_t fork_holder(struct kdsm_lock *lock, uint64_t *ready,
			 int (*function)(struct kdsm_lock *lock))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		if (function == lock_and_unlock) {
			store(ready, 1);
			function(lock);
			_exit(1);
		}
		if (function(lock))
			_exit(1);
		store(ready, 1);
		for (;;)
			pause();
	}
	if (!comes_to(ready, 1)) {
		kill_child(pid);
		fail();
	}
	store(ready, 0);
	return pid;
}

static void check_usable(struct kdsm_lock *lock)
{
	assert_int_equal(lock_and_unlock(lock), 0);
	assert_int_equal(call_by_other(lock_and_unlock, lock), 0);
}

static void thread_ends(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct kdsm_lock_info info;

	assert_null(join(start(end_with_lock, lock)));
	assert_int_equal(kdsm_lock_try(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_is_mine(lock), 1);
	assert_int_equal(kdsm_lock(lock), -EDEADLK);
	assert_int_equal(call_by_other(kdsm_lock_consistent, lock), -EPERM);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_lock_consistent(lock), -EINVAL);
	assert_int_equal(kdsm_unlock(lock), 0);
	check_usable(lock);
	assert_int_equal(kdsm_lock_consistent(lock), -EPERM);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_DEAD], 1);
	kdsm_lock_close(lock);
}

static void process_killed(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	uint64_t *words = unit_words(state);

	kill_child(fork_holder(lock, &words[0], kdsm_lock));
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	check_usable(lock);
	kdsm_lock_close(lock);
}

/*
 * The thread that got the lock with -EOWNERDEAD dies, too: the next one gets -EOWNERDEAD
 * again.
 */
static void twice(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);

	assert_null(join(start(end_with_lock, lock)));
	assert_ptr_equal(join(start(end_with_lock, lock)), lock);
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	check_usable(lock);
	kdsm_lock_close(lock);
}

static void not_mended(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct call wait = { lock_and_unlock, lock, 0 };
	pthread_t waiter;

	assert_null(join(start(end_with_lock, lock)));
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	waiter = start(call_it, &wait);
	assert_true(so_many_wait(lock, 1));
	assert_int_equal(kdsm_unlock(lock), 0);
	join(waiter);
	assert_int_equal(wait.ret, -ENOTRECOVERABLE);
	assert_int_equal(kdsm_lock(lock), -ENOTRECOVERABLE);
	assert_int_equal(kdsm_lock_try(lock), -ENOTRECOVERABLE);
	assert_int_equal(kdsm_unlock(lock), -EPERM);
	kdsm_lock_close(lock);
}

/*
 * Sleeping waiters detect the owner's death in time, and one at a time gets the lock, with
 * -EOWNERDEAD.
 */
static void found_by_waiters(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct call waits[3];
	uint64_t *words = unit_words(state);
	int dead = 0, good = 0, i;
	pthread_t threads[3];
	uint64_t begin;
	pid_t pid;

	pid = fork_holder(lock, &words[0], kdsm_lock);
	for (i = 0; i < 3; i++) {
		waits[i] = (struct call){ kdsm_lock, lock, 0 };
		threads[i] = start(call_it, &waits[i]);
	}
	assert_true(so_many_wait(lock, 3));
	begin = now();
	kill_child(pid);
	/* Each thread gets the lock and ends while it holds the lock. */
	for (i = 0; i < 3; i++) {
		join(threads[i]);
		dead += waits[i].ret == -EOWNERDEAD;
		good += waits[i].ret == 0;
	}
	assert_true(now() - begin < 60 * SECOND);
	assert_int_equal(dead, 3);
	assert_int_equal(good, 0);
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
}

/* Two waiters are killed in the queue, one before and one behind a live waiter. */
static void waiter_killed(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct call wait = { lock_and_unlock, lock, 0 };
	uint64_t *words = unit_words(state);
	struct kdsm_lock_info info;
	pid_t before, behind;
	pthread_t waiter;

	assert_int_equal(kdsm_lock(lock), 0);
	before = fork_holder(lock, &words[0], lock_and_unlock);
	assert_true(so_many_wait(lock, 1));
	waiter = start(call_it, &wait);
	assert_true(so_many_wait(lock, 2));
	behind = fork_holder(lock, &words[0], lock_and_unlock);
	assert_true(so_many_wait(lock, 3));
	kill_child(before);
	kill_child(behind);
	/*
	 * The live waiter removes the dead ones, so that the unlock hands over to the live
	 * one.
	 */
	assert_true(so_many_wait(lock, 1));
	assert_int_equal(kdsm_unlock(lock), 0);
	join(waiter);
	assert_int_equal(wait.ret, 0);
	check_usable(lock);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_DEAD], 0);
	kdsm_lock_close(lock);
}

/* Kill a child that reads, while a writer waits for it. */
static void kill_reader(struct kdsm_lock *lock, pid_t pid)
{
	struct call wait = { lock_and_unlock, lock, 0 };
	pthread_t writer;

	assert_int_equal(kdsm_lock_try(lock), -EBUSY);
	writer = start(call_it, &wait);
	assert_true(so_many_wait(lock, 1));
	kill_child(pid);
	join(writer);
	assert_int_equal(wait.ret, 0);
}

static void readers_die(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	uint64_t *words = unit_words(state);

	kill_reader(lock, fork_holder(lock, &words[0], kdsm_read_lock));
	check_usable(lock);

	/*
	 * After a writer's death readers get -EOWNERDEAD and leave the lock inconsistent. A
	 * writer makes the lock consistent.
	 */
	kill_child(fork_holder(lock, &words[0], kdsm_lock));
	assert_int_equal(kdsm_read_lock(lock), -EOWNERDEAD);
	assert_int_equal(call_by_other(kdsm_read_lock_try, lock), -EOWNERDEAD);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(kdsm_read_lock(lock), 0);
	assert_int_equal(kdsm_read_unlock(lock), 0);

	/* A reader cannot make the lock consistent. */
	kill_child(fork_holder(lock, &words[0], kdsm_lock));
	assert_int_equal(kdsm_read_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), -EPERM);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(kdsm_unlock(lock), 0);
	check_usable(lock);
	kdsm_lock_close(lock);
}

/* Read by the slot: the second reader of an unused lock makes no call. */
static int read_by_slot(struct kdsm_lock *lock)
{
	return kdsm_read_lock(lock) ?: kdsm_read_unlock(lock) ?: kdsm_read_lock(lock);
}

static uint64_t dead_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	return info.stats[KDSM_LOCK_STAT_DEAD];
}

/* A reader by its slot is killed before a writer waits, and while it waits. */
static void slots_die(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct kdsm_lock *other = make_lock(state, KDSM_LOCK_RMA_RW);
	uint64_t *words = unit_words(state);

	kill_child(fork_holder(lock, &words[0], read_by_slot));
	assert_int_equal(lock_and_unlock(lock), 0);
	assert_int_equal(dead_of(lock), 1);

	kill_reader(lock, fork_holder(lock, &words[0], read_by_slot));
	assert_int_equal(dead_of(lock), 2);

	/* The slot of a thread that was killed is of no other lock, and keeps no thread from it. */
	kill_child(fork_holder(other, &words[0], read_by_slot));
	assert_int_equal(read_by_slot(lock), 0);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	check_usable(lock);
	assert_int_equal(dead_of(lock), 2);
	check_usable(other);
	assert_int_equal(dead_of(other), 1);
	kdsm_lock_close(other);
	kdsm_lock_close(lock);
}

/* ---- killed anywhere ---- */

#define VICTIMS 4
#define KILLS 150

struct accounts {
	uint64_t a, b;		/* equal, except while the lock's owner changes them */
	uint64_t turns, mended, wrong, reads;
};

/* writes: 1 of this many accesses is one, on average */
static void victim(struct kdsm_lock *lock, unsigned int writes, struct accounts *accounts,
		   int seed)
{
	unsigned int random = seed, i;
	bool for_reading;
	int ret;

	for (i = 0;; i++) {
		for_reading = rand_r(&random) % writes;
		ret = for_reading ? kdsm_read_lock(lock) :
		      i % 3 ? kdsm_lock(lock) : kdsm_lock_timed(lock, 3 * MS);
		if (ret == -ETIMEDOUT)
			continue;
		if (ret == -EOWNERDEAD && !for_reading) {
			store(&accounts->b, load(&accounts->a));
			__atomic_add_fetch(&accounts->mended, 1, __ATOMIC_RELAXED);
			ret = kdsm_lock_consistent(lock);
		}
		if (for_reading && ret == -EOWNERDEAD)
			ret = 0;
		else if (!ret && load(&accounts->a) != load(&accounts->b))
			ret = 1;
		if (!for_reading) {
			store(&accounts->a, load(&accounts->a) + 1);
			store(&accounts->b, load(&accounts->b) + 1);
		}
		__atomic_add_fetch(&accounts->turns, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&accounts->reads, for_reading, __ATOMIC_RELAXED);
		if (ret || (for_reading ? kdsm_read_unlock(lock) : kdsm_unlock(lock)))
			__atomic_add_fetch(&accounts->wrong, 1, __ATOMIC_RELAXED);
	}
}

static void kill_many(void **state, enum kdsm_lock_kind kind, unsigned int writes)
{
	struct accounts *accounts = (struct accounts *)unit_words(state);
	struct kdsm_lock *lock = make_lock(state, kind);
	struct kdsm_lock_info info;
	unsigned int i, random = 1;
	pid_t pids[VICTIMS] = { 0 };
	uint64_t turns;
	int ret;

	for (i = 0; i < KILLS + VICTIMS; i++) {
		if (pids[i % VICTIMS])
			kill_child(pids[i % VICTIMS]);
		pids[i % VICTIMS] = i < KILLS ? fork() : 0;
		assert_true(pids[i % VICTIMS] >= 0);
		if (i < KILLS && !pids[i % VICTIMS])
			victim(lock, writes, accounts, i);
		usleep(rand_r(&random) % 3000);
		if (i % 10 || i >= KILLS - VICTIMS)
			continue;
		/* The survivors make progress. */
		turns = load(&accounts->turns);
		assert_true(comes_to(&accounts->turns, turns + 3));
	}
	assert_int_equal(accounts->wrong, 0);
	ret = kdsm_lock(lock);
	assert_true(ret == 0 || ret == -EOWNERDEAD);
	if (ret)
		assert_int_equal(kdsm_lock_consistent(lock), 0);
	else
		assert_int_equal(accounts->a, accounts->b);
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	print_message("# %llu turns, %llu mended, %llu reads, %llu by calls\n",
		      (unsigned long long)accounts->turns, (unsigned long long)accounts->mended,
		      (unsigned long long)accounts->reads,
		      (unsigned long long)info.stats[KDSM_LOCK_STAT_READS]);
	if (writes > 2)
		assert_true(info.stats[KDSM_LOCK_STAT_READS] < accounts->reads);
	check_usable(lock);
	kdsm_lock_close(lock);
}

static void killed_anywhere(void **state)
{
	kill_many(state, KDSM_LOCK_RMA_MCS, 1);
}

static void killed_anywhere_with_readers(void **state)
{
	kill_many(state, KDSM_LOCK_RMA_RW, 2);
}

/* Readers use their slots, which writers then bar. */
static void killed_anywhere_with_slots(void **state)
{
	kill_many(state, KDSM_LOCK_RMA_RW, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(thread_ends),
		unit_case(process_killed),
		unit_case(twice),
		unit_case(not_mended),
		unit_case(found_by_waiters),
		unit_case(waiter_killed),
		unit_case(readers_die),
		unit_case(slots_die),
		unit_case(killed_anywhere),
		unit_case(killed_anywhere_with_readers),
		unit_case(killed_anywhere_with_slots),
	};

	return UNIT_RUN(tests);
}
