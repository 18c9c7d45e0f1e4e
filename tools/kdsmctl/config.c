// SPDX-License-Identifier: GPL-2.0
/*
 * The parser of kdsm.conf(5). It turns text into a checked struct config, or into one sentence
 * about the first mistake. It depends neither on the module nor on this machine.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cluster.h"
#include "common/number.h"
#include "config.h"

/* Words that the parser takes from a line: one more than a line may have, to detect surplus */
#define MAX_WORDS	5

struct parser {
	struct config *config;
	const char *name;
	unsigned int line;
	unsigned int cluster_line, uuid_line, port_line, atomics_line;
	char *error;
	size_t error_size;
};

static int __attribute__((format(printf, 2, 3)))
fail(struct parser *p, const char *format, ...)
{
	va_list args;
	int n;

	if (p->line)
		n = snprintf(p->error, p->error_size, "%s:%u: ", p->name, p->line);
	else
		n = snprintf(p->error, p->error_size, "%s: ", p->name);
	if (n < 0 || (size_t)n >= p->error_size)
		return -1;
	va_start(args, format);
	vsnprintf(p->error + n, p->error_size - n, format, args);
	va_end(args);
	return -1;
}

static int given_before(struct parser *p, const char *what, unsigned int *line)
{
	if (*line)
		return fail(p, "%s was given before on line %u; remove one of the two",
			    what, *line);
	*line = p->line;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Parse 32 digits, with dashes between any two bytes. */
static bool uuid(const char *word, uint8_t bytes[KDSM_UUID_SIZE])
{
	unsigned int n = 0;

	for (; *word; word++) {
		int high, low;

		if (*word == '-' && n > 0 && n < KDSM_UUID_SIZE)
			continue;
		high = hex_digit(*word++);
		low = *word ? hex_digit(*word) : -1;
		if (high < 0 || low < 0 || n == KDSM_UUID_SIZE)
			return false;
		bytes[n++] = high << 4 | low;
	}
	return n == KDSM_UUID_SIZE;
}

const char *config_address(const struct config_node *node, char *buffer)
{
	return inet_ntop(node->family, &node->address, buffer, INET6_ADDRSTRLEN);
}

static bool same_address(const struct config_node *a, const struct config_node *b)
{
	if (a->family != b->family)
		return false;
	if (a->family == AF_INET)
		return a->address.v4.s_addr == b->address.v4.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->address.v6, &b->address.v6);
}

static int parse_address(struct parser *p, const char *word,
			 struct config_node *node)
{
	if (inet_pton(AF_INET, word, &node->address.v4) == 1) {
		uint32_t host = ntohl(node->address.v4.s_addr);

		node->family = AF_INET;
		if (!host || host == INADDR_BROADCAST || IN_MULTICAST(host))
			return fail(p, "%s is not the address of one machine; give the address of its RDMA interface",
				    word);
		return 0;
	}
	if (inet_pton(AF_INET6, word, &node->address.v6) == 1) {
		const struct in6_addr *v6 = &node->address.v6;

		node->family = AF_INET6;
		if (IN6_IS_ADDR_UNSPECIFIED(v6) || IN6_IS_ADDR_MULTICAST(v6))
			return fail(p, "%s is not the address of one machine; give the address of its RDMA interface",
				    word);
		if (IN6_IS_ADDR_V4MAPPED(v6))
			return fail(p, "%s is an IPv4 address mapped into IPv6; give it as IPv4",
				    word);
		/* A link-local address needs an interface, whose name differs between nodes. */
		if (IN6_IS_ADDR_LINKLOCAL(v6))
			return fail(p, "%s is link-local; give an address that all nodes can reach",
				    word);
		return 0;
	}
	return fail(p, "'%s' is not an IPv4 or IPv6 address (names of machines are not looked up)",
		    word);
}

static int parse_location(struct parser *p, const char *word,
			  struct config_node *node)
{
	size_t length = strlen(word);

	if (length >= sizeof(node->location))
		return fail(p, "location is %zu characters long, %zu are allowed",
			    length, sizeof(node->location) - 1);
	if (word[0] == '/' || word[length - 1] == '/' || strstr(word, "//"))
		return fail(p, "location '%s' has an empty level; write it like rack0/chassis2",
			    word);
	memcpy(node->location, word, length + 1);
	return 0;
}

