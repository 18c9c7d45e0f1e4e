// SPDX-License-Identifier: GPL-2.0
/*
 * A node that holds locks, reads, waits for locks, and is the home of others loses its network for
 * a while. The program runs on three nodes at the same time; the last one is the node
 * that goes. It loses only the packets that it sends, see mute.h.
 *
 * Locks 0 to 2 have their homes on three different nodes, and so have locks 3 to 5. The
 * last node holds the first three. It waits for the other three, which node 0 holds, before
 * node 1 does. Locks 6 to 11, and 12 to 17, are the same for the next kinds.
 *
 * The last node reads under locks 18 to 20, of kind RMA_RW. Node 1 reads under them, too, while the
 * last node is away, and then node 0 writes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND		1000000000ULL
#define LOCKS		18
#define LOCKS_OF_KIND	6
#define HALF		3	/* locks of a kind that the last node holds */
#define READ_LOCKS	3	/* of which the last node is a reader */
#define AWAY		60	/* in s */
/* Limit of a wait, in s: the waiter and then the home may each take 10 s to find the node gone */
#define LIMIT		50.0

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_barrier barrier;
static struct kdsm_lock *locks[LOCKS + READ_LOCKS];
static unsigned int node, nodes, gone;
static double start;

/* A thread that waits for a lock */
static struct waiter {
	pthread_t thread;
	int error;
	double took;
} waiters[LOCKS + READ_LOCKS];

/*
 * Results of the waits on the two nodes that stay. For each lock and node, node 0's part has the
 * result + 1, or 0 until the wait is over.
 */
enum { GOT, DEAD, DOWN, OTHER, COUNTS };

/* Whether node 0 holds the lock first; otherwise the node that goes does. */
static bool stays(unsigned int lock)
{
	return lock % LOCKS_OF_KIND >= HALF;
}

static void meet(void)
{
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
}

static uint64_t offset_of(unsigned int lock, unsigned int of)
{
	return 4096 + (lock * nodes + of) * sizeof(uint64_t);
}

/*
 * Leave the result of this node's wait. On a busy host a machine may not run for longer than the
 * transport waits, so that the connection of the two nodes breaks. A failed put can be repeated.
 */
static void leave_result(unsigned int lock, unsigned int result)
{
	uint64_t value = result + 1;
	int error = -EIO;

	for (int turn = 0; turn < 60 && (error == -EIO || error == -EHOSTDOWN); turn++) {
		if (turn)
			sleep(1);
		error = kdsm_put(region, 0, offset_of(lock, node), &value, sizeof(value));
	}
	must(error, "kdsm_put");
}

static void *wait_for_it(void *arg)
{
	unsigned int i = (uintptr_t)arg, count = OTHER;
	struct waiter *waiter = &waiters[i];
	int error = kdsm_lock(locks[i]);

	waiter->took = now() - start;
	waiter->error = error;
	if (!error || error == -EOWNERDEAD) {
		count = error ? DEAD : GOT;
		if (error)
			tap_result(kdsm_lock_consistent(locks[i]), 0, "lock %u is in order", i);
		if (node != gone)
			leave_result(i, count);
		tap_result(kdsm_unlock(locks[i]), 0, "lock %u goes on", i);
		return NULL;
	}
	if (error == -EHOSTDOWN || error == -EIO)
		count = DOWN;
	if (node != gone)
		leave_result(i, count);
	return NULL;
}

static void wait_for(bool staying)
{
	start = now();
	for (unsigned int i = 0; i < LOCKS; i++)
		if (stays(i) == staying &&
		    pthread_create(&waiters[i].thread, NULL, wait_for_it, (void *)(uintptr_t)i))
			tap_bail("pthread_create");
}

static void end_wait(bool staying, double limit)
{
	for (unsigned int i = 0; i < LOCKS; i++) {
		if (stays(i) != staying)
			continue;
		pthread_join(waiters[i].thread, NULL);
		tap_ok(waiters[i].took < limit, "the wait for lock %u ends with %s after %.1f s", i,
		       tap_error(waiters[i].error), waiters[i].took);
	}
}

