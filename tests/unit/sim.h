/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Simulated cluster for tests of the traffic between nodes: several nodes in one process.
 * This backend of the library implements remote operations as copies between the memories
 * of the nodes. A copy proceeds byte by byte and may pause in the middle, as with
 * Soft-RoCE. The CPU performs the atomics, as in domain sw.
 *
 * Each node has its own copy of a coherent region. A node sees the writes of other nodes
 * only after it acquires a signature that names these writes. A lost signature therefore
 * shows in the data.
 */
#ifndef SIM_H
#define SIM_H

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <kdsm/coherent.h>
#include "core/internal.h"

#define SIM_NODES	8
#define SIM_BLOCK	4096

/* Writes to one block that one release found */
struct sim_write {
	struct sim_write *next;		/* newer write */
	uint64_t ts, block;
	unsigned int writer;
	bool seen[SIM_NODES];
	bool mask[SIM_BLOCK];
	uint8_t data[SIM_BLOCK];
};

/* Copies of a coherent region, and the writes and signatures that pass between nodes */
struct sim_coherence {
	uint8_t *twin[SIM_NODES];	/* the copy at its last release or acquire */
	struct kdsm_signature told[SIM_NODES];
	struct sim_write *oldest, **newest;
	uint64_t clock;
	unsigned int releases, acquires, races;
	int fail;			/* result of releases and acquires */
};

struct sim_memory {
	struct sim_memory *next;
	char name[KDSM_NAME_SIZE];
	struct kdsm_region_open made;
	uint8_t *part[SIM_NODES];	/* of a coherent region: the node's copy */
	struct sim_coherence coherence;
	unsigned int bound;
	bool named;
};

struct sim {
	unsigned int nodes;
	struct kdsm *kdsm[SIM_NODES];
	pthread_mutex_t lock;
	pthread_cond_t notified;
	struct sim_memory *memories;
	uint32_t last_id;
	uint64_t delay;		/* sleep in every submission, in ns */
	uint64_t spin;		/* busy loop in every submission, in ns */
	bool tear;		/* pause in the middle of gets and puts */
	void (*before)(const struct kdsm_op *op);	/* called before each operation */
	/*
	 * Called before and after each operation. May change it, or fail it even after its
	 * effect.
	 */
	int (*fault)(struct kdsm_op *op, bool after);
	const char *const *locations;	/* of the nodes, or NULL */
	unsigned int dead;	/* node that no longer answers, plus 1; 0: none */
};

/* A process simulates one cluster at a time. */
static struct sim sim;

static uint32_t sim_random(void)
{
	static _Thread_local uint32_t state;

	if (!state)
		state = (uintptr_t)&state >> 4 | 1;
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void sim_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	size_t i, stop = sim.tear ? sim_random() % (4 * length + 1) : length + 1;

	for (i = 0; i < length; i++) {
		if (i == stop)
			sched_yield();
		/* Release, because a thread that has seen all bytes may reuse the place. */
		__atomic_store_n(&to[i], __atomic_load_n(&from[i], __ATOMIC_RELAXED),
				 __ATOMIC_RELEASE);
	}
}

static void sim_notify(void)
{
	pthread_mutex_lock(&sim.lock);
	pthread_cond_broadcast(&sim.notified);
	pthread_mutex_unlock(&sim.lock);
}

