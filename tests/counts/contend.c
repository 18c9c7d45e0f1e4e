// SPDX-License-Identifier: GPL-2.0
/*
 * contend KIND PERCENT T_L LOCKS ROUNDS: four threads of each node contend for a lock, PERCENT
 * of the acquisitions for writing. T_L is the lock's threshold of every level, 0: the default.
 * Each round has a lock of its own. After a round, node 0 prints a line:
 *
 *	lock LOCKS REMOTE MEDIAN P99 LONGEST
 *
 * acquisitions of all threads, remote operations of the lock in these, and waits for writing in
 * hand-overs: how many other threads wrote since the thread had the lock last.
 *
 * Four things make the result repeat:
 * - The home of the lock is node 0, for every element of the topology.
 * - The threads queue up in a fixed order. A fair queue keeps this order, so the number of
 *   hand-overs between nodes is the same in each run.
 * - All threads contend until the marked part, LOCKS acquisitions of one thread of node 0, ends.
 *   If PERCENT is less than 100, each thread makes LOCKS acquisitions instead, because how much
 *   faster readers of one node are than those of another depends on the host.
 * - A thread that wakes another runs on until it waits for the lock again (SCHED_FIFO).
 *   Otherwise the time that threads had the processor, which depends on the host, decides
 *   whether the lock finds another thread of the node waiting or leaves the node.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kdsm/kdsm.h>
#include <kdsm/lock.h>

#include "kdsm-bench/mark.h"

#define THREADS		4	/* of each node */
#define WARMUP		10	/* acquisitions of each thread after the first */
#define MAX_WAIT	1000	/* hand-overs; longer waits count as this */
#define MAX_NODES	16
#define TIMEOUT		60000000000	/* ns, for all nodes to come */
#define NAP		1000	/* us between two looks at a word */

/* Places in the part of each node; node 0 has the counter and all totals. */
#define TURN		64UL	/* number of threads that are in the queue */
#define STOP		128UL
#define COUNTER		192UL
#define HOMES		4096UL	/* of each candidate, as each node sees it */
#define TOTALS		8192UL

#define CANDIDATES	24	/* locks, of which one has the wanted home */

struct totals {
	uint64_t locks, writes, remote;
	uint64_t waits[MAX_WAIT + 1];	/* by hand-overs */
};

static struct kdsm *kdsm;
static struct kdsm_region *region;
static struct kdsm_barrier barrier;
static struct kdsm_lock *lock;
static unsigned int node, nodes, percent, locks;
static bool reads;	/* acquisitions that are not for writing are shared */

struct worker {
	pthread_t thread;
	unsigned int place;	/* in the queue of all threads */
	int id;
	bool has_lock;		/* place 0: while the others queue up */
	uint64_t random, number;	/* of the last write, over all nodes */
	struct totals totals;
};

