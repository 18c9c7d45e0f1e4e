// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Clusters of a circuit's relation. The order of the conjuncts decides how soon variables can be
 * quantified; the heuristic is a simplified one of R. Ranjan, A. Aziz, R. Brayton, B. Plessier,
 * C. Pixley, "Efficient BDD Algorithms for FSM Synthesis and Verification", IWLS 1995: next comes
 * a conjunct that ends the use of many of its variables, and that has many of the variables that
 * are left. Neighbours in this order form a cluster while it is small.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "circuit.h"
#include "internal.h"

uint64_t kd_most_cluster = 2500;

#define NONE	UINT32_MAX

struct conjunct {
	kdsm_bdd relation;
	uint64_t nodes;
	uint32_t *position;	/* of the current variables and inputs in its support */
	uint32_t positions;
	uint32_t last;		/* of them are in no other conjunct that is left */
	bool taken;
};

struct plan {
	struct kdsm_bdd_worker *worker;
	struct conjunct *conjunct;
	uint32_t conjuncts;
	const bool *is_input;
	uint32_t positions;
	uint32_t left;		/* positions that conjuncts which are left have */
	/* by position: conjuncts that are left and have it, and all conjuncts that have it */
	uint32_t *uses, *user_start, *user;
	uint32_t *first;	/* by position: the first cluster that has it */
	uint32_t *end;		/* by variable: the last cluster that has it */
	struct kd_clusters *clusters;
};

/*
 * Store the variables of a support. With variables NULL only count them. Return the number, or a
 * negative errno.
 */
