// SPDX-License-Identifier: GPL-2.0
/*
 * The locks of a region that this node has open, and their memory. Node 0 keeps the list of all
 * locks, and their settings (registry.c). The home of a lock opens it when the first node asks for
 * it, and so does a reader home.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "death.h"
#include "lock/lock.h"
#include "lock/serve.h"
#include "region/region.h"

static void kdsm_lock_free(struct kdsm_lock *lock)
{
	kdsm_lock_exit(lock);
	kdsm_lock_sign_exit(lock);
	kfree(lock);
}

/* ---- with the region ---- */

#define KDSM_WORDS_SIZE		(KDSM_MAX_LOCKS * sizeof(u64))
#define KDSM_SLOTS_SIZE		(KDSM_LOCK_SLOTS * sizeof(u64))

u64 kdsm_locks_signature(const struct kdsm_lock *lock)
{
	return KDSM_WORDS_SIZE + lock->number * (u64)KDSM_SIGNATURE_SIZE;
}

int kdsm_locks_create(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	struct kdsm_locks *locks = kzalloc(sizeof(*locks), GFP_KERNEL);
	int err = -ENOMEM;

	if (!locks)
		return err;
	locks->region = region;
	mutex_init(&locks->mutex);
	mutex_init(&locks->open_mutex);
	mutex_init(&locks->registry_mutex);
	xa_init(&locks->open);
	xa_init_flags(&locks->registry, XA_FLAGS_ALLOC);
	xa_init_flags(&locks->threads, XA_FLAGS_ALLOC1);
	locks->topology = kdsm_topology_create(cluster->table[0].location,
					       sizeof(cluster->table[0]), region->nodes);
	if (!locks->topology)
		goto free;
	locks->ranks = kdsm_ranks_create(locks->topology);
	if (!locks->ranks)
		goto free_topology;
	/* A word for each number: that of the home is used */
	locks->memory = kdsm_memory_create(cluster->fabric, region->id | KDSM_LOCKS_ID,
					   KDSM_WORDS_SIZE + kdsm_lock_sign_size(region),
					   KDSM_MEMORY_DEVICE, kdsm_quota_account(region));
	if (IS_ERR(locks->memory)) {
		err = PTR_ERR(locks->memory);
		goto free_ranks;
	}
	region->locks = locks;
	return 0;

free_ranks:
	kdsm_ranks_destroy(locks->ranks);
free_topology:
	kvfree(locks->topology);
free:
	kfree(locks);
	return err;
}

void kdsm_locks_destroy(struct kdsm_region *region)
{
	struct kdsm_locks *locks = region->locks;
	struct kdsm_lock *lock;
	unsigned long i;
	void *entry;

	/*
	 * The region is in no table any more, but handlers may have found it before. They run in
	 * RCU read sections; see kdsm_lock_serve().
	 */
	if (!xa_empty(&locks->open))
		synchronize_rcu();
	xa_for_each(&locks->open, i, lock)
		kdsm_lock_free(lock);
	xa_destroy(&locks->open);
	xa_for_each(&locks->registry, i, entry)
		kfree(entry);
	xa_destroy(&locks->registry);
	xa_destroy(&locks->threads);
	for (i = 0; i < KDSM_LOCK_PAGES; i++)
		if (locks->pages[i])
			__free_page(locks->pages[i]);
	if (locks->slots)
		free_pages_exact(locks->slots, KDSM_SLOTS_SIZE);
	kdsm_memory_destroy(locks->memory);
	kdsm_ranks_destroy(locks->ranks);
	kvfree(locks->topology);
	kfree_rcu(locks, rcu);
}

/* ---- what programs map ---- */

static struct page *kdsm_locks_word_page(struct kdsm_locks *locks, pgoff_t index)
{
	struct page *page;

	mutex_lock(&locks->mutex);
	page = locks->pages[index];
	if (!page) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		locks->pages[index] = page;
	}
	mutex_unlock(&locks->mutex);
	return page ?: ERR_PTR(-ENOMEM);
}

