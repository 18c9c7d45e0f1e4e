// SPDX-License-Identifier: GPL-2.0
/*
 * What the module counts on this node: of a coherent region, and of operations on
 * all peers together. Asked by generic netlink, as kdsmctl does.
 */
#include <errno.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include "coherent.h"

struct reading {
	const char *region;
	bool found;
	uint16_t family;
	struct counters *counters;
};

/* Numbers of a nest: the attribute is 1 + the index. Those of several add up. */
struct numbers {
	uint64_t *values;
	unsigned int count;
};

static int one_number(const struct nlattr *attr, void *data)
{
	unsigned int i = mnl_attr_get_type(attr) - 1;
	struct numbers *numbers = data;

	if (i < numbers->count && mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		numbers->values[i] += mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

static int one_region(const struct nlmsghdr *header, void *data)
{
	const struct nlattr *attr, *stats = NULL;
	struct reading *reading = data;
	struct numbers numbers = { reading->counters->region, KDSM_COHERENCE_COUNT };
	const char *name = "";

	mnl_attr_for_each(attr, header, GENL_HDRLEN) {
		if (mnl_attr_get_type(attr) == KDSM_A_REGION_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			name = mnl_attr_get_str(attr);
		else if (mnl_attr_get_type(attr) == KDSM_A_REGION_STATS)
			stats = attr;
	}
	if (strcmp(name, reading->region) || !stats || reading->found)
		return MNL_CB_OK;
	reading->found = true;
	return mnl_attr_parse_nested(stats, one_number, &numbers);
}

static int one_peer(const struct nlmsghdr *header, void *data)
{
	struct reading *reading = data;
	struct numbers numbers = { reading->counters->remote, KDSM_STAT_COUNT };
	const struct nlattr *attr;

	mnl_attr_for_each(attr, header, GENL_HDRLEN)
		if (mnl_attr_get_type(attr) == KDSM_A_STATS &&
		    mnl_attr_parse_nested(attr, one_number, &numbers) < 0)
			return MNL_CB_ERROR;
	return MNL_CB_OK;
}

static int one_family(const struct nlmsghdr *header, void *data)
{
	struct reading *reading = data;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, header, GENL_HDRLEN)
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
		    mnl_attr_validate(attr, MNL_TYPE_U16) >= 0)
			reading->family = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

/* One request, name NULL: a dump; until its end. -errno */
static int ask(struct mnl_socket *socket, uint16_t type, uint8_t cmd, const char *name,
	       mnl_cb_t reply, struct reading *reading)
{
	static unsigned int sequence;
	char buffer[32768];
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *genl;
	ssize_t length;
	int ret = MNL_CB_OK;

	header->nlmsg_type = type;
	header->nlmsg_flags = NLM_F_REQUEST | (name ? NLM_F_ACK : NLM_F_DUMP);
	header->nlmsg_seq = ++sequence;
	genl = mnl_nlmsg_put_extra_header(header, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	if (name)
		mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, name);
	if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0)
		return -errno;
	while (ret > MNL_CB_STOP) {
		length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		ret = mnl_cb_run(buffer, length, sequence,
				 mnl_socket_get_portid(socket), reply, reading);
	}
	return ret < 0 ? -errno : 0;
}

int counters_read(const char *region, struct counters *counters)
{
	struct reading reading = { .region = region, .counters = counters };
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	int ret;

	memset(counters, 0, sizeof(*counters));
	if (!socket)
		return -errno;
	ret = mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
	if (!ret)
		ret = ask(socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, KDSM_GENL_NAME,
			  one_family, &reading);
	if (!ret)
		ret = ask(socket, reading.family, KDSM_CMD_REGIONS, NULL, one_region, &reading);
	if (!ret)
		ret = ask(socket, reading.family, KDSM_CMD_STATS, NULL, one_peer, &reading);
	mnl_socket_close(socket);
	return ret ? ret : reading.found ? 0 : -ENOENT;
}

void counters_add(struct counters *sum, const struct counters *before,
		  const struct counters *after)
{
	unsigned int i;

	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		sum->region[i] += after->region[i] - before->region[i];
	for (i = 0; i < KDSM_STAT_COUNT; i++)
		sum->remote[i] += after->remote[i] - before->remote[i];
}
