// SPDX-License-Identifier: GPL-2.0
/*
 * A node as the target of operations and messages: the word, and calls of the handlers of the
 * protocol. Defects that change messages are here.
 */
#include "sim.h"

const char *const message_names[KDSM_MESSAGE_TYPES] = {
	[KDSM_MESSAGE_TURN_ENQUEUE] = "ENQUEUE",
	[KDSM_MESSAGE_TURN_HAND] = "HAND",
	[KDSM_MESSAGE_TURN_LEAVE] = "LEAVE",
	[KDSM_MESSAGE_TURN_EXTEND] = "EXTEND",
	[KDSM_MESSAGE_TURN_SURVEY] = "SURVEY",
	[KDSM_MESSAGE_READ_ENTER] = "ENTER",
	[KDSM_MESSAGE_READ_ADMIT] = "ADMIT",
	[KDSM_MESSAGE_READ_REVOKE] = "REVOKE",
	[KDSM_MESSAGE_READ_DISMISS] = "DISMISS",
	[KDSM_MESSAGE_READ_LEFT] = "LEFT",
};

/* ---- operations ---- */

void serve_operation(unsigned int from, struct kdsm_operation *op)
{
	u64 *word = &nodes[op->node].word;

	if (op->opcode != KDSM_OP_CAS || op->offset || op->node != config.home)
		sim_fail(SIM_NONE, "an operation that the protocol does not need");
	if (sim_broken == BREAK_LATE) {
		/* The word does not tell one request of a node from another. */
		op->compare &= ~(KDSM_WORD_LIFE | KDSM_WORD_SERIAL);
		op->operand &= ~(KDSM_WORD_LIFE | KDSM_WORD_SERIAL);
	}
	op->result = *word;
	if (*word == op->compare)
		*word = op->operand;
}

/* ---- messages ---- */

static int serve_hand(struct node *node, struct kdsm_request *request)
{
	struct kdsm_wire_turn *wire = (void *)request->data;
	enum kdsm_turn_state before = node->turn.state;
	u64 turn = node->turn.turn, number = le64_to_cpu(wire->turn);
	int status;

	if (sim_broken == BREAK_DEAD)
		wire->flags = 0;
	if (sim_broken == BREAK_SKIP && le16_to_cpu(wire->count) > 1) {
		/* The list loses its first node, and the turns of the others are as if it were. */
		memmove(wire->next, wire->next + 1,
			(le16_to_cpu(wire->count) - 1) * sizeof(wire->next[0]));
		wire->count = cpu_to_le16(le16_to_cpu(wire->count) - 1);
		request->length = kdsm_wire_turn_size(le16_to_cpu(wire->count));
	}
	if (sim_broken == BREAK_FREEZE)
		wire->epoch = cpu_to_le32(max(le32_to_cpu(wire->epoch), node->turn.epoch));
	status = kdsm_turn_serve_hand(&node->turn, request);
	/* Not if it came by another message while this one was served. */
	if (!status && turn < number && node->turn.turn == number) {
		turns++;
		/* That thread had ended before anybody else could notice. */
		if (request->from == lost_by)
			must_tell = false;
		/* A late copy of a request that was withdrawn may bring the lock, too. */
		if (before == KDSM_TURN_NONE && !config.deaths && !config.home_dies &&
		    !config.timed && !config.try)
			sim_fail(SIM_NONE, "node %u gets the lock and has not asked for it",
				 node->number);
	}
	return status;
}

static int serve_enqueue(struct kdsm_request *request)
{
	struct kdsm_entry *entry = &home->entries[request->from];
	u8 before = entry->state;
	int status;

	if (sim_broken == BREAK_TWICE && entry->state == KDSM_ENTRY_OUT)
		entry->serial = 0;
	status = kdsm_home_serve_enqueue(home, request);
	if (!status && before != KDSM_ENTRY_QUEUED && entry->state == KDSM_ENTRY_QUEUED)
		node_queued(request->from);
	return status;
}

static int serve_survey(struct node *node, struct kdsm_request *request)
{
	struct kdsm_turn *turn = &node->turn;
	struct kdsm_list list = turn->list;
	enum kdsm_turn_state state = turn->state;
	int status = kdsm_turn_serve_survey(turn, request);

	if (sim_broken == BREAK_SURVEY && state == KDSM_TURN_HANDING) {
		turn->state = state;
		turn->list = list;
	}
	return status;
}

