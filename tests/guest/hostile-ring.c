// SPDX-License-Identifier: GPL-2.0
/*
 * Rings by the bare device: every documented error, and programs that break the rules of the
 * shared memory. On one node or several, which do not wait for each other.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "hostile.h"

#define ENTRIES	64U
#define BUFFER	(1U << 20)
/* Time for which a thread scribbles, in ms */
#define SCRIBBLE 3000

struct ring {
	int file;
	struct kdsm_ring_setup setup;
	uint8_t *memory;
	struct kdsm_ring_head *head;
	struct kdsm_ring_entry *entries;
	struct kdsm_ring_completion *completions;
};

static struct kdsm_info info;
static uint64_t part_size;

static int bound(int flags, const char *name)
{
	int file = device(flags), error;
	struct kdsm_region_open arg = region(file, name);

	arg.flags &= ~KDSM_REGION_EXCL;
	error = call(file, KDSM_IOC_REGION_OPEN, &arg);
	if (error)
		tap_bail("cannot open a region: %s", strerror(-error));
	part_size = arg.part_size;
	return file;
}

static struct kdsm_ring_setup wish(void)
{
	return (struct kdsm_ring_setup){
		.argsz = sizeof(struct kdsm_ring_setup),
		.entries = ENTRIES,
		.buffer_size = BUFFER,
	};
}

static struct ring ring_of(int file)
{
	struct ring ring = { .setup = wish() };
	int error = call(file, KDSM_IOC_RING_SETUP, &ring.setup);

	if (error)
		tap_bail("cannot make a ring: %s", strerror(-error));
	ring.file = ring.setup.file;
	ring.memory = mmap(NULL, ring.setup.size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.file, 0);
	if (ring.memory == MAP_FAILED)
		tap_bail("cannot map a ring: %s", strerror(errno));
	ring.head = (void *)ring.memory;
	ring.entries = (void *)(ring.memory + ring.setup.submissions);
	ring.completions = (void *)(ring.memory + ring.setup.completions);
	return ring;
}

static void drop(struct ring *ring)
{
	munmap(ring->memory, ring->setup.size);
	close(ring->file);
}

static int enter(const struct ring *ring, uint32_t submit, uint32_t wait, uint64_t timeout,
		 struct kdsm_ring_enter *result)
{
	struct kdsm_ring_enter arg = {
		.argsz = sizeof(arg),
		.submit = submit,
		.wait = wait,
		.timeout = timeout,
	};
	int error = call(ring->file, KDSM_IOC_RING_ENTER, &arg);

	if (result)
		*result = arg;
	return error;
}

/* ---- setup and mappings ---- */

static int count_files(void)
{
	int file = dup(0);

	close(file);
	return file;	/* the lowest free number */
}

static int small_limit(void *data)
{
	const struct rlimit limit = { 1 << 20, 1 << 20 };
	struct kdsm_ring_setup arg = wish();

	arg.buffer_size = 4 << 20;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return -EPERM;
	return call(*(int *)data, KDSM_IOC_RING_SETUP, &arg);
}

static void setups(int file)
{
	struct kdsm_ring_setup arg;
	struct kdsm_region_open coherent;
	int other = device(O_RDWR), before = count_files();
	char *lone = lone_page();

#define TRY(what, field, value, expected) do {						\
	arg = wish();									\
	arg.field = (value);								\
	tap_result(call(file, KDSM_IOC_RING_SETUP, &arg), expected, "setup, %s", what);	\
} while (0)
	TRY("unknown flag", flags, 1, -EINVAL);
	TRY("no entries", entries, 0, -EINVAL);
	TRY("too many entries", entries, KDSM_RING_MAX_ENTRIES + 1, -EINVAL);
	TRY("2^32 entries", entries, UINT32_MAX, -EINVAL);
	TRY("too large a buffer", buffer_size, KDSM_RING_MAX_BUFFER + 1ULL, -EINVAL);
	TRY("a buffer of 2^64", buffer_size, UINT64_MAX, -EINVAL);
	TRY("too short a struct", argsz, KDSM_RING_SETUP_SIZE_VER0 - 8, -EINVAL);
	TRY("too long a struct", argsz, 4097, -E2BIG);
#undef TRY
	arg = wish();
	tap_result(call(other, KDSM_IOC_RING_SETUP, &arg), -EBADFD, "setup on a file that is not bound");
	tap_result(call(file, KDSM_IOC_RING_SETUP, NULL), -EFAULT, "setup at NULL");
	memcpy(lone + sysconf(_SC_PAGESIZE) - sizeof(arg), &arg, sizeof(arg));
	mprotect(lone, sysconf(_SC_PAGESIZE), PROT_READ);
	tap_result(call(file, KDSM_IOC_RING_SETUP, lone + sysconf(_SC_PAGESIZE) - sizeof(arg)),
		   -EFAULT, "setup in memory that cannot be written");
	tap_result(as_nobody(small_limit, &file), -EDQUOT, "setup above RLIMIT_MEMLOCK");
	tap_ok(count_files() == before, "failures leave no file open");
	coherent = region(other, "ring-coherent");
	coherent.policy = KDSM_POLICY_STRICT;
	must(call(other, KDSM_IOC_REGION_OPEN, &coherent), "a coherent region");
	tap_result(call(other, KDSM_IOC_RING_SETUP, &arg), -EOPNOTSUPP, "setup for a coherent region");
	close(other);
	munmap(lone, 2 * sysconf(_SC_PAGESIZE));
}

