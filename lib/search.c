// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rounds of a breadth-first search.
 *
 * In a round every worker of every node takes relations and unites the
 * successors of the current states; the unions of a node's workers are united
 * two by two, those of the nodes along the gang's tree. Node 0 takes away what was
 * visited before: the states of the next round. The search ends with the round
 * that finds nothing new.
 *
 * With chaining a worker takes the successors not of the current states alone, but of
 * these and all that it has found in this round (O. Roig, J. Cortadella, E. Pastor,
 * "Verification of Asynchronous Circuits by BDD-based Model Checking of Petri Nets",
 * 1995). There are fewer rounds, but they are no steps any more.
 *
 * Relation i belongs to node i mod N, which takes it by a ticket of its own part,
 * without any remote operation, and round after round, so that what it finds in
 * its part of the operation cache is its own. A node that has none left takes
 * tickets of the others. There are two ticket words, for odd and even rounds: a
 * node sets the one of round k + 1 to zero when round k begins, when those who
 * took tickets in round k - 1 are done, because their unions have been gathered.
 */
#include <stdlib.h>

#include "internal.h"
#include "search.h"
#include "walk.h"

#define STACK	(UINT64_C(64) << 20)	/* bytes; for 32768 bits of a state */

static uint64_t ticket_place(uint64_t round)
{
	return KD_TICKETS + round % 2 * 64;
}

static void reset_tickets(struct kd_search *s, uint64_t round)
{
	char *part = kdsm_region_part(s->region);

	__atomic_store_n((uint64_t *)(part + ticket_place(round)), 0, __ATOMIC_RELEASE);
}

/* A relation of the node that nobody has taken this round: 1, or 0 if none is left. */
static int take_from(struct kd_search *s, unsigned int node, unsigned int *relation)
{
	unsigned int nodes = s->gang.nodes;
	uint64_t ticket, left;
	int r;

	left = node < s->model.relations ?
	       (s->model.relations - node + nodes - 1) / nodes : 0;
	if (!left || __atomic_load_n(&s->exhausted[node], __ATOMIC_RELAXED))
		return 0;
	r = kdsm_faa(s->region, node, ticket_place(s->round), 1, &ticket);
	if (r < 0)
		return r;
	if (ticket + 1 >= left)
		__atomic_store_n(&s->exhausted[node], true, __ATOMIC_RELAXED);
	if (ticket >= left)
		return 0;
	*relation = node + ticket * nodes;
	return 1;
}

static int take_relation(struct kd_search *s, unsigned int *relation)
{
	unsigned int nodes = s->gang.nodes, i;
	int r = 0;

	for (i = 0; r == 0 && i < nodes; i++)
		r = take_from(s, (s->gang.node + i) % nodes, relation);
	return r;
}

static void give_up(struct kd_search *s, int error)
{
	pthread_mutex_lock(&s->lock);
	if (!s->error)
		__atomic_store_n(&s->error, error, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->lock);
}

/* The relation's successors, united with mine. */
static kdsm_bdd add_successors(struct kd_member *m, unsigned int relation, kdsm_bdd mine)
{
	struct kd_search *s = m->search;
	kdsm_bdd from = s->current, found;

	if (s->options->chaining)
		from = kdsm_bdd_or(m->worker, from, mine);
	if (s->model.trap && s->model.trap[relation]) {
		found = kdsm_bdd_successors(m->worker, from, s->model.trap[relation]);
		if (found == KDSM_BDD_INVALID)
			return found;
		if (found != KDSM_BDD_FALSE) {
			pthread_mutex_lock(&s->lock);
			s->unsafe = relation + 1;
			pthread_mutex_unlock(&s->lock);
			return mine;
		}
	}
	found = kdsm_bdd_successors(m->worker, from, s->model.relation[relation]);
	return kdsm_bdd_or(m->worker, mine, found);
}

