// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Formulas from the XML of the Model Checking Contest: of its examinations about reachability,
 * CTL and upper bounds. A table says which elements may stand where. Whatever the table does not
 * list might change what a formula means, so it is refused: among others formulas of LTL, in
 * which a temporal operator has no path quantifier of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formula.h"

#define MAX_DEPTH	256		/* nested elements */
#define MAX_TEXT	65536		/* characters of an id or number with its blanks */
#define MAX_FILE	(INT64_C(128) << 20)	/* size of a file, in bytes */
#define MAX_CONSTANT	(INT64_C(1) << 40)	/* tokens of all places of a net are fewer */

/* Classes of elements */
enum {
	DOCUMENT = 1, PROPERTY = 2, ID = 4, FOREIGN = 8, FORMULA = 16,
	TRUTH = 32, PATH = 64, NUMBER = 128, PLACE = 256, TRANSITION = 512, BOUND = 1024,
	BEFORE = 2048, REACH = 4096,
};

enum kind {
	E_OPERATOR,	/* makes a formula with the row's operator */
	E_COMPARISON,	/* of two numbers; see struct comparison */
	E_IMPLICATION, E_EQUIVALENCE,
	E_QUANTIFIER,	/* the row's operator is that of a path with next */
	E_GROUP,	/* passes on the only formula in it */
	E_CONSTANT, E_SUM, E_DIFFERENCE, E_TOKENS, E_NAME,
	E_PROPERTY, E_ID, E_FOREIGN, E_DOCUMENT,
};

#define MANY	UINT32_MAX

/* An element: its class, the classes that may be in it, and how many such children it has */
static const struct element {
	const char *name;
	enum kind kind;
	unsigned int class, children;
	uint32_t least, most;
	enum kd_operator op;
} elements[] = {
	{ "property-set", E_DOCUMENT, DOCUMENT, PROPERTY, 0, MANY, 0 },
	{ "property", E_PROPERTY, PROPERTY, ID | FOREIGN | FORMULA, 0, MANY, 0 },
	{ "id", E_ID, ID, 0, 0, 0, 0 },
	{ "description", E_FOREIGN, FOREIGN, FOREIGN, 0, MANY, 0 },
	{ "tags", E_FOREIGN, FOREIGN, FOREIGN, 0, MANY, 0 },
	{ "formula", E_GROUP, FORMULA, TRUTH | BOUND, 1, 1, 0 },
	{ "true", E_OPERATOR, TRUTH, 0, 0, 0, KD_F_TRUE },
	{ "false", E_OPERATOR, TRUTH, 0, 0, 0, KD_F_FALSE },
	{ "deadlock", E_OPERATOR, TRUTH, 0, 0, 0, KD_F_DEADLOCK },
	{ "is-fireable", E_OPERATOR, TRUTH, TRANSITION, 1, MANY, KD_F_FIREABLE },
	{ "negation", E_OPERATOR, TRUTH, TRUTH, 1, 1, KD_F_NOT },
	{ "conjunction", E_OPERATOR, TRUTH, TRUTH, 1, MANY, KD_F_AND },
	{ "disjunction", E_OPERATOR, TRUTH, TRUTH, 1, MANY, KD_F_OR },
	{ "exclusive-disjunction", E_OPERATOR, TRUTH, TRUTH, 2, 2, KD_F_XOR },
	{ "implication", E_IMPLICATION, TRUTH, TRUTH, 2, 2, KD_F_OR },
	{ "equivalence", E_EQUIVALENCE, TRUTH, TRUTH, 2, 2, KD_F_XOR },
	{ "integer-le", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "integer-lt", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "integer-ge", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "integer-gt", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "integer-eq", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "integer-ne", E_COMPARISON, TRUTH, NUMBER, 2, 2, 0 },
	{ "exists-path", E_QUANTIFIER, TRUTH, PATH, 1, 1, KD_F_EX },
	{ "all-paths", E_QUANTIFIER, TRUTH, PATH, 1, 1, KD_F_AX },
	{ "next", E_OPERATOR, PATH, TRUTH, 1, 1, KD_F_NEXT },
	{ "finally", E_OPERATOR, PATH, TRUTH, 1, 1, KD_F_FINALLY },
	{ "globally", E_OPERATOR, PATH, TRUTH, 1, 1, KD_F_GLOBALLY },
	{ "until", E_OPERATOR, PATH, BEFORE | REACH, 2, 2, KD_F_UNTIL },
	{ "before", E_GROUP, BEFORE, TRUTH, 1, 1, 0 },
	{ "reach", E_GROUP, REACH, TRUTH, 1, 1, 0 },
	{ "integer-constant", E_CONSTANT, NUMBER, 0, 0, 0, 0 },
	{ "integer-sum", E_SUM, NUMBER, NUMBER, 1, MANY, 0 },
	{ "integer-difference", E_DIFFERENCE, NUMBER, NUMBER, 2, 2, 0 },
	{ "tokens-count", E_TOKENS, NUMBER, PLACE, 1, MANY, 0 },
	{ "place-bound", E_TOKENS, BOUND, PLACE, 1, MANY, KD_F_BOUND },
	{ "place", E_NAME, PLACE, 0, 0, 0, 0 },
	{ "transition", E_NAME, TRANSITION, 0, 0, 0, 0 },
};

