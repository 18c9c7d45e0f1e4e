// SPDX-License-Identifier: GPL-2.0
/* The disassembler */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static void print_operand(FILE *file, const struct program *program, const struct insn *insn,
			  unsigned int i)
{
	if (op_operands[insn->op][i] == 'l')
		fprintf(file, " L%td", insn_target(insn, insn) - program->code);
	else if (insn->at[i] >= program->registers)
		fprintf(file, " $%" PRId64, program->constants[insn->at[i] - program->registers]);
	else
		fprintf(file, insn->indirect >> i & 1 ? " [%" PRIu32 "]" : " %" PRIu32,
			insn->at[i]);
}

void program_print(FILE *file, const struct program *program, const struct insn *insn)
{
	unsigned int i;

	fputs(op_names[insn->op], file);
	for (i = 0; op_operands[insn->op][i]; i++)
		print_operand(file, program, insn, i);
}

static bool has_label(const struct insn *insn)
{
	return strchr(op_operands[insn->op], 'l');
}

void program_disassemble(FILE *file, const struct program *program)
{
	bool *named = calloc(program->length + 1, sizeof(*named));
	uint32_t i;

	for (i = 0; named && i < program->length; i++)
		if (has_label(&program->code[i]))
			named[insn_target(&program->code[i], &program->code[i]) - program->code] =
				true;
	/* Without memory to know which labels are used, each instruction has one. */
	for (i = 0; i <= program->length; i++) {
		if (!named || named[i])
			fprintf(file, ":L%" PRIu32 "\n", i);
		if (i == program->length)
			break;
		fputc('\t', file);
		program_print(file, program, &program->code[i]);
		fputc('\n', file);
	}
	free(named);
}
