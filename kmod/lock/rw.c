// SPDX-License-Identifier: GPL-2.0
/*
 * Readers and writers of a lock. Writers queue as for any other lock, and whoever is
 * first has to do with the readers, too. These are counted, by node: every T_DC-th node
 * has a counter, for itself and those up to the next one.
 *
 * Who reads adds itself to its counter, by one fetch-and-add, and if that has no
 * writer, it may read. It takes itself away again by another. A writer sets WANT in all
 * counters: after that T_R more nodes may come to each. Where nobody reads, it sets WRITE
 * as well, and nobody may come at all. The last reader that leaves a counter tells the
 * writer so, which is a hint: it looks. Once all counters have WRITE and no reader, the
 * writer has the lock. It is passed on so to T_W writers in a row.
 *
 * A reader that may not come asks the home of its counter, which looks again, under a
 * mutex: if the counter has been opened meanwhile the reader may stay; else it is taken
 * off the counter and registered, and waits. A counter is opened under that mutex, too:
 * those that are registered are counted in then, and told (GO). So none can miss it,
 * none has to try again, and none can be outrun. If the word says that nobody reads or is
 * registered the writer opens it by a compare-and-swap, without the home; since a
 * reader is counted as long as it asks, and the word says from then on that it is
 * registered (ASKED), that cannot miss one either. A node that waits for long asks again.
 * The home then tells the writer's node, which checks whether the writing thread lives.
 *
 * What gets lost. Of the writer's atomics the word tells, as nobody else sets its bits.
 * Of a reader's, nothing does: it is in DOUBT, and asks the home of its counter to count
 * who reads; see rw_home.c. What a node asks has a number, and is said again
 * with the same until it is answered, so that nothing is done twice, or late.
 *
 * T_DC can change while the lock is in use. A writer that opens the counters, and had closed
 * them all, has the homes write the new T_DC to the words and retire the counters that it does
 * not use. A reader that comes to a retired counter goes to the counter of node 0, which is
 * always in use, and learns T_DC there. A writer learns it there, too.
 *
 * Locking: the spinlock guards the reader's state against messages, and is not held
 * over the network. The home's mutex may be taken under whatever a task holds.
 */
#include <linux/err.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rw.h"

/* Counters that a reader tries before it gives up for now. */
#define KDSM_RW_TRIES		8

int kdsm_rw_init(struct kdsm_rw *rw)
{
	rw->words = kcalloc(rw->nodes, sizeof(rw->words[0]), GFP_KERNEL_ACCOUNT);
	rw->window = kcalloc(KDSM_RW_WINDOW, sizeof(rw->window[0]), GFP_KERNEL_ACCOUNT);
	rw->home.users = kcalloc(rw->nodes, sizeof(rw->home.users[0]), GFP_KERNEL_ACCOUNT);
	if (!rw->words || !rw->window || !rw->home.users) {
		kdsm_rw_exit(rw);
		return -ENOMEM;
	}
	spin_lock_init(&rw->lock);
	mutex_init(&rw->home.mutex);
	rw->state = KDSM_RW_NONE;
	rw->view = rw->first;
	return 0;
}

void kdsm_rw_exit(struct kdsm_rw *rw)
{
	kfree(rw->words);
	kfree(rw->window);
	kfree(rw->home.users);
}

/* ---- operations and messages ---- */

void kdsm_rw_spend(struct kdsm_rw *rw, u64 *counter, unsigned int n)
{
	spin_lock_bh(&rw->lock);
	*counter += n;
	spin_unlock_bh(&rw->lock);
}

