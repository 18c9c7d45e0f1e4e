// SPDX-License-Identifier: GPL-2.0
/*
 * A child's part in reading: asking a parent, being admitted and leaving. The children are nodes
 * that read, whose parents are reader homes; and reader homes, whose parent is the lock's home.
 *
 * A parent counts a child as inside before the child knows. So a child that hears REVOKE while it
 * still asks takes a new request number, and an admission for the former one is void.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/string.h>

#include "gate.h"

void kdsm_pass_init(struct kdsm_pass *pass)
{
	spin_lock_init(&pass->lock);
	pass->state = KDSM_PASS_NONE;
	pass->owed_to = KDSM_NOBODY;
	pass->parent = KDSM_NOBODY;
	pass->from = KDSM_NOBODY;
}

static void kdsm_pass_enter(struct kdsm_pass *pass, enum kdsm_pass_state state)
{
	lockdep_assert_held(&pass->lock);
	pass->state = state;
	pass->poll = 0;
}

static bool kdsm_pass_is_inside(const struct kdsm_pass *pass)
{
	return pass->state == KDSM_PASS_READING || pass->state == KDSM_PASS_LAST;
}

static bool kdsm_pass_asks(const struct kdsm_pass *pass)
{
	return pass->state == KDSM_PASS_ASKING || pass->state == KDSM_PASS_WAITING;
}

void kdsm_pass_want(struct kdsm_pass *pass)
{
	spin_lock_bh(&pass->lock);
	if (pass->state == KDSM_PASS_NONE) {
		pass->request++;
		pass->order = 0;
		pass->parent = KDSM_NOBODY;
		kdsm_pass_enter(pass, KDSM_PASS_ASKING);
	}
	spin_unlock_bh(&pass->lock);
}

void kdsm_pass_leave(struct kdsm_pass *pass)
{
	bool left;

	spin_lock_bh(&pass->lock);
	/* Without a parent, which has died, the home only waits for the answer to DISMISS. */
	left = kdsm_pass_is_inside(pass) && pass->parent == KDSM_NOBODY;
	if (kdsm_pass_is_inside(pass))
		kdsm_pass_enter(pass, left ? KDSM_PASS_NONE : KDSM_PASS_LEAVING);
	spin_unlock_bh(&pass->lock);
	if (left)
		kdsm_part_changed(&pass->part);
}

bool kdsm_pass_is_once(struct kdsm_pass *pass)
{
	bool once;

	spin_lock_bh(&pass->lock);
	once = pass->state == KDSM_PASS_LAST && pass->once;
	pass->once = false;
	spin_unlock_bh(&pass->lock);
	return once;
}

bool kdsm_pass_reset(struct kdsm_pass *pass)
{
	bool inside;

	spin_lock_bh(&pass->lock);
	inside = kdsm_pass_is_inside(pass);
	pass->life++;
	pass->era = 0;
	pass->owed_to = KDSM_NOBODY;
	if (pass->state != KDSM_PASS_LOST)
		kdsm_pass_enter(pass, KDSM_PASS_NONE);
	spin_unlock_bh(&pass->lock);
	return inside;
}

bool kdsm_pass_out(struct kdsm_pass *pass)
{
	bool inside = kdsm_pass_reset(pass);

	kdsm_part_changed(&pass->part);
	return inside;
}

/* ---- messages of parents ---- */

static bool kdsm_pass_admit(struct kdsm_pass *pass, const struct kdsm_wire_pass *wire)
{
	if (le64_to_cpu(wire->era) < pass->era)
		return false;
	pass->era = le64_to_cpu(wire->era);
	pass->flags = le16_to_cpu(wire->flags) & (KDSM_TURN_DEAD | KDSM_TURN_SPOILT);
	pass->from = le16_to_cpu(wire->node);
	pass->limit = le32_to_cpu(wire->limit);
	pass->once = le16_to_cpu(wire->mode) == KDSM_ADMIT_ONCE;
	pass->was_once = pass->once;
	kdsm_pass_enter(pass, pass->once ? KDSM_PASS_LAST : KDSM_PASS_READING);
	return true;
}

