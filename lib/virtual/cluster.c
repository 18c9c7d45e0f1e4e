// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The nodes of a virtual run, and their regions: each node's part is private memory of this
 * process. Remote operations are in network.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "virtual/internal.h"

#define STACK	(UINT64_C(8) << 20)	/* of a node's program, in bytes */

/* A region of all nodes */
struct kdsm_memory {
	struct kdsm_memory *next;
	struct kdsm_region_open made;	/* by the creator, with the (out) fields */
	unsigned int bound;		/* regions of nodes that are bound to it */
	bool named;			/* false once the region is destroyed */
	struct kdsm_region at[];	/* of each node, as its own operations see the region */
};

static _Thread_local struct kdsm_memory *memories;
static _Thread_local uint32_t last_id;

/* ---- regions ---- */

static struct kdsm_memory *find(const char *name)
{
	struct kdsm_memory *memory;

	for (memory = memories; memory; memory = memory->next)
		if (memory->named && !strcmp(memory->made.name, name))
			return memory;
	return NULL;
}

static void free_memory(struct kdsm_memory *memory)
{
	struct kdsm_memory **link = &memories;
	unsigned int i;

	while (*link && *link != memory)
		link = &(*link)->next;
	if (*link)
		*link = memory->next;
	for (i = 0; i < kd_run.attr->nodes; i++)
		if (memory->at[i].part)
			munmap(memory->at[i].part, memory->made.part_size);
	free(memory);
}

static void release(struct kdsm_memory *memory)
{
	if (!memory->bound && !(memory->named && memory->made.flags & KDSM_REGION_KEEP))
		free_memory(memory);
}

/* Fill in the sizes, and check what KDSM_IOC_REGION_OPEN checks. */
static int check(struct kdsm_region_open *arg)
{
	uint64_t block, part = arg->size / kd_run.attr->nodes;

	if (!arg->size || kdsm_segments_check(arg))
		return -EINVAL;
	block = arg->block_size;
	if (arg->policy != KDSM_POLICY_PARTITIONED)
		return -EOPNOTSUPP;
	if (arg->size > 1ULL << 46)
		return -EFBIG;
	part += arg->size % kd_run.attr->nodes != 0;
	arg->part_size = (part + block - 1) & ~(block - 1);
	return 0;
}

static const struct kdsm_backend backend;

static int create(const struct kdsm_region_open *arg, struct kdsm_memory **out)
{
	const unsigned int nodes = kd_run.attr->nodes;
	struct kdsm_memory *memory;
	struct kdsm_region *at;
	unsigned int i;

	memory = calloc(1, sizeof(*memory) + nodes * sizeof(memory->at[0]));
	if (!memory)
		return -ENOMEM;
	memory->made = *arg;
	memory->made.size = arg->part_size * nodes;
	memory->made.id = ++last_id;
	memory->named = true;
	for (i = 0; i < nodes; i++) {
		at = &memory->at[i];
		at->kdsm = kd_run.node[i].kdsm;
		at->backend = &backend;
		at->node = i;
		at->cpu_atomics = true;
		at->writable = true;
		at->part_size = arg->part_size;
		at->size = memory->made.size;
		at->part = mmap(NULL, arg->part_size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at->part == MAP_FAILED) {
			at->part = NULL;
			free_memory(memory);
			return -ENOMEM;
		}
	}
	memory->next = memories;
	memories = memory;
	*out = memory;
	return 0;
}

static int bind(struct kdsm *kdsm, struct kdsm_region_open *arg, struct kdsm_region *region)
{
	struct kdsm_memory *memory = find(arg->name);
	int ret;

	(void)kdsm;
	if (!memory && !(arg->flags & KDSM_REGION_CREATE))
		return -ENOENT;
	if (arg->flags & KDSM_REGION_CREATE) {
		ret = check(arg);
		if (ret)
			return ret;
		if (memory && arg->flags & KDSM_REGION_EXCL)
			return -EEXIST;
		if (memory && (memory->made.part_size != arg->part_size ||
			       !kdsm_segments_equal(&memory->made, arg)))
			return -EINVAL;
		ret = memory ? 0 : create(arg, &memory);
		if (ret)
			return ret;
	}
	memory->bound++;
	*arg = memory->made;
	region->memory = memory;
	region->fd = -1;
	region->writable = true;
	return 0;
}

static void unbind(struct kdsm_region *region)
{
	kd_network_cancel(region);
	region->memory->bound--;
	release(region->memory);
}

static int map(struct kdsm_region *region)
{
	region->part = region->memory->at[region->node].part;
	region->base = region->part;
	region->length = region->part_size;
	return 0;
}

static int destroy(struct kdsm *kdsm, const char *name)
{
	struct kdsm_memory *memory = find(name);

	(void)kdsm;
	if (!memory)
		return -ENOENT;
	memory->named = false;
	release(memory);
	return 0;
}

int kd_virtual_perform(struct kdsm_region *region, struct kdsm_op *op)
{
	return kdsm_own_op(&region->memory->at[op->node], op);
}

/* ---- nodes ---- */

static void close_nothing(struct kdsm *kdsm)
{
	(void)kdsm;
}

static int location(const struct kdsm *kdsm, unsigned int node,
		    char location[KDSM_LOCATION_SIZE])
{
	(void)kdsm;
	(void)node;
	location[0] = '\0';
	return 0;
}

