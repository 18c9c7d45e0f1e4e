/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The edges that users of a process protect from collections. */
#ifndef KD_REFS_H
#define KD_REFS_H

#include <pthread.h>
#include <stdint.h>

/* Words, first in, last out. */
struct kd_stack {
	uint64_t *word;
	uint64_t count, capacity;
};

int kd_stack_push(struct kd_stack *stack, uint64_t word);

/* How often each number is protected. */
struct kd_refs {
	pthread_mutex_t lock;
	struct kd_ref {
		uint64_t number, count;
	} *slot;
	uint64_t size, used;		/* used: slots, a count of 0 included */
};

int kd_refs_list(struct kd_refs *refs, struct kd_stack *stack);

#endif /* KD_REFS_H */
