/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue for the ownership of one block (kmod/coherence/ownership.c, chase.c). N nodes
 * ask for the ownership again and again (OWN), and with READS for a copy, too; with
 * ROUNDS=n each node asks n times. With LEASES an owner may keep the block for a time, as
 * under policy strict, and queues the node that asks during that time.
 *
 * Steps: everything that the code does under the lock of the block is one step, and other
 * processes run between any two steps. A message takes arbitrarily long, and other messages
 * overtake it. A node has at most one question in flight, because the block is busy
 * meanwhile. So each node has one channel for its question and one for the answer.
 *
 * With FAILURES=n (which needs ROUNDS) n failures happen in all. A message or its reply is
 * lost and its sender gets an error, but the receiver may still handle the message then or
 * at any later time; a grant is lost; a node gives up waiting or cannot fetch the content;
 * an owner lacks the memory to hand over. Hand-overs have numbers only with FAILURES,
 * because otherwise no node ever repeats a hand-over. A node that asks again after a
 * back-off, or checks that it is still queued, does so only when nothing else can happen;
 * with EARLY, at any time.
 *
 * With AHEAD (which needs FAILURES, perhaps 0) a node may first ask any node, as if a notice named
 * that one as the newest writer. With UNCHECKED queued nodes never check that they are queued: then
 * no failure may happen, and no node waits forever unless the queue has a cycle.
 *
 * Not modelled: the content and the timestamps (release.pml); the durations of back-offs;
 * and that the granting node waits for the reply to GRANT. The model's granting node goes on
 * at once, which allows more orders than the code does.
 *
 * Asserted after every step, see check():
 *	one	Exactly one node owns the block or is taking it over, or one grant is in
 *		flight. With FAILURES: one node has the block by the newest hand-over, or the
 *		node that made the newest hand-over can still repeat it to the receiver, which
 *		has not heard of it; no node has the block by an older hand-over.
 *	queue	No node is queued behind itself, or, without FAILURES, twice.
 *	links	From every node the links lead to the owner, without a cycle.
 * Checked by spin: no node waits forever (invalid end states). With ROUNDS every node that
 * asks gets the block or an error, because the search finds no cycle; with READS, where a
 * node may be told to ask again, the search finds no cycle that is fair to the other nodes.
 *
 * With OUTRUN node 2 asks for the block once while the other nodes go on forever. The block
 * can outrun node 2: it may have moved on whenever the question arrives. Only chance, or the
 * timeout, ends that.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef N
#define N	3
#endif
#ifndef FAULT
#define FAULT	0
#endif
#define WAITING_SET_AFTER_ASKING	(FAULT == 1)
#define NEXT_NOT_TOLD			(FAULT == 2)
#define LINK_KEPT_AT_HANDOVER		(FAULT == 3)
#define SUCCESSOR_OVERWRITTEN		(FAULT == 4)
#define SUCCESSOR_KEPT			(FAULT == 5)
#define SUCCESSOR_FORGOTTEN		(FAULT == 6)
#define HANDED_OVER_WHILE_TAKING	(FAULT == 7)
#define OWNER_KEPT_AT_HANDOVER		(FAULT == 8)
#define WHO_WAITS_SENDS_ON		(FAULT == 9)
/* With FAILURES: */
#define NOT_SAID_AGAIN			(FAULT == 10)
#define TAKEN_UP_TWICE			(FAULT == 11)
#ifdef UNCHECKED
#define QUEUED_IS_NOT_CHECKED		true
#else
#define QUEUED_IS_NOT_CHECKED		(FAULT == 12)
#endif
#define LATE_GRANT_DROPPED		(FAULT == 13)
#define LINK_FROM_QUEUEING		(FAULT == 14)
#define LOST_IF_NOT_BROUGHT		(FAULT == 15)
#define NOTICE_NOT_REFUSED		(FAULT == 16)

#define NOBODY	255

/* enum kdsm_block_role */
#define NONE	0
#define WAITING	1
#define GRANTED	2
#define TAKING	3
#define OWNER	4

mtype = { OWN, READ, YES, QUEUED, ASK, RETRY, REFUSED, LOST };

/* struct kdsm_block of each node. All links lead to node 0 at first. */
byte role[N], owner[N], next[N];
bool busy[N];

#ifdef FAILURES
byte handover[N];
bool given[N], retry[N];
byte failures;
#define may_fail	(failures < FAILURES)
#else
/* The node that a waiting node asked last: chase.node */
byte asked[N];
#endif

