// SPDX-License-Identifier: GPL-2.0
/*
 * Locks through the module's calls and the lock words, from a program on every node at the
 * same time: exclusion, the cost of uncontended locks, errors, owners that die, waits that
 * end early, words that are overwritten. Needs two nodes.
 *
 * usage: lock [-m] [PART-OF-A-TEST-NAME]
 *
 * -m: locks of kind RMA_MCS; without it DMCS.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/lock.h>
#include "guest.h"
#include "mute.h"

#define NAME "lock-test"
#define THREADS 3
#define FOREVER (~0ULL)

static struct kdsm_region *region;
static int file;			/* bound to region */
static uint32_t kind = KDSM_LOCK_DMCS;
static struct kdsm_lock_word *words;

static int call(int on, unsigned long number, void *arg)
{
	return ioctl(on, number, arg) < 0 ? -errno : 0;
}

static int bind_file(void)
{
	struct kdsm_region_open args = { .argsz = sizeof(args) };
	int on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);

	snprintf(args.name, sizeof(args.name), "%s", NAME);
	if (on < 0 || call(on, KDSM_IOC_REGION_OPEN, &args))
		guest_die("bind", -errno);
	return on;
}

static int open_lock(int on, const char *name, uint32_t flags, uint32_t *number)
{
	struct kdsm_lock_open args = {
		.argsz = sizeof(args), .flags = flags, .kind = kind,
	};
	int ret;

	snprintf(args.name, sizeof(args.name), "%s", name);
	ret = call(on, KDSM_IOC_LOCK_OPEN, &args);
	*number = args.number;
	return ret;
}

/* One lock for each test; the same lock on all nodes */
static uint32_t make_lock(const char *name)
{
	uint32_t number = KDSM_LOCK_ANY;

	CHECK_IS(open_lock(file, name, KDSM_LOCK_CREATE, &number), 0);
	return number;
}

static uint32_t thread_of(int on)
{
	struct kdsm_lock_thread args = { .argsz = sizeof(args) };

	if (call(on, KDSM_IOC_LOCK_THREAD, &args))
		guest_die("thread", -errno);
	return args.thread;
}

static int take(int on, uint32_t number, uint32_t thread, uint32_t flags, uint64_t timeout)
{
	struct kdsm_lock_take args = {
		.argsz = sizeof(args), .flags = flags, .number = number, .thread = thread,
		.timeout = timeout,
	};

	return call(on, KDSM_IOC_LOCK, &args);
}

static int give(int on, uint32_t number, uint32_t thread)
{
	struct kdsm_lock_give args = {
		.argsz = sizeof(args), .number = number, .thread = thread,
	};

	return call(on, KDSM_IOC_UNLOCK, &args);
}

static int consistent(int on, uint32_t number, uint32_t thread)
{
	struct kdsm_lock_give args = {
		.argsz = sizeof(args), .number = number, .thread = thread,
	};

	return call(on, KDSM_IOC_LOCK_CONSISTENT, &args);
}

