// SPDX-License-Identifier: GPL-2.0
/*
 * A node as the target of remote reads and messages: reads that tear content, and calls of
 * the handlers of kmod/coherence. Defects that change the target's actions are here.
 */
#include <stdio.h>

#include "sim.h"

/* ---- operations ---- */

/* Copy byte by byte, beginning with any byte: no device tears a word more than that. */
static void copy_bytes(void *to, const void *from, unsigned int length)
{
	unsigned int start = sim_below(length), i;

	for (i = 0; i < length; i++) {
		((char *)to)[(start + i) % length] = ((const char *)from)[(start + i) % length];
		sim_yield();
	}
}

static int read_stamp(const struct kdsm_operation *op, struct kdsm_memory *memory)
{
	struct page *page = kdsm_memory_page(memory, op->offset >> PAGE_SHIFT);

	counts.probes++;
	if (IS_ERR(page))
		return PTR_ERR(page);
	copy_bytes(op->data, (char *)page + op->offset % PAGE_SIZE, op->length);
	return 0;
}

static int read_pages(const struct kdsm_operation *op, struct kdsm_memory *memory)
{
	struct page *page;
	u64 done, stall;

	if (sim_chance(config.stall)) {
		stall = sim_between(50, 200) * 1000000ULL;
		counts.stalls++;
		stall_until(sim_now() + stall);
		sim_sleep(stall);
	}
	for (done = 0; done < op->length; done += PAGE_SIZE) {
		page = kdsm_memory_page(memory, (op->offset + done) >> PAGE_SHIFT);
		if (IS_ERR(page))
			return PTR_ERR(page);
		copy_torn(op->data + done, page);
	}
	return 0;
}

void serve_operation(unsigned int from, struct kdsm_operation *op)
{
	struct kdsm_memory *memory = memory_of(op->node, op->memory);

	if (op->opcode != KDSM_OP_GET || !op->length || op->length > KDSM_SEGMENT_MAX)
		sim_fail(SIM_NONE, "operation %u of %u bytes", op->opcode, op->length);
	if (op->memory == &nodes[from].stamps) {
		if (op->length > PAGE_SIZE - op->offset % PAGE_SIZE || !op->ordered)
			sim_fail(SIM_NONE, "a stamp of %u bytes at %llu, ordered: %u", op->length,
				 op->offset, op->ordered);
		op->status = read_stamp(op, memory);
	} else {
		if (op->length % PAGE_SIZE || op->offset % PAGE_SIZE)
			sim_fail(SIM_NONE, "content of %u bytes at %llu", op->length, op->offset);
		/* A device that reads memory of its own node asks for no key. */
		if (!memory_read_begin(memory, op->offset, op->length,
				       from == op->node || sim_broken == BREAK_KEY ? U64_MAX :
				       op->since)) {
			op->status = -ESTALE;
		} else {
			op->status = read_pages(op, memory);
			memory_read_end(memory, op->offset, op->length);
		}
	}
	sim_event(operation_block(op), "has read %s of node %u: %d", memory->name, op->node,
		  op->status);
}

s64 operation_block(const struct kdsm_operation *op)
{
	return op->length < PAGE_SIZE ? (s64)(op->offset / sizeof(struct kdsm_stamp)) :
	       block_of(op->offset >> PAGE_SHIFT);
}

/* ---- messages ---- */

const char *const message_names[KDSM_MESSAGE_TYPES] = {
	[KDSM_MESSAGE_BLOCK_READ] = "READ",
	[KDSM_MESSAGE_BLOCK_OWN] = "OWN",
	[KDSM_MESSAGE_BLOCK_GRANT] = "GRANT",
	[KDSM_MESSAGE_BLOCK_LEND] = "LEND",
	[KDSM_MESSAGE_BLOCK_INVALIDATE] = "INVALIDATE",
	[KDSM_MESSAGE_BLOCK_CLAIM] = "CLAIM",
	[KDSM_MESSAGE_BLOCK_PUSH] = "PUSH",
};

static const struct kdsm_wire_block *wire_of(const struct sim_message *message)
{
	return (const void *)message->data;
}

s64 message_block(const struct sim_message *message)
{
	if (message->type == KDSM_MESSAGE_BLOCK_PUSH)
		return SIM_NONE;
	return wire_of(message)->index;
}