/*
 * From a node: type, receiver, and the number of a hand-over to the receiver or 0. With AHEAD, if no
 * link led to the receiver: NO_LINK + the number of the newest hand-over that the node has heard of.
 */
#define NO_LINK	128
chan question[N] = [1] of { mtype, byte, byte };
/*
 * To a node: type; for ASK, the node to ask; and the number of a hand-over, for ASK of that
 * to the node to ask, or 0 if that node is the sender's successor. In the code, a node that
 * has only heard of a hand-over cannot pass it on. The model ignores this difference,
 * because the receiver of that hand-over has taken it up by then.
 */
chan answer[N] = [1] of { mtype, byte, byte };
/* To a node: the number of the hand-over, or 0 to ask again */
#ifdef FAILURES
chan grant[N] = [6] of { byte };
/* Questions of a node that it takes for lost, but that arrive late */
chan late[N] = [2] of { mtype, byte, byte };
#else
chan grant[N] = [1] of { byte };
#endif

/* ---- what must hold after every step ---- */

/* Scratch variables, without meaning between steps */
byte i, j, k, front, steps, tokens, newest, said, whom_said, number_said;

#define has_it(n)	(role[n] >= GRANTED)
/* A YES to READ carries a 1, because it grants nothing. */
#define on_its_way(n)	(answer[n]?[YES,0,0] || grant[n]?[1])

inline check()
{
	i = 0;
#ifdef FAILURES
	do
	:: i < N ->
		if
		:: handover[i] > newest -> newest = handover[i]
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0;
	do
	:: i < N ->
		if
		:: has_it(i) -> tokens++; assert(handover[i] == newest)		/* one */
		:: !has_it(i) && given[i] && handover[i] == newest &&
		   handover[owner[i]] < newest -> tokens++
		:: else
		fi;
		i++
	:: else -> break
	od;
#else
	do
	:: i < N ->
		tokens = tokens + has_it(i) + on_its_way(i);
		i++
	:: else -> break
	od;
#endif
	assert(tokens == 1);			/* one */
	i = 0;
	do
	:: i < N ->
		j = i;
		steps = 0;
		assert(next[i] != i);		/* queue */
		do
#ifdef FAILURES
		:: has_it(j) || given[j] && handover[owner[j]] < handover[j] -> break
		:: else -> j = owner[j];
#else
		:: has_it(j) || on_its_way(j) -> break
		:: else ->
			/* Find the node in front of node j in the queue, if there is one. */
			front = NOBODY;
			k = 0;
			do
			:: k < N ->
				if
				:: next[k] == j ->
					assert(front == NOBODY);	/* queue */
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
#endif
			steps++;
			assert(steps < N)		/* links */
		od;
		i++
	:: else -> break
	od;
	i = 0; j = 0; k = 0; front = 0; steps = 0; tokens = 0; newest = 0
}

/* ---- hand-overs ---- */

/* kdsm_handover_get() */
inline get(taker, number)
{
#ifdef FAILURES
	if
	:: number > handover[taker] || TAKEN_UP_TWICE && number && role[taker] == NONE ->
		assert(role[taker] == WAITING || role[taker] == NONE);
		handover[taker] = number;
		given[taker] = false;
		owner[taker] = taker;
		role[taker] = (role[taker] == WAITING -> TAKING : GRANTED)
	:: else
	fi
#else
	assert(role[taker] == WAITING);		/* one */
	role[taker] = TAKING
#endif
}

/* kdsm_hand_over() */
inline hand_over(giver, heir)
{
	if
	:: !OWNER_KEPT_AT_HANDOVER -> role[giver] = NONE
	:: else
	fi;
	if
	:: !LINK_KEPT_AT_HANDOVER -> owner[giver] = heir
	:: else
	fi;
#ifdef FAILURES
	handover[giver] = handover[giver] + 1;
	given[giver] = true
#endif
}

/* kdsm_hand_over(), kdsm_grant_fill(), kdsm_grant_send() */
inline grant_next(n)
{
	hand_over(n, next[n]);
#ifdef FAILURES
	grant[next[n]]!handover[n];
#else
	grant[next[n]]!1;
#endif
	if
	:: !SUCCESSOR_KEPT -> next[n] = NOBODY
	:: else
	fi
}

#ifdef FAILURES
#define known(n)	handover[n]
#else
#define known(n)	0
#endif

/* ---- answers, under the lock of the block on node `to` ---- */

