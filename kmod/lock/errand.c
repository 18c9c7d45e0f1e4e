// SPDX-License-Identifier: GPL-2.0
/*
 * Errands of a lock's home: swaps of the word, HAND and EXTEND, and messages to reader homes.
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "home.h"

/* ---- the word ---- */

/* Returns 0 and the former value, or an error. */
static int kdsm_home_swap(struct kdsm_lock_home *home, u64 old, u64 new, u64 *found)
{
	struct kdsm_batch batch;

	home->op = (struct kdsm_operation) {
		.node = home->part.node, .offset = home->word, .compare = old, .operand = new,
	};
	kdsm_batch_init(&batch, home->part.fabric, home->memory);
	return kdsm_word_swap(&batch, &home->op, found);
}

/*
 * Swap the word to QUEUED, which nobody else writes. Returns 0 and the value before. If the answer
 * to an earlier try was lost, QUEUED itself says which value that try had found.
 */
static int kdsm_home_close(struct kdsm_lock_home *home, u64 *was)
{
	u64 found;
	int err;

	*was = KDSM_WORD_FREE;
	err = kdsm_home_swap(home, KDSM_WORD_FREE, KDSM_WORD_QUEUED, &found);
	while (!err && (found & KDSM_WORD_STATE) == KDSM_WORD_HELD) {
		home->found = found;
		*was = found;
		err = kdsm_home_swap(home, found, KDSM_WORD_QUEUED | KDSM_WORD_NAMED, &found);
		if (found == home->found)
			break;
		if (!err && found == KDSM_WORD_FREE) {
			*was = KDSM_WORD_FREE;
			err = kdsm_home_swap(home, KDSM_WORD_FREE, KDSM_WORD_QUEUED, &found);
		}
	}
	if (!err && found == (KDSM_WORD_QUEUED | KDSM_WORD_NAMED))
		*was = home->found;
	return err;
}

/* The word named a node, and may name one that gave up, or has died: the node must answer. */
static void kdsm_home_found(struct kdsm_lock_home *home, u64 word)
{
	unsigned int node = FIELD_GET(KDSM_WORD_NODE, word);
	struct kdsm_entry *entry;

	if (node >= home->part.nodes) {
		kdsm_home_own(home, KDSM_TURN_DEAD, KDSM_NOBODY);
		return;
	}
	entry = &home->entries[node];
	if (entry->state == KDSM_ENTRY_QUEUED &&
	    word == kdsm_word_held(node, entry->life, entry->serial)) {
		/* It waits by the very request that has the lock: its swap was not answered. */
		kdsm_home_own(home, 0, home->part.node);
		return;
	}
	if (entry->state == KDSM_ENTRY_QUEUED) {
		/* The node will repeat that request, if it is not of a former life. */
		kdsm_order_remove(&home->order, node);
		entry->serial = 0;
	}
	home->first = home->last + 1;
	kdsm_home_put(home, node, home->first);
	home->quotas[home->last % KDSM_TURNS] = 0;
	home->sole = word;
	home->state = KDSM_HOME_TAKEN;
	kdsm_home_list(home);
	home->push = home->first;
}

static u64 kdsm_home_take_word(struct kdsm_lock_home *home)
	__must_hold(&home->lock)
{
	u64 was;
	int err;

	spin_unlock_bh(&home->lock);
	err = kdsm_home_close(home, &was);
	spin_lock_bh(&home->lock);
	if (err)
		return kdsm_turn_pause(err);
	if (was == KDSM_WORD_FREE)
		kdsm_home_own(home, 0, home->part.node);
	else
		kdsm_home_found(home, was);
	return 0;
}

static u64 kdsm_home_free_word(struct kdsm_lock_home *home)
	__must_hold(&home->lock)
{
	unsigned int from = home->from;
	u64 found;
	int err;

	spin_unlock_bh(&home->lock);
	err = kdsm_home_opening(home, from);
	if (!err)
		err = kdsm_home_swap(home, KDSM_WORD_QUEUED, KDSM_WORD_FREE, &found);
	if (!err && found == (KDSM_WORD_QUEUED | KDSM_WORD_NAMED))
		err = kdsm_home_swap(home, found, KDSM_WORD_FREE, &found);
	spin_lock_bh(&home->lock);
	if (err == -EOWNERDEAD) {
		kdsm_home_own(home, KDSM_TURN_DEAD, KDSM_NOBODY);
		return 0;
	}
	if (err)
		return kdsm_turn_pause(err);
	home->from = home->part.node;
	home->state = KDSM_HOME_OPEN;
	if (home->order.count || home->gate.waiting)
		home->state = KDSM_HOME_CLOSING;
	return 0;
}

/* ---- HAND ---- */

/* Fill in HAND or EXTEND for the node that has this turn. Returns the size of the message. */
static unsigned int kdsm_home_write(const struct kdsm_lock_home *home, u64 turn,
				    struct kdsm_wire_turn *wire)
{
	struct kdsm_list list;

	kdsm_home_name(home, wire);
	kdsm_home_after(home, turn, &list);
	kdsm_list_write(wire, &list);
	wire->turn = cpu_to_le64(turn);
	wire->quota = cpu_to_le16(home->quotas[turn % KDSM_TURNS]);
	return kdsm_wire_turn_size(list.count);
}

