// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files of orders: the names of the places of a net, or of the latches and inputs of a circuit, one
 * a line, from the root of the BDDs. A latch or input is l or i and its number, as in the symbol
 * table of AIGER. Empty lines are skipped. A file names nothing twice, and all that is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "circuit.h"
#include "internal.h"
#include "order.h"

#define SHOWN	64	/* bytes of an unknown name in a message */

static int compare_names(const void *x, const void *y)
{
	const struct kd_named *a = x, *b = y;

	return strcmp(a->name, b->name);
}

struct line {
	const char *text;
	size_t length;
};

static int compare_line(const void *x, const void *y)
{
	const struct line *line = x;
	const struct kd_named *named = y;
	int difference = strncmp(line->text, named->name, line->length);

	return difference ? difference : -!!named->name[line->length];
}

/* Find the name that the line is; NULL: there is none. */
static struct kd_named *find(const struct kd_names *names, const char *text, size_t length)
{
	const struct line line = { text, length };

	return bsearch(&line, names->named, names->count, sizeof(*names->named), compare_line);
}

static int take_line(const struct kd_names *names, const char *path, unsigned long number,
		     const char *line, size_t length, struct kdsm_reach_message *message)
{
	struct kd_named *named = memchr(line, 0, length) ? NULL : find(names, line, length);

	if (!named) {
		kd_say(message, "%s:%lu: the model has no %s '%.*s'%s", path, number, names->what,
		       length < SHOWN ? (int)length : SHOWN, line, length > SHOWN ? "..." : "");
		return -EINVAL;
	}
	if (named->line) {
		kd_say(message, "%s:%lu: %s %s is in line %lu already", path, number, names->what,
		       named->name, named->line);
		return -EINVAL;
	}
	named->line = number;
	return named->index;
}

static int check_missing(const struct kd_names *names, const char *path, unsigned long lines,
			 struct kdsm_reach_message *message)
{
	uint32_t i;

	for (i = 0; i < names->count; i++) {
		if (names->named[i].line || names->named[i].unneeded)
			continue;
		kd_say(message, "%s:%lu: ends without %s %s; an order has each of them once", path,
		       lines, names->what, names->named[i].name);
		return -EINVAL;
	}
	return 0;
}

static int64_t read_lines(const struct kd_input *in, const char *path,
			  const struct kd_names *names, uint32_t *order,
			  struct kdsm_reach_message *message)
{
	const char *at = (const char *)in->bytes, *end = at + in->size, *next;
	unsigned long number = 0;
	int64_t count = 0;
	size_t length;
	int r = 0;

	for (; r >= 0 && at < end; at = next + 1) {
		next = memchr(at, '\n', end - at);
		next = next ? next : end;
		length = next - at;
		length -= length && at[length - 1] == '\r';
		number++;
		if (!length)
			continue;
		r = take_line(names, path, number, at, length, message);
		if (r >= 0)
			order[count++] = r;
	}
	if (r >= 0)
		r = check_missing(names, path, number, message);
	return r < 0 ? r : count;
}

int64_t kd_order_read(const char *path, struct kd_names *names, uint32_t *order,
		      struct kdsm_reach_message *message)
{
	struct kd_input in;
	int64_t count;

	qsort(names->named, names->count, sizeof(*names->named), compare_names);
	count = kd_input_read(path, &in, message);
	if (count == 0)
		count = read_lines(&in, strcmp(path, "-") ? path : KD_STDIN, names, order,
				   message);
	kd_input_free(&in);
	return count;
}

int kd_net_read_order(const struct kd_net *net, const char *path, uint32_t *order,
		      struct kdsm_reach_message *message)
{
	struct kd_names names = { .what = "place", .count = net->places };
	int64_t count;
	uint32_t i;

	names.named = calloc(net->places + 1, sizeof(*names.named));
	if (!names.named)
		return -ENOMEM;
	for (i = 0; i < net->places; i++)
		names.named[i] = (struct kd_named){ .name = net->place[i].id, .index = i };
	count = kd_order_read(path, &names, order, message);
	free(names.named);
	return count < 0 ? count : 0;
}

/* ---- writing ---- */

static int write_places(const struct kd_model *model, FILE *file)
{
	const struct kd_marking *m = model->marking;
	const char *id;
	uint32_t i;

	for (i = 0; i < m->places; i++) {
		id = model->net->place[m->order[i]].id;
		if (!*id || strpbrk(id, "\r\n"))
			return -EILSEQ;
		fprintf(file, "%s\n", id);
	}
	return 0;
}

static int write_order(const struct kd_model *model, FILE *file)
{
	const struct kd_circuit *c = model->circuit;
	uint32_t i;

	if (model->net)
		return write_places(model, file);
	for (i = 0; i < c->positions; i++)
		fprintf(file, "%c%u\n", c->is_input[i] ? 'i' : 'l', c->number[i]);
	return 0;
}

void kd_order_save(struct kd_search *s, struct kdsm_reach_result *result)
{
	const char *path = s->options->save_order;
	struct kd_output output;
	int r;

	if (!path)
		return;
	r = kd_output_open(&output, path);
	if (r == 0) {
		r = write_order(&s->model, output.file);
		r = kd_output_close(&output, r < 0 ? r : ferror(output.file) ? -EIO : 0);
	}
	if (r == -EILSEQ)
		kd_search_warn(s, "%s: cannot be written: the id of a place is empty, or has several lines",
			       path);
	else if (r < 0)
		kd_search_warn(s, "%s: cannot be written: %s", path, strerror(-r));
	result->unsaved |= r < 0;
}

int kd_order_check(const struct kd_search *s)
{
	const char *option = s->options->order_file ? "--order-file" :
			     s->options->save_order ? "--save-order" : NULL;

	if (!option || s->model.net || s->model.circuit)
		return 0;
	kd_say(s->message, "%s: %s is no Petri net and no circuit; only these have an order",
	       option, s->options->path);
	return -EINVAL;
}
