// SPDX-License-Identifier: GPL-2.0
/*
 * Petri nets before the search: bounds of places from semiflows, random walks, orders of the
 * places, and the BDDs of markings.
 */
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bdd.h"
#include "reach/internal.h"
#include "reach/order.h"
#include "small_nets.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS	100
#define WALKS	20
#else
#define ROUNDS	1000
#define WALKS	60
#endif

/* ---- nets ---- */

/* A net as text, which grows by place(), transition(), take() and give() */
struct text {
	char *bytes;
	size_t size;
	FILE *file;
};

static void begin_text(struct text *text)
{
	text->file = open_memstream(&text->bytes, &text->size);
	assert_non_null(text->file);
}

static struct kd_net *end_text(struct text *text)
{
	struct kdsm_reach_message message;
	struct kd_net *net;

	assert_int_equal(fclose(text->file), 0);
	if (kd_net_read("net", (unsigned char *)text->bytes, text->size, &net, &message))
		fail_msg("%s", message.text);
	free(text->bytes);
	return net;
}

static struct kd_net *read_small(const struct net *small)
{
	struct text text;

	begin_text(&text);
	write_net(small, text.file);
	return end_text(&text);
}

static void begin_net(struct text *text)
{
	begin_text(text);
	fprintf(text->file, "<pnml><net id='n' type='ptnet'>");
}

static struct kd_net *end_net(struct text *text)
{
	fprintf(text->file, "</net></pnml>");
	return end_text(text);
}

static void place(struct text *text, unsigned int p, unsigned int tokens)
{
	fprintf(text->file,
		"<place id='p%u'><initialMarking><text>%u</text></initialMarking></place>",
		p, tokens);
}

static void transition(struct text *text, unsigned int t)
{
	fprintf(text->file, "<transition id='t%u'/>", t);
}

static void take(struct text *text, unsigned int p, unsigned int t)
{
	fprintf(text->file, "<arc source='p%u' target='t%u'/>", p, t);
}

static void give(struct text *text, unsigned int t, unsigned int p)
{
	fprintf(text->file, "<arc source='t%u' target='p%u'/>", t, p);
}

/* Each transition moves a few tokens: most of these nets have semiflows. */
static void random_moves(struct net *net)
{
	unsigned int t, i;

	memset(net, 0, sizeof(*net));
	net->places = 2 + random() % 8;
	net->transitions = 1 + random() % 8;
	for (i = 0; i < net->places; i++)
		net->marking[i] = random() % 4;
	for (t = 0; t < net->transitions; t++) {
		for (i = 1 + random() % 2; i; i--)
			net->in[t][random() % net->places] = 1 + random() % 2;
		for (i = 1 + random() % 2; i; i--)
			net->out[t][random() % net->places] = 1 + random() % 2;
		if (random() % 6 == 0)
			net->read[t][random() % net->places] = 1 + random() % 2;
	}
}

/* ---- semiflows ---- */

static void expect_bounds(const struct net *small, const uint64_t *bound)
{
	struct kd_net *net = read_small(small);
	unsigned int p;

	assert_int_equal(kd_net_semiflows(net), 0);
	for (p = 0; p < net->places; p++)
		if (net->place[p].bound != bound[p])
			fail_msg("place %u: bound %lu, not %lu", p, net->place[p].bound, bound[p]);
	kd_net_free(net);
}

