/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A litmus test, and how its text is parsed.
 *
 * A test is a few short programs, one for each role, separated by |:
 *
 *	x=1	store to the variable x; y is the other one
 *	a=x	load x into the register a; up to d
 *	a=x:2	exchange: load and store in one
 *	#	a barrier of all threads that makes the region consistent (kdsm_tree_barrier)
 *	!0	release, and send the signature to the role that has ?0
 *	?0	wait for that signature, and acquire it
 *	(0	lock a lock of the region
 *	)0	unlock it
 *
 * A test with locks has neither barriers nor signatures, because it locks and unlocks once
 * for each group of instances.
 *
 * A forbidden outcome says that a register, or (X, Y) a variable at the end, has a value
 * (a=1) or does not have it (a!1). Loads and stores are atomic operations of the CPU.
 * Policy strict makes them sequentially consistent; in policy release, an outcome can be
 * forbidden only where synchronisation orders the accesses.
 */
#ifndef GUEST_LITMUS_H
#define GUEST_LITMUS_H

#include "guest.h"

#define ROLES		4
#define STEPS		8
#define REGISTERS	4
#define VARIABLES	2
#define SIGNATURES	6
#define LOCKS		2
#define OLD		0	/* from before the batch */
#define STRANGE		3	/* a value that no thread ever wrote */

enum kind { STORE, LOAD, EXCHANGE, BARRIER_ALL, SEND, RECEIVE, LOCK, UNLOCK };

struct step {
	enum kind kind;
	unsigned int variable, value, which;	/* which: register or signature */
};

struct litmus {
	const char *name, *programs, *forbidden;
};

/* The current test */
static const struct litmus *test;
static struct step program[ROLES][STEPS];
static unsigned int steps[ROLES], roles, barriers;
static bool has_locks;
static unsigned int loader[REGISTERS];		/* the role that loads into it; ROLES: none */

static void __attribute__((noreturn)) bad_test(const char *at)
{
	printf("Bail out! %s: what is %s\n", test->name, at);
	exit(1);
}

static inline struct step parse_step(unsigned int role, const char *token)
{
	struct step step = { BARRIER_ALL, 0, 0, 0 };

	if (token[0] == '!' || token[0] == '?') {
		step.kind = token[0] == '!' ? SEND : RECEIVE;
		step.which = token[1] - '0';
	} else if (token[0] == '(' || token[0] == ')') {
		step.kind = token[0] == '(' ? LOCK : UNLOCK;
		step.which = token[1] - '0';
		if (step.which >= LOCKS)
			bad_test(token);
	} else if (token[0] >= 'x' && token[1] == '=') {
		step.kind = STORE;
		step.variable = token[0] - 'x';
		step.value = token[2] - '0';
	} else if (token[0] >= 'a' && token[0] < 'a' + REGISTERS && token[1] == '=') {
		step.kind = token[3] == ':' ? EXCHANGE : LOAD;
		step.which = token[0] - 'a';
		step.variable = token[2] - 'x';
		step.value = token[3] == ':' ? token[4] - '0' : 0;
		loader[step.which] = role;
	} else if (token[0] != '#') {
		bad_test(token);
	}
	if (step.variable >= VARIABLES || step.value >= STRANGE || step.which >= SIGNATURES)
		bad_test(token);
	return step;
}

static inline void parse(void)
{
	char text[128], *token, *rest;
	unsigned int i;

	snprintf(text, sizeof(text), "%s", test->programs);
	memset(steps, 0, sizeof(steps));
	for (i = 0; i < REGISTERS; i++)
		loader[i] = ROLES;
	roles = 1;
	barriers = 0;
	has_locks = strchr(text, '(');
	for (token = strtok_r(text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		if (*token == '|') {
			roles++;
			continue;
		}
		if (roles > ROLES || steps[roles - 1] == STEPS)
			bad_test(token);
		/* All roles have the same number of barriers. */
		barriers += roles == 1 && *token == '#';
		program[roles - 1][steps[roles - 1]++] = parse_step(roles - 1, token);
	}
}

/* The two bits of an outcome for a register or a variable */
static inline unsigned int value_of(unsigned int outcome, char name)
{
	return outcome >> 2 * (name >= 'a' ? name - 'a' : REGISTERS + name - 'X') & 3;
}

static inline bool is_forbidden(unsigned int outcome)
{
	char text[128], *token, *rest;
	bool all = true;

	snprintf(text, sizeof(text), "%s", test->forbidden);
	for (token = strtok_r(text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		if (!strcmp(token, "or")) {
			if (all)
				return true;
			all = true;
			continue;
		}
		if (!strchr("abcdXY", token[0]))
			bad_test(token);
		all &= (value_of(outcome, token[0]) == (unsigned int)(token[2] - '0')) ==
		       (token[1] == '=');
	}
	return all;
}

#endif /* GUEST_LITMUS_H */
