// SPDX-License-Identifier: GPL-2.0
/*
 * The conventions of all ioctls, and every documented error of the ioctls that open and
 * destroy regions. Operations are in hostile-operation.c.
 */
#include "hostile.h"

static long page;
static char *readable;		/* a read-only page */

struct spec {
	const char *name;
	unsigned long number;
	uint32_t size;		/* of the first published version */
	int good;		/* result for a struct of zeros */
};

static const struct spec specs[] = {
	{ "INFO", KDSM_IOC_INFO, KDSM_INFO_SIZE_VER0, 0 },
	{ "REGION_OPEN", KDSM_IOC_REGION_OPEN, KDSM_REGION_OPEN_SIZE_VER0, -EINVAL },
	{ "REGION_DESTROY", KDSM_IOC_REGION_DESTROY, KDSM_REGION_DESTROY_SIZE_VER0, -EINVAL },
	{ "SUBMIT", KDSM_IOC_SUBMIT, KDSM_SUBMIT_SIZE_VER0, -EINVAL },
	{ "COMPLETE", KDSM_IOC_COMPLETE, KDSM_COMPLETE_SIZE_VER0, -ENOENT },
	{ "WAIT", KDSM_IOC_WAIT, KDSM_WAIT_SIZE_VER0, -ETIMEDOUT },
	{ "WAKE", KDSM_IOC_WAKE, KDSM_WAKE_SIZE_VER0, 0 },
	{ "RELEASE", KDSM_IOC_RELEASE, KDSM_FENCE_SIZE_VER0, -EOPNOTSUPP },
	{ "ACQUIRE", KDSM_IOC_ACQUIRE, KDSM_FENCE_SIZE_VER0, -EINVAL },
	{ "ADVISE", KDSM_IOC_ADVISE, KDSM_ADVISE_SIZE_VER0, -EINVAL },
	{ "LOCK_OPEN", KDSM_IOC_LOCK_OPEN, KDSM_LOCK_OPEN_SIZE_VER0, -ENOENT },
	{ "LOCK_THREAD", KDSM_IOC_LOCK_THREAD, KDSM_LOCK_THREAD_SIZE_VER0, 0 },
	{ "LOCK", KDSM_IOC_LOCK, KDSM_LOCK_TAKE_SIZE_VER0, -ENOENT },
	{ "UNLOCK", KDSM_IOC_UNLOCK, KDSM_LOCK_GIVE_SIZE_VER0, -ENOENT },
	{ "LOCK_CONSISTENT", KDSM_IOC_LOCK_CONSISTENT, KDSM_LOCK_GIVE_SIZE_VER0, -ENOENT },
	{ "LOCK_SET", KDSM_IOC_LOCK_SET, KDSM_LOCK_SET_SIZE_VER0, -EINVAL },
	{ "LOCK_INFO", KDSM_IOC_LOCK_INFO, KDSM_LOCK_INFO_SIZE_VER0, -ENOENT },
	{ "LOCATION", KDSM_IOC_LOCATION, KDSM_LOCATION_SIZE_VER0, 0 },
	{ "SETTLE", KDSM_IOC_SETTLE, KDSM_SETTLE_SIZE_VER0, 0 },
	{ "RACES", KDSM_IOC_RACES, KDSM_RACES_SIZE_VER0, -EOPNOTSUPP },
	{ "LOST", KDSM_IOC_LOST, KDSM_LOST_SIZE_VER0, -EOPNOTSUPP },
	{ "DISCARD", KDSM_IOC_DISCARD, KDSM_DISCARD_SIZE_VER0, -EINVAL },
	{ "HOME", KDSM_IOC_HOME, KDSM_HOME_SIZE_VER0, -EOPNOTSUPP },
	{ "ATOMIC", KDSM_IOC_ATOMIC, KDSM_ATOMIC_SIZE_VER0, -EINVAL },
};

