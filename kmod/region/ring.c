// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of programs: their files and their memory. ring_flow.c has the operations.
 *
 * The kernel allocates the memory of a ring, queues and buffer alike, and maps it whole into the
 * program. So it stays until the last reference to the file of the ring is gone, whatever the
 * program does, and the module has an address for each byte. Registering pages of programs instead
 * would need rules for fork(), for file systems and for pages that move, and would cut operations
 * at the boundary of each page.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "arguments.h"
#include "compat.h"
#include "ring.h"

/* ---- memory ---- */

static unsigned long kdsm_ring_blocks(const struct kdsm_ring *ring)
{
	return ring->size / KDSM_RING_BLOCK;
}

static unsigned long kdsm_ring_pages(const struct kdsm_ring *ring)
{
	return ring->size >> PAGE_SHIFT;
}

/* Place queues and buffer; the last block is filled up */
static void kdsm_ring_layout(struct kdsm_ring *ring, u32 entries, u64 buffer_size)
{
	ring->entries = roundup_pow_of_two(entries);
	ring->submissions = PAGE_SIZE;
	ring->completions = ring->submissions + ring->entries * sizeof(struct kdsm_ring_entry);
	ring->buffer = PAGE_ALIGN(ring->completions +
				  ring->entries * sizeof(struct kdsm_ring_completion));
	ring->size = round_up(ring->buffer + buffer_size, KDSM_RING_BLOCK);
	ring->buffer_size = ring->size - ring->buffer;
}

static int kdsm_ring_charge(struct kdsm_ring *ring)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long pages = kdsm_ring_pages(ring);
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -EDQUOT;
	}
	mmgrab(mm);
	ring->mm = mm;
	return 0;
}

static int kdsm_ring_alloc(struct kdsm_ring *ring)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	unsigned long i, count = kdsm_ring_blocks(ring);
	int err = kdsm_ring_charge(ring);

	if (err)
		return err;
	ring->blocks = kvcalloc(count, sizeof(*ring->blocks), GFP_KERNEL_ACCOUNT);
	if (!ring->blocks)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		ring->blocks[i] = (void *)__get_free_pages(gfp, get_order(KDSM_RING_BLOCK));
		if (!ring->blocks[i])
			return -ENOMEM;
	}
	return 0;
}

static void kdsm_ring_free(struct kdsm_ring *ring)
{
	unsigned long i;

	for (i = 0; ring->blocks && i < kdsm_ring_blocks(ring); i++)
		free_pages((unsigned long)ring->blocks[i], get_order(KDSM_RING_BLOCK));
	kvfree(ring->blocks);
	if (ring->mm) {
		atomic64_sub(kdsm_ring_pages(ring), &ring->mm->pinned_vm);
		mmdrop(ring->mm);
	}
	kfree(ring);
}

/* ---- the file ---- */

static int kdsm_ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kdsm_ring *ring = file->private_data;
	unsigned long i;
	int err = 0;

	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff ||
	    vma_pages(vma) != kdsm_ring_pages(ring))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	vm_flags_clear(vma, VM_MAYEXEC);
	for (i = 0; i < kdsm_ring_blocks(ring) && !err; i++)
		err = remap_pfn_range(vma, vma->vm_start + i * KDSM_RING_BLOCK,
				      page_to_pfn(virt_to_page(ring->blocks[i])),
				      KDSM_RING_BLOCK, vma->vm_page_prot);
	return err;
}

static __poll_t kdsm_ring_poll(struct file *file, poll_table *table)
{
	struct kdsm_ring *ring = file->private_data;

	poll_wait(file, &ring->waits, table);
	return kdsm_ring_unread(ring) ? EPOLLIN | EPOLLRDNORM : 0;
}

static long kdsm_ring_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct kdsm_ring_enter args;
	u32 argsz;
	int err;

	if (command != KDSM_IOC_RING_ENTER)
		return -ENOTTY;
	err = kdsm_args_get(&args, sizeof(args), KDSM_RING_ENTER_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	err = kdsm_ring_enter(file->private_data, &args);
	if (err && err != -ETIMEDOUT && err != -EINTR)
		return err;
	return kdsm_args_put(&args, sizeof(args), user, argsz) ?: err;
}

static int kdsm_ring_release(struct inode *inode, struct file *file)
{
	struct kdsm_ring *ring = file->private_data;

	kdsm_ring_flow_drain(ring);
	fput(ring->file);
	kdsm_ring_free(ring);
	return 0;
}

static const struct file_operations kdsm_ring_operations = {
	.owner = THIS_MODULE,
	.release = kdsm_ring_release,
	.unlocked_ioctl = kdsm_ring_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kdsm_ring_mmap,
	.poll = kdsm_ring_poll,
	.llseek = noop_llseek,
};

struct file *kdsm_ring_create(struct kdsm_region *region, struct file *file,
			      struct kdsm_ring_setup *args)
{
	struct kdsm_ring *ring;
	struct file *made;
	int err;

	BUILD_BUG_ON(sizeof(struct kdsm_ring_entry) != 64);
	BUILD_BUG_ON(sizeof(struct kdsm_ring_completion) != 32);
	BUILD_BUG_ON(KDSM_RING_BLOCK > KDSM_SEGMENT_MAX);
	if (args->flags || !args->entries || args->entries > KDSM_RING_MAX_ENTRIES ||
	    args->buffer_size > KDSM_RING_MAX_BUFFER)
		return ERR_PTR(-EINVAL);
	ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	if (!ring)
		return ERR_PTR(-ENOMEM);
	ring->region = region;
	ring->may_write = file->f_mode & FMODE_WRITE;
	kdsm_ring_layout(ring, args->entries, args->buffer_size);
	kdsm_ring_flow_init(ring);
	err = kdsm_ring_alloc(ring);
	if (err)
		goto free;
	made = anon_inode_getfile("[kdsm-ring]", &kdsm_ring_operations, ring, O_RDWR);
	err = PTR_ERR_OR_ZERO(made);
	if (err)
		goto free;
	ring->file = get_file(file);
	args->entries = ring->entries;
	args->buffer_size = ring->buffer_size;
	args->size = ring->size;
	args->submissions = ring->submissions;
	args->completions = ring->completions;
	args->buffer = ring->buffer;
	args->reserved = 0;
	return made;

free:
	kdsm_ring_free(ring);
	return ERR_PTR(err);
}
