/* SPDX-License-Identifier: GPL-2.0 */
/* The configuration file of a cluster, kdsm.conf(5), as data. */
#ifndef KDSMCTL_CONFIG_H
#define KDSMCTL_CONFIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kdsm/uapi_netlink.h>

/* The file of commands that are given none */
#define CONFIG_FILE	"/etc/kdsm.conf"
/* Largest file, in bytes; a description of 1024 nodes has a tenth of this size. */
#define CONFIG_MAX_BYTES	(1U << 20)

struct config_node {
	unsigned int line;	/* in the file; 0: the node is not given yet */
	int family;		/* AF_INET or AF_INET6 */
	union {
		struct in_addr v4;
		struct in6_addr v6;
	} address;
	char location[KDSM_LOCATION_SIZE];	/* "" if none was given */
};

struct config {
	char cluster[KDSM_NAME_SIZE];
	uint8_t uuid[KDSM_UUID_SIZE];
	bool derived;		/* the file has no UUID: it follows from the name and the nodes */
	uint16_t port;		/* KDSM_DEFAULT_PORT unless given */
	enum kdsm_domain domain;	/* KDSM_DOMAIN_AUTO unless given */
	unsigned int node_count;
	struct config_node nodes[KDSM_MAX_NODES];	/* by number */
};

/*
 * Fill *config from text, or from the file at path. Both functions return 0, or -1 with a
 * sentence in error, without a newline, that names the file, the line, the mistake and the
 * remedy. name is the file's name in the sentence.
 */
int config_parse(struct config *config, const char *name, const char *text,
		 size_t length, char *error, size_t error_size);
int config_load(struct config *config, const char *path, char *error,
		size_t error_size);

/* Write the address of a node as text to buffer, of INET6_ADDRSTRLEN bytes. Returns buffer. */
const char *config_address(const struct config_node *node, char *buffer);

/*
 * Fill *node from the words of a line: an address, and a location or NULL. Returns 0, or -1 with a
 * sentence in error.
 */
int config_node(struct config_node *node, const char *address, const char *location, char *error,
		size_t error_size);

/*
 * Derive the UUID of a cluster from its name and node table, which must be complete. All nodes
 * that have the same name and table derive the same UUID. Returns 0, or -1 without memory.
 */
int config_derive_uuid(struct config *config);

#endif /* KDSMCTL_CONFIG_H */
