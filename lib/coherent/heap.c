// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The interface of the heap: its layout, finding the object of a pointer, guard bytes.
 * Small objects are in heap_slot.c, large ones in heap_run.c, and frees that need a release
 * first in heap_free.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

#define MAGIC		(UINT64_C(0x6b64736d) << 32)	/* in the head, with KDSM_HEAP_DEBUG */
#define MIN_CHUNK	65536		/* size of the smallest chunk, in bytes */
#define MOST_CHUNKS	16384		/* bound of the chunks of a heap */
#define MOST_ALIGNMENT	4096		/* largest alignment of an object, in bytes */
#define ROUNDED_TO	(2UL << 20)	/* the module rounds large regions up to this, in bytes */

/* ---- layout ---- */

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* The layout is the same on all nodes, because size, block_size and nodes are. */
static void make_layout(struct kd_heap_layout *layout, uint64_t size, uint64_t block_size,
			unsigned int nodes)
{
	layout->chunk = block_size > MIN_CHUNK ? block_size : MIN_CHUNK;
	while (size / layout->chunk > MOST_CHUNKS)
		layout->chunk *= 2;
	layout->chunks = size / layout->chunk;
	layout->per_node = (layout->chunks + nodes - 1) / nodes;
	layout->words = layout->chunk / KD_HEAP_GRAIN / 64;
	layout->used = round_up(KD_HEAP_CHUNKS + 8 * layout->per_node, 64);
}

static uint64_t layout_bytes(const struct kd_heap_layout *layout)
{
	return layout->used + layout->per_node * 2 * layout->words * 8;
}

/*
 * The region may be larger than the size asked for: the size is rounded up to blocks, and
 * the module rounds a region of at least 2 MiB up to a multiple of 2 MiB.
 */
uint64_t kdsm_heap_sync_size(uint64_t size, uint32_t block_size, unsigned int nodes)
{
	uint64_t block = block_size ? block_size : 4096, least, most;
	struct kd_heap_layout layout;

	size = round_up(size, block);
	make_layout(&layout, size, block, nodes ? nodes : 1);
	least = layout_bytes(&layout);
	if (size < ROUNDED_TO)
		return least;
	/* The larger size takes less if its chunks are twice as large: return the maximum. */
	make_layout(&layout, round_up(size, ROUNDED_TO), block, nodes ? nodes : 1);
	most = layout_bytes(&layout);
	return most > least ? most : least;
}

/* ---- creating and opening ---- */

static int check(const struct kdsm_region *region, const struct kdsm_region *sync,
		 uint64_t offset, unsigned int flags, const struct kd_heap_layout *layout)
{
	int ret;

	if (!region->coherent)
		return kd_not_coherent(region);
	if (sync->coherent)
		return kd_not_partitioned(sync);
	if (offset % 64)
		return kd_misaligned(offset, 64);
	if (flags & ~(KDSM_HEAP_DEBUG | KDSM_HEAP_ABORT))
		return kd_because(-EINVAL, "heap: flags 0x%x have unknown bits", flags);
	ret = kd_pair_check(region, sync);
	if (ret)
		return ret;
	if (layout->chunks < sync->nodes)
		return kd_because(-EFBIG,
				  "region \"%s\" has less than one chunk of %" PRIu64 " bytes for each of %u nodes",
				  region->name, layout->chunk, sync->nodes);
	return kdsm_range_check(sync, offset, layout_bytes(layout));
}

/*
 * If create, store the description of this heap in the head, or check that the head holds the
 * same description. Otherwise read the head and adopt its KDSM_HEAP_DEBUG flag.
 */
