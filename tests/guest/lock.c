// SPDX-License-Identifier: GPL-2.0
/*
 * Locks through the module's calls and the lock words, from a program on every node at the
 * same time: exclusion, the cost of uncontended locks, errors, owners that die or run another
 * program, waits that end early, the order of waiters, nodes that do not answer, words that are
 * overwritten. Needs two nodes.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/lock.h>
#include "clock.h"
#include "guest.h"
#include "mute.h"

#define NAME "lock-test"
#define NOBODY 65534
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
		/* One atomic */
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], info.home != node);
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
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], info.home != node);
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

/* Wait until this node has given the lock back that many times, which it does after the unlock. */
static void wait_freed(uint32_t number, uint64_t times)
{
	unsigned int i;

	for (i = 0; i < 5000 && info_of(number).stats[KDSM_LOCK_STAT_FREED] < times; i++)
		usleep(1000);
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
			wait_freed(args.number, i + 1);
		}
		info = info_of(args.number);
		/* One atomic to lock and one to unlock */
		CHECK_IS(info.stats[KDSM_LOCK_STAT_ATOMICS], info.home == node ? 0 : 20);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_FREE], 10);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_FREED], 10);
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
	int on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC), ret = 0;
	uint32_t number, me;
	unsigned int i;

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
		/* The home may set the word free a little later. */
		for (i = 0; i < 5000; i++) {
			ret = take(on, number, me, KDSM_LOCK_TRY, 0);
			if (ret != -EBUSY)
				break;
			usleep(1000);
		}
		CHECK_IS(ret, 0);
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

/* ---- the order of waiters ---- */

/* Rounds. The interval between signals, in ms, is prime to their times. */
#define PLACES 5
#define SIGNALS 17

/* Two waiters of a node; the first one is interrupted again and again. */
static struct {
	uint32_t number;
	unsigned int order;	/* number of waiters that have had the lock */
	unsigned int place[2];	/* of each waiter in that order, from 1 on */
	unsigned int interrupts;
	bool ended;
} queue;

static void *wait_in_line(void *arg)
{
	unsigned int i = (uintptr_t)arg;
	uint32_t me = thread_of(file);
	int ret;

	for (;;) {
		ret = take(file, queue.number, me, 0, FOREVER);
		if (ret != -EINTR)
			break;
		queue.interrupts++;
	}
	CHECK_IS(ret, 0);
	queue.place[i] = ++queue.order;
	__atomic_store_n(&queue.ended, queue.ended || !i, __ATOMIC_RELEASE);
	CHECK_IS(give(file, queue.number, me), 0);
	return NULL;
}

/* A waiter that a signal interrupts keeps its place if it calls again. */
static void lock_keeps_place(void)
{
	struct sigaction action = { .sa_handler = nothing };
	uint32_t number = make_lock("keeps-place"), me = thread_of(file);
	unsigned int i, j, kept = 0;
	pthread_t waiters[2];

	sigaction(SIGUSR1, &action, NULL);
	meet();
	for (i = 0; i < PLACES && node == 0; i++) {
		memset(&queue, 0, sizeof(queue));
		queue.number = number;
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
		CHECK_IS(pthread_create(&waiters[0], NULL, wait_in_line, (void *)0), 0);
		usleep(100000);
		CHECK_IS(pthread_create(&waiters[1], NULL, wait_in_line, (void *)1), 0);
		usleep(100000);
		for (j = 0; j < 10; j++) {
			pthread_kill(waiters[0], SIGUSR1);
			usleep(SIGNALS * 1000);
		}
		CHECK_IS(give(file, number, me), 0);
		while (!__atomic_load_n(&queue.ended, __ATOMIC_ACQUIRE))
			usleep(1000);
		for (j = 0; j < 2; j++)
			pthread_join(waiters[j], NULL);
		CHECK(queue.interrupts >= 5);
		kept += queue.place[0] == 1;
	}
	if (node == 0)
		CHECK_IS(kept, PLACES);
	meet();
}

/* ---- the settings ---- */

static int set_keep(int on, uint32_t number, uint64_t keep)
{
	struct kdsm_lock_set set = {
		.argsz = sizeof(set), .number = number,
		.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = keep },
	};

	return call(on, KDSM_IOC_LOCK_SET, &set);
}

