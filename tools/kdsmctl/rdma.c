// SPDX-License-Identifier: GPL-2.0
/* Find the RDMA device of a network interface in sysfs, see rdma.h. */
#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma.h"

int sysfs_read(char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX], *line;
	va_list args;
	FILE *file;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	file = fopen(path, "re");
	if (!file)
		return -1;
	line = fgets(text, size, file);
	fclose(file);
	if (!line)
		return -1;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* A GID of a port of RoCE names its interface; reading an entry without a GID fails. */
static bool has_gid_of(const char *device, unsigned int port, const char *interface)
{
	char pattern[PATH_MAX], name[IF_NAMESIZE + 1];
	bool found = false;
	glob_t names;

	snprintf(pattern, sizeof(pattern), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/*",
		 device, port);
	if (glob(pattern, GLOB_NOSORT, NULL, &names))
		return false;
	for (size_t i = 0; i < names.gl_pathc && !found; i++)
		found = !sysfs_read(name, sizeof(name), "%s", names.gl_pathv[i]) &&
			!strcmp(name, interface);
	globfree(&names);
	return found;
}

/* An interface of IPoIB is a child of the same device, and knows the number of the port from 0. */
static bool is_parent_of(const char *device, unsigned int port, const char *interface)
{
	char path[PATH_MAX], number[16];
	unsigned int at;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/infiniband/%s", interface, device);
	return !access(path, F_OK) &&
	       !sysfs_read(number, sizeof(number), "/sys/class/net/%s/dev_port", interface) &&
	       sscanf(number, "%u", &at) == 1 && at + 1 == port;
}

int rdma_find(const char *interface, struct rdma_port *port)
{
	char state[32];
	glob_t ports;
	int result = -1;

	if (glob("/sys/class/infiniband/*/ports/*", 0, NULL, &ports))
		return -1;
	for (size_t i = 0; i < ports.gl_pathc && result; i++) {
		if (sscanf(ports.gl_pathv[i], "/sys/class/infiniband/%63[^/]/ports/%u",
			   port->device, &port->port) != 2 ||
		    (!has_gid_of(port->device, port->port, interface) &&
		     !is_parent_of(port->device, port->port, interface)))
			continue;
		/* The file has text such as "4: ACTIVE". */
		if (sysfs_read(state, sizeof(state), "%s/state", ports.gl_pathv[i]) ||
		    sscanf(state, "%*u: %15s", port->state) != 1)
			strcpy(port->state, "unknown");
		result = 0;
	}
	globfree(&ports);
	return result;
}
