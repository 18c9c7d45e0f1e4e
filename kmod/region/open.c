// SPDX-License-Identifier: GPL-2.0
/*
 * Opening, closing and destroying regions for the programs of this node, and permissions.
 *
 * Node 0 keeps one bit a node: whether the node has the region open. So the messages about the
 * opens and closes of a region must reach node 0 in order: the lock of the region's name is held
 * while node 0 is asked. Workers ask, and programs wait for them, because node 0 or another node
 * may take long to answer: a program that is killed stops waiting, and the worker goes on.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "internal.h"

/* Interval between retries after node 0 did not answer, in jiffies */
#define KDSM_CLOSE_RETRY	(5 * HZ)
/* Retries after an open that node 0 did not answer: longer than node 0 works at one */
#define KDSM_CLOSE_REPEATS	5
/* Interval between retries while node 0 has too much to do, in ms, and number of retries */
#define KDSM_BUSY_MS		20
#define KDSM_BUSY_RETRIES	3000
/* Retries after the connection broke, which does not mean that node 0 is down */
#define KDSM_BROKEN_RETRIES	3

static void kdsm_region_close_work(struct work_struct *work);
static void kdsm_region_repeat_work(struct work_struct *work);

void kdsm_opens_init(struct kdsm_cluster *cluster)
{
	unsigned int i;

	for (i = 0; i < KDSM_OPEN_LOCKS; i++)
		mutex_init(&cluster->open_locks[i]);
	INIT_DELAYED_WORK(&cluster->close_work, kdsm_region_repeat_work);
}

void kdsm_region_init_opens(struct kdsm_region *region)
{
	INIT_WORK(&region->close_work, kdsm_region_close_work);
}

static struct mutex *kdsm_name_lock(struct kdsm_cluster *cluster, const char *name)
{
	return &cluster->open_locks[full_name_hash(NULL, name, strlen(name)) % KDSM_OPEN_LOCKS];
}

/* Whether the calling task may open the region, by mode, owner and group */
static bool kdsm_region_may(const struct kdsm_region *region, bool write)
{
	unsigned int want = write ? 06 : 04, have = region->mode & 7;

	if (from_kuid(&init_user_ns, current_fsuid()) == region->uid)
		have = region->mode >> 6 & 7;
	else if (in_egroup_p(make_kgid(&init_user_ns, region->gid)))
		have = region->mode >> 3 & 7;
	return (have & want) == want || capable(CAP_DAC_OVERRIDE);
}

/* ---- closing ---- */

/*
 * Tell node 0 that no file of this node has the region open. A repeated message does no harm.
 * If node 0 does not answer, schedule a retry and return false.
 */
static bool kdsm_region_tell_closed(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	__le32 wire = cpu_to_le32(region->id);
	int err;

	lockdep_assert_held(kdsm_name_lock(cluster, region->name));
	err = kdsm_message(cluster->fabric, 0, KDSM_MESSAGE_CLOSE, &wire, sizeof(wire),
			   NULL, NULL);
	if (err == -ENOENT)
		kdsm_region_forget(region);
	/* Busy: a former open of this node, whose answer was lost, may take effect after this. */
	if (kdsm_message_was_heard(err) && err != -EBUSY)
		return true;
	queue_delayed_work(cluster->workqueue, &cluster->close_work, KDSM_CLOSE_RETRY);
	return false;
}

/*
 * Node 0 did not answer a close, or an open that node 0 may have granted. Tell node 0 of
 * all regions that are not open here.
 */
static void kdsm_region_repeat_work(struct work_struct *work)
{
	struct kdsm_cluster *cluster =
		container_of(work, struct kdsm_cluster, close_work.work);
	struct kdsm_region *region;
	unsigned long id = 0;
	bool told = true;

	while (told && (region = kdsm_region_next(cluster, &id))) {
		struct mutex *lock = kdsm_name_lock(cluster, region->name);

		mutex_lock(lock);
		if (!region->opens)
			told = kdsm_region_tell_closed(region);
		mutex_unlock(lock);
		kdsm_region_put(region);
		id++;
	}
	if (READ_ONCE(cluster->close_repeats)) {
		WRITE_ONCE(cluster->close_repeats, cluster->close_repeats - 1);
		queue_delayed_work(cluster->workqueue, &cluster->close_work, KDSM_CLOSE_RETRY);
	}
}

