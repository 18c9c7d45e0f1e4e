// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The backend that calls the module: every function is one or two system calls on
 * /dev/kdsm. The module binds a file to one region, so each region has a file of its own.
 * The backend's locks are in device_lock.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/core.h"

static int device_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? kd_no_reason(-errno) : 0;
}

/* Why kdsm_open() fails, and the remedy */
static int explain_open(int error)
{
	switch (error) {
	case -ENOENT:
		return kd_because(error,
				  "there is no " KDSM_DEVICE ": load kdsm.ko (modprobe kdsm) and bring the cluster up (kdsmctl up)");
	case -ENETDOWN:
		return kd_because(error,
				  "the cluster is not up on this node: bring it up (kdsmctl up)");
	case -EACCES:
		return kd_because(error,
				  "no permission on " KDSM_DEVICE ": see its owner, group and mode");
	case -EPROTO:
		return kd_because(error,
				  "kdsm.ko and this program are of different versions: install both from one release");
	default:
		return kd_because(error, "cannot open " KDSM_DEVICE ": %s", kdsm_strerror(error));
	}
}

int kdsm_device_open(struct kdsm *kdsm)
{
	struct kdsm_info info = { .argsz = sizeof(info) };
	int fd, ret;

	fd = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return explain_open(-errno);
	ret = device_ioctl(fd, KDSM_IOC_INFO, &info);
	/*
	 * The name belongs to another device, or to a module with an incompatible
	 * interface.
	 */
	if (ret == -ENOTTY || ret == -EINVAL || ret == -E2BIG)
		ret = -EPROTO;
	if (!ret && (info.abi_version != KDSM_ABI_VERSION || info.node >= info.nodes ||
		     info.nodes > KDSM_MAX_NODES || info.domain < KDSM_DOMAIN_SW ||
		     info.domain > KDSM_DOMAIN_GLOB))
		ret = -EPROTO;
	if (ret) {
		close(fd);
		return explain_open(ret);
	}
	kdsm->backend = &kdsm_device_backend;
	kdsm->fd = fd;
	kdsm->node = info.node;
	kdsm->nodes = info.nodes;
	kdsm->domain = info.domain;
	memcpy(kdsm->cluster, info.cluster, sizeof(kdsm->cluster));
	kdsm->cluster[sizeof(kdsm->cluster) - 1] = '\0';
	return 0;
}

static void device_close(struct kdsm *kdsm)
{
	close(kdsm->fd);
}

static int device_location(const struct kdsm *kdsm, unsigned int node,
			   char location[KDSM_LOCATION_SIZE])
{
	struct kdsm_location arg = { .argsz = sizeof(arg), .node = node };
	int ret = device_ioctl(kdsm->fd, KDSM_IOC_LOCATION, &arg);

	if (ret)
		return ret;
	memcpy(location, arg.location, KDSM_LOCATION_SIZE);
	location[KDSM_LOCATION_SIZE - 1] = '\0';
	return 0;
}

static int bind_file(struct kdsm_region_open *arg, int mode)
{
	int fd, ret;

	fd = open(KDSM_DEVICE, mode | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		ret = device_ioctl(fd, KDSM_IOC_REGION_OPEN, arg);
	} while (ret == -EINTR);
	if (ret) {
		close(fd);
		return ret;
	}
	return fd;
}

static int device_bind(struct kdsm *kdsm, struct kdsm_region_open *arg,
		       struct kdsm_region *region)
{
	unsigned int parts;
	int fd;

	region->writable = true;
	fd = bind_file(arg, O_RDWR);
	/* A caller that does not create the region may open it for reading only. */
	if (fd == -EACCES && !(arg->flags & KDSM_REGION_CREATE)) {
		region->writable = false;
		fd = bind_file(arg, O_RDONLY);
	}
	if (fd < 0)
		return fd;
	region->fd = fd;
	region->address = arg->base;
	parts = arg->policy > KDSM_POLICY_PARTITIONED ? 1 : arg->nodes ?: kdsm->nodes;
	if (!arg->part_size || arg->part_size > SIZE_MAX / parts) {
		/*
		 * A 32-bit program cannot map a region of this size, which a 64-bit program
		 * created.
		 */
		close(fd);
		return -EFBIG;
	}
	return 0;
}