/* Store argsz and flags, the first two members of every struct, and make the call. */
static int with(int file, const struct spec *spec, void *arg, uint32_t argsz,
		uint32_t flags)
{
	memcpy(arg, &argsz, sizeof(argsz));
	memcpy((char *)arg + 4, &flags, sizeof(flags));
	return call(file, spec->number, arg);
}

static void good(int got, const struct spec *spec, const char *what)
{
	tap_result(got, spec->good, "%s, %s", spec->name, what);
}

static void conventions(int file, const struct spec *spec)
{
	char *edge = lone_page() + page;	/* first address that cannot be accessed */
	const uint32_t size = spec->number == KDSM_IOC_REGION_OPEN ? KDSM_REGION_OPEN_SIZE_VER1 :
			      spec->size;
	char *arg = lone_page();
	uint32_t flags = spec->number == KDSM_IOC_SUBMIT ? KDSM_SUBMIT_WAIT << 1 :
			 spec->number == KDSM_IOC_REGION_OPEN ? KDSM_REGION_AT << 1 :
			 spec->number == KDSM_IOC_LOCK_OPEN ? KDSM_LOCK_EXCL << 1 :
			 spec->number == KDSM_IOC_LOCK ? KDSM_LOCK_READ << 1 :
			 spec->number == KDSM_IOC_LOCK_INFO ? KDSM_LOCK_NEXT << 1 : 1;

	tap_result(with(file, spec, arg, 0, 0), -EINVAL, "%s, argsz 0", spec->name);
	memset(arg, 0, page);
	tap_result(with(file, spec, arg, 4, 0), -EINVAL, "%s, argsz 4", spec->name);
	memset(arg, 0, page);
	tap_result(with(file, spec, arg, spec->size - 1, 0), -EINVAL,
		   "%s, argsz one too small", spec->name);
	memset(arg, 0, page);
	good(with(file, spec, arg, spec->size, 0), spec, "argsz right");
	memset(arg, 0, page);
	good(with(file, spec, arg, size + 64, 0), spec,
	     "argsz larger, tail zero");
	memset(arg, 0, page);
	arg[size + 63] = 1;
	tap_result(with(file, spec, arg, size + 64, 0), -E2BIG,
		   "%s, argsz larger, tail not zero", spec->name);
	tap_ok(arg[size + 63] == 1, "%s, a tail is left alone", spec->name);
	memset(arg, 0, page);
	tap_either(with(file, spec, arg, UINT32_MAX, 0), -E2BIG, -EFAULT,
		   "%s, argsz absurd", spec->name);
	memset(arg, 0, page);
	tap_result(with(file, spec, arg, spec->size, flags), -EINVAL,
		   "%s, unknown flag", spec->name);
	memset(arg, 0, page);
	tap_result(with(file, spec, arg, spec->size, 1U << 31), -EINVAL,
		   "%s, last flag", spec->name);
	memset(arg, 0, page);
	good(with(file, spec, arg + 1, spec->size, 0), spec, "odd address");

	tap_result(call(file, spec->number, NULL), -EFAULT, "%s, NULL", spec->name);
	tap_result(call(file, spec->number, edge), -EFAULT, "%s, no access", spec->name);
	memcpy(edge - 4, &spec->size, 4);
	tap_result(call(file, spec->number, edge - 4), -EFAULT,
		   "%s, only argsz can be read", spec->name);
	tap_result(with(file, spec, edge - spec->size + 8, spec->size, 0), -EFAULT,
		   "%s, cut off", spec->name);
	tap_result(call(file, spec->number, (void *)0xffff888000000000UL), -EFAULT,
		   "%s, an address of the kernel", spec->name);
	tap_result(call(file, spec->number, (void *)-4096L), -EFAULT,
		   "%s, the last page", spec->name);
	munmap(arg, 2 * page);
	munmap(edge - page, 2 * page);
}

