/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Formulas about the reachable markings of a Petri net, in the language of the Model Checking
 * Contest: formula.c keeps them, formula_xml.c reads them, formula_check.c answers them with the
 * help of formula_sum.c.
 */
#ifndef KD_REACH_FORMULA_H
#define KD_REACH_FORMULA_H

#include "internal.h"

/* ---- formula.c ---- */

enum kd_operator {
	/* of a marking */
	KD_F_TRUE, KD_F_FALSE, KD_F_DEADLOCK, KD_F_FIREABLE, KD_F_AT_MOST, KD_F_EQUAL,
	KD_F_NOT, KD_F_AND, KD_F_OR, KD_F_XOR,
	/* of a path: only while the reader waits for the end of the quantifier around it */
	KD_F_NEXT, KD_F_FINALLY, KD_F_GLOBALLY, KD_F_UNTIL,
	/* of a marking, about the maximal paths that begin there; in the order of the above */
	KD_F_EX, KD_F_EF, KD_F_EG, KD_F_EU,
	KD_F_AX, KD_F_AF, KD_F_AG, KD_F_AU,
	/* no truth but a number: the most tokens that sum can be */
	KD_F_BOUND,
};

/* A sum: the tokens of places, each times a factor, and a constant */
struct kd_sum {
	struct kd_addend {
		unsigned int place;
		int64_t factor;
	} *addend;
	size_t addends, room;
	int64_t constant;
};

struct kd_formula {
	enum kd_operator op;
	struct kd_formula **operand;	/* of KD_F_EU and KD_F_AU: before, reach */
	size_t operands, room;
	unsigned int *transition;	/* of KD_F_FIREABLE: one of these is enabled */
	size_t transitions;
	struct kd_sum sum;	/* at most 0, equal to 0, or the one that KD_F_BOUND is about */
};

struct kd_formulas {
	struct kd_named {
		char *id;
		struct kd_formula *formula;
		/* on node 0: the answer, if the search looked and knows it before its end */
		enum kdsm_reach_answer early;
	} *named;
	size_t count;
};

/* NULL is ignored. */
void kd_formula_free(struct kd_formula *formula);
void kd_formulas_free(struct kd_formulas *formulas);

/* Give the formula one more operand, which it owns even if this fails with -ENOMEM. */
int kd_formula_add(struct kd_formula *formula, struct kd_formula *operand);

/*
 * Add to sum. Return 0, -ENOMEM, or -ERANGE if a number gets too large. kd_sum_add() adds other
 * once or, if negative, subtracts it. kd_sum_sort() leaves each place in the sum at most once.
 */
int kd_sum_add_place(struct kd_sum *sum, unsigned int place, int64_t factor);
int kd_sum_add(struct kd_sum *sum, const struct kd_sum *other, bool negative);
int kd_sum_sort(struct kd_sum *sum);

/* Whether the formula has a temporal operator */
bool kd_formula_temporal(const struct kd_formula *formula);

/* ---- formula_xml.c ---- */

/*
 * Add the formulas of the file at path, about the model's net, to *formulas. On failure return
 * a negative errno and set *message.
 */
int kd_formulas_read(const char *path, const struct kd_model *model,
		     struct kd_formulas *formulas, struct kdsm_reach_message *message);

/* ---- formula_sum.c ---- */

/*
 * The markings of domain in which the sum is at most 0; in other markings the result may be
 * anything. KDSM_BDD_INVALID on failure: see kdsm_bdd_error(), which may also be -E2BIG.
 */
kdsm_bdd kd_sum_at_most(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			const struct kd_sum *sum, kdsm_bdd domain);

/*
 * Store the largest value of the sum in a marking of states, which is not empty. The factors are
 * positive. Return 0 or a negative errno.
 */
int kd_sum_most(struct kdsm_bdd_worker *w, const struct kd_marking *m,
		const struct kd_sum *sum, kdsm_bdd states, int64_t *most);

/* ---- formula_check.c ---- */

/* Read the files of options->formula, when the model is loaded. kd_formulas_end() frees all. */
int kd_formulas_begin(struct kd_search *s);
void kd_formulas_end(struct kd_search *s);

/*
 * Answer the formulas of the search, when it has ended. All nodes call this function. Node 0
 * answers, and the others collect garbage with it. A formula that cannot be answered is
 * unknown, which is no failure.
 */
int kd_formulas_check(struct kd_search *s, struct kdsm_reach_result *result);

/*
 * On node 0 during a search, when no other node has a task: answer the formulas that these states,
 * some of the reachable ones, decide. Return whether one is false; *open tells whether one is not
 * decided yet.
 */
bool kd_formulas_look(struct kd_search *s, kdsm_bdd states, bool *open);

/* On node 0, after a failure: give the result the answers that the search knew, if it has none. */
void kd_formulas_salvage(struct kd_search *s, struct kdsm_reach_result *result);

/* Free the answers of the result. */
void kd_formula_answers_free(struct kdsm_reach_result *result);

#endif /* KD_REACH_FORMULA_H */