static void device_unbind(struct kdsm_region *region)
{
	if (region->lock_words)
		munmap(region->lock_words, KDSM_LOCKS_SIZE);
	if (region->base)
		munmap(region->base, region->length);
	close(region->fd);
}

static int device_map(struct kdsm_region *region)
{
	int prot = PROT_READ | (region->writable ? PROT_WRITE : 0);
	size_t length = region->window ? region->window : region->size;
	void *base = region->window ? (void *)(uintptr_t)region->address : NULL;

	base = mmap(base, length, prot, MAP_SHARED | (base ? MAP_FIXED : 0), region->fd, 0);
	if (base == MAP_FAILED)
		/*
		 * The module maps a region at one fixed address only, and this process
		 * already uses that address.
		 */
		return errno == ENOMEM || errno == EEXIST ? -EADDRINUSE : -errno;
	region->base = base;
	region->length = length;
	/* Pointers stored in the region are valid only at this address. */
	if ((uintptr_t)base != region->address)
		return -EADDRINUSE;
	if (!region->coherent)
		region->part = region->base + region->node * region->part_size;
	return 0;
}

static int device_destroy(struct kdsm *kdsm, const char *name)
{
	struct kdsm_region_destroy arg = { .argsz = sizeof(arg) };

	memcpy(arg.name, name, strlen(name));
	return device_ioctl(kdsm->fd, KDSM_IOC_REGION_DESTROY, &arg);
}

static int device_submit(struct kdsm_region *region, struct kdsm_op *ops,
			 unsigned int count, uint64_t *ticket)
{
	struct kdsm_submit arg = {
		.argsz = sizeof(arg),
		.flags = ticket ? 0 : KDSM_SUBMIT_WAIT,
		.ops = (uintptr_t)ops,
		.count = count,
	};
	int ret;

	kdsm_count_call(region->kdsm);
	ret = device_ioctl(region->fd, KDSM_IOC_SUBMIT, &arg);
	if (ticket)
		*ticket = ret ? 0 : arg.ticket;
	if (ret != -EAGAIN && ret != -E2BIG)
		kdsm_count(region->kdsm, ops, count);
	return ret;
}

static int device_complete(struct kdsm_region *region, uint64_t ticket,
			   uint64_t timeout)
{
	struct kdsm_complete arg = {
		.argsz = sizeof(arg),
		.ticket = ticket,
		.timeout = timeout,
	};
	uint64_t begin = 0;
	int ret;

	if (timeout && timeout != KDSM_FOREVER)
		begin = kdsm_now();
	/*
	 * Retry after a signal: the ticket is unchanged, and its operations end by
	 * themselves.
	 */
	for (;;) {
		kdsm_count_call(region->kdsm);
		ret = device_ioctl(region->fd, KDSM_IOC_COMPLETE, &arg);
		if (ret != -EINTR)
			return ret;
		arg.timeout = kdsm_left(begin, timeout);
	}
}

static int device_ring_setup(struct kdsm_region *region, struct kdsm_ring_setup *arg,
			     void **memory)
{
	int ret = device_ioctl(region->fd, KDSM_IOC_RING_SETUP, arg);

	if (ret)
		return ret;
	*memory = mmap(NULL, arg->size, PROT_READ | PROT_WRITE, MAP_SHARED, arg->file, 0);
	if (*memory != MAP_FAILED)
		return 0;
	ret = -errno;
	close(arg->file);
	return ret;
}

static int device_ring_enter(int file, struct kdsm_ring_enter *arg)
{
	return device_ioctl(file, KDSM_IOC_RING_ENTER, arg);
}

static int device_wait(struct kdsm_region *region, uint64_t offset,
		       uint64_t value, uint64_t timeout)
{
	struct kdsm_wait arg = {
		.argsz = sizeof(arg),
		.offset = offset,
		.value = value,
		.timeout = timeout,
	};

	return device_ioctl(region->fd, KDSM_IOC_WAIT, &arg);
}