static int enter(struct kdsm_heap *heap, bool create)
{
	uint64_t place = heap->offset + KD_HEAP_HEAD, former, want;
	int ret;

	want = MAGIC | (heap->flags & KDSM_HEAP_DEBUG);
	if (create)
		ret = kdsm_cas(heap->sync, 0, place, 0, want, &former);
	else
		ret = kd_heap_read(heap, 0, place, &former);
	if (ret)
		return ret;
	if (former && (former & ~(uint64_t)KDSM_HEAP_DEBUG) != MAGIC)
		return kd_because(-EINVAL,
				  "region \"%s\": the bytes at offset %" PRIu64 " are not those of a heap",
				  heap->sync->name, heap->offset);
	if (create && former && former != want)
		return kd_because(-EINVAL,
				  "region \"%s\": the heap at offset %" PRIu64 " exists %s KDSM_HEAP_DEBUG",
				  heap->sync->name, heap->offset,
				  former & KDSM_HEAP_DEBUG ? "with" : "without");
	if (create)
		return 0;
	if (!former)
		return kd_because(-ENOENT, "region \"%s\": there is no heap at offset %" PRIu64,
				  heap->sync->name, heap->offset);
	heap->flags = (heap->flags & ~KDSM_HEAP_DEBUG) | (former & KDSM_HEAP_DEBUG);
	return 0;
}

static void heap_free(struct kdsm_heap *heap)
{
	pthread_mutex_destroy(&heap->lock);
	free(heap->known);
	free(heap);
}

static int heap_make(struct kdsm_region *region, struct kdsm_region *sync, uint64_t offset,
		     unsigned int flags, bool create, struct kdsm_heap **out)
{
	struct kd_heap_layout layout;
	struct kdsm_heap *heap;
	int ret;

	*out = NULL;
	make_layout(&layout, region->size, kdsm_region_block_size(region), sync->nodes);
	ret = check(region, sync, offset, flags, &layout);
	if (ret)
		return ret;
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	heap->region = region;
	heap->sync = sync;
	heap->offset = offset;
	heap->flags = flags;
	heap->node = sync->node;
	heap->nodes = sync->nodes;
	heap->base = region->base;
	heap->layout = layout;
	heap->known = calloc(layout.chunks, sizeof(*heap->known));
	pthread_mutex_init(&heap->lock, NULL);
	ret = heap->known ? enter(heap, create) : -ENOMEM;
	if (ret)
		heap_free(heap);
	else
		*out = heap;
	return ret;
}

int kdsm_heap_create(struct kdsm_region *region, struct kdsm_region *sync,
		     uint64_t offset, unsigned int flags, struct kdsm_heap **heap)
{
	return heap_make(region, sync, offset, flags, true, heap);
}

int kdsm_heap_open(struct kdsm_region *region, struct kdsm_region *sync,
		   uint64_t offset, unsigned int flags, struct kdsm_heap **heap)
{
	return heap_make(region, sync, offset, flags, false, heap);
}

int kdsm_heap_flush(struct kdsm_heap *heap)
{
	bool any;

	return kd_free_flush(heap, &any);
}

int kdsm_heap_close(struct kdsm_heap *heap)
{
	int ret;

	if (!heap)
		return 0;
	ret = kdsm_heap_flush(heap);
	heap_free(heap);
	return ret;
}

/* ---- guard bytes ---- */

/*
 * With KDSM_HEAP_DEBUG an object consists of padding for alignment, struct guard, the bytes
 * that the program uses, and TAIL bytes. The guard bytes belong to the object, so that the
 * synchronization of the program's accesses to the object also orders the accesses to the
 * guard bytes.
 */
struct guard {
	uint64_t check;		/* computed from offset and size */
	uint64_t size;
};

#define TAIL		16
#define TAIL_BYTE	0xfd

static uint64_t guard_check(uint64_t offset, uint64_t size)
{
	return (offset ^ UINT64_C(0x9e3779b97f4a7c15)) * (2 * size + 1);
}

static void guard_write(struct kdsm_heap *heap, uint64_t offset, uint64_t size)
{
	struct guard guard = { guard_check(offset, size), size };

	memcpy(heap->base + offset - sizeof(guard), &guard, sizeof(guard));
	memset(heap->base + offset + size, TAIL_BYTE, TAIL);
}

/*
 * Return whether the guard bytes are intact. room is the distance in bytes from offset to
 * the end of the object.
 */
static bool guard_read(const struct kdsm_heap *heap, uint64_t offset, uint64_t room,
		       uint64_t *size)
{
	struct guard guard;
	unsigned int i;

	memcpy(&guard, heap->base + offset - sizeof(guard), sizeof(guard));
	if (guard.check != guard_check(offset, guard.size) || room < TAIL ||
	    guard.size > room - TAIL)
		return false;
	for (i = 0; i < TAIL; i++)
		if (heap->base[offset + guard.size + i] != TAIL_BYTE)
			return false;
	*size = guard.size;
	return true;
}

