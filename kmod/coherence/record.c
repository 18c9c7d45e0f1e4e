// SPDX-License-Identifier: GPL-2.0
/*
 * How a node remembers a block that no task uses. A block with content, or whose last hand-over
 * may not have been taken up, becomes a record of 16 or 24 bytes. Any other block becomes a value
 * of 8 bytes in the table, or nothing at all. The next task that uses the block gets a structure
 * with the same state.
 *
 * If the state of a block does not fit, which is rare, its structure stays.
 */
#include <linux/bitfield.h>
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "internal.h"

#define KDSM_NODE_BITS		10
#define KDSM_NUMBER_BITS	20	/* numbers of hand-overs: those of claims do not fit */

/* Policy release. A copy has an origin, and an owner has leases. */
struct kdsm_release_record {
	u32 wts, rts;
	u32 handover : KDSM_NUMBER_BITS;
	u32 owner : KDSM_NODE_BITS;
	u32 state : 2;
	u32 origin_or_lease : KDSM_NODE_BITS;
	u32 idle : 4;
	u32 is_owned : 1;
	u32 has_origin : 1;
	u32 has_hint : 1;	/* the hint is the origin */
	u32 given : 1;
	u32 taken : 1;
	u32 unread : 1;
	u32 dirty : 1;
	u32 cached : 1;
	u32 twin : 1;
	u32 modified : 1;
	u32 whole : 1;
	u32 ahead : 1;
	u32 changing : 1;
	u32 missed : 1;
	u32 ask : 1;
} __aligned(8);

/* Policy strict */
struct kdsm_strict_record {
	unsigned long *readers;	/* as in struct kdsm_block */
	u32 ts;			/* wts, rts and wanted */
	u32 lease_end;		/* low bits of the time, in units of 1,024 ns; 0: it has ended */
	u32 handover : KDSM_NUMBER_BITS;
	u32 owner : KDSM_NODE_BITS;
	u32 state : 2;
	u32 is_owned : 1;
	u32 given : 1;
	u32 taken : 1;
	u32 unread : 1;
	u32 awaited : 1;
} __aligned(8);

static struct kmem_cache *kdsm_release_records, *kdsm_strict_records;

int kdsm_records_init(void)
{
	/* A node has a record of each block that it holds, so a byte more costs much memory */
	BUILD_BUG_ON(sizeof(struct kdsm_release_record) != 16);
	BUILD_BUG_ON(sizeof(struct kdsm_strict_record) != 24);
	BUILD_BUG_ON(KDSM_MAX_NODES > 1 << KDSM_NODE_BITS);
	kdsm_release_records = KMEM_CACHE(kdsm_release_record, SLAB_ACCOUNT);
	if (!kdsm_release_records)
		return -ENOMEM;
	kdsm_strict_records = KMEM_CACHE(kdsm_strict_record, SLAB_ACCOUNT);
	if (!kdsm_strict_records)
		kmem_cache_destroy(kdsm_release_records);
	return kdsm_strict_records ? 0 : -ENOMEM;
}

void kdsm_records_exit(void)
{
	kmem_cache_destroy(kdsm_strict_records);
	kmem_cache_destroy(kdsm_release_records);
}

size_t kdsm_record_size(const struct kdsm_coherence *coherence)
{
	return coherence->is_strict ? sizeof(struct kdsm_strict_record) :
				      sizeof(struct kdsm_release_record);
}

/* ---- the state of a block ---- */

/* Whether the block is neither busy nor lost, and no node and no work item waits for it */
static bool kdsm_block_is_idle(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	if (block->busy || block->lost || block->next != KDSM_NOBODY)
		return false;
	return !coherence->is_strict ||
	       (list_empty(&block->owed) && !kdsm_readers_wait(coherence, block));
}

bool kdsm_block_is_bare(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	return kdsm_block_is_idle(coherence, block) && !block->dirty && !block->cached &&
	       !block->twin && !block->modified && !block->unread;
}

