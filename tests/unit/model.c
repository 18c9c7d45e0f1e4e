// SPDX-License-Identifier: GPL-2.0
/*
 * The readers of models. They read valid files. Truncated, flipped and invented files must
 * give a message that names the file, and never a crash.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <unistd.h>

#include "bdd_store.h"
#include "sim.h"
#include "reach/internal.h"

static struct kdsm_region *region;
static struct kdsm_bdd_store *store;
static struct kdsm_bdd_worker *worker;

static void open_store(void)
{
	sim_start(1);
	open_bdd_store(sim.kdsm[0], "m", 1 << 20, 1 << 16, &region, &store);
	assert_int_equal(kdsm_bdd_worker_new(store, &worker), 0);
}

static void close_store(void)
{
	kdsm_bdd_worker_free(worker);
	kdsm_bdd_close(store);
	kdsm_region_close(region);
	sim_stop();
}

/* ---- a file in the .bdd format, in memory ---- */

struct file {
	unsigned char bytes[65536];
	size_t size;
};

static void put(struct file *f, uint64_t value, unsigned int bytes)
{
	while (bytes--) {
		f->bytes[f->size++] = value;
		value >>= 8;
	}
}

static void put_node(struct file *f, uint64_t high, uint64_t low, uint64_t variable)
{
	put(f, high, 8);
	put(f, low | variable << 40, 8);
}

#define TRUE	(UINT64_C(1) << 63)

/*
 * Two bits, initially both 0. One relation sets bit 0 if bit 0 is 0. The other, which has a
 * label, sets bit 1 if bit 0 is 1.
 */
static void sample(struct file *f)
{
	f->size = 0;
	put(f, 2, 4);
	put(f, 1, 4);
	put(f, 1, 4);
	put(f, 4, 8);				/* byte 12: nodes 1 to 4 */
	put_node(f, TRUE, 0, 2);		/* bit 1 */
	put_node(f, TRUE, 1, 0);		/* bit 0 or bit 1 */
	put_node(f, 1, 0, 0);			/* bit 0 and bit 1 */
	put_node(f, 1 | TRUE, 1, 0);		/* bit 0 xor bit 1 */
	put(f, 2 | TRUE, 8);			/* byte 84: neither */
	put(f, 2, 8);
	put(f, 4, 8);				/* any function of both bits */
	put(f, 2, 4);				/* byte 108 */
	put(f, 3, 8);				/* nodes 5 to 7 */
	put_node(f, TRUE, 0, 1);		/* next bit 0 */
	put_node(f, 0, 5, 0);			/* and not current bit 0 */
	put_node(f, 5, 0, 0);			/* the cube of both */
	put(f, 6, 8);				/* byte 168 */
	put(f, 7, 8);
	put(f, 8, 8);				/* nodes 8 to 15 */
	put_node(f, TRUE, 0, 1000000);		/* a label */
	put_node(f, 8, 0, 3);			/* and next bit 1 */
	put_node(f, 9, 0, 1);			/* and next bit 0 */
	put_node(f, 10, 0, 0);			/* and bit 0 */
	put_node(f, TRUE, 0, 3);
	put_node(f, 12, 0, 2);
	put_node(f, 13, 0, 1);
	put_node(f, 14, 0, 0);			/* the cube of variables 0 to 3 */
	put(f, 11, 8);
	put(f, 15, 8);
}

static int read_bdd(const struct file *f, struct kd_model *model,
		    struct kdsm_reach_message *message)
{
	unsigned char *copy = malloc(f->size ? f->size : 1);	/* a sanitizer detects overruns */
	int r;

	memcpy(copy, f->bytes, f->size);
	memset(model, 0, sizeof(*model));
	message->text[0] = 0;
	kdsm_bdd_private(worker, 1);
	r = kd_model_read_bdd(worker, "FILE", copy, f->size, model, message);
	kdsm_bdd_private(worker, 0);
	free(copy);
	return r;
}

