// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Vectors of operations: the library hands those for other nodes to the backend together,
 * and while they are in flight the CPU performs those on the own part.
 *
 * The module takes an array that contains operations for other nodes only. If a vector also
 * contains own operations, the library copies the remote ones out and copies their results
 * back. Copies keep their order, and own operations are performed in theirs, so a notifying
 * put still takes effect after the earlier puts to its node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* status of an operation that has no result yet */
#define PENDING 1

/* Split vectors with at most this many remote operations without allocating memory. */
#define SMALL 16

static unsigned int count_own(const struct kdsm_region *region,
			      const struct kdsm_op *ops, unsigned int count)
{
	unsigned int i, own = 0;

	for (i = 0; i < count; i++)
		own += kdsm_op_is_own(region, &ops[i]);
	return own;
}

static void do_own(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (kdsm_op_is_own(region, &ops[i]))
			ops[i].status = kdsm_own_op(region, &ops[i]);
}

static unsigned int copy_out(const struct kdsm_region *region, struct kdsm_op *remote,
			     const struct kdsm_op *ops, unsigned int count)
{
	unsigned int i, n = 0;

	for (i = 0; i < count; i++)
		if (!kdsm_op_is_own(region, &ops[i]))
			remote[n++] = ops[i];
	return n;
}

static void copy_back(const struct kdsm_region *region, const struct kdsm_op *remote,
		      struct kdsm_op *ops, unsigned int count)
{
	unsigned int i, n = 0;

	for (i = 0; i < count; i++)
		if (!kdsm_op_is_own(region, &ops[i])) {
			ops[i].result = remote[n].result;
			ops[i].status = remote[n++].status;
		}
}

static void set_pending(struct kdsm_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		ops[i].status = PENDING;
}

/*
 * Returns the outcome of a batch. If a call failed as a whole, statuses are still PENDING:
 * replace them by the error of the call.
 */
static int settle(struct kdsm_op *ops, unsigned int count, int error)
{
	unsigned int i;
	int first = 0;

	for (i = 0; i < count; i++) {
		if (ops[i].status == PENDING)
			ops[i].status = error ? error : -EIO;
		if (!first)
			first = ops[i].status;
	}
	return first ? first : error;
}

/* Perform own and remote operations; remote has room for copies of the remote ones. */
static int mixed(struct kdsm_region *region, struct kdsm_op *ops,
		 unsigned int count, struct kdsm_op *remote)
{
	const struct kdsm_backend *backend = region->backend;
	unsigned int n = copy_out(region, remote, ops, count);
	uint64_t ticket;
	int ret;

	ret = backend->submit(region, remote, n, &ticket);
	do_own(region, ops, count);
	if (!ret && ticket)
		ret = backend->complete(region, ticket, KDSM_FOREVER);
	else if (ret == -EAGAIN || ret == -E2BIG)
		/*
		 * These exceed the module's limits for a ticket: wait within the call
		 * instead.
		 */
		ret = backend->submit(region, remote, n, NULL);
	copy_back(region, remote, ops, count);
	return settle(ops, count, ret);
}

static int batch(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count)
{
	unsigned int own = count_own(region, ops, count);
	struct kdsm_op small[SMALL], *remote;
	int ret;

	set_pending(ops, count);
	if (!own)
		return settle(ops, count, region->backend->submit(region, ops, count, NULL));
	if (own == count) {
		do_own(region, ops, count);
		return settle(ops, count, 0);
	}
	if (count - own <= SMALL)
		return mixed(region, ops, count, small);
	remote = malloc((count - own) * sizeof(*remote));
	if (!remote)
		return settle(ops, count, -ENOMEM);
	ret = mixed(region, ops, count, remote);
	free(remote);
	return ret;
}

/* The status of a put of the batch to this node that failed, or 0 */
static int failed_put(const struct kdsm_op *ops, unsigned int count, unsigned int node)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (ops[i].opcode == KDSM_OP_PUT && ops[i].node == node && ops[i].status)
			return ops[i].status;
	return 0;
}

/*
 * The status with which the operation fails because of the earlier batches, or 0. A put with
 * KDSM_OP_NOTIFY comes after the earlier puts to its node, and not at all after one that
 * failed. Inside a batch the module sees to it.
 */
