// SPDX-License-Identifier: GPL-2.0
/*
 * Messages: short requests that a handler in the kernel of the peer serves and answers. The
 * handlers are in the layers above and, for the fabric's own messages, in the table in
 * device.c.
 *
 * A connection has KDSM_CREDITS slots. A request occupies a slot until its reply arrives,
 * and the reply leaves from the slot with the same number at the other end. So the sender
 * never has more requests in flight than the peer has posted receives, and every reply
 * finds a posted receive. KDSM_MESSAGE_PUT is no request and takes no slot: operation.c posts it
 * in a chain, and the device of the sender repeats it until it finds a posted receive.
 *
 * Most sends are not signalled. A slot can be rewritten nevertheless, because a later
 * message shows that the former one arrived: the reply shows it for a request, and the next
 * request with the same slot number shows it for a reply. If the device retransmits the
 * former message for want of an acknowledgment, the receiving device drops the duplicate
 * unread. Only the room in the send queue must be counted, so one send in KDSM_SIGNAL_EVERY
 * is signalled.
 */
#include <linux/slab.h>

#include "trace.h"
#include "internal.h"

static void kdsm_message_sent(struct ib_cq *cq, struct ib_wc *wc);
static void kdsm_message_received(struct ib_cq *cq, struct ib_wc *wc);
static void kdsm_message_serve_work(struct work_struct *work);

void kdsm_message_setup(struct kdsm_connection *connection)
{
	unsigned int i;

	connection->free_slots = GENMASK(KDSM_CREDITS - 1, 0);
	connection->sent.done = kdsm_message_sent;
	for (i = 0; i < KDSM_RECEIVES; i++) {
		connection->receives[i].cqe.done = kdsm_message_received;
		INIT_WORK(&connection->receives[i].work, kdsm_message_serve_work);
	}
}

/* ---- slots ---- */

/*
 * The state in which a request may be sent. The proof of an asker is the first message on a
 * connection.
 */
static enum kdsm_connection_state kdsm_call_state(const struct kdsm_call *call)
{
	return call && call->proves ? KDSM_CONNECTION_UNPROVEN : KDSM_CONNECTION_UP;
}

/* Take a free slot and room to send, or return NULL. Set *over if the state is another one. */
static struct kdsm_slot *kdsm_slot_get(struct kdsm_connection *connection,
				       enum kdsm_connection_state state, bool *over)
{
	struct kdsm_slot *slot = NULL;
	unsigned int i;

	spin_lock_bh(&connection->lock);
	*over = connection->state != state;
	if (!*over && connection->free_slots && connection->sends) {
		i = __ffs(connection->free_slots);
		__clear_bit(i, &connection->free_slots);
		connection->sends--;
		slot = &connection->slots[i];
		slot->sequence++;
		slot->call = NULL;
	}
	spin_unlock_bh(&connection->lock);
	return slot;
}

static bool kdsm_slot_wait_for(struct kdsm_connection *connection,
			       struct kdsm_slot **slot)
{
	bool over;

	*slot = kdsm_slot_get(connection, KDSM_CONNECTION_UP, &over);
	return *slot || over;
}

static u32 kdsm_slot_cookie(const struct kdsm_slot *slot)
{
	return (u32)slot->sequence << 16 | (slot - slot->connection->slots);
}

static void kdsm_slot_free_locked(struct kdsm_slot *slot)
{
	lockdep_assert_held(&slot->connection->lock);
	__set_bit(slot - slot->connection->slots, &slot->connection->free_slots);
}

static void kdsm_message_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_connection *connection =
		container_of(wc->wr_cqe, struct kdsm_connection, sent);

	if (wc->status != IB_WC_SUCCESS) {
		kdsm_connection_break(connection);
		return;
	}
	spin_lock_bh(&connection->lock);
	connection->sends += KDSM_SIGNAL_EVERY;
	spin_unlock_bh(&connection->lock);
	wake_up(&connection->wait);
}

