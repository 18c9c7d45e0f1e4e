/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue of nodes for a lock (kmod/lock/queue.c, leave.c): a word {tail, count, sum}, a
 * ring of R entries {ticket, id} beside the word, and the messages TELL and HAND. N nodes
 * lock ROUNDS times each.
 *
 * A node enters the queue by a fetch-and-add on the word. If the former count is 0, the node
 * has the lock. If the count is 1, the sum is the id of the outstanding node, and the new
 * node tells that node (TELL). If the count is larger, the new node writes its id into the
 * ring. A holder that leaves and knows no successor tries a compare-and-swap from the word
 * that is expected if no node waits, to a word with no node outstanding, or with itself alone
 * (KEEP). If the compare-and-swap fails, the word gives the number of waiting nodes and the
 * sum of their ids, so one of them may be missing in the ring. HAND carries the ids of the
 * known waiting nodes, BATCH at most, from holder to holder. HAND also carries the debt:
 * the nodes that have handed over and are still counted in the word. From a debt of PAY on,
 * the holder subtracts the debt from the word.
 *
 * A holder is *alone* if the next node to enter finds count 1 and tells this holder. Only an
 * alone holder may keep the lock while no thread of its node wants the lock. A holder is
 * alone if it found count 0, or if its compare-and-swap left only itself in the word.
 *
 * Steps: an atomic at the home is one step, and its answer at the node is another. A write
 * into the ring is one step, and so is a read of the ring. Messages take arbitrarily long
 * and overtake each other. With TIMEOUTS the threads that wait at a node may give up. The
 * node stays in the queue, and hands the lock on if no thread has come back.
 *
 * With WRAP tickets are counted modulo TICKETS, and the nodes lock forever. TELL then
 * arrives at once, because only a TELL that is 2^31 tickets late could be taken for another.
 * Each holder also removes its own entry from the ring. The code leaves stale entries there:
 * a node refuses a HAND that names a wrong ticket, and the holder then asks all nodes.
 *
 * Not modelled: lost messages and answers, doubt, and several threads of a node.
 *
 * Asserted after every step, see check(): there is one holder, or one HAND in flight; nodes
 * get the lock in the order of their tickets; the word counts the nodes in the queue and
 * the debt, and is 0 if the lock is free; the count is at most PAY + N. Checked by spin: no
 * node waits forever (invalid end state); with WRAP, a node that waits gets the lock.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define HAND_REFUSED_WHILE_ENQUEUEING	(FAULT == 1)
#define TICKET_OF_TELL_NOT_LOOKED_AT	(FAULT == 2)
#define DEBT_NOT_PASSED_ON		(FAULT == 3)
#define NOT_ADDED_TO_DEBT		(FAULT == 4)
#define DEBT_STAYS_IN_WORD		(FAULT == 5)
#define FIRST_WAITED_FOR_IN_RING	(FAULT == 6)
#define FIRST_FROM_SUM_TOO_EARLY	(FAULT == 7)
#define TICKET_IN_RING_NOT_LOOKED_AT	(FAULT == 8)
#define WRITE_TO_RING_NOT_WAITED_FOR	(FAULT == 9)
#define RING_CLEARED_LATE		(FAULT == 10)
#define RING_TOO_SMALL			(FAULT == 11)
#define TOLD_IF_TWO_ARE_THERE		(FAULT == 12)
#define FREED_THOUGH_SOMEBODY_WAITS	(FAULT == 13)
#define NOT_PASSED_ON_AFTER_TIMEOUT	(FAULT == 14)
#define PAID_TWICE			(FAULT == 15)
#define NEVER_PAID			(FAULT == 16)
/* With KEEP: */
#define KEPT_WITH_DEBT			(FAULT == 17)
#define TELL_DROPPED_WHILE_ENQUEUEING	(FAULT == 18)
#define OLD_TELL_OVERWRITES_NEW		(FAULT == 19)
#define TELL_DROPPED_WHILE_LEAVING	(FAULT == 20)
/* With WRAP: */
#define OLD_ENTRIES_STAY		(FAULT == 21)

#ifndef N
#define N	3
#endif
#ifndef BATCH
#define BATCH	N
#endif
#ifndef PAY
#define PAY	N
#endif
#if RING_TOO_SMALL
#define R	1
#else
#define R	4	/* more than N - 2 */
#endif
#ifdef WRAP
#define TICKETS	8
#define ticket_after(t)	(((t) + 1) % TICKETS)
#else
#define ticket_after(t)	((t) + 1)
#define TICKETS	256
#ifndef ROUNDS
#define ROUNDS	2
#endif
#endif

