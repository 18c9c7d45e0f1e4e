// SPDX-License-Identifier: GPL-2.0
/*
 * Readers and writers of a lock: the home of a counter, and what is done when messages
 * come. See lock_rw.c.
 *
 * The home changes its counter under its mutex: it takes those off that have to wait, and
 * counts them in when it opens. If the answer to one of its own atomics is lost, or that
 * of a node which then asks for it (COUNT_ME), it counts who reads: it asks all nodes
 * that use the counter. These say where they stand, and as long as they do not hear
 * from the home again (JOIN), which takes the mutex, they do not change the counter. So
 * what they have said is true when the counter is put right, by one fetch-and-add of the
 * difference, and whether that was done the word tells, since nobody else changes the
 * number of readers meanwhile.
 *
 * Of a node that has asked and was answered, the home knows better than that node, as the
 * answer may be under way.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/string.h>

#include "rw.h"

/* A node whose atomic is under way is asked again so often. */
#define KDSM_RW_COUNT_TRIES	20
/* An atomic whose answer is lost is looked after so often at once. */
#define KDSM_RW_LOOK_TRIES	4

static int kdsm_rw_look(struct kdsm_rw *rw, u64 *word)
{
	return kdsm_rw_atomic(rw, &rw->home.op, rw->node, 0, word);
}

/* ---- counting ---- */

/* Is the node counted, and, if it is not heard, an error. */
static int kdsm_rw_count_node(struct kdsm_rw *rw, unsigned int node)
{
	const struct kdsm_rw_user *user = &rw->home.users[node];
	struct kdsm_wire_rw wire, reply;
	unsigned int i;
	int err;

	kdsm_rw_name(rw, &wire);
	for (i = 0; i < KDSM_RW_COUNT_TRIES; i++) {
		err = kdsm_rw_send(rw, node, KDSM_MESSAGE_RW_COUNT, &wire, &reply);
		if (err != -EAGAIN)
			break;
		usleep_range(20, 100);
	}
	if (err)
		return err;
	switch (le16_to_cpu(reply.what)) {
	case KDSM_RW_IN:
		return 1;
	case KDSM_RW_ASKING:
	case KDSM_RW_WAITING:
		if (le32_to_cpu(reply.turn) == user->turn)
			return user->answer == KDSM_RW_COME;
		return le16_to_cpu(reply.what) == KDSM_RW_ASKING;
	default:
		return 0;
	}
}

/* Put the counter right, if it may be wrong. */
static int kdsm_rw_count(struct kdsm_rw *rw)
{
	struct kdsm_rw_home *home = &rw->home;
	u32 readers = 0, node, i;
	u64 word, add;
	int ret;

	lockdep_assert_held(&home->mutex);
	if (!home->wrong)
		return 0;
	for (node = 0; node < rw->nodes; node++) {
		ret = home->users[node].joined ? kdsm_rw_count_node(rw, node) : 0;
		if (ret < 0)
			return ret;
		readers += ret;
	}
	for (i = 0; i < KDSM_RW_LOOK_TRIES; i++) {
		ret = kdsm_rw_look(rw, &word);
		if (ret)
			continue;
		add = (readers - (u64)kdsm_rw_readers(word)) * KDSM_RW_READER;
		if (!bitmap_empty(home->registered, KDSM_MAX_NODES) && !(word & KDSM_RW_ASKED))
			add += KDSM_RW_ASKED;
		if (!add) {
			home->wrong = false;
			if (!readers && word & KDSM_RW_WANT)
				kdsm_rw_tell(rw, word);
			return 0;
		}
		kdsm_rw_atomic(rw, &home->op, rw->node, add, &word);
	}
	return -EAGAIN;
}

/* ---- who asks ---- */

/* A new question: what the answer is. Or an error: it is as if it were not asked. */
static int kdsm_rw_decide(struct kdsm_rw *rw, unsigned int node, u32 turn, u32 question)
{
	struct kdsm_rw_home *home = &rw->home;
	struct kdsm_rw_user *user = &home->users[node];
	u64 word, add = -KDSM_RW_READER;
	int err;

	/* Who asks for something else has heard. */
	__clear_bit(node, home->going);
	if (question == KDSM_RW_COUNT_ME) {
		user->turn = turn;
		user->answer = KDSM_RW_OUT;
		home->wrong = true;
		return 0;
	}
	err = kdsm_rw_look(rw, &word);
	if (err)
		return err;
	user->turn = turn;
	user->found = word & KDSM_RW_FOUND;
	if (kdsm_rw_in_use(rw, rw->node, word) && !(word & KDSM_RW_WANT)) {
		user->answer = KDSM_RW_COME;
		return 0;
	}
	if (!kdsm_rw_in_use(rw, rw->node, word)) {
		user->answer = KDSM_RW_MOVED;
	} else if (question == KDSM_RW_TRY) {
		user->answer = KDSM_RW_OUT;
	} else {
		user->answer = KDSM_RW_WAIT;
		__set_bit(node, home->registered);
		if (!(word & KDSM_RW_ASKED))
			add += KDSM_RW_ASKED;
	}
	err = kdsm_rw_atomic(rw, &home->op, rw->node, add, &word);
	if (err)
		home->wrong = true;
	else if (kdsm_rw_readers(word) == 1 && word & KDSM_RW_WANT)
		kdsm_rw_tell(rw, word);
	return 0;
}

