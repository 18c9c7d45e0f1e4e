// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that queue, wait, hold the lock, keep it and hand it over, and the invariants: the
 * lock has one holder at a time, a queue serves tickets in order, and every node gets the
 * lock.
 */
#include <stdio.h>

#include "sim.h"

/* One queue, as the checks see it */
struct element {
	u32 last;		/* ticket of the last holder */
	u64 passed;		/* holds of a lock that was not idle, while unheard was 0 */
	unsigned int unheard;	/* waiters that perhaps no other node knows of */
};

static struct node {
	struct kdsm_tree tree;
	char location[24];
	struct sim_queue wait;
	bool woken;
	u32 dead;			/* KDSM_BATON_DEAD until a holder of this node was told */
	const struct kdsm_queue *unheard;	/* the node waits there; see struct element */
	struct element elements[KDSM_LOCK_LEVELS];	/* queues whose home it is, by level */
	/* by index in tree.queues: */
	bool had[KDSM_LOCK_LEVELS];	/* the node held the queue when look() last ran */
	u64 since[KDSM_LOCK_LEVELS];	/* passed when the node queued, plus 1; 0: not waiting */
	unsigned int bypass[KDSM_LOCK_LEVELS];	/* most holds of others while the node waits */
} *nodes;

static struct kdsm_topology *topology;
static u32 waits[1 << 18];	/* from the wish to the hold, of all seeds, in us */
static unsigned int wait_count;
static int holder;		/* -1: none */
static int before;		/* the last holder; -1: none */
static int lost_by;		/* the last holder that was given up */
static unsigned int active;	/* nodes that are not done */
static unsigned int left;	/* nodes that have left the lock for good */

struct kdsm_queue *queue_of(unsigned int node)
{
	return kdsm_tree_root(&nodes[node].tree);
}

struct kdsm_tree *tree_of(unsigned int node)
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
	node_missed(node, stuck);
}

static const struct kdsm_queue_ops ops = {
	.granted = wake,
	.wanted = wake,
	.missed = missed,
};

void node_wake(unsigned int node)
{
	wake(queue_of(node));
}

bool nodes_active(void)
{
	return active || left < sim.nodes;
}

/* Whether the seed loses messages, operations or nodes */
static bool loses(void)
{
	return sim.error || config.deaths || config.home_dies;
}

/* Whether the node or the home is dead */
static bool is_over(const struct node *node)
{
	return is_dead(node - nodes) || is_dead(config.home);
}

/* Let the node notice that the home has given it up. */
static void look_out(struct node *node)
{
	bool had;

	if (sim_broken != BREAK_OUT && kdsm_tree_is_out(&node->tree, &had))
		sim_event(SIM_NONE, "is out, and had it: %u", had);
}

/* KDSM_BATON_DEAD if a holder has died and no later holder of this node was told; else 0. */
static u32 flags(struct node *node)
{
	return sim_broken == BREAK_FREE ? 0 : node->dead;
}

