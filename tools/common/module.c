// SPDX-License-Identifier: GPL-2.0
/*
 * The module's generic netlink family, see module.h. Nothing here knows the meaning of a
 * command, but module_complain() explains a few errors.
 */
#include <err.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/genetlink.h>

#include "common/module.h"

struct module {
	struct mnl_socket *socket;
	uint16_t family;
	uint32_t events;	/* id of the multicast group KDSM_GENL_EVENTS; 0: there is none */
	uint32_t sequence;
	uint32_t port;
	char why[256];		/* text of the last error's extended acknowledgment */
	char request[MODULE_MAX_REQUEST];
};

struct receiver {
	struct module *module;
	void (*reply)(attrs at, void *data);
	void *data;
};

/* Keep the module's text about an error. Attributes begin at this offset of the payload. */
static void remember_why(struct module *module, const struct nlmsghdr *header,
			 size_t offset)
{
	const struct nlattr *attr;

	module->why[0] = '\0';
	if (!(header->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	mnl_attr_for_each(attr, header, offset) {
		if (mnl_attr_get_type(attr) != NLMSGERR_ATTR_MSG ||
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) < 0)
			continue;
		snprintf(module->why, sizeof(module->why), "%s",
			 mnl_attr_get_str(attr));
	}
}

static int on_error(const struct nlmsghdr *header, void *data)
{
	struct receiver *receiver = data;
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(header);
	size_t offset = sizeof(*error);

	if (header->nlmsg_len < mnl_nlmsg_size(sizeof(*error))) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	if (!(header->nlmsg_flags & NLM_F_CAPPED))
		offset += mnl_nlmsg_get_payload_len(&error->msg);
	remember_why(receiver->module, header, offset);
	errno = -error->error;
	return error->error ? MNL_CB_ERROR : MNL_CB_STOP;
}

static int on_done(const struct nlmsghdr *header, void *data)
{
	struct receiver *receiver = data;
	const int *error = mnl_nlmsg_get_payload(header);

	if (header->nlmsg_len < mnl_nlmsg_size(sizeof(*error)) || *error >= 0)
		return MNL_CB_STOP;
	remember_why(receiver->module, header, sizeof(*error));
	errno = -*error;
	return MNL_CB_ERROR;
}

/* Not const, because mnl_cb_run2() takes a pointer without const. */
static mnl_cb_t control[] = {
	[NLMSG_ERROR] = on_error,
	[NLMSG_DONE] = on_done,
};

struct parsed {
	const struct nlattr *at[KDSM_A_MAX + 1];
};

static int on_attr(const struct nlattr *attr, void *data)
{
	struct parsed *parsed = data;

	/* A newer module may send attributes that this program does not know: skip them. */
	if (mnl_attr_type_valid(attr, KDSM_A_MAX) > 0)
		parsed->at[mnl_attr_get_type(attr)] = attr;
	return MNL_CB_OK;
}

static int on_message(const struct nlmsghdr *header, void *data)
{
	struct receiver *receiver = data;
	struct parsed parsed = { 0 };

	if (header->nlmsg_len < mnl_nlmsg_size(GENL_HDRLEN)) {
		errno = EBADMSG;
		return MNL_CB_ERROR;
	}
	mnl_attr_parse(header, GENL_HDRLEN, on_attr, &parsed);
	if (receiver->reply)
		receiver->reply(parsed.at, receiver->data);
	return MNL_CB_OK;
}

/* Send module->request, and receive until the end of the answer or an error. */
static int talk(struct module *module, mnl_cb_t message, struct receiver *receiver)
{
	struct nlmsghdr *header = (struct nlmsghdr *)module->request;
	char buffer[32768];
	int result = 0;

	module->why[0] = '\0';
	if (mnl_socket_sendto(module->socket, header, header->nlmsg_len) < 0)
		return -errno;
	do {
		ssize_t length = mnl_socket_recvfrom(module->socket, buffer,
						     sizeof(buffer));

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		errno = 0;
		result = mnl_cb_run2(buffer, length, module->sequence,
				     module->port, message, receiver, control,
				     MNL_ARRAY_SIZE(control));
	} while (result > MNL_CB_STOP);
	return result < 0 ? -errno : 0;
}

static struct nlmsghdr *begin(struct module *module, uint16_t family,
			      uint8_t cmd, uint8_t version)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(module->request);
	struct genlmsghdr *genl;

	header->nlmsg_type = family;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = ++module->sequence;
	genl = mnl_nlmsg_put_extra_header(header, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return header;
}

struct nlmsghdr *module_begin(struct module *module, enum kdsm_cmd cmd)
{
	return begin(module, module->family, cmd, KDSM_GENL_VERSION);
}

int module_send(struct module *module, void (*reply)(attrs at, void *data), void *data)
{
	struct receiver receiver = { module, reply, data };

	return talk(module, on_message, &receiver);
}

int module_list(struct module *module, void (*reply)(attrs at, void *data), void *data)
{
	struct nlmsghdr *header = (struct nlmsghdr *)module->request;
	struct receiver receiver = { module, reply, data };

	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	return talk(module, on_message, &receiver);
}

int module_dump(struct module *module, enum kdsm_cmd cmd,
		void (*reply)(attrs at, void *data), void *data)
{
	module_begin(module, cmd);
	return module_list(module, reply, data);
}

int module_join(struct module *module)
{
	int group = module->events;

	if (!group)
		return -EOPNOTSUPP;
	return mnl_socket_setsockopt(module->socket, NETLINK_ADD_MEMBERSHIP, &group,
				     sizeof(group)) < 0 ? -errno : 0;
}

int module_receive(struct module *module, void (*reply)(attrs at, void *data), void *data)
{
	struct receiver receiver = { module, reply, data };
	char buffer[32768];
	ssize_t length;

	do
		length = mnl_socket_recvfrom(module->socket, buffer, sizeof(buffer));
	while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	/* Messages of a group have sequence number and port 0 */
	errno = 0;
	return mnl_cb_run(buffer, length, 0, 0, on_message, &receiver) < 0 ? -errno : 0;
}

/* ---- the family ---- */

struct group {
	char name[GENL_NAMSIZ];
	uint32_t id;
};

static int on_group_attr(const struct nlattr *attr, void *data)
{
	struct group *group = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_NAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		snprintf(group->name, sizeof(group->name), "%s", mnl_attr_get_str(attr));
	else if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GRP_ID &&
		 mnl_attr_validate(attr, MNL_TYPE_U32) >= 0)
		group->id = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static int on_group(const struct nlattr *attr, void *data)
{
	struct receiver *receiver = data;
	struct group group = { .id = 0 };

	mnl_attr_parse_nested(attr, on_group_attr, &group);
	if (!strcmp(group.name, KDSM_GENL_EVENTS))
		receiver->module->events = group.id;
	return MNL_CB_OK;
}

static int on_family_attr(const struct nlattr *attr, void *data)
{
	struct receiver *receiver = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_MCAST_GROUPS)
		return mnl_attr_parse_nested(attr, on_group, data);
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    mnl_attr_validate(attr, MNL_TYPE_U16) >= 0)
		receiver->module->family = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static int on_family(const struct nlmsghdr *header, void *data)
{
	return mnl_attr_parse(header, GENL_HDRLEN, on_family_attr, data);
}