/*
 * Policy strict: whether any node except one (but) has a copy. Caller has the only reference, so
 * it needs no lock of the block.
 */
static bool kdsm_block_is_read(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block, unsigned int but)
{
	unsigned int i;

	if (!coherence->is_strict || !block->readers)
		return false;
	for_each_set_bit(i, block->readers, coherence->nodes)
		if (i != but)
			return true;
	return false;
}

/* Whether this node owns a block that nobody has written, and no other node has a copy */
static bool kdsm_block_is_zero(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_OWNER && block->state == KDSM_BLOCK_READABLE &&
	       !block->wts && !kdsm_block_is_read(coherence, block, coherence->node);
}

/* Whether this node has neither the block nor a copy, and asks for neither */
static bool kdsm_block_is_elsewhere(const struct kdsm_coherence *coherence,
				    const struct kdsm_block *block)
{
	if (block->role != KDSM_ROLE_NONE || block->state != KDSM_BLOCK_INVALID)
		return false;
	return coherence->is_strict ? block->reading == KDSM_READING_NONE : !block->whole;
}

/* ---- nothing ---- */

/*
 * A node that never had the block may forget its link, because the link of a new structure leads to
 * the first owner, which remembers where it handed the block over to. If the first owner is gone,
 * the link stays. This node has taken up no hand-over, so it can take none up twice. The node may
 * forget what notices demanded, because kdsm_block_learn() finds that again. It may forget the
 * timestamps of a copy that a notice made invalid, because the next content must be newer. A copy
 * that outlived its lease stays, because it may still be current. Policy strict: a node remembers
 * what writers demanded (wanted), because their messages may be repeated late.
 */
bool kdsm_block_is_new(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	unsigned int first = kdsm_block_first_owner(coherence, block->index);

	if (block->taken || (coherence->is_strict && block->wanted))
		return false;
	if (first != coherence->node)
		return kdsm_block_is_elsewhere(coherence, block) &&
		       (block->owner == first || !kdsm_is_gone(coherence, first));
	return kdsm_block_is_zero(coherence, block) && !block->rts;
}

/* ---- values ---- */

/*
 * A value entry of the table, 8 bytes, stands for an idle block of which this node has no content.
 * Another node owns the block, or this node owns it and nobody has written it.
 *
 * - OWNER: the link. HANDOVER: the number of the newest hand-over, so that this node takes no
 *   hand-over up twice.
 * - GIVEN: this node made that hand-over, and repeats it until the next owner has taken it up. If
 *   nobody has written the block, the hand-over only says how long copies are valid, which is TS.
 *   After other hand-overs a record stays, until eviction finds that the next owner has the block
 *   (kdsm_block_was_read()), or this node hears of a newer hand-over.
 * - TS: the largest timestamp of the former content. One number serves as wts and rts, because no
 *   write has a timestamp between them. Content that arrives later must not be older than what
 *   programs of this node wrote or read, nor than what the stamp of this node promises.
 *
 * The other fields need not be remembered. The origin of a copy and the state of a request exist
 * only with a copy or a task. kdsm_block_learn() finds again what notices say, and ask_first and
 * ask_end tell which blocks were refreshed. A block with a hint gets no value, because a discard
 * may have found that owner.
 */
#define KDSM_MEMO_GIVEN		BIT_ULL(0)
#define KDSM_MEMO_OWNER		GENMASK_ULL(10, 1)
#define KDSM_MEMO_HANDOVER	GENMASK_ULL(30, 11)
#define KDSM_MEMO_TS		GENMASK_ULL(62, 31)

/* Whether a value entry suffices to repeat the newest hand-over, if this node made that */
static bool kdsm_given_fits(const struct kdsm_coherence *coherence,
			    const struct kdsm_block *block)
{
	/* The next owner makes zeros itself, so the hand-over need not list it as a reader */
	return !block->given || (block->from == coherence->node && !block->from_wts &&
				 !kdsm_block_is_read(coherence, block, block->owner));
}

