// SPDX-License-Identifier: GPL-2.0
/*
 * Formulas about random nets: the search's answers against those of an evaluator that visits
 * state by state, and traces against the distances of the states. Files of formulas that are
 * wrong, or damaged. KDSM_FORMULAS=N tests N nets instead of a few, from the seed KDSM_SEED.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <unistd.h>

#include "jobs.h"
#include "models.h"
#include "reach/formula.h"
#include "small_nets.h"

/* Lists of formulas that small tables are tried with; each takes 6 s under ThreadSanitizer. */
#ifdef __SANITIZE_THREAD__
#define SMALL_LISTS	3
#else
#define SMALL_LISTS	6
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define NETS		12
#define MUTATIONS	200
#else
#define NETS		40
#define MUTATIONS	300
#endif

#define FORMULAS	12	/* of a net */
#define MOST_TERMS	4
#define FEW_STATES	300

static char path[64], xml[64];

static int make_names(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/kdsm-formulas-%d.pnml", getpid());
	snprintf(xml, sizeof(xml), "/tmp/kdsm-formulas-%d.xml", getpid());
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(xml);
	return 0;
}

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 10) : otherwise;
}

/* ---- random formulas ---- */

enum op {
	OP_TRUE, OP_FALSE, OP_DEADLOCK, OP_FIREABLE, OP_LE, OP_LT, OP_GE, OP_GT, OP_EQ, OP_NE,
	ATOMS,
	OP_NOT = ATOMS, OP_AND, OP_OR, OP_XOR, OP_IMPLIES, OP_SAME,
	TEMPORAL,
	OP_EX = TEMPORAL, OP_EF, OP_EG, OP_AX, OP_AF, OP_AG, OP_EU, OP_AU,
	OPS,
	OP_BOUND = OPS
};

/* places[0] + ... + places[count - 1] + plus - minus */
struct number {
	unsigned int place[MOST_TERMS], count, plus;
	int minus;		/* a place, or -1 */
};

struct tree {
	enum op op;
	struct tree *a, *b;
	struct number x, y;
	unsigned int transition[MOST_TERMS], count;
};

static const char *const element[] = {
	[OP_TRUE] = "true", [OP_FALSE] = "false", [OP_DEADLOCK] = "deadlock",
	[OP_LE] = "integer-le", [OP_LT] = "integer-lt", [OP_GE] = "integer-ge",
	[OP_GT] = "integer-gt", [OP_EQ] = "integer-eq", [OP_NE] = "integer-ne",
	[OP_NOT] = "negation", [OP_AND] = "conjunction", [OP_OR] = "disjunction",
	[OP_XOR] = "exclusive-disjunction", [OP_IMPLIES] = "implication",
	[OP_SAME] = "equivalence",
};

static void random_number(struct number *x, const struct net *net)
{
	unsigned int i;

	memset(x, 0, sizeof(*x));
	x->count = random() % (MOST_TERMS + 1);
	for (i = 0; i < x->count; i++)
		x->place[i] = random() % net->places;
	x->plus = x->count && random() % 2 ? 0 : random() % (random() % 8 ? 6 : 1000);
	x->minus = random() % 5 ? -1 : (int)(random() % net->places);
}

static struct tree *random_tree(const struct net *net, unsigned int depth)
{
	struct tree *t = calloc(1, sizeof(*t));
	unsigned int i;

	assert_non_null(t);
	t->op = random() % (depth ? OPS : ATOMS);
	if (depth && t->op < OP_FIREABLE)	/* fewer of the dull ones */
		t->op = random() % OPS;
	if (t->op >= OP_NOT)
		t->a = random_tree(net, depth - 1);
	if ((t->op >= OP_AND && t->op < TEMPORAL) || t->op >= OP_EU)
		t->b = random_tree(net, depth - 1);
	t->count = 1 + random() % MOST_TERMS;
	for (i = 0; i < t->count; i++)
		t->transition[i] = random() % net->transitions;
	random_number(&t->x, net);
	random_number(&t->y, net);
	return t;
}

/* Formulas of the kinds that the contest asks: about reachability, bounds, or any. */
static struct tree *random_formula(const struct net *net)
{
	struct tree *t = random_tree(net, random() % 4);

