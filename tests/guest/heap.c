// SPDX-License-Identifier: GPL-2.0
/*
 * The heap of a coherent region, from several processes and threads of every node at the
 * same time: threads follow pointers into objects that other nodes allocated, change and
 * free them.
 */
#include "crew.h"
#include "shown.h"

#include <kdsm/heap.h>

#define KIB		1024UL
#define SIZE		(24 << 20)
#define PROCESSES	2
#define THREADS		2
/* Offsets in a part of sync: the barrier, letters to this node, the heap's words */
#define LETTERS		KDSM_TREE_BARRIER_SIZE
#define LETTERS_SIZE	(64 * KIB)
#define HEAP		(LETTERS + LETTERS_SIZE)

static uint32_t block_size;
static unsigned int number;	/* of the heap; each test has a heap of its own */
static unsigned int flags;
static unsigned int processes, threads;

struct member {
	struct crew *crew;
	struct kdsm_heap *heap;
	unsigned int thread;
	uint64_t chance;
};

static void open_heap(struct crew *crew, struct kdsm_heap **heap)
{
	struct kdsm_region_attr attr = {
		.argsz = sizeof(attr),
		.size = SIZE,
		.block_size = block_size,
	};
	uint32_t participants[CREW_NODES];
	char name[32];
	unsigned int i;

	for (i = 0; i < nodes; i++)
		participants[i] = processes * threads;
	snprintf(name, sizeof(name), "heap-%u", number);
	crew_open(crew, name, &attr,
		  LETTERS_SIZE + kdsm_heap_sync_size(SIZE, block_size, nodes), participants);
	must(kdsm_heap_create(crew->region, crew->sync, HEAP, flags, heap), "kdsm_heap_create");
}

/* Every thread of every process of every node runs this; the threads of a process share a heap. */
static void *(*work)(void *arg);

static void run_process(unsigned int process)
{
	struct member members[CREW_THREADS];
	struct crew crew = { .process = process };
	struct kdsm_heap *heap;
	unsigned int i;

	open_heap(&crew, &heap);
	for (i = 0; i < threads; i++)
		members[i] = (struct member){ &crew, heap, i,
					      (node * CREW_PROCESSES + process) *
					      CREW_THREADS + i };
	crew_threads(work, members, sizeof(members[0]), threads);
	CHECK_IS(kdsm_heap_close(heap), 0);
	crew_close(&crew);
}

static void run_all(void *(*what)(void *arg))
{
	work = what;
	number++;
	crew_run(run_process, processes);
}

static uint64_t chance(struct member *member, uint64_t below)
{
	member->chance = guest_mix(member->chance);
	return member->chance % below;
}

static unsigned int index_of(const struct member *member)
{
	return member->crew->process * threads + member->thread;
}

/* ---- objects ---- */

struct object {
	struct object *next;
	uint64_t size, seed;
	uint8_t bytes[];
};

static uint8_t byte_of(uint64_t seed, uint64_t i)
{
	return guest_mix(seed + i / 64) >> i % 56;
}

static size_t some_size(struct member *member)
{
	switch (chance(member, 16)) {
	case 0:
		return 9000 + chance(member, 60000);	/* whole chunks */
	case 1 ... 4:
		return 500 + chance(member, 5000);
	default:
		return 1 + chance(member, 300);
	}
}

static void fill(struct object *object, uint64_t size, uint64_t seed)
{
	object->size = size;
	object->seed = seed;
	for (uint64_t i = 0; i < size; i++)
		object->bytes[i] = byte_of(seed, i);
}

static bool is_whole(const struct object *object, uint64_t size)
{
	uint64_t bad = 0;

	if (object->size < size || object->size > SIZE)
		return false;
	for (uint64_t i = 0; i < size; i++)
		bad += object->bytes[i] != byte_of(object->seed, i);
	return !bad;
}

/* Allocate an object by one of the calls; check that it is zero or aligned where it has to be. */
static struct object *make(struct member *member)
{
	uint64_t size = some_size(member), all = sizeof(struct object) + size, bad = 0;
	uint64_t alignment = 16ULL << chance(member, 9);
	struct object *object;

	switch (chance(member, 3)) {
	case 0:
		object = kdsm_calloc(member->heap, 1, all);
		for (uint64_t i = 0; object && i < all; i++)
			bad += ((uint8_t *)object)[i];
		CHECK_IS(bad, 0);
		break;
	case 1:
		object = kdsm_aligned_alloc(member->heap, alignment, all);
		CHECK((uintptr_t)object % alignment == 0);
		break;
	default:
		object = kdsm_malloc(member->heap, all);
	}
	if (!CHECK(object))
		return NULL;
	CHECK(kdsm_usable_size(member->heap, object) >= all);
	fill(object, size, guest_mix(member->chance));
	return object;
}

/* ---- passing objects on ---- */

#define LIST	24

