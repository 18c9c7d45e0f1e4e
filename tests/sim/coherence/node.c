// SPDX-License-Identifier: GPL-2.0
/*
 * The fabric of simulated nodes: memory, remote reads that are torn, messages
 * that overtake each other; and memory that runs out.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "sim.h"
#include "coherence/internal.h"

/* ---- memory ---- */

static s64 allocated;

static bool no_memory(void)
{
	if (!sim_chance(sim.nomem) || sim_fiber_name()[0] == '-')
		return false;
	sim_event(-1, "an allocation fails");
	return true;
}

void *sim_alloc(size_t size, bool zero)
{
	void *p;

	if (no_memory())
		return NULL;
	p = zero ? calloc(1, size ? size : 1) : malloc(size ? size : 1);
	if (!zero)
		memset(p, 0xa5, size);
	allocated++;
	return p;
}

void sim_free(void *p)
{
	if (p)
		allocated--;
	free(p);
}

struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index)
{
	if (index >= memory->count)
		sim_fail(sim_block_of(index), "a page outside of the region");
	if (!memory->pages[index]) {
		if (no_memory())
			return ERR_PTR(-ENOMEM);
		memory->pages[index] = memory->piece ? memory->piece + index :
				       calloc(1, sizeof(struct page));
	}
	return memory->pages[index];
}

#define PIECES	8

/* In pieces, which others see half done. */
static void copy_torn(void *to, const void *from)
{
	unsigned int size = PAGE_SIZE / PIECES, start = sim_below(PIECES), i;

	for (i = 0; i < PIECES; i++) {
		unsigned int at = (start + i) % PIECES * size;

		memcpy((char *)to + at, (const char *)from + at, size);
		sim_yield();
	}
}

void copy_page(void *to, const void *from)
{
	copy_torn(to, from);
}

/* ---- nodes that are away ---- */

static u64 down_from, down_until;
static unsigned int down_node;

static bool is_down(unsigned int node)
{
	return sim.down && node == down_node && sim_now() >= down_from &&
	       sim_now() < down_until;
}

static u64 delay(unsigned int from, unsigned int to)
{
	u64 us = 1 + sim_below(sim.delay);

	if (sim_chance(sim.late))
		us *= 30;
	if (from == sim.slow || to == sim.slow)
		us *= 20;
	return us;
}

/* ---- operations ---- */

unsigned int kdsm_fabric_node(const struct kdsm_fabric *fabric)
{
	return fabric->node;
}

unsigned int kdsm_fabric_nodes(const struct kdsm_fabric *fabric)
{
	(void)fabric;
	return sim.nodes;
}

void kdsm_batch_init(struct kdsm_batch *batch, struct kdsm_fabric *fabric,
		     struct kdsm_memory *memory)
{
	batch->fabric = fabric;
	batch->memory = memory;
	INIT_LIST_HEAD(&batch->operations);
}

void kdsm_batch_add_to(struct kdsm_batch *batch, struct kdsm_memory *memory,
		       struct kdsm_operation *op)
{
	op->memory = memory;
	list_add_tail(&op->link, &batch->operations);
}

/* Byte by byte, which is worse than any device does to a word. */
static void copy_few(void *to, const void *from, unsigned int length)
{
	unsigned int start = sim_below(length), i;

	for (i = 0; i < length; i++) {
		((char *)to)[(start + i) % length] = ((const char *)from)[(start + i) % length];
		sim_yield();
	}
}

