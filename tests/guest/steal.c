// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks taken out of deques by KDSM_OP_STEAL, from a program on every node at the same
 * time, while a thread of node 0 takes some by its own CPU: each task is taken once, and
 * intact.
 */
#include <pthread.h>
#include <unistd.h>
#include "guest.h"

#define WORKERS	3
#define DEQUE	200
#define THREADS	3
#define TASKS	(WORKERS * DEQUE)
#define TYPE	7
#define PROXY	9

/* Offsets in every part */
#define CREW	0UL
#define WORDS	64UL
#define STRIDE	128UL
#define DEQUES	(WORDS + 4 * STRIDE)
#define TAKEN	(2UL << 20)	/* how often each of node 0's tasks was taken */
#define PART	(4UL << 20)

union loot {
	struct kdsm_theft theft;
	unsigned char room[sizeof(struct kdsm_theft) +
			   KDSM_THEFT_MOST * sizeof(struct kdsm_task_packed)];
};

static struct kdsm_region *region;
static uint8_t *part;

static void plan(union loot *loot, uint32_t most, uint32_t first)
{
	loot->theft = (struct kdsm_theft){
		.workers = WORDS, .deques = DEQUES, .stride = STRIDE, .count = WORKERS,
		.deque = DEQUE, .thief = 0x80000000 | node, .proxy = PROXY, .most = most,
		.first = first,
	};
}

static int steal(unsigned int victim, union loot *loot)
{
	struct kdsm_op op = kdsm_op_steal(victim, CREW, &loot->theft);

	return kdsm_vector(region, &op, 1);
}

static struct kdsm_task_worker *worker_at(unsigned int worker)
{
	return (void *)(part + WORDS + worker * STRIDE);
}

static struct kdsm_task *task_at(unsigned int worker, unsigned int slot)
{
	return (void *)(part + DEQUES) + (worker * (DEQUE + 1) + slot) * sizeof(struct kdsm_task);
}

/* The arguments contain the number and depend on it alone, so number_of() can check them. */
static void fill(struct kdsm_task *task, uint64_t number)
{
	unsigned int i;
	uint64_t word;

	task->type = TYPE;
	task->thief = 0;
	for (i = 0; i < KDSM_TASK_BYTES / 8; i++) {
		word = guest_mix(number + i * 100000) & ~UINT64_C(0xffff);
		word |= number;
		memcpy(task->data + 8 * i, &word, 8);
	}
}

static uint64_t number_of(const unsigned char *arguments)
{
	struct kdsm_task expected;
	uint64_t number;

	memcpy(&number, arguments, sizeof(number));
	number &= 0xffff;
	fill(&expected, number);
	CHECK(number < TASKS && !memcmp(expected.data, arguments, KDSM_TASK_BYTES));
	return number % TASKS;
}

static void take_note(uint64_t number)
{
	CHECK_IS(kdsm_faa(region, 0, TAKEN + 8 * number, 1, NULL), 0);
}

static void *take_all(void *arg)
{
	const unsigned int me = (uintptr_t)arg;
	union loot loot;
	uint32_t i;

	do {
		/* Leave some tasks to the other nodes. */
		if (!node)
			usleep(2000);
		plan(&loot, 1 + me % KDSM_THEFT_MOST, me);
		if (!CHECK(!steal(0, &loot) && loot.theft.taken <= loot.theft.most))
			break;
		CHECK_IS(loot.theft.busy, 5);
		for (i = 0; i < loot.theft.taken; i++) {
			const struct kdsm_task_packed *packed = &kdsm_theft_tasks(&loot.theft)[i];

			CHECK(!packed->origin.node && packed->origin.type == TYPE);
			CHECK_IS(packed->origin.worker * DEQUE + packed->origin.slot,
				 number_of(packed->arguments));
			take_note(number_of(packed->arguments));
		}
	} while (loot.theft.taken);
	return NULL;
}

/* Take tasks as the node's own workers do: by the CPU, whatever the domain of atomics is. */
static void *take_here(void *arg)
{
	struct kdsm_task_worker *worker;
	uint64_t ends, taken = 0;
	struct kdsm_task *task;
	unsigned int i;

	(void)arg;
	for (i = 0; i < TASKS; i++) {
		worker = worker_at(i % WORKERS);
		ends = __atomic_load_n(&worker->ends, __ATOMIC_SEQ_CST);
		if (!kdsm_ends_share(ends, DEQUE, 1) ||
		    !__atomic_compare_exchange_n(&worker->ends, (__u64 *)&ends, ends + 1, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		task = task_at(i % WORKERS, kdsm_ends_tail(ends));
		take_note(number_of(task->data));
		taken++;
		usleep(500);
	}
	printf("# %llu of %u by the node's own CPU\n", (unsigned long long)taken, TASKS);
	return NULL;
}

static void steal_once(void)
{
	const struct kdsm_task_crew crew = { .busy = 5, .used = WORKERS };
	pthread_t threads[THREADS];
	unsigned int worker, slot, i;
	uint64_t times, far = 0;

	for (worker = 0; node == 0 && worker < WORKERS; worker++) {
		for (slot = 0; slot < DEQUE; slot++)
			fill(task_at(worker, slot), worker * DEQUE + slot);
		worker_at(worker)->attention = 0;
		__atomic_store_n(&worker_at(worker)->ends, (__u64)DEQUE << 32, __ATOMIC_SEQ_CST);
	}
	memcpy(part + CREW, &crew, sizeof(crew));
	meet();
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, node || i ? take_all : take_here,
				      (void *)(uintptr_t)(node + i)));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet();
	for (i = 0; i < TASKS; i++) {
		CHECK_IS(kdsm_get(region, 0, TAKEN + 8 * i, &times, 8), 0);
		CHECK_IS(times, 1);
	}
	/* A stolen task is marked and zeroed; a task that this node's CPU took is as it was. */
	for (i = 0; node == 0 && i < TASKS; i++) {
		static const unsigned char none[sizeof(((struct kdsm_task *)0)->data)];
		const struct kdsm_task *task = task_at(i / DEQUE, i % DEQUE);

		CHECK_IS(task->type, TYPE);
		CHECK(!task->thief || (task->thief & ~0xffU) == 0x80000000);
		if (task->thief)
			CHECK(!task->bell && !memcmp(task->data, none, sizeof(none)));
		else
			CHECK_IS(number_of(task->data), i);
		far += task->thief > 0x80000000;
	}
	for (worker = 0; node == 0 && worker < WORKERS; worker++)
		CHECK_IS(worker_at(worker)->attention, 1);
	CHECK(node || nodes == 1 || far);
	meet();
}

