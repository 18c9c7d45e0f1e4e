// SPDX-License-Identifier: GPL-2.0
/* The events of a seed, kept for the report of a failure */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

/* Number of events that the ring keeps, and of events that a failure prints */
#define EVENTS_KEPT	65536
#define EVENTS_PRINTED	60

struct event {
	u64 step, time;
	s64 object;
	unsigned int node;
	char fiber[24];
	char text[160];
};

bool sim_tracing;
static struct event *events;	/* a ring */
static u64 event_count;

void sim_trace_start(void)
{
	sim_tracing = true;
	events = calloc(EVENTS_KEPT, sizeof(*events));
}

static void print(const struct event *event)
{
	char object[32] = "";

	if (event->object >= 0)
		snprintf(object, sizeof(object), "%s %" PRId64 ": ", sim_program.object,
			 (int64_t)event->object);
	printf("%8llu %7llu us  node %u %-16s %s%s\n", event->step, event->time, event->node,
	       event->fiber, object, event->text);
}

void sim_note(s64 object, const char *format, ...)
{
	struct event *event = &events[event_count++ % EVENTS_KEPT];
	va_list args;

	event->step = sim_steps();
	event->time = sim_now();
	event->object = object;
	event->node = sim_fiber_node();
	snprintf(event->fiber, sizeof(event->fiber), "%s", sim_fiber_name());
	va_start(args, format);
	vsnprintf(event->text, sizeof(event->text), format, args);
	va_end(args);
	if (sim_program.options->verbose)
		print(event);
}

/* Whether an event concerns the object. An event without an object concerns all objects. */
static bool concerns(const struct event *event, s64 object)
{
	return object < 0 || event->object < 0 || event->object == object;
}

void sim_trace_tell(s64 object)
{
	u64 i, first = event_count > EVENTS_KEPT ? event_count - EVENTS_KEPT : 0;
	unsigned int n = 0;

	for (i = event_count; i > first && n < EVENTS_PRINTED; i--)
		n += concerns(&events[(i - 1) % EVENTS_KEPT], object);
	for (; i < event_count; i++)
		if (concerns(&events[i % EVENTS_KEPT], object))
			print(&events[i % EVENTS_KEPT]);
}

void sim_fail(s64 object, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	sim_failed(object, what);
}
