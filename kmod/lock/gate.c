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

int kdsm_gate_init(struct kdsm_gate *gate, unsigned int nodes)
{
	gate->nodes = nodes;
	gate->children = kvcalloc(nodes, sizeof(*gate->children), GFP_KERNEL);
	gate->untold = bitmap_zalloc(nodes, GFP_KERNEL);
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
	for (i = 0; i < gate->nodes && gate->waiting; i++, node++) {
		node = node < gate->nodes ? node : 0;
		if (gate->children[node].state != KDSM_CHILD_WAITING)
			continue;
		if (once && gate->inside >= limit)
			break;
		kdsm_gate_admit(gate, node);
	}
	if (once)
		gate->most = max(gate->most, gate->inside);
	/* Those beyond the limit are the first ones of the next opening. */
	gate->next = node < gate->nodes ? node : 0;
}

void kdsm_gate_reopen(struct kdsm_gate *gate)
{
	unsigned int i;

	gate->order++;
	for (i = 0; i < gate->nodes; i++)
		if (gate->children[i].state == KDSM_CHILD_IN)
			__set_bit(i, gate->untold);
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
	unsigned int i;

	if (gate->state == KDSM_GATE_SHUT)
		return true;
	if (gate->state != KDSM_GATE_CLOSING)
		gate->order++;
	gate->state = KDSM_GATE_CLOSING;
	for (i = 0; i < gate->nodes; i++)
		if (gate->children[i].state == KDSM_CHILD_IN)
			__set_bit(i, gate->untold);
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

int kdsm_gate_enter(struct kdsm_gate *gate, unsigned int node, const struct kdsm_wire_pass *wire,
		    u16 *mode, bool *strike)
{
	u64 life = le64_to_cpu(wire->life), request = le64_to_cpu(wire->request);
	struct kdsm_child *child = &gate->children[node];

	*mode = KDSM_ADMIT_LATER;
	*strike = life > child->life && child->state == KDSM_CHILD_IN;
	if (*strike)
		return -EAGAIN;
	if (life > child->life) {
		child->life = life;
		child->request = 0;
		child->done = 0;
	}
	/* Of a life or a request that is over. The reply has the life that may ask. */
	if (life < child->life || request <= child->done)
		return 0;
	/* One request at a time: a new one proves that the child has left the one before. */
	if (child->state == KDSM_CHILD_IN && request > child->request)
		kdsm_gate_remove(gate, node);
	child->request = max(child->request, request);
	if (child->state == KDSM_CHILD_OUT) {
		child->state = KDSM_CHILD_WAITING;
		gate->waiting++;
	}
	if (child->state == KDSM_CHILD_WAITING && gate->state == KDSM_GATE_OPEN) {
		kdsm_gate_admit(gate, node);
		/* The reply tells it. */
		__clear_bit(node, gate->untold);
	}
	*mode = kdsm_gate_mode(gate, child);
	return 0;
}

bool kdsm_gate_leave(struct kdsm_gate *gate, unsigned int node, u64 life, u64 request)
{
	struct kdsm_child *child = &gate->children[node];

	/* A later life is not inside by a request of a former one. */
	if (child->state != KDSM_CHILD_IN || child->life > life ||
	    (child->life == life && child->request > request))
		return false;
	child->done = child->request;
	return kdsm_gate_remove(gate, node);
}

u64 kdsm_gate_life(const struct kdsm_gate *gate, unsigned int node)
{
	const struct kdsm_child *child = &gate->children[node];

	return child->life + (child->done == U64_MAX);
}

void kdsm_gate_clear(struct kdsm_gate *gate)
{
	unsigned int node;

	gate->state = KDSM_GATE_SHUT;
	for (node = 0; node < gate->nodes; node++)
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

enum kdsm_message_type kdsm_gate_due(struct kdsm_gate *gate, bool again, unsigned int *node,
				     struct kdsm_wire_pass *wire)
{
	const struct kdsm_child *child;

	for (; gate->inside && *node < gate->nodes; ++*node) {
		child = &gate->children[*node];
		if (child->state != KDSM_CHILD_IN)
			continue;
		if (!test_bit(*node, gate->untold) && !(again && gate->state != KDSM_GATE_OPEN))
			continue;
		__clear_bit(*node, gate->untold);
		wire->life = cpu_to_le64(child->life);
		wire->request = cpu_to_le64(child->request);
		wire->order = cpu_to_le64(gate->order);
		wire->mode = cpu_to_le16(kdsm_gate_mode(gate, child));
		return gate->state == KDSM_GATE_CLOSING ? KDSM_MESSAGE_READ_REVOKE :
							  KDSM_MESSAGE_READ_ADMIT;
	}
	return KDSM_MESSAGE_TYPES;
}
