// SPDX-License-Identifier: GPL-2.0
/*
 * A parent's part in admitting readers: which children wait and which are inside. A child counts
 * as inside from the moment that the parent decides to send the admission until the child says
 * that it left this very admission. Whether a message arrives makes no difference to that, so
 * nothing that is lost lets a writer in too early.
 */
#include <linux/bitmap.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "gate.h"

int kdsm_gate_init(struct kdsm_gate *gate)
{
	gate->children = kvcalloc(gate->part->nodes, sizeof(*gate->children), GFP_KERNEL);
	gate->untold = bitmap_zalloc(gate->part->nodes, GFP_KERNEL);
	return gate->children && gate->untold ? 0 : -ENOMEM;
}

void kdsm_gate_exit(struct kdsm_gate *gate)
{
	kvfree(gate->children);
	bitmap_free(gate->untold);
}

static void kdsm_gate_admit(struct kdsm_gate *gate, unsigned int node)
{
	struct kdsm_child *child = &gate->children[node];

	child->state = KDSM_CHILD_IN;
	gate->waiting--;
	gate->inside++;
	__set_bit(node, gate->untold);
}

void kdsm_gate_open(struct kdsm_gate *gate, bool once, u32 limit)
{
	unsigned int i, node = gate->next;

	gate->state = once ? KDSM_GATE_ONCE : KDSM_GATE_OPEN;
	for (i = 0; i < gate->part->nodes && gate->waiting; i++, node++) {
		node = node < gate->part->nodes ? node : 0;
		if (gate->children[node].state != KDSM_CHILD_WAITING)
			continue;
		if (once && gate->inside >= limit)
			break;
		kdsm_gate_admit(gate, node);
	}
	if (once)
		gate->most = max(gate->most, gate->inside);
	/* Those beyond the limit are the first ones of the next opening. */
	gate->next = node < gate->part->nodes ? node : 0;
}

/* All children inside have to be told something else than before. */
static void kdsm_gate_change(struct kdsm_gate *gate)
{
	unsigned int i;

	gate->order++;
	for (i = 0; i < gate->part->nodes; i++)
		if (gate->children[i].state == KDSM_CHILD_IN)
			__set_bit(i, gate->untold);
}

void kdsm_gate_reopen(struct kdsm_gate *gate)
{
	kdsm_gate_change(gate);
	kdsm_gate_open(gate, false, 0);
}

/* After a child has left */
static bool kdsm_gate_is_done(struct kdsm_gate *gate)
{
	if (gate->inside || (gate->state != KDSM_GATE_CLOSING && gate->state != KDSM_GATE_ONCE))
		return false;
	gate->state = KDSM_GATE_SHUT;
	return true;
}

bool kdsm_gate_close(struct kdsm_gate *gate)
{
	if (gate->state == KDSM_GATE_SHUT)
		return true;
	if (gate->state != KDSM_GATE_CLOSING)
		kdsm_gate_change(gate);
	gate->state = KDSM_GATE_CLOSING;
	return kdsm_gate_is_done(gate);
}

static u16 kdsm_gate_mode(const struct kdsm_gate *gate, const struct kdsm_child *child)
{
	if (child->state != KDSM_CHILD_IN)
		return KDSM_ADMIT_LATER;
	return gate->state == KDSM_GATE_OPEN ? KDSM_ADMIT_IN : KDSM_ADMIT_ONCE;
}

static bool kdsm_gate_remove(struct kdsm_gate *gate, unsigned int node)
{
	struct kdsm_child *child = &gate->children[node];

	gate->waiting -= child->state == KDSM_CHILD_WAITING;
	gate->inside -= child->state == KDSM_CHILD_IN;
	child->state = KDSM_CHILD_OUT;
	__clear_bit(node, gate->untold);
	return kdsm_gate_is_done(gate);
}