/* Whether the message is about the present request */
static bool kdsm_pass_is_about(const struct kdsm_pass *pass, const struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;

	return pass->parent == request->from && pass->life == le64_to_cpu(wire->life) &&
	       pass->request == le64_to_cpu(wire->request);
}

/* Whether the parent has sent a later message about the present request */
static bool kdsm_pass_is_late(struct kdsm_pass *pass, const struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	u64 order = le64_to_cpu(wire->order);

	if (!kdsm_pass_is_about(pass, request))
		return false;
	if (order < pass->order)
		return true;
	pass->order = order;
	return false;
}

static void kdsm_pass_owe(struct kdsm_pass *pass, const struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;

	pass->owed_to = request->from;
	pass->owed = le64_to_cpu(wire->request);
	pass->owed_life = le64_to_cpu(wire->life);
}

/* The child asks again, so that an admission that is under way is void. */
static void kdsm_pass_void(struct kdsm_pass *pass)
{
	pass->request++;
	pass->order = 0;
	kdsm_pass_enter(pass, KDSM_PASS_ASKING);
}

/* LAST, after REVOKE: the parent counts this node as inside, and does not want it to leave. */
static bool kdsm_pass_is_renewal(const struct kdsm_pass *pass, const struct kdsm_wire_pass *wire)
{
	return pass->parent != KDSM_NOBODY && !pass->was_once &&
	       le16_to_cpu(wire->mode) == KDSM_ADMIT_IN && le64_to_cpu(wire->era) == pass->era;
}

int kdsm_pass_serve_admit(struct kdsm_pass *pass, struct kdsm_request *request)
{
	spin_lock_bh(&pass->lock);
	if (kdsm_pass_is_late(pass, request)) {
		/* The parent repeats what it wants. */
	} else if (!kdsm_pass_is_about(pass, request) || pass->state == KDSM_PASS_NONE) {
		kdsm_pass_owe(pass, request);
	} else if (pass->state == KDSM_PASS_LAST && kdsm_pass_is_renewal(pass, request->data)) {
		/* The revocation is taken back; or is under way once more. */
		kdsm_pass_enter(pass, KDSM_PASS_READING);
	} else if (kdsm_pass_asks(pass) && !kdsm_pass_admit(pass, request->data)) {
		kdsm_pass_owe(pass, request);
		kdsm_pass_void(pass);
	}
	spin_unlock_bh(&pass->lock);
	kdsm_part_changed(&pass->part);
	return 0;
}

int kdsm_pass_serve_revoke(struct kdsm_pass *pass, struct kdsm_request *request)
{
	spin_lock_bh(&pass->lock);
	if (kdsm_pass_is_late(pass, request)) {
		/* As above */
	} else if (kdsm_pass_is_about(pass, request) && kdsm_pass_is_inside(pass)) {
		pass->once = false;
		kdsm_pass_enter(pass, KDSM_PASS_LAST);
	} else if (!kdsm_pass_is_about(pass, request) || pass->state != KDSM_PASS_LEAVING) {
		kdsm_pass_owe(pass, request);
		if (kdsm_pass_is_about(pass, request) && kdsm_pass_asks(pass))
			kdsm_pass_void(pass);
	}
	spin_unlock_bh(&pass->lock);
	kdsm_part_changed(&pass->part);
	return 0;
}

/* The parent is dead, and does not count this child any more. Another one has to be found. */
static void kdsm_pass_orphan(struct kdsm_pass *pass)
{
	if (pass->state == KDSM_PASS_NONE || pass->state == KDSM_PASS_LOST)
		return;
	pass->parent = KDSM_NOBODY;
	if (kdsm_pass_asks(pass)) {
		kdsm_pass_void(pass);
	} else if (kdsm_pass_is_inside(pass)) {
		pass->once = false;
		kdsm_pass_enter(pass, KDSM_PASS_LAST);
	} else {
		kdsm_pass_enter(pass, KDSM_PASS_NONE);
	}
}