static int kdsm_receive_post(struct kdsm_receive *receive)
{
	struct kdsm_connection *connection = receive->connection;
	struct ib_sge sge = {
		.addr = receive->dma,
		.length = KDSM_MESSAGE_SIZE,
		.lkey = connection->fabric->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &receive->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(connection->fabric->device, receive->dma,
				      KDSM_MESSAGE_SIZE, DMA_FROM_DEVICE);
	return ib_post_recv(connection->qp, &wr, NULL);
}

/*
 * Send the message in the slot. For a request, call is set and the slot stays busy until
 * the reply arrives. For a reply, receive is the buffer of its request and is posted again.
 * The caller has taken one of connection->sends. -EIO: the connection is not up, is of
 * another tie, or posting failed; then the fabric does not call done() of the call.
 *
 * The reply is posted before the receive, because a task of the peer waits for the reply. The
 * peer may then send the next request from the same slot before the receive is posted again,
 * which is safe because there are as many receives beyond the credits as there are slots.
 */
static int kdsm_slot_send(struct kdsm_slot *slot, unsigned int length,
			  struct kdsm_call *call, struct kdsm_receive *receive)
{
	struct kdsm_connection *connection = slot->connection;
	struct kdsm_fabric *fabric = connection->fabric;
	struct ib_sge sge = {
		.addr = slot->dma,
		.length = sizeof(struct kdsm_wire_header) + length,
		.lkey = fabric->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &connection->sent,
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
	};
	enum kdsm_connection_state state = kdsm_call_state(call);
	bool untied = false;
	int err = -EIO;

	ib_dma_sync_single_for_device(fabric->device, slot->dma, sge.length,
				      DMA_TO_DEVICE);
	spin_lock_bh(&connection->lock);
	if (call && connection->state == state &&
	    !kdsm_connection_is_tied(connection, call->tie)) {
		/* Nothing was posted, so the connection stays usable and the room returns. */
		connection->sends++;
		untied = true;
	} else if (connection->state == state) {
		if (++connection->unsignalled == KDSM_SIGNAL_EVERY) {
			connection->unsignalled = 0;
			wr.send_flags = IB_SEND_SIGNALED;
		}
		slot->call = call;
		if (!ib_post_send(connection->qp, &wr, NULL) &&
		    (!receive || !kdsm_receive_post(receive)))
			err = 0;
	}
	if (err || !call) {
		slot->call = NULL;
		kdsm_slot_free_locked(slot);
	}
	spin_unlock_bh(&connection->lock);
	if (untied)
		wake_up(&connection->wait);
	else if (err)
		kdsm_connection_break(connection);
	return err;
}

static void kdsm_header_write(struct kdsm_slot *slot, u16 type, unsigned int length,
			      u32 cookie, int status)
{
	struct kdsm_wire_header *header = slot->buffer;

	header->type = cpu_to_le16(type);
	header->length = cpu_to_le16(length);
	header->cookie = cpu_to_le32(cookie);
	header->status = cpu_to_le32(status);
	header->reserved = 0;
}

/* ---- receives ---- */

/*
 * Post a receive again. The queue pair exists while the lock is held and the state is up or
 * unproven.
 */
static void kdsm_receive_repost(struct kdsm_receive *receive)
{
	struct kdsm_connection *connection = receive->connection;
	int err = 0;

	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UP ||
	    connection->state == KDSM_CONNECTION_UNPROVEN)
		err = kdsm_receive_post(receive);
	spin_unlock_bh(&connection->lock);
	if (err)
		kdsm_connection_break(connection);
}

int kdsm_message_post_receives(struct kdsm_connection *connection)
{
	unsigned int i;
	int err;

	for (i = 0; i < KDSM_RECEIVES; i++) {
		err = kdsm_receive_post(&connection->receives[i]);
		if (err)
			return err;
	}
	return 0;
}