#define takes_next(n)	(next[n] == NOBODY || SUCCESSOR_OVERWRITTEN)
#define waits(n)	(role[n] == WAITING && !WHO_WAITS_SENDS_ON || \
			 role[n] == TAKING && !HANDED_OVER_WHILE_TAKING)
#define gives(n)	((role[n] == OWNER || role[n] == GRANTED) && next[n] == NOBODY || \
			 role[n] == TAKING && HANDED_OVER_WHILE_TAKING)

/* kdsm_own_refuses() */
#ifdef AHEAD
#define refuses(n, tells)	(role[n] == WAITING && tells >= NO_LINK + handover[n] && \
				 !NOTICE_NOT_REFUSED)
#else
#define refuses(n, tells)	false
#endif

/* kdsm_coherence_serve_own(), kdsm_own() */
inline serve_own(from, to, tells)
{
	whom_said = 0;
	number_said = 0;
#ifdef FAILURES
	if
	:: tells < NO_LINK -> get(to, tells)
	:: else
	fi;
#endif
	if
#ifdef FAILURES
	:: next[to] == from ->
		said = QUEUED
	:: next[to] != from && refuses(to, tells) ->
		said = RETRY
	:: role[to] == OWNER && next[to] == NOBODY && may_fail ->
		failures++;
		said = REFUSED
#endif
#ifdef LEASES
	:: role[to] == OWNER && next[to] == NOBODY ->
		next[to] = from;
		said = QUEUED
#endif
	:: gives(to) ->
		hand_over(to, from);
		said = YES;
#ifdef FAILURES
		number_said = handover[to]
#endif
	:: waits(to) && takes_next(to) && next[to] != from && !refuses(to, tells) ->
		next[to] = from;
#ifdef FAILURES
		if
		:: LINK_FROM_QUEUEING -> owner[to] = from
		:: else
		fi;
#endif
		said = QUEUED
	:: else ->
		said = ASK;
		if
		:: next[to] != NOBODY && !NEXT_NOT_TOLD -> whom_said = next[to]
		:: else ->
			whom_said = owner[to];
			number_said = known(to)
		fi
	fi
}

/* kdsm_coherence_serve_read() */
inline serve_read(to, tells)
{
	whom_said = 0;
	number_said = 0;
#ifdef FAILURES
	get(to, tells);
#endif
	if
	:: role[to] == OWNER || role[to] == GRANTED ->
		said = YES;
		whom_said = 1;
		number_said = known(to)
	:: role[to] == NONE ->
		said = ASK;
		whom_said = owner[to];
		number_said = known(to)
	:: else ->
		said = RETRY
	fi
}

inline forget_said()
{
	said = 0; whom_said = 0; number_said = 0; to = 0; tells = 0
}

/* Delivers the messages that a node sends, and the grants to that node. */
proctype wire(byte me)
{
	byte to, tells;
	mtype what;

end:	do
	:: atomic {
		question[me]?OWN,to,tells;
		serve_own(me, to, tells);
		answer[me]!said,whom_said,number_said;
		forget_said();
		d_step { check() }
	   }
#ifdef READS
	:: atomic {
		question[me]?READ,to,tells;
		serve_read(to, tells);
		answer[me]!said,whom_said,number_said;
		forget_said();
		d_step { check() }
	   }
#endif
	/* kdsm_coherence_serve_grant() */
	:: d_step {
		grant[me]?tells ->
#ifdef FAILURES
		if
		:: tells == 0 -> retry[me] = (role[me] == WAITING)
		:: tells && LATE_GRANT_DROPPED && role[me] == NONE ->
			handover[me] = (tells > handover[me] -> tells : handover[me])
		:: else -> get(me, tells)
		fi;
#else
		get(me, tells);
#endif
		tells = 0;
		check()
	   }
#ifdef LEASES
	/* kdsm_ownership_owed_work() */
	:: d_step {
		role[me] == OWNER && next[me] != NOBODY ->
		grant_next(me);
		check()
	   }
#endif
#ifdef FAILURES
	/* The question is lost, or arrives late. */
	:: atomic {
		may_fail && full(question[me]) ->
		failures++;
		question[me]?what,to,tells;
		if
		:: true
		:: late[me]!what,to,tells
		fi;
		answer[me]!LOST,0,0;
		forget_said(); what = 0
	   }
	/* The answer is lost; the node may repeat its question. */
	:: atomic {
		may_fail && full(answer[me]) && !answer[me]?[LOST,_,_] ->
		failures++;
		answer[me]?_,_,_;
		answer[me]!LOST,0,0
	   }
	:: d_step { may_fail && nempty(grant[me]) -> failures++; grant[me]?_ }
	:: atomic {
		late[me]?OWN,to,tells;
		serve_own(me, to, tells);
		forget_said();
		d_step { check() }
	   }
#ifdef READS
	:: atomic {
		late[me]?READ,to,tells;
		serve_read(to, tells);
		forget_said();
		d_step { check() }
	   }
#endif
#endif
	od
}

