// SPDX-License-Identifier: LGPL-2.1-or-later
/* The successors and predecessors of a set of states by one relation of any kind of model */
#include "circuit.h"
#include "internal.h"

bool kd_in_clusters(const struct kd_model *model)
{
	return model->circuit && model->circuit->clusters->count > 1;
}

kdsm_bdd kd_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
		       kdsm_bdd from, uint32_t relation)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const struct kd_search *s = w->store->context;
	const struct kdsm_relation *rel;
	kdsm_bdd found;

	if (relation >= s->model.relations)
		return kd_failure(-EIO);
	if (kd_gang_aborted(&s->cluster, NULL))
		return kd_failure(-ECANCELED);
	if (kd_stopping(s))
		return kd_failure(-EINTR);
	rel = s->model.relation[relation];
	if (kd_in_clusters(&s->model))
		found = kd_clusters_successors(kdsm_worker, kdsm_head, from,
					       s->model.circuit->clusters);
	else
		found = KDSM_CALL(kd_product, from, rel->relation, rel->at, 0);
	kdsm_table_flush(w->table);
	return found;
}

kdsm_bdd kd_predecessors(struct kdsm_bdd_worker *w, const struct kd_model *model, kdsm_bdd to,
			 uint32_t relation)
{
	return kd_in_clusters(model) ? kd_clusters_predecessors(w, to, model->circuit->clusters) :
	       kdsm_bdd_predecessors(w, to, model->relation[relation]);
}
