// SPDX-License-Identifier: GPL-2.0
/*
 * The directory of regions. Node 0 keeps the directory, so that one mutex, rather than a
 * protocol, makes names and addresses agree. Opening is rare, and operations never involve
 * the directory. region.c has the regions of each node.
 *
 * Node 0 adds a region on every node before it answers the creator, so a node that opens
 * the region finds it everywhere. Node 0 removes a region when no node has it open; a region
 * that was made with KDSM_REGION_KEEP must have been destroyed as well. Node 0 gives the
 * addresses to another region only after every node that had a part has answered that the part
 * is gone.
 *
 * A job of the region's entry, a work item, sends to all nodes in parallel and waits for them,
 * without the directory's lock. So a node that does not answer delays the regions that are being
 * added or removed, and no others.
 *
 * A node that cannot be reached may come back with all regions that it had open, so node 0
 * keeps its opens for a minute. A node that came up again has no region open.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* Upper bound of the number of regions of a cluster */
#define KDSM_REGIONS_MAX	4096

static unsigned int kdsm_forget_s = 60;
module_param_named(forget_s, kdsm_forget_s, uint, 0644);
MODULE_PARM_DESC(forget_s, "seconds of silence after which node 0 forgets what a node had open");

/* Interval between probes of a silent node, in jiffies */
#define KDSM_DIRECTORY_RETRY	(5 * HZ)
/*
 * Upper bound of the time that a handler waits for nodes, in jiffies. It is below the fabric's
 * timeout for a reply, so that the asking node does not take node 0 for dead.
 */
#define KDSM_DIRECTORY_PATIENCE	(20 * HZ)
/*
 * Upper bound of the handlers that wait for nodes. Further requests to open get -EBUSY and are
 * repeated, so that the handlers of other messages have workers.
 */
#define KDSM_DIRECTORY_WAITERS	64
/* Upper bound of the jobs that wait for nodes at the same time */
#define KDSM_DIRECTORY_JOBS	16
/* Number of ids to try for a region, if nodes still have regions of a former directory */
#define KDSM_DIRECTORY_TRIES	16

/*
 * State of an entry. directory->lock protects the transitions:
 *
 *   ADDING -> LIVE	all nodes have made their parts
 *   ADDING -> REMOVING	a node has not, or the creator has stopped waiting
 *   LIVE -> NAMELESS	destroyed, and some node has it open
 *   LIVE -> REMOVING	no node has it open any more, and it is destroyed or not kept
 *   NAMELESS -> REMOVING	no node has it open any more
 *   REMOVING -> LEFT	a node has not answered
 *   LEFT -> REMOVING	the work tries again
 *   REMOVING -> GONE	all nodes have freed their parts
 */
enum kdsm_entry_state {
	KDSM_ENTRY_ADDING,
	KDSM_ENTRY_LIVE,
	KDSM_ENTRY_NAMELESS,
	KDSM_ENTRY_REMOVING,
	KDSM_ENTRY_LEFT,
	KDSM_ENTRY_GONE,
};

/* A region in the directory; directory->lock protects all fields but cluster and job */
struct kdsm_entry {
	struct list_head link;		/* ordered by base; GONE: in no list */
	struct kdsm_cluster *cluster;
	struct work_struct job;		/* ADDING, REMOVING: sends to the nodes */
	enum kdsm_entry_state state;
	struct kdsm_wire_region region;	/* ADDING: the job may change the id */
	int err;			/* why the region could not be added, or 0 */
	unsigned int waiters;		/* handlers that wait for a job or use the entry */
	unsigned long *opened;		/* nodes that have the region open */
	unsigned long *parts;		/* nodes that hold a part, or may hold one */
};

struct kdsm_directory {
	struct kdsm_cluster *cluster;
	struct mutex lock;	/* protects the fields up to turn; never held during messages */
	struct list_head entries;
	u32 last_id;
	unsigned int waiters;	/* handlers that wait for a job */
	u32 turn;		/* number of the last change of a setting */
	wait_queue_head_t wait;	/* for the end of an entry's job */
	struct workqueue_struct *workqueue;	/* runs the jobs and work */
	/* Bits by node, set and cleared atomically, without lock: */
	unsigned long *restarted;	/* came up again: their earlier opens and parts are void */
	unsigned long *silent;	/* did not answer */
	/* Used by work only: jiffies of the first unanswered probe, by node; or 0 */
	unsigned long *asked;
	struct delayed_work work;	/* probes silent nodes, and repeats removals */
};

