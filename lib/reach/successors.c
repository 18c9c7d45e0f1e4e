// SPDX-License-Identifier: LGPL-2.1-or-later
/* The successors of a set of states by one relation, for the tasks of all strategies. */
#include "internal.h"

struct kd_found kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
			      kdsm_bdd from, uint32_t relation)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kdsm_relation *rel;
	struct kd_found found = { KDSM_BDD_FALSE, 0 };

	if (relation >= s->model.relations)
		found.states = kd_failure(-EIO);
	else if (kd_gang_aborted(&s->gang, NULL))
		found.states = kd_failure(-ECANCELED);
	if (!kd_valid(found.states))
		return found;
	if (s->model.trap && s->model.trap[relation]) {
		rel = s->model.trap[relation];
		found.states = KDSM_CALL(kd_product, from, rel->relation, rel->at, 0);
		if (!kd_valid(found.states))
			return found;
		if (found.states != KDSM_BDD_FALSE) {
			found.states = KDSM_BDD_FALSE;
			found.unsafe = relation + 1;
			return found;
		}
	}
	rel = s->model.relation[relation];
	found.states = KDSM_CALL(kd_product, from, rel->relation, rel->at, 0);
	kdsm_table_flush(w->table);
	return found;
}
