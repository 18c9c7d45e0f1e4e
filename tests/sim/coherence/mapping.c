// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of simulated processes: page tables with dirty bits, and for each process a TLB
 * that keeps entries until they are flushed. Also the mapping operations that the
 * protocols call, on these page tables, and what kmod/region/fault.c does at a page fault.
 */
#include "sim.h"

/* ---- operations of the protocols ---- */

static void flush(struct process *process, u64 first, u64 count)
{
	u64 i;

	sim_yield();
	if (sim_broken == BREAK_FLUSH && sim_chance(4))
		return;
	for (i = first; i < first + count; i++)
		process->tlb[i].present = false;
}

static void unmap(struct kdsm_region *region, u64 first, u64 count)
{
	unsigned int p;
	u64 i;

	for (p = 0; p < config.processes; p++) {
		struct process *process = &nodes[region->node].processes[p];

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].present)
				continue;
			sim_event(block_of(i), "unmapped in process %u%s", p,
				  process->entries[i].dirty ? ", dirty" : "");
			process->entries[i] = (struct entry) {};
			sim_yield();
		}
		flush(process, first, count);
	}
}

/* A range that BREAK_DEFER unmaps later */
struct deferred {
	struct kdsm_region *region;
	u64 first, count;
};

static void unmap_late(void *arg)
{
	struct deferred *deferred = arg;

	unmap(deferred->region, deferred->first, deferred->count);
	free(deferred);
}

static enum kdsm_block_state block_state(unsigned int node, u64 index)
{
	const struct kdsm_block *block = known_block(node, index);

	return block ? block->state : KDSM_BLOCK_INVALID;
}

static void mapping_unmap(struct kdsm_region *region, u64 offset, u64 length)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT;
	struct deferred *deferred;

	sim_might_sleep();
	if (nodes[region->node].inode_gone)
		sim_fail(block_of(first), "unmapped in a region that is gone");
	if (first + count > region_pages())
		sim_fail(SIM_NONE, "unmaps %llu pages at %llu, beyond the region", count,
			 first);
	if (sim_broken == BREAK_UNMAP && sim_chance(20))
		return;
	if (sim_broken == BREAK_PROTECT && sim_chance(10) &&
	    block_state(region->node, block_of(first)) == KDSM_BLOCK_READABLE)
		return;
	if (sim_broken == BREAK_DEFER && sim_chance(10)) {
		deferred = malloc(sizeof(*deferred));
		*deferred = (struct deferred) { region, first, count };
		sim_spawn(region->node, "unmaps", 1 + sim_below(sim.delay), unmap_late, deferred);
		return;
	}
	unmap(region, first, count);
}

static bool mapping_harvest(struct kdsm_region *region, u64 offset, u64 length,
			    unsigned long *bitmap)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT, i;
	bool any = false;
	unsigned int p;

	sim_might_sleep();
	if (first + count > region_pages())
		sim_fail(SIM_NONE, "harvests %llu pages at %llu, beyond the region", count,
			 first);
	for (p = 0; p < config.processes; p++) {
		struct process *process = &nodes[region->node].processes[p];
		bool found = false;

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].dirty)
				continue;
			found = true;
			process->entries[i].dirty = false;
			sim_event(block_of(i), "harvested in process %u", p);
			if (sim_broken != BREAK_DIRTY || !sim_chance(20))
				sim_set_bit(i - first, bitmap);
			sim_yield();
		}
		if (found)
			flush(process, first, count);
		any |= found;
	}
	/* While a process unmaps, all pages may be dirty. region/notifier.c does the same. */
	for (p = 0; p < config.processes; p++) {
		if (!nodes[region->node].processes[p].leaving)
			continue;
		any = true;
		for (i = 0; i < count; i++)
			sim_set_bit(i, bitmap);
	}
	return any;
}

static void mapping_protect(struct kdsm_region *region, u64 offset, u64 length)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT, i;
	unsigned int p;

	sim_might_sleep();
	for (p = 0; p < config.processes; p++) {
		struct process *process = &nodes[region->node].processes[p];

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].writable)
				continue;
			process->entries[i].writable = false;
			sim_event(block_of(i), "protected in process %u", p);
			sim_yield();
		}
		flush(process, first, count);
	}
}