static int device_wake(struct kdsm_region *region, uint64_t offset)
{
	struct kdsm_wake arg = { .argsz = sizeof(arg), .offset = offset };

	return device_ioctl(region->fd, KDSM_IOC_WAKE, &arg);
}

static int device_settle(struct kdsm *kdsm, const uint64_t nodes[KDSM_MAX_NODES / 64],
			 uint32_t *messages)
{
	struct kdsm_settle arg = { .argsz = sizeof(arg) };
	int ret;

	memcpy(arg.nodes, nodes, sizeof(arg.nodes));
	kdsm_count_call(kdsm);
	ret = device_ioctl(kdsm->fd, KDSM_IOC_SETTLE, &arg);
	*messages += arg.messages;
	return ret;
}

static int device_fence(struct kdsm_region *region, unsigned long request,
			const struct kdsm_signature *signature)
{
	struct kdsm_fence arg = {
		.argsz = sizeof(arg),
		.signature = (uintptr_t)signature,
	};
	int ret;

	/* Retry after a signal: the repeated call does the rest. */
	do {
		ret = device_ioctl(region->fd, request, &arg);
	} while (ret == -EINTR);
	return ret;
}

static int device_release(struct kdsm_region *region, struct kdsm_signature *signature)
{
	return device_fence(region, KDSM_IOC_RELEASE, signature);
}

static int device_acquire(struct kdsm_region *region,
			  const struct kdsm_signature *signature)
{
	return device_fence(region, KDSM_IOC_ACQUIRE, signature);
}

/* Retry after a signal: the part that is done already costs little the second time. */
static int device_ioctl_again(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = device_ioctl(fd, request, arg);
	} while (ret == -EINTR);
	return ret;
}

static int device_advise(struct kdsm_region *region, enum kdsm_advice advice,
			 uint64_t offset, uint64_t length)
{
	struct kdsm_advise arg = {
		.argsz = sizeof(arg),
		.advice = advice,
		.offset = offset,
		.length = length,
	};

	return device_ioctl_again(region->fd, KDSM_IOC_ADVISE, &arg);
}

static int device_atomic(struct kdsm_region *region, struct kdsm_atomic *arg)
{
	return device_ioctl(region->fd, KDSM_IOC_ATOMIC, arg);
}

static int device_home(struct kdsm_region *region, uint64_t offset)
{
	struct kdsm_home arg = { .argsz = sizeof(arg), .offset = offset };
	int ret = device_ioctl(region->fd, KDSM_IOC_HOME, &arg);

	return ret ? ret : (int)arg.node;
}

static int device_races(struct kdsm_region *region, struct kdsm_races *arg)
{
	return device_ioctl(region->fd, KDSM_IOC_RACES, arg);
}

static int device_lost(struct kdsm_region *region, struct kdsm_lost *arg)
{
	return device_ioctl(region->fd, KDSM_IOC_LOST, arg);
}

static int device_discard(struct kdsm_region *region, uint64_t offset, uint64_t length)
{
	struct kdsm_discard arg = { .argsz = sizeof(arg), .offset = offset, .length = length };

	return device_ioctl_again(region->fd, KDSM_IOC_DISCARD, &arg);
}

const struct kdsm_backend kdsm_device_backend = {
	.close = device_close,
	.location = device_location,
	.bind = device_bind,
	.unbind = device_unbind,
	.map = device_map,
	.destroy = device_destroy,
	.submit = device_submit,
	.complete = device_complete,
	.ring_setup = device_ring_setup,
	.ring_enter = device_ring_enter,
	.wait = device_wait,
	.wake = device_wake,
	.settle = device_settle,
	.release = device_release,
	.acquire = device_acquire,
	.advise = device_advise,
	.atomic = device_atomic,
	.home = device_home,
	.races = device_races,
	.lost = device_lost,
	.discard = device_discard,
	.locks = &kdsm_device_locks,
};
