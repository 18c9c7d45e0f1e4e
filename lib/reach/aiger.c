// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reading AIGER 1.9, the ASCII form (.aag) and the binary form (.aig), which differ in the
 * first word: A. Biere, K. Heljanko, S. Wieringa, "AIGER 1.9 And Beyond", FMV reports 11/2.
 * Files with justice properties or fairness constraints are refused, because the search checks
 * only states. Making a model of the graph is in model_aiger.c.
 *
 * The reader does not trust the file: it checks every literal before it uses the literal,
 * allocates memory only in proportion to the file's size, and never recurses.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_LITERAL	UINT32_C(0x7fffffff)	/* upper bound of a literal */
/* Upper bound of the number of inputs, which take no bytes in a binary file */
#define MAX_INPUTS	(UINT32_C(1) << 20)
#define MAX_NAME	200			/* longest name of a property, in bytes */

struct reader {
	const char *path;
	const unsigned char *file;
	size_t size, at;
	unsigned int line;
	bool binary;
	struct kdsm_reach_message *message;
	struct kd_aiger *aiger;
	uint32_t outputs;
};

static int bad(const struct reader *r, const char *what)
{
	kd_say(r->message, "%s:%u: %s; is this a model in the AIGER format, and whole?",
	       r->path, r->line, what);
	return -EINVAL;
}

static bool at_end(const struct reader *r)
{
	return r->at == r->size;
}

static int peek(const struct reader *r)
{
	return at_end(r) ? -1 : r->file[r->at];
}

static int get_number(struct reader *r, uint32_t *number)
{
	uint64_t value = 0;
	int digit = peek(r);

	if (digit < '0' || digit > '9')
		return bad(r, "there should be a number");
	for (; digit >= '0' && digit <= '9'; digit = peek(r)) {
		value = 10 * value + digit - '0';
		if (value > MAX_LITERAL)
			return bad(r, "a number is too large");
		r->at++;
	}
	*number = value;
	return 0;
}

static int get_char(struct reader *r, char wanted, const char *otherwise)
{
	if (peek(r) != wanted)
		return bad(r, otherwise);
	r->at++;
	if (wanted == '\n')
		r->line++;
	return 0;
}

static int get_end(struct reader *r)
{
	return get_char(r, '\n', "the line should end");
}

static int get_next_number(struct reader *r, uint32_t *number)
{
	int ret = get_char(r, ' ', "there should be another number");

	return ret ? ret : get_number(r, number);
}

/*
 * Check the range of a literal that is used. check_all_known() checks later that its
 * variable is defined.
 */
static int check_literal(const struct reader *r, uint32_t literal)
{
	return literal / 2 <= r->aiger->last ? 0 :
	       bad(r, "a literal is above what the first line says");
}

static int get_literal(struct reader *r, uint32_t *literal)
{
	int ret = get_number(r, literal);

	return ret ? ret : check_literal(r, *literal);
}

static int get_next_literal(struct reader *r, uint32_t *literal)
{
	int ret = get_next_number(r, literal);

	return ret ? ret : check_literal(r, *literal);
}

static int define(struct reader *r, uint32_t literal, enum kd_aiger_kind kind, uint32_t number)
{
	struct kd_aiger_variable *variable;
	int ret = check_literal(r, literal);

	if (ret)
		return ret;
	variable = &r->aiger->variable[literal / 2];
	if (literal % 2)
		return bad(r, "what is defined here is a negated literal");
	if (variable->kind != KD_AIGER_UNKNOWN)
		return bad(r, "this literal is defined already");
	variable->kind = kind;
	variable->number = number;
	return 0;
}

