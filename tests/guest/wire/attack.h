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

#define BIG	(4 * KDSM_MESSAGE_SIZE)		/* larger than any message */
#define REPLIES	16

struct attack {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *send, *receive;	/* sizes: BIG; REPLIES * KDSM_MESSAGE_SIZE */
	int refused;		/* reason of the refusal, or 0 */
};

/*
 * Return 0 if connected, -ECONNREFUSED if refused, or another negative errno.
 * with_receives: post receive buffers, without which the module's replies find no room.
 */
int attack_connect(struct attack *attack, const struct sockaddr_in *from,
		   const struct sockaddr_in *to, const void *hello, size_t length,
		   bool with_receives);
void attack_close(struct attack *attack);

/* Post length bytes of attack->send; return 0 or a negative errno. */
int attack_post(struct attack *attack, struct ibv_send_wr *wr, size_t length);
int attack_send(struct attack *attack, size_t length);

/*
 * Wait for the next reply and copy its header, which has the length of the payload. Return
 * 0, -ETIMEDOUT, or -ECONNRESET if the module ended the connection.
 */
int attack_reply(struct attack *attack, struct kdsm_wire_header *header, int ms);

/* Cookie of requests; its low half is the number of a slot. */
#define ATTACK_COOKIE	0xc001001e

/*
 * Send a well-formed request and wait for its reply. Errors are those of attack_reply(), or
 * -EBADMSG for the reply to another request.
 */
int attack_ask(struct attack *attack, u16 type, const void *payload, u16 length,
	       struct kdsm_wire_header *reply);

/* blocks.c: as node 0, create coherent regions, misuse their blocks, and remove the regions. */
void attack_blocks(struct attack *attack);
/* locks.c: the same with locks. */
void attack_locks(struct attack *attack);

#endif /* KDSM_TESTS_ATTACK_H */
