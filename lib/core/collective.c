// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A gang of processes that take steps together: one tree of words, and heartbeats.
 * core/core.h describes the interface.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "binomial.h"
#include "core/core.h"

/*
 * A message, which is one put with KDSM_OP_NOTIFY. All of word has arrived once seq, the first
 * word of the put, equals the step that the receiver awaits.
 */
struct line {
	uint64_t seq;
	uint64_t word[KD_GANG_WORDS];
};

/* The layout of the gang's words in every part */
struct area {
	struct line up[KDSM_TREE_CHILDREN];	/* written by the children */
	struct line down;		/* written by the parent */

	_Alignas(64) uint64_t beat;	/* heartbeat: grows while the process lives */
	uint64_t claim;			/* not 0: a process of this node has joined */
	uint64_t abort;			/* not 0: failure word of the aborting member */
	uint64_t stop;			/* not 0: a member asks to stop */
	uint64_t pause;			/* number of the newest pause that a member asks for */
};

_Static_assert(sizeof(struct area) <= KD_GANG_BYTES, "the area outgrew its place");

/* Heartbeat period, and interval between liveness checks, in ns */
#define SLICE		250000000

static struct area *own(const struct kd_gang *gang)
{
	return (void *)((char *)kdsm_region_part(gang->region) + gang->offset);
}

#define PLACE(gang, field) ((gang)->offset + offsetof(struct area, field))

static void *beat(void *data)
{
	struct kd_gang *gang = data;

	kd_mutex_lock(&gang->lock);
	while (!gang->stopping) {
		__atomic_add_fetch(&own(gang)->beat, 1, __ATOMIC_RELAXED);
		kd_cond_wait_for(&gang->stop, &gang->lock, SLICE);
	}
	kd_mutex_unlock(&gang->lock);
	return NULL;
}

int kd_gang_join(struct kd_gang *gang, struct kdsm_region *region,
		 uint64_t offset, uint64_t timeout)
{
	struct kdsm *kdsm = kdsm_region_cluster(region);
	uint64_t former;
	int r;

	memset(gang, 0, sizeof(*gang));
	gang->region = region;
	gang->offset = offset;
	gang->node = kdsm_node(kdsm);
	gang->nodes = region->nodes;
	gang->whole = gang;
	gang->timeout = timeout;
	gang->culprit = gang->node;
	r = kdsm_cas(region, gang->node, PLACE(gang, claim), 0, 1, &former);
	if (r < 0)
		return r;
	if (former)
		return -EBUSY;
	pthread_mutex_init(&gang->lock, NULL);
	pthread_cond_init(&gang->stop, NULL);
	if (gang->nodes > 1) {
		r = kd_thread_start(&gang->heart, 0, beat, gang);
		gang->beating = r == 0;
	}
	return r;
}

void kd_gang_some(struct kd_gang *gang, struct kd_gang *whole, uint64_t offset,
		  unsigned int first)
{
	*gang = (struct kd_gang){
		.region = whole->region, .offset = offset, .whole = whole, .first = first,
		.node = whole->node - first, .nodes = whole->nodes - first,
		.timeout = whole->timeout, .culprit = whole->node,
	};
}

void kd_gang_leave(struct kd_gang *gang)
{
	if (!gang->region)
		return;
	if (gang->beating) {
		kd_mutex_lock(&gang->lock);
		gang->stopping = true;
		kd_cond_broadcast(&gang->stop);
		kd_mutex_unlock(&gang->lock);
		kd_thread_join(&gang->heart, KDSM_FOREVER);
	}
	pthread_cond_destroy(&gang->stop);
	pthread_mutex_destroy(&gang->lock);
	gang->region = NULL;
}

void kd_gang_abort(struct kd_gang *gang, int error)
{
	uint64_t word = kd_failure_word(gang->node, error);
	unsigned int node;

	/*
	 * A member that this put does not reach stops when it misses this node's heartbeat.
	 */
	for (node = 0; node < gang->nodes; node++)
		if (node != gang->node)
			kdsm_put(gang->region, gang->first + node, PLACE(gang, abort), &word,
				 sizeof(word));
}

int kd_gang_aborted(const struct kd_gang *gang, unsigned int *culprit)
{
	uint64_t word = __atomic_load_n(&own(gang)->abort, __ATOMIC_RELAXED);
	unsigned int node;
	int error = kd_failure_read(word, gang->nodes, gang->node, &node);

	if (error && culprit)
		*culprit = gang->first + node;
	return error;
}

/* Store a number into a word of all members; place is where it is in the region. */
static void tell_all(struct kd_gang *gang, uint64_t *word, uint64_t place, uint64_t number)
{
	unsigned int node;

	__atomic_store_n(word, number, __ATOMIC_RELAXED);
	for (node = 0; node < gang->nodes; node++)
		if (node != gang->node)
			kdsm_put(gang->region, node, place, &number, sizeof(number));
}

int kd_gang_tell(struct kd_gang *gang, unsigned int node, uint64_t offset, uint64_t word)
{
	struct kdsm_op op = kdsm_op_put(gang->first + node, offset, &word, sizeof(word));

	return kdsm_vector_retry(gang->region, &op, 1, gang->timeout);
}

void kd_gang_stop(struct kd_gang *gang)
{
	/* Each member ends its own work when it sees the request; a team agrees to end. */
	tell_all(gang, &own(gang)->stop, PLACE(gang, stop), 1);
}