static bool maps(const struct ring *ring, size_t length, int protection, int flags, off_t offset)
{
	void *got = mmap(NULL, length, protection, flags, ring->file, offset);

	if (got == MAP_FAILED)
		return false;
	munmap(got, length);
	return true;
}

static void mappings(int file)
{
	struct ring ring = ring_of(file);
	const int both = PROT_READ | PROT_WRITE;
	size_t size = ring.setup.size;

	tap_ok(maps(&ring, size, both, MAP_SHARED, 0), "a ring can be mapped twice");
	tap_ok(!maps(&ring, size - 4096, both, MAP_SHARED, 0), "not in part");
	tap_ok(!maps(&ring, size + 4096, both, MAP_SHARED, 0), "not beyond its end");
	tap_ok(!maps(&ring, size, both, MAP_SHARED, 4096), "not at another offset");
	tap_ok(!maps(&ring, size, both, MAP_PRIVATE, 0), "not private");
	tap_ok(!maps(&ring, size, both | PROT_EXEC, MAP_SHARED, 0), "not executable");
	tap_ok(mprotect(ring.memory, size, both | PROT_EXEC), "and not later");
	tap_ok(ioctl(ring.file, KDSM_IOC_INFO, &info) && errno == ENOTTY,
	       "other ioctls are unknown to the file of a ring");
	munmap(ring.memory + 4096, 4096);
	tap_result(enter(&ring, 0, 0, 0, NULL), 0, "a ring with a hole in its mapping works");
	drop(&ring);
}

/* ---- entries ---- */

static struct kdsm_op good(void)
{
	return (struct kdsm_op){
		.opcode = KDSM_OP_GET,
		.node = (info.node + 1) % info.nodes,
		.length = 8,
	};
}

/* Submit one operation, and return the status of its completion. */
static int one(struct ring *ring, struct kdsm_op op)
{
	uint32_t tail = ring->head->submission_tail;
	struct kdsm_ring_completion *completion;

	ring->entries[tail % ENTRIES] = (struct kdsm_ring_entry){ .op = op, .data = 4711 + tail };
	__atomic_store_n(&ring->head->submission_tail, tail + 1, __ATOMIC_RELEASE);
	if (enter(ring, 1, 1, UINT64_MAX, NULL))
		return 1;
	completion = &ring->completions[ring->head->completion_head++ % ENTRIES];
	return completion->data == 4711 + tail ? completion->status : 1;
}

static void entries(int file)
{
	struct ring ring = ring_of(file);
	struct kdsm_ring_enter result;
	int reader, status;
	struct kdsm_op op;

#define TRY(what, field, value, expected) do {				\
	op = good();							\
	op.field = (value);						\
	status = one(&ring, op);					\
	tap_result(status, expected, "entry, %s", what);		\
} while (0)
	TRY("opcode 0", opcode, 0, -EINVAL);
	TRY("FIND", opcode, KDSM_OP_FIND, -EINVAL);
	TRY("STEAL", opcode, KDSM_OP_STEAL, -EINVAL);
	TRY("opcode 255", opcode, 255, -EINVAL);
	TRY("flag", flags, KDSM_OP_NOTIFY, -EINVAL);
	TRY("reserved", reserved, 1, -EINVAL);
	TRY("no such node", node, info.nodes, -EINVAL);
	TRY("node 65535", node, 65535, -EINVAL);
	TRY("length 0", length, 0, -EINVAL);
	TRY("length of 4 GiB", length, UINT32_MAX, -EFAULT);
	TRY("place behind the part", offset, part_size, -ERANGE);
	TRY("place over the end", offset, part_size - 7, -ERANGE);
	TRY("place at the end of all", offset, UINT64_MAX, -ERANGE);
	TRY("buffer behind the end", addr, ring.setup.buffer_size, -EFAULT);
	TRY("buffer over the end", addr, ring.setup.buffer_size - 7, -EFAULT);
	TRY("buffer at the end of all", addr, UINT64_MAX - 3, -EFAULT);
	TRY("a good one", addr, ring.setup.buffer_size - 8, 0);
	op = good();
	op.opcode = KDSM_OP_FAA;
	op.addr = UINT64_MAX;
	tap_result(one(&ring, op), 0, "an atomic ignores addr");
	op.offset = 4;
	tap_result(one(&ring, op), -EINVAL, "a word that is not aligned");
	op.length = 4;
	tap_result(one(&ring, op), -EINVAL, "an atomic of 4 bytes");
