// SPDX-License-Identifier: GPL-2.0
/*
 * Fetching the content of blocks from other nodes: remote reads, many of them posted
 * together, and pages (bounces) for content that must not enter a frame at once.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "internal.h"

/* How often to read what a node keeps for this one, before the node counts as broken */
#define KDSM_KEPT_TRIES		8

/* Maximum number of remote reads that are posted together */
#define KDSM_FETCH_MAX		64U

/* ---- bounces ---- */

struct kdsm_bounce *kdsm_bounce_alloc(struct kdsm_coherence *coherence,
				      const struct kdsm_block *block)
{
	unsigned int count = kdsm_block_size(coherence, block->index) >> PAGE_SHIFT;
	struct kdsm_bounce *bounce;

	bounce = kzalloc(struct_size(bounce, pages, count), GFP_KERNEL);
	if (!bounce)
		return NULL;
	while (bounce->count < count) {
		bounce->pages[bounce->count] = (void *)__get_free_page(GFP_KERNEL);
		if (!bounce->pages[bounce->count]) {
			kdsm_bounce_free(bounce);
			return NULL;
		}
		bounce->count++;
	}
	return bounce;
}

void kdsm_bounce_free(struct kdsm_bounce *bounce)
{
	if (!bounce)
		return;
	while (bounce->count)
		free_page((unsigned long)bounce->pages[--bounce->count]);
	kfree(bounce);
}

/* ---- fetching ---- */

int kdsm_fetch_begin(struct kdsm_fetch *fetch, struct kdsm_coherence *coherence,
		     struct kdsm_memory *memory, u64 since, const struct kdsm_block *block,
		     unsigned int blocks)
{
	u64 pages = blocks * kdsm_block_size(coherence, block->index) >> PAGE_SHIFT;

	fetch->coherence = coherence;
	fetch->memory = memory;
	fetch->since = since;
	fetch->room = min_t(u64, 1 + pages, KDSM_FETCH_MAX);
	fetch->stamps = NULL;
	fetch->count = 0;
	fetch->err = 0;
	fetch->ops = kcalloc(fetch->room, sizeof(*fetch->ops), GFP_KERNEL);
	return fetch->ops ? 0 : -ENOMEM;
}

static struct kdsm_memory *kdsm_fetch_memory(const struct kdsm_fetch *fetch,
					     const struct kdsm_operation *op)
{
	return op->data == fetch->stamps ? fetch->coherence->stamps : fetch->memory;
}

/* Post the collected reads and wait for them */
static void kdsm_fetch_run(struct kdsm_fetch *fetch)
{
	struct kdsm_batch batch;
	unsigned int i;

	kdsm_batch_init(&batch, fetch->coherence->fabric, fetch->memory);
	for (i = 0; i < fetch->count; i++)
		kdsm_batch_add_to(&batch, kdsm_fetch_memory(fetch, &fetch->ops[i]),
				  &fetch->ops[i]);
	kdsm_batch_post(&batch);
	/* Ends in bounded time, because the fabric gives up peers that do not answer */
	kdsm_batch_wait(&batch, KDSM_NO_TIMEOUT, TASK_UNINTERRUPTIBLE);
	kdsm_batch_finish(&batch);
	for (i = 0; i < fetch->count && !fetch->err; i++) {
		fetch->err = fetch->ops[i].status;
		kdsm_coherence_count(fetch->coherence, BYTES, fetch->ops[i].length);
	}
	fetch->count = 0;
}

/* Extend the last read by one page if the page continues it, as pages of a chunk often do */
static bool kdsm_fetch_append(struct kdsm_fetch *fetch, unsigned int node, u64 offset,
			      const void *data)
{
	struct kdsm_operation *last;

	if (!fetch->count)
		return false;
	last = &fetch->ops[fetch->count - 1];
	if (last->data == fetch->stamps || last->node != node || last->since != fetch->since ||
	    last->offset + last->length != offset || last->data + last->length != data ||
	    last->length == KDSM_SEGMENT_MAX || !(offset & (KDSM_CHUNK_SIZE - 1)))
		return false;
	last->length += PAGE_SIZE;
	return true;
}

