// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: read-ahead. A miss at the block where a sequence of misses was expected
 * to continue brings the following blocks along, twice as many each time, up to
 * KDSM_AHEAD_MAX bytes.
 *
 * A block comes along only if no node has to be asked for it. Its writer is known from a
 * notice, or, if the stamp of the missed block is read, the block's stamp at the same node
 * promises enough. Blocks of the second kind are read in a second chain, after the stamps
 * have arrived. So the module knows before the read that the content is not older than the
 * content of the frame, and does not fetch content that is too old.
 *
 * These blocks become valid copies by the rules of a read miss: each is busy meanwhile,
 * gets a lease, and is then compared with the floor. A block for which an
 * acquire demanded more in the meantime stays invalid. The task already has a busy block,
 * so it waits for no other busy block and skips such blocks.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

/* Smallest and largest read-ahead window, in bytes */
#define KDSM_AHEAD_MIN		SZ_16K
#define KDSM_AHEAD_MAX		SZ_1M

/* ---- sequences ---- */

/*
 * Return the read-ahead window for a miss of this block, in blocks, or 0 if the miss
 * continues no sequence. A sequence that starts at the region's first block is recognised
 * at once.
 */
static unsigned int kdsm_stream_advance(struct kdsm_coherence *coherence, u64 index,
					struct kdsm_stream **stream)
{
	unsigned int shift = kdsm_segment_of(coherence, index)->shift, window = 0, i;
	struct kdsm_stream *found = NULL;

	spin_lock(&coherence->lock);
	for (i = 0; i < KDSM_STREAMS && !found; i++)
		if (coherence->streams[i].next == index)
			found = &coherence->streams[i];
	if (found) {
		window = max3(2 * found->window, (unsigned int)KDSM_AHEAD_MIN >> shift, 1U);
		window = min(window, (unsigned int)KDSM_AHEAD_MAX >> shift);
	} else {
		found = &coherence->streams[coherence->stream++ % KDSM_STREAMS];
	}
	found->window = window;
	found->next = index + 1;
	spin_unlock(&coherence->lock);
	*stream = found;
	return window;
}

/* Expect the next miss at next. If another thread reused the stream, its sequence is lost. */
static void kdsm_stream_expect(struct kdsm_coherence *coherence, struct kdsm_stream *stream,
			       u64 next)
{
	spin_lock(&coherence->lock);
	stream->next = next;
	spin_unlock(&coherence->lock);
}

/* ---- blocks ---- */

/*
 * Add a block, and a reference to it, if it can come along. Returns false if the sequence ends
 * before this block, because the block needs more than a read.
 */
static bool kdsm_ahead_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    unsigned int owner, struct kdsm_ahead *ahead)
{
	bool known, more = true;

	mutex_lock(&block->lock);
	if (block->state == KDSM_BLOCK_INVALID && !block->busy &&
	    !kdsm_block_is_leaving(coherence, block)) {
		kdsm_block_learn(coherence, block);
		known = kdsm_block_writer_known(coherence, block);
		more = (known || (owner != KDSM_NOBODY && block->owner == owner)) &&
		       !block->ask && !block->twin && !block->dirty;
		if (more) {
			kdsm_block_begin(coherence, block);	/* does not wait */
			kdsm_block_hold(coherence, block);
			ahead->list[ahead->count++] = (struct kdsm_ahead_block) {
				.block = block,
				.known = known,
				.from = known ? block->writer : owner,
				.wts = known ? block->wanted : 0,
			};
		}
	}
	mutex_unlock(&block->lock);
	return more;
}

struct kdsm_ahead *kdsm_ahead_begin(struct kdsm_coherence *coherence,
				    const struct kdsm_block *block, unsigned int owner)
{
	struct kdsm_stream *stream;
	struct kdsm_ahead *ahead;
	struct kdsm_block *next;
	unsigned int window;
	bool more;
	u64 i, end;

	window = kdsm_stream_advance(coherence, block->index, &stream);
	if (!window)
		return NULL;
	ahead = kzalloc(struct_size(ahead, list, window), GFP_KERNEL);
	if (!ahead)
		return NULL;
	ahead->stream = stream;
	/* Blocks of one size */
	end = min(block->index + 1 + window, kdsm_segment_end(coherence, block->index));
	if (owner != KDSM_NOBODY)
		end = min(end, block->index + kdsm_stamps_left(block));
	for (i = block->index + 1; i < end; i++) {
		next = kdsm_block_get(coherence, i);
		if (!next)
			break;
		more = kdsm_ahead_take(coherence, next, owner, ahead);
		kdsm_block_put(coherence, next);
		if (!more)
			break;
	}
	kdsm_stream_expect(coherence, stream, i);
	ahead->stamps = i - block->index;
	return ahead;
}

