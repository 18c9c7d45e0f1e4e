// SPDX-License-Identifier: GPL-2.0
/*
 * Coherent regions that are larger than the memory that a node has for them, on at least three
 * nodes at the same time: nodes write and read a whole region, and every value is exact. The memory
 * ends because the region has a limit, because other programs or another region hold it, or because
 * a memory cgroup is full. In the last test the kernel asks for memory. In the first one
 * memory suffices: it looks at what nodes remember of the states of blocks.
 *
 * evict [-b SIZE] [-s] [-r] [NAME]: blocks of SIZE bytes (65536); -s: segments with blocks of
 * 4 KiB, 64 KiB and 2 MiB; -r: in the tests stream and random, no limit, and a region of twice the
 * RAM of a node; only tests whose name contains NAME
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "coherent.h"
#include "random.h"

#define MIB		(1024UL * 1024)
#define LIMIT		(24 * MIB)
#define SIZE		(2 * LIMIT)
/* More than a limit: two chunks of twins, without which a node could not hand blocks over */
#define MOST		(LIMIT + 4 * MIB)
#define STRIDE		(2048 / 8)	/* words from one that is checked to the next */

static const struct kdsm_region_segment segments[] = {
	{ 0, 4096, 0 }, { SIZE / 4, 65536, 0 }, { SIZE / 2, 2 * MIB, 0 },
};

static uint32_t policy, block_size = 65536;
static uint64_t region_size = SIZE, region_limit = LIMIT;
static unsigned int accesses = 100;	/* at random, by each node */

/* Memory that take_memory() takes away */
static char *taken;

/* All nodes attach the region. Each may hold limit bytes of it; 0: there is no limit. */
static void attach(const char *name, uint64_t limit)
{
	attach_region(name, policy, region_size, block_size);
	if (limit && !node)
		CHECK_IS(region_set("limit=%luM", limit / MIB), 0);
	meet();
	CHECK_IS(counter("limit"), limit);
}

/* Number of words that are checked */
static uint64_t count(void)
{
	return region_size / 8 / STRIDE;
}

/* A region without a limit may hold all memory of the node. */
static void check_held(void)
{
	CHECK(!region_limit || counter("memory") <= (long)MOST);
}

static uint64_t value(unsigned int round, uint64_t word)
{
	return (uint64_t)(round + 1) << 32 | word;
}

static void print_work(const char *what)
{
	printf("# %s: %ld chunks evicted, %ld pushes, %ld KiB held, %ld KiB of metadata\n", what,
	       counter("evictions"), counter("pushes"), counter("memory") / 1024,
	       counter("metadata") / 1024);
}

/* A node has a record only of a block that it holds. */
static void check_metadata(void)
{
	long held = counter("resident") / block_size;
	long known = counter("readable") + counter("writable") + counter("invalid");

	printf("# %ld blocks held, records of %ld\n", held, known);
	CHECK(known <= held);
}

static void write_all(unsigned int round)
{
	uint64_t i;

	for (i = 0; i < count(); i++)
		words[i * STRIDE] = value(round, i);
}

static void check_all(unsigned int round)
{
	uint64_t i, bad = 0;

	for (i = 0; i < count(); i++)
		bad += words[i * STRIDE] != value(round, i);
	CHECK_IS(bad, 0);
}

/* Each node in turn writes all words, and all nodes then read them at the same time. */
static void evict_stream(void)
{
	unsigned int round;

	attach("stream", region_limit);
	for (round = 0; round < nodes; round++) {
		if (node == round)
			write_all(round);
		check_held();
		exchange();
		check_all(round);
		check_held();
		exchange();
	}
	CHECK(counter("evictions") > 0);
	check_metadata();
	print_work("stream");
	detach();
}

/*
 * Blocks of 4 KiB that programs have stopped writing: a node remembers their states in at most 1 %
 * of the memory of their content.
 */
static void evict_metadata(void)
{
	const size_t blocks = 6 * MIB / 4096;
	size_t i, bad = 0;
	unsigned int round;

	attach_region("metadata", policy, 6 * MIB, 4096);
	for (i = node * blocks / nodes; i < (node + 1) * blocks / nodes; i++)
		words[i * 512] = value(0, i);
	exchange();
	for (i = 0; i < blocks; i++)
		bad += words[i * 512] != value(0, i);
	CHECK_IS(bad, 0);
	/* A block leaves the write set after some releases that find no write, */
	for (round = 0; round < 10; round++)
		exchange();
	/* and its state takes less memory some seconds after the last use */
	sleep(4);
	printf("# %ld KiB held, %ld bytes of metadata\n", counter("resident") / 1024,
	       counter("metadata"));
	CHECK(counter("resident") >= (long)(6 * MIB));
	CHECK(100 * counter("metadata") <= counter("resident"));
	detach();
}

