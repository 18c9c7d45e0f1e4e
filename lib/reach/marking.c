// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How BDDs encode the markings of a Petri net: each place has a binary number of tokens,
 * whose bits are adjacent variables, the most significant bit first. Every place has room
 * for more bits than it uses, so a place can be widened later without moving variables. The
 * effects of transitions on markings are in model_pnml.c.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The room of each place if all have so many bits */
static unsigned int room_of(unsigned int places, unsigned int bits)
{
	return places && bits / places < KD_MOST_WIDTH ? bits / places : KD_MOST_WIDTH;
}

int kd_marking_new(struct kd_marking **marking, unsigned int places, const uint32_t *order,
		   unsigned int share, unsigned int shares)
{
	struct kd_marking *m = calloc(1, sizeof(*m));
	unsigned int bits, i;

	*marking = m;
	if (!m)
		return -ENOMEM;
	m->places = places;
	bits = KD_FILE_MAX_BITS / shares;
	m->room = room_of(places, bits);
	m->base = share * bits;
	m->first = malloc((places + 1) * sizeof(*m->first));
	m->order = malloc((places + 1) * sizeof(*m->order));
	m->width = calloc(places + 1, sizeof(*m->width));
	if (!m->first || !m->order || !m->width)
		return -ENOMEM;
	for (i = 0; i < places; i++) {
		m->order[i] = order[i];
		m->first[m->order[i]] = 2 * (m->base + m->room * i);
		m->width[m->order[i]] = 1;
	}
	return 0;
}

void kd_marking_free(struct kd_marking *marking)
{
	if (!marking)
		return;
	free(marking->first);
	free(marking->order);
	free(marking->width);
	free(marking);
}

unsigned int kd_marking_bits(const struct kd_marking *m)
{
	unsigned int sum = 0, i;

	for (i = 0; i < m->places; i++)
		sum += m->width[i];
	return sum;
}

void kd_marking_variables(const struct kd_marking *m, uint32_t *variables)
{
	unsigned int i, b;

	for (i = 0; i < m->places; i++)
		for (b = m->width[m->order[i]]; b--; )
			*variables++ = kd_marking_variable(m, m->order[i], b);
}

/* ---- files ---- */

static uint32_t to_file(const void *context, uint32_t variable)
{
	const struct kd_marking *m = context;
	uint32_t room = room_of(m->places, KD_FILE_MAX_BITS), at = variable / 2 - m->base;

	return 2 * (at / m->room * room + room - m->room + at % m->room) + variable % 2;
}

static uint32_t from_file(const void *context, uint32_t variable)
{
	const struct kd_marking *m = context;
	uint32_t room = room_of(m->places, KD_FILE_MAX_BITS), at = variable / 2;

	if (at < room * m->places && at % room < room - m->room)
		return KD_NO_VARIABLE;
	if (at < room * m->places)
		at = at / room * m->room + at % room - (room - m->room);
	else	/* beyond the places */
		at -= (room - m->room) * m->places;
	return 2 * (m->base + at) + variable % 2;
}

void kd_marking_to_file(const struct kd_marking *m, struct kd_renaming *renaming)
{
	if (m)
		*renaming = (struct kd_renaming){ to_file, m };
}

void kd_marking_from_file(const struct kd_marking *m, struct kd_renaming *renaming)
{
	if (m)
		*renaming = (struct kd_renaming){ from_file, m };
}

uint32_t kd_marking_file_bits(const struct kd_marking *m)
{
	return room_of(m->places, KD_FILE_MAX_BITS) * m->places;
}

uint64_t kd_marking_digest(const uint32_t *order, unsigned int places)
{
	uint64_t digest = places;
	unsigned int i;

	for (i = 0; i < places; i++)
		digest = kd_hash(digest, order[i]);
	return digest;
}

unsigned int kd_marking_place(const struct kd_marking *m, uint32_t variable, unsigned int *bit)
{
	uint32_t at = variable / 2 - m->base;

	*bit = m->room - 1 - at % m->room;
	return m->order[at / m->room];
}