static void all_conventions(int file)
{
	struct kdsm_region_open open = region(file, "conventions");
	int bound = device(O_RDWR);

	tap_result(call(bound, KDSM_IOC_REGION_OPEN, &open), 0, "REGION_OPEN");
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		conventions(specs[i].number == KDSM_IOC_REGION_OPEN ? file : bound, &specs[i]);
	close(bound);
}

static void unknown_ioctls(int file)
{
	char buffer[256] = { 0 };

	*(uint32_t *)buffer = sizeof(buffer);
	tap_result(call(file, _IOWR(KDSM_IOC_MAGIC, 7, char[32]), buffer), -ENOTTY,
		   "ioctl 7");
	tap_result(call(file, _IO(KDSM_IOC_MAGIC, 255), buffer), -ENOTTY, "ioctl 255");
	tap_result(call(file, _IOWR('k', 0, struct kdsm_info), buffer), -ENOTTY,
		   "ioctl of somebody else");
	tap_result(call(file, 0, buffer), -ENOTTY, "ioctl 0");
	tap_result(call(file, 0xffffffff, buffer), -ENOTTY, "ioctl of all ones");
}

/* The cluster has fewer nodes than the set, as after nodes were removed */
static void settle_of_all(int file)
{
	struct kdsm_settle arg = { .argsz = sizeof(arg) };

	memset(arg.nodes, 0xff, sizeof(arg.nodes));
	tap_result(call(file, KDSM_IOC_SETTLE, &arg), 0, "SETTLE of 1,024 nodes");
}

/* Structs in memory that the module can read, but not write */
static void read_only_structs(int file)
{
	struct kdsm_info info = { .argsz = sizeof(info) };
	struct kdsm_region_open open = region(file, "readonly");

	mprotect(readable, page, PROT_READ | PROT_WRITE);
	memcpy(readable, &info, sizeof(info));
	mprotect(readable, page, PROT_READ);
	tap_result(call(file, KDSM_IOC_INFO, readable), -EFAULT, "INFO into read-only memory");
	mprotect(readable, page, PROT_READ | PROT_WRITE);
	memcpy(readable, &open, sizeof(open));
	mprotect(readable, page, PROT_READ);
	file = device(O_RDWR);
	tap_result(call(file, KDSM_IOC_REGION_OPEN, readable), -EFAULT,
		   "REGION_OPEN into read-only memory");
	/* The failed call has not bound the file, and has freed the region. */
	open.flags |= KDSM_REGION_EXCL;
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &open), 0, "REGION_OPEN of the same file");
	close(file);
}

static void bad_open(const char *what, const struct kdsm_region_open *good,
		     struct kdsm_region_open bad, int expected)
{
	int file = device(O_RDWR);
	struct kdsm_region_open again = *good;

	tap_result(call(file, KDSM_IOC_REGION_OPEN, &bad), expected,
		   "REGION_OPEN, %s", what);
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &again), 0,
		   "the file can still be bound after that");
	close(file);
}

