// SPDX-License-Identifier: GPL-2.0
/*
 * held: the time to lock and to unlock a lock that the node holds, against locks of pthreads that
 * processes share. Nothing else wants the lock. A round measures first one and then the other, so
 * that a change in the speed of the machine affects both; the result is the median of the rounds'
 * ratios, with their spread. Times are CPU times, so that other programs of the machine do not
 * count. A thread that sleeps would look good by its CPU time, but none has a reason to sleep.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include "common/cluster.h"
#include "lock.h"

/* Defaults of --threads and --repeat */
#define THREADS 4
#define ROUNDS 5

/*
 * Upper bound of the time of a thread's calls in a round, in ns. It matters if a lock that the node
 * holds needs the network nevertheless.
 */
#define MOST_TIME 1000000000

enum side { SIDE_KDSM, SIDE_PTHREADS, SIDES };

/* Locks that processes share */
struct shared {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
};

/* A line of the result: one kind of lock, for reading or for writing */
struct line {
	enum kdsm_lock_kind kind;
	bool reads;
	bool many;		/* as many threads as --threads says, instead of one */
};

static const struct line lines[] = {
	{ KDSM_LOCK_DMCS, .reads = false, .many = false },
	{ KDSM_LOCK_RMA_MCS, .reads = false, .many = false },
	{ KDSM_LOCK_RMA_RW, .reads = false, .many = false },
	{ KDSM_LOCK_RMA_RW, .reads = true, .many = false },
	{ KDSM_LOCK_RMA_RW, .reads = true, .many = true },
};

#define LINES (sizeof(lines) / sizeof(lines[0]))

struct held {
	struct run run;
	struct shared *shared;
	struct kdsm_lock *lock;
	const struct line *line;
	unsigned int threads;
	enum side side;
	pthread_barrier_t begin;	/* of the threads of a measurement */
};

/* ---- threads ---- */

