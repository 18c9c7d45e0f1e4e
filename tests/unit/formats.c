// SPDX-License-Identifier: GPL-2.0
/*
 * Formats of models: known by content, compressed or not, and both layouts of BDDs, written here
 * from explicit relations and compared with an explicit search.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>
#include <zlib.h>

#include "jobs.h"
#include "models.h"

static uint32_t random_state = 2463534242;

static uint32_t random32(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	return random_state ^= random_state << 5;
}

/* ---- a file in memory ---- */

struct file {
	unsigned char bytes[1 << 20];
	size_t size;
};

static void put(struct file *f, uint64_t value, unsigned int bytes)
{
	for (; bytes--; value >>= 8) {
		assert_in_range(f->size, 0, sizeof(f->bytes) - 1);
		f->bytes[f->size++] = value;
	}
}

/* ---- a model: integers of a few bits, and relations between them ---- */

#define INTEGERS	4
#define RELATIONS	3
#define BITS		6	/* at most, of a state */

struct system {
	unsigned int bits[INTEGERS], first[INTEGERS + 1];	/* bit 0 of a state is the first */
	unsigned int initial;
	struct rule {
		unsigned int reads, writes;	/* a bit for each integer */
		/* by the bits that it reads: states whose written bits are those after a step */
		bool leads[1 << BITS][1 << BITS];
	} rule[RELATIONS];
};

/* The bits of a set of integers, as a mask of a state; bit 0 is the most significant one. */
static unsigned int mask_of(const struct system *s, unsigned int integers)
{
	unsigned int i, b, mask = 0;

	for (i = 0; i < INTEGERS; i++)
		for (b = s->first[i]; integers >> i & 1 && b < s->first[i + 1]; b++)
			mask |= 1u << b;
	return mask;
}

static void invent(struct system *s)
{
	unsigned int i, r, from, to, states, reads, writes;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < INTEGERS; i++) {
		s->bits[i] = i == 1 ? 2 : random32() % 8 ? 1 : i % 2;
		s->first[i + 1] = s->first[i] + s->bits[i];
	}
	states = 1u << s->first[INTEGERS];
	s->initial = random32() % states;
	for (r = 0; r < RELATIONS; r++) {
		s->rule[r].reads = random32() % (1u << INTEGERS);
		s->rule[r].writes = random32() % (1u << INTEGERS);
		reads = mask_of(s, s->rule[r].reads);
		writes = mask_of(s, s->rule[r].writes);
		for (from = 0; from < states; from++)
			for (to = 0; to < states; to++)
				if (!(from & ~reads) && !(to & ~writes))
					s->rule[r].leads[from][to] = random32() % 4 == 0;
	}
}

/* Whether the rule allows a step between states that differ only in bits that it writes. */
static bool allows(const struct system *s, const struct rule *r, unsigned int from,
		   unsigned int to)
{
	return r->leads[from & mask_of(s, r->reads)][to & mask_of(s, r->writes)];
}

static unsigned int count_states(const struct system *s)
{
	unsigned int states = 1u << s->first[INTEGERS], from, to, r, n = 0;
	bool reached[1 << BITS] = { false }, more = true;

	reached[s->initial] = true;
	while (more) {
		more = false;
		for (from = 0; from < states; from++)
			for (to = 0; reached[from] && to < states; to++)
				for (r = 0; r < RELATIONS; r++)
					if (!reached[to] &&
					    !((from ^ to) & ~mask_of(s, s->rule[r].writes)) &&
					    allows(s, &s->rule[r], from, to)) {
						reached[to] = true;
						more = true;
					}
	}
	for (from = 0; from < states; from++)
		n += reached[from];
	return n;
}

/* ---- BDDs ---- */

#define TRUE	(UINT64_C(1) << 63)
#define NODES	20000

