// SPDX-License-Identifier: GPL-2.0
/*
 * A tree of queues. The nodes of an element queue for the lock of that element; who has
 * it queues, for the element, for that of the next larger one, and so on. Who has them
 * all has the lock. So it can be passed on many times inside an element before it
 * crosses to another: the locks of the larger elements go along with that of the
 * smallest in which somebody waits, in one message.
 *
 * Where an element has only one part, nobody competes: there is no queue. So without
 * locations there is one queue for all nodes.
 *
 * Thresholds. Each queue counts how often threads of the element that has it had the
 * lock since the element got it, or since it was last seen that no other waits (passes,
 * which goes along). At the threshold of that element's level its lock is released first,
 * to another element, and then those below without it: who gets them has to queue for it.
 * If nobody waits there it starts to count again.
 *
 * A threshold that is automatic is to let those have the lock who wait for it, and not
 * twice while others wait. So that of a node is the number of threads that wait there when
 * it gets the lock. Of a larger element no node knows how many wait, so what is counted
 * there is turns of nodes, and the threshold is how many it has: as its queue is in order,
 * who waits in it has had one then. KDSM_LOCK_T_L_MOST is the most of both, as not all may
 * want it, and those who do come again.
 *
 * Who has a larger element's lock need not be who queued for it, and that is the one that
 * is told who comes next (LOCK_TELL), if anybody is. It may have passed it on, and
 * forgets it then. So a lock that came along is not known to be wanted by nobody, unless
 * the word has been made to say that this node is the only one outstanding
 * (kdsm_queue_settle()); before that it is not idle. It is idle only if it is so in all
 * queues. What is known of who waits does not go along: names are in the ring, and one
 * that has told is what is left of the sum.
 *
 * Order of leaving. What is above a threshold, the largest first, while all else is still
 * held. Then the smallest; if somebody waits in its queue all goes along. If nobody does,
 * the next. In between, another node of the element may get the smaller lock, and queue
 * behind this one for the larger: that is no matter, as this one only leaves it. To stay, a
 * node has to be alone in all queues, so they are looked at first, and if one of them is
 * wanted those below it are left without it.
 *
 * While a hand-over is not answered the other may have got all that went along, so
 * nothing is done with that. The queue that is being left says so (LEAVING), and is always
 * dealt with first.
 *
 * The locks that came along are unpacked by a task, not when the message comes: before
 * that nothing asks for them, as a task looks at the state first.
 *
 * When nodes die only the root is used from then on: see lock_flat.c.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "tree.h"

/* ---- making it ---- */

/* Do the nodes of the element of that queue differ at the level below? */
static bool kdsm_tree_is_shared(const struct kdsm_topology *topology, unsigned int level,
				unsigned int levels, unsigned int node)
{
	const u16 *elements = kdsm_topology_level(topology, level);
	const u16 *parts = level + 1 < levels ? elements + topology->nodes : NULL;
	unsigned int other;

	for (other = 0; other < topology->nodes; other++)
		if (other != node && elements[other] == elements[node] &&
		    (!parts || parts[other] != parts[node]))
			return true;
	return false;
}

static u32 kdsm_tree_size(const struct kdsm_topology *topology, const u16 *elements,
			  unsigned int node)
{
	unsigned int other;
	u32 count = 0;

	for (other = 0; other < topology->nodes; other++)
		count += elements[other] == elements[node];
	return count;
}

/* One of the nodes of the element. */
static unsigned int kdsm_tree_home(const struct kdsm_topology *topology, const u16 *elements,
				   unsigned int node, u32 base)
{
	unsigned int other, nth = base % kdsm_tree_size(topology, elements, node);

	for (other = elements[node]; other < topology->nodes; other++)
		if (elements[other] == elements[node] && !nth--)
			break;
	return other;
}

int kdsm_tree_create(struct kdsm_tree *tree, const struct kdsm_queue *model, u32 base, u64 slot)
{
	const struct kdsm_topology *topology = tree->topology;
	unsigned int node = model->node, level = tree->levels;
	struct kdsm_queue *queue;

	tree->count = 0;
	while (--level) {
		/* A cluster of one node has that of the cluster. */
		if (!kdsm_tree_is_shared(topology, level, tree->levels, node) &&
		    (level > 1 || tree->count))
			continue;
		queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
		if (!queue) {
			kdsm_tree_destroy(tree);
			return -ENOMEM;
		}
		*queue = *model;
		queue->level = level;
		queue->elements = kdsm_topology_level(topology, level);
		tree->sizes[tree->count] = kdsm_tree_size(topology, queue->elements, model->node);
		queue->home = kdsm_tree_home(topology, queue->elements, node, base);
		kdsm_queue_place(queue, (slot + level - 1) * kdsm_queue_size(queue->nodes));
		kdsm_queue_init(queue);
		/* Of a smaller element: until the home of the root is known. */
		queue->recovers = false;
		queue->frozen = model->recovers;
		if (tree->count) {
			queue->child = tree->queues[tree->count - 1];
			queue->child->parent = queue;
		}
		tree->queues[tree->count++] = queue;
	}
	queue = kdsm_tree_root(tree);
	queue->recovers = model->recovers;
	queue->frozen = false;
	queue->deep = queue->recovers && tree->levels > 2;
	return 0;
}

