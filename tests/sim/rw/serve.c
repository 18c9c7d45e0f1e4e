// SPDX-License-Identifier: GPL-2.0
/*
 * A node as the target of operations and messages: the word of its counter, and calls of
 * the handlers of kmod/lock/rw. Defects that change the target's actions are here.
 */
#include <stdio.h>

#include "sim.h"

static u64 *words;			/* the counter of each node */
static unsigned int *found;		/* by node; see writer_found() */

u64 counter_word(unsigned int node)
{
	return words[node];
}

unsigned int writer_found(unsigned int node)
{
	return found[node];
}

/* ---- operations ---- */

/* Operand of the atomic by which a reader arrives; and the bits that keep readers out */
#define READER_COMES	(KDSM_RW_READER + KDSM_RW_ARRIVAL)
#define IS_CLOSED	(KDSM_RW_WANT | KDSM_RW_WRITE)

static void compare_and_swap(struct kdsm_operation *op, u64 *word)
{
	if (*word == op->compare) {
		*word = op->operand;
	} else if (sim_broken == BREAK_SWAP && (*word & ~KDSM_RW_ASKED) == op->compare) {
		op->result = op->compare;
		*word = op->operand;
	}
}

static void break_result(unsigned int from, struct kdsm_operation *op, u64 was)
{
	bool comes = op->operand == READER_COMES;
	bool reads = !op->operand;	/* a writer that adds 0 */

	if (sim_broken == BREAK_WRITE && comes)
		op->result &= ~IS_CLOSED;
	if (sim_broken == BREAK_WANT && comes && !(was & KDSM_RW_WRITE))
		op->result &= ~IS_CLOSED;
	if (sim_broken == BREAK_SWAP && reads && op != &rw_of(from)->home.op)
		op->result &= ~KDSM_RW_ASKED;
	if (sim_broken == BREAK_SPAN && reads && !op->node)
		op->result = (was & ~(0x7ff * KDSM_RW_SPAN)) |
			     rw_of(from)->view * KDSM_RW_SPAN;
}

void serve_operation(unsigned int from, struct kdsm_operation *op)
{
	u64 *word = &words[op->node];
	u64 was = *word;

	if (op->offset || op->length != 8)
		sim_fail(SIM_NONE, "an operation of %u bytes at %llu", op->length, op->offset);
	op->result = was;
	if (op->opcode == KDSM_OP_CAS)
		compare_and_swap(op, word);
	else
		*word += op->operand;
	if (*word & KDSM_RW_WANT && !(was & KDSM_RW_WANT))
		writer_waits(op->node);
	if (kdsm_rw_readers(*word) > 2 * sim.nodes)
		sim_fail(SIM_NONE, "node %u: %u readers", op->node, kdsm_rw_readers(*word));
	if (op->operand == READER_COMES)
		found[from] = was & KDSM_RW_WANT ? writer_waiting(op->node) : 0;
	break_result(from, op, was);
}

/* ---- messages ---- */

const char *const message_names[KDSM_MESSAGE_TYPES] = {
	[KDSM_MESSAGE_RW_JOIN] = "JOIN",
	[KDSM_MESSAGE_RW_ASK] = "ASK",
	[KDSM_MESSAGE_RW_OPEN] = "OPEN",
	[KDSM_MESSAGE_RW_TELL] = "TELL",
	[KDSM_MESSAGE_RW_GO] = "GO",
	[KDSM_MESSAGE_RW_COUNT] = "COUNT",
};

static int dispatch(struct sim_message *message, struct kdsm_request *request)
{
	struct kdsm_wire_rw *wire = (void *)message->data;
	struct kdsm_rw *rw = rw_of(message->to);
	struct kdsm_rw_user *user = &rw->home.users[message->from];
	int err;

	switch (message->type) {
	case KDSM_MESSAGE_RW_JOIN:
		return kdsm_rw_serve_join(rw, request);
	case KDSM_MESSAGE_RW_ASK:
		if (sim_broken == BREAK_TWICE)
			user->turn = wire->turn - 1;
		return kdsm_rw_serve_ask(rw, request);
	case KDSM_MESSAGE_RW_OPEN:
		if (sim_broken == BREAK_OLD)
			user->opened = wire->turn - 1;
		if (sim_broken == BREAK_WRONG)
			rw->home.wrong = false;
		return kdsm_rw_serve_open(rw, request);
	case KDSM_MESSAGE_RW_TELL:
		return sim_broken == BREAK_TELL ? 0 : kdsm_rw_serve_tell(rw, request);
	case KDSM_MESSAGE_RW_GO:
		if (sim_broken == BREAK_GO && rw->state == KDSM_RW_ASKING)
			return 0;
		return kdsm_rw_serve_go(rw, request);
	default:
		err = kdsm_rw_serve_count(rw, request);
		if (sim_broken == BREAK_THAW)
			__set_bit(message->from, rw->joined);
		return err;
	}
}

int serve_message(struct sim_message *message, struct kdsm_request *request)
{
	struct kdsm_wire_rw *wire = (void *)message->data, *reply = (void *)message->reply;
	int status = dispatch(message, request);

	if (status == -EINVAL)
		sim_fail(SIM_NONE, "node %u refuses %s from node %u", message->to,
			 message_names[message->type], message->from);
	sim_event(SIM_NONE, "%s from node %u, turn %u what %u: %d, %u",
		  message_names[message->type], message->from, wire->turn, wire->what, status,
		  reply->what);
	return status;
}

/* ---- start and stop ---- */

void serve_start(void)
{
	unsigned int i;

	words = calloc(sim.nodes, sizeof(*words));
	found = calloc(sim.nodes, sizeof(*found));
	for (i = 0; i < sim.nodes; i++) {
		/* Begin near the end, so that the number of arrivals wraps during the run. */
		words[i] = sim_cost.units ? 0 : -(sim_below(20) * KDSM_RW_ARRIVAL);
		rw_of(i)->fabric = sim_fabric(i);
	}
}

void serve_stop(void)
{
	free(words);
	free(found);
}
