// SPDX-License-Identifier: GPL-2.0
/*
 * A node's part in a lock: the events that change its state. Threads of the node ask and
 * release; the home and other nodes send HAND, EXTEND and SURVEY. The node's own messages are
 * in network.c. Nothing here sleeps.
 */
#include <linux/bitfield.h>
#include <linux/ktime.h>
#include <linux/string.h>

#include "turn.h"

/* ---- lists ---- */

void kdsm_list_write(struct kdsm_wire_turn *wire, const struct kdsm_list *list)
{
	unsigned int i;

	wire->count = cpu_to_le16(list->count);
	for (i = 0; i < list->count; i++) {
		wire->next[i].node = cpu_to_le16(list->next[i].node);
		wire->next[i].quota = cpu_to_le16(list->next[i].quota);
		wire->next[i].life = cpu_to_le16(list->next[i].life);
	}
}

int kdsm_list_read(const struct kdsm_wire_turn *wire, struct kdsm_list *list,
		   unsigned int nodes)
{
	unsigned int i;

	list->count = le16_to_cpu(wire->count);
	list->first = le64_to_cpu(wire->turn) + 1;
	for (i = 0; i < list->count; i++) {
		list->next[i].node = le16_to_cpu(wire->next[i].node);
		list->next[i].quota = le16_to_cpu(wire->next[i].quota);
		list->next[i].life = le16_to_cpu(wire->next[i].life);
		if (list->next[i].node >= nodes)
			return -EINVAL;
	}
	return 0;
}

bool kdsm_wire_turn_fits(const struct kdsm_wire_turn *wire, unsigned int length)
{
	return length >= kdsm_wire_turn_size(0) &&
	       le16_to_cpu(wire->count) <= KDSM_WIRE_NEXT &&
	       length == kdsm_wire_turn_size(le16_to_cpu(wire->count));
}

/* ---- states ---- */

void kdsm_turn_init(struct kdsm_turn *turn)
{
	spin_lock_init(&turn->lock);
	turn->state = KDSM_TURN_NONE;
	turn->from = KDSM_NOBODY;
}

void kdsm_turn_enter(struct kdsm_turn *turn, enum kdsm_turn_state state)
{
	lockdep_assert_held(&turn->lock);
	turn->state = state;
	turn->missed = 0;
	turn->poll = 0;
}

void kdsm_turn_name(const struct kdsm_turn *turn, struct kdsm_wire_turn *wire)
{
	*wire = (struct kdsm_wire_turn) {
		.id = cpu_to_le32(turn->part.region),
		.number = cpu_to_le16(turn->part.number),
		.life = cpu_to_le64(turn->life),
		.serial = cpu_to_le64(turn->serial),
		.turn = cpu_to_le64(turn->turn),
		.epoch = cpu_to_le32(turn->epoch),
		.flags = cpu_to_le16(turn->flags),
	};
}

/* ---- threads of this node ---- */

void kdsm_turn_want(struct kdsm_turn *turn, unsigned int threads)
{
	spin_lock_bh(&turn->lock);
	/* The request may be withdrawn by now: ask at once. */
	if (!turn->threads && turn->state == KDSM_TURN_WAITING)
		turn->poll = 0;
	turn->threads = threads;
	if (turn->state == KDSM_TURN_NONE) {
		turn->serial++;
		turn->flags = 0;
		kdsm_turn_enter(turn, turn->contended && threads ? KDSM_TURN_ASKING :
								   KDSM_TURN_TAKING);
	}
	spin_unlock_bh(&turn->lock);
}

void kdsm_turn_drop(struct kdsm_turn *turn)
{
	spin_lock_bh(&turn->lock);
	turn->threads = 0;
	/* Tell the home now, by the next ENQUEUE. */
	if (turn->state == KDSM_TURN_WAITING)
		turn->poll = 0;
	spin_unlock_bh(&turn->lock);
}

bool kdsm_turn_is_alone(const struct kdsm_turn *turn)
{
	enum kdsm_turn_state state = READ_ONCE(turn->state);

	return state == KDSM_TURN_SOLE || state == KDSM_TURN_KEPT;
}

