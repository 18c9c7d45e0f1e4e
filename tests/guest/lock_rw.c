// SPDX-License-Identifier: GPL-2.0
/*
 * Locks of kind rma-rw, from a program on every node at the same time: readers share,
 * writers exclude; costs; errors, waits that end early, threads that die, numbers of threads that
 * are used again; and T_DC changed while the lock is in use. Needs two nodes.
 *
 * usage: lock_rw [PART-OF-A-TEST-NAME]
 *
 * rw_numbers takes half a minute, so it runs only if the argument is "numbers".
 */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>
#include "clock.h"
#include "guest.h"

#define NAME "lock-rw-test"
#define THREADS 3

static struct kdsm_region *region;
/* A region of policy release, and a word in each of two of its blocks */
static struct kdsm_region *coherent, *unused;
static volatile uint64_t *guarded[2];

static struct kdsm_lock *make_in(struct kdsm_region *in, const char *name, uint32_t t_dc,
				 uint32_t t_r, uint32_t t_w)
{
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = KDSM_LOCK_RMA_RW,
		.settings = {
			.mask = KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W,
			.t_dc = t_dc, .t_r = t_r, .t_w = t_w,
		},
	};
	struct kdsm_lock *lock;
	int ret;

	ret = kdsm_lock_create(in, name, 0, &attr, &lock);
	if (ret)
		guest_die(name, ret);
	return lock;
}

static struct kdsm_lock *make(const char *name, uint32_t t_dc, uint32_t t_r, uint32_t t_w)
{
	return make_in(region, name, t_dc, t_r, t_w);
}

static struct kdsm_lock_info info_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info;

	CHECK_IS(kdsm_lock_info(lock, &info), 0);
	return info;
}

/* ---- cost ---- */

static uint64_t remote_of(struct kdsm_lock *lock)
{
	struct kdsm_lock_info info = info_of(lock);

	return info.stats[KDSM_LOCK_STAT_ATOMICS] + info.stats[KDSM_LOCK_STAT_PUTS] +
	       info.stats[KDSM_LOCK_STAT_GETS] + info.stats[KDSM_LOCK_STAT_MESSAGES];
}

/*
 * A node that is not to keep the right to read asks the home for each read, and leaves. The only
 * reader home is node 0; a node in a new life asks the home itself, too.
 */
static void rw_alone(void)
{
	struct kdsm_lock *lock = make("alone", nodes, 1, 1);
	struct kdsm_lock_settings not_kept = { .mask = KDSM_LOCK_SET_KEEP };
	struct kdsm_lock_info after;
	uint64_t before;

	meet();
	if (node == 1) {
		CHECK_IS(kdsm_lock_set(lock, &not_kept), 0);
		before = remote_of(lock);
		CHECK_IS(kdsm_read_lock(lock), 0);
		CHECK_IS(kdsm_lock_consistent(lock), -EPERM);
		CHECK_IS(kdsm_read_unlock(lock), 0);
		after = info_of(lock);
		CHECK(after.home == node || remote_of(lock) - before >= 1);
		CHECK(remote_of(lock) - before <= 4);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_GETS] + after.stats[KDSM_LOCK_STAT_PUTS], 0);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_READS], 1);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_LOCKS], 0);
	}
	meet();
	kdsm_lock_close(lock);
}

/* A node that may read reads without the network, and without the module, until a node writes. */
static void rw_lingers(void)
{
	struct kdsm_lock *lock = make("lingers", nodes, 1, 1);
	uint64_t before, reads;
	unsigned int i;

	meet();
	if (node == 1) {
		CHECK_IS(kdsm_read_lock(lock), 0);
		CHECK_IS(kdsm_read_unlock(lock), 0);
		before = remote_of(lock);
		reads = info_of(lock).stats[KDSM_LOCK_STAT_READS];
		for (i = 0; i < 1000; i++) {
			CHECK_IS(kdsm_read_lock(lock), 0);
			CHECK_IS(kdsm_read_lock(lock), -EDEADLK);
			CHECK_IS(kdsm_lock_try(lock), -EDEADLK);
			CHECK_IS(kdsm_read_unlock(lock), 0);
			CHECK_IS(kdsm_read_unlock(lock), -EPERM);
		}
		CHECK_IS(remote_of(lock), before);
		CHECK_IS(info_of(lock).stats[KDSM_LOCK_STAT_READS], reads);
	}
	meet();
	CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	meet();
	kdsm_lock_close(lock);
}

