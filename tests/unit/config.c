// SPDX-License-Identifier: GPL-2.0
/* The parser of kdsm.conf: what it accepts, and one sentence for each mistake */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../../tools/kdsmctl/config.h"

static struct config config;
static char error[512];

static int parse(const char *text, size_t length)
{
	char *copy = malloc(length);	/* exact size, so that a sanitizer detects overruns */
	int result;

	assert_true(copy || !length);
	memcpy(copy, text, length);
	error[0] = '\0';
	result = config_parse(&config, "c", copy, length, error, sizeof(error));
	free(copy);
	return result;
}

static void good(const char *text)
{
	if (parse(text, strlen(text)))
		fail_msg("refused: %s", error);
}

static void bad(const char *text, const char *expected)
{
	assert_int_equal(parse(text, strlen(text)), -1);
	assert_string_equal(error, expected);
}

static void takes_everything(void **state)
{
	char address[INET6_ADDRSTRLEN];

	(void)state;
	good("# a comment, gr\xc3\xb6\xc3\x9f" "er\n"
	     "\n"
	     "cluster  demo\t# the name\r\n"
	     "uuid 00112233-4455-6677-8899-aabbccddeeFF\n"
	     "port 4791\n"
	     "atomics hca\n"
	     "node 1 10.0.0.2 rack0/chassis2\n"
	     "  node 0 10.0.0.1\n"
	     "node 2 10.0.0.3 rack1");	/* no newline at the end */
	assert_string_equal(config.cluster, "demo");
	assert_memory_equal(config.uuid, "\x00\x11\x22\x33\x44\x55\x66\x77"
			    "\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);
	assert_int_equal(config.port, 4791);
	assert_int_equal(config.domain, KDSM_DOMAIN_HCA);
	assert_int_equal(config.node_count, 3);
	assert_string_equal(config_address(&config.nodes[0], address), "10.0.0.1");
	assert_string_equal(config.nodes[0].location, "");
	assert_string_equal(config_address(&config.nodes[1], address), "10.0.0.2");
	assert_string_equal(config.nodes[1].location, "rack0/chassis2");
	assert_string_equal(config_address(&config.nodes[2], address), "10.0.0.3");
}

static void fills_in_defaults(void **state)
{
	char address[INET6_ADDRSTRLEN];

	(void)state;
	good("cluster c\nnode 0 fd00::1\n");
	assert_int_equal(config.port, KDSM_DEFAULT_PORT);
	assert_int_equal(config.domain, KDSM_DOMAIN_AUTO);
	assert_int_equal(config.nodes[0].family, AF_INET6);
	assert_string_equal(config_address(&config.nodes[0], address), "fd00::1");
}

/* Two files with the same table of nodes give the same UUID, whatever their spelling. */
static void derives_the_uuid_from_the_table(void **state)
{
	uint8_t first[KDSM_UUID_SIZE];

	(void)state;
	good("cluster c\nnode 0 fd00::1 r0\nnode 1 fd00::2\n");
	memcpy(first, config.uuid, sizeof(first));
	/*
	 * A UUID of version 5. It must never change, because nodes with different versions
	 * of kdsmctl must agree.
	 */
	assert_memory_equal(first, "\x20\xac\xea\xfa\xb3\xf9\x58\x41"
			    "\x94\xdf\xc0\xb9\xf1\x3e\x21\x0f", 16);
	good("# other spelling\nnode 1 fd00:0:0::2\nnode 0 FD00::1 r0\ncluster c\nport 5\n");
	assert_memory_equal(config.uuid, first, sizeof(first));
	good("cluster d\nnode 0 fd00::1 r0\nnode 1 fd00::2\n");
	assert_memory_not_equal(config.uuid, first, sizeof(first));
	good("cluster c\nnode 0 fd00::1 r0\nnode 1 fd00::3\n");
	assert_memory_not_equal(config.uuid, first, sizeof(first));
	good("cluster c\nnode 0 fd00::1 r0\nnode 1 fd00::2 r0\n");
	assert_memory_not_equal(config.uuid, first, sizeof(first));
	good("cluster c\nnode 0 fd00::1 r0\n");
	assert_memory_not_equal(config.uuid, first, sizeof(first));
}

static void names_duplicates(void **state)
{
	(void)state;
	bad("cluster c\nnode 0 10.0.0.1\nnode 0 10.0.0.2\n",
	    "c:3: node 0 was given before on line 2");
	bad("cluster c\nnode 0 10.0.0.1\n\nnode 1 10.0.0.1\n",
	    "c:4: address 10.0.0.1 was given before, to node 0 on line 2");
	bad("cluster c\nnode 0 fd00::1\nnode 1 fd00:0::1\n",
	    "c:3: address fd00:0::1 was given before, to node 0 on line 2");
	bad("cluster c\ncluster c\n",
	    "c:2: the cluster's name was given before on line 1; remove one of the two");
	bad("port 1\nport 1\n",
	    "c:2: the port was given before on line 1; remove one of the two");
	bad("atomics sw\natomics sw\n",
	    "c:2: atomics was given before on line 1; remove one of the two");
	bad("uuid 00112233445566778899aabbccddeeff\n#\nuuid 0\n",
	    "c:3: the UUID was given before on line 1; remove one of the two");
}

static void checks_node_numbers(void **state)
{
	(void)state;
	bad("cluster c\nnode 0 10.0.0.1\nnode 3 10.0.0.2\n",
	    "c:3: node 3 is given, but node 1 is not; nodes count from 0 without gaps");
	bad("cluster c\nnode 1 10.0.0.2\n",
	    "c:2: node 1 is given, but node 0 is not; nodes count from 0 without gaps");
	bad("node -1 10.0.0.1\n",
	    "c:1: '-1' is not a node number; nodes count from 0");
	bad("node 1x 10.0.0.1\n",
	    "c:1: '1x' is not a node number; nodes count from 0");
	bad("node 99999999999999999999 10.0.0.1\n",
	    "c:1: '99999999999999999999' is not a node number; nodes count from 0");
	bad("node 1024 10.0.0.1\n",
	    "c:1: node 1024 is too many: a cluster has at most 1024 nodes, 0 to 1023");
	bad("node\n", "c:1: expected: node ID ADDRESS [LOCATION]");
	bad("node 0\n", "c:1: expected: node ID ADDRESS [LOCATION]");
	bad("node 0 10.0.0.1 rack too much more\n",
	    "c:1: expected: node ID ADDRESS [LOCATION]");
}

static void checks_addresses(void **state)
{
	(void)state;
	bad("node 0 10.0.0\n",
	    "c:1: '10.0.0' is not an IPv4 or IPv6 address (names of machines are not looked up)");
	bad("node 0 machine\n",
	    "c:1: 'machine' is not an IPv4 or IPv6 address (names of machines are not looked up)");
	bad("node 0 0.0.0.0\n",
	    "c:1: 0.0.0.0 is not the address of one machine; give the address of its RDMA interface");
	bad("node 0 224.0.0.1\n",
	    "c:1: 224.0.0.1 is not the address of one machine; give the address of its RDMA interface");
	bad("node 0 ::\n",
	    "c:1: :: is not the address of one machine; give the address of its RDMA interface");
	bad("node 0 ff02::1\n",
	    "c:1: ff02::1 is not the address of one machine; give the address of its RDMA interface");
	bad("node 0 fe80::1\n",
	    "c:1: fe80::1 is link-local; give an address that all nodes can reach");
	bad("node 0 ::ffff:10.0.0.1\n",
	    "c:1: ::ffff:10.0.0.1 is an IPv4 address mapped into IPv6; give it as IPv4");
	bad("node 0 10.0.0.1\nnode 1 fd00::1\n",
	    "c:2: node 1 has an IPv6 address, node 0 on line 1 an IPv4 one; use one kind for all");
}

static void checks_names(void **state)
{
	char text[256], expected[256];

	(void)state;
	bad("", "c: the cluster has no name; add a line: cluster NAME");
	bad("cluster c\n", "c: the cluster has no nodes; add lines: node ID ADDRESS [LOCATION]");
	bad("cluster\n", "c:1: expected: cluster NAME (without spaces)");
	bad("cluster a b\n", "c:1: expected: cluster NAME (without spaces)");
	snprintf(text, sizeof(text), "node 0 10.0.0.1\ncluster %063d\n", 0);
	good(text);
	assert_int_equal(strlen(config.cluster), 63);
	snprintf(text, sizeof(text), "node 0 10.0.0.1\ncluster %064d\n", 0);
	bad(text, "c:2: the cluster's name is 64 characters long, 63 are allowed");
	snprintf(text, sizeof(text), "cluster c\nnode 0 10.0.0.1 %063d\n", 0);
	good(text);
	assert_int_equal(strlen(config.nodes[0].location), 63);
	snprintf(text, sizeof(text), "cluster c\nnode 0 10.0.0.1 %064d\n", 0);
	bad(text, "c:2: location is 64 characters long, 63 are allowed");
	for (const char *const *at = (const char *const[]){ "/a", "a/", "a//b", "/", NULL };
	     *at; at++) {
		snprintf(text, sizeof(text), "node 0 10.0.0.1 %s\n", *at);
		snprintf(expected, sizeof(expected),
			 "c:1: location '%s' has an empty level; write it like rack0/chassis2",
			 *at);
		bad(text, expected);
	}
}

static void checks_other_words(void **state)
{
	(void)state;
	bad("clusters c\n",
	    "c:1: unknown word 'clusters'; a line starts with cluster, uuid, port, atomics or node");
	bad("port 0\n", "c:1: '0' is not a port, 1 to 65535");
	bad("port 65536\n", "c:1: '65536' is not a port, 1 to 65535");
	bad("port +1\n", "c:1: '+1' is not a port, 1 to 65535");
	bad("port\n", "c:1: expected: port NUMBER");
	bad("atomics SW\n", "c:1: atomics are auto, sw, hca or glob, not 'SW'");
	bad("atomics\n", "c:1: expected: atomics auto|sw|hca|glob");
	bad("uuid\n", "c:1: expected: uuid HEX-UUID");
	bad("uuid 00000000-0000-0000-0000-000000000000\n",
	    "c:1: the UUID is zero; uuidgen makes a good one, and without this line one is derived");
	for (const char *const *at = (const char *const[]){
			"0", "00112233445566778899aabbccddee",
			"00112233445566778899aabbccddeef",
			"00112233445566778899aabbccddeeff00",
			"00112233445566778899aabbccddeefg",
			"-00112233445566778899aabbccddeeff",
			"00112233445566778899aabbccddeeff-", NULL }; *at; at++) {
		char text[128], expected[256];

		snprintf(text, sizeof(text), "uuid %s\n", *at);
		snprintf(expected, sizeof(expected),
			 "c:1: '%s' is not a UUID; uuidgen makes one, and without this line one is derived",
			 *at);
		bad(text, expected);
	}
}

static void refuses_what_is_no_text(void **state)
{
	static char huge[CONFIG_MAX_BYTES + 1];

	(void)state;
	assert_int_equal(parse("\x7f" "ELF\0\0", 6), -1);
	assert_string_equal(error, "c:1: byte 0x7f in column 1 is not plain text; is this a kdsm.conf?");
	assert_int_equal(parse("cluster c\nnode 0\0 10.0.0.1\n", 27), -1);
	assert_string_equal(error, "c:2: byte 0x00 in column 7 is not plain text; is this a kdsm.conf?");
	assert_int_equal(parse("# \x01\n", 4), -1);
	assert_string_equal(error, "c:1: byte 0x01 in column 3 is not plain text; is this a kdsm.conf?");
	bad("cluster gr\xc3\xbc" "n\n", "c:1: byte 0xc3 in column 11 is not plain text; is this a kdsm.conf?");
	memset(huge, '\n', sizeof(huge));
	assert_int_equal(parse(huge, sizeof(huge)), -1);
	assert_string_equal(error, "c: longer than 1048576 bytes; is this a kdsm.conf?");
	assert_int_equal(parse(huge, sizeof(huge) - 1), -1);
	assert_string_equal(error, "c: the cluster has no name; add a line: cluster NAME");
	memset(huge, 'x', sizeof(huge));
	assert_int_equal(parse(huge, sizeof(huge) - 1), -1);
	assert_non_null(strstr(error, "c:1: unknown word 'xxxx"));
}

static void takes_as_many_nodes_as_may_be(void **state)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	fprintf(out, "cluster c\n");
	for (unsigned int i = KDSM_MAX_NODES; i-- > 0; )
		fprintf(out, "node %u fd00::%x\n", i, i + 1);
	fclose(out);
	good(text);
	assert_int_equal(config.node_count, KDSM_MAX_NODES);
	free(text);
}

