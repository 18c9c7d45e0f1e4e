/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of brute: the net, the graph of its markings, and formulas about them */
#ifndef BRUTE_H
#define BRUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Resize memory, or end the program if there is none. */
void *grow(void *memory, size_t count, size_t size);
/* A random number below n; random_state is the seed. */
extern uint64_t random_state;
unsigned int below(unsigned int n);

/* ---- net.c: the net of a PNML file ---- */

struct place {
	char *id;
	uint32_t tokens;	/* initially */
};

/* The effect of a transition on a place */
struct touch {
	unsigned int place;
	uint64_t least, most;	/* tokens with which the transition is enabled */
	int64_t change;
};

struct transition {
	char *id;
	struct touch *touch;
	unsigned int touches;
};

extern struct place *place;
extern struct transition *transition;
extern unsigned int places, transitions;

void read_net(const char *path);

/* ---- graph.c: all markings, and the transitions between them ---- */

extern uint64_t most_states, most_edges;	/* more states end the program */
extern size_t states;
extern uint64_t fired;			/* pairs of a state and a transition that fires there */
extern bool with_edges;			/* false: more than most_edges, which are not kept */
/* By edge and by state, sorted by states: successors and predecessors; first_... has an end more */
extern uint32_t *next_state, *previous_state;
extern uint64_t *first_edge, *first_previous;

/* Find all states. */
void explore(void);
/* Set previous_state and first_previous. */
void turn_edges(void);
const uint64_t *marking_of(size_t state);
uint64_t tokens(const uint64_t *marking, unsigned int p);
bool enabled(const struct transition *t, const uint64_t *marking);

/* ---- formula.c: random formulas, and their XML ---- */

enum op {
	DEADLOCK, FIREABLE, COMPARE, NOT, AND, OR, XOR, IMPLICATION, EQUIVALENCE,
	EX, AX, EF, AF, EG, AG, EU, AU,
};

#define MOST_NAMES	4

/* A number: the tokens of places, plus or minus those of others, plus a constant */
struct amount {
	unsigned int place[MOST_NAMES], places;
	unsigned int other[MOST_NAMES], others;
	int64_t constant;
	bool difference;	/* the others, and the constant, are subtracted */
};

struct formula {
	enum op op;
	struct formula *a, *b;
	unsigned int fireable[MOST_NAMES], count;
	unsigned int comparison;
	struct amount left, right;
};

/* Choose different numbers below n. Return how many: 1 to most. */
unsigned int choose(unsigned int *chosen, unsigned int n, unsigned int most);
/* A formula of this many levels; with fireability, or with cardinality */
struct formula *random_formula(unsigned int depth, bool fire, bool ctl);
/* "Exists-path finally" or "all-paths globally" a formula */
struct formula *path_to(struct formula *a);
void free_formula(struct formula *f);
void put_formula(FILE *file, const struct formula *f);
void put_places(FILE *file, const char *element, const unsigned int *list, unsigned int count);

/* ---- answer.c ---- */

int64_t value(const struct amount *n, const uint64_t *marking);
/* Whether a formula holds in the initial state. Without edges it is one of path_to(). */
bool holds(const struct formula *f);

#endif /* BRUTE_H */
