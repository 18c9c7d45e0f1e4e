// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Models: reading a file of any format, known by its content, and the functions that all formats
 * share. The formats are in model_aiger.c, model_bdd.c, model_bdd_2017.c and model_pnml.c; input.c
 * reads the bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "circuit.h"
#include "internal.h"

/* "net" for "/path/net.pnml.gz" */
static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t n = strlen(name);
	const char *dot;

	if (!strcmp(path, "-"))
		return strdup("stdin");
	if (n > 3 && !strcmp(name + n - 3, ".gz"))
		n -= 3;
	dot = memrchr(name, '.', n);
	return strndup(name, dot && dot != name ? (size_t)(dot - name) : n);
}

/* ---- formats ---- */

static bool begins(const struct kd_input *in, const void *with, size_t size)
{
	return in->size >= size && !memcmp(in->bytes, with, size);
}

static bool is_pnml(const struct kd_input *in)
{
	size_t i = begins(in, "\xef\xbb\xbf", 3) ? 3 : 0;

	if (begins(in, "\xff\xfe<", 4) || begins(in, "\xfe\xff\0<", 4))	/* UTF-16 */
		return true;
	while (i < in->size && memchr(" \t\r\n", in->bytes[i], 4))
		i++;
	return i < in->size && in->bytes[i] == '<';
}

static bool is_aiger(const struct kd_input *in)
{
	return begins(in, "aag ", 4) || begins(in, "aig ", 4);
}

static int32_t word_at(const struct kd_input *in, size_t at)
{
	const unsigned char *p = in->bytes + at;

	return (int32_t)(p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);
}

static bool is_bdd_2017(const struct kd_input *in)
{
	return kd_model_is_bdd_2017(in->bytes, in->size);
}

/* The layout of 2015: integers, bits of each, bits of a label */
static bool is_bdd(const struct kd_input *in)
{
	int32_t integers, bits, actions;

	if (in->size < 12)
		return false;
	integers = word_at(in, 0);
	bits = word_at(in, 4);
	actions = word_at(in, 8);
	return integers > 0 && bits > 0 && (int64_t)integers * bits <= KD_FILE_MAX_BITS &&
	       actions >= 0 && actions <= (int32_t)KD_FILE_MAX_ACTIONS;
}

/* All integers of a state, which are a list decision diagram's own number and -1 */
static bool is_ldd(const struct kd_input *in)
{
	return in->size >= 8 && word_at(in, 0) > 0 && word_at(in, 0) <= KD_FILE_MAX_BITS &&
	       word_at(in, 4) == -1;
}

/* The layout until May 2015: integers and bits of each, in 8 bytes each */
static bool is_bdd_2014(const struct kd_input *in)
{
	return in->size >= 16 && word_at(in, 0) > 0 && !word_at(in, 4) && word_at(in, 8) > 0 &&
	       word_at(in, 8) <= 64 && !word_at(in, 12);
}

static int read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		     const struct kd_model_choice *choice, const struct kd_input *in,
		     struct kd_model *model, struct kdsm_reach_message *message)
{
	model->kind = "Petri net";
	return kd_model_read_pnml(worker, path, choice, in->bytes, in->size, model, message);
}

static int read_aiger(struct kdsm_bdd_worker *worker, const char *path,
		      const struct kd_model_choice *choice, const struct kd_input *in,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	model->kind = "and-inverter graph";
	return kd_model_read_aiger(worker, path, choice, in->bytes, in->size, model, message);
}

static int read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		    const struct kd_model_choice *choice, const struct kd_input *in,
		    struct kd_model *model, struct kdsm_reach_message *message)
{
	(void)choice;
	model->kind = "BDDs";
	if (is_bdd_2017(in))
		return kd_model_read_bdd_2017(worker, path, in->bytes, in->size, model, message);
	return kd_model_read_bdd(worker, path, in->bytes, in->size, model, message);
}

/* The formats by content, in the order of the tests */
static const struct format {
	enum kdsm_reach_format format;
	bool (*is)(const struct kd_input *in);
	int (*read)(struct kdsm_bdd_worker *worker, const char *path,
		    const struct kd_model_choice *choice, const struct kd_input *in,
		    struct kd_model *model, struct kdsm_reach_message *message);
} formats[] = {
	{ KDSM_REACH_FORMAT_AIGER, is_aiger, read_aiger },
	{ KDSM_REACH_FORMAT_PNML, is_pnml, read_pnml },
	{ KDSM_REACH_FORMAT_BDD, is_bdd_2017, read_bdd },
	{ KDSM_REACH_FORMAT_BDD, is_bdd, read_bdd },
};

