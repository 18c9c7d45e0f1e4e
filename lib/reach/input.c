// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The file of a model, as a whole in memory: from a path or the standard input, decompressed if
 * it is compressed by gzip. Memory grows with what has been read or decompressed up to then, so a
 * small file that decompresses to a huge one costs no more than the limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "internal.h"

/* Largest size of a model file as it is, in bytes */
#define MAX_FILE	(UINT64_C(1) << 32)
#define FIRST_ROOM	65536	/* first size of memory for bytes of unknown number */

uint64_t kd_most_decompressed = UINT64_C(1) << 30;

/* Let the file grow to twice its room, but not above most bytes. -EFBIG: it is there already. */
static int more_room(struct kd_input *in, uint64_t *room, uint64_t most)
{
	uint64_t wanted = *room ? 2 * *room : FIRST_ROOM;
	unsigned char *p;

	if (*room >= most)
		return -EFBIG;
	if (wanted > most)
		wanted = most;
	p = realloc(in->bytes, wanted);
	if (!p)
		return -ENOMEM;
	in->bytes = p;
	*room = wanted;
	return 0;
}

static int say_size(const char *name, uint64_t most, const char *how, int error,
		    struct kdsm_reach_message *message)
{
	if (error == -EFBIG)
		kd_say(message, "%s: has more than %" PRIu64 " MiB%s, too many for a model", name,
		       most >> 20, how);
	else
		kd_say(message, "%s: no memory for its bytes%s", name, how);
	return error;
}

/* Read to the end. The first room is that of a regular file, with a byte to see the end. */
static int read_all(int fd, const char *name, struct kd_input *in, uint64_t room,
		    struct kdsm_reach_message *message)
{
	ssize_t n = 1;
	int r;

	if (room) {
		in->bytes = malloc(room);
		if (!in->bytes)
			return say_size(name, MAX_FILE, "", -ENOMEM, message);
	}
	while (n) {
		if (in->size == room) {
			r = more_room(in, &room, MAX_FILE + 1);
			if (r < 0)
				return say_size(name, MAX_FILE, "", r, message);
		}
		n = read(fd, in->bytes + in->size, room - in->size);
		if (n < 0 && errno != EINTR) {
			r = -errno;
			kd_say(message, "%s: %s", name, strerror(-r));
			return r;
		}
		in->size += n > 0 ? n : 0;
	}
	if (!in->size) {
		kd_say(message, "%s: is empty", name);
		return -EINVAL;
	}
	return in->size > MAX_FILE ? say_size(name, MAX_FILE, "", -EFBIG, message) : 0;
}

static int read_path(const char *path, struct kd_input *in, struct kdsm_reach_message *message)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		kd_say(message, "%s: %s", path, strerror(-r));
	} else if (!S_ISREG(st.st_mode)) {
		r = -EINVAL;
		kd_say(message,
		       "%s: is not a regular file; give the file of a model, or - for the standard input",
		       path);
	} else if ((uint64_t)st.st_size > MAX_FILE) {
		r = say_size(path, MAX_FILE, "", -EFBIG, message);
	} else {
		r = read_all(fd, path, in, (uint64_t)st.st_size + 1, message);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static int read_standard_input(struct kd_input *in, struct kdsm_reach_message *message)
{
	if (!isatty(STDIN_FILENO))
		return read_all(STDIN_FILENO, KD_STDIN, in, 0, message);
	kd_say(message, "%s: is a terminal; give a file, or the output of a program", KD_STDIN);
	return -EINVAL;
}

/* ---- gzip ---- */

static bool is_gzip(const struct kd_input *in)
{
	return in->size > 2 && in->bytes[0] == 0x1f && in->bytes[1] == 0x8b;
}

static bool zeros(const unsigned char *bytes, size_t size)
{
	while (size && !bytes[size - 1])
		size--;
	return !size;
}

/* Decompress into out, a member of the file after the other, as gzip does. */
static int inflate_all(z_stream *z, const struct kd_input *in, struct kd_input *out,
		       const char **why)
{
	uint64_t room = 0, at = 0;
	int r, state = Z_OK;

	for (;;) {
		if (out->size == room) {
			r = more_room(out, &room, kd_most_decompressed + 1);
			if (r < 0)
				return r;
		}
		z->next_in = (unsigned char *)in->bytes + at;
		z->avail_in = in->size - at < 1 << 30 ? in->size - at : 1 << 30;
		z->next_out = out->bytes + out->size;
		z->avail_out = room - out->size < 1 << 30 ? room - out->size : 1 << 30;
		state = inflate(z, Z_NO_FLUSH);
		at = z->next_in - in->bytes;
		out->size = z->next_out - out->bytes;
		if (state == Z_STREAM_END) {
			if (zeros(in->bytes + at, in->size - at))
				return 0;
			if (inflateReset(z) != Z_OK)
				return -ENOMEM;
		} else if (state == Z_MEM_ERROR) {
			return -ENOMEM;
		} else if (state == Z_BUF_ERROR || (state == Z_OK && at == in->size &&
						    out->size < room)) {
			*why = "it ends too early";
			return -EINVAL;
		} else if (state != Z_OK) {
			*why = z->msg ? z->msg : "it is damaged";
			return -EINVAL;
		}
	}
}

static int decompress(const char *name, struct kd_input *in, struct kdsm_reach_message *message)
{
	struct kd_input out = { 0 };
	const char *why = NULL;
	z_stream z = { 0 };
	int r = inflateInit2(&z, 15 + 16) == Z_OK ? 0 : -ENOMEM;	/* 16: gzip, not zlib */

	if (r == 0) {
		r = inflate_all(&z, in, &out, &why);
		if (why)
			kd_say(message, "%s: is compressed by gzip, and cannot be decompressed: %s",
			       name, why);
		inflateEnd(&z);
	}
	if (r == 0 && out.size > kd_most_decompressed)
		r = -EFBIG;
	if (r == -EFBIG || r == -ENOMEM)
		say_size(name, kd_most_decompressed, " when decompressed", r, message);
	if (r == 0 && !out.size) {
		kd_say(message, "%s: is empty when decompressed", name);
		r = -EINVAL;
	}
	kd_input_free(in);
	*in = out;
	return r;
}

int kd_input_read(const char *path, struct kd_input *in, struct kdsm_reach_message *message)
{
	unsigned char *p;
	int r;

	memset(in, 0, sizeof(*in));
	r = strcmp(path, "-") ? read_path(path, in, message) : read_standard_input(in, message);
	if (r == 0 && is_gzip(in))
		r = decompress(strcmp(path, "-") ? path : KD_STDIN, in, message);
	if (r < 0) {
		kd_input_free(in);
		return r;
	}
	p = realloc(in->bytes, in->size);	/* give the rest back */
	if (p)
		in->bytes = p;
	return 0;
}

void kd_input_free(struct kd_input *in)
{
	free(in->bytes);
	memset(in, 0, sizeof(*in));
}
