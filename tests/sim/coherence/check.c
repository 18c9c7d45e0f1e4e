// SPDX-License-Identifier: GPL-2.0
/*
 * Invariants of the protocols, checked between any two steps and when nothing is in flight.
 * While events are kept, this file records every change of a block as an event.
 */
#include <stdio.h>

#include "sim.h"

/* A block of a node, as it was before this step */
struct seen {
	struct kdsm_block block;	/* as in the last event */
	/* policy strict: */
	bool exists;
	u8 state;
	u64 until;			/* the node keeps the block until then at least */
};

static struct seen *all_seen;		/* by node and block */
static u64 written[BLOCKS_MAX];		/* newest write timestamp, */
static u64 claims[BLOCKS_MAX];		/* and how often the block had been discarded */
static unsigned int next;		/* block that the next step checks */

static struct seen *seen(unsigned int node, unsigned int i)
{
	return &all_seen[node * config.blocks + i];
}

struct kdsm_block *known_block(unsigned int node, u64 index)
{
	static struct kdsm_block views[KDSM_MAX_NODES];
	struct kdsm_coherence *coherence = &nodes[node].coherence;
	struct kdsm_block *view = &views[node];
	void *entry = xa_load(&coherence->table, index);

	if (!entry || kdsm_entry_block(entry))
		return entry;
	*view = (struct kdsm_block) {
		.index = index, .next = KDSM_NOBODY, .hint = KDSM_NOBODY,
	};
	if (!coherence->is_strict) {
		view->writer = KDSM_NOBODY;
		view->origin = KDSM_NOBODY;
	}
	kdsm_block_unpack(coherence, view, entry);
	return view;
}

static struct kdsm_block *peek(unsigned int node, u64 index)
{
	return nodes[node].closed ? NULL : known_block(node, index);
}

static u64 claims_in(const struct kdsm_block *block)
{
	return block->handover >> 48;
}

u64 claims_of(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);

	return block ? claims_in(block) : 0;
}

void check_start(void)
{
	all_seen = calloc(sim.nodes * config.blocks, sizeof(*all_seen));
	memset(written, 0, sizeof(written));
	memset(claims, 0, sizeof(claims));
	next = 0;
}

void check_stop(void)
{
	free(all_seen);
}

static u8 reading_of(const struct kdsm_block *block)
{
	return config.policy == KDSM_POLICY_STRICT ? block->reading : KDSM_READING_NONE;
}

/* Under policy strict this is the node that lends. */
static u16 writer_of(const struct kdsm_block *block)
{
	return config.policy == KDSM_POLICY_STRICT ? block->lender : block->writer;
}

static void note_change(unsigned int node, unsigned int i, const struct kdsm_block *block)
{
	static const char * const states[] = { "invalid", "readable", "WRITABLE" };
	static const char * const roles[] = { "none", "waiting", "GRANTED", "TAKING", "OWNER" };
	static const char * const readings[] = { "", " asks", " queued", " LENT" };
	struct kdsm_block *was = &seen(node, i)->block;

	if (was->state == block->state && was->role == block->role &&
	    was->busy == block->busy && was->twin == block->twin &&
	    was->modified == block->modified && was->owner == block->owner &&
	    was->next == block->next && writer_of(was) == writer_of(block) &&
	    was->wts == block->wts && was->rts == block->rts && was->wanted == block->wanted &&
	    was->handover == block->handover && was->given == block->given &&
	    reading_of(was) == reading_of(block) && was->lock.owner)
		return;
	*was = *block;
	was->lock.owner = (void *)1;	/* there was an event before */
	sim_event(block->index,
		  "  [%u] %s %s%s%s%s%s %llu%s owner %u next %d wts %llu rts %llu wanted %llu of %d",
		  node, states[block->state], roles[block->role], block->busy ? " busy" : "",
		  block->twin ? " twin" : "", block->modified ? " modified" : "",
		  readings[reading_of(block)], block->handover, block->given ? " given" : "",
		  block->owner, (s16)block->next, block->wts, block->rts, block->wanted,
		  (s16)writer_of(block));
}

/*
 * A node that raises the state of a block keeps the new state for at least a lease. So a
 * block that two nodes contend for moves at most once a lease. A node may evict the block sooner.
 */
static void check_lease(unsigned int node, unsigned int i, const struct kdsm_block *block)
{
	struct seen *was = seen(node, i);

	if (was->exists && block->state > was->state)
		was->until = sim_now() + KDSM_LEASE_DEFAULT / NSEC_PER_USEC;
	else if (block->state < was->state && sim_now() < was->until && !config.limit)
		sim_fail(block->index, "node %u loses the block %llu us before its lease ends",
			 node, was->until - sim_now());
	was->exists = true;	/* the first state is not checked: no node has asked for it */
	was->state = block->state;
}

