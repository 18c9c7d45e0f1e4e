/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock of kind rma-rw: READERS nodes that read, and WRITERS that write, again and
 * again, with COUNTERS counters. Who reads adds one to its counter, and takes it
 * away again. Writers queue at the root, which here is a list: it is in lock-queue.pml and
 * lock-tree.pml.
 *
 * A counter is a word {arrivals, readers, WANT, WRITE, writer}. A writer that gets the root, and
 * not with the counters closed, adds WANT and its id to each, and takes away the arrivals
 * that it has read before, so that they are counted from then on: T_R more readers may
 * enter. When there is no reader, or the last one has left, which tells the writer so,
 * it adds WRITE: if there was no reader then, none can come in any more. Else it waits
 * to be told, again, and reads the counter. A TELL may be old: it is only a hint.
 *
 * A reader that may not enter asks the home of the counter: there it is let in, if the counter has
 * been opened meanwhile; else it is subtracted and registered. So many as T_W writers
 * go in a row; the last one has the homes open the counters, which counts those in that are
 * registered; and only then it passes on the root. A node that reads may be joined by other
 * threads of its own, at most T_L times.
 *
 * What is a step: a fetch-and-add; what a home does under its lock. TELL, OPEN and GO
 * arrive at any time later. Everybody may stop for ever when he has nothing to do with
 * the lock, so that nobody can rely on somebody who comes later.
 *
 * Checked: no writer with a reader or another writer; at most T_R readers enter a counter
 * that a writer waits for; who is registered waits for at most T_W writers. And by
 * spin: nobody waits for what does not come (invalid end state); with LTL, that reader 0 and
 * writer 0 get it, though all go on for ever.
 *
 * FAULT=n puts a mistake into the protocol. Each must be found (tests/spin/check).
 */
#ifndef FAULT
#define FAULT	0
#endif
#define WRITE_NOT_LOOKED_AT		(FAULT == 1)
#define READERS_NOT_LOOKED_AT_AGAIN	(FAULT == 2)
#define TELL_TAKEN_FOR_EMPTY		(FAULT == 3)
#define TOLD_CLEARED_TOO_LATE		(FAULT == 4)
#define NOT_TOLD_BY_WHO_IS_REGISTERED	(FAULT == 5)
#define NOT_TOLD_BEFORE_WRITE		(FAULT == 6)
#define REGISTERED_THOUGH_OPEN		(FAULT == 7)
#define LET_IN_UNCOUNTED		(FAULT == 8)
#define ROOT_PASSED_ON_BEFORE_OPEN	(FAULT == 9)
#define KEPT_CLOSED			(FAULT == 10)
#define WRITERS_IN_A_ROW_NOT_COUNTED	(FAULT == 11)
#define ARRIVALS_NOT_LOOKED_AT		(FAULT == 12)
#define OPENED_WITHOUT_WAKING		(FAULT == 13)
#define ENTERED_AFTER_FIRST_COUNTER	(FAULT == 14)
#define GO_BEFORE_ANSWER_DROPPED	(FAULT == 15)
/* With LTL: */
#define JOINED_WITHOUT_END		(FAULT == 16)

#ifndef READERS
#define READERS		2
#endif
#ifndef WRITERS
#define WRITERS		2
#endif
#ifndef COUNTERS
#define COUNTERS	1
#endif
#ifndef T_R
#define T_R		1
#endif
#ifndef T_W
#define T_W		2
#endif
#ifndef T_L
#define T_L		0
#endif
#define counter_of(r)	((r) % COUNTERS)

#define NOBODY		255

/* The words */
byte readers[COUNTERS], writer[COUNTERS];
bool want[COUNTERS], write[COUNTERS];
/* Since a writer has read the counter, to add WANT; not more than T_R. */
byte arrivals[COUNTERS];
bool counting[COUNTERS];
/* At the home of each */
bool registered[READERS];

/* A node that reads */
#define OUT		0
#define ASKING		1
#define IN		2
byte state[READERS];
/* Of who reads: to a writer, about its counter. */
chan tell[READERS] = [1] of { byte };
chan go[READERS] = [1] of { bool };
#if GO_BEFORE_ANSWER_DROPPED
bool asked[READERS];		/* and has not heard */
#endif