static void bad_fields(int file)
{
	const struct kdsm_region_open good = region(file, "fields");
	struct kdsm_region_open bad;

#define TRY(what, field, value, expected) do {				\
	bad = good;							\
	bad.field = (value);						\
	bad_open(what, &good, bad, expected);				\
} while (0)
	TRY("name empty", name[0], '\0', -EINVAL);
	TRY("newline in name", name[1], '\n', -EINVAL);
	TRY("escape in name", name[1], '\033', -EINVAL);
	TRY("DEL in name", name[1], '\177', -EINVAL);
	TRY("byte 255 in name", name[1], '\377', -EINVAL);
	TRY("size 0", size, 0, -EINVAL);
	TRY("policy 0", policy, 0, -EINVAL);
	TRY("policy 99", policy, 99, -EINVAL);
	TRY("policy -1", policy, UINT32_MAX, -EINVAL);
	TRY("block size 1", block_size, 1, -EINVAL);
	TRY("block size 2 KiB", block_size, 2048, -EINVAL);
	TRY("block size 4097", block_size, 4097, -EINVAL);
	TRY("block size 12 KiB", block_size, 12288, -EINVAL);
	TRY("block size 4 MiB", block_size, 4 << 20, -EINVAL);
	TRY("block size 2 GiB", block_size, 1U << 31, -EINVAL);
	TRY("two segments, partitioned", segments, 2, -EINVAL);
	TRY("CONTIGUOUS, partitioned", flags, good.flags | KDSM_REGION_CONTIGUOUS, -EINVAL);
	TRY("AT, no address", flags, good.flags | KDSM_REGION_AT, -EINVAL);
	TRY("mode 01000", mode, 01000, -EINVAL);
	TRY("mode -1", mode, UINT32_MAX, -EINVAL);
	TRY("size 2^64 - 1", size, UINT64_MAX, -EFBIG);
	TRY("size 2^63", size, 1ULL << 63, -EFBIG);
	TRY("size 2^64 - 4096", size, -4096ULL, -EFBIG);
	TRY("size 16 EiB less than a block", size, -(2ULL << 20) + 1, -EFBIG);
	TRY("size above 256 TiB", size, (1ULL << 48) + 1, -EFBIG);
	TRY("size 256 TiB, for which there are no addresses", size, 1ULL << 48, -ENOSPC);
	TRY("size 48 TiB and a byte", size, (48ULL << 40) + 1, -ENOSPC);
	/* All nodes try at the same time, and there are addresses for all. */
	TRY("size 8 TiB, for which there is no memory", size, 8ULL << 40, -ENOMEM);
#undef TRY
	bad = good;
	memset(bad.name, 'a', sizeof(bad.name));
	bad_open("name without end", &good, bad, -EINVAL);

	bad = good;
	bad.size = 1ULL << 42;
	file = device(O_RDWR);
	tap_either(call(file, KDSM_IOC_REGION_OPEN, &bad), -ENOMEM, -EFBIG,
		   "REGION_OPEN, size 4 TiB");
	close(file);
	bad = good;
	bad.flags = 0;
	file = device(O_RDWR);
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &bad), -ENOENT,
		   "REGION_OPEN of what is not there");
	bad = good;
	bad.flags = KDSM_REGION_EXCL;
	tap_either(call(file, KDSM_IOC_REGION_OPEN, &bad), -EINVAL, -ENOENT,
		   "REGION_OPEN, EXCL without CREATE");
	close(file);
}

/* A program that was compiled without segments opens a region that has segments. */
static void old_open(const char *name)
{
	struct kdsm_region_open arg = { .argsz = KDSM_REGION_OPEN_SIZE_VER0, .segments = 77 };
	int file = device(O_RDWR);

	strcpy(arg.name, name);
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN of the first version");
	tap_ok(arg.block_size == 4096 && arg.segments == 77, "it returns no segments");
	close(file);
}

static void bad_segments(int file)
{
	struct kdsm_region_open good = region(file, "segments"), bad;

	good.policy = KDSM_POLICY_RELEASE;
	good.size = 8 << 20;
	good.segments = 3;
	good.segment[0].block_size = 4096;
	good.segment[1] = (struct kdsm_region_segment){ 2 << 20, 65536, 0 };
	good.segment[2] = (struct kdsm_region_segment){ 6 << 20, 2 << 20, 0 };
#define TRY(what, field, value) do {					\
	bad = good;							\
	bad.field = (value);						\
	bad_open(what, &good, bad, -EINVAL);				\
} while (0)
	TRY("9 segments", segments, KDSM_MAX_SEGMENTS + 1);
	TRY("2^32 - 1 segments", segments, UINT32_MAX);
	TRY("a segment of no block size", segments, 4);
	TRY("segments, partitioned", policy, KDSM_POLICY_PARTITIONED);
	TRY("another block size than the first segment's", block_size, 65536);
	TRY("the first segment not at 0", segment[0].offset, 2 << 20);
	TRY("a segment not at a multiple of 2 MiB", segment[1].offset, 1 << 20);
	TRY("an empty segment", segment[1].offset, 6 << 20);
	TRY("segments in another order", segment[2].offset, 2 << 20);
	TRY("a segment behind the region", segment[2].offset, 8 << 20);
	TRY("a segment at the end of all", segment[2].offset, -1ULL << 21);
	TRY("blocks of 2 KiB in a segment", segment[1].block_size, 2048);
	TRY("blocks of 12 KiB in a segment", segment[1].block_size, 12288);
	TRY("blocks of 4 MiB in a segment", segment[2].block_size, 4 << 20);
	TRY("a reserved field of a segment", segment[2].reserved, 1);