#define id(n)	((n) + 1)

/* The home */
byte tail, count, sum;
byte ring_ticket[R], ring_id[R];

/* A node */
#define NONE		0
#define ENQUEUEING	1	/* perhaps in the queue already, but without its ticket yet */
#define WAITING		2
#define HELD		3
#define KEPT		4
#define LEAVING		5

byte state[N], ticket[N];
byte told[N], told_ticket[N];	/* id of the successor, or 0 */
bool alone[N];
byte debt[N], debt_sum[N];
/* Ids of the next nodes, three bits each; the first is in the lowest bits */
short batch[N];

/* To a node: ticket, debt, sum of the debt, batch */
chan hand[N] = [1] of { byte, byte, byte, short };
/* From a node: receiver, ticket */
chan tell[N] = [1] of { byte, byte };
#if WRITE_TO_RING_NOT_WAITED_FOR || RING_CLEARED_LATE
/* Writes of a node into the ring that are in flight: ticket, id or 0 */
chan late[N] = [3] of { byte, byte };
#endif

/* The true state of the queue, which the nodes do not know */
byte turn;			/* the ticket that has, or gets, the lock */
byte present, present_sum;	/* the nodes in the queue, with the holder */
byte owed, owed_sum;		/* the debt */

inline enter_queue(n)
{
	present++;
	present_sum = present_sum + id(n)
}

inline leave_queue(n)
{
	present--;
	present_sum = present_sum - id(n);
	turn = ticket_after(turn)
}

#define has_it(n)	(state[n] == HELD || state[n] == KEPT || len(hand[n]) == 1)

inline check()
{
	assert(has_it(0) + has_it(1) + has_it(2) + has_it(N - 1) * (N > 3) <= 1);
	assert(count == present + owed);
	assert(sum == present_sum + owed_sum);
	assert(count <= PAY + N)		/* room */
}

inline is_held(n)
{
	assert(ticket[n] == turn);	/* order */
	state[n] = HELD
}

#define in_ring(t)	(ring_id[(t) % R] != 0 && \
			 (ring_ticket[(t) % R] == (t) || TICKET_IN_RING_NOT_LOOKED_AT))

/* A TELL with ticket `at` from node `from` arrives. */
inline tell_arrives(n)
{
	if
	:: state[n] == ENQUEUEING && !TELL_DROPPED_WHILE_ENQUEUEING ||
	   state[n] > ENQUEUEING &&
	   (at == ticket_after(ticket[n]) || TICKET_OF_TELL_NOT_LOOKED_AT) &&
	   !(state[n] == LEAVING && TELL_DROPPED_WHILE_LEAVING) ->
		told[n] = id(from);
		told_ticket[n] = at
	:: else
	fi
}

/*
 * A TELL to node me is in flight. While this node does not know its ticket it has room for
 * one TELL; the sender of a second one repeats it.
 */
#define waits_for_me(n)	(tell[n]?[eval(me), _] && \
			 (state[me] != ENQUEUEING || told[me] == 0 || OLD_TELL_OVERWRITES_NEW))

proctype wire(byte me)
{
	byte at, from;

end:	do
#ifndef WRAP
	:: d_step {
		waits_for_me(0) || waits_for_me(1) || waits_for_me(2) || waits_for_me(N - 1) ->
		if
		:: waits_for_me(0) -> from = 0
		:: else ->
			if
			:: waits_for_me(1) -> from = 1
			:: else ->
				if
				:: waits_for_me(2) -> from = 2
				:: else -> from = N - 1
				fi
			fi
		fi;
		tell[from]?_,at;
		tell_arrives(me);
		at = 0;
		from = 0
	   }
#endif
	:: d_step {
		full(hand[me]) &&
		(state[me] != ENQUEUEING || HAND_REFUSED_WHILE_ENQUEUEING) ->
		hand[me]?at,debt[me],debt_sum[me],batch[me];
		assert(state[me] == WAITING && at == ticket[me]);	/* taken */
		is_held(me);
		at = 0;
		check()
	   }
#if WRITE_TO_RING_NOT_WAITED_FOR || RING_CLEARED_LATE
	:: d_step {
		late[me]?at,from;
		ring_ticket[at % R] = at;
		ring_id[at % R] = from;
		at = 0;
		from = 0
	   }
#endif
	od
}

