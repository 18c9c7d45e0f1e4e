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
 * A node that cannot be reached may come back with all regions that it had open, so node 0
 * keeps its opens for a minute. A node that came up again has no region open.
 *
 * No cycle of waiting exists: nodes wait for node 0 with their open_lock held, node 0 waits
 * for nodes with the directory's lock held, and the handlers that node 0 waits for (add,
 * remove) take neither lock.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/*
 * Addresses of regions, the same in every program. They lie above the addresses that the
 * loader uses for position-independent programs with sanitizers, and below the stacks of
 * such programs.
 */
#define KDSM_ARENA_START	0x200000000000ULL
#define KDSM_ARENA_END		0x500000000000ULL
/* Upper bound of the number of regions of a cluster */
#define KDSM_REGIONS_MAX	4096

/*
 * Interval between probes of a silent node, and duration of silence after which node 0 drops
 * the opens of that node; both in jiffies
 */
#define KDSM_DIRECTORY_RETRY	(5 * HZ)
#define KDSM_DIRECTORY_FORGET	(60 * HZ)

/* A region in the directory */
struct kdsm_entry {
	struct list_head link;		/* ordered by base */
	struct kdsm_wire_region region;
	bool unlinked;			/* destroyed or unused; has no name any more */
	unsigned long *opened;		/* nodes that have the region open */
	unsigned long *parts;		/* nodes that hold a part */
};

struct kdsm_directory {
	struct kdsm_cluster *cluster;
	struct mutex lock;	/* protects entries and last_id; held during messages to nodes */
	struct list_head entries;
	u32 last_id;
	/* Bits by node, set and cleared atomically, without lock: */
	unsigned long *restarted;	/* came up again: their earlier opens and parts are void */
	unsigned long *silent;	/* did not answer */
	/* Used by work only: jiffies of the first unanswered probe, by node; or 0 */
	unsigned long *asked;
	struct delayed_work work;
};

static void kdsm_directory_work(struct work_struct *work);

int kdsm_directory_init(struct kdsm_cluster *cluster)
{
	struct kdsm_directory *directory = kzalloc(sizeof(*directory), GFP_KERNEL);

	if (!directory)
		return -ENOMEM;
	cluster->directory = directory;
	directory->cluster = cluster;
	mutex_init(&directory->lock);
	/* Avoid the ids of an earlier directory, whose regions nodes may still have open */
	directory->last_id = get_random_u16();
	INIT_LIST_HEAD(&directory->entries);
	INIT_DELAYED_WORK(&directory->work, kdsm_directory_work);
	directory->restarted = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	directory->silent = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	directory->asked = kvcalloc(cluster->nodes, sizeof(*directory->asked), GFP_KERNEL);
	if (directory->restarted && directory->silent && directory->asked)
		return 0;
	kdsm_directory_exit(cluster);
	return -ENOMEM;
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

	cancel_delayed_work_sync(&directory->work);
	list_for_each_entry_safe(entry, next, &directory->entries, link)
		kdsm_entry_free(entry);
	bitmap_free(directory->restarted);
	bitmap_free(directory->silent);
	kvfree(directory->asked);
	kfree(directory);
}

/* ---- telling the nodes ---- */

/* Have the nodes free their parts. Returns true if no node holds a part any more. */
static bool kdsm_entry_remove(struct kdsm_cluster *cluster, struct kdsm_entry *entry)
{
	struct kdsm_directory *directory = cluster->directory;
	unsigned int node;
	int err;

	for_each_set_bit(node, entry->parts, cluster->nodes) {
		/* Do not wait for a silent node with the lock held: the work probes it */
		if (test_bit(node, directory->silent))
			continue;
		err = kdsm_message(cluster->fabric, node, KDSM_MESSAGE_REMOVE,
				   &entry->region.id, sizeof(entry->region.id), NULL, NULL);
		if (kdsm_message_was_heard(err))
			__clear_bit(node, entry->parts);
		else
			set_bit(node, directory->silent);
	}
	return bitmap_empty(entry->parts, cluster->nodes);
}

/* Have every node create its part. After an error, the nodes free the parts again. */
static int kdsm_entry_add(struct kdsm_cluster *cluster, struct kdsm_entry *entry)
{
	unsigned int node;
	int err;

	for (node = 0; node < cluster->nodes; node++) {
		err = kdsm_message(cluster->fabric, node, KDSM_MESSAGE_ADD,
				   &entry->region, sizeof(entry->region), NULL, NULL);
		/* A node that did not answer may have added the region all the same */
		if (!err || !kdsm_message_was_heard(err))
			__set_bit(node, entry->parts);
		if (err) {
			kdsm_entry_remove(cluster, entry);
			return err == -EIO ? -EHOSTDOWN : err;
		}
	}
	return 0;
}

