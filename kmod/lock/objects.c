// SPDX-License-Identifier: GPL-2.0
/*
 * The objects of a node for a lock: a turn, a pass for its readers, and the home and the reader
 * home of the lock if they are here. This file makes them, and has their calls. Each has work of
 * its own, so that none waits for the network while another one could go on.
 */
#include <linux/ktime.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "death.h"
#include "lock/lock.h"
#include "region/region.h"

/* ---- the turn, and the home ---- */

/* In any context */
static void kdsm_lock_changed(struct kdsm_turn *turn)
{
	struct kdsm_lock *lock = container_of(turn, struct kdsm_lock, turn);

	if (!kdsm_line_call(&lock->line))
		kdsm_duty_now(&lock->duty);
}

static int kdsm_lock_leaving(struct kdsm_turn *turn, bool free)
{
	struct kdsm_lock *lock = container_of(turn, struct kdsm_lock, turn);

	return kdsm_lock_publish(lock, free ? turn->home : turn->node);
}

static void kdsm_lock_turn_missed(struct kdsm_turn *turn, unsigned int node)
{
	kdsm_lock_missed(container_of(turn, struct kdsm_lock, turn), node);
}

/* Count by the smallest element that has both nodes. */
static void kdsm_lock_handed(struct kdsm_turn *turn, unsigned int node)
{
	struct kdsm_lock *lock = container_of(turn, struct kdsm_lock, turn);
	const struct kdsm_topology *topology = lock->locks->topology;
	unsigned int level = lock->levels - 1;
	const u16 *elements;

	for (; level > 1; level--) {
		elements = kdsm_topology_level(topology, level);
		if (elements[node] == elements[turn->node])
			break;
	}
	mutex_lock(&lock->mutex);
	lock->handed[level - 1]++;
	mutex_unlock(&lock->mutex);
}

static const struct kdsm_turn_ops kdsm_lock_turn_ops = {
	.handed = kdsm_lock_handed,
	.changed = kdsm_lock_changed,
	.leaving = kdsm_lock_leaving,
	.missed = kdsm_lock_turn_missed,
};

static void kdsm_lock_home_work(struct kdsm_lock_home *home)
{
	struct kdsm_lock *lock = home->owner;

	kdsm_duty_now(&lock->home_duty);
}

static void kdsm_lock_home_missed(struct kdsm_lock_home *home, unsigned int node)
{
	kdsm_lock_missed(home->owner, node);
}

static int kdsm_lock_home_opening(struct kdsm_lock_home *home, unsigned int node)
{
	return kdsm_lock_carry(home->owner, node);
}

static const struct kdsm_lock_home_ops kdsm_lock_home_ops = {
	.work = kdsm_lock_home_work,
	.missed = kdsm_lock_home_missed,
	.opening = kdsm_lock_home_opening,
};

static void kdsm_lock_home_run(struct work_struct *work)
{
	struct kdsm_lock *lock = container_of(work, struct kdsm_lock, home_duty.now);
	u64 delay = kdsm_home_advance(lock->home);

	if (delay)
		kdsm_duty_within(&lock->home_duty, delay);
}

static bool kdsm_lock_lives(struct kdsm_word *word, u32 thread)
{
	struct kdsm_lock *lock = container_of(word, struct kdsm_lock, word);

	return kdsm_lock_thread_lives(lock->locks, thread);
}

static int kdsm_lock_init_home(struct kdsm_lock *lock)
{
	struct kdsm_cluster *cluster = lock->locks->region->cluster;
	struct kdsm_lock_home *home = kzalloc(sizeof(*home), GFP_KERNEL_ACCOUNT);
	int err;

	if (!home)
		return -ENOMEM;
	home->owner = lock;
	home->fabric = cluster->fabric;
	home->memory = lock->locks->memory;
	home->ops = &kdsm_lock_home_ops;
	home->region = lock->turn.region;
	home->number = lock->number;
	home->word = lock->turn.word;
	err = kdsm_home_init(home, lock->locks->ranks, lock->levels);
	if (err) {
		kfree(home);
		return err;
	}
	lock->home = home;
	kdsm_duty_now(&lock->home_duty);
	return 0;
}

int kdsm_lock_init(struct kdsm_lock *lock)
{
	struct kdsm_region *region = lock->locks->region;
	struct workqueue_struct *workqueue = region->cluster->deaths->workqueue;
	struct kdsm_turn *turn = &lock->turn;

	mutex_init(&lock->mutex);
	kdsm_line_init(&lock->line);
	kdsm_duty_init(&lock->duty, workqueue, kdsm_lock_work);
	kdsm_duty_init(&lock->home_duty, workqueue, kdsm_lock_home_run);
	lock->word.lives = kdsm_lock_lives;
	lock->word.number = lock->number;
	turn->fabric = region->cluster->fabric;
	turn->memory = lock->locks->memory;
	turn->ops = &kdsm_lock_turn_ops;
	turn->region = region->id;
	turn->number = lock->number;
	turn->nodes = region->nodes;
	turn->word = lock->number * sizeof(u64);
	turn->home = kdsm_lock_home_of(region, lock->number);
	/* Later than all former lives of this node, unless its clock went back */
	turn->life = ktime_get_real_ns();
	turn->serial = get_random_u32();
	kdsm_turn_init(turn);
	return turn->home == turn->node ? kdsm_lock_init_home(lock) : 0;
}

void kdsm_lock_exit(struct kdsm_lock *lock)
{
	kdsm_duty_stop(&lock->duty);
	kdsm_duty_stop(&lock->home_duty);
	if (!lock->home)
		return;
	kdsm_home_exit(lock->home);
	kfree(lock->home);
}

