// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models in the .bdd format.
 *
 * All integers are little-endian, without padding:
 *
 *	file     := i32 integers_per_state, i32 bits_per_integer, i32 action_bits,
 *	            set, i32 relation_count, relation * relation_count
 *	set      := section, u64 bdd, u64 integers_per_state, u64 variables
 *	relation := section, u64 bdd, u64 variables
 *	section  := u64 count, node * count
 *	node     := u64 a, u64 b
 *
 * What follows the relations is ignored. Nodes are numbered from 1 through all
 * sections and refer to lower numbers; they are those of <kdsm/bdd.h>. The
 * file is not trusted: every length, reference and variable is checked before
 * it is used, and memory is asked for only in proportion to the file's size.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bdd_int.h"
#include "model.h"

#define FIRST_ACTION	1000000
#define MAX_BITS	32768	/* of a state: operations recurse as deep */
#define MAX_ACTION_BITS	4096

struct reader {
	struct kdsm_bdd_worker *worker;
	const char *path;
	const unsigned char *file;
	size_t size, at;
	struct kd_message *message;
	const char *part;		/* what is being read, for messages */
	unsigned int relation;		/* number of it, from 0 */
	uint32_t bits, actions;		/* of a state; of a label */
	kdsm_bdd *edges;		/* by number in the file */
	uint32_t *variables;		/* likewise, to check the order */
	uint64_t count, capacity;	/* of both; number 0 included */
};

/* Where the file is wrong; at is the offset of the first bad byte's field. */
static int bad(struct reader *r, size_t at, const char *what)
{
	char where[64] = "";

	if (!strcmp(r->part, "relation"))
		snprintf(where, sizeof(where), "relation %u", r->relation);
	else
		snprintf(where, sizeof(where), "%s", r->part);
	kd_say(r->message, "%s: byte %zu (%s): %s; is this a model in the .bdd format, and whole?",
	       r->path, at, where, what);
	return -EINVAL;
}

static int get_u64(struct reader *r, uint64_t *value)
{
	unsigned int i;

	if (r->size - r->at < 8)
		return bad(r, r->at, "the file ends too early");
	for (*value = 0, i = 8; i--; )
		*value = *value << 8 | r->file[r->at + i];
	r->at += 8;
	return 0;
}

static int get_i32(struct reader *r, int32_t *value)
{
	uint32_t v = 0;
	unsigned int i;

	if (r->size - r->at < 4)
		return bad(r, r->at, "the file ends too early");
	for (i = 4; i--; )
		v = v << 8 | r->file[r->at + i];
	*value = (int32_t)v;
	r->at += 4;
	return 0;
}

/* A reference to a node already read. */
static int get_edge(struct reader *r, kdsm_bdd *edge, uint64_t *number)
{
	size_t at = r->at;
	uint64_t e;

	if (get_u64(r, &e) < 0)
		return -EINVAL;
	if (e & ~KD_EDGE)
		return bad(r, at, "not a reference to a node");
	if (kd_number(e) >= r->count)
		return bad(r, at, "a reference to a node that is not defined yet");
	*number = kd_number(e);
	*edge = r->edges[*number] ^ (e & KDSM_BDD_COMPLEMENT);
	return 0;
}

static int reserve(struct reader *r, uint64_t more)
{
	uint64_t wanted = r->count + more;
	void *p;

	if (wanted <= r->capacity)
		return 0;
	p = reallocarray(r->edges, wanted, sizeof(*r->edges));
	if (!p)
		return -ENOMEM;
	r->edges = p;
	p = reallocarray(r->variables, wanted, sizeof(*r->variables));
	if (!p)
		return -ENOMEM;
	r->variables = p;
	r->capacity = wanted;
	return 0;
}

static int get_node(struct reader *r)
{
	uint64_t high_number, b, low_number;
	kdsm_bdd high, edge;
	uint32_t variable;
	size_t at = r->at;

	if (get_edge(r, &high, &high_number) < 0 || get_u64(r, &b) < 0)
		return -EINVAL;
	low_number = b & KDSM_NUMBER_MASK;
	variable = b >> KD_VARIABLE_SHIFT;
	if (low_number >= r->count)
		return bad(r, at + 8, "a reference to a node that is not defined yet");
	if (variable >= 2 * r->bits &&
	    (variable < FIRST_ACTION || variable >= FIRST_ACTION + r->actions))
		return bad(r, at + 8, "a variable beyond those of states and actions");
	if (variable >= r->variables[high_number] || variable >= r->variables[low_number])
		return bad(r, at + 8, "a variable that is not above those of the node's children");
	edge = kd_make(r->worker, variable, high, r->edges[low_number]);
	if (edge == KDSM_BDD_INVALID)
		return kdsm_bdd_error(r->worker);
	r->edges[r->count] = edge;
	r->variables[r->count++] = variable;
	return 0;
}

