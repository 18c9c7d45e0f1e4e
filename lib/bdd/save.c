// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writing functions in the .bdd format. The first section has all nodes, sorted by
 * variable, greatest first, so that a node follows its children. The number of a node in the
 * file is its position in the sorted walk. Reading is in file.c.
 */
#include <limits.h>
#include <stdlib.h>

#include "bdd/bdd.h"

struct writer {
	FILE *file;
	uint64_t sum;
	struct kd_walk walk;
	uint64_t written;
	uint32_t bits, actions;
	kdsm_bdd current, all;		/* cubes in the file: current variables, all variables */
};

static void put(struct writer *w, uint64_t value, unsigned int bytes)
{
	w->sum = kd_file_sum(w->sum, bytes == 4 ? (uint32_t)value : value);
	for (; bytes--; value >>= 8)
		putc_unlocked(value & 0xff, w->file);
}

static uint64_t put_node(struct writer *w, uint32_t variable, kdsm_bdd high, kdsm_bdd low)
{
	put(w, high, 8);
	put(w, low | (uint64_t)variable << KD_VARIABLE_SHIFT, 8);
	return ++w->written;
}

/* Give the variables of states their numbers in the file. */
static void rename_variables(struct kd_walk *walk, const struct kd_renaming *to_file)
{
	uint32_t i;

	for (i = 0; i < walk->variables && walk->variable[i] < KD_FIRST_ACTION; i++)
		walk->variable[i] = kd_renamed(to_file, walk->variable[i]);
}

/* Compute the bits and labels that the header states. */
static int count_bits(struct writer *w)
{
	uint32_t i, v;

	w->bits = 1;
	for (i = 0; i < w->walk.variables; i++) {
		v = w->walk.variable[i];
		if (v > KDSM_BDD_MAX_VARIABLE)
			return -EIO;
		if (v < KD_FIRST_ACTION)
			w->bits = v / 2 + 1;
		else
			w->actions = v - KD_FIRST_ACTION + 1;
	}
	return 0;
}

/*
 * Write the cube of the variables of states, or of the current ones only. With count, only
 * count its nodes. Return the number of nodes.
 */
static uint64_t put_cube(struct writer *w, bool current, bool count, kdsm_bdd *cube)
{
	uint64_t n = 0;
	uint32_t i, v;

	*cube = KDSM_BDD_TRUE;
	for (i = w->walk.variables; i--; ) {
		v = w->walk.variable[i];
		if (v >= KD_FIRST_ACTION || (current && v % 2))
			continue;
		n++;
		if (!count)
			*cube = put_node(w, v, *cube, KDSM_BDD_FALSE);
	}
	return n;
}

static uint64_t put_cubes(struct writer *w, const struct kd_bdd_content *c, bool count)
{
	if (c->variables)
		return 0;
	return put_cube(w, true, count, &w->current) + put_cube(w, false, count, &w->all);
}

/* Write the section of the first function, which has all nodes. */
static int put_nodes(struct writer *w, const struct kd_bdd_content *c)
{
	uint64_t cubes = put_cubes(w, c, true), i;

	if (w->walk.count + cubes > KDSM_NUMBER_MASK)
		return -EFBIG;
	put(w, w->walk.count + cubes, 8);
	for (i = 1; i <= w->walk.count; i++) {
		const struct kdsm_node *node = &w->walk.node[i];

		put_node(w, w->walk.variable[kd_variable(node)], kd_high(node, 0), kd_low(node, 0));
	}
	put_cubes(w, c, false);
	return 0;
}

/* root: the functions and, if there are any, the variables, as edges of the walk */
static int put_file(struct writer *w, const struct kd_bdd_content *c, const kdsm_bdd *root)
{
	uint64_t i;
	int ret;

	put(w, w->bits, 4);
	put(w, 1, 4);
	put(w, w->actions, 4);
	for (i = 0; i < c->count; i++) {
		ret = i ? 0 : put_nodes(w, c);
		if (ret < 0)
			return ret;
		if (i)
			put(w, 0, 8);
		put(w, root[i], 8);
		if (!i)
			put(w, w->bits, 8);
		put(w, c->variables ? root[c->count + i] : i ? w->all : w->current, 8);
		if (!i)
			put(w, c->count - 1, 4);
	}
	put(w, KD_FILE_MAGIC, 8);
	put(w, c->words, 8);
	for (i = 0; i < c->words; i++)
		put(w, c->note[i], 8);
	put(w, w->sum, 8);
	errno = 0;
	if (fflush(w->file) || ferror(w->file))
		return errno ? -errno : -EIO;
	return 0;
}

int kd_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const struct kd_bdd_content *content)
{
	unsigned int count = content->count, roots = content->variables ? 2 * count : count, i;
	struct writer w = { .file = file };
	kdsm_bdd *root;
	int ret = 0;

	if (!count || count > INT_MAX)
		return kd_because(-EINVAL, "%u functions cannot be saved", count);
	root = malloc((uint64_t)roots * sizeof(*root));
	if (!root)
		return -ENOMEM;
	for (i = 0; i < roots; i++) {
		root[i] = i < count ? content->function[i] : content->variables[i - count];
		if (!kd_valid(root[i]))
			ret = kd_invalid_edge();
	}
	if (ret == 0) {
		ret = kd_walk_all(&w.walk, worker, root, roots);
		if (ret == 0)
			ret = kd_walk_sort(&w.walk, root, roots);
		if (ret == 0) {
			rename_variables(&w.walk, &content->to_file);
			ret = count_bits(&w);
		}
		if (ret == 0)
			ret = put_file(&w, content, root);
		kd_walk_destroy(&w.walk);
	}
	free(root);
	return ret;
}

int kdsm_bdd_save(struct kdsm_bdd_worker *worker, FILE *file, const kdsm_bdd *functions,
		  const kdsm_bdd *variables, unsigned int count)
{
	struct kd_bdd_content content = {
		.function = (kdsm_bdd *)functions, .variables = (kdsm_bdd *)variables,
		.count = count,
	};

	return kd_bdd_save(worker, file, &content);
}