/*
 * While one node may write, no page table or TLB of another node has an entry. When the region has
 * gone from a node, its mappings have gone before.
 */
static void check_writer(unsigned int writer, u64 index)
{
	unsigned int node;

	if (is_out(writer))
		return;
	for (node = 0; node < sim.nodes; node++)
		if (node != writer && !is_out(node) && !is_given_up(node) &&
		    !nodes[node].closed && is_mapped(node, index))
			sim_fail(index, "node %u writes what node %u has mapped", writer, node);
}

static bool is_holder(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_OWNER || block->role == KDSM_ROLE_GRANTED ||
	       block->role == KDSM_ROLE_TAKING;
}

static void check_timestamp(unsigned int i, const struct kdsm_block *block)
{
	/* The timestamps of a node that died, of which no other heard, end with a discard */
	if (block->wts < written[i] && claims_in(block) == claims[i])
		sim_fail(config.index[i], "write timestamp went from %llu to %llu", written[i],
			 block->wts);
	written[i] = block->wts;
	claims[i] = claims_in(block);
}

/* all: every block is checked at every step */
static void check_now(unsigned int i, bool all)
{
	unsigned int node, holders = 0;

	for (node = 0; node < sim.nodes; node++) {
		struct kdsm_block *block = peek(node, config.index[i]);

		if (!block)
			continue;
		if (sim_tracing)
			note_change(node, i, block);
		if (config.policy == KDSM_POLICY_STRICT) {
			if (all)
				check_lease(node, i, block);
			if (block->state == KDSM_BLOCK_WRITABLE)
				check_writer(node, config.index[i]);
		}
		if (is_out(node))
			continue;
		holders += is_holder(block);
		if (block->role == KDSM_ROLE_OWNER)
			check_timestamp(i, block);
	}
	if (holders > 1)
		sim_fail(config.index[i], "%u nodes hold the block", holders);
}

/* Blocks that are checked at a step, times nodes; more would make large seeds too slow */
#define CHECKS_MAX	64U

void check_step(void)
{
	unsigned int n = clamp_t(unsigned int, CHECKS_MAX / sim.nodes, 1, config.blocks), i;

	/* Millions of steps: check_idle() must do, when all threads meet */
	if (config.costs)
		return;
	for (i = 0; i < n; i++)
		check_now((next + i) % config.blocks, n == config.blocks);
	next = n == config.blocks ? 0 : (next + n) % config.blocks;
}

void check_untied(unsigned int node)
{
	unsigned int i;

	for (i = 0; i < config.blocks; i++)
		seen(node, i)->until = 0;
}

/* ---- blocks of nodes that have died ---- */

static unsigned int link_of(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);

	return block ? block->owner : kdsm_block_first_owner(&nodes[node].coherence, index);
}

/* Whether the queue behind the node has a dead node, to which nodes that ask are sent on */
static bool is_before_dead(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);
	unsigned int hops;

	for (hops = 0; block && block->next != KDSM_NOBODY && hops < sim.nodes; hops++) {
		if (is_out(block->next))
			return true;
		block = peek(block->next, index);
	}
	return false;
}

/* Whether the node has made the newest hand-over, to a living node where it has not arrived */
static bool is_giving(const struct kdsm_block *block, u64 index)
{
	const struct kdsm_block *heir = block && block->given ? peek(block->owner, index) : NULL;

	return heir && heir->handover < block->handover && !is_out(block->owner);
}

/* The timestamp that a signature demands of the content of a block */
static u64 demanded(const struct kdsm_signature *signature, u64 index)
{
	const struct kdsm_notice *notice;
	u64 ts = signature->floor;
	unsigned int i;

	for (i = 0; i < signature->count; i++) {
		notice = &signature->notices[i];
		if (index >= notice->first && index - notice->first < notice->count)
			ts = max(ts, notice->ts);
	}
	return ts;
}

void signature_check(const struct kdsm_signature *before, const struct kdsm_notice *added,
		     const struct kdsm_signature *after, const struct kdsm_raised *raised)
{
	unsigned int i;
	u64 index, least, ts;
	bool is_added;

	if (after->count > KDSM_NOTICES_MAX)
		sim_fail(SIM_NONE, "a signature has %u notices", after->count);
	for (i = 0; i < config.blocks; i++) {
		index = config.index[i];
		is_added = index >= added->first && index - added->first < added->count;
		least = max(demanded(before, index), is_added ? added->ts : 0);
		ts = demanded(after, index);
		if (ts < least)
			sim_fail(index, "a signature demands content of %llu, not of %llu",
				 ts, least);
		if (ts > least && ts > after->floor &&
		    (index < raised->first || index >= raised->end))
			sim_fail(index, "no acquire will look at this block, of which a summary demands content of %llu",
				 ts);
	}
}

