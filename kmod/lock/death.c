// SPDX-License-Identifier: GPL-2.0
/*
 * Which nodes are dead, as far as locks go, and what is done then.
 *
 * A node is dead for the home of a lock if it does not answer that: if the transport
 * has given it up, and it could not be connected to again either. The home finds it out
 * by itself if it has something to do with the node, or is told by who waits for a lock
 * (LOCK_MISS), and tries. So no heartbeat is needed while nobody waits.
 *
 * Then it gives the node up (kdsm_fabric_give_up()), and writes the queues whose home it
 * is anew (lock_recover.c), one by one. The node may only have been away. It learns from
 * the home, with the next connection in either direction, that it was given up, and has
 * lost its locks; so the home tries to connect to it from time to time.
 *
 * Locks whose home is dead have nobody to see to them: who waits for them is told
 * -EHOSTDOWN (lock.c).
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "cluster.h"
#include "death.h"
#include "lock/lock.h"
#include "region/region.h"

/* A node that was given up is looked for so often. */
#define KDSM_DEATH_PROBE	(3 * HZ)
/* A queue that a node is stuck in is written anew so often at most. */
#define KDSM_DEATH_PAUSE	(HZ / 10)
/* So often is a queue tried, a millisecond apart, before the others are; then again. */
#define KDSM_DEATH_TRIES	8U
/* For so long, before nodes that may have died meanwhile are seen to. */
#define KDSM_DEATH_TURN		(5 * HZ)

static bool kdsm_node_is_down(struct kdsm_cluster *cluster, unsigned int node)
{
	struct kdsm_peer_info info;

	kdsm_fabric_peer(cluster->fabric, node, &info);
	return info.state == KDSM_PEER_DOWN;
}

/* True: it answers. */
static bool kdsm_deaths_probe(struct kdsm_cluster *cluster, unsigned int node)
{
	return kdsm_message_was_heard(kdsm_message(cluster->fabric, node, KDSM_MESSAGE_PROBE,
						   NULL, 0, NULL, NULL));
}

static void kdsm_deaths_later(struct kdsm_cluster *cluster, unsigned long delay)
{
	struct kdsm_deaths *deaths = cluster->deaths;

	if (!READ_ONCE(deaths->stopping))
		mod_delayed_work(system_unbound_wq, &deaths->work, delay);
}

/* ---- the home ---- */

/* One queue. False: it takes too long, and is frozen meanwhile. */
static bool kdsm_deaths_recover_queue(struct kdsm_cluster *cluster, struct kdsm_queue *queue)
{
	struct kdsm_recovery *recovery = &cluster->deaths->recovery;
	unsigned int tries;
	int err;

	for (tries = 0; tries < KDSM_DEATH_TRIES; tries++) {
		if (READ_ONCE(cluster->deaths->stopping))
			return true;
		err = kdsm_queue_recover(queue, recovery);
		if (!err)
			return true;
		if (err == -EHOSTDOWN && kdsm_node_is_down(cluster, recovery->node)) {
			kdsm_fabric_give_up(cluster->fabric, recovery->node, false);
			/* Some queues may have been written with it already. */
			set_bit(KDSM_DEATHS_AGAIN, &cluster->deaths->flags);
			kdsm_deaths_later(cluster, 0);
		}
		usleep_range(1000, 2000);
	}
	return false;
}

static bool kdsm_deaths_recover(struct kdsm_cluster *cluster, bool idle)
{
	struct kdsm_region *region;
	struct kdsm_queue *queue;
	struct kdsm_lock *lock;
	unsigned long number, id = 0;
	bool all = true;

	cluster->deaths->recovery.idle = idle;
	while ((region = kdsm_region_next(cluster, &id))) {
		xa_for_each(&region->locks->open, number, lock) {
			queue = kdsm_tree_root(&lock->tree);
			if (queue->recovers && queue->home == cluster->node)
				all &= kdsm_deaths_recover_queue(cluster, queue);
		}
		kdsm_region_put(region);
		id++;
	}
	return all;
}

static void kdsm_deaths_work(struct work_struct *work)
{
	struct kdsm_deaths *deaths = container_of(work, struct kdsm_deaths, work.work);
	struct kdsm_cluster *cluster = deaths->cluster;
	bool any = test_and_clear_bit(KDSM_DEATHS_AGAIN, &deaths->flags), all = true, away = false;
	unsigned long until;
	unsigned int node;

	for (node = 0; node < cluster->nodes && !READ_ONCE(deaths->stopping); node++) {
		bool missed = test_and_clear_bit(node, deaths->missed);

		if (node == cluster->node)
			continue;
		if (test_and_clear_bit(node, deaths->anew)) {
			kdsm_fabric_give_up(cluster->fabric, node, true);
			any = true;
		}
		if (missed && !kdsm_fabric_is_away(cluster->fabric, node) &&
		    !kdsm_deaths_probe(cluster, node) && kdsm_node_is_down(cluster, node)) {
			kdsm_fabric_give_up(cluster->fabric, node, false);
			any = true;
		}
	}
	if (any)
		deaths->recovery.round++;
	for (until = jiffies + KDSM_DEATH_TURN; any; any = !all && time_before(jiffies, until)) {
		/* Those in use first. One may wait for a node that asks a dead one. */
		all = kdsm_deaths_recover(cluster, false);
		all &= kdsm_deaths_recover(cluster, true);
	}
	if (!all) {
		set_bit(KDSM_DEATHS_AGAIN, &deaths->flags);
		kdsm_deaths_later(cluster, HZ / 10);
	}
	for (node = 0; node < cluster->nodes && !READ_ONCE(deaths->stopping); node++)
		if (kdsm_fabric_is_away(cluster->fabric, node))
			away |= !kdsm_deaths_probe(cluster, node);
	if (away && !delayed_work_pending(&deaths->work))
		kdsm_deaths_later(cluster, KDSM_DEATH_PROBE);
}

