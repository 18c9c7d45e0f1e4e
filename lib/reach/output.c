// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files that the search writes. A regular file is replaced: the search writes a new file in the
 * same directory, syncs it, and renames it over the old one, so that the old content survives a
 * full disk and a crash. The new file has no name until it is complete if the file system can do
 * that, so that a process that is killed leaves nothing behind, except between naming and renaming
 * it. Other files, such as pipes, are written in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define NAME_TRIES	100	/* attempts to find a name that no file has */

/* The directory of a path, which the caller frees; NULL: no memory */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : slash - path);
}

/* A name in the same directory that probably no file has, in o->temporary */
static int make_name(struct kd_output *o)
{
	static unsigned int count;
	int n;

	free(o->temporary);
	n = asprintf(&o->temporary, "%s.new.%d.%" PRIx64 ".%u", o->path, (int)getpid(),
		     kdsm_now(), __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	if (n < 0)
		o->temporary = NULL;
	return n < 0 ? -ENOMEM : 0;
}

static int open_nameless(const struct kd_output *o)
{
	/* name_file() needs /proc */
	char *directory = access("/proc/self/fd", X_OK) ? NULL : directory_of(o->path);
	int fd = directory ? open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666) : -1;

	free(directory);
	return fd;
}

static int open_named(struct kd_output *o)
{
	unsigned int tries;
	int fd = -1, r;

	for (tries = 0; fd < 0 && tries < NAME_TRIES; tries++) {
		r = make_name(o);
		if (r < 0)
			return r;
		fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/* The new file gets owner and mode of the old one, if there is one, as far as possible. */
static void keep_mode(int fd, const struct stat *old)
{
	if (fchown(fd, old->st_uid, old->st_gid) == 0)
		fchmod(fd, old->st_mode & 0777);
}

static int open_new(struct kd_output *o, const struct stat *old)
{
	int fd = open_nameless(o);

	if (fd < 0)
		fd = open_named(o);
	if (fd < 0)
		return fd;
	if (old)
		keep_mode(fd, old);
	o->file = fdopen(fd, "w");
	if (o->file)
		return 0;
	close(fd);
	return -ENOMEM;
}

int kd_output_open(struct kd_output *o, const char *path)
{
	struct stat st;
	bool exists;
	int r;

	memset(o, 0, sizeof(*o));
	o->path = realpath(path, NULL);	/* a link stays, and what it names is replaced */
	exists = o->path;
	if (!exists && errno == ENOENT)
		o->path = strdup(path);
	if (!o->path)
		return errno ? -errno : -ENOMEM;
	r = exists && (stat(o->path, &st) < 0 || access(o->path, W_OK) < 0) ? -errno : 0;
	if (r == 0 && exists && !S_ISREG(st.st_mode)) {
		o->file = fopen(o->path, "we");
		o->in_place = true;
		r = o->file ? 0 : -errno;
	} else if (r == 0) {
		r = open_new(o, exists ? &st : NULL);
	}
	if (r < 0)
		kd_output_close(o, r);
	return r;
}

/* Give the nameless file a name. */
static int name_file(struct kd_output *o)
{
	char self[64];
	unsigned int tries;
	int r;

	if (o->temporary)
		return 0;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(o->file));
	for (tries = 0; tries < NAME_TRIES; tries++) {
		r = make_name(o);
		if (r < 0)
			return r;
		if (linkat(AT_FDCWD, self, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		r = -errno;
		free(o->temporary);	/* the file of that name, if any, is another one */
		o->temporary = NULL;
		if (r != -EEXIST)
			return r;
	}
	return r;
}

/* Sync the directory, too; otherwise a power failure may undo the rename. */
static int sync_directory(const char *path)
{
	char *directory = directory_of(path);
	int fd, r;

	if (!directory)
		return -ENOMEM;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	if (fd < 0)
		return -errno;
	/* some file systems cannot sync a directory, and need not */
	r = fsync(fd) && errno != EINVAL && errno != ENOTSUP ? -errno : 0;
	close(fd);
	return r;
}

static int replace(struct kd_output *o)
{
	int r = fflush(o->file) || fsync(fileno(o->file)) ? -errno : name_file(o);

	if (r < 0)
		return r;
	if (rename(o->temporary, o->path))
		return -errno;
	free(o->temporary);
	o->temporary = NULL;
	return sync_directory(o->path);
}

int kd_output_close(struct kd_output *o, int error)
{
	int r = error;

	if (r == 0 && !o->in_place)
		r = replace(o);
	if (o->file && fclose(o->file) && r == 0)
		r = -errno;
	if (o->temporary)
		unlink(o->temporary);
	free(o->temporary);
	free(o->path);
	memset(o, 0, sizeof(*o));
	return r;
}

int kd_output_try(const char *path)
{
	struct kd_output o;
	struct stat st;
	int r;

	/* Opening a pipe waits for its reader, and may mean the end to a reader. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : access(path, W_OK) ? -errno : 0;
	r = kd_output_open(&o, path);
	if (r == 0)
		kd_output_close(&o, -ECANCELED);
	return r;
}

/* ---- files that the search reads ---- */

/* Whether both are the same regular file; "-" is the standard input. */
static bool same(const char *output, const char *input)
{
	struct stat a, b;

	if (stat(output, &a) < 0)
		return !strcmp(output, input);
	if ((strcmp(input, "-") ? stat(input, &b) : fstat(STDIN_FILENO, &b)) < 0)
		return false;
	return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int check(const struct kd_search *s, const char *option, const char *path)
{
	const struct kdsm_reach_options *options = s->options;
	const char *input = NULL, *what = "the model";
	unsigned int i;

	if (!path)
		return 0;
	if (same(path, options->path))
		input = options->path;
	if (!input && options->order_file && same(path, options->order_file)) {
		input = options->order_file;
		what = "the order";
	}
	for (i = 0; !input && i < options->invariants; i++) {
		if (same(path, options->invariant[i])) {
			input = options->invariant[i];
			what = "the invariant";
		}
	}
	if (!input)
		return 0;
	kd_say(s->message, "%s %s: would overwrite %s, %s; give another file", option, path, what,
	       strcmp(input, "-") ? input : "the standard input");
	return -EINVAL;
}

int kd_output_check(const struct kd_search *s)
{
	const struct kdsm_reach_options *options = s->options;
	int r = check(s, "--save", options->save);

	if (r == 0)
		r = check(s, "--checkpoint", options->checkpoint);
	if (r == 0)
		r = check(s, "--witness", options->witness);
	if (r == 0)
		r = check(s, "--save-order", options->save_order);
	if (r == 0 && options->save && options->checkpoint &&
	    same(options->save, options->checkpoint)) {
		kd_say(s->message, "--save %s: is the file of --checkpoint, too; give another file",
		       options->save);
		r = -EINVAL;
	}
	return r;
}