/*
 * Comparisons of the numbers a and b: the one that is subtracted, a constant that is added to
 * the difference, and what the result has to be
 */
static const struct comparison {
	const char *name;
	bool swapped;		/* b - a instead of a - b */
	int64_t add;
	bool equal, negated;	/* equal to 0 instead of at most 0 */
} comparisons[] = {
	{ "integer-le", false, 0, false, false },
	{ "integer-lt", false, 1, false, false },
	{ "integer-ge", true, 0, false, false },
	{ "integer-gt", true, 1, false, false },
	{ "integer-eq", false, 0, true, false },
	{ "integer-ne", false, 0, true, true },
};

/* An element that has begun and not ended */
struct frame {
	const struct element *element;
	uint32_t children;
	struct kd_formula *formula;	/* operands so far; of an operator, the operator itself */
	struct kd_sum sum[2];		/* the numbers in it; all after the second are added up */
	char *id;			/* of a property */
	unsigned int seen;		/* classes of the children so far */
};

struct name {
	const char *id;
	unsigned int index;
};

struct reader {
	XML_Parser parser;
	const char *path;
	const struct kd_model *model;
	struct kd_formulas *formulas;
	struct kdsm_reach_message *message;
	struct name *place, *transition;	/* sorted by id */
	struct frame frame[MAX_DEPTH];
	unsigned int depth;
	char text[MAX_TEXT + 1];
	size_t length;
	int error;
};

static void fail(struct reader *r, int error, const char *what, const char *which)
{
	if (r->error)
		return;
	r->error = error;
	kd_say(r->message, "%s:%lu: %s%s%.200s", r->path,
	       (unsigned long)XML_GetCurrentLineNumber(r->parser), what,
	       which ? " " : "", which ? which : "");
	XML_StopParser(r->parser, XML_FALSE);
}

/* Fail if a step of making the formula failed. */
static void expect(struct reader *r, int error)
{
	if (error == -ERANGE)
		fail(r, -EINVAL, "a number is too large", NULL);
	else if (error < 0)
		fail(r, error, "no memory", NULL);
}

static int compare_names(const void *x, const void *y)
{
	const struct name *a = x, *b = y;

	return strcmp(a->id, b->id);
}

static int make_names(struct reader *r)
{
	const struct kd_net *net = r->model->net;
	unsigned int i;

	r->place = calloc(net->places + 1, sizeof(*r->place));
	r->transition = calloc(net->transitions + 1, sizeof(*r->transition));
	if (!r->place || !r->transition)
		return -ENOMEM;
	for (i = 0; i < net->places; i++)
		r->place[i] = (struct name){ net->place[i].id, i };
	for (i = 0; i < net->transitions; i++)
		r->transition[i] = (struct name){ net->transition[i].id, i };
	qsort(r->place, net->places, sizeof(*r->place), compare_names);
	qsort(r->transition, net->transitions, sizeof(*r->transition), compare_names);
	return 0;
}

/* ---- the beginning of an element ---- */

/* expat gives element names as "namespace|name". */
static const struct element *element_of(const char *name)
{
	const char *bar = strrchr(name, '|');
	size_t i;

	name = bar ? bar + 1 : name;
	for (i = 0; i < sizeof(elements) / sizeof(*elements); i++)
		if (!strcmp(name, elements[i].name))
			return &elements[i];
	return NULL;
}

