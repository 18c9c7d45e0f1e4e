// SPDX-License-Identifier: GPL-2.0
/* Random formulas, and the XML in which the Model Checking Contest writes them */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "brute.h"

unsigned int choose(unsigned int *chosen, unsigned int n, unsigned int most)
{
	unsigned int count = 0, i, tries;

	for (tries = 1 + below(most); tries; tries--) {
		chosen[count] = below(n);
		for (i = 0; chosen[i] != chosen[count]; i++)
			;
		count += i == count;
	}
	return count;
}

/* A comparison that some states meet, and often others do not */
static void random_comparison(struct formula *f)
{
	const uint64_t *m = marking_of(below(states));
	unsigned int style = below(8);

	f->op = COMPARE;
	f->comparison = below(3) ? 0 : below(6);
	f->left.places = choose(f->left.place, places, below(3) ? 1 : MOST_NAMES);
	if (style == 0)
		f->left.others = choose(f->left.other, places, 2);
	f->left.difference = style == 0 && below(2);
	if (style < 5) {
		f->right.constant = value(&f->left, m) + below(3) - 1;
		if (f->right.constant < 0)
			f->right.constant = 0;
	} else {
		f->right.places = choose(f->right.place, places, 2);
		f->right.constant = style == 7 ? below(3) : 0;
	}
	if (style < 7 && below(2) && f->comparison == 0) {
		const struct amount left = f->left;

		f->left = f->right;
		f->right = left;
	}
}

struct formula *random_formula(unsigned int depth, bool fire, bool ctl)
{
	struct formula *f = calloc(1, sizeof(*f));
	unsigned int op;

	if (!f)
		errx(2, "no memory");
	if (depth == 0 || below(5) == 0) {
		if (fire && transitions) {
			f->op = FIREABLE;
			f->count = choose(f->fireable, transitions, MOST_NAMES);
		} else {
			random_comparison(f);
		}
		return f;
	}
	op = ctl && below(2) ? EX + below(AU - EX + 1) :
	     below(8) ? NOT + below(3) : XOR + below(3);
	f->op = op;
	f->a = random_formula(depth - 1, fire, ctl);
	if ((op >= AND && op <= EQUIVALENCE) || op >= EU)
		f->b = random_formula(depth - 1, fire, ctl);
	return f;
}

struct formula *path_to(struct formula *a)
{
	struct formula *f = calloc(1, sizeof(*f));

	if (!f)
		errx(2, "no memory");
	f->op = below(2) ? EF : AG;
	f->a = a;
	return f;
}

void free_formula(struct formula *f)
{
	if (!f)
		return;
	free_formula(f->a);
	free_formula(f->b);
	free(f);
}

/* ---- XML ---- */

static const char *const comparisons[] = {
	"integer-le", "integer-lt", "integer-ge", "integer-gt", "integer-eq", "integer-ne",
};

static void put_text(FILE *file, const char *s)
{
	for (; *s; s++) {
		if (strchr("<>&\"'", *s))
			fprintf(file, "&#%d;", *s);
		else
			fputc(*s, file);
	}
}

void put_places(FILE *file, const char *element, const unsigned int *list, unsigned int count)
{
	unsigned int i;

	fprintf(file, "<%s>", element);
	for (i = 0; i < count; i++) {
		fputs("<place>", file);
		put_text(file, place[list[i]].id);
		fputs("</place>", file);
	}
	fprintf(file, "</%s>", element);
}

static void put_amount(FILE *file, const struct amount *n)
{
	const char *sum = n->difference ? "integer-difference" : "integer-sum";
	bool two = n->others || (n->places && n->constant);

	if (two)
		fprintf(file, "<%s>", sum);
	if (n->places)
		put_places(file, "tokens-count", n->place, n->places);
	if (n->others)
		put_places(file, "tokens-count", n->other, n->others);
	if (n->constant || (!n->places && !n->others))
		fprintf(file, "<integer-constant>%" PRId64 "</integer-constant>", n->constant);
	if (two)
		fprintf(file, "</%s>", sum);
}

static const struct {
	const char *open, *middle, *close;
} elements[] = {
	[DEADLOCK] = { "<deadlock/>", "", "" },
	[FIREABLE] = { "<is-fireable>", "", "</is-fireable>" },
	[NOT] = { "<negation>", "", "</negation>" },
	[AND] = { "<conjunction>", "", "</conjunction>" },
	[OR] = { "<disjunction>", "", "</disjunction>" },
	[XOR] = { "<exclusive-disjunction>", "", "</exclusive-disjunction>" },
	[IMPLICATION] = { "<implication>", "", "</implication>" },
	[EQUIVALENCE] = { "<equivalence>", "", "</equivalence>" },
	[EX] = { "<exists-path><next>", "", "</next></exists-path>" },
	[AX] = { "<all-paths><next>", "", "</next></all-paths>" },
	[EF] = { "<exists-path><finally>", "", "</finally></exists-path>" },
	[AF] = { "<all-paths><finally>", "", "</finally></all-paths>" },
	[EG] = { "<exists-path><globally>", "", "</globally></exists-path>" },
	[AG] = { "<all-paths><globally>", "", "</globally></all-paths>" },
	[EU] = { "<exists-path><until><before>", "</before><reach>",
		 "</reach></until></exists-path>" },
	[AU] = { "<all-paths><until><before>", "</before><reach>", "</reach></until></all-paths>" },
};

void put_formula(FILE *file, const struct formula *f)
{
	unsigned int i;

	if (f->op == COMPARE) {
		fprintf(file, "<%s>", comparisons[f->comparison]);
		put_amount(file, &f->left);
		put_amount(file, &f->right);
		fprintf(file, "</%s>\n", comparisons[f->comparison]);
		return;
	}
	fputs(elements[f->op].open, file);
	for (i = 0; i < f->count; i++) {
		fputs("<transition>", file);
		put_text(file, transition[f->fireable[i]].id);
		fputs("</transition>", file);
	}
	if (f->a)
		put_formula(file, f->a);
	fputs(elements[f->op].middle, file);
	if (f->b)
		put_formula(file, f->b);
	fprintf(file, "%s\n", elements[f->op].close);
}
