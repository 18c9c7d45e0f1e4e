/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to the module's port from a program: what hostile-wire.c says on
 * it, and how the module takes it.
 */
#ifndef KDSM_TESTS_ATTACK_H
#define KDSM_TESTS_ATTACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

/* The wire format is the module's own header. */
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define __packed __attribute__((packed))
#include "../../../kmod/wire.h"

#define BIG	(4 * KDSM_MESSAGE_SIZE)		/* more than a message may have */
#define REPLIES	16

struct attack {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *send, *receive;	/* BIG; REPLIES * KDSM_MESSAGE_SIZE */
	int refused;		/* reason of the refusal, 0 if there was none */
};

/*
 * 0: connected, -ECONNREFUSED: refused, or another negative errno. Without
 * receives the module's replies find no room.
 */
int attack_connect(struct attack *attack, const struct sockaddr_in *from,
		   const struct sockaddr_in *to, const void *hello, size_t length,
		   bool with_receives);
void attack_close(struct attack *attack);

/* Post what is in attack->send; 0 or a negative errno. */
int attack_post(struct attack *attack, struct ibv_send_wr *wr, size_t length);
int attack_send(struct attack *attack, size_t length);

/*
 * The next reply, with its payload's length: 0, -ETIMEDOUT, or -ECONNRESET if
 * the module ended the connection.
 */
int attack_reply(struct attack *attack, struct kdsm_wire_header *header, int ms);

/* Of requests; the low half is the number of a slot. */
#define ATTACK_COOKIE	0xc001001e

/* A request that can be understood, and its reply; errors as above, -EBADMSG: of another. */
int attack_ask(struct attack *attack, u16 type, const void *payload, u16 length,
	       struct kdsm_wire_header *reply);

/* blocks.c: as node 0, makes coherent regions, misuses them, and removes them. */
void attack_blocks(struct attack *attack);
/* locks.c: the same, of locks. */
void attack_locks(struct attack *attack);

#endif /* KDSM_TESTS_ATTACK_H */
