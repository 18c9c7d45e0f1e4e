// SPDX-License-Identifier: LGPL-2.1-or-later
/* Formulas about markings as trees, and the sums of tokens in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formula.h"

void kd_formula_free(struct kd_formula *formula)
{
	size_t i;

	if (!formula)
		return;
	for (i = 0; i < formula->operands; i++)
		kd_formula_free(formula->operand[i]);
	free(formula->operand);
	free(formula->transition);
	free(formula->sum.addend);
	free(formula);
}

void kd_formulas_free(struct kd_formulas *formulas)
{
	size_t i;

	for (i = 0; i < formulas->count; i++) {
		free(formulas->named[i].id);
		kd_formula_free(formulas->named[i].formula);
	}
	free(formulas->named);
	memset(formulas, 0, sizeof(*formulas));
}

int kd_formula_add(struct kd_formula *formula, struct kd_formula *operand)
{
	struct kd_formula **more;

	if (formula->operands == formula->room) {
		formula->room = formula->room ? 2 * formula->room : 2;
		more = reallocarray(formula->operand, formula->room, sizeof(*more));
		if (!more) {
			formula->room = formula->operands;
			kd_formula_free(operand);
			return -ENOMEM;
		}
		formula->operand = more;
	}
	formula->operand[formula->operands++] = operand;
	return 0;
}

bool kd_formula_temporal(const struct kd_formula *formula)
{
	size_t i;

	if (formula->op >= KD_F_NEXT && formula->op <= KD_F_AU)
		return true;
	for (i = 0; i < formula->operands; i++)
		if (kd_formula_temporal(formula->operand[i]))
			return true;
	return false;
}

int kd_sum_add_place(struct kd_sum *sum, unsigned int place, int64_t factor)
{
	struct kd_addend *more;

	if (sum->addends == sum->room) {
		size_t room = sum->room ? 2 * sum->room : 4;

		more = reallocarray(sum->addend, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		sum->addend = more;
		sum->room = room;
	}
	sum->addend[sum->addends++] = (struct kd_addend){ place, factor };
	return 0;
}

int kd_sum_add(struct kd_sum *sum, const struct kd_sum *other, bool negative)
{
	int64_t factor;
	size_t i;
	int r = 0;

	if (negative ? __builtin_sub_overflow(sum->constant, other->constant, &sum->constant) :
		       __builtin_add_overflow(sum->constant, other->constant, &sum->constant))
		return -ERANGE;
	for (i = 0; r == 0 && i < other->addends; i++) {
		factor = other->addend[i].factor;
		r = kd_sum_add_place(sum, other->addend[i].place, negative ? -factor : factor);
	}
	return r;
}

static int compare_addends(const void *x, const void *y)
{
	const struct kd_addend *a = x, *b = y;

	return (a->place > b->place) - (a->place < b->place);
}

int kd_sum_sort(struct kd_sum *sum)
{
	size_t n = 0, i;

	if (sum->addends)
		qsort(sum->addend, sum->addends, sizeof(*sum->addend), compare_addends);
	for (i = 0; i < sum->addends; i++) {
		if (!n || sum->addend[n - 1].place != sum->addend[i].place)
			sum->addend[n++] = sum->addend[i];
		else if (__builtin_add_overflow(sum->addend[n - 1].factor, sum->addend[i].factor,
						&sum->addend[n - 1].factor))
			return -ERANGE;
	}
	sum->addends = n;
	for (n = 0, i = 0; i < sum->addends; i++)
		if (sum->addend[i].factor)
			sum->addend[n++] = sum->addend[i];
	sum->addends = n;
	return 0;
}
