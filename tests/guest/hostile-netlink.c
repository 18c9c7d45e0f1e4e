// SPDX-License-Identifier: GPL-2.0
/*
 * Every netlink command with attributes that are missing, cut off, too long, of the wrong
 * type, given twice, or junk; none of these messages changes anything.
 *
 * With one node, the program takes the cluster down and brings it up again, because a node
 * checks the attributes of KDSM_CMD_UP only while it is down.
 */
#include <arpa/inet.h>
#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <uuid/uuid.h>

#include "../../tools/kdsmctl/key_file.h"
#include "genl.h"
#include "hostile.h"

#define MAX_NODES	64

static struct genl genl;
static char buffer[1 << 18];

/* The cluster at the start of the program */
static struct {
	char cluster[KDSM_NAME_SIZE];
	uint8_t uuid[KDSM_UUID_SIZE];
	uint32_t node, nodes, domain;
	uint16_t port;
	struct in_addr address[MAX_NODES];
	char location[MAX_NODES][KDSM_LOCATION_SIZE];
} found;

/* Replaces the payload of an attribute; if data is NULL, the attribute is left out. */
struct swap {
	uint16_t type;
	const void *data;
	size_t length;
};

static bool swapped(struct nlmsghdr *header, uint16_t type, const struct swap *swap)
{
	if (!swap || swap->type != type)
		return false;
	if (swap->data)
		mnl_attr_put(header, type, swap->length, swap->data);
	return true;
}

static void put(struct nlmsghdr *header, const struct swap *swap, uint16_t type,
		size_t length, const void *data)
{
	if (!swapped(header, type, swap))
		mnl_attr_put(header, type, length, data);
}

static void put_entry(struct nlmsghdr *header, uint32_t id, const struct swap *swap)
{
	struct in_addr far = { htonl(0x0a4d0100 + id) };
	struct nlattr *nest;

	nest = mnl_attr_nest_start(header, KDSM_A_NODE_ENTRY);
	put(header, swap, KDSM_A_NODE_ID, 4, &id);
	put(header, swap, KDSM_A_NODE_ADDRESS, 4,
	    id < found.nodes ? &found.address[id] : &far);
	put(header, swap, KDSM_A_NODE_LOCATION,
	    strlen(found.location[id % MAX_NODES]) + 1, found.location[id % MAX_NODES]);
	mnl_attr_nest_end(header, nest);
}

/* Compose a good KDSM_CMD_UP, but with swap, and with in_entry in the last node's entry. */
static struct nlmsghdr *up_message(uint32_t nodes, const struct swap *swap,
				   const struct swap *in_entry)
{
	struct nlmsghdr *header = genl_begin(&genl, buffer, KDSM_CMD_UP, NLM_F_ACK);
	struct nlattr *nest;

	put(header, swap, KDSM_A_CLUSTER, strlen(found.cluster) + 1, found.cluster);
	put(header, swap, KDSM_A_UUID, sizeof(found.uuid), found.uuid);
	put(header, swap, KDSM_A_NODE, 4, &found.node);
	put(header, swap, KDSM_A_PORT, 2, &found.port);
	put(header, swap, KDSM_A_DOMAIN, 4, &found.domain);
	if (swapped(header, KDSM_A_NODES, swap))
		return header;
	nest = mnl_attr_nest_start(header, KDSM_A_NODES);
	for (uint32_t i = 0; i < nodes; i++)
		put_entry(header, i, i == nodes - 1 ? in_entry : NULL);
	mnl_attr_nest_end(header, nest);
	return header;
}

static int status(void)
{
	return genl_simple(&genl, KDSM_CMD_STATUS, NLM_F_ACK);
}

static void remember(void)
{
	const struct nlattr *attr;

	if (status())
		tap_bail("the cluster is not up");
	snprintf(found.cluster, sizeof(found.cluster), "%s",
		 mnl_attr_get_str(genl_attr(&genl, KDSM_A_CLUSTER)));
	memcpy(found.uuid, mnl_attr_get_payload(genl_attr(&genl, KDSM_A_UUID)),
	       sizeof(found.uuid));
	found.node = mnl_attr_get_u32(genl_attr(&genl, KDSM_A_NODE));
	found.nodes = mnl_attr_get_u32(genl_attr(&genl, KDSM_A_NODE_COUNT));
	found.domain = mnl_attr_get_u32(genl_attr(&genl, KDSM_A_DOMAIN));
	found.port = mnl_attr_get_u16(genl_attr(&genl, KDSM_A_PORT));
	if (found.nodes > 1)
		return;
	if (genl_simple(&genl, KDSM_CMD_PEERS, NLM_F_DUMP))
		tap_bail("no peers");
	attr = genl_attr(&genl, KDSM_A_NODE_ADDRESS);
	memcpy(&found.address[0], mnl_attr_get_payload(attr), sizeof(found.address[0]));
	attr = genl_attr(&genl, KDSM_A_NODE_LOCATION);
	snprintf(found.location[0], sizeof(found.location[0]), "%s", mnl_attr_get_str(attr));
}

