// SPDX-License-Identifier: GPL-2.0
/* kdsmctl up and down: bring this node up, and take it down. */
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "common/cluster.h"
#include "common/module.h"
#include "commands.h"
#include "config.h"
#include "key_file.h"
#include "local.h"

struct arguments {
	const char *file;
	uint64_t node;		/* FIND_NODE: find it by the addresses of this machine */
	uint64_t wait;		/* for all other nodes, in ns; 0: do not wait */
	unsigned int domain;	/* NO_DOMAIN: as FILE says */
	const char *key;	/* NULL: FILE.key */
	bool insecure;
};

#define FIND_NODE	UINT64_MAX
#define NO_DOMAIN	UINT_MAX

#define AT(member)	.offset = offsetof(struct arguments, member)

static const struct cli_option options[] = {
	{ "file", 'f', "FILE", "Description of the cluster, see kdsm.conf(5) (" CONFIG_FILE ")",
	  CLI_TEXT, AT(file) },
	{ "node", 'n', "NODE", "Number of this node (the node that has an address of this machine)",
	  CLI_NUMBER, AT(node), .range = { 0, KDSM_MAX_NODES - 1, 1 } },
	{ "wait", 'w', "SECONDS", "Wait until all nodes answer, for this time at most", CLI_TIME,
	  AT(wait), .range = { 1, MOST_SECONDS, SECOND } },
	{ "atomics", 0, "DOMAIN", "auto, sw, hca or glob, instead of the domain in FILE",
	  CLI_CHOICE, AT(domain), .words = domain_names },
	{ "key", 'k', "KEYFILE", "Key of the cluster, of 'kdsmctl key make' (FILE.key)", CLI_TEXT,
	  AT(key) },
	{ "insecure", 0, NULL, "Use no key: trust every host that can send from a node's address",
	  CLI_FLAG, AT(insecure) },
	{ 0 }
};

static int check(void *values, char *reason)
{
	const struct arguments *arguments = values;

	if (!arguments->key || !arguments->insecure)
		return 0;
	snprintf(reason, REASON_SIZE, "--key and --insecure exclude each other");
	return -1;
}

static const struct cli up_cli = {
	.doc = "Bring this node up as a member of the cluster that FILE describes.",
	.options = { options },
	.check = check,
};

static const struct cli_option down_options[] = {
	{ "wait", 'w', "SECONDS", "Wait for programs that have regions open, for this time at most",
	  CLI_TIME, .range = { 1, MOST_SECONDS, SECOND } },
	{ 0 }
};

static const struct cli down_cli = {
	.options = { down_options },
	.doc = "Leave the cluster: close all connections and free all memory. Fails while a "
	       "program of this node has a region open.",
};

static bool put_node(struct nlmsghdr *header, unsigned int id,
		     const struct config_node *node)
{
	size_t size = node->family == AF_INET ? sizeof(node->address.v4) :
						sizeof(node->address.v6);
	struct nlattr *nest;

	nest = mnl_attr_nest_start_check(header, MODULE_MAX_REQUEST,
					 KDSM_A_NODE_ENTRY);
	if (!nest ||
	    !mnl_attr_put_u32_check(header, MODULE_MAX_REQUEST, KDSM_A_NODE_ID, id) ||
	    !mnl_attr_put_check(header, MODULE_MAX_REQUEST, KDSM_A_NODE_ADDRESS,
				size, &node->address) ||
	    !mnl_attr_put_strz_check(header, MODULE_MAX_REQUEST,
				     KDSM_A_NODE_LOCATION, node->location))
		return false;
	mnl_attr_nest_end(header, nest);
	return true;
}