/* Say why the element cannot stand in this place. */
static void refuse(struct reader *r, const char *name, const struct element *element,
		   const struct element *around)
{
	const char *bar = strrchr(name, '|');

	name = bar ? bar + 1 : name;
	if (!around)
		fail(r, -EINVAL, "no formulas: the outermost element is", name);
	else if (element && element->class == PATH)
		fail(r, -EINVAL, "not of CTL, because no path quantifier stands before", name);
	else
		fail(r, -EINVAL, element ? "cannot stand here:" : "not supported:", name);
}

static void start(void *data, const char *name, const char **attributes)
{
	struct reader *r = data;
	struct frame *around = r->depth ? &r->frame[r->depth - 1] : NULL, *frame;
	const struct element *element;

	(void)attributes;
	if (r->error)
		return;
	if (r->depth == MAX_DEPTH)
		return fail(r, -EINVAL, "elements nested too deep", NULL);
	if (around && around->element->kind == E_FOREIGN)
		element = around->element;
	else
		element = element_of(name);
	if (!element || !((around ? around->element->children : DOCUMENT) & element->class))
		return refuse(r, name, element, around ? around->element : NULL);
	if (around && around->children++ == around->element->most)
		return fail(r, -EINVAL, "too many elements in", around->element->name);
	if (around && element->class & (ID | FORMULA | BEFORE | REACH) &&
	    around->seen & element->class)
		return fail(r, -EINVAL, "a second element of the kind", element->name);
	if (around && element->class == REACH && !(around->seen & BEFORE))
		return fail(r, -EINVAL, "reach stands in front of before", NULL);
	if (around)
		around->seen |= element->class;
	frame = &r->frame[r->depth];
	memset(frame, 0, sizeof(*frame));
	frame->element = element;
	r->depth++;
	r->length = 0;
	if (element->kind == E_FOREIGN || element->kind == E_DOCUMENT || element->kind == E_ID ||
	    element->kind == E_NAME || element->kind == E_CONSTANT)
		return;
	frame->formula = calloc(1, sizeof(*frame->formula));
	if (!frame->formula)
		return fail(r, -ENOMEM, "no memory", NULL);
	frame->formula->op = element->op;
}

static void text(void *data, const char *s, int length)
{
	struct reader *r = data;
	enum kind kind;
	int i;

	if (r->error || !r->depth)
		return;
	kind = r->frame[r->depth - 1].element->kind;
	if (kind == E_FOREIGN)
		return;
	if (kind == E_ID || kind == E_NAME || kind == E_CONSTANT) {
		if (r->length + length > MAX_TEXT)
			return fail(r, -EINVAL, "too long an id or number", NULL);
		memcpy(r->text + r->length, s, length);
		r->length += length;
		return;
	}
	for (i = 0; i < length; i++)
		if (!isspace((unsigned char)s[i]))
			return fail(r, -EINVAL, "text where no text is expected, in",
				    r->frame[r->depth - 1].element->name);
}

/* ---- the end of an element ---- */

/* The text without the blanks around it */
static char *trimmed(struct reader *r)
{
	char *s = r->text;

	r->text[r->length] = 0;
	while (r->length && isspace((unsigned char)r->text[r->length - 1]))
		r->text[--r->length] = 0;
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* The id goes into lines of output that other programs read: it has no blanks in it. */
static void end_id(struct reader *r, struct frame *property)
{
	const char *id = trimmed(r), *c;

	for (c = id; *c; c++)
		if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c))
			return fail(r, -EINVAL, "an id with a blank in it:", id);
	if (!*id)
		return fail(r, -EINVAL, "an empty id", NULL);
	property->id = strdup(id);
	expect(r, property->id ? 0 : -ENOMEM);
}

static void end_name(struct reader *r, const struct frame *frame, struct frame *around)
{
	bool place = frame->element->class == PLACE;
	const struct kd_net *net = r->model->net;
	struct name key = { trimmed(r), 0 }, *found;
	struct kd_formula *f = around->formula;
	unsigned int *more;

	found = bsearch(&key, place ? r->place : r->transition,
			place ? net->places : net->transitions, sizeof(key), compare_names);
	if (!found)
		return fail(r, -EINVAL, place ? "the net has no place with the id" :
			    "the net has no transition with the id", key.id);
	if (place)
		return expect(r, kd_sum_add_place(&around->sum[0], found->index, 1));
	/* room for a power of two of transitions */
	if (!(f->transitions & (f->transitions - 1))) {
		more = reallocarray(f->transition, f->transitions ? 2 * f->transitions : 1,
				    sizeof(*more));
		if (!more)
			return fail(r, -ENOMEM, "no memory", NULL);
		f->transition = more;
	}
	f->transition[f->transitions++] = found->index;
}

