// SPDX-License-Identifier: GPL-2.0
/*
 * raw KIND [BYTES [CALLS]]: measures one operation of user-space verbs at a time, from node
 * 0 to node 1, each between two marks (mark.h). KIND is read, write, cas, faa, or send, to
 * which node 1 replies with a message of the same size. Both nodes run this program.
 *
 * Both nodes sleep until the event of a completion arrives. A program that polled would
 * execute more instructions the longer it waits.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "kdsm-bench/mark.h"

#define SERVER		"10.77.0.2"
#define PORT		"7471"
#define BUFFER		65536	/* bytes */
#define WARMUP		20	/* calls before the first mark */
#define TRIES		600	/* attempts to connect, a tenth of a second apart */
#define SIGNAL_EVERY	16	/* distance of signalled sends, in messages */

static const struct kind {
	const char *name;
	enum ibv_wr_opcode opcode;
} kinds[] = {
	{ "read", IBV_WR_RDMA_READ },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "cas", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "faa", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "send", IBV_WR_SEND },
};

/* The place of the server's buffer, which the server sends to the client */
struct place {
	uint64_t address;
	uint32_t key;
} __attribute__((packed));

struct raw {
	const struct kind *kind;
	unsigned int bytes, calls;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buffer;
	struct place peer;
	unsigned int sent;	/* messages sent so far */
};

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...)
{
	va_list args;

	fputs("raw: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

/* ---- completions ---- */

static void check(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		errno = EIO;
		fail("%s", ibv_wc_status_str(wc->status));
	}
}

/* Sleep until one completion arrives. Caller has armed the queue before posting. */
static void wait_for(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n = 0;

	while (!n) {
		if (ibv_get_cq_event(channel, &cq, &context))
			fail("waiting for an event");
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			fail("arming");
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			fail("polling");
	}
	check(&wc);
}

/* ---- operations ---- */

static void receive(struct raw *raw)
{
	if (rdma_post_recv(raw->id, NULL, raw->buffer, raw->bytes, raw->mr))
		fail("posting a receive");
}

/* Signal some messages, so that their completions free room in the send queue. */
static void send_message(struct raw *raw)
{
	bool last = ++raw->sent % SIGNAL_EVERY == 0;
	struct ibv_wc wc;

	if (rdma_post_send(raw->id, NULL, raw->buffer, raw->bytes, raw->mr,
			   last ? IBV_SEND_SIGNALED : 0))
		fail("posting a message");
	if (raw->sent > SIGNAL_EVERY && raw->sent % SIGNAL_EVERY == SIGNAL_EVERY / 2) {
		while (!ibv_poll_cq(raw->id->send_cq, 1, &wc))
			;
		check(&wc);
	}
}

static void one_sided(struct raw *raw)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)raw->buffer,
		.length = raw->bytes,
		.lkey = raw->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = raw->kind->opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = raw->peer.address;
		wr.wr.rdma.rkey = raw->peer.key;
	} else {
		wr.wr.atomic.remote_addr = raw->peer.address;
		wr.wr.atomic.rkey = raw->peer.key;
		wr.wr.atomic.compare_add = 1;
	}
	if (ibv_post_send(raw->id->qp, &wr, &bad))
		fail("posting");
	wait_for(raw->id->send_cq_channel);
}

static void call(struct raw *raw)
{
	if (raw->kind->opcode == IBV_WR_SEND) {
		send_message(raw);
		wait_for(raw->id->recv_cq_channel);
		receive(raw);
	} else {
		one_sided(raw);
	}
}

static void answer(struct raw *raw)
{
	wait_for(raw->id->recv_cq_channel);
	receive(raw);
	send_message(raw);
}

/* ---- connections ---- */

static struct rdma_cm_id *endpoint(bool passive)
{
	struct rdma_addrinfo *info, hints = {
		.ai_flags = passive ? RAI_PASSIVE : 0,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4 * SIGNAL_EVERY,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(SERVER, PORT, &hints, &info))
		fail("address");
	if (rdma_create_ep(&id, info, NULL, &attr))
		fail("endpoint");
	rdma_freeaddrinfo(info);
	return id;
}

static void prepare(struct raw *raw)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	raw->mr = ibv_reg_mr(raw->id->pd, raw->buffer, BUFFER, access);
	if (!raw->mr)
		fail("memory");
	if (ibv_req_notify_cq(raw->id->send_cq, 0) || ibv_req_notify_cq(raw->id->recv_cq, 0))
		fail("arming");
	receive(raw);
}

static const struct rdma_conn_param parameters = {
	.responder_resources = 1,
	.initiator_depth = 1,
	.retry_count = 7,
	.rnr_retry_count = 7,
};

static void serve(struct raw *raw)
{
	struct rdma_conn_param param = parameters;
	struct rdma_cm_id *listener = endpoint(true);
	struct rdma_cm_event *event;
	struct place here;
	unsigned int i;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &raw->id))
		fail("listening");
	prepare(raw);
	here.address = (uintptr_t)raw->buffer;
	here.key = raw->mr->rkey;
	param.private_data = &here;
	param.private_data_len = sizeof(here);
	if (rdma_accept(raw->id, &param))
		fail("accepting");
	if (raw->kind->opcode == IBV_WR_SEND)
		for (i = 0; i < raw->calls + WARMUP; i++)
			answer(raw);
	/* Wait until the client disconnects. */
	if (rdma_get_cm_event(raw->id->channel, &event))
		fail("waiting for the end");
	rdma_ack_cm_event(event);
	rdma_destroy_ep(raw->id);
	rdma_destroy_ep(listener);
}

static void connect_to_server(struct raw *raw)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct rdma_conn_param param = parameters;
	unsigned int tries = 0;

	for (;;) {
		raw->id = endpoint(false);
		prepare(raw);
		if (!rdma_connect(raw->id, &param))
			break;
		if (++tries == TRIES)
			fail("connecting");
		rdma_destroy_ep(raw->id);
		nanosleep(&pause, NULL);
	}
	memcpy(&raw->peer, raw->id->event->param.conn.private_data, sizeof(raw->peer));
}

static void measure(struct raw *raw)
{
	unsigned int i;

	connect_to_server(raw);
	for (i = 0; i < WARMUP; i++)
		call(raw);
	for (i = 0; i < raw->calls; i++) {
		mark_place(MARK_BEGIN);
		call(raw);
		mark_place(MARK_END);
	}
	rdma_disconnect(raw->id);
	rdma_destroy_ep(raw->id);
}

int main(int argc, char **argv)
{
	static char buffer[BUFFER] __attribute__((aligned(4096)));
	const char *node = getenv("KDSM_NODE");
	struct raw raw = { .buffer = buffer, .bytes = 8, .calls = 200 };
	unsigned int i;

	for (i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			raw.kind = &kinds[i];
	if (argc > 2)
		raw.bytes = atoi(argv[2]);
	if (argc > 3)
		raw.calls = atoi(argv[3]);
	if (!raw.kind || !node || !raw.bytes || raw.bytes > BUFFER || !raw.calls) {
		fputs("usage: raw read|write|cas|faa|send [BYTES [CALLS]], in a machine\n", stderr);
		return 2;
	}
	memset(buffer, 0, sizeof(buffer));
	if (strcmp(node, "0"))
		serve(&raw);
	else
		measure(&raw);
	return 0;
}
