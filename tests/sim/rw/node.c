// SPDX-License-Identifier: GPL-2.0
/*
 * What nodes do with a lock for readers and writers, and what has to be true of it: a
 * writer is alone; no more than T_R readers come to a counter while a writer waits; who
 * is registered waits for T_W writers at most; and everybody gets it.
 */
#include <stdio.h>

#include "rw.h"

static struct node {
	struct kdsm_rw rw;
	struct sim_queue read_wait, write_wait, root_wait;
	bool read_woken, write_woken, has_root;
	u64 knows;			/* writes, when it had the root last */
	unsigned int overtaken;		/* by writers, since it was registered */
	u32 turn;			/* then */
	bool working, again;		/* on what home() is for */
} nodes[RW_NODES];

/* Those that queue to write; the first has the root. */
static unsigned int queue[RW_NODES], queued;
static bool closed;			/* these two go with it */
static unsigned int row;
static u64 status;			/* what the last writer has opened it with */
static u64 writes;

static unsigned int inside_reading, inside_writing;
static unsigned int entered[RW_NODES];	/* at a counter, since a writer waits */
static unsigned int wanted[RW_NODES];	/* which writer that is */
static unsigned int active;
static u64 end;				/* with costs: when all stop */

struct kdsm_rw *rw_of(unsigned int node)
{
	return &nodes[node].rw;
}

/* ---- what the lock calls ---- */

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

/* Until woken. Whoever waits long asks, if something may be lost. */
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

void sim_check_step(void)
{
}

static bool is_over(unsigned int rounds, unsigned int most)
{
	return rw_cost.units ? sim_now() >= end : rounds >= most;
}

/* ---- reading ---- */

void rw_wanted(unsigned int node)
{
	entered[node] = 0;
	wanted[node]++;
}

unsigned int rw_want(unsigned int node)
{
	return wanted[node];
}

static void check_error(int err)
{
	if (err && err != -EBUSY && err != -EAGAIN && !sim.error)
		sim_fail(-1, "nothing is lost, but there is error %d", err);
}

/* False: it was only to be tried. */
static bool enter(struct node *node, bool try)
{
	struct kdsm_rw *rw = &node->rw;
	unsigned int found;
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
			found = rw_found_want(rw->node);
			if (rw->state == KDSM_RW_IN && rw->turn == turn && found &&
			    found == wanted[rw->at] && ++entered[rw->at] > rw_config.t_r)
				sim_fail(-1, "%u readers at node %u while a writer waits",
					 entered[rw->at], rw->at);
			break;
		case KDSM_RW_IN:
			return true;
		default:
			wait_for(&node->read_wait, &node->read_woken);
			if (sim.error)
				kdsm_rw_poll(rw);
			if (rw_broken == RW_BREAK_DOUBT && rw->state == KDSM_RW_DOUBT)
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
			if (rw_broken == RW_BREAK_DOUBT && rw->state == KDSM_RW_DOUBT)
				rw->state = KDSM_RW_NONE;
			break;
		}
	}
}

/* Who reads is sent to a node that knows of all that was written. */
static bool knows_all(u32 id)
{
	return !writes || (id && nodes[id - 1].knows == writes);
}

static void read_once(struct node *node)
{
	u64 ops = node->rw.stats.atomics + node->rw.stats.messages;

	if (!enter(node, sim_chance(rw_config.try)))
		return;
	inside_reading++;
	rw_counts.reads++;
	if (inside_writing)
		sim_fail(-1, "node %u reads while another writes", node->rw.node);
	if ((node->rw.found & KDSM_RW_STATUS) != status || !knows_all(node->rw.found & KDSM_RW_ID))
		sim_fail(-1, "node %u does not know what the last writer said", node->rw.node);
	sim_event(-1, "reads");
	sim_sleep(sim_below(rw_config.hold + 1));
	if (inside_writing)
		sim_fail(-1, "a node writes while node %u reads", node->rw.node);
	inside_reading--;
	leave(node);
	if (rw_cost.share != 1) {
		rw_counts.alone++;
		rw_counts.alone_ops += node->rw.stats.atomics + node->rw.stats.messages - ops;
	}
}

/* ---- writing ---- */

static void root_enter(struct node *node)
{
	sim_sleep(2 * rw_latency(node->rw.node, 0));
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
		sim_sleep(rw_latency(node->rw.node, queue[1]));
	node->has_root = false;
	memmove(queue, queue + 1, --queued * sizeof(queue[0]));
	if (!queued)
		return;
	next = &nodes[queue[0]];
	next->has_root = true;
	sim_wake(&next->root_wait);
}

static void write_inside(struct node *node)
{
	unsigned int i;

	for (i = 0; i < rw_config.nodes; i++) {
		struct kdsm_rw *rw = &nodes[i].rw;

		if (!test_bit(i, rw_of(rw->at)->home.registered))
			continue;
		if (nodes[i].turn != rw->turn)
			nodes[i].overtaken = 0;
		nodes[i].turn = rw->turn;
		if (++nodes[i].overtaken > rw_config.t_w)
			sim_fail(-1, "%u writers were faster than node %u", nodes[i].overtaken, i);
	}
	if (inside_writing++ || inside_reading)
		sim_fail(-1, "node %u writes, and others are there", node->rw.node);
	sim_event(-1, "writes");
	rw_counts.writes++;
	row++;
	node->knows = ++writes;
	sim_sleep(sim_below(rw_config.hold + 1));
	if (--inside_writing || inside_reading)
		sim_fail(-1, "node %u writes, and others have come", node->rw.node);
}

