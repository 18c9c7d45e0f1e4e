// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Watching the members of a job, and ending it with an error.
 *
 * Each process has a thread, its heart, which lets a word of its node's part grow. Members of a
 * node form a ring: each watches the next one, by the kernel's notice that the process has ended,
 * and by its word. The nodes form a ring, too: the first member of each node watches the word of
 * the first member of the next node, which takes a get every two seconds. Of the dead members of a
 * ring, one has a neighbour that lives, so one death is noticed, and that ends the job.
 *
 * A member that ends the job stores a failure word into the parts of all nodes, and breaks the
 * barrier, so that waits end. Hearts notice the word, and tell their programs.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "internal.h"

#define PERIOD		(100 * KD_MS)	/* of a heart, in ns */
#define ASK_EVERY	(2 * KD_SECOND)	/* most time between gets of another node's word, in ns */

/* ---- the end ---- */

int kd_job_failed(struct kdsm_job *job, int error, const char *format, ...)
{
	va_list list;
	int former;

	kd_mutex_lock(&job->lock);
	former = job->ended;
	if (!former) {
		va_start(list, format);
		vsnprintf(job->message, sizeof(job->message), format, list);
		va_end(list);
		__atomic_store_n(&job->ended, error, __ATOMIC_SEQ_CST);
	}
	kd_mutex_unlock(&job->lock);
	if (job->handler) {
		if (!former)
			job->handler(job->context, error, job->message);
		return kd_because(former ? former : error, "%s", job->message);
	}
	/* Another thread is ending this process: do not run on with what is missing. */
	while (former)
		pause();
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, job->message);
	if (job->opened)
		kd_shared_leave(job->kdsm);
	/* Destructors of the program must not run while its other threads use what they destroy. */
	_exit(EXIT_FAILURE);
}

/* Tell the program about the end that a failure word reports. */
static int tell(struct kdsm_job *job, uint32_t rank, int error)
{
	const struct kd_member *member = &job->members[rank];

	if (error == -EHOSTDOWN)
		return kd_job_failed(job, -EOWNERDEAD, "job %s: rank %u (node %u) does not answer",
				     job->name, rank, member->node);
	if (error == -EOWNERDEAD)
		return kd_job_failed(job, error, "job %s: rank %u (process %u on node %u) died",
				     job->name, rank, member->pid, member->node);
	if (error == -ECANCELED)
		return kd_job_failed(job, error, "job %s: rank %u ended the job", job->name, rank);
	return kd_job_failed(job, -ECANCELED, "job %s: rank %u met an error: %s", job->name, rank,
			     kdsm_strerror(error));
}

int kd_job_check(struct kdsm_job *job)
{
	uint64_t word = __atomic_load_n(&kd_job_words(job)->failed, __ATOMIC_SEQ_CST);
	int ended = __atomic_load_n(&job->ended, __ATOMIC_SEQ_CST), error;
	unsigned int rank;

	if (ended)
		return kd_job_failed(job, ended, "ended");
	error = kd_failure_read(word, job->size, job->rank, &rank);
	return error ? tell(job, rank, error) : 0;
}

/* The first failure word that reaches a node stays. A node that cannot be reached needs no word. */
static void tell_nodes(struct kdsm_job *job, uint64_t word)
{
	unsigned int node, nodes = kdsm_nodes(job->kdsm), n = 0;
	struct kdsm_op ops[32];

	kdsm_cas(job->words, kdsm_node(job->kdsm), KD_JOB_PLACE(failed), 0, word, NULL);
	for (node = 0; node < nodes; node++) {
		ops[n++] = kdsm_op_cas(node, KD_JOB_PLACE(failed), 0, word);
		if (n == sizeof(ops) / sizeof(*ops) || node == nodes - 1) {
			kdsm_vector(job->words, ops, n);
			n = 0;
		}
	}
}

int kd_job_end(struct kdsm_job *job, uint32_t rank, int error, const char *why)
{
	tell_nodes(job, kd_failure_word(rank, error));
	/* Last, because a member whose wait ends looks for the word. */
	kd_tree_barrier_break(&job->barrier, job->members[rank].node);
	return why ? kd_job_failed(job, error, "job %s: %s", job->name, why) : kd_job_check(job);
}

void kdsm_job_abort(struct kdsm_job *job)
{
	kd_job_end(job, job->rank, -ECANCELED, NULL);
}

/* ---- the heart ---- */

/* A member that this one watches */
struct watch {
	uint32_t rank;
	uint64_t beat, since;	/* its newest beat, and when it was first seen, in ns */
	uint64_t heard;		/* when its node last answered, in ns */
	uint64_t asked;		/* when its life was asked for, in ns */
	int fd;			/* readable when the process has ended, or -1 */
	/* The get of its life, which may last longer than a heart may pause */
	bool asking;
	struct kd_life life;
	struct kdsm_op op;
	struct kdsm_ticket ticket;
};

static struct kd_life *own_life(const struct kdsm_job *job, uint32_t rank)
{
	return (void *)((char *)kd_job_words(job) + kd_life_place(job, rank));
}

