// SPDX-License-Identifier: GPL-2.0
/*
 * The home's part in a lock: nodes that ask, leave or die, and the choice of the next node. The
 * home is the only authority about the queue. Nothing here sleeps or allocates, so messages are
 * served in softirq; errand.c sends.
 *
 * The home gives out turns by lists, which travel with the lock, and does not see each
 * hand-over. A node has one request at a time, so a new request of a node with a turn proves
 * that this turn, and all before it, are over.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "home.h"

/* ---- start and stop ---- */

int kdsm_home_init(struct kdsm_lock_home *home, const struct kdsm_ranks *ranks,
		   unsigned int levels)
{
	int err;

	spin_lock_init(&home->lock);
	home->state = KDSM_HOME_OPENING;
	home->epoch = 1;
	home->first = 1;
	home->from = home->part.node;
	home->entries = kvcalloc(home->part.nodes, sizeof(*home->entries), GFP_KERNEL);
	home->unheard = bitmap_zalloc(home->part.nodes, GFP_KERNEL);
	home->dismissed = bitmap_zalloc(KDSM_MAX_NODES, GFP_KERNEL);
	home->undismissed = bitmap_zalloc(home->part.nodes, GFP_KERNEL);
	err = home->entries && home->unheard && home->dismissed && home->undismissed ? 0 : -ENOMEM;
	err = err ?: kdsm_order_init(&home->order, ranks, levels, &home->thresholds);
	home->gate.part = &home->part;
	home->gate.lock = &home->lock;
	home->gate.name = kdsm_home_name_pass;
	err = err ?: kdsm_gate_init(&home->gate);
	if (err)
		kdsm_home_exit(home);
	return err;
}

void kdsm_home_exit(struct kdsm_lock_home *home)
{
	kdsm_gate_exit(&home->gate);
	kdsm_order_exit(&home->order);
	kvfree(home->entries);
	bitmap_free(home->unheard);
	bitmap_free(home->dismissed);
	bitmap_free(home->undismissed);
}

void kdsm_home_name(const struct kdsm_lock_home *home, struct kdsm_wire_turn *wire)
{
	*wire = (struct kdsm_wire_turn) {
		.id = cpu_to_le32(home->part.region),
		.number = cpu_to_le16(home->part.number),
		.epoch = cpu_to_le32(home->epoch),
		.node = cpu_to_le16(home->from),
		.flags = cpu_to_le16(home->flags),
	};
}

/* ---- turns ---- */

void kdsm_home_put(struct kdsm_lock_home *home, unsigned int node, u64 turn)
{
	struct kdsm_entry *entry = &home->entries[node];

	home->last = turn;
	home->holders[turn % KDSM_TURNS] = node;
	entry->state = KDSM_ENTRY_LISTED;
	entry->turn = turn;
}

void kdsm_home_over(struct kdsm_lock_home *home, u64 turn)
{
	struct kdsm_entry *entry;

	if (home->state == KDSM_HOME_GRANTING && home->first <= turn) {
		/* HAND arrived, although its answer did not. */
		home->state = KDSM_HOME_TAKEN;
		home->flags = 0;
	}
	/* So did EXTEND. */
	if (home->first <= turn)
		home->sole = 0;
	if (home->push <= turn)
		home->push = 0;
	for (; home->first <= turn; home->first++) {
		entry = &home->entries[kdsm_home_holder(home, home->first)];
		if (entry->state == KDSM_ENTRY_LISTED && entry->turn == home->first)
			entry->state = KDSM_ENTRY_OUT;
	}
}

/* Whether readers wait and it is their turn */
static bool kdsm_home_readers_next(const struct kdsm_lock_home *home)
{
	return home->gate.waiting &&
	       (!home->order.count || home->row >= READ_ONCE(home->thresholds.t_w));
}

void kdsm_home_list(struct kdsm_lock_home *home)
{
	unsigned int node;
	u16 quota;

	if (!home->gate.waiting)
		home->row = 0;
	home->listed = 0;
	/* T_W may change at any time: the caller relies on one node, if any waits. */
	while (home->order.count && home->listed < KDSM_WIRE_NEXT &&
	       home->last + 1 - home->first < KDSM_TURNS &&
	       !(home->listed && (kdsm_home_readers_next(home) ||
				  kdsm_order_pauses(&home->order)))) {
		node = kdsm_order_next(&home->order, &quota);
		kdsm_home_put(home, node, home->last + 1);
		home->quotas[home->last % KDSM_TURNS] = quota;
		home->listed++;
		home->row += quota;
	}
}