bool kdsm_turn_is_here(const struct kdsm_turn *turn)
{
	enum kdsm_turn_state state = READ_ONCE(turn->state);

	return state == KDSM_TURN_SOLE || state == KDSM_TURN_KEPT || state == KDSM_TURN_HELD;
}

bool kdsm_turn_may_pass(struct kdsm_turn *turn)
{
	bool may = true;

	spin_lock_bh(&turn->lock);
	if (turn->state == KDSM_TURN_HELD)
		may = turn->used++ < turn->quota;
	spin_unlock_bh(&turn->lock);
	return may;
}

static enum kdsm_turn_state kdsm_turn_after(const struct kdsm_turn *turn, bool keep)
{
	switch (turn->state) {
	case KDSM_TURN_SOLE:
		/* A free word has no room for flags: keep the lock until another node asks. */
		return keep || turn->flags ? KDSM_TURN_SOLE : KDSM_TURN_FREEING;
	case KDSM_TURN_KEPT:
		return keep ? KDSM_TURN_KEPT : KDSM_TURN_LEAVING;
	default:
		return turn->list.count ? KDSM_TURN_HANDING : KDSM_TURN_LEAVING;
	}
}

bool kdsm_turn_done(struct kdsm_turn *turn, unsigned int flags, bool keep)
{
	enum kdsm_turn_state state;
	bool leaves = false;

	spin_lock_bh(&turn->lock);
	if (kdsm_turn_is_here(turn)) {
		turn->flags = flags & (KDSM_TURN_DEAD | KDSM_TURN_SPOILT);
		turn->keep = keep;
		state = kdsm_turn_after(turn, keep);
		leaves = state != turn->state;
		if (leaves)
			kdsm_turn_enter(turn, state);
		turn->ready = false;
		turn->leaves++;
		if (state == KDSM_TURN_LEAVING)
			turn->list.first = 0;
	}
	spin_unlock_bh(&turn->lock);
	return leaves;
}

bool kdsm_turn_out(struct kdsm_turn *turn)
{
	bool had;

	spin_lock_bh(&turn->lock);
	had = kdsm_turn_is_here(turn);
	turn->life++;
	turn->epoch = 0;
	turn->turn = 0;
	turn->list.count = 0;
	turn->flags = 0;
	if (turn->state != KDSM_TURN_LOST)
		kdsm_turn_enter(turn, KDSM_TURN_NONE);
	spin_unlock_bh(&turn->lock);
	kdsm_part_changed(&turn->part);
	return had;
}

/* ---- HAND ---- */

/* May this node take the turn? 0, -EALREADY: it had it; or the error of the reply. */
static int kdsm_turn_accepts(const struct kdsm_turn *turn, const struct kdsm_wire_turn *wire)
{
	u64 number = le64_to_cpu(wire->turn);
	u32 epoch = le32_to_cpu(wire->epoch);

	if (le64_to_cpu(wire->life) != (u16)turn->life || epoch < turn->epoch)
		return -ESTALE;
	if (epoch == turn->epoch && number <= turn->turn)
		return -EALREADY;
	switch (turn->state) {
	case KDSM_TURN_NONE:
	case KDSM_TURN_ASKING:
	case KDSM_TURN_WAITING:
		return 0;
	default:
		return -EAGAIN;
	}
}

static void kdsm_turn_accept(struct kdsm_turn *turn, const struct kdsm_wire_turn *wire,
			     const struct kdsm_list *list)
{
	u64 number = le64_to_cpu(wire->turn);

	turn->epoch = le32_to_cpu(wire->epoch);
	turn->turn = number;
	turn->flags = le16_to_cpu(wire->flags) & (KDSM_TURN_DEAD | KDSM_TURN_SPOILT);
	turn->from = le16_to_cpu(wire->node);
	turn->back = false;
	turn->quota = le16_to_cpu(wire->quota);
	turn->used = 0;
	turn->named = false;
	/* The home may have sent the next list early, to the last node of this one. */
	if (list->count || turn->list.first != number + 1)
		turn->list = *list;
	kdsm_turn_enter(turn, KDSM_TURN_HELD);
}