/* ---- serving ---- */

static int kdsm_message_dispatch(struct kdsm_fabric *fabric, unsigned int type,
				 struct kdsm_request *request)
{
	kdsm_handler_t handler = fabric->up->handlers[type];

	if (handler)
		return handler(fabric, request);
	handler = fabric->config.handlers[type];
	return handler ? handler(fabric->config.context, request) : -EOPNOTSUPP;
}

/* Take the slot for the reply to a request; NULL if the request's cookie is invalid */
static struct kdsm_slot *kdsm_reply_slot(struct kdsm_connection *connection, u32 cookie)
{
	unsigned int i = cookie & 0xffff;
	bool was_free;

	if (i >= KDSM_CREDITS)
		return NULL;
	spin_lock_bh(&connection->lock);
	was_free = __test_and_clear_bit(i, &connection->free_slots);
	spin_unlock_bh(&connection->lock);
	return was_free ? &connection->slots[i] : NULL;
}

/* Take room for the reply. Return true, and set *over, if the connection is not up, too. */
static bool kdsm_reply_room(struct kdsm_connection *connection, bool *over)
{
	bool room;

	spin_lock_bh(&connection->lock);
	*over = connection->state != KDSM_CONNECTION_UP;
	room = !*over && connection->sends;
	connection->sends -= room;
	spin_unlock_bh(&connection->lock);
	return room || *over;
}

/*
 * Serve a request and reply, if the connection is still up. Return false if the request
 * must be served in a context that may sleep.
 */
static bool kdsm_message_serve(struct kdsm_receive *receive, bool can_sleep)
{
	struct kdsm_connection *connection = receive->connection;
	struct kdsm_fabric *fabric = connection->fabric;
	const struct kdsm_wire_header *header = receive->buffer;
	unsigned int type = le16_to_cpu(header->type);
	u32 cookie = le32_to_cpu(header->cookie);
	struct kdsm_slot *slot = &connection->slots[cookie & 0xffff];
	struct kdsm_serving serving = {
		.request = {
			.from = connection->peer->node,
			.can_sleep = can_sleep,
			.data = header + 1,
			.length = le16_to_cpu(header->length),
			.reply = slot->buffer + sizeof(*header),
		},
		.connection = connection,
	};
	int status;
	bool over;

	if (!can_sleep && !kdsm_reply_room(connection, &over))
		return false;
	/* A peer that posts no receives keeps this worker for a bounded time. */
	if (can_sleep &&
	    kdsm_connection_wait_for(connection, kdsm_reply_room(connection, &over), false)) {
		kdsm_connection_break(connection);
		return true;
	}
	if (over)
		return true;
	status = kdsm_message_dispatch(fabric, type, &serving.request);
	if (status == -EAGAIN && !can_sleep) {
		spin_lock_bh(&connection->lock);
		connection->sends++;
		spin_unlock_bh(&connection->lock);
		wake_up(&connection->wait);
		return false;
	}
	if (status)
		serving.request.reply_length = 0;
	trace_kdsm_serve(connection->peer->node, type, status);
	kdsm_count(connection->peer->counters, KDSM_STAT_AM_SERVED);
	kdsm_header_write(slot, type, serving.request.reply_length, cookie, status);
	kdsm_slot_send(slot, serving.request.reply_length, NULL, receive);
	return true;
}

static void kdsm_message_serve_work(struct work_struct *work)
{
	struct kdsm_receive *receive = container_of(work, struct kdsm_receive, work);
	struct kdsm_connection *connection = receive->connection;
	const struct kdsm_wire_header *header = receive->buffer;

	if (le16_to_cpu(header->type) == KDSM_MESSAGE_PROVE &&
	    connection->fabric->up->proved(connection, header + 1, le16_to_cpu(header->length)))
		kdsm_connection_break(connection);
	else
		kdsm_message_serve(receive, true);
	kdsm_connection_put(connection);
}