/* Wait until another fiber wakes the node, for this time at most. */
static void node_wait(struct node *node, u64 us)
{
	u64 end = sim_now() + us * (sim_cost.units ?: 1);

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

void holder_lost(unsigned int node)
{
	if (holder == (int)node) {
		holder = -1;
		lost_by = node;
		must_tell = true;
		may_tell = true;
	}
}

static struct element *element_of(const struct kdsm_queue *queue)
{
	return &nodes[queue->home].elements[queue->level];
}

/* The node holds queue i now. Check how many holds passed it; lost messages void the bound. */
static void check_bypass(struct node *node, unsigned int i)
{
	const struct kdsm_queue *queue = node->tree.queues[i];
	u64 others = element_of(queue)->passed + 1 - node->since[i];

	if (node->since[i] && !sim.error && others > node->bypass[i])
		sim_fail(SIM_NONE, "level %u: node %u waited for %llu holds, not %u",
			 queue->level, number(node), others, node->bypass[i]);
	node->since[i] = 0;
}

/*
 * Check that the queue serves tickets in order. A queue that moved along with a smaller one
 * keeps the last ticket.
 */
static void check_order(struct node *node, unsigned int i)
{
	struct kdsm_queue *queue = node->tree.queues[i];
	u32 *last = &element_of(queue)->last;

	if (queue->ticket != ((*last + !queue->moved) & KDSM_TICKET_MASK))
		sim_fail(SIM_NONE, "level %u: ticket %u is served after %u", queue->level,
			 queue->ticket, *last);
	*last = queue->ticket;
	check_bypass(node, i);
	if (sim_broken == BREAK_ALONE)
		queue->moved = false;
}

/* The state of the lock at the node. Checks the queues that the node holds since the last call. */
static enum kdsm_queue_state look(struct node *node)
{
	enum kdsm_queue_state state = kdsm_tree_state(&node->tree);
	bool regained = node->tree.regained;
	unsigned int i;

	node->tree.regained = false;
	for (i = 0; i < node->tree.count; i++) {
		bool held = kdsm_queue_state(node->tree.queues[i]) == KDSM_QUEUE_HELD;

		if (held && (!node->had[i] || regained)) {
			node->had[i] = true;
			node->dead = kdsm_tree_flags(&node->tree);
			if (config.deaths || config.home_dies)
				continue;
			check_order(node, i);
		}
		node->had[i] = held;
	}
	return state;
}

void ticket_renewed(unsigned int home, unsigned int level, u32 ticket)
{
	nodes[home].elements[level].last = ticket;
}

static void count_crossing(unsigned int from, unsigned int to)
{
	unsigned int level = 2;

	for (; level < topology->levels; level++) {
		const u16 *elements = kdsm_topology_level(topology, level);

		if (elements[from] != elements[to])
			break;
	}
	counts.crossed[level - 1]++;
}

/*
 * Check that this holder learned of a death exactly if there was one. False: the thread gives
 * the lock back and has not learned of it.
 */
static bool check_told(struct node *node)
{
	if (!node->dead) {
		if (must_tell)
			sim_fail(SIM_NONE, "node %u does not learn that the last holder has died",
				 number(node));
		return true;
	}
	if (!may_tell)
		sim_fail(SIM_NONE, "node %u learns of a death, but no holder has died",
			 number(node));
	/* In one case of three the thread that waited has given up. */
	if (sim_chance(3))
		return false;
	node->dead = 0;
	must_tell = false;
	may_tell = sim.error || config.returns;
	return true;
}

/* Count a hold. idle: the lock was idle at this node, so the hold needed no queue. */
static void count_hold(struct node *node, bool idle)
{
	unsigned int me = number(node), i;

	if (before >= 0 && before != (int)me)
		count_crossing(before, me);
	before = me;
	counts.holds++;
	for (i = 0; i < node->tree.count; i++) {
		struct element *element = element_of(node->tree.queues[i]);

		element->passed += !idle && !element->unheard;
	}
}

static void hold(struct node *node, bool idle)
{
	unsigned int me = number(node);
	enum kdsm_queue_state state;

	/* A node that is not tied has lost the lock, but does not know this yet. */
	if (look(node) != KDSM_QUEUE_HELD || !is_tied(me) || is_over(node))
		return;
	if (!check_told(node))
		return;
	if (holder >= 0)
		sim_fail(SIM_NONE, "nodes %u and %d have the lock", me, holder);
	holder = me;
	count_hold(node, idle);
	sim_event(SIM_NONE, "has the lock");
	sim_sleep(sim_below(config.hold + 1));
	state = look(node);
	if (is_dead(me))
		return;
	if (!is_tied(me)) {
		/* The hold has ended well, so the next holder need not be told. */
		if (lost_by == (int)me)
			must_tell = false;
		return;
	}
	if (holder != (int)me || state != KDSM_QUEUE_HELD)
		sim_fail(SIM_NONE, "node %u has lost the lock", me);
	holder = -1;
}

/* ---- acquiring ---- */

/* Note that perhaps no other node knows that the node waits in the queue; NULL: others know. */
static void set_unheard(struct node *node, const struct kdsm_queue *queue)
{
	if (node->unheard)
		element_of(node->unheard)->unheard--;
	if (queue)
		element_of(queue)->unheard++;
	node->unheard = queue;
}

static int enter(struct node *node)
{
	const struct kdsm_queue *queue = node->tree.queues[node->tree.at];
	u64 ops = operations(node);
	int err;

	set_unheard(node, queue);
	err = kdsm_tree_enter(&node->tree);
	if (kdsm_queue_state(queue) != KDSM_QUEUE_WAITING || queue->published)
		set_unheard(node, NULL);
	node->since[node->tree.at] = element_of(queue)->passed + 1;
	ops = operations(node) - ops;
	counts.enters++;
	counts.enter_operations += ops;
	if (ops > counts.enter_most)
		counts.enter_most = ops;
	return err;
}

static void leave(struct node *node, bool keep);

/* Try to take the lock without waiting. False: the lock is not free. */
static bool try(struct node *node, int *err)
{
	counts.tries++;
	*err = kdsm_tree_try(&node->tree);
	if (*err != -EBUSY)
		return true;
	counts.busy++;
	if (look(node) == KDSM_QUEUE_PARTLY)
		leave(node, false);
	return false;
}

static void check_entered(struct node *node, int err)
{
	struct kdsm_tree *tree = &node->tree;

	if (err && loses())
		sim_sleep(100);
	else if (err)
		sim_fail(SIM_NONE, "queueing gave %d, although nothing is lost", err);
	if (sim_broken == BREAK_DOUBT && tree->queues[tree->at]->state == KDSM_QUEUE_DOUBT)
		tree->queues[tree->at]->state = KDSM_QUEUE_NONE;
}

/* Wait, and let the protocol check the wait. *polls: number of calls for this acquisition. */
static void wait_and_poll(struct node *node, unsigned int *polls)
{
	/* With more nodes a waiter waits longer for the others' messages. */
	node_wait(node, max(2000, 100 * sim.nodes));
	/* A node has to search for its predecessor only if messages may be lost. */
	kdsm_tree_poll(&node->tree, loses() && ++*polls % 64 == 0);
	if (node->unheard && node->unheard->published)
		set_unheard(node, NULL);
}

/* Get the lock. False: the lock was not free, and the node only tried; or is_over(). */
static bool acquire(struct node *node)
{
	bool tries = sim_chance(config.try);
	unsigned int polls = 0;
	int err;

	for (;;) {
		if (is_over(node))
			return false;
		look_out(node);
		switch (look(node)) {
		case KDSM_QUEUE_NONE:
		case KDSM_QUEUE_PARTLY:
			if (!tries)
				err = enter(node);
			else if (!try(node, &err))
				return false;
			check_entered(node, err);
			break;
		case KDSM_QUEUE_HELD:
			set_unheard(node, NULL);
			return true;
		default:
			wait_and_poll(node, &polls);
			break;
		}
	}
}

/* Give the lock up, or hand it over, because no thread of this node wants it. */
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
		/* The node got the lock again, which look() must see first. */
		if (is_over(node) || tree->regained)
			return;
		look_out(node);
		if (!loses() && err != -EAGAIN)
			sim_fail(SIM_NONE, "leaving gave %d, although nothing is lost", err);
		for (i = 0; i < tree->count; i++) {
			if (sim_broken == BREAK_TWICE)
				tree->queues[i]->uncertain = false;
			if (sim_broken == BREAK_PARENT && i && !tree->queues[0]->state)
				tree->queues[i]->state = KDSM_QUEUE_NONE;
		}
		sim_sleep(100);
	}
	look(node);
	kdsm_tree_stats(tree, &stats);
	counts.leaves++;
	counts.leave_operations += operations(node) - before;
	counts.hand_overs += stats.handed - handed;
}

