// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl up and down.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/module.h"
#include "commands.h"
#include "config.h"
#include "local.h"

struct up {
	const char *file;
	const char *atomics;
	long node;		/* -1: find it */
	double wait;		/* 0: do not */
};

static int parse_options(int argc, char **argv, struct up *up)
{
	static const struct option options[] = {
		{ "file", required_argument, NULL, 'f' },
		{ "node", required_argument, NULL, 'n' },
		{ "wait", required_argument, NULL, 'w' },
		{ "atomics", required_argument, NULL, 'a' },
		{ 0 },
	};
	char *end;
	int c;

	*up = (struct up){ .node = -1 };
	while ((c = getopt_long(argc, argv, ":f:n:w:", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			up->file = optarg;
			break;
		case 'n':
			errno = 0;
			up->node = strtol(optarg, &end, 10);
			if (errno || end == optarg || *end || up->node < 0 ||
			    up->node >= KDSM_MAX_NODES)
				return usage_error("-n %s: not a node number, 0 to %u",
						   optarg, KDSM_MAX_NODES - 1);
			break;
		case 'w':
			if (parse_seconds(optarg, &up->wait))
				return usage_error("-w %s: not a time in seconds",
						   optarg);
			break;
		case 'a':
			up->atomics = optarg;
			break;
		case ':':
			return usage_error("%s needs a value", argv[optind - 1]);
		default:
			return usage_error("up does not take %s", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return usage_error("up does not take '%s'", argv[optind]);
	if (!up->file)
		return usage_error("up needs -f FILE");
	return 0;
}

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

/* The whole table in one message; an attribute ends at 64 KiB. */
static int send_up(struct module *module, const struct config *config,
		   unsigned int self)
{
	struct nlmsghdr *header = module_begin(module, KDSM_CMD_UP);
	struct nlattr *nodes;

	mnl_attr_put_strz(header, KDSM_A_CLUSTER, config->cluster);
	mnl_attr_put(header, KDSM_A_UUID, sizeof(config->uuid), config->uuid);
	mnl_attr_put_u32(header, KDSM_A_NODE, self);
	mnl_attr_put_u16(header, KDSM_A_PORT, config->port);
	mnl_attr_put_u32(header, KDSM_A_DOMAIN, config->domain);
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

static void name_the_silent(const struct config *config, const bool *answered,
			    double seconds)
{
	char address[INET6_ADDRSTRLEN];
	unsigned int named = 0;

	fprintf(stderr, "kdsmctl: after %g s these nodes do not answer:", seconds);
	for (unsigned int i = 0; i < config->node_count; i++) {
		if (answered[i])
			continue;
		if (named++ == 8) {
			fprintf(stderr, " and more");
			break;
		}
		fprintf(stderr, "%s %u (%s)", named > 1 ? "," : "", i,
			config_address(&config->nodes[i], address));
	}
	fprintf(stderr, "; this node stays up, kdsmctl status shows them\n");
}

/* Round after round over those that have not answered yet, come what may. */
static int wait_for_all(struct module *module, const struct config *config,
			unsigned int self, double seconds)
{
	bool answered[KDSM_MAX_NODES] = { false };
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	double end = now() + seconds;
	unsigned int silent = config->node_count - 1;

	answered[self] = true;
	while (silent) {
		for (unsigned int i = 0; i < config->node_count; i++) {
			int error;

			if (answered[i])
				continue;
			error = probe(module, i);
			if (!error) {
				answered[i] = true;
				silent--;
			} else if (error == -EPERM || error == -EINVAL ||
				   error == -ENETDOWN) {
				module_complain(module, "probe the other nodes", error);
				return -1;
			}
			if (now() >= end)
				break;
		}
		if (silent && now() >= end) {
			name_the_silent(config, answered, seconds);
			return -1;
		}
		if (silent)
			nanosleep(&pause, NULL);
	}
	return 0;
}

int command_up(int argc, char **argv)
{
	static struct config config;
	struct module *module;
	char error[512];
	int result, self;
	struct up up;

	result = parse_options(argc, argv, &up);
	if (result)
		return result;
	if (config_load(&config, up.file, error, sizeof(error)))
		goto say;
	if (up.atomics && config_domain(up.atomics, &config.domain))
		return usage_error("--atomics is auto, sw, hca or glob, not '%s'",
				   up.atomics);
	self = up.node;
	if (self < 0)
		self = local_node(&config, up.file, error, sizeof(error));
	if (self < 0)
		goto say;
	if ((unsigned int)self >= config.node_count) {
		snprintf(error, sizeof(error),
			 "%s has %u node%s, so -n is %u at most", up.file,
			 config.node_count, config.node_count > 1 ? "s" : "",
			 config.node_count - 1);
		goto say;
	}

	module = module_open();
	if (!module)
		return EXIT_FAILURE;
	result = send_up(module, &config, self);
	if (result == -EMSGSIZE)
		fprintf(stderr, "kdsmctl: %s: the node table does not fit into one message of 64 KiB; shorten the locations\n",
			up.file);
	else if (result)
		module_complain(module, "bring the cluster up", result);
	else if (up.wait > 0)
		result = wait_for_all(module, &config, self, up.wait);
	module_close(module);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
say:
	fprintf(stderr, "kdsmctl: %s\n", error);
	return EXIT_FAILURE;
}

int command_down(int argc, char **argv)
{
	struct module *module;
	int error;

	if (argc > 1)
		return usage_error("%s does not take '%s'", argv[0], argv[1]);
	module = module_open();
	if (!module)
		return EXIT_FAILURE;
	module_begin(module, KDSM_CMD_DOWN);
	error = module_send(module, NULL, NULL);
	if (error)
		module_complain(module, "take the cluster down", error);
	module_close(module);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