/* Whether the request may arrive now: the proof first and once, everything else later */
static bool kdsm_message_in_order(struct kdsm_connection *connection, unsigned int type)
{
	bool proves = type == KDSM_MESSAGE_PROVE, in_order;

	spin_lock_bh(&connection->lock);
	if (connection->state == KDSM_CONNECTION_UNPROVEN) {
		in_order = proves && !connection->proving;
		connection->proving = true;
	} else {
		in_order = !proves;
	}
	spin_unlock_bh(&connection->lock);
	return in_order;
}

static bool kdsm_message_request(struct kdsm_receive *receive)
{
	struct kdsm_connection *connection = receive->connection;
	const struct kdsm_wire_header *header = receive->buffer;
	struct workqueue_struct *queue = connection->fabric->workqueue;

	if (!kdsm_message_in_order(connection, le16_to_cpu(header->type)) ||
	    !kdsm_reply_slot(connection, le32_to_cpu(header->cookie)))
		return false;
	if (le16_to_cpu(header->type) == KDSM_MESSAGE_PROVE)
		queue = connection->fabric->upkeep;
	else if (kdsm_message_serve(receive, false))
		return true;
	/*
	 * The work drops this reference. The receive is not posted again before the work has
	 * served the request, so the buffer stays unchanged.
	 */
	kref_get(&connection->kref);
	kdsm_count(connection->peer->counters, KDSM_STAT_AM_DEFERRED);
	queue_work(queue, &receive->work);
	return true;
}

/* ---- replies ---- */

static bool kdsm_message_reply(struct kdsm_receive *receive)
{
	struct kdsm_connection *connection = receive->connection;
	const struct kdsm_wire_header *header = receive->buffer;
	u32 cookie = le32_to_cpu(header->cookie);
	unsigned int i = cookie & 0xffff, length = le16_to_cpu(header->length);
	int status = (s32)le32_to_cpu(header->status);
	struct kdsm_call *call = NULL;
	struct kdsm_slot *slot;

	if (i >= KDSM_CREDITS)
		return false;
	slot = &connection->slots[i];
	spin_lock_bh(&connection->lock);
	if (kdsm_slot_cookie(slot) == cookie && slot->call) {
		call = slot->call;
		slot->call = NULL;
	}
	spin_unlock_bh(&connection->lock);
	if (!call)
		return false;
	if (status > 0 || status < -MAX_ERRNO || length > call->reply_length)
		status = -EPROTO;
	call->status = status;
	call->reply_length = status ? 0 : length;
	memcpy(call->reply, header + 1, call->reply_length);
	/* Return the receive and the slot before the caller can send the next request. */
	kdsm_receive_repost(receive);
	spin_lock_bh(&connection->lock);
	kdsm_slot_free_locked(slot);
	spin_unlock_bh(&connection->lock);
	/*
	 * No wakeup is lost: a waiter adds itself to the wait queue before it looks for a
	 * slot under the lock.
	 */
	if (wq_has_sleeper(&connection->wait))
		wake_up(&connection->wait);
	call->done(call);
	return true;
}

static void kdsm_message_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdsm_receive *receive = container_of(wc->wr_cqe, struct kdsm_receive, cqe);
	struct kdsm_connection *connection = receive->connection;
	struct kdsm_fabric *fabric = connection->fabric;
	const struct kdsm_wire_header *header = receive->buffer;

	if (wc->status != IB_WC_SUCCESS) {
		kdsm_connection_break(connection);
		return;
	}
	if (wc->opcode != IB_WC_RECV)
		goto nonsense;
	ib_dma_sync_single_for_cpu(fabric->device, receive->dma, KDSM_MESSAGE_SIZE,
				   DMA_FROM_DEVICE);
	if (wc->byte_len < sizeof(*header) ||
	    le16_to_cpu(header->length) != wc->byte_len - sizeof(*header) ||
	    le16_to_cpu(header->type) >= KDSM_MESSAGE_TYPES || header->reserved)
		goto nonsense;
	if (le16_to_cpu(header->type) == KDSM_MESSAGE_PUT) {
		/*
		 * While a connection drains, its puts still count, but only if its peer has
		 * proved itself, so that the connection has been up.
		 */
		if (!connection->accepted || !READ_ONCE(connection->life) ||
		    !kdsm_put_serve(fabric, receive->buffer + sizeof(*header),
				    le16_to_cpu(header->length)))
			goto nonsense;
		kdsm_receive_repost(receive);
		return;
	}
	if (connection->accepted ? kdsm_message_request(receive) : kdsm_message_reply(receive))
		return;

