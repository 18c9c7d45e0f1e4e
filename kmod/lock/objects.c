// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of a lock on this node: a turn, a pass for its readers, and the home and the reader
 * home of the lock if they are here. This file makes them, and has what they call. Each has a duty
 * of its own, so that none waits for the network while another one could go on.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "death.h"
#include "lock/lock.h"
#include "region/region.h"

/* ---- what parts call ---- */

void kdsm_part_changed(struct kdsm_part *part)
{
	struct kdsm_duty *duty = part->owner;

	if (!duty->line || !kdsm_line_call(duty->line))
		kdsm_duty_now(duty);
}

int kdsm_turn_leaving(struct kdsm_turn *turn, bool free)
{
	struct kdsm_lock *lock = container_of(turn, struct kdsm_lock, turn);

	return kdsm_lock_publish(lock, free ? turn->part.home : turn->part.node);
}

/* Count by the smallest element that has both nodes. */
void kdsm_turn_handed(struct kdsm_turn *turn, unsigned int node)
{
	struct kdsm_lock *lock = container_of(turn, struct kdsm_lock, turn);
	const struct kdsm_topology *topology = lock->locks->topology;
	unsigned int level = lock->levels - 1;
	const u16 *elements;

	for (; level > 1; level--) {
		elements = kdsm_topology_level(topology, level);
		if (elements[node] == elements[turn->part.node])
			break;
	}
	mutex_lock(&lock->mutex);
	lock->handed[level - 1]++;
	mutex_unlock(&lock->mutex);
}

int kdsm_home_opening(struct kdsm_lock_home *home, unsigned int node)
{
	struct kdsm_duty *duty = home->part.owner;

	return kdsm_lock_carry(duty->lock, node);
}

unsigned int kdsm_pass_parent(struct kdsm_pass *pass)
{
	struct kdsm_lock *lock = container_of(pass, struct kdsm_lock, pass);
	unsigned int node = pass->part.node, parent = node - node % READ_ONCE(lock->settings.t_dc);

	if (!pass->era || kdsm_fabric_is_down(pass->part.fabric, parent) ||
	    kdsm_fabric_is_away(pass->part.fabric, parent))
		return pass->part.home;
	return parent;
}

static bool kdsm_lock_lives(struct kdsm_word *word, u32 thread)
{
	return kdsm_lock_thread_lives(container_of(word, struct kdsm_lock, word)->locks, thread);
}

/* ---- start and stop ---- */

static void kdsm_part_init(struct kdsm_part *part, struct kdsm_duty *duty)
{
	const struct kdsm_lock *lock = duty->lock;
	const struct kdsm_region *region = lock->locks->region;

	*part = (struct kdsm_part) {
		.fabric = region->cluster->fabric, .region = region->id, .number = lock->number,
		.home = kdsm_lock_home_of(region, lock->number), .node = region->cluster->node,
		.nodes = region->nodes, .owner = duty,
	};
}

/* A life later than all former ones of this node, unless its clock went back */
static u64 kdsm_part_life(void)
{
	return ktime_get_real_ns();
}

static bool kdsm_home_round(struct kdsm_duty *duty, struct kdsm_try *try)
{
	try->delay = kdsm_home_advance(duty->lock->home);
	return false;
}

static bool kdsm_reader_home_round(struct kdsm_duty *duty, struct kdsm_try *try)
{
	try->delay = kdsm_reader_home_advance(duty->lock->reader_home);
	return false;
}

static int kdsm_lock_init_home(struct kdsm_lock *lock)
{
	struct kdsm_lock_home *home = kzalloc(sizeof(*home), GFP_KERNEL_ACCOUNT);
	int err;

	if (!home)
		return -ENOMEM;
	kdsm_part_init(&home->part, &lock->home_duty);
	home->memory = lock->locks->memory;
	home->word = lock->turn.word;
	err = kdsm_home_init(home, lock->locks->ranks, lock->levels);
	if (err) {
		kfree(home);
		return err;
	}
	lock->home = home;
	/* The word is free from now on. No other node asks before the lock is open here. */
	kdsm_duty_run(&lock->home_duty);
	return 0;
}

int kdsm_lock_init(struct kdsm_lock *lock)
{
	struct kdsm_turn *turn = &lock->turn;
	struct kdsm_pass *pass = &lock->pass;

	mutex_init(&lock->mutex);
	INIT_LIST_HEAD(&lock->inside);
	kdsm_side_init(&lock->writers, lock, false);
	kdsm_side_init(&lock->readers, lock, true);
	kdsm_duty_init(&lock->home_duty, lock, NULL, kdsm_home_round);
	kdsm_duty_init(&lock->reader_duty, lock, NULL, kdsm_reader_home_round);
	lock->word.lives = kdsm_lock_lives;
	lock->word.number = lock->number;
	kdsm_part_init(&turn->part, &lock->writers.duty);
	turn->memory = lock->locks->memory;
	turn->word = lock->number * sizeof(u64);
	turn->life = kdsm_part_life();
	turn->serial = get_random_u32();
	kdsm_turn_init(turn);
	kdsm_part_init(&pass->part, &lock->readers.duty);
	pass->life = kdsm_part_life();
	pass->request = get_random_u32();
	kdsm_pass_init(pass);
	return turn->part.home == turn->part.node ? kdsm_lock_init_home(lock) : 0;
}

int kdsm_lock_open_reader_home(struct kdsm_lock *lock)
{
	struct kdsm_reader_home *home;

	if (kdsm_lock_reader_home(lock))
		return 0;
	home = kzalloc(sizeof(*home), GFP_KERNEL_ACCOUNT);
	if (!home)
		return -ENOMEM;
	kdsm_part_init(&home->pass.part, &lock->reader_duty);
	home->pass.life = kdsm_part_life();
	home->pass.request = get_random_u32();
	if (kdsm_reader_home_init(home)) {
		kfree(home);
		return -ENOMEM;
	}
	if (cmpxchg(&lock->reader_home, NULL, home)) {
		kdsm_reader_home_exit(home);
		kfree(home);
	}
	return 0;
}

void kdsm_lock_exit(struct kdsm_lock *lock)
{
	struct kdsm_reader *reader, *next;

	kdsm_duty_stop(&lock->writers.duty);
	kdsm_duty_stop(&lock->readers.duty);
	kdsm_duty_stop(&lock->home_duty);
	kdsm_duty_stop(&lock->reader_duty);
	list_for_each_entry_safe(reader, next, &lock->inside, link)
		kfree(reader);
	if (lock->home)
		kdsm_home_exit(lock->home);
	kfree(lock->home);
	if (lock->reader_home)
		kdsm_reader_home_exit(lock->reader_home);
	kfree(lock->reader_home);
}