static kdsm_bdd work(struct kd_member *m)
{
	struct kd_search *s = m->search;
	kdsm_bdd mine = KDSM_BDD_FALSE;
	unsigned int relation = 0;
	int r;

	while ((r = take_relation(s, &relation)) > 0) {
		if (kd_gang_aborted(&s->gang, NULL)) {
			r = -ECANCELED;
			break;
		}
		if (__atomic_load_n(&s->error, __ATOMIC_RELAXED))
			break;
		mine = add_successors(m, relation, mine);
		if (mine == KDSM_BDD_INVALID) {
			r = kdsm_bdd_error(m->worker);
			break;
		}
	}
	if (r < 0) {
		give_up(s, r);
		return KDSM_BDD_INVALID;
	}
	return mine;
}

/*
 * Unite what the members of this node found: whoever comes and finds something
 * delivered takes it and unites it with its own, else it leaves its own there.
 * Nobody waits for anybody in particular, and the last one leaves the union.
 */
static void deliver(struct kd_member *m, kdsm_bdd mine)
{
	struct kd_search *s = m->search;
	kdsm_bdd other;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		if (!s->delivered)
			break;
		s->delivered = false;
		other = s->partial;
		pthread_mutex_unlock(&s->lock);
		mine = kdsm_bdd_or(m->worker, mine, other);
		if (mine == KDSM_BDD_INVALID)
			give_up(s, kdsm_bdd_error(m->worker));
	}
	s->delivered = true;
	s->partial = mine;
	if (--s->running == 0)
		pthread_cond_signal(&s->done);
	pthread_mutex_unlock(&s->lock);
}

static void one_round(struct kd_member *m)
{
	kdsm_bdd mine = work(m);

	kdsm_table_flush(m->worker->table);
	deliver(m, mine);
}

static void *member(void *data)
{
	struct kd_member *m = data;
	struct kd_search *s = m->search;
	uint64_t round = 0;
	bool stop;

	for (;;) {
		pthread_mutex_lock(&s->lock);
		while (s->round == round && !s->stop)
			pthread_cond_wait(&s->go, &s->lock);
		round = s->round;
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		if (stop)
			return NULL;
		one_round(m);
	}
}

/* One round of this node's members; s->partial is their union. */
static int lead_round(struct kd_search *s)
{
	int error;

	reset_tickets(s, s->round + 2);
	pthread_mutex_lock(&s->lock);
	s->running = s->members;
	s->delivered = false;
	for (unsigned int i = 0; i < s->gang.nodes; i++)
		s->exhausted[i] = false;
	s->round++;
	pthread_cond_broadcast(&s->go);
	pthread_mutex_unlock(&s->lock);

	one_round(&s->member[0]);
	pthread_mutex_lock(&s->lock);
	while (s->running)
		pthread_cond_wait(&s->done, &s->lock);
	error = s->error;
	pthread_mutex_unlock(&s->lock);
	return error;
}

/* What travels between the nodes after a round. */
enum { FOUND, VISITED, UNSAFE };

static int unite(void *context, uint64_t *mine, const uint64_t *theirs)
{
	struct kdsm_bdd_worker *w = context;

	mine[FOUND] = kdsm_bdd_or(w, mine[FOUND], theirs[FOUND] & KD_EDGE);
	if (!mine[UNSAFE])
		mine[UNSAFE] = theirs[UNSAFE];
	return mine[FOUND] == KDSM_BDD_INVALID ? kdsm_bdd_error(w) : 0;
}

