// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that read and write, and the invariants: a writer is alone; at most T_R readers
 * come to a counter while a writer waits; a registered reader waits for at most T_W
 * writers; every node gets the lock.
 */
#include <stdio.h>

#include "sim.h"

static struct node {
	struct kdsm_rw rw;
	struct sim_queue read_wait, write_wait, root_wait;
	bool read_woken, write_woken;
	bool has_root;			/* the node is the first in the queue of writers */
	u64 knows;			/* value of writes when the node last had the root */
	unsigned int overtaken;		/* writers that passed the node while it is registered */
	u32 turn;			/* turn in which the node registered */
	bool working, again;		/* home_work() runs; must run once more */
	unsigned int entered;		/* readers at its counter since a writer waits there */
	unsigned int waiting;		/* see writer_waiting() */
} *nodes;

/* The queue of writers: node numbers. The first node has the root, and with it closed and row. */
static unsigned int *queue, queued;
static bool closed;			/* the counters are closed */
static unsigned int row;		/* writers in a row */
static u64 status;			/* of the lock, as the last writer published it */
static u64 writes;			/* number of writes of all nodes */

static unsigned int inside_reading, inside_writing;
static unsigned int active;		/* fibers that are not done */
static u64 end;				/* with costs: the time at which all fibers end */

struct kdsm_rw *rw_of(unsigned int node)
{
	return &nodes[node].rw;
}

/* ---- callbacks of kmod/lock/rw ---- */

static void granted(struct kdsm_rw *rw)
{
	struct node *node = container_of(rw, struct node, rw);

	node->read_woken = true;
	sim_wake(&node->read_wait);
}

static void told(struct kdsm_rw *rw)
{
	struct node *node = container_of(rw, struct node, rw);

	node->write_woken = true;
	sim_wake(&node->write_wait);
}

static void home_work(void *arg)
{
	struct node *node = arg;

	do {
		node->again = false;
		while (!kdsm_rw_home_work(&node->rw))
			sim_sleep(2000);
	} while (node->again);
	node->working = false;
}

static void home(struct kdsm_rw *rw)
{
	struct node *node = container_of(rw, struct node, rw);

	node->again = true;
	if (node->working)
		return;
	node->working = true;
	sim_spawn(rw->node, "home", 0, home_work, node);
}

static int join(struct kdsm_rw *rw, unsigned int node)
{
	struct kdsm_wire_rw wire;

	kdsm_rw_name(rw, &wire);
	return kdsm_message(rw->fabric, node, KDSM_MESSAGE_RW_JOIN, &wire, sizeof(wire), NULL,
			    NULL);
}

static const struct kdsm_rw_ops ops = {
	.granted = granted,
	.told = told,
	.home = home,
	.join = join,
};

/* Wait for *woken; for at most 2 ms if the message that wakes may be lost. */
static void wait_for(struct sim_queue *wait, bool *woken)
{
	u64 deadline = sim.error ? sim_now() + 2000 : U64_MAX;

	for (;;) {
		sim_prepare(wait);
		if (*woken || !sim_block(wait, deadline))
			break;
	}
	sim_cancel(wait);
	*woken = false;
}

static bool is_over(unsigned int rounds, unsigned int most)
{
	return sim_cost.units ? sim_now() >= end : rounds >= most;
}

/* ---- reading ---- */

void writer_waits(unsigned int node)
{
	nodes[node].entered = 0;
	nodes[node].waiting++;
}

unsigned int writer_waiting(unsigned int node)
{
	return nodes[node].waiting;
}

static void check_error(int err)
{
	if (err && err != -EBUSY && err != -EAGAIN && !sim.error)
		sim_fail(SIM_NONE, "error %d, although nothing is lost", err);
}

/*
 * The counter let the node in at once. If the writer that the node found there still waits, count
 * the node.
 */
static void check_entered(const struct kdsm_rw *rw)
{
	unsigned int found = writer_found(rw->node);
	struct node *home = &nodes[rw->at];

	if (found && found == home->waiting && ++home->entered > config.t_r)
		sim_fail(SIM_NONE, "%u readers at node %u while a writer waits", home->entered,
			 rw->at);
}

