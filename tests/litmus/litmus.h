/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Litmus tests: short programs, one for each role, and the outcomes that a memory model allows.
 * The simulator (tests/sim) and the machines (tests/guest/litmus) run the same table of forms.
 *
 * The programs of a form are text, separated by |:
 *
 *	x=1	store to the variable x; y and z are the others
 *	a=x	load x into the register a; up to f
 *	a=x:2	exchange: load and store in one
 *	#	a barrier of all roles that makes the region consistent
 *	!0	release, and send the signature to the role that has ?0
 *	?0	wait for that signature, and acquire it
 *	(0	lock a lock of the region
 *	)0	unlock it
 *
 * A condition says that a register, or (X, Y, Z) a variable at the end, has a value (a=1) or does
 * not have it (a!1): "a=1 b=0 or X!2".
 *
 * A form without synchronisation of its own is also run with synchronisation that
 * litmus_parse() adds.
 */
#ifndef LITMUS_H
#define LITMUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LITMUS_ROLES		4
#define LITMUS_STEPS		16	/* of a role */
#define LITMUS_REGISTERS	6
#define LITMUS_VARIABLES	3
#define LITMUS_SIGNATURES	6
#define LITMUS_LOCKS		LITMUS_VARIABLES

/* Values of registers and variables; programs store 1 and 2 */
#define LITMUS_OLD		0	/* from before the test */
#define LITMUS_STRANGE		3	/* a value that no role stores */

enum litmus_kind {
	LITMUS_STORE,
	LITMUS_LOAD,
	LITMUS_EXCHANGE,
	LITMUS_BARRIER,		/* from here on: synchronisation */
	LITMUS_SEND,
	LITMUS_RECEIVE,
	LITMUS_LOCK,
	LITMUS_UNLOCK,
};

/* How often the forbidden outcome shows in policy release without synchronisation */
enum litmus_weak {
	LITMUS_NEVER,
	LITMUS_MAY,
	LITMUS_MUST,		/* the simulator must find it */
};

/**
 * struct litmus_form - a litmus test, as it is written down
 * @name: as in the literature, if it is there
 * @programs: text, as described above
 * @forbidden: condition for outcomes that must never be
 * @seen: condition for an outcome that must be seen; NULL for a form with its own synchronisation
 * @weak: of a form without synchronisation of its own
 */
struct litmus_form {
	const char *name, *programs, *forbidden, *seen;
	enum litmus_weak weak;
};

/* Forms in the order of the table (forms.c); the last has no name. */
extern const struct litmus_form litmus_forms[];
extern const unsigned int litmus_form_count;

/* Synchronisation that is added to a form */
enum litmus_sync {
	LITMUS_ALONE,		/* none */
	LITMUS_LOCKED,		/* each access holds the lock of its variable */
	LITMUS_PHASES,		/* a barrier after each access */
	LITMUS_CHAIN,		/* each role begins with the signature of the role before */
	LITMUS_SYNCS,
};

extern const char *const litmus_sync_names[LITMUS_SYNCS];

struct litmus_step {
	enum litmus_kind kind;
	unsigned int variable, value;
	unsigned int which;	/* register, signature or lock */
};

/* A form with its synchronisation, ready to run */
struct litmus {
	const struct litmus_form *form;
	enum litmus_sync sync;
	bool has_own_sync;
	unsigned int roles, steps[LITMUS_ROLES], barriers;
	struct litmus_step step[LITMUS_ROLES][LITMUS_STEPS];
	unsigned int loader[LITMUS_REGISTERS];	/* role that loads; LITMUS_ROLES: none */
};

static inline bool litmus_is_access(const struct litmus_step *step)
{
	return step->kind < LITMUS_BARRIER;
}

/* An outcome has two bits for each register and, after those, for each variable. */
#define LITMUS_OUTCOMES		(1U << 2 * (LITMUS_REGISTERS + LITMUS_VARIABLES))

/**
 * litmus_parse() - parse a form, and add synchronisation
 * @form: the form
 * @sync: synchronisation to add; LITMUS_ALONE for a form that has its own
 * @litmus: receives the programs
 *
 * Return: NULL, or the text that is wrong.
 */
const char *litmus_parse(const struct litmus_form *form, enum litmus_sync sync,
			 struct litmus *litmus);

/* Return whether the condition holds for the outcome. An unknown name makes it false. */
bool litmus_holds(const char *condition, unsigned int outcome);

/*
 * Return whether each register has a value that the programs store to its variable, or the old
 * one, and each variable that a role stores to has one of these values.
 */
bool litmus_is_sane(const struct litmus *litmus, unsigned int outcome);

/* Write the outcome as text, without registers that no role loads, and other variables. */
void litmus_print(const struct litmus *litmus, unsigned int outcome, char *text, size_t size);

enum litmus_model {
	LITMUS_SC,		/* sequential consistency */
	LITMUS_TSO,		/* each role has a buffer of stores, as x86 CPUs have */
	LITMUS_ANY,		/* the accesses of a role happen in any order */
};

/* Outcomes of a program in a model */
struct litmus_set {
	unsigned int count;
	bool racy;		/* LITMUS_SC: two roles may access a variable at once */
	bool stuck;		/* some execution does not end */
	uint64_t bits[LITMUS_OUTCOMES / 64];
};

/* Enumerate all executions in the model. */
void litmus_explore(const struct litmus *litmus, enum litmus_model model,
		    struct litmus_set *set);

static inline bool litmus_has(const struct litmus_set *set, unsigned int outcome)
{
	return set->bits[outcome / 64] >> outcome % 64 & 1;
}

/*
 * Return whether the added synchronisation makes a test: a form that has its own needs none, and
 * phases in which roles conflict are none. sc: of the program
 */
bool litmus_is_test(const struct litmus *litmus, const struct litmus_set *sc);

/*
 * Return whether policy release allows the outcome: that is all that is sane and not
 * forbidden if the program has data races, and otherwise what sequential consistency allows.
 * sc: of the program
 */
bool litmus_release_allows(const struct litmus *litmus, const struct litmus_set *sc,
			   unsigned int outcome);

#endif /* LITMUS_H */
