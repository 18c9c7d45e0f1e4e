// SPDX-License-Identifier: GPL-2.0
/*
 * Threads of programs that lock, hold and unlock, the turns that they take at a lock that is at
 * their node, and the invariants: exclusion, bounded passing over, every thread gets the lock.
 */
#include <stdio.h>

#include "sim.h"

struct waiter {
	struct waiter *next;
	bool has;
	u32 stay;		/* of the node, when it got the lock */
};

/* A node, as the checks see it */
static struct view {
	struct waiter *first;
	unsigned int writing, reading;	/* threads inside, unless the node was given up since */
	u32 given_up;
} *views;

static unsigned int active;		/* threads that are not done */
static unsigned int writing, reading;	/* of all nodes */
static u64 end;				/* with costs */
static u32 waits[1 << 20];
static unsigned int wait_count;
u64 turns;

static bool is_over(const struct node *node)
{
	return is_dead(node->number) || is_dead(config.home);
}

bool threads_active(void)
{
	return active;
}

/* ---- bounded passing over ---- */

/* The most turns that a part of this level takes while one waits in it, if it needs so many. */
static u64 bound_of(unsigned int level, u64 needed)
{
	u32 t_l = sim_broken == BREAK_ORDER ? 1 : home->thresholds.t_l[level];
	unsigned int parts = level == 1 ? config.racks : config.chassis;
	unsigned int size = level == 1 ? DIV_ROUND_UP(sim.nodes, config.racks) :
		DIV_ROUND_UP(DIV_ROUND_UP(sim.nodes, config.racks), config.chassis);
	u64 most = t_l == KDSM_LOCK_T_L_AUTO ? size : t_l;
	/* A run of an automatic element serves all of its nodes that wait. */
	u64 least = t_l == KDSM_LOCK_T_L_AUTO ? size : 1;

	return needed + (DIV_ROUND_UP(needed, least) + 1) * parts * most;
}

static u64 passing_bound(void)
{
	unsigned int levels = home->order.levels;
	u64 needed = sim.nodes;

	if (levels > 3)
		needed = bound_of(2, needed);
	if (levels > 2)
		needed = bound_of(1, needed);
	return needed + sim.nodes;
}

void node_queued(unsigned int node)
{
	/* HAND may have been faster than the end of the handler. */
	if (!kdsm_turn_is_here(&nodes[node].turn))
		nodes[node].since = turns + 1;
}

static void check_passed(struct node *node)
{
	u64 others;

	if (!node->since)
		return;
	others = turns > node->since ? turns - node->since : 0;
	node->since = 0;
	counts.passed = max(counts.passed, others);
	if (!sim.error && !config.deaths && !config.tunes && others > passing_bound())
		sim_fail(SIM_NONE, "node %u waited for %llu turns, and the bound is %llu",
			 node->number, others, passing_bound());
}

/* ---- inside ---- */

static void check_writer(struct node *node)
{
	if (is_given_up(node->number)) {
		/* It may end before anybody notices. */
		must_tell &= !(node->turn.flags & KDSM_TURN_DEAD);
		return;
	}
	if (writing || reading)
		sim_fail(SIM_NONE, "node %u writes, and %u write and %u read", node->number,
			 writing, reading);
	if (node->turn.flags & KDSM_TURN_DEAD) {
		if (!may_tell)
			sim_fail(SIM_NONE, "node %u learns of a death, but nobody has died",
				 node->number);
		must_tell = false;
	} else if (must_tell) {
		sim_fail(SIM_NONE, "node %u does not learn that the last holder has died",
			 node->number);
	}
	check_passed(node);
}

static void check_reader(const struct node *node)
{
	if (!is_given_up(node->number) && writing)
		sim_fail(SIM_NONE, "node %u reads, and another thread writes", node->number);
}

void holder_lost(unsigned int node)
{
	struct view *view = &views[node];

	if (view->writing) {
		must_tell = true;
		lost_by = node;
	}
	may_tell = true;
	writing -= view->writing;
	reading -= view->reading;
	view->writing = 0;
	view->reading = 0;
	view->given_up++;
}

/* ---- turns on a node ---- */

static void wake(struct node *node)
{
	sim_wake(&node->queue);
}

static void step_writers(struct node *node)
{
	struct view *view = &views[node->number];
	struct waiter *first = view->first;
	bool keep = config.keep && !sim_chance(config.keep);

	if (node->taken || node->loses)
		return;
	if (!kdsm_turn_is_here(&node->turn)) {
		if (first)
			kdsm_turn_want(&node->turn, node->writers);
		else
			kdsm_turn_drop(&node->turn);
		node_wake(node, 0);
		return;
	}
	if (first && (kdsm_turn_may_pass(&node->turn) || node->greedy)) {
		if (!kdsm_turn_is_here(&node->turn) || view->first != first || node->taken ||
		    node->loses) {
			node->again = true;
			return;
		}
		node->taken = true;
		view->first = first->next;
		node->writers--;
		first->has = true;
		first->stay = node->stay;
		wake(node);
	} else if (kdsm_turn_done(&node->turn, node->turn.flags, keep)) {
		node_wake(node, 0);
	}
}

