// SPDX-License-Identifier: GPL-2.0
/*
 * The assembler. A line has a label, an instruction, or nothing. Jumps keep the names of their
 * labels until all lines are read.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

#define MOST_BYTES	(64U << 20)	/* of a source file */

/* A word of a line */
struct token {
	const char *text;
	size_t length;
};

struct label {
	struct token name;
	uint32_t target;	/* index of an instruction */
	unsigned int line;
};

/* A label that an instruction jumps to */
struct jump {
	struct token name;
	uint32_t from;		/* index of the instruction */
};

struct assembler {
	struct program *program;
	struct dass_error *error;
	unsigned int line;
	char quoted[33];	/* see quote() */
	struct label *labels;
	struct jump *jumps;
	size_t label_count, jump_count;
	size_t label_room, jump_room, code_room, constant_room;
};

/* Return the word for a message, at most 32 characters of it. It is valid until the next call. */
static const char *quote(struct assembler *as, struct token word)
{
	size_t length = word.length < sizeof(as->quoted) - 1 ? word.length : sizeof(as->quoted) - 1;

	memcpy(as->quoted, word.text, length);
	as->quoted[length] = '\0';
	return as->quoted;
}

/* Make room for one more item. Returns 0, or -1 with an error. */
static int grow(struct assembler *as, void *items, size_t count, size_t *room, size_t size)
{
	void *larger;

	if (count < *room)
		return 0;
	*room = *room ? 2 * *room : 64;
	larger = reallocarray(*(void **)items, *room, size);
	if (!larger)
		return dass_fail(as->error, as->line, "out of memory");
	*(void **)items = larger;
	return 0;
}

/* ---- words ---- */

static bool is_name(struct token word)
{
	size_t i;

	for (i = 0; i < word.length; i++)
		if (!isalnum((unsigned char)word.text[i]) && word.text[i] != '_' &&
		    word.text[i] != '.')
			return false;
	return word.length && !isdigit((unsigned char)*word.text);
}

/* Take the next word of the line that ends at end. Its length is 0 if there is none. */
static struct token next_word(const char **at, const char *end)
{
	struct token word;

	while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
		++*at;
	word.text = *at;
	while (*at < end && !strchr(" \t\r;", **at ? **at : 'x'))
		++*at;
	word.length = *at - word.text;
	return word;
}

int integer_parse(const char *text, size_t length, int64_t *value)
{
	bool negative = length && *text == '-';
	size_t i = negative, base = 10;
	uint64_t sum = 0, most;
	unsigned int digit;

	if (length - i > 2 && text[i] == '0' && text[i + 1] == 'x') {
		i += 2;
		base = 16;
	}
	/* A hexadecimal number is a pattern of 64 bits. */
	most = base == 16 && !negative ? UINT64_MAX : (uint64_t)INT64_MAX + negative;
	if (i >= length)
		return -1;
	for (; i < length; i++) {
		if (!isxdigit((unsigned char)text[i]))
			return -1;
		digit = isdigit((unsigned char)text[i]) ? text[i] - '0' :
			(text[i] | 0x20) - 'a' + 10;
		if (digit >= base || sum > (most - digit) / base)
			return -1;
		sum = sum * base + digit;
	}
	*value = negative ? -sum : sum;
	return 0;
}

/* ---- operands ---- */

static int take_constant(struct assembler *as, struct token word, uint32_t *at)
{
	struct program *program = as->program;
	int64_t value;

	if (integer_parse(word.text + 1, word.length - 1, &value))
		return dass_fail(as->error, as->line, "'%s' is not a number of 64 bits",
				 quote(as, word));
	if (grow(as, &program->constants, program->constant_count, &as->constant_room,
		 sizeof(*program->constants)))
		return -1;
	*at = program->registers + program->constant_count;
	program->constants[program->constant_count++] = value;
	return 0;
}

static int take_register(struct assembler *as, struct token word, uint32_t *at)
{
	int64_t number;

	if (integer_parse(word.text, word.length, &number))
		return dass_fail(as->error, as->line, "'%s' is not a number of a register",
				 quote(as, word));
	if (number < 0 || number >= as->program->registers)
		return dass_fail(as->error, as->line, "there is no register %s, only 0 to %u",
				 quote(as, word), as->program->registers - 1);
	*at = number;
	return 0;
}

