// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: members as threads on several simulated nodes, and as processes that share the local
 * backend
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "sim.h"
#include <kdsm/lock.h>
#include "job/internal.h"

#define MEMBERS	16		/* most members of a test */
#define MS	1000000ULL
#define S	(1000 * MS)

struct member {
	uint32_t rank, size;
	unsigned int node;
	uint64_t timeout;
	int (*run)(struct member *member);
	struct kdsm_job *job;
	int ret, failures;
	bool dead;			/* it ended without leaving the job */
	int told;			/* calls of told() */
	int error;			/* and what it was told */
	char message[256];
};

static struct member members[MEMBERS];

static void told(void *context, int error, const char *message)
{
	struct member *member = context;

	__atomic_store_n(&member->error, error, __ATOMIC_SEQ_CST);
	snprintf(member->message, sizeof(member->message), "%s", message);
	__atomic_fetch_add(&member->told, 1, __ATOMIC_SEQ_CST);
}

static int join(struct member *member)
{
	struct kdsm_job_attr attr = {
		.argsz = sizeof(attr), .name = "job", .kdsm = sim.kdsm[member->node],
		.size = member->size, .rank = member->rank, .memory = 64 * SIM_BLOCK,
		.timeout = member->timeout, .failed = told, .context = member,
	};

	return kdsm_job_join(&attr, &member->job);
}

static void *start(void *data)
{
	struct member *member = data;

	member->ret = join(member);
	if (!member->ret)
		member->ret = member->run(member);
	return NULL;
}

/* Run a job on nodes; node k has counts[k] members, whose ranks go round the nodes or not. */
static int (*fault)(struct kdsm_op *op, bool after);	/* of run(), or NULL */

static void run(unsigned int nodes, const uint32_t *counts, bool cyclic, uint64_t timeout,
		int (*function)(struct member *member))
{
	pthread_t threads[MEMBERS];
	uint32_t left[SIM_NODES], size = 0, i;
	unsigned int node = 0;

	sim_start(nodes);
	sim.tear = true;
	sim.fault = fault;
	for (i = 0; i < nodes; i++)
		size += left[i] = counts[i];
	for (i = 0; i < size; i++) {
		while (!left[node])
			node = (node + 1) % nodes;
		left[node]--;
		members[i] = (struct member){
			.rank = i, .size = size, .node = node, .timeout = timeout, .run = function,
		};
		node = (node + cyclic) % nodes;
	}
	for (i = 0; i < size; i++)
		pthread_create(&threads[i], NULL, start, &members[i]);
	for (i = 0; i < size; i++)
		pthread_join(threads[i], NULL);
	/* Free what the dead left behind. */
	for (i = 0; i < size; i++)
		if (members[i].dead) {
			members[i].job->ended = -EOWNERDEAD;
			kdsm_job_leave(members[i].job);
		}
	sim_stop();
}

static const struct shape {
	unsigned int nodes;
	uint32_t counts[SIM_NODES];
} shapes[] = {
	{ 1, { 1 } }, { 1, { 5 } }, { 2, { 1, 1 } }, { 3, { 2, 0, 2 } },
	{ 4, { 3, 1, 2, 4 } }, { 8, { 1, 2, 1, 2, 1, 2, 1, 2 } },
};

