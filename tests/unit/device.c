// SPDX-License-Identifier: GPL-2.0
/*
 * The device backend against a module simulated here. open(), mmap() and ioctl() below
 * replace those of the C library and simulate a cluster of two nodes, of which this process
 * is node 0. The tests check which requests the library makes. tests/guest/ tests the
 * module itself.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "unit.h"
#include <kdsm/coherent.h>

#ifdef __SANITIZE_THREAD__
/* The runtime of ThreadSanitizer calls mmap() before this program can answer. */
int main(void)
{
	puts("1..0 # SKIP not under ThreadSanitizer");
	return 0;
}
#else

#define PART	(8UL << 20)
#define BASE	0x6b0000000000UL
#define FAKES	16

/* Behaviour of the simulated module, and the requests that it got */
static struct {
	uint32_t abi, domain;
	int open_error, write_error;	/* result of REGION_OPEN; for writing only */
	int submit_error;		/* result of SUBMIT without WAIT */
	unsigned int interrupt;		/* this many calls fail with -EINTR first */
	int complete_error;
	uintptr_t misplace;		/* distance of mappings from BASE, in bytes */
	bool coherent;			/* whether regions are coherent */
	int fence_error;
	unsigned int releases, acquires;
	int settle_error;
	unsigned int settles;
	struct kdsm_advise advise;	/* last request */
	struct kdsm_races races;	/* last request */
	struct kdsm_atomic atomic;	/* last request */
	unsigned int submits, waits, completes, wakes;
	unsigned int ops, own_ops, largest;
	uint64_t ticket;
	struct kdsm_op *pending;
	unsigned int pending_count;
} module;

static struct {
	int fd;
	bool writable;
} files[FAKES];

static int find(int fd)
{
	int i;

	for (i = 0; i < FAKES; i++)
		if (files[i].fd == fd + 1)
			return i;
	return -1;
}

int open(const char *path, int flags, ...)
{
	static int next;
	int fd;

	if (strcmp(path, KDSM_DEVICE))
		return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	fd = syscall(SYS_memfd_create, "module", 0);
	/* The system reuses the number of a closed file: forget the former file. */
	if (find(fd) >= 0)
		files[find(fd)].fd = 0;
	files[next % FAKES].fd = fd + 1;
	files[next++ % FAKES].writable = (flags & O_ACCMODE) == O_RDWR;
	return fd;
}

static void *real_mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, length, prot, flags, fd, offset);
}

void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (fd < 0 || find(fd) < 0)
		return real_mmap(address, length, prot, flags, fd, offset);
	return real_mmap((void *)(BASE + module.misplace), length, prot,
			 flags | MAP_FIXED_NOREPLACE, fd, offset);
}

static int refuse(int error)
{
	errno = -error;
	return -1;
}

/* The part of node 1 is mapped in this process, too. */
static int operate(struct kdsm_op *op)
{
	uint8_t *place = (uint8_t *)BASE + op->node * PART + op->offset;
	void *memory = (void *)(uintptr_t)op->addr;
	uint64_t *word = (uint64_t *)place;

	module.ops++;
	module.own_ops += op->node == 0;
	if (op->length > module.largest)
		module.largest = op->length;
	if (op->node > 1 || op->length > KDSM_MAX_OP_LENGTH)
		return -EINVAL;
	if (op->offset > PART || op->length > PART - op->offset)
		return -ERANGE;
	switch (op->opcode) {
	case KDSM_OP_GET:
		memcpy(memory, place, op->length);
		return 0;
	case KDSM_OP_PUT:
		memcpy(place, memory, op->length);
		return 0;
	case KDSM_OP_CAS:
		op->result = *word;
		*word = *word == op->compare ? op->operand : *word;
		return 0;
	default:
		op->result = *word;
		*word += op->operand;
		return 0;
	}
}

static int run(struct kdsm_op *ops, unsigned int count)
{
	unsigned int i;
	int first = 0;

	for (i = 0; i < count; i++) {
		ops[i].status = operate(&ops[i]);
		if (!first)
			first = ops[i].status;
	}
	return first ? refuse(first) : 0;
}

static int fake_settle(struct kdsm_settle *arg)
{
	unsigned int i;

	module.settles++;
	for (i = 0; i < KDSM_MAX_NODES / 64; i++)
		arg->messages += __builtin_popcountll(arg->nodes[i]);
	return module.settle_error ? refuse(module.settle_error) : 0;
}

