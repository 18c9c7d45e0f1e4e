// SPDX-License-Identifier: GPL-2.0
/*
 * Which locks a region has, and their settings. Node 0 keeps the list, as it does that
 * of regions, and tells all nodes of new settings. A node knows those that were opened
 * on it; as the nodes that queue for a lock have it open, so do all that they ask.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "lock/lock.h"
#include "region/region.h"

#define KDSM_LOCK_PAGES		(KDSM_LOCKS_SIZE / PAGE_SIZE)

/* Default of T_R */
#define KDSM_LOCK_T_R		64

/* The levels that a lock of that kind has. */
static unsigned int kdsm_lock_levels(const struct kdsm_locks *locks, u32 kind)
{
	return kind == KDSM_LOCK_DMCS ? 2 : locks->region->cluster->topology->levels;
}

/* The settings that a lock of that kind has */
static u32 kdsm_lock_mask(const struct kdsm_locks *locks, u32 kind)
{
	unsigned int levels = kdsm_lock_levels(locks, kind), i;
	u32 mask = KDSM_LOCK_SET_KEEP;

	if (kind != KDSM_LOCK_DMCS)
		for (i = 2; i <= levels; i++)
			mask |= KDSM_LOCK_SET_T_L(i);
	if (kind == KDSM_LOCK_RMA_RW)
		mask |= KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W;
	return mask;
}

static void kdsm_lock_free(struct kdsm_lock *lock)
{
	kdsm_lock_sign_exit(lock);
	if (lock->readers)
		kdsm_readers_destroy(lock->readers);
	kdsm_tree_destroy(&lock->tree);
	kfree(lock);
}

/* ---- with the region ---- */

/* The memory has the queues of all locks, then their counters of readers. */
static u64 kdsm_locks_counters(const struct kdsm_region *region)
{
	const struct kdsm_topology *topology = region->cluster->topology;

	return KDSM_MAX_LOCKS * (topology->levels - 1) * kdsm_queue_size(topology->nodes);
}

u64 kdsm_locks_words(const struct kdsm_region *region)
{
	return kdsm_locks_counters(region) + KDSM_MAX_LOCKS * KDSM_RW_SIZE;
}

int kdsm_locks_create(struct kdsm_region *region)
{
	struct kdsm_cluster *cluster = region->cluster;
	struct kdsm_locks *locks = kzalloc(sizeof(*locks), GFP_KERNEL);
	int err;

	if (!locks)
		return -ENOMEM;
	locks->region = region;
	mutex_init(&locks->mutex);
	mutex_init(&locks->registry_mutex);
	xa_init(&locks->open);
	xa_init_flags(&locks->registry, XA_FLAGS_ALLOC);
	xa_init_flags(&locks->threads, XA_FLAGS_ALLOC1);
	/*
	 * A place for each number and level. A node is in one element of a level, and
	 * the place is used only if that has its home for the number here.
	 */
	locks->memory = kdsm_memory_create(cluster->fabric, region->id | KDSM_LOCKS_ID,
					   kdsm_locks_words(region) +
					   kdsm_lock_sign_size(region), KDSM_MEMORY_DEVICE,
					   kdsm_quota_account(region));
	if (IS_ERR(locks->memory)) {
		err = PTR_ERR(locks->memory);
		kfree(locks);
		return err;
	}
	region->locks = locks;
	return 0;
}

