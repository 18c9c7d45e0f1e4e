// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Joining and leaving a job.
 *
 * A member opens the region NAME.job, agrees with the others on the sizes by compare-and-swap,
 * claims its rank, and counts itself, all in the part of node 0. The member that completes the
 * count tells the nodes of all others. Each member reads all claims, which say how many members
 * each node has, and opens the memory, whose layout depends on that. A first round shows that all
 * have it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "internal.h"

#define MEMORY		(UINT64_C(256) << 20)	/* default of coherent memory, in bytes */
#define SYNC		(UINT64_C(256) << 10)	/* default of memory for words, in bytes */
#define TIMEOUT		(30 * KD_SECOND)	/* default, in ns */

uint64_t kd_job_patience = 60 * KD_SECOND;

/* Terms on which the members agree, in the order of kd_job_words.terms */
static const char *const term_names[] = { "size", "memory", "sync", "block_size" };

/* ---- the request ---- */

static int complete(struct kdsm_job *job, struct kdsm_job_attr *attr, struct kd_launch *launch)
{
	const char *bad;

	if (attr->flags & ~KDSM_JOB_LOCAL)
		return kd_job_failed(job, -EINVAL, "there is no flag %#x of a job",
				     attr->flags & ~KDSM_JOB_LOCAL);
	if (attr->size > KDSM_JOB_MOST)
		return kd_job_failed(job, -EINVAL, "a job has at most %u members, not %u",
				     KDSM_JOB_MOST, attr->size);
	if (attr->size && attr->rank >= attr->size)
		return kd_job_failed(job, -EINVAL, "rank %u is not below the size of the job, %u",
				     attr->rank, attr->size);
	if (attr->name && strlen(attr->name) >= sizeof(launch->name))
		return kd_job_failed(job, -EINVAL, "job \"%.16s...\": the name has more than %zu "
				     "characters", attr->name, sizeof(launch->name) - 1);
	if (kd_launch_read(launch, &bad))
		return kd_job_failed(job, -EINVAL, "the value of %s is not valid", bad);
	if (attr->name)
		strcpy(launch->name, attr->name);
	if (attr->size) {
		launch->size = attr->size;
		launch->rank = attr->rank;
		launch->ranked = true;
	}
	if (attr->flags & KDSM_JOB_LOCAL)
		launch->local = true;
	if (!attr->memory)
		attr->memory = launch->memory ? launch->memory : MEMORY;
	if (!attr->sync)
		attr->sync = SYNC;
	if (!attr->timeout)
		attr->timeout = launch->timeout ? launch->timeout : TIMEOUT;
	if (!attr->block_size)
		attr->block_size = 4096;
	strcpy(job->name, launch->name);
	job->timeout = attr->timeout;
	return 0;
}

/* ---- the cluster ---- */

static int open_cluster(struct kdsm_job *job, const struct kd_launch *launch)
{
	int ret;

	if (!launch->local)
		ret = kdsm_open(0, &job->kdsm);
	else if (launch->elsewhere)
		return kd_job_failed(job, -EXDEV, "job %s has members on other nodes, but KDSM_LOCAL "
				     "is for one machine", job->name);
	else if (launch->size > 1)
		ret = kd_shared_open(job->name, &job->kdsm);
	else
		ret = kdsm_open(KDSM_OPEN_LOCAL, &job->kdsm);
	if (ret && launch->local)
		return kd_job_failed(job, ret, "job %s cannot use this machine alone: %s",
				     job->name, kdsm_error(ret));
	if (ret)
		return kd_job_failed(job, ret, "job %s has no cluster: %s; KDSM_LOCAL=1 uses this "
				     "machine alone", job->name, kdsm_error(ret));
	job->opened = true;
	return 0;
}

/* ---- meeting the other members ---- */

static int open_words(struct kdsm_job *job)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	char name[KDSM_NAME_SIZE];
	int ret;

	strcpy(name, job->name);
	strcat(name, ".job");
	/* The size must not depend on that of the job, so that members which disagree meet. */
	attr.size = kd_claim_place(KDSM_JOB_MOST) + KDSM_JOB_MOST * sizeof(struct kd_life);
	attr.size *= kdsm_nodes(job->kdsm);
	ret = kdsm_region_open(job->kdsm, name, &attr, &job->words);
	return ret ? kd_job_failed(job, ret, "job %s: %s", job->name, kdsm_error(ret)) : 0;
}

static int agree(struct kdsm_job *job, const struct kdsm_job_attr *attr)
{
	const uint64_t terms[4] = { job->size, attr->memory, attr->sync, attr->block_size };
	uint64_t former;
	unsigned int i;
	int ret;

	for (i = 0; i < 4; i++) {
		ret = kdsm_cas(job->words, 0, KD_JOB_PLACE(terms) + 8 * i, 0, terms[i], &former);
		if (ret)
			return kd_job_failed(job, ret, "job %s: node 0: %s", job->name,
					     kdsm_error(ret));
		if (former && former != terms[i])
			return kd_job_failed(job, -EINVAL, "job %s: this member's %s is %" PRIu64
					     ", another one's %" PRIu64, job->name, term_names[i],
					     terms[i], former);
	}
	return 0;
}

