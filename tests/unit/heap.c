// SPDX-License-Identifier: GPL-2.0
/*
 * The heap. On one node: objects do not overlap, freed memory is reused, and misuse is
 * detected. On several simulated nodes, whose copies of the region differ until they
 * synchronize: memory passes from node to node without a data race.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "unit.h"
#include "sim.h"
#include "coherent/internal.h"

#define CHUNK	65536UL
#define S	1000000000ULL

static int failures;

/* ---- one node, the local backend ---- */

struct place {
	struct kdsm *kdsm;
	struct kdsm_region *region, *sync;
	struct kdsm_heap *heap;
};

static struct place place;

static int setup_flags(uint64_t size, unsigned int flags)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = size };

	return kdsm_open(KDSM_OPEN_LOCAL, &place.kdsm) ||
	       kdsm_region_open_coherent(place.kdsm, "heap", &attr,
					 kdsm_heap_sync_size(size, 0, 1), &place.region,
					 &place.sync) ||
	       kdsm_heap_create(place.region, place.sync, 0, flags, &place.heap);
}

static int setup(void **state)
{
	(void)state;
	return setup_flags(32 * CHUNK, 0);
}

static int setup_debug(void **state)
{
	(void)state;
	return setup_flags(32 * CHUNK, KDSM_HEAP_DEBUG);
}

static int teardown(void **state)
{
	(void)state;
	kdsm_heap_close(place.heap);
	kdsm_region_close(place.region);
	kdsm_region_close(place.sync);
	kdsm_close(place.kdsm);
	return 0;
}

static void classes(void **state)
{
	uint64_t size;

	(void)state;
	for (size = 1; size < 100000; size++) {
		unsigned int class = kd_slot_class(size);

		assert_true(class < KD_HEAP_CLASSES);
		assert_true(kd_slot_size(class) >= size);
		assert_true(!class || kd_slot_size(class - 1) < size);
		assert_int_equal(kd_slot_size(class) % KD_HEAP_GRAIN, 0);
		assert_true(size <= 128 || kd_slot_size(class) - size < size / 4 + 1);
	}
}

static void making(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	struct kdsm_heap *again;
	struct kdsm_region *small, *sync;

	(void)state;
	assert_int_equal(kdsm_heap_open(place.region, place.sync, 0, 0, &again), 0);
	assert_int_equal(kdsm_heap_close(again), 0);
	assert_int_equal(kdsm_heap_create(place.region, place.sync, 0, KDSM_HEAP_ABORT, &again),
			 0);
	assert_int_equal(kdsm_heap_close(again), 0);
	assert_int_equal(kdsm_heap_create(place.region, place.sync, 0, KDSM_HEAP_DEBUG, &again),
			 -EINVAL);
	assert_null(again);
	assert_int_equal(kdsm_heap_create(place.region, place.sync, 0, 1 << 9, &again), -EINVAL);
	assert_int_equal(kdsm_heap_create(place.region, place.sync, 8, 0, &again), -EINVAL);
	assert_int_equal(kdsm_heap_create(place.region, place.sync, 1 << 20, 0, &again), -ERANGE);
	assert_int_equal(kdsm_heap_create(place.sync, place.sync, 0, 0, &again), -EOPNOTSUPP);
	assert_int_equal(kdsm_heap_create(place.region, place.region, 0, 0, &again), -EOPNOTSUPP);
	assert_int_equal(kdsm_heap_close(NULL), 0);

	assert_int_equal(kdsm_region_open_coherent(place.kdsm, "s", &attr, 65536, &small, &sync),
			 0);
	assert_int_equal(kdsm_heap_create(small, sync, 0, 0, &again), -EFBIG);
	assert_int_equal(kdsm_heap_open(place.region, sync, 0, 0, &again), -ENOENT);
	kdsm_region_close(small);
	kdsm_region_close(sync);
}