static bool can_idle(struct node *node)
{
	struct kdsm_tree *tree = &node->tree;

	if (sim_broken == BREAK_KEEP)
		return !kdsm_tree_is_wanted(tree);
	if (sim_broken == BREAK_IDLE)
		return kdsm_queue_can_idle(tree->queues[0]);
	return kdsm_tree_can_idle(tree);
}

static void release(struct node *node, bool keep)
{
	while (look(node) != KDSM_QUEUE_NONE && !is_over(node) &&
	       !((keep || flags(node)) && can_idle(node)))
		leave(node, keep);
}

/* Wait, and hand the lock over when another node wants it. */
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

/* Let the threads of a node that has got the lock use it, and release it. */
static void use(struct node *node, bool was_idle)
{
	unsigned int i;

	if (!was_idle)
		kdsm_tree_count(&node->tree, config.wanting);
	hold(node, was_idle);
	for (i = sim_below(config.check + 1); i; i--) {
		if (sim_broken == BREAK_BATCH)
			node->tree.batch = KDSM_LOCK_T_L_MOST;
		if (kdsm_tree_may_pass(&node->tree, config.wanting))
			hold(node, false);
	}
	for (i = sim_below(config.again + 1); i; i--)
		if (can_idle(node))
			hold(node, true);
	release(node, sim_chance(config.keep));
}

