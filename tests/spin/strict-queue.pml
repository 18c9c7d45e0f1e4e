/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers in the queue for one block under policy strict (kmod/coherence/strict.c, ownership.c,
 * chase.c). N nodes read the block ROUNDS times each, and the first WRITERS of them may write
 * instead. ownership.pml has the walk along the
 * links and lost hand-overs, so here a node finds the end of the queue in one step, and no grant
 * is lost.
 *
 * Steps: everything that the code does under the lock of the block is one step. A message or a
 * reply takes arbitrarily long. An owner's lease may have ended or not whenever a node asks. A
 * reader uses its copy in the step in which the copy arrives, as the code maps the block under its
 * lock.
 *
 * With LOSSES=n, n messages are lost in all: a LEND, a reply to READ, or an INVALIDATE, which then
 * arrives at any later time while its sender repeats it. Without LOSSES a queued reader never asks
 * again, so a reader that is forgotten waits forever.
 *
 * Asserted after every step, see check():
 *	alone	No node has a copy while another node writes.
 *	newest	A copy that arrives is the newest content.
 * Checked by spin: no node waits forever (invalid end states), and no search goes on forever
 * (non-progress cycles), so every request is served.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef N
#define N	3
#endif
#ifndef ROUNDS
#define ROUNDS	1
#endif
#ifndef WRITERS
#define WRITERS	N
#endif
#ifndef LOSSES
#define LOSSES	0
#endif
#ifndef FAULT
#define FAULT	0
#endif
#define READERS_NOT_SERVED		(FAULT == 1)
#define READERS_NOT_COUNTED		(FAULT == 2)
#define LOAN_GIVEN_UP_AND_USED		(FAULT == 3)
#define LATE_LOAN_TAKEN			(FAULT == 4)
#define QUEUED_IS_NOT_CHECKED		(FAULT == 5)
#define LOAN_MISSED_WHILE_ASKING	(FAULT == 6)
#define SOURCE_IS_WRITER		(FAULT == 7)

#define NOBODY	255
#define bit(n)	(1 << (n))

/* enum kdsm_block_role, without GRANTED; enum kdsm_block_state; enum kdsm_block_reading */
mtype = { NONE, WAITING, TAKING, OWNER };
mtype = { INVALID, READABLE, WRITABLE };
mtype = { IDLE, ASKING, QUEUED, LENT };
mtype = { YES };

/* struct kdsm_block of each node */
mtype role[N], state[N], reading[N];
byte next[N], waiting[N], readers[N], wts[N], wanted[N], lender[N], from[N];
bool again[N];
bool young[N];			/* block->late: next asked after this node got the block */
byte frame[N];			/* content: number of the write that made it */
byte newest;			/* number of the last write */
byte holder;			/* node that the block was handed over to last */
byte losses;

/* To a node: YES with the lender and its timestamp, or QUEUED */
chan reply[N] = [1] of { mtype, byte, byte };
/* To a node: LEND with the lender and its timestamp; GRANT with node, timestamp and readers */
chan lend[N] = [4] of { byte, byte };
chan grant[N] = [1] of { byte, byte, byte };
/*
 * To a node: INVALIDATE with the writer, its timestamp and the node with the content; and those
 * that arrive late
 */
chan invalidate[N] = [1] of { byte, byte, byte };
chan late[N] = [2] of { byte, byte, byte };

/* Scratch variables, without meaning between steps */
byte i, j, t;

inline check()
{
	i = 0;
	do
	:: i < N && state[i] == WRITABLE ->
		j = 0;
		do
		:: j < N -> assert(j == i || state[j] == INVALID); j++	/* alone */
		:: else -> break
		od;
		i++
	:: i < N && state[i] != WRITABLE -> i++
	:: else -> break
	od;
	i = 0; j = 0
}

/* t: the end of the queue */
inline find_end()
{
	t = holder;
	do
	:: next[t] != NOBODY -> t = next[t]
	:: else -> break
	od
}

/* t: the node that notes a reader, kdsm_read() */
inline find_place()
{
	find_end();
	if
	:: (role[holder] == TAKING || role[holder] == OWNER) && next[holder] != NOBODY &&
	   young[holder] -> t = holder
	:: else
	fi
}

