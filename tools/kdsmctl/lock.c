// SPDX-License-Identifier: GPL-2.0
/* kdsmctl lock: find and list locks. lock_show.c and lock_set.c have the other commands. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cluster.h"
#include "common/module.h"
#include "common/table.h"
#include "commands.h"
#include "lock.h"
#include "print.h"

const char *lock_label(const struct lock *lock, char *buffer)
{
	if (lock->info.name[0])
		return lock->info.name;
	snprintf(buffer, KDSM_NAME_SIZE, "%u", lock->info.number);
	return buffer;
}

/* ---- finding ---- */

struct regions {
	char (*names)[KDSM_NAME_SIZE];
	size_t count;
};

static void one_region(attrs at, void *data)
{
	struct regions *regions = data;
	void *names = realloc(regions->names, (regions->count + 1) * KDSM_NAME_SIZE);

	if (!names)
		errx(EXIT_FAILURE, "out of memory");
	regions->names = names;
	snprintf(regions->names[regions->count++], KDSM_NAME_SIZE, "%s",
		 attr_string(at, KDSM_A_REGION_NAME));
}

/* Number of regions that the last walk skipped, because the caller must not open them */
static unsigned int forbidden;

static int locks_of_region(const char *region, int access,
			   int (*visit)(const struct lock *lock, void *data), void *data)
{
	struct kdsm_region_open open_args = { .argsz = sizeof(open_args) };
	struct lock lock = { .file = open(KDSM_DEVICE, access | O_CLOEXEC) };
	uint32_t number = 0;
	int ret = 0;

	if (lock.file < 0) {
		warn("cannot open " KDSM_DEVICE);
		return -1;
	}
	snprintf(lock.region, sizeof(lock.region), "%s", region);
	memcpy(open_args.name, lock.region, sizeof(open_args.name));
	if (ioctl(lock.file, KDSM_IOC_REGION_OPEN, &open_args)) {
		forbidden += errno == EACCES;
		goto close;
	}
	while (!ret && number < KDSM_MAX_LOCKS) {
		memset(&lock.info, 0, sizeof(lock.info));
		lock.info.argsz = sizeof(lock.info);
		lock.info.flags = KDSM_LOCK_NEXT;
		lock.info.number = number;
		if (ioctl(lock.file, KDSM_IOC_LOCK_INFO, &lock.info))
			break;
		number = lock.info.number + 1;
		ret = visit(&lock, data);
	}
close:
	close(lock.file);
	return ret;
}

int locks_walk(int access, int (*visit)(const struct lock *lock, void *data), void *data)
{
	struct module *module = module_open();
	struct regions regions = { .count = 0 };
	int ret;

	if (!module)
		return -1;
	ret = module_dump(module, KDSM_CMD_REGIONS, one_region, &regions);
	if (ret)
		module_complain(module, "list the regions", ret);
	module_close(module);
	if (ret)
		ret = -1;
	forbidden = 0;
	for (size_t i = 0; i < regions.count && !ret; i++)
		ret = locks_of_region(regions.names[i], access, visit, data);
	free(regions.names);
	return ret;
}

struct search {
	const char *name;
	char region[KDSM_NAME_SIZE];
	uint32_t number;
	unsigned int found;
	int (*visit)(const struct lock *lock, void *data);
	void *data;
};

static int is_called(const struct lock *lock, const char *name)
{
	size_t length = strlen(lock->region);
	char buffer[KDSM_NAME_SIZE];

	if (!strcmp(lock_label(lock, buffer), name))
		return 1;
	if (strncmp(name, lock->region, length) || name[length] != '/')
		return 0;
	name += length + 1;
	snprintf(buffer, sizeof(buffer), "%u", lock->info.number);
	return !strcmp(name, buffer) || !strcmp(name, lock->info.name);
}

static int look(const struct lock *lock, void *data)
{
	struct search *search = data;

	if (!is_called(lock, search->name))
		return 0;
	search->found++;
	search->number = lock->info.number;
	memcpy(search->region, lock->region, sizeof(search->region));
	return 0;
}

static int visit_one(const struct lock *lock, void *data)
{
	struct search *search = data;

	if (lock->info.number != search->number || strcmp(lock->region, search->region))
		return 0;
	search->found++;
	return search->visit(lock, search->data) ?: 1;
}

static int not_there(const char *name)
{
	if (forbidden)
		warnx("there is no lock %s open here in a region that you may read; %u may be read by others only",
		      name, forbidden);
	else
		warnx("there is no lock %s open here (kdsmctl lock list)", name);
	return -1;
}

int lock_find(const char *name, int access,
	      int (*visit)(const struct lock *lock, void *data), void *data)
{
	struct search search = { .name = name, .visit = visit, .data = data };
	int ret = locks_walk(O_RDONLY, look, &search);

	if (ret)
		return ret;
	if (search.found > 1) {
		warnx("%u locks have the name %s; use REGION/%s (kdsmctl lock list)",
		      search.found, name, name);
		return -1;
	}
	if (!search.found)
		return not_there(name);
	search.found = 0;
	ret = locks_walk(access, visit_one, &search);
	if (ret < 0 || search.found)
		return ret < 0 ? ret : 0;
	/* The lock was closed since the first walk, or the caller must not write the region. */
	if (access == O_RDONLY)
		return not_there(name);
	warnx("no permission to change region %s, or it is gone", search.region);
	return -1;
}

/* ---- list ---- */

static int list_text(const struct lock *lock, void *data)
{
	const uint64_t *stats = (const uint64_t *)lock->info.stats;
	char buffer[KDSM_NAME_SIZE];
	struct table *table = data;

	table_cell(table, "%s", lock->region);
	table_cell(table, "%u", lock->info.number);
	table_cell(table, "%s", lock->info.name[0] ? lock_label(lock, buffer) : "-");
	table_cell(table, "%s", lock_kind_name(lock->info.kind));
	table_cell(table, "%llu", (unsigned long long)(stats[KDSM_LOCK_STAT_LOCKS] +
						       stats[KDSM_LOCK_STAT_FAST]));
	table_cell(table, "%llu", (unsigned long long)stats[KDSM_LOCK_STAT_READS]);
	table_cell(table, "%llu", (unsigned long long)stats[KDSM_LOCK_STAT_ENTERED]);
	return 0;
}

static int list_json(const struct lock *lock, void *data)
{
	json_object_array_add(data, lock_json(lock));
	return 0;
}

static const struct column columns[] = {
	{ "REGION", TABLE_LEFT, 0 },
	{ "NUMBER", TABLE_RIGHT, 0 },
	{ "NAME", TABLE_LEFT, 0 },
	{ "KIND", TABLE_LEFT, 0 },
	{ "LOCKS", TABLE_RIGHT, 0 },
	{ "READS", TABLE_RIGHT, 0 },
	{ "QUEUED", TABLE_RIGHT, 0 },
	{ 0 }
};

int lock_list(int argc, char **argv)
{
	bool json = parse_json("List the locks that are open on this node.", argc, argv);
	struct json_object *out;
	struct table *table;
	int ret;

	if (json) {
		out = json_object_new_array();
		ret = locks_walk(O_RDONLY, list_json, out);
		if (!ret)
			json_print(out);
		json_object_put(out);
		return ret ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	table = table_new(columns);
	ret = locks_walk(O_RDONLY, list_text, table);
	if (!ret)
		table_print(table);
	table_free(table);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
