// SPDX-License-Identifier: GPL-2.0
/* Readers and writers of a lock of the local backend; slots, thresholds and counters. */
#include "lock.h"

static int read_and_unlock(struct kdsm_lock *lock)
{
	int ret = kdsm_read_lock(lock);

	return ret ? ret : kdsm_read_unlock(lock);
}

static int read_timed_10ms(struct kdsm_lock *lock)
{
	return kdsm_read_lock_timed(lock, 10 * MS);
}

static int try_and_unlock(struct kdsm_lock *lock)
{
	int ret = kdsm_lock_try(lock);

	return ret ? ret : kdsm_unlock(lock);
}

static void sharing(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);

	assert_int_equal(kdsm_lock_kind(lock), KDSM_LOCK_RMA_RW);
	assert_int_equal(kdsm_read_unlock(lock), -EPERM);
	assert_int_equal(kdsm_read_lock(lock), 0);
	assert_int_equal(kdsm_lock_is_mine(lock), 0);
	assert_int_equal(call_by_other(read_and_unlock, lock), 0);
	assert_int_equal(call_by_other(kdsm_read_unlock, lock), -EPERM);
	assert_int_equal(call_by_other(try_and_unlock, lock), -EBUSY);
	assert_int_equal(kdsm_read_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_read_lock_try(lock), -EDEADLK);
	assert_int_equal(kdsm_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_unlock(lock), -EPERM);
	assert_int_equal(kdsm_lock_consistent(lock), -EPERM);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	assert_int_equal(kdsm_read_unlock(lock), -EPERM);

	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_read_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_read_unlock(lock), -EPERM);
	assert_int_equal(call_by_other(kdsm_read_lock_try, lock), -EBUSY);
	assert_int_equal(call_by_other(read_timed_10ms, lock), -ETIMEDOUT);
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(call_by_other(try_and_unlock, lock), 0);
	assert_int_equal(kdsm_read_lock_interruptible(lock, 0), 0);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	kdsm_lock_close(lock);
}

/* ---- readers' slots ---- */

static uint64_t bias_of(struct kdsm_lock *lock)
{
	struct kdsm_local_area *area = kdsm_local_area(kdsm_lock_region(lock));

	return load((uint64_t *)&area->words[kdsm_lock_number(lock)].bias);
}

/* Number of threads that read under the lock by their slots */
static unsigned int in_slots(struct kdsm_lock *lock)
{
	struct kdsm_local_area *area = kdsm_local_area(kdsm_lock_region(lock));
	unsigned int i, count = 0;

	for (i = 0; i < KDSM_LOCK_SLOTS; i++)
		count += (uint32_t)load((uint64_t *)&area->slots[i]) == kdsm_lock_number(lock) + 1;
	return count;
}

static uint64_t reads_by_calls(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	return info.stats[KDSM_LOCK_STAT_READS];
}

static void check_recursion(struct kdsm_lock *lock)
{
	assert_int_equal(kdsm_read_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_read_lock_try(lock), -EDEADLK);
	assert_int_equal(kdsm_read_lock_timed(lock, 5), -EDEADLK);
	assert_int_equal(kdsm_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_lock_try(lock), -EDEADLK);
	assert_int_equal(kdsm_unlock(lock), -EPERM);
}

