// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The functions omp_*_lock() and omp_*_nest_lock(). gcc gives a lock 4 bytes and a nested lock 16,
 * clang gives each a pointer; so a lock uses 4 bytes, and a nested lock 8, for a pointer.
 */
#include <stdlib.h>
#include <string.h>
#include "internal.h"

/* A lock that its owner, a task, may lock several times */
struct nest {
	uint32_t lock;
	uint32_t count;
	const struct ko_task *owner;
};

KO_PUBLIC void omp_init_lock(uint32_t *lock)
{
	ko_lock_init(lock);
}

KO_PUBLIC void omp_init_lock_with_hint(uint32_t *lock, unsigned int hint)
{
	(void)hint;
	omp_init_lock(lock);
}

KO_PUBLIC void omp_destroy_lock(uint32_t *lock)
{
	ko_lock_destroy(lock);
}

KO_PUBLIC void omp_set_lock(uint32_t *lock)
{
	ko_lock(lock);
}

KO_PUBLIC void omp_unset_lock(uint32_t *lock)
{
	ko_unlock(lock);
}

KO_PUBLIC int omp_test_lock(uint32_t *lock)
{
	return ko_lock_try(lock);
}

/* ---- nested locks ---- */

KO_PUBLIC void omp_init_nest_lock(struct nest **lock)
{
	*lock = ko_shared_alloc(16, sizeof(**lock));
	if (!*lock)
		ko_fatal("no memory for a lock");
	memset(*lock, 0, sizeof(**lock));
	ko_lock_init(&(*lock)->lock);
}

KO_PUBLIC void omp_init_nest_lock_with_hint(struct nest **lock, unsigned int hint)
{
	(void)hint;
	omp_init_nest_lock(lock);
}

KO_PUBLIC void omp_destroy_nest_lock(struct nest **lock)
{
	ko_lock_destroy(&(*lock)->lock);
	free(*lock);
	*lock = NULL;
}

/* Only the owner itself can find itself here. */
static bool is_mine(const struct nest *nest)
{
	return __atomic_load_n(&nest->owner, __ATOMIC_RELAXED) == ko_self()->task;
}

static int own(struct nest *nest)
{
	__atomic_store_n(&nest->owner, ko_self()->task, __ATOMIC_RELAXED);
	return ++nest->count;
}

KO_PUBLIC void omp_set_nest_lock(struct nest **lock)
{
	if (!is_mine(*lock))
		ko_lock(&(*lock)->lock);
	own(*lock);
}

KO_PUBLIC int omp_test_nest_lock(struct nest **lock)
{
	return is_mine(*lock) || ko_lock_try(&(*lock)->lock) ? own(*lock) : 0;
}

KO_PUBLIC void omp_unset_nest_lock(struct nest **lock)
{
	struct nest *nest = *lock;

	if (--nest->count)
		return;
	__atomic_store_n(&nest->owner, NULL, __ATOMIC_RELAXED);
	ko_unlock(&nest->lock);
}