/* A job of each shape, in which all calls succeed */
static void run_shapes(int (*function)(struct member *member))
{
	unsigned int i, k, cyclic;

	for (i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		for (cyclic = 0; cyclic < 2; cyclic++) {
			run(shapes[i].nodes, shapes[i].counts, cyclic, 30 * S, function);
			for (k = 0; k < members[0].size; k++) {
				assert_string_equal(members[k].message, "");
				assert_int_equal(members[k].ret, 0);
				assert_int_equal(members[k].failures, 0);
			}
		}
}

#define CHECK(condition)	UNIT_CHECK(&member->failures, condition)

/* ---- memory ---- */

static int use_memory(struct member *member)
{
	struct kdsm_job *job = member->job;
	uint64_t *shared = kdsm_job_alloc(job, 1000), round, i;
	struct kdsm_spread spread;
	uint64_t offset = 1;

	CHECK(kdsm_job_rank(job) == member->rank && kdsm_job_size(job) == member->size);
	CHECK(kdsm_job_node(job, member->rank) == member->node);
	CHECK(!strcmp(kdsm_job_name(job), "job"));
	CHECK(!kdsm_job_alloc_sync(job, 65, &offset) && offset % 64 == 0);
	CHECK(!kdsm_job_spread(job, 101, 24, &spread) && spread.stride % SIM_BLOCK == 0);
	for (round = 1; round <= 20; round++) {
		shared[member->rank] = round;
		KDSM_JOB_FOR(job, j, spread.count)
			((uint64_t *)kdsm_spread_at(&spread, j))[0] = round * j;
		CHECK(!kdsm_job_barrier(job));
		for (i = 0; i < member->size; i++)
			CHECK(shared[i] == round);
		for (i = 0; i < spread.count; i++)
			CHECK(*(uint64_t *)kdsm_spread_at(&spread, i) == round * i);
		CHECK(!kdsm_job_barrier(job));
	}
	return kdsm_job_leave(job);
}

static void memory(void **state)
{
	(void)state;
	run_shapes(use_memory);
}

static int use_too_much(struct member *member)
{
	struct kdsm_job *job = member->job;
	struct kdsm_spread spread;
	uint64_t offset;

	CHECK(!kdsm_job_alloc(job, 0) && errno == EINVAL);
	CHECK(!kdsm_job_alloc(job, 64 * SIM_BLOCK + 1) && errno == ENOMEM);
	CHECK(strstr(kdsm_error(-ENOMEM), "job job: no room for"));
	CHECK(kdsm_job_spread(job, UINT64_MAX, UINT64_MAX, &spread) == -ENOMEM);
	CHECK(kdsm_job_spread(job, 0, 8, &spread) == -EINVAL);
	CHECK(kdsm_job_alloc_sync(job, 1 << 20, &offset) == -ENOMEM);
	CHECK(kdsm_job_alloc(job, 64 * SIM_BLOCK));
	CHECK(!kdsm_job_alloc(job, 1));
	CHECK(!kdsm_job_alloc_sync(job, 256 << 10, &offset));
	CHECK(kdsm_job_alloc_sync(job, 1, &offset) == -ENOMEM);
	return kdsm_job_leave(job);
}

static void limits(void **state)
{
	(void)state;
	run_shapes(use_too_much);
}

/* Shares are in order, differ by one at most, and kdsm_sharer() inverts kdsm_share(). */
static void shares(void **state)
{
	static const uint64_t counts[] = { 1, 2, 7, 8, 1000, 4097 };
	uint64_t begin, end, i;
	uint32_t size, rank;
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(counts) / sizeof(*counts); k++)
		for (size = 1; size <= 20; size++)
			for (rank = 0, begin = 0; rank < size; rank++, begin = end) {
				assert_int_equal(kdsm_share(counts[k], rank, size), begin);
				end = kdsm_share(counts[k], rank + 1, size);
				assert_in_range(end - begin, counts[k] / size,
						counts[k] / size + 1);
				for (i = begin; i < end; i++)
					assert_int_equal(kdsm_sharer(counts[k], i, size), rank);
				assert_true(rank < size - 1 || end == counts[k]);
			}
}

/* ---- collective calls ---- */

#define COUNT	1200		/* more than two pieces */

static void add_pair(void *sum, const void *other, void *context)
{
	int32_t *a = sum;
	const int32_t *b = other;

	a[0] += b[0];
	a[1] = b[1] > a[1] ? b[1] : a[1];
	++*(int *)context;
}