	if (random() % 6 == 0) {
		t->op = OP_BOUND;
		t->x.count += !t->x.count;
	} else if (random() % 3 == 0) {
		struct tree *a = t;

		t = calloc(1, sizeof(*t));
		assert_non_null(t);
		t->op = random() % 2 ? OP_EF : OP_AG;
		t->a = a;
	}
	return t;
}

static void free_tree(struct tree *t)
{
	if (!t)
		return;
	free_tree(t->a);
	free_tree(t->b);
	free(t);
}

static void write_number(FILE *file, const struct number *x)
{
	unsigned int i;

	fprintf(file, x->minus < 0 ? "<integer-sum>" : "<integer-difference><integer-sum>");
	if (x->count)
		fprintf(file, "<tokens-count>");
	for (i = 0; i < x->count; i++)
		fprintf(file, "<place>p%u</place>", x->place[i]);
	if (x->count)
		fprintf(file, "</tokens-count>");
	fprintf(file, "<integer-constant>%u</integer-constant></integer-sum>\n", x->plus);
	if (x->minus >= 0)
		fprintf(file, "<tokens-count><place> p%d </place></tokens-count></integer-difference>",
			x->minus);
}

static void write_tree(FILE *file, const struct tree *t);

static void write_temporal(FILE *file, const struct tree *t)
{
	static const char *const operator[] = { "next", "finally", "globally" };
	bool all = (t->op >= OP_AX && t->op <= OP_AG) || t->op == OP_AU;
	const char *around = all ? "all-paths" : "exists-path";
	const char *name = t->op >= OP_EU ? "until" : operator[(t->op - OP_EX) % 3];

	fprintf(file, "<%s><%s>", around, name);
	if (t->op >= OP_EU)
		fprintf(file, "<before>");
	write_tree(file, t->a);
	if (t->op >= OP_EU) {
		fprintf(file, "</before><reach>");
		write_tree(file, t->b);
		fprintf(file, "</reach>");
	}
	fprintf(file, "</%s></%s>\n", name, around);
}

static void write_tree(FILE *file, const struct tree *t)
{
	unsigned int i;

	if (t->op == OP_FIREABLE || t->op == OP_BOUND) {
		fprintf(file, t->op == OP_BOUND ? "<place-bound>" : "<is-fireable>");
		for (i = 0; t->op == OP_BOUND && i < t->x.count; i++)
			fprintf(file, "<place>p%u</place>", t->x.place[i]);
		for (i = 0; t->op == OP_FIREABLE && i < t->count; i++)
			fprintf(file, "<transition>t%u</transition>", t->transition[i]);
		fprintf(file, t->op == OP_BOUND ? "</place-bound>" : "</is-fireable>");
		return;
	}
	if (t->op >= TEMPORAL) {
		write_temporal(file, t);
		return;
	}
	fprintf(file, "<%s>", element[t->op]);
	if (t->op >= OP_LE && t->op <= OP_NE) {
		write_number(file, &t->x);
		write_number(file, &t->y);
	}
	if (t->a)
		write_tree(file, t->a);
	if (t->b)
		write_tree(file, t->b);
	fprintf(file, "</%s>", element[t->op]);
}

static void write_formulas(struct tree *const *tree, unsigned int count)
{
	FILE *file = fopen(xml, "w");
	unsigned int i;

	assert_non_null(file);
	fprintf(file, "<?xml version='1.0'?>\n<property-set xmlns='http://mcc.lip6.fr/'>\n");
	for (i = 0; i < count; i++) {
		fprintf(file, "<property><id>f-%u</id>", i);
		fprintf(file, "<description>any &amp; all</description>");
		fprintf(file, "<formula>");
		write_tree(file, tree[i]);
		fprintf(file, "</formula></property>\n");
	}
	fprintf(file, "</property-set>\n");
	assert_int_equal(fclose(file), 0);
}

/* ---- the same formulas, state by state ---- */

struct graph {
	const struct net *net;
	const struct space *space;
	unsigned int next[FEW_STATES][MOST_TRANSITIONS], nexts[FEW_STATES];
};

