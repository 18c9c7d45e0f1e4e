// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a region that may change while the region is used: the lease of policy
 * strict. This node asks node 0, and node 0 tells all nodes (directory.c).
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "internal.h"

int kdsm_region_tune(struct kdsm_cluster *cluster, const char *name, u64 lease)
{
	struct kdsm_wire_tune wire = { .lease = cpu_to_le64(lease) };
	struct kdsm_region *region;
	unsigned long id = 0;
	int err = -ENOENT;

	/* A region that was destroyed earlier may have had the same name: go on */
	while (err == -ENOENT && (region = kdsm_region_next(cluster, &id))) {
		if (!strcmp(region->name, name)) {
			wire.id = cpu_to_le32(region->id);
			err = kdsm_message_killable(cluster->fabric, 0, KDSM_MESSAGE_TUNE, &wire,
						    sizeof(wire));
		}
		kdsm_region_put(region);
		id++;
	}
	return err;
}

/* The lease applies to blocks that arrive here from now on */
static int kdsm_region_tuned(struct kdsm_region *region, const struct kdsm_wire_tune *wire)
{
	u32 turn = le32_to_cpu(wire->turn);

	mutex_lock(&region->cluster->parts_lock);
	if ((s32)(turn - region->tuned) > 0) {
		region->tuned = turn;
		WRITE_ONCE(region->coherence->lease, le64_to_cpu(wire->lease));
	}
	mutex_unlock(&region->cluster->parts_lock);
	return 0;
}

int kdsm_region_serve_tuned(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_tune *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	unsigned long id;
	int err = -ENOENT;

	if (request->from != 0 || request->length != sizeof(*wire) ||
	    le64_to_cpu(wire->lease) > KDSM_LEASE_MAX)
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	id = le32_to_cpu(wire->id);
	region = kdsm_region_next(cluster, &id);
	if (!region)
		return err;
	if (region->id == le32_to_cpu(wire->id)) {
		err = -EOPNOTSUPP;
		if (region->policy == KDSM_POLICY_STRICT)
			err = kdsm_region_tuned(region, wire);
	}
	kdsm_region_put(region);
	return err;
}
