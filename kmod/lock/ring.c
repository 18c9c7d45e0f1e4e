// SPDX-License-Identifier: GPL-2.0
/*
 * Of the queue for a lock: its operations on the home's memory, its messages, and what
 * is done when one comes. See lock_queue.c.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "queue.h"

/* The word has a cache line of its own. */
#define KDSM_WORD_SIZE		64U
/* The home of the root is told that another does not answer so often, in ns. */
#define KDSM_MISSED_AGAIN	(NSEC_PER_SEC / 10)

static u32 kdsm_ring_entries(unsigned int nodes)
{
	return roundup_pow_of_two(nodes + 1);
}

u64 kdsm_queue_size(unsigned int nodes)
{
	return roundup_pow_of_two(KDSM_WORD_SIZE +
				  kdsm_ring_entries(nodes) * sizeof(struct kdsm_ring_entry));
}

void kdsm_queue_place(struct kdsm_queue *queue, u64 offset)
{
	queue->word = offset;
	queue->ring = offset + KDSM_WORD_SIZE;
	queue->ring_mask = kdsm_ring_entries(queue->nodes) - 1;
}

/* ---- operations ---- */

/* The lock can go on without a home of a smaller element's queue. */
static void kdsm_queue_home_missed(struct kdsm_queue *queue)
{
	u64 now = ktime_get_ns();

	if (!kdsm_queue_root(queue)->deep || !queue->parent ||
	    (queue->missed_at && now - queue->missed_at < KDSM_MISSED_AGAIN))
		return;
	queue->missed_at = now;
	queue->ops->missed(queue, queue->home, true);
}

