// SPDX-License-Identifier: GPL-2.0
/*
 * Reports: what this node tells the others of itself, one message at a time. A report takes no lock
 * for long and allocates nothing, so a peer that asks without end costs this node no more than with
 * other messages.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "lock/lock.h"
#include "region/region.h"
#include "report.h"

/* Locks that one report looks at, at most */
#define KDSM_REPORT_LOCKS_MAX	512

static_assert(sizeof(struct kdsm_wire_node) <= KDSM_MESSAGE_ROOM);
static_assert(sizeof(struct kdsm_wire_latency) <= KDSM_MESSAGE_ROOM);
static_assert(sizeof(struct kdsm_wire_region_use) <= KDSM_MESSAGE_ROOM);
static_assert(sizeof(struct kdsm_wire_lock_use) <= KDSM_MESSAGE_ROOM);

static void kdsm_report_put(__le64 *to, const u64 *from, unsigned int count)
{
	while (count--)
		*to++ = cpu_to_le64(*from++);
}

static int kdsm_report_node(struct kdsm_cluster *cluster, u64 from, struct kdsm_request *request)
{
	u64 sums[KDSM_COHERENCE_COUNT] = {}, stats[KDSM_COHERENCE_COUNT], memory = 0;
	u64 operations[KDSM_STAT_COUNT];
	struct kdsm_wire_node *wire = request->reply;
	unsigned int regions = 0, opens = 0, i;
	struct kdsm_region *region;
	unsigned long id = 0;

	for (; (region = kdsm_region_next(cluster, &id)); id++) {
		regions++;
		opens += READ_ONCE(region->opens);
		memory += kdsm_memory_resident(region->memory);
		if (region->coherence) {
			kdsm_coherence_counters(region->coherence, stats);
			for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
				sums[i] += stats[i];
		}
		kdsm_region_put(region);
	}
	wire->uptime = cpu_to_le64(ktime_get_ns() - cluster->since);
	wire->memory = cpu_to_le64(memory);
	wire->regions = cpu_to_le32(regions);
	wire->opens = cpu_to_le32(opens);
	kdsm_fabric_stats_all(cluster->fabric, operations);
	kdsm_report_put(wire->stats, operations, KDSM_STAT_COUNT);
	kdsm_report_put(wire->coherence, sums, KDSM_COHERENCE_COUNT);
	request->reply_length = sizeof(*wire);
	return 0;
}

static int kdsm_report_latency(struct kdsm_cluster *cluster, u64 from,
			       struct kdsm_request *request)
{
	struct kdsm_wire_latency *wire = request->reply;
	u64 counts[KDSM_LATENCY_CLASSES], sum;

	if (from >= KDSM_LATENCY_COUNT)
		return -EINVAL;
	kdsm_fabric_durations(cluster->fabric, from, &sum, counts);
	wire->sum = cpu_to_le64(sum);
	kdsm_report_put(wire->counts, counts, KDSM_LATENCY_CLASSES);
	request->reply_length = sizeof(*wire);
	return 0;
}

static int kdsm_report_regions(struct kdsm_cluster *cluster, u64 from,
			       struct kdsm_request *request)
{
	struct kdsm_wire_region_use *wire = request->reply;
	u64 stats[KDSM_COHERENCE_COUNT];
	struct kdsm_region *region;
	unsigned long id = from;

	for (; request->reply_length + sizeof(*wire) <= KDSM_MESSAGE_ROOM; id++, wire++) {
		region = kdsm_region_next(cluster, &id);
		if (!region)
			break;
		memset(wire, 0, sizeof(*wire));
		wire->id = cpu_to_le32(region->id);
		wire->opens = cpu_to_le32(READ_ONCE(region->opens));
		wire->resident = cpu_to_le64(kdsm_memory_resident(region->memory));
		if (region->coherence) {
			wire->is_coherent = cpu_to_le64(1);
			kdsm_coherence_counters(region->coherence, stats);
			kdsm_report_put(wire->coherence, stats, KDSM_COHERENCE_COUNT);
		}
		kdsm_region_put(region);
		request->reply_length += sizeof(*wire);
	}
	return 0;
}

/* Describe the lock. The numbers may be of different instants. Returns whether a thread waited. */
static bool kdsm_report_lock(struct kdsm_lock *lock, struct kdsm_wire_lock_use *wire)
{
	u64 locks, handed = 0, passed = 0, waits = 0;
	const u64 *stats = lock->stats;
	unsigned int i;

	if (!READ_ONCE(stats[KDSM_LOCK_STAT_WAITED]))
		return false;
	memset(wire, 0, sizeof(*wire));
	wire->id = cpu_to_le32(lock->locks->region->id);
	wire->number = cpu_to_le32(lock->number);
	wire->kind = cpu_to_le32(lock->kind);
	memcpy(wire->name, lock->name, sizeof(wire->name));
	mutex_lock(&lock->mutex);
	locks = stats[KDSM_LOCK_STAT_LOCKS] + stats[KDSM_LOCK_STAT_FAST] +
		stats[KDSM_LOCK_STAT_READS] + READ_ONCE(lock->mapped->uses) - lock->uses;
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		waits += lock->waits[i];
	for (i = 1; i <= KDSM_LOCK_LEVELS; i++)
		*(i == lock->levels ? &handed : &passed) += lock->handed[i - 1];
	wire->waited = cpu_to_le64(stats[KDSM_LOCK_STAT_WAITED]);
	wire->longest = cpu_to_le64(stats[KDSM_LOCK_STAT_LONGEST]);
	mutex_unlock(&lock->mutex);
	wire->locks = cpu_to_le64(locks);
	wire->waits = cpu_to_le64(waits);
	wire->handed = cpu_to_le64(handed);
	wire->passed = cpu_to_le64(passed);
	return true;
}