static void kdsm_directory_work(struct work_struct *work);
static void kdsm_directory_catch_up(struct kdsm_directory *directory);
static u32 kdsm_find_id(struct kdsm_directory *directory);

int kdsm_directory_init(struct kdsm_cluster *cluster)
{
	struct kdsm_directory *directory = kzalloc(sizeof(*directory), GFP_KERNEL);

	if (!directory)
		return -ENOMEM;
	cluster->directory = directory;
	directory->cluster = cluster;
	mutex_init(&directory->lock);
	init_waitqueue_head(&directory->wait);
	/* Avoid the ids of an earlier directory, whose regions nodes may still have open */
	directory->last_id = get_random_u16();
	INIT_LIST_HEAD(&directory->entries);
	INIT_DELAYED_WORK(&directory->work, kdsm_directory_work);
	directory->workqueue = alloc_workqueue("kdsm_directory", WQ_UNBOUND, KDSM_DIRECTORY_JOBS);
	directory->restarted = bitmap_zalloc(KDSM_MAX_NODES, GFP_KERNEL);
	directory->silent = bitmap_zalloc(KDSM_MAX_NODES, GFP_KERNEL);
	directory->asked = kvcalloc(KDSM_MAX_NODES, sizeof(*directory->asked), GFP_KERNEL);
	if (directory->workqueue && directory->restarted && directory->silent &&
	    directory->asked)
		return 0;
	kdsm_directory_exit(cluster);
	return -ENOMEM;
}

/* Number of the nodes that take part: those that there were when the region was created */
static unsigned int kdsm_entry_nodes(const struct kdsm_entry *entry)
{
	return le32_to_cpu(entry->region.nodes);
}

static void kdsm_entry_free(struct kdsm_entry *entry)
{
	bitmap_free(entry->opened);
	bitmap_free(entry->parts);
	kfree(entry);
}

void kdsm_directory_exit(struct kdsm_cluster *cluster)
{
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry, *next;

	/* The fabric is disconnected, so each job ends soon, and none begins but by the work */
	if (directory->workqueue) {
		cancel_delayed_work_sync(&directory->work);
		drain_workqueue(directory->workqueue);
		cancel_delayed_work_sync(&directory->work);
		destroy_workqueue(directory->workqueue);
	}
	list_for_each_entry_safe(entry, next, &directory->entries, link)
		kdsm_entry_free(entry);
	bitmap_free(directory->restarted);
	bitmap_free(directory->silent);
	kvfree(directory->asked);
	kfree(directory);
}

/* ---- states of entries ---- */

static void kdsm_entry_start(struct kdsm_entry *entry, enum kdsm_entry_state state)
{
	lockdep_assert_held(&entry->cluster->directory->lock);
	entry->state = state;
	queue_work(entry->cluster->directory->workqueue, &entry->job);
}

/* Remove the region, if no node has it open or waits for it, and it is not kept */
static void kdsm_entry_release(struct kdsm_entry *entry)
{
	bool kept = le32_to_cpu(entry->region.flags) & KDSM_REGION_KEEP;

	lockdep_assert_held(&entry->cluster->directory->lock);
	if (entry->waiters || !bitmap_empty(entry->opened, KDSM_MAX_NODES))
		return;
	if (entry->state == KDSM_ENTRY_NAMELESS || (entry->state == KDSM_ENTRY_LIVE && !kept))
		kdsm_entry_start(entry, KDSM_ENTRY_REMOVING);
}

static void kdsm_entry_hold(struct kdsm_entry *entry)
{
	lockdep_assert_held(&entry->cluster->directory->lock);
	entry->waiters++;
}

/* Undo kdsm_entry_hold(). The caller must not use the entry any more. */
static void kdsm_entry_drop(struct kdsm_entry *entry)
{
	lockdep_assert_held(&entry->cluster->directory->lock);
	entry->waiters--;
	kdsm_entry_release(entry);
	if (entry->state == KDSM_ENTRY_GONE && !entry->waiters)
		kdsm_entry_free(entry);
}