void kdsm_pass_strike(struct kdsm_pass *pass, unsigned int node)
{
	spin_lock_bh(&pass->lock);
	if (pass->parent == node)
		kdsm_pass_orphan(pass);
	spin_unlock_bh(&pass->lock);
	kdsm_part_changed(&pass->part);
}

int kdsm_pass_serve_dismiss(struct kdsm_pass *pass, struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	unsigned int parent;

	if (request->from != pass->part.home)
		return -EINVAL;
	spin_lock_bh(&pass->lock);
	pass->dismissal = le64_to_cpu(wire->request);
	pass->era = max(pass->era, le64_to_cpu(wire->era));
	pass->dismissed = 0;
	parent = pass->parent;
	if (parent != KDSM_NOBODY &&
	    le64_to_cpu(wire->nodes[parent / 64]) >> (parent % 64) & 1)
		kdsm_pass_orphan(pass);
	spin_unlock_bh(&pass->lock);
	kdsm_part_changed(&pass->part);
	return 0;
}

/* ---- messages to parents ---- */

static void kdsm_pass_name(const struct kdsm_pass *pass, struct kdsm_wire_pass *wire)
{
	*wire = (struct kdsm_wire_pass) {
		.id = cpu_to_le32(pass->part.region),
		.number = cpu_to_le16(pass->part.number),
		.life = cpu_to_le64(pass->life),
		.request = cpu_to_le64(pass->request),
		.flags = cpu_to_le16(pass->level),
	};
}

/* ENTER. Several without an answer: go to the home, which is the last resort. */
static u64 kdsm_pass_ask(struct kdsm_pass *pass, struct kdsm_wire_pass *wire,
			 unsigned int parent)
{
	unsigned int length = sizeof(struct kdsm_wire_pass);
	struct kdsm_wire_pass reply;
	int err;

	err = kdsm_part_send(&pass->part, parent, KDSM_MESSAGE_READ_ENTER, wire, sizeof(*wire),
			     &reply, &length);
	spin_lock_bh(&pass->lock);
	if (!kdsm_pass_asks(pass) || pass->request != le64_to_cpu(wire->request) ||
	    pass->parent != parent) {
		err = 0;
	} else if (err == -ENOENT && parent == pass->part.home) {
		kdsm_pass_enter(pass, KDSM_PASS_LOST);
		err = 0;
	} else if (err) {
		/* Perhaps another parent: this one may have admitted, and will revoke that. */
		if (err != -EAGAIN) {
			pass->parent = KDSM_NOBODY;
			pass->request++;
			pass->order = 0;
		}
		pass->state = KDSM_PASS_ASKING;
	} else if (length != sizeof(reply)) {
		err = -EPROTO;
	} else if (pass->life < le64_to_cpu(reply.life)) {
		/* See kdsm_turn_ask() */
		pass->life = le64_to_cpu(reply.life);
		pass->state = KDSM_PASS_ASKING;
	} else if (le16_to_cpu(reply.mode) == KDSM_ADMIT_LATER) {
		kdsm_pass_enter(pass, KDSM_PASS_WAITING);
		pass->poll = ktime_get_ns() + KDSM_PASS_POLL;
	} else {
		/* A parent of a former era will revoke that. */
		err = kdsm_pass_admit(pass, &reply) ? 0 : -EAGAIN;
	}
	spin_unlock_bh(&pass->lock);
	kdsm_part_changed(&pass->part);
	return err ? KDSM_PASS_RETRY : 0;
}

static int kdsm_pass_send_left(struct kdsm_pass *pass, struct kdsm_wire_pass *wire,
			       unsigned int node, u64 request)
{
	int err;

	wire->request = cpu_to_le64(request);
	err = kdsm_part_send(&pass->part, node, KDSM_MESSAGE_READ_LEFT, wire, sizeof(*wire), NULL,
			     NULL);
	/* A parent that does not know the lock has forgotten its children, too. */
	return err == -ENOENT ? 0 : err;
}