static int use_collectives(struct member *member)
{
	struct kdsm_job *job = member->job;
	int64_t r = member->rank, n = member->size, sum = n * (n - 1) / 2, i;
	static const char text[] = "a text of some length";
	int32_t pair[2] = { r, r * 7 % n };
	char all[MEMBERS * 13], copy[9001];
	int64_t signs[COUNT];
	double reals[COUNT];
	uint64_t word;
	int calls = 0;

	for (i = 0; i < COUNT; i++) {
		signs[i] = i - r;
		reals[i] = r + i / 2.0;
	}
	CHECK(!kdsm_job_allreduce(job, KDSM_JOB_INT64, KDSM_JOB_MIN, signs, COUNT));
	CHECK(!kdsm_job_allreduce(job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, reals, COUNT));
	for (i = 0; i < COUNT; i++)
		CHECK(signs[i] == i - (n - 1) && reals[i] == sum + n * i / 2.0);
	word = r - 1;	/* of rank 0: the greatest */
	CHECK(!kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_MAX, &word, 1));
	CHECK(word == UINT64_MAX);

	signs[0] = r;
	CHECK(!kdsm_job_reduce(job, n - 1, KDSM_JOB_INT64, KDSM_JOB_SUM, signs, 1));
	CHECK(signs[0] == (r == n - 1 ? sum : r));
	for (i = 0; i < 100; i++)
		reals[i] = 1.0 / (r + i + 1);
	CHECK(!kdsm_job_scan(job, KDSM_JOB_DOUBLE, KDSM_JOB_MIN, reals, 100));
	CHECK(reals[5] == 1.0 / (r + 6));
	signs[0] = r;
	CHECK(!kdsm_job_scan(job, KDSM_JOB_INT64, KDSM_JOB_SUM, signs, 1));
	CHECK(signs[0] == r * (r + 1) / 2);

	memset(copy, r + 1, sizeof(copy));
	CHECK(!kdsm_job_broadcast(job, n / 2, copy, sizeof(copy)));
	for (i = 0; i < (int64_t)sizeof(copy); i++)
		CHECK(copy[i] == n / 2 + 1);
	CHECK(!kdsm_job_broadcast(job, 0, NULL, 0));
	strcpy(copy, r ? "" : text);
	CHECK(!kdsm_job_broadcast(job, 0, copy, sizeof(text)) && !strcmp(copy, text));
	memset(copy, 'a' + r, 13);
	CHECK(!kdsm_job_allgather(job, copy, 13, all));
	for (i = 0; i < 13 * n; i++)
		CHECK(all[i] == 'a' + i / 13);
	CHECK(!kdsm_job_allreduce_by(job, pair, sizeof(pair), add_pair, &calls));
	CHECK(pair[0] == sum && pair[1] == n - 1);
	return kdsm_job_leave(job);
}

static void collectives(void **state)
{
	(void)state;
	run_shapes(use_collectives);
}

/* A refused call does not end the job. */
static int misuse(struct member *member)
{
	struct kdsm_job *job = member->job;
	struct kdsm_loop loop;
	uint64_t word = 0;

	CHECK(kdsm_job_broadcast(job, member->size, &word, 8) == -EINVAL);
	CHECK(strstr(kdsm_error(-EINVAL), "kdsm_job_broadcast(): root"));
	CHECK(kdsm_job_reduce(job, member->size, KDSM_JOB_UINT64, KDSM_JOB_SUM, &word, 1) ==
	      -EINVAL);
	CHECK(kdsm_job_allreduce(job, 0, KDSM_JOB_SUM, &word, 1) == -EINVAL);
	CHECK(kdsm_job_allreduce(job, KDSM_JOB_INT64, 4, &word, 1) == -EINVAL);
	CHECK(strstr(kdsm_error(-EINVAL), "kdsm_job_allreduce(): there is no operation 4"));
	CHECK(kdsm_job_scan(job, KDSM_JOB_INT64, KDSM_JOB_SUM, &word, 0) == -EINVAL);
	CHECK(kdsm_job_allreduce_by(job, &word, KDSM_JOB_PIECE + 1, add_pair, NULL) == -EINVAL);
	CHECK(kdsm_job_allreduce_by(job, &word, 8, NULL, NULL) == -EINVAL);
	CHECK(kdsm_job_allgather(job, &word, 0, &word) == -EINVAL);
	CHECK(kdsm_job_loop(job, 1, 0, &loop) == -EINVAL);
	return kdsm_job_leave(job);
}

static void refused(void **state)
{
	(void)state;
	run_shapes(misuse);
	assert_int_equal(kdsm_job_leave(NULL), 0);
}

/*
 * A sum takes the operations of a barrier, however many members a node has: two puts up and two
 * down for each node but one.
 */
