// SPDX-License-Identifier: GPL-2.0
/*
 * What nodes do with a lock: they queue, wait, hold it, keep it, hand it over; and
 * what has to be true of it: one holder at a time, in the order of tickets, and
 * everybody gets it.
 */
#include <stdio.h>

#include "lock.h"

static struct node {
	struct kdsm_tree tree;
	char location[24];
	struct sim_queue wait;
	bool woken;
	u32 dead;			/* KDSM_BATON_DEAD: nobody here has been told yet */
	const struct kdsm_queue *unheard;
	bool had[KDSM_LOCK_LEVELS];	/* by level: it has the queue, and that was seen */
	u64 since[KDSM_LOCK_LEVELS];	/* passed when it had queued there, plus 1 */
	unsigned int bypass[KDSM_LOCK_LEVELS];	/* by how many more it may have to wait */
} nodes[LOCK_NODES];

static struct kdsm_topology *topology;
/* By home and level: the ticket that had it last. */
static u32 last[LOCK_NODES][KDSM_LOCK_LEVELS];
static u32 waits[1 << 18];
static unsigned int waits_count;
static int holder;		/* -1: nobody */
static int before;		/* who had it last */
static int lost_by;		/* who had it and was given up last */
static unsigned int active;	/* nodes that are not done */
static unsigned int left;	/* nodes that have left it for good */
/*
 * By home and level: those that queue, but it may be that nobody has heard of it; and holds
 * by the element when there were none, but those of a lock that was idle at the node.
 */
static unsigned int unheard[LOCK_NODES][KDSM_LOCK_LEVELS];
static u64 passed[LOCK_NODES][KDSM_LOCK_LEVELS];

/* Who has that has the lock. */
struct kdsm_queue *lock_queue(unsigned int node)
{
	return kdsm_tree_root(&nodes[node].tree);
}

struct kdsm_tree *lock_tree(unsigned int node)
{
	return &nodes[node].tree;
}

static void wake(struct kdsm_queue *queue)
{
	struct node *node = queue->owner;

	node->woken = true;
	sim_wake(&node->wait);
}

static void missed(struct kdsm_queue *queue, unsigned int node, bool stuck)
{
	(void)queue;
	lock_missed(node, stuck);
}

static const struct kdsm_queue_ops ops = {
	.granted = wake,
	.wanted = wake,
	.missed = missed,
};

void lock_wake(unsigned int node)
{
	wake(lock_queue(node));
}

bool lock_nodes_active(void)
{
	return active || left < lock.nodes;
}

/* Something gets lost. */
static bool loses(void)
{
	return sim.error || lock.deaths || lock.home_dies;
}

/* It is dead, or what it wants cannot be had. */
static bool is_over(const struct node *node)
{
	return lock_is_dead(node - nodes) || lock_is_dead(lock.home);
}

/* The home may have given it up. */
static void look_out(struct node *node)
{
	bool had;

	if (lock_broken != LOCK_BREAK_OUT && kdsm_tree_is_out(&node->tree, &had))
		sim_event(-1, "is out, and had it: %u", had);
}

/* Of a lock that one who died had, and nobody has been told. */
static u32 flags(struct node *node)
{
	return lock_broken == LOCK_BREAK_FREE ? 0 : node->dead;
}

/* Until woken, or for that long. */
static void node_wait(struct node *node, u64 us)
{
	u64 end = sim_now() + us;

	for (;;) {
		sim_prepare(&node->wait);
		if (node->woken || !sim_block(&node->wait, end))
			break;
	}
	sim_cancel(&node->wait);
	node->woken = false;
}

static u64 operations(const struct node *node)
{
	struct kdsm_queue_stats stats;

	kdsm_tree_stats(&node->tree, &stats);
	return stats.atomics + stats.puts + stats.gets + stats.messages;
}

static unsigned int number(const struct node *node)
{
	return node - nodes;
}

/* ---- checks ---- */

/* Nobody can tell whether it used it, so who has it next is told. */
void lock_gives_up(unsigned int node)
{
	if (holder == (int)node) {
		holder = -1;
		lost_by = node;
		lock_must_tell = true;
		lock_may_tell = true;
	}
}