static bool kdsm_entry_is_moving(const struct kdsm_entry *entry)
{
	enum kdsm_entry_state state = READ_ONCE(entry->state);

	return state == KDSM_ENTRY_ADDING || state == KDSM_ENTRY_REMOVING;
}

/*
 * Wait for the end of the entry's job, in bounded time. Caller holds the entry, and
 * directory->lock, which the function drops meanwhile.
 */
static void kdsm_entry_await(struct kdsm_entry *entry)
{
	struct kdsm_directory *directory = entry->cluster->directory;

	lockdep_assert_held(&directory->lock);
	if (!kdsm_entry_is_moving(entry))
		return;
	directory->waiters++;
	mutex_unlock(&directory->lock);
	wait_event_timeout(directory->wait, !kdsm_entry_is_moving(entry),
			   KDSM_DIRECTORY_PATIENCE);
	mutex_lock(&directory->lock);
	directory->waiters--;
}

/* The entry may be gone when the function returns */
static void kdsm_entry_await_removal(struct kdsm_entry *entry)
{
	kdsm_entry_hold(entry);
	if (entry->state == KDSM_ENTRY_REMOVING)
		kdsm_entry_await(entry);
	kdsm_entry_drop(entry);
}

/* ---- jobs: telling the nodes ---- */

/*
 * Send the region or its id to the nodes in the bit set, and wait until each has answered or does
 * not answer. Returns their statuses by node, which the caller frees, or NULL without memory.
 */
static int *kdsm_entry_send(struct kdsm_entry *entry, enum kdsm_message_type type,
			    const unsigned long *nodes)
{
	struct kdsm_cluster *cluster = entry->cluster;
	/* The job alone changes the id */
	const void *data = type == KDSM_MESSAGE_ADD ? (void *)&entry->region : &entry->region.id;
	unsigned int length = type == KDSM_MESSAGE_ADD ? sizeof(entry->region) :
							 sizeof(entry->region.id);
	int *statuses = kvcalloc(KDSM_MAX_NODES, sizeof(*statuses), GFP_KERNEL);

	if (statuses && kdsm_broadcast(cluster->fabric, nodes, type, data, length, statuses,
				       MAX_SCHEDULE_TIMEOUT, TASK_UNINTERRUPTIBLE)) {
		kvfree(statuses);
		return NULL;
	}
	return statuses;
}

/*
 * Have all nodes but the silent ones free their parts. Returns true if no node holds a part any
 * more. Caller holds directory->lock, which the function drops meanwhile.
 */
static bool kdsm_entry_remove(struct kdsm_entry *entry)
{
	struct kdsm_cluster *cluster = entry->cluster;
	struct kdsm_directory *directory = cluster->directory;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES);
	unsigned int node;
	int *statuses;

	lockdep_assert_held(&directory->lock);
	/* The work probes silent nodes */
	bitmap_andnot(nodes, entry->parts, directory->silent, KDSM_MAX_NODES);
	mutex_unlock(&directory->lock);
	statuses = kdsm_entry_send(entry, KDSM_MESSAGE_REMOVE, nodes);
	mutex_lock(&directory->lock);
	if (!statuses)
		return false;
	for_each_set_bit(node, nodes, KDSM_MAX_NODES) {
		if (kdsm_message_was_heard(statuses[node]))
			__clear_bit(node, entry->parts);
		else
			set_bit(node, directory->silent);
	}
	kvfree(statuses);
	return bitmap_empty(entry->parts, KDSM_MAX_NODES);
}

/*
 * Have every node make its part. After an error, entry->parts has the nodes that may have one.
 * Caller holds directory->lock, which the function drops meanwhile.
 */
