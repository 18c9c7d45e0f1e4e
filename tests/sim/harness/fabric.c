// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric of simulated nodes, behind the functions of kmod's fabric/fabric.h:
 * operations, messages, and their faults. Links delay, lose and reorder; nodes are cut
 * off. The program does each operation at its target and serves each message; the memory
 * that operations reach belongs to the program.
 */
#include <stdio.h>

#include "internal.h"

/*
 * A node is cut off while from <= now < until; U64_MAX in until: for good. From rebooted on,
 * another incarnation of the node answers the messages of other nodes.
 */
struct link {
	u64 from, until, rebooted;
};

static struct kdsm_fabric *fabrics;
static struct link *links;
static unsigned int in_flight;	/* messages, also those whose sender has given up */

/* ---- nodes ---- */

struct kdsm_fabric *sim_fabric(unsigned int node)
{
	return &fabrics[node];
}

unsigned int kdsm_fabric_node(const struct kdsm_fabric *fabric)
{
	return fabric->node;
}

void sim_cut(unsigned int node, u64 from, u64 until)
{
	links[node].from = from;
	links[node].until = until;
}

bool sim_is_cut(unsigned int node)
{
	return sim_now() >= links[node].from && sim_now() < links[node].until;
}

bool sim_is_dead(unsigned int node)
{
	return links[node].until == U64_MAX && sim_is_cut(node);
}

void sim_reboot(unsigned int node, u64 at)
{
	links[node].rebooted = at;
}

/* Whether another incarnation of the receiver answers the sender */
static bool meets_another_life(unsigned int from, unsigned int to)
{
	return from != to && !sim_is_cut(from) && sim_now() >= links[to].rebooted;
}

bool sim_are_apart(unsigned int a, unsigned int b)
{
	return a != b && (sim_is_cut(a) || sim_is_cut(b));
}

/* A number that changes when one of the nodes gives up the other: see sim_program.tie(). */
static u64 tie_of(unsigned int a, unsigned int b)
{
	return sim_program.tie ? sim_program.tie(a, b) : 0;
}

/* Whether node a reaches node b. If it does, tell the program. */
static bool hear(unsigned int a, unsigned int b)
{
	if (sim_are_apart(a, b))
		return false;
	if (sim_program.heard)
		sim_program.heard(a, b);
	return true;
}

u64 sim_latency(unsigned int from, unsigned int to)
{
	u64 us;

	if (sim_cost.units)
		return sim_cost_latency(from, to);
	us = 1 + sim_below(sim.delay);
	if (sim_chance(sim.late)) {
		us *= 30;
		sim_counts.late++;
	}
	if (from == sim.slow || to == sim.slow)
		us *= 20;
	return us;
}

/* ---- operations ---- */

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory)
{
	batch->fabric = fabric;
	batch->memory = memory;
	batch->tie = 0;
	INIT_LIST_HEAD(&batch->operations);
}

void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op)
{
	op->memory = memory;
	list_add_tail(&op->link, &batch->operations);
}

void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	kdsm_batch_add_to(batch, batch->memory, op);
}

static s64 operation_object(const struct kdsm_operation *op)
{
	return sim_program.operation_object ? sim_program.operation_object(op) : SIM_NONE;
}

void sim_operate(unsigned int from, struct kdsm_operation *op)
{
	op->status = 0;
	sim_program.operate(from, op);
}

static void lose(struct kdsm_operation *op, int status)
{
	op->result = 0xdeadULL;
	op->status = status;
	sim_counts.lost++;
}

/* A compare-and-swap that was lost, and is still under way */
struct ghost {
	struct kdsm_operation op;
	unsigned int from;
	u64 tie;
};

static void land_ghost(void *arg)
{
	struct ghost *ghost = arg;

	/* Nothing of a former connection lands after one node gave up the other. */
	if (ghost->tie == tie_of(ghost->from, ghost->op.node)) {
		sim_operate(ghost->from, &ghost->op);
		sim_event(operation_object(&ghost->op), "a late operation of node %u: %016llx",
			  ghost->from, ghost->op.result);
	}
	free(ghost);
}