static void open_all(struct node *node)
{
	int err;

	if (closed)
		status = sim_chance(2) ? sim_below(4) * KDSM_RW_DEAD : 0;
	node->rw.status = status;
	while ((err = kdsm_rw_open(&node->rw))) {
		check_error(err);
		sim_sleep(100);
	}
	closed = false;
	row = 0;
}

static void write_once(struct node *node)
{
	bool give_up = sim_chance(rw_config.give_up);
	int err;

	root_enter(node);
	node->knows = writes;
	while (!closed && !give_up) {
		err = kdsm_rw_close(&node->rw);
		check_error(err);
		if (rw_broken == RW_BREAK_DRAIN && err == -EBUSY)
			err = 0;
		closed = !err;
		if (err == -EBUSY && !kdsm_rw_is_told(&node->rw))
			wait_for(&node->write_wait, &node->write_woken);
		give_up = err && sim_chance(rw_config.give_up);
	}
	if (closed)
		write_inside(node);
	if (closed && queued > 1 && (row < rw_config.t_w || rw_broken == RW_BREAK_ROW))
		kdsm_rw_pass(&node->rw);
	else if (rw_broken == RW_BREAK_EARLY && queued > 1 && closed)
		closed = false, row = 0, root_leave(node), open_all(node);
	else
		open_all(node);
	if (node->has_root)
		root_leave(node);
}

/* ---- nodes ---- */

static void run_reader(void *arg)
{
	struct node *node = arg;
	unsigned int i;

	for (i = 0; !is_over(i, rw_config.reads); i++) {
		sim_sleep(sim_below(rw_config.away + 1));
		if (rw_cost.units && sim_chance(rw_cost.share))
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

	for (i = 0; i < rw_config.writes; i++) {
		sim_sleep(sim_below(rw_config.away * 4 + 1));
		write_once(node);
	}
	active--;
}

/* Set T_DC, everywhere, one after the other. */
static void run_tuner(void *arg)
{
	unsigned int i, n, t_dc;

	(void)arg;
	for (i = 0; i < rw_config.changes; i++) {
		sim_sleep(sim_below(2000));
		t_dc = sim_between(1, rw_config.nodes);
		sim_event(-1, "sets T_DC %u", t_dc);
		for (n = 0; n < rw_config.nodes; n++) {
			rw_of(n)->t_dc = t_dc;
			sim_sleep(sim_below(50));
		}
	}
	active--;
}

void rw_nodes_start(void)
{
	unsigned int i;

	memset(nodes, 0, sizeof(nodes));
	memset(entered, 0, sizeof(entered));
	memset(wanted, 0, sizeof(wanted));
	queued = 0;
	row = 0;
	inside_reading = 0;
	inside_writing = 0;
	closed = false;
	status = 0;
	writes = 0;
	active = 1 + (1 + !rw_cost.units) * rw_config.nodes;
	end = 2000ULL * rw_cost.units;
	for (i = 0; i < rw_config.nodes; i++) {
		struct kdsm_rw *rw = &nodes[i].rw;

		rw->ops = &ops;
		rw->region = 7;
		rw->number = 3;
		rw->node = i;
		rw->nodes = rw_config.nodes;
		rw->first = rw_config.t_dc;
		rw->t_dc = rw_config.t_dc;
		rw->t_r = rw_broken == RW_BREAK_WANT ? ~0U : rw_config.t_r;
	}
}

void rw_nodes_run(void)
{
	unsigned int i;

	for (i = 0; i < rw_config.nodes; i++) {
		kdsm_rw_init(&nodes[i].rw);
		sim_spawn(i, "reader", 0, run_reader, &nodes[i]);
		if (!rw_cost.units)
			sim_spawn(i, "writer", 0, run_writer, &nodes[i]);
	}
	sim_spawn(0, "tuner", 0, run_tuner, NULL);
}

void rw_nodes_stop(void)
{
	const u64 left = KDSM_RW_WANT | KDSM_RW_WRITE | KDSM_RW_ASKED |
			 0xffff * KDSM_RW_READER;
	unsigned int i;

	for (i = 0; i < rw_config.nodes; i++) {
		rw_counts.switches += nodes[i].rw.stats.switches;
		rw_counts.row = max(rw_counts.row, nodes[i].rw.stats.row);
		kdsm_rw_exit(&nodes[i].rw);
		if (rw_word(i) & left)
			sim_fail(-1, "all have left, but node %u's counter is %016llx", i,
				 rw_word(i));
	}
}

/* How they stand, for who looks for the reason of a failure. */
void rw_nodes_tell(void)
{
	unsigned int i;

	printf("closed %u row %u queued %u active %u\n", closed, row, queued, active);
	for (i = 0; i < rw_config.nodes; i++) {
		const struct kdsm_rw *rw = &nodes[i].rw;

		printf("node %u: state %u at %u turn %u view %u told %u registered %lx "
		       "going %lx word %016llx\n", i, rw->state, rw->at, rw->turn, rw->view,
		       rw->told, rw->home.registered[0], rw->home.going[0], rw_word(i));
	}
}