static int kdsm_entry_add(struct kdsm_entry *entry)
{
	struct kdsm_cluster *cluster = entry->cluster;
	struct kdsm_directory *directory = cluster->directory;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	int *statuses, err = 0, status;
	unsigned int node;

	lockdep_assert_held(&directory->lock);
	bitmap_set(nodes, 0, kdsm_entry_nodes(entry));
	mutex_unlock(&directory->lock);
	statuses = kdsm_entry_send(entry, KDSM_MESSAGE_ADD, nodes);
	mutex_lock(&directory->lock);
	if (!statuses)
		return -ENOMEM;
	for (node = 0; node < kdsm_entry_nodes(entry); node++) {
		status = statuses[node];
		/* A node that did not answer may have added the region all the same */
		if (!status || !kdsm_message_was_heard(status))
			__set_bit(node, entry->parts);
		if (status == -EIO || status == -ETIMEDOUT)
			status = -EHOSTDOWN;
		/* A node's answer matters more than the silence of another node */
		if (status && (!err || err == -EHOSTDOWN || status == -EEXIST))
			err = status;
	}
	kvfree(statuses);
	return err;
}

/* A node may still have a region of a former directory with the id: then try another id */
static void kdsm_entry_add_job(struct kdsm_entry *entry)
{
	struct kdsm_directory *directory = entry->cluster->directory;
	unsigned int tries = KDSM_DIRECTORY_TRIES;
	int err;

	/* Nothing was sent yet, so only a restart from now on spoils the parts */
	kdsm_directory_catch_up(directory);
	entry->err = 0;
	err = kdsm_entry_add(entry);
	while (err == -EEXIST && tries-- && kdsm_entry_remove(entry)) {
		entry->region.id = cpu_to_le32(kdsm_find_id(directory));
		err = kdsm_entry_add(entry);
	}
	kdsm_directory_catch_up(directory);
	entry->err = entry->err ?: err == -EEXIST ? -ENOSPC : err;
	/* All handlers may have stopped waiting; this job is a waiter, too */
	if (!entry->err && entry->waiters == 1)
		entry->err = -ETIMEDOUT;
	if (entry->err)
		kdsm_entry_start(entry, KDSM_ENTRY_REMOVING);
	else
		entry->state = KDSM_ENTRY_LIVE;
}

static void kdsm_entry_remove_job(struct kdsm_entry *entry)
{
	struct kdsm_directory *directory = entry->cluster->directory;

	if (!kdsm_entry_remove(entry)) {
		entry->state = KDSM_ENTRY_LEFT;
		queue_delayed_work(directory->workqueue, &directory->work, KDSM_DIRECTORY_RETRY);
		return;
	}
	entry->state = KDSM_ENTRY_GONE;
	list_del(&entry->link);
}

static void kdsm_entry_job(struct work_struct *work)
{
	struct kdsm_entry *entry = container_of(work, struct kdsm_entry, job);
	struct kdsm_directory *directory = entry->cluster->directory;

	mutex_lock(&directory->lock);
	kdsm_entry_hold(entry);
	if (entry->state == KDSM_ENTRY_ADDING)
		kdsm_entry_add_job(entry);
	else
		kdsm_entry_remove_job(entry);
	wake_up_all(&directory->wait);
	kdsm_entry_drop(entry);
	mutex_unlock(&directory->lock);
}

/* ---- entries ---- */

static struct kdsm_entry *kdsm_entry_by_name(struct kdsm_directory *directory,
					     const char *name)
{
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link)
		if ((entry->state == KDSM_ENTRY_ADDING || entry->state == KDSM_ENTRY_LIVE) &&
		    !strcmp(entry->region.name, name))
			return entry;
	return NULL;
}

static struct kdsm_entry *kdsm_entry_by_id(struct kdsm_directory *directory, u32 id)
{
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link)
		if (le32_to_cpu(entry->region.id) == id)
			return entry;
	return NULL;
}

static u64 kdsm_part_size(const struct kdsm_wire_open *open, unsigned int parts)
{
	u64 block_size = le32_to_cpu(open->segments.list->block_size);
	u64 part = DIV_ROUND_UP_ULL(le64_to_cpu(open->size), parts);

	/* With more than one segment, a region is larger than a chunk */
	part = ALIGN(part, max_t(u64, block_size, PAGE_SIZE));
	return part < KDSM_CHUNK_SIZE ? part : ALIGN(part, KDSM_CHUNK_SIZE);
}

/*
 * Find an address for size bytes: the first fit, in units of chunks. The list is ordered by base,
 * except for regions whose creators chose it, and the caller inserts the new entry before *before.
 * Returns 0 if there is no room.
 */