const struct kdsm_mapping_ops mapping_ops = {
	.unmap = mapping_unmap,
	.harvest = mapping_harvest,
	.protect = mapping_protect,
};

/* ---- page faults, as in region/fault.c ---- */

struct fault {
	unsigned int node, process;
	u64 page;
	bool present;	/* an entry for reading was present at the time of the fault */
	bool late;	/* BREAK_LOCK: map later, without the lock */
	bool called, writable;	/* BREAK_LOCK: whether to map later, and how */
};

static int map_page(struct fault *fault, u64 page, bool writable)
{
	struct process *process = &nodes[fault->node].processes[fault->process];
	struct entry *entry = &process->entries[page];

	if (IS_ERR(kdsm_memory_page(&nodes[fault->node].frames, page)))
		return -ENOMEM;
	sim_yield();
	if (page == fault->page && fault->present && entry->present) {
		*entry = (struct entry) {};
		sim_yield();
		process->tlb[page].present = false;
	}
	if (!entry->present) {
		*entry = (struct entry) { .present = true, .writable = writable };
		sim_event(block_of(page), "mapped %s in process %u",
			  writable ? "writable" : "readable", fault->process);
	}
	return 0;
}

static int map(void *arg, u64 index, bool writable)
{
	struct fault *fault = arg;
	int err = 0;
	u64 page;

	if (fault->late) {
		fault->called |= (s64)index == block_of(fault->page);
		fault->writable = writable;
		return 0;
	}
	if (sim_broken == BREAK_MAP && sim_chance(20))
		writable = true;
	if ((s64)index == block_of(fault->page))
		err = map_page(fault, fault->page, writable);
	else
		counts.ahead++;
	for (page = block_page(index); page < block_page(index + 1) && !err; page++)
		if (page != fault->page && map_page(fault, page, writable))
			break;
	return err;
}

static int take_fault(unsigned int node, unsigned int process, u64 page, bool write,
		      bool present)
{
	struct fault fault = { node, process, page, present, false, false, false };
	int err;

	fault.late = sim_broken == BREAK_LOCK && sim_chance(4);
	for (;;) {
		err = kdsm_coherence_access(&nodes[node].coherence, block_of(page), write,
					    map, &fault);
		if (err != -EAGAIN && err != -EBUSY && (err != -ENOMEM || !config.limit))
			break;
		err = kdsm_coherence_get(&nodes[node].coherence, block_of(page), write);
		if (err)
			break;
		/* A worker has got the block, and the program runs again later */
		if (sim_chance(2))
			sim_sleep(sim_below(sim.delay));
	}
	if (fault.called && !err) {
		fault.late = false;
		err = map(&fault, block_of(page), fault.writable);
	}
	return err;
}

bool is_mapped(unsigned int node, u64 index)
{
	u64 page, end = block_page(index + 1);
	unsigned int p;

	for (p = 0; p < config.processes; p++) {
		const struct process *process = &nodes[node].processes[p];

		for (page = block_page(index); page < end; page++)
			if (process->entries[page].present || process->tlb[page].present)
				return true;
	}
	return false;
}

/*
 * As the kernel does it: notify, drop the entries, flush the TLBs, call close(). Other
 * threads run meanwhile.
 */
void process_unmap(unsigned int node, unsigned int number, u64 first, u64 last)
{
	struct process *process = &nodes[node].processes[number];
	u64 page = block_page(first), end = block_page(last + 1), i;
	bool notified = sim_broken != BREAK_LATE;

	counts.unmaps++;
	if (notified)
		process->leaving++;
	for (i = page; i < end; i++) {
		if (!process->entries[i].present)
			continue;
		sim_event(block_of(i), "process %u unmaps%s", number,
			  process->entries[i].dirty ? ", dirty" : "");
		process->entries[i] = (struct entry) {};
		sim_yield();
	}
	/* The end of the notification is too early, because CPUs may still use a TLB. */
	if (sim_broken == BREAK_END) {
		kdsm_coherence_unmapped(&nodes[node].coherence, first, last);
		process->leaving--;
		notified = false;
	}
	if (sim_broken == BREAK_END || sim_chance(4))
		sim_sleep(sim_below(20 * sim.delay));
	flush(process, page, end - page);
	if (sim_chance(4))
		sim_sleep(sim_below(sim.delay));
	kdsm_coherence_unmapped(&nodes[node].coherence, first, last);
	if (notified)
		process->leaving--;
}

