// SPDX-License-Identifier: GPL-2.0
/*
 * The interpreter: direct threaded code. Each instruction has the address of its code in
 * run(), which ends with a jump to the code of the next one.
 *
 * Operands are indices in the thread's file, where constants follow the registers, so the same code
 * serves both. The code "indirect" comes before that of an instruction with operands [N]: it copies
 * the instruction with the registers that [N] means. The body of an instruction reads its operands
 * through the pointer o, from the instruction or from this copy.
 *
 * A loop of one instruction of DASS_BINARY and a for is one superoperator: see fuses().
 */
#include <string.h>
#include <time.h>

#include "machine.h"

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * UINT64_C(1000000000) + time.tv_nsec;
}

/* Copy *insn with the registers that its operands [N] mean. */
static int resolve(struct thread *thread, const struct insn *insn, struct insn *resolved)
{
	uint32_t registers = thread->machine->program.registers;
	unsigned int i;

	*resolved = *insn;
	for (i = 0; i < OPERANDS; i++) {
		int64_t number;

		if (!(insn->indirect >> i & 1))
			continue;
		number = thread->file[insn->at[i]];
		if (number < 0 || number >= registers)
			return thread_fail(thread, "[%u]: there is no register %lld, only 0 to %u",
					   insn->at[i], (long long)number, registers - 1);
		resolved->at[i] = number;
	}
	return 0;
}

/* Values wrap, so they are computed without signs. */
static int64_t quotient(int64_t a, int64_t b)
{
	return b == -1 ? (int64_t)-(uint64_t)a : a / b;
}

/*
 * Tell whether insn and the next instruction are a loop that run() can keep in the processor's
 * registers: a for that jumps to insn, and whose counter and bound insn does not change.
 */