/* The two transitions of a lock word that programs make without a call */
static bool fast_take(uint32_t number, uint32_t thread)
{
	__u64 expected = KDSM_LOCK_AT_NODE;

	if (!__atomic_compare_exchange_n(&words[number].state, &expected,
					 KDSM_LOCK_AT_NODE | thread, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	words[number].uses++;
	return true;
}

static bool fast_give(uint32_t number, uint32_t thread)
{
	__u64 expected = KDSM_LOCK_AT_NODE | thread;

	return __atomic_compare_exchange_n(&words[number].state, &expected, KDSM_LOCK_AT_NODE,
					   false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static struct kdsm_lock_info info_of(uint32_t number)
{
	struct kdsm_lock_info info = { .argsz = sizeof(info), .number = number };

	CHECK_IS(call(file, KDSM_IOC_LOCK_INFO, &info), 0);
	return info;
}

/*
 * Number of queues that node i is in. tests/cluster puts two machines into a chassis, and
 * two chassis into a rack.
 */
static unsigned int queues_of(unsigned int i)
{
	if (kind == KDSM_LOCK_DMCS)
		return 1;
	return ((i ^ 1) < nodes) + ((i & ~3U) + 2 < nodes) + (nodes > 4);
}

/* ---- tests ---- */

static void lock_alone(void)
{
	uint32_t number = make_lock("alone"), me = thread_of(file);
	struct kdsm_lock_info info;
	unsigned int i;

	meet();
	if (node == 1) {
		CHECK_IS(words[number].state, 0);
		CHECK(!fast_take(number, me));
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
		info = info_of(number);
		/* One atomic for each queue, and no other operation */
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], queues_of(1));
		CHECK_IS(info.stats[KDSM_LOCK_STAT_PUTS] + info.stats[KDSM_LOCK_STAT_GETS] +
			 info.stats[KDSM_LOCK_STAT_MESSAGES], 0);
		CHECK_IS(words[number].state, KDSM_LOCK_AT_NODE | me);
		CHECK(fast_give(number, me));
		for (i = 0; i < 1000; i++) {
			CHECK(fast_take(number, me));
			CHECK(fast_give(number, me));
		}
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
		CHECK_IS(give(file, number, me), 0);
		info = info_of(number);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], queues_of(1));
		CHECK_IS(info.stats[KDSM_LOCK_STAT_FAST], 1000);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_LOCKS], 2);
		CHECK_IS(info.kind, kind);
		CHECK_IS(info.levels, kind == KDSM_LOCK_DMCS ? 2 : 4);
		CHECK(!strcmp(info.name, "alone"));
	}
	meet();
	/* Node 1 keeps the lock; node 0 takes it over from there. */
	if (node == 0) {
		CHECK_IS(take(file, number, me, KDSM_LOCK_TRY, 0), -EBUSY);
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
		CHECK_IS(give(file, number, me), 0);
	}
	meet();
	if (node == 1)
		CHECK(!fast_take(number, me));
}

/* With keep 0, every unlock returns the lock to its home. */
static void lock_let_go(void)
{
	struct kdsm_lock_open args = {
		.argsz = sizeof(args), .flags = KDSM_LOCK_CREATE, .name = "let-go",
		.kind = kind, .settings.mask = KDSM_LOCK_SET_KEEP,
	};
	uint32_t me = thread_of(file);
	struct kdsm_lock_info info;
	unsigned int i;

	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &args), 0);
	CHECK_IS(args.settings.keep, 0);
	meet();
	if (node == 0) {
		for (i = 0; i < 10; i++) {
			CHECK_IS(take(file, args.number, me, 0, FOREVER), 0);
			CHECK_IS(give(file, args.number, me), 0);
			CHECK_IS(words[args.number].state, 0);
		}
		info = info_of(args.number);
		/* For each queue, one atomic to lock and one to unlock */
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], 20 * queues_of(0));
		CHECK_IS(info.stats[KDSM_LOCK_STAT_FREE], 10 * queues_of(0));
		CHECK_IS(info.stats[KDSM_LOCK_STAT_FREED], 10 * queues_of(0));
	}
	meet();
	if (node == 1) {
		CHECK_IS(take(file, args.number, me, KDSM_LOCK_TRY, 0), 0);
		CHECK_IS(give(file, args.number, me), 0);
	}
	meet();
	if (node == 0) {
		struct kdsm_lock_set set = {
			.argsz = sizeof(set), .number = args.number,
			.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = FOREVER },
		};

		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), 0);
		set.settings.mask = KDSM_LOCK_SET_T_L(kind == KDSM_LOCK_DMCS ? 2 : 5);
		set.settings.t_l[1] = 7;
		set.settings.t_l[4] = 7;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), -ERANGE);
		set.settings.mask = 0;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), -EINVAL);
	}
	meet();
	info = info_of(args.number);
	CHECK_IS(info.settings.keep, FOREVER);
}

