// SPDX-License-Identifier: GPL-2.0
/* Condition variables on the local backend, with threads and processes. */
#include "lock.h"

#define AT	1024		/* offset of the condition variables in bytes */
#define SECOND_AT (AT + ((KDSM_LINE_SIZE + 63) & ~63))

static struct kdsm_cond make_cond(void **state, uint64_t offset)
{
	struct unit *unit = *state;
	struct kdsm_cond cond;

	assert_int_equal(kdsm_cond_init(&cond, unit->region, offset, 0), 0);
	return cond;
}

static void bad(void **state)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = 1 << 20,
		.policy = KDSM_POLICY_RELEASE,
	};
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_RW);
	struct unit *unit = *state;
	struct kdsm_region *coherent;
	struct kdsm_cond cond;

	assert_int_equal(kdsm_region_open(unit->kdsm, "coherent", &attr, &coherent), 0);
	assert_int_equal(kdsm_cond_init(&cond, coherent, 0, 0), -EOPNOTSUPP);
	kdsm_region_close(coherent);
	assert_int_equal(kdsm_cond_init(&cond, unit->region, 8, 0), -EINVAL);
	assert_int_equal(kdsm_cond_init(&cond, unit->region, 0, 1), -EINVAL);
	assert_int_equal(kdsm_cond_init(&cond, unit->region, UNIT_PART - KDSM_LINE_SIZE + 64, 0),
			 -ERANGE);
	assert_int_equal(kdsm_cond_init(&cond, unit->region, UINT64_MAX - 63, 0), -ERANGE);

	cond = make_cond(state, AT);
	assert_int_equal(kdsm_cond_wait(&cond, lock), -EPERM);
	assert_int_equal(kdsm_read_lock(lock), 0);
	assert_int_equal(kdsm_cond_wait(&cond, lock), -EPERM);
	assert_int_equal(kdsm_read_unlock(lock), 0);

	/* Words that hold no condition variable */
	unit_words(state)[AT / 8] = 0;
	assert_int_equal(kdsm_cond_signal(&cond), -EPROTO);
	assert_int_equal(kdsm_cond_broadcast(&cond), -EPROTO);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_cond_wait(&cond, lock), -EPROTO);
	assert_int_equal(kdsm_lock_is_mine(lock), 1);
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(unit_words(state)[AT / 8], 0);
	kdsm_lock_close(lock);
}

static void nobody_waits(void **state)
{
	struct kdsm_cond cond = make_cond(state, AT);
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	uint64_t begin;

	/* A signal without a waiter is lost. */
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	assert_int_equal(kdsm_cond_broadcast(&cond), 0);
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_cond_timed(&cond, lock, 0), -ETIMEDOUT);
	begin = now();
	assert_int_equal(kdsm_cond_timed(&cond, lock, 30 * MS), -ETIMEDOUT);
	assert_true(now() - begin >= 30 * MS);
	assert_int_equal(kdsm_lock_is_mine(lock), 1);
	/* Tickets that were given up do not keep a signal, either. */
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	assert_int_equal(kdsm_cond_broadcast(&cond), 0);
	assert_int_equal(kdsm_cond_timed(&cond, lock, 10 * MS), -ETIMEDOUT);
	assert_int_equal(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
}

/* ---- waking ---- */

struct room {
	struct kdsm_cond cond, other;
	struct kdsm_lock *lock;
	uint64_t *words;
	int failures;
};

/* words[0] threads came in, words[1] more may pass, words[2] passed. */
static void *wait_for_turn(void *arg)
{
	struct room *room = arg;

	UNIT_CHECK(&room->failures, !kdsm_lock(room->lock));
	room->words[0]++;
	while (!room->words[1])
		UNIT_CHECK(&room->failures, !kdsm_cond_wait(&room->cond, room->lock));
	room->words[1]--;
	__atomic_add_fetch(&room->words[2], 1, __ATOMIC_SEQ_CST);
	UNIT_CHECK(&room->failures, !kdsm_unlock(room->lock));
	return NULL;
}

static uint64_t locked_load(struct room *room, const uint64_t *word)
{
	uint64_t value;

	assert_int_equal(kdsm_lock(room->lock), 0);
	value = *word;
	assert_int_equal(kdsm_unlock(room->lock), 0);
	return value;
}

static void all_come(struct room *room, uint64_t count)
{
	while (locked_load(room, &room->words[0]) < count)
		usleep(500);
}

static void let_through(struct room *room, uint64_t count, bool with_lock,
			int (*wake)(struct kdsm_cond *cond))
{
	assert_int_equal(kdsm_lock(room->lock), 0);
	room->words[1] += count;
	if (with_lock)
		assert_int_equal(wake(&room->cond), 0);
	assert_int_equal(kdsm_unlock(room->lock), 0);
	if (!with_lock)
		assert_int_equal(wake(&room->cond), 0);
}

static void signal_and_broadcast(void **state)
{
	struct room room = {
		.cond = make_cond(state, AT),
		.lock = make_lock(state, KDSM_LOCK_RMA_MCS),
		.words = unit_words(state),
	};
	pthread_t threads[6];
	unsigned int i;

	for (i = 0; i < 6; i++)
		threads[i] = start(wait_for_turn, &room);
	all_come(&room, 6);
	for (i = 1; i <= 3; i++) {
		let_through(&room, 1, i % 2, kdsm_cond_signal);
		assert_true(comes_to(&room.words[2], i));
	}
	usleep(20000);
	assert_int_equal(load(&room.words[2]), 3);
	let_through(&room, 3, true, kdsm_cond_broadcast);
	for (i = 0; i < 6; i++)
		join(threads[i]);
	assert_int_equal(room.failures, 0);
	assert_int_equal(room.words[2], 6);
	kdsm_lock_close(room.lock);
}