/* As nobody: the lock in root's region by root's file, and a lock in a region of its own */
static int set_as_nobody(uint32_t number)
{
	struct kdsm_region_open args = {
		.argsz = sizeof(args), .flags = KDSM_REGION_CREATE, .name = "lock-set-own",
		.size = 4096 * nodes, .policy = KDSM_POLICY_PARTITIONED,
	};
	int on, ret;

	if (setgid(NOBODY) || setuid(NOBODY))
		return 1;
	if (set_keep(file, number, 5) != -EPERM)
		return 2;
	/* Everything else is still possible by the file, as for reads and writes. */
	if (take(file, number, thread_of(file), 0, 10 * SECOND) ||
	    give(file, number, thread_of(file)))
		return 3;
	on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	if (on < 0 || call(on, KDSM_IOC_REGION_OPEN, &args) ||
	    open_lock(on, "own", KDSM_LOCK_CREATE, &number))
		return 4;
	ret = set_keep(on, number, 5);
	return ret ? 5 : 0;
}

/* Only the owner of the region and administrators change settings. */
static void lock_set(void)
{
	uint32_t number = make_lock("set");
	int status;
	pid_t pid;

	meet();
	if (node == 0) {
		CHECK_IS(set_keep(file, number, 7), 0);
		CHECK_IS(chmod(KDSM_DEVICE, 0666), 0);
		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(set_as_nobody(number));
		CHECK_IS(waitpid(pid, &status, 0), pid);
		CHECK_IS(status, 0);
		CHECK_IS(chmod(KDSM_DEVICE, 0660), 0);
	}
	meet();
	CHECK_IS(info_of(number).settings.keep, 7);
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

/*
 * A child takes the lock by the file that its parent has open, too, and then runs another program.
 * Returns the child, which lives on.
 */
static pid_t exec_with_lock(uint32_t number)
{
	int ready[2];
	char byte;
	pid_t pid;

	CHECK_IS(pipe2(ready, O_CLOEXEC), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (take(file, number, thread_of(file), 0, FOREVER) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		usleep(1000000);	/* time for the other node to wait */
		execl("/proc/self/exe", "lock", "sleep", NULL);
		_exit(1);
	}
	close(ready[1]);
	CHECK_IS(read(ready[0], &byte, 1), 1);
	meet();
	/* The end of the pipe: the child runs the other program. */
	CHECK_IS(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

/* A thread that runs another program can unlock no more, so it counts as dead at once. */
static void lock_exec(void)
{
	uint32_t number = make_lock("exec"), me = thread_of(file);
	pid_t pid = 0;
	double begin;

	if (node == 0)
		pid = exec_with_lock(number);
	else
		meet();
	if (node == 1) {
		begin = now();
		CHECK_IS(take(file, number, me, 0, 20 * SECOND), -EOWNERDEAD);
		CHECK(now() - begin < 5 * slowness());
		CHECK_IS(consistent(file, number, me), 0);
		CHECK_IS(give(file, number, me), 0);
	}
	meet();
	if (node == 0) {
		CHECK_IS(waitpid(pid, NULL, WNOHANG), 0);
		CHECK_IS(info_of(number).stats[KDSM_LOCK_STAT_DEAD], 1);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	meet();
	CHECK_IS(take(file, number, me, 0, 10 * SECOND), 0);
	CHECK_IS(give(file, number, me), 0);
}

/* ---- a node that does not answer ---- */

#define MUTE_LOCKS 3	/* with different homes */

static void *wait_mute(void *arg)
{
	uint32_t number = *(uint32_t *)arg, me = thread_of(file);
	int ret = take(file, number, me, 0, 60 * SECOND);

	CHECK(ret == 0 || ret == -EOWNERDEAD);
	if (ret == -EOWNERDEAD)
		CHECK_IS(consistent(file, number, me), 0);
	CHECK_IS(give(file, number, me), 0);
	return NULL;
}

/* Node 0 unlocks while the node that is next does not answer. */
static void lock_unlock_is_local(void)
{
	uint32_t numbers[MUTE_LOCKS], me = thread_of(file);
	pthread_t threads[MUTE_LOCKS];
	char name[32];
	unsigned int i;
	double begin;

	for (i = 0; i < MUTE_LOCKS; i++) {
		snprintf(name, sizeof(name), "local-%u", i);
		numbers[i] = make_lock(name);
		if (node == 0)
			CHECK_IS(take(file, numbers[i], me, 0, FOREVER), 0);
	}
	meet();
	for (i = 0; i < MUTE_LOCKS && node == 1; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, wait_mute, &numbers[i]), 0);
	usleep(300000);
	meet();
	if (node == 1)
		mute(true);
	meet_at_host();
	for (i = 0; i < MUTE_LOCKS && node == 0; i++) {
		begin = now();
		CHECK_IS(give(file, numbers[i], me), 0);
		begin = now() - begin;
		printf("# unlocked lock with home %u in %.0f us\n", info_of(numbers[i]).home,
		       begin * 1e6);
		CHECK(begin < 0.1 * slowness());
	}
	meet_at_host();
	if (node == 1) {
		usleep(1500000);
		mute(false);
		for (i = 0; i < MUTE_LOCKS; i++)
			pthread_join(threads[i], NULL);
	}
	meet();
	for (i = 0; i < MUTE_LOCKS; i++) {
		CHECK_IS(take(file, numbers[i], me, 0, 30 * SECOND), 0);
		CHECK_IS(give(file, numbers[i], me), 0);
	}
}

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

/* The waiter that waits before the node is silent */
static void *wait_silent(void *arg)
{
	uint32_t number = *(uint32_t *)arg, me = thread_of(file);
	double begin = now();
	int ret = take(file, number, me, 0, 90 * SECOND);

	/* As in lock_silent() */
	CHECK(ret == -EOWNERDEAD || ret == -EHOSTDOWN);
	printf("# the thread that waited before was told after %.1f s: %d, home %u\n",
	       now() - begin, ret, info_of(number).home);
	CHECK(now() - begin < 41);
	if (ret == -EOWNERDEAD)
		CHECK_IS(consistent(file, number, me), 0);
	if (!ret || ret == -EOWNERDEAD)
		CHECK_IS(give(file, number, me), 0);
	return NULL;
}

/*
 * The last node has the locks, and no network for a while. A waiter gets an error in time, whether
 * or not it waited before, and the locks work again when the node is back.
 */
static void lock_silent(void)
{
	uint32_t number = make_lock("silent"), me = thread_of(file);
	uint32_t before[2] = { make_lock("silent-1"), make_lock("silent-2") };
	/* Otherwise no thread asks for a lock until the silence has been found. */
	bool late_too = kind == KDSM_LOCK_DMCS;
	pthread_t early[2];
	struct kdsm_lock_give args = {
		.argsz = sizeof(args), .number = number, .thread = me,
	};
	unsigned int away = nodes - 1, i;
	struct timespec begin, end;
	int ret;

	for (i = 0; i < 2 && node == away; i++)
		CHECK_IS(take(file, before[i], me, 0, FOREVER), 0);
	if (node == away)
		CHECK_IS(take(file, number, me, 0, FOREVER), 0);
	meet();
	for (i = 0; i < 2 && node == 0; i++)
		CHECK_IS(pthread_create(&early[i], NULL, wait_silent, &before[i]), 0);
	usleep(500000);
	meet();
	if (node == away) {
		mute(true);
		sleep(45);
		mute(false);
		/* This node learns that it has lost the lock when it can be reached again. */
		sleep(15);
		ret = give(file, number, me);
		CHECK(ret == -EHOSTDOWN || ret == 0);
		for (i = 0; i < 2; i++) {
			ret = give(file, before[i], me);
			CHECK(ret == -EHOSTDOWN || ret == 0);
		}
	} else if (node == 0) {
		for (i = 0; i < 2 && !late_too; i++)
			pthread_join(early[i], NULL);
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
		for (i = 0; i < 2 && late_too; i++)
			pthread_join(early[i], NULL);
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
	{ "lock_keeps_place", lock_keeps_place },
	{ "lock_set", lock_set },
	{ "lock_thread_dies", lock_thread_dies },
	{ "lock_process_dies", lock_process_dies },
	{ "lock_dies_unseen", lock_dies_unseen },
	{ "lock_exec", lock_exec },
	{ "lock_hostile_words", lock_hostile_words },
	{ "lock_unlock_is_local", lock_unlock_is_local },
	{ "lock_silent", lock_silent },
	{}
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	int ret, status;

	/* The other program of lock_exec() */
	if (argc > 1 && !strcmp(argv[1], "sleep"))
		return pause();
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
