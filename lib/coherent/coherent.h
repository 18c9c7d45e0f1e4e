/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface of lib/coherent to the other folders of the library: a round of the tree barrier
 * that carries data. The public interface is in <kdsm/coherent.h>. This header is not installed.
 */
#ifndef KDSM_COHERENT_INTERFACE_H
#define KDSM_COHERENT_INTERFACE_H

#include <kdsm/coherent.h>
#include "core/core.h"

/* Bytes of a message with data, and the most data of it */
#define KD_CARGO_SIZE	4096
#define KD_CARGO_MOST	(KD_CARGO_SIZE - 8)
/* Bytes that the cargo of a barrier takes in every part */
#define KD_CARGO_BYTES	((KDSM_TREE_BARRIER_ARITY + 1) * KD_CARGO_SIZE)

/*
 * The data of a round. The participant that leads its node calls the functions. A negative errno
 * of collect() or combine() breaks the barrier.
 */
struct kd_cargo {
	/* Of KD_CARGO_BYTES bytes in every part, a multiple of 64. The bytes are zero at first. */
	uint64_t place;
	/* The sum over the nodes so far, of bytes bytes: at most KD_CARGO_MOST, a multiple of 8 */
	void *sum;
	uint32_t bytes;
	/* Store the sum over the participants of this node in sum. */
	int (*collect)(struct kd_cargo *cargo);
	/* Add the sum of other nodes to sum. */
	int (*combine)(struct kd_cargo *cargo, const void *theirs);
	/* Hand sum, which is over all nodes now, to the participants of this node. */
	void (*deliver)(struct kd_cargo *cargo);
};

/**
 * kd_tree_barrier_meet() - wait until all have arrived, and sum up the data that they bring
 * @barrier: as of kdsm_tree_barrier_wait()
 * @cargo: the same functions and number of bytes at all participants; a message with data takes
 *	as many puts as one without
 * @timeout: in ns, or KDSM_FOREVER
 * @culprit: filled in with the node that caused a failure; may be NULL
 *
 * Return: as kdsm_tree_barrier_wait(), or the error of a function of @cargo.
 */
int kd_tree_barrier_meet(const struct kdsm_tree_barrier *barrier, struct kd_cargo *cargo,
			 uint64_t timeout, unsigned int *culprit) KDSM_PRIVATE;

/**
 * kd_tree_barrier_break() - end the waits of all participants on all nodes with -EPIPE
 * @barrier: unusable afterwards
 * @culprit: the node that caused the failure
 */
void kd_tree_barrier_break(const struct kdsm_tree_barrier *barrier,
			   unsigned int culprit) KDSM_PRIVATE;

#endif /* KDSM_COHERENT_INTERFACE_H */