static int count_puts(struct member *member)
{
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_counts before = { .argsz = sizeof(before) };
	double sum = 1;
	int i;

	kdsm_job_barrier(member->job);
	kdsm_counts(sim.kdsm[member->node], &before);
	kdsm_job_barrier(member->job);
	for (i = 0; i < 10; i++)
		CHECK(!kdsm_job_allreduce(member->job, KDSM_JOB_DOUBLE, KDSM_JOB_SUM, &sum, 1));
	for (i = 0; i < 10; i++)
		CHECK(!kdsm_job_barrier(member->job));
	kdsm_counts(sim.kdsm[member->node], &counts);
	/* 21 rounds; another member may have begun or ended one more. */
	CHECK(counts.put - before.put >= 40 && counts.put - before.put <= 44);
	CHECK(counts.cas == before.cas && counts.faa == before.faa);
	return kdsm_job_leave(member->job);
}

static void costs(void **state)
{
	static const uint32_t counts[] = { 4, 4 };
	unsigned int i;

	(void)state;
	run(2, counts, false, 30 * S, count_puts);
	for (i = 0; i < 8; i++)
		assert_int_equal(members[i].ret + members[i].failures, 0);
}

/* ---- loops ---- */

#define LOOPS	7
#define INDICES	500

static int taken[LOOPS][INDICES];

static int loop(struct member *member)
{
	uint64_t begin, end;
	struct kdsm_loop loop;
	int i, ret;

	for (i = 0; i < LOOPS; i++) {
		CHECK(!kdsm_job_loop(member->job, INDICES - i, i + 1, &loop));
		while ((ret = kdsm_loop_next(&loop, &begin, &end)) > 0)
			for (; begin < end; begin++)
				__atomic_fetch_add(&taken[i][begin], 1, __ATOMIC_RELAXED);
		CHECK(!ret);
	}
	return kdsm_job_leave(member->job);
}

static void loops(void **state)
{
	int i;
	int k, times = 2 * (int)(sizeof(shapes) / sizeof(*shapes));

	(void)state;
	memset(taken, 0, sizeof(taken));
	run_shapes(loop);
	for (k = 0; k < LOOPS; k++)
		for (i = 0; i < INDICES; i++)
			assert_int_equal(taken[k][i], i < INDICES - k ? times : 0);
}

/* ---- members that disagree, end the job, or die ---- */

static const uint32_t two_each[] = { 2, 2, 2 };

/* Each member was told once, with a message that has this text. Returns the errors as a set. */
static void all_told(const char *text, unsigned int except)
{
	unsigned int i;

	for (i = 0; i < members[0].size; i++) {
		if (i == except)
			continue;
		assert_int_equal(members[i].told, 1);
		if (!strstr(members[i].message, text))
			fail_msg("rank %u: %s", i, members[i].message);
		assert_int_equal(members[i].ret, members[i].error);
		assert_int_equal(members[i].failures, 0);
	}
}

static int differ(struct member *member)
{
	uint64_t word = 0;

	if (member->rank == 4)
		kdsm_job_allreduce(member->job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &word, 1);
	else
		kdsm_job_barrier(member->job);
	CHECK(kdsm_job_barrier(member->job) ==
	      __atomic_load_n(&member->error, __ATOMIC_SEQ_CST));
	return kdsm_job_leave(member->job);
}

static int differ_in_memory(struct member *member)
{
	if (member->rank != 1)
		kdsm_job_alloc(member->job, 8);
	kdsm_job_barrier(member->job);
	return kdsm_job_leave(member->job);
}

static void disagreement(void **state)
{
	unsigned int i, found;

	(void)state;
	run(3, two_each, false, 30 * S, differ);
	all_told("job job: rank", 6);
	for (i = 0, found = 0; i < 6; i++) {
		assert_true(members[i].error == -EPROTO || members[i].error == -ECANCELED);
		found += !!strstr(members[i].message, "call different functions: kdsm_job_");
	}
	assert_int_equal(found, 1);
	run(3, two_each, true, 30 * S, differ_in_memory);
	for (i = 0, found = 0; i < 6; i++)
		found += !!strstr(members[i].message, "have allocated different memory");
	assert_int_equal(found, 1);
}

static int abort_it(struct member *member)
{
	if (member->rank == 3)
		kdsm_job_abort(member->job);
	CHECK(kdsm_job_barrier(member->job) == -ECANCELED);
	CHECK(!kdsm_job_alloc(member->job, 1));
	return kdsm_job_leave(member->job);
}

static void aborted(void **state)
{
	(void)state;
	run(3, two_each, false, 30 * S, abort_it);
	all_told("job job: rank 3 ended the job", 6);
}