void kdsm_home_after(const struct kdsm_lock_home *home, u64 turn, struct kdsm_list *list)
{
	struct kdsm_next *next = list->next;
	u64 i;

	list->first = turn + 1;
	list->count = 0;
	for (i = turn + 1; i <= home->last && list->count < KDSM_WIRE_NEXT; i++, next++) {
		next->node = kdsm_home_holder(home, i);
		next->quota = home->quotas[i % KDSM_TURNS];
		next->life = home->entries[next->node].life;
		list->count++;
	}
}

void kdsm_home_extend(struct kdsm_lock_home *home)
{
	u64 last = home->last;

	if (!home->order.count && !home->gate.waiting)
		return;
	switch (home->state) {
	case KDSM_HOME_KEPT:
		/* The node learns that others wait, even if the list is empty: readers. */
		home->state = KDSM_HOME_TAKEN;
		break;
	case KDSM_HOME_GRANTING:
	case KDSM_HOME_TAKEN:
		/* Early, so that the list does not end before more of it arrives. */
		if (home->push || home->sole || last - home->first >= home->listed / 4 ||
		    kdsm_home_readers_next(home))
			return;
		break;
	default:
		return;
	}
	kdsm_home_list(home);
	home->push = last;
	kdsm_part_changed(&home->part);
}

/* ---- the choice of the next node ---- */

void kdsm_home_next(struct kdsm_lock_home *home)
{
	lockdep_assert_held(&home->lock);
	home->sole = 0;
	home->kept = 0;
	home->push = 0;
	home->state = KDSM_HOME_OWN;
	/* Readers of dead parents may still be inside. */
	if (!bitmap_empty(home->dismissed, home->part.nodes)) {
		home->state = KDSM_HOME_REVOKING;
	} else if (kdsm_home_readers_next(home)) {
		home->row = 0;
		home->state = KDSM_HOME_READING;
		home->switches++;
		home->era++;
		kdsm_gate_open(&home->gate, home->order.count, U32_MAX);
	} else if (home->order.count) {
		home->first = home->last + 1;
		kdsm_home_list(home);
		home->state = KDSM_HOME_GRANTING;
	} else if (!home->flags) {
		home->state = KDSM_HOME_OPENING;
	}
	kdsm_part_changed(&home->part);
}

void kdsm_home_own(struct kdsm_lock_home *home, unsigned int flags, unsigned int from)
{
	kdsm_home_over(home, home->last);
	home->flags = flags & (KDSM_TURN_DEAD | KDSM_TURN_SPOILT);
	home->from = from;
	kdsm_home_next(home);
}

void kdsm_home_came(struct kdsm_lock_home *home)
{
	switch (home->state) {
	case KDSM_HOME_OPEN:
		home->state = KDSM_HOME_CLOSING;
		kdsm_part_changed(&home->part);
		break;
	case KDSM_HOME_OWN:
		kdsm_home_next(home);
		break;
	case KDSM_HOME_READING:
		if (home->order.count && home->gate.state == KDSM_GATE_OPEN)
			kdsm_home_revoke(home);
		break;
	default:
		kdsm_home_extend(home);
		break;
	}
}

/* ---- ENQUEUE ---- */

static void kdsm_home_queue(struct kdsm_lock_home *home, unsigned int node,
			    const struct kdsm_wire_turn *wire)
{
	struct kdsm_entry *entry = &home->entries[node];

	entry->serial = le64_to_cpu(wire->serial);
	entry->threads = le16_to_cpu(wire->quota);
	entry->state = KDSM_ENTRY_QUEUED;
	kdsm_order_add(&home->order, node, entry->threads);
	kdsm_home_came(home);
}

void kdsm_home_recall(struct kdsm_lock_home *home)
{
	unsigned int node;
	u64 turn;

	for (turn = home->first + 1; turn <= home->last; turn++) {
		node = kdsm_home_holder(home, turn);
		home->entries[node].state = KDSM_ENTRY_QUEUED;
		kdsm_order_add(&home->order, node, home->entries[node].threads);
	}
	home->last = home->first;
}

/* The node that the word named asks by the same request: it does not know that it has the lock. */
static void kdsm_home_returned(struct kdsm_lock_home *home, unsigned int node,
			       const struct kdsm_wire_turn *wire)
{
	kdsm_home_recall(home);
	home->entries[node].state = KDSM_ENTRY_QUEUED;
	home->entries[node].serial = le64_to_cpu(wire->serial);
	kdsm_order_add(&home->order, node, le16_to_cpu(wire->quota));
	home->first = home->last + 1;
	home->flags = 0;
	home->from = home->part.node;
	kdsm_home_next(home);
}

