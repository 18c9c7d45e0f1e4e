// SPDX-License-Identifier: GPL-2.0
/*
 * Locks of the device backend against a module simulated here, as in device.c: which system
 * calls the library makes, and when it makes none. Also waiting lines whose home is the
 * other node: which of their operations are remote.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "lock.h"
#include "lock/internal.h"

#ifdef __SANITIZE_THREAD__
/* The runtime of ThreadSanitizer calls mmap() before this program can answer. */
int main(void)
{
	puts("1..0 # SKIP not under ThreadSanitizer");
	return 0;
}
#else

#define PART	(1UL << 20)
#define BASE	0x6c0000000000UL
#define NUMBER	9
#define THREAD	4711

/* Behaviour of the simulated module, and the requests that it got */
static struct {
	int fd;				/* last device file opened */
	bool writable;			/* whether fd is open for writing */
	bool read_only;			/* REGION_OPEN for writing fails */
	uint32_t number;		/* number of every lock that is opened */
	int error;			/* result of all calls about locks */
	unsigned int interrupt;		/* first this many of them fail with -EINTR */
	uint64_t delay;			/* duration of an interrupted call, in us */
	unsigned int threads, calls;
	struct kdsm_lock_open open;
	struct kdsm_lock_take take;
	struct kdsm_lock_give give;
	struct kdsm_lock_set set;
	unsigned long request;		/* last request about locks */
	struct kdsm_lock_word *words;
	uint64_t slot;			/* of the first thread, during the last call about locks */
	void (*fault)(void);		/* what the module does at the next access to the slots */
	unsigned int unmapped;
	unsigned int remote;		/* operations on node 1 */
	uint64_t *posted;		/* if not NULL, WAIT stores head there */
	uint64_t head;
} module;

static bool is_device(int fd)
{
	return fd >= 0 && fd <= module.fd && module.fd;
}

int open(const char *path, int flags, ...)
{
	if (strcmp(path, KDSM_DEVICE))
		return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
	module.fd = syscall(SYS_memfd_create, "module", 0);
	module.writable = (flags & O_ACCMODE) == O_RDWR;
	return module.fd;
}

static void *real_mmap(void *address, size_t length, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, length, PROT_READ | PROT_WRITE, flags, fd,
			       offset);
}