/* kdsm_ownership_lent() */
inline lent(n, source, stamp)
{
	if
	:: (stamp >= wanted[n] || LATE_LOAN_TAKEN) &&
	   (reading[n] == ASKING || reading[n] == QUEUED) ->
		lender[n] = source;
		reading[n] = LENT
	:: else
	fi
}

/* kdsm_loan_get(): no node gives another up here, so the timestamp alone tells a late loan */
inline loan(n, source, stamp)
{
	if
	:: reading[n] == ASKING && !LATE_LOAN_TAKEN -> again[n] = true
	:: reading[n] == QUEUED && lender[n] != source && !LATE_LOAN_TAKEN
	:: else -> lent(n, source, stamp)
	fi
}

/* kdsm_owner_hand_over(), kdsm_turn_grant() */
inline hand_over(giver, heir)
{
	state[giver] = INVALID;
	role[giver] = NONE;
	holder = heir;
	grant[heir]!giver,wts[giver],readers[giver]
}

/* kdsm_owner_lend() */
inline serve_readers(n)
{
	i = 0;
	do
	:: i < N ->
		if
		:: waiting[n] & bit(i) && !READERS_NOT_SERVED -> lend[i]!n,wts[n]
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0;
	if
	:: !READERS_NOT_COUNTED && !READERS_NOT_SERVED -> readers[n] = readers[n] | waiting[n]
	:: else
	fi;
	if
	:: waiting[n] && state[n] == WRITABLE -> state[n] = READABLE
	:: else
	fi;
	waiting[n] = 0
}

/* kdsm_copy_end(), which answers 0 here; -EAGAIN is that the message stays in its channel */
inline copy_end(n, stamp)
{
	if
	:: stamp > wanted[n] && reading[n] != LENT && role[n] != TAKING && role[n] != OWNER ->
		state[n] = INVALID;
		again[n] = (reading[n] == ASKING && !LOAN_MISSED_WHILE_ASKING);
		wanted[n] = stamp
	:: else
	fi
}

#define lends(n, stamp)	(reading[n] == QUEUED && stamp > wanted[n] && role[n] == NONE)
#define keeps(n, stamp)	(reading[n] == LENT && stamp > wanted[n] && !LOAN_GIVEN_UP_AND_USED)

/* Serves the messages to a node, and ends the lease of a block that nodes wait for. */
proctype wire(byte me)
{
	byte who, stamp, set, source;

end:	do
	/* kdsm_coherence_serve_lend() */
	:: d_step { lend[me]?who,stamp -> loan(me, who, stamp); who = 0; stamp = 0 }
	/* kdsm_coherence_serve_grant() */
	:: d_step {
		grant[me]?who,stamp,set ->
		assert(role[me] == WAITING);
		role[me] = TAKING;
		from[me] = who;
		wts[me] = stamp;
		readers[me] = set;
		who = 0; stamp = 0; set = 0
	   }
	/* kdsm_coherence_serve_invalidate() */
	:: atomic {
		invalidate[me]?<who,stamp,source> ->
		if
		:: lends(me, stamp) -> lent(me, source, stamp - 1)
		:: !lends(me, stamp) && !keeps(me, stamp) ->
			invalidate[me]?_,_,_;
			copy_end(me, stamp);
			readers[who] = readers[who] & ~bit(me)
		:: losses < LOSSES ->
			losses++;
			late[me]!who,stamp,source
		fi;
		who = 0; stamp = 0; source = 0
	   }
	:: d_step {
		late[me]?who,stamp,source ->
		if
		:: lends(me, stamp) -> lent(me, source, stamp - 1)
		:: else -> copy_end(me, stamp)
		fi;
		who = 0; stamp = 0; source = 0
	   }
	/* kdsm_ownership_pass() */
	:: d_step {
		role[me] == OWNER && (waiting[me] || next[me] != NOBODY) ->
		serve_readers(me);
		if
		:: next[me] != NOBODY ->
			hand_over(me, next[me]);
			next[me] = NOBODY
		:: else
		fi;
		check()
	   }
	:: d_step { losses < LOSSES && nempty(lend[me]) -> losses++; lend[me]?_,_ }
	od
}