static u64 kdsm_find_base(struct kdsm_directory *directory, u64 size,
			  struct list_head **before)
{
	u64 base = KDSM_ARENA_START;
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link) {
		u64 start = le64_to_cpu(entry->region.base);

		if (start < KDSM_ARENA_START || start >= KDSM_ARENA_END)
			continue;
		if (start - base >= size)
			break;
		base = ALIGN(start + le64_to_cpu(entry->region.part_size) *
			     kdsm_policy_parts(le32_to_cpu(entry->region.policy),
					       kdsm_entry_nodes(entry)),
			     KDSM_CHUNK_SIZE);
	}
	*before = &entry->link;
	return KDSM_ARENA_END - base >= size ? base : 0;
}

/* Whether a creator may choose the address: the directory must not give it to other regions. */
static bool kdsm_base_sane(u64 base, u64 size)
{
	u64 end;

	return base && PAGE_ALIGNED(base) && !check_add_overflow(base, size, &end) &&
	       end <= TASK_SIZE_MAX && (end <= KDSM_ARENA_START || base >= KDSM_ARENA_END);
}

static u32 kdsm_find_id(struct kdsm_directory *directory)
{
	/* Do not reuse an id soon: a late put to the old region would reach the new one */
	do
		directory->last_id = directory->last_id % U16_MAX + 1;
	while (kdsm_entry_by_id(directory, directory->last_id));
	return directory->last_id;
}

/* Check the attributes of a request to create a region */
static int kdsm_open_check(const struct kdsm_wire_open *open)
{
	struct kdsm_region_segment segments[KDSM_MAX_SEGMENTS];
	u32 policy = le32_to_cpu(open->policy);

	if (open->flags & cpu_to_le32(KDSM_REGION_CONTIGUOUS) && policy == KDSM_POLICY_PARTITIONED)
		return -EINVAL;
	if (!open->size || le32_to_cpu(open->mode) & ~0777 ||
	    policy < KDSM_POLICY_PARTITIONED || policy > KDSM_POLICY_STRICT ||
	    !kdsm_region_segments(&open->segments, le64_to_cpu(open->size), policy, segments))
		return -EINVAL;
	return le64_to_cpu(open->size) > KDSM_SIZE_MAX ? -EFBIG : 0;
}

/* Make an entry, and start to add the region on all nodes */
static int kdsm_entry_create(struct kdsm_directory *directory,
			     const struct kdsm_wire_open *open, struct kdsm_entry **result)
{
	struct kdsm_cluster *cluster = directory->cluster;
	u32 mode = le32_to_cpu(open->mode) ?: 0600;
	u32 policy = le32_to_cpu(open->policy);
	unsigned int parts = kdsm_policy_parts(policy, cluster->nodes);
	u64 part = kdsm_part_size(open, parts), base;
	struct kdsm_entry *entry;
	struct list_head *before;

	if (list_count_nodes(&directory->entries) >= KDSM_REGIONS_MAX)
		return -ENOSPC;
	base = le64_to_cpu(open->base);
	if (!(open->flags & cpu_to_le32(KDSM_REGION_AT)))
		base = kdsm_find_base(directory, part * parts, &before);
	else if (kdsm_base_sane(base, part * parts))
		before = &directory->entries;
	else
		return -EINVAL;
	if (!base)
		return -ENOSPC;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->cluster = cluster;
	INIT_WORK(&entry->job, kdsm_entry_job);
	entry->opened = bitmap_zalloc(KDSM_MAX_NODES, GFP_KERNEL);
	entry->parts = bitmap_zalloc(KDSM_MAX_NODES, GFP_KERNEL);
	if (!entry->opened || !entry->parts) {
		kdsm_entry_free(entry);
		return -ENOMEM;
	}
	entry->region = (struct kdsm_wire_region) {
		.id = cpu_to_le32(kdsm_find_id(directory)),
		.flags = open->flags & cpu_to_le32(KDSM_REGION_KEEP | KDSM_REGION_CONTIGUOUS),
		.policy = open->policy,
		.segments = open->segments,
		.part_size = cpu_to_le64(part),
		.base = cpu_to_le64(base),
		.nodes = cpu_to_le32(cluster->nodes),
		.mode = cpu_to_le32(mode),
		.uid = open->uid,
		.gid = open->gid,
	};
	strscpy(entry->region.name, open->name, sizeof(entry->region.name));
	list_add_tail(&entry->link, before);
	kdsm_entry_start(entry, KDSM_ENTRY_ADDING);
	*result = entry;
	return 0;
}

