// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric of the nodes that queue for a lock: a memory at each, whose words the
 * device changes, messages, and what gets lost of both.
 */
#include <stdio.h>

#include "lock.h"

static struct kdsm_memory memory;
static u8 *bytes[LOCK_NODES];
static u64 size;
static struct kdsm_fabric fabrics[LOCK_NODES];
static unsigned int under_way;
static s64 allocated;

void *sim_alloc(size_t size, bool zero)
{
	(void)zero;
	allocated++;
	return calloc(1, size);
}

void sim_free(void *p)
{
	if (p)
		allocated--;
	free(p);
}

bool sim_quiet(void)
{
	return !under_way;
}

static u64 delay(void)
{
	u64 us = 1 + sim_below(sim.delay);

	return sim_chance(sim.late) ? us * 30 : us;
}

/* ---- operations ---- */

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory)
{
	batch->fabric = fabric;
	batch->memory = memory;
	INIT_LIST_HEAD(&batch->operations);
}

void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	op->memory = batch->memory;
	list_add_tail(&op->link, &batch->operations);
}

/* Byte by byte, which is worse than any device does to a word. */
static void copy_torn(void *to, const void *from, unsigned int length)
{
	unsigned int i, at = sim_below(length);

	for (i = 0; i < length; i++, at++) {
		((char *)to)[at % length] = ((const char *)from)[at % length];
		if (sim_chance(8))
			sim_yield();
	}
}

static void operate(struct kdsm_operation *op)
{
	u64 *word = (u64 *)(bytes[op->node] + op->offset), place = kdsm_queue_size(lock.nodes);

	if (op->node >= lock.nodes || op->offset + op->length > size)
		sim_fail(-1, "an operation on a wrong place");
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
		if (kdsm_word_count(op->compare) && op->offset % place == 0 &&
		    kdsm_word_tail(op->operand) != kdsm_word_tail(op->compare))
			lock_renewed(op->node, op->offset / place + 1,
				     kdsm_word_tail(op->compare));
		break;
	default:
		op->result = *word;
		*word += op->operand;
		if (op->operand >> 33 == 1)
			sim_event(-1, "is given ticket %u", kdsm_word_tail(op->result));
		break;
	}
}

void kdsm_batch_post(struct kdsm_batch *batch)
{
	unsigned int node = batch->fabric->node;
	struct kdsm_operation *op;

	sim_might_sleep();
	list_for_each_entry(op, &batch->operations, link) {
		bool was_cut = lock_is_cut(node, op->node);

		if (!was_cut)
			lock_greet(node, op->node);
		sim_sleep(delay());
		op->status = 0;
		if (!lock_may_land(node, batch->tie)) {
			op->status = -EIO;
		} else if (lock_is_cut(node, op->node)) {
			/* It was under way. */
			if (!was_cut && sim_chance(2))
				operate(op);
			op->result = 0xdeadULL;
			op->status = -EHOSTDOWN;
		} else if (sim_chance(sim.error)) {
			/* Whether it was done is not known. */
			if (sim_chance(2))
				operate(op);
			op->result = 0xdeadULL;
			op->status = sim_chance(2) ? -EIO : -EHOSTDOWN;
		} else {
			operate(op);
		}
		sim_event(-1, "operation %u at %llu: %016llx, status %d", op->opcode,
			  op->offset, op->result, op->status);
		sim_sleep(delay());
		if (lock_is_cut(node, op->node)) {
			op->result = 0xdeadULL;
			op->status = -EIO;
		}
	}
}

int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state)
{
	(void)batch;
	(void)timeout_ns;
	(void)state;
	sim_yield();
	return 0;
}

void kdsm_batch_finish(struct kdsm_batch *batch)
{
	(void)batch;
}

unsigned int __wrap_kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket)
{
	unsigned int node = (queue->window[i].who & 0xffff) - 1;

	if (lock_broken != LOCK_BREAK_RING)
		return __real_kdsm_ring_node(queue, i, ticket);
	return node < queue->nodes && node != queue->node ? node : KDSM_NOBODY;
}

/* ---- messages ---- */

struct message {
	unsigned int from, to;
	enum kdsm_message_type type;
	u8 data[KDSM_MESSAGE_ROOM], reply[KDSM_MESSAGE_ROOM];
	unsigned int length, reply_length;
	int status;
	bool done;
	struct sim_queue queue;
};