/* ---- from a pointer to its object ---- */

struct object {
	uint64_t chunk, slot, desc;
	uint64_t offset;	/* of the bytes that the program uses */
	uint64_t room;		/* bytes from offset to the end */
};

/*
 * Get the descriptor of a chunk. The descriptor of a chunk of small objects never changes, so
 * this function caches it.
 */
static int chunk_desc(struct kdsm_heap *heap, uint64_t chunk, uint64_t *desc)
{
	int ret;

	*desc = __atomic_load_n(&heap->known[chunk], __ATOMIC_RELAXED);
	if (*desc)
		return 0;
	ret = kd_heap_read(heap, kd_heap_home(heap, chunk), kd_heap_chunk_place(heap, chunk),
			   desc);
	if (!ret && kd_heap_kind(*desc) == KD_HEAP_SMALL)
		__atomic_store_n(&heap->known[chunk], *desc, __ATOMIC_RELAXED);
	return ret;
}

/* Find the object of a pointer. Returns -EINVAL if no object can begin there. */
static int find(struct kdsm_heap *heap, const void *memory, struct object *object)
{
	uint64_t offset = (uintptr_t)memory - (uintptr_t)heap->base, start, size;
	int ret;

	if (offset >= heap->layout.chunks * heap->layout.chunk)
		return -EINVAL;
	object->offset = offset;
	object->chunk = offset / heap->layout.chunk;
	object->slot = 0;
	ret = chunk_desc(heap, object->chunk, &object->desc);
	if (ret)
		return ret;
	start = object->chunk * heap->layout.chunk;
	if (kd_heap_kind(object->desc) == KD_HEAP_SMALL) {
		size = kd_slot_size(kd_heap_class(object->desc));
		object->slot = (offset - start) / size;
		start += object->slot * size;
		if (start + size > (object->chunk + 1) * heap->layout.chunk)
			return -EINVAL;
	} else if (kd_heap_kind(object->desc) == KD_HEAP_LARGE) {
		size = kd_heap_length(object->desc) * heap->layout.chunk;
	} else {
		return -EINVAL;
	}
	object->room = start + size - offset;
	if (heap->flags & KDSM_HEAP_DEBUG)
		return offset - start < sizeof(struct guard) ? -EINVAL : 0;
	return offset == start ? 0 : -EINVAL;
}

/* With KDSM_HEAP_DEBUG check the object. Return 0 if the caller may free it. */
static int inspect(struct kdsm_heap *heap, const struct object *object)
{
	uint64_t size;
	int ret = 0;

	if (!(heap->flags & KDSM_HEAP_DEBUG))
		return 0;
	if (kd_heap_kind(object->desc) == KD_HEAP_SMALL)
		ret = kd_slot_check(heap, object->chunk, object->slot);
	if (!ret && !guard_read(heap, object->offset, object->room, &size))
		ret = -EOVERFLOW;
	return ret;
}

static int complain(const struct kdsm_heap *heap, const void *memory, int error)
{
	if (error != -EINVAL && error != -EOVERFLOW)
		return error;
	kd_because(error, "kdsm_free(%p) on node %u: %s",
		   memory, heap->node,
		   error == -EINVAL ? "no such object, or freed twice" : "written beyond its bounds, or not acquired here");
	if (heap->flags & KDSM_HEAP_ABORT) {
		fprintf(stderr, "%s\n", kdsm_error(error));
		abort();
	}
	return error;
}

/* ---- public functions ---- */

/* Find a class whose slots are all aligned. There is one of at most twice the size. */
static unsigned int aligned_class(size_t alignment, uint64_t size)
{
	unsigned int class = kd_slot_class(size > alignment ? size : alignment);

	while (kd_slot_size(class) % alignment)
		class++;
	return class;
}

static int allocate(struct kdsm_heap *heap, size_t alignment, uint64_t size,
		    uint64_t *offset)
{
	unsigned int class = aligned_class(alignment, size);

	if (kd_slot_size(class) <= kd_slot_max(heap))
		return kd_slot_alloc(heap, class, offset);
	return kd_run_alloc(heap, size, offset);
}

