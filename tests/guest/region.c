// SPDX-License-Identifier: GPL-2.0
/*
 * Regions of a cluster, from a program on every node at the same time: names, lifetime,
 * permissions, mapping. Remote operations are in pgas.c.
 *
 * usage: region [PART-OF-A-TEST-NAME]; as root, because a child becomes nobody
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shown.h"

#define PART (4UL << 20)
#define NOBODY 65534

static struct kdsm_region *common;	/* words in which nodes tell each other values */

/* Put value into word slot of every node's part, including this node's. */
static void tell_all(unsigned int slot, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < nodes; i++)
		CHECK_IS(kdsm_put(common, i, 8 * slot, &value, 8), 0);
}

static uint64_t told(unsigned int slot)
{
	return ((volatile uint64_t *)kdsm_region_part(common))[slot];
}

static struct kdsm_region_attr attr_of(uint32_t flags)
{
	return (struct kdsm_region_attr){
		.argsz = sizeof(struct kdsm_region_attr), .size = PART * nodes, .flags = flags,
	};
}

static int region_open(const char *name, uint32_t flags, struct kdsm_region **region)
{
	struct kdsm_region_attr attr = attr_of(flags);

	return kdsm_region_open(kdsm, name, &attr, region);
}

/* Run function in a child; return its result, or minus the signal that ended the child. */
static int in_child(int (*function)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		int ret;

		failures = 0;
		ret = function();
		fflush(stdout);
		_exit(ret ? ret : failures ? 99 : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 98;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* All nodes create a region at the same time: they share one region, at one address. */
static void region_create_together(void)
{
	struct kdsm_region *region;
	uint64_t mine, value;
	unsigned int i;

	CHECK_IS(region_open("together", 0, &region), 0);
	if (!region)
		return (void)(meet(), meet());
	CHECK(kdsm_region_part_size(region) == PART);
	mine = (uintptr_t)kdsm_region_part(region) - node * PART;
	tell_all(node, mine);
	value = node + 1;
	CHECK_IS(kdsm_put(region, (node + 1) % nodes, 64, &value, 8), 0);
	meet();
	for (i = 0; i < nodes; i++)
		CHECK(told(i) == mine);
	CHECK_IS(*(volatile uint64_t *)(kdsm_region_part(region) + 64),
		 (node + nodes - 1) % nodes + 1);
	meet();
	kdsm_region_close(region);
}

/* All nodes create a region exclusively: only one succeeds. */
static void region_exclusive(void)
{
	struct kdsm_region *region;
	int ret;

	meet();
	ret = region_open("exclusive", KDSM_REGION_EXCL, &region);
	CHECK(ret == 0 || ret == -EEXIST);
	if (!ret)
		CHECK_IS(kdsm_faa(common, 0, 512, 1, NULL), 0);
	meet();
	if (node == 0)
		CHECK_IS(told(64), 1);
	kdsm_region_close(region);
}

static void region_mismatch(void)
{
	struct kdsm_region_attr attr = attr_of(0);
	struct kdsm_region *region, *other;

	CHECK_IS(region_open("mismatch", 0, &region), 0);
	meet();
	attr.size *= 2;
	CHECK_IS(kdsm_region_open(kdsm, "mismatch", &attr, &other), -EINVAL);
	attr = attr_of(0);
	attr.block_size = 8192;
	CHECK_IS(kdsm_region_open(kdsm, "mismatch", &attr, &other), -EINVAL);
	CHECK_IS(kdsm_region_open(kdsm, "mismatch", NULL, &other), 0);
	CHECK(other == region);
	kdsm_region_close(other);
	CHECK_IS(kdsm_region_open(kdsm, "no-such-region", NULL, &other), -ENOENT);
	meet();
	kdsm_region_close(region);
}

static int bad_open(struct kdsm_region_attr attr)
{
	struct kdsm_region *region;
	int ret;

	attr.argsz = sizeof(attr);
	ret = kdsm_region_open(kdsm, "bad", &attr, &region);
	kdsm_region_close(region);
	return ret;
}

static void region_bad_attributes(void)
{
#define BAD(...) bad_open((struct kdsm_region_attr){ __VA_ARGS__ })
	int ret;

	CHECK_IS(BAD(.size = 0), -EINVAL);
	CHECK_IS(BAD(.size = 1, .block_size = 2048), -EINVAL);
	CHECK_IS(BAD(.size = 1, .block_size = 4U << 20), -EINVAL);
	CHECK_IS(BAD(.size = 1, .block_size = 12288), -EINVAL);
	CHECK_IS(BAD(.size = 1, .policy = 77), -EINVAL);
	CHECK_IS(BAD(.size = 1, .mode = 01777), -EINVAL);
	ret = BAD(.size = UINT64_MAX);
	CHECK(ret == -EFBIG);
	ret = BAD(.size = 1ULL << 62);
	CHECK(ret == -EFBIG);
	/* More memory than the machines have */
	CHECK_IS(BAD(.size = 256ULL << 30), -ENOMEM);
#undef BAD
}

/* New memory is zero on every node, even if another region has used it before. */
static void region_zeroed(void)
{
	struct kdsm_region *region;
	unsigned int round;
	uint8_t *part, *got;
	size_t i;

	got = malloc(PART);
	for (round = 0; round < 3; round++) {
		CHECK_IS(region_open("zeroed", 0, &region), 0);
		if (!region) {
			meet();
			meet();
			meet();
			continue;
		}
		meet();
		part = kdsm_region_part(region);
		for (i = 0; i < PART; i++)
			if (!CHECK(part[i] == 0))
				break;
		/* Memory that was never touched can be read remotely, too. */
		CHECK_IS(kdsm_get(region, (node + 1) % nodes, PART / 2, got, PART / 2), 0);
		for (i = 0; i < PART / 2; i++)
			if (!CHECK(got[i] == 0))
				break;
		meet();
		memset(part, 0x5a + round, PART);
		kdsm_region_close(region);
		meet();
	}
	free(got);
	CHECK_IS(kdsm_region_open(kdsm, "zeroed", NULL, &region), -ENOENT);
}

/* Half of the memory of this machine, in bytes, but at most what is free; a multiple of PART */
static size_t much(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (kib << 10) / 2 / PART * PART;
}

/*
 * The memory of a region that was closed can be used at once, although a worker frees it: two
 * such regions do not fit.
 */
static void region_memory_again(void)
{
	struct kdsm_region_attr attr = attr_of(0);
	struct kdsm_region *region;
	char name[32];
	size_t i;
	int round;

	if (node == 0)
		tell_all(1, much() / 2 * 3 / PART * PART);
	meet();
	attr.size = told(1) * nodes;
	for (round = 0; round < 2; round++) {
		snprintf(name, sizeof(name), "again-%d", round);
		CHECK_IS(kdsm_region_open(kdsm, name, &attr, &region), 0);
		if (region)
			for (i = 0; i < told(1); i += 4096)
				((volatile char *)kdsm_region_part(region))[i] = 1;
		meet();
		kdsm_region_close(region);
		meet();
	}
}

/* A region of a share of the memory of each machine, in percent */
static int open_percent(struct kdsm *own, unsigned int percent, struct kdsm_region_attr attr)
{
	struct kdsm_region *region;
	int ret;

	attr.size = sysconf(_SC_PHYS_PAGES) * 4096ULL / 100 * percent / PART * PART * nodes;
	ret = kdsm_region_open(own, "quota", &attr, &region);
	kdsm_region_close(region);
	if (attr.flags & KDSM_REGION_KEEP)
		kdsm_region_destroy(own, "quota");
	return ret;
}

static const struct kdsm_region_attr kept = { .argsz = sizeof(kept), .flags = KDSM_REGION_KEEP },
	/* Large blocks, because each write to a new block takes messages */
	released = {
		.argsz = sizeof(released), .policy = KDSM_POLICY_RELEASE, .block_size = 2U << 20,
	};

/* keep_percent is 10 and user_percent 20 */
static int quota_as_nobody(void)
{
	struct kdsm *own;

	if (setgid(NOBODY) || setuid(NOBODY))
		return 97;
	CHECK_IS(kdsm_open(0, &own), 0);
	CHECK_IS(open_percent(own, 15, kept), -EDQUOT);
	CHECK_IS(open_percent(own, 8, kept), 0);
	CHECK_IS(open_percent(own, 15, attr_of(0)), 0);
	CHECK_IS(open_percent(own, 25, attr_of(0)), -EDQUOT);
	CHECK_IS(open_percent(own, 15, released), 0);
	kdsm_close(own);
	return 0;
}

/*
 * A node may hold more of a coherent region than its share, up to the quota of the user and two
 * chunks of twins. It evicts chunks beyond that.
 */
static int touch_as_nobody(void)
{
	struct kdsm_region_attr attr = released;
	struct kdsm_region *region;
	struct kdsm *own;
	size_t bytes = sysconf(_SC_PHYS_PAGES) * 4096ULL, i;
	long held;

	if (setgid(NOBODY) || setuid(NOBODY))
		return 97;
	attr.size = bytes / 100 * 15 / PART * PART * nodes;
	if (kdsm_open(0, &own) || kdsm_region_open(own, "quota", &attr, &region))
		return 96;
	for (i = 0; i < attr.size; i += 4096)
		((volatile char *)kdsm_region_address(region))[i] = 1;
	held = region_number("quota", "memory");
	if (held < 0 || (size_t)held > bytes / 100 * 20 + (4UL << 20))
		return 94;
	return 95;
}

static void parameter(const char *name, const char *value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/module/kdsm/parameters/%s", name);
	file = fopen(path, "w");
	CHECK(file && fputs(value, file) >= 0);
	if (file)
		fclose(file);
}

static void region_quota(void)
{
	struct stat old;

	parameter("keep_percent", "10");
	parameter("user_percent", "20");
	CHECK(!stat(KDSM_DEVICE, &old) && !chmod(KDSM_DEVICE, 0666));
	meet();
	if (node == 0) {
		CHECK_IS(in_child(quota_as_nobody), 0);
		CHECK_IS(in_child(touch_as_nobody), 95);
		/* The memory that the child held does not count any more. */
		CHECK_IS(in_child(quota_as_nobody), 0);
		/* The administrator's regions have no limit but that of all regions. */
		CHECK_IS(open_percent(kdsm, 25, kept), 0);
		parameter("memory_percent", "20");
		CHECK_IS(open_percent(kdsm, 25, attr_of(0)), -ENOMEM);
		parameter("memory_percent", "100");
	}
	meet();
	chmod(KDSM_DEVICE, old.st_mode & 0777);
	parameter("keep_percent", "50");
	parameter("user_percent", "80");
}

static void region_keep(void)
{
	struct kdsm_region *region;
	uint64_t value;

	CHECK_IS(region_open("keep", KDSM_REGION_KEEP, &region), 0);
	value = 100 + node;
	CHECK_IS(kdsm_put(region, (node + 1) % nodes, 8, &value, 8), 0);
	kdsm_region_close(region);
	meet();
	CHECK_IS(kdsm_region_open(kdsm, "keep", NULL, &region), 0);
	if (region) {
		CHECK_IS(kdsm_get(region, (node + 1) % nodes, 8, &value, 8), 0);
		CHECK_IS(value, 100 + node);
	}
	meet();
	if (node == nodes - 1)
		CHECK_IS(kdsm_region_destroy(kdsm, "keep"), 0);
	meet();
	/* The name is gone, but the memory stays while a program has the region open. */
	CHECK_IS(kdsm_region_destroy(kdsm, "keep"), -ENOENT);
	if (region)
		CHECK_IS(kdsm_faa(region, (node + 1) % nodes, 8, 1, &value), 0);
	CHECK_IS(value, 100 + node);
	meet();
	kdsm_region_close(region);
}

/* A name that was removed can name a new region while the old region still exists. */
static void region_destroy(void)
{
	struct kdsm_region *old, *new;
	uint64_t value = 1;

	CHECK_IS(kdsm_region_destroy(kdsm, "never"), -ENOENT);
	CHECK_IS(region_open("renewed", 0, &old), 0);
	CHECK_IS(kdsm_put(old, (node + 1) % nodes, 0, &value, 8), 0);
	meet();
	if (node == 0)
		CHECK_IS(kdsm_region_destroy(kdsm, "renewed"), 0);
	meet();
	CHECK_IS(region_open("renewed", 0, &new), 0);
	CHECK(new && new != old);
	if (new) {
		CHECK_IS(kdsm_get(new, (node + 1) % nodes, 0, &value, 8), 0);
		CHECK_IS(value, 0);
		CHECK_IS(kdsm_get(old, (node + 1) % nodes, 0, &value, 8), 0);
		CHECK_IS(value, 1);
	}
	meet();
	kdsm_region_close(old);
	kdsm_region_close(new);
}

static int as_nobody(void)
{
	struct kdsm_region *region;
	struct kdsm *own;
	uint64_t value = 0;

	if (setgid(NOBODY) || setuid(NOBODY))
		return 97;
	CHECK_IS(kdsm_open(0, &own), 0);
	if (!own)
		return 96;
	CHECK_IS(kdsm_region_open(own, "private", NULL, &region), -EACCES);
	CHECK_IS(kdsm_region_destroy(own, "private"), -EACCES);
	CHECK_IS(kdsm_region_open(own, "readable", NULL, &region), 0);
	if (region) {
		CHECK_IS(kdsm_get(region, node, 0, &value, 8), 0);
		CHECK_IS(value, 7);
		CHECK_IS(kdsm_get(region, (node + 1) % nodes, 0, &value, 8), 0);
		CHECK_IS(value, 7);
		CHECK_IS(kdsm_put(region, node, 0, &value, 8), -EACCES);
		CHECK_IS(kdsm_put(region, (node + 1) % nodes, 0, &value, 8), -EACCES);
		CHECK_IS(kdsm_faa(region, node, 0, 1, &value), -EACCES);
		CHECK_IS(kdsm_cas(region, (node + 1) % nodes, 0, 0, 0, &value), -EACCES);
		CHECK(mprotect(kdsm_region_part(region), 4096, PROT_READ | PROT_WRITE) &&
		      errno == EACCES);
		kdsm_region_close(region);
	}
	CHECK_IS(kdsm_region_open(own, "open", NULL, &region), 0);
	if (region) {
		CHECK_IS(kdsm_faa(region, (node + 1) % nodes, 0, 1, &value), 0);
		kdsm_region_close(region);
	}
	kdsm_close(own);
	return 0;
}

static void region_permissions(void)
{
	static const struct {
		const char *name;
		uint32_t mode;
	} made[3] = { { "private", 0600 }, { "readable", 0644 }, { "open", 0666 } };
	struct kdsm_region *regions[3];
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	uint64_t value = 7;
	struct stat old;
	int i;

	for (i = 0; i < 3; i++) {
		attr = attr_of(0);
		attr.mode = made[i].mode;
		CHECK_IS(kdsm_region_open(kdsm, made[i].name, &attr, &regions[i]), 0);
		if (regions[i])
			CHECK_IS(kdsm_put(regions[i], node, 0, &value, 8), 0);
	}
	meet();
	/* The administrator decides which users may use the device at all. */
	CHECK(!stat(KDSM_DEVICE, &old) && !chmod(KDSM_DEVICE, 0666));
	for (i = 0; i < 3; i++) {
		/* The child can map the regions at these addresses only. */
		void *base = (char *)kdsm_region_part(regions[i]) - node * PART;

		munmap(base, PART * nodes);
	}
	CHECK_IS(in_child(as_nobody), 0);
	chmod(KDSM_DEVICE, old.st_mode & 0777);
	meet();
	for (i = 0; i < 3; i++)
		kdsm_region_close(regions[i]);
}

/* Bind a file to a region without the library. */
static int bind_raw(const char *name, struct kdsm_region_open *arg)
{
	int fd = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);

	memset(arg, 0, sizeof(*arg));
	arg->argsz = sizeof(*arg);
	arg->flags = KDSM_REGION_CREATE;
	arg->size = PART * nodes;
	arg->policy = KDSM_POLICY_PARTITIONED;
	strcpy(arg->name, name);
	CHECK(fd >= 0);
	CHECK(!ioctl(fd, KDSM_IOC_REGION_OPEN, arg));
	return fd;
}

static volatile char *victim;

static int touch(void)
{
	return *victim & 0;
}

#define MAP_FAILS(expected, ...) do {					\
	void *map_ = mmap(__VA_ARGS__);					\
	if (CHECK(map_ == MAP_FAILED))					\
		CHECK_IS(-errno, expected);				\
	else								\
		munmap(map_, 4096);					\
} while (0)

