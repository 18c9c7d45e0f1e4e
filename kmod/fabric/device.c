// SPDX-License-Identifier: GPL-2.0
/*
 * Start and stop of the fabric: the device that has this node's address, the abilities of
 * that device, the domain of atomics, and the removal of the device. The other files of the
 * folder have the data path.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "internal.h"

/* Connection requests that rdma_cm queues while this node is accepting others */
#define KDSM_BACKLOG	128

/*
 * The fabric to disconnect when its device is removed. There is at most one, because a node
 * belongs to at most one cluster. kdsm_attached_lock protects kdsm_attached.
 */
static DEFINE_MUTEX(kdsm_attached_lock);
static struct kdsm_fabric *kdsm_attached;

static void kdsm_fabric_device_removed(struct ib_device *device, void *data)
{
	mutex_lock(&kdsm_attached_lock);
	if (kdsm_attached && kdsm_attached->device == device) {
		pr_warn("kdsm: RDMA device %s was removed\n", device->name);
		kdsm_fabric_disconnect(kdsm_attached);
	}
	mutex_unlock(&kdsm_attached_lock);
}

static struct ib_client kdsm_client = {
	.name = "kdsm",
	.remove = kdsm_fabric_device_removed,
};

int kdsm_fabric_init(void)
{
	return ib_register_client(&kdsm_client);
}

void kdsm_fabric_exit(void)
{
	ib_unregister_client(&kdsm_client);
}

static void kdsm_queue_pair_gone(struct kdsm_connection *connection)
{
	kdsm_operation_fail(connection);
	kdsm_message_fail(connection);
}

static void kdsm_connection_broken(struct kdsm_connection *connection)
{
	kdsm_connection_get_queue(connection->peer, connection->queue);
}

/* The replies to a probe and to a proof are empty: any reply shows that this node is alive. */
static int kdsm_probe_serve(void *context, struct kdsm_request *request)
{
	return 0;
}

static const struct kdsm_fabric_upcalls kdsm_fabric_upcalls = {
	.created = kdsm_message_setup,
	.queue_pair_created = kdsm_message_post_receives,
	.queue_pair_gone = kdsm_queue_pair_gone,
	.broken = kdsm_connection_broken,
	.proved = kdsm_accept_proved,
	.handlers = {
		[KDSM_MESSAGE_PROVE] = kdsm_probe_serve,
		[KDSM_MESSAGE_PROBE] = kdsm_probe_serve,
		[KDSM_MESSAGE_KEYS] = kdsm_memory_serve_keys,
		[KDSM_MESSAGE_CAS] = kdsm_delegate_serve_cas,
		[KDSM_MESSAGE_FAA] = kdsm_delegate_serve_faa,
		[KDSM_MESSAGE_GATHER] = kdsm_delegate_serve_gather,
		[KDSM_MESSAGE_FIND] = kdsm_find_serve,
		[KDSM_MESSAGE_STEAL] = kdsm_steal_serve,
		[KDSM_MESSAGE_SETTLE] = kdsm_settle_serve,
		[KDSM_MESSAGE_REVOKE] = kdsm_memory_serve_revoke,
	},
};