/* All nodes write and read words of their own, in any order, and then all words of all nodes. */
static void evict_random(void)
{
	struct random random = { node + 1 }, other;
	uint64_t i, bad = 0, *mine, own = count() / nodes;
	unsigned int n;

	attach("random", region_limit);
	mine = calloc(own, sizeof(*mine));
	for (n = 0; n < accesses; n++) {
		i = random_below(&random, own);
		bad += words[(i * nodes + node) * STRIDE] != mine[i];
		mine[i] = value(node, n);
		words[(i * nodes + node) * STRIDE] = mine[i];
		if (n % 50 == 49)
			CHECK_IS(release(NULL), 0);
	}
	CHECK_IS(bad, 0);
	check_held();
	exchange();
	/* Repeat the random numbers of the next node to find what it wrote last. */
	other.state = (node + 1) % nodes + 1;
	memset(mine, 0, own * sizeof(*mine));
	for (n = 0; n < accesses; n++)
		mine[random_below(&other, own)] = value((node + 1) % nodes, n);
	for (i = 0; i < own; i += 1 + i % 5)
		bad += words[(i * nodes + (node + 1) % nodes) * STRIDE] != mine[i];
	CHECK_IS(bad, 0);
	free(mine);
	print_work("random");
	detach();
}

/* ---- no limit of the region, and other memory that runs out ---- */

/* Print a line into a file. 0 or -errno. */
static int print_to(const char *path, const char *format, ...)
{
	FILE *stream = fopen(path, "we");
	va_list args;
	int err = 0;

	if (!stream)
		return -errno;
	va_start(args, format);
	vfprintf(stream, format, args);
	va_end(args);
	if (fclose(stream))
		err = -errno;
	return err;
}

/* The value of a line of /proc/meminfo, in bytes */
static long meminfo(const char *name)
{
	FILE *stream = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	while (stream && fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name)))
			kib = strtol(strchr(line, ':') + 1, NULL, 10);
	if (stream)
		fclose(stream);
	return kib * 1024;
}

/* The bytes that the CPUs keep for their next allocations. MemAvailable leaves them out. */
static long kept_memory(void)
{
	FILE *stream = fopen("/proc/zoneinfo", "re");
	char line[128];
	long pages = 0, count;

	while (stream && fgets(line, sizeof(line), stream))
		if (sscanf(line, " count: %ld", &count) == 1)
			pages += count;
	if (stream)
		fclose(stream);
	return pages * sysconf(_SC_PAGESIZE);
}

static long available_memory(void)
{
	return meminfo("MemAvailable") + kept_memory();
}

/*
 * Allocate memory of the node until the module may use about this many bytes. The module leaves
 * 32 MiB to others on machines of up to 512 MiB, and a sixteenth of the RAM on larger ones. Without
 * watermark_boost_factor the kernel does not reserve several MiB more for a while.
 */
