// SPDX-License-Identifier: GPL-2.0
/*
 * Deliberate defects in functions that protocol files call in other protocol files. The
 * linker's --wrap redirects these calls to this file, so the protocol files need no change.
 */
#include "sim.h"

int __wrap_kdsm_twin_make(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (sim_broken == BREAK_TWIN && kdsm_block_is_owned(block)) {
		block->twin = true;
		return 0;
	}
	return __real_kdsm_twin_make(coherence, block);
}

bool __wrap_kdsm_signature_add(struct kdsm_signature *signature,
			       const struct kdsm_notice *notice, struct kdsm_raised *raised)
{
	const struct kdsm_signature before = *signature;
	unsigned int i;
	bool is_new;

	if (sim_broken == BREAK_NOTICE && sim_chance(20))
		return false;
	is_new = __real_kdsm_signature_add(signature, notice, raised);
	if (!config.costs)
		signature_check(&before, notice, signature, raised);
	for (i = 0; sim_broken == BREAK_SUMMARY && i < signature->count; i++)
		if (signature->notices[i].writer == KDSM_NOBODY)
			signature->notices[i].ts = signature->notices[0].ts;
	if (sim_broken == BREAK_RAISED)
		raised->end = 0;
	return is_new;
}

/* Policy strict: a writer asks the readers to drop their copies. */
struct kdsm_broadcast *
__wrap_kdsm_broadcast_begin(struct kdsm_fabric *fabric, const unsigned long *nodes,
			    enum kdsm_message_type type, const void *data, unsigned int length)
{
	DECLARE_BITMAP(asked, KDSM_MAX_NODES);
	unsigned int node;

	bitmap_copy(asked, nodes, sim.nodes);
	for_each_set_bit(node, nodes, sim.nodes)
		if (sim_broken == BREAK_READER && sim_chance(10))
			__clear_bit(node, asked);
	return __real_kdsm_broadcast_begin(fabric, asked, type, data, length);
}

int __wrap_kdsm_broadcast_end(struct kdsm_broadcast *broadcast, int *statuses,
			      unsigned long timeout, unsigned int state)
{
	unsigned int node;
	int err;

	/* Of readers that were not asked */
	memset(statuses, 0, sim.nodes * sizeof(*statuses));
	err = __real_kdsm_broadcast_end(broadcast, statuses, timeout, state);
	for (node = 0; node < sim.nodes; node++) {
		if (sim_broken == BREAK_DEAD &&
		    (statuses[node] == -ENOENT || statuses[node] == -EHOSTDOWN))
			statuses[node] = -EIO;
		if (sim_broken == BREAK_EARLY && statuses[node] == -EAGAIN)
			statuses[node] = 0;
	}
	return err;
}

static unsigned int place_of(u64 index)
{
	unsigned int i;

	for (i = 0; config.index[i] != index; i++)
		;
	return i;
}

/* The node that a node that has got this answer asks next, whatever it has heard of; or NOBODY */
static u16 break_next(const struct kdsm_wire_answer *answer, unsigned int from, unsigned int to)
{
	if (sim_broken == BREAK_PLACE)
		return answer->answer == KDSM_ANSWER_QUEUED ? to : KDSM_NOBODY;
	return answer->answer == KDSM_ANSWER_ASK && !answer->handover.number &&
	       answer->node != from ? answer->node : KDSM_NOBODY;
}

/*
 * A queued node asks the node that queued it again, or a node that is sent on to a successor asks
 * that one, instead of asking along the links.
 */
