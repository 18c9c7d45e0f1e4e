/* SPDX-License-Identifier: GPL-2.0 */
/* Small Petri nets whose places have several tokens: random ones, their files, their states */
#ifndef UNIT_SMALL_NETS_H
#define UNIT_SMALL_NETS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PLACES	16
#define MOST_TRANSITIONS 16
#define MOST_STATES	20000
#define MOST_LEVELS	1000
#define MOST_TOKENS	200	/* of a place in an exploration */

/* All weights and markings are small, too; a weight of 0 is no arc. */
struct net {
	unsigned int places, transitions;
	unsigned int marking[MOST_PLACES];
	unsigned int in[MOST_TRANSITIONS][MOST_PLACES], out[MOST_TRANSITIONS][MOST_PLACES];
	unsigned int read[MOST_TRANSITIONS][MOST_PLACES];
	unsigned int inhibitor[MOST_TRANSITIONS][MOST_PLACES];
};

struct space {
	unsigned int state[MOST_STATES][MOST_PLACES];
	unsigned int states, deadlocks, levels, fired;
	unsigned int end[MOST_LEVELS];	/* end[k]: number of states within k steps */
	unsigned int tokens[MOST_PLACES];	/* largest number that was found */
	unsigned int most;		/* states that the exploration may find */
	bool whole;
};

static inline void find_state(struct space *space, const unsigned int *state)
{
	unsigned int i;

	for (i = 0; i < space->states; i++)
		if (!memcmp(space->state[i], state, sizeof(space->state[i])))
			return;
	for (i = 0; i < MOST_PLACES; i++) {
		if (space->tokens[i] < state[i])
			space->tokens[i] = state[i];
		if (state[i] > MOST_TOKENS)
			space->whole = false;
	}
	if (space->states == space->most)
		space->whole = false;
	else
		memcpy(space->state[space->states++], state, sizeof(space->state[0]));
}

static inline bool fire(const struct net *net, unsigned int t, const unsigned int *from,
			unsigned int *to)
{
	unsigned int p;

	memset(to, 0, MOST_PLACES * sizeof(*to));
	for (p = 0; p < net->places; p++) {
		if (from[p] < net->in[t][p] || from[p] < net->read[t][p] ||
		    (net->inhibitor[t][p] && from[p] >= net->inhibitor[t][p]))
			return false;
		to[p] = from[p] - net->in[t][p] + net->out[t][p];
	}
	return true;
}

/* Breadth first; not whole if there are too many states, or a place gets many tokens. */
static inline void explore_net(const struct net *net, struct space *space, unsigned int most)
{
	unsigned int at, end, t, next[MOST_PLACES];
	bool stuck;

	memset(space, 0, sizeof(*space));
	space->most = most;
	space->whole = true;
	find_state(space, net->marking);
	for (at = 0; at < space->states && space->whole; space->levels++) {
		space->end[space->levels] = space->states;
		space->whole &= space->levels < MOST_LEVELS - 1;
		for (end = space->states; at < end && space->whole; at++) {
			stuck = true;
			for (t = 0; t < net->transitions; t++) {
				if (!fire(net, t, space->state[at], next))
					continue;
				stuck = false;
				space->fired++;
				find_state(space, next);
			}
			space->deadlocks += stuck;
		}
	}
}

/* The most tokens of a set of places in a state */
static inline unsigned int most_tokens(const struct space *space, unsigned int set)
{
	unsigned int most = 0, sum, i, p;

	for (i = 0; i < space->states; i++) {
		for (sum = 0, p = 0; p < MOST_PLACES; p++)
			sum += set >> p & 1 ? space->state[i][p] : 0;
		most = sum > most ? sum : most;
	}
	return most;
}

/* An arc from a place; the type in an attribute, or in an element. */
static inline void write_input(FILE *file, unsigned int p, unsigned int t, unsigned int weight,
			       const char *type)
{
	if (!weight)
		return;
	if (type && t % 2)
		fprintf(file, "<arc source='p%u' target='t%u' type='%s'>", p, t, type);
	else
		fprintf(file, "<arc source='p%u' target='t%u'>", p, t);
	fprintf(file, "<inscription><text>%u</text></inscription>", weight);
	if (type && t % 4 == 0)
		fprintf(file, "<type value='%s'/>", type);
	else if (type)
		fprintf(file, "<type><text> %s</text></type>", type);
	fprintf(file, "</arc>");
}

static inline void write_net(const struct net *net, FILE *file)
{
	unsigned int t, p;

	fprintf(file, "<pnml><net id='n' type='ptnet'>");
	for (p = 0; p < net->places; p++)
		fprintf(file, "<place id='p%u'><initialMarking><text>%u</text></initialMarking></place>",
			p, net->marking[p]);
	for (t = 0; t < net->transitions; t++) {
		fprintf(file, "<transition id='t%u'/>", t);
		for (p = 0; p < net->places; p++) {
			write_input(file, p, t, net->in[t][p], NULL);
			write_input(file, p, t, net->read[t][p], "read");
			write_input(file, p, t, net->inhibitor[t][p], "inhibitor");
			if (net->out[t][p])
				fprintf(file, "<arc source='t%u' target='p%u'><inscription><text>%u</text></inscription></arc>",
					t, p, net->out[t][p]);
		}
	}
	fprintf(file, "</net></pnml>");
}