/* A node that writes */
bool told[WRITERS * COUNTERS];
bool wants[WRITERS], closing[WRITERS];
chan open[COUNTERS] = [1] of { bool };

/* The root: the first in the list has it. */
chan root = [WRITERS] of { byte };
/* They go with it: */
bool closed;
byte row;

/* What is true */
bool inside;
byte entered[COUNTERS];			/* readers, while a writer wants to */
byte overtaken[READERS];		/* by writers, since it was registered */

#define of(w, k)	((w) * COUNTERS + (k))

#define blocks(k)	(write[k] && !WRITE_NOT_LOOKED_AT || \
			 want[k] && arrivals[k] >= T_R && !ARRIVALS_NOT_LOOKED_AT && \
			 !(write[k] && WRITE_NOT_LOOKED_AT))

inline enter(r)
{
	state[r] = IN;
	assert(!inside)				/* both */
}

/* The fetch-and-add of -1, for who reads. */
inline subtract(r, k, tells)
{
	readers[k]--;
	if
	:: readers[k] == 0 && (want[k] && !NOT_TOLD_BEFORE_WRITE || write[k]) && tells ->
		tell[r]!writer[k]
	:: else
	fi
}

/* Messages arrive at who reads, from who reads, and at homes. */
proctype wire(byte me)
{
	byte w, r;

end:	do
	:: d_step {
		tell[me]?w ->
		told[of(w, counter_of(me))] = closing[w];
		w = 0
	   }
#if GO_BEFORE_ANSWER_DROPPED
	:: d_step { full(go[me]) && !asked[me] -> go[me]?_; enter(me) }
	:: full(go[me]) && asked[me] -> go[me]?_
#else
	:: d_step { go[me]?_ -> enter(me) }
#endif
	:: d_step {
		me < COUNTERS && nempty(open[me % COUNTERS]) ->
		open[me]?_;
		want[me] = false;
		write[me] = false;
		writer[me] = 0;
		counting[me] = false;
		arrivals[me] = 0;
		entered[me] = 0;
		r = me;
		do
		:: r < READERS ->
			if
			:: registered[r] && !OPENED_WITHOUT_WAKING ->
				registered[r] = false;
				overtaken[r] = 0;
				if
				:: !LET_IN_UNCOUNTED -> readers[me]++
				:: else
				fi;
				go[r]!true
			:: else
			fi;
			r = r + COUNTERS
		:: else -> break
		od;
		r = 0
	   }
	od
}

proctype reader(byte me)
{
	byte k = counter_of(me), joins;

end:	do
	:: state[me] == OUT -> break			/* It need not go on. */
	/* Acquire */
	:: d_step {
		state[me] == OUT ->
		if
		:: blocks(k) -> state[me] = ASKING
		:: else ->
			enter(me);
			if
			:: want[k] && !write[k] ->
				entered[k]++;
				assert(entered[k] <= T_R)		/* T_R */
			:: else
			fi
		fi;
		arrivals[k] = arrivals[k] + (counting[k] && arrivals[k] < T_R);
		readers[k]++
	   };
		if
		:: state[me] == IN
		:: d_step {
			/* The home is asked. */
			state[me] == ASKING && nfull(tell[me]) ->
			if
			:: !want[k] && !write[k] && !REGISTERED_THOUGH_OPEN -> enter(me)
			:: else ->
				subtract(me, k, !NOT_TOLD_BY_WHO_IS_REGISTERED);
				registered[me] = true;
#if GO_BEFORE_ANSWER_DROPPED
				asked[me] = true
#endif
			fi
		   };
#if GO_BEFORE_ANSWER_DROPPED
			asked[me] = false;
#endif
			state[me] == IN
		fi;
		/* Here it reads. */
#if T_L > 0
		/* Another thread joins the first, which leaves. */
		do
		:: joins < T_L || JOINED_WITHOUT_END -> joins = joins + !JOINED_WITHOUT_END
		:: true -> break
		od;
#endif
		/* Release */
		atomic {
			nfull(tell[me]) ->
			joins = 0;
			state[me] = OUT;
			subtract(me, k, true)
		}
	od
}

