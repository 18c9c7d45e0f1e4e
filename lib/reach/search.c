// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rounds of a breadth-first search. How the search fits into a small table is in
 * search_collect.c, and saturation in saturate.c.
 *
 * In a round every node runs a task that computes the successors of the current states by
 * the node's relations, and unites them. One half of the relations is a task that others
 * can steal, and so are the steps of every product and union. The unions of the nodes are
 * united along the gang's tree. The tree's root subtracts the states visited before; the
 * rest are the states of the next round. Every round has another root, because a node
 * stores new BDD nodes in its own memory and works best on BDD nodes in its own memory;
 * changing the root balances memory and work. The search ends with the round that finds no
 * new state. Between two rounds no node has a task.
 *
 * With chaining a node computes the successors of the current states and of all states that
 * the node has found in this round (O. Roig, J. Cortadella, E. Pastor, "Verification of
 * Asynchronous Circuits by BDD-based Model Checking of Petri Nets", 1995). There are fewer
 * rounds, but a round is no longer one step of the model.
 *
 * Relation i belongs to node i mod N in every round, so that a node finds its earlier
 * results in its own part of the operation cache. A node that is done with its relations
 * steals from others.
 *
 * If the table is small, a round consists of slices, each for some of the relations. No
 * node has a task between two slices, either, so garbage is collected there. An operation
 * that finds the table full fails. All nodes learn of the failure with the unions, collect
 * garbage, and repeat the slice or a smaller one.
 *
 * An operation also fails when it finds a state of a Petri net in which a place has more tokens
 * than its bits can hold (the relation's trap, model_pnml.c). All nodes learn of that, widen the
 * place, and repeat the slice. The states found before are kept.
 *
 * A request to stop (progress.c) also lets operations fail. Then no slice is repeated, and the
 * search ends with the states of the rounds before; saturation also keeps what the round found.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define STACK	(UINT64_C(128) << 20)	/* bytes; recursion over 32768 bits, and stolen tasks */
#define DEQUE	512			/* tasks; deeper tasks cannot be stolen */

#pragma GCC visibility push(hidden)
/* As kd_round(), and from all states found up to then */
KDSM_TASK_DECLARE(kdsm_bdd, kd_chain, kdsm_bdd, from, uint32_t, first, uint32_t, count,
		  uint32_t, step)
/* The new ones among the states found, and all states visited including them */
struct kd_news {
	kdsm_bdd states, visited;
};

KDSM_TASK_DECLARE(struct kd_news, kd_sift, kdsm_bdd, found, kdsm_bdd, visited)
#pragma GCC visibility pop

KDSM_TASK_DEFINE(kdsm_bdd, kd_round, kdsm_bdd, from, uint32_t, first, uint32_t, count,
		 uint32_t, step)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	uint32_t half = (count + 1) / 2;
	kdsm_bdd one, other;

	if (!count)
		return KDSM_BDD_FALSE;
	if (count == 1)
		return kd_successors(kdsm_worker, kdsm_head, from, first);
	KDSM_SPAWN(kd_round, from, first + half * step, count - half, step);
	one = KDSM_CALL(kd_round, from, first, half, step);
	if (!kd_valid(one)) {
		KDSM_DROP();
		return one;
	}
	other = KDSM_SYNC(kd_round);
	if (!kd_valid(other))
		return other;
	one = KD_OR(one, other, 0);
	kdsm_table_flush(w->table);
	return one;
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_chain, kdsm_bdd, from, uint32_t, first, uint32_t, count,
		 uint32_t, step)
{
	kdsm_bdd found = from, one;

	for (; count && kd_valid(found); count--, first += step) {
		one = kd_successors(kdsm_worker, kdsm_head, found, first);
		found = kd_valid(one) ? KD_OR(found, one, 0) : one;
	}
	return found;
}

KDSM_TASK_DEFINE(struct kd_news, kd_sift, kdsm_bdd, found, kdsm_bdd, visited)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_news news;

	news.visited = KDSM_BDD_INVALID;
	news.states = KDSM_CALL(kd_and, found, visited ^ KDSM_BDD_COMPLEMENT, 0);
	if (kd_valid(news.states))
		news.visited = KD_OR(visited, news.states, 0);
	kdsm_table_flush(w->table);
	return news;
}