static void operate(struct kdsm_batch *batch, struct kdsm_operation *op)
{
	bool is_stamp = op->memory == &sim_nodes[batch->fabric->node].stamps;
	struct kdsm_memory *memory;
	struct page *page;
	u64 done;

	if (op->node >= sim.nodes)
		sim_fail(-1, "a read of no node");
	if (op->opcode != KDSM_OP_GET || !op->length || op->length > KDSM_SEGMENT_MAX ||
	    (!is_stamp && (op->length % PAGE_SIZE || op->offset % PAGE_SIZE)) ||
	    (is_stamp && (op->length > PAGE_SIZE - op->offset % PAGE_SIZE || !op->ordered)))
		sim_fail(-1, "an operation that is not known");
	if (sim_chance(sim.error) || is_down(op->node) || is_down(batch->fabric->node)) {
		op->status = -EIO;
		return;
	}
	memory = (void *)&sim_nodes[op->node] + op->memory->place;
	op->status = 0;
	if (is_stamp) {
		page = kdsm_memory_page(memory, op->offset >> PAGE_SHIFT);
		if (IS_ERR(page))
			op->status = PTR_ERR(page);
		else
			copy_few(op->data, (char *)page + op->offset % PAGE_SIZE, op->length);
		sim_counts.probes++;
		return;
	}
	if (sim_chance(sim.stall))
		sim_sleep(sim_between(50, 200) * 1000000ULL);
	for (done = 0; done < op->length; done += PAGE_SIZE) {
		page = kdsm_memory_page(memory, (op->offset + done) >> PAGE_SHIFT);
		if (IS_ERR(page)) {
			op->status = PTR_ERR(page);
			return;
		}
		copy_torn(op->data + done, page);
	}
}

static s64 operation_block(const struct kdsm_operation *op)
{
	return op->length < PAGE_SIZE ? (s64)(op->offset / sizeof(struct kdsm_stamp)) :
	       sim_block_of(op->offset >> PAGE_SHIFT);
}

/*
 * Each starts and ends at a time of its own, one after the other; the protocol relies
 * on that for ordered ones only.
 */
void kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_operation *op;

	sim_might_sleep();
	if (sim_broken == SIM_BREAK_ORDER)
		list_move_tail(batch->operations.next, &batch->operations);
	list_for_each_entry(op, &batch->operations, link) {
		sim_counts.fetches++;
		sim_event(operation_block(op), "reads %s of node %u", op->memory->name, op->node);
		sim_sleep(delay(batch->fabric->node, op->node));
		operate(batch, op);
		sim_sleep(delay(batch->fabric->node, op->node));
		sim_event(operation_block(op), "has read %s of node %u: %d", op->memory->name,
			  op->node, op->status);
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
	u8 data[256], reply[256];	/* a block's are smaller */
	unsigned int length, reply_length;
	int status;
	bool done;
	struct sim_queue queue;
};

static unsigned int under_way;

static void check_index(u64 index)
{
	unsigned int i;

	for (i = 0; i < sim.blocks; i++)
		if (sim.index[i] == index)
			return;
	sim_fail(index, "a message about a block that is not used");
}

static const char *type_name(enum kdsm_message_type type)
{
	return type == KDSM_MESSAGE_BLOCK_READ ? "READ" :
	       type == KDSM_MESSAGE_BLOCK_OWN ? "OWN" :
	       type == KDSM_MESSAGE_BLOCK_GRANT ? "GRANT" : "INVALIDATE";
}

