/* SPDX-License-Identifier: GPL-2.0 */
/* A store of BDDs in a region of its own, on one node */
#ifndef UNIT_BDD_STORE_H
#define UNIT_BDD_STORE_H

#include <kdsm/bdd.h>
#include <kdsm/kdsm.h>

static inline void open_bdd_store(struct kdsm *kdsm, const char *name, uint64_t table_bytes,
				  uint64_t cache_bytes, struct kdsm_region **region,
				  struct kdsm_bdd_store **store)
{
	struct kdsm_bdd_attr attr = {
		.argsz = sizeof(attr),
		.table_bytes = table_bytes,
		.cache_bytes = cache_bytes,
	};
	struct kdsm_region_attr size = {
		.argsz = sizeof(size),
		.size = kdsm_bdd_part_bytes(&attr, 1),
	};

	assert_int_equal(kdsm_region_open(kdsm, name, &size, region), 0);
	assert_int_equal(kdsm_bdd_open(*region, 0, &attr, store), 0);
}

#endif /* UNIT_BDD_STORE_H */