/* Check that the cluster is as it was at the start. */
static void unchanged(const char *after)
{
	bool same = !status() &&
		!strcmp(found.cluster, mnl_attr_get_str(genl_attr(&genl, KDSM_A_CLUSTER))) &&
		!memcmp(found.uuid, mnl_attr_get_payload(genl_attr(&genl, KDSM_A_UUID)), 16) &&
		found.node == mnl_attr_get_u32(genl_attr(&genl, KDSM_A_NODE)) &&
		found.nodes == mnl_attr_get_u32(genl_attr(&genl, KDSM_A_NODE_COUNT)) &&
		found.port == mnl_attr_get_u16(genl_attr(&genl, KDSM_A_PORT)) &&
		genl_attr(&genl, KDSM_A_MEMORY) && genl_attr(&genl, KDSM_A_DEVICE);

	tap_ok(same, "nothing has changed after %s", after);
}

/* ---- while up ---- */

static void unknown_commands(void)
{
	struct nlmsghdr *header;

	tap_result(genl_simple(&genl, KDSM_CMD_UNSPEC, NLM_F_ACK), -EOPNOTSUPP, "command 0");
	tap_result(genl_simple(&genl, KDSM_CMD_MAX + 1, NLM_F_ACK), -EOPNOTSUPP,
		   "the command after the last");
	tap_result(genl_simple(&genl, 255, NLM_F_ACK), -EOPNOTSUPP, "command 255");
	tap_result(genl_simple(&genl, KDSM_CMD_STATUS, NLM_F_DUMP), -EOPNOTSUPP, "a dump of STATUS");
	tap_ok(genl_simple(&genl, KDSM_CMD_PEERS, NLM_F_ACK), "PEERS without dump: refused");
	header = genl_begin(&genl, buffer, KDSM_CMD_STATUS, NLM_F_ACK);
	header->nlmsg_len -= 2;
	tap_ok(genl_send(&genl, header), "half a generic header: refused");
	unchanged("unknown commands");
}

static void probes(void)
{
	struct nlmsghdr *header;
	uint32_t other = (found.node + 1) % found.nodes;
	const uint32_t bad[] = { found.nodes, KDSM_MAX_NODES, 1U << 31, UINT32_MAX, 0 };
	const uint64_t id_bytes[] = { other, 0 };

	tap_result(genl_simple(&genl, KDSM_CMD_PROBE, NLM_F_ACK), -EINVAL, "PROBE of nobody");
	for (size_t length = 0; length < 12; length++) {
		header = genl_begin(&genl, buffer, KDSM_CMD_PROBE, NLM_F_ACK);
		mnl_attr_put(header, KDSM_A_NODE_ID, length, id_bytes);
		if (length < 4)
			tap_ok(genl_send(&genl, header) < 0,
			       "PROBE, id of %zu bytes: refused", length);
	}
	for (const uint32_t *id = bad; *id; id++) {
		header = genl_begin(&genl, buffer, KDSM_CMD_PROBE, NLM_F_ACK);
		mnl_attr_put_u32(header, KDSM_A_NODE_ID, *id);
		tap_either(genl_send(&genl, header), -EINVAL, -ERANGE, "PROBE of node %u", *id);
		tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	}
	header = genl_begin(&genl, buffer, KDSM_CMD_PROBE, NLM_F_ACK);
	mnl_attr_put_u32(header, KDSM_A_NODE_ID, found.nodes);
	mnl_attr_put_u32(header, KDSM_A_NODE_ID, found.nodes);
	tap_ok(genl_send(&genl, header) < 0, "PROBE, id given twice, both bad: refused");
	if (found.nodes > 1) {
		header = genl_begin(&genl, buffer, KDSM_CMD_PROBE, NLM_F_ACK);
		mnl_attr_put_u32(header, KDSM_A_NODE_ID, other);
		tap_result(genl_send(&genl, header), 0, "PROBE of node %u", other);
	}
	unchanged("probes");
}

/* A dump of what a node reports, with an id and a time limit of any length; NULL: without one */
static int ask_node(uint8_t cmd, const void *id, size_t id_length, const void *timeout,
		    size_t timeout_length)
{
	struct nlmsghdr *header = genl_begin(&genl, buffer, cmd, NLM_F_DUMP);

	if (id)
		mnl_attr_put(header, KDSM_A_NODE_ID, id_length, id);
	if (timeout)
		mnl_attr_put(header, KDSM_A_TIMEOUT, timeout_length, timeout);
	return genl_send(&genl, header);
}