static uint32_t victim;
static uint64_t died_at;	/* when the victim died, in ns; 0: it has not */

/* Stop the beats, as the death of the process would. */
static void die(struct member *member)
{
	struct kdsm_job *job = member->job;

	member->dead = true;
	pthread_mutex_lock(&job->lock);
	job->stopping = true;
	kd_cond_broadcast(&job->stop);
	pthread_mutex_unlock(&job->lock);
	kd_thread_join(&job->heart, KDSM_FOREVER);
	job->beating = false;
}

static int lose_member(struct member *member)
{
	uint64_t begin = kdsm_now();
	int i;

	if (member->rank == victim) {
		die(member);
		__atomic_store_n(&died_at, kdsm_now(), __ATOMIC_SEQ_CST);
		return 0;
	}
	/* Some wait, and some compute. */
	if (member->rank % 2)
		CHECK(kdsm_job_barrier(member->job) == -EOWNERDEAD);
	for (i = 0; i < 800 && !__atomic_load_n(&member->told, __ATOMIC_SEQ_CST); i++)
		kd_sleep(50 * MS);
	/* On a busy host a heart may pause for seconds. */
	CHECK(kdsm_now() - begin < 30 * S);
	CHECK(kdsm_job_barrier(member->job) == -EOWNERDEAD);
	return kdsm_job_leave(member->job);
}

static void dead_member(void **state)
{
	static const uint32_t counts[] = { 2, 1, 1 };
	char text[32];

	(void)state;
	for (victim = 0; victim < 4; victim++) {
		run(3, counts, false, 4 * S, lose_member);
		snprintf(text, sizeof(text), "rank %u (process", victim);
		all_told(text, victim);
	}
}

/* A get of the beats of the victim, which is alone on its node */
static bool is_watch(const struct kdsm_op *op)
{
	return op->opcode == KDSM_OP_GET && op->node == members[victim].node &&
	       op->length == sizeof(struct kd_life);
}

/* Gets of the victim's beats have no answer when its time is over, 12 s after the last beat */
static int late_answer(struct kdsm_op *op, bool after)
{
	uint64_t died = __atomic_load_n(&died_at, __ATOMIC_SEQ_CST);

	return !after && is_watch(op) && died && kdsm_now() - died > 11 * S ? -ETIMEDOUT : 0;
}

static int no_answer(struct kdsm_op *op, bool after)
{
	return !after && is_watch(op) ? -ETIMEDOUT : 0;
}

static void dead_member_unanswered(void **state)
{
	static const uint32_t counts[] = { 2, 1, 1 };

	(void)state;
	victim = 3;
	died_at = 0;
	fault = late_answer;
	run(3, counts, false, 12 * S, lose_member);
	all_told("rank 3 (process", victim);
	fault = no_answer;
	run(3, counts, false, 4 * S, lose_member);
	all_told("rank 3 (node 2) does not answer", victim);
	fault = NULL;
}

static int lose_node(struct member *member)
{
	kdsm_job_barrier(member->job);
	if (member->node == 1) {
		__atomic_store_n(&sim.dead, 2, __ATOMIC_SEQ_CST);
		die(member);
		return 0;
	}
	CHECK(kdsm_job_barrier(member->job) == -EOWNERDEAD);
	return kdsm_job_leave(member->job);
}

static void dead_node(void **state)
{
	static const uint32_t counts[] = { 2, 1, 2 };

	(void)state;
	kdsm_patience = 3 * S;
	run(3, counts, false, 2 * S, lose_node);
	kdsm_patience = 30 * S;
	all_told("rank 2 (node 1) does not answer", 2);
}

/* ---- joining ---- */

static int leave(struct member *member)
{
	return kdsm_job_leave(member->job);
}

