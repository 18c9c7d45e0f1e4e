// SPDX-License-Identifier: GPL-2.0
/* kdsmctl region: list, show, change and destroy regions. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/json.h"
#include "common/module.h"
#include "common/table.h"
#include "commands.h"
#include "names.h"
#include "print.h"

static const char *policy_name(uint32_t policy)
{
	static const char *const names[] = {
		[KDSM_POLICY_PARTITIONED] = "partitioned",
		[KDSM_POLICY_RELEASE] = "release",
		[KDSM_POLICY_STRICT] = "strict",
	};

	return name_of(names, MNL_ARRAY_SIZE(names), policy);
}

/* How the homes of a coherent region's blocks are chosen */
static const char *distribution_name(attrs at)
{
	return attr_u32(at, KDSM_A_REGION_FLAGS) & KDSM_REGION_CONTIGUOUS ? "contiguous" : "cyclic";
}

/* The segments of a region, or NULL if it has only one */
static const struct kdsm_region_segment *segments_of(attrs at, unsigned int *count)
{
	const struct nlattr *attr = at[KDSM_A_REGION_SEGMENTS];

	*count = attr ? mnl_attr_get_payload_len(attr) / sizeof(struct kdsm_region_segment) : 0;
	return attr ? mnl_attr_get_payload(attr) : NULL;
}

static void user_cell(struct table *table, uint32_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		table_cell(table, "%s", user->pw_name);
	else
		table_cell(table, "%u", uid);
}

static void group_cell(struct table *table, uint32_t gid)
{
	const struct group *group = getgrgid(gid);

	if (group)
		table_cell(table, "%s", group->gr_name);
	else
		table_cell(table, "%u", gid);
}

/* The most that each node holds of a region. */
static const char *limit_name(attrs at, char *buffer)
{
	uint64_t limit = attr_u64(at, KDSM_A_REGION_LIMIT);

	return limit ? human_bytes(limit, buffer) : "none";
}