/* It has queue i now. What is lost makes others wait. */
static void check_bypass(struct node *node, unsigned int i)
{
	const struct kdsm_queue *queue = node->tree.queues[i];
	u64 others = passed[queue->home][queue->level] + 1 - node->since[i];

	if (node->since[i] && !sim.error && others > node->bypass[i])
		sim_fail(-1, "level %u: node %u waited for %llu others, not %u", queue->level,
			 number(node), others, node->bypass[i]);
	node->since[i] = 0;
}

/* Each queue is served in the order of its tickets, and what came along has the last one. */
static enum kdsm_queue_state look(struct node *node)
{
	enum kdsm_queue_state state = kdsm_tree_state(&node->tree);
	bool regained = node->tree.regained;
	unsigned int i;

	node->tree.regained = false;
	for (i = 0; i < node->tree.count; i++) {
		struct kdsm_queue *queue = node->tree.queues[i];
		u32 *ticket = &last[queue->home][queue->level];
		bool held = kdsm_queue_state(queue) == KDSM_QUEUE_HELD;

		if (held && (!node->had[i] || regained)) {
			node->had[i] = true;
			node->dead = kdsm_tree_flags(&node->tree);
			if (lock.deaths || lock.home_dies)
				continue;
			if (queue->ticket != ((*ticket + !queue->moved) & KDSM_TICKET_MASK))
				sim_fail(-1, "level %u: ticket %u is served after %u", queue->level,
					 queue->ticket, *ticket);
			*ticket = queue->ticket;
			check_bypass(node, i);
			if (lock_broken == LOCK_BREAK_ALONE)
				queue->moved = false;
		}
		node->had[i] = held;
	}
	return state;
}

void lock_renewed(unsigned int home, unsigned int level, u32 ticket)
{
	last[home][level] = ticket;
}

static void count_crossing(unsigned int from, unsigned int to)
{
	unsigned int level = 2;

	for (; level < topology->levels; level++) {
		const u16 *elements = kdsm_topology_level(topology, level);

		if (elements[from] != elements[to])
			break;
	}
	lock_counts.crossed[level - 1]++;
}

static void hold(struct node *node, bool idle)
{
	unsigned int me = number(node), i;
	enum kdsm_queue_state state;

	/* One that does not know yet that it has lost it. */
	if (look(node) != KDSM_QUEUE_HELD || !lock_is_tied(me) || is_over(node))
		return;
	if (node->dead) {
		if (!lock_may_tell)
			sim_fail(-1, "node %u is told of a death, but nobody died who had it", me);
		/* Who waited has given up. */
		if (sim_chance(3))
			return;
		node->dead = 0;
		lock_must_tell = false;
		lock_may_tell = sim.error || lock.away_too;
	} else if (lock_must_tell) {
		sim_fail(-1, "node %u is not told that who had it has died", me);
	}
	if (holder >= 0)
		sim_fail(-1, "node %u has the lock, and so has node %d", me, holder);
	if (before >= 0 && before != (int)me)
		count_crossing(before, me);
	before = me;
	holder = me;
	lock_counts.holds++;
	for (i = 0; i < node->tree.count; i++) {
		const struct kdsm_queue *queue = node->tree.queues[i];

		passed[queue->home][queue->level] +=
			!idle && !unheard[queue->home][queue->level];
	}
	sim_event(-1, "has the lock");
	sim_sleep(sim_below(lock.hold + 1));
	state = look(node);
	if (lock_is_dead(me))
		return;
	if (!lock_is_tied(me)) {
		/* It was in order when it ended; it may be told all the same. */
		if (lost_by == (int)me)
			lock_must_tell = false;
		return;
	}
	if (holder != (int)me || state != KDSM_QUEUE_HELD)
		sim_fail(-1, "node %u has lost the lock", me);
	holder = -1;
}

void sim_check_step(void)
{
}

/* ---- acquiring ---- */

