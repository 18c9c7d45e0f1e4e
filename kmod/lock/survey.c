// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes that die. A node that waits leaves the queue. If a node dies that has a turn, the home
 * does not know where the lock is, because hand-overs do not pass the home. Then it asks all nodes
 * that have asked it before. A node that has answered refuses hand-overs of former epochs, and
 * has given back a lock that it was handing over or leaving. So after the last answer the lock is
 * where the highest turn is, and cannot move: at a living node, at the home, or lost with the
 * dead one.
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>

#include "home.h"

/* ---- the answers ---- */

/* The lock has reached this turn. A finding of the same turn counts if it is more certain. */
static void kdsm_finding_add(struct kdsm_finding *finding, struct kdsm_finding more)
{
	if (more.turn > finding->turn ||
	    (more.turn == finding->turn && more.where > finding->where))
		*finding = more;
}

/* The node answered that it gave the lock back: while it was handing it over, or leaving. */
static struct kdsm_finding kdsm_home_gave(const struct kdsm_lock_home *home,
					  const struct kdsm_wire_turn *report)
{
	struct kdsm_finding finding = {
		.turn = le64_to_cpu(report->turn),
		.node = le16_to_cpu(report->quota),
		.flags = le16_to_cpu(report->flags),
		.from = le16_to_cpu(report->node),
		.where = KDSM_FOUND_HOME,
	};

	/* A node that the word named has no turn, and says the word. */
	if (finding.turn & KDSM_WORD_HELD) {
		if (finding.turn != home->sole)
			return (struct kdsm_finding) { };
		finding.turn = home->first;
	}
	return finding;
}

static struct kdsm_finding kdsm_home_find(const struct kdsm_lock_home *home, unsigned int node,
					  const struct kdsm_wire_turn *report)
{
	u64 word = kdsm_word_held(node, le64_to_cpu(report->life), le64_to_cpu(report->serial));
	struct kdsm_finding finding = {
		.turn = le64_to_cpu(report->turn),
		.node = node,
		.state = le16_to_cpu(report->answer),
		.where = KDSM_FOUND_HERE,
	};

	if (report->gave)
		return kdsm_home_gave(home, report);
	switch (finding.state) {
	case KDSM_TURN_HELD:
	case KDSM_TURN_KEPT:
		return finding;
	case KDSM_TURN_SOLE:
	case KDSM_TURN_TAKING:
	case KDSM_TURN_ASKING:
	case KDSM_TURN_FREEING:
		if (home->sole == word) {
			finding.turn = home->first;
			return finding;
		}
		fallthrough;
	default:
		/* The node had that turn, and the next node has answered it. */
		return (struct kdsm_finding) { .turn = finding.turn + 1 };
	}
}

/* ---- the survey ---- */

/*
 * A node that waits, by a list or not, waits in the queue from now on. One that does not wait had
 * its turn.
 */
static void kdsm_home_requeue(struct kdsm_lock_home *home, unsigned int node,
			      const struct kdsm_wire_turn *report)
{
	struct kdsm_entry *entry = &home->entries[node];
	u16 state = le16_to_cpu(report->answer);

	if (entry->state == KDSM_ENTRY_OUT)
		return;
	if (entry->state == KDSM_ENTRY_QUEUED)
		kdsm_order_remove(&home->order, node);
	entry->state = KDSM_ENTRY_OUT;
	if (state != KDSM_TURN_WAITING && state != KDSM_TURN_ASKING)
		return;
	entry->serial = le64_to_cpu(report->serial);
	entry->state = KDSM_ENTRY_QUEUED;
	kdsm_order_add(&home->order, node, entry->threads);
}

/* All have answered. */
static void kdsm_home_conclude(struct kdsm_lock_home *home)
{
	struct kdsm_finding found = home->finding;
	unsigned int node;

	for (node = 0; node < home->part.nodes; node++)
		if (home->entries[node].state == KDSM_ENTRY_LISTED)
			home->entries[node].state = KDSM_ENTRY_OUT;
	home->push = 0;
	/* A dead node may have got the lock, and said nothing. */
	if (found.where == KDSM_FOUND_HOME && found.node < home->part.nodes &&
	    !home->entries[found.node].known)
		found.where = KDSM_FOUND_NOWHERE;
	if (found.where != KDSM_FOUND_HERE) {
		/* No living node has had a turn above that one. */
		home->last = found.turn + 1;
		home->first = home->last + 1;
		if (found.where == KDSM_FOUND_NOWHERE)
			found = (struct kdsm_finding) { .flags = KDSM_TURN_DEAD,
							.from = KDSM_NOBODY };
		kdsm_home_own(home, found.flags, found.from);
		return;
	}
	if (home->entries[found.node].state == KDSM_ENTRY_QUEUED)
		kdsm_order_remove(&home->order, found.node);
	home->first = found.turn;
	kdsm_home_put(home, found.node, found.turn);
	home->quotas[found.turn % KDSM_TURNS] = 0;
	home->listed = 0;
	home->state = found.state == KDSM_TURN_KEPT ? KDSM_HOME_KEPT : KDSM_HOME_TAKEN;
	if (found.state == KDSM_TURN_HELD || found.state == KDSM_TURN_KEPT)
		home->sole = 0;
	if (home->sole)
		home->push = found.turn;
	kdsm_home_extend(home);
}

