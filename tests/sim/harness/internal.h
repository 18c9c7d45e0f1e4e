/* SPDX-License-Identifier: GPL-2.0 */
/* Functions of the harness that its own files call. Programs use harness.h. */
#ifndef KDSM_SIM_INTERNAL_H
#define KDSM_SIM_INTERNAL_H

#include "harness/harness.h"

/* ---- scheduler.c ---- */

struct fiber;

void sim_scheduler_start(void);
/* Run fibers until all have ended. */
void sim_run(void);
/* Number of steps of this seed so far */
u64 sim_steps(void);
/* The current fiber, NULL outside of fibers */
struct fiber *sim_fiber(void);
/* Add to the number of spinlocks that the current fiber holds. */
void sim_spin(int locks);

/* ---- kernel.c ---- */

void sim_memory_start(void);
/* Fail the seed if the protocol has not freed all memory. */
void sim_memory_stop(void);

/* ---- fabric.c, cost.c ---- */

void sim_fabric_start(void);
void sim_fabric_stop(void);
/* Call sim_program.operate() for an operation of the node. */
void sim_operate(unsigned int from, struct kdsm_operation *op);

/* With costs: the latency one way; post and wait for a batch. */
u64 sim_cost_latency(unsigned int from, unsigned int to);
void sim_cost_post(struct kdsm_batch *batch);
/* Queue for the CPU of the node, and sleep until it has served one message. */
void sim_cost_serve(unsigned int node);
void sim_cost_start(void);
void sim_cost_stop(void);

/* ---- trace.c ---- */

/* Keep events from now on; print each at once if --verbose. */
void sim_trace_start(void);
/* Print the last events, of one object only unless it is SIM_NONE. */
void sim_trace_tell(s64 object);

/* ---- run.c ---- */

/* Record the failure of this seed, and end the process. */
void __attribute__((noreturn)) sim_failed(s64 object, const char *what);
/*
 * Run the seeds that the options ask for, and print the result. path and arguments are the
 * command line, from which the hint at a replay is made. Returns the exit status.
 */
int sim_run_seeds(const char *path, char **arguments);

#endif /* KDSM_SIM_INTERNAL_H */