static unsigned int index_of(const struct space *space, const unsigned int *state)
{
	unsigned int i = 0;

	while (memcmp(space->state[i], state, sizeof(space->state[i])))
		i++;
	return i;
}

static void make_graph(struct graph *g, const struct net *net, const struct space *space)
{
	unsigned int i, t, to[MOST_PLACES];

	g->net = net;
	g->space = space;
	for (i = 0; i < space->states; i++) {
		g->nexts[i] = 0;
		for (t = 0; t < net->transitions; t++)
			if (fire(net, t, space->state[i], to))
				g->next[i][g->nexts[i]++] = index_of(space, to);
	}
}

static long number_in(const struct number *x, const unsigned int *state)
{
	long sum = x->plus;
	unsigned int i;

	for (i = 0; i < x->count; i++)
		sum += state[x->place[i]];
	return x->minus < 0 ? sum : sum - (long)state[x->minus];
}

static bool atom_in(const struct graph *g, const struct tree *t, unsigned int i)
{
	const unsigned int *state = g->space->state[i];
	long x = number_in(&t->x, state), y = number_in(&t->y, state);
	unsigned int k, to[MOST_PLACES];

	switch (t->op) {
	case OP_TRUE:
		return true;
	case OP_FALSE:
		return false;
	case OP_DEADLOCK:
		return !g->nexts[i];
	case OP_LE:
		return x <= y;
	case OP_LT:
		return x < y;
	case OP_GE:
		return x >= y;
	case OP_GT:
		return x > y;
	case OP_EQ:
		return x == y;
	case OP_NE:
		return x != y;
	default:
		for (k = 0; k < t->count; k++)
			if (fire(g->net, t->transition[k], state, to))
				return true;
		return false;
	}
}

/* The number of successors of state i in the set */
static unsigned int nexts_in(const struct graph *g, unsigned int i, const bool *set)
{
	unsigned int count = 0, k;

	for (k = 0; k < g->nexts[i]; k++)
		count += set[g->next[i][k]];
	return count;
}

/* One state of a fixed point, from the last approximation in is */
static bool step_in(const struct graph *g, enum op which, const bool *a, const bool *b,
		    const bool *is, unsigned int i)
{
	unsigned int in = nexts_in(g, i, is), all = g->nexts[i];

	switch (which) {
	case OP_EF:
		return a[i] || in;
	case OP_AF:
		return a[i] || (all && in == all);
	case OP_EG:
		return a[i] && (!all || in);
	case OP_AG:
		return a[i] && in == all;
	case OP_EU:
		return b[i] || (a[i] && in);
	default:
		return b[i] || (a[i] && all && in == all);
	}
}

static void values_of(const struct graph *g, const struct tree *t, bool *is);

static void temporal_values(const struct graph *g, const struct tree *t, const bool *a,
			    const bool *b, bool *is)
{
	bool changed = true, now;
	unsigned int i;

	for (i = 0; i < g->space->states; i++) {
		if (t->op == OP_EX)
			is[i] = nexts_in(g, i, a);
		else if (t->op == OP_AX)
			is[i] = nexts_in(g, i, a) == g->nexts[i];
		else
			is[i] = t->op == OP_EG || t->op == OP_AG;
	}
	while (changed && t->op != OP_EX && t->op != OP_AX) {
		changed = false;
		for (i = 0; i < g->space->states; i++) {
			now = step_in(g, t->op, a, b, is, i);
			changed |= now != is[i];
			is[i] = now;
		}
	}
}

static void values_of(const struct graph *g, const struct tree *t, bool *is)
{
	bool a[FEW_STATES], b[FEW_STATES];
	unsigned int i;

	if (t->a)
		values_of(g, t->a, a);
	if (t->b)
		values_of(g, t->b, b);
	if (t->op >= TEMPORAL) {
		temporal_values(g, t, a, b, is);
		return;
	}
	for (i = 0; i < g->space->states; i++) {
		switch (t->op) {
		case OP_NOT:
			is[i] = !a[i];
			break;
		case OP_AND:
			is[i] = a[i] && b[i];
			break;
		case OP_OR:
			is[i] = a[i] || b[i];
			break;
		case OP_XOR:
			is[i] = a[i] != b[i];
			break;
		case OP_IMPLIES:
			is[i] = !a[i] || b[i];
			break;
		case OP_SAME:
			is[i] = a[i] == b[i];
			break;
		default:
			is[i] = atom_in(g, t, i);
		}
	}
}