static bool haunt(unsigned int from, const struct kdsm_operation *op)
{
	struct ghost *ghost;

	if (op->opcode != KDSM_OP_CAS || from == op->node || !sim_chance(sim.ghost))
		return false;
	ghost = malloc(sizeof(*ghost));
	*ghost = (struct ghost) { *op, from, tie_of(from, op->node) };
	sim_spawn(op->node, "late operation", 1 + sim_below(10000), land_ghost, ghost);
	return true;
}

/* Do an operation at its target, or lose it. in_time: no node was cut off when it started. */
static void land(struct kdsm_batch *batch, struct kdsm_operation *op, bool in_time)
{
	unsigned int node = batch->fabric->node;

	if (sim_program.may_land && !sim_program.may_land(node, batch)) {
		op->status = -EIO;
	} else if (sim_are_apart(node, op->node)) {
		if (in_time && sim_chance(2))
			sim_operate(node, op);
		lose(op, -EHOSTDOWN);
	} else if (sim_chance(sim.error)) {
		/* The initiator cannot know whether a lost operation was done, or will be. */
		if (!haunt(node, op) && sim_chance(2))
			sim_operate(node, op);
		lose(op, sim_chance(2) ? -EIO : -EHOSTDOWN);
	} else {
		sim_operate(node, op);
	}
}

static void post(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	unsigned int node = batch->fabric->node;
	bool in_time = hear(node, op->node);
	u64 tie = tie_of(node, op->node);

	sim_sleep(sim_latency(node, op->node));
	land(batch, op, in_time);
	sim_event(operation_object(op), "operation %u at node %u, %llu: %016llx, status %d",
		  op->opcode, op->node, op->offset, op->result, op->status);
	sim_sleep(sim_latency(op->node, node));
	if (sim_are_apart(node, op->node) || tie != tie_of(node, op->node))
		lose(op, -EIO);
}

/* Operations that run in fibers of their own, until the fiber that waits for all of them goes on */
struct flight {
	unsigned int left;
	struct sim_queue queue;
};

/* Operations of a batch that one fiber starts */
struct posting {
	struct kdsm_batch *batch;
	struct kdsm_operation **ops;
	unsigned int count;
	struct flight *flight;
};

static void flight_land(struct flight *flight)
{
	if (!--flight->left)
		sim_wake(&flight->queue);
}

static void flight_wait(struct flight *flight)
{
	while (flight->left) {
		sim_prepare(&flight->queue);
		sim_block(&flight->queue, U64_MAX);
	}
}

static void post_one(void *arg)
{
	struct posting *posting = arg;
	unsigned int from = posting->batch->fabric->node;

	/* Between two reads of a batch others may write, and tell of it. */
	if (sim_chance(2))
		sim_sleep(sim_between(1, 50) * sim_latency(from, posting->ops[0]->node));
	post(posting->batch, posting->ops[0]);
	flight_land(posting->flight);
}

/* Start the operations at once. They land in any order, and one while another is under way. */
static void post_together(const struct posting *from, struct kdsm_operation **ops,
			  unsigned int count)
{
	struct posting *postings = calloc(count, sizeof(*postings));
	struct flight flight = { .left = count };
	unsigned int i;

	for (i = 0; i < count; i++) {
		postings[i] = (struct posting) { from->batch, &ops[i], 1, &flight };
		sim_spawn(from->batch->fabric->node, "operation", 0, post_one, &postings[i]);
	}
	flight_wait(&flight);
	free(postings);
}

/*
 * Return how many of the operations on one node may start together, from the first one on: gets
 * up to the next ordered get.
 */
static unsigned int together(struct kdsm_operation **ops, unsigned int count)
{
	unsigned int n = 1;

	while (n < count && ops[0]->opcode == KDSM_OP_GET && ops[n]->opcode == KDSM_OP_GET &&
	       !ops[n]->ordered)
		n++;
	return n;
}

/*
 * Post the operations on one node, as a device does that has fences for ordered gets only.
 * Operations that may not start together start when the ones before have ended.
 */
