/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Jobs: programs that many processes run together, several on each node if the user wants.
 *
 * Each process joins the job by name and has a rank, 0 to size - 1. All members call the
 * functions that are marked "collective", in the same order and with the same arguments. A
 * collective call returns when all members have made it, and then every member sees what any
 * member wrote to the job's coherent memory before it: each collective call is a barrier of
 * <kdsm/coherent.h>. It takes two puts up and two down the tree of nodes for each node but one,
 * however many members a node has.
 *
 * A member that dies ends the job: see kdsm_job_join().
 *
 * Conventions are those of <kdsm/kdsm.h>, but one thread of each process makes the collective
 * calls, and a child of fork() is no member.
 */
#ifndef KDSM_JOB_H
#define KDSM_JOB_H

#include <kdsm/coherent.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- joining and leaving ---- */

/* A program's membership in a job. */
struct kdsm_job;

/* Members that a job can have */
#define KDSM_JOB_MOST	4096

/* Flags of struct kdsm_job_attr */

/*
 * Use this machine alone, even if there is a cluster: the members are processes of this machine,
 * and share its memory. So does the variable KDSM_LOCAL, if it is set and not 0.
 */
#define KDSM_JOB_LOCAL	(1U << 0)

struct kdsm_job_attr {
	size_t argsz;		/* size of this struct */
	/* At most KDSM_NAME_SIZE - 7 characters, as of kdsm_region_open(); NULL: see below */
	const char *name;
	struct kdsm *kdsm;	/* the cluster, which the program has opened; NULL: open it */
	uint32_t flags;		/* KDSM_JOB_LOCAL, or 0 */
	uint32_t size;		/* members, at most KDSM_JOB_MOST; 0: size and rank see below */
	uint32_t rank;		/* of this process; not used if size is 0 */
	uint32_t block_size;	/* of the coherent memory, as of kdsm_region_open(); 0: 4 KiB */
	uint64_t memory;	/* coherent memory, in bytes; 0: KDSM_MEMORY, or 256 MiB */
	uint64_t sync;		/* memory for words to synchronise by, on each node; 0: 256 KiB */
	uint64_t timeout;	/* silence after which a member is dead; 0: KDSM_TIMEOUT, or 30 s */
	/*
	 * Called once in each process, in any of its threads, when the job ends with an error: a
	 * negative errno and a sentence, valid during the call. NULL: the library prints the
	 * sentence to stderr and ends the process with status 1. The library does the same if
	 * argsz cannot be the size of this struct, because it then cannot read this field.
	 */
	void (*failed)(void *context, int error, const char *message);
	void *context;
};

/*
 * Join a job, and wait for all other members. attr NULL stands for all zero. The caller leaves with
 * kdsm_job_leave(). On failure *job is NULL. Collective: members that disagree on size, memory,
 * sync or block_size fail.
 *
 * Where attr gives no size, these variables do, the first that are there:
 *
 *	rank, size				set by
 *	KDSM_RANK, KDSM_SIZE			kdsmrun(1)
 *	OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE	mpirun of Open MPI
 *	PMI_RANK, PMI_SIZE			mpiexec of MPICH, srun with --mpi=pmi2
 *	PMIX_RANK, SLURM_NTASKS			srun with --mpi=pmix
 *	SLURM_PROCID, SLURM_NTASKS		srun
 *
 * With KDSM_SIZE alone, members are numbered as they come. Without any of them the job has one
 * member on each node, ranked by node. The default of the name is KDSM_JOB, the launcher's number
 * for the job, or the name of the program.
 *
 * Without a cluster the call fails, except with KDSM_JOB_LOCAL. With KDSM_JOB_LOCAL it fails if the
 * launcher started members on other nodes. A process can join one local job of several members.
 *
 * If a member dies, because its process ends without kdsm_job_leave(), or its node does not answer
 * for the timeout, the job ends on all nodes: failed is called in each process. Its message names
 * the member. A process that has a neighbour on its node is missed within a second, any other after
 * the timeout and some seconds. From then on every call with the job fails: -EOWNERDEAD.
 * kdsm_job_abort() ends the job likewise: -ECANCELED. So does any other error of a collective call,
 * so a program without a function failed need not look at results of this header.
 *
 * -EINVAL	attr is malformed; or members disagree; or the launcher's variables are no numbers
 * -EEXIST	another member has this rank
 * -ETIMEDOUT	some members did not join within 60 s, or the timeout if it is longer
 * -EXDEV	KDSM_JOB_LOCAL, but members are on other nodes
 * -EBUSY	this process has used the local backend already
 * -ENOMEM	no memory
 * others	those of argsz, of kdsm_open() and of kdsm_region_open()
 */