/* Check that the file has at least as many bytes as the counts in its first line need. */
static bool fits(const struct reader *r, const uint32_t count[9])
{
	uint64_t bytes = 2 * ((uint64_t)count[2] + count[3] + count[4]);
	unsigned int i;

	for (i = 5; i < 9; i++)
		bytes += 2 * (uint64_t)count[i];
	if (r->binary)
		return bytes <= r->size && count[1] <= MAX_INPUTS;
	return bytes + 2 * (uint64_t)count[1] <= r->size && count[0] <= r->size;
}

static int refuse(const struct reader *r, uint32_t count, const char *what)
{
	kd_say(r->message,
	       "%s:1: has %s (%u), which need infinite runs and are not checked; remove them to check the other properties",
	       r->path, what, count);
	return -EINVAL;
}

static int read_header(struct reader *r)
{
	struct kd_aiger *a = r->aiger;
	uint32_t count[9] = { 0 };	/* M I L O A B C J F */
	unsigned int i;
	int ret;

	r->binary = r->size > 4 && !memcmp(r->file, "aig ", 4);
	if (!r->binary && (r->size < 5 || memcmp(r->file, "aag ", 4)))
		return bad(r, "it does not begin with aag or aig");
	r->at = 3;
	for (i = 0; i < 9 && (i < 5 || peek(r) == ' '); i++) {
		ret = get_next_number(r, &count[i]);
		if (ret)
			return ret;
	}
	ret = get_end(r);
	if (ret)
		return ret;
	if (!fits(r, count))
		return bad(r, "the first line says more than the file can hold");
	if ((uint64_t)count[1] + count[2] + count[4] > count[0] ||
	    (r->binary && count[1] + count[2] + count[4] != count[0]))
		return bad(r, "the numbers in the first line contradict each other");
	if (count[7])
		return refuse(r, count[7], "justice properties");
	if (count[8])
		return refuse(r, count[8], "fairness constraints");
	a->last = count[0];
	a->inputs = count[1];
	a->latches = count[2];
	a->gates = count[4];
	a->kind = count[5] ? 'b' : 'o';
	a->properties = count[5] ? count[5] : count[3];
	a->constraints = count[6];
	r->outputs = count[3];
	a->variable = calloc((size_t)a->last + 1, sizeof(*a->variable));
	a->latch = calloc((size_t)a->latches + 1, sizeof(*a->latch));
	a->property = calloc((size_t)a->properties + 1, sizeof(*a->property));
	a->constraint = calloc((size_t)a->constraints + 1, sizeof(*a->constraint));
	a->order = calloc((size_t)a->gates + 1, sizeof(*a->order));
	if (!a->variable || !a->latch || !a->property || !a->constraint || !a->order)
		return -ENOMEM;
	a->variable[0].kind = KD_AIGER_FALSE;
	return 0;
}

static int read_inputs(struct reader *r)
{
	uint32_t literal, i;
	int ret = 0;

	for (i = 0; !ret && i < r->aiger->inputs; i++) {
		literal = 2 * (i + 1);
		if (!r->binary) {
			ret = get_number(r, &literal);
			if (!ret)
				ret = get_end(r);
		}
		if (!ret)
			ret = define(r, literal, KD_AIGER_INPUT, i);
	}
	return ret;
}

static int read_latch(struct reader *r, uint32_t number)
{
	struct kd_aiger_latch *latch = &r->aiger->latch[number];
	uint32_t literal = 2 * (r->aiger->inputs + number + 1), reset = 0;
	int ret = 0;

	if (!r->binary) {
		ret = get_number(r, &literal);
		if (!ret)
			ret = get_char(r, ' ', "there should be another number");
	}
	if (!ret)
		ret = define(r, literal, KD_AIGER_LATCH, number);
	if (!ret)
		ret = get_literal(r, &latch->next);
	if (!ret && peek(r) == ' ')
		ret = get_next_number(r, &reset);
	if (ret)
		return ret;
	if (reset > 1 && reset != literal)
		return bad(r, "a latch begins with 0, 1, or itself");
	latch->reset = reset == literal ? KD_AIGER_RESET_ANY :
		       reset ? KD_AIGER_RESET_1 : KD_AIGER_RESET_0;
	return get_end(r);
}

