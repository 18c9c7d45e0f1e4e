// SPDX-License-Identifier: GPL-2.0
/*
 * short: the last node runs short of memory. A put into memory that this node has not touched
 * yet fails there, and so does the notifying put behind it, which would tell a waiter that the
 * data has arrived.
 */
#include <sys/mman.h>
#include "guest.h"

#define CHUNK	(UINT64_C(1) << 21)	/* memory comes in chunks of this size */
#define CHUNKS	4
#define WORD	64			/* offset of the word that the notifying put writes */
#define STEP	(UINT64_C(1) << 19)	/* bytes taken at a time */
#define MARGIN	(UINT64_C(8) << 20)

static struct kdsm_region *region;
static unsigned int last;

/* Available memory in bytes, and a sixteenth of all, which the module leaves (at least 32 MiB) */
static void look(uint64_t *available, uint64_t *reserve)
{
	unsigned long long total = 0, free = 0;
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu", &total) != 1 &&
		    sscanf(line, "MemAvailable: %llu", &free) == 1)
			break;
	}
	if (file)
		fclose(file);
	*available = free << 10;
	*reserve = total << 10 >> 4;
	if (*reserve < UINT64_C(32) << 20)
		*reserve = UINT64_C(32) << 20;
}

/*
 * Take memory until the module has none left, and MARGIN more, because other processes may free
 * some before the put arrives. Returns the mapping.
 */
static void *take(uint64_t *taken)
{
	uint64_t available, reserve, size = UINT64_C(1) << 34;
	char *place = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*taken = 0;
	if (place == MAP_FAILED)
		guest_die("mmap", -errno);
	look(&available, &reserve);
	while (available > reserve - MARGIN && *taken < size) {
		memset(place + *taken, 1, STEP);
		*taken += STEP;
		look(&available, &reserve);
	}
	return place;
}

static void notify_behind_failed_put(void)
{
	uint64_t data = 7, news = 1, word = 0, taken;
	struct kdsm_op ops[2] = {
		{ .opcode = KDSM_OP_PUT, .node = last, .length = 8, .offset = 3 * CHUNK,
		  .addr = (uintptr_t)&data },
		{ .opcode = KDSM_OP_PUT, .flags = KDSM_OP_NOTIFY, .node = last, .length = 8,
		  .offset = WORD, .addr = (uintptr_t)&news },
	};
	void *place = NULL;

	/* The word's chunk is there, and this node has its key. */
	CHECK_IS(kdsm_put(region, last, WORD, &word, sizeof(word)), 0);
	meet();
	if (node == last)
		place = take(&taken);
	meet();
	if (!node) {
		CHECK_IS(kdsm_vector(region, ops, 2), -ENOMEM);
		CHECK_IS(ops[0].status, -ENOMEM);
		CHECK_IS(ops[1].status, -ENOMEM);
		CHECK_IS(kdsm_get(region, last, WORD, &word, sizeof(word)), 0);
		CHECK_IS(word, 0);
	}
	meet();
	if (place)
		munmap(place, UINT64_C(1) << 34);
	meet();
	if (!node) {
		CHECK_IS(kdsm_vector(region, ops, 2), 0);
		CHECK_IS(kdsm_settle(kdsm), 0);
		CHECK_IS(kdsm_get(region, last, WORD, &word, sizeof(word)), 0);
		CHECK_IS(word, 1);
	}
}

static const struct guest_test tests[] = {
	{ "a put fails, and the notifying put behind it", notify_behind_failed_put },
	{ 0 }
};

int main(int argc, char **argv)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr) };
	int ret, status;

	guest_open("short");
	last = nodes - 1;
	attr.size = CHUNKS * CHUNK * nodes;
	ret = kdsm_region_open(kdsm, "short-data", &attr, &region);
	if (ret)
		guest_die("kdsm_region_open", ret);
	status = guest_run(tests, argc > 1 ? argv[1] : NULL);
	kdsm_region_close(region);
	guest_close();
	return status;
}
