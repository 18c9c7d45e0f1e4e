// SPDX-License-Identifier: GPL-2.0
/*
 * lock: how often threads of all nodes acquire a lock, for reading and for writing, and how
 * long they take. Every round has a lock of its own. lock_inside.c has what a thread does with
 * the lock, lock_options.c the command line, and lock_sweep.c the curves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/cluster.h"
#include "common/waits.h"
#include "lock.h"
#include "mark.h"

/* With --seconds: acquisitions of each thread whose times are kept */
#define ROOM 100000

/*
 * Time for which a thread keeps the lock during warm-up, in us. Otherwise the first node that
 * has the lock could finish before threads of other nodes wait.
 */
#define HOLD 1000

/* ---- threads ---- */

static void note_wait(struct lock_worker *worker, uint64_t handovers)
{
	worker->handovers[handovers < LOCK_HANDOVERS ? handovers : LOCK_HANDOVERS - 1]++;
	if (handovers > worker->longest_handovers)
		worker->longest_handovers = handovers;
}

static int lock_once(struct lock_worker *worker, bool measured)
{
	struct lock_run *run = worker->run;
	bool write = lock_random(worker) % 100000 < run->round.writers * 1000;
	bool marked = measured && run->round.benchmark->alone;
	bool shared = !write && run->round.kind == KDSM_LOCK_RMA_RW;
	uint64_t begin, had, end, took, former = worker->number;
	int ret;

	begin = samples_begin(marked ? &worker->samples : NULL);
	ret = shared ? kdsm_read_lock(run->lock) : kdsm_lock(run->lock);
	if (ret)
		return ret;
	if (marked)
		mark_place(MARK_MIDDLE);
	had = now_ns();
	ret = run->round.benchmark->inside(worker, write);
	if (!measured)
		usleep(HOLD);
	end = now_ns();
	if (shared)
		ret = kdsm_read_unlock(run->lock) ?: ret;
	else
		ret = kdsm_unlock(run->lock) ?: ret;
	took = had - begin + now_ns() - end;
	if (marked)
		mark_place(MARK_END);
	if (measured) {
		samples_add(&worker->samples, took);
		samples_add(&worker->locking, had - begin);
		if (took > worker->longest)
			worker->longest = took;
		if (write && former && run->round.benchmark->counts)
			note_wait(worker, worker->number - former - 1);
	}
	worker->writes += write;
	if (run->round.benchmark->waits_after)
		lock_pause(worker);
	return ret;
}

static void *lock_often(void *arg)
{
	struct lock_worker *worker = arg;
	const struct options *options = worker->run->run.options;
	uint64_t most = options->duration ? UINT64_MAX : options->warmup + options->calls;
	uint64_t now;

	while (!__atomic_load_n(&worker->run->go, __ATOMIC_ACQUIRE))
		usleep(100);
	while (worker->count < most && !worker->error) {
		now = options->duration ? now_ns() : 0;
		if (options->duration && now >= worker->run->end)
			break;
		worker->error = lock_once(worker, options->duration ?
						  now >= worker->run->measure :
						  worker->count >= options->warmup);
		worker->count++;
	}
	return NULL;
}

/* ---- a round on this node ---- */

static uint64_t remote_of(const struct kdsm_lock_info *info)
{
	return info->stats[KDSM_LOCK_STAT_ATOMICS] + info->stats[KDSM_LOCK_STAT_PUTS] +
	       info->stats[KDSM_LOCK_STAT_GETS] + info->stats[KDSM_LOCK_STAT_MESSAGES];
}

/* Combine the times of all threads. */
static void summarise(struct lock_worker *workers, unsigned int threads,
		      struct lock_totals *totals)
{
	struct samples all, locking;
	struct summary summary;
	unsigned int i, k, room = 0;

	for (i = 0; i < threads; i++)
		room += workers[i].samples.count;
	if (!room || samples_init(&all, room))
		return;
	if (samples_init(&locking, room)) {
		samples_free(&all);
		return;
	}
	for (i = 0; i < threads; i++)
		for (k = 0; k < workers[i].samples.count; k++) {
			samples_add(&all, workers[i].samples.ns[k]);
			samples_add(&locking, workers[i].locking.ns[k]);
		}
	samples_summarise(&all, &summary);
	totals->median = summary.median * 1e3;
	for (i = 0; i < threads; i++)
		if (workers[i].longest > totals->longest)
			totals->longest = workers[i].longest;
	samples_summarise(&locking, &summary);
	totals->locking = summary.median * 1e3;
	samples_free(&locking);
	samples_free(&all);
}