void *mmap(void *address, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (!is_device(fd))
		return (void *)syscall(SYS_mmap, address, length, prot, flags, fd, offset);
	if (offset != KDSM_LOCKS_OFFSET)
		return real_mmap((void *)BASE, length, flags | MAP_FIXED_NOREPLACE, fd, offset);
	if (length != KDSM_LOCKS_SIZE || prot != (PROT_READ | PROT_WRITE) || flags != MAP_SHARED) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	module.words = real_mmap(NULL, length, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return module.words;
}

int munmap(void *address, size_t length)
{
	if (address == module.words && address)
		module.unmapped++;
	return syscall(SYS_munmap, address, length);
}

static int refuse(int error)
{
	errno = -error;
	return -1;
}

static uint64_t *slot(void)
{
	return (uint64_t *)(module.words + KDSM_MAX_LOCKS) + KDSM_LOCK_SLOT_INDEX(THREAD);
}

static int result(unsigned long request)
{
	module.request = request;
	module.slot = module.words ? *slot() : 0;
	module.calls++;
	if (module.interrupt) {
		module.interrupt--;
		usleep(module.delay);
		return refuse(-EINTR);
	}
	return module.error ? refuse(module.error) : 0;
}

static int fake_region_open(int fd, struct kdsm_region_open *arg)
{
	if (module.read_only && module.writable)
		return refuse(-EACCES);
	arg->part_size = PART;
	arg->policy = KDSM_POLICY_PARTITIONED;
	arg->block_size = 4096;
	arg->base = BASE;
	arg->id = 7;
	return ftruncate(fd, 2 * PART);
}

static int fake_submit(struct kdsm_submit *arg)
{
	struct kdsm_op *ops = (void *)(uintptr_t)arg->ops;
	uint64_t *word;
	unsigned int i;

	for (i = 0; i < arg->count; i++) {
		word = (uint64_t *)(BASE + ops[i].node * PART + ops[i].offset);
		module.remote += ops[i].node == 1;
		ops[i].result = *word;
		if (ops[i].opcode == KDSM_OP_FAA)
			*word += ops[i].operand;
		else if (ops[i].opcode == KDSM_OP_CAS && *word == ops[i].compare)
			*word = ops[i].operand;
		else if (ops[i].opcode == KDSM_OP_PUT)
			memcpy(word, (void *)(uintptr_t)ops[i].addr, ops[i].length);
		else if (ops[i].opcode == KDSM_OP_GET)
			memcpy((void *)(uintptr_t)ops[i].addr, word, ops[i].length);
		ops[i].status = 0;
	}
	return 0;
}

static int fake_lock_open(struct kdsm_lock_open *arg)
{
	module.open = *arg;
	/* The library must not rely on the argument of a call that failed. */
	memset(arg->name, 0xff, sizeof(arg->name));
	arg->number = module.number;
	arg->kind = KDSM_LOCK_RMA_RW;
	arg->levels = 3;
	return result(KDSM_IOC_LOCK_OPEN);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct kdsm_info *info;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!is_device(fd))
		return syscall(SYS_ioctl, fd, request, arg);
	switch (request) {
	case KDSM_IOC_INFO:
		info = arg;
		info->abi_version = KDSM_ABI_VERSION;
		info->domain = KDSM_DOMAIN_SW;
		info->nodes = 2;
		return 0;
	case KDSM_IOC_REGION_OPEN:
		return fake_region_open(fd, arg);
	case KDSM_IOC_SUBMIT:
		return fake_submit(arg);
	case KDSM_IOC_WAIT:
		if (module.posted)
			*module.posted = module.head;
		usleep(((struct kdsm_wait *)arg)->timeout / 1000 + 1);
		return refuse(-ETIMEDOUT);
	case KDSM_IOC_WAKE:
		return 0;
	case KDSM_IOC_LOCK_OPEN:
		return fake_lock_open(arg);
	case KDSM_IOC_LOCK_THREAD:
		((struct kdsm_lock_thread *)arg)->thread = THREAD + module.threads++;
		return result(request);
	case KDSM_IOC_LOCK:
		module.take = *(struct kdsm_lock_take *)arg;
		return result(request);
	case KDSM_IOC_UNLOCK:
	case KDSM_IOC_LOCK_CONSISTENT:
		module.give = *(struct kdsm_lock_give *)arg;
		return result(request);
	case KDSM_IOC_LOCK_SET:
		module.set = *(struct kdsm_lock_set *)arg;
		return result(request);
	case KDSM_IOC_LOCK_INFO:
		((struct kdsm_lock_info *)arg)->levels = 3;
		return result(request);
	default:
		return refuse(-ENOTTY);
	}
}

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_lock *lock;

static int setup(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 2 * PART };

	(void)state;
	memset(&module, 0, sizeof(module));
	module.number = NUMBER;
	if (kdsm_open(0, &kdsm) || kdsm_region_open(kdsm, "r", &attr, &region) ||
	    kdsm_lock_create(region, "l", 0, NULL, &lock))
		return -1;
	/* Learn the number of this thread. */
	kdsm_lock_is_mine(lock);
	module.calls = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kdsm_lock_close(lock);
	kdsm_region_close(region);
	kdsm_close(kdsm);
	return 0;
}

static __u64 *word(void)
{
	return &module.words[NUMBER].state;
}

static void opening(void **state)
{
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = KDSM_LOCK_DMCS,
		.flags = KDSM_LOCK_EXCL,
	};
	struct kdsm_lock *other;

	(void)state;
	assert_string_equal(module.open.name, "l");
	assert_int_equal(module.open.flags, KDSM_LOCK_CREATE);
	assert_int_equal(module.open.kind, KDSM_LOCK_RMA_MCS);
	assert_int_equal(module.open.argsz, sizeof(module.open));
	assert_int_equal(kdsm_lock_number(lock), NUMBER);
	assert_int_equal(kdsm_lock_kind(lock), KDSM_LOCK_RMA_RW);
	assert_int_equal(kdsm_lock_levels(lock), 3);

	attr.settings.mask = KDSM_LOCK_SET_KEEP;
	attr.settings.keep = 5;
	/* After an interrupt the library repeats the original request. */
	module.interrupt = 2;
	assert_int_equal(kdsm_lock_create(region, "name", 3, &attr, &other), 0);
	assert_int_equal(module.calls, 3);
	assert_string_equal(module.open.name, "name");
	assert_int_equal(module.open.flags, KDSM_LOCK_CREATE | KDSM_LOCK_EXCL);
	assert_int_equal(module.open.kind, KDSM_LOCK_DMCS);
	assert_int_equal(module.open.settings.keep, 5);
	kdsm_lock_close(other);

	assert_int_equal(kdsm_lock_open(region, NULL, 3, &other), 0);
	assert_int_equal(module.open.number, 3);
	assert_int_equal(module.open.flags | module.open.kind | module.open.name[0], 0);
	kdsm_lock_close(other);

	/*
	 * The library rejects a number beyond the array of lock words, even from the
	 * module.
	 */
	module.number = KDSM_MAX_LOCKS;
	assert_int_equal(kdsm_lock_open(region, NULL, 3, &other), -EPROTO);
	module.error = -ENOENT;
	assert_int_equal(kdsm_lock_open(region, NULL, 3, &other), -ENOENT);
	assert_null(other);
}

