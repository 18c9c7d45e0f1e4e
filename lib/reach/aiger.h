/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * And-inverter graphs, as read from AIGER: gates with two inputs, latches, and
 * literals, which are 2 * variable, + 1 if it is negated. Variable 0 is false.
 */
#ifndef KD_AIGER_H
#define KD_AIGER_H

#include <stddef.h>
#include <stdint.h>

struct kd_message;

enum kd_aiger_kind {
	KD_AIGER_UNKNOWN, KD_AIGER_FALSE, KD_AIGER_INPUT, KD_AIGER_LATCH, KD_AIGER_AND,
};

struct kd_aiger_variable {
	enum kd_aiger_kind kind;
	uint32_t number;		/* of the input or latch, from 0 */
	uint32_t operand[2];		/* literals, of a gate */
};

enum kd_aiger_reset { KD_AIGER_RESET_0, KD_AIGER_RESET_1, KD_AIGER_RESET_ANY };

struct kd_aiger_latch {
	uint32_t next;			/* literal */
	enum kd_aiger_reset reset;
};

struct kd_aiger_property {
	uint32_t bad;			/* literal: it is violated where this is true */
	char *name;			/* printable; NULL if it has none */
};

struct kd_aiger {
	uint32_t last;			/* variable; those in use are known, and have no cycle */
	uint32_t inputs, latches, gates, properties, constraints;
	struct kd_aiger_variable *variable;	/* [0..last] */
	struct kd_aiger_latch *latch;
	/* The bad-state properties, or else the outputs. */
	struct kd_aiger_property *property;
	char kind;			/* 'b' or 'o' */
	uint32_t *constraint;		/* literals that are true in every step */
	uint32_t *order;		/* the gates' variables, operands first */
};

/* On failure a negative errno and a message; *aiger is to be freed anyway. */
int kd_aiger_read(const char *path, const unsigned char *file, size_t size,
		  struct kd_aiger **aiger, struct kd_message *message);
void kd_aiger_free(struct kd_aiger *aiger);	/* NULL is ignored */

#endif /* KD_AIGER_H */