/*
 * Remove the region if no node has it open and it is not kept. The work repeats the removal for
 * nodes that do not answer. Caller holds directory->lock.
 */
static void kdsm_entry_release(struct kdsm_cluster *cluster, struct kdsm_entry *entry)
{
	bool kept = le32_to_cpu(entry->region.flags) & KDSM_REGION_KEEP;

	lockdep_assert_held(&cluster->directory->lock);
	if (!bitmap_empty(entry->opened, cluster->nodes) || (kept && !entry->unlinked))
		return;
	entry->unlinked = true;
	if (!kdsm_entry_remove(cluster, entry)) {
		schedule_delayed_work(&cluster->directory->work, KDSM_DIRECTORY_RETRY);
		return;
	}
	list_del(&entry->link);
	kdsm_entry_free(entry);
}

/* ---- entries ---- */

static struct kdsm_entry *kdsm_entry_by_name(struct kdsm_directory *directory,
					     const char *name)
{
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link)
		if (!entry->unlinked && !strcmp(entry->region.name, name))
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

static u64 kdsm_part_size(u64 size, unsigned int nodes, u32 block_size)
{
	u64 part = ALIGN(DIV_ROUND_UP_ULL(size, nodes), max_t(u64, block_size, PAGE_SIZE));

	return part < KDSM_CHUNK_SIZE ? part : ALIGN(part, KDSM_CHUNK_SIZE);
}

/*
 * Find an address for size bytes: the first fit, in units of chunks. The list is ordered by
 * base, and the caller inserts the new entry before *before. Returns 0 if there is no room.
 */
static u64 kdsm_find_base(struct kdsm_directory *directory, u64 size, unsigned int nodes,
			  struct list_head **before)
{
	u64 base = KDSM_ARENA_START;
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link) {
		u64 start = le64_to_cpu(entry->region.base);

		if (start - base >= size)
			break;
		base = ALIGN(start + le64_to_cpu(entry->region.part_size) *
			     kdsm_policy_parts(le32_to_cpu(entry->region.policy), nodes),
			     KDSM_CHUNK_SIZE);
	}
	*before = &entry->link;
	return KDSM_ARENA_END - base >= size ? base : 0;
}

static u32 kdsm_find_id(struct kdsm_directory *directory)
{
	/* Do not reuse an id soon: a late notice for the old region would reach the new one */
	do
		directory->last_id = directory->last_id % U16_MAX + 1;
	while (kdsm_entry_by_id(directory, directory->last_id));
	return directory->last_id;
}

static int kdsm_entry_create(struct kdsm_cluster *cluster, const struct kdsm_wire_open *open,
			     struct kdsm_entry **result)
{
	struct kdsm_directory *directory = cluster->directory;
	u32 block_size = le32_to_cpu(open->block_size) ?: 4096;
	u32 mode = le32_to_cpu(open->mode) ?: 0600;
	u32 policy = le32_to_cpu(open->policy);
	unsigned int parts = kdsm_policy_parts(policy, cluster->nodes);
	u64 size = le64_to_cpu(open->size), part, base;
	struct kdsm_entry *entry;
	struct list_head *before;
	int err, tries = 16;

	if (!size || !is_power_of_2(block_size) || block_size < 4096 ||
	    block_size > KDSM_CHUNK_SIZE || mode & ~0777 ||
	    policy < KDSM_POLICY_PARTITIONED || policy > KDSM_POLICY_STRICT)
		return -EINVAL;
	if (size > KDSM_SIZE_MAX)
		return -EFBIG;
	if (list_count_nodes(&directory->entries) >= KDSM_REGIONS_MAX)
		return -ENOSPC;
	part = kdsm_part_size(size, parts, block_size);
	base = kdsm_find_base(directory, part * parts, cluster->nodes, &before);
	if (!base)
		return -ENOSPC;

	entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	entry->opened = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	entry->parts = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	if (!entry->opened || !entry->parts) {
		kdsm_entry_free(entry);
		return -ENOMEM;
	}
	entry->region = (struct kdsm_wire_region) {
		.flags = open->flags & cpu_to_le32(KDSM_REGION_KEEP),
		.policy = open->policy,
		.block_size = cpu_to_le32(block_size),
		.part_size = cpu_to_le64(part),
		.base = cpu_to_le64(base),
		.mode = cpu_to_le32(mode),
		.uid = open->uid,
		.gid = open->gid,
	};
	strscpy(entry->region.name, open->name, sizeof(entry->region.name));
	list_add_tail(&entry->link, before);
	do {
		entry->region.id = cpu_to_le32(kdsm_find_id(directory));
		err = kdsm_entry_add(cluster, entry);
	} while (err == -EEXIST && bitmap_empty(entry->parts, cluster->nodes) && tries--);
	if (err) {
		entry->unlinked = true;
		kdsm_entry_release(cluster, entry);
		return err == -EEXIST ? -ENOSPC : err;
	}
	*result = entry;
	return 0;
}

/* Whether a program that would create the region with these attributes may open it instead */
static bool kdsm_entry_fits(const struct kdsm_cluster *cluster,
			    const struct kdsm_entry *entry,
			    const struct kdsm_wire_open *open)
{
	u32 block_size = le32_to_cpu(open->block_size) ?: 4096;
	u64 size = le64_to_cpu(open->size);

	return size && size <= KDSM_SIZE_MAX && is_power_of_2(block_size) &&
	       block_size == le32_to_cpu(entry->region.block_size) &&
	       open->policy == entry->region.policy &&
	       kdsm_part_size(size, kdsm_policy_parts(le32_to_cpu(open->policy),
						      cluster->nodes), block_size) ==
		       le64_to_cpu(entry->region.part_size);
}

/* ---- nodes that cannot be reached or came up again ---- */

void kdsm_directory_node_down(struct kdsm_cluster *cluster, unsigned int node, bool restarted)
{
	struct kdsm_directory *directory = cluster->directory;

	if (cluster->node != 0)
		return;
	/* Only mark the node: the lock's holder may be waiting for the caller */
	set_bit(node, restarted ? directory->restarted : directory->silent);
	if (restarted)
		mod_delayed_work(system_wq, &directory->work, 0);
	else
		schedule_delayed_work(&directory->work, KDSM_DIRECTORY_RETRY);
}

/* Drop the opens of a node and, if set, its parts. Caller holds directory->lock. */
static void kdsm_directory_drop(struct kdsm_cluster *cluster, unsigned int node, bool parts)
{
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry, *next;

	lockdep_assert_held(&directory->lock);
	list_for_each_entry_safe(entry, next, &directory->entries, link) {
		if (parts)
			__clear_bit(node, entry->parts);
		__clear_bit(node, entry->opened);
		kdsm_entry_release(cluster, entry);
	}
}

/*
 * Drop the opens and parts of a node that came up again. kdsm_directory_node_down() marked the
 * node before the connection that brought its new incarnation was up. Caller holds
 * directory->lock.
 */
static void kdsm_directory_catch_up(struct kdsm_cluster *cluster, unsigned int node)
{
	if (test_and_clear_bit(node, cluster->directory->restarted))
		kdsm_directory_drop(cluster, node, true);
}

/* Whether the node has a region open, or a part that has to be freed */
static bool kdsm_directory_needs(struct kdsm_directory *directory, unsigned int node)
{
	struct kdsm_entry *entry;
	bool needs = false;

	mutex_lock(&directory->lock);
	list_for_each_entry(entry, &directory->entries, link)
		needs |= test_bit(node, entry->opened) ||
			 (entry->unlinked && test_bit(node, entry->parts));
	mutex_unlock(&directory->lock);
	return needs;
}

/* Probe a silent node. Returns whether it has been silent for KDSM_DIRECTORY_FORGET. */
static bool kdsm_directory_ask(struct kdsm_cluster *cluster, unsigned int node)
{
	struct kdsm_directory *directory = cluster->directory;
	unsigned long *asked = &directory->asked[node];

	if (!kdsm_directory_needs(directory, node) ||
	    !kdsm_message(cluster->fabric, node, KDSM_MESSAGE_PROBE, NULL, 0, NULL, NULL)) {
		clear_bit(node, directory->silent);
		*asked = 0;
		return false;
	}
	if (!*asked)
		*asked = jiffies ?: 1;
	return time_after_eq(jiffies, *asked + KDSM_DIRECTORY_FORGET);
}

static bool kdsm_directory_is_waiting(const struct kdsm_directory *directory)
{
	struct kdsm_entry *entry;

	list_for_each_entry(entry, &directory->entries, link)
		if (entry->unlinked)
			return true;
	return false;
}

