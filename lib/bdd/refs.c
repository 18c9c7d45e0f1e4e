// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Edges that are protected from collections: a hash table that counts the protections of
 * each node number.
 */
#include <stdlib.h>

#include "bdd/bdd.h"

int kd_stack_push(struct kd_stack *stack, uint64_t word)
{
	uint64_t *more, capacity;

	if (stack->count == stack->capacity) {
		capacity = stack->capacity ? 2 * stack->capacity : 1024;
		more = reallocarray(stack->word, capacity, sizeof(*more));
		if (!more)
			return -ENOMEM;
		stack->word = more;
		stack->capacity = capacity;
	}
	stack->word[stack->count++] = word;
	return 0;
}

/*
 * Find the slot of a number, or the empty slot where it belongs. Number 0, the terminal's,
 * marks an empty slot.
 */
static struct kd_ref *find(const struct kd_refs *refs, uint64_t number)
{
	uint64_t at = kd_mix(number, UINT64_C(0x9e3779b97f4a7c15));

	for (;; at++) {
		struct kd_ref *ref = &refs->slot[at & (refs->size - 1)];

		if (!ref->number || ref->number == number)
			return ref;
	}
}

static int make_room(struct kd_refs *refs)
{
	struct kd_refs more = { .size = 64 };
	uint64_t i;

	for (i = 0; i < refs->size; i++)
		more.used += refs->slot[i].count != 0;
	while (more.size < 4 * more.used)
		more.size *= 2;
	more.slot = calloc(more.size, sizeof(*more.slot));
	if (!more.slot)
		return -ENOMEM;
	for (i = 0; i < refs->size; i++)
		if (refs->slot[i].count)
			*find(&more, refs->slot[i].number) = refs->slot[i];
	free(refs->slot);
	refs->slot = more.slot;
	refs->size = more.size;
	refs->used = more.used;
	return 0;
}

int kdsm_bdd_protect(struct kdsm_bdd_store *store, kdsm_bdd a)
{
	struct kd_refs *refs = &store->refs;
	struct kd_ref *ref;
	int r = 0;

	if (!kd_valid(a))
		return kd_invalid_edge();
	if (kd_terminal(a) || kd_number(a) >= KD_PRIVATE_FIRST)
		return 0;
	kd_mutex_lock(&refs->lock);
	if (refs->used >= refs->size / 2)
		r = make_room(refs);
	if (r == 0) {
		ref = find(refs, kd_number(a));
		refs->used += !ref->number;
		ref->number = kd_number(a);
		ref->count++;
	}
	kd_mutex_unlock(&refs->lock);
	return r;
}

void kdsm_bdd_unprotect(struct kdsm_bdd_store *store, kdsm_bdd a)
{
	struct kd_refs *refs = &store->refs;
	struct kd_ref *ref;

	if (!kd_valid(a) || kd_terminal(a))
		return;
	kd_mutex_lock(&refs->lock);
	ref = refs->size ? find(refs, kd_number(a)) : NULL;
	if (ref && ref->count)
		ref->count--;
	kd_mutex_unlock(&refs->lock);
}

int kd_refs_list(struct kd_refs *refs, struct kd_stack *stack)
{
	uint64_t i;
	int r = 0;

	kd_mutex_lock(&refs->lock);
	for (i = 0; r == 0 && i < refs->size; i++)
		if (refs->slot[i].count)
			r = kd_stack_push(stack, refs->slot[i].number);
	kd_mutex_unlock(&refs->lock);
	return r;
}