static void end_constant(struct reader *r, struct kd_sum *sum)
{
	char *s = trimmed(r), *end;
	long long value;

	errno = 0;
	value = strtoll(s, &end, 10);
	if (!isdigit((unsigned char)*s) || *end || errno || value > MAX_CONSTANT)
		return fail(r, -EINVAL, "not a number of tokens that a net can have:", s);
	sum->constant = value;
}

/* The formula of a comparison is that about the difference of its numbers. */
static void end_comparison(struct reader *r, struct frame *frame)
{
	const struct comparison *c = comparisons;
	struct kd_formula *f = frame->formula, *not;

	while (strcmp(c->name, frame->element->name))
		c++;
	expect(r, kd_sum_add(&f->sum, &frame->sum[0], c->swapped));
	expect(r, kd_sum_add(&f->sum, &frame->sum[1], !c->swapped));
	if (!r->error && __builtin_add_overflow(f->sum.constant, c->add, &f->sum.constant))
		expect(r, -ERANGE);
	if (!r->error)
		expect(r, kd_sum_sort(&f->sum));
	f->op = c->equal ? KD_F_EQUAL : KD_F_AT_MOST;
	if (r->error || !c->negated)
		return;
	not = calloc(1, sizeof(*not));
	if (!not)
		return fail(r, -ENOMEM, "no memory", NULL);
	not->op = KD_F_NOT;
	frame->formula = not;
	expect(r, kd_formula_add(not, f));
}

/* Put a negation around *f. */
static void negate(struct reader *r, struct kd_formula **f)
{
	struct kd_formula *not = calloc(1, sizeof(*not)), *operand = *f;

	if (!not)
		return fail(r, -ENOMEM, "no memory", NULL);
	not->op = KD_F_NOT;
	*f = not;
	expect(r, kd_formula_add(not, operand));
}

/* The only operand takes the place of the formula around it. */
static void unwrap(struct frame *frame)
{
	struct kd_formula *operand = frame->formula->operand[0];

	frame->formula->operands = 0;
	kd_formula_free(frame->formula);
	frame->formula = operand;
}

static void end_quantifier(struct frame *frame)
{
	unwrap(frame);
	frame->formula->op += frame->element->op - KD_F_NEXT;
}

static void end_property(struct reader *r, struct frame *frame)
{
	struct kd_formulas *all = r->formulas;
	struct kd_named *more;

	if (!frame->id || !frame->formula->operands)
		return fail(r, -EINVAL, frame->id ? "a property without formula:" :
			    "a property without id", frame->id);
	more = reallocarray(all->named, all->count + 1, sizeof(*more));
	if (!more)
		return fail(r, -ENOMEM, "no memory", NULL);
	unwrap(frame);
	all->named = more;
	more[all->count++] = (struct kd_named){
		.id = frame->id, .formula = frame->formula,
	};
	frame->id = NULL;
	frame->formula = NULL;
}

/* Give the formula of an element that has ended to the element around it. */
static void pass_formula(struct reader *r, struct frame *frame, struct frame *around)
{
	struct kd_formula *f = frame->formula;

	frame->formula = NULL;
	expect(r, kd_formula_add(around->formula, f));
}

/* Add the shorter sum to the longer one, so that deep nesting takes no more time. */
static void pass_sum(struct reader *r, struct kd_sum *sum, struct frame *around)
{
	bool second = around->element->kind != E_SUM && around->children == 2;
	struct kd_sum *to = &around->sum[second], shorter = *to;

	if (sum->addends > to->addends) {
		*to = *sum;
		*sum = shorter;
	}
	expect(r, kd_sum_add(to, sum, false));
}

static void end_kind(struct reader *r, struct frame *frame, struct frame *around)
{
	switch (frame->element->kind) {
	case E_COMPARISON:
		end_comparison(r, frame);
		break;
	case E_IMPLICATION:
		return negate(r, &frame->formula->operand[0]);
	case E_EQUIVALENCE:
		return negate(r, &frame->formula);
	case E_QUANTIFIER:
		return end_quantifier(frame);
	case E_GROUP:
		return unwrap(frame);
	case E_CONSTANT:
		return end_constant(r, &frame->sum[0]);
	case E_DIFFERENCE:
		return expect(r, kd_sum_add(&frame->sum[0], &frame->sum[1], true));
	case E_TOKENS:
		if (frame->element->class != BOUND)
			break;
		frame->formula->sum = frame->sum[0];
		memset(&frame->sum[0], 0, sizeof(frame->sum[0]));
		return expect(r, kd_sum_sort(&frame->formula->sum));
	case E_NAME:
		return end_name(r, frame, around);
	case E_ID:
		return end_id(r, around);
	case E_PROPERTY:
		return end_property(r, frame);
	case E_SUM:
	case E_OPERATOR:
	case E_FOREIGN:
	case E_DOCUMENT:
		break;
	}
}

