/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All differences between kernels, from 5.14 on; no other file has any. Kbuild finds out what a
 * kernel has by compiling probe.c, and writes the answers into features.h in the directory of the
 * objects. Functions here have the names and the meaning of those of newer kernels.
 */
#ifndef KDSM_COMPAT_H
#define KDSM_COMPAT_H

#include <linux/bitmap.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <net/genetlink.h>

#include "features.h"

/* The keyring of a user, from which the module takes the key of a cluster */
#ifndef CONFIG_KEYS
#error "kdsm needs a kernel with CONFIG_KEYS"
#endif

/* Distributions have this option, because KVM and RDMA drivers select it. */
#ifndef CONFIG_MMU_NOTIFIER
#error "kdsm needs a kernel with CONFIG_MMU_NOTIFIER"
#endif

/* The option stands for rdma_cm, by which nodes connect. */
#ifndef CONFIG_INFINIBAND_ADDR_TRANS
#error "kdsm needs a kernel with CONFIG_INFINIBAND_ADDR_TRANS"
#endif

#ifndef KDSM_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifndef KDSM_HAVE_ZAP_SPECIAL_VMA_RANGE
static inline void zap_special_vma_range(struct vm_area_struct *vma, unsigned long address,
					 unsigned long size)
{
	zap_vma_ptes(vma, address, size);
}
#endif

/*
 * Most kernels of distributions have CONFIG_MAPPING_DIRTY_HELPERS, because drivers such as vmwgfx
 * select it. Debian's kernels for clouds have none of these drivers. Without the option, protecting
 * pages is unmapping them, and each harvest reports all pages as written: release publishes every
 * block that programs can write, not only those that they wrote. KDSM_NO_DIRTY_HELPERS is for tests
 * of that on other kernels.
 */
#if defined(CONFIG_MAPPING_DIRTY_HELPERS) && !defined(KDSM_NO_DIRTY_HELPERS)
/* Write-protect pages first..first+count-1 in all mappings */
static inline void kdsm_mapping_protect(struct address_space *mapping, pgoff_t first,
					pgoff_t count)
{
	wp_shared_mapping_range(mapping, first, count);
}

/*
 * Set the bits of those of the pages first..first+count-1 that were written since the last harvest.
 * Bit 0 is page first. Returns whether there is any.
 */
static inline bool kdsm_mapping_harvest(struct address_space *mapping, pgoff_t first,
					pgoff_t count, unsigned long *bitmap)
{
	pgoff_t start = count, end = 0;

	return clean_record_shared_mapping_range(mapping, first, count, first, bitmap, &start,
						 &end);
}
#else
static inline void kdsm_mapping_protect(struct address_space *mapping, pgoff_t first,
					pgoff_t count)
{
	unmap_mapping_pages(mapping, first, count, true);
}

static inline bool kdsm_mapping_harvest(struct address_space *mapping, pgoff_t first,
					pgoff_t count, unsigned long *bitmap)
{
	bitmap_set(bitmap, 0, count);
	return true;
}
#endif

/* The kernel's choice of an address for a mapping that may be anywhere */
static inline unsigned long kdsm_any_unmapped_area(struct file *file, unsigned long address,
						   unsigned long length, unsigned long pgoff,
						   unsigned long flags)
{
#if defined(KDSM_HAVE_CURRENT_GET_UNMAPPED_AREA)
	return mm_get_unmapped_area(file, address, length, pgoff, flags);
#elif defined(KDSM_HAVE_MM_GET_UNMAPPED_AREA)
	return mm_get_unmapped_area(current->mm, file, address, length, pgoff, flags);
#else
	return current->mm->get_unmapped_area(file, address, length, pgoff, flags);
#endif
}

#ifndef KDSM_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifndef KDSM_HAVE_LIST_COUNT_NODES
static inline size_t list_count_nodes(struct list_head *head)
{
	struct list_head *entry;
	size_t count = 0;

	list_for_each(entry, head)
		count++;
	return count;
}
#endif

#ifndef KDSM_HAVE_GET_RANDOM_U16
static inline u16 get_random_u16(void)
{
	return get_random_u32();
}
#endif

