// SPDX-License-Identifier: GPL-2.0
/* kdsmctl status: this node, and its view of the others. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <json-c/json.h>
#include <uuid/uuid.h>

#include "common/cluster.h"
#include "common/json.h"
#include "common/module.h"
#include "common/table.h"
#include "commands.h"
#include "names.h"
#include "nodes.h"
#include "print.h"

struct peers {
	struct table *table;
	struct json_object *json;
};

static const char *state_name(uint32_t state)
{
	static const char *const names[] = {
		[KDSM_PEER_IDLE] = "idle",
		[KDSM_PEER_CONNECTING] = "connecting",
		[KDSM_PEER_UP] = "up",
		[KDSM_PEER_DOWN] = "down",
		[KDSM_PEER_SELF] = "self",
	};

	return name_of(names, MNL_ARRAY_SIZE(names), state);
}

static const char *domain_name(uint32_t domain)
{
	return name_of(domain_names, KDSM_DOMAIN_GLOB + 1, domain);
}

static const char *uuid_text(attrs at, char buffer[UUID_STR_LEN])
{
	if (!at[KDSM_A_UUID] ||
	    mnl_attr_get_payload_len(at[KDSM_A_UUID]) != KDSM_UUID_SIZE)
		return "?";
	uuid_unparse_lower(mnl_attr_get_payload(at[KDSM_A_UUID]), buffer);
	return buffer;
}

/* The keys as text: what 'kdsmctl status' of all nodes should show alike */
static void keys_text(attrs at)
{
	if (!at[KDSM_A_KEY])
		printf("key      none: every host that can send from a node's address is trusted\n");
	else if (!at[KDSM_A_KEY_FORMER])
		printf("key      %08x\n", attr_u32(at, KDSM_A_KEY));
	else
		printf("key      %08x, and still %08x\n", attr_u32(at, KDSM_A_KEY),
		       attr_u32(at, KDSM_A_KEY_FORMER));
}

static void keys_json(attrs at, struct json_object *out)
{
	struct json_object *keys = json_object_new_array();
	const int attr[] = { KDSM_A_KEY, KDSM_A_KEY_FORMER };
	char text[9];

	for (unsigned int i = 0; i < MNL_ARRAY_SIZE(attr); i++) {
		snprintf(text, sizeof(text), "%08x", attr_u32(at, attr[i]));
		if (at[attr[i]])
			json_object_array_add(keys, json_object_new_string(text));
	}
	json_object_object_add(out, "keys", keys);
}

static void status_text(attrs at, void *data)
{
	char uuid[UUID_STR_LEN], size[HUMAN_SIZE];

	(void)data;
	printf("cluster  %s (%s)\n", attr_string(at, KDSM_A_CLUSTER),
	       uuid_text(at, uuid));
	printf("node     %u of %u\n", attr_u32(at, KDSM_A_NODE),
	       attr_u32(at, KDSM_A_NODE_COUNT));
	printf("device   %s, port %u, atomics %s\n",
	       attr_string(at, KDSM_A_DEVICE),
	       at[KDSM_A_PORT] ? mnl_attr_get_u16(at[KDSM_A_PORT]) : 0,
	       domain_name(attr_u32(at, KDSM_A_DOMAIN)));
	printf("memory   %s in regions\n",
	       human_bytes(attr_u64(at, KDSM_A_MEMORY), size));
	keys_text(at);
	printf("refused ");
	for (const struct refusal *r = refusals; r->name; r++)
		printf(" %s %ju", r->name, (uintmax_t)attr_u64(at, r->attr));
	printf("\n\n");
}

static void status_json(attrs at, void *data)
{
	struct json_object *out = data, *refused = json_object_new_object();
	char uuid[UUID_STR_LEN];

	json_text(out, "cluster", attr_string(at, KDSM_A_CLUSTER));
	json_text(out, "uuid", uuid_text(at, uuid));
	json_number(out, "node", attr_u32(at, KDSM_A_NODE));
	json_number(out, "nodes", attr_u32(at, KDSM_A_NODE_COUNT));
	json_text(out, "device", attr_string(at, KDSM_A_DEVICE));
	json_number(out, "port", at[KDSM_A_PORT] ?
				 mnl_attr_get_u16(at[KDSM_A_PORT]) : 0);
	json_text(out, "atomics", domain_name(attr_u32(at, KDSM_A_DOMAIN)));
	json_number(out, "memory", attr_u64(at, KDSM_A_MEMORY));
	keys_json(at, out);
	for (const struct refusal *r = refusals; r->name; r++)
		json_number(refused, r->name, attr_u64(at, r->attr));
	json_object_object_add(out, "refused", refused);
}