static int claim(struct kdsm_job *job, const struct kd_launch *launch, uint64_t *joined)
{
	uint64_t rank = launch->rank, former = 0;
	int ret = 0;

	if (!launch->ranked)
		ret = kdsm_faa(job->words, 0, KD_JOB_PLACE(next), 1, &rank);
	if (!ret && rank >= job->size)
		return kd_job_failed(job, -EEXIST, "job %s has its %u members already", job->name,
				     job->size);
	job->rank = rank;
	if (!ret)
		ret = kdsm_cas(job->words, 0, kd_claim_place(rank), 0,
			       kd_claim(kdsm_node(job->kdsm), getpid()), &former);
	if (!ret && former)
		return kd_job_failed(job, -EEXIST, "job %s: process %u on node %u has rank %u "
				     "already", job->name, (uint32_t)(former >> 32),
				     (uint32_t)former - 1, job->rank);
	if (!ret)
		ret = kdsm_faa(job->words, 0, KD_JOB_PLACE(joined), 1, joined);
	return ret ? kd_job_failed(job, ret, "job %s: node 0: %s", job->name, kdsm_error(ret)) : 0;
}

/* Read who the members are. Returns -EPROTO if the words are not those of a job. */
static int read_members(struct kdsm_job *job, uint64_t *claims)
{
	unsigned int node;
	uint32_t rank;
	int ret = kdsm_get(job->words, 0, kd_claim_place(0), claims, job->size * sizeof(*claims));

	for (rank = 0; rank < job->size && !ret; rank++) {
		node = (uint32_t)claims[rank] - 1;
		if (node >= kdsm_nodes(job->kdsm))
			return kd_no_reason(-EPROTO);
		job->members[rank] = (struct kd_member){ node, claims[rank] >> 32 };
	}
	return ret;
}

static int wake_nodes(struct kdsm_job *job)
{
	uint32_t rank, before;
	int ret = 0;

	for (rank = 0; rank < job->size && !ret; rank++) {
		for (before = 0; job->members[before].node != job->members[rank].node; before++)
			;
		if (before == rank)
			ret = kdsm_put_notify(job->words, job->members[rank].node,
					      KD_JOB_PLACE(ready), 1);
	}
	return ret;
}

/* Tell the program which member did not join. */
static int late(struct kdsm_job *job, const uint64_t *claims, uint64_t patience)
{
	uint32_t rank, missing = 0, first = 0;

	for (rank = job->size; rank--; )
		if (!claims[rank]) {
			missing++;
			first = rank;
		}
	return kd_job_failed(job, -ETIMEDOUT, "job %s: %u of %u members did not join within %"
			     PRIu64 " s, rank %u among them: were all started, by a launcher?",
			     job->name, missing, job->size, patience / KD_SECOND, first);
}

static int wait_for_all(struct kdsm_job *job, uint64_t joined)
{
	uint64_t patience = kdsm_larger(job->timeout, kd_job_patience);
	uint64_t *claims = calloc(job->size, sizeof(*claims)), begin = kdsm_now();
	int ret = claims ? 0 : kd_no_reason(-ENOMEM);

	if (!ret && joined == job->size - 1) {
		ret = read_members(job, claims);
		if (!ret)
			ret = wake_nodes(job);
	} else if (!ret) {
		do
			ret = kdsm_wait(job->words, KD_JOB_PLACE(ready), 0,
					kdsm_left(begin, patience));
		while (ret == -EINTR);
		if (!ret)
			ret = read_members(job, claims);
		else if (ret == -ETIMEDOUT && read_members(job, claims) == -EPROTO)
			ret = late(job, claims, patience);
	}
	free(claims);
	return ret ? kd_job_failed(job, ret, "job %s: %s", job->name, kdsm_error(ret)) : 0;
}

/* ---- the memory ---- */

/* Count the members of each node. Returns the largest count. */
static uint32_t count_members(struct kdsm_job *job, uint32_t *counts)
{
	uint32_t rank, most = 0;

	for (rank = 0; rank < job->size; rank++) {
		unsigned int node = job->members[rank].node;

		job->node_count += !counts[node]++;
		if (most < counts[node])
			most = counts[node];
		if (node != kdsm_node(job->kdsm))
			continue;
		if (rank == job->rank)
			job->own_index = job->own_count;
		job->own[job->own_count++] = rank;
	}
	return most;
}