static int get_section(struct reader *r)
{
	size_t at = r->at;
	uint64_t count;
	int error;

	if (get_u64(r, &count) < 0)
		return -EINVAL;
	if (count > (r->size - r->at) / KDSM_NODE_BYTES)
		return bad(r, at, "more nodes announced than the file has bytes for");
	error = reserve(r, count);
	while (error == 0 && count--)
		error = get_node(r);
	return error;
}

static int get_header(struct reader *r, int32_t *integers)
{
	int32_t bits, actions;

	r->part = "header";
	if (get_i32(r, integers) < 0 || get_i32(r, &bits) < 0 || get_i32(r, &actions) < 0)
		return -EINVAL;
	if (*integers <= 0)
		return bad(r, 0, "integers per state not positive");
	if (bits <= 0)
		return bad(r, 4, "bits per integer not positive");
	if ((int64_t)*integers * bits > MAX_BITS)
		return bad(r, 0, "a state of more than 32768 bits");
	if (actions < 0 || actions > MAX_ACTION_BITS)
		return bad(r, 8, "action bits negative or more than 4096");
	r->bits = *integers * bits;
	r->actions = actions;
	return 0;
}

static int get_set(struct reader *r, int32_t integers, struct kd_model *model)
{
	kdsm_bdd variables, cube, support;
	uint64_t number, again;
	size_t at;
	uint32_t i;
	int error;

	r->part = "set of initial states";
	error = get_section(r);
	if (error < 0)
		return error;
	at = r->at;
	if (get_edge(r, &model->initial, &number) < 0 || get_u64(r, &again) < 0 ||
	    get_edge(r, &variables, &number) < 0)
		return -EINVAL;
	if (again != (uint64_t)integers)
		return bad(r, at + 8, "integers per state not as in the header");

	model->bits = r->bits;
	model->variables = malloc(r->bits * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = 0; i < r->bits; i++)
		model->variables[i] = 2 * i;
	cube = kdsm_bdd_cube(r->worker, model->variables, r->bits);
	support = kdsm_bdd_support(r->worker, variables);
	if (cube == KDSM_BDD_INVALID || support == KDSM_BDD_INVALID)
		return kdsm_bdd_error(r->worker);
	if (support != cube)
		return bad(r, at + 16, "its variables are not the bits of the current state");
	support = kdsm_bdd_support(r->worker, model->initial);
	support = kdsm_bdd_exists(r->worker, support, cube);
	if (support == KDSM_BDD_INVALID)
		return kdsm_bdd_error(r->worker);
	if (support != KDSM_BDD_TRUE)
		return bad(r, at, "it depends on more than the bits of the current state");
	return 0;
}

static int get_relation(struct reader *r, struct kdsm_relation **relation)
{
	kdsm_bdd bdd, variables;
	uint64_t number;
	size_t at;
	int error;

	error = get_section(r);
	if (error < 0)
		return error;
	at = r->at;
	if (get_edge(r, &bdd, &number) < 0 || get_edge(r, &variables, &number) < 0)
		return -EINVAL;
	error = kdsm_relation_new(r->worker, bdd, variables, FIRST_ACTION, relation);
	if (error == -EINVAL)
		return bad(r, at, "it depends on variables that it does not name, or names an action");
	return error;
}

static int get_relations(struct reader *r, struct kd_model *model)
{
	size_t at = r->at;
	int32_t count;
	int error;

	r->part = "number of relations";
	if (get_i32(r, &count) < 0)
		return -EINVAL;
	if (count <= 0)
		return bad(r, at, "not positive");
	if ((size_t)count > (r->size - r->at) / 24)
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

int kd_model_read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		      const unsigned char *file, size_t size,
		      struct kd_model *model, struct kd_message *message)
{
	struct reader r = {
		.worker = worker, .path = path, .file = file, .size = size,
		.message = message,
	};
	int32_t integers;
	int error;

	error = get_header(&r, &integers);
	if (error == 0)
		error = reserve(&r, 1);
	if (error == 0) {
		r.edges[0] = KDSM_BDD_FALSE;
		r.variables[0] = KD_NO_VARIABLE;
		r.count = 1;
		error = get_set(&r, integers, model);
	}
	if (error == 0)
		error = get_relations(&r, model);
	free(r.edges);
	free(r.variables);
	return error;
}