static int sim_op(struct kdsm_region *region, struct kdsm_op *op)
{
	struct sim_memory *memory = (void *)region->memory;
	uint8_t *user = (uint8_t *)(uintptr_t)op->addr;
	uint8_t *place;

	if (op->node >= sim.nodes)
		return -EINVAL;
	if (op->opcode != KDSM_OP_FIND && op->opcode != KDSM_OP_STEAL &&
	    (op->offset > memory->made.part_size ||
	     op->length > memory->made.part_size - op->offset))
		return -ERANGE;
	if (__atomic_load_n(&sim.dead, __ATOMIC_RELAXED) == op->node + 1u)
		return -EHOSTDOWN;
	place = memory->part[op->node] + op->offset;
	switch (op->opcode) {
	case KDSM_OP_GET:
		sim_copy(user, place, op->length);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		return 0;
	case KDSM_OP_PUT:
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		sim_copy(place, user, op->length);
		if (op->flags & KDSM_OP_NOTIFY)
			sim_notify();
		return 0;
	case KDSM_OP_CAS:
		op->result = op->compare;
		__atomic_compare_exchange_n((__u64 *)place, &op->result, op->operand,
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return 0;
	case KDSM_OP_FAA:
		op->result = __atomic_fetch_add((uint64_t *)place, op->operand,
						__ATOMIC_SEQ_CST);
		return 0;
	case KDSM_OP_FIND:
		return kdsm_find_in(memory->part[op->node], memory->made.part_size, op->offset,
				    (struct kdsm_find *)user);
	case KDSM_OP_STEAL:
		return kdsm_steal_in(memory->part[op->node], memory->made.part_size, op->node,
				     op->offset, (struct kdsm_theft *)user);
	default:
		return -EINVAL;
	}
}

/*
 * After a fault, later operations of the submission on the same node fail, too. broken has
 * a bit for each such node.
 */
static int sim_op_or_fault(struct kdsm_region *region, struct kdsm_op *op, unsigned int *broken)
{
	int (*fault)(struct kdsm_op *op, bool after);
	int ret;

	fault = __atomic_load_n(&sim.fault, __ATOMIC_ACQUIRE);
	if (!fault)
		return sim_op(region, op);
	ret = *broken & 1u << op->node ? -EIO : fault(op, false);
	if (!ret)
		ret = sim_op(region, op);
	if (!ret)
		ret = fault(op, true);
	if (ret)
		*broken |= 1u << op->node;
	return ret;
}

static void sim_spin(void)
{
	uint64_t begin = kdsm_now();

	while (kdsm_now() - begin < sim.spin)
		;
}

static int sim_submit(struct kdsm_region *region, struct kdsm_op *ops,
		      unsigned int count, uint64_t *ticket)
{
	uint64_t ns = __atomic_load_n(&sim.delay, __ATOMIC_RELAXED);
	struct timespec delay = { ns / 1000000000, ns % 1000000000 };
	void (*before)(const struct kdsm_op *op);
	unsigned int i, broken = 0;
	int first = 0;

	kdsm_count(region->kdsm, ops, count);
	kdsm_count_call(region->kdsm);
	if (ns)
		nanosleep(&delay, NULL);
	if (sim.spin)
		sim_spin();
	before = __atomic_load_n(&sim.before, __ATOMIC_ACQUIRE);
	for (i = 0; i < count; i++) {
		if (before)
			before(&ops[i]);
		ops[i].status = sim_op_or_fault(region, &ops[i], &broken);
		if (!first)
			first = ops[i].status;
	}
	if (!ticket)
		return first;
	*ticket = 0;
	return 0;
}

static int sim_complete(struct kdsm_region *region, uint64_t ticket, uint64_t timeout)
{
	(void)region, (void)ticket, (void)timeout;
	return -ENOENT;
}

static int sim_wait(struct kdsm_region *region, uint64_t offset, uint64_t value,
		    uint64_t timeout)
{
	uint64_t begin = kdsm_now(), left;
	struct timespec until;
	int ret = 0;

	pthread_mutex_lock(&sim.lock);
	while (__atomic_load_n(kdsm_word(region, offset), __ATOMIC_SEQ_CST) == value) {
		left = kdsm_left(begin, timeout);
		if (left == 0) {
			ret = -ETIMEDOUT;
			break;
		}
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += left < 10000000 ? left : 10000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&sim.notified, &sim.lock, &until);
	}
	pthread_mutex_unlock(&sim.lock);
	return ret;
}

static int sim_wake(struct kdsm_region *region, uint64_t offset)
{
	(void)region;
	(void)offset;
	sim_notify();
	return 0;
}

/*
 * Hidden from ThreadSanitizer, because other threads may write to the copy concurrently. If
 * the program has no races, these threads do not write to the bytes that an acquire
 * changes.
 */
__attribute__((no_sanitize("thread")))
static bool sim_differences(struct sim_write *write, const uint8_t *copy, uint8_t *twin)
{
	const volatile uint64_t *words = (const void *)copy;
	const volatile uint8_t *now = copy;
	bool any = false;
	size_t i;

	/* Before the first difference the mask is still false. */
	for (i = 0; i < SIM_BLOCK / 8; i++)
		if (words[i] != ((uint64_t *)twin)[i])
			break;
	for (i *= 8; i < SIM_BLOCK; i++) {
		write->data[i] = now[i];
		write->mask[i] = write->data[i] != twin[i];
		twin[i] = write->data[i];
		any |= write->mask[i];
	}
	return any;
}

