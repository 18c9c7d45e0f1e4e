/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of hostile input: the bare device, because the library would not pass
 * such calls on.
 */
#ifndef KDSM_TESTS_HOSTILE_H
#define KDSM_TESTS_HOSTILE_H

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/uapi.h>
#include <kdsm/uapi_table.h>
#include <kdsm/uapi_task.h>

#include "tap.h"

#define NOBODY	65534

/* Return 0 or a negative errno. */
static inline int call(int file, unsigned long number, void *arg)
{
	return ioctl(file, number, arg) < 0 ? -errno : 0;
}

static inline int device(int flags)
{
	int file = open(KDSM_DEVICE, flags | O_CLOEXEC);

	if (file < 0)
		tap_bail("cannot open " KDSM_DEVICE ": %s", strerror(errno));
	return file;
}

static inline struct kdsm_info information(int file)
{
	struct kdsm_info info = { .argsz = sizeof(info) };
	int error = call(file, KDSM_IOC_INFO, &info);

	if (error)
		tap_bail("the cluster is not up: %s", strerror(-error));
	return info;
}

/* The region's name contains the node's number, because all nodes run a test at the same time. */
static inline struct kdsm_region_open region(int file, const char *name)
{
	struct kdsm_region_open arg = {
		.argsz = sizeof(arg),
		.flags = KDSM_REGION_CREATE | KDSM_REGION_EXCL,
		.size = 1 << 20,
		.policy = KDSM_POLICY_PARTITIONED,
	};

	snprintf(arg.name, sizeof(arg.name), "%s-%u", name,
		 information(file).node);
	return arg;
}

/* Return a page that an inaccessible page follows, so that an access past its end faults. */
static inline char *lone_page(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE))
		tap_bail("mmap: %s", strerror(errno));
	return at;
}

/*
 * Run function in a child as nobody, without capabilities, and return its result: 0 or a
 * negative errno above -256.
 */
static inline int as_nobody(int (*function)(void *data), void *data)
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (setgroups(0, NULL) ||
		    setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(255);
		_exit(-function(data));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		tap_bail("a child died");
	return -WEXITSTATUS(status);
}

#endif /* KDSM_TESTS_HOSTILE_H */