/* ---- a bounded queue with many producers and consumers: no wake-up may be lost ---- */

#define LENGTH	3
#define ITEMS	3000

/* words[3] items are in the queue, words[4] were put, words[5] were taken. */
static void *put_items(void *arg)
{
	struct room *room = arg;
	int i;

	for (i = 0; i < ITEMS; i++) {
		UNIT_CHECK(&room->failures, !kdsm_lock(room->lock));
		while (room->words[3] == LENGTH)
			UNIT_CHECK(&room->failures, !kdsm_cond_wait(&room->other, room->lock));
		room->words[3]++;
		room->words[4]++;
		if (i % 2)
			UNIT_CHECK(&room->failures, !kdsm_cond_signal(&room->cond));
		UNIT_CHECK(&room->failures, !kdsm_unlock(room->lock));
		if (i % 2 == 0)
			UNIT_CHECK(&room->failures, !kdsm_cond_signal(&room->cond));
	}
	return NULL;
}

static void *get_items(void *arg)
{
	struct room *room = arg;
	int i, ret;

	for (i = 0; i < ITEMS; i++) {
		UNIT_CHECK(&room->failures, !kdsm_lock(room->lock));
		while (!room->words[3]) {
			/* Let timeouts race with signals. */
			ret = i % 3 ? kdsm_cond_wait(&room->cond, room->lock) :
			      kdsm_cond_timed(&room->cond, room->lock, 50000);
			UNIT_CHECK(&room->failures, !ret || (i % 3 == 0 && ret == -ETIMEDOUT));
		}
		room->words[3]--;
		room->words[5]++;
		UNIT_CHECK(&room->failures, !kdsm_cond_signal(&room->other));
		UNIT_CHECK(&room->failures, !kdsm_unlock(room->lock));
	}
	return NULL;
}

static void bounded_queue(void **state)
{
	struct room room = {
		.cond = make_cond(state, AT),
		.other = make_cond(state, SECOND_AT),
		.lock = make_lock(state, KDSM_LOCK_RMA_MCS),
		.words = unit_words(state),
	};
	uint64_t begin = now();
	pthread_t threads[4];
	pid_t pid;
	int i;

	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		threads[0] = start(put_items, &room);
		get_items(&room);
		pthread_join(threads[0], NULL);
		_exit(!!room.failures);
	}
	for (i = 0; i < 4; i++)
		threads[i] = start(i % 2 ? put_items : get_items, &room);
	for (i = 0; i < 4; i++)
		join(threads[i]);
	reap(pid);
	assert_int_equal(room.failures, 0);
	assert_int_equal(room.words[3], 0);
	assert_int_equal(room.words[4], 3 * ITEMS);
	assert_int_equal(room.words[5], 3 * ITEMS);
	/* A lost wake-up would delay the test by seconds. */
	print_message("# %.2f s\n", (now() - begin) / 1e9);
	kdsm_lock_close(room.lock);
}

/* ---- death ---- */

static pid_t fork_waiter(struct room *room)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		wait_for_turn(room);
		_exit(0);
	}
	return pid;
}

/*
 * The signal goes to a killed waiter. The next waiter gets it when the death is detected.
 */
static void dead_waiter(void **state)
{
	struct room room = {
		.cond = make_cond(state, AT),
		.lock = make_lock(state, KDSM_LOCK_RMA_MCS),
		.words = unit_words(state),
	};
	pthread_t thread;
	pid_t pid;

	pid = fork_waiter(&room);
	all_come(&room, 1);
	usleep(20000);
	thread = start(wait_for_turn, &room);
	all_come(&room, 2);
	usleep(20000);
	kill_child(pid);
	let_through(&room, 1, true, kdsm_cond_signal);
	assert_true(comes_to(&room.words[2], 1));
	join(thread);
	assert_int_equal(room.failures, 0);
	kdsm_lock_close(room.lock);
}

/*
 * The lock's owner dies while another process waits for the condition: the waiter gets the
 * lock, with -EOWNERDEAD.
 */
static void owner_dies(void **state)
{
	struct room room = {
		.cond = make_cond(state, AT),
		.lock = make_lock(state, KDSM_LOCK_RMA_MCS),
		.words = unit_words(state),
	};
	int ret;
	pid_t pid;

	assert_int_equal(kdsm_lock(room.lock), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (kdsm_lock(room.lock) || kdsm_cond_signal(&room.cond))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	ret = kdsm_cond_wait(&room.cond, room.lock);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(ret, -EOWNERDEAD);
	assert_int_equal(kdsm_lock_consistent(room.lock), 0);
	assert_int_equal(kdsm_unlock(room.lock), 0);
	kdsm_lock_close(room.lock);
}

static void signals_do_not_end_it(void **state)
{
	struct kdsm_cond cond = make_cond(state, AT);
	struct kdsm_lock *lock = make_lock(state, KDSM_LOCK_RMA_MCS);
	timer_t timer = start_signals();

	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(kdsm_cond_timed(&cond, lock, 50 * MS), -ETIMEDOUT);
	timer_delete(timer);
	assert_int_equal(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit_case(bad),
		unit_case(nobody_waits),
		unit_case(signal_and_broadcast),
		unit_case(bounded_queue),
		unit_case(dead_waiter),
		unit_case(owner_dies),
		unit_case(signals_do_not_end_it),
	};

	return UNIT_RUN(tests);
}
