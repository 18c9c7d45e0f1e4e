/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that the harness's files call of each other */
#ifndef KDSM_SIM_INTERNAL_H
#define KDSM_SIM_INTERNAL_H

#include "harness/harness.h"

/* ---- scheduler.c ---- */

struct fiber;

void sim_scheduler_start(void);
/* Run fibers until all have ended. */
void sim_run(void);
/* Steps of this seed. */
u64 sim_steps(void);
/* NULL outside of fibers */
struct fiber *sim_fiber(void);
/* The current fiber took so many spinlocks, or released -locks. */
void sim_spin(int locks);

/* ---- kernel.c ---- */

void sim_memory_start(void);
/* Fail the seed if memory was not freed. */
void sim_memory_stop(void);

/* ---- fabric.c, cost.c ---- */

void sim_fabric_start(void);
void sim_fabric_stop(void);
/* Call sim_program.operate() for an operation of the node. */
void sim_operate(unsigned int from, struct kdsm_operation *op);

u64 sim_cost_latency(unsigned int from, unsigned int to);
void sim_cost_post(struct kdsm_batch *batch);
/* Sleep until the CPU of the node has served one more message. */
void sim_cost_serve(unsigned int node);
void sim_cost_start(void);
void sim_cost_stop(void);

/* ---- trace.c ---- */

/* Keep events from now on; print each at once if --verbose. */
void sim_trace_start(void);
/* Print the last events, of one object only unless it is SIM_NONE. */
void sim_trace_tell(s64 object);

/* ---- run.c ---- */

/* Note that this seed has failed, and end the process. */
void __attribute__((noreturn)) sim_failed(s64 object, const char *what);
/*
 * Run the seeds that the options ask for, and print what came of them. path and arguments
 * are the command line, for a replay. Returns the exit status.
 */
int sim_run_seeds(const char *path, char **arguments);

#endif /* KDSM_SIM_INTERNAL_H */