/* Read count lines with one literal each. If literals is NULL, skip them. */
static int read_literals(struct reader *r, uint32_t count, uint32_t *literals)
{
	uint32_t literal, i;
	int ret = 0;

	for (i = 0; !ret && i < count; i++) {
		ret = get_literal(r, &literal);
		if (!ret)
			ret = get_end(r);
		if (!ret && literals)
			literals[i] = literal;
	}
	return ret;
}

static int read_properties(struct reader *r, uint32_t count, char kind)
{
	struct kd_aiger *a = r->aiger;
	uint32_t i;
	int ret = 0;

	if (kind != a->kind)
		return read_literals(r, count, NULL);
	for (i = 0; !ret && i < count; i++)
		ret = read_literals(r, 1, &a->property[i].bad);
	return ret;
}

static int get_delta(struct reader *r, uint32_t *delta)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	int byte;

	do {
		byte = peek(r);
		if (byte < 0)
			return bad(r, "the file ends within its gates");
		r->at++;
		value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
		if (value > MAX_LITERAL || shift > 35)
			return bad(r, "a gate's operand is too far away");
	} while (byte & 128);
	*delta = value;
	return 0;
}

static int read_gate(struct reader *r, uint32_t number)
{
	struct kd_aiger *a = r->aiger;
	uint32_t literal, delta, left, right;
	int ret;

	if (r->binary) {
		literal = 2 * (a->inputs + a->latches + number + 1);
		ret = get_delta(r, &delta);
		if (!ret && (!delta || delta > literal))
			ret = bad(r, "a gate's operand is not below it");
		if (ret)
			return ret;
		left = literal - delta;
		ret = get_delta(r, &delta);
		if (!ret && delta > left)
			ret = bad(r, "a gate's operand is not below it");
		if (ret)
			return ret;
		right = left - delta;
	} else {
		ret = get_number(r, &literal);
		if (!ret)
			ret = get_next_literal(r, &left);
		if (!ret)
			ret = get_next_literal(r, &right);
		/* the last line may lack its newline */
		if (!ret && !at_end(r))
			ret = get_end(r);
		if (ret)
			return ret;
	}
	ret = define(r, literal, KD_AIGER_AND, number);
	if (ret)
		return ret;
	a->variable[literal / 2].operand[0] = left;
	a->variable[literal / 2].operand[1] = right;
	return 0;
}

/* Read lines "b0 name" up to the comment. Replace characters that are not printable by '?'. */
static int read_symbols(struct reader *r)
{
	struct kd_aiger *a = r->aiger;
	uint32_t number;
	size_t begin, i;
	char kind, *name;
	int ret;

	while (!at_end(r)) {
		kind = r->file[r->at++];
		if (kind == 'c' && (at_end(r) || peek(r) < '0' || peek(r) > '9'))
			return 0;
		if (!kind || !strchr("ilobcjf", kind))
			return bad(r, "there should be a name of something, or the end");
		ret = get_number(r, &number);
		if (!ret)
			ret = get_char(r, ' ', "there should be a name");
		if (ret)
			return ret;
		begin = r->at;
		while (!at_end(r) && peek(r) != '\n')
			r->at++;
		if (kind == a->kind && number < a->properties && !a->property[number].name) {
			i = r->at - begin;
			name = strndup((const char *)r->file + begin, i < MAX_NAME ? i : MAX_NAME);
			if (!name)
				return -ENOMEM;
			a->property[number].name = name;
			for (; *name; name++)
				if (*name < ' ' || *name > '~')
					*name = '?';
		}
		if (!at_end(r))
			get_end(r);
	}
	return 0;
}

static int check_known(struct reader *r, uint32_t literal)
{
	if (r->aiger->variable[literal / 2].kind != KD_AIGER_UNKNOWN)
		return 0;
	kd_say(r->message, "%s: literal %u is used and not defined", r->path, literal);
	return -EINVAL;
}

