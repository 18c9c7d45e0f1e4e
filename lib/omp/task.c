// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Explicit tasks. Each team has a pool of tasks that may run, under one lock. Threads take tasks
 * from it while they wait: at a barrier the oldest task; in taskwait only children of the waiting
 * task; in taskgroup only tasks of the group. So a thread that waits never begins a task that could
 * wait for the suspended one (tied tasks, OpenMP 5.2, section 12.9).
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* Tasks of a team for each thread, above which a creator runs new tasks itself */
#define MOST_TASKS	64

struct ko_task *ko_task_create(size_t size)
{
	struct ko_task *task = ko_shared_alloc(64, KO_TASK_ROOM + size);

	if (!task)
		ko_fatal("no memory for a task of %zu bytes", size);
	memset(task, 0, sizeof(*task));
	task->references = 1;
	return task;
}

static struct ko_pool *pool_of(const struct ko_thread *thread)
{
	return &thread->team->common->pool;
}

static void lock_pool(const struct ko_thread *thread)
{
	if (thread->team->spans)
		ko_lock(&pool_of(thread)->lock);
	else
		ko_own_lock(&pool_of(thread)->lock);
}

static void unlock_pool(const struct ko_thread *thread)
{
	if (thread->team->spans)
		ko_unlock(&pool_of(thread)->lock);
	else
		ko_own_unlock(&pool_of(thread)->lock);
}

/* ---- lists of tasks that may run; caller holds the lock of the pool ---- */

static void enqueue(void *context, struct ko_task *task)
{
	struct ko_pool *pool = context;
	struct ko_task *parent = task->parent;

	if (!pool->first)
		pool->last = &pool->first;
	task->next = NULL;
	task->link = pool->last;
	*pool->last = task;
	pool->last = &task->next;
	task->sibling = parent->ready;
	task->sibling_link = &parent->ready;
	if (parent->ready)
		parent->ready->sibling_link = &task->sibling;
	parent->ready = task;
	__atomic_add_fetch(&pool->queued, 1, __ATOMIC_SEQ_CST);
}

static void dequeue(struct ko_pool *pool, struct ko_task *task)
{
	*task->link = task->next;
	if (task->next)
		task->next->link = task->link;
	else
		pool->last = task->link;
	*task->sibling_link = task->sibling;
	if (task->sibling)
		task->sibling->sibling_link = task->sibling_link;
	__atomic_sub_fetch(&pool->queued, 1, __ATOMIC_SEQ_CST);
}

/* Drop a reference. Returns the task if it can be freed: after the lock is dropped. */
static struct ko_task *put(struct ko_task *task)
{
	return --task->references || task->implicit ? NULL : task;
}

static void discard(struct ko_task *task)
{
	if (!task)
		return;
	free(task->depends);
	free(task->successors);
	free(task);
}

/* ---- running ---- */

static void finish(struct ko_thread *thread, struct ko_task *task)
{
	struct ko_pool *pool = pool_of(thread);
	struct ko_task *gone, *parent_gone = NULL;

	if (task->undeferred) {
		/* Only its children share it, and only they can have references */
		if (__atomic_load_n(&task->references, __ATOMIC_ACQUIRE) == 1) {
			discard(task);
			return;
		}
		lock_pool(thread);
		gone = put(task);
		unlock_pool(thread);
		discard(gone);
		return;
	}
	lock_pool(thread);
	task->complete = true;
	ko_depend_remove(task, pool, enqueue);
	__atomic_sub_fetch(&task->parent->children, 1, __ATOMIC_SEQ_CST);
	if (task->group)
		__atomic_sub_fetch(&task->group->count, 1, __ATOMIC_SEQ_CST);
	parent_gone = put(task->parent);
	gone = put(task);
	__atomic_sub_fetch(&pool->outstanding, 1, __ATOMIC_SEQ_CST);
	unlock_pool(thread);
	discard(gone);
	discard(parent_gone);
	ko_wake(thread->team);
}

void ko_task_enter(struct ko_thread *thread, struct ko_task *task)
{
	task->parent = thread->task;
	task->group = thread->group;
	task->icv = thread->task->icv;
	task->final |= thread->task->final;
	task->undeferred = true;
	thread->task = task;
}

void ko_task_leave(struct ko_thread *thread)
{
	struct ko_task *task = thread->task;

	thread->task = task->parent;
	thread->group = task->group;
	finish(thread, task);
}

static void run(struct ko_thread *thread, struct ko_task *task)
{
	struct ko_task *former = thread->task;
	struct ko_group *group = thread->group;

	thread->task = task;
	thread->group = task->group;
	task->run(task->data);
	thread->task = former;
	thread->group = group;
	finish(thread, task);
}

/* Which tasks a thread may begin */
enum reach { ANY, CHILDREN, GROUP };

static struct ko_task *find(const struct ko_thread *thread, enum reach reach)
{
	struct ko_task *task = thread->task->ready;