/* The module rounds regions of 2 MiB or more up to a multiple of 2 MiB. */
static void rounded_up(void **state)
{
	static const uint64_t sizes[] = { 1 << 20, (2 << 20) + 1, (33 << 20) + 5, 1 << 30,
					  (1 << 30) + 1 };
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	struct kdsm_region *region, *sync;
	struct kdsm_heap *heap;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		attr = (struct kdsm_region_attr) { .argsz = sizeof(attr), .size = sizes[i] };
		if (attr.size >= 2 << 20)
			attr.size = (attr.size + (2 << 20) - 1) / (2 << 20) * (2 << 20);
		assert_int_equal(kdsm_region_open_coherent(place.kdsm, "rounded", &attr,
							   kdsm_heap_sync_size(sizes[i], 0, 1),
							   &region, &sync), 0);
		assert_int_equal(kdsm_heap_create(region, sync, 0, 0, &heap), 0);
		assert_int_equal(kdsm_heap_close(heap), 0);
		kdsm_region_close(region);
		kdsm_region_close(sync);
	}
}

#define OBJECTS 300

/* Allocate and free objects of all sizes. Each object holds a pattern of its own. */
static void churn(struct kdsm_heap *heap, unsigned int seed, unsigned int rounds)
{
	struct object {
		uint8_t *memory;
		size_t size;
		uint8_t byte;
	} objects[OBJECTS] = { 0 };
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		struct object *object = &objects[rand_r(&seed) % OBJECTS];

		if (object->memory) {
			for (j = 0; j < object->size; j++)
				UNIT_CHECK(&failures, object->memory[j] == object->byte);
			UNIT_CHECK(&failures, !kdsm_free(heap, object->memory));
			object->memory = NULL;
			continue;
		}
		object->size = 1 + rand_r(&seed) % (rand_r(&seed) % 8 ? 300 : 9000);
		object->byte = rand_r(&seed);
		object->memory = kdsm_malloc(heap, object->size);
		if (!object->memory)
			continue;
		UNIT_CHECK(&failures, (uintptr_t)object->memory % 16 == 0);
		UNIT_CHECK(&failures, kdsm_usable_size(heap, object->memory) >= object->size);
		memset(object->memory, object->byte, object->size);
	}
	for (i = 0; i < OBJECTS; i++)
		UNIT_CHECK(&failures, !kdsm_free(heap, objects[i].memory));
}

static void *churn_thread(void *arg)
{
	churn(place.heap, (uintptr_t)arg, 5000);
	return NULL;
}

static void churning(void **state)
{
	pthread_t threads[3];
	int status, i;
	pid_t pid;

	(void)state;
	failures = 0;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct kdsm_heap *own;

		if (kdsm_heap_open(place.region, place.sync, 0, 0, &own))
			_exit(2);
		churn(own, 77, 10000);
		_exit(failures || kdsm_heap_close(own));
	}
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, churn_thread, (void *)(intptr_t)i);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(failures, 0);
}

/*
 * Allocate objects until memory is used up, then free them all. Returns the number of
 * objects. Repeated calls show that freed memory is reused, for objects of any size.
 */
static unsigned int exhaust(struct kdsm_heap *heap, size_t size)
{
	static void *all[140000];
	unsigned int n = 0, i;

	while (n < 140000 && (all[n] = kdsm_malloc(heap, size))) {
		memset(all[n], 1, size);
		n++;
	}
	for (i = 0; i < n; i++)
		assert_int_equal(kdsm_free(heap, all[i]), 0);
	return n;
}

static void exhausting(void **state)
{
	unsigned int n;

	(void)state;
	assert_int_equal(exhaust(place.heap, 20 * CHUNK), 1);
	assert_int_equal(exhaust(place.heap, CHUNK), 32);
	assert_int_equal(exhaust(place.heap, CHUNK / 8 + 1), 32);
	assert_int_equal(exhaust(place.heap, 32 * CHUNK), 1);
	assert_null(kdsm_malloc(place.heap, 32 * CHUNK + 1));
	assert_null(kdsm_malloc(place.heap, SIZE_MAX));
	n = exhaust(place.heap, 16);
	assert_int_equal(n, 32 * CHUNK / 16);
	assert_int_equal(exhaust(place.heap, 16), n);
	/* Chunks that were divided into 16-byte slots stay divided. */
	assert_null(kdsm_malloc(place.heap, 100));
}