/* ---- sharing and excluding ---- */

static void *read_too(void *arg)
{
	CHECK_IS(kdsm_read_lock_timed(arg, 10 * SECOND), 0);
	CHECK_IS(kdsm_read_unlock(arg), 0);
	return NULL;
}

static void rw_shared(void)
{
	struct kdsm_lock *lock = make("shared", 1, 64, 16), *plain;
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	pthread_t thread;

	CHECK_IS(kdsm_read_lock(lock), 0);
	meet();
	/* A thread of every node has the lock for reading now. */
	CHECK_IS(pthread_create(&thread, NULL, read_too, lock), 0);
	pthread_join(thread, NULL);
	CHECK_IS(kdsm_read_lock(lock), -EDEADLK);
	CHECK_IS(kdsm_lock(lock), -EDEADLK);
	CHECK_IS(kdsm_lock_try(lock), -EDEADLK);
	CHECK_IS(kdsm_unlock(lock), -EPERM);
	meet();
	CHECK_IS(kdsm_read_unlock(lock), 0);
	CHECK_IS(kdsm_read_unlock(lock), -EPERM);
	meet();
	if (node == 0) {
		CHECK_IS(kdsm_lock(lock), 0);
		CHECK_IS(kdsm_read_lock(lock), -EDEADLK);
		CHECK_IS(kdsm_lock(lock), -EDEADLK);
		CHECK_IS(kdsm_read_unlock(lock), -EPERM);
		CHECK_IS(kdsm_unlock(lock), 0);
		CHECK_IS(kdsm_lock_create(region, "plain", 0, &attr, &plain), 0);
		CHECK_IS(kdsm_read_lock(plain), -EINVAL);
		CHECK_IS(kdsm_read_unlock(plain), -EINVAL);
		kdsm_lock_close(plain);
	}
	meet();
	kdsm_lock_close(lock);
}

static void rw_settings(void)
{
	struct kdsm_lock *lock = make("settings", 1, 5, 6), *other;
	struct kdsm_lock_settings set = { .mask = KDSM_LOCK_SET_T_DC, .t_dc = nodes + 1 };
	struct kdsm_lock_attr attr = {
		.argsz = sizeof(attr),
		.kind = KDSM_LOCK_RMA_RW,
		.settings = { .mask = KDSM_LOCK_SET_T_L(2), .t_l = { 0, 7 } },
	};
	struct kdsm_lock_info info = info_of(lock);
	unsigned int i, product;

	CHECK_IS(info.settings.t_dc, 1);
	CHECK_IS(info.settings.t_r, 5);
	CHECK_IS(info.settings.t_w, 6);
	CHECK(info.settings.mask & KDSM_LOCK_SET_T_R);
	meet();
	if (node == 1) {
		CHECK_IS(kdsm_lock_set(lock, &set), -ERANGE);
		set.t_dc = 0;
		CHECK_IS(kdsm_lock_set(lock, &set), -ERANGE);
		set.mask = KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W;
		set.t_r = 9;
		set.t_w = KDSM_LOCK_T_MAX + 1;
		CHECK_IS(kdsm_lock_set(lock, &set), -ERANGE);
		CHECK_IS(info_of(lock).settings.t_r, 5);
		set.t_w = 8;
		CHECK_IS(kdsm_lock_set(lock, &set), 0);
		CHECK_IS(kdsm_lock_create(region, "settings-2", 0, &attr, &other), 0);
		/*
		 * T_W is the product of T_L of all levels; an automatic T_L counts as
		 * KDSM_LOCK_T_L_MOST.
		 */
		for (i = 3, product = 7; i <= kdsm_lock_levels(other); i++)
			product *= KDSM_LOCK_T_L_MOST;
		CHECK_IS(info_of(other).settings.t_w, product);
		CHECK_IS(info_of(other).settings.t_dc, 1);
		kdsm_lock_close(other);
	}
	meet();
	info = info_of(lock);
	CHECK_IS(info.settings.t_r, 9);
	CHECK_IS(info.settings.t_w, 8);
	meet();
	kdsm_lock_close(lock);
}

/* ---- waits that end early ---- */

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

static void *interrupt_later(void *arg)
{
	usleep(200000);
	return interrupt(arg);
}