/* Get the life of the member. Returns 0, -ETIMEDOUT if there is no answer yet, or another error. */
static int ask(struct kdsm_job *job, struct watch *watch)
{
	unsigned int node = job->members[watch->rank].node;
	const struct kd_life *own = own_life(job, watch->rank);
	int ret;

	if (node == kdsm_node(job->kdsm)) {
		watch->life.beat = __atomic_load_n(&own->beat, __ATOMIC_RELAXED);
		watch->life.left = __atomic_load_n(&own->left, __ATOMIC_SEQ_CST);
		return 0;
	}
	if (!watch->asking) {
		watch->asked = kdsm_now();
		watch->op = kdsm_op_get(node, kd_life_place(job, watch->rank), &watch->life,
					sizeof(watch->life));
		ret = kdsm_submit(job->words, &watch->op, 1, &watch->ticket);
		if (ret)
			return ret;
		watch->asking = true;
	}
	ret = kdsm_complete(job->words, &watch->ticket, 0);
	watch->asking = ret == -ETIMEDOUT && watch->ticket.ops;
	return ret;
}

/* Returns 0, 1 if the member has left, or a negative errno if it is dead. */
static int look(struct kdsm_job *job, struct watch *watch)
{
	bool near = job->members[watch->rank].node == kdsm_node(job->kdsm);
	struct pollfd ended = { watch->fd, POLLIN, 0 };
	/* Before the life, because a process stores there that it leaves, and then ends. */
	bool over = watch->fd >= 0 && poll(&ended, 1, 0) > 0;
	uint64_t now = kdsm_now(), pause = job->timeout / 4;
	int ret;

	if (pause > ASK_EVERY)
		pause = ASK_EVERY;
	if (!near && !watch->asking && now - watch->asked < pause)
		return 0;
	ret = ask(job, watch);
	if (!ret && watch->life.left)
		return 1;
	if (over)
		return -EOWNERDEAD;
	if (!ret)
		watch->heard = now;
	if (!ret && watch->life.beat != watch->beat) {
		watch->beat = watch->life.beat;
		watch->since = now;
	}
	if (now - watch->since <= job->timeout)
		return 0;
	/* The node of a dead member answers, though its newest answer may still be on its way */
	return watch->heard - watch->since > job->timeout / 3 ? -EOWNERDEAD : -EHOSTDOWN;
}

/* Returns the first member of the node that comes after this one among nodes with members. */
static uint32_t next_node(const struct kdsm_job *job)
{
	unsigned int nodes = kdsm_nodes(job->kdsm), own = kdsm_node(job->kdsm), best = nodes, far;
	uint32_t rank, found = job->rank;

	for (rank = job->size; rank--; ) {
		far = (job->members[rank].node + nodes - own) % nodes;
		if (far && far <= best) {
			best = far;
			found = rank;
		}
	}
	return found;
}

static unsigned int choose(const struct kdsm_job *job, struct watch watches[2])
{
	uint32_t next = job->own[(job->own_index + 1) % job->own_count];
	uint64_t now = kdsm_now();
	unsigned int n = 0;

	if (next != job->rank)
		watches[n++] = (struct watch){
			.rank = next, .since = now, .heard = now,
			/* Fails in another namespace of processes; then the word must do. */
			.fd = syscall(SYS_pidfd_open, job->members[next].pid, 0),
		};
	if (!job->own_index && job->node_count > 1)
		watches[n++] = (struct watch){
			.rank = next_node(job), .since = now, .heard = now, .fd = -1,
		};
	return n;
}

static void *beat(void *data)
{
	struct kdsm_job *job = data;
	struct watch watches[2];
	unsigned int count = choose(job, watches), i;
	bool over = false;
	int ret;

	kd_mutex_lock(&job->lock);
	while (!job->stopping) {
		kd_mutex_unlock(&job->lock);
		__atomic_add_fetch(&own_life(job, job->rank)->beat, 1, __ATOMIC_RELAXED);
		over = over || kd_job_check(job);
		for (i = 0; i < count && !over; i++) {
			ret = look(job, &watches[i]);
			if (ret > 0)
				over = true;	/* all members are leaving */
			if (ret < 0)
				kd_job_end(job, watches[i].rank, ret, NULL);
		}
		kd_mutex_lock(&job->lock);
		if (!job->stopping)
			kd_cond_wait_for(&job->stop, &job->lock, PERIOD);
	}
	kd_mutex_unlock(&job->lock);
	for (i = 0; i < count; i++) {
		if (watches[i].asking)
			kdsm_complete(job->words, &watches[i].ticket, KDSM_FOREVER);
		if (watches[i].fd >= 0)
			close(watches[i].fd);
	}
	return NULL;
}

int kd_job_watch(struct kdsm_job *job)
{
	int ret;

	if (job->size == 1)
		return 0;
	ret = kd_thread_start(&job->heart, 0, beat, job);
	job->beating = !ret;
	return ret;
}

void kd_job_unwatch(struct kdsm_job *job)
{
	if (!job->beating)
		return;
	__atomic_store_n(&own_life(job, job->rank)->left, 1, __ATOMIC_SEQ_CST);
	kd_mutex_lock(&job->lock);
	job->stopping = true;
	kd_cond_broadcast(&job->stop);
	kd_mutex_unlock(&job->lock);
	kd_thread_join(&job->heart, KDSM_FOREVER);
	job->beating = false;
}