static void reports(void)
{
	static const uint8_t cmds[] = {
		KDSM_CMD_NODES, KDSM_CMD_NODE_REGIONS, KDSM_CMD_NODE_LOCKS, KDSM_CMD_LATENCIES,
	};
	const uint32_t bad[] = { found.nodes, KDSM_MAX_NODES, 1U << 31, UINT32_MAX };
	const uint32_t limits[] = { 0, KDSM_TIMEOUT_MAX + 1, UINT32_MAX };
	const uint32_t shortest = 1, longest = KDSM_TIMEOUT_MAX, last = found.nodes - 1;

	for (size_t i = 0; i < sizeof(cmds); i++) {
		for (int j = 0; i && j < 4; j++)
			tap_either(ask_node(cmds[i], &bad[j], 4, NULL, 0), -EINVAL, -ERANGE,
				   "report %u of node %u", cmds[i], bad[j]);
		for (int j = 0; j < 3; j++)
			tap_result(ask_node(cmds[i], NULL, 0, &limits[j], 4), -ERANGE,
				   "report %u within %u ms", cmds[i], limits[j]);
		tap_ok(ask_node(cmds[i], NULL, 0, &longest, 2) < 0,
		       "report %u, half a time limit: refused", cmds[i]);
		tap_ok(ask_node(cmds[i], &last, 2, NULL, 0) < 0, "report %u, half an id: refused",
		       cmds[i]);
		tap_result(ask_node(cmds[i], &last, 4, &longest, 4), 0, "report %u of the last node",
			   cmds[i]);
		/* In a millisecond the node may have answered or not */
		tap_either(ask_node(cmds[i], &last, 4, &shortest, 4), 0, -ETIMEDOUT,
			   "report %u within a millisecond", cmds[i]);
	}
	tap_result(genl_simple(&genl, KDSM_CMD_EVENT, NLM_F_ACK), -EOPNOTSUPP, "EVENT asked for");
	tap_result(genl_simple(&genl, KDSM_CMD_EVENT, NLM_F_DUMP), -EOPNOTSUPP, "EVENT dumped");
	tap_result(genl_simple(&genl, KDSM_CMD_NODES, NLM_F_DUMP), 0, "NODES");
	tap_ok(genl.messages == (int)found.nodes, "%u messages", found.nodes);
	tap_result(genl_simple(&genl, KDSM_CMD_LATENCIES, NLM_F_DUMP), 0, "LATENCIES");
	tap_ok(genl.messages == KDSM_LATENCY_COUNT, "%u messages", KDSM_LATENCY_COUNT);
	unchanged("reports");
}

/* Change a region; NULL: not this setting. */
static int set_region(const char *name, const uint64_t *lease, const uint64_t *limit)
{
	struct nlmsghdr *header = genl_begin(&genl, buffer, KDSM_CMD_REGION_SET, NLM_F_ACK);

	mnl_attr_put_strz(header, KDSM_A_REGION_NAME, name);
	if (limit)
		mnl_attr_put_u64(header, KDSM_A_REGION_LIMIT, *limit);
	if (lease)
		mnl_attr_put_u64(header, KDSM_A_REGION_LEASE, *lease);
	return genl_send(&genl, header);
}

static int set_lease(const char *name, uint64_t lease)
{
	return set_region(name, &lease, NULL);
}

static int set_limit(const char *name, uint64_t limit)
{
	return set_region(name, NULL, &limit);
}

static int set_both(const char *name, uint64_t lease, uint64_t limit)
{
	return set_region(name, &lease, &limit);
}

/* A setting of a wrong length. */
static int set_length(const char *name, uint16_t setting, size_t length)
{
	struct nlmsghdr *header = genl_begin(&genl, buffer, KDSM_CMD_REGION_SET, NLM_F_ACK);
	const uint64_t bytes = 0;

	mnl_attr_put_strz(header, KDSM_A_REGION_NAME, name);
	mnl_attr_put(header, setting, length, &bytes);
	return genl_send(&genl, header);
}

/* Limits that no node takes, and limits of regions that have none */
static void region_limits(const char *release, const char *strict)
{
	int file = device(O_RDWR);
	struct kdsm_region_open parted = region(file, "set-parted");

	tap_result(call(file, KDSM_IOC_REGION_OPEN, &parted), 0, "partitioned");
	tap_result(set_limit(parted.name, KDSM_LIMIT_MIN), -EOPNOTSUPP, "a limit, partitioned");
	tap_result(set_limit(parted.name, 0), -EOPNOTSUPP, "no limit, partitioned");
	tap_result(set_limit("not-there", 0), -ENOENT, "a limit, a name that is not there");
	for (int i = 0; i < 2; i++) {
		const char *name = i ? release : strict;

		tap_result(set_limit(name, 1), -EINVAL, "a limit of a byte");
		tap_ok(genl.why[0], "with a sentence: %s", genl.why);
		tap_result(set_limit(name, KDSM_LIMIT_MIN - 1), -EINVAL, "a limit too small");
		tap_result(set_limit(name, KDSM_LIMIT_MIN), 0, "the smallest limit");
		tap_result(set_limit(name, 1ULL << 63), 0, "a limit beyond all memory");
		tap_result(set_limit(name, UINT64_MAX), 0, "the largest limit");
	}
	tap_result(set_both(release, 0, KDSM_LIMIT_MIN), -EOPNOTSUPP, "both, of policy release");
	tap_result(set_both(strict, KDSM_LEASE_MAX + 1, 0), -ERANGE, "both, a lease too long");
	tap_result(set_both(strict, 0, 1), -EINVAL, "both, a limit too small");
	tap_result(set_both(strict, 0, KDSM_LIMIT_MIN), 0, "both");
	tap_result(set_limit(release, 0), 0, "no limit");
	tap_result(set_limit(strict, 0), 0, "no limit");
	close(file);
}

