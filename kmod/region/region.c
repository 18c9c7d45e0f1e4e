// SPDX-License-Identifier: GPL-2.0
/*
 * Regions on this node: the table of existing regions, and the messages about them. Node 0's
 * directory (directory.c) decides which regions exist. It tells every node to add a region
 * before any node can open it, and to remove the region after the last close. open.c has the
 * opens and closes of this node's programs.
 */
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "internal.h"
#include "trace.h"

/*
 * Upper bound of the time that a new region waits for the memory of removed ones, in jiffies: less
 * than node 0 waits for a reply
 */
#define KDSM_FREE_PATIENCE	(25 * HZ)

static void kdsm_region_workqueues_destroy(struct kdsm_cluster *cluster)
{
	if (cluster->openers)
		destroy_workqueue(cluster->openers);
	if (cluster->workqueue)
		destroy_workqueue(cluster->workqueue);
}

int kdsm_regions_init(struct kdsm_cluster *cluster)
{
	xa_init(&cluster->regions);
	mutex_init(&cluster->parts_lock);
	init_waitqueue_head(&cluster->closed);
	kdsm_opens_init(cluster);
	kdsm_quota_init(cluster);
	cluster->workqueue = alloc_workqueue("kdsm_regions", WQ_UNBOUND, 0);
	cluster->openers = alloc_workqueue("kdsm_open", WQ_UNBOUND, 0);
	if (cluster->workqueue && cluster->openers)
		return 0;
	kdsm_region_workqueues_destroy(cluster);
	return -ENOMEM;
}

/* ---- coherent regions ---- */

/* Twins and stamps are separate memories, with the region's id and one of these bits */
#define KDSM_TWINS_ID	BIT(16)
#define KDSM_STAMPS_ID	BIT(17)

/* Create the memories that only policy release has */
static int kdsm_region_make_release(struct kdsm_region *region,
				    struct kdsm_coherence *coherence)
{
	struct kdsm_fabric *fabric = region->cluster->fabric;

	coherence->twins = kdsm_memory_create(fabric, region->id | KDSM_TWINS_ID,
					      region->part_size, KDSM_MEMORY_READ_ONLY,
					      &region->account);
	if (IS_ERR(coherence->twins))
		return PTR_ERR(coherence->twins);
	coherence->stamps = kdsm_memory_create(fabric, region->id | KDSM_STAMPS_ID,
					       kdsm_stamps_size(coherence->blocks),
					       KDSM_MEMORY_READ_ONLY, &region->account);
	if (IS_ERR(coherence->stamps)) {
		kdsm_memory_destroy(coherence->twins);
		return PTR_ERR(coherence->stamps);
	}
	return 0;
}

static void kdsm_region_unmake_release(struct kdsm_coherence *coherence)
{
	kdsm_memory_destroy(coherence->stamps);
	kdsm_memory_destroy(coherence->twins);
}

static int kdsm_region_make_coherent(struct kdsm_region *region)
{
	struct kdsm_fabric *fabric = region->cluster->fabric;
	struct kdsm_coherence *coherence;
	int err = 0;

	coherence = kzalloc(sizeof(*coherence), GFP_KERNEL);
	if (!coherence)
		return -ENOMEM;
	kdsm_coherence_init(coherence, fabric, region->nodes, region->id, region->policy,
			    region->part_size, region->segments, region->segment_count,
			    region->flags & KDSM_REGION_CONTIGUOUS);
	coherence->region = region;
	coherence->mapping = &kdsm_region_mapping_ops;
	coherence->share = kdsm_quota_share;
	coherence->frames = region->memory;
	if (region->policy == KDSM_POLICY_RELEASE)
		err = kdsm_region_make_release(region, coherence);
	if (err)
		goto exit;
	region->inode = kdsm_vm_inode_create();
	if (IS_ERR(region->inode)) {
		err = PTR_ERR(region->inode);
		goto unmake;
	}
	err = kdsm_demands_init(region);
	if (err)
		goto destroy;
	err = kdsm_shrinker_start(coherence);
	if (err)
		goto demands;
	region->coherence = coherence;
	return 0;

demands:
	kdsm_demands_exit(region);
destroy:
	kdsm_vm_inode_destroy(region->inode);
unmake:
	if (region->policy == KDSM_POLICY_RELEASE)
		kdsm_region_unmake_release(coherence);
exit:
	kdsm_coherence_exit(coherence);
	kfree(coherence);
	return err;
}