u64 kdsm_home_ask(struct kdsm_lock_home *home)
	__must_hold(&home->lock)
{
	unsigned int node = find_next_bit(home->unheard, home->part.nodes, 0), length;
	struct kdsm_wire_turn wire, report;
	u64 life, epoch = home->epoch;
	int err;

	if (node == home->part.nodes) {
		kdsm_home_conclude(home);
		return 0;
	}
	/* 0: that of a node which only the word has named */
	life = home->entries[node].known ? home->entries[node].life : 0;
	kdsm_home_name(home, &wire);
	wire.life = cpu_to_le64(life);
	length = sizeof(report);
	spin_unlock_bh(&home->lock);
	err = kdsm_part_send(&home->part, node, KDSM_MESSAGE_TURN_SURVEY, &wire,
			     kdsm_wire_turn_size(0), &report, &length);
	if (!err && !kdsm_wire_turn_fits(&report, length))
		err = -EPROTO;
	spin_lock_bh(&home->lock);
	if (home->state != KDSM_HOME_SURVEY || home->epoch != epoch)
		return 0;
	if (err == -ESTALE || err == -ENOENT) {
		/* Another life of the node */
		kdsm_home_bury(home, node, U64_MAX);
		return 0;
	}
	if (err)
		return kdsm_turn_pause(err);
	__clear_bit(node, home->unheard);
	kdsm_home_meet(&home->entries[node], le64_to_cpu(report.life));
	kdsm_finding_add(&home->finding, kdsm_home_find(home, node, &report));
	kdsm_home_requeue(home, node, &report);
	return 0;
}

/* ---- deaths ---- */

/* Where the lock is for sure before any node has answered */
static struct kdsm_finding kdsm_home_known(const struct kdsm_lock_home *home)
{
	struct kdsm_finding finding = {
		.turn = home->first,
		.node = kdsm_home_holder(home, home->first),
		.flags = home->flags,
		.from = home->from,
	};

	if (home->state != KDSM_HOME_GRANTING)
		return finding;
	/* The lock has not left the home, or that node will say that it has it. */
	finding.turn--;
	finding.where = KDSM_FOUND_HOME;
	return finding;
}

static void kdsm_home_survey(struct kdsm_lock_home *home)
{
	struct kdsm_finding *finding = &home->finding;
	unsigned int holder = kdsm_home_holder(home, home->first), node;

	if (home->state != KDSM_HOME_SURVEY)
		*finding = kdsm_home_known(home);
	else if (finding->where == KDSM_FOUND_HERE)
		/* If the node still has it, it will say so again. */
		finding->where = KDSM_FOUND_NOWHERE;
	home->state = KDSM_HOME_SURVEY;
	home->epoch++;
	for (node = 0; node < home->part.nodes; node++)
		if (home->entries[node].known || (home->sole && node == holder))
			__set_bit(node, home->unheard);
	kdsm_part_changed(&home->part);
}

/* The dead node admitted readers, whom nobody else knows. They must leave. */
static void kdsm_home_orphan(struct kdsm_lock_home *home, unsigned int dead)
{
	unsigned int node;

	home->dismissal++;
	home->era++;
	__set_bit(dead, home->dismissed);
	for (node = 0; node < home->part.nodes; node++)
		if (node != dead && !kdsm_fabric_is_away(home->part.fabric, node))
			__set_bit(node, home->undismissed);
	home->again = 0;
}

static void kdsm_home_bury_reader_home(struct kdsm_lock_home *home, unsigned int node)
{
	/* As a reader, the node is not inside any more, either. */
	__clear_bit(node, home->undismissed);
	if (bitmap_empty(home->undismissed, home->part.nodes))
		bitmap_zero(home->dismissed, home->part.nodes);
	if (home->gate.children[node].state == KDSM_CHILD_IN)
		kdsm_home_orphan(home, node);
	kdsm_gate_strike(&home->gate, node);
	/* The others are of a former era now. */
	if (home->state == KDSM_HOME_READING && !bitmap_empty(home->dismissed, home->part.nodes))
		kdsm_home_revoke(home);
	kdsm_home_shut(home);
}

static void kdsm_home_bury_entry(struct kdsm_lock_home *home, unsigned int node)
{
	struct kdsm_entry *entry = &home->entries[node];
	bool asked;

	/* A node may be reported again and again: a survey that does not ask it goes on. */
	asked = entry->known || (home->sole && kdsm_home_holder(home, home->first) == node);
	entry->known = false;
	entry->serial = 0;
	__clear_bit(node, home->unheard);
	if (entry->state == KDSM_ENTRY_QUEUED) {
		kdsm_order_remove(&home->order, node);
		entry->state = KDSM_ENTRY_OUT;
	}
	if (home->sole && kdsm_home_holder(home, home->first) == node)
		home->sole = 0;
	if (home->state == KDSM_HOME_SURVEY ? asked : entry->state == KDSM_ENTRY_LISTED)
		kdsm_home_survey(home);
	kdsm_part_changed(&home->part);
}

void kdsm_home_bury(struct kdsm_lock_home *home, unsigned int node, u64 life)
{
	lockdep_assert_held(&home->lock);
	if (home->gate.children[node].life < life)
		kdsm_home_bury_reader_home(home, node);
	if (home->entries[node].life < life)
		kdsm_home_bury_entry(home, node);
}

void kdsm_home_doom(struct kdsm_lock_home *home, unsigned int node)
{
	spin_lock_bh(&home->lock);
	home->entries[node].doomed = home->entries[node].life;
	kdsm_gate_doom(&home->gate, node);
	spin_unlock_bh(&home->lock);
}

void kdsm_home_strike(struct kdsm_lock_home *home, unsigned int node)
{
	spin_lock_bh(&home->lock);
	if (kdsm_gate_is_doomed(&home->gate, node))
		kdsm_home_bury_reader_home(home, node);
	if (home->entries[node].life <= home->entries[node].doomed)
		kdsm_home_bury_entry(home, node);
	spin_unlock_bh(&home->lock);
}