/*
 * A registered node repeats its question, so it still waits. The writing thread may have died,
 * and the writer's node notices that only when it checks.
 */
static void kdsm_rw_remind(struct kdsm_rw *rw)
{
	u64 word;

	if (!kdsm_rw_look(rw, &word) && word & KDSM_RW_WANT)
		kdsm_rw_tell(rw, word);
}

int kdsm_rw_serve_ask(struct kdsm_rw *rw, struct kdsm_request *request)
{
	const struct kdsm_wire_rw *wire = request->data;
	struct kdsm_wire_rw *reply = request->reply;
	struct kdsm_rw_home *home = &rw->home;
	struct kdsm_rw_user *user;
	u32 turn, question;
	int err = 0;

	if (request->length != sizeof(*wire) || request->from >= rw->nodes)
		return -EINVAL;
	turn = le32_to_cpu(wire->turn);
	question = le16_to_cpu(wire->what);
	if (question > KDSM_RW_COUNT_ME)
		return -EINVAL;
	user = &home->users[request->from];
	mutex_lock(&home->mutex);
	if (!user->joined || (s32)(turn - user->turn) < 0)
		err = -ESTALE;		/* said again, of long ago */
	else if (turn != user->turn)
		err = kdsm_rw_decide(rw, request->from, turn, question);
	else if (test_bit(request->from, home->registered))
		kdsm_rw_remind(rw);
	err = err ?: kdsm_rw_count(rw);
	*reply = *wire;
	reply->what = cpu_to_le16(user->answer);
	reply->found = kdsm_rw_found_write(user->found);
	mutex_unlock(&home->mutex);
	request->reply_length = sizeof(*reply);
	return err;
}

int kdsm_rw_serve_join(struct kdsm_rw *rw, struct kdsm_request *request)
{
	if (request->from >= rw->nodes)
		return -EINVAL;
	mutex_lock(&rw->home.mutex);
	rw->home.users[request->from].joined = true;
	mutex_unlock(&rw->home.mutex);
	return 0;
}

/* ---- opening ---- */

/* Those that are registered are counted in, or have to go elsewhere. */
static void kdsm_rw_let_in(struct kdsm_rw *rw, enum kdsm_rw_answer answer, u64 found)
{
	struct kdsm_rw_home *home = &rw->home;
	unsigned int node;

	for_each_set_bit(node, home->registered, KDSM_MAX_NODES) {
		home->users[node].answer = answer;
		home->users[node].found = found;
		__set_bit(node, home->going);
	}
	bitmap_zero(home->registered, KDSM_MAX_NODES);
}

static int kdsm_rw_open_here(struct kdsm_rw *rw, u32 span, u64 found)
{
	struct kdsm_rw_home *home = &rw->home;
	u32 waiters = bitmap_weight(home->registered, KDSM_MAX_NODES), was, i;
	bool retire;
	u64 word, mine;
	int err;

	for (i = 0; i < KDSM_RW_LOOK_TRIES; i++) {
		err = kdsm_rw_look(rw, &word);
		if (err)
			continue;
		was = kdsm_rw_span(word);
		retire = !kdsm_rw_in_use(rw, rw->node, span ? span * KDSM_RW_SPAN : word);
		mine = word & (KDSM_RW_WANT | KDSM_RW_WRITE | KDSM_RW_ASKED);
		/* It was done, and the answer lost; or by a swap, and nobody is registered. */
		if (!mine && (!span || span == was) && (word & KDSM_RW_FOUND) == found)
			goto done;
		err = kdsm_rw_atomic(rw, &home->op, rw->node,
				     (retire ? 0 : waiters * KDSM_RW_READER) - mine +
				     (span ? (span - (u64)was) * KDSM_RW_SPAN : 0) +
				     found - (word & KDSM_RW_FOUND), &word);
		if (!err)
			goto done;
	}
	return -EAGAIN;
done:
	kdsm_rw_let_in(rw, retire ? KDSM_RW_MOVED : KDSM_RW_COME, found);
	return 0;
}