static u64 kdsm_pass_send_leaving(struct kdsm_pass *pass, struct kdsm_wire_pass *wire,
				  unsigned int parent)
{
	u64 request = le64_to_cpu(wire->request);
	int err = kdsm_pass_send_left(pass, wire, parent, request);

	spin_lock_bh(&pass->lock);
	if (!err && pass->state == KDSM_PASS_LEAVING && pass->request == request)
		kdsm_pass_enter(pass, KDSM_PASS_NONE);
	spin_unlock_bh(&pass->lock);
	if (!err)
		kdsm_part_changed(&pass->part);
	return err ? KDSM_PASS_RETRY : 0;
}

/* LEFT without a pass. The parent repeats REVOKE until it hears, so one try will do. */
static void kdsm_pass_pay(struct kdsm_pass *pass, struct kdsm_wire_pass *wire)
{
	unsigned int node = pass->owed_to;

	pass->owed_to = KDSM_NOBODY;
	wire->life = cpu_to_le64(pass->owed_life);
	spin_unlock_bh(&pass->lock);
	kdsm_pass_send_left(pass, wire, node, pass->owed);
	spin_lock_bh(&pass->lock);
}

/* Tell the home that no thread of this node reads by a dead parent; see kdsm_pass_pay(). */
static void kdsm_pass_answer(struct kdsm_pass *pass, struct kdsm_wire_pass *wire)
{
	u64 dismissal = pass->dismissal;

	pass->dismissed = dismissal;
	wire->flags |= cpu_to_le16(KDSM_PASS_DISMISSED);
	spin_unlock_bh(&pass->lock);
	kdsm_pass_send_left(pass, wire, pass->part.home, dismissal);
	spin_lock_bh(&pass->lock);
}

static u64 kdsm_pass_step(struct kdsm_pass *pass, struct kdsm_wire_pass *wire)
	__must_hold(&pass->lock)
{
	enum kdsm_pass_state state = pass->state;
	unsigned int parent = pass->parent;
	u64 delay;

	spin_unlock_bh(&pass->lock);
	if (state == KDSM_PASS_LEAVING)
		delay = kdsm_pass_send_leaving(pass, wire, parent);
	else
		delay = kdsm_pass_ask(pass, wire, parent);
	spin_lock_bh(&pass->lock);
	return delay;
}

/* ASKING: which parent */
static void kdsm_pass_choose(struct kdsm_pass *pass)
	__must_hold(&pass->lock)
{
	unsigned int parent;

	spin_unlock_bh(&pass->lock);
	parent = pass->level == KDSM_PASS_HOME ? pass->part.home : kdsm_pass_parent(pass);
	spin_lock_bh(&pass->lock);
	if (pass->state == KDSM_PASS_ASKING && pass->parent == KDSM_NOBODY)
		pass->parent = parent;
}

/* Whether there is something to send; the caller calls again after each. */
static bool kdsm_pass_next(struct kdsm_pass *pass, u64 *delay)
{
	struct kdsm_wire_pass wire;

	kdsm_pass_name(pass, &wire);
	if (pass->owed_to != KDSM_NOBODY) {
		kdsm_pass_pay(pass, &wire);
		return true;
	}
	if (pass->dismissal != pass->dismissed && !kdsm_pass_is_inside(pass)) {
		kdsm_pass_answer(pass, &wire);
		return true;
	}
	if (pass->state == KDSM_PASS_ASKING && pass->parent == KDSM_NOBODY) {
		kdsm_pass_choose(pass);
		return true;
	}
	if (pass->state == KDSM_PASS_ASKING || pass->state == KDSM_PASS_LEAVING ||
	    (pass->state == KDSM_PASS_WAITING && ktime_get_ns() >= pass->poll)) {
		*delay = kdsm_pass_step(pass, &wire);
		return true;
	}
	return false;
}

u64 kdsm_pass_advance(struct kdsm_pass *pass)
{
	u64 delay = 0;

	spin_lock_bh(&pass->lock);
	while (!delay && kdsm_pass_next(pass, &delay))
		;
	if (!delay && pass->state == KDSM_PASS_WAITING)
		delay = kdsm_part_until(pass->poll);
	spin_unlock_bh(&pass->lock);
	return delay;
}