struct writer {
	struct file *file;
	struct { uint64_t a, b; } node[NODES];	/* from 1 on */
	uint64_t count, written;
	unsigned int variable[2 * BITS], variables;	/* of the BDD that is being made */
	bool (*holds)(const struct system *s, unsigned int what, unsigned int from,
		      unsigned int to);
	const struct system *system;
	unsigned int what;
};

static uint64_t make(struct writer *w, uint64_t variable, uint64_t high, uint64_t low)
{
	uint64_t mark = low & TRUE, i;

	high ^= mark;
	low ^= mark;
	if (high == low)
		return high ^ mark;
	low |= variable << 40;
	for (i = 1; i <= w->count; i++)
		if (w->node[i].a == high && w->node[i].b == low)
			return i | mark;
	assert_in_range(++w->count, 1, NODES - 1);
	w->node[w->count].a = high;
	w->node[w->count].b = low;
	return w->count | mark;
}

/* The BDD of holds() over the variables from this one on; bits before it are in from and to. */
static uint64_t build(struct writer *w, unsigned int at, unsigned int from, unsigned int to)
{
	unsigned int v = w->variable[at], bit = 1u << v / 2;
	uint64_t low;

	if (at == w->variables)
		return w->holds(w->system, w->what, from, to) ? TRUE : 0;
	low = build(w, at + 1, from, to);
	return make(w, v, v % 2 ? build(w, at + 1, from, to | bit) :
		    build(w, at + 1, from | bit, to), low);
}

static bool is_initial(const struct system *s, unsigned int what, unsigned int from,
		       unsigned int to)
{
	(void)what;
	(void)to;
	return from == s->initial;
}

/* from and to have the bits that the relation reads or writes. */
static bool is_step(const struct system *s, unsigned int what, unsigned int from,
		    unsigned int to)
{
	return !((from ^ to) & ~mask_of(s, s->rule[what].writes)) &&
	       allows(s, &s->rule[what], from, to);
}

static void choose_variables(struct writer *w, unsigned int mask, bool next)
{
	unsigned int b;

	w->variables = 0;
	for (b = 0; b < w->system->first[INTEGERS]; b++) {
		if (!(mask >> b & 1))
			continue;
		w->variable[w->variables++] = 2 * b;
		if (next)
			w->variable[w->variables++] = 2 * b + 1;
	}
}

static uint64_t cube(struct writer *w)
{
	uint64_t edge = TRUE;
	unsigned int i;

	for (i = w->variables; i--; )
		edge = make(w, w->variable[i], edge, 0);
	return edge;
}

static void put_nodes(struct writer *w)
{
	put(w->file, w->count - w->written, 8);
	while (w->written < w->count) {
		w->written++;
		put(w->file, w->node[w->written].a, 8);
		put(w->file, w->node[w->written].b, 8);
	}
}

static uint64_t build_initial(struct writer *w)
{
	choose_variables(w, mask_of(w->system, ~0u), false);
	w->holds = is_initial;
	return build(w, 0, 0, 0);
}

static uint64_t build_relation(struct writer *w, unsigned int r)
{
	const struct rule *rule = &w->system->rule[r];

	choose_variables(w, mask_of(w->system, rule->reads | rule->writes), true);
	w->holds = is_step;
	w->what = r;
	return build(w, 0, 0, 0);
}

/* The layout of 2015 has integers of equally many bits: here each bit is an integer. */
static void write_2015(const struct system *s, struct file *f)
{
	static struct writer w;
	uint64_t edge, variables;
	unsigned int r;

	w = (struct writer){ .file = f, .system = s };
	f->size = 0;
	put(f, s->first[INTEGERS], 4);
	put(f, 1, 4);
	put(f, 0, 4);
	edge = build_initial(&w);
	variables = cube(&w);
	put_nodes(&w);
	put(f, edge, 8);
	put(f, s->first[INTEGERS], 8);
	put(f, variables, 8);
	put(f, RELATIONS, 4);
	for (r = 0; r < RELATIONS; r++) {
		edge = build_relation(&w, r);
		variables = cube(&w);
		put_nodes(&w);
		put(f, edge, 8);
		put(f, variables, 8);
	}
}

