// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The barrier of coherent regions: a tree of nodes that carries signatures. The barrier of
 * partitioned regions is in core/barrier.c.
 *
 * Each node counts arrivals and never resets the count. With P participants on a node, the
 * n-th to arrive (from 0) belongs to generation n / P + 1. The last participant of a
 * generation carries the node's signature, while the others wait for done. No participant
 * arrives for a generation before the previous one is done on its node. Therefore a place
 * is free again when the next message is put there:
 * - A child puts generation g + 1 after it received g from its parent, and the parent sent
 *   g after it had read the messages of all its children.
 * - A parent sends g + 1 after it received the child's g + 1, and the child sent that after
 *   it had read g.
 *
 * In a round with cargo, a message's value and data are one put, to places of their own, which
 * takes the turn of the value that follows a signature.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "coherent/coherent.h"

#define ARITY	KDSM_TREE_BARRIER_ARITY

struct place {
	_Alignas(64) uint64_t value;	/* the generation of the message */
	uint8_t bytes[KDSM_SIGNATURE_PLACE - 8];
};

/* The words of a part. arrivals and broken change by kdsm_faa() and kdsm_cas() only. */
struct area {
	uint64_t arrivals;		/* of this node's participants, in all generations */

	_Alignas(64) uint64_t done;	/* generation that is over; only this node puts it */

	_Alignas(64) uint64_t broken;	/* 0, or BROKEN and the culprit */
	struct place up[ARITY], down;
};

_Static_assert(sizeof(struct area) <= KDSM_TREE_BARRIER_SIZE, "the area outgrew its place");
_Static_assert(sizeof(struct place) % KDSM_SIGNATURE_PLACE == 0, "places have no tail");

/* A message with cargo */
struct crate {
	uint64_t value;
	uint8_t data[KD_CARGO_MOST];
};

_Static_assert(sizeof(struct crate) == KD_CARGO_SIZE, "crates have no tail");

#define BROKEN		(UINT64_C(0xb10c) << 48)
#define SLICE		100000000	/* longest wait between two liveness checks, in ns */
#define PLACE(barrier, field) ((barrier)->offset + offsetof(struct area, field))

static uint64_t load(const struct kdsm_tree_barrier *barrier, uint64_t place)
{
	return __atomic_load_n(kdsm_word(barrier->sync, place), __ATOMIC_SEQ_CST);
}

static unsigned int own_node(const struct kdsm_tree_barrier *barrier)
{
	return barrier->sync->node;
}

static bool is_root(const struct kdsm_tree_barrier *barrier)
{
	return barrier->parent == own_node(barrier);
}

/* ---- the tree ---- */

static uint32_t count_of(const uint32_t *participants, unsigned int node)
{
	return participants ? participants[node] : 1;
}

/*
 * Participating nodes are ranked by number. The children of rank r have the ranks r * ARITY
 * + 1 to r * ARITY + ARITY.
 */
static void find_relatives(struct kdsm_tree_barrier *barrier, const uint32_t *participants,
			   unsigned int own_rank)
{
	unsigned int node, rank = 0;

	barrier->parent = own_node(barrier);
	for (node = 0; node < barrier->sync->nodes; node++) {
		if (!count_of(participants, node))
			continue;
		if (rank && (rank - 1) / ARITY == own_rank)
			barrier->children[barrier->child_count++] = node;
		if (own_rank && rank == (own_rank - 1) / ARITY)
			barrier->parent = node;
		rank++;
	}
	if (own_rank)
		barrier->order = (own_rank - 1) % ARITY;
}

int kdsm_tree_barrier_init(struct kdsm_tree_barrier *barrier, struct kdsm_region *region,
			   struct kdsm_region *sync, uint64_t offset,
			   const uint32_t *participants)
{
	unsigned int node, rank = 0, all = 0;
	int ret;

	memset(barrier, 0, sizeof(*barrier));
	if (sync->coherent)
		return kd_not_partitioned(sync);
	if (region && !region->coherent)
		return kd_not_coherent(region);
	ret = region ? kd_pair_check(region, sync) : 0;
	if (!ret)
		ret = kd_place_check(sync, offset, 64, KDSM_TREE_BARRIER_SIZE);
	if (ret)
		return ret;
	for (node = 0; node < sync->nodes; node++) {
		if (node == sync->node)
			rank = all;
		all += count_of(participants, node) != 0;
	}
	if (!all)
		return kd_because(-EINVAL, "kdsm_tree_barrier_init: no node has a participant");
	barrier->region = region;
	barrier->sync = sync;
	barrier->offset = offset;
	barrier->participants = count_of(participants, sync->node);
	if (barrier->participants)
		find_relatives(barrier, participants, rank);
	return 0;
}

/* ---- failing ---- */

static bool is_broken(const struct kdsm_tree_barrier *barrier, unsigned int *culprit)
{
	uint64_t word = load(barrier, PLACE(barrier, broken));

	if (!word)
		return false;
	*culprit = word & 0xffff;
	return true;
}

/*
 * Break the barrier on all nodes. The first culprit that reaches a node stays. A node that
 * these operations do not reach detects the failure by itself.
 */
