// SPDX-License-Identifier: GPL-2.0
/*
 * Costs instead of faults: fixed latencies, and queues at the device and at the CPU of
 * each node, so that simulated time can be measured. See struct sim_cost.
 */
#include <stdio.h>

#include "internal.h"

#define UNITS_PER_NS	16

struct sim_cost sim_cost;
static u64 *busy;			/* by node */
static u64 *device_until, *cpu_until;	/* by node: device and CPU are busy until this time */

bool sim_cost_parse(const char *text)
{
	unsigned int racks, self = 500, near = 700, far = 1000, atomic = 100, message = 1000;
	unsigned int extra = 0;
	char end;
	int n;

	n = sscanf(text, "%u,%u,%u,%u,%u,%u,%u%c", &racks, &self, &near, &far, &atomic,
		   &message, &extra, &end);
	if ((n != 1 && n != 6 && n != 7) || !racks)
		return false;
	sim_cost = (struct sim_cost) {
		.units = 1000 * UNITS_PER_NS,
		.racks = racks,
		.self = self * UNITS_PER_NS,
		.near = near * UNITS_PER_NS,
		.far = far * UNITS_PER_NS,
		.atomic = atomic * UNITS_PER_NS,
		.message = message * UNITS_PER_NS,
		.extra = extra * UNITS_PER_NS,
	};
	return true;
}

u64 sim_cost_latency(unsigned int from, unsigned int to)
{
	if (from == to)
		return sim_cost.self;
	return from * sim_cost.racks / sim.nodes == to * sim_cost.racks / sim.nodes ?
	       sim_cost.near : sim_cost.far;
}

/* Queue work that arrives at time "at". Returns the time at which the device or CPU ends it. */
static u64 queue_until(u64 *until, u64 at, u64 duration)
{
	*until = max(at, *until) + duration;
	return *until;
}

/*
 * Operations start together and land in the order in which their targets do them. This
 * function keeps the time of landing in op->word, and U64_MAX after the landing.
 */
void sim_cost_post(struct kdsm_batch *batch)
{
	unsigned int from = batch->fabric->node;
	struct kdsm_operation *op, *next;
	u64 end = sim_now(), first;

	list_for_each_entry(op, &batch->operations, link)
		op->word = queue_until(&device_until[op->node],
				       sim_now() + sim_latency(from, op->node), sim_cost.atomic);
	for (;;) {
		first = U64_MAX;
		next = NULL;
		list_for_each_entry(op, &batch->operations, link)
			if (op->word < first) {
				first = op->word;
				next = op;
			}
		if (!next)
			break;
		sim_sleep_until(first);
		sim_operate(from, next);
		next->word = U64_MAX;
		end = max(end, first + sim_latency(next->node, from));
	}
	sim_sleep_until(end);
}

void sim_cost_serve(unsigned int node)
{
	busy[node] += sim_cost.message;
	sim_sleep_until(queue_until(&cpu_until[node], sim_now(), sim_cost.message));
}

u64 sim_cost_busy(unsigned int node)
{
	return busy[node];
}

void sim_cost_start(void)
{
	busy = calloc(sim.nodes, sizeof(*busy));
	device_until = calloc(sim.nodes, sizeof(*device_until));
	cpu_until = calloc(sim.nodes, sizeof(*cpu_until));
}

void sim_cost_stop(void)
{
	free(busy);
	free(device_until);
	free(cpu_until);
}