static void check(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "contend: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void meet(void)
{
	check(kdsm_barrier_wait(&barrier, TIMEOUT), "waiting for the other nodes");
}

/* ---- words that all nodes watch, each in its own part ---- */

static uint64_t look_at(uint64_t offset)
{
	return __atomic_load_n((uint64_t *)((char *)kdsm_region_part(region) + offset),
			       __ATOMIC_ACQUIRE);
}

/* Additions of different nodes may arrive in any order. */
static void add_everywhere(uint64_t offset)
{
	uint64_t before;
	unsigned int i;

	for (i = 0; i < nodes; i++)
		check(kdsm_faa(region, i, offset, 1, &before), "telling a node");
}

static void wait_for(uint64_t offset, uint64_t value)
{
	while (look_at(offset) < value)
		usleep(NAP);
}

/* ---- threads ---- */

static bool draw(struct worker *worker)
{
	uint64_t z = worker->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return (z ^ z >> 31) % 100 < percent;
}

static void count_wait(struct worker *worker, uint64_t number)
{
	uint64_t wait = number - worker->number - 1;

	if (worker->number && worker->totals.locks > WARMUP)
		worker->totals.waits[wait < MAX_WAIT ? wait : MAX_WAIT]++;
	worker->number = number;
}

/* One access of the guarded counter; the caller holds the lock. */
static void inside(struct worker *worker, bool write)
{
	uint64_t value;

	check(kdsm_get(region, 0, COUNTER, &value, sizeof(value)), "reading the counter");
	if (!write)
		return;
	value++;
	count_wait(worker, value);
	check(kdsm_put(region, 0, COUNTER, &value, sizeof(value)), "writing the counter");
}

static void unlock(struct worker *worker, bool write)
{
	check(reads && !write ? kdsm_read_unlock(lock) : kdsm_unlock(lock), "unlocking");
	worker->totals.locks++;
	worker->totals.writes += write;
	mark_place(MARK_DONE);
}

static void lock_once(struct worker *worker, bool write)
{
	check(reads && !write ? kdsm_read_lock(lock) : kdsm_lock(lock), "locking");
	inside(worker, write);
	unlock(worker, write);
}

/* The first thread has the lock until all others wait for it. */
static void queue_up(struct worker *worker)
{
	__atomic_store_n(&worker->id, syscall(SYS_gettid), __ATOMIC_RELEASE);
	check(kdsm_lock(lock), "locking");
	if (!worker->place) {
		__atomic_store_n(&worker->has_lock, true, __ATOMIC_RELEASE);
		wait_for(TURN, nodes * THREADS);
	}
	inside(worker, true);
	unlock(worker, true);
}

static void *contend(void *arg)
{
	struct worker *worker = arg;

	queue_up(worker);
	while (percent < 100 ? worker->totals.locks < WARMUP + locks : !look_at(STOP)) {
		if (!worker->place && worker->totals.locks == WARMUP)
			mark_place(MARK_BEGIN);
		lock_once(worker, draw(worker));
		if (!worker->place && worker->totals.locks == WARMUP + locks && percent == 100) {
			mark_place(MARK_END);
			add_everywhere(STOP);
		}
	}
	return NULL;
}

/* ---- the order of the threads ---- */

/* Whether a file of the thread in /proc begins with want, after the last ')' if there is one */
static bool begins(const struct worker *worker, const char *file, const char *want)
{
	char path[64], text[256] = "", *at;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s",
		 __atomic_load_n(&worker->id, __ATOMIC_ACQUIRE), file);
	stream = fopen(path, "r");
	if (!stream)
		return false;
	if (!fgets(text, sizeof(text), stream))
		text[0] = 0;
	fclose(stream);
	at = strrchr(text, ')');
	return !strncmp(at ? at + 2 : text, want, strlen(want));
}

/*
 * In an ioctl, a thread sleeps interruptibly only when it waits in the queue of the lock. It
 * waits for remote operations uninterruptibly.
 */
static bool is_queued(const struct worker *worker)
{
	if (!worker->place)
		return __atomic_load_n(&worker->has_lock, __ATOMIC_ACQUIRE);
	return begins(worker, "syscall", "16 ") && begins(worker, "stat", "S");
}

static void start(struct worker *worker)
{
	wait_for(TURN, worker->place);
	check(-pthread_create(&worker->thread, NULL, contend, worker), "threads");
	while (!is_queued(worker))
		usleep(NAP);
	add_everywhere(TURN);
}

/* ---- totals ---- */

static uint64_t remote(void)
{
	struct kdsm_lock_info info;

	check(kdsm_lock_info(lock, &info), "counts of the lock");
	return info.stats[KDSM_LOCK_STAT_ATOMICS] + info.stats[KDSM_LOCK_STAT_PUTS] +
	       info.stats[KDSM_LOCK_STAT_GETS] + info.stats[KDSM_LOCK_STAT_MESSAGES];
}

static void add(struct totals *sum, const struct totals *one)
{
	unsigned int i;

	sum->locks += one->locks;
	sum->writes += one->writes;
	sum->remote += one->remote;
	for (i = 0; i <= MAX_WAIT; i++)
		sum->waits[i] += one->waits[i];
}

/* The number of hand-overs that this part of the waits, in per cent, does not exceed. */
static unsigned int wait_of(const struct totals *totals, unsigned int part)
{
	uint64_t count = 0, sum = 0;
	unsigned int i;

	for (i = 0; i <= MAX_WAIT; i++)
		count += totals->waits[i];
	for (i = 0; i < MAX_WAIT; i++) {
		sum += totals->waits[i];
		if (sum * 100 >= count * part)
			break;
	}
	return i;
}

static void report(void)
{
	const struct totals *all = (void *)((char *)kdsm_region_part(region) + TOTALS);
	struct totals sum = { 0 };
	unsigned int i;

	for (i = 0; i < nodes; i++)
		add(&sum, &all[i]);
	if (look_at(COUNTER) != sum.writes) {
		fputs("contend: the lock does not exclude\n", stderr);
		exit(1);
	}
	printf("lock %llu %llu %u %u %u\n", (unsigned long long)sum.locks,
	       (unsigned long long)sum.remote, wait_of(&sum, 50), wait_of(&sum, 99),
	       wait_of(&sum, 100));
}

