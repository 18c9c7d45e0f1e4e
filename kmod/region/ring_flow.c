// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of programs: the way of an operation from the queue of submissions over the fabric to the
 * queue of completions. ring.c has the memory and the files.
 *
 *	entry --copy--> request --batch for a node--> fabric --ended()--> completion
 *
 * The program can write to both queues at any time. The module copies an entry once, checks the
 * copy, and keeps its own head of submissions and tail of completions. It reads the other two words
 * only to learn how much the program wants and has read; a wrong value costs the program its own
 * completions.
 *
 * A request counts as in flight before it is posted, and requests in flight plus unread
 * completions never exceed the entries of the queue. So each completion finds room.
 */
#include <kdsm/uapi.h>
#include <linux/slab.h>

#include "ring.h"

/*
 * Upper bound of the requests of a batch. They complete together, so a larger batch would keep
 * early results back longer; a chain of work requests has at most this many.
 */
#define KDSM_RING_BATCH	32

/* An operation of the program, in pieces that cross no block and no chunk */
struct kdsm_ring_request {
	struct list_head link;
	u64 data;
	u32 bytes;
	u16 node;
	u8 opcode;
	unsigned int count;	/* of pieces */
	struct kdsm_operation pieces[];
};

/* Requests on one node that are posted and complete together */
struct kdsm_ring_batch {
	struct kdsm_batch batch;
	struct kdsm_ring *ring;
	struct list_head link;		/* in ring->batches */
	struct list_head requests;
};

/* ---- completions ---- */

u32 kdsm_ring_unread(const struct kdsm_ring *ring)
{
	u32 unread = READ_ONCE(ring->completion_tail) -
		     READ_ONCE(kdsm_ring_head(ring)->completion_head);

	return min(unread, ring->entries);
}

/* Caller holds ring->lock. The request counts as in flight until after this call. */
static void kdsm_ring_complete(struct kdsm_ring *ring, const struct kdsm_ring_request *request,
			       int status, u64 result)
{
	u32 index = ring->completion_tail & (ring->entries - 1);
	struct kdsm_ring_completion *completion =
		kdsm_ring_at(ring, ring->completions + index * sizeof(*completion));

	*completion = (struct kdsm_ring_completion) {
		.data = request->data,
		.result = result,
		.status = status,
		.opcode = request->opcode,
		.node = request->node,
	};
	WRITE_ONCE(ring->completion_tail, ring->completion_tail + 1);
	/* Pairs with the load of the tail by the program. */
	smp_store_release(&kdsm_ring_head(ring)->completion_tail, ring->completion_tail);
	ring->bytes -= request->bytes;
	WRITE_ONCE(ring->inflight, ring->inflight - 1);
}

static int kdsm_ring_status(const struct kdsm_ring_request *request)
{
	unsigned int i;

	for (i = 0; i < request->count; i++)
		if (request->pieces[i].status)
			return request->pieces[i].status;
	return 0;
}

/* In any context. After the unlock, kdsm_ring_flow_drain() may end and the ring be freed. */
static void kdsm_ring_ended(struct kdsm_batch *batch)
{
	struct kdsm_ring_batch *posted = container_of(batch, struct kdsm_ring_batch, batch);
	struct kdsm_ring *ring = posted->ring;
	struct kdsm_ring_request *request, *next;

	spin_lock_bh(&ring->lock);
	kdsm_batch_finish(batch);
	list_del(&posted->link);
	list_for_each_entry(request, &posted->requests, link)
		kdsm_ring_complete(ring, request, kdsm_ring_status(request),
				   request->pieces[0].result);
	wake_up_all(&ring->waits);
	spin_unlock_bh(&ring->lock);
	list_for_each_entry_safe(request, next, &posted->requests, link)
		kfree(request);
	kfree(posted);
}

static void kdsm_ring_upkeep(struct work_struct *work)
{
	struct kdsm_ring *ring = container_of(to_delayed_work(work), struct kdsm_ring, upkeep);
	struct kdsm_ring_batch *posted;

	spin_lock_bh(&ring->lock);
	list_for_each_entry(posted, &ring->batches, link)
		kdsm_batch_upkeep(&posted->batch);
	if (!list_empty(&ring->batches))
		schedule_delayed_work(&ring->upkeep, KDSM_UPKEEP_EVERY);
	spin_unlock_bh(&ring->lock);
}

/* ---- submissions ---- */

static int kdsm_ring_check(const struct kdsm_ring *ring, const struct kdsm_op *op)
{
	bool has_data = op->opcode == KDSM_OP_GET || op->opcode == KDSM_OP_PUT;

	if (op->flags || (!has_data && op->opcode != KDSM_OP_CAS && op->opcode != KDSM_OP_FAA))
		return -EINVAL;
	if (has_data && (op->addr > ring->buffer_size || op->length > ring->buffer_size - op->addr))
		return -EFAULT;
	return kdsm_op_check(ring->region, ring->may_write, op);
}

