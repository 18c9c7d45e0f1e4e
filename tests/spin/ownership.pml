/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue for the ownership of one block (kmod/ownership.c): N nodes want the
 * block to release (OWN), and with READS to read, too, again and again, or with
 * ROUNDS=n so many times each. LEASES: an owner may keep the block for a while, as
 * with policy strict; who asks meanwhile is queued.
 *
 * What is a step: whatever the code does under the lock of the block is one step;
 * between any two of them the others run. A message takes arbitrarily long and is
 * overtaken by others: a node has one question under way at most, as the block is
 * busy meanwhile, so each has a channel of its own for that, and for the answer.
 *
 * What is left out: the content and the timestamps, which are in release.pml. For
 * how long a node pauses before it asks again. That the granting node waits for
 * the reply to GRANT: it goes on at once, which is more than it may do. All that
 * fails: a hand-over for want of memory, a wait that takes too long, messages and
 * nodes that get lost; and so what is done then (role GRANTED).
 *
 * Checked after every step, see check():
 *	one	there is one owner, node that takes over, or grant on its way
 *	queue	nobody is queued behind itself, or twice
 *	links	from every node links lead to the owner, with no circle
 * And by spin: that nobody waits for what does not come (invalid end states); with
 * ROUNDS, that everybody who asks gets it, as there is no cycle, or with READS,
 * where a node may be told to ask again, none that is fair to the other nodes.
 * OUTRUN: node 2 wants the block once while the others go on for ever. It can be
 * outrun by a block that always has moved on when the question comes. Only chance
 * ends that, or the timeout.
 *
 * FAULT=n puts a mistake into the protocol. Each must be found (tests/spin/check).
 */
#ifndef N
#define N	3
#endif
#ifndef FAULT
#define FAULT	0
#endif
#define WAITING_SET_AFTER_ASKING	(FAULT == 1)
#define LINK_KEPT_WHEN_QUEUEING		(FAULT == 2)
#define LINK_KEPT_AT_HANDOVER		(FAULT == 3)
#define SUCCESSOR_OVERWRITTEN		(FAULT == 4)
#define SUCCESSOR_KEPT			(FAULT == 5)
#define SUCCESSOR_FORGOTTEN		(FAULT == 6)
#define HANDED_OVER_WHILE_TAKING	(FAULT == 7)
#define OWNER_KEPT_AT_HANDOVER		(FAULT == 8)
#define WHO_WAITS_SENDS_ON		(FAULT == 9)

#define NOBODY	255

/* enum kdsm_block_role */
#define NONE	0
#define WAITING	1
#define TAKING	2
#define OWNER	3

mtype = { OWN, READ, YES, QUEUED, ASK, RETRY };

/* struct kdsm_block, of each node. At first all links lead to node 0. */
byte role[N], owner[N], next[N];
bool busy[N];

/* Whom a node that waits asked last: the variable node of kdsm_ownership_take(). */
byte asked[N];

chan question[N] = [1] of { mtype, byte };	/* of a node: what, to whom */
chan answer[N] = [1] of { mtype, byte };	/* to a node: what, ASK: whom */
chan grant[N] = [1] of { bool };		/* to a node */

/* ---- what is true after every step ---- */

/* Of no meaning between steps. */
byte i, j, k, front, steps, tokens;

#define has_it(n)	(role[n] >= TAKING)
/* YES,1 is the answer to READ, which grants nothing. */
#define on_its_way(n)	(answer[n]?[YES,0] || grant[n]?[true])

inline check()
{
	i = 0;
	do
	:: i < N ->
		tokens = tokens + has_it(i) + on_its_way(i);
		i++
	:: else -> break
	od;
	assert(tokens == 1);			/* one */
	i = 0;
	do
	:: i < N ->
		j = i;
		steps = 0;
		do
		:: has_it(j) || on_its_way(j) -> break
		:: else ->
			/* Who is in front of it in the queue, if it is in one? */
			front = NOBODY;
			k = 0;
			do
			:: k < N ->
				if
				:: next[k] == j ->
					assert(k != j && front == NOBODY);	/* queue */
					front = k
				:: else
				fi;
				k++
			:: else -> break
			od;
			if
			:: front != NOBODY -> j = front
			:: front == NOBODY && role[j] == WAITING -> j = asked[j]
			:: else -> j = owner[j]
			fi;
			steps++;
			assert(steps < N)		/* links */
		od;
		i++
	:: else -> break
	od;
	i = 0; j = 0; k = 0; front = 0; steps = 0; tokens = 0
}

/* ---- being asked: under the lock of block `to` ---- */

#define takes_next(n)	(next[n] == NOBODY || SUCCESSOR_OVERWRITTEN)
#define waits(n)	(role[n] == WAITING && !WHO_WAITS_SENDS_ON || \
			 role[n] == TAKING && !HANDED_OVER_WHILE_TAKING)
#define gives(n)	(role[n] == OWNER && next[n] == NOBODY || \
			 role[n] == TAKING && HANDED_OVER_WHILE_TAKING)