proctype node(byte me)
{
	byte rounds, who, stamp;
	mtype what;

round:	if
	:: rounds == ROUNDS -> goto done
	:: d_step { rounds < ROUNDS && state[me] == INVALID -> rounds++; reading[me] = ASKING };
	   goto read
	:: rounds < ROUNDS && me < WRITERS -> rounds++; goto write
	/* The node has a copy, and does not write. */
	:: me >= WRITERS && state[me] != INVALID -> goto done
	fi;

	/* kdsm_strict_read_miss(), kdsm_ownership_borrow(), kdsm_read() */
read:	atomic {
		again[me] = false;
		find_place();
		if
		:: role[t] == OWNER && !waiting[t] && next[t] == NOBODY ->
			readers[t] = readers[t] | bit(me);
			state[t] = (state[t] == WRITABLE -> READABLE : state[t]);
			reply[me]!YES,t,wts[t]
		/* The lease of an owner that has lent to this node has ended */
		:: !(role[t] == OWNER && !waiting[t] && readers[t] & bit(me)) ->
			waiting[t] = waiting[t] | bit(me);
			reply[me]!QUEUED,t,wts[t]
		fi;
		t = 0
	};
	atomic {
		reply[me]?what,who,stamp;
		if
		:: losses < LOSSES -> losses++
		:: again[me] || reading[me] == LENT
		:: what == QUEUED && !again[me] && reading[me] == ASKING ->
			lender[me] = who;
			wanted[me] = (stamp > wanted[me] -> stamp : wanted[me]);
			reading[me] = QUEUED
		:: what == YES && !again[me] -> lent(me, who, stamp)
		fi;
		what = 0; who = 0; stamp = 0
	};
	if
	:: reading[me] == ASKING -> goto read
	:: reading[me] == LENT
	:: d_step { reading[me] == QUEUED && again[me] -> reading[me] = ASKING };
	   goto read
	:: atomic {
		LOSSES && !QUEUED_IS_NOT_CHECKED && timeout && reading[me] == QUEUED ->
		reading[me] = ASKING
	   };
	   goto read
	fi;
	d_step {
		assert(frame[lender[me]] == newest);	/* newest */
		frame[me] = frame[lender[me]];
		reading[me] = IDLE;
		state[me] = READABLE;
		check()
	};
	goto round;

	/* kdsm_strict_write_miss(), kdsm_own() */
write:	atomic {
		if
		:: role[me] == OWNER -> role[me] = TAKING; from[me] = me
		:: role[me] == NONE ->
			role[me] = WAITING;
			find_end();
			if
			:: role[t] == OWNER && !waiting[t] -> hand_over(t, me)
			:: next[t] = me; young[t] = (role[t] != WAITING)
			fi;
			t = 0
		fi;
		check()
	};
	role[me] == TAKING;
	d_step {
		wts[me]++;
		wanted[me] = wts[me];
		readers[me] = readers[me] & ~bit(me)
	};
	/* kdsm_recall_begin() */
	atomic {
		do
		:: who < N ->
			if
			:: readers[me] & bit(who) && !SOURCE_IS_WRITER ->
				invalidate[who]!me,wts[me],from[me]
			:: readers[me] & bit(who) && SOURCE_IS_WRITER ->
				invalidate[who]!me,wts[me],me
			:: else
			fi;
			who++
		:: else -> who = 0; break
		od
	};
	/* The readers may fetch the content meanwhile */
	d_step {
		if
		:: state[me] == INVALID -> frame[me] = frame[from[me]]
		:: else
		fi
	};
	readers[me] == 0;
	d_step {
		newest++;
		frame[me] = newest;
		state[me] = WRITABLE;
		role[me] = OWNER;
		from[me] = 0;
		check()
	};
	goto round;
done:
	skip
}

init {
	byte n;

	atomic {
		do
		:: n < N ->
			next[n] = NOBODY;
			role[n] = NONE;
			state[n] = INVALID;
			reading[n] = IDLE;
			run wire(n);
			run node(n);
			n++
		:: else -> break
		od;
		n = 0;
		role[0] = OWNER;
		state[0] = READABLE
	}
}
