/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walking over all nodes of a BDD. */
#ifndef KD_WALK_H
#define KD_WALK_H

#include "internal.h"

/*
 * All nodes below some edges, each once. Breadth first: nodes of other parts are
 * fetched many at a time.
 */
struct kd_walk {
	struct kd_walked {
		uint64_t number;
		struct kdsm_node node;
	} *nodes;
	uint64_t count, capacity;
	uint64_t *index;	/* place in nodes plus 1 */
	uint64_t index_size;
};

int kd_walk(struct kd_walk *walk, struct kdsm_bdd_worker *w, kdsm_bdd e);
int kd_walk_all(struct kd_walk *walk, struct kdsm_bdd_worker *w, const kdsm_bdd *edges,
		unsigned int count);
uint64_t kd_walk_find(const struct kd_walk *walk, uint64_t number);
void kd_walk_destroy(struct kd_walk *walk);

#endif /* KD_WALK_H */
