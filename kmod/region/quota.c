// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory of this node regions may hold: all of them, those of one user, and those of
 * one user that are kept without a program (KDSM_REGION_KEEP).
 *
 * The memory cgroup of the task that touches a chunk first is charged for the chunk. But a peer
 * touches chunks as well, and there is no task then, and a region can outlive all tasks. So each
 * chunk is also charged to the account of the user who created the region, on each node. The
 * limits are module parameters, in percent of the RAM.
 *
 * A region has to fit in with its whole share when it is created. Coherent regions may grow
 * beyond their shares, so each chunk is charged, and refused if an account would exceed its limit.
 * Only the spare chunks of an eviction may exceed the limits (kdsm_memory_spare()).
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "internal.h"

/*
 * No limit by default: kdsm_memory_available() leaves the node what it needs, and a program that
 * has a cluster for itself should be able to use it.
 */
static unsigned int kdsm_memory_percent = 100;
module_param_named(memory_percent, kdsm_memory_percent, uint, 0644);
MODULE_PARM_DESC(memory_percent, "upper bound of the memory of all regions, in percent of RAM");

/* Leaves something for a second user */
static unsigned int kdsm_user_percent = 80;
module_param_named(user_percent, kdsm_user_percent, uint, 0644);
MODULE_PARM_DESC(user_percent, "upper bound of the memory of one user's regions, in percent of RAM");

/* Kept regions hold memory when no program uses it */
static unsigned int kdsm_keep_percent = 50;
module_param_named(keep_percent, kdsm_keep_percent, uint, 0644);
MODULE_PARM_DESC(keep_percent, "upper bound of the memory of one user's kept regions, in percent of RAM");

/* The accounts of a user on this node; cluster->parts_lock protects references */
struct kdsm_user {
	struct rcu_head rcu;
	u32 uid;
	unsigned int references;	/* regions of the user on this node */
	struct kdsm_account all;
	struct kdsm_account kept;	/* below all */
};

void kdsm_quota_init(struct kdsm_cluster *cluster)
{
	xa_init(&cluster->users);
	cluster->account.percent = &kdsm_memory_percent;
}

void kdsm_quota_exit(struct kdsm_cluster *cluster)
{
	WARN_ON(!xa_empty(&cluster->users));
	xa_destroy(&cluster->users);
}

static bool kdsm_region_is_kept(const struct kdsm_region *region)
{
	return region->flags & KDSM_REGION_KEEP;
}

/* The bytes of the region that eviction can free at most */
static u64 kdsm_region_evictable(const struct kdsm_region *region)
{
	return region->coherence ? kdsm_coherence_evictable(region->coherence) : 0;
}

u64 kdsm_region_held(const struct kdsm_region *region)
{
	return kdsm_region_evictable(region) ?: kdsm_memory_resident(region->memory);
}

u64 kdsm_region_claim(const struct kdsm_region *region)
{
	if (kdsm_region_evictable(region))
		return region->share;
	return max(region->share, kdsm_memory_resident(region->memory));
}

/* Whether the shares of all regions that the account is for leave room for one more */
static bool kdsm_account_fits(const struct kdsm_region *added, const struct kdsm_account *account,
			      bool user, bool kept)
{
	struct kdsm_cluster *cluster = added->cluster;
	u64 claims = added->share, limit = kdsm_account_limit(account);
	struct kdsm_region *region;
	unsigned long id = 0;

	while (limit != U64_MAX && (region = kdsm_region_next(cluster, &id))) {
		if ((!user || region->uid == added->uid) && (!kept || kdsm_region_is_kept(region)))
			claims += kdsm_region_claim(region);
		kdsm_region_put(region);
		id++;
	}
	return claims <= limit;
}

int kdsm_quota_admit(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	struct kdsm_user *user;
	int err = 0;

	lockdep_assert_held(&cluster->parts_lock);
	user = xa_load(&cluster->users, region->uid);
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL);
		if (!user)
			return -ENOMEM;
		user->uid = region->uid;
		user->all.parent = &cluster->account;
		user->kept.parent = &user->all;
		/* The administrator is bound by memory_percent only */
		if (user->uid) {
			user->all.percent = &kdsm_user_percent;
			user->kept.percent = &kdsm_keep_percent;
		}
		err = xa_err(xa_store(&cluster->users, user->uid, user, GFP_KERNEL));
		if (err) {
			kfree(user);
			return err;
		}
	}
	user->references++;
	region->user = user;
	if (!kdsm_account_fits(region, &cluster->account, false, false))
		err = -ENOMEM;
	else if (!kdsm_account_fits(region, &user->all, true, false) ||
		 (kdsm_region_is_kept(region) &&
		  !kdsm_account_fits(region, &user->kept, true, true)))
		err = -EDQUOT;
	if (err)
		kdsm_quota_leave(region);
	return err;
}

static bool kdsm_account_has_room(const struct kdsm_account *account, u64 bytes)
{
	u64 limit = kdsm_account_limit(account), used = atomic64_read(&account->bytes);

	return used <= limit && bytes <= limit - used;
}

bool kdsm_quota_has_room(const struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	const struct kdsm_user *user;
	bool room;

	rcu_read_lock();
	user = xa_load(&cluster->users, region->uid);
	room = kdsm_account_has_room(&cluster->account, region->share) &&
	       (!user || kdsm_account_has_room(&user->all, region->share)) &&
	       (!user || !kdsm_region_is_kept(region) ||
		kdsm_account_has_room(&user->kept, region->share));
	rcu_read_unlock();
	return room;
}

/* Whether regions of all users share the exhausted memory, and not only those of one user */
static bool kdsm_quota_is_common(const struct kdsm_cluster *cluster)
{
	return kdsm_memory_available() < KDSM_CHUNK_SIZE ||
	       !kdsm_account_has_room(&cluster->account, KDSM_CHUNK_SIZE);
}

/* How much more than the lacking region another one must hold before it evicts a chunk, in bytes */
#define KDSM_QUOTA_MORE		(2 * KDSM_CHUNK_SIZE)

void kdsm_quota_share(struct kdsm_region *lacking)
{
	struct kdsm_cluster *cluster = lacking->cluster;
	u64 bytes, most = kdsm_coherence_evictable(lacking->coherence) + KDSM_QUOTA_MORE;
	struct kdsm_region *region, *largest = NULL;
	bool is_common = kdsm_quota_is_common(cluster);
	unsigned long id;

	/* If the region is at its own limit, eviction of another region would not help */
	if (!kdsm_account_has_room(&lacking->account, KDSM_CHUNK_SIZE))
		return;
	for (id = 0; (region = kdsm_region_next(cluster, &id)); id++) {
		bytes = is_common || region->uid == lacking->uid ?
			kdsm_region_evictable(region) : 0;
		if (bytes > most) {
			most = bytes;
			swap(largest, region);
		}
		if (region)
			kdsm_region_put(region);
	}
	if (!largest)
		return;
	kdsm_coherence_reclaim(largest->coherence, 1);
	kdsm_region_put(largest);
}

struct kdsm_account *kdsm_quota_account(const struct kdsm_region *region)
{
	return kdsm_region_is_kept(region) ? &region->user->kept : &region->user->all;
}

void kdsm_quota_leave(struct kdsm_region *region)
{
	struct kdsm_user *user = region->user;

	lockdep_assert_held(&region->cluster->parts_lock);
	if (--user->references)
		return;
	xa_erase(&region->cluster->users, user->uid);
	kfree_rcu(user, rcu);
}