/* Readers read by their slots from the first reader on, until a writer asks. */
static void bias_on_and_off(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	int i;

	assert_int_equal(bias_of(lock), 0);
	for (i = 1; i <= 3; i++) {
		assert_int_equal(read_and_unlock(lock), 0);
		assert_int_equal(bias_of(lock), 1);
		assert_int_equal(in_slots(lock), 0);
		assert_int_equal(kdsm_read_lock(lock), 0);
		assert_int_equal(in_slots(lock), 1);
		assert_int_equal(reads_by_calls(lock), i);
		check_recursion(lock);
		assert_int_equal(call_by_other(read_and_unlock, lock), 0);
		assert_int_equal(reads_by_calls(lock), i);
		assert_int_equal(in_slots(lock), 1);
		/* The writer sees the slot, whether or not bias is set. */
		assert_int_equal(call_by_other(try_and_unlock, lock), -EBUSY);
		assert_int_equal(call_by_other(try_and_unlock, lock), -EBUSY);
		assert_int_equal(kdsm_read_unlock(lock), 0);
		assert_int_equal(in_slots(lock), 0);
		assert_int_equal(kdsm_read_unlock(lock), -EPERM);

		assert_int_equal(kdsm_lock(lock), 0);
		assert_int_equal(bias_of(lock), 0);
		assert_int_equal(call_by_other(kdsm_read_lock_try, lock), -EBUSY);
		assert_int_equal(kdsm_read_lock(lock), -EDEADLK);
		assert_int_equal(kdsm_unlock(lock), 0);
		assert_int_equal(bias_of(lock), 0);
	}
	kdsm_lock_close(lock);
}

/* A writer waits for a reader with a slot. The reader's unlock hands the lock over. */
static void slot_hands_over(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct call wait = { lock_and_unlock, lock, 0 };
	pthread_t writer;

	assert_int_equal(read_and_unlock(lock), 0);
	assert_int_equal(kdsm_read_lock(lock), 0);
	assert_int_equal(in_slots(lock), 1);
	writer = start(call_it, &wait);
	assert_true(so_many_wait(lock, 1));
	assert_int_equal(bias_of(lock), 0);
	check_recursion(lock);
	assert_int_equal(waiting(lock), 1);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	join(writer);
	assert_int_equal(wait.ret, 0);
	assert_int_equal(kdsm_read_unlock(lock), -EPERM);
	kdsm_lock_close(lock);
}

/* A thread has one slot, so it reads by the slot under one lock, and by calls under the others. */
static void two_locks(void **state)
{
	struct kdsm_lock *locks[2];
	int first, i;

	for (i = 0; i < 2; i++)
		locks[i] = make_lock(state, KDSM_LOCK_RMA_RW);
	/* The thread unlocks the lock with the slot first, and then the other one first. */
	for (first = 0; first < 2; first++) {
		for (i = 0; i < 2; i++)
			assert_int_equal(read_and_unlock(locks[i]), 0);
		for (i = 0; i < 2; i++)
			assert_int_equal(kdsm_read_lock(locks[i]), 0);
		assert_int_equal(in_slots(locks[0]), 1);
		assert_int_equal(in_slots(locks[1]), 0);
		for (i = 0; i < 2; i++) {
			check_recursion(locks[i]);
			assert_int_equal(call_by_other(read_and_unlock, locks[i]), 0);
			assert_int_equal(call_by_other(try_and_unlock, locks[i]), -EBUSY);
		}
		assert_int_equal(kdsm_read_unlock(locks[first]), 0);
		assert_int_equal(call_by_other(try_and_unlock, locks[first]), 0);
		assert_int_equal(call_by_other(try_and_unlock, locks[!first]), -EBUSY);
		assert_int_equal(kdsm_read_unlock(locks[first]), -EPERM);
		assert_int_equal(kdsm_read_unlock(locks[!first]), 0);
		assert_int_equal(call_by_other(try_and_unlock, locks[!first]), 0);
		assert_int_equal(in_slots(locks[0]) + in_slots(locks[1]), 0);
	}
	for (i = 0; i < 2; i++)
		kdsm_lock_close(locks[i]);
}

/* ---- readers and writers concurrently ---- */

#define ROUNDS 4000

struct crowd {
	struct kdsm_lock *lock;
	uint64_t *words;	/* two that only writers change, and the number of readers inside */
	int failures;
	int pause;		/* writers pause for this long, in us: readers use their slots */
};

static void *read_much(void *arg)
{
	struct crowd *crowd = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		UNIT_CHECK(&crowd->failures, !kdsm_read_lock(crowd->lock));
		__atomic_add_fetch(&crowd->words[2], 1, __ATOMIC_RELAXED);
		UNIT_CHECK(&crowd->failures, crowd->words[0] == crowd->words[1]);
		if (i % 64 == 0)
			sched_yield();
		__atomic_sub_fetch(&crowd->words[2], 1, __ATOMIC_RELAXED);
		UNIT_CHECK(&crowd->failures, !kdsm_read_unlock(crowd->lock));
	}
	return NULL;
}