/* Wait in all the ways that end early; none gets the lock. */
static void fail_all(struct kdsm_lock *lock, bool for_reading)
{
	pthread_t self = pthread_self(), other;

	CHECK_IS(for_reading ? kdsm_read_lock_try(lock) : kdsm_lock_try(lock), -EBUSY);
	CHECK_IS(for_reading ? kdsm_read_lock_timed(lock, 50 * MS) :
			       kdsm_lock_timed(lock, 50 * MS), -ETIMEDOUT);
	CHECK_IS(pthread_create(&other, NULL, interrupt, &self), 0);
	CHECK_IS(for_reading ? kdsm_read_lock_interruptible(lock, KDSM_FOREVER) :
			       kdsm_lock_interruptible(lock, KDSM_FOREVER), -EINTR);
	pthread_join(other, NULL);
}

static void rw_early(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct kdsm_lock *lock = make("early", nodes, 1, 1);
	struct kdsm_lock_info info;

	sigaction(SIGUSR1, &action, NULL);
	if (node == 0)
		CHECK_IS(kdsm_lock(lock), 0);
	meet();
	if (node == 1)
		fail_all(lock, true);
	meet();
	if (node == 0)
		CHECK_IS(kdsm_unlock(lock), 0);
	meet();
	CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND), 0);
	CHECK_IS(kdsm_read_unlock(lock), 0);
	meet();
	if (node == 0)
		CHECK_IS(kdsm_read_lock(lock), 0);
	meet();
	if (node == 1) {
		fail_all(lock, false);
		info = info_of(lock);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_BUSY], 2);
		CHECK_IS(info.stats[KDSM_LOCK_STAT_TIMEDOUT], 4);
	}
	meet();
	/* No writer waits any more, so a reader gets the lock. */
	if (node == nodes - 1 && node)
		CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND) ?: kdsm_read_unlock(lock), 0);
	meet();
	if (node == 0)
		CHECK_IS(kdsm_read_unlock(lock), 0);
	meet();
	CHECK_IS(kdsm_lock_timed(lock, 30 * SECOND), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	meet();
	kdsm_lock_close(lock);
}

static int write_timed(struct kdsm_lock *lock)
{
	return kdsm_lock_timed(lock, 300 * MS);
}

static int write_interruptible(struct kdsm_lock *lock)
{
	return kdsm_lock_interruptible(lock, 20 * SECOND);
}

/* In a child: the lock, by a file that the parent does not have */
static struct kdsm_lock *open_again(const char *name)
{
	struct kdsm_lock *lock;

	kdsm_region_close(region);
	if (kdsm_region_open(kdsm, NAME, NULL, &region) ||
	    kdsm_lock_open(region, name, 0, &lock))
		_exit(1);
	return lock;
}

/* A child that waits to write; by its own handle of the region, or by that of its parent */
static pid_t fork_writer(struct kdsm_lock *lock, const char *name, bool own)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	if (own)
		lock = open_again(name);
	kdsm_lock(lock);
	_exit(2);
}

/* The writer waits for at least 200 ms, and then waits no more. */
static void give_up_writing(struct kdsm_lock *lock, unsigned int how)
{
	pthread_t self = pthread_self(), other;
	int status;
	pid_t pid;

	switch (how) {
	case 0:
		CHECK_IS(write_timed(lock), -ETIMEDOUT);
		break;
	case 1:
		CHECK_IS(pthread_create(&other, NULL, interrupt_later, &self), 0);
		CHECK_IS(write_interruptible(lock), -EINTR);
		pthread_join(other, NULL);
		break;
	default:
		pid = fork_writer(lock, "writer-gone", how == 3);
		usleep(300000);
		CHECK_IS(kill(pid, SIGKILL), 0);
		CHECK_IS(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status));
	}
}

/*
 * A writer waits for a reader of another node, and keeps new readers out, until it gives up because
 * of its timeout, a signal, or its death. T_R and T_DC let no reader in meanwhile.
 */