/* One member has another size than the other, which then waits until its timeout. */
static void other_size(void **state)
{
	pthread_t threads[2];
	unsigned int i;

	(void)state;
	kd_job_patience = S;
	sim_start(2);
	for (i = 0; i < 2; i++) {
		members[i] = (struct member){ .rank = i, .size = 2 + i, .node = i, .timeout = S,
					      .run = leave };
		pthread_create(&threads[i], NULL, start, &members[i]);
		kd_sleep(100 * MS);
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(members[1].ret, -EINVAL);
	assert_non_null(strstr(members[1].message, "this member's size is 3, another one's 2"));
	assert_int_equal(members[0].ret, -ETIMEDOUT);
	assert_non_null(strstr(members[0].message, "1 of 2 members did not join within"));
	sim_stop();
	kd_job_patience = 60 * S;
}

static void same_rank(void **state)
{
	struct member other = { .rank = 0, .size = 2, .node = 1, .timeout = S };
	pthread_t thread;

	(void)state;
	kd_job_patience = S;
	sim_start(2);
	members[0] = (struct member){ .rank = 0, .size = 2, .timeout = S, .run = leave };
	pthread_create(&thread, NULL, start, &members[0]);
	kd_sleep(200 * MS);
	assert_int_equal(join(&other), -EEXIST);
	assert_non_null(strstr(other.message, "on node 0 has rank 0 already"));
	assert_null(other.job);
	pthread_join(thread, NULL);
	assert_int_equal(members[0].ret, -ETIMEDOUT);
	sim_stop();
	kd_job_patience = 60 * S;
}

static void bad_attributes(void **state)
{
	struct member member = { 0 };
	struct kdsm_job_attr good = {
		.argsz = sizeof(good), .flags = KDSM_JOB_LOCAL, .failed = told, .context = &member,
	}, bad;
	/* The struct of a program that was compiled with a later version of the header */
	struct {
		struct kdsm_job_attr attr;
		uint64_t later;
	} newer = { .later = 1 };
	struct kdsm_job *job;
	char name[64];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
#define REFUSED(field, value, text) do {				\
	bad = good;							\
	bad.field = value;						\
	assert_int_equal(kdsm_job_join(&bad, &job), -EINVAL);		\
	assert_null(job);						\
	assert_string_equal(member.message, text);			\
} while (0)
	REFUSED(flags, 2, "there is no flag 0x2 of a job");
	REFUSED(size, KDSM_JOB_MOST + 1, "a job has at most 4096 members, not 4097");
	REFUSED(name, name,
		"job \"nnnnnnnnnnnnnnnn...\": the name has more than 57 characters");
	REFUSED(name, "a b", "job a b: region \"a...\": a name has no character 0x20 "
		"(only printable ASCII, no space)");
	bad = good;
	bad.size = 1;
	bad.rank = 1;
	assert_int_equal(kdsm_job_join(&bad, &job), -EINVAL);
	assert_string_equal(member.message, "rank 1 is not below the size of the job, 1");
	assert_string_equal(kdsm_error(-EINVAL), member.message);
	newer.attr = good;
	newer.attr.argsz = sizeof(newer);
	assert_int_equal(kdsm_job_join(&newer.attr, &job), -E2BIG);
	/* failed is where this version looks for it. */
	assert_non_null(strstr(member.message, "struct kdsm_job_attr: byte"));
	newer.later = 0;
	assert_int_equal(kdsm_job_join(&newer.attr, &job), 0);
	assert_int_equal(kdsm_job_size(job), 1);
	assert_int_equal(kdsm_job_leave(job), 0);
}

/*
 * If argsz is no size, the other fields need not be there: the struct here ends where memory does.
 * A function failed is unknown then, so the process ends.
 */
static void no_argsz(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE), *argsz;
	static const size_t sizes[] = { 0, 4, 4097 };
	char *memory, said[256], expected[256];
	int status, pipes[2];
	struct kdsm_job *job;
	ssize_t length;
	unsigned int i;
	pid_t pid;

	(void)state;
	memory = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory, page, PROT_READ | PROT_WRITE), 0);
	argsz = (size_t *)(memory + page) - 1;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		*argsz = sizes[i];
		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (!pid) {
			dup2(pipes[1], STDERR_FILENO);
			kdsm_job_join((struct kdsm_job_attr *)argsz, &job);
			_exit(0);
		}
		close(pipes[1]);
		length = read(pipes[0], said, sizeof(said) - 1);
		close(pipes[0]);
		said[length < 0 ? 0 : length] = '\0';
		assert_int_equal(waitpid(pid, &status, 0), pid);
		snprintf(expected, sizeof(expected), "%s: struct kdsm_job_attr: argsz is %zu; set "
			 "it to sizeof(struct kdsm_job_attr)\n", program_invocation_short_name,
			 sizes[i]);
		assert_string_equal(said, expected);
		assert_int_equal(status, EXIT_FAILURE << 8);
	}
	munmap(memory, 2 * page);
}

