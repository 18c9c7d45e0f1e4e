// SPDX-License-Identifier: GPL-2.0
/* kdsmctl(8), administration of a cluster: the table of commands, and what they share. */
#include <stdio.h>

#include "commands.h"

static const struct cli_command region_commands[] = {
	{ "list", "List the regions that this node knows", region_list, NULL },
	{ "show", "Show a region, and the counters of a coherent one", region_show, NULL },
	{ "set", "Change settings of a coherent region", region_set, NULL },
	{ "destroy", "Remove the name of a region; its memory goes with its last user",
	  region_destroy, NULL },
	{ 0 }
};

static const struct cli_command lock_commands[] = {
	{ "list", "List the locks that are open on this node", lock_list, NULL },
	{ "show", "Show a lock: its settings, counters and waits", lock_show, NULL },
	{ "watch", "Show a lock again and again", lock_watch, NULL },
	{ "set", "Change settings of a lock, which may be in use", lock_set, NULL },
	{ 0 }
};

static const struct cli_command key_commands[] = {
	{ "make", "Make the key of a cluster", key_make, NULL },
	{ "load", "Let this node use another key, and accept the one before", key_load, NULL },
	{ "retire", "Let this node accept the newest key only", key_retire, NULL },
	{ 0 }
};

static const struct cli_command node_commands[] = {
	{ "add", "Add a node to a cluster that is up", node_add, NULL },
	{ "remove", "Remove the last node from a cluster that is up", node_remove, NULL },
	{ 0 }
};

static const struct cli_command commands[] = {
	{ "up", "Bring this node of a cluster up", command_up, NULL },
	{ "down", "Take this node down", command_down, NULL },
	{ "check", "Check a configuration, and this machine against it", command_check, NULL },
	{ "status", "Show this node, and its view of the others, or all nodes", command_status,
	  NULL },
	{ "stats", "Show counters of remote operations", command_stats, NULL },
	{ "top", "Show what all nodes do now, again and again", command_top, NULL },
	{ "monitor", "Show events of the cluster as they happen", command_monitor, NULL },
	{ "metrics", "Print metrics of this node for Prometheus", command_metrics, NULL },
	{ "key", "Make and change the key of a cluster", NULL, key_commands },
	{ "node", "Add and remove nodes", NULL, node_commands },
	{ "region", "Show, change and destroy regions", NULL, region_commands },
	{ "lock", "Show and change locks", NULL, lock_commands },
	{ 0 }
};

int take_name(const char **name, const char *text, char *reason)
{
	*name = text;
	if (*text)
		return 0;
	snprintf(reason, REASON_SIZE, "NAME must not be empty");
	return -1;
}

struct arguments {
	const char *name;
	bool json;
};

static const struct cli_option json_option[] = {
	{ "json", 0, NULL, "Print JSON", CLI_FLAG, .offset = offsetof(struct arguments, json) },
	{ 0 }
};

bool parse_json(const char *doc, int argc, char **argv)
{
	const struct cli cli = { .doc = doc, .options = { json_option } };
	struct arguments arguments = { .json = false };

	cli_parse(&cli, argc, argv, &arguments);
	return arguments.json;
}

static int take_argument(void *values, unsigned int index, const char *text, char *reason)
{
	struct arguments *arguments = values;

	(void)index;
	return take_name(&arguments->name, text, reason);
}

const char *parse_name_and_json(const char *doc, int argc, char **argv, bool *json)
{
	const struct cli cli = {
		.doc = doc,
		.args = "NAME",
		.least = 1,
		.most = 1,
		.options = { json_option },
		.argument = take_argument,
	};
	struct arguments arguments = { .json = false };

	cli_parse(&cli, argc, argv, &arguments);
	*json = arguments.json;
	return arguments.name;
}

int main(int argc, char **argv)
{
	return cli_run(commands,
		       "Administration of a cluster of shared memory, on one of its nodes.\v"
		       "'kdsmctl COMMAND --help' lists the options of a command. Exit status: 0 "
		       "success, 1 failure, 64 wrong usage, 75 (up -w) some nodes are silent. "
		       "See kdsmctl(8).", argc, argv);
}