/* ---- what comes in ---- */

int kdsm_lock_serve_miss(void *context, struct kdsm_request *request)
{
	const struct kdsm_wire_lock_miss *wire = request->data;
	struct kdsm_cluster *cluster = context;
	struct kdsm_deaths *deaths = cluster->deaths;
	u32 node;

	if (request->length != sizeof(*wire))
		return -EINVAL;
	node = le32_to_cpu(wire->node);
	if (node >= cluster->nodes || node == cluster->node)
		return -EINVAL;
	if (!kdsm_fabric_is_away(cluster->fabric, node)) {
		set_bit(node, deaths->missed);
		kdsm_deaths_later(cluster, 0);
	} else if (wire->stuck && !test_and_set_bit(KDSM_DEATHS_AGAIN, &deaths->flags)) {
		kdsm_deaths_later(cluster, KDSM_DEATH_PAUSE);
	}
	return 0;
}

void kdsm_lock_missed(struct kdsm_queue *queue, unsigned int node, bool stuck)
{
	struct kdsm_queue *root = kdsm_queue_root(queue);
	struct kdsm_wire_lock_miss wire = {
		.node = cpu_to_le32(node),
		.stuck = cpu_to_le32(stuck),
	};

	if (node != root->home && node != root->node && root->recovers)
		kdsm_message(queue->fabric, root->home, KDSM_MESSAGE_LOCK_MISS, &wire,
			     sizeof(wire), NULL, NULL);
}

/* Locks look at who their home is to them: it may be down, or have given up this node. */
static void kdsm_deaths_look(struct work_struct *work)
{
	struct kdsm_deaths *deaths = container_of(work, struct kdsm_deaths, look);
	struct kdsm_cluster *cluster = deaths->cluster;
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	unsigned long number, id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		xa_for_each(&region->locks->open, number, lock)
			kdsm_lock_look(lock);
		kdsm_region_put(region);
		id++;
	}
}

void kdsm_deaths_node_down(struct kdsm_cluster *cluster, unsigned int node, bool anew)
{
	struct kdsm_deaths *deaths = cluster->deaths;

	if (READ_ONCE(deaths->stopping))
		return;
	set_bit(node, anew ? deaths->anew : deaths->missed);
	kdsm_deaths_later(cluster, 0);
	queue_work(system_unbound_wq, &deaths->look);
}

void kdsm_deaths_untied(void *context, unsigned int node)
{
	struct kdsm_cluster *cluster = context;

	if (!READ_ONCE(cluster->deaths->stopping))
		queue_work(system_unbound_wq, &cluster->deaths->look);
}

/* ---- start and stop ---- */

int kdsm_deaths_init(struct kdsm_cluster *cluster)
{
	struct kdsm_deaths *deaths = kzalloc(sizeof(*deaths), GFP_KERNEL);

	if (!deaths)
		return -ENOMEM;
	cluster->deaths = deaths;
	deaths->cluster = cluster;
	INIT_DELAYED_WORK(&deaths->work, kdsm_deaths_work);
	INIT_WORK(&deaths->look, kdsm_deaths_look);
	deaths->missed = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	deaths->anew = bitmap_zalloc(cluster->nodes, GFP_KERNEL);
	deaths->recovery.nodes = kvcalloc(cluster->nodes, sizeof(*deaths->recovery.nodes),
					  GFP_KERNEL);
	/* One more: for the home, where nobody is left. */
	deaths->recovery.order = kvcalloc(cluster->nodes + 1, sizeof(*deaths->recovery.order),
					  GFP_KERNEL);
	if (deaths->missed && deaths->anew && deaths->recovery.nodes && deaths->recovery.order)
		return 0;
	kdsm_deaths_exit(cluster);
	return -ENOMEM;
}

void kdsm_deaths_stop(struct kdsm_cluster *cluster)
{
	WRITE_ONCE(cluster->deaths->stopping, true);
}

void kdsm_deaths_exit(struct kdsm_cluster *cluster)
{
	struct kdsm_deaths *deaths = cluster->deaths;

	WRITE_ONCE(deaths->stopping, true);
	cancel_delayed_work_sync(&deaths->work);
	cancel_work_sync(&deaths->look);
	bitmap_free(deaths->missed);
	bitmap_free(deaths->anew);
	kvfree(deaths->recovery.nodes);
	kvfree(deaths->recovery.order);
}
