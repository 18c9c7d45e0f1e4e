// SPDX-License-Identifier: GPL-2.0
/*
 * The settings of locks: which ones a kind has, and their ranges. Node 0 keeps the list of a
 * region's locks and their settings, as it keeps that of the regions, and sends new settings to
 * all nodes.
 */
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "lock/lock.h"
#include "lock/serve.h"
#include "region/region.h"

/* Default of T_R */
#define KDSM_LOCK_T_R		64

/* ---- kinds and settings ---- */

unsigned int kdsm_lock_levels(const struct kdsm_locks *locks, u32 kind)
{
	return kind == KDSM_LOCK_DMCS ? 2 : locks->topology->levels;
}

u32 kdsm_lock_mask(const struct kdsm_locks *locks, u32 kind)
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

void kdsm_lock_settings_read(struct kdsm_lock_settings *settings,
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

void kdsm_lock_settings_write(struct kdsm_wire_lock_open *wire,
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

bool kdsm_lock_is_kind(u32 kind)
{
	return kind >= KDSM_LOCK_DMCS && kind <= KDSM_LOCK_RMA_RW;
}

/* The setting of a bit of the mask, but not of KDSM_LOCK_SET_KEEP */
static u32 *kdsm_lock_setting(struct kdsm_lock_settings *settings, unsigned int bit)
{
	switch (BIT(bit)) {
	case KDSM_LOCK_SET_T_DC:
		return &settings->t_dc;
	case KDSM_LOCK_SET_T_R:
		return &settings->t_r;
	case KDSM_LOCK_SET_T_W:
		return &settings->t_w;
	default:
		return &settings->t_l[bit - ilog2(KDSM_LOCK_SET_T_L(1))];
	}
}

bool kdsm_lock_are_sane(const struct kdsm_locks *locks, struct kdsm_lock_settings *settings,
			u32 mask)
{
	unsigned long bits = mask & ~KDSM_LOCK_SET_KEEP;
	unsigned int bit;
	u32 value, most;

	for_each_set_bit(bit, &bits, 32) {
		value = *kdsm_lock_setting(settings, bit);
		/* From one reader home to the next, in nodes */
		most = BIT(bit) == KDSM_LOCK_SET_T_DC ? locks->region->nodes :
							KDSM_LOCK_T_MAX;
		if ((value < 1 || value > most) &&
		    (value != KDSM_LOCK_T_L_AUTO || BIT(bit) < KDSM_LOCK_SET_T_L(2)))
			return false;
	}
	return true;
}

/* Change the settings that are given; all or none. */
static int kdsm_lock_settings_apply(const struct kdsm_locks *locks,
				    struct kdsm_lock_settings *settings,
				    struct kdsm_lock_settings *given, u32 mask)
{
	unsigned long bits = given->mask & ~KDSM_LOCK_SET_KEEP;
	unsigned int bit;
	u32 *setting;

	if (given->mask & ~mask || !kdsm_lock_are_sane(locks, given, given->mask))
		return -ERANGE;
	for_each_set_bit(bit, &bits, 32) {
		setting = kdsm_lock_setting(settings, bit);
		*setting = *kdsm_lock_setting(given, bit);
	}
	if (given->mask & KDSM_LOCK_SET_KEEP)
		settings->keep = given->keep;
	settings->mask = mask;
	return 0;
}

/* ---- node 0 ---- */

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

/* The number that T_L stands for */
static u32 kdsm_lock_t_l(u32 t_l)
{
	return t_l == KDSM_LOCK_T_L_AUTO ? KDSM_LOCK_T_L_MOST : t_l;
}

/* Default of T_W */
static u32 kdsm_lock_t_w(const struct kdsm_lock_settings *settings, unsigned int levels)
{
	u64 product = 1;
	unsigned int i;

	for (i = 2; i <= levels; i++)
		product = min_t(u64, product * (u64)kdsm_lock_t_l(settings->t_l[i - 1]),
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
	entry->flags = 0;
	entry->version = cpu_to_le32(1);
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

static int kdsm_registry_set(struct kdsm_locks *locks, struct kdsm_wire_lock_open *entry,
			     const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_lock_settings settings, given;
	int err;

	kdsm_lock_settings_read(&settings, entry);
	kdsm_lock_settings_read(&given, wire);
	err = kdsm_lock_settings_apply(locks, &settings, &given,
				       kdsm_lock_mask(locks, le32_to_cpu(entry->kind)));
	if (err)
		return err;
	kdsm_lock_settings_write(entry, &settings);
	entry->version = cpu_to_le32(le32_to_cpu(entry->version) + 1);
	return 0;
}

/*
 * Tell all nodes the settings. Those that do not have the lock open answer -ENOENT. Caller holds no
 * lock: a node that takes long delays only this call.
 */
static int kdsm_registry_tell(struct kdsm_region *region, const struct kdsm_wire_lock_open *wire)
{
	struct kdsm_fabric *fabric = region->cluster->fabric;
	unsigned int node;
	int err = 0, told;

	for (node = 0; node < region->nodes; node++) {
		told = kdsm_message(fabric, node, KDSM_MESSAGE_LOCK_SET, wire, sizeof(*wire), NULL,
				    NULL);
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
	region = kdsm_region_get(cluster, le32_to_cpu(wire->id), request->from);
	if (!region)
		return -ENOENT;
	mutex_lock(&region->locks->registry_mutex);
	err = kdsm_registry_serve(region->locks, wire, request->reply);
	mutex_unlock(&region->locks->registry_mutex);
	if (!err && le32_to_cpu(wire->flags) & KDSM_WIRE_LOCK_SET)
		err = kdsm_registry_tell(region, request->reply);
	kdsm_region_put(region);
	request->reply_length = sizeof(*wire);
	return err;
}

void kdsm_registry_lose(struct kdsm_locks *locks, unsigned int home)
{
	struct kdsm_wire_lock_open *entry;
	unsigned long number;

	/* No other task changes the flags of an entry. Entries stay until the region goes. */
	xa_for_each(&locks->registry, number, entry)
		if (kdsm_lock_home_of(locks->region, number) == home)
			entry->flags |= cpu_to_le32(KDSM_WIRE_LOCK_GONE);
}
