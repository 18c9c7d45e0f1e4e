// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a region that may change while the region is used: the lease of policy
 * strict, and the limit of the memory that each node holds of a coherent region. This node
 * asks node 0, and node 0 tells all nodes (directory.c).
 */
#include <linux/mm.h>
#include <linux/string.h>

#include "internal.h"

bool kdsm_tune_is_sane(const struct kdsm_wire_tune *wire)
{
	u32 which = le32_to_cpu(wire->which);
	u64 limit = le64_to_cpu(wire->limit);

	if (!which || which & ~(KDSM_TUNE_LEASE | KDSM_TUNE_LIMIT))
		return false;
	if (which & KDSM_TUNE_LEASE && le64_to_cpu(wire->lease) > KDSM_LEASE_MAX)
		return false;
	return !(which & KDSM_TUNE_LIMIT) || !limit || limit >= KDSM_LIMIT_MIN;
}

bool kdsm_tune_fits(const struct kdsm_wire_tune *wire, u32 policy)
{
	if (le32_to_cpu(wire->which) & KDSM_TUNE_LEASE)
		return policy == KDSM_POLICY_STRICT;
	return policy != KDSM_POLICY_PARTITIONED;
}

int kdsm_region_tune(struct kdsm_cluster *cluster, const char *name,
		     const struct kdsm_tuning *tuning)
{
	struct kdsm_wire_tune wire = {
		.which = cpu_to_le32(tuning->which),
		.lease = cpu_to_le64(tuning->lease),
		.limit = cpu_to_le64(tuning->limit),
	};
	struct kdsm_region *region;
	unsigned long id = 0;
	int err = -ENOENT;

	if (!kdsm_tune_is_sane(&wire))
		return -EINVAL;
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

/* Whether the change is the newest one of the setting so far */
static bool kdsm_turn_is_new(u32 turn, u32 *newest)
{
	if ((s32)(turn - *newest) <= 0)
		return false;
	*newest = turn;
	return true;
}

/*
 * Each setting has a turn of its own: a late change of one must not get lost because a newer
 * change of the other came first.
 */
static void kdsm_region_tuned(struct kdsm_region *region, const struct kdsm_wire_tune *wire)
{
	u32 turn = le32_to_cpu(wire->turn), which = le32_to_cpu(wire->which);
	bool limited = false;

	mutex_lock(&region->cluster->parts_lock);
	/* The lease applies to blocks that arrive here from now on */
	if (which & KDSM_TUNE_LEASE && kdsm_turn_is_new(turn, &region->lease_turn))
		WRITE_ONCE(region->coherence->lease, le64_to_cpu(wire->lease));
	/* If this node holds more, kdsm_coherence_reclaim() evicts chunks */
	if (which & KDSM_TUNE_LIMIT && kdsm_turn_is_new(turn, &region->limit_turn)) {
		WRITE_ONCE(region->account.limit, le64_to_cpu(wire->limit));
		limited = true;
	}
	mutex_unlock(&region->cluster->parts_lock);
	if (limited)
		kdsm_coherence_reclaim(region->coherence, 0);
}

int kdsm_region_serve_tuned(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_tune *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	unsigned long id;
	int err = -ENOENT;

	if (request->from != 0 || request->length != sizeof(*wire) || !kdsm_tune_is_sane(wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	id = le32_to_cpu(wire->id);
	region = kdsm_region_next(cluster, &id);
	if (!region)
		return err;
	if (region->id == le32_to_cpu(wire->id)) {
		err = kdsm_tune_fits(wire, region->policy) ? 0 : -EOPNOTSUPP;
		if (!err)
			kdsm_region_tuned(region, wire);
	}
	kdsm_region_put(region);
	return err;
}