void kdsm_tree_destroy(struct kdsm_tree *tree)
{
	while (tree->count)
		kfree(tree->queues[--tree->count]);
}

struct kdsm_queue *kdsm_tree_queue(const struct kdsm_tree *tree, unsigned int level)
{
	unsigned int i;

	for (i = 0; i < tree->count; i++)
		if (tree->queues[i]->level == level)
			return tree->queues[i];
	return NULL;
}

/* ---- getting it ---- */

static enum kdsm_queue_state kdsm_tree_queue_state(const struct kdsm_tree *tree, unsigned int i)
{
	return kdsm_queue_state(tree->queues[i]);
}

/* The first of the queues that are used: that of the root, if the lock has become flat. */
static unsigned int kdsm_tree_first(const struct kdsm_tree *tree)
{
	return READ_ONCE(kdsm_tree_root(tree)->flat) ? tree->count - 1 : 0;
}

/* The home may have given this node the lock again, which it was leaving. */
static void kdsm_tree_regain(struct kdsm_tree *tree)
{
	struct kdsm_queue *root = kdsm_tree_root(tree);

	if (!READ_ONCE(root->regained))
		return;
	spin_lock_bh(&root->lock);
	root->regained = false;
	spin_unlock_bh(&root->lock);
	tree->leaving = false;
	tree->regained = true;
}

bool kdsm_tree_is_out(struct kdsm_tree *tree, bool *had)
{
	bool out = kdsm_queue_is_out(kdsm_tree_root(tree), had);

	if (out) {
		tree->leaving = false;
		tree->regained = false;
	}
	return out;
}

int kdsm_tree_meet(struct kdsm_tree *tree)
{
	return kdsm_queue_meet(kdsm_tree_root(tree));
}

enum kdsm_queue_state kdsm_tree_state(struct kdsm_tree *tree)
{
	enum kdsm_queue_state state;
	unsigned int i, first;

	kdsm_tree_regain(tree);
	if (tree->leaving)
		return KDSM_QUEUE_LEAVING;
again:
	first = kdsm_tree_first(tree);
	for (i = first; i < tree->count; i++) {
		state = kdsm_tree_queue_state(tree, i);
		if (state != KDSM_QUEUE_HELD) {
			/* It becomes flat before the others are dropped. */
			smp_rmb();
			if (first != kdsm_tree_first(tree))
				goto again;
			WRITE_ONCE(tree->at, i);
			return state == KDSM_QUEUE_NONE && i > first ? KDSM_QUEUE_PARTLY : state;
		}
		/* What is above is not looked at before. */
		kdsm_queue_unpack(tree->queues[i]);
	}
	return KDSM_QUEUE_HELD;
}

bool kdsm_tree_has_come(const struct kdsm_tree *tree)
{
	return kdsm_tree_queue_state(tree, READ_ONCE(tree->at)) == KDSM_QUEUE_HELD;
}

/* Who queues anywhere has to know whether the root was written anew. */
static int kdsm_tree_begin(struct kdsm_tree *tree)
{
	struct kdsm_queue *root = kdsm_tree_root(tree);

	return root->recovers && !READ_ONCE(root->met) ? kdsm_queue_meet(root) : 0;
}

int kdsm_tree_enter(struct kdsm_tree *tree)
{
	return kdsm_tree_begin(tree) ?: kdsm_queue_enter(tree->queues[tree->at]);
}

bool kdsm_tree_can_do_without(const struct kdsm_tree *tree)
{
	const struct kdsm_queue *root = kdsm_tree_root(tree);

	return root->deep && root->met && tree->queues[tree->at] != root;
}

int kdsm_tree_try(struct kdsm_tree *tree)
{
	enum kdsm_queue_state state;
	int err;

	for (;;) {
		state = kdsm_tree_state(tree);
		if (state == KDSM_QUEUE_HELD)
			return 0;
		if (state != KDSM_QUEUE_NONE && state != KDSM_QUEUE_PARTLY)
			return -EBUSY;
		err = kdsm_tree_begin(tree) ?: kdsm_queue_try(tree->queues[tree->at]);
		if (err)
			return err;
	}
}