struct thread {
	struct held *held;
	pthread_t id;
	double ns;			/* CPU time of a call, in ns */
	int error;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Lock and unlock, calls times. Each loop has the calls of its side only. */
static int kdsm_write(struct held *held, unsigned int calls)
{
	int ret = 0;

	while (calls-- && !ret)
		ret = kdsm_lock(held->lock) ?: kdsm_unlock(held->lock);
	return ret;
}

static int kdsm_read(struct held *held, unsigned int calls)
{
	int ret = 0;

	while (calls-- && !ret)
		ret = kdsm_read_lock(held->lock) ?: kdsm_read_unlock(held->lock);
	return ret;
}

static int pthreads_write(struct held *held, unsigned int calls)
{
	int ret = 0;

	while (calls-- && !ret)
		ret = pthread_mutex_lock(&held->shared->mutex) ?:
		      pthread_mutex_unlock(&held->shared->mutex);
	return -ret;
}

static int pthreads_read(struct held *held, unsigned int calls)
{
	int ret = 0;

	while (calls-- && !ret)
		ret = pthread_rwlock_rdlock(&held->shared->rwlock) ?:
		      pthread_rwlock_unlock(&held->shared->rwlock);
	return -ret;
}

static int (*const loops[SIDES][2])(struct held *held, unsigned int calls) = {
	[SIDE_KDSM] = { kdsm_write, kdsm_read },
	[SIDE_PTHREADS] = { pthreads_write, pthreads_read },
};

/*
 * Make so many calls, or fewer in MOST_TIME. Returns how many, or a negative errno. The batches
 * grow until looking at the clock between two costs nothing beside them.
 */
static int64_t call(struct held *held, unsigned int calls)
{
	int (*loop)(struct held *held, unsigned int calls) = loops[held->side][held->line->reads];
	uint64_t begin = now_ns(), end = begin + MOST_TIME, last = begin, now = begin;
	unsigned int done = 0, batch = 1;
	int ret;

	while (done < calls && now < end) {
		if (batch > calls - done)
			batch = calls - done;
		ret = loop(held, batch);
		if (ret)
			return ret;
		done += batch;
		now = now_ns();
		if (now - last < MOST_TIME / 1000)
			batch *= 2;
		last = now;
	}
	return done;
}

static void *thread_run(void *arg)
{
	struct thread *thread = arg;
	const struct options *options = thread->held->run.options;
	uint64_t began;
	int64_t done;

	done = call(thread->held, options->warmup);
	pthread_barrier_wait(&thread->held->begin);
	began = cpu_ns();
	if (done > 0)
		done = call(thread->held, options->calls);
	if (done > 0)
		thread->ns = (cpu_ns() - began) / (double)done;
	else
		thread->error = done;
	return NULL;
}

/* ---- a measurement ---- */

/* *ns gets the mean time of a call. */
static int measure(struct held *held, enum side side, double *ns)
{
	struct thread threads[MAX_THREADS];
	unsigned int i;
	int ret = 0;

	*ns = 0;
	held->side = side;
	pthread_barrier_init(&held->begin, NULL, held->threads);
	for (i = 0; i < held->threads; i++) {
		threads[i] = (struct thread){ .held = held };
		/* The threads before it would wait for the missing thread. */
		if (pthread_create(&threads[i].id, NULL, thread_run, &threads[i])) {
			complain(held->run.options, "no thread");
			exit(EXIT_FAILURE);
		}
	}
	for (i = 0; i < held->threads; i++) {
		pthread_join(threads[i].id, NULL);
		*ns += threads[i].ns / held->threads;
		ret = ret ?: threads[i].error;
	}
	pthread_barrier_destroy(&held->begin);
	return ret;
}

/* The medians over the rounds, and the spread of the ratio */
struct outcome {
	double ns[SIDES];
	double ratio, least, most;
};

static int compare(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static double median_of(double *list, unsigned int count)
{
	qsort(list, count, sizeof(*list), compare);
	return (list[count / 2] + list[(count - 1) / 2]) / 2;
}

static int measure_rounds(struct held *held, unsigned int rounds, struct outcome *outcome)
{
	double ns[SIDES][MAX_REPEAT], ratios[MAX_REPEAT];
	unsigned int round, side, first, i;
	int ret = 0;

	for (round = 0; round < rounds; round++) {
		/* The sides take turns in being the first. */
		first = round % SIDES;
		for (i = 0; i < SIDES && !ret; i++) {
			side = (first + i) % SIDES;
			ret = measure(held, side, &ns[side][round]);
		}
		if (ret)
			return ret;
		ratios[round] = ns[SIDE_KDSM][round] / ns[SIDE_PTHREADS][round];
	}
	for (side = 0; side < SIDES; side++)
		outcome->ns[side] = median_of(ns[side], rounds);
	outcome->ratio = median_of(ratios, rounds);
	outcome->least = ratios[0];
	outcome->most = ratios[rounds - 1];
	return 0;
}

/* ---- the result ---- */

static const struct column columns[] = {
	{ "what", TABLE_LEFT, 5 },
	{ "kind", TABLE_LEFT, 7 },
	{ "threads", TABLE_RIGHT, 7 },
	{ "ns", TABLE_RIGHT, 9 },
	{ "against", TABLE_LEFT, 7 },
	{ "ns", TABLE_RIGHT, 9 },
	{ "ratio", TABLE_RIGHT, 6 },
	{ "least", TABLE_RIGHT, 6 },
	{ "most", TABLE_RIGHT, 6 },
	{ 0 }
};

static void add_row(struct held *held, const struct outcome *outcome)
{
	const struct line *line = held->line;
	struct table *table = held->run.table;

	table_cell(table, "%s", line->reads ? "read" : "write");
	table_cell(table, "%s", lock_kind_name(line->kind));
	table_cell(table, "%u", held->threads);
	table_cell(table, "%.1f", outcome->ns[SIDE_KDSM]);
	table_cell(table, "%s", line->reads ? "rwlock" : "mutex");
	table_cell(table, "%.1f", outcome->ns[SIDE_PTHREADS]);
	table_cell(table, "%.2f", outcome->ratio);
	table_cell(table, "%.2f", outcome->least);
	table_cell(table, "%.2f", outcome->most);
	table_print(table);
	fflush(stdout);
}

static void add_real(struct json_object *object, const char *name, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", value);
	json_object_object_add(object, name, json_object_new_double_s(value, text));
}

static void add_json(struct held *held, const struct outcome *outcome)
{
	struct json_object *object = json_object_new_object();
	const struct line *line = held->line;

	json_object_object_add(object, "what",
			       json_object_new_string(line->reads ? "read" : "write"));
	json_object_object_add(object, "kind",
			       json_object_new_string(lock_kind_name(line->kind)));
	json_object_object_add(object, "threads", json_object_new_uint64(held->threads));
	add_real(object, "kdsm_ns", outcome->ns[SIDE_KDSM]);
	add_real(object, "pthread_ns", outcome->ns[SIDE_PTHREADS]);
	add_real(object, "ratio", outcome->ratio);
	add_real(object, "ratio_least", outcome->least);
	add_real(object, "ratio_most", outcome->most);
	json_object_array_add(json_object_object_get(held->run.result, "results"), object);
}

/* ---- all lines ---- */

static int line_of(struct held *held, unsigned int number)
{
	const struct options *options = held->run.options;
	const struct kdsm_lock_attr attr = { .argsz = sizeof(attr), .kind = held->line->kind };
	struct outcome outcome;
	int ret;

	held->threads = held->line->many ? options->lock.threads : 1;
	ret = lock_create_afar(&held->run, &attr, number, held->run.node, &held->lock);
	if (!ret)
		ret = measure_rounds(held, options->lock.repeat, &outcome);
	kdsm_lock_close(held->lock);
	held->lock = NULL;
	if (ret)
		return complain(options, "a lock of kind %s: %s", lock_kind_name(attr.kind),
				kdsm_error(ret));
	if (options->json)
		add_json(held, &outcome);
	else
		add_row(held, &outcome);
	return 0;
}

static struct shared *shared_new(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t mutex;
	pthread_rwlockattr_t rwlock;

	if (shared == MAP_FAILED)
		return NULL;
	pthread_mutexattr_init(&mutex);
	pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->mutex, &mutex);
	pthread_rwlockattr_init(&rwlock);
	pthread_rwlockattr_setpshared(&rwlock, PTHREAD_PROCESS_SHARED);
	pthread_rwlock_init(&shared->rwlock, &rwlock);
	return shared;
}

/* Node 0 measures; the others serve as homes of the locks. */
int bench_held(const struct options *given)
{
	struct options options = *given;
	struct held held = { .threads = 0 };
	unsigned int i;
	int ret;

	options.lock.threads = options.lock.threads ?: THREADS;
	options.lock.repeat = options.lock.repeat ?: ROUNDS;
	ret = run_open(&held.run, &options, NULL);
	if (ret)
		return ret;
	held.shared = shared_new();
	ret = held.shared ? run_region(&held.run, DATA_OFFSET) :
			    complain(&options, "no memory");
	if (!ret)
		run_table(&held.run, columns, "locks that the node holds, %u calls, %u rounds",
			  options.calls, options.lock.repeat);
	for (i = 0; i < LINES && !ret && held.run.measures; i++) {
		held.line = &lines[i];
		ret = line_of(&held, i * held.run.nodes);
	}
	if (!ret)
		ret = run_meet(&held.run);
	if (!ret && held.run.measures)
		report_end(&held.run);
	if (held.shared)
		munmap(held.shared, sizeof(*held.shared));
	run_close(&held.run);
	return ret;
}