inline forget(n)
{
	told[n] = 0;
	told_ticket[n] = 0;
	alone[n] = false;
	debt[n] = 0;
	debt_sum[n] = 0;
	batch[n] = 0;
	ticket[n] = 0;
	state[n] = NONE
}

#define told_next(n)	(told[n] != 0 && \
			 (told_ticket[n] == ticket_after(ticket[n]) || \
			  TICKET_OF_TELL_NOT_LOOKED_AT))
#define successor(n)	(batch[n] != 0 || told_next(n))

/* Hand the lock over to the known successor, and pay a large debt before. */
inline hand_over()
{
	if
	:: debt[me] >= PAY && !NEVER_PAID ->
		count = count - debt[me];
		sum = sum - debt_sum[me];
		owed = owed - debt[me];
		owed_sum = owed_sum - debt_sum[me];
		if
		:: !PAID_TWICE -> debt[me] = 0; debt_sum[me] = 0
		:: else
		fi
	:: else
	fi;
	who = (batch[me] != 0 -> batch[me] & 7 : told[me]);
	assert(who > 0 && who <= N && nfull(hand[who - 1]));
	if
	:: NOT_ADDED_TO_DEBT ->
		hand[who - 1]!ticket_after(ticket[me]),debt[me],debt_sum[me],batch[me] >> 3
	:: DEBT_NOT_PASSED_ON ->
		hand[who - 1]!ticket_after(ticket[me]),1,id(me),batch[me] >> 3
	:: else ->
		hand[who - 1]!ticket_after(ticket[me]),debt[me] + 1,debt_sum[me] + id(me),
			batch[me] >> 3
	fi;
	leave_queue(me);
	owed++;
	owed_sum = owed_sum + id(me);
	who = 0;
	forget(me);
	check()
}

/*
 * The compare-and-swap leaves only node me in the word if the node stays, and otherwise no
 * node. If nodes wait, the compare-and-swap fails, and n is their number.
 */
#define expected	(tail == ticket_after(ticket[me]) && count == debt[me] + 1)

inline settle(staying)
{
	stays = staying;
	n = (tail + TICKETS - ticket_after(ticket[me])) % TICKETS;
	rest = sum - debt_sum[me] - id(me);
	state[me] = LEAVING;
	if
	:: expected || FREED_THOUGH_SOMEBODY_WAITS ->
		assert(sum == debt_sum[me] + id(me) || FREED_THOUGH_SOMEBODY_WAITS);
		owed = owed - debt[me];
		owed_sum = owed_sum - debt_sum[me];
		count = stays + (DEBT_STAYS_IN_WORD -> debt[me] : 0);
		sum = (stays -> id(me) : 0);
		if
		:: !stays -> leave_queue(me)
		:: else
		fi;
		n = 0
	:: else -> assert(n > 0)
	fi;
	check()
}

/* n nodes wait: find the first of them, and the nodes behind it. */
inline read_ring()
{
	at = ticket_after(ticket[me]);
	batch[me] = (in_ring(at) && (n > 1 || FIRST_WAITED_FOR_IN_RING) -> ring_id[at % R] : 0);
	i = 1;
	do
	:: i < n ->
		at = ticket_after(at);
		if
		:: !in_ring(at) -> gap = true
		:: else ->
			rest = rest - ring_id[at % R];
			if
			:: !gap && i < BATCH ->
				batch[me] = batch[me] | (ring_id[at % R] << (3 * i))
			:: else
			fi
		fi;
		i++
	:: else -> break
	od;
	if
	:: (batch[me] & 7) == 0 && !FIRST_WAITED_FOR_IN_RING -> batch[me] = batch[me] | rest
	:: else
	fi;
	rest = 0;
	n = 0;
	at = 0;
	i = 0;
	gap = false
}

/* The first waiting node is known if it is in the ring, or if all other ones are. */
#define second		ticket_after(ticket_after(ticket[me]))
#define can_read	(in_ring(ticket_after(ticket[me])) || FIRST_FROM_SUM_TOO_EARLY || \
	!FIRST_WAITED_FOR_IN_RING && (n == 1 || in_ring(second) && \
				      (n == 2 || in_ring(ticket_after(second)))))

/* A node that may stay keeps the lock if no node waits. */
#ifdef KEEP
#define may_stay	true
#else
#define may_stay	false
#endif