static int serve_pass(struct node *node, struct sim_message *message,
		      struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	bool of_home = le16_to_cpu(wire->flags) & KDSM_PASS_HOME;
	bool dismissed = le16_to_cpu(wire->flags) & KDSM_PASS_DISMISSED;
	struct kdsm_pass *pass = of_home ? &node->reader.pass : &node->pass;
	u64 before;
	int status;

	switch (message->type) {
	case KDSM_MESSAGE_READ_ENTER:
		return of_home ? kdsm_home_serve_enter(home, request) :
				 kdsm_reader_home_serve_enter(&node->reader, request);
	case KDSM_MESSAGE_READ_LEFT:
		return of_home || dismissed ? kdsm_home_serve_left(home, request) :
					      kdsm_reader_home_serve_left(&node->reader, request);
	case KDSM_MESSAGE_READ_ADMIT:
		return kdsm_pass_serve_admit(pass, request);
	case KDSM_MESSAGE_READ_REVOKE:
		before = pass->request;
		status = kdsm_pass_serve_revoke(pass, request);
		/* An admission that is under way is still good for the request. */
		if (sim_broken == BREAK_VOID)
			pass->request = before;
		return status;
	default:
		return sim_broken == BREAK_ORPHAN ? 0 :
			kdsm_pass_serve_dismiss(&node->pass, request);
	}
}

static int dispatch(struct node *node, struct sim_message *message,
		    struct kdsm_request *request)
{
	switch (message->type) {
	case KDSM_MESSAGE_TURN_ENQUEUE:
		return serve_enqueue(request);
	case KDSM_MESSAGE_TURN_HAND:
		return serve_hand(node, request);
	case KDSM_MESSAGE_TURN_LEAVE:
		return kdsm_home_serve_leave(home, request);
	case KDSM_MESSAGE_TURN_EXTEND:
		if (sim_broken == BREAK_LIST)
			return 0;
		return kdsm_turn_serve_extend(&node->turn, request);
	case KDSM_MESSAGE_TURN_SURVEY:
		return serve_survey(node, request);
	default:
		return serve_pass(node, message, request);
	}
}

int serve_message(struct sim_message *message, struct kdsm_request *request)
{
	const struct kdsm_wire_turn *turn = (void *)message->data;
	const struct kdsm_wire_pass *pass = (void *)message->data;
	struct node *node = &nodes[message->to];
	int status;

	request->length = message->length;
	/* The connection is not up before the node has lost what its former life had. */
	if (node->loses)
		return -EAGAIN;
	status = dispatch(node, message, request);
	if (status == -EINVAL)
		sim_fail(SIM_NONE, "node %u refuses %s from node %u", message->to,
			 message_names[message->type], message->from);
	if (message->type < KDSM_MESSAGE_READ_ENTER)
		sim_event(SIM_NONE, "%s from node %u, life %llu serial %llu turn %llu epoch %u count %u flags %x: %d%s [home %u %llu-%llu]",
			  message_names[message->type], message->from, turn->life, turn->serial,
			  turn->turn, turn->epoch, turn->count, turn->flags, status,
			  message->stray ? ", late" : "", home->state, home->first, home->last);
	else
		sim_event(SIM_NONE, "%s from node %u, life %llu request %llu mode %u flags %x: %d%s",
			  message_names[message->type], message->from, pass->life,
			  pass->request, pass->mode, pass->flags, status,
			  message->stray ? ", late" : "");
	return status;
}

void message_sent(const struct sim_message *message)
{
}

/* An admission that the child does not answer is taken for not given. */
static void break_open(const struct sim_message *message)
{
	const struct kdsm_wire_pass *wire = (const void *)message->data;
	bool of_home = le16_to_cpu(wire->flags) & KDSM_PASS_HOME;
	struct kdsm_gate *gate = of_home ? &home->gate : &nodes[message->from].reader.gate;

	if (message->type == KDSM_MESSAGE_READ_ADMIT && !kdsm_message_was_heard(message->status))
		kdsm_gate_leave(gate, message->to, wire);
}

void message_done(struct sim_message *message, bool cut)
{
	may_tell |= cut;
	if (sim_broken == BREAK_OPEN)
		break_open(message);
	/* The fabric of the sender, or the home, tries to connect, and gives the node up again. */
	if (cut && is_given_up(message->to) && sim_is_cut(message->to)) {
		kdsm_home_doom(home, message->to);
		kdsm_home_strike(home, message->to);
		node_strikes(&nodes[message->from], message->to);
	}
	/* A HAND without an answer is taken for done. */
	if (sim_broken == BREAK_GRANT && message->type == KDSM_MESSAGE_TURN_HAND &&
	    !kdsm_message_was_heard(message->status))
		message->status = 0;
}
