// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counters of the operations on other nodes, and of the system calls for them. */
#include "core/core.h"

/*
 * Threads take slots in turn. Threads that share a slot still count exactly, because the
 * additions are atomic; the slots only avoid contention for one cache line.
 */
static struct kdsm_count_slot *count_slot(struct kdsm *kdsm)
{
	static _Thread_local unsigned int slot = ~0U;
	static unsigned int next;

	if (slot == ~0U)
		slot = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % KDSM_COUNT_SLOTS;
	return &kdsm->counts[slot];
}

static void count_add(uint64_t *counter, uint64_t value)
{
	if (value)
		__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/* Count operations that the library hands to the kernel. */
void kdsm_count(struct kdsm *kdsm, const struct kdsm_op *ops, unsigned int count)
{
	struct kdsm_count_slot *slot = count_slot(kdsm);
	struct kdsm_count_slot sum = { 0 };
	unsigned int i;

	for (i = 0; i < count; i++) {
		switch (ops[i].opcode) {
		case KDSM_OP_GET:
			sum.get++;
			break;
		case KDSM_OP_PUT:
			sum.put++;
			break;
		case KDSM_OP_CAS:
			sum.cas++;
			break;
		case KDSM_OP_FAA:
			sum.faa++;
			break;
		case KDSM_OP_FIND:
			sum.find++;
			continue;
		case KDSM_OP_STEAL:
			sum.steal++;
			continue;
		default:
			continue;
		}
		sum.bytes += ops[i].length;
	}
	sum.am = sum.find + sum.steal;
	if (kdsm->domain == KDSM_DOMAIN_SW)
		sum.am += sum.cas + sum.faa;
	count_add(&slot->get, sum.get);
	count_add(&slot->put, sum.put);
	count_add(&slot->cas, sum.cas);
	count_add(&slot->faa, sum.faa);
	count_add(&slot->find, sum.find);
	count_add(&slot->steal, sum.steal);
	count_add(&slot->am, sum.am);
	count_add(&slot->bytes, sum.bytes);
}

void kdsm_count_call(struct kdsm *kdsm)
{
	count_add(&count_slot(kdsm)->calls, 1);
}

void kdsm_count_messages(struct kdsm *kdsm, unsigned int count)
{
	count_add(&count_slot(kdsm)->am, count);
}

int kdsm_counts(const struct kdsm *kdsm, struct kdsm_counts *counts)
{
	const struct kdsm_count_slot *slot;
	struct kdsm_counts sum = { .argsz = sizeof(sum) };
	unsigned int i;

	for (i = 0; i < KDSM_COUNT_SLOTS; i++) {
		slot = &kdsm->counts[i];
		sum.get += __atomic_load_n(&slot->get, __ATOMIC_RELAXED);
		sum.put += __atomic_load_n(&slot->put, __ATOMIC_RELAXED);
		sum.cas += __atomic_load_n(&slot->cas, __ATOMIC_RELAXED);
		sum.faa += __atomic_load_n(&slot->faa, __ATOMIC_RELAXED);
		sum.find += __atomic_load_n(&slot->find, __ATOMIC_RELAXED);
		sum.steal += __atomic_load_n(&slot->steal, __ATOMIC_RELAXED);
		sum.am += __atomic_load_n(&slot->am, __ATOMIC_RELAXED);
		sum.bytes += __atomic_load_n(&slot->bytes, __ATOMIC_RELAXED);
		sum.calls += __atomic_load_n(&slot->calls, __ATOMIC_RELAXED);
	}
	return KD_ARGUMENT_OUT(kdsm_counts, &sum, counts);
}
