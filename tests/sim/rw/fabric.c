// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric of nodes that read and write: a counter at each, which the device
 * changes, messages, and what gets lost of both.
 *
 * With costs nothing is lost, and time is what is measured: an operation takes its way
 * and back, and the device of a node does one atomic after the other, and its
 * processor one message after the other.
 */
#include <stdio.h>

#include "rw.h"

static u64 words[RW_NODES];
static unsigned int found_want[RW_NODES];
static u64 atomics_until[RW_NODES], messages_until[RW_NODES];
static struct kdsm_fabric fabrics[RW_NODES];
static struct kdsm_memory memory;
static unsigned int under_way;
static s64 allocated;

void *sim_alloc(size_t size, bool zero)
{
	(void)zero;
	allocated++;
	return calloc(1, size);
}

void sim_free(void *p)
{
	if (p)
		allocated--;
	free(p);
}

bool sim_quiet(void)
{
	return !under_way;
}

static u64 delay(void)
{
	u64 us = 1 + sim_below(sim.delay);

	return sim_chance(sim.late) ? us * 30 : us;
}

u64 rw_latency(unsigned int from, unsigned int to)
{
	if (!rw_cost.units)
		return delay();
	if (from == to)
		return rw_cost.self;
	return from * rw_cost.racks / rw_config.nodes == to * rw_cost.racks / rw_config.nodes ?
	       rw_cost.near : rw_cost.far;
}

/* When the target is done with what is there at a time, and takes that long. */
static u64 serve_by(u64 *until, u64 at, u64 takes)
{
	*until = (at > *until ? at : *until) + takes;
	return *until;
}

static void sleep_until(u64 time)
{
	if (time > sim_now())
		sim_sleep(time - sim_now());
}

/* ---- operations ---- */

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *unused)
{
	batch->fabric = fabric;
	batch->memory = unused;
	INIT_LIST_HEAD(&batch->operations);
}

void kdsm_batch_add(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	op->memory = batch->memory;
	list_add_tail(&op->link, &batch->operations);
}

#define IS_READER	(KDSM_RW_READER + KDSM_RW_ARRIVAL)
#define IS_CLOSED	(KDSM_RW_WANT | KDSM_RW_WRITE)

static void operate(unsigned int from, struct kdsm_operation *op)
{
	u64 *word = &words[op->node];
	u64 was = *word;

	if (op->node >= rw_config.nodes || op->offset || op->length != 8)
		sim_fail(-1, "an operation on a wrong place");
	op->result = was;
	if (op->opcode == KDSM_OP_CAS) {
		if (was == op->compare)
			*word = op->operand;
		else if (rw_broken == RW_BREAK_SWAP && (was & ~KDSM_RW_ASKED) == op->compare)
			op->result = op->compare, *word = op->operand;
	} else {
		*word += op->operand;
	}
	if (*word & KDSM_RW_WANT && !(was & KDSM_RW_WANT))
		rw_wanted(op->node);
	if (kdsm_rw_readers(*word) > 2 * rw_config.nodes)
		sim_fail(-1, "node %u: %u readers", op->node, kdsm_rw_readers(*word));
	sim_event(-1, "operation %u of node %u at %u: %llx, %llx -> %llx", op->opcode, from,
		  op->node, op->operand, was, *word);
	if (op->operand == IS_READER) {
		found_want[from] = was & KDSM_RW_WANT ? rw_want(op->node) : 0;
		if (rw_broken == RW_BREAK_WRITE)
			op->result &= ~IS_CLOSED;
		if (rw_broken == RW_BREAK_WANT && !(was & KDSM_RW_WRITE))
			op->result &= ~IS_CLOSED;
	}
	/* What a writer reads. */
	if (rw_broken == RW_BREAK_SWAP && !op->operand && op != &rw_of(from)->home.op)
		op->result &= ~KDSM_RW_ASKED;
	if (rw_broken == RW_BREAK_SPAN && !op->operand && !op->node)
		op->result = (was & ~(0x7ff * KDSM_RW_SPAN)) |
			     rw_of(from)->view * KDSM_RW_SPAN;
}

