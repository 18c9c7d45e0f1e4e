// SPDX-License-Identifier: GPL-2.0
/*
 * Regions that end while their locks are in use: their names are removed, their files are
 * closed under waiting threads, or all programs of all nodes are killed at the same time.
 * Messages about a lock then arrive for a region that is ending or has ended. The kernel
 * log and the removal of the module show that nothing is left behind. Needs two nodes.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <kdsm/lock.h>

#include "clock.h"
#include "crew.h"

#define THREADS		3
#define PROCESSES	2
#define ROUNDS		12

/* Progress of this node's processes, in memory that they share */
static struct {
	uint64_t locked[PROCESSES][THREADS];
	int64_t errors;
} *seen;

static unsigned int round_number;

static const uint32_t kinds[] = {
	KDSM_LOCK_DMCS, KDSM_LOCK_RMA_MCS, KDSM_LOCK_RMA_RW,
};

static uint32_t kind_now(void)
{
	return kinds[round_number % 3];
}

/* keep: how long the lock stays on a node that has no use for it; 0: it is set free at once. */
static struct kdsm_lock *make(struct kdsm_region *region, const char *name, uint64_t keep)
{
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = kind_now(),
		.settings = { .mask = KDSM_LOCK_SET_KEEP, .keep = keep },
	};
	struct kdsm_lock *lock;

	must(kdsm_lock_create(region, name, 0, &attr, &lock), name);
	return lock;
}

/* Open the region of this round, in every second round one of policy release. */
static struct kdsm_region *open_region(struct kdsm *in)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 * nodes };
	struct kdsm_region *region;
	char name[32];

	if (round_number % 2)
		attr = (struct kdsm_region_attr){
			.argsz = sizeof(struct kdsm_region_attr),
			.size = 4096, .block_size = 4096, .policy = KDSM_POLICY_RELEASE,
		};
	snprintf(name, sizeof(name), "gone%u", round_number);
	must(kdsm_region_open(in, name, &attr, &region), name);
	return region;
}

/* ---- all processes of all nodes use the locks ---- */

static struct kdsm_lock *kept, *freed;

static bool good(int ret)
{
	/* Another process may already have been killed with the lock. */
	if (!ret || ret == -EOWNERDEAD || ret == -ENOTRECOVERABLE)
		return true;
	__atomic_store_n(&seen->errors, ret, __ATOMIC_RELAXED);
	return false;
}

static void *use(void *arg)
{
	uint64_t *locked = arg, i;
	bool for_reading;
	struct kdsm_lock *lock;
	int ret;

	for (i = 0;; i++) {
		lock = i % 4 ? kept : freed;
		for_reading = kind_now() == KDSM_LOCK_RMA_RW && i % 8 > 2;
		ret = for_reading ? kdsm_read_lock(lock) : kdsm_lock(lock);
		if (!good(ret) || ret == -ENOTRECOVERABLE)
			break;
		__atomic_add_fetch(locked, 1, __ATOMIC_RELAXED);
		if (ret == -EOWNERDEAD && !for_reading)
			kdsm_lock_consistent(lock);
		ret = for_reading ? kdsm_read_unlock(lock) : kdsm_unlock(lock);
		if (!good(ret))
			break;
	}
	return NULL;
}

/* Use the locks until the process is killed. */
static void use_locks(unsigned int process)
{
	struct kdsm_region *region;
	struct kdsm *own;

	must(kdsm_open(0, &own), "kdsm_open");
	region = open_region(own);
	kept = make(region, "kept", KDSM_LOCK_KEEP_FOREVER);
	freed = make(region, "freed", 0);
	crew_threads(use, seen->locked[process], sizeof(uint64_t), THREADS);
	pause();
}

static uint64_t locked_so_far(unsigned int process)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < THREADS; i++)
		sum += __atomic_load_n(&seen->locked[process][i], __ATOMIC_RELAXED);
	return sum;
}