static void region_settings(void)
{
	int files[] = { device(O_RDWR), device(O_RDWR) };
	struct kdsm_region_open release = region(files[0], "set-release");
	struct kdsm_region_open strict = region(files[1], "set-strict");
	char name[256];

	release.policy = KDSM_POLICY_RELEASE;
	strict.policy = KDSM_POLICY_STRICT;
	tap_result(call(files[0], KDSM_IOC_REGION_OPEN, &release), 0, "policy release");
	tap_result(call(files[1], KDSM_IOC_REGION_OPEN, &strict), 0, "policy strict");
	tap_result(genl_simple(&genl, KDSM_CMD_REGION_SET, NLM_F_ACK), -EINVAL,
		   "REGION_SET of nothing");
	tap_result(set_region(strict.name, NULL, NULL), -EINVAL, "REGION_SET, nothing but a name");
	for (size_t length = 0; length < 8; length += 4) {
		tap_ok(set_length(strict.name, KDSM_A_REGION_LEASE, length) < 0,
		       "a lease of %zu bytes: refused", length);
		tap_ok(set_length(strict.name, KDSM_A_REGION_LIMIT, length) < 0,
		       "a limit of %zu bytes: refused", length);
	}
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	tap_ok(set_lease(name, 0) < 0, "REGION_SET, a name too long: refused");
	tap_result(set_lease("", 0), -ENOENT, "REGION_SET, no name");
	tap_result(set_lease("not-there", 0), -ENOENT, "REGION_SET, a name that is not there");
	tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	tap_result(set_lease(release.name, 0), -EOPNOTSUPP, "REGION_SET of policy release");
	tap_result(set_lease(strict.name, KDSM_LEASE_MAX + 1), -ERANGE, "a lease too long");
	tap_result(set_lease(strict.name, UINT64_MAX), -ERANGE, "the longest lease");
	tap_result(set_lease(strict.name, KDSM_LEASE_MAX), 0, "a lease of a second");
	tap_result(set_lease(strict.name, 0), 0, "no lease");
	region_limits(release.name, strict.name);
	close(files[0]);
	close(files[1]);
	tap_result(set_lease(strict.name, 0), -ENOENT, "REGION_SET when it is gone");
	tap_result(set_limit(release.name, 0), -ENOENT, "REGION_SET of a limit when it is gone");
	unchanged("settings");
}

/* Add or remove a node, with attributes that may be malformed; length 0: without address */
static int change_node(uint8_t cmd, uint32_t id, const void *address, size_t length,
		       const char *location)
{
	struct nlmsghdr *header = genl_begin(&genl, buffer, cmd, NLM_F_ACK);

	mnl_attr_put_u32(header, KDSM_A_NODE_ID, id);
	if (length)
		mnl_attr_put(header, KDSM_A_NODE_ADDRESS, length, address);
	if (location)
		mnl_attr_put_strz(header, KDSM_A_NODE_LOCATION, location);
	return genl_send(&genl, header);
}

