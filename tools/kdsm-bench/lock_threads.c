// SPDX-License-Identifier: GPL-2.0
/*
 * lock: the threads of a node, which lock and unlock, and what is measured meanwhile. With a
 * number of calls, each thread measures that many acquisitions after its warm-up. With a time,
 * all threads run until the time is over, and what happens in the time is measured.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lock.h"
#include "mark.h"

/*
 * Time for which a thread keeps the lock in the warm-up of a number of calls, in us. Otherwise the
 * first node that has the lock could finish before threads of other nodes wait.
 */
#define HOLD 1000

/* alone: time after which an unlock has no operations left, in us */
#define SETTLED 5000
/* alone: locks and unlocks whose operations are counted */
#define PAIRS 20
/*
 * alone: interval between looks whether the lock is free, in us, and upper bound of the time for
 * which a thread waits for that, in ns
 */
#define UNLOCK_PAUSE 1000
#define UNLOCK_TIME 20000000

/* ---- counters ---- */

static int counters_of(const struct lock_run *run, struct kdsm_lock_info *info)
{
	memset(info, 0, sizeof(*info));
	return run->lock ? kdsm_lock_info(run->lock, info) : 0;
}

static uint64_t remote_of(const struct kdsm_lock_info *info)
{
	return info->stats[KDSM_LOCK_STAT_ATOMICS] + info->stats[KDSM_LOCK_STAT_PUTS] +
	       info->stats[KDSM_LOCK_STAT_GETS] + info->stats[KDSM_LOCK_STAT_MESSAGES];
}

/* ---- one acquisition ---- */

static bool is_shared(const struct lock_run *run, bool write)
{
	return !write && run->round.kind == KDSM_LOCK_RMA_RW;
}

static int lock_as(struct lock_run *run, bool shared)
{
	if (!run->lock)
		return 0;
	return shared ? kdsm_read_lock(run->lock) : kdsm_lock(run->lock);
}

static int unlock_as(struct lock_run *run, bool shared)
{
	if (!run->lock)
		return 0;
	return shared ? kdsm_read_unlock(run->lock) : kdsm_unlock(run->lock);
}

static void note_handovers(struct lock_handovers *handovers, uint64_t number)
{
	handovers->classes[number < LOCK_HANDOVERS ? number : LOCK_HANDOVERS - 1]++;
	if (number > handovers->longest)
		handovers->longest = number;
}

/*
 * Unlock may return before the node has given the lock back. An uncontended lock is one that has
 * been given back, so wait for this.
 */
static void wait_until_free(struct lock_run *run)
{
	const struct kdsm_lock_settings *settings = &run->round.settings;
	uint64_t end = now_ns() + UNLOCK_TIME, freed = run->freed;
	struct kdsm_lock_info info;

	if (run->run.nodes == 1 || !(settings->mask & KDSM_LOCK_SET_KEEP) || settings->keep)
		return;
	do {
		/* Asking all the time would keep the processor from the work item that unlocks. */
		usleep(UNLOCK_PAUSE);
		if (counters_of(run, &info))
			return;
		run->freed = info.stats[KDSM_LOCK_STAT_FREED];
	} while (run->freed == freed && now_ns() < end);
}

static int lock_once(struct lock_worker *worker, bool measured)
{
	struct lock_run *run = worker->run;
	const struct lock_benchmark *benchmark = run->round.benchmark;
	bool write = lock_random(worker) % 100000 < run->round.writers * 1000;
	bool shared = is_shared(run, write), marked = measured && benchmark->alone;
	uint64_t begin, had, end, unlocked, former = worker->number;
	int ret;

	begin = now_ns();
	if (marked)
		mark_place(MARK_BEGIN);
	ret = lock_as(run, shared);
	if (ret)
		return ret;
	if (marked)
		mark_place(MARK_MIDDLE);
	had = now_ns();
	ret = benchmark->inside(worker, write);
	if (!measured && !run->run.options->duration)
		usleep(HOLD);
	end = now_ns();
	ret = unlock_as(run, shared) ?: ret;
	unlocked = now_ns();
	if (measured) {
		histogram_add(shared ? &worker->times.reading : &worker->times.writing,
			      had - begin);
		histogram_add(&worker->times.both, had - begin + unlocked - end);
		if (write && former && benchmark->counts)
			note_handovers(&worker->times.handovers, worker->number - former - 1);
	}
	if (write)
		worker->times.writes++;
	else
		worker->times.reads++;
	if (benchmark->alone && !shared)
		wait_until_free(run);
	if (marked)
		mark_place(MARK_END);
	if (benchmark->waits_after)
		lock_pause(worker);
	return ret;
}

/* ---- threads ---- */

static bool goes_on(const struct lock_worker *worker)
{
	const struct options *options = worker->run->run.options;

	if (worker->error)
		return false;
	if (options->duration)
		return __atomic_load_n(&worker->run->phase, __ATOMIC_RELAXED) != LOCK_END;
	return worker->count < options->warmup + options->calls;
}

static bool is_measured(const struct lock_worker *worker)
{
	const struct options *options = worker->run->run.options;

	if (options->duration)
		return __atomic_load_n(&worker->run->phase, __ATOMIC_RELAXED) == LOCK_MEASURE;
	return worker->count >= options->warmup;
}

static void *lock_often(void *arg)
{
	struct lock_worker *worker = arg;
	bool measured;

	while (!__atomic_load_n(&worker->run->go, __ATOMIC_ACQUIRE))
		usleep(100);
	while (goes_on(worker)) {
		measured = is_measured(worker);
		if (measured && !worker->begin)
			worker->begin = now_ns();
		worker->error = lock_once(worker, measured);
		worker->measured += measured;
		/* With --seconds, another thread reads the count. */
		__atomic_store_n(&worker->count, worker->count + 1, __ATOMIC_RELAXED);
	}
	worker->end = now_ns();
	return NULL;
}