static void bounds(void **state)
{
	const uint64_t none = UINT64_MAX;
	const struct net ring = {
		.places = 3, .transitions = 3, .marking = { 2, 0, 1 },
		.in = { { 1 }, { 0, 1 }, { 0, 0, 1 } }, .out = { { 0, 1 }, { 0, 0, 1 }, { 1 } },
	};
	const struct net weighted = {	/* 3 * place 0 + 2 * place 1 is constant */
		.places = 2, .transitions = 2, .marking = { 5, 1 },
		.in = { { 2 }, { 0, 3 } }, .out = { { 0, 3 }, { 2 } },
	};
	const struct net vanishing = {
		.places = 2, .transitions = 2, .marking = { 100 },
		.in = { { 1 }, { 0, 2 } }, .out = { { 0, 1 } },
	};
	const struct net source = {	/* and a place that only loses, and one without arcs */
		.places = 4, .transitions = 2, .marking = { 0, 7, 9, 1 },
		.in = { { 0 }, { 0, 2 } }, .out = { { 1 }, { 0 } },
		.read = { { 0 }, { 0, 0, 0, 1 } }, .inhibitor = { { 5 } },
	};
	const struct net back = {	/* taken and given back: only a need */
		.places = 2, .transitions = 1, .marking = { 3, 0 },
		.in = { { 3, 1 } }, .out = { { 3 } },
	};
	const struct net heavy = {	/* too large a change for the algorithm */
		.places = 3, .transitions = 2, .marking = { 1, 0, 1 },
		.in = { { 1 }, { 0, 0, 1 } }, .out = { { 0, INT32_MAX }, { 0, 0, 1 } },
	};
	const struct net fuel = fuel_net(100);
	struct net kanban = kanban_net(5);
	uint64_t fives[16];
	unsigned int i;

	(void)state;
	expect_bounds(&ring, (uint64_t[]){ 3, 3, 3 });
	expect_bounds(&weighted, (uint64_t[]){ 5, 8 });
	expect_bounds(&vanishing, (uint64_t[]){ 100, 100 });
	expect_bounds(&source, (uint64_t[]){ none, 7, 9, 1 });
	expect_bounds(&back, (uint64_t[]){ 3, 0 });
	expect_bounds(&heavy, (uint64_t[]){ 1, none, 1 });
	expect_bounds(&fuel, (uint64_t[]){ none, none, 0 });
	for (i = 0; i < 16; i++)
		fives[i] = 5;
	expect_bounds(&kanban, fives);
}

/* The random net of a round, its space of at most so many states, and what the library reads. */
static struct kd_net *next_net(unsigned int round, struct net *small, struct space *space,
			       unsigned int most)
{
	struct kd_net *net;

	if (round % 2)
		random_net(small);
	else
		random_moves(small);
	explore_net(small, space, most);
	net = read_small(small);
	assert_int_equal(kd_net_semiflows(net), 0);
	return net;
}

/* No state that an exploration finds, even a partial one, has more tokens than the bound. */
static void sound_bounds(void **state)
{
	static struct space space;
	unsigned int round, p, known = 0, exact = 0;
	struct kd_net *net;
	struct net small;

	(void)state;
	srandom(2);
	for (round = 0; round < ROUNDS; round++) {
		net = next_net(round, &small, &space, 300);
		for (p = 0; p < net->places; p++) {
			if (net->place[p].bound < space.tokens[p])
				fail_msg("net %u, place %u: bound %lu, but %u tokens", round, p,
					 net->place[p].bound, space.tokens[p]);
			known += net->place[p].bound != UINT64_MAX;
			exact += net->place[p].bound == space.tokens[p];
		}
		kd_net_free(net);
	}
	printf("# %u bounds, %u of them are exact\n", known, exact);
	assert_true(known > 2 * ROUNDS && exact > ROUNDS);
}

/*
 * Stages of two places each, with exponentially many semiflows: one place of every stage. The
 * bounds that are found before the limit are right.
 */
static void too_many_semiflows(void **state)
{
	const unsigned int stages = 60;
	unsigned int i, p, known = 0;
	uint32_t unbounded;
	struct kd_net *net;
	struct text text;

	(void)state;
	begin_net(&text);
	for (p = 0; p < 2 * stages; p++)
		place(&text, p, p < 2);
	for (i = 0; i < stages; i++) {
		transition(&text, i);
		for (p = 0; p < 2; p++) {
			take(&text, 2 * i + p, i);
			give(&text, i, 2 * ((i + 1) % stages) + p);
		}
	}
	net = end_net(&text);
	assert_int_equal(kd_net_semiflows(net), 0);
	assert_int_equal(kd_net_walk(net, &unbounded), 0);
	assert_int_equal(unbounded, 0);
	for (p = 0; p < net->places; p++) {
		assert_int_equal(net->place[p].seen, 1);
		assert_true(net->place[p].bound >= 1);
		known += net->place[p].bound == 1;
	}
	printf("# %u of %u bounds are known\n", known, net->places);
	kd_net_free(net);
}