static void read_only(void **state)
{
	struct kdsm_lock *other;

	(void)state;
	kdsm_lock_close(lock);
	kdsm_region_close(region);
	module.read_only = true;
	assert_int_equal(kdsm_region_open(kdsm, "r", NULL, &region), 0);
	assert_int_equal(kdsm_lock_open(region, "l", 0, &other), -EACCES);
	assert_int_equal(module.calls, 0);
	lock = NULL;
}

static void words_come_and_go(void **state)
{
	(void)state;
	assert_int_equal(module.unmapped, 0);
	kdsm_lock_close(lock);
	kdsm_region_close(region);
	assert_int_equal(module.unmapped, 1);
	lock = NULL;
	region = NULL;
}

static void no_call(void **state)
{
	int i;

	(void)state;
	*word() = KDSM_LOCK_AT_NODE;
	for (i = 0; i < 10; i++) {
		assert_int_equal(kdsm_lock(lock), 0);
		assert_int_equal(*word(), KDSM_LOCK_AT_NODE | THREAD);
		assert_int_equal(kdsm_lock_is_mine(lock), 1);
		assert_int_equal(kdsm_lock_try(lock), -EDEADLK);
		assert_int_equal(kdsm_lock(lock), -EDEADLK);
		assert_int_equal(kdsm_unlock(lock), 0);
		assert_int_equal(*word(), KDSM_LOCK_AT_NODE);
		assert_int_equal(kdsm_lock_try(lock), 0);
		assert_int_equal(kdsm_unlock(lock), 0);
		assert_int_equal(kdsm_lock_timed(lock, 5), 0);
		assert_int_equal(kdsm_unlock(lock), 0);
	}
	assert_int_equal(module.calls, 0);
	assert_int_equal(module.words[NUMBER].uses, 30);
	for (i = 0; i < KDSM_MAX_LOCKS; i++)
		if (i != NUMBER)
			assert_int_equal(module.words[i].state | module.words[i].uses, 0);
}

static void check_take(uint32_t flags, uint64_t timeout)
{
	assert_int_equal(module.request, KDSM_IOC_LOCK);
	assert_int_equal(module.take.argsz, sizeof(module.take));
	assert_int_equal(module.take.flags, flags);
	assert_int_equal(module.take.number, NUMBER);
	assert_int_equal(module.take.thread, THREAD);
	assert_true(module.take.timeout == timeout);
}

/*
 * In every other state of the word the library calls the module, and leaves the word alone.
 */
