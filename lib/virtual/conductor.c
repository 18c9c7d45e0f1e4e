// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The conductor of a virtual run: it continues the coroutine or the operation whose time is
 * lowest. A coroutine runs until it waits, or until its clock is more than a quantum ahead of the
 * next event, which it notices when it calls the library.
 *
 * A coroutine begins by setcontext() and continues by _longjmp(), because setcontext() makes a
 * system call for the signal mask each time.
 */
#undef _FORTIFY_SOURCE	/* its longjmp() refuses to change to another stack */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "virtual/internal.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#define STACK		(UINT64_C(1) << 20)	/* default size of a stack, in bytes */
#define BUCKETS		4096			/* of blocked coroutines, by their keys */
/*
 * CPU time costs a system call, and the clock does not, but the clock goes on while other
 * processes run. So the conductor asks for the CPU time only after an interval of LONG, or when
 * OFTEN has passed since it last asked, in ns.
 */
#define LONG		20000
#define OFTEN		1000000
/*
 * Reading the clock takes about as long as a step of an operation on BDDs. So the conductor reads
 * it at one of this many steps.
 */
#define STEPS		8

_Thread_local struct kd_run kd_run;

/* The rest of the run's state, for this file */
static _Thread_local struct {
	struct kd_event **queue;	/* a heap, from index 1 on */
	size_t count, room;
	uint64_t numbers;
	bool full;			/* an event was lost: there was no memory */
	struct kd_coroutine *bucket[BUCKETS];
	jmp_buf jump;			/* where the conductor continues */
	ucontext_t context;		/* where a coroutine begins */
	uint64_t meter;			/* clock when the current coroutine began to compute, ns */
	uint64_t cpu, cpu_meter;	/* CPU time when last asked for, and the clock then, ns */
	uint64_t reading;		/* time that a reading of the clock takes, in ns */
	uint64_t steps;			/* since the clock was read */
	void *sanitizer;		/* of the conductor, as in struct kd_coroutine */
	const void *stack;		/* of the conductor, for AddressSanitizer */
	size_t stack_size;
} own;

/* ---- the queue ---- */

