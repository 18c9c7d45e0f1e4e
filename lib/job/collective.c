// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collective calls: rounds of the tree barrier that carry data.
 *
 * Each member stores its data in a slot of its node's part, and arrives. The member that leads the
 * node adds the slots up in the order of ranks, carries the sum through the tree, and stores the
 * total that comes down. The members of the node read it after the round. A member stores into its
 * slot again only after the round, and a leader stores a total only after all members of its node
 * have arrived for the next round, so nothing is overwritten that is still needed.
 *
 * A sum is by an operation, or by "or" where members without data bring zeros.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* A call and its arguments; all heads of a round must be equal but for rank */
struct head {
	uint16_t call, type, op;
	uint16_t bytes;			/* of data */
	uint32_t root, rank;
	uint64_t used;			/* memory that the member has allocated */
};

struct crate {
	struct head head;
	uint8_t data[KDSM_JOB_PIECE];
};

_Static_assert(sizeof(struct crate) == KD_CARGO_MOST, "a piece is what the cargo has room for");

enum call { BARRIER = 1, BROADCAST, ALLREDUCE, REDUCE, COMBINE, ALLGATHER, LOOP };

static const char *const names[] = {
	"", "kdsm_job_barrier()", "kdsm_job_broadcast()", "kdsm_job_allreduce()", "kdsm_job_reduce()",
	"kdsm_job_allreduce_by()", "kdsm_job_allgather()", "kdsm_job_loop()",
};

struct round {
	struct kd_cargo cargo;		/* first: the cargo's functions get its address */
	struct kdsm_job *job;
	kdsm_job_combine combine;
	void *context;
	struct crate sum;
	char wrong[160];		/* why the members cannot go on, or empty */
};

/* ---- operations ---- */

struct operation {
	enum kdsm_job_type type;
	enum kdsm_job_op op;
	size_t count;
};

static double of_doubles(enum kdsm_job_op op, double a, double b)
{
	if (op == KDSM_JOB_SUM)
		return a + b;
	return (op == KDSM_JOB_MIN) == (b < a) ? b : a;
}

static int64_t of_signed(enum kdsm_job_op op, int64_t a, int64_t b)
{
	return (op == KDSM_JOB_MIN) == (b < a) ? b : a;
}

static uint64_t of_unsigned(enum kdsm_job_op op, uint64_t a, uint64_t b)
{
	if (op == KDSM_JOB_SUM)
		return a + b;
	return (op == KDSM_JOB_MIN) == (b < a) ? b : a;
}

static void combine_words(void *sum, const void *other, void *context)
{
	const struct operation *operation = context;
	enum kdsm_job_op op = operation->op;
	const double *doubles = other;
	const uint64_t *words = other;
	size_t i;

	/* Sums of int64_t wrap as those of uint64_t do. */
	for (i = 0; i < operation->count; i++)
		if (operation->type == KDSM_JOB_DOUBLE)
			((double *)sum)[i] = of_doubles(op, ((double *)sum)[i], doubles[i]);
		else if (operation->type == KDSM_JOB_INT64 && op != KDSM_JOB_SUM)
			((int64_t *)sum)[i] = of_signed(op, ((int64_t *)sum)[i], words[i]);
		else
			((uint64_t *)sum)[i] = of_unsigned(op, ((uint64_t *)sum)[i], words[i]);
}

/* context: the number of words */
static void combine_or(void *sum, const void *other, void *context)
{
	size_t i, count = *(size_t *)context;

	for (i = 0; i < count; i++)
		((uint64_t *)sum)[i] |= ((const uint64_t *)other)[i];
}

/* ---- a round ---- */

static void *part_at(const struct kdsm_job *job, uint64_t offset)
{
	return (char *)kdsm_region_part(job->sync) + offset;
}

static struct crate *slot(const struct kdsm_job *job, uint32_t index)
{
	return part_at(job, job->slots + index * (uint64_t)KD_CARGO_SIZE);
}

static const char *name_of(const struct head *head)
{
	return head->call < sizeof(names) / sizeof(*names) ? names[head->call] : "?";
}

