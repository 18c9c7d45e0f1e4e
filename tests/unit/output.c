// SPDX-License-Identifier: GPL-2.0
/*
 * Files that a search writes. A file of another owner is left alone, a failure keeps the old
 * content, and no file that the search reads is overwritten.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jobs.h"
#include "models.h"

static char model[8192], directory[64], warning[512];
static struct job job;

static void warn(void *context, const char *text)
{
	(void)context;
	snprintf(warning, sizeof(warning), "%s", text);
}

/* A path in the test's directory; 32 of them are valid at a time. */
static const char *at(const char *name)
{
	static char paths[32][128];
	static unsigned int next;
	char *p = paths[next++ % 32];

	snprintf(p, sizeof(paths[0]), "%s/%s", directory, name);
	return p;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void check_text(const char *path, const char *text)
{
	char found[256] = "";
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_true(fgets(found, sizeof(found), file) || !*text);
	fclose(file);
	assert_string_equal(found, text);
}

static void begin_job(void)
{
	snprintf(model, sizeof(model), "%s/peterson.pnml", models);
	warning[0] = 0;
	prepare(&job, 1, 1, model);
	job.options.warn = warn;
}

static int search(void)
{
	int status;

	sim_start(1);
	start(&job, 1);
	finish(&job, 1);
	status = job.status;
	if (status)
		printf("# %s\n", job.message.text);
	drop(&job, 1);
	sim_stop();
	return status;
}

static void foreign_file(void **state)
{
	(void)state;
	write_text(at("point.new"), "of somebody else\n");
	begin_job();
	job.options.checkpoint = at("point");
	assert_int_equal(search(), 0);
	assert_string_equal(warning, "");
	check_text(at("point.new"), "of somebody else\n");
	assert_int_equal(access(at("point"), R_OK), 0);
	unlink(at("point"));
	unlink(at("point.new"));
}

/* A full disk: the old file stays, and so does its mode when it is replaced. */
static void old_content(void **state)
{
	struct rlimit limit, none;
	struct stat st;

	(void)state;
	write_text(at("states"), "old\n");
	chmod(at("states"), 0640);
	symlink("states", at("link"));
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	begin_job();
	job.options.save = at("link");
	assert_int_equal(search(), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(strstr(warning, "cannot be written: File too large"));
	check_text(at("states"), "old\n");

	begin_job();
	job.options.save = at("link");
	assert_int_equal(search(), 0);
	assert_string_equal(warning, "");
	assert_int_equal(lstat(at("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(at("states"), &st), 0);
	assert_true(st.st_size > 100);
	assert_int_equal(st.st_mode & 0777, 0640);
	unlink(at("states"));
	unlink(at("link"));
}

/* kdsm-reach replaces only regular files. */
static void pipes(void **state)
{
	struct stat st;

	(void)state;
	begin_job();
	job.options.save = "/dev/null";
	assert_int_equal(search(), 0);
	assert_string_equal(warning, "");
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	begin_job();
	job.options.save = directory;
	assert_int_equal(search(), -EISDIR);
}

static void refused(const char *part)
{
	assert_int_equal(search(), -EINVAL);
	if (!strstr(job.message.text, part))
		fail_msg("expected '%s', got '%s'", part, job.message.text);
}

static void own_inputs(void **state)
{
	const char *invariant = at("invariant"), *copy = at("copy.pnml"), *point = at("point");
	char command[9000];

	(void)state;
	snprintf(command, sizeof(command), "cp '%s/peterson.pnml' '%s'", models, copy);
	assert_int_equal(system(command), 0);
	begin_job();
	job.options.save = invariant;
	assert_int_equal(search(), 0);

	assert_int_equal(link(copy, at("hard")), 0);
	assert_int_equal(symlink(copy, at("soft")), 0);
	begin_job();
	job.options.path = copy;
	job.options.save = at("hard");
	refused("would overwrite the model");
	job.options.save = NULL;
	job.options.checkpoint = at("soft");
	refused("would overwrite the model");
	job.options.checkpoint = NULL;
	job.options.invariant = &invariant;
	job.options.invariants = 1;
	job.options.save = invariant;
	refused("would overwrite the invariant");
	job.options.save = NULL;
	job.options.checkpoint = invariant;
	refused("would overwrite the invariant");
	job.options.invariants = 0;
	job.options.checkpoint = point;
	job.options.save = at("point");
	refused("is the file of --checkpoint, too");
	job.options.save = NULL;
	job.options.checkpoint = NULL;
	assert_int_equal(search(), 0);
	unlink(at("hard"));
	unlink(at("soft"));
	unlink(copy);
	unlink(invariant);
	/* Nothing else was written. */
	assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign_file),
		cmocka_unit_test(old_content),
		cmocka_unit_test(pipes),
		cmocka_unit_test(own_inputs),
	};

	if (!find_models())
		return 1;
	snprintf(directory, sizeof(directory), "/tmp/kdsm-output-%d", getpid());
	if (mkdir(directory, 0777))
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