unsigned int rw_found_want(unsigned int node)
{
	return found_want[node];
}

/* All at once; in the order in which they get there. */
static void post_timed(struct kdsm_batch *batch)
{
	unsigned int from = batch->fabric->node;
	u64 start = sim_now(), end = start, first;
	struct kdsm_operation *op, *next;

	list_for_each_entry(op, &batch->operations, link)
		op->word = serve_by(&atomics_until[op->node],
				    start + rw_latency(from, op->node), rw_cost.atomic);
	for (;;) {
		first = U64_MAX;
		next = NULL;
		list_for_each_entry(op, &batch->operations, link)
			if (op->word < first) {
				first = op->word;
				next = op;
			}
		if (!next)
			break;
		sleep_until(first);
		operate(from, next);
		next->status = 0;
		next->word = U64_MAX;
		end = max(end, first + rw_latency(from, next->node));
	}
	sleep_until(end);
}

void kdsm_batch_post(struct kdsm_batch *batch)
{
	unsigned int from = batch->fabric->node;
	struct kdsm_operation *op;

	sim_might_sleep();
	if (rw_cost.units) {
		post_timed(batch);
		return;
	}
	list_for_each_entry(op, &batch->operations, link) {
		sim_sleep(delay());
		op->status = 0;
		if (sim_chance(sim.error)) {
			/* Whether it was done is not known. */
			if (sim_chance(2))
				operate(from, op);
			op->result = 0xdeadULL;
			op->status = sim_chance(2) ? -EIO : -EHOSTDOWN;
		} else {
			operate(from, op);
		}
		sim_sleep(delay());
	}
}

int kdsm_batch_wait(struct kdsm_batch *batch, u64 timeout_ns, unsigned int state)
{
	(void)batch;
	(void)timeout_ns;
	(void)state;
	sim_yield();
	return 0;
}

void kdsm_batch_finish(struct kdsm_batch *batch)
{
	(void)batch;
}

/* ---- messages ---- */

struct message {
	unsigned int from, to;
	enum kdsm_message_type type;
	u8 data[KDSM_MESSAGE_ROOM], reply[KDSM_MESSAGE_ROOM];
	unsigned int length, reply_length;
	int status;
	bool done;
	struct sim_queue queue;
};

static int dispatch(struct message *message, struct kdsm_request *request)
{
	struct kdsm_wire_rw *wire = (void *)message->data;
	struct kdsm_rw *rw = rw_of(message->to);
	struct kdsm_rw_user *user = &rw->home.users[message->from];
	int err;

	switch (message->type) {
	case KDSM_MESSAGE_RW_JOIN:
		return kdsm_rw_serve_join(rw, request);
	case KDSM_MESSAGE_RW_ASK:
		if (rw_broken == RW_BREAK_TWICE)
			user->turn = wire->turn - 1;
		return kdsm_rw_serve_ask(rw, request);
	case KDSM_MESSAGE_RW_OPEN:
		if (rw_broken == RW_BREAK_OLD)
			user->opened = wire->turn - 1;
		if (rw_broken == RW_BREAK_WRONG)
			rw->home.wrong = false;
		return kdsm_rw_serve_open(rw, request);
	case KDSM_MESSAGE_RW_TELL:
		return rw_broken == RW_BREAK_TELL ? 0 : kdsm_rw_serve_tell(rw, request);
	case KDSM_MESSAGE_RW_GO:
		if (rw_broken == RW_BREAK_GO && rw->state == KDSM_RW_ASKING)
			return 0;
		return kdsm_rw_serve_go(rw, request);
	case KDSM_MESSAGE_RW_COUNT:
		err = kdsm_rw_serve_count(rw, request);
		if (rw_broken == RW_BREAK_THAW)
			__set_bit(message->from, rw->joined);
		return err;
	default:
		sim_fail(-1, "a message of unknown type");
	}
}