/* A net whose transitions touch so many places that the work is limited */
static void much_work(void **state)
{
	const unsigned int places = 2000, transitions = 2000;
	unsigned int t, p, i;
	uint32_t unbounded;
	struct kd_net *net;
	struct text text;

	(void)state;
	srandom(3);
	begin_net(&text);
	for (p = 0; p < places; p++)
		place(&text, p, random() % 2);
	for (t = 0; t < transitions; t++) {
		transition(&text, t);
		for (i = 0; i < 6; i++) {
			take(&text, random() % places, t);
			give(&text, t, random() % places);
		}
	}
	net = end_net(&text);
	assert_int_equal(kd_net_semiflows(net), 0);
	assert_int_equal(kd_net_walk(net, &unbounded), 0);
	for (p = 0; p < places; p++)
		assert_true(net->place[p].bound >= net->place[p].seen);
	if (unbounded)
		assert_int_equal(net->place[unbounded - 1].bound, UINT64_MAX);
	kd_net_free(net);
}

/* ---- walks ---- */

static bool has_inhibitor(const struct net *net)
{
	unsigned int t, p;

	for (t = 0; t < net->transitions; t++)
		for (p = 0; p < net->places; p++)
			if (net->inhibitor[t][p])
				return true;
	return false;
}

/* Walks see only what is reachable, and call no bounded net unbounded. */
static void random_walks(void **state)
{
	static struct space space;
	unsigned int round, p, seen_all = 0, wholes = 0, named = 0;
	uint32_t unbounded;
	struct kd_net *net;
	struct net small;

	(void)state;
	srandom(4);
	for (round = 0; round < WALKS; round++) {
		net = next_net(round, &small, &space, 1000);
		assert_int_equal(kd_net_walk(net, &unbounded), 0);
		for (p = 0; p < net->places; p++) {
			assert_true(net->place[p].seen >= small.marking[p]);
			assert_true(net->place[p].seen <= net->place[p].bound);
			if (!space.whole)
				continue;
			if (net->place[p].seen > space.tokens[p])
				fail_msg("net %u, place %u: saw %lu, but %u tokens", round, p,
					 net->place[p].seen, space.tokens[p]);
			seen_all += net->place[p].seen == space.tokens[p];
		}
		wholes += space.whole;
		if (unbounded) {
			assert_false(space.whole);
			assert_false(has_inhibitor(&small));
			assert_int_equal(net->place[unbounded - 1].bound, UINT64_MAX);
			named++;
		}
		kd_net_free(net);
	}
	printf("# %u nets explored, %u unbounded, the most tokens of %u places seen\n", wholes,
	       named, seen_all);
	assert_true(wholes > WALKS / 5 && named > WALKS / 20 && seen_all > wholes);
}

/* Walk a net; return 1 + the place that it names, or 0. */
static uint32_t walk(const struct net *small, unsigned int place, uint64_t *seen)
{
	struct kd_net *net = read_small(small);
	uint32_t unbounded;

	assert_int_equal(kd_net_walk(net, &unbounded), 0);
	*seen = net->place[place].seen;
	kd_net_free(net);
	return unbounded;
}

static void unbounded_nets(void **state)
{
	const struct net source = { .places = 1, .transitions = 1, .out = { { 1 } } };
	struct net second = {		/* place 1 grows where places 0 and 2 take turns */
		.places = 3, .transitions = 2, .marking = { 1 },
		.in = { { 1 }, { 0, 0, 1 } }, .out = { { 0, 1, 1 }, { 1 } },
	};
	struct net stopped = source;
	struct net needs_none = second;
	struct net unrelated = second;
	uint64_t seen;

	(void)state;
	assert_int_equal(walk(&source, 0, &seen), 1);
	assert_int_equal(walk(&second, 1, &seen), 2);

	/* an inhibitor arc stops the transition at 5 tokens */
	stopped.inhibitor[0][0] = 5;
	assert_int_equal(walk(&stopped, 0, &seen), 0);
	assert_int_equal(seen, 5);
	needs_none.inhibitor[1][1] = 9;
	assert_int_equal(walk(&needs_none, 1, &seen), 0);
	assert_int_equal(seen, 9);
	/* this one has no bound, but that is for the search to find out */
	unrelated.inhibitor[1][0] = 1;
	assert_int_equal(walk(&unrelated, 1, &seen), 0);
	assert_true(seen > 1000);

	/* a read arc needs tokens, but takes none */
	second.read[0][1] = 1;
	assert_int_equal(walk(&second, 1, &seen), 0);
	assert_int_equal(seen, 0);
	second.marking[1] = 1;
	assert_int_equal(walk(&second, 1, &seen), 2);
}

