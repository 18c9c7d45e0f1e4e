// SPDX-License-Identifier: GPL-2.0
/*
 * Bringing the cluster up and down on this node, and counting its users in between. This file
 * connects the layers: it has the table of message handlers and the calls up. It has no
 * protocol of its own.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "cluster.h"
#include "lock/death.h"
#include "lock/lock.h"
#include "lock/serve.h"
#include "region/region.h"
#include "report.h"
#include "trace.h"

/*
 * Serialises coming up and going down. A task holds this lock while it waits for the network
 * and for users of the cluster. kdsm_cluster_lock nests inside.
 */
static DEFINE_MUTEX(kdsm_admin_lock);
/* Protects kdsm_current and the cluster's field bound; never held over the network */
static DEFINE_MUTEX(kdsm_cluster_lock);
static struct kdsm_cluster *kdsm_current;

static const struct kdsm_region_upcalls kdsm_region_locks = {
	.create_locks = kdsm_locks_create,
	.destroy_locks = kdsm_locks_destroy,
	.lock_page = kdsm_locks_page,
};

static void kdsm_cluster_peer_down(void *context, unsigned int node, bool restarted)
{
	kdsm_directory_node_down(context, node, restarted);
	kdsm_deaths_node_down(context, node, restarted);
	if (node == 0 && restarted)
		kdsm_regions_forget(context);
}

static void kdsm_cluster_peer_untied(void *context, unsigned int node)
{
	kdsm_regions_untied(context, node);
	kdsm_deaths_untied(context, node);
}

static int kdsm_cluster_start(struct kdsm_cluster *cluster,
			      const struct kdsm_cluster_config *from)
{
	struct kdsm_fabric_config config = {
		.node = cluster->node,
		.nodes = cluster->nodes,
		.port = cluster->port,
		.domain = from->domain,
		.uuid = cluster->uuid,
		.insecure = from->insecure,
		.context = cluster,
		.handlers = {
			[KDSM_MESSAGE_OPEN] = kdsm_directory_serve_open,
			[KDSM_MESSAGE_CLOSE] = kdsm_directory_serve_close,
			[KDSM_MESSAGE_DESTROY] = kdsm_directory_serve_destroy,
			[KDSM_MESSAGE_ADD] = kdsm_region_serve_add,
			[KDSM_MESSAGE_REMOVE] = kdsm_region_serve_remove,
			[KDSM_MESSAGE_TUNE] = kdsm_directory_serve_tune,
			[KDSM_MESSAGE_TUNED] = kdsm_region_serve_tuned,
			[KDSM_MESSAGE_NODE] = kdsm_nodes_serve_change,
			[KDSM_MESSAGE_NODE_TOLD] = kdsm_nodes_serve_told,
			[KDSM_MESSAGE_NODE_COUNT] = kdsm_nodes_serve_count,
			[KDSM_MESSAGE_LOCK_OPEN] = kdsm_lock_serve_open,
			[KDSM_MESSAGE_LOCK_SET] = kdsm_lock_serve_set,
			[KDSM_MESSAGE_LOCK_MEET] = kdsm_lock_serve_meet,
			[KDSM_MESSAGE_LOCK_MISS] = kdsm_lock_serve_miss,
			[KDSM_MESSAGE_TURN_ENQUEUE] = kdsm_lock_serve_enqueue,
			[KDSM_MESSAGE_TURN_HAND] = kdsm_lock_serve_hand,
			[KDSM_MESSAGE_TURN_LEAVE] = kdsm_lock_serve_leave,
			[KDSM_MESSAGE_TURN_EXTEND] = kdsm_lock_serve_extend,
			[KDSM_MESSAGE_TURN_SURVEY] = kdsm_lock_serve_survey,
			[KDSM_MESSAGE_READ_ENTER] = kdsm_lock_serve_enter,
			[KDSM_MESSAGE_READ_ADMIT] = kdsm_lock_serve_admit,
			[KDSM_MESSAGE_READ_REVOKE] = kdsm_lock_serve_revoke,
			[KDSM_MESSAGE_READ_DISMISS] = kdsm_lock_serve_dismiss,
			[KDSM_MESSAGE_READ_LEFT] = kdsm_lock_serve_left,
			[KDSM_MESSAGE_BLOCK_READ] = kdsm_region_serve_block_read,
			[KDSM_MESSAGE_BLOCK_OWN] = kdsm_region_serve_block_own,
			[KDSM_MESSAGE_BLOCK_INVALIDATE] = kdsm_region_serve_block_invalidate,
			[KDSM_MESSAGE_BLOCK_GRANT] = kdsm_region_serve_block_grant,
			[KDSM_MESSAGE_BLOCK_LEND] = kdsm_region_serve_block_lend,
			[KDSM_MESSAGE_BLOCK_CLAIM] = kdsm_region_serve_block_claim,
			[KDSM_MESSAGE_BLOCK_PUSH] = kdsm_region_serve_block_push,
			[KDSM_MESSAGE_CLOCK] = kdsm_region_serve_clock,
			[KDSM_MESSAGE_REPORT] = kdsm_report_serve,
		},
		.notified = kdsm_region_notified,
		.peer_down = kdsm_cluster_peer_down,
		.peer_untied = kdsm_cluster_peer_untied,
	};
	struct sockaddr_storage *addresses;
	unsigned int i;
	int err;

	addresses = kvmalloc_array(cluster->nodes, sizeof(*addresses), GFP_KERNEL);
	if (!addresses)
		return -ENOMEM;
	for (i = 0; i < cluster->nodes; i++)
		addresses[i] = cluster->table[i].address;
	config.addresses = addresses;
	cluster->fabric = kdsm_fabric_start(&config);
	kvfree(addresses);
	if (IS_ERR(cluster->fabric))
		return PTR_ERR(cluster->fabric);
	err = kdsm_fabric_listen(cluster->fabric);
	if (err) {
		kdsm_fabric_disconnect(cluster->fabric);
		kdsm_fabric_stop(cluster->fabric);
	}
	return err;
}

