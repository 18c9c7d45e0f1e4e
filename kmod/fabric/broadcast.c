// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to several nodes in parallel, and requests whose sender may stop waiting. A worker sends
 * to each node and waits for its reply, because a message may have to connect first, which can take
 * seconds. message.c has the messages.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "internal.h"

/* Upper bound of the requests of all broadcasts that are in flight together */
#define KDSM_SENDERS	512

/* A request to one node */
struct kdsm_sending {
	struct work_struct work;
	struct kdsm_broadcast *broadcast;
	unsigned int node;
	int status;		/* of the reply; -ETIMEDOUT until the request ended */
	struct kdsm_reply *reply;	/* NULL: the sender wants the status only */
};

struct kdsm_broadcast {
	struct kdsm_fabric *fabric;
	enum kdsm_message_type type;
	unsigned int length;		/* of data, in bytes */
	u8 data[KDSM_MESSAGE_ROOM];
	refcount_t references;		/* one of the sender, one of each request in flight */
	atomic_t pending;		/* requests in flight */
	struct completion done;		/* pending is 0 */
	struct kdsm_reply *replies;	/* one for each request; NULL: none are wanted */
	unsigned int count;
	struct kdsm_sending sendings[];
};

int kdsm_broadcast_init(struct kdsm_fabric *fabric)
{
	fabric->senders = alloc_workqueue("kdsm_send", WQ_UNBOUND | WQ_HIGHPRI, KDSM_SENDERS);
	return fabric->senders ? 0 : -ENOMEM;
}

void kdsm_broadcast_exit(struct kdsm_fabric *fabric)
{
	destroy_workqueue(fabric->senders);
}

static void kdsm_broadcast_put(struct kdsm_broadcast *broadcast)
{
	if (!refcount_dec_and_test(&broadcast->references))
		return;
	kvfree(broadcast->replies);
	kvfree(broadcast);
}

static void kdsm_sending_work(struct work_struct *work)
{
	struct kdsm_sending *sending = container_of(work, struct kdsm_sending, work);
	struct kdsm_broadcast *broadcast = sending->broadcast;
	struct kdsm_reply *reply = sending->reply;
	int status;

	if (reply)
		reply->length = sizeof(reply->data);
	status = kdsm_message(broadcast->fabric, sending->node, broadcast->type, broadcast->data,
			      broadcast->length, reply ? reply->data : NULL,
			      reply ? &reply->length : NULL);
	/* Pairs with smp_load_acquire() in kdsm_inquire(). */
	smp_store_release(&sending->status, status);
	if (atomic_dec_and_test(&broadcast->pending))
		complete_all(&broadcast->done);
	kdsm_broadcast_put(broadcast);
}

static int kdsm_broadcast_wait(struct kdsm_broadcast *broadcast, unsigned long timeout,
			       unsigned int state)
{
	long left;

	if (state == TASK_KILLABLE)
		left = wait_for_completion_killable_timeout(&broadcast->done, timeout);
	else
		left = wait_for_completion_timeout(&broadcast->done, timeout);
	if (left < 0)
		return left;
	return left ? 0 : -ETIMEDOUT;
}

/* Start the requests. The caller holds a reference to the result, which may be ERR_PTR(). */
static struct kdsm_broadcast *kdsm_broadcast_send(struct kdsm_fabric *fabric,
						  const unsigned long *nodes,
						  enum kdsm_message_type type, const void *data,
						  unsigned int length, bool wants_replies)
{
	unsigned int count = bitmap_weight(nodes, KDSM_MAX_NODES), node, i = 0;
	struct kdsm_broadcast *broadcast;

	if (WARN_ON_ONCE(length > KDSM_MESSAGE_ROOM))
		return ERR_PTR(-EINVAL);
	broadcast = kvzalloc(struct_size(broadcast, sendings, count), GFP_KERNEL);
	if (!broadcast)
		return ERR_PTR(-ENOMEM);
	if (wants_replies) {
		broadcast->replies = kvcalloc(count, sizeof(*broadcast->replies), GFP_KERNEL);
		if (!broadcast->replies) {
			kvfree(broadcast);
			return ERR_PTR(-ENOMEM);
		}
	}
	broadcast->fabric = fabric;
	broadcast->type = type;
	broadcast->length = length;
	memcpy(broadcast->data, data, length);
	broadcast->count = count;
	refcount_set(&broadcast->references, 1 + count);
	atomic_set(&broadcast->pending, count);
	init_completion(&broadcast->done);
	for_each_set_bit(node, nodes, KDSM_MAX_NODES) {
		struct kdsm_sending *sending = &broadcast->sendings[i];

		sending->reply = wants_replies ? &broadcast->replies[i] : NULL;
		i++;
		sending->broadcast = broadcast;
		sending->node = node;
		sending->status = -ETIMEDOUT;
		INIT_WORK(&sending->work, kdsm_sending_work);
		queue_work(fabric->senders, &sending->work);
	}
	return broadcast;
}