int kdsm_rw_serve_open(struct kdsm_rw *rw, struct kdsm_request *request)
{
	const struct kdsm_wire_rw *wire = request->data;
	struct kdsm_rw_home *home = &rw->home;
	u32 turn, span;
	bool going;
	int err = 0;

	if (request->length != sizeof(*wire) || request->from >= rw->nodes)
		return -EINVAL;
	turn = le32_to_cpu(wire->turn);
	span = le16_to_cpu(wire->what);
	if (span > rw->nodes && span != KDSM_RW_RETIRED)
		return -EINVAL;
	mutex_lock(&home->mutex);
	/* Once: others may have closed it since. */
	if ((s32)(turn - home->users[request->from].opened) > 0) {
		/* Who is let in must have been taken off before. */
		err = kdsm_rw_count(rw) ?:
		      kdsm_rw_open_here(rw, span, kdsm_rw_found_read(wire->found));
		if (!err)
			home->users[request->from].opened = turn;
	}
	going = !bitmap_empty(home->going, KDSM_MAX_NODES);
	mutex_unlock(&home->mutex);
	if (going)
		rw->ops->home(rw);
	return err;
}

bool kdsm_rw_home_work(struct kdsm_rw *rw)
{
	struct kdsm_rw_home *home = &rw->home;
	struct kdsm_wire_rw wire;
	unsigned int node = 0;
	bool all = true;
	u32 turn;
	int err;

	for (;; node++) {
		mutex_lock(&home->mutex);
		node = find_next_bit(home->going, KDSM_MAX_NODES, node);
		if (node < KDSM_MAX_NODES) {
			kdsm_rw_name(rw, &wire);
			turn = home->users[node].turn;
			wire.turn = cpu_to_le32(turn);
			wire.what = cpu_to_le16(home->users[node].answer);
			wire.found = kdsm_rw_found_write(home->users[node].found);
		}
		mutex_unlock(&home->mutex);
		if (node >= KDSM_MAX_NODES)
			return all;
		err = kdsm_rw_send(rw, node, KDSM_MESSAGE_RW_GO, &wire, NULL);
		mutex_lock(&home->mutex);
		if (!kdsm_message_was_heard(err))
			all = false;
		else if (home->users[node].turn == turn)
			__clear_bit(node, home->going);
		mutex_unlock(&home->mutex);
	}
}

/* ---- what homes say ---- */

int kdsm_rw_serve_go(struct kdsm_rw *rw, struct kdsm_request *request)
{
	const struct kdsm_wire_rw *wire = request->data;
	bool granted;
	u32 answer;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	answer = le16_to_cpu(wire->what);
	if (answer != KDSM_RW_COME && answer != KDSM_RW_MOVED)
		return -EINVAL;
	spin_lock_bh(&rw->lock);
	granted = (rw->state == KDSM_RW_ASKING || rw->state == KDSM_RW_WAITING) &&
		  le32_to_cpu(wire->turn) == rw->turn && request->from == rw->at;
	if (granted)
		kdsm_rw_heard(rw, wire);
	spin_unlock_bh(&rw->lock);
	if (granted)
		rw->ops->granted(rw);
	return 0;
}

/* Where this node stands, which does not change before it has joined again. */
int kdsm_rw_serve_count(struct kdsm_rw *rw, struct kdsm_request *request)
{
	const struct kdsm_wire_rw *wire = request->data;
	struct kdsm_wire_rw *reply = request->reply;
	u32 state;
	int err = 0;

	if (request->length != sizeof(*wire) || request->from >= rw->nodes)
		return -EINVAL;
	*reply = *wire;
	spin_lock_bh(&rw->lock);
	state = rw->at == request->from ? rw->state : KDSM_RW_NONE;
	if (state == KDSM_RW_ENTERING || state == KDSM_RW_LEAVING) {
		err = -EAGAIN;
	} else {
		__clear_bit(request->from, rw->joined);
		rw->counts++;
		reply->what = cpu_to_le16(state);
		reply->turn = cpu_to_le32(rw->turn);
	}
	spin_unlock_bh(&rw->lock);
	request->reply_length = sizeof(*reply);
	return err;
}

int kdsm_rw_serve_tell(struct kdsm_rw *rw, struct kdsm_request *request)
{
	if (request->length != sizeof(struct kdsm_wire_rw))
		return -EINVAL;
	spin_lock_bh(&rw->lock);
	rw->told = true;
	spin_unlock_bh(&rw->lock);
	rw->ops->told(rw);
	return 0;
}