#undef TRY
	file = device(O_RDWR);
	bad = good;
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &bad), 0, "REGION_OPEN with three segments");
	tap_ok(bad.segments == 3 && bad.block_size == 4096 && bad.size == good.size &&
	       !memcmp(bad.segment, good.segment, sizeof(bad.segment)), "it says what was made");
	old_open(good.name);
	close(file);
}

static void second_open(int file)
{
	struct kdsm_region_open first = region(file, "second"), arg;
	int one = device(O_RDWR), two = device(O_RDWR);

	arg = first;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN");
	tap_ok(arg.mode == 0600 && arg.block_size == 4096 &&
	       arg.size >= 1 << 20 && arg.part_size % 4096 == 0 && arg.base &&
	       arg.nodes == information(file).nodes,
	       "it says what was made");
	first.size = arg.size;
	arg = first;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), -EBUSY,
		   "REGION_OPEN of a bound file, same name");
	arg = first;
	arg.name[0] = 'S';
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), -EBUSY,
		   "REGION_OPEN of a bound file, other name");
	arg = first;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), -EEXIST,
		   "REGION_OPEN, EXCL, of what exists");
	arg = first;
	arg.flags = KDSM_REGION_CREATE;
	arg.size += 1 << 20;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), -EINVAL,
		   "REGION_OPEN, CREATE, other size");
	arg = first;
	arg.flags = KDSM_REGION_CREATE;
	arg.block_size = 8192;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), -EINVAL,
		   "REGION_OPEN, CREATE, other block size");
	arg = first;
	arg.flags = KDSM_REGION_CREATE;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), 0,
		   "REGION_OPEN, CREATE, of the same");
	close(two);
	two = device(O_RDWR);
	memset(&arg, 0xff, sizeof(arg));
	arg.argsz = sizeof(arg);
	arg.flags = 0;
	memcpy(arg.name, first.name, sizeof(arg.name));
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), 0,
		   "REGION_OPEN without CREATE ignores the rest");
	tap_ok(arg.size == first.size && arg.block_size == 4096 && arg.mode == 0600,
	       "and tells it");
	close(one);
	close(two);
	one = device(O_RDWR);
	arg = first;
	arg.flags = 0;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), -ENOENT,
		   "REGION_OPEN after the last close");
	close(one);
}

struct attempt {
	int file;
	unsigned long number;
	void *arg;
};

static int attempt(void *data)
{
	struct attempt *a = data;

	return call(a->file, a->number, a->arg);
}

