// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Joining and leaving a job, and running tasks from threads outside the pool. worker.c has
 * the threads of the pool.
 */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define NODE_WORKERS	64			/* Default bound of the workers of a node */
#define DEQUE		8192			/* Default size of a deque, in tasks */
#define DEQUE_MAX	(1U << 24)		/* Largest size of a deque, in tasks */
#define STACK		(UINT64_C(16) << 20)	/* Default stack of a worker, in bytes */
/* Default silence after which a process is dead, in ns */
#define TIMEOUT		UINT64_C(5000000000)

/* ---- joining ---- */

static int fill_attr(struct kdsm_tasks_attr *to, const struct kdsm_tasks_attr *from)
{
	int ret = 0;

	memset(to, 0, sizeof(*to));
	if (from)
		ret = KD_ARGUMENT_IN(kdsm_tasks_attr, to, from);
	if (ret)
		return ret;
	if (!to->node_workers)
		to->node_workers = NODE_WORKERS;
	if (!to->deque)
		to->deque = DEQUE;
	if (!to->stack)
		to->stack = STACK;
	if (!to->timeout)
		to->timeout = TIMEOUT;
	return 0;
}

static void use_attr(struct kdsm_tasks *tasks, const struct kdsm_tasks_attr *attr)
{
	tasks->node_workers = attr->node_workers;
	tasks->deque = attr->deque;
	tasks->steal = attr->steal;
	tasks->stack = attr->stack;
	tasks->start = attr->start;
	tasks->stop = attr->stop;
	tasks->argument = attr->argument;
	tasks->timeout = attr->timeout;
}

static uint64_t bytes_of(const struct kdsm_tasks *tasks)
{
	return kd_slot_place(tasks, tasks->node_workers, 0) - tasks->offset;
}

uint64_t kdsm_tasks_bytes(const struct kdsm_tasks_attr *attr)
{
	struct kdsm_tasks_attr filled;
	struct kdsm_tasks tasks = { .offset = 0 };

	if (fill_attr(&filled, attr))
		return UINT64_MAX;
	use_attr(&tasks, &filled);
	return bytes_of(&tasks);
}

/* Number of leading path components that two locations have in common. */
static unsigned int shared_levels(const char *a, const char *b)
{
	unsigned int levels = 0;
	size_t n;

	for (;;) {
		n = strcspn(a, "/");
		if (!n || n != strcspn(b, "/") || memcmp(a, b, n))
			return levels;
		levels++;
		a += n + (a[n] == '/');
		b += n + (b[n] == '/');
	}
}

/* Count the levels that each node shares with this one; *most is the maximum over the others. */
static int compare_locations(struct kdsm_tasks *tasks, unsigned int *levels,
			     unsigned int *most)
{
	const struct kdsm *kdsm = tasks->region->kdsm;
	char own[KDSM_LOCATION_SIZE], other[KDSM_LOCATION_SIZE];
	unsigned int node;
	int ret;

	*most = 0;
	ret = kdsm_location(kdsm, tasks->node, own);
	for (node = 0; node < tasks->nodes && !ret; node++) {
		ret = kdsm_location(kdsm, node, other);
		if (ret)
			break;
		levels[node] = shared_levels(own, other);
		if (node != tasks->node && levels[node] > *most)
			*most = levels[node];
	}
	return ret;
}

/* Fill near and far: sort the other nodes by the number of levels that they share with this. */
static int find_neighbours(struct kdsm_tasks *tasks)
{
	unsigned int *levels, node, level, most, n = 0;
	int ret;

	tasks->near = calloc(tasks->nodes, sizeof(*tasks->near));
	tasks->far = calloc(tasks->nodes, sizeof(*tasks->far));
	levels = calloc(tasks->nodes, sizeof(*levels));
	ret = tasks->near && tasks->far && levels ?
	      compare_locations(tasks, levels, &most) : -ENOMEM;
	for (level = ret ? 0 : most + 1; level--; ) {
		for (node = 0; node < tasks->nodes; node++)
			if (node != tasks->node && levels[node] == level)
				tasks->near[n++] = node;
		if (n && (!tasks->distances || tasks->far[tasks->distances - 1] != n))
			tasks->far[tasks->distances++] = n;
	}
	free(levels);
	return ret;
}