static void step_readers(struct node *node)
{
	struct kdsm_pass *pass = &node->pass;

	switch (pass->state) {
	case KDSM_PASS_NONE:
		if (!node->waiting)
			return;
		kdsm_pass_want(pass);
		node_wake(node, 1);
		break;
	case KDSM_PASS_READING:
		wake(node);
		break;
	case KDSM_PASS_LAST:
		if (!pass->once)
			node->chances = 0;
		else if (node->once != pass->request)
			node->chances = node->waiting;
		node->once = pass->request;
		if (node->chances > node->waiting)
			node->chances = node->waiting;
		if (node->readers || node->chances) {
			wake(node);
			return;
		}
		kdsm_pass_leave(pass);
		node_wake(node, 1);
		break;
	default:
		wake(node);
		break;
	}
}

void node_step(struct node *node)
{
	if (node->stepping) {
		node->again = true;
		return;
	}
	node->stepping = true;
	do {
		node->again = false;
		step_writers(node);
		if (config.rw && !node->loses)
			step_readers(node);
	} while (node->again);
	node->stepping = false;
}

/* ---- a thread ---- */

static bool wait_a_while(struct node *node)
{
	sim_prepare(&node->queue);
	return sim_block(&node->queue, sim_now() + 2000 * (sim_cost.units ?: 1));
}

/* Lock without waiting for another thread. node->stepping is the lock of the line of threads. */
static bool try_lock(struct node *node)
{
	struct kdsm_turn *turn = &node->turn;
	u32 stay = node->stay;
	bool has;

	if (node->stepping || node->taken || node->loses || views[node->number].first)
		return false;
	node->stepping = true;
	if (!kdsm_turn_is_here(turn)) {
		kdsm_turn_want(turn, 0);
		node_advance(node);
	}
	has = kdsm_turn_is_here(turn) && kdsm_turn_may_pass(turn) && kdsm_turn_is_here(turn) &&
	      !node->loses && node->stay == stay;
	node->taken |= has;
	node->stepping = false;
	node_step(node);
	return has && node->stay == stay;
}

static void unlink_waiter(struct node *node, struct waiter *waiter)
{
	struct waiter **at = &views[node->number].first;

	for (; *at != waiter; at = &(*at)->next)
		;
	*at = waiter->next;
	node->writers--;
}

/* Returns whether the thread has the lock. */
static bool lock(struct node *node)
{
	u64 until = sim_chance(config.timed) ? sim_now() + sim_below(1000) : U64_MAX;
	struct waiter waiter = { }, **at = &views[node->number].first;

	if (sim_chance(config.try))
		return try_lock(node);
	while (*at)
		at = &(*at)->next;
	*at = &waiter;
	node->writers++;
	node_step(node);
	while (!waiter.has) {
		wait_a_while(node);
		if (waiter.has)
			break;
		if (sim_now() >= until || is_over(node) || node->turn.state == KDSM_TURN_LOST) {
			counts.timed_out += sim_now() >= until;
			counts.lost += node->turn.state == KDSM_TURN_LOST;
			unlink_waiter(node, &waiter);
			return false;
		}
	}
	/* The node may have lost it again before the thread woke. */
	return waiter.stay == node->stay;
}

static void spend(u64 us)
{
	sim_sleep(us * (sim_cost.units ?: 1));
}

/* Of threads that had to wait */
static void wait_counted(u64 since)
{
	if (sim_now() != since && wait_count < sizeof(waits) / sizeof(waits[0]))
		waits[wait_count++] = (sim_now() - since) * (sim_cost.units ? 1000 : 1) /
				      (sim_cost.units ?: 1);
}

static void write_inside(struct node *node)
{
	struct view *view = &views[node->number];
	u32 given_up = view->given_up, stay = node->stay;
	bool counted = !is_given_up(node->number), dies;

	/* No scheduling point between lock() and here, except for a node that was given up. */
	check_writer(node);
	writing += counted;
	view->writing += counted;
	dies = sim_chance(config.die);
	sim_event(SIM_NONE, dies ? "writes, and dies" : "writes");
	spend(config.hold ? 1 + sim_below(config.hold) : 0);
	if (counted && view->given_up == given_up) {
		if (writing != 1 || reading)
			sim_fail(SIM_NONE, "node %u writes, and now %u write and %u read",
				 node->number, writing, reading);
		writing--;
		view->writing--;
	}
	if (node->stay != stay)
		return;
	node->turn.flags = 0;
	if (dies) {
		counts.died++;
		if (counted && view->given_up == given_up) {
			must_tell = true;
			may_tell = true;
		}
		/* The node finds out some time later, because another thread waits. */
		sim_sleep(sim_below(500));
		if (node->stay != stay)
			return;
		node->turn.flags = sim_broken == BREAK_LOCAL ? 0 : KDSM_TURN_DEAD;
	}
	node->taken = false;
	node_step(node);
}

