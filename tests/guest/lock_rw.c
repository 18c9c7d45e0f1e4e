// SPDX-License-Identifier: GPL-2.0
/*
 * Locks of kind rma-rw, from a program on every node at the same time: readers share,
 * writers exclude; costs; errors, waits that end early, threads that die; and T_DC changed
 * while the lock is in use. Needs two nodes.
 *
 * usage: lock_rw [PART-OF-A-TEST-NAME]
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/coherent.h>
#include <kdsm/lock.h>
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

static void rw_alone(void)
{
	struct kdsm_lock *lock = make("alone", nodes, 1, 1);
	struct kdsm_lock_settings not_kept = { .mask = KDSM_LOCK_SET_KEEP };
	struct kdsm_lock_info before, locked, after;

	meet();
	/* The only counter is at node 0. */
	if (node == 1) {
		CHECK_IS(kdsm_lock_set(lock, &not_kept), 0);
		before = info_of(lock);
		CHECK_IS(kdsm_read_lock(lock), 0);
		CHECK_IS(kdsm_lock_consistent(lock), -EPERM);
		locked = info_of(lock);
		CHECK_IS(kdsm_read_unlock(lock), 0);
		after = info_of(lock);
		CHECK_IS(locked.stats[KDSM_LOCK_STAT_ATOMICS] -
			 before.stats[KDSM_LOCK_STAT_ATOMICS], 1);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_ATOMICS] -
			 locked.stats[KDSM_LOCK_STAT_ATOMICS], 1);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_MESSAGES],
			 before.stats[KDSM_LOCK_STAT_MESSAGES]);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_GETS] + after.stats[KDSM_LOCK_STAT_PUTS], 0);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_READS], 1);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_LOCKS], 0);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_SWITCHES], 0);
	}
	meet();
	kdsm_lock_close(lock);
}

/*
 * A node that reads repeatedly does not count itself each time, and a writer still gets the
 * lock.
 */
static void rw_lingers(void)
{
	struct kdsm_lock *lock = make("lingers", nodes, 1, 1);
	struct kdsm_lock_info before, after;
	unsigned int i;

	meet();
	if (node == 1) {
		before = info_of(lock);
		for (i = 0; i < 64; i++) {
			CHECK_IS(kdsm_read_lock(lock), 0);
			CHECK_IS(kdsm_read_unlock(lock), 0);
		}
		after = info_of(lock);
		CHECK_IS(after.stats[KDSM_LOCK_STAT_READS] -
			 before.stats[KDSM_LOCK_STAT_READS], 64);
		/* T_L is 16, so at least every 17th read is counted, by two atomics. */
		CHECK(after.stats[KDSM_LOCK_STAT_ATOMICS] -
		      before.stats[KDSM_LOCK_STAT_ATOMICS] >= 2 * 64 / 17);
		CHECK(after.stats[KDSM_LOCK_STAT_ATOMICS] -
		      before.stats[KDSM_LOCK_STAT_ATOMICS] <= 64);
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
	struct kdsm_lock_attr attr = { .kind = KDSM_LOCK_DMCS };
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
	CHECK_IS(info.stats[KDSM_LOCK_STAT_LOCKS], crew.writes + !node);
	CHECK_IS(info.stats[KDSM_LOCK_STAT_READS], ROUNDS * THREADS - crew.writes + 1);
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
	{ "rw_crowd", rw_crowd },
	{ "rw_crowd_central", rw_crowd_central },
	{ "rw_crowd_writers", rw_crowd_writers },
	{ "rw_crowd_tuned", rw_crowd_tuned },
	{ "rw_crowd_coherent", rw_crowd_coherent },
	{ "rw_reader_dies", rw_reader_dies },
	{ "rw_writer_dies", rw_writer_dies },
	{ "rw_writer_dies_later", rw_writer_dies_later },
	{}
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .size = 4096 }, coherent_attr = {
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
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(coherent);
	kdsm_region_close(unused);
	kdsm_region_close(region);
	guest_close();
	return status;
}