int config_node(struct config_node *node, const char *address, const char *location, char *error,
		size_t error_size)
{
	struct parser parser = { .name = "node", .error = error, .error_size = error_size };

	memset(node, 0, sizeof(*node));
	if (parse_address(&parser, address, node))
		return -1;
	if (!location)
		return 0;
	for (const char *c = location; *c; c++)
		if (*c <= ' ' || *c > '~')
			return fail(&parser, "location '%s' must be printable, without spaces",
				    location);
	return *location ? parse_location(&parser, location, node) :
			   fail(&parser, "the location is empty; leave it out");
}

static int parse_node(struct parser *p, char **words, unsigned int count)
{
	struct config *config = p->config;
	struct config_node *node, *other;
	const struct range ids = { 0, UINT32_MAX, 1 };
	char reason[REASON_SIZE];
	uint64_t id;

	if (count < 3 || count > 4)
		return fail(p, "expected: node ID ADDRESS [LOCATION]");
	if (number_parse(words[1], &ids, &id, reason))
		return fail(p, "'%s' is not a node number; nodes count from 0",
			    words[1]);
	if (id >= KDSM_MAX_NODES)
		return fail(p, "node %ju is too many: a cluster has at most %u nodes, 0 to %u",
			    id, KDSM_MAX_NODES, KDSM_MAX_NODES - 1);
	node = &config->nodes[id];
	if (node->line)
		return fail(p, "node %ju was given before on line %u", id,
			    node->line);
	if (parse_address(p, words[2], node))
		return -1;
	if (count == 4 && parse_location(p, words[3], node))
		return -1;
	for (other = config->nodes; other < config->nodes + KDSM_MAX_NODES; other++) {
		if (!other->line)
			continue;
		if (same_address(node, other))
			return fail(p, "address %s was given before, to node %td on line %u",
				    words[2], other - config->nodes, other->line);
		if (node->family != other->family)
			return fail(p, "node %ju has an %s address, node %td on line %u an %s one; use one kind for all",
				    id, node->family == AF_INET ? "IPv4" : "IPv6",
				    other - config->nodes, other->line,
				    other->family == AF_INET ? "IPv4" : "IPv6");
	}
	node->line = p->line;
	config->node_count++;
	return 0;
}

static int parse_cluster(struct parser *p, char **words, unsigned int count)
{
	size_t length;

	if (count != 2)
		return fail(p, "expected: cluster NAME (without spaces)");
	if (given_before(p, "the cluster's name", &p->cluster_line))
		return -1;
	length = strlen(words[1]);
	if (length >= sizeof(p->config->cluster))
		return fail(p, "the cluster's name is %zu characters long, %zu are allowed",
			    length, sizeof(p->config->cluster) - 1);
	memcpy(p->config->cluster, words[1], length + 1);
	return 0;
}

static int parse_uuid(struct parser *p, char **words, unsigned int count)
{
	static const uint8_t zero[KDSM_UUID_SIZE];

	if (count != 2)
		return fail(p, "expected: uuid HEX-UUID");
	if (given_before(p, "the UUID", &p->uuid_line))
		return -1;
	if (!uuid(words[1], p->config->uuid))
		return fail(p, "'%s' is not a UUID; uuidgen makes one, and without this line one is derived",
			    words[1]);
	if (!memcmp(p->config->uuid, zero, sizeof(zero)))
		return fail(p, "the UUID is zero; uuidgen makes a good one, and without this line one is derived");
	return 0;
}

static int parse_port(struct parser *p, char **words, unsigned int count)
{
	const struct range ports = { 1, UINT16_MAX, 1 };
	char reason[REASON_SIZE];
	uint64_t port;

	if (count != 2)
		return fail(p, "expected: port NUMBER");
	if (given_before(p, "the port", &p->port_line))
		return -1;
	if (number_parse(words[1], &ports, &port, reason))
		return fail(p, "'%s' is not a port, 1 to 65535", words[1]);
	p->config->port = port;
	return 0;
}

static int parse_atomics(struct parser *p, char **words, unsigned int count)
{
	if (count != 2)
		return fail(p, "expected: atomics auto|sw|hca|glob");
	if (given_before(p, "atomics", &p->atomics_line))
		return -1;
	for (unsigned int i = 0; domain_names[i]; i++) {
		if (!strcmp(words[1], domain_names[i])) {
			p->config->domain = i;
			return 0;
		}
	}
	return fail(p, "atomics are auto, sw, hca or glob, not '%s'", words[1]);
}

