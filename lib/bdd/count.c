// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that visit every node of a BDD: counts and support. */
#include <stdlib.h>

#include "bdd/bdd.h"

int kdsm_bdd_count_nodes(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint64_t *count)
{
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return -EINVAL;
	r = kd_walk(&walk, worker, a);
	*count = walk.count;
	kd_walk_destroy(&walk);
	return r;
}

static int compare_variables(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return (a > b) - (a < b);
}

kdsm_bdd kdsm_bdd_support(struct kdsm_bdd_worker *worker, kdsm_bdd a)
{
	kdsm_bdd cube = KDSM_BDD_INVALID;
	uint32_t *variables = NULL;
	unsigned int n = 0, i;
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return a;
	r = kd_walk(&walk, worker, a);
	if (r == 0) {
		variables = malloc((walk.count + 1) * sizeof(*variables));
		if (!variables)
			r = -ENOMEM;
	}
	if (r < 0) {
		kd_end(worker, kd_failure(r));
		goto out;
	}
	for (i = 0; i < walk.count; i++)
		variables[i] = kd_variable(&walk.nodes[i].node);
	qsort(variables, walk.count, sizeof(*variables), compare_variables);
	for (i = 0; i < walk.count; i++)
		if (!n || variables[n - 1] != variables[i])
			variables[n++] = variables[i];
	cube = kdsm_bdd_cube(worker, variables, n);
out:
	free(variables);
	kd_walk_destroy(&walk);
	return cube;
}

/*
 * Counting states. Let count(e) be the number of assignments of the variables from that of
 * e's node on that satisfy e. count(e) is the sum of the counts of both children, each
 * doubled for every variable between e's and the child's. The count of a complemented edge
 * is the number of all assignments minus the count of the plain edge.
 */
struct counting {
	struct kd_walk walk;
	const uint32_t *variables;
	unsigned int count;
	uint32_t *order;	/* indices into walk.nodes, greatest variable first */
	unsigned int *rank;	/* by index into walk.nodes: index into variables */
	mpz_t *counts;		/* by index into walk.nodes */
};

/* Fill c->rank. Return -EINVAL if the function depends on another variable. */
static int rank_nodes(struct counting *c)
{
	uint64_t i;

	for (i = 0; i < c->walk.count; i++) {
		uint32_t v = kd_variable(&c->walk.nodes[i].node);
		const uint32_t *found = bsearch(&v, c->variables, c->count, sizeof(v),
						compare_variables);

		if (!found)
			return -EINVAL;
		c->rank[i] = found - c->variables;
	}
	return 0;
}

/* Fill c->order by a counting sort on rank. */
static int order_nodes(struct counting *c)
{
	uint64_t *start = calloc(c->count + 1, sizeof(*start));
	unsigned int v;
	uint64_t i;

	if (!start)
		return -ENOMEM;
	for (i = 0; i < c->walk.count; i++)
		start[c->count - 1 - c->rank[i] + 1]++;
	for (v = 0; v < c->count; v++)
		start[v + 1] += start[v];
	for (i = 0; i < c->walk.count; i++)
		c->order[start[c->count - 1 - c->rank[i]]++] = i;
	free(start);
	return 0;
}

/* Add to sum the count of e over the variables of this rank and later ones. */
static int add_count(struct counting *c, mpz_t sum, mpz_t scratch, kdsm_bdd e,
		     unsigned int rank)
{
	unsigned int own = c->count;

	mpz_set_ui(scratch, 0);
	if (!kd_terminal(e)) {
		uint64_t at = kd_walk_find(&c->walk, kd_number(e));

		own = c->rank[at];
		if (own < rank)	/* the child is above its parent: memory holds no BDD */
			return -EIO;
		mpz_set(scratch, c->counts[at]);
	}
	if (e & KDSM_BDD_COMPLEMENT) {
		mpz_neg(scratch, scratch);
		mpz_mul_2exp(scratch, scratch, own - rank);
		mpz_add(sum, sum, scratch);
		mpz_set_ui(scratch, 1);
		mpz_mul_2exp(scratch, scratch, c->count - rank);
	} else {
		mpz_mul_2exp(scratch, scratch, own - rank);
	}
	mpz_add(sum, sum, scratch);
	return 0;
}

/* Fill c->counts, children first. */
static int count_nodes_up(struct counting *c, mpz_t scratch)
{
	uint64_t i;
	int r = 0;

	for (i = 0; r == 0 && i < c->walk.count; i++) {
		uint64_t at = c->order[i];
		const struct kdsm_node *node = &c->walk.nodes[at].node;
		unsigned int rank = c->rank[at];

		r = add_count(c, c->counts[at], scratch, kd_high(node, 0), rank + 1);
		if (r == 0)
			r = add_count(c, c->counts[at], scratch, kd_low(node, 0), rank + 1);
	}
	return r;
}

int kdsm_bdd_count_states(struct kdsm_bdd_worker *worker, kdsm_bdd a,
			  const uint32_t *variables, unsigned int count, mpz_t result)
{
	struct counting c = { .variables = variables, .count = count };
	uint64_t i, made = 0;
	mpz_t scratch;
	int r;

	if (a == KDSM_BDD_INVALID)
		return -EINVAL;
	mpz_init(scratch);
	r = kd_walk(&c.walk, worker, a);
	if (r == 0 && c.walk.count > UINT32_MAX)
		r = -EFBIG;
	if (r == 0) {
		c.order = malloc((c.walk.count + 1) * sizeof(*c.order));
		c.rank = malloc((c.walk.count + 1) * sizeof(*c.rank));
		c.counts = malloc((c.walk.count + 1) * sizeof(*c.counts));
		if (!c.order || !c.rank || !c.counts)
			r = -ENOMEM;
	}
	for (; r == 0 && made < c.walk.count; made++)
		mpz_init(c.counts[made]);
	if (r == 0)
		r = rank_nodes(&c);
	if (r == 0)
		r = order_nodes(&c);
	if (r == 0)
		r = count_nodes_up(&c, scratch);
	if (r == 0) {
		mpz_set_ui(result, 0);
		r = add_count(&c, result, scratch, a, 0);
	}
	for (i = 0; i < made; i++)
		mpz_clear(c.counts[i]);
	mpz_clear(scratch);
	free(c.order);
	free(c.rank);
	free(c.counts);
	kd_walk_destroy(&c.walk);
	return r;
}