void kdsm_locks_destroy(struct kdsm_region *region)
{
	struct kdsm_locks *locks = region->locks;
	struct kdsm_lock *lock;
	unsigned long i;
	void *entry;

	/*
	 * The region is in no table any more, but messages that were under way may
	 * have found it, and wake the work of a lock: see kdsm_lock_serve(). After this
	 * none has it. One without locks open has nothing that they could reach but
	 * what is freed later.
	 */
	if (!xa_empty(&locks->open))
		synchronize_rcu();
	xa_for_each(&locks->open, i, lock) {
		kdsm_lock_exit(lock);
		kdsm_lock_free(lock);
	}
	xa_destroy(&locks->open);
	xa_for_each(&locks->registry, i, entry)
		kfree(entry);
	xa_destroy(&locks->registry);
	xa_destroy(&locks->threads);
	for (i = 0; i < KDSM_LOCK_PAGES; i++)
		if (locks->pages[i])
			__free_page(locks->pages[i]);
	kdsm_memory_destroy(locks->memory);
	kfree_rcu(locks, rcu);
}

struct page *kdsm_locks_page(struct kdsm_locks *locks, pgoff_t index)
{
	struct page *page;

	if (index >= KDSM_LOCK_PAGES)
		return ERR_PTR(-EINVAL);
	mutex_lock(&locks->mutex);
	page = locks->pages[index];
	if (!page) {
		page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		locks->pages[index] = page;
	}
	mutex_unlock(&locks->mutex);
	return page ?: ERR_PTR(-ENOMEM);
}

/* ---- opening ---- */

struct kdsm_lock *kdsm_lock_find(struct kdsm_locks *locks, u32 number)
{
	return xa_load(&locks->open, number);
}

static void kdsm_lock_settings_read(struct kdsm_lock_settings *settings,
				    const struct kdsm_wire_lock_open *wire)
{
	unsigned int i;

	settings->mask = le32_to_cpu(wire->mask);
	settings->t_dc = le32_to_cpu(wire->t_dc);
	settings->t_r = le32_to_cpu(wire->t_r);
	settings->t_w = le32_to_cpu(wire->t_w);
	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		settings->t_l[i] = le32_to_cpu(wire->t_l[i]);
	settings->keep = le64_to_cpu(wire->keep);
}

static void kdsm_lock_settings_write(struct kdsm_wire_lock_open *wire,
				     const struct kdsm_lock_settings *settings)
{
	unsigned int i;

	wire->mask = cpu_to_le32(settings->mask);
	wire->t_dc = cpu_to_le32(settings->t_dc);
	wire->t_r = cpu_to_le32(settings->t_r);
	wire->t_w = cpu_to_le32(settings->t_w);
	for (i = 0; i < KDSM_LOCK_LEVELS; i++)
		wire->t_l[i] = cpu_to_le32(settings->t_l[i]);
	wire->keep = cpu_to_le64(settings->keep);
}

/* They are spread over the nodes. */
u32 kdsm_lock_base(const struct kdsm_region *region, u32 number)
{
	return hash_32(region->id, 16) + number;
}

static int kdsm_lock_make_readers(struct kdsm_lock *lock, u32 first)
{
	struct kdsm_locks *locks = lock->locks;
	struct kdsm_cluster *cluster = locks->region->cluster;
	struct kdsm_rw model = {
		.fabric = cluster->fabric,
		.memory = locks->memory,
		.region = locks->region->id,
		.number = lock->number,
		.node = cluster->node,
		.nodes = cluster->nodes,
		.word = kdsm_locks_counters(locks->region) + lock->number * KDSM_RW_SIZE,
		.first = first,
		.t_dc = lock->settings.t_dc,
		.t_r = lock->settings.t_r,
	};

	lock->readers = kdsm_readers_create(lock, &model);
	if (!IS_ERR(lock->readers))
		return 0;
	lock->readers = NULL;
	return -ENOMEM;
}

