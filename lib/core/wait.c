// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Waiting for words of the own part, and waking the waiters of another node. The backends
 * put threads to sleep.
 */
#include <errno.h>
#include "core/core.h"

/* Bounds of the time that kdsm_spin() polls before the caller sleeps, in ns */
#define SPIN_MIN	1000
#define SPIN_MAX	50000
/* Polls of the condition between two readings of the clock, as each may be a system call */
#define SPIN_LOOKS	32

static uint64_t load_word(const struct kdsm_region *region, uint64_t offset)
{
	return __atomic_load_n(kdsm_word(region, offset), __ATOMIC_SEQ_CST);
}

/*
 * The limit doubles when polling succeeded and halves when it did not. Long waits therefore
 * soon waste little time, and short waits make no system call. Threads update the limit
 * concurrently without synchronization: the limit is an estimate and only has to stay
 * within its bounds.
 */
bool kdsm_spin(struct kdsm_spin *spin, uint64_t timeout, bool (*done)(const void *),
	       const void *what)
{
	uint32_t most = __atomic_load_n(&spin->most, __ATOMIC_RELAXED);
	uint64_t begin;
	unsigned int i;
	bool paid = false;

	if (most < SPIN_MIN)
		most = SPIN_MIN;
	begin = kdsm_now();
	do {
		for (i = 0; i < SPIN_LOOKS && !paid; i++) {
			kd_relax();
			paid = done(what);
		}
	} while (!paid && kdsm_now() - begin < (most < timeout ? most : timeout));

	most = paid ? most * 2 : most / 2;
	if (most > SPIN_MAX)
		most = SPIN_MAX;
	__atomic_store_n(&spin->most, most, __ATOMIC_RELAXED);
	return paid;
}

/* A word, and the value from which it must differ */
struct awaited {
	const uint64_t *word;
	uint64_t value;
};

static bool differs(const void *what)
{
	const struct awaited *awaited = what;

	return __atomic_load_n(awaited->word, __ATOMIC_SEQ_CST) != awaited->value;
}

int kdsm_wait(struct kdsm_region *region, uint64_t offset, uint64_t value,
	      uint64_t timeout)
{
	struct awaited awaited;
	uint64_t begin = 0;
	int ret = kd_place_check(region, offset, 8, 8);

	if (ret)
		return ret;
	if (load_word(region, offset) != value)
		return 0;
	if (!timeout)
		return kd_no_reason(-ETIMEDOUT);
	if (timeout != KDSM_FOREVER)
		begin = kdsm_now();
	awaited = (struct awaited){ kdsm_word(region, offset), value };
	if (region->kdsm->may_spin && kdsm_spin(&region->spin, timeout, differs, &awaited))
		return 0;
	return region->backend->wait(region, offset, value, kdsm_left(begin, timeout));
}

/*
 * Only the exact value ends the wait. Words that are put with KDSM_OP_NOTIFY change as a whole.
 * Other values are those of earlier puts, after which the wait goes on.
 */
int kdsm_await(struct kdsm_region *region, uint64_t offset, uint64_t value,
	       uint64_t timeout)
{
	uint64_t begin = kdsm_now();
	uint64_t seen;
	int ret;

	while ((seen = load_word(region, offset)) != value) {
		ret = kdsm_wait(region, offset, seen, kdsm_left(begin, timeout));
		if (ret && ret != -EINTR)
			return ret;
	}
	return 0;
}

static struct kdsm_op put_word(unsigned int node, uint64_t offset, const uint64_t *value)
{
	struct kdsm_op op = kdsm_op_put(node, offset, value, 8);

	op.flags = KDSM_OP_NOTIFY;
	return op;
}

int kd_put_word(struct kdsm_region *region, unsigned int node, uint64_t offset,
		uint64_t value)
{
	struct kdsm_op op = put_word(node, offset, &value);

	int ret = kd_offset_check(offset, 8);

	return ret ? ret : kd_vector(region, &op, 1);
}

int kdsm_put_notify(struct kdsm_region *region, unsigned int node,
		    uint64_t offset, uint64_t value)
{
	struct kdsm_op op = put_word(node, offset, &value);
	int ret = kd_offset_check(offset, 8);

	/* Earlier puts may have used other connections than this one will. */
	if (!ret && node != region->node)
		ret = kd_settle_node(region->kdsm, node);
	return ret ? ret : kdsm_vector(region, &op, 1);
}
