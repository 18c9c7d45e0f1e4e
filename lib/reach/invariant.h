/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is to hold in every state, given beside the model: it becomes a property of it.
 * The worker makes private nodes. On failure a negative errno, and *message says what a
 * person has to know.
 */
#ifndef KD_INVARIANT_H
#define KD_INVARIANT_H

#include "model.h"

/* "PLACE[,PLACE...]=K": the places of the net have never more than K tokens together. */
int kd_invariant_bound(struct kdsm_bdd_worker *worker, const char *text,
		       struct kd_model *model, struct kd_message *message);

/* Every state is in the set (the first function) of a file in the .bdd format. */
int kd_invariant_file(struct kdsm_bdd_worker *worker, const char *path,
		      struct kd_model *model, struct kd_message *message);

#endif /* KD_INVARIANT_H */