/* Returns how two members differ, or NULL. */
static const char *difference(const struct head *mine, const struct head *theirs)
{
	if (mine->call != theirs->call)
		return "call different functions";
	if (mine->type != theirs->type || mine->op != theirs->op || mine->bytes != theirs->bytes ||
	    mine->root != theirs->root)
		return "call with different arguments";
	return mine->used != theirs->used ? "have allocated different memory" : NULL;
}

/* Add what another member, or the members of another node, bring. */
static int add(struct round *round, const struct crate *other)
{
	const struct head *mine = &round->sum.head, *theirs = &other->head;
	const char *how = difference(mine, theirs);

	if (how) {
		snprintf(round->wrong, sizeof(round->wrong),
			 "ranks %u and %u %s: %s and %s", mine->rank, theirs->rank, how,
			 name_of(mine), name_of(theirs));
		return -EPROTO;
	}
	if (mine->bytes)
		round->combine(round->sum.data, other->data, round->context);
	return 0;
}

static int collect(struct kd_cargo *cargo)
{
	struct round *round = (struct round *)cargo;
	uint32_t i;
	int ret = 0;

	memcpy(&round->sum, slot(round->job, 0), cargo->bytes);
	for (i = 1; i < round->job->own_count && !ret; i++)
		ret = add(round, slot(round->job, i));
	return ret;
}

static int combine(struct kd_cargo *cargo, const void *theirs)
{
	struct crate crate;

	/* A copy, because theirs need not be aligned for all types of data. */
	memcpy(&crate, theirs, cargo->bytes);
	return add((struct round *)cargo, &crate);
}

static void deliver(struct kd_cargo *cargo)
{
	struct round *round = (struct round *)cargo;

	memcpy(part_at(round->job, round->job->result), &round->sum, cargo->bytes);
}

/* The round failed: find out why, or tell the other members. */
static int give_up(struct kdsm_job *job, unsigned int culprit, int error, const char *wrong)
{
	unsigned int tries;
	uint32_t rank;
	int ret = kd_job_check(job);

	if (error != -EPIPE || ret)
		return ret ? ret : kd_job_end(job, job->rank, error, *wrong ? wrong : NULL);
	/* The member that broke the barrier says why, unless this node cannot be reached. */
	for (tries = 0; tries < 20 && !ret; tries++) {
		kd_sleep(50 * KD_MS);
		ret = kd_job_check(job);
	}
	if (ret)
		return ret;
	for (rank = 0; rank < job->size - 1 && job->members[rank].node != culprit; rank++)
		;
	return kd_job_end(job, rank, -EHOSTDOWN, NULL);
}

/* Wait for all members. data, of head.bytes bytes, becomes the sum. */
static int meet(struct kdsm_job *job, struct head head, void *data, kdsm_job_combine add_up,
		void *context)
{
	struct round round = {
		.cargo = {
			.place = job->cargo,
			.sum = &round.sum,
			.bytes = sizeof(head) + (head.bytes + 7) / 8 * 8,
			.collect = collect, .combine = combine, .deliver = deliver,
		},
		.job = job,
		.combine = add_up,
		.context = context,
	};
	struct crate *own = slot(job, job->own_index);
	unsigned int culprit = 0;
	int ret = kd_job_check(job);

	if (ret)
		return ret;
	head.rank = job->rank;
	head.used = job->used + job->sync_used * 0x9e3779b97f4a7c15;
	own->head = head;
	if (head.bytes)
		memcpy(own->data, data, head.bytes);
	memset(own->data + head.bytes, 0, -head.bytes % 8U);
	ret = kd_tree_barrier_meet(&job->barrier, &round.cargo, KDSM_FOREVER, &culprit);
	if (ret)
		return give_up(job, culprit, ret, round.wrong);
	if (head.bytes)
		memcpy(data, ((struct crate *)part_at(job, job->result))->data, head.bytes);
	return 0;
}

/* ---- the calls ---- */