void message_send(const struct sim_message *message)
{
	unsigned int i;

	counts.messages[message->type]++;
	if (message->type == KDSM_MESSAGE_BLOCK_PUSH)
		return;
	for (i = 0; i < config.blocks; i++)
		if (config.index[i] == wire_of(message)->index)
			return;
	/* An acquire asks whether its node was excluded, and names any block */
	if (message->type == KDSM_MESSAGE_BLOCK_CLAIM && !wire_of(message)->status)
		return;
	sim_fail(wire_of(message)->index, "a message about a block that is not used");
}

static int serve_push(struct kdsm_coherence *coherence, struct kdsm_request *request)
{
	const struct kdsm_wire_push *wire = request->data;
	int status = kdsm_coherence_serve_push(coherence, request);

	/* The node claims that it has read all blocks, whether or not it has. */
	if (sim_broken == BREAK_UNREAD && !status && !wire->take)
		memcpy(request->reply, wire->blocks, sizeof(wire->blocks));
	return status;
}

static int dispatch(struct kdsm_coherence *coherence, enum kdsm_message_type type,
		    struct kdsm_request *request)
{
	switch (type) {
	case KDSM_MESSAGE_BLOCK_READ:
		return kdsm_coherence_serve_read(coherence, request);
	case KDSM_MESSAGE_BLOCK_OWN:
		return kdsm_coherence_serve_own(coherence, request);
	case KDSM_MESSAGE_BLOCK_GRANT:
		return kdsm_coherence_serve_grant(coherence, request);
	case KDSM_MESSAGE_BLOCK_LEND:
		return kdsm_coherence_serve_lend(coherence, request);
	case KDSM_MESSAGE_BLOCK_CLAIM:
		return kdsm_coherence_serve_claim(coherence, request);
	case KDSM_MESSAGE_BLOCK_PUSH:
		return serve_push(coherence, request);
	default:
		return kdsm_coherence_serve_invalidate(coherence, request);
	}
}

/*
 * A link to the next owner has the number of a hand-over, by which a node recognises stale
 * links. Remove the number of a stale link, because a node always follows a link without one.
 */
static void break_link(struct kdsm_wire_answer *answer, u64 index)
{
	const struct kdsm_block *block;

	if (config.closing)	/* that node may be about to free its blocks */
		return;
	block = known_block(answer->node, index);
	if ((block ? block->handover : 1) >= answer->handover.number)
		answer->handover.number = 0;
}

static void break_answer(struct sim_message *message, const struct kdsm_request *request)
{
	struct kdsm_wire_answer *answer = (void *)message->reply;

	if (sim_broken == BREAK_OLD && message->type == KDSM_MESSAGE_BLOCK_READ &&
	    request->reply_length && answer->answer == KDSM_ANSWER_ASK)
		break_link(answer, wire_of(message)->index);
	/* The node that discards the block does not see that the asked one refuses. */
	if (sim_broken == BREAK_CLAIM && message->type == KDSM_MESSAGE_BLOCK_CLAIM &&
	    request->reply_length && wire_of(message)->status == KDSM_CLAIM_TAKE) {
		answer->answer = KDSM_ANSWER_ASK;
		answer->node = message->from;
		answer->handover.number = wire_of(message)->handover.number;
		answer->handover.from = KDSM_NOBODY;
	}
	if (message->type != KDSM_MESSAGE_BLOCK_OWN)
		return;
	if (sim_broken == BREAK_LEASE)
		answer->handover.rts = 0;
	if (sim_broken == BREAK_SET)
		memset(answer->handover.readers, 0, sizeof(answer->handover.readers));
	if (sim_broken == BREAK_OLD && request->reply_length &&
	    answer->answer == KDSM_ANSWER_ASK)
		break_link(answer, wire_of(message)->index);
}

/* A reader asks to be queued. */
static int break_queue(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       struct sim_message *message, struct kdsm_request *request)
{
	u16 next = block->next;
	int status;

	if (sim_broken == BREAK_LINE)
		block->next = KDSM_NOBODY;
	status = dispatch(coherence, message->type, request);
	if (sim_broken == BREAK_LINE)
		block->next = next;
	if (sim_broken == BREAK_QUEUE && block->waiting)
		bitmap_zero(block->waiting, sim.nodes);
	return status;
}

/* A writer asks a reader to drop its copy. */
static int break_copy(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct sim_message *message, struct kdsm_request *request)
{
	if (block->reading == KDSM_READING_LENT) {
		if (sim_broken == BREAK_FETCH)
			return 0;
		block->reading = KDSM_READING_ASKING;
	}
	return dispatch(coherence, message->type, request);
}

