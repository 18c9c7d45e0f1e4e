/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock of kind rma-rw (kmod/lock/rw.c, rw_write.c, rw_home.c): READERS nodes read and
 * WRITERS nodes write, again and again, with COUNTERS counters. A reader adds 1 to its
 * counter, and subtracts 1 when it leaves. Writers queue at the root, which is a list here;
 * lock-queue.pml and lock-tree.pml model the queue.
 *
 * A counter is a word {arrivals, readers, WANT, WRITE, writer}. A writer that gets the root
 * while the counters are open reads each counter. It then adds WANT and its id to the
 * counter and subtracts the arrivals that it has read, so arrivals count from then on and
 * T_R more readers may enter. The writer adds WRITE when the counter has no reader, or when
 * the last reader has left and has told the writer so. If the counter has no reader at that
 * moment, no reader can enter any more. Otherwise the writer waits until it is told again,
 * and reads the counter. A TELL may be stale, so it is only a hint.
 *
 * A reader that may not enter asks the home of its counter. If the counter is open again by
 * then, the home lets the reader in; otherwise it subtracts and registers the reader. At most
 * T_W writers have their turns in a row. The last of them makes the homes open the counters;
 * each home counts its registered readers in. Only then this writer hands the root over.
 * Other threads of a reading node may join the first thread, at most T_L times.
 *
 * Steps: a fetch-and-add is one step, and everything that a home does under its lock is one
 * step. TELL, OPEN and GO arrive at any later time. Each node may stop forever when it has
 * nothing to do with the lock, so no node can depend on a later one.
 *
 * Asserted: a writer is never inside with a reader or another writer (both); at most T_R
 * readers enter a counter while a writer waits for it (T_R); a registered reader waits for
 * at most T_W writers (T_W). Checked by spin: no node waits forever (invalid end state); with
 * LTL, reader 0 and writer 0 get the lock although all nodes go on forever.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
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

/* The words of the counters */
byte readers[COUNTERS], writer[COUNTERS];
bool want[COUNTERS], write[COUNTERS];
/* Arrivals since a writer read the counter in order to add WANT; counted up to T_R */
byte arrivals[COUNTERS];
bool counting[COUNTERS];
/* At the home of the reader's counter */
bool registered[READERS];

/* A reader */
#define OUT		0
#define ASKING		1
#define IN		2
byte state[READERS];
/* From a reader to a writer, about the reader's counter */
chan tell[READERS] = [1] of { byte };
chan go[READERS] = [1] of { bool };
#if GO_BEFORE_ANSWER_DROPPED
bool asked[READERS];		/* the answer has not arrived yet */
#endif

/* A writer */
bool told[WRITERS * COUNTERS];
bool wants[WRITERS], closing[WRITERS];
chan open[COUNTERS] = [1] of { bool };

/* The root: the first writer in the list has it. */
chan root = [WRITERS] of { byte };
/* Handed over with the root: */
bool closed;				/* the counters have WRITE */
byte row;				/* turns of writers since then */

/* The true state, which the nodes do not know */
bool inside;				/* a writer has the lock */
byte entered[COUNTERS];			/* readers that entered while a writer waits */
byte overtaken[READERS];		/* turns of writers since the reader was registered */

#define of(w, k)	((w) * COUNTERS + (k))

#define blocks(k)	(write[k] && !WRITE_NOT_LOOKED_AT || \
			 want[k] && arrivals[k] >= T_R && !ARRIVALS_NOT_LOOKED_AT && \
			 !(write[k] && WRITE_NOT_LOOKED_AT))

inline enter(r)
{
	state[r] = IN;
	assert(!inside)				/* both */
}

/* The fetch-and-add of -1 of reader r; tells: TELL the writer if r was the last reader. */
inline subtract(r, k, tells)
{
	readers[k]--;
	if
	:: readers[k] == 0 && (want[k] && !NOT_TOLD_BEFORE_WRITE || write[k]) && tells ->
		tell[r]!writer[k]
	:: else
	fi
}

/* Delivers TELL from a reader, GO to a reader, and OPEN to the home of a counter. */
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
	:: state[me] == OUT -> break			/* The reader may stop. */
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
			/* The home answers. */
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
		/* The reader is inside. */
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

/* Stages of closing a counter */
#define WANTED	0		/* WANT is set; T_R more readers may enter, all must leave */
#define EMPTY	1		/* WANT is set, and no reader was there at that moment */
#define CLOSED	2		/* WRITE is set, but readers that are there must leave */
#define DRAINED	3		/* WRITE is set, and no reader is there */

proctype writer_of(byte me)
{
	byte k, r, n;
	byte stage[COUNTERS];

end:	do
	:: !wants[me] -> break				/* The writer may stop. */
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
				/* Counter 0 is empty, or a reader of it has told this writer. */
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
				/* All homes have answered. */
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