void kdsm_rw_post(struct kdsm_rw *rw, struct kdsm_operation *ops, unsigned int count)
{
	struct kdsm_batch batch;
	unsigned int i;

	if (!count)
		return;
	kdsm_batch_init(&batch, rw->fabric, rw->memory);
	for (i = 0; i < count; i++)
		kdsm_batch_add(&batch, &ops[i]);
	kdsm_rw_spend(rw, &rw->stats.atomics, count);
	kdsm_batch_post(&batch);
	/* Of bounded length, as peers that do not answer are dropped. */
	kdsm_batch_wait(&batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	kdsm_batch_finish(&batch);
}

void kdsm_rw_faa(const struct kdsm_rw *rw, struct kdsm_operation *op, unsigned int node,
		 u64 operand)
{
	memset(op, 0, sizeof(*op));
	op->opcode = KDSM_OP_FAA;
	op->node = node;
	op->offset = rw->word;
	op->length = 8;
	op->operand = operand;
}

int kdsm_rw_atomic(struct kdsm_rw *rw, struct kdsm_operation *op, unsigned int node,
		   u64 operand, u64 *old)
{
	kdsm_rw_faa(rw, op, node, operand);
	kdsm_rw_post(rw, op, 1);
	*old = op->result;
	return op->status;
}

void kdsm_rw_name(const struct kdsm_rw *rw, struct kdsm_wire_rw *wire)
{
	memset(wire, 0, sizeof(*wire));
	wire->id = cpu_to_le32(rw->region);
	wire->number = cpu_to_le16(rw->number);
}

int kdsm_rw_send(struct kdsm_rw *rw, unsigned int node, enum kdsm_message_type type,
		 const struct kdsm_wire_rw *wire, struct kdsm_wire_rw *reply)
{
	unsigned int length = reply ? sizeof(*reply) : 0;
	int err;

	if (node != rw->node)
		kdsm_rw_spend(rw, &rw->stats.messages, 1);
	err = kdsm_message(rw->fabric, node, type, wire, sizeof(*wire), reply,
			   reply ? &length : NULL);
	return err ?: reply && length != sizeof(*reply) ? -EIO : 0;
}

void kdsm_rw_tell(struct kdsm_rw *rw, u64 word)
{
	u32 id = word & KDSM_RW_ID;
	struct kdsm_wire_rw wire;

	if (!id || id > rw->nodes)
		return;
	kdsm_rw_name(rw, &wire);
	kdsm_rw_send(rw, id - 1, KDSM_MESSAGE_RW_TELL, &wire, NULL);
}

/* ---- reading ---- */

static void kdsm_rw_set(struct kdsm_rw *rw, enum kdsm_rw_state state)
{
	/* For kdsm_rw_state(), which is without the lock. */
	WRITE_ONCE(rw->state, state);
}

/* As it will have to again if it is counted meanwhile. */
static int kdsm_rw_join_at(struct kdsm_rw *rw, unsigned int node)
{
	u32 counts = READ_ONCE(rw->counts);
	int err;

	kdsm_rw_spend(rw, &rw->stats.messages, node != rw->node);
	err = rw->ops->join(rw, node);
	spin_lock_bh(&rw->lock);
	if (!err && rw->counts == counts)
		__set_bit(node, rw->joined);
	spin_unlock_bh(&rw->lock);
	return err;
}

static unsigned int kdsm_rw_counter(struct kdsm_rw *rw)
{
	return rw->node - rw->node % READ_ONCE(rw->view);
}

int kdsm_rw_join(struct kdsm_rw *rw)
{
	return kdsm_rw_join_at(rw, kdsm_rw_counter(rw));
}

/*
 * Be in that state, with an atomic on a node's counter to come. Not before the home
 * knows that this node may do that: it counts only those, and who was counted has to say
 * so again, as the count goes on until it is answered.
 */
static int kdsm_rw_begin(struct kdsm_rw *rw, unsigned int node, enum kdsm_rw_state state)
{
	bool joined;
	int err;

	for (;;) {
		spin_lock_bh(&rw->lock);
		joined = test_bit(node, rw->joined);
		if (joined) {
			rw->at = node;
			kdsm_rw_set(rw, state);
		}
		spin_unlock_bh(&rw->lock);
		if (joined)
			return 0;
		err = kdsm_rw_join_at(rw, node);
		if (err)
			return err;
	}
}

void kdsm_rw_heard(struct kdsm_rw *rw, const struct kdsm_wire_rw *wire)
{
	rw->answer = le16_to_cpu(wire->what);
	switch (rw->answer) {
	case KDSM_RW_COME:
		rw->found = kdsm_rw_found_read(wire->found);
		kdsm_rw_set(rw, KDSM_RW_IN);
		break;
	case KDSM_RW_WAIT:
		kdsm_rw_set(rw, KDSM_RW_WAITING);
		break;
	case KDSM_RW_MOVED:
		WRITE_ONCE(rw->view, rw->nodes);
		fallthrough;
	default:
		kdsm_rw_set(rw, KDSM_RW_NONE);
		break;
	}
}

static bool kdsm_rw_has_asked(const struct kdsm_rw *rw)
{
	return rw->state == KDSM_RW_ASKING || rw->state == KDSM_RW_WAITING ||
	       rw->state == KDSM_RW_DOUBT;
}

/* The atomic is over; what it was for is a question now. */
static void kdsm_rw_question(struct kdsm_rw *rw, enum kdsm_rw_state state,
			     enum kdsm_rw_question question)
{
	spin_lock_bh(&rw->lock);
	rw->turn++;
	rw->asks = question;
	kdsm_rw_set(rw, state);
	spin_unlock_bh(&rw->lock);
}

static int kdsm_rw_ask(struct kdsm_rw *rw)
{
	struct kdsm_wire_rw wire, reply;
	u32 turn = rw->turn;
	int err;

	kdsm_rw_name(rw, &wire);
	wire.what = cpu_to_le16(rw->asks);
	wire.turn = cpu_to_le32(turn);
	err = kdsm_rw_send(rw, rw->at, KDSM_MESSAGE_RW_ASK, &wire, &reply);
	if (err)
		return err;
	spin_lock_bh(&rw->lock);
	/* GO may have been faster. */
	if (kdsm_rw_has_asked(rw))
		kdsm_rw_heard(rw, &reply);
	spin_unlock_bh(&rw->lock);
	return 0;
}

/* May it stay, that found this in the counter? */
static bool kdsm_rw_may_read(struct kdsm_rw *rw, unsigned int node, u64 word)
{
	if (!kdsm_rw_in_use(rw, node, word) || word & KDSM_RW_WRITE)
		return false;
	WRITE_ONCE(rw->view, kdsm_rw_holds(rw, word));
	return !(word & KDSM_RW_WANT) || kdsm_rw_arrivals(word) < READ_ONCE(rw->t_r);
}

int kdsm_rw_enter(struct kdsm_rw *rw, bool try)
{
	unsigned int tries, node;
	u64 word;
	int err;

	for (tries = 0; tries < KDSM_RW_TRIES; tries++) {
		node = kdsm_rw_counter(rw);
		err = kdsm_rw_begin(rw, node, KDSM_RW_ENTERING);
		if (err)
			return err;
		err = kdsm_rw_atomic(rw, &rw->op, node, KDSM_RW_READER + KDSM_RW_ARRIVAL, &word);
		if (!err && kdsm_rw_may_read(rw, node, word)) {
			spin_lock_bh(&rw->lock);
			rw->found = word & KDSM_RW_FOUND;
			kdsm_rw_set(rw, KDSM_RW_IN);
			spin_unlock_bh(&rw->lock);
			return 0;
		}
		if (err)
			kdsm_rw_question(rw, KDSM_RW_DOUBT, KDSM_RW_COUNT_ME);
		else
			kdsm_rw_question(rw, KDSM_RW_ASKING, try ? KDSM_RW_TRY :
								   KDSM_RW_LET_ME_IN);
		err = kdsm_rw_ask(rw);
		if (err || kdsm_rw_state(rw) != KDSM_RW_NONE)
			return err;
		if (rw->asks == KDSM_RW_TRY && rw->answer == KDSM_RW_OUT)
			return -EBUSY;
	}
	return -EAGAIN;
}

int kdsm_rw_poll(struct kdsm_rw *rw)
{
	bool asked;

	spin_lock_bh(&rw->lock);
	asked = kdsm_rw_has_asked(rw);
	spin_unlock_bh(&rw->lock);
	return asked ? kdsm_rw_ask(rw) : 0;
}

int kdsm_rw_leave(struct kdsm_rw *rw)
{
	u64 word;
	int err;

	err = kdsm_rw_begin(rw, rw->at, KDSM_RW_LEAVING);
	if (err)
		return err;
	err = kdsm_rw_atomic(rw, &rw->op, rw->at, -KDSM_RW_READER, &word);
	if (err) {
		kdsm_rw_question(rw, KDSM_RW_DOUBT, KDSM_RW_COUNT_ME);
		return kdsm_rw_ask(rw);
	}
	spin_lock_bh(&rw->lock);
	kdsm_rw_set(rw, KDSM_RW_NONE);
	spin_unlock_bh(&rw->lock);
	if (kdsm_rw_readers(word) == 1 && word & KDSM_RW_WANT)
		kdsm_rw_tell(rw, word);
	return 0;
}