void kd_tree_barrier_break(const struct kdsm_tree_barrier *barrier, unsigned int culprit)
{
	unsigned int node, nodes = barrier->sync->nodes, n = 0;
	struct kdsm_op ops[32];

	for (node = 0; node < nodes; node++) {
		ops[n++] = kdsm_op_cas(node, PLACE(barrier, broken), 0, BROKEN | culprit);
		if (n == 32 || node == nodes - 1) {
			kdsm_vector(barrier->sync, ops, n);
			n = 0;
		}
	}
}

/* ---- waiting ---- */

/* One participant's visit to the barrier */
struct turn {
	const struct kdsm_tree_barrier *barrier;
	uint64_t generation;
	uint64_t begin, timeout;
	struct kd_cargo *cargo;	/* or NULL */
	unsigned int culprit;
	uint64_t silent;	/* when the awaited node began to be silent, or 0 */
	bool told;		/* another participant reported the failure */
};

/* Messages have numbers: those of the children come first, then that of the parent. */
#define DOWN	ARITY

/* Offset of the signature of a message in a part */
static uint64_t signature_place(const struct turn *turn, unsigned int message)
{
	return message == DOWN ? PLACE(turn->barrier, down) : PLACE(turn->barrier, up[message]);
}

/* Offset of the word that announces a message */
static uint64_t value_place(const struct turn *turn, unsigned int message)
{
	return turn->cargo ? turn->cargo->place + message * sizeof(struct crate) :
			     signature_place(turn, message);
}

/* Returns the node whose message is missing, judged from the own part alone. */
static unsigned int missing(const struct turn *turn)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	unsigned int i;

	if (load(barrier, PLACE(barrier, arrivals)) < turn->generation * barrier->participants)
		return own_node(barrier);
	for (i = 0; i < barrier->child_count; i++)
		if (load(barrier, value_place(turn, i)) != turn->generation)
			return barrier->children[i];
	return barrier->parent;
}

/* Check the timeout, and whether the barrier broke or node from died. Returns 0 if none. */
static int look_around(struct turn *turn, unsigned int from)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	uint64_t begin = kdsm_now(), word;
	int ret;

	if (is_broken(barrier, &turn->culprit)) {
		turn->told = true;
		return -EPIPE;
	}
	if (!kdsm_left(turn->begin, turn->timeout)) {
		turn->culprit = missing(turn);
		return -ETIMEDOUT;
	}
	if (from == own_node(barrier))
		return 0;
	/* Any successful get shows that the node is alive. */
	ret = kdsm_get(barrier->sync, from, PLACE(barrier, broken), &word, sizeof(word));
	if (kdsm_silence(&turn->silent, begin, ret) >= 0)
		return 0;
	turn->culprit = from;
	return -EPIPE;
}

/* Wait until a place of the own part, or done, has this generation. */
static int await(struct turn *turn, uint64_t place, unsigned int from)
{
	uint64_t left;
	int ret;

	turn->silent = 0;
	do {
		left = kdsm_left(turn->begin, turn->timeout);
		ret = kdsm_await(turn->barrier->sync, place, turn->generation,
				 left < SLICE ? left : SLICE);
		if (ret != -ETIMEDOUT)
			return ret;
		ret = look_around(turn, from);
	} while (!ret);
	return ret;
}

/* Wait for a message. Its data, if the round has any, stay in the part. */
static int receive(struct turn *turn, unsigned int message, unsigned int from,
		   struct kdsm_signature *signature)
{
	int ret = await(turn, value_place(turn, message), from);

	if (ret)
		return ret;
	ret = kdsm_signature_get(turn->barrier->sync, signature_place(turn, message), signature);
	if (ret)
		turn->culprit = from;
	return ret;
}

/* Returns the data of a message that has been received. */
static const void *unpack(const struct turn *turn, unsigned int message)
{
	return kdsm_word(turn->barrier->sync, value_place(turn, message)) + 1;
}

static void pack(const struct turn *turn, struct crate *crate)
{
	crate->value = turn->generation;
	if (turn->cargo)
		memcpy(crate->data, turn->cargo->sum, turn->cargo->bytes);
}

/*
 * Repeating these puts is safe: no other node puts to these places, and this node puts
 * there again only after the receiver has read the contents. However, a put that failed must
 * not arrive after the next one. The module closes the connection of a put that failed
 * before the put is repeated. So only the network could still delay the old put, and would
 * have to do so for as long as the receiver takes to answer.
 */
static int send(struct turn *turn, struct kdsm_op *ops, unsigned int count)
{
	int ret = kdsm_vector_retry(turn->barrier->sync, ops, count,
				    kdsm_left(turn->begin, turn->timeout));

	if (ret)
		turn->culprit = ops[0].node;
	return ret == -EHOSTDOWN ? -EPIPE : ret;
}