static int fake_submit(struct kdsm_submit *arg)
{
	struct kdsm_op *ops = (void *)(uintptr_t)arg->ops;

	if (!arg->count || arg->count > KDSM_MAX_OPS)
		return refuse(-EINVAL);
	module.submits++;
	if (arg->flags & KDSM_SUBMIT_WAIT) {
		module.waits++;
		return run(ops, arg->count);
	}
	if (module.submit_error)
		return refuse(module.submit_error);
	module.pending = ops;
	module.pending_count = arg->count;
	arg->ticket = ++module.ticket;
	return 0;
}

static int fake_complete(struct kdsm_complete *arg)
{
	struct kdsm_op *ops = module.pending;

	module.completes++;
	if (module.interrupt) {
		module.interrupt--;
		return refuse(-EINTR);
	}
	if (module.complete_error)
		return refuse(module.complete_error);
	if (!ops || arg->ticket != module.ticket)
		return refuse(-ENOENT);
	module.pending = NULL;
	return run(ops, module.pending_count);
}

static int fake_region_open(int fd, struct kdsm_region_open *arg)
{
	bool writable = files[find(fd)].writable;

	if (module.open_error)
		return refuse(module.open_error);
	if (module.write_error && writable)
		return refuse(module.write_error);
	arg->part_size = module.coherent ? 2 * PART : PART;
	arg->policy = module.coherent ? KDSM_POLICY_RELEASE : KDSM_POLICY_PARTITIONED;
	arg->block_size = 4096;
	arg->base = BASE;
	arg->id = 7;
	return ftruncate(fd, 2 * PART);
}

static int fake_fence(struct kdsm_fence *arg, bool release)
{
	struct kdsm_signature *signature = (void *)(uintptr_t)arg->signature;

	if (release)
		module.releases++;
	else
		module.acquires++;
	if (module.interrupt) {
		module.interrupt--;
		return refuse(-EINTR);
	}
	if (module.fence_error)
		return refuse(module.fence_error);
	if (release && signature) {
		signature->floor = 4711;
		signature->count = 0;
		signature->reserved = 0;
	}
	return release || signature->floor == 4711 ? 0 : refuse(-EINVAL);
}

/* Of races 4 to 6 the module has kept the last. */
static int fake_races(struct kdsm_races *arg)
{
	struct kdsm_race *races = (void *)(uintptr_t)arg->races;

	module.races = *arg;
	if (module.fence_error)
		return refuse(module.fence_error);
	races[0] = (struct kdsm_race){ .number = 6, .offset = 4096, .ours = 1, .theirs = 2,
				       .other = 1 };
	arg->count = 1;
	arg->next = 7;
	arg->lost = 2;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct kdsm_info *info;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (find(fd) < 0)
		return syscall(SYS_ioctl, fd, request, arg);
	switch (request) {
	case KDSM_IOC_INFO:
		info = arg;
		info->abi_version = module.abi;
		info->domain = module.domain;
		info->nodes = 2;
		strcpy(info->cluster, "played");
		return 0;
	case KDSM_IOC_LOCATION:
		/* Without a terminating NUL, because the library must not rely on one. */
		memset(((struct kdsm_location *)arg)->location,
		       'a' + ((struct kdsm_location *)arg)->node, KDSM_LOCATION_SIZE);
		return 0;
	case KDSM_IOC_REGION_OPEN:
		return fake_region_open(fd, arg);
	case KDSM_IOC_REGION_DESTROY:
		return refuse(-EHOSTDOWN);
	case KDSM_IOC_SUBMIT:
		return fake_submit(arg);
	case KDSM_IOC_COMPLETE:
		return fake_complete(arg);
	case KDSM_IOC_WAIT:
		return refuse(-ENETDOWN);
	case KDSM_IOC_SETTLE:
		return fake_settle(arg);
	case KDSM_IOC_WAKE:
		module.wakes++;
		return 0;
	case KDSM_IOC_RELEASE:
		return fake_fence(arg, true);
	case KDSM_IOC_ACQUIRE:
		return fake_fence(arg, false);
	case KDSM_IOC_ADVISE:
		module.advise = *(struct kdsm_advise *)arg;
		if (!module.interrupt)
			return 0;
		module.interrupt--;
		return refuse(-EINTR);
	case KDSM_IOC_RACES:
		return fake_races(arg);
	case KDSM_IOC_HOME:
		((struct kdsm_home *)arg)->node = ((struct kdsm_home *)arg)->offset / PART;
		return 0;
	case KDSM_IOC_ATOMIC:
		module.atomic = *(struct kdsm_atomic *)arg;
		((struct kdsm_atomic *)arg)->result = 11;
		return module.fence_error ? refuse(module.fence_error) : 0;
	default:
		return refuse(-ENOTTY);
	}
}