__attribute__((no_sanitize("thread")))
static unsigned int sim_apply(const struct sim_write *write, uint8_t *copy, uint8_t *twin)
{
	volatile uint8_t *now = copy;
	unsigned int races = 0;
	size_t i;

	for (i = 0; i < SIM_BLOCK; i++) {
		if (!write->mask[i])
			continue;
		if (now[i] == twin[i])
			now[i] = write->data[i];
		else
			races++;
		twin[i] = write->data[i];
	}
	return races;
}

static void sim_tell(struct kdsm_signature *signature, const struct sim_write *write)
{
	struct kdsm_signature one = { .count = 1 };

	one.notices[0] = (struct kdsm_notice){ .ts = write->ts, .first = write->block,
					       .count = 1, .writer = write->writer };
	kdsm_signature_merge(signature, &one);
}

static int sim_fence_release(struct kdsm_region *region, struct kdsm_signature *signature)
{
	struct sim_memory *memory = (void *)region->memory;
	struct sim_coherence *coherence = &memory->coherence;
	struct sim_write *write = NULL;
	uint64_t block, ts;

	pthread_mutex_lock(&sim.lock);
	coherence->releases++;
	ts = ++coherence->clock;
	for (block = 0; block < memory->made.part_size / SIM_BLOCK; block++) {
		if (!write)
			write = calloc(1, sizeof(*write));
		if (!sim_differences(write, memory->part[region->node] + block * SIM_BLOCK,
				     coherence->twin[region->node] + block * SIM_BLOCK))
			continue;
		write->ts = ts;
		write->block = block;
		write->writer = region->node;
		write->seen[region->node] = true;
		sim_tell(&coherence->told[region->node], write);
		*coherence->newest = write;
		coherence->newest = &write->next;
		write = NULL;
	}
	free(write);
	if (signature)
		*signature = coherence->told[region->node];
	pthread_mutex_unlock(&sim.lock);
	return coherence->fail;
}

static bool sim_told(const struct kdsm_signature *signature, const struct sim_write *write)
{
	const struct kdsm_notice *notice = signature->notices;
	unsigned int i;

	for (i = 0; i < signature->count; i++, notice++)
		if (notice->ts == write->ts && notice->writer == write->writer &&
		    write->block - notice->first < notice->count)
			return true;
	return write->ts <= signature->floor;
}

static int sim_fence_acquire(struct kdsm_region *region,
			     const struct kdsm_signature *signature)
{
	struct sim_memory *memory = (void *)region->memory;
	struct sim_coherence *coherence = &memory->coherence;
	unsigned int node = region->node;
	struct sim_write *write;

	pthread_mutex_lock(&sim.lock);
	coherence->acquires++;
	for (write = coherence->oldest; write; write = write->next) {
		if (write->seen[node] || !sim_told(signature, write))
			continue;
		write->seen[node] = true;
		coherence->races += sim_apply(write,
					      memory->part[node] + write->block * SIM_BLOCK,
					      coherence->twin[node] + write->block * SIM_BLOCK);
	}
	kdsm_signature_merge(&coherence->told[node], signature);
	pthread_mutex_unlock(&sim.lock);
	return coherence->fail;
}

static inline struct sim_coherence *sim_coherence(struct kdsm_region *region)
{
	return &((struct sim_memory *)(void *)region->memory)->coherence;
}

static struct sim_memory *sim_find(const char *name)
{
	struct sim_memory *memory;

	for (memory = sim.memories; memory; memory = memory->next)
		if (memory->named && !strcmp(memory->name, name))
			return memory;
	return NULL;
}

static void sim_release(struct sim_memory *memory)
{
	struct sim_memory **link = &sim.memories;
	struct sim_write *write;
	unsigned int i;

	if (memory->bound)
		return;
	while (*link != memory)
		link = &(*link)->next;
	*link = memory->next;
	for (i = 0; i < sim.nodes; i++) {
		munmap(memory->part[i], memory->made.part_size);
		free(memory->coherence.twin[i]);
	}
	while ((write = memory->coherence.oldest)) {
		memory->coherence.oldest = write->next;
		free(write);
	}
	free(memory);
}