/* The levels that a lock of kind RMA_MCS has, and their initial thresholds */
static void lock_levels(void)
{
	struct kdsm_lock_open args = {
		.argsz = sizeof(args), .flags = KDSM_LOCK_CREATE, .name = "levels",
		.kind = kind,
	};
	struct kdsm_lock_set set = { .argsz = sizeof(set) };
	struct kdsm_lock_info info;
	unsigned int i;

	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &args), 0);
	CHECK_IS(args.settings.mask, kind == KDSM_LOCK_DMCS ? KDSM_LOCK_SET_KEEP :
		 KDSM_LOCK_SET_KEEP | KDSM_LOCK_SET_T_L(2) | KDSM_LOCK_SET_T_L(3) |
		 KDSM_LOCK_SET_T_L(4));
	for (i = 2; i <= args.levels; i++)
		CHECK_IS(args.settings.t_l[i - 1], kind == KDSM_LOCK_DMCS ? 1 : KDSM_LOCK_T_L_AUTO);
	meet();
	if (node == 0 && kind != KDSM_LOCK_DMCS) {
		set.number = args.number;
		set.settings.mask = KDSM_LOCK_SET_T_L(3);
		set.settings.t_l[2] = 0;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), -ERANGE);
		set.settings.t_l[2] = KDSM_LOCK_T_MAX + 1;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), -ERANGE);
		set.settings.t_l[2] = KDSM_LOCK_T_L_AUTO - 1;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), -ERANGE);
		set.settings.t_l[2] = KDSM_LOCK_T_L_AUTO;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), 0);
		CHECK_IS(info_of(args.number).settings.t_l[2], KDSM_LOCK_T_L_AUTO);
		set.settings.t_l[2] = 3;
		CHECK_IS(call(file, KDSM_IOC_LOCK_SET, &set), 0);
	}
	meet();
	info = info_of(args.number);
	if (kind != KDSM_LOCK_DMCS)
		CHECK_IS(info.settings.t_l[2], 3);
}

