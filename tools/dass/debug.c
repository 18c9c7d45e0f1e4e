// SPDX-License-Identifier: GPL-2.0
/*
 * The debugger: --trace prints each instruction of all threads before it runs, with the values of
 * its operands; --step shows those of thread 0, and asks the user.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"

/* ---- showing ---- */

/* Print the values of the registers that the instruction names, and of those that they name. */
static void show_values(const struct thread *thread, const struct insn *insn)
{
	const char *operands = op_operands[insn->op], *before = "\t; ";
	uint32_t registers = thread->machine->program.registers;
	unsigned int i;

	for (i = 0; operands[i]; i++) {
		uint32_t at = insn->at[i];

		if (operands[i] == 'l' || at >= registers)
			continue;
		fprintf(stderr, "%s%" PRIu32 " = %" PRId64, before, at, thread->file[at]);
		before = ", ";
		if (!(insn->indirect >> i & 1) || thread->file[at] < 0 ||
		    thread->file[at] >= registers)
			continue;
		fprintf(stderr, ", [%" PRIu32 "] = %" PRId64, at, thread->file[thread->file[at]]);
	}
}

static void show(const struct thread *thread)
{
	const struct program *program = &thread->machine->program;

	/* The output of the program so far comes first. */
	fflush(stdout);
	flockfile(stderr);
	fprintf(stderr, "%" PRIu64 "\t%s:%" PRIu32 "\t", thread->id, program->path,
		thread->at->line);
	program_print(stderr, program, thread->at);
	show_values(thread, thread->at);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* ---- commands of --step ---- */

/* Whether thread 0 stops at each instruction, and the line where it stops otherwise; 0: nowhere */
static bool stepping = true;
static int64_t stop_line;

/* A command of the user; returns whether the program goes on. */
struct command {
	char letter;
	unsigned int least, most;	/* numbers behind the letter */
	bool (*run)(struct thread *thread, const int64_t *numbers, unsigned int count);
	const char *doc;
};

static bool step(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	(void)thread;
	(void)numbers;
	(void)count;
	return true;
}

static bool go_on(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	(void)thread;
	stepping = false;
	stop_line = count ? numbers[0] : 0;
	return true;
}

/* Clip a range of what the machine has limit of. */
static uint64_t clip(int64_t first, int64_t count, uint64_t limit)
{
	if (first < 0 || (uint64_t)first >= limit || count < 0)
		return 0;
	return (uint64_t)count < limit - first ? (uint64_t)count : limit - first;
}

static bool show_registers(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	int64_t first = count ? numbers[0] : 0;
	uint64_t i, n = clip(first, count > 1 ? numbers[1] : count ? 1 : 8,
			     thread->machine->program.registers);

	for (i = first; i < first + n; i++)
		fprintf(stderr, "%" PRIu64 " = %" PRId64 "\n", i, thread->file[i]);
	return false;
}

static bool show_memory(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	uint64_t first = numbers[0] / 8, i;
	uint64_t n = clip(first, count > 1 ? numbers[1] : 1, thread->machine->options.memory / 8);
	const int64_t *memory = (int64_t *)thread->machine->memory;

	for (i = first; i < first + n; i++)
		fprintf(stderr, "at %" PRIu64 ": %" PRId64 "\n", i * 8,
			__atomic_load_n(&memory[i], __ATOMIC_ACQUIRE));
	return false;
}

static bool show_stack(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	uint64_t i, n = count && numbers[0] >= 0 ? (uint64_t)numbers[0] : 8;

	for (i = 0; i < n && i < thread->depth; i++)
		fprintf(stderr, "top - %" PRIu64 ": %" PRId64 "\n", i,
			thread->stack[thread->depth - 1 - i]);
	return false;
}

static bool quit(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	(void)numbers;
	(void)count;
	thread_fail(thread, "stopped by the user");
	machine_fail(thread);
}

static bool help(struct thread *thread, const int64_t *numbers, unsigned int count);

static const struct command commands[] = {
	{ 's', 0, 0, step, "run this instruction; so does an empty line" },
	{ 'c', 0, 1, go_on, "[LINE]: go on, up to this line of the source or to the end" },
	{ 'r', 0, 2, show_registers, "[FIRST [COUNT]]: show registers" },
	{ 'm', 1, 2, show_memory, "ADDRESS [COUNT]: show words of memory" },
	{ 'k', 0, 1, show_stack, "[COUNT]: show the top of the stack" },
	{ 'q', 0, 0, quit, "end the program" },
	{ 'h', 0, 0, help, "show the commands" },
};

#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static bool help(struct thread *thread, const int64_t *numbers, unsigned int count)
{
	size_t i;

	(void)thread;
	(void)numbers;
	(void)count;
	for (i = 0; i < COMMANDS; i++)
		fprintf(stderr, "%c %s\n", commands[i].letter, commands[i].doc);
	return false;
}

/* Read the numbers behind the letter of a command. Returns how many, or 3 if that fails. */
static unsigned int read_numbers(char *text, int64_t *numbers)
{
	char *rest, *word = strtok_r(text, " \t\n", &rest);
	unsigned int count = 0;

	for (; word; word = strtok_r(NULL, " \t\n", &rest))
		if (count == 2 || integer_parse(word, strlen(word), &numbers[count++]))
			return 3;
	return count;
}

/* Obey one line. Returns whether the program goes on. */
static bool obey(struct thread *thread, char *line)
{
	int64_t numbers[2] = { 0 };
	unsigned int count;
	size_t i;

	if (!*line || isspace((unsigned char)*line))
		return true;
	count = line[1] && !isspace((unsigned char)line[1]) ? 3 : read_numbers(line + 1, numbers);
	for (i = 0; i < COMMANDS; i++)
		if (commands[i].letter == *line && count >= commands[i].least &&
		    count <= commands[i].most)
			return commands[i].run(thread, numbers, count);
	fputs("there is no such command: h shows all\n", stderr);
	return false;
}

/* Without further commands the program goes on to its end. */
static void ask(struct thread *thread)
{
	size_t room = 0;
	char *line = NULL;

	do {
		fputs("dass> ", stderr);
		if (getline(&line, &room, stdin) < 0) {
			fputc('\n', stderr);
			go_on(thread, NULL, 0);
			break;
		}
	} while (!obey(thread, line));
	free(line);
}

void debug_instruction(struct thread *thread)
{
	const struct machine_options *options = &thread->machine->options;
	bool stop = options->step && !thread->id &&
		    (stepping || (stop_line && thread->at->line == stop_line));

	if (options->trace || stop)
		show(thread);
	if (!stop)
		return;
	stepping = true;
	ask(thread);
}
