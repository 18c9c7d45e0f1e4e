// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations of memory, and keys that a node tells its peers, counted by kdsmctl stats: memory
 * that exists before peers use it has one registration for each range of contiguous memory, and
 * memory that peers make exist has one for each chunk. Node 0 has the memory.
 *
 * usage: registration [MIB]; MIB is the memory that node 0 uses first, a multiple of 2.
 */
#include <sys/utsname.h>
#include <unistd.h>
#include "counter.h"
#include "guest.h"

#define CHUNK	(UINT64_C(2) << 20)	/* unit of allocation, in bytes */
#define PAGE	4096U
#define TOUCHED	16U			/* chunks that peers make exist */

static unsigned int populated = 32;	/* chunks */
static struct kdsm_region *region;

static int open_region(const char *name, unsigned int chunks)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = chunks * CHUNK * nodes };

	return kdsm_region_open(kdsm, name, &attr, &region);
}

/* Free blocks of contiguous memory of the size of a chunk; larger blocks count as several */
static unsigned int free_blocks(void)
{
	FILE *file = fopen("/proc/buddyinfo", "re");
	unsigned int free, order, blocks = 0;
	char line[512], *at, *end;

	while (file && fgets(line, sizeof(line), file)) {
		at = strstr(line, "zone");
		at = at ? strpbrk(at + 4, " ") : NULL;
		while (at && *at == ' ')
			at++;
		at = at ? strchr(at, ' ') : NULL;
		for (order = 0; at; at = end, order++) {
			free = strtoul(at, &end, 10);
			if (end == at)
				break;
			if (order >= 9)
				blocks += free << (order - 9);
		}
	}
	if (file)
		fclose(file);
	return blocks;
}

/* Upper bound of the chunks in one registration on this kernel; see kmod/compat.h */
static unsigned int most(void)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;

	uname(&name);
	if (sscanf(name.release, "%u.%u", &major, &minor) != 2)
		guest_die("uname", -EINVAL);
	return major > 6 || (major == 6 && minor >= 3) ? 32 : 512;
}

/* Registrations of contiguous memory of so many chunks: one for each aligned range */
static unsigned int ranges(unsigned int chunks)
{
	return (chunks + most() - 1) / most();
}

/* Node 0 uses all of its memory, then the other nodes do. */
static void populated_first(void)
{
	int64_t registrations = guest_counter(node, "registrations"), told[64], value;
	unsigned int i, want = ranges(populated);
	bool contiguous = true;
	char *part;

	for (i = 1; i < nodes; i++)
		told[i] = guest_counter(i, "keys");
	CHECK_IS(open_region("registration-populated", populated), 0);
	part = kdsm_region_part(region);
	meet();
	if (node == 0) {
		/* The kernel splits the free blocks in which it keeps page tables and the like. */
		contiguous = free_blocks() >= populated + 8;
		for (i = 0; i < populated; i++)
			for (uint64_t at = 0; at < CHUNK; at += PAGE)
				*(volatile uint64_t *)(part + i * CHUNK + at) = i;
	}
	meet();
	for (i = 0; node && i < populated; i++) {
		CHECK_IS(kdsm_get(region, 0, i * CHUNK + CHUNK - PAGE, &value, 8), 0);
		CHECK_IS(value, i);
		value = i + 1000 * node;
		CHECK_IS(kdsm_put(region, 0, i * CHUNK + 8 * node, &value, 8), 0);
	}
	meet();
	for (i = 0; !node && i < populated; i++)
		for (unsigned int peer = 1; peer < nodes; peer++)
			CHECK_IS(((uint64_t *)(part + i * CHUNK))[peer], i + 1000 * peer);
	if (node == 0) {
		registrations = guest_counter(node, "registrations") - registrations;
		printf("# %u MiB: %ld registrations, %ld keys told to node 1%s\n", populated * 2,
		       registrations, guest_counter(1, "keys") - told[1],
		       contiguous ? "" : "; memory is fragmented");
		CHECK(registrations >= want && registrations <= populated);
		for (i = 1; i < nodes && contiguous; i++)
			CHECK_IS(guest_counter(i, "keys") - told[i], want);
		if (contiguous)
			CHECK_IS(registrations, want);
	}
	meet();
	kdsm_region_close(region);
}

/*
 * Node 1 makes the memory exist, chunk by chunk and in no order; then the last node uses the
 * memory for the first time. The keys that node 1 got remain valid.
 */
static void touched_by_peers(void)
{
	int64_t registrations = guest_counter(node, "registrations");
	unsigned int i, chunk;
	int64_t value;

	CHECK_IS(open_region("registration-touched", TOUCHED), 0);
	meet();
	for (i = 0; node == 1 && i < TOUCHED; i++) {
		chunk = i * 5 % TOUCHED;
		value = chunk + 1;
		CHECK_IS(kdsm_put(region, 0, chunk * CHUNK + CHUNK - 8, &value, 8), 0);
	}
	meet();
	if (node == 0) {
		CHECK_IS(guest_counter(node, "registrations") - registrations, TOUCHED);
		registrations = guest_counter(node, "registrations");
	}
	meet();
	for (i = 0; node == nodes - 1 && i < TOUCHED; i++) {
		CHECK_IS(kdsm_get(region, 0, i * CHUNK + CHUNK - 8, &value, 8), 0);
		CHECK_IS(value, i + 1);
		value = i + 2;
		CHECK_IS(kdsm_put(region, 0, i * CHUNK + CHUNK - 8, &value, 8), 0);
	}
	meet();
	for (i = 0; node == 1 && i < TOUCHED; i++) {
		CHECK_IS(kdsm_get(region, 0, i * CHUNK + CHUNK - 8, &value, 8), 0);
		CHECK_IS(value, i + 2);
	}
	if (node == 0)
		CHECK_IS(guest_counter(node, "registrations") - registrations, 0);
	meet();
	kdsm_region_close(region);
}

static const struct guest_test tests[] = {
	{ "registration_populated", populated_first },
	{ "registration_touched", touched_by_peers },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	int status;

	guest_open("registration");
	if (argc > 1)
		populated = atoi(argv[1]) / 2;
	if (nodes < 2 || nodes > 64 || !populated) {
		printf("ok registration # SKIP needs 2 to 64 nodes\n");
		guest_close();
		return 0;
	}
	status = guest_run(tests, NULL);
	guest_close();
	return status;
}
