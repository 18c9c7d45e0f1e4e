// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models in the .bdd format as LTSmin 3 and Sylvan since 2017 write them; model_bdd.c has the
 * layout of 2015. The layouts differ: each integer of a state has a number of bits of its own,
 * the BDDs of each set and relation number their nodes from 1, and a relation names the integers
 * that it reads and those that it writes. The set of reachable states and the labels of actions
 * at the end of the file are checked for their length and skipped.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "internal.h"

#define MAX_BITS	32768	/* of a state; limits the depth of recursion of operations */
#define MAX_ACTION_BITS	4096
#define MAX_INTEGER	64	/* bits of an integer */
#define ALL		(-1)	/* a set names all integers of a state */

struct reader {
	struct kd_bdd_reader file;
	uint32_t integers;
	uint32_t *first;	/* [integers + 1]: the first bit of each integer */
	uint32_t relations;
	struct projection {
		uint64_t at;	/* offset in the file of its integers to read */
		uint32_t reads, writes;
	} *projection;		/* by relation */
	uint32_t relation;	/* the relation that is being read, for messages, or UINT32_MAX */
	const char *part;	/* the part of the file that is being read, for messages */
};

static int bad(struct reader *r, uint64_t at, const char *what)
{
	return kd_bdd_wrong(&r->file, at, what);
}

