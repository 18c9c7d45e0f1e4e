/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Simulated cluster for tests of the traffic between nodes: several nodes in one process.
 * This backend of the library implements remote operations as copies between the memories
 * of the nodes. The CPU performs the atomics, as in domain sw.
 *
 * A put is complete before the target sees it, as with a device that writes to memory in a
 * relaxed order. The put falls into pieces, words or runs of words, and each piece appears
 * after a delay of its own, so a later put may overtake an earlier one, and half of a put the
 * other half. Only three things order the pieces of a connection:
 * - the kernel of the target takes a message from the same connection: a put with
 *   KDSM_OP_NOTIFY, an atomic, a find or a theft. All that was put on the connection before
 *   appears before the kernel executes the message.
 * - kdsm_settle() sends a message on every connection.
 * - a get of the same node sees what that node has put.
 * A node has SIM_QUEUES connections to each other node, and each call uses one of them, at
 * random, as threads of the library move between processors; calls that notify use the first. A
 * put with KDSM_OP_NOTIFY is a message without a reply: it is complete before the target's kernel
 * has taken it, and a get of the same node may come before.
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
#define SIM_QUEUES	2	/* connections from a node to another one */
#define SIM_LINES	(SIM_NODES * SIM_NODES * SIM_QUEUES)
#define SIM_PIECES	16	/* most pieces of a put */
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

/* A piece of a put, or a message, on its way */
struct sim_piece {
	struct sim_piece *next;
	struct sim_memory *memory;
	unsigned int node;		/* the target */
	bool notice;			/* a message that stores data, its first word last */
	uint64_t due;			/* when it appears, in ns */
	uint64_t offset;
	uint32_t length;
	uint8_t data[];
};

/* All that is on its way on a connection, in the order of posting */
struct sim_line {
	struct sim_piece *first, **last;
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
	struct sim_line lines[SIM_LINES];	/* see sim_line() */
	pthread_t bus;		/* the thread that makes pieces appear when they are due */
	pthread_cond_t posted;	/* something new is on its way, or stopping */
	bool stopping;
	/*
	 * Faults, for tests of this simulation. as_write: a put with KDSM_OP_NOTIFY is a write
	 * like others, and the message behind it only wakes waiters, so the first word may
	 * appear before all else. unsettled: kdsm_settle() does nothing.
	 */
	bool as_write, unsettled;
};

/* A process simulates one cluster at a time. */
static struct sim sim;

