// SPDX-License-Identifier: LGPL-2.1-or-later
/* KDSM_OP_FIND by the CPU, on the own part, as kmod/find.c does it for others. */
#include <errno.h>

#include <linux/kdsm_table.h>

#include "operation.h"

#define NUMBERS		(UINT64_C(1) << 40)

static int check(const struct kdsm_find *find, uint64_t index, uint64_t size)
{
	if (!find->entries || find->entries > NUMBERS || find->entry >= find->entries ||
	    !find->nodes || find->nodes > NUMBERS || find->first > NUMBERS ||
	    find->number >= NUMBERS || find->outcome ||
	    !find->probes || find->probes > KDSM_FIND_PROBES_MAX || index % 8 || find->data % 8)
		return -EINVAL;
	if (index > size || find->entries > (size - index) / 8 ||
	    find->data > size || find->nodes > (size - find->data) / 16)
		return -ERANGE;
	return 0;
}

/* One entry: an outcome, 0 for going on, or an error. */
static int look(uint8_t *part, uint64_t index, struct kdsm_find *find)
{
	const uint64_t fragment = kdsm_fragment(find->fragment);
	uint64_t *place = (uint64_t *)(part + index) + find->entry;
	uint64_t entry = __atomic_load_n(place, __ATOMIC_ACQUIRE), number, *node;

	/* A release: the node, stored before, is behind the entry. */
	if (!entry && __atomic_compare_exchange_n(place, &entry,
						  kdsm_entry(fragment, find->number), false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return KDSM_FIND_PUT;
	if (!kdsm_entry_whole(entry))
		return -EIO;
	if ((entry & KDSM_FRAGMENT_MASK) != fragment)
		return 0;
	number = kdsm_entry_number(entry);
	if (number < find->first || number - find->first >= find->nodes) {
		find->number = number;
		return KDSM_FIND_ELSEWHERE;
	}
	node = (uint64_t *)(part + find->data) + 2 * (number - find->first);
	if ((__atomic_load_n(&node[0], __ATOMIC_RELAXED) ^ find->node[0]) & ~find->ignore ||
	    __atomic_load_n(&node[1], __ATOMIC_RELAXED) != find->node[1])
		return 0;
	find->number = number;
	return KDSM_FIND_FOUND;
}

int kdsm_find_in(uint8_t *part, uint64_t size, uint64_t index, struct kdsm_find *find)
{
	int outcome = check(find, index, size);

	if (outcome)
		return outcome;
	for (;;) {
		outcome = look(part, index, find);
		if (outcome < 0)
			return outcome;
		find->probes--;
		if (!outcome && !find->probes)
			outcome = KDSM_FIND_FULL;
		if (outcome)
			break;
		if (++find->entry == find->entries)
			find->entry = 0;
	}
	find->outcome = outcome;
	return 0;
}