static void region_text(attrs at, void *data)
{
	struct table *table = data;
	char size[HUMAN_SIZE];

	table_cell(table, "%u", attr_u32(at, KDSM_A_REGION_ID));
	table_cell(table, "%s", attr_string(at, KDSM_A_REGION_NAME));
	table_cell(table, "%s", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	table_cell(table, "%s", human_bytes(attr_u64(at, KDSM_A_REGION_SIZE), size));
	table_cell(table, "%s", human_bytes(attr_u64(at, KDSM_A_REGION_RESIDENT), size));
	table_cell(table, "%s", limit_name(at, size));
	table_cell(table, "%s", human_bytes(attr_u32(at, KDSM_A_REGION_BLOCK_SIZE), size));
	table_cell(table, "%04o", attr_u32(at, KDSM_A_REGION_MODE));
	user_cell(table, attr_u32(at, KDSM_A_REGION_UID));
	group_cell(table, attr_u32(at, KDSM_A_REGION_GID));
	table_cell(table, "%u", attr_u32(at, KDSM_A_REGION_OPENS));
	table_cell(table, "%s", attr_u32(at, KDSM_A_REGION_FLAGS) & KDSM_REGION_KEEP ?
				"yes" : "no");
}

static struct json_object *segments_json(attrs at)
{
	struct json_object *list = json_object_new_array(), *segment;
	const struct kdsm_region_segment *segments;
	unsigned int count;

	segments = segments_of(at, &count);
	for (unsigned int i = 0; i < count; i++) {
		segment = json_object_new_object();
		json_number(segment, "offset", segments[i].offset);
		json_number(segment, "block_size", segments[i].block_size);
		json_object_array_add(list, segment);
	}
	return list;
}

static void region_json(attrs at, void *data)
{
	struct json_object *region = json_object_new_object();
	uint32_t flags = attr_u32(at, KDSM_A_REGION_FLAGS);

	json_number(region, "id", attr_u32(at, KDSM_A_REGION_ID));
	json_text(region, "name", attr_string(at, KDSM_A_REGION_NAME));
	json_text(region, "policy", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	json_number(region, "nodes", attr_u32(at, KDSM_A_REGION_NODES));
	json_number(region, "size", attr_u64(at, KDSM_A_REGION_SIZE));
	json_number(region, "part_size", attr_u64(at, KDSM_A_REGION_PART_SIZE));
	json_number(region, "block_size", attr_u32(at, KDSM_A_REGION_BLOCK_SIZE));
	if (at[KDSM_A_REGION_SEGMENTS])
		json_object_object_add(region, "segments", segments_json(at));
	json_number(region, "resident", attr_u64(at, KDSM_A_REGION_RESIDENT));
	json_number(region, "mode", attr_u32(at, KDSM_A_REGION_MODE));
	json_number(region, "uid", attr_u32(at, KDSM_A_REGION_UID));
	json_number(region, "gid", attr_u32(at, KDSM_A_REGION_GID));
	json_number(region, "opens", attr_u32(at, KDSM_A_REGION_OPENS));
	if (attr_u32(at, KDSM_A_REGION_POLICY) != KDSM_POLICY_PARTITIONED)
		json_text(region, "homes", distribution_name(at));
	if (at[KDSM_A_REGION_LEASE])
		json_number(region, "lease", attr_u64(at, KDSM_A_REGION_LEASE));
	if (at[KDSM_A_REGION_LIMIT]) {
		json_number(region, "limit", attr_u64(at, KDSM_A_REGION_LIMIT));
		json_number(region, "memory", attr_u64(at, KDSM_A_REGION_MEMORY));
		json_number(region, "metadata", attr_u64(at, KDSM_A_REGION_METADATA));
	}
	json_object_object_add(region, "keep",
			       json_object_new_boolean(flags & KDSM_REGION_KEEP));
	json_object_array_add(data, region);
}

static const struct column columns[] = {
	{ "ID", TABLE_RIGHT, 0 },
	{ "NAME", TABLE_LEFT, 0 },
	{ "POLICY", TABLE_LEFT, 0 },
	{ "SIZE", TABLE_RIGHT, 0 },
	{ "HERE", TABLE_RIGHT, 0 },
	{ "LIMIT", TABLE_RIGHT, 0 },
	{ "BLOCK", TABLE_RIGHT, 0 },
	{ "MODE", TABLE_LEFT, 0 },
	{ "OWNER", TABLE_LEFT, 0 },
	{ "GROUP", TABLE_LEFT, 0 },
	{ "OPENS", TABLE_RIGHT, 0 },
	{ "KEEP", TABLE_LEFT, 0 },
	{ 0 }
};

static int print_text(struct module *module)
{
	struct table *table = table_new(columns);
	int error;

	error = module_dump(module, KDSM_CMD_REGIONS, region_text, table);
	if (!error)
		table_print(table);
	table_free(table);
	return error;
}

static int print_json(struct module *module)
{
	struct json_object *out = json_object_new_array();
	int error = module_dump(module, KDSM_CMD_REGIONS, region_json, out);

	if (!error)
		json_print(out);
	json_object_put(out);
	return error;
}

int region_list(int argc, char **argv)
{
	bool json = parse_json("List the regions that this node knows.", argc, argv);
	struct module *module = module_need();
	int error;

	error = json ? print_json(module) : print_text(module);
	return module_end(module, "list the regions", error);
}

/* ---- show ---- */

struct show {
	const char *name;
	struct json_object *json;	/* NULL: print text */
	uint64_t value[KDSM_COHERENCE_COUNT];
	int found;
};

/* Print the lost blocks that this node knows of, or add them to an object. */
static void show_lost(const char *name, struct json_object *json)
{
	struct kdsm_region_open bind = { .argsz = sizeof(bind) };
	struct json_object *list = json_object_new_array();
	struct kdsm_lost arg = { .argsz = sizeof(arg) };
	int file = open(KDSM_DEVICE, O_RDONLY | O_CLOEXEC);
	uint64_t offsets[64];

	strcpy(bind.name, name);
	arg.offsets = (uintptr_t)offsets;
	if (file < 0 || ioctl(file, KDSM_IOC_REGION_OPEN, &bind)) {
		warn("cannot open region %s to list its lost blocks", name);
		arg.count = 0;
	} else {
		do {
			arg.count = sizeof(offsets) / sizeof(offsets[0]);
			if (ioctl(file, KDSM_IOC_LOST, &arg))
				break;
			for (unsigned int i = 0; i < arg.count; i++) {
				if (!json)
					printf("%-26s %llu\n", "lost block at",
					       (unsigned long long)offsets[i]);
				json_object_array_add(list, json_object_new_int64(offsets[i]));
			}
		} while (arg.count == sizeof(offsets) / sizeof(offsets[0]));
	}
	if (file >= 0)
		close(file);
	if (json)
		json_object_object_add(json, "lost_offsets", list);
	else
		json_object_put(list);
}

static void show_blocks(attrs at)
{
	char offset[HUMAN_SIZE], size[HUMAN_SIZE];
	const struct kdsm_region_segment *segments;
	unsigned int count;

	segments = segments_of(at, &count);
	for (unsigned int i = 0; i < count; i++)
		printf("%-26s %s from %s\n", "block size",
		       human_bytes(segments[i].block_size, size),
		       human_bytes(segments[i].offset, offset));
	if (!count)
		printf("%-26s %s\n", "block size",
		       human_bytes(attr_u32(at, KDSM_A_REGION_BLOCK_SIZE), size));
}

static void show_text(attrs at, const struct show *show)
{
	char size[HUMAN_SIZE];

	printf("%-26s %s\n", "region", show->name);
	printf("%-26s %s\n", "policy", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	printf("%-26s %u\n", "nodes", attr_u32(at, KDSM_A_REGION_NODES));
	printf("%-26s %s\n", "size", human_bytes(attr_u64(at, KDSM_A_REGION_SIZE), size));
	printf("%-26s %s\n", "held here",
	       human_bytes(attr_u64(at, KDSM_A_REGION_RESIDENT), size));
	if (at[KDSM_A_REGION_LIMIT]) {
		printf("%-26s %s\n", "memory here",
		       human_bytes(attr_u64(at, KDSM_A_REGION_MEMORY), size));
		printf("%-26s %s\n", "metadata here",
		       human_bytes(attr_u64(at, KDSM_A_REGION_METADATA), size));
		printf("%-26s %s\n", "limit of memory", limit_name(at, size));
	}
	show_blocks(at);
	if (attr_u32(at, KDSM_A_REGION_POLICY) != KDSM_POLICY_PARTITIONED)
		printf("%-26s %s\n", "homes of blocks", distribution_name(at));
	printf("%-26s %u\n", "files bound here", attr_u32(at, KDSM_A_REGION_OPENS));
	if (at[KDSM_A_REGION_LEASE])
		printf("%-26s %g us\n", "lease", attr_u64(at, KDSM_A_REGION_LEASE) / 1e3);
	for (int i = 0; at[KDSM_A_REGION_STATS] && i < KDSM_COHERENCE_COUNT; i++)
		printf("%-26s %llu\n", coherence_names[i].words,
		       (unsigned long long)show->value[i]);
}

static void one_region(attrs at, void *data)
{
	struct show *show = data;

	if (strcmp(attr_string(at, KDSM_A_REGION_NAME), show->name) || show->found)
		return;
	show->found = 1;
	attr_counters(at, KDSM_A_REGION_STATS, show->value, KDSM_COHERENCE_COUNT);
	if (!show->json) {
		show_text(at, show);
		return;
	}
	region_json(at, show->json);
	for (int i = 0; at[KDSM_A_REGION_STATS] && i < KDSM_COHERENCE_COUNT; i++)
		json_number(json_object_array_get_idx(show->json, 0), coherence_names[i].name,
			    show->value[i]);
}

int region_show(int argc, char **argv)
{
	struct show show = { 0 };
	struct module *module;
	bool json;
	int error;

	show.name = parse_name_and_json("Show a region, and the counters of a coherent one.",
					argc, argv, &json);
	module = module_need();
	if (json)
		show.json = json_object_new_array();
	error = module_dump(module, KDSM_CMD_REGIONS, one_region, &show);
	if (error)
		module_complain(module, "show a region", error);
	else if (!show.found)
		warnx("there is no region %s here (kdsmctl region list)", show.name);
	else if (show.value[KDSM_COHERENCE_LOST])
		show_lost(show.name, json ? json_object_array_get_idx(show.json, 0) : NULL);
	if (!error && show.found && json)
		json_print(json_object_array_get_idx(show.json, 0));
	json_object_put(show.json);
	module_close(module);
	return error || !show.found ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- set and destroy ---- */

/* Largest limit, in bytes: no region is larger */
#define MOST_LIMIT	(UINT64_C(1) << 48)

struct change {
	const char *name;
	bool has_lease, has_limit;
	uint64_t lease;		/* in ns */
	uint64_t limit;		/* in bytes; 0: none */
};

static int parse_limit(const char *text, uint64_t *limit, char *reason)
{
	const struct range range = { 0, MOST_LIMIT, 1 };

	if (size_parse(text, &range, limit, reason))
		return -1;
	if (!*limit || *limit >= KDSM_LIMIT_MIN)
		return 0;
	snprintf(reason, REASON_SIZE, "'%.48s' is too small: a limit is at least %uM, or 0 for none",
		 text, KDSM_LIMIT_MIN >> 20);
	return -1;
}

/* The name of a region, and lease=TIME or limit=SIZE */
static int take_change(void *values, unsigned int index, const char *text, char *reason)
{
	const struct range range = { 0, KDSM_LEASE_MAX, 0 };
	struct change *change = values;

	if (!index && strlen(text) >= KDSM_NAME_SIZE) {
		snprintf(reason, REASON_SIZE, "'%.16s...' is too long: names have at most %d characters",
			 text, KDSM_NAME_SIZE - 1);
		return -1;
	}
	if (!index)
		return take_name(&change->name, text, reason);
	if (!strncmp(text, "lease=", 6)) {
		change->has_lease = true;
		return time_parse(text + 6, &range, &change->lease, reason);
	}
	if (!strncmp(text, "limit=", 6)) {
		change->has_limit = true;
		return parse_limit(text + 6, &change->limit, reason);
	}
	snprintf(reason, REASON_SIZE, "'%.48s' is not lease=TIME or limit=SIZE", text);
	return -1;
}

static const struct cli set_cli = {
	.doc = "Change settings of a coherent region, which may be in use, on all nodes."
	       "\vSettings: lease=TIME is the time that a node keeps a block of policy strict at "
	       "least, while other nodes want it: from 0s to 1s, as in lease=200us. limit=SIZE is "
	       "the most memory that each node holds of the region: at least 16M, or 0 for none. "
	       "A setting that is not given stays.",
	.args = "NAME SETTING=VALUE...",
	.least = 2,
	.most = UINT_MAX,
	.argument = take_change,
};

int region_set(int argc, char **argv)
{
	struct change change = { 0 };
	struct nlmsghdr *header;
	struct module *module;
	int error;

	cli_parse(&set_cli, argc, argv, &change);
	module = module_need();
	header = module_begin(module, KDSM_CMD_REGION_SET);
	mnl_attr_put_strz(header, KDSM_A_REGION_NAME, change.name);
	if (change.has_lease)
		mnl_attr_put_u64(header, KDSM_A_REGION_LEASE, change.lease);
	if (change.has_limit)
		mnl_attr_put_u64(header, KDSM_A_REGION_LIMIT, change.limit);
	error = module_send(module, NULL, NULL);
	return module_end(module, "change the settings of a region", error);
}

static const char *destroy_error(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such region (kdsmctl region list)";
	case EACCES:
		return "it belongs to another user; run this as its owner or as root";
	case ENETDOWN:
		return "the cluster is not up (kdsmctl up -f FILE)";
	case EHOSTDOWN:
		return "a node cannot be reached (kdsmctl status)";
	case ETIMEDOUT:
		return "a node did not answer in time (kdsmctl status)";
	default:
		return strerror(error);
	}
}

static const struct cli destroy_cli = {
	.doc = "Remove the name of a region on all nodes. Programs that have the region open keep "
	       "it; its memory is freed with the last of them.",
	.args = "NAME",
	.least = 1,
	.most = 1,
	.argument = take_change,
};

int region_destroy(int argc, char **argv)
{
	struct kdsm_region_destroy arg = { .argsz = sizeof(arg) };
	struct change change;
	int file, result;

	cli_parse(&destroy_cli, argc, argv, &change);
	strcpy(arg.name, change.name);
	file = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	if (file < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		errx(EXIT_FAILURE, "the kdsm module is not loaded (insmod kdsm.ko)");
	if (file < 0)
		err(EXIT_FAILURE, "cannot open %s", KDSM_DEVICE);
	result = ioctl(file, KDSM_IOC_REGION_DESTROY, &arg);
	if (result)
		warnx("cannot destroy region %s: %s", arg.name, destroy_error(errno));
	close(file);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