static bool kdsm_home_is_sole(const struct kdsm_lock_home *home, unsigned int node, u64 life,
			      u64 serial)
{
	return home->sole && (home->state == KDSM_HOME_TAKEN || home->state == KDSM_HOME_KEPT) &&
	       home->sole == kdsm_word_held(node, life, serial);
}

void kdsm_home_meet(struct kdsm_entry *entry, u64 life)
{
	entry->life = max(entry->life, life);
	entry->known = true;
}

/* No thread of the node waits any more. If no other writer waits, either, readers go on. */
static void kdsm_home_withdraw(struct kdsm_lock_home *home, unsigned int node, u64 serial)
{
	struct kdsm_entry *entry = &home->entries[node];

	/* It has a turn: the lock comes to the node, which passes it on. */
	if (entry->state == KDSM_ENTRY_LISTED && serial <= entry->serial)
		return;
	if (entry->state == KDSM_ENTRY_LISTED)
		kdsm_home_over(home, entry->turn);
	if (entry->state == KDSM_ENTRY_QUEUED)
		kdsm_order_remove(&home->order, node);
	entry->state = KDSM_ENTRY_OUT;
	entry->serial = max(entry->serial, serial);
	if (home->state != KDSM_HOME_REVOKING || home->order.count ||
	    !bitmap_empty(home->dismissed, home->part.nodes))
		return;
	home->state = KDSM_HOME_READING;
	kdsm_gate_reopen(&home->gate);
	kdsm_part_changed(&home->part);
}

static int kdsm_home_enqueue(struct kdsm_lock_home *home, unsigned int node,
			     const struct kdsm_wire_turn *wire)
{
	u64 life = le64_to_cpu(wire->life), serial = le64_to_cpu(wire->serial);
	struct kdsm_entry *entry = &home->entries[node];

	if (home->state == KDSM_HOME_SURVEY)
		return -EAGAIN;
	if (kdsm_home_is_sole(home, node, life, serial)) {
		kdsm_home_meet(entry, life);
		kdsm_home_returned(home, node, wire);
		return 0;
	}
	/* Until the node has answered EXTEND, the home does not know whether it has the lock. */
	if (home->sole && kdsm_home_holder(home, home->first) == node)
		return -EAGAIN;
	/* A message of a life that is over, or a node whose clock went back: the reply tells it. */
	if (life < entry->life || (life == entry->life && !entry->known))
		return 0;
	if (life > entry->life && entry->state != KDSM_ENTRY_OUT) {
		kdsm_home_bury(home, node, life);
		return -EAGAIN;
	}
	if (life > entry->life)
		entry->serial = 0;
	kdsm_home_meet(entry, life);
	if (!wire->quota) {
		kdsm_home_withdraw(home, node, serial);
	} else if (serial > entry->serial) {
		if (entry->state == KDSM_ENTRY_LISTED)
			kdsm_home_over(home, entry->turn);
		if (entry->state != KDSM_ENTRY_QUEUED)
			kdsm_home_queue(home, node, wire);
	}
	return 0;
}

/*
 * A node still waits, as it says once in KDSM_TURN_POLL. Look for the nodes that may have the lock:
 * the home has nothing to send to them, so it would not find that they are dead.
 */
static void kdsm_home_look(struct kdsm_lock_home *home, unsigned int from)
{
	unsigned int node;
	u64 turn;

	if (home->state != KDSM_HOME_TAKEN && home->state != KDSM_HOME_KEPT)
		return;
	for (turn = home->first; turn <= home->last; turn++) {
		node = kdsm_home_holder(home, turn);
		if (node != from && node != home->part.node)
			kdsm_part_missed(&home->part, node);
	}
}

int kdsm_home_serve_enqueue(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_entry *entry = &home->entries[request->from];
	const struct kdsm_wire_turn *wire = request->data;
	struct kdsm_wire_turn *reply = request->reply;
	int err;

	spin_lock_bh(&home->lock);
	if (wire->quota && le64_to_cpu(wire->serial) == entry->serial)
		kdsm_home_look(home, request->from);
	err = kdsm_home_enqueue(home, request->from, wire);
	kdsm_home_name(home, reply);
	/* A node that hears of a later life than its own takes that. */
	reply->life = cpu_to_le64(entry->life + !entry->known);
	reply->answer = cpu_to_le16(entry->state == KDSM_ENTRY_OUT ? KDSM_REPLY_GONE :
								     KDSM_REPLY_WAIT);
	spin_unlock_bh(&home->lock);
	request->reply_length = kdsm_wire_turn_size(0);
	return err;
}

