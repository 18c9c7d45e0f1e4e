// SPDX-License-Identifier: GPL-2.0
/*
 * Threads. A fork takes the next slot that is free, leaves the registers in shared memory, and
 * rings the bell of the member whose slot it is; the main thread of this member starts the thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

/* Stack of the thread of the system that runs a thread, in bytes */
#define NATIVE_STACK	(256U << 10)

/* The thread of the system that runs or ran in each slot */
static pthread_t natives[MOST_THREADS];
static bool started[MOST_THREADS];

/* ---- the end of a thread ---- */

/* Ring the bell of all members: the last thread has ended. */
static int ring_all(struct machine *machine)
{
	uint32_t rank;
	int ret = 0;

	for (rank = 0; rank < kdsm_job_size(machine->job) && !ret; rank++)
		ret = kdsm_put_notify(machine->sync, kdsm_job_node(machine->job, rank),
				      bell_place(machine, rank), PROGRAM_ENDED);
	return ret;
}

static int end(struct machine *machine, uint64_t id)
{
	uint64_t live;
	int ret = kdsm_lock(machine->table);

	if (ret)
		return ret;
	__atomic_store_n(&own_slot(machine, id)->state, ENDED, __ATOMIC_RELEASE);
	ret = kdsm_cond_broadcast(&machine->ended);
	if (!ret)
		ret = kdsm_unlock(machine->table);
	if (!ret)
		ret = kdsm_faa(machine->sync, 0, machine->live, -1, &live);
	return !ret && live == 1 ? ring_all(machine) : ret;
}

/* ---- the begin of a thread ---- */

static void thread_free(struct thread *thread)
{
	free(thread->file);
	free(thread->stack);
	free(thread);
}

static void *thread_main(void *argument)
{
	struct thread *thread = argument;
	int ret;

	machine_thread = thread;
	if (interpret(thread))
		machine_fail(thread);
	ret = end(thread->machine, thread->id);
	if (ret) {
		thread_fail(thread, "the thread cannot end: %s", kdsm_error(ret));
		machine_fail(thread);
	}
	thread_free(thread);
	return NULL;
}

/* Make a thread with the registers that the fork has left. */
static struct thread *thread_new(struct machine *machine, uint64_t id)
{
	const struct program *program = &machine->program;
	struct thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->machine = machine;
	thread->id = id;
	thread->begin = program->code + own_slot(machine, id)->begin;
	thread->at = thread->begin;
	thread->file = calloc(program->registers + program->constant_count, sizeof(int64_t));
	thread->stack = malloc(stack_room(machine) * sizeof(int64_t));
	if (!thread->file || !thread->stack) {
		thread_free(thread);
		return NULL;
	}
	memcpy(thread->file, machine->passed + id * program->registers,
	       program->registers * sizeof(int64_t));
	if (program->constant_count)
		memcpy(thread->file + program->registers, program->constants,
		       program->constant_count * sizeof(int64_t));
	return thread;
}

static int start(struct machine *machine, uint64_t id)
{
	struct thread *thread = thread_new(machine, id);
	pthread_attr_t attr;
	int ret;

	if (!thread)
		return -ENOMEM;
	/* The thread that had the slot before has ended. */
	if (started[id])
		pthread_join(natives[id], NULL);
	__atomic_store_n(&own_slot(machine, id)->state, RUNNING, __ATOMIC_RELEASE);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, NATIVE_STACK);
	ret = -pthread_create(&natives[id], &attr, thread_main, thread);
	pthread_attr_destroy(&attr);
	started[id] = !ret;
	if (ret)
		thread_free(thread);
	return ret;
}

int thread_start_all(struct machine *machine)
{
	uint32_t size = kdsm_job_size(machine->job);
	uint64_t id;
	int ret = 0;

	for (id = kdsm_job_rank(machine->job); id < MOST_THREADS && !ret; id += size)
		if (__atomic_load_n(&own_slot(machine, id)->state, __ATOMIC_ACQUIRE) == STARTING)
			ret = start(machine, id);
	return ret;
}

void thread_join_all(void)
{
	unsigned int id;

	for (id = 0; id < MOST_THREADS; id++)
		if (started[id])
			pthread_join(natives[id], NULL);
}

/* ---- fork ---- */

static int get_state(struct machine *machine, uint64_t id, uint64_t *state)
{
	return kdsm_get(machine->sync, slot_node(machine, id),
			slot_place(machine, id) + offsetof(struct slot, state), state,
			sizeof(*state));
}