#undef TRY
	ring.head->submission_tail += ENTRIES + 1;
	tap_result(enter(&ring, 1, 1, UINT64_MAX, NULL), -EINVAL, "a tail too far ahead");
	ring.head->submission_tail -= ENTRIES + 2;
	tap_result(enter(&ring, 1, 1, UINT64_MAX, NULL), -EINVAL, "a tail behind the head");
	ring.head->submission_tail++;
	ring.head->completion_head += 5;
	tap_result(enter(&ring, 0, ENTRIES, UINT64_MAX, &result), 0, "a head before the tail");
	tap_ok(result.ready == ENTRIES, "it counts as a full queue");
	ring.head->completion_head -= 5;
	tap_result(one(&ring, good()), 0, "the ring works again");
	result = (struct kdsm_ring_enter){ .argsz = sizeof(result), .flags = 1 };
	tap_result(call(ring.file, KDSM_IOC_RING_ENTER, &result), -EINVAL, "enter, unknown flag");
	tap_result(call(ring.file, KDSM_IOC_RING_ENTER, NULL), -EFAULT, "enter at NULL");
	drop(&ring);

	reader = bound(O_RDONLY, "ring");
	ring = ring_of(reader);
	close(reader);
	op = good();
	tap_result(one(&ring, op), 0, "get by a file that is open for reading");
	op.opcode = KDSM_OP_PUT;
	tap_result(one(&ring, op), -EACCES, "put by it");
	op.opcode = KDSM_OP_FAA;
	tap_result(one(&ring, op), -EACCES, "fetch-and-add by it");
	drop(&ring);
}

/* ---- scribbles ---- */

static volatile bool stop;

static uint64_t mix(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* Write entries that are nearly valid, wrong heads and tails, and any bytes anywhere. */
static void *scribble(void *arg)
{
	const struct ring *ring = arg;
	uint64_t seed = 42 + info.node;
	volatile uint32_t *head = (void *)ring->head;

	while (!stop) {
		uint64_t dice = mix(&seed);
		volatile struct kdsm_op *op = &ring->entries[dice % ENTRIES].op;

		op->opcode = KDSM_OP_GET + dice / 64 % 5;
		op->flags = 0;
		op->node = dice / 4096 % (info.nodes + 1);
		op->length = dice % 3 ? 8 : mix(&seed) % (BUFFER / 4);
		op->offset = mix(&seed) % part_size & ~7ULL;
		op->addr = mix(&seed) % ring->setup.buffer_size;
		if (dice % 5 == 0)
			head[16] = ring->head->submission_head + dice / 8 % (ENTRIES + 2);
		if (dice % 7 == 0)
			head[17] = ring->head->completion_tail - dice / 8 % 4;
		if (dice % 101 == 0)
			head[mix(&seed) % 32] = mix(&seed);
		if (dice % 11 == 0)
			ring->memory[mix(&seed) % ring->setup.size] = dice >> 40;
	}
	return NULL;
}

static void *enter_at_random(void *arg)
{
	struct ring *ring = arg;
	uint64_t seed = 4242 + info.node;

	while (!stop)
		enter(ring, mix(&seed) % (ENTRIES + 8), mix(&seed) % ENTRIES,
		      mix(&seed) % 20000000, NULL);
	return NULL;
}

static void scribbles(int file)
{
	struct ring ring = ring_of(file), after;
	pthread_t threads[3];
	unsigned int i;

	pthread_create(&threads[0], NULL, scribble, &ring);
	pthread_create(&threads[1], NULL, enter_at_random, &ring);
	pthread_create(&threads[2], NULL, enter_at_random, &ring);
	usleep(SCRIBBLE * 1000);
	stop = true;
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	tap_ok(true, "a thread scribbles over a ring that others use");
	drop(&ring);
	after = ring_of(file);
	tap_result(one(&after, good()), 0, "another ring works");
	drop(&after);
}

/* The file of a ring alone keeps the cluster up. */
static void keeps(int file)
{
	struct ring ring = ring_of(file);

	close(file);
	tap_ok(system("kdsmctl down 2>/dev/null"), "kdsmctl down with a ring: refused");
	tap_result(one(&ring, good()), 0, "and the ring works");
	close(ring.file);
	tap_ok(system("kdsmctl down 2>/dev/null"), "kdsmctl down with a mapping of a ring: refused");
	munmap(ring.memory, ring.setup.size);
}

int main(void)
{
	int file = bound(O_RDWR, "ring");

	info = information(file);
	setups(file);
	mappings(file);
	entries(file);
	scribbles(file);
	keeps(file);
	return tap_end();
}