atomic64_t *kdsm_locks_slots(struct kdsm_locks *locks)
{
	atomic64_t *slots;

	mutex_lock(&locks->mutex);
	if (!locks->slots)
		locks->slots = alloc_pages_exact(KDSM_SLOTS_SIZE, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	slots = locks->slots;
	mutex_unlock(&locks->mutex);
	return slots;
}

struct page *kdsm_locks_page(struct kdsm_locks *locks, pgoff_t index)
{
	void *slots;

	if (index < KDSM_LOCK_PAGES)
		return kdsm_locks_word_page(locks, index);
	if (index >= KDSM_LOCKS_SIZE / PAGE_SIZE)
		return ERR_PTR(-EINVAL);
	slots = kdsm_locks_slots(locks);
	return slots ? virt_to_page(slots + (index - KDSM_LOCK_PAGES) * PAGE_SIZE) :
		       ERR_PTR(-ENOMEM);
}

/* ---- opening ---- */

struct kdsm_lock *kdsm_lock_find(struct kdsm_locks *locks, u32 number)
{
	return xa_load(&locks->open, number);
}

/* Homes are spread over the nodes. */
unsigned int kdsm_lock_home_of(const struct kdsm_region *region, u32 number)
{
	return (hash_32(region->id, 16) + number) % region->nodes;
}

void kdsm_lock_apply(struct kdsm_lock *lock, const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_thresholds *thresholds = lock->home ? &lock->home->thresholds : NULL;
	struct kdsm_lock_settings settings;
	unsigned int i;

	kdsm_lock_settings_read(&settings, wire);
	mutex_lock(&lock->mutex);
	if ((s32)(le32_to_cpu(wire->version) - lock->version) > 0) {
		lock->version = le32_to_cpu(wire->version);
		lock->settings = settings;
		for (i = 0; thresholds && i < KDSM_LOCK_LEVELS; i++)
			WRITE_ONCE(thresholds->t_l[i], settings.t_l[i]);
		if (thresholds) {
			WRITE_ONCE(thresholds->t_r, settings.t_r);
			WRITE_ONCE(thresholds->t_w, settings.t_w);
		}
	}
	mutex_unlock(&lock->mutex);
}

static struct kdsm_lock *kdsm_lock_make(struct kdsm_locks *locks,
					const struct kdsm_wire_lock_open *wire)
{
	u32 number = le32_to_cpu(wire->number);
	u64 offset = number * sizeof(struct kdsm_lock_word);
	struct kdsm_lock *lock;
	atomic64_t *slots = kdsm_locks_slots(locks);
	struct page *page;
	int err;

	page = kdsm_locks_word_page(locks, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return ERR_CAST(page);
	if (!slots)
		return ERR_PTR(-ENOMEM);
	lock = kzalloc(sizeof(*lock), GFP_KERNEL_ACCOUNT);
	if (!lock)
		return ERR_PTR(-ENOMEM);
	lock->locks = locks;
	lock->number = number;
	lock->kind = le32_to_cpu(wire->kind);
	lock->levels = kdsm_lock_levels(locks, lock->kind);
	strscpy(lock->name, wire->name, sizeof(lock->name));
	lock->mapped = page_address(page) + offset_in_page(offset);
	lock->word.state = (atomic64_t *)&lock->mapped->state;
	lock->word.bias = &lock->mapped->bias;
	lock->word.slots = slots;
	err = kdsm_lock_init(lock);
	err = err ?: kdsm_lock_sign_init(lock);
	if (err) {
		kdsm_lock_free(lock);
		return ERR_PTR(err);
	}
	kdsm_lock_apply(lock, wire);
	/* The home has come up again since the lock was made: it knows nothing of the lock. */
	if (le32_to_cpu(wire->flags) & KDSM_WIRE_LOCK_GONE)
		lock->turn.state = KDSM_TURN_LOST;
	return lock;
}

/* The lock is open here from now on. */
static struct kdsm_lock *kdsm_lock_add(struct kdsm_locks *locks,
				       const struct kdsm_wire_lock_open *wire)
{
	u32 number = le32_to_cpu(wire->number);
	struct kdsm_lock *lock;
	int err;

	lockdep_assert_held(&locks->open_mutex);
	lock = kdsm_lock_find(locks, number);
	if (lock) {
		kdsm_lock_apply(lock, wire);
		return lock;
	}
	lock = kdsm_lock_make(locks, wire);
	if (IS_ERR(lock))
		return lock;
	err = xa_insert(&locks->open, number, lock, GFP_KERNEL);
	if (!err)
		return lock;
	kdsm_lock_free(lock);
	return ERR_PTR(err);
}

/* Ask node 0, which may answer by the present settings. */
static int kdsm_lock_ask(struct kdsm_locks *locks, struct kdsm_wire_lock_open *wire)
{
	struct kdsm_region *region = locks->region;
	struct kdsm_lock_settings settings;
	struct kdsm_wire_lock_open reply;
	unsigned int length = sizeof(reply);
	u32 kind;
	int err;

	wire->id = cpu_to_le32(region->id);
	err = kdsm_message(region->cluster->fabric, 0, KDSM_MESSAGE_LOCK_OPEN, wire,
			   sizeof(*wire), &reply, &length);
	if (err)
		return err == -EIO ? -EHOSTDOWN : err;
	kdsm_lock_settings_read(&settings, &reply);
	kind = le32_to_cpu(reply.kind);
	if (length != sizeof(reply) || le32_to_cpu(reply.number) >= KDSM_MAX_LOCKS ||
	    strnlen(reply.name, sizeof(reply.name)) >= sizeof(reply.name) ||
	    !kdsm_lock_is_kind(kind) ||
	    !kdsm_lock_are_sane(locks, &settings, kdsm_lock_mask(locks, kind)))
		return -EHOSTDOWN;
	*wire = reply;
	return 0;
}

void kdsm_lock_meet(const struct kdsm_lock *lock)
{
	const struct kdsm_wire_about wire = {
		.id = cpu_to_le32(lock->turn.part.region), .number = cpu_to_le16(lock->number),
	};

	if (!lock->home)
		kdsm_message(lock->turn.part.fabric, lock->turn.part.home, KDSM_MESSAGE_LOCK_MEET,
			     &wire, sizeof(wire), NULL, NULL);
}

struct kdsm_lock *kdsm_lock_open(struct kdsm_locks *locks, struct kdsm_lock_open *args)
{
	struct kdsm_wire_lock_open wire = {
		.flags = cpu_to_le32(args->flags),
		.number = cpu_to_le32(args->number),
		.kind = cpu_to_le32(args->kind),
	};
	struct kdsm_lock *lock = NULL;
	u32 sets;
	int err;

	strscpy_pad(wire.name, args->name, sizeof(wire.name));
	kdsm_lock_settings_write(&wire, &args->settings);
	/* Settings that came after the answer were for a lock that was not open here. */
	do {
		sets = READ_ONCE(locks->sets);
		err = kdsm_lock_ask(locks, &wire);
		if (err)
			return ERR_PTR(err);
		mutex_lock(&locks->open_mutex);
		lock = kdsm_lock_add(locks, &wire);
		sets -= locks->sets;
		mutex_unlock(&locks->open_mutex);
	} while (!IS_ERR(lock) && sets);
	return lock;
}

int kdsm_lock_set(struct kdsm_lock *lock, const struct kdsm_lock_settings *settings)
{
	struct kdsm_wire_lock_open wire = {
		.flags = cpu_to_le32(KDSM_WIRE_LOCK_SET),
		.number = cpu_to_le32(lock->number),
	};

	kdsm_lock_settings_write(&wire, settings);
	return kdsm_lock_ask(lock->locks, &wire);
}

/* ---- new settings from node 0 ---- */

int kdsm_lock_serve_set(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_open *wire = request->data;
	struct kdsm_lock_settings settings;
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	int err = 0;

	if (request->from != 0 || request->length != sizeof(*wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(context, le32_to_cpu(wire->id), request->from);
	if (!region)
		return -ENOENT;
	kdsm_lock_settings_read(&settings, wire);
	mutex_lock(&region->locks->open_mutex);
	WRITE_ONCE(region->locks->sets, region->locks->sets + 1);
	lock = kdsm_lock_find(region->locks, le32_to_cpu(wire->number));
	mutex_unlock(&region->locks->open_mutex);
	if (!lock) {
		err = -ENOENT;
	} else if (lock->kind != le32_to_cpu(wire->kind) ||
		   !kdsm_lock_are_sane(region->locks, &settings,
				       kdsm_lock_mask(region->locks, lock->kind))) {
		err = -EINVAL;
	} else {
		kdsm_lock_apply(lock, wire);
		kdsm_lock_check(lock);
	}
	kdsm_region_put(region);
	return err;
}