/*
 * End the block's busy mark, and drop the reference. If its content has arrived and is new enough,
 * make it valid.
 */
static void kdsm_ahead_drop(struct kdsm_coherence *coherence,
			    const struct kdsm_ahead_block *entry, bool is_here)
{
	struct kdsm_block *block = entry->block;

	mutex_lock(&block->lock);
	if (is_here && entry->known)
		kdsm_coherence_count(coherence, FAST_READS, 1);
	else if (is_here)
		kdsm_coherence_count(coherence, SLOW_READS, 1);
	if (is_here && entry->same)
		kdsm_coherence_count(coherence, RENEWALS, 1);
	if (is_here)
		WRITE_ONCE(block->ahead,
			   kdsm_block_brought(coherence, block,
					      entry->same ? KDSM_NOBODY : entry->from,
					      entry->wts, entry->wts));
	kdsm_block_end(coherence, block);
	mutex_unlock(&block->lock);
	kdsm_block_put(coherence, block);
}

/* Drop the blocks whose stamps promise too little */
static void kdsm_ahead_choose(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead,
			      const struct kdsm_block *block, const struct kdsm_stamp *stamps)
{
	unsigned int i, kept = 0;
	u64 good, need, wts;

	for (i = 0; i < ahead->count; i++) {
		struct kdsm_ahead_block entry = ahead->list[i];

		if (!entry.known) {
			good = kdsm_stamp_value(&stamps[entry.block->index - block->index], &wts);
			mutex_lock(&entry.block->lock);
			need = kdsm_block_need(coherence, entry.block);
			if (good && good >= need) {
				entry.wts = good;
				entry.same = entry.block->whole && wts <= entry.block->wts;
			}
			mutex_unlock(&entry.block->lock);
		}
		if (entry.wts) {
			ahead->list[kept++] = entry;
			continue;
		}
		/* The sequence will miss next at this block */
		if (kept == i)
			kdsm_stream_expect(coherence, ahead->stream, entry.block->index);
		kdsm_ahead_drop(coherence, &entry, false);
	}
	ahead->count = kept;
}

void kdsm_ahead_add(struct kdsm_fetch *fetch, const struct kdsm_ahead *ahead)
{
	const u64 since = fetch->since;
	unsigned int i;

	for (i = 0; ahead && i < ahead->count; i++) {
		if (ahead->list[i].same)
			continue;
		/* A notice tells where the content was, at any time before */
		fetch->since = ahead->list[i].known ? 0 : since;
		kdsm_fetch_add(fetch, ahead->list[i].block, ahead->list[i].from, NULL);
	}
}

bool kdsm_ahead_fetch(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead,
		      const struct kdsm_block *block, const struct kdsm_stamp *stamps, u64 since)
{
	struct kdsm_fetch fetch;

	if (!ahead)
		return true;
	kdsm_ahead_choose(coherence, ahead, block, stamps);
	if (kdsm_fetch_begin(&fetch, coherence, coherence->frames, since, block, ahead->count))
		return false;
	kdsm_ahead_add(&fetch, ahead);
	return !kdsm_fetch_end(&fetch);
}

void kdsm_ahead_end(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead, bool is_here)
{
	unsigned int i;

	for (i = 0; ahead && i < ahead->count; i++)
		kdsm_ahead_drop(coherence, &ahead->list[i], is_here);
	kfree(ahead);
}

/* Use the block if read-ahead brought it. Returns whether the next one may be such a block. */
static bool kdsm_ahead_use_one(struct kdsm_coherence *coherence, struct kdsm_block *block,
			       kdsm_map_t map, void *arg)
{
	bool ahead;

	mutex_lock(&block->lock);
	/* The pages of a leaving chunk are unmapped already, and are about to be freed */
	ahead = block->ahead && block->state != KDSM_BLOCK_INVALID &&
		!kdsm_block_is_leaving(coherence, block);
	WRITE_ONCE(block->ahead, false);
	if (ahead && map(arg, block->index, block->state == KDSM_BLOCK_WRITABLE))
		ahead = false;
	mutex_unlock(&block->lock);
	return ahead;
}

void kdsm_ahead_use(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		    kdsm_map_t map, void *arg)
{
	struct kdsm_glance glance;
	struct kdsm_block *next;
	bool more = true;
	u64 i;

	for (i = block->index + 1; more && i < coherence->blocks; i++) {
		/* Most accesses continue no read-ahead */
		if (!kdsm_block_glance(coherence, &i, i, &glance) || !glance.ahead)
			return;
		next = kdsm_block_find(coherence, i);
		if (!next)
			return;
		more = kdsm_ahead_use_one(coherence, next, map, arg);
		kdsm_block_put(coherence, next);
	}
}