/*
 * Report locks of a region from *number on, and set *number to where to go on. Returns whether the
 * reply has room for a lock of the next region.
 */
static bool kdsm_report_locks_of(struct kdsm_region *region, unsigned long *number,
				 unsigned int *budget, struct kdsm_request *request)
{
	struct kdsm_wire_lock_use *wire;
	struct kdsm_lock *lock;

	for (; (lock = xa_find(&region->locks->open, number, KDSM_MAX_LOCKS - 1, XA_PRESENT));
	     ++*number) {
		if (request->reply_length + sizeof(*wire) > KDSM_MESSAGE_ROOM || !*budget)
			return false;
		--*budget;
		wire = request->reply + request->reply_length;
		if (kdsm_report_lock(lock, wire))
			request->reply_length += sizeof(*wire);
	}
	return true;
}

static int kdsm_report_locks(struct kdsm_cluster *cluster, u64 from, struct kdsm_request *request)
{
	unsigned long id = from >> 32, first = id, number = (u32)from;
	unsigned int budget = KDSM_REPORT_LOCKS_MAX;
	struct kdsm_region *region;
	bool is_done = true;

	for (; (region = kdsm_region_next(cluster, &id)); id++) {
		if (id != first)
			number = 0;
		is_done = kdsm_report_locks_of(region, &number, &budget, request);
		kdsm_region_put(region);
		if (!is_done)
			break;
	}
	/* No lock that it looked at has waiters: say where to go on */
	if (!is_done && !request->reply_length) {
		*(__le64 *)request->reply = cpu_to_le64((u64)id << 32 | number);
		request->reply_length = sizeof(__le64);
	}
	return 0;
}

/* By enum kdsm_report: the function that makes the reply, and the lengths that a reply may have */
static const struct kdsm_report_ops {
	int (*make)(struct kdsm_cluster *cluster, u64 from, struct kdsm_request *request);
	unsigned int size;	/* of an entry, in bytes */
	bool is_list;		/* any number of entries */
} kdsm_reports[KDSM_REPORTS] = {
	[KDSM_REPORT_NODE] = { kdsm_report_node, sizeof(struct kdsm_wire_node) },
	[KDSM_REPORT_LATENCY] = { kdsm_report_latency, sizeof(struct kdsm_wire_latency) },
	[KDSM_REPORT_REGIONS] = { kdsm_report_regions, sizeof(struct kdsm_wire_region_use), true },
	[KDSM_REPORT_LOCKS] = { kdsm_report_locks, sizeof(struct kdsm_wire_lock_use), true },
};

int kdsm_report_serve(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_ask *wire = request->data;
	u32 report;

	if (request->length != sizeof(*wire) || wire->reserved)
		return -EINVAL;
	report = le32_to_cpu(wire->report);
	if (report >= KDSM_REPORTS)
		return -EINVAL;
	/* Locks have mutexes, and sums over all CPUs take long */
	if (!request->can_sleep)
		return -EAGAIN;
	return kdsm_reports[report].make(context, le64_to_cpu(wire->from), request);
}

/* ---- asking ---- */

static int kdsm_report_send(struct kdsm_cluster *cluster, const unsigned long *nodes,
			    enum kdsm_report report, u64 from, struct kdsm_reply *replies,
			    unsigned int timeout)
{
	struct kdsm_wire_ask wire = {
		.report = cpu_to_le32(report),
		.from = cpu_to_le64(from),
	};

	return kdsm_inquire(cluster->fabric, nodes, KDSM_MESSAGE_REPORT, &wire, sizeof(wire),
			    replies, msecs_to_jiffies(timeout));
}

/* A peer may send anything. */
static void kdsm_report_check(enum kdsm_report report, struct kdsm_reply *reply)
{
	const struct kdsm_report_ops *ops = &kdsm_reports[report];
	bool is_valid = ops->is_list ? !(reply->length % ops->size) : reply->length == ops->size;

	if (report == KDSM_REPORT_LOCKS && reply->length == sizeof(__le64))
		is_valid = true;
	if (!reply->status && !is_valid)
		reply->status = -EPROTO;
}

struct kdsm_reply *kdsm_report_nodes(struct kdsm_cluster *cluster, unsigned int timeout,
				     unsigned int *count)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	struct kdsm_reply *replies;
	unsigned int i;
	int err;

	/* Nodes may be added and removed meanwhile */
	*count = READ_ONCE(cluster->nodes);
	replies = kvcalloc(*count, sizeof(*replies), GFP_KERNEL);
	if (!replies)
		return ERR_PTR(-ENOMEM);
	bitmap_set(nodes, 0, *count);
	err = kdsm_report_send(cluster, nodes, KDSM_REPORT_NODE, 0, replies, timeout);
	if (err) {
		kvfree(replies);
		return ERR_PTR(err);
	}
	for (i = 0; i < *count; i++)
		kdsm_report_check(KDSM_REPORT_NODE, &replies[i]);
	return replies;
}

int kdsm_report_ask(struct kdsm_cluster *cluster, unsigned int node, enum kdsm_report report,
		    u64 from, struct kdsm_reply *reply, unsigned int timeout)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	int err;

	__set_bit(node, nodes);
	err = kdsm_report_send(cluster, nodes, report, from, reply, timeout);
	if (err)
		return err;
	kdsm_report_check(report, reply);
	return reply->status;
}