kdsm_bdd kd_marking_equals(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			   unsigned int place, uint64_t tokens, kdsm_bdd rest)
{
	unsigned int b;

	for (b = 0; b < m->width[place]; b++)
		rest = kd_literal(w, kd_marking_variable(m, place, b), tokens >> b & 1, rest);
	return rest;
}

/*
 * An addition, bit by bit from the least significant one: small + by = big. One of small
 * and big is the current number of tokens, the other one the next number. The state of the
 * recursion is the carry that goes into the bits above, and whether the current number's
 * bits so far must be compared with those of the bounds: above[c][l][h] is the relation over
 * the bits so far with carry c; if l is set, these bits are at least those of least; if h is
 * set, at most those of most.
 */
struct addition {
	struct kdsm_bdd_worker *w;
	uint64_t by, least, most;
	bool subtract;			/* the next number is small */
	kdsm_bdd above[2][2][2];
};

/* The relation over bit b and the bits below it, with these values of the bit. */
static kdsm_bdd add_bit(const struct addition *a, kdsm_bdd below[2][2][2], unsigned int b,
			int now, int next, int carry, bool least, bool most)
{
	int l = a->least >> b & 1, h = a->most >> b & 1;
	int small = a->subtract ? next : now, big = a->subtract ? now : next;
	int in = big + 2 * carry - small - (int)(a->by >> b & 1);

	if (in < 0 || in > 1 || (least && now < l) || (most && now > h))
		return KDSM_BDD_FALSE;
	return below[in][least && now == l][most && now == h];
}

/* The relation over bit b and the bits below it, for one state of the recursion. */
static kdsm_bdd step_of(const struct addition *a, kdsm_bdd below[2][2][2], unsigned int b,
			uint32_t variable, int carry, bool least, bool most)
{
	kdsm_bdd value[2];
	int now;

	for (now = 0; now < 2; now++)
		value[now] = kdsm_bdd_make(a->w, variable + 1,
					   add_bit(a, below, b, now, 1, carry, least, most),
					   add_bit(a, below, b, now, 0, carry, least, most));
	return kdsm_bdd_make(a->w, variable, value[1], value[0]);
}

static void step(struct addition *a, unsigned int b, uint32_t variable)
{
	kdsm_bdd below[2][2][2];
	int c, l, h;

	memcpy(below, a->above, sizeof(below));
	for (c = 0; c < 2; c++)
		for (l = 0; l < 2; l++)
			for (h = 0; h < 2; h++)
				a->above[c][l][h] = step_of(a, below, b, variable, c, l, h);
}

/* The relation that leads from least..most tokens to delta more, which all fit. */
static kdsm_bdd add(struct kdsm_bdd_worker *w, const struct kd_marking *m, unsigned int place,
		    uint64_t least, uint64_t most, int64_t delta, kdsm_bdd rest)
{
	struct addition a = {
		.w = w, .by = delta < 0 ? -delta : delta, .least = least, .most = most,
		.subtract = delta < 0,
	};
	unsigned int b;
	int i;

	if (least > most)
		return KDSM_BDD_FALSE;
	for (i = 0; i < 4; i++) {
		a.above[0][i / 2][i % 2] = rest;
		a.above[1][i / 2][i % 2] = KDSM_BDD_FALSE;
	}
	for (b = 0; b < m->width[place]; b++)
		step(&a, b, kd_marking_variable(m, place, b));
	return a.above[0][1][1];
}

kdsm_bdd kd_marking_change(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			   unsigned int place, const struct kd_change *change,
			   kdsm_bdd fits, kdsm_bdd overflows)
{
	uint64_t limit = (UINT64_C(1) << m->width[place]) - 1;
	uint64_t most = change->most < limit ? change->most : limit, fitting = most;
	kdsm_bdd normal, over;

	if (change->delta > 0 && (uint64_t)change->delta > limit)
		return add(w, m, place, change->least, most, 0, overflows);
	if (change->delta > 0 && most > limit - change->delta)
		fitting = limit - change->delta;
	normal = add(w, m, place, change->least, fitting, change->delta, fits);
	if (fitting == most || overflows == KDSM_BDD_FALSE)
		return normal;
	over = add(w, m, place, change->least > fitting ? change->least : fitting + 1, most, 0,
		   overflows);
	return kdsm_bdd_or(w, normal, over);
}