static void post_chain(void *arg)
{
	struct posting *posting = arg;
	unsigned int i, n;

	for (i = 0; i < posting->count; i += n) {
		n = together(&posting->ops[i], posting->count - i);
		if (n == 1)
			post(posting->batch, posting->ops[i]);
		else
			post_together(posting, &posting->ops[i], n);
	}
	flight_land(posting->flight);
}

/* Sort the operations by node, each node's in their order. Return their number. */
static unsigned int batch_sort(struct kdsm_batch *batch, struct kdsm_operation **ops)
{
	struct kdsm_operation *op;
	unsigned int count = 0, i;

	list_for_each_entry(op, &batch->operations, link) {
		for (i = count++; i && ops[i - 1]->node > op->node; i--)
			ops[i] = ops[i - 1];
		ops[i] = op;
	}
	return count;
}

/* Operations on different nodes overlap. */
static void post_batch(struct kdsm_batch *batch, unsigned int count)
{
	struct kdsm_operation **ops = calloc(count, sizeof(*ops));
	struct posting *postings = calloc(count, sizeof(*postings));
	struct flight flight = { .left = 0 };
	unsigned int i, n;

	batch_sort(batch, ops);
	for (i = 0; i < count; i += n) {
		for (n = 1; i + n < count && ops[i + n]->node == ops[i]->node; n++)
			;
		postings[flight.left++] = (struct posting) { batch, &ops[i], n, &flight };
	}
	for (i = 1; i < flight.left; i++)
		sim_spawn(batch->fabric->node, "chain", 0, post_chain, &postings[i]);
	post_chain(&postings[0]);
	flight_wait(&flight);
	free(postings);
	free(ops);
}

void kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_operation *op;
	unsigned int count = 0;

	sim_might_sleep();
	list_for_each_entry(op, &batch->operations, link) {
		sim_counts.operations++;
		count++;
		if (op->node >= sim.nodes)
			sim_fail(SIM_NONE, "an operation at node %u", op->node);
	}
	if (sim_cost.units)
		sim_cost_post(batch);
	else
		post_batch(batch, count);
}

int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state)
{
	sim_yield();
	return 0;
}

void kdsm_batch_finish(struct kdsm_batch *batch)
{
}

/* ---- messages ---- */

bool sim_fabric_is_quiet(void)
{
	return !in_flight;
}

static const char *name(const struct sim_message *message)
{
	return sim_program.message_name[message->type];
}

static s64 message_object(const struct sim_message *message)
{
	return sim_program.message_object ? sim_program.message_object(message) : SIM_NONE;
}

static void serve(struct sim_message *message)
{
	struct kdsm_request request = {
		.from = message->from,
		.can_sleep = true,
		.data = message->data,
		.length = message->length,
		.reply = message->reply,
	};

	if (!name(message))
		sim_fail(SIM_NONE, "a message of type %u", message->type);
	message->status = sim_program.serve(message, &request);
	if (request.reply_length > sizeof(message->reply))
		sim_fail(SIM_NONE, "a reply of %u bytes", request.reply_length);
	message->reply_length = request.reply_length;
}

static void serve_stray(void *arg)
{
	struct sim_message *message = arg;

	/* No message of a former connection arrives after one node gave up the other. */
	if (message->tie == tie_of(message->from, message->to))
		serve(message);
	in_flight--;
	free(message);
}

void sim_send_stray(const struct sim_message *message)
{
	struct sim_message *copy = malloc(sizeof(*copy));

	*copy = *message;
	copy->stray = true;
	copy->tie = tie_of(message->from, message->to);
	in_flight++;
	sim_counts.stray++;
	sim_spawn(message->to, "serves stray",
		  1 + sim_below(sim_chance(2) ? sim.stray : 1000000), serve_stray, copy);
}

static void lose_request(struct sim_message *message, bool cut)
{
	if (!cut && sim_program.lacks_memory && sim_chance(8)) {
		message->status = -ENOMEM;
		sim_event(message_object(message), "%s from node %u is not sent: no memory",
			  name(message), message->from);
		return;
	}
	if (sim_chance(2))
		sim_send_stray(message);
	sim_counts.lost++;
	/* A message to a node that has just gone fails before the sender knows that it has */
	message->status = sim_chance(4) != cut ? -EHOSTDOWN : -EIO;
	sim_event(message_object(message), "%s from node %u is lost: %d", name(message),
		  message->from, message->status);
}

