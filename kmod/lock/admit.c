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

int kdsm_home_serve_enter(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	struct kdsm_wire_pass *reply = request->reply;
	u16 mode = KDSM_ADMIT_LATER;
	bool strike;
	int err;

	spin_lock_bh(&home->lock);
	err = kdsm_gate_enter(&home->gate, request->from, wire, &mode, &strike);
	if (strike)
		kdsm_home_bury(home, request->from, le64_to_cpu(wire->life));
	kdsm_home_shut(home);
	if (!err && mode == KDSM_ADMIT_LATER && home->gate.waiting)
		kdsm_home_came(home);
	*reply = *wire;
	reply->life = cpu_to_le64(kdsm_gate_life(&home->gate, request->from));
	reply->mode = cpu_to_le16(mode);
	reply->era = cpu_to_le64(home->era);
	reply->node = cpu_to_le16(home->from);
	reply->flags = cpu_to_le16(home->flags);
	reply->limit = cpu_to_le32(READ_ONCE(home->thresholds.t_r));
	spin_unlock_bh(&home->lock);
	request->reply_length = sizeof(*reply);
	return err;
}

int kdsm_home_serve_left(struct kdsm_lock_home *home, struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	bool shut;

	spin_lock_bh(&home->lock);
	if (le16_to_cpu(wire->flags) & KDSM_PASS_DISMISSED) {
		if (le64_to_cpu(wire->request) == home->dismissal)
			__clear_bit(request->from, home->undismissed);
		shut = bitmap_empty(home->undismissed, home->part.nodes);
		if (shut)
			bitmap_zero(home->dismissed, home->part.nodes);
	} else {
		shut = kdsm_gate_leave(&home->gate, request->from, le64_to_cpu(wire->life),
				       le64_to_cpu(wire->request));
	}
	if (shut)
		kdsm_home_shut(home);
	spin_unlock_bh(&home->lock);
	return 0;
}
