// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that all threads share, and the stack of each. A word has 8 bytes, and an access to one
 * word is atomic. Every access is checked.
 */
#include <inttypes.h>
#include <string.h>

#include "machine.h"

#define WORD	sizeof(int64_t)

static int check_registers(struct thread *thread, uint32_t first, int64_t count)
{
	uint32_t registers = thread->machine->program.registers;

	if (count >= 0 && (uint64_t)count <= registers - first)
		return 0;
	if (count < 0)
		return thread_fail(thread, "%" PRId64 " registers are less than none", count);
	return thread_fail(thread, "%" PRId64 " registers from %" PRIu32
			   " on: there are only 0 to %" PRIu32, count, first, registers - 1);
}

/* Find the words at address. Returns NULL with an error if they are not in memory. */
static int64_t *find(struct thread *thread, int64_t address, uint32_t first, int64_t count)
{
	uint64_t size = thread->machine->options.memory, at = address;

	if (check_registers(thread, first, count))
		return NULL;
	if (at % WORD) {
		thread_fail(thread, "address %" PRId64 " is no multiple of %zu", address, WORD);
		return NULL;
	}
	/* count is at most the number of registers, so the product is small. */
	if (at > size || count * WORD > size - at) {
		thread_fail(thread, "%" PRId64 " words at address %" PRId64 " are outside of the "
			    "memory, which has %" PRIu64 " bytes", count, address, size);
		return NULL;
	}
	return (int64_t *)(thread->machine->memory + at);
}

int memory_load(struct thread *thread, int64_t address, uint32_t first, int64_t count)
{
	const int64_t *from = find(thread, address, first, count);
	int64_t *to = thread->file + first;

	if (!from)
		return -1;
	while (count--)
		*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
	return 0;
}

int memory_store(struct thread *thread, int64_t address, uint32_t first, int64_t count)
{
	int64_t *to = find(thread, address, first, count);
	const int64_t *from = thread->file + first;

	if (!to)
		return -1;
	while (count--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
	return 0;
}

int stack_push(struct thread *thread, uint32_t first, int64_t count)
{
	uint64_t room = stack_room(thread->machine);

	if (check_registers(thread, first, count))
		return -1;
	if ((uint64_t)count > room - thread->depth)
		return thread_fail(thread, "the stack is full: it has %" PRIu64 " of at most %"
				   PRIu64 " words", thread->depth, room);
	memcpy(thread->stack + thread->depth, thread->file + first, count * WORD);
	thread->depth += count;
	return 0;
}

int stack_pop(struct thread *thread, uint32_t first, int64_t count)
{
	if (check_registers(thread, first, count))
		return -1;
	if ((uint64_t)count > thread->depth)
		return thread_fail(thread, "the stack has only %" PRIu64 " words", thread->depth);
	thread->depth -= count;
	memcpy(thread->file + first, thread->stack + thread->depth, count * WORD);
	return 0;
}
