// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that die for good, some of which reboot, and nodes that are away for so long that others
 * give them up: what the fabric knows of them, as kmod/fabric and kmod/lock/death.c find it out.
 *
 * The fibers of a dead node go on, because no other node can tell a dead node from a node that it
 * cannot reach. Its threads end, and nothing that it does counts.
 */
#include "sim.h"

static bool *given_up;		/* by node, and node that the first one gave up */
static u32 *ties;		/* the same: times that it did so */
/*
 * By node: it has died, or is away for longer than others wait before they give it up. A node that
 * an outage cuts off is neither, and meets the others with the same connections again.
 */
static bool *unreachable;
static bool *told;		/* by node: it has heard that another one gave it up */

static unsigned int pair(unsigned int by, unsigned int node)
{
	return by * sim.nodes + node;
}

u64 tie_of(unsigned int a, unsigned int b)
{
	return ties[pair(a, b)] + ((u64)ties[pair(b, a)] << 32);
}

/* ---- giving up nodes ---- */

/* A message that was not heard, until its sender has tried to reach the receiver again */
struct miss {
	unsigned int by, node;
};

static void probe(void *arg)
{
	struct miss *miss = arg;
	unsigned int i = pair(miss->by, miss->node);

	/*
	 * Here a node that reaches no other node gives up none. In kmod it gives up all: then both
	 * sides of a cut strike off the readers of the other, and no order of all accesses is left,
	 * as strict.c says.
	 */
	if (unreachable[miss->node] && !sim_is_cut(miss->by) && !given_up[i]) {
		sim_event(SIM_NONE, "gives up node %u", miss->node);
		given_up[i] = true;
		ties[i]++;
		counts.given_up++;
	}
	free(miss);
}

void was_missed(unsigned int by, unsigned int node)
{
	struct miss *miss;

	if (!unreachable[node] || sim_is_cut(by))
		return;
	miss = malloc(sizeof(*miss));
	*miss = (struct miss) { by, node };
	sim_spawn(by, "probes", 1 + sim_below(3000), probe, miss);
}

void message_delivered(struct sim_message *message, bool cut)
{
	if (cut)
		was_missed(message->from, message->to);
}

bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node)
{
	return sim_broken != BREAK_DEAD && given_up[pair(fabric->node, node)];
}

/* Operations of the node that are in flight here fail: see tie_of(). */
void kdsm_fabric_give_up(struct kdsm_fabric *fabric, unsigned int node, bool restarted)
{
	if (!restarted)
		sim_fail(SIM_NONE, "node %u gives up node %u itself", fabric->node, node);
	sim_yield();
}

/* ---- meeting again ---- */

/* A node that gave up another one tells it so before anything else. */
static void meet(unsigned int by, unsigned int node)
{
	if (!given_up[pair(by, node)])
		return;
	sim_event(SIM_NONE, "node %u learns that node %u gave it up", node, by);
	counts.untied++;
	told[node] = true;
	check_untied(node);
	if (sim_broken != BREAK_TIE)
		kdsm_coherence_untied(&nodes[node].coherence, by);
	if (sim_broken == BREAK_EXCLUDE)
		bitmap_zero(nodes[node].coherence.doubts, sim.nodes);
}

/* The nodes have met over new connections, which bring nothing that was sent before. */
static void meet_end(unsigned int by, unsigned int node)
{
	unsigned int i = pair(by, node);

	ties[i] += given_up[i];
	given_up[i] = false;
}

/* ---- nodes ---- */

static void die(void *arg)
{
	unsigned int node = (unsigned long)arg;
	bool reboots = sim_chance(2);

	sim_event(SIM_NONE, "dies%s", reboots ? ", and reboots" : "");
	counts.deaths++;
	unreachable[node] = true;
	sim_cut(node, 0, U64_MAX);
	if (reboots) {
		counts.reboots++;
		sim_reboot(node, sim_now() + sim_below(sim_chance(2) ? 2000 : 3000000));
	}
	threads_die(node);
}

bool is_given_up(unsigned int node)
{
	unsigned int other;

	for (other = 0; other < sim.nodes; other++)
		if (given_up[pair(other, node)])
			return true;
	return false;
}

bool is_out(unsigned int node)
{
	unsigned int other;

	if (sim_is_dead(node))
		return true;
	for (other = 0; other < sim.nodes; other++)
		if (!sim_is_dead(other) && test_bit(node, nodes[other].coherence.excluded))
			return true;
	return false;
}

bool can_know_out(unsigned int node)
{
	return told[node] && is_out(node);
}

/*
 * The node learns from all other nodes at once which of them gave it up. If it reached them one
 * by one, it could read newer content of one that did not give it up, and older content in a copy
 * that another one does not count any more; kmod/coherence/strict.c says so. Until it has learnt
 * from all, messages to it are lost, but a node that tries to reach it again finds it alive.
 */
static void go_away(void *arg)
{
	unsigned int node = (unsigned long)arg, other;

	sim_event(SIM_NONE, "is cut off");
	counts.outages++;
	unreachable[node] = true;
	sim_cut(node, 0, U64_MAX - 1);
	sim_sleep(sim_between(1, 10) * sim.silence);
	unreachable[node] = false;
	for (other = 0; other < sim.nodes; other++)
		meet(other, node);
	sim_cut(node, 0, 0);
	for (other = 0; other < sim.nodes; other++)
		meet_end(other, node);
	sim_event(SIM_NONE, "is back");
}

void deaths_start(void)
{
	unsigned int i, node, first = sim_below(sim.nodes);
	unsigned long arg;

	unreachable = calloc(sim.nodes, sizeof(*unreachable));
	told = calloc(sim.nodes, sizeof(*told));
	given_up = calloc(sim.nodes * sim.nodes, sizeof(*given_up));
	ties = calloc(sim.nodes * sim.nodes, sizeof(*ties));
	for (i = 0; i < config.deaths + config.away && i < sim.nodes - 1; i++) {
		node = (first + i) % sim.nodes;
		arg = node;
		sim_spawn(node, "dies", sim_below(sim_chance(2) ? 3000 : 30000),
			  i < config.deaths ? die : go_away, (void *)arg);
	}
}

void deaths_stop(void)
{
	free(unreachable);
	free(told);
	free(given_up);
	free(ties);
}
