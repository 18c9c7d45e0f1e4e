// SPDX-License-Identifier: GPL-2.0
/*
 * What nodes do with a lock: they queue, wait, hold it, keep it, hand it over; and
 * what has to be true of it: one holder at a time, in the order of tickets, and
 * everybody gets it.
 */
#include <stdio.h>

#include "lock.h"

static struct node {
	struct kdsm_queue queue;
	struct sim_queue wait;
	bool woken;
} nodes[LOCK_NODES];

static int holder;		/* -1: nobody */
static bool served;		/* anybody yet */
static u32 last;		/* the ticket that had it last */
static unsigned int active;	/* nodes that are not done */

struct kdsm_queue *lock_queue(unsigned int node)
{
	return &nodes[node].queue;
}

static void wake(struct kdsm_queue *queue)
{
	struct node *node = container_of(queue, struct node, queue);

	node->woken = true;
	sim_wake(&node->wait);
}

static const struct kdsm_queue_ops ops = {
	.granted = wake,
	.wanted = wake,
};

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

static u64 operations(const struct kdsm_queue *queue)
{
	return queue->stats.atomics + queue->stats.puts + queue->stats.gets +
	       queue->stats.messages;
}

/* ---- checks ---- */

static void hold(struct node *node, bool anew)
{
	struct kdsm_queue *queue = &node->queue;

	if (holder >= 0)
		sim_fail(-1, "node %u has the lock, and so has node %d", queue->node, holder);
	if (anew && served && queue->ticket != ((last + 1) & KDSM_TICKET_MASK))
		sim_fail(-1, "ticket %u is served after %u", queue->ticket, last);
	served = true;
	last = queue->ticket;
	holder = queue->node;
	lock_counts.holds++;
	sim_event(-1, "has the lock, ticket %u, debt %u, known %u", queue->ticket,
		  queue->baton.debt, queue->baton.known);
	sim_sleep(sim_below(lock.hold + 1));
	if (holder != queue->node || kdsm_queue_state(queue) != KDSM_QUEUE_HELD)
		sim_fail(-1, "node %u has lost the lock", queue->node);
	holder = -1;
}

void sim_check_step(void)
{
}

/* ---- acquiring ---- */

static bool acquire(struct node *node)
{
	struct kdsm_queue *queue = &node->queue;
	bool try = sim_chance(lock.try);
	unsigned int polls = 0;
	u64 before, ops;
	int err;

	for (;;) {
		switch (kdsm_queue_state(queue)) {
		case KDSM_QUEUE_NONE:
			before = operations(queue);
			if (try) {
				lock_counts.tries++;
				err = kdsm_queue_try(queue);
				lock_counts.busy += err == -EBUSY;
				if (err == -EBUSY)
					return false;
			} else {
				err = kdsm_queue_enter(queue);
				ops = operations(queue) - before;
				lock_counts.enters++;
				lock_counts.enter_ops += ops;
				if (ops > lock_counts.enter_max)
					lock_counts.enter_max = ops;
			}
			if (err && !sim.error)
				sim_fail(-1, "nothing is lost, but queueing gave %d", err);
			if (lock_broken == LOCK_BREAK_DOUBT &&
			    kdsm_queue_state(queue) == KDSM_QUEUE_DOUBT)
				queue->state = KDSM_QUEUE_NONE;
			break;
		case KDSM_QUEUE_HELD:
			return true;
		default:
			node_wait(node, 2000);
			/* If nothing is lost everybody is found without a search. */
			kdsm_queue_poll(queue, sim.error && ++polls % 64 == 0);
			break;
		}
	}
}

/* No thread wants it here. */
static void leave(struct node *node, bool keep)
{
	struct kdsm_queue *queue = &node->queue;
	u64 before = operations(queue), handed = queue->stats.handed;
	int err;

	while ((err = kdsm_queue_leave(queue, keep))) {
		if (!sim.error && err != -EAGAIN)
			sim_fail(-1, "nothing is lost, but leaving gave %d", err);
		if (lock_broken == LOCK_BREAK_TWICE)
			queue->uncertain = false;
		sim_sleep(100);
	}
	lock_counts.leaves++;
	lock_counts.leave_ops += operations(queue) - before;
	lock_counts.hands += queue->stats.handed - handed;
}

static bool can_idle(struct node *node)
{
	if (lock_broken == LOCK_BREAK_KEEP)
		return !kdsm_queue_is_wanted(&node->queue);
	return kdsm_queue_can_idle(&node->queue);
}

static void release(struct node *node, bool keep)
{
	struct kdsm_queue *queue = &node->queue;

	while (kdsm_queue_state(queue) != KDSM_QUEUE_NONE && !(keep && can_idle(node)))
		leave(node, keep);
}

/* Nothing to do but to serve. */
static void idle(struct node *node, u64 us)
{
	u64 end = sim_now() + us;

	while (sim_now() < end) {
		node_wait(node, end - sim_now());
		if (kdsm_queue_state(&node->queue) == KDSM_QUEUE_HELD && !can_idle(node))
			release(node, sim_chance(2));
	}
}

static void run(void *arg)
{
	struct node *node = arg;
	unsigned int i, again;
	bool anew;

	sim_sleep(sim_below(lock.away + 1));
	for (i = 0; i < lock.rounds; i++) {
		anew = kdsm_queue_state(&node->queue) == KDSM_QUEUE_NONE;
		if (acquire(node)) {
			hold(node, anew);
			/* As when it is passed on among the threads of a node. */
			if (sim_chance(lock.check)) {
				kdsm_queue_check(&node->queue);
				hold(node, false);
			}
			for (again = sim_below(lock.again + 1); again; again--)
				if (can_idle(node))
					hold(node, false);
			release(node, sim_chance(lock.keep));
		}
		idle(node, sim_below(lock.away + 1));
	}
	active--;
	/* Who is done may have it still. */
	while (active)
		idle(node, 10000);
	release(node, false);
}

void lock_nodes_start(void)
{
	unsigned int i;

	holder = -1;
	served = false;
	active = lock.nodes;
	memset(nodes, 0, sizeof(nodes));
	for (i = 0; i < lock.nodes; i++) {
		struct kdsm_queue *queue = &nodes[i].queue;

		queue->ops = &ops;
		queue->region = 7;
		queue->number = 3;
		queue->level = 1;
		queue->cas = lock.cas;
		queue->home = lock.home;
		queue->node = i;
		queue->nodes = lock.nodes;
		kdsm_queue_place(queue, 0);
		kdsm_queue_init(queue);
		sim_spawn(i, "node", 0, run, &nodes[i]);
	}
}

void lock_nodes_stop(void)
{
	unsigned int i;

	if (lock_word() << 31)
		sim_fail(-1, "all have left, but the word is %016llx", lock_word());
	for (i = 0; i < lock.nodes; i++)
		if (kdsm_queue_state(&nodes[i].queue) != KDSM_QUEUE_NONE)
			sim_fail(-1, "all have left, but node %u is in state %u", i,
				 nodes[i].queue.state);
}

/* How they stand, for who looks for the reason of a failure. */
void lock_nodes_tell(void)
{
	unsigned int i;

	printf("word %016llx\n", lock_word());
	for (i = 0; i < lock.nodes; i++) {
		const struct kdsm_queue *queue = &nodes[i].queue;

		printf("node %u: state %u ticket %u held %u told %u tail %u waiters %u rest %u\n",
		       i, queue->state, queue->ticket, queue->held, queue->told, queue->tail,
		       queue->waiters, queue->rest);
	}
}
