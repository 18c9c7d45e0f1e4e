// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl check: compare a configuration with this machine, without changing anything. Every
 * finding is a line that names the thing, its value and, unless all is well, the remedy.
 */
#include <err.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

#include "common/module.h"
#include "commands.h"
#include "config.h"
#include "key_file.h"
#include "local.h"
#include "rdma.h"

struct arguments {
	const char *file, *key;
	uint64_t node;
	bool insecure;
};

#define FIND_NODE	UINT64_MAX
/* Smallest MTU of Ethernet, in bytes, with which packets of RoCE carry 4096 bytes */
#define GOOD_MTU	4192

#define AT(member)	.offset = offsetof(struct arguments, member)

static const struct cli_option options[] = {
	{ "file", 'f', "FILE", "Description of the cluster, see kdsm.conf(5) (" CONFIG_FILE ")",
	  CLI_TEXT, AT(file) },
	{ "node", 'n', "NODE", "Number of this node (the node that has an address of this machine)",
	  CLI_NUMBER, AT(node), .range = { 0, KDSM_MAX_NODES - 1, 1 } },
	{ "key", 'k', "KEYFILE", "Key of the cluster (FILE.key)", CLI_TEXT, AT(key) },
	{ "insecure", 0, NULL, "The cluster has no key", CLI_FLAG, AT(insecure) },
	{ 0 }
};

static const struct cli check_cli = {
	.doc = "Check a configuration, and this machine against it, without changing anything. Prints "
	       "one line for each thing; exits with 1 if one of them is an error.",
	.options = { options },
};

enum verdict { GOOD, WARNING, ERROR };

static bool failed;

static void __attribute__((format(printf, 3, 4)))
found(enum verdict verdict, const char *thing, const char *format, ...)
{
	static const char *const names[] = { "ok", "warning", "error" };
	va_list args;

	printf("%-8s %-14s ", names[verdict], thing);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	failed |= verdict == ERROR;
}

static bool check_file(const struct arguments *arguments, struct config *config)
{
	char error[512], uuid[UUID_STR_LEN];

	if (config_load(config, arguments->file, error, sizeof(error))) {
		found(ERROR, "configuration", "%s", error);
		return false;
	}
	found(GOOD, "configuration", "%s: cluster %s, %u node%s", arguments->file, config->cluster,
	      config->node_count, config->node_count > 1 ? "s" : "");
	uuid_unparse_lower(config->uuid, uuid);
	if (config->derived)
		found(WARNING, "uuid", "%s follows from the nodes; to add nodes later without an interruption, add the line: uuid %s",
		      uuid, uuid);
	else
		found(GOOD, "uuid", "%s", uuid);
	return true;
}

static void check_mtu(const char *interface)
{
	char mtu[16], type[16];

	if (sysfs_read(mtu, sizeof(mtu), "/sys/class/net/%s/mtu", interface) ||
	    sysfs_read(type, sizeof(type), "/sys/class/net/%s/type", interface))
		return;
	/* ARPHRD_ETHER; the subnet manager sets the MTU of InfiniBand. */
	if (!strcmp(type, "1") && atoi(mtu) < GOOD_MTU)
		found(WARNING, "mtu", "%s: %s bytes; with %u or more on all interfaces and switches, packets carry 4096 bytes",
		      interface, mtu, GOOD_MTU);
	else
		found(GOOD, "mtu", "%s: %s bytes", interface, mtu);
}

/* The node's address, its interface and its RDMA device. Returns the number of the node, or -1. */
static int check_node(const struct arguments *arguments, const struct config *config)
{
	char error[512], address[INET6_ADDRSTRLEN], interface[IF_NAMESIZE];
	struct rdma_port port;
	int node = arguments->node;

	if (arguments->node == FIND_NODE)
		node = local_node(config, arguments->file, error, sizeof(error));
	else if (arguments->node >= config->node_count)
		snprintf(error, sizeof(error), "-n %ju: %s has nodes 0 to %u",
			 (uintmax_t)arguments->node, arguments->file, config->node_count - 1);
	if (node < 0 || (unsigned int)node >= config->node_count) {
		found(ERROR, "node", "%s", error);
		return -1;
	}
	config_address(&config->nodes[node], address);
	if (local_interface(&config->nodes[node], interface)) {
		found(ERROR, "node", "%d: no interface of this machine has the address %s; see 'ip address'",
		      node, address);
		return node;
	}
	found(GOOD, "node", "%d: %s on %s", node, address, interface);
	if (rdma_find(interface, &port))
		found(ERROR, "device", "%s has no RDMA device; see 'rdma link show' (Soft-RoCE: rdma link add rxe0 type rxe netdev %s)",
		      interface, interface);
	else if (strcmp(port.state, "ACTIVE"))
		found(ERROR, "device", "%s port %u is %s; bring %s up and see its cable and, for InfiniBand, the subnet manager",
		      port.device, port.port, port.state, interface);
	else
		found(GOOD, "device", "%s port %u is %s", port.device, port.port, port.state);
	check_mtu(interface);
	return node;
}