static void of_c(void **state)
{
	struct kdsm_heap *heap = place.heap;
	uint8_t *memory, *moved;
	unsigned int i, align;

	(void)state;
	memory = kdsm_malloc(heap, 1000);
	memset(memory, 0xff, 1000);
	assert_int_equal(kdsm_free(heap, memory), 0);
	memory = kdsm_calloc(heap, 10, 100);
	for (i = 0; i < 1000; i++)
		assert_int_equal(memory[i], 0);
	assert_null(kdsm_calloc(heap, SIZE_MAX / 2, 3));
	assert_non_null(kdsm_calloc(heap, 0, 3));

	for (i = 0; i < 1000; i++)
		memory[i] = i;
	moved = kdsm_realloc(heap, memory, 1001);
	assert_ptr_equal(moved, memory);
	moved = kdsm_realloc(heap, memory, 40000);
	assert_ptr_not_equal(moved, memory);
	for (i = 0; i < 1000; i++)
		assert_int_equal(moved[i], i & 0xff);
	assert_null(kdsm_realloc(heap, moved, 64 * CHUNK));
	moved = kdsm_realloc(heap, moved, 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(moved[i], i);
	assert_int_equal(kdsm_free(heap, moved), 0);
	moved = kdsm_realloc(heap, NULL, 5);
	assert_non_null(moved);
	assert_int_equal(kdsm_usable_size(heap, moved), 16);

	for (align = 1; align <= 4096; align *= 2) {
		for (i = 1; i < 20000; i = i * 3 + 1) {
			memory = kdsm_aligned_alloc(heap, align, i);
			assert_non_null(memory);
			assert_int_equal((uintptr_t)memory % align, 0);
			memset(memory, 1, i);
			assert_int_equal(kdsm_free(heap, memory), 0);
		}
	}
	assert_int_equal(kdsm_allocate(heap, 24, 1, (void **)&memory), -EINVAL);
	assert_int_equal(kdsm_allocate(heap, 8192, 1, (void **)&memory), -EINVAL);
	assert_null(memory);
}

/* ---- mistakes ---- */

static void mistakes(void **state)
{
	uint8_t *a = kdsm_malloc(place.heap, 100), *large = kdsm_malloc(place.heap, 3 * CHUNK);
	bool debug = state && *state;
	uint8_t *base = kdsm_region_address(place.region);

	assert_int_equal(kdsm_free(place.heap, a + 16), debug ? -EOVERFLOW : -EINVAL);
	assert_int_equal(kdsm_free(place.heap, &a), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, base + 31 * CHUNK), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, base + 32 * CHUNK), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, base - 1), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, large + CHUNK), -EINVAL);
	assert_int_equal(kdsm_usable_size(place.heap, base + 31 * CHUNK), 0);
	assert_int_equal(kdsm_usable_size(place.heap, NULL), 0);
	assert_int_equal(kdsm_free(place.heap, a), 0);
	assert_int_equal(kdsm_free(place.heap, a), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, large), 0);
	assert_int_equal(kdsm_free(place.heap, large), -EINVAL);
	assert_int_equal(kdsm_free(place.heap, NULL), 0);
}

static void mistakes_debug(void **state)
{
	static const size_t sizes[] = { 1, 16, 33, 200, 5000, 3 * CHUNK };
	void *yes = state;
	uint8_t *memory, keep;
	unsigned int i;

	mistakes(&yes);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memory = kdsm_aligned_alloc(place.heap, i % 2 ? 64 : 0, sizes[i]);
		assert_non_null(memory);
		memset(memory, 1, sizes[i]);
		assert_int_equal(kdsm_usable_size(place.heap, memory), sizes[i]);
		keep = memory[sizes[i]];
		memory[sizes[i]] = 0;
		assert_int_equal(kdsm_free(place.heap, memory), -EOVERFLOW);
		assert_null(kdsm_realloc(place.heap, memory, 10));
		memory[sizes[i]] = keep;
		memory[-1] ^= 1;
		assert_int_equal(kdsm_free(place.heap, memory), -EOVERFLOW);
		memory[-1] ^= 1;
		assert_int_equal(kdsm_free(place.heap, memory), 0);
		assert_int_equal(kdsm_free(place.heap, memory), -EINVAL);
	}
	memory = kdsm_realloc(place.heap, kdsm_malloc(place.heap, 0), 20);
	assert_int_equal(kdsm_usable_size(place.heap, memory), 20);
}

