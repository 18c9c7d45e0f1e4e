// SPDX-License-Identifier: LGPL-2.1-or-later
/* Locks of the device backend: each function is one system call on the region's file. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "core/core.h"

_Static_assert(sizeof(off_t) == 8, "KDSM_LOCKS_OFFSET has more than 32 bits: -D_FILE_OFFSET_BITS=64");

static int lock_ioctl(struct kdsm_region *region, unsigned long request, void *arg)
{
	return ioctl(region->fd, request, arg) < 0 ? -errno : 0;
}

static int device_map(struct kdsm_region *region)
{
	void *words = mmap(NULL, KDSM_LOCKS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			   region->fd, KDSM_LOCKS_OFFSET);

	if (words == MAP_FAILED)
		return -errno;
	region->lock_words = words;
	return 0;
}

static int device_open(struct kdsm_region *region, struct kdsm_lock_open *arg)
{
	struct kdsm_lock_open wish = *arg;
	int ret;

	/* Retry after a signal, with the arguments that the caller gave. */
	for (;;) {
		ret = lock_ioctl(region, KDSM_IOC_LOCK_OPEN, arg);
		if (ret != -EINTR)
			return ret;
		*arg = wish;
	}
}

static int device_thread(struct kdsm_region *region, uint32_t *thread)
{
	struct kdsm_lock_thread arg = { .argsz = sizeof(arg) };
	int ret;

	do {
		ret = lock_ioctl(region, KDSM_IOC_LOCK_THREAD, &arg);
	} while (ret == -EINTR);
	*thread = arg.thread;
	return ret;
}

static int device_take(struct kdsm_region *region, struct kdsm_lock_take *arg)
{
	return lock_ioctl(region, KDSM_IOC_LOCK, arg);
}

static int device_give(struct kdsm_region *region, struct kdsm_lock_give *arg)
{
	return lock_ioctl(region, KDSM_IOC_UNLOCK, arg);
}

static int device_consistent(struct kdsm_region *region, struct kdsm_lock_give *arg)
{
	return lock_ioctl(region, KDSM_IOC_LOCK_CONSISTENT, arg);
}

static int device_set(struct kdsm_region *region, struct kdsm_lock_set *arg)
{
	return lock_ioctl(region, KDSM_IOC_LOCK_SET, arg);
}

static int device_info(struct kdsm_region *region, struct kdsm_lock_info *arg)
{
	return lock_ioctl(region, KDSM_IOC_LOCK_INFO, arg);
}

const struct kdsm_lock_backend kdsm_device_locks = {
	.map = device_map,
	.open = device_open,
	.thread = device_thread,
	.take = device_take,
	.give = device_give,
	.consistent = device_consistent,
	.set = device_set,
	.info = device_info,
};