static inline void random_net(struct net *net)
{
	unsigned int t, p;

	memset(net, 0, sizeof(*net));
	net->places = 5;
	net->transitions = 5;
	for (p = 0; p < net->places; p++)
		net->marking[p] = random() % 3 ? random() % 4 : 0;
	for (t = 0; t < net->transitions; t++)
		for (p = 0; p < net->places; p++) {
			net->in[t][p] = random() % 3 ? 0 : 1 + random() % 3;
			net->out[t][p] = random() % 3 ? 0 : 1 + random() % 3;
			net->read[t][p] = random() % 12 ? 0 : 1 + random() % 3;
			net->inhibitor[t][p] = random() % 9 ? 0 : 1 + random() % 3;
		}
}

/*
 * Fuel becomes tokens of place 1, of which pairs vanish. Place 2 is empty, so the last
 * transition, which makes fuel, is dead. Because of that transition no semiflow bounds the
 * places. Walks see few tokens in place 1, where there can be as many as the fuel was.
 */
static inline struct net fuel_net(unsigned int fuel)
{
	return (struct net){
		.places = 3, .transitions = 5, .marking = { fuel },
		.in = { { 1 }, { 0, 2 }, { 0, 2 }, { 0, 2 } }, .out = { { 0, 1 }, [4] = { 1 } },
		.read = { [4] = { 0, 0, 1 } },
	};
}

/*
 * Place 0 has any number of tokens up to 3, and places 1 and 2 up to 1, independent of each
 * other. The last transition needs some of these numbers and changes none. With only the last two
 * places, any assignment of the bits is a state.
 */
static inline struct net independent_net(bool all)
{
	struct net net = {
		.places = 3, .transitions = 7,
		.out = { { 1 }, { 0 }, { 0, 1 }, { 0 }, { 0, 0, 1 }, { 0 }, { 2 } },
		.in = { { 0 }, { 1 }, { 0 }, { 0, 1 }, { 0 }, { 0, 0, 1 }, { 2 } },
		.inhibitor = { { 3 }, { 0 }, { 0, 1 }, { 0 }, { 0, 0, 1 }, { 0 }, { 0, 1 } },
		.read = { [6] = { 0, 0, 1 } },
	};
	unsigned int t;

	for (t = 0; t < net.transitions && !all; t++) {
		net.in[t][0] = 0;
		net.out[t][0] = 0;
		net.inhibitor[t][0] = 0;
	}
	return net;
}

/*
 * A production line of four cells (G. Ciardo, M. Tilgner, "On the use of Kronecker operators
 * for the solution of generalized stochastic Petri nets", 1996): places 4c to 4c + 3 are the
 * machine, the parts to be repaired, the finished parts and the free cards of cell c.
 */
static inline struct net kanban_net(unsigned int cards)
{
	enum { MACHINE, BACK, OUT, CARD };
	struct net net = { .places = 16, .transitions = 16 };
	unsigned int c;

#define KANBAN(cell, what)	(4 * (cell) + (what))
	for (c = 0; c < 4; c++) {
		net.marking[KANBAN(c, CARD)] = cards;
		net.in[3 * c][KANBAN(c, MACHINE)] = 1;
		net.out[3 * c][KANBAN(c, BACK)] = 1;
		net.in[3 * c + 1][KANBAN(c, BACK)] = 1;
		net.out[3 * c + 1][KANBAN(c, MACHINE)] = 1;
		net.in[3 * c + 2][KANBAN(c, MACHINE)] = 1;
		net.out[3 * c + 2][KANBAN(c, OUT)] = 1;
	}
	net.in[12][KANBAN(0, CARD)] = 1;
	net.out[12][KANBAN(0, MACHINE)] = 1;
	for (c = 1; c < 3; c++) {
		net.in[13][KANBAN(c, CARD)] = 1;
		net.out[13][KANBAN(c, MACHINE)] = 1;
		net.in[14][KANBAN(c, OUT)] = 1;
		net.out[14][KANBAN(c, CARD)] = 1;
	}
	net.in[13][KANBAN(0, OUT)] = 1;
	net.out[13][KANBAN(0, CARD)] = 1;
	net.in[14][KANBAN(3, CARD)] = 1;
	net.out[14][KANBAN(3, MACHINE)] = 1;
	net.in[15][KANBAN(3, OUT)] = 1;
	net.out[15][KANBAN(3, CARD)] = 1;
#undef KANBAN
	return net;
}

#endif /* UNIT_SMALL_NETS_H */