int __wrap_kdsm_message(struct kdsm_fabric *fabric, unsigned int node,
			enum kdsm_message_type type, const void *data, unsigned int length,
			void *reply, unsigned int *reply_length)
{
	const struct kdsm_wire_answer *answer = reply;
	const struct kdsm_wire_block *wire = data;
	struct kdsm_wire_block asked;
	u16 *place;
	int err;

	if ((sim_broken != BREAK_PLACE && sim_broken != BREAK_CIRCLE) ||
	    type != KDSM_MESSAGE_BLOCK_OWN)
		return __real_kdsm_message(fabric, node, type, data, length, reply, reply_length);
	place = &nodes[fabric->node].place[place_of(wire->index)];
	asked = (struct kdsm_wire_block) { .id = wire->id, .index = wire->index };
	/* A hand-over is only for the node that the link leads to. */
	if (*place != KDSM_NOBODY && *place != node) {
		node = *place;
		data = &asked;
		length = kdsm_handover_cut(&asked.handover, sizeof(asked));
	}
	err = __real_kdsm_message(fabric, node, type, data, length, reply, reply_length);
	*place = err ? KDSM_NOBODY : break_next(answer, fabric->node, node);
	return err;
}

/* A release takes over a block. */
int __wrap_kdsm_ownership_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts)
{
	struct node *node = &nodes[coherence->node];
	unsigned int i;
	int err;

	if (sim_broken == BREAK_LOST && node->has_failed)
		return -EHOSTDOWN;
	i = place_of(block->index);
	node->tried[i] = true;
	node->place[i] = KDSM_NOBODY;
	err = __real_kdsm_ownership_take(coherence, block, from, wts, rts);
	node->has_failed |= err;
	if (!err)
		race_taken(coherence->node, block->index);
	return err;
}

int __wrap_kdsm_ownership_read(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int *from, u64 *wts, u64 *rts)
{
	int err = __real_kdsm_ownership_read(coherence, block, from, wts, rts);

	if (sim_broken == BREAK_KEPT && !err && block->unread &&
	    kdsm_block_is_leaving(coherence, block))
		*from = (coherence->node + 1) % sim.nodes;
	return err;
}

void __wrap_kdsm_twin_merge(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    const struct kdsm_bounce *theirs, unsigned int from, bool keep)
{
	unsigned int i;

	if (sim_broken == BREAK_ATOMIC && !keep && nodes[coherence->node].atomics)
		return;
	if (sim_broken == BREAK_MERGE)
		for (i = 0; i < theirs->count; i++)
			memcpy(kdsm_block_page(coherence, coherence->frames, block, i),
			       theirs->pages[i], PAGE_SIZE);
	else
		__real_kdsm_twin_merge(coherence, block, theirs, from,
				       keep && sim_broken != BREAK_KEEP);
}

bool __wrap_kdsm_twin_is_here(const struct kdsm_block *block, unsigned int from, u64 wts)
{
	struct kdsm_block other = *block;

	if (sim_broken == BREAK_SKIP)
		wts = 0;
	if (sim_broken == BREAK_ORIGIN && block->origin != KDSM_NOBODY)
		from = block->origin;
	other.direct |= sim_broken == BREAK_DIRECT;
	return __real_kdsm_twin_is_here(&other, from, wts);
}

bool __wrap_kdsm_block_in_doubt(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	return sim_broken != BREAK_DOUBT && __real_kdsm_block_in_doubt(coherence, block);
}

void __wrap_kdsm_race_found(struct kdsm_coherence *coherence, const struct kdsm_race *race,
			    bool keep)
{
	struct kdsm_race other = *race;

	if (!config.litmus)		/* its programs race */
		race_found(race);
	if (sim_broken == BREAK_RACE && sim_chance(4))
		return;
	if (sim_broken == BREAK_BLAME)
		other.other = (other.other + 1) % sim.nodes;
	__real_kdsm_race_found(coherence, &other, keep);
}

void __wrap_kdsm_block_learn(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	if (sim_broken != BREAK_LEARN)
		__real_kdsm_block_learn(coherence, block);
}

/* Falsify the value that the node keeps for a block without a structure. */
static void break_memo(struct kdsm_coherence *coherence, u64 index)
{
	struct kdsm_block *block;
	void *entry;

	xa_lock(&coherence->table);
	entry = xa_load(&coherence->table, index);
	if (xa_is_value(entry)) {
		block = known_block(coherence->node, index);
		if (sim_broken == BREAK_MEMO)
			block->handover = 1;
		if (sim_broken == BREAK_LINK)
			block->owner = (coherence->node + 1) % coherence->nodes;
		if (sim_broken == BREAK_PAST) {
			block->wts = 0;
			block->rts = 0;
		}
		__xa_cmpxchg(&coherence->table, index, entry, kdsm_block_memo(coherence, block), 0);
	}
	xa_unlock(&coherence->table);
}