static int find_family(struct module *module)
{
	struct receiver receiver = { .module = module };
	struct nlmsghdr *header;

	header = begin(module, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, KDSM_GENL_NAME);
	return talk(module, on_family, &receiver);
}

struct module *module_open(void)
{
	struct module *module = calloc(1, sizeof(*module));
	int one = 1, error;

	if (!module) {
		warnx("out of memory");
		return NULL;
	}
	module->sequence = time(NULL);
	module->socket = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!module->socket ||
	    mnl_socket_bind(module->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		warn("cannot open a netlink socket");
		goto fail;
	}
	module->port = mnl_socket_get_portid(module->socket);
	mnl_socket_setsockopt(module->socket, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(module->socket, NETLINK_CAP_ACK, &one, sizeof(one));
	error = find_family(module);
	if (error == -ENOENT || (!error && !module->family)) {
		if (access("/sys/module/kdsm", F_OK))
			warnx("the kdsm module is not loaded (modprobe kdsm)");
		else
			warnx("the kdsm module is loaded, but not for this network namespace; use the machine's own");
		goto fail;
	}
	if (error) {
		module_complain(module, "find the kdsm module", error);
		goto fail;
	}
	return module;
fail:
	module_close(module);
	return NULL;
}

struct module *module_need(void)
{
	struct module *module = module_open();

	if (!module)
		exit(EXIT_FAILURE);
	return module;
}

void module_close(struct module *module)
{
	if (module->socket)
		mnl_socket_close(module->socket);
	free(module);
}

void module_complain(struct module *module, const char *doing, int error)
{
	/* Print the remedy for errors that the user can mend. */
	if (error == -EPERM)
		warnx("cannot %s without the capability CAP_NET_ADMIN; run it as root", doing);
	else if (error == -ENETDOWN)
		warnx("cannot %s: the cluster is not up (kdsmctl up)", doing);
	else if (module->why[0])
		warnx("cannot %s: %s (%s)", doing, module->why, strerror(-error));
	else
		warnx("cannot %s: %s", doing, strerror(-error));
}

int module_end(struct module *module, const char *doing, int error)
{
	if (error)
		module_complain(module, doing, error);
	module_close(module);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}

uint32_t attr_u32(attrs at, enum kdsm_attr type)
{
	if (!at[type] || mnl_attr_validate(at[type], MNL_TYPE_U32) < 0)
		return 0;
	return mnl_attr_get_u32(at[type]);
}

uint64_t attr_u64(attrs at, enum kdsm_attr type)
{
	if (!at[type] || mnl_attr_validate(at[type], MNL_TYPE_U64) < 0)
		return 0;
	return mnl_attr_get_u64(at[type]);
}

const char *attr_string(attrs at, enum kdsm_attr type)
{
	if (!at[type] || mnl_attr_validate(at[type], MNL_TYPE_NUL_STRING) < 0)
		return "";
	return mnl_attr_get_str(at[type]);
}

struct numbers {
	uint64_t *values;
	unsigned int count;
};

static int on_number(const struct nlattr *attr, void *data)
{
	unsigned int i = mnl_attr_get_type(attr) - 1;
	struct numbers *numbers = data;

	if (i < numbers->count && mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		numbers->values[i] += mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

const char *attr_address(attrs at, enum kdsm_attr type, char *buffer)
{
	const struct nlattr *attr = at[type];
	int family;

	if (!attr)
		return "?";
	family = mnl_attr_get_payload_len(attr) == sizeof(struct in_addr) ? AF_INET : AF_INET6;
	if (family == AF_INET6 && mnl_attr_get_payload_len(attr) != sizeof(struct in6_addr))
		return "?";
	return inet_ntop(family, mnl_attr_get_payload(attr), buffer, INET6_ADDRSTRLEN);
}

void attr_counters(attrs at, enum kdsm_attr type, uint64_t *values, unsigned int count)
{
	struct numbers numbers = { values, count };

	if (at[type])
		mnl_attr_parse_nested(at[type], on_number, &numbers);
}