void *kdsm_block_memo(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	u64 ts = max3(block->wts, block->rts, coherence->is_strict ? block->wanted : 0);
	bool leads_here = block->owner == coherence->node;

	BUILD_BUG_ON(KDSM_MAX_NODES - 1 > FIELD_MAX(KDSM_MEMO_OWNER));
	if (!kdsm_block_is_zero(coherence, block) &&
	    (!kdsm_block_is_elsewhere(coherence, block) || !kdsm_given_fits(coherence, block)))
		return NULL;
	/* kdsm_block_recall() tells by the link whether this node owns the block */
	if (kdsm_block_is_owned(block) != leads_here)
		return NULL;
	/* The numbers of claims do not fit, but claims are rare */
	if (block->hint != KDSM_NOBODY || block->handover > FIELD_MAX(KDSM_MEMO_HANDOVER) ||
	    ts > FIELD_MAX(KDSM_MEMO_TS))
		return NULL;
	return xa_mk_value(FIELD_PREP(KDSM_MEMO_GIVEN, block->given) |
			   FIELD_PREP(KDSM_MEMO_OWNER, block->owner) |
			   FIELD_PREP(KDSM_MEMO_HANDOVER, block->handover) |
			   FIELD_PREP(KDSM_MEMO_TS, ts));
}

/* Fill in a structure from such a value */
static void kdsm_block_recall(const struct kdsm_coherence *coherence, struct kdsm_block *block,
			      u64 memo)
{
	u64 ts = FIELD_GET(KDSM_MEMO_TS, memo);

	block->owner = FIELD_GET(KDSM_MEMO_OWNER, memo);
	block->handover = FIELD_GET(KDSM_MEMO_HANDOVER, memo);
	block->taken = true;
	block->rts = ts;
	if (block->owner == coherence->node) {
		block->whole = !coherence->is_strict;
		block->role = KDSM_ROLE_OWNER;
		block->state = KDSM_BLOCK_READABLE;
		return;
	}
	block->role = KDSM_ROLE_NONE;
	block->state = KDSM_BLOCK_INVALID;
	block->whole = false;
	block->wts = ts;
	block->wanted = coherence->is_strict ? ts : 0;
	block->given = FIELD_GET(KDSM_MEMO_GIVEN, memo);
	block->from = coherence->node;
	block->from_rts = ts;
}

/* ---- records ---- */

static struct kdsm_release_record *kdsm_release_record(const void *entry)
{
	return (void *)((unsigned long)entry - KDSM_RECORD_TAG);
}

static struct kdsm_strict_record *kdsm_strict_record(const void *entry)
{
	return (void *)((unsigned long)entry - KDSM_RECORD_TAG);
}

/*
 * Whether the next owner has taken up the hand-over that this node made: the copy here has a
 * promise or, policy strict, a write that is newer, and only a later owner makes one.
 */
static bool kdsm_given_is_over(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	return coherence->is_strict ? block->wts > block->from_wts : block->rts > block->from_rts;
}

/* Whether wts and rts of the record suffice to repeat the hand-over */
static bool kdsm_given_is_kept(const struct kdsm_coherence *coherence,
			       const struct kdsm_block *block)
{
	return block->from == coherence->node && block->from_wts == block->wts &&
	       (coherence->is_strict || block->from_rts == block->rts);
}

/* Policy strict: whether this node only remembers what it must not take up any more */
static bool kdsm_copy_is_over(const struct kdsm_coherence *coherence,
			      const struct kdsm_block *block)
{
	return block->role == KDSM_ROLE_NONE && block->state == KDSM_BLOCK_INVALID &&
	       (!block->given || kdsm_given_is_over(coherence, block));
}

