// SPDX-License-Identifier: GPL-2.0
/* Surveys of all nodes, see nodes.h, and kdsmctl status --all. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/number.h"
#include "common/table.h"
#include "names.h"
#include "nodes.h"
#include "print.h"

/* ---- taking a survey ---- */

/* Append an empty entry to a list of *count entries. Returns the list, which may have moved. */
static void *append(void *list, size_t *count, size_t size)
{
	/* The list has room for a power of two of entries */
	if (!(*count & (*count - 1))) {
		list = realloc(list, (*count ? 2 * *count : 1) * size);
		if (!list)
			errx(EXIT_FAILURE, "out of memory");
	}
	memset((char *)list + *count * size, 0, size);
	++*count;
	return list;
}

static void take_status(attrs at, void *data)
{
	struct survey *survey = data;

	snprintf(survey->cluster, sizeof(survey->cluster), "%s", attr_string(at, KDSM_A_CLUSTER));
	survey->self = attr_u32(at, KDSM_A_NODE);
}

static void take_node(attrs at, void *data)
{
	struct survey *survey = data;
	struct node_report *report;

	survey->nodes = append(survey->nodes, &survey->node_count, sizeof(*report));
	report = &survey->nodes[survey->node_count - 1];
	report->node = attr_u32(at, KDSM_A_NODE_ID);
	report->error = attr_u32(at, KDSM_A_NODE_ERROR);
	report->uptime = attr_u64(at, KDSM_A_UPTIME);
	report->memory = attr_u64(at, KDSM_A_MEMORY);
	report->regions = attr_u32(at, KDSM_A_REGION_COUNT);
	report->opens = attr_u32(at, KDSM_A_REGION_OPENS);
	attr_counters(at, KDSM_A_STATS, report->stats, KDSM_STAT_COUNT);
	attr_counters(at, KDSM_A_COHERENCE, report->coherence, KDSM_COHERENCE_COUNT);
}

static void take_peer(attrs at, void *data)
{
	const struct nlattr *address = at[KDSM_A_NODE_ADDRESS];
	uint32_t node = attr_u32(at, KDSM_A_NODE_ID);
	struct survey *survey = data;
	struct node_report *report;
	size_t length = address ? mnl_attr_get_payload_len(address) : 0;

	if (node >= survey->node_count)
		return;
	report = &survey->nodes[node];
	snprintf(report->location, sizeof(report->location), "%s",
		 attr_string(at, KDSM_A_NODE_LOCATION));
	if (length == sizeof(struct in_addr) || length == sizeof(struct in6_addr))
		inet_ntop(length == sizeof(struct in_addr) ? AF_INET : AF_INET6,
			  mnl_attr_get_payload(address), report->address,
			  sizeof(report->address));
}

static void take_name(attrs at, void *data)
{
	struct survey *survey = data;
	struct region_name *name;

	survey->names = append(survey->names, &survey->name_count, sizeof(*name));
	name = &survey->names[survey->name_count - 1];
	name->id = attr_u32(at, KDSM_A_REGION_ID);
	name->policy = attr_u32(at, KDSM_A_REGION_POLICY);
	name->size = attr_u64(at, KDSM_A_REGION_SIZE);
	snprintf(name->name, sizeof(name->name), "%s", attr_string(at, KDSM_A_REGION_NAME));
}

/* A list of one node: its entries do not have the number of the node. */
struct part {
	struct survey *survey;
	uint32_t node;
};

static void take_region(attrs at, void *data)
{
	const struct part *part = data;
	struct survey *survey = part->survey;
	struct region_use *use;

	survey->regions = append(survey->regions, &survey->region_count, sizeof(*use));
	use = &survey->regions[survey->region_count - 1];
	use->node = part->node;
	use->id = attr_u32(at, KDSM_A_REGION_ID);
	use->opens = attr_u32(at, KDSM_A_REGION_OPENS);
	use->resident = attr_u64(at, KDSM_A_REGION_RESIDENT);
	attr_counters(at, KDSM_A_REGION_STATS, use->coherence, KDSM_COHERENCE_COUNT);
}