static void good(void **state)
{
	struct kdsm_reach_message message;
	struct kd_model model;
	struct file f;
	kdsm_bdd s, t;

	(void)state;
	open_store();
	sample(&f);
	assert_int_equal(read_bdd(&f, &model, &message), 0);
	assert_int_equal(model.bits, 2);
	assert_int_equal(model.relations, 2);
	s = kdsm_bdd_publish(worker, model.initial);
	assert_int_equal(s, kdsm_bdd_and(worker, kdsm_bdd_not(kdsm_bdd_variable(worker, 0)),
					 kdsm_bdd_not(kdsm_bdd_variable(worker, 2))));
	assert_int_equal(kdsm_bdd_successors(worker, s, model.relation[1]), KDSM_BDD_FALSE);
	t = kdsm_bdd_successors(worker, s, model.relation[0]);
	assert_int_equal(t, kdsm_bdd_and(worker, kdsm_bdd_variable(worker, 0),
					 kdsm_bdd_not(kdsm_bdd_variable(worker, 2))));
	t = kdsm_bdd_successors(worker, t, model.relation[1]);
	assert_int_equal(t, kdsm_bdd_and(worker, kdsm_bdd_variable(worker, 0),
					 kdsm_bdd_variable(worker, 2)));
	kd_model_free(&model);
	close_store();
}

/* Truncate the file at every byte; append bytes, which the reader ignores. */
static void truncated(void **state)
{
	struct kdsm_reach_message message;
	struct kd_model model;
	struct file f;
	size_t size;

	(void)state;
	open_store();
	sample(&f);
	size = f.size;
	for (f.size = 0; f.size < size; f.size++) {
		assert_int_equal(read_bdd(&f, &model, &message), -EINVAL);
		assert_int_equal(strncmp(message.text, "FILE: byte ", 11), 0);
		kd_model_free(&model);
	}
	f.size = size + 100;
	assert_int_equal(read_bdd(&f, &model, &message), 0);
	kd_model_free(&model);
	close_store();
}

static void expect(struct file *f, size_t at, uint64_t value, unsigned int bytes,
		   const char *message_part)
{
	struct file changed = *f;
	struct kdsm_reach_message message;
	struct kd_model model;

	changed.size = at;
	put(&changed, value, bytes);
	changed.size = f->size;
	if (read_bdd(&changed, &model, &message) != -EINVAL)
		fail_msg("expected '%s'", message_part);
	if (!strstr(message.text, message_part))
		fail_msg("expected '%s' in '%s'", message_part, message.text);
	kd_model_free(&model);
}

static void wrong(void **state)
{
	struct file f;

	(void)state;
	open_store();
	sample(&f);
	expect(&f, 0, 0, 4, "integers per state not positive");
	expect(&f, 0, -5, 4, "integers per state not positive");
	expect(&f, 0, 0x7fffffff, 4, "more than");
	expect(&f, 4, 0, 4, "bits per integer not positive");
	expect(&f, 4, 0x10000, 4, "more than");
	expect(&f, 8, -1, 4, "action bits");
	expect(&f, 12, UINT64_MAX, 8, "more nodes announced");
	expect(&f, 12, 1000, 8, "more nodes announced");
	expect(&f, 20, 1, 8, "not defined yet");		/* node 1 refers to itself */
	expect(&f, 20, UINT64_C(1) << 62, 8, "not a reference");
	expect(&f, 28, UINT64_C(2) << 40 | 7, 8, "not defined yet");
	expect(&f, 28, UINT64_C(4) << 40, 8, "beyond");
	expect(&f, 28, UINT64_C(1000001) << 40, 8, "beyond");
	expect(&f, 28, UINT64_C(0) << 40, 8, "above");	/* same variable as its parents */
	expect(&f, 84, 9, 8, "not defined yet");
	expect(&f, 92, 3, 8, "not as in the header");
	expect(&f, 100, 1, 8, "not the bits of the current state");
	expect(&f, 108, 0, 4, "not positive");
	expect(&f, 108, -1, 4, "not positive");
	expect(&f, 108, 1000, 4, "more relations announced");
	expect(&f, 176, 5, 8, "depends on variables that it does not name");
	close_store();
}

static void expect_message(int r, const struct kdsm_reach_message *message)
{
	if (r == 0)
		return;
	assert_true(r < 0);
	assert_int_equal(strncmp(message->text, "FILE", 4), 0);
}

