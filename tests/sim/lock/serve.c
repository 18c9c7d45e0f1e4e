// SPDX-License-Identifier: GPL-2.0
/*
 * A node as the target of operations and messages: the words and rings of the queues
 * whose home it is, and calls of the handlers of kmod/lock/queue.h. Defects that change the
 * target's actions are here.
 */
#include <stdio.h>

#include "sim.h"

static u8 **bytes;		/* of each node, size of them */
static u64 size;

static u64 *word_at(unsigned int node, u64 offset)
{
	return (u64 *)(bytes[node] + offset);
}

u64 queue_word(const struct kdsm_queue *queue)
{
	return *word_at(queue->home, queue->word);
}

/* ---- operations ---- */

/* Copy byte by byte, beginning with any byte: no device tears a word more than that. */
static void copy_torn(void *to, const void *from, unsigned int length)
{
	unsigned int i, at = sim_below(length);

	for (i = 0; i < length; i++, at++) {
		((char *)to)[at % length] = ((const char *)from)[at % length];
		if (sim_chance(8))
			sim_yield();
	}
}

/* After a swap of a queue's word: the holder may have left and queued again in one step. */
static void note_renewal(const struct kdsm_operation *op)
{
	u64 place = kdsm_queue_size(sim.nodes);

	if (kdsm_word_count(op->compare) && op->offset % place == 0 &&
	    kdsm_word_tail(op->operand) != kdsm_word_tail(op->compare))
		ticket_renewed(op->node, op->offset / place + 1, kdsm_word_tail(op->compare));
}

void serve_operation(unsigned int from, struct kdsm_operation *op)
{
	u64 *word = word_at(op->node, op->offset);

	if (op->offset + op->length > size)
		sim_fail(SIM_NONE, "an operation of %u bytes at %llu", op->length, op->offset);
	switch (op->opcode) {
	case KDSM_OP_GET:
		copy_torn(op->data, word, op->length);
		break;
	case KDSM_OP_PUT:
		copy_torn(word, op->data, op->length);
		break;
	case KDSM_OP_CAS:
		op->result = *word;
		if (*word != op->compare)
			break;
		*word = op->operand;
		note_renewal(op);
		break;
	default:
		op->result = *word;
		*word += op->operand;
		if (op->operand >> 33 == 1)
			sim_event(SIM_NONE, "gets ticket %u", kdsm_word_tail(op->result));
		break;
	}
}

unsigned int __wrap_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket)
{
	unsigned int node = (queue->window[i].who & 0xffff) - 1;

	if (sim_broken != BREAK_RING)
		return __real_kdsm_ring_node(queue, i, ticket);
	return node < queue->nodes && node != queue->node ? node : KDSM_NOBODY;
}

/* ---- messages ---- */

const char *const message_names[KDSM_MESSAGE_TYPES] = {
	[KDSM_MESSAGE_LOCK_TELL] = "TELL",
	[KDSM_MESSAGE_LOCK_HAND] = "HAND",
	[KDSM_MESSAGE_LOCK_LOOK] = "LOOK",
	[KDSM_MESSAGE_LOCK_MEET] = "MEET",
	[KDSM_MESSAGE_LOCK_FREEZE] = "FREEZE",
	[KDSM_MESSAGE_LOCK_RESUME] = "RESUME",
};

static void break_carried(struct sim_message *message)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;
	struct kdsm_wire_carried *carried = kdsm_wire_carried(hand, hand->known);
	unsigned int i;

	if (sim_broken == BREAK_CARRY) {
		hand->count = 0;
		message->length = kdsm_wire_hand_size(hand->known, 0);
	}
	for (i = 0; i < hand->count; i++) {
		if (sim_broken == BREAK_ID)
			carried[i].id = message->to + 1;
		if (sim_broken == BREAK_PASSES)
			carried[i].passes = 0;
	}
}

static int serve_hand(struct kdsm_queue *queue, struct sim_message *message,
		      struct kdsm_request *request)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;

	if (sim_broken == BREAK_DEBT)
		hand->debt = 0;
	if (sim_broken == BREAK_OLD)
		queue->has_held = false;
	break_carried(message);
	request->length = message->length;
	return kdsm_queue_serve_hand(queue, request);
}

static int serve_freeze(struct kdsm_queue *queue, struct sim_message *message,
			struct kdsm_request *request)
{
	struct kdsm_wire_lock_report *report = (void *)message->reply;
	int status;

	if (sim_broken == BREAK_BUSY)
		queue->busy = false;
	status = kdsm_queue_serve_freeze(queue, request);
	if (sim_broken == BREAK_GONE)
		report->to = KDSM_NOBODY;
	if (sim_broken == BREAK_THAW)
		queue->frozen = false;
	if (sim_broken == BREAK_WITH && queue->state == KDSM_QUEUE_HELD)
		report->state = KDSM_QUEUE_HELD;
	return status;
}

