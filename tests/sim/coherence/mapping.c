// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of simulated processes: page tables with dirty bits, a TLB for each
 * process that remembers entries until it is flushed, and the functions of vm.h.
 */
#include "sim.h"

/* ---- what vm.c does ---- */

static void flush(struct sim_process *process, u64 first, u64 count)
{
	u64 i;

	sim_yield();
	if (sim_broken == SIM_BREAK_FLUSH && sim_chance(4))
		return;
	for (i = first; i < first + count; i++)
		process->tlb[i].present = false;
}

static void unmap(struct kdsm_region *region, u64 first, u64 count)
{
	unsigned int p;
	u64 i;

	for (p = 0; p < sim.processes; p++) {
		struct sim_process *process = &sim_nodes[region->node].processes[p];

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].present)
				continue;
			sim_event(sim_block_of(i), "unmapped in process %u%s", p,
				  process->entries[i].dirty ? ", dirty" : "");
			process->entries[i] = (struct sim_entry) {};
			sim_yield();
		}
		flush(process, first, count);
	}
}

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

static void kdsm_vm_unmap(struct kdsm_region *region, u64 offset, u64 length)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT;
	struct deferred *deferred;

	sim_might_sleep();
	if (first + count > sim_pages())
		sim_fail(-1, "unmaps beyond the region");
	if (sim_broken == SIM_BREAK_UNMAP && sim_chance(20))
		return;
	if (sim_broken == SIM_BREAK_PROTECT && sim_chance(10) &&
	    kdsm_block(&sim_nodes[region->node].coherence, sim_block_of(first))->state ==
	    KDSM_BLOCK_READABLE)
		return;
	if (sim_broken == SIM_BREAK_DEFER && sim_chance(10)) {
		deferred = malloc(sizeof(*deferred));
		*deferred = (struct deferred) { region, first, count };
		sim_spawn(region->node, "unmaps", 1 + sim_below(sim.delay), unmap_late, deferred);
		return;
	}
	unmap(region, first, count);
}

static bool kdsm_vm_harvest(struct kdsm_region *region, u64 offset, u64 length,
		     unsigned long *bitmap)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT, i;
	bool any = false;
	unsigned int p;

	sim_might_sleep();
	if (first + count > sim_pages())
		sim_fail(-1, "harvests beyond the region");
	for (p = 0; p < sim.processes; p++) {
		struct sim_process *process = &sim_nodes[region->node].processes[p];
		bool found = false;

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].dirty)
				continue;
			found = true;
			process->entries[i].dirty = false;
			sim_event(sim_block_of(i), "harvested in process %u", p);
			if (sim_broken != SIM_BREAK_DIRTY || !sim_chance(20))
				sim_set_bit(i - first, bitmap);
			sim_yield();
		}
		if (found)
			flush(process, first, count);
		any |= found;
	}
	/* After that, as notifier.c does: all, while a process unmaps something. */
	for (p = 0; p < sim.processes; p++) {
		if (!sim_nodes[region->node].processes[p].leaving)
			continue;
		any = true;
		for (i = 0; i < count; i++)
			sim_set_bit(i, bitmap);
	}
	return any;
}

static void kdsm_vm_protect(struct kdsm_region *region, u64 offset, u64 length)
{
	u64 first = offset >> PAGE_SHIFT, count = length >> PAGE_SHIFT, i;
	unsigned int p;

	sim_might_sleep();
	for (p = 0; p < sim.processes; p++) {
		struct sim_process *process = &sim_nodes[region->node].processes[p];

		for (i = first; i < first + count; i++) {
			if (!process->entries[i].writable)
				continue;
			process->entries[i].writable = false;
			sim_event(sim_block_of(i), "protected in process %u", p);
			sim_yield();
		}
		flush(process, first, count);
	}
}

const struct kdsm_mapping_ops sim_mapping_ops = {
	.unmap = kdsm_vm_unmap,
	.harvest = kdsm_vm_harvest,
	.protect = kdsm_vm_protect,
};

/* ---- what fault.c does ---- */

struct fault {
	unsigned int node, process;
	u64 page;
	bool present;	/* at the time of the fault there was an entry, for reading */
	bool late;	/* a deliberate fault: remember, and map without the lock */
	bool called, writable;
};