/* Change one to eight bytes: the reader accepts the file or refuses it. */
static void mutated(void **state)
{
	struct kdsm_reach_message message;
	struct kd_model model;
	unsigned int i, k;
	struct file f;

	(void)state;
	open_store();
	srandom(1);
	for (i = 0; i < 20000; i++) {
		sample(&f);
		for (k = 1 + random() % 8; k--; )
			f.bytes[random() % f.size] = random() % 3 ? random() : random() % 4;
		expect_message(read_bdd(&f, &model, &message), &message);
		kd_model_free(&model);
		if (i % 1000 == 999) {	/* private nodes are never freed */
			close_store();
			open_store();
		}
	}
	close_store();
}

/* ---- PNML ---- */

#define HEAD "<?xml version='1.0'?>\n" \
	"<pnml xmlns='http://www.pnml.org/version-2009/grammar/pnml'>\n" \
	"<net id='n' type='http://www.pnml.org/version-2009/grammar/ptnet'><page id='g'>\n"
#define TAIL "</page></net></pnml>"
#define PLACES "<place id='p'><initialMarking><text> 1 </text></initialMarking></place>" \
	"<place id='q'/>"
#define FIRE "<transition id='t'/><arc id='1' source='p' target='t'/>" \
	"<arc id='2' source='t' target='q'/>"

static int read_pnml(const char *text, size_t size, struct kd_model *model,
		     struct kdsm_reach_message *message)
{
	const struct kd_model_choice choice = { 0 };
	unsigned char *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, text, size);
	memset(model, 0, sizeof(*model));
	message->text[0] = 0;
	kdsm_bdd_private(worker, 1);
	r = kd_model_read_pnml(worker, "FILE", &choice, copy, size, model, message);
	kdsm_bdd_private(worker, 0);
	free(copy);
	return r;
}

static void expect_pnml(const char *text, const char *message_part)
{
	struct kdsm_reach_message message;
	struct kd_model model;
	int r = read_pnml(text, strlen(text), &model, &message);

	if (message_part) {
		assert_int_equal(r, -EINVAL);
		if (!strstr(message.text, message_part))
			fail_msg("expected '%s' in '%s'", message_part, message.text);
	} else if (r) {
		fail_msg("%s", message.text);
	}
	kd_model_free(&model);
}

static void nets(void **state)
{
	(void)state;
	open_store();
	expect_pnml(HEAD PLACES FIRE TAIL, NULL);
	/* pages in pages, references across pages, and data of tools */
	expect_pnml(HEAD "<page id='h'><toolspecific tool='x' version='1'><place id='p'/></toolspecific>"
		    "<referencePlace id='r' ref='s'/><referencePlace id='s' ref='q'/>"
		    "<referenceTransition id='u' ref='t'/>"
		    "<arc id='3' source='u' target='r'><inscription><text>1</text></inscription></arc>"
		    "</page>" PLACES "<transition id='t'><graphics/></transition>"
		    "<arc id='1' source='p' target='t'/>" TAIL, NULL);
	expect_pnml("", "not well-formed");
	expect_pnml("hello", "not well-formed");
	expect_pnml("<html/>", "no PNML");
	expect_pnml("<pnml/>", "no net");
	expect_pnml("<pnml><net id='n' type='x/symmetricnet'/></pnml>", "symmetricnet");
	expect_pnml("<pnml><net id='n'/></pnml>", "no type");
	expect_pnml(HEAD PLACES FIRE "</page></net><net id='m' type='ptnet'/></pnml>", "second net");
	expect_pnml(HEAD TAIL, "0 places");
	expect_pnml(HEAD PLACES TAIL, NULL);
	expect_pnml(HEAD "<place/>" TAIL, "without id");
	expect_pnml(HEAD PLACES PLACES FIRE TAIL, "second node with the id");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t'/>" TAIL, "without source or target");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='x'/>" TAIL, "FILE:4: an arc to what is not there: x");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='x' target='t'/>" TAIL, "from what is not there");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='p' target='q'/>" TAIL, "two places");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='p'><inscription>"
		    "<text>0</text></inscription></arc>" TAIL, "weight 0");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='p'><inscription>"
		    "<text>-1</text></inscription></arc>" TAIL, "not a number of tokens");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='p'><inscription>"
		    "<text>99999999999999999999</text></inscription></arc>" TAIL, "at most 2147483647");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='p'><inscription/></arc>" TAIL,
		    "without text");
	expect_pnml(HEAD "<place id='p'><initialMarking><text>2</text></initialMarking></place>"
		    "<place id='q'/>" FIRE TAIL, NULL);
	expect_pnml(HEAD "<place id='p'><initialMarking><text>1x</text></initialMarking></place>"
		    "<place id='q'/>" FIRE TAIL, "not a number");
	expect_pnml(HEAD PLACES FIRE "<referencePlace id='a' ref='b'/><referencePlace id='b' ref='a'/>"
		    TAIL, "leads to no node");
	expect_pnml(HEAD PLACES FIRE "<referencePlace id='a' ref='t'/>" TAIL, "leads to no node");
	expect_pnml(HEAD PLACES FIRE "<referencePlace id='a'/>" TAIL, "without ref");
	/* types of nets of other tools */
	expect_pnml("<pnml><net id='n' type='x/pnmlcoremodel'>" PLACES FIRE "</net></pnml>", NULL);
	expect_pnml("<pnml><net id='n' type='x/ptNetb'>" PLACES FIRE "</net></pnml>", NULL);
	expect_pnml("<pnml><net id='n' type='P/T net'>" PLACES FIRE "</net></pnml>", NULL);
	/* what would change the meaning */
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='p' target='t' type='reset'/>" TAIL,
		    "FILE:4: only normal, read and inhibitor arcs can be read, this one is of type reset");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='p' target='t'><type value='transport'/></arc>"
		    TAIL, "of type transport");
	expect_pnml(HEAD PLACES FIRE "<arc id='3' source='t' target='p' type='inhibitor'/>" TAIL,
		    "begins at a transition");
	expect_pnml(HEAD PLACES "<transition id='t'><delay/></transition>" TAIL,
		    "FILE:4: not of a place/transition net, or not supported: delay");
	expect_pnml(HEAD "<place id='p'><capacity><text>3</text></capacity></place>" TAIL,
		    "not supported: capacity");
	expect_pnml(HEAD PLACES FIRE
		    "<arc id='3' source='p' target='t'><hlinscription/></arc>" TAIL,
		    "not supported: hlinscription");
	expect_pnml(HEAD "<declaration/>" PLACES FIRE TAIL, "not supported: declaration");
	close_store();
}

