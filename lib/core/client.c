// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opening a cluster, its properties, and the counters of operations on other nodes. The
 * backends are in device.c and local.c.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

int kdsm_open(struct kdsm **out, unsigned int flags)
{
	struct kdsm *kdsm;
	cpu_set_t cpus;
	int ret;

	if (!out)
		return -EINVAL;
	*out = NULL;
	if (flags & ~(KDSM_OPEN_ALLOW_LOCAL | KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE))
		return -EINVAL;
	kdsm = aligned_alloc(_Alignof(struct kdsm), sizeof(*kdsm));
	if (!kdsm)
		return -ENOMEM;
	memset(kdsm, 0, sizeof(*kdsm));
	kdsm->fd = -1;
	kdsm->alone = flags & KDSM_OPEN_ALONE;
	/*
	 * sched_getaffinity() fails if the CPUs do not fit into the set; the process has
	 * more than one then.
	 */
	kdsm->may_spin = !kd_scheduler &&
			 (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) > 1);
	pthread_mutex_init(&kdsm->lock, NULL);
	pthread_mutex_init(&kdsm->settle_lock, NULL);

	if (flags & KDSM_OPEN_LOCAL) {
		ret = kdsm_local_open(kdsm);
	} else {
		ret = kdsm_device_open(kdsm);
		/* A device node without a driver behind it counts as no device. */
		if ((flags & KDSM_OPEN_ALLOW_LOCAL) &&
		    (ret == -ENOENT || ret == -ENXIO || ret == -ENODEV || ret == -ENETDOWN))
			ret = kdsm_local_open(kdsm);
	}
	if (ret) {
		pthread_mutex_destroy(&kdsm->settle_lock);
		pthread_mutex_destroy(&kdsm->lock);
		free(kdsm);
		return ret;
	}
	*out = kdsm;
	return 0;
}

void kdsm_close(struct kdsm *kdsm)
{
	if (!kdsm)
		return;
	kdsm->backend->close(kdsm);
	pthread_mutex_destroy(&kdsm->settle_lock);
	pthread_mutex_destroy(&kdsm->lock);
	free(kdsm);
}

unsigned int kdsm_node(const struct kdsm *kdsm)
{
	return kdsm->node;
}

unsigned int kdsm_nodes(const struct kdsm *kdsm)
{
	return kdsm->nodes;
}

int kdsm_location(const struct kdsm *kdsm, unsigned int node,
		  char location[KDSM_LOCATION_SIZE])
{
	if (node >= kdsm->nodes)
		return -EINVAL;
	return kdsm->backend->location(kdsm, node, location);
}

enum kdsm_domain kdsm_domain(const struct kdsm *kdsm)
{
	return kdsm->domain;
}

int kdsm_is_local(const struct kdsm *kdsm)
{
	return kdsm->backend == &kdsm_local_backend;
}

const char *kdsm_cluster_name(const struct kdsm *kdsm)
{
	return kdsm->cluster;
}

/*
 * Accept the names that the module accepts: printable ASCII without spaces, NUL-terminated.
 */
int kdsm_name_check(const char *name)
{
	size_t i;

	if (!name || !name[0])
		return -EINVAL;
	for (i = 0; name[i]; i++)
		if (i == KDSM_NAME_SIZE - 1 || name[i] < 0x21 || name[i] > 0x7e)
			return -EINVAL;
	return 0;
}

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

void kdsm_counts(const struct kdsm *kdsm, struct kdsm_counts *counts)
{
	const struct kdsm_count_slot *slot;
	unsigned int i;

	memset(counts, 0, sizeof(*counts));
	for (i = 0; i < KDSM_COUNT_SLOTS; i++) {
		slot = &kdsm->counts[i];
		counts->get += __atomic_load_n(&slot->get, __ATOMIC_RELAXED);
		counts->put += __atomic_load_n(&slot->put, __ATOMIC_RELAXED);
		counts->cas += __atomic_load_n(&slot->cas, __ATOMIC_RELAXED);
		counts->faa += __atomic_load_n(&slot->faa, __ATOMIC_RELAXED);
		counts->find += __atomic_load_n(&slot->find, __ATOMIC_RELAXED);
		counts->steal += __atomic_load_n(&slot->steal, __ATOMIC_RELAXED);
		counts->am += __atomic_load_n(&slot->am, __ATOMIC_RELAXED);
		counts->bytes += __atomic_load_n(&slot->bytes, __ATOMIC_RELAXED);
		counts->calls += __atomic_load_n(&slot->calls, __ATOMIC_RELAXED);
	}
}