/* The kernel makes entries that are dirty writable without a fault. */
void process_protect(unsigned int node, unsigned int number, u64 first, u64 last)
{
	struct process *process = &nodes[node].processes[number];
	u64 page = block_page(first), end = block_page(last + 1), i;

	for (i = page; i < end; i++) {
		if (!process->entries[i].present)
			continue;
		process->entries[i].writable = process->entries[i].dirty;
		sim_event(block_of(i), "process %u protects%s", number,
			  process->entries[i].dirty ? ", dirty" : "");
		sim_yield();
	}
	flush(process, page, end - page);
}

/* ---- accesses of CPUs ---- */

static struct entry *look_up(unsigned int node, unsigned int number, u64 page)
{
	struct process *process = &nodes[node].processes[number];
	struct entry *tlb = &process->tlb[page];

	sim_yield();
	if (sim_chance(config.evict))
		tlb->present = false;
	if (!tlb->present && process->entries[page].present)
		*tlb = process->entries[page];
	return tlb;
}

static char *frame(unsigned int node, u64 offset)
{
	struct page *page = nodes[node].frames.pages[offset >> PAGE_SHIFT];

	if (!page)
		sim_fail(block_of(offset >> PAGE_SHIFT), "mapped without a page");
	return (char *)page->words + offset % PAGE_SIZE;
}

int cpu_load(unsigned int node, unsigned int process, u64 offset, void *to,
	     unsigned int length)
{
	u64 page = offset >> PAGE_SHIFT;
	int err;

	while (!look_up(node, process, page)->present) {
		err = take_fault(node, process, page, false, false);
		if (err)
			return err;
	}
	memcpy(to, frame(node, offset), length);
	return 0;
}

/* Take faults until the CPU can write the page. */
static int make_writable(unsigned int node, unsigned int number, u64 offset)
{
	struct process *process = &nodes[node].processes[number];
	u64 page = offset >> PAGE_SHIFT;
	struct entry *tlb;
	int err;

	for (;;) {
		tlb = look_up(node, number, page);
		if (tlb->present && tlb->writable && tlb->dirty)
			return 0;
		/* The CPU sets the dirty bit in the page table, so it reads the entry again. */
		*tlb = process->entries[page];
		if (tlb->present && tlb->writable) {
			process->entries[page].dirty = true;
			tlb->dirty = true;
			return 0;
		}
		err = take_fault(node, number, page, true, tlb->present);
		if (err)
			return err;
	}
}

int cpu_store(unsigned int node, unsigned int process, u64 offset, const void *from,
	      unsigned int length)
{
	int err = make_writable(node, process, offset);

	if (!err)
		memcpy(frame(node, offset), from, length);
	return err;
}

/* An atomic instruction: keep these bits of the value, and add. */
static int modify(unsigned int node, unsigned int process, u64 offset, u64 keep, u64 add,
		  unsigned int length, u64 *old)
{
	int err = make_writable(node, process, offset);
	u64 value;

	if (err)
		return err;
	*old = 0;
	memcpy(old, frame(node, offset), length);
	value = (*old & keep) + add;
	memcpy(frame(node, offset), &value, length);
	return 0;
}

int cpu_add(unsigned int node, unsigned int process, u64 offset, u64 add,
	    unsigned int length, u64 *old)
{
	return modify(node, process, offset, U64_MAX, add, length, old);
}

int cpu_exchange(unsigned int node, unsigned int process, u64 offset, u64 value,
		 unsigned int length, u64 *old)
{
	return modify(node, process, offset, 0, value, length, old);
}

/* ---- start and stop ---- */

void mappings_start(void)
{
	unsigned int node, i;

	for (node = 0; node < sim.nodes; node++)
		for (i = 0; i < config.processes; i++) {
			struct process *process = &nodes[node].processes[i];

			process->entries = calloc(region_pages(), sizeof(*process->entries));
			process->tlb = calloc(region_pages(), sizeof(*process->tlb));
		}
}

void mappings_stop(void)
{
	unsigned int node, i;

	for (node = 0; node < sim.nodes; node++)
		for (i = 0; i < config.processes; i++) {
			free(nodes[node].processes[i].entries);
			free(nodes[node].processes[i].tlb);
		}
}