int kdsm_cluster_up(struct kdsm_cluster_config *config)
{
	struct kdsm_cluster *cluster;
	int err = -EALREADY;

	mutex_lock(&kdsm_admin_lock);
	if (kdsm_current)
		goto unlock;
	err = -ENOMEM;
	cluster = kzalloc(sizeof(*cluster), GFP_KERNEL);
	if (!cluster)
		goto unlock;
	strscpy(cluster->name, config->name, sizeof(cluster->name));
	cluster->uuid = config->uuid;
	cluster->port = config->port;
	cluster->node = config->node;
	cluster->nodes = config->nodes;
	cluster->table = config->table;
	cluster->since = ktime_get_ns();
	mutex_init(&cluster->nodes_lock);
	refcount_set(&cluster->references, 1);
	init_completion(&cluster->released);
	cluster->regions_up = &kdsm_region_locks;
	err = kdsm_regions_init(cluster);
	if (err)
		goto free_cluster;
	err = kdsm_directory_init(cluster);
	if (err)
		goto free;
	err = kdsm_deaths_init(cluster);
	if (err)
		goto exit_directory;
	err = kdsm_cluster_start(cluster, config);
	if (err)
		goto exit_deaths;
	config->table = NULL;
	mutex_lock(&kdsm_cluster_lock);
	kdsm_current = cluster;
	mutex_unlock(&kdsm_cluster_lock);
	mutex_unlock(&kdsm_admin_lock);
	pr_info("kdsm: node %u of %u of cluster %s is up on %s\n", cluster->node,
		cluster->nodes, cluster->name, kdsm_fabric_device(cluster->fabric));
	trace_kdsm_event(KDSM_EVENT_CLUSTER_UP, cluster->node, 0, "", 0);
	return 0;

exit_deaths:
	kdsm_deaths_exit(cluster);
exit_directory:
	kdsm_regions_stop(cluster);
	kdsm_directory_exit(cluster);
free:
	kdsm_regions_exit(cluster);
	if (cluster->deaths)
		kdsm_deaths_free(cluster);
free_cluster:
	kfree(cluster);
unlock:
	mutex_unlock(&kdsm_admin_lock);
	return err;
}

int kdsm_cluster_down(void)
{
	struct kdsm_cluster *cluster;
	int err = 0;

	mutex_lock(&kdsm_admin_lock);
	mutex_lock(&kdsm_cluster_lock);
	cluster = kdsm_current;
	if (!cluster)
		err = -ENETDOWN;
	else if (cluster->bound)
		err = -EBUSY;
	else
		kdsm_current = NULL;
	mutex_unlock(&kdsm_cluster_lock);
	if (err)
		goto unlock;

	/* No task can get the cluster any more; wait for the tasks that use it. */
	kdsm_cluster_put(cluster);
	wait_for_completion(&cluster->released);
	kdsm_deaths_stop(cluster);
	kdsm_fabric_disconnect(cluster->fabric);
	kdsm_deaths_exit(cluster);
	kdsm_regions_stop(cluster);
	kdsm_directory_exit(cluster);
	kdsm_regions_exit(cluster);
	kdsm_fabric_stop(cluster->fabric);
	pr_info("kdsm: cluster %s is down on this node\n", cluster->name);
	trace_kdsm_event(KDSM_EVENT_CLUSTER_DOWN, cluster->node, 0, "", 0);
	kdsm_deaths_free(cluster);
	kvfree(cluster->table);
	kfree(cluster);
unlock:
	mutex_unlock(&kdsm_admin_lock);
	return err;
}

struct kdsm_cluster *kdsm_cluster_get(void)
{
	struct kdsm_cluster *cluster;

	mutex_lock(&kdsm_cluster_lock);
	cluster = kdsm_current;
	if (cluster)
		kdsm_cluster_hold(cluster);
	mutex_unlock(&kdsm_cluster_lock);
	return cluster;
}

struct kdsm_cluster *kdsm_cluster_bind(void)
{
	struct kdsm_cluster *cluster;

	mutex_lock(&kdsm_cluster_lock);
	cluster = kdsm_current;
	if (cluster) {
		kdsm_cluster_hold(cluster);
		cluster->bound++;
	}
	mutex_unlock(&kdsm_cluster_lock);
	return cluster;
}

void kdsm_cluster_unbind(struct kdsm_cluster *cluster)
{
	mutex_lock(&kdsm_cluster_lock);
	cluster->bound--;
	kdsm_cluster_put(cluster);
	mutex_unlock(&kdsm_cluster_lock);
}
