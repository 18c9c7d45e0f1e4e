// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Numbers of the task types of the program. A task in a deque carries the number of its type,
 * because the addresses of functions differ between processes. Constructors register the
 * types in the order of linking, so a number means the same in all processes of one program.
 * The processes compare a hash of all types when they join a job (task.c).
 */
#include "internal.h"

#define TYPES	4096	/* Bound of the numbers of types; number 0 means none */

static struct kdsm_task_type *types[TYPES];
static uint32_t count;

/* If all numbers are taken, the type keeps number 0, and no worker can steal its tasks. */
void kdsm_task_register(struct kdsm_task_type *type)
{
	uint32_t id = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);

	if (id >= TYPES)
		return;
	type->id = id;
	__atomic_store_n(&types[id], type, __ATOMIC_RELEASE);
}

const struct kdsm_task_type *kd_task_type(uint32_t id)
{
	return id < TYPES ? __atomic_load_n(&types[id], __ATOMIC_ACQUIRE) : NULL;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15;
	return hash ^ hash >> 29;
}

uint64_t kd_task_types_hash(uint64_t hash)
{
	const struct kdsm_task_type *type;
	const char *c;
	uint32_t id;

	for (id = 1; id < TYPES; id++) {
		type = kd_task_type(id);
		if (!type)
			continue;
		hash = mix(mix(hash, id), (uint64_t)type->arguments << 32 | type->result);
		for (c = type->name; *c; c++)
			hash = mix(hash, *c);
	}
	return hash;
}