nonsense:
	atomic64_inc(&fabric->refused.message);
	pr_warn_ratelimited("kdsm: node %u sent a message that makes no sense\n",
			    connection->peer->node);
	kdsm_connection_break(connection);
}

/* The queue pair is destroyed: no completion and no reply arrives concurrently. */
void kdsm_message_fail(struct kdsm_connection *connection)
{
	struct kdsm_call *call;
	unsigned int i;

	for (i = 0; i < KDSM_CREDITS; i++) {
		struct kdsm_slot *slot = &connection->slots[i];

		spin_lock_bh(&connection->lock);
		call = slot->call;
		slot->call = NULL;
		if (call)
			kdsm_slot_free_locked(slot);
		spin_unlock_bh(&connection->lock);
		if (call) {
			call->status = -EIO;
			call->reply_length = 0;
			call->done(call);
		}
	}
}

/* ---- requests ---- */

/* Send a request from a slot; see kdsm_call_post(). */
static int kdsm_request_send(struct kdsm_slot *slot, enum kdsm_message_type type,
			     const void *data, unsigned int length, struct kdsm_call *call)
{
	struct kdsm_connection *connection = slot->connection;
	unsigned int node = connection->peer->node;

	call->connection = connection;
	kdsm_header_write(slot, type, length, kdsm_slot_cookie(slot), 0);
	memcpy(slot->buffer + sizeof(struct kdsm_wire_header), data, length);
	kdsm_count(connection->peer->counters, KDSM_STAT_AM);
	trace_kdsm_message(node, type, length);
	return kdsm_slot_send(slot, length, call, NULL);
}

int kdsm_message_prove(struct kdsm_connection *connection, const u8 proof[KDSM_PROOF_SIZE],
		       struct kdsm_call *call)
{
	struct kdsm_slot *slot;
	bool over;

	call->proves = true;
	slot = kdsm_slot_get(connection, KDSM_CONNECTION_UNPROVEN, &over);
	return slot ? kdsm_request_send(slot, KDSM_MESSAGE_PROVE, proof, KDSM_PROOF_SIZE, call) :
		      -EIO;
}

int kdsm_call_post(struct kdsm_fabric *fabric, unsigned int node,
		   enum kdsm_message_type type, const void *data, unsigned int length,
		   struct kdsm_call *call)
{
	struct kdsm_connection *connection = kdsm_connection_get(fabric, node);

	if (IS_ERR(connection)) {
		kdsm_count(fabric->peers[node].counters, KDSM_STAT_ERRORS);
		return PTR_ERR(connection);
	}
	return kdsm_call_post_on(connection, type, data, length, call);
}

int kdsm_call_post_on(struct kdsm_connection *connection, enum kdsm_message_type type,
		      const void *data, unsigned int length, struct kdsm_call *call)
{
	struct kdsm_counters __percpu *counters = connection->peer->counters;
	struct kdsm_slot *slot;
	bool over;
	int err = 0;

	slot = kdsm_slot_get(connection, KDSM_CONNECTION_UP, &over);
	if (!slot && !over) {
		kdsm_count(counters, KDSM_STAT_CREDIT_WAITS);
		err = kdsm_connection_wait_for(connection, kdsm_slot_wait_for(connection, &slot),
					       call->killable);
		if (err == -ETIMEDOUT)
			kdsm_connection_break(connection);
	}
	if (!slot) {
		kdsm_count(counters, KDSM_STAT_ERRORS);
		return err ?: -EIO;
	}
	return kdsm_request_send(slot, type, data, length, call);
}