/* Length of the piece that begins at this byte of a checked operation */
static u32 kdsm_ring_piece(const struct kdsm_ring *ring, const struct kdsm_op *op, u32 from)
{
	u64 block = (ring->buffer + op->addr + from) % KDSM_RING_BLOCK;
	u64 chunk = (op->offset + from) % KDSM_CHUNK_SIZE;

	if (op->opcode != KDSM_OP_GET && op->opcode != KDSM_OP_PUT)
		return op->length;
	return min3((u64)(op->length - from), KDSM_RING_BLOCK - block, KDSM_CHUNK_SIZE - chunk);
}

/* Cut a checked operation into pieces. NULL without memory. */
static struct kdsm_ring_request *kdsm_ring_cut(const struct kdsm_ring *ring,
					       const struct kdsm_op *op)
{
	struct kdsm_ring_request *request;
	struct kdsm_operation *piece;
	unsigned int count = 0;
	u32 from;

	for (from = 0; from < op->length; from += kdsm_ring_piece(ring, op, from))
		count++;
	request = kzalloc(struct_size(request, pieces, count), GFP_KERNEL_ACCOUNT);
	if (!request)
		return NULL;
	request->count = count;
	for (from = 0, piece = request->pieces; from < op->length; from += piece++->length) {
		piece->opcode = op->opcode;
		piece->node = op->node;
		piece->offset = op->offset + from;
		piece->length = kdsm_ring_piece(ring, op, from);
		piece->operand = op->operand;
		piece->compare = op->compare;
		if (op->opcode == KDSM_OP_GET || op->opcode == KDSM_OP_PUT)
			piece->data = kdsm_ring_at(ring, ring->buffer + op->addr + from);
	}
	return request;
}

/*
 * Upper bounds of the entries and bytes that a call takes. They hold until the end of the call: no
 * other call submits meanwhile, and completions and the program only make more room.
 */
struct kdsm_ring_room {
	u32 requests;
	u64 bytes;
};

static struct kdsm_ring_room kdsm_ring_room(struct kdsm_ring *ring)
{
	struct kdsm_ring_room room;
	u32 used;

	spin_lock_bh(&ring->lock);
	used = min(ring->inflight + kdsm_ring_unread(ring), ring->entries);
	room.requests = ring->entries - used;
	room.bytes = KDSM_MAX_INFLIGHT_BYTES - ring->bytes;
	spin_unlock_bh(&ring->lock);
	return room;
}

static void kdsm_ring_describe(struct kdsm_ring_request *request,
			       const struct kdsm_ring_entry *entry, u32 bytes)
{
	request->data = entry->data;
	request->bytes = bytes;
	request->node = entry->op.node;
	request->opcode = entry->op.opcode;
}

/*
 * Take one entry, and add its request to the list or complete it at once. Returns false, and leaves
 * the entry in the queue, if there is no room for another operation.
 */
static bool kdsm_ring_take(struct kdsm_ring *ring, struct kdsm_ring_room *room,
			   struct list_head *requests)
{
	u32 index = ring->submission_head & (ring->entries - 1);
	struct kdsm_ring_request failed = {}, *request = NULL;
	struct kdsm_ring_entry entry;
	int status;
	u32 bytes;

	memcpy(&entry, kdsm_ring_at(ring, ring->submissions + index * sizeof(entry)),
	       sizeof(entry));
	barrier();	/* the compiler may not load the entry a second time */
	status = kdsm_ring_check(ring, &entry.op);
	bytes = status ? 0 : entry.op.length;
	if (!room->requests || bytes > room->bytes)
		return false;
	room->requests--;
	room->bytes -= bytes;
	ring->submission_head++;
	if (!status)
		request = kdsm_ring_cut(ring, &entry.op);
	if (request) {
		kdsm_ring_describe(request, &entry, bytes);
		list_add_tail(&request->link, requests);
		return true;
	}
	kdsm_ring_describe(&failed, &entry, 0);
	spin_lock_bh(&ring->lock);
	WRITE_ONCE(ring->inflight, ring->inflight + 1);
	kdsm_ring_complete(ring, &failed, status ?: -ENOMEM, 0);
	wake_up_all(&ring->waits);
	spin_unlock_bh(&ring->lock);
	return true;
}

/* Count requests as in flight */
static void kdsm_ring_begin(struct kdsm_ring *ring, const struct list_head *requests)
{
	const struct kdsm_ring_request *request;
	unsigned int count = 0;
	u64 bytes = 0;

	list_for_each_entry(request, requests, link) {
		count++;
		bytes += request->bytes;
	}
	spin_lock_bh(&ring->lock);
	WRITE_ONCE(ring->inflight, ring->inflight + count);
	ring->bytes += bytes;
	spin_unlock_bh(&ring->lock);
}