static void kdsm_region_incoherent(struct kdsm_region *region)
{
	struct kdsm_coherence *coherence = region->coherence;

	kdsm_shrinker_stop(coherence);
	kdsm_demands_exit(region);
	/* Before the inode goes: a hand-over that waits for the end of a lease unmaps its block */
	kdsm_coherence_exit(coherence);
	kdsm_vm_inode_destroy(region->inode);
	if (region->policy == KDSM_POLICY_RELEASE)
		kdsm_region_unmake_release(coherence);
	kfree(coherence);
}

/* ---- the table ---- */

static void kdsm_region_free_work(struct work_struct *work)
{
	struct kdsm_region *region = container_of(work, struct kdsm_region, free_work);
	struct kdsm_cluster *cluster = region->cluster;

	cluster->regions_up->destroy_locks(region);
	if (region->coherence)
		kdsm_region_incoherent(region);
	kdsm_memory_destroy(region->memory);
	mutex_lock(&cluster->parts_lock);
	kdsm_quota_leave(region);
	mutex_unlock(&cluster->parts_lock);
	/* A concurrent notice may still read the region */
	kfree_rcu(region, rcu);
	atomic_dec(&cluster->freeing);
	wake_up_all(&cluster->closed);
}

static void kdsm_region_release(struct kref *kref)
{
	struct kdsm_region *region = container_of(kref, struct kdsm_region, kref);

	atomic_inc(&region->cluster->freeing);
	queue_work(region->cluster->workqueue, &region->free_work);
}

void kdsm_region_put(struct kdsm_region *region)
{
	kref_put(&region->kref, kdsm_region_release);
}

void kdsm_regions_stop(struct kdsm_cluster *cluster)
{
	cancel_delayed_work_sync(&cluster->close_work);
}

void kdsm_regions_exit(struct kdsm_cluster *cluster)
{
	struct kdsm_region *region;
	unsigned long id;

	xa_for_each(&cluster->regions, id, region) {
		xa_erase(&cluster->regions, id);
		kdsm_region_put(region);
	}
	xa_destroy(&cluster->regions);
	/* Waits for the regions that are being freed */
	kdsm_region_workqueues_destroy(cluster);
	kdsm_quota_exit(cluster);
}

struct kdsm_region *kdsm_region_get(struct kdsm_cluster *cluster, u32 id, unsigned int node)
{
	struct kdsm_region *region;

	xa_lock(&cluster->regions);
	region = xa_load(&cluster->regions, id);
	if (region && node >= region->nodes)
		region = NULL;
	if (region)
		kref_get(&region->kref);
	xa_unlock(&cluster->regions);
	return region;
}

struct kdsm_region *kdsm_region_next(struct kdsm_cluster *cluster, unsigned long *id)
{
	struct kdsm_region *region;

	xa_lock(&cluster->regions);
	region = xa_find(&cluster->regions, id, ULONG_MAX, XA_PRESENT);
	if (region)
		kref_get(&region->kref);
	xa_unlock(&cluster->regions);
	return region;
}

void kdsm_region_forget(struct kdsm_region *region)
{
	if (xa_cmpxchg(&region->cluster->regions, region->id, region, NULL, GFP_KERNEL) !=
	    region)
		return;
	trace_kdsm_event(KDSM_EVENT_REGION_REMOVED, 0, region->id, region->name, 0);
	kdsm_region_put(region);
}

void kdsm_regions_untied(struct kdsm_cluster *cluster, unsigned int node)
{
	struct kdsm_region *region;
	unsigned long id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		if (region->coherence && node < region->nodes)
			kdsm_coherence_untied(region->coherence, node);
		kdsm_region_put(region);
		id++;
	}
}

void kdsm_regions_forget(struct kdsm_cluster *cluster)
{
	struct kdsm_region *region;
	unsigned long id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		/* Without the lock of the name, because its holder may wait for node 0 */
		if (!READ_ONCE(region->opens))
			kdsm_region_forget(region);
		kdsm_region_put(region);
		id++;
	}
}

bool kdsm_region_name_valid(const char name[KDSM_NAME_SIZE])
{
	size_t i, length = strnlen(name, KDSM_NAME_SIZE);

	if (!length || length == KDSM_NAME_SIZE)
		return false;
	for (i = 0; i < length; i++)
		if (!isascii(name[i]) || !isgraph(name[i]))
			return false;
	return true;
}

/* ---- messages from the directory ---- */