static bool fuses(const struct insn *insn)
{
	const struct insn *next = insn + 1;

	return next->op == DASS_for && insn_target(next, next) == insn &&
	       !insn->indirect && !next->indirect && insn->at[0] != insn->at[1] &&
	       insn->at[0] != next->at[0] && insn->at[0] != next->at[1] &&
	       next->at[0] != next->at[1];
}

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* The code of a program; NULL for thread: only choose the code of each instruction. */
static int run(struct thread *thread, struct machine *machine)
{
	/* Where the code of each instruction begins, and the part behind the choice of operands */
	static const void *const entry[] = {
#define X(id, name, operands) [DASS_##id] = &&entry_##id,
		DASS_INSTRUCTIONS
#undef X
		[DASS_end] = &&entry_end,
	};
	static const void *const body[] = {
#define X(id, name, operands) [DASS_##id] = &&body_##id,
		DASS_INSTRUCTIONS
#undef X
		[DASS_end] = &&body_end,
	};
	static const void *const loop[DASS_COUNT] = {
#define X(id, name, expression) [DASS_##id] = &&loop_##id,
		DASS_BINARY(X)
#undef X
	};
	const bool debug = machine->options.trace || machine->options.step;
	const struct insn *ip, *o = NULL;	/* o: where the operands are */
	struct insn resolved;
	int64_t *file;

	if (!thread) {
		struct insn *insn = machine->program.code, *last = insn + machine->program.length;

		for (; insn <= last; insn++)
			insn->handler = debug ? &&watched : insn->indirect ? &&indirect :
				entry[insn->op];
		for (insn = machine->program.code; !debug && insn + 1 < last; insn++)
			if (loop[insn->op] && fuses(insn))
				insn->handler = loop[insn->op];
		return 0;
	}
	file = thread->file;
	ip = thread->begin;

#define D	file[o->at[0]]
#define S(i)	file[o->at[i]]
#define GO()	goto *ip->handler
#define NEXT()	do { ip++; GO(); } while (0)
#define JUMP()	do { ip = insn_target(ip, o); GO(); } while (0)
#define JUMP_IF(condition)	do { if (condition) JUMP(); NEXT(); } while (0)
/* Begin the code of an instruction. */
#define CODE(id)	entry_##id: o = ip; body_##id:
/* Call a function that may fail. */
#define TRY(call)	do { thread->at = ip; if (call) return -1; } while (0)

	GO();

watched:
	thread->at = ip;
	debug_instruction(thread);
	if (!ip->indirect)
		goto *entry[ip->op];
indirect:
	TRY(resolve(thread, ip, &resolved));
	o = &resolved;
	goto *body[ip->op];

	CODE(set) D = S(1); NEXT();
	CODE(in) TRY(console_in(thread, &D)); NEXT();
	CODE(out) console_out(S(0)); NEXT();
	CODE(clk) D = (now() - thread->born) / 1000; NEXT();

	CODE(lod) TRY(memory_load(thread, S(0), o->at[1], S(2))); NEXT();
	CODE(pop) TRY(stack_pop(thread, o->at[0], S(1))); NEXT();
	CODE(push) TRY(stack_push(thread, o->at[0], S(1))); NEXT();
	CODE(str) TRY(memory_store(thread, S(0), o->at[1], S(2))); NEXT();

#define X(id, name, expression)						\
	CODE(id) {							\
		const uint64_t a = D, b = S(1);				\
									\
		D = expression;						\
		NEXT();							\
	}
	DASS_BINARY(X)
#undef X
	CODE(div) {
		if (!S(1))
			TRY(thread_fail(thread, "division by zero"));
		D = quotient(D, S(1));
		NEXT();
	}
	CODE(inc) D = (uint64_t)D + 1; NEXT();
	CODE(dec) D = (uint64_t)D - 1; NEXT();

	CODE(cmp) thread->difference = compare(S(0), S(1)); NEXT();
	CODE(jmp) JUMP();
#define X(id, name, condition)						\
	CODE(id) {							\
		const int difference = compare(S(0), S(1));		\
									\
		JUMP_IF(condition);					\
	}								\
	CODE(id##_kept) {						\
		const int difference = thread->difference;		\
									\
		JUMP_IF(condition);					\
	}
	DASS_JUMPS(X)
#undef X
#define X(id, name, condition)						\
	CODE(id) {							\
		const int difference = compare(S(0), S(1));		\
									\
		thread->difference = difference;			\
		JUMP_IF(condition);					\
	}
	DASS_COMPARE_JUMPS(X)
#undef X
	CODE(for) {
		const int64_t most = S(1);

		if (most <= D)
			NEXT();
		D++;
		JUMP();
	}
	CODE(hlt) TRY(sync_end(thread)); return 0;

	CODE(fork) TRY(thread_fork(thread, insn_target(ip, o), &S(1))); NEXT();
	CODE(join) TRY(thread_join(thread, S(0))); NEXT();
	CODE(thid) D = thread->id; NEXT();
	CODE(barr) TRY(sync_barrier(thread, S(0), S(1))); NEXT();
	CODE(lock) TRY(sync_lock(thread, S(0))); NEXT();
	CODE(unlock) TRY(sync_unlock(thread, S(0))); NEXT();
	CODE(wait) TRY(sync_wait(thread, S(0))); NEXT();
	CODE(signal) TRY(sync_signal(thread, S(0))); NEXT();

	CODE(end) TRY(thread_fail(thread, "the program ends without hlt")); NEXT();

	/* An instruction and the for behind it, until the for does not jump. */
#define X(id, name, expression)						\
	loop_##id: {							\
		const bool counts = ip->at[1] == ip[1].at[0];		\
		const uint64_t mask = -(uint64_t)counts;		\
		const uint64_t base = counts ? 0 : file[ip->at[1]];	\
		const int64_t most = file[ip[1].at[1]];			\
		int64_t counter = file[ip[1].at[0]];			\
		uint64_t a = file[ip->at[0]];				\
									\
		for (;; counter++) {					\
			const uint64_t b = base + (counter & mask);	\
									\
			a = expression;					\
			if (counter >= most)				\
				break;					\
		}							\
		file[ip->at[0]] = a;					\
		file[ip[1].at[0]] = counter;				\
		ip += 2;						\
		GO();							\
	}
	DASS_BINARY(X)
#undef X
}

int interpret(struct thread *thread)
{
	thread->born = now();
	return run(thread, thread->machine);
}

void interpret_prepare(struct machine *machine)
{
	run(NULL, machine);
}