static void *write_much(void *arg)
{
	struct crowd *crowd = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		UNIT_CHECK(&crowd->failures, !kdsm_lock(crowd->lock));
		crowd->words[0]++;
		UNIT_CHECK(&crowd->failures,
			   !__atomic_load_n(&crowd->words[2], __ATOMIC_RELAXED));
		if (i % 64 == 0)
			sched_yield();
		crowd->words[1]++;
		UNIT_CHECK(&crowd->failures, !kdsm_unlock(crowd->lock));
		if (crowd->pause && i % 16 == 0)
			usleep(crowd->pause);
	}
	return NULL;
}

/* ThreadSanitizer does not see that the other process hands the lock from reader to writer. */
#ifdef __SANITIZE_THREAD__
#define RELATIVES 0
#else
#define RELATIVES 1
#endif

static void crowd_of(void **state, int pause)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct crowd crowd = { lock, unit_words(state), 0, pause };
	pthread_t threads[6];
	pid_t pid;
	int i;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid && RELATIVES) {
		read_much(&crowd);
		write_much(&crowd);
	}
	if (!pid)
		_exit(!!crowd.failures);
	for (i = 0; i < 6; i++)
		threads[i] = start(i % 3 ? read_much : write_much, &crowd);
	for (i = 0; i < 6; i++)
		join(threads[i]);
	reap(pid);
	assert_int_equal(crowd.failures, 0);
	assert_int_equal(crowd.words[0], (2 + RELATIVES) * ROUNDS);
	assert_int_equal(in_slots(lock), 0);
	/* Some of the 5 * ROUNDS reads were by slots. */
	if (pause)
		assert_in_range(reads_by_calls(lock), 1, 5 * ROUNDS - 1);
	print_message("# %llu reads by calls, of %d\n",
		      (unsigned long long)reads_by_calls(lock), 5 * ROUNDS);
	kdsm_lock_close(lock);
}

static void readers_and_writers(void **state)
{
	crowd_of(state, 0);
}

static void readers_and_rare_writers(void **state)
{
	crowd_of(state, 200);
}

/* ---- thresholds ---- */

struct flow {
	struct kdsm_lock *lock;
	uint64_t *stop;
	uint64_t readers;
	int failures;
};

