// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Properties of a model. Node 0 checks whether the states that a round found include one
 * that violates a property. The search continues after a violation.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int kd_property_publish(struct kd_search *s)
{
	kdsm_bdd bad;
	unsigned int i;

	for (i = 0; s->bad && i < s->model.properties; i++) {
		bad = kdsm_bdd_publish(s->worker, s->model.property[i].bad);
		if (bad == KDSM_BDD_INVALID)	/* s->bad[i] stays a root of collections */
			return kdsm_bdd_error(s->worker);
		s->bad[i] = bad;
	}
	return 0;
}

/* ---- properties of an earlier run ---- */

static uint64_t edge_hash(const uint64_t *hash, kdsm_bdd edge)
{
	return kd_hash(hash[kd_number(edge)], edge & KDSM_BDD_COMPLEMENT);
}

/*
 * A hash of the states that violate the property. It does not depend on other properties, because
 * it takes variables and not numbers of nodes. A bound has other such states in every order and
 * with other bits, so its hash is that of its places and tokens.
 */
int kd_property_identify(struct kdsm_bdd_worker *worker, struct kd_property *property)
{
	kdsm_bdd root = property->bad;
	uint64_t *hash = NULL, i;
	struct kd_walk walk;
	int r;

	if (property->bound) {
		property->id = kd_bound_digest(property->bound);
		return 0;
	}
	r = kd_walk(&walk, worker, root);
	if (r == 0)
		r = kd_walk_sort(&walk, &root, 1);
	if (r == 0) {
		hash = calloc(walk.count + 1, sizeof(*hash));
		r = hash ? 0 : -ENOMEM;
	}
	for (i = 1; r == 0 && i <= walk.count; i++) {
		const struct kdsm_node *node = &walk.node[i];

		hash[i] = kd_hash(kd_hash(walk.variable[kd_variable(node)],
					  edge_hash(hash, kd_high(node, 0))),
				  edge_hash(hash, kd_low(node, 0)));
	}
	if (r == 0)
		property->id = edge_hash(hash, root);
	kd_walk_destroy(&walk);
	free(hash);
	return r;
}

/* Set the verdict on a property from the states that were found before the checkpoint. */
static int look_back(struct kd_search *s, unsigned int property)
{
	struct kdsm_reach_verdict *verdict = &s->verdict[property];
	uint64_t i = s->frontier ? 0 : s->levels;
	kdsm_bdd found;

	do {
		found = kdsm_bdd_and(s->worker, s->frontier ? s->frontier[i] : s->visited,
				     s->bad[property]);
		if (found == KDSM_BDD_INVALID)
			return kdsm_bdd_error(s->worker);
		if (found != KDSM_BDD_FALSE) {
			verdict->violated = true;
			verdict->at_most = !s->frontier;
			verdict->steps = i;
			return 0;
		}
	} while (++i < s->levels);
	return 0;
}

int kd_property_look_back(struct kd_search *s)
{
	unsigned int i;
	int r = 0;

	for (i = 0; r == 0 && s->verdict && i < s->model.properties; i++) {
		if (!s->model.property[i].missed)
			continue;
		r = look_back(s, i);
		s->model.property[i].missed = r < 0;
	}
	return r;
}

/* ---- verdicts ---- */

int kd_property_begin(struct kd_search *s, struct kdsm_reach_result *result)
{
	const struct kd_model *model = &s->model;
	unsigned int i;

	if (!model->properties)
		return 0;
	s->bad = calloc(model->properties, sizeof(*s->bad));
	s->verdict = calloc(model->properties, sizeof(*s->verdict));
	result->verdict = s->verdict;
	if (!s->bad || !s->verdict)
		return -ENOMEM;
	for (i = 0; i < model->properties; i++) {
		s->verdict[i].name = strdup(model->property[i].name);
		if (!s->verdict[i].name)
			return -ENOMEM;
		result->properties++;
	}
	return 0;
}

int kd_property_check(struct kd_search *s)
{
	struct kdsm_bdd_worker *w = s->worker;
	kdsm_bdd found;
	unsigned int i;

	for (i = 0; s->verdict && i < s->model.properties; i++) {
		if (s->verdict[i].violated)
			continue;
		found = kdsm_bdd_and(w, s->current, s->bad[i]);
		if (found == KDSM_BDD_INVALID)
			return kdsm_bdd_error(w);
		s->verdict[i].violated = found != KDSM_BDD_FALSE;
		s->verdict[i].steps = s->levels;
	}
	return 0;
}
