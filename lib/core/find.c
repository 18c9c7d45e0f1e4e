// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * KDSM_OP_FIND by the CPU on the own part. The module does the same for other nodes in
 * kmod/fabric/find.c.
 */
#include <errno.h>

#include <kdsm/uapi_table.h>

#include "internal.h"

/* Look at one entry. Returns an outcome, 0 to continue with the next entry, or an error. */
static int look(uint8_t *part, uint64_t index, struct kdsm_find *find)
{
	uint64_t *place = (uint64_t *)(part + index) + find->entry, *node;
	uint64_t entry = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	uint64_t mine = kdsm_entry(kdsm_fragment(find->fragment), find->number);
	__u64 number;
	int outcome;

	/*
	 * Release: the entry publishes the node, which the caller stored before. Pairs with
	 * the acquire load above.
	 */
	if (!entry && __atomic_compare_exchange_n(place, &entry, mine, false, __ATOMIC_ACQ_REL,
						  __ATOMIC_ACQUIRE))
		return KDSM_FIND_PUT;
	outcome = kdsm_find_judge(find, entry, &number);
	if (outcome == KDSM_FIND_FOUND) {
		node = (uint64_t *)(part + find->data) + 2 * (number - find->first);
		if (!kdsm_find_same(find, __atomic_load_n(&node[0], __ATOMIC_RELAXED),
				    __atomic_load_n(&node[1], __ATOMIC_RELAXED)))
			return 0;
	}
	if (outcome > 0)
		find->number = number;
	return outcome;
}

int kdsm_find_in(uint8_t *part, uint64_t size, uint64_t index, struct kdsm_find *find)
{
	int outcome = kdsm_find_check(find, index, size);

	if (outcome)
		return outcome;
	do {
		outcome = look(part, index, find);
		if (outcome < 0)
			return outcome;
	} while (!kdsm_find_ends(find, outcome));
	return 0;
}