static void peer_text(attrs at, void *data)
{
	char address[INET6_ADDRSTRLEN];
	struct peers *peers = data;
	struct table *table = peers->table;

	table_cell(table, "%u", attr_u32(at, KDSM_A_NODE_ID));
	table_cell(table, "%s", attr_address(at, KDSM_A_NODE_ADDRESS, address));
	table_cell(table, "%s", attr_string(at, KDSM_A_NODE_LOCATION));
	table_cell(table, "%s", state_name(attr_u32(at, KDSM_A_PEER_STATE)));
	table_cell(table, "%ju", (uintmax_t)attr_u64(at, KDSM_A_PEER_CONNECTS));
	table_cell(table, "%ju", (uintmax_t)attr_u64(at, KDSM_A_PEER_ERRORS));
}

static void peer_json(attrs at, void *data)
{
	struct json_object *peer = json_object_new_object();
	char address[INET6_ADDRSTRLEN];
	struct peers *peers = data;

	json_number(peer, "node", attr_u32(at, KDSM_A_NODE_ID));
	json_text(peer, "address", attr_address(at, KDSM_A_NODE_ADDRESS, address));
	json_text(peer, "location", attr_string(at, KDSM_A_NODE_LOCATION));
	json_text(peer, "state", state_name(attr_u32(at, KDSM_A_PEER_STATE)));
	json_number(peer, "connects", attr_u64(at, KDSM_A_PEER_CONNECTS));
	json_number(peer, "errors", attr_u64(at, KDSM_A_PEER_ERRORS));
	json_object_array_add(peers->json, peer);
}

static const struct column columns[] = {
	{ "NODE", TABLE_RIGHT, 0 },
	{ "ADDRESS", TABLE_LEFT, 0 },
	{ "LOCATION", TABLE_LEFT, 0 },
	{ "STATE", TABLE_LEFT, 0 },
	{ "CONNECTS", TABLE_RIGHT, 0 },
	{ "ERRORS", TABLE_RIGHT, 0 },
	{ 0 }
};

static int print_text(struct module *module)
{
	struct peers peers = { .table = table_new(columns) };
	int error;

	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, status_text, NULL);
	if (!error)
		error = module_dump(module, KDSM_CMD_PEERS, peer_text, &peers);
	if (!error)
		table_print(peers.table);
	table_free(peers.table);
	return error;
}

static int print_json(struct module *module)
{
	struct json_object *out = json_object_new_object();
	struct peers peers = { .json = json_object_new_array() };
	int error;

	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, status_json, out);
	if (!error)
		error = module_dump(module, KDSM_CMD_PEERS, peer_json, &peers);
	json_object_object_add(out, "peers", peers.json);
	if (!error)
		json_print(out);
	json_object_put(out);
	return error;
}

struct arguments {
	bool json, all;
	uint64_t timeout;	/* in ns */
};

static const struct cli_option options[] = {
	{ "json", 0, NULL, "Print JSON", CLI_FLAG, .offset = offsetof(struct arguments, json) },
	{ "all", 'a', NULL, "Ask all nodes, and show what they answer", CLI_FLAG,
	  .offset = offsetof(struct arguments, all) },
	NODES_TIMEOUT_OPTION(struct arguments, timeout),
	{ 0 }
};

static const struct cli cli = {
	.doc = "Show this node, and its view of the other nodes.",
	.options = { options },
};

int command_status(int argc, char **argv)
{
	struct arguments arguments = { .timeout = KDSM_TIMEOUT_DEFAULT * (SECOND / 1000) };
	struct module *module;
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	module = module_need();
	if (arguments.all)
		error = nodes_status(module, arguments.timeout / (SECOND / 1000), arguments.json);
	else
		error = arguments.json ? print_json(module) : print_text(module);
	return module_end(module, "show the status", error);
}