/* Whether the record can hold the state of the block */
static bool kdsm_record_fits(const struct kdsm_coherence *coherence, const struct kdsm_block *block)
{
	if (block->role != KDSM_ROLE_NONE && block->role != KDSM_ROLE_OWNER)
		return false;
	if (max3(block->wts, block->rts, coherence->is_strict ? block->wanted : 0) > U32_MAX ||
	    block->handover >= 1 << KDSM_NUMBER_BITS)
		return false;
	if (block->given && !kdsm_given_is_over(coherence, block) &&
	    !kdsm_given_is_kept(coherence, block))
		return false;
	if (coherence->is_strict)
		return block->reading == KDSM_READING_NONE && block->hint == KDSM_NOBODY &&
		       (block->wanted <= block->wts || kdsm_copy_is_over(coherence, block));
	/* An owner has asked for the block, so it needs no hint */
	return block->hint == KDSM_NOBODY || block->hint == block->origin ||
	       kdsm_block_is_owned(block);
}

static void kdsm_release_pack(const struct kdsm_coherence *coherence,
			      const struct kdsm_block *block, struct kdsm_release_record *record)
{
	bool is_owned = kdsm_block_is_owned(block), has_origin = block->origin != KDSM_NOBODY;

	record->wts = block->wts;
	record->rts = block->rts;
	record->handover = block->handover;
	record->owner = block->owner;
	record->state = block->state;
	if (is_owned)
		record->origin_or_lease = block->lease;
	else
		record->origin_or_lease = has_origin ? block->origin : 0;
	record->idle = block->idle;
	record->is_owned = is_owned;
	record->has_origin = !is_owned && has_origin;
	record->has_hint = !is_owned && block->hint != KDSM_NOBODY;
	record->given = block->given && !kdsm_given_is_over(coherence, block);
	record->taken = block->taken;
	record->unread = block->unread;
	record->dirty = block->dirty;
	record->cached = block->cached;
	record->twin = block->twin;
	record->modified = block->modified;
	record->whole = block->whole;
	record->ahead = block->ahead;
	record->changing = block->changing;
	record->missed = block->missed;
	record->ask = block->ask;
}

static void kdsm_release_unpack(struct kdsm_block *block, const struct kdsm_release_record *record)
{
	block->wts = record->wts;
	block->rts = record->rts;
	block->handover = record->handover;
	block->owner = record->owner;
	block->state = record->state;
	block->role = record->is_owned ? KDSM_ROLE_OWNER : KDSM_ROLE_NONE;
	block->lease = record->is_owned ? record->origin_or_lease : 0;
	block->origin = record->has_origin ? record->origin_or_lease : KDSM_NOBODY;
	block->hint = record->has_hint ? block->origin : KDSM_NOBODY;
	block->idle = record->idle;
	block->given = record->given;
	block->taken = record->taken;
	block->unread = record->unread;
	block->dirty = record->dirty;
	block->cached = record->cached;
	block->twin = record->twin;
	block->modified = record->modified;
	block->whole = record->whole;
	block->ahead = record->ahead;
	block->changing = record->changing;
	block->missed = record->missed;
	block->ask = record->ask;
}

/* The time in units of 1,024 ns, rounded up */
static u64 kdsm_lease_units(u64 ns)
{
	return (ns >> 10) + 1;
}

static void kdsm_strict_pack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
			     struct kdsm_strict_record *record)
{
	bool is_over = block->lease_end <= ktime_get_ns();

	record->ts = max3(block->wts, block->rts, block->wanted);
	record->lease_end = is_over ? 0 : (u32)kdsm_lease_units(block->lease_end) ?: 1;
	record->handover = block->handover;
	record->owner = block->owner;
	record->state = block->state;
	record->is_owned = kdsm_block_is_owned(block);
	record->given = block->given && !kdsm_given_is_over(coherence, block);
	record->taken = block->taken;
	record->unread = block->unread;
	record->awaited = block->awaited;
	/* Only the owner, or a node that may repeat its hand-over, needs the readers */
	if ((record->is_owned || record->given) &&
	    kdsm_block_is_read(coherence, block, KDSM_NOBODY)) {
		record->readers = block->readers;
		block->readers = NULL;
	} else {
		record->readers = NULL;
	}
}