static void serve_once(struct message *message)
{
	struct kdsm_coherence *coherence = &sim_nodes[message->to].coherence;
	const struct kdsm_wire_block *wire = (const void *)message->data;
	u8 room[KDSM_MESSAGE_ROOM];
	struct kdsm_request request = {
		.from = message->from,
		.can_sleep = true,
		.data = message->data,
		.length = message->length,
		.reply = room,
	};
	struct kdsm_wire_answer *answer = (void *)message->reply;
	struct kdsm_block *block = kdsm_block(coherence, wire->index);
	u64 rts = block ? block->rts : 0;

	if (block && sim_broken == SIM_BREAK_FORGET)
		block->given = false;
	if (block && sim_broken == SIM_BREAK_NUMBER && block->role == KDSM_ROLE_NONE)
		block->handover = 0;
	switch (message->type) {
	case KDSM_MESSAGE_BLOCK_READ:
		message->status = kdsm_coherence_serve_read(coherence, &request);
		if (sim_broken == SIM_BREAK_RTS && block)
			block->rts = rts;
		break;
	case KDSM_MESSAGE_BLOCK_OWN:
		message->status = kdsm_coherence_serve_own(coherence, &request);
		break;
	case KDSM_MESSAGE_BLOCK_GRANT:
		message->status = kdsm_coherence_serve_grant(coherence, &request);
		break;
	case KDSM_MESSAGE_BLOCK_INVALIDATE:
		message->status = kdsm_coherence_serve_invalidate(coherence, &request);
		if (sim_broken == SIM_BREAK_STALE && block)
			block->stale = false;
		break;
	default:
		sim_fail(-1, "a message of unknown type");
	}
	if (message->status == -EINVAL && message->type != KDSM_MESSAGE_BLOCK_INVALIDATE)
		sim_fail(wire->index, "%s of node %u makes no sense to node %u",
			 type_name(message->type), message->from, message->to);
	if (request.reply_length > sizeof(message->reply))
		sim_fail(-1, "a reply that is too long");
	memcpy(message->reply, room, request.reply_length);
	if (sim_broken == SIM_BREAK_LEASE && message->type == KDSM_MESSAGE_BLOCK_OWN)
		answer->handover.rts = 0;
	if (sim_broken == SIM_BREAK_SET && message->type == KDSM_MESSAGE_BLOCK_OWN)
		memset(answer->handover.readers, 0, sizeof(answer->handover.readers));
	message->reply_length = request.reply_length;
	if (sim_broken == SIM_BREAK_OLD && message->type == KDSM_MESSAGE_BLOCK_OWN &&
	    message->reply_length && answer->answer == KDSM_ANSWER_ASK) {
		/* Without a number it is a promise; of no use to who does not know yet. */
		block = kdsm_block(&sim_nodes[answer->node].coherence, wire->index);
		if (block && block->handover >= answer->handover.number)
			answer->handover.number = 0;
	}
}

static void serve(struct message *message, const char *how)
{
	static const char * const answers[] = { "yes", "queued", "ask", "retry" };
	const struct kdsm_wire_block *wire = (const void *)message->data;
	const struct kdsm_wire_answer *answer = (const void *)message->reply;
	s64 index = wire->index;

	sim_event(index, "%s of node %u%s: status %d handover %llu of %u",
		  type_name(message->type), message->from, how, (int)wire->status,
		  wire->handover.number, wire->handover.from);
	serve_once(message);
	if (message->reply_length)
		sim_event(index, "%s of node %u%s answered: %s %u handover %llu of %u",
			  type_name(message->type), message->from, how,
			  answers[answer->answer], answer->node, answer->handover.number,
			  answer->handover.from);
	else
		sim_event(index, "%s of node %u%s: %d", type_name(message->type),
			  message->from, how, message->status);
}

/* Its sender does not wait for it any more. */
static void serve_late(void *arg)
{
	struct message *message = arg;

	serve(message, ", late");
	under_way--;
	free(message);
}

static void send_late(const struct message *message)
{
	struct message *copy = malloc(sizeof(*copy));

	*copy = *message;
	under_way++;
	sim_spawn(message->to, "serves late", 1 + sim_below(sim_chance(2) ? 10000 : 1000000),
		  serve_late, copy);
}

