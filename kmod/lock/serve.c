// SPDX-License-Identifier: GPL-2.0
/*
 * Messages about the turns and the readers of a lock: each goes to the part that it is about.
 * Handlers run in softirq. If the lock is not open here, the handler runs once more where it can
 * sleep, because a home and a reader home open the lock when they are asked first.
 */
#include <linux/err.h>

#include "lock/lock.h"
#include "lock/serve.h"
#include "region/region.h"

/* In an RCU read section. Returns the lock, or NULL: it is not open here. */
static struct kdsm_lock *kdsm_lock_about(struct kdsm_cluster *cluster,
					 const struct kdsm_wire_about *about,
					 unsigned int from)
{
	struct kdsm_region *region = xa_load(&cluster->regions, le32_to_cpu(about->id));

	if (!region || from >= region->nodes)
		return NULL;
	return kdsm_lock_find(region->locks, le16_to_cpu(about->number));
}

/* Messages between parents and children. -ENXIO: make the reader home first. */
static int kdsm_lock_serve_pass(struct kdsm_lock *lock, enum kdsm_message_type type,
				struct kdsm_request *request)
{
	const struct kdsm_wire_pass *wire = request->data;
	struct kdsm_reader_home *reader = kdsm_lock_reader_home(lock);
	struct kdsm_lock_home *home = lock->home;
	unsigned int flags = le16_to_cpu(wire->flags);
	struct kdsm_pass *pass = &lock->pass;

	if (flags & KDSM_PASS_HOME)
		pass = reader ? &reader->pass : NULL;
	switch (type) {
	case KDSM_MESSAGE_READ_ADMIT:
		return pass ? kdsm_pass_serve_admit(pass, request) : -ENOENT;
	case KDSM_MESSAGE_READ_REVOKE:
		return pass ? kdsm_pass_serve_revoke(pass, request) : -ENOENT;
	case KDSM_MESSAGE_READ_DISMISS:
		return kdsm_pass_serve_dismiss(&lock->pass, request);
	case KDSM_MESSAGE_READ_ENTER:
		if (flags & KDSM_PASS_HOME)
			return home ? kdsm_home_serve_enter(home, request) : -ENOENT;
		return reader ? kdsm_reader_home_serve_enter(reader, request) : -ENXIO;
	default:
		if (flags & (KDSM_PASS_HOME | KDSM_PASS_DISMISSED))
			return home ? kdsm_home_serve_left(home, request) : -ENOENT;
		return reader ? kdsm_reader_home_serve_left(reader, request) : 0;
	}
}

/* -ENOENT: there is no such part here. */
static int kdsm_lock_serve_known(struct kdsm_lock *lock, enum kdsm_message_type type,
				 struct kdsm_request *request)
{
	if (lock->turn.state == KDSM_TURN_LOST && lock->home)
		return -ENOENT;
	switch (type) {
	case KDSM_MESSAGE_TURN_HAND:
		return kdsm_turn_serve_hand(&lock->turn, request);
	case KDSM_MESSAGE_TURN_EXTEND:
		return kdsm_turn_serve_extend(&lock->turn, request);
	case KDSM_MESSAGE_TURN_SURVEY:
		return kdsm_turn_serve_survey(&lock->turn, request);
	case KDSM_MESSAGE_TURN_ENQUEUE:
		return lock->home ? kdsm_home_serve_enqueue(lock->home, request) : -ENOENT;
	case KDSM_MESSAGE_TURN_LEAVE:
		return lock->home ? kdsm_home_serve_leave(lock->home, request) : -ENOENT;
	default:
		return lock->kind == KDSM_LOCK_RMA_RW ? kdsm_lock_serve_pass(lock, type, request) :
							-EINVAL;
	}
}

/*
 * A parent tells this node something, and repeats it until it hears that the node is not inside.
 * This node is not: it has come up again, and does not know the lock or the reader home.
 */
