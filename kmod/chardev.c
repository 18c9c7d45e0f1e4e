// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/kdsm. A program opens the file and binds it to a region once; then the file takes
 * operations and mappings of that region. This file checks the form of arguments; the layers
 * below check their meaning.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "arguments.h"
#include "chardev.h"
#include "lock/lock.h"
#include "region/region.h"

struct kdsm_file {
	struct mutex lock;		/* serialises binding */
	struct kdsm_region *region;	/* set once; read without lock */
	struct kdsm_submissions submissions;
	struct kdsm_lock_file locks;
};

static int kdsm_file_open(struct inode *inode, struct file *file)
{
	struct kdsm_file *kfile = kzalloc(sizeof(*kfile), GFP_KERNEL_ACCOUNT);

	if (!kfile)
		return -ENOMEM;
	mutex_init(&kfile->lock);
	file->private_data = kfile;
	return 0;
}

/* The region that a file is bound to, valid while the file is open */
static struct kdsm_region *kdsm_file_region(struct file *file)
{
	struct kdsm_file *kfile = file->private_data;

	/* Pairs with smp_store_release() in kdsm_file_bind(). */
	return smp_load_acquire(&kfile->region);
}

static int kdsm_file_release(struct inode *inode, struct file *file)
{
	struct kdsm_file *kfile = file->private_data;
	struct kdsm_region *region = kfile->region;

	if (region) {
		struct kdsm_cluster *cluster = region->cluster;

		kdsm_submissions_drain(&kfile->submissions);
		kdsm_lock_file_release(&kfile->locks);
		kdsm_region_close(region);
		kdsm_cluster_unbind(cluster);
	}
	kfree(kfile);
	return 0;
}

static int kdsm_ioctl_info(void __user *user)
{
	struct kdsm_cluster *cluster;
	struct kdsm_info info = {};
	u32 argsz;
	int err;

	err = kdsm_args_get(&info, sizeof(info), KDSM_INFO_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (info.flags)
		return -EINVAL;
	cluster = kdsm_cluster_get();
	if (!cluster)
		return -ENETDOWN;
	info.abi_version = KDSM_ABI_VERSION;
	info.domain = kdsm_fabric_domain(cluster->fabric);
	info.node = cluster->node;
	info.nodes = READ_ONCE(cluster->nodes);
	export_uuid(info.uuid, &cluster->uuid);
	strscpy_pad(info.cluster, cluster->name, sizeof(info.cluster));
	kdsm_cluster_put(cluster);
	return kdsm_args_put(&info, sizeof(info), user, argsz);
}

static int kdsm_ioctl_location(void __user *user)
{
	struct kdsm_location args = {};
	struct kdsm_cluster *cluster;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOCATION_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	cluster = kdsm_cluster_get();
	if (!cluster)
		return -ENETDOWN;
	if (args.node < READ_ONCE(cluster->nodes))
		strscpy_pad(args.location, cluster->table[args.node].location,
			    sizeof(args.location));
	else
		err = -EINVAL;
	kdsm_cluster_put(cluster);
	return err ? err : kdsm_args_put(&args, sizeof(args), user, argsz);
}

/* Copy args out before the file counts as bound: after -EFAULT the program may retry */
static int kdsm_file_bind(struct file *file, struct kdsm_region_open *args, void __user *user,
			  u32 argsz)
{
	struct kdsm_file *kfile = file->private_data;
	bool write = file->f_mode & FMODE_WRITE;
	struct kdsm_cluster *cluster;
	struct kdsm_region *region;
	int err;

	lockdep_assert_held(&kfile->lock);
	if (kfile->region)
		return -EBUSY;
	cluster = kdsm_cluster_bind();
	if (!cluster)
		return -ENETDOWN;
	region = kdsm_region_open(cluster, args, write);
	if (IS_ERR(region)) {
		err = PTR_ERR(region);
		goto unbind;
	}
	err = kdsm_args_put(args, sizeof(*args), user, argsz);
	if (err)
		goto close;
	kdsm_submissions_init(&kfile->submissions, region, write);
	kdsm_lock_file_init(&kfile->locks, region, write);
	if (region->inode)
		file->f_mapping = region->inode->i_mapping;
	/* Pairs with smp_load_acquire() in kdsm_file_region(). */
	smp_store_release(&kfile->region, region);
	return 0;

close:
	kdsm_region_close(region);
unbind:
	kdsm_cluster_unbind(cluster);
	return err;
}

/*
 * Check the segments. If the program passes none, fill in one with block_size, so that node 0 sees
 * only one form. Node 0 compares their number with the policy.
 */
static int kdsm_args_segments(struct kdsm_region_open *args)
{
	if (!args->segments) {
		args->segments = 1;
		args->segment[0] = (struct kdsm_region_segment) {
			.block_size = args->block_size ?: 4096,
		};
	}
	if (args->block_size && args->block_size != args->segment[0].block_size)
		return -EINVAL;
	return kdsm_segments_sane(args->segment, args->segments, args->size) ? 0 : -EINVAL;
}

static int kdsm_ioctl_region_open(struct file *file, void __user *user)
{
	const u32 flags = KDSM_REGION_CREATE | KDSM_REGION_EXCL | KDSM_REGION_KEEP |
			  KDSM_REGION_CONTIGUOUS | KDSM_REGION_AT;
	struct kdsm_file *kfile = file->private_data;
	struct kdsm_region_open args;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_REGION_OPEN_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags & ~flags || !kdsm_region_name_valid(args.name))
		return -EINVAL;
	if (args.flags & ~KDSM_REGION_CREATE && !(args.flags & KDSM_REGION_CREATE))
		return -EINVAL;
	/* A call that cannot create the region ignores the segments */
	if (!(args.flags & KDSM_REGION_CREATE))
		args.segments = 0;
	else
		err = kdsm_args_segments(&args);
	if (err)
		return err;
	mutex_lock(&kfile->lock);
	err = kdsm_file_bind(file, &args, user, argsz);
	mutex_unlock(&kfile->lock);
	return err;
}