static void sim_make(struct sim_memory *memory, const struct kdsm_region_open *arg)
{
	bool coherent = arg->policy == KDSM_POLICY_RELEASE;
	uint64_t size = arg->size / (coherent ? 1 : sim.nodes);
	unsigned int i;

	memcpy(memory->name, arg->name, sizeof(memory->name));
	memory->named = true;
	memory->made = *arg;
	memory->made.id = ++sim.last_id;
	memory->made.block_size = SIM_BLOCK;
	memory->made.part_size = coherent ? (size + SIM_BLOCK - 1) / SIM_BLOCK * SIM_BLOCK :
					    (size + 4096) / 4096 * 4096;
	for (i = 0; i < sim.nodes; i++) {
		memory->part[i] = mmap(NULL, memory->made.part_size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (coherent)
			memory->coherence.twin[i] = calloc(1, memory->made.part_size);
	}
	memory->coherence.newest = &memory->coherence.oldest;
}

static int sim_bind(struct kdsm *kdsm, struct kdsm_region_open *arg,
		    struct kdsm_region *region)
{
	struct sim_memory *memory;

	(void)kdsm;
	pthread_mutex_lock(&sim.lock);
	memory = sim_find(arg->name);
	if (!memory) {
		memory = calloc(1, sizeof(*memory));
		sim_make(memory, arg);
		memory->next = sim.memories;
		sim.memories = memory;
	}
	memory->bound++;
	pthread_mutex_unlock(&sim.lock);
	*arg = memory->made;
	region->memory = (void *)memory;
	region->writable = true;
	return 0;
}

static int sim_map(struct kdsm_region *region)
{
	region->base = ((struct sim_memory *)(void *)region->memory)->part[region->node];
	if (!region->coherent)
		region->part = region->base;
	return 0;
}

static void sim_unbind(struct kdsm_region *region)
{
	struct sim_memory *memory = (void *)region->memory;

	pthread_mutex_lock(&sim.lock);
	memory->bound--;
	sim_release(memory);
	pthread_mutex_unlock(&sim.lock);
}

static int sim_destroy(struct kdsm *kdsm, const char *name)
{
	struct sim_memory *memory;

	(void)kdsm;
	pthread_mutex_lock(&sim.lock);
	memory = sim_find(name);
	if (memory) {
		memory->named = false;
		sim_release(memory);
	}
	pthread_mutex_unlock(&sim.lock);
	return memory ? 0 : -ENOENT;
}

static void sim_close(struct kdsm *kdsm)
{
	(void)kdsm;
}

static int sim_location(const struct kdsm *kdsm, unsigned int node,
			char location[KDSM_LOCATION_SIZE])
{
	const char *place = sim.locations ? sim.locations[node] : "";

	(void)kdsm;
	memcpy(location, place, strlen(place) + 1);
	return 0;
}

static const struct kdsm_backend sim_backend = {
	.close = sim_close, .location = sim_location,
	.bind = sim_bind, .unbind = sim_unbind, .map = sim_map,
	.destroy = sim_destroy, .submit = sim_submit, .complete = sim_complete,
	.wait = sim_wait, .wake = sim_wake,
	.release = sim_fence_release, .acquire = sim_fence_acquire,
};

static inline void sim_start(unsigned int nodes)
{
	unsigned int i;

	memset(&sim, 0, sizeof(sim));
	sim.nodes = nodes;
	pthread_mutex_init(&sim.lock, NULL);
	pthread_cond_init(&sim.notified, NULL);
	for (i = 0; i < nodes; i++) {
		struct kdsm *kdsm = aligned_alloc(_Alignof(struct kdsm), sizeof(*kdsm));

		memset(kdsm, 0, sizeof(*kdsm));
		kdsm->backend = &sim_backend;
		kdsm->fd = -1;
		kdsm->node = i;
		kdsm->nodes = nodes;
		kdsm->domain = KDSM_DOMAIN_SW;
		pthread_mutex_init(&kdsm->lock, NULL);
		sim.kdsm[i] = kdsm;
	}
}

static inline void sim_stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		kdsm_close(sim.kdsm[i]);
	pthread_cond_destroy(&sim.notified);
	pthread_mutex_destroy(&sim.lock);
}

#endif /* SIM_H */
