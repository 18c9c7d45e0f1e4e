// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl region: list, show, set and destroy.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/module.h"
#include "commands.h"
#include "print.h"
#include "table.h"

static const char *policy_name(uint32_t policy)
{
	static const char *const names[] = {
		[KDSM_POLICY_PARTITIONED] = "partitioned",
		[KDSM_POLICY_RELEASE] = "release",
		[KDSM_POLICY_STRICT] = "strict",
	};

	return name_of(names, MNL_ARRAY_SIZE(names), policy);
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

static void region_text(attrs at, void *data)
{
	struct table *table = data;
	char size[HUMAN_SIZE];

	table_cell(table, "%u", attr_u32(at, KDSM_A_REGION_ID));
	table_cell(table, "%s", attr_string(at, KDSM_A_REGION_NAME));
	table_cell(table, "%s", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	table_cell(table, "%s", human_bytes(attr_u64(at, KDSM_A_REGION_SIZE), size));
	table_cell(table, "%s", human_bytes(attr_u64(at, KDSM_A_REGION_RESIDENT), size));
	table_cell(table, "%s", human_bytes(attr_u32(at, KDSM_A_REGION_BLOCK_SIZE), size));
	table_cell(table, "%04o", attr_u32(at, KDSM_A_REGION_MODE));
	user_cell(table, attr_u32(at, KDSM_A_REGION_UID));
	group_cell(table, attr_u32(at, KDSM_A_REGION_GID));
	table_cell(table, "%u", attr_u32(at, KDSM_A_REGION_OPENS));
	table_cell(table, "%s", attr_u32(at, KDSM_A_REGION_FLAGS) & KDSM_REGION_KEEP ?
				"yes" : "no");
}

static void region_json(attrs at, void *data)
{
	struct json_object *region = json_object_new_object();
	uint32_t flags = attr_u32(at, KDSM_A_REGION_FLAGS);

	json_number(region, "id", attr_u32(at, KDSM_A_REGION_ID));
	json_text(region, "name", attr_string(at, KDSM_A_REGION_NAME));
	json_text(region, "policy", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	json_number(region, "size", attr_u64(at, KDSM_A_REGION_SIZE));
	json_number(region, "part_size", attr_u64(at, KDSM_A_REGION_PART_SIZE));
	json_number(region, "block_size", attr_u32(at, KDSM_A_REGION_BLOCK_SIZE));
	json_number(region, "resident", attr_u64(at, KDSM_A_REGION_RESIDENT));
	json_number(region, "mode", attr_u32(at, KDSM_A_REGION_MODE));
	json_number(region, "uid", attr_u32(at, KDSM_A_REGION_UID));
	json_number(region, "gid", attr_u32(at, KDSM_A_REGION_GID));
	json_number(region, "opens", attr_u32(at, KDSM_A_REGION_OPENS));
	if (at[KDSM_A_REGION_LEASE])
		json_number(region, "lease", attr_u64(at, KDSM_A_REGION_LEASE));
	json_object_object_add(region, "keep",
			       json_object_new_boolean(flags & KDSM_REGION_KEEP));
	json_object_array_add(data, region);
}

static int print_text(struct module *module)
{
	struct table *table = table_new();
	int error;

	table_column(table, 1, "ID");
	table_column(table, 0, "NAME");
	table_column(table, 0, "POLICY");
	table_column(table, 1, "SIZE");
	table_column(table, 1, "HERE");
	table_column(table, 1, "BLOCK");
	table_column(table, 0, "MODE");
	table_column(table, 0, "OWNER");
	table_column(table, 0, "GROUP");
	table_column(table, 1, "OPENS");
	table_column(table, 0, "KEEP");
	error = module_dump(module, KDSM_CMD_REGIONS, region_text, table);
	if (!error)
		table_print(table);
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

static int list(int argc, char **argv)
{
	struct module *module;
	int json, error;

	error = only_json(argc, argv, &json);
	if (error)
		return error;
	module = module_open();
	if (!module)
		return EXIT_FAILURE;
	error = json ? print_json(module) : print_text(module);
	if (error)
		module_complain(module, "list the regions", error);
	module_close(module);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- show ---- */

/* What is told of a coherent region: name in JSON, words for people. */
static const struct {
	const char *name, *words;
} counters[KDSM_COHERENCE_COUNT] = {
	[KDSM_COHERENCE_OWNED] = { "owned", "blocks owned" },
	[KDSM_COHERENCE_READABLE] = { "readable", "blocks readable" },
	[KDSM_COHERENCE_WRITABLE] = { "writable", "blocks writable" },
	[KDSM_COHERENCE_INVALID] = { "invalid", "blocks invalid" },
	[KDSM_COHERENCE_READ_FAULTS] = { "read_faults", "read faults" },
	[KDSM_COHERENCE_WRITE_FAULTS] = { "write_faults", "write faults" },
	[KDSM_COHERENCE_UPGRADES] = { "upgrades", "blocks into the write set" },
	[KDSM_COHERENCE_FAST_READS] = { "fast_reads", "misses, writer known" },
	[KDSM_COHERENCE_SLOW_READS] = { "slow_reads", "misses, owner asked" },
	[KDSM_COHERENCE_FAST_RELEASES] = { "fast_releases", "blocks released as owner" },
	[KDSM_COHERENCE_SLOW_RELEASES] = { "slow_releases", "blocks taken over" },
	[KDSM_COHERENCE_MIGRATIONS] = { "migrations", "blocks handed over" },
	[KDSM_COHERENCE_INVALIDATIONS] = { "invalidations", "invalidations" },
	[KDSM_COHERENCE_MERGES] = { "merges", "merges" },
	[KDSM_COHERENCE_RACES] = { "races", "data races seen" },
	[KDSM_COHERENCE_FLUSHES] = { "flushes", "ranges remapped" },
	[KDSM_COHERENCE_BYTES] = { "bytes", "bytes brought here" },
};

struct show {
	const char *name;
	struct json_object *json;	/* or NULL: text */
	uint64_t value[KDSM_COHERENCE_COUNT];
	int found;
};

static void show_text(attrs at, const struct show *show)
{
	char size[HUMAN_SIZE];

	printf("%-26s %s\n", "region", show->name);
	printf("%-26s %s\n", "policy", policy_name(attr_u32(at, KDSM_A_REGION_POLICY)));
	printf("%-26s %s\n", "size", human_bytes(attr_u64(at, KDSM_A_REGION_SIZE), size));
	printf("%-26s %s\n", "held here",
	       human_bytes(attr_u64(at, KDSM_A_REGION_RESIDENT), size));
	printf("%-26s %s\n", "block size",
	       human_bytes(attr_u32(at, KDSM_A_REGION_BLOCK_SIZE), size));
	printf("%-26s %u\n", "files bound here", attr_u32(at, KDSM_A_REGION_OPENS));
	if (at[KDSM_A_REGION_LEASE])
		printf("%-26s %g us\n", "lease", attr_u64(at, KDSM_A_REGION_LEASE) / 1e3);
	for (int i = 0; at[KDSM_A_REGION_STATS] && i < KDSM_COHERENCE_COUNT; i++)
		printf("%-26s %llu\n", counters[i].words, (unsigned long long)show->value[i]);
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
		json_number(json_object_array_get_idx(show->json, 0), counters[i].name,
			    show->value[i]);
}

static int show(int argc, char **argv)
{
	struct show show = { 0 };
	struct module *module;
	int error, json;

	if (argc < 2 || argv[1][0] == '-' || !argv[1][0])
		return usage_error("region show needs the name of a region");
	show.name = argv[1];
	error = only_json(argc - 1, argv + 1, &json);
	if (error)
		return error;
	module = module_open();
	if (!module)
		return EXIT_FAILURE;
	if (json)
		show.json = json_object_new_array();
	error = module_dump(module, KDSM_CMD_REGIONS, one_region, &show);
	if (error)
		module_complain(module, "show a region", error);
	else if (!show.found)
		fprintf(stderr, "kdsmctl: there is no region %s here (kdsmctl region list)\n",
			show.name);
	else if (json)
		json_print(json_object_array_get_idx(show.json, 0));
	json_object_put(show.json);
	module_close(module);
	return error || !show.found ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- set ---- */

/* "200us" and the like, in ns; or -1. */
static int64_t parse_lease(const char *word)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double value;
	char *end;

	/* No sign, and nothing else that strtod() takes for a number. */
	if (*word < '0' || *word > '9' || word[strspn(word, "0123456789.")] == 'x')
		return -1;
	value = strtod(word, &end);
	for (size_t i = 0; i < MNL_ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		value = value * units[i].ns + 0.5;
		return value < KDSM_LEASE_MAX + 1.0 ? (int64_t)value : -1;
	}
	return -1;
}

static int set(int argc, char **argv)
{
	struct nlmsghdr *header;
	struct module *module;
	int64_t lease;
	int error;

	if (argc != 3 || argv[1][0] == '-' || !argv[1][0] || strncmp(argv[2], "lease=", 6))
		return usage_error("region set needs the name of a region and lease=TIME");
	lease = parse_lease(argv[2] + 6);
	if (lease < 0)
		return usage_error("a lease is a time from 0s to 1s, as in lease=200us");
	if (strlen(argv[1]) >= KDSM_NAME_SIZE) {
		fprintf(stderr, "kdsmctl: '%.16s...' is no region: names have %d characters at most\n",
			argv[1], KDSM_NAME_SIZE - 1);
		return EXIT_FAILURE;
	}
	module = module_open();
	if (!module)
		return EXIT_FAILURE;
	header = module_begin(module, KDSM_CMD_REGION_SET);
	mnl_attr_put_strz(header, KDSM_A_REGION_NAME, argv[1]);
	mnl_attr_put_u64(header, KDSM_A_REGION_LEASE, lease);
	error = module_send(module, NULL, NULL);
	if (error)
		module_complain(module, "set the lease of a region", error);
	module_close(module);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- destroy ---- */

static const char *destroy_error(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no such region (kdsmctl region list)";
	case EACCES:
		return "it belongs to somebody else; run this as its owner or as root";
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

static int destroy(int argc, char **argv)
{
	struct kdsm_region_destroy arg = { .argsz = sizeof(arg) };
	int file, result;

	if (argc != 2 || argv[1][0] == '-' || !argv[1][0])
		return usage_error("region destroy needs the name of a region");
	if (strlen(argv[1]) >= sizeof(arg.name)) {
		fprintf(stderr, "kdsmctl: '%.16s...' is no region: names have %zu characters at most\n",
			argv[1], sizeof(arg.name) - 1);
		return EXIT_FAILURE;
	}
	strcpy(arg.name, argv[1]);
	file = open(KDSM_DEVICE, O_RDWR | O_CLOEXEC);
	if (file < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV)) {
		fprintf(stderr, "kdsmctl: the kdsm module is not loaded (insmod kdsm.ko)\n");
		return EXIT_FAILURE;
	}
	if (file < 0) {
		fprintf(stderr, "kdsmctl: cannot open %s: %s\n", KDSM_DEVICE,
			strerror(errno));
		return EXIT_FAILURE;
	}
	result = ioctl(file, KDSM_IOC_REGION_DESTROY, &arg);
	if (result)
		fprintf(stderr, "kdsmctl: cannot destroy region %s: %s\n",
			arg.name, destroy_error(errno));
	close(file);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}

int command_region(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "list"))
		return list(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "destroy"))
		return destroy(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "show"))
		return show(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "set"))
		return set(argc - 1, argv + 1);
	return usage_error("region list, show NAME, set NAME lease=TIME or destroy NAME?");
}
