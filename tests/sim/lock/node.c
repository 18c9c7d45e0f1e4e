// SPDX-License-Identifier: GPL-2.0
/* The protocol's objects of each node, and the tasks that send for them. */
#include <stdio.h>

#include "sim.h"

struct node *nodes;
struct kdsm_lock_home *home;
bool ended;
static struct kdsm_topology *topology;
static struct kdsm_ranks *ranks;

/* Tasks of a node; the home's task is at the home only */
enum { TASK_TURN, TASK_PASS, TASK_READER, TASK_HOME };

void node_wake(struct node *node, unsigned int task)
{
	node->woken[task] = true;
	sim_wake(&node->wake[task]);
}

void home_wake(void)
{
	node_wake(&nodes[config.home], TASK_HOME);
}

void node_changed(struct node *node)
{
	node_wake(node, TASK_TURN);
	node_wake(node, TASK_PASS);
	node_step(node);
}

/* ---- calls of the protocol ---- */

void kdsm_part_changed(struct kdsm_part *part)
{
	struct node *node = &nodes[part->node];

	if (part == &home->part)
		home_wake();
	else if (part == &node->reader.pass.part)
		node_wake(node, TASK_READER);
	else
		node_changed(node);
}

void kdsm_part_missed(struct kdsm_part *part, unsigned int node)
{
}

/* Locks of regions of policy release are not simulated. */
int kdsm_turn_leaving(struct kdsm_turn *turn, bool free)
{
	return 0;
}

void kdsm_turn_handed(struct kdsm_turn *turn, unsigned int node)
{
}

int kdsm_home_opening(struct kdsm_lock_home *lock, unsigned int node)
{
	return 0;
}

unsigned int kdsm_pass_parent(struct kdsm_pass *pass)
{
	unsigned int node = pass->part.node, parent = node - node % config.t_dc;

	return !pass->era || is_given_up(parent) || sim_is_cut(parent) ? config.home : parent;
}

/* ---- tasks ---- */

struct task {
	struct node *node;
	unsigned int task;
};

u64 node_advance(struct node *node)
{
	u64 delay;

	if (node->advances)
		return 0;
	node->advances = true;
	delay = kdsm_turn_advance(&node->turn);
	node->advances = false;
	return delay;
}

static u64 task_advance(const struct task *task)
{
	if (sim_broken == BREAK_FORGET && task->node->turn.state == KDSM_TURN_WAITING)
		task->node->turn.poll = U64_MAX;
	if (sim_broken == BREAK_READER && task->node->pass.state == KDSM_PASS_WAITING)
		task->node->pass.poll = U64_MAX;
	switch (task->task) {
	case TASK_TURN:
		return node_advance(task->node);
	case TASK_PASS:
		return kdsm_pass_advance(&task->node->pass);
	case TASK_READER:
		return kdsm_reader_home_advance(&task->node->reader);
	default:
		return kdsm_home_advance(home);
	}
}

/* In units of simulated time */
static u64 units(u64 ns)
{
	return sim_cost.units ? ns * sim_cost.units / 1000 : ns / 1000 + 1;
}

static void task_run(void *arg)
{
	struct task task = *(struct task *)arg;
	struct node *node = task.node;
	u64 delay, end;

	free(arg);
	while (!ended && !is_dead(node->number)) {
		node->woken[task.task] = false;
		delay = task_advance(&task);
		end = delay ? sim_now() + units(delay) : sim_now() + units(2 * NSEC_PER_SEC);
		for (;;) {
			sim_prepare(&node->wake[task.task]);
			if (node->woken[task.task] || !sim_block(&node->wake[task.task], end))
				break;
		}
		sim_cancel(&node->wake[task.task]);
	}
}

static void task_start(struct node *node, unsigned int number, const char *name)
{
	struct task *task = malloc(sizeof(*task));

	*task = (struct task) { node, number };
	sim_spawn(node->number, name, 0, task_run, task);
}

/* ---- start and stop ---- */

static void topology_make(void)
{
	unsigned int per_rack = DIV_ROUND_UP(sim.nodes, config.racks), i, rack;
	unsigned int per_chassis = DIV_ROUND_UP(per_rack, config.chassis);

	for (i = 0; i < sim.nodes; i++) {
		rack = i / per_rack;
		if (config.flat)
			nodes[i].location[0] = 0;
		else if (config.chassis > 1)
			snprintf(nodes[i].location, sizeof(nodes[i].location), "r%u/c%u", rack,
				 i % per_rack / per_chassis);
		else
			snprintf(nodes[i].location, sizeof(nodes[i].location), "r%u", rack);
	}
	topology = kdsm_topology_create(nodes[0].location, sizeof(nodes[0]), sim.nodes);
	ranks = kdsm_ranks_create(topology);
}

static struct kdsm_part part_of(unsigned int node)
{
	return (struct kdsm_part) {
		.fabric = sim_fabric(node), .number = 3, .home = config.home, .node = node,
		.nodes = sim.nodes,
	};
}

static void node_start(struct node *node, unsigned int number)
{
	node->number = number;
	node->greedy = sim_chance(config.greedy);
	node->turn.part = part_of(number);
	node->turn.life = 1000;
	node->turn.serial = sim_below(1000);
	kdsm_turn_init(&node->turn);
	node->pass.part = part_of(number);
	node->pass.life = 1000;
	kdsm_pass_init(&node->pass);
	node->reader.pass.part = part_of(number);
	node->reader.pass.life = 1000;
	if (kdsm_reader_home_init(&node->reader))
		sim_fail(SIM_NONE, "no memory at the start");
}