static void aborting(void **state)
{
	struct kdsm_heap *heap;
	int status, fds[2];
	char said[200] = "";
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], 2);
		if (!kdsm_heap_open(place.region, place.sync, 0, KDSM_HEAP_ABORT, &heap)) {
			char *memory = kdsm_malloc(heap, 10);

			memory[10] = 0;
			kdsm_free(heap, memory);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
	assert_non_null(strstr(said, "beyond its bounds"));
	close(fds[0]);
	close(fds[1]);
}

/* ---- several nodes ---- */

static struct place places[SIM_NODES];
static struct kdsm_tree_barrier barriers[SIM_NODES];

#define NODE_CHUNKS 8

static void start_with(unsigned int nodes, unsigned int chunks, unsigned int flags)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = nodes * chunks * CHUNK };
	uint64_t heap_size = kdsm_heap_sync_size(attr.size, 0, nodes);
	unsigned int i;

	sim_start(nodes);
	sim.tear = true;
	for (i = 0; i < nodes; i++) {
		assert_int_equal(kdsm_region_open_coherent(sim.kdsm[i], "heap", &attr,
							   KDSM_TREE_BARRIER_SIZE + heap_size,
							   &places[i].region, &places[i].sync), 0);
		assert_int_equal(kdsm_heap_create(places[i].region, places[i].sync,
						  KDSM_TREE_BARRIER_SIZE, flags,
						  &places[i].heap), 0);
		assert_int_equal(kdsm_tree_barrier_init(&barriers[i], places[i].region,
							places[i].sync, 0, NULL), 0);
	}
}

static void start(unsigned int nodes)
{
	start_with(nodes, NODE_CHUNKS, 0);
}

static void stop(void)
{
	unsigned int i;

	assert_int_equal(sim_coherence(places[0].region)->races, 0);
	for (i = 0; i < sim.nodes; i++) {
		kdsm_heap_close(places[i].heap);
		kdsm_region_close(places[i].region);
		kdsm_region_close(places[i].sync);
	}
	sim_stop();
}

/* Address of the same object in another node's copy of the region */
static void *as_seen_by(unsigned int node, unsigned int from, void *memory)
{
	uintptr_t offset = (uintptr_t)memory -
			   (uintptr_t)kdsm_region_address(places[from].region);

	return (char *)kdsm_region_address(places[node].region) + offset;
}

static unsigned int chunk_of(unsigned int node, void *memory)
{
	return ((uintptr_t)memory - (uintptr_t)kdsm_region_address(places[node].region)) / CHUNK;
}

static void *checked_malloc(unsigned int node, size_t size)
{
	void *memory = kdsm_malloc(places[node].heap, size);

	assert_non_null(memory);
	return memory;
}

static void pass_on(unsigned int from, unsigned int to)
{
	struct kdsm_signature signature;

	assert_int_equal(kdsm_release(places[from].region, &signature), 0);
	assert_int_equal(kdsm_acquire(places[to].region, &signature), 0);
}

/* Nodes share no chunk, and an allocation from own chunks needs no message. */
static void apart(void **state)
{
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	unsigned int owner[3 * NODE_CHUNKS] = { 0 }, i, node, chunk;
	void *memory;

	(void)state;
	start(3);
	for (i = 0; i < 3000; i++) {
		node = i % 3;
		memory = checked_malloc(node, 16 + i % 5 * 8);
		chunk = chunk_of(node, memory);
		assert_int_equal(chunk / NODE_CHUNKS, node);
		assert_true(!owner[chunk] || owner[chunk] == node + 1);
		owner[chunk] = node + 1;
		if (i % 2)
			assert_int_equal(kdsm_free(places[node].heap, memory), 0);
	}
	for (i = 1; i < 3; i++) {
		kdsm_counts(sim.kdsm[i], &counts);
		assert_int_equal(counts.calls, 1);	/* for the head */
	}
	assert_int_equal(sim_coherence(places[0].region)->releases, 0);
	stop();
}