static void region_mapping(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	struct kdsm_region_open arg;
	size_t all = PART * nodes;
	uint64_t word = 0;
	char *base, *own;
	int fd, mem;

	fd = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	MAP_FAILS(-EBADFD, NULL, 4096, rw, MAP_SHARED, fd, 0);
	close(fd);
	fd = bind_raw("mapping", &arg);
	CHECK(ioctl(fd, KDSM_IOC_REGION_OPEN, &arg) && errno == EBUSY);
	MAP_FAILS(-EINVAL, NULL, all, rw, MAP_PRIVATE, fd, 0);
	MAP_FAILS(-EACCES, NULL, all, rw | PROT_EXEC, MAP_SHARED, fd, 0);
	MAP_FAILS(-EINVAL, NULL, all + 4096, rw, MAP_SHARED, fd, 0);
	MAP_FAILS(-EINVAL, NULL, 4096, rw, MAP_SHARED, fd, all);
	MAP_FAILS(-EINVAL, (void *)(uintptr_t)(arg.base + 8192), 4096, rw,
		  MAP_SHARED | MAP_FIXED, fd, 0);
	/* A mapping of a piece of the region lies at that piece's address. */
	own = mmap(NULL, 8192, rw, MAP_SHARED, fd, node * PART + 4096);
	CHECK((uintptr_t)own == arg.base + node * PART + 4096);
	munmap(own, 8192);

	base = mmap(NULL, all, rw, MAP_SHARED, fd, 0);
	CHECK((uintptr_t)base == arg.base);
	if ((uintptr_t)base != arg.base) {
		close(fd);
		return;
	}
	MAP_FAILS(-ENOMEM, NULL, all, rw, MAP_SHARED, fd, 0);
	own = base + node * PART;
	CHECK(mprotect(own, 4096, rw | PROT_EXEC) && errno == EACCES);
	CHECK(mremap(own, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
		     (char *)(uintptr_t)0x10000000) == MAP_FAILED);
	*(uint64_t *)(own + 8) = 0x1122334455667788;
	/* Debuggers can read the mapping. */
	mem = open("/proc/self/mem", O_RDONLY);
	CHECK_IS(pread(mem, &word, 8, (uintptr_t)own + 8), 8);
	CHECK(word == 0x1122334455667788);
	close(mem);
	victim = own;
	CHECK_IS(in_child(touch), 0);
	if (nodes > 1) {
		victim = base + (node + 1) % nodes * PART;
		CHECK_IS(in_child(touch), -SIGBUS);
	}
	/* The mapping keeps the region after the file is closed. */
	close(fd);
	CHECK(*(uint64_t *)(own + 8) == 0x1122334455667788);
	munmap(base, all);
}

