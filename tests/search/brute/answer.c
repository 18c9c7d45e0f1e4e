// SPDX-License-Identifier: GPL-2.0
/* Answers to formulas, by sets of states */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "brute.h"

int64_t value(const struct amount *n, const uint64_t *m)
{
	int64_t sum = 0, rest = n->constant;
	unsigned int i;

	for (i = 0; i < n->places; i++)
		sum += tokens(m, n->place[i]);
	for (i = 0; i < n->others; i++)
		rest += tokens(m, n->other[i]);
	return n->difference ? sum - rest : sum + rest;
}

static bool compare(const struct formula *f, const uint64_t *m)
{
	int64_t a = value(&f->left, m), b = value(&f->right, m);

	switch (f->comparison) {
	case 0:
		return a <= b;
	case 1:
		return a < b;
	case 2:
		return a >= b;
	case 3:
		return a > b;
	case 4:
		return a == b;
	default:
		return a != b;
	}
}

static bool any_enabled(const struct formula *f, const uint64_t *m)
{
	unsigned int i;

	for (i = 0; i < f->count; i++)
		if (enabled(&transition[f->fireable[i]], m))
			return true;
	return false;
}

/* A set of states has a byte for each. */
static unsigned char *new_set(void)
{
	unsigned char *set = calloc(states, 1);

	if (!set)
		errx(2, "no memory");
	return set;
}

static bool stuck(size_t s)
{
	return first_edge[s] == first_edge[s + 1];
}

/* States with a path through f to g */
static unsigned char *until(const unsigned char *f, const unsigned char *g)
{
	unsigned char *set = new_set();
	uint32_t *queue = grow(NULL, states, sizeof(*queue));
	size_t in = 0, out = 0, s;
	uint64_t e;

	for (s = 0; s < states; s++) {
		set[s] = g[s];
		if (g[s])
			queue[in++] = s;
	}
	while (out < in) {
		s = queue[out++];
		for (e = first_previous[s]; e < first_previous[s + 1]; e++) {
			uint32_t p = previous_state[e];

			if (!set[p] && (!f || f[p])) {
				set[p] = 1;
				queue[in++] = p;
			}
		}
	}
	free(queue);
	return set;
}

/* States with a path in f that has no end, or ends in a deadlock */
static unsigned char *always(const unsigned char *f)
{
	unsigned char *set = new_set();
	uint32_t *queue = grow(NULL, states, sizeof(*queue));
	uint32_t *left = calloc(states, sizeof(*left));	/* successors in the set */
	size_t in = 0, out = 0, s;
	uint64_t e;

	if (!left)
		errx(2, "no memory");
	for (s = 0; s < states; s++) {
		set[s] = f[s];
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			left[s] += f[next_state[e]];
	}
	for (s = 0; s < states; s++)
		if (set[s] && !left[s] && !stuck(s)) {
			set[s] = 0;
			queue[in++] = s;
		}
	while (out < in) {
		s = queue[out++];
		for (e = first_previous[s]; e < first_previous[s + 1]; e++) {
			uint32_t p = previous_state[e];

			if (--left[p] == 0 && set[p]) {
				set[p] = 0;
				queue[in++] = p;
			}
		}
	}
	free(queue);
	free(left);
	return set;
}

static void invert(unsigned char *set)
{
	size_t s;

	for (s = 0; s < states; s++)
		set[s] = !set[s];
}

/* Replace a set by the states with a successor in it. */
static void before(unsigned char *set)
{
	unsigned char *result = new_set();
	uint64_t e;
	size_t s;

	for (s = 0; s < states; s++)
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			result[s] |= set[next_state[e]];
	memcpy(set, result, states);
	free(result);
}

static unsigned char *all_until(unsigned char *f, unsigned char *g)
{
	unsigned char *bad, *never;
	size_t s;

	/* not: g never holds, or neither holds before g does */
	invert(g);
	never = always(g);
	for (s = 0; s < states; s++)
		f[s] = !f[s] && g[s];
	bad = until(g, f);
	for (s = 0; s < states; s++)
		bad[s] = !bad[s] && !never[s];
	free(never);
	return bad;
}

static bool combine(enum op op, bool a, bool b)
{
	switch (op) {
	case AND:
		return a && b;
	case OR:
		return a || b;
	case XOR:
		return a != b;
	case IMPLICATION:
		return !a || b;
	default:
		return a == b;
	}
}

static unsigned char *evaluate(const struct formula *f)
{
	unsigned char *a = f->a ? evaluate(f->a) : new_set();
	unsigned char *b = f->b ? evaluate(f->b) : NULL, *set = NULL;
	size_t s;

	switch (f->op) {
	case DEADLOCK:
		for (s = 0; s < states; s++)
			a[s] = stuck(s);
		break;
	case FIREABLE:
		for (s = 0; s < states; s++)
			a[s] = any_enabled(f, marking_of(s));
		break;
	case COMPARE:
		for (s = 0; s < states; s++)
			a[s] = compare(f, marking_of(s));
		break;
	case NOT:
		invert(a);
		break;
	case AND:
	case OR:
	case XOR:
	case IMPLICATION:
	case EQUIVALENCE:
		for (s = 0; s < states; s++)
			a[s] = combine(f->op, a[s], b[s]);
		break;
	case EX:
		before(a);
		break;
	case AX:
		invert(a);
		before(a);
		invert(a);
		break;
	case EF:
		set = until(NULL, a);
		break;
	case AG:
		invert(a);
		set = until(NULL, a);
		invert(set);
		break;
	case EG:
		set = always(a);
		break;
	case AF:
		invert(a);
		set = always(a);
		invert(set);
		break;
	case EU:
		set = until(a, b);
		break;
	case AU:
		set = all_until(a, b);
		break;
	}
	free(b);
	if (!set)
		return a;
	free(a);
	return set;
}

/* The value in the initial state of "exists-path finally" or "all-paths globally" */
static bool reachable(const struct formula *f)
{
	unsigned char *set = evaluate(f->a);
	bool all = f->op == AG;
	size_t s;

	for (s = 0; s < states && (set[s] || !all) && !(set[s] && !all); s++)
		;
	free(set);
	return (s == states) == all;
}

bool holds(const struct formula *f)
{
	unsigned char *set;
	bool result;

	if (!with_edges)
		return reachable(f);
	set = evaluate(f);
	result = set[0];
	free(set);
	return result;
}
