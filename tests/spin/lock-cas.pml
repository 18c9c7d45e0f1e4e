/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of a distributed lock between nodes as in the paper (dmcs, attribute
 * KDSM_LOCK_CAS): a word with the id of the last in the queue, which is changed by
 * compare-and-swap only. N nodes lock again and again.
 *
 * Who enqueues tries until nobody has been faster, and tells who was the last before
 * (NEXT). Who releases and has not been told frees the lock, if it still is the last; else
 * it waits until it is told. KEEP: a lock that nobody wants at the node stays there
 * until it is told; as everybody who comes tells who is in front, there is nothing to look at.
 *
 * What is a step: a compare-and-swap at the home is one, and the node hears of the
 * result in another. NEXT and HAND arrive at any time later. TIMEOUTS: those who wait at a
 * node may give up; the node stays in the queue, and passes the lock on.
 *
 * Checked after every step: there is one holder, or HAND on its way; the lock is free if
 * and only if there is none. By spin: nobody waits for what does not come (invalid end
 * state); with LTL, who is in the queue gets it, though all lock for ever (gets). That
 * who wants to be in the queue gets there (enters) is not so: others may be faster for
 * ever. This is why the tickets of lock-queue.pml are what is used otherwise.
 *
 * FAULT=n puts a mistake into the protocol. Each must be found (tests/spin/check).
 */
#ifndef FAULT
#define FAULT	0
#endif
#define NEXT_DROPPED_WHILE_ENQUEUEING	(FAULT == 1)
#define NEXT_DROPPED_WHILE_WAITING	(FAULT == 2)
#define NEXT_NOT_WAITED_FOR		(FAULT == 3)
#define FREED_BY_WRITE			(FAULT == 4)
#define NEXT_NOT_FORGOTTEN		(FAULT == 5)
#define NOT_PASSED_ON_AFTER_TIMEOUT	(FAULT == 6)
#define NEXT_DROPPED_WHILE_RELEASING	(FAULT == 7)
#define NEXT_TOLD_BEFORE_SWAP		(FAULT == 8)

#ifndef N
#define N	3
#endif
#define id(n)	((n) + 1)

byte last;			/* at the home */

#define NONE		0
#define ENQUEUEING	1
#define WAITING		2
#define HELD		3
#define KEPT		4
#define RELEASING	5

byte state[N];
byte next[N];			/* id, or 0 */

chan hand[N] = [1] of { bool };
/* of a node: to whom */
chan tell[N] = [1] of { byte };

bool swapped[N];		/* is in the queue, and does not know it */

#define has_it(n)	(state[n] == HELD || state[n] == KEPT || len(hand[n]) == 1)
#define owners		(has_it(0) + has_it(1) + has_it(2) + has_it(N - 1) * (N > 3))

inline check()
{
	assert(owners <= 1);
	assert(last != 0 || owners == 0)
}

/* Messages to others arrive, and to it. */
proctype wire(byte me)
{
	byte to;

end:	do
	:: d_step {
		tell[me]?to ->
		if
		:: state[to] == ENQUEUEING && NEXT_DROPPED_WHILE_ENQUEUEING ||
		   state[to] == WAITING && NEXT_DROPPED_WHILE_WAITING ||
		   state[to] == RELEASING && NEXT_DROPPED_WHILE_RELEASING -> skip
		:: else ->
			assert(next[to] == 0 || NEXT_NOT_FORGOTTEN);	/* one next */
			next[to] = id(me)
		fi;
		to = 0
	   }
	:: d_step {
		hand[me]?_;
		assert(state[me] == WAITING);		/* taken */
		state[me] = HELD;
		check()
	   }
	od
}

inline hand_over()
{
	assert(nfull(hand[next[me] - 1]));
	hand[next[me] - 1]!true;
	next[me] = (NEXT_NOT_FORGOTTEN -> next[me] : 0);
	state[me] = NONE;
	check()
}

inline release()
{
	if
	:: d_step { next[me] != 0 -> hand_over() }
	:: d_step {
		next[me] == 0 ->
		seen = last;
		last = (seen == id(me) || FREED_BY_WRITE -> 0 : last);
		state[me] = RELEASING;
		check()
	   };
		if
		:: d_step { seen == id(me) || NEXT_NOT_WAITED_FOR -> state[me] = NONE }
		:: d_step { seen != id(me) && !NEXT_NOT_WAITED_FOR && next[me] != 0 ->
			hand_over() }
		fi;
		seen = 0
	fi
}

proctype node(byte me)
{
	byte seen, expected;
	bool wanted;

end:	do
	:: d_step { state[me] == NONE && empty(tell[me]) ->
		state[me] = ENQUEUEING; wanted = true };
		do
		:: d_step {
			seen = last;
			last = (seen == expected -> id(me) : last);
			swapped[me] = (seen == expected);
			if
			:: NEXT_TOLD_BEFORE_SWAP && seen != expected && len(tell[me]) == 0 ->
				tell[me]!seen - 1
			:: else
			fi
		   };
			/* It hears of the result. */
			if
			:: d_step { seen != expected -> expected = seen }
			:: atomic { seen == expected -> break }
			fi
		od;
		atomic {
			expected = 0;
			swapped[me] = false;
			if
			:: seen == 0 -> state[me] = HELD
			:: else ->
				state[me] = WAITING;
				if
				:: !NEXT_TOLD_BEFORE_SWAP -> tell[me]!seen - 1
				:: else
				fi
			fi;
			seen = 0;
			check()
		};
		do
		:: state[me] == HELD -> break
#ifdef TIMEOUTS
		:: d_step { state[me] == WAITING && wanted -> wanted = false }
#endif
		od;
		/* Here it is used. */
locked:		if
		:: NOT_PASSED_ON_AFTER_TIMEOUT && !wanted -> goto end
		:: else -> wanted = false
		fi;
		if
#ifdef KEEP
		:: d_step { next[me] == 0 -> state[me] = KEPT }
#endif
		:: release()
		fi
#ifdef KEEP
	:: state[me] == KEPT && next[me] != 0 -> release()
	:: d_step { state[me] == KEPT -> wanted = true; state[me] = HELD }; goto locked
#endif
	/* It need not go on. */
	:: state[me] == NONE || state[me] == KEPT && next[me] == 0 ->
endstopped:
		if
		:: state[me] == KEPT && next[me] != 0 -> release(); goto endstopped
		fi
	od
}

init {
	byte n;

	atomic {
		do
		:: n < N -> run wire(n); run node(n); n++
		:: else -> break
		od;
		n = 0
	}
}

#ifdef LTL
ltl gets { [] ((state[0] == WAITING || swapped[0]) -> <> (state[0] == HELD)) }
ltl enters { [] (state[0] == ENQUEUEING -> <> (state[0] != ENQUEUEING)) }
#endif
