// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Teams and threads: fork, join and barriers. The threads of a member wait between teams, and the
 * same ones serve the same numbers of an outermost team again, so that threadprivate variables
 * keep their values.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "span.h"

/* A thread that waits for teams */
struct worker {
	_Alignas(KO_LINE) uint32_t calls;	/* changes when there is something to do */
	bool busy;		/* protected by workers_lock */
	struct ko_team *team;
	unsigned int number;
	unsigned int index;
};

/* Looks for the next team before a worker sleeps */
#define IDLE_LOOKS	2000

static struct worker **workers;
static unsigned int worker_count;
static uint32_t workers_lock;
static __thread struct ko_thread *self;
static struct ko_thread *main_thread;	/* of which the outermost teams span members */
static struct ko_team span;		/* the team that spans members, as this member knows it */

/* ---- a thread in a team ---- */

static void enter(struct ko_thread *thread, struct ko_team *team, unsigned int number)
{
	memset(thread, 0, sizeof(*thread));
	thread->team = team;
	thread->number = number;
	thread->outer = self;
	thread->implicit.implicit = true;
	thread->implicit.references = 1;
	thread->implicit.icv = team->common->icv;
	thread->task = &thread->implicit;
	if (team->common->preset.active) {
		thread->loop = team->common->preset;
		thread->loop.serial = ++thread->serial;
	}
	self = thread;
}

static void leave(const struct ko_thread *thread)
{
	self = thread->outer;
}

/* The team of a thread that is in none: of the initial thread, or one that the program made */
static struct ko_thread *initial(void)
{
	struct {
		struct ko_thread thread;
		struct ko_team team;
		struct ko_common common;
	} *all = aligned_alloc(KO_LINE, sizeof(*all));

	if (!all)
		ko_fatal("no memory for a thread");
	memset(all, 0, sizeof(*all));
	all->team.common = &all->common;
	all->team.size = 1;
	all->team.here = 1;
	all->common.size = 1;
	all->common.icv = ko_settings.icv;
	if (ko_members > 1)
		all->common.icv.threads = ko_shared->threads;
	enter(&all->thread, &all->team, 0);
	return self;
}

struct ko_thread *ko_self(void)
{
	return self ? self : initial();
}

/* ---- barriers ---- */

/* Run tasks until there are none. */
static void drain(struct ko_thread *thread)
{
	const uint64_t *outstanding = &thread->team->common->pool.outstanding;
	struct ko_pause pause = { 0 };
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(&thread->team->barrier.event, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(outstanding, __ATOMIC_SEQ_CST))
			break;
		if (ko_task_help(thread))
			pause = (struct ko_pause){ 0 };
		else
			ko_pause(&pause, thread->team, seen);
	}
}

/*
 * A thread arrives only when no task is left. Threads that have arrived run the tasks that others
 * create until the last one arrives. When that has happened, no thread is left to create tasks.
 */
static void barrier(struct ko_thread *thread, enum ko_round round)
{
	struct ko_team *team = thread->team;
	struct ko_barrier *barrier = &team->barrier;
	struct ko_pause pause = { 0 };
	uint32_t generation, seen;

	drain(thread);
	if (team->size == 1)
		return;
	generation = __atomic_load_n(&barrier->generation, __ATOMIC_SEQ_CST);
	if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_SEQ_CST) == team->here) {
		if (team->spans)
			ko_round(round);
		__atomic_store_n(&barrier->arrived, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&barrier->generation, generation + 1, __ATOMIC_SEQ_CST);
		ko_wake(team);
		return;
	}
	for (;;) {
		seen = __atomic_load_n(&barrier->event, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&barrier->generation, __ATOMIC_SEQ_CST) != generation)
			break;
		if (ko_task_help(thread))
			pause = (struct ko_pause){ 0 };
		else
			ko_pause(&pause, team, seen);
	}
}

void ko_barrier(struct ko_thread *thread)
{
	barrier(thread, KO_ROUND_BARRIER);
}

/* ---- threads ---- */

/* Serve a team as one of its threads. The team may be gone when the function returns. */
static void serve(struct worker *worker)
{
	struct ko_team *team = worker->team;
	struct ko_thread thread;

	enter(&thread, team, worker->number);
	team->common->run(team->common->data);
	barrier(&thread, KO_ROUND_JOIN);
	leave(&thread);
	/* Before the team ends, so that the next team gets the same threads */
	__atomic_store_n(&worker->busy, false, __ATOMIC_RELEASE);
	if (!__atomic_sub_fetch(&team->inside, 1, __ATOMIC_SEQ_CST) && team->spans)
		ko_futex_wake(&team->inside, 1);	/* the team is the variable span */
}

