// SPDX-License-Identifier: GPL-2.0
/* Processes with open regions: the module writes the region of a file into /proc/PID/fdinfo. */
#include <ctype.h>
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "processes.h"

static void add_region(struct process *process, const char *name)
{
	for (size_t i = 0; i < process->count; i++)
		if (!strcmp(process->regions[i], name))
			return;
	process->regions = realloc(process->regions, (process->count + 1) * KDSM_NAME_SIZE);
	if (!process->regions)
		errx(EXIT_FAILURE, "out of memory");
	snprintf(process->regions[process->count++], KDSM_NAME_SIZE, "%s", name);
}

/* Add the region that the file is bound to. The process may end at any time. */
static void look_at_file(struct process *process, const char *fd)
{
	char path[64], line[128], name[KDSM_NAME_SIZE];
	FILE *info;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", process->pid, fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "kdsm-region: %63s", name) == 1)
			add_region(process, name);
	if (info)
		fclose(info);
}

static void look_at_process(struct process *process, dev_t device)
{
	char path[64];
	struct dirent *entry;
	struct stat status;
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%d/fd", process->pid);
	files = opendir(path);
	while (files && (entry = readdir(files)))
		if (!fstatat(dirfd(files), entry->d_name, &status, 0) &&
		    S_ISCHR(status.st_mode) && status.st_rdev == device)
			look_at_file(process, entry->d_name);
	if (files)
		closedir(files);
}

static void read_command(struct process *process)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%16[^\n]", process->command) != 1)
		strcpy(process->command, "?");
	if (file)
		fclose(file);
}

void processes_walk(void (*visit)(const struct process *process, void *data), void *data)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;
	struct stat device;

	if (stat(KDSM_DEVICE, &device)) {
		if (all)
			closedir(all);
		return;
	}
	while (all && (entry = readdir(all))) {
		struct process process = { .pid = atoi(entry->d_name) };

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		look_at_process(&process, device.st_rdev);
		if (process.count) {
			read_command(&process);
			visit(&process, data);
		}
		free(process.regions);
	}
	if (all)
		closedir(all);
}