/* ---- LEAVE ---- */

/* The turn that the node leaves, or 0: it does not have the lock any more */
static u64 kdsm_home_turn_of(const struct kdsm_lock_home *home, unsigned int node,
			     const struct kdsm_wire_turn *wire)
{
	u64 turn = le64_to_cpu(wire->turn);

	if (home->state != KDSM_HOME_GRANTING && home->state != KDSM_HOME_TAKEN &&
	    home->state != KDSM_HOME_KEPT)
		return 0;
	if (!turn)
		return kdsm_home_is_sole(home, node, le64_to_cpu(wire->life),
					 le64_to_cpu(wire->serial)) ? home->first : 0;
	/* The number of the turn proves the node's life: only the home, or a holder, told it. */
	if (turn < home->first || turn > home->last || kdsm_home_holder(home, turn) != node ||
	    le32_to_cpu(wire->epoch) != home->epoch)
		return 0;
	return turn;
}

/* The possession that LEAVE ends: a turn or, where the word named the node, the word */
static u64 kdsm_home_key(unsigned int node, const struct kdsm_wire_turn *wire)
{
	return le64_to_cpu(wire->turn) ?: kdsm_word_held(node, le64_to_cpu(wire->life),
							 le64_to_cpu(wire->serial));
}

/*
 * Each KEEP begins a new turn of the same node, so that a LEAVE which arrives twice does not end
 * it.
 */
static void kdsm_home_keep(struct kdsm_lock_home *home, unsigned int node,
			   const struct kdsm_wire_turn *wire)
{
	kdsm_home_over(home, home->last);
	kdsm_home_put(home, node, home->last + 1);
	home->kept = kdsm_home_key(node, wire);
	home->sole = 0;
	home->push = 0;
	home->state = KDSM_HOME_KEPT;
}

static enum kdsm_turn_reply kdsm_home_leave(struct kdsm_lock_home *home, unsigned int node,
					    u64 turn, const struct kdsm_wire_turn *wire)
{
	unsigned int flags = le16_to_cpu(wire->flags);

	kdsm_home_meet(&home->entries[node], le64_to_cpu(wire->life));
	if (turn < home->last) {
		/* There is a list, and EXTEND, which the home repeats, has not said so yet. */
		kdsm_home_over(home, turn - 1);
		home->state = KDSM_HOME_TAKEN;
		return KDSM_REPLY_LIST;
	}
	if (!home->order.count && !home->gate.waiting && (flags & KDSM_TURN_KEEP)) {
		kdsm_home_keep(home, node, wire);
		return KDSM_REPLY_KEEP;
	}
	kdsm_home_own(home, flags, le16_to_cpu(wire->node));
	return KDSM_REPLY_GONE;
}

int kdsm_home_serve_leave(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_wire_turn *wire = request->data;
	struct kdsm_wire_turn *reply = request->reply;
	enum kdsm_turn_reply answer = KDSM_REPLY_GONE;
	struct kdsm_list list = { };
	int err = 0;
	u64 turn;

	spin_lock_bh(&home->lock);
	turn = kdsm_home_turn_of(home, request->from, wire);
	if (home->state == KDSM_HOME_SURVEY || home->state == KDSM_HOME_CLOSING)
		err = -EAGAIN;
	else if (turn && (le16_to_cpu(wire->flags) & KDSM_TURN_HANDED))
		err = -EAGAIN;
	else if (home->kept && home->kept == kdsm_home_key(request->from, wire))
		answer = KDSM_REPLY_KEEP;
	else if (turn)
		answer = kdsm_home_leave(home, request->from, turn, wire);
	if (answer == KDSM_REPLY_LIST)
		kdsm_home_after(home, turn, &list);
	kdsm_home_name(home, reply);
	kdsm_list_write(reply, &list);
	reply->turn = cpu_to_le64(answer == KDSM_REPLY_KEEP ? home->first : turn);
	reply->answer = cpu_to_le16(answer);
	reply->flags = cpu_to_le16(home->state == KDSM_HOME_OPENING ? KDSM_TURN_FREE : 0);
	spin_unlock_bh(&home->lock);
	request->reply_length = kdsm_wire_turn_size(list.count);
	return err;
}