static void serve(struct message *message)
{
	static const char *const names[] = { "JOIN", "ASK", "OPEN", "TELL", "GO", "COUNT" };
	struct kdsm_wire_rw *wire = (void *)message->data, *reply = (void *)message->reply;
	struct kdsm_request request = {
		.from = message->from,
		.data = message->data,
		.length = message->length,
		.reply = message->reply,
	};

	message->status = dispatch(message, &request);
	if (message->status == -EINVAL)
		sim_fail(-1, "message %u of node %u makes no sense to node %u", message->type,
			 message->from, message->to);
	message->reply_length = request.reply_length;
	sim_event(-1, "%s of node %u to %u, turn %u what %u: %d, %u",
		  names[message->type - KDSM_MESSAGE_RW_JOIN], message->from, message->to,
		  wire->turn, wire->what, message->status, reply->what);
}

static void serve_late(void *arg)
{
	struct message *message = arg;

	serve(message);
	under_way--;
	free(message);
}

static void send_late(const struct message *message)
{
	struct message *copy = malloc(sizeof(*copy));

	*copy = *message;
	under_way++;
	sim_spawn(message->to, "serves late", 1 + sim_below(sim_chance(2) ? 1000 : 1000000),
		  serve_late, copy);
}

static void deliver(void *arg)
{
	struct message *message = arg;

	if (sim_chance(sim.error)) {
		if (sim_chance(2))
			send_late(message);
		message->status = sim_chance(4) ? -EHOSTDOWN : -EIO;
	} else {
		if (rw_cost.units)
			sleep_until(serve_by(&messages_until[message->to], sim_now(),
					     rw_cost.message));
		serve(message);
		sim_sleep(rw_latency(message->from, message->to));
		if (sim_chance(sim.error)) {
			if (sim_chance(4))
				send_late(message);
			message->status = sim_chance(2) ? -EIO : -ETIMEDOUT;
		}
	}
	message->done = true;
	under_way--;
	sim_wake(&message->queue);
}

int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length)
{
	struct message *message = calloc(1, sizeof(*message));
	int status;

	sim_might_sleep();
	if (node >= rw_config.nodes || length > sizeof(message->data))
		sim_fail(-1, "a message to node %u", node);
	message->from = fabric->node;
	message->to = node;
	message->type = type;
	message->length = length;
	memcpy(message->data, data, length);
	if (node == fabric->node) {
		serve(message);
	} else {
		sim_counts.messages++;
		under_way++;
		sim_spawn(node, "serves", rw_latency(fabric->node, node), deliver, message);
		while (!message->done) {
			sim_prepare(&message->queue);
			sim_block(&message->queue, U64_MAX);
		}
	}
	status = message->status;
	if (reply && !status) {
		*reply_length = message->reply_length;
		memcpy(reply, message->reply, message->reply_length);
	}
	free(message);
	return status;
}

/* ---- start and stop ---- */

u64 rw_word(unsigned int node)
{
	return words[node];
}

void rw_fabric_start(void)
{
	unsigned int i;

	under_way = 0;
	allocated = 0;
	memset(words, 0, sizeof(words));
	memset(atomics_until, 0, sizeof(atomics_until));
	memset(messages_until, 0, sizeof(messages_until));
	for (i = 0; i < rw_config.nodes; i++) {
		/* Arrivals wrap. */
		words[i] = rw_cost.units ? 0 : -(sim_below(20) * KDSM_RW_ARRIVAL);
		fabrics[i].node = i;
		rw_of(i)->fabric = &fabrics[i];
		rw_of(i)->memory = &memory;
	}
}

void rw_fabric_stop(void)
{
	if (allocated)
		sim_fail(-1, "%lld allocations were not freed", (long long)allocated);
}