static int wait_for(struct kdsm_region *region, uint64_t offset, uint64_t value,
		    uint64_t timeout)
{
	const uint64_t *word = kdsm_word(region, offset);
	uint64_t began = kdsm_now();

	while (*word == value)
		if (!kd_virtual_block(word, kdsm_left(began, timeout)))
			return *word == value ? -ETIMEDOUT : 0;
	return 0;
}

static int wake(struct kdsm_region *region, uint64_t offset)
{
	kd_virtual_wake(kdsm_word(region, offset));
	return 0;
}

/* Puts take effect at once: only the messages cost time. */
static int settle(struct kdsm *kdsm, const uint64_t nodes[KDSM_MAX_NODES / 64],
		  uint32_t *messages)
{
	unsigned int i;

	(void)kdsm;
	for (i = 0; i < KDSM_MAX_NODES / 64; i++)
		*messages += __builtin_popcountll(nodes[i]);
	kd_sleep(kd_run.attr->message);
	return 0;
}

static const struct kdsm_backend backend = {
	.close = close_nothing,
	.location = location,
	.bind = bind,
	.unbind = unbind,
	.map = map,
	.destroy = destroy,
	.submit = kd_network_submit,
	.complete = kd_network_complete,
	.wait = wait_for,
	.wake = wake,
	.settle = settle,
};

static int open_node(struct kdsm **out, unsigned int node, unsigned int nodes)
{
	struct kdsm *kdsm = aligned_alloc(_Alignof(struct kdsm), sizeof(*kdsm));

	if (!kdsm)
		return -ENOMEM;
	memset(kdsm, 0, sizeof(*kdsm));
	kdsm->backend = &backend;
	kdsm->fd = -1;
	kdsm->node = node;
	kdsm->nodes = nodes;
	kdsm->domain = KDSM_DOMAIN_SW;
	strcpy(kdsm->cluster, "virtual");
	pthread_mutex_init(&kdsm->lock, NULL);
	pthread_mutex_init(&kdsm->settle_lock, NULL);
	*out = kdsm;
	return 0;
}

/* Programs that wait forever, or that fail, leave regions open. */
static void close_node(struct kdsm *kdsm)
{
	struct kdsm_region *region;

	if (!kdsm)
		return;
	while ((region = kdsm->regions)) {
		kdsm->regions = region->next;
		free(region);
	}
	kdsm_close(kdsm);
}

/* ---- runs ---- */

struct program {
	int (*run)(struct kdsm *kdsm, void *argument);
	void *argument;
};

static void *run_program(void *data)
{
	struct kd_simulated *node = kd_run.current->node;
	const struct program *program = data;

	node->result = program->run(node->kdsm, program->argument);
	return NULL;
}

int kdsm_virtual_attr_init(struct kdsm_virtual_attr *attr)
{
	static const struct kdsm_virtual_attr usual = {
		.nodes = 1,
		.one_sided = 2000,
		.message = 3000,
		.handler = 400,
		.gap = 100,
		.bandwidth = 12500,
		.quantum = 1000,
	};

	return KD_ARGUMENT_OUT(kdsm_virtual_attr, &usual, attr);
}

static int begin(const struct kdsm_virtual_attr *attr, struct program *program)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < attr->nodes; i++)
		ret = open_node(&kd_run.node[i].kdsm, i, attr->nodes);
	for (i = 0; !ret && i < attr->nodes; i++)
		if (!kd_coroutine_new(&kd_run.node[i], STACK, run_program, program))
			ret = -ENOMEM;
	return ret;
}

int kdsm_virtual_run(const struct kdsm_virtual_attr *argument_attr,
		     int (*program)(struct kdsm *kdsm, void *argument), void *argument)
{
	struct program what = { .run = program, .argument = argument };
	struct kdsm_virtual_attr own, *attr = &own;
	unsigned int i;
	int begun, ret;

	if (kd_run.attr)
		return kd_because(-EBUSY, "the caller is the program of a virtual run");
	ret = KD_ARGUMENT_IN(kdsm_virtual_attr, attr, argument_attr);
	if (ret)
		return ret;
	if (!attr->nodes || attr->nodes > KDSM_MAX_NODES)
		return kd_because(-EINVAL, "virtual run: %u nodes are not from 1 to %d",
				  attr->nodes, KDSM_MAX_NODES);
	if (!attr->bandwidth || attr->handler > attr->message)
		return kd_because(-EINVAL,
				  "virtual run: bandwidth is 0, or handler is above message");
	kd_run.node = calloc(attr->nodes, sizeof(*kd_run.node));
	if (!kd_run.node)
		return -ENOMEM;
	kd_run.attr = attr;
	begun = begin(attr, &what);
	ret = kd_conduct(!begun);
	for (i = 0; !ret && i < attr->nodes; i++)
		ret = kd_run.node[i].result;
	while (memories)
		free_memory(memories);
	for (i = 0; i < attr->nodes; i++) {
		kd_network_free(&kd_run.node[i]);
		close_node(kd_run.node[i].kdsm);
	}
	free(kd_run.node);
	memset(&kd_run, 0, sizeof(kd_run));
	return begun ? begun : ret;
}
