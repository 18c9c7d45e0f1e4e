// SPDX-License-Identifier: GPL-2.0
/* The explicit graph of the markings of a net */
#include <err.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "brute.h"

/* Each place has a field of this many bits, in words of 64 bits. */
static unsigned int width, words;
static uint64_t *marking;	/* all states, in the order of discovery */
static uint32_t *slot;		/* hash table: state + 1 */
static size_t room, slots, edge_room;

uint64_t most_states = 1000000, most_edges = 100000000, fired;
size_t states;
bool with_edges;
uint32_t *next_state, *previous_state;
uint64_t *first_edge, *first_previous;

const uint64_t *marking_of(size_t state)
{
	return marking + state * words;
}

uint64_t tokens(const uint64_t *m, unsigned int p)
{
	unsigned int bit = p * width;

	return m[bit / 64] >> bit % 64 & (UINT64_MAX >> (64 - width));
}

/* False: they do not fit. */
static bool set_tokens(uint64_t *m, unsigned int p, uint64_t count)
{
	uint64_t mask = UINT64_MAX >> (64 - width);
	unsigned int bit = p * width;

	if (count > mask)
		return false;
	m[bit / 64] = (m[bit / 64] & ~(mask << bit % 64)) | count << bit % 64;
	return true;
}

bool enabled(const struct transition *t, const uint64_t *m)
{
	unsigned int i;

	for (i = 0; i < t->touches; i++) {
		uint64_t n = tokens(m, t->touch[i].place);

		if (n < t->touch[i].least || n > t->touch[i].most)
			return false;
	}
	return true;
}

static size_t slot_of(const uint64_t *m)
{
	uint64_t h = 0;
	unsigned int i;
	size_t at;

	for (i = 0; i < words; i++) {
		h = (h ^ m[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	for (at = h & (slots - 1); slot[at]; at = (at + 1) & (slots - 1))
		if (!memcmp(marking + (slot[at] - 1) * words, m, words * sizeof(*m)))
			break;
	return at;
}

static void grow_slots(void)
{
	size_t i;

	free(slot);
	slots = slots ? 2 * slots : 1 << 12;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		errx(2, "no memory");
	for (i = 0; i < states; i++)
		slot[slot_of(marking + i * words)] = i + 1;
}

/* The number of a state, old or new */
static size_t state_of(const uint64_t *m)
{
	size_t at = slot_of(m);

	if (slot[at])
		return slot[at] - 1;
	if (states == room) {
		room = room ? room + room / 2 : 1 << 12;
		marking = grow(marking, room * words, sizeof(*marking));
		first_edge = grow(first_edge, room + 1, sizeof(*first_edge));
	}
	memcpy(marking + states * words, m, words * sizeof(*m));
	slot[at] = ++states;
	if (2 * states > slots)
		grow_slots();
	return states - 1;
}

static void add_edge(size_t to)
{
	if (with_edges && fired >= most_edges) {
		with_edges = false;
		free(next_state);
		next_state = NULL;
	}
	if (with_edges && fired == edge_room) {
		edge_room = edge_room ? edge_room + edge_room / 2 : 1 << 12;
		next_state = grow(next_state, edge_room, sizeof(*next_state));
	}
	if (with_edges)
		next_state[fired] = to;
	fired++;
}

/* False: a place needs more bits. */
static bool explore_fields(void)
{
	uint64_t *m;
	unsigned int t, i;
	size_t at;

	words = (places * width + 63) / 64 + !places;
	m = calloc(words, sizeof(*m));
	states = 0;
	room = 0;
	slots = 0;
	fired = 0;
	edge_room = 0;
	with_edges = true;
	grow_slots();
	for (i = 0; i < places; i++)
		if (!set_tokens(m, i, place[i].tokens))
			return false;
	state_of(m);
	for (at = 0; at < states; at++) {
		if (states > most_states) {
			fprintf(stderr, "more than %" PRIu64 " states\n", most_states);
			exit(3);
		}
		first_edge[at] = fired;
		for (t = 0; t < transitions; t++) {
			const struct transition *tr = &transition[t];

			if (!enabled(tr, marking + at * words))
				continue;
			memcpy(m, marking + at * words, words * sizeof(*m));
			for (i = 0; i < tr->touches; i++)
				if (!set_tokens(m, tr->touch[i].place, tr->touch[i].change +
						tokens(m, tr->touch[i].place)))
					return false;
			add_edge(state_of(m));
		}
	}
	first_edge[states] = fired;
	free(m);
	return true;
}

void explore(void)
{
	for (width = 1; !explore_fields(); width *= 2)
		if (width == 32)
			errx(2, "a place gets too many tokens");
}

void turn_edges(void)
{
	uint64_t *at, e;
	size_t s;

	previous_state = grow(NULL, fired, sizeof(*previous_state));
	first_previous = calloc(states + 2, sizeof(*first_previous));
	if (!first_previous)
		errx(2, "no memory");
	/* at[s] is the next free place of the predecessors of s, and ends where s + 1 begins */
	at = first_previous + 1;
	for (e = 0; e < fired; e++)
		if (next_state[e] + 1 < states)
			at[next_state[e] + 1]++;
	for (s = 1; s < states; s++)
		at[s] += at[s - 1];
	for (s = 0; s < states; s++)
		for (e = first_edge[s]; e < first_edge[s + 1]; e++)
			previous_state[at[next_state[e]]++] = s;
}
