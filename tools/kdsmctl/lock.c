// SPDX-License-Identifier: GPL-2.0
/*
 * kdsmctl lock: list, show and watch; set is in lock_set.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "lock.h"
#include "module.h"
#include "print.h"
#include "table.h"

const char *lock_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		[KDSM_LOCK_DMCS] = "dmcs",
		[KDSM_LOCK_RMA_MCS] = "rma-mcs",
		[KDSM_LOCK_RMA_RW] = "rma-rw",
	};

	return name_of(names, MNL_ARRAY_SIZE(names), kind);
}

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

	if (!names) {
		fprintf(stderr, "kdsmctl: no memory\n");
		exit(EXIT_FAILURE);
	}
	regions->names = names;
	snprintf(regions->names[regions->count++], KDSM_NAME_SIZE, "%s",
		 attr_string(at, KDSM_A_REGION_NAME));
}

static int locks_of_region(const char *region, int access,
			   int (*visit)(const struct lock *lock, void *data), void *data)
{
	struct kdsm_region_open open_args = { .argsz = sizeof(open_args) };
	struct lock lock = { .file = open(KDSM_DEVICE, access | O_CLOEXEC) };
	uint32_t number = 0;
	int ret = 0;

	if (lock.file < 0)
		return 0;
	snprintf(lock.region, sizeof(lock.region), "%s", region);
	memcpy(open_args.name, lock.region, sizeof(open_args.name));
	if (ioctl(lock.file, KDSM_IOC_REGION_OPEN, &open_args))
		goto close;
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

int lock_find(const char *name, int access,
	      int (*visit)(const struct lock *lock, void *data), void *data)
{
	struct search search = { .name = name, .visit = visit, .data = data };
	int ret = locks_walk(O_RDONLY, look, &search);

	if (ret)
		return ret;
	if (search.found != 1) {
		if (search.found)
			fprintf(stderr, "kdsmctl: %u locks are called %s; say REGION/%s (kdsmctl lock list)\n",
				search.found, name, name);
		else
			fprintf(stderr, "kdsmctl: there is no lock %s open here (kdsmctl lock list)\n",
				name);
		return -1;
	}
	search.found = 0;
	ret = locks_walk(access, visit_one, &search);
	if (!search.found && ret >= 0) {
		fprintf(stderr, "kdsmctl: no permission to change region %s, or it is gone\n",
			search.region);
		return -1;
	}
	return ret < 0 ? ret : 0;
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
	table_cell(table, "%s%s", lock_kind_name(lock->info.kind),
		   lock->info.options & KDSM_LOCK_CAS ? " (cas)" : "");
	table_cell(table, "%llu", (unsigned long long)(stats[KDSM_LOCK_STAT_LOCKS] +
						       stats[KDSM_LOCK_STAT_FAST]));
	table_cell(table, "%llu", (unsigned long long)stats[KDSM_LOCK_STAT_READS]);
	table_cell(table, "%llu", (unsigned long long)stats[KDSM_LOCK_STAT_ENTERED]);
	return 0;
}

static struct json_object *lock_json(const struct lock *lock);

static int list_json(const struct lock *lock, void *data)
{
	json_object_array_add(data, lock_json(lock));
	return 0;
}

static int list(int argc, char **argv)
{
	struct json_object *out;
	struct table *table;
	int json, ret;

	ret = only_json(argc, argv, &json);
	if (ret)
		return ret;
	if (json) {
		out = json_object_new_array();
		ret = locks_walk(O_RDONLY, list_json, out);
		if (!ret)
			json_print(out);
		json_object_put(out);
		return ret ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	table = table_new();
	table_column(table, 0, "REGION");
	table_column(table, 1, "NUMBER");
	table_column(table, 0, "NAME");
	table_column(table, 0, "KIND");
	table_column(table, 1, "LOCKS");
	table_column(table, 1, "READS");
	table_column(table, 1, "QUEUED");
	ret = locks_walk(O_RDONLY, list_text, table);
	if (!ret)
		table_print(table);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- show ---- */