/* A net with a token in place p, in which each transition moves a token along a pair of places */
static int read_moves(const char *const moves[][2], unsigned int count, const char *rest,
		      struct kd_model *model)
{
	struct kdsm_reach_message message;
	char text[4096];
	unsigned int i;
	size_t n;

	n = snprintf(text, sizeof(text), HEAD
		     "<place id='p'><initialMarking><text>1</text></initialMarking></place>"
		     "<place id='q'/><place id='r'/><place id='s'/>");
	for (i = 0; i < count; i++)
		n += snprintf(text + n, sizeof(text) - n, "<transition id='t%u'/>"
			      "<arc id='i%u' source='%s' target='t%u'/>"
			      "<arc id='o%u' source='t%u' target='%s'/>",
			      i, i, moves[i][0], i, i, i, moves[i][1]);
	n += snprintf(text + n, sizeof(text) - n, "%s" TAIL, rest);
	return read_pnml(text, n, model, &message);
}

/* The transitions of places p and q make a union; that of r and s has another top place. */
static void unions(void **state)
{
	static const char *const pairs[][2] = {
		{ "p", "q" }, { "q", "p" }, { "p", "q" }, { "r", "s" },
	};
	/* No invariant bounds place r, so the transitions that touch it stay alone. */
	static const char *const to_r[][2] = { { "p", "q" }, { "p", "r" } };
	static const char into_r[] = "<transition id='v'/><arc id='ov' source='v' target='r'/>"
		"<arc id='h' source='r' target='v'><type value='inhibitor'/></arc>";
	struct kd_model model;
	kdsm_bdd initial, apart = KDSM_BDD_FALSE, together = KDSM_BDD_INVALID;
	unsigned int i, within = 0;

	(void)state;
	open_store();
	assert_int_equal(read_moves(pairs, 4, "", &model), 0);
	assert_int_equal(kd_model_merge(worker, &model), 0);
	initial = kdsm_bdd_publish(worker, model.initial);
	for (i = 0; i < 3; i++) {
		apart = kdsm_bdd_or(worker, apart, kdsm_bdd_successors(worker, initial,
								       model.relation[i]));
		within += model.merged[i].within;
		if (model.merged[i].relation)
			together = kdsm_bdd_successors(worker, initial, model.merged[i].relation);
	}
	assert_int_equal(together, apart);
	assert_int_equal(within, 2);
	assert_true(!model.merged[3].relation && !model.merged[3].within);
	kd_model_free(&model);

	assert_int_equal(read_moves(to_r, 2, into_r, &model), 0);
	assert_int_equal(kd_model_merge(worker, &model), 0);
	for (i = 0; i < 3; i++)
		assert_true(!model.merged[i].relation && !model.merged[i].within);
	kd_model_free(&model);
	close_store();
}

