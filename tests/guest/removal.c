// SPDX-License-Identifier: GPL-2.0
/*
 * The RDMA device of a node is removed while the node frees memory that is registered with the
 * device, and regions that are made afterwards do without it. For a cluster of one node in
 * domain hca, in which a node registers its memory for its own atomics; as root. Leaves the
 * cluster up.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kdsm/kdsm.h>

#include "tap.h"

#define ROUNDS	16
#define STEP	12000U		/* us; less than the module takes to free the memory */
#define CHUNK	(UINT64_C(2) << 20)	/* unit of allocation, in bytes */
#define CHUNKS	128U

static struct kdsm *kdsm;

static void run(const char *command)
{
	if (system(command))
		tap_bail("%s failed", command);
}

static struct kdsm_region *open_region(const char *name, uint64_t size)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = size };
	struct kdsm_region *region;
	int error = kdsm_region_open(kdsm, name, &attr, &region);

	if (error)
		tap_bail("region %s: %s", name, strerror(-error));
	return region;
}

/* Remove the device; return the process that does so. */
static pid_t removal(void)
{
	pid_t child = fork();

	if (!child) {
		execlp("rdma", "rdma", "link", "delete", "rxe0", (char *)NULL);
		_exit(127);
	}
	return child;
}

static void one_round(unsigned int round)
{
	struct kdsm_region *region;
	unsigned int i;
	int status = -1, error = 0;
	pid_t child;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	region = open_region("removal", CHUNKS * CHUNK);
	for (i = 0; i < CHUNKS && !error; i++)
		error = kdsm_faa(region, 0, i * CHUNK, 1, NULL);
	tap_result(error, 0, "round %u: atomics by the device", round);
	/* In each round the module has got further with the removal when it frees the memory. */
	child = removal();
	usleep(round * STEP);
	kdsm_region_close(region);
	waitpid(child, &status, 0);
	tap_ok(!status, "round %u: the device is removed", round);

	region = open_region("without", CHUNK);
	*(volatile uint64_t *)kdsm_region_part(region) = 1;
	tap_result(kdsm_faa(region, 0, 0, 1, NULL), -EHOSTDOWN, "round %u: an atomic", round);
	kdsm_region_close(region);
	kdsm_close(kdsm);
	run("kdsmctl down");
	run("rdma link add rxe0 type rxe netdev eth0");
	run("kdsmctl up -f \"$KDSM_CONFIG\" -w 60 --atomics hca");
}

int main(void)
{
	bool fits;

	must(kdsm_open(0, &kdsm), "kdsm_open");
	fits = kdsm_nodes(kdsm) == 1 && kdsm_domain(kdsm) == KDSM_DOMAIN_HCA;
	kdsm_close(kdsm);
	if (!fits) {
		tap_ok(true, "# SKIP not one node in domain hca");
		return tap_end();
	}
	for (unsigned int round = 0; round < ROUNDS; round++)
		one_round(round);
	return tap_end();
}
