// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Relations merged for saturation, as LTSmin regroups those whose variables are equal or
 * contained in others' (S. Blom, J. van de Pol, M. Weber, "LTSmin: Distributed and Symbolic
 * Reachability", CAV 2010). Relations with the same top variable that change almost the same
 * bits are fired on the same nodes. One relation, their union, goes down these nodes once. It
 * keeps the bits that only some of its members have.
 *
 * A relation that may change when a place is widened stays as it is: the union would have to be
 * made again, and a trap would be lost in it where another member leads to the same state.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define MORE_BITS	8	/* of a union than of its widest member */
#define MOST_MEMBERS	64	/* bounds the size of a union */

static const struct kd_bit *bits_of(const struct kdsm_bdd_store *store,
				    const struct kdsm_relation *relation)
{
	return store->bits + relation->at;
}

struct candidates {
	const struct kdsm_bdd_store *store;
	struct kd_model *model;
	uint32_t *relation, count;
	uint32_t *bits, *more;		/* variables of the members so far, and with another one */
};

/* By the top variable, then by the others, so that relations with similar bits are neighbours */
static int compare(const void *x, const void *y, void *context)
{
	uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
	const struct candidates *c = context;
	const struct kd_bit *a = bits_of(c->store, c->model->relation[i]);
	const struct kd_bit *b = bits_of(c->store, c->model->relation[j]);

	while (a->variable == b->variable && a->variable != KD_NO_VARIABLE) {
		a++;
		b++;
	}
	return a->variable == b->variable ? (i > j) - (i < j) :
	       (a->variable > b->variable) - (a->variable < b->variable);
}

/* Put the union of count variables of c->bits and those of bit into c->more; return its size. */
static unsigned int unite(const struct candidates *c, unsigned int count, const struct kd_bit *bit)
{
	unsigned int n = 0, i = 0;
	uint32_t other;

	while (i < count || bit->variable != KD_NO_VARIABLE) {
		other = i < count ? c->bits[i] : KD_NO_VARIABLE;
		c->more[n] = other < bit->variable ? other : bit->variable;
		i += c->more[n] == other;
		bit += c->more[n] == bit->variable;
		n++;
	}
	return n;
}

/*
 * Choose the members of a union: candidate first and those after it that have the same top
 * variable and few other bits. Put the variables of all into c->bits and their number into *bits;
 * return the number of members.
 */
static unsigned int choose(struct candidates *c, unsigned int first, unsigned int *bits)
{
	const struct kdsm_relation *r = c->model->relation[c->relation[first]];
	unsigned int widest = r->count, n, i;
	uint32_t *swap;

	*bits = unite(c, 0, bits_of(c->store, r));
	for (i = first; ; ) {
		swap = c->bits;
		c->bits = c->more;
		c->more = swap;
		if (++i == c->count || i - first == MOST_MEMBERS)
			break;
		r = c->model->relation[c->relation[i]];
		if (bits_of(c->store, r)->variable != c->bits[0])
			break;
		n = unite(c, *bits, bits_of(c->store, r));
		widest = widest < r->count ? r->count : widest;
		if (n > widest + MORE_BITS)
			break;
		*bits = n;
	}
	return i - first;
}

/* A member that keeps the value of those of the bits that it does not have */
static kdsm_bdd with_bits(struct kdsm_bdd_worker *w, const struct kdsm_relation *member,
			  const uint32_t *bits, unsigned int count)
{
	const struct kd_bit *own = bits_of(w->store, member);
	unsigned int left = member->count;
	kdsm_bdd same = KDSM_BDD_TRUE;
	uint32_t v;

	while (count--) {
		v = bits[count];
		if (left && own[left - 1].variable == v)
			left--;
		else
			same = kdsm_bdd_make(w, v, kd_literal(w, v + 1, true, same),
					     kd_literal(w, v + 1, false, same));
	}
	return kdsm_bdd_and(w, member->relation, same);
}

static int merge(struct kdsm_bdd_worker *w, struct candidates *c, unsigned int first,
		 unsigned int members, unsigned int bits)
{
	struct kd_model *model = c->model;
	kdsm_bdd all = KDSM_BDD_FALSE, set = KDSM_BDD_TRUE;
	unsigned int i;

	for (i = first; i < first + members; i++) {
		all = kdsm_bdd_or(w, all, with_bits(w, model->relation[c->relation[i]], c->bits,
						    bits));
		model->merged[c->relation[i]].within = i > first;
	}
	for (i = bits; i--; )
		set = kd_literal(w, c->bits[i], true, kd_literal(w, c->bits[i] + 1, true, set));
	if (!kd_valid(all) || !kd_valid(set))
		return kdsm_bdd_error(w);
	return kdsm_relation_new(w, all, set, KD_FIRST_TRAP,
				 &model->merged[c->relation[first]].relation);
}

static int merge_all(struct kdsm_bdd_worker *w, struct candidates *c)
{
	unsigned int first, members, bits;
	int r = 0;

	for (first = 0; r == 0 && first < c->count; first += members) {
		members = choose(c, first, &bits);
		if (members > 1)
			r = merge(w, c, first, members, bits);
	}
	return r;
}

int kd_model_merge(struct kdsm_bdd_worker *w, struct kd_model *model)
{
	struct candidates c = { .store = w->store, .model = model };
	unsigned int i, most = 0;
	int r = -ENOMEM;

	model->merged = calloc(model->relations + 1, sizeof(*model->merged));
	c.relation = calloc(model->relations + 1, sizeof(*c.relation));
	for (i = 0; c.relation && i < model->relations; i++) {
		if (!model->relation[i]->count || kd_model_widens(model, i))
			continue;
		c.relation[c.count++] = i;
		if (most < model->relation[i]->count)
			most = model->relation[i]->count;
	}
	c.bits = calloc(2 * most + MORE_BITS + 1, sizeof(*c.bits));
	c.more = calloc(2 * most + MORE_BITS + 1, sizeof(*c.more));
	if (model->merged && c.relation && c.bits && c.more) {
		qsort_r(c.relation, c.count, sizeof(*c.relation), compare, &c);
		kdsm_bdd_private(w, 1);
		r = merge_all(w, &c);
		kdsm_bdd_private(w, 0);
	}
	free(c.relation);
	free(c.bits);
	free(c.more);
	return r;
}