static int64_t support(struct kdsm_bdd_worker *w, kdsm_bdd relation, uint32_t *variables)
{
	kdsm_bdd cube = kdsm_bdd_support(w, relation), low;
	int64_t count = 0;
	uint32_t variable;
	int r;

	while (cube != KDSM_BDD_TRUE) {
		if (cube == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
		r = kdsm_bdd_look(w, cube, &variable, &cube, &low);
		if (r < 0)
			return r;
		if (variables)
			variables[count] = variable;
		count++;
	}
	return count;
}

static int add_conjunct(struct plan *p, struct conjunct *c, kdsm_bdd relation)
{
	int64_t count = support(p->worker, relation, NULL);
	uint32_t i;

	if (count < 0)
		return count;
	c->relation = relation;
	c->position = malloc((count + 1) * sizeof(*c->position));
	if (!c->position)
		return -ENOMEM;
	count = support(p->worker, relation, c->position);
	for (i = 0; i < count; i++) {
		if (c->position[i] % 2)
			continue;
		c->position[c->positions] = c->position[i] / 2;
		p->left += !p->uses[c->position[c->positions++]]++;
	}
	if (count < 0)
		return count;
	return kdsm_bdd_count_nodes(p->worker, relation, &c->nodes);
}

/* List the conjuncts of each position. */
static int list_users(struct plan *p)
{
	uint64_t all = 0;
	uint32_t i, k, at, *fill;

	for (i = 0; i < p->positions; i++)
		all += p->uses[i];
	if (all >= UINT32_MAX)
		return -EFBIG;
	p->user_start = calloc((size_t)p->positions + 2, sizeof(*p->user_start));
	p->user = malloc((all + 1) * sizeof(*p->user));
	if (!p->user_start || !p->user)
		return -ENOMEM;
	for (i = 0; i < p->positions; i++)
		p->user_start[i + 2] = p->user_start[i + 1] + p->uses[i];
	fill = p->user_start + 1;
	for (i = 0; i < p->conjuncts; i++) {
		for (k = 0; k < p->conjunct[i].positions; k++) {
			at = p->conjunct[i].position[k];
			p->user[fill[at]++] = i;
			p->conjunct[i].last += p->uses[at] == 1;
		}
	}
	return 0;
}

static double benefit(const struct plan *p, const struct conjunct *c)
{
	return c->positions ? 2.0 * c->last / c->positions + (double)c->positions / p->left : 3;
}

/* Take the best conjunct. */
static struct conjunct *take(struct plan *p)
{
	struct conjunct *best = NULL, *c;
	double most = -1, rating;
	uint32_t i, k, at;

	for (i = 0; i < p->conjuncts; i++) {
		c = &p->conjunct[i];
		rating = c->taken ? -1 : benefit(p, c);
		if (rating > most) {
			best = c;
			most = rating;
		}
	}
	best->taken = true;
	for (i = 0; i < best->positions; i++) {
		at = best->position[i];
		p->left -= !--p->uses[at];
		for (k = p->user_start[at]; p->uses[at] == 1 && k < p->user_start[at + 1]; k++)
			p->conjunct[p->user[k]].last++;
	}
	return best;
}

/* The inputs of a conjunct that is taken that no conjunct outside this cluster has */
static kdsm_bdd own_inputs(const struct plan *p, const struct conjunct *c, uint32_t cluster)
{
	kdsm_bdd cube = KDSM_BDD_TRUE;
	uint32_t i, at;

	for (i = c->positions; i-- && cube != KDSM_BDD_INVALID; ) {
		at = c->position[i];
		if (p->is_input[at] && !p->uses[at] &&
		    (p->first[at] == NONE || p->first[at] == cluster))
			cube = kdsm_bdd_make(p->worker, 2 * at, cube, KDSM_BDD_FALSE);
	}
	return cube;
}

/*
 * Add a conjunct that is taken to the last cluster, or to a new one if that would be too large.
 * *nodes is the size of the last cluster.
 */
static int add_to_cluster(struct plan *p, const struct conjunct *c, uint64_t *nodes)
{
	struct kd_clusters *all = p->clusters;
	kdsm_bdd relation = KDSM_BDD_INVALID;
	uint64_t size = UINT64_MAX;
	uint32_t i;
	int r = 0;

	if (all->count && *nodes + c->nodes <= kd_most_cluster) {
		relation = kdsm_bdd_and_exists(p->worker, all->cluster[all->count - 1].relation,
					       c->relation, own_inputs(p, c, all->count - 1));
		if (relation == KDSM_BDD_INVALID)
			return kdsm_bdd_error(p->worker);
		r = kdsm_bdd_count_nodes(p->worker, relation, &size);
	}
	if (r == 0 && size > kd_most_cluster) {
		relation = kdsm_bdd_exists(p->worker, c->relation, own_inputs(p, c, all->count));
		if (relation == KDSM_BDD_INVALID)
			return kdsm_bdd_error(p->worker);
		r = kdsm_bdd_count_nodes(p->worker, relation, &size);
		all->count++;
	}
	all->cluster[all->count - 1].relation = relation;
	*nodes = size;
	for (i = 0; i < c->positions; i++)
		if (p->first[c->position[i]] == NONE)
			p->first[c->position[i]] = all->count - 1;
	return r;
}

/* Set the last cluster of each variable. */
static int find_ends(struct plan *p)
{
	uint32_t *variable = malloc(((size_t)2 * p->positions + 1) * sizeof(*variable)), i;
	int64_t count = variable ? 0 : -ENOMEM, k;

	for (i = 0; count >= 0 && i < p->clusters->count; i++) {
		count = support(p->worker, p->clusters->cluster[i].relation, variable);
		for (k = 0; k < count; k++)
			p->end[variable[k]] = i;
	}
	free(variable);
	return count < 0 ? count : 0;
}

/*
 * Whether a variable is quantified with a cluster. One that no cluster has is quantified with the
 * first: the states may have it.
 */
static bool ends(const struct plan *p, uint32_t variable, uint32_t cluster)
{
	return p->end[variable] == cluster || (!cluster && p->end[variable] == NONE);
}

/* Set the cubes of the clusters. */
static int plan_quantification(struct plan *p)
{
	struct kdsm_bdd_worker *w = p->worker;
	struct kd_cluster *c;
	uint32_t i, at;
	int r = find_ends(p);

	for (i = 0; r == 0 && i < p->clusters->count; i++) {
		c = &p->clusters->cluster[i];
		c->forward = KDSM_BDD_TRUE;
		c->backward = KDSM_BDD_TRUE;
		for (at = 2 * p->positions; at--; ) {
			if (!ends(p, at, i))
				continue;
			if (at % 2 == 0)
				c->forward = kdsm_bdd_make(w, at, c->forward, KDSM_BDD_FALSE);
			if (at % 2 != p->is_input[at / 2])
				c->backward = kdsm_bdd_make(w, at, c->backward, KDSM_BDD_FALSE);
		}
		if (c->forward == KDSM_BDD_INVALID || c->backward == KDSM_BDD_INVALID)
			r = kdsm_bdd_error(w);
	}
	return r;
}

static int make(struct plan *p, const struct kd_conjuncts *conjuncts)
{
	uint64_t nodes = 0;
	uint32_t i;
	int r = 0;

	for (i = 0; i < p->positions; i++)
		p->first[i] = NONE;
	for (i = 0; i < 2 * p->positions; i++)
		p->end[i] = NONE;
	for (; r == 0 && p->conjuncts < conjuncts->count; p->conjuncts++)
		r = add_conjunct(p, &p->conjunct[p->conjuncts],
				 conjuncts->relation[p->conjuncts]);
	if (r == 0)
		r = list_users(p);
	for (i = 0; r == 0 && i < p->conjuncts; i++)
		r = add_to_cluster(p, take(p), &nodes);
	if (r == 0 && !p->clusters->count)
		p->clusters->cluster[p->clusters->count++].relation = KDSM_BDD_TRUE;
	return r < 0 ? r : plan_quantification(p);
}

int kd_clusters_new(struct kdsm_bdd_worker *w, const struct kd_conjuncts *conjuncts,
		    const bool *is_input, uint32_t positions, struct kd_clusters **clusters)
{
	struct plan p = { .worker = w, .is_input = is_input, .positions = positions };
	size_t count = (size_t)conjuncts->count + 1;
	int r = -ENOMEM;
	uint32_t i;

	*clusters = calloc(1, sizeof(**clusters));
	if (!*clusters)
		return -ENOMEM;
	p.clusters = *clusters;
	p.clusters->cluster = calloc(count, sizeof(*p.clusters->cluster));
	p.conjunct = calloc(count, sizeof(*p.conjunct));
	p.uses = calloc((size_t)positions + 1, sizeof(*p.uses));
	p.first = malloc(((size_t)positions + 1) * sizeof(*p.first));
	p.end = malloc(((size_t)2 * positions + 1) * sizeof(*p.end));
	if (p.clusters->cluster && p.conjunct && p.uses && p.first && p.end)
		r = make(&p, conjuncts);
	for (i = 0; p.conjunct && i < count; i++)
		free(p.conjunct[i].position);
	free(p.conjunct);
	free(p.uses);
	free(p.user_start);
	free(p.user);
	free(p.first);
	free(p.end);
	return r;
}

void kd_clusters_free(struct kd_clusters *clusters)
{
	if (!clusters)
		return;
	free(clusters->cluster);
	free(clusters);
}