static void *work(void *data)
{
	struct worker *worker = data;
	uint32_t done = 0, calls;
	unsigned int looks;

	for (;;) {
		for (looks = 0; looks < IDLE_LOOKS || ko_settings.spin; looks++) {
			calls = __atomic_load_n(&worker->calls, __ATOMIC_ACQUIRE);
			if (calls != done)
				break;
			if (looks > IDLE_LOOKS / 2)
				sched_yield();
		}
		while ((calls = __atomic_load_n(&worker->calls, __ATOMIC_ACQUIRE)) == done)
			ko_futex_wait(&worker->calls, done, UINT64_MAX);
		done = calls;
		serve(worker);
	}
	return NULL;
}

/* Bind a thread to a CPU of those that the process may use, if OMP_PROC_BIND asks for it. */
static void bind(pthread_attr_t *attr, unsigned int index)
{
	unsigned int cpus = ko_processors(), i, n = 0;
	cpu_set_t all, one;

	if (!ko_settings.bind || sched_getaffinity(0, sizeof(all), &all))
		return;
	CPU_ZERO(&one);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && n++ == index % cpus)
			CPU_SET(i, &one);
	pthread_attr_setaffinity_np(attr, sizeof(one), &one);
}

static struct worker *start(unsigned int index)
{
	struct worker *worker = aligned_alloc(KO_LINE, sizeof(*worker));
	pthread_attr_t attr;
	pthread_t thread;
	size_t size;
	void *stack;
	int ret;

	if (!worker)
		ko_fatal("no memory for thread %u", index + 1);
	memset(worker, 0, sizeof(*worker));
	worker->index = index;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (ko_settings.stack && pthread_attr_setstacksize(&attr, ko_settings.stack))
		ko_fatal("OMP_STACKSIZE: %zu bytes are too small for a stack", ko_settings.stack);
	stack = ko_stack(ko_rank, index + !ko_rank, &size);
	if (stack && pthread_attr_setstack(&attr, stack, size))
		ko_fatal("%zu bytes are too small for a stack", size);
	bind(&attr, index + 1);
	ret = pthread_create(&thread, &attr, work, worker);
	pthread_attr_destroy(&attr);
	if (ret)
		ko_fatal("cannot start thread %u: %s", index + 1, strerror(ret));
	return worker;
}

/* Hand a thread number of the team to a free worker. Caller holds workers_lock. */
static void employ(struct ko_team *team, unsigned int number)
{
	struct worker *worker = NULL;
	unsigned int i;

	for (i = 0; i < worker_count; i++)
		if (!__atomic_load_n(&workers[i]->busy, __ATOMIC_ACQUIRE))
			break;
	if (i == worker_count) {
		workers = realloc(workers, (worker_count + 1) * sizeof(*workers));
		if (!workers)
			ko_fatal("no memory for %u threads", worker_count + 1);
		workers[worker_count++] = start(i);
	}
	worker = workers[i];
	worker->busy = true;
	worker->team = team;
	worker->number = number;
	__atomic_add_fetch(&worker->calls, 1, __ATOMIC_RELEASE);
	ko_futex_wake(&worker->calls, 1);
}

/* ---- fork and join ---- */

static bool may_span(const struct ko_thread *thread)
{
	return ko_members > 1 && thread == main_thread;
}

static unsigned int choose_size(struct ko_thread *thread, unsigned int threads)
{
	const struct ko_icv *icv = &thread->task->icv;

	if (!threads)
		threads = thread->pushed_threads;
	thread->pushed_threads = 0;
	if (!threads)
		threads = icv->threads;
	if (thread->team->active_level >= icv->active_levels)
		return 1;
	/* Threads of a team that spans members need shared stacks, of which main() has one. */
	if (may_span(thread) && threads > ko_members * (KO_STACKS - 1))
		threads = ko_members * (KO_STACKS - 1);
	return threads < ko_settings.limit ? threads : ko_settings.limit;
}