static struct kdsm_lock *kdsm_lock_make(struct kdsm_locks *locks,
					const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_cluster *cluster = locks->region->cluster;
	u32 number = le32_to_cpu(wire->number);
	u64 offset = (u64)number * sizeof(struct kdsm_lock_word);
	struct kdsm_queue *model;
	struct kdsm_lock *lock;
	struct page *page;
	int err;

	page = kdsm_locks_page(locks, offset >> PAGE_SHIFT);
	if (IS_ERR(page))
		return ERR_CAST(page);
	lock = kzalloc(sizeof(*lock), GFP_KERNEL_ACCOUNT);
	model = kzalloc(sizeof(*model), GFP_KERNEL_ACCOUNT);
	if (!lock || !model)
		goto nomem;
	lock->locks = locks;
	if (kdsm_lock_sign_init(lock))
		goto nomem;
	lock->number = number;
	lock->kind = le32_to_cpu(wire->kind);
	lock->levels = kdsm_lock_levels(locks, lock->kind);
	strscpy(lock->name, wire->name, sizeof(lock->name));
	kdsm_lock_settings_read(&lock->settings, wire);
	lock->word = page_address(page) + offset_in_page(offset);
	lock->state = (atomic64_t *)&lock->word->state;
	lock->tree.topology = cluster->topology;
	lock->tree.levels = lock->levels;
	lock->tree.t_l = lock->settings.t_l;
	kdsm_lock_init(lock);
	model->fabric = cluster->fabric;
	model->memory = locks->memory;
	model->ops = &kdsm_lock_queue_ops;
	model->owner = lock;
	model->region = locks->region->id;
	model->number = number;
	model->node = cluster->node;
	model->nodes = cluster->nodes;
	/* A node that dies may be counted as a reader. */
	model->recovers = lock->kind != KDSM_LOCK_RMA_RW;
	err = kdsm_tree_create(&lock->tree, model, kdsm_lock_base(locks->region, number),
			       (u64)number * (cluster->topology->levels - 1));
	kfree(model);
	if (!err && lock->kind == KDSM_LOCK_RMA_RW)
		err = kdsm_lock_make_readers(lock, le32_to_cpu(wire->first));
	if (!err)
		return lock;
	kdsm_lock_free(lock);
	return ERR_PTR(err);

nomem:
	kfree(lock);
	kfree(model);
	return ERR_PTR(-ENOMEM);
}

static bool kdsm_lock_in_range(u32 value)
{
	return value >= 1 && value <= KDSM_LOCK_T_MAX;
}

static bool kdsm_lock_is_t_l(u32 value)
{
	return value == KDSM_LOCK_T_L_AUTO || kdsm_lock_in_range(value);
}

/* Of one counter of readers to the next, in nodes. */
static bool kdsm_lock_is_distance(const struct kdsm_locks *locks, u32 value)
{
	return value >= 1 && value <= locks->region->cluster->nodes;
}

static bool kdsm_lock_is_kind(u32 kind)
{
	return kind >= KDSM_LOCK_DMCS && kind <= KDSM_LOCK_RMA_RW;
}

/* Node 0 says that it is so; or may be of another mind. */
static bool kdsm_lock_is_sane(const struct kdsm_locks *locks,
			      const struct kdsm_wire_lock_open *wire)
{
	u32 kind = le32_to_cpu(wire->kind);
	struct kdsm_lock_settings settings;
	unsigned int i;

	kdsm_lock_settings_read(&settings, wire);
	if (le32_to_cpu(wire->number) >= KDSM_MAX_LOCKS ||
	    !kdsm_lock_is_kind(kind) ||
	    strnlen(wire->name, sizeof(wire->name)) >= sizeof(wire->name))
		return false;
	for (i = 2; i <= kdsm_lock_levels(locks, kind); i++)
		if (!kdsm_lock_is_t_l(settings.t_l[i - 1]))
			return false;
	return kind != KDSM_LOCK_RMA_RW ||
	       (kdsm_lock_is_distance(locks, settings.t_dc) &&
		kdsm_lock_is_distance(locks, le32_to_cpu(wire->first)) &&
		kdsm_lock_in_range(settings.t_r) && kdsm_lock_in_range(settings.t_w));
}

