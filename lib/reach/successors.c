// SPDX-License-Identifier: LGPL-2.1-or-later
/* The successors of a set of states by one relation, for the tasks of all strategies. */
#include "internal.h"

kdsm_bdd kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
		       kdsm_bdd from, uint32_t relation)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kdsm_relation *rel;
	kdsm_bdd found;

	if (relation >= s->model.relations)
		return kd_failure(-EIO);
	if (kd_gang_aborted(&s->gang, NULL))
		return kd_failure(-ECANCELED);
	if (kd_stopping(s))
		return kd_failure(-EINTR);
	rel = s->model.relation[relation];
	found = KDSM_CALL(kd_product, from, rel->relation, rel->at, 0);
	kdsm_table_flush(w->table);
	return found;
}