/* ---- orders ---- */

static void expect_permutation(const uint32_t *order, uint32_t places)
{
	bool *there = calloc(places, sizeof(*there));
	uint32_t i;

	for (i = 0; i < places; i++) {
		assert_true(order[i] < places);
		assert_false(there[order[i]]);
		there[order[i]] = true;
	}
	free(there);
}

/* The variant is a permutation, and the same when it is made once more. */
static void expect_variant(const struct kd_net *net, unsigned int number, uint32_t *order)
{
	uint32_t *again = calloc(net->places + 1, sizeof(*again));
	size_t bytes = net->places * sizeof(*order);

	memset(order, 0xff, bytes);
	assert_int_equal(kd_net_order_variant(net, number, order), 0);
	expect_permutation(order, net->places);
	assert_int_equal(kd_net_order_variant(net, number, again), 0);
	assert_memory_equal(order, again, bytes);
	free(again);
}

/* Make every order of the net, and free the net. */
static void expect_orders(struct kd_net *net)
{
	uint32_t *order = calloc(net->places, sizeof(*order));
	size_t bytes = net->places * sizeof(*order);
	unsigned int i, k;

	for (i = KDSM_REACH_ORDER_FILE; i <= KDSM_REACH_ORDER_LAST; i++) {
		memset(order, 0xff, bytes);
		assert_int_equal(kd_net_order(net, i, order), 0);
		expect_permutation(order, net->places);
		for (k = 0; k < net->places && i == KDSM_REACH_ORDER_FILE; k++)
			assert_int_equal(order[k], k);
		for (k = 0; k < net->places && i == KDSM_REACH_ORDER_REVERSED; k++)
			assert_int_equal(order[k], net->places - 1 - k);
	}
	assert_int_equal(kd_net_orders(net), 0);
	assert_int_equal(net->orders, net->units < net->places ? 5 : 4);
	for (i = 0; i < net->orders; i++) {
		assert_in_range(net->best[i], KDSM_REACH_ORDER_FILE, KDSM_REACH_ORDER_LAST);
		for (k = 0; k < i; k++)
			assert_int_not_equal(net->best[k], net->best[i]);
	}
	free(order);
	kd_net_free(net);
}

/* Make some variants of orders of the net, and free the net. */
static void expect_variants(struct kd_net *net)
{
	uint32_t *order = calloc(net->places, sizeof(*order));
	unsigned int i;

	for (i = 0; i < 4; i++)
		expect_variant(net, i, order);
	expect_variant(net, UINT_MAX, order);
	free(order);
	kd_net_free(net);
}

static void orders_of_random_nets(void **state)
{
	unsigned int round, i;
	struct kd_net *net;
	struct net small;

	(void)state;
	srandom(5);
	for (round = 0; round < ROUNDS; round++) {
		if (round % 2)
			random_net(&small);
		else
			random_moves(&small);	/* few arcs: often not connected */
		net = read_small(&small);
		for (i = 0; i < net->places && round % 3; i++)
			net->place[i].unit = i % (round % 3);
		net->units = round % 3 && round % 3 < net->places ? round % 3 : net->places;
		if (round % 20)
			expect_orders(net);
		else
			expect_variants(net);
	}
}

static void orders_of_odd_nets(void **state)
{
	const struct net one = { .places = 1 };
	const struct net loop = {
		.places = 1, .transitions = 1, .in = { { 1 } }, .out = { { 1 } },
	};
	const struct net arcless = { .places = 7, .transitions = 3 };
	const struct net no_transition = { .places = 9, .marking = { 1, 2, 3 } };
	const struct net islands = {
		.places = 8, .transitions = 2,
		.in = { { 0, 1 }, { [4] = 1 } }, .out = { { [6] = 1 }, { [2] = 1 } },
	};

	(void)state;
	expect_orders(read_small(&one));
	expect_variants(read_small(&one));
	expect_orders(read_small(&loop));
	expect_variants(read_small(&loop));
	expect_orders(read_small(&arcless));
	expect_variants(read_small(&arcless));
	expect_orders(read_small(&no_transition));
	expect_variants(read_small(&no_transition));
	expect_orders(read_small(&islands));
	expect_variants(read_small(&islands));
}

