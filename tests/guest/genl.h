/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netlink messages to the module, as the tests need them: they send any bytes, and keep the
 * error, the module's sentence, and the first reply.
 */
#ifndef KDSM_TESTS_GENL_H
#define KDSM_TESTS_GENL_H

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <kdsm/uapi_netlink.h>

#include "tap.h"

struct genl {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t sequence;
	char why[256];			/* text of the last extended acknowledgment */
	char reply[8192];		/* first message of the last answer */
	bool replied;
	int messages;			/* messages of the last answer */
};

static inline void genl_why(struct genl *genl, const struct nlmsghdr *header, size_t offset)
{
	const struct nlattr *attr;

	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	mnl_attr_for_each(attr, header, offset)
		if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG)
			snprintf(genl->why, sizeof(genl->why), "%s",
				 mnl_attr_get_str(attr));
}

/* Read answers until an acknowledgment or the end of a dump, and return its errno. */
static inline int genl_receive(struct genl *genl)
{
	char buffer[32768];

	genl->why[0] = '\0';
	genl->replied = false;
	genl->messages = 0;
	for (;;) {
		int length = mnl_socket_recvfrom(genl->socket, buffer, sizeof(buffer));
		struct nlmsghdr *header = (struct nlmsghdr *)buffer;

		if (length < 0)
			return -errno;
		for (; mnl_nlmsg_ok(header, length); header = mnl_nlmsg_next(header, &length)) {
			const struct nlmsgerr *error = mnl_nlmsg_get_payload(header);

			if (header->nlmsg_type == NLMSG_ERROR) {
				genl_why(genl, header, sizeof(*error));
				return error->error;
			}
			if (header->nlmsg_type == NLMSG_DONE) {
				genl_why(genl, header, sizeof(int));
				return *(int *)mnl_nlmsg_get_payload(header);
			}
			genl->messages++;
			if (genl->replied || header->nlmsg_len > sizeof(genl->reply))
				continue;
			memcpy(genl->reply, header, header->nlmsg_len);
			genl->replied = true;
		}
	}
}

/* Send any bytes; the length in the message's own header may be wrong. */
static inline int genl_send_raw(struct genl *genl, const void *bytes, size_t length)
{
	if (mnl_socket_sendto(genl->socket, bytes, length) < 0)
		return -errno;
	return genl_receive(genl);
}

static inline int genl_send(struct genl *genl, const struct nlmsghdr *header)
{
	return genl_send_raw(genl, header, header->nlmsg_len);
}

static inline struct nlmsghdr *genl_begin(struct genl *genl, void *buffer, uint8_t cmd,
					  uint16_t flags)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *extra;

	header->nlmsg_type = genl->family;
	header->nlmsg_flags = NLM_F_REQUEST | flags;
	header->nlmsg_seq = ++genl->sequence;
	extra = mnl_nlmsg_put_extra_header(header, sizeof(*extra));
	extra->cmd = cmd;
	extra->version = KDSM_GENL_VERSION;
	return header;
}

static inline int genl_simple(struct genl *genl, uint8_t cmd, uint16_t flags)
{
	char buffer[256];

	return genl_send(genl, genl_begin(genl, buffer, cmd, flags));
}

/* Return an attribute of the first reply, or NULL if the reply lacks it. */
static inline const struct nlattr *genl_attr(struct genl *genl, uint16_t type)
{
	const struct nlmsghdr *header = (const void *)genl->reply;
	const struct nlattr *attr;

	if (!genl->replied)
		return NULL;
	mnl_attr_for_each(attr, header, GENL_HDRLEN)
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

static inline void genl_open(struct genl *genl)
{
	char buffer[256];
	struct nlmsghdr *header;
	int one = 1;

	memset(genl, 0, sizeof(*genl));
	genl->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!genl->socket || mnl_socket_bind(genl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		tap_bail("netlink: %s", strerror(errno));
	mnl_socket_setsockopt(genl->socket, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(genl->socket, NETLINK_CAP_ACK, &one, sizeof(one));
	genl->family = GENL_ID_CTRL;
	header = genl_begin(genl, buffer, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, KDSM_GENL_NAME);
	if (genl_send(genl, header) || !genl_attr(genl, CTRL_ATTR_FAMILY_ID))
		tap_bail("there is no netlink family kdsm");
	genl->family = mnl_attr_get_u16(genl_attr(genl, CTRL_ATTR_FAMILY_ID));
}

static inline void genl_close(struct genl *genl)
{
	mnl_socket_close(genl->socket);
}

#endif /* KDSM_TESTS_GENL_H */
