// SPDX-License-Identifier: GPL-2.0
/* Messages between nodes about a lock: each goes to the queue or the counter it is for. */
#include <linux/err.h>

#include "cluster.h"
#include "lock/lock.h"
#include "region/region.h"

/* ---- queues ---- */

/*
 * What nodes say to each other about a lock's queue is served at once, in softirq: they
 * wait for it. No reference is taken, as the last one to go frees what may sleep. A
 * region that is found in the table is there at least until the RCU read lock is given
 * back, and so are its locks: see kdsm_locks_destroy().
 */
static int kdsm_lock_serve(void *context, struct kdsm_request *request,
			   int (*serve)(struct kdsm_queue *queue, struct kdsm_request *request))
{
	const struct kdsm_wire_lock *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_queue *queue = NULL;
	struct kdsm_lock *lock = NULL;
	struct kdsm_region *region;
	int err = -ENOENT;

	if (request->length < sizeof(*wire))
		return -EINVAL;
	rcu_read_lock();
	region = xa_load(&cluster->regions, le32_to_cpu(wire->id));
	if (region)
		lock = kdsm_lock_find(region->locks, le16_to_cpu(wire->number));
	if (lock)
		queue = kdsm_tree_queue(&lock->tree, le16_to_cpu(wire->level));
	if (queue)
		err = serve(queue, request);
	rcu_read_unlock();
	return err;
}

int kdsm_lock_serve_tell(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve(context, request, kdsm_queue_serve_tell);
}

int kdsm_lock_serve_hand(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve(context, request, kdsm_queue_serve_hand);
}

int kdsm_lock_serve_look(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve(context, request, kdsm_queue_serve_look);
}

int kdsm_lock_serve_freeze(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve(context, request, kdsm_queue_serve_freeze);
}

int kdsm_lock_serve_resume(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve(context, request, kdsm_queue_serve_resume);
}

/* The home has to know the locks that nodes queue for there, to recover them. */
int kdsm_lock_serve_meet(void *context, struct kdsm_request *request)
{
	int err = kdsm_lock_serve(context, request, kdsm_queue_serve_meet);
	const struct kdsm_wire_lock *wire = request->data;
	struct kdsm_lock_open args = { 0 };
	struct kdsm_region *region;
	struct kdsm_lock *lock;

	if (err != -ENOENT)
		return err;
	if (!request->can_sleep)
		return -EAGAIN;
	args.number = le16_to_cpu(wire->number);
	region = kdsm_region_get(context, le32_to_cpu(wire->id));
	if (!region)
		return -ENOENT;
	err = -ENOENT;
	/* That of the queue of all nodes; see kdsm_tree_create(). */
	if (args.number < KDSM_MAX_LOCKS &&
	    kdsm_lock_base(region, args.number) % region->cluster->nodes ==
	    region->cluster->node) {
		lock = kdsm_lock_open(region->locks, &args);
		err = PTR_ERR_OR_ZERO(lock);
	}
	kdsm_region_put(region);
	return err ?: kdsm_lock_serve(context, request, kdsm_queue_serve_meet);
}

/* ---- readers ---- */

int kdsm_lock_serve_rw_join(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_open *wire = request->data;
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	int err;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(context, le32_to_cpu(wire->id));
	if (!region)
		return -ENOENT;
	lock = kdsm_lock_open_as(region->locks, wire);
	if (IS_ERR(lock))
		err = PTR_ERR(lock);
	else
		err = lock->readers ? kdsm_rw_serve_join(&lock->readers->rw, request) : -EINVAL;
	kdsm_region_put(region);
	return err;
}

/* What the home of a counter does under its mutex. */
static int kdsm_lock_serve_home(void *context, struct kdsm_request *request,
				int (*serve)(struct kdsm_rw *rw, struct kdsm_request *request))
{
	const struct kdsm_wire_rw *wire = request->data;
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	int err = -ENOENT;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(context, le32_to_cpu(wire->id));
	if (!region)
		return -ENOENT;
	lock = kdsm_lock_find(region->locks, le16_to_cpu(wire->number));
	if (lock && lock->readers)
		err = serve(&lock->readers->rw, request);
	kdsm_region_put(region);
	return err;
}

/* At once, as kdsm_lock_serve(). */
static int kdsm_lock_serve_rw(void *context, struct kdsm_request *request,
			      int (*serve)(struct kdsm_rw *rw, struct kdsm_request *request))
{
	const struct kdsm_wire_rw *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_lock *lock = NULL;
	struct kdsm_region *region;
	int err = -ENOENT;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	rcu_read_lock();
	region = xa_load(&cluster->regions, le32_to_cpu(wire->id));
	if (region)
		lock = kdsm_lock_find(region->locks, le16_to_cpu(wire->number));
	if (lock && lock->readers)
		err = serve(&lock->readers->rw, request);
	rcu_read_unlock();
	return err;
}

int kdsm_lock_serve_rw_ask(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve_home(context, request, kdsm_rw_serve_ask);
}

int kdsm_lock_serve_rw_open(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve_home(context, request, kdsm_rw_serve_open);
}

int kdsm_lock_serve_rw_tell(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve_rw(context, request, kdsm_rw_serve_tell);
}

int kdsm_lock_serve_rw_go(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve_rw(context, request, kdsm_rw_serve_go);
}

int kdsm_lock_serve_rw_count(void *context, struct kdsm_request *request)
{
	return kdsm_lock_serve_rw(context, request, kdsm_rw_serve_count);
}