/* ---- launchers ---- */

static const char *const variables[] = {
	"KDSM_RANK", "KDSM_SIZE", "KDSM_NODES", "KDSM_JOB", "KDSM_LOCAL", "KDSM_MEMORY",
	"KDSM_TIMEOUT", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
	"PMI_JOBID", "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NNODES",
	"SLURM_JOB_ID", "SLURM_STEP_ID",
};

static void no_launcher(void)
{
	size_t i;

	for (i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
}

/* Set variables, given as NAME=VALUE, and read them. */
static int launch(struct kd_launch *launch, const char **bad, const char *const *set)
{
	char name[64];

	no_launcher();
	for (; *set; set++) {
		const char *value = strchr(*set, '=');

		snprintf(name, sizeof(name), "%.*s", (int)(value - *set), *set);
		setenv(name, value + 1, 1);
	}
	return kd_launch_read(launch, bad);
}

#define LAUNCH(...) launch(&l, &bad, (const char *const []){ __VA_ARGS__, NULL })
#define SLURM "SLURM_PROCID=3", "SLURM_NTASKS=8", "SLURM_NNODES=2", "SLURM_JOB_ID=41"

static void launchers(void **state)
{
	struct kd_launch l;
	const char *bad;

	(void)state;
	assert_int_equal(LAUNCH("KDSM_JOB="), 0);
	assert_true(!l.size && !l.local && !l.elsewhere);
	assert_string_equal(l.name, "job");
	assert_int_equal(LAUNCH(SLURM, "SLURM_STEP_ID=0"), 0);
	assert_true(l.size == 8 && l.rank == 3 && l.ranked && l.elsewhere);
	assert_string_equal(l.name, "41.0");
	/* mpirun in an allocation of Slurm; and Slurm with PMIx */
	assert_int_equal(LAUNCH(SLURM, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
				"OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=a b"), 0);
	assert_true(l.size == 2 && l.rank == 1 && !l.elsewhere);
	assert_string_equal(l.name, "a-b");
	assert_int_equal(LAUNCH("PMIX_RANK=7", "SLURM_NTASKS=8"), 0);
	assert_true(l.size == 8 && l.rank == 7 && !l.elsewhere);
	assert_int_equal(LAUNCH("PMI_RANK=0", "PMI_SIZE=3", "MPI_LOCALNRANKS=1"), 0);
	assert_true(l.size == 3 && l.elsewhere);
	assert_int_equal(LAUNCH(SLURM, "KDSM_SIZE=4", "KDSM_JOB=mine", "KDSM_LOCAL=1",
				"KDSM_MEMORY=3G", "KDSM_TIMEOUT=5"), 0);
	assert_true(l.size == 4 && !l.ranked && l.local && l.memory == 3ULL << 30 &&
		    l.timeout == 5 * S);
	assert_string_equal(l.name, "mine");
	assert_int_equal(LAUNCH("KDSM_LOCAL=0"), 0);
	assert_false(l.local);

	assert_int_equal(LAUNCH("KDSM_SIZE=4", "KDSM_RANK=4"), -EINVAL);
	assert_string_equal(bad, "KDSM_RANK");
	assert_int_equal(LAUNCH("KDSM_SIZE=0"), -EINVAL);
	assert_int_equal(LAUNCH("KDSM_SIZE=4097"), -EINVAL);
	assert_int_equal(LAUNCH("KDSM_SIZE=-1"), -EINVAL);
	assert_int_equal(LAUNCH("KDSM_SIZE=2x"), -EINVAL);
	assert_string_equal(bad, "KDSM_SIZE");
	assert_int_equal(LAUNCH("KDSM_MEMORY=1Q"), -EINVAL);
	assert_int_equal(LAUNCH("KDSM_MEMORY=99999999T"), -EINVAL);
	assert_string_equal(bad, "KDSM_MEMORY");
	assert_int_equal(LAUNCH("KDSM_TIMEOUT=0"), -EINVAL);
	no_launcher();
}

/* ---- processes that share the local backend ---- */

#define PROCESSES	4

static struct kdsm_job *local_join(uint32_t rank)
{
	struct kdsm_job_attr attr = {
		.argsz = sizeof(attr), .flags = KDSM_JOB_LOCAL, .name = "unit/job",
		.size = PROCESSES, .rank = rank, .memory = 1 << 20,
	};
	struct kdsm_job *job;

	kdsm_job_join(&attr, &job);
	return job;
}

/* A list in coherent memory, whose pointers are valid in all processes, under a lock */
static int local_member(uint32_t rank)
{
	struct item { struct item *next; uint64_t rank; } *items, **first;
	struct kdsm_job *job = local_join(rank);
	uint64_t sum = 0, begin, end, done = 0;
	struct kdsm_lock *lock;
	struct kdsm_loop loop;
	struct item *item;
	int i;

	first = kdsm_job_alloc(job, sizeof(*first));
	items = kdsm_job_alloc(job, PROCESSES * 100 * sizeof(*items));
	if (kdsm_lock_create(kdsm_job_region(job), "list", 0, NULL, &lock))
		return 2;
	for (i = 0; i < 100; i++) {
		item = &items[rank * 100 + i];
		if (kdsm_lock(lock))
			return 3;
		*item = (struct item){ *first, rank };
		*first = item;
		kdsm_unlock(lock);
	}
	kdsm_lock_close(lock);
	kdsm_job_barrier(job);
	for (item = *first; item; item = item->next)
		sum += item->rank;
	if (sum != 100 * PROCESSES * (PROCESSES - 1) / 2)
		return 4;
	kdsm_job_loop(job, 1000, 7, &loop);
	while (kdsm_loop_next(&loop, &begin, &end) > 0)
		done += end - begin;
	kdsm_job_allreduce(job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &done, 1);
	return kdsm_job_leave(job) || done != 1000;
}

/* Runs after the death of rank 2, or does not end. */
static int local_survivor(uint32_t rank)
{
	struct kdsm_job *job = local_join(rank);

	if (rank == 2)
		raise(SIGKILL);
	if (rank == 1)
		pause();
	kdsm_job_barrier(job);
	return 0;
}

/* Fork processes; the exit status of each but the killed one must be this. */
static void fork_all(int (*function)(uint32_t rank), int expected, const char *text)
{
	pid_t pids[PROCESSES];
	char said[4096] = "";
	size_t length = 0;
	unsigned int i;
	int status, pipes[2];
	ssize_t n;

	assert_int_equal(pipe(pipes), 0);
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			dup2(pipes[1], STDERR_FILENO);
			close(pipes[0]);
			close(pipes[1]);
			alarm(60);
			_exit(function(i));
		}
	}
	close(pipes[1]);
	/* The end comes when all processes have ended. */
	while (length < sizeof(said) - 1 &&
	       (n = read(pipes[0], said + length, sizeof(said) - 1 - length)) > 0)
		length += n;
	close(pipes[0]);
	for (i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		if (status != expected << 8 && (status & 0x7f) != SIGKILL)
			fail_msg("status %#x: %s", status, said);
	}
	assert_non_null(strstr(said, text));
	/* Nothing is left behind. */
	snprintf(said, sizeof(said), "/dev/shm/kdsm-%u=unit%%2fjob", geteuid());
	assert_int_equal(access(said, F_OK), -1);
}

static void processes(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip();	/* ThreadSanitizer refuses the addresses of shared regions. */
#endif
	fork_all(local_member, 0, "");
	fork_all(local_survivor, EXIT_FAILURE, "job unit/job: rank 2 (process");
	/* Files of the killed process do not disturb the next job. */
	fork_all(local_member, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* First: a process that has used the local backend shares it with children. */
		cmocka_unit_test(processes),
		cmocka_unit_test(shares),
		cmocka_unit_test(memory),
		cmocka_unit_test(limits),
		cmocka_unit_test(collectives),
		cmocka_unit_test(refused),
		cmocka_unit_test(costs),
		cmocka_unit_test(loops),
		cmocka_unit_test(disagreement),
		cmocka_unit_test(aborted),
		cmocka_unit_test(dead_member),
		cmocka_unit_test(dead_member_unanswered),
		cmocka_unit_test(dead_node),
		cmocka_unit_test(other_size),
		cmocka_unit_test(same_rank),
		cmocka_unit_test(bad_attributes),
		cmocka_unit_test(no_argsz),
		cmocka_unit_test(launchers),
	};

	no_launcher();
	return UNIT_RUN(tests);
}