static void kdsm_lock_answer(struct kdsm_cluster *cluster, enum kdsm_message_type type,
			     const struct kdsm_request *request)
{
	struct kdsm_wire_pass wire = *(const struct kdsm_wire_pass *)request->data;

	wire.flags &= cpu_to_le16(KDSM_PASS_HOME);
	if (type == KDSM_MESSAGE_READ_DISMISS)
		wire.flags = cpu_to_le16(KDSM_PASS_DISMISSED);
	kdsm_message_start(cluster->fabric, request->from, KDSM_MESSAGE_READ_LEFT, &wire,
			   sizeof(wire));
}

/*
 * A node asks a home, or a reader home, that has not opened the lock yet. Returns -EAGAIN, so that
 * the node asks once more, or an error.
 */
static int kdsm_lock_open_about(struct kdsm_cluster *cluster,
				const struct kdsm_wire_about *about, unsigned int from,
				bool reads)
{
	struct kdsm_lock_open args = { .number = le16_to_cpu(about->number) };
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	int err;

	if (args.number >= KDSM_MAX_LOCKS)
		return -EINVAL;
	region = kdsm_region_get(cluster, le32_to_cpu(about->id), from);
	if (!region)
		return -ENOENT;
	lock = kdsm_lock_open(region->locks, &args);
	err = PTR_ERR_OR_ZERO(lock);
	if (!err && reads && lock->kind == KDSM_LOCK_RMA_RW)
		err = kdsm_lock_open_reader_home(lock);
	kdsm_region_put(region);
	return err ?: -EAGAIN;
}

static int kdsm_lock_serve(void *context, enum kdsm_message_type type,
			   struct kdsm_request *request)
{
	bool asks = type == KDSM_MESSAGE_TURN_ENQUEUE || type == KDSM_MESSAGE_READ_ENTER;
	bool tells = type == KDSM_MESSAGE_READ_ADMIT || type == KDSM_MESSAGE_READ_REVOKE ||
		     type == KDSM_MESSAGE_READ_DISMISS;
	const struct kdsm_wire_about *about = request->data;
	struct kdsm_lock *lock;
	int err;

	if (type < KDSM_MESSAGE_READ_ENTER ? !kdsm_wire_turn_fits(request->data, request->length) :
					     request->length != sizeof(struct kdsm_wire_pass))
		return -EINVAL;
	rcu_read_lock();
	lock = kdsm_lock_about(context, about, request->from);
	if (lock)
		err = kdsm_lock_serve_known(lock, type, request);
	else
		err = asks ? -ENXIO : -ENOENT;
	rcu_read_unlock();
	if (err != -ENXIO && !(err == -ENOENT && tells))
		return err;
	if (!request->can_sleep)
		return -EAGAIN;
	if (!tells)
		return kdsm_lock_open_about(context, about, request->from,
					    type == KDSM_MESSAGE_READ_ENTER);
	kdsm_lock_answer(context, type, request);
	return 0;
}

int kdsm_lock_serve_meet(void *context, struct kdsm_request *request)
{
	int err;

	if (request->length != sizeof(struct kdsm_wire_about))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	err = kdsm_lock_open_about(context, request->data, request->from, false);
	return err == -EAGAIN ? 0 : err;
}

#define KDSM_LOCK_HANDLER(name, type)						\
int kdsm_lock_serve_##name(void *context, struct kdsm_request *request)	\
{										\
	return kdsm_lock_serve(context, KDSM_MESSAGE_##type, request);		\
}

KDSM_LOCK_HANDLER(enqueue, TURN_ENQUEUE)
KDSM_LOCK_HANDLER(hand, TURN_HAND)
KDSM_LOCK_HANDLER(leave, TURN_LEAVE)
KDSM_LOCK_HANDLER(extend, TURN_EXTEND)
KDSM_LOCK_HANDLER(survey, TURN_SURVEY)
KDSM_LOCK_HANDLER(enter, READ_ENTER)
KDSM_LOCK_HANDLER(admit, READ_ADMIT)
KDSM_LOCK_HANDLER(revoke, READ_REVOKE)
KDSM_LOCK_HANDLER(dismiss, READ_DISMISS)
KDSM_LOCK_HANDLER(left, READ_LEFT)