static int die_busy(void)
{
	struct kdsm_region *region;
	static struct kdsm_op ops[32];
	static uint8_t buffer[32][4096];
	struct kdsm_ticket ticket;
	struct kdsm *own;
	unsigned int i, n;

	if (kdsm_open(0, &own))
		return 1;
	kdsm = own;
	if (region_open("doomed", 0, &region))
		return 2;
	for (n = 0; n < 10; n++) {
		for (i = 0; i < 32; i++)
			ops[i] = i & 1 ?
				 kdsm_op_get((node + 1) % nodes, 4096 * i, buffer[i], 4096) :
				 kdsm_op_put((node + 1) % nodes, 4096 * i, buffer[i], 4096);
		if (kdsm_submit(region, ops, 32, &ticket))
			return 3;
	}
	kill(getpid(), SIGKILL);
	return 4;
}

/* A killed process frees all that it held, even with operations in flight. */
static void region_killed(void)
{
	struct kdsm_region *region;
	int i, ret = 0;

	CHECK_IS(in_child(die_busy), -SIGKILL);
	meet();
	for (i = 0; i < 100; i++) {
		ret = kdsm_region_open(kdsm, "doomed", NULL, &region);
		if (ret)
			break;
		kdsm_region_close(region);
		usleep(50000);
	}
	CHECK_IS(ret, -ENOENT);
}