int kdsm_gate_enter(struct kdsm_gate *gate, struct kdsm_request *request, bool *strike)
{
	const struct kdsm_wire_pass *wire = request->data;
	u64 life = le64_to_cpu(wire->life), number = le64_to_cpu(wire->request);
	struct kdsm_child *child = &gate->children[request->from];
	struct kdsm_wire_pass *reply = request->reply;

	*strike = life > child->life && child->state == KDSM_CHILD_IN;
	if (*strike)
		return -EAGAIN;
	if (life > child->life) {
		child->life = life;
		child->request = 0;
		child->done = 0;
	}
	gate->name(gate, reply);
	reply->mode = cpu_to_le16(KDSM_ADMIT_LATER);
	request->reply_length = sizeof(*reply);
	/* A child that hears of a higher life takes that. */
	reply->life = cpu_to_le64(child->life + (child->done == U64_MAX));
	/* Of a life or a request that is over */
	if (life < child->life || number <= child->done)
		return 0;
	/* One request at a time: a new one proves that the child has left the one before. */
	if (child->state == KDSM_CHILD_IN && number > child->request)
		kdsm_gate_remove(gate, request->from);
	child->request = max(child->request, number);
	if (child->state == KDSM_CHILD_OUT) {
		child->state = KDSM_CHILD_WAITING;
		gate->waiting++;
	}
	if (child->state == KDSM_CHILD_WAITING && gate->state == KDSM_GATE_OPEN) {
		kdsm_gate_admit(gate, request->from);
		/* The reply tells it. */
		__clear_bit(request->from, gate->untold);
	}
	reply->mode = cpu_to_le16(kdsm_gate_mode(gate, child));
	return 0;
}

bool kdsm_gate_leave(struct kdsm_gate *gate, unsigned int node, const struct kdsm_wire_pass *wire)
{
	u64 life = le64_to_cpu(wire->life), request = le64_to_cpu(wire->request);
	struct kdsm_child *child = &gate->children[node];

	/* A later life is not inside by a request of a former one. */
	if (child->state != KDSM_CHILD_IN || child->life > life ||
	    (child->life == life && child->request > request))
		return false;
	child->done = child->request;
	return kdsm_gate_remove(gate, node);
}

void kdsm_gate_clear(struct kdsm_gate *gate)
{
	unsigned int node;

	gate->state = KDSM_GATE_SHUT;
	for (node = 0; node < gate->part->nodes; node++)
		kdsm_gate_remove(gate, node);
}

bool kdsm_gate_strike(struct kdsm_gate *gate, unsigned int node)
{
	bool done = kdsm_gate_remove(gate, node);

	/* Nothing of that life counts any more. */
	gate->children[node].done = U64_MAX;
	return done;
}

void kdsm_gate_doom(struct kdsm_gate *gate, unsigned int node)
{
	gate->children[node].doomed = gate->children[node].life;
}

bool kdsm_gate_is_doomed(const struct kdsm_gate *gate, unsigned int node)
{
	return gate->children[node].life <= gate->children[node].doomed;
}

bool kdsm_gate_tell(struct kdsm_gate *gate, bool again)
	__must_hold(gate->lock)
{
	const struct kdsm_child *child;
	enum kdsm_message_type type;
	struct kdsm_wire_pass wire;
	unsigned int node;
	bool any = false;

	for (node = 0; gate->inside && node < gate->part->nodes; node++) {
		child = &gate->children[node];
		if (child->state != KDSM_CHILD_IN ||
		    (!test_bit(node, gate->untold) && !(again && gate->state != KDSM_GATE_OPEN)))
			continue;
		__clear_bit(node, gate->untold);
		gate->name(gate, &wire);
		wire.life = cpu_to_le64(child->life);
		wire.request = cpu_to_le64(child->request);
		wire.order = cpu_to_le64(gate->order);
		wire.mode = cpu_to_le16(kdsm_gate_mode(gate, child));
		type = gate->state == KDSM_GATE_CLOSING ? KDSM_MESSAGE_READ_REVOKE :
							  KDSM_MESSAGE_READ_ADMIT;
		gate->messages += node != gate->part->node;
		any = true;
		spin_unlock_bh(gate->lock);
		kdsm_message_start(gate->part->fabric, node, type, &wire, sizeof(wire));
		spin_lock_bh(gate->lock);
	}
	return any;
}