/* ---- what is measured ---- */

struct moment {
	struct kdsm_lock_info info;
	uint64_t count, time;
};

static int look_at(const struct lock_run *run, const struct lock_worker *workers,
		   unsigned int threads, struct moment *moment)
{
	unsigned int i;

	moment->count = 0;
	for (i = 0; i < threads; i++)
		moment->count += __atomic_load_n(&workers[i].count, __ATOMIC_RELAXED);
	moment->time = now_ns();
	return counters_of(run, &moment->info);
}

static void sleep_for(uint64_t ns)
{
	const struct timespec time = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&time, NULL);
}

static void set_phase(struct lock_run *run, enum lock_phase phase)
{
	__atomic_store_n(&run->phase, phase, __ATOMIC_RELAXED);
}

/* With --seconds: count what happens between two moments. The warm-up takes a tenth more. */
static int measure_time(struct lock_run *run, const struct lock_worker *workers,
			unsigned int threads, struct lock_totals *totals)
{
	uint64_t duration = run->run.options->duration;
	struct moment before, after;
	int ret;

	sleep_for(duration / 10);
	ret = look_at(run, workers, threads, &before);
	set_phase(run, LOCK_MEASURE);
	sleep_for(duration);
	ret = ret ?: look_at(run, workers, threads, &after);
	set_phase(run, LOCK_END);
	if (ret)
		return ret;
	totals->locks = after.count - before.count;
	totals->counted = totals->locks;
	totals->elapsed = after.time - before.time;
	totals->remote = remote_of(&after.info) - remote_of(&before.info);
	return 0;
}

/*
 * With a number of calls: operations are those of all calls, because there is no moment at which
 * all threads end their warm-up.
 */
static int add_calls(struct lock_run *run, const struct lock_worker *workers,
		     unsigned int threads, const struct moment *before,
		     struct lock_totals *totals)
{
	uint64_t begin = UINT64_MAX, end = 0;
	struct moment after;
	unsigned int i;
	int ret;

	ret = look_at(run, workers, threads, &after);
	if (ret)
		return ret;
	for (i = 0; i < threads; i++) {
		totals->locks += workers[i].measured;
		if (workers[i].begin && workers[i].begin < begin)
			begin = workers[i].begin;
		if (workers[i].end > end)
			end = workers[i].end;
	}
	totals->elapsed = end > begin ? end - begin : 0;
	totals->counted = after.count;
	totals->remote = remote_of(&after.info) - remote_of(&before->info);
	return 0;
}

static void settle(const struct lock_run *run)
{
	if (run->run.nodes > 1)
		usleep(SETTLED);
}

/* The operations of locks and of unlocks, each after all others have ended. */
static int count_pairs(struct lock_run *run, struct lock_totals *totals)
{
	bool shared = is_shared(run, run->round.writers >= 50);
	struct kdsm_lock_info before, locked, after;
	int ret = 0;

	settle(run);
	ret = counters_of(run, &before);
	while (!ret && totals->pairs < PAIRS) {
		ret = lock_as(run, shared);
		if (ret)
			break;
		settle(run);
		ret = counters_of(run, &locked);
		ret = unlock_as(run, shared) ?: ret;
		settle(run);
		ret = counters_of(run, &after) ?: ret;
		totals->lock_remote += remote_of(&locked) - remote_of(&before);
		totals->unlock_remote += remote_of(&after) - remote_of(&locked);
		totals->pairs++;
		before = after;
	}
	return ret;
}

static int add_waits(struct lock_run *run, struct lock_totals *totals)
{
	struct kdsm_lock_info info;
	int ret = counters_of(run, &info);

	totals->longest_wait = info.stats[KDSM_LOCK_STAT_LONGEST];
	memcpy(totals->waits, info.waits, sizeof(totals->waits));
	return ret;
}

/* ---- all threads of the node ---- */

static void workers_init(struct lock_run *run, struct lock_worker *workers, unsigned int threads)
{
	unsigned int i;

	memset(workers, 0, threads * sizeof(*workers));
	for (i = 0; i < threads; i++) {
		workers[i].run = run;
		workers[i].random = (run->run.node + 1) * 1000003ULL + i * 7919 + run->number;
	}
}

static int workers_join(struct lock_worker *workers, unsigned int threads,
			struct lock_totals *totals)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		lock_times_add(&totals->times, &workers[i].times);
		if (workers[i].error && !ret)
			ret = workers[i].error;
	}
	return ret;
}

int lock_threads_run(struct lock_run *run, struct lock_worker *workers, unsigned int threads,
		     struct lock_totals *totals)
{
	bool timed = run->run.options->duration;
	struct moment before;
	unsigned int started;
	int ret, error;

	run->go = false;
	run->phase = LOCK_WARM_UP;
	workers_init(run, workers, threads);
	ret = look_at(run, workers, threads, &before);
	for (started = 0; started < threads && !ret; started++)
		ret = -pthread_create(&workers[started].thread, NULL, lock_often,
				      &workers[started]);
	if (ret)
		started -= started > 0;
	__atomic_store_n(&run->go, true, __ATOMIC_RELEASE);
	if (timed && !ret)
		ret = measure_time(run, workers, threads, totals);
	set_phase(run, LOCK_END);
	error = workers_join(workers, started, totals);
	ret = ret ?: error;
	if (!timed && !ret)
		ret = add_calls(run, workers, threads, &before, totals);
	if (!ret && run->round.benchmark->alone)
		ret = count_pairs(run, totals);
	return ret ?: add_waits(run, totals);
}