/* The lock that a program gets if it passes no attributes */
static void lock_default(void)
{
	struct kdsm_lock *lock;
	unsigned int i;

	CHECK_IS(kdsm_lock_create(region, "default", 0, NULL, &lock), 0);
	CHECK_IS(kdsm_lock_kind(lock), KDSM_LOCK_RMA_MCS);
	CHECK_IS(kdsm_lock_levels(lock), 4);
	for (i = 0; i < 20; i++) {
		CHECK_IS(kdsm_lock(lock), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	kdsm_lock_close(lock);
}

/* A node that closes a region keeps none of the region's locks. */
static void lock_closed(void)
{
	struct kdsm_region_open args = {
		.argsz = sizeof(args), .flags = KDSM_REGION_CREATE, .name = "lock-closed",
		.size = 4096 * nodes, .policy = KDSM_POLICY_PARTITIONED,
	};
	int on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	uint32_t number, me;

	CHECK_IS(call(on, KDSM_IOC_REGION_OPEN, &args), 0);
	CHECK_IS(open_lock(on, "it", KDSM_LOCK_CREATE, &number), 0);
	me = thread_of(on);
	meet();
	if (node == 1) {
		CHECK_IS(take(on, number, me, 0, FOREVER), 0);
		CHECK_IS(give(on, number, me), 0);
	}
	meet();
	if (node == 0)
		CHECK_IS(take(on, number, me, KDSM_LOCK_TRY, 0), -EBUSY);
	if (node == 1)
		CHECK_IS(take(on, number, me, 0, 10 * SECOND), 0);
	meet();
	/* Node 1 closes the region while its thread has the lock. */
	if (node == 1)
		close(on);
	meet();
	if (node == 0) {
		CHECK_IS(take(on, number, me, 0, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(consistent(on, number, me), 0);
		CHECK_IS(give(on, number, me), 0);
	}
	meet();
	if (node == 1) {
		on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
		CHECK_IS(call(on, KDSM_IOC_REGION_OPEN, &args), 0);
		me = thread_of(on);
		CHECK_IS(take(on, number, me, 0, 10 * SECOND), 0);
		CHECK_IS(give(on, number, me), 0);
		close(on);
	}
	meet();
	if (node == 0) {
		CHECK_IS(take(on, number, me, KDSM_LOCK_TRY, 0), 0);
		CHECK_IS(give(on, number, me), 0);
	}
	if (node != 1)
		close(on);
}

/* ---- a counter that needs the lock ---- */

#define ROUNDS 150

static uint32_t counted;

static void *count(void *arg)
{
	uint32_t me = thread_of(file);
	uint64_t value;
	unsigned int i;

	(void)arg;
	for (i = 0; i < ROUNDS; i++) {
		if (!fast_take(counted, me))
			CHECK_IS(take(file, counted, me, 0, FOREVER), 0);
		CHECK_IS(kdsm_get(region, 0, 0, &value, 8), 0);
		value++;
		CHECK_IS(kdsm_put(region, 0, 0, &value, 8), 0);
		if (!fast_give(counted, me))
			CHECK_IS(give(file, counted, me), 0);
	}
	return NULL;
}

static void lock_counter(void)
{
	struct kdsm_lock_open args = {
		.argsz = sizeof(args), .flags = KDSM_LOCK_CREATE, .kind = kind,
		.name = "counter",
	};
	uint64_t zero = 0, value = 0;
	pthread_t threads[THREADS];
	struct kdsm_lock_info info;
	unsigned int i;

	/* Low thresholds, so that they are often reached */
	if (kind != KDSM_LOCK_DMCS) {
		args.settings.mask = KDSM_LOCK_SET_T_L(3) | KDSM_LOCK_SET_T_L(4);
		args.settings.t_l[2] = 5;
		args.settings.t_l[3] = 2;
	}
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &args), 0);
	counted = args.number;
	if (node == 0)
		CHECK_IS(kdsm_put(region, 0, 0, &zero, 8), 0);
	meet();
	for (i = 0; i < THREADS; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, count, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet();
	CHECK_IS(kdsm_get(region, 0, 0, &value, 8), 0);
	CHECK_IS(value, (uint64_t)ROUNDS * THREADS * nodes);
	info = info_of(counted);
	printf("# locks %llu fast %llu queued %llu free %llu atomics %llu puts %llu gets %llu messages %llu longest %llu us\n",
	       info.stats[KDSM_LOCK_STAT_LOCKS], info.stats[KDSM_LOCK_STAT_FAST],
	       info.stats[KDSM_LOCK_STAT_ENTERED], info.stats[KDSM_LOCK_STAT_FREE],
	       info.stats[KDSM_LOCK_STAT_ATOMICS], info.stats[KDSM_LOCK_STAT_PUTS],
	       info.stats[KDSM_LOCK_STAT_GETS], info.stats[KDSM_LOCK_STAT_MESSAGES],
	       info.stats[KDSM_LOCK_STAT_LONGEST] / 1000);
	CHECK_IS(info.stats[KDSM_LOCK_STAT_LOCKS] + info.stats[KDSM_LOCK_STAT_FAST],
		 ROUNDS * THREADS);
}

/* ---- errors ---- */

static void lock_errors(void)
{
	uint32_t number = make_lock("errors"), me = thread_of(file), other;
	struct kdsm_lock_open bad = { .argsz = sizeof(bad) };
	int reader = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);

	CHECK_IS(thread_of(file), me);
	CHECK_IS(open_lock(file, "nowhere", 0, &other), -ENOENT);
	CHECK_IS(open_lock(file, "errors", KDSM_LOCK_CREATE | KDSM_LOCK_EXCL, &other), -EEXIST);
	CHECK_IS(open_lock(file, "errors", KDSM_LOCK_EXCL, &other), -EINVAL);
	CHECK_IS(open_lock(file, "no name", KDSM_LOCK_CREATE, &other), -EINVAL);
	CHECK_IS(open_lock(reader, "errors", 0, &other), -EBADFD);
	bad.number = KDSM_MAX_LOCKS;
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &bad), -EINVAL);
	bad.number = KDSM_MAX_LOCKS - 1;
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &bad), -ENOENT);
	bad.flags = KDSM_LOCK_CREATE;
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &bad), -EINVAL);	/* no kind */
	bad.kind = kind;
	bad.reserved = 1;
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &bad), -EINVAL);
	bad.reserved = 0;
	bad.settings.mask = KDSM_LOCK_SET_T_R;
	CHECK_IS(call(file, KDSM_IOC_LOCK_OPEN, &bad), -ERANGE);
	CHECK_IS(take(file, KDSM_MAX_LOCKS - 2, me, 0, FOREVER), -ENOENT);
	CHECK_IS(take(file, ~0U, me, 0, FOREVER), -ENOENT);
	CHECK_IS(take(file, number, me + 1000, 0, FOREVER), -EPERM);
	CHECK_IS(take(file, number, 0, 0, FOREVER), -EPERM);
	CHECK_IS(take(file, number, me, KDSM_LOCK_READ, FOREVER), -EINVAL);
	CHECK_IS(take(file, number, me, 1U << 31, FOREVER), -EINVAL);
	CHECK_IS(give(file, number, me), -EPERM);
	CHECK_IS(consistent(file, number, me), -EPERM);
	CHECK_IS(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file,
		      KDSM_LOCKS_OFFSET) == MAP_FAILED, true);
	CHECK_IS(mmap(NULL, KDSM_LOCKS_SIZE + 4096, PROT_READ, MAP_SHARED, file,
		      KDSM_LOCKS_OFFSET) == MAP_FAILED, true);
	close(reader);
	meet();
	if (node == 0) {
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
		CHECK_IS(take(file, number, me, 0, FOREVER), -EDEADLK);
		CHECK_IS(take(file, number, me, KDSM_LOCK_TRY, FOREVER), -EDEADLK);
		CHECK_IS(consistent(file, number, me), -EINVAL);
		/* The failed calls left no flag in the lock word, so unlocking needs no call. */
		CHECK(fast_give(number, me));
		CHECK(fast_take(number, me));
	}
	meet();
	if (node == 1) {
		CHECK_IS(give(file, number, me), -EPERM);
		CHECK_IS(take(file, number, me, KDSM_LOCK_TRY, FOREVER), -EBUSY);
		CHECK_IS(take(file, number, me, 0, 0), -ETIMEDOUT);
		CHECK_IS(take(file, number, me, 0, 50 * MS), -ETIMEDOUT);
	}
	meet();
	/*
	 * Node 1 gave up waiting, but is still in the queue of nodes. The queue must stay
	 * intact.
	 */
	if (node == 0) {
		CHECK(!fast_give(number, me));
		CHECK_IS(give(file, number, me), 0);
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
		CHECK_IS(give(file, number, me), 0);
	}
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* ---- signals ---- */