static inline uint32_t sim_random(void)
{
	static _Thread_local uint32_t state;

	if (!state)
		state = (uintptr_t)&state >> 4 | 1;
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

/* ---- visibility ---- */

static void sim_store(uint8_t *to, const uint8_t *from, size_t length)
{
	size_t i = 0, stop = sim.tear ? sim_random() % (4 * length + 1) : length + 1;
	uint64_t word;

	/* Release, because a thread that has seen the data may reuse the place. */
	while (i < length)
		if (!sim.tear && length - i >= 8 && !((uintptr_t)&to[i] & 7)) {
			memcpy(&word, &from[i], 8);
			__atomic_store_n((uint64_t *)&to[i], word, __ATOMIC_RELEASE);
			i += 8;
		} else {
			if (i == stop)
				sched_yield();
			__atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
			i++;
		}
}

static void sim_load(uint8_t *to, const uint8_t *from, size_t length)
{
	size_t i, stop = sim.tear ? sim_random() % (4 * length + 1) : length + 1;

	for (i = 0; i < length; i++) {
		if (i == stop)
			sched_yield();
		to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
	}
}

static struct sim_line *sim_line(unsigned int from, unsigned int to, unsigned int queue)
{
	return &sim.lines[(from * SIM_NODES + to) * SIM_QUEUES + queue];
}

static uint8_t *sim_place(const struct sim_piece *piece)
{
	return piece->memory->part[piece->node] + piece->offset;
}

/* The kernel of the target stores the put's first word last, and whole. */
static void sim_take(const struct sim_piece *notice)
{
	uint64_t word;

	if (notice->length) {
		sim_store(sim_place(notice) + 8, notice->data + 8, notice->length - 8);
		memcpy(&word, notice->data, 8);
		__atomic_store_n((uint64_t *)sim_place(notice), word, __ATOMIC_SEQ_CST);
	}
	pthread_cond_broadcast(&sim.notified);
}

/* Take a piece from its line and make it appear. Caller holds sim.lock. */
static void sim_appear(struct sim_line *line, struct sim_piece **link)
{
	struct sim_piece *piece = *link;

	*link = piece->next;
	if (line->last == &piece->next)
		line->last = link;
	if (piece->notice)
		sim_take(piece);
	else
		sim_store(sim_place(piece), piece->data, piece->length);
	free(piece);
}

/*
 * Make all pieces of a line appear up to and including the message *end, or all of them if end
 * is NULL: in a random order, except that messages come in theirs. Caller holds sim.lock.
 */
static void sim_order(struct sim_line *line, const struct sim_piece *end)
{
	struct sim_piece **link;
	bool over = false;

	while (line->first && !over) {
		link = &line->first;
		while (!(*link)->notice && (*link)->next && sim_random() % 4)
			link = &(*link)->next;
		if ((*link)->notice)
			link = &line->first;
		over = *link == end;
		sim_appear(line, link);
	}
}

/* Make a piece appear, and before a message all that was posted before it. */
static void sim_arrive(struct sim_line *line, struct sim_piece **link)
{
	if ((*link)->notice)
		sim_order(line, *link);
	else
		sim_appear(line, link);
}

static bool sim_overlaps(const struct sim_piece *piece, const struct sim_memory *memory,
			 unsigned int node, uint64_t offset, uint64_t length)
{
	return piece->memory == memory && piece->node == node &&
	       piece->offset < offset + length && offset < piece->offset + piece->length;
}

/*
 * Make the pieces appear that overlap a range, of all writers or of one, so that a newer put of
 * the range does not appear before them and its writer reads what it wrote. Caller holds
 * sim.lock.
 */
static void sim_expose(const struct sim_memory *memory, unsigned int from, unsigned int node,
		       uint64_t offset, uint64_t length)
{
	unsigned int writer, queue;
	struct sim_piece **link;
	struct sim_line *line;

	for (writer = 0; writer < sim.nodes; writer++)
		for (queue = 0; queue < SIM_QUEUES; queue++) {
			if (from < sim.nodes && writer != from)
				continue;
			line = sim_line(writer, node, queue);
			link = &line->first;
			while (*link) {
				if (!sim_overlaps(*link, memory, node, offset, length) ||
				    ((*link)->notice && from < sim.nodes)) {
					link = &(*link)->next;
					continue;
				}
				sim_arrive(line, link);
				link = &line->first;
			}
		}
}

/* Mostly some microseconds, now and then milliseconds; a put or message may be at once. */
static uint64_t sim_delay(void)
{
	uint32_t dice = sim_random() % 64;

	if (dice < 16)
		return 0;
	return sim_random() % (dice < 48 ? 20000 : dice < 62 ? 200000 : 3000000);
}

static void sim_post(struct sim_memory *memory, unsigned int from, unsigned int node,
		     unsigned int queue, bool notice, uint64_t offset, const uint8_t *data,
		     uint32_t length)
{
	struct sim_line *line = sim_line(from, node, queue);
	struct sim_piece *piece = malloc(sizeof(*piece) + length);

	piece->next = NULL;
	piece->memory = memory;
	piece->node = node;
	piece->notice = notice;
	piece->due = kdsm_now() + sim_delay();
	piece->offset = offset;
	piece->length = length;
	memcpy(piece->data, data, length);
	*line->last = piece;
	line->last = &piece->next;
}

/* Cut a put into pieces at words of the target. Caller holds sim.lock. */
static void sim_cut(struct sim_memory *memory, unsigned int from, unsigned int queue,
		    const struct kdsm_op *op)
{
	const uint8_t *data = (const uint8_t *)(uintptr_t)op->addr;
	uint64_t offset = op->offset, left = op->length, n, run;

	run = (op->length / SIM_PIECES + 7) & ~7ULL;
	while (left) {
		n = (run ? run : 8) - offset % 8;
		if (n > left)
			n = left;
		sim_post(memory, from, op->node, queue, false, offset, data, n);
		data += n;
		offset += n;
		left -= n;
	}
}

/* Make due pieces appear. Returns when the next one is due. Caller holds sim.lock. */
static uint64_t sim_clock(void)
{
	uint64_t now = kdsm_now(), next = now + 1000000000;
	struct sim_line *line = sim.lines;
	struct sim_piece **link;

	for (; line < sim.lines + SIM_LINES; line++)
		for (link = &line->first; *link; ) {
			if ((*link)->due <= now) {
				/* A message makes all pieces before it appear, too: start again. */
				bool notice = (*link)->notice;

				sim_arrive(line, link);
				if (notice)
					link = &line->first;
				continue;
			}
			if (next > (*link)->due)
				next = (*link)->due;
			link = &(*link)->next;
		}
	return next;
}

static void *sim_bus(void *unused)
{
	struct timespec until;
	uint64_t next, left;

	(void)unused;
	pthread_mutex_lock(&sim.lock);
	while (!sim.stopping) {
		next = sim_clock();
		left = kdsm_now();
		left = next > left ? next - left : 0;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += left % 1000000000;
		until.tv_sec += left / 1000000000 + until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&sim.posted, &sim.lock, &until);
	}
	pthread_mutex_unlock(&sim.lock);
	return NULL;
}