/* For random bytes and random words the parser must succeed, or give an error of one line. */
static void survives_noise(void **state)
{
	static const char *const words[] = {
		"cluster", "node", "uuid", "port", "atomics", " ", " ", "\n", "\n",
		"\t", "#", "\r", "0", "1", "2", "10.0.0.1", "fd00::1", "sw", "c",
		"1023", "a/b", "/", "-", "\xff",
		"00112233445566778899aabbccddeeff",
	};

	(void)state;
	srand(1);
	for (int run = 0; run < 20000; run++) {
		char text[512];
		size_t length = 0;

		while (length < 400 && rand() % 40) {
			const char *word = words[rand() % (sizeof(words) / sizeof(words[0]))];

			if (run % 4) {
				memcpy(text + length, word, strlen(word));
				length += strlen(word);
			} else {
				text[length++] = rand();
			}
		}
		if (parse(text, length)) {
			assert_true(error[0]);
			assert_null(strchr(error, '\n'));
		}
	}
}

static void loads_files(void **state)
{
	char path[] = "/tmp/kdsm-config-XXXXXX", expected[256];
	int file = mkstemp(path);

	(void)state;
	assert_true(file >= 0);
	assert_int_equal(write(file, "cluster c\nnode 0 10.0.0.1\nfrob\n", 31), 31);
	close(file);
	assert_int_equal(config_load(&config, path, error, sizeof(error)), -1);
	snprintf(expected, sizeof(expected), "%s:3: unknown word 'frob'; a line starts with cluster, uuid, port, atomics or node",
		 path);
	assert_string_equal(error, expected);
	unlink(path);
	assert_int_equal(config_load(&config, path, error, sizeof(error)), -1);
	snprintf(expected, sizeof(expected), "%s: cannot open: No such file or directory", path);
	assert_string_equal(error, expected);
	assert_int_equal(config_load(&config, "/", error, sizeof(error)), -1);
	assert_string_equal(error, "/: cannot read: Is a directory");
	assert_int_equal(config_load(&config, "/dev/zero", error, sizeof(error)), -1);
	assert_string_equal(error, "/dev/zero: longer than 1048576 bytes; is this a kdsm.conf?");
}