static int kdsm_fabric_check_device(struct kdsm_fabric *fabric)
{
	const struct ib_device_attr *attrs = &fabric->device->attrs;

	if (!rdma_cap_ib_cm(fabric->device, fabric->listener->port_num)) {
		pr_err("kdsm: %s is an iWARP device; kdsm needs InfiniBand or RoCE\n",
		       fabric->device->name);
		return -EOPNOTSUPP;
	}
	if (!(attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    attrs->max_fast_reg_page_list_len < KDSM_CHUNK_SIZE >> PAGE_SHIFT) {
		pr_err("kdsm: %s cannot register chunks of %lu KiB\n",
		       fabric->device->name, KDSM_CHUNK_SIZE >> 10);
		return -EOPNOTSUPP;
	}
	fabric->device_has_atomics = attrs->atomic_cap != IB_ATOMIC_NONE;
	if (attrs->page_size_cap & KDSM_CHUNK_SIZE)
		fabric->range_max = fabric->device_is_software ? KDSM_SOFTWARE_RANGE :
								 KDSM_WINDOW_CHUNKS;
	return kdsm_registration_check(fabric);
}

/*
 * With IB_ATOMIC_GLOB the CPU and the device may both do atomics on a word. Without
 * IB_ATOMIC_GLOB the device's atomics are atomic only against each other, so the default is
 * that CPUs do all atomics.
 */
static int kdsm_fabric_choose_domain(struct kdsm_fabric *fabric)
{
	enum ib_atomic_cap can = fabric->device->attrs.atomic_cap;

	switch (fabric->config.domain) {
	case KDSM_DOMAIN_AUTO:
		fabric->domain = can == IB_ATOMIC_GLOB ? KDSM_DOMAIN_GLOB :
							 KDSM_DOMAIN_SW;
		return 0;
	case KDSM_DOMAIN_SW:
		break;
	case KDSM_DOMAIN_HCA:
		if (can == IB_ATOMIC_NONE)
			return -EOPNOTSUPP;
		break;
	case KDSM_DOMAIN_GLOB:
		if (can != IB_ATOMIC_GLOB)
			return -EOPNOTSUPP;
		break;
	default:
		return -EINVAL;
	}
	fabric->domain = fabric->config.domain;
	return 0;
}

static void kdsm_workqueues_destroy(struct kdsm_fabric *fabric)
{
	if (fabric->workqueue)
		destroy_workqueue(fabric->workqueue);
	if (fabric->upkeep)
		destroy_workqueue(fabric->upkeep);
}

static void kdsm_fabric_free(struct kdsm_fabric *fabric)
{
	kdsm_secret_free(&fabric->secrets[0]);
	kdsm_secret_free(&fabric->secrets[1]);
	kdsm_peers_exit(fabric);
	free_percpu(fabric->durations);
	percpu_free_rwsem(&fabric->gate);
	kvfree(fabric);
}

struct kdsm_fabric *kdsm_fabric_start(const struct kdsm_fabric_config *config)
{
	struct kdsm_fabric *fabric;
	int err;

	fabric = kvzalloc(sizeof(*fabric), GFP_KERNEL);
	if (!fabric)
		return ERR_PTR(-ENOMEM);
	err = percpu_init_rwsem(&fabric->gate);
	if (err) {
		kvfree(fabric);
		return ERR_PTR(err);
	}
	fabric->config = *config;
	fabric->up = &kdsm_fabric_upcalls;
	mutex_init(&fabric->disconnect_lock);
	fabric->incarnation = get_random_u64() | 1;
	fabric->queues = min(num_online_cpus(), KDSM_QUEUES_MAX);
	xa_init(&fabric->memories);
	init_rwsem(&fabric->unregistering);
	mutex_init(&fabric->accepted_lock);
	INIT_LIST_HEAD(&fabric->accepted);
	INIT_LIST_HEAD(&fabric->strangers);
	INIT_DELAYED_WORK(&fabric->strangers_work, kdsm_accept_expire);
	init_rwsem(&fabric->secrets_lock);
	init_waitqueue_head(&fabric->accepted_wait);
	err = kdsm_peers_init(fabric);
	/* The array belongs to the caller; kdsm_peers_init() has copied the addresses. */
	fabric->config.addresses = NULL;
	if (err)
		goto free;
	err = -ENOMEM;
	fabric->durations = alloc_percpu(struct kdsm_durations);
	if (!fabric->durations)
		goto free;

	/*
	 * Handlers that sleep are short, and a task of a peer waits for each of them. So they
	 * run on the CPU that took the completion: that CPU has the request in its cache, and
	 * no other CPU has to wake up. Connections spread the handlers over the CPUs.
	 *
	 * WQ_HIGHPRI lets handlers run before the node's programs, which may use all CPUs: a
	 * worker of normal priority might wait for the end of a time slice. A handler that
	 * sleeps does not delay the other handlers.
	 */
	fabric->workqueue = alloc_workqueue("kdsm", WQ_HIGHPRI, 0);
	fabric->upkeep = alloc_workqueue("kdsm_upkeep", WQ_UNBOUND, 2 * KDSM_STRANGERS_MAX);
	if (!fabric->workqueue || !fabric->upkeep)
		goto destroy_workqueues;
	err = kdsm_broadcast_init(fabric);
	if (err)
		goto destroy_workqueues;
	err = fabric->config.insecure ? 0 : kdsm_fabric_load_key(fabric);
	if (err)
		goto exit_broadcast;
	err = kdsm_accept_bind(fabric);
	if (err)
		goto exit_broadcast;
	err = kdsm_fabric_check_device(fabric);
	if (!err)
		err = kdsm_fabric_choose_domain(fabric);
	if (err)
		goto destroy_listener;
	fabric->pd = ib_alloc_pd(fabric->device, 0);
	if (IS_ERR(fabric->pd)) {
		err = PTR_ERR(fabric->pd);
		goto destroy_listener;
	}
	mutex_lock(&kdsm_attached_lock);
	kdsm_attached = fabric;
	mutex_unlock(&kdsm_attached_lock);
	return fabric;

destroy_listener:
	rdma_destroy_id(fabric->listener);
exit_broadcast:
	kdsm_broadcast_exit(fabric);
destroy_workqueues:
	kdsm_workqueues_destroy(fabric);
free:
	kdsm_fabric_free(fabric);
	return ERR_PTR(err);
}

int kdsm_fabric_listen(struct kdsm_fabric *fabric)
{
	return rdma_listen(fabric->listener, KDSM_BACKLOG);
}

void kdsm_fabric_disconnect(struct kdsm_fabric *fabric)
{
	mutex_lock(&fabric->disconnect_lock);
	if (!fabric->disconnected) {
		kdsm_connection_stop(fabric);
		kdsm_memory_unregister_all(fabric);
		ib_dealloc_pd(fabric->pd);
		/* The device may be freed as soon as this function returns. */
		fabric->device = NULL;
		fabric->disconnected = true;
	}
	mutex_unlock(&fabric->disconnect_lock);
	/* Handlers of this node's own requests run there */
	flush_workqueue(fabric->senders);
}

void kdsm_fabric_stop(struct kdsm_fabric *fabric)
{
	mutex_lock(&kdsm_attached_lock);
	kdsm_attached = NULL;
	mutex_unlock(&kdsm_attached_lock);
	WARN_ON(!fabric->disconnected || !xa_empty(&fabric->memories));
	/* While its regions went, this node may have sent more */
	flush_workqueue(fabric->senders);
	kdsm_connection_free_all(fabric);
	kdsm_broadcast_exit(fabric);
	kdsm_workqueues_destroy(fabric);
	xa_destroy(&fabric->memories);
	kdsm_fabric_free(fabric);
}

unsigned int kdsm_fabric_node(const struct kdsm_fabric *fabric)
{
	return fabric->config.node;
}

u32 kdsm_fabric_domain(const struct kdsm_fabric *fabric)
{
	return fabric->domain;
}

const char *kdsm_fabric_device(const struct kdsm_fabric *fabric)
{
	return fabric->device_name;
}

const struct kdsm_refused *kdsm_fabric_refused(const struct kdsm_fabric *fabric)
{
	return &fabric->refused;
}

void kdsm_fabric_peer(struct kdsm_fabric *fabric, unsigned int node,
		      struct kdsm_peer_info *info)
{
	const struct kdsm_peer *peer = &fabric->peers[node];

	info->state = READ_ONCE(peer->state);
	info->connects = atomic64_read(&peer->connects);
	info->errors = atomic64_read(&peer->errors);
}

bool kdsm_fabric_is_down(const struct kdsm_fabric *fabric, unsigned int node)
{
	return READ_ONCE(fabric->peers[node].state) == KDSM_PEER_DOWN;
}

bool kdsm_fabric_is_away(const struct kdsm_fabric *fabric, unsigned int node)
{
	return READ_ONCE(fabric->peers[node].away);
}

u64 kdsm_fabric_tie(const struct kdsm_fabric *fabric, unsigned int node)
{
	return READ_ONCE(fabric->peers[node].tie);
}

void kdsm_fabric_stats(struct kdsm_fabric *fabric, unsigned int node, u64 *stats)
{
	kdsm_counters_sum(fabric->peers[node].counters, stats);
}

void kdsm_fabric_duration(struct kdsm_fabric *fabric, enum kdsm_latency what, u64 ns)
{
	kdsm_duration(fabric->durations, what, ns);
}

void kdsm_fabric_durations(struct kdsm_fabric *fabric, enum kdsm_latency what, u64 *sum,
			   u64 *counts)
{
	kdsm_durations_sum(fabric->durations, what, sum, counts);
}