/* Whether a program that would create the region with these attributes may open it instead */
static bool kdsm_entry_fits(const struct kdsm_entry *entry,
			    const struct kdsm_wire_open *open)
{
	unsigned int parts = kdsm_policy_parts(le32_to_cpu(open->policy), kdsm_entry_nodes(entry));
	const struct kdsm_wire_segments *segments = &open->segments;

	return segments->count == entry->region.segments.count &&
	       !memcmp(segments->list, entry->region.segments.list,
		       le32_to_cpu(segments->count) * sizeof(segments->list[0])) &&
	       open->policy == entry->region.policy &&
	       (!(open->flags & cpu_to_le32(KDSM_REGION_AT)) || open->base == entry->region.base) &&
	       !((open->flags ^ entry->region.flags) & cpu_to_le32(KDSM_REGION_CONTIGUOUS)) &&
	       kdsm_part_size(open, parts) == le64_to_cpu(entry->region.part_size);
}

/* ---- nodes that are added and removed ---- */

int kdsm_directory_set_nodes(struct kdsm_cluster *cluster, unsigned int nodes)
{
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry;
	int err = 0;

	mutex_lock(&directory->lock);
	list_for_each_entry(entry, &directory->entries, link)
		if (kdsm_entry_nodes(entry) > nodes)
			err = -EBUSY;
	if (!err)
		WRITE_ONCE(cluster->nodes, nodes);
	mutex_unlock(&directory->lock);
	return err;
}

/* ---- nodes that cannot be reached or came up again ---- */

void kdsm_directory_node_down(struct kdsm_cluster *cluster, unsigned int node, bool restarted)
{
	struct kdsm_directory *directory = cluster->directory;

	if (cluster->node != 0)
		return;
	/* Only mark the node: the work or a handler drops its opens and parts */
	set_bit(node, restarted ? directory->restarted : directory->silent);
	if (restarted)
		mod_delayed_work(directory->workqueue, &directory->work, 0);
	else
		queue_delayed_work(directory->workqueue, &directory->work, KDSM_DIRECTORY_RETRY);
}

/* Drop the opens of a node that has been silent for long */
static void kdsm_directory_forget(struct kdsm_directory *directory, unsigned int node)
{
	struct kdsm_entry *entry;

	lockdep_assert_held(&directory->lock);
	list_for_each_entry(entry, &directory->entries, link) {
		__clear_bit(node, entry->opened);
		kdsm_entry_release(entry);
	}
}

/*
 * Drop the opens and parts of nodes that came up again. kdsm_directory_node_down() marked each
 * before the connection that brought its new incarnation was up.
 */
static void kdsm_directory_catch_up(struct kdsm_directory *directory)
{
	struct kdsm_entry *entry;
	unsigned int node;

	lockdep_assert_held(&directory->lock);
	for_each_set_bit(node, directory->restarted, KDSM_MAX_NODES) {
		if (!test_and_clear_bit(node, directory->restarted))
			continue;
		kdsm_directory_forget(directory, node);
		list_for_each_entry(entry, &directory->entries, link) {
			if (entry->state != KDSM_ENTRY_ADDING)
				__clear_bit(node, entry->parts);
			else	/* Either incarnation may have the part */
				entry->err = -EHOSTDOWN;
		}
	}
}

/* Whether the node has a region open, or a part that has to be freed */
static bool kdsm_directory_needs(struct kdsm_directory *directory, unsigned int node)
{
	struct kdsm_entry *entry;

	lockdep_assert_held(&directory->lock);
	list_for_each_entry(entry, &directory->entries, link)
		if (test_bit(node, entry->opened) ||
		    (entry->state == KDSM_ENTRY_LEFT && test_bit(node, entry->parts)))
			return true;
	return false;
}