static void set_up(struct ko_team *team, struct ko_common *common, struct ko_thread *outer,
		   unsigned int size)
{
	unsigned int level = outer->team->level + 1;
	unsigned int active = outer->team->active_level + (size > 1);

	memset(team, 0, sizeof(*team));
	memset(common, 0, sizeof(*common));
	team->common = common;
	common->level = level;
	common->active_level = active;
	team->outer = outer;
	team->size = size;
	team->here = size;
	team->level = level;
	team->active_level = active;
	common->size = size;
	common->icv = outer->task->icv;
	if (level < KO_NEST_LISTS && ko_settings.nested[level])
		common->icv.threads = ko_settings.nested[level];
}

/* Let threads of this member serve its numbers of a team, except for the first few of them. */
static void employ_all(struct ko_team *team, unsigned int except)
{
	unsigned int i;

	team->inside = team->here - except;
	if (!team->inside)
		return;
	ko_own_lock(&workers_lock);
	for (i = except; i < team->here; i++)
		employ(team, team->first + i);
	ko_own_unlock(&workers_lock);
}

/* Numbers of threads go to members in equal ranges. */
static void divide(struct ko_team *team)
{
	unsigned int share = (team->size - 1) / ko_members + 1;

	team->spans = true;
	team->first = ko_rank * share < team->size ? ko_rank * share : team->size;
	team->here = team->size - team->first < share ? team->size - team->first : share;
}

/* Run a team that has been set up; the calling thread is the first. */
static void lead(struct ko_team *team)
{
	struct ko_thread thread;
	unsigned int i;

	employ_all(team, 1);
	enter(&thread, team, 0);
	team->common->run(team->common->data);
	barrier(&thread, KO_ROUND_JOIN);
	leave(&thread);
	/* The barrier has released the others, which need the team a little longer. */
	for (i = 0; __atomic_load_n(&team->inside, __ATOMIC_SEQ_CST); i++)
		if (i > 100)
			sched_yield();
}

static void describe(struct ko_common *common, void (*run)(void *data), void *data,
		     const struct ko_loop *preset)
{
	common->run = run;
	common->data = data;
	if (preset)
		common->preset = *preset;
}

void ko_parallel(void (*run)(void *data), void *data, unsigned int threads,
		 const struct ko_loop *preset)
{
	struct ko_thread *outer = ko_self();
	unsigned int size = choose_size(outer, threads);
	struct ko_common common;
	struct ko_team team;
	uint32_t lock;

	if (size > 1 && may_span(outer)) {
		lock = ko_shared->common.pool.lock;
		set_up(&span, &ko_shared->common, outer, size);
		ko_shared->common.pool.lock = lock;
		describe(span.common, run, data, preset);
		divide(&span);
		ko_round(KO_ROUND_FORK);
		lead(&span);
		return;
	}
	set_up(&team, &common, outer, size);
	describe(&common, run, data, preset);
	lead(&team);
}

/* ---- members ---- */

void ko_team_main(void)
{
	main_thread = ko_self();
}

void ko_member_serve(void)
{
	const struct ko_common *common = &ko_shared->common;
	uint32_t inside;

	while (ko_round(KO_ROUND_NONE) != KO_ROUND_END) {
		memset(&span, 0, sizeof(span));
		span.common = &ko_shared->common;
		span.outer = ko_self();
		span.size = common->size;
		span.level = common->level;
		span.active_level = common->active_level;
		divide(&span);
		employ_all(&span, 0);
		/* Without threads, this member still takes part in the rounds of barriers. */
		while (!span.here && ko_round(KO_ROUND_NONE) != KO_ROUND_JOIN)
			;
		while ((inside = __atomic_load_n(&span.inside, __ATOMIC_SEQ_CST)))
			ko_futex_wait(&span.inside, inside, UINT64_MAX);
	}
}

struct serial {
	struct ko_thread thread;
	struct ko_team team;
	struct ko_common common;
};

void ko_serial_begin(void)
{
	struct serial *serial = aligned_alloc(KO_LINE, sizeof(*serial));
	struct ko_thread *outer = ko_self();

	if (!serial)
		ko_fatal("no memory for a team");
	outer->pushed_threads = 0;
	set_up(&serial->team, &serial->common, outer, 1);
	enter(&serial->thread, &serial->team, 0);
}

void ko_serial_end(void)
{
	struct ko_thread *thread = ko_self();

	ko_barrier(thread);
	leave(thread);
	free(thread);		/* the first field of struct serial */
}
