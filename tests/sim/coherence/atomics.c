// SPDX-License-Identifier: GPL-2.0
/*
 * Atomic operations of the module, for policy release. Each must act on the value that the one
 * before it left, on whatever node that was. Locks order accesses by some of these words (sync.c).
 */
#include "sim.h"

static struct atom {
	u64 offset, value;
	u64 claims;		/* how often the block had been discarded */
	unsigned int size;
} atoms[ATOMS_MAX];

/*
 * The protocol does not use argsz, so the threads count effects there. This is added to it if the
 * node acted on content from before a discard.
 */
#define OLD_CONTENT 0x10000

/* Whether one of the first count words is in the same 64 bytes */
static bool is_used(u64 offset, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (atoms[i].offset / 64 == offset / 64)
			return true;
	return false;
}

bool atomics_use_cell(u64 offset)
{
	return is_used(offset, config.atoms);
}

/* Choose places for the words, before other words have theirs. Some share a block, and 8 bytes. */
void atomics_start(void)
{
	unsigned int i;

	memset(atoms, 0, sizeof(atoms));
	for (i = 0; i < config.atoms; i++) {
		unsigned int block = sim_below(config.blocks);

		atoms[i].size = sim_chance(2) ? 4 : 8;
		if (i && atoms[i].size == 4 && atoms[i - 1].size == 4 &&
		    !(atoms[i - 1].offset % 8)) {
			atoms[i].offset = atoms[i - 1].offset + 4;
			continue;
		}
		do {
			atoms[i].offset = used_cell(block);
		} while (is_used(atoms[i].offset, i));
		atoms[i].offset += atoms[i].size * sim_below(64 / atoms[i].size);
	}
}

static s64 block(const struct atom *atom)
{
	return block_of(atom->offset >> PAGE_SHIFT);
}

void atomic_done(struct kdsm_atomic *atomic)
{
	unsigned int node = sim_fiber_node();
	u64 mask = atomic->size == 8 ? U64_MAX : U32_MAX;
	struct atom *atom = atoms;
	u64 claims;

	while (atom->offset != atomic->offset)
		atom++;
	claims = claims_of(node, block(atom));
	sim_event(block(atom), "node %u: atomic %u at %llx finds %llu", node, atomic->opcode,
		  atomic->offset, atomic->result);
	if (claims < atom->claims) {
		atomic->argsz += OLD_CONTENT + 1;
		return;
	}
	if (claims > atom->claims)
		atom->value = 0;
	atom->claims = claims;
	if (atomic->result != atom->value)
		sim_fail(block(atom), "node %u: an atomic operation finds %llu at %llx, not %llu",
			 node, atomic->result, atomic->offset, atom->value);
	if (atomic->opcode == KDSM_ATOMIC_EXCHANGE ||
	    (atomic->opcode == KDSM_ATOMIC_CAS && atom->value == (atomic->compare & mask)))
		atom->value = atomic->operand & mask;
	if (atomic->opcode == KDSM_ATOMIC_ADD)
		atom->value = (atom->value + atomic->operand) & mask;
	if (atomic->argsz++)
		sim_fail(block(atom), "an atomic operation takes effect twice");
}

static int atomic_perform(struct kdsm_coherence *coherence, struct kdsm_atomic *atomic, bool wait)
{
	struct kdsm_block *block;
	int err;

	if (sim_broken != BREAK_BLIND)
		return kdsm_coherence_atomic(coherence, atomic, wait);
	block = kdsm_block_get(coherence, block_of(atomic->offset >> PAGE_SHIFT));
	if (!block)
		return -ENOMEM;
	err = coherence->policy->atomic(coherence, block, atomic, wait);
	kdsm_block_put(coherence, block);
	return err;
}

static int atomic_try(struct thread *thread, struct kdsm_atomic *atomic)
{
	struct kdsm_coherence *coherence = &nodes[thread->node].coherence;
	int err = 0;

	/* As kdsm_region_atomic() */
	if (atomic->flags & KDSM_ATOMIC_RELEASE)
		err = kdsm_coherence_release(coherence, NULL);
	nodes[thread->node].atomics++;
	if (!err)
		err = atomic_perform(coherence, atomic, false);
	if (err == -EAGAIN)
		err = atomic_perform(coherence, atomic, true);
	nodes[thread->node].atomics--;
	return err;
}

void thread_atomic(struct thread *thread, unsigned int which, unsigned int flags)
{
	const struct atom *atom = &atoms[which];
	unsigned int tries = 0;
	bool knows;
	int err;

	do {
		struct kdsm_atomic atomic = {
			.flags = flags,
			.offset = atom->offset,
			.opcode = sim_between(flags == KDSM_ATOMIC_RELEASE ? KDSM_ATOMIC_EXCHANGE :
					      KDSM_ATOMIC_LOAD, KDSM_ATOMIC_ADD),
			.size = atom->size,
			.operand = sim_random(),
		};

		if (!flags && sim_chance(4)) {
			atomic.opcode = KDSM_ATOMIC_CAS;
			atomic.compare = sim_chance(2) ? atom->value : atomic.operand;
		}
		thread_check();
		counts.atomics++;
		sim_event(block(atom), "%u: atomic %u at %llx, flags %u", thread->number,
			  atomic.opcode, atom->offset, flags);
		knows = can_know_out(thread->node);
		err = atomic_try(thread, &atomic);
		if (atomic.argsz & OLD_CONTENT) {
			if (knows)
				sim_fail(block(atom), "an outcast performs an atomic operation");
			atomic.argsz -= OLD_CONTENT;
		}
		if (!sim_is_dead(thread->node) && atomic.argsz != !err)
			sim_fail(block(atom), "an atomic operation returns %d after %u effects",
				 err, atomic.argsz);
	} while (try_again(err, &tries, block(atom), block(atom), "atomic"));
}

void atomics_some(struct thread *thread)
{
	unsigned int which = sim_below(config.atoms), n = sim_between(1, 3);
	u64 value;

	while (n--)
		thread_atomic(thread, which, 0);
	/* Keep a copy, which the next operation of this node must not trust. */
	if (sim_chance(2))
		thread_load(thread, atoms[which].offset, atoms[which].size, &value);
}