int kdsm_turn_serve_hand(struct kdsm_turn *turn, struct kdsm_request *request)
{
	const struct kdsm_wire_turn *wire = request->data;
	struct kdsm_list list;
	int err;

	if (kdsm_list_read(wire, &list, turn->part.nodes))
		return -EINVAL;
	spin_lock_bh(&turn->lock);
	err = kdsm_turn_accepts(turn, wire);
	if (!err)
		kdsm_turn_accept(turn, wire, &list);
	/* The home does not know of this life: make it known. */
	if (le64_to_cpu(wire->life) != (u16)turn->life && !turn->epoch &&
	    turn->state == KDSM_TURN_NONE) {
		turn->serial++;
		kdsm_turn_enter(turn, KDSM_TURN_ASKING);
	}
	spin_unlock_bh(&turn->lock);
	if (!err || turn->state == KDSM_TURN_ASKING)
		kdsm_part_changed(&turn->part);
	return err == -EALREADY ? 0 : err;
}

/* ---- EXTEND ---- */

void kdsm_turn_take_list(struct kdsm_turn *turn, const struct kdsm_list *list)
{
	lockdep_assert_held(&turn->lock);
	turn->list = *list;
	turn->turn = list->first - 1;
	turn->used = 0;
	turn->named = false;
	kdsm_turn_enter(turn, KDSM_TURN_HELD);
}

/* 0: as many threads as wait now */
static u16 kdsm_turn_quota(const struct kdsm_turn *turn, const struct kdsm_wire_turn *wire)
{
	return le16_to_cpu(wire->quota) ?: min_t(u16, turn->threads, KDSM_LOCK_T_L_MOST);
}

/* The home has taken the word, which named this node, and says so: it is in wire->serial. */
static int kdsm_turn_extend_sole(struct kdsm_turn *turn, const struct kdsm_wire_turn *wire,
				 const struct kdsm_list *list)
{
	/* The list is of a time before the survey. */
	if (le32_to_cpu(wire->epoch) < turn->epoch)
		return -ESTALE;
	/* A repeated EXTEND changes nothing. */
	if (turn->turn >= list->first - 1)
		return 0;
	if (le64_to_cpu(wire->serial) != kdsm_word_held(turn->part.node, turn->life, turn->serial))
		return -ENOENT;
	switch (turn->state) {
	case KDSM_TURN_SOLE:
		turn->quota = kdsm_turn_quota(turn, wire);
		turn->epoch = le32_to_cpu(wire->epoch);
		kdsm_turn_take_list(turn, list);
		return 0;
	case KDSM_TURN_TAKING:
	case KDSM_TURN_ASKING:
	case KDSM_TURN_FREEING:
		/* The answer of an operation on the word will show it soon. */
		return -EAGAIN;
	case KDSM_TURN_LEAVING:
		/* The home answers LEAVE with the list. */
		return -EAGAIN;
	default:
		return -ENOENT;
	}
}

static int kdsm_turn_extend(struct kdsm_turn *turn, const struct kdsm_wire_turn *wire,
			    const struct kdsm_list *list)
{
	u64 number = list->first - 1;

	if (le32_to_cpu(wire->epoch) != turn->epoch)
		return -ENOENT;
	switch (turn->state) {
	case KDSM_TURN_ASKING:
	case KDSM_TURN_WAITING:
		/* The turn is still to come. */
		if (turn->turn < number)
			turn->list = *list;
		return turn->turn < number ? 0 : -ENOENT;
	case KDSM_TURN_HELD:
		/* A repeated EXTEND changes nothing. */
		if (turn->turn == number && !turn->list.count)
			turn->list = *list;
		return turn->turn == number ? 0 : -ENOENT;
	case KDSM_TURN_KEPT:
		if (turn->turn != number)
			return -ENOENT;
		turn->quota = kdsm_turn_quota(turn, wire);
		kdsm_turn_take_list(turn, list);
		return 0;
	case KDSM_TURN_LEAVING:
		/* It counts if the home answers KEEP: EXTEND came later, and was faster. */
		if (number >= turn->turn)
			turn->list = *list;
		return number >= turn->turn ? 0 : -ENOENT;
	default:
		return -ENOENT;
	}
}