/*
 * Node 1 writes to an object of node 0 and frees it. The flush releases these writes before
 * node 0 can allocate the memory again. A later release of node 1 must not overwrite what
 * node 0 then writes to the memory.
 */
static void reuse(void **state)
{
	const unsigned int per_chunk = CHUNK / 8192, all = NODE_CHUNKS * per_chunk;
	uint8_t *mine[64], *again, *theirs;
	unsigned int i, j;

	(void)state;
	start(2);
	assert_true(all <= 64);
	for (i = 0; i < all; i++) {
		mine[i] = checked_malloc(0, 8192);
		memset(mine[i], 1, 8192);
	}
	pass_on(0, 1);
	theirs = as_seen_by(1, 0, mine[5]);
	assert_int_equal(theirs[0], 1);
	for (i = 0; i < 100; i++)
		theirs[i] = 2;
	assert_int_equal(kdsm_free(places[1].heap, theirs), 0);
	assert_int_equal(sim_coherence(places[0].region)->releases, 1);
	assert_int_equal(kdsm_heap_flush(places[1].heap), 0);
	assert_int_equal(sim_coherence(places[0].region)->releases, 2);

	/* The slot that node 1 freed is the only free one of node 0. */
	again = checked_malloc(0, 8192);
	assert_ptr_equal(again, mine[5]);
	memset(again, 3, 8192);
	for (j = 0; j < 2; j++) {
		pass_on(1, 0);
		pass_on(0, 1);
	}
	for (i = 0; i < 8192; i++) {
		assert_int_equal(again[i], 3);
		assert_int_equal(theirs[i], 3);
	}
	stop();
}

/*
 * A node that has used up its share allocates from the shares of others, and one object may
 * span all shares.
 */