int kdsm_tree_poll(struct kdsm_tree *tree, bool look)
{
	return kdsm_queue_poll(tree->queues[tree->at], look);
}

bool kdsm_tree_is_published(const struct kdsm_tree *tree)
{
	return tree->queues[tree->at]->published;
}

/* ---- having it ---- */

/* T_L of the element that has queue i. */
static u32 kdsm_tree_threshold(const struct kdsm_tree *tree, unsigned int i)
{
	unsigned int level = i > kdsm_tree_first(tree) ? tree->queues[i - 1]->level : tree->levels;
	u32 t_l = KDSM_LOCK_T_L_AUTO;

	/* On the levels in between that element is the only part of a larger one. */
	for (; level > tree->queues[i]->level; level--)
		t_l = min(t_l, tree->t_l[level - 1]);
	return t_l;
}

/* How often it may have the lock. */
static u32 kdsm_tree_limit(const struct kdsm_tree *tree, unsigned int i)
{
	u32 t_l = kdsm_tree_threshold(tree, i);

	if (t_l != KDSM_LOCK_T_L_AUTO)
		return t_l;
	return clamp_t(u32, i > kdsm_tree_first(tree) ? tree->sizes[i - 1] : tree->batch, 1,
		       KDSM_LOCK_T_L_MOST);
}

void kdsm_tree_count(struct kdsm_tree *tree, unsigned int wanting)
{
	unsigned int first = kdsm_tree_first(tree), i;
	bool turn = !tree->queues[first]->passes;	/* this node's begins */
	struct kdsm_queue *queue;

	if (turn)
		tree->batch = wanting;
	for (i = first; i < tree->count; i++) {
		queue = tree->queues[i];
		/* The rest of a turn is one, too, if another element has had the lock since. */
		if (i > first && !turn && queue->passes &&
		    kdsm_tree_threshold(tree, i) == KDSM_LOCK_T_L_AUTO)
			continue;
		/* No further than what others take for sane. */
		queue->passes = min(queue->passes + 1, KDSM_LOCK_T_MAX);
	}
}

bool kdsm_tree_may_pass(struct kdsm_tree *tree, unsigned int wanting)
{
	struct kdsm_queue *queue;
	unsigned int i;

	for (i = kdsm_tree_first(tree); i < tree->count; i++) {
		queue = tree->queues[i];
		if (queue->passes < kdsm_tree_limit(tree, i))
			continue;
		/* If that fails the lock is handed over, or the next time tells. */
		kdsm_queue_check(queue);
		if (kdsm_queue_is_wanted(queue))
			return false;
		queue->passes = 0;
	}
	kdsm_tree_count(tree, wanting);
	return true;
}

bool kdsm_tree_is_wanted(struct kdsm_tree *tree)
{
	unsigned int i;

	for (i = kdsm_tree_first(tree); i < tree->count; i++)
		if (kdsm_queue_is_wanted(tree->queues[i]))
			return true;
	return false;
}

bool kdsm_tree_can_idle(struct kdsm_tree *tree)
{
	unsigned int i;

	for (i = kdsm_tree_first(tree); i < tree->count; i++)
		if (!kdsm_queue_can_idle(tree->queues[i]))
			return false;
	return true;
}

u32 kdsm_tree_flags(const struct kdsm_tree *tree)
{
	/* Only what came last has any, since it came with the lock. */
	return kdsm_queue_flags(kdsm_tree_root(tree));
}

unsigned int kdsm_tree_from(const struct kdsm_tree *tree)
{
	unsigned int i = tree->count - 1, first = kdsm_tree_first(tree);

	/* What came along came with the largest that did not. */
	while (i > first && tree->queues[i]->moved)
		i--;
	return tree->queues[i]->from;
}

bool kdsm_tree_has_lock(const struct kdsm_tree *tree)
{
	return kdsm_tree_queue_state(tree, tree->count - 1) >= KDSM_QUEUE_HELD;
}

/* ---- leaving it ---- */

/* The one that is being left, else the smallest that this node has; and how many it has. */
static unsigned int kdsm_tree_lowest(const struct kdsm_tree *tree, unsigned int *which)
{
	enum kdsm_queue_state state = KDSM_QUEUE_NONE;
	unsigned int i, held = 0;

	*which = 0;
	for (i = tree->count; i--;) {
		if (kdsm_tree_queue_state(tree, i) == KDSM_QUEUE_NONE)
			continue;
		held++;
		if (state == KDSM_QUEUE_LEAVING)
			continue;
		state = kdsm_tree_queue_state(tree, i);
		*which = i;
	}
	return held;
}