struct kdsm_broadcast *kdsm_broadcast_begin(struct kdsm_fabric *fabric,
					    const unsigned long *nodes,
					    enum kdsm_message_type type, const void *data,
					    unsigned int length)
{
	return kdsm_broadcast_send(fabric, nodes, type, data, length, false);
}

int kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses, unsigned long timeout,
		       unsigned int state)
{
	unsigned int i;
	int err;

	err = kdsm_broadcast_wait(broadcast, timeout, state);
	for (i = 0; i < broadcast->count; i++)
		statuses[broadcast->sendings[i].node] = READ_ONCE(broadcast->sendings[i].status);
	kdsm_broadcast_put(broadcast);
	return err;
}

int kdsm_broadcast(struct kdsm_fabric *fabric, const unsigned long *nodes,
		   enum kdsm_message_type type, const void *data, unsigned int length,
		   int *statuses, unsigned long timeout, unsigned int state)
{
	struct kdsm_broadcast *broadcast;

	if (bitmap_empty(nodes, KDSM_MAX_NODES))
		return 0;
	broadcast = kdsm_broadcast_begin(fabric, nodes, type, data, length);
	if (IS_ERR(broadcast))
		return PTR_ERR(broadcast);
	return kdsm_broadcast_end(broadcast, statuses, timeout, state);
}

int kdsm_tell(struct kdsm_fabric *fabric, const unsigned long *nodes,
	      enum kdsm_message_type type, const void *data, unsigned int length,
	      unsigned long timeout)
{
	int *statuses = kvcalloc(KDSM_MAX_NODES, sizeof(*statuses), GFP_KERNEL), err;
	unsigned int node;

	if (!statuses)
		return -ENOMEM;
	err = kdsm_broadcast(fabric, nodes, type, data, length, statuses, timeout,
			     TASK_UNINTERRUPTIBLE);
	if (err == -ETIMEDOUT)
		err = 0;	/* the statuses tell */
	for_each_set_bit(node, nodes, KDSM_MAX_NODES)
		if (!err)
			err = kdsm_message_was_heard(statuses[node]) ? statuses[node] : -EHOSTDOWN;
	kvfree(statuses);
	return err;
}

void kdsm_broadcast_start(struct kdsm_fabric *fabric, const unsigned long *nodes,
			  enum kdsm_message_type type, const void *data, unsigned int length)
{
	struct kdsm_broadcast *broadcast;

	if (bitmap_empty(nodes, KDSM_MAX_NODES))
		return;
	broadcast = kdsm_broadcast_begin(fabric, nodes, type, data, length);
	if (!IS_ERR(broadcast))
		kdsm_broadcast_put(broadcast);
}

int kdsm_inquire(struct kdsm_fabric *fabric, const unsigned long *nodes,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 struct kdsm_reply *replies, unsigned long timeout)
{
	struct kdsm_broadcast *broadcast;
	unsigned int i;
	int err;

	broadcast = kdsm_broadcast_send(fabric, nodes, type, data, length, true);
	if (IS_ERR(broadcast))
		return PTR_ERR(broadcast);
	err = kdsm_broadcast_wait(broadcast, timeout, TASK_KILLABLE);
	for (i = 0; i < broadcast->count; i++) {
		/* Pairs with smp_store_release() in kdsm_sending_work(). */
		replies[i].status = smp_load_acquire(&broadcast->sendings[i].status);
		replies[i].length = replies[i].status ? 0 : broadcast->replies[i].length;
		memcpy(replies[i].data, broadcast->replies[i].data, replies[i].length);
	}
	kdsm_broadcast_put(broadcast);
	return err == -ETIMEDOUT ? 0 : err;
}

int kdsm_message_killable(struct kdsm_fabric *fabric, unsigned int node,
			  enum kdsm_message_type type, const void *data, unsigned int length)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES) = {};
	int *statuses, err;

	/* statuses is indexed by node */
	statuses = kvcalloc(node + 1, sizeof(*statuses), GFP_KERNEL);
	if (!statuses)
		return -ENOMEM;
	__set_bit(node, nodes);
	err = kdsm_broadcast(fabric, nodes, type, data, length, statuses, MAX_SCHEDULE_TIMEOUT,
			     TASK_KILLABLE);
	if (!err)
		err = statuses[node];
	kvfree(statuses);
	return err;
}