int kdsm_allocate(struct kdsm_heap *heap, size_t alignment, size_t size, void **memory)
{
	uint64_t need, front = 0, offset = 0;
	bool any;
	int ret;

	*memory = NULL;
	if (alignment & (alignment - 1) || alignment > MOST_ALIGNMENT)
		return kd_because(-EINVAL, "alignment %zu is not a power of two up to %d",
				  alignment, MOST_ALIGNMENT);
	if (alignment < KD_HEAP_GRAIN)
		alignment = KD_HEAP_GRAIN;
	if (size > heap->layout.chunks * heap->layout.chunk)
		return -ENOMEM;
	need = size ? size : 1;
	if (heap->flags & KDSM_HEAP_DEBUG) {
		front = alignment;
		need += front + TAIL;
	}
	ret = allocate(heap, alignment, need, &offset);
	/* The frees that this node has postponed may make enough room. */
	if (ret == -ENOMEM && !kd_free_flush(heap, &any) && any)
		ret = allocate(heap, alignment, need, &offset);
	if (ret)
		return ret;
	if (front)
		guard_write(heap, offset + front, size);
	*memory = heap->base + offset + front;
	return 0;
}

void *kdsm_malloc(struct kdsm_heap *heap, size_t size)
{
	void *memory;

	return kdsm_allocate(heap, 0, size, &memory) ? NULL : memory;
}

void *kdsm_calloc(struct kdsm_heap *heap, size_t count, size_t size)
{
	void *memory;

	if (size && count > SIZE_MAX / size)
		return NULL;
	memory = kdsm_malloc(heap, count * size);
	return memory ? memset(memory, 0, count * size) : NULL;
}

void *kdsm_aligned_alloc(struct kdsm_heap *heap, size_t alignment, size_t size)
{
	void *memory;

	return kdsm_allocate(heap, alignment, size, &memory) ? NULL : memory;
}

size_t kdsm_usable_size(struct kdsm_heap *heap, const void *memory)
{
	struct object object;
	uint64_t size;

	if (!memory || find(heap, memory, &object))
		return 0;
	if (!(heap->flags & KDSM_HEAP_DEBUG))
		return object.room;
	return guard_read(heap, object.offset, object.room, &size) ? size : 0;
}

/*
 * Free an object. Sets *freed if the caller no longer owns the object, which may be the case
 * after an error, too, because an error of a flush may concern another object.
 */
static int free_object(struct kdsm_heap *heap, void *memory, bool *freed)
{
	struct object object;
	int ret;

	*freed = false;
	ret = find(heap, memory, &object);
	if (!ret)
		ret = inspect(heap, &object);
	if (ret)
		return complain(heap, memory, ret);
	/*
	 * The slots of a chunk of this node stay with this node, so this free needs no
	 * release.
	 */
	if (kd_heap_kind(object.desc) == KD_HEAP_SMALL &&
	    kd_heap_node(object.desc) == heap->node) {
		ret = kd_slot_free(heap, object.chunk, object.slot);
		*freed = !ret;
	} else {
		ret = kd_free_later(heap, object.desc, object.chunk, object.slot, freed);
	}
	return complain(heap, memory, ret);
}

/* An object stays in place if the new size fits and fills at least half of the object. */
void *kdsm_realloc(struct kdsm_heap *heap, void *memory, size_t size)
{
	size_t old;
	void *new;
	bool freed;

	if (!memory)
		return kdsm_malloc(heap, size);
	old = kdsm_usable_size(heap, memory);
	if (!old && !(heap->flags & KDSM_HEAP_DEBUG)) {
		complain(heap, memory, -EINVAL);
		return NULL;
	}
	if (!(heap->flags & KDSM_HEAP_DEBUG) && size <= old && size >= old / 2)
		return memory;
	new = kdsm_malloc(heap, size);
	if (!new)
		return NULL;
	memcpy(new, memory, size < old ? size : old);
	/* NULL would tell the caller that the old object is still allocated. */
	free_object(heap, memory, &freed);
	if (!freed) {
		kdsm_free(heap, new);
		return NULL;
	}
	return new;
}

int kdsm_free(struct kdsm_heap *heap, void *memory)
{
	bool freed;

	return memory ? free_object(heap, memory, &freed) : 0;
}
