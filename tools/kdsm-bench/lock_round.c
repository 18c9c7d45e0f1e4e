// SPDX-License-Identifier: GPL-2.0
/* lock: a round on all nodes, which has a lock of its own. */
#include <errno.h>
#include <string.h>
#include "lock.h"

/* ---- the lock ---- */

/* Whether the node queues for the lock in its own memory first; other nodes may queue elsewhere */
static bool is_home(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_lock_info info;

	return !kdsm_lock_info(lock, &info) && info.home == node;
}

int lock_create_afar(struct run *run, const struct kdsm_lock_attr *attr, unsigned int number,
		     unsigned int node, struct kdsm_lock **lock)
{
	unsigned int last = number + run->nodes - 1;
	int ret;

	for (;; number++) {
		ret = kdsm_lock_create(run->region, NULL, number, attr, lock);
		if (ret || number == last || !is_home(*lock, node))
			return ret;
		kdsm_lock_close(*lock);
		*lock = NULL;
	}
}

static int lock_open(struct lock_run *run)
{
	const struct options *options = run->run.options;
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = run->round.kind,
		.settings = run->round.settings,
	};
	int ret;

	if (run->round.kind == LOCK_NONE)
		return 0;
	/* Leave out the settings that the kind does not have. */
	attr.settings.mask &= KDSM_LOCK_SET_KEEP;
	if (attr.kind == KDSM_LOCK_RMA_RW)
		attr.settings.mask |= run->round.settings.mask &
				      (KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W);
	if (run->round.benchmark->alone)
		ret = lock_create_afar(&run->run, &attr, run->number, run->run.target, &run->lock);
	else
		ret = kdsm_lock_create(run->run.region, NULL, run->number, &attr, &run->lock);
	return ret ? complain(options, "node %u: a lock of kind %s: %s", run->run.node,
			      lock_name_of(attr.kind), kdsm_error(ret)) : 0;
}

/*
 * Set T_L after opening, because only the open lock shows its number of levels. The last T_L
 * of the command line also holds for all further levels.
 */
static int set_levels(struct lock_run *run)
{
	struct kdsm_lock_settings settings = run->round.settings;
	const uint32_t all = KDSM_LOCK_SET_T_L(KDSM_LOCK_LEVELS + 1) - KDSM_LOCK_SET_T_L(2);
	unsigned int level, levels;
	int ret;

	if (!(settings.mask & all) || run->round.kind == KDSM_LOCK_DMCS || !run->lock)
		return 0;
	levels = kdsm_lock_levels(run->lock);
	if (settings.mask & KDSM_LOCK_SET_T_L(levels + 1) && levels < KDSM_LOCK_LEVELS)
		return complain(run->run.options, "a lock has %u levels here, so --t-l takes %u numbers at most",
				levels, levels - 1);
	if (!run->run.measures)
		return 0;
	settings.mask = 0;
	for (level = 2; level <= levels; level++)
		settings.mask |= KDSM_LOCK_SET_T_L(level);
	ret = kdsm_lock_set(run->lock, &settings);
	return ret ? complain(run->run.options, "T_L: %s", kdsm_error(ret)) : 0;
}

/* ---- all nodes ---- */

static int gather(struct lock_run *run, struct lock_totals *all)
{
	const struct run *r = &run->run;
	struct lock_totals one;
	unsigned int node;
	int ret = 0;

	memset(all, 0, sizeof(*all));
	for (node = 0; node < r->nodes && !ret; node++) {
		ret = kdsm_get(r->region, 0, lock_totals_offset(node), &one, sizeof(one));
		if (!ret)
			lock_totals_add(all, &one);
		if (!ret && one.error)
			return complain(r->options, "node %u: %s with lock %u: %s", node,
					run->round.benchmark->name, run->number,
					kdsm_strerror(one.error));
	}
	return ret ? complain(r->options, "totals: %s", kdsm_error(ret)) : 0;
}

static int put_totals(struct lock_run *run, const struct lock_totals *totals)
{
	struct run *r = &run->run;
	int ret = kdsm_put(r->region, 0, lock_totals_offset(r->node), totals, sizeof(*totals));

	if (ret)
		return complain(r->options, "node %u: totals: %s", r->node, kdsm_error(ret));
	return run_meet(r);
}

static int run_and_gather(struct lock_run *run, struct lock_worker *workers,
			  struct lock_totals *all)
{
	struct run *r = &run->run;
	bool alone = run->round.benchmark->alone;
	struct lock_totals totals = { .locks = 0 };
	int ret;

	if (!alone || r->node == r->target)
		totals.error = -lock_threads_run(run, workers, alone ? 1 : run->round.threads,
						 &totals);
	ret = put_totals(run, &totals);
	if (!ret && r->measures)
		ret = gather(run, all);
	if (!ret && r->measures)
		ret = lock_verify(run, all);
	return ret;
}

int lock_round(struct lock_run *run, struct lock_worker *workers, struct lock_totals *all)
{
	struct run *r = &run->run;
	int ret;

	run->freed = 0;
	ret = lock_open(run);
	if (!ret)
		ret = set_levels(run);
	if (!ret && r->measures)
		lock_clear(r);
	if (!ret)
		ret = run_meet(r);
	if (!ret)
		ret = run_and_gather(run, workers, all);
	/* Read back the settings that were in force, including defaults. */
	memset(&run->info, 0, sizeof(run->info));
	if (!ret && run->lock)
		ret = kdsm_lock_info(run->lock, &run->info);
	if (!ret)
		ret = run_meet(r);	/* node 0 has read its totals and data */
	kdsm_lock_close(run->lock);
	run->lock = NULL;
	/* All nodes skip the same numbers, whichever locks they have used. */
	run->number += run->round.benchmark->alone ? r->nodes : 1;
	return ret;
}
