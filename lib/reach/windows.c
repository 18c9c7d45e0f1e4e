// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A breadth-first search in windows, on several nodes (T. Heyman, D. Geist, O. Grumberg,
 * A. Schuster, "Achieving Scalability in Parallel Reachability Analysis of Very Large Circuits",
 * CAV 2000). Every node owns the states in its window, a set of its own, and the windows of all
 * nodes divide the set of all states. A node keeps the visited states of its window in a store of
 * its own, so its operations never leave the node, and it collects garbage without the others.
 *
 * In a round a node computes the successors of the new states in its window. It sends the states
 * that are new to it to their owners, in an exchange of parcels (windows_exchange.c). The
 * states of its window that it has found or received, and did not know, are the new states of the
 * next round. A node remembers what it has sent: its set s->visited has states of other windows,
 * too. The search ends when a round begins in which no node has a new state.
 *
 * For a small search one node is faster: node 0 searches alone until a round takes many times as
 * long as a remote operation. Then all nodes get the states, and choose the windows
 * (windows_split.c).
 *
 * A node that meets the trap of a place tells all nodes with the exchange. They forget the round,
 * widen the place, and repeat the round. A request to stop ends the round in the same way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows.h"

#define PROBES	4		/* remote operations, to measure one */

unsigned int kd_operations_alone = 500;

/* Words of a step of the gang, and bits of FLAGS */
enum { FLAGS, TRAP, LEVELS, STATES, NODES };
enum { NEWS = 1, MORE = 2, STOP = 4, COUNT = 8, OVER = 16 };

/* ---- the work of a node in a round ---- */

/* Plan the next slice of relations. Only this node uses its table. */
static int plan(struct kd_search *s, enum kd_outcome outcome)
{
	return kd_room_plan(s, outcome);
}

/*
 * Put the successors of the current states into s->found, in slices for which the table has room.
 * Set s->trap, or *stop, if there is no result.
 */
static int successors(struct kd_search *s, bool *stop)
{
	kdsm_bdd found;
	int r = 0;

	s->found = KDSM_BDD_FALSE;
	while (r == 0 && s->from < s->model.relations && s->current != KDSM_BDD_FALSE) {
		r = KD_RUN(s->worker, &found, kd_round, s->current, s->from, s->to - s->from);
		r = kd_search_failure(s, r, found);
		if (s->trap || r == -EINTR) {
			*stop = r == -EINTR;
			return 0;
		} else if (r == -ENOSPC) {
			r = plan(s, KD_FULL);
		} else if (r == 0) {
			s->windows->arrived = found;	/* a collection keeps them */
			r = kd_windows_or(s, s->found, found, &s->found);
			if (r == 0) {
				kd_room_progress(s);
				r = plan(s, KD_SLICE_DONE);
			}
		}
	}
	return r;
}

/* Make those of s->found that are new to this node windows->fresh, and add them to the visited. */
static int sift(struct kd_search *s)
{
	struct kd_windows *d = s->windows;
	int r = kd_windows_and(s, s->found, s->visited ^ KDSM_BDD_COMPLEMENT, &d->fresh);

	s->found = KDSM_BDD_FALSE;
	return r < 0 ? r : kd_windows_or(s, s->visited, d->fresh, &s->visited);
}

/* Add the new bits of a place to states. */
static int extend(struct kd_search *s, unsigned int place, unsigned int bits, kdsm_bdd *states)
{
	kdsm_bdd wide;
	int r;

	do {
		wide = kd_model_extend(s->worker, &s->model, place, bits, *states);
		r = kd_windows_check(s, wide);
	} while (r > 0);
	if (r == 0)
		*states = wide;
	return r;
}

/* All nodes do this. The windows remain: they do not depend on the new bits. */
static int widen(struct kd_search *s, uint64_t trap)
{
	unsigned int place = trap - 1;
	int bits = kd_model_widen(s->worker, &s->model, place, s->message);
	int r = bits < 0 ? bits : extend(s, place, bits, &s->visited);

	return r < 0 ? r : extend(s, place, bits, &s->current);
}

static void begin_round(struct kd_search *s)
{
	s->windows->before = s->visited;
	s->levels++;
}

/* Forget the round. */
static void undo(struct kd_search *s)
{
	struct kd_windows *d = s->windows;
	unsigned int i;

	s->visited = d->before;
	s->found = KDSM_BDD_FALSE;
	d->fresh = KDSM_BDD_FALSE;
	for (i = 0; i < s->windows->team->nodes; i++)
		d->window[i].rest = KDSM_BDD_FALSE;
	kd_windows_forget(s);
	s->levels--;
}

