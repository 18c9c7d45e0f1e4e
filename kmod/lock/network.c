// SPDX-License-Identifier: GPL-2.0
/*
 * A node's part in a lock: the operations and messages that a state requires; messages without an
 * answer are repeated.
 */
#include <linux/bitfield.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "turn.h"

/* Unanswered HANDs in a row before the node asks the home whether the lock has arrived */
#define KDSM_TURN_MISSES	3U

/* ---- the word ---- */

int kdsm_word_swap(struct kdsm_batch *batch, struct kdsm_operation *op, u64 *found)
{
	op->opcode = KDSM_OP_CAS;
	op->length = sizeof(u64);
	kdsm_batch_add(batch, op);
	kdsm_batch_post(batch);
	kdsm_batch_wait(batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	kdsm_batch_finish(batch);
	*found = op->result;
	return op->status;
}

/* Returns 0 and the former value, or an error. */
static int kdsm_turn_swap(struct kdsm_turn *turn, u64 tie, u64 old, u64 new, u64 *found)
{
	struct kdsm_batch batch;

	turn->op = (struct kdsm_operation) {
		.node = turn->part.home, .offset = turn->word, .compare = old, .operand = new,
	};
	turn->stats.atomics += turn->part.home != turn->part.node;
	kdsm_batch_init(&batch, turn->part.fabric, turn->memory);
	batch.tie = tie;
	return kdsm_word_swap(&batch, &turn->op, found);
}

static u64 kdsm_turn_take(struct kdsm_turn *turn, u64 life, u64 serial)
{
	u64 held = kdsm_word_held(turn->part.node, life, serial), found;
	u64 tie = kdsm_fabric_tie(turn->part.fabric, turn->part.home);
	int err = kdsm_turn_swap(turn, tie, KDSM_WORD_FREE, held, &found);

	spin_lock_bh(&turn->lock);
	if (turn->state == KDSM_TURN_TAKING && turn->life == life && turn->serial == serial) {
		if (!err && found == KDSM_WORD_FREE) {
			turn->named = true;
			turn->from = turn->part.home;
			turn->back = false;
			turn->stats.free++;
			kdsm_turn_enter(turn, KDSM_TURN_SOLE);
		} else if (!err && !turn->threads) {
			kdsm_turn_enter(turn, KDSM_TURN_NONE);
		} else {
			/*
			 * Without an answer the word may name this node. The home will see that
			 * when it takes the word for this very request.
			 */
			kdsm_turn_enter(turn, KDSM_TURN_ASKING);
		}
	}
	spin_unlock_bh(&turn->lock);
	kdsm_part_changed(&turn->part);
	return 0;
}

/* HANDING, LEAVING: leave the signature, once. Returns 0 or an error. */
static int kdsm_turn_get_ready(struct kdsm_turn *turn, struct kdsm_wire_turn *wire)
{
	u32 leaves;
	int err;

	spin_lock_bh(&turn->lock);
	leaves = turn->leaves;
	err = turn->ready ? 0 : -EAGAIN;
	spin_unlock_bh(&turn->lock);
	if (!err)
		return 0;
	err = kdsm_turn_leaving(turn, false);
	spin_lock_bh(&turn->lock);
	/* The node may have lost the lock meanwhile, got it again, and begun to leave it again. */
	if (turn->leaves != leaves) {
		err = -EAGAIN;
	} else if (!err || err == -EOWNERDEAD) {
		turn->ready = true;
		turn->flags |= err ? KDSM_TURN_DEAD : 0;
		wire->flags |= cpu_to_le16(turn->flags);
		err = 0;
	}
	spin_unlock_bh(&turn->lock);
	return err;
}

static u64 kdsm_turn_free(struct kdsm_turn *turn, u64 life, u64 serial)
{
	u64 held = kdsm_word_held(turn->part.node, life, serial), found;
	u64 tie = kdsm_fabric_tie(turn->part.fabric, turn->part.home);
	int err = kdsm_turn_leaving(turn, true);

	if (err && err != -EOWNERDEAD)
		return KDSM_TURN_RETRY;
	if (!err)
		err = kdsm_turn_swap(turn, tie, held, KDSM_WORD_FREE, &found);
	spin_lock_bh(&turn->lock);
	if (turn->state == KDSM_TURN_FREEING && turn->life == life && turn->serial == serial) {
		if (err == -EOWNERDEAD) {
			/* As in kdsm_turn_after() */
			turn->flags |= KDSM_TURN_DEAD;
			turn->back = true;
			kdsm_turn_enter(turn, KDSM_TURN_SOLE);
			err = 0;
		} else if (!err && found == held) {
			turn->stats.freed++;
			kdsm_turn_enter(turn, KDSM_TURN_NONE);
		} else if (!err) {
			/* The home has taken the word, or an earlier try had set it free. */
			turn->contended = true;
			turn->list.first = 0;
			kdsm_turn_enter(turn, KDSM_TURN_LEAVING);
		}
	}
	spin_unlock_bh(&turn->lock);
	kdsm_part_changed(&turn->part);
	return err ? kdsm_turn_pause(err) : 0;
}

/* ---- messages ---- */

/* Send, and count receivers that do not answer. Returns the status of the reply. */
static int kdsm_turn_send(struct kdsm_turn *turn, unsigned int node,
			  enum kdsm_message_type type, const struct kdsm_wire_turn *wire,
			  struct kdsm_wire_turn *reply)
{
	unsigned int length = sizeof(*reply);
	int err;

	err = kdsm_part_send(&turn->part, node, type, wire,
			     kdsm_wire_turn_size(le16_to_cpu(wire->count)), reply,
			     reply ? &length : NULL);
	if (!err && reply && !kdsm_wire_turn_fits(reply, length))
		err = -EPROTO;
	turn->missed = kdsm_message_was_heard(err) ? 0 : turn->missed + 1;
	return err;
}

/* The home came up again, and does not know the lock. */
static void kdsm_turn_lose(struct kdsm_turn *turn)
{
	spin_lock_bh(&turn->lock);
	if (!kdsm_turn_is_here(turn))
		kdsm_turn_enter(turn, KDSM_TURN_LOST);
	spin_unlock_bh(&turn->lock);
	kdsm_part_changed(&turn->part);
}

/* After the home has answered ENQUEUE */
static void kdsm_turn_asked(struct kdsm_turn *turn, u16 threads, enum kdsm_turn_reply answer)
{
	if (answer == KDSM_REPLY_GONE) {
		/* This request is withdrawn. Threads that came meanwhile need another one. */
		kdsm_turn_enter(turn, KDSM_TURN_NONE);
		return;
	}
	kdsm_turn_enter(turn, KDSM_TURN_WAITING);
	/* All threads have gone since the message was sent: at once again */
	if (turn->threads || !threads)
		turn->poll = ktime_get_ns() + KDSM_TURN_POLL;
}

static u64 kdsm_turn_ask(struct kdsm_turn *turn, struct kdsm_wire_turn *wire)
{
	struct kdsm_wire_turn reply;
	bool gone;
	int err;

	wire->quota = cpu_to_le16(READ_ONCE(turn->threads));
	turn->stats.asked++;
	err = kdsm_turn_send(turn, turn->part.home, KDSM_MESSAGE_TURN_ENQUEUE, wire, &reply);
	if (err == -ENOENT) {
		kdsm_turn_lose(turn);
		return 0;
	}
	if (err)
		return kdsm_turn_pause(err);
	spin_lock_bh(&turn->lock);
	if (turn->life < le64_to_cpu(reply.life) &&
	    (turn->state == KDSM_TURN_ASKING || turn->state == KDSM_TURN_WAITING)) {
		/*
		 * This life is over for the home. Or the clock of this node went back, and its
		 * former life was a later one.
		 */
		turn->life = le64_to_cpu(reply.life);
		turn->turn = 0;
		kdsm_turn_enter(turn, KDSM_TURN_ASKING);
	} else if (turn->life == le64_to_cpu(reply.life)) {
		/* HAND may have been faster, and may even be over. */
		turn->epoch = max(turn->epoch, le32_to_cpu(reply.epoch));
		if ((turn->state == KDSM_TURN_ASKING || turn->state == KDSM_TURN_WAITING) &&
		    turn->serial == le64_to_cpu(wire->serial))
			kdsm_turn_asked(turn, le16_to_cpu(wire->quota),
					le16_to_cpu(reply.answer));
	}
	gone = turn->state == KDSM_TURN_NONE;
	spin_unlock_bh(&turn->lock);
	if (gone)
		kdsm_part_changed(&turn->part);
	return 0;
}

/* After the home has answered LEAVE */
static void kdsm_turn_left(struct kdsm_turn *turn, const struct kdsm_wire_turn *reply)
{
	struct kdsm_list list;

	switch (le16_to_cpu(reply->answer)) {
	case KDSM_REPLY_GONE:
		turn->contended = !(le16_to_cpu(reply->flags) & KDSM_TURN_FREE);
		turn->named = false;
		turn->list.count = 0;
		kdsm_turn_enter(turn, KDSM_TURN_NONE);
		break;
	case KDSM_REPLY_KEEP:
		if (turn->state == KDSM_TURN_HANDING)
			break;
		turn->turn = le64_to_cpu(reply->turn);
		turn->named = false;
		turn->back = true;
		if (turn->list.first != turn->turn + 1)
			kdsm_turn_enter(turn, KDSM_TURN_KEPT);
		else if (turn->list.count)
			kdsm_turn_enter(turn, KDSM_TURN_HANDING);
		/* Else readers wait: leave once more. */
		break;
	case KDSM_REPLY_LIST:
		if (turn->state == KDSM_TURN_HANDING ||
		    kdsm_list_read(reply, &list, turn->part.nodes) || !list.count)
			break;
		turn->epoch = max(turn->epoch, le32_to_cpu(reply->epoch));
		kdsm_turn_take_list(turn, &list);
		kdsm_turn_enter(turn, KDSM_TURN_HANDING);
		break;
	}
}

static u64 kdsm_turn_leave(struct kdsm_turn *turn, struct kdsm_wire_turn *wire,
			   enum kdsm_turn_state state)
{
	struct kdsm_wire_turn reply;
	int err;

	if (state == KDSM_TURN_LEAVING && kdsm_turn_get_ready(turn, wire))
		return KDSM_TURN_RETRY;
	turn->stats.left++;
	wire->node = cpu_to_le16(turn->part.node);
	err = kdsm_turn_send(turn, turn->part.home, KDSM_MESSAGE_TURN_LEAVE, wire, &reply);
	if (err == -ENOENT) {
		kdsm_turn_lose(turn);
		return 0;
	}
	if (err)
		return kdsm_turn_pause(err);
	spin_lock_bh(&turn->lock);
	if (turn->state == state && turn->life == le64_to_cpu(wire->life) &&
	    turn->serial == le64_to_cpu(wire->serial) && turn->epoch == le32_to_cpu(wire->epoch))
		kdsm_turn_left(turn, &reply);
	spin_unlock_bh(&turn->lock);
	kdsm_part_changed(&turn->part);
	return 0;
}

static u64 kdsm_turn_hand(struct kdsm_turn *turn, struct kdsm_wire_turn *wire,
			  unsigned int next)
{
	unsigned int misses = turn->missed;
	u64 number = le64_to_cpu(wire->turn);
	int err;

	/*
	 * The next node may have had the lock, and died before it answered. The home knows
	 * whether a later node has had it.
	 */
	if (misses >= KDSM_TURN_MISSES) {
		turn->missed = 0;
		wire->turn = cpu_to_le64(number - 1);
		wire->flags |= cpu_to_le16(KDSM_TURN_HANDED);
		wire->count = 0;
		wire->life = cpu_to_le64(turn->life);
		return kdsm_turn_leave(turn, wire, KDSM_TURN_HANDING);
	}
	if (kdsm_turn_get_ready(turn, wire))
		return KDSM_TURN_RETRY;
	turn->stats.handed++;
	wire->node = cpu_to_le16(turn->part.node);
	err = kdsm_turn_send(turn, next, KDSM_MESSAGE_TURN_HAND, wire, NULL);
	spin_lock_bh(&turn->lock);
	if (turn->state == KDSM_TURN_HANDING && turn->turn == number - 1 && !err) {
		turn->list.count = 0;
		turn->contended = true;
		kdsm_turn_enter(turn, KDSM_TURN_NONE);
	}
	/* Another life of the receiver, or another epoch: the home knows. */
	if (err == -ESTALE || err == -ENOENT)
		turn->missed = KDSM_TURN_MISSES;
	spin_unlock_bh(&turn->lock);
	if (err)
		return kdsm_turn_pause(err);
	kdsm_turn_handed(turn, next);
	kdsm_part_changed(&turn->part);
	return 0;
}

/* ---- one step ---- */

/* HANDING: the message to the first node of the list, with the rest of the list */
static unsigned int kdsm_turn_write_hand(struct kdsm_turn *turn, struct kdsm_wire_turn *wire)
{
	struct kdsm_list rest = { .first = turn->list.first + 1 };

	rest.count = turn->list.count - 1;
	memcpy(rest.next, turn->list.next + 1, rest.count * sizeof(rest.next[0]));
	kdsm_list_write(wire, &rest);
	wire->turn = cpu_to_le64(turn->list.first);
	wire->quota = cpu_to_le16(turn->list.next[0].quota);
	wire->life = cpu_to_le64(turn->list.next[0].life);
	return turn->list.next[0].node;
}

/* Write the message that the state requires now, and return the state; NONE: no message. */
static enum kdsm_turn_state kdsm_turn_prepare(struct kdsm_turn *turn,
					      struct kdsm_wire_turn *wire, unsigned int *next)
{
	kdsm_turn_name(turn, wire);
	switch (turn->state) {
	case KDSM_TURN_HANDING:
		*next = kdsm_turn_write_hand(turn, wire);
		break;
	case KDSM_TURN_LEAVING:
		if (turn->named)
			wire->turn = 0;
		if (turn->keep)
			wire->flags |= cpu_to_le16(KDSM_TURN_KEEP);
		break;
	case KDSM_TURN_TAKING:
	case KDSM_TURN_ASKING:
	case KDSM_TURN_FREEING:
		break;
	case KDSM_TURN_WAITING:
		if (ktime_get_ns() < turn->poll)
			return KDSM_TURN_NONE;
		break;
	default:
		return KDSM_TURN_NONE;
	}
	return turn->state;
}

static u64 kdsm_turn_step(struct kdsm_turn *turn, enum kdsm_turn_state state,
			  struct kdsm_wire_turn *wire, unsigned int next)
{
	u64 life = le64_to_cpu(wire->life), serial = le64_to_cpu(wire->serial);

	switch (state) {
	case KDSM_TURN_TAKING:
		return kdsm_turn_take(turn, life, serial);
	case KDSM_TURN_FREEING:
		return kdsm_turn_free(turn, life, serial);
	case KDSM_TURN_HANDING:
		return kdsm_turn_hand(turn, wire, next);
	case KDSM_TURN_LEAVING:
		return kdsm_turn_leave(turn, wire, state);
	default:
		return kdsm_turn_ask(turn, wire);
	}
}

u64 kdsm_turn_advance(struct kdsm_turn *turn)
{
	enum kdsm_turn_state state;
	struct kdsm_wire_turn wire;
	unsigned int next = 0;
	u64 delay = 0;

	spin_lock_bh(&turn->lock);
	while (!delay) {
		state = kdsm_turn_prepare(turn, &wire, &next);
		if (state == KDSM_TURN_NONE)
			break;
		spin_unlock_bh(&turn->lock);
		delay = kdsm_turn_step(turn, state, &wire, next);
		spin_lock_bh(&turn->lock);
	}
	if (!delay && turn->state == KDSM_TURN_WAITING)
		delay = kdsm_part_until(turn->poll);
	spin_unlock_bh(&turn->lock);
	return delay;
}