/* Wait until that many waits for the lock are over, and count their results. */
static void count(unsigned int lock, unsigned int waits, uint64_t *counts)
{
	unsigned int sum;
	uint64_t value;

	for (int turn = 0; turn < 600; turn++) {
		sum = 0;
		memset(counts, 0, COUNTS * sizeof(*counts));
		for (unsigned int i = 0; i < gone; i++) {
			must(kdsm_get(region, 0, offset_of(lock, i), &value, sizeof(value)),
			     "kdsm_get");
			if (!value)
				continue;
			counts[value - 1]++;
			sum++;
		}
		if (sum == waits)
			return;
		usleep(100000);
	}
	tap_ok(false, "both have waited for lock %u", lock);
}

/* Check the results of the six locks of a kind. */
static void judge(unsigned int first)
{
	unsigned int orphans = 0, waiting = 0;
	uint64_t counts[COUNTS];

	for (unsigned int i = first; i < first + HALF; i++) {
		count(i, 2, counts);
		orphans += counts[DOWN] == 2;
		tap_ok(counts[DOWN] == 2 || (counts[DEAD] == 1 && counts[GOT] == 1),
		       "lock %u, whose holder is gone: one is told so (%u), one has it (%u); "
		       "or its home is (%u)", i, (unsigned int)counts[DEAD],
		       (unsigned int)counts[GOT], (unsigned int)counts[DOWN]);
	}
	tap_ok(orphans == 1, "one of these locks has its home there: %u", orphans);
	for (unsigned int i = first + HALF; i < first + LOCKS_OF_KIND; i++) {
		count(i, 1, counts);
		waiting += counts[GOT] == 1 || counts[DEAD] == 1;
		tap_ok(counts[OTHER] == 0, "lock %u, for which it waits", i);
	}
	tap_ok(waiting >= 2, "those for which it waits go on: %u", waiting);
}

static void take(bool staying)
{
	for (unsigned int i = 0; i < LOCKS; i++)
		if (stays(i) == staying)
			must(kdsm_lock(locks[i]), "kdsm_lock");
}

/* ---- readers ---- */

static bool is_home(unsigned int lock)
{
	struct kdsm_lock_info info;

	must(kdsm_lock_info(locks[lock], &info), "kdsm_lock_info");
	return info.home == gone;
}

/* Each node has read before, so it has the right to read. */
static void read_all(bool unlock)
{
	for (unsigned int i = LOCKS; i < LOCKS + READ_LOCKS; i++) {
		must(kdsm_read_lock_timed(locks[i], 10 * SECOND), "kdsm_read_lock");
		if (unlock)
			must(kdsm_read_unlock(locks[i]), "kdsm_read_unlock");
	}
}

static void *write_it(void *arg)
{
	unsigned int i = (uintptr_t)arg;

	waiters[i].error = kdsm_lock(locks[i]);
	waiters[i].took = now() - start;
	if (!waiters[i].error)
		tap_result(kdsm_unlock(locks[i]), 0, "lock %u goes on", i);
	return NULL;
}

static void start_writers(void)
{
	for (unsigned int i = LOCKS; i < LOCKS + READ_LOCKS; i++)
		if (pthread_create(&waiters[i].thread, NULL, write_it, (void *)(uintptr_t)i))
			tap_bail("pthread_create");
}

/* A reader that is gone leaves nothing to make consistent. */
static void end_writers(void)
{
	for (unsigned int i = LOCKS; i < LOCKS + READ_LOCKS; i++) {
		pthread_join(waiters[i].thread, NULL);
		tap_result(waiters[i].error, is_home(i) ? -EHOSTDOWN : 0,
			   "writing under lock %u, whose %s", i,
			   is_home(i) ? "home is gone" : "reader is gone");
		tap_ok(waiters[i].took < LIMIT, "after %.1f s", waiters[i].took);
	}
}

static void end_reading(void)
{
	for (unsigned int i = LOCKS; i < LOCKS + READ_LOCKS; i++)
		tap_result(kdsm_read_unlock(locks[i]), is_home(i) ? 0 : -EHOSTDOWN,
			   "it does not read under lock %u any more", i);
}

