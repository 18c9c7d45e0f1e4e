// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that die for good, come up again, or cannot be reached for a while, at any time. Some time
 * later all others give them up. A node that comes back learns that it was given up before
 * anything of the others reaches it.
 */
#include "sim.h"

static struct peer {
	bool dead;		/* for good */
	bool away;		/* given up, and not heard since */
	bool reboots;		/* comes back with another life */
	u32 given_up, untied;	/* times that the others gave the node up; as the node knows */
} *peers;

bool must_tell, may_tell;
unsigned int lost_by;

bool is_dead(unsigned int node)
{
	return peers[node].dead;
}

bool is_given_up(unsigned int node)
{
	return peers[node].given_up != peers[node].untied;
}

u64 node_tie(unsigned int a, unsigned int b)
{
	return ((u64)peers[a].given_up << 32) + peers[b].given_up;
}

u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node)
{
	return peers[fabric->node].untied + 1ULL;
}

bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node)
{
	return peers[node].away;
}

bool batch_may_land(unsigned int node, const struct kdsm_batch *batch)
{
	return !batch->tie || batch->tie == peers[node].given_up + 1ULL;
}

static void learn(unsigned int node)
{
	struct peer *peer = &peers[node];

	if (peer->dead || peer->untied == peer->given_up)
		return;
	peer->untied = peer->given_up;
	peer->away = false;
	sim_event(SIM_NONE, "node %u learns that it was given up", node);
	if (sim_broken != BREAK_OUT)
		node_out(&nodes[node], peer->reboots);
}

void node_heard(unsigned int a, unsigned int b)
{
	learn(a);
	learn(b);
}

static void give_up(unsigned int node)
{
	unsigned int i;

	sim_event(SIM_NONE, "gives up node %u", node);
	counts.given_up++;
	holder_lost(node);
	peers[node].given_up++;
	peers[node].away = true;
	kdsm_home_doom(home, node);
	kdsm_home_strike(home, node);
	for (i = 0; i < sim.nodes; i++)
		if (i != node && config.rw)
			node_strikes(&nodes[i], node);
}

static void die(void *arg)
{
	struct peer *peer = arg;
	unsigned int node = peer - peers;
	bool comes_back = sim_chance(2);

	if (node == config.home)
		comes_back = false;
	sim_event(SIM_NONE, comes_back ? "is cut off" : "dies");
	counts.deaths++;
	may_tell = true;
	sim_cut(node, 0, U64_MAX);
	peer->reboots = comes_back && sim_chance(2);
	peer->dead = !comes_back;
	if (node == config.home) {
		if (config.home_returns)
			sim_reboot(node, sim_now() + sim_below(20000));
		return;
	}
	sim_sleep(sim_below(3000));
	give_up(node);
	if (!comes_back) {
		node_changed(&nodes[node]);
		return;
	}
	sim_sleep(sim_below(sim_chance(2) ? 1000 : 20000));
	sim_event(SIM_NONE, peer->reboots ? "comes up again" : "is back");
	sim_cut(node, 0, 0);
	learn(node);
}

void deaths_start(void)
{
	unsigned int i, node, count = 0;

	peers = calloc(sim.nodes, sizeof(*peers));
	must_tell = false;
	lost_by = KDSM_NOBODY;
	may_tell = false;
	if (config.home_dies)
		sim_spawn(config.home, "dies", sim_below(config.when), die, &peers[config.home]);
	for (i = 0; i < sim.nodes && count < config.deaths; i++) {
		node = (config.home + 1 + i) % sim.nodes;
		if (node == config.home || (sim.nodes - i > config.deaths && sim_chance(2)))
			continue;
		count++;
		sim_spawn(node, "dies", sim_below(config.when), die, &peers[node]);
	}
}

void deaths_stop(void)
{
	free(peers);
}