static int serve_resume(struct kdsm_queue *queue, struct sim_message *message,
			struct kdsm_request *request)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;
	int status;

	if (sim_broken == BREAK_RESUME)
		hand->lock.epoch = queue->epoch;
	status = kdsm_queue_serve_resume(queue, request);
	if (sim_broken == BREAK_DEAD)
		queue->baton.flags &= ~KDSM_BATON_DEAD;
	if (sim_broken == BREAK_FLAT) {
		queue->flat = false;
		for (queue = queue->child; queue; queue = queue->child)
			queue->frozen = false;
	}
	return status;
}

static int dispatch(struct kdsm_queue *queue, struct sim_message *message,
		    struct kdsm_request *request)
{
	switch (message->type) {
	case KDSM_MESSAGE_LOCK_TELL:
		return sim_broken == BREAK_TELL ? 0 : kdsm_queue_serve_tell(queue, request);
	case KDSM_MESSAGE_LOCK_HAND:
		return serve_hand(queue, message, request);
	case KDSM_MESSAGE_LOCK_LOOK:
		return kdsm_queue_serve_look(queue, request);
	case KDSM_MESSAGE_LOCK_MEET:
		return kdsm_queue_serve_meet(queue, request);
	case KDSM_MESSAGE_LOCK_FREEZE:
		return serve_freeze(queue, message, request);
	default:
		return serve_resume(queue, message, request);
	}
}

static int serve_once(struct sim_message *message, struct kdsm_request *request)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;
	const char *name = message_names[message->type];
	struct kdsm_queue *queue = kdsm_tree_queue(tree_of(message->to), hand->lock.level);
	int status;

	if (!queue)
		sim_fail(SIM_NONE, "node %u does not know the queue of %s from node %u",
			 message->to, name, message->from);
	status = dispatch(queue, message, request);
	if (status == -EINVAL)
		sim_fail(SIM_NONE, "node %u refuses %s from node %u", message->to, name,
			 message->from);
	if (status == -ESTALE && !sim.error && !config.old && !config.deaths &&
	    !config.home_dies)
		sim_fail(SIM_NONE, "node %u does not wait for what node %u hands over, although nothing is lost",
			 message->to, message->from);
	sim_event(SIM_NONE, "%s from node %u, level %u, ticket %u, epoch %u: %d", name,
		  message->from, hand->lock.level, hand->lock.ticket, hand->lock.epoch, status);
	return status;
}

int serve_message(struct sim_message *message, struct kdsm_request *request)
{
	int status = serve_once(message, request);

	while (sim_broken == BREAK_EARLY && message->stray && status == -EBUSY) {
		sim_sleep(1);
		status = serve_once(message, request);
	}
	return status;
}

void message_send(const struct sim_message *message)
{
	if (message->to == message->from)
		sim_fail(SIM_NONE, "a message from node %u to itself", message->to);
}

void message_delivered(struct sim_message *message, bool cut)
{
	if (message->type != KDSM_MESSAGE_LOCK_HAND)
		return;
	if (sim_broken == BREAK_EARLY && message->status == -EBUSY) {
		sim_send_stray(message);
		message->status = 0;
	}
	if (sim_broken == BREAK_HAND && !kdsm_message_was_heard(message->status))
		message->status = 0;
	/* A node that is cut off may have taken the lock before the cut. */
	may_tell |= cut;
}

/* ---- start and stop ---- */

/* Fill the ring with entries as the use of the same tickets one wrap before left them. */
static void fill_ring(const struct kdsm_queue *queue)
{
	struct kdsm_ring_entry *ring = (void *)word_at(queue->home, queue->ring);
	u32 i, ticket;

	for (i = 0; i <= queue->ring_mask; i++) {
		ticket = (config.ticket + i) & KDSM_TICKET_MASK;
		kdsm_ring_name(&ring[ticket & queue->ring_mask], ticket, sim_below(sim.nodes));
	}
}

void serve_start(void)
{
	u64 place = kdsm_queue_size(sim.nodes), at;
	unsigned int i, j;

	size = (tree_of(0)->levels - 1) * place;
	bytes = calloc(sim.nodes, sizeof(*bytes));
	for (i = 0; i < sim.nodes; i++) {
		bytes[i] = calloc(1, size);
		for (at = 0; at < size; at += place)
			*word_at(i, at) = config.ticket * KDSM_WORD_TAIL;
	}
	for (i = 0; i < sim.nodes; i++)
		for (j = 0; j < tree_of(i)->count; j++) {
			tree_of(i)->queues[j]->fabric = sim_fabric(i);
			if (config.old)
				fill_ring(tree_of(i)->queues[j]);
		}
}

void serve_stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		free(bytes[i]);
	free(bytes);
}