static int check_all_known(struct reader *r)
{
	const struct kd_aiger *a = r->aiger;
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < a->latches; i++)
		ret = check_known(r, a->latch[i].next);
	for (i = 0; !ret && i < a->properties; i++)
		ret = check_known(r, a->property[i].bad);
	for (i = 0; !ret && i < a->constraints; i++)
		ret = check_known(r, a->constraint[i]);
	for (i = 0; !ret && i <= a->last; i++) {
		if (a->variable[i].kind != KD_AIGER_AND)
			continue;
		ret = check_known(r, a->variable[i].operand[0]);
		if (!ret)
			ret = check_known(r, a->variable[i].operand[1]);
	}
	return ret;
}

/*
 * Sort the gates depth first, with an explicit stack. A gate on the stack that is met again
 * depends on itself.
 */
static int sort_gates(struct reader *r)
{
	struct kd_aiger *a = r->aiger;
	uint32_t *stack = calloc((size_t)a->gates + 1, sizeof(*stack));
	/* by variable: the number of operands visited, 0 to 2; 3: the gate is sorted */
	uint8_t *seen = calloc((size_t)a->last + 1, sizeof(*seen));
	uint32_t depth, done = 0, i, v;
	int ret = stack && seen ? 0 : -ENOMEM;

	for (i = 0; !ret && i <= a->last; i++) {
		if (a->variable[i].kind != KD_AIGER_AND || seen[i])
			continue;
		depth = 0;
		stack[depth++] = i;
		while (!ret && depth) {
			v = stack[depth - 1];
			if (seen[v] == 2) {
				seen[v] = 3;
				a->order[done++] = v;
				depth--;
				continue;
			}
			v = a->variable[v].operand[seen[v]++] / 2;
			if (a->variable[v].kind != KD_AIGER_AND || seen[v] == 3)
				continue;
			if (seen[v]) {
				kd_say(r->message, "%s: gate %u depends on itself", r->path, 2 * v);
				ret = -EINVAL;
			} else {
				stack[depth++] = v;
			}
		}
	}
	free(stack);
	free(seen);
	return ret;
}

static int read_all(struct reader *r)
{
	struct kd_aiger *a = r->aiger;
	uint32_t i;
	int ret;

	ret = read_header(r);
	if (!ret)
		ret = read_inputs(r);
	for (i = 0; !ret && i < a->latches; i++)
		ret = read_latch(r, i);
	if (!ret)
		ret = read_properties(r, r->outputs, 'o');
	if (!ret)
		ret = read_properties(r, a->kind == 'b' ? a->properties : 0, 'b');
	if (!ret)
		ret = read_literals(r, a->constraints, a->constraint);
	for (i = 0; !ret && i < a->gates; i++)
		ret = read_gate(r, i);
	if (!ret)
		ret = read_symbols(r);
	if (!ret)
		ret = check_all_known(r);
	return ret ? ret : sort_gates(r);
}

int kd_aiger_read(const char *path, const unsigned char *file, size_t size,
		  struct kd_aiger **aiger, struct kdsm_reach_message *message)
{
	struct reader r = {
		.path = path, .file = file, .size = size, .line = 1, .message = message,
	};

	*aiger = calloc(1, sizeof(**aiger));
	if (!*aiger)
		return -ENOMEM;
	r.aiger = *aiger;
	return read_all(&r);
}

void kd_aiger_free(struct kd_aiger *aiger)
{
	uint32_t i;

	if (!aiger)
		return;
	for (i = 0; aiger->property && i < aiger->properties; i++)
		free(aiger->property[i].name);
	free(aiger->variable);
	free(aiger->latch);
	free(aiger->property);
	free(aiger->constraint);
	free(aiger->order);
	free(aiger);
}