static unsigned long bound_of(const struct graph *g, const struct number *x)
{
	unsigned long most = 0, sum;
	unsigned int i, k;

	for (i = 0; i < g->space->states; i++) {
		for (sum = 0, k = 0; k < x->count; k++)
			sum += g->space->state[i][x->place[k]];
		if (most < sum)
			most = sum;
	}
	return most;
}

/* The least steps to a state that proves EF, or disproves AG; -1 if the formula has no trace */
static long steps_of(const struct graph *g, const struct tree *t, bool answer)
{
	bool a[FEW_STATES];
	unsigned int i, k;

	while (t->op == OP_NOT) {
		answer = !answer;
		t = t->a;
	}
	if (t->op != (answer ? OP_EF : OP_AG))
		return -1;
	values_of(g, t->a, a);
	for (i = 0; a[i] != answer; i++)
		;
	for (k = 0; g->space->end[k] <= i; k++)
		;
	return k;
}

/* ---- searches ---- */

enum strategy { BFS, CHAINING, SATURATION, STRATEGIES };

static void write_net_file(const struct net *net)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	write_net(net, file);
	assert_int_equal(fclose(file), 0);
}

static void check_formula(const struct graph *g, const struct tree *t,
			  const struct kdsm_reach_formula *f, bool trace)
{
	bool is[FEW_STATES];
	long steps;

	if (t->op == OP_BOUND) {
		assert_int_equal(f->answer, KDSM_REACH_BOUND);
		assert_int_equal(f->bound, bound_of(g, &t->x));
		return;
	}
	values_of(g, t, is);
	if (f->answer != (is[0] ? KDSM_REACH_TRUE : KDSM_REACH_FALSE))
		fail_msg("%s: %s is %s, not %s %s", path, f->id, is[0] ? "true" : "false",
			 f->answer == KDSM_REACH_UNKNOWN ? "unknown" : "that",
			 f->why ? f->why : "");
	steps = trace ? steps_of(g, t, is[0]) : -1;
	assert_int_equal(!!f->trace, steps >= 0);
	if (steps >= 0)
		assert_int_equal(f->trace->steps, steps);
}

static void prepare_search(struct job *job, unsigned int nodes, unsigned int workers,
			   unsigned int number)
{
	static const char *const files[] = { xml };
	unsigned int i;

	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.chaining = number % STRATEGIES == CHAINING;
		job[i].options.saturation = number % STRATEGIES == SATURATION;
		job[i].options.trace = number % STRATEGIES == BFS;
		job[i].options.order = number % (KDSM_REACH_ORDER_LAST + 1);
		job[i].options.bdd.table_bytes = 4 << 20;
		job[i].options.bdd.cache_bytes = 1 << 20;
		job[i].options.formula = files;
		job[i].options.formulas = 1;
	}
}

static void search(const struct graph *g, struct tree *const *tree, unsigned int number)
{
	unsigned int nodes = number % 7 ? 1 : 2, i;
	struct job job[2];

	sim_start(nodes);
	prepare_search(job, nodes, number % 5 ? 1 : 2, number);
	run_well(job, nodes);
	assert_int_equal(mpz_get_ui(job[0].result.states), g->space->states);
	assert_int_equal(job[0].result.formulas, FORMULAS);
	for (i = 0; i < FORMULAS; i++)
		check_formula(g, tree[i], &job[0].result.formula[i],
			      job[0].options.trace);
	drop(job, nodes);
	sim_stop();
}