/* Other formats by their first bytes, to name them */
static const struct {
	const char *bytes;
	const char *name;
} others[] = {
	{ "PK\3\4", "a ZIP archive" },
	{ "\xfd" "7zXZ", "a file compressed by xz" },
	{ "BZh", "a file compressed by bzip2" },
	{ "\x28\xb5\x2f\xfd", "a file compressed by zstd" },
	{ "\x1f\x8b", "a file compressed twice" },
	{ "\x7f" "ELF", "a program" },
	{ "%PDF", "a PDF document" },
	{ "begin ", "a file in LTSmin's ETF format" },
};

/* Describe a file of no format that is supported. */
static void describe(const struct kd_input *in, char *text, size_t size)
{
	size_t i, at, n = in->size < 16 ? in->size : 16;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (begins(in, others[i].bytes, strlen(others[i].bytes))) {
			snprintf(text, size, "is %s", others[i].name);
			return;
		}
	}
	if (is_ldd(in)) {
		snprintf(text, size, "has list decision diagrams (.ldd), not BDDs");
		return;
	}
	if (is_bdd_2014(in)) {
		snprintf(text, size, "has BDDs of LTSmin 2.1 or older; write it by LTSmin 3");
		return;
	}
	for (i = 0; i < n && in->bytes[i] >= ' ' && in->bytes[i] <= '~'; i++)
		;
	if (i > 3) {
		snprintf(text, size, "begins with \"%.*s\"", (int)i, (const char *)in->bytes);
		return;
	}
	i = snprintf(text, size, "begins with the bytes");
	for (at = 0; at < n && at < 8; at++)
		i += snprintf(text + i, size - i, " %02x", in->bytes[at]);
}

static int read_model(struct kdsm_bdd_worker *worker, const char *path,
		      const struct kd_model_choice *choice, const struct kd_input *in,
		      struct kd_model *model, struct kdsm_reach_message *message)
{
	const struct format *f;
	char found[128];

	for (f = formats; f < formats + sizeof(formats) / sizeof(*formats); f++)
		if (choice->format ? choice->format == f->format : f->is(in))
			return f->read(worker, path, choice, in, model, message);
	describe(in, found, sizeof(found));
	kd_say(message,
	       "%s: %s; models are Petri nets (PNML), and-inverter graphs (AIGER) and BDDs of LTSmin or Sylvan, as they are or compressed by gzip",
	       path, found);
	return -EINVAL;
}

int kd_model_load(struct kdsm_bdd_worker *worker, const char *path,
		  const struct kd_model_choice *choice,
		  struct kd_model *model, struct kdsm_reach_message *message)
{
	const char *shown = strcmp(path, "-") ? path : KD_STDIN;
	struct kd_input in;
	int r;

	memset(model, 0, sizeof(*model));
	message->text[0] = 0;
	r = kd_input_read(path, &in, message);
	if (r == 0) {
		model->name = name_of(path);
		kdsm_bdd_private(worker, 1);
		r = model->name ? read_model(worker, shown, choice, &in, model, message) : -ENOMEM;
		kdsm_bdd_private(worker, 0);
	}
	kd_input_free(&in);
	if (r < 0) {
		kd_model_free(model);
		if (!message->text[0])
			kd_say(message, "%s: %s", shown, strerror(-r));
	}
	return r;
}

void kd_model_free(struct kd_model *model)
{
	unsigned int i;

	for (i = 0; i < model->relations; i++) {
		kdsm_relation_free(model->relation[i]);
		if (model->merged)
			kdsm_relation_free(model->merged[i].relation);
	}
	for (i = 0; i < model->properties; i++) {
		free(model->property[i].name);
		kd_bound_free(model->property[i].bound);
	}
	free(model->property);
	free(model->relation);
	free(model->merged);
	free(model->variables);
	free(model->name);
	kd_circuit_free(model->circuit);
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
	/* a symmetric net has the same BDDs in several orders, but not the same names */
	for (i = 0; model->marking && i < model->marking->places; i++)
		digest = kd_hash(digest, model->marking->order[i]);
	for (i = 0; i < model->properties; i++)
		digest = kd_hash(digest, model->property[i].bad);
	return digest;
}