static void calls(void **state)
{
	static const __u64 states[] = {
		0, KDSM_LOCK_AT_NODE | KDSM_LOCK_WANTED, KDSM_LOCK_AT_NODE | KDSM_LOCK_WAITERS | 5,
		KDSM_LOCK_AT_NODE | KDSM_LOCK_DEAD, KDSM_LOCK_LOST, KDSM_LOCK_AT_NODE | 5,
		KDSM_LOCK_AT_NODE | KDSM_LOCK_FLAG(5), 5, ~0ULL,
	};
	unsigned int i;

	(void)state;
	module.error = -EOWNERDEAD;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		*word() = states[i];
		assert_int_equal(kdsm_lock(lock), -EOWNERDEAD);
		check_take(0, KDSM_FOREVER);
		assert_int_equal(kdsm_lock_try(lock), -EOWNERDEAD);
		check_take(KDSM_LOCK_TRY, 0);
		assert_int_equal(kdsm_lock_timed(lock, 0), -EOWNERDEAD);
		check_take(0, 0);
		assert_int_equal(kdsm_read_lock(lock), -EOWNERDEAD);
		check_take(KDSM_LOCK_READ, KDSM_FOREVER);
		assert_int_equal(kdsm_read_lock_try(lock), -EOWNERDEAD);
		check_take(KDSM_LOCK_READ | KDSM_LOCK_TRY, 0);
		assert_int_equal(kdsm_unlock(lock), -EOWNERDEAD);
		assert_int_equal(module.request, KDSM_IOC_UNLOCK);
		assert_int_equal(module.give.flags, 0);
		assert_int_equal(module.give.number, NUMBER);
		assert_int_equal(module.give.thread, THREAD);
		assert_int_equal(kdsm_read_unlock(lock), -EOWNERDEAD);
		assert_int_equal(module.request, KDSM_IOC_UNLOCK);
		assert_int_equal(module.give.flags, KDSM_LOCK_READ);
		assert_true(*word() == states[i]);
	}
	/* Another thread waits for the lock of this thread, so the unlock needs a call. */
	*word() = KDSM_LOCK_AT_NODE | KDSM_LOCK_WAITERS | THREAD;
	module.error = 0;
	assert_int_equal(kdsm_unlock(lock), 0);
	assert_int_equal(module.request, KDSM_IOC_UNLOCK);
	assert_int_equal(kdsm_lock_consistent(lock), 0);
	assert_int_equal(module.request, KDSM_IOC_LOCK_CONSISTENT);
	assert_int_equal(module.give.number, NUMBER);
}

static void interrupted(void **state)
{
	(void)state;
	module.interrupt = 3;
	assert_int_equal(kdsm_lock(lock), 0);
	assert_int_equal(module.calls, 4);
	module.interrupt = 1;
	assert_int_equal(kdsm_lock_interruptible(lock, KDSM_FOREVER), -EINTR);
	module.interrupt = 1;
	assert_int_equal(kdsm_read_lock_interruptible(lock, KDSM_FOREVER), -EINTR);
	module.interrupt = 1;
	assert_int_equal(kdsm_unlock(lock), 0);

	/* A repeated request passes only the rest of the timeout. */
	module.interrupt = 1;
	module.delay = 20000;
	assert_int_equal(kdsm_lock_timed(lock, SECOND), 0);
	assert_in_range(module.take.timeout, 1, SECOND - 20 * MS);
	module.interrupt = 1;
	assert_int_equal(kdsm_read_lock_timed(lock, 10 * MS), 0);
	assert_int_equal(module.take.timeout, 0);
}

static void *learn(void *arg)
{
	kdsm_lock_is_mine(arg);
	kdsm_lock_is_mine(arg);
	return NULL;
}

/* A thread asks for its number once for each region. A child process asks again. */
static void numbers(void **state)
{
	struct kdsm_lock *other;
	unsigned int threads = module.threads;
	pid_t pid;

	(void)state;
	assert_int_equal(kdsm_lock_create(region, "other", 0, NULL, &other), 0);
	learn(lock);
	learn(other);
	assert_int_equal(module.threads, threads);
	kdsm_lock_close(other);
	join(start(learn, lock));
	assert_int_equal(module.threads, threads + 1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		learn(lock);
		_exit(module.threads != threads + 2);
	}
	reap(pid);

	/* Without a number for the thread, the lock call fails. */
	module.error = -ENOSPC;
	assert_int_equal(call_by_other(kdsm_lock, lock), -ENOSPC);
}

static void tuning(void **state)
{
	struct kdsm_lock_settings settings = { .mask = KDSM_LOCK_SET_T_R, .t_r = 3 };
	struct kdsm_lock_info info;

	(void)state;
	module.interrupt = 1;
	assert_int_equal(kdsm_lock_set(lock, &settings), 0);
	assert_int_equal(module.calls, 2);
	assert_int_equal(module.set.number, NUMBER);
	assert_int_equal(module.set.settings.t_r, 3);
	assert_int_equal(kdsm_lock_info(lock, &info), 0);
	assert_int_equal(info.number, NUMBER);
	assert_int_equal(info.levels, 3);
	module.error = -ERANGE;
	assert_int_equal(kdsm_lock_set(lock, &settings), -ERANGE);
}

/* ---- readers' slots ---- */

#define MINE	KDSM_LOCK_SLOT(THREAD, NUMBER)