static struct kdsm *kdsm;
static struct kdsm_region *region;

static int setup(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 2 * PART };

	(void)state;
	memset(&module, 0, sizeof(module));
	memset(files, 0, sizeof(files));
	module.abi = KDSM_ABI_VERSION;
	module.domain = KDSM_DOMAIN_SW;
	return kdsm_open(0, &kdsm) || kdsm_region_open(kdsm, "r", &attr, &region);
}

static int teardown(void **state)
{
	(void)state;
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return 0;
}

static uint8_t *other_part(void)
{
	return (uint8_t *)kdsm_region_part(region) + PART;
}

static void about(void **state)
{
	char location[KDSM_LOCATION_SIZE];

	(void)state;
	assert_int_equal(kdsm_location(kdsm, 1, location), 0);
	assert_int_equal(strlen(location), KDSM_LOCATION_SIZE - 1);
	assert_int_equal(location[0], 'b');
	assert_int_equal(kdsm_location(kdsm, 2, location), -EINVAL);
	assert_int_equal(kdsm_nodes(kdsm), 2);
	assert_int_equal(kdsm_is_local(kdsm), 0);
	assert_string_equal(kdsm_cluster_name(kdsm), "played");
	assert_int_equal(kdsm_region_part_size(region), PART);
	assert_int_equal((uintptr_t)kdsm_region_part(region), BASE);
	assert_int_equal(kdsm_region_destroy(kdsm, "r"), -EHOSTDOWN);
	assert_int_equal(kdsm_wait(region, 0, 0, 1000), -ENETDOWN);
	assert_int_equal(kdsm_put_notify(region, 0, 0, 0), 0);
	assert_int_equal(module.wakes, 1);
}

static void single(void **state)
{
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	uint64_t value = 5, former;

	(void)state;
	assert_int_equal(kdsm_put(region, 1, 8, &value, 8), 0);
	assert_int_equal(kdsm_faa(region, 1, 8, 2, &former), 0);
	assert_int_equal(former, 5);
	assert_int_equal(kdsm_cas(region, 1, 8, 7, 9, &former), 0);
	assert_int_equal(former, 7);
	assert_int_equal(kdsm_get(region, 1, 8, &value, 8), 0);
	assert_int_equal(value, 9);
	assert_int_equal(module.submits, 4);
	assert_int_equal(module.waits, 4);
	assert_int_equal(kdsm_get(region, 1, PART, &value, 8), -ERANGE);
	assert_int_equal(kdsm_get(region, 2, 0, &value, 8), -EINVAL);
	kdsm_counts(kdsm, &counts);
	assert_int_equal(counts.get, 3);
	assert_int_equal(counts.put, 1);
	assert_int_equal(counts.cas, 1);
	assert_int_equal(counts.faa, 1);
	assert_int_equal(counts.am, 2);
	assert_int_equal(counts.bytes, 48);
	assert_int_equal(counts.calls, 6);
}

static void in_pieces(void **state)
{
	const size_t length = PART - 5;
	uint8_t *out = malloc(length), *in = calloc(1, length);
	size_t i;

	(void)state;
	for (i = 0; i < length; i++)
		out[i] = i * 31 >> 3;
	assert_int_equal(kdsm_put(region, 1, 5, out, length), 0);
	assert_int_equal(kdsm_get(region, 1, 5, in, length), 0);
	assert_memory_equal(in, out, length);
	assert_int_equal(module.largest, KDSM_MAX_OP_LENGTH);
	assert_int_equal(module.ops, 8);
	assert_int_equal(module.submits, 2);
	/* A put that does not fit writes nothing. */
	assert_int_equal(kdsm_put(region, 1, 6, out, PART), -ERANGE);
	assert_int_equal(module.submits, 2);
	free(out);
	free(in);
}

static void fill_mixed(struct kdsm_op *ops, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		ops[i] = kdsm_op_faa(i % 3 == 0, 64, 1);
}

/*
 * The module gets only the remote operations, in their order. Each operation gets its own
 * result.
 */