/* ---- asking ---- */

/* kdsm_chase_start() */
inline start()
{
	whom = owner[me];
#ifdef FAILURES
	best = whom;
	heard = handover[me]
#endif
}

#ifdef FAILURES
/* kdsm_chase_known() */
#define tell	(is_ahead && whom != best -> NO_LINK + heard : \
		 (whom == best && !NOT_SAID_AGAIN -> heard : 0))

inline forget()
{
	whom = 0; best = 0; heard = 0; n = 0; is_ahead = false
}

/*
 * kdsm_chase_follow(). Before: n is the number in the answer. After: the node has to back
 * off before it asks again if n is not 0.
 */
inline follow()
{
	if
	:: n > heard ->
		best = whom;
		heard = n;
		if
		:: whom == me && !NOT_SAID_AGAIN -> get(me, n); start(); n = 1
		:: whom == me && NOT_SAID_AGAIN -> start(); n = 1
		:: else -> n = 0
		fi
	:: n && n <= heard || !n && whom == me ->
		whom = best;
		n = 1
	:: else
	fi
}
#else
#define tell	0

inline forget()
{
	whom = 0; n = 0
}
#endif

#ifdef FAILURES
/* Lets all waiting nodes ask again when nothing else can happen. */
#if defined(EARLY) || defined(UNCHECKED)
#define later		true
#else
#define later		retry[me]

proctype time()
{
	byte n;

end:	do
	:: atomic {
		timeout && (role[0] == WAITING || role[1] == WAITING ||
			    role[N - 2] == WAITING || role[N - 1] == WAITING) ->
		d_step {
			do
			:: n < N -> retry[n] = (role[n] == WAITING); n++
			:: else -> break
			od;
			n = 0
		}
	   }
	od
}
#endif

/* kdsm_ownership_leave() */
inline leave()
{
	if
	:: role[me] == WAITING ->
		role[me] = NONE;
		if
		:: next[me] != NOBODY -> grant[next[me]]!0; next[me] = NOBODY
		:: else
		fi;
		retry[me] = false;
		busy[me] = false;
		hops = 0;
		forget()
	:: else
	fi
}
#endif

