// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How threads of one node queue for a lock of the local backend.
 *
 * Four data structures are authoritative: the lock word names the owner, the slots of threads
 * and the table of readers say which threads read, and the lives of threads record the waiters and
 * their order. All other state is derived from these. Each change is one store to one of them, so
 * that a thread that is killed at any moment leaves a state from which the next thread can
 * continue.
 *
 * A thread that enters here takes the guard and freezes the word by setting WAITERS, which
 * stops programs from changing the word by themselves. settle() hands the lock over to the
 * waiters that may have it, and thaw() recomputes the flags. Every SLICE, a waiter checks
 * by itself whether the threads it waits for are still alive.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "internal.h"

#define SLICE	20000000	/* longest sleep between liveness checks, in ns */

/*
 * kdsm_life.told of a waiter. A waiter that reads TOLD still has to check whether it has
 * the lock.
 */
enum {
	WAITING,
	SLEEPING,
	TOLD,
};

/* One visit of a thread to a lock. state is valid while the guard is held. */
struct turn {
	struct kdsm_local_lock *lock;
	__u64 *word, *bias;
	uint64_t *slots;	/* of readers of all locks */
	uint32_t number;	/* of the lock */
	uint32_t *readers;
	uint64_t key;		/* of the lock; unique among all relatives */
	uint64_t state;		/* the owner, DEAD and LOST; the other flags are derived */
	uint32_t me;
};

/* ---- the authoritative state ---- */

static uint32_t owner(const struct turn *turn)
{
	return KDSM_LOCK_OWNER(turn->state);
}

static void store_state(struct turn *turn, uint64_t flags)
{
	__atomic_store_n(turn->word, turn->state | flags, __ATOMIC_RELEASE);
}

static void set_owner(struct turn *turn, uint32_t thread)
{
	turn->state = (turn->state & ~(uint64_t)UINT32_MAX) | thread;
	store_state(turn, KDSM_LOCK_WAITERS);
}

static uint32_t *reader(const struct turn *turn, uint32_t thread)
{
	return &turn->readers[kdsm_life_index(thread)];
}

/* Threads that wait for their own entry load it without holding the guard. */
static bool reads(const struct turn *turn, uint32_t thread)
{
	return __atomic_load_n(reader(turn, thread), __ATOMIC_ACQUIRE) == thread;
}

static void set_reader(const struct turn *turn, uint32_t thread, uint32_t value)
{
	__atomic_store_n(reader(turn, thread), value, __ATOMIC_RELEASE);
}

static uint64_t *slot(const struct turn *turn, uint32_t thread)
{
	return &turn->slots[KDSM_LOCK_SLOT_INDEX(thread)];
}

static bool has_slot(const struct turn *turn, uint32_t thread)
{
	return __atomic_load_n(slot(turn, thread), __ATOMIC_ACQUIRE) ==
	       KDSM_LOCK_SLOT(thread, turn->number);
}

static bool is_reading(const struct turn *turn, uint32_t thread)
{
	return reads(turn, thread) || has_slot(turn, thread);
}

/*
 * Let a thread read: by its slot, so that the thread finds its slot in use if it locks again; or by
 * the table, if the thread, or another one, has the slot for another lock.
 */
