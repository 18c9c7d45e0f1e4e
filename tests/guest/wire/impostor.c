// SPDX-License-Identifier: GPL-2.0
/* A program that listens at the module's port; see impostor.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "impostor.h"

#define PEERS	64	/* connections that are accepted in a run */

static struct attack peers[PEERS];
static unsigned int count;
static enum impostor_mode mode;

static void accept_peer(const struct scene *scene, struct rdma_cm_event *event)
{
	struct attack *peer = &peers[count];
	struct rdma_conn_param param = {
		.private_data = &peer->welcome, .private_data_len = sizeof(peer->welcome),
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7,
	};

	if (count == PEERS) {
		rdma_reject(event->id, NULL, 0);
		return;
	}
	count++;
	peer->id = event->id;
	memcpy(&peer->hello, event->param.conn.private_data, sizeof(peer->hello));
	peer->welcome = (struct kdsm_wire_welcome) {
		.magic = KDSM_WIRE_MAGIC,
		.version = KDSM_WIRE_VERSION,
		.node = scene->hello.node,
		.incarnation = scene->hello.incarnation,
		.nonce = 0x123456789abcdef + count,
	};
	attack_proof(peer, &scene->key, KDSM_ROLE_ACCEPTER, peer->welcome.proof);
	if (mode == IMPOSTOR_LIAR)
		peer->welcome.proof[count % KDSM_PROOF_SIZE] ^= 1;
	if (attack_prepare(peer, true) || rdma_accept(peer->id, &param))
		fprintf(stderr, "# impostor: cannot accept: %s\n", strerror(errno));
}

static void answer(struct attack *peer, const struct kdsm_wire_header *request)
{
	struct kdsm_wire_header reply = { .type = request->type, .cookie = request->cookie };

	if (request->type != KDSM_MESSAGE_PROVE && request->type != KDSM_MESSAGE_PROBE) {
		if (mode != IMPOSTOR_KIND)
			return;
		reply.length = 8;
	}
	memset(peer->send, 0, sizeof(reply) + reply.length);
	memcpy(peer->send, &reply, sizeof(reply));
	attack_send(peer, sizeof(reply) + reply.length);
}

static void take_requests(void)
{
	struct kdsm_wire_header request;

	for (unsigned int i = 0; i < count; i++)
		while (peers[i].id && !attack_reply(&peers[i], &request, 0))
			answer(&peers[i], &request);
}

static void take_events(const struct scene *scene, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event, copy;
	uint8_t data[256];

	while (!rdma_get_cm_event(channel, &event)) {
		copy = *event;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			memcpy(data, event->param.conn.private_data,
			       event->param.conn.private_data_len);
			copy.param.conn.private_data = data;
			rdma_ack_cm_event(event);
			accept_peer(scene, &copy);
		} else {
			rdma_ack_cm_event(event);
		}
	}
}

void impostor_run(const struct scene *scene, int file)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in own = scene->own;
	struct pollfd poller = { .fd = file, .events = POLLIN };
	struct rdma_cm_id *listener;
	char word;

	own.sin_port = scene->target.sin_port;
	if (!channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK) ||
	    rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&own) || rdma_listen(listener, 16))
		tap_bail("cannot listen: %s", strerror(errno));
	for (mode = IMPOSTOR_LIAR; mode != IMPOSTOR_END; ) {
		if (poll(&poller, 1, 1) > 0) {
			if (read(file, &word, 1) != 1)
				break;
			mode = word;
			if (write(file, ".", 1) != 1)
				break;
		}
		take_events(scene, channel);
		take_requests();
	}
	for (unsigned int i = 0; i < count; i++)
		attack_close(&peers[i]);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
}
