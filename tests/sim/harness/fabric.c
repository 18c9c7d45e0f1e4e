// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric of simulated nodes, behind the functions of kmod's fabric/fabric.h:
 * operations, messages, and their faults. Links delay, lose and reorder; nodes are cut
 * off. The program does each operation at its target and serves each message; the memory
 * that operations reach belongs to the program.
 */
#include <stdio.h>

#include "internal.h"

/* A node is cut off while from <= now < until. */
struct link {
	u64 from, until;
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

unsigned int kdsm_fabric_nodes(const struct kdsm_fabric *fabric)
{
	return sim.nodes;
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

bool sim_are_apart(unsigned int a, unsigned int b)
{
	return a != b && (sim_is_cut(a) || sim_is_cut(b));
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
		/* The initiator cannot know whether a lost operation was done. */
		if (sim_chance(2))
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

	sim_sleep(sim_latency(node, op->node));
	land(batch, op, in_time);
	sim_event(operation_object(op), "operation %u at node %u, %llu: %016llx, status %d",
		  op->opcode, op->node, op->offset, op->result, op->status);
	sim_sleep(sim_latency(op->node, node));
	if (sim_are_apart(node, op->node))
		lose(op, -EIO);
}

/*
 * Return how many operations may start together, from the first one on: gets from one node up to
 * the next ordered get.
 */
static unsigned int together(struct kdsm_batch *batch, struct kdsm_operation *first)
{
	struct kdsm_operation *op = list_next_entry(first, link);
	unsigned int count = 1;

	while (first->opcode == KDSM_OP_GET &&
	       !list_entry_is_head(op, &batch->operations, link) &&
	       op->opcode == KDSM_OP_GET && op->node == first->node && !op->ordered) {
		op = list_next_entry(op, link);
		count++;
	}
	return count;
}

/*
 * Do the first count operations in any order, as a device does that has fences for ordered gets
 * only. Return the operation after them.
 */
static struct kdsm_operation *post_together(struct kdsm_batch *batch,
					    struct kdsm_operation *first, unsigned int count)
{
	struct kdsm_operation *op;
	unsigned int i;

	for (; count; count--) {
		op = first;
		for (i = count > 1 ? sim_below(count) : 0; i; i--)
			op = list_next_entry(op, link);
		/* Keep what is done before what is left. */
		if (op == first)
			first = list_next_entry(first, link);
		else
			list_move_tail(&op->link, &first->link);
		post(batch, op);
		/* Between two reads others may write, and tell of it. */
		if (count > 1 && sim_chance(2))
			sim_sleep(sim_between(1, 50) * sim_latency(batch->fabric->node, op->node));
	}
	return first;
}

/* Operations that may not start together start when the one before has ended. */
void kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_operation *op;

	sim_might_sleep();
	list_for_each_entry(op, &batch->operations, link) {
		sim_counts.operations++;
		if (op->node >= sim.nodes)
			sim_fail(SIM_NONE, "an operation at node %u", op->node);
	}
	if (sim_cost.units) {
		sim_cost_post(batch);
		return;
	}
	op = list_first_entry(&batch->operations, struct kdsm_operation, link);
	while (!list_entry_is_head(op, &batch->operations, link))
		op = post_together(batch, op, together(batch, op));
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

	serve(message);
	in_flight--;
	free(message);
}

void sim_send_stray(const struct sim_message *message)
{
	struct sim_message *copy = malloc(sizeof(*copy));

	*copy = *message;
	copy->stray = true;
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
	message->status = cut || sim_chance(4) ? -EHOSTDOWN : -EIO;
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

	if (cut && sim.silence)
		sim_sleep(sim.silence);
	if (cut || sim_chance(sim.error)) {
		lose_request(message, cut);
	} else {
		if (sim_cost.units)
			sim_cost_serve(message->to);
		serve(message);
		sim_sleep(sim_latency(message->to, message->from));
		cut = sim_are_apart(message->from, message->to);
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

/* ---- start and stop ---- */

void sim_fabric_heal(void)
{
	sim.error = 0;
	sim.pause = 1;
	memset(links, 0, sim.nodes * sizeof(*links));
}

void sim_fabric_start(void)
{
	unsigned int i;

	in_flight = 0;
	fabrics = calloc(sim.nodes, sizeof(*fabrics));
	links = calloc(sim.nodes, sizeof(*links));
	for (i = 0; i < sim.nodes; i++)
		fabrics[i].node = i;
	sim_cost_start();
}

void sim_fabric_stop(void)
{
	sim_cost_stop();
	free(links);
	free(fabrics);
}