/* Stealing a proxy takes the task that the proxy stands for, on the same node or another. */
static void steal_proxies(void)
{
	const struct kdsm_task_crew crew = { .used = 2 };
	struct kdsm_task_packed packed = { .origin = { .node = 11, .worker = 22, .slot = 33,
						       .type = TYPE, .bytes = 80 } };
	unsigned int before = (node + nodes - 1) % nodes;
	union loot loot;
	const struct kdsm_task_packed *taken = kdsm_theft_tasks(&loot.theft);

	memset(part + WORDS, 0, 4 * STRIDE);
	memcpy(part + CREW, &crew, sizeof(crew));
	fill(task_at(1, 5), 42);
	task_at(0, 0)->type = PROXY;
	task_at(0, 0)->thief = 0;
	memcpy(task_at(0, 0)->data,
	       &(struct kdsm_task_origin){ .node = 77, .worker = 1, .slot = 5 },
	       sizeof(struct kdsm_task_origin));
	task_at(0, 1)->type = PROXY;
	task_at(0, 1)->thief = 0;
	fill(task_at(0, 3), 43);
	memcpy(packed.arguments, task_at(0, 3)->data, sizeof(packed.arguments));
	memcpy(task_at(0, 1)->data, &packed, sizeof(packed));
	__atomic_store_n(&worker_at(0)->ends, 2ULL << 32, __ATOMIC_SEQ_CST);
	meet();
	plan(&loot, 1, 0);
	CHECK_IS(steal((node + 1) % nodes, &loot), 0);
	CHECK_IS(loot.theft.taken, 1);
	CHECK_IS(taken->origin.node, (node + 1) % nodes);
	CHECK_IS(taken->origin.worker, 1);
	CHECK_IS(taken->origin.slot, 5);
	CHECK_IS(taken->origin.type, TYPE);
	CHECK_IS(number_of(taken->arguments), 42);
	plan(&loot, 1, 0);
	CHECK_IS(steal((node + 1) % nodes, &loot), 0);
	CHECK_IS(loot.theft.taken, 1);
	CHECK(!memcmp(taken, &packed, sizeof(packed)));
	meet();
	CHECK_IS(task_at(0, 0)->thief, KDSM_THIEF_DONE);
	CHECK_IS(task_at(0, 1)->thief, KDSM_THIEF_DONE);
	CHECK_IS(task_at(1, 5)->thief, 0x80000000 | before);
	CHECK_IS(worker_at(0)->attention, 0);
	meet();
	/* A proxy that names no task */
	memcpy(task_at(0, 0)->data,
	       &(struct kdsm_task_origin){ .worker = WORKERS, .slot = 5 },
	       sizeof(struct kdsm_task_origin));
	__atomic_store_n(&worker_at(0)->ends, 1ULL << 32, __ATOMIC_SEQ_CST);
	meet();
	plan(&loot, 1, 0);
	CHECK_IS(steal((node + 1) % nodes, &loot), -EIO);
	/* No task is left, and worker 1's deque claims more than it has room for: none is taken. */
	__atomic_store_n(&worker_at(1)->ends, UINT64_MAX << 32, __ATOMIC_SEQ_CST);
	meet();
	plan(&loot, KDSM_THEFT_MOST, 1);
	CHECK_IS(steal((node + 1) % nodes, &loot), 0);
	CHECK_IS(loot.theft.taken, 0);
	CHECK_IS(loot.theft.busy, 0);
	meet();
	CHECK_IS(worker_at(0)->attention, 1);
	CHECK_IS(worker_at(1)->attention, 1);
	meet();
}

#define TEST(name) { #name, name }
static const struct guest_test tests[] = {
	TEST(steal_once),
	TEST(steal_proxies),
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	int ret;

	guest_open("steal-meeting");
	attr.size = (uint64_t)nodes * PART;
	ret = kdsm_region_open(kdsm, "steal", &attr, &region);
	if (ret)
		guest_die("region", ret);
	part = kdsm_region_part(region);
	ret = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	guest_close();
	return ret;
}