/* Open another lock while memory is short: opening fails as a whole, or not at all. */
static void open_run(void *arg)
{
	struct kdsm_lock_home *other = calloc(1, sizeof(*other));
	struct kdsm_reader_home reader = { };
	struct kdsm_ranks *shared;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		memset(other, 0, sizeof(*other));
		other->part = part_of(config.home);
		if (!kdsm_home_init(other, ranks, topology->levels))
			kdsm_home_exit(other);
		memset(&reader, 0, sizeof(reader));
		reader.pass.part = part_of(config.home);
		if (!kdsm_reader_home_init(&reader))
			kdsm_reader_home_exit(&reader);
		shared = kdsm_ranks_create(topology);
		if (shared)
			kdsm_ranks_destroy(shared);
	}
	free(other);
}

void nodes_start(void)
{
	unsigned int i;

	ended = false;
	turns = 0;
	nodes = calloc(sim.nodes, sizeof(*nodes));
	topology_make();
	for (i = 0; i < sim.nodes; i++)
		node_start(&nodes[i], i);
	home = calloc(1, sizeof(*home));
	home->part = part_of(config.home);
	if (kdsm_home_init(home, ranks, topology->levels))
		sim_fail(SIM_NONE, "no memory at the start");
	for (i = 0; i < sim.nodes; i++) {
		task_start(&nodes[i], TASK_TURN, "turn");
		if (config.rw) {
			task_start(&nodes[i], TASK_PASS, "pass");
			task_start(&nodes[i], TASK_READER, "reader home");
		}
	}
	task_start(&nodes[config.home], TASK_HOME, "home");
	if (sim.nomem)
		sim_spawn(config.home, "opens", 0, open_run, NULL);
}

void node_strikes(struct node *node, unsigned int dead)
{
	kdsm_reader_home_doom(&node->reader, dead);
	kdsm_reader_home_strike(&node->reader, dead);
	kdsm_pass_strike(&node->pass, dead);
}

void node_out(struct node *node, bool rebooted)
{
	/* Nothing else happens on the node before the protocol knows. */
	node->loses = true;
	node->stay++;
	node->taken = false;
	node->readers = 0;
	node->chances = 0;
	node->flags = 0;
	if (rebooted) {
		node->turn.life += 1000;
		node->pass.life += 1000;
		node->reader.pass.life += 1000;
		node->turn.serial = sim_below(1000);
		node->pass.request = sim_below(1000);
		memset(&node->turn.report, 0, sizeof(node->turn.report));
	}
	kdsm_turn_out(&node->turn);
	/* In this order, so that no reader of the new life is forgotten with the old ones */
	kdsm_reader_home_out(&node->reader);
	kdsm_pass_out(&node->pass);
	node->loses = false;
	node_step(node);
}

static void node_stop(struct node *node)
{
	const struct kdsm_turn_stats *stats = &node->turn.stats;

	counts.asked += stats->asked;
	counts.handed += stats->handed;
	counts.left += stats->left;
	counts.swaps += stats->free + stats->freed;
	counts.remote += stats->atomics + node->turn.part.messages + node->pass.part.messages +
			 node->reader.pass.part.messages;
	kdsm_reader_home_exit(&node->reader);
}

void nodes_stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		node_stop(&nodes[i]);
	counts.surveys += home->epoch - 1;
	counts.dismissals += home->dismissal;
	kdsm_home_exit(home);
	free(home);
	kdsm_ranks_destroy(ranks);
	kvfree(topology);
	free(nodes);
}

static void home_tell(void)
{
	unsigned int i;

	printf("home %u: state %u epoch %u turns %llu-%llu waiting %u push %llu sole %llx gate %u "
	       "(%u wait, %u inside) row %u dismissed %lx undismissed %lx unheard %lx word %llx\n",
	       config.home, home->state, home->epoch, home->first, home->last, home->order.count,
	       home->push, home->sole, home->gate.state, home->gate.waiting, home->gate.inside,
	       home->row, home->dismissed[0], home->undismissed[0], home->unheard[0],
	       nodes[config.home].word);
	for (i = 0; i < sim.nodes; i++)
		printf("  node %u: entry %u life %llu serial %llu turn %llu; child %u request %llu\n",
		       i, home->entries[i].state, home->entries[i].life, home->entries[i].serial,
		       home->entries[i].turn, home->gate.children[i].state,
		       home->gate.children[i].request);
}

void nodes_tell(void)
{
	unsigned int i;

	home_tell();
	for (i = 0; i < sim.nodes; i++) {
		const struct node *node = &nodes[i];

		printf("node %u: state %u life %llu serial %llu turn %llu epoch %u list %u flags %x; "
		       "writers %u taken %u readers %u waiting %u; pass %u parent %u request %llu; "
		       "reader home %u (%u wait, %u inside), its pass %u\n", i, node->turn.state,
		       node->turn.life, node->turn.serial, node->turn.turn, node->turn.epoch,
		       node->turn.list.count, node->turn.flags, node->writers, node->taken,
		       node->readers, node->waiting, node->pass.state, node->pass.parent,
		       node->pass.request, node->reader.gate.state, node->reader.gate.waiting,
		       node->reader.gate.inside, node->reader.pass.state);
	}
}