static void run(void *arg)
{
	struct node *node = arg;
	unsigned int i;
	bool was_idle;
	u64 begin;

	/* As a node does that opens the lock. */
	kdsm_tree_meet(&node->tree);
	sim_sleep(sim_below(config.away + 1));
	for (i = 0; i < config.rounds && !is_over(node); i++) {
		was_idle = look(node) == KDSM_QUEUE_HELD;
		begin = sim_now();
		if (acquire(node)) {
			if (wait_count < sizeof(waits) / sizeof(waits[0]))
				waits[wait_count++] = sim_now() - begin;
			use(node, was_idle);
		}
		idle(node, sim_below(config.away + 1));
	}
	if (!--active)
		counts.time += sim_now();
	/* A node that is done may still have the lock, and must hand it over. */
	while ((active || deaths_pending()) && !is_over(node))
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

void waits_count(void)
{
	qsort(waits, wait_count, sizeof(waits[0]), compare);
	if (wait_count) {
		counts.wait_median = waits[wait_count / 2];
		counts.wait_longest = waits[wait_count - 1];
	}
}

/* Give each node a location. */
static void place(void)
{
	unsigned int i, all = config.racks * config.chassis, part;

	for (i = 0; i < sim.nodes; i++) {
		part = config.mixed ? sim_below(all) : i * all / sim.nodes;
		if (all > 1)
			snprintf(nodes[i].location, sizeof(nodes[i].location),
				 config.chassis > 1 ? "rack%u/chassis%u" : "rack%u",
				 part / config.chassis, part);
		/* Some nodes are in no rack. */
		if (config.mixed && sim_chance(10))
			nodes[i].location[0] = 0;
	}
	topology = kdsm_topology_create(nodes[0].location, sizeof(nodes[0]), sim.nodes);
}

/* Most holds of one element while others wait in queue i */
static unsigned int most(const struct kdsm_tree *tree, unsigned int i)
{
	unsigned int level = tree->queues[i]->level, turn = config.wanting, part = 0, node, other;
	const u16 *parts = i ? tree->queues[i - 1]->elements : NULL;
	u32 t_l = config.t_l[level];

	if (t_l != KDSM_LOCK_T_L_AUTO)
		return t_l;
	/* Elements differ in the levels of their queues; this is the bound for all. */
	for (t_l = 0; level < KDSM_LOCK_LEVELS; level++)
		if (config.t_l[level] != KDSM_LOCK_T_L_AUTO)
			t_l = max(t_l, config.t_l[level]);
	turn = max(turn, t_l);
	for (node = 0; parts && node < sim.nodes; node++) {
		unsigned int size = 0;

		for (other = 0; other < sim.nodes; other++)
			size += parts[other] == parts[node];
		part = max(part, size);
	}
	return turn * clamp_t(unsigned int, part, 1, KDSM_LOCK_T_L_MOST);
}

/* Most holds of the other elements of queue i while this node waits in the queue */
static unsigned int bypass(const struct kdsm_tree *tree, unsigned int i)
{
	const u16 *parts = i ? tree->queues[i - 1]->elements : NULL;
	const struct kdsm_queue *queue = tree->queues[i];
	unsigned int node, others = 0;

	for (node = 0; node < sim.nodes; node++)
		others += kdsm_queue_is_peer(queue, node) &&
			  (!parts || (parts[node] == node && parts[queue->node] != node));
	return others * most(tree, i);
}

void nodes_start(void)
{
	struct kdsm_queue *model = calloc(1, sizeof(*model));
	unsigned int i, j;

	holder = -1;
	before = -1;
	lost_by = -1;
	active = sim.nodes;
	left = 0;
	nodes = calloc(sim.nodes, sizeof(*nodes));
	place();
	for (i = 0; i < sim.nodes; i++) {
		struct kdsm_tree *tree = &nodes[i].tree;

		tree->topology = topology;
		tree->levels = config.flat ? 2 : topology->levels;
		tree->t_l = config.t_l;
		model->ops = &ops;
		model->owner = &nodes[i];
		model->region = 7;
		model->number = 3;
		model->recovers = true;
		model->node = i;
		model->nodes = sim.nodes;
		if (kdsm_tree_create(tree, model, config.home, 0))
			sim_fail(SIM_NONE, "no memory for node %u", i);
		for (j = 0; j < tree->count; j++) {
			nodes[i].bypass[j] = bypass(tree, j);
			if (sim_broken == BREAK_TURNS)
				tree->sizes[j] = KDSM_LOCK_T_L_MOST;
		}
		for (j = 0; j < KDSM_LOCK_LEVELS; j++)
			nodes[i].elements[j].last = (config.ticket - 1) & KDSM_TICKET_MASK;
		sim_spawn(i, "node", 0, run, &nodes[i]);
	}
	free(model);
}

/* Check that the queues are empty after all nodes have left. */
static void check_left(const struct node *node)
{
	unsigned int i;

	for (i = 0; i < node->tree.count; i++) {
		const struct kdsm_queue *queue = node->tree.queues[i];

		if (queue_of(config.home)->flat && i < node->tree.count - 1)
			continue;
		if (queue_word(queue) << 31)
			sim_fail(SIM_NONE, "no node has the lock, but the word of level %u is %016llx",
				 queue->level, queue_word(queue));
		if (kdsm_queue_state(queue) != KDSM_QUEUE_NONE && !is_dead(number(node)))
			sim_fail(SIM_NONE, "all nodes have left, but node %u is in state %u",
				 number(node), queue->state);
	}
}

void nodes_stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes && !is_dead(config.home); i++) {
		check_left(&nodes[i]);
		counts.operations += operations(&nodes[i]);
	}
	for (i = 0; i < sim.nodes; i++)
		kdsm_tree_destroy(&nodes[i].tree);
	kvfree(topology);
	free(nodes);
}

void nodes_tell(void)
{
	unsigned int i, j;

	for (i = 0; i < sim.nodes; i++) {
		const struct kdsm_tree *tree = &nodes[i].tree;

		printf("node %u: %s\n", i, nodes[i].location);
		for (j = 0; j < tree->count; j++) {
			const struct kdsm_queue *queue = tree->queues[j];

			printf("  %u: word %016llx state %u ticket %u held %u told %u tail %u\n",
			       queue->level, queue_word(queue), queue->state, queue->ticket,
			       queue->held, queue->told, queue->tail);
			printf("    waiters %u rest %u id %u debt %u passes %u moved %u\n",
			       queue->waiters, queue->rest, queue->baton.id, queue->baton.debt,
			       queue->passes, queue->moved);
		}
	}
}