/* The hint of a chase that starts now: see kdsm_block_learn() */
static unsigned int hint_of(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);
	const struct kdsm_notice *notice;

	notice = kdsm_signature_find(&nodes[node].coherence.signature, index, node);
	if (notice && (!block || notice->ts > max(block->wts, block->wanted)))
		return notice->writer == KDSM_NOBODY ? block ? block->hint : KDSM_NOBODY :
		       kdsm_notice_writer(notice, index);
	return block ? block->hint : KDSM_NOBODY;
}

bool is_reachable(unsigned int node, u64 index)
{
	const struct kdsm_block *block;
	unsigned int hint = hint_of(node, index), hops;

	/* A walk that does not end follows a block that moves. */
	for (hops = 0; hops <= 2 * sim.nodes; hops++) {
		if (is_out(node)) {
			if (hint == KDSM_NOBODY)
				return false;
			node = hint;
			hint = KDSM_NOBODY;
			continue;
		}
		if (is_before_dead(node, index))
			return false;
		block = peek(node, index);
		if (block && (block->role == KDSM_ROLE_GRANTED ||
			      block->role == KDSM_ROLE_TAKING || is_giving(block, index)))
			return !is_out(block->from);
		if (block ? block->role == KDSM_ROLE_OWNER : link_of(node, index) == node)
			return true;
		node = link_of(node, index);
	}
	return true;
}

bool is_stuck(unsigned int node)
{
	const struct kdsm_block *block;
	unsigned int i;

	for (i = 0; i < config.blocks; i++) {
		block = peek(node, config.index[i]);
		if (!block)
			continue;
		if (block->unread && sim_is_dead(block->owner))
			return true;
		if (kdsm_block_is_written(&nodes[node].coherence, block) &&
		    !is_reachable(node, config.index[i]))
			return true;
	}
	return false;
}

static bool has_content(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);

	if (!block)
		return kdsm_block_first_owner(&nodes[node].coherence, index) == node;
	return block->role == KDSM_ROLE_OWNER || block->role == KDSM_ROLE_TAKING ||
	       (block->role == KDSM_ROLE_GRANTED && !is_out(block->from));
}

bool is_lost(u64 index)
{
	const struct kdsm_block *block;
	unsigned int node;
	u64 newest = 0;

	for (node = 0; node < sim.nodes; node++) {
		if (is_out(node))
			continue;
		if (has_content(node, index))
			return false;
		block = peek(node, index);
		newest = max(newest, block ? block->handover : 1);
	}
	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		if (!is_out(node) && block && block->given && block->handover == newest &&
		    !is_out(block->owner) && !is_out(block->from))
			return false;
	}
	return true;
}

bool is_missed(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);

	return block && block->lost;
}

bool is_unreleased(unsigned int node, u64 index)
{
	const struct kdsm_block *block = peek(node, index);

	return block && block->modified && !kdsm_block_is_owned(block);
}

/* ---- when nothing is in flight ---- */

static u64 good_until(const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_GRANTED ? block->from_rts : block->rts;
}

/* Policy strict: the owner knows all nodes with copies; if it writes there are none. */
static void check_readers(u64 index, unsigned int owner)
{
	const struct kdsm_block *own = peek(owner, index), *block;
	unsigned int node;

	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		if (node == owner || !block || block->state == KDSM_BLOCK_INVALID ||
		    is_out(node))
			continue;
		if (block->state == KDSM_BLOCK_WRITABLE)
			sim_fail(index, "node %u writes, node %u owns", node, owner);
		if (own->state == KDSM_BLOCK_WRITABLE)
			sim_fail(index, "node %u has a copy, node %u writes", node, owner);
		if (!own->readers || !test_bit(node, own->readers))
			sim_fail(index, "node %u has a copy, and owner %u does not know",
				 node, owner);
	}
}

/* Whether the last hand-over was lost, and no node has wanted the block since */
static bool is_unheard(u64 index)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (is_giving(peek(node, index), index))
			return true;
	return false;
}

