/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the tests of coherent regions: one such region, on the bare ABI, and exchange(). */
#ifndef COHERENT_H
#define COHERENT_H

#include <fcntl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"
#include "shown.h"

/* A partitioned region that passes signatures: every node's part holds its own. */
static struct kdsm_region *board;
static int file;
static uint64_t *words;
static uint64_t mapped;		/* size of the mapping at words, in bytes */
static char attached[KDSM_NAME_SIZE];
static uint32_t region_flags;	/* further flags of attach_region() */
/* Segments for attach_region(), whose block argument is the first one's block size; NULL: none */
static const struct kdsm_region_segment *region_segments;
static unsigned int region_segment_count;

static inline int call(unsigned long number, void *arg)
{
	return ioctl(file, number, arg) ? -errno : 0;
}

static inline int fence(unsigned long number, struct kdsm_signature *signature)
{
	struct kdsm_fence arg = { .argsz = sizeof(arg), .signature = (uintptr_t)signature };

	return call(number, &arg);
}

static inline int release(struct kdsm_signature *signature)
{
	return fence(KDSM_IOC_RELEASE, signature);
}

static inline int acquire(struct kdsm_signature *signature)
{
	return fence(KDSM_IOC_ACQUIRE, signature);
}

static inline void board_open(const char *name)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * 65536 };

	if (kdsm_region_open(kdsm, name, &attr, &board))
		guest_die("region", -EIO);
}

/* Acquire the signature that node from, or every other node (-1), has put into its part. */
static inline void acquire_put(int from)
{
	static struct kdsm_signature theirs;
	unsigned int i;

	for (i = 0; i < nodes; i++) {
		if (i == node || (from >= 0 && i != (unsigned int)from))
			continue;
		CHECK_IS(kdsm_get(board, i, 8192, &theirs, sizeof(theirs)), 0);
		CHECK_IS(acquire(&theirs), 0);
	}
}

/* A barrier of all nodes: every node releases before it, and acquires from all others after it. */
static inline void exchange(void)
{
	static struct kdsm_signature mine;

	CHECK_IS(release(&mine), 0);
	CHECK_IS(kdsm_put(board, node, 8192, &mine, sizeof(mine)), 0);
	meet();
	acquire_put(-1);
	meet();
}

static inline void attach_region(const char *name, uint32_t policy, uint64_t size,
				 uint32_t block)
{
	struct kdsm_region_open open_ = {
		.argsz = sizeof(open_),
		.flags = KDSM_REGION_CREATE | region_flags,
		.policy = policy,
		.size = size,
		.block_size = block,
		.segments = region_segment_count,
	};

	if (region_segments)
		memcpy(open_.segment, region_segments,
		       region_segment_count * sizeof(region_segments[0]));
	snprintf(attached, sizeof(attached), "%s-%u-%u", name, policy, block);
	strcpy(open_.name, attached);
	file = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	if (file < 0)
		guest_die("open", -errno);
	CHECK_IS(call(KDSM_IOC_REGION_OPEN, &open_), 0);
	words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (words == MAP_FAILED)
		guest_die("mmap", -errno);
	CHECK((uintptr_t)words == open_.base);
	mapped = size;
	meet();
}

static inline void detach(void)
{
	meet();
	munmap(words, mapped);
	close(file);
	meet();
}

/* Change settings of the region, as kdsmctl takes them; return its status as system() does. */
static inline __attribute__((format(printf, 1, 2))) int region_set(const char *format, ...)
{
	char settings[64], command[128 + KDSM_NAME_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(settings, sizeof(settings), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "kdsmctl region set %s %s 2>&1", attached, settings);
	return system(command);
}

/* Value of the region's counter on this node, as kdsmctl prints it; -1 if there is none. */
static inline long counter(const char *name)
{
	return region_number(attached, name);
}

/*
 * Run the tests, or those whose names contain only, under policy release and then strict. *policy
 * says which. program begins the names of the regions in which the nodes meet. Return an exit
 * status.
 */
static inline int run_policies(const char *program, uint32_t *policy,
			       const struct guest_test *tests, const char *only)
{
	char name[32];
	int status = 0;

	snprintf(name, sizeof(name), "%s-meeting", program);
	guest_open(name);
	snprintf(name, sizeof(name), "%s-board", program);
	board_open(name);
	for (*policy = KDSM_POLICY_RELEASE; *policy <= KDSM_POLICY_STRICT; ++*policy) {
		printf("# policy %s\n", *policy == KDSM_POLICY_STRICT ? "strict" : "release");
		status |= guest_run(tests, only);
	}
	kdsm_region_close(board);
	guest_close();
	return status;
}

#endif /* COHERENT_H */
