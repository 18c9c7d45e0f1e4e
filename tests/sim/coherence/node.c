// SPDX-License-Identifier: GPL-2.0
/* Nodes with their memories of a region: start, stop, and pages. */
#include <stdio.h>
#include <sys/mman.h>

#include "sim.h"

struct node *nodes;

/* ---- memories ---- */

/* Number of bytes that change in one step, as other fibers see the copy */
#define PIECE	(PAGE_SIZE / 8)

void copy_torn(void *to, const void *from)
{
	unsigned int start = sim_below(PAGE_SIZE / PIECE), i;

	for (i = 0; i < PAGE_SIZE / PIECE; i++) {
		unsigned int at = (start + i) * PIECE % PAGE_SIZE;

		memcpy((char *)to + at, (const char *)from + at, PIECE);
		sim_yield();
	}
}

void copy_page(void *to, const void *from)
{
	copy_torn(to, from);
}

void clear_page(void *page)
{
	static const struct page zero;

	copy_torn(page, &zero);
}

unsigned int sim_evict_shift;

/* Number of drops so far, which all nodes know at once */
static u64 drops;

static u64 chunk_of(u64 offset)
{
	return offset >> sim_evict_shift;
}

/* Stamps count for no limit, and are never dropped. */
static bool is_counted(const struct kdsm_memory *memory)
{
	return memory != &nodes[memory->node].stamps;
}

static bool has_room(const struct kdsm_memory *memory, unsigned int spare)
{
	return !config.limit || !is_counted(memory) ||
	       nodes[memory->node].chunks < config.limit + spare;
}

bool kdsm_memory_exceeds_limit(const struct kdsm_memory *memory)
{
	return config.limit && nodes[memory->node].chunks > config.limit;
}

bool kdsm_memory_lacks(const struct kdsm_memory *memory)
{
	u64 lacked = nodes[memory->node].lacked;

	return lacked && sim_now() - lacked < 10000000;
}

u64 kdsm_memory_resident(const struct kdsm_memory *memory)
{
	return memory->resident;
}

bool kdsm_memory_holds(const struct kdsm_memory *memory, u64 offset)
{
	return memory->chunks[chunk_of(offset)].here;
}

unsigned long kdsm_memory_next(const struct kdsm_memory *memory, unsigned long number)
{
	for (; number <= chunk_of((memory->count << PAGE_SHIFT) - 1); number++)
		if (memory->chunks[number].here)
			return number;
	return ULONG_MAX;
}

u64 kdsm_memory_drops(const struct kdsm_memory *memory)
{
	return drops;
}

static bool chunk_make(struct kdsm_memory *memory, struct chunk *chunk, unsigned int spare)
{
	if (!has_room(memory, spare)) {
		nodes[memory->node].lacked = sim_now();
		return false;
	}
	nodes[memory->node].chunks += is_counted(memory);
	memory->resident += 1ULL << sim_evict_shift;
	chunk->here = true;
	return true;
}

int kdsm_memory_spare(struct kdsm_memory *memory, unsigned long number, unsigned int spare)
{
	struct chunk *chunk = &memory->chunks[number];

	return !sim_no_memory() && (chunk->here || chunk_make(memory, chunk, spare)) ? 0 : -ENOMEM;
}

struct page *kdsm_memory_page(struct kdsm_memory *memory, pgoff_t index)
{
	struct chunk *chunk = &memory->chunks[chunk_of(index << PAGE_SHIFT)];

	if (index >= memory->count)
		sim_fail(block_of(index), "a page outside of the region");
	if (!memory->pages[index]) {
		if (sim_no_memory() || (!chunk->here && !chunk_make(memory, chunk, 0)))
			return ERR_PTR(-ENOMEM);
		memory->pages[index] = memory->piece ? memory->piece + index :
				       calloc(1, sizeof(struct page));
	}
	return memory->pages[index];
}

bool memory_read_begin(struct kdsm_memory *memory, u64 offset, unsigned int length, u64 since)
{
	u64 i, last = chunk_of(offset + length - 1);

	for (i = chunk_of(offset); i <= last && is_counted(memory); i++)
		if (memory->chunks[i].dropped > since) {
			counts.stale++;
			return false;
		}
	for (i = chunk_of(offset); i <= last; i++)
		memory->chunks[i].reads++;
	return true;
}

void memory_read_end(struct kdsm_memory *memory, u64 offset, unsigned int length)
{
	u64 i;

	for (i = chunk_of(offset); i <= chunk_of(offset + length - 1); i++)
		memory->chunks[i].reads--;
	sim_wake(&memory->idle);
}