static void variants_of_no_places(void **state)
{
	const struct kd_net empty = { 0 };
	uint32_t order;
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(kd_net_order_variant(&empty, i, &order), 0);
}

/* A chain of places whose numbers are shuffled */
static struct kd_net *shuffled_chain(unsigned int places)
{
	unsigned int *number = calloc(places, sizeof(*number)), i, other, t;
	struct text text;

	for (i = 0; i < places; i++) {
		other = random() % (i + 1);
		number[i] = number[other];
		number[other] = i;
	}
	begin_net(&text);
	for (i = 0; i < places; i++)
		place(&text, i, 0);
	for (i = 0; i < places - 1; i++) {
		t = number[i];
		transition(&text, t);
		take(&text, number[i], t);
		give(&text, t, number[i + 1]);
	}
	free(number);
	return end_net(&text);
}

static double span_of_order(const struct kd_net *net, const uint32_t *order)
{
	uint32_t *position = calloc(net->places, sizeof(*position)), i;
	struct kd_graph graph;
	double span;

	for (i = 0; i < net->places; i++)
		position[order[i]] = i;
	assert_int_equal(kd_graph_new(&graph, net), 0);
	span = kd_order_span(&graph, position);
	kd_graph_destroy(&graph);
	free(position);
	return span;
}

static double span_of(const struct kd_net *net, enum kdsm_reach_order which)
{
	uint32_t *order = calloc(net->places, sizeof(*order));
	double span;

	assert_int_equal(kd_net_order(net, which, order), 0);
	span = span_of_order(net, order);
	free(order);
	return span;
}

static void shorter_spans(void **state)
{
	enum { places = 40 };
	uint32_t variant[places];
	unsigned int round;

	(void)state;
	srandom(6);
	for (round = 0; round < 10; round++) {
		struct kd_net *net = shuffled_chain(places);
		const double shortest = 1.0 / places;
		double file = span_of(net, KDSM_REACH_ORDER_FILE);

		assert_true(file > 5 * shortest);
		assert_true(span_of(net, KDSM_REACH_ORDER_SLOAN) < 1.001 * shortest);
		assert_true(span_of(net, KDSM_REACH_ORDER_SLOAN_REVERSED) < 1.001 * shortest);
		assert_true(span_of(net, KDSM_REACH_ORDER_CUTHILL_MCKEE) < 1.001 * shortest);
		assert_true(span_of(net, KDSM_REACH_ORDER_FORCE) < file / 2);
		assert_int_equal(kd_net_order_variant(net, round, variant), 0);
		assert_true(span_of_order(net, variant) < file / 2);
		assert_int_equal(kd_net_orders(net), 0);
		assert_true(span_of(net, net->best[0]) < file / 2);
		expect_orders(net);
	}
}

/* Transitions that move tokens between random places */
static struct kd_net *random_arcs(unsigned int places, unsigned int transitions)
{
	struct text text;
	unsigned int i;

	begin_net(&text);
	for (i = 0; i < places; i++)
		place(&text, i, 0);
	for (i = 0; i < transitions; i++) {
		transition(&text, i);
		take(&text, random() % places, i);
		take(&text, random() % places, i);
		give(&text, i, random() % places);
	}
	return end_net(&text);
}

static void different_variants(void **state)
{
	enum { PLACES = 60, VARIANTS = 20 };
	uint32_t (*order)[PLACES] = calloc(VARIANTS, sizeof(*order));
	struct kd_net *net;
	unsigned int i, k;

	(void)state;
	srandom(7);
	net = random_arcs(PLACES, PLACES);
	for (i = 0; i < VARIANTS; i++) {
		expect_variant(net, i, order[i]);
		assert_true(span_of_order(net, order[i]) < span_of(net, KDSM_REACH_ORDER_FILE));
		for (k = 0; k < i; k++)
			assert_memory_not_equal(order[i], order[k], sizeof(order[i]));
	}
	free(order);
	kd_net_free(net);
}

/* ---- markings ---- */

#define VARIABLES	(2 * KD_MOST_WIDTH * 3)	/* of three places */

static struct fixture fixture;