static void add_handovers(struct lock_totals *totals, const uint64_t *handovers, uint64_t longest)
{
	unsigned int i;

	for (i = 0; i < LOCK_HANDOVERS; i++)
		totals->handovers[i] += handovers[i];
	if (longest > totals->longest_handovers)
		totals->longest_handovers = longest;
}

static int threads_run(struct lock_run *run, struct lock_worker *workers,
		       unsigned int threads, struct lock_totals *totals)
{
	const struct options *options = run->run.options;
	unsigned int room = options->duration ? ROOM : options->calls;
	struct kdsm_lock_info before, after;
	unsigned int i, started;
	uint64_t begin;
	int ret = kdsm_lock_info(run->lock, &before);

	run->go = false;
	for (i = 0; i < threads; i++) {
		workers[i] = (struct lock_worker){
			.run = run,
			.random = (run->run.node + 1) * 1000003ULL + i * 7919 + run->number,
		};
		if (samples_init(&workers[i].samples, room) ||
		    samples_init(&workers[i].locking, room))
			ret = -ENOMEM;
	}
	for (started = 0; started < threads && !ret; started++)
		ret = -pthread_create(&workers[started].thread, NULL, lock_often,
				      &workers[started]);
	if (ret)
		started -= started > 0;
	begin = now_ns();
	run->measure = begin + options->duration / 10;
	run->end = begin + options->duration;
	__atomic_store_n(&run->go, true, __ATOMIC_RELEASE);
	for (i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		totals->locks += workers[i].count;
		totals->writes += workers[i].writes;
		add_handovers(totals, workers[i].handovers, workers[i].longest_handovers);
		if (workers[i].error && !ret)
			ret = workers[i].error;
	}
	totals->elapsed = now_ns() - begin;
	if (!ret)
		ret = kdsm_lock_info(run->lock, &after);
	if (!ret) {
		totals->remote = remote_of(&after) - remote_of(&before);
		totals->longest_wait = after.stats[KDSM_LOCK_STAT_LONGEST];
		for (i = 0; i < KDSM_LOCK_WAITS; i++)
			totals->waits[i] = after.waits[i];
	}
	if (!ret)
		summarise(workers, threads, totals);
	for (i = 0; i < threads; i++) {
		samples_free(&workers[i].samples);
		samples_free(&workers[i].locking);
	}
	return ret;
}

/* ---- a round on all nodes ---- */

static void totals_add(struct lock_totals *all, const struct lock_totals *one)
{
	unsigned int i;

	all->locks += one->locks;
	all->writes += one->writes;
	all->remote += one->remote;
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		all->waits[i] += one->waits[i];
	if (one->longest_wait > all->longest_wait)
		all->longest_wait = one->longest_wait;
	add_handovers(all, one->handovers, one->longest_handovers);
	if (one->elapsed > all->elapsed)
		all->elapsed = one->elapsed;
	if (one->longest > all->longest) {
		all->longest = one->longest;
		all->median = one->median;
		all->locking = one->locking;
	}
	if (one->error)
		all->error = one->error;
}

static int gather(struct lock_run *run, struct lock_totals *all)
{
	const struct run *r = &run->run;
	struct lock_totals one;
	unsigned int node;
	int ret = 0;

	memset(all, 0, sizeof(*all));
	for (node = 0; node < r->nodes && !ret; node++) {
		ret = kdsm_get(r->region, 0, lock_totals_offset(node), &one, sizeof(one));
		if (!ret)
			totals_add(all, &one);
		if (!ret && one.error)
			return complain(r->options, "node %u: %s with lock %u: %s", node,
					run->round.benchmark->name, run->number,
					strerror(one.error));
	}
	return ret ? complain(r->options, "totals: %s", strerror(-ret)) : 0;
}

/*
 * Tell, on the target, whether its queue for the lock is in its own memory. Other nodes may
 * queue elsewhere, but do not use the lock.
 */
static bool is_home(struct lock_run *run)
{
	struct kdsm_lock_info info;

	return !kdsm_lock_info(run->lock, &info) && info.home == run->run.target;
}

/*
 * Set T_L after opening, because only the open lock shows its number of levels. The last T_L
 * of the command line also holds for all further levels.
 */