inline overtake()
{
	r = 0;
	do
	:: r < READERS ->
		assert(state[r] != IN);			/* both */
		if
		:: registered[r] ->
			overtaken[r]++;
			assert(overtaken[r] <= T_W)	/* T_W */
		:: else
		fi;
		r++
	:: else -> break
	od;
	r = 0
}

/* How far it is with a counter: */
#define WANTED	0		/* readers may come, and have to go */
#define EMPTY	1		/* it was, with WANT */
#define CLOSED	2		/* with WRITE, readers have to go */
#define DRAINED	3

proctype writer_of(byte me)
{
	byte k, r, n;
	byte stage[COUNTERS];

end:	do
	:: !wants[me] -> break				/* It need not go on. */
	:: d_step { !wants[me] -> wants[me] = true; root!me };
		if
		:: atomic { root?[eval(me)] && closed -> skip }
		:: atomic { root?[eval(me)] && !closed -> closing[me] = true };
			do
			:: k < COUNTERS ->
				d_step { counting[k] = true };
				d_step {
					assert(!want[k] && !write[k] && writer[k] == 0);
					want[k] = true;
					writer[k] = me;
					stage[k] = (readers[k] == 0 -> EMPTY : WANTED);
					k++
				}
			:: atomic { k == COUNTERS -> k = 0; break }
			od;
			do
			:: d_step {
				/* One that something is known of. */
				stage[0] == EMPTY || stage[0] != DRAINED && told[of(me, 0)] ->
				if
				:: !TOLD_CLEARED_TOO_LATE -> told[of(me, 0)] = false
				:: else
				fi
			   };
look:				atomic {
					if
					:: stage[k] == CLOSED ->
						if
						:: readers[k] == 0 || TELL_TAKEN_FOR_EMPTY ->
							stage[k] = DRAINED;
							n++
						:: else
						fi
					:: else ->
						write[k] = true;
						if
						:: readers[k] == 0 || READERS_NOT_LOOKED_AT_AGAIN ->
							stage[k] = DRAINED;
							n++
						:: else -> stage[k] = CLOSED
						fi
					fi
				};
				if
				:: TOLD_CLEARED_TOO_LATE -> told[of(me, k)] = false
				:: else
				fi;
				k = 0
#if COUNTERS > 1
			:: d_step {
				stage[1] == EMPTY || stage[1] != DRAINED && told[of(me, 1)] ->
				if
				:: !TOLD_CLEARED_TOO_LATE -> told[of(me, 1)] = false
				:: else
				fi;
				k = 1
			   };
				goto look
#endif
			:: atomic {
				n == COUNTERS || n == 1 && ENTERED_AFTER_FIRST_COUNTER ->
				n = 0;
				do
				:: k < COUNTERS -> stage[k] = 0; told[of(me, k)] = false; k++
				:: else -> break
				od;
				k = 0;
				closing[me] = false;
				closed = true;
				break
			   }
			od
		fi;
		/* Write */
		atomic {
			row = row + !WRITERS_IN_A_ROW_NOT_COUNTED;
			overtake();
			assert(!inside);			/* both */
			inside = true
		};
		atomic {
			inside = false;
			if
			:: len(root) > 1 && row < T_W -> root?_
			:: len(root) == 1 && KEPT_CLOSED -> row = 0; root?_
			:: else -> n = 1
			fi
		};
		if
		:: n == 1 ->
			do
			:: k < COUNTERS -> open[k]!true; k++
			:: atomic { k == COUNTERS -> k = 0; n = 0; break }
			od;
			atomic {
				/* Their answers. */
				empty(open[0]) && empty(open[COUNTERS - 1]) || ROOT_PASSED_ON_BEFORE_OPEN ->
				closed = false;
				row = 0;
				root?_
			}
		:: else
		fi;
		wants[me] = false
	od
}

init {
	byte n;

	atomic {
		do
		:: n < READERS -> run wire(n); run reader(n); n++
		:: else -> break
		od;
		n = 0;
		do
		:: n < WRITERS -> run writer_of(n); n++
		:: else -> break
		od;
		n = 0
	}
}

#ifdef LTL
ltl reads { [] (state[0] == ASKING -> <> (state[0] == IN)) }
ltl writes { [] (wants[0] -> <> !wants[0]) }
#endif
