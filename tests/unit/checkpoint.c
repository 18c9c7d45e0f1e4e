// SPDX-License-Identifier: GPL-2.0
/*
 * Checkpoints. A search that ended early or was killed continues from a checkpoint, on any
 * number of nodes and workers, with the same results. A checkpoint that is damaged or
 * belongs to another search is refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bdd_store.h"
#include "counter.h"
#include "explicit.h"
#include "jobs.h"
#include "reach/internal.h"

/*
 * Step between the bytes that the test damages. Searches are slow under ThreadSanitizer, so
 * the test skips bytes there.
 */
#ifdef __SANITIZE_THREAD__
#define STRIDE	7
#else
#define STRIDE	1
#endif

static char path[8192], file[64];
static char warning[512];

static void warn(void *context, const char *text)
{
	(void)context;
	snprintf(warning, sizeof(warning), "%s", text);
}

/* No file that was to become the checkpoint is left. */
static void check_none_aside(void)
{
	char pattern[80];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s?*", file);
	assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

/*
 * Remove the file that was to become the checkpoint. A process leaves at most one, if it is killed
 * between naming and renaming it.
 */
static void remove_aside(void)
{
	char pattern[80];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s.new.*", file);
	if (glob(pattern, 0, NULL, &found))
		return;
	assert_int_equal(found.gl_pathc, 1);
	unlink(found.gl_pathv[0]);
	globfree(&found);
}

/* A job that writes a checkpoint after each level, and continues from the one that exists */
static void prepare_job(struct job *job, const char *model, unsigned int nodes,
			unsigned int workers)
{
	unsigned int i;

	snprintf(path, sizeof(path), "%s/%s.pnml", models, model);
	snprintf(file, sizeof(file), "/tmp/kdsm-checkpoint-%d", getpid());
	warning[0] = 0;
	prepare(job, nodes, workers, path);
	for (i = 0; i < nodes; i++) {
		job[i].options.checkpoint = file;
		job[i].options.warn = warn;
	}
}

static void run_job(struct job *job, unsigned int nodes)
{
	unsigned int i;

	sim_start(nodes);
	start(job, nodes);
	finish(job, nodes);
	for (i = 0; i < nodes; i++)
		if (job[i].status)
			fail_msg("node %u: %s", i, job[i].message.text);
	assert_string_equal(warning, "");
	check_none_aside();
}

static void end_job(struct job *job, unsigned int nodes)
{
	drop(job, nodes);
	sim_stop();
}

static void cut(const char *model, uint64_t levels, unsigned int nodes, unsigned int workers,
		bool chaining, struct kdsm_reach_result *result)
{
	struct job job[SIM_NODES];
	unsigned int i;

	prepare_job(job, model, nodes, workers);
	for (i = 0; i < nodes; i++) {
		job[i].options.levels = levels;
		job[i].options.chaining = chaining;
	}
	run_job(job, nodes);
	mpz_set(result->states, job[0].result.states);
	result->levels = job[0].result.levels;
	result->from_level = job[0].result.from_level;
	result->complete = job[0].result.complete;
	end_job(job, nodes);
}

/* Search this many rounds; 0: search to the end. */
static void cut_by_saturation(uint64_t rounds, unsigned int nodes)
{
	struct job job[SIM_NODES];
	unsigned int i;

	prepare_job(job, "token-ring-4", nodes, 2);
	for (i = 0; i < nodes; i++) {
		job[i].options.saturation = true;
		job[i].options.levels = rounds;
	}
	run_job(job, nodes);
	assert_int_equal(job[0].result.from_level, rounds ? rounds - 1 : 7);
	assert_int_equal(job[0].result.complete, !rounds);
	if (rounds)
		assert_true(mpz_get_ui(job[0].result.states) < 96);
	else
		assert_int_equal(mpz_get_ui(job[0].result.states), 96);
	end_job(job, nodes);
}

/* Other nodes and workers continue each time, for one or two levels. */
static void level_by_level(void **state)
{
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	unsigned int turn, level;
	struct explicit e;

	(void)state;
	explore(&e, "token-ring-4", 100000);
	kdsm_reach_result_init(&result);
	for (turn = 0, level = 1; level < e.levels; level += 1 + turn++ % 2) {
		cut("token-ring-4", level, 1 + turn % 3, 1 + turn % 2, false, &result);
		assert_int_equal(mpz_get_ui(result.states), e.end[level]);
		assert_int_equal(result.levels, level);
		assert_false(result.complete);
		assert_true(turn ? result.from_level : !result.from_level);
	}
	cut("token-ring-4", 0, 2, 2, false, &result);
	assert_int_equal(mpz_get_ui(result.states), e.states);
	assert_int_equal(result.levels, e.levels);
	assert_true(result.complete);
	/* The checkpoint is of a finished search, so no level is left. */
	cut("token-ring-4", 0, 3, 1, false, &result);
	assert_int_equal(mpz_get_ui(result.states), e.states);
	assert_int_equal(result.levels, e.levels);
	assert_int_equal(result.from_level, e.levels);
	unlink(file);

	/*
	 * Saturation writes a checkpoint after each round, and the next run continues from
	 * it.
	 */
	for (turn = 1; turn < 8; turn++)
		cut_by_saturation(turn, 1 + turn % 3);
	cut_by_saturation(0, 2);
	unlink(file);

	cut("token-ring-4", 2, 2, 1, true, &result);
	assert_false(result.complete);
	cut("token-ring-4", 0, 1, 2, true, &result);
	assert_int_equal(mpz_get_ui(result.states), e.states);
	assert_true(result.levels < e.levels);
	unlink(file);
	kdsm_reach_result_free(&result);
	forget(&e);
}

/*
 * Properties, deadlocks and traces do not depend on the level at which the search was
 * interrupted.
 */
static void verdicts_and_traces(void **state)
{
	static const char *const bound[] = {
		"Think_1=0", "Left_1,Left_2=1", "Eat_1=0", "Fork_1=1",
	};
	static const uint64_t steps[] = { 0, 2, 2 };
	struct job job[SIM_NODES];
	unsigned int level, nodes, i;

	(void)state;
	for (level = 1; level <= 5; level++) {
		for (nodes = 1; nodes <= 2; nodes++) {
			prepare_job(job, "philosophers-4", nodes, 1);
			for (i = 0; i < nodes; i++) {
				job[i].options.bound = bound;
				job[i].options.bounds = 4;
				job[i].options.trace = true;
				job[i].options.deadlocks = true;
				job[i].options.levels = nodes == 1 ? level : 0;
			}
			run_job(job, nodes);
			assert_int_equal(job[0].result.properties, 4);
			for (i = 0; i < 3; i++) {
				bool known = nodes == 2 || steps[i] <= level;

				assert_int_equal(job[0].result.verdict[i].violated, known);
				if (!known)
					continue;
				assert_int_equal(job[0].result.verdict[i].steps, steps[i]);
				assert_int_equal(job[0].result.trace[i].steps, steps[i]);
			}
			assert_false(job[0].result.verdict[3].violated);
			if (nodes == 2 || level >= 4) {
				assert_int_equal(mpz_get_ui(job[0].result.deadlocks), 2);
				assert_int_equal(job[0].result.traces, 4);
				assert_int_equal(job[0].result.trace[3].steps, 4);
			}
			assert_int_equal(job[0].result.from_level, nodes == 1 ? 0 : level);
			end_job(job, nodes);
		}
		unlink(file);
	}
}

/*
 * Properties that the run which wrote the checkpoint lacked: those of states found before are
 * known to be violated after at most the steps of the checkpoint, or exactly with traces. Those
 * that it had keep their steps, in whatever order they are given.
 */
static void new_properties(void **state)
{
	static const char *const first[] = { "Left_1,Left_2=1", "Fork_1=1" };
	static const char *const later[] = {
		"Fork_1=1", "Think_1=0", "Left_1,Left_2=1", "Eat_1=0", "Eat_2=1",
	};
	static const bool violated[] = { false, true, true, true, false };
	static const uint64_t steps[2][5] = { { 0, 4, 2, 4, 0 }, { 0, 0, 2, 2, 0 } };
	struct job job[SIM_NODES];
	unsigned int nodes, trace, i;

	(void)state;
	for (trace = 0; trace < 2; trace++) {
		prepare_job(job, "philosophers-4", 1, 1);
		job->options.bound = first;
		job->options.bounds = 2;
		job->options.trace = trace;
		job->options.levels = 4;
		run_job(job, 1);
		end_job(job, 1);
		for (nodes = 2; nodes; nodes--) {
			prepare_job(job, "philosophers-4", nodes, 1);
			for (i = 0; i < nodes; i++) {
				job[i].options.bound = later;
				job[i].options.bounds = 5;
				job[i].options.trace = trace;
				job[i].options.bdd.first_table_bytes = 1024;
			}
			run_job(job, nodes);
			assert_int_equal(job[0].result.from_level, nodes == 2 ? 4 : 5);
			for (i = 0; i < 5; i++) {
				const struct kdsm_reach_verdict *v = &job[0].result.verdict[i];

				assert_int_equal(v->violated, violated[i]);
				if (!v->violated)
					continue;
				assert_int_equal(v->steps, steps[trace][i]);
				assert_int_equal(v->at_most, !trace && i != 2);
			}
			assert_int_equal(job[0].result.traces, trace ? 3 : 0);
			end_job(job, nodes);
		}
		unlink(file);
	}
}

/* A search of a counter of 10 bits by saturation */
static void prepare_counter(struct job *job, unsigned int nodes, const char *const *bound)
{
	unsigned int i;
	FILE *net;

	prepare_job(job, "", nodes, 1);
	snprintf(path, sizeof(path), "%s.pnml", file);
	net = fopen(path, "w");
	assert_non_null(net);
	write_counter(net, 10);
	assert_int_equal(fclose(net), 0);
	for (i = 0; i < nodes; i++) {
		job[i].options.saturation = true;
		job[i].options.bound = bound;
		job[i].options.bounds = 1;
	}
}

/*
 * A search that ended within the first round: a later run, to the end, checks a property that only
 * the initial state violates.
 */
static void new_property_in_first_round(void **state)
{
	static const char *const first[] = { "o4=0" };
	static const char *const later[] = { "z0,z1,z2,z3,z4,z5,z6,z7,z8,z9=9" };
	const uint64_t normal = kd_first_slice;
	struct job job[SIM_NODES];
	unsigned int nodes;

	(void)state;
	for (nodes = 1; nodes <= 2; nodes++) {
		prepare_counter(job, 1, first);
		job->options.stop_at_violation = true;
		kd_first_slice = 100;
		sim_start(1);
		run_well(job, 1);
		kd_first_slice = normal;
		assert_true(job->result.ended_early);
		assert_int_equal(job->result.levels, 0);
		end_job(job, 1);

		prepare_counter(job, nodes, later);
		sim_start(nodes);
		run_well(job, nodes);
		assert_true(job[0].result.verdict[0].violated);
		assert_true(job[0].result.verdict[0].at_most);
		assert_int_equal(mpz_get_ui(job[0].result.states), 1024);
		end_job(job, nodes);
		unlink(file);
		unlink(path);
	}
}

/*
 * The states of a checkpoint include a deadlock, but the last level found none: a later run that
 * stops at a deadlock ends at once.
 */
static void deadlock_before(void **state)
{
	struct job job;
	unsigned int i;
	FILE *net;

	(void)state;
	prepare_job(&job, "", 1, 1);
	snprintf(path, sizeof(path), "%s.pnml", file);
	net = fopen(path, "w");
	assert_non_null(net);
	write_counter(net, 10);
	/* only the initial state leads to the marking without tokens */
	assert_int_equal(fseek(net, -(long)strlen("</net></pnml>\n"), SEEK_END), 0);
	fprintf(net, "<transition id='end'/>");
	for (i = 0; i < 10; i++)
		fprintf(net, "<arc id='e%u' source='z%u' target='end'/>", i, i);
	fprintf(net, "</net></pnml>\n");
	assert_int_equal(fclose(net), 0);
	job.options.levels = 5;
	sim_start(1);
	run_well(&job, 1);
	assert_false(job.result.complete);
	end_job(&job, 1);

	prepare_job(&job, "", 1, 1);
	snprintf(path, sizeof(path), "%s.pnml", file);
	job.options.deadlocks = true;
	job.options.stop_at_violation = true;
	sim_start(1);
	run_well(&job, 1);
	assert_true(job.result.ended_early);
	assert_int_equal(job.result.levels, 5);
	assert_int_not_equal(mpz_get_ui(job.result.deadlocks), 0);
	end_job(&job, 1);
	unlink(file);
	unlink(path);
}

static void expect_refused(struct job *job, const char *part)
{
	sim_start(1);
	start(job, 1);
	finish(job, 1);
	if (job->status != -EINVAL || !strstr(job->message.text, part) ||
	    !strstr(job->message.text, file))
		fail_msg("expected '%s', got %d '%s'", part, job->status, job->message.text);
	end_job(job, 1);
}

static void foreign(void **state)
{
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct job job;

	(void)state;
	kdsm_reach_result_init(&result);
	cut("token-ring-4", 3, 1, 1, false, &result);
	prepare_job(&job, "philosophers-4", 1, 1);
	expect_refused(&job, "of another model");
	prepare_job(&job, "token-ring-4", 1, 1);
	job.options.chaining = true;
	expect_refused(&job, "another --strategy");
	prepare_job(&job, "token-ring-4", 1, 1);
	job.options.trace = true;
	expect_refused(&job, "written without --trace");
	cut("token-ring-4", 0, 1, 1, false, &result);
	assert_int_equal(result.from_level, 3);
	unlink(file);
	kdsm_reach_result_free(&result);
}

/* The checkpoint needs more BDD nodes than the first table of the later run has. */
static void table_grows(void **state)
{
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct job job[SIM_NODES];
	unsigned int nodes, i;

	(void)state;
	kdsm_reach_result_init(&result);
	for (nodes = 1; nodes <= 3; nodes++) {
		cut("token-ring-16", 8, 1, 1, false, &result);
		prepare_job(job, "token-ring-16", nodes, 1);
		for (i = 0; i < nodes; i++) {
			job[i].options.levels = 9;
			job[i].options.bdd.first_table_bytes = 4096;
			job[i].options.bdd.table_bytes = nodes == 3 ? 12288 : 16 << 20;
		}
		if (nodes < 3) {
			run_job(job, nodes);
			assert_int_equal(job[0].result.from_level, 8);
			assert_true(mpz_cmp(job[0].result.states, result.states) > 0);
			assert_true(job[0].result.nodes * 24 > 4096);
			end_job(job, nodes);
		} else {	/* too small, however much it grows */
			sim_start(nodes);
			start(job, nodes);
			finish(job, nodes);
			assert_int_equal(job[0].status, -ENOSPC);
			assert_non_null(strstr(job[0].message.text, "is too small"));
			end_job(job, nodes);
		}
		unlink(file);
	}
	kdsm_reach_result_free(&result);
}

static size_t read_file(unsigned char *bytes, size_t most)
{
	FILE *f = fopen(file, "r");
	size_t size;

	assert_non_null(f);
	size = fread(bytes, 1, most, f);
	fclose(f);
	assert_in_range(size, 1, most - 1);
	return size;
}

static void write_file(const unsigned char *bytes, size_t size)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* Truncate the checkpoint, and flip a bit in it, at any byte. */
static void damaged(void **state)
{
	static unsigned char bytes[16384];
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct job job;
	size_t size, at;

	(void)state;
	kdsm_reach_result_init(&result);
	cut("peterson", 3, 1, 1, false, &result);
	kdsm_reach_result_free(&result);
	size = read_file(bytes, sizeof(bytes));
	for (at = 0; at < 2 * size; at += STRIDE) {
		if (at < size) {
			write_file(bytes, at);
		} else {
			bytes[at - size] ^= 1 << at % 8;
			write_file(bytes, size);
			bytes[at - size] ^= 1 << at % 8;
		}
		prepare_job(&job, "peterson", 1, 1);
		job.options.bdd.table_bytes = 1 << 20;
		job.options.bdd.cache_bytes = 1 << 16;
		expect_refused(&job, "checkpoint");
	}
	unlink(file);
}

/* The disk is full: the search continues, and warns. */
static void no_room(void **state)
{
	struct rlimit limit, none;
	struct job job;

	(void)state;
	prepare_job(&job, "token-ring-4", 1, 1);
	sim_start(1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	start(&job, 1);
	finish(&job, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	if (job.status)
		fail_msg("%s", job.message.text);
	assert_int_equal(mpz_get_ui(job.result.states), 96);
	assert_non_null(strstr(warning, "cannot be written: File too large; the search goes on"));
	assert_int_equal(access(file, F_OK), -1);
	check_none_aside();
	end_job(&job, 1);
}

/*
 * Replace the states in the checkpoint by those in which a variable is 1. All else is right, the
 * sum of the file included.
 */
static void forge(uint32_t variable)
{
	struct kd_bdd_content content;
	struct kd_bdd_reader reader;
	struct kdsm_region *region;
	struct kdsm_bdd_store *store;
	struct kdsm *kdsm;
	FILE *stream = fopen(file, "r+");

	assert_non_null(stream);
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &kdsm), 0);
	open_bdd_store(kdsm, "forge", 1 << 20, 1 << 20, &region, &store);
	reader = (struct kd_bdd_reader){ .file = stream };
	assert_int_equal(kdsm_bdd_worker_new(store, &reader.worker), 0);
	assert_int_equal(kd_bdd_load(&reader, &content), 0);
	content.function[0] = kdsm_bdd_variable(reader.worker, variable);
	rewind(stream);
	assert_int_equal(ftruncate(fileno(stream), 0), 0);
	assert_int_equal(kd_bdd_save(reader.worker, stream, &content), 0);
	assert_int_equal(fclose(stream), 0);
	kd_bdd_content_destroy(&content);
	kd_bdd_reader_destroy(&reader);
	kdsm_bdd_worker_free(reader.worker);
	kdsm_bdd_close(store);
	kdsm_region_close(region);
	kdsm_close(kdsm);
}

/* The states have a variable for the next state, which no set of states has. */
static void foreign_variable(void **state)
{
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	struct job job;

	(void)state;
	kdsm_reach_result_init(&result);
	cut("philosophers-10", 5, 1, 1, false, &result);
	kdsm_reach_result_free(&result);
	prepare_job(&job, "philosophers-10", 1, 1);
	forge(1);
	expect_refused(&job, "is no checkpoint of this program");
	unlink(file);
}

/* ---- killed ---- */

static void in_child(const char *checkpoint, unsigned int nodes, unsigned int workers)
{
	struct job job[SIM_NODES];
	unsigned int i;

	prepare_job(job, "philosophers-10", nodes, workers);
	for (i = 0; i < nodes; i++)
		job[i].options.checkpoint = checkpoint;
	sim_start(nodes);
	sim.delay = 20000;
	start(job, nodes);
	finish(job, nodes);
	_exit(job[0].status ? 1 : 0);
}

/*
 * Kill the search by SIGKILL, again and again, later each time, until one run reaches the
 * end of the search.
 */
static void killed(void **state)
{
	unsigned int kills = 0, ms = 20;
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	char checkpoint[64];
	uint64_t level = 0;
	struct job job;
	int status;
	pid_t pid;

	(void)state;
	snprintf(checkpoint, sizeof(checkpoint), "/tmp/kdsm-checkpoint-%d", getpid());
	snprintf(file, sizeof(file), "%s", checkpoint);
	for (;; ms += 20) {
		struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			in_child(checkpoint, 2 + kills % 2, 1 + kills % 2);
		nanosleep(&pause, NULL);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status))
			break;
		remove_aside();
		kills++;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	printf("# killed %u times\n", kills);
	assert_true(kills > 0);
	/*
	 * The search is at its end. No other file is next to the checkpoint.
	 */
	prepare_job(&job, "philosophers-10", 1, 1);
	run_job(&job, 1);
	level = job.result.from_level;
	assert_int_equal(level, 11);
	assert_int_equal(mpz_get_ui(job.result.states), 59049);
	assert_int_equal(job.result.levels, 11);
	assert_true(job.result.complete);
	end_job(&job, 1);
	unlink(file);

	/* A run that is killed after a checkpoint continues from that checkpoint. */
	kdsm_reach_result_init(&result);
	cut("philosophers-10", 5, 2, 1, false, &result);
	pid = fork();
	if (pid == 0)
		in_child(checkpoint, 3, 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_aside();
	cut("philosophers-10", 0, 1, 2, false, &result);
	assert_true(result.from_level >= 5);
	assert_int_equal(mpz_get_ui(result.states), 59049);
	unlink(file);
	kdsm_reach_result_free(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(level_by_level),
		cmocka_unit_test(verdicts_and_traces),
		cmocka_unit_test(new_properties),
		cmocka_unit_test(new_property_in_first_round),
		cmocka_unit_test(deadlock_before),
		cmocka_unit_test(foreign),
		cmocka_unit_test(table_grows),
		cmocka_unit_test(damaged),
		cmocka_unit_test(no_room),
		cmocka_unit_test(foreign_variable),
		cmocka_unit_test(killed),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
