// SPDX-License-Identifier: GPL-2.0
/* The kernel's locks, work and allocator for fibers; include/shim.h declares them. */
#include "internal.h"

/* ---- locks ---- */

void mutex_init(struct mutex *mutex)
{
	mutex->owner = NULL;
	mutex->queue.first = NULL;
}

static void lock(struct mutex *mutex)
{
	sim_yield();
	if (mutex->owner == sim_fiber())
		sim_fail(SIM_NONE, "a fiber locks what it holds");
	while (mutex->owner) {
		sim_prepare(&mutex->queue);
		sim_block(&mutex->queue, U64_MAX);
	}
	mutex->owner = sim_fiber();
}

static void unlock(struct mutex *mutex)
{
	if (mutex->owner != sim_fiber())
		sim_fail(SIM_NONE, "a fiber unlocks what it does not hold");
	mutex->owner = NULL;
	sim_wake(&mutex->queue);
	sim_yield();
}

void mutex_lock(struct mutex *mutex)
{
	sim_might_sleep();
	lock(mutex);
}

bool mutex_trylock(struct mutex *mutex)
{
	sim_yield();
	if (mutex->owner)
		return false;
	lock(mutex);
	return true;
}

void mutex_unlock(struct mutex *mutex)
{
	unlock(mutex);
}

void spin_lock(spinlock_t *mutex)
{
	lock(mutex);
	sim_spin(1);
}

void spin_unlock(spinlock_t *mutex)
{
	sim_spin(-1);
	unlock(mutex);
}

void sim_assert_held(const struct mutex *mutex)
{
	if (mutex->owner != sim_fiber())
		sim_fail(SIM_NONE, "a lock is not held");
}

/* ---- work ---- */

static struct sim_queue works_ended;

static void work_run(void *arg)
{
	struct work_struct *work = arg;

	/* No item runs twice at once */
	while (work->running) {
		sim_prepare(&works_ended);
		sim_block(&works_ended, U64_MAX);
	}
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
	sim_spawn(sim_fiber_node(), "work", sim_chance(4) ? sim_below(sim.delay) : 0, work_run,
		  work);
}

/* delay is in jiffies */
void sim_work_later(struct work_struct *work, u64 delay)
{
	if (work->pending)
		return;
	work->pending = true;
	sim_spawn(sim_fiber_node(), "work", delay * (1000000 / HZ), work_run, work);
}

/* Wait for pending work instead of cancelling it: a caller must not rely on the cancellation. */
void sim_work_end(struct work_struct *work)
{
	while (work->pending || work->running) {
		sim_prepare(&works_ended);
		sim_block(&works_ended, U64_MAX);
	}
}

/* ---- memory ---- */

static s64 allocated;

/* Whether the node of this fiber has no memory left now */
static bool is_short(void)
{
	return sim.shortage && sim_fiber_node() == sim.short_node && sim_now() >= sim.shortage &&
	       sim_now() < sim.shortage_end;
}

bool sim_no_memory(void)
{
	if (!sim_in_fiber() || !(is_short() || sim_chance(sim.nomem)))
		return false;
	sim_counts.nomem++;
	sim_event(SIM_NONE, "an allocation fails");
	return true;
}

void *sim_alloc_nofail(size_t size)
{
	allocated++;
	return calloc(1, size);
}

void *sim_alloc(size_t size, bool zero)
{
	void *p;

	if (sim_no_memory())
		return NULL;
	p = zero ? calloc(1, size ? size : 1) : malloc(size ? size : 1);
	if (!zero)
		memset(p, 0xa5, size);
	allocated++;
	return p;
}

void sim_free(void *p)
{
	if (p)
		allocated--;
	free(p);
}

void sim_memory_start(void)
{
	allocated = 0;
}

void sim_memory_stop(void)
{
	if (allocated)
		sim_fail(SIM_NONE, "%lld allocations were not freed", (long long)allocated);
}