/* The first process stores its hash into node 0's word; the others compare theirs with it. */
static int agree(struct kdsm_tasks *tasks)
{
	uint64_t hash, former;
	int ret;

	hash = (uint64_t)tasks->node_workers << 40 | (uint64_t)tasks->deque << 8 |
	       sizeof(struct kdsm_task);
	hash = kd_task_types_hash(hash ^ tasks->timeout) | 1;
	ret = kdsm_cas(tasks->region, 0,
		       kd_node_place(tasks, offsetof(struct kd_task_node, agreed)), 0, hash,
		       &former);
	if (ret)
		return ret;
	if (!former || former == hash)
		return 0;
	return kd_because(-EPROTO,
			  "tasks: the job has another node_workers, deque or timeout, or runs another program");
}

static int claim_process(struct kdsm_tasks *tasks)
{
	unsigned int i;
	uint64_t no;

	for (i = 0; i < KD_TASK_PROCESSES; i++) {
		no = 0;
		if (__atomic_compare_exchange_n(&tasks->own->processes[i].here, &no, 1, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			tasks->process = i;
			return 0;
		}
	}
	return kd_because(-EUSERS, "tasks: %d processes of this node are in the job",
			  KD_TASK_PROCESSES);
}

static uint32_t cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set);
}

static int check_attr(const struct kdsm_region *region, uint64_t offset,
		      const struct kdsm_tasks_attr *attr)
{
	struct kdsm_tasks tasks = { .offset = offset };

	if (region->coherent)
		return kd_not_partitioned(region);
	if (offset % 64)
		return kd_misaligned(offset, 64);
	if (attr->node_workers > KD_TASK_WORKERS || attr->workers > attr->node_workers)
		return kd_because(-EINVAL,
				  "tasks: workers is %u and node_workers %u; workers is not " "above node_workers, and that not above %d",
				  attr->workers, attr->node_workers, KD_TASK_WORKERS);
	if (attr->deque < 2 || attr->deque > DEQUE_MAX)
		return kd_because(-EINVAL, "tasks: deque is %u, not from 2 to %u",
				  attr->deque, (unsigned int)DEQUE_MAX);
	if (attr->steal > KDSM_STEAL_HALF)
		return kd_because(-EINVAL, "tasks: there is no way %u to steal", attr->steal);
	use_attr(&tasks, attr);
	return kdsm_range_check(region, offset, bytes_of(&tasks));
}

static int start(struct kdsm_tasks *tasks, const struct kdsm_tasks_attr *attr)
{
	uint32_t workers = attr->workers;
	int ret;

	ret = find_neighbours(tasks);
	if (!ret)
		ret = agree(tasks);
	if (ret)
		return ret;
	tasks->workers = calloc(tasks->node_workers, sizeof(*tasks->workers));
	if (!tasks->workers)
		return -ENOMEM;
	ret = claim_process(tasks);
	if (ret)
		return ret;
	ret = kd_thread_start(&tasks->heart, 0, kd_task_heart, tasks);
	tasks->beating = !ret;
	if (ret) {
		__atomic_store_n(&tasks->own->processes[tasks->process].here, 0,
				 __ATOMIC_SEQ_CST);
		return ret;
	}
	if (!workers)
		workers = cpus();
	if (workers > tasks->node_workers)
		workers = tasks->node_workers;
	return kdsm_tasks_set_workers(tasks, workers);
}

int kdsm_tasks_open(struct kdsm_region *region, uint64_t offset,
		    const struct kdsm_tasks_attr *attr, struct kdsm_tasks **out)
{
	struct kdsm_tasks_attr filled;
	struct kdsm_tasks *tasks;
	int ret;

	*out = NULL;
	ret = fill_attr(&filled, attr);
	if (!ret)
		ret = check_attr(region, offset, &filled);
	if (ret)
		return ret;
	tasks = calloc(1, sizeof(*tasks));
	if (!tasks)
		return -ENOMEM;
	use_attr(tasks, &filled);
	tasks->region = region;
	tasks->offset = offset;
	tasks->node = region->node;
	tasks->nodes = region->nodes;
	tasks->culprit = tasks->node;
	tasks->own = (void *)(region->part + offset);
	pthread_mutex_init(&tasks->lock, NULL);
	pthread_cond_init(&tasks->change, NULL);
	ret = start(tasks, &filled);
	if (ret) {
		kdsm_tasks_close(tasks);
		return ret;
	}
	*out = tasks;
	return 0;
}