/* Fill in the two puts of a message. */
static void message_ops(const struct turn *turn, struct kdsm_op ops[2], unsigned int to,
			unsigned int message, const struct kdsm_signature *signature,
			const struct crate *crate)
{
	kdsm_signature_ops(ops, to, signature_place(turn, message), signature, &crate->value);
	ops[1].offset = value_place(turn, message);
	if (turn->cargo)
		ops[1].length += turn->cargo->bytes;
}

static int send_up(struct turn *turn, const struct kdsm_signature *signature)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	struct kdsm_op ops[2];
	struct crate crate;

	pack(turn, &crate);
	message_ops(turn, ops, barrier->parent, barrier->order, signature, &crate);
	return send(turn, ops, 2);
}

static int send_down(struct turn *turn, const struct kdsm_signature *signature)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	struct kdsm_op ops[2 * ARITY];
	struct crate crate;
	unsigned int i;

	pack(turn, &crate);
	for (i = 0; i < barrier->child_count; i++)
		message_ops(turn, &ops[2 * i], barrier->children[i], DOWN, signature, &crate);
	return send(turn, ops, 2 * i);
}

/* Carry signatures and cargo up and down the tree, on behalf of the whole node. */
static int carry(struct turn *turn)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	struct kdsm_signature sum, theirs;
	unsigned int i;
	int ret = 0;

	kdsm_signature_init(&sum);
	if (barrier->region)
		ret = kdsm_release(barrier->region, &sum);
	for (i = 0; i < barrier->child_count && !ret; i++) {
		ret = receive(turn, i, barrier->children[i], &theirs);
		if (!ret)
			kdsm_signature_merge(&sum, &theirs);
		if (!ret && turn->cargo)
			ret = turn->cargo->combine(turn->cargo, unpack(turn, i));
	}
	if (!ret && !is_root(barrier)) {
		ret = send_up(turn, &sum);
		if (!ret)
			ret = receive(turn, DOWN, barrier->parent, &sum);
		if (!ret && turn->cargo)
			memcpy(turn->cargo->sum, unpack(turn, DOWN), turn->cargo->bytes);
	}
	/* Send down before acquiring, because the nodes below wait longest. */
	if (!ret && barrier->child_count)
		ret = send_down(turn, &sum);
	if (!ret && barrier->region)
		ret = kdsm_acquire(barrier->region, &sum);
	return ret;
}

/* The last participant to arrive on this node leads. */
static int lead(struct turn *turn)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	int ret = turn->cargo ? turn->cargo->collect(turn->cargo) : 0;

	/*
	 * If no other node takes part, all participants share the copies of this node and
	 * need no signature.
	 */
	if (!ret && (barrier->child_count || !is_root(barrier)))
		ret = carry(turn);
	if (!ret && turn->cargo)
		turn->cargo->deliver(turn->cargo);
	if (!ret)
		ret = kd_put_word(barrier->sync, own_node(barrier), PLACE(barrier, done),
				  turn->generation);
	return ret;
}

/* Arrive, and lead or wait for this node's leader. */
static int take_part(struct turn *turn)
{
	const struct kdsm_tree_barrier *barrier = turn->barrier;
	unsigned int own = own_node(barrier);
	uint64_t former, done;
	int ret;

	if (is_broken(barrier, &turn->culprit)) {
		turn->told = true;
		return -EPIPE;
	}
	ret = kdsm_faa(barrier->sync, own, PLACE(barrier, arrivals), 1, &former);
	if (ret)
		return ret;
	turn->generation = former / barrier->participants + 1;
	/* The other participants of this generation may have completed it meanwhile. */
	done = load(barrier, PLACE(barrier, done));
	if (done != turn->generation - 1 && done != turn->generation)
		return kd_because(-EINVAL,
				  "region \"%s\": the bytes at offset %" PRIu64 " do not belong to this barrier, or more than %u threads of this node arrived",
				  barrier->sync->name, barrier->offset, barrier->participants);
	if (former % barrier->participants == barrier->participants - 1)
		return lead(turn);
	return await(turn, PLACE(barrier, done), own);
}

int kd_tree_barrier_meet(const struct kdsm_tree_barrier *barrier, struct kd_cargo *cargo,
			 uint64_t timeout, unsigned int *culprit)
{
	struct turn turn = {
		.barrier = barrier, .timeout = timeout, .begin = kdsm_now(), .cargo = cargo,
	};
	int ret;

	turn.culprit = own_node(barrier);
	if (!barrier->participants)
		return kd_because(-EINVAL, "no thread of node %u takes part in the barrier",
				  own_node(barrier));
	ret = take_part(&turn);
	if (ret && !turn.told)
		kd_tree_barrier_break(barrier, turn.culprit);
	if (ret && culprit)
		*culprit = turn.culprit;
	if (ret == -ETIMEDOUT || ret == -EPIPE)
		kd_because(ret, "tree barrier: node %u %s",
			   turn.culprit,
			   ret == -EPIPE ? "failed, or cannot be reached" : "did not arrive in time");
	return ret;
}

int kdsm_tree_barrier_wait(const struct kdsm_tree_barrier *barrier, uint64_t timeout,
			   unsigned int *culprit)
{
	return kd_tree_barrier_meet(barrier, NULL, timeout, culprit);
}
