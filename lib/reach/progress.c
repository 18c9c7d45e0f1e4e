// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The caller's side of a search. The thread that called kdsm_reach_search() waits for the thread
 * that searches, and meanwhile reports progress and passes on requests to stop. So it does both
 * also during a round, which may take hours.
 *
 * Requests come from signal handlers, which only set a flag. The waiting thread looks at the
 * flags many times a second. A request to stop goes to all nodes by the gang. Tasks of each node
 * look at it between the relations that they apply, and the node stops at the end of the current
 * slice (search.c).
 */

#include "internal.h"

#define POLL		20000000	/* ns between two looks at the flags */
#define INTERVAL	200000000	/* default of options.progress_interval, in ns */

static uint64_t interval(const struct kd_search *s)
{
	return s->options->progress_interval ? s->options->progress_interval : INTERVAL;
}

void kd_progress_init(struct kd_progress *p)
{
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->calls, NULL);
	mpz_init(p->states);
}

void kd_progress_destroy(struct kd_progress *p)
{
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->calls);
	mpz_clear(p->states);
}

void kd_progress_begin(struct kd_search *s)
{
	kd_mutex_lock(&s->progress.lock);
	s->progress.began = kdsm_now();
	s->progress.ended = s->progress.began;
	s->progress.level = s->levels;
	s->progress.order = s->model.order;
	kd_mutex_unlock(&s->progress.lock);
	__atomic_store_n(&s->searching, true, __ATOMIC_RELAXED);
}

void kd_progress_end(struct kd_search *s)
{
	__atomic_store_n(&s->searching, false, __ATOMIC_RELAXED);
}

static void fill(struct kd_search *s, struct kdsm_reach_progress *progress)
{
	struct kd_progress *p = &s->progress;
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	uint64_t now = kdsm_now();

	kd_mutex_lock(&p->lock);
	mpz_set(progress->states, p->states);
	progress->nodes = p->nodes;
	progress->level = p->level;
	progress->order = p->order;
	progress->seconds = (now - p->began) / 1e9;
	progress->level_seconds = (now - p->ended) / 1e9;
	kd_mutex_unlock(&p->lock);
	progress->tasks = kd_tasks_so_far(s->store);
	kdsm_counts(s->kdsm, &counts);
	progress->remote = counts.get + counts.put + counts.cas + counts.faa + counts.find +
			   counts.steal;
}

/* Call a function of the options that takes progress. */
static void tell(struct kd_search *s,
		 void (*function)(void *context, const struct kdsm_reach_progress *progress))
{
	struct kdsm_reach_progress progress = { 0 };

	mpz_init(progress.states);
	fill(s, &progress);
	if (kdsm_table_usage(kdsm_bdd_table(s->store), &progress.table_used,
			     &progress.table_size) == 0) {
		kd_mutex_lock(&s->progress.calls);
		function(s->options->context, &progress);
		kd_mutex_unlock(&s->progress.calls);
	}
	mpz_clear(progress.states);
}

/* Without memory for it, the search goes on with the last count. Return whether it is new. */
static bool count(struct kd_search *s)
{
	struct kd_progress *p = &s->progress;
	uint64_t nodes;
	mpz_t states;
	int r;

	mpz_init(states);
	r = kdsm_bdd_count_states(s->worker, s->visited, s->model.variables, s->model.bits,
				  states);
	if (r == 0)
		r = kdsm_bdd_count_nodes(s->worker, s->visited, &nodes);
	if (r == 0) {
		kd_mutex_lock(&p->lock);
		/* attempts in other orders may have found fewer states */
		if (s->options->level || mpz_cmp(states, p->states) > 0)
			mpz_set(p->states, states);
		p->nodes = nodes;
		kd_mutex_unlock(&p->lock);
	} else {
		kdsm_bdd_error(s->worker);
	}
	mpz_clear(states);
	return r == 0;
}

/*
 * Counting may take long, so it gets about a twentieth of the time, but at least 0.1 s if
 * options.level wants to know of each level.
 */
bool kd_progress_due(const struct kd_search *s)
{
	const struct kd_progress *p = &s->progress;
	uint64_t now = kdsm_now();

	if (s->cluster.node)
		return false;
	if (s->options->level)
		return p->spent < (now - p->began) / 20 + 100000000;
	return s->options->progress && now >= __atomic_load_n(&p->count, __ATOMIC_RELAXED);
}

/* Counting took this time, in ns. The longer it took, the later the next count is due. */
static void spend(struct kd_search *s, uint64_t time)
{
	struct kd_progress *p = &s->progress;

	p->spent += time;
	__atomic_store_n(&p->count, kdsm_now() + interval(s) / 4 + 20 * time, __ATOMIC_RELAXED);
}

void kd_progress_count(struct kd_search *s, double states, uint64_t nodes, uint64_t time)
{
	struct kd_progress *p = &s->progress;

	kd_mutex_lock(&p->lock);
	mpz_set_d(p->states, states);
	p->nodes = nodes;
	kd_mutex_unlock(&p->lock);
	spend(s, time);
}

void kd_progress_level(struct kd_search *s)
{
	struct kd_progress *p = &s->progress;
	uint64_t begin = kdsm_now();
	bool counted;

	kd_mutex_lock(&p->lock);
	p->level = s->levels;
	p->order = s->model.order;
	p->ended = begin;
	kd_mutex_unlock(&p->lock);
	if (s->divided || !kd_progress_due(s))
		return;
	counted = count(s);
	spend(s, kdsm_now() - begin);
	if (counted && s->options->level)
		tell(s, s->options->level);
}

/* Look at the flags and at the clock. */
void kd_progress_look(struct kd_search *s)
{
	struct kd_progress *p = &s->progress;
	uint64_t now = kdsm_now(), began;
	bool asked;

	if (!p->stopping && __atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		p->stopping = true;
		kd_gang_stop(&s->cluster);
	}
	kd_mutex_lock(&p->lock);
	began = p->began;
	kd_mutex_unlock(&p->lock);
	if (!began)
		return;
	kd_checkpoint_look(s);
	if (!s->options->progress)
		return;
	asked = __atomic_exchange_n(&p->report, false, __ATOMIC_RELAXED);
	if (asked)	/* count the states after this round */
		__atomic_store_n(&p->count, 0, __ATOMIC_RELAXED);
	else if (s->cluster.node || now < began + interval(s) || now < p->told + interval(s))
		return;
	p->told = now;
	tell(s, s->options->progress);
}

void kd_progress_join(struct kd_search *s, struct kd_thread *thread)
{
	while (!kd_thread_join(thread, POLL))
		kd_progress_look(s);
}

bool kd_stopping(const struct kd_search *s)
{
	return __atomic_load_n(&s->searching, __ATOMIC_RELAXED) &&
	       (kd_gang_stopping(&s->cluster) || kd_finish_crossed(s));
}
