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

int kd_property_begin(struct kd_search *s, struct kdsm_reach_result *result)
{
	const struct kd_model *model = &s->model;
	unsigned int i;

	if (s->gang.node || !model->properties)
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
