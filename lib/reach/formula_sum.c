// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sums of tokens in BDDs. In the bits of the places a sum is linear: each bit has a weight, a
 * power of two times the factor of its place.
 *
 * kd_sum_at_most() goes from the root down. At each step it has a limit, which the bits that
 * remain must not exceed in sum. Many limits have the same result: between two sums that are
 * possible next to each other there is no difference. So each result comes with the interval of
 * limits that it holds for, and results are kept by intervals (I. Abio, R. Nieuwenhuis, A.
 * Oliveras, E. Rodriguez-Carbonell, V. Mayer-Eichberger, "A New Look at BDDs for Pseudo-Boolean
 * Constraints", 2012). The number of steps depends on how many sums are possible, not on how
 * large they are.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"

/* Sums of all weights are lower; limits beyond LOWEST and HIGHEST do not occur. */
#define MOST_WEIGHT	(INT64_C(1) << 60)
#define LOWEST		(-(INT64_C(1) << 62))
#define HIGHEST		(INT64_C(1) << 62)

#define MOST_CELLS	(UINT64_C(1) << 22)	/* results kept; each takes about 100 bytes */
#define BLOCK		1024			/* cells allocated at a time */

/* A bit of the sum; the lists are sorted by variable */
struct weighted {
	uint32_t variable;
	int64_t weight;
};

/* A result of kd_sum_at_most() for the bits from an index on and an interval of limits */
struct cell {
	kdsm_bdd of;			/* where in the domain */
	unsigned int from;		/* index of the first bit that remains */
	int64_t least, most;		/* the interval */
	kdsm_bdd result;
};

struct cells {
	struct cells *next;
	struct cell cell[BLOCK];
};

struct linear {
	struct kdsm_bdd_worker *w;
	struct weighted *bit;
	unsigned int bits;
	int64_t *least, *most;		/* [0..bits]: bounds of the sum of the bits from there on */
	void *tree;			/* of cells, for tsearch() */
	struct cells *blocks;
	uint64_t cells;
};

static int compare_bits(const void *x, const void *y)
{
	const struct weighted *a = x, *b = y;

	return (a->variable > b->variable) - (a->variable < b->variable);
}

static int add_up(struct linear *l)
{
	int64_t all = 0, weight;
	unsigned int i;

	l->least = calloc(l->bits + 1, sizeof(*l->least));
	l->most = calloc(l->bits + 1, sizeof(*l->most));
	if (!l->least || !l->most)
		return -ENOMEM;
	for (i = l->bits; i--; ) {
		weight = l->bit[i].weight;
		/* neither sum can overflow: both numbers are at most MOST_WEIGHT */
		all += weight < 0 ? -weight : weight;
		if (all > MOST_WEIGHT)
			return -ERANGE;
		l->least[i] = l->least[i + 1] + (weight < 0 ? weight : 0);
		l->most[i] = l->most[i + 1] + (weight > 0 ? weight : 0);
	}
	return 0;
}

static int linear_init(struct linear *l, struct kdsm_bdd_worker *w, const struct kd_marking *m,
		       const struct kd_sum *sum)
{
	unsigned int b, most = 0;
	size_t i;

	memset(l, 0, sizeof(*l));
	l->w = w;
	for (i = 0; i < sum->addends; i++)
		most += m->width[sum->addend[i].place];
	l->bit = calloc(most + 1, sizeof(*l->bit));
	if (!l->bit)
		return -ENOMEM;
	for (i = 0; i < sum->addends; i++) {
		const struct kd_addend *a = &sum->addend[i];

		if (a->factor > MOST_WEIGHT >> KD_MOST_WIDTH ||
		    a->factor < -(MOST_WEIGHT >> KD_MOST_WIDTH))
			return -ERANGE;
		for (b = 0; b < m->width[a->place]; b++)
			l->bit[l->bits++] = (struct weighted){
				kd_marking_variable(m, a->place, b),
				a->factor * (INT64_C(1) << b),
			};
	}
	qsort(l->bit, l->bits, sizeof(*l->bit), compare_bits);
	return add_up(l);
}

static void ignore(void *cell)
{
	(void)cell;
}

static void linear_destroy(struct linear *l)
{
	struct cells *next;

	tdestroy(l->tree, ignore);
	for (; l->blocks; l->blocks = next) {
		next = l->blocks->next;
		free(l->blocks);
	}
	free(l->bit);
	free(l->least);
	free(l->most);
}

/* ---- at most ---- */

/* Cells of the same place in the domain have disjoint intervals; overlapping ones are equal. */
static int compare_cells(const void *x, const void *y)
{
	const struct cell *a = x, *b = y;

	if (a->of != b->of)
		return a->of < b->of ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->most < b->least ? -1 : a->least > b->most;
}

/* Keep the cell. On failure it becomes one. */
static void keep_cell(struct linear *l, struct cell *cell)
{
	struct cells *block = l->blocks;
	struct cell *copy;

	if (l->cells == MOST_CELLS) {
		cell->result = kd_fail(l->w, -E2BIG);
		return;
	}
	if (l->cells % BLOCK == 0) {
		block = malloc(sizeof(*block));
		if (block) {
			block->next = l->blocks;
			l->blocks = block;
		}
	}
	if (block) {
		copy = &block->cell[l->cells % BLOCK];
		*copy = *cell;
		if (tsearch(copy, &l->tree, compare_cells)) {
			l->cells++;
			return;
		}
	}
	cell->result = kd_fail(l->w, -ENOMEM);
}

static struct cell whole(kdsm_bdd result, int64_t least, int64_t most)
{
	return (struct cell){ .least = least, .most = most, .result = result };
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * The assignments of e in which the bits from an index on have at most limit in sum, and the
 * interval of limits that this is right for. above is 1 + the variable of the step before.
 */
static struct cell at_most(struct linear *l, kdsm_bdd e, unsigned int from, int64_t limit,
			   uint32_t above)
{
	struct cell key = { e, from, limit, limit, KDSM_BDD_FALSE }, high, low, **found;
	struct kd_top top = { KD_NO_VARIABLE, e, e };
	int64_t weight = 0;
	uint32_t variable;

	if (e == KDSM_BDD_FALSE)
		return whole(KDSM_BDD_FALSE, LOWEST, HIGHEST);
	if (limit >= l->most[from])
		return whole(e, l->most[from], HIGHEST);
	if (limit < l->least[from])
		return whole(KDSM_BDD_FALSE, LOWEST, l->least[from] - 1);
	found = tfind(&key, &l->tree, compare_cells);
	if (found)
		return **found;

	if (!kd_terminal(e) && (!kd_top(l->w, e, &top) || !kd_descends(l->w, top.variable, above)))
		return whole(kd_give_up(l->w), limit, limit);
	variable = top.variable;
	if (l->bit[from].variable <= variable) {	/* there is a bit: its weights differ */
		if (l->bit[from].variable < variable)
			top = (struct kd_top){ l->bit[from].variable, e, e };
		variable = l->bit[from].variable;
		weight = l->bit[from++].weight;
	}
	high = at_most(l, top.high, from, limit - weight, variable + 1);
	low = kd_valid(high.result) ? at_most(l, top.low, from, limit, variable + 1) : high;
	if (!kd_valid(low.result))
		return low;
	key.result = kd_make(l->w, variable, high.result, low.result);
	if (!kd_valid(key.result))
		return key;
	/* within the bounds, so that intervals are disjoint */
	key.least = -smaller(-(high.least + weight), smaller(-low.least, -l->least[key.from]));
	key.most = smaller(high.most + weight, smaller(low.most, l->most[key.from] - 1));
	keep_cell(l, &key);
	return key;
}

kdsm_bdd kd_sum_at_most(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			const struct kd_sum *sum, kdsm_bdd domain)
{
	kdsm_bdd result = KDSM_BDD_FALSE;
	struct linear l;
	int64_t limit = 0;
	int r;

	r = linear_init(&l, w, m, sum);
	if (r == 0 && __builtin_sub_overflow(INT64_C(0), sum->constant, &limit))
		r = -ERANGE;
	if (r < 0)
		result = kd_fail(w, r);
	else if (limit >= l.most[0])
		result = domain;
	else if (limit >= l.least[0])
		result = at_most(&l, domain, 0, limit, 0).result;
	linear_destroy(&l);
	return kd_end(w, result);
}

/* ---- the most ---- */

/* The largest sum by edge: an open hash table */
struct largest {
	struct {
		kdsm_bdd edge;		/* 0, which is a terminal: empty */
		int64_t most;
	} *slot;
	uint64_t size, used;		/* size is a power of two */
};

static uint64_t find_slot(const struct largest *t, kdsm_bdd e)
{
	uint64_t i = kd_hash(e, 0) & (t->size - 1);

	while (t->slot[i].edge && t->slot[i].edge != e)
		i = (i + 1) & (t->size - 1);
	return i;
}

static int insert(struct largest *t, kdsm_bdd e, int64_t most)
{
	struct largest more = *t;
	uint64_t i;

	if (2 * t->used >= t->size) {
		more.size = t->size ? 2 * t->size : 1024;
		more.slot = calloc(more.size, sizeof(*more.slot));
		if (!more.slot)
			return -ENOMEM;
		for (i = 0; i < t->size; i++)
			if (t->slot[i].edge)
				more.slot[find_slot(&more, t->slot[i].edge)] = t->slot[i];
		free(t->slot);
		*t = more;
	}
	i = find_slot(t, e);
	t->slot[i].edge = e;
	t->slot[i].most = most;
	t->used++;
	return 0;
}

/*
 * The largest sum of the bits from an index on in an assignment of e; LOWEST if there is none,
 * because e is false.
 */
static int largest(struct linear *l, struct largest *t, kdsm_bdd e, unsigned int from,
		   uint32_t above, int64_t *most)
{
	int64_t free_bits = 0, high, low, weight = 0;
	struct kd_top top;
	uint64_t i;
	int r;

	*most = e == KDSM_BDD_FALSE ? LOWEST : l->most[from];
	if (kd_terminal(e) || from == l->bits)
		return 0;
	if (!kd_top(l->w, e, &top) || !kd_descends(l->w, top.variable, above))
		return l->w->why;
	for (; from < l->bits && l->bit[from].variable < top.variable; from++)
		free_bits += l->bit[from].weight;
	i = t->size ? find_slot(t, e) : 0;
	if (t->size && t->slot[i].edge) {
		*most = t->slot[i].most + free_bits;
		return 0;
	}
	if (from < l->bits && l->bit[from].variable == top.variable)
		weight = l->bit[from++].weight;
	r = largest(l, t, top.high, from, top.variable + 1, &high);
	if (r == 0)
		r = largest(l, t, top.low, from, top.variable + 1, &low);
	if (r < 0)
		return r;
	high += weight;
	*most = high > low ? high : low;
	r = insert(t, e, *most);
	*most += free_bits;
	return r;
}

int kd_sum_most(struct kdsm_bdd_worker *w, const struct kd_marking *m,
		const struct kd_sum *sum, kdsm_bdd states, int64_t *most)
{
	struct largest table = { 0 };
	struct linear l;
	int r;

	r = linear_init(&l, w, m, sum);
	if (r == 0)
		r = largest(&l, &table, states, 0, 0, most);
	if (r == 0 && __builtin_add_overflow(*most, sum->constant, most))
		r = -ERANGE;
	free(table.slot);
	linear_destroy(&l);
	return r;
}