/* Root opens all files here, so only the mode of the region decides. */
static void permissions(int file)
{
	struct kdsm_region_destroy destroy = { .argsz = sizeof(destroy) };
	struct kdsm_region_open first = region(file, "permissions"), arg;
	int one = device(O_RDWR), two = device(O_RDWR), three = device(O_RDONLY);
	struct attempt open = { two, KDSM_IOC_REGION_OPEN, &arg };

	memcpy(destroy.name, first.name, sizeof(destroy.name));
	arg = first;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN, mode 0600");
	arg = first;
	arg.flags = 0;
	tap_result(as_nobody(attempt, &open), -EACCES, "REGION_OPEN by another user");
	arg.flags = KDSM_REGION_CREATE;
	tap_result(as_nobody(attempt, &open), -EACCES,
		   "REGION_OPEN, CREATE, by another user");
	open.number = KDSM_IOC_REGION_DESTROY;
	open.arg = &destroy;
	tap_result(as_nobody(attempt, &open), -EACCES, "REGION_DESTROY by another user");
	close(one);

	one = device(O_RDWR);
	arg = first;
	arg.mode = 0604;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN, mode 0604");
	open.number = KDSM_IOC_REGION_OPEN;
	open.arg = &arg;
	arg.flags = 0;
	tap_result(as_nobody(attempt, &open), -EACCES,
		   "REGION_OPEN by another user, file for reading and writing");
	open.file = three;
	arg.flags = 0;
	tap_result(as_nobody(attempt, &open), 0,
		   "REGION_OPEN by another user, file for reading");
	close(one);
	close(two);
	close(three);
}

static void destroying(int file)
{
	struct kdsm_region_destroy destroy = { .argsz = sizeof(destroy) }, bad;
	struct kdsm_region_open first = region(file, "destroy"), arg;
	int one = device(O_RDWR), two = device(O_RDWR);
	uint32_t id;

	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), -EINVAL,
		   "REGION_DESTROY, name empty");
	bad = destroy;
	memset(bad.name, 'a', sizeof(bad.name));
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &bad), -EINVAL,
		   "REGION_DESTROY, name without end");
	memcpy(destroy.name, first.name, sizeof(destroy.name));
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), -ENOENT,
		   "REGION_DESTROY of what is not there");
	arg = first;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN");
	id = arg.id;
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), 0,
		   "REGION_DESTROY while it is open");
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), -ENOENT,
		   "REGION_DESTROY again");
	arg = first;
	arg.flags = 0;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), -ENOENT,
		   "REGION_OPEN of what was destroyed");
	arg = first;
	tap_result(call(two, KDSM_IOC_REGION_OPEN, &arg), 0,
		   "REGION_OPEN of a new one of that name");
	tap_ok(arg.id != id, "it is another one");
	close(one);
	close(two);

	one = device(O_RDWR);
	arg = first;
	arg.flags |= KDSM_REGION_KEEP;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "REGION_OPEN, KEEP");
	close(one);
	one = device(O_RDWR);
	arg = first;
	arg.flags = 0;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), 0, "it outlived its file");
	close(one);
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), 0,
		   "REGION_DESTROY when nobody has it open");
	one = device(O_RDWR);
	arg = first;
	arg.flags = 0;
	tap_result(call(one, KDSM_IOC_REGION_OPEN, &arg), -ENOENT, "it is gone");
	close(one);
}