static void write_once(struct node *node)
{
	u64 since = sim_now();

	if (!lock(node))
		return;
	wait_counted(since);
	counts.locks++;
	write_inside(node);
}

static bool may_read(struct node *node)
{
	if (node->loses)
		return false;
	if (node->pass.state == KDSM_PASS_READING)
		return true;
	if (node->pass.state != KDSM_PASS_LAST || !node->chances ||
	    node->once != node->pass.request)
		return false;
	node->chances--;
	return true;
}

static void read_inside(struct node *node)
{
	struct view *view = &views[node->number];
	u32 given_up = view->given_up, stay = node->stay;
	bool counted = !is_given_up(node->number);

	check_reader(node);
	reading += counted;
	view->reading += counted;
	sim_event(SIM_NONE, "reads");
	spend(config.hold ? 1 + sim_below(config.hold) : 0);
	if (counted && view->given_up == given_up) {
		check_reader(node);
		reading--;
		view->reading--;
	}
	if (node->stay != stay)
		return;
	node->readers--;
	node_step(node);
}

static void read_once(struct node *node)
{
	u64 until = sim_chance(config.timed) ? sim_now() + sim_below(1000) : U64_MAX;
	u64 since = sim_now();

	node->waiting++;
	if (node->pass.state != KDSM_PASS_READING)
		node_step(node);
	while (!may_read(node)) {
		if (sim_now() >= until || is_over(node) || node->pass.state == KDSM_PASS_LOST) {
			node->waiting--;
			node_step(node);
			return;
		}
		wait_a_while(node);
	}
	node->waiting--;
	node->readers++;
	wait_counted(since);
	counts.reads++;
	read_inside(node);
}

static void thread_run(void *arg)
{
	struct node *node = arg;
	unsigned int i;

	for (i = 0; sim_cost.units ? sim_now() < end : i < config.rounds; i++) {
		spend(config.away ? sim_below(config.away + 1) : 0);
		if (sim_cost.units)
			sim_sleep((u64)config.local * sim_cost.units / 1000);
		if (is_over(node))
			break;
		if (config.rw && !sim_chance(config.share))
			read_once(node);
		else
			write_once(node);
	}
	if (--active)
		return;
	ended = true;
	for (i = 0; i < sim.nodes; i++) {
		node_wake(&nodes[i], 0);
		node_wake(&nodes[i], 1);
		node_wake(&nodes[i], 2);
		node_wake(&nodes[i], 3);
	}
}

/* ---- tuning ---- */

static u32 any_threshold(void)
{
	return sim_chance(3) ? KDSM_LOCK_T_L_AUTO : sim_between(1, 6);
}

static void tune_all(void)
{
	struct kdsm_thresholds *thresholds = &home->thresholds;
	unsigned int i;

	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		thresholds->t_l[i] = sim_broken == BREAK_ORDER && i + 1 < home->order.levels ?
			KDSM_LOCK_T_MAX :
								 any_threshold();
	thresholds->t_r = sim_chance(2) ? 1 : sim_between(1, 4);
	thresholds->t_w = sim_chance(2) ? 1 : sim_between(1, 4);
	config.t_dc = sim_between(1, sim.nodes);
}

static void tuner_run(void *arg)
{
	unsigned int i;

	for (i = 0; i < config.tunes && !ended; i++) {
		sim_sleep(sim_below(2000));
		sim_event(SIM_NONE, "changes all thresholds");
		tune_all();
	}
}

/* ---- start and stop ---- */

void threads_start(void)
{
	unsigned int i, j, count;

	views = calloc(sim.nodes, sizeof(*views));
	writing = 0;
	reading = 0;
	active = 0;
	end = (!config.rw ? 20000 : sim.nodes > 256 ? 3000 : 2000) * (u64)sim_cost.units;
	for (i = 0; i < sim.nodes; i++) {
		count = sim_cost.units ? config.threads : sim_between(1, config.threads);
		for (j = 0; j < count; j++) {
			active++;
			sim_spawn(i, "thread", 0, thread_run, &nodes[i]);
		}
	}
	if (!sim_cost.units) {
		tune_all();
		sim_spawn(config.home, "tuner", 0, tuner_run, NULL);
	}
}

void threads_stop(void)
{
	counts.time += sim_cost.units ? sim_now() * 1000 / sim_cost.units : sim_now();
	if (sim_cost.units) {
		counts.busy += sim_cost_busy(config.home) * 1000 / sim_cost.units;
		waits_count();
	}
	free(views);
}

static int compare(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

void waits_count(void)
{
	if (!wait_count)
		return;
	qsort(waits, wait_count, sizeof(waits[0]), compare);
	counts.wait_median = waits[wait_count / 2];
	counts.wait_longest = waits[wait_count - 1];
}
