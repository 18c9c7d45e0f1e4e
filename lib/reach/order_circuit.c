// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order of a circuit's latches and inputs: as a depth-first walk from the next values meets
 * them, that of the last latch first, and the deeper operand of a gate first (S. Malik, A. Wang,
 * R. Brayton, A. Sangiovanni-Vincentelli, "Logic Verification using Binary Decision Diagrams in a
 * Logic Synthesis Environment", ICCAD 1988). So variables on which the same gates depend are
 * neighbours.
 */
#include <errno.h>
#include <stdlib.h>

#include "circuit.h"
#include "internal.h"

struct walk {
	const struct kd_aiger *aiger;
	const bool *needed;
	uint32_t *order;
	uint32_t count;
	uint32_t *depth;	/* by variable: gates on the longest way to a latch or input */
	uint8_t *seen;		/* by variable: operands of a gate visited; 1: a leaf is placed */
	uint32_t *stack;
};

static void measure(struct walk *w)
{
	const struct kd_aiger *a = w->aiger;
	uint32_t i, v, left, right;

	for (i = 0; i < a->gates; i++) {
		v = a->order[i];
		left = w->depth[a->variable[v].operand[0] / 2];
		right = w->depth[a->variable[v].operand[1] / 2];
		w->depth[v] = 1 + (left > right ? left : right);
	}
}

static void place(struct walk *w, uint32_t v)
{
	enum kd_aiger_kind kind = w->aiger->variable[v].kind;

	if (w->seen[v] || (kind != KD_AIGER_LATCH && kind != KD_AIGER_INPUT) ||
	    (kind == KD_AIGER_INPUT && !w->needed[v]))
		return;
	w->seen[v] = 1;
	w->order[w->count++] = v;
}

/* Place the latches and inputs on which a literal depends. A gate is at most once on the stack. */
static void visit(struct walk *w, uint32_t literal)
{
	const struct kd_aiger *a = w->aiger;
	uint32_t depth = 0, v = literal / 2, deeper;

	for (;;) {
		if (a->variable[v].kind != KD_AIGER_AND)
			place(w, v);
		else if (!w->seen[v])
			w->stack[depth++] = v;
		while (depth && w->seen[w->stack[depth - 1]] == 2)
			depth--;
		if (!depth)
			return;
		v = w->stack[depth - 1];
		deeper = w->depth[a->variable[v].operand[1] / 2] >
			 w->depth[a->variable[v].operand[0] / 2];
		v = a->variable[v].operand[deeper ^ w->seen[v]++] / 2;
	}
}

static void walk_all(struct walk *w)
{
	const struct kd_aiger *a = w->aiger;
	uint32_t *latch = w->stack + a->gates + 1, i, v;

	measure(w);
	for (v = 0; v <= a->last; v++)
		if (a->variable[v].kind == KD_AIGER_LATCH)
			latch[a->variable[v].number] = v;
	for (i = a->latches; i--; ) {
		visit(w, a->latch[i].next);
		place(w, latch[i]);
	}
	for (i = 0; i < a->constraints; i++)
		visit(w, a->constraint[i]);
	for (i = 0; i < a->properties; i++)
		visit(w, a->property[i].bad);
}

/* Place all latches, then all needed inputs. */
static void walk_file(struct walk *w)
{
	const struct kd_aiger *a = w->aiger;
	uint32_t v, inputs = a->latches;

	for (v = 0; v <= a->last; v++) {
		if (a->variable[v].kind == KD_AIGER_LATCH)
			w->order[a->variable[v].number] = v;
		else if (a->variable[v].kind == KD_AIGER_INPUT && w->needed[v])
			w->order[inputs++] = v;
	}
	w->count = inputs;
}

int64_t kd_circuit_order(const struct kd_aiger *a, const bool *needed, bool file, uint32_t *order)
{
	struct walk w = { .aiger = a, .needed = needed, .order = order };
	int64_t count = -ENOMEM;

	w.depth = calloc((size_t)a->last + 1, sizeof(*w.depth));
	w.seen = calloc((size_t)a->last + 1, sizeof(*w.seen));
	w.stack = malloc(((size_t)a->gates + a->latches + 2) * sizeof(*w.stack));
	if (w.depth && w.seen && w.stack) {
		if (file)
			walk_file(&w);
		else
			walk_all(&w);
		count = w.count;
	}
	free(w.depth);
	free(w.seen);
	free(w.stack);
	return count;
}