int kdsm_job_join(const struct kdsm_job_attr *attr, struct kdsm_job **job);

/*
 * Leave the job, and free it and its memory. Collective. NULL is ignored.
 * If the job has ended with an error, the call does not wait, frees the job, and returns the error.
 */
int kdsm_job_leave(struct kdsm_job *job);

/* End the job with an error, on all nodes. Returns only if the caller gave a function failed. */
void kdsm_job_abort(struct kdsm_job *job);

uint32_t kdsm_job_rank(const struct kdsm_job *job);
uint32_t kdsm_job_size(const struct kdsm_job *job);
/* Node of a member; rank is below kdsm_job_size(). */
unsigned int kdsm_job_node(const struct kdsm_job *job, uint32_t rank);
/* Number of nodes that have members. */
unsigned int kdsm_job_nodes(const struct kdsm_job *job);
const char *kdsm_job_name(const struct kdsm_job *job);

/* The job's cluster, its coherent region and the region for words; all valid until it is left. */
struct kdsm *kdsm_job_cluster(const struct kdsm_job *job);
struct kdsm_region *kdsm_job_region(const struct kdsm_job *job);
struct kdsm_region *kdsm_job_sync(const struct kdsm_job *job);

/* ---- collective calls ---- */

/* Types and operations of kdsm_job_reduce() and its like. Integers wrap. */
enum kdsm_job_type { KDSM_JOB_INT64 = 1, KDSM_JOB_UINT64, KDSM_JOB_DOUBLE };
enum kdsm_job_op { KDSM_JOB_SUM = 1, KDSM_JOB_MIN, KDSM_JOB_MAX };

/*
 * All of these are collective. Errors of all:
 *
 * -EOWNERDEAD	a member died
 * -ECANCELED	a member ended the job, or met an error
 * -EPROTO	members called different functions, or with different arguments
 * -EINVAL	root, type, op or a size is out of range; only this error does not end the job,
 *		if the caller gave a function failed
 * others	those of kdsm_tree_barrier_wait()
 *
 * Data travel in pieces of up to KDSM_JOB_PIECE bytes, each of which costs what a barrier costs:
 * large data belong in the coherent memory.
 */
#define KDSM_JOB_PIECE	4064

int kdsm_job_barrier(struct kdsm_job *job);

/* Copy data, of so many bytes, from the member root to all others. */
int kdsm_job_broadcast(struct kdsm_job *job, uint32_t root, void *data, size_t bytes);

/*
 * Combine count elements of all members, each with those of the same index.
 * allreduce	every member gets the result in place of its elements
 * reduce	the member root gets it, the others keep their elements
 * scan		each member gets the result over the members up to and including itself
 * Two runs with the same members on the same nodes combine in the same order, and all members get
 * the same bits.
 */
int kdsm_job_allreduce(struct kdsm_job *job, enum kdsm_job_type type, enum kdsm_job_op op,
		       void *data, size_t count);
int kdsm_job_reduce(struct kdsm_job *job, uint32_t root, enum kdsm_job_type type,
		    enum kdsm_job_op op, void *data, size_t count);
int kdsm_job_scan(struct kdsm_job *job, enum kdsm_job_type type, enum kdsm_job_op op,
		  void *data, size_t count);

/*
 * allreduce with a function of the program: combine() adds *other to *sum. bytes is their
 * size, at most KDSM_JOB_PIECE. It must be associative and commutative, and calls no function of
 * this library. One process of each node calls it, for all members of the node.
 */