int kdsm_turn_serve_extend(struct kdsm_turn *turn, struct kdsm_request *request)
{
	const struct kdsm_wire_turn *wire = request->data;
	struct kdsm_wire_turn *reply = request->reply;
	struct kdsm_list list;
	int err;

	if (request->from != turn->part.home || kdsm_list_read(wire, &list, turn->part.nodes))
		return -EINVAL;
	spin_lock_bh(&turn->lock);
	err = wire->serial ? kdsm_turn_extend_sole(turn, wire, &list) :
			     kdsm_turn_extend(turn, wire, &list);
	kdsm_turn_name(turn, reply);
	spin_unlock_bh(&turn->lock);
	request->reply_length = kdsm_wire_turn_size(0);
	if (!err)
		kdsm_part_changed(&turn->part);
	if (err == -ENOENT) {
		/* The reply has this node's life, which a failed message would not bring. */
		reply->answer = cpu_to_le16(KDSM_REPLY_GONE);
		err = 0;
	}
	return err;
}

/* ---- SURVEY ---- */

/* Answer, and give the lock back to the home if it may be here or at another node. */
static void kdsm_turn_report(struct kdsm_turn *turn, u32 epoch)
{
	struct kdsm_wire_turn *report = &turn->report;
	bool leaves = turn->state == KDSM_TURN_HANDING || turn->state == KDSM_TURN_LEAVING;

	turn->epoch = epoch;
	/* The lock that this node gave back is at the home, as long as no later turn came here. */
	if (!leaves && report->gave && turn->gave == turn->turn) {
		report->epoch = cpu_to_le32(epoch);
		report->serial = cpu_to_le64(turn->serial);
		report->answer = cpu_to_le16(turn->state);
		return;
	}
	kdsm_turn_name(turn, report);
	report->answer = cpu_to_le16(turn->state);
	report->node = cpu_to_le16(turn->from);
	if (turn->named)
		report->turn = 0;
	if (leaves) {
		turn->gave = turn->turn;
		if (turn->named)
			report->turn = cpu_to_le64(kdsm_word_held(turn->part.node, turn->life,
								  turn->serial));
		report->gave = cpu_to_le16(turn->state);
		report->node = cpu_to_le16(turn->part.node);
		report->quota = cpu_to_le16(turn->state == KDSM_TURN_HANDING ?
					    turn->list.next[0].node : KDSM_NOBODY);
		turn->contended = true;
		turn->named = false;
		kdsm_turn_enter(turn, KDSM_TURN_NONE);
	}
	turn->list.count = 0;
}

int kdsm_turn_serve_survey(struct kdsm_turn *turn, struct kdsm_request *request)
{
	const struct kdsm_wire_turn *wire = request->data;
	u32 epoch;
	int err = 0;

	if (request->from != turn->part.home)
		return -EINVAL;
	epoch = le32_to_cpu(wire->epoch);
	spin_lock_bh(&turn->lock);
	if (wire->life && le64_to_cpu(wire->life) != turn->life)
		err = -ESTALE;
	else if (!turn->ready && (turn->state == KDSM_TURN_HANDING ||
				  turn->state == KDSM_TURN_LEAVING))
		/* The next holder would not find the signature. */
		err = -EAGAIN;
	else if (epoch > turn->epoch)
		kdsm_turn_report(turn, epoch);
	else if (epoch != le32_to_cpu(turn->report.epoch))
		err = -ESTALE;
	if (!err) {
		memcpy(request->reply, &turn->report, kdsm_wire_turn_size(0));
		request->reply_length = kdsm_wire_turn_size(0);
	}
	spin_unlock_bh(&turn->lock);
	if (!err)
		kdsm_part_changed(&turn->part);
	return err;
}