/* It is open here from now on. */
static struct kdsm_lock *kdsm_lock_add(struct kdsm_locks *locks,
				       const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_lock *lock = kdsm_lock_find(locks, le32_to_cpu(wire->number)), *other;

	if (lock)
		return lock;
	lock = kdsm_lock_make(locks, wire);
	if (IS_ERR(lock))
		return lock;
	other = xa_cmpxchg(&locks->open, lock->number, NULL, lock, GFP_KERNEL);
	if (!other)
		return lock;
	kdsm_lock_free(lock);
	return xa_is_err(other) ? ERR_PTR(xa_err(other)) : other;
}

static int kdsm_lock_ask(struct kdsm_locks *locks, struct kdsm_wire_lock_open *wire)
{
	struct kdsm_region *region = locks->region;
	struct kdsm_wire_lock_open reply;
	unsigned int length = sizeof(reply);
	int err;

	wire->id = cpu_to_le32(region->id);
	err = kdsm_message(region->cluster->fabric, 0, KDSM_MESSAGE_LOCK_OPEN, wire,
			   sizeof(*wire), &reply, &length);
	if (err)
		return err == -EIO ? -EHOSTDOWN : err;
	if (length != sizeof(reply) || !kdsm_lock_is_sane(locks, &reply))
		return -EHOSTDOWN;
	*wire = reply;
	return 0;
}

struct kdsm_lock *kdsm_lock_open(struct kdsm_locks *locks, struct kdsm_lock_open *args)
{
	struct kdsm_wire_lock_open wire = {
		.flags = cpu_to_le32(args->flags),
		.number = cpu_to_le32(args->number),
		.kind = cpu_to_le32(args->kind),
	};
	struct kdsm_lock *lock;
	int err;

	strscpy_pad(wire.name, args->name, sizeof(wire.name));
	kdsm_lock_settings_write(&wire, &args->settings);
	err = kdsm_lock_ask(locks, &wire);
	if (err)
		return ERR_PTR(err);
	lock = kdsm_lock_add(locks, &wire);
	/* So that who reads need not do that first. If it fails it has to. */
	if (!IS_ERR(lock) && lock->readers)
		kdsm_rw_join(&lock->readers->rw);
	return lock;
}

struct kdsm_lock *kdsm_lock_open_as(struct kdsm_locks *locks,
				    const struct kdsm_wire_lock_open *wire)
{
	return kdsm_lock_is_sane(locks, wire) ? kdsm_lock_add(locks, wire) : ERR_PTR(-EINVAL);
}

