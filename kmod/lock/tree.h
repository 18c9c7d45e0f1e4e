/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tree of queues by which a node gets a lock: one for each level at which its
 * element has others beside it. A lock of kind DMCS has one, that of all nodes. It
 * runs in the simulator (tests/sim/lock) unmodified, as the queues do.
 */
#ifndef KDSM_LOCK_TREE_H
#define KDSM_LOCK_TREE_H

#include "queue.h"
#include "topology.h"

struct kdsm_tree {
	const struct kdsm_topology *topology;
	unsigned int levels;		/* that the lock has: of the topology, or 2 */
	const u32 *t_l;			/* its settings; they may change between calls */
	u32 batch;			/* threads that were to have it in this node's turn */
	unsigned int count;		/* of the queues */
	unsigned int at;		/* the one that this node tries to get, or waits for */
	bool leaving;
	bool regained;			/* it came by itself; who sees to that takes it off */
	struct kdsm_queue *queues[KDSM_LOCK_LEVELS - 1];	/* the smallest element first */
	u32 sizes[KDSM_LOCK_LEVELS - 1];	/* nodes in the element of each */
	u64 handed[KDSM_LOCK_LEVELS];	/* [i - 1]: the lock, inside an element of level i */
};

/*
 * For each queue a copy of model, which has what is the same for all, up to node and
 * nodes. base, of all nodes: hash of the lock by which homes are spread. slot: the first of
 * levels of the topology - 1 places for queues in the memory. -ENOMEM.
 */
int kdsm_tree_create(struct kdsm_tree *tree, const struct kdsm_queue *model, u32 base,
		     u64 slot);
void kdsm_tree_destroy(struct kdsm_tree *tree);
/* That of a level, for messages, or NULL. */
struct kdsm_queue *kdsm_tree_queue(const struct kdsm_tree *tree, unsigned int level);

/*
 * All that follows is for tasks, one at a time.
 *
 * NONE; HELD: this node has the lock; PARTLY: it has some of the queues and is to enter
 * the next or to leave; ENTERING, WAITING, DOUBT: in the next; LEAVING: leave was not done.
 */
enum kdsm_queue_state kdsm_tree_state(struct kdsm_tree *tree);
/* NONE, PARTLY: as kdsm_queue_enter(), in the next of the queues. */
int kdsm_tree_enter(struct kdsm_tree *tree);
/*
 * After an error: it was of a queue that is not needed for long if its home is dead, as
 * that of the root sees to it.
 */
bool kdsm_tree_can_do_without(const struct kdsm_tree *tree);
/* NONE: have the lock if it is free. -EBUSY: it is not; the state can be PARTLY then. */
int kdsm_tree_try(struct kdsm_tree *tree);
/* As kdsm_queue_poll(). */
int kdsm_tree_poll(struct kdsm_tree *tree, bool look);
/* WAITING: those before this node can find it. */
bool kdsm_tree_is_published(const struct kdsm_tree *tree);
/*
 * HELD, PARTLY or LEAVING, and no thread of this node has the lock. 0: it is HELD, as
 * nobody else is in any queue, which needs keep; or NONE. With flags, of
 * KDSM_BATON_LOCK, it goes only to who is told of them: keep has to be set. An error: LEAVING.
 */
int kdsm_tree_leave(struct kdsm_tree *tree, bool keep, u32 flags);
/* As those of a queue, of the root. */
bool kdsm_tree_is_out(struct kdsm_tree *tree, bool *had);
int kdsm_tree_meet(struct kdsm_tree *tree);
/* HELD: a thread has it now; so many wanted it, with that one. */
void kdsm_tree_count(struct kdsm_tree *tree, unsigned int wanting);
/*
 * HELD: may a thread of this node have it next, one of so many that want it, or is it
 * the turn of others? Counts it then.
 */
bool kdsm_tree_may_pass(struct kdsm_tree *tree, unsigned int wanting);
/* HELD: as those of a queue. */
bool kdsm_tree_is_wanted(struct kdsm_tree *tree);
bool kdsm_tree_can_idle(struct kdsm_tree *tree);
/* HELD: with what it came, of KDSM_BATON_LOCK. */
u32 kdsm_tree_flags(const struct kdsm_tree *tree);
/* HELD, and nothing done yet: who handed the lock over; KDSM_NOBODY: it was free. */
unsigned int kdsm_tree_from(const struct kdsm_tree *tree);
/* HELD, LEAVING: is the lock still here? */
bool kdsm_tree_has_lock(const struct kdsm_tree *tree);
/* The queue of all nodes, or of all that are not alone: who gets that has the lock. */
static inline struct kdsm_queue *kdsm_tree_root(const struct kdsm_tree *tree)
{
	return tree->queues[tree->count - 1];
}

void kdsm_tree_stats(const struct kdsm_tree *tree, struct kdsm_queue_stats *stats);

/* A T_L where nothing tells what it is to be, if it is automatic. */
static inline u32 kdsm_tree_t_l(u32 t_l)
{
	return t_l == KDSM_LOCK_T_L_AUTO ? KDSM_LOCK_T_L_MOST : t_l;
}

/* Without order: has what this node waits for come? */
bool kdsm_tree_has_come(const struct kdsm_tree *tree);

#endif /* KDSM_LOCK_TREE_H */