static void break_carried(struct message *message)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;
	struct kdsm_wire_carried *carried = kdsm_wire_carried(hand, hand->known);
	unsigned int i;

	if (lock_broken == LOCK_BREAK_CARRY)
		message->length = kdsm_wire_hand_size(hand->known, hand->count = 0);
	for (i = 0; i < hand->count; i++) {
		if (lock_broken == LOCK_BREAK_ID)
			carried[i].id = message->to + 1;
		if (lock_broken == LOCK_BREAK_PASSES)
			carried[i].passes = 0;
	}
}

static void serve(struct message *message)
{
	struct kdsm_wire_lock_hand *hand = (void *)message->data;
	struct kdsm_queue *queue = kdsm_tree_queue(lock_tree(message->to), hand->lock.level);
	struct kdsm_request request = {
		.from = message->from,
		.data = message->data,
		.reply = message->reply,
	};

	if (!queue)
		sim_fail(-1, "message %u of node %u for a queue that node %u does not know",
			 message->type, message->from, message->to);
	request.length = message->length;
	switch (message->type) {
	case KDSM_MESSAGE_LOCK_TELL:
		message->status = lock_broken == LOCK_BREAK_TELL ? 0 :
				  kdsm_queue_serve_tell(queue, &request);
		break;
	case KDSM_MESSAGE_LOCK_HAND:
		if (lock_broken == LOCK_BREAK_DEBT)
			hand->debt = 0;
		if (lock_broken == LOCK_BREAK_OLD)
			queue->has_held = false;
		break_carried(message);
		request.length = message->length;
		message->status = kdsm_queue_serve_hand(queue, &request);
		break;
	case KDSM_MESSAGE_LOCK_LOOK:
		message->status = kdsm_queue_serve_look(queue, &request);
		break;
	case KDSM_MESSAGE_LOCK_MEET:
		message->status = kdsm_queue_serve_meet(queue, &request);
		break;
	case KDSM_MESSAGE_LOCK_FREEZE:
		if (lock_broken == LOCK_BREAK_BUSY)
			queue->busy = false;
		message->status = kdsm_queue_serve_freeze(queue, &request);
		if (lock_broken == LOCK_BREAK_GONE)
			((struct kdsm_wire_lock_report *)message->reply)->to = KDSM_NOBODY;
		if (lock_broken == LOCK_BREAK_THAW)
			queue->frozen = false;
		if (lock_broken == LOCK_BREAK_WITH && queue->state == KDSM_QUEUE_HELD)
			((struct kdsm_wire_lock_report *)message->reply)->state = KDSM_QUEUE_HELD;
		break;
	case KDSM_MESSAGE_LOCK_RESUME:
		if (lock_broken == LOCK_BREAK_RESUME)
			hand->lock.epoch = queue->epoch;
		message->status = kdsm_queue_serve_resume(queue, &request);
		if (lock_broken == LOCK_BREAK_DEAD)
			queue->baton.flags &= ~KDSM_BATON_DEAD;
		if (lock_broken == LOCK_BREAK_FLAT) {
			queue->flat = false;
			for (queue = queue->child; queue; queue = queue->child)
				queue->frozen = false;
		}
		break;
	default:
		sim_fail(-1, "a message of unknown type");
	}
	if (message->status == -EINVAL)
		sim_fail(-1, "message %u of node %u makes no sense to node %u", message->type,
			 message->from, message->to);
	if (message->status == -ESTALE && !sim.error && !lock.old && !lock.deaths &&
	    !lock.home_dies)
		sim_fail(-1, "nothing is lost, but node %u does not wait for what node %u hands it",
			 message->to, message->from);
	message->reply_length = request.reply_length;
	sim_event(-1, "%s of node %u, level %u, ticket %u, epoch %u: %d",
		  message->type == KDSM_MESSAGE_LOCK_TELL ? "TELL" :
		  message->type == KDSM_MESSAGE_LOCK_HAND ? "HAND" :
		  message->type == KDSM_MESSAGE_LOCK_LOOK ? "LOOK" :
		  message->type == KDSM_MESSAGE_LOCK_MEET ? "MEET" :
		  message->type == KDSM_MESSAGE_LOCK_FREEZE ? "FREEZE" : "RESUME",
		  message->from, hand->lock.level, hand->lock.ticket, hand->lock.epoch,
		  message->status);
}