static int exchange(struct kd_search *s)
{
	struct kdsm_bdd_worker *w = s->member[0].worker;
	uint64_t words[KD_GANG_WORDS] = { s->partial, 0, s->unsafe };
	kdsm_bdd found;
	int r;

	r = kd_gang_gather(&s->gang, words, unite, w);
	if (r < 0)
		return r;
	if (s->gang.node == 0) {
		words[FOUND] = kdsm_bdd_and(w, words[FOUND], kdsm_bdd_not(s->visited));
		words[VISITED] = kdsm_bdd_or(w, s->visited, words[FOUND]);
		if (words[VISITED] == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
	}
	r = kd_gang_scatter(&s->gang, words);
	if (r < 0)
		return r;
	s->unsafe = words[UNSAFE];
	if (s->unsafe > s->model.relations)
		return -EIO;
	if (s->unsafe) {
		/* Of states that were visited before, it was seen before. */
		found = kdsm_bdd_or(w, s->current, words[FOUND] & KD_EDGE);
		r = kd_model_blame(&s->model, w, found, s->unsafe - 1, s->message);
		return r < 0 ? r : -EDOM;
	}
	s->current = words[FOUND] & KD_EDGE;
	s->visited = words[VISITED] & KD_EDGE;
	return 0;
}

/* All nodes of the current states that are elsewhere, many at a time. */
static int bring_near(struct kd_search *s)
{
	struct kd_walk walk;
	int r = 0;

	if (s->gang.nodes > 1) {
		r = kd_walk(&walk, s->member[0].worker, s->current);
		kd_walk_destroy(&walk);
	}
	return r;
}

static int report(struct kd_search *s, uint64_t *last)
{
	uint64_t now = kdsm_now();
	struct kd_progress progress;
	struct kdsm_counts counts;
	int r;

	if (!s->options->progress || s->gang.node || now - *last < 200000000)
		return 0;
	*last = now;
	mpz_init(progress.states);
	r = kdsm_bdd_count_states(s->member[0].worker, s->visited, s->model.variables,
				  s->model.bits, progress.states);
	if (r == 0)
		r = kdsm_table_usage(kdsm_bdd_table(s->store), &progress.table_used,
				     &progress.table_size);
	if (r == 0) {
		kdsm_counts(s->kdsm, &counts);
		progress.level = s->levels;
		progress.seconds = (now - s->began) / 1e9;
		progress.remote = counts.get + counts.put + counts.cas + counts.faa;
		s->options->progress(s->options->context, &progress);
	}
	mpz_clear(progress.states);
	return r;
}

/* From s->current, the initial states, until nothing new is found. */
int kd_search_run(struct kd_search *s)
{
	uint64_t last = kdsm_now();
	int r;

	s->visited = s->current;
	do {
		r = kd_property_check(s);
		if (r == 0)
			r = kd_trace_note(s);
		s->levels++;
		if (r == 0)
			r = bring_near(s);
		if (r == 0)
			r = lead_round(s);
		if (r == 0)
			r = exchange(s);
		if (r == 0)
			r = report(s, &last);
	} while (r == 0 && s->current != KDSM_BDD_FALSE);
	return r;
}

/* The members' workers, and their threads but for the caller's. */
int kd_search_start(struct kd_search *s)
{
	pthread_attr_t attr;
	unsigned int i;
	int r = 0;

	s->exhausted = calloc(s->gang.nodes, sizeof(*s->exhausted));
	s->member = calloc(s->members, sizeof(*s->member));
	if (!s->member || !s->exhausted)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->go, NULL);
	pthread_cond_init(&s->done, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (i = 0; r == 0 && i < s->members; i++) {
		s->member[i].search = s;
		r = kdsm_bdd_worker_new(s->store, &s->member[i].worker);
		if (r == 0 && i)
			r = -pthread_create(&s->member[i].thread, &attr, member,
					    &s->member[i]);
		if (r == 0)
			s->started++;
		else
			kdsm_bdd_worker_free(s->member[i].worker);
	}
	pthread_attr_destroy(&attr);
	return r;
}

void kd_search_stop(struct kd_search *s)
{
	unsigned int i;

	if (s->member && s->exhausted) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_broadcast(&s->go);
		pthread_mutex_unlock(&s->lock);
		for (i = 0; i < s->started; i++) {
			if (i)
				pthread_join(s->member[i].thread, NULL);
			kdsm_bdd_worker_free(s->member[i].worker);
		}
		pthread_cond_destroy(&s->done);
		pthread_cond_destroy(&s->go);
		pthread_mutex_destroy(&s->lock);
	}
	free(s->bad);
	free(s->frontier);
	free(s->member);
	free(s->exhausted);
}