static int take_label(struct assembler *as, struct token word)
{
	if (!is_name(word))
		return dass_fail(as->error, as->line, "'%s' is not a label", quote(as, word));
	if (grow(as, &as->jumps, as->jump_count, &as->jump_room, sizeof(*as->jumps)))
		return -1;
	as->jumps[as->jump_count++] = (struct jump){ word, as->program->length };
	return 0;
}

static int take_operand(struct assembler *as, struct insn *insn, unsigned int i, struct token word)
{
	char kind = op_operands[insn->op][i];
	struct token inner = { word.text + 1, word.length - 2 };

	if (kind == 'l')
		return take_label(as, word);
	if (*word.text == '$') {
		if (kind == 's')
			return take_constant(as, word, &insn->at[i]);
		return dass_fail(as->error, as->line, "operand %u of %s is a register, not '%s'",
				 i + 1, op_names[insn->op], quote(as, word));
	}
	if (*word.text != '[')
		return take_register(as, word, &insn->at[i]);
	if (word.length < 3 || word.text[word.length - 1] != ']')
		return dass_fail(as->error, as->line, "'%s' is not of the form [NUMBER]",
				 quote(as, word));
	insn->indirect |= 1 << i;
	return take_register(as, inner, &insn->at[i]);
}

/* ---- lines ---- */

/* Find the instruction with this name and number of operands. Returns its enum opcode, or -1. */
static int find_op(struct assembler *as, struct token name, unsigned int count)
{
	unsigned int op, other = DASS_end, two = DASS_end;

	for (op = 0; op < DASS_end; op++) {
		if (strlen(op_names[op]) != name.length ||
		    memcmp(op_names[op], name.text, name.length))
			continue;
		if (strlen(op_operands[op]) == count)
			return op;
		two = other;
		other = op;
	}
	if (other == DASS_end)
		return dass_fail(as->error, as->line, "there is no instruction '%s'",
				 quote(as, name));
	if (two != DASS_end)
		return dass_fail(as->error, as->line, "%s has %zu operands or %zu, not %u",
				 op_names[op = other], strlen(op_operands[two]),
				 strlen(op_operands[other]), count);
	return dass_fail(as->error, as->line, "%s has %zu operand%s, not %u", op_names[other],
			 strlen(op_operands[other]), strlen(op_operands[other]) == 1 ? "" : "s",
			 count);
}

static int take_instruction(struct assembler *as, struct token *words, unsigned int count)
{
	struct program *program = as->program;
	struct insn insn = { .line = as->line };
	int op = find_op(as, words[0], count - 1);
	unsigned int i;

	if (op < 0)
		return -1;
	insn.op = op;
	for (i = 0; i + 1 < count; i++)
		if (take_operand(as, &insn, i, words[i + 1]))
			return -1;
	/* One more than this one: DASS_end follows the last. */
	if (grow(as, &program->code, program->length + 1, &as->code_room, sizeof(insn)))
		return -1;
	program->code[program->length++] = insn;
	return 0;
}

static int define_label(struct assembler *as, struct token word, unsigned int count)
{
	struct token name = { word.text + 1, word.length - 1 };

	if (!is_name(name))
		return dass_fail(as->error, as->line, "'%s' is not a label", quote(as, name));
	if (count > 1)
		return dass_fail(as->error, as->line, "label %s does not end its line",
				 quote(as, name));
	if (grow(as, &as->labels, as->label_count, &as->label_room, sizeof(*as->labels)))
		return -1;
	as->labels[as->label_count++] = (struct label){ name, as->program->length, as->line };
	return 0;
}

static int take_line(struct assembler *as, const char *at, const char *end)
{
	struct token words[OPERANDS + 1], word;
	unsigned int count = 0;

	for (; (word = next_word(&at, end)).length; count++)
		if (count <= OPERANDS)
			words[count] = word;
	if (!count)
		return 0;
	if (*words[0].text == ':')
		return define_label(as, words[0], count);
	/* No instruction has as many operands, so find_op() refuses more. */
	return take_instruction(as, words, count);
}

