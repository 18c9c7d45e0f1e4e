// SPDX-License-Identifier: GPL-2.0
/*
 * Operations of programs on partitioned regions: checking them, cutting them into segments
 * for the fabric, returning their results, and waiting for words. All data goes through
 * buffers of the kernel. So the module never pins memory of programs, a program may die at
 * any time, and the data of a put is fixed when the put is submitted.
 */
#include <kdsm/uapi_table.h>
#include <kdsm/uapi_task.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "internal.h"

/* Largest data of a segment that needs no allocation of its own, in bytes */
#define KDSM_INLINE_DATA	64
/* Segments in one allocation, which take about a page */
#define KDSM_SPARES		16U

/* A piece of a program's operation, inside one chunk */
struct kdsm_segment {
	struct list_head link;
	struct kdsm_operation op;
	unsigned int index;		/* of the program's operation */
	u64 address;			/* of the segment's bytes in user memory */
	u8 data[KDSM_INLINE_DATA];
};

struct kdsm_spares {
	struct kdsm_spares *next;
	unsigned int left;		/* segments that are not in use */
	struct kdsm_segment segments[];
};

/* All segments are in memory of kmalloc(), because their data is mapped for the device. */
struct kdsm_submission {
	struct list_head link;		/* on submissions->list */
	u64 ticket;
	bool busy;			/* a task posts or completes the submission */
	u64 user_ops;			/* user address of the array of struct kdsm_op */
	u64 bytes;			/* of all operations */
	unsigned int count;		/* of operations */
	unsigned int room;		/* in status */
	struct list_head segments;
	struct kdsm_batch batch;
	struct kdsm_spares *spares;
	struct kdsm_segment first;	/* saves most submissions an allocation */
	s32 status[];			/* of each operation */
};

void kdsm_submissions_init(struct kdsm_submissions *submissions,
			   struct kdsm_region *region, bool may_write)
{
	submissions->region = region;
	submissions->may_write = may_write;
	spin_lock_init(&submissions->lock);
	INIT_LIST_HEAD(&submissions->list);
}

/* ---- segments ---- */

/* The segment itself stays until the submission is freed. */
static void kdsm_segment_free(struct kdsm_segment *segment)
{
	if (segment->op.data != segment->data)
		kfree(segment->op.data);
}

/* Most operations have one segment: allocate those of the next operations together. */
static struct kdsm_segment *kdsm_segment_new(struct kdsm_submission *submission)
{
	struct kdsm_spares *spares = submission->spares;
	unsigned int left;

	if (!submission->first.op.length)
		return &submission->first;
	if (!spares || !spares->left) {
		left = min(submission->room - submission->count, KDSM_SPARES);
		spares = kzalloc(struct_size(spares, segments, left), GFP_KERNEL_ACCOUNT);
		if (!spares)
			return NULL;
		spares->left = left;
		spares->next = submission->spares;
		submission->spares = spares;
	}
	return &spares->segments[--spares->left];
}

