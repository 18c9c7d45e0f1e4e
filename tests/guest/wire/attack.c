// SPDX-License-Identifier: GPL-2.0
/*
 * A connection to the module's port from a program, by librdmacm.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <infiniband/verbs.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "../tap.h"
#include "attack.h"

#define RESOLVE_MS	4000
#define SENDS		512

/* ---- keys and proofs ---- */

static void hmac(const struct attack_key *key, const void *data, size_t length,
		 u8 hash[KDSM_PROOF_SIZE])
{
	if (!HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), data, length, hash, NULL))
		tap_bail("HMAC failed");
}

void attack_key_identify(struct attack_key *key)
{
	static const char purpose[] = "kdsm id of key";
	u8 hash[KDSM_PROOF_SIZE];

	hmac(key, purpose, strlen(purpose), hash);
	memcpy(&key->id, hash, sizeof(key->id));
}

void attack_key_read(struct attack_key *key)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s.key", getenv("KDSM_CONFIG"));
	file = fopen(path, "re");
	if (!file)
		tap_bail("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < sizeof(key->bytes); i++)
		if (fscanf(file, "%2hhx", &key->bytes[i]) != 1)
			tap_bail("%s is no key", path);
	fclose(file);
	attack_key_identify(key);
}

void attack_proof(const struct attack *attack, const struct attack_key *key, enum kdsm_role role,
		  u8 proof[KDSM_PROOF_SIZE])
{
	const size_t shown = offsetof(struct kdsm_wire_welcome, proof);
	struct {
		u32 role;
		struct kdsm_wire_hello hello;
		struct kdsm_wire_welcome welcome;
	} __packed text = { role, attack->hello, attack->welcome };

	hmac(key, &text, sizeof(text) - sizeof(text.welcome) + shown, proof);
}

/* ---- connecting ---- */

static int post_receive(struct attack *attack, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)attack->receive + i * KDSM_MESSAGE_SIZE,
		.length = KDSM_MESSAGE_SIZE,
		.lkey = attack->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(attack->id->qp, &wr, &bad);
}

int attack_prepare(struct attack *attack, bool with_receives)
{
	const size_t room = BIG + REPLIES * KDSM_MESSAGE_SIZE;
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = REPLIES,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	attack->send = calloc(1, room);
	if (!attack->send)
		return -ENOMEM;
	attack->receive = attack->send + BIG;
	if (rdma_create_qp(attack->id, NULL, &attr))
		return -errno;
	attack->mr = ibv_reg_mr(attack->id->pd, attack->send, room, IBV_ACCESS_LOCAL_WRITE);
	if (!attack->mr)
		return -errno;
	attack->reposts = with_receives;
	for (unsigned int i = 0; i < (with_receives ? REPLIES : 1); i++)
		post_receive(attack, i);
	return 0;
}

static int refusal(const struct rdma_cm_event *event)
{
	const struct kdsm_wire_refusal *refusal;

	if (!event || event->event != RDMA_CM_EVENT_REJECTED)
		return 0;
	refusal = event->param.conn.private_data;
	if (!refusal || event->param.conn.private_data_len < sizeof(*refusal) ||
	    refusal->magic != KDSM_WIRE_MAGIC)
		return -1;
	return refusal->reason;
}

/* Bind to a port of root, if from has port 0; or to that port. */
static int bind_to(struct attack *attack, struct sockaddr_in from)
{
	static unsigned int last;

	if (from.sin_port)
		return rdma_bind_addr(attack->id, (struct sockaddr *)&from) ? -errno : 0;
	for (int tries = 0; tries < 500; tries++) {
		from.sin_port = htons(600 + last++ % 400);
		if (!rdma_bind_addr(attack->id, (struct sockaddr *)&from))
			return 0;
	}
	return -errno;
}

int attack_connect(struct attack *attack, const struct sockaddr_in *from,
		   const struct sockaddr_in *to, const void *hello, size_t length,
		   bool with_receives)
{
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = length,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 3,
		.rnr_retry_count = 7,
	};
	int error;

	memset(attack, 0, sizeof(*attack));
	if (length)
		memcpy(&attack->hello, hello, length);
	/* Without an event channel the calls below are synchronous. */
	if (rdma_create_id(NULL, &attack->id, NULL, RDMA_PS_TCP))
		return -errno;
	error = bind_to(attack, *from);
	if (error)
		goto close;
	if (rdma_resolve_addr(attack->id, NULL, (struct sockaddr *)to, RESOLVE_MS) ||
	    rdma_resolve_route(attack->id, RESOLVE_MS)) {
		error = -errno;
		goto close;
	}
	error = attack_prepare(attack, with_receives);
	if (error)
		goto close;
	if (rdma_connect(attack->id, &param)) {
		error = -errno;
		attack->refused = refusal(attack->id->event);
		if (attack->refused)
			error = -ECONNREFUSED;
		goto close;
	}
	if (attack->id->event &&
	    attack->id->event->param.conn.private_data_len >= sizeof(attack->welcome))
		memcpy(&attack->welcome, attack->id->event->param.conn.private_data,
		       sizeof(attack->welcome));
	return 0;
