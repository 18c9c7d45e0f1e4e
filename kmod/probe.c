// SPDX-License-Identifier: GPL-2.0
/*
 * Questions to the headers of a kernel. This file is no part of the module. Kbuild compiles it once
 * for each name PROBE_X below, with PROBE_X defined, and defines KDSM_HAVE_X in features.h if the
 * compiler accepts it. Only compat.h uses the answers.
 *
 * Distributions copy functions from newer kernels into older ones, so the version of a kernel does
 * not tell what it has.
 */
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/shrinker.h>
#include <net/genetlink.h>
#include <rdma/ib_verbs.h>

#if defined(PROBE_HEADERS)
/* The headers above compile, so a failure of another probe means that its feature is missing. */

#elif defined(PROBE_GET_RANDOM_U16)
/* Linux 6.1 */
static u16 __maybe_unused probe(void)
{
	return get_random_u16();
}

#elif defined(PROBE_GENL_INFO_DUMP)
/* Linux 6.6 */
static struct nlattr ** __maybe_unused probe(struct netlink_callback *cb)
{
	return genl_info_dump(cb)->attrs;
}

#elif defined(PROBE_HRTIMER_SETUP)
/* Linux 6.13; Linux 6.15 has no hrtimer_init() any more. */
static void __maybe_unused probe(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

#elif defined(PROBE_IB_DMA_MAP_SGTABLE)
/* Linux 5.15 */
static int __maybe_unused probe(struct ib_device *device, struct sg_table *table)
{
	return ib_dma_map_sgtable_attrs(device, table, DMA_BIDIRECTIONAL, 0);
}

#elif defined(PROBE_LIST_COUNT_NODES)
/* Linux 6.3, and 6.1 with later fixes */
static size_t __maybe_unused probe(struct list_head *head)
{
	return list_count_nodes(head);
}

#elif defined(PROBE_MM_GET_UNMAPPED_AREA)
/* Linux 6.10; before, struct mm_struct has a pointer to the function. */
static unsigned long __maybe_unused probe(struct mm_struct *mm, struct file *file)
{
	return mm_get_unmapped_area(mm, file, 0, PAGE_SIZE, 0, 0);
}

#elif defined(PROBE_CURRENT_GET_UNMAPPED_AREA)
/* Linux 6.19: the mm is that of the caller. */
static unsigned long __maybe_unused probe(struct file *file)
{
	return mm_get_unmapped_area(file, 0, PAGE_SIZE, 0, 0);
}

#elif defined(PROBE_RESV_START_OP)
/* Linux 6.1 */
static u8 __maybe_unused probe(const struct genl_family *family)
{
	return family->resv_start_op;
}

#elif defined(PROBE_SHRINKER_ALLOC)
/* Linux 6.7 */
static struct shrinker *__maybe_unused probe(void)
{
	return shrinker_alloc(0, "name");
}

#elif defined(PROBE_SHRINKER_NAME)
/* Linux 6.0; Linux 6.7 has no register_shrinker() any more. */
static int __maybe_unused probe(struct shrinker *shrinker)
{
	return register_shrinker(shrinker, "name");
}

#elif defined(PROBE_VM_FLAGS_SET)
/* Linux 6.3 */
static void __maybe_unused probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_PFNMAP);
}

#elif defined(PROBE_ZAP_SPECIAL_VMA_RANGE)
/* Linux 7.1, in place of zap_vma_ptes(); 6.19 has only that. */
static void __maybe_unused probe(struct vm_area_struct *vma)
{
	zap_special_vma_range(vma, vma->vm_start, PAGE_SIZE);
}

#else
#error "Kbuild has to define one of the names"
#endif