/*
 * Whether the next read must wait for the stamps. Only the read that follows them must: the device
 * starts later reads after it, and so after the stamps have arrived. A fence on each read would
 * cost a round trip for each.
 */
static bool kdsm_fetch_follows_stamps(const struct kdsm_fetch *fetch)
{
	return fetch->stamps && fetch->count &&
	       fetch->ops[fetch->count - 1].data == fetch->stamps;
}

void kdsm_fetch_add(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		    unsigned int node, struct kdsm_bounce *bounce)
{
	struct kdsm_coherence *coherence = fetch->coherence;
	u64 offset = kdsm_block_offset(coherence, block->index);
	unsigned int pages = kdsm_block_size(coherence, block->index) >> PAGE_SHIFT, i;
	void *data;

	for (i = 0; i < pages && !fetch->err; i++, offset += PAGE_SIZE) {
		data = bounce ? bounce->pages[i] :
		       kdsm_block_page(coherence, coherence->frames, block, i);
		if (IS_ERR(data)) {
			fetch->err = PTR_ERR(data);
			return;
		}
		if (kdsm_fetch_append(fetch, node, offset, data))
			continue;
		if (fetch->count == fetch->room)
			kdsm_fetch_run(fetch);
		fetch->ops[fetch->count] = (struct kdsm_operation) {
			.opcode = KDSM_OP_GET,
			.node = node,
			.length = PAGE_SIZE,
			.offset = offset,
			.data = data,
			.since = fetch->since,
			.ordered = kdsm_fetch_follows_stamps(fetch),
		};
		fetch->count++;
	}
}

void kdsm_fetch_stamps(struct kdsm_fetch *fetch, const struct kdsm_block *block,
		       unsigned int node, unsigned int count)
{
	fetch->stamps = kcalloc(count, sizeof(*fetch->stamps), GFP_KERNEL);
	if (!fetch->stamps) {
		fetch->err = -ENOMEM;
		return;
	}
	fetch->ops[fetch->count++] = (struct kdsm_operation) {
		.opcode = KDSM_OP_GET,
		.node = node,
		.length = count * sizeof(*fetch->stamps),
		.offset = kdsm_stamp_offset(block->index),
		.data = fetch->stamps,
		.ordered = true,
	};
}

int kdsm_fetch_end(struct kdsm_fetch *fetch)
{
	if (fetch->count && !fetch->err)
		kdsm_fetch_run(fetch);
	kfree(fetch->ops);
	return fetch->err;
}

int kdsm_block_fetch(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		     const struct kdsm_source *source, struct kdsm_bounce *bounce)
{
	struct kdsm_fetch fetch;
	int err;

	err = kdsm_fetch_begin(&fetch, coherence, source->memory, source->since, block, 1);
	if (err)
		return err;
	kdsm_fetch_add(&fetch, block, source->node, bounce);
	return kdsm_fetch_end(&fetch);
}

int kdsm_block_kept(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		    struct kdsm_memory *memory, unsigned int node, u64 wts,
		    struct kdsm_bounce *bounce)
{
	struct kdsm_source source = { .memory = memory, .node = node };
	unsigned int tries;
	int err = -ESTALE;

	/* An honest node causes one failure for the key of each of its chunks */
	for (tries = 0; err == -ESTALE && tries < KDSM_KEPT_TRIES; tries++) {
		source.since = kdsm_memory_drops(memory);
		err = kdsm_block_content(coherence, block, &source, wts, bounce);
	}
	return err == -ESTALE ? -EIO : err;
}

int kdsm_block_content(struct kdsm_coherence *coherence, const struct kdsm_block *block,
		       const struct kdsm_source *source, u64 wts, struct kdsm_bounce *bounce)
{
	unsigned int i;

	if (wts)
		return kdsm_block_fetch(coherence, block, source, bounce);
	if (!bounce)
		return kdsm_block_clear(coherence, block);
	for (i = 0; i < bounce->count; i++)
		clear_page(bounce->pages[i]);
	return 0;
}
