// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Entry points that clang calls for loops and sections. Bounds are inclusive. Each function exists
 * for loops of int32_t, uint32_t, int64_t and uint64_t.
 */
#include "kmpc.h"

/* Schedules, as clang numbers them */
enum {
	STATIC_CHUNKED = 33, STATIC, DYNAMIC, GUIDED, RUNTIME, AUTO, STATIC_STEAL = 44,
	STATIC_BALANCED = 45,
	ORDERED = 32,		/* added to one of the others */
	DISTRIBUTE_CHUNKED = 91, DISTRIBUTE = 92,
};

#define MODIFIERS	(3 << 29)	/* monotonic and nonmonotonic */

/* Number of iterations from first to last, both of the type of the loop */
#define COUNT(first, last, step) \
	((step) > 0 ? \
	 ((first) > (last) ? 0 : ((uint64_t)(last) - (uint64_t)(first)) / (uint64_t)(step) + 1) : \
	 ((first) < (last) ? 0 : ((uint64_t)(first) - (uint64_t)(last)) / -(uint64_t)(step) + 1))

/* ---- static schedules: each thread computes its share ---- */

/* Bounds of a loop as offsets from its first iteration, in iterations */
struct range {
	uint64_t begin, end, stride;
	bool last;
};

static struct range share_of(const struct ko_thread *thread, int32_t schedule, uint64_t count,
			     uint64_t chunk)
{
	uint64_t size = thread->team->size, number = thread->number, share;
	struct range range = { .stride = count };

	if (schedule == STATIC_CHUNKED) {
		if (!chunk)
			chunk = 1;
		range.begin = chunk * number;
		range.end = range.begin + chunk;
		range.stride = chunk * size;
		range.last = count && (count - 1) / chunk % size == number;
		return range;
	}
	if (schedule == STATIC_BALANCED && chunk > 1) {
		share = (count / size + (count % size != 0) + chunk - 1) / chunk * chunk;
		range.begin = share * number < count ? share * number : count;
		range.end = count - range.begin < share ? count : range.begin + share;
	} else {
		ko_loop_share(thread, count, &range.begin, &range.end);
	}
	range.last = range.begin < range.end && range.end == count;
	return range;
}

/*
 * A thread without iterations gets an upper bound below the lower one, so both must not wrap
 * around: lower is then the bound behind the loop.
 */
#define STATIC_INIT(suffix, type, stype) \
	KO_PUBLIC void __kmpc_for_static_init_##suffix(KMPC_CALLER, \
			int32_t schedule, int32_t *last, type *lower, type *upper, \
			stype *stride, stype step, stype chunk) \
	{ \
		const struct ko_thread *thread = ko_self(); \
		type from = *lower, to = *upper; \
		uint64_t count = COUNT(from, to, step); \
		struct range range; \
		\
		schedule &= ~MODIFIERS; \
		if (last) \
			*last = false; \
		if (!count) { \
			*stride = step; \
			return; \
		} \
		if (schedule == DISTRIBUTE || schedule == DISTRIBUTE_CHUNKED) { \
			/* There is one team. */ \
			if (last) \
				*last = true; \
			*stride = count * step; \
			return; \
		} \
		if (schedule != STATIC && schedule != STATIC_CHUNKED && \
		    schedule != STATIC_BALANCED) \
			ko_fatal("%s with schedule %d is not supported", __func__, schedule); \
		range = share_of(thread, schedule, count, chunk > 0 ? chunk : 0); \
		*stride = range.stride * step; \
		if (last) \
			*last = range.last; \
		if (range.begin >= range.end || range.begin >= count) { \
			*lower = to + (step > 0 ? 1 : -1); \
			*upper = to; \
			return; \
		} \
		*lower = from + range.begin * step; \
		*upper = from + (range.end - 1) * step; \
	}

STATIC_INIT(4, int32_t, int32_t)
STATIC_INIT(4u, uint32_t, int32_t)
STATIC_INIT(8, int64_t, int64_t)
STATIC_INIT(8u, uint64_t, int64_t)

KO_PUBLIC void __kmpc_for_static_fini(KMPC_CALLER)
{
}

/* ---- other schedules: threads ask for chunks ---- */

static void begin(int32_t schedule, uint64_t start, int64_t step, uint64_t count, int64_t chunk)
{
	struct ko_thread *thread = ko_self();
	uint64_t size = chunk > 0 ? chunk : 0;
	uint32_t kind = KO_STATIC;
	bool ordered;

	schedule &= ~MODIFIERS;
	ordered = schedule >= ORDERED + STATIC_CHUNKED && schedule <= ORDERED + AUTO;
	if (ordered)
		schedule -= ORDERED;
	switch (schedule) {
	case STATIC_CHUNKED:
		break;
	case STATIC:
	case STATIC_BALANCED:
	case STATIC_STEAL:
	case AUTO:
		size = 0;
		break;
	case DYNAMIC:
		kind = KO_DYNAMIC;
		break;
	case GUIDED:
		kind = KO_GUIDED;
		break;
	case RUNTIME:
		kind = thread->task->icv.kind;
		size = thread->task->icv.chunk;
		break;
	default:
		ko_fatal("__kmpc_dispatch_init with schedule %d is not supported", schedule);
	}
	ko_loop_begin(thread, kind, size, count, ordered);
	thread->loop.start = start;
	thread->loop.step = step;
}

/* Returns whether there is a chunk. After the last chunk the thread has left the loop. */
static bool next(int32_t *last, uint64_t *lower, uint64_t *upper, int64_t *stride)
{
	struct ko_thread *thread = ko_self();
	const struct ko_loop *loop = &thread->loop;

	if (!ko_loop_next(thread)) {
		ko_loop_end(thread);
		return false;
	}
	*lower = loop->start + loop->begin * loop->step;
	*upper = loop->start + (loop->end - 1) * loop->step;
	*stride = loop->step;
	if (last)
		*last = loop->end == loop->count;
	return true;
}

#define DISPATCH(suffix, type, stype) \
	KO_PUBLIC void __kmpc_dispatch_init_##suffix(KMPC_CALLER, \
			int32_t schedule, type lower, type upper, stype step, stype chunk) \
	{ \
		begin(schedule, lower, step, COUNT(lower, upper, step), chunk); \
	} \
	KO_PUBLIC int32_t __kmpc_dispatch_next_##suffix(KMPC_CALLER, \
			int32_t *last, type *lower, type *upper, stype *stride) \
	{ \
		uint64_t from, to; \
		int64_t step; \
		\
		if (!next(last, &from, &to, &step)) \
			return 0; \
		*lower = from; \
		*upper = to; \
		*stride = step; \
		return 1; \
	} \
	/* The end of a chunk with ordered regions: __kmpc_dispatch_next() passes the turn. */ \
	KO_PUBLIC void __kmpc_dispatch_fini_##suffix(KMPC_CALLER) \
	{ \
	}

DISPATCH(4, int32_t, int32_t)
DISPATCH(4u, uint32_t, int32_t)
DISPATCH(8, int64_t, int64_t)
DISPATCH(8u, uint64_t, int64_t)

KO_PUBLIC void __kmpc_ordered(KMPC_CALLER)
{
	ko_ordered_begin(ko_self());
}

KO_PUBLIC void __kmpc_end_ordered(KMPC_CALLER)
{
	ko_ordered_end(ko_self());
}