static void hints(int file, uint32_t policy)
{
	struct kdsm_region_open open = region(file, "hints");
	struct kdsm_advise good = { .argsz = sizeof(good), .length = 8192, .advice = 1 }, arg;
	struct kdsm_discard discard = { .argsz = sizeof(discard) };
	struct kdsm_lost lost = { .argsz = sizeof(lost), .count = 1 };
	int bound = device(O_RDWR), reader = device(O_RDONLY);
	static const struct {
		uint64_t offset, length;
		int error;
	} ranges[] = {
		{ 0, 0, -EINVAL }, { 1 << 20, 1, -ERANGE }, { (1 << 20) - 1, 2, -ERANGE },
		{ (1 << 20) - 1, 1, 0 }, { 5000, 1, 0 }, { 0, 1 << 20, 0 },
		{ 0, (1 << 20) + 1, -ERANGE }, { UINT64_MAX, 1, -ERANGE },
		{ 1, UINT64_MAX, -ERANGE }, { UINT64_MAX, UINT64_MAX, -ERANGE },
	};

	tap_result(call(bound, KDSM_IOC_ADVISE, &good), -EBADFD, "ADVISE, not bound");
	open.policy = policy;
	tap_result(call(bound, KDSM_IOC_REGION_OPEN, &open), 0, "policy %u", policy);
	open.flags = 0;
	tap_result(call(reader, KDSM_IOC_REGION_OPEN, &open), 0, "policy %u again", policy);
	for (uint32_t advice = 0; advice < 6; advice++) {
		arg = good;
		arg.advice = advice;
		tap_result(call(bound, KDSM_IOC_ADVISE, &arg),
			   policy == KDSM_POLICY_PARTITIONED && advice % 5 ? -EOPNOTSUPP :
			   advice % 5 ? 0 : -EINVAL, "advice %u", advice);
	}
	arg = good;
	arg.reserved = 1;
	tap_result(call(bound, KDSM_IOC_ADVISE, &arg), -EINVAL, "ADVISE, reserved");
	arg = good;
	arg.advice = UINT32_MAX;
	tap_result(call(bound, KDSM_IOC_ADVISE, &arg), -EINVAL, "ADVISE, last advice");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		if (policy == KDSM_POLICY_PARTITIONED)
			continue;
		for (uint32_t advice = 1; advice < 5; advice++) {
			arg.advice = advice;
			arg.offset = ranges[i].offset;
			arg.length = ranges[i].length;
			tap_result(call(bound, KDSM_IOC_ADVISE, &arg), ranges[i].error,
				   "advice %u, %llu bytes at %llu", advice,
				   (unsigned long long)arg.length, (unsigned long long)arg.offset);
		}
	}
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		discard.offset = ranges[i].offset;
		discard.length = ranges[i].length;
		if (policy != KDSM_POLICY_PARTITIONED)
			tap_result(call(bound, KDSM_IOC_DISCARD, &discard), ranges[i].error,
				   "DISCARD, %llu bytes at %llu",
				   (unsigned long long)discard.length,
				   (unsigned long long)discard.offset);
	}
	discard.offset = 0;
	discard.length = 1;
	tap_result(call(reader, KDSM_IOC_DISCARD, &discard),
		   policy == KDSM_POLICY_PARTITIONED ? -EOPNOTSUPP : -EACCES,
		   "DISCARD by a reader");
	if (policy != KDSM_POLICY_PARTITIONED) {
		lost.next = UINT64_MAX;
		tap_result(call(reader, KDSM_IOC_LOST, &lost), 0, "LOST from the last offset on");
		tap_ok(lost.count == 0 && lost.next == 1 << 20, "LOST finds none");
		lost.count = UINT32_MAX;
		lost.next = 0;
		lost.reserved = 1;
		tap_result(call(reader, KDSM_IOC_LOST, &lost), -EINVAL, "LOST, reserved");
		lost.reserved = 0;
		tap_result(call(reader, KDSM_IOC_LOST, &lost), 0, "LOST, room for too many");
	}
	arg = good;
	for (arg.advice = 1; policy != KDSM_POLICY_PARTITIONED && arg.advice < 5; arg.advice++)
		tap_result(call(reader, KDSM_IOC_ADVISE, &arg),
			   arg.advice == KDSM_ADVICE_OWN ? -EACCES : 0,
			   "advice %u by a reader", arg.advice);
	close(bound);
	close(reader);
}