/* Fail requests that could not be posted */
static void kdsm_ring_fail(struct kdsm_ring *ring, struct list_head *requests, int status)
{
	struct kdsm_ring_request *request, *next;

	spin_lock_bh(&ring->lock);
	list_for_each_entry_safe(request, next, requests, link) {
		kdsm_ring_complete(ring, request, status, 0);
		list_del(&request->link);
		kfree(request);
	}
	wake_up_all(&ring->waits);
	spin_unlock_bh(&ring->lock);
}

/* Post the first request of the list, and later ones on the same node with it */
static void kdsm_ring_post(struct kdsm_ring *ring, struct list_head *requests)
{
	struct kdsm_ring_batch *posted = kzalloc(sizeof(*posted), GFP_KERNEL_ACCOUNT);
	struct kdsm_ring_request *request, *next;
	unsigned int i, count = 0;
	u16 node;

	if (!posted) {
		kdsm_ring_fail(ring, requests, -ENOMEM);
		return;
	}
	kdsm_batch_init(&posted->batch, ring->region->cluster->fabric, ring->region->memory);
	posted->batch.killable = true;
	posted->batch.ended = kdsm_ring_ended;
	posted->ring = ring;
	INIT_LIST_HEAD(&posted->requests);
	node = list_first_entry(requests, struct kdsm_ring_request, link)->node;
	list_for_each_entry_safe(request, next, requests, link) {
		if (request->node != node)
			continue;
		list_move_tail(&request->link, &posted->requests);
		for (i = 0; i < request->count; i++)
			kdsm_batch_add(&posted->batch, &request->pieces[i]);
		if (++count == KDSM_RING_BATCH)
			break;
	}
	spin_lock_bh(&ring->lock);
	list_add_tail(&posted->link, &ring->batches);
	spin_unlock_bh(&ring->lock);
	schedule_delayed_work(&ring->upkeep, KDSM_UPKEEP_EVERY);
	kdsm_batch_post(&posted->batch);
}

static int kdsm_ring_submit(struct kdsm_ring *ring, struct kdsm_ring_enter *args)
{
	struct kdsm_ring_head *head = kdsm_ring_head(ring);
	struct kdsm_ring_room room;
	LIST_HEAD(requests);
	int err = 0;
	u32 queued;

	if (mutex_lock_killable(&ring->submitting))
		return -EINTR;
	/* Pairs with the store of the tail by the program. */
	queued = smp_load_acquire(&head->submission_tail) - ring->submission_head;
	if (queued > ring->entries)
		err = -EINVAL;
	else
		queued = min(queued, args->submit);
	room = kdsm_ring_room(ring);
	while (!err && args->submitted < queued && kdsm_ring_take(ring, &room, &requests))
		args->submitted++;
	kdsm_ring_begin(ring, &requests);
	/* The program may reuse the entries. */
	smp_store_release(&head->submission_head, ring->submission_head);
	while (!list_empty(&requests))
		kdsm_ring_post(ring, &requests);
	mutex_unlock(&ring->submitting);
	return err;
}

/* A wait until so many completions are unread, or no more can come */
struct kdsm_ring_wait {
	const struct kdsm_ring *ring;
	u32 wanted;
};

static bool kdsm_ring_is_ready(const void *what)
{
	const struct kdsm_ring_wait *wait = what;

	return !READ_ONCE(wait->ring->inflight) || kdsm_ring_unread(wait->ring) >= wait->wanted;
}

int kdsm_ring_enter(struct kdsm_ring *ring, struct kdsm_ring_enter *args)
{
	const struct kdsm_ring_wait wait = { ring, min(args->wait, ring->entries) };
	int err = 0;

	if (args->flags)
		return -EINVAL;
	args->submitted = 0;
	if (args->submit)
		err = kdsm_ring_submit(ring, args);
	if (!err && wait.wanted)
		err = kdsm_wait_until(&ring->waits, kdsm_ring_is_ready, &wait, args->timeout);
	args->ready = kdsm_ring_unread(ring);
	return err;
}

/* ---- begin and end ---- */

void kdsm_ring_flow_init(struct kdsm_ring *ring)
{
	mutex_init(&ring->submitting);
	spin_lock_init(&ring->lock);
	INIT_LIST_HEAD(&ring->batches);
	init_waitqueue_head(&ring->waits);
	INIT_DELAYED_WORK(&ring->upkeep, kdsm_ring_upkeep);
}

void kdsm_ring_flow_drain(struct kdsm_ring *ring)
{
	wait_event(ring->waits, !READ_ONCE(ring->inflight));
	/* Wait until kdsm_ring_ended() has left the ring. */
	spin_lock_bh(&ring->lock);
	spin_unlock_bh(&ring->lock);
	cancel_delayed_work_sync(&ring->upkeep);
}