static int end_round(struct kd_search *s)
{
	struct kd_windows *d = s->windows;

	d->before = KDSM_BDD_FALSE;
	d->fresh = KDSM_BDD_FALSE;
	d->received = KDSM_BDD_FALSE;
	d->arrived = KDSM_BDD_FALSE;
	__atomic_store_n(&s->slice, s->slice + 1, __ATOMIC_RELAXED);
	return plan(s, KD_ROUND_DONE);
}

/* Whether the user wants no more levels */
static bool enough(const struct kd_search *s)
{
	return s->options->levels && s->levels >= s->options->levels;
}

/* ---- node 0 alone ---- */

static int round_alone(struct kd_search *s, bool *stop)
{
	int r;

	begin_round(s);
	r = successors(s, stop);
	if (r < 0)
		return r;
	if (s->trap || *stop) {
		undo(s);
		return plan(s, KD_ROUND_DONE);
	}
	r = sift(s);
	s->current = s->windows->fresh;
	if (r == 0)
		r = end_round(s);
	kd_progress_level(s);
	return r;
}

/* On node 0: search until the end, a trap, or a round that takes long. */
static int rounds_alone(struct kd_search *s, uint64_t *words)
{
	uint64_t began, time = 0;
	bool stop = false, over;
	int r = 0;

	over = s->current == KDSM_BDD_FALSE || enough(s);
	while (r == 0 && !over && !stop && !s->trap && time < s->windows->threshold) {
		began = kdsm_now();
		r = round_alone(s, &stop);
		time = kdsm_now() - began;
		over = s->current == KDSM_BDD_FALSE || enough(s);
	}
	words[TRAP] = s->trap;
	words[FLAGS] = (over ? OVER : 0) | (stop ? STOP : 0) |
		       (s->current != KDSM_BDD_FALSE ? NEWS : 0);
	words[LEVELS] = s->levels;
	s->trap = 0;
	return r;
}

/* On the first member: measure a remote operation, to tell what a long round is. */
static int set_threshold(struct kd_search *s)
{
	uint64_t word, began = kdsm_now();
	unsigned int other = s->cluster.node ? 0 : s->cluster.nodes - 1, i;
	int r = 0;

	for (i = 0; r == 0 && i < PROBES; i++)
		r = kdsm_get(s->region, other, 0, &word, sizeof(word));
	if (s->windows->team->nodes == 1)
		s->windows->threshold = UINT64_MAX;
	else
		s->windows->threshold = (kdsm_now() - began) / PROBES * kd_operations_alone;
	return r;
}

/*
 * At the end: replace s->current by a value that is the same on all nodes, because
 * kd_search_complete() looks whether it is FALSE. news: some node has new states.
 */
static void leave_news(struct kd_search *s, bool news)
{
	s->current = news ? KDSM_BDD_TRUE : KDSM_BDD_FALSE;
}

static int alone(struct kd_search *s, bool *over)
{
	uint64_t words[KD_GANG_WORDS];
	int r = s->windows->team->node ? 0 : set_threshold(s);

	do {
		memset(words, 0, sizeof(words));
		if (r == 0)
			r = kd_gang_gather(s->windows->team, words, NULL, NULL);
		if (r == 0 && s->windows->team->node == 0)
			r = rounds_alone(s, words);
		if (r == 0)
			r = kd_gang_scatter(s->windows->team, words);
		if (words[FLAGS] & OVER)	/* the first member has all states */
			r = kd_finish_without(s, r);
		if (r == 0 && words[TRAP])
			r = widen(s, words[TRAP]);
	} while (r == 0 && words[TRAP]);
	s->levels = words[LEVELS];
	s->stopped = words[FLAGS] & STOP;
	*over = words[FLAGS] & (OVER | STOP);
	if (*over)
		leave_news(s, words[FLAGS] & NEWS);
	return r;
}

/* ---- all nodes ---- */

static int combine(void *context, uint64_t *mine, const uint64_t *theirs)
{
	double a, b;

	(void)context;
	mine[FLAGS] |= theirs[FLAGS];
	if (mine[TRAP] < theirs[TRAP])
		mine[TRAP] = theirs[TRAP];
	memcpy(&a, &mine[STATES], sizeof(a));
	memcpy(&b, &theirs[STATES], sizeof(b));
	a += b;
	memcpy(&mine[STATES], &a, sizeof(a));
	mine[NODES] += theirs[NODES];
	return 0;
}

static int agree(struct kd_search *s, uint64_t *words)
{
	int r = kd_gang_gather(s->windows->team, words, combine, NULL);

	if (r == 0 && s->windows->team->node == 0 && kd_progress_due(s))
		words[FLAGS] |= COUNT;
	return r < 0 ? r : kd_gang_scatter(s->windows->team, words);
}

