// SPDX-License-Identifier: GPL-2.0
/*
 * Fibers, their virtual time, and the shim's locks and wait queues. A step is
 * what one fiber does between two scheduling points at which it was switched.
 */
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "sim.h"

#define STACK_SIZE	(128 << 10)
#define STEPS_MAX	5000000ULL
#define TIME_MAX	(20000ULL * 1000000)

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
	u64 deadline;		/* blocked: wake then; U64_MAX: never */
	bool woken;
	struct sim_queue *queue;
	struct fiber *next;	/* in queue */
	unsigned int spinning;	/* spinlocks held */
	unsigned int place;	/* in all */
};

static struct fiber **all;	/* the runnable ones first */
static unsigned int count, runnable, room;
static struct fiber *current, *spare;
static u64 now, earliest;
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

static void fiber_main(void)
{
	current->run(current->arg);
	current->state = FIBER_DEAD;
	_longjmp(scheduler_jump, 1);
}

/* Back to the scheduler, until it chooses this one again. */
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
		/* An overflow is to be seen. */
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

static void alarms(void)
{
	unsigned int i;

	earliest = U64_MAX;
	for (i = runnable; i < count; i++) {
		struct fiber *fiber = all[i];

		if (fiber->deadline <= now)
			make_runnable(fiber);	/* swaps in one that was seen */
		else if (fiber->deadline < earliest)
			earliest = fiber->deadline;
	}
}

static void hang(const char *what)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		sim_event(-1, "waits: node %u %s since, until %lld", all[i]->node,
			  all[i]->name, (long long)all[i]->deadline);
	sim_fail(-1, "%s: %u fibers, the first of node %u, %s", what, count, all[0]->node,
		 all[0]->name);
}

void sim_run(void)
{
	u64 last = sim_counts.steps + STEPS_MAX;

	while (count) {
		if (!runnable) {
			if (earliest == U64_MAX)
				hang("nobody can run");
			if (earliest > now)
				now = earliest;
		}
		if (earliest <= now) {
			alarms();
			continue;
		}
		if (++sim_counts.steps > last)
			hang("no end in sight");
		if (now > TIME_MAX)
			hang("time is over");
		now++;
		current = all[sim_below(runnable)];
		if (!_setjmp(scheduler_jump)) {
			if (current->started)
				_longjmp(current->jump, 1);
			current->started = true;
			getcontext(&current->context);
			current->context.uc_stack.ss_sp = current->stack;
			current->context.uc_stack.ss_size = STACK_SIZE;
			current->context.uc_link = NULL;
			makecontext(&current->context, fiber_main, 0);
			swapcontext(&scheduler, &current->context);
		}
		if (current->state == FIBER_DEAD) {
			if (current->spinning)
				sim_fail(-1, "a fiber ended with a spinlock");
			bury(current);
		}
		current = NULL;
		sim_check_step();
	}
}

void sim_clock_start(void)
{
	now = 0;
	earliest = U64_MAX;
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
	/* As a CPU that serves an interrupt, or a virtual one that is away. */
	if (sim_chance(current->node == sim.slow ? sim.preempt / 8 + 1 : sim.preempt)) {
		struct sim_queue *queue = current->queue;

		/* Being on a queue, it may be woken before: then it is awake. */
		if (!queue)
			make_blocked(current, now + sim_below(4 * sim.delay) + 1);
	}
	leave();
}

void sim_might_sleep(void)
{
	if (current && current->spinning)
		sim_fail(-1, "sleeps with a spinlock");
}

void sim_sleep(u64 microseconds)
{
	sim_might_sleep();
	make_blocked(current, now + microseconds);
	leave();
}

/* Before something is tried again: that it never succeeds is soon seen. */
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

/* ---- locks ---- */

void mutex_init(struct mutex *mutex)
{
	mutex->owner = NULL;
	mutex->queue.first = NULL;
}

static void lock(struct mutex *mutex)
{
	sim_yield();
	if (mutex->owner == current)
		sim_fail(-1, "locks what it holds");
	while (mutex->owner) {
		sim_prepare(&mutex->queue);
		sim_block(&mutex->queue, U64_MAX);
	}
	mutex->owner = current;
}

static void unlock(struct mutex *mutex)
{
	if (mutex->owner != current)
		sim_fail(-1, "unlocks what it does not hold");
	mutex->owner = NULL;
	sim_wake(&mutex->queue);
	sim_yield();
}

void mutex_lock(struct mutex *mutex)
{
	sim_might_sleep();
	lock(mutex);
}

void mutex_unlock(struct mutex *mutex)
{
	unlock(mutex);
}

void spin_lock(spinlock_t *mutex)
{
	lock(mutex);
	current->spinning++;
}

void spin_unlock(spinlock_t *mutex)
{
	current->spinning--;
	unlock(mutex);
}

void sim_assert_held(const struct mutex *mutex)
{
	if (mutex->owner != current)
		sim_fail(-1, "a lock is not held");
}

/* ---- work ---- */

static struct sim_queue works_ended;

static void sim_work_run(void *arg)
{
	struct work_struct *work = arg;

	work->pending = false;
	work->running = true;
	work->run(work);
	work->running = false;
	sim_wake(&works_ended);
}

void sim_work(struct work_struct *work)
{
	if (work->pending)
		return;
	work->pending = true;
	sim_spawn(sim_fiber_node(), "work", sim_chance(4) ? sim_below(sim.delay) : 0,
		  sim_work_run, work);
}

/* One that has not begun is let run, which has to do no harm. */
void sim_work_end(struct work_struct *work)
{
	while (work->pending || work->running) {
		sim_prepare(&works_ended);
		sim_block(&works_ended, U64_MAX);
	}
}