/* Allocate a segment for up to left bytes at offset, for fewer bytes if memory is short */
static struct kdsm_segment *kdsm_segment_alloc(struct kdsm_submission *submission,
					       u64 offset, unsigned int left)
{
	struct kdsm_segment *segment = kdsm_segment_new(submission);
	unsigned int length;
	u64 chunk_left = KDSM_CHUNK_SIZE - (offset & (KDSM_CHUNK_SIZE - 1));

	if (!segment)
		return NULL;
	length = min3((u64)left, chunk_left, (u64)KDSM_SEGMENT_MAX);
	if (length <= KDSM_INLINE_DATA) {
		segment->op.data = segment->data;
	} else {
		for (;;) {
			segment->op.data = kmalloc(length, GFP_KERNEL_ACCOUNT |
						   __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
			if (segment->op.data || length <= PAGE_SIZE)
				break;
			length /= 2;
		}
		if (!segment->op.data)
			return NULL;
	}
	segment->op.length = length;
	segment->op.offset = offset;
	return segment;
}

/* Whether addr points to a struct that describes the operation, instead of to plain data */
static bool kdsm_op_is_struct(const struct kdsm_op *op)
{
	return op->opcode == KDSM_OP_FIND || op->opcode == KDSM_OP_STEAL;
}

int kdsm_op_check(const struct kdsm_region *region, bool may_write, const struct kdsm_op *op)
{
	bool is_atomic = op->opcode == KDSM_OP_CAS || op->opcode == KDSM_OP_FAA;

	if (op->opcode < KDSM_OP_GET || op->opcode > KDSM_OP_STEAL || op->reserved ||
	    op->node >= region->nodes)
		return -EINVAL;
	if (op->flags & ~(op->opcode == KDSM_OP_PUT ? KDSM_OP_NOTIFY : 0))
		return -EINVAL;
	if (!op->length || op->length > KDSM_MAX_OP_LENGTH)
		return -EINVAL;
	if (is_atomic && (op->length != 8 || op->offset % 8))
		return -EINVAL;
	if (op->flags & KDSM_OP_NOTIFY && (op->length % 8 || op->offset % 8))
		return -EINVAL;
	if (op->opcode == KDSM_OP_FIND && op->length != sizeof(struct kdsm_find))
		return -EINVAL;
	if (op->opcode == KDSM_OP_STEAL && (op->length < kdsm_theft_size(1) ||
					    op->length > kdsm_theft_size(KDSM_THEFT_MOST)))
		return -EINVAL;
	if (!kdsm_op_is_struct(op) &&
	    (op->offset >= region->part_size || op->length > region->part_size - op->offset))
		return -ERANGE;
	if (op->opcode != KDSM_OP_GET && !may_write)
		return -EACCES;
	return 0;
}

static int kdsm_struct_check(const struct kdsm_op *op, const void *data, u64 part_size)
{
	const struct kdsm_theft *theft = data;
	int err;

	if (op->opcode == KDSM_OP_FIND)
		return kdsm_find_check(data, op->offset, part_size);
	err = kdsm_theft_check(theft, op->offset, part_size);
	/* The program's struct must have room for all tasks that the theft may take */
	return err ? err : op->length == kdsm_theft_size(theft->most) ? 0 : -EINVAL;
}

/* Append an operation that a struct describes; such an operation is never cut */
static int kdsm_struct_append(struct kdsm_submission *submission, unsigned int index,
			      const struct kdsm_op *op, u64 part_size)
{
	struct kdsm_segment *segment = kdsm_segment_alloc(submission, 0, op->length);
	int err;

	if (!segment)
		return -ENOMEM;
	segment->index = index;
	segment->address = op->addr;
	segment->op.opcode = op->opcode;
	segment->op.node = op->node;
	segment->op.offset = op->offset;
	err = -EFAULT;
	if (!copy_from_user(segment->op.data, u64_to_user_ptr(op->addr), op->length))
		err = kdsm_struct_check(op, segment->op.data, part_size);
	if (err) {
		kdsm_segment_free(segment);
		return err;
	}
	kdsm_batch_add(&submission->batch, &segment->op);
	list_add_tail(&segment->link, &submission->segments);
	submission->bytes += op->length;
	return 0;
}

/* Cut bytes from..to-1 of an operation into segments and add them to the list */
static int kdsm_op_cut(struct kdsm_submission *submission, unsigned int index,
		       const struct kdsm_op *op, unsigned int from, unsigned int to,
		       struct list_head *segments)
{
	struct kdsm_segment *segment;

	for (; from < to; from += segment->op.length) {
		segment = kdsm_segment_alloc(submission, op->offset + from, to - from);
		if (!segment)
			return -ENOMEM;
		list_add_tail(&segment->link, segments);
		segment->index = index;
		segment->address = op->addr + from;
		segment->op.opcode = op->opcode;
		segment->op.node = op->node;
		segment->op.operand = op->operand;
		segment->op.compare = op->compare;
		if (op->opcode == KDSM_OP_PUT &&
		    copy_from_user(segment->op.data, u64_to_user_ptr(segment->address),
				   segment->op.length))
			return -EFAULT;
	}
	return 0;
}

/* Length of the segment of a notifying put that holds its first word and comes last */
static unsigned int kdsm_op_head(const struct kdsm_op *op)
{
	u64 chunk_left = KDSM_CHUNK_SIZE - (op->offset & (KDSM_CHUNK_SIZE - 1));

	return min3((u64)op->length, chunk_left, (u64)KDSM_PUT_ROOM);
}

/*
 * Cut one operation and append its segments. The returned error becomes the operation's
 * status.
 */
static int kdsm_op_append(struct kdsm_submission *submission, unsigned int index,
			  const struct kdsm_op *op)
{
	unsigned int head = op->flags & KDSM_OP_NOTIFY ? kdsm_op_head(op) : 0;
	struct kdsm_segment *segment;
	LIST_HEAD(segments);
	int err;

	err = kdsm_op_cut(submission, index, op, head, op->length, &segments) ?:
	      kdsm_op_cut(submission, index, op, 0, head, &segments);
	if (err)
		goto free;
	if (head) {
		segment = list_last_entry(&segments, struct kdsm_segment, link);
		segment->op.notify = true;
	}
	list_for_each_entry(segment, &segments, link)
		kdsm_batch_add(&submission->batch, &segment->op);
	list_splice_tail(&segments, &submission->segments);
	submission->bytes += op->length;
	return 0;

free:
	list_for_each_entry(segment, &segments, link)
		kdsm_segment_free(segment);
	return err;
}

/* ---- submissions ---- */

/*
 * The puts of one call so far, by node: a put with notify takes effect after all of them and, if
 * one failed, not at all. The fabric sees to it for the operations of one batch. This struct is
 * for puts that are in no batch, because they failed before, or in an earlier one.
 */
struct kdsm_earlier {
	DECLARE_BITMAP(puts, KDSM_MAX_NODES);	/* in earlier batches of the call */
	DECLARE_BITMAP(failed, KDSM_MAX_NODES);
	int status;			/* of the last put that failed */
};

static void kdsm_earlier_failed(struct kdsm_earlier *earlier, unsigned int node, int status)
{
	__set_bit(node, earlier->failed);
	earlier->status = status;
}

/* The status of a checked operation that may not take effect because of earlier puts, or 0 */
static int kdsm_earlier_check(const struct kdsm_earlier *earlier, const struct kdsm_op *op)
{
	return op->flags & KDSM_OP_NOTIFY && test_bit(op->node, earlier->failed) ?
	       earlier->status : 0;
}

static void kdsm_submission_free(struct kdsm_submission *submission)
{
	struct kdsm_segment *segment;
	struct kdsm_spares *spares;

	list_for_each_entry(segment, &submission->segments, link)
		kdsm_segment_free(segment);
	while ((spares = submission->spares)) {
		submission->spares = spares->next;
		kfree(spares);
	}
	kfree(submission);
}

/*
 * Make a submission of the first operations at user_ops: at most count operations, which have
 * at most KDSM_MAX_INFLIGHT_BYTES in total, but at least one operation.
 */
static struct kdsm_submission *kdsm_submission_create(struct kdsm_submissions *submissions,
						      u64 user_ops, unsigned int count,
						      struct kdsm_earlier *earlier)
{
	struct kdsm_region *region = submissions->region;
	struct kdsm_op __user *from = u64_to_user_ptr(user_ops);
	struct kdsm_submission *submission;
	struct kdsm_op op;
	int status;

	submission = kzalloc(struct_size(submission, status, count), GFP_KERNEL_ACCOUNT);
	if (!submission)
		return ERR_PTR(-ENOMEM);
	submission->room = count;
	submission->user_ops = user_ops;
	INIT_LIST_HEAD(&submission->segments);
	kdsm_batch_init(&submission->batch, region->cluster->fabric, region->memory);
	submission->batch.killable = true;
	while (submission->count < count) {
		if (copy_from_user(&op, from + submission->count, sizeof(op))) {
			kdsm_submission_free(submission);
			return ERR_PTR(-EFAULT);
		}
		status = kdsm_op_check(region, submissions->may_write, &op) ?:
			 kdsm_earlier_check(earlier, &op);
		if (!status) {
			if (submission->bytes &&
			    submission->bytes + op.length > KDSM_MAX_INFLIGHT_BYTES)
				break;
			status = kdsm_op_is_struct(&op) ?
				 kdsm_struct_append(submission, submission->count, &op,
						    region->part_size) :
				 kdsm_op_append(submission, submission->count, &op);
		}
		if (status && op.opcode == KDSM_OP_PUT && op.node < region->nodes)
			kdsm_earlier_failed(earlier, op.node, status);
		submission->status[submission->count++] = status;
	}
	return submission;
}

/* Return the results of a finished submission to the program. Returns the first error, or 0. */
static int kdsm_submission_collect(struct kdsm_submission *submission)
{
	struct kdsm_op __user *ops = u64_to_user_ptr(submission->user_ops);
	struct kdsm_segment *segment;
	unsigned int i;
	s32 *status;
	int err = 0;

	kdsm_batch_finish(&submission->batch);
	list_for_each_entry(segment, &submission->segments, link) {
		struct kdsm_operation *op = &segment->op;

		status = &submission->status[segment->index];
		if (*status)
			continue;
		*status = op->status;
		if (op->status)
			continue;
		if (op->opcode == KDSM_OP_GET || op->opcode == KDSM_OP_FIND ||
		    op->opcode == KDSM_OP_STEAL) {
			if (copy_to_user(u64_to_user_ptr(segment->address), op->data,
					 op->length))
				*status = -EFAULT;
		} else if (op->opcode != KDSM_OP_PUT) {
			if (put_user(op->result, &ops[segment->index].result))
				*status = -EFAULT;
		}
	}
	for (i = 0; i < submission->count; i++) {
		if (put_user(submission->status[i], &ops[i].status) && !err)
			err = -EFAULT;
		if (submission->status[i] && !err)
			err = submission->status[i];
	}
	return err;
}

static void kdsm_submissions_add(struct kdsm_submissions *submissions,
				 struct kdsm_submission *submission)
{
	list_add_tail(&submission->link, &submissions->list);
	submissions->count++;
	submissions->bytes += submission->bytes;
	if (!++submissions->last_ticket)
		submissions->last_ticket = 1;
	submission->ticket = submissions->last_ticket;
}

static void kdsm_submissions_remove(struct kdsm_submissions *submissions,
				    struct kdsm_submission *submission)
{
	spin_lock(&submissions->lock);
	list_del(&submission->link);
	submissions->count--;
	submissions->bytes -= submission->bytes;
	spin_unlock(&submissions->lock);
}

void kdsm_submissions_drain(struct kdsm_submissions *submissions)
{
	struct kdsm_submission *submission, *next;

	list_for_each_entry_safe(submission, next, &submissions->list, link) {
		kdsm_batch_wait(&submission->batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
		kdsm_batch_finish(&submission->batch);
		kdsm_submissions_remove(submissions, submission);
		kdsm_submission_free(submission);
	}
}

/* Add the puts of a finished submission */
static void kdsm_earlier_add(struct kdsm_earlier *earlier,
			     const struct kdsm_submission *submission)
{
	const struct kdsm_segment *segment;

	list_for_each_entry(segment, &submission->segments, link) {
		if (segment->op.opcode != KDSM_OP_PUT)
			continue;
		__set_bit(segment->op.node, earlier->puts);
		if (segment->op.status)
			kdsm_earlier_failed(earlier, segment->op.node, segment->op.status);
	}
}

/*
 * Wait until the nodes see the puts so far: the next batch may use other connections. If a node
 * does not answer, it counts as one where a put failed.
 */
static void kdsm_earlier_settle(struct kdsm_earlier *earlier, struct kdsm_fabric *fabric)
{
	u32 messages;
	int err;

	err = kdsm_fabric_settle(fabric, earlier->puts, &messages);
	if (err) {
		bitmap_or(earlier->failed, earlier->failed, earlier->puts, KDSM_MAX_NODES);
		earlier->status = err;
	}
	bitmap_zero(earlier->puts, KDSM_MAX_NODES);
}

/* Post the operations and wait for them, KDSM_MAX_INFLIGHT_BYTES at a time */
static int kdsm_submit_wait(struct kdsm_submissions *submissions,
			    const struct kdsm_submit *args)
{
	struct kdsm_submission *submission;
	struct kdsm_earlier earlier = { };
	unsigned int done = 0;
	int err, first = 0;

	while (done < args->count) {
		if (done)
			kdsm_earlier_settle(&earlier, submissions->region->cluster->fabric);
		submission = kdsm_submission_create(submissions,
						    args->ops + done * sizeof(struct kdsm_op),
						    args->count - done, &earlier);
		if (IS_ERR(submission))
			return PTR_ERR(submission);
		done += submission->count;
		kdsm_batch_post(&submission->batch);
		err = kdsm_batch_wait(&submission->batch, KDSM_NO_TIMEOUT, TASK_KILLABLE);
		if (err) {
			/* The task is dying. The close of the file waits for the submission. */
			spin_lock(&submissions->lock);
			submission->busy = true;
			kdsm_submissions_add(submissions, submission);
			spin_unlock(&submissions->lock);
			return -EINTR;
		}
		err = kdsm_submission_collect(submission);
		kdsm_earlier_add(&earlier, submission);
		kdsm_submission_free(submission);
		if (!first)
			first = err;
	}
	return first;
}

static int kdsm_submit_ticket(struct kdsm_submissions *submissions,
			      struct kdsm_submit *args)
{
	struct kdsm_submission *submission;
	struct kdsm_earlier earlier = { };
	int err = 0;

	submission = kdsm_submission_create(submissions, args->ops, args->count, &earlier);
	if (IS_ERR(submission))
		return PTR_ERR(submission);
	spin_lock(&submissions->lock);
	if (submission->count < args->count)
		err = -E2BIG;
	else if (submissions->count >= KDSM_MAX_TICKETS ||
		 submissions->bytes + submission->bytes > KDSM_MAX_INFLIGHT_BYTES)
		err = -EAGAIN;
	else
		kdsm_submissions_add(submissions, submission);
	/* Keep other tasks from completing the submission before it is posted */
	submission->busy = true;
	spin_unlock(&submissions->lock);
	if (err) {
		kdsm_submission_free(submission);
		return err;
	}
	kdsm_batch_post(&submission->batch);
	args->ticket = submission->ticket;
	spin_lock(&submissions->lock);
	submission->busy = false;
	spin_unlock(&submissions->lock);
	return 0;
}

int kdsm_pgas_submit(struct kdsm_submissions *submissions, struct kdsm_submit *args)
{
	if (args->flags & ~KDSM_SUBMIT_WAIT || args->reserved || !args->count ||
	    args->count > KDSM_MAX_OPS)
		return -EINVAL;
	if (args->flags & KDSM_SUBMIT_WAIT)
		return kdsm_submit_wait(submissions, args);
	return kdsm_submit_ticket(submissions, args);
}

int kdsm_pgas_complete(struct kdsm_submissions *submissions,
		       const struct kdsm_complete *args)
{
	struct kdsm_submission *submission = NULL, *other;
	int err = -ENOENT;

	if (args->flags)
		return -EINVAL;
	spin_lock(&submissions->lock);
	list_for_each_entry(other, &submissions->list, link) {
		if (other->ticket != args->ticket)
			continue;
		err = other->busy ? -EBUSY : 0;
		submission = other;
		break;
	}
	if (!err)
		submission->busy = true;
	spin_unlock(&submissions->lock);
	if (err)
		return err;

	err = kdsm_batch_wait(&submission->batch, args->timeout, TASK_INTERRUPTIBLE);
	if (err) {
		spin_lock(&submissions->lock);
		submission->busy = false;
		spin_unlock(&submissions->lock);
		return err == -ERESTARTSYS ? -EINTR : err;
	}
	kdsm_submissions_remove(submissions, submission);
	err = kdsm_submission_collect(submission);
	kdsm_submission_free(submission);
	return err;
}

/* ---- words ---- */

/* Return the address of a word of the own part, or ERR_PTR() */
static u64 *kdsm_pgas_word(struct kdsm_region *region, u64 offset)
{
	struct page *page;

	if (offset % 8)
		return ERR_PTR(-EINVAL);
	if (offset >= region->part_size)
		return ERR_PTR(-ERANGE);
	page = kdsm_memory_page(region->memory, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return ERR_CAST(page);
	return page_address(page) + offset_in_page(offset);
}

int kdsm_wait_until(wait_queue_head_t *waits, bool (*done)(const void *what), const void *what,
		    u64 timeout)
{
	int err;

	if (timeout >= KTIME_MAX)
		return wait_event_interruptible(*waits, done(what)) ? -EINTR : 0;
	/* The race is the kernel's: the macro looks whether the timer has set a plain pointer. */
	err = data_race(wait_event_interruptible_hrtimeout(*waits, done(what),
							   ns_to_ktime(timeout)));
	if (err == -ETIME)
		return -ETIMEDOUT;
	return err ? -EINTR : 0;
}

/* A wait while a word has a value */
struct kdsm_word_wait {
	u64 *word;
	u64 value;
};

static bool kdsm_pgas_differs(const void *what)
{
	const struct kdsm_word_wait *wait = what;

	/* Pairs with smp_wmb() in kdsm_memory_announce(). */
	return smp_load_acquire(wait->word) != wait->value;
}

int kdsm_pgas_wait(struct kdsm_region *region, const struct kdsm_wait *args)
{
	const struct kdsm_word_wait wait = {
		.word = kdsm_pgas_word(region, args->offset),
		.value = args->value,
	};

	if (args->flags)
		return -EINVAL;
	if (IS_ERR(wait.word))
		return PTR_ERR(wait.word);
	return kdsm_wait_until(kdsm_region_waits(region, args->offset), kdsm_pgas_differs, &wait,
			       args->timeout);
}

int kdsm_pgas_wake(struct kdsm_region *region, const struct kdsm_wake *args)
{
	wait_queue_head_t *waits;

	if (args->flags || args->offset % 8)
		return -EINVAL;
	if (args->offset >= region->part_size)
		return -ERANGE;
	waits = kdsm_region_waits(region, args->offset);
	/*
	 * wq_has_sleeper() orders the program's store before the check for sleepers. Pairs with
	 * the barrier of prepare_to_wait_event() in kdsm_pgas_wait().
	 */
	if (wq_has_sleeper(waits))
		wake_up_all(waits);
	return 0;
}