static void vanish(void)
{
	unsigned int lost = 0, kept = 0;
	int error;

	take(false);
	meet();		/* node 0 has taken the others */
	wait_for(true);
	sleep(1);
	meet();		/* this node waits for them */
	read_all(false);
	meet();		/* node 1 waits for them */
	mute(true);
	sleep(AWAY);
	mute(false);
	/* This node learns that it was given up from the first node that can reach it. */
	sleep(20);
	for (unsigned int i = 0; i < LOCKS; i++) {
		if (stays(i))
			continue;
		error = kdsm_unlock(locks[i]);
		printf("# unlocking lock %u: %s\n", i, tap_error(error));
		lost += error == -EHOSTDOWN || error == -EPERM;
		kept += !error;
	}
	tap_ok(lost == 6 && kept == 3, "it has lost six locks, and kept those of its own: %u, %u",
	       lost, kept);
	end_reading();
	end_wait(true, 1e9);
}

static void survive(void)
{
	if (!node)
		take(true);
	meet();
	meet();
	if (node)
		wait_for(true);
	sleep(1);
	meet();
	wait_for(false);
	if (node)
		read_all(true);
	sleep(2);
	if (!node)
		start_writers();
	if (!node)
		for (unsigned int i = 0; i < LOCKS; i++)
			if (stays(i))
				tap_result(kdsm_unlock(locks[i]), 0, "unlocking lock %u", i);
	end_wait(false, LIMIT);
	if (!node)
		end_writers();
	if (node)
		end_wait(true, LIMIT);
	else
		for (unsigned int i = 0; i < LOCKS; i += LOCKS_OF_KIND)
			judge(i);
}

int main(void)
{
	struct kdsm_lock_attr kinds[] = {
		{ .argsz = sizeof(kinds[0]), .kind = KDSM_LOCK_DMCS },
		{ .argsz = sizeof(kinds[0]), .kind = KDSM_LOCK_RMA_MCS },
		{ .argsz = sizeof(kinds[0]), .kind = KDSM_LOCK_RMA_RW },
		{ .argsz = sizeof(kinds[0]), .kind = KDSM_LOCK_RMA_RW },
	};
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .mode = 0600 };
	int error;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	gone = nodes - 1;
	if (nodes != 3)
		tap_bail("lock-death needs three nodes");
	attr.size = nodes * 65536;
	must(kdsm_region_open(kdsm, "lock-death", &attr, &region), "kdsm_region_open");
	kdsm_barrier_init(&barrier, region, 0);
	for (unsigned int i = 0; i < LOCKS + READ_LOCKS; i++)
		must(kdsm_lock_create(region, NULL, i, &kinds[i / LOCKS_OF_KIND],
				      &locks[i]), "kdsm_lock_create");
	read_all(true);
	meet();
	if (node == gone)
		vanish();
	else
		survive();
	error = kdsm_barrier_wait(&barrier, 180 * SECOND);
	for (int i = 0; i < 3 && error && error != -ETIMEDOUT; i++) {
		sleep(10);
		error = kdsm_barrier_wait(&barrier, 180 * SECOND);
	}
	tap_result(error, 0, "a barrier when it is back");
	for (unsigned int i = 0; i < LOCKS + READ_LOCKS; i++) {
		start = now();
		error = kdsm_lock_timed(locks[i], 60 * SECOND);
		/*
		 * A home that was away may have given up the other nodes, among them one to
		 * which it has given the lock. They learn of that only now.
		 */
		tap_ok(!error || (error == -EOWNERDEAD &&
				  (is_home(i) || (i < LOCKS && stays(i)))),
		       "lock %u when it is back: %s after %.1f s", i, tap_error(error),
		       now() - start);
		if (error == -EOWNERDEAD)
			error = kdsm_lock_consistent(locks[i]);
		if (!error)
			tap_result(kdsm_unlock(locks[i]), 0, "and unlocking it");
	}
	meet();
	for (unsigned int i = 0; i < LOCKS + READ_LOCKS; i++)
		kdsm_lock_close(locks[i]);
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return tap_end();
}