static void rw_writer_gone(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct kdsm_lock *lock = make("writer-gone", nodes, 1, 1);
	unsigned int how;

	sigaction(SIGUSR1, &action, NULL);
	for (how = 0; how < 4; how++) {
		if (node == 0)
			CHECK_IS(kdsm_read_lock_timed(lock, 20 * SECOND), 0);
		meet();
		if (node == 1)
			give_up_writing(lock, how);
		if (node == nodes - 1 && node != 1) {
			usleep(100000);
			/* Between the writer's call and its end, or after that */
			CHECK_IS(kdsm_read_lock_timed(lock, 20 * SECOND), 0);
			CHECK_IS(kdsm_read_unlock(lock), 0);
		}
		meet();
		CHECK_IS(node ? kdsm_read_lock_timed(lock, 10 * SECOND) ?: kdsm_read_unlock(lock) :
				0, 0);
		meet();
		if (node == 0)
			CHECK_IS(kdsm_read_unlock(lock), 0);
		meet();
	}
	CHECK_IS(kdsm_lock_timed(lock, 30 * SECOND), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	CHECK_IS(info_of(lock).stats[KDSM_LOCK_STAT_DEAD], 0);
	meet();
	kdsm_lock_close(lock);
}

/* ---- two words that are equal while no writer has the lock ---- */

#define ROUNDS 120

static struct crew {
	struct kdsm_lock *lock;
	unsigned int every;		/* accesses for each write, on average */
	bool is_coherent;
	uint64_t writes;
} crew;

static uint64_t get(unsigned int i)
{
	uint64_t word;

	if (crew.is_coherent)
		return *guarded[i];
	CHECK_IS(kdsm_get(region, 0, 8 * i, &word, 8), 0);
	return word;
}

static void set(unsigned int i, uint64_t word)
{
	if (crew.is_coherent)
		*guarded[i] = word;
	else
		CHECK_IS(kdsm_put(region, 0, 8 * i, &word, 8), 0);
}

static void *work(void *arg)
{
	uint64_t random = (uintptr_t)arg + node * 64 + 1, word;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		random = guest_mix(random);
		if (random % crew.every) {
			CHECK_IS(kdsm_read_lock(crew.lock), 0);
			word = get(0);
			CHECK_IS(word, get(1));
			CHECK_IS(kdsm_read_unlock(crew.lock), 0);
			continue;
		}
		CHECK_IS(kdsm_lock(crew.lock), 0);
		word = get(1) + 1;
		set(0, word);
		set(1, word);
		CHECK_IS(kdsm_unlock(crew.lock), 0);
		__atomic_fetch_add(&crew.writes, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void crowd(struct kdsm_lock *lock, unsigned int every, bool tune)
{
	struct kdsm_lock_settings settings = { .mask = KDSM_LOCK_SET_T_DC };
	uint64_t zero = 0, sum;
	pthread_t threads[THREADS];
	struct kdsm_lock_info info;
	unsigned int i;

	crew = (struct crew){
		.lock = lock, .every = every, .is_coherent = kdsm_lock_region(lock) == coherent,
	};
	if (node == 0) {
		CHECK_IS(kdsm_lock(lock), 0);
		set(0, 0);
		set(1, 0);
		CHECK_IS(kdsm_unlock(lock), 0);
		CHECK_IS(kdsm_put(region, 0, 16, &zero, 8), 0);
	}
	meet();
	for (i = 0; i < THREADS; i++)
		CHECK_IS(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)i), 0);
	for (i = 0; tune && node == 0 && i < 12; i++) {
		settings.t_dc = 1 + i % nodes;
		CHECK_IS(kdsm_lock_set(lock, &settings), 0);
		usleep(20000);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_IS(kdsm_faa(region, 0, 16, crew.writes, NULL), 0);
	meet();
	CHECK_IS(kdsm_get(region, 0, 16, &sum, 8), 0);
	CHECK_IS(kdsm_read_lock(lock), 0);
	CHECK_IS(get(0), sum);
	CHECK_IS(kdsm_read_unlock(lock), 0);
	info = info_of(lock);
	printf("# reads %llu writes %llu switches %llu row %llu atomics %llu messages %llu longest %llu us\n",
	       info.stats[KDSM_LOCK_STAT_READS], info.stats[KDSM_LOCK_STAT_LOCKS],
	       info.stats[KDSM_LOCK_STAT_SWITCHES], info.stats[KDSM_LOCK_STAT_READERS_IN_ROW],
	       info.stats[KDSM_LOCK_STAT_ATOMICS], info.stats[KDSM_LOCK_STAT_MESSAGES],
	       info.stats[KDSM_LOCK_STAT_LONGEST] / 1000);
	CHECK_IS(info.stats[KDSM_LOCK_STAT_LOCKS] + info.stats[KDSM_LOCK_STAT_FAST],
		 crew.writes + !node);
	/* Reads by slots are not counted. */
	CHECK(info.stats[KDSM_LOCK_STAT_READS] <= ROUNDS * THREADS - crew.writes + 1);
	CHECK(info.stats[KDSM_LOCK_STAT_READERS_IN_ROW] <= info.settings.t_r);
	CHECK_IS(info.stats[KDSM_LOCK_STAT_DEAD], 0);
	/* No thread has the lock any more, so a writer gets it. */
	meet();
	if (node == nodes - 1) {
		CHECK_IS(kdsm_lock_timed(lock, 30 * SECOND), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	kdsm_lock_close(lock);
}

static void rw_crowd(void)
{
	crowd(make("crowd", 1, 64, 16), 8, false);
}

static void rw_crowd_central(void)
{
	crowd(make("crowd-central", nodes, 1, 1), 8, false);
}

static void rw_crowd_writers(void)
{
	crowd(make("crowd-writers", 1, 2, 2), 2, false);
}

static void rw_crowd_tuned(void)
{
	crowd(make("crowd-tuned", nodes, 2, 4), 6, true);
}

/* The words are in a region of policy release: readers see what writers wrote. */
static void rw_crowd_coherent(void)
{
	crowd(make_in(coherent, "crowd", 1, 2, 4), 4, false);
}

/* ---- threads that die ---- */

static void *die_reading(void *arg)
{
	CHECK_IS(kdsm_read_lock(arg), 0);
	return NULL;
}

static void *die_writing(void *arg)
{
	CHECK_IS(kdsm_lock(arg), 0);
	return NULL;
}

static void die(struct kdsm_lock *lock, void *(*how)(void *arg))
{
	pthread_t thread;

	CHECK_IS(pthread_create(&thread, NULL, how, lock), 0);
	pthread_join(thread, NULL);
}

static void rw_reader_dies(void)
{
	struct kdsm_lock *lock = make("reader-dies", nodes, 1, 1);

	if (node == 0)
		die(lock, die_reading);
	meet();
	if (node == 1) {
		CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	if (node == 0)
		CHECK_IS(info_of(lock).stats[KDSM_LOCK_STAT_DEAD], 1);
	meet();
	kdsm_lock_close(lock);
}

/*
 * A child that reads by its slot until it is killed; by its own file, which is closed then, or by
 * its parent's, which stays open.
 */
static pid_t fork_reader(struct kdsm_lock *lock, bool own)
{
	uint64_t reads, more;
	int ready[2];
	char byte;
	pid_t pid;

	CHECK_IS(pipe(ready), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (own)
			lock = open_again("reader-killed");
		/* The first call admits the node; the second one uses the slot, uncounted. */
		if (kdsm_read_lock(lock) || kdsm_read_unlock(lock))
			_exit(2);
		reads = info_of(lock).stats[KDSM_LOCK_STAT_READS];
		if (kdsm_read_lock(lock))
			_exit(3);
		more = info_of(lock).stats[KDSM_LOCK_STAT_READS] - reads;
		if (write(ready[1], more ? "m" : "s", 1) != 1)
			_exit(4);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_IS(read(ready[0], &byte, 1), 1);
	CHECK_IS(byte, 's');
	close(ready[0]);
	return pid;
}

static void rw_reader_killed(void)
{
	struct kdsm_lock *lock = make("reader-killed", nodes, 1, 1);
	pid_t pid = 0;
	int own;

	meet();
	for (own = 0; own < 2; own++) {
		if (node == 0)
			pid = fork_reader(lock, own);
		meet();
		/* It keeps writers out as long as it lives. */
		if (node == 1)
			CHECK_IS(kdsm_lock_timed(lock, 500 * MS), -ETIMEDOUT);
		meet();
		if (node == 0) {
			CHECK_IS(kill(pid, SIGKILL), 0);
			CHECK_IS(waitpid(pid, NULL, 0), pid);
		}
		if (node == 1) {
			CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), 0);
			CHECK_IS(kdsm_unlock(lock), 0);
		}
		meet();
		CHECK_IS(info_of(lock).stats[KDSM_LOCK_STAT_DEAD], node == 0 ? own + 1 : 0);
		meet();
	}
	kdsm_lock_close(lock);
}

/* ---- numbers of threads ---- */

static int numbering;		/* a file by which threads get numbers */

static int bind_file(int on)
{
	struct kdsm_region_open args = { .argsz = sizeof(args), .name = NAME };

	return ioctl(on, KDSM_IOC_REGION_OPEN, &args) < 0 ? -errno : 0;
}

static void *get_number(void *arg)
{
	struct kdsm_lock_thread args = { .argsz = sizeof(args) };

	CHECK_IS(ioctl(numbering, KDSM_IOC_LOCK_THREAD, &args), 0);
	*(uint32_t *)arg = args.thread;
	return NULL;
}

/* Threads come and go until one has a number of at least, or at most, this. */
static unsigned int use_up(uint32_t bound, bool most)
{
	unsigned int count = 0;
	uint32_t number = 0;
	pthread_t thread;

	do {
		CHECK_IS(pthread_create(&thread, NULL, get_number, &number), 0);
		pthread_join(thread, NULL);
	} while (++count < 2 * KDSM_MAX_LOCK_THREADS &&
		 (most ? number > bound : number < bound));
	return count;
}

static struct {
	struct kdsm_lock *lock;
	pthread_mutex_t end;
	sem_t inside;
} long_reader = { .end = PTHREAD_MUTEX_INITIALIZER };

static void *read_long(void *arg)
{
	(void)arg;
	CHECK_IS(kdsm_read_lock(long_reader.lock), 0);
	CHECK_IS(kdsm_read_unlock(long_reader.lock), 0);
	CHECK_IS(kdsm_read_lock(long_reader.lock), 0);
	sem_post(&long_reader.inside);
	pthread_mutex_lock(&long_reader.end);
	CHECK_IS(kdsm_read_unlock(long_reader.lock), 0);
	pthread_mutex_unlock(&long_reader.end);
	return NULL;
}

/*
 * The numbers of threads go round. A thread with a high number, which reads, keeps writers out also
 * when low numbers are given out again. No new thread owns what a dead one with its number did.
 */
static void rw_numbers(void)
{
	struct kdsm_lock *lock = make("numbers", nodes, 1, 1), *plain;
	struct kdsm_lock *read_lock = make("numbers-dead", nodes, 1, 1);
	struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = KDSM_LOCK_DMCS };
	unsigned int used;
	pthread_t reader;

	/* A kernel that looks for bugs takes minutes, and finds no more of them. */
	if (slowness() > 1)
		return;
	CHECK_IS(kdsm_lock_create(region, "numbers-plain", 0, &attr, &plain), 0);
	meet();
	if (node == 0) {
		numbering = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
		CHECK_IS(bind_file(numbering), 0);
		die(plain, die_writing);
		die(read_lock, die_reading);
		use_up(200, false);
		long_reader.lock = lock;
		sem_init(&long_reader.inside, 0, 0);
		pthread_mutex_lock(&long_reader.end);
		CHECK_IS(pthread_create(&reader, NULL, read_long, NULL), 0);
		sem_wait(&long_reader.inside);
		used = use_up(100, true);
		printf("# %u threads used up the numbers\n", used);
		CHECK(used > KDSM_MAX_LOCK_THREADS - 300);
	}
	meet();
	if (node == 1) {
		CHECK_IS(kdsm_lock_timed(lock, 500 * MS), -ETIMEDOUT);
		CHECK_IS(kdsm_lock_timed(read_lock, 10 * SECOND), 0);
		CHECK_IS(kdsm_unlock(read_lock), 0);
		CHECK_IS(kdsm_lock_timed(plain, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(kdsm_lock_consistent(plain), 0);
		CHECK_IS(kdsm_unlock(plain), 0);
	}
	meet();
	if (node == 0) {
		pthread_mutex_unlock(&long_reader.end);
		pthread_join(reader, NULL);
		CHECK_IS(info_of(plain).stats[KDSM_LOCK_STAT_DEAD], 1);
		CHECK_IS(info_of(read_lock).stats[KDSM_LOCK_STAT_DEAD], 1);
		CHECK_IS(info_of(lock).stats[KDSM_LOCK_STAT_DEAD], 0);
		close(numbering);
	}
	CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), 0);
	CHECK_IS(kdsm_unlock(lock), 0);
	meet();
	kdsm_lock_close(plain);
	kdsm_lock_close(read_lock);
	kdsm_lock_close(lock);
}

static void rw_writer_dies(void)
{
	struct kdsm_lock *lock = make("writer-dies", nodes, 1, 1);

	if (node == 0)
		die(lock, die_writing);
	meet();
	/* As long as no writer has taken the lock, every reader gets -EOWNERDEAD. */
	CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND), -EOWNERDEAD);
	CHECK_IS(kdsm_lock_consistent(lock), -EPERM);
	CHECK_IS(kdsm_read_unlock(lock), 0);
	meet();
	if (node == 1) {
		CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(kdsm_lock_consistent(lock), 0);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND), 0);
	CHECK_IS(kdsm_read_unlock(lock), 0);
	meet();
	if (node == 1)
		die(lock, die_writing);
	meet();
	if (node == 0) {
		CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), -EOWNERDEAD);
		CHECK_IS(kdsm_unlock(lock), 0);
	}
	meet();
	CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND), -ENOTRECOVERABLE);
	CHECK_IS(kdsm_read_unlock(lock), -EPERM);
	CHECK_IS(kdsm_lock_timed(lock, 10 * SECOND), -ENOTRECOVERABLE);
	meet();
	kdsm_lock_close(lock);
}