/* kdsm_coherence_serve_own(), kdsm_own() */
inline serve_own(from, to)
{
	if
#ifdef LEASES
	:: role[to] == OWNER && next[to] == NOBODY ->
		next[to] = from;
		owner[to] = from;
		answer[from]!QUEUED,0
#endif
	:: gives(to) ->
		if
		:: !OWNER_KEPT_AT_HANDOVER -> role[to] = NONE
		:: else
		fi;
		if
		:: !LINK_KEPT_AT_HANDOVER -> owner[to] = from
		:: else
		fi;
		answer[from]!YES,0
	:: waits(to) && takes_next(to) ->
		next[to] = from;
		if
		:: !LINK_KEPT_WHEN_QUEUEING -> owner[to] = from
		:: else
		fi;
		answer[from]!QUEUED,0
	:: else ->
		answer[from]!ASK,owner[to]
	fi
}

/* kdsm_coherence_serve_read() */
inline serve_read(from, to)
{
	if
	:: role[to] == OWNER -> answer[from]!YES,1
	:: role[to] == NONE -> answer[from]!ASK,owner[to]
	:: else -> answer[from]!RETRY,0
	fi
}

/* Messages of a node and to it arrive. */
proctype wire(byte me)
{
	byte to;

end:	do
	:: atomic { question[me]?OWN,to; serve_own(me, to); d_step { to = 0; check() } }
#ifdef READS
	:: d_step { question[me]?READ,to; serve_read(me, to); to = 0; check() }
#endif
	/* kdsm_coherence_serve_grant() */
	:: d_step {
		grant[me]?true;
		assert(role[me] == WAITING);		/* one */
		role[me] = TAKING;
		check()
	   }
#ifdef LEASES
	/* kdsm_ownership_owed_work() */
	:: d_step {
		role[me] == OWNER && next[me] != NOBODY ->
		role[me] = NONE;
		to = next[me];
		next[me] = NOBODY;
		grant[to]!true;
		to = 0;
		check()
	   }
#endif
	od
}

/* ---- asking ---- */

proctype node(byte me)
{
	byte whom;
#ifdef ROUNDS
	byte rounds;
#define once_more	rounds < ROUNDS
#define count_round	rounds++
#else
#define once_more	true
#define count_round	skip
#endif

end:	do
#ifdef ROUNDS
	:: rounds == ROUNDS -> break
	/* A fast release. */
	:: d_step { once_more && !busy[me] && role[me] == OWNER -> count_round }
#endif
	/* kdsm_block_take(): begin, and not owned. kdsm_ownership_take(): */
	:: d_step {
		once_more && !busy[me] && role[me] == NONE ->
		busy[me] = true;
		whom = owner[me];
		asked[me] = whom;
		if
		:: !WAITING_SET_AFTER_ASKING -> role[me] = WAITING
		:: else
		fi;
		count_round;
		check()
	   };
		/* kdsm_chase() */
again:		question[me]!OWN,whom;
		if
		:: d_step {
			answer[me]?ASK,whom;
			assert(whom != me);		/* links */
			asked[me] = whom;
			check()
		   };
		   goto again
		:: d_step {
			answer[me]?YES,0;
			role[me] = TAKING;
			check()
		   }
		:: d_step {
			answer[me]?QUEUED,0;
			if
			:: WAITING_SET_AFTER_ASKING -> role[me] = WAITING
			:: else
			fi;
			check()
		   };
		   role[me] == TAKING
		fi;
		/* Here the content is brought. Then kdsm_ownership_taken(): */
		d_step {
			role[me] = OWNER;
			whom = next[me];
			busy[me] = false;
			if
			:: whom != NOBODY ->
				role[me] = NONE;
				if
				:: !SUCCESSOR_KEPT -> next[me] = NOBODY
				:: else
				fi;
				if
				:: !SUCCESSOR_FORGOTTEN -> grant[whom]!true
				:: else -> role[me] = OWNER
				fi
			:: else
			fi;
			whom = 0;
			asked[me] = 0;
			check()
		};
#ifdef OUTRUN
		if
		:: me == 2 -> break
		:: else
		fi
#else
		skip
#endif
#ifdef READS
	/* kdsm_block_read_miss(), kdsm_ownership_read() */
	:: d_step {
		once_more && !busy[me] && role[me] == NONE ->
		busy[me] = true;
		whom = owner[me];
		count_round
	   };
read:		question[me]!READ,whom;
		if
		:: d_step {
			answer[me]?ASK,whom;
			assert(whom != me)		/* links */
		   };
		   goto read
		:: answer[me]?RETRY,0; goto read
		:: answer[me]?YES,1
		fi;
		d_step {
			if
			:: role[me] == NONE -> owner[me] = whom
			:: else
			fi;
			whom = 0;
			busy[me] = false;
			check()
		}
#endif
	od
}

init {
	byte n;

	atomic {
		do
		:: n < N ->
			next[n] = NOBODY;
			run wire(n);
			run node(n);
			n++
		:: else -> break
		od;
		n = 0;
		role[0] = OWNER
	}
}

#ifdef OUTRUN
ltl gets { [] (role[2] == WAITING -> <> (role[2] != WAITING)) }
#endif