static void region_many(void)
{
	struct kdsm_region *regions[40];
	char name[32];
	int i;

	for (i = 0; i < 40; i++) {
		struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 * nodes };

		snprintf(name, sizeof(name), "many-%d", i);
		CHECK_IS(kdsm_region_open(kdsm, name, &attr, &regions[i]), 0);
		if (regions[i])
			CHECK_IS(kdsm_faa(regions[i], 0, 0, 1, NULL), 0);
	}
	meet();
	for (i = 0; i < 40; i++) {
		if (node == 0 && regions[i])
			CHECK_IS(*(uint64_t *)kdsm_region_part(regions[i]), nodes);
		kdsm_region_close(regions[i]);
	}
}

/* The creator may choose the address; the directory gives others as before. */
static void region_address(void)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr), .size = 8192, .policy = KDSM_POLICY_STRICT,
		.address = KDSM_ARENA_END + 0x123000,
	};
	struct kdsm_region *region, *other;
	uint64_t *words;

	CHECK_IS(kdsm_region_open(kdsm, "at", &attr, &region), 0);
	CHECK(region && kdsm_region_address(region) == (void *)(uintptr_t)attr.address);
	words = (void *)(uintptr_t)attr.address;
	if (region)
		__atomic_add_fetch(&words[1000], 1, __ATOMIC_SEQ_CST);
	attr.address += 4096;
	CHECK_IS(kdsm_region_open(kdsm, "at", &attr, &other), -EINVAL);
	attr.address = 0;
	CHECK_IS(kdsm_region_open(kdsm, "beside", &attr, &other), 0);
	CHECK(other && (uintptr_t)kdsm_region_address(other) >= KDSM_ARENA_START &&
	      (uintptr_t)kdsm_region_address(other) < KDSM_ARENA_END);
	meet();
	if (region)
		CHECK_IS(words[1000], nodes);
	meet();
	kdsm_region_close(other);
	kdsm_region_close(region);
	attr.address = KDSM_ARENA_START - 4096;
	CHECK_IS(kdsm_region_open(kdsm, "high", &attr, &region), -EINVAL);
	attr.address = KDSM_ARENA_END - 4096;
	CHECK_IS(kdsm_region_open(kdsm, "low", &attr, &region), -EINVAL);
}

static const struct guest_test tests[] = {
#define TEST(name) { #name, name }
	TEST(region_create_together),
	TEST(region_exclusive),
	TEST(region_mismatch),
	TEST(region_bad_attributes),
	TEST(region_zeroed),
	TEST(region_memory_again),
	TEST(region_quota),
	TEST(region_keep),
	TEST(region_destroy),
	TEST(region_permissions),
	TEST(region_mapping),
	TEST(region_killed),
	TEST(region_many),
	TEST(region_address),
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	int ret;

	guest_open("region-meeting");
	attr = attr_of(0);
	ret = kdsm_region_open(kdsm, "region-common", &attr, &common);
	if (ret)
		guest_die("region", ret);
	ret = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(common);
	guest_close();
	return ret;
}