static int held_back(struct kdsm_region *region, const struct kdsm_op *ops, unsigned int done,
		     const struct kdsm_op *op, int failed)
{
	if (op->opcode != KDSM_OP_PUT || !(op->flags & KDSM_OP_NOTIFY) ||
	    op->node == region->node)
		return 0;
	if (failed)
		failed = failed_put(ops, done, op->node);
	return failed ? failed : kd_settle_node(region->kdsm, op->node);
}

int kd_vector(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count)
{
	unsigned int done, n;
	int first = 0;
	int ret = 0;

	if (region->coherent)
		return kd_not_partitioned(region);
	/* Each batch completes before the next one starts, which preserves the order. */
	for (done = 0; done < count; done += n) {
		for (n = 0; n < KDSM_MAX_OPS && done + n < count; n++) {
			ret = done ? held_back(region, ops, done, &ops[done + n], first) : 0;
			if (ret)
				break;
		}
		if (n) {
			ret = batch(region, ops + done, n);
			if (done + n < count)
				kd_unsettled(region, ops + done, n);
		} else {
			ops[done].status = ret;
			n = 1;
		}
		if (!first)
			first = ret;
	}
	return first;
}

/* Give the reason of the first status, unless the CPU performed the operation: then it has. */
static int explain(const struct kdsm_region *region, const struct kdsm_op *ops,
		   unsigned int count, int error)
{
	unsigned int i;

	for (i = 0; error && i < count; i++)
		if (ops[i].status == error)
			return kdsm_op_is_own(region, &ops[i]) ?
			       error : kd_op_failed(region, &ops[i], error);
	return error;
}

int kdsm_vector(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count)
{
	int ret = kd_vector(region, ops, count);

	if (region->coherent)
		return ret;
	kd_unsettled(region, ops, count);
	return explain(region, ops, count, ret);
}

/* Make a ticket without operations. kdsm_complete() on the ticket returns status. */
static void ticket_done(struct kdsm_ticket *ticket, int status)
{
	memset(ticket, 0, sizeof(*ticket));
	ticket->status = status;
}

int kdsm_submit(struct kdsm_region *region, struct kdsm_op *ops,
		unsigned int count, struct kdsm_ticket *ticket)
{
	struct kdsm_op *remote = ops;
	unsigned int own;
	int ret;

	ticket_done(ticket, count ? -ENOENT : 0);
	if (count > KDSM_MAX_OPS)
		return kd_because(-EINVAL, "%u operations are more than %d", count, KDSM_MAX_OPS);
	if (region->coherent)
		return kd_not_partitioned(region);
	own = count_own(region, ops, count);
	set_pending(ops, count);
	if (own < count) {
		if (own) {
			remote = malloc((count - own) * sizeof(*remote));
			if (!remote)
				return settle(ops, count, -ENOMEM);
			copy_out(region, remote, ops, count);
			ticket->remote = remote;
		}
		ret = region->backend->submit(region, remote, count - own, &ticket->kernel);
		if (ret) {
			/*
			 * The module has started no operation, and the own ones have not
			 * been performed either.
			 */
			free(ticket->remote);
			ticket_done(ticket, -ENOENT);
			settle(ops, count, ret);
			return ret;
		}
	}
	if (own)
		do_own(region, ops, count);
	ticket->ops = ops;
	ticket->count = count;
	return 0;
}

int kdsm_complete(struct kdsm_region *region, struct kdsm_ticket *ticket,
		  uint64_t timeout)
{
	int ret = 0;

	if (!ticket->ops)
		return ticket->status;
	if (ticket->kernel) {
		ret = region->backend->complete(region, ticket->kernel, timeout);
		if (ret == -ETIMEDOUT || ret == -EBUSY)
			return ret;
	}
	if (ticket->remote)
		copy_back(region, ticket->remote, ticket->ops, ticket->count);
	ret = settle(ticket->ops, ticket->count, ret);
	kd_unsettled(region, ticket->ops, ticket->count);
	free(ticket->remote);
	ticket_done(ticket, -ENOENT);
	return ret;
}