static void node_changes(void)
{
	const uint8_t good[16] = { 10, 77, 9, 9 }, zero[16] = { 0 };
	const uint8_t many[16] = { 0xff, 0x02, [15] = 1 };
	const uint32_t next = found.nodes;
	char location[KDSM_LOCATION_SIZE + 1];

	tap_result(genl_simple(&genl, KDSM_CMD_NODE_ADD, NLM_F_ACK), -EINVAL, "NODE_ADD of nothing");
	tap_result(genl_simple(&genl, KDSM_CMD_NODE_REMOVE, NLM_F_ACK), -EINVAL, "NODE_REMOVE of nothing");
	for (size_t length = 0; length < 18; length++)
		if (length != 4 && length != 16)
			tap_ok(change_node(KDSM_CMD_NODE_ADD, next, good, length, NULL) < 0,
			       "NODE_ADD, an address of %zu bytes: refused", length);
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, zero, 4, NULL), -EINVAL, "NODE_ADD, 0.0.0.0");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, zero, 16, NULL), -EINVAL, "NODE_ADD, ::");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, many, 16, NULL), -EINVAL, "NODE_ADD, ff02::1");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, "\xe0\0\0\1", 4, NULL), -EINVAL,
		   "NODE_ADD, 224.0.0.1");
	tap_ok(strstr(genl.why, "of one machine"), "with a sentence: %s", genl.why);
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, "\xff\xff\xff\xff", 4, NULL), -EINVAL,
		   "NODE_ADD, 255.255.255.255");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, good, 16, NULL), -EAFNOSUPPORT,
		   "NODE_ADD, another kind of address");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next, good, 4, "\033"), -EINVAL,
		   "NODE_ADD, an escape in the location");
	memset(location, 'a', sizeof(location));
	location[sizeof(location) - 1] = '\0';
	tap_ok(change_node(KDSM_CMD_NODE_ADD, next, good, 4, location) < 0,
	       "NODE_ADD, a location too long: refused");
	tap_result(change_node(KDSM_CMD_NODE_ADD, next + 1, good, 4, NULL), -EINVAL, "NODE_ADD, a gap");
	tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	tap_either(change_node(KDSM_CMD_NODE_ADD, 0, good, 4, NULL), -EINVAL, -EEXIST, "NODE_ADD of node 0");
	tap_result(change_node(KDSM_CMD_NODE_ADD, KDSM_MAX_NODES, good, 4, NULL), -ERANGE,
		   "NODE_ADD of node 1024");
	tap_result(change_node(KDSM_CMD_NODE_REMOVE, UINT32_MAX, NULL, 0, NULL), -ERANGE,
		   "NODE_REMOVE of an absurd node");
	tap_result(change_node(KDSM_CMD_NODE_REMOVE, found.node, NULL, 0, NULL), -EINVAL,
		   "NODE_REMOVE of this node");
	tap_result(change_node(KDSM_CMD_NODE_REMOVE, 0, NULL, 0, NULL), -EINVAL, "NODE_REMOVE of node 0");
	unchanged("nodes that cannot be added or removed");
	/* Nodes that run this program at the same time would disturb each other. */
	if (found.nodes > 1)
		return;
	tap_result(change_node(KDSM_CMD_NODE_ADD, 1, &found.address[0], 4, NULL), -EADDRINUSE,
		   "NODE_ADD, the address of this node");
	for (int i = 0; i < 3; i++) {
		tap_result(change_node(KDSM_CMD_NODE_ADD, 1, good, 4, "a"), 0, "NODE_ADD");
		tap_result(change_node(KDSM_CMD_NODE_ADD, 1, good, 4, "a"), 0, "NODE_ADD again");
		tap_result(change_node(KDSM_CMD_NODE_ADD, 1, good, 4, "b"), -EEXIST, "NODE_ADD elsewhere");
		tap_result(change_node(KDSM_CMD_NODE_REMOVE, 1, NULL, 0, NULL), 0, "NODE_REMOVE");
		tap_result(change_node(KDSM_CMD_NODE_REMOVE, 1, NULL, 0, NULL), 0, "NODE_REMOVE again");
	}
	unchanged("nodes that came and went");
}

struct request {
	uint8_t cmd;
	uint16_t flags;
};

static int ask(void *data)
{
	const struct request *request = data;
	struct genl own;
	char bytes[256];
	struct nlmsghdr *header;

	genl_open(&own);
	header = genl_begin(&own, bytes, request->cmd, request->flags);
	if (request->cmd == KDSM_CMD_PROBE)
		mnl_attr_put_u32(header, KDSM_A_NODE_ID, 0);
	return genl_send(&own, header);
}

static void without_privilege(void)
{
	struct request request = { KDSM_CMD_UP, NLM_F_ACK };

	tap_result(as_nobody(ask, &request), -EPERM, "UP by anybody");
	request.cmd = KDSM_CMD_DOWN;
	tap_result(as_nobody(ask, &request), -EPERM, "DOWN by anybody");
	request.cmd = KDSM_CMD_PROBE;
	tap_result(as_nobody(ask, &request), -EPERM, "PROBE by anybody");
	request.cmd = KDSM_CMD_REGION_SET;
	tap_result(as_nobody(ask, &request), -EPERM, "REGION_SET by anybody");
	request.cmd = KDSM_CMD_NODE_ADD;
	tap_result(as_nobody(ask, &request), -EPERM, "NODE_ADD by anybody");
	request.cmd = KDSM_CMD_NODE_REMOVE;
	tap_result(as_nobody(ask, &request), -EPERM, "NODE_REMOVE by anybody");
	request.cmd = KDSM_CMD_STATUS;
	tap_result(as_nobody(ask, &request), 0, "STATUS by anybody");
	request = (struct request){ KDSM_CMD_STATS, NLM_F_DUMP };
	tap_result(as_nobody(ask, &request), 0, "STATS by anybody");
	request.cmd = KDSM_CMD_REGIONS;
	tap_result(as_nobody(ask, &request), 0, "REGIONS by anybody");
	request.cmd = KDSM_CMD_LATENCIES;
	tap_result(as_nobody(ask, &request), 0, "LATENCIES by anybody");
	request.cmd = KDSM_CMD_NODES;
	tap_result(as_nobody(ask, &request), -EPERM, "NODES by anybody");
	request.cmd = KDSM_CMD_NODE_REGIONS;
	tap_result(as_nobody(ask, &request), -EPERM, "NODE_REGIONS by anybody");
	request.cmd = KDSM_CMD_NODE_LOCKS;
	tap_result(as_nobody(ask, &request), -EPERM, "NODE_LOCKS by anybody");
	unchanged("attempts without privilege");
}

