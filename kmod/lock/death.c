// SPDX-License-Identifier: GPL-2.0
/*
 * Which nodes are dead, as far as locks go, and what is done then.
 *
 * A node is dead for this one if it does not answer: the transport has given it up, and it could
 * not be connected to again. This node finds that out when it has something to do with the other
 * node, or when a node that waits for a lock whose home is here says so (LOCK_MISS). So no
 * heartbeat is needed while no thread waits.
 *
 * Then this node gives the other one up (kdsm_fabric_give_up()), and strikes it off the locks whose
 * home, or reader home, is here. The node may only have been away. It learns from the next
 * connection in either direction that it was given up, and has lost its locks. So this node tries
 * to connect to it from time to time.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "cluster.h"
#include "death.h"
#include "lock/lock.h"
#include "lock/serve.h"
#include "region/region.h"

/* Interval in which this node tries to reach a node that it gave up, in jiffies */
#define KDSM_DEATH_PROBE	(3 * HZ)

/* Whether the node answers */
static bool kdsm_deaths_probe(struct kdsm_cluster *cluster, unsigned int node)
{
	return kdsm_message_was_heard(kdsm_message(cluster->fabric, node, KDSM_MESSAGE_PROBE,
						   NULL, 0, NULL, NULL));
}

static void kdsm_deaths_later(struct kdsm_cluster *cluster, unsigned long delay)
{
	struct kdsm_deaths *deaths = cluster->deaths;

	if (!READ_ONCE(deaths->stopping))
		mod_delayed_work(deaths->workqueue, &deaths->work, delay);
}

/* ---- all locks ---- */

typedef void (*kdsm_lock_visit_t)(struct kdsm_lock *lock, unsigned int node);

static void kdsm_locks_visit(struct kdsm_cluster *cluster, unsigned int node,
			     kdsm_lock_visit_t visit)
{
	struct kdsm_region *region;
	struct kdsm_lock *lock;
	unsigned long number, id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		if (node < region->nodes)
			xa_for_each(&region->locks->open, number, lock)
				visit(lock, node);
		kdsm_region_put(region);
		id++;
	}
}

/* See kdsm_home_doom() */
static void kdsm_lock_doom(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_reader_home *reader = kdsm_lock_reader_home(lock);

	if (lock->home)
		kdsm_home_doom(lock->home, node);
	if (reader)
		kdsm_reader_home_doom(reader, node);
}

static void kdsm_lock_strike(struct kdsm_lock *lock, unsigned int node)
{
	struct kdsm_reader_home *reader = kdsm_lock_reader_home(lock);

	if (lock->home)
		kdsm_home_strike(lock->home, node);
	if (reader)
		kdsm_reader_home_strike(reader, node);
	kdsm_pass_strike(&lock->pass, node);
}

/* ---- giving up ---- */

/* The node does not answer. */
static void kdsm_deaths_give_up(struct kdsm_cluster *cluster, unsigned int node)
{
	if (kdsm_fabric_is_away(cluster->fabric, node)) {
		kdsm_locks_visit(cluster, node, kdsm_lock_doom);
		/* If it has connected meanwhile, some of these lives may be good. */
		if (!kdsm_fabric_is_away(cluster->fabric, node))
			return;
	} else {
		if (kdsm_deaths_probe(cluster, node) || !kdsm_fabric_is_down(cluster->fabric, node))
			return;
		kdsm_locks_visit(cluster, node, kdsm_lock_doom);
		kdsm_fabric_give_up(cluster->fabric, node, false);
	}
	kdsm_locks_visit(cluster, node, kdsm_lock_strike);
}

static void kdsm_deaths_work(struct work_struct *work)
{
	struct kdsm_deaths *deaths = container_of(work, struct kdsm_deaths, work.work);
	struct kdsm_cluster *cluster = deaths->cluster;
	bool away = false;
	unsigned int node;

	for (node = 0; node < READ_ONCE(cluster->nodes) && !READ_ONCE(deaths->stopping); node++) {
		if (node == cluster->node)
			continue;
		if (test_and_clear_bit(node, deaths->restarted)) {
			kdsm_fabric_give_up(cluster->fabric, node, true);
			kdsm_locks_visit(cluster, node, kdsm_lock_strike);
		}
		if (test_and_clear_bit(node, deaths->missed))
			kdsm_deaths_give_up(cluster, node);
		if (kdsm_fabric_is_away(cluster->fabric, node))
			away |= !kdsm_deaths_probe(cluster, node);
	}
	if (away && !delayed_work_pending(&deaths->work))
		kdsm_deaths_later(cluster, KDSM_DEATH_PROBE);
}

/* ---- what comes in ---- */

void kdsm_deaths_missed(struct kdsm_cluster *cluster, unsigned int node)
{
	if (!test_and_set_bit(node, cluster->deaths->missed))
		kdsm_deaths_later(cluster, 0);
}

int kdsm_lock_serve_miss(void *context, struct kdsm_request *request)
{
	struct kdsm_cluster *cluster = context;
	const __le32 *wire = request->data;

	if (request->length != sizeof(*wire) || le32_to_cpu(*wire) >= READ_ONCE(cluster->nodes) ||
	    le32_to_cpu(*wire) == cluster->node)
		return -EINVAL;
	kdsm_deaths_missed(cluster, le32_to_cpu(*wire));
	return 0;
}

void kdsm_part_missed(struct kdsm_part *part, unsigned int node)
{
	struct kdsm_duty *duty = part->owner;
	__le32 wire = cpu_to_le32(node);

	if (node == part->node)
		return;
	if (part->home == part->node)
		kdsm_deaths_missed(duty->lock->locks->region->cluster, node);
	else if (part->home != node)
		kdsm_message(part->fabric, part->home, KDSM_MESSAGE_LOCK_MISS, &wire, sizeof(wire),
			     NULL, NULL);
}

/* Node 0: the locks whose home was that node are lost for good. */
static void kdsm_locks_lose(struct kdsm_cluster *cluster, unsigned int node)
{
	struct kdsm_region *region;
	unsigned long id = 0;

	while ((region = kdsm_region_next(cluster, &id))) {
		kdsm_registry_lose(region->locks, node);
		kdsm_region_put(region);
		id++;
	}
}

void kdsm_deaths_node_down(struct kdsm_cluster *cluster, unsigned int node, bool restarted)
{
	if (READ_ONCE(cluster->deaths->stopping))
		return;
	if (!restarted) {
		kdsm_deaths_missed(cluster, node);
		return;
	}
	/* Nothing of the new incarnation is served before this function returns. */
	kdsm_locks_visit(cluster, node, kdsm_lock_doom);
	kdsm_locks_lose(cluster, node);
	set_bit(node, cluster->deaths->restarted);
	kdsm_deaths_later(cluster, 0);
}

void kdsm_deaths_untied(struct kdsm_cluster *cluster, unsigned int node)
{
	if (!READ_ONCE(cluster->deaths->stopping))
		kdsm_locks_visit(cluster, node, kdsm_lock_untied);
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
	deaths->workqueue = alloc_workqueue("kdsm_lock", WQ_UNBOUND | WQ_HIGHPRI, WQ_MAX_ACTIVE);
	if (deaths->workqueue)
		return 0;
	kdsm_deaths_exit(cluster);
	kdsm_deaths_free(cluster);
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
}

void kdsm_deaths_free(struct kdsm_cluster *cluster)
{
	struct kdsm_deaths *deaths = cluster->deaths;

	if (deaths->workqueue)
		destroy_workqueue(deaths->workqueue);
	kfree(deaths);
	cluster->deaths = NULL;
}
