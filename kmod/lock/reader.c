// SPDX-License-Identifier: GPL-2.0
/*
 * A reader home: the parent of nodes that read, and a child of the lock's home. Its gate is open
 * only while its own pass is inside, so the home has to reach the reader homes only.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>

#include "gate.h"

static void kdsm_reader_home_name(const struct kdsm_gate *gate, struct kdsm_wire_pass *wire)
{
	const struct kdsm_pass *pass = &container_of(gate, struct kdsm_reader_home, gate)->pass;

	*wire = (struct kdsm_wire_pass) {
		.id = cpu_to_le32(pass->part.region),
		.number = cpu_to_le16(pass->part.number),
		.node = cpu_to_le16(pass->from),
		.era = cpu_to_le64(pass->era),
		.flags = cpu_to_le16(pass->flags),
	};
}

int kdsm_reader_home_init(struct kdsm_reader_home *reader)
{
	int err;

	spin_lock_init(&reader->lock);
	kdsm_pass_init(&reader->pass);
	reader->pass.level = KDSM_PASS_HOME;
	reader->gate.part = &reader->pass.part;
	reader->gate.lock = &reader->lock;
	reader->gate.name = kdsm_reader_home_name;
	err = kdsm_gate_init(&reader->gate);
	if (err)
		kdsm_gate_exit(&reader->gate);
	return err;
}

void kdsm_reader_home_exit(struct kdsm_reader_home *reader)
{
	kdsm_gate_exit(&reader->gate);
}

/* The gate follows the pass. Returns true if the pass has to change in its turn. */
static bool kdsm_reader_home_follow(struct kdsm_reader_home *reader)
{
	struct kdsm_gate *gate = &reader->gate;
	struct kdsm_pass *pass = &reader->pass;
	enum kdsm_pass_state state = READ_ONCE(pass->state);

	switch (state) {
	case KDSM_PASS_NONE:
		if (!gate->waiting)
			return false;
		kdsm_pass_want(pass);
		return true;
	case KDSM_PASS_READING:
		if (gate->state == KDSM_GATE_SHUT)
			kdsm_gate_open(gate, false, 0);
		else if (gate->state == KDSM_GATE_CLOSING)
			kdsm_gate_reopen(gate);
		return false;
	case KDSM_PASS_LAST:
		if (gate->state == KDSM_GATE_SHUT && pass->once) {
			pass->once = false;
			kdsm_gate_open(gate, true, pass->limit);
		}
		/* ONCE ends by itself, unless nobody was admitted, or a revocation hurries it. */
		if (gate->state == KDSM_GATE_OPEN || !gate->inside)
			kdsm_gate_close(gate);
		if (gate->state != KDSM_GATE_SHUT)
			return false;
		kdsm_pass_leave(pass);
		return true;
	default:
		return false;
	}
}

u64 kdsm_reader_home_advance(struct kdsm_reader_home *reader)
{
	u64 delay = 0, now;
	bool again;

	spin_lock_bh(&reader->lock);
	do {
		again = kdsm_reader_home_follow(reader);
		now = ktime_get_ns();
		if (kdsm_gate_tell(&reader->gate, reader->again && now >= reader->again)) {
			reader->again = ktime_get_ns() + KDSM_PASS_RETRY;
			again = true;
		}
		spin_unlock_bh(&reader->lock);
		delay = kdsm_pass_advance(&reader->pass);
		spin_lock_bh(&reader->lock);
		again |= kdsm_reader_home_follow(reader);
	} while (again);
	if (reader->gate.state == KDSM_GATE_ONCE || reader->gate.state == KDSM_GATE_CLOSING)
		delay = KDSM_PASS_RETRY;
	spin_unlock_bh(&reader->lock);
	return delay;
}

/* ---- children ---- */

void kdsm_reader_home_doom(struct kdsm_reader_home *reader, unsigned int node)
{
	spin_lock_bh(&reader->lock);
	kdsm_gate_doom(&reader->gate, node);
	spin_unlock_bh(&reader->lock);
}

void kdsm_reader_home_strike(struct kdsm_reader_home *reader, unsigned int node)
{
	spin_lock_bh(&reader->lock);
	if (kdsm_gate_is_doomed(&reader->gate, node))
		kdsm_gate_strike(&reader->gate, node);
	spin_unlock_bh(&reader->lock);
	kdsm_part_changed(&reader->pass.part);
}

/* The readers of this parent are dismissed by the home, which has given it up. */
void kdsm_reader_home_out(struct kdsm_reader_home *reader)
{
	spin_lock_bh(&reader->lock);
	kdsm_pass_reset(&reader->pass);
	kdsm_gate_clear(&reader->gate);
	spin_unlock_bh(&reader->lock);
	kdsm_part_changed(&reader->pass.part);
}

int kdsm_reader_home_serve_enter(struct kdsm_reader_home *reader, struct kdsm_request *request)
{
	bool strike, waits;
	int err;

	spin_lock_bh(&reader->lock);
	err = kdsm_gate_enter(&reader->gate, request, &strike);
	if (strike)
		kdsm_gate_strike(&reader->gate, request->from);
	waits = reader->gate.waiting;
	spin_unlock_bh(&reader->lock);
	if (waits)
		kdsm_part_changed(&reader->pass.part);
	return err;
}

int kdsm_reader_home_serve_left(struct kdsm_reader_home *reader, struct kdsm_request *request)
{
	spin_lock_bh(&reader->lock);
	kdsm_gate_leave(&reader->gate, request->from, request->data);
	spin_unlock_bh(&reader->lock);
	kdsm_part_changed(&reader->pass.part);
	return 0;
}