static void set_bias(uint64_t bias)
{
	module.words[NUMBER].bias = bias;
}

static int protect_slots(int protection)
{
	return syscall(SYS_mprotect, module.words + KDSM_MAX_LOCKS, KDSM_LOCK_SLOTS * 8,
		       protection);
}

static void on_fault(int signal)
{
	/* Without a fault to come, this is an error of the library: end the program. */
	if (!module.fault || protect_slots(PROT_READ | PROT_WRITE))
		_exit(signal);
	module.fault();
	module.fault = NULL;
}

/* The module calls fault() when the library accesses the slots next, or first writes to them. */
static void before_access(void (*fault)(void), bool of_writes)
{
	struct sigaction action = { .sa_handler = on_fault };

	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	module.fault = fault;
	assert_int_equal(protect_slots(of_writes ? PROT_READ : PROT_NONE), 0);
}

static void check_reading(void)
{
	assert_true(*slot() == MINE);
	assert_int_equal(kdsm_read_unlock(lock), 0);
	assert_true(*slot() == 0);
}

static void check_unlock(void)
{
	assert_int_equal(module.request, KDSM_IOC_UNLOCK);
	assert_int_equal(module.give.argsz, sizeof(module.give));
	assert_int_equal(module.give.flags, KDSM_LOCK_READ);
	assert_int_equal(module.give.number, NUMBER);
	assert_int_equal(module.give.thread, THREAD);
	assert_true(module.slot == 0);
}

/* While bias is set, readers make no call, whatever the state of the lock. */
static void slots(void **state)
{
	int i;

	(void)state;
	set_bias(1);
	for (i = 0; i < 3; i++) {
		*word() = i == 1 ? KDSM_LOCK_AT_NODE | KDSM_LOCK_WANTED : 0;
		assert_int_equal(kdsm_read_lock(lock), 0);
		check_reading();
		assert_int_equal(kdsm_read_lock_try(lock), 0);
		check_reading();
		assert_int_equal(kdsm_read_lock_timed(lock, 5), 0);
		check_reading();
		assert_int_equal(kdsm_read_lock_interruptible(lock, 0), 0);
		check_reading();
	}
	assert_int_equal(module.calls, 0);
	assert_int_equal(module.words[NUMBER].uses, 0);
	assert_int_equal(module.words[NUMBER].bias, 1);
	assert_int_equal(kdsm_lock_is_mine(lock), 0);
}

static void end_bias(void)
{
	set_bias(0);
}

/* The module clears bias after the reader has looked, and before the reader has stored its slot. */
static void slots_barred(void **state)
{
	(void)state;
	set_bias(1);
	before_access(end_bias, true);
	assert_int_equal(kdsm_read_lock(lock), 0);
	assert_int_equal(module.calls, 1);
	check_take(KDSM_LOCK_READ, KDSM_FOREVER);
	assert_true(module.slot == 0);
	assert_true(*slot() == 0);

	set_bias(1);
	before_access(end_bias, true);
	assert_int_equal(kdsm_read_lock_try(lock), 0);
	check_take(KDSM_LOCK_READ | KDSM_LOCK_TRY, 0);
	assert_true(module.slot == 0);
}

/* The module may wait for the reader, so the reader calls it, and has unlocked in any case. */
static void slots_unlock(void **state)
{
	static const int errors[] = { 0, -EPERM };
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		set_bias(1);
		assert_int_equal(kdsm_read_lock(lock), 0);
		set_bias(0);
		module.error = errors[i];
		module.calls = 0;
		module.interrupt = i;
		assert_int_equal(kdsm_read_unlock(lock), 0);
		assert_int_equal(module.calls, 1 + i);
		check_unlock();
		assert_true(*slot() == 0);

		set_bias(1);
		assert_int_equal(kdsm_read_lock(lock), 0);
		before_access(end_bias, true);
		module.calls = 0;
		assert_int_equal(kdsm_read_unlock(lock), 0);
		assert_int_equal(module.calls, 1);
		check_unlock();
	}
}

