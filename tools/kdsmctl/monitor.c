// SPDX-License-Identifier: GPL-2.0
/* kdsmctl monitor: what happens in the cluster, as this node sees it, a line for each event. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json.h"
#include "common/module.h"
#include "common/number.h"
#include "commands.h"
#include "print.h"

/* Meaning of EVENT_VALUE of an event */
enum value { NONE, COUNT, OFFSET, ERRNO, LOCK };

static const struct event {
	const char *name, *words;
	enum value value;
} events[__KDSM_EVENT_LAST] = {
	[KDSM_EVENT_MISSED] = { "missed", "events were missed", COUNT },
	[KDSM_EVENT_CLUSTER_UP] = { "cluster-up", "the cluster is up here", NONE },
	[KDSM_EVENT_CLUSTER_DOWN] = { "cluster-down", "the cluster is down here", NONE },
	[KDSM_EVENT_NODE_UP] = { "node-up", "the node answers", NONE },
	[KDSM_EVENT_NODE_DOWN] = { "node-down", "the node does not answer", NONE },
	[KDSM_EVENT_NODE_RESTARTED] = { "node-restarted",
		"the node came up again and has lost its state", NONE },
	[KDSM_EVENT_REGION_ADDED] = { "region-added", "the region exists", NONE },
	[KDSM_EVENT_REGION_REMOVED] = { "region-removed", "the region is gone", NONE },
	[KDSM_EVENT_BLOCK_LOST] = { "block-lost",
		"a block is lost with the node: see kdsmctl region show", OFFSET },
	[KDSM_EVENT_EVICTING] = { "evicting", "memory is short: this node evicts chunks", NONE },
	[KDSM_EVENT_FAULT_FAILED] = { "fault-failed",
		"a program got SIGBUS: no memory, or no node that has the block", ERRNO },
	[KDSM_EVENT_LOCK_DEAD] = { "lock-dead", "a thread died with the lock", LOCK },
	[KDSM_EVENT_NODE_ADDED] = { "node-added", "the node was added to the cluster", NONE },
	[KDSM_EVENT_NODE_REMOVED] = { "node-removed", "the node was removed from the cluster",
		NONE },
};

struct show {
	bool json;
	uint64_t left;		/* events until the end; UINT64_MAX: no end */
};

static void text_event(attrs at, const struct event *event, time_t seconds, unsigned int ns)
{
	uint64_t value = attr_u64(at, KDSM_A_EVENT_VALUE);
	char clock[32];

	strftime(clock, sizeof(clock), "%F %T", localtime(&seconds));
	printf("%s.%06u  %-14s ", clock, ns / 1000, event->name);
	if (at[KDSM_A_NODE_ID])
		printf(" node %u", attr_u32(at, KDSM_A_NODE_ID));
	if (at[KDSM_A_REGION_NAME])
		printf(" region %s", attr_string(at, KDSM_A_REGION_NAME));
	else if (at[KDSM_A_REGION_ID])
		printf(" region %u", attr_u32(at, KDSM_A_REGION_ID));
	if (event->value == OFFSET)
		printf(" offset %" PRIu64, value);
	else if (event->value == LOCK)
		printf(" lock %" PRIu64, value);
	else if (event->value == COUNT)
		printf(" %" PRIu64, value);
	printf(": %s", event->words);
	if (event->value == ERRNO)
		printf(" (%s)", strerror(value));
	putchar('\n');
}

static void json_event(attrs at, const struct event *event, time_t seconds, unsigned int ns)
{
	static const char *const keys[] = {
		[COUNT] = "count", [OFFSET] = "offset", [ERRNO] = "errno", [LOCK] = "lock",
	};
	struct json_object *out = json_object_new_object();

	json_seconds(out, "time", seconds + ns / 1e9);
	json_text(out, "event", event->name);
	if (at[KDSM_A_NODE_ID])
		json_number(out, "node", attr_u32(at, KDSM_A_NODE_ID));
	if (at[KDSM_A_REGION_ID])
		json_number(out, "region_id", attr_u32(at, KDSM_A_REGION_ID));
	if (at[KDSM_A_REGION_NAME])
		json_text(out, "region", attr_string(at, KDSM_A_REGION_NAME));
	if (event->value)
		json_number(out, keys[event->value], attr_u64(at, KDSM_A_EVENT_VALUE));
	json_print(out);
	json_object_put(out);
}

static void one_event(attrs at, void *data)
{
	uint32_t number = attr_u32(at, KDSM_A_EVENT);
	uint64_t time = attr_u64(at, KDSM_A_EVENT_TIME);
	struct event unknown = { "unknown", "the module is newer than kdsmctl", NONE };
	const struct event *event = &unknown;
	struct show *show = data;

	if (number < MNL_ARRAY_SIZE(events) && events[number].name)
		event = &events[number];
	if (!show->left)
		return;
	if (show->left != UINT64_MAX)
		show->left--;
	(show->json ? json_event : text_event)(at, event, time / SECOND, time % SECOND);
}

struct arguments {
	bool json;
	uint64_t count;		/* of events; 0: no end */
};

static const struct cli_option options[] = {
	{ "json", 0, NULL, "Print JSON, a line for each event", CLI_FLAG,
	  .offset = offsetof(struct arguments, json) },
	{ "count", 'n', "NUMBER", "End after NUMBER events", CLI_NUMBER,
	  .offset = offsetof(struct arguments, count), .range = { 1, UINT64_MAX - 1, 1 } },
	{ 0 }
};

static const struct cli cli = {
	.doc = "Show what happens: nodes that go and come, regions, lost blocks, memory that runs "
	       "short. Runs until interrupted, also while no cluster is up.",
	.options = { options },
};

/* Run until a signal ends the process, enough events came, or writing to stdout fails. */
int command_monitor(int argc, char **argv)
{
	struct arguments arguments = { .count = 0 };
	struct module *module;
	struct show show;
	int error;

	cli_parse(&cli, argc, argv, &arguments);
	show = (struct show){ arguments.json, arguments.count ? arguments.count : UINT64_MAX };
	module = module_need();
	error = module_join(module);
	while (!error && show.left && !fflush(stdout)) {
		error = module_receive(module, one_event, &show);
		/* The kernel dropped events, because this program was slow */
		if (error == -ENOBUFS) {
			fputs("kdsmctl: events were missed\n", stderr);
			error = 0;
		}
	}
	error = module_end(module, "watch events", error);
	return error || ferror(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