static int kdsm_ioctl_region_destroy(void __user *user)
{
	struct kdsm_region_destroy args;
	struct kdsm_cluster *cluster;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_REGION_DESTROY_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || !kdsm_region_name_valid(args.name))
		return -EINVAL;
	cluster = kdsm_cluster_get();
	if (!cluster)
		return -ENETDOWN;
	err = kdsm_region_destroy(cluster, args.name);
	kdsm_cluster_put(cluster);
	return err;
}

static int kdsm_ioctl_settle(void __user *user)
{
	DECLARE_BITMAP(nodes, KDSM_MAX_NODES);
	struct kdsm_cluster *cluster;
	struct kdsm_settle args;
	unsigned int i;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_SETTLE_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	cluster = kdsm_cluster_get();
	if (!cluster)
		return -ENETDOWN;
	/* bitmap_from_arr64() is new in Linux 6.0 */
	for (i = 0; i < ARRAY_SIZE(args.nodes); i++)
		bitmap_from_u64(nodes + i * BITS_TO_LONGS(64), args.nodes[i]);
	err = kdsm_fabric_settle(cluster->fabric, nodes, &args.messages);
	kdsm_cluster_put(cluster);
	return err ?: kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_submit(struct kdsm_file *kfile, void __user *user)
{
	struct kdsm_submit args;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_SUBMIT_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	args.ticket = 0;
	err = kdsm_pgas_submit(&kfile->submissions, &args);
	if (err || args.flags & KDSM_SUBMIT_WAIT)
		return err;
	return kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_complete(struct kdsm_file *kfile, void __user *user)
{
	struct kdsm_complete args;
	u32 argsz;

	return kdsm_args_get(&args, sizeof(args), KDSM_COMPLETE_SIZE_VER0, user, &argsz) ?:
	       kdsm_pgas_complete(&kfile->submissions, &args);
}

/* The program gets the descriptor only when the copy of args has told it the number */
static int kdsm_ioctl_ring_setup(struct file *file, struct kdsm_region *region, void __user *user)
{
	struct kdsm_ring_setup args;
	struct file *ring;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_RING_SETUP_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	args.file = get_unused_fd_flags(O_CLOEXEC);
	if (args.file < 0)
		return args.file;
	ring = kdsm_ring_create(region, file, &args);
	err = PTR_ERR_OR_ZERO(ring);
	if (err)
		goto put_fd;
	err = kdsm_args_put(&args, sizeof(args), user, argsz);
	if (err)
		goto put_ring;
	fd_install(args.file, ring);
	return 0;

put_ring:
	fput(ring);
put_fd:
	put_unused_fd(args.file);
	return err;
}

static int kdsm_ioctl_wait(struct kdsm_file *kfile, void __user *user)
{
	struct kdsm_wait args;
	u32 argsz;

	return kdsm_args_get(&args, sizeof(args), KDSM_WAIT_SIZE_VER0, user, &argsz) ?:
	       kdsm_pgas_wait(kfile->region, &args);
}

static int kdsm_ioctl_wake(struct kdsm_file *kfile, void __user *user)
{
	struct kdsm_wake args;
	u32 argsz;

	return kdsm_args_get(&args, sizeof(args), KDSM_WAKE_SIZE_VER0, user, &argsz) ?:
	       kdsm_pgas_wake(kfile->region, &args);
}

static int kdsm_ioctl_fence(struct file *file, struct kdsm_region *region, void __user *user,
			    bool release)
{
	struct kdsm_coherence *coherence = region->coherence;
	struct kdsm_signature *signature;
	struct kdsm_fence args;
	void __user *place;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_FENCE_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || (!release && !args.signature))
		return -EINVAL;
	if (!coherence)
		return -EOPNOTSUPP;
	place = u64_to_user_ptr(args.signature);
	signature = kzalloc(sizeof(*signature), GFP_KERNEL);
	if (!signature)
		return -ENOMEM;
	if (release) {
		err = kdsm_coherence_release(coherence, signature);
		if (!err && args.signature &&
		    copy_to_user(place, signature, KDSM_SIGNATURE_BYTES(signature->count)))
			err = -EFAULT;
		goto free;
	}
	err = -EFAULT;
	if (copy_from_user(signature, place, KDSM_SIGNATURE_BYTES(0)))
		goto free;
	err = -EINVAL;
	if (signature->count > KDSM_NOTICES_MAX)
		goto free;
	err = -EFAULT;
	if (copy_from_user(signature->notices, place + KDSM_SIGNATURE_BYTES(0),
			   signature->count * sizeof(signature->notices[0])))
		goto free;
	err = -EINVAL;
	if (kdsm_signature_sane(signature, coherence->nodes, coherence->blocks))
		err = kdsm_region_acquire(region, signature, file->f_mode & FMODE_WRITE);
free:
	kfree(signature);
	return err;
}

/* The blocks that overlap a range that a program chose. -EINVAL, -EOPNOTSUPP, -ERANGE. */
static int kdsm_range_blocks(const struct kdsm_region *region, u64 offset, u64 length,
			     u64 *first, u64 *last)
{
	if (!length)
		return -EINVAL;
	if (!region->coherence)
		return -EOPNOTSUPP;
	if (check_add_overflow(offset, length - 1, last) || *last >= kdsm_region_size(region))
		return -ERANGE;
	*first = kdsm_block_at(region->coherence, offset);
	*last = kdsm_block_at(region->coherence, *last);
	return 0;
}

static int kdsm_ioctl_advise(struct file *file, struct kdsm_region *region, void __user *user)
{
	struct kdsm_advise args;
	u64 first, last;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_ADVISE_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved || args.advice < KDSM_ADVICE_PREFETCH ||
	    args.advice > KDSM_ADVICE_REFRESH)
		return -EINVAL;
	err = kdsm_range_blocks(region, args.offset, args.length, &first, &last);
	if (err)
		return err;
	if (args.advice == KDSM_ADVICE_OWN && !(file->f_mode & FMODE_WRITE))
		return -EACCES;
	err = kdsm_coherence_advise(region->coherence, args.advice, first, last);
	return err == -EINTR ? -ERESTARTSYS : err;
}

