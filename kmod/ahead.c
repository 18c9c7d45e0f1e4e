// SPDX-License-Identifier: GPL-2.0
/*
 * Policy release: read-ahead. A miss of the block where the last one of a sequence
 * said that the next would be brings the blocks behind it along, twice as many
 * each time, up to KDSM_AHEAD_MAX bytes.
 *
 * Only blocks whose writer is known from a notice come along, as they need nobody
 * to be asked. They become valid copies by the rules of a read miss: each is busy
 * meanwhile, enters the list of copies, and then looks at the floor. What an
 * acquire asked for since stays invalid. Nobody waits for a busy block here, who
 * has one already: those that are busy are left to whoever is at them.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "access.h"

/* In bytes. */
#define KDSM_AHEAD_MIN		SZ_16K
#define KDSM_AHEAD_MAX		SZ_1M

/* ---- sequences ---- */

/*
 * The window of a miss of that block, in blocks, 0: it continues no sequence. A
 * reader of the region from its start is one from the first miss on.
 */
static unsigned int kdsm_stream_advance(struct kdsm_coherence *coherence, u64 index,
					struct kdsm_stream **stream)
{
	unsigned int shift = coherence->block_shift, window = 0, i;
	struct kdsm_stream *found = NULL;

	spin_lock(&coherence->lock);
	for (i = 0; i < KDSM_STREAMS && !found; i++)
		if (coherence->streams[i].next == index)
			found = &coherence->streams[i];
	if (found) {
		window = max3(2 * found->window, KDSM_AHEAD_MIN >> shift, 1);
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

/* Another thread may have taken it for another sequence: then it is lost. */
static void kdsm_stream_expect(struct kdsm_coherence *coherence, struct kdsm_stream *stream,
			       u64 next)
{
	spin_lock(&coherence->lock);
	stream->next = next;
	spin_unlock(&coherence->lock);
}

/* ---- blocks ---- */

/* False: the sequence ends before this block, which needs more than a read. */
static bool kdsm_ahead_take(struct kdsm_coherence *coherence, struct kdsm_block *block,
			    struct kdsm_ahead *ahead)
{
	bool more = true;

	mutex_lock(&block->lock);
	if (block->state == KDSM_BLOCK_INVALID && !block->busy) {
		more = kdsm_block_writer_known(coherence, block) && !block->twin &&
		       list_empty(&block->dirty);
		if (more) {
			kdsm_block_begin(coherence, block);	/* without waiting */
			ahead->list[ahead->count++] = (struct kdsm_ahead_block) {
				.block = block,
				.from = block->writer,
				.wts = block->wanted,
			};
		}
	}
	mutex_unlock(&block->lock);
	return more;
}

struct kdsm_ahead *kdsm_ahead_begin(struct kdsm_coherence *coherence,
				    const struct kdsm_block *block)
{
	struct kdsm_stream *stream;
	struct kdsm_ahead *ahead;
	struct kdsm_block *next;
	unsigned int window;
	u64 i, end;

	window = kdsm_stream_advance(coherence, block->index, &stream);
	if (!window)
		return NULL;
	ahead = kzalloc(struct_size(ahead, list, window), GFP_KERNEL);
	if (!ahead)
		return NULL;
	end = min(block->index + 1 + window, coherence->blocks);
	for (i = block->index + 1; i < end; i++) {
		next = kdsm_block(coherence, i);
		if (!next || !kdsm_ahead_take(coherence, next, ahead))
			break;
	}
	kdsm_stream_expect(coherence, stream, i);
	return ahead;
}

void kdsm_ahead_add(struct kdsm_fetch *fetch, const struct kdsm_ahead *ahead)
{
	unsigned int i;

	for (i = 0; ahead && i < ahead->count; i++)
		kdsm_fetch_add(fetch, ahead->list[i].block, ahead->list[i].from, NULL);
}

void kdsm_ahead_end(struct kdsm_coherence *coherence, struct kdsm_ahead *ahead, bool is_here,
		    kdsm_map_t map, void *arg)
{
	unsigned int i;

	for (i = 0; ahead && i < ahead->count; i++) {
		struct kdsm_block *block = ahead->list[i].block;
		u64 wts = ahead->list[i].wts;

		mutex_lock(&block->lock);
		if (is_here)
			kdsm_coherence_count(coherence, FAST_READS, 1);
		if (is_here && kdsm_block_brought(coherence, block, wts, wts))
			map(arg, block->index, false);
		kdsm_block_end(coherence, block);
		mutex_unlock(&block->lock);
	}
	kfree(ahead);
}