static void kdsm_directory_work(struct work_struct *work)
{
	struct kdsm_directory *directory =
		container_of(work, struct kdsm_directory, work.work);
	struct kdsm_cluster *cluster = directory->cluster;
	struct kdsm_entry *entry, *next;
	unsigned int node;
	bool again;

	for_each_set_bit(node, directory->silent, cluster->nodes) {
		if (!kdsm_directory_ask(cluster, node))
			continue;
		mutex_lock(&directory->lock);
		kdsm_directory_drop(cluster, node, false);
		mutex_unlock(&directory->lock);
	}
	mutex_lock(&directory->lock);
	for_each_set_bit(node, directory->restarted, cluster->nodes)
		kdsm_directory_catch_up(cluster, node);
	list_for_each_entry_safe(entry, next, &directory->entries, link)
		if (entry->unlinked)
			kdsm_entry_release(cluster, entry);
	again = kdsm_directory_is_waiting(directory) ||
		!bitmap_empty(directory->silent, cluster->nodes);
	mutex_unlock(&directory->lock);
	if (again)
		schedule_delayed_work(&directory->work, KDSM_DIRECTORY_RETRY);
}

/* ---- handlers ---- */

int kdsm_directory_serve_open(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_open *open = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_wire_region *reply = request->reply;
	struct kdsm_entry *entry;
	bool created = false;
	u32 flags;
	int err = 0;

	if (cluster->node != 0 || request->length != sizeof(*open) ||
	    !kdsm_region_name_valid(open->name))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	flags = le32_to_cpu(open->flags);
	mutex_lock(&directory->lock);
	kdsm_directory_catch_up(cluster, request->from);
	entry = kdsm_entry_by_name(directory, open->name);
	if (!entry && !(flags & KDSM_REGION_CREATE)) {
		err = -ENOENT;
	} else if (!entry) {
		err = kdsm_entry_create(cluster, open, &entry);
		created = true;
	} else if (flags & KDSM_REGION_EXCL) {
		err = -EEXIST;
	} else if (flags & KDSM_REGION_CREATE && !kdsm_entry_fits(cluster, entry, open)) {
		err = -EINVAL;
	}
	if (!err) {
		__set_bit(request->from, entry->opened);
		*reply = entry->region;
		reply->created = cpu_to_le32(created);
		request->reply_length = sizeof(*reply);
	}
	mutex_unlock(&directory->lock);
	return err;
}

int kdsm_directory_serve_close(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_entry *entry;

	if (cluster->node != 0 || request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&cluster->directory->lock);
	entry = kdsm_entry_by_id(cluster->directory, le32_to_cpu(*(__le32 *)request->data));
	if (entry) {
		__clear_bit(request->from, entry->opened);
		kdsm_entry_release(cluster, entry);
	}
	mutex_unlock(&cluster->directory->lock);
	return entry ? 0 : -ENOENT;
}

int kdsm_directory_serve_destroy(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	struct kdsm_entry *entry;
	int err = -ENOENT;

	if (cluster->node != 0 || request->length != sizeof(__le32))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&cluster->directory->lock);
	entry = kdsm_entry_by_id(cluster->directory, le32_to_cpu(*(__le32 *)request->data));
	if (entry && !entry->unlinked) {
		entry->unlinked = true;
		kdsm_entry_release(cluster, entry);
		err = 0;
	}
	mutex_unlock(&cluster->directory->lock);
	return err;
}

int kdsm_directory_serve_tune(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_tune *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_directory *directory = cluster->directory;
	struct kdsm_entry *entry;
	unsigned int node;
	int err = 0, told;

	if (cluster->node != 0 || request->length != sizeof(*wire) ||
	    le64_to_cpu(wire->lease) > KDSM_LEASE_MAX)
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	mutex_lock(&directory->lock);
	entry = kdsm_entry_by_id(directory, le32_to_cpu(wire->id));
	if (!entry || entry->unlinked)
		err = -ENOENT;
	else if (entry->region.policy != cpu_to_le32(KDSM_POLICY_STRICT))
		err = -EOPNOTSUPP;
	/* kdsm_region_serve_tuned() takes no lock that a task may hold while it waits for node 0 */
	for (node = 0; node < cluster->nodes && (!err || err == -EHOSTDOWN); node++) {
		if (!test_bit(node, entry->parts))
			continue;
		told = kdsm_message(cluster->fabric, node, KDSM_MESSAGE_TUNED, wire,
				    sizeof(*wire), NULL, NULL);
		/* Go on and tell the other nodes */
		if (told)
			err = kdsm_message_was_heard(told) ? told : -EHOSTDOWN;
	}
	mutex_unlock(&directory->lock);
	return err;
}
