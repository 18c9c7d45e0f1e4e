// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stealing between nodes: request cells, transfers, results; and waking nodes. The other
 * way of stealing, whose results come as these do, is in task_theft.c.
 *
 * A node has one request cell: CLOSED while none of its workers is busy, OPEN, or who
 * wants a task. A thief makes it OPEN -> request by one remote compare-and-swap, which
 * tells it at once if there is nothing to get. Any worker of the victim's node that
 * comes by (spawn, sync and every wait look at the cell) takes the request out and
 * answers by one put into the thief's transfer words: tasks from its deque or from a
 * colleague's, where it takes them as any local thief does, or nothing. The result of a
 * task is one put into its place in its owner's deque. Nobody but the thief waits. Both
 * puts wake who sleeps on their first word.
 *
 * Accesses to the cell: task.h. The words that are put to are zeroed by the CPU of their
 * node, and only while no put to them is under way: the transfer words when a message
 * has been read, which was all of the put (task_message.c), and no other comes without a
 * request; the place of a task when it is taken, before its thief knows of it.
 *
 * A node whose workers begin to sleep puts into hungry of its neighbours, those whose
 * numbers differ from its own in one bit, and then into their alarm, which busy workers
 * look at. One that has something to steal takes both back and rings the bell of the
 * hungry, who then comes with a request. The alarm is zeroed before hungry is read, and
 * put after it, so nobody is forgotten. Where the number of nodes is no power of two,
 * clearing the highest bit still leads from any node to node 0: work reaches all.
 */
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include "internal.h"

#define CLOSED		0
#define OPEN		1
#define REQUEST		(UINT64_C(1) << 63)

#define CELL_PLACE(tasks) kd_node_place(tasks, offsetof(struct kd_task_node, cells.request))
#define TRANSFER_PLACE(tasks, worker) \
	(kd_shared_place(tasks, worker) + offsetof(struct kd_task_shared, transfer))

#define NAP_MIN		20000	/* ns between looks for an answer */
#define NAP_MAX		500000

static bool alone(const struct kd_worker *w)
{
	return w->tasks->nodes == 1;
}

void kd_task_give_up(struct kd_worker *w, int error, unsigned int node)
{
	kd_task_fail(w->tasks, error == -EHOSTDOWN ? -EOWNERDEAD : error, node);
	kd_task_check(w);
}

/* ---- puts that nobody waits for ---- */

static void complete(struct kd_worker *w, struct kd_task_put *put)
{
	int ret;

	if (!put->used)
		return;
	put->used = false;
	ret = kdsm_complete(w->tasks->region, &put->ticket, KDSM_FOREVER);
	if (ret)
		kd_task_give_up(w, ret, put->op.node);
}

void kd_task_flush(struct kd_worker *w)
{
	struct kd_task_put *put;
	int ret;

	for (put = w->puts; put < w->puts + KD_TASK_PUTS; put++) {
		if (!put->used)
			continue;
		put->used = false;
		ret = kdsm_complete(w->tasks->region, &put->ticket, KDSM_FOREVER);
		if (ret)
			kd_task_fail(w->tasks, ret, put->op.node);
	}
}

/* What is put is copied before this returns. */
static void put(struct kd_worker *w, unsigned int node, uint64_t place, const void *from,
		size_t length, uint8_t flags)
{
	struct kd_task_put *put = &w->puts[w->next_put++ % KD_TASK_PUTS];
	int ret;

	complete(w, put);
	put->op = kdsm_op_put(node, place, from, length);
	put->op.flags = flags;
	ret = kdsm_submit(w->tasks->region, &put->op, 1, &put->ticket);
	put->used = !ret;
	if (ret == -EAGAIN) {
		/* Too many of all threads are on their way: wait for this one. */
		ret = kdsm_vector(w->tasks->region, &put->op, 1);
	}
	if (ret)
		kd_task_give_up(w, ret, node);
}

/* ---- the cell of the own node ---- */

static uint64_t look(const struct kd_worker *w)
{
	return __atomic_load_n(&w->tasks->own->cells.request, __ATOMIC_SEQ_CST);
}

static bool change(struct kd_worker *w, uint64_t from, uint64_t to)
{
	uint64_t former;
	int ret;

	ret = kdsm_cas(w->tasks->region, w->tasks->node, CELL_PLACE(w->tasks), from, to,
		       &former);
	if (ret)
		kd_task_give_up(w, ret, w->tasks->node);
	return former == from;
}

/* ---- the victim's side ---- */

/* Who asks: bits 62..53 the node, 52..43 the worker, 42..32 whom to rob, plus 1. */
struct request {
	unsigned int node;
	uint32_t worker, preferred, sequence;
};