static void beyond(void **state)
{
	unsigned int count = 3 * NODE_CHUNKS * 16, i, n = 0;
	void *all[3 * NODE_CHUNKS * 16 + 1], *run;

	(void)state;
	start(3);
	while (n < count && (all[n] = kdsm_malloc(places[1].heap, 4096)))
		n++;
	assert_int_equal(n, count);
	assert_null(kdsm_malloc(places[1].heap, 4096));
	assert_null(kdsm_malloc(places[2].heap, 1));
	/* Node 2 frees an object in a chunk of node 0. */
	for (i = 0; i < n; i++)
		if (chunk_of(1, all[i]) / NODE_CHUNKS == 0)
			break;
	assert_int_equal(kdsm_free(places[2].heap, as_seen_by(2, 1, all[i])), 0);
	assert_null(kdsm_malloc(places[1].heap, 4096));
	assert_int_equal(kdsm_heap_flush(places[2].heap), 0);
	assert_ptr_equal(kdsm_malloc(places[1].heap, 4096), all[i]);
	for (i = 0; i < n; i++)
		assert_int_equal(kdsm_free(places[i % 3].heap, as_seen_by(i % 3, 1, all[i])), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(kdsm_heap_flush(places[i].heap), 0);
	for (i = 0; i < n; i++)
		assert_non_null(kdsm_malloc(places[1].heap, 4096));
	stop();

	start(3);
	run = checked_malloc(1, 12 * CHUNK);
	assert_int_equal(chunk_of(1, run), NODE_CHUNKS);
	memset(run, 1, 12 * CHUNK);
	assert_null(kdsm_malloc(places[0].heap, 9 * CHUNK));
	/* Node 2 reads the object and frees it. Node 0 then allocates the memory. */
	pass_on(1, 2);
	assert_int_equal(*(char *)as_seen_by(2, 1, run), 1);
	*(char *)as_seen_by(2, 1, run) = 2;
	assert_int_equal(kdsm_free(places[2].heap, as_seen_by(2, 1, run)), 0);
	assert_int_equal(kdsm_free(places[1].heap, run), -EINVAL);
	run = checked_malloc(0, 24 * CHUNK);
	/* Node 0 has acquired the writes to the memory that it got. */
	assert_int_equal(((char *)run)[NODE_CHUNKS * CHUNK], 2);
	memset(run, 3, 24 * CHUNK);
	pass_on(2, 0);
	pass_on(0, 2);
	assert_int_equal(*(char *)as_seen_by(2, 0, run), 3);
	stop();
}

/*
 * Another node frees a large object, and one of its chunks becomes a chunk of small
 * objects.
 */
static void divided(void **state)
{
	char *memory, *theirs;

	(void)state;
	start(2);
	memory = checked_malloc(0, NODE_CHUNKS * CHUNK);
	pass_on(0, 1);
	theirs = as_seen_by(1, 0, memory);
	memset(theirs, 2, 64);
	assert_int_equal(kdsm_free(places[1].heap, theirs), 0);
	assert_ptr_equal(checked_malloc(0, 64), memory);
	memset(memory, 3, 64);
	pass_on(1, 0);
	pass_on(0, 1);
	assert_int_equal(memory[0] | memory[63], 3);
	assert_int_equal(theirs[0] | theirs[63], 3);
	stop();
}

static void mistakes_apart(void **state)
{
	void *memory;

	(void)state;
	start_with(2, NODE_CHUNKS, KDSM_HEAP_DEBUG);
	memory = checked_malloc(0, 50);
	/* Node 1 has not acquired the object, so it does not see the guard. */
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), -EOVERFLOW);
	pass_on(0, 1);
	assert_int_equal(kdsm_usable_size(places[1].heap, as_seen_by(1, 0, memory)), 50);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), -EINVAL);
	assert_int_equal(kdsm_free(places[0].heap, memory), -EINVAL);
	stop();

	/*
	 * Without KDSM_HEAP_DEBUG, a free reports only mistakes that node 1 can see without
	 * a message. The flush reports the rest.
	 */
	start(2);
	memory = checked_malloc(0, 50);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	assert_int_equal(kdsm_heap_flush(places[1].heap), -EINVAL);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	assert_int_equal(kdsm_heap_flush(places[1].heap), -EINVAL);
	stop();
}

/*
 * The free of the old object fills the list of postponed frees, and the flush finds that another
 * object was freed twice. The flush frees the old object, too, so realloc returns the new one.
 */
static void realloc_flushes(void **state)
{
	char *all[KD_HEAP_PENDING], *moved;
	unsigned int i;

	(void)state;
	start(2);
	for (i = 0; i < KD_HEAP_PENDING; i++)
		all[i] = checked_malloc(0, 16);
	strcpy(all[1], "moved");
	pass_on(0, 1);
	for (i = 0; i < KD_HEAP_PENDING - 1; i++)
		assert_int_equal(kdsm_free(places[1].heap,
					   as_seen_by(1, 0, all[i < 2 ? 0 : i])), 0);
	moved = kdsm_realloc(places[1].heap, as_seen_by(1, 0, all[1]), 100);
	assert_non_null(moved);
	assert_string_equal(moved, "moved");
	/* The old object is free: the flush reports a further free. */
	assert_int_equal(kdsm_free(places[1].heap, moved), 0);
	assert_int_equal(kdsm_heap_flush(places[1].heap), 0);
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, all[1])), 0);
	assert_int_equal(kdsm_heap_flush(places[1].heap), -EINVAL);
	stop();
}