static void mixed(unsigned int count)
{
	struct kdsm_op *ops = calloc(count, sizeof(*ops));
	unsigned int i, own = 0, remote = 0;

	fill_mixed(ops, count);
	assert_int_equal(kdsm_vector(region, ops, count), 0);
	for (i = 0; i < count; i++)
		assert_int_equal(ops[i].result, i % 3 == 0 ? remote++ : own++);
	assert_int_equal(module.ops, remote);
	assert_int_equal(module.own_ops, 0);
	free(ops);
}

static void mixed_small(void **state)
{
	(void)state;
	mixed(9);
	assert_int_equal(module.waits, 0);
	assert_int_equal(module.completes, 1);
}

static void mixed_large(void **state)
{
	(void)state;
	mixed(2 * KDSM_MAX_OPS + 100);
	assert_int_equal(module.submits, 3);
}

/* The module has no room for another operation in flight: the library submits and waits. */
static void mixed_crowded(void **state)
{
	(void)state;
	module.submit_error = -EAGAIN;
	mixed(300);
	assert_int_equal(module.waits, 1);
}

static void mixed_interrupted(void **state)
{
	(void)state;
	module.interrupt = 3;
	mixed(30);
	assert_int_equal(module.completes, 4);
}

static void failures(void **state)
{
	struct kdsm_op ops[4];

	(void)state;
	fill_mixed(ops, 4);
	ops[1].offset = PART;		/* own */
	ops[3].offset = PART;		/* remote */
	assert_int_equal(kdsm_vector(region, ops, 4), -ERANGE);
	assert_int_equal(ops[0].status, 0);
	assert_int_equal(ops[1].status, -ERANGE);
	assert_int_equal(ops[2].status, 0);
	assert_int_equal(ops[3].status, -ERANGE);

	/*
	 * A call that fails gives its error to the remote operations. Own operations still
	 * succeed.
	 */
	fill_mixed(ops, 4);
	module.submit_error = -EBADFD;
	assert_int_equal(kdsm_vector(region, ops, 4), -EBADFD);
	assert_int_equal(ops[0].status, -EBADFD);
	assert_int_equal(ops[1].status, 0);
}

static void tickets(void **state)
{
	struct kdsm_ticket ticket;
	struct kdsm_op ops[4];

	(void)state;
	fill_mixed(ops, 4);
	assert_int_equal(kdsm_submit(region, ops, 4, &ticket), 0);
	module.complete_error = -ETIMEDOUT;
	assert_int_equal(kdsm_complete(region, &ticket, 5), -ETIMEDOUT);
	module.complete_error = -EBUSY;
	assert_int_equal(kdsm_complete(region, &ticket, 5), -EBUSY);
	module.complete_error = 0;
	module.interrupt = 1;
	assert_int_equal(kdsm_complete(region, &ticket, 1000000000), 0);
	assert_int_equal(ops[3].result, 1);
	assert_int_equal(kdsm_complete(region, &ticket, 5), -ENOENT);

	/* After a refusal no operation has taken effect, not even an own one. */
	module.submit_error = -EAGAIN;
	*(uint64_t *)((uint8_t *)kdsm_region_part(region) + 64) = 50;
	assert_int_equal(kdsm_submit(region, ops, 4, &ticket), -EAGAIN);
	assert_int_equal(*(uint64_t *)((uint8_t *)kdsm_region_part(region) + 64), 50);
	assert_int_equal(kdsm_complete(region, &ticket, 5), -ENOENT);

	/* The module no longer knows the ticket. */
	module.submit_error = 0;
	assert_int_equal(kdsm_submit(region, ops, 4, &ticket), 0);
	module.pending = NULL;
	assert_int_equal(kdsm_complete(region, &ticket, 5), -ENOENT);
	assert_int_equal(ops[0].status, -ENOENT);
	assert_int_equal(ops[1].status, 0);
}

/* Node 1 arrives first. This node arrives last and notifies node 1. */
static void barrier(void **state)
{
	struct kdsm_barrier barrier;
	uint64_t *words = kdsm_region_part(region);

	(void)state;
	kdsm_barrier_init(&barrier, region, 0);
	words[2] = 1;
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), 0);
	assert_int_equal(((uint64_t *)other_part())[1], 2);
	assert_int_equal(module.ops, 1);
	/* Node 1 has not arrived at the next barrier yet. */
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -ETIMEDOUT);
	words[2] = 3;
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), 0);
	assert_int_equal(((uint64_t *)other_part())[1], 4);
	assert_int_equal(module.ops, 2);
}

