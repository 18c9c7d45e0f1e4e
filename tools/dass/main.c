// SPDX-License-Identifier: GPL-2.0
/* dass(1): run a program in the assembly language of Myrland's distributed virtual machine. */
#include <stdlib.h>

#include "common/cli.h"
#include "machine.h"

#define LEAST_MEMORY	4096U			/* bytes */
#define MOST_MEMORY	(UINT64_C(1) << 44)	/* bytes */
#define MOST_STACK	(UINT64_C(1) << 36)	/* bytes */
#define MOST_REGISTERS	65536U

struct arguments {
	struct machine_options machine;
	const char *path;
};

#define AT(member)	.offset = offsetof(struct arguments, machine.member)

static const struct cli_option options[] = {
	{ "threads", 'n', "COUNT", "Threads that begin at the first instruction (1)", CLI_COUNT,
	  AT(threads), .range = { 1, MOST_THREADS, 1 } },
	{ "memory", 'm', "SIZE", "Memory that the threads share (64M)", CLI_SIZE, AT(memory),
	  .range = { LEAST_MEMORY, MOST_MEMORY, 1 } },
	{ "stack", 's', "SIZE", "Stack of each thread (1M)", CLI_SIZE, AT(stack),
	  .range = { sizeof(int64_t), MOST_STACK, 1 } },
	{ "registers", 'r', "COUNT", "Registers of each thread (256)", CLI_COUNT, AT(registers),
	  .range = { 1, MOST_REGISTERS, 1 } },
	{ "local", 0, NULL, "Use this machine alone, without the kernel module", CLI_FLAG,
	  AT(local) },
	{ "trace", 't', NULL, "Print each instruction before it runs", CLI_FLAG, AT(trace) },
	{ "step", 0, NULL, "Ask before each instruction of thread 0", CLI_FLAG, AT(step) },
	{ "disassemble", 'd', NULL, "Print the assembled program, and do not run it", CLI_FLAG,
	  AT(disassemble) },
	{ 0 }
};

static int take_path(void *values, unsigned int index, const char *text, char *reason)
{
	(void)index;
	(void)reason;
	((struct arguments *)values)->path = text;
	return 0;
}

static const struct cli cli = {
	.doc = "Run the program in FILE (- for standard input), in the assembly language DASS.",
	.args = "FILE",
	.least = 1,
	.most = 1,
	.options = { options },
	.argument = take_path,
};

static void read_program(struct machine *machine, const char *path)
{
	struct dass_error error;

	if (!program_read(&machine->program, path, machine->options.registers, &error))
		return;
	dass_warn(path, &error);
	exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.machine = {
			.threads = 1, .registers = 256, .memory = 64 << 20, .stack = 1 << 20,
		},
	};
	static struct machine machine;

	cli_parse(&cli, argc, argv, &arguments);
	machine.options = arguments.machine;
	read_program(&machine, arguments.path);
	if (machine.options.disassemble) {
		program_disassemble(stdout, &machine.program);
	} else {
		machine_open(&machine);
		machine_run(&machine);
		machine_close(&machine);
	}
	program_free(&machine.program);
	return EXIT_SUCCESS;
}
