// SPDX-License-Identifier: GPL-2.0
/*
 * A node loses all others, one of which holds a lock whose home is here. The other nodes lose only
 * the packets that they send (mute.h). A thread of this node gets the lock within bounded time. The
 * home must find out where the lock is, and asks one dead node after another, for seconds.
 * Meanwhile this node repeats its own request from time to time only: the work has a high priority,
 * and once kept the processor from everything else, so that living nodes counted as dead, too.
 */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND	1000000000ULL
#define LOCKS	16
#define LIMIT	60	/* of the wait, in s */
#define MOST	10000	/* requests in that time */

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_barrier barrier;

static struct kdsm_lock_info info_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	must(kdsm_lock_info(lock, &info), "kdsm_lock_info");
	return info;
}

/* A lock whose home is node 0 */
static struct kdsm_lock *find_lock(void)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	struct kdsm_lock *lock;

	for (unsigned int i = 0; i < LOCKS; i++) {
		must(kdsm_lock_create(region, NULL, i, &attr, &lock), "kdsm_lock_create");
		if (!info_of(lock).home)
			return lock;
		kdsm_lock_close(lock);
	}
	tap_bail("no lock has its home on node 0");
	return NULL;
}

static void use(struct kdsm_lock *lock)
{
	must(kdsm_lock_timed(lock, 60 * SECOND), "kdsm_lock_timed");
	must(kdsm_unlock(lock), "kdsm_unlock");
}

static void go_on_alone(struct kdsm_lock *lock)
{
	double start = now();
	int error = kdsm_lock_timed(lock, LIMIT * SECOND);
	unsigned long requests;

	tap_result(error, -EOWNERDEAD, "the lock of a dead node");
	printf("# after %.1f s\n", now() - start);
	requests = info_of(lock).stats[KDSM_LOCK_STAT_ENTERED];
	tap_ok(requests < MOST, "this node has asked for it %lu times", requests);
	if (!error || error == -EOWNERDEAD) {
		tap_result(kdsm_lock_consistent(lock), 0, "it is consistent");
		tap_result(kdsm_unlock(lock), 0, "it can be unlocked");
	}
}

/* Nodes that gave each other up must first connect again. */
static int meet_again(void)
{
	int error = -EIO;

	for (int i = 0; i < 60 && error && error != -ETIMEDOUT; i++) {
		error = kdsm_barrier_wait(&barrier, 120 * SECOND);
		if (error)
			sleep(1);
	}
	return error;
}

int main(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	struct kdsm_lock *lock;
	unsigned int node, last;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	last = kdsm_nodes(kdsm) - 1;
	if (last < 2)
		tap_bail("lock-alone needs three nodes");
	attr.size = (last + 1) * 65536;
	must(kdsm_region_open(kdsm, "lock-alone", &attr, &region), "kdsm_region_open");
	kdsm_barrier_init(&barrier, region, 0);
	lock = find_lock();
	use(lock);	/* so that the home asks each node where the lock is */
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
	if (node == last)
		must(kdsm_lock(lock), "kdsm_lock");
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
	if (node)
		mute(true);
	meet_at_host();
	if (!node)
		go_on_alone(lock);
	meet_at_host();
	if (node)
		mute(false);
	meet_at_host();
	if (node == last) {
		int error = kdsm_unlock(lock);

		tap_ok(!error || error == -EHOSTDOWN || error == -EPERM,
		       "unlocking on the node that counted as dead: %s", tap_error(error));
	}
	tap_result(meet_again(), 0, "a barrier when all are back");
	use(lock);
	must(kdsm_barrier_wait(&barrier, 60 * SECOND), "kdsm_barrier_wait");
	kdsm_lock_close(lock);
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return tap_end();
}
