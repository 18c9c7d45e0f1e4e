// SPDX-License-Identifier: GPL-2.0
/*
 * Fibers, simulated time, and wait queues. A step is the code that one fiber runs
 * from one switch to the next. A step takes one unit of simulated time: 1 us, or 1/16 ns
 * if costs are simulated (cost.c), or less with sim.parallel. The seed chooses the fiber of
 * each step among those that can run.
 */
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "internal.h"

/* Stack of a fiber, in bytes */
#define STACK_SIZE	(128 << 10)

enum fiber_state {
	FIBER_RUNNABLE,
	FIBER_BLOCKED,
	FIBER_DEAD,
};

struct fiber {
	ucontext_t context;
	jmp_buf jump;
	bool started;
	void *stack;
	void (*run)(void *arg);
	void *arg;
	unsigned int node;
	char name[24];
	enum fiber_state state;
	u64 deadline;		/* of a blocked fiber; U64_MAX: none */
	bool woken;
	struct sim_queue *queue;
	struct fiber *next;	/* in queue, or in spare */
	unsigned int spinning;	/* spinlocks held */
	unsigned int place;	/* in all */
};

static struct fiber **all;	/* runnable ones first, then blocked ones */
static unsigned int count, runnable, room;
static struct fiber *current;	/* NULL: the scheduler runs */
static struct fiber *spare;	/* dead fibers, whose stacks sim_spawn() uses again */
static u64 now;
static u64 earliest;		/* no deadline of a blocked fiber is earlier */
static u64 steps;		/* of this seed */
static ucontext_t scheduler;
static jmp_buf scheduler_jump;

static void place_swap(unsigned int i, unsigned int j)
{
	struct fiber *fiber = all[i];

	all[i] = all[j];
	all[j] = fiber;
	all[i]->place = i;
	all[j]->place = j;
}

static void make_runnable(struct fiber *fiber)
{
	if (fiber->state == FIBER_RUNNABLE)
		return;
	fiber->state = FIBER_RUNNABLE;
	place_swap(fiber->place, runnable++);
}

static void make_blocked(struct fiber *fiber, u64 deadline)
{
	fiber->state = FIBER_BLOCKED;
	fiber->deadline = deadline;
	if (deadline < earliest)
		earliest = deadline;
	place_swap(fiber->place, --runnable);
}

void sim_exit(void)
{
	current->state = FIBER_DEAD;
	_longjmp(scheduler_jump, 1);
}

static void fiber_main(void)
{
	current->run(current->arg);
	sim_exit();
}

/* Switch to the scheduler, which continues here when it chooses this fiber again. */
static void leave(void)
{
	if (!_setjmp(current->jump))
		_longjmp(scheduler_jump, 1);
}

void sim_spawn(unsigned int node, const char *name, u64 delay, void (*run)(void *arg),
	       void *arg)
{
	struct fiber *fiber = spare;

	if (fiber) {
		spare = fiber->next;
	} else {
		fiber = calloc(1, sizeof(*fiber));
		fiber->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		/* Guard page: a stack that overflows ends the seed with SIGSEGV. */
		mprotect(fiber->stack, 4096, PROT_NONE);
	}
	fiber->started = false;
	fiber->run = run;
	fiber->arg = arg;
	fiber->node = node;
	snprintf(fiber->name, sizeof(fiber->name), "%s", name);
	fiber->queue = NULL;
	fiber->next = NULL;
	fiber->woken = false;
	fiber->spinning = 0;
	fiber->state = FIBER_RUNNABLE;
	if (count == room) {
		room = room ? 2 * room : 64;
		all = realloc(all, room * sizeof(struct fiber *));
	}
	all[count] = fiber;
	fiber->place = count++;
	place_swap(fiber->place, runnable++);
	if (delay)
		make_blocked(fiber, now + delay);
}

static void bury(struct fiber *fiber)
{
	place_swap(fiber->place, --runnable);
	place_swap(fiber->place, --count);
	fiber->next = spare;
	spare = fiber;
}

/* Wake fibers whose deadlines have passed. */
static void alarms(void)
{
	unsigned int i;

	earliest = U64_MAX;
	for (i = runnable; i < count; i++) {
		struct fiber *fiber = all[i];

		if (fiber->deadline <= now)
			make_runnable(fiber);	/* this moves a fiber checked before to place i */
		else if (fiber->deadline < earliest)
			earliest = fiber->deadline;
	}
}