/* The largest above the smallest whose element had the lock so often that others come first. */
static bool kdsm_tree_exceeded(struct kdsm_tree *tree, unsigned int *which)
{
	unsigned int i, first = kdsm_tree_first(tree);
	struct kdsm_queue *queue;

	for (i = tree->count - 1; i > first; i--) {
		queue = tree->queues[i];
		if (kdsm_queue_state(queue) != KDSM_QUEUE_HELD ||
		    queue->passes < kdsm_tree_limit(tree, i))
			continue;
		*which = i;
		if (!kdsm_queue_can_idle(queue))
			return true;
		queue->passes = 0;	/* nobody waits */
	}
	return false;
}

/*
 * Which queue is to be left next, and whether to stay there if nobody waits. False: none.
 */
static bool kdsm_tree_choose(struct kdsm_tree *tree, bool keep, u32 flags, unsigned int *which,
			     bool *stay)
{
	unsigned int held = kdsm_tree_lowest(tree, which), first = kdsm_tree_first(tree), i;
	bool smallest = kdsm_tree_queue_state(tree, first) != KDSM_QUEUE_NONE;

	if (!held)
		return false;
	keep &= held == tree->count - first;
	/* What others wait for is not kept, nor what is below it. */
	for (i = first + 1; i < tree->count && keep && !flags; i++)
		keep &= !kdsm_queue_is_wanted(tree->queues[i]);
	/* Larger ones are left before the smallest only if others wait. */
	*stay = *which > first ? smallest : keep;
	if (kdsm_tree_queue_state(tree, *which) == KDSM_QUEUE_LEAVING)
		return true;
	if (smallest && kdsm_tree_exceeded(tree, &i)) {
		*which = i;
		*stay = true;
		return true;
	}
	if (!keep)
		return true;
	for (i = first; i < tree->count && kdsm_queue_can_idle(tree->queues[i]); i++)
		;
	*which = i;
	*stay = true;
	return i < tree->count;
}

/* Leave queue i; what is above it goes along, or stays. */
static int kdsm_tree_leave_queue(struct kdsm_tree *tree, unsigned int i, bool stay, u32 flags)
{
	bool has_lock = kdsm_tree_has_lock(tree);
	struct kdsm_queue *queue = tree->queues[i];
	u64 handed = queue->stats.handed;
	unsigned int j;
	int err;

	for (j = i + 1; j < tree->count; j++) {
		err = kdsm_queue_ascertain(tree->queues[j]);
		if (err)
			return err;
	}
	/* They are the lock's, and go with it. */
	spin_lock_bh(&queue->lock);
	if (!queue->regained) {
		queue->baton.flags &= KDSM_BATON_MORE;
		if (has_lock)
			queue->baton.flags |= flags;
	}
	spin_unlock_bh(&queue->lock);
	err = kdsm_queue_leave(queue, stay);
	if (err)
		return err;
	if (kdsm_queue_state(queue) == KDSM_QUEUE_HELD) {
		queue->passes = 0;	/* nobody waits */
		return 0;
	}
	if (queue->stats.handed == handed)
		return 0;
	if (has_lock)
		tree->handed[queue->level - 1]++;
	return 0;
}

int kdsm_tree_leave(struct kdsm_tree *tree, bool keep, u32 flags)
{
	unsigned int i;
	bool stay;
	int err;

	/* Nothing is left packed. */
	kdsm_tree_state(tree);
	/* Whoever leaves does not know with what it came. */
	if (tree->regained)
		return -EAGAIN;
	tree->leaving = true;
	while (kdsm_tree_choose(tree, keep, flags, &i, &stay)) {
		err = kdsm_tree_leave_queue(tree, i, stay, flags);
		if (err)
			return err;
	}
	tree->leaving = false;
	return 0;
}

void kdsm_tree_stats(const struct kdsm_tree *tree, struct kdsm_queue_stats *stats)
{
	unsigned int i;

	memset(stats, 0, sizeof(*stats));
	for (i = 0; i < tree->count; i++) {
		const struct kdsm_queue_stats *own = &tree->queues[i]->stats;

		stats->entered += own->entered;
		stats->free += own->free;
		stats->freed += own->freed;
		stats->handed += own->handed;
		stats->atomics += own->atomics;
		stats->puts += own->puts;
		stats->gets += own->gets;
		stats->messages += own->messages;
	}
}