	if (task && reach == GROUP && task->group != thread->group)
		task = NULL;
	if (task || reach == CHILDREN)
		return task;
	task = pool_of(thread)->first;
	while (task && reach == GROUP && task->group != thread->group)
		task = task->next;
	return task;
}

static bool help(struct ko_thread *thread, enum reach reach)
{
	struct ko_pool *pool = pool_of(thread);
	struct ko_task *task;

	if (!__atomic_load_n(&pool->queued, __ATOMIC_SEQ_CST))
		return false;
	lock_pool(thread);
	task = find(thread, reach);
	if (task)
		dequeue(pool, task);
	unlock_pool(thread);
	if (task)
		run(thread, task);
	return task;
}

bool ko_task_help(struct ko_thread *thread)
{
	return help(thread, ANY);
}

/* See what the tasks of other members wrote, and how many of them are complete. */
static void look(const struct ko_thread *thread)
{
	if (thread->team->spans) {
		lock_pool(thread);
		unlock_pool(thread);
	}
}

/* Wait until a count of tasks is zero. */
static void wait_for(struct ko_thread *thread, const uint64_t *count, enum reach reach)
{
	struct ko_pause pause = { 0 };
	uint32_t seen;

	for (;;) {
		seen = __atomic_load_n(&thread->team->barrier.event, __ATOMIC_SEQ_CST);
		look(thread);
		if (!__atomic_load_n(count, __ATOMIC_SEQ_CST))
			break;
		if (help(thread, reach))
			pause = (struct ko_pause){ 0 };
		else
			ko_pause(&pause, thread->team, seen);
	}
}

void ko_task_wait(struct ko_thread *thread)
{
	/* Only this thread adds children, so it never misses one here. */
	if (__atomic_load_n(&thread->task->children, __ATOMIC_SEQ_CST))
		wait_for(thread, &thread->task->children, CHILDREN);
}

/* ---- creating ---- */

static bool must_run_now(const struct ko_thread *thread, unsigned int flags)
{
	uint64_t outstanding = __atomic_load_n(&pool_of(thread)->outstanding, __ATOMIC_RELAXED);

	return flags & KO_TASK_NOW || thread->team->size == 1 || thread->task->final ||
	       outstanding >= (uint64_t)MOST_TASKS * thread->team->size;
}

void ko_task_submit(struct ko_thread *thread, struct ko_task *task, unsigned int flags,
		    const struct ko_depend *depends, unsigned int count)
{
	struct ko_pool *pool = pool_of(thread);

	task->final = flags & KO_TASK_FINAL;
	if (must_run_now(thread, flags)) {
		ko_task_wait_depend(thread, depends, count);
		ko_task_enter(thread, task);
		task->run(task->data);
		ko_task_leave(thread);
		return;
	}
	task->parent = thread->task;
	task->group = thread->group;
	task->icv = thread->task->icv;
	if (count) {
		task->depends = ko_shared_alloc(16, count * sizeof(*depends));
		if (!task->depends)
			ko_fatal("no memory for %u dependences of a task", count);
		memcpy(task->depends, depends, count * sizeof(*depends));
		task->depend_count = count;
	}
	lock_pool(thread);
	__atomic_add_fetch(&pool->outstanding, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&task->parent->children, 1, __ATOMIC_SEQ_CST);
	task->parent->references++;
	if (task->group)
		__atomic_add_fetch(&task->group->count, 1, __ATOMIC_SEQ_CST);
	if (!count || !ko_depend_add(task))
		enqueue(pool, task);
	unlock_pool(thread);
	ko_wake(thread->team);
}

void ko_task_wait_depend(struct ko_thread *thread, const struct ko_depend *depends,
			 unsigned int count)
{
	struct ko_pause pause = { 0 };
	bool pending;
	uint32_t seen;

	while (count && __atomic_load_n(&thread->task->children, __ATOMIC_SEQ_CST)) {
		seen = __atomic_load_n(&thread->team->barrier.event, __ATOMIC_SEQ_CST);
		lock_pool(thread);
		pending = ko_depend_pending(thread->task, depends, count);
		unlock_pool(thread);
		if (!pending)
			return;
		if (!help(thread, CHILDREN))
			ko_pause(&pause, thread->team, seen);
	}
}

uint64_t ko_task_split(const struct ko_thread *thread, uint64_t count, uint64_t grain,
		       uint64_t number)
{
	if (grain)
		number = count / grain;
	else if (!number)
		number = thread->team->size;
	if (!number)
		number = 1;
	return number < count ? number : count;
}

/* ---- groups ---- */

void ko_group_begin(struct ko_thread *thread)
{
	struct ko_group *group = ko_shared_alloc(16, sizeof(*group));

	if (!group)
		ko_fatal("no memory for a task group");
	group->outer = thread->group;
	group->count = 0;
	thread->group = group;
}

void ko_group_end(struct ko_thread *thread)
{
	struct ko_group *group = thread->group;

	if (__atomic_load_n(&group->count, __ATOMIC_SEQ_CST))
		wait_for(thread, &group->count, GROUP);
	thread->group = group->outer;
	free(group);
}
