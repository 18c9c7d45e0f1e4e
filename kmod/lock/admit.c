// SPDX-License-Identifier: GPL-2.0
/*
 * The home's part in readers: reader homes that ask or leave, and a writer that has them leave. The
 * gate (gate.c) has them as its children.
 */
#include <linux/bitmap.h>

#include "home.h"

void kdsm_home_revoke(struct kdsm_lock_home *home)
{
	home->state = KDSM_HOME_REVOKING;
	kdsm_gate_close(&home->gate);
	kdsm_home_shut(home);
	kdsm_part_changed(&home->part);
}

void kdsm_home_shut(struct kdsm_lock_home *home)
{
	if (home->gate.state == KDSM_GATE_SHUT &&
	    (home->state == KDSM_HOME_READING || home->state == KDSM_HOME_REVOKING))
		kdsm_home_next(home);
}

void kdsm_home_name_pass(const struct kdsm_gate *gate, struct kdsm_wire_pass *wire)
{
	const struct kdsm_lock_home *home = container_of(gate, struct kdsm_lock_home, gate);

	*wire = (struct kdsm_wire_pass) {
		.id = cpu_to_le32(home->part.region),
		.number = cpu_to_le16(home->part.number),
		.node = cpu_to_le16(home->from),
		.era = cpu_to_le64(home->era),
		.flags = cpu_to_le16(home->flags | KDSM_PASS_HOME),
		.limit = cpu_to_le32(READ_ONCE(home->thresholds.t_r)),
	};
}

int kdsm_home_serve_enter(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	bool strike;
	int err;

	spin_lock_bh(&home->lock);
	err = kdsm_gate_enter(&home->gate, request, &strike);
	if (strike)
		kdsm_home_bury(home, request->from, le64_to_cpu(wire->life));
	kdsm_home_shut(home);
	if (!err && home->gate.waiting)
		kdsm_home_came(home);
	spin_unlock_bh(&home->lock);
	return err;
}

int kdsm_home_serve_left(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;

	spin_lock_bh(&home->lock);
	if (!(le16_to_cpu(wire->flags) & KDSM_PASS_DISMISSED)) {
		kdsm_gate_leave(&home->gate, request->from, wire);
	} else if (le64_to_cpu(wire->request) == home->dismissal) {
		__clear_bit(request->from, home->undismissed);
		if (bitmap_empty(home->undismissed, home->part.nodes))
			bitmap_zero(home->dismissed, home->part.nodes);
	}
	kdsm_home_shut(home);
	spin_unlock_bh(&home->lock);
	return 0;
}