static void deep_and_large(void **state)
{
	static char text[200000];
	struct kdsm_reach_message message;
	struct kd_model model;
	unsigned int i;
	size_t n;

	(void)state;
	open_store();
	n = sprintf(text, "%s", HEAD);
	for (i = 0; i < 10000; i++)
		n += sprintf(text + n, "<page id='%u'>", i);
	assert_int_equal(read_pnml(text, n, &model, &message), -EINVAL);
	assert_non_null(strstr(message.text, "too deep"));
	kd_model_free(&model);
	/* entities that expand without bound */
	n = sprintf(text, "<?xml version='1.0'?><!DOCTYPE pnml [<!ENTITY a0 'x'>");
	for (i = 1; i < 40; i++)
		n += sprintf(text + n, "<!ENTITY a%u '&a%u;&a%u;&a%u;&a%u;'>", i, i - 1,
			     i - 1, i - 1, i - 1);
	n += sprintf(text + n, "]><pnml>&a39;</pnml>");
	assert_int_equal(read_pnml(text, n, &model, &message), -EINVAL);
	kd_model_free(&model);
	close_store();
}

static void mutated_nets(void **state)
{
	static const char text[] = HEAD PLACES FIRE "<referencePlace id='r' ref='q'/>"
		"<arc id='3' source='t' target='r'><inscription><text>1</text></inscription></arc>"
		TAIL;
	struct kdsm_reach_message message;
	struct kd_model model;
	char copy[sizeof(text)];
	unsigned int i, k;

	(void)state;
	open_store();
	srandom(2);
	for (i = 0; i < sizeof(text) - 1; i++) {
		assert_int_equal(read_pnml(text, i, &model, &message), -EINVAL);
		expect_message(-1, &message);
		kd_model_free(&model);
	}
	for (i = 0; i < 20000; i++) {
		memcpy(copy, text, sizeof(text));
		for (k = 1 + random() % 3; k--; )
			copy[random() % (sizeof(text) - 1)] = "pqrst<>/='1 "[random() % 12];
		expect_message(read_pnml(copy, sizeof(text) - 1, &model, &message), &message);
		kd_model_free(&model);
	}
	close_store();
}

/* ---- files ---- */

static int load(const char *path, struct kd_model *model, struct kdsm_reach_message *message)
{
	const struct kd_model_choice choice = { 0 };

	return kd_model_load(worker, path, &choice, model, message);
}

static void files(void **state)
{
	char name[] = "/tmp/kdsm-model-XXXXXX";
	struct kdsm_reach_message message;
	struct kd_model model;
	int fd;

	(void)state;
	open_store();
	assert_int_equal(load("/nonexistent/x.bdd", &model, &message), -ENOENT);
	assert_string_equal(message.text, "/nonexistent/x.bdd: No such file or directory");
	assert_true(load("/tmp", &model, &message) < 0);
	assert_non_null(strstr(message.text, "/tmp: "));
	assert_int_equal(load("/dev/zero", &model, &message), -EINVAL);
	assert_non_null(strstr(message.text, "not a regular file"));
	fd = mkstemp(name);
	assert_true(fd >= 0);
	assert_int_equal(load(name, &model, &message), -EINVAL);
	assert_non_null(strstr(message.text, "is empty"));
	close(fd);
	unlink(name);
	close_store();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(truncated),
		cmocka_unit_test(wrong),
		cmocka_unit_test(mutated),
		cmocka_unit_test(nets),
		cmocka_unit_test(unions),
		cmocka_unit_test(deep_and_large),
		cmocka_unit_test(mutated_nets),
		cmocka_unit_test(files),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