static void sim_put(struct sim_memory *memory, unsigned int from, unsigned int queue,
		    const struct kdsm_op *op)
{
	const uint8_t *data = (const uint8_t *)(uintptr_t)op->addr;
	bool notice = op->flags & KDSM_OP_NOTIFY;

	pthread_mutex_lock(&sim.lock);
	sim_expose(memory, SIM_NODES, op->node, op->offset, op->length);
	if (!notice || sim.as_write)
		sim_cut(memory, from, queue, op);
	if (notice)
		sim_post(memory, from, op->node, queue, true, op->offset, data,
			 sim.as_write ? 0 : op->length);
	sim_clock();
	pthread_cond_signal(&sim.posted);
	pthread_mutex_unlock(&sim.lock);
}

/* The target's kernel takes a message from the connection. */
static void sim_message(unsigned int from, unsigned int node, unsigned int queue)
{
	pthread_mutex_lock(&sim.lock);
	sim_order(sim_line(from, node, queue), NULL);
	pthread_mutex_unlock(&sim.lock);
}

static int sim_settle(struct kdsm *kdsm, const uint64_t *nodes, uint32_t *messages)
{
	unsigned int node, queue;

	*messages = 0;
	for (node = 0; node < sim.nodes; node++) {
		if (!(nodes[node / 64] >> node % 64 & 1) || node == kdsm->node)
			continue;
		if (__atomic_load_n(&sim.dead, __ATOMIC_RELAXED) == node + 1u)
			return -EHOSTDOWN;
		for (queue = 0; queue < SIM_QUEUES && !sim.unsettled; queue++)
			sim_message(kdsm->node, node, queue);
		++*messages;
	}
	return 0;
}

/* Drop what is on its way to a memory. Caller holds sim.lock. */
static void sim_drop(const struct sim_memory *memory)
{
	struct sim_line *line = sim.lines;
	struct sim_piece **link, *piece;

	for (; line < sim.lines + SIM_LINES; line++) {
		link = &line->first;
		while ((piece = *link)) {
			if (piece->memory != memory) {
				link = &piece->next;
				continue;
			}
			*link = piece->next;
			if (line->last == &piece->next)
				line->last = link;
			free(piece);
		}
	}
}

static void sim_notify(void)
{
	pthread_mutex_lock(&sim.lock);
	pthread_cond_broadcast(&sim.notified);
	pthread_mutex_unlock(&sim.lock);
}

/* ---- operations ---- */

