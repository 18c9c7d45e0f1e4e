// SPDX-License-Identifier: GPL-2.0
/*
 * Demands: what a program asks for when it needs a block that is not on this node, or an atomic
 * operation on a word of such a block. A worker waits for the other nodes, which may take a
 * minute, and the program waits for the worker. So the program can be killed, and a fault can drop
 * mmap_lock. The request of a program that was killed goes on, because a state of the block that
 * another node knows of must be continued.
 *
 * Each region has a workqueue, so that a silent node fills no queue but those of its regions.
 * Node 0 may destroy a region after the last close of each node, so a close waits for the
 * demands (open.c). A demand keeps neither the region nor the cluster: before a region is freed,
 * the end of its workqueue waits for the workers, and the program uses only the demand.
 */
#include <linux/completion.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"

struct kdsm_demand {
	struct work_struct work;
	refcount_t references;		/* of the program and the worker */
	struct kdsm_region *region;	/* for the worker only */
	struct mem_cgroup *memcg;	/* of the program, charged for what the worker allocates */
	struct completion done;
	u64 since;			/* when the program began to wait, in ns of ktime */
	u64 index;			/* of the block */
	bool write;
	struct kdsm_atomic atomic;	/* size 0: get the block instead */
	bool abandoned;			/* the program was killed */
	int err;
};

void kdsm_demand_put(struct kdsm_demand *demand)
{
	if (!refcount_dec_and_test(&demand->references))
		return;
	mem_cgroup_put(demand->memcg);
	kfree(demand);
}

static void kdsm_demand_work(struct work_struct *work)
{
	struct kdsm_demand *demand = container_of(work, struct kdsm_demand, work);
	struct kdsm_region *region = demand->region;
	struct mem_cgroup *memcg;

	/* If the program was killed before the worker began, no other node knows of the demand */
	if (!READ_ONCE(demand->abandoned)) {
		memcg = set_active_memcg(demand->memcg);
		if (demand->atomic.size)
			demand->err = kdsm_coherence_atomic(region->coherence, &demand->atomic,
							    true);
		else
			demand->err = kdsm_coherence_get(region->coherence, demand->index,
							 demand->write);
		set_active_memcg(memcg);
	}
	kdsm_fabric_duration(region->cluster->fabric,
			     demand->write || demand->atomic.size ? KDSM_LATENCY_WRITE :
								    KDSM_LATENCY_READ,
			     ktime_get_ns() - demand->since);
	complete(&demand->done);
	if (atomic_dec_and_test(&region->demands))
		wake_up_all(&region->cluster->closed);
	kdsm_demand_put(demand);
}

static struct kdsm_demand *kdsm_demand_create(struct kdsm_region *region)
{
	struct kdsm_demand *demand = kzalloc(sizeof(*demand), GFP_KERNEL_ACCOUNT);

	if (!demand)
		return NULL;
	INIT_WORK(&demand->work, kdsm_demand_work);
	refcount_set(&demand->references, 2);
	atomic_inc(&region->demands);
	demand->region = region;
	demand->memcg = get_mem_cgroup_from_mm(current->mm);
	init_completion(&demand->done);
	demand->since = ktime_get_ns();
	return demand;
}

struct kdsm_demand *kdsm_demand_start(struct kdsm_region *region, u64 index, bool write)
{
	struct kdsm_demand *demand = kdsm_demand_create(region);

	if (!demand)
		return NULL;
	demand->index = index;
	demand->write = write;
	queue_work(region->getters, &demand->work);
	return demand;
}

static int kdsm_demand_result(struct kdsm_demand *demand, struct kdsm_atomic *atomic)
{
	int err = wait_for_completion_killable(&demand->done);

	if (err)
		WRITE_ONCE(demand->abandoned, true);
	else
		err = demand->err;
	if (!err && atomic)
		*atomic = demand->atomic;
	kdsm_demand_put(demand);
	return err;
}

int kdsm_demand_wait(struct kdsm_demand *demand)
{
	return kdsm_demand_result(demand, NULL);
}

int kdsm_region_atomic(struct kdsm_region *region, struct kdsm_atomic *atomic)
{
	struct kdsm_demand *demand;
	int err = 0;

	if (atomic->flags & KDSM_ATOMIC_RELEASE)
		err = kdsm_coherence_release(region->coherence, NULL);
	if (!err)
		err = kdsm_coherence_atomic(region->coherence, atomic, false);
	if (err != -EAGAIN)
		return err;
	demand = kdsm_demand_create(region);
	if (!demand)
		return -ENOMEM;
	demand->atomic = *atomic;
	queue_work(region->getters, &demand->work);
	return kdsm_demand_result(demand, atomic);
}

int kdsm_demands_init(struct kdsm_region *region)
{
	/* A demand may wait for a node that does not answer, so allow as many as possible */
	region->getters = alloc_workqueue("kdsm_get", WQ_UNBOUND | WQ_HIGHPRI, WQ_MAX_ACTIVE);
	return region->getters ? 0 : -ENOMEM;
}

void kdsm_demands_exit(struct kdsm_region *region)
{
	destroy_workqueue(region->getters);
}
