// SPDX-License-Identifier: GPL-2.0
/*
 * A node that holds locks, and is the home of others, dies and comes up again. The program runs on
 * three nodes at the same time; the last one is that node. It loses the packets that it sends
 * (mute.h), so that it cannot say goodbye, closes the region, and takes the cluster down and up.
 *
 * There are two locks of each kind: one that the last node holds, whose home is another node; and
 * one whose home is the last node, and which node 0 holds. Node 1 waits for both.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>

#include "clock.h"
#include "mute.h"
#include "tap.h"

#define SECOND	1000000000ULL
#define KINDS	3
#define LOCKS	(2 * KINDS)
#define LIMIT	(25 * slowness())	/* of a wait, in s; the node is away for longer */

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_lock *locks[LOCKS];	/* an even index: the last node holds it */
static unsigned int node, gone;

static struct waiter {
	pthread_t thread;
	int error;
	double took;
} waiters[LOCKS];

/* Whether the home of the lock is the node that dies */
static bool is_orphan(unsigned int lock)
{
	return lock % 2;
}

static unsigned int home_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	must(kdsm_lock_info(lock, &info), "kdsm_lock_info");
	return info.home;
}

static void open_region(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = kdsm_nodes(kdsm) * 65536 };

	must(kdsm_region_open(kdsm, "lock-restart", &attr, &region), "kdsm_region_open");
}

/* The homes of locks go round, so each node finds the same numbers. */
static void open_locks(void)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	unsigned int number = 0, i;

	for (i = 0; i < LOCKS; i++) {
		attr.kind = KDSM_LOCK_DMCS + i / 2;
		for (;; number++) {
			must(kdsm_lock_create(region, NULL, number, &attr, &locks[i]),
			     "kdsm_lock_create");
			if ((home_of(locks[i]) == gone) == is_orphan(i))
				break;
			kdsm_lock_close(locks[i]);
		}
		number++;
	}
}

static void close_all(void)
{
	for (unsigned int i = 0; i < LOCKS; i++)
		kdsm_lock_close(locks[i]);
	kdsm_region_close(region);
}

static void run(const char *command)
{
	if (system(command))
		tap_bail("%s failed", command);
}

static void *wait_for_it(void *arg)
{
	struct waiter *waiter = arg;
	double start = now();

	waiter->error = kdsm_lock(locks[waiter - waiters]);
	waiter->took = now() - start;
	if (waiter->error == -EOWNERDEAD)
		must(kdsm_lock_consistent(locks[waiter - waiters]), "kdsm_lock_consistent");
	if (!waiter->error || waiter->error == -EOWNERDEAD)
		must(kdsm_unlock(locks[waiter - waiters]), "kdsm_unlock");
	return NULL;
}

static void take(bool orphans)
{
	for (unsigned int i = 0; i < LOCKS; i++)
		if (is_orphan(i) == orphans)
			must(kdsm_lock_timed(locks[i], 10 * SECOND), "kdsm_lock");
}

static void die(void)
{
	double start;

	mute(true);
	start = now();
	close_all();
	kdsm_close(kdsm);
	run("kdsmctl down");
	tap_ok(now() - start < LIMIT + 30, "the node is down after %.1f s", now() - start);
	mute(false);
	run("kdsmctl up -f $KDSM_CONFIG -w 60");
	must(kdsm_open(0, &kdsm), "kdsm_open");
}

static void end_waits(void)
{
	for (unsigned int i = 0; i < LOCKS; i++) {
		pthread_join(waiters[i].thread, NULL);
		tap_result(waiters[i].error, is_orphan(i) ? -EHOSTDOWN : -EOWNERDEAD,
			   "node 1 waits for lock %u, whose %s died", i,
			   is_orphan(i) ? "home" : "holder");
		tap_ok(waiters[i].took < LIMIT, "for %.1f s, home %u", waiters[i].took,
		       home_of(locks[i]));
	}
}

/* The holder of a lock whose home has died may have lost it, but can unlock. */
static void unlock_orphans(void)
{
	for (unsigned int i = 0; i < LOCKS; i++)
		if (is_orphan(i))
			tap_either(kdsm_unlock(locks[i]), 0, -EHOSTDOWN, "node 0 unlocks lock %u",
				   i);
}

/* Locks whose home has died are lost for good; the others work. */
static void lock_all(void)
{
	for (unsigned int i = 0; i < LOCKS; i++) {
		tap_result(kdsm_lock_timed(locks[i], 60 * SECOND), is_orphan(i) ? -EHOSTDOWN : 0,
			   "lock %u afterwards", i);
		if (!is_orphan(i))
			tap_result(kdsm_unlock(locks[i]), 0, "unlocking it");
	}
}

int main(void)
{
	unsigned int i;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	node = kdsm_node(kdsm);
	gone = kdsm_nodes(kdsm) - 1;
	if (gone != 2)
		tap_bail("lock-restart needs three nodes");
	open_region();
	open_locks();
	meet_at_host();
	if (node == gone)
		take(false);
	else if (!node)
		take(true);
	meet_at_host();
	for (i = 0; node == 1 && i < LOCKS; i++)
		if (pthread_create(&waiters[i].thread, NULL, wait_for_it, &waiters[i]))
			tap_bail("pthread_create");
	sleep(1);
	meet_at_host();
	if (node == gone)
		die();
	meet_at_host();
	if (node == 1)
		end_waits();
	meet_at_host();
	if (!node)
		unlock_orphans();
	for (i = 0; i < gone; i++) {
		if (node == i)
			lock_all();
		meet_at_host();
	}
	if (node != gone)
		close_all();
	kdsm_close(kdsm);
	meet_at_host();
	return tap_end();
}