/* Send node 0's states to all. */
static int broadcast(struct kd_search *s, kdsm_bdd *states)
{
	struct kd_windows *d = s->windows;
	uint64_t words[KD_GANG_WORDS];
	int r;

	if (s->windows->team->node == 0)
		d->window[0].rest = *states;
	else
		*states = KDSM_BDD_FALSE;
	do {
		r = kd_windows_pack(s, true);
		memset(words, 0, sizeof(words));
		words[FLAGS] = kd_windows_more(s) ? MORE : 0;
		if (r == 0)
			r = agree(s, words);
		if (r == 0)
			r = kd_windows_receive(s, true, states);
	} while (r == 0 && words[FLAGS] & MORE);
	return r;
}

/* Choose the windows, and leave to every node the states of its own. */
static int divide(struct kd_search *s)
{
	struct kd_windows *d = s->windows;
	int r = broadcast(s, &s->visited);

	s->divided = true;
	if (r == 0)
		r = broadcast(s, &s->current);
	if (r == 0)
		r = kd_windows_split(s);
	if (r == 0)
		r = kd_windows_and(s, s->visited, d->window[d->team->node].states, &s->visited);
	if (r == 0)
		r = kd_windows_and(s, s->current, d->window[d->team->node].states, &s->current);
	return r;
}

/*
 * Count the states of this node's window that were visited before this round, and the BDD nodes of
 * their set, into the words.
 */
static int count(struct kd_search *s, uint64_t *words)
{
	struct kd_windows *d = s->windows;
	double states;
	mpz_t exact;
	int r;

	r = kd_windows_and(s, d->before, d->window[d->team->node].states, &d->arrived);
	if (r < 0)
		return r;
	mpz_init(exact);
	r = kdsm_bdd_count_states(s->worker, d->arrived, s->model.variables, s->model.bits, exact);
	states = mpz_get_d(exact);
	memcpy(&words[STATES], &states, sizeof(states));
	mpz_clear(exact);
	return r < 0 ? r : kdsm_bdd_count_nodes(s->worker, d->arrived, &words[NODES]);
}

/* On node 0: keep the sums of all nodes' counts for reports. This node counted for time ns. */
static void tell(struct kd_search *s, const uint64_t *words, uint64_t time)
{
	double states;

	memcpy(&states, &words[STATES], sizeof(states));
	kd_progress_count(s, states, words[NODES], time);
}

/*
 * Exchange parcels and flags. Only the first exchange of a round has NEWS, STOP and a trap: it
 * decides whether all nodes forget the round.
 */
static int exchange(struct kd_search *s, uint64_t *words, bool first)
{
	uint64_t flags = first ? words[FLAGS] & (NEWS | STOP) : 0;
	int r = kd_windows_pack(s, false);

	words[FLAGS] = flags | (kd_windows_more(s) ? MORE : 0);
	if (r == 0)
		r = agree(s, words);
	if (r == 0 && !words[TRAP] && !(words[FLAGS] & STOP))
		r = kd_windows_receive(s, false, &s->windows->received);
	return r;
}

/* States that came from others are new here if this node has neither found nor received them. */
static int take(struct kd_search *s)
{
	struct kd_windows *d = s->windows;
	int r;

	r = kd_windows_and(s, d->received, s->visited ^ KDSM_BDD_COMPLEMENT, &s->current);
	if (r == 0)
		r = kd_windows_or(s, s->visited, s->current, &s->visited);
	if (r == 0)
		r = kd_windows_or(s, s->current, d->fresh, &s->current);
	return r < 0 ? r : end_round(s);
}

static int round_of_all(struct kd_search *s, bool *over)
{
	uint64_t words[KD_GANG_WORDS] = { 0 }, flags;
	struct kd_windows *d = s->windows;
	bool stop = false, counted = d->count;
	uint64_t time = 0;
	int r;

	begin_round(s);
	words[FLAGS] = s->current != KDSM_BDD_FALSE ? NEWS : 0;
	r = successors(s, &stop);
	if (r == 0 && !s->trap && !stop)
		r = sift(s);
	if (r == 0)
		r = kd_windows_cut(s);
	if (r == 0 && counted) {
		time = kdsm_now();
		r = count(s, words);
		time = kdsm_now() - time;
	}
	words[FLAGS] |= stop ? STOP : 0;
	words[TRAP] = s->trap;
	s->trap = 0;
	if (r == 0)
		r = exchange(s, words, true);
	if (r < 0)
		return r;
	flags = words[FLAGS];
	d->count = flags & COUNT;
	if (counted && s->windows->team->node == 0)
		tell(s, words, time);
	s->stopped = flags & STOP;
	*over = flags & STOP || !(flags & NEWS);
	if (words[TRAP] || *over) {
		undo(s);
		r = words[TRAP] && !*over ? widen(s, words[TRAP]) : 0;
		return r < 0 ? r : end_round(s);
	}
	while (r == 0 && words[FLAGS] & MORE) {
		memset(words, 0, sizeof(words));
		r = exchange(s, words, false);
	}
	if (r == 0)
		r = take(s);
	kd_progress_level(s);
	*over = enough(s);
	return r;
}