static void random_formulas(void **state)
{
	unsigned long nets = from_environment("KDSM_FORMULAS", NETS), n = 0;
	static struct space space;
	static struct graph graph;
	struct tree *tree[FORMULAS];
	struct net net;
	unsigned int i;

	(void)state;
	srandom(from_environment("KDSM_SEED", 1));
	while (n < nets) {
		random_net(&net);
		explore_net(&net, &space, FEW_STATES);
		if (!space.whole || space.states < 5)
			continue;
		make_graph(&graph, &net, &space);
		for (i = 0; i < FORMULAS; i++)
			tree[i] = random_formula(&net);
		write_net_file(&net);
		write_formulas(tree, FORMULAS);
		search(&graph, tree, n++);
		for (i = 0; i < FORMULAS; i++)
			free_tree(tree[i]);
	}
	printf("# %lu nets, %lu formulas\n", n, n * FORMULAS);
}

/* Search with a table of so many KiB, and count the formulas that it is too small for. */
static unsigned int search_small(const struct graph *g, struct tree *const *tree,
				 unsigned int nodes, unsigned int kib, uint64_t *collections)
{
	unsigned int unknown = 0, i;
	struct job job[2];

	sim_start(nodes);
	prepare_search(job, nodes, 1, CHAINING);
	for (i = 0; i < nodes; i++)
		job[i].options.bdd.table_bytes = kib << 10;
	start(job, nodes);
	finish(job, nodes);
	for (i = 0; job[0].status == 0 && i < FORMULAS; i++) {
		const struct kdsm_reach_formula *f = &job[0].result.formula[i];

		if (f->answer == KDSM_REACH_UNKNOWN) {
			assert_non_null(strstr(f->why, "give a larger --table"));
			unknown++;
		} else {
			check_formula(g, tree[i], f, false);
		}
	}
	if (job[0].status == 0)
		assert_int_equal(mpz_get_ui(job[0].result.states), g->space->states);
	else
		assert_true(job[0].status == -ENOSPC || job[0].status == -ECANCELED);
	*collections += job[0].result.collections.count;
	drop(job, nodes);
	sim_stop();
	return unknown;
}

/*
 * Places that the search widens several times, and tables that are too small for the garbage, or
 * for some of the formulas.
 */
static void small_tables(void **state)
{
	unsigned int number, unknown = 0, kib, i;
	static struct space space;
	static struct graph graph;
	struct net net = fuel_net(20);
	struct tree *tree[FORMULAS];
	uint64_t collections = 0;

	(void)state;
	srandom(2);
	explore_net(&net, &space, FEW_STATES);
	assert_true(space.whole);
	make_graph(&graph, &net, &space);
	write_net_file(&net);
	for (number = 0; number < SMALL_LISTS; number++) {
		for (i = 0; i < FORMULAS; i++)
			tree[i] = random_formula(&net);
		write_formulas(tree, FORMULAS);
		search(&graph, tree, number);
		for (kib = 26; kib > 4; kib -= kib > 16 ? 5 : 1)
			unknown += search_small(&graph, tree, 1 + number % 2, kib, &collections);
		for (i = 0; i < FORMULAS; i++)
			free_tree(tree[i]);
	}
	printf("# %lu collections, %u formulas unknown\n", collections, unknown);
	assert_true(collections > 20);
	assert_true(unknown > 0);
}

/* A search that ends early answers only what the states that it has found decide. */
static void cut_search(void **state)
{
	static struct space space;
	struct net net = fuel_net(20);
	struct tree tree[6] = { 0 }, *list[FORMULAS];
	unsigned int i;
	struct job job;

	(void)state;
	explore_net(&net, &space, FEW_STATES);
	write_net_file(&net);
	tree[0] = (struct tree){ .op = OP_GE, .x = { { 1 }, 1, 0, -1 }, .y.minus = -1 };
	tree[0].y.plus = 2;
	tree[1] = tree[0];
	tree[1].y.plus = 19;
	tree[2] = (struct tree){ .op = OP_EF, .a = &tree[0] };	/* found in two steps */
	tree[3] = (struct tree){ .op = OP_EF, .a = &tree[1] };	/* not yet */
	tree[4] = (struct tree){ .op = OP_NOT, .a = &tree[2] };
	tree[5] = (struct tree){ .op = OP_BOUND, .x = tree[0].x };
	for (i = 0; i < FORMULAS; i++)
		list[i] = &tree[i < 6 ? i : 0];
	write_formulas(list, FORMULAS);
	sim_start(1);
	prepare_search(&job, 1, 1, BFS);
	job.options.levels = 3;
	run_well(&job, 1);
	assert_false(job.result.complete);
	assert_int_equal(job.result.formula[0].answer, KDSM_REACH_FALSE);
	assert_int_equal(job.result.formula[2].answer, KDSM_REACH_TRUE);
	assert_int_equal(job.result.formula[2].trace->steps, 2);
	assert_int_equal(job.result.formula[3].answer, KDSM_REACH_UNKNOWN);
	assert_int_equal(job.result.formula[4].answer, KDSM_REACH_FALSE);
	assert_int_equal(job.result.formula[5].answer, KDSM_REACH_UNKNOWN);
	drop(&job, 1);
	sim_stop();
}