int kd_search_failure(struct kd_search *s, int error, kdsm_bdd result)
{
	if (!error && kd_valid(result))
		return 0;
	if (kd_gang_aborted(&s->gang, NULL))
		return -ECANCELED;
	if (error)
		return error == -EOWNERDEAD ? -EHOSTDOWN : error;
	s->trap = kd_trap_number(result);
	kd_end(s->worker, result);
	return kdsm_bdd_error(s->worker);
}

/* A round of saturation; on failure s->found keeps what it found. */
static int saturation_slice(struct kd_search *s, kdsm_bdd *found)
{
	struct kd_saturated saturated;
	int r = kd_saturation_round(s, &saturated);

	*found = saturated.states;
	s->before_slice = s->found;
	r = kd_search_failure(s, r, saturated.failure);
	if (r < 0 && kd_valid(saturated.states) && saturated.states != KDSM_BDD_FALSE) {
		s->gained = s->found != saturated.states;
		s->found = saturated.states;
	}
	return r;
}

/* Compute this node's share of a slice. */
static int search_slice(struct kd_search *s, kdsm_bdd *found)
{
	uint32_t node = s->gang.node, nodes = s->gang.nodes;
	uint32_t first = s->from + (node + nodes - s->from % nodes) % nodes;
	uint32_t count = first < s->to ? (s->to - first + nodes - 1) / nodes : 0;
	int r;

	if (s->saturation)
		return saturation_slice(s, found);
	if (s->options->chaining)
		r = KD_RUN(s->worker, found, kd_chain, s->current, first, count, nodes);
	else
		r = KD_RUN(s->worker, found, kd_round, s->current, first, count, nodes);
	return kd_search_failure(s, r, *found);
}

static int sift(struct kd_search *s, uint64_t *found, uint64_t *visited)
{
	struct kd_news news;
	int r;

	r = KD_RUN(s->worker, &news, kd_sift, *found, s->visited);
	r = kd_search_failure(s, r, news.states);
	if (r == 0)
		r = kd_search_failure(s, 0, news.visited);
	*found = news.states;
	*visited = news.visited;
	return r;
}

/*
 * Words that the nodes exchange after a slice. VISITED, KEPT and DONE travel only down. KEPT is
 * 0, SLICE or PART: the slice was taken, or a part of it before it failed. FULL is set with the
 * bits NO_ROOM and LATE if the slice failed: the table was full, or the steps of the slice were
 * used up. The bit POINT comes with LATE, and means that the slice pauses for a checkpoint of the
 * states in VISITED. The bit STOP means that a node has been asked to stop, and EARLY that node 0
 * has seen enough (early.c), whether the slice failed or not.
 */
enum { FOUND, VISITED, TRAP, FULL, USED, KEPT, DONE };
enum { SLICE = 1, PART };
enum { NO_ROOM = 1, LATE = 2, STOP = 4, EARLY = 8, POINT = 16 };

/*
 * A full table, the end of a slice and a request to stop are no failures, but the slice is
 * repeated, now or by another search: set *full, which means no result.
 */
static int excuse(int error, uint64_t *full)
{
	switch (error) {
	case -ENOSPC:
		*full |= NO_ROOM;
		return 0;
	case -ETIME:
		*full |= LATE;
		return 0;
	case -EINTR:
		*full |= LATE | STOP;
		return 0;
	case -EAGAIN:
		*full |= LATE | POINT;
		return 0;
	default:
		return error;
	}
}

static bool failed(const uint64_t *words)
{
	return words[FULL] & (NO_ROOM | LATE);
}

static int unite(void *context, uint64_t *mine, const uint64_t *theirs)
{
	struct kdsm_bdd_worker *w = context;

	if (mine[TRAP] < theirs[TRAP])
		mine[TRAP] = theirs[TRAP];
	mine[USED] += theirs[USED];
	mine[FULL] |= theirs[FULL];
	if (failed(mine) || mine[TRAP])
		return 0;
	mine[FOUND] = kdsm_bdd_or(w, mine[FOUND], theirs[FOUND] & KD_EDGE);
	return mine[FOUND] == KDSM_BDD_INVALID ? excuse(kdsm_bdd_error(w), &mine[FULL]) : 0;
}

