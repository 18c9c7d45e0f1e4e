// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl changes the settings of locks while all nodes use them: the settings apply on all
 * nodes, and the guarded data stay right. Needs two nodes.
 *
 * usage: lock-tune [PART-OF-A-TEST-NAME]
 */
#include <pthread.h>
#include <unistd.h>
#include <kdsm/lock.h>
#include "guest.h"

#define THREADS 2

static struct kdsm_region *region;
static struct kdsm_lock *lock;
static uint64_t turns;		/* how often this node's threads had the lock */
static bool stop;

static void tune(const char *setting)
{
	char command[128];

	snprintf(command, sizeof(command), "kdsmctl lock set lock-tune/it %s", setting);
	CHECK_IS(system(command), 0);
}

static struct kdsm_lock_info info_of(void)
{
	struct kdsm_lock_info info;

	CHECK_IS(kdsm_lock_info(lock, &info), 0);
	return info;
}

static uint64_t remote_of(void)
{
	struct kdsm_lock_info info = info_of();

	return info.stats[KDSM_LOCK_STAT_ATOMICS] + info.stats[KDSM_LOCK_STAT_PUTS] +
	       info.stats[KDSM_LOCK_STAT_GETS] + info.stats[KDSM_LOCK_STAT_MESSAGES];
}

static void *use(void *arg)
{
	uint64_t value;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK_IS(kdsm_lock_timed(lock, 60 * SECOND), 0);
		CHECK_IS(kdsm_get(region, 0, 0, &value, 8), 0);
		value++;
		CHECK_IS(kdsm_put(region, 0, 0, &value, 8), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
		__atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Wait until this node's threads have had the lock that many times more. */
static void go_on(unsigned int more)
{
	uint64_t goal = __atomic_load_n(&turns, __ATOMIC_RELAXED) + more;
	int i;

	for (i = 0; i < 6000 && __atomic_load_n(&turns, __ATOMIC_RELAXED) < goal; i++)
		usleep(10000);
	CHECK(i < 6000);
}

static void all_have(uint64_t keep)
{
	meet();
	CHECK_IS(info_of().settings.keep, keep);
	go_on(5);
	meet();
}

static void tune_in_use(void)
{
	uint64_t zero = 0, value, all = 0, remote, expected;
	pthread_t threads[THREADS];
	unsigned int i;

	stop = false;
	turns = 0;
	if (node == 0)
		CHECK_IS(kdsm_put(region, 0, 0, &zero, 8), 0);
	meet();
	for (i = 0; i < THREADS; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, use, NULL), 0);
	go_on(5);
	if (node == 0)
		tune("keep=0");
	all_have(0);
	if (node == nodes - 1)
		tune("keep=1500");
	all_have(1500000);
	/* One wrong setting among right ones: nothing changes on any node. */
	if (node == 0)
		CHECK(system("kdsmctl lock set lock-tune/it keep=1 T_R=5") != 0);
	all_have(1500000);
	if (node == 0)
		tune("keep=0");
	all_have(0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_IS(kdsm_put(region, 0, 64 + 8 * node, &turns, 8), 0);
	meet();
	for (i = 0; i < nodes; i++) {
		CHECK_IS(kdsm_get(region, 0, 64 + 8 * i, &value, 8), 0);
		all += value;
	}
	CHECK_IS(kdsm_get(region, 0, 0, &value, 8), 0);
	CHECK_IS(value, all);
	meet();
	/* The setting has its effect: without keeping, each lock needs remote operations. */
	if (node == 1) {
		remote = remote_of();
		for (i = 0; i < 20; i++) {
			CHECK_IS(kdsm_lock(lock), 0);
			CHECK_IS(kdsm_unlock(lock), 0);
		}
		/* The last unlock returns before the lock is free. The home needs no network. */
		expected = info_of().home == node ? 0 : 40;
		for (i = 0; i < 5000 && remote_of() - remote < expected; i++)
			usleep(1000);
		CHECK(remote_of() - remote >= expected);
		tune("keep=forever");
		CHECK_IS(kdsm_lock(lock), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
		remote = remote_of();
		for (i = 0; i < 20; i++) {
			CHECK_IS(kdsm_lock(lock), 0);
			CHECK_IS(kdsm_unlock(lock), 0);
		}
		CHECK_IS(remote_of(), remote);
	}
	meet();
}

/* A threshold is a number or automatic; at first it is automatic. */
static void tune_levels(void)
{
	struct kdsm_lock_attr kind = { .argsz = sizeof(kind), .kind = KDSM_LOCK_RMA_MCS };
	struct kdsm_lock_info info;
	struct kdsm_lock *other;

	CHECK_IS(kdsm_lock_create(region, "levels", 0, &kind, &other), 0);
	CHECK_IS(kdsm_lock_info(other, &info), 0);
	CHECK_IS(info.settings.t_l[1], KDSM_LOCK_T_L_AUTO);
	meet();
	if (node == 1)
		CHECK_IS(system("kdsmctl lock set lock-tune/levels T_L.2=5"), 0);
	meet();
	CHECK_IS(kdsm_lock_info(other, &info), 0);
	CHECK_IS(info.settings.t_l[1], 5);
	CHECK_IS(system("kdsmctl lock show lock-tune/levels | grep -q ' T_L.2=5 '"), 0);
	meet();
	if (node == 0)
		CHECK_IS(system("kdsmctl lock set lock-tune/levels T_L.2=auto"), 0);
	meet();
	CHECK_IS(kdsm_lock_info(other, &info), 0);
	CHECK_IS(info.settings.t_l[1], KDSM_LOCK_T_L_AUTO);
	CHECK_IS(system("kdsmctl lock show lock-tune/levels | grep -q ' T_L.2=auto '"), 0);
	CHECK_IS(system("kdsmctl lock show lock-tune/levels --json | grep -q '\"auto\"'"), 0);
	meet();
	kdsm_lock_close(other);
}

static const struct guest_test tests[] = {
	{ "tune_in_use", tune_in_use },
	{ "tune_levels", tune_levels },
	{}
};

int main(int argc, char **argv)
{
	struct kdsm_lock_attr kind = { .argsz = sizeof(kind), .kind = KDSM_LOCK_DMCS };
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	int ret, status;

	guest_open("lock-tune-meeting");
	attr.size *= nodes;
	ret = kdsm_region_open(kdsm, "lock-tune", &attr, &region);
	if (!ret)
		ret = kdsm_lock_create(region, "it", 0, &kind, &lock);
	if (ret)
		guest_die("region or lock", ret);
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_lock_close(lock);
	kdsm_region_close(region);
	guest_close();
	return status;
}