/* A page that goes is mapped nowhere. */
static void check_unmapped(const struct kdsm_memory *memory, u64 page)
{
	const struct node *node = &nodes[memory->node];
	unsigned int p;

	for (p = 0; memory == &node->frames && p < config.processes; p++)
		if (node->processes[p].entries[page].present)
			sim_fail(block_of(page), "freed, and mapped in process %u", p);
}

static void chunk_free(struct kdsm_memory *memory, u64 number)
{
	u64 i, end = min((number + 1) << (sim_evict_shift - PAGE_SHIFT), memory->count);

	for (i = number << (sim_evict_shift - PAGE_SHIFT); i < end; i++) {
		check_unmapped(memory, i);
		if (!memory->pages[i])
			continue;
		memset(memory->pages[i], 0, sizeof(struct page));
		if (!memory->piece)
			free(memory->pages[i]);
		memory->pages[i] = NULL;
	}
}

/* Tell all nodes of a drop. Returns whether one of them cannot be reached, and is not given up. */
static bool revoke(unsigned int node)
{
	unsigned int i;
	bool is_one_missing = false;

	for (i = 0; i < sim.nodes; i++)
		if (sim_are_apart(node, i) && !kdsm_fabric_is_away(sim_fabric(node), i)) {
			was_missed(node, i);
			is_one_missing = true;
		}
	return is_one_missing;
}

int kdsm_memory_drop(struct kdsm_memory *memory, unsigned long number)
{
	struct chunk *chunk = &memory->chunks[number];

	sim_might_sleep();
	if (!chunk->here)
		return -ENOENT;
	sim_sleep(sim_latency(memory->node, (memory->node + 1) % sim.nodes));
	if (revoke(memory->node))
		return -EHOSTDOWN;
	/* Reads that begin from here on fail. */
	chunk->dropped = ++drops;
	while (chunk->reads) {
		sim_prepare(&memory->idle);
		sim_block(&memory->idle, U64_MAX);
	}
	sim_event(SIM_NONE, "drops chunk %lu of %ss", number, memory->name);
	chunk_free(memory, number);
	chunk->here = false;
	memory->resident -= 1ULL << sim_evict_shift;
	nodes[memory->node].chunks--;
	counts.drops++;
	return 0;
}

struct kdsm_memory *memory_of(unsigned int node, const struct kdsm_memory *memory)
{
	return (void *)&nodes[node] + memory->place;
}

static void memory_start(struct kdsm_memory *memory, unsigned int node, const char *name,
			 u64 count)
{
	memory->node = node;
	memory->name = name;
	memory->count = count;
	memory->place = (char *)memory - (char *)&nodes[node];
	memory->pages = calloc(count, sizeof(struct page *));
	memory->chunks = calloc(chunk_of((count << PAGE_SHIFT) - 1) + 1, sizeof(*memory->chunks));
	if (!config.contiguous)
		return;
	memory->piece = mmap(NULL, count * sizeof(struct page), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->piece == MAP_FAILED)
		sim_fail(SIM_NONE, "no memory");
}

static void memory_stop(struct kdsm_memory *memory)
{
	u64 i;

	if (memory->piece)
		munmap(memory->piece, memory->count * sizeof(struct page));
	for (i = 0; i < memory->count && !memory->piece; i++)
		free(memory->pages[i]);
	free(memory->pages);
	free(memory->chunks);
}

/* ---- start and stop ---- */

/* The simulator has one region, so there is no other one to evict. */
static void share(struct kdsm_region *region)
{
	sim_yield();
}

/* Cut a node off for up to 20 ms, within the first 40 ms: too short to be given up. */
static void outage_start(void)
{
	unsigned int node = sim_below(sim.nodes);
	u64 from = sim_below(20000);

	sim_cut(node, from, from + sim_below(20000));
	counts.outages++;
}

static void node_start(struct node *node, unsigned int number)
{
	struct kdsm_region_segment segments[SEGMENTS_MAX];
	struct kdsm_coherence *coherence = &node->coherence;
	unsigned int i;

	for (i = 0; i < config.segments; i++)
		segments[i] = (struct kdsm_region_segment) {
			.offset = block_page(config.segment[i].first) * PAGE_SIZE,
			.block_size = config.segment[i].pages * PAGE_SIZE,
		};
	node->region.node = number;
	node->tried = calloc(config.blocks, sizeof(*node->tried));
	node->place = calloc(config.blocks, sizeof(*node->place));
	memory_start(&node->frames, number, "frame", region_pages());
	memory_start(&node->twins, number, "twin", region_pages());
	memory_start(&node->stamps, number, "stamp",
		     kdsm_stamps_size(config.region_blocks) >> PAGE_SHIFT);
	kdsm_coherence_init(coherence, sim_fabric(number), sim.nodes, 7, config.policy,
			    region_pages() * PAGE_SIZE, segments, config.segments,
			    config.contiguous_homes);
	coherence->mapping = &mapping_ops;
	coherence->share = share;
	if (sim_broken == BREAK_HASTE)
		coherence->lease = 0;
	coherence->region = &node->region;
	coherence->frames = &node->frames;
	coherence->twins = &node->twins;
	coherence->stamps = &node->stamps;
}

