/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collections: nodes of the BDD table that no root leads to are removed, by one
 * process on every node of the cluster together, while nobody uses the table.
 */
#ifndef KD_COLLECT_H
#define KD_COLLECT_H

#include "internal.h"
#include "core/core.h"

/*
 * KD_GROW: the table is made larger whatever is alive, if it is not at its bound yet.
 * KD_RESERVE: some room stays unused, because a lookup in an index that is nearly full
 * takes long: a hundred times as many entries have to be looked at as in one that is
 * full to seven eighths. It is not kept when most of the table is alive.
 */
enum { KD_GROW = 1, KD_RESERVE = 2 };

/* How much of so much. */
static inline uint64_t kd_reserve(uint64_t size)
{
	return size / 8;
}

/*
 * The roots are what users of this process protect, and these; roots of any node
 * keep nodes of all. Called by all members of the gang, when no operation is on
 * anywhere, or will be before this returns; other processes must not have the store
 * open. Whoever fails has to kd_gang_abort(); the store is of no use then.
 *
 * -ENOSPC: what is alive finds no room in the index. -EIO: memory holds what is no
 * BDD. -ENOMEM. Errors of the gang and of operations on the region.
 */
int kd_collect(struct kdsm_bdd_store *store, struct kd_gang *gang, unsigned int threads,
	       unsigned int flags,
	       const kdsm_bdd roots[], uint64_t count,
	       struct kdsm_bdd_collection *collection);

static inline bool kd_can_grow(const struct kdsm_bdd_store *store)
{
	return store->table->limit < store->table->slots / store->table->block;
}

#endif /* KD_COLLECT_H */