static void serve_late(void *arg)
{
	struct message *message = arg;

	serve(message);
	while (lock_broken == LOCK_BREAK_EARLY && message->status == -EBUSY) {
		sim_sleep(1);
		serve(message);
	}
	under_way--;
	free(message);
}

static void send_late(const struct message *message)
{
	struct message *copy = malloc(sizeof(*copy));

	*copy = *message;
	under_way++;
	sim_spawn(message->to, "serves late", 1 + sim_below(sim_chance(2) ? 1000 : 1000000),
		  serve_late, copy);
}

static void deliver(void *arg)
{
	struct message *message = arg;
	bool cut = lock_is_cut(message->from, message->to);

	if (!cut)
		lock_greet(message->from, message->to);
	if (cut || sim_chance(sim.error)) {
		if (sim_chance(2))
			send_late(message);
		message->status = cut || sim_chance(4) ? -EHOSTDOWN : -EIO;
	} else {
		serve(message);
		sim_sleep(delay());
		cut = lock_is_cut(message->from, message->to);
		if (cut || sim_chance(sim.error)) {
			if (sim_chance(4))
				send_late(message);
			message->status = sim_chance(2) ? -EIO : -ETIMEDOUT;
		}
	}
	if (lock_broken == LOCK_BREAK_EARLY && message->type == KDSM_MESSAGE_LOCK_HAND &&
	    message->status == -EBUSY) {
		send_late(message);
		message->status = 0;
	}
	if (lock_broken == LOCK_BREAK_HAND && message->type == KDSM_MESSAGE_LOCK_HAND &&
	    !kdsm_message_was_heard(message->status))
		message->status = 0;
	/* Who does not answer may have taken it. */
	if (cut && message->type == KDSM_MESSAGE_LOCK_HAND)
		lock_may_tell = true;
	message->done = true;
	under_way--;
	sim_wake(&message->queue);
}

int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length)
{
	struct message *message = calloc(1, sizeof(*message));
	int status;

	sim_might_sleep();
	if (node >= lock.nodes || node == fabric->node || length > sizeof(message->data))
		sim_fail(-1, "a message to node %u", node);
	message->from = fabric->node;
	message->to = node;
	message->type = type;
	message->length = length;
	memcpy(message->data, data, length);
	sim_counts.messages++;
	under_way++;
	sim_spawn(node, "serves", delay(), deliver, message);
	while (!message->done) {
		sim_prepare(&message->queue);
		sim_block(&message->queue, U64_MAX);
	}
	status = message->status;
	if (reply && !status) {
		*reply_length = message->reply_length;
		memcpy(reply, message->reply, message->reply_length);
	}
	free(message);
	return status;
}

/* ---- start and stop ---- */

u64 lock_word(const struct kdsm_queue *queue)
{
	return *(u64 *)(bytes[queue->home] + queue->word);
}

/* As the ring was when the tickets that come were given the last time. */
static void lock_ring_old(const struct kdsm_queue *queue)
{
	struct kdsm_ring_entry *ring = (void *)(bytes[queue->home] + queue->ring);
	u32 i, ticket;

	for (i = 0; i <= queue->ring_mask; i++) {
		ticket = (lock.ticket + i) & KDSM_TICKET_MASK;
		kdsm_ring_name(&ring[ticket & queue->ring_mask], ticket, sim_below(lock.nodes));
	}
}

void lock_fabric_start(void)
{
	unsigned int i, j;

	under_way = 0;
	size = (lock_tree(0)->levels - 1) * kdsm_queue_size(lock.nodes);
	for (i = 0; i < lock.nodes; i++) {
		fabrics[i].node = i;
		bytes[i] = calloc(1, size);
		for (j = 0; j < size; j += kdsm_queue_size(lock.nodes))
			*(u64 *)(bytes[i] + j) = lock.ticket * KDSM_WORD_TAIL;
	}
	for (i = 0; i < lock.nodes; i++) {
		for (j = 0; j < lock_tree(i)->count; j++) {
			lock_tree(i)->queues[j]->fabric = &fabrics[i];
			lock_tree(i)->queues[j]->memory = &memory;
			if (lock.old)
				lock_ring_old(lock_tree(i)->queues[j]);
		}
	}
}

void lock_fabric_stop(void)
{
	unsigned int i;

	for (i = 0; i < lock.nodes; i++)
		free(bytes[i]);
	if (allocated)
		sim_fail(-1, "%lld allocations were not freed", (long long)allocated);
}