/* Probe the silent nodes, in parallel, and drop the opens of those that are silent for long */
static void kdsm_directory_probe(struct kdsm_directory *directory)
{
	struct kdsm_cluster *cluster = directory->cluster;
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES);
	unsigned int node;
	int *statuses;

	statuses = kvcalloc(KDSM_MAX_NODES, sizeof(*statuses), GFP_KERNEL);
	if (!statuses)
		return;
	bitmap_copy(nodes, directory->silent, KDSM_MAX_NODES);
	mutex_lock(&directory->lock);
	for_each_set_bit(node, nodes, KDSM_MAX_NODES) {
		if (!kdsm_directory_needs(directory, node)) {
			__clear_bit(node, nodes);
			clear_bit(node, directory->silent);
			directory->asked[node] = 0;
		}
	}
	mutex_unlock(&directory->lock);
	if (kdsm_broadcast(cluster->fabric, nodes, KDSM_MESSAGE_PROBE, NULL, 0, statuses,
			   MAX_SCHEDULE_TIMEOUT, TASK_UNINTERRUPTIBLE))
		goto free;
	mutex_lock(&directory->lock);
	for_each_set_bit(node, nodes, KDSM_MAX_NODES) {
		unsigned long *asked = &directory->asked[node];

		if (!statuses[node]) {
			clear_bit(node, directory->silent);
			*asked = 0;
			continue;
		}
		*asked = *asked ?: jiffies ?: 1;
		if (time_after_eq(jiffies, *asked + READ_ONCE(kdsm_forget_s) * (unsigned long)HZ))
			kdsm_directory_forget(directory, node);
	}
	mutex_unlock(&directory->lock);
free:
	kvfree(statuses);
}

static void kdsm_directory_work(struct work_struct *work)
{
	struct kdsm_directory *directory =
		container_of(work, struct kdsm_directory, work.work);
	struct kdsm_entry *entry;
	bool again = false;

	mutex_lock(&directory->lock);
	kdsm_directory_catch_up(directory);
	mutex_unlock(&directory->lock);
	kdsm_directory_probe(directory);
	mutex_lock(&directory->lock);
	kdsm_directory_catch_up(directory);
	list_for_each_entry(entry, &directory->entries, link) {
		again |= entry->state == KDSM_ENTRY_LEFT;
		if (entry->state == KDSM_ENTRY_LEFT)
			kdsm_entry_start(entry, KDSM_ENTRY_REMOVING);
	}
	again |= !bitmap_empty(directory->silent, KDSM_MAX_NODES);
	mutex_unlock(&directory->lock);
	if (again)
		queue_delayed_work(directory->workqueue, &directory->work, KDSM_DIRECTORY_RETRY);
}

/* ---- handlers ---- */

/* Find or create the entry, held by the caller, and wait until the region exists everywhere */
static int kdsm_entry_open(struct kdsm_directory *directory, unsigned int node,
			   const struct kdsm_wire_open *open, struct kdsm_entry **result,
			   bool *created)
{
	u32 flags = le32_to_cpu(open->flags);
	struct kdsm_entry *entry;
	int err;

	lockdep_assert_held(&directory->lock);
	/* The same errors for all creators, also while another node creates the region */
	err = flags & KDSM_REGION_CREATE ? kdsm_open_check(open) : 0;
	if (err)
		return err;
	entry = kdsm_entry_by_name(directory, open->name);
	if (!entry && !(flags & KDSM_REGION_CREATE))
		return -ENOENT;
	if (entry && node >= kdsm_entry_nodes(entry))
		return -ENXIO;
	if (entry && flags & KDSM_REGION_EXCL)
		return -EEXIST;
	if (entry && flags & KDSM_REGION_CREATE &&
	    !kdsm_entry_fits(entry, open))
		return -EINVAL;
	if ((!entry || kdsm_entry_is_moving(entry)) &&
	    directory->waiters >= KDSM_DIRECTORY_WAITERS)
		return -EBUSY;
	*created = !entry;
	if (!entry) {
		err = kdsm_entry_create(directory, open, &entry);
		if (err)
			return err;
	}
	*result = entry;
	kdsm_entry_hold(entry);
	kdsm_entry_await(entry);
	if (entry->err)
		return entry->err;
	if (entry->state == KDSM_ENTRY_ADDING)
		return -EHOSTDOWN;
	/* Destroyed since the wait */
	return entry->state == KDSM_ENTRY_LIVE ? 0 : -ENOENT;
}