static int set_levels(struct lock_run *run)
{
	struct kdsm_lock_settings settings = run->round.settings;
	const uint32_t all = KDSM_LOCK_SET_T_L(KDSM_LOCK_LEVELS + 1) - KDSM_LOCK_SET_T_L(2);
	unsigned int level, levels = kdsm_lock_levels(run->lock);
	int ret;

	if (!(settings.mask & all) || run->round.kind == KDSM_LOCK_DMCS)
		return 0;
	if (settings.mask & KDSM_LOCK_SET_T_L(levels + 1) && levels < KDSM_LOCK_LEVELS)
		return complain(run->run.options, "a lock has %u levels here, so --t-l takes %u numbers at most",
				levels, levels - 1);
	if (!run->run.measures)
		return 0;
	settings.mask = 0;
	for (level = 2; level <= levels; level++)
		settings.mask |= KDSM_LOCK_SET_T_L(level);
	ret = kdsm_lock_set(run->lock, &settings);
	return ret ? complain(run->run.options, "T_L: %s", strerror(-ret)) : 0;
}

/*
 * Number of locks that a round opens. A round of the target alone needs a lock whose home is
 * another node; among as many locks as there are nodes, there is one.
 */
static unsigned int locks_of(const struct lock_run *run)
{
	return run->round.benchmark->alone ? run->run.nodes : 1;
}

static int lock_open(struct lock_run *run)
{
	const struct options *options = run->run.options;
	struct kdsm_lock_attr attr = {
		.kind = run->round.kind,
		.settings = run->round.settings,
	};
	unsigned int i, last = locks_of(run) - 1;
	int ret;

	/* Leave out the settings that the kind does not have. */
	attr.settings.mask &= KDSM_LOCK_SET_KEEP;
	if (attr.kind == KDSM_LOCK_RMA_RW)
		attr.settings.mask |= run->round.settings.mask &
				      (KDSM_LOCK_SET_T_DC | KDSM_LOCK_SET_T_R | KDSM_LOCK_SET_T_W);
	for (i = 0;; i++) {
		ret = kdsm_lock_create(run->run.region, NULL, run->number + i, &attr, &run->lock);
		if (ret)
			return complain(options, "node %u: a lock of kind %s: %s", run->run.node,
					lock_kind_name(attr.kind), strerror(-ret));
		if (i == last || !is_home(run))
			return 0;
		kdsm_lock_close(run->lock);
	}
}

static double rate_of(const struct lock_totals *totals)
{
	return totals->elapsed ? totals->locks * 1e9 / totals->elapsed : 0;
}

/* The longest wait over the median, of all nodes. An acquisition without a wait is left out. */
static double fairness_of(const struct lock_totals *totals)
{
	struct kdsm_lock_info info = { .stats[KDSM_LOCK_STAT_LONGEST] = totals->longest_wait };
	unsigned int i;

	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		info.waits[i] = totals->waits[i];
	return waits_fairness(&info);
}

/* The number of hand-overs that this percentage of the waits does not exceed */
static uint64_t handovers_of(const struct lock_totals *totals, unsigned int percent)
{
	uint64_t count = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < LOCK_HANDOVERS; i++)
		count += totals->handovers[i];
	for (i = 0; i < LOCK_HANDOVERS - 1; i++) {
		sum += totals->handovers[i];
		if (sum * 100 >= count * percent)
			return i;
	}
	return totals->longest_handovers;
}

static struct json_object *report_handovers(const struct lock_totals *totals)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "median",
			       json_object_new_uint64(handovers_of(totals, 50)));
	json_object_object_add(object, "p99", json_object_new_uint64(handovers_of(totals, 99)));
	json_object_object_add(object, "longest",
			       json_object_new_uint64(totals->longest_handovers));
	return object;
}

static const struct column columns[] = {
	{ "what", TABLE_LEFT, 8 },
	{ "kind", TABLE_LEFT, 7 },
	{ "% writing", TABLE_RIGHT, 9 },
	{ "locks/s", TABLE_RIGHT, 9 },
	{ "lock us", TABLE_RIGHT, 9 },
	{ "and unlock", TABLE_RIGHT, 10 },
	{ "longest us", TABLE_RIGHT, 10 },
	{ "fairness", TABLE_RIGHT, 8 },
	{ "remote/lock", TABLE_RIGHT, 11 },
	{ "hand-overs", TABLE_RIGHT, 10 },
	{ "99th", TABLE_RIGHT, 5 },
	{ "longest", TABLE_RIGHT, 7 },
	{ 0 }
};

/* The setting that --vary names has a column of its own. */
static void open_table(struct lock_run *run)
{
	const struct options *options = run->run.options;
	const struct lock_options *lock = &options->lock;
	char threads[32] = "", each[48];

	if (lock->vary != VARY_THREADS)
		snprintf(threads, sizeof(threads), "%u threads on each, ", lock->threads);
	if (options->duration)
		snprintf(each, sizeof(each), "%g seconds each", options->duration / 1e9);
	else
		snprintf(each, sizeof(each), "%u acquisitions by each thread", options->calls);
	run_table(&run->run, columns, "locks of %u nodes, %s%s", run->run.nodes, threads, each);
	if (run->run.table && lock->vary)
		table_column(run->run.table, TABLE_RIGHT, 8, "%s", lock_vary_names[lock->vary]);
}