/*
 * Room for an array that a call returns, of *count elements, which a program chose, and at most
 * max. NULL: no memory.
 */
static void *kdsm_list_alloc(u32 *count, u32 max, size_t size)
{
	*count = min(*count, max);
	return kvmalloc_array(*count, size, GFP_KERNEL);
}

/* Copy the array to its user address, and free it. 0 or -EFAULT. */
static int kdsm_list_put(u64 address, void *list, u32 count, size_t size)
{
	int err = copy_to_user(u64_to_user_ptr(address), list, count * size) ? -EFAULT : 0;

	kvfree(list);
	return err;
}

/* A file that is bound may read the region, and so its races */
static int kdsm_ioctl_races(struct kdsm_region *region, void __user *user)
{
	struct kdsm_races args;
	struct kdsm_race *list;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_RACES_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	if (!region->coherence)
		return -EOPNOTSUPP;
	list = kdsm_list_alloc(&args.count, KDSM_RACES_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	args.count = kdsm_coherence_races(region->coherence, list, args.count, &args.next,
					  &args.lost);
	return kdsm_list_put(args.races, list, args.count, sizeof(*list)) ?:
	       kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_lost(struct kdsm_region *region, void __user *user)
{
	struct kdsm_lost args;
	u64 *list;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_LOST_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	if (!region->coherence)
		return -EOPNOTSUPP;
	list = kdsm_list_alloc(&args.count, KDSM_LOST_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	args.count = kdsm_coherence_lost(region->coherence, list, args.count, &args.next);
	return kdsm_list_put(args.offsets, list, args.count, sizeof(*list)) ?:
	       kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_discard(struct file *file, struct kdsm_region *region, void __user *user)
{
	struct kdsm_discard args;
	u64 first, last;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_DISCARD_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags)
		return -EINVAL;
	err = kdsm_range_blocks(region, args.offset, args.length, &first, &last);
	if (err)
		return err;
	if (!(file->f_mode & FMODE_WRITE))
		return -EACCES;
	err = kdsm_coherence_discard(region->coherence, first, last);
	return err == -EINTR ? -ERESTARTSYS : err;
}

static int kdsm_ioctl_atomic(struct file *file, struct kdsm_region *region, void __user *user)
{
	struct kdsm_atomic args;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_ATOMIC_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags & ~(KDSM_ATOMIC_ACQUIRE | KDSM_ATOMIC_RELEASE) ||
	    args.opcode < KDSM_ATOMIC_LOAD || args.opcode > KDSM_ATOMIC_CAS ||
	    (args.size != 4 && args.size != 8) || args.offset % args.size)
		return -EINVAL;
	if (!region->coherence)
		return -EOPNOTSUPP;
	if (!(file->f_mode & FMODE_WRITE))
		return -EACCES;
	return kdsm_region_atomic(region, &args) ?: kdsm_args_put(&args, sizeof(args), user, argsz);
}

static int kdsm_ioctl_home(struct kdsm_region *region, void __user *user)
{
	struct kdsm_home args;
	u32 argsz;
	int err;

	err = kdsm_args_get(&args, sizeof(args), KDSM_HOME_SIZE_VER0, user, &argsz);
	if (err)
		return err;
	if (args.flags || args.reserved)
		return -EINVAL;
	if (!region->coherence)
		return -EOPNOTSUPP;
	if (args.offset >= kdsm_region_size(region))
		return -ERANGE;
	args.node = kdsm_block_first_owner(region->coherence,
					   kdsm_block_at(region->coherence, args.offset));
	return kdsm_args_put(&args, sizeof(args), user, argsz);
}

static long kdsm_file_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	struct kdsm_file *kfile = file->private_data;
	void __user *user = (void __user *)arg;

	switch (command) {
	case KDSM_IOC_INFO:
		return kdsm_ioctl_info(user);
	case KDSM_IOC_LOCATION:
		return kdsm_ioctl_location(user);
	case KDSM_IOC_SETTLE:
		return kdsm_ioctl_settle(user);
	case KDSM_IOC_REGION_OPEN:
		return kdsm_ioctl_region_open(file, user);
	case KDSM_IOC_REGION_DESTROY:
		return kdsm_ioctl_region_destroy(user);
	case KDSM_IOC_SUBMIT:
	case KDSM_IOC_COMPLETE:
	case KDSM_IOC_WAIT:
	case KDSM_IOC_WAKE:
	case KDSM_IOC_RELEASE:
	case KDSM_IOC_ACQUIRE:
	case KDSM_IOC_ADVISE:
	case KDSM_IOC_LOCK_OPEN:
	case KDSM_IOC_LOCK_THREAD:
	case KDSM_IOC_LOCK:
	case KDSM_IOC_UNLOCK:
	case KDSM_IOC_LOCK_CONSISTENT:
	case KDSM_IOC_LOCK_SET:
	case KDSM_IOC_LOCK_INFO:
	case KDSM_IOC_RACES:
	case KDSM_IOC_LOST:
	case KDSM_IOC_DISCARD:
	case KDSM_IOC_ATOMIC:
	case KDSM_IOC_HOME:
	case KDSM_IOC_RING_SETUP:
		break;
	default:
		return -ENOTTY;
	}
	if (!kdsm_file_region(file))
		return -EBADFD;
	if (command == KDSM_IOC_RELEASE || command == KDSM_IOC_ACQUIRE)
		return kdsm_ioctl_fence(file, kfile->region, user, command == KDSM_IOC_RELEASE);
	if (command == KDSM_IOC_RACES)
		return kdsm_ioctl_races(kfile->region, user);
	if (command == KDSM_IOC_LOST)
		return kdsm_ioctl_lost(kfile->region, user);
	if (command == KDSM_IOC_DISCARD)
		return kdsm_ioctl_discard(file, kfile->region, user);
	if (command == KDSM_IOC_ATOMIC)
		return kdsm_ioctl_atomic(file, kfile->region, user);
	if (command == KDSM_IOC_HOME)
		return kdsm_ioctl_home(kfile->region, user);
	if (command == KDSM_IOC_RING_SETUP)
		return kfile->region->coherence ? -EOPNOTSUPP :
		       kdsm_ioctl_ring_setup(file, kfile->region, user);
	if (command >= KDSM_IOC_LOCK_OPEN)
		return kdsm_lock_ioctl(&kfile->locks, command, user);
	if (command == KDSM_IOC_ADVISE)
		return kdsm_ioctl_advise(file, kfile->region, user);
	if (kfile->region->coherence)
		return -EOPNOTSUPP;
	switch (command) {
	case KDSM_IOC_SUBMIT:
		return kdsm_ioctl_submit(kfile, user);
	case KDSM_IOC_COMPLETE:
		return kdsm_ioctl_complete(kfile, user);
	case KDSM_IOC_WAIT:
		return kdsm_ioctl_wait(kfile, user);
	default:
		return kdsm_ioctl_wake(kfile, user);
	}
}

static int kdsm_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kdsm_region *region = kdsm_file_region(file);

	return region ? kdsm_vm_mmap(region, vma) : -EBADFD;
}

