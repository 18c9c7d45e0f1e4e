// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions __atomic_*() of libatomic, which gcc calls with -fno-inline-atomics, and clang for
 * types that no instruction handles. In the heap of a program of several members, unless the heap
 * has policy strict, an instruction is atomic on one node only: there the module performs the
 * operation.
 */
#include <stdlib.h>
#include <string.h>
#include "span.h"

static unsigned int order_of(int order)
{
	return order == __ATOMIC_RELAXED ? 0 : KDSM_ATOMIC_RELEASE | KDSM_ATOMIC_ACQUIRE;
}

static void check(int error)
{
	if (error)
		ko_fatal("cannot perform an atomic operation: %s", kdsm_error(error));
}

/* ---- words in the heap: of 4 or 8 bytes, or within 4 ---- */

static uint64_t offset_of(const void *at)
{
	return (uintptr_t)at - (uintptr_t)kdsm_region_address(kdsm_job_region(ko_job));
}

static uint64_t mask_of(unsigned int size)
{
	return size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * size) - 1;
}

static uint64_t heap_load(const void *at, unsigned int size, int order)
{
	unsigned int word = size < 4 ? 4 : size;
	uint64_t offset = offset_of(at), value;

	check(kdsm_atomic_load(kdsm_job_region(ko_job), offset & ~UINT64_C(3), word,
			       order_of(order), &value));
	return size < 4 ? value >> offset % 4 * 8 & mask_of(size) : value;
}

/* Returns the value before: expected if the operation stored desired. */
static uint64_t heap_cas(void *at, unsigned int size, uint64_t expected, uint64_t desired,
			 int order)
{
	unsigned int word = size < 4 ? 4 : size, shift = size < 4 ? offset_of(at) % 4 * 8 : 0;
	uint64_t offset = offset_of(at) & ~UINT64_C(3), mask = mask_of(size) << shift;
	uint64_t around = 0, former;

	if (size < 4)
		check(kdsm_atomic_load(kdsm_job_region(ko_job), offset, word, 0, &around));
	for (;;) {
		check(kdsm_atomic_cas(kdsm_job_region(ko_job), offset, word, order_of(order),
				      (around & ~mask) | expected << shift,
				      (around & ~mask) | desired << shift, &former));
		/* Repeat if only bytes around the value differed. */
		if (((former ^ around) & ~mask) == 0 || (former & mask) >> shift != expected)
			return (former & mask) >> shift;
		around = former;
	}
}

/* ---- words of 1, 2, 4 and 8 bytes ---- */

#define NAME(operation, size)	__asm__("__atomic_" #operation "_" #size)

/* A function that stores a value computed from the old one, was, and returns the old one */
#define UPDATE(size, type, name, expression) \
	KO_PUBLIC type name##_##size(type *at, type by, int order) NAME(name, size); \
	KO_PUBLIC type name##_##size(type *at, type by, int order) \
	{ \
		type was = load_##size(at, __ATOMIC_RELAXED); \
		\
		while (!cas_##size(at, &was, expression, order, order)) \
			; \
		return was; \
	}

/* The same, and a function that returns the new value */
#define MODIFY(size, type, operation, expression) \
	UPDATE(size, type, fetch_##operation, expression) \
	KO_PUBLIC type operation##_fetch_##size(type *at, type by, int order) \
		NAME(operation##_fetch, size); \
	KO_PUBLIC type operation##_fetch_##size(type *at, type by, int order) \
	{ \
		type was = fetch_##operation##_##size(at, by, order); \
		\
		return expression; \
	}

#define WORD(size, type) \
	KO_PUBLIC type load_##size(const type *at, int order) NAME(load, size); \
	KO_PUBLIC type load_##size(const type *at, int order) \
	{ \
		return ko_is_release(at) ? heap_load(at, size, order) : \
					   __atomic_load_n(at, __ATOMIC_SEQ_CST); \
	} \
	KO_PUBLIC bool cas_##size(type *at, type *expected, type desired, int order, int failed) \
		NAME(compare_exchange, size); \
	KO_PUBLIC bool cas_##size(type *at, type *expected, type desired, int order, int failed) \
	{ \
		type was = *expected; \
		\
		(void)failed; \
		if (!ko_is_release(at)) \
			return __atomic_compare_exchange_n(at, expected, desired, false, \
							   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		*expected = heap_cas(at, size, was, desired, order); \
		return *expected == was; \
	} \
	UPDATE(size, type, exchange, by) \
	KO_PUBLIC void store_##size(type *at, type by, int order) NAME(store, size); \
	KO_PUBLIC void store_##size(type *at, type by, int order) \
	{ \
		exchange_##size(at, by, order); \
	} \
	MODIFY(size, type, add, was + by) \
	MODIFY(size, type, sub, was - by) \
	MODIFY(size, type, and, was & by) \
	MODIFY(size, type, or, was | by) \
	MODIFY(size, type, xor, was ^ by) \
	MODIFY(size, type, nand, ~(was & by))

WORD(1, uint8_t)
WORD(2, uint16_t)
WORD(4, uint32_t)
WORD(8, uint64_t)

/* ---- objects of any size ---- */

/*
 * The compilers call these for sizes that no instruction handles. So only these functions change
 * the object, under a lock.
 */
static void begin(void)
{
	ko_lock(&ko_locks->atomic);
}

static void end(void)
{
	ko_unlock(&ko_locks->atomic);
}

KO_PUBLIC void load_any(size_t size, const void *at, void *to, int order) __asm__("__atomic_load");
KO_PUBLIC void load_any(size_t size, const void *at, void *to, int order)
{
	(void)order;
	begin();
	memcpy(to, at, size);
	end();
}

KO_PUBLIC void store_any(size_t size, void *at, const void *from, int order)
	__asm__("__atomic_store");
KO_PUBLIC void store_any(size_t size, void *at, const void *from, int order)
{
	(void)order;
	begin();
	memcpy(at, from, size);
	end();
}

KO_PUBLIC void exchange_any(size_t size, void *at, const void *from, void *to, int order)
	__asm__("__atomic_exchange");
KO_PUBLIC void exchange_any(size_t size, void *at, const void *from, void *to, int order)
{
	(void)order;
	begin();
	memcpy(to, at, size);
	memcpy(at, from, size);
	end();
}

KO_PUBLIC bool cas_any(size_t size, void *at, void *expected, const void *desired, int order,
		       int failed) __asm__("__atomic_compare_exchange");
KO_PUBLIC bool cas_any(size_t size, void *at, void *expected, const void *desired, int order,
		       int failed)
{
	bool same;

	(void)order;
	(void)failed;
	begin();
	same = !memcmp(at, expected, size);
	if (same)
		memcpy(at, desired, size);
	else
		memcpy(expected, at, size);
	end();
	return same;
}