/* Lose the reply to a message that the receiver has served. */
static void lose_reply(struct sim_message *message)
{
	if (sim_chance(4))
		sim_send_stray(message);
	sim_counts.lost++;
	message->status = sim_chance(2) ? -EIO : -ETIMEDOUT;
	sim_event(message_object(message), "the reply to %s from node %u is lost: %d",
		  name(message), message->from, message->status);
}

/* The fiber of a message at the receiver: serve or lose the message, and wake the sender. */
static void deliver(void *arg)
{
	struct sim_message *message = arg;
	bool cut = !hear(message->from, message->to);
	u64 tie = tie_of(message->from, message->to);

	if (meets_another_life(message->from, message->to)) {
		message->status = -ENOENT;
		sim_sleep(sim_latency(message->to, message->from));
		sim_event(message_object(message), "%s from node %u meets another life",
			  name(message), message->from);
	} else if (cut || sim_chance(sim.error)) {
		/* A node that the sender has missed before fails messages at once. */
		if (cut && sim.silence && !(sim_is_dead(message->to) && sim_chance(2)))
			sim_sleep(sim.silence);
		lose_request(message, cut);
	} else {
		if (sim_cost.units) {
			sim_sleep(sim_cost.extra);
			sim_cost_serve(message->to);
		}
		serve(message);
		sim_sleep(sim_latency(message->to, message->from) + sim_cost.extra);
		cut = sim_are_apart(message->from, message->to) ||
		      tie != tie_of(message->from, message->to);
		if (cut || sim_chance(sim.error))
			lose_reply(message);
	}
	if (sim_program.delivered)
		sim_program.delivered(message, cut);
	message->done = true;
	in_flight--;
	sim_wake(&message->queue);
}

static void send(struct sim_message *message)
{
	char fiber[32];

	in_flight++;
	snprintf(fiber, sizeof(fiber), "serves %s", name(message) ?: "?");
	sim_spawn(message->to, fiber, sim_latency(message->from, message->to), deliver, message);
	while (!message->done) {
		sim_prepare(&message->queue);
		sim_block(&message->queue, U64_MAX);
	}
}

int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length)
{
	struct sim_message *message = calloc(1, sizeof(*message));
	int status;

	sim_might_sleep();
	if (node >= sim.nodes || length > sizeof(message->data))
		sim_fail(SIM_NONE, "a message of %u bytes to node %u", length, node);
	sim_counts.messages++;
	message->from = fabric->node;
	message->to = node;
	message->type = type;
	message->length = length;
	memcpy(message->data, data, length);
	if (sim_program.send)
		sim_program.send(message);
	if (node == fabric->node)
		serve(message);
	else
		send(message);
	status = message->status;
	if (reply && !status) {
		if (message->reply_length > *reply_length)
			sim_fail(SIM_NONE, "a reply of %u bytes, and room for %u",
				 message->reply_length, *reply_length);
		*reply_length = message->reply_length;
		memcpy(reply, message->reply, message->reply_length);
	}
	free(message);
	return status;
}

/* Requests to several nodes, each in a fiber of the sender */
struct kdsm_broadcast {
	struct kdsm_fabric *fabric;
	enum kdsm_message_type type;
	u8 data[KDSM_MESSAGE_ROOM];
	unsigned int length, left, references;
	struct sim_queue done;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES);
	int statuses[];			/* by node */
};

struct sending {
	struct kdsm_broadcast *broadcast;
	unsigned int node;
};

static void broadcast_put(struct kdsm_broadcast *broadcast)
{
	if (!--broadcast->references)
		free(broadcast);
}

