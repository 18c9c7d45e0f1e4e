// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of the protocol, looked at between steps, and with events being kept
 * what every step changed in the blocks.
 */
#include <stdio.h>

#include "sim.h"

static struct kdsm_block before[SIM_NODES][SIM_BLOCKS];
static u64 written[SIM_BLOCKS];

/* Of policy strict: what a node may do with a block, and until when at least. */
static struct {
	u8 state;
	bool exists;
	u64 until;
} held[SIM_NODES][SIM_BLOCKS];

static struct kdsm_block *peek(unsigned int node, u64 index)
{
	struct kdsm_block *table;

	table = sim_nodes[node].coherence.tables[index >> KDSM_TABLE_SHIFT];
	return table ? &table[index & (KDSM_TABLE_SIZE - 1)] : NULL;
}

void sim_check_start(void)
{
	memset(before, 0, sizeof(before));
	memset(written, 0, sizeof(written));
	memset(held, 0, sizeof(held));
}

static void changes(unsigned int node, unsigned int i, const struct kdsm_block *block)
{
	static const char * const states[] = { "invalid", "readable", "WRITABLE" };
	static const char * const roles[] = { "none", "waiting", "GRANTED", "TAKING", "OWNER" };
	struct kdsm_block *was = &before[node][i];

	if (was->state == block->state && was->role == block->role &&
	    was->busy == block->busy && was->twin == block->twin &&
	    was->modified == block->modified && was->owner == block->owner &&
	    was->next == block->next && was->writer == block->writer &&
	    was->wts == block->wts && was->rts == block->rts && was->wanted == block->wanted &&
	    was->handover == block->handover && was->given == block->given &&
	    was->lock.owner)
		return;
	*was = *block;
	was->lock.owner = (void *)1;
	sim_event(block->index,
		  "  [%u] %s %s%s%s%s %llu%s owner %u next %d wts %llu rts %llu wanted %llu of %d",
		  node, states[block->state], roles[block->role], block->busy ? " busy" : "",
		  block->twin ? " twin" : "", block->modified ? " modified" : "",
		  block->handover, block->given ? " given" : "",
		  block->owner, (s16)block->next, block->wts, block->rts, block->wanted,
		  (s16)block->writer);
}

/*
 * What a node has come to, it keeps for a lease. As nobody else can write meanwhile,
 * a block that two fight over moves once a lease at most.
 */
static void check_lease(unsigned int node, unsigned int i, const struct kdsm_block *block)
{
	typeof(held[0][0]) *was = &held[node][i];

	if (was->exists && block->state > was->state)
		was->until = sim_now() + KDSM_LEASE_DEFAULT / NSEC_PER_USEC;
	else if (block->state < was->state && sim_now() < was->until)
		sim_fail(block->index, "node %u loses the block %llu us before its lease is over",
			 node, was->until - sim_now());
	was->exists = true;	/* a table is made with what nobody has asked for yet */
	was->state = block->state;
}

/* One writer, whom programs may have to thank for that there is no other entry. */
static void check_writer(unsigned int writer, u64 index)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (node != writer && sim_is_mapped(node, index))
			sim_fail(index, "node %u writes what node %u has mapped", writer, node);
}

void sim_check_step(void)
{
	unsigned int i, node;

	for (i = 0; i < sim.blocks; i++) {
		unsigned int holders = 0;

		for (node = 0; node < sim.nodes; node++) {
			struct kdsm_block *block = peek(node, sim.index[i]);

			if (!block)
				continue;
			if (sim_tracing)
				changes(node, i, block);
			if (sim.policy == KDSM_POLICY_STRICT) {
				check_lease(node, i, block);
				if (block->state == KDSM_BLOCK_WRITABLE)
					check_writer(node, sim.index[i]);
			}
			if (block->role == KDSM_ROLE_OWNER ||
			    block->role == KDSM_ROLE_GRANTED ||
			    block->role == KDSM_ROLE_TAKING)
				holders++;
			if (block->role != KDSM_ROLE_OWNER)
				continue;
			if (block->wts < written[i])
				sim_fail(sim.index[i], "write timestamp went from %llu to %llu",
					 written[i], block->wts);
			written[i] = block->wts;
		}
		if (holders > 1)
			sim_fail(sim.index[i], "%u nodes hold the block", holders);
	}
}