static void take_lock(attrs at, void *data)
{
	const struct part *part = data;
	struct survey *survey = part->survey;
	struct lock_use *use;

	survey->locks = append(survey->locks, &survey->lock_count, sizeof(*use));
	use = &survey->locks[survey->lock_count - 1];
	use->node = part->node;
	use->id = attr_u32(at, KDSM_A_REGION_ID);
	use->number = attr_u32(at, KDSM_A_LOCK_NUMBER);
	use->kind = attr_u32(at, KDSM_A_LOCK_KIND);
	snprintf(use->name, sizeof(use->name), "%s", attr_string(at, KDSM_A_LOCK_NAME));
	use->locks = attr_u64(at, KDSM_A_LOCK_LOCKS);
	use->waits = attr_u64(at, KDSM_A_LOCK_WAITS);
	use->waited = attr_u64(at, KDSM_A_LOCK_WAITED);
	use->longest = attr_u64(at, KDSM_A_LOCK_LONGEST);
	use->handed = attr_u64(at, KDSM_A_LOCK_HANDED);
	use->passed = attr_u64(at, KDSM_A_LOCK_PASSED);
}

static int ask(struct module *module, enum kdsm_cmd cmd, uint32_t node, uint32_t timeout,
	       void (*reply)(attrs at, void *data), struct survey *survey)
{
	struct nlmsghdr *request = module_begin(module, cmd);
	struct part part = { survey, node };

	mnl_attr_put_u32(request, KDSM_A_NODE_ID, node);
	mnl_attr_put_u32(request, KDSM_A_TIMEOUT, timeout);
	return module_list(module, reply, &part);
}

/*
 * The node may have stopped to answer since, or may have been removed (EINVAL): then it has this
 * error, and the survey goes on.
 */
static int take_details(struct survey *survey, struct module *module, uint32_t timeout,
			struct node_report *report)
{
	int error = latencies_read(module, report->node, timeout, report->latencies);

	if (!error)
		error = ask(module, KDSM_CMD_NODE_REGIONS, report->node, timeout, take_region,
			    survey);
	if (!error)
		error = ask(module, KDSM_CMD_NODE_LOCKS, report->node, timeout, take_lock, survey);
	if (error == -EINVAL)
		error = -EHOSTDOWN;
	if (error != -EHOSTDOWN && error != -ETIMEDOUT && error != -EIO)
		return error;
	report->error = -error;
	return 0;
}

int survey_take(struct survey *survey, struct module *module, uint32_t timeout, bool details)
{
	int error;

	memset(survey, 0, sizeof(*survey));
	module_begin(module, KDSM_CMD_STATUS);
	error = module_send(module, take_status, survey);
	if (!error) {
		mnl_attr_put_u32(module_begin(module, KDSM_CMD_NODES), KDSM_A_TIMEOUT, timeout);
		error = module_list(module, take_node, survey);
	}
	clock_gettime(CLOCK_MONOTONIC, &survey->time);
	if (!error)
		error = module_dump(module, KDSM_CMD_PEERS, take_peer, survey);
	if (!error && details)
		error = module_dump(module, KDSM_CMD_REGIONS, take_name, survey);
	for (size_t i = 0; details && !error && i < survey->node_count; i++)
		if (!survey->nodes[i].error)
			error = take_details(survey, module, timeout, &survey->nodes[i]);
	return error;
}

void survey_free(struct survey *survey)
{
	free(survey->nodes);
	free(survey->names);
	free(survey->regions);
	free(survey->locks);
	memset(survey, 0, sizeof(*survey));
}

const char *node_state(const struct node_report *report)
{
	switch (report->error) {
	case 0:
		return "up";
	case EHOSTDOWN:
		return "down";
	case ETIMEDOUT:
		return "silent";
	default:
		return "failing";
	}
}

const struct region_name *survey_region(const struct survey *survey, uint32_t id)
{
	for (size_t i = 0; i < survey->name_count; i++)
		if (survey->names[i].id == id)
			return &survey->names[i];
	return NULL;
}

