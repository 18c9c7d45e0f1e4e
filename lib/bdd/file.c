// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading files in the .bdd format: the parts that readers of models and of saved functions
 * share, and whole files of functions. Writing is in save.c.
 */
#include <stdlib.h>
#include <string.h>

#include "bdd/bdd.h"

int kd_bdd_wrong(struct kd_bdd_reader *r, uint64_t at, const char *what)
{
	r->wrong = what;
	r->wrong_at = at;
	return -EINVAL;
}

/* Read a little-endian integer of this many bytes. On failure *value is 0. */
static int get(struct kd_bdd_reader *r, unsigned int bytes, uint64_t *value)
{
	unsigned char from_file[8];
	const unsigned char *p = from_file;

	*value = 0;
	if (!r->file && r->size - r->at >= bytes)
		p = r->bytes + r->at;
	else if (!r->file || fread_unlocked(from_file, 1, bytes, r->file) != bytes)
		return r->file && ferror_unlocked(r->file) ? -EIO :
		       kd_bdd_wrong(r, r->at, "the file ends too early");
	r->at += bytes;
	while (bytes--)
		*value = *value << 8 | p[bytes];
	r->sum = kd_file_sum(r->sum, *value);
	return 0;
}

int kd_bdd_get_u64(struct kd_bdd_reader *r, uint64_t *value)
{
	return get(r, 8, value);
}

int kd_bdd_get_i32(struct kd_bdd_reader *r, int32_t *value)
{
	uint64_t v;
	int ret = get(r, 4, &v);

	*value = (int32_t)v;
	return ret;
}

/* Read an edge to a node that was read before, and the node's number in the file. */
static int get_edge(struct kd_bdd_reader *r, kdsm_bdd *edge, uint64_t *number)
{
	uint64_t at = r->at, e;
	int ret = kd_bdd_get_u64(r, &e);

	if (ret < 0)
		return ret;
	if (e & ~KD_EDGE)
		return kd_bdd_wrong(r, at, "not a reference to a node");
	if (kd_number(e) >= r->count)
		return kd_bdd_wrong(r, at, "a reference to a node that is not defined yet");
	*number = kd_number(e);
	*edge = r->edges[*number] ^ (e & KDSM_BDD_COMPLEMENT);
	return 0;
}

int kd_bdd_get_edge(struct kd_bdd_reader *r, kdsm_bdd *edge)
{
	uint64_t number;

	return get_edge(r, edge, &number);
}

static int grow(struct kd_bdd_reader *r)
{
	uint64_t capacity = r->capacity ? 2 * r->capacity : 1024;
	void *p;

	p = reallocarray(r->edges, capacity, sizeof(*r->edges));
	if (!p)
		return -ENOMEM;
	r->edges = p;
	p = reallocarray(r->variables, capacity, sizeof(*r->variables));
	if (!p)
		return -ENOMEM;
	r->variables = p;
	r->capacity = capacity;
	return 0;
}

static int add(struct kd_bdd_reader *r, kdsm_bdd edge, uint32_t variable)
{
	int ret = r->count == r->capacity ? grow(r) : 0;

	if (ret == 0) {
		r->edges[r->count] = edge;
		r->variables[r->count++] = variable;
	}
	return ret;
}

static int get_node(struct kd_bdd_reader *r)
{
	uint64_t high_number = 0, low_number, b, at = r->at;
	kdsm_bdd high = KDSM_BDD_FALSE, edge;
	uint32_t variable;
	int ret;

	ret = get_edge(r, &high, &high_number);
	if (ret == 0)
		ret = kd_bdd_get_u64(r, &b);
	if (ret)
		return ret;
	low_number = b & KDSM_NUMBER_MASK;
	variable = b >> KD_VARIABLE_SHIFT;
	if (low_number >= r->count)
		return kd_bdd_wrong(r, at + 8, "a reference to a node that is not defined yet");
	if (variable >= 2 * r->bits &&
	    (variable < KD_FIRST_ACTION || variable >= KD_FIRST_ACTION + r->actions))
		return kd_bdd_wrong(r, at + 8, "a variable beyond those of states and actions");
	if (variable < KD_FIRST_ACTION)
		variable = kd_renamed(&r->from_file, variable);
	if (variable == KD_NO_VARIABLE)
		return kd_bdd_wrong(r, at + 8, "a variable of more bits than a place may have");
	if (variable >= r->variables[high_number] || variable >= r->variables[low_number])
		return kd_bdd_wrong(r, at + 8,
				    "a variable that is not above those of the node's children");
	edge = kd_make(r->worker, variable, high, r->edges[low_number]);
	if (!kd_valid(edge))
		return r->worker->why;
	return add(r, edge, variable);
}

int kd_bdd_get_section(struct kd_bdd_reader *r)
{
	uint64_t count, at = r->at;
	int ret = kd_bdd_get_u64(r, &count);

	if (ret == 0 && !r->file && count > (r->size - r->at) / KDSM_NODE_BYTES)
		return kd_bdd_wrong(r, at, "more nodes announced than the file has bytes for");
	while (ret == 0 && count--)
		ret = get_node(r);
	return ret;
}

int kd_bdd_forget(struct kd_bdd_reader *r)
{
	r->count = 0;
	return add(r, KDSM_BDD_FALSE, KD_NO_VARIABLE);
}

