// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writing functions in the .bdd format. The first section has all nodes, sorted by
 * variable, greatest first, so that a node follows its children. Reading is in file.c.
 */
#include <limits.h>
#include <stdlib.h>

#include "bdd/bdd.h"

struct writer {
	FILE *file;
	uint64_t sum;
	struct kd_walk walk;
	uint64_t *order;		/* indices into walk.nodes, in the order of writing */
	uint64_t *number;		/* number in the file, by index into walk.nodes */
	uint64_t written;
	uint32_t bits, actions;
	uint32_t *variable;		/* variables that occur, greatest first */
	uint32_t variables;
	kdsm_bdd current, all;		/* cubes in the file: current variables, all variables */
};

static void put(struct writer *w, uint64_t value, unsigned int bytes)
{
	w->sum = kd_file_sum(w->sum, bytes == 4 ? (uint32_t)value : value);
	for (; bytes--; value >>= 8)
		putc_unlocked(value & 0xff, w->file);
}

/* Translate an edge of the store to an edge of the file. */
static kdsm_bdd translate(const struct writer *w, kdsm_bdd e)
{
	if (kd_terminal(e))
		return e;
	return w->number[kd_walk_find(&w->walk, kd_number(e))] | (e & KDSM_BDD_COMPLEMENT);
}

static uint64_t put_node(struct writer *w, uint32_t variable, kdsm_bdd high, kdsm_bdd low)
{
	put(w, high, 8);
	put(w, low | (uint64_t)variable << KD_VARIABLE_SHIFT, 8);
	return ++w->written;
}

static uint32_t variable_at(const struct writer *w, uint64_t place)
{
	return kd_variable(&w->walk.nodes[place].node);
}

static int compare_places(const void *x, const void *y, void *context)
{
	uint32_t a = variable_at(context, *(const uint64_t *)x);
	uint32_t b = variable_at(context, *(const uint64_t *)y);

	return (a < b) - (a > b);
}

/* Sort the nodes, and compute the bits and labels that the header states. */
static int order_nodes(struct writer *w)
{
	uint64_t i, count = w->walk.count;
	uint32_t v;

	w->order = malloc((count + 1) * sizeof(*w->order));
	w->number = calloc(count + 1, sizeof(*w->number));
	w->variable = malloc((count + 1) * sizeof(*w->variable));
	if (!w->order || !w->number || !w->variable)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		w->order[i] = i;
	qsort_r(w->order, count, sizeof(*w->order), compare_places, w);
	w->bits = 1;
	for (i = 0; i < count; i++) {
		v = variable_at(w, w->order[i]);
		if (v > KDSM_BDD_MAX_VARIABLE)
			return -EIO;
		if (v < KD_FIRST_ACTION && v / 2 >= w->bits)
			w->bits = v / 2 + 1;
		if (v >= KD_FIRST_ACTION && v - KD_FIRST_ACTION >= w->actions)
			w->actions = v - KD_FIRST_ACTION + 1;
		if (!w->variables || w->variable[w->variables - 1] != v)
			w->variable[w->variables++] = v;
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
	for (i = 0; i < w->variables; i++) {
		v = w->variable[i];
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
	uint64_t i, cubes = put_cubes(w, c, true);

	if (w->walk.count + cubes > KDSM_NUMBER_MASK)
		return -EFBIG;
	put(w, w->walk.count + cubes, 8);
	for (i = 0; i < w->walk.count; i++) {
		uint64_t place = w->order[i];
		const struct kdsm_node *node = &w->walk.nodes[place].node;
		kdsm_bdd high = translate(w, kd_high(node, 0)), low = translate(w, kd_low(node, 0));

		/*
		 * A child that has no number yet is not below its parent: memory holds no
		 * BDD.
		 */
		if ((kd_terminal(high) && !kd_terminal(node->a)) ||
		    (kd_terminal(low) && kd_number(node->b)))
			return -EIO;
		w->number[place] = put_node(w, kd_variable(node), high, low);
	}
	put_cubes(w, c, false);
	return 0;
}

static int put_file(struct writer *w, const struct kd_bdd_content *c)
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
		put(w, translate(w, c->function[i]), 8);
		if (!i)
			put(w, w->bits, 8);
		put(w, c->variables ? translate(w, c->variables[i]) : i ? w->all : w->current, 8);
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
		return -EINVAL;
	root = malloc((uint64_t)roots * sizeof(*root));
	if (!root)
		return -ENOMEM;
	for (i = 0; i < roots; i++) {
		root[i] = i < count ? content->function[i] : content->variables[i - count];
		if (!kd_valid(root[i]))
			ret = -EINVAL;
	}
	if (ret == 0) {
		ret = kd_walk_all(&w.walk, worker, root, roots);
		if (ret == 0)
			ret = order_nodes(&w);
		if (ret == 0)
			ret = put_file(&w, content);
		kd_walk_destroy(&w.walk);
	}
	free(w.order);
	free(w.number);
	free(w.variable);
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