/* Do all closes that were asked for */
static void kdsm_region_close_work(struct work_struct *work)
{
	struct kdsm_region *region = container_of(work, struct kdsm_region, close_work);
	struct kdsm_cluster *cluster = region->cluster;
	struct mutex *lock = kdsm_name_lock(cluster, region->name);
	int asked = atomic_read(&region->closes), count = asked - region->closes_done;

	if (!count)
		goto put;
	mutex_lock(lock);
	/* After the last close other nodes may free what workers of this node still read */
	while (region->opens == count && atomic_read(&region->demands)) {
		mutex_unlock(lock);
		wait_event(cluster->closed, !atomic_read(&region->demands));
		mutex_lock(lock);
	}
	region->opens -= count;
	if (!region->opens)
		kdsm_region_tell_closed(region);
	mutex_unlock(lock);
	WRITE_ONCE(region->closes_done, asked);
	wake_up_all(&cluster->closed);
	while (count--) {
		kdsm_region_put(region);
		kdsm_cluster_put(cluster);
	}
put:
	kdsm_region_put(region);	/* of ask_close() */
}

/*
 * Have a worker undo an open, whose reference to the region the worker drops. Return the number
 * of the close.
 */
static int kdsm_region_ask_close(struct kdsm_region *region)
{
	int number;

	kdsm_cluster_hold(region->cluster);
	/* A work that runs already may do this close, and drop the reference of the open. */
	kref_get(&region->kref);
	number = atomic_inc_return(&region->closes);
	if (!queue_work(region->cluster->workqueue, &region->close_work))
		kdsm_region_put(region);
	return number;
}

void kdsm_region_close(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	int number;

	/* For the wait: the worker drops the reference of the open */
	kref_get(&region->kref);
	number = kdsm_region_ask_close(region);
	/*
	 * The worker waits for all demands of the region, also for those that killed threads left.
	 * While there are any, of this program or of others, do not wait for the worker.
	 */
	wait_event_killable(cluster->closed, READ_ONCE(region->closes_done) - number >= 0 ||
			    atomic_read(&region->demands));
	kdsm_region_put(region);
}

/* ---- opening ---- */

enum kdsm_opening_state {
	KDSM_OPENING_ASKED,	/* a worker asks node 0, and the program waits */
	KDSM_OPENING_DONE,	/* region or err is set */
	KDSM_OPENING_ABANDONED,	/* the program was killed: the worker closes the region again */
};

/* One open; holds a reference to the cluster */
struct kdsm_opening {
	struct work_struct work;
	struct kdsm_cluster *cluster;
	refcount_t references;	/* of the program and the worker */
	atomic_t state;		/* enum kdsm_opening_state */
	struct completion done;
	struct kdsm_wire_open wire;
	struct kdsm_region *region;
	int err;
};

static void kdsm_opening_put(struct kdsm_opening *opening)
{
	struct kdsm_cluster *cluster = opening->cluster;

	if (!refcount_dec_and_test(&opening->references))
		return;
	kfree(opening);
	kdsm_cluster_put(cluster);
}

/* Ask node 0 for the region; the reply names a region that node 0 has added here before */
static int kdsm_opening_ask(struct kdsm_opening *opening)
{
	struct kdsm_cluster *cluster = opening->cluster;
	struct kdsm_wire_region reply = {};
	unsigned int length = sizeof(reply);
	int err;

	err = kdsm_message(cluster->fabric, 0, KDSM_MESSAGE_OPEN, &opening->wire,
			   sizeof(opening->wire), &reply, &length);
	if (!err && length != sizeof(reply))
		err = -EIO;
	if (!err)
		opening->region = kdsm_region_get(cluster, le32_to_cpu(reply.id), cluster->node);
	if (opening->region) {
		opening->region->opens++;
		return 0;
	}
	if (!err)
		err = -EIO;
	/* Node 0 may hold that this node has the region open. */
	if (err == -EIO || err == -ETIMEDOUT) {
		WRITE_ONCE(cluster->close_repeats, KDSM_CLOSE_REPEATS);
		queue_delayed_work(cluster->workqueue, &cluster->close_work, KDSM_CLOSE_RETRY);
	}
	return err;
}

/* Whether to ask again after err, and one retry less */
static bool kdsm_opening_retries(const struct kdsm_opening *opening, unsigned int *busy,
				 unsigned int *broken)
{
	switch (opening->err) {
	case -EBUSY:
		return (*busy)--;
	case -EIO:
		/* Node 0 may have created the region: an exclusive open would find it existing */
		return !(le32_to_cpu(opening->wire.flags) & KDSM_REGION_EXCL) && (*broken)--;
	default:
		return false;
	}
}

