// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opening a cluster, its properties, and the version of the library. The backends are in device.c
 * and local.c.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

/* Open the local backend that processes share by this name; NULL: as flags say. */
static int open_backend(unsigned int flags, const char *shared, struct kdsm **out)
{
	struct kdsm *kdsm;
	cpu_set_t cpus;
	int ret;

	kdsm = aligned_alloc(_Alignof(struct kdsm), sizeof(*kdsm));
	if (!kdsm)
		return kd_no_reason(-ENOMEM);
	memset(kdsm, 0, sizeof(*kdsm));
	kdsm->fd = -1;
	kdsm->alone = flags & KDSM_OPEN_ALONE;
	/*
	 * sched_getaffinity() fails if the CPUs do not fit into the set; the process has
	 * more than one then.
	 */
	kdsm->may_spin = !kd_scheduler &&
			 (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) > 1);
	pthread_mutex_init(&kdsm->lock, NULL);
	pthread_mutex_init(&kdsm->settle_lock, NULL);

	if (shared) {
		ret = kd_no_reason(kdsm_local_share(kdsm, shared));
		if (ret == -EBUSY)
			kd_because(ret, "this process has used the local backend already");
	} else if (flags & KDSM_OPEN_LOCAL) {
		ret = kdsm_local_open(kdsm);
	} else {
		ret = kdsm_device_open(kdsm);
		/* A device node without a driver behind it counts as no device. */
		if ((flags & KDSM_OPEN_ALLOW_LOCAL) &&
		    (ret == -ENOENT || ret == -ENXIO || ret == -ENODEV || ret == -ENETDOWN))
			ret = kdsm_local_open(kdsm);
	}
	if (ret) {
		pthread_mutex_destroy(&kdsm->settle_lock);
		pthread_mutex_destroy(&kdsm->lock);
		free(kdsm);
		return ret;
	}
	*out = kdsm;
	return 0;
}

int kdsm_open(unsigned int flags, struct kdsm **out)
{
	if (!out)
		return kd_because(-EINVAL, "kdsm_open: there is no place for the result");
	*out = NULL;
	if (flags & ~(KDSM_OPEN_ALLOW_LOCAL | KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE))
		return kd_because(-EINVAL, "kdsm_open: flags 0x%x have unknown bits", flags);
	return open_backend(flags, NULL, out);
}

int kd_shared_open(const char *name, struct kdsm **out)
{
	*out = NULL;
	return open_backend(0, name, out);
}

void kdsm_close(struct kdsm *kdsm)
{
	if (!kdsm)
		return;
	kdsm->backend->close(kdsm);
	pthread_mutex_destroy(&kdsm->settle_lock);
	pthread_mutex_destroy(&kdsm->lock);
	free(kdsm);
}

unsigned int kdsm_node(const struct kdsm *kdsm)
{
	return kdsm->node;
}

unsigned int kdsm_nodes(const struct kdsm *kdsm)
{
	return kdsm->nodes;
}

int kdsm_location(const struct kdsm *kdsm, unsigned int node,
		  char location[KDSM_LOCATION_SIZE])
{
	if (node >= kdsm->nodes)
		return kd_no_node(kdsm, node);
	return kdsm->backend->location(kdsm, node, location);
}

enum kdsm_domain kdsm_domain(const struct kdsm *kdsm)
{
	return kdsm->domain;
}

int kdsm_is_local(const struct kdsm *kdsm)
{
	return kdsm->backend == &kdsm_local_backend;
}

const char *kdsm_version(void)
{
	return KDSM_VERSION;
}

const char *kdsm_cluster_name(const struct kdsm *kdsm)
{
	return kdsm->cluster;
}

/*
 * Accept the names that the module accepts: printable ASCII without spaces, NUL-terminated.
 */
int kdsm_name_check(const char *what, const char *name)
{
	size_t i;

	if (!name || !name[0])
		return kd_because(-EINVAL, "the name of a %s is empty", what);
	for (i = 0; name[i]; i++) {
		if (i == KDSM_NAME_SIZE - 1)
			return kd_because(-EINVAL,
					  "%s \"%.16s...\": the name has more than %d characters",
					  what, name, KDSM_NAME_SIZE - 1);
		if (name[i] < 0x21 || name[i] > 0x7e)
			return kd_because(-EINVAL,
					  "%s \"%.*s...\": a name has no character 0x%02x (only printable ASCII, no space)",
					  what, (int)i, name, (unsigned char)name[i]);
	}
	return 0;
}