static void nothing(int number)
{
	(void)number;
}

static void *interrupt(void *arg)
{
	usleep(100000);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

static void lock_signal(void)
{
	struct sigaction action = { .sa_handler = nothing };
	uint32_t number = make_lock("signal"), me = thread_of(file);
	pthread_t self = pthread_self(), other;

	sigaction(SIGUSR1, &action, NULL);
	if (node == 0)
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
	meet();
	if (node == 1) {
		CHECK_IS(pthread_create(&other, NULL, interrupt, &self), 0);
		CHECK_IS(take(file, number, me, 0, FOREVER), -EINTR);
		pthread_join(other, NULL);
	}
	meet();
	if (node == 0)
		CHECK_IS(give(file, number, me), 0);
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* ---- owners that die ---- */

static void *die_with_it(void *arg)
{
	uint32_t me = thread_of(file);

	CHECK_IS(take(file, *(uint32_t *)arg, me, 0, FOREVER), 0);
	return NULL;
}

static void lock_thread_dies(void)
{
	uint32_t number = make_lock("thread-dies"), me = thread_of(file);
	pthread_t thread;

	meet();
	if (node == 0) {
		CHECK_IS(pthread_create(&thread, NULL, die_with_it, &number), 0);
		pthread_join(thread, NULL);
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(give(file, number, me + 1), -EPERM);
		CHECK_IS(consistent(file, number, me), 0);
		CHECK_IS(consistent(file, number, me), -EINVAL);
		CHECK_IS(give(file, number, me), 0);
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
		CHECK_IS(give(file, number, me), 0);
		CHECK_IS(info_of(number).stats[KDSM_LOCK_STAT_DEAD], 1);
	}
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* A process with a file of its own takes the lock and is killed. */
static void kill_owner(uint32_t number)
{
	int ready[2], on;
	char byte;
	pid_t pid;

	CHECK_IS(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		on = bind_file();
		if (take(on, number, thread_of(on), 0, FOREVER))
			_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	CHECK_IS(read(ready[0], &byte, 1), 1);
	meet();
	usleep(300000);		/* time for the other node to wait */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
}

static void lock_process_dies(void)
{
	uint32_t number = make_lock("process-dies"), me = thread_of(file);

	if (node == 0)
		kill_owner(number);
	else
		meet();
	if (node == 1) {
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(consistent(file, number, me), 0);
		CHECK_IS(give(file, number, me), 0);
	}
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* The owner dies while nobody waits; the next thread to lock still gets -EOWNERDEAD. */
static void lock_dies_unseen(void)
{
	uint32_t number = make_lock("dies-unseen"), me = thread_of(file);

	if (node == 1)
		kill_owner(number);
	else
		meet();
	meet();
	if (node == 0) {
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), -EOWNERDEAD);
		/* Unlocked, but not made consistent: no thread can get the lock any more. */
		CHECK_IS(give(file, number, me), 0);
		CHECK_IS(take(file, number, me, 0, 10 * SECOND), -ENOTRECOVERABLE);
	}
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), -ENOTRECOVERABLE);
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), -ENOTRECOVERABLE);
}

