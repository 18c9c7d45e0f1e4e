// SPDX-License-Identifier: GPL-2.0
/*
 * A program that may write a region overwrites all lock words of that region with random
 * values all the time, while threads on all nodes use locks of that region and of another
 * one. Calls for the first region's locks may return any documented error, but none may
 * hang. The kernel must not complain, which tests/cluster checks, and the counts that the
 * other region's locks guard must be exact.
 *
 * usage: hostile-lock [SECONDS]
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/lock.h>
#include "guest.h"

#define NAME	"hostile-lock"
#define LOCKS	6		/* two of each kind */
#define WORDS	(KDSM_LOCKS_SIZE / 8)

static struct kdsm_region *attacked, *spared;
static struct kdsm_lock *locks[LOCKS], *sound[LOCKS];
static unsigned int lock_count, seconds = 10;
static bool stop;

struct tally {
	uint64_t calls, errors, good[LOCKS];
};

/* ---- the attack ---- */

static uint64_t some_state(uint64_t random)
{
	switch (random % 8) {
	case 0:
		return 0;
	case 1:
		return KDSM_LOCK_AT_NODE;
	case 2:
		return KDSM_LOCK_AT_NODE | (random >> 40) % 8;
	case 3:
		return random >> 32 << 32;
	case 4:
		return KDSM_LOCK_AT_NODE | KDSM_LOCK_DEAD | random >> 60;
	case 5:
		return KDSM_LOCK_LOST | KDSM_LOCK_FLAG(5);
	default:
		return guest_mix(random);
	}
}

/* Overwrite mostly the words of the first locks, but all others as well. */
static void __attribute__((noreturn)) attack(uint64_t random)
{
	struct kdsm_region_open open_args = { .argsz = sizeof(open_args), .name = NAME };
	int file = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	uint64_t *words, at, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (file < 0 || ioctl(file, KDSM_IOC_REGION_OPEN, &open_args))
		_exit(1);
	words = mmap(NULL, KDSM_LOCKS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file,
		     KDSM_LOCKS_OFFSET);
	if (words == MAP_FAILED)
		_exit(1);
	for (i = 0;; i++) {
		random = guest_mix(random);
		at = random % (i % 8 ? 8 * LOCKS : WORDS);
		/* In every second round, choose the first word of a lock, which is its state. */
		if (i % 2)
			at &= ~7ULL;
		__atomic_store_n(&words[at], some_state(guest_mix(random)), __ATOMIC_RELAXED);
		/* Pause, so that other threads can change the words in between. */
		if (i % 64 == 0)
			usleep(random >> 32 & 1023);
		if (i % 100000 == 0)
			madvise(words, KDSM_LOCKS_SIZE, MADV_DONTNEED);
	}
}

/* ---- threads that use locks ---- */

static bool is_expected(int ret)
{
	switch (ret) {
	case 0:
	case -EOWNERDEAD:
	case -ENOTRECOVERABLE:
	case -EBUSY:
	case -ETIMEDOUT:
	case -EDEADLK:
	case -EPERM:
	case -EHOSTDOWN:
		return true;
	default:
		return false;
	}
}

static void suffer_one(struct kdsm_lock *lock, uint64_t random, struct tally *tally)
{
	bool reads = kdsm_lock_kind(lock) == KDSM_LOCK_RMA_RW && random & 1;
	int ret, given;

	if (random & 2)
		ret = reads ? kdsm_read_lock_try(lock) : kdsm_lock_try(lock);
	else
		ret = reads ? kdsm_read_lock_timed(lock, 5 * MS) : kdsm_lock_timed(lock, 5 * MS);
	CHECK(is_expected(ret));
	tally->calls++;
	tally->errors += ret != 0;
	if (ret == -EOWNERDEAD && random & 4) {
		given = kdsm_lock_consistent(lock);
		CHECK(is_expected(given) || given == -EINVAL);
	}
	/* A thread may unlock even if it is not the owner any more. */
	given = reads ? kdsm_read_unlock(lock) : kdsm_unlock(lock);
	CHECK(is_expected(given));
}

static void *suffer(void *arg)
{
	struct tally *tally = arg;
	uint64_t random = (uintptr_t)arg + node;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		random = guest_mix(random);
		suffer_one(locks[(random >> 8) % lock_count], random, tally);
	}
	return NULL;
}

static int count_one(unsigned int i)
{
	uint64_t value;
	int ret;

	ret = kdsm_get(spared, 0, 64 * i, &value, 8);
	value++;
	return ret ? ret : kdsm_put(spared, 0, 64 * i, &value, 8);
}