/* Wait until each process of this node has locked that many times more. */
static void go_on(uint64_t more)
{
	uint64_t before[PROCESSES];
	unsigned int i;
	double begin = now();

	for (i = 0; i < PROCESSES; i++)
		before[i] = locked_so_far(i);
	for (i = 0; i < PROCESSES; i++)
		while (locked_so_far(i) < before[i] + more) {
			if (!CHECK(now() < begin + 60))
				return;
			usleep(1000);
		}
}

static void start_all(pid_t *pids)
{
	unsigned int i;

	memset(seen, 0, sizeof(*seen));
	for (i = 0; i < PROCESSES; i++)
		pids[i] = crew_fork(use_locks, i);
	go_on(1);
	meet();
}

/* Kill this node's processes; all nodes do so at almost the same time. */
static void kill_all(pid_t *pids)
{
	double begin;
	unsigned int i;

	meet();
	usleep(guest_mix(round_number << 8 | node) % 3000);
	begin = now();
	for (i = 0; i < PROCESSES; i++)
		CHECK_IS(kill(pids[i], SIGKILL), 0);
	for (i = 0; i < PROCESSES; i++)
		CHECK_IS(crew_join(pids[i]), -SIGKILL);
	CHECK(now() < begin + 20);
	CHECK_IS(seen->errors, 0);
	meet();
}

/* Wait until there is no region of this round's name any more. */
static void is_gone(void)
{
	double begin = now();
	struct kdsm_region *region;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "gone%u", round_number);
	for (;;) {
		ret = kdsm_region_open(kdsm, name, NULL, &region);
		if (ret == -ENOENT)
			break;
		/* Another node may have opened the region just now to look for it. */
		CHECK_IS(ret, 0);
		if (!ret)
			kdsm_region_close(region);
		if (!CHECK(now() < begin + 20))
			break;
		usleep((node + 1) * 20000);
	}
	meet();
}

/* Kill all processes on all nodes. */
static void gone_killed(void)
{
	pid_t pids[PROCESSES];

	for (round_number = 0; round_number < ROUNDS; round_number++) {
		start_all(pids);
		go_on(5);
		kill_all(pids);
		is_gone();
	}
}

/* Remove the name and give it to another region. Threads that use locks of the first continue. */
static void gone_name(void)
{
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	pid_t pids[PROCESSES];
	char name[32];

	for (round_number = 0; round_number < 6; round_number++) {
		start_all(pids);
		snprintf(name, sizeof(name), "gone%u", round_number);
		if (node == round_number % nodes)
			CHECK_IS(kdsm_region_destroy(kdsm, name), 0);
		meet();
		if (node != round_number % nodes)
			CHECK_IS(kdsm_region_destroy(kdsm, name), -ENOENT);
		meet();
		region = open_region(kdsm);
		if (node == 0)
			CHECK_IS(kdsm_lock_open(region, "kept", 0, &lock), -ENOENT);
		meet();
		lock = make(region, "kept", 0);
		meet();
		if (node == 1)
			CHECK_IS(kdsm_lock_try(lock), 0);
		go_on(5);
		kill_all(pids);
		if (node == 1)
			CHECK_IS(kdsm_unlock(lock), 0);
		kdsm_lock_close(lock);
		kdsm_region_close(region);
		meet();
		is_gone();
	}
}

/* ---- files closed under waiting threads ---- */

/* Uses the module's calls, because the library does not close a region that is in use. */
struct waiter {
	int file;
	uint32_t number, flags;
	int status, unlocked;
	bool begun;
};

static int call(int on, unsigned long number, void *arg)
{
	return ioctl(on, number, arg) < 0 ? -errno : 0;
}