static uint32_t word_at(const unsigned char *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

/*
 * Whether the header fits, and the initial states are those of all integers. In the layout of
 * 2015 the words up to there are a number of nodes, and nodes, the first of which has a high edge
 * with a complement bit. So no file of that layout passes.
 */
bool kd_model_is_bdd_2017(const unsigned char *file, size_t size)
{
	uint64_t integers = size >= 16 ? word_at(file) : 0, i;

	if (!integers || integers > KD_FILE_MAX_BITS || size < 4 * (integers + 3))
		return false;
	for (i = 1; i <= integers; i++)
		if (word_at(file + 4 * i) > MAX_INTEGER)
			return false;
	return word_at(file + 4 * (integers + 1)) <= KD_FILE_MAX_ACTIONS &&
	       word_at(file + 4 * (integers + 2)) == UINT32_MAX;
}

static int get_header(struct reader *r)
{
	uint64_t bits = 0;
	int32_t word;
	uint32_t i;
	int error;

	r->part = "header";
	error = kd_bdd_get_i32(&r->file, &word);
	if (error == 0 && (word <= 0 || word > KD_FILE_MAX_BITS))
		return bad(r, 0, "integers per state not positive, or too many");
	if (error == 0 && (uint32_t)word > (r->file.size - 4) / 4)
		return bad(r, 0, "more integers announced than the file has bytes for");
	if (error < 0)
		return error;
	r->integers = word;
	r->first = calloc((size_t)r->integers + 1, sizeof(*r->first));
	if (!r->first)
		return -ENOMEM;
	for (i = 0; i < r->integers; i++) {
		error = kd_bdd_get_i32(&r->file, &word);
		if (error < 0)
			return error;
		if (word < 0 || word > MAX_INTEGER)
			return bad(r, r->file.at - 4, "an integer of more than 64 bits");
		bits += word;
		if (bits > MAX_BITS)
			return bad(r, r->file.at - 4, "a state of more than 32768 bits");
		r->first[i + 1] = bits;
	}
	if (!bits)
		return bad(r, 4, "a state of no bits");
	error = kd_bdd_get_i32(&r->file, &word);
	if (error == 0 && (word < 0 || word > MAX_ACTION_BITS))
		return bad(r, r->file.at - 4, "action bits negative or more than 4096");
	r->file.bits = bits;
	r->file.actions = error == 0 ? word : 0;
	return error;
}

/* Check the integers that a set or relation names, from offset at on: they ascend. */
static int check_integers(struct reader *r, uint64_t at, uint32_t count)
{
	uint32_t word, i, next = 0;

	for (i = 0; i < count; i++, at += 4) {
		word = word_at(r->file.bytes + at);
		if (word < next || word >= r->integers)
			return bad(r, at, "integers that do not ascend, or that a state does not have");
		next = word + 1;
	}
	return 0;
}

/* Read the number of integers that follow, and go to them. */
static int get_count(struct reader *r, uint32_t *count)
{
	uint64_t at = r->file.at;
	int32_t word;
	int error = kd_bdd_get_i32(&r->file, &word);

	if (error == 0 && (word < 0 || (uint32_t)word > r->integers))
		return bad(r, at, "a number of integers that a state does not have");
	*count = error == 0 ? word : 0;
	return error;
}

static int skip(struct reader *r, uint64_t bytes)
{
	if (bytes > r->file.size - r->file.at)
		return bad(r, r->file.at, "the file ends too early");
	r->file.at += bytes;
	return 0;
}

/* The integers that a set names must be all. */
static int get_set_integers(struct reader *r)
{
	uint64_t at = r->file.at;
	int32_t count;
	int error = kd_bdd_get_i32(&r->file, &count);

	if (error < 0 || count == ALL)
		return error;
	if (count != (int32_t)r->integers)
		return bad(r, at, "a set of states that does not name all integers");
	at = r->file.at;
	error = skip(r, 4 * (uint64_t)count);
	return error ? error : check_integers(r, at, count);
}

/* Read a BDD. Its nodes are numbered from 1. */
static int get_bdd(struct reader *r, kdsm_bdd *bdd)
{
	uint64_t at;
	int32_t count;
	int error;

	error = kd_bdd_forget(&r->file);
	if (error == 0)
		error = kd_bdd_get_section(&r->file);
	at = r->file.at;
	if (error == 0)
		error = kd_bdd_get_i32(&r->file, &count);
	if (error == 0 && count != 1)
		return bad(r, at, "not one BDD");
	return error ? error : kd_bdd_get_edge(&r->file, bdd);
}

static int get_initial(struct reader *r, struct kd_model *model)
{
	struct kdsm_bdd_worker *w = r->file.worker;
	kdsm_bdd cube, support;
	uint64_t at;
	uint32_t i;
	int error;

	r->part = "set of initial states";
	error = get_set_integers(r);
	at = r->file.at;
	if (error == 0)
		error = get_bdd(r, &model->initial);
	if (error < 0)
		return error;
	model->bits = r->file.bits;
	model->variables = malloc(model->bits * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = 0; i < model->bits; i++)
		model->variables[i] = 2 * i;
	cube = kdsm_bdd_cube(w, model->variables, model->bits);
	if (cube == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	support = kdsm_bdd_exists(w, kdsm_bdd_support(w, model->initial), cube);
	if (support == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	return support == KDSM_BDD_TRUE ? 0 :
	       bad(r, at, "it depends on more than the bits of the current state");
}

/* Read the integers that each relation reads and writes. The BDDs follow after the last ones. */
static int get_projections(struct reader *r)
{
	uint64_t at = r->file.at;
	struct projection *p;
	int32_t count;
	int error;

	r->part = "number of relations";
	error = kd_bdd_get_i32(&r->file, &count);
	if (error < 0)
		return error;
	if (count <= 0)
		return bad(r, at, "not positive");
	/* Each relation takes 8 bytes here, and 20 for its BDD. */
	if ((uint64_t)count > (r->file.size - r->file.at) / 28)
		return bad(r, at, "more relations announced than the file has bytes for");
	r->projection = calloc(count, sizeof(*r->projection));
	if (!r->projection)
		return -ENOMEM;
	r->relations = count;
	r->part = "integers of relation";
	for (r->relation = 0; r->relation < r->relations; r->relation++) {
		p = &r->projection[r->relation];
		error = get_count(r, &p->reads);
		if (error == 0)
			error = get_count(r, &p->writes);
		p->at = r->file.at;
		if (error == 0)
			error = skip(r, 4 * ((uint64_t)p->reads + p->writes));
		if (error == 0)
			error = check_integers(r, p->at, p->reads);
		if (error == 0)
			error = check_integers(r, p->at + 4 * (uint64_t)p->reads, p->writes);
		if (error < 0)
			return error;
	}
	return 0;
}

/* Mark the current and next bits of the integers from offset at on. */
static void mark_bits(const struct reader *r, uint64_t at, uint32_t count, bool *used)
{
	uint32_t i, bit, integer;

	for (i = 0; i < count; i++, at += 4) {
		integer = word_at(r->file.bytes + at);
		for (bit = r->first[integer]; bit < r->first[integer + 1]; bit++)
			used[bit] = true;
	}
}

/* The current and next variables of the integers that a relation reads or writes */
static kdsm_bdd variables_of(const struct reader *r, const struct projection *p, bool *used)
{
	struct kdsm_bdd_worker *w = r->file.worker;
	kdsm_bdd cube = KDSM_BDD_TRUE;
	uint32_t bit;

	for (bit = 0; bit < r->file.bits; bit++)
		used[bit] = false;
	mark_bits(r, p->at, p->reads, used);
	mark_bits(r, p->at + 4 * (uint64_t)p->reads, p->writes, used);
	for (bit = r->file.bits; bit--; ) {
		if (!used[bit])
			continue;
		cube = kdsm_bdd_make(w, 2 * bit + 1, cube, KDSM_BDD_FALSE);
		cube = kdsm_bdd_make(w, 2 * bit, cube, KDSM_BDD_FALSE);
	}
	return cube;
}

static int get_relation(struct reader *r, bool *used, struct kdsm_relation **relation)
{
	const struct projection *p = &r->projection[r->relation];
	kdsm_bdd bdd, variables;
	uint64_t at = r->file.at;
	int error = get_bdd(r, &bdd);

	if (error < 0)
		return error;
	variables = variables_of(r, p, used);
	if (variables == KDSM_BDD_INVALID)
		return kdsm_bdd_error(r->file.worker);
	error = kdsm_relation_new(r->file.worker, bdd, variables, KD_FIRST_ACTION, relation);
	if (error == -EINVAL)
		return bad(r, at, "it depends on integers that it neither reads nor writes");
	return error;
}

static int get_relations(struct reader *r, struct kd_model *model)
{
	bool *used = calloc(r->file.bits, sizeof(*used));
	int error = 0;

	model->relation = calloc(r->relations, sizeof(*model->relation));
	if (!used || !model->relation)
		error = -ENOMEM;
	r->part = "relation";
	for (r->relation = 0; error == 0 && r->relation < r->relations; r->relation++) {
		error = get_relation(r, used, &model->relation[r->relation]);
		if (error < 0)
			break;
		model->relations++;
	}
	free(used);
	return error;
}

static int skip_reachable(struct reader *r)
{
	uint64_t at = r->file.at, nodes;
	int32_t word;
	int error;

	r->part = "set of reachable states";
	r->relation = UINT32_MAX;
	error = kd_bdd_get_i32(&r->file, &word);
	if (error == 0 && word != 0 && word != 1)
		return bad(r, at, "neither present nor absent");
	if (error < 0 || !word)
		return error;
	error = get_set_integers(r);
	at = r->file.at;
	if (error == 0)
		error = kd_bdd_get_u64(&r->file, &nodes);
	if (error == 0 && nodes > (r->file.size - r->file.at) / KDSM_NODE_BYTES)
		return bad(r, at, "more nodes announced than the file has bytes for");
	if (error == 0)
		error = skip(r, nodes * KDSM_NODE_BYTES);
	return error ? error : skip(r, 4 + 8);	/* the number of BDDs, and its root */
}

static int skip_labels(struct reader *r)
{
	int32_t count, length;
	int error;

	r->part = "labels of actions";
	error = kd_bdd_get_i32(&r->file, &count);
	if (error == 0 && count < 0)
		return bad(r, r->file.at - 4, "a negative number of labels");
	while (error == 0 && count--) {
		error = kd_bdd_get_i32(&r->file, &length);
		if (error == 0)
			error = skip(r, (uint32_t)length);
	}
	return error;
}

/* Say where the file is wrong: the part, and the offset of the field. */
static void explain(const struct reader *r, const char *path, struct kdsm_reach_message *message)
{
	char number[16] = "";

	if (r->relation != UINT32_MAX)
		snprintf(number, sizeof(number), " %u", r->relation);
	kd_say(message,
	       "%s: byte %" PRIu64 " (%s%s): %s; is this a model in the .bdd format of LTSmin 3, and whole?",
	       path, r->file.wrong_at, r->part, number, r->file.wrong);
}

int kd_model_read_bdd_2017(struct kdsm_bdd_worker *worker, const char *path,
			   const unsigned char *file, size_t size, struct kd_model *model,
			   struct kdsm_reach_message *message)
{
	struct reader r = {
		.file = { .worker = worker, .bytes = file, .size = size },
		.relation = UINT32_MAX,
	};
	int error;

	error = get_header(&r);
	if (error == 0)
		error = get_initial(&r, model);
	if (error == 0)
		error = get_projections(&r);
	if (error == 0)
		error = get_relations(&r, model);
	if (error == 0)
		error = skip_reachable(&r);
	if (error == 0)
		error = skip_labels(&r);
	if (error == 0 && r.file.at != size) {
		r.part = "end";
		error = bad(&r, r.file.at, "there are more bytes");
	}
	if (error == -EINVAL && r.file.wrong)
		explain(&r, path, message);
	free(r.first);
	free(r.projection);
	kd_bdd_reader_destroy(&r.file);
	return error;
}