static uint64_t request_word(const struct request *request)
{
	return REQUEST | (uint64_t)request->node << 53 | (uint64_t)request->worker << 43 |
	       (uint64_t)(request->preferred + 1) << 32 | request->sequence;
}

static bool request_read(const struct kd_worker *w, uint64_t word, struct request *request)
{
	request->node = word >> 53 & 0x3ff;
	request->worker = word >> 43 & 0x3ff;
	request->preferred = (word >> 32 & 0x7ff) - 1;
	request->sequence = word;
	return request->node < w->tasks->nodes && request->node != w->tasks->node &&
	       request->worker < w->tasks->node_workers;
}

/* Tasks for a thief, at most KD_TASK_TAKE. */
static uint32_t gather_from(struct kd_worker *w, uint32_t victim, const struct request *request,
			    struct kdsm_task_packed *packed)
{
	uint32_t most = w->tasks->steal == KDSM_STEAL_HALF ? KD_TASK_TAKE : 1;
	struct kdsm_task *first;
	uint32_t count, i;

	first = kd_task_take(w, victim, most, &count);
	if (!first) {
		if (victim != w->number)
			__atomic_store_n(&kd_shared(w->tasks, victim)->attention, 1,
					 __ATOMIC_RELAXED);
		return 0;
	}
	for (i = 0; i < count; i++)
		kd_task_pack(w, first + i, victim,
			     KD_THIEF_OF(request->node, request->worker), &packed[i]);
	return count;
}

static uint32_t gather(struct kd_worker *w, const struct request *request,
		       const struct kdsm_task *end, struct kdsm_task_packed *packed)
{
	uint32_t used = __atomic_load_n(&w->tasks->own->crew.used, __ATOMIC_RELAXED);
	uint32_t victim, count = 0, i;

	if (request->preferred < used)
		count = gather_from(w, request->preferred, request, packed);
	if (!count && !kd_task_offered(w->tasks, w->number))
		kd_task_offer(w, end);
	for (i = 0; i < used && !count; i++) {
		victim = (w->number + i) % used;
		if (kd_task_offered(w->tasks, victim) || victim != w->number)
			count = gather_from(w, victim, request, packed);
	}
	return count;
}

/* Word 0 of a message: words of all of it, tasks, and the sequence of the request. */
struct head {
	uint16_t words;
	uint8_t tasks;
	uint8_t sequence[4];
};

_Static_assert(sizeof(struct head) <= 8, "it has 7 bytes of content");

static size_t packed_size(const struct kdsm_task_packed *packed)
{
	return offsetof(struct kdsm_task_packed, arguments) + packed->origin.bytes;
}

static void answer(struct kd_worker *w, const struct request *request,
		   const struct kdsm_task_packed *packed, uint32_t count)
{
	struct head head = { .words = 1, .tasks = count };
	uint64_t words[KD_TRANSFER_WORDS];
	uint32_t i;

	for (i = 0; i < count; i++) {
		kd_task_encode(words + head.words, &packed[i], packed_size(&packed[i]));
		head.words += kd_task_words(packed_size(&packed[i]));
	}
	memcpy(head.sequence, &request->sequence, sizeof(head.sequence));
	kd_task_encode(words, &head, 7);
	kd_count(&w->counts.answers, 1);
	kd_count(&w->counts.given, count);
	put(w, request->node, TRANSFER_PLACE(w->tasks, request->worker), words,
	    head.words * sizeof(*words), KDSM_OP_NOTIFY);
}

static void serve(struct kd_worker *w, uint64_t word, const struct kdsm_task *end)
{
	struct kdsm_task_packed packed[KD_TASK_TAKE];
	struct request request;

	/* One of those who see it does it. */
	if (!change(w, word, OPEN))
		return;
	if (request_read(w, word, &request))
		answer(w, &request, packed, gather(w, &request, end, packed));
}

static unsigned int neighbour(const struct kdsm_tasks *tasks, unsigned int line)
{
	return tasks->node ^ 1u << line;
}

/* Ring the bells of neighbours that are hungry, if there is something for them. */
static void poke(struct kd_worker *w, const struct kdsm_task *end)
{
	struct kdsm_tasks *tasks = w->tasks;
	unsigned int line;
	uint64_t value;

	if (!kd_task_offered(tasks, w->number) && end <= w->fast.split)
		return;
	__atomic_exchange_n(&tasks->own->cells.alarm, 0, __ATOMIC_SEQ_CST);
	for (line = 0; line < KD_TASK_LINES && neighbour(tasks, line) < KDSM_MAX_NODES; line++) {
		if (neighbour(tasks, line) >= tasks->nodes ||
		    !__atomic_exchange_n(&tasks->own->hungry[line], 0, __ATOMIC_SEQ_CST))
			continue;
		/* Who asks the kernel finds what is public alone. */
		if (!kd_task_offered(tasks, w->number))
			kd_task_offer(w, end);
		/* Other than all before. */
		value = (kdsm_now() & ~(uint64_t)KD_BELL_NODE) | tasks->node;
		kd_count(&w->counts.pokes, 1);
		put(w, neighbour(tasks, line),
		    kd_node_place(tasks, offsetof(struct kd_task_node, bell)), &value,
		    sizeof(value), KDSM_OP_NOTIFY);
	}
}