typedef void (*kdsm_job_combine)(void *sum, const void *other, void *context);
int kdsm_job_allreduce_by(struct kdsm_job *job, void *data, size_t bytes,
			  kdsm_job_combine combine, void *context);

/* Store what each member brings, in the order of ranks, in all: bytes for each member. */
int kdsm_job_allgather(struct kdsm_job *job, const void *mine, size_t bytes, void *all);

/* ---- memory ---- */

/*
 * All members allocate the same memory in the same order, which the next collective call checks.
 * The calls do not wait for other members. Memory is zero at first, and lasts as long as the job.
 *
 * -ENOMEM	the attribute memory (or sync) is too small
 * -EINVAL	bytes, count or size is 0
 * Without a function failed, an error ends the job.
 */

/*
 * Allocate memory that all members share, which begins at a block, and return its address, the same
 * at all members. On failure return NULL and set errno. Each node keeps copies of the blocks
 * that its members read, so an array that few members write and all read is replicated.
 */
void *kdsm_job_alloc(struct kdsm_job *job, uint64_t bytes);

/*
 * Allocate bytes of every node's part of kdsm_job_sync(), for barriers, conditions, semaphores and
 * words to wait for. *offset is a multiple of 64.
 */
int kdsm_job_alloc_sync(struct kdsm_job *job, uint64_t bytes, uint64_t *offset);

/* First index of the share that a rank has of count things; it ends at that of rank + 1. */
static inline uint64_t kdsm_share(uint64_t count, uint32_t rank, uint32_t size)
{
	return count / size * rank + count % size * rank / size;
}

/* The member in whose share index i is; i is below count. */
static inline uint32_t kdsm_sharer(uint64_t count, uint64_t i, uint32_t size)
{
	return (uint32_t)(((i + 1) * size - 1) / count);
}

/*
 * An array of which every member has an equal share in blocks of its own, so members do not write
 * the same blocks. Programs read the fields, and change none.
 */
struct kdsm_spread {
	char *base;
	uint64_t count;		/* elements */
	uint64_t size;		/* of an element, in bytes */
	uint64_t stride;	/* from one member's elements to the next member's, in bytes */
	uint32_t members;
	uint32_t reserved;
};

/* Allocate a spread array, as kdsm_job_alloc(). */
int kdsm_job_spread(struct kdsm_job *job, uint64_t count, uint64_t size,
		    struct kdsm_spread *spread);

/* Address of element i. Elements of one member are neighbours. */
static inline void *kdsm_spread_at(const struct kdsm_spread *spread, uint64_t i)
{
	uint32_t rank = kdsm_sharer(spread->count, i, spread->members);

	return spread->base + rank * spread->stride +
	       (i - kdsm_share(spread->count, rank, spread->members)) * spread->size;
}

/* ---- parallel loops ---- */

/* Run the statement that follows for the indices i, below count, of this member's share. */
#define KDSM_JOB_FOR(job, i, count) \
	for (uint64_t i = kdsm_share(count, kdsm_job_rank(job), kdsm_job_size(job)), \
	     i##_end = kdsm_share(count, kdsm_job_rank(job) + 1, kdsm_job_size(job)); \
	     i < i##_end; i++)

/* A loop whose members take chunks of indices when they are idle. */
struct kdsm_loop {
	struct kdsm_job *job;
	uint64_t count, chunk, place;
};

/*
 * Begin a loop over the indices below count, in chunks of chunk indices, at least 1. Collective. A
 * loop ends with the next one's begin: there is one at a time.
 */
int kdsm_job_loop(struct kdsm_job *job, uint64_t count, uint64_t chunk, struct kdsm_loop *loop);

/*
 * Take the next chunk: indices *begin to *end - 1. Returns 1, or 0 if none is left. One remote
 * atomic, none on the node of rank 0. Any number of threads may call it. Errors: those of
 * kdsm_faa(), and -EOWNERDEAD, -ECANCELED as above.
 */
int kdsm_loop_next(struct kdsm_loop *loop, uint64_t *begin, uint64_t *end);

#ifdef __cplusplus
}
#endif
#endif /* KDSM_JOB_H */
