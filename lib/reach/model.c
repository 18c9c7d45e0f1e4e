// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models: reading a file of any format, and the functions that all formats share. The
 * formats are in model_aiger.c, model_bdd.c and model_pnml.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

/* Largest size of a model file, in bytes */
#define MAX_FILE	(UINT64_C(1) << 32)

static int read_all(int fd, const char *path, unsigned char **file, size_t *size,
		    struct kdsm_reach_message *message)
{
	struct stat st;
	size_t got = 0;
	ssize_t n;

	if (fstat(fd, &st) < 0) {
		kd_say(message, "%s: %s", path, strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		kd_say(message, "%s: is not a regular file; give the file of a model", path);
		return -EINVAL;
	}
	if (st.st_size == 0) {
		kd_say(message, "%s: is empty", path);
		return -EINVAL;
	}
	if ((uint64_t)st.st_size > MAX_FILE) {
		kd_say(message, "%s: has %lld bytes, too many for a model", path,
		       (long long)st.st_size);
		return -EFBIG;
	}
	*file = malloc(st.st_size);
	if (!*file) {
		kd_say(message, "%s: no memory for its %lld bytes", path,
		       (long long)st.st_size);
		return -ENOMEM;
	}
	while (got < (size_t)st.st_size) {
		n = read(fd, *file + got, st.st_size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			kd_say(message, "%s: %s", path, strerror(errno));
			return -errno;
		}
		if (n == 0)	/* the file shrank; the format's reader reports that */
			break;
		got += n;
	}
	*size = got;
	return 0;
}

static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot && dot != name ? strndup(name, dot - name) : strdup(name);
}

static bool ends_with(const char *string, const char *end)
{
	size_t n = strlen(string), m = strlen(end);

	return n >= m && strcmp(string + n - m, end) == 0;
}

static int read_model(struct kdsm_bdd_worker *worker, const char *path,
		      enum kdsm_reach_order order, const unsigned char *file, size_t size,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	if (ends_with(path, ".pnml")) {
		model->kind = "Petri net";
		return kd_model_read_pnml(worker, path, order, file, size, model, message);
	}
	if (ends_with(path, ".aag") || ends_with(path, ".aig")) {
		model->kind = "and-inverter graph";
		return kd_model_read_aiger(worker, path, file, size, model, message);
	}
	model->kind = "BDDs";
	return kd_model_read_bdd(worker, path, file, size, model, message);
}

int kd_model_load(struct kdsm_bdd_worker *worker, const char *path, enum kdsm_reach_order order,
		  struct kd_model *model, struct kdsm_reach_message *message)
{
	unsigned char *file = NULL;
	size_t size = 0;
	int fd, r;

	memset(model, 0, sizeof(*model));
	message->text[0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		r = -errno;
		kd_say(message, "%s: %s", path, strerror(errno));
		return r;
	}
	r = read_all(fd, path, &file, &size, message);
	close(fd);
	if (r == 0) {
		model->name = name_of(path);
		kdsm_bdd_private(worker, 1);
		r = model->name ?
		    read_model(worker, path, order, file, size, model, message) : -ENOMEM;
		kdsm_bdd_private(worker, 0);
	}
	free(file);
	if (r < 0) {
		kd_model_free(model);
		if (!message->text[0])
			kd_say(message, "%s: %s", path, strerror(-r));
	}
	return r;
}

void kd_model_free(struct kd_model *model)
{
	unsigned int i;

	for (i = 0; i < model->relations; i++)
		kdsm_relation_free(model->relation[i]);
	for (i = 0; i < model->properties; i++) {
		free(model->property[i].name);
		kd_bound_free(model->property[i].bound);
	}
	free(model->property);
	free(model->relation);
	free(model->variables);
	free(model->name);
	kd_net_free(model->net);
	kd_marking_free(model->marking);
	memset(model, 0, sizeof(*model));
}

uint64_t kd_search_digest(const struct kd_search *s)
{
	const struct kd_model *model = &s->model;
	uint64_t digest = kd_hash(kdsm_bdd_private_digest(s->store), model->initial);
	unsigned int i;

	digest = kd_hash(digest, (uint64_t)model->relations << 32 | model->bits);
	for (i = 0; i < model->properties; i++)
		digest = kd_hash(digest, model->property[i].bad);
	return digest;
}
