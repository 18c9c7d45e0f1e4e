// SPDX-License-Identifier: GPL-2.0
/*
 * Events for programs that listen to the multicast group. The layers below report an event by the
 * tracepoint kdsm_event, in any context; a work item sends it. So nothing calls up, and whoever
 * traces the module sees the same events.
 */
#include <linux/hash.h>
#include <linux/kfifo.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "netlink.h"
#include "region/region.h"
#include "trace.h"

/* Events that wait for the work item, at most; a power of two */
#define KDSM_EVENTS_MAX		128
/* Slots for the times of the last events of kinds that KDSM_EVENT_PAUSE limits; log2 */
#define KDSM_EVENT_BITS		6

struct kdsm_event_entry {
	u64 time;		/* of CLOCK_REALTIME, in ns */
	u64 value;
	u32 event;		/* enum kdsm_event */
	u32 node;
	u32 region;		/* 0: none */
	char name[KDSM_NAME_SIZE];	/* of the region; "": not known yet */
};

static DEFINE_KFIFO(kdsm_events, struct kdsm_event_entry, KDSM_EVENTS_MAX);
/* Protects writing to kdsm_events, and the variables below. Raw: probes run without preemption. */
static DEFINE_RAW_SPINLOCK(kdsm_events_lock);
static u64 kdsm_events_missed;
static struct {
	u64 key, time;
} kdsm_events_last[1 << KDSM_EVENT_BITS];

/*
 * Whether an event of the kind was reported for the region within the pause. Two regions with one
 * slot may report more often.
 */
static bool kdsm_event_is_recent(const struct kdsm_event_entry *entry)
{
	u64 key = (u64)entry->event << 32 | entry->region;
	unsigned int slot = hash_64(key, KDSM_EVENT_BITS);

	if (entry->event != KDSM_EVENT_EVICTING && entry->event != KDSM_EVENT_FAULT_FAILED)
		return false;
	if (kdsm_events_last[slot].key == key &&
	    entry->time - kdsm_events_last[slot].time < KDSM_EVENT_PAUSE * NSEC_PER_SEC)
		return true;
	kdsm_events_last[slot].key = key;
	kdsm_events_last[slot].time = entry->time;
	return false;
}

/* ---- sending ---- */

/* An event that has no name of its region. The region may be gone. */
static void kdsm_event_name(struct kdsm_event_entry *entry)
{
	struct kdsm_cluster *cluster = kdsm_cluster_get();
	struct kdsm_region *region;

	if (!cluster)
		return;
	region = kdsm_region_get(cluster, entry->region, cluster->node);
	if (region) {
		strscpy(entry->name, region->name, sizeof(entry->name));
		kdsm_region_put(region);
	}
	kdsm_cluster_put(cluster);
}

/* Whether the event is about a node */
static bool kdsm_event_has_node(u32 event)
{
	return (event >= KDSM_EVENT_CLUSTER_UP && event <= KDSM_EVENT_NODE_RESTARTED) ||
	       event == KDSM_EVENT_BLOCK_LOST || event == KDSM_EVENT_NODE_ADDED ||
	       event == KDSM_EVENT_NODE_REMOVED;
}

static bool kdsm_event_has_value(u32 event)
{
	return event == KDSM_EVENT_MISSED || event == KDSM_EVENT_BLOCK_LOST ||
	       event == KDSM_EVENT_FAULT_FAILED || event == KDSM_EVENT_LOCK_DEAD;
}

static int kdsm_event_fill(struct sk_buff *skb, const struct kdsm_event_entry *entry)
{
	if (nla_put_u32(skb, KDSM_A_EVENT, entry->event) ||
	    kdsm_put_u64(skb, KDSM_A_EVENT_TIME, entry->time) ||
	    (kdsm_event_has_node(entry->event) && nla_put_u32(skb, KDSM_A_NODE_ID, entry->node)) ||
	    (entry->region && nla_put_u32(skb, KDSM_A_REGION_ID, entry->region)) ||
	    (entry->name[0] && nla_put_string(skb, KDSM_A_REGION_NAME, entry->name)) ||
	    (kdsm_event_has_value(entry->event) &&
	     kdsm_put_u64(skb, KDSM_A_EVENT_VALUE, entry->value)))
		return -EMSGSIZE;
	return 0;
}

/* Without memory, listeners miss the event. */
static void kdsm_event_send(struct kdsm_event_entry *entry)
{
	struct sk_buff *skb;
	void *header;

	if (!genl_has_listeners(&kdsm_family, &init_net, 0))
		return;
	if (entry->region && !entry->name[0])
		kdsm_event_name(entry);
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!skb)
		return;
	header = genlmsg_put(skb, 0, 0, &kdsm_family, 0, KDSM_CMD_EVENT);
	if (!header || kdsm_event_fill(skb, entry)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast(&kdsm_family, skb, 0, 0, GFP_KERNEL);
}

static void kdsm_events_work(struct work_struct *work)
{
	struct kdsm_event_entry entry;
	u64 missed;

	while (kfifo_get(&kdsm_events, &entry)) {
		raw_spin_lock_irq(&kdsm_events_lock);
		missed = kdsm_events_missed;
		kdsm_events_missed = 0;
		raw_spin_unlock_irq(&kdsm_events_lock);
		kdsm_event_send(&entry);
		if (!missed)
			continue;
		entry = (struct kdsm_event_entry) {
			.time = ktime_get_real_ns(),
			.event = KDSM_EVENT_MISSED,
			.value = missed,
		};
		kdsm_event_send(&entry);
	}
}

static DECLARE_WORK(kdsm_events_worker, kdsm_events_work);

/* ---- probes ---- */

static void kdsm_event_probe(void *data, unsigned int event, unsigned int node, u32 region,
			     const char *name, u64 value)
{
	struct kdsm_event_entry entry = {
		.time = ktime_get_real_fast_ns(),
		.value = value,
		.event = event,
		.node = node,
		.region = region,
	};
	unsigned long flags;

	strscpy(entry.name, name, sizeof(entry.name));
	raw_spin_lock_irqsave(&kdsm_events_lock, flags);
	if (!kdsm_event_is_recent(&entry) && !kfifo_put(&kdsm_events, entry))
		kdsm_events_missed++;
	raw_spin_unlock_irqrestore(&kdsm_events_lock, flags);
	queue_work(system_unbound_wq, &kdsm_events_worker);
}

static void kdsm_lock_dead_probe(void *data, u32 region, u32 lock, u32 thread)
{
	kdsm_event_probe(NULL, KDSM_EVENT_LOCK_DEAD, 0, region, "", lock);
}

/* A kernel without tracepoints has no events. */
void kdsm_events_init(void)
{
	register_trace_kdsm_event(kdsm_event_probe, NULL);
	register_trace_kdsm_lock_dead(kdsm_lock_dead_probe, NULL);
}

void kdsm_events_exit(void)
{
	unregister_trace_kdsm_lock_dead(kdsm_lock_dead_probe, NULL);
	unregister_trace_kdsm_event(kdsm_event_probe, NULL);
	tracepoint_synchronize_unregister();
	cancel_work_sync(&kdsm_events_worker);
}