/* Refuse an argument, which ends the job unless the program has a function failed. */
static int __attribute__((format(printf, 2, 3)))
refuse(struct kdsm_job *job, const char *format, ...)
{
	char text[160];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	kd_because(-EINVAL, "job %s: %s", job->name, text);
	return job->handler ? -EINVAL : kd_job_failed(job, -EINVAL, "%s", kdsm_error(-EINVAL));
}

static int refuse_root(struct kdsm_job *job, const char *name, uint32_t root)
{
	return refuse(job, "%s: root %u is not below the size of the job, %u", name, root,
		      job->size);
}

int kdsm_job_barrier(struct kdsm_job *job)
{
	return meet(job, (struct head){ .call = BARRIER }, NULL, NULL, NULL);
}

int kdsm_job_broadcast(struct kdsm_job *job, uint32_t root, void *data, size_t bytes)
{
	uint64_t piece[KDSM_JOB_PIECE / 8];
	size_t done, n, words;
	int ret = 0;

	if (root >= job->size)
		return refuse_root(job, names[BROADCAST], root);
	for (done = 0; (done < bytes || !done) && !ret; done += n) {
		n = bytes - done < sizeof(piece) ? bytes - done : sizeof(piece);
		words = (n + 7) / 8;
		memset(piece, 0, sizeof(piece));
		if (job->rank == root && n)
			memcpy(piece, (char *)data + done, n);
		ret = meet(job, (struct head){ .call = BROADCAST, .root = root, .bytes = n }, piece,
			   combine_or, &words);
		if (!ret && job->rank != root && n)
			memcpy((char *)data + done, piece, n);
		if (!n)
			break;
	}
	return ret;
}

/* Check what a reduction and a scan, by this name, have in common. */
static int check(struct kdsm_job *job, const char *name, enum kdsm_job_type type,
		 enum kdsm_job_op op, size_t count)
{
	if (type < KDSM_JOB_INT64 || type > KDSM_JOB_DOUBLE)
		return refuse(job, "%s: there is no type %d", name, type);
	if (op < KDSM_JOB_SUM || op > KDSM_JOB_MAX)
		return refuse(job, "%s: there is no operation %d", name, op);
	/* The scan has the elements of all members in memory. */
	if (!count || count > SIZE_MAX / 16 / job->size)
		return refuse(job, "%s: %zu elements are none, or too many", name, count);
	return 0;
}

static int reduce(struct kdsm_job *job, struct head head, void *data, size_t count)
{
	struct operation operation = { .type = head.type, .op = head.op };
	uint64_t piece[KDSM_JOB_PIECE / 8], *words = data;
	size_t done = 0, most = sizeof(piece) / 8;
	int ret;

	do {
		operation.count = count - done < most ? count - done : most;
		head.bytes = operation.count * 8;
		memcpy(piece, words + done, head.bytes);
		ret = meet(job, head, piece, combine_words, &operation);
		if (!ret && (head.call == ALLREDUCE || job->rank == head.root))
			memcpy(words + done, piece, head.bytes);
		done += operation.count;
	} while (!ret && done < count);
	return ret;
}

int kdsm_job_allreduce(struct kdsm_job *job, enum kdsm_job_type type, enum kdsm_job_op op,
		       void *data, size_t count)
{
	int ret = check(job, names[ALLREDUCE], type, op, count);

	if (ret)
		return ret;
	return reduce(job, (struct head){ .call = ALLREDUCE, .type = type, .op = op }, data, count);
}

int kdsm_job_reduce(struct kdsm_job *job, uint32_t root, enum kdsm_job_type type,
		    enum kdsm_job_op op, void *data, size_t count)
{
	int ret = check(job, names[REDUCE], type, op, count);

	if (ret)
		return ret;
	if (root >= job->size)
		return refuse_root(job, names[REDUCE], root);
	return reduce(job, (struct head){ .call = REDUCE, .type = type, .op = op, .root = root },
		      data, count);
}

int kdsm_job_allreduce_by(struct kdsm_job *job, void *data, size_t bytes,
			  kdsm_job_combine combine, void *context)
{
	if (!bytes || bytes > KDSM_JOB_PIECE)
		return refuse(job, "%s: %zu bytes are not 1 to %d", names[COMBINE], bytes,
			      KDSM_JOB_PIECE);
	if (!combine)
		return refuse(job, "%s: combine is NULL", names[COMBINE]);
	return meet(job, (struct head){ .call = COMBINE, .bytes = bytes }, data, combine, context);
}