static const struct {
	const char *word;
	int (*parse)(struct parser *p, char **words, unsigned int count);
} statements[] = {
	{ "cluster", parse_cluster },
	{ "uuid", parse_uuid },
	{ "port", parse_port },
	{ "atomics", parse_atomics },
	{ "node", parse_node },
};

/* Comments may be in any language; all other text appears in tables and logs. */
static int check_text(struct parser *p, char *line, size_t length)
{
	bool comment = false;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = line[i];

		if (c == '#')
			comment = true;
		if (c == '\t' || (c >= 0x20 && c < 0x7f) || (comment && c >= 0x80))
			continue;
		return fail(p, "byte 0x%02x in column %zu is not plain text; is this a kdsm.conf?",
			    c, i + 1);
	}
	return 0;
}

static int parse_line(struct parser *p, char *line, size_t length)
{
	char *words[MAX_WORDS], *state, *word;
	unsigned int count = 0;

	if (length && line[length - 1] == '\r')
		line[--length] = '\0';
	if (check_text(p, line, length))
		return -1;
	line[strcspn(line, "#")] = '\0';
	for (word = strtok_r(line, " \t", &state); word && count < MAX_WORDS;
	     word = strtok_r(NULL, " \t", &state))
		words[count++] = word;
	if (!count)
		return 0;
	for (unsigned int i = 0; i < sizeof(statements) / sizeof(statements[0]); i++)
		if (!strcmp(words[0], statements[i].word))
			return statements[i].parse(p, words, count);
	return fail(p, "unknown word '%.40s'; a line starts with cluster, uuid, port, atomics or node",
		    words[0]);
}

/* Check what needs the whole file, and derive the UUID if the file has none. */
static int check_whole(struct parser *p)
{
	struct config *config = p->config;
	unsigned int last = KDSM_MAX_NODES;

	p->line = 0;
	if (!p->cluster_line)
		return fail(p, "the cluster has no name; add a line: cluster NAME");
	if (!config->node_count)
		return fail(p, "the cluster has no nodes; add lines: node ID ADDRESS [LOCATION]");
	while (!config->nodes[last - 1].line)
		last--;
	for (unsigned int i = 0; i < last; i++) {
		if (config->nodes[i].line)
			continue;
		p->line = config->nodes[last - 1].line;
		return fail(p, "node %u is given, but node %u is not; nodes count from 0 without gaps",
			    last - 1, i);
	}
	config->derived = !p->uuid_line;
	if (config->derived && config_derive_uuid(config))
		return fail(p, "out of memory");
	return 0;
}

int config_parse(struct config *config, const char *name, const char *text,
		 size_t length, char *error, size_t error_size)
{
	struct parser parser = {
		.config = config,
		.name = name,
		.error = error,
		.error_size = error_size,
	};
	char *copy, *line;
	int result = 0;

	memset(config, 0, sizeof(*config));
	config->port = KDSM_DEFAULT_PORT;
	config->domain = KDSM_DOMAIN_AUTO;
	if (length > CONFIG_MAX_BYTES)
		return fail(&parser, "longer than %u bytes; is this a kdsm.conf?",
			    CONFIG_MAX_BYTES);
	copy = malloc(length + 1);
	if (!copy)
		return fail(&parser, "out of memory");
	memcpy(copy, text, length);
	copy[length] = '\0';
	for (line = copy; !result && line < copy + length; ) {
		char *end = memchr(line, '\n', copy + length - line);

		/* The last line may lack its newline. */
		if (!end)
			end = copy + length;
		*end = '\0';
		parser.line++;
		result = parse_line(&parser, line, end - line);
		line = end + 1;
	}
	free(copy);
	return result ? result : check_whole(&parser);
}

int config_load(struct config *config, const char *path, char *error,
		size_t error_size)
{
	struct parser parser = {
		.name = path,
		.error = error,
		.error_size = error_size,
	};
	size_t length;
	char *text;
	FILE *file;
	int result;

	file = fopen(path, "re");
	if (!file)
		return fail(&parser, "cannot open: %s", strerror(errno));
	/* One byte more than allowed, so that config_parse() detects a file that is too long. */
	text = malloc(CONFIG_MAX_BYTES + 1);
	if (!text) {
		result = fail(&parser, "out of memory");
		goto close;
	}
	errno = 0;
	length = fread(text, 1, CONFIG_MAX_BYTES + 1, file);
	if (ferror(file))
		result = fail(&parser, "cannot read: %s", strerror(errno));
	else
		result = config_parse(config, path, text, length, error,
				      error_size);
	free(text);
close:
	fclose(file);
	return result;
}