static bool ended(const struct kd_search *s)
{
	return kd_search_complete(s) || s->early.ends ||
	       (s->options->levels && s->levels >= s->options->levels);
}

/*
 * The root of this round. With properties, traces or an early end it is node 0, which checks the
 * properties and keeps the states of every round.
 */
static unsigned int root(const struct kd_search *s)
{
	bool first = s->model.properties || s->options->trace || s->options->stop_at_violation;

	return first ? 0 : s->levels % s->gang.nodes;
}

static int check_properties(struct kd_search *s, kdsm_bdd states)
{
	kdsm_bdd current = s->current;
	int r;

	s->current = states;
	r = kd_property_check(s);
	s->current = current;
	return r;
}

/* On the root, when all relations have been taken: compute the states of the next round. */
static int end_round(struct kd_search *s, uint64_t *words)
{
	int r;

	words[FOUND] = s->found;
	r = sift(s, &words[FOUND], &words[VISITED]);
	if (r < 0)
		return excuse(r, &words[FULL]);
	r = check_properties(s, words[FOUND]);
	words[DONE] = r == 0;
	if (r == 0 && kd_early_look(s, words[FOUND], words[VISITED]))
		words[FULL] |= EARLY;
	return excuse(r, &words[FULL]);
}

/*
 * On the root: the states of a checkpoint within a round go to VISITED, together with those of the
 * last one in this round, because a slice may find fewer states than the one before. Return
 * whether they have grown.
 */
static bool save_point(struct kd_search *s, kdsm_bdd found, uint64_t *words)
{
	const kdsm_bdd before = s->saved;
	kdsm_bdd all = kdsm_bdd_or(s->worker, found, before);

	if (all == KDSM_BDD_INVALID) {
		kdsm_bdd_error(s->worker);
		all = found;
	}
	s->saved = all;
	words[VISITED] = all;
	return all != before;
}

/*
 * On the root: look at the states of a slice that has failed. Keep those of a round of saturation
 * that nobody repeats.
 */
static int end_part(struct kd_search *s, uint64_t *words)
{
	kdsm_bdd found = s->found;
	int r = 0;

	words[KEPT] = s->gained ? PART : 0;
	if (!s->saturation || words[TRAP] || found == KDSM_BDD_FALSE)
		return 0;
	/* the search may never end this round; without room for the check it does without */
	if (found != s->before_slice) {
		r = check_properties(s, found);
		if (r < 0 && r != -ENOSPC)
			return r;
		if (kd_early_look(s, found, found))
			words[FULL] |= EARLY;
	}
	if (words[FULL] & (STOP | EARLY))
		return end_round(s, words);
	if (words[FULL] == (LATE | POINT)) {
		words[KEPT] = save_point(s, found, words) ? PART : 0;
		s->found = s->before_slice;
	}
	if (words[FULL] == LATE && !s->portfolio)
		s->found = s->before_slice;
	return 0;
}

/* On the root: add the states that the slice found to the states of the round. */
static int end_slice(struct kd_search *s, uint64_t *words)
{
	kdsm_bdd found;

	if (failed(words) || words[TRAP])
		return end_part(s, words);
	found = kdsm_bdd_or(s->worker, s->found, words[FOUND]);
	if (found == KDSM_BDD_INVALID)
		return excuse(kdsm_bdd_error(s->worker), &words[FULL]);
	s->found = found;
	words[KEPT] = SLICE;
	return s->to == s->model.relations ? end_round(s, words) : 0;
}

static void take_over(struct kd_search *s, const uint64_t *words)
{
	s->current = words[FOUND] & KD_EDGE;
	s->visited = words[VISITED] & KD_EDGE;
	s->found = KDSM_BDD_FALSE;
	s->saved = KDSM_BDD_FALSE;
}

/*
 * Update the search from the words. All nodes have the same words, so all make the same
 * decisions.
 */
static int go_on(struct kd_search *s, const uint64_t *words)
{
	enum kd_outcome outcome = failed(words) ? KD_FULL : KD_SLICE_DONE;

	if (words[KEPT] == SLICE)
		kd_room_progress(s);
	else if (words[KEPT] == PART)
		s->room.fresh = false;
	if (words[DONE]) {
		take_over(s, words);
		outcome = ended(s) ? KD_SEARCH_DONE : KD_ROUND_DONE;
	}
	return kd_room_plan(s, outcome, words[USED]);
}