static void *count(void *arg)
{
	struct tally *tally = arg;
	unsigned int i;

	for (i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i = (i + 1) % lock_count) {
		int ret = kdsm_lock_timed(sound[i], 60 * SECOND);

		CHECK_IS(ret, 0);
		if (ret)
			continue;
		CHECK_IS(count_one(i), 0);
		tally->good[i]++;
		CHECK_IS(kdsm_unlock(sound[i]), 0);
	}
	return NULL;
}

/* ---- the test ---- */

/* Every node puts its counts into node 0's part, where node 0 adds them up. */
static void check_counts(const struct tally *a, const struct tally *b)
{
	uint64_t mine[LOCKS], theirs, value, sum;
	unsigned int i, n;

	for (i = 0; i < lock_count; i++)
		mine[i] = a->good[i] + b->good[i];
	CHECK_IS(kdsm_put(spared, 0, 1024 + 64 * node, mine, 8 * lock_count), 0);
	meet();
	for (i = 0; i < lock_count && node == 0; i++) {
		for (sum = 0, n = 0; n < nodes; n++) {
			CHECK_IS(kdsm_get(spared, 0, 1024 + 64 * n + 8 * i, &theirs, 8), 0);
			sum += theirs;
		}
		CHECK_IS(kdsm_get(spared, 0, 64 * i, &value, 8), 0);
		CHECK_IS(value, sum);
		CHECK(sum > 0);
	}
}

/* A new lock in the attacked region works. */
static void check_new_locks(void)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	struct kdsm_lock *lock;
	int ret;

	CHECK_IS(kdsm_lock_create(attacked, "after", 0, &attr, &lock), 0);
	/* The word may still contain a value of the attacker, but only for the first owner. */
	ret = kdsm_lock_timed(lock, 60 * SECOND);
	CHECK(ret == 0 || ret == -EOWNERDEAD);
	if (ret == -EOWNERDEAD)
		CHECK_IS(kdsm_lock_consistent(lock), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	meet();
	CHECK_IS(kdsm_lock_timed(lock, 60 * SECOND), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	kdsm_lock_close(lock);
}

static void hostile_lock(void)
{
	struct tally tallies[4] = { 0 };
	pthread_t threads[4];
	unsigned int i;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		attack(node + 1);
	for (i = 0; i < 4; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, i < 2 ? suffer : count, &tallies[i]), 0);
	sleep(seconds);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_IS(waitpid(pid, &status, WNOHANG), 0);
	/* On every second node the attacker continues after the threads have ended. */
	if (node % 2 == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	printf("# attacked: %llu calls, %llu errors\n",
	       (unsigned long long)(tallies[0].calls + tallies[1].calls),
	       (unsigned long long)(tallies[0].errors + tallies[1].errors));
	CHECK(tallies[0].errors + tallies[1].errors > 0);
	check_counts(&tallies[2], &tallies[3]);
	if (node % 2) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	meet();
	check_new_locks();
}

static const struct guest_test tests[] = {
	{ "hostile_lock", hostile_lock },
	{}
};

/* Create locks of each kind that the module has. */
static int make_locks(void)
{
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	unsigned int i;
	int ret;

	for (i = 0; i < LOCKS; i++) {
		attr.kind = KDSM_LOCK_DMCS + i % 3;
		ret = kdsm_lock_create(attacked, NULL, i, &attr, &locks[lock_count]);
		if (ret == -EOPNOTSUPP)
			continue;
		if (!ret)
			ret = kdsm_lock_create(spared, NULL, i, &attr, &sound[lock_count]);
		if (ret)
			return ret;
		lock_count++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 8192 };
	unsigned int i;
	int ret, status;

	if (argc > 1)
		seconds = atoi(argv[1]);
	guest_open("hostile-lock-meeting");
	attr.size *= nodes;
	ret = kdsm_region_open(kdsm, NAME, &attr, &attacked);
	if (!ret)
		ret = kdsm_region_open(kdsm, "hostile-lock-spared", &attr, &spared);
	if (!ret)
		ret = make_locks();
	if (ret)
		guest_die("regions and locks", ret);
	status = guest_run(tests, NULL);
	for (i = 0; i < lock_count; i++) {
		kdsm_lock_close(locks[i]);
		kdsm_lock_close(sound[i]);
	}
	kdsm_region_close(attacked);
	kdsm_region_close(spared);
	guest_close();
	return status;
}