static const struct {
	const char *name, *words;
} counters[KDSM_LOCK_STAT_COUNT] = {
	[KDSM_LOCK_STAT_LOCKS] = { "locks", "locked by a system call" },
	[KDSM_LOCK_STAT_FAST] = { "fast", "locked without" },
	[KDSM_LOCK_STAT_READS] = { "reads", "locked for reading" },
	[KDSM_LOCK_STAT_BUSY] = { "busy", "tried in vain" },
	[KDSM_LOCK_STAT_TIMEDOUT] = { "timed_out", "timed out or interrupted" },
	[KDSM_LOCK_STAT_DEAD] = { "dead", "owners that died" },
	[KDSM_LOCK_STAT_ENTERED] = { "queued", "this node queued" },
	[KDSM_LOCK_STAT_FREE] = { "free", "of that, nobody before it" },
	[KDSM_LOCK_STAT_FREED] = { "freed", "let go, nobody waiting" },
	[KDSM_LOCK_STAT_ATOMICS] = { "atomics", "remote atomics" },
	[KDSM_LOCK_STAT_PUTS] = { "puts", "remote writes" },
	[KDSM_LOCK_STAT_GETS] = { "gets", "remote reads" },
	[KDSM_LOCK_STAT_MESSAGES] = { "messages", "messages" },
	[KDSM_LOCK_STAT_SWITCHES] = { "switches", "between readers and writers" },
	[KDSM_LOCK_STAT_READERS_IN_ROW] = { "readers_in_row", "most readers in a row" },
	[KDSM_LOCK_STAT_WAITED] = { "waited", "ns waited, all threads" },
	[KDSM_LOCK_STAT_LONGEST] = { "longest", "ns of the longest wait" },
};

/* ns that half of the waits do not exceed, to a factor of two; 0: there were none. */
static uint64_t median_wait(const struct kdsm_lock_info *info)
{
	uint64_t all = 0, sum = 0;
	int i;

	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		all += info->waits[i];
	for (i = 0; i < KDSM_LOCK_WAITS && all; i++) {
		sum += info->waits[i];
		if (2 * sum >= all)
			return 2ULL << i;
	}
	return 0;
}

static void settings_text(const struct kdsm_lock_info *info)
{
	const struct kdsm_lock_settings *settings = &info->settings;
	unsigned int i;

	for (i = 2; i <= info->levels && i <= KDSM_LOCK_LEVELS; i++)
		if (settings->mask & KDSM_LOCK_SET_T_L(i))
			printf("T_L.%-24u %u\n", i, settings->t_l[i - 1]);
	if (settings->mask & KDSM_LOCK_SET_T_DC)
		printf("%-28s %u\n", "T_DC", settings->t_dc);
	if (settings->mask & KDSM_LOCK_SET_T_R)
		printf("%-28s %u\n", "T_R", settings->t_r);
	if (settings->mask & KDSM_LOCK_SET_T_W)
		printf("%-28s %u\n", "T_W", settings->t_w);
	if (settings->keep == KDSM_LOCK_KEEP_FOREVER)
		printf("%-28s %s\n", "keep", "forever");
	else
		printf("%-28s %g us\n", "keep", settings->keep / 1e3);
}

static int show_text(const struct lock *lock, void *data)
{
	const struct kdsm_lock_info *info = &lock->info;
	uint64_t median = median_wait(info);
	char buffer[KDSM_NAME_SIZE];
	unsigned int i;

	(void)data;
	printf("%-28s %s/%s\n", "lock", lock->region, lock_label(lock, buffer));
	printf("%-28s %u\n", "number", info->number);
	printf("%-28s %s%s\n", "kind", lock_kind_name(info->kind),
	       info->options & KDSM_LOCK_CAS ? ", by compare-and-swap" : "");
	settings_text(info);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		printf("%-28s %llu\n", counters[i].words, (unsigned long long)info->stats[i]);
	for (i = 1; i <= info->levels && i <= KDSM_LOCK_LEVELS; i++)
		printf("handed over at level %-7u %llu\n", i,
		       (unsigned long long)info->handed[i - 1]);
	if (median)
		printf("%-28s %.1f\n", "longest wait over median",
		       (double)info->stats[KDSM_LOCK_STAT_LONGEST] / median);
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		if (info->waits[i])
			printf("waits below %12llu ns  %llu\n", 2ULL << i,
			       (unsigned long long)info->waits[i]);
	return 0;
}