/* A node that is given alone: kdsmctl node add */
static void takes_one_node(void **state)
{
	struct config_node node;
	char text[INET6_ADDRSTRLEN];

	(void)state;
	assert_int_equal(config_node(&node, "192.0.2.26", "rack1", error, sizeof(error)), 0);
	assert_string_equal(config_address(&node, text), "192.0.2.26");
	assert_string_equal(node.location, "rack1");
	assert_int_equal(config_node(&node, "2001:db8::1", NULL, error, sizeof(error)), 0);
	assert_int_equal(node.family, AF_INET6);
	assert_string_equal(node.location, "");
	assert_int_equal(config_node(&node, "224.0.0.1", NULL, error, sizeof(error)), -1);
	assert_string_equal(error,
			    "node: 224.0.0.1 is not the address of one machine; give the address of its RDMA interface");
	assert_int_equal(config_node(&node, "192.0.2.26", "", error, sizeof(error)), -1);
	assert_string_equal(error, "node: the location is empty; leave it out");
	assert_int_equal(config_node(&node, "192.0.2.26", "a b", error, sizeof(error)), -1);
	assert_string_equal(error, "node: location 'a b' must be printable, without spaces");
	assert_int_equal(config_node(&node, "192.0.2.26", "a//b", error, sizeof(error)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_everything),
		cmocka_unit_test(fills_in_defaults),
		cmocka_unit_test(derives_the_uuid_from_the_table),
		cmocka_unit_test(names_duplicates),
		cmocka_unit_test(checks_node_numbers),
		cmocka_unit_test(checks_addresses),
		cmocka_unit_test(checks_names),
		cmocka_unit_test(checks_other_words),
		cmocka_unit_test(refuses_what_is_no_text),
		cmocka_unit_test(takes_as_many_nodes_as_may_be),
		cmocka_unit_test(survives_noise),
		cmocka_unit_test(loads_files),
		cmocka_unit_test(takes_one_node),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