/* Get the lock for reading. False: the lock was not free, and the node only tried. */
static bool enter(struct node *node, bool try)
{
	struct kdsm_rw *rw = &node->rw;
	u32 turn;
	int err;

	for (;;) {
		switch (kdsm_rw_state(rw)) {
		case KDSM_RW_NONE:
			turn = rw->turn;
			err = kdsm_rw_enter(rw, try);
			check_error(err);
			if (err == -EBUSY)
				return false;
			if (rw->state == KDSM_RW_IN && rw->turn == turn)
				check_entered(rw);
			break;
		case KDSM_RW_IN:
			return true;
		default:
			wait_for(&node->read_wait, &node->read_woken);
			if (sim.error)
				kdsm_rw_poll(rw);
			if (sim_broken == BREAK_DOUBT && rw->state == KDSM_RW_DOUBT)
				rw->state = KDSM_RW_NONE;
			break;
		}
	}
}

static void leave(struct node *node)
{
	struct kdsm_rw *rw = &node->rw;

	for (;;) {
		switch (kdsm_rw_state(rw)) {
		case KDSM_RW_NONE:
			return;
		case KDSM_RW_IN:
			check_error(kdsm_rw_leave(rw));
			break;
		default:
			sim_sleep(100);
			kdsm_rw_poll(rw);
			if (sim_broken == BREAK_DOUBT && rw->state == KDSM_RW_DOUBT)
				rw->state = KDSM_RW_NONE;
			break;
		}
	}
}

/* Whether the node that a reader found named knows of all writes */
static bool knows_all(u32 id)
{
	return !writes || (id && nodes[id - 1].knows == writes);
}

static void read_once(struct node *node)
{
	u64 ops = node->rw.stats.atomics + node->rw.stats.messages;

	if (!enter(node, sim_chance(config.try)))
		return;
	inside_reading++;
	if (inside_writing)
		sim_fail(SIM_NONE, "node %u reads while another writes", node->rw.node);
	if ((node->rw.found & KDSM_RW_STATUS) != status || !knows_all(node->rw.found & KDSM_RW_ID))
		sim_fail(SIM_NONE, "node %u read a stale status of the last writer", node->rw.node);
	sim_event(SIM_NONE, "reads");
	sim_sleep(sim_below(config.hold + 1));
	if (inside_writing)
		sim_fail(SIM_NONE, "a node writes while node %u reads", node->rw.node);
	inside_reading--;
	leave(node);
	counts.reads++;
	counts.read_operations += node->rw.stats.atomics + node->rw.stats.messages - ops;
}

/* ---- writing ---- */

static void root_enter(struct node *node)
{
	sim_sleep(2 * sim_latency(node->rw.node, 0));
	queue[queued++] = node->rw.node;
	if (queued == 1)
		node->has_root = true;
	while (!node->has_root) {
		sim_prepare(&node->root_wait);
		if (node->has_root || !sim_block(&node->root_wait, U64_MAX))
			break;
	}
	sim_cancel(&node->root_wait);
}

static void root_leave(struct node *node)
{
	struct node *next;

	if (queued > 1)
		sim_sleep(sim_latency(node->rw.node, queue[1]) + sim_cost.extra);
	node->has_root = false;
	memmove(queue, queue + 1, --queued * sizeof(queue[0]));
	if (!queued)
		return;
	next = &nodes[queue[0]];
	next->has_root = true;
	sim_wake(&next->root_wait);
}

/* Count this writer for each registered reader. */
static void check_overtaken(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		struct kdsm_rw *rw = &nodes[i].rw;

		if (!test_bit(i, rw_of(rw->at)->home.registered))
			continue;
		if (nodes[i].turn != rw->turn)
			nodes[i].overtaken = 0;
		nodes[i].turn = rw->turn;
		if (++nodes[i].overtaken > config.t_w)
			sim_fail(SIM_NONE, "%u writers overtook node %u", nodes[i].overtaken, i);
	}
}

static void write_inside(struct node *node)
{
	check_overtaken();
	if (inside_writing++ || inside_reading)
		sim_fail(SIM_NONE, "node %u writes while another node has the lock", node->rw.node);
	sim_event(SIM_NONE, "writes");
	counts.writes++;
	row++;
	node->knows = ++writes;
	sim_sleep(sim_below(config.hold + 1));
	if (--inside_writing || inside_reading)
		sim_fail(SIM_NONE, "another node got the lock while node %u writes", node->rw.node);
}

static void open_all(struct node *node)
{
	int err;

	if (closed)
		status = sim_chance(2) ? sim_below(4) * KDSM_RW_DEAD : 0;
	node->rw.status = status;
	while ((err = kdsm_rw_open(&node->rw, closed || sim_broken == BREAK_RETIRE))) {
		check_error(err);
		sim_sleep(100);
	}
	closed = false;
	row = 0;
}

