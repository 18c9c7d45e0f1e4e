// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Uses of the time of the workers of a virtual run.
 *
 * A worker without a task waits for what the program of its node does: other nodes, a
 * collection, or a serial part of the program. So a node counts the time of each phase of its
 * program, and a worker that has waited takes its share from the differences.
 */
#include <string.h>

#include "virtual/internal.h"

/* Shares of a worker that waits, by phase of its node */
static const enum kdsm_virtual_share idle[KD_PHASES] = {
	[KD_PHASE_SERIAL] = KDSM_VIRTUAL_SERIAL,
	[KD_PHASE_TASKS] = KDSM_VIRTUAL_WAITING,
	[KD_PHASE_BARRIER] = KDSM_VIRTUAL_BARRIER,
	[KD_PHASE_COLLECT] = KDSM_VIRTUAL_COLLECTION,
};

/* The times of all phases up to now */
static void phases(const struct kd_simulated *node, uint64_t now, uint64_t *to)
{
	memcpy(to, node->phases, sizeof(node->phases));
	if (now > node->phase_began)
		to[node->phase] += now - node->phase_began;
}

enum kd_phase kd_times_phase(struct kd_simulated *node, uint64_t now, enum kd_phase phase)
{
	enum kd_phase former = node->phase;

	/* a collection waits for other nodes, too */
	if (former == KD_PHASE_COLLECT && phase == KD_PHASE_BARRIER)
		return former;
	phases(node, now, node->phases);
	if (now > node->phase_began)
		node->phase_began = now;
	node->phase = phase;
	return former;
}

void kd_times_worker(struct kd_coroutine *c)
{
	c->worker = true;
	c->counted = c->clock;
	phases(c->node, c->clock, c->phases);
	c->node->workers++;
	if (c->node->most_workers < c->node->workers)
		c->node->most_workers = c->node->workers;
}

void kd_times_end(struct kd_coroutine *c)
{
	if (c->worker)
		c->node->workers--;
}

enum kdsm_virtual_share kd_times_computing(const struct kd_coroutine *c)
{
	return c->busy ? KDSM_VIRTUAL_COMPUTING : KDSM_VIRTUAL_WAITING;
}

void kd_times_count(struct kd_coroutine *c, enum kdsm_virtual_share share)
{
	uint64_t now[KD_PHASES], left;
	unsigned int i;

	if (!c->worker || c->clock <= c->counted)
		return;
	left = c->clock - c->counted;
	c->counted = c->clock;
	phases(c->node, c->clock, now);
	if (share == KDSM_VIRTUAL_WAITING) {
		for (i = 0; i < KD_PHASES; i++) {
			uint64_t part = now[i] - c->phases[i];

			part = part < left ? part : left;
			c->node->share[idle[i]] += part;
			left -= part;
		}
		/* the clock of the program may be behind that of the worker */
		share = idle[c->node->phase];
	}
	c->node->share[share] += left;
	c->last = share;
	memcpy(c->phases, now, sizeof(now));
}

/*
 * Without workers, the program itself computes: a search with one worker on one node has no
 * tasks.
 */
static void copy_program(const struct kd_simulated *node, uint64_t now, uint64_t *share)
{
	uint64_t time[KD_PHASES];
	unsigned int i;

	phases(node, now, time);
	for (i = 0; i < KD_PHASES; i++)
		share[i == KD_PHASE_TASKS ? KDSM_VIRTUAL_COMPUTING : idle[i]] = time[i];
}

static void copy_workers(const struct kd_simulated *node, uint64_t now, uint64_t *share)
{
	struct kd_coroutine *c;
	uint64_t clock;

	for (c = node->coroutines; c; c = c->next)
		if (c->worker && !c->ended && c->clock < now) {
			clock = c->clock;
			c->clock = now;
			kd_times_count(c, c->share);
			c->clock = clock;
		}
	memcpy(share, node->share, sizeof(node->share));
	for (c = node->coroutines; c; c = c->next)
		if (c->worker && !c->ended && c->counted > now)
			share[c->last] -= share[c->last] < c->counted - now ? share[c->last] :
									      c->counted - now;
}

/*
 * Make the sum of the shares of a node equal all. The sum is less by the time before the workers
 * began and after they ended. It is more if clocks of programs, or of workers that have ended, are
 * ahead of the caller's.
 */
static void balance(uint64_t *share, uint64_t all)
{
	unsigned int i, largest;
	uint64_t sum = 0, cut;

	for (i = 0; i < KDSM_VIRTUAL_SHARES; i++)
		sum += share[i];
	if (sum < all)
		share[KDSM_VIRTUAL_SERIAL] += all - sum;
	while (sum > all) {
		for (largest = 0, i = 1; i < KDSM_VIRTUAL_SHARES; i++)
			if (share[largest] < share[i])
				largest = i;
		cut = share[largest] < sum - all ? share[largest] : sum - all;
		share[largest] -= cut;
		sum -= cut;
	}
}

static void add_node(struct kd_simulated *node, uint64_t now, struct kdsm_virtual_times *times)
{
	unsigned int workers = node->most_workers ? node->most_workers : 1, i;
	uint64_t share[KDSM_VIRTUAL_SHARES] = { 0 };

	if (node->most_workers)
		copy_workers(node, now, share);
	else
		copy_program(node, now, share);
	balance(share, workers * times->elapsed);
	times->workers += workers;
	for (i = 0; i < KDSM_VIRTUAL_SHARES; i++)
		times->share[i] += share[i];
}

int kdsm_virtual_times(struct kdsm_virtual_times *times)
{
	struct kdsm_virtual_times sum = { .argsz = sizeof(sum) };
	uint64_t now = kdsm_virtual_now();
	unsigned int i;

	if (kd_run.current) {
		sum.elapsed = now - kd_run.origin;
		for (i = 0; i < kd_run.attr->nodes; i++)
			add_node(&kd_run.node[i], now, &sum);
	}
	return KD_ARGUMENT_OUT(kdsm_virtual_times, &sum, times);
}

void kdsm_virtual_reset(void)
{
	uint64_t now = kdsm_virtual_now();
	struct kd_simulated *node;
	struct kd_coroutine *c;
	unsigned int i;

	if (!kd_run.current)
		return;
	kd_run.origin = now;
	for (i = 0; i < kd_run.attr->nodes; i++) {
		node = &kd_run.node[i];
		memset(node->phases, 0, sizeof(node->phases));
		memset(node->share, 0, sizeof(node->share));
		node->phase_began = now;
		node->most_workers = node->workers;
		for (c = node->coroutines; c; c = c->next) {
			if (!c->worker || c->ended)
				continue;
			c->counted = now > c->clock ? now : c->clock;
			memset(c->phases, 0, sizeof(c->phases));
		}
	}
}