int kdsm_directory_serve_open(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_open *open = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_wire_region *reply = request->reply;
	struct kdsm_entry *entry = NULL;
	bool created = false;
	int err;

	if (cluster->node != 0 || request->length != sizeof(*open) ||
	    !kdsm_region_name_valid(open->name))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&directory->lock);
	kdsm_directory_catch_up(directory);
	err = kdsm_entry_open(directory, request->from, open, &entry, &created);
	if (!err) {
		__set_bit(request->from, entry->opened);
		*reply = entry->region;
		reply->created = cpu_to_le32(created);
		request->reply_length = sizeof(*reply);
	}
	if (entry)
		kdsm_entry_drop(entry);
	mutex_unlock(&directory->lock);
	return err;
}

int kdsm_directory_serve_close(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry;
	int err = -ENOENT;

	if (cluster->node != 0 || request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&directory->lock);
	entry = kdsm_entry_by_id(directory, le32_to_cpu(*(__le32 *)request->data));
	if (entry) {
		/* One of the handlers that wait may be about to open the region for the node. */
		err = entry->state == KDSM_ENTRY_ADDING ||
		      (entry->state == KDSM_ENTRY_LIVE && entry->waiters) ? -EBUSY : 0;
		__clear_bit(request->from, entry->opened);
		kdsm_entry_release(entry);
		kdsm_entry_await_removal(entry);
	}
	mutex_unlock(&directory->lock);
	return err;
}

int kdsm_directory_serve_destroy(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry;
	int err = -ENOENT;

	if (cluster->node != 0 || request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&directory->lock);
	entry = kdsm_entry_by_id(directory, le32_to_cpu(*(__le32 *)request->data));
	if (!entry)
		goto unlock;
	kdsm_entry_hold(entry);
	kdsm_entry_await(entry);
	if (entry->state == KDSM_ENTRY_LIVE) {
		entry->state = KDSM_ENTRY_NAMELESS;
		err = 0;
	}
	kdsm_entry_drop(entry);
	entry = kdsm_entry_by_id(directory, le32_to_cpu(*(__le32 *)request->data));
	if (entry)
		kdsm_entry_await_removal(entry);
unlock:
	mutex_unlock(&directory->lock);
	return err;
}

/* Nodes may get two changes in any order: the number of the change tells which is newer */
static int kdsm_entry_tune(struct kdsm_entry *entry, const struct kdsm_wire_tune *change)
{
	struct kdsm_cluster *cluster = entry->cluster;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_wire_tune wire = {
		.id = entry->region.id,
		.turn = cpu_to_le32(++directory->turn),
		.which = change->which,
		.lease = change->lease,
		.limit = change->limit,
	};
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES);
	int err;

	lockdep_assert_held(&directory->lock);
	bitmap_copy(nodes, entry->parts, KDSM_MAX_NODES);
	mutex_unlock(&directory->lock);
	err = kdsm_tell(cluster->fabric, nodes, KDSM_MESSAGE_TUNED, &wire, sizeof(wire),
			KDSM_DIRECTORY_PATIENCE);
	mutex_lock(&directory->lock);
	return err;
}

int kdsm_directory_serve_tune(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_tune *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry;
	int err;

	if (cluster->node != 0 || request->length != sizeof(*wire) || !kdsm_tune_is_sane(wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&directory->lock);
	entry = kdsm_entry_by_id(directory, le32_to_cpu(wire->id));
	if (!entry || entry->state != KDSM_ENTRY_LIVE) {
		err = -ENOENT;
	} else if (!kdsm_tune_fits(wire, le32_to_cpu(entry->region.policy))) {
		err = -EOPNOTSUPP;
	} else {
		kdsm_entry_hold(entry);
		err = kdsm_entry_tune(entry, wire);
		kdsm_entry_drop(entry);
	}
	mutex_unlock(&directory->lock);
	return err;
}
