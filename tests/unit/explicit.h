/* SPDX-License-Identifier: GPL-2.0 */
/* Explicit search of a small demonstration net, breadth first and state by state */
#ifndef UNIT_EXPLICIT_H
#define UNIT_EXPLICIT_H

#include <kdsm/bdd.h>

#include "sim.h"
#include "bdd/bdd.h"
#include "models.h"
#include "reach/internal.h"
#include "table/table.h"

#define MAX_LEVELS	256

typedef unsigned __int128 marking;

struct explicit {
	struct kd_net *net;
	marking *state;		/* in the order of discovery */
	size_t states, capacity;
	uint32_t *index;	/* position in state, plus 1 */
	size_t index_size;
	unsigned int levels;
	size_t end[MAX_LEVELS];	/* end[k]: number of states within k steps */
};

static inline size_t slot_of(const struct explicit *e, marking m)
{
	size_t slot = kd_hash((uint64_t)m, (uint64_t)(m >> 64));

	for (slot &= e->index_size - 1; e->index[slot]; slot = (slot + 1) & (e->index_size - 1))
		if (e->state[e->index[slot] - 1] == m)
			break;
	return slot;
}

static inline void discover(struct explicit *e, marking m)
{
	size_t slot = slot_of(e, m);

	if (e->index[slot])
		return;
	assert_true(e->states < e->capacity);
	e->state[e->states++] = m;
	e->index[slot] = e->states;
}

static inline void fire_all(struct explicit *e, marking m)
{
	unsigned int t, i;

	for (t = 0; t < e->net->transitions; t++) {
		const struct kd_transition *tr = &e->net->transition[t];
		marking next = m;
		bool enabled = true;

		for (i = 0; i < tr->ins; i++) {
			enabled &= next >> tr->in[i].place & 1;
			next &= ~((marking)1 << tr->in[i].place);
		}
		if (!enabled)
			continue;
		for (i = 0; i < tr->outs; i++) {
			assert_false(next >> tr->out[i].place & 1);
			next |= (marking)1 << tr->out[i].place;
		}
		discover(e, next);
	}
}

static inline void explore(struct explicit *e, const char *name, size_t most)
{
	marking initial = 0;
	char path[8192];
	size_t at, end;
	unsigned int i;

	memset(e, 0, sizeof(*e));
	snprintf(path, sizeof(path), "%s/%s.pnml", models, name);
	e->net = read_net(path);
	assert_true(e->net->places <= 128);
	e->capacity = most;
	e->state = calloc(most, sizeof(*e->state));
	for (e->index_size = 1; e->index_size < 2 * most; )
		e->index_size *= 2;
	e->index = calloc(e->index_size, sizeof(*e->index));
	for (i = 0; i < e->net->places; i++)
		initial |= (marking)e->net->place[i].marking << i;
	discover(e, initial);
	for (at = 0; at < e->states; e->levels++) {
		assert_true(e->levels < MAX_LEVELS);
		e->end[e->levels] = e->states;
		for (end = e->states; at < end; at++)
			fire_all(e, e->state[at]);
	}
}

static inline void forget(struct explicit *e)
{
	kd_net_free(e->net);
	free(e->state);
	free(e->index);
}

/* Union of the first count states, added one by one */
static inline kdsm_bdd set_of(struct kdsm_bdd_worker *worker, const struct explicit *e,
			      size_t count)
{
	kdsm_bdd set = KDSM_BDD_FALSE;
	unsigned int p;
	size_t i;

	/* as model_pnml.c encodes a 1-safe net in the order of the file */

	for (i = 0; i < count; i++) {
		kdsm_bdd one = KDSM_BDD_TRUE;

		for (p = e->net->places; p--; )
			one = kd_literal(worker, 2 * (KD_MOST_WIDTH * p + KD_MOST_WIDTH - 1),
					 e->state[i] >> p & 1, one);
		set = kdsm_bdd_or(worker, set, one);
	}
	return set;
}

#endif /* UNIT_EXPLICIT_H */