static int open_memory(struct kdsm_job *job, const struct kdsm_job_attr *attr)
{
	struct kdsm_region_attr region = {
		.argsz = sizeof(region),
		.size = attr->memory,
		.block_size = attr->block_size,
	};
	uint32_t *counts = calloc(kdsm_nodes(job->kdsm), sizeof(*counts)), most;
	int ret;

	if (!counts)
		return kd_job_failed(job, -ENOMEM, "job %s: no memory", job->name);
	most = count_members(job, counts);
	job->cargo = KDSM_TREE_BARRIER_SIZE;
	job->result = job->cargo + KD_CARGO_BYTES;
	job->slots = job->result + KD_CARGO_SIZE;
	job->sync_used = job->slots + most * (uint64_t)KD_CARGO_SIZE;
	job->sync_end = job->sync_used + attr->sync;
	job->memory = attr->memory;
	ret = kdsm_region_open_coherent(job->kdsm, job->name, &region, job->sync_end, &job->region,
					&job->sync);
	if (!ret)
		ret = kdsm_tree_barrier_init(&job->barrier, job->region, job->sync, 0, counts);
	free(counts);
	return ret ? kd_job_failed(job, ret, "job %s: cannot open %" PRIu64 " bytes of memory: %s",
				   job->name, attr->memory, kdsm_error(ret)) : 0;
}

/* ---- joining and leaving ---- */

static void release(struct kdsm_job *job)
{
	kd_job_unwatch(job);
	kdsm_region_close(job->sync);
	kdsm_region_close(job->region);
	kdsm_region_close(job->words);
	if (job->opened)
		kdsm_close(job->kdsm);
	pthread_cond_destroy(&job->stop);
	pthread_mutex_destroy(&job->lock);
	free(job->members);
	free(job->own);
	free(job);
}

/* The size comes from the cluster if neither the program nor a launcher gives one. */
static int set_size(struct kdsm_job *job, struct kd_launch *launch)
{
	if (!launch->size) {
		launch->size = kdsm_nodes(job->kdsm);
		launch->rank = kdsm_node(job->kdsm);
		launch->ranked = true;
	}
	job->size = launch->size;
	job->members = calloc(job->size, sizeof(*job->members));
	job->own = calloc(job->size, sizeof(*job->own));
	if (!job->members || !job->own)
		return kd_job_failed(job, -ENOMEM, "job %s: no memory", job->name);
	return 0;
}

static int enter(struct kdsm_job *job, const struct kd_launch *launch,
		 const struct kdsm_job_attr *attr)
{
	uint64_t joined = 0;
	int ret = open_words(job);

	if (!ret)
		ret = agree(job, attr);
	if (!ret)
		ret = claim(job, launch, &joined);
	if (!ret)
		ret = wait_for_all(job, joined);
	if (!ret)
		ret = open_memory(job, attr);
	if (ret)
		return ret;
	ret = kd_job_watch(job);
	if (ret)
		return kd_job_end(job, job->rank, ret, NULL);
	return kdsm_job_barrier(job);
}

int kdsm_job_join(const struct kdsm_job_attr *given, struct kdsm_job **out)
{
	struct kdsm_job_attr attr = { .argsz = sizeof(attr) };
	struct kdsm_job *job = calloc(1, sizeof(*job));
	struct kd_launch launch;
	int ret;

	*out = NULL;
	if (!job)
		return kd_no_reason(-ENOMEM);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->stop, NULL);
	ret = given ? KD_ARGUMENT_IN(kdsm_job_attr, &attr, given) : 0;
	/* Known even if the struct is that of a later version, but not if argsz is no size */
	job->handler = attr.failed;
	job->context = attr.context;
	if (ret)
		kd_job_failed(job, ret, "%s", kdsm_error(ret));
	job->kdsm = attr.kdsm;
	if (!ret)
		ret = complete(job, &attr, &launch);
	if (!ret && !attr.kdsm)
		ret = open_cluster(job, &launch);
	if (!ret)
		ret = set_size(job, &launch);
	if (!ret)
		ret = enter(job, &launch, &attr);
	if (ret) {
		release(job);
		return ret;
	}
	*out = job;
	return 0;
}

int kdsm_job_leave(struct kdsm_job *job)
{
	int ret;

	if (!job)
		return 0;
	ret = kdsm_job_barrier(job);
	release(job);
	return ret;
}

/* ---- properties ---- */

uint32_t kdsm_job_rank(const struct kdsm_job *job)
{
	return job->rank;
}

uint32_t kdsm_job_size(const struct kdsm_job *job)
{
	return job->size;
}

unsigned int kdsm_job_node(const struct kdsm_job *job, uint32_t rank)
{
	return job->members[rank].node;
}

unsigned int kdsm_job_nodes(const struct kdsm_job *job)
{
	return job->node_count;
}

const char *kdsm_job_name(const struct kdsm_job *job)
{
	return job->name;
}

struct kdsm *kdsm_job_cluster(const struct kdsm_job *job)
{
	return job->kdsm;
}

struct kdsm_region *kdsm_job_region(const struct kdsm_job *job)
{
	return job->region;
}

struct kdsm_region *kdsm_job_sync(const struct kdsm_job *job)
{
	return job->sync;
}