static void write_once(struct node *node)
{
	bool give_up = sim_chance(config.give_up);
	int err;

	root_enter(node);
	node->knows = writes;
	while (!closed && !give_up) {
		err = kdsm_rw_close(&node->rw);
		check_error(err);
		if (sim_broken == BREAK_DRAIN && err == -EBUSY)
			err = 0;
		closed = !err;
		if (err == -EBUSY && !kdsm_rw_is_told(&node->rw))
			wait_for(&node->write_wait, &node->write_woken);
		give_up = err && sim_chance(config.give_up);
	}
	if (closed)
		write_inside(node);
	if (closed && queued > 1 && (row < config.t_w || sim_broken == BREAK_ROW)) {
		kdsm_rw_pass(&node->rw);
	} else if (closed && queued > 1 && sim_broken == BREAK_EARLY) {
		closed = false;
		row = 0;
		root_leave(node);
		open_all(node);
	} else {
		open_all(node);
	}
	if (node->has_root)
		root_leave(node);
}

/* ---- nodes ---- */

static void run_reader(void *arg)
{
	struct node *node = arg;
	unsigned int i;

	for (i = 0; !is_over(i, config.reads); i++) {
		sim_sleep(sim_below(config.away + 1));
		if (sim_cost.units && sim_chance(config.share))
			write_once(node);
		else
			read_once(node);
	}
	active--;
}

static void run_writer(void *arg)
{
	struct node *node = arg;
	unsigned int i;

	for (i = 0; i < config.writes; i++) {
		sim_sleep(sim_below(config.away * 4 + 1));
		write_once(node);
	}
	active--;
}

/* Set T_DC, at one node after another. */
static void run_tuner(void *arg)
{
	unsigned int i, n, t_dc;

	for (i = 0; i < config.changes; i++) {
		sim_sleep(sim_below(2000));
		t_dc = sim_between(1, sim.nodes);
		sim_event(SIM_NONE, "sets T_DC %u", t_dc);
		for (n = 0; n < sim.nodes; n++) {
			rw_of(n)->t_dc = t_dc;
			sim_sleep(sim_below(50));
		}
	}
	active--;
}

void nodes_start(void)
{
	unsigned int i;

	nodes = calloc(sim.nodes, sizeof(*nodes));
	queue = calloc(sim.nodes, sizeof(*queue));
	queued = 0;
	row = 0;
	inside_reading = 0;
	inside_writing = 0;
	closed = false;
	status = 0;
	writes = 0;
	active = 1 + (1 + !sim_cost.units) * sim.nodes;
	end = 2000ULL * sim_cost.units;
	for (i = 0; i < sim.nodes; i++) {
		struct kdsm_rw *rw = &nodes[i].rw;

		rw->ops = &ops;
		rw->region = 7;
		rw->number = 3;
		rw->node = i;
		rw->nodes = sim.nodes;
		rw->first = config.t_dc;
		rw->t_dc = config.t_dc;
		rw->t_r = sim_broken == BREAK_WANT ? U32_MAX : config.t_r;
	}
}

void nodes_run(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		kdsm_rw_init(&nodes[i].rw);
		sim_spawn(i, "reader", 0, run_reader, &nodes[i]);
		if (!sim_cost.units)
			sim_spawn(i, "writer", 0, run_writer, &nodes[i]);
	}
	sim_spawn(0, "tuner", 0, run_tuner, NULL);
}

void nodes_stop(void)
{
	const u64 left = KDSM_RW_WANT | KDSM_RW_WRITE | KDSM_RW_ASKED |
			 0xffff * KDSM_RW_READER;
	unsigned int i;

	for (i = 0; i < sim.nodes; i++) {
		counts.switches += nodes[i].rw.stats.switches;
		counts.row = max(counts.row, nodes[i].rw.stats.row);
		kdsm_rw_exit(&nodes[i].rw);
		if (counter_word(i) & left)
			sim_fail(SIM_NONE, "all nodes are done, but the counter of node %u is %016llx",
				 i, counter_word(i));
	}
	free(nodes);
	free(queue);
}

void nodes_tell(void)
{
	unsigned int i;

	printf("closed %u row %u queued %u active %u\n", closed, row, queued, active);
	for (i = 0; i < sim.nodes; i++) {
		const struct kdsm_rw *rw = &nodes[i].rw;

		printf("node %u: state %u at %u turn %u view %u told %u registered %lx "
		       "going %lx word %016llx\n", i, rw->state, rw->at, rw->turn, rw->view,
		       rw->told, rw->home.registered[0], rw->home.going[0], counter_word(i));
	}
}