uint64_t node_operations(const struct node_report *report)
{
	const uint64_t *stats = report->stats;

	return stats[KDSM_STAT_GET] + stats[KDSM_STAT_PUT] + stats[KDSM_STAT_CAS] +
	       stats[KDSM_STAT_FAA] + stats[KDSM_STAT_PUT_NOTIFY] + stats[KDSM_STAT_AM];
}

/* ---- kdsmctl status --all ---- */

static void print_text(const struct survey *survey)
{
	static const struct column columns[] = {
		{ "NODE", TABLE_RIGHT, 0 }, { "ADDRESS", TABLE_LEFT, 0 },
		{ "LOCATION", TABLE_LEFT, 0 }, { "STATE", TABLE_LEFT, 0 },
		{ "UP FOR", TABLE_RIGHT, 0 }, { "MEMORY", TABLE_RIGHT, 0 },
		{ "REGIONS", TABLE_RIGHT, 0 }, { "OPENS", TABLE_RIGHT, 0 },
		{ "OPERATIONS", TABLE_RIGHT, 0 }, { "SERVED", TABLE_RIGHT, 0 },
		{ "ERRORS", TABLE_RIGHT, 0 }, { 0 }
	};
	struct table *table = table_new(columns);
	char size[HUMAN_SIZE];

	for (size_t i = 0; i < survey->node_count; i++) {
		const struct node_report *report = &survey->nodes[i];

		table_cell(table, "%u", report->node);
		table_cell(table, "%s", report->address);
		table_cell(table, "%s", report->location);
		table_cell(table, "%s%s", node_state(report),
			   report->node == survey->self ? ", this" : "");
		if (report->error) {
			for (int empty = 0; empty < 7; empty++)
				table_cell(table, "-");
			continue;
		}
		table_cell(table, "%ju s", (uintmax_t)(report->uptime / SECOND));
		table_cell(table, "%s", human_bytes(report->memory, size));
		table_cell(table, "%u", report->regions);
		table_cell(table, "%u", report->opens);
		table_cell(table, "%ju", (uintmax_t)node_operations(report));
		table_cell(table, "%ju", (uintmax_t)report->stats[KDSM_STAT_AM_SERVED]);
		table_cell(table, "%ju", (uintmax_t)report->stats[KDSM_STAT_ERRORS]);
	}
	table_print(table);
	table_free(table);
}

static struct json_object *counters_json(const uint64_t *values, unsigned int count, bool coherence)
{
	struct json_object *out = json_object_new_object();

	for (unsigned int i = 0; i < count; i++)
		if (!coherence)
			json_number(out, stat_names[i], values[i]);
		else if (!coherence_names[i].is_current)
			json_number(out, coherence_names[i].name, values[i]);
	return out;
}

static void print_json(const struct survey *survey)
{
	struct json_object *out = json_object_new_object(), *nodes = json_object_new_array();

	for (size_t i = 0; i < survey->node_count; i++) {
		const struct node_report *report = &survey->nodes[i];
		struct json_object *node = json_object_new_object();

		json_number(node, "node", report->node);
		json_text(node, "address", report->address);
		json_text(node, "location", report->location);
		json_text(node, "state", node_state(report));
		if (report->error) {
			json_text(node, "error", strerror(report->error));
		} else {
			json_seconds(node, "uptime", report->uptime / 1e9);
			json_number(node, "memory", report->memory);
			json_number(node, "regions", report->regions);
			json_number(node, "opens", report->opens);
			json_object_object_add(node, "stats",
					       counters_json(report->stats, KDSM_STAT_COUNT,
							     false));
			json_object_object_add(node, "coherence",
					       counters_json(report->coherence,
							     KDSM_COHERENCE_COUNT, true));
		}
		json_object_array_add(nodes, node);
	}
	json_text(out, "cluster", survey->cluster);
	json_number(out, "node", survey->self);
	json_object_object_add(out, "nodes", nodes);
	json_print(out);
	json_object_put(out);
}

int nodes_status(struct module *module, uint32_t timeout, bool json)
{
	struct survey survey;
	int error = survey_take(&survey, module, timeout, false);

	if (!error && json)
		print_json(&survey);
	else if (!error)
		print_text(&survey);
	survey_free(&survey);
	return error;
}
