// SPDX-License-Identifier: GPL-2.0
/*
 * The derived UUID of a cluster whose file has none.
 *
 * It is a name-based UUID (RFC 4122 version 5, SHA-1) in the name space below, of the text
 * "NAME\n" and "ID ADDRESS LOCATION\n" for each node in order of number, with addresses in the
 * form of inet_ntop(3). Nodes whose files differ only in spelling or order get the same UUID.
 * Nodes whose tables differ get different UUIDs, so they refuse each other's connections.
 */
#include <stdio.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "config.h"

static const uuid_t name_space = {
	0x6e, 0x0d, 0x5c, 0x52, 0x1f, 0x0a, 0x4b, 0x35,
	0x9b, 0x8e, 0x7b, 0x3d, 0x44, 0xc9, 0x02, 0xa7,
};

int config_derive_uuid(struct config *config)
{
	char address[INET6_ADDRSTRLEN];
	size_t length;
	char *text;
	FILE *out;

	out = open_memstream(&text, &length);
	if (!out)
		return -1;
	fprintf(out, "%s\n", config->cluster);
	for (unsigned int i = 0; i < config->node_count; i++)
		fprintf(out, "%u %s %s\n", i,
			config_address(&config->nodes[i], address),
			config->nodes[i].location);
	if (fclose(out))
		return -1;
	uuid_generate_sha1(config->uuid, name_space, text, length);
	free(text);
	return 0;
}
