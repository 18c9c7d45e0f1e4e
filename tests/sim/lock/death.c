// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that die for good, or cannot be reached for a while, at any time. The home finds
 * out some time later, gives them up, and rebuilds the queue.
 */
#include <stdio.h>

#include "sim.h"

/* A node, as the home sees it. A node that is dead or away for a while is cut off, too. */
static struct peer {
	bool dead;		/* for good */
	bool suspected;		/* the home is about to give the node up */
	bool away;		/* the home has given the node up, and not heard it since */
	u32 given_up, untied;	/* times that the home gave the node up; as the node knows */
	bool greeted;		/* the node has heard the home */
} *peers;

static struct kdsm_member *members;
static u16 *order;
static unsigned int to_come;	/* deaths that the home does not know of */
static unsigned int pending;	/* 0: the home has recovered from all deaths */
static struct sim_queue wait;	/* of the home's fiber */
static bool is_stuck;		/* a node cannot go on because of a dead node */
bool must_tell, may_tell;

/* ---- what the fabric knows ---- */

bool is_dead(unsigned int node)
{
	return peers[node].dead;
}

void node_heard(unsigned int a, unsigned int b)
{
	unsigned int node = a == config.home ? b : a;
	struct peer *peer = &peers[node];

	if (a != b && (a == config.home || b == config.home)) {
		peer->untied = peer->given_up;
		peer->greeted = true;
		peer->away = false;
	}
}

bool batch_may_land(unsigned int node, const struct kdsm_batch *batch)
{
	return !batch->tie || batch->tie == peers[node].given_up + 1ULL ||
	       sim_broken == BREAK_FENCE;
}

bool is_tied(unsigned int node)
{
	const struct kdsm_queue *queue = queue_of(node);

	return node == config.home || !config.deaths || !queue->met ||
	       queue->tie == peers[node].given_up + 1ULL;
}

u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node)
{
	const struct peer *peer = &peers[fabric->node];

	return node == config.home && peer->greeted ? peer->untied + 1ULL : 0;
}

bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node)
{
	if (fabric->node != config.home)
		sim_fail(SIM_NONE, "node %u asks which nodes are away, which only the home knows",
			 fabric->node);
	return peers[node].away;
}

/* ---- the home ---- */

static void give_up(unsigned int node)
{
	struct kdsm_queue *queue = queue_of(node);
	unsigned int other, i;

	if (node == config.home)
		sim_fail(SIM_NONE, "the home gives itself up");
	sim_event(SIM_NONE, "gives up node %u in state %u", node, queue->state);
	if (is_tied(node)) {
		holder_lost(node);
		/* The lock may have been in flight to the node, or from it. */
		for (other = 0; other < sim.nodes; other++)
			for (i = 0; i < tree_of(other)->count; i++)
				may_tell |= tree_of(other)->queues[i]->handing == node;
		for (i = 0; i < tree_of(node)->count; i++)
			may_tell |= tree_of(node)->queues[i]->state != KDSM_QUEUE_NONE &&
					 tree_of(node)->queues[i]->state != KDSM_QUEUE_WAITING;
	}
	counts.given_up++;
	peers[node].given_up++;
	peers[node].away = true;
}

void node_missed(unsigned int node, bool stuck)
{
	if (!sim_is_cut(node) || node == config.home)
		return;
	if (!peers[node].away)
		peers[node].suspected = true;
	is_stuck |= stuck;
	sim_wake(&wait);
}

static bool any_suspected(void)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (peers[node].suspected)
			return true;
	return is_stuck;
}

static void wait_for_suspects(void)
{
	while (!any_suspected()) {
		sim_prepare(&wait);
		if (any_suspected() || !sim_block(&wait, sim_now() + 1000))
			break;
	}
	sim_cancel(&wait);
}

static void give_up_suspects(void)
{
	unsigned int node;

	is_stuck = false;
	for (node = 0; node < sim.nodes; node++) {
		if (!peers[node].suspected)
			continue;
		peers[node].suspected = false;
		/* A node may have come back before the home gives it up. */
		if (sim_is_cut(node) || sim_chance(2))
			give_up(node);
	}
}

static void recover_queue(struct kdsm_recovery *recovery)
{
	int err;

	for (;;) {
		recovery->round++;
		err = kdsm_queue_recover(queue_of(config.home), recovery);
		if (!err)
			break;
		if (err != -EAGAIN && err != -EHOSTDOWN)
			sim_fail(SIM_NONE, "recovery gave %d", err);
		if (err == -EHOSTDOWN && (sim_is_cut(recovery->node) || sim_chance(20)))
			give_up(recovery->node);
		sim_sleep(20);
	}
	counts.recoveries++;
	sim_event(SIM_NONE, "has recovered");
}

/* Whether some node is suspected, or cut off and not given up */
static bool any_left(void)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (peers[node].suspected || (sim_is_cut(node) && !peers[node].away))
			return true;
	return false;
}

static void recover(void *arg)
{
	struct kdsm_recovery recovery = { .idle = true, .nodes = members, .order = order };
	unsigned int seen;

	while (pending || nodes_active()) {
		wait_for_suspects();
		if (!pending && !any_suspected())
			continue;
		seen = pending;
		give_up_suspects();
		recover_queue(&recovery);
		if (any_left())
			seen = 0;
		if (seen == pending)
			pending = to_come;
	}
}

/* ---- nodes that die ---- */

bool deaths_pending(void)
{
	return pending;
}

static void die(void *arg)
{
	struct peer *peer = arg;
	unsigned int node = peer - peers;
	bool comes_back = node != config.home && config.returns && sim_chance(2);

	sim_event(SIM_NONE, comes_back ? "is cut off" : "dies");
	counts.deaths++;
	sim_cut(node, 0, U64_MAX);
	peer->dead = !comes_back;
	/* The node's last messages may arrive or not. */
	may_tell |= comes_back;
	sim_sleep(sim_below(3000));
	if (node == config.home) {
		pending = 0;
		return;
	}
	peer->suspected = true;
	to_come--;
	sim_wake(&wait);
	if (!comes_back)
		return;
	sim_sleep(sim_below(sim_chance(2) ? 1000 : 20000));
	sim_event(SIM_NONE, "is back");
	sim_cut(node, 0, 0);
	sim_sleep(sim_below(1000));
	node_heard(node, config.home);
	node_wake(node);
}

void deaths_start(void)
{
	unsigned int i, node;

	peers = calloc(sim.nodes, sizeof(*peers));
	members = calloc(sim.nodes, sizeof(*members));
	order = calloc(sim.nodes, sizeof(*order));
	wait.first = NULL;
	is_stuck = false;
	must_tell = false;
	may_tell = sim.error;
	to_come = 0;
	pending = 0;
	if (config.home_dies)
		sim_spawn(config.home, "dies", sim_below(config.die), die, &peers[config.home]);
	for (i = 0; i < config.deaths; i++) {
		do
			node = sim_below(sim.nodes);
		while (node == config.home || peers[node].suspected);
		peers[node].suspected = true;	/* until all are chosen */
		to_come++;
		sim_spawn(node, "dies", sim_below(config.die), die, &peers[node]);
	}
	for (node = 0; node < sim.nodes; node++)
		peers[node].suspected = false;
	pending = to_come;
	if (pending)
		sim_spawn(config.home, "recovers", 0, recover, NULL);
}

void deaths_stop(void)
{
	free(peers);
	free(members);
	free(order);
}