/* The sender is told that it is lost; it may be, or the reply is, or it is late. */
static void deliver(void *arg)
{
	struct message *message = arg;
	const struct kdsm_wire_block *wire = (const void *)message->data;

	if (is_down(message->from) || is_down(message->to)) {
		sim_sleep(1000000);
		message->status = -EHOSTDOWN;
	} else if (sim_chance(sim.error)) {
		if (sim_chance(2))
			send_late(message);
		sim_event(wire->index, "%s of node %u does not arrive",
			  type_name(message->type), message->from);
		message->status = sim_chance(4) ? -EHOSTDOWN : -EIO;
	} else {
		serve(message, "");
		sim_sleep(delay(message->to, message->from));
		if (sim_chance(sim.error) || is_down(message->from) || is_down(message->to)) {
			if (sim_chance(4))
				send_late(message);
			sim_event(wire->index, "the reply to %s of node %u does not arrive",
				  type_name(message->type), message->from);
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
	struct message *message;
	char name[24];
	int status;

	sim_might_sleep();
	if (node >= sim.nodes)
		sim_fail(-1, "a message to no node");
	sim_counts.messages++;
	message = calloc(1, sizeof(*message));
	message->from = fabric->node;
	message->to = node;
	message->type = type;
	message->length = length;
	memcpy(message->data, data, length);
	check_index(((const struct kdsm_wire_block *)message->data)->index);
	if (node == fabric->node) {
		serve_once(message);
	} else {
		under_way++;
		snprintf(name, sizeof(name), "serves %s", type_name(type));
		sim_spawn(node, name, delay(fabric->node, node), deliver, message);
		while (!message->done) {
			sim_prepare(&message->queue);
			sim_block(&message->queue, U64_MAX);
		}
	}
	status = message->status;
	if (reply && !status) {
		if (message->reply_length > *reply_length)
			sim_fail(-1, "no room for a reply");
		*reply_length = message->reply_length;
		memcpy(reply, message->reply, message->reply_length);
	}
	free(message);
	return status;
}

bool sim_quiet(void)
{
	return !under_way;
}

void sim_fabric_heal(void)
{
	sim.error = 0;
	sim.stall = 0;
	sim.down = false;
	sim.healed = true;
	sim.pause = 1;
}

/* ---- start and stop ---- */

static void memory_start(struct kdsm_memory *memory, unsigned int node, const char *name,
			 u64 count)
{
	memory->node = node;
	memory->name = name;
	memory->count = count;
	memory->place = (char *)memory - (char *)&sim_nodes[node];
	memory->pages = calloc(count, sizeof(struct page *));
	if (!sim.pieces)
		return;
	memory->piece = mmap(NULL, count * sizeof(struct page), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->piece == MAP_FAILED)
		sim_fail(-1, "no memory");
}

void sim_fabric_start(void)
{
	unsigned int nomem = sim.nomem, i;

	sim.nomem = 0;
	allocated = 0;
	under_way = 0;
	if (sim.down) {
		down_node = sim_below(sim.nodes);
		down_from = sim_below(20000);
		down_until = down_from + sim_below(20000);
	}
	for (i = 0; i < sim.nodes; i++) {
		struct sim_node *node = &sim_nodes[i];

		memset(node, 0, sizeof(*node));
		node->fabric.node = i;
		node->region.node = i;
		memory_start(&node->frames, i, "frame", sim_pages());
		memory_start(&node->twins, i, "twin", sim_pages());
		memory_start(&node->stamps, i, "stamp",
			     kdsm_stamps_size(sim.region_blocks) >> PAGE_SHIFT);
		if (kdsm_coherence_init(&node->coherence, &node->fabric, 7,
					sim.policy,
					sim.region_blocks * sim.pages * PAGE_SIZE,
					sim.pages * PAGE_SIZE))
			sim_fail(-1, "init fails");
		node->coherence.mapping = &sim_mapping_ops;
		if (sim_broken == SIM_BREAK_HASTE)
			node->coherence.lease = 0;
		node->coherence.region = &node->region;
		node->coherence.frames = &node->frames;
		node->coherence.twins = &node->twins;
		node->coherence.stamps = &node->stamps;
	}
	sim.nomem = nomem;
}

static void memory_stop(struct kdsm_memory *memory)
{
	u64 i;

	if (memory->piece)
		munmap(memory->piece, memory->count * sizeof(struct page));
	for (i = 0; i < memory->count && !memory->piece; i++)
		free(memory->pages[i]);
	free(memory->pages);
}

void sim_fabric_stop(void)
{
	unsigned int i, j;

	for (i = 0; i < sim.nodes; i++) {
		struct sim_node *node = &sim_nodes[i];

		for (j = 0; j < KDSM_COHERENCE_COUNT; j++)
			sim_counts.stats[j] += node->coherence.stats[j].counter;
		kdsm_coherence_exit(&node->coherence);
		memory_stop(&node->frames);
		memory_stop(&node->twins);
		memory_stop(&node->stamps);
	}
	if (allocated)
		sim_fail(-1, "%lld allocations were not freed", (long long)allocated);
}