/* ---- a node that does not answer ---- */

/*
 * Wait until this node reaches all others: after a silence it learns only by trying which
 * nodes have cut its connections.
 */
static void reach_all(void)
{
	unsigned int on, tries;
	uint64_t word;
	int ret;

	for (on = 0; on < nodes; on++) {
		for (tries = 0; tries < 300; tries++) {
			ret = kdsm_get(region, on, 0, &word, sizeof(word));
			if (!ret)
				break;
			usleep(200000);
		}
		CHECK_IS(ret, 0);
	}
}

/*
 * The last node has the lock, and no network for a while. A waiter gets an error in time,
 * and the lock works again when the node is back.
 */
static void lock_silent(void)
{
	uint32_t number = make_lock("silent"), me = thread_of(file);
	struct kdsm_lock_give args = {
		.argsz = sizeof(args), .number = number, .thread = me,
	};
	unsigned int away = nodes - 1, i;
	struct timespec begin, end;
	int ret;

	if (node == away)
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
	meet();
	if (node == away) {
		mute(true);
		sleep(45);
		mute(false);
		/* This node learns that it has lost the lock when it can be reached again. */
		sleep(15);
		ret = give(file, number, me);
		CHECK(ret == -EHOSTDOWN || ret == 0);
	} else if (node == 0) {
		sleep(1);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		ret = take(file, number, me, 0, FOREVER);
		/* -EHOSTDOWN if the silent node is also the lock's home */
		CHECK(ret == -EOWNERDEAD || ret == -EHOSTDOWN);
		clock_gettime(CLOCK_MONOTONIC, &end);
		printf("# told after %ld s\n", end.tv_sec - begin.tv_sec);
		/* Before the node is back. A debug kernel takes 34 s. */
		CHECK(end.tv_sec - begin.tv_sec < 40);
		if (ret == -EOWNERDEAD) {
			CHECK_IS(call(file, KDSM_IOC_LOCK_CONSISTENT, &args), 0);
			CHECK_IS(give(file, number, me), 0);
		}
	}
	/* A barrier fails if a node is down. */
	reach_all();
	meet();
	/*
	 * If the silent node was the lock's home, the other nodes do not know yet which
	 * nodes it gave up. The first one that sends it a message may find that it has cut
	 * the connection.
	 */
	for (i = 0; i < 20; i++) {
		ret = take(file, number, me, 0, 30 * SECOND);
		if (ret != -EHOSTDOWN && ret != -EIO)
			break;
		usleep(500000);
	}
	CHECK(ret == 0 || ret == -EOWNERDEAD);
	if (ret == -EOWNERDEAD)
		CHECK_IS(call(file, KDSM_IOC_LOCK_CONSISTENT, &args), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* ---- words that are overwritten ---- */

static void lock_hostile_words(void)
{
	static const uint64_t values[] = {
		0, ~0ULL, KDSM_LOCK_AT_NODE, KDSM_LOCK_AT_NODE | 77777, KDSM_LOCK_LOST,
		KDSM_LOCK_WAITERS | 1, 0x0123456789abcdefULL, 0xffffffff,
	};
	uint32_t number = make_lock("hostile"), sound = make_lock("sound"), me = thread_of(file);
	unsigned int i;
	int ret;

	meet();
	for (i = 0; i < 200; i++) {
		__atomic_store_n(&words[number].state, values[(i + node) % 8], __ATOMIC_RELAXED);
		words[number].uses = guest_mix(i);
		ret = take(file, number, me, i % 2 ? KDSM_LOCK_TRY : 0, 5 * MS);
		CHECK(ret == 0 || ret == -EOWNERDEAD || ret == -EBUSY || ret == -ETIMEDOUT ||
		      ret == -EDEADLK || ret == -ENOTRECOVERABLE);
		__atomic_store_n(&words[number].state, values[(i / 8) % 8], __ATOMIC_RELAXED);
		ret = give(file, number, me);
		CHECK(ret == 0 || ret == -EPERM);
		CHECK_IS(take(file, sound, me, 0, 10 * SECOND), 0);
		CHECK_IS(give(file, sound, me), 0);
	}
}

static const struct guest_test tests[] = {
	{ "lock_alone", lock_alone },
	{ "lock_let_go", lock_let_go },
	{ "lock_levels", lock_levels },
	{ "lock_default", lock_default },
	{ "lock_closed", lock_closed },
	{ "lock_counter", lock_counter },
	{ "lock_errors", lock_errors },
	{ "lock_signal", lock_signal },
	{ "lock_thread_dies", lock_thread_dies },
	{ "lock_process_dies", lock_process_dies },
	{ "lock_dies_unseen", lock_dies_unseen },
	{ "lock_hostile_words", lock_hostile_words },
	{ "lock_silent", lock_silent },
	{}
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .size = 4096 };
	int ret, status;

	if (argc > 1 && !strcmp(argv[1], "-m")) {
		kind = KDSM_LOCK_RMA_MCS;
		argc--;
		argv++;
	}
	guest_open("lock-meeting");
	attr.size *= nodes;
	ret = kdsm_region_open(kdsm, NAME, &attr, &region);
	if (ret)
		guest_die("region", ret);
	file = bind_file();
	words = mmap(NULL, KDSM_LOCKS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		     KDSM_LOCKS_OFFSET);
	if (words == MAP_FAILED)
		guest_die("lock words", -errno);
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	close(file);
	kdsm_region_close(region);
	guest_close();
	return status;
}