static u64 kdsm_home_grant(struct kdsm_lock_home *home)
	__must_hold(&home->lock)
{
	unsigned int node = kdsm_home_holder(home, home->first), size;
	struct kdsm_wire_turn wire;
	u64 turn = home->first, life = home->entries[node].life;
	u32 epoch;
	int err;

	size = kdsm_home_write(home, turn, &wire);
	wire.life = cpu_to_le64((u16)life);
	epoch = home->epoch;
	spin_unlock_bh(&home->lock);
	err = kdsm_part_send(&home->part, node, KDSM_MESSAGE_TURN_HAND, &wire, size, NULL, NULL);
	spin_lock_bh(&home->lock);
	/* The node has come up again, and does not know the lock. */
	if (err == -ENOENT)
		kdsm_home_bury(home, node, life + 1);
	if (err)
		return kdsm_turn_pause(err);
	if (home->state == KDSM_HOME_GRANTING && home->epoch == epoch && home->first == turn) {
		home->state = KDSM_HOME_TAKEN;
		home->flags = 0;
	}
	return 0;
}

/* ---- EXTEND ---- */

/* The holder that the word named does not have the lock: its life, or this request, is over. */
static void kdsm_home_sole_denied(struct kdsm_lock_home *home, u64 life)
{
	u64 was = FIELD_GET(KDSM_WORD_LIFE, home->sole);

	kdsm_home_recall(home);
	if (was == (life & FIELD_MAX(KDSM_WORD_LIFE)))
		kdsm_home_own(home, 0, home->part.node);
	else
		kdsm_home_own(home, KDSM_TURN_DEAD, KDSM_NOBODY);
}

static void kdsm_home_pushed(struct kdsm_lock_home *home, unsigned int node,
			     const struct kdsm_wire_turn *reply)
{
	bool denied = le16_to_cpu(reply->answer) == KDSM_REPLY_GONE;

	if (home->sole && denied) {
		kdsm_home_sole_denied(home, le64_to_cpu(reply->life));
		return;
	}
	if (home->sole)
		kdsm_home_meet(&home->entries[node], le64_to_cpu(reply->life));
	home->sole = 0;
	home->push = 0;
}

static u64 kdsm_home_push(struct kdsm_lock_home *home)
	__must_hold(&home->lock)
{
	unsigned int node = kdsm_home_holder(home, home->push), size, length;
	u64 push = home->push, sole = home->sole;
	struct kdsm_wire_turn wire, reply;
	u32 epoch;
	int err;

	size = kdsm_home_write(home, push, &wire);
	wire.serial = cpu_to_le64(sole);
	epoch = home->epoch;
	length = sizeof(reply);
	spin_unlock_bh(&home->lock);
	err = kdsm_part_send(&home->part, node, KDSM_MESSAGE_TURN_EXTEND, &wire, size, &reply,
			     &length);
	if (!err && !kdsm_wire_turn_fits(&reply, length))
		err = -EPROTO;
	spin_lock_bh(&home->lock);
	if (home->push != push || home->sole != sole || home->epoch != epoch)
		return 0;
	if (err == -ENOENT) {
		/* Another life of the node, which does not know the lock */
		memset(&reply, 0, sizeof(reply));
		reply.answer = cpu_to_le16(KDSM_REPLY_GONE);
		reply.life = cpu_to_le64(~home->sole >> 32);
	} else if (err) {
		return kdsm_turn_pause(err);
	}
	kdsm_home_pushed(home, node, &reply);
	return 0;
}

/* ---- readers ---- */

/* Have nodes leave whose reader home has died. Returns whether there are such nodes. */
static bool kdsm_home_dismiss(struct kdsm_lock_home *home)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	struct kdsm_wire_pass wire;
	unsigned int i;

	if (bitmap_empty(home->undismissed, home->part.nodes))
		return false;
	bitmap_copy(nodes, home->undismissed, home->part.nodes);
	kdsm_home_name_pass(&home->gate, &wire);
	wire.request = cpu_to_le64(home->dismissal);
	for_each_set_bit(i, home->dismissed, home->part.nodes)
		wire.nodes[i / 64] |= cpu_to_le64(1ULL << (i % 64));
	spin_unlock_bh(&home->lock);
	kdsm_broadcast_start(home->part.fabric, nodes, KDSM_MESSAGE_READ_DISMISS, &wire,
			     sizeof(wire));
	spin_lock_bh(&home->lock);
	return true;
}

/* ---- all of it ---- */

/* One errand of the state; false: there is none. */
static bool kdsm_home_step(struct kdsm_lock_home *home, u64 *delay)
{
	switch (home->state) {
	case KDSM_HOME_CLOSING:
		*delay = kdsm_home_take_word(home);
		return true;
	case KDSM_HOME_OPENING:
		*delay = kdsm_home_free_word(home);
		return true;
	case KDSM_HOME_GRANTING:
		*delay = kdsm_home_grant(home);
		return true;
	case KDSM_HOME_TAKEN:
		if (!home->push)
			return false;
		*delay = kdsm_home_push(home);
		return true;
	case KDSM_HOME_SURVEY:
		*delay = kdsm_home_ask(home);
		return true;
	default:
		return false;
	}
}

u64 kdsm_home_advance(struct kdsm_lock_home *home)
{
	bool again, any;
	u64 delay = 0;

	spin_lock_bh(&home->lock);
	do {
		again = ktime_get_ns() >= home->again;
		any = (again && kdsm_home_dismiss(home)) | kdsm_gate_tell(&home->gate, again);
		if (any)
			home->again = ktime_get_ns() + KDSM_PASS_RETRY;
		any |= kdsm_home_step(home, &delay);
	} while (any && !delay);
	if (!delay && (home->gate.state == KDSM_GATE_ONCE ||
		       home->gate.state == KDSM_GATE_CLOSING ||
		       !bitmap_empty(home->undismissed, home->part.nodes)))
		delay = KDSM_PASS_RETRY;
	spin_unlock_bh(&home->lock);
	return delay;
}