/* Whether this node has room for share bytes in addition to kdsm_region_claim() of other regions */
static bool kdsm_region_fits(struct kdsm_cluster *cluster, u64 share)
{
	u64 available = kdsm_memory_available(), claimed = share;
	struct kdsm_region *region;
	unsigned long id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		available += kdsm_region_held(region);
		claimed += kdsm_region_claim(region);
		kdsm_region_put(region);
		id++;
	}
	return claimed < available;
}

bool kdsm_region_segments(const struct kdsm_wire_segments *wire, u64 size, u32 policy,
			  struct kdsm_region_segment segments[KDSM_MAX_SEGMENTS])
{
	u32 count = le32_to_cpu(wire->count), i;

	if (count > (policy == KDSM_POLICY_PARTITIONED ? 1 : KDSM_MAX_SEGMENTS))
		return false;
	for (i = 0; i < count; i++)
		segments[i] = (struct kdsm_region_segment) {
			.offset = le64_to_cpu(wire->list[i].offset),
			.block_size = le32_to_cpu(wire->list[i].block_size),
		};
	return kdsm_segments_sane(segments, count, size);
}

/* Check the region, although node 0 has checked the program's request: node 0 may be hostile */
static bool kdsm_region_sane(const struct kdsm_region *region)
{
	u64 size, end;

	return region->nodes > region->cluster->node && region->nodes <= KDSM_MAX_NODES &&
	       region->id <= U16_MAX && region->policy >= KDSM_POLICY_PARTITIONED &&
	       region->policy <= KDSM_POLICY_STRICT &&
	       !(region->mode & ~0777) && region->part_size && PAGE_ALIGNED(region->part_size) &&
	       (region->policy == KDSM_POLICY_PARTITIONED ||
		IS_ALIGNED(region->part_size,
			   region->segments[region->segment_count - 1].block_size)) &&
	       region->base && PAGE_ALIGNED(region->base) &&
	       !check_mul_overflow(region->part_size,
				   (u64)kdsm_policy_parts(region->policy, region->nodes),
				   &size) && size <= 2 * KDSM_SIZE_MAX &&
	       !check_add_overflow(region->base, size, &end) && end <= TASK_SIZE_MAX;
}

/*
 * Wait, in bounded time, until removed regions have given back the memory that the region needs.
 * Returns at once if there is enough, or if no region is being freed.
 */
static void kdsm_region_await_memory(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;

	wait_event_timeout(cluster->closed, !atomic_read(&cluster->freeing) ||
			   (kdsm_region_fits(cluster, region->share) &&
			    kdsm_quota_has_room(region)), KDSM_FREE_PATIENCE);
}

static int kdsm_region_make(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	struct kdsm_account *account;
	unsigned int flags = 0;
	int err;

	lockdep_assert_held(&cluster->parts_lock);
	/* This node does not know all nodes of the region, or is about to leave some */
	if (region->nodes > READ_ONCE(cluster->nodes))
		return -EBADE;
	if (!kdsm_region_fits(cluster, region->share))
		return -ENOMEM;
	err = kdsm_quota_admit(region);
	if (err)
		return err;
	account = kdsm_quota_account(region);
	if (region->policy != KDSM_POLICY_PARTITIONED) {
		region->account.parent = account;
		account = &region->account;
		flags = KDSM_MEMORY_READ_ONLY;
	}
	region->memory = kdsm_memory_create(cluster->fabric, region->id, region->part_size, flags,
					    account);
	if (IS_ERR(region->memory)) {
		err = PTR_ERR(region->memory);
		goto leave;
	}
	if (region->policy != KDSM_POLICY_PARTITIONED) {
		err = kdsm_region_make_coherent(region);
		if (err)
			goto destroy;
	}
	err = cluster->regions_up->create_locks(region);
	if (err)
		goto incoherent;
	/* A region of a former directory may have the id */
	err = xa_insert(&cluster->regions, region->id, region, GFP_KERNEL);
	if (!err)
		return 0;
	err = err == -EBUSY ? -EEXIST : err;
	cluster->regions_up->destroy_locks(region);
incoherent:
	if (region->coherence)
		kdsm_region_incoherent(region);
destroy:
	kdsm_memory_destroy(region->memory);
leave:
	kdsm_quota_leave(region);
	return err;
}