static struct json_object *lock_json(const struct lock *lock)
{
	const struct kdsm_lock_info *info = &lock->info;
	struct json_object *out = json_object_new_object(), *array;
	unsigned int i;

	json_text(out, "region", lock->region);
	json_number(out, "number", info->number);
	json_text(out, "name", info->name);
	json_text(out, "kind", lock_kind_name(info->kind));
	json_object_object_add(out, "cas",
			       json_object_new_boolean(info->options & KDSM_LOCK_CAS));
	json_number(out, "levels", info->levels);
	json_number(out, "t_dc", info->settings.t_dc);
	json_number(out, "t_r", info->settings.t_r);
	json_number(out, "t_w", info->settings.t_w);
	array = json_object_new_array();
	for (i = 0; i < info->levels && i < KDSM_LOCK_LEVELS; i++)
		json_object_array_add(array, json_object_new_uint64(info->settings.t_l[i]));
	json_object_object_add(out, "t_l", array);
	json_number(out, "keep", info->settings.keep);
	for (i = 0; i < KDSM_LOCK_STAT_COUNT; i++)
		json_number(out, counters[i].name, info->stats[i]);
	array = json_object_new_array();
	for (i = 0; i < info->levels && i < KDSM_LOCK_LEVELS; i++)
		json_object_array_add(array, json_object_new_uint64(info->handed[i]));
	json_object_object_add(out, "handed", array);
	array = json_object_new_array();
	for (i = 0; i < KDSM_LOCK_WAITS; i++)
		json_object_array_add(array, json_object_new_uint64(info->waits[i]));
	json_object_object_add(out, "waits", array);
	return out;
}

static int show_json(const struct lock *lock, void *data)
{
	struct json_object *out = lock_json(lock);

	(void)data;
	json_print(out);
	json_object_put(out);
	return 0;
}

static int show(int argc, char **argv)
{
	int json, ret;

	if (argc < 2 || argv[1][0] == '-' || !argv[1][0])
		return usage_error("lock show needs the name of a lock");
	ret = only_json(argc - 1, argv + 1, &json);
	if (ret)
		return ret;
	return lock_find(argv[1], O_RDONLY, json ? show_json : show_text, NULL) ?
	       EXIT_FAILURE : EXIT_SUCCESS;
}

/* Again and again, until it is gone or somebody ends the program. */
static int watch(int argc, char **argv)
{
	struct timespec pause;
	double seconds = 1;

	if (argc < 2 || argc > 3 || argv[1][0] == '-' || !argv[1][0])
		return usage_error("lock watch needs the name of a lock, and maybe SECONDS");
	if (argc == 3 && parse_seconds(argv[2], &seconds))
		return usage_error("'%s' is not a time in seconds", argv[2]);
	pause.tv_sec = seconds;
	pause.tv_nsec = (seconds - pause.tv_sec) * 1e9;
	for (;;) {
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		if (lock_find(argv[1], O_RDONLY, show_text, NULL))
			return EXIT_FAILURE;
		putchar('\n');
		if (fflush(stdout))
			return EXIT_FAILURE;
		nanosleep(&pause, NULL);
	}
}

int command_lock(int argc, char **argv)
{
	if (argc >= 2 && !strcmp(argv[1], "list"))
		return list(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "show"))
		return show(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "watch"))
		return watch(argc - 1, argv + 1);
	if (argc >= 2 && !strcmp(argv[1], "set"))
		return lock_set(argc - 1, argv + 1);
	return usage_error("lock list, show NAME, watch NAME or set NAME SETTING=VALUE...?");
}