static void __attribute__((noreturn)) hang(const char *what)
{
	unsigned int i;

	for (i = runnable; i < count; i++)
		sim_event(SIM_NONE, "node %u %s waits until %lld", all[i]->node, all[i]->name,
			  (long long)all[i]->deadline);
	sim_fail(SIM_NONE, "%s: %u fibers are left, one of node %u, %s", what, count,
		 all[0]->node, all[0]->name);
}

static void run_step(struct fiber *fiber)
{
	now += !sim.parallel || !(steps % sim.parallel);
	current = fiber;
	if (!_setjmp(scheduler_jump)) {
		if (fiber->started)
			_longjmp(fiber->jump, 1);
		fiber->started = true;
		getcontext(&fiber->context);
		fiber->context.uc_stack.ss_sp = fiber->stack;
		fiber->context.uc_stack.ss_size = STACK_SIZE;
		fiber->context.uc_link = NULL;
		makecontext(&fiber->context, fiber_main, 0);
		swapcontext(&scheduler, &fiber->context);
	}
	if (current->state == FIBER_DEAD) {
		if (current->spinning)
			sim_fail(SIM_NONE, "a fiber ended with a spinlock");
		bury(current);
	}
	current = NULL;
}

void sim_run(void)
{
	u64 last = steps + sim.steps_max;

	while (count) {
		if (!runnable) {
			if (earliest == U64_MAX)
				hang("deadlock");
			if (earliest > now)
				now = earliest;
		}
		if (earliest <= now) {
			alarms();
			continue;
		}
		if (++steps > last)
			hang("too many steps");
		if (now > sim.time_max)
			hang("too much simulated time");
		run_step(all[sim_below(runnable)]);
		if (sim_program.step)
			sim_program.step();
	}
}

void sim_scheduler_start(void)
{
	now = 0;
	steps = 0;
	earliest = U64_MAX;
}

u64 sim_steps(void)
{
	return steps;
}

bool sim_in_fiber(void)
{
	return current;
}

struct fiber *sim_fiber(void)
{
	return current;
}

void sim_spin(int locks)
{
	current->spinning += locks;
}

unsigned int sim_fiber_node(void)
{
	return current ? current->node : 0;
}

const char *sim_fiber_name(void)
{
	return current ? current->name : "-";
}

u64 sim_now(void)
{
	return now;
}

/* ---- scheduling points ---- */

void sim_yield(void)
{
	if (!current || !sim_chance(sim.yield))
		return;
	/* Sleep, as on a CPU that serves an interrupt, or on one that a host preempts. */
	if (sim_chance(current->node == sim.slow ? sim.preempt / 8 + 1 : sim.preempt)) {
		/* A queued fiber may be woken at any time, which must not end this sleep. */
		if (!current->queue)
			make_blocked(current, now + sim_below(4 * sim.delay) + 1);
	}
	leave();
}

void sim_might_sleep(void)
{
	if (current && current->spinning)
		sim_fail(SIM_NONE, "a fiber sleeps with a spinlock");
}

void sim_sleep(u64 microseconds)
{
	sim_might_sleep();
	make_blocked(current, now + microseconds);
	leave();
}

void sim_sleep_until(u64 time)
{
	if (time > now)
		sim_sleep(time - now);
}

/* Sleep before a retry. With a large sim.pause endless retries soon reach sim.time_max. */
void sim_pause(u64 microseconds)
{
	sim_sleep(sim.pause * microseconds);
}

void sim_cancel(struct sim_queue *queue)
{
	struct fiber **at;

	for (at = &queue->first; *at; at = &(*at)->next) {
		if (*at == current) {
			*at = current->next;
			break;
		}
	}
	current->queue = NULL;
}

void sim_prepare(struct sim_queue *queue)
{
	if (current->queue)
		sim_cancel(current->queue);
	current->queue = queue;
	current->next = queue->first;
	queue->first = current;
	current->woken = false;
}

bool sim_block(struct sim_queue *queue, u64 deadline)
{
	bool timely = true;

	if (!current->woken) {
		if (deadline <= now)
			timely = false;
		else
			make_blocked(current, deadline);
		leave();
		if (!current->woken && now >= deadline)
			timely = false;
	}
	sim_cancel(queue);
	return timely;
}

void sim_wake(struct sim_queue *queue)
{
	struct fiber *fiber = queue->first, *next;

	queue->first = NULL;
	for (; fiber; fiber = next) {
		next = fiber->next;
		fiber->queue = NULL;
		fiber->woken = true;
		make_runnable(fiber);
	}
}