/* Words of a widening: FULL, and the root's states */
enum { WIDE_CURRENT = FOUND, WIDE_VISITED = VISITED, WIDE_LOADED = KEPT };

static int add_used(void *context, uint64_t *mine, const uint64_t *theirs)
{
	(void)context;
	mine[USED] += theirs[USED];
	return 0;
}

/* Add the new bits of the place to the states of every round; node 0 is the root. */
static int extend_frontiers(struct kd_search *s, unsigned int place, unsigned int bits)
{
	kdsm_bdd wide;
	uint64_t i;

	for (i = 0; s->frontier && i < s->levels; i++) {
		wide = kd_model_extend(s->worker, &s->model, place, bits, s->frontier[i]);
		if (wide == KDSM_BDD_INVALID)
			return kdsm_bdd_error(s->worker);
		s->frontier[i] = wide;
	}
	return kd_property_publish(s);
}

/*
 * On the root: add the new bits of the place to the states that the search keeps. If the table
 * is full, none of them has changed. The states of a checkpoint are those of the first attempt.
 */
static int extend(struct kd_search *s, unsigned int place, unsigned int bits)
{
	kdsm_bdd *kept[] = { &s->visited, &s->current, &s->found, &s->loaded }, wide[4];
	unsigned int count = s->model.share ? 3 : 4, i;

	for (i = 0; i < count; i++) {
		wide[i] = kd_model_extend(s->worker, &s->model, place, bits, *kept[i]);
		if (wide[i] == KDSM_BDD_INVALID)
			return kdsm_bdd_error(s->worker);
	}
	for (i = 0; i < count; i++)
		*kept[i] = wide[i];
	return 0;
}

/* One attempt of extend() for all nodes. */
static int try_extend(struct kd_search *s, unsigned int place, unsigned int bits, bool *full)
{
	bool root = s->gang.node == s->gang.root;
	uint64_t words[KD_GANG_WORDS] = { [USED] = kd_table_flushed(s->store->table) };
	int r;

	r = kd_gang_gather(&s->gang, words, add_used, NULL);
	if (r == 0 && root) {
		r = extend_frontiers(s, place, bits);
		if (r == 0)
			r = extend(s, place, bits);
		r = excuse(r, &words[FULL]);
		words[WIDE_CURRENT] = s->current;
		words[WIDE_VISITED] = s->visited;
		words[WIDE_LOADED] = s->loaded;
	}
	if (r == 0)
		r = kd_gang_scatter(&s->gang, words);
	if (r < 0)
		return r;
	s->current = words[WIDE_CURRENT] & KD_EDGE;
	s->visited = words[WIDE_VISITED] & KD_EDGE;
	s->loaded = words[WIDE_LOADED] & KD_EDGE;
	*full = words[FULL];
	/* saturation has results in the operation cache that no longer hold: clear it */
	if (!*full)
		return s->saturation ? kd_room_collect(s, 0) : 0;
	return kd_room_plan(s, KD_FULL, words[USED]);
}

/* Widen a place on every node, and take the states along. The slice is repeated afterwards. */
static int widen(struct kd_search *s, unsigned int place)
{
	int bits = kd_model_widen(s->worker, &s->model, place, s->message), r;
	bool full;

	r = bits < 0 ? bits : kd_saturation_begin(s);
	if (s->saturation)
		s->levels = 1;		/* other groups: begin with the last one */
	if (!s->model.share)
		s->loaded_levels = 0;
	do {
		if (r == 0)
			r = try_extend(s, place, bits, &full);
	} while (r == 0 && full);
	return r;
}

/*
 * End the search early, on all nodes. A round that is not complete does not count; a search that
 * continues from a checkpoint repeats it.
 */
static int stop(struct kd_search *s, const uint64_t *words)
{
	bool whole = words[DONE] && !failed(words);

	s->stopped = words[FULL] & STOP;
	s->early.ends = words[FULL] & EARLY;
	if (whole)
		return go_on(s, words);
	if (words[DONE])
		take_over(s, words);
	s->found = KDSM_BDD_FALSE;
	s->levels--;
	return 0;
}

