/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The instructions: tables A.1 to A.6 of Myrland's thesis. Assembler, disassembler, interpreter and
 * the check of dass(1) use this list, so an instruction stands here once.
 *
 * X(identifier, name, operands), with a letter for each operand:
 *	d	a register, which the instruction writes: N or [N]
 *	r	the first register of several: N or [N]
 *	s	a value: $NUMBER, N or [N]
 *	l	a label
 * Instructions of one name differ in the number of their operands.
 */
#ifndef DASS_INSTRUCTIONS_H
#define DASS_INSTRUCTIONS_H

/* Instructions that compute register a from its value and b, and cannot fail */
#define DASS_BINARY(X)						\
	X(and, "and", a & b)					\
	X(or, "or", a | b)					\
	X(xor, "xor", a ^ b)					\
	X(shl, "shl", b < 64 ? a << b : 0)			\
	X(shr, "shr", b < 64 ? a >> b : 0)			\
	X(add, "add", a + b)					\
	X(sub, "sub", a - b)					\
	X(mul, "mul", a * b)

/* Jumps, by the sign of the difference between the values that are compared */
#define DASS_JUMPS(X)						\
	X(jlt, "jlt", difference < 0)				\
	X(jgt, "jgt", difference > 0)				\
	X(jeq, "jeq", difference == 0)				\
	X(jne, "jne", difference != 0)				\
	X(jle, "jle", difference <= 0)				\
	X(jge, "jge", difference >= 0)

/* Jumps that also keep the difference, as cmp does */
#define DASS_COMPARE_JUMPS(X)					\
	X(cjl, "cjl", difference < 0)				\
	X(cjg, "cjg", difference > 0)				\
	X(cje, "cje", difference == 0)

#define DASS_BINARY_ROW(id, name, expression)	X(id, name, "ds")
#define DASS_JUMP_ROWS(id, name, condition)	X(id, name, "ssl") X(id##_kept, name, "l")
#define DASS_COMPARE_ROW(id, name, condition)	X(id, name, "ssl")

/* All instructions; the user defines X. */
#define DASS_INSTRUCTIONS					\
	/* registers */						\
	X(set, "set", "ds")					\
	X(in, "in", "d")					\
	X(out, "out", "s")					\
	X(clk, "clk", "d")					\
	/* memory */						\
	X(lod, "lod", "srs")					\
	X(pop, "pop", "rs")					\
	X(push, "push", "rs")					\
	X(str, "str", "srs")					\
	/* bits and arithmetic */				\
	DASS_BINARY(DASS_BINARY_ROW)				\
	X(div, "div", "ds")					\
	X(inc, "inc", "d")					\
	X(dec, "dec", "d")					\
	/* control */						\
	X(cmp, "cmp", "ss")					\
	X(jmp, "jmp", "l")					\
	DASS_JUMPS(DASS_JUMP_ROWS)				\
	DASS_COMPARE_JUMPS(DASS_COMPARE_ROW)			\
	X(for, "for", "dsl")					\
	X(hlt, "hlt", "")					\
	/* threads */						\
	X(fork, "fork", "ld")					\
	X(join, "join", "s")					\
	X(thid, "thid", "d")					\
	X(barr, "barr", "ss")					\
	X(lock, "lock", "s")					\
	X(unlock, "unlock", "s")				\
	X(wait, "wait", "s")					\
	X(signal, "signal", "s")

enum opcode {
#define X(id, name, operands) DASS_##id,
	DASS_INSTRUCTIONS
#undef X
	DASS_end,		/* behind the last instruction of a program */
	DASS_COUNT
};

#endif /* DASS_INSTRUCTIONS_H */