/* It is alive when readers begin to wait, and no writer waits for it. */
static void *die_writing_later(void *arg)
{
	CHECK_IS(kdsm_lock(arg), 0);
	meet();
	usleep(700 * 1000);
	return NULL;
}

static void rw_writer_dies_later(void)
{
	struct kdsm_lock *lock = make("writer-dies-later", nodes, 1, 1);
	pthread_t thread;

	if (node == 0)
		CHECK_IS(pthread_create(&thread, NULL, die_writing_later, lock), 0);
	else
		meet();
	if (node)
		CHECK_IS(kdsm_read_lock_timed(lock, 10 * SECOND), -EOWNERDEAD);
	else
		pthread_join(thread, NULL);
	meet();
	if (node)
		CHECK_IS(kdsm_read_unlock(lock), 0);
	meet();
	kdsm_lock_close(lock);
}

static const struct guest_test tests[] = {
	{ "rw_alone", rw_alone },
	{ "rw_lingers", rw_lingers },
	{ "rw_shared", rw_shared },
	{ "rw_settings", rw_settings },
	{ "rw_early", rw_early },
	{ "rw_writer_gone", rw_writer_gone },
	{ "rw_crowd", rw_crowd },
	{ "rw_crowd_central", rw_crowd_central },
	{ "rw_crowd_writers", rw_crowd_writers },
	{ "rw_crowd_tuned", rw_crowd_tuned },
	{ "rw_crowd_coherent", rw_crowd_coherent },
	{ "rw_reader_dies", rw_reader_dies },
	{ "rw_reader_killed", rw_reader_killed },
	{ "rw_writer_dies", rw_writer_dies },
	{ "rw_writer_dies_later", rw_writer_dies_later },
	{}
};

static const struct guest_test numbers_tests[] = {
	{ "rw_numbers", rw_numbers },
	{}
};

int main(int argc, char **argv)
{
	bool numbers = argc > 1 && !strcmp(argv[1], "numbers");
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 }, coherent_attr = {
		.argsz = sizeof(coherent_attr),
		.size = 2 * 4096, .block_size = 4096, .policy = KDSM_POLICY_RELEASE,
	};
	int ret, status;

	guest_open("lock-rw-meeting");
	attr.size *= nodes;
	ret = kdsm_region_open(kdsm, NAME, &attr, &region);
	if (ret)
		guest_die("region", ret);
	ret = kdsm_region_open_coherent(kdsm, "lock-rw-coherent", &coherent_attr,
					KDSM_LINE_SIZE * (2 + nodes), &coherent, &unused);
	if (ret)
		guest_die("coherent region", ret);
	guarded[0] = kdsm_region_address(coherent);
	guarded[1] = guarded[0] + 4096 / sizeof(*guarded[1]);
	status = guest_run(numbers ? numbers_tests : tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(coherent);
	kdsm_region_close(unused);
	kdsm_region_close(region);
	guest_close();
	return status;
}