static void unreachable(void **state)
{
	void *memory, *kept[NODE_CHUNKS];
	unsigned int i;

	(void)state;
	start(3);
	memory = checked_malloc(0, 50);
	sim.dead = 1;
	/*
	 * Node 1 still gets its own memory, and then memory of node 2, which is reachable.
	 */
	for (i = 0; i < NODE_CHUNKS; i++)
		kept[i] = checked_malloc(1, CHUNK);
	assert_int_equal(chunk_of(1, kdsm_malloc(places[1].heap, CHUNK)) / NODE_CHUNKS, 2);
	assert_int_equal(chunk_of(1, kdsm_malloc(places[1].heap, 10)) / NODE_CHUNKS, 2);
	assert_null(kdsm_malloc(places[1].heap, 9 * CHUNK));
	assert_int_equal(kdsm_allocate(places[1].heap, 0, 9 * CHUNK, &kept[0]), -EHOSTDOWN);
	/* The free needs an answer from the owner of the chunk. */
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), -EHOSTDOWN);
	sim.dead = 0;
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	sim.dead = 1;
	assert_int_equal(kdsm_heap_flush(places[1].heap), -EHOSTDOWN);
	sim.dead = 0;
	assert_int_equal(kdsm_heap_flush(places[1].heap), 0);

	/*
	 * After a release that fails, frees stay pending, for small and for large objects.
	 */
	memory = checked_malloc(0, 50);
	sim_coherence(places[0].region)->fail = -EIO;
	assert_int_equal(kdsm_free(places[1].heap, as_seen_by(1, 0, memory)), 0);
	assert_int_equal(kdsm_heap_flush(places[1].heap), -EIO);
	assert_int_equal(kdsm_free(places[1].heap, kept[1]), 0);
	assert_int_equal(kdsm_free(places[1].heap, kept[1]), -EINVAL);
	assert_null(kdsm_malloc(places[1].heap, 9 * CHUNK));
	sim_coherence(places[0].region)->fail = 0;
	assert_int_equal(kdsm_heap_flush(places[1].heap), 0);
	assert_ptr_equal(kdsm_malloc(places[1].heap, CHUNK), kept[1]);
	stop();
}

/* ---- all nodes concurrently ---- */

#define NODES	4
#define ROUNDS	25
#define EACH	40

struct shelf {
	struct item {
		uint64_t offset, size;
	} items[EACH];
	uint8_t pad[4096 - EACH * sizeof(struct item)];
};

static void fill(uint8_t *memory, size_t size, unsigned int key)
{
	size_t i;

	for (i = 0; i < size; i++)
		memory[i] = key + i * 7;
}

static bool is_filled(const uint8_t *memory, size_t size, unsigned int key)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (memory[i] != (uint8_t)(key + i * 7))
			return false;
	return true;
}

static uint64_t shelves;	/* offset of struct shelf[NODES] */

static struct shelf *shelf_of(unsigned int node, unsigned int whose)
{
	uint8_t *base = kdsm_region_address(places[node].region);

	return (struct shelf *)(base + shelves) + whose;
}

static void make_items(unsigned int node, unsigned int round, unsigned int *seed)
{
	uint8_t *base = kdsm_region_address(places[node].region), *memory;
	struct shelf *shelf = shelf_of(node, node);
	unsigned int i;

	for (i = 0; i < EACH; i++) {
		size_t size = rand_r(seed) % 20 ? 1 + rand_r(seed) % 500 : 20000;

		memory = kdsm_malloc(places[node].heap, size);
		if (!memory) {
			UNIT_CHECK(&failures, false);
			shelf->items[i].size = 0;
			continue;
		}
		fill(memory, size, round + node * 13 + i);
		shelf->items[i].offset = memory - base;
		shelf->items[i].size = size;
	}
}

/* Check the objects that another node has made, overwrite them, and free them. */
static void use_items(unsigned int node, unsigned int whose, unsigned int round)
{
	uint8_t *base = kdsm_region_address(places[node].region);
	struct shelf *shelf = shelf_of(node, whose);
	unsigned int i;

	for (i = 0; i < EACH; i++) {
		struct item *item = &shelf->items[i];

		if (!item->size)
			continue;
		UNIT_CHECK(&failures, is_filled(base + item->offset, item->size,
						round + whose * 13 + i));
		memset(base + item->offset, 0xee, item->size);
		UNIT_CHECK(&failures, !kdsm_free(places[node].heap, base + item->offset));
	}
}

static void *exchange(void *arg)
{
	unsigned int node = (uintptr_t)arg, round, seed = node;

	for (round = 0; round < ROUNDS; round++) {
		make_items(node, round, &seed);
		UNIT_CHECK(&failures, !kdsm_tree_barrier_wait(&barriers[node], 60 * S, NULL));
		/*
		 * Each node uses the objects of another node, at a distance that varies
		 * with the round.
		 */
		use_items(node, (node + 1 + round % (NODES - 1)) % NODES, round);
		UNIT_CHECK(&failures, !kdsm_tree_barrier_wait(&barriers[node], 60 * S, NULL));
	}
	return NULL;
}

