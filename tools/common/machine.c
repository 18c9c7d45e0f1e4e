// SPDX-License-Identifier: GPL-2.0
/* Processors and memory that this process may use, see machine.h. */
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/machine.h"

#define MOST_PROCESSORS	65536	/* of a set that sched_getaffinity() fills */

static FILE *open_file(const char *directory, const char *name)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return NULL;
	return fopen(path, "re");
}

/*
 * Read the decimal numbers at the start of a file. "max", a sign, a file that is missing and
 * anything else end the list. Returns the length of the list, which most bounds.
 */
static unsigned int read_numbers(const char *directory, const char *name, uint64_t *number,
				 unsigned int most)
{
	FILE *file = open_file(directory, name);
	unsigned long long value;
	unsigned int count = 0;
	char word[32];

	while (file && count < most && fscanf(file, "%31s", word) == 1 &&
	       word[0] >= '0' && word[0] <= '9' && sscanf(word, "%llu", &value) == 1)
		number[count++] = value;
	if (file)
		fclose(file);
	return count;
}

static void lower(uint64_t *value, uint64_t limit)
{
	if (*value > limit)
		*value = limit;
}

static void limit_memory(struct machine *machine, uint64_t bytes)
{
	lower(&machine->memory, bytes);
	lower(&machine->available, bytes);
}

/* A group may use this much time of processors in each period. */
static void limit_time(struct machine *machine, uint64_t quota, uint64_t period)
{
	uint64_t processors = period ? quota / period + !!(quota % period) : UINT_MAX;

	if (processors && machine->processors > processors)
		machine->processors = processors;
}

/* Apply the limits of one group, whose files are in directory. */
static void limit_group(struct machine *machine, const char *directory, bool unified)
{
	uint64_t number[2];

	if (unified) {
		if (read_numbers(directory, "memory.max", number, 1))
			limit_memory(machine, number[0]);
		if (read_numbers(directory, "memory.high", number, 1))
			limit_memory(machine, number[0]);
		if (read_numbers(directory, "cpu.max", number, 2) == 2)
			limit_time(machine, number[0], number[1]);
		return;
	}
	if (read_numbers(directory, "memory.limit_in_bytes", number, 1))
		limit_memory(machine, number[0]);
	if (read_numbers(directory, "cpu.cfs_quota_us", number, 1) &&
	    read_numbers(directory, "cpu.cfs_period_us", number + 1, 1))
		limit_time(machine, number[0], number[1]);
}

/* Whether the words of a list with commas contain the word */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	const char *at;

	for (at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, word, length) && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

/*
 * Find this process's group in the hierarchy of a controller of version 1, or in that of
 * version 2 if controller is "". Lines are ID:CONTROLLERS:PATH.
 */
static bool find_group(const char *root, const char *controller, char group[PATH_MAX])
{
	FILE *file = open_file(root, "proc/self/cgroup");
	char line[PATH_MAX], *list, *path;
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		list = strchr(line, ':');
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		list++;
		found = *path == '/' && (*controller ? has_word(list, controller) : !*list);
		if (found)
			strcpy(group, path);
	}
	if (file)
		fclose(file);
	return found;
}

/* A mounted hierarchy of groups, as in proc/self/mountinfo */
struct mount {
	char *top;	/* the group that is mounted */
	char *point;
	char *type, *options;
};

/* Split a line: ID PARENT DEVICE TOP POINT FLAGS [TAG...] - TYPE SOURCE OPTIONS */
static bool parse_mount(char *line, struct mount *mount)
{
	char *rest = strstr(line, " - "), *save;
	unsigned int i;

	if (!rest)
		return false;
	*rest = '\0';
	mount->top = strtok_r(line, " ", &save);
	for (i = 0; i < 3; i++)
		mount->top = strtok_r(NULL, " ", &save);
	mount->point = strtok_r(NULL, " ", &save);
	mount->type = strtok_r(rest + 3, "\n ", &save);
	strtok_r(NULL, "\n ", &save);
	mount->options = strtok_r(NULL, "\n ", &save);
	return mount->point && mount->options;
}

/* Apply the limits of the group and of the groups above it, as far as they are mounted. */
static void limit_groups(struct machine *machine, const char *root, const struct mount *mount,
			 const char *group, bool unified)
{
	size_t top = strcmp(mount->top, "/") ? strlen(mount->top) : 0;
	char directory[2 * PATH_MAX];
	size_t point;

	/* in a container the top that is mounted may be the group of this process */
	if (top && (strncmp(group, mount->top, top) || (group[top] && group[top] != '/')))
		group = "";
	else
		group += top;
	if (strstr(group, ".."))	/* outside of this process's name space of groups */
		group = "";
	point = snprintf(directory, sizeof(directory), "%s%s", root, mount->point);
	if (point + strlen(group) >= sizeof(directory))
		return;
	strcpy(directory + point, group);
	for (;;) {
		limit_group(machine, directory, unified);
		if (!directory[point])
			break;
		*strrchr(directory, '/') = '\0';
	}
}

static void limit_by_groups(struct machine *machine, const char *root)
{
	FILE *file = open_file(root, "proc/self/mountinfo");
	char line[2 * PATH_MAX], group[PATH_MAX];
	struct mount mount;

	while (file && fgets(line, sizeof(line), file)) {
		if (!parse_mount(line, &mount))
			continue;
		if (!strcmp(mount.type, "cgroup2") && find_group(root, "", group))
			limit_groups(machine, root, &mount, group, true);
		if (strcmp(mount.type, "cgroup"))
			continue;
		if (has_word(mount.options, "memory") && find_group(root, "memory", group))
			limit_groups(machine, root, &mount, group, false);
		if (has_word(mount.options, "cpu") && find_group(root, "cpu", group))
			limit_groups(machine, root, &mount, group, false);
	}
	if (file)
		fclose(file);
}

static void limit_by_meminfo(struct machine *machine, const char *root)
{
	FILE *file = open_file(root, "proc/meminfo");
	unsigned long long kib;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemTotal: %llu kB", &kib) == 1)
			limit_memory(machine, kib * 1024);
		else if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			lower(&machine->available, kib * 1024);
	}
	if (file)
		fclose(file);
}

void machine_limit(struct machine *machine, const char *root)
{
	limit_by_meminfo(machine, root);
	limit_by_groups(machine, root);
}

static unsigned int processors(void)
{
	cpu_set_t *set = CPU_ALLOC(MOST_PROCESSORS);
	size_t size = CPU_ALLOC_SIZE(MOST_PROCESSORS);
	int count = 0;

	if (set && !sched_getaffinity(0, size, set))
		count = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return count > 0 ? count : 1;
}

/*
 * A limit of the address space. The stack and the heap of a thread take up to this much of it, in
 * bytes, mostly without memory behind.
 */
#define THREAD_SPACE	(UINT64_C(256) << 20)

static void limit_space(struct machine *machine, uint64_t bytes)
{
	uint64_t threads = bytes / 4 / THREAD_SPACE;

	if (machine->processors > threads)
		machine->processors = threads ? threads : 1;
	limit_memory(machine, bytes / 2);
}

void machine_read(struct machine *machine)
{
	struct rlimit space;

	machine->processors = processors();
	machine->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	machine->available = machine->memory;
	machine_limit(machine, "");
	if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
		limit_space(machine, space.rlim_cur);
}