/* A thread has one slot for all locks, and threads whose numbers are far apart share one. */
static void slots_in_use(void **state)
{
	const uint64_t values[] = {
		KDSM_LOCK_SLOT(THREAD, NUMBER + 1), KDSM_LOCK_SLOT(THREAD, 0),
		KDSM_LOCK_SLOT(THREAD + KDSM_LOCK_SLOTS, NUMBER), ~0ULL, 1,
	};
	unsigned int i;

	(void)state;
	assert_int_equal(KDSM_LOCK_SLOT_INDEX(THREAD),
			 KDSM_LOCK_SLOT_INDEX(THREAD + KDSM_LOCK_SLOTS));
	set_bias(1);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		*slot() = values[i];
		assert_int_equal(kdsm_read_lock(lock), 0);
		check_take(KDSM_LOCK_READ, KDSM_FOREVER);
		assert_true(*slot() == values[i]);
		/* The module has let the thread in without a slot. */
		assert_int_equal(kdsm_read_unlock(lock), 0);
		assert_int_equal(module.request, KDSM_IOC_UNLOCK);
		assert_int_equal(module.give.flags, KDSM_LOCK_READ);
		assert_true(*slot() == values[i]);
	}
	assert_int_equal(module.calls, 2 * i);

	/* A thread that reads locks again: the module finds that. */
	*slot() = 0;
	assert_int_equal(kdsm_read_lock(lock), 0);
	module.error = -EDEADLK;
	assert_int_equal(kdsm_read_lock(lock), -EDEADLK);
	assert_int_equal(kdsm_read_lock_try(lock), -EDEADLK);
	assert_int_equal(module.calls, 2 * i + 2);
	check_reading();
}

static void forfeit(void)
{
	set_bias(0);
	*slot() = 0;
}

/* As forfeit(), and another thread has the slot now, because this node may read again. */
static void forfeit_to_another(void)
{
	*slot() = KDSM_LOCK_SLOT(THREAD + KDSM_LOCK_SLOTS, NUMBER);
}

/* The module takes the slot away while the reader unlocks. */
static void unlock_forfeited(void (*fault)(void))
{
	module.error = 0;
	set_bias(1);
	assert_int_equal(kdsm_read_lock(lock), 0);
	module.error = -EHOSTDOWN;
	before_access(fault, true);
	assert_int_equal(kdsm_read_unlock(lock), -EHOSTDOWN);
}

/* The module has taken the slot away, because this node was given up. */
static void slots_forfeited(void **state)
{
	(void)state;
	set_bias(1);
	assert_int_equal(kdsm_read_lock(lock), 0);
	forfeit();
	module.error = -EHOSTDOWN;
	assert_int_equal(kdsm_read_unlock(lock), -EHOSTDOWN);
	check_unlock();

	unlock_forfeited(forfeit);
	check_unlock();
	unlock_forfeited(forfeit_to_another);
	assert_int_equal(module.request, KDSM_IOC_UNLOCK);
	assert_true(*slot() == KDSM_LOCK_SLOT(THREAD + KDSM_LOCK_SLOTS, NUMBER));
}

/* A thread that never held the lock, and a child that reads by its own slot */
static void slots_of_others(void **state)
{
	pid_t pid;

	(void)state;
	set_bias(1);
	assert_int_equal(kdsm_read_lock(lock), 0);
	module.calls = 0;
	assert_int_equal(call_by_other(kdsm_read_unlock, lock), 0);
	/* The thread has also asked for its number. */
	assert_int_equal(module.calls, 2);
	assert_int_equal(module.request, KDSM_IOC_UNLOCK);
	assert_int_equal(module.give.thread, THREAD + 1);
	assert_int_equal(call_by_other(kdsm_read_lock, lock), 0);
	assert_int_equal(module.request, KDSM_IOC_LOCK_THREAD);
	assert_true(*slot() == MINE);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(kdsm_read_lock(lock) || kdsm_read_unlock(lock) || *slot() != MINE);
	reap(pid);
	check_reading();
}

/* ---- waiting lines whose home is the other node ---- */

static void check_remote(unsigned int count)
{
	assert_int_equal(module.remote, count);
	module.remote = 0;
}