static void kdsm_opening_work(struct work_struct *work)
{
	struct kdsm_opening *opening = container_of(work, struct kdsm_opening, work);
	struct mutex *lock = kdsm_name_lock(opening->cluster, opening->wire.name);
	unsigned int busy = KDSM_BUSY_RETRIES, broken = KDSM_BROKEN_RETRIES;

	opening->err = -EINTR;
	while (atomic_read(&opening->state) != KDSM_OPENING_ABANDONED) {
		mutex_lock(lock);
		opening->err = kdsm_opening_ask(opening);
		mutex_unlock(lock);
		if (!kdsm_opening_retries(opening, &busy, &broken))
			break;
		msleep(KDSM_BUSY_MS);
	}
	if (opening->err == -EBUSY)
		opening->err = -ETIMEDOUT;
	if (atomic_cmpxchg(&opening->state, KDSM_OPENING_ASKED, KDSM_OPENING_DONE) ==
	    KDSM_OPENING_ABANDONED && !opening->err)
		kdsm_region_ask_close(opening->region);
	complete(&opening->done);
	kdsm_opening_put(opening);
}

static struct kdsm_opening *kdsm_opening_create(struct kdsm_cluster *cluster,
						const struct kdsm_region_open *args)
{
	struct kdsm_opening *opening = kzalloc(sizeof(*opening), GFP_KERNEL_ACCOUNT);
	struct kdsm_wire_segments *segments;
	u32 i;

	if (!opening)
		return NULL;
	segments = &opening->wire.segments;
	INIT_WORK(&opening->work, kdsm_opening_work);
	kdsm_cluster_hold(cluster);
	opening->cluster = cluster;
	refcount_set(&opening->references, 2);
	init_completion(&opening->done);
	opening->wire = (struct kdsm_wire_open) {
		.flags = cpu_to_le32(args->flags),
		.policy = cpu_to_le32(args->policy),
		.size = cpu_to_le64(args->size),
		.base = cpu_to_le64(args->base),
		.segments.count = cpu_to_le32(args->segments),
		.mode = cpu_to_le32(args->mode),
		.uid = cpu_to_le32(from_kuid(&init_user_ns, current_fsuid())),
		.gid = cpu_to_le32(from_kgid(&init_user_ns, current_fsgid())),
	};
	strscpy_pad(opening->wire.name, args->name, sizeof(opening->wire.name));
	for (i = 0; i < args->segments; i++) {
		segments->list[i].offset = cpu_to_le64(args->segment[i].offset);
		segments->list[i].block_size = cpu_to_le32(args->segment[i].block_size);
	}
	return opening;
}

struct kdsm_region *kdsm_region_open(struct kdsm_cluster *cluster,
				     struct kdsm_region_open *args, bool want_write)
{
	struct kdsm_opening *opening = kdsm_opening_create(cluster, args);
	struct kdsm_region *region;
	int err;

	if (!opening)
		return ERR_PTR(-ENOMEM);
	queue_work(cluster->openers, &opening->work);
	err = wait_for_completion_killable(&opening->done);
	/* If the worker was done at the same moment, its result counts */
	if (!err || atomic_cmpxchg(&opening->state, KDSM_OPENING_ASKED,
				   KDSM_OPENING_ABANDONED) == KDSM_OPENING_DONE)
		err = opening->err;
	region = opening->region;
	kdsm_opening_put(opening);
	if (err)
		return ERR_PTR(err);
	if (!kdsm_region_may(region, want_write)) {
		kdsm_region_close(region);
		return ERR_PTR(-EACCES);
	}
	args->size = kdsm_region_size(region);
	args->block_size = region->segments->block_size;
	args->segments = region->segment_count;
	memcpy(args->segment, region->segments, sizeof(args->segment));
	args->policy = region->policy;
	args->mode = region->mode;
	args->id = region->id;
	args->part_size = region->part_size;
	args->nodes = region->nodes;
	args->base = region->base;
	return region;
}

/* ---- destroying ---- */

int kdsm_region_destroy(struct kdsm_cluster *cluster, const char *name)
{
	struct kdsm_region *region;
	unsigned long id = 0;
	__le32 wire;
	int err = -ENOENT, told;

	while ((region = kdsm_region_next(cluster, &id))) {
		if (strcmp(region->name, name)) {
			kdsm_region_put(region);
			id++;
			continue;
		}
		wire = cpu_to_le32(region->id);
		if (from_kuid(&init_user_ns, current_fsuid()) != region->uid &&
		    !capable(CAP_SYS_ADMIN))
			told = -EACCES;
		else
			told = kdsm_message_killable(cluster->fabric, 0, KDSM_MESSAGE_DESTROY,
						     &wire, sizeof(wire));
		kdsm_region_put(region);
		if (told != -ENOENT)
			err = told;
		/* A region that was destroyed earlier may have had the same name: go on */
		if (told != -ENOENT && told != -EACCES)
			break;
		id++;
	}
	return err;
}