/* Each piece of the result has data of some members, and zeros from all others. */
int kdsm_job_allgather(struct kdsm_job *job, const void *mine, size_t bytes, void *all)
{
	uint64_t piece[KDSM_JOB_PIECE / 8];
	size_t first = job->rank * bytes, done, n, words, from, to;
	int ret = 0;

	if (!bytes || bytes > SIZE_MAX / 2 / job->size)
		return refuse(job, "%s: %zu bytes are none, or too many", names[ALLGATHER], bytes);
	for (done = 0; done < job->size * bytes && !ret; done += n) {
		n = job->size * bytes - done < sizeof(piece) ? job->size * bytes - done :
							       sizeof(piece);
		words = (n + 7) / 8;
		memset(piece, 0, sizeof(piece));
		from = first > done ? first : done;
		to = first + bytes < done + n ? first + bytes : done + n;
		if (from < to)
			memcpy((char *)piece + from - done, (const char *)mine + from - first,
			       to - from);
		ret = meet(job, (struct head){ .call = ALLGATHER, .bytes = n }, piece, combine_or,
			   &words);
		if (!ret)
			memcpy((char *)all + done, piece, n);
	}
	return ret;
}

int kdsm_job_scan(struct kdsm_job *job, enum kdsm_job_type type, enum kdsm_job_op op,
		  void *data, size_t count)
{
	struct operation operation = { type, op, count };
	uint64_t *all;
	uint32_t rank;
	int ret = check(job, "kdsm_job_scan()", type, op, count);

	if (ret)
		return ret;
	all = malloc(job->size * count * 8);
	if (!all)
		return kd_job_end(job, job->rank, -ENOMEM, NULL);
	ret = kdsm_job_allgather(job, data, count * 8, all);
	if (!ret)
		memcpy(data, all, count * 8);
	for (rank = 1; rank <= job->rank && !ret; rank++) {
		combine_words(all, all + rank * count, &operation);
		memcpy(data, all, count * 8);
	}
	free(all);
	return ret;
}

/* ---- loops ---- */

/*
 * Loops use the words in turn. Before the round that begins a loop, rank 0 resets the word of the
 * next loop. Nobody uses that word: all members have begun the loop before this one, so they have
 * ended the one before that, whose word it is.
 */
int kdsm_job_loop(struct kdsm_job *job, uint64_t count, uint64_t chunk, struct kdsm_loop *loop)
{
	uint64_t turn = job->loops++, *next = &kd_job_words(job)->loop[(turn + 1) % KD_LOOPS];

	if (!chunk || count > UINT64_MAX / 2 || chunk > UINT64_MAX / 4 / KDSM_JOB_MOST)
		return refuse(job, "%s: %" PRIu64 " indices in chunks of %" PRIu64
			      " are no loop", names[LOOP], count, chunk);
	if (!job->rank)
		__atomic_store_n(next, 0, __ATOMIC_SEQ_CST);
	*loop = (struct kdsm_loop){
		.job = job, .count = count, .chunk = chunk,
		.place = KD_JOB_PLACE(loop) + turn % KD_LOOPS * sizeof(uint64_t),
	};
	return meet(job, (struct head){ .call = LOOP }, NULL, NULL, NULL);
}

int kdsm_loop_next(struct kdsm_loop *loop, uint64_t *begin, uint64_t *end)
{
	struct kdsm_job *job = loop->job;
	int ret = kd_job_check(job);
	uint64_t next;

	if (ret)
		return ret;
	ret = kdsm_faa(job->words, job->members[0].node, loop->place, loop->chunk, &next);
	if (ret)
		return kd_job_end(job, job->rank, ret, NULL);
	if (next >= loop->count)
		return 0;
	*begin = next;
	*end = loop->count - next < loop->chunk ? loop->count : next + loop->chunk;
	return 1;
}