static int map_page(struct fault *fault, u64 page, bool writable)
{
	struct sim_process *process = &sim_nodes[fault->node].processes[fault->process];
	struct sim_entry *entry = &process->entries[page];

	if (IS_ERR(kdsm_memory_page(&sim_nodes[fault->node].frames, page)))
		return -ENOMEM;
	sim_yield();
	if (page == fault->page && fault->present && entry->present) {
		*entry = (struct sim_entry) {};
		sim_yield();
		process->tlb[page].present = false;
	}
	if (!entry->present) {
		*entry = (struct sim_entry) { .present = true, .writable = writable };
		sim_event(sim_block_of(page), "mapped %s in process %u",
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
		fault->called |= (s64)index == sim_block_of(fault->page);
		fault->writable = writable;
		return 0;
	}
	if (sim_broken == SIM_BREAK_MAP && sim_chance(20))
		writable = true;
	if ((s64)index == sim_block_of(fault->page))
		err = map_page(fault, fault->page, writable);
	else
		sim_counts.ahead++;
	for (page = index * sim.pages; page < (index + 1) * sim.pages && !err; page++)
		if (page != fault->page && map_page(fault, page, writable))
			break;
	return err;
}

static int take_fault(unsigned int node, unsigned int process, u64 page, bool write,
		      bool present)
{
	struct fault fault = { node, process, page, present, false, false, false };
	int err;

	fault.late = sim_broken == SIM_BREAK_LOCK && sim_chance(4);
	err = kdsm_coherence_access(&sim_nodes[node].coherence, sim_block_of(page), write,
				    map, &fault);
	if (fault.called && !err) {
		fault.late = false;
		err = map(&fault, sim_block_of(page), fault.writable);
	}
	return err;
}

bool sim_is_mapped(unsigned int node, u64 index)
{
	unsigned int p, i;

	for (p = 0; p < sim.processes; p++) {
		const struct sim_process *process = &sim_nodes[node].processes[p];

		for (i = 0; i < sim.pages; i++) {
			u64 page = index * sim.pages + i;

			if (process->entries[page].present || process->tlb[page].present)
				return true;
		}
	}
	return false;
}

/*
 * As the kernel does it: it notifies, drops the entries, flushes the TLBs, and calls
 * close(). Other threads go on meanwhile.
 */
void sim_unmap_process(unsigned int node, unsigned int number, u64 first, u64 last)
{
	struct sim_process *process = &sim_nodes[node].processes[number];
	bool notified = sim_broken != SIM_BREAK_LATE;
	u64 i;

	sim_counts.unmaps++;
	if (notified)
		process->leaving++;
	for (i = first * sim.pages; i < (last + 1) * sim.pages; i++) {
		if (!process->entries[i].present)
			continue;
		sim_event(sim_block_of(i), "process %u unmaps%s", number,
			  process->entries[i].dirty ? ", dirty" : "");
		process->entries[i] = (struct sim_entry) {};
		sim_yield();
	}
	/* The end of the notification would be too early: a TLB may still be used. */
	if (sim_broken == SIM_BREAK_END) {
		kdsm_coherence_unmapped(&sim_nodes[node].coherence, first, last);
		process->leaving--;
		notified = false;
	}
	if (sim_broken == SIM_BREAK_END || sim_chance(4))
		sim_sleep(sim_below(20 * sim.delay));
	flush(process, first * sim.pages, (last + 1 - first) * sim.pages);
	if (sim_chance(4))
		sim_sleep(sim_below(sim.delay));
	kdsm_coherence_unmapped(&sim_nodes[node].coherence, first, last);
	if (notified)
		process->leaving--;
}

/*
 * mprotect, to what it was: the kernel makes entries that are dirty writable without
 * a fault.
 */
void sim_protect_process(unsigned int node, unsigned int number, u64 first, u64 last)
{
	struct sim_process *process = &sim_nodes[node].processes[number];
	u64 i;

	for (i = first * sim.pages; i < (last + 1) * sim.pages; i++) {
		if (!process->entries[i].present)
			continue;
		process->entries[i].writable = process->entries[i].dirty;
		sim_event(sim_block_of(i), "process %u protects%s", number,
			  process->entries[i].dirty ? ", dirty" : "");
		sim_yield();
	}
	flush(process, first * sim.pages, (last + 1 - first) * sim.pages);
}

/* ---- what the CPU does ---- */

static struct sim_entry *look_up(unsigned int node, unsigned int number, u64 page)
{
	struct sim_process *process = &sim_nodes[node].processes[number];
	struct sim_entry *tlb = &process->tlb[page];

	sim_yield();
	if (sim_chance(sim.evict))
		tlb->present = false;
	if (!tlb->present && process->entries[page].present)
		*tlb = process->entries[page];
	return tlb;
}

static char *frame(unsigned int node, u64 offset)
{
	struct page *page = sim_nodes[node].frames.pages[offset >> PAGE_SHIFT];

	if (!page)
		sim_fail(sim_block_of(offset >> PAGE_SHIFT), "mapped without a page");
	return (char *)page->words + offset % PAGE_SIZE;
}

int sim_load(unsigned int node, unsigned int process, u64 offset, void *to,
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

/* Until the page can be written. */
static int make_writable(unsigned int node, unsigned int number, u64 offset)
{
	struct sim_process *process = &sim_nodes[node].processes[number];
	u64 page = offset >> PAGE_SHIFT;
	struct sim_entry *tlb;
	int err;

	for (;;) {
		tlb = look_up(node, number, page);
		if (tlb->present && tlb->writable && tlb->dirty)
			return 0;
		/* It has to look at the page table to set the dirty bit there. */
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

int sim_store(unsigned int node, unsigned int process, u64 offset, const void *from,
	      unsigned int length)
{
	int err = make_writable(node, process, offset);

	if (!err)
		memcpy(frame(node, offset), from, length);
	return err;
}

int sim_add(unsigned int node, unsigned int process, u64 offset, u64 add,
	    unsigned int length, u64 *old)
{
	int err = make_writable(node, process, offset);
	u64 sum;

	if (err)
		return err;
	*old = 0;
	memcpy(old, frame(node, offset), length);
	sum = *old + add;
	memcpy(frame(node, offset), &sum, length);
	return 0;
}
