// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Remote operations of a virtual run: when each one arrives, takes effect and is complete.
 *
 * The request of an operation waits until the sender's adapter is free, and then takes half of
 * the latency, and a time for each byte, to the target. There a get waits for the adapter, which
 * sends the data back; a message waits until the node's kernel has handled the messages before
 * it. The answer takes the other half of the latency. An operation takes effect at the target,
 * so what it reads or writes is what the other nodes have at that time.
 *
 * Operations of one vector to the same node arrive in their order.
 */
#include <stdlib.h>
#include <string.h>

#include "virtual/internal.h"

/* The next stage of an operation */
enum stage { ARRIVE, HANDLED, COMPLETE };

struct transfer {
	struct kd_event event;		/* first */
	struct kd_flight *flight;
	struct kdsm_op op;		/* a copy: the caller may reuse the memory of puts */
	struct kdsm_op *callers;
	enum stage stage;
};

/* The operations of one call */
struct kd_flight {
	struct kd_flight *next, **link;	/* of the node */
	struct kdsm_region *region;
	unsigned int count;		/* of transfer[] */
	uint64_t ticket;
	enum kdsm_virtual_share share;	/* of the time that the caller waits */
	bool awaited;			/* a thread is completing the ticket */
	unsigned int open;		/* operations that are not complete; the key of waiters */
	struct transfer transfer[];
};

static bool is_message(const struct kdsm_op *op)
{
	return op->opcode != KDSM_OP_GET && op->opcode != KDSM_OP_PUT;
}

/* Latency of both ways together, in ns */
static uint64_t latency(const struct kdsm_op *op)
{
	const struct kdsm_virtual_attr *attr = kd_run.attr;

	return is_message(op) ? attr->message - attr->handler : attr->one_sided;
}

/* Time for the data of an operation, in ns */
static uint64_t wire(uint64_t bytes)
{
	return bytes * 1000 / kd_run.attr->bandwidth;
}

/* Let a node's adapter begin to send. Returns when the last byte has left. */
static uint64_t send(unsigned int node, uint64_t time, uint64_t bytes)
{
	struct kd_simulated *from = &kd_run.node[node];
	uint64_t begin = time > from->adapter_free ? time : from->adapter_free;
	uint64_t busy = wire(bytes);

	from->adapter_free = begin + (busy > kd_run.attr->gap ? busy : kd_run.attr->gap);
	return begin + busy;
}

static void answer(struct transfer *t, uint64_t time)
{
	uint64_t bytes = t->op.opcode == KDSM_OP_PUT ? 0 : t->op.length;

	t->callers->status = kd_virtual_perform(t->flight->region, &t->op);
	t->callers->result = t->op.result;
	t->stage = COMPLETE;
	kd_event_add(&t->event, send(t->op.node, time, bytes) + (latency(&t->op) + 1) / 2);
}

static void arrive(struct transfer *t, uint64_t time)
{
	struct kd_simulated *node = &kd_run.node[t->op.node];

	if (!is_message(&t->op)) {
		answer(t, time);
		return;
	}
	node->handler_free = (time > node->handler_free ? time : node->handler_free) +
			     kd_run.attr->handler;
	t->stage = HANDLED;
	kd_event_add(&t->event, node->handler_free);
}

static void happen(struct kd_event *event)
{
	struct transfer *t = (void *)event;

	switch (t->stage) {
	case ARRIVE:
		arrive(t, event->time);
		break;
	case HANDLED:
		answer(t, event->time);
		break;
	case COMPLETE:
		if (!--t->flight->open)
			kd_virtual_wake(&t->flight->open);
		break;
	}
}

/* When the operation arrives: not before those of the flight to the same node */
static uint64_t arrival(const struct kd_flight *flight, unsigned int i, uint64_t time)
{
	const struct transfer *t = &flight->transfer[i];

	while (i--)
		if (flight->transfer[i].op.node == t->op.node) {
			if (time < flight->transfer[i].event.time)
				time = flight->transfer[i].event.time;
			break;
		}
	return time;
}

/* Whether the module would send the operation at all */
static bool may_leave(const struct kdsm_op *op)
{
	return op->node < kd_run.attr->nodes && op->length <= KDSM_MAX_OP_LENGTH;
}

/* Bytes of memory that the flight reads: those of puts */
static uint64_t put_bytes(const struct kdsm_op *ops, unsigned int count)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		bytes += ops[i].opcode == KDSM_OP_PUT && may_leave(&ops[i]) ? ops[i].length : 0;
	return bytes;
}