/*
 * Send the states of the members' windows to node 0 of the cluster. All nodes call this function.
 * The visited states of a node that has no part of the result are FALSE.
 */
int kd_windows_collect(struct kd_search *s)
{
	uint64_t words[KD_GANG_WORDS];
	struct kd_windows *d = s->windows;
	kdsm_bdd own = s->visited;
	uint64_t news = 0;
	unsigned int i;
	int r = 0;

	if (s->divided)
		r = kd_windows_and(s, own, d->window[d->team->node].states, &own);
	s->visited = own;
	/*
	 * After a race no node reads a parcel any more, because all have agreed on the winner, so
	 * counting begins again. Without a race the count continues: another node may still get
	 * the parcels of the last exchange.
	 */
	if (d->team != &s->cluster)
		d->exchanges = 0;
	d->team = &s->cluster;
	kd_windows_forget(s);
	for (i = 0; i < s->cluster.nodes; i++)
		d->window[i].rest = KDSM_BDD_FALSE;
	if (s->cluster.node)
		d->window[0].rest = own;
	do {
		memset(words, 0, sizeof(words));
		words[FLAGS] = s->current != KDSM_BDD_FALSE ? NEWS : 0;
		if (r == 0)
			r = exchange(s, words, true);
		if (r == 0 && (words[TRAP] || words[FLAGS] & STOP))
			r = -EIO;	/* no node says so here */
		news |= words[FLAGS] & NEWS;
	} while (r == 0 && words[FLAGS] & MORE);
	if (r == 0)
		r = kd_windows_or(s, s->visited, d->received, &s->visited);
	leave_news(s, news);
	return r < 0 ? r : end_round(s);
}

static int run(struct kd_search *s)
{
	bool over;
	int r;

	r = alone(s, &over);
	if (r < 0 || over)
		return r;
	r = divide(s);
	while (r == 0 && !over)
		r = round_of_all(s, &over);
	return r;
}

int kd_windows_run(struct kd_search *s)
{
	int r;

	s->found = KDSM_BDD_FALSE;
	if (s->windows->team->node) {	/* the first member begins alone */
		s->current = KDSM_BDD_FALSE;
		s->visited = KDSM_BDD_FALSE;
	}
	__atomic_store_n(&s->slice, 1, __ATOMIC_RELAXED);
	kd_room_begin(s);
	kd_progress_begin(s);
	r = run(s);
	kd_progress_end(s);
	s->cluster.culprit = s->windows->team->culprit;
	return r == -EOWNERDEAD ? -EHOSTDOWN : r;
}

/* ---- begin and end ---- */

/*
 * Store the edges that the windows keep in root[], and return their number. If root is NULL, return
 * an upper bound of that number.
 */
static unsigned int list_roots(const struct kd_search *s, kdsm_bdd *root)
{
	const struct kd_windows *d = s->windows;
	unsigned int n = 0, i;

	if (!root)
		return 4 + 3 * s->cluster.nodes;
	root[n++] = d->before;
	root[n++] = d->fresh;
	root[n++] = d->received;
	root[n++] = d->arrived;
	for (i = 0; i < s->cluster.nodes; i++) {
		root[n++] = d->window[i].states;
		root[n++] = d->window[i].rest;
		root[n++] = d->window[i].part;
	}
	return n;
}

int kd_windows_open(struct kd_search *s)
{
	struct kd_windows *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	s->windows = d;
	d->team = &s->cluster;
	d->window = calloc(s->cluster.nodes, sizeof(*d->window));
	if (!d->window)
		return -ENOMEM;
	s->more_roots = list_roots;
	return 0;
}

void kd_windows_team(struct kd_search *s, unsigned int first)
{
	struct kd_windows *d = s->windows;

	d->team = &d->some;
	kd_gang_some(d->team, &s->cluster, KD_TEAM, first);
}

void kd_windows_close(struct kd_search *s)
{
	struct kd_windows *d = s->windows;

	if (!d)
		return;
	if (d->window)
		kd_windows_forget(s);
	free(d->window);
	free(d);
	s->windows = NULL;
}