static void take_memory(long bytes)
{
	long reserve = meminfo("MemTotal") / 16, size = 0, more;
	unsigned int tries;

	if (reserve < (long)(32 * MIB))
		reserve = 32 * MIB;
	CHECK_IS(print_to("/proc/sys/vm/watermark_boost_factor", "0"), 0);
	taken = mmap(NULL, meminfo("MemTotal"), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (taken == MAP_FAILED)
		guest_die("mmap", -errno);
	/* The kernel may free other memory meanwhile. */
	for (tries = 0; tries < 8; tries++) {
		more = (available_memory() - reserve - bytes) / 4096 * 4096;
		if (more < (long)MIB)
			break;
		memset(taken + size, 1, more);
		size += more;
	}
	printf("# %ld KiB are available, and %ld KiB of that are for others\n",
	       available_memory() / 1024, reserve / 1024);
}

static void give_memory(void)
{
	if (taken)
		munmap(taken, meminfo("MemTotal"));
	taken = NULL;
}

/* Node 0 writes all words, and all nodes then read them at the same time. */
static void evict_all(void)
{
	if (!node)
		write_all(0);
	exchange();
	check_all(0);
	exchange();
	/* Other nodes may have taken all chunks over from node 0, which no cgroup pays for */
	CHECK(node || counter("evictions") > 0);
}

/* The largest number of bytes that this node has held of the region since watch_start() */
static pthread_t watcher;
static atomic_bool is_watching;
static long most_held;

static void *watch(void *arg)
{
	long now;

	(void)arg;
	while (is_watching) {
		now = counter("memory");
		most_held = now > most_held ? now : most_held;
		usleep(200000);
	}
	return NULL;
}

static void watch_start(void)
{
	most_held = 0;
	is_watching = true;
	CHECK_IS(pthread_create(&watcher, NULL, watch, NULL), 0);
}

static void watch_end(void)
{
	is_watching = false;
	CHECK_IS(pthread_join(watcher, NULL), 0);
	printf("# at most %ld KiB held\n", most_held / 1024);
}

static void evict_memory(void)
{
	attach("memory", 0);
	exchange();		/* allocate the board now: no region evicts chunks for it */
	take_memory(LIMIT);
	meet();
	watch_start();
	evict_all();
	watch_end();
	CHECK(most_held <= (long)(SIZE * 3 / 4));
	print_work("memory");
	meet();
	give_memory();
	detach();
}

/* A region that comes later gets its share of the memory of the node. */
static void evict_other(void)
{
	const uint64_t size = LIMIT / 2, part = LIMIT / 8 / STRIDE;
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = size, .policy = policy, .block_size = block_size,
	};
	struct kdsm_region *other = NULL;
	uint64_t *mine, i, bad = 0;

	attach("first", 0);
	exchange();		/* allocate the board now: no region evicts chunks for it */
	if (!node)
		take_memory(LIMIT + 2 * MIB);
	meet();
	/* All memory of node 0 goes to the first region. */
	for (i = 0; !node && i < part; i++)
		words[i * STRIDE] = value(0, i);
	exchange();
	CHECK_IS(kdsm_region_open(kdsm, "evict-other", &attr, &other), 0);
	if (!other)
		guest_die("evict-other", -ENOMEM);
	mine = kdsm_region_address(other);
	for (i = 0; !node && i < size / 8; i += STRIDE)
		mine[i] = i;
	for (i = 0; !node && i < size / 8; i += STRIDE)
		bad += mine[i] != i;
	CHECK_IS(bad, 0);
	CHECK(node || counter("evictions") > 0);
	print_work("other");
	exchange();
	for (i = 0; i < part; i++)
		bad += words[i * STRIDE] != value(0, i);
	CHECK_IS(bad, 0);
	give_memory();
	meet();
	kdsm_region_close(other);
	detach();
}

#define GROUP	"/sys/fs/cgroup/evict"

static void evict_cgroup(void)
{
	attach("cgroup", 0);
	print_to("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	CHECK_IS(mkdir(GROUP, 0755), 0);
	CHECK_IS(print_to(GROUP "/memory.max", "%lu", LIMIT + 8 * MIB), 0);
	CHECK_IS(print_to(GROUP "/cgroup.procs", "%d", getpid()), 0);
	meet();
	evict_all();
	print_work("cgroup");
	CHECK_IS(print_to("/sys/fs/cgroup/cgroup.procs", "%d", getpid()), 0);
	detach();
	CHECK_IS(rmdir(GROUP), 0);
}

/* ---- the shrinker ---- */

static void evict_shrink(void)
{
	unsigned int tries;
	long held;

	attach("shrink", 0);
	if (!node)
		write_all(0);
	exchange();
	if (!node) {
		held = counter("memory");
		CHECK_IS(counter("evictions"), 0);
		for (tries = 0; tries < 50 && counter("evictions") < 2; tries++) {
			CHECK_IS(print_to("/proc/sys/vm/drop_caches", "2"), 0);
			usleep(100000);
		}
		CHECK(counter("evictions") >= 2);
		CHECK(counter("memory") < held);
		print_work("shrink");
	}
	exchange();
	check_all(0);
	detach();
}

/* A region that only several nodes together can hold */
static void use_ram(void)
{
	region_size = 2 * meminfo("MemTotal") / (2 * MIB) * (2 * MIB);
	region_limit = 0;
	accesses = region_size / block_size / 4;
	printf("# a region of %lu MiB\n", region_size / MIB);
}

#define TEST(name) { #name, name }

static const struct guest_test tests[] = {
	TEST(evict_metadata),
	TEST(evict_stream),
	TEST(evict_random),
	TEST(evict_memory),
	TEST(evict_other),
	TEST(evict_cgroup),
	TEST(evict_shrink),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	const char *only = NULL;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-b") && i + 1 < argc)
			block_size = strtoul(argv[++i], NULL, 0);
		else if (!strcmp(argv[i], "-s"))
			region_segments = segments;
		else if (!strcmp(argv[i], "-r"))
			use_ram();
		else
			only = argv[i];
	}
	if (region_segments) {
		region_segment_count = sizeof(segments) / sizeof(segments[0]);
		block_size = segments[0].block_size;
	}
	return run_policies("evict", &policy, tests, only);
}