int kdsm_lock_join_at(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_region *region = lock->locks->region;
	struct kdsm_wire_lock_open wire = {
		.id = cpu_to_le32(region->id),
		.number = cpu_to_le32(lock->number),
		.kind = cpu_to_le32(lock->kind),
		.first = cpu_to_le32(lock->readers->rw.first),
	};

	strscpy_pad(wire.name, lock->name, sizeof(wire.name));
	kdsm_lock_settings_write(&wire, &lock->settings);
	return kdsm_message(region->cluster->fabric, node, KDSM_MESSAGE_RW_JOIN, &wire,
			    sizeof(wire), NULL, NULL);
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

/* ---- node 0 ---- */

/* Change what is given. Nothing is changed if it cannot be. */
static int kdsm_lock_settings_apply(const struct kdsm_locks *locks,
				    struct kdsm_lock_settings *settings,
				    const struct kdsm_lock_settings *given, u32 mask)
{
	unsigned int i;

	if (given->mask & ~mask)
		return -ERANGE;
	for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
		if (given->mask & KDSM_LOCK_SET_T_L(i) && !kdsm_lock_is_t_l(given->t_l[i - 1]))
			return -ERANGE;
	if ((given->mask & KDSM_LOCK_SET_T_DC && !kdsm_lock_is_distance(locks, given->t_dc)) ||
	    (given->mask & KDSM_LOCK_SET_T_R && !kdsm_lock_in_range(given->t_r)) ||
	    (given->mask & KDSM_LOCK_SET_T_W && !kdsm_lock_in_range(given->t_w)))
		return -ERANGE;
	if (given->mask & KDSM_LOCK_SET_T_DC)
		settings->t_dc = given->t_dc;
	if (given->mask & KDSM_LOCK_SET_T_R)
		settings->t_r = given->t_r;
	if (given->mask & KDSM_LOCK_SET_T_W)
		settings->t_w = given->t_w;
	for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
		if (given->mask & KDSM_LOCK_SET_T_L(i))
			settings->t_l[i - 1] = given->t_l[i - 1];
	if (given->mask & KDSM_LOCK_SET_KEEP)
		settings->keep = given->keep;
	settings->mask = mask;
	return 0;
}

static struct kdsm_wire_lock_open *kdsm_registry_find(struct kdsm_locks *locks,
						      const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_wire_lock_open *entry;
	unsigned long i;

	if (!wire->name[0])
		return xa_load(&locks->registry, le32_to_cpu(wire->number));
	xa_for_each(&locks->registry, i, entry)
		if (!strcmp(entry->name, wire->name))
			return entry;
	return NULL;
}

/* Default of T_W */
static u32 kdsm_lock_t_w(const struct kdsm_lock_settings *settings, unsigned int levels)
{
	u64 product = 1;
	unsigned int i;

	for (i = 2; i <= levels; i++)
		product = min_t(u64, product * kdsm_tree_t_l(settings->t_l[i - 1]),
				KDSM_LOCK_T_MAX);
	return product;
}

static int kdsm_registry_make(struct kdsm_locks *locks, const struct kdsm_wire_lock_open *wire,
			      struct kdsm_wire_lock_open **result)
{
	struct kdsm_lock_settings settings = { .keep = KDSM_LOCK_KEEP_FOREVER }, given;
	bool any = wire->name[0] || le32_to_cpu(wire->number) == KDSM_LOCK_ANY;
	u32 number = le32_to_cpu(wire->number), kind = le32_to_cpu(wire->kind);
	struct kdsm_wire_lock_open *entry;
	unsigned int i;
	int err;

	if (!kdsm_lock_is_kind(kind))
		return -EINVAL;
	for (i = 2; i <= kdsm_lock_levels(locks, kind); i++)
		settings.t_l[i - 1] = kind == KDSM_LOCK_DMCS ? 1 : KDSM_LOCK_T_L_AUTO;
	if (kind == KDSM_LOCK_RMA_RW) {
		settings.t_dc = 1;
		settings.t_r = KDSM_LOCK_T_R;
	}
	kdsm_lock_settings_read(&given, wire);
	err = kdsm_lock_settings_apply(locks, &settings, &given, kdsm_lock_mask(locks, kind));
	if (err)
		return err;
	if (kind == KDSM_LOCK_RMA_RW && !(given.mask & KDSM_LOCK_SET_T_W))
		settings.t_w = kdsm_lock_t_w(&settings, kdsm_lock_levels(locks, kind));
	entry = kmemdup(wire, sizeof(*wire), GFP_KERNEL);
	if (!entry)
		return -ENOMEM;
	kdsm_lock_settings_write(entry, &settings);
	entry->first = entry->t_dc;
	entry->flags = 0;
	if (any)
		err = xa_alloc(&locks->registry, &number, entry,
			       XA_LIMIT(0, KDSM_MAX_LOCKS - 1), GFP_KERNEL);
	else
		err = xa_insert(&locks->registry, number, entry, GFP_KERNEL);
	if (err) {
		kfree(entry);
		return err == -EBUSY ? -ENOSPC : err;
	}
	entry->number = cpu_to_le32(number);
	*result = entry;
	return 0;
}

/* Tell all nodes; who does not have it open does not need it. */
static int kdsm_registry_set(struct kdsm_locks *locks, struct kdsm_wire_lock_open *entry,
			     const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_cluster *cluster = locks->region->cluster;
	struct kdsm_lock_settings settings, given;
	unsigned int node;
	int err, told;

	kdsm_lock_settings_read(&settings, entry);
	kdsm_lock_settings_read(&given, wire);
	err = kdsm_lock_settings_apply(locks, &settings, &given,
				       kdsm_lock_mask(locks, le32_to_cpu(entry->kind)));
	if (err)
		return err;
	kdsm_lock_settings_write(entry, &settings);
	/* The handler takes no lock that somebody holds who waits for this node. */
	for (node = 0; node < cluster->nodes; node++) {
		told = kdsm_message(cluster->fabric, node, KDSM_MESSAGE_LOCK_SET, entry,
				    sizeof(*entry), NULL, NULL);
		if (!kdsm_message_was_heard(told))
			err = -EHOSTDOWN;
	}
	return err;
}

static int kdsm_registry_serve(struct kdsm_locks *locks,
			       const struct kdsm_wire_lock_open *wire,
			       struct kdsm_wire_lock_open *reply)
{
	u32 flags = le32_to_cpu(wire->flags);
	struct kdsm_wire_lock_open *entry;
	int err = 0;

	lockdep_assert_held(&locks->registry_mutex);
	entry = kdsm_registry_find(locks, wire);
	if (flags & KDSM_WIRE_LOCK_SET) {
		err = entry ? kdsm_registry_set(locks, entry, wire) : -ENOENT;
	} else if (!entry) {
		err = flags & KDSM_LOCK_CREATE ? kdsm_registry_make(locks, wire, &entry) :
						 -ENOENT;
	} else if (flags & KDSM_LOCK_CREATE) {
		if (flags & KDSM_LOCK_EXCL)
			err = -EEXIST;
		else if (entry->kind != wire->kind)
			err = -EINVAL;
	}
	if (!err)
		*reply = *entry;
	return err;
}

int kdsm_lock_serve_open(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_open *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_region *region;
	u32 number;
	int err;

	BUILD_BUG_ON(sizeof(*wire) > KDSM_MESSAGE_ROOM);
	if (cluster->node != 0 || request->length != sizeof(*wire))
		return -EINVAL;
	number = le32_to_cpu(wire->number);
	if (wire->name[0] ? !kdsm_region_name_valid(wire->name) :
	    number >= KDSM_MAX_LOCKS && number != KDSM_LOCK_ANY)
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(cluster, le32_to_cpu(wire->id));
	if (!region)
		return -ENOENT;
	mutex_lock(&region->locks->registry_mutex);
	err = kdsm_registry_serve(region->locks, wire, request->reply);
	mutex_unlock(&region->locks->registry_mutex);
	kdsm_region_put(region);
	request->reply_length = sizeof(*wire);
	return err;
}

/* ---- all nodes ---- */

int kdsm_lock_serve_set(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_open *wire = request->data;
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	int err = -ENOENT;

	if (request->from != 0 || request->length != sizeof(*wire))
		return -EINVAL;
	if (!request->can_sleep)
		return -EAGAIN;
	region = kdsm_region_get(context, le32_to_cpu(wire->id));
	if (!region)
		return -ENOENT;
	lock = kdsm_lock_find(region->locks, le32_to_cpu(wire->number));
	if (!kdsm_lock_is_sane(region->locks, wire) ||
	    (lock && lock->kind != le32_to_cpu(wire->kind))) {
		err = -EINVAL;
	} else if (lock) {
		mutex_lock(&lock->mutex);
		kdsm_lock_settings_read(&lock->settings, wire);
		if (lock->readers) {
			WRITE_ONCE(lock->readers->rw.t_dc, lock->settings.t_dc);
			WRITE_ONCE(lock->readers->rw.t_r, lock->settings.t_r);
		}
		mutex_unlock(&lock->mutex);
		kdsm_lock_check(lock);
		err = 0;
	}
	kdsm_region_put(region);
	return err;
}