/* Attributes of the request of a dump */
static inline struct nlattr **kdsm_dump_attrs(struct netlink_callback *cb)
{
#ifdef KDSM_HAVE_GENL_INFO_DUMP
	return genl_info_dump(cb)->attrs;
#else
	return genl_dumpit_info(cb)->attrs;
#endif
}

/* In an initialiser: the first command with a strict header, in kernels that ask for it */
#ifdef KDSM_HAVE_RESV_START_OP
#define KDSM_RESV_START_OP(command) .resv_start_op = (command),
#else
#define KDSM_RESV_START_OP(command)
#endif

#ifndef KDSM_HAVE_IB_DMA_MAP_SGTABLE
#include <rdma/ib_verbs.h>

static inline int ib_dma_map_sgtable_attrs(struct ib_device *device, struct sg_table *table,
					   enum dma_data_direction direction,
					   unsigned long attributes)
{
	int mapped = ib_dma_map_sg_attrs(device, table->sgl, table->orig_nents, direction,
					 attributes);

	if (!mapped)
		return -EIO;
	table->nents = mapped;
	return 0;
}

static inline void ib_dma_unmap_sgtable_attrs(struct ib_device *device, struct sg_table *table,
					      enum dma_data_direction direction,
					      unsigned long attributes)
{
	ib_dma_unmap_sg_attrs(device, table->sgl, table->orig_nents, direction, attributes);
}
#endif

/*
 * Upper bound of the chunks in one registration on Soft-RoCE. From Linux 6.3 on Soft-RoCE
 * splits entries of 2 MiB into pages, and allocates 16 bytes a page with kcalloc(): 4 MiB for
 * 512 chunks, but 256 KiB for 32.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define KDSM_SOFTWARE_RANGE	512U
#else
#define KDSM_SOFTWARE_RANGE	32U
#endif

/*
 * A shrinker with private data. Linux 6.7 allocates shrinkers and has private_data; before, the
 * module embeds the shrinker in a structure with its data.
 */
#ifdef KDSM_HAVE_SHRINKER_ALLOC
static inline void *kdsm_shrinker_data(struct shrinker *shrinker)
{
	return shrinker->private_data;
}

static inline void kdsm_shrinker_unregister(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}
#else
struct kdsm_shrinker {
	struct shrinker shrinker;
	void *data;
};

static inline void *kdsm_shrinker_data(struct shrinker *shrinker)
{
	return container_of(shrinker, struct kdsm_shrinker, shrinker)->data;
}

static inline void kdsm_shrinker_unregister(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(container_of(shrinker, struct kdsm_shrinker, shrinker));
}
#endif

/* Register a shrinker; arguments as the fields of struct shrinker. Returns NULL without memory. */
static inline struct shrinker *
kdsm_shrinker_register(unsigned long (*count)(struct shrinker *, struct shrink_control *),
		       unsigned long (*scan)(struct shrinker *, struct shrink_control *),
		       int seeks, long batch, void *data, const char *name)
{
	struct shrinker *shrinker;

#ifdef KDSM_HAVE_SHRINKER_ALLOC
	shrinker = shrinker_alloc(0, "%s", name);
	if (!shrinker)
		return NULL;
	shrinker->private_data = data;
#else
	struct kdsm_shrinker *own = kzalloc(sizeof(*own), GFP_KERNEL);

	if (!own)
		return NULL;
	own->data = data;
	shrinker = &own->shrinker;
#endif
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = seeks;
	shrinker->batch = batch;
#if defined(KDSM_HAVE_SHRINKER_ALLOC)
	shrinker_register(shrinker);
#elif defined(KDSM_HAVE_SHRINKER_NAME)
	if (register_shrinker(shrinker, "%s", name))
		goto free;
#else
	if (register_shrinker(shrinker))
		goto free;
#endif
	return shrinker;

#ifndef KDSM_HAVE_SHRINKER_ALLOC
free:
	kfree(own);
	return NULL;
#endif
}

#endif /* KDSM_COMPAT_H */