/* ---- the pass of readers ---- */

/* In any context */
static void kdsm_readers_changed(struct kdsm_pass *pass)
{
	struct kdsm_readers *readers = container_of(pass, struct kdsm_readers, pass);

	if (!kdsm_line_call(&readers->line))
		kdsm_duty_now(&readers->duty);
}

static bool kdsm_readers_reach(const struct kdsm_pass *pass, unsigned int node)
{
	return !kdsm_fabric_is_down(pass->fabric, node) && !kdsm_fabric_is_away(pass->fabric, node);
}

static unsigned int kdsm_readers_parent(struct kdsm_pass *pass)
{
	struct kdsm_readers *readers = container_of(pass, struct kdsm_readers, pass);
	u32 t_dc = READ_ONCE(readers->lock->settings.t_dc);
	unsigned int node = readers->lock->turn.node, parent = node - node % t_dc;

	return pass->era && kdsm_readers_reach(pass, parent) ? parent : pass->home;
}

static void kdsm_readers_missed(struct kdsm_pass *pass, unsigned int node)
{
	struct kdsm_readers *readers = container_of(pass, struct kdsm_readers, pass);

	kdsm_lock_missed(readers->lock, node);
}

static const struct kdsm_pass_ops kdsm_readers_pass_ops = {
	.changed = kdsm_readers_changed,
	.parent = kdsm_readers_parent,
	.missed = kdsm_readers_missed,
};

/* ---- the reader home ---- */

static void kdsm_readers_home_work(struct work_struct *work)
{
	struct kdsm_readers *readers = container_of(work, struct kdsm_readers, home_duty.now);
	u64 delay = kdsm_reader_home_advance(readers->home);

	if (delay)
		kdsm_duty_within(&readers->home_duty, delay);
}

static void kdsm_readers_home_due(struct kdsm_reader_home *home)
{
	struct kdsm_readers *readers = home->owner;

	kdsm_duty_now(&readers->home_duty);
}

static const struct kdsm_reader_home_ops kdsm_readers_home_ops = {
	.work = kdsm_readers_home_due,
};

static void kdsm_readers_home_changed(struct kdsm_pass *pass)
{
	kdsm_readers_home_due(container_of(pass, struct kdsm_reader_home, pass));
}

static unsigned int kdsm_readers_home_parent(struct kdsm_pass *pass)
{
	return pass->home;
}

static void kdsm_readers_home_missed(struct kdsm_pass *pass, unsigned int node)
{
	struct kdsm_reader_home *home = container_of(pass, struct kdsm_reader_home, pass);
	struct kdsm_readers *readers = home->owner;

	kdsm_lock_missed(readers->lock, node);
}

static const struct kdsm_pass_ops kdsm_readers_home_pass_ops = {
	.changed = kdsm_readers_home_changed,
	.parent = kdsm_readers_home_parent,
	.missed = kdsm_readers_home_missed,
};

static void kdsm_pass_set_up(struct kdsm_pass *pass, const struct kdsm_lock *lock,
			     const struct kdsm_pass_ops *ops)
{
	pass->fabric = lock->turn.fabric;
	pass->ops = ops;
	pass->region = lock->turn.region;
	pass->number = lock->number;
	pass->home = lock->turn.home;
	/* As in kdsm_lock_init() */
	pass->life = ktime_get_real_ns();
	pass->request = get_random_u32();
}

struct kdsm_reader_home *kdsm_readers_home(struct kdsm_readers *readers)
{
	struct kdsm_reader_home *home = kdsm_readers_home_now(readers), *other;

	if (home)
		return home;
	home = kzalloc(sizeof(*home), GFP_KERNEL_ACCOUNT);
	if (!home)
		return NULL;
	home->owner = readers;
	home->ops = &kdsm_readers_home_ops;
	kdsm_pass_set_up(&home->pass, readers->lock, &kdsm_readers_home_pass_ops);
	if (kdsm_reader_home_init(home, readers->lock->locks->region->nodes)) {
		kfree(home);
		return NULL;
	}
	other = cmpxchg(&readers->home, NULL, home);
	if (!other)
		return home;
	kdsm_reader_home_exit(home);
	kfree(home);
	return other;
}

/* ---- start and stop of readers ---- */

int kdsm_readers_create(struct kdsm_lock *lock)
{
	struct kdsm_readers *readers = kzalloc(sizeof(*readers), GFP_KERNEL_ACCOUNT);
	struct workqueue_struct *workqueue = lock->duty.workqueue;

	if (!readers)
		return -ENOMEM;
	lock->word.slots = kdsm_locks_slots(lock->locks);
	if (!lock->word.slots) {
		kfree(readers);
		return -ENOMEM;
	}
	readers->lock = lock;
	kdsm_line_init(&readers->line);
	INIT_LIST_HEAD(&readers->inside);
	kdsm_duty_init(&readers->duty, workqueue, kdsm_readers_work);
	kdsm_duty_init(&readers->home_duty, workqueue, kdsm_readers_home_work);
	kdsm_pass_set_up(&readers->pass, lock, &kdsm_readers_pass_ops);
	kdsm_pass_init(&readers->pass);
	lock->readers = readers;
	return 0;
}

void kdsm_readers_destroy(struct kdsm_readers *readers)
{
	struct kdsm_reader *reader, *next;

	kdsm_duty_stop(&readers->duty);
	kdsm_duty_stop(&readers->home_duty);
	list_for_each_entry_safe(reader, next, &readers->inside, link)
		kfree(reader);
	if (readers->home) {
		kdsm_reader_home_exit(readers->home);
		kfree(readers->home);
	}
	kfree(readers);
}