static void exchanging(void **state)
{
	pthread_t threads[NODES];
	unsigned int i;

	(void)state;
	failures = 0;
	start_with(NODES, 32, 0);
	shelves = (uint8_t *)kdsm_aligned_alloc(places[0].heap, 4096,
						NODES * sizeof(struct shelf)) -
		  (uint8_t *)kdsm_region_address(places[0].region);
	for (i = 0; i < NODES; i++)
		pthread_create(&threads[i], NULL, exchange, (void *)(uintptr_t)i);
	for (i = 0; i < NODES; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
	stop();
}

/*
 * Without a barrier: each node makes objects for the next node in a ring, which frees them.
 * Only signatures pass the objects on.
 */
#define LAPS 150

static void *ring(void *arg)
{
	unsigned int node = (uintptr_t)arg, next = (node + 1) % NODES, lap;
	uint8_t *base = kdsm_region_address(places[node].region), *memory;
	unsigned int before = (node + NODES - 1) % NODES;
	struct shelf *own = shelf_of(node, node), *from = shelf_of(node, before);
	struct kdsm_signature signature;

	/*
	 * The messages use the space of the barrier, because this test does not use the
	 * barrier.
	 */
	for (lap = 1; lap <= LAPS; lap++) {
		memory = kdsm_malloc(places[node].heap, 3000);
		if (memory)
			fill(memory, 3000, lap + node);
		else
			UNIT_CHECK(&failures, false);
		own->items[lap % EACH].offset = memory ? memory - base : 0;
		UNIT_CHECK(&failures, !kdsm_release(places[node].region, &signature));
		UNIT_CHECK(&failures, !kdsm_signature_put(places[node].sync, next, 0,
							  &signature, lap));
		UNIT_CHECK(&failures, !kdsm_signature_wait(places[node].sync, 0, lap, 60 * S,
							   &signature));
		UNIT_CHECK(&failures, !kdsm_acquire(places[node].region, &signature));
		memory = base + from->items[lap % EACH].offset;
		UNIT_CHECK(&failures, is_filled(memory, 3000, lap + before));
		memset(memory, lap, 3000);
		UNIT_CHECK(&failures, !kdsm_free(places[node].heap, memory));
		/*
		 * The previous node may put its next signature when this node has read the
		 * last one.
		 */
		UNIT_CHECK(&failures, !kdsm_put_notify(places[node].sync, before, 4096, lap));
		UNIT_CHECK(&failures, !kdsm_await(places[node].sync, 4096, lap, 60 * S));
	}
	return NULL;
}

static void ringing(void **state)
{
	pthread_t threads[NODES];
	unsigned int i;

	(void)state;
	failures = 0;
	start(NODES);
	shelves = (uint8_t *)kdsm_aligned_alloc(places[0].heap, 4096,
						NODES * sizeof(struct shelf)) -
		  (uint8_t *)kdsm_region_address(places[0].region);
	for (i = 0; i < NODES; i++)
		pthread_create(&threads[i], NULL, ring, (void *)(uintptr_t)i);
	for (i = 0; i < NODES; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
	stop();
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define TEST_DEBUG(function) cmocka_unit_test_setup_teardown(function, setup_debug, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		TEST(making),
		TEST(rounded_up),
		TEST(churning),
		TEST(exhausting),
		TEST(of_c),
		TEST(mistakes),
		TEST_DEBUG(mistakes_debug),
		TEST_DEBUG(aborting),
		cmocka_unit_test(apart),
		cmocka_unit_test(reuse),
		cmocka_unit_test(beyond),
		cmocka_unit_test(divided),
		cmocka_unit_test(mistakes_apart),
		cmocka_unit_test(realloc_flushes),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(exchanging),
		cmocka_unit_test(ringing),
	};

	return UNIT_RUN(tests);
}
