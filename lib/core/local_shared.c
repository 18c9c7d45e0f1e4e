// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The files of a local backend that unrelated processes of one user share: a folder of /dev/shm,
 * whose name has the user and the name of the backend. It has
 *
 *	lock	locked shared by each process that has the backend open, and so by none that died
 *	names	locked by a process that finds, makes or removes a region; has the next free address
 *	lives	see liveness.c
 *	=NAME	a region, and behind it what it was made by
 *
 * The process that locks "lock" exclusively is alone: at the begin it removes what processes that
 * were killed have left, at the end it removes everything.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"

/* Regions begin at multiples of a huge page. */
#define ALIGNMENT	(UINT64_C(2) << 20)

struct kd_shared {
	int folder, lock, names;
	char path[256];
};

/* The name of a region's file: a slash is not possible in it. */
static void file_name(char *to, const char *name)
{
	*to++ = '=';
	for (; *name; name++) {
		if (*name == '/' || *name == '%')
			to += sprintf(to, "%%%02x", *name);
		else
			*to++ = *name;
	}
	*to = '\0';
}

#define FILE_NAME	(1 + 3 * KDSM_NAME_SIZE)

static int lock(int fd, int how)
{
	int ret;

	do
		ret = flock(fd, how);
	while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

int kd_shared_lock(struct kd_shared *shared)
{
	return shared ? lock(shared->names, LOCK_EX) : 0;
}

void kd_shared_unlock(struct kd_shared *shared)
{
	if (shared)
		flock(shared->names, LOCK_UN);
}

/* Remove all files but the lock. Caller is alone. */
static void sweep(int folder)
{
	int copy = dup(folder);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!list) {
		if (copy >= 0)
			close(copy);
		return;
	}
	rewinddir(list);
	while ((entry = readdir(list)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lock"))
			unlinkat(folder, entry->d_name, 0);
	closedir(list);
}

/* Whether the path still leads to the open folder, and not to a newer one or to none */
static bool is_current(const struct kd_shared *shared)
{
	struct stat open_one, named;

	return !fstat(shared->folder, &open_one) && !lstat(shared->path, &named) &&
	       open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Open the folder, and make it if need be. Only its owner may use it: /dev/shm is open to all. */
static int open_folder(struct kd_shared *shared)
{
	struct stat stat;

	if (mkdir(shared->path, 0700) && errno != EEXIST)
		return -errno;
	shared->folder = open(shared->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (shared->folder < 0)
		return errno == ELOOP || errno == EACCES ? -EPERM : -errno;
	if (fstat(shared->folder, &stat))
		return -errno;
	return stat.st_uid == geteuid() && !(stat.st_mode & 077) ? 0 : -EPERM;
}

static int open_file(const struct kd_shared *shared, const char *name)
{
	int fd = openat(shared->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static void close_all(struct kd_shared *shared)
{
	if (shared->names >= 0)
		close(shared->names);
	if (shared->lock >= 0)
		close(shared->lock);
	if (shared->folder >= 0)
		close(shared->folder);
	shared->names = -1;
	shared->lock = -1;
	shared->folder = -1;
}

/* Become one of the processes that share the folder. Returns -ENOENT if it went away meanwhile. */
static int enter(struct kd_shared *shared)
{
	int ret = open_folder(shared);

	if (ret)
		return ret;
	shared->lock = open_file(shared, "lock");
	if (shared->lock < 0)
		return shared->lock;
	if (!lock(shared->lock, LOCK_EX | LOCK_NB))
		sweep(shared->folder);
	/* Until this lock, another process may sweep. Afterwards, none does. */
	ret = lock(shared->lock, LOCK_SH);
	if (ret)
		return ret;
	if (!is_current(shared))
		return -ENOENT;
	shared->names = open_file(shared, "names");
	return shared->names < 0 ? shared->names : 0;
}

static int share_lives(struct kd_shared *shared)
{
	int fd = open_file(shared, "lives"), ret;

	if (fd < 0)
		return fd;
	ret = kd_shared_lock(shared);
	if (!ret) {
		ret = kdsm_lives_share(fd);
		kd_shared_unlock(shared);
	}
	close(fd);
	return ret;
}

int kd_shared_start(const char *name, struct kd_shared **out)
{
	struct kd_shared *shared = malloc(sizeof(*shared));
	char file[FILE_NAME];
	int ret;

	if (!shared)
		return -ENOMEM;
	file_name(file, name);
	snprintf(shared->path, sizeof(shared->path), "/dev/shm/kdsm-%u%s", geteuid(), file);
	shared->folder = -1;
	shared->lock = -1;
	shared->names = -1;
	while ((ret = enter(shared)) == -ENOENT)
		close_all(shared);
	if (!ret)
		ret = share_lives(shared);
	if (ret) {
		kd_shared_end(shared);
		return ret;
	}
	*out = shared;
	return 0;
}

void kd_shared_end(struct kd_shared *shared)
{
	if (!shared)
		return;
	if (shared->lock >= 0 && !lock(shared->lock, LOCK_EX | LOCK_NB) && is_current(shared)) {
		sweep(shared->folder);
		unlinkat(shared->folder, "lock", 0);
		rmdir(shared->path);
	}
	close_all(shared);
	free(shared);
}

/* ---- regions ---- */

int kd_shared_find(struct kd_shared *shared, const char *name, int *fd,
		   struct kdsm_region_open *made)
{
	char file[FILE_NAME];
	struct stat stat;

	file_name(file, name);
	*fd = openat(shared->folder, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	if (!fstat(*fd, &stat) && stat.st_size > (off_t)sizeof(*made) &&
	    pread(*fd, made, sizeof(*made), stat.st_size - sizeof(*made)) == sizeof(*made))
		return 0;
	close(*fd);
	return -EIO;
}

/* Take addresses of length bytes. Caller holds the lock of names. */
static int take_address(struct kd_shared *shared, uint64_t length, uint64_t *address)
{
	uint64_t next = KDSM_ARENA_START;
	ssize_t n = pread(shared->names, &next, sizeof(next), 0);

	if (n && n != sizeof(next))
		return -EIO;
	*address = next;
	next += (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (next > KDSM_ARENA_END)
		return -ENOMEM;
	return pwrite(shared->names, &next, sizeof(next), 0) == sizeof(next) ? 0 : -EIO;
}

int kd_shared_make(struct kd_shared *shared, struct kdsm_region_open *made, uint64_t bytes,
		   uint64_t length, int *out)
{
	char file[FILE_NAME];
	uint64_t base;
	int ret = 0, fd;

	if (!made->base) {
		ret = take_address(shared, length, &base);
		if (ret)
			return ret;
		made->base = base;
	}
	file_name(file, made->name);
	fd = openat(shared->folder, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, bytes) ||
	    pwrite(fd, made, sizeof(*made), bytes) != (ssize_t)sizeof(*made)) {
		ret = errno == EINVAL ? -EFBIG : -errno;
		unlinkat(shared->folder, file, 0);
		close(fd);
		return ret;
	}
	*out = fd;
	return 0;
}

void kd_shared_remove(struct kd_shared *shared, const char *name)
{
	char file[FILE_NAME];

	if (!shared)
		return;
	file_name(file, name);
	unlinkat(shared->folder, file, 0);
}