/* ---- files that are wrong ---- */

static struct kd_model small_model(void)
{
	struct net net = fuel_net(2);

	write_net_file(&net);
	return (struct kd_model){ .net = read_net(path) };
}

static int read_text(const struct kd_model *model, const char *text, size_t size,
		     struct kdsm_reach_message *message)
{
	struct kd_formulas formulas = { 0 };
	FILE *file = fopen(xml, "w");
	int r;

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	message->text[0] = 0;
	r = kd_formulas_read(xml, model, &formulas, message);
	kd_formulas_free(&formulas);
	return r;
}

/* The file is refused with a message that has this part. */
static void expect(const struct kd_model *model, const char *text, const char *part)
{
	struct kdsm_reach_message message;

	assert_int_equal(read_text(model, text, strlen(text), &message), -EINVAL);
	if (!strstr(message.text, part))
		fail_msg("%s: %s", text, message.text);
}

static void refused(void **state)
{
#define P0	"<tokens-count><place>p0</place></tokens-count>"
	static const struct {
		const char *formula, *message;
	} wrong[] = {
		{ "<finally><true/></finally>",
		  ":3: not of CTL, because no path quantifier stands before finally" },
		{ "<all-paths><finally><globally><true/></globally></finally></all-paths>",
		  ":3: not of CTL, because no path quantifier stands before globally" },
		{ "<all-paths><true/></all-paths>", ":3: cannot stand here: true" },
		{ "<all-paths/>", ":3: too few elements in all-paths" },
		{ "<is-live/>", ":3: not supported: is-live" },
		{ "<is-fireable><transition>t9</transition></is-fireable>",
		  ":3: the net has no transition with the id t9" },
		{ "<is-fireable><transition>p0</transition></is-fireable>", "no transition" },
		{ "<place-bound><place>t0</place></place-bound>",
		  ":3: the net has no place with the id t0" },
		{ "<negation><place-bound><place>p0</place></place-bound></negation>",
		  ":3: cannot stand here: place-bound" },
		{ "<integer-le>" P0 "</integer-le>", ":3: too few elements in integer-le" },
		{ "<integer-le>" P0 P0 P0 "</integer-le>", ":3: too many elements in integer-le" },
		{ "<integer-le>" P0 "<true/></integer-le>", ":3: cannot stand here: true" },
		{ "<integer-le>" P0 "<integer-constant>x</integer-constant></integer-le>",
		  ":3: not a number of tokens that a net can have: x" },
		{ "<integer-le>" P0 "<integer-constant>-1</integer-constant></integer-le>",
		  ": -1" },
		{ "<integer-le>" P0 "<integer-constant>99999999999999</integer-constant></integer-le>",
		  ": 99999999999999" },
		{ "<exists-path><until><reach><true/></reach><before><true/></before></until></exists-path>",
		  ":3: reach stands in front of before" },
		{ "<exists-path><until><before><true/></before><before><true/></before></until></exists-path>",
		  ":3: a second element of the kind before" },
		{ "<true>x</true>", ":3: text where no text is expected, in true" },
		{ "<true/><true/>", ":3: too many elements in formula" },
		{ "", ":3: too few elements in formula" },
		{ "<true>", ":3: not well-formed XML: mismatched tag" },
	};
	struct kd_model model = small_model(), other = { 0 };
	struct kdsm_reach_message message;
	char text[1024], *deep;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(text, sizeof(text),
			 "<property-set>\n<property><id>a</id>\n"
			 "<formula>%s</formula></property></property-set>",
			 wrong[i].formula);
		assert_int_equal(read_text(&model, text, strlen(text), &message), -EINVAL);
		if (!strstr(message.text, wrong[i].message) || !strstr(message.text, xml))
			fail_msg("%s: %s", wrong[i].formula, message.text);
	}
	expect(&model, "<pnml/>", "no formulas: the outermost element is pnml");
	expect(&model, "", "no element found");
	expect(&model, "<!DOCTYPE a [<!ENTITY b 'c'>]><property-set/>", "document type");
	expect(&model, "<property-set><property><formula><true/></formula></property></property-set>",
	       "a property without id");
	expect(&model, "<property-set><property><id>a b</id></property></property-set>", "blank in it: a b");
	expect(&model, "<property-set><property><id>a</id></property></property-set>",
	       "a property without formula: a");
	assert_int_equal(read_text(&model, "<property-set/>", 15, &message), 0);
	assert_int_equal(read_text(&other, "<property-set/>", 15, &message), -EINVAL);
	assert_non_null(strstr(message.text, "formulas are about Petri nets"));

	deep = malloc(300 * strlen("<negation>") + 100);
	strcpy(deep, "<property-set><property><formula>");
	for (i = 0; i < 300; i++)
		strcat(deep, "<negation>");
	expect(&model, deep, ":1: elements nested too deep");
	free(deep);
	kd_net_free(model.net);
}