inline release()
{
	if
	:: d_step { successor(me) -> hand_over() }
	:: atomic {
		!successor(me) ->
		if
		:: settle(false)
		:: may_stay && !alone[me] -> settle(true)
		fi
	   };
		/* The answer arrives. */
		if
		:: d_step {
			n == 0 ->
			if
			:: stays ->
				debt[me] = 0;
				debt_sum[me] = 0;
				alone[me] = true;
				state[me] = KEPT
			:: else -> forget(me)
			fi;
			rest = 0;
			stays = false
		   }
		:: d_step {
			n > 0 && can_read ->
#if RING_CLEARED_LATE
			i = 1;
			do
			:: i < n && nfull(late[me]) -> late[me]!ticket[me] + 1 + i,0; i++
			:: else -> break
			od;
#endif
			read_ring();
			stays = false
		   };
			d_step { hand_over() }
		fi
	fi
}

inline enqueue()
{
	d_step {
		state[me] = ENQUEUEING;
		at = tail;
		old_count = count;
		rest = sum;
		tail = ticket_after(tail);
		count++;
		sum = sum + id(me);
		present++;
		present_sum = present_sum + id(me);
		check()
	};
	/* The answer arrives. */
	d_step {
		ticket[me] = at;
		at = 0;
		if
		:: told_ticket[me] != ticket_after(ticket[me]) &&
		   !TICKET_OF_TELL_NOT_LOOKED_AT ->
			told[me] = 0;
			told_ticket[me] = 0
		:: else
		fi;
		if
		:: old_count == 0 -> alone[me] = true; is_held(me)
		:: else -> state[me] = WAITING
		fi;
		check()
	};
	d_step {
		if
		:: old_count == 1 || old_count == 2 && TOLD_IF_TWO_ARE_THERE ->
			if
			:: old_count == 2 -> rest = rest - (rest > 3 -> 3 : 1)
			:: else
			fi;
			assert(rest > 0 && rest <= N);
#ifdef WRAP
			at = ticket[me];
			n = rest - 1;
			from = me;
			tell_arrives(n);
			at = 0;
			n = 0;
			from = 0
#else
			tell[me]!rest - 1,ticket[me]
#endif
		:: old_count > 1 && !TOLD_IF_TWO_ARE_THERE ->
#if WRITE_TO_RING_NOT_WAITED_FOR
			late[me]!ticket[me],id(me)
#else
			ring_ticket[ticket[me] % R] = ticket[me];
			ring_id[ticket[me] % R] = id(me)
#endif
		:: old_count > 2 && TOLD_IF_TWO_ARE_THERE ->
			ring_ticket[ticket[me] % R] = ticket[me];
			ring_id[ticket[me] % R] = id(me)
		:: else
		fi;
		rest = 0;
		old_count = 0
	}
}

proctype node(byte me)
{
	byte at, from, old_count, rest, n, i, who;
	bool gap, stays, wanted;
#ifdef WRAP
#define once_more	true
#define count_round	skip
#else
	byte rounds;
#define once_more	rounds < ROUNDS
#define count_round	rounds++
#endif

end:	do
	:: once_more && state[me] == NONE && empty(tell[me]) ->
		count_round;
		wanted = true;
		enqueue();
		do
		:: state[me] == HELD -> break
#ifdef TIMEOUTS
		:: d_step { state[me] == WAITING && wanted -> wanted = false }
		:: d_step { state[me] == WAITING && !wanted && once_more ->
			wanted = true; count_round }
#endif
		od;
		/* A thread of the node has the lock. */
locked:		if
		:: NOT_PASSED_ON_AFTER_TIMEOUT && !wanted -> goto end
		:: else -> wanted = false
		fi;
#ifdef WRAP
		/* The node's own entry has served its purpose. */
		d_step {
			if
			:: !OLD_ENTRIES_STAY ->
				ring_id[ticket[me] % R] = 0;
				ring_ticket[ticket[me] % R] = 0
			:: else
			fi
		};
#endif
		if
#ifdef KEEP
		:: d_step {
			(alone[me] || KEPT_WITH_DEBT && batch[me] == 0) && !told_next(me) ->
			state[me] = KEPT
		   }
#endif
		:: release()
		fi
#ifdef KEEP
	:: state[me] == KEPT && told_next(me) -> release()	/* hand over */
	:: d_step { state[me] == KEPT && once_more ->
		count_round; wanted = true; state[me] = HELD };
		goto locked
#if KEEP == 2
	/* The time for which the node keeps the lock is over. */
	:: state[me] == KEPT -> release()
#endif
#endif
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

#ifdef WRAP
ltl gets { [] (state[0] == WAITING -> <> (state[0] != WAITING)) }
#endif