static int begin_markings(void **state)
{
	(void)state;
	begin_with(&fixture, 1, (struct kdsm_bdd_attr){
		.argsz = sizeof(struct kdsm_bdd_attr),
		.table_bytes = 64 << 20, .cache_bytes = 1 << 20,
	});
	return 0;
}

static int end_markings(void **state)
{
	(void)state;
	end(&fixture);
	return 0;
}

/* Set the current (next: 0) or next (1) variables of a place. */
static void set_tokens(const struct kd_marking *m, uint8_t *values, unsigned int place,
		       uint64_t tokens, unsigned int next)
{
	unsigned int b;

	for (b = 0; b < m->width[place]; b++)
		values[kd_marking_variable(m, place, b) + next] = tokens >> b & 1;
}

/* Compare a relation of place 2 with arithmetic: place 0 shows where it fits, place 1 where not. */
static void expect_change(const struct kd_marking *m, const struct kd_change *change)
{
	struct kdsm_bdd_worker *worker = fixture.worker[0];
	const uint64_t limit = (UINT64_C(1) << m->width[2]) - 1;
	kdsm_bdd fits = kdsm_bdd_variable(worker, kd_marking_variable(m, 0, 0));
	kdsm_bdd overflows = kdsm_bdd_variable(worker, kd_marking_variable(m, 1, 0));
	kdsm_bdd relation = kd_marking_change(worker, m, 2, change, fits, overflows);
	uint8_t values[VARIABLES] = { 0 };
	unsigned int show;
	uint64_t now, next;

	assert_int_not_equal(relation, KDSM_BDD_INVALID);
	for (now = 0; now <= limit; now++)
		for (next = 0; next <= limit; next++)
			for (show = 0; show < 4; show++) {
				bool enabled = now >= change->least && now <= change->most;
				int64_t then = now + change->delta;
				bool over = enabled && then > (int64_t)limit;
				bool expected = over ? next == now && show & 2 :
						enabled && (int64_t)next == then && show & 1;

				set_tokens(m, values, 2, now, 0);
				set_tokens(m, values, 2, next, 1);
				set_tokens(m, values, 0, show & 1, 0);
				set_tokens(m, values, 1, show >> 1, 0);
				if (kdsm_bdd_evaluate(worker, relation, values,
						      VARIABLES) != expected)
					fail_msg("width %u, %lu to %lu tokens, %+ld: %lu to %lu",
						 m->width[2], change->least, change->most,
						 change->delta, now, next);
			}
}

static void changes(void **state)
{
	const uint32_t order[] = { 2, 0, 1 };
	struct kd_marking *m;
	struct kd_change c;
	uint64_t size;
	unsigned int i;

	(void)state;
	assert_int_equal(kd_marking_new(&m, 3, order, 0, 1), 0);
	for (m->width[2] = 1; m->width[2] <= 4; m->width[2]++) {
		size = UINT64_C(1) << m->width[2];
		for (c.delta = -(int64_t)size - 1; c.delta <= (int64_t)size + 1; c.delta++)
			for (c.least = c.delta < 0 ? -c.delta : 0; c.least <= size + 1; c.least++) {
				const uint64_t mosts[] = {
					0, c.least, c.least + 1, size / 2, size - 2, size - 1, size,
					INT32_MAX, UINT64_MAX,
				};

				for (i = 0; i < sizeof(mosts) / sizeof(*mosts); i++) {
					c.most = mosts[i];
					expect_change(m, &c);
				}
			}
	}
	kd_marking_free(m);
}

/* Changes of more tokens than any place has */
static void large_changes(void **state)
{
	const struct kd_change change[] = {
		{ 0, UINT64_MAX, UINT32_MAX }, { UINT32_MAX, UINT64_MAX, -(int64_t)UINT32_MAX },
		{ UINT32_MAX, UINT64_MAX, 0 }, { 2, UINT64_MAX, INT64_C(1) << 40 },
	};
	const uint32_t order[] = { 2, 0, 1 };
	struct kd_marking *m;
	unsigned int i;

	(void)state;
	assert_int_equal(kd_marking_new(&m, 3, order, 0, 1), 0);
	m->width[2] = 3;
	for (i = 0; i < sizeof(change) / sizeof(*change); i++)
		expect_change(m, &change[i]);
	kd_marking_free(m);
}