static void kdsm_queue_post(struct kdsm_queue *queue, struct kdsm_operation **ops,
			    unsigned int count)
{
	struct kdsm_batch batch;
	unsigned int i;

	kdsm_batch_init(&batch, queue->fabric, queue->memory);
	batch.tie = queue->tie;
	for (i = 0; i < count; i++)
		kdsm_batch_add(&batch, ops[i]);
	kdsm_batch_post(&batch);
	/* Of bounded length, as peers that do not answer are dropped. */
	kdsm_batch_wait(&batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	kdsm_batch_finish(&batch);
	for (i = 0; i < count; i++)
		if (ops[i]->status)
			kdsm_queue_home_missed(queue);
}

static struct kdsm_operation *kdsm_queue_op(struct kdsm_queue *queue, unsigned int i,
					    enum kdsm_opcode opcode, u64 offset, void *data,
					    unsigned int length)
{
	struct kdsm_operation *op = &queue->op[i];

	memset(op, 0, sizeof(*op));
	op->opcode = opcode;
	op->node = queue->home;
	op->offset = offset;
	op->length = length;
	op->data = data;
	return op;
}

int kdsm_queue_atomic(struct kdsm_queue *queue, enum kdsm_opcode opcode, u64 offset,
		      u64 operand, u64 compare, u64 *old)
{
	struct kdsm_operation *op =
		kdsm_queue_op(queue, 0, opcode, queue->word + offset, NULL, 8);

	op->operand = operand;
	op->compare = compare;
	queue->stats.atomics++;
	kdsm_queue_post(queue, &op, 1);
	*old = op->result;
	return op->status;
}

/* ---- the ring ---- */

static __le64 kdsm_ring_check(u64 who)
{
	return cpu_to_le64((who ^ (who >> 29)) * 0x9e3779b97f4a7c15ULL + 1);
}

static u64 kdsm_ring_place(const struct kdsm_queue *queue, u32 ticket)
{
	return queue->ring + (ticket & queue->ring_mask) * sizeof(struct kdsm_ring_entry);
}

int kdsm_ring_read(struct kdsm_queue *queue, u32 first, unsigned int count)
{
	/* Those up to the end of the ring, then those from its beginning on. */
	unsigned int n = min(count, queue->ring_mask + 1 - (first & queue->ring_mask));
	struct kdsm_operation *ops[2];

	ops[0] = kdsm_queue_op(queue, 0, KDSM_OP_GET, kdsm_ring_place(queue, first),
			       queue->window, n * sizeof(queue->window[0]));
	if (n < count)
		ops[1] = kdsm_queue_op(queue, 1, KDSM_OP_GET, kdsm_ring_place(queue, first + n),
				       queue->window + n,
				       (count - n) * sizeof(queue->window[0]));
	queue->stats.gets += 1 + (n < count);
	kdsm_queue_post(queue, ops, 1 + (n < count));
	return ops[0]->status ?: n < count ? ops[1]->status : 0;
}

unsigned int kdsm_ring_node(const struct kdsm_queue *queue, unsigned int i, u32 ticket)
{
	const struct kdsm_ring_entry *entry = &queue->window[i];
	u64 who = le64_to_cpu(entry->who);
	unsigned int node = (who & 0xffff) - 1;

	/* Half of a newer entry, an older one, or what no node has written. */
	if (entry->check != kdsm_ring_check(who) || who >> 16 != (ticket & KDSM_TICKET_MASK) ||
	    !kdsm_queue_is_peer(queue, node))
		return KDSM_NOBODY;
	return node;
}

void kdsm_ring_name(struct kdsm_ring_entry *entry, u32 ticket, unsigned int node)
{
	u64 who = (u64)ticket << 16 | (node + 1);

	entry->who = cpu_to_le64(who);
	entry->check = kdsm_ring_check(who);
}

int kdsm_ring_write(struct kdsm_queue *queue, u32 ticket, unsigned int node)
{
	struct kdsm_operation *op =
		kdsm_queue_op(queue, 0, KDSM_OP_PUT, kdsm_ring_place(queue, ticket),
			      &queue->entry, sizeof(queue->entry));

	kdsm_ring_name(&queue->entry, ticket, node);
	queue->stats.puts++;
	kdsm_queue_post(queue, &op, 1);
	return op->status;
}

/* ---- messages ---- */

void kdsm_queue_name(const struct kdsm_queue *queue, struct kdsm_wire_lock *wire, u32 ticket)
{
	wire->id = cpu_to_le32(queue->region);
	wire->number = cpu_to_le16(queue->number);
	wire->level = cpu_to_le16(queue->level);
	wire->ticket = cpu_to_le32(ticket);
	wire->epoch = cpu_to_le32(queue->epoch);
}

int kdsm_queue_send(struct kdsm_queue *queue, unsigned int node, enum kdsm_message_type type,
		    const void *data, unsigned int length, struct kdsm_wire_lock_state *reply)
{
	unsigned int got = reply ? sizeof(*reply) : 0;
	int err;

	queue->stats.messages++;
	err = kdsm_message(queue->fabric, node, type, data, length, reply, reply ? &got : NULL);
	if (!err && reply && got != sizeof(*reply))
		err = -EIO;
	return err;
}

/* Had this node the lock with that ticket, or a later one? With the spinlock. */
static bool kdsm_queue_is_old(const struct kdsm_queue *queue, u32 ticket)
{
	/* Of what was longer ago nobody hears again; tickets may have wrapped since. */
	return queue->has_held && ktime_get_ns() - queue->held_at < KDSM_BATON_LIFE &&
	       kdsm_ticket_distance(ticket, queue->held) < KDSM_TICKETS_RECENT;
}

bool kdsm_queue_had(const struct kdsm_queue *queue, u32 ticket)
{
	/* A smaller element can have had it for long since. */
	return kdsm_queue_is_old(queue, ticket) || (queue->has_held && ticket == queue->held);
}

/* Who sent it has the ticket after one of this node's. */
int kdsm_queue_serve_tell(struct kdsm_queue *queue, struct kdsm_request *request)
{
	const struct kdsm_wire_lock *wire = request->data;
	bool wanted = false;
	u32 ticket, mine;
	int err = 0;

	if (request->length != sizeof(*wire) || !kdsm_queue_is_peer(queue, request->from))
		return -EINVAL;
	ticket = le32_to_cpu(wire->ticket);
	mine = (ticket - 1) & KDSM_TICKET_MASK;
	if (ticket > KDSM_TICKET_MASK)
		return -EINVAL;
	spin_lock_bh(&queue->lock);
	/* What is of another epoch is said again when that is here, or of no use any more. */
	if (queue->frozen || (queue->state != KDSM_QUEUE_NONE &&
			      le32_to_cpu(wire->epoch) != queue->epoch)) {
		err = -EBUSY;
		goto unlock;
	}
	switch (queue->state) {
	case KDSM_QUEUE_ENTERING:
	case KDSM_QUEUE_DOUBT:
		/* That may be the ticket that this node waits for. */
		if (kdsm_queue_had(queue, mine))
			break;
		if (queue->told != KDSM_NOBODY && queue->told_ticket != ticket) {
			err = -EBUSY;
			break;
		}
		queue->told = request->from;
		queue->told_ticket = ticket;
		break;
	case KDSM_QUEUE_WAITING:
	case KDSM_QUEUE_HELD:
	case KDSM_QUEUE_LEAVING:
		if (mine != queue->ticket &&
		    !(queue->renewing && mine == ((queue->ticket + 1) & KDSM_TICKET_MASK)))
			break;		/* said again, of long ago */
		wanted = queue->state == KDSM_QUEUE_HELD && queue->told == KDSM_NOBODY;
		queue->told = request->from;
		queue->told_ticket = ticket;
		break;
	}
unlock:
	spin_unlock_bh(&queue->lock);
	if (wanted)
		queue->ops->wanted(queue);
	return err;
}

static int kdsm_carried_read(const struct kdsm_queue *queue,
			     const struct kdsm_wire_carried *wire, struct kdsm_carried *carried)
{
	carried->level = le16_to_cpu(wire->level);
	carried->id = le16_to_cpu(wire->id);
	carried->ticket = le32_to_cpu(wire->ticket);
	carried->debt = le32_to_cpu(wire->debt);
	carried->debt_sum = le32_to_cpu(wire->debt_sum);
	carried->passes = le32_to_cpu(wire->passes);
	carried->flags = le32_to_cpu(wire->flags);
	/* Who is counted there is of the element that this is the queue of. */
	return !queue->parent || carried->level != queue->parent->level || !carried->id ||
	       !kdsm_queue_has(queue, carried->id - 1) ||
	       carried->ticket > KDSM_TICKET_MASK || carried->debt > KDSM_DEBT_MAX ||
	       carried->debt_sum > carried->debt * queue->nodes ||
	       carried->passes > KDSM_LOCK_T_MAX || carried->flags & ~KDSM_BATON_MORE ?
	       -EINVAL : 0;
}

/* The baton that came, or an error. */
static int kdsm_baton_read(const struct kdsm_queue *queue, const struct kdsm_request *request,
			   struct kdsm_baton *baton)
{
	const struct kdsm_wire_lock_hand *wire = request->data;
	const struct kdsm_wire_carried *carried;
	unsigned int i, node;
	int err;

	if (request->length < offsetof(struct kdsm_wire_lock_hand, successors))
		return -EINVAL;
	baton->ticket = le32_to_cpu(wire->lock.ticket);
	baton->debt = le32_to_cpu(wire->debt);
	baton->debt_sum = le32_to_cpu(wire->debt_sum);
	baton->flags = le32_to_cpu(wire->flags);
	baton->known = le16_to_cpu(wire->known);
	baton->count = le16_to_cpu(wire->count);
	if (baton->known > KDSM_SUCCESSORS_MAX || baton->count > KDSM_WIRE_CARRIED ||
	    request->length != kdsm_wire_hand_size(baton->known, baton->count) ||
	    baton->ticket > KDSM_TICKET_MASK || baton->debt > KDSM_DEBT_MAX ||
	    baton->debt_sum > baton->debt * queue->nodes)
		return -EINVAL;
	for (i = 0; i < baton->known; i++) {
		node = le16_to_cpu(wire->successors[i]);
		if (!kdsm_queue_has(queue, node))
			return -EINVAL;
		if (node == queue->node) {
			/* An entry of long ago: nor is what follows to be relied on. */
			baton->known = i;
			baton->flags |= KDSM_BATON_MORE;
			break;
		}
		baton->successors[i] = node;
	}
	carried = (const void *)&wire->successors[le16_to_cpu(wire->known)];
	for (i = 0; i < baton->count; i++, queue = queue->parent) {
		err = kdsm_carried_read(queue, &carried[i], &baton->carried[i]);
		if (err)
			return err;
	}
	return 0;
}

int kdsm_queue_serve_hand(struct kdsm_queue *queue, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_hand *wire = request->data;
	bool granted = false;
	u32 ticket;
	int err = 0;

	if (request->length < sizeof(wire->lock) || !kdsm_queue_is_peer(queue, request->from))
		return -EINVAL;
	ticket = le32_to_cpu(wire->lock.ticket);
	spin_lock_bh(&queue->lock);
	if (kdsm_queue_is_old(queue, ticket))
		goto unlock;	/* said again */
	if ((queue->recovers && !queue->met) || le32_to_cpu(wire->lock.epoch) != queue->epoch) {
		err = -ESTALE;
		goto unlock;
	}
	if (queue->frozen) {
		err = -EBUSY;
		goto unlock;
	}
	switch (queue->state) {
	case KDSM_QUEUE_ENTERING:
		/*
		 * Its ticket follows, and may be another one: who says yes to what it then
		 * does not take has lost it for all.
		 */
		err = -EBUSY;
		break;
	case KDSM_QUEUE_DOUBT:
		if (!queue->tail_known)
			err = -EBUSY;
		else if (!kdsm_queue_may_be_mine(queue, ticket))
			err = -ESTALE;
		else
			err = kdsm_baton_read(queue, request, &queue->baton);
		granted = !err;
		break;
	case KDSM_QUEUE_WAITING:
		err = ticket == queue->ticket ?
		      kdsm_baton_read(queue, request, &queue->baton) : -ESTALE;
		granted = !err;
		break;
	default:
		err = -ESTALE;
		break;
	}
	if (granted) {
		queue->from = request->from;
		kdsm_queue_take(queue);
	}
unlock:
	spin_unlock_bh(&queue->lock);
	if (granted)
		queue->ops->granted(queue);
	return err;
}

int kdsm_queue_serve_look(struct kdsm_queue *queue, struct kdsm_request *request)
{
	struct kdsm_wire_lock_state *reply = request->reply;
	u32 state, ticket;
	bool wanted;

	if (request->length != sizeof(struct kdsm_wire_lock) ||
	    !kdsm_queue_is_peer(queue, request->from))
		return -EINVAL;
	spin_lock_bh(&queue->lock);
	wanted = queue->state == KDSM_QUEUE_HELD && !queue->looked;
	if (wanted)
		queue->looked = true;
	state = queue->state;
	ticket = queue->ticket;
	if (state == KDSM_QUEUE_DOUBT) {
		ticket = queue->tail;
		/* As long as it is not known, that is as good as under way. */
		if (!queue->tail_known)
			state = KDSM_QUEUE_ENTERING;
	}
	/* The same for a ticket that it may have by now. */
	if (queue->renewing)
		state = KDSM_QUEUE_ENTERING;
	reply->state = cpu_to_le16(state);
	reply->has_held = cpu_to_le16(queue->has_held);
	reply->ticket = cpu_to_le32(ticket);
	reply->held = cpu_to_le32(queue->held);
	reply->epoch = cpu_to_le32(queue->epoch);
	spin_unlock_bh(&queue->lock);
	request->reply_length = sizeof(*reply);
	if (wanted)
		queue->ops->wanted(queue);
	return 0;
}

int kdsm_queue_serve_meet(struct kdsm_queue *queue, struct kdsm_request *request)
{
	struct kdsm_wire_lock_state *reply = request->reply;
	int err = 0;

	if (request->length != sizeof(struct kdsm_wire_lock) || queue->home != queue->node)
		return -EINVAL;
	memset(reply, 0, sizeof(*reply));
	spin_lock_bh(&queue->lock);
	if (queue->frozen)
		err = -EBUSY;
	reply->epoch = cpu_to_le32(queue->epoch);
	reply->state = cpu_to_le16(queue->flat);
	spin_unlock_bh(&queue->lock);
	request->reply_length = sizeof(*reply);
	return err;
}

bool kdsm_queue_is_wanted(struct kdsm_queue *queue)
{
	bool wanted;

	spin_lock_bh(&queue->lock);
	wanted = queue->baton.known || queue->told != KDSM_NOBODY || queue->looked ||
		 queue->baton.flags & KDSM_BATON_MORE;
	spin_unlock_bh(&queue->lock);
	return wanted;
}

bool kdsm_queue_can_idle(struct kdsm_queue *queue)
{
	return !kdsm_queue_is_wanted(queue) && !kdsm_queue_is_unsure(queue);
}