void kdsm_tasks_close(struct kdsm_tasks *tasks)
{
	if (!tasks)
		return;
	if (tasks->beating) {
		kdsm_tasks_set_workers(tasks, 0);
		/*
		 * Clear here, so that watchers do not take the end of the beats for a death. If
		 * the job has failed, do not: a node that kd_task_fail() did not reach detects
		 * the failure only by the missing beats.
		 */
		if (!kd_failed(tasks))
			__atomic_store_n(&tasks->own->processes[tasks->process].here, 0,
					 __ATOMIC_SEQ_CST);
		kd_mutex_lock(&tasks->lock);
		tasks->stopping = true;
		kd_cond_broadcast(&tasks->change);
		kd_mutex_unlock(&tasks->lock);
		kd_thread_join(&tasks->heart, KDSM_FOREVER);
	}
	pthread_cond_destroy(&tasks->change);
	pthread_mutex_destroy(&tasks->lock);
	free(tasks->near);
	free(tasks->far);
	free(tasks->workers);
	free(tasks);
}

/* ---- tasks from outside the pool ---- */

/* Wake a worker of this process, because a root waits. Caller holds tasks->lock. */
static void wake_own(struct kdsm_tasks *tasks)
{
	unsigned int i;

	for (i = 0; i < tasks->started; i++)
		if (__atomic_load_n(&tasks->workers[i]->shared->asleep, __ATOMIC_SEQ_CST)) {
			kd_task_ring(tasks, tasks->workers[i]->number);
			break;
		}
}

/*
 * Caller holds tasks->lock. If a worker still runs the root after a failure, this worker
 * frees the root in leave_root().
 */
static void drop_root(struct kdsm_tasks *tasks, struct kd_root *root)
{
	struct kd_root **link = &tasks->roots;

	bool waits;

	while (*link && *link != root)
		link = &(*link)->next;
	waits = *link == root;
	if (waits)
		*link = root->next;
	if (waits || root->left)
		free(root);
	else
		root->dropped = true;
}

int kdsm_tasks_run(struct kdsm_tasks *tasks, const struct kdsm_task_type *type,
		   const void *arguments, void *result)
{
	const struct kd_worker *self = kd_task_self();
	struct kd_root *root, **link;
	enum kd_phase phase;
	int ret;

	if (self && self->tasks == tasks)
		return kd_because(-EDEADLK, "KDSM_RUN: the caller is a task of the job");
	root = aligned_alloc(_Alignof(struct kd_root), sizeof(*root));
	if (!root)
		return -ENOMEM;
	memset(root, 0, sizeof(*root));
	root->type = type;
	root->task.type = type->id;
	memcpy(root->task.data, arguments, type->arguments);

	kd_mutex_lock(&tasks->lock);
	for (link = &tasks->roots; *link; link = &(*link)->next)
		;
	*link = root;
	__atomic_add_fetch(&tasks->wanted, 1, __ATOMIC_SEQ_CST);
	wake_own(tasks);
	phase = kd_phase(KD_PHASE_TASKS);
	while (!root->done && !tasks->failed)
		kd_cond_wait(&tasks->change, &tasks->lock);
	kd_phase(phase);
	ret = root->done ? 0 : tasks->failed;
	if (!ret && type->result)
		memcpy(result, root->task.data, type->result);
	drop_root(tasks, root);
	kd_mutex_unlock(&tasks->lock);
	return ret;
}

int kdsm_tasks_serve(struct kdsm_tasks *tasks)
{
	enum kd_phase phase;
	int ret;

	kd_mutex_lock(&tasks->lock);
	phase = kd_phase(KD_PHASE_TASKS);
	while (!tasks->failed && !__atomic_load_n(&tasks->own->ended, __ATOMIC_SEQ_CST))
		kd_cond_wait(&tasks->change, &tasks->lock);
	kd_phase(phase);
	ret = tasks->failed;
	kd_mutex_unlock(&tasks->lock);
	return ret;
}

int kdsm_tasks_end(struct kdsm_tasks *tasks)
{
	uint64_t one = 1;
	unsigned int node;
	int first = 0, ret;

	for (node = 0; node < tasks->nodes; node++) {
		ret = kdsm_put(tasks->region, node,
			       kd_node_place(tasks, offsetof(struct kd_task_node, ended)), &one,
			       sizeof(one));
		if (!first)
			first = ret;
	}
	return first;
}

unsigned int kdsm_tasks_culprit(const struct kdsm_tasks *tasks)
{
	return __atomic_load_n(&tasks->culprit, __ATOMIC_RELAXED);
}

int kdsm_tasks_counts(struct kdsm_tasks *tasks, struct kdsm_tasks_counts *counts)
{
	struct kdsm_tasks_counts sum;
	unsigned int i;

	kd_mutex_lock(&tasks->lock);
	sum = tasks->gone;
	for (i = 0; i < tasks->started; i++)
		kd_task_add_counts(&sum, &tasks->workers[i]->counts);
	kd_mutex_unlock(&tasks->lock);
	return KD_ARGUMENT_OUT(kdsm_tasks_counts, &sum, counts);
}