static void send(struct member *member, unsigned int to, const void *pointer)
{
	uint64_t value = (uintptr_t)pointer;

	CHECK_IS(kdsm_put(member->crew->sync, to, LETTERS + 8 * index_of(member), &value,
			  sizeof(value)), 0);
}

static void *received(struct member *member)
{
	uint64_t value = 0;

	CHECK_IS(kdsm_get(member->crew->sync, node, LETTERS + 8 * index_of(member), &value,
			  sizeof(value)), 0);
	return (void *)(uintptr_t)value;
}

static struct object *make_list(struct member *member)
{
	struct object *first = NULL, *object;
	unsigned int i;

	for (i = 0; i < LIST; i++) {
		object = make(member);
		if (!object)
			break;
		object->next = first;
		first = object;
	}
	return first;
}

/* Check the objects of another node's list, resize some of them, and free them all. */
static void take_list(struct member *member, struct object *object)
{
	unsigned int n = 0;

	while (object && n <= LIST) {
		struct object *next = object->next, *moved;
		uint64_t size = object->size, other;

		CHECK(is_whole(object, size));
		if (chance(member, 3) == 0) {
			other = some_size(member);
			moved = kdsm_realloc(member->heap, object, sizeof(*object) + other);
			if (CHECK(moved)) {
				CHECK(is_whole(moved, other < size ? other : size));
				object = moved;
				size = other;
			}
		}
		/* The next user of the memory must not see these bytes. */
		memset(object->bytes, 0xee, size);
		CHECK_IS(kdsm_free(member->heap, object), 0);
		object = next;
		n++;
	}
	CHECK_IS(n, LIST);
}

static void *pass_on(void *arg)
{
	struct member *member = arg;
	struct object *list;
	unsigned int round;

	for (round = 0; round < 4; round++) {
		list = make_list(member);
		send(member, (node + 1 + round % (nodes - 1)) % nodes, list);
		crew_wait(member->crew);
		take_list(member, received(member));
		/* Send the next letter only after the last one has been read. */
		crew_wait(member->crew);
	}
	return NULL;
}

/* A counter of the region on this node, as kdsmctl prints it */
static long statistic(const char *name)
{
	char region[32];

	snprintf(region, sizeof(region), "heap-%u", number);
	return region_number(region, name);
}

static void *pass_on_and_count(void *arg)
{
	struct member *member = arg;

	pass_on(arg);
	/* Successive users of the same memory do not race with each other either. */
	if (!index_of(member))
		CHECK_IS(statistic("races"), 0);
	crew_wait(member->crew);
	return NULL;
}

static void heap_passing_on(void)
{
	run_all(pass_on_and_count);
}

/* ---- nodes do not share blocks ---- */

#define MANY	60

/* Every thread tells node 0 the addresses of its objects. */
static void tell(struct member *member, void **objects)
{
	unsigned int slots = LETTERS_SIZE / nodes, at = (node * slots) & ~63U;

	at += index_of(member) * MANY * 8;
	CHECK((index_of(member) + 1) * MANY * 8 <= slots);
	CHECK_IS(kdsm_put(member->crew->sync, 0, LETTERS + at, objects, MANY * 8), 0);
}

static void look_for_shared(struct member *member)
{
	static int16_t owner[SIZE / 4096];
	uint64_t base = (uintptr_t)kdsm_region_address(member->crew->region), shared = 0;
	unsigned int slots = LETTERS_SIZE / nodes, i, j;
	uint64_t places[PROCESSES * THREADS * MANY];

	memset(owner, -1, sizeof(owner));
	for (i = 0; i < nodes; i++) {
		CHECK_IS(kdsm_get(member->crew->sync, 0, LETTERS + ((i * slots) & ~63U), places,
				  processes * threads * MANY * 8), 0);
		for (j = 0; j < processes * threads * MANY; j++) {
			uint64_t block = (places[j] - base) / block_size;

			if (!CHECK(places[j] >= base && places[j] - base < SIZE))
				continue;
			shared += owner[block] >= 0 && owner[block] != (int)i;
			owner[block] = i;
		}
	}
	CHECK_IS(shared, 0);
}

static void *be_apart(void *arg)
{
	struct member *member = arg;
	void *objects[MANY];
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		objects[i] = kdsm_malloc(member->heap, 1 + chance(member, 400));
		CHECK(objects[i]);
	}
	tell(member, objects);
	crew_wait(member->crew);
	if (node == 0 && !index_of(member))
		look_for_shared(member);
	crew_wait(member->crew);
	for (i = 0; i < MANY; i++)
		CHECK_IS(kdsm_free(member->heap, objects[i]), 0);
	return NULL;
}

static void heap_apart(void)
{
	run_all(be_apart);
}

/* ---- mistakes, noticed on other nodes ---- */

enum { GOOD, OVERRUN, UNDERRUN, TWICE, OBJECTS };