static void put_bdd(struct writer *w, uint64_t edge)
{
	put_nodes(w);
	put(w->file, 1, 4);
	put(w->file, edge, 8);
	w->count = 0;
	w->written = 0;
}

static void put_integers(struct file *f, unsigned int integers)
{
	unsigned int i;

	for (i = 0; i < INTEGERS; i++)
		if (integers >> i & 1)
			put(f, i, 4);
}

static void write_2017(const struct system *s, struct file *f)
{
	static struct writer w;
	unsigned int i, r;

	w = (struct writer){ .file = f, .system = s };
	f->size = 0;
	put(f, INTEGERS, 4);
	for (i = 0; i < INTEGERS; i++)
		put(f, s->bits[i], 4);
	put(f, 2, 4);
	put(f, -1, 4);
	put_bdd(&w, build_initial(&w));
	put(f, RELATIONS, 4);
	for (r = 0; r < RELATIONS; r++) {
		put(f, __builtin_popcount(s->rule[r].reads), 4);
		put(f, __builtin_popcount(s->rule[r].writes), 4);
		put_integers(f, s->rule[r].reads);
		put_integers(f, s->rule[r].writes);
	}
	for (r = 0; r < RELATIONS; r++)
		put_bdd(&w, build_relation(&w, r));
	put(f, 1, 4);		/* reachable states: those of LTSmin */
	put(f, -1, 4);
	put_bdd(&w, build_initial(&w));
	put(f, 2, 4);		/* labels of actions */
	put(f, 3, 4);
	put(f, 0x636261, 3);
	put(f, 0, 4);
}

/* ---- searches ---- */

static char path[64];