/* ---- labels ---- */

static int compare_names(struct token a, struct token b)
{
	int order = memcmp(a.text, b.text, a.length < b.length ? a.length : b.length);

	return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_labels(const void *a, const void *b)
{
	const struct label *one = a, *other = b;
	int order = compare_names(one->name, other->name);

	return order ? order : (one->line > other->line) - (one->line < other->line);
}

static int compare_label(const void *name, const void *label)
{
	return compare_names(*(const struct token *)name, ((const struct label *)label)->name);
}

static int resolve(struct assembler *as)
{
	const struct label *label;
	struct insn *insn;
	size_t i;

	if (as->label_count)
		qsort(as->labels, as->label_count, sizeof(*as->labels), compare_labels);
	for (i = 1; i < as->label_count; i++)
		if (!compare_names(as->labels[i - 1].name, as->labels[i].name))
			return dass_fail(as->error, as->labels[i].line,
					 "label %s is in line %u, too",
					 quote(as, as->labels[i].name), as->labels[i - 1].line);
	for (i = 0; i < as->jump_count; i++) {
		insn = &as->program->code[as->jumps[i].from];
		label = as->label_count ?
			bsearch(&as->jumps[i].name, as->labels, as->label_count, sizeof(*label),
				compare_label) : NULL;
		if (!label)
			return dass_fail(as->error, insn->line, "there is no label %s",
					 quote(as, as->jumps[i].name));
		/* A file has so few instructions that this has 31 bits. */
		insn->at[LABEL] = (const char *)&as->program->code[label->target] -
				  (const char *)insn;
	}
	return 0;
}

/* ---- files ---- */

static int read_all(int fd, char **text, size_t *length, struct dass_error *error)
{
	size_t room = 1 << 16;
	ssize_t got;
	char *larger;

	for (*length = 0;; *length += got) {
		if (*length > MOST_BYTES)
			return dass_fail(error, 0, "has more than %u MiB", MOST_BYTES >> 20);
		if (!*text || *length == room) {
			room = *text ? 2 * room : room;
			larger = realloc(*text, room);
			if (!larger)
				return dass_fail(error, 0, "out of memory");
			*text = larger;
		}
		do
			got = read(fd, *text + *length, room - *length);
		while (got < 0 && errno == EINTR);
		if (got < 0)
			return dass_fail(error, 0, "%s", strerror(errno));
		if (!got)
			return 0;
	}
}

static int read_file(const char *path, char **text, size_t *length, struct dass_error *error)
{
	int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(0), ret;

	if (fd < 0)
		return dass_fail(error, 0, "%s", strerror(errno));
	ret = read_all(fd, text, length, error);
	close(fd);
	return ret;
}

static int assemble(struct assembler *as, const char *text, size_t length)
{
	const char *end = text + length, *stop;
	int ret = 0;

	for (as->line = 1; text < end && !ret; as->line++, text = stop + 1) {
		stop = memchr(text, '\n', end - text);
		stop = stop ? stop : end;
		ret = take_line(as, text, stop);
	}
	as->line -= as->line > 1;
	if (!ret && !as->program->length)
		ret = dass_fail(as->error, as->line, "the program has no instruction");
	if (ret)
		return ret;
	as->program->code[as->program->length] = (struct insn){
		.op = DASS_end,
		.line = as->line,
	};
	return resolve(as);
}

int program_read(struct program *program, const char *path, uint32_t registers,
		 struct dass_error *error)
{
	struct assembler as = { .program = program, .error = error };
	char *text = NULL;
	size_t length = 0;
	int ret;

	*program = (struct program){ .path = path, .registers = registers };
	ret = read_file(path, &text, &length, error);
	if (!ret)
		ret = assemble(&as, text, length);
	free(as.labels);
	free(as.jumps);
	free(text);
	return ret;
}

void program_free(struct program *program)
{
	free(program->code);
	free(program->constants);
	*program = (struct program){ 0 };
}
