// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rounds of a breadth-first search. How the search fits into a small table is in
 * search_collect.c, and saturation in saturate.c.
 *
 * A round is a task of this node: it computes the successors of the current states by all
 * relations, and unites them. One half of the relations is a task that other workers can steal,
 * and so are the steps of every product and union. Then the states visited before are subtracted;
 * the rest are the states of the next round. The search ends with the round that finds no new
 * state. Between two rounds there is no task.
 *
 * With chaining the node computes the successors of the current states and of all states that it
 * has found in this round (O. Roig, J. Cortadella, E. Pastor, "Verification of Asynchronous
 * Circuits by BDD-based Model Checking of Petri Nets", 1995). There are fewer rounds, but a round
 * is no longer one step of the model.
 *
 * If the table is small, a round consists of slices, each for some of the relations. There is no
 * task between two slices, either, so garbage is collected there. An operation that finds the
 * table full fails. Then the search collects garbage, and repeats the slice or a smaller one.
 *
 * An operation also fails when it finds a state of a Petri net in which a place has more tokens
 * than its bits can hold (the relation's trap, model_pnml.c). Then the search widens the place, and
 * repeats the slice. The states found before are kept.
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
KDSM_TASK_DECLARE(kdsm_bdd, kd_chain, kdsm_bdd, from, uint32_t, first, uint32_t, count)
/* The new ones among the states found, and all states visited including them */
struct kd_news {
	kdsm_bdd states, visited;
};

KDSM_TASK_DECLARE(struct kd_news, kd_sift, kdsm_bdd, found, kdsm_bdd, visited)
#pragma GCC visibility pop

KDSM_TASK_DEFINE(kdsm_bdd, kd_round, kdsm_bdd, from, uint32_t, first, uint32_t, count)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	uint32_t half = (count + 1) / 2;
	kdsm_bdd one, other;

	if (!count)
		return KDSM_BDD_FALSE;
	if (count == 1)
		return kd_successors(kdsm_worker, kdsm_head, from, first);
	KDSM_SPAWN(kd_round, from, first + half, count - half);
	one = KDSM_CALL(kd_round, from, first, half);
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

KDSM_TASK_DEFINE(kdsm_bdd, kd_chain, kdsm_bdd, from, uint32_t, first, uint32_t, count)
{
	kdsm_bdd found = from, one;

	for (; count && kd_valid(found); count--, first++) {
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
	if (kd_gang_aborted(&s->cluster, NULL))
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

/* Compute a slice. */
static int search_slice(struct kd_search *s, kdsm_bdd *found)
{
	uint32_t count = s->to - s->from;
	int r;

	if (s->saturation)
		return saturation_slice(s, found);
	if (s->options->chaining)
		r = KD_RUN(s->worker, found, kd_chain, s->current, s->from, count);
	else
		r = KD_RUN(s->worker, found, kd_round, s->current, s->from, count);
	return kd_search_failure(s, r, *found);
}

/*
 * A slice that has been taken, or has failed. full has the bits NO_ROOM and LATE if the slice
 * failed: the table was full, or the steps of the slice were used up. The bit POINT comes with
 * LATE, and means that the slice pauses for a checkpoint of the states in visited. The bit STOP
 * means that somebody asks the search to stop, and EARLY that the search has seen enough (early.c),
 * whether the slice failed or not.
 */
struct slice {
	kdsm_bdd found, visited;	/* of the slice; at the end of a round: new ones, and all */
	unsigned int full;
	enum { NOTHING, SLICE, PART } kept;	/* PART: what a slice found before it failed */
	bool done;			/* the round has ended */
};

enum { NO_ROOM = 1, LATE = 2, STOP = 4, EARLY = 8, POINT = 16 };

/*
 * A full table, the end of a slice and a request to stop are no failures, but the slice is
 * repeated, now or by another search: set *full, which means no result.
 */
static int excuse(int error, unsigned int *full)
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

static bool failed(const struct slice *slice)
{
	return slice->full & (NO_ROOM | LATE);
}

static bool ended(const struct kd_search *s)
{
	return kd_search_complete(s) || s->early.ends ||
	       (s->options->levels && s->levels >= s->options->levels);
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

/* When all relations have been taken: compute the states of the next round. */
static int end_round(struct kd_search *s, struct slice *slice)
{
	struct kd_news news;
	int r;

	r = KD_RUN(s->worker, &news, kd_sift, s->found, s->visited);
	r = kd_search_failure(s, r, news.states);
	if (r == 0)
		r = kd_search_failure(s, 0, news.visited);
	if (r < 0)
		return excuse(r, &slice->full);
	slice->found = news.states;
	slice->visited = news.visited;
	r = check_properties(s, news.states);
	slice->done = r == 0;
	if (r == 0 && kd_early_look(s, news.states, news.visited))
		slice->full |= EARLY;
	return excuse(r, &slice->full);
}

/*
 * The states of a checkpoint within a round: those of this slice together with those of the last
 * one in this round, because a slice may find fewer states than the one before. Return whether they
 * have grown.
 */
static bool save_point(struct kd_search *s, struct slice *slice)
{
	const kdsm_bdd before = s->saved;
	kdsm_bdd all = kdsm_bdd_or(s->worker, s->found, before);

	if (all == KDSM_BDD_INVALID) {
		kdsm_bdd_error(s->worker);
		all = s->found;
	}
	s->saved = all;
	slice->visited = all;
	return all != before;
}

/*
 * Look at the states of a slice that has failed. Keep those of a round of saturation that does not
 * begin again.
 */
static int end_part(struct kd_search *s, struct slice *slice)
{
	kdsm_bdd found = s->found;
	int r = 0;

	slice->kept = s->gained ? PART : NOTHING;
	if (!s->saturation || s->trap || found == KDSM_BDD_FALSE)
		return 0;
	/* the search may never end this round; without room for the check it does without */
	if (found != s->before_slice) {
		r = check_properties(s, found);
		if (r < 0 && r != -ENOSPC)
			return r;
		if (kd_early_look(s, found, found))
			slice->full |= EARLY;
	}
	if (slice->full & (STOP | EARLY))
		return end_round(s, slice);
	if (slice->full == (LATE | POINT)) {
		slice->kept = save_point(s, slice) ? PART : NOTHING;
		s->found = s->before_slice;
	}
	/*
	 * Begin the slice again. Most of its results are in the operation cache, and the states
	 * found are a worse start (portfolio.c).
	 */
	if (slice->full == LATE && !s->portfolio)
		s->found = s->before_slice;
	if (slice->full == NO_ROOM && kd_room_begins_again(s)) {
		slice->kept = NOTHING;
		s->found = s->before_slice;
	}
	return 0;
}

/* Add the states that the slice found to the states of the round. */
static int end_slice(struct kd_search *s, struct slice *slice)
{
	kdsm_bdd found;

	if (failed(slice) || s->trap)
		return end_part(s, slice);
	found = kdsm_bdd_or(s->worker, s->found, slice->found);
	if (found == KDSM_BDD_INVALID)
		return excuse(kdsm_bdd_error(s->worker), &slice->full);
	s->found = found;
	slice->kept = SLICE;
	return s->to == s->model.relations ? end_round(s, slice) : 0;
}

static void take_over(struct kd_search *s, const struct slice *slice)
{
	s->current = slice->found;
	s->visited = slice->visited;
	s->found = KDSM_BDD_FALSE;
	s->saved = KDSM_BDD_FALSE;
}

static int go_on(struct kd_search *s, const struct slice *slice)
{
	enum kd_outcome outcome = failed(slice) ? KD_FULL : KD_SLICE_DONE;

	if (slice->kept == SLICE)
		kd_room_progress(s);
	else if (slice->kept == PART)
		s->room.fresh = false;
	if (slice->done) {
		take_over(s, slice);
		outcome = ended(s) ? KD_SEARCH_DONE : KD_ROUND_DONE;
	}
	return kd_room_plan(s, outcome);
}

/* Add the new bits of the place to the states of every round. */
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
 * Add the new bits of the place to the states that the search keeps. If the table is full, none of
 * them has changed. The states of a checkpoint are those of the first attempt.
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

/* Widen a place, and take the states along. The slice is repeated afterwards. */
static int widen(struct kd_search *s)
{
	unsigned int place = s->trap - 1;
	int bits = kd_model_widen(s->worker, &s->model, place, s->message), r;

	s->trap = 0;
	r = bits < 0 ? bits : kd_saturation_begin(s);
	if (s->saturation)
		s->levels = 1;		/* other groups: begin with the last one */
	if (!s->model.share)
		s->loaded_levels = 0;
	while (r == 0) {
		r = extend_frontiers(s, place, bits);
		if (r == 0)
			r = extend(s, place, bits);
		if (r != -ENOSPC)
			break;
		r = kd_room_plan(s, KD_FULL);
	}
	/* saturation has results in the operation cache that no longer hold: clear it */
	return r == 0 && s->saturation ? kd_room_collect(s, 0) : r;
}

/*
 * End the search early. A round that is not complete does not count; a search that continues from
 * a checkpoint repeats it.
 */
static int stop(struct kd_search *s, const struct slice *slice)
{
	bool whole = slice->done && !failed(slice);

	s->stopped = slice->full & STOP;
	s->early.ends = slice->full & EARLY;
	if (whole)
		return go_on(s, slice);
	if (slice->done)
		take_over(s, slice);
	s->found = KDSM_BDD_FALSE;
	s->levels--;
	return 0;
}

/* ---- rounds ---- */

/* Why a level ends, or that it goes on */
enum end { ON, DONE, SWITCH };

/* Look at the result of a slice, and prepare the next one. */
static int finish_slice(struct kd_search *s, struct slice *slice, enum end *end)
{
	int r;

	if (kd_stopping(s))
		slice->full |= STOP;
	r = end_slice(s, slice);
	if (r < 0)
		return r;
	__atomic_store_n(&s->slice, s->slice + 1, __ATOMIC_RELAXED);
	if (s->trap)
		return widen(s);
	if (slice->full & (STOP | EARLY)) {
		*end = DONE;
		return stop(s, slice);
	}
	if (slice->full == (LATE | POINT)) {
		kd_checkpoint_within(s, slice->visited, slice->visited && slice->kept == PART);
		if (!s->portfolio)	/* attempts have so many steps, with and without pauses */
			kd_portfolio_slice(s);
		return 0;
	}
	if (slice->full == LATE) {
		*end = s->portfolio ? SWITCH : ON;
		if (!s->portfolio)
			kd_early_continue(s);
		return 0;
	}
	*end = slice->done ? DONE : ON;
	r = go_on(s, slice);
	if (r == -ENOSPC && s->portfolio) {
		r = kd_portfolio_full(s);
		*end = SWITCH;
	}
	return r;
}

/* Take all relations, in slices for which the table has room. */
static int one_level(struct kd_search *s, enum end *end)
{
	struct slice slice;
	int r;

	*end = ON;
	do {
		slice = (struct slice){ .found = KDSM_BDD_FALSE };
		r = search_slice(s, &slice.found);
		if (s->trap)
			r = 0;
		r = excuse(r, &slice.full);
		if (r == 0)
			r = finish_slice(s, &slice, end);
	} while (r == 0 && *end == ON);
	return r == 0 && *end == SWITCH ? kd_portfolio_switch(s) : r;
}

/* Begin with the initial states. */
int kd_search_first(struct kd_search *s)
{
	kdsm_bdd initial = kdsm_bdd_publish(s->worker, s->model.initial);

	if (initial == KDSM_BDD_INVALID)
		return kdsm_bdd_error(s->worker);
	s->current = initial;
	s->visited = initial;
	return 0;
}

void kd_search_breadth_first(struct kd_search *s)
{
	kd_saturation_free(s->saturation);
	s->saturation = NULL;
	s->saturates = false;
	kd_room_prepare(s);
}

/* After a checkpoint was loaded: widen the places as they were when it was written. */
int kd_search_widen(struct kd_search *s)
{
	unsigned int place;
	int r = 0;

	if (!s->model.marking)
		return 0;
	for (place = 0; s->widths && r >= 0 && place < s->model.marking->places; place++)
		while (r >= 0 && s->widths[place] > s->model.marking->width[place])
			r = kd_model_widen(s->worker, &s->model, place, s->message);
	free(s->widths);
	s->widths = NULL;
	if (r >= 0)
		r = kd_saturation_begin(s);
	return r < 0 ? r : kd_property_publish(s);
}

/*
 * Check the states that the search begins with, which end_round() does for those of later rounds.
 * While there is no room for that, let the table grow.
 */
static int check_first(struct kd_search *s)
{
	int r = 0;

	if (!s->model.properties && !s->options->stop_at_violation)
		return 0;
	while ((r = kd_property_check(s)) == -ENOSPC && (r = kd_room_grow(s)) == 0)
		;
	s->early.ends = r == 0 && kd_early_look(s, s->visited, s->visited);
	return r;
}

/*
 * Search from s->current, the initial states or a checkpoint's, until a round finds no new
 * state.
 */
int kd_search_run(struct kd_search *s)
{
	enum end end;
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
		if (r == 0 && end != SWITCH)	/* then another attempt is about to begin */
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
		.argsz = sizeof(struct kdsm_tasks_attr),
		.stack = STACK, .node_workers = KDSM_REACH_WORKERS, .deque = DEQUE,
	};
}

/* Offset of the tasks in the store's region; the gang's words and the store are in front of them */
static uint64_t tasks_place(const struct kdsm_bdd_attr *bdd)
{
	return KD_STORE + (kdsm_bdd_part_bytes(bdd, 1) + 63) / 64 * 64;
}

uint64_t kd_search_region_bytes(const struct kdsm_bdd_attr *bdd)
{
	struct kdsm_tasks_attr attr = tasks_attr();

	return tasks_place(bdd) + kdsm_tasks_bytes(&attr);
}

int kd_search_prepare(struct kd_search *s)
{
	s->store->context = s;
	kd_room_prepare(s);
	return kdsm_bdd_worker_new(s->store, &s->worker);
}

/* A search with one worker needs no tasks. */
int kd_search_start(struct kd_search *s)
{
	struct kdsm_tasks_attr attr = tasks_attr();
	int r;

	if (s->options->workers == 1)
		return 0;
	attr.workers = s->options->workers;
	attr.timeout = s->options->timeout;
	kdsm_bdd_tasks(s->store, &attr);
	r = kdsm_tasks_open(s->gang->region, tasks_place(&s->bdd), &attr, &s->tasks);
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