static void run(void)
{
	static struct worker workers[THREADS];
	struct totals sum = { 0 };
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.place = i * nodes + node,
			.random = (i * nodes + node) * 7919,
		};
		start(&workers[i]);
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		add(&sum, &workers[i].totals);
	}
	meet();
	if (!node && percent < 100)
		mark_place(MARK_END);
	sum.remote = remote();
	check(kdsm_put(region, 0, TOTALS + node * sizeof(sum), &sum, sizeof(sum)), "totals");
	meet();
	if (!node)
		report();
	meet();
	/* Each node watches its own words. */
	memset((char *)kdsm_region_part(region) + TURN, 0, COUNTER + 8 - TURN);
	meet();
}

/* ---- locks ---- */

static struct kdsm_lock *create(unsigned int number, enum kdsm_lock_kind kind)
{
	const struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = kind };
	struct kdsm_lock *created;

	check(kdsm_lock_create(region, NULL, number, &attr, &created), "creating a lock");
	return created;
}

/* Of locks with consecutive numbers, the first whose home is node 0 wherever a node looks. */
static unsigned int choose_lock(enum kdsm_lock_kind kind)
{
	uint64_t homes[CANDIDATES][MAX_NODES];
	struct kdsm_lock_info info;
	unsigned int i, other;

	for (i = 0; i < CANDIDATES; i++) {
		lock = create(i, kind);
		check(kdsm_lock_info(lock, &info), "home of a lock");
		homes[0][0] = info.home;
		check(kdsm_put(region, 0, HOMES + (i * MAX_NODES + node) * 8, homes, 8), "homes");
		kdsm_lock_close(lock);
	}
	meet();
	check(kdsm_get(region, 0, HOMES, homes, sizeof(homes)), "homes");
	for (i = 0; i < CANDIDATES; i++) {
		for (other = 0; other < nodes && !homes[i][other]; other++)
			;
		if (other == nodes)
			return i;
	}
	check(-ENOENT, "a lock with its home on node 0");
	return 0;
}

static void set_thresholds(unsigned int t_l)
{
	struct kdsm_lock_settings settings = { 0 };
	unsigned int i;

	for (i = 2; i <= kdsm_lock_levels(lock); i++) {
		settings.mask |= KDSM_LOCK_SET_T_L(i);
		settings.t_l[i - 1] = t_l;
	}
	check(kdsm_lock_set(lock, &settings), "setting thresholds");
}

/* Candidates have consecutive numbers, and homes repeat with a period that divides theirs. */
static void round_of(enum kdsm_lock_kind kind, unsigned int number, unsigned int t_l)
{
	lock = create(number, kind);
	if (!node && t_l)
		set_thresholds(t_l);
	meet();
	run();
	kdsm_lock_close(lock);
	meet();
}

/* ---- start and end ---- */

static void schedule_by_order(void)
{
	const struct sched_param param = { .sched_priority = 1 };

	check(sched_setscheduler(0, SCHED_FIFO, &param) ? -errno : 0, "real-time scheduling");
}

static void open_all(void)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 0 };

	check(kdsm_open(0, &kdsm), "opening the cluster");
	node = kdsm_node(kdsm);
	nodes = kdsm_nodes(kdsm);
	check(nodes > MAX_NODES ? -E2BIG : 0, "nodes");
	attr.size = (TOTALS + MAX_NODES * sizeof(struct totals)) * nodes;
	check(kdsm_region_open(kdsm, "contend", &attr, &region), "opening a region");
	kdsm_barrier_init(&barrier, region, 0);
	meet();
}

static void close_all(void)
{
	if (!node)
		check(kdsm_region_destroy(kdsm, "contend"), "removing the region");
	meet();
	kdsm_region_close(region);
	kdsm_close(kdsm);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {
		[KDSM_LOCK_DMCS] = "dmcs",
		[KDSM_LOCK_RMA_MCS] = "rma-mcs",
		[KDSM_LOCK_RMA_RW] = "rma-rw",
	};
	unsigned int kind = 0, number, i;

	while (argc == 6 && kind < sizeof(kinds) / sizeof(kinds[0]) &&
	       (!kinds[kind] || strcmp(kinds[kind], argv[1])))
		kind++;
	if (argc != 6 || kind == sizeof(kinds) / sizeof(kinds[0])) {
		fputs("usage: contend dmcs|rma-mcs|rma-rw PERCENT T_L LOCKS ROUNDS\n", stderr);
		return 2;
	}
	percent = atoi(argv[2]);
	locks = atoi(argv[4]);
	reads = kind == KDSM_LOCK_RMA_RW;
	schedule_by_order();
	open_all();
	number = choose_lock(kind);
	for (i = 0; i < (unsigned int)atoi(argv[5]); i++)
		round_of(kind, number + (i + 1) * CANDIDATES, atoi(argv[3]));
	close_all();
	return 0;
}