int kdsm_region_serve_add(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_region *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	unsigned int i;
	int err;

	if (request->from != 0 || request->length != sizeof(*wire) ||
	    !kdsm_region_name_valid(wire->name))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region)
		return -ENOMEM;
	region->cluster = cluster;
	kref_init(&region->kref);
	INIT_WORK(&region->free_work, kdsm_region_free_work);
	kdsm_region_init_opens(region);
	kdsm_mappings_init(&region->mappings);
	strscpy(region->name, wire->name, sizeof(region->name));
	region->id = le32_to_cpu(wire->id);
	region->flags = le32_to_cpu(wire->flags);
	region->policy = le32_to_cpu(wire->policy);
	region->segment_count = le32_to_cpu(wire->segments.count);
	region->mode = le32_to_cpu(wire->mode);
	region->uid = le32_to_cpu(wire->uid);
	region->gid = le32_to_cpu(wire->gid);
	region->nodes = le32_to_cpu(wire->nodes);
	region->part_size = le64_to_cpu(wire->part_size);
	region->base = le64_to_cpu(wire->base);
	for (i = 0; i < KDSM_WAIT_BUCKETS; i++)
		init_waitqueue_head(&region->waits[i]);

	err = -EINVAL;
	if (!kdsm_region_segments(&wire->segments, region->part_size, region->policy,
				  region->segments) || !kdsm_region_sane(region))
		goto free;
	/* Of a coherent region a node may hold more than its share, up to the whole region */
	region->share = div_u64(kdsm_region_size(region), region->nodes);
	kdsm_region_await_memory(region);
	/* Two regions that are added at the same time must not both count on the same memory */
	mutex_lock(&cluster->parts_lock);
	err = kdsm_region_make(region);
	if (!err)
		trace_kdsm_event(KDSM_EVENT_REGION_ADDED, 0, region->id, region->name, 0);
	mutex_unlock(&cluster->parts_lock);
	if (!err)
		return 0;
free:
	kfree(region);
	return err;
}

int kdsm_region_serve_remove(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;

	if (request->from != 0 || request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = xa_erase(&cluster->regions, le32_to_cpu(*(__le32 *)request->data));
	if (!region)
		return -ENOENT;
	trace_kdsm_event(KDSM_EVENT_REGION_REMOVED, 0, region->id, region->name, 0);
	/*
	 * If files of this node are bound to the region all the same, they keep the part. The peers
	 * have closed the region, so no operation on the part is in flight, and a key that a peer
	 * still has is void before a page is free.
	 */
	kdsm_region_put(region);
	return 0;
}

typedef int (*kdsm_serve_t)(struct kdsm_coherence *coherence, struct kdsm_request *request);

/* Serve a message about the coherent region with this id */
static int kdsm_region_serve(void *context, struct kdsm_request *request, __le32 id,
			     kdsm_serve_t serve)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	int err = -EOPNOTSUPP;

	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(cluster, le32_to_cpu(id), request->from);
	if (!region)
		return -ENOENT;
	if (region->coherence)
		err = serve(region->coherence, request);
	kdsm_region_put(region);
	return err;
}

static int kdsm_region_serve_block(void *context, struct kdsm_request *request, kdsm_serve_t serve)
{
	const struct kdsm_wire_block *wire = request->data;

	if (!kdsm_wire_handover_fits(request->length, sizeof(*wire)))
		return -EINVAL;
	return kdsm_region_serve(context, request, wire->id, serve);
}

int kdsm_region_serve_block_push(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_push *wire = request->data;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	return kdsm_region_serve(context, request, wire->id, kdsm_coherence_serve_push);
}

int kdsm_region_serve_block_read(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_read);
}

int kdsm_region_serve_block_own(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_own);
}

int kdsm_region_serve_block_invalidate(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_invalidate);
}

int kdsm_region_serve_block_grant(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_grant);
}

int kdsm_region_serve_block_lend(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_lend);
}

int kdsm_region_serve_block_claim(void *context, struct kdsm_request *request)
{
	return kdsm_region_serve_block(context, request, kdsm_coherence_serve_claim);
}

void kdsm_region_notified(void *context, u32 id, u64 offset)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	wait_queue_head_t *waits;

	rcu_read_lock();
	region = xa_load(&cluster->regions, id);
	if (region) {
		waits = kdsm_region_waits(region, offset);
		/*
		 * wq_has_sleeper() orders the put before the check for sleepers. Pairs with the
		 * barrier of prepare_to_wait_event() in kdsm_pgas_wait().
		 */
		if (wq_has_sleeper(waits))
			wake_up_all(waits);
	}
	rcu_read_unlock();
}