/* A node lends a copy: the reader takes the loan up whenever it was made, and by which node. */
static int break_loan(struct kdsm_coherence *coherence, struct kdsm_block *block,
		      struct sim_message *message, struct kdsm_request *request)
{
	u64 handover = block->handover;
	int status;

	if (block->reading == KDSM_READING_ASKING)
		block->reading = KDSM_READING_QUEUED;
	if (block->reading == KDSM_READING_QUEUED)
		block->lender = message->from;
	block->handover = min(handover, wire_of(message)->handover.number);
	status = dispatch(coherence, message->type, request);
	block->handover = max(handover, block->handover);
	return status;
}

static int break_block(struct kdsm_coherence *coherence, struct kdsm_block *block,
		       struct sim_message *message, struct kdsm_request *request)
{
	u64 rts = block->rts;
	int status;

	if (message->type == KDSM_MESSAGE_BLOCK_READ &&
	    (sim_broken == BREAK_QUEUE || sim_broken == BREAK_LINE))
		return break_queue(coherence, block, message, request);
	if (message->type == KDSM_MESSAGE_BLOCK_INVALIDATE &&
	    (sim_broken == BREAK_FETCH || sim_broken == BREAK_CANCEL))
		return break_copy(coherence, block, message, request);
	if (message->type == KDSM_MESSAGE_BLOCK_LEND && !wire_of(message)->status &&
	    sim_broken == BREAK_LOAN)
		return break_loan(coherence, block, message, request);
	if (message->type == KDSM_MESSAGE_BLOCK_CLAIM) {
		if (sim_broken == BREAK_DONE && wire_of(message)->status == KDSM_CLAIM_DONE)
			return 0;
	}
	if (sim_broken == BREAK_FORGET)
		block->given = false;
	if (sim_broken == BREAK_NUMBER && block->role == KDSM_ROLE_NONE)
		block->handover = 0;
	status = dispatch(coherence, message->type, request);
	if (sim_broken == BREAK_RTS && message->type == KDSM_MESSAGE_BLOCK_READ)
		block->rts = rts;
	/* Then the node takes up a loan that ended before the node knew of it. */
	if (sim_broken == BREAK_STALE && message->type == KDSM_MESSAGE_BLOCK_INVALIDATE) {
		block->wanted = 0;
		block->again = false;
	}
	break_answer(message, request);
	return status;
}

static int serve_block(struct sim_message *message, struct kdsm_request *request)
{
	struct kdsm_coherence *coherence = &nodes[message->to].coherence;
	struct kdsm_block *block = NULL;
	int status;

	if (sim_broken && message->type != KDSM_MESSAGE_BLOCK_PUSH)
		block = kdsm_block_get(coherence, wire_of(message)->index);
	if (!block)
		return dispatch(coherence, message->type, request);
	status = break_block(coherence, block, message, request);
	kdsm_block_put(coherence, block);
	return status;
}

/* As kdsm_region_serve_block() in kmod/region/region.c */
static int serve(struct sim_message *message, struct kdsm_request *request)
{
	struct node *node = &nodes[message->to];
	int status;

	if (node->closed)
		return -ENOENT;
	node->serving++;
	status = serve_block(message, request);
	node->serving--;
	return status;
}

int serve_message(struct sim_message *message, struct kdsm_request *request)
{
	static const char * const answers[] = { "yes", "queued", "ask", "retry" };
	const struct kdsm_wire_answer *answer = (const void *)message->reply;
	const struct kdsm_wire_block *wire = wire_of(message);
	const char *name = message_names[message->type];
	const char *how = message->stray ? ", late" : "";
	int status;

	sim_event(wire->index, "%s from node %u%s: status %d handover %llu of %u", name,
		  message->from, how, (int)wire->status, wire->handover.number,
		  wire->handover.from);
	status = serve(message, request);
	if (status == -EINVAL && message->type != KDSM_MESSAGE_BLOCK_INVALIDATE)
		sim_fail(wire->index, "node %u refuses %s from node %u", message->to, name,
			 message->from);
	if (request->reply_length)
		sim_event(wire->index, "%s from node %u%s answered: %s %u handover %llu of %u",
			  name, message->from, how, answers[answer->answer], answer->node,
			  answer->handover.number, answer->handover.from);
	else
		sim_event(wire->index, "%s from node %u%s: %d", name, message->from, how, status);
	return status;
}