static void down_while_busy(void)
{
	struct kdsm_region_open arg;
	int file = device(O_RDWR), error;
	char *at;

	arg = region(file, "netlink");
	error = call(file, KDSM_IOC_REGION_OPEN, &arg);
	tap_result(error, 0, "REGION_OPEN");
	tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), -EBUSY, "DOWN while a file is bound");
	tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	unchanged("DOWN in vain");
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
	close(file);
	tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), -EBUSY, "DOWN while it is mapped");
	unchanged("DOWN in vain");
	munmap(at, 4096);
}

/* Dumps that are begun and never read do not disturb later dumps. */
static void dumps(void)
{
	static const uint8_t cmds[] = {
		KDSM_CMD_PEERS, KDSM_CMD_STATS, KDSM_CMD_REGIONS, KDSM_CMD_NODES,
		KDSM_CMD_LATENCIES,
	};
	char bytes[256];

	for (int i = 0; i < 300; i++) {
		struct nlmsghdr *header;
		struct genl own;

		genl_open(&own);
		header = genl_begin(&own, bytes, cmds[i % 5], NLM_F_DUMP);
		if (mnl_socket_sendto(own.socket, header, header->nlmsg_len) < 0)
			tap_bail("send: %s", strerror(errno));
		genl_close(&own);
	}
	for (int i = 0; i < 5; i++)
		tap_result(genl_simple(&genl, cmds[i], NLM_F_DUMP), 0,
			   "dump %u after dumps that nobody read", cmds[i]);
	tap_result(genl_simple(&genl, KDSM_CMD_PEERS, NLM_F_DUMP), 0, "PEERS");
	tap_ok(genl.messages == (int)found.nodes, "%u messages", found.nodes);
	unchanged("dumps");
}

/* ---- while down ---- */

static void bad_up(const char *what, const struct nlmsghdr *header, int expected)
{
	int got = genl_send(&genl, header);

	if (expected)
		tap_result(got, expected, "UP, %s", what);
	else
		tap_ok(got < 0, "UP, %s: refused with %s", what, tap_error(got));
	if (got && !genl.why[0])
		tap_ok(false, "with a sentence");
	if (!got)
		genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK);
}

