// SPDX-License-Identifier: GPL-2.0
/*
 * The limits of a process on its machine, read from directories that stand for /proc and
 * control groups; the defaults that kdsm-reach derives from them; and signs of a cluster.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "common/cluster.h"
#include "common/machine.h"
#include "kdsm-reach/defaults.h"

#define MIB	(UINT64_C(1) << 20)
#define GIB	(UINT64_C(1) << 30)

static char root[64];

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/kdsm-machine.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* Write a file below root, and make its directories. */
static void put(const char *name, const char *text)
{
	char path[512], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Compare with what the files allow a process of a machine with 64 processors and 1 TiB. */
static void expect(unsigned int processors, uint64_t memory, uint64_t available)
{
	struct machine machine = { 64, 1024 * GIB, 1024 * GIB };

	machine_limit(&machine, root);
	assert_int_equal(machine.processors, processors);
	assert_int_equal(machine.memory, memory);
	assert_int_equal(machine.available, available);
}

static void without_groups(void **state)
{
	(void)state;
	expect(64, 1024 * GIB, 1024 * GIB);
	put("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1048576 kB\n"
			    "MemAvailable:    8388608 kB\n");
	expect(64, 16 * GIB, 8 * GIB);
}

static void version_2(void **state)
{
	(void)state;
	put("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
	put("proc/self/cgroup", "0::/job.slice/step\n");
	put("proc/self/mountinfo",
	    "21 20 0:5 / /proc rw - proc none rw\n"
	    "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
	expect(64, 16 * GIB, 8 * GIB);
	put("sys/fs/cgroup/job.slice/step/memory.max", "max\n");
	put("sys/fs/cgroup/job.slice/step/cpu.max", "max 100000\n");
	expect(64, 16 * GIB, 8 * GIB);
	/* the limits of a group above */
	put("sys/fs/cgroup/job.slice/memory.max", "12884901888\n");
	put("sys/fs/cgroup/job.slice/cpu.max", "800000 100000\n");
	expect(8, 12 * GIB, 8 * GIB);
	/* the smallest limit counts, and part of a processor is one */
	put("sys/fs/cgroup/job.slice/step/memory.high", "1073741824\n");
	put("sys/fs/cgroup/job.slice/step/cpu.max", "250000 100000\n");
	expect(3, GIB, GIB);
	put("sys/fs/cgroup/job.slice/step/cpu.max", "1000 100000\n");
	expect(1, GIB, GIB);
}

static void version_1(void **state)
{
	(void)state;
	put("proc/self/cgroup", "9:name=systemd:/\n4:memory:/a/b\n1:cpu,cpuacct:/c\n0::/\n");
	put("proc/self/mountinfo",
	    "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup none rw,cpu,cpuacct\n"
	    "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup none rw,memory\n"
	    "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4294967296\n");
	put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us", "100000\n");
	expect(64, 4 * GIB, 4 * GIB);
	put("sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us", "400000\n");
	expect(4, 4 * GIB, 4 * GIB);
}

/* In a container the mounted top is the process's group, or the group is not visible. */
static void containers(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/docker/x/inner\n");
	put("proc/self/mountinfo",
	    "25 20 0:22 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
	put("sys/fs/cgroup/memory.max", "2147483648\n");
	expect(64, 2 * GIB, 2 * GIB);
	put("sys/fs/cgroup/inner/cpu.max", "200000 100000\n");
	expect(2, 2 * GIB, 2 * GIB);
	put("proc/self/cgroup", "0::/docker/xy/inner\n");
	expect(64, 2 * GIB, 2 * GIB);
	put("proc/self/cgroup", "0::/../../other\n");
	expect(64, 2 * GIB, 2 * GIB);
}

static void damaged_files(void **state)
{
	(void)state;
	put("proc/meminfo", "MemTotal:\nMemAvailable: lots\n\n");
	put("proc/self/cgroup", "0\n0:\n:::::\n0::/a\n");
	put("proc/self/mountinfo", "\n - "
				   "\n1 - cgroup2 x y\n1 2 3 / /g rw - cgroup2\n"
				   "1 2 3 / /g rw - cgroup2 x rw\n");
	put("g/a/memory.max", "");
	put("g/a/cpu.max", "100000\n");
	put("g/memory.max", "-5\n");
	put("g/cpu.max", "5 0\n");
	expect(64, 1024 * GIB, 1024 * GIB);
}

static void this_machine(void **state)
{
	struct machine machine;

	(void)state;
	machine_read(&machine);
	assert_in_range(machine.processors, 1, 65536);
	assert_in_range(machine.available, 1, machine.memory);
}

static void signs_of_a_cluster(void **state)
{
	(void)state;
	unsetenv("KDSM_JOB");
	unsetenv("SLURM_JOB_NUM_NODES");
	unsetenv("OMPI_COMM_WORLD_SIZE");
	unsetenv("PMI_SIZE");
	assert_null(cluster_sign(root));
	put("etc/kdsm.conf", "");
	assert_string_equal(cluster_sign(root), "/etc/kdsm.conf exists");
	setenv("SLURM_JOB_NUM_NODES", "1", 1);
	setenv("KDSM_JOB", "", 1);
	assert_string_equal(cluster_sign(root), "/etc/kdsm.conf exists");
	setenv("PMI_SIZE", "12", 1);
	assert_string_equal(cluster_sign(root), "PMI_SIZE is 12");
	setenv("SLURM_JOB_NUM_NODES", "4", 1);
	assert_string_equal(cluster_sign(root), "SLURM_JOB_NUM_NODES is 4");
	setenv("KDSM_JOB", "mine", 1);
	assert_string_equal(cluster_sign(root), "KDSM_JOB is set");
}

/* ---- defaults ---- */

static struct kdsm_reach_options defaults(const struct machine *machine, unsigned int nodes)
{
	struct kdsm_reach_options options = { .argsz = sizeof(options) };

	defaults_set(&options, machine, nodes);
	return options;
}

static void half_of_the_memory(void **state)
{
	const struct machine machine = { 24, 256 * GIB, 96 * GIB };
	struct kdsm_reach_options o = defaults(&machine, 1);
	unsigned int nodes;
	uint64_t part, node;

	(void)state;
	assert_int_equal(o.workers, 24);
	assert_int_equal(o.bdd.table_bytes, 32 * GIB);
	assert_int_equal(o.bdd.cache_bytes, 16 * GIB);
	assert_int_equal(o.bdd.first_table_bytes, 64 * MIB);
	assert_int_equal(o.bdd.first_cache_bytes, 32 * MIB);
	for (nodes = 2; nodes < 300; nodes *= 2) {
		o = defaults(&machine, nodes);
		/* of a node: its parts, and its cache of other nodes' BDD nodes */
		part = o.bdd.table_bytes / nodes;
		node = part + o.bdd.cache_bytes / nodes + part * (nodes < 4 ? nodes : 4) / 3;
		assert_in_range(node, 127 * GIB, 128 * GIB);
		assert_int_equal(o.bdd.first_table_bytes, nodes * 64 * MIB);
	}
}

/* Machines of one kind do not have exactly the same memory; all nodes need the same sizes. */
static void alike_on_all_nodes(void **state)
{
	const struct machine one = { 8, 63 * GIB, 20 * GIB }, other = { 4, 62 * GIB, 60 * GIB };
	struct kdsm_reach_options a = defaults(&one, 4), b = defaults(&other, 4);

	(void)state;
	assert_memory_equal(&a.bdd, &b.bdd, sizeof(a.bdd));
}

static void given_sizes(void **state)
{
	const struct machine machine = { 1000, 1024 * GIB, 1024 * GIB };
	struct kdsm_reach_options o = { .argsz = sizeof(o), .workers = 3, .bdd = {
		.table_bytes = 4 * GIB },
	};

	(void)state;
	defaults_set(&o, &machine, 1);
	assert_int_equal(o.workers, 3);
	assert_int_equal(o.bdd.table_bytes, 4 * GIB);
	assert_int_equal(o.bdd.first_table_bytes, 0);
	assert_int_equal(o.bdd.cache_bytes, 2 * GIB);
	assert_int_equal(o.bdd.first_cache_bytes, 0);
	o = (struct kdsm_reach_options){ .argsz = sizeof(o), .bdd = { .cache_bytes = 4096 } };
	defaults_set(&o, &machine, 1);
	assert_int_equal(o.workers, KDSM_REACH_WORKERS);
	assert_int_equal(o.bdd.cache_bytes, 4096);
	assert_int_equal(o.bdd.first_cache_bytes, 0);
	assert_int_equal(o.bdd.first_table_bytes, 64 * MIB);
}

static void little_memory(void **state)
{
	const struct machine machine = { 1, 16 * MIB, 0 };
	struct kdsm_reach_options o = defaults(&machine, 1);

	(void)state;
	assert_int_equal(o.bdd.table_bytes, MIB);
	assert_int_equal(o.bdd.first_table_bytes, MIB);
	assert_int_equal(o.bdd.cache_bytes, MIB / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_groups, make_root, remove_root),
		cmocka_unit_test_setup_teardown(version_2, make_root, remove_root),
		cmocka_unit_test_setup_teardown(version_1, make_root, remove_root),
		cmocka_unit_test_setup_teardown(containers, make_root, remove_root),
		cmocka_unit_test_setup_teardown(damaged_files, make_root, remove_root),
		cmocka_unit_test(this_machine),
		cmocka_unit_test_setup_teardown(signs_of_a_cluster, make_root, remove_root),
		cmocka_unit_test(half_of_the_memory),
		cmocka_unit_test(alike_on_all_nodes),
		cmocka_unit_test(given_sizes),
		cmocka_unit_test(little_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
