// SPDX-License-Identifier: GPL-2.0
/* Find the node of a configuration whose address an interface of this machine has. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "local.h"

static bool is_at(const struct config_node *node, const struct sockaddr *at)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)at;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)at;

	if (!at || at->sa_family != node->family)
		return false;
	if (node->family == AF_INET)
		return node->address.v4.s_addr == v4->sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&node->address.v6, &v6->sin6_addr);
}

static const struct ifaddrs *find(const struct ifaddrs *at, const struct config_node *node)
{
	for (; at; at = at->ifa_next)
		if (is_at(node, at->ifa_addr))
			break;
	return at;
}

int local_interface(const struct config_node *node, char name[IF_NAMESIZE])
{
	const struct ifaddrs *at;
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return -1;
	at = find(list, node);
	if (at)
		snprintf(name, IF_NAMESIZE, "%s", at->ifa_name);
	freeifaddrs(list);
	return at ? 0 : -1;
}

int local_node(const struct config *config, const char *path, char *error,
	       size_t error_size)
{
	struct ifaddrs *list;
	int found = -1;

	if (getifaddrs(&list)) {
		snprintf(error, error_size,
			 "cannot list the addresses of this machine: %s; give its node with -n",
			 strerror(errno));
		return -1;
	}
	for (unsigned int i = 0; i < config->node_count; i++) {
		if (!find(list, &config->nodes[i]))
			continue;
		if (found >= 0) {
			snprintf(error, error_size,
				 "%s: nodes %d and %u both have an address of this machine; choose one with -n",
				 path, found, i);
			freeifaddrs(list);
			return -1;
		}
		found = i;
	}
	freeifaddrs(list);
	if (found < 0)
		snprintf(error, error_size,
			 "%s: no node has an address of this machine; see 'ip address', or give its node with -n",
			 path);
	return found;
}