/* ---- rounds ---- */

/*
 * Exchange the results of a slice. If full is not 0, or if it met a trap, this node has no
 * result. *end tells why the level ends: DONE, LATE, or 0 if it goes on.
 */
static int exchange(struct kd_search *s, kdsm_bdd mine, uint64_t full, unsigned int *end)
{
	uint64_t words[KD_GANG_WORDS] = {
		[FOUND] = full || s->trap ? KDSM_BDD_FALSE : mine,
		[TRAP] = s->trap,
		[FULL] = full | (kd_stopping(s) ? STOP : 0),
		[USED] = kd_table_flushed(s->store->table),
	};
	int r;

	s->trap = 0;
	r = kd_gang_gather(&s->gang, words, unite, s->worker);
	if (r == 0 && s->gang.node == s->gang.root)
		r = end_slice(s, words);
	if (r == 0)
		r = kd_gang_scatter(&s->gang, words);
	if (r < 0)
		return r;
	__atomic_store_n(&s->slice, s->slice + 1, __ATOMIC_RELAXED);
	if (words[TRAP])
		return widen(s, words[TRAP] - 1);
	if (words[FULL] & (STOP | EARLY)) {
		*end = DONE;
		return stop(s, words);
	}
	if (words[FULL] == (LATE | POINT)) {
		kd_checkpoint_within(s, words[VISITED] & KD_EDGE,
				     words[VISITED] && words[KEPT] == PART);
		if (!s->portfolio)	/* attempts have so many steps, with and without pauses */
			kd_portfolio_slice(s);
		return 0;
	}
	if (words[FULL] == LATE) {
		*end = s->portfolio ? LATE : 0;
		if (!s->portfolio)
			kd_early_continue(s);
		return 0;
	}
	*end = words[DONE] ? DONE : 0;
	r = go_on(s, words);
	if (r == -ENOSPC && s->portfolio) {
		r = kd_portfolio_full(s);
		*end = LATE;
	}
	return r;
}

/* Fetch the nodes of the current states that are in other parts, in batches. */
static int bring_near(struct kd_search *s)
{
	struct kd_walk walk;
	int r = 0;

	if (s->gang.nodes > 1) {
		r = kd_walk(&walk, s->worker, s->current);
		kd_walk_destroy(&walk);
	}
	return r;
}

/* Take all relations, in slices for which the table has room. */
static int one_level(struct kd_search *s, unsigned int *end)
{
	kdsm_bdd found = KDSM_BDD_FALSE;
	uint64_t collections = UINT64_MAX;
	uint64_t full;
	int r;

	*end = 0;
	s->gang.root = root(s);
	do {
		r = 0;
		if (collections != s->room.sum.count)	/* a collection clears the node cache */
			r = bring_near(s);
		collections = s->room.sum.count;
		if (r == 0)
			r = search_slice(s, &found);
		full = 0;
		if (s->trap)
			r = 0;
		r = excuse(r, &full);
		if (r == 0)
			r = exchange(s, found, full, end);
	} while (r == 0 && !*end);
	if (r == 0 && *end == LATE)
		r = kd_portfolio_switch(s);
	s->gang.root = 0;
	return r;
}

/*
 * After a checkpoint was loaded: widen the places on all nodes as they were when node 0 wrote
 * it. Node 0 has the widths in s->widths, or NULL.
 */
int kd_search_share_widths(struct kd_search *s)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	unsigned int place = 0;
	int r;

	if (!s->model.marking)
		return 0;
	do {
		memset(words, 0, sizeof(words));
		r = kd_gang_gather(&s->gang, words, NULL, NULL);
		while (s->widths && place < s->model.marking->places &&
		       s->widths[place] <= s->model.marking->width[place])
			place++;
		if (s->widths && place < s->model.marking->places)
			words[TRAP] = place + 1;
		if (r == 0)
			r = kd_gang_scatter(&s->gang, words);
		if (r == 0 && words[TRAP])
			r = kd_model_widen(s->worker, &s->model, words[TRAP] - 1, s->message);
	} while (r >= 0 && words[TRAP]);
	free(s->widths);
	s->widths = NULL;
	if (r >= 0)
		r = kd_saturation_begin(s);
	return r < 0 ? r : kd_property_publish(s);
}