/* Longer than any lease, and the time that a node waits for a program to begin it, in ns */
#define KDSM_LEASE_LONGEST	(2 * KDSM_LEASE_MAX)

static void kdsm_strict_unpack(struct kdsm_block *block, const struct kdsm_strict_record *record)
{
	u64 now = ktime_get_ns();
	s32 left = record->lease_end - (u32)kdsm_lease_units(now);

	block->wts = record->ts;
	block->rts = record->ts;
	block->wanted = record->ts;
	/* Longer than any lease: it ended long ago, and the low bits of the time have wrapped */
	if (record->lease_end && left > 0 && left <= KDSM_LEASE_LONGEST >> 10)
		block->lease_end = now + ((u64)left << 10);
	block->handover = record->handover;
	block->owner = record->owner;
	block->state = record->state;
	block->role = record->is_owned ? KDSM_ROLE_OWNER : KDSM_ROLE_NONE;
	block->given = record->given;
	block->taken = record->taken;
	block->unread = record->unread;
	block->awaited = record->awaited;
	block->readers = record->readers;
}

unsigned long *kdsm_record_readers(const struct kdsm_coherence *coherence, const void *entry)
{
	return coherence->is_strict ? kdsm_strict_record(entry)->readers : NULL;
}

void kdsm_record_free(struct kdsm_coherence *coherence, void *entry)
{
	coherence->records--;
	if (coherence->is_strict)
		kmem_cache_free(kdsm_strict_records, kdsm_strict_record(entry));
	else
		kmem_cache_free(kdsm_release_records, kdsm_release_record(entry));
}

void kdsm_record_glance(const struct kdsm_coherence *coherence, const void *entry,
			struct kdsm_glance *glance)
{
	const struct kdsm_release_record *release;
	const struct kdsm_strict_record *strict;

	if (coherence->is_strict) {
		strict = kdsm_strict_record(entry);
		*glance = (struct kdsm_glance) {
			.state = strict->state, .owned = strict->is_owned,
			.wts = strict->ts, .rts = strict->ts,
		};
		return;
	}
	release = kdsm_release_record(entry);
	*glance = (struct kdsm_glance) {
		.state = release->state, .owned = release->is_owned,
		.written = release->modified || release->dirty, .cached = release->cached,
		.ahead = release->ahead,
		.wts = release->wts, .rts = release->rts,
	};
}

static void *kdsm_record_alloc(struct kdsm_coherence *coherence)
{
	void *record = kmem_cache_alloc(coherence->is_strict ? kdsm_strict_records :
							       kdsm_release_records,
					GFP_NOWAIT | __GFP_NOWARN);

	if (!record)
		return NULL;
	coherence->records++;
	return (void *)((unsigned long)record + KDSM_RECORD_TAG);
}

void *kdsm_record_pack(struct kdsm_coherence *coherence, struct kdsm_block *block)
{
	void *entry;

	if (!kdsm_block_is_idle(coherence, block) || !kdsm_record_fits(coherence, block))
		return NULL;
	entry = block->record ?: kdsm_record_alloc(coherence);
	block->record = NULL;
	if (!entry)
		return ERR_PTR(-ENOMEM);
	if (coherence->is_strict)
		kdsm_strict_pack(coherence, block, kdsm_strict_record(entry));
	else
		kdsm_release_pack(coherence, block, kdsm_release_record(entry));
	return entry;
}

void kdsm_block_unpack(const struct kdsm_coherence *coherence, struct kdsm_block *block,
		       void *entry)
{
	if (xa_is_value(entry)) {
		kdsm_block_recall(coherence, block, xa_to_value(entry));
		return;
	}
	block->record = entry;
	block->from = coherence->node;
	if (coherence->is_strict)
		kdsm_strict_unpack(block, kdsm_strict_record(entry));
	else
		kdsm_release_unpack(block, kdsm_release_record(entry));
	block->from_wts = block->wts;
	block->from_rts = block->rts;
}