static int sim_op(struct kdsm_region *region, struct kdsm_op *op, unsigned int queue)
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
	if (op->flags & KDSM_OP_NOTIFY && (op->offset % 8 || op->length % 8))
		return -EINVAL;
	place = memory->part[op->node] + op->offset;
	if (op->opcode == KDSM_OP_PUT) {
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		sim_put(memory, region->node, queue, op);
		return 0;
	}
	if (op->opcode == KDSM_OP_GET) {
		pthread_mutex_lock(&sim.lock);
		sim_expose(memory, region->node, op->node, op->offset, op->length);
		pthread_mutex_unlock(&sim.lock);
	} else {
		sim_message(region->node, op->node, queue);
	}
	switch (op->opcode) {
	case KDSM_OP_GET:
		sim_load(user, place, op->length);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
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
static int sim_op_or_fault(struct kdsm_region *region, struct kdsm_op *op, unsigned int queue,
			   unsigned int *broken)
{
	int (*fault)(struct kdsm_op *op, bool after);
	int ret;

	fault = __atomic_load_n(&sim.fault, __ATOMIC_ACQUIRE);
	if (!fault)
		return sim_op(region, op, queue);
	ret = *broken & 1u << op->node ? -EIO : fault(op, false);
	if (!ret)
		ret = sim_op(region, op, queue);
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
	unsigned int i, broken = 0, queue = sim_random() % SIM_QUEUES;
	int first = 0;

	kdsm_count(region->kdsm, ops, count);
	kdsm_count_call(region->kdsm);
	if (ns)
		nanosleep(&delay, NULL);
	if (sim.spin)
		sim_spin();
	before = __atomic_load_n(&sim.before, __ATOMIC_ACQUIRE);
	for (i = 0; i < count; i++)
		if (ops[i].flags & KDSM_OP_NOTIFY)
			queue = 0;
	for (i = 0; i < count; i++) {
		if (before)
			before(&ops[i]);
		ops[i].status = sim_op_or_fault(region, &ops[i], queue, &broken);
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
		if (notice->ts >= write->ts && write->block - notice->first < notice->count)
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
	sim_drop(memory);
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
	.wait = sim_wait, .wake = sim_wake, .settle = sim_settle,
	.release = sim_fence_release, .acquire = sim_fence_acquire,
};

static inline void sim_halt(void)
{
	pthread_mutex_lock(&sim.lock);
	sim.stopping = true;
	pthread_cond_signal(&sim.posted);
	pthread_mutex_unlock(&sim.lock);
	pthread_join(sim.bus, NULL);
}

static inline void sim_start(unsigned int nodes)
{
	unsigned int i;

	if (sim.nodes)
		sim_halt();	/* a test failed before it called sim_stop() */
	memset(&sim, 0, sizeof(sim));
	sim.nodes = nodes;
	pthread_mutex_init(&sim.lock, NULL);
	pthread_cond_init(&sim.notified, NULL);
	pthread_cond_init(&sim.posted, NULL);
	for (i = 0; i < SIM_LINES; i++)
		sim.lines[i].last = &sim.lines[i].first;
	sim.as_write = getenv("KDSM_SIM_AS_WRITE");
	sim.unsettled = getenv("KDSM_SIM_UNSETTLED");
	pthread_create(&sim.bus, NULL, sim_bus, NULL);
	for (i = 0; i < nodes; i++) {
		struct kdsm *kdsm = aligned_alloc(_Alignof(struct kdsm), sizeof(*kdsm));

		memset(kdsm, 0, sizeof(*kdsm));
		kdsm->backend = &sim_backend;
		kdsm->fd = -1;
		kdsm->node = i;
		kdsm->nodes = nodes;
		kdsm->domain = KDSM_DOMAIN_SW;
		pthread_mutex_init(&kdsm->lock, NULL);
		pthread_mutex_init(&kdsm->settle_lock, NULL);
		sim.kdsm[i] = kdsm;
	}
}

static inline void sim_stop(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		kdsm_close(sim.kdsm[i]);
	sim_halt();
	sim.nodes = 0;
	pthread_cond_destroy(&sim.posted);
	pthread_cond_destroy(&sim.notified);
	pthread_mutex_destroy(&sim.lock);
}

#endif /* SIM_H */