close:
	attack_close(attack);
	return error;
}

void attack_close(struct attack *attack)
{
	if (!attack->id)
		return;
	/* Do not call rdma_disconnect(), which may never return. The kernel disconnects anyway. */
	if (attack->id->qp)
		rdma_destroy_qp(attack->id);
	if (attack->mr)
		ibv_dereg_mr(attack->mr);
	rdma_destroy_id(attack->id);
	free(attack->send);
	attack->id = NULL;
}

int attack_post(struct attack *attack, struct ibv_send_wr *wr, size_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)attack->send,
		.length = length,
		.lkey = attack->mr->lkey,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc[16];

	/* Make room: the status of earlier sends does not matter. */
	while (ibv_poll_cq(attack->id->send_cq, 16, wc) > 0)
		;
	for (struct ibv_send_wr *each = wr; each; each = each->next) {
		each->sg_list = &sge;
		each->num_sge = !!length;
	}
	return -ibv_post_send(attack->id->qp, wr, &bad);
}

int attack_send(struct attack *attack, size_t length)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	return attack_post(attack, &wr, length);
}

/* Whether the module, or the transport, has ended the connection */
static bool is_over(struct attack *attack)
{
	struct pollfd poller = { .fd = attack->id->channel->fd, .events = POLLIN };
	struct ibv_wc wc;

	while (ibv_poll_cq(attack->id->send_cq, 1, &wc) > 0)
		if (wc.status != IBV_WC_SUCCESS)
			return true;
	/* The only event after the connection was established is its end. */
	return poll(&poller, 1, 0) > 0;
}

int attack_reply(struct attack *attack, struct kdsm_wire_header *header, int ms)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };
	struct timespec from, now;
	struct ibv_wc wc;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (;;) {
		if (ibv_poll_cq(attack->id->recv_cq, 1, &wc) > 0) {
			if (wc.status != IBV_WC_SUCCESS)
				return -ECONNRESET;
			memcpy(attack->reply, attack->receive + wc.wr_id * KDSM_MESSAGE_SIZE,
			       KDSM_MESSAGE_SIZE);
			memcpy(header, attack->reply, sizeof(*header));
			if (attack->reposts)
				post_receive(attack, wc.wr_id);
			return 0;
		}
		if (is_over(attack))
			return -ECONNRESET;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - from.tv_sec) * 1000 +
		    (now.tv_nsec - from.tv_nsec) / 1000000 > ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

const void *attack_payload(const struct attack *attack)
{
	return attack->reply + sizeof(struct kdsm_wire_header);
}

int attack_ask(struct attack *attack, u16 type, const void *payload, u16 length,
	       struct kdsm_wire_header *reply)
{
	const struct kdsm_wire_header header = {
		.type = type, .length = length, .cookie = ATTACK_COOKIE,
	};
	int error;

	memcpy(attack->send, &header, sizeof(header));
	if (length)
		memcpy(attack->send + sizeof(header), payload, length);
	error = attack_send(attack, sizeof(header) + length);
	if (!error)
		error = attack_reply(attack, reply, 15000);
	if (!error && reply->cookie != ATTACK_COOKIE)
		error = -EBADMSG;
	return error;
}

int attack_add(struct attack *attack, const struct kdsm_wire_region *region)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 * 1000 };
	struct kdsm_wire_header reply;
	int result = -EEXIST;

	for (int i = 0; i < 100 && result == -EEXIST; i++) {
		if (i)
			nanosleep(&pause, NULL);
		result = attack_ask(attack, KDSM_MESSAGE_ADD, region, sizeof(*region), &reply) ?:
			 (int32_t)reply.status;
	}
	return result;
}

int attack_prove(struct attack *attack, const u8 proof[KDSM_PROOF_SIZE])
{
	struct kdsm_wire_header reply;

	return attack_ask(attack, KDSM_MESSAGE_PROVE, proof, KDSM_PROOF_SIZE, &reply) ?:
	       (int32_t)reply.status;
}

int attack_enter(struct attack *attack, const struct scene *scene, bool with_receives)
{
	int error = attack_connect(attack, &scene->own, &scene->target, &scene->hello,
				   sizeof(scene->hello), with_receives);
	u8 proof[KDSM_PROOF_SIZE];

	if (error)
		return error;
	attack_proof(attack, &scene->key, KDSM_ROLE_ASKER, proof);
	error = attack_prove(attack, proof);
	if (error)
		attack_close(attack);
	return error;
}
