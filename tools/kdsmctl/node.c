// SPDX-License-Identifier: GPL-2.0
/* kdsmctl node: add a node to a cluster that is up, and remove the last one. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "common/module.h"
#include "commands.h"
#include "config.h"

struct arguments {
	uint64_t number;
	const char *address, *location;
};

static int take_argument(void *values, unsigned int index, const char *text, char *reason)
{
	const struct range numbers = { 1, KDSM_MAX_NODES - 1, 1 };
	struct arguments *arguments = values;

	switch (index) {
	case 0:
		return number_parse(text, &numbers, &arguments->number, reason);
	case 1:
		arguments->address = text;
		return 0;
	default:
		arguments->location = text;
		return 0;
	}
}

/* Print the lines that the files of all nodes need from now on. */
static void print_lines(attrs at, void *data)
{
	const struct arguments *arguments = data;
	char uuid[UUID_STR_LEN] = "?";

	if (at[KDSM_A_UUID] && mnl_attr_get_payload_len(at[KDSM_A_UUID]) == KDSM_UUID_SIZE)
		uuid_unparse_lower(mnl_attr_get_payload(at[KDSM_A_UUID]), uuid);
	printf("/etc/kdsm.conf of all nodes, and of the new one, needs these lines:\n"
	       "uuid %s\nnode %ju %s%s%s\n", uuid, (uintmax_t)arguments->number, arguments->address,
	       arguments->location ? " " : "", arguments->location ?: "");
}

int node_add(int argc, char **argv)
{
	static const struct cli cli = {
		.doc = "Add a node to all nodes of a cluster that is up. NUMBER is the next one. The "
		       "node takes part in regions that programs create from then on.",
		.args = "NUMBER ADDRESS [LOCATION]",
		.least = 2,
		.most = 3,
		.argument = take_argument,
	};
	struct arguments arguments = { 0 };
	struct nlmsghdr *header;
	struct config_node node;
	struct module *module;
	char text[512];
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	if (config_node(&node, arguments.address, arguments.location, text, sizeof(text)))
		errx(EXIT_FAILURE, "%s", text);
	module = module_need();
	header = module_begin(module, KDSM_CMD_NODE_ADD);
	mnl_attr_put_u32(header, KDSM_A_NODE_ID, arguments.number);
	mnl_attr_put(header, KDSM_A_NODE_ADDRESS, node.family == AF_INET ?
		     sizeof(node.address.v4) : sizeof(node.address.v6), &node.address);
	mnl_attr_put_strz(header, KDSM_A_NODE_LOCATION, node.location);
	error = module_send(module, NULL, NULL);
	if (!error) {
		module_begin(module, KDSM_CMD_STATUS);
		error = module_send(module, print_lines, &arguments);
	}
	return module_end(module, "add the node", error);
}

/* The first region in which a node takes part */
struct user {
	uint32_t number;
	char region[KDSM_NAME_SIZE];
};

static void find_user(attrs at, void *data)
{
	struct user *user = data;

	if (attr_u32(at, KDSM_A_REGION_NODES) > user->number && !user->region[0])
		snprintf(user->region, sizeof(user->region), "%s",
			 attr_string(at, KDSM_A_REGION_NAME));
}

int node_remove(int argc, char **argv)
{
	static const struct cli cli = {
		.doc = "Remove the last node from all others, unless it takes part in a region. Run "
		       "'kdsmctl down' on that node afterwards.",
		.args = "NUMBER",
		.least = 1,
		.most = 1,
		.argument = take_argument,
	};
	struct arguments arguments = { 0 };
	struct user user = { 0 };
	struct nlmsghdr *header;
	struct module *module;
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	module = module_need();
	header = module_begin(module, KDSM_CMD_NODE_REMOVE);
	mnl_attr_put_u32(header, KDSM_A_NODE_ID, arguments.number);
	error = module_send(module, NULL, NULL);
	user.number = arguments.number;
	if (error == -EBUSY)
		module_dump(module, KDSM_CMD_REGIONS, find_user, &user);
	if (!user.region[0])
		return module_end(module, "remove the node", error);
	warnx("cannot remove node %u: region %s has a part there; end its programs, or see 'kdsmctl region destroy %s'",
	      user.number, user.region, user.region);
	module_close(module);
	return EXIT_FAILURE;
}