static void add_row(struct lock_run *run, const struct lock_totals *totals)
{
	const struct lock_round *round = &run->round;
	struct table *table = run->run.table;

	table_cell(table, "%s", round->benchmark->name);
	table_cell(table, "%s", lock_kind_name(round->kind));
	table_cell(table, "%g", round->writers);
	table_cell(table, "%.0f", rate_of(totals));
	table_cell(table, "%.2f", totals->locking / 1e3);
	table_cell(table, "%.2f", totals->median / 1e3);
	table_cell(table, "%.2f", totals->longest / 1e3);
	table_cell(table, "%.1f", fairness_of(totals));
	table_cell(table, "%.2f", (double)totals->remote / totals->locks);
	if (round->benchmark->counts) {
		table_cell(table, "%llu", (unsigned long long)handovers_of(totals, 50));
		table_cell(table, "%llu", (unsigned long long)handovers_of(totals, 99));
		table_cell(table, "%llu", (unsigned long long)totals->longest_handovers);
	} else {
		table_cell(table, "-");
		table_cell(table, "-");
		table_cell(table, "-");
	}
	if (run->run.options->lock.vary)
		table_cell(table, "%llu", (unsigned long long)round->varied);
	table_print(table);
	fflush(stdout);
}

static void add_json(struct lock_run *run, const struct lock_totals *totals)
{
	const struct lock_round *round = &run->round;
	struct json_object *object;

	object = json_object_new_object();
	json_object_object_add(object, "benchmark",
			       json_object_new_string(round->benchmark->name));
	json_object_object_add(object, "kind",
			       json_object_new_string(lock_kind_name(round->kind)));
	if (run->run.options->lock.vary)
		json_object_object_add(object, lock_vary_names[run->run.options->lock.vary],
				       json_object_new_uint64(round->varied));
	json_object_object_add(object, "writers", json_object_new_double(round->writers));
	json_object_object_add(object, "locks", json_object_new_uint64(totals->locks));
	json_object_object_add(object, "locks_per_second",
			       json_object_new_double(rate_of(totals)));
	json_object_object_add(object, "locking_us",
			       json_object_new_double(totals->locking / 1e3));
	json_object_object_add(object, "median_us",
			       json_object_new_double(totals->median / 1e3));
	json_object_object_add(object, "longest_us",
			       json_object_new_double(totals->longest / 1e3));
	json_object_object_add(object, "fairness", json_object_new_double(fairness_of(totals)));
	json_object_object_add(object, "remote_operations",
			       json_object_new_uint64(totals->remote));
	if (round->benchmark->counts)
		json_object_object_add(object, "handovers", report_handovers(totals));
	json_object_array_add(json_object_object_get(run->run.result, "results"), object);
}

static void report(struct lock_run *run, const struct lock_totals *totals)
{
	if (run->run.options->json)
		add_json(run, totals);
	else
		add_row(run, totals);
}

/* Run one round. On node 0, *all gets the totals of all nodes. */
static int round_on_all(struct lock_run *run, struct lock_worker *workers,
			struct lock_totals *all)
{
	struct run *r = &run->run;
	const struct options *options = r->options;
	bool alone = run->round.benchmark->alone;
	unsigned int threads = alone ? 1 : run->round.threads;
	struct lock_totals totals = { .locks = 0 };
	int ret;

	ret = lock_open(run);
	if (!ret)
		ret = set_levels(run);
	if (!ret && r->measures)
		lock_clear(r);
	if (!ret)
		ret = run_meet(r);
	if (ret)
		goto close;
	if (!alone || r->node == r->target)
		totals.error = -threads_run(run, workers, threads, &totals);
	ret = kdsm_put(r->region, 0, lock_totals_offset(r->node), &totals, sizeof(totals));
	if (ret)
		ret = complain(options, "node %u: totals: %s", r->node, strerror(-ret));
	else
		ret = run_meet(r);
	if (!ret && r->measures)
		ret = gather(run, all);
	if (!ret && r->measures)
		ret = lock_verify(run, all);
	/* Read back the settings that were in force, including defaults. */
	if (!ret)
		ret = kdsm_lock_info(run->lock, &run->info);
	if (!ret)
		ret = run_meet(r);	/* node 0 has read its totals and data */
close:
	kdsm_lock_close(run->lock);
	run->lock = NULL;
	/* All nodes skip the same numbers, whichever locks they have used. */
	run->number += locks_of(run);
	return ret;
}