proctype node(byte me)
{
	byte whom, n;
#ifdef FAILURES
	byte best, heard, hops;
	bool is_ahead;
#endif
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
	/* kdsm_block_take() of a block that this node does not own; kdsm_ownership_take() */
#ifdef FAILURES
	:: d_step {
		once_more && !busy[me] && role[me] == GRANTED ->
		busy[me] = true;
		role[me] = TAKING;
		count_round
	   };
	   goto bring
#endif
	:: d_step {
		once_more && !busy[me] && role[me] == NONE ->
		busy[me] = true;
		start();
#ifndef FAILURES
		asked[me] = whom;
#endif
		if
		:: !WAITING_SET_AFTER_ASKING -> role[me] = WAITING
		:: else
		fi;
		count_round;
		check()
	   };
#ifdef AHEAD
		/* kdsm_chase_ahead() */
		if
		:: true
		:: whom = (me + 1) % N; is_ahead = true
		:: whom = (me + N - 1) % N; is_ahead = true
		fi;
#endif
		/* kdsm_chase() */
again:
#ifdef FAILURES
		atomic {
			retry[me] = false;
			if
			:: role[me] != WAITING -> goto bring
			:: else -> question[me]!OWN,whom,tell
			fi
		};
#else
		question[me]!OWN,whom,0;
#endif
		if
#ifdef FAILURES
		/* kdsm_chase_follow() */
		:: atomic {
			answer[me]?ASK,whom,n ->
			is_ahead = false;
			d_step { follow(); check() };
			if
			:: n -> n = 0; goto pause
			:: else -> goto hop
			fi
		   }
		:: atomic { answer[me]?YES,_,n -> get(me, n); n = 0; check();
			assert(role[me] == TAKING) }		/* one */
		:: atomic { answer[me]?QUEUED,_,_ -> goto queued }
		:: atomic { answer[me]?REFUSED,_,_ -> leave(); check();
			if
			:: busy[me] -> goto bring
			:: else -> goto done
			fi }
#ifdef AHEAD
		:: atomic { answer[me]?RETRY,_,_ -> is_ahead = false; whom = best; goto again }
#endif
		:: atomic { answer[me]?LOST,_,_ ->
			whom = (is_ahead -> best : whom);
			is_ahead = false;
			if
			:: true -> goto again
			:: leave();
			   if
			   :: busy[me] -> goto bring
			   :: else -> goto done
			   fi
			fi }
#else
		:: d_step {
			answer[me]?ASK,whom,n;
			assert(whom != me);		/* links */
			asked[me] = whom;
			check()
		   };
		   goto again
		:: d_step {
			answer[me]?YES,_,n;
			role[me] = TAKING;
			check()
		   }
		:: d_step {
			answer[me]?QUEUED,_,n;
			if
			:: WAITING_SET_AFTER_ASKING -> role[me] = WAITING
			:: else
			fi;
			check()
		   };
		   role[me] == TAKING
#endif
		fi;
#ifdef FAILURES
		goto bring;
hop:		/* After many hops without an answer but ASK, back off, and ask along the links. */
		hops++;
		if
		:: hops < 2 * N -> goto again
		:: else -> hops = 0; whom = best
		fi;
pause:		if
		:: role[me] != WAITING -> goto bring
		:: later -> goto again
		:: atomic { may_fail -> failures++; leave();
			if
			:: busy[me] -> goto bring
			:: else -> goto done
			fi }
		fi;
queued:		hops = 0;
		if
		:: role[me] != WAITING
		:: retry[me] && !QUEUED_IS_NOT_CHECKED -> whom = best; goto again
#ifdef EARLY
		:: whom = best; goto again
#endif
		:: atomic { may_fail -> failures++; leave();
			if
			:: busy[me] -> goto bring
			:: else -> goto done
			fi }
		fi;
bring:		hops = 0;
		if
		/* kdsm_ownership_fail() */
		:: d_step {
			may_fail ->
			failures++;
			busy[me] = false;
			forget();
			if
			:: next[me] != NOBODY -> grant_next(me)
			:: next[me] == NOBODY && LOST_IF_NOT_BROUGHT -> role[me] = NONE
			:: else -> role[me] = GRANTED
			fi;
			check()
		   };
		   goto done
		/* The policy cannot hand the block over to the successor. */
		:: d_step {
			may_fail && next[me] != NOBODY ->
			failures++;
			busy[me] = false;
			forget();
			role[me] = OWNER;
			grant[next[me]]!0;
			next[me] = NOBODY;
			check()
		   };
		   goto done
		:: true
		fi;
#endif
		/* The node has fetched the content. kdsm_ownership_taken() */
		d_step {
			role[me] = OWNER;
			busy[me] = false;
			if
			:: next[me] != NOBODY && !SUCCESSOR_FORGOTTEN -> grant_next(me)
			:: next[me] != NOBODY && SUCCESSOR_FORGOTTEN -> next[me] = NOBODY
			:: else
			fi;
			forget();
#ifndef FAILURES
			asked[me] = 0;
#endif
			check()
		};
done:
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
		start();
		count_round
	   };
read:		question[me]!READ,whom,tell;
		if
		:: d_step {
			answer[me]?ASK,whom,n;
#ifdef FAILURES
			follow(); n = 0;
			check()
#else
			assert(whom != me)		/* links */
#endif
		   };
		   goto read
		:: answer[me]?RETRY,_,_; goto read
#ifdef FAILURES
		:: answer[me]?LOST,_,_;
		   if
		   :: goto read
		   :: true
		   fi
#endif
		:: d_step {
			answer[me]?YES,1,n;
			if
#ifdef FAILURES
			:: role[me] == NONE && whom != me && n > handover[me] ->
				owner[me] = whom;
				handover[me] = n;
				given[me] = false
#else
			:: role[me] == NONE -> owner[me] = whom
#endif
			:: else
			fi
		   }
		fi;
		d_step {
			forget();
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
#ifdef FAILURES
			handover[n] = 1;
#endif
			run wire(n);
			run node(n);
			n++
		:: else -> break
		od;
		n = 0;
#if defined(FAILURES) && !defined(EARLY) && !defined(UNCHECKED)
		run time();
#endif
		role[0] = OWNER
	}
}

#ifdef OUTRUN
ltl gets { [] (role[2] == WAITING -> <> (role[2] != WAITING)) }
#endif