static u64 good_until(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_GRANTED ? block->from_rts : block->rts;
}

/* Of policy strict: the owner knows who has copies, and has the only one if it writes. */
static void check_readers(u64 index, unsigned int owner)
{
	const struct kdsm_block *own = peek(owner, index), *block;
	unsigned int node;

	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		if (node == owner || !block || block->state == KDSM_BLOCK_INVALID)
			continue;
		if (block->state == KDSM_BLOCK_WRITABLE)
			sim_fail(index, "node %u writes, node %u owns", node, owner);
		if (own->state == KDSM_BLOCK_WRITABLE)
			sim_fail(index, "node %u has a copy, node %u writes", node, owner);
		if (!own->readers || !(own->readers[0] >> node & 1))
			sim_fail(index, "node %u has a copy that node %u does not know of",
				 node, owner);
	}
}

/* Was it handed over with nobody listening, and has nobody wanted it since? */
static bool is_unheard(u64 index)
{
	struct kdsm_block *block, *other;
	unsigned int node;

	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		other = block && block->given ? peek(block->owner, index) : NULL;
		if (other && other->handover < block->handover)
			return true;
	}
	return false;
}

static void check_block(u64 index)
{
	unsigned int node, at, hops, owner = KDSM_NOBODY;
	struct kdsm_block *block;

	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		if (!block) {
			if ((index >> KDSM_TABLE_SHIFT) % sim.nodes == node)
				owner = node;
			continue;
		}
		if (block->busy || block->next != KDSM_NOBODY ||
		    block->role == KDSM_ROLE_WAITING || block->role == KDSM_ROLE_TAKING)
			sim_fail(index, "node %u is still at it", node);
		if (block->role != KDSM_ROLE_NONE)
			owner = node;
		if (sim.policy == KDSM_POLICY_RELEASE &&
		    block->state == KDSM_BLOCK_WRITABLE && list_empty(&block->dirty))
			sim_fail(index, "node %u: writable, but not in the write set", node);
	}
	if (owner == KDSM_NOBODY && sim.healed && is_unheard(index))
		return;
	if (owner == KDSM_NOBODY)
		sim_fail(index, "nobody owns it");
	if (sim.policy == KDSM_POLICY_STRICT)
		check_readers(index, owner);
	for (node = 0; node < sim.nodes; node++) {
		for (at = node, hops = 0; at != owner; hops++) {
			if (hops > sim.nodes)
				sim_fail(index, "node %u does not reach the owner, %u",
					 node, owner);
			block = peek(at, index);
			at = block ? block->owner :
			     (index >> KDSM_TABLE_SHIFT) % sim.nodes;
		}
		/* With these faults it is to be seen in what a program reads. */
		if (sim_broken == SIM_BREAK_RTS || sim_broken == SIM_BREAK_LEASE ||
		    sim.policy == KDSM_POLICY_STRICT)
			continue;
		block = peek(node, index);
		if (block && block->state != KDSM_BLOCK_INVALID && peek(owner, index) &&
		    block->rts > good_until(peek(owner, index)))
			sim_fail(index, "a copy at node %u is good until after the owner's", node);
	}
}

void sim_check_end(void)
{
	unsigned int i;

	for (i = 0; i < sim.blocks; i++)
		check_block(sim.index[i]);
}

void sim_check_quiet(void)
{
	/* After failures a node may be next that does not want it any more. */
	if (sim_quiet() && !sim.error && !sim.stall && !sim.down && !sim.healed)
		sim_check_end();
}
