// SPDX-License-Identifier: GPL-2.0
/*
 * hold open|bound|mapped|locked|leaving NAME: hold the open device, a file bound to region NAME
 * (which is created), only a mapping of that region, a lock of it with the name held, or a lock
 * of each home. Print "held", and exit when standard input ends; "leaving" unlocks the locks
 * before. Scripts test meanwhile what the module refuses.
 */
#include "hostile.h"
#include <pthread.h>
#include <kdsm/lock.h>

static void *wait_for_it(void *lock)
{
	return kdsm_lock(lock) || kdsm_unlock(lock) ? lock : NULL;
}

/* Two threads have the lock in turn; users other than the region's owner may read the region. */
static void hold_lock(const char *name)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4 << 20, .mode = 0644 };
	struct kdsm_lock_attr kind = { .argsz = sizeof(kind), .kind = KDSM_LOCK_DMCS };
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	struct kdsm *kdsm;
	pthread_t other;
	void *failed;
	int error;

	error = kdsm_open(0, &kdsm);
	if (!error)
		error = kdsm_region_open(kdsm, name, &attr, &region);
	if (!error)
		error = kdsm_lock_create(region, "held", 0, &kind, &lock);
	if (!error)
		error = kdsm_lock(lock);
	if (error)
		tap_bail("cannot lock: %s", strerror(-error));
	if (pthread_create(&other, NULL, wait_for_it, lock))
		tap_bail("no thread");
	usleep(50000);
	error = kdsm_unlock(lock);
	if (pthread_join(other, &failed) || failed || error)
		tap_bail("the lock cannot be unlocked");
	error = kdsm_lock(lock);
	if (error)
		tap_bail("cannot lock: %s", strerror(-error));
}

/* A lock of each home, which this node gives back to the home as soon as it is unlocked */
static unsigned int hold_leaving(const char *name, struct kdsm_lock **locks, unsigned int most)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4 << 20 };
	struct kdsm_lock_attr kind = {
		.argsz = sizeof(kind),
		.kind = KDSM_LOCK_DMCS,
		.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = 0 },
	};
	struct kdsm_region *region;
	struct kdsm *kdsm;
	unsigned int i, count = 0;
	int error;

	error = kdsm_open(0, &kdsm);
	if (!error) {
		count = kdsm_nodes(kdsm) < most ? kdsm_nodes(kdsm) : most;
		error = kdsm_region_open(kdsm, name, &attr, &region);
	}
	for (i = 0; i < count && !error; i++) {
		error = kdsm_lock_create(region, NULL, i, &kind, &locks[i]);
		if (!error)
			error = kdsm_lock(locks[i]);
	}
	if (error)
		tap_bail("cannot lock: %s", strerror(-error));
	return count;
}

int main(int argc, char **argv)
{
	struct kdsm_region_open arg = {
		.argsz = sizeof(arg), .flags = KDSM_REGION_CREATE, .size = 4 << 20,
		.policy = KDSM_POLICY_PARTITIONED,
	};
	struct kdsm_lock *locks[16];
	unsigned int leaving = 0;
	int file = device(O_RDWR), error;
	char c;

	if (argc != 3 || strlen(argv[2]) >= sizeof(arg.name)) {
		fprintf(stderr, "usage: hold open|bound|mapped|locked|leaving NAME\n");
		return 2;
	}
	strcpy(arg.name, argv[2]);
	if (!strcmp(argv[1], "locked")) {
		hold_lock(argv[2]);
	} else if (!strcmp(argv[1], "leaving")) {
		leaving = hold_leaving(argv[2], locks, 16);
	} else if (strcmp(argv[1], "open")) {
		error = call(file, KDSM_IOC_REGION_OPEN, &arg);
		if (error)
			tap_bail("cannot open region %s: %s", arg.name, strerror(-error));
	}
	if (!strcmp(argv[1], "mapped")) {
		if (mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED)
			tap_bail("mmap: %s", strerror(errno));
		close(file);
	}
	printf("held\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	while (leaving)
		kdsm_unlock(locks[--leaving]);
	return 0;
}