static void send_one(void *arg)
{
	struct sending *sending = arg;
	struct kdsm_broadcast *broadcast = sending->broadcast;

	in_flight--;
	broadcast->statuses[sending->node] =
		kdsm_message(broadcast->fabric, sending->node, broadcast->type, broadcast->data,
			     broadcast->length, NULL, NULL);
	if (!--broadcast->left)
		sim_wake(&broadcast->done);
	broadcast_put(broadcast);
	free(sending);
}

/*
 * How long a message is under way before it is sent that no task waits for: its worker may wait
 * for a connection, while nodes give up others, and these come back.
 */
static u64 wait_for_connection(void)
{
	return sim.silence && !sim_cost.units && sim_chance(6) ? sim_below(10 * sim.silence) : 0;
}

/*
 * Start the requests, which the caller waits for or not. The caller has a reference to the result;
 * NULL: no memory.
 */
static struct kdsm_broadcast *broadcast_send(struct kdsm_fabric *fabric,
					     const unsigned long *nodes,
					     enum kdsm_message_type type, const void *data,
					     unsigned int length, bool waits)
{
	struct kdsm_broadcast *broadcast;
	struct sending *sending;
	unsigned int node;

	if (sim_no_memory())
		return NULL;
	broadcast = calloc(1, sizeof(*broadcast) + sim.nodes * sizeof(int));
	broadcast->fabric = fabric;
	broadcast->type = type;
	broadcast->length = length;
	memcpy(broadcast->data, data, length);
	broadcast->references = 1;
	bitmap_copy(broadcast->nodes, nodes, sim.nodes);
	for_each_set_bit(node, nodes, sim.nodes) {
		sending = malloc(sizeof(*sending));
		*sending = (struct sending) { broadcast, node };
		broadcast->statuses[node] = -ETIMEDOUT;
		broadcast->left++;
		broadcast->references++;
		in_flight++;
		sim_spawn(fabric->node, "sends", waits ? 0 : wait_for_connection(), send_one,
			  sending);
	}
	return broadcast;
}

struct kdsm_broadcast *kdsm_broadcast_begin(struct kdsm_fabric *fabric,
					    const unsigned long *nodes,
					    enum kdsm_message_type type, const void *data,
					    unsigned int length)
{
	struct kdsm_broadcast *broadcast;

	sim_might_sleep();
	broadcast = broadcast_send(fabric, nodes, type, data, length, true);
	return broadcast ?: ERR_PTR(-ENOMEM);
}

int kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses, unsigned long timeout,
		       unsigned int state)
{
	unsigned int node;

	sim_might_sleep();
	if (timeout != MAX_SCHEDULE_TIMEOUT)
		sim_fail(SIM_NONE, "a broadcast with a timeout");
	while (broadcast->left) {
		sim_prepare(&broadcast->done);
		sim_block(&broadcast->done, U64_MAX);
	}
	for_each_set_bit(node, broadcast->nodes, sim.nodes)
		statuses[node] = broadcast->statuses[node];
	broadcast_put(broadcast);
	return 0;
}

void kdsm_broadcast_start(struct kdsm_fabric *fabric, const unsigned long *nodes,
			  enum kdsm_message_type type, const void *data, unsigned int length)
{
	struct kdsm_broadcast *broadcast;

	sim_might_sleep();
	if (bitmap_empty(nodes, sim.nodes))
		return;
	broadcast = broadcast_send(fabric, nodes, type, data, length, false);
	if (broadcast)
		broadcast_put(broadcast);
}

/* ---- start and stop ---- */

void sim_fabric_heal(void)
{
	unsigned int i;

	sim.error = 0;
	sim.pause = 1;
	for (i = 0; i < sim.nodes; i++)
		if (!sim_is_dead(i))
			links[i] = (struct link) { .rebooted = U64_MAX };
}

void sim_fabric_start(void)
{
	unsigned int i;

	in_flight = 0;
	fabrics = calloc(sim.nodes, sizeof(*fabrics));
	links = calloc(sim.nodes, sizeof(*links));
	for (i = 0; i < sim.nodes; i++) {
		fabrics[i].node = i;
		links[i].rebooted = U64_MAX;
	}
	sim_cost_start();
}

void sim_fabric_stop(void)
{
	sim_cost_stop();
	free(links);
	free(fabrics);
}
