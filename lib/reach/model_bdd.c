// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models in the .bdd format. The parts of the format that other readers share are in
 * lib/bdd/file.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_BITS	32768	/* of a state; limits the depth of recursion of operations */
#define MAX_ACTION_BITS	4096

struct reader {
	struct kd_bdd_reader file;
	const char *part;		/* the part of the file that is being read, for messages */
	unsigned int relation;		/* index of the relation, from 0 */
};

static int bad(struct reader *r, uint64_t at, const char *what)
{
	return kd_bdd_wrong(&r->file, at, what);
}

static int get_header(struct reader *r)
{
	int error;

	r->part = "header";
	error = kd_bdd_get_header(&r->file);
	if (error < 0)
		return error;
	if (r->file.bits > MAX_BITS)
		return bad(r, 0, "a state of more than 32768 bits");
	if (r->file.actions > MAX_ACTION_BITS)
		return bad(r, 8, "action bits negative or more than 4096");
	return 0;
}

static int get_set(struct reader *r, struct kd_model *model)
{
	struct kdsm_bdd_worker *w = r->file.worker;
	kdsm_bdd variables, cube, support;
	uint64_t at, again;
	uint32_t i;
	int error;

	r->part = "set of initial states";
	error = kd_bdd_get_section(&r->file);
	if (error < 0)
		return error;
	at = r->file.at;
	if (kd_bdd_get_edge(&r->file, &model->initial) < 0 ||
	    kd_bdd_get_u64(&r->file, &again) < 0 || kd_bdd_get_edge(&r->file, &variables) < 0)
		return -EINVAL;
	if (again != r->file.integers)
		return bad(r, at + 8, "integers per state not as in the header");

	model->bits = r->file.bits;
	model->variables = malloc(r->file.bits * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = 0; i < r->file.bits; i++)
		model->variables[i] = 2 * i;
	cube = kdsm_bdd_cube(w, model->variables, r->file.bits);
	support = kdsm_bdd_support(w, variables);
	if (cube == KDSM_BDD_INVALID || support == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	if (support != cube)
		return bad(r, at + 16, "its variables are not the bits of the current state");
	support = kdsm_bdd_support(w, model->initial);
	support = kdsm_bdd_exists(w, support, cube);
	if (support == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	if (support != KDSM_BDD_TRUE)
		return bad(r, at, "it depends on more than the bits of the current state");
	return 0;
}

static int get_relation(struct reader *r, struct kdsm_relation **relation)
{
	kdsm_bdd bdd, variables;
	uint64_t at;
	int error;

	error = kd_bdd_get_section(&r->file);
	if (error < 0)
		return error;
	at = r->file.at;
	if (kd_bdd_get_edge(&r->file, &bdd) < 0 || kd_bdd_get_edge(&r->file, &variables) < 0)
		return -EINVAL;
	error = kdsm_relation_new(r->file.worker, bdd, variables, KD_FIRST_ACTION, relation);
	if (error == -EINVAL)
		return bad(r, at, "it depends on variables that it does not name, or names an action");
	return error;
}

static int get_relations(struct reader *r, struct kd_model *model)
{
	uint64_t at = r->file.at;
	int32_t count;
	int error;

	r->part = "number of relations";
	if (kd_bdd_get_i32(&r->file, &count) < 0)
		return -EINVAL;
	if (count <= 0)
		return bad(r, at, "not positive");
	if ((uint64_t)count > (r->file.size - r->file.at) / 24)
		return bad(r, at, "more relations announced than the file has bytes for");
	model->relation = calloc(count, sizeof(*model->relation));
	if (!model->relation)
		return -ENOMEM;
	r->part = "relation";
	for (r->relation = 0; r->relation < (uint32_t)count; r->relation++) {
		error = get_relation(r, &model->relation[r->relation]);
		if (error < 0)
			return error;
		model->relations++;
	}
	return 0;
}

/* Say where the file is wrong: the part, and the offset of the field. */
static void explain(const struct reader *r, const char *path, struct kdsm_reach_message *message)
{
	char where[64] = "";

	if (!strcmp(r->part, "relation"))
		snprintf(where, sizeof(where), "relation %u", r->relation);
	else
		snprintf(where, sizeof(where), "%s", r->part);
	kd_say(message,
	       "%s: byte %" PRIu64 " (%s): %s; is this a model in the .bdd format, and whole?",
	       path, r->file.wrong_at, where, r->file.wrong);
}

int kd_model_read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		      const unsigned char *file, size_t size,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	struct reader r = {
		.file = { .worker = worker, .bytes = file, .size = size },
	};
	int error;

	error = get_header(&r);
	if (error == 0)
		error = get_set(&r, model);
	if (error == 0)
		error = get_relations(&r, model);
	if (error == -EINVAL && r.file.wrong)
		explain(&r, path, message);
	kd_bdd_reader_destroy(&r.file);
	return error;
}