static void *make_mistakes(void *arg)
{
	static const size_t sizes[OBJECTS] = { 100, 33, 5000, 70000 };
	struct member *member = arg;
	struct crew *crew = member->crew;
	unsigned int i, last = nodes - 1;
	uint8_t **table = kdsm_region_address(crew->region), keep = 0;

	/*
	 * Node 0 allocates the objects, node 1 writes beyond their ends, the last node
	 * frees them.
	 */
	if (node == 0) {
		table = kdsm_malloc(member->heap, sizeof(*table) * OBJECTS);
		for (i = 0; i < OBJECTS; i++) {
			table[i] = kdsm_malloc(member->heap, sizes[i]);
			CHECK(table[i]);
		}
		for (i = 0; i < nodes; i++)
			send(member, i, table);
	}
	crew_wait(crew);
	table = received(member);
	if (node == 1) {
		memset(table[GOOD], 1, sizes[GOOD]);
		keep = table[OVERRUN][sizes[OVERRUN]];
		table[OVERRUN][sizes[OVERRUN]] ^= 1;
		table[UNDERRUN][-1] ^= 1;
	}
	crew_wait(crew);
	if (node == last) {
		CHECK_IS(kdsm_usable_size(member->heap, table[GOOD]), sizes[GOOD]);
		CHECK_IS(kdsm_free(member->heap, table[OVERRUN]), -EOVERFLOW);
		CHECK_IS(kdsm_free(member->heap, table[UNDERRUN]), -EOVERFLOW);
		CHECK(!kdsm_realloc(member->heap, table[OVERRUN], 10));
		CHECK_IS(kdsm_free(member->heap, table[GOOD]), 0);
		CHECK_IS(kdsm_free(member->heap, table[TWICE]), 0);
	}
	crew_wait(crew);
	/* Free objects that are free already, on every node. */
	CHECK_IS(kdsm_free(member->heap, table[TWICE]), -EINVAL);
	CHECK_IS(kdsm_free(member->heap, table[GOOD]), -EINVAL);
	CHECK_IS(kdsm_free(member->heap, &keep), -EINVAL);
	crew_wait(crew);
	if (node == 1) {
		table[OVERRUN][sizes[OVERRUN]] = keep;
		table[UNDERRUN][-1] ^= 1;
	}
	crew_wait(crew);
	if (node == last) {
		CHECK_IS(kdsm_free(member->heap, table[OVERRUN]), 0);
		CHECK_IS(kdsm_free(member->heap, table[UNDERRUN]), 0);
	}
	crew_wait(crew);
	return NULL;
}

static void free_twice(unsigned int process)
{
	struct crew crew = { .process = process };
	struct kdsm_heap *heap;
	void *memory;

	signal(SIGABRT, SIG_DFL);
	fclose(stderr);
	flags = KDSM_HEAP_DEBUG | KDSM_HEAP_ABORT;
	open_heap(&crew, &heap);
	memory = kdsm_malloc(heap, 50);
	CHECK_IS(kdsm_free(heap, memory), 0);
	kdsm_free(heap, memory);
	guest_failed(__FILE__, __LINE__, "freeing twice comes back");
}

static void heap_mistakes(void)
{
	flags = KDSM_HEAP_DEBUG;
	processes = 1;
	threads = 1;
	run_all(make_mistakes);
	meet();
	number++;
	CHECK_IS(crew_join(crew_fork(free_twice, 0)), -SIGABRT);
	flags = 0;
	processes = PROCESSES;
	threads = THREADS;
}

/* ---- processes that are killed ---- */

#define KEPT	40

static void *churn(void *arg)
{
	struct member *member = arg;
	struct object *kept[KEPT] = { NULL };
	unsigned int i, n, rounds = 1500;

	/* The second process continues until it is killed. */
	if (member->crew->process == 1)
		rounds = -1U;
	for (n = 0; n < rounds; n++) {
		i = chance(member, KEPT);
		if (kept[i]) {
			CHECK(is_whole(kept[i], kept[i]->size));
			CHECK_IS(kdsm_free(member->heap, kept[i]), 0);
			kept[i] = NULL;
		} else {
			kept[i] = make(member);
		}
	}
	for (i = 0; i < KEPT; i++)
		if (kept[i])
			CHECK_IS(kdsm_free(member->heap, kept[i]), 0);
	return NULL;
}

static void heap_killed(void)
{
	pid_t pids[PROCESSES];
	unsigned int i;

	work = churn;
	number++;
	for (i = 0; i < PROCESSES; i++)
		pids[i] = crew_fork(run_process, i);
	usleep(700000);
	kill(pids[1], SIGKILL);
	CHECK_IS(crew_join(pids[1]), -SIGKILL);
	CHECK_IS(crew_join(pids[0]), 0);
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(heap_passing_on),
	TEST(heap_apart),
	TEST(heap_mistakes),
	TEST(heap_killed),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 4096, 65536 };
	int status = 0;

	guest_open("heap-meeting");
	processes = PROCESSES;
	threads = THREADS;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block_size = sizes[i];
		printf("# blocks of %u bytes\n", block_size);
		status |= guest_run(tests, argc > 1 ? argv[1] : NULL);
	}
	guest_close();
	return status;
}