/* Damaged files are read, or refused with a message; nothing else happens. */
static void mutations(void **state)
{
	unsigned long rounds = from_environment("KDSM_MUTATIONS", MUTATIONS), n, read = 0;
	struct kd_model model = small_model();
	struct net net = fuel_net(2);
	struct kdsm_reach_message message;
	struct tree *tree[FORMULAS];
	static char whole[1 << 20], text[2 << 20];
	size_t size = 0, cut, from, k;
	unsigned int i;
	FILE *file;

	(void)state;
	srandom(from_environment("KDSM_SEED", 3));
	for (n = 0; n < rounds; n++) {
		if (n % 50 == 0) {
			for (i = 0; i < FORMULAS; i++)
				tree[i] = random_formula(&net);
			write_formulas(tree, FORMULAS);
			for (i = 0; i < FORMULAS; i++)
				free_tree(tree[i]);
			file = fopen(xml, "r");
			assert_non_null(file);
			size = fread(whole, 1, sizeof(whole), file);
			fclose(file);
			assert_int_equal(read_text(&model, whole, size, &message), 0);
		}
		memcpy(text, whole, size);
		k = size;
		switch (random() % 5) {
		case 0:		/* bytes */
			for (i = random() % 4 + 1; i--; )
				text[random() % size] = random();
			break;
		case 4:		/* a digit */
			for (from = random() % size; text[from] < '0' || text[from] > '9'; )
				from = (from + 1) % size;
			text[from] = random() % 4 ? '0' + random() % 10 : '-';
			break;
		case 1:		/* the end is missing */
			k = random() % size;
			break;
		case 2:		/* a part is missing */
			from = random() % size;
			cut = random() % (random() % 2 ? 40 : size - from);
			if (cut > size - from)
				cut = size - from;
			memmove(text + from, text + from + cut, size - from - cut);
			k -= cut;
			break;
		default:	/* a part comes twice */
			from = random() % size;
			cut = random() % (size - from);
			memmove(text + from + cut, text + from, size - from);
			k += cut;
		}
		if (read_text(&model, text, k, &message) == 0)
			read++;
		else
			assert_non_null(strstr(message.text, xml));
	}
	printf("# %lu files, %lu of them still valid\n", rounds, read);
	kd_net_free(model.net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_formulas),
		cmocka_unit_test(small_tables),
		cmocka_unit_test(cut_search),
		cmocka_unit_test(refused),
		cmocka_unit_test(mutations),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("formulas", tests, make_names, remove_files);
}
