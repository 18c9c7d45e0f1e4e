/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the files of lib/virtual: conductor.c has the coroutines and their clocks, network.c
 * the remote operations, cluster.c the nodes and their regions, and times.c the shares of time.
 * One thread executes a run, so nothing here is atomic.
 */
#ifndef KDSM_VIRTUAL_INTERNAL_H
#define KDSM_VIRTUAL_INTERNAL_H

#include <setjmp.h>
#include <kdsm/virtual.h>

#include "core/core.h"

/* ---- conductor.c ---- */

/* Something that happens at a time: a coroutine runs, or an operation gets to its next stage. */
struct kd_event {
	uint64_t time, number;		/* events of the same time happen in order of number */
	size_t at;			/* index in the queue, or 0 */
	void (*happen)(struct kd_event *event);
};

struct kd_flight;
struct kd_simulated;

struct kd_coroutine {
	struct kd_event event;		/* first: when the coroutine continues */
	struct kd_simulated *node;
	uint64_t clock;			/* in ns, without what it has computed since it continued */
	jmp_buf jump;			/* where it continues */
	void *stack;
	size_t stack_size;		/* with the guard page */
	void *sanitizer;		/* what a sanitizer knows the coroutine by */
	void *(*run)(void *argument);
	void *argument;
	bool begun, ended;
	void *slot;
	const void *key;		/* of block(), or NULL */
	struct kd_coroutine *behind;	/* next one that blocks in the same bucket */
	struct kd_coroutine *next;	/* of the node */

	/* times.c */
	bool worker, busy;
	enum kdsm_virtual_share share;	/* of the time until the coroutine continues */
	uint64_t counted;		/* the clock up to which shares are counted */
	enum kdsm_virtual_share last;	/* that was counted */
	uint64_t phases[KD_PHASES];	/* of the node, at that time */
};

/* A node of the cluster */
struct kd_simulated {
	struct kdsm *kdsm;
	struct kd_coroutine *coroutines;
	struct kd_flight *flights;	/* calls whose operations are not complete */
	uint64_t adapter_free;		/* when the adapter can begin the next transfer, in ns */
	uint64_t handler_free;		/* when the next message can be handled, in ns */
	int result;			/* of the program */

	/* times.c */
	enum kd_phase phase;
	uint64_t phase_began;
	uint64_t phases[KD_PHASES];	/* ns, without the present phase */
	unsigned int workers, most_workers;	/* now, and at most at the same time */
	uint64_t share[KDSM_VIRTUAL_SHARES];
};

/* The run of this thread. kd_run.attr is NULL if there is none. */
struct kd_run {
	const struct kdsm_virtual_attr *attr;
	struct kd_simulated *node;	/* [attr->nodes] */
	struct kd_coroutine *current;	/* that runs, or NULL */
	uint64_t now;			/* of the present event, in ns */
	uint64_t origin;		/* of the times that times.c measures, in ns */
	uint64_t tickets;		/* number of the newest ticket */
};

extern _Thread_local struct kd_run kd_run KDSM_PRIVATE;

/* Put an event into the queue, from which it is taken when it happens. */
int kd_event_add(struct kd_event *event, uint64_t time) KDSM_PRIVATE;
/* Take an event out of the queue. */
void kd_event_take(struct kd_event *event) KDSM_PRIVATE;

/* Returns the clock of the coroutine that runs, or the time of the present event, in ns. */
uint64_t kd_virtual_now(void)
	KDSM_PRIVATE;
/* As block() of struct kd_scheduler. The waiting time counts as share. */
bool kd_virtual_await(const void *key, uint64_t timeout,
		      enum kdsm_virtual_share share) KDSM_PRIVATE;
bool kd_virtual_block(const void *key, uint64_t timeout) KDSM_PRIVATE;
void kd_virtual_wake(const void *key) KDSM_PRIVATE;
/* Let the others catch up, before the coroutine that runs changes what they see. */
void kd_virtual_catch_up(void)
	KDSM_PRIVATE;

/* Add a coroutine to a node. Returns NULL without memory. */
struct kd_coroutine *kd_coroutine_new(struct kd_simulated *node, size_t stack,
				      void *(*run)(void *argument), void *argument) KDSM_PRIVATE;
/*
 * Execute all coroutines, unless run is false, and free them. Returns 0, or -ENOMEM or -EDEADLK if
 * they have not ended.
 */
int kd_conduct(bool run) KDSM_PRIVATE;

/* ---- times.c ---- */

/*
 * Count the time of the coroutine up to its clock, for a share; KDSM_VIRTUAL_WAITING stands for
 * what the node's phase says. Only workers count.
 */
void kd_times_count(struct kd_coroutine *c, enum kdsm_virtual_share share) KDSM_PRIVATE;
/* The share of what a coroutine computes */
enum kdsm_virtual_share kd_times_computing(const struct kd_coroutine *c) KDSM_PRIVATE;
/* The coroutine becomes a worker. */
void kd_times_worker(struct kd_coroutine *c) KDSM_PRIVATE;
/* The coroutine ends. */
void kd_times_end(struct kd_coroutine *c) KDSM_PRIVATE;
enum kd_phase kd_times_phase(struct kd_simulated *node, uint64_t now,
			     enum kd_phase phase) KDSM_PRIVATE;

/* ---- network.c ---- */

int kd_network_submit(struct kdsm_region *region, struct kdsm_op *ops, unsigned int count,
		      uint64_t *ticket) KDSM_PRIVATE;
int kd_network_complete(struct kdsm_region *region, uint64_t ticket,
			uint64_t timeout) KDSM_PRIVATE;
/* Forget the tickets of a region that a program closes too early. */
void kd_network_cancel(const struct kdsm_region *region) KDSM_PRIVATE;
/* Free the tickets of a node that are not complete when the run has ended. */
void kd_network_free(struct kd_simulated *node) KDSM_PRIVATE;

/* ---- cluster.c ---- */

/* Perform an operation in the part of its node. Returns its status. */
int kd_virtual_perform(struct kdsm_region *region, struct kdsm_op *op) KDSM_PRIVATE;

#endif /* KDSM_VIRTUAL_INTERNAL_H */