/* Begin the operations. Unless copies is NULL, it has room for put_bytes(). */
static int launch(struct kd_flight *flight, struct kdsm_op *ops, unsigned int count,
		  unsigned char *copies)
{
	struct kdsm_region *region = flight->region;
	uint64_t now = kd_virtual_now(), sent;
	struct transfer *t;
	unsigned int i;

	flight->open = 0;
	for (i = 0; i < count; i++) {
		t = &flight->transfer[flight->count++];
		memset(t, 0, sizeof(*t));
		t->event.happen = happen;
		t->flight = flight;
		t->op = ops[i];
		t->callers = &ops[i];
		if (!may_leave(&ops[i])) {
			ops[i].status = -EINVAL;
			t->event.time = arrival(flight, i, 0);
			continue;
		}
		if (copies && ops[i].opcode == KDSM_OP_PUT && ops[i].addr) {
			memcpy(copies, (void *)(uintptr_t)ops[i].addr, ops[i].length);
			t->op.addr = (uintptr_t)copies;
			copies += ops[i].length;
		}
		sent = send(region->node, now, ops[i].opcode == KDSM_OP_GET ? 0 : ops[i].length);
		if (kd_event_add(&t->event, arrival(flight, i, sent + latency(&ops[i]) / 2)))
			return -ENOMEM;
		flight->open++;
	}
	return 0;
}

static enum kdsm_virtual_share share_of(const struct kdsm_op *op)
{
	switch (op->opcode) {
	case KDSM_OP_GET:
		return KDSM_VIRTUAL_GET;
	case KDSM_OP_PUT:
		return KDSM_VIRTUAL_PUT;
	case KDSM_OP_FIND:
		return KDSM_VIRTUAL_FIND;
	case KDSM_OP_STEAL:
		return KDSM_VIRTUAL_STEAL;
	default:
		return KDSM_VIRTUAL_ATOMIC;
	}
}

static int first_error(const struct kdsm_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (ops[i].status)
			return ops[i].status;
	return 0;
}

static struct kd_flight *new_flight(struct kdsm_region *region, uint64_t bytes)
{
	struct kd_flight **first = &kd_run.node[region->node].flights;
	struct kd_flight *flight = malloc(bytes);

	if (!flight)
		return NULL;
	memset(flight, 0, sizeof(*flight));
	flight->region = region;
	flight->ticket = ++kd_run.tickets;
	flight->link = first;
	flight->next = *first;
	if (flight->next)
		flight->next->link = &flight->next;
	*first = flight;
	return flight;
}

static void free_flight(struct kd_flight *flight)
{
	*flight->link = flight->next;
	if (flight->next)
		flight->next->link = flight->link;
	free(flight);
}

void kd_network_cancel(const struct kdsm_region *region)
{
	struct kd_flight *flight = kd_run.node[region->node].flights, *next;
	unsigned int i;

	for (; flight; flight = next) {
		next = flight->next;
		if (flight->region != region)
			continue;
		for (i = 0; i < flight->count; i++)
			if (flight->transfer[i].event.at)
				kd_event_take(&flight->transfer[i].event);
		free_flight(flight);
	}
}

void kd_network_free(struct kd_simulated *node)
{
	while (node->flights)
		free_flight(node->flights);
}

int kd_network_submit(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
		      uint64_t *ticket)
{
	uint64_t transfers = sizeof(struct kd_flight) + count * sizeof(struct transfer);
	struct kd_flight *flight;
	int ret;

	/* Otherwise the adapter would be busy until now for threads that are behind. */
	kd_virtual_catch_up();
	flight = new_flight(region, transfers + (ticket ? put_bytes(ops, count) : 0));
	if (!flight)
		return -ENOMEM;
	kdsm_count(region->kdsm, ops, count);
	kdsm_count_call(region->kdsm);
	flight->share = share_of(ops);
	ret = launch(flight, ops, count, ticket ? (unsigned char *)flight + transfers : NULL);
	if (ret)
		return ret;	/* the run ends */
	if (ticket) {
		*ticket = flight->ticket;
		return 0;
	}
	while (flight->open)
		kd_virtual_await(&flight->open, KDSM_FOREVER, flight->share);
	free_flight(flight);
	return first_error(ops, count);
}

int kd_network_complete(struct kdsm_region *region, uint64_t ticket, uint64_t timeout)
{
	struct kd_flight *flight = kd_run.node[region->node].flights;
	uint64_t began = kd_virtual_now();

	while (flight && flight->ticket != ticket)
		flight = flight->next;
	if (!flight)
		return -ENOENT;
	if (flight->awaited)
		return -EBUSY;
	flight->awaited = true;
	while (flight->open)
		if (!kd_virtual_await(&flight->open, kdsm_left(began, timeout), flight->share)) {
			flight->awaited = false;
			return -ETIMEDOUT;
		}
	free_flight(flight);
	return 0;
}