static void let_read(struct turn *turn, uint32_t thread)
{
	uint64_t none = 0;

	if (__atomic_compare_exchange_n(slot(turn, thread), &none,
					KDSM_LOCK_SLOT(thread, turn->number), false,
					__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	set_reader(turn, thread, thread);
	turn->lock->readers++;
}

/*
 * Let no reader in by a slot any more. Returns whether no thread reads by its slot. Clears the
 * slots of dead threads.
 */
static bool bar_slots(struct turn *turn)
{
	bool empty = true;
	uint64_t slot;
	unsigned int i;

	/* Pairs with the swap of the slot: the reader sees this, or is seen here. */
	__atomic_exchange_n(turn->bias, 0, __ATOMIC_SEQ_CST);
	for (i = 0; i < KDSM_LOCK_SLOTS; i++) {
		slot = __atomic_load_n(&turn->slots[i], __ATOMIC_ACQUIRE);
		if ((uint32_t)slot != turn->number + 1)
			continue;
		if (kdsm_life_over(slot >> 32) &&
		    __atomic_compare_exchange_n(&turn->slots[i], &slot, 0, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			turn->lock->stats[KDSM_LOCK_STAT_DEAD]++;
		else
			empty = false;
	}
	return empty;
}

static void count_readers(struct turn *turn)
{
	unsigned int i, used = kdsm_lives_used();

	turn->lock->readers = 0;
	if (turn->lock->kind != KDSM_LOCK_RMA_RW)
		return;
	for (i = 0; i < used; i++)
		turn->lock->readers += __atomic_load_n(&turn->readers[i], __ATOMIC_RELAXED) != 0;
}

static void freeze(struct turn *turn)
{
	uint64_t state;

	kdsm_guard_take(&turn->lock->guard, turn->me);
	state = __atomic_fetch_or(turn->word, KDSM_LOCK_WAITERS, __ATOMIC_ACQUIRE);
	turn->state = state & (UINT32_MAX | KDSM_LOCK_AT_NODE | KDSM_LOCK_DEAD | KDSM_LOCK_LOST);
	if (turn->lock->guard.died) {
		count_readers(turn);
		turn->lock->guard.died = false;
	}
}

/* ---- waiters ---- */

static struct kdsm_life *own_life(const struct turn *turn)
{
	return kdsm_life_at(kdsm_life_index(turn->me));
}

static bool waits_here(const struct turn *turn, const struct kdsm_life *life)
{
	return __atomic_load_n(&life->waits, __ATOMIC_ACQUIRE) == turn->key;
}

static void join(struct turn *turn, uint64_t ticket, bool for_reading)
{
	struct kdsm_life *life = own_life(turn);

	life->thread = turn->me;
	life->ticket = ticket;
	life->reads = for_reading;
	__atomic_store_n(&life->told, WAITING, __ATOMIC_RELAXED);
	__atomic_store_n(&life->waits, turn->key, __ATOMIC_RELEASE);
}

/*
 * Take a waiter out of the queue, unless its life waits for another lock by now: the waiter
 * may have been killed, and a new thread with the same life may wait elsewhere.
 */
static void leave(const struct turn *turn, struct kdsm_life *life)
{
	uint64_t waits = turn->key;

	__atomic_compare_exchange_n(&life->waits, &waits, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
	/* Without FUTEX_PRIVATE_FLAG, because waiters may be in other processes. */
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

static void tell(const struct turn *turn, struct kdsm_life *life)
{
	leave(turn, life);
	if (__atomic_exchange_n(&life->told, TOLD, __ATOMIC_RELEASE) == SLEEPING)
		futex(&life->told, FUTEX_WAKE, 1, NULL);
}

/* The first writer and the first reader in the queue */
struct front {
	struct kdsm_life *writer, *reader;
};

static bool is_before(const struct kdsm_life *life, const struct kdsm_life *other)
{
	return !other || (int64_t)(life->ticket - other->ticket) < 0;
}

static struct front find_front(const struct turn *turn)
{
	unsigned int i, used = kdsm_lives_used();
	struct front front = { NULL, NULL };
	struct kdsm_life *life;

	for (i = 0; i < used; i++) {
		life = kdsm_life_at(i);
		if (!waits_here(turn, life))
			continue;
		if (life->reads && is_before(life, front.reader))
			front.reader = life;
		if (!life->reads && is_before(life, front.writer))
			front.writer = life;
	}
	return front;
}

/* ---- choosing the next holder ---- */

/*
 * If readers and writers wait, let at most t_r readers in a row pass, then at most t_w
 * writers.
 */
static struct kdsm_life *choose(const struct turn *turn, const struct front *front)
{
	const struct kdsm_local_lock *lock = turn->lock;
	uint32_t most = lock->reading ? lock->settings.t_r : lock->settings.t_w;

	if (!front->writer || !front->reader)
		return front->writer ? front->writer : front->reader;
	return lock->reading == (lock->in_row < most) ? front->reader : front->writer;
}

static void count_row(struct kdsm_local_lock *lock, bool for_reading, bool others_wait)
{
	if (lock->reading != for_reading) {
		lock->stats[KDSM_LOCK_STAT_SWITCHES]++;
		lock->reading = for_reading;
		lock->in_row = 0;
	}
	lock->in_row = others_wait ? lock->in_row + 1 : 0;
	if (for_reading && lock->in_row > lock->stats[KDSM_LOCK_STAT_READERS_IN_ROW])
		lock->stats[KDSM_LOCK_STAT_READERS_IN_ROW] = lock->in_row;
}

/* Hand the lock over to this waiter, unless a thread that was killed has already done so. */
static void grant(struct turn *turn, struct kdsm_life *life, const struct front *front)
{
	if (life->reads && !is_reading(turn, life->thread)) {
		let_read(turn, life->thread);
		count_row(turn->lock, true, front->writer);
	} else if (!life->reads && owner(turn) != life->thread) {
		set_owner(turn, life->thread);
		count_row(turn->lock, false, front->reader);
	}
	tell(turn, life);
}

static bool is_granted(const struct turn *turn, const struct kdsm_life *life)
{
	return life->reads ? is_reading(turn, life->thread) : owner(turn) == life->thread;
}

static bool may_have(struct turn *turn, const struct kdsm_life *life)
{
	if (owner(turn) || (!life->reads && turn->lock->readers))
		return false;
	return life->reads || turn->lock->kind != KDSM_LOCK_RMA_RW || bar_slots(turn);
}

static void settle(struct turn *turn)
{
	struct kdsm_life *life;
	struct front front;

	for (;;) {
		front = find_front(turn);
		life = choose(turn, &front);
		if (!life)
			return;
		if (turn->state & KDSM_LOCK_LOST)
			tell(turn, life);
		else if (may_have(turn, life) || is_granted(turn, life))
			grant(turn, life, &front);
		else
			return;
	}
}

static void thaw(struct turn *turn)
{
	bool is_rw = turn->lock->kind == KDSM_LOCK_RMA_RW, biased;
	struct front front = find_front(turn);
	uint64_t flags = 0;

	if (front.writer || front.reader)
		flags |= KDSM_LOCK_WAITERS;
	/* While readers come, they enter by their slots, and writers have to ask. */
	biased = is_rw && turn->lock->reading && !owner(turn) && !front.writer &&
		 !(turn->state & (KDSM_LOCK_DEAD | KDSM_LOCK_LOST));
	if (is_rw && (turn->lock->readers || biased || (turn->lock->reading && !bar_slots(turn))))
		flags |= KDSM_LOCK_WANTED;
	store_state(turn, flags);
	if (biased)
		__atomic_store_n(turn->bias, 1, __ATOMIC_RELEASE);
	kdsm_guard_give(&turn->lock->guard);
}

/* ---- dead threads ---- */

static void bury_owner(struct turn *turn)
{
	if (!owner(turn) || !kdsm_life_over(owner(turn)))
		return;
	turn->state |= KDSM_LOCK_DEAD;
	set_owner(turn, 0);
	turn->lock->stats[KDSM_LOCK_STAT_DEAD]++;
}

static void bury_all(struct turn *turn)
{
	unsigned int i, used = kdsm_lives_used();
	struct kdsm_life *life;
	uint32_t thread;

	bury_owner(turn);
	for (i = 0; i < used; i++) {
		life = kdsm_life_at(i);
		if (waits_here(turn, life) && kdsm_life_over(life->thread))
			leave(turn, life);
		if (turn->lock->kind != KDSM_LOCK_RMA_RW)
			continue;
		thread = __atomic_load_n(&turn->readers[i], __ATOMIC_RELAXED);
		if (thread && kdsm_life_over(thread)) {
			set_reader(turn, thread, 0);
			turn->lock->stats[KDSM_LOCK_STAT_DEAD]++;
		}
	}
	count_readers(turn);
}

/* ---- taking ---- */

static bool was_told(const void *what)
{
	const struct kdsm_life *life = what;

	return __atomic_load_n(&life->told, __ATOMIC_ACQUIRE) == TOLD;
}

/* Sleep until another thread sets told, for at most this many ns. */
static int sleep_for(struct kdsm_life *life, uint64_t nanoseconds)
{
	struct timespec ts = { .tv_nsec = nanoseconds };
	uint32_t told = WAITING;

	if (!__atomic_compare_exchange_n(&life->told, &told, SLEEPING, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_ACQUIRE) && told == TOLD)
		return 0;
	if (!futex(&life->told, FUTEX_WAIT, SLEEPING, &ts) || errno == EAGAIN)
		return 0;
	return -errno;
}

/* Whether this thread has the lock, regardless of which thread woke it. */
static bool has_it(const struct turn *turn, bool for_reading)
{
	if (for_reading)
		return is_reading(turn, turn->me);
	return KDSM_LOCK_OWNER(__atomic_load_n(turn->word, __ATOMIC_ACQUIRE)) == turn->me;
}

/*
 * After the waiter has seen TOLD, this acquire adds no ordering. It is for ThreadSanitizer,
 * which does not see the handover by a relative in another process, but has seen the unlock
 * before.
 */
static int outcome(const struct turn *turn)
{
	uint64_t state = __atomic_load_n(turn->word, __ATOMIC_ACQUIRE);

	return state & KDSM_LOCK_DEAD ? -EOWNERDEAD : 0;
}

/*
 * Decide whether a queued thread may return. Caller holds the guard. If told is TOLD but
 * the thread does not have the lock, then the wakeup was meant for an earlier thread with
 * the same life, or the lock is lost.
 */
static int look_around(struct turn *turn, uint64_t ticket, bool for_reading)
{
	bury_all(turn);
	if (!waits_here(turn, own_life(turn)) || was_told(own_life(turn)))
		join(turn, ticket, for_reading);
	settle(turn);
	if (has_it(turn, for_reading))
		return 0;
	return turn->state & KDSM_LOCK_LOST ? -ENOTRECOVERABLE : -EAGAIN;
}

static int wait_turn(struct turn *turn, uint64_t ticket, bool for_reading, bool may_spin,
		     uint64_t timeout)
{
	struct kdsm_life *life = own_life(turn);
	uint64_t left, begin = kdsm_now();
	int ret = 0, slept;

	if (may_spin && timeout)
		kdsm_spin(&turn->lock->spin, timeout, was_told, life);
	for (;;) {
		left = kdsm_left(begin, timeout);
		slept = was_told(life) ? 0 : sleep_for(life, left < SLICE ? left : SLICE);
		if (was_told(life) && has_it(turn, for_reading))
			return 0;
		freeze(turn);
		ret = look_around(turn, ticket, for_reading);
		if (ret == -EAGAIN && slept == -EINTR)
			ret = -EINTR;
		else if (ret == -EAGAIN && !kdsm_left(begin, timeout))
			ret = -ETIMEDOUT;
		if (ret != -EAGAIN)
			break;
		thaw(turn);
	}
	if (ret)
		leave(turn, life);
	settle(turn);
	thaw(turn);
	return ret;
}

/* ---- counting ---- */

static void add(uint64_t *counter, uint64_t value)
{
	__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

static void count_wait(struct kdsm_local_lock *lock, uint64_t waited)
{
	uint64_t *longest = &lock->stats[KDSM_LOCK_STAT_LONGEST];
	uint64_t was = __atomic_load_n(longest, __ATOMIC_RELAXED);
	unsigned int i = waited ? 63 - __builtin_clzll(waited) : 0;

	add(&lock->stats[KDSM_LOCK_STAT_WAITED], waited);
	add(&lock->waits[i < KDSM_LOCK_WAITS ? i : KDSM_LOCK_WAITS - 1], 1);
	while (was < waited && !__atomic_compare_exchange_n(longest, &was, waited, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void count_end(struct kdsm_local_lock *lock, int ret, bool for_reading)
{
	if (!ret || ret == -EOWNERDEAD)
		add(&lock->stats[for_reading ? KDSM_LOCK_STAT_READS : KDSM_LOCK_STAT_LOCKS], 1);
	else if (ret == -EBUSY)
		add(&lock->stats[KDSM_LOCK_STAT_BUSY], 1);
	else if (ret == -ETIMEDOUT || ret == -EINTR)
		add(&lock->stats[KDSM_LOCK_STAT_TIMEDOUT], 1);
}

/* ---- the calls ---- */

static int start(struct turn *turn, struct kdsm_region *region, uint32_t number, uint32_t thread)
{
	struct kdsm_local_area *area = kdsm_local_area(region);

	if (number >= KDSM_MAX_LOCKS ||
	    !__atomic_load_n(&area->locks[number].kind, __ATOMIC_ACQUIRE))
		return -ENOENT;
	turn->lock = &area->locks[number];
	turn->word = &area->words[number].state;
	turn->bias = &area->words[number].bias;
	turn->slots = area->slots;
	turn->number = number;
	turn->readers = area->readers[number];
	turn->key = area->serial * KDSM_MAX_LOCKS + number;
	turn->me = thread;
	return 0;
}

/*
 * First attempt, without sleeping. Returns 0 if the thread has the lock, -EAGAIN if it must
 * wait.
 */
static int try_now(struct turn *turn, uint64_t *ticket, bool for_reading)
{
	if (turn->state & KDSM_LOCK_LOST)
		return -ENOTRECOVERABLE;
	if (owner(turn) == turn->me || is_reading(turn, turn->me))
		return -EDEADLK;
	*ticket = turn->lock->ticket++;
	join(turn, *ticket, for_reading);
	settle(turn);
	if (has_it(turn, for_reading))
		return 0;
	/*
	 * The thread is about to wait, so searching for dead threads costs no additional
	 * time.
	 */
	return look_around(turn, *ticket, for_reading);
}

int kdsm_local_take(struct kdsm_region *region, struct kdsm_lock_take *arg)
{
	bool for_reading = arg->flags & KDSM_LOCK_READ;
	struct turn turn;
	uint64_t ticket, begin = 0;
	int ret;

	ret = start(&turn, region, arg->number, arg->thread);
	if (ret)
		return ret;
	if (for_reading && turn.lock->kind != KDSM_LOCK_RMA_RW)
		return -EINVAL;
	if (!(arg->flags & KDSM_LOCK_TRY))
		begin = kdsm_now();
	freeze(&turn);
	ret = try_now(&turn, &ticket, for_reading);
	if (ret == -EAGAIN && ((arg->flags & KDSM_LOCK_TRY) || !arg->timeout)) {
		leave(&turn, own_life(&turn));
		settle(&turn);
		ret = arg->flags & KDSM_LOCK_TRY ? -EBUSY : -ETIMEDOUT;
	}
	thaw(&turn);
	if (ret == -EAGAIN) {
		ret = wait_turn(&turn, ticket, for_reading, region->kdsm->may_spin, arg->timeout);
		if (!ret)
			count_wait(turn.lock, kdsm_now() - begin);
	}
	if (!ret)
		ret = outcome(&turn);
	count_end(turn.lock, ret, for_reading);
	return ret;
}

static int give_reading(struct turn *turn)
{
	if (!reads(turn, turn->me))
		return -EPERM;
	set_reader(turn, turn->me, 0);
	turn->lock->readers--;
	return 0;
}

static int give_writing(struct turn *turn)
{
	if (owner(turn) != turn->me)
		return -EPERM;
	if (turn->state & KDSM_LOCK_DEAD)
		turn->state |= KDSM_LOCK_LOST;
	turn->state &= ~(uint64_t)UINT32_MAX;
	return 0;
}

int kdsm_local_give(struct kdsm_region *region, struct kdsm_lock_give *arg)
{
	bool for_reading = arg->flags & KDSM_LOCK_READ;
	struct turn turn;
	int ret;

	ret = start(&turn, region, arg->number, arg->thread);
	if (ret)
		return ret;
	freeze(&turn);
	ret = for_reading ? give_reading(&turn) : give_writing(&turn);
	/* A reader that has cleared its slot calls, too. */
	if (!ret || for_reading)
		settle(&turn);
	thaw(&turn);
	return ret;
}

int kdsm_local_consistent(struct kdsm_region *region, struct kdsm_lock_give *arg)
{
	struct turn turn;
	int ret;

	ret = start(&turn, region, arg->number, arg->thread);
	if (ret)
		return ret;
	freeze(&turn);
	if (owner(&turn) != turn.me)
		ret = -EPERM;
	else if (!(turn.state & KDSM_LOCK_DEAD))
		ret = -EINVAL;
	turn.state &= ret ? ~0ULL : ~KDSM_LOCK_DEAD;
	thaw(&turn);
	return ret;
}
