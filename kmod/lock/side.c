// SPDX-License-Identifier: GPL-2.0
/*
 * A *side*: the threads of this node that want a lock in one mode, to write (lock.c) or to read
 * (read.c). kdsm_side_settle() does what the state requires, with the lock's mutex and without the
 * network. kdsm_duty_run() also sends: a thread that waits calls it, or the work item. A thread
 * that unlocks does not, so unlocking never waits for the network.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/log2.h>

#include "lock/lock.h"
#include "region/region.h"

/* ---- the end of a wait; with the mutex ---- */

static void kdsm_side_count(struct kdsm_side *side, const struct kdsm_waiter *waiter, int status)
{
	u64 waited = ktime_get_ns() - waiter->since, *stats = side->duty.lock->stats;

	if (!status || status == -EOWNERDEAD)
		stats[side->reads ? KDSM_LOCK_STAT_READS : KDSM_LOCK_STAT_LOCKS]++;
	else if (status == -EBUSY)
		stats[KDSM_LOCK_STAT_BUSY]++;
	else if (status == -ETIMEDOUT || status == -EINTR)
		stats[KDSM_LOCK_STAT_TIMEDOUT]++;
	if (waiter->try)
		return;
	stats[KDSM_LOCK_STAT_WAITED] += waited;
	stats[KDSM_LOCK_STAT_LONGEST] = max(stats[KDSM_LOCK_STAT_LONGEST], waited);
	side->duty.lock->waits[min_t(u32, ilog2(waited | 1), KDSM_LOCK_WAITS - 1)]++;
	kdsm_fabric_duration(side->duty.lock->turn.part.fabric, KDSM_LATENCY_LOCK, waited);
}

void kdsm_side_end(struct kdsm_side *side, struct kdsm_waiter *waiter, int status)
{
	lockdep_assert_held(&side->duty.lock->mutex);
	if (side->reads && (!status || status == -EOWNERDEAD))
		kdsm_readers_enter(side->duty.lock, waiter);
	kdsm_side_count(side, waiter, status);
	kdsm_line_end(&side->line, waiter, status);
}

void kdsm_side_end_all(struct kdsm_side *side, int status)
{
	struct kdsm_waiter *waiter;

	while ((waiter = kdsm_line_first(&side->line)))
		kdsm_side_end(side, waiter, status);
}

/* ---- what needs the network ---- */

bool kdsm_side_settle(struct kdsm_side *side)
{
	lockdep_assert_held(&side->duty.lock->mutex);
	return side->reads ? kdsm_readers_settle(side->duty.lock) :
			     kdsm_lock_settle(side->duty.lock);
}

void kdsm_side_kick(struct kdsm_side *side)
{
	if (kdsm_side_settle(side))
		kdsm_duty_now(&side->duty);
}

/* See what former holders wrote. Returns the time until the next try, in ns, or 0. */
static u64 kdsm_side_fetch(struct kdsm_side *side, u32 arrivals, unsigned int from)
{
	struct kdsm_lock *lock = side->duty.lock;
	int err = kdsm_lock_adopt(lock, from);

	if (err && err != -EOWNERDEAD)
		return KDSM_TURN_RETRY;
	mutex_lock(&lock->mutex);
	/* The node may have lost the lock meanwhile. */
	if (side->arrivals == arrivals && side->here) {
		side->adopted = true;
		if (err && side->reads)
			lock->pass.flags |= KDSM_TURN_DEAD;
		else if (err)
			lock->dead = true;
	}
	mutex_unlock(&lock->mutex);
	return 0;
}

static u64 kdsm_side_send(struct kdsm_side *side)
{
	struct kdsm_turn *turn = &side->duty.lock->turn;
	unsigned int missed;
	u64 delay;

	if (side->reads)
		return kdsm_pass_advance(&side->duty.lock->pass);
	delay = kdsm_turn_advance(turn);
	missed = READ_ONCE(turn->missed);
	/* A home that is down is asked less often. */
	if (delay && missed > 4)
		delay = max_t(u64, delay, min(missed, 50U) * 10 * NSEC_PER_MSEC);
	return delay;
}

static unsigned int kdsm_side_what(const struct kdsm_side *side, bool fetch)
{
	const struct kdsm_lock *lock = side->duty.lock;

	if (side->reads)
		return 2 * READ_ONCE(lock->pass.state) + fetch;
	return 2 * READ_ONCE(lock->turn.state) + fetch;
}

/* Do what the state requires, and then send or fetch; again, while that changes the state. */
static bool kdsm_side_round(struct kdsm_duty *duty, struct kdsm_try *try)
{
	struct kdsm_side *side = container_of(duty, struct kdsm_side, duty);
	unsigned int from, before;
	u32 arrivals;
	bool fetch;

	mutex_lock(&duty->lock->mutex);
	WRITE_ONCE(side->line.called, false);
	kdsm_side_settle(side);
	fetch = side->here && !side->adopted;
	arrivals = side->arrivals;
	from = side->from;
	before = kdsm_side_what(side, fetch);
	mutex_unlock(&duty->lock->mutex);
	/* After a failure, the round only ends waits that have become vain. */
	if (try->delay && try->what == before)
		return false;
	try->delay = fetch ? kdsm_side_fetch(side, arrivals, from) : kdsm_side_send(side);
	try->what = kdsm_side_what(side, fetch);
	return try->delay || fetch || try->what != before;
}

void kdsm_side_init(struct kdsm_side *side, struct kdsm_lock *lock, bool reads)
{
	side->reads = reads;
	kdsm_line_init(&side->line);
	kdsm_duty_init(&side->duty, lock, &side->line, kdsm_side_round);
}