static void equal(void **state)
{
	struct kdsm_bdd_worker *worker = fixture.worker[0];
	const uint32_t order[] = { 1, 2, 0 };
	uint8_t values[VARIABLES] = { 0 };
	uint64_t size, tokens, now;
	struct kd_marking *m;
	kdsm_bdd rest, e;

	(void)state;
	assert_int_equal(kd_marking_new(&m, 3, order, 0, 1), 0);
	rest = kdsm_bdd_variable(worker, kd_marking_variable(m, 0, 0));
	for (m->width[2] = 1; m->width[2] <= 4; m->width[2]++) {
		size = UINT64_C(1) << m->width[2];
		for (tokens = 0; tokens < size; tokens++) {
			e = kd_marking_equals(worker, m, 2, tokens, rest);
			assert_int_equal(kd_marking_equals(worker, m, 2, tokens, KDSM_BDD_FALSE),
					 KDSM_BDD_FALSE);
			for (now = 0; now < 2 * size; now++) {
				set_tokens(m, values, 2, now / 2, 0);
				set_tokens(m, values, 0, now % 2, 0);
				assert_int_equal(kdsm_bdd_evaluate(worker, e, values, VARIABLES),
						 now / 2 == tokens && now % 2);
			}
		}
	}
	kd_marking_free(m);
}

/*
 * Every bit of every place has a variable of its own, below the traps, in the order, and in the
 * share of the marking.
 */
static void expect_variables(unsigned int places, unsigned int share, unsigned int shares)
{
	uint32_t *order = calloc(places, sizeof(*order)), *variable;
	const uint32_t range = 2 * (KD_FILE_MAX_BITS / shares);
	unsigned int p, b, bit, n = 0, bits;
	struct kd_marking *m;

	for (p = 0; p < places; p++)	/* 7919 is a prime that divides no number of places here */
		order[p] = p * 7919 % places;
	assert_int_equal(kd_marking_new(&m, places, order, share, shares), 0);
	assert_in_range(m->room, 1, KD_MOST_WIDTH);
	assert_int_equal(kd_marking_bits(m), places);
	for (p = 0; p < places; p++)
		m->width[p] = 1 + p % m->room;
	bits = kd_marking_bits(m);
	variable = calloc(bits, sizeof(*variable));
	kd_marking_variables(m, variable);
	for (p = 0; p < places; p++)
		for (b = m->width[order[p]]; b--; n++) {
			assert_int_equal(variable[n], kd_marking_variable(m, order[p], b));
			assert_true(!n || variable[n] > variable[n - 1]);
			assert_int_equal(variable[n] % 2, 0);
			assert_true(variable[n] >= share * range);
			assert_true(variable[n] + 1 < (share + 1) * range);
			assert_true(variable[n] + 1 < KD_FIRST_TRAP);
			assert_int_equal(kd_marking_place(m, variable[n], &bit), order[p]);
			assert_int_equal(bit, b);
		}
	assert_int_equal(n, bits);
	free(order);
	free(variable);
	kd_marking_free(m);
}

static void variables(void **state)
{
	static const unsigned int places[] = { 1, 2, 3, 100, 16129, 16130, 32768 };
	unsigned int i, share;

	(void)state;
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		expect_variables(places[i], 0, 1);
		for (share = 0; share < KD_ORDERS; share += KD_ORDERS - 1)
			expect_variables(places[i], share, KD_ORDERS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds),
		cmocka_unit_test(sound_bounds),
		cmocka_unit_test(too_many_semiflows),
		cmocka_unit_test(much_work),
		cmocka_unit_test(random_walks),
		cmocka_unit_test(unbounded_nets),
		cmocka_unit_test(orders_of_random_nets),
		cmocka_unit_test(orders_of_odd_nets),
		cmocka_unit_test(variants_of_no_places),
		cmocka_unit_test(shorter_spans),
		cmocka_unit_test(different_variants),
		cmocka_unit_test_setup_teardown(changes, begin_markings, end_markings),
		cmocka_unit_test_setup_teardown(large_changes, begin_markings, end_markings),
		cmocka_unit_test_setup_teardown(equal, begin_markings, end_markings),
		cmocka_unit_test(variables),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("nets", tests, NULL, NULL);
}