/* queue: nobody may have heard that it waits there; NULL: they have. */
static void hear(struct node *node, const struct kdsm_queue *queue)
{
	if (node->unheard)
		unheard[node->unheard->home][node->unheard->level]--;
	if (queue)
		unheard[queue->home][queue->level]++;
	node->unheard = queue;
}

static int enter(struct node *node)
{
	const struct kdsm_queue *queue = node->tree.queues[node->tree.at];
	u64 ops = operations(node);
	int err;

	hear(node, queue);
	err = kdsm_tree_enter(&node->tree);
	if (kdsm_queue_state(queue) != KDSM_QUEUE_WAITING || queue->published)
		hear(node, NULL);
	node->since[node->tree.at] = passed[queue->home][queue->level] + 1;
	ops = operations(node) - ops;
	lock_counts.enters++;
	lock_counts.enter_ops += ops;
	if (ops > lock_counts.enter_max)
		lock_counts.enter_max = ops;
	return err;
}

static void leave(struct node *node, bool keep);

static bool acquire(struct node *node)
{
	struct kdsm_tree *tree = &node->tree;
	bool try = sim_chance(lock.try);
	unsigned int polls = 0;
	int err;

	for (;;) {
		if (is_over(node))
			return false;
		look_out(node);
		switch (look(node)) {
		case KDSM_QUEUE_NONE:
		case KDSM_QUEUE_PARTLY:
			if (try) {
				lock_counts.tries++;
				err = kdsm_tree_try(tree);
				lock_counts.busy += err == -EBUSY;
				if (err == -EBUSY) {
					if (look(node) == KDSM_QUEUE_PARTLY)
						leave(node, false);
					return false;
				}
			} else {
				err = enter(node);
			}
			if (err && loses())
				sim_sleep(100);
			else if (err)
				sim_fail(-1, "nothing is lost, but queueing gave %d", err);
			if (lock_broken == LOCK_BREAK_DOUBT &&
			    tree->queues[tree->at]->state == KDSM_QUEUE_DOUBT)
				tree->queues[tree->at]->state = KDSM_QUEUE_NONE;
			break;
		case KDSM_QUEUE_HELD:
			hear(node, NULL);
			return true;
		default:
			/* Of many, each is a small part of what is to be seen to. */
			node_wait(node, max(2000, 100 * lock.nodes));
			/* If nothing is lost everybody is found without a search. */
			kdsm_tree_poll(tree, loses() && ++polls % 64 == 0);
			if (node->unheard && node->unheard->published)
				hear(node, NULL);
			break;
		}
	}
}

/* No thread wants it here. */
static void leave(struct node *node, bool keep)
{
	struct kdsm_tree *tree = &node->tree;
	u64 before = operations(node);
	struct kdsm_queue_stats stats;
	unsigned int i;
	u64 handed;
	int err;

	kdsm_tree_stats(tree, &stats);
	handed = stats.handed;
	look_out(node);
	while ((err = kdsm_tree_leave(tree, keep || flags(node), flags(node)))) {
		/* It came again, and has to be seen to first. */
		if (is_over(node) || tree->regained)
			return;
		look_out(node);
		if (!loses() && err != -EAGAIN)
			sim_fail(-1, "nothing is lost, but leaving gave %d", err);
		for (i = 0; i < tree->count; i++) {
			if (lock_broken == LOCK_BREAK_TWICE)
				tree->queues[i]->uncertain = false;
			/* It is free, or another's; and what is above? */
			if (lock_broken == LOCK_BREAK_PARENT && i && !tree->queues[0]->state)
				tree->queues[i]->state = KDSM_QUEUE_NONE;
		}
		sim_sleep(100);
	}
	look(node);
	kdsm_tree_stats(tree, &stats);
	lock_counts.leaves++;
	lock_counts.leave_ops += operations(node) - before;
	lock_counts.hands += stats.handed - handed;
}

static bool can_idle(struct node *node)
{
	struct kdsm_tree *tree = &node->tree;

	if (lock_broken == LOCK_BREAK_KEEP)
		return !kdsm_tree_is_wanted(tree);
	if (lock_broken == LOCK_BREAK_IDLE)
		return kdsm_queue_can_idle(tree->queues[0]);
	return kdsm_tree_can_idle(tree);
}