void kd_task_communicate(struct kd_worker *w, const struct kdsm_task *end)
{
	uint64_t word;

	if (alone(w))
		return;
	word = look(w);
	if (word & REQUEST)
		serve(w, word, end);
	if (__atomic_load_n(&w->tasks->own->cells.alarm, __ATOMIC_RELAXED))
		poke(w, end);
}

void kd_task_busy(struct kd_worker *w)
{
	if (alone(w))
		return;
	__atomic_fetch_add(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST);
	if (look(w) == CLOSED)
		change(w, CLOSED, OPEN);
}

static void close_cell(struct kd_worker *w)
{
	struct request request;
	uint64_t word;

	do {
		word = look(w);
	} while (word != CLOSED && !change(w, word, CLOSED));
	if ((word & REQUEST) && request_read(w, word, &request))
		answer(w, &request, NULL, 0);
}

static bool anybody_busy(const struct kd_worker *w)
{
	return __atomic_load_n(&w->tasks->own->crew.busy, __ATOMIC_SEQ_CST);
}

/*
 * Who comes to be busy says so before it looks at the cell, and who closes the cell looks
 * for that afterwards: it does not stay closed while somebody is busy. Who opens it for
 * another looks whether that one is still busy: it may have found the cell closed as it
 * left. So it does not stay open, for a request that nobody answers, either.
 * tests/spin/task-cell.pml is a model of it.
 */
void kd_task_idle(struct kd_worker *w)
{
	if (alone(w) || __atomic_sub_fetch(&w->tasks->own->crew.busy, 1, __ATOMIC_SEQ_CST))
		return;
	do {
		close_cell(w);
		if (!anybody_busy(w))
			return;
		change(w, CLOSED, OPEN);
	} while (!anybody_busy(w));
}

void kd_task_hungry(struct kd_worker *w)
{
	struct kdsm_tasks *tasks = w->tasks;
	const uint8_t one[8] = { 1 };
	unsigned int line;
	struct kdsm_op ops[2 * KD_TASK_LINES];
	unsigned int count = 0;
	int ret;

	for (line = 0; line < KD_TASK_LINES; line++) {
		if (neighbour(tasks, line) >= tasks->nodes)
			continue;
		ops[count++] = kdsm_op_put(neighbour(tasks, line),
					   kd_node_place(tasks, offsetof(struct kd_task_node,
									 hungry[line])),
					   one, sizeof(one));
		/* After the one before. */
		ops[count] = kdsm_op_put(neighbour(tasks, line),
					 kd_node_place(tasks, offsetof(struct kd_task_node,
								       cells.alarm)),
					 one, sizeof(one));
		ops[count++].flags = KDSM_OP_NOTIFY;
	}
	kd_count(&w->counts.hungry, count);
	ret = count ? kdsm_vector(tasks->region, ops, count) : 0;
	/* Not here: the caller counts as a sleeper. It finds out. */
	if (ret)
		kd_task_fail(tasks, ret == -EHOSTDOWN ? -EOWNERDEAD : ret, tasks->node);
}

/* ---- the thief's side ---- */

bool kd_task_is_sane(const struct kd_worker *w, const struct kdsm_task_origin *origin)
{
	const struct kdsm_tasks *tasks = w->tasks;
	const struct kdsm_task_type *type = kd_task_type(origin->type);

	return type && type->arguments == origin->bytes && origin->bytes <= KDSM_TASK_BYTES &&
	       origin->node < tasks->nodes && origin->worker < tasks->node_workers &&
	       origin->slot < tasks->deque;
}

static int unpack(struct kd_worker *w, const uint64_t *words, unsigned int left,
		  struct kdsm_task_packed *packed, unsigned int count)
{
	const size_t fixed = offsetof(struct kdsm_task_packed, arguments);

	for (; count; count--, packed++) {
		if (left < kd_task_words(fixed))
			return -EPROTO;
		kd_task_decode(packed, words, fixed);
		if (!kd_task_is_sane(w, &packed->origin) ||
		    left < kd_task_words(packed_size(packed)))
			return -EPROTO;
		kd_task_decode(packed, words, packed_size(packed));
		words += kd_task_words(packed_size(packed));
		left -= kd_task_words(packed_size(packed));
	}
	return 0;
}