int kd_bdd_get_header(struct kd_bdd_reader *r)
{
	int32_t integers, bits, actions;
	int ret = kd_bdd_forget(r);

	if (ret == 0)
		ret = kd_bdd_get_i32(r, &integers);
	if (ret == 0)
		ret = kd_bdd_get_i32(r, &bits);
	if (ret == 0)
		ret = kd_bdd_get_i32(r, &actions);
	if (ret)
		return ret;
	if (integers <= 0)
		return kd_bdd_wrong(r, 0, "integers per state not positive");
	if (bits <= 0)
		return kd_bdd_wrong(r, 4, "bits per integer not positive");
	if ((int64_t)integers * bits > KD_FILE_MAX_BITS)
		return kd_bdd_wrong(r, 0, "a state of more than 500000 bits");
	if (actions < 0 || actions > (int32_t)KD_FILE_MAX_ACTIONS)
		return kd_bdd_wrong(r, 8, "action bits negative or too many");
	r->integers = integers;
	r->bits = integers * bits;
	r->actions = actions;
	return 0;
}

void kd_bdd_reader_destroy(struct kd_bdd_reader *r)
{
	free(r->edges);
	free(r->variables);
}

/* ---- whole files of functions ---- */

static int add_function(struct kd_bdd_content *c, kdsm_bdd function, kdsm_bdd variables)
{
	unsigned int capacity = c->count ? 2 * c->count : 1;
	void *p;

	/* The arrays are full if the count is 0 or a power of two. */
	if (!(c->count & (c->count - 1))) {
		p = reallocarray(c->function, capacity, sizeof(*c->function));
		if (!p)
			return -ENOMEM;
		c->function = p;
		p = reallocarray(c->variables, capacity, sizeof(*c->variables));
		if (!p)
			return -ENOMEM;
		c->variables = p;
	}
	c->function[c->count] = function;
	c->variables[c->count++] = variables;
	return 0;
}

static int get_function(struct kd_bdd_reader *r, struct kd_bdd_content *c)
{
	bool set = !c->count;
	kdsm_bdd function, variables;
	uint64_t at, again;
	int ret;

	ret = kd_bdd_get_section(r);
	if (ret == 0)
		ret = kd_bdd_get_edge(r, &function);
	at = r->at;
	if (ret == 0 && set)
		ret = kd_bdd_get_u64(r, &again);
	if (ret == 0 && set && again != r->integers)
		return kd_bdd_wrong(r, at, "integers per state not as in the header");
	if (ret == 0)
		ret = kd_bdd_get_edge(r, &variables);
	return ret ? ret : add_function(c, function, variables);
}

/*
 * The word behind the relations is not the magic. Either the file has no trailer, or the
 * number of relations is damaged and the trailer comes later. Search the rest of the file
 * for the magic; return -EINVAL if it is there, and 0 if it is not.
 */
static int search_trailer(struct kd_bdd_reader *r, uint64_t word)
{
	uint64_t byte;
	int ret;

	while ((ret = get(r, 1, &byte)) == 0) {
		word = word >> 8 | byte << 56;
		if (word == KD_FILE_MAGIC)
			return kd_bdd_wrong(r, r->at, "its end is not where it should be");
	}
	return ret == -EINVAL ? 0 : ret;
}

/*
 * Read the trailer if the file has one. A file that ends within the magic has no trailer; a
 * file that ends later in the trailer is invalid.
 */
static int get_trailer(struct kd_bdd_reader *r, struct kd_bdd_content *c)
{
	uint64_t word = 0, sum, n;
	void *p;
	int ret;

	ret = kd_bdd_get_u64(r, &word);
	if (ret == -EINVAL)
		return 0;
	if (ret == 0 && word != KD_FILE_MAGIC)
		return search_trailer(r, word);
	if (ret == 0)
		ret = kd_bdd_get_u64(r, &n);
	for (; ret == 0 && c->words < n; c->words++) {
		if (!(c->words & (c->words - 1))) {
			p = reallocarray(c->note, c->words ? 2 * c->words : 1, sizeof(*c->note));
			if (!p)
				return -ENOMEM;
			c->note = p;
		}
		ret = kd_bdd_get_u64(r, &c->note[c->words]);
		if (ret < 0)
			break;
	}
	sum = r->sum;
	if (ret == 0)
		ret = kd_bdd_get_u64(r, &word);
	if (ret < 0)
		return ret;
	if (word != sum)
		return kd_bdd_wrong(r, r->at - 8, "its checksum is another: the file is damaged");
	c->whole = true;
	return 0;
}

int kd_bdd_load(struct kd_bdd_reader *r, struct kd_bdd_content *content)
{
	int32_t relations = 0;
	uint64_t at;
	int ret;

	memset(content, 0, sizeof(*content));
	ret = kd_bdd_get_header(r);
	if (ret == 0)
		ret = get_function(r, content);
	at = r->at;
	if (ret == 0)
		ret = kd_bdd_get_i32(r, &relations);
	if (ret == 0 && relations < 0)
		return kd_bdd_wrong(r, at, "a negative number of relations");
	while (ret == 0 && relations--)
		ret = get_function(r, content);
	return ret < 0 ? ret : get_trailer(r, content);
}

void kd_bdd_content_destroy(struct kd_bdd_content *content)
{
	free(content->function);
	free(content->variables);
	free(content->note);
}

int kdsm_bdd_load(struct kdsm_bdd_worker *worker, FILE *file, kdsm_bdd **functions,
		  kdsm_bdd **variables, unsigned int *count)
{
	struct kd_bdd_reader r = { .worker = worker, .file = file };
	struct kd_bdd_content content;
	int ret = kd_bdd_load(&r, &content);

	if (ret == -EINVAL && r.wrong)
		kd_because(ret, "byte %" PRIu64 " of the file: %s", r.wrong_at, r.wrong);
	kd_bdd_reader_destroy(&r);
	if (ret == 0) {
		*count = content.count;
		*functions = content.function;
		content.function = NULL;
		if (variables) {
			*variables = content.variables;
			content.variables = NULL;
		}
	}
	kd_bdd_content_destroy(&content);
	return ret;
}