static unsigned long kdsm_file_unmapped_area(struct file *file, unsigned long address,
					     unsigned long length, unsigned long pgoff,
					     unsigned long flags)
{
	struct kdsm_region *region = kdsm_file_region(file);

	if (!region)
		return -EBADFD;
	return kdsm_vm_unmapped_area(file, region, address, length, pgoff, flags);
}

/* A line of /proc/PID/fdinfo/FD: the region that the file is bound to */
static void kdsm_file_fdinfo(struct seq_file *seq, struct file *file)
{
	struct kdsm_region *region = kdsm_file_region(file);

	if (region)
		seq_printf(seq, "kdsm-region:\t%s\n", region->name);
}

static const struct file_operations kdsm_file_operations = {
	.owner = THIS_MODULE,
	.open = kdsm_file_open,
	.release = kdsm_file_release,
	.unlocked_ioctl = kdsm_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kdsm_file_mmap,
	.get_unmapped_area = kdsm_file_unmapped_area,
	.llseek = noop_llseek,
	.show_fdinfo = kdsm_file_fdinfo,
};

static struct miscdevice kdsm_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kdsm",
	.fops = &kdsm_file_operations,
	.mode = 0660,
};

int kdsm_chardev_init(void)
{
	return misc_register(&kdsm_device);
}

void kdsm_chardev_exit(void)
{
	misc_deregister(&kdsm_device);
}
