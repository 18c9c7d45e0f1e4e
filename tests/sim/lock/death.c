// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that die, or cannot be reached for a while, at any time; and the home, which
 * finds it out some time later, gives them up, and writes the queue anew.
 */
#include <stdio.h>

#include "lock.h"

static struct peer {
	bool cut;		/* from all others */
	bool dead;		/* for good */
	bool suspected;		/* by the home */
	bool away;		/* given up, and not heard of since */
	u32 given_up, untied;	/* how often; and as it knows */
	bool greeted;		/* it knows */
} peers[LOCK_NODES];

static struct kdsm_member members[LOCK_NODES];
static u16 order[LOCK_NODES];
static unsigned int pending;	/* deaths that the home has not seen to */
static struct sim_queue wait;
static bool is_stuck;		/* a node, because of a dead one */
bool lock_must_tell, lock_may_tell;

/* ---- what the fabric knows ---- */

bool lock_is_cut(unsigned int a, unsigned int b)
{
	return a != b && (peers[a].cut || peers[b].cut);
}

bool lock_is_dead(unsigned int node)
{
	return peers[node].dead;
}

/* They speak with each other. */
void lock_greet(unsigned int a, unsigned int b)
{
	unsigned int node = a == lock.home ? b : a;
	struct peer *peer = &peers[node];

	if (a != b && (a == lock.home || b == lock.home)) {
		peer->untied = peer->given_up;
		peer->greeted = true;
		peer->away = false;
	}
}

bool lock_may_land(unsigned int node, u64 tie)
{
	return !tie || tie == peers[node].given_up + 1ULL ||
	       lock_broken == LOCK_BREAK_FENCE;
}

/* Has the home not given it up since it last heard so? */
bool lock_is_tied(unsigned int node)
{
	const struct kdsm_queue *queue = lock_queue(node);

	return node == lock.home || !lock.deaths || !queue->met ||
	       queue->tie == peers[node].given_up + 1ULL;
}

u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node)
{
	const struct peer *peer = &peers[fabric->node];

	return node == lock.home && peer->greeted ? peer->untied + 1ULL : 0;
}

bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node)
{
	if (fabric->node != lock.home)
		sim_fail(-1, "not the home's business");
	return peers[node].away;
}

/* ---- the home ---- */

static void give_up(unsigned int node)
{
	struct kdsm_queue *queue = lock_queue(node);
	unsigned int other, i;

	if (node == lock.home)
		sim_fail(-1, "the home gives itself up");
	sim_event(-1, "gives up node %u, state %u", node, queue->state);
	if (lock_is_tied(node)) {
		lock_gives_up(node);
		/* It may have been on its way to it, or from it. */
		for (other = 0; other < lock.nodes; other++)
			for (i = 0; i < lock_tree(other)->count; i++)
				lock_may_tell |= lock_tree(other)->queues[i]->handing == node;
		for (i = 0; i < lock_tree(node)->count; i++)
			lock_may_tell |= lock_tree(node)->queues[i]->state != KDSM_QUEUE_NONE &&
					 lock_tree(node)->queues[i]->state != KDSM_QUEUE_WAITING;
	}
	peers[node].given_up++;
	peers[node].away = true;
}

void lock_missed(unsigned int node, bool stuck)
{
	if (!peers[node].cut || node == lock.home)
		return;
	if (!peers[node].away)
		peers[node].suspected = true;
	is_stuck |= stuck;
	sim_wake(&wait);
}

static bool any_suspected(void)
{
	unsigned int node;

	for (node = 0; node < lock.nodes; node++)
		if (peers[node].suspected)
			return true;
	return is_stuck;
}

static void recover(void *arg)
{
	struct kdsm_recovery recovery = { .idle = true, .nodes = members, .order = order };
	unsigned int node, seen;
	int err;

	(void)arg;
	while (pending || lock_nodes_active()) {
		while (!any_suspected()) {
			sim_prepare(&wait);
			if (any_suspected() || !sim_block(&wait, sim_now() + 1000))
				break;
		}
		sim_cancel(&wait);
		if (!pending && !any_suspected())
			continue;
		seen = pending;
		is_stuck = false;
		for (node = 0; node < lock.nodes; node++) {
			if (!peers[node].suspected)
				continue;
			peers[node].suspected = false;
			/* One that is back in time; but who can know. */
			if (peers[node].cut || sim_chance(2))
				give_up(node);
		}
		for (;;) {
			recovery.round++;
			err = kdsm_queue_recover(lock_queue(lock.home), &recovery);
			if (!err)
				break;
			if (err != -EAGAIN && err != -EHOSTDOWN)
				sim_fail(-1, "recovery gave %d", err);
			if (err == -EHOSTDOWN && (peers[recovery.node].cut || sim_chance(20)))
				give_up(recovery.node);
			sim_sleep(20);
		}
		sim_event(-1, "has recovered");
		/* Was that all? */
		for (node = 0; node < lock.nodes; node++)
			if (peers[node].suspected || (peers[node].cut && !peers[node].away))
				seen = 0;
		if (seen == pending)
			pending = lock_deaths_to_come();
	}
}

/* ---- those that die ---- */

static unsigned int to_come;

unsigned int lock_deaths_to_come(void)
{
	return to_come;
}

bool lock_deaths_pending(void)
{
	return pending;
}

static void die(void *arg)
{
	struct peer *peer = arg;
	unsigned int node = peer - peers;
	bool comes_back = node != lock.home && lock.away_too && sim_chance(2);

	sim_event(-1, comes_back ? "is cut off" : "dies");
	peer->cut = true;
	peer->dead = !comes_back;
	/* What becomes of its last messages is not known. */
	lock_may_tell |= comes_back;
	sim_sleep(sim_below(3000));
	if (node == lock.home) {
		pending = 0;
		return;
	}
	peer->suspected = true;
	to_come--;
	sim_wake(&wait);
	if (!comes_back)
		return;
	sim_sleep(sim_below(sim_chance(2) ? 1000 : 20000));
	sim_event(-1, "is back");
	peer->cut = false;
	sim_sleep(sim_below(1000));
	if (!peer->cut)
		lock_greet(node, lock.home);
	lock_wake(node);
}

void lock_deaths_start(void)
{
	unsigned int i, node;

	memset(peers, 0, sizeof(peers));
	wait.first = NULL;
	is_stuck = false;
	lock_must_tell = false;
	lock_may_tell = sim.error;
	to_come = 0;
	pending = 0;
	if (lock.home_dies)
		sim_spawn(lock.home, "dies", sim_below(lock.die), die, &peers[lock.home]);
	for (i = 0; i < lock.deaths; i++) {
		do
			node = sim_below(lock.nodes);
		while (node == lock.home || peers[node].suspected);
		peers[node].suspected = true;	/* for now */
		to_come++;
		sim_spawn(node, "dies", sim_below(lock.die), die, &peers[node]);
	}
	for (node = 0; node < lock.nodes; node++)
		peers[node].suspected = false;
	pending = to_come;
	if (pending)
		sim_spawn(lock.home, "recovers", 0, recover, NULL);
}