/* Puts to node 1 are settled once, by a call of the module, before a barrier too. */
static void settling(void **state)
{
	struct kdsm_barrier barrier;
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	uint64_t *words = kdsm_region_part(region), word = 7;

	(void)state;
	kdsm_barrier_init(&barrier, region, 0);
	assert_int_equal(kdsm_settle(kdsm), 0);
	assert_int_equal(module.settles, 0);
	assert_int_equal(kdsm_put(region, 1, 4096, &word, 8), 0);
	module.settle_error = -EHOSTDOWN;
	assert_int_equal(kdsm_settle(kdsm), -EHOSTDOWN);
	module.settle_error = 0;
	words[2] = 1;
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), 0);
	assert_int_equal(module.settles, 2);
	assert_int_equal(kdsm_settle(kdsm), 0);
	assert_int_equal(module.settles, 2);
	kdsm_counts(kdsm, &counts);
	assert_int_equal(counts.am, 2);
}

static void atomics_by_device(void **state)
{
	struct kdsm *hca;
	struct kdsm_region *r;
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct kdsm_op ops[2] = { kdsm_op_faa(0, 0, 1), kdsm_op_cas(0, 0, 1, 2) };
	uint64_t value;

	kdsm_region_close(region);
	region = NULL;
	module.domain = KDSM_DOMAIN_HCA;
	(void)state;
	assert_int_equal(kdsm_open(0, &hca), 0);
	assert_int_equal(kdsm_region_open(hca, "r", NULL, &r), 0);
	assert_int_equal(kdsm_vector(r, ops, 2), 0);
	assert_int_equal(kdsm_faa(r, 0, 0, 1, &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(module.own_ops, 3);
	assert_int_equal(kdsm_get(r, 0, 0, &value, 8), 0);
	assert_int_equal(module.own_ops, 3);
	kdsm_counts(hca, &counts);
	assert_int_equal(counts.am, 0);
	kdsm_region_close(r);
	kdsm_close(hca);
}

static void read_only(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 2 * PART };
	struct kdsm_barrier barrier;
	struct kdsm_region *r;
	uint64_t value = 1;

	(void)state;
	kdsm_region_close(region);
	region = NULL;
	module.write_error = -EACCES;
	/* Creating a region requires write access. */
	assert_int_equal(kdsm_region_open(kdsm, "r", &attr, &r), -EACCES);
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &r), 0);
	assert_int_equal(kdsm_get(r, 0, 0, &value, 8), 0);
	assert_int_equal(kdsm_put(r, 0, 0, &value, 8), -EACCES);
	assert_int_equal(kdsm_faa(r, 0, 0, 1, &value), -EACCES);
	kdsm_barrier_init(&barrier, r, 0);
	assert_int_equal(kdsm_barrier_wait(&barrier, 0), -EACCES);
	kdsm_region_close(r);
}

static void opened_twice(void **state)
{
	struct kdsm_region *again;

	(void)state;
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &again), 0);
	assert_ptr_equal(again, region);
	kdsm_region_close(again);
	*(uint64_t *)kdsm_region_part(region) = 1;
}

