/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two nodes prove to each other that they know the cluster's key (kmod/wire.h, kmod/fabric/
 * secret.c), on a network that belongs to an intruder. The processes are:
 *
 * asker	of a node: sends a hello, takes a welcome, sends its proof (kmod/fabric/connect.c)
 * accepter	of a node: takes a hello, sends a welcome, takes a proof (kmod/fabric/accept.c)
 *
 * Each process is one attempt, with a nonce of its own. The intruder needs no process: it reads
 * all messages, and can send any hello, nonce and proof that it has seen, to anybody, any number of
 * times, and can drop messages. Hellos and welcomes are no secret, so a process takes any of them.
 * The intruder cannot make a proof, so a process takes a proof only if another process has sent
 * exactly that one.
 *
 * Asserted: when an asker accepts a welcome, the accepter that it asked has sent it in answer to
 * that asker (answered). When an accepter accepts a proof, the asker named in the hello has sent it to
 * that accepter (sent), and no other accepter has accepted it (once).
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define ROLE_NOT_PROVED			(FAULT == 1)
#define NONCE_OF_ACCEPTER_NOT_PROVED	(FAULT == 2)
#define NONCE_OF_ASKER_NOT_PROVED	(FAULT == 3)
#define TARGET_NOT_PROVED		(FAULT == 4)
#define ASKER_NOT_PROVED		(FAULT == 5)
#define NONCE_OF_ACCEPTER_REPEATED	(FAULT == 6)

#define NODES		2
#define ASKERS		4	/* nonces below: of askers, and nonce 0 of the intruder as one */
#define NONCES		7	/* the others: of accepters */
#define ACCEPTER	0
#define ASKER		1

/* Which proof it is. A mistake leaves out a field. */
#define PROOF(role, from, to, asked, answered)						\
	(((((ROLE_NOT_PROVED -> 0 : role) * NODES + (ASKER_NOT_PROVED -> 0 : from)) * NODES +	\
	   (TARGET_NOT_PROVED -> 0 : to)) * NONCES +						\
	  (NONCE_OF_ASKER_NOT_PROVED -> 0 : asked)) * NONCES +					\
	 (NONCE_OF_ACCEPTER_NOT_PROVED -> 0 : answered))

bool seen[392];		/* proofs that were sent */

/* Of the attempt with this nonce: */
byte self[NONCES];	/* its node */
byte other[NONCES];	/* the node that an asker asks, or that asks an accepter by its hello */
byte answer[NONCES];	/* the nonce in the welcome or in the hello that it took */
bool proving[NONCES];	/* an asker has sent its proof */
bool used[NONCES];	/* an accepter has accepted the proof of the asker */

inline any(x, count)
{
	x = 0;
	do
	:: x < count - 1 -> x++
	:: break
	od
}

proctype asker(byte me; byte to; byte nonce)
{
	byte n;

	atomic {
		self[nonce] = me;
		other[nonce] = to;
		any(n, NONCES - ASKERS);
		n = n + ASKERS;
		seen[PROOF(ACCEPTER, me, to, nonce, n)];
		assert(self[n] == to && other[n] == me && answer[n] == nonce);
		answer[nonce] = n;
		proving[nonce] = true;
		seen[PROOF(ASKER, me, to, nonce, n)] = true
	}
}

proctype accepter(byte me; byte nonce)
{
	byte from, n;

	atomic {
		any(from, NODES);
		any(n, ASKERS);
		self[nonce] = me;
		other[nonce] = from;
		answer[nonce] = n;
		seen[PROOF(ACCEPTER, from, me, n, nonce)] = true;
		seen[PROOF(ASKER, from, me, n, nonce)];
		assert(proving[n] && self[n] == from && other[n] == me && answer[n] == nonce);
		assert(!used[n]);
		used[n] = true
	}
}

init {
	atomic {
		run asker(0, 1, 1);
		run asker(0, 1, 2);
		run asker(1, 0, 3);
		run accepter(0, 4);
		run accepter(1, 5);
		run accepter(1, (NONCE_OF_ACCEPTER_REPEATED -> 5 : 6))
	}
}