/*
 * Check the states that the search begins with, which end_round() does for those of later rounds.
 * While node 0 has no room for that, all nodes let the table grow.
 */
static int check_first(struct kd_search *s)
{
	bool all = s->model.properties || s->options->stop_at_violation;
	uint64_t words[KD_GANG_WORDS];
	int r = 0;

	while (r == 0 && all) {
		memset(words, 0, sizeof(words));
		r = kd_gang_gather(&s->gang, words, NULL, NULL);
		if (r == 0 && s->gang.node == 0) {
			r = excuse(kd_property_check(s), &words[FULL]);
			if (r == 0 && kd_early_look(s, s->visited, s->visited))
				words[FULL] |= EARLY;
		}
		if (r == 0)
			r = kd_gang_scatter(&s->gang, words);
		all = failed(words);
		if (r == 0 && all)
			r = kd_room_grow(s);
	}
	s->early.ends = r == 0 && s->options->stop_at_violation && words[FULL] & EARLY;
	return r;
}

/*
 * Search from s->current, the initial states or a checkpoint's, until a round finds no new
 * state.
 */
int kd_search_run(struct kd_search *s)
{
	unsigned int end = 0;
	int r;

	s->found = KDSM_BDD_FALSE;
	s->saved = KDSM_BDD_FALSE;
	__atomic_store_n(&s->slice, 1, __ATOMIC_RELAXED);
	kd_room_begin(s);
	kd_portfolio_slice(s);
	r = check_first(s);
	kd_progress_begin(s);
	while (r == 0 && !s->stopped && !ended(s)) {
		r = kd_trace_note(s);
		s->levels++;
		if (r == 0)
			r = one_level(s, &end);
		kd_progress_level(s);
		if (r == 0 && end != LATE)	/* then another attempt is about to begin */
			kd_checkpoint_write(s, s->stopped || ended(s));
	}
	kd_progress_end(s);
	if (r == 0 && s->current != KDSM_BDD_FALSE)
		r = kd_trace_note(s);
	/* tasks report a lost node as -EOWNERDEAD, whatever the operation */
	return r == -EOWNERDEAD ? -EHOSTDOWN : r;
}

static struct kdsm_tasks_attr tasks_attr(void)
{
	return (struct kdsm_tasks_attr){
		.stack = STACK, .node_workers = KDSM_REACH_WORKERS, .deque = DEQUE,
	};
}

/* Offset of the tasks in a part; the gang's words and the store are in front of them */
static uint64_t tasks_place(const struct kdsm_bdd_attr *bdd, unsigned int nodes)
{
	return KD_STORE + (kdsm_bdd_part_bytes(bdd, nodes) + 63) / 64 * 64;
}

uint64_t kd_search_part_bytes(const struct kdsm_bdd_attr *bdd, unsigned int nodes)
{
	struct kdsm_tasks_attr attr = tasks_attr();

	return tasks_place(bdd, nodes) + kdsm_tasks_bytes(&attr);
}

int kd_search_prepare(struct kd_search *s)
{
	s->store->context = s;
	kd_room_prepare(s);
	return kdsm_bdd_worker_new(s->store, &s->worker);
}

/* A search with one worker on one node needs no tasks. */
int kd_search_start(struct kd_search *s)
{
	struct kdsm_tasks_attr attr = tasks_attr();
	int r;

	if (s->sharers->nodes == 1 && s->options->workers == 1)
		return 0;
	attr.workers = s->options->workers;
	attr.timeout = s->options->timeout;
	kdsm_bdd_tasks(s->store, &attr);
	r = kdsm_tasks_open(s->sharers->region, tasks_place(&s->bdd, s->sharers->nodes), &attr,
			    &s->tasks);
	if (r == 0)
		kdsm_bdd_use_tasks(s->worker, s->tasks);
	return r;
}

void kd_search_stop(struct kd_search *s)
{
	kdsm_tasks_close(s->tasks);
	kdsm_bdd_worker_free(s->worker);
	kd_portfolio_end(s);
	kd_saturation_free(s->saturation);
	kd_answers_end(s);
	free(s->bad);
	free(s->frontier);
	free(s->widths);
}