static void coherent(void **state)
{
	uint64_t value, next = 4, lost;
	struct kdsm_signature signature;
	struct kdsm_race races[2];
	struct kdsm_region *r;

	(void)state;
	kdsm_region_close(region);
	region = NULL;
	module.coherent = true;
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &r), 0);
	assert_int_equal((uintptr_t)kdsm_region_address(r), BASE);
	assert_int_equal(kdsm_region_size(r), 2 * PART);
	assert_int_equal(kdsm_region_part_size(r), 0);
	assert_null(kdsm_region_part(r));
	((uint8_t *)kdsm_region_address(r))[2 * PART - 1] = 1;
	assert_int_equal(kdsm_get(r, 1, 0, &value, 8), -EOPNOTSUPP);
	assert_int_equal(module.submits, 0);

	module.interrupt = 2;
	assert_int_equal(kdsm_release(r, &signature), 0);
	assert_int_equal(module.releases, 3);
	assert_int_equal(signature.floor, 4711);
	assert_int_equal(kdsm_release(r, NULL), 0);
	module.interrupt = 1;
	assert_int_equal(kdsm_acquire(r, &signature), 0);
	assert_int_equal(module.acquires, 2);
	signature.floor = 1;
	assert_int_equal(kdsm_acquire(r, &signature), -EINVAL);
	module.fence_error = -EHOSTDOWN;
	assert_int_equal(kdsm_release(r, &signature), -EHOSTDOWN);

	module.interrupt = 1;
	assert_int_equal(kdsm_flush(r, 4096, 8), 0);
	assert_int_equal(module.interrupt, 0);
	assert_int_equal(module.advise.argsz, sizeof(module.advise));
	assert_int_equal(module.advise.advice, KDSM_ADVICE_FLUSH);
	assert_int_equal(module.advise.offset, 4096);
	assert_int_equal(module.advise.length, 8);
	assert_int_equal(kdsm_prefetch(r, 0, 2 * PART), 0);
	assert_int_equal(module.advise.advice, KDSM_ADVICE_PREFETCH);
	assert_int_equal(kdsm_pin(r, 0, 1), 0);
	assert_int_equal(module.advise.advice, KDSM_ADVICE_OWN);

	assert_int_equal(kdsm_region_home(r, 2 * PART - 1), 1);
	assert_int_equal(kdsm_region_home(r, 2 * PART), -ERANGE);
	assert_int_equal(kdsm_refresh(r, 0, 1), 0);
	assert_int_equal(module.advise.advice, KDSM_ADVICE_REFRESH);

	assert_int_equal(kdsm_atomic_cas(r, 4, 4, KDSM_ATOMIC_ACQUIRE, 5, 6, &value), -EHOSTDOWN);
	module.fence_error = 0;
	assert_int_equal(kdsm_atomic_cas(r, 4, 4, KDSM_ATOMIC_ACQUIRE, 5, 6, &value), 0);
	assert_int_equal(value, 11);
	assert_int_equal(module.atomic.argsz, sizeof(module.atomic));
	assert_int_equal(module.atomic.flags, KDSM_ATOMIC_ACQUIRE);
	assert_int_equal(module.atomic.opcode, KDSM_ATOMIC_CAS);
	assert_int_equal(module.atomic.offset, 4);
	assert_int_equal(module.atomic.size, 4);
	assert_int_equal(module.atomic.operand, 6);
	assert_int_equal(module.atomic.compare, 5);

	assert_int_equal(kdsm_races(r, races, 2, &next, &lost), 1);
	assert_int_equal(module.races.argsz, sizeof(module.races));
	assert_int_equal(module.races.count, 2);
	assert_int_equal(module.races.next, 4);
	assert_int_equal(next, 7);
	assert_int_equal(lost, 2);
	assert_int_equal(races[0].theirs, 2);
	module.fence_error = -EFAULT;
	assert_int_equal(kdsm_races(r, races, 2, &next, NULL), -EFAULT);
	assert_int_equal(next, 7);
	kdsm_region_close(r);
}

static void misplaced(void **state)
{
	struct kdsm_region *r;

	(void)state;
	/* Another mapping occupies the address. */
	kdsm_region_close(region);
	region = NULL;
	assert_ptr_equal(real_mmap((void *)BASE, 4096, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), (void *)BASE);
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &r), -EADDRINUSE);
	munmap((void *)BASE, 4096);
	/* A module that maps at another address */
	module.misplace = 1 << 30;
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &r), -EADDRINUSE);
	module.misplace = 0;
	module.open_error = -ENOMEM;
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &r), -ENOMEM);
}

static void other_version(void **state)
{
	struct kdsm *k;

	(void)state;
	module.abi = KDSM_ABI_VERSION + 1;
	assert_int_equal(kdsm_open(0, &k), -EPROTO);
	/* A wrong version is no reason to fall back to the local backend. */
	assert_int_equal(kdsm_open(KDSM_OPEN_ALLOW_LOCAL, &k), -EPROTO);
	module.abi = KDSM_ABI_VERSION;
	module.domain = 99;
	assert_int_equal(kdsm_open(0, &k), -EPROTO);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(about), TEST(single), TEST(in_pieces), TEST(mixed_small),
		TEST(mixed_large), TEST(mixed_crowded), TEST(mixed_interrupted),
		TEST(failures), TEST(tickets), TEST(barrier), TEST(settling),
		TEST(atomics_by_device), TEST(read_only), TEST(opened_twice), TEST(coherent),
		TEST(misplaced),
		TEST(other_version),
	};

	return UNIT_RUN(tests);
}
#endif