/* ---- rounds ---- */

static bool wanted(const char *list, const char *name)
{
	return !list || !strcmp(list, name);
}

/* Set the setting that varies; this overrides the setting's own option. */
static void set_varied(struct lock_round *round, enum lock_vary vary, uint64_t value)
{
	struct kdsm_lock_settings *settings = &round->settings;
	unsigned int i;

	round->varied = value;
	switch (vary) {
	case VARY_NOTHING:
		break;
	case VARY_THREADS:
		round->threads = value;
		break;
	case VARY_T_DC:
		settings->mask |= KDSM_LOCK_SET_T_DC;
		settings->t_dc = value;
		break;
	case VARY_T_R:
		settings->mask |= KDSM_LOCK_SET_T_R;
		settings->t_r = value;
		break;
	case VARY_T_W:
		settings->mask |= KDSM_LOCK_SET_T_W;
		settings->t_w = value;
		break;
	case VARY_T_L:
		settings->mask |= KDSM_LOCK_SET_T_L(2);
		for (i = 2; i <= KDSM_LOCK_LEVELS; i++)
			settings->t_l[i - 1] = value;
		break;
	case VARY_KEEP:
		settings->mask |= KDSM_LOCK_SET_KEEP;
		settings->keep = value;
		break;
	}
}

static int by_rate(const void *one, const void *other)
{
	double a = rate_of(one), b = rate_of(other);

	return (a > b) - (a < b);
}

/* Measure several times, and report the result with the median rate. */
static int round_of(struct lock_run *run, const struct lock_benchmark *benchmark,
		    enum kdsm_lock_kind kind, double writers, uint64_t varied,
		    struct lock_worker *workers, struct lock_sweep *sweep)
{
	const struct lock_options *lock = &run->run.options->lock;
	struct lock_totals totals[MAX_REPEAT];
	unsigned int i;
	int ret = 0;

	run->round = (struct lock_round){
		.benchmark = benchmark,
		.kind = kind,
		.writers = writers,
		.threads = lock->threads,
		.settings = lock->settings,
	};
	set_varied(&run->round, lock->vary, varied);
	for (i = 0; i < lock->repeat && !ret; i++)
		ret = round_on_all(run, workers, &totals[i]);
	if (ret || !run->run.measures)
		return ret;
	qsort(totals, lock->repeat, sizeof(*totals), by_rate);
	report(run, &totals[lock->repeat / 2]);
	if (sweep)
		lock_sweep_add(sweep, run, &totals[lock->repeat / 2]);
	return 0;
}

static int rounds(struct lock_run *run, struct lock_worker *workers,
		  struct lock_sweep *sweep)
{
	const struct lock_options *lock = &run->run.options->lock;
	unsigned int kind, i, k, count = lock->writer_count * lock->value_count;
	const struct lock_benchmark *benchmark;
	int ret = 0;

	for (benchmark = lock_benchmarks; benchmark->name; benchmark++) {
		if (!wanted(lock->benchmark, benchmark->name))
			continue;
		for (i = 0; i < count; i++) {
			for (kind = 0; lock_kinds[kind] && !ret; kind++) {
				k = i % lock->value_count;
				if (wanted(lock->kind, lock_kinds[kind]))
					ret = round_of(run, benchmark, KDSM_LOCK_DMCS + kind,
						       lock->writers[i / lock->value_count],
						       lock->values[k], workers, sweep);
			}
		}
	}
	return ret;
}

static unsigned int most_threads(const struct lock_options *lock)
{
	return lock->vary == VARY_THREADS ? lock->values[lock->value_count - 1] : lock->threads;
}

int bench_lock(const struct options *options)
{
	struct lock_sweep *sweep = NULL;
	struct lock_worker *workers;
	struct lock_run run = { .number = 0 };
	int ret;

	ret = run_open(&run.run, options, NULL);
	if (ret)
		return ret;
	workers = calloc(most_threads(&options->lock), sizeof(*workers));
	if (!workers)
		ret = complain(options, "no memory");
	if (!ret && options->lock.sweep && run.run.measures) {
		sweep = lock_sweep_begin(options, run.run.nodes);
		ret = !sweep;
	}
	if (!ret)
		ret = run_region(&run.run, lock_part_bytes(&run.run));
	if (!ret)
		open_table(&run);
	if (!ret)
		ret = rounds(&run, workers, sweep);
	if (sweep)
		ret = lock_sweep_end(sweep, !ret) || ret;
	if (!ret && run.run.measures)
		report_end(&run.run);
	free(workers);
	run_close(&run.run);
	return ret;
}