void __wrap_kdsm_block_put(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	u64 index = block->index;

	if (sim_broken == BREAK_DROP)
		block->taken = false;
	__real_kdsm_block_put(coherence, block);
	if (sim_broken == BREAK_MEMO || sim_broken == BREAK_LINK || sim_broken == BREAK_PAST)
		break_memo(coherence, index);
}

/* Falsify what a structure gets from a record. The views of known_block() have no users. */
void __wrap_kdsm_block_unpack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
			      void *entry)
{
	__real_kdsm_block_unpack(coherence, block, entry);
	if (!block->users || !kdsm_entry_is_record(entry))
		return;
	if (sim_broken == BREAK_RECORD)
		block->modified = false;
	if (sim_broken == BREAK_COPIES && block->readers)
		bitmap_zero(block->readers, coherence->nodes);
	if (sim_broken == BREAK_STAY)
		block->lease_end = 0;
}

void __wrap_kdsm_block_cached(struct kdsm_coherence *coherence, struct kdsm_block *block,
			      bool is_cached)
{
	if (sim_broken == BREAK_COVER && sim_chance(4))
		block->cached = is_cached;
	else
		__real_kdsm_block_cached(coherence, block, is_cached);
}

int __wrap_kdsm_release_acquire(struct kdsm_coherence *coherence,
				const struct kdsm_signature *signature)
{
	int err;

	coherence->behind |= sim_broken == BREAK_WALK;
	if (sim_broken == BREAK_SOON)
		coherence->acquired = max(coherence->acquired, signature->floor);
	err = __real_kdsm_release_acquire(coherence, signature);
	if (sim_broken == BREAK_BEHIND)
		coherence->behind = false;
	return err;
}

bool __wrap_kdsm_word_update(atomic64_t *bytes, struct kdsm_atomic *atomic)
{
	bool stored = __real_kdsm_word_update(bytes, atomic);

	atomic_done(atomic);
	return stored;
}

int __wrap_kdsm_acquire_until(struct kdsm_coherence *coherence, u64 floor)
{
	return sim_broken == BREAK_WEAK ? 0 : __real_kdsm_acquire_until(coherence, floor);
}

int __wrap_kdsm_release_refresh(struct kdsm_coherence *coherence, u64 first, u64 last)
{
	int err = __real_kdsm_release_refresh(coherence, first, last);
	struct kdsm_block *block;
	u64 i;

	if (sim_broken != BREAK_ASK)
		return err;
	for (i = first; (block = kdsm_block_next(coherence, &i, last)); i++) {
		block->ask = false;
		kdsm_block_put(coherence, block);
	}
	return err;
}

/* Take a block that the fetch of another block brought along. */
bool __wrap_kdsm_block_brought(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       unsigned int from, u64 wts, u64 rts)
{
	if (sim_broken != BREAK_AHEAD)
		return __real_kdsm_block_brought(coherence, block, from, wts, rts);
	block->wts = wts;
	block->rts = rts;
	kdsm_block_cached(coherence, block, true);
	block->writer = KDSM_NOBODY;
	block->state = KDSM_BLOCK_READABLE;
	return true;
}

void __wrap_kdsm_stamp_raise(struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	struct kdsm_block other = *block;

	if (sim_broken == BREAK_STAMP)
		other.rts += 20;
	if (sim_broken == BREAK_SAME)
		other.wts = 0;
	__real_kdsm_stamp_raise(coherence, &other);
}

void __wrap_kdsm_batch_post(struct kdsm_batch *batch)
{
	struct kdsm_operation *op;

	if (sim_broken == BREAK_ORDER)
		list_for_each_entry(op, &batch->operations, link)
			if (op->length >= PAGE_SIZE)
				op->ordered = false;
	__real_kdsm_batch_post(batch);
}
