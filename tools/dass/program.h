/* SPDX-License-Identifier: GPL-2.0 */
/* An assembled program, and errors in it */
#ifndef DASS_PROGRAM_H
#define DASS_PROGRAM_H

#include <stdint.h>
#include <stdio.h>

#include "instructions.h"

#define OPERANDS	3	/* at most, of an instruction */
#define LABEL		2	/* no instruction has a label and three other operands */

/* An error in a program, or while it runs */
struct dass_error {
	unsigned int line;	/* from 1; 0: of no line */
	char reason[256];
};

/* error.c: store an error. Returns -1. */
int dass_fail(struct dass_error *error, unsigned int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* error.c: print an error of the program at path to stderr. */
void dass_warn(const char *path, const struct dass_error *error);

/**
 * struct insn - an instruction
 * @handler: address of its code in run.c
 * @at: for each operand but a label, an index in the thread's file: registers, then constants;
 *	at[LABEL], if there is a label: bytes from this instruction to the one that it names
 * @line: in the source, from 1
 * @op: enum opcode
 * @indirect: bit i is set if operand i is [N], so that at[i] is the register with the number
 */
struct insn {
	const void *handler;
	uint32_t at[OPERANDS];
	uint32_t line;
	uint8_t op;
	uint8_t indirect;
};

/* The instruction that the label of *insn names; of says where operands are, *insn or a copy. */
static inline const struct insn *insn_target(const struct insn *insn, const struct insn *of)
{
	return (const struct insn *)((const char *)insn + (int32_t)of->at[LABEL]);
}

struct program {
	const char *path;
	struct insn *code;	/* the last one is DASS_end */
	uint32_t length;	/* without DASS_end */
	uint32_t registers;
	int64_t *constants;	/* which follow the registers in the file of a thread */
	uint32_t constant_count;
};

/* instructions.c: name of an instruction, and a letter for each of its operands */
extern const char *const op_names[DASS_COUNT], *const op_operands[DASS_COUNT];

/*
 * Assemble the file at path, with that many registers. Returns 0, or -1 with an error; the caller
 * calls program_free() in both cases.
 */
int program_read(struct program *program, const char *path, uint32_t registers,
		 struct dass_error *error);
void program_free(struct program *program);

/* Print an instruction, without a line end. */
void program_print(FILE *file, const struct program *program, const struct insn *insn);
/* Print the whole program so that the assembler makes the same program of the text. */
void program_disassemble(FILE *file, const struct program *program);

/* Parse the whole text as an integer, decimal or with 0x. Returns 0 or -1. */
int integer_parse(const char *text, size_t length, int64_t *value);

#endif /* DASS_PROGRAM_H */
