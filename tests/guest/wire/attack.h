/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection from a program to the module's port, on which hostile-wire.c sends messages
 * and sees how the module reacts.
 */
#ifndef KDSM_TESTS_ATTACK_H
#define KDSM_TESTS_ATTACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

/* The wire format is that of the module's own header. */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define __packed __attribute__((packed))
#include "../../../kmod/wire.h"
#include <kdsm/uapi_netlink.h>

#define BIG	(4 * KDSM_MESSAGE_SIZE)		/* larger than any message */
#define REPLIES	96

struct attack {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *send, *receive;	/* sizes: BIG; REPLIES * KDSM_MESSAGE_SIZE */
	char reply[KDSM_MESSAGE_SIZE];	/* the last one */
	bool reposts;		/* receives are posted again */
	int refused;		/* reason of the refusal, or 0 */
	struct kdsm_wire_hello hello;		/* that was sent, or as much of it as was */
	struct kdsm_wire_welcome welcome;	/* that was received */
};

/* A key of the cluster, and the number that tells it from others */
struct attack_key {
	u8 bytes[KDSM_KEY_SIZE];
	u32 id;
};

/* Read the key beside the configuration file; end the program if that fails. */
void attack_key_read(struct attack_key *key);
/* Set the id of a key. */
void attack_key_identify(struct attack_key *key);

/*
 * Ask for a connection with a hello of length bytes, and send no proof yet. The source port is one
 * of root's unless from has another. Return 0 if the module has accepted, -ECONNREFUSED if it
 * refused, or another negative errno.
 * with_receives: post receive buffers; else one, so that only the first reply finds room.
 */
int attack_connect(struct attack *attack, const struct sockaddr_in *from,
		   const struct sockaddr_in *to, const void *hello, size_t length,
		   bool with_receives);
void attack_close(struct attack *attack);
/* Make the queue pair and the buffers of an id. 0 or a negative errno. */
int attack_prepare(struct attack *attack, bool with_receives);

/* Compute the proof of a role for the hello and the welcome of a connection. */
void attack_proof(const struct attack *attack, const struct attack_key *key, enum kdsm_role role,
		  u8 proof[KDSM_PROOF_SIZE]);
/* Send a proof and wait for the reply. Errors are those of attack_ask(). */
int attack_prove(struct attack *attack, const u8 proof[KDSM_PROOF_SIZE]);
/* Post length bytes of attack->send, for wr and those after it; return 0 or a negative errno. */
int attack_post(struct attack *attack, struct ibv_send_wr *wr, size_t length);
int attack_send(struct attack *attack, size_t length);

/*
 * Wait for the next reply and copy its header, which has the length of the payload. Return
 * 0, -ETIMEDOUT, or -ECONNRESET if the module ended the connection.
 */
int attack_reply(struct attack *attack, struct kdsm_wire_header *header, int ms);
/* Return the payload of the reply that attack_reply() returned last; the next one replaces it. */
const void *attack_payload(const struct attack *attack);

/* Cookie of requests; its low half is the number of a slot. */
#define ATTACK_COOKIE	0xc001001e

/*
 * Send a well-formed request and wait for its reply. Errors are those of attack_reply(), or
 * -EBADMSG for the reply to another request.
 */
int attack_ask(struct attack *attack, u16 type, const void *payload, u16 length,
	       struct kdsm_wire_header *reply);
/* Segments of a region whose blocks all have this size */
#define ONE_SEGMENT(size)	{ .count = 1, .list[0].block_size = (size) }

/*
 * Add a region on node 1, as soon as the memory of a removed region with this id is free. Return
 * its answer, or an error of attack_ask().
 */
int attack_add(struct attack *attack, const struct kdsm_wire_region *region);

/* Counters of node 1: connections that it refused, by reason, and lines of its log about them */
struct counters {
	int64_t cluster, version, node, message, key, proof, port, silent, log;
};

/* The node to attack, and the true hello of the node that the program claims to be */
struct scene {
	struct sockaddr_in own, target;
	struct kdsm_wire_hello hello;
	struct attack_key key;
	struct counters (*ask)(void);
};

/* Connect and prove that the key is known. 0 or an error of attack_connect(), attack_prove() */
int attack_enter(struct attack *attack, const struct scene *scene, bool with_receives);

/* strangers.c: peers that do not prove that they know the key */
void attack_unproven(const struct scene *scene);
/* The same, and peers that prove it, beside them; the true node 0 is down. */
void attack_strangers(const struct scene *scene);
/*
 * blocks.c: as node 0, create coherent regions, misuse their blocks and settings, and remove the
 * regions.
 */
void attack_blocks(struct attack *attack);
/* locks.c: the same with locks. */
void attack_locks(struct attack *attack);

#endif /* KDSM_TESTS_ATTACK_H */