/* Readers overlap, so that some reader always holds the lock unless T_R stops them. */
static void *read_without_end(void *arg)
{
	struct flow *flow = arg;

	while (!load(flow->stop)) {
		UNIT_CHECK(&flow->failures, !kdsm_read_lock(flow->lock));
		usleep(300);
		UNIT_CHECK(&flow->failures, !kdsm_read_unlock(flow->lock));
		__atomic_add_fetch(&flow->readers, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void writers_come_through(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct kdsm_lock_settings settings = { .mask = KDSM_LOCK_SET_T_R, .t_r = 5 };
	struct flow flow = { lock, &unit_words(state)[0], 0, 0 };
	struct kdsm_lock_info info;
	pthread_t readers[3];
	int i;

	assert_int_equal(kdsm_lock_set(lock, &settings), 0);
	for (i = 0; i < 3; i++)
		readers[i] = start(read_without_end, &flow);
	for (i = 0; i < 20; i++) {
		/* Let a reader pass first, so that the writer competes with readers. */
		assert_true(comes_to(&flow.readers, load(&flow.readers) + 1));
		assert_int_equal(kdsm_lock_timed(lock, 60 * SECOND), 0);
		usleep(500);
		assert_int_equal(kdsm_unlock(lock), 0);
	}
	store(flow.stop, 1);
	for (i = 0; i < 3; i++)
		join(readers[i]);
	assert_int_equal(flow.failures, 0);
	assert_true(flow.readers > 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_true(info.stats[KDSM_LOCK_STAT_READERS_IN_ROW] <= 5);
	assert_true(info.stats[KDSM_LOCK_STAT_SWITCHES] >= 2);
	kdsm_lock_close(lock);
}

static void *write_without_end(void *arg)
{
	struct flow *flow = arg;

	while (!load(flow->stop)) {
		UNIT_CHECK(&flow->failures, !kdsm_lock(flow->lock));
		usleep(300);
		UNIT_CHECK(&flow->failures, !kdsm_unlock(flow->lock));
	}
	return NULL;
}

static void readers_come_through(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct kdsm_lock_settings settings = { .mask = KDSM_LOCK_SET_T_W, .t_w = 2 };
	struct flow flow = { lock, &unit_words(state)[0], 0, 0 };
	pthread_t writers[3];
	int i;

	assert_int_equal(kdsm_lock_set(lock, &settings), 0);
	for (i = 0; i < 3; i++)
		writers[i] = start(write_without_end, &flow);
	for (i = 0; i < 20; i++) {
		assert_int_equal(kdsm_read_lock_timed(lock, 60 * SECOND), 0);
		assert_int_equal(kdsm_read_unlock(lock), 0);
	}
	store(flow.stop, 1);
	for (i = 0; i < 3; i++)
		join(writers[i]);
	assert_int_equal(flow.failures, 0);
	kdsm_lock_close(lock);
}

static void check_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings, int ret)
{
	struct kdsm_lock_info before, after;

	assert_int_equal(kdsm_lock_info(lock, &before), 0);
	assert_int_equal(kdsm_lock_set(lock, settings), ret);
	assert_int_equal(kdsm_lock_info(lock, &after), 0);
	if (ret)
		assert_memory_equal(&before.settings, &after.settings, sizeof(before.settings));
}

static void setting(void **state)
{
	struct kdsm_lock *dmcs = make_lock(state, KDSM_LOCK_DMCS);
	struct kdsm_lock *mcs = make_lock(state, KDSM_LOCK_RMA_MCS);
	struct kdsm_lock_settings settings = { .mask = 0 };
	struct kdsm_region *region = ((struct unit *)*state)->region;
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_RMA_RW };
	struct kdsm_lock_info info;
	struct kdsm_lock *lock;

	/* The settings of each kind, and their defaults */
	assert_int_equal(kdsm_lock_info(dmcs, &info), 0);
	assert_int_equal(info.kind, KDSM_LOCK_DMCS);
	assert_int_equal(info.levels, 2);
	assert_int_equal(info.settings.mask, KDSM_LOCK_SET_KEEP);
	assert_true(info.settings.keep == KDSM_LOCK_KEEP_FOREVER);
	assert_int_equal(kdsm_lock_info(mcs, &info), 0);
	assert_int_equal(info.settings.mask, KDSM_LOCK_SET_KEEP | KDSM_LOCK_SET_T_L(2));
	assert_int_equal(info.settings.t_l[1], KDSM_LOCK_T_L_AUTO);

	attr.settings.mask = KDSM_LOCK_SET_T_L(2) | KDSM_LOCK_SET_T_R;
	attr.settings.t_l[1] = 7;
	attr.settings.t_r = 9;
	assert_int_equal(kdsm_lock_create(region, "tuned", 0, &attr, &lock), 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_string_equal(info.name, "tuned");
	assert_int_equal(info.number, kdsm_lock_number(lock));
	assert_int_equal(info.settings.t_l[1], 7);
	assert_int_equal(info.settings.t_r, 9);
	assert_int_equal(info.settings.t_w, 7);
	assert_int_equal(info.settings.t_dc, 1);

	check_set(lock, &settings, -EINVAL);
	settings.mask = 1U << 31;
	check_set(lock, &settings, -EINVAL);
	settings.mask = 1U << 8;	/* T_L,1 has no meaning */
	check_set(lock, &settings, -EINVAL);
	settings.mask = KDSM_LOCK_SET_T_R;
	check_set(lock, &settings, -ERANGE);
	settings.t_r = KDSM_LOCK_T_MAX + 1;
	check_set(lock, &settings, -ERANGE);
	settings.t_r = KDSM_LOCK_T_MAX;
	check_set(lock, &settings, 0);
	settings.mask = KDSM_LOCK_SET_T_L(2) | KDSM_LOCK_SET_T_R;
	check_set(lock, &settings, -ERANGE);
	settings.mask = KDSM_LOCK_SET_T_L(3);	/* no such level */
	settings.t_l[2] = 1;
	check_set(lock, &settings, -ERANGE);
	settings.mask = KDSM_LOCK_SET_T_DC;
	settings.t_dc = 2;
	check_set(lock, &settings, -ERANGE);
	settings.mask = KDSM_LOCK_SET_T_R;
	check_set(mcs, &settings, -ERANGE);
	settings.mask = KDSM_LOCK_SET_T_L(2);
	settings.t_l[1] = KDSM_LOCK_T_L_AUTO - 1;
	check_set(mcs, &settings, -ERANGE);
	settings.t_l[1] = KDSM_LOCK_T_L_AUTO;
	check_set(mcs, &settings, 0);
	settings.t_l[1] = 3;
	check_set(dmcs, &settings, -ERANGE);
	check_set(mcs, &settings, 0);
	assert_int_equal(kdsm_lock_info(mcs, &info), 0);
	assert_int_equal(info.settings.t_l[1], 3);
	settings.mask = KDSM_LOCK_SET_KEEP;
	settings.keep = 0;
	check_set(dmcs, &settings, 0);
	check_set(lock, &settings, 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.settings.t_r, KDSM_LOCK_T_MAX);
	assert_int_equal(info.settings.keep, 0);
	kdsm_lock_close(lock);

	/* Creating an existing lock keeps its settings. Invalid settings create no lock. */
	attr.settings.t_l[1] = 8;
	assert_int_equal(kdsm_lock_create(region, "tuned", 0, &attr, &lock), 0);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.settings.t_l[1], 7);
	kdsm_lock_close(lock);
	attr.settings.t_l[1] = 0;
	assert_int_equal(kdsm_lock_create(region, "wrong", 0, &attr, &lock), -ERANGE);
	attr.settings.mask = 1U << 31;
	assert_int_equal(kdsm_lock_create(region, "wrong", 0, &attr, &lock), -EINVAL);
	attr.settings.mask = 0;
	assert_int_equal(kdsm_lock_open(region, "wrong", 0, &lock), -ENOENT);
	kdsm_lock_close(mcs);
	kdsm_lock_close(dmcs);
}

static void counting(void **state)
{
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct call wait = { lock_and_unlock, lock, 0 };
	struct kdsm_lock_info info;
	uint64_t waits = 0;
	pthread_t waiter;
	int i;

	assert_int_equal(read_and_unlock(lock), 0);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(call_by_other(kdsm_lock_try, lock), -EBUSY);
	assert_int_equal(call_by_other(read_timed_10ms, lock), -ETIMEDOUT);
	waiter = start(call_it, &wait);
	assert_true(so_many_wait(lock, 1));
	usleep(2000);
	assert_int_equal(kdsm_unlock(lock), 0);
	join(waiter);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_READS], 1);
	/* After a reader, a writer makes a call, to bar readers. */
	assert_int_equal(info.stats[KDSM_LOCK_STAT_FAST], 0);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_LOCKS], 2);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_BUSY], 1);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_TIMEDOUT], 1);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_SWITCHES], 2);
	assert_in_range(info.stats[KDSM_LOCK_STAT_LONGEST], 1 * MS, 60 * SECOND);
	assert_int_equal(info.stats[KDSM_LOCK_STAT_WAITED], info.stats[KDSM_LOCK_STAT_LONGEST]);
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		waits += info.waits[i];
	assert_int_equal(waits, 1);
	kdsm_lock_close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(sharing),
		unit_case(bias_on_and_off),
		unit_case(slot_hands_over),
		unit_case(two_locks),
		unit_case(readers_and_writers),
		unit_case(readers_and_rare_writers),
		unit_case(writers_come_through),
		unit_case(readers_come_through),
		unit_case(setting),
		unit_case(counting),
	};

	return UNIT_RUN(tests);
}