struct kdsm_sync_call {
	struct kdsm_call call;
	struct completion done;
};

static void kdsm_sync_call_done(struct kdsm_call *call)
{
	complete(&container_of(call, struct kdsm_sync_call, call)->done);
}

static bool kdsm_sync_call_wait(struct kdsm_sync_call *sync)
{
	unsigned long waited;

	for (waited = 0; waited < KDSM_REPLY_TIMEOUT; waited += KDSM_UPKEEP_EVERY) {
		if (wait_for_completion_timeout(&sync->done, KDSM_UPKEEP_EVERY))
			return true;
		kdsm_connection_nudge(sync->call.connection);
	}
	return false;
}

/* Serve a message of this node to itself in the calling task, without the network */
static int kdsm_message_self(struct kdsm_fabric *fabric, enum kdsm_message_type type,
			     const void *data, unsigned int length, void *reply,
			     unsigned int *reply_length)
{
	struct kdsm_request request = {
		.from = fabric->config.node,
		.can_sleep = true,
		.data = data,
		.length = length,
	};
	int err;

	request.reply = kzalloc(KDSM_MESSAGE_ROOM, GFP_KERNEL);
	if (!request.reply)
		return -ENOMEM;
	err = kdsm_message_dispatch(fabric, type, &request);
	if (!err && reply_length) {
		*reply_length = min(*reply_length, request.reply_length);
		memcpy(reply, request.reply, *reply_length);
	}
	kfree(request.reply);
	return err;
}

int kdsm_message_gated(struct kdsm_fabric *fabric, unsigned int node,
		       enum kdsm_message_type type, const void *data,
		       unsigned int length, void *reply, unsigned int *reply_length)
{
	struct kdsm_sync_call sync = {
		.call.reply = reply,
		.call.reply_length = reply_length ? *reply_length : 0,
		.call.done = kdsm_sync_call_done,
		.done = COMPLETION_INITIALIZER_ONSTACK(sync.done),
	};
	int err;

	if (WARN_ON_ONCE(length > KDSM_MESSAGE_ROOM))
		return -EINVAL;
	/* The node was removed */
	if (node >= READ_ONCE(fabric->nodes))
		return -EHOSTDOWN;
	err = kdsm_call_post(fabric, node, type, data, length, &sync.call);
	if (err)
		return err;
	if (!kdsm_sync_call_wait(&sync)) {
		pr_warn_ratelimited("kdsm: node %u does not answer\n", node);
		kdsm_connection_break(sync.call.connection);
		wait_for_completion(&sync.done);
		if (sync.call.status == -EIO)
			sync.call.status = -ETIMEDOUT;
	}
	if (reply_length)
		*reply_length = sync.call.reply_length;
	if (sync.call.status)
		kdsm_count(fabric->peers[node].counters, KDSM_STAT_ERRORS);
	return sync.call.status;
}

int kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
		 enum kdsm_message_type type, const void *data, unsigned int length,
		 void *reply, unsigned int *reply_length)
{
	u64 since;
	int err;

	/* Do not hold the gate: the handler may send messages, for which it takes the gate. */
	if (node == fabric->config.node)
		return kdsm_message_self(fabric, type, data, length, reply, reply_length);
	since = ktime_get_ns();
	percpu_down_read(&fabric->gate);
	err = kdsm_message_gated(fabric, node, type, data, length, reply, reply_length);
	percpu_up_read(&fabric->gate);
	kdsm_duration(fabric->durations, KDSM_LATENCY_MESSAGE, ktime_get_ns() - since);
	return err;
}