static void atomics(int file, uint32_t policy)
{
	struct kdsm_region_open open = region(file, "atomics");
	const struct kdsm_atomic good = {
		.argsz = sizeof(good), .opcode = KDSM_ATOMIC_ADD, .size = 4, .operand = 1,
	};
	int bound = device(O_RDWR), reader = device(O_RDONLY);
	struct kdsm_atomic arg = good;
	/* Where another policy refuses valid operations */
	int right = policy == KDSM_POLICY_RELEASE ? 0 : -EOPNOTSUPP;
	int outside = right ?: -ERANGE;

	tap_result(call(bound, KDSM_IOC_ATOMIC, &arg), -EBADFD, "ATOMIC, not bound");
	open.policy = policy;
	tap_result(call(bound, KDSM_IOC_REGION_OPEN, &open), 0, "policy %u", policy);
	open.flags = 0;
	tap_result(call(reader, KDSM_IOC_REGION_OPEN, &open), 0, "policy %u again", policy);
	for (size_t i = 0; i < 3 && policy != KDSM_POLICY_PARTITIONED; i++) {
		static const uint64_t offsets[] = { 1 << 20, 1ULL << 63, UINT64_MAX };
		struct kdsm_home home = { .argsz = sizeof(home), .offset = offsets[i] };

		tap_result(call(bound, KDSM_IOC_HOME, &home), -ERANGE, "HOME, offset %zu", i);
	}
#define ATOMIC(what, field, value, expected) do {			\
	arg = good;							\
	arg.field = (value);						\
	tap_result(call(bound, KDSM_IOC_ATOMIC, &arg), expected, "ATOMIC, %s", what); \
} while (0)
	ATOMIC("right", operand, 1, right);
	ATOMIC("acquire and release", flags, 3, right);
	ATOMIC("flags", flags, 4, -EINVAL);
	ATOMIC("opcode 0", opcode, 0, -EINVAL);
	ATOMIC("opcode 5", opcode, 5, -EINVAL);
	ATOMIC("last opcode", opcode, UINT32_MAX, -EINVAL);
	ATOMIC("size 0", size, 0, -EINVAL);
	ATOMIC("size 2", size, 2, -EINVAL);
	ATOMIC("size 16", size, 16, -EINVAL);
	ATOMIC("last size", size, UINT32_MAX, -EINVAL);
	ATOMIC("odd offset", offset, 2, -EINVAL);
	ATOMIC("last word", offset, (1 << 20) - 4, right);
	ATOMIC("behind the region", offset, 1 << 20, outside);
	ATOMIC("far behind the region", offset, 1ULL << 62, outside);
	ATOMIC("last offset", offset, -4ULL, outside);
	ATOMIC("operand too large", operand, UINT64_MAX, right);
	arg = good;
	tap_result(call(reader, KDSM_IOC_ATOMIC, &arg),
		   policy == KDSM_POLICY_PARTITIONED ? -EOPNOTSUPP : -EACCES, "ATOMIC by a reader");
	close(bound);
	close(reader);
}

/* Open regions until there is no room; then closing them must free everything. */
static void too_many(int file)
{
	struct kdsm_region_open arg = region(file, "many");
	enum { MANY = 200 };
	int files[MANY], count, error = 0;

	for (count = 0; count < MANY && !error; count++) {
		files[count] = device(O_RDWR);
		snprintf(arg.name, sizeof(arg.name), "many-%u-%d",
			 information(file).node, count);
		arg.size = 8192;
		arg.part_size = 0;
		arg.base = 0;
		error = call(files[count], KDSM_IOC_REGION_OPEN, &arg);
	}
	tap_ok(!error || error == -ENOSPC || error == -ENOMEM,
	       "%d regions at once, the last: %s", count, tap_error(error));
	while (count)
		close(files[--count]);
}

int main(void)
{
	int file = device(O_RDWR);

	page = sysconf(_SC_PAGESIZE);
	readable = lone_page();
	all_conventions(file);
	unknown_ioctls(file);
	settle_of_all(file);
	read_only_structs(file);
	bad_fields(file);
	bad_segments(file);
	second_open(file);
	permissions(file);
	destroying(file);
	for (uint32_t policy = KDSM_POLICY_PARTITIONED; policy <= KDSM_POLICY_STRICT; policy++) {
		hints(file, policy);
		atomics(file, policy);
	}
	too_many(file);
	return tap_end();
}
