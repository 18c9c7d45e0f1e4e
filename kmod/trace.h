/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints of the module, in /sys/kernel/tracing/events/kdsm/ */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdsm

#if !defined(KDSM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KDSM_TRACE_H

#include <kdsm/uapi_netlink.h>
#include <linux/ktime.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

/* A connection changed its state: enum kdsm_connection_state. */
TRACE_EVENT(kdsm_connection,
	TP_PROTO(unsigned int node, unsigned int queue, bool accepted,
		 unsigned int from, unsigned int to),
	TP_ARGS(node, queue, accepted, from, to),
	TP_STRUCT__entry(
		__field(unsigned int, node)
		__field(unsigned int, queue)
		__field(bool, accepted)
		__field(unsigned int, from)
		__field(unsigned int, to)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->queue = queue;
		__entry->accepted = accepted;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("node=%u queue=%u %s state=%u->%u", __entry->node, __entry->queue,
		  __entry->accepted ? "accepted" : "made", __entry->from, __entry->to)
);

/* This node posts an operation on a peer. opcode: enum kdsm_opcode; length in bytes. */
TRACE_EVENT(kdsm_operation,
	TP_PROTO(unsigned int node, unsigned int opcode, u32 id, u64 offset,
		 unsigned int length),
	TP_ARGS(node, opcode, id, offset, length),
	TP_STRUCT__entry(
		__field(unsigned int, node)
		__field(unsigned int, opcode)
		__field(u32, id)
		__field(u64, offset)
		__field(unsigned int, length)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->opcode = opcode;
		__entry->id = id;
		__entry->offset = offset;
		__entry->length = length;
	),
	TP_printk("node=%u opcode=%u memory=%u offset=0x%llx length=%u", __entry->node,
		  __entry->opcode, __entry->id, __entry->offset, __entry->length)
);

/* This node sends a request to a peer. type: enum kdsm_message_type; length in bytes. */
TRACE_EVENT(kdsm_message,
	TP_PROTO(unsigned int node, unsigned int type, unsigned int length),
	TP_ARGS(node, type, length),
	TP_STRUCT__entry(
		__field(unsigned int, node)
		__field(unsigned int, type)
		__field(unsigned int, length)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->type = type;
		__entry->length = length;
	),
	TP_printk("node=%u type=%u length=%u", __entry->node, __entry->type,
		  __entry->length)
);

/* This node served a request of a peer. status: of the reply, 0 or -errno. */
TRACE_EVENT(kdsm_serve,
	TP_PROTO(unsigned int node, unsigned int type, int status),
	TP_ARGS(node, type, status),
	TP_STRUCT__entry(
		__field(unsigned int, node)
		__field(unsigned int, type)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->node = node;
		__entry->type = type;
		__entry->status = status;
	),
	TP_printk("node=%u type=%u status=%d", __entry->node, __entry->type,
		  __entry->status)
);

/* This node and another wrote the same bytes of a word: see struct kdsm_race. */
TRACE_EVENT(kdsm_race,
	TP_PROTO(u32 region, u64 offset, u64 mask, unsigned int other),
	TP_ARGS(region, offset, mask, other),
	TP_STRUCT__entry(
		__field(u32, region)
		__field(u64, offset)
		__field(u64, mask)
		__field(unsigned int, other)
	),
	TP_fast_assign(
		__entry->region = region;
		__entry->offset = offset;
		__entry->mask = mask;
		__entry->other = other;
	),
	TP_printk("region=%u offset=%llu mask=%llx other=%u", __entry->region,
		  __entry->offset, __entry->mask, __entry->other)
);

/*
 * This node wants a lock that is elsewhere, for this many threads; again each time that the module
 * looks what there is to do.
 */
TRACE_EVENT(kdsm_lock_enter,
	TP_PROTO(u32 region, u32 lock, unsigned int threads),
	TP_ARGS(region, lock, threads),
	TP_STRUCT__entry(
		__field(u32, region)
		__field(u32, lock)
		__field(unsigned int, threads)
	),
	TP_fast_assign(
		__entry->region = region;
		__entry->lock = lock;
		__entry->threads = threads;
	),
	TP_printk("region=%u lock=%u threads=%u", __entry->region, __entry->lock,
		  __entry->threads)
);

/* A thread got a lock. since: start of its wait, in ns of ktime; waited: in ns. */
TRACE_EVENT(kdsm_lock_grant,
	TP_PROTO(u32 region, u32 lock, u32 thread, u64 since),
	TP_ARGS(region, lock, thread, since),
	TP_STRUCT__entry(
		__field(u32, region)
		__field(u32, lock)
		__field(u32, thread)
		__field(u64, waited)
	),
	TP_fast_assign(
		__entry->region = region;
		__entry->lock = lock;
		__entry->thread = thread;
		__entry->waited = ktime_get_ns() - since;
	),
	TP_printk("region=%u lock=%u thread=%u waited=%llu", __entry->region, __entry->lock,
		  __entry->thread, __entry->waited)
);

/*
 * No thread of this node has the lock: none wants it, or the quota is used up. state: enum
 * kdsm_turn_state, which says whether this node keeps the lock, or how the lock leaves.
 */
TRACE_EVENT(kdsm_lock_leave,
	TP_PROTO(u32 region, u32 lock, unsigned int state),
	TP_ARGS(region, lock, state),
	TP_STRUCT__entry(
		__field(u32, region)
		__field(u32, lock)
		__field(unsigned int, state)
	),
	TP_fast_assign(
		__entry->region = region;
		__entry->lock = lock;
		__entry->state = state;
	),
	TP_printk("region=%u lock=%u state=%u", __entry->region, __entry->lock,
		  __entry->state)
);

/* A thread died while it had a lock. */
TRACE_EVENT(kdsm_lock_dead,
	TP_PROTO(u32 region, u32 lock, u32 thread),
	TP_ARGS(region, lock, thread),
	TP_STRUCT__entry(
		__field(u32, region)
		__field(u32, lock)
		__field(u32, thread)
	),
	TP_fast_assign(
		__entry->region = region;
		__entry->lock = lock;
		__entry->thread = thread;
	),
	TP_printk("region=%u lock=%u thread=%u", __entry->region, __entry->lock,
		  __entry->thread)
);

/*
 * An event of enum kdsm_event (<kdsm/uapi_netlink.h>); netlink_events.c sends it to programs.
 * node, region and value: 0 where they have no meaning; name: of the region, or "".
 */
TRACE_EVENT(kdsm_event,
	TP_PROTO(unsigned int event, unsigned int node, u32 region, const char *name,
		 u64 value),
	TP_ARGS(event, node, region, name, value),
	TP_STRUCT__entry(
		__field(unsigned int, event)
		__field(unsigned int, node)
		__field(u32, region)
		__array(char, name, KDSM_NAME_SIZE)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->event = event;
		__entry->node = node;
		__entry->region = region;
		strscpy(__entry->name, name, KDSM_NAME_SIZE);
		__entry->value = value;
	),
	TP_printk("event=%u node=%u region=%u name=%s value=%llu", __entry->event,
		  __entry->node, __entry->region, __entry->name, __entry->value)
);

#endif /* KDSM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