static void write_bytes(const void *bytes, size_t size, const char *suffix)
{
	FILE *out;

	if (path[0])
		unlink(path);
	snprintf(path, sizeof(path), "/tmp/kdsm-formats-%d.%s", getpid(), suffix);
	out = fopen(path, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(bytes, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
}

/* Search the file at path; -1: it is refused, with a message that names it. */
static long search_with(enum kdsm_reach_format format, bool saturation,
			struct kdsm_reach_message *message)
{
	struct job job;
	long states;

	sim_start(1);
	prepare(&job, 1, 1, path);
	job.options.bdd.table_bytes = 1 << 20;
	job.options.bdd.cache_bytes = 1 << 16;
	job.options.format = format;
	job.options.saturation = saturation;
	start(&job, 1);
	finish(&job, 1);
	states = job.status ? -1 : (long)mpz_get_ui(job.result.states);
	*message = job.message;
	if (job.status && strncmp(message->text, path, strlen(path)))
		fail_msg("%s", message->text);
	drop(&job, 1);
	sim_stop();
	return states;
}

static long search(void)
{
	struct kdsm_reach_message message;
	long states = search_with(KDSM_REACH_FORMAT_AUTO, false, &message);

	if (states < 0)
		printf("# %s\n", message.text);
	return states;
}

static void refused(const char *part)
{
	struct kdsm_reach_message message;

	assert_int_equal(search_with(KDSM_REACH_FORMAT_AUTO, false, &message), -1);
	if (!strstr(message.text, part))
		fail_msg("expected '%s', got '%s'", part, message.text);
}

static struct file file;

static void layouts(void **state)
{
	struct kdsm_reach_message message;
	static struct system s;
	unsigned int i, states;

	(void)state;
	for (i = 0; i < 60; i++) {
		invent(&s);
		states = count_states(&s);
		write_2015(&s, &file);
		write_bytes(file.bytes, file.size, "old");
		assert_int_equal(search(), states);
		write_2017(&s, &file);
		write_bytes(file.bytes, file.size, "new");
		assert_int_equal(search(), states);
		assert_int_equal(search_with(KDSM_REACH_FORMAT_BDD, true, &message), states);
	}
}

/* Every truncated file of 2017 is refused: it ends where the labels of actions end. */
static void truncated(void **state)
{
	static struct system s;
	size_t size;

	(void)state;
	invent(&s);
	write_2017(&s, &file);
	for (size = 1; size < file.size; size += 1 + size / 16) {
		write_bytes(file.bytes, size, "bdd");
		refused(size < 4 * (INTEGERS + 3) ? "" : "of LTSmin 3, and whole?");
	}
	put(&file, 7, 1);
	write_bytes(file.bytes, file.size, "bdd");
	refused("there are more bytes");
}

/* Change a word of a file of 2017. */
static void spoil(const struct system *s, size_t at, uint32_t word, const char *part)
{
	write_2017(s, &file);
	memcpy(file.bytes + at, &word, 4);
	write_bytes(file.bytes, file.size, "bdd");
	refused(part);
}

static void wrong(void **state)
{
	static const struct system s = {
		.bits = { 1, 1, 1, 1 }, .first = { 0, 1, 2, 3, 4 },
		.rule = { { .reads = 1, .writes = 3 } },
	};

	(void)state;
	/* 28: nodes of the initial states, 4 of 16 bytes; 112: relations; 116: of the first */
	spoil(&s, 4, INT32_MAX, "begins with the bytes 04 00 00 00 ff ff ff 7f; models are Petri nets");
	spoil(&s, 28, 1000, "more nodes announced");
	spoil(&s, 36 + 7, 0x40, "not a reference to a node");
	spoil(&s, 36 + 12, 500 << 8, "a variable beyond");
	spoil(&s, 100, 2, "not one BDD");
	spoil(&s, 112, 0, "number of relations): not positive");
	spoil(&s, 112, 1 << 20, "more relations announced");
	spoil(&s, 116, 5, "integers of relation 0): a number of integers that a state does not");
	spoil(&s, 124, 4, "that a state does not have");
	spoil(&s, 128, 2, "integers that do not ascend");
}

/* ---- kinds ---- */

static size_t read_model(const char *name)
{
	char from[8192];
	FILE *in;

	snprintf(from, sizeof(from), "%s/%s", models, name);
	in = fopen(from, "r");
	assert_non_null(in);
	file.size = fread(file.bytes, 1, sizeof(file.bytes), in);
	fclose(in);
	return file.size;
}

/* Compress a part of the file; 16 bits of the window's size mean gzip. */
static size_t compress_part(size_t begin, size_t end, unsigned char *to, size_t room)
{
	z_stream z = { .next_in = file.bytes + begin, .avail_in = end - begin,
		       .next_out = to, .avail_out = room };

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(deflateEnd(&z), Z_OK);
	return room - z.avail_out;
}

static void by_content(void **state)
{
	static const struct {
		const char *name, *bytes, *part;
	} kinds[] = {
		{ "model.pnml", "PK\3\4....", "is a ZIP archive" },
		{ "x.bdd", "\xfd" "7zXZ", "compressed by xz" },
		{ "x.aig", "begin state", "is a file in LTSmin's ETF format" },
		{ "x.aag", "MODULE main", "begins with \"MODULE main\"; models are Petri nets" },
		{ "x.gz", "\1\2\3", "begins with the bytes 01 02 03; " },
		{ "x.bdd", "\3\0\0\0\xff\xff\xff\xff", "has list decision diagrams" },
		{ "x.pnml", "<html></html>", "no PNML: the outermost element is html" },
		{ "x.pnml", "\xef\xbb\xbf\n <pnml/>", "there is no net in it" },
		{ "x.pnml", "aag 1 1\n", "in the AIGER format, and whole" },
	};
	static const unsigned char old[16] = { 4, [8] = 16 };
	struct kdsm_reach_message message;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t size = strlen(kinds[i].bytes);

		write_bytes(kinds[i].bytes, size == 1 ? 8 : size, kinds[i].name);
		refused(kinds[i].part);
	}
	write_bytes(old, sizeof(old), "bdd");
	refused("of LTSmin 2.1 or older; write it by LTSmin 3");
	read_model("peterson.pnml");
	write_bytes(file.bytes, file.size, "bdd");
	assert_int_equal(search(), 20);
	assert_int_equal(search_with(KDSM_REACH_FORMAT_PNML, false, &message), 20);
	assert_int_equal(search_with(KDSM_REACH_FORMAT_BDD, false, &message), -1);
	assert_non_null(strstr(message.text, "is this a model in the .bdd format"));
	assert_int_equal(search_with(KDSM_REACH_FORMAT_AIGER, false, &message), -1);
	assert_non_null(strstr(message.text, "is this a model in the AIGER format"));
	read_model("aiger/counter-8.aag");
	write_bytes(file.bytes, file.size, "pnml");
	assert_int_equal(search(), 256);
}

static void compressed(void **state)
{
	static unsigned char gz[1 << 20], twice[1 << 20];
	size_t size, first, at, n;

	(void)state;
	read_model("peterson.pnml");
	first = compress_part(0, 1000, gz, sizeof(gz));
	size = first + compress_part(1000, file.size, gz + first, sizeof(gz) - first);
	write_bytes(gz, size, "pnml.gz");
	assert_int_equal(search(), 20);		/* of two members */
	memset(gz + size, 0, 100);
	write_bytes(gz, size + 100, "tar");	/* and padding */
	assert_int_equal(search(), 20);
	gz[size] = 1;
	write_bytes(gz, size + 10, "gz");
	refused("cannot be decompressed: ");
	for (at = 3; at < size; at += 97) {
		write_bytes(gz, at, "gz");
		if (at == first)
			continue;
		refused(at < 20 ? "cannot be decompressed" : "it ends too early");
		gz[at] ^= 4;
		write_bytes(gz, size, "gz");
		gz[at] ^= 4;
		if (at > 10)
			refused("");
	}
	memcpy(file.bytes, gz, size);
	n = compress_part(0, size, twice, sizeof(twice));
	write_bytes(twice, n, "gz");
	refused("is a file compressed twice");

	/* a bomb */
	kd_most_decompressed = 1 << 20;
	memset(file.bytes, '<', sizeof(file.bytes));
	n = compress_part(0, sizeof(file.bytes), gz, sizeof(gz));
	n += compress_part(0, 1, gz + n, sizeof(gz) - n);
	write_bytes(gz, n, "gz");
	refused("has more than 1 MiB when decompressed, too many for a model");
	kd_most_decompressed = 1 << 30;
}

/* ---- mutated files ---- */

static void mutate(const unsigned char *bytes, size_t size, unsigned int rounds)
{
	static unsigned char copy[1 << 16];
	struct kdsm_reach_message message;
	unsigned int i, k;

	assert_in_range(size, 1, sizeof(copy));
	for (i = 0; i < rounds; i++) {
		memcpy(copy, bytes, size);
		for (k = 1 + random32() % 4; k--; )
			copy[random32() % size] = random32() % 2 ? random32() :
						  1u << random32() % 8;
		write_bytes(copy, random32() % 8 ? size : random32() % size + 1, "mutated");
		search_with(KDSM_REACH_FORMAT_AUTO, i % 2, &message);
	}
}

static void mutated(void **state)
{
	static unsigned char gz[1 << 16];
	static struct system s;

	(void)state;
	random_state = 2463534242;
	invent(&s);
	write_2015(&s, &file);
	mutate(file.bytes, file.size, 100);
	write_2017(&s, &file);
	mutate(file.bytes, file.size, 100);
	mutate(gz, compress_part(0, file.size, gz, sizeof(gz)), 100);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts),
		cmocka_unit_test(truncated),
		cmocka_unit_test(wrong),
		cmocka_unit_test(by_content),
		cmocka_unit_test(compressed),
		cmocka_unit_test(mutated),
	};

	if (!find_models())
		return 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