static void frame_destroy(struct frame *frame)
{
	kd_formula_free(frame->formula);
	free(frame->sum[0].addend);
	free(frame->sum[1].addend);
	free(frame->id);
}

static void end(void *data, const char *name)
{
	struct reader *r = data;
	struct frame *frame, *around;

	(void)name;
	if (r->error || !r->depth)
		return;
	frame = &r->frame[r->depth - 1];
	around = r->depth > 1 ? frame - 1 : NULL;
	if (frame->children < frame->element->least)
		fail(r, -EINVAL, "too few elements in", frame->element->name);
	else
		end_kind(r, frame, around);
	if (!r->error && frame->element->class == NUMBER)
		pass_sum(r, &frame->sum[0], around);
	else if (!r->error && frame->element->class & (TRUTH | PATH | BOUND | BEFORE | REACH |
						       FORMULA))
		pass_formula(r, frame, around);
	frame_destroy(frame);
	r->depth--;
	r->length = 0;
}

/* A document type could define entities, and formulas have none. */
static void doctype(void *data, const char *name, const char *system_id, const char *public_id,
		    int internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)internal;
	fail(data, -EINVAL, "a document type is not supported", NULL);
}

static void parse(struct reader *r, FILE *file)
{
	bool last = false;
	size_t size;
	void *buffer;

	while (!r->error && !last) {
		buffer = XML_GetBuffer(r->parser, 1 << 16);
		if (!buffer)
			return fail(r, -ENOMEM, "no memory", NULL);
		size = fread(buffer, 1, 1 << 16, file);
		if (ferror(file))
			return fail(r, -EIO, "cannot be read", NULL);
		last = size == 0;
		if (XML_ParseBuffer(r->parser, size, last) != XML_STATUS_OK)
			fail(r, -EINVAL, "not well-formed XML:",
			     XML_ErrorString(XML_GetErrorCode(r->parser)));
	}
}

static int parse_file(struct reader *r, FILE *file)
{
	r->error = make_names(r);
	r->parser = XML_ParserCreateNS(NULL, '|');
	if (!r->parser)
		r->error = -ENOMEM;
	if (!r->error) {
		XML_SetUserData(r->parser, r);
		XML_SetElementHandler(r->parser, start, end);
		XML_SetCharacterDataHandler(r->parser, text);
		XML_SetStartDoctypeDeclHandler(r->parser, doctype);
		parse(r, file);
	}
	while (r->depth)
		frame_destroy(&r->frame[--r->depth]);
	if (r->parser)
		XML_ParserFree(r->parser);
	free(r->place);
	free(r->transition);
	return r->error;
}

static FILE *open_file(const char *path, struct kdsm_reach_message *message, int *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = NULL;
	struct stat st;

	*error = -EINVAL;
	if (fd < 0 || fstat(fd, &st) < 0) {
		*error = -errno;
		kd_say(message, "%s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		kd_say(message, "%s: is not a regular file; give a file of formulas", path);
	} else if (st.st_size > MAX_FILE) {
		kd_say(message, "%s: has %lld bytes, too many for formulas", path,
		       (long long)st.st_size);
	} else {
		file = fdopen(fd, "r");
		*error = -ENOMEM;
	}
	if (!file && fd >= 0)
		close(fd);
	return file;
}

int kd_formulas_read(const char *path, const struct kd_model *model,
		     struct kd_formulas *formulas, struct kdsm_reach_message *message)
{
	struct reader *r;
	int ret = 0;
	FILE *file;

	if (!model->net) {
		kd_say(message, "%s: the model has no places; formulas are about Petri nets", path);
		return -EINVAL;
	}
	file = open_file(path, message, &ret);
	if (!file)
		return ret;
	r = calloc(1, sizeof(*r));
	ret = -ENOMEM;
	if (r) {
		r->path = path;
		r->model = model;
		r->formulas = formulas;
		r->message = message;
		ret = parse_file(r, file);
	}
	free(r);
	fclose(file);
	return ret;
}