/* The node that owns the block when nothing is in flight; KDSM_NOBODY: none */
static unsigned int find_owner(u64 index)
{
	unsigned int node, owner = KDSM_NOBODY;
	struct kdsm_block *block;

	for (node = 0; node < sim.nodes; node++) {
		block = peek(node, index);
		if (is_out(node))
			continue;
		if (!block) {
			if (kdsm_block_first_owner(&nodes[node].coherence, index) == node)
				owner = node;
			continue;
		}
		if (block->busy || block->next != KDSM_NOBODY ||
		    block->role == KDSM_ROLE_WAITING || block->role == KDSM_ROLE_TAKING)
			sim_fail(index, "node %u is busy with the block, or waits for it", node);
		if (block->role != KDSM_ROLE_NONE)
			owner = node;
		if (config.policy == KDSM_POLICY_RELEASE &&
		    block->state == KDSM_BLOCK_WRITABLE && !block->dirty)
			sim_fail(index, "node %u: writable, but not in the write set", node);
	}
	return owner;
}

static void check_links(u64 index, unsigned int node, unsigned int owner)
{
	unsigned int at, hops;

	if (config.deaths || config.discard)	/* a link may lead to a dead node */
		return;
	for (at = node, hops = 0; at != owner; hops++) {
		if (hops > sim.nodes)
			sim_fail(index, "links from node %u do not lead to owner %u", node,
				 owner);
		at = link_of(at, index);
	}
}

static void check_expiry(u64 index, unsigned int node, unsigned int owner)
{
	const struct kdsm_block *block = peek(node, index), *own = peek(owner, index);

	if (block && block->state != KDSM_BLOCK_INVALID && own && block->rts > good_until(own))
		sim_fail(index, "the copy of node %u expires after the owner's", node);
}

/* Whether a node that has no content of a block needs a structure for it, and not only 8 bytes */
static bool needs_structure(const struct kdsm_block *block, unsigned int node)
{
	bool strict = config.policy == KDSM_POLICY_STRICT;

	/* 8 bytes cannot name the readers, or another node that has the content of a hand-over */
	if (strict && block->readers && !bitmap_empty(block->readers, sim.nodes))
		return true;
	if (block->given && (block->from != node || block->from_wts))
		return true;
	/* These arise only from failures: a task asked for the block, and did not get it */
	return block->role == KDSM_ROLE_GRANTED || block->lost ||
	       block->hint != KDSM_NOBODY || claims_in(block);
}

static void check_structure(u64 index, unsigned int node)
{
	const struct kdsm_block *block = peek(node, index);
	u64 offset = kdsm_block_offset(&nodes[node].coherence, index);

	if (!block || xa_is_value(xa_load(&nodes[node].coherence.table, index)) ||
	    kdsm_memory_holds(&nodes[node].frames, offset) ||
	    kdsm_memory_holds(&nodes[node].twins, offset))
		return;
	if (!needs_structure(block, node))
		sim_fail(index, "node %u has a structure of a block that it does not hold", node);
}

static void check_block(u64 index)
{
	unsigned int node, owner = find_owner(index);
	bool may_lose = config.healed || sim.nomem || sim.shortage;
	bool may_die = config.deaths || config.discard;

	if (owner == KDSM_NOBODY && (may_die || (may_lose && is_unheard(index))))
		return;
	if (owner == KDSM_NOBODY)
		sim_fail(index, "no node owns the block");
	if (config.policy == KDSM_POLICY_STRICT)
		check_readers(index, owner);
	for (node = 0; node < sim.nodes; node++) {
		if (is_out(node))
			continue;
		check_links(index, node, owner);
		check_structure(index, node);
		/* These defects must be found by the check of loads, not here. */
		if (sim_broken != BREAK_RTS && sim_broken != BREAK_LEASE &&
		    config.policy != KDSM_POLICY_STRICT)
			check_expiry(index, node, owner);
	}
}

void check_end(void)
{
	unsigned int i;

	for (i = 0; i < config.blocks; i++)
		check_block(config.index[i]);
}

static bool is_busy(const struct work_struct *work)
{
	return work->pending || work->running;
}

/*
 * Whether a node evicts, or keeps a block for the rest of a lease before it hands the block over.
 * When all threads have met, no node waits for the block any more: a node that lacked memory has
 * given up, or a node that asked again was queued twice.
 */
static bool is_working(void)
{
	unsigned int node;

	for (node = 0; node < sim.nodes; node++)
		if (is_busy(&nodes[node].coherence.owed_work) ||
		    is_busy(&nodes[node].coherence.evict_work))
			return true;
	return false;
}

void check_idle(void)
{
	/* After a fault the next owner may be a node that has given up. */
	if (sim.error || config.stall || config.outage || config.healed ||
	    config.deaths || config.away)
		return;
	if (sim_fabric_is_quiet() && !is_working())
		check_end();
}