bool kd_gang_stopping(const struct kd_gang *gang)
{
	return __atomic_load_n(&own(gang)->stop, __ATOMIC_RELAXED);
}

void kd_gang_pause(struct kd_gang *gang, uint64_t number)
{
	tell_all(gang, &own(gang)->pause, PLACE(gang, pause), number);
}

uint64_t kd_gang_pausing(const struct kd_gang *gang)
{
	return __atomic_load_n(&own(gang)->pause, __ATOMIC_RELAXED);
}

/* Tracks the heartbeat of the node for which this node waits. */
struct watch {
	unsigned int node;
	uint64_t beat, since;	/* the newest beat, and when it was first seen, in ns */
	uint64_t silent;	/* when gets began to fail, in ns, or 0 */
};

/* Check for an abort and for the death of the watched node. Returns 0 if neither is found. */
static int look_around(struct kd_gang *gang, struct watch *watch)
{
	uint64_t now = kdsm_now(), b;
	int r;

	if (kd_gang_aborted(gang->whole, &gang->culprit) || kd_gang_aborted(gang, &gang->culprit))
		return -ECANCELED;
	r = kdsm_get(gang->region, watch->node, PLACE(gang->whole, beat), &b, sizeof(b));
	r = kdsm_silence(&watch->silent, now, r);
	if (r < 0) {
		gang->culprit = watch->node;
		return r;
	}
	if (!r && b != watch->beat) {
		watch->beat = b;
		watch->since = now;
	} else if (now - watch->since > gang->timeout) {
		gang->culprit = watch->node;
		return r ? -EHOSTDOWN : -ETIMEDOUT;
	}
	return 0;
}

/* Wait until step seq arrives in a line of the own part. */
static int receive(struct kd_gang *gang, struct line *line, uint64_t place,
		   uint64_t seq, unsigned int from, uint64_t *words)
{
	struct watch watch = { from, 0, kdsm_now(), 0 };
	enum kd_phase phase = kd_phase(KD_PHASE_BARRIER);
	uint64_t looked = watch.since, seen;
	unsigned int i;
	int r = 0;

	/* Acquire: the kernel stores seq after the words of the put. See send(). */
	while (r == 0 && (seen = __atomic_load_n(&line->seq, __ATOMIC_ACQUIRE)) != seq) {
		r = kdsm_wait(gang->region, place + offsetof(struct line, seq), seen, SLICE);
		if (r == -ETIMEDOUT || r == -EINTR)
			r = 0;
		if (r == 0 && kdsm_now() - looked >= SLICE) {
			r = look_around(gang, &watch);
			looked = kdsm_now();
		}
	}
	kd_phase(phase);
	if (r < 0)
		return r;
	for (i = 0; i < KD_GANG_WORDS; i++)
		words[i] = __atomic_load_n(&line->word[i], __ATOMIC_RELAXED);
	return 0;
}

static int send(struct kd_gang *gang, unsigned int node, uint64_t place,
		uint64_t seq, const uint64_t *words)
{
	enum kd_phase phase = kd_phase(KD_PHASE_BARRIER);
	struct line line = { .seq = seq };
	struct kdsm_op op = kdsm_op_put(node, place, &line, sizeof(line));
	int r;

	memcpy(line.word, words, sizeof(line.word));
	op.flags = KDSM_OP_NOTIFY;
	/*
	 * Repeating is safe: only this node puts there, and this node puts the next step
	 * only after the receiver has read this one.
	 */
	r = kdsm_vector_retry(gang->region, &op, 1, gang->timeout);
	kd_phase(phase);
	if (r < 0)
		gang->culprit = node;
	return r == -ETIMEDOUT ? -EHOSTDOWN : r;
}

int kd_gang_gather(struct kd_gang *gang, uint64_t *words, kd_gang_combine combine,
		   void *context)
{
	uint64_t theirs[KD_GANG_WORDS], place = PLACE(gang, up);
	unsigned int k;
	int r;

	gang->up++;
	for (k = 0; k < KDSM_TREE_CHILDREN; k++) {
		if (!kdsm_tree_has_child(gang->node, k, gang->nodes))
			continue;
		r = receive(gang, &own(gang)->up[k], place + k * sizeof(struct line),
			    gang->up, gang->first + kdsm_tree_child(gang->node, k), theirs);
		if (r < 0)
			return r;
		r = combine ? combine(context, words, theirs) : 0;
		if (r < 0) {
			gang->culprit = gang->first + gang->node;
			return r;
		}
	}
	if (!gang->node)
		return 0;
	k = kdsm_tree_order(gang->node);
	return send(gang, gang->first + kdsm_tree_parent(gang->node),
		    place + k * sizeof(struct line), gang->up, words);
}

int kd_gang_scatter(struct kd_gang *gang, uint64_t *words)
{
	unsigned int k;
	int r;

	gang->down++;
	if (gang->node) {
		r = receive(gang, &own(gang)->down, PLACE(gang, down), gang->down,
			    gang->first + kdsm_tree_parent(gang->node), words);
		if (r < 0)
			return r;
	}
	for (k = KDSM_TREE_CHILDREN; k--; ) {	/* the largest subtree first: it takes longest */
		if (!kdsm_tree_has_child(gang->node, k, gang->nodes))
			continue;
		r = send(gang, gang->first + kdsm_tree_child(gang->node, k), PLACE(gang, down),
			 gang->down, words);
		if (r < 0)
			return r;
	}
	return 0;
}
