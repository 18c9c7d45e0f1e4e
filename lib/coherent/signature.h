/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sending signatures is made of, for those who send several at once. */
#ifndef KDSM_SIGNATURE_H
#define KDSM_SIGNATURE_H

#include "core/core.h"

/* The two puts of kdsm_signature_put(); *value must stay until they are submitted. */
void kdsm_signature_ops(struct kdsm_op ops[2], unsigned int node, uint64_t offset,
			const struct kdsm_signature *signature,
			const uint64_t *value) KDSM_PRIVATE;
/* What kdsm_signature_wait() does when the value is there. */
int kdsm_signature_get(const struct kdsm_region *sync, uint64_t offset,
		       struct kdsm_signature *signature) KDSM_PRIVATE;

#endif /* KDSM_SIGNATURE_H */