static void *wait_for_it(void *arg)
{
	struct waiter *waiter = arg;
	struct kdsm_lock_thread thread = { .argsz = sizeof(thread) };
	struct kdsm_lock_take take = {
		.argsz = sizeof(take), .flags = waiter->flags, .number = waiter->number,
		.timeout = 30 * SECOND,
	};
	struct kdsm_lock_give give = {
		.argsz = sizeof(give), .flags = waiter->flags, .number = waiter->number,
	};

	CHECK_IS(call(waiter->file, KDSM_IOC_LOCK_THREAD, &thread), 0);
	take.thread = thread.thread;
	give.thread = thread.thread;
	__atomic_store_n(&waiter->begun, true, __ATOMIC_RELEASE);
	waiter->status = call(waiter->file, KDSM_IOC_LOCK, &take);
	/* The file was closed, so it ended with the call, and the lock with it. */
	waiter->unlocked = call(waiter->file, KDSM_IOC_UNLOCK, &give);
	return NULL;
}

static int bind_file(void)
{
	struct kdsm_region_open args = {
		.argsz = sizeof(args), .flags = KDSM_REGION_CREATE, .size = 4096 * nodes,
		.policy = KDSM_POLICY_PARTITIONED,
	};
	int on = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);

	snprintf(args.name, sizeof(args.name), "gone%u", round_number);
	if (on < 0 || call(on, KDSM_IOC_REGION_OPEN, &args))
		guest_die("bind", -errno);
	return on;
}

static void wait_until_asleep(struct waiter *waiter)
{
	while (!__atomic_load_n(&waiter->begun, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(50000);
}

/*
 * Node 0 holds the lock by one file. On every node a thread waits for the lock by another
 * file, which is closed meanwhile and so ends with the thread's call. Then node 0 closes
 * its first file. Each waiter gets the lock from an owner whose file ended while it held
 * the lock, and the region ends with the last of these files.
 */
static void gone_closed(void)
{
	struct kdsm_lock_open open_args;
	struct waiter waiter, holder;
	pthread_t thread;

	for (round_number = 0; round_number < 6; round_number++) {
		waiter = (struct waiter){ .file = bind_file() };
		open_args = (struct kdsm_lock_open){
			.argsz = sizeof(open_args), .flags = KDSM_LOCK_CREATE,
			.number = KDSM_LOCK_ANY, .kind = kind_now(), .name = "closed",
		};
		CHECK_IS(call(waiter.file, KDSM_IOC_LOCK_OPEN, &open_args), 0);
		waiter.number = open_args.number;
		meet();
		if (node == 0) {
			/*
			 * Node 0 takes the lock first, by a file that stays open until all
			 * nodes wait.
			 */
			struct kdsm_lock_thread own = { .argsz = sizeof(own) };
			struct kdsm_lock_take take = {
				.argsz = sizeof(take), .number = waiter.number,
			};

			CHECK_IS(call(waiter.file, KDSM_IOC_LOCK_THREAD, &own), 0);
			take.thread = own.thread;
			CHECK_IS(call(waiter.file, KDSM_IOC_LOCK, &take), 0);
		}
		meet();
		holder = waiter;
		waiter.file = node == 0 ? bind_file() : waiter.file;
		if (node == 0)
			CHECK_IS(call(waiter.file, KDSM_IOC_LOCK_OPEN, &open_args), 0);
		must(-pthread_create(&thread, NULL, wait_for_it, &waiter), "pthread_create");
		wait_until_asleep(&waiter);
		meet();
		close(waiter.file);
		meet();
		if (node == 0)
			close(holder.file);
		pthread_join(thread, NULL);
		CHECK_IS(waiter.status, -EOWNERDEAD);
		CHECK_IS(waiter.unlocked, -EBADF);
		meet();
		is_gone();
	}
}

static const struct guest_test tests[] = {
	{ "gone_killed", gone_killed },
	{ "gone_name", gone_name },
	{ "gone_closed", gone_closed },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	int status;

	guest_open("lock-gone-meeting");
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		guest_die("mmap", -errno);
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	guest_close();
	return status;
}
