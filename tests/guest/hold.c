// SPDX-License-Identifier: GPL-2.0
/*
 * hold open|bound|mapped|locked NAME: hold the open device, a file bound to region NAME
 * (which is created), only a mapping of that region, or a lock of it with the name held.
 * Print "held", and exit when standard input ends. Scripts test meanwhile what the module
 * refuses.
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
	struct kdsm_region_attr attr = { .size = 4 << 20, .mode = 0644 };
	struct kdsm_lock_attr kind = { .kind = KDSM_LOCK_DMCS };
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	struct kdsm *kdsm;
	pthread_t other;
	void *failed;
	int error;

	error = kdsm_open(&kdsm, 0);
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

int main(int argc, char **argv)
{
	struct kdsm_region_open arg = {
		.argsz = sizeof(arg), .flags = KDSM_REGION_CREATE, .size = 4 << 20,
		.policy = KDSM_POLICY_PARTITIONED,
	};
	int file = device(O_RDWR), error;
	char c;

	if (argc != 3 || strlen(argv[2]) >= sizeof(arg.name)) {
		fprintf(stderr, "usage: hold open|bound|mapped|locked NAME\n");
		return 2;
	}
	strcpy(arg.name, argv[2]);
	if (!strcmp(argv[1], "locked")) {
		hold_lock(argv[2]);
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
	return 0;
}
