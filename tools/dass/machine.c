// SPDX-License-Identifier: GPL-2.0
/*
 * The machine: a job and its memory, the main thread of each member, which starts threads, and the
 * end of the program.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cluster.h"
#include "machine.h"

#define PAGE	4096U	/* block size of the memory, in bytes */

_Thread_local struct thread *machine_thread;
static const char *path;	/* of the program, for messages */

/* ---- the end with an error ---- */

/* True once this process says why it ends. The first one to end says so, and the only one. */
static bool ending;

static bool begin_end(void)
{
	return !__atomic_exchange_n(&ending, true, __ATOMIC_ACQ_REL);
}

/* The job has ended with an error: here, or in another member, which then says what happened. */
static void job_failed(void *context, int error, const char *message)
{
	(void)context;
	(void)error;
	if (!begin_end())
		return;
	fflush(stdout);
	warnx("%s", message);
	_exit(EXIT_FAILURE);
}

/* End the program on all nodes, after the message. */
static void __attribute__((noreturn))
end_all(struct machine *machine, const struct dass_error *error)
{
	/* Another thread is ending the process. */
	while (!begin_end())
		pause();
	fflush(stdout);
	dass_warn(path, error);
	kdsm_job_abort(machine->job);
	_exit(EXIT_FAILURE);
}

void machine_fail(const struct thread *thread)
{
	struct dass_error error = thread->error;

	if (thread->id) {
		size_t used = strlen(error.reason);

		snprintf(error.reason + used, sizeof(error.reason) - used, " (thread %" PRIu64 ")",
			 thread->id);
	}
	end_all(thread->machine, &error);
}

/* End the program after an error that no thread made. */
static void fail(struct machine *machine, const char *what, int error)
{
	struct dass_error reason;

	dass_fail(&reason, 0, "%s: %s", what, kdsm_error(error));
	end_all(machine, &reason);
}

/* The memory was in a node that has died, or this node has no memory. */
static void on_bus_error(int number)
{
	const struct thread *thread = machine_thread;
	char text[512];
	int length;

	(void)number;
	length = snprintf(text, sizeof(text), "dass: %.256s:%u: the memory cannot be accessed: a "
			  "node died, or this node has no memory\n", path,
			  thread ? thread->at->line : 1);
	if (write(STDERR_FILENO, text, length) != length)
		_exit(EXIT_FAILURE + 1);
	_exit(EXIT_FAILURE);
}

/* ---- the job and its memory ---- */

static void join(struct machine *machine)
{
	const char *variable = getenv("KDSM_LOCAL");
	bool local = machine->options.local || (variable && *variable && strcmp(variable, "0"));
	struct kdsm_job_attr attr = {
		.argsz = sizeof(attr),
		.memory = PAGE,		/* the memory of the program is strict */
		.sync = MOST_THREADS * sizeof(struct slot) + sync_lines_size +
			KDSM_JOB_MOST * sizeof(uint64_t) + 4 * KDSM_LINE_SIZE,
		.failed = job_failed,
	};

	if (!local && access(KDSM_DEVICE, F_OK) && !cluster_sign("")) {
		cluster_warn_alone("running");
		local = true;
	}
	attr.flags = local ? KDSM_JOB_LOCAL : 0;
	if (kdsm_job_join(&attr, &machine->job))
		exit(EXIT_FAILURE);
	machine->sync = kdsm_job_sync(machine->job);
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void open_memory(struct machine *machine)
{
	uint64_t memory = round_up(machine->options.memory);
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.policy = KDSM_POLICY_STRICT,
		.block_size = PAGE,
	};
	char name[KDSM_NAME_SIZE];
	int ret;

	snprintf(name, sizeof(name), "%s.dass", kdsm_job_name(machine->job));
	attr.size = memory + round_up(sizeof(struct shared)) +
		    MOST_THREADS * (uint64_t)machine->program.registers * sizeof(int64_t);
	ret = kdsm_region_open(kdsm_job_cluster(machine->job), name, &attr, &machine->region);
	if (ret)
		fail(machine, "cannot open the memory", ret);
	machine->memory = kdsm_region_address(machine->region);
	machine->shared = (struct shared *)(machine->memory + memory);
	machine->passed = (int64_t *)((char *)machine->shared + round_up(sizeof(struct shared)));
}

static int allocate_words(struct machine *machine)
{
	struct kdsm_job *job = machine->job;
	int ret = kdsm_job_alloc_sync(job, MOST_THREADS * sizeof(struct slot), &machine->slots);

	if (!ret)
		ret = kdsm_job_alloc_sync(job, sync_lines_size, &machine->lines);
	if (!ret)
		ret = kdsm_job_alloc_sync(job, kdsm_job_size(job) * sizeof(uint64_t),
					  &machine->bells);
	if (!ret)
		ret = kdsm_job_alloc_sync(job, sizeof(uint64_t), &machine->live);
	if (!ret)
		ret = kdsm_job_alloc_sync(job, sizeof(uint64_t), &machine->rings);
	return ret ? ret : sync_open(machine);
}

/* Prepare the threads that the program begins with, those of this member. */
static int prepare_threads(struct machine *machine)
{
	uint32_t rank = kdsm_job_rank(machine->job), size = kdsm_job_size(machine->job);
	unsigned int id, count = machine->options.threads;
	uint64_t live;

	for (id = rank; id < count; id += size)
		own_slot(machine, id)->state = STARTING;
	if (rank)
		return 0;
	machine->shared->high = count;
	machine->shared->next = count;
	return kdsm_faa(machine->sync, 0, machine->live, count, &live);
}

void machine_open(struct machine *machine)
{
	int ret;

	path = machine->program.path;
	signal(SIGBUS, on_bus_error);
	join(machine);
	open_memory(machine);
	ret = allocate_words(machine);
	if (!ret)
		ret = prepare_threads(machine);
	if (!ret)
		ret = kdsm_job_barrier(machine->job);
	if (ret)
		fail(machine, "cannot open the machine", ret);
	interpret_prepare(machine);
}

/* ---- running ---- */

static void report_deadlock(struct machine *machine, const struct slot *slot, uint64_t id)
{
	struct dass_error error;

	dass_fail(&error, slot->line, "deadlock: no thread can go on; thread %" PRIu64
		  " waits here for %s %" PRId64, id, wait_name(slot->what), (int64_t)slot->number);
	end_all(machine, &error);
}

void machine_run(struct machine *machine)
{
	uint32_t rank = kdsm_job_rank(machine->job);
	uint64_t place = bell_place(machine, rank), id, heard;
	const uint64_t *bell = (uint64_t *)((char *)kdsm_region_part(machine->sync) + place);
	struct slot slot;
	int ret;

	for (;;) {
		heard = __atomic_load_n(bell, __ATOMIC_ACQUIRE);
		if (heard == PROGRAM_ENDED)
			break;
		ret = thread_start_all(machine);
		if (ret)
			fail(machine, "cannot start a thread", ret);
		ret = kdsm_wait(machine->sync, place, heard, WAIT_INTERVAL);
		if (ret && ret != -ETIMEDOUT && ret != -EINTR)
			fail(machine, "cannot wait", ret);
		if (ret == -ETIMEDOUT && !rank && wait_deadlock(machine, &slot, &id))
			report_deadlock(machine, &slot, id);
	}
	thread_join_all();
}

void machine_close(struct machine *machine)
{
	sync_close(machine);
	kdsm_region_close(machine->region);
	kdsm_job_leave(machine->job);
}