static bool before(const struct kd_event *a, const struct kd_event *b)
{
	return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void place(struct kd_event *event, size_t at)
{
	own.queue[at] = event;
	event->at = at;
}

/* Put an event where it belongs, at or above index at, or below it. */
static void rise(struct kd_event *event, size_t at)
{
	for (; at > 1 && before(event, own.queue[at / 2]); at /= 2)
		place(own.queue[at / 2], at);
	place(event, at);
}

static void sink(struct kd_event *event, size_t at)
{
	size_t child;

	for (; (child = 2 * at) <= own.count; at = child) {
		if (child < own.count && before(own.queue[child + 1], own.queue[child]))
			child++;
		if (!before(own.queue[child], event))
			break;
		place(own.queue[child], at);
	}
	place(event, at);
}

int kd_event_add(struct kd_event *event, uint64_t time)
{
	struct kd_event **more;
	size_t room;

	if (own.count + 1 >= own.room) {
		room = own.room ? 2 * own.room : 1024;
		more = reallocarray(own.queue, room, sizeof(*more));
		if (!more) {
			own.full = true;
			return -ENOMEM;
		}
		own.queue = more;
		own.room = room;
	}
	event->time = time;
	event->number = ++own.numbers;
	rise(event, ++own.count);
	return 0;
}

void kd_event_take(struct kd_event *event)
{
	size_t at = event->at;
	struct kd_event *last = own.queue[own.count--];

	event->at = 0;
	if (last == event)
		return;
	if (at > 1 && before(last, own.queue[at / 2]))
		rise(last, at);
	else
		sink(last, at);
}

/* ---- clocks ---- */

static void ask_for_cpu(uint64_t now)
{
	own.cpu = kd_system_time(CLOCK_THREAD_CPUTIME_ID);
	own.cpu_meter = now;
}

/* The shortest time between two readings of the clock */
static void calibrate(void)
{
	uint64_t before, passed;
	unsigned int i;

	own.reading = UINT64_MAX;
	for (i = 0; i < 1000; i++) {
		before = kd_system_time(CLOCK_MONOTONIC);
		passed = kd_system_time(CLOCK_MONOTONIC) - before;
		if (passed < own.reading)
			own.reading = passed;
	}
}

/* The CPU time since the last call of this function or of resume_meter(), in ns */
static uint64_t measure(void)
{
	uint64_t now = kd_system_time(CLOCK_MONOTONIC), passed = now - own.meter, cpu, before;

	if (passed > LONG || now - own.cpu_meter > OFTEN) {
		/* All time from cpu_meter to meter is CPU time, except for short breaks. */
		before = own.cpu + (own.meter - own.cpu_meter);
		ask_for_cpu(now);
		cpu = own.cpu > before ? own.cpu - before : 0;
		if (passed > LONG && passed > cpu)
			passed = cpu;
	}
	own.meter = now;
	own.steps = 0;
	/* at least 1, so that a program that polls its clock gets on */
	return passed > own.reading ? passed - own.reading : 1;
}

static void resume_meter(void)
{
	uint64_t now;

	if (kd_run.attr->step)
		return;
	now = kd_system_time(CLOCK_MONOTONIC);
	/* Perhaps other processes ran meanwhile. */
	if (now - own.meter > LONG)
		ask_for_cpu(now);
	own.meter = now;
}

/* Advance the clock of the coroutine that runs by what it has computed. */
static struct kd_coroutine *settle(void)
{
	struct kd_coroutine *c = kd_run.current;

	if (!kd_run.attr->step)
		c->clock += measure();
	kd_times_count(c, kd_times_computing(c));
	return c;
}

uint64_t kd_virtual_now(void)
{
	uint64_t clock;

	if (!kd_run.current)
		return kd_run.now;
	clock = settle()->clock;
	resume_meter();
	return clock;
}

/* ---- coroutines ---- */

/*
 * Tell the sanitizers which stack runs next. NULL stands for the conductor. The functions are
 * inline, because ThreadSanitizer keeps a stack of the calls of each coroutine.
 */
#if defined(__SANITIZE_ADDRESS__)
static inline void leave_stack(struct kd_coroutine *from, const struct kd_coroutine *to)
{
	void **fake = from ? &from->sanitizer : &own.sanitizer;

	__sanitizer_start_switch_fiber(from && from->ended ? NULL : fake,
				       to ? to->stack : own.stack,
				       to ? to->stack_size : own.stack_size);
}

static inline void enter_stack(struct kd_coroutine *c)
{
	__sanitizer_finish_switch_fiber(c ? c->sanitizer : own.sanitizer, c ? &own.stack : NULL,
					c ? &own.stack_size : NULL);
}
#elif defined(__SANITIZE_THREAD__)
__attribute__((always_inline))
static inline void leave_stack(struct kd_coroutine *from, const struct kd_coroutine *to)
{
	(void)from;
	__tsan_switch_to_fiber(to ? to->sanitizer : own.sanitizer, 0);
}

static inline void enter_stack(struct kd_coroutine *c)
{
	(void)c;
}
#else
static inline void leave_stack(struct kd_coroutine *from, const struct kd_coroutine *to)
{
	(void)from;
	(void)to;
}

static inline void enter_stack(struct kd_coroutine *c)
{
	(void)c;
}
#endif

static void leave(void)
{
	if (!_setjmp(kd_run.current->jump)) {
		leave_stack(kd_run.current, NULL);
		_longjmp(own.jump, 1);
	}
	enter_stack(kd_run.current);
}

/* Let the conductor go on. Returns when the coroutine's event happens; the time is a share. */
static void pause_here(struct kd_coroutine *c, enum kdsm_virtual_share share)
{
	c->share = share;
	leave();
	kd_times_count(c, share);
	resume_meter();
}

static _Noreturn void begin(void)
{
	struct kd_coroutine *c = kd_run.current;

	enter_stack(c);
	resume_meter();
	c->run(c->argument);
	settle();
	kd_times_end(c);
	c->ended = true;
	kd_virtual_wake(c);
	leave_stack(c, NULL);
	_longjmp(own.jump, 1);
}

static void free_stack(struct kd_coroutine *c)
{
	if (c->stack)
		munmap(c->stack, c->stack_size);
	c->stack = NULL;
}

static _Noreturn void start_current(void)
{
	struct kd_coroutine *c = kd_run.current;

	c->begun = true;
	getcontext(&own.context);
	own.context.uc_stack.ss_sp = c->stack;
	own.context.uc_stack.ss_size = c->stack_size;
	own.context.uc_link = NULL;
	makecontext(&own.context, begin, 0);
	leave_stack(NULL, c);
	setcontext(&own.context);
	abort();	/* setcontext() fails only for a context that is not valid */
}

/* Continue the current coroutine until it waits. Local variables do not survive that. */
static void run_current(void)
{
	if (!_setjmp(own.jump)) {
		if (!kd_run.current->begun)
			start_current();
		leave_stack(NULL, kd_run.current);
		_longjmp(kd_run.current->jump, 1);
	}
	enter_stack(NULL);
}

static void run_coroutine(struct kd_event *event)
{
	struct kd_coroutine *c = (void *)event;

	if (c->clock < event->time)
		c->clock = event->time;
	kd_run.current = c;
	run_current();
	kd_run.current = NULL;
	if (c->ended)
		free_stack(c);
}

struct kd_coroutine *kd_coroutine_new(struct kd_simulated *node, size_t stack,
				      void *(*run)(void *argument), void *argument)
{
	struct kd_coroutine *c = calloc(1, sizeof(*c));
	size_t page = sysconf(_SC_PAGESIZE);

	if (!c)
		return NULL;
	c->event.happen = run_coroutine;
	c->node = node;
	c->run = run;
	c->argument = argument;
	c->stack_size = (stack + page - 1) / page * page + page;
	c->stack = mmap(NULL, c->stack_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (c->stack == MAP_FAILED) {
		free(c);
		return NULL;
	}
	/* Otherwise each stack may take a huge page. Fails if the kernel has none. */
	madvise(c->stack, c->stack_size, MADV_NOHUGEPAGE);
	c->clock = kd_virtual_now();
	if (mprotect(c->stack, page, PROT_NONE) || kd_event_add(&c->event, c->clock)) {
		free_stack(c);
		free(c);
		return NULL;
	}
	c->next = node->coroutines;
	node->coroutines = c;
#if defined(__SANITIZE_THREAD__)
	c->sanitizer = __tsan_create_fiber(0);
#endif
	return c;
}

static void free_coroutine(struct kd_coroutine *c)
{
	struct kd_coroutine **link = &c->node->coroutines;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
#if defined(__SANITIZE_THREAD__)
	__tsan_destroy_fiber(c->sanitizer);
#endif
	free_stack(c);
	free(c);
}

/* ---- waiting ---- */

static struct kd_coroutine **bucket_of(const void *key)
{
	return &own.bucket[((uintptr_t)key >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static void enter_bucket(struct kd_coroutine *c, const void *key)
{
	struct kd_coroutine **link = bucket_of(key);

	while (*link)
		link = &(*link)->behind;
	c->key = key;
	c->behind = NULL;
	*link = c;
}

static void leave_bucket(struct kd_coroutine *c)
{
	struct kd_coroutine **link = bucket_of(c->key);

	while (*link != c)
		link = &(*link)->behind;
	*link = c->behind;
	c->key = NULL;
}

/* Wait for wake(key) or, unless time is KDSM_FOREVER, for this time. */
static bool block_until(const void *key, uint64_t time, enum kdsm_virtual_share share)
{
	struct kd_coroutine *c = kd_run.current;
	bool woken;

	enter_bucket(c, key);
	if (time != KDSM_FOREVER)
		kd_event_add(&c->event, time);
	pause_here(c, share);
	woken = !c->key;
	if (!woken)
		leave_bucket(c);
	return woken;
}

bool kd_virtual_await(const void *key, uint64_t timeout, enum kdsm_virtual_share share)
{
	uint64_t clock = settle()->clock;

	return block_until(key, timeout < KDSM_FOREVER - clock ? clock + timeout : KDSM_FOREVER,
			   share);
}

bool kd_virtual_block(const void *key, uint64_t timeout)
{
	return kd_virtual_await(key, timeout, KDSM_VIRTUAL_WAITING);
}

void kd_virtual_wake(const void *key)
{
	struct kd_coroutine **link = bucket_of(key), *c;
	uint64_t now;

	if (!*link)
		return;
	now = kd_virtual_now();
	while ((c = *link)) {
		if (c->key != key) {
			link = &c->behind;
			continue;
		}
		*link = c->behind;
		c->key = NULL;
		if (c->event.at)
			kd_event_take(&c->event);
		kd_event_add(&c->event, c->clock < now ? now : c->clock);
	}
}

/* Let the others catch up if the coroutine is more than a quantum ahead. */
static void catch_up(struct kd_coroutine *c)
{
	if (!own.count || c->clock <= own.queue[1]->time + kd_run.attr->quantum)
		return;
	kd_event_add(&c->event, c->clock);
	pause_here(c, kd_times_computing(c));
}

void kd_virtual_catch_up(void)
{
	catch_up(settle());
	resume_meter();
}

static void spend_ns(uint64_t ns)
{
	struct kd_coroutine *c = settle();

	c->clock += ns;
	kd_times_count(c, kd_times_computing(c));
	catch_up(c);
	resume_meter();
}

/* ---- the scheduler ---- */

static void sleep_for(uint64_t ns)
{
	struct kd_coroutine *c = settle();

	kd_event_add(&c->event, c->clock + ns);
	pause_here(c, KDSM_VIRTUAL_WAITING);
}

static int start(void **thread, size_t stack, void *(*run)(void *argument), void *argument)
{
	*thread = kd_coroutine_new(kd_run.current->node, stack ? stack : STACK, run, argument);
	return *thread ? 0 : -EAGAIN;
}

static bool join(void *thread, uint64_t timeout)
{
	struct kd_coroutine *c = thread;
	uint64_t began = kd_virtual_now();

	while (!c->ended)
		if (!kd_virtual_block(c, kdsm_left(began, timeout)))
			return false;
	free_coroutine(c);
	return true;
}

static void **slot(void)
{
	return &kd_run.current->slot;
}

static uintptr_t stack_end(void)
{
	return (uintptr_t)kd_run.current->stack + sysconf(_SC_PAGESIZE);
}

static void spend(uint64_t steps)
{
	if (!kd_run.attr->step) {
		own.steps += steps ? steps : 1;
		if (own.steps < STEPS)
			return;
	}
	spend_ns(steps * kd_run.attr->step);
}

static void busy(bool busy)
{
	struct kd_coroutine *c = settle();

	if (!c->worker)
		kd_times_worker(c);
	c->busy = busy;
	resume_meter();
}

static enum kd_phase phase(enum kd_phase phase)
{
	uint64_t now = kd_virtual_now();

	return kd_times_phase(kd_run.current->node, now, phase);
}

static const struct kd_scheduler scheduler = {
	.now = kd_virtual_now,
	.sleep = sleep_for,
	.block = kd_virtual_block,
	.wake = kd_virtual_wake,
	.start = start,
	.join = join,
	.slot = slot,
	.stack_end = stack_end,
	.spend = spend,
	.busy = busy,
	.phase = phase,
};

int kd_conduct(bool run)
{
	struct kd_event *event;
	unsigned int i;
	int ret = 0;

	ask_for_cpu(kd_system_time(CLOCK_MONOTONIC));
	calibrate();
#if defined(__SANITIZE_THREAD__)
	own.sanitizer = __tsan_get_current_fiber();
#endif
	kd_scheduler = &scheduler;
	while (run && own.count && !own.full) {
		event = own.queue[1];
		kd_event_take(event);
		kd_run.now = event->time;
		event->happen(event);
	}
	kd_scheduler = NULL;
	for (i = 0; i < kd_run.attr->nodes; i++)
		while (kd_run.node[i].coroutines) {
			if (!kd_run.node[i].coroutines->ended)
				ret = own.full ? -ENOMEM : -EDEADLK;
			free_coroutine(kd_run.node[i].coroutines);
		}
	free(own.queue);
	memset(&own, 0, sizeof(own));
	return ret;
}

/* ---- functions for the program ---- */

uint64_t kdsm_virtual_now(void)
{
	return kd_run.current ? kd_virtual_now() : 0;
}

void kdsm_virtual_spend(uint64_t ns)
{
	if (kd_run.current)
		spend_ns(ns);
}