static void check_key(const struct arguments *arguments)
{
	char path[PATH_MAX], error[PATH_MAX + 256];

	if (arguments->insecure) {
		found(WARNING, "key", "none: every host that can send from a node's address is trusted");
		return;
	}
	snprintf(path, sizeof(path), "%s%s", arguments->key ?: arguments->file,
		 arguments->key ? "" : ".key");
	if (key_file_check(path, error, sizeof(error)))
		found(ERROR, "key", "%s", error);
	else
		found(GOOD, "key", "%s", path);
}

/* Store the version of the module that modprobe would load. */
static bool installed_version(char *version, size_t size)
{
	FILE *output = popen("modinfo -F version kdsm 2>/dev/null", "re");
	bool there = output && fgets(version, size, output);

	if (output)
		pclose(output);
	version[there ? strcspn(version, "\n") : 0] = '\0';
	return there;
}

/* Returns whether the module is loaded. */
static bool check_module(void)
{
	char version[64];
	bool loaded = !sysfs_read(version, sizeof(version), "/sys/module/kdsm/version");

	if (!loaded && !installed_version(version, sizeof(version)))
		found(ERROR, "module", "kdsm is not installed for the running kernel; install it (make install, or the package kdsm-dkms) and run depmod -a");
	else if (strcmp(version, cli_version))
		found(WARNING, "module", "version %s, and kdsmctl has version %s; install the same, and %s",
		      version, cli_version, loaded ? "load the module again" : "run depmod -a");
	else
		found(GOOD, "module", "version %s, %s", version,
		      loaded ? "loaded" : "not loaded yet: modprobe kdsm");
	return loaded;
}

static void check_access(void)
{
	struct group *group;
	struct stat status;
	char number[16];

	if (stat("/dev/kdsm", &status)) {
		found(ERROR, "access", "/dev/kdsm does not exist; is udev running? See 'dmesg'");
		return;
	}
	group = getgrgid(status.st_gid);
	snprintf(number, sizeof(number), "%u", status.st_gid);
	if (!status.st_gid || (status.st_mode & 060) != 060)
		found(WARNING, "access", "/dev/kdsm: mode %04o, group %s: only root's programs can use it; install 60-kdsm.rules and load the module again",
		      status.st_mode & 07777, group ? group->gr_name : number);
	else
		found(GOOD, "access", "/dev/kdsm: mode %04o, group %s", status.st_mode & 07777,
		      group ? group->gr_name : number);
}

/* A wait reads the clock again and again while it polls. */
static void check_clock(void)
{
	char clock[32];

	if (sysfs_read(clock, sizeof(clock),
		       "/sys/devices/system/clocksource/clocksource0/current_clocksource"))
		return;
	if (!strcmp(clock, "hpet") || !strcmp(clock, "acpi_pm"))
		found(WARNING, "clock", "%s is slow to read, which delays every wait; see 'dmesg' for why tsc is not used",
		      clock);
	else
		found(GOOD, "clock", "%s", clock);
}

/* Differences between a cluster that is up and the file, which the next start uses */
struct running {
	const struct config *config;
	int node;
};

static void compare(attrs at, void *data)
{
	const struct running *running = data;
	const struct config *config = running->config;
	char uuid[UUID_STR_LEN] = "?";

	if (at[KDSM_A_UUID] && mnl_attr_get_payload_len(at[KDSM_A_UUID]) == KDSM_UUID_SIZE)
		uuid_unparse_lower(mnl_attr_get_payload(at[KDSM_A_UUID]), uuid);
	if (!strcmp(uuid, "?") || memcmp(mnl_attr_get_payload(at[KDSM_A_UUID]), config->uuid,
					 sizeof(config->uuid)))
		found(ERROR, "cluster", "up with UUID %s, and the file has another; add the line: uuid %s",
		      uuid, uuid);
	else if (attr_u32(at, KDSM_A_NODE_COUNT) != config->node_count)
		found(ERROR, "cluster", "up with %u nodes, and the file has %u; change the file, or see kdsmctl node",
		      attr_u32(at, KDSM_A_NODE_COUNT), config->node_count);
	else if (running->node >= 0 && attr_u32(at, KDSM_A_NODE) != (uint32_t)running->node)
		found(ERROR, "cluster", "up as node %u, and by the file this is node %d; correct the file",
		      attr_u32(at, KDSM_A_NODE), running->node);
	else
		found(GOOD, "cluster", "up as node %u of %u", attr_u32(at, KDSM_A_NODE),
		      attr_u32(at, KDSM_A_NODE_COUNT));
}

static void check_cluster(const struct config *config, int node)
{
	struct running running = { config, node };
	struct module *module = module_open();

	if (!module)
		return;
	module_begin(module, KDSM_CMD_STATUS);
	if (module_send(module, compare, &running))
		found(GOOD, "cluster", "not up yet: kdsmctl up");
	module_close(module);
}

int command_check(int argc, char **argv)
{
	struct arguments arguments = { .file = CONFIG_FILE, .node = FIND_NODE };
	static struct config config;
	bool readable, loaded;
	int node = -1;

	cli_parse(&check_cli, argc, argv, &arguments);
	readable = check_file(&arguments, &config);
	if (readable)
		node = check_node(&arguments, &config);
	check_key(&arguments);
	check_clock();
	loaded = check_module();
	if (loaded)
		check_access();
	if (loaded && readable)
		check_cluster(&config, node);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
