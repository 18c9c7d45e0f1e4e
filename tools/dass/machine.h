/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The machine that runs a program: a job, whose members share memory and run threads, and the
 * state of a thread.
 *
 * Thread i runs in the member with rank i modulo the members. Each node's part of the job's region
 * for words has a slot for each thread, of which a node uses those of its members' threads.
 */
#ifndef DASS_MACHINE_H
#define DASS_MACHINE_H

#include <stdbool.h>
#include <kdsm/job.h>
#include <kdsm/lock.h>

#include "program.h"

#define MOST_THREADS	4096	/* that have not been joined */
#define MOST_BARRIERS	64
#define MOST_SEMAPHORES	64
#define MOST_MUTEXES	1024

/* States of a thread; the values of slot.state */
enum state { FREE, STARTING, RUNNING, WAITING, ENDED };

/* Reasons of a wait; the values of slot.what */
enum what { BY_JOIN, BY_BARRIER, BY_LOCK, BY_SIGNAL };

/**
 * struct slot - a thread, as other members see it
 * @state: enum state. The thread itself changes it, except that fork takes a slot that is free,
 *	and join frees one
 * @begin: index of the instruction where the thread begins, while it is starting
 * @waits: number of waits that have begun; the checker of deadlocks compares this and tries
 * @tries: number of timeouts of the present wait
 * @what: enum what, of the present wait
 * @number: thread, barrier, mutex or semaphore that the thread waits for
 * @line: of the instruction that waits
 */
struct slot {
	uint64_t state, begin, waits, tries, what, number, line, reserved;
};

struct machine_options {
	uint64_t memory, stack;		/* bytes */
	unsigned int threads, registers;
	bool local, trace, step, disassemble;
};

/*
 * Words behind the program's memory, which all members share. The lock of the table protects the
 * first two, and the lock of each barrier its counts.
 */
struct shared {
	uint64_t high;			/* slots from this one on have never been used */
	uint64_t next;			/* slot at which the next fork looks first */
	struct barrier_state {
		uint64_t arrived, generation, needed;
	} barriers[MOST_BARRIERS];
};

struct barrier {
	struct kdsm_lock *lock;
	struct kdsm_cond all_here;
};

struct machine {
	struct machine_options options;
	struct program program;
	struct kdsm_job *job;
	struct kdsm_region *region;	/* strict */
	char *memory;
	struct shared *shared;
	int64_t *passed;		/* registers for the new thread of each slot */
	struct kdsm_region *sync;	/* words; the rest are offsets in each part */
	uint64_t slots, lines, bells;
	uint64_t live, rings;		/* on node 0: threads that have not ended, and forks */
	struct kdsm_lock *table;	/* protects high, next, and which slots are free */
	struct kdsm_cond ended;
	struct barrier barriers[MOST_BARRIERS];
	struct kdsm_lock *mutexes[MOST_MUTEXES];
	struct kdsm_sem semaphores[MOST_SEMAPHORES];
};

/* The bell of a member when the last thread has ended; smaller values count forks. */
#define PROGRAM_ENDED	UINT64_MAX

static inline uint64_t bell_place(const struct machine *machine, uint32_t rank)
{
	return machine->bells + rank * sizeof(uint64_t);
}

static inline uint64_t slot_place(const struct machine *machine, uint64_t id)
{
	return machine->slots + id * sizeof(struct slot);
}

static inline unsigned int slot_node(const struct machine *machine, uint64_t id)
{
	return kdsm_job_node(machine->job, id % kdsm_job_size(machine->job));
}

/* The slot of a thread of this node */
static inline struct slot *own_slot(const struct machine *machine, uint64_t id)
{
	return (struct slot *)((char *)kdsm_region_part(machine->sync) + slot_place(machine, id));
}

struct thread {
	struct machine *machine;
	uint64_t id;
	int64_t *file;			/* registers, then constants */
	int64_t *stack;
	uint64_t depth;			/* values on the stack */
	const struct insn *begin;
	const struct insn *at;		/* instruction that may fail, or that the debugger shows */
	uint64_t born;			/* ns */
	int64_t difference;		/* of the last comparison: its sign counts */
	unsigned int held;		/* mutexes */
	struct dass_error error;
};

static inline uint64_t stack_room(const struct machine *machine)
{
	return machine->options.stack / sizeof(int64_t);
}

/* error.c: store a reason why the thread's present instruction fails. Returns -1. */
int thread_fail(struct thread *thread, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * machine.c: join the job and open the memory; run the program to its end; leave. They end the
 * process after a message on stderr if they fail.
 */
void machine_open(struct machine *machine);
void machine_run(struct machine *machine);
void machine_close(struct machine *machine);
/* The thread of the program that this thread of the system runs, or NULL */
extern _Thread_local struct thread *machine_thread;
/* End the program on all nodes after an error of a thread. */
void machine_fail(const struct thread *thread) __attribute__((noreturn));

/* run.c: run a thread from thread->begin to its hlt. Returns 0, or -1 with thread->error. */
int interpret(struct thread *thread);
/* Choose the code of each instruction. */
void interpret_prepare(struct machine *machine);

/*
 * The functions for single instructions: they return 0, or -1 with thread->error.
 */

/* memory.c: copy count registers from or to memory; registers from or to the stack. */
int memory_load(struct thread *thread, int64_t address, uint32_t first, int64_t count);
int memory_store(struct thread *thread, int64_t address, uint32_t first, int64_t count);
int stack_push(struct thread *thread, uint32_t first, int64_t count);
int stack_pop(struct thread *thread, uint32_t first, int64_t count);

/* console.c */
int console_in(struct thread *thread, int64_t *value);
void console_out(int64_t value);

/* thread.c */
int thread_fork(struct thread *thread, const struct insn *begin, int64_t *id);
int thread_join(struct thread *thread, int64_t id);
/* Start those threads of this member that are to start. Returns 0 or a negative errno. */
int thread_start_all(struct machine *machine);
/* Wait until all threads of this member have ended. */
void thread_join_all(void);

/* sync.c: kdsm's functions return a negative errno, instructions -1 */
extern const uint64_t sync_lines_size;	/* bytes of all wait queues */
int sync_open(struct machine *machine);
void sync_close(struct machine *machine);
int sync_barrier(struct thread *thread, int64_t number, int64_t needed);
int sync_lock(struct thread *thread, int64_t number);
int sync_unlock(struct thread *thread, int64_t number);
int sync_wait(struct thread *thread, int64_t number);
int sync_signal(struct thread *thread, int64_t number);
/* Fail if the thread ends with a mutex. */
int sync_end(struct thread *thread);

/* wait.c: waits that the checker of deadlocks sees */

/* Interval in which a waiting thread looks again, and the checker looks at all threads; in ns */
#define WAIT_INTERVAL	(500 * UINT64_C(1000000))

void wait_begin(struct thread *thread, enum what what, int64_t number);
void wait_again(struct thread *thread);
void wait_end(struct thread *thread);
/*
 * Return true if no thread of the program can go on, with the slot of the first one. Caller calls
 * it in intervals.
 */
bool wait_deadlock(struct machine *machine, struct slot *waiter, uint64_t *id);
const char *wait_name(uint64_t what);

/* debug.c: show the instruction at thread->at, and obey the user. */
void debug_instruction(struct thread *thread);

#endif /* DASS_MACHINE_H */