/* ---- the end of a region ---- */

/*
 * As kdsm_region_incoherent() in kmod/region/region.c, when the last reference to the region is
 * gone, which each handler holds one of
 */
static void region_incoherent(struct node *node)
{
	while (node->serving)
		sim_sleep(1);
	node->closed = true;
	sim_event(SIM_NONE, "the region goes");
	if (sim_broken == BREAK_CLOSE)
		node->inode_gone = true;
	kdsm_coherence_exit(&node->coherence);
	node->inode_gone = true;
}

static unsigned int living(unsigned int n)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (!sim_is_dead(node) && !n--)
			return node;
	return sim.nodes;
}

/* The program that asks may have been killed, so its region goes although the node waits. */
static void ask(void *arg)
{
	kdsm_coherence_advise(&nodes[living(1)].coherence, KDSM_ADVICE_OWN, config.index[0],
			      config.index[0]);
}

static void own_and_close(void *arg)
{
	struct node *node = &nodes[living(0)];

	kdsm_coherence_advise(&node->coherence, KDSM_ADVICE_OWN, config.index[0], config.index[0]);
	sim_spawn(living(1), "asks", 0, ask, NULL);
	sim_sleep(sim_below(100));
	region_incoherent(node);
}

bool region_close(void)
{
	if (living(1) == sim.nodes)
		return false;
	sim_spawn(living(0), "closes", 0, own_and_close, NULL);
	return true;
}

/* ---- a forged notice ---- */

/* A program claims that another node wrote the whole region: that takes no memory on its node. */
static void forge(void *arg)
{
	struct kdsm_coherence *coherence = &nodes[living(0)].coherence;
	struct kdsm_signature forged = {
		.count = 1,
		.notices[0] = {
			.ts = coherence->clock + 1,
			.count = config.region_blocks,
			.writer = (coherence->node + 1) % sim.nodes,
		},
	};
	size_t held = coherence->table.count;

	kdsm_coherence_acquire(coherence, &forged);
	if (coherence->table.count > held)
		sim_fail(SIM_NONE, "a notice takes memory for %zu blocks",
			 coherence->table.count - held);
}

bool notice_forge(void)
{
	if (living(0) == sim.nodes)
		return false;
	sim_spawn(living(0), "forges", 0, forge, NULL);
	return true;
}

/* Compare the offsets and sizes of blocks with those that block_page() and block_pages() give. */
static void check_segments(const struct kdsm_coherence *coherence)
{
	u64 i, page;

	for (i = 0; i < config.region_blocks; i++) {
		page = block_page(i);
		if (kdsm_block_offset(coherence, i) != page << PAGE_SHIFT ||
		    kdsm_block_size(coherence, i) != block_pages(i) << PAGE_SHIFT ||
		    kdsm_block_at(coherence, page << PAGE_SHIFT) != i ||
		    kdsm_block_at(coherence, ((page + block_pages(i)) << PAGE_SHIFT) - 1) != i)
			sim_fail(i, "the block has another place or size");
	}
	if (coherence->blocks != config.region_blocks ||
	    kdsm_block_offset(coherence, coherence->blocks) != region_pages() << PAGE_SHIFT)
		sim_fail(SIM_NONE, "the region has another size");
}

void nodes_start(void)
{
	unsigned int i;

	kdsm_blocks_init();
	drops = 0;
	if (config.outage)
		outage_start();
	nodes = calloc(sim.nodes, sizeof(*nodes));
	for (i = 0; i < sim.nodes; i++)
		node_start(&nodes[i], i);
	check_segments(&nodes[0].coherence);
}

void nodes_stop(void)
{
	unsigned int i, j;

	for (i = 0; i < sim.nodes; i++) {
		struct node *node = &nodes[i];

		for (j = 0; j < KDSM_COHERENCE_COUNT; j++)
			counts.stats[j] += node->coherence.stats[j].counter;
		if (!node->closed)
			kdsm_coherence_exit(&node->coherence);
		free(node->tried);
		free(node->place);
		memory_stop(&node->frames);
		memory_stop(&node->twins);
		memory_stop(&node->stamps);
	}
	free(nodes);
}