static void remote_lines(void **state)
{
	struct kdsm_cond cond;
	struct kdsm_sem sem;

	(void)state;
	assert_int_equal(kdsm_cond_init(&cond, region, 0, 1), 0);
	assert_int_equal(kdsm_sem_init(&sem, region, KDSM_LINE_SIZE, 1, 1, NULL), 0);
	module.remote = 0;
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	check_remote(1);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	check_remote(1);
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	check_remote(1);
	assert_int_equal(kdsm_cond_broadcast(&cond), 0);
	check_remote(1);

	/* Without time, a wait only reads the head. */
	assert_int_equal(kdsm_sem_wait(&sem), 0);
	module.remote = 0;
	assert_int_equal(kdsm_sem_timed(&sem, 0), -ETIMEDOUT);
	check_remote(1);
	/*
	 * Operations: 1 reads the head, 3 join the line, 1 reads the head again, and 3 leave: 1
	 * for the entry, 1 to find the next waiter, 1 for the head
	 */
	assert_int_equal(kdsm_sem_timed(&sem, 100000), -ETIMEDOUT);
	check_remote(1 + 3 + 1 + 3);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	check_remote(1);
	assert_int_equal(kdsm_sem_try(&sem), 0);
	assert_int_equal(kdsm_sem_try(&sem), -EAGAIN);
}

/* Ticket KDSM_LINE_MOST waits, on node 1. */
static uint64_t *join_there(uint64_t offset)
{
	uint64_t *line = (uint64_t *)kdsm_region_part(region) + (PART + offset) / 8;

	line[0] |= make_front(0, 1);
	line[8] = make_entry(KDSM_LINE_MOST, 1);
	line[8 + KDSM_LINE_MOST] = 0;
	module.remote = 0;
	return line;
}

/* A thread of node 1 waits: the poster rings its bell on node 1. */
static void remote_waiter(void **state)
{
	uint64_t *words = kdsm_region_part(region), *there;
	struct kdsm_cond cond;
	struct kdsm_sem sem;

	(void)state;
	assert_int_equal(kdsm_sem_init(&sem, region, 0, 1, 0, NULL), 0);
	there = join_there(0);
	assert_int_equal(kdsm_sem_post(&sem), 0);
	check_remote(2);
	assert_true(there[0] == make_head(0, make_front(0, 1), 1));
	assert_int_equal(there[8 + KDSM_LINE_MOST], 1);
	assert_int_equal(words[8 + KDSM_LINE_MOST], 0);
	/* The waiter is awake. */
	assert_int_equal(kdsm_sem_post(&sem), 0);
	check_remote(1);

	assert_int_equal(kdsm_cond_init(&cond, region, KDSM_LINE_SIZE, 1), 0);
	there = join_there(KDSM_LINE_SIZE);
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	check_remote(2);
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	check_remote(1);
	assert_int_equal(there[8 + KDSM_LINE_MOST], 1);
	there[0] = make_head(0, 0, 0);
	there = join_there(KDSM_LINE_SIZE);
	assert_int_equal(kdsm_cond_broadcast(&cond), 0);
	check_remote(2);
	assert_true(there[0] == make_head(0, make_front(0, 1), KDSM_LINE_MOST));
	/* Signals that no thread needs do not overflow. */
	there[0] = make_head(0, 0, KDSM_SEM_MAX);
	assert_int_equal(kdsm_cond_signal(&cond), 0);
	assert_true(there[0] == make_head(0, 0, KDSM_LINE_MOST));
}

/* The post arrives just as the waiter times out. The waiter takes the post. */
static void late_post(void **state)
{
	uint64_t *there = (uint64_t *)kdsm_region_part(region) + PART / 8;
	struct kdsm_sem sem;

	(void)state;
	assert_int_equal(kdsm_sem_init(&sem, region, 0, 1, 0, NULL), 0);
	module.posted = &there[0];
	module.head = make_head(0, make_front(0, 0), 1);
	assert_int_equal(kdsm_sem_timed(&sem, 100000), 0);
	assert_true(there[0] == make_head(0, 0, 0));
	module.posted = NULL;
	assert_int_equal(kdsm_sem_timed(&sem, 100000), -ETIMEDOUT);
	assert_true(there[0] == make_head(0, 0, 0));
	assert_int_equal(there[9], 0);
}

#define device_case(function) \
	cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		device_case(opening),
		device_case(read_only),
		device_case(words_come_and_go),
		device_case(no_call),
		device_case(calls),
		device_case(interrupted),
		device_case(numbers),
		device_case(tuning),
		device_case(slots),
		device_case(slots_barred),
		device_case(slots_unlock),
		device_case(slots_in_use),
		device_case(slots_forfeited),
		device_case(slots_of_others),
		device_case(remote_lines),
		device_case(remote_waiter),
		device_case(late_post),
	};

	return UNIT_RUN(tests);
}
#endif
