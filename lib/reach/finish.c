// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The finishing line of a race (race.c): words in the cluster's region that tell which node was the
 * first one to have all states.
 */
#include <limits.h>
#include <string.h>

#include "internal.h"

unsigned int kd_race_favourite = UINT_MAX;

/* The words in each part of the region */
struct line {
	uint64_t winner;		/* on node 0: 1 + the node that has won */
	uint64_t over;			/* on each node: 1 + the winner, put by the winner */
};

#define PLACE(field)	(KD_RACE + offsetof(struct line, field))

static const struct line *own(const struct kd_search *s)
{
	return (const void *)((char *)kdsm_region_part(s->region) + KD_RACE);
}

const uint64_t *kd_finish_word(const struct kd_search *s)
{
	return &own(s)->over;
}

bool kd_finish_crossed(const struct kd_search *s)
{
	return s->cluster.nodes > 1 && __atomic_load_n(kd_finish_word(s), __ATOMIC_RELAXED);
}

uint64_t kd_finish_winner(const struct kd_search *s)
{
	return __atomic_load_n(&own(s)->winner, __ATOMIC_RELAXED);
}

int kd_finish_claim(struct kd_search *s, bool *won)
{
	unsigned int nodes = s->cluster.nodes, i;
	uint64_t mine = 1 + s->cluster.node, former;
	int r;

	if (kd_race_favourite != UINT_MAX && kd_race_favourite != s->cluster.node)
		return 0;
	r = kdsm_cas(s->region, 0, PLACE(winner), 0, mine, &former);
	*won = r == 0 && !former;
	/* A node that cannot be reached until the timeout is lost, and need not know. */
	for (i = 0; *won && i < nodes; i++)
		kd_gang_tell(&s->cluster, i, PLACE(over), mine);
	return r;
}

int kd_finish_without(struct kd_search *s, int error)
{
	if (error < 0 && s->cluster.node == 0 && !s->deserted) {
		kd_search_warn(s, "node %u is lost (%s); the result is complete, but lacks operations of other nodes",
			       s->cluster.culprit, strerror(-error));
		s->deserted = true;
	}
	return s->cluster.node ? error : 0;
}