static void bad_attributes(void)
{
	static const char long_name[] =
		"0123456789012345678901234567890123456789012345678901234567890123456789";
	const uint32_t one = 1, max = UINT32_MAX, far = htonl(0x0a4d0163);
	const uint64_t zero[4] = { 0 };
	const struct {
		const char *what;
		bool in_entry;
		struct swap swap;
		int expected;		/* 0: any error */
	} cases[] = {
		{ "no name", false, { KDSM_A_CLUSTER, NULL, 0 }, -EINVAL },
		{ "no UUID", false, { KDSM_A_UUID, NULL, 0 }, -EINVAL },
		{ "no own number", false, { KDSM_A_NODE, NULL, 0 }, -EINVAL },
		{ "no nodes", false, { KDSM_A_NODES, NULL, 0 }, -EINVAL },
		{ "name of nothing", false, { KDSM_A_CLUSTER, "", 0 }, 0 },
		{ "name empty", false, { KDSM_A_CLUSTER, "", 1 }, -EINVAL },
		{ "name without end", false, { KDSM_A_CLUSTER, long_name, 64 }, 0 },
		{ "name too long", false, { KDSM_A_CLUSTER, long_name, sizeof(long_name) }, 0 },
		{ "name with newline", false, { KDSM_A_CLUSTER, "a\nb", 4 }, -EINVAL },
		{ "name with escape", false, { KDSM_A_CLUSTER, "\033[2J", 5 }, -EINVAL },
		{ "UUID of 15 bytes", false, { KDSM_A_UUID, zero, 15 }, 0 },
		{ "UUID of 17 bytes", false, { KDSM_A_UUID, zero, 17 }, 0 },
		{ "UUID of nothing", false, { KDSM_A_UUID, zero, 0 }, 0 },
		{ "own number of 2 bytes", false, { KDSM_A_NODE, zero, 2 }, 0 },
		{ "own number too large", false, { KDSM_A_NODE, &one, 4 }, -EINVAL },
		{ "own number absurd", false, { KDSM_A_NODE, &max, 4 }, 0 },
		{ "port 0", false, { KDSM_A_PORT, zero, 2 }, 0 },
		{ "port of 1 byte", false, { KDSM_A_PORT, &one, 1 }, 0 },
		{ "domain unknown", false, { KDSM_A_DOMAIN, &(uint32_t){ 4 }, 4 }, 0 },
		{ "domain absurd", false, { KDSM_A_DOMAIN, &max, 4 }, 0 },
		{ "domain of 2 bytes", false, { KDSM_A_DOMAIN, &one, 2 }, 0 },
		{ "domain that the device cannot do", false,
		  { KDSM_A_DOMAIN, &(uint32_t){ KDSM_DOMAIN_GLOB }, 4 }, -EOPNOTSUPP },
		{ "nodes empty", false, { KDSM_A_NODES, "", 0 }, 0 },
		{ "nodes too short", false, { KDSM_A_NODES, "abc", 3 }, 0 },
		{ "nodes of length 0", false, { KDSM_A_NODES, zero, 8 }, 0 },
		{ "nodes that overrun", false, { KDSM_A_NODES, "\xff\xff\x0a\0aaaa", 8 }, 0 },
		{ "nodes of another kind", false, { KDSM_A_NODES, "\x08\0\x63\0aaaa", 8 }, 0 },
		{ "an entry that overruns", false,
		  { KDSM_A_NODES, "\x08\0\x0a\0\x40\0\x0b\0", 8 }, 0 },
		{ "an entry of nothing", false, { KDSM_A_NODES, "\x04\0\x0a\0", 4 }, 0 },
		{ "entry without number", true, { KDSM_A_NODE_ID, NULL, 0 }, -EINVAL },
		{ "entry without address", true, { KDSM_A_NODE_ADDRESS, NULL, 0 }, -EINVAL },
		{ "entry's number wrong", true, { KDSM_A_NODE_ID, &one, 4 }, -EINVAL },
		{ "entry's number absurd", true, { KDSM_A_NODE_ID, &max, 4 }, 0 },
		{ "entry's number of 3 bytes", true, { KDSM_A_NODE_ID, zero, 3 }, 0 },
		{ "address of nothing", true, { KDSM_A_NODE_ADDRESS, zero, 0 }, 0 },
		{ "address of 3 bytes", true, { KDSM_A_NODE_ADDRESS, zero, 3 }, 0 },
		{ "address of 5 bytes", true, { KDSM_A_NODE_ADDRESS, zero, 5 }, 0 },
		{ "address of 15 bytes", true, { KDSM_A_NODE_ADDRESS, zero, 15 }, 0 },
		{ "address of 17 bytes", true, { KDSM_A_NODE_ADDRESS, zero, 17 }, 0 },
		{ "address 0.0.0.0", true, { KDSM_A_NODE_ADDRESS, zero, 4 }, 0 },
		{ "address ::", true, { KDSM_A_NODE_ADDRESS, zero, 16 }, 0 },
		{ "address of another machine", true, { KDSM_A_NODE_ADDRESS, &far, 4 }, -ENODEV },
		{ "location without end", true, { KDSM_A_NODE_LOCATION, long_name, 64 }, 0 },
		{ "location too long", true,
		  { KDSM_A_NODE_LOCATION, long_name, sizeof(long_name) }, 0 },
		{ "location with bell", true, { KDSM_A_NODE_LOCATION, "\a", 2 }, -EINVAL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct swap *swap = &cases[i].swap;
		struct nlmsghdr *header;

		if (cases[i].in_entry)
			header = up_message(1, NULL, swap);
		else
			header = up_message(1, swap, NULL);
		bad_up(cases[i].what, header, cases[i].expected);
	}
}

static void bad_tables(void)
{
	struct nlmsghdr *header;
	uint32_t id = 0;

	bad_up("too many nodes", up_message(KDSM_MAX_NODES + 1, NULL, NULL), -EINVAL);
	bad_up("an address twice", up_message(2, NULL, &(struct swap){
		KDSM_A_NODE_ADDRESS, &found.address[0], 4 }), -EINVAL);
	bad_up("a number twice", up_message(2, NULL, &(struct swap){
		KDSM_A_NODE_ID, &id, 4 }), -EINVAL);
	id = 2;
	bad_up("a gap", up_message(2, NULL, &(struct swap){
		KDSM_A_NODE_ID, &id, 4 }), -EINVAL);
	header = up_message(1, NULL, NULL);
	mnl_attr_put(header, KDSM_A_NODES, 0, "");
	bad_up("nodes twice, the second empty", header, 0);
	header = up_message(1, NULL, NULL);
	mnl_attr_put(header, KDSM_A_UUID, 3, "abc");
	bad_up("UUID twice, the second short", header, 0);
	header = up_message(1, NULL, NULL);
	memset(mnl_nlmsg_get_payload_tail(header), 0xff, 8);
	header->nlmsg_len += 8;
	bad_up("junk behind the last attribute", header, 0);
	/* Cut the message off at many lengths, so that an attribute is missing or incomplete. */
	for (uint32_t length = up_message(1, NULL, NULL)->nlmsg_len - 1;
	     length >= NLMSG_HDRLEN; length -= 3) {
		int got;

		header = up_message(1, NULL, NULL);
		header->nlmsg_len = length;
		got = genl_send(&genl, header);
		if (got)
			continue;
		tap_ok(false, "UP, cut off after %u bytes: refused", length);
		genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK);
	}
	tap_ok(true, "UP, cut off anywhere");
}

