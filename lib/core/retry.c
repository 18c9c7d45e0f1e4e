// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Operations that survive the loss of a connection.
 *
 * When a connection breaks, the module fails the operations that were in flight on it, and
 * neither side knows which of them took effect. The module reconnects at once. If
 * reconnecting fails, too, operations on the peer fail without an attempt until the
 * back-off is over. A network or a host that stalls for some seconds suffices for both
 * failures. Barriers and gangs wait longer than that for a slow node anyway, so they retry.
 *
 * Callers retry only operations that may take effect twice: gets, and puts to bytes that no
 * other writer puts to and that this writer puts to again only after the function has
 * returned. An atomic must not take effect twice.
 */
#include <errno.h>
#include "core/core.h"

/*
 * Retries on a node that has failed operations for this long end, in ns. The module waits as
 * long for the reply to a message (KDSM_REPLY_TIMEOUT). If the network of a node fails for
 * less than this time, a barrier takes longer but does not fail.
 */
#define PATIENCE	UINT64_C(30000000000)
/* Bounds of the pause before the next try, in ns */
#define PAUSE_MIN	UINT64_C(10000000)
#define PAUSE_MAX	UINT64_C(500000000)

uint64_t kdsm_patience = PATIENCE;

int kdsm_silence(uint64_t *since, uint64_t begin, int status)
{
	if (!status)
		*since = 0;
	if (status != -EIO && status != -EHOSTDOWN && status != -ETIMEDOUT)
		return status;
	if (!*since)
		*since = begin;
	return kdsm_now() - *since < kdsm_patience ? 1 : -EHOSTDOWN;
}

static bool failed_at(const struct kdsm_op *ops, unsigned int count, unsigned int node)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (ops[i].node == node && ops[i].status)
			return true;
	return false;
}

/*
 * Mark all operations on nodes where one failed: a put with KDSM_OP_NOTIFY orders only puts of
 * its own vector. Then move the marked ones to the front, in their order. Returns their number.
 */
static unsigned int keep_failed(struct kdsm_op *ops, unsigned int count)
{
	unsigned int i, n = 0;

	for (i = 0; i < count; i++)
		if (!ops[i].status && failed_at(ops, count, ops[i].node))
			ops[i].status = -EIO;
	for (i = 0; i < count; i++)
		if (ops[i].status)
			ops[n++] = ops[i];
	return n;
}

/* Judge a failed attempt. Returns 0 if the caller repeats the attempt, after a pause. */
static int pause_for(uint64_t begin, uint64_t timeout, uint64_t *since, uint64_t *pause, int ret)
{
	ret = kdsm_silence(since, begin, ret);
	if (ret < 0)
		return ret;
	if (!kdsm_left(begin, timeout))
		return -ETIMEDOUT;
	kd_sleep(*pause);
	*pause = *pause < PAUSE_MAX / 2 ? 2 * *pause : PAUSE_MAX;
	return 0;
}

int kdsm_vector_retry(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
		      uint64_t timeout)
{
	uint64_t begin = kdsm_now(), pause = PAUSE_MIN, since = 0;
	int ret;

	while ((ret = kd_vector(region, ops, count))) {
		count = keep_failed(ops, count);
		ret = pause_for(begin, timeout, &since, &pause, ret);
		if (ret)
			return ret;
	}
	return 0;
}

int kd_settle_retry(struct kdsm *kdsm, uint64_t timeout)
{
	uint64_t begin = kdsm_now(), pause = PAUSE_MIN, since = 0;
	int ret;

	while ((ret = kdsm_settle(kdsm))) {
		ret = pause_for(begin, timeout, &since, &pause, ret);
		if (ret)
			return ret;
	}
	return 0;
}