/* Find a free slot, from the one behind the last that was taken. Caller holds the table. */
static int find_free(struct machine *machine, uint64_t *id)
{
	uint64_t state, i;
	int ret;

	for (i = 0; i < MOST_THREADS; i++) {
		*id = (machine->shared->next + i) % MOST_THREADS;
		ret = get_state(machine, *id, &state);
		if (ret || state == FREE)
			return ret;
	}
	return -ENOSPC;
}

/*
 * Take a slot for a thread that begins at the instruction with this index. The state comes last:
 * a member that sees it sees the rest. Caller holds the table.
 */
static int take_slot(struct machine *machine, uint64_t begin, const int64_t *registers, uint64_t id)
{
	const struct slot slot = { .begin = begin };
	struct shared *shared = machine->shared;
	uint64_t live;
	int ret;

	memcpy(machine->passed + id * machine->program.registers, registers,
	       machine->program.registers * sizeof(*registers));
	shared->next = id + 1;
	if (shared->high <= id)
		shared->high = id + 1;
	ret = kdsm_faa(machine->sync, 0, machine->live, 1, &live);
	if (!ret)
		ret = kdsm_put(machine->sync, slot_node(machine, id), slot_place(machine, id),
			       &slot, sizeof(slot));
	if (!ret)
		ret = kdsm_put_notify(machine->sync, slot_node(machine, id),
				      slot_place(machine, id) + offsetof(struct slot, state),
				      STARTING);
	return ret ? ret : kdsm_settle(kdsm_job_cluster(machine->job));
}

/* Each ring has another value, so that the member notices each. */
static int ring(struct machine *machine, uint64_t id)
{
	uint32_t rank = id % kdsm_job_size(machine->job);
	uint64_t rings;
	int ret = kdsm_faa(machine->sync, 0, machine->rings, 1, &rings);

	return ret ? ret : kdsm_put_notify(machine->sync, kdsm_job_node(machine->job, rank),
					   bell_place(machine, rank), rings + 1);
}

int thread_fork(struct thread *thread, const struct insn *begin, int64_t *id)
{
	struct machine *machine = thread->machine;
	uint64_t chosen = 0;
	int ret = kdsm_lock(machine->table), unlocked;

	if (ret)
		return thread_fail(thread, "%s", kdsm_error(ret));
	ret = find_free(machine, &chosen);
	if (!ret) {
		*id = chosen;
		ret = take_slot(machine, begin - machine->program.code, thread->file, chosen);
	}
	unlocked = kdsm_unlock(machine->table);
	if (ret == -ENOSPC)
		return thread_fail(thread, "there are %u threads already: join those that have "
				   "ended", MOST_THREADS);
	if (!ret)
		ret = unlocked;
	if (!ret)
		ret = ring(machine, chosen);
	return ret ? thread_fail(thread, "cannot start a thread: %s", kdsm_error(ret)) : 0;
}

/* ---- join ---- */

/* Wait until the thread has ended. Caller holds the table. -ESRCH: there is no such thread. */
static int wait_for_end(struct thread *thread, uint64_t id)
{
	struct machine *machine = thread->machine;
	uint64_t state;
	int ret;

	for (;;) {
		ret = get_state(machine, id, &state);
		if (ret || state == ENDED)
			return ret;
		if (state == FREE)
			return -ESRCH;
		ret = kdsm_cond_timed(&machine->ended, machine->table, WAIT_INTERVAL);
		if (ret == -ETIMEDOUT)
			wait_again(thread);
		else if (ret)
			return ret;
	}
}

int thread_join(struct thread *thread, int64_t id)
{
	struct machine *machine = thread->machine;
	const uint64_t state = FREE;
	int ret, unlocked;

	if (id < 0 || id >= MOST_THREADS)
		return thread_fail(thread, "there is no thread %" PRId64, id);
	if ((uint64_t)id == thread->id)
		return thread_fail(thread, "thread %" PRId64 " cannot join itself", id);
	ret = kdsm_lock(machine->table);
	if (ret)
		return thread_fail(thread, "%s", kdsm_error(ret));
	wait_begin(thread, BY_JOIN, id);
	ret = wait_for_end(thread, id);
	wait_end(thread);
	if (!ret)
		ret = kdsm_put(machine->sync, slot_node(machine, id), slot_place(machine, id) +
			       offsetof(struct slot, state), &state, sizeof(state));
	if (!ret)
		ret = kdsm_settle(kdsm_job_cluster(machine->job));
	if (ret == -ESRCH) {
		kdsm_unlock(machine->table);
		return thread_fail(thread, "there is no thread %" PRId64, id);
	}
	unlocked = kdsm_unlock(machine->table);
	if (!ret)
		ret = unlocked;
	return ret ? thread_fail(thread, "%s", kdsm_error(ret)) : 0;
}