static void nothing_works(int file)
{
	struct kdsm_info info = { .argsz = sizeof(info) };
	struct kdsm_region_destroy destroy = { .argsz = sizeof(destroy), .name = "x" };
	struct kdsm_region_open arg = {
		.argsz = sizeof(arg), .name = "x", .flags = KDSM_REGION_CREATE,
		.size = 4096, .policy = KDSM_POLICY_PARTITIONED,
	};
	struct nlmsghdr *header;

	tap_result(status(), -ENETDOWN, "STATUS while down");
	tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), -ENETDOWN, "DOWN while down");
	header = genl_begin(&genl, buffer, KDSM_CMD_PROBE, NLM_F_ACK);
	mnl_attr_put_u32(header, KDSM_A_NODE_ID, 0);
	tap_result(genl_send(&genl, header), -ENETDOWN, "PROBE while down");
	tap_either(genl_simple(&genl, KDSM_CMD_PEERS, NLM_F_DUMP), -ENETDOWN, 0, "PEERS while down");
	tap_either(genl_simple(&genl, KDSM_CMD_STATS, NLM_F_DUMP), -ENETDOWN, 0, "STATS while down");
	tap_either(genl_simple(&genl, KDSM_CMD_REGIONS, NLM_F_DUMP), -ENETDOWN, 0, "REGIONS while down");
	tap_result(call(file, KDSM_IOC_INFO, &info), -ENETDOWN, "INFO while down");
	tap_result(call(file, KDSM_IOC_REGION_OPEN, &arg), -ENETDOWN, "REGION_OPEN while down");
	tap_result(call(file, KDSM_IOC_REGION_DESTROY, &destroy), -ENETDOWN,
		   "REGION_DESTROY while down");
}

/* The module takes a key only from a keyring of the caller, and only one of the right length. */
static void keys(void)
{
	char path[256], error[512], name[64] = KDSM_KEY_PREFIX;
	const uint8_t bytes[KDSM_KEY_SIZE + 1] = { 0 };
	long key;

	uuid_unparse_lower(found.uuid, name + strlen(KDSM_KEY_PREFIX));
	tap_result(genl_send(&genl, up_message(1, NULL, NULL)), -ENOKEY, "UP, no key in a keyring");
	tap_ok(genl.why[0], "with a sentence: %s", genl.why);
	for (size_t length = KDSM_KEY_SIZE - 1; length <= KDSM_KEY_SIZE + 1; length += 2) {
		key = syscall(SYS_add_key, KDSM_KEY_TYPE, name, bytes, length,
			      KEY_SPEC_PROCESS_KEYRING);
		tap_ok(key >= 0, "a key of %zu bytes", length);
		tap_ok(genl_send(&genl, up_message(1, NULL, NULL)) < 0 && genl.why[0],
		       "is refused: %s", genl.why);
	}
	snprintf(path, sizeof(path), "%s.key", getenv("KDSM_CONFIG"));
	if (key_file_load(path, found.uuid, error, sizeof(error)))
		tap_bail("%s", error);
}

static void while_down(void)
{
	int file = device(O_RDWR);
	uint32_t domain = found.domain;

	tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), 0,
		   "DOWN while a file is open, but not bound");
	nothing_works(file);
	keys();
	bad_attributes();
	bad_tables();
	nothing_works(file);
	found.domain = KDSM_DOMAIN_HCA;
	tap_result(genl_send(&genl, up_message(1, NULL, NULL)), 0, "UP in domain hca");
	tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), 0, "DOWN");
	found.domain = domain;
	for (int i = 0; i < 3; i++) {
		tap_result(genl_send(&genl, up_message(1, NULL, NULL)), 0, "UP after all that");
		unchanged("that");
		tap_result(genl_send(&genl, up_message(1, NULL, NULL)), -EALREADY, "UP again");
		unchanged("that");
		if (i < 2)
			tap_result(genl_simple(&genl, KDSM_CMD_DOWN, NLM_F_ACK), 0, "DOWN");
	}
	close(file);
}

int main(void)
{
	genl_open(&genl);
	remember();
	unknown_commands();
	probes();
	reports();
	region_settings();
	node_changes();
	without_privilege();
	dumps();
	down_while_busy();
	if (found.nodes == 1)
		while_down();
	else
		tap_ok(true, "UP and DOWN # SKIP they need a cluster of one node");
	return tap_end();
}