/* Send the whole node table in one message. -EMSGSIZE: an attribute exceeds 64 KiB. */
static int send_up(struct module *module, const struct config *config,
		   unsigned int self, bool insecure)
{
	struct nlmsghdr *header = module_begin(module, KDSM_CMD_UP);
	struct nlattr *nodes;

	mnl_attr_put_strz(header, KDSM_A_CLUSTER, config->cluster);
	mnl_attr_put(header, KDSM_A_UUID, sizeof(config->uuid), config->uuid);
	mnl_attr_put_u32(header, KDSM_A_NODE, self);
	mnl_attr_put_u16(header, KDSM_A_PORT, config->port);
	mnl_attr_put_u32(header, KDSM_A_DOMAIN, config->domain);
	if (insecure)
		mnl_attr_put(header, KDSM_A_INSECURE, 0, NULL);
	nodes = mnl_attr_nest_start(header, KDSM_A_NODES);
	for (unsigned int i = 0; i < config->node_count; i++)
		if (!put_node(header, i, &config->nodes[i]))
			return -EMSGSIZE;
	if ((char *)mnl_nlmsg_get_payload_tail(header) - (char *)nodes > UINT16_MAX)
		return -EMSGSIZE;
	mnl_attr_nest_end(header, nodes);
	return module_send(module, NULL, NULL);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int probe(struct module *module, unsigned int node)
{
	struct nlmsghdr *header = module_begin(module, KDSM_CMD_PROBE);

	mnl_attr_put_u32(header, KDSM_A_NODE_ID, node);
	return module_send(module, NULL, NULL);
}

/* errors: of the last probe of each node, 0 if it has answered */
static void name_silent_nodes(const struct config *config, const int *errors, double seconds)
{
	char address[INET6_ADDRSTRLEN];
	unsigned int named = 0;

	fprintf(stderr, "%s: after %g s these nodes do not answer:",
		program_invocation_short_name, seconds);
	for (unsigned int i = 0; i < config->node_count; i++) {
		if (!errors[i])
			continue;
		if (named++ == 8) {
			fprintf(stderr, " and more");
			break;
		}
		fprintf(stderr, "%s %u (%s%s)", named > 1 ? "," : "", i,
			config_address(&config->nodes[i], address),
			errors[i] == -EBADE ? ", which has another table of nodes" : "");
	}
	fprintf(stderr, "; this node stays up, and 'kdsmctl status' shows the others\n");
}

/*
 * Probe the nodes that have not answered yet, in rounds, until all have answered or the time is
 * over. Returns an exit status, after a message on stderr if it is not EXIT_SUCCESS: EX_TEMPFAIL if
 * some nodes have not answered.
 */
static int wait_for_all(struct module *module, const struct config *config,
			unsigned int self, double seconds)
{
	int errors[KDSM_MAX_NODES];
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	double end = now() + seconds;
	unsigned int silent = config->node_count - 1;

	for (unsigned int i = 0; i < config->node_count; i++)
		errors[i] = i == self ? 0 : -EHOSTDOWN;
	while (silent) {
		for (unsigned int i = 0; i < config->node_count; i++) {
			if (!errors[i])
				continue;
			errors[i] = probe(module, i);
			if (!errors[i]) {
				silent--;
			} else if (errors[i] == -EPERM || errors[i] == -EINVAL ||
				   errors[i] == -ENETDOWN) {
				module_complain(module, "probe the other nodes", errors[i]);
				return EXIT_FAILURE;
			}
			if (now() >= end)
				break;
		}
		if (silent && now() >= end) {
			name_silent_nodes(config, errors, seconds);
			return EX_TEMPFAIL;
		}
		if (silent)
			nanosleep(&pause, NULL);
	}
	return EXIT_SUCCESS;
}

/* Return the number of this node, or -1 with a sentence in error. */
static int find_self(const struct config *config, const struct arguments *arguments,
		     char *error, size_t error_size)
{
	if (arguments->node == FIND_NODE)
		return local_node(config, arguments->file, error, error_size);
	if (arguments->node < config->node_count)
		return arguments->node;
	snprintf(error, error_size, "%s has %u node%s, so -n is %u at most", arguments->file,
		 config->node_count, config->node_count > 1 ? "s" : "", config->node_count - 1);
	return -1;
}

/* Put the key into the keyring of this process. Ends the program with a message on failure. */
static void load_key(const struct config *config, const struct arguments *arguments)
{
	char path[PATH_MAX], error[PATH_MAX + 256];

	if (arguments->insecure)
		return;
	snprintf(path, sizeof(path), "%s%s", arguments->key ?: arguments->file,
		 arguments->key ? "" : ".key");
	if (key_file_load(path, config->uuid, error, sizeof(error)))
		errx(EXIT_FAILURE, "%s", error);
}

int command_up(int argc, char **argv)
{
	struct arguments arguments = {
		.file = CONFIG_FILE, .node = FIND_NODE, .domain = NO_DOMAIN,
	};
	static struct config config;
	struct module *module;
	char error[512];
	int result, self, status = EXIT_SUCCESS;

	cli_parse(&up_cli, argc, argv, &arguments);
	if (config_load(&config, arguments.file, error, sizeof(error)))
		errx(EXIT_FAILURE, "%s", error);
	if (arguments.domain != NO_DOMAIN)
		config.domain = arguments.domain;
	self = find_self(&config, &arguments, error, sizeof(error));
	if (self < 0)
		errx(EXIT_FAILURE, "%s", error);

	load_key(&config, &arguments);

	module = module_need();
	result = send_up(module, &config, self, arguments.insecure);
	if (result == -EMSGSIZE)
		warnx("%s: the node table does not fit into one message of 64 KiB; shorten the locations",
		      arguments.file);
	else if (result)
		module_complain(module, "bring the cluster up", result);
	else if (arguments.wait)
		status = wait_for_all(module, &config, self, arguments.wait / 1e9);
	module_close(module);
	return result ? EXIT_FAILURE : status;
}

int command_down(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	struct module *module;
	uint64_t wait = 0;
	double end;
	int error;

	cli_parse(&down_cli, argc, argv, &wait);
	end = now() + wait / 1e9;
	module = module_need();
	for (;;) {
		module_begin(module, KDSM_CMD_DOWN);
		error = module_send(module, NULL, NULL);
		if (error != -EBUSY || now() >= end)
			break;
		nanosleep(&pause, NULL);
	}
	return module_end(module, "take the cluster down", error);
}