static void release(struct node *node, bool keep)
{
	while (look(node) != KDSM_QUEUE_NONE && !is_over(node) &&
	       !((keep || flags(node)) && can_idle(node)))
		leave(node, keep);
}

/* Nothing to do but to serve. */
static void idle(struct node *node, u64 us)
{
	u64 end = sim_now() + us;

	while (sim_now() < end && !is_over(node)) {
		node_wait(node, end - sim_now());
		look_out(node);
		if (look(node) == KDSM_QUEUE_HELD && !can_idle(node))
			release(node, sim_chance(2));
	}
}

static void run(void *arg)
{
	struct node *node = arg;
	unsigned int i, again;
	bool was_idle;
	u64 begin;

	/* As when it is opened. */
	kdsm_tree_meet(&node->tree);
	sim_sleep(sim_below(lock.away + 1));
	for (i = 0; i < lock.rounds && !is_over(node); i++) {
		was_idle = look(node) == KDSM_QUEUE_HELD;
		begin = sim_now();
		if (acquire(node)) {
			if (waits_count < sizeof(waits) / sizeof(waits[0]))
				waits[waits_count++] = sim_now() - begin;
			if (!was_idle)
				kdsm_tree_count(&node->tree, lock.wanting);
			hold(node, was_idle);
			/* It is passed on among the threads of the node. */
			for (again = sim_below(lock.check + 1); again; again--) {
				if (lock_broken == LOCK_BREAK_BATCH)
					node->tree.batch = KDSM_LOCK_T_L_MOST;
				if (kdsm_tree_may_pass(&node->tree, lock.wanting))
					hold(node, false);
			}
			for (again = sim_below(lock.again + 1); again; again--)
				if (can_idle(node))
					hold(node, true);
			release(node, sim_chance(lock.keep));
		}
		idle(node, sim_below(lock.away + 1));
	}
	active--;
	/* Who is done may have it still. */
	while ((active || lock_deaths_pending()) && !is_over(node))
		idle(node, 10000);
	node->dead = 0;
	release(node, false);
	left++;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

void lock_waits_count(void)
{
	qsort(waits, waits_count, sizeof(waits[0]), compare);
	if (waits_count) {
		lock_counts.median = waits[waits_count / 2];
		lock_counts.longest = waits[waits_count - 1];
	}
}

/* Where each is, and the tree that follows from it. */
static void place(void)
{
	unsigned int i, all = lock.parts[0] * lock.parts[1], part;

	for (i = 0; i < lock.nodes; i++) {
		part = lock.mixed ? sim_below(all) : i * all / lock.nodes;
		if (all > 1)
			snprintf(nodes[i].location, sizeof(nodes[i].location),
				 lock.parts[1] > 1 ? "rack%u/chassis%u" : "rack%u",
				 part / lock.parts[1], part);
		/* Some are not in any of them. */
		if (lock.mixed && sim_chance(10))
			nodes[i].location[0] = 0;
	}
	topology = kdsm_topology_create(nodes[0].location, sizeof(nodes[0]), lock.nodes);
}

/* How often a thread of a part may have the lock while others wait in that queue. */
static unsigned int most(const struct kdsm_tree *tree, unsigned int i)
{
	unsigned int level = tree->queues[i]->level, turn = lock.wanting, part = 0, node, other;
	const u16 *parts = i ? tree->queues[i - 1]->elements : NULL;
	u32 t_l = lock.t_l[level];

	if (t_l != KDSM_LOCK_T_L_AUTO)
		return t_l;
	/* Parts differ in where they have queues; none has it more often than this. */
	for (t_l = 0; level < KDSM_LOCK_LEVELS; level++)
		if (lock.t_l[level] != KDSM_LOCK_T_L_AUTO)
			t_l = max(t_l, lock.t_l[level]);
	turn = max(turn, t_l);
	for (node = 0; parts && node < lock.nodes; node++) {
		unsigned int size = 0;

		for (other = 0; other < lock.nodes; other++)
			size += parts[other] == parts[node];
		part = max(part, size);
	}
	return turn * clamp_t(unsigned int, part, 1, KDSM_LOCK_T_L_MOST);
}

/*
 * In queue i: the others that queue there, each of which has the lock as often as its
 * level lets it.
 */
static unsigned int bypass(const struct kdsm_tree *tree, unsigned int i)
{
	const u16 *parts = i ? tree->queues[i - 1]->elements : NULL;
	const struct kdsm_queue *queue = tree->queues[i];
	unsigned int node, others = 0;

	for (node = 0; node < lock.nodes; node++)
		others += kdsm_queue_is_peer(queue, node) &&
			  (!parts || (parts[node] == node && parts[queue->node] != node));
	return others * most(tree, i);
}

void lock_nodes_start(void)
{
	struct kdsm_queue *model = calloc(1, sizeof(*model));
	unsigned int i, j;

	holder = -1;
	before = -1;
	memset(passed, 0, sizeof(passed));
	memset(unheard, 0, sizeof(unheard));
	active = lock.nodes;
	left = 0;
	memset(nodes, 0, sizeof(nodes));
	place();
	for (i = 0; i < lock.nodes; i++) {
		struct kdsm_tree *tree = &nodes[i].tree;

		tree->topology = topology;
		tree->levels = lock.flat ? 2 : topology->levels;
		tree->t_l = lock.t_l;
		model->ops = &ops;
		model->owner = &nodes[i];
		model->region = 7;
		model->number = 3;
		model->recovers = true;
		model->node = i;
		model->nodes = lock.nodes;
		if (kdsm_tree_create(tree, model, lock.home, 0))
			sim_fail(-1, "node %u has no tree", i);
		for (j = 0; j < tree->count; j++) {
			nodes[i].bypass[j] = bypass(tree, j);
			if (lock_broken == LOCK_BREAK_TURNS)
				tree->sizes[j] = KDSM_LOCK_T_L_MOST;
		}
		for (j = 0; j < KDSM_LOCK_LEVELS; j++)
			last[i][j] = (lock.ticket - 1) & KDSM_TICKET_MASK;
		sim_spawn(i, "node", 0, run, &nodes[i]);
	}
	free(model);
}

void lock_nodes_stop(void)
{
	unsigned int i, j;

	for (i = 0; i < lock.nodes && !lock_is_dead(lock.home); i++) {
		struct kdsm_tree *tree = &nodes[i].tree;

		for (j = 0; j < tree->count; j++) {
			if (lock_queue(lock.home)->flat && j < tree->count - 1)
				continue;
			if (lock_word(tree->queues[j]) << 31)
				sim_fail(-1, "all have left, but the word of level %u is %016llx",
					 tree->queues[j]->level, lock_word(tree->queues[j]));
			if (kdsm_queue_state(tree->queues[j]) != KDSM_QUEUE_NONE &&
			    !lock_is_dead(i))
				sim_fail(-1, "all have left, but node %u is in state %u", i,
					 tree->queues[j]->state);
		}
		lock_counts.operations += operations(&nodes[i]);
	}
	for (i = 0; i < lock.nodes; i++)
		kdsm_tree_destroy(&nodes[i].tree);
	kvfree(topology);
}

/* How they stand, for who looks for the reason of a failure. */
void lock_nodes_tell(void)
{
	unsigned int i, j;

	for (i = 0; i < lock.nodes; i++) {
		const struct kdsm_tree *tree = &nodes[i].tree;

		printf("node %u: %s\n", i, nodes[i].location);
		for (j = 0; j < tree->count; j++) {
			const struct kdsm_queue *queue = tree->queues[j];

			printf("  %u: word %016llx state %u ticket %u held %u told %u tail %u\n",
			       queue->level, lock_word(queue), queue->state, queue->ticket,
			       queue->held, queue->told, queue->tail);
			printf("    waiters %u rest %u id %u debt %u passes %u moved %u\n",
			       queue->waiters, queue->rest, queue->baton.id, queue->baton.debt,
			       queue->passes, queue->moved);
		}
	}
}
