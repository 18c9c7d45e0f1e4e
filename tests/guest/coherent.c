// SPDX-License-Identifier: GPL-2.0
/*
 * Coherent regions of policy release on every node at the same time, on the bare ABI: a
 * node that acquires sees what other nodes wrote and released; several nodes write to one
 * block; blocks of several sizes.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "coherent.h"

#define KIB		1024UL
/* Bytes of the region: as many blocks as a test asks for, or 1 MiB or 4 MiB */
#define SIZE		(many ? many * block_size : block_size < 16384 ? 1024 * KIB : 4096 * KIB)
#define WORDS		(SIZE / 8)

static uint32_t block_size;
static size_t many;		/* blocks that a test asks for, or 0 */

static void attach(const char *name)
{
	attach_region(name, KDSM_POLICY_RELEASE, SIZE, block_size);
}

static uint64_t value(unsigned int who, unsigned int round, size_t word)
{
	return (uint64_t)(who + 1) << 56 | (uint64_t)round << 40 | word;
}

/* New memory is zero on every node, and every node sees writes after exchange(). */
static void coherent_handing_on(void)
{
	unsigned int round, i, writer;
	size_t bad = 0;

	attach("on");
	for (i = 0; i < WORDS; i += 512)
		bad += words[i] != 0;
	exchange();
	for (round = 0; round < 6; round++) {
		writer = round % nodes;
		if (node == writer)
			for (i = 0; i < WORDS; i += 64)
				words[i] = value(writer, round, i);
		exchange();
		for (i = 0; i < WORDS; i += 64)
			bad += words[i] != value(writer, round, i);
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

/* All nodes write to all blocks at the same time, each to its own words. */
static void coherent_false_sharing(void)
{
	unsigned int round;
	size_t i, bad = 0;

	attach("false");
	for (round = 0; round < 5; round++) {
		for (i = 0; i < WORDS / 16; i++)
			if (i % nodes == node)
				words[i] = value(node, round, i);
		exchange();
		for (i = 0; i < WORDS / 16; i++)
			bad += words[i] != value(i % nodes, round, i);
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

/* Single bytes; and in some rounds some blocks are not written. */
static void coherent_bytes(void)
{
	uint8_t *bytes, expected;
	unsigned int round, last;
	size_t i, bad = 0;

	attach("bytes");
	bytes = (uint8_t *)words;
	for (round = 1; round < 8; round++) {
		for (i = 0; i < 64 * KIB; i++)
			if (i % nodes == node && (i / 4096) % round == 0)
				bytes[i] = round ^ i;
		exchange();
		for (i = 0; i < 64 * KIB; i++) {
			for (last = round; last && (i / 4096) % last; last--)
				;
			expected = last ^ i;
			bad += bytes[i] != expected;
		}
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

/*
 * Data races: all nodes write the same bytes. When all have released, a byte has one of the values
 * that were written, not the value before, also if all nodes wrote the same value.
 */
static void coherent_races(void)
{
	uint8_t *bytes;
	unsigned int round;
	size_t i, bad = 0;

	attach("races");
	bytes = (uint8_t *)words;
	for (round = 1; round < 5; round++) {
		for (i = 0; i < 16 * KIB; i += 3)
			bytes[i] = 16 * round + i % 2 * node;
		exchange();
		for (i = 0; i < 16 * KIB; i += 3)
			bad += bytes[i] < 16 * round ||
			       bytes[i] >= 16 * round + (i % 2 * nodes ?: 1);
		exchange();
	}
	CHECK_IS(bad, 0);
	detach();
}

static int races_from(uint64_t *next, struct kdsm_race *list, uint32_t room, uint64_t *lost)
{
	struct kdsm_races arg = {
		.argsz = sizeof(arg), .races = (uintptr_t)list, .count = room, .next = *next,
	};
	int err = call(KDSM_IOC_RACES, &arg);

	*next = arg.next;
	*lost = arg.lost;
	return err ?: (int)arg.count;
}

/*
 * Reports of races: all nodes but one find that another node stored to the same word, and only
 * to that word. Without races they find none.
 */
static void coherent_reports(void)
{
	const uint64_t ours = 0x1111111111111111ULL * (node + 1);
	struct kdsm_race race = { .offset = 1 };
	uint64_t next = 0, lost, sum = 0;
	uint32_t found = 0;
	unsigned int i;

	if (nodes > 14)
		return;
	attach("reports");
	CHECK_IS(words[3], 0);
	words[16 + node] = 1;		/* no race */
	exchange();
	CHECK_IS(races_from(&next, &race, 1, &lost), 0);
	CHECK_IS(next + lost, 0);
	CHECK_IS(words[3], 0);
	meet();
	words[3] = ours;
	words[16 + node] = 2;
	meet();
	exchange();
	if (races_from(&next, &race, 1, &lost) == 1) {
		found = 1;
		CHECK_IS(next, 1);
		CHECK_IS(race.number, 0);
		CHECK_IS(race.offset, 3 * 8);
		CHECK(race.mask == UINT64_MAX);
		CHECK_IS(race.before, 0);
		CHECK(race.ours == ours);
		CHECK_IS(race.node, node);
		CHECK(race.other < nodes && race.other != node);
		/* With three nodes the content may have come by way of the one that is named. */
		CHECK(race.theirs % 0x1111111111111111ULL == 0 && race.theirs != ours &&
		      race.theirs / 0x1111111111111111ULL - 1 < nodes);
		if (nodes == 2)
			CHECK(race.theirs == 0x1111111111111111ULL * (race.other + 1));
	}
	CHECK_IS(races_from(&next, &race, 1, &lost), 0);
	CHECK_IS(lost, 0);
	/* Each node tells the others whether it found the race. */
	CHECK_IS(kdsm_put(board, node, 4096, &found, sizeof(found)), 0);
	meet();
	for (i = 0; i < nodes; i++) {
		CHECK_IS(kdsm_get(board, i, 4096, &found, sizeof(found)), 0);
		sum += found;
	}
	CHECK_IS(sum, nodes - 1);

	/* A page full of races: few of a merge are kept, and the rest are counted. */
	for (i = 0; i < 512; i++)
		CHECK_IS(words[512 + i], 0);
	meet();
	for (i = 0; i < 512; i++)
		words[512 + i] = ours;
	meet();
	exchange();
	for (found = 0, sum = 0; races_from(&next, &race, 1, &lost) == 1; found++, sum += lost)
		CHECK(race.offset >= 4096 && race.offset < 8192 && race.ours == ours);
	CHECK_IS(lost, 0);
	CHECK(found <= KDSM_RACES_MERGE);
	CHECK_IS(found + sum, found ? 512 : 0);
	exchange();
	detach();
}

/* A child's writes before it exits belong to the next release of its node. */
static void coherent_child(void)
{
	unsigned int i;
	size_t bad = 0;
	pid_t child;

	attach("child");
	for (i = 0; i < nodes; i++)
		bad += words[512 * i] != 0;
	meet();
	fflush(stdout);
	child = fork();
	if (!child) {
		words[512 * node] = value(node, 1, 0);
		_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	exchange();
	for (i = 0; i < nodes; i++)
		bad += words[512 * i] != value(i, 1, 0);
	CHECK_IS(bad, 0);
	detach();
}

/* ---- atomic operations, and ranges ---- */

static uint64_t atomic(enum kdsm_atomic_opcode opcode, unsigned int flags, uint64_t offset,
		       uint32_t size, uint64_t operand, uint64_t compare)
{
	struct kdsm_atomic arg = {
		.argsz = sizeof(arg), .flags = flags, .opcode = opcode, .offset = offset,
		.size = size, .operand = operand, .compare = compare,
	};

	CHECK_IS(call(KDSM_IOC_ATOMIC, &arg), 0);
	return arg.result;
}

static uint64_t atomic_load(uint64_t offset, unsigned int flags)
{
	return atomic(KDSM_ATOMIC_LOAD, flags, offset, 8, 0, 0);
}

#define ADDS	(block_size > 65536 ? 10U : 60U)

/* Words of the first block that all threads count in, by additions, and one by compare-and-swap */
static void *atomic_threads(void *arg)
{
	uint64_t was, now;

	(void)arg;
	for (unsigned int i = 0; i < ADDS; i++) {
		atomic(KDSM_ATOMIC_ADD, 0, 0, 4, 1, 0);
		atomic(KDSM_ATOMIC_ADD, i % 2 ? KDSM_ATOMIC_ACQUIRE : 0, 4, 4, -2, 0);
		atomic(KDSM_ATOMIC_ADD, 0, 8, 8, 1ULL << 32, 0);
		for (now = atomic_load(16, 0);; now = was) {
			was = atomic(KDSM_ATOMIC_CAS, 0, 16, 8, now + 3, now);
			if (was == now)
				break;
		}
	}
	return NULL;
}

/* All nodes count, and keep copies, which plain loads use, and dirty the block by plain stores. */
static void coherent_counters(void)
{
	const uint64_t adds = 2ULL * nodes * ADDS;
	pthread_t threads[2];
	size_t bad = 0;

	attach("counters");
	for (unsigned int i = 0; i < 2; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, atomic_threads, NULL), 0);
	for (unsigned int i = 0; i < 200; i++) {
		/* Copies may be old, but not from the future. */
		bad += ((volatile uint32_t *)words)[0] > adds;
		words[64 + node] = i;
		if (i % 20 == 0)
			CHECK_IS(release(NULL), 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		CHECK_IS(pthread_join(threads[i], NULL), 0);
	meet();
	CHECK_IS(bad, 0);
	CHECK_IS(atomic_load(0, 0), (uint32_t)adds | (uint64_t)(uint32_t)(-2 * adds) << 32);
	CHECK_IS(atomic_load(8, 0), adds << 32);
	CHECK_IS(atomic_load(16, 0), 3 * adds);
	exchange();
	CHECK_IS(words[1], adds << 32);
	for (unsigned int i = 0; i < nodes; i++)
		CHECK_IS(words[64 + i], 199);
	detach();
}

/*
 * A token goes round the nodes in a word. The node that has it changes plain words in several
 * blocks, of which all nodes have copies.
 */
static void coherent_passing(void)
{
	/* A large block takes long to move, which it does for each node that looks. */
	const unsigned int rounds = block_size > 65536 ? 2 : 10;
	const size_t step = block_size / 8;
	size_t bad = 0;

	attach("passing");
	for (size_t i = 1; i <= 3; i++)
		CHECK_IS(words[i * step], 0);
	meet();
	for (uint64_t turn = node; turn < rounds * nodes; turn += nodes) {
		while (atomic_load(0, KDSM_ATOMIC_ACQUIRE) != turn)
			usleep(200);
		for (size_t i = 1; i <= 3; i++) {
			bad += words[i * step] != turn;
			words[i * step] = turn + 1;
		}
		CHECK_IS(atomic(KDSM_ATOMIC_EXCHANGE, KDSM_ATOMIC_RELEASE, 0, 8, turn + 1, 0),
			 turn);
	}
	CHECK_IS(bad, 0);
	detach();
}

static int advise(enum kdsm_advice advice, uint64_t first, uint64_t blocks)
{
	struct kdsm_advise arg = {
		.argsz = sizeof(arg), .advice = advice, .offset = first * block_size,
		.length = blocks * block_size,
	};

	return call(KDSM_IOC_ADVISE, &arg);
}

/*
 * Node 0 flushes two blocks of four that it has written. The others refresh one of them, and see
 * its new content; copies of other blocks stay.
 */
static void coherent_ranges(void)
{
	const size_t step = block_size / 8;
	long taken;

	if (nodes < 2)
		return;
	attach("ranges");
	for (uint64_t round = 1; round < 5; round++) {
		/* All nodes have copies, also of blocks that node 0 writes without a release. */
		for (size_t i = 0; i < 4; i++)
			CHECK(words[i * step] <= round);
		meet();
		for (size_t i = 0; i < 4 && node == round % 2; i++)
			words[i * step] = round;
		if (node == round % 2)
			CHECK_IS(advise(KDSM_ADVICE_FLUSH, 1, 2), 0);
		meet();
		taken = counter("invalidations");
		CHECK_IS(advise(KDSM_ADVICE_REFRESH, 2, 1), 0);
		CHECK(counter("invalidations") - taken <= 1);
		CHECK_IS(words[2 * step], round);
		CHECK_IS(advise(KDSM_ADVICE_REFRESH, 1, 2), 0);
		CHECK_IS(words[step], round);
		CHECK_IS(words[2 * step], round);
		exchange();
		for (size_t i = 0; i < 4; i++)
			CHECK_IS(words[i * step], round);
		exchange();
	}
	detach();
}

/* Homes go round the nodes in groups, or are ranges. A home owns its blocks from the start. */
static void coherent_homes(void)
{
	struct kdsm_home home = { .argsz = sizeof(home) };
	unsigned int last = 0;
	uint64_t blocks, i;
	long owned = 0, slow;

	if (block_size > 4096)
		return;
	many = 3 * KDSM_CYCLE_BLOCKS;
	attach("cyclic");
	for (i = 0; i < many; i++) {
		home.offset = i * block_size + i % block_size;
		CHECK_IS(call(KDSM_IOC_HOME, &home), 0);
		CHECK_IS(home.node, i / KDSM_CYCLE_BLOCKS % nodes);
	}
	detach();
	region_flags = KDSM_REGION_CONTIGUOUS;
	attach("contiguous");
	region_flags = 0;
	blocks = mapped / block_size;
	slow = counter("slow_releases");
	for (i = 0; i < blocks; i++) {
		home.offset = i * block_size;
		CHECK_IS(call(KDSM_IOC_HOME, &home), 0);
		CHECK(home.node >= last && home.node < nodes);
		last = home.node;
		owned += home.node == node;
		if (home.node == node)
			words[i * block_size / 8] = i;
	}
	CHECK(owned && owned <= (long)((blocks + nodes - 1) / nodes));
	exchange();
	CHECK_IS(counter("slow_releases") - slow, 0);
	for (i = 0; i < blocks; i++)
		CHECK_IS(words[i * block_size / 8], i);
	detach();
	many = 0;
}

/* Node 1 reads and writes blocks whose home is node 0, which needs no memory for them. */
static void coherent_first_touch(void)
{
	const uint64_t range = 4UL << 20, step = 16 * block_size;

	if (nodes < 2 || block_size > 4096)
		return;
	for (uint32_t policy = KDSM_POLICY_RELEASE; policy <= KDSM_POLICY_STRICT; policy++) {
		region_flags = KDSM_REGION_CONTIGUOUS;
		attach_region("first-touch", policy, nodes * range, block_size);
		region_flags = 0;
		for (uint64_t i = 0; i < range && node == 1; i += step) {
			CHECK_IS(words[i / 8], 0);
			words[i / 8] = i + 1;
		}
		exchange();
		if (node == 0)
			CHECK_IS(counter("resident"), 0);
		for (uint64_t i = 0; i < range; i += step)
			CHECK_IS(words[i / 8], i + 1);
		detach();
	}
}

/* ---- cost ---- */

#define BLOCKS	1000

/* Node 0 writes a word of every block, in ranges of length blocks with gaps of the same length. */
static void write_ranges(size_t length, uint64_t what)
{
	for (size_t i = 0; i < BLOCKS; i++)
		if (node == 0 && i / length % 2 == 0)
			words[i * (block_size / 8)] = what;
}

static void coherent_cost(void)
{
	long flushes, faults, fast, slow, reads, taken, sum = 0;

	if (block_size > 4096)
		return;
	many = 2 * BLOCKS;
	attach("cost");
	write_ranges(BLOCKS, 1);
	exchange();
	/* Node 0 owns all of the blocks now, so its next release needs no other node. */
	flushes = counter("flushes");
	faults = counter("write_faults");
	fast = counter("fast_releases");
	slow = counter("slow_releases");
	write_ranges(BLOCKS, 2);
	if (node == 0) {
		CHECK_IS(release(NULL), 0);
		printf("# release of %u blocks: %ld flushes, %ld write faults, %ld taken over\n",
		       BLOCKS, counter("flushes") - flushes, counter("write_faults") - faults,
		       counter("slow_releases") - slow);
		CHECK(counter("flushes") - flushes <= 3);
		CHECK_IS(counter("write_faults") - faults, 0);
		CHECK_IS(counter("slow_releases") - slow, 0);
		CHECK_IS(counter("fast_releases") - fast, BLOCKS);
	}
	exchange();
	/* Notices tell the other nodes which node wrote each block that they lack. */
	reads = counter("fast_reads");
	slow = counter("slow_reads");
	faults = counter("read_faults");
	for (size_t i = 0; i < BLOCKS; i++)
		sum += words[i * (block_size / 8)];
	CHECK_IS(sum, 2 * BLOCKS);
	if (node != 0) {
		CHECK_IS(counter("fast_reads") - reads, BLOCKS);
		/* Most blocks were read together with an earlier block. */
		printf("# %u blocks read in sequence: %ld read faults\n", BLOCKS,
		       counter("read_faults") - faults);
		CHECK(counter("read_faults") - faults <= BLOCKS / 20);
	}
	CHECK_IS(counter("slow_reads") - slow, 0);
	exchange();
	/* Ten ranges of blocks that the other nodes have cached become invalid. */
	flushes = counter("flushes");
	taken = counter("invalidations");
	write_ranges(BLOCKS / 20, 3);
	exchange();
	if (node != 0) {
		printf("# %ld blocks in 10 ranges made invalid: %ld flushes\n",
		       counter("invalidations") - taken, counter("flushes") - flushes);
		CHECK_IS(counter("invalidations") - taken, BLOCKS / 2);
		CHECK(counter("flushes") - flushes <= 20);
	}
	detach();
	many = 0;
}

/*
 * A block that several releases found unmodified is write-protected, neighbours by one TLB
 * flush.
 */
static void coherent_retire(void)
{
	struct timespec begin, end;
	long flushes, most = 0, sum = 0, faults;

	if (block_size > 4096)
		return;
	many = 2 * BLOCKS;
	attach("retire");
	write_ranges(BLOCKS / 20, 1);
	exchange();
	for (unsigned int i = 0; node == 0 && i < 12; i++) {
		flushes = counter("flushes");
		clock_gettime(CLOCK_MONOTONIC, &begin);
		CHECK_IS(release(NULL), 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		flushes = counter("flushes") - flushes;
		sum += flushes;
		if (flushes <= most)
			continue;
		most = flushes;
		printf("# release of %u blocks in 10 ranges, not written lately: %ld flushes, %.1f ms\n",
		       BLOCKS / 2, flushes, (end.tv_sec - begin.tv_sec) * 1e3 +
		       (end.tv_nsec - begin.tv_nsec) / 1e6);
	}
	if (node == 0)
		CHECK(sum >= 10 && sum <= 20);
	/* The blocks are write-protected, so the module notices new writes to them. */
	faults = counter("write_faults");
	write_ranges(BLOCKS / 20, 2);
	if (node == 0)
		CHECK_IS(counter("write_faults") - faults, BLOCKS / 2);
	exchange();
	sum = 0;
	for (size_t i = 0; i < BLOCKS; i++)
		sum += words[i * (block_size / 8)];
	CHECK_IS(sum, BLOCKS);
	detach();
	many = 0;
}

static void coherent_bad_calls(void)
{
	static struct kdsm_signature bad;
	struct kdsm_submit submit = { .argsz = sizeof(submit), .count = 1 };
	struct kdsm_races races = { .argsz = sizeof(races) };

	attach("bad");
	CHECK_IS(acquire(NULL), -EINVAL);
	CHECK_IS(release(NULL), 0);
	CHECK_IS(release((void *)8), -EFAULT);
	CHECK_IS(acquire((void *)8), -EFAULT);
	bad.count = KDSM_NOTICES_MAX + 1;
	CHECK_IS(acquire(&bad), -EINVAL);
	bad = (struct kdsm_signature){ .count = 1, .notices[0] = { .writer = nodes, .count = 1 } };
	CHECK_IS(acquire(&bad), -EINVAL);
	/* The writer of the last share is no node; a summary has no shares */
	bad.notices[0] = (struct kdsm_notice){ .writer = nodes - 1, .count = 2, .share = 1 };
	CHECK_IS(acquire(&bad), -EINVAL);
	bad.notices[0] = (struct kdsm_notice){ .writer = KDSM_WRITER_UNKNOWN, .count = 2,
					       .share = 1 };
	CHECK_IS(acquire(&bad), -EINVAL);
	bad.notices[0] = (struct kdsm_notice){ .writer = KDSM_WRITER_UNKNOWN, .count = 2 };
	CHECK_IS(acquire(&bad), 0);
	bad.notices[0].count = 1;
	bad.notices[0].writer = 0;
	bad.notices[0].first = SIZE / block_size;
	CHECK_IS(acquire(&bad), -EINVAL);
	bad.notices[0].first = SIZE / block_size - 1;
	bad.notices[0].count = 2;
	CHECK_IS(acquire(&bad), -EINVAL);
	bad.notices[0].count = 1;
	bad.notices[0].ts = UINT64_MAX;
	CHECK_IS(acquire(&bad), -EINVAL);
	CHECK_IS(call(KDSM_IOC_SUBMIT, &submit), -EOPNOTSUPP);
	CHECK_IS(call(KDSM_IOC_RACES, &races), 0);
	races.flags = 1;
	CHECK_IS(call(KDSM_IOC_RACES, &races), -EINVAL);
	CHECK(mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED);
	CHECK(madvise(words, 4096, MADV_DONTNEED) && errno == EINVAL);
	detach();
}

/* As acquire(), by a file that is open for reading only */
static int acquire_reading(int reader, struct kdsm_signature *signature)
{
	struct kdsm_fence arg = { .argsz = sizeof(arg), .signature = (uintptr_t)signature };

	return ioctl(reader, KDSM_IOC_ACQUIRE, &arg) ? -errno : 0;
}

/*
 * A program that may only read a region acquires what others wrote, and does no harm by a
 * signature that no release made.
 */
static void coherent_reader(void)
{
	const size_t second = block_size / 8;	/* a word of the second block */
	const unsigned int victim = nodes > 1;
	static struct kdsm_signature given, forged;
	struct kdsm_region_open again = { .argsz = sizeof(again) };
	int reader = open(KDSM_DEVICE, O_RDONLY | O_CLOEXEC);

	attach("reader");
	strcpy(again.name, attached);
	CHECK(!ioctl(reader, KDSM_IOC_REGION_OPEN, &again));
	/* All nodes have a copy of the first block; after this only the victim has a new one. */
	CHECK_IS(words[0], 0);
	meet();
	if (node == 0)
		words[0] = 7;
	exchange();
	if (node == victim)
		CHECK_IS(words[0], 7);
	meet();

	if (node == 0) {
		words[second] = 8;
		CHECK_IS(release(&given), 0);
		CHECK_IS(kdsm_put(board, node, 8192, &given, sizeof(given)), 0);
	}
	meet();
	if (node == victim) {
		/* The timestamp of the signature is newer than all that this node knows. */
		CHECK_IS(kdsm_get(board, 0, 8192, &given, sizeof(given)), 0);
		CHECK(given.count > 0);
		forged.floor = given.notices[given.count - 1].ts + 1;
		CHECK_IS(acquire_reading(reader, &forged), -EINVAL);
		forged.floor = 1ULL << 62;
		CHECK_IS(acquire_reading(reader, &forged), -EINVAL);
		forged.floor = UINT64_MAX;
		CHECK_IS(acquire_reading(reader, &forged), -EINVAL);
		CHECK_IS(acquire_reading(reader, &given), 0);
		CHECK_IS(words[second], 8);
		/* The last node wrote nothing, and its copy of the first block is old. */
		forged = (struct kdsm_signature){
			.count = 1,
			.notices[0] = { .ts = given.notices[given.count - 1].ts, .count = 1,
					.writer = nodes - 1 },
		};
		CHECK_IS(acquire_reading(reader, &forged), 0);
		CHECK_IS(words[0], 7);
		words[second + 1] = 9;
	}
	exchange();
	CHECK_IS(words[0], 7);
	CHECK_IS(words[second], 8);
	CHECK_IS(words[second + 1], 9);
	detach();
	close(reader);
}

/*
 * A program that may write a region can make the region unusable, by acquiring a
 * signature that no release made. Other regions continue meanwhile, and afterwards a sound
 * region of that name can be created.
 */
static void coherent_forged(void)
{
	static struct kdsm_signature given;
	struct kdsm_signature forged = { .floor = 1ULL << 62 };
	struct kdsm_fence fence_ = { .argsz = sizeof(fence_), .signature = (uintptr_t)&forged };
	struct kdsm_region_open spoiled = {
		.argsz = sizeof(spoiled), .flags = KDSM_REGION_CREATE,
		.policy = KDSM_POLICY_RELEASE, .size = SIZE, .block_size = block_size,
	};
	int other = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);

	attach("sound");
	snprintf(spoiled.name, sizeof(spoiled.name), "spoiled-%u-%u", KDSM_POLICY_RELEASE,
		 block_size);
	CHECK(!ioctl(other, KDSM_IOC_REGION_OPEN, &spoiled));
	meet();
	if (node == 0) {
		CHECK(!ioctl(other, KDSM_IOC_ACQUIRE, &fence_));
		forged.floor++;
		CHECK(ioctl(other, KDSM_IOC_ACQUIRE, &fence_) && errno == EINVAL);
	}
	/* The next release on node 0 passes the forged floor to the other nodes. */
	fence_.signature = (uintptr_t)&given;
	CHECK(!ioctl(other, KDSM_IOC_RELEASE, &fence_));
	CHECK_IS(kdsm_put(board, node, 8192, &given, sizeof(given)), 0);
	meet();
	CHECK_IS(kdsm_get(board, 0, 8192, &given, sizeof(given)), 0);
	CHECK(given.floor == 1ULL << 62);
	CHECK(!ioctl(other, KDSM_IOC_ACQUIRE, &fence_));
	meet();
	words[node] = value(node, 1, 0);
	exchange();
	for (unsigned int i = 0; i < nodes; i++)
		CHECK(words[i] == value(i, 1, 0));
	close(other);
	detach();

	attach("spoiled");
	words[node] = value(node, 2, 0);
	exchange();
	for (unsigned int i = 0; i < nodes; i++)
		CHECK(words[i] == value(i, 2, 0));
	detach();
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(coherent_handing_on),
	TEST(coherent_false_sharing),
	TEST(coherent_bytes),
	TEST(coherent_races),
	TEST(coherent_reports),
	TEST(coherent_child),
	TEST(coherent_counters),
	TEST(coherent_passing),
	TEST(coherent_ranges),
	TEST(coherent_homes),
	TEST(coherent_first_touch),
	TEST(coherent_cost),
	TEST(coherent_retire),
	TEST(coherent_bad_calls),
	TEST(coherent_reader),
	TEST(coherent_forged),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 4096, 32768, 1 << 20 };
	int status = 0;

	guest_open("coherent-meeting");
	board_open("coherent-board");
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block_size = sizes[i];
		printf("# blocks of %u bytes\n", block_size);
		status |= guest_run(tests, argc > 1 ? argv[1] : NULL);
	}
	kdsm_region_close(board);
	guest_close();
	return status;
}