/* The number of tasks of an answer that is there, or -EAGAIN, or what is wrong with it. */
static int receive(struct kd_worker *w, struct kdsm_task_packed *packed)
{
	uint64_t *transfer = w->shared->transfer;
	uint64_t words[KD_TRANSFER_WORDS];
	struct head head;
	unsigned int i;
	int ret;

	if (!kd_task_arrived(words, transfer, 1))
		return -EAGAIN;
	kd_task_decode(&head, words, 7);
	if (!head.words || head.words > KD_TRANSFER_WORDS || head.tasks > KD_TASK_TAKE ||
	    memcmp(head.sequence, &w->sequence, sizeof(head.sequence)))
		return -EPROTO;
	if (!kd_task_arrived(words, transfer, head.words))
		return -EAGAIN;
	ret = unpack(w, words + 1, head.words - 1, packed, head.tasks);
	for (i = 0; i < head.words; i++)
		__atomic_store_n(&transfer[i], 0, __ATOMIC_RELAXED);
	return ret ? ret : head.tasks;
}

/* It serves others meanwhile, who may wait for it as it does for them. */
static int wait_for_answer(struct kd_worker *w, const struct kdsm_task *end,
			   struct kdsm_task_packed *packed)
{
	uint64_t place = TRANSFER_PLACE(w->tasks, w->number), nap = NAP_MIN;
	unsigned int tries;
	int ret;

	for (tries = 0; (ret = receive(w, packed)) == -EAGAIN; tries++) {
		kd_task_check(w);
		kd_task_communicate(w, end);
		if (tries < 64) {
			kd_task_relax(tries);
			continue;
		}
		/* The notice comes with the last of it; the first may be seen before. */
		if (__atomic_load_n(&w->shared->transfer[0], __ATOMIC_RELAXED)) {
			sched_yield();
			continue;
		}
		kdsm_wait(w->tasks->region, place, 0, nap);
		if (nap < NAP_MAX)
			nap *= 2;
	}
	return ret;
}

unsigned int kd_task_request(struct kd_worker *w, struct kdsm_task *head, unsigned int node,
			     uint32_t preferred, struct kdsm_task_packed *packed)
{
	struct request request = { w->tasks->node, w->number, preferred, ++w->sequence };
	uint64_t former;
	int ret;

	kd_count(&w->counts.requests, 1);
	ret = kdsm_cas(w->tasks->region, node, CELL_PLACE(w->tasks), OPEN,
		       request_word(&request), &former);
	if (ret)
		kd_task_give_up(w, ret, node);
	if (former != OPEN) {
		kd_count(&w->counts.refused, 1);
		return 0;
	}
	ret = wait_for_answer(w, head, packed);
	if (ret < 0)
		kd_task_give_up(w, ret, node);
	if (!ret)
		kd_count(&w->counts.empty, 1);
	return ret;
}

/* ---- results ---- */

_Static_assert(offsetof(struct kdsm_task, bell) + 8 == offsetof(struct kdsm_task, data),
	       "a result is one put");

bool kd_task_result_came(struct kd_worker *w, struct kdsm_task *task)
{
	const struct kdsm_task_type *type = kd_task_type(task->type);
	uint64_t words[1 + sizeof(task->data) / 8];

	if (!type) {
		kd_task_give_up(w, -EPROTO, w->tasks->node);
		return false;
	}
	/* The first byte of the bell is not zero, either, when it was rung on this node. */
	if (!kd_task_arrived(words, &task->bell, 1 + kd_task_words(type->result)) ||
	    words[0] != KD_RESULT_BELL)
		return false;
	kd_task_decode(task->data, words + 1, type->result);
	return true;
}

void kd_task_send_result(struct kd_worker *w, const struct kdsm_task_origin *origin,
			 const struct kdsm_task *task)
{
	const struct kdsm_task_type *type = kd_task_type(origin->type);
	uint64_t words[1 + sizeof(task->data) / 8] = { KD_RESULT_BELL };
	uint64_t place = kd_slot_place(w->tasks, origin->worker, origin->slot) +
			 offsetof(struct kdsm_task, bell);
	unsigned int count = 1 + kd_task_words(type->result);

	kd_task_encode(words + 1, task->data, type->result);
	if (origin->node == w->tasks->node) {
		/* It came back. Its owner waits for a result from elsewhere. */
		while (count--)
			__atomic_store_n(kdsm_word(w->tasks->region, place) + count,
					 words[count], __ATOMIC_SEQ_CST);
		w->tasks->region->backend->wake(w->tasks->region, place);
		return;
	}
	kd_count(&w->counts.results, 1);
	put(w, origin->node, place, words, count * sizeof(*words), KDSM_OP_NOTIFY);
}
