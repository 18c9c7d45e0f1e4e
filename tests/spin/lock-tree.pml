/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock of kind rma-mcs: four nodes, two in each of two elements. A node queues in the
 * leaf queue of its element. Who has got that without the lock of the root queues at the
 * root, for its element. Who passes the lock on inside the element passes the root on,
 * too, so long as the lock has been taken less than T_L times in a row since the element
 * got the root, or since it was last seen that no other element waits; local passes
 * count, too. Then the root is released first, and who gets the leaf has to ask for it.
 *
 * The queues are those of lock-queue.pml; here each is a list, a fetch-and-add with what
 * is found in the ring is one step, and so are TELL and HAND. What is kept of it: TELL goes
 * to the node that is counted in the word, which at the root need not be who holds it
 * any more; and it is only sent if nobody else waits and there is no debt.
 *
 * KEEP: a lock that nobody wants at the node stays there if the node is alone in both
 * queues, so that it will be told. At the root it has to be the one that is counted: it
 * puts itself there for the one that was.
 *
 * Checked: mutual exclusion; who has queued at the root waits for at most T_L others, the
 * other element's, and who has queued in an element for (2 * 2 - 1) * T_L. By spin:
 * nobody waits for what does not come (invalid end state), and with LTL each gets
 * it, though all lock for ever.
 *
 * FAULT=n puts a mistake into the protocol. Each must be found (tests/spin/check).
 */
#ifndef FAULT
#define FAULT	0
#endif
#define PASSES_NOT_COUNTED	(FAULT == 1)
#define LOCAL_PASSES_NOT_COUNTED	(FAULT == 2)
#define COUNT_NOT_PASSED_ON		(FAULT == 3)
#define ROOT_NOT_PASSED_ON		(FAULT == 4)
#define ROOT_TAKEN_FOR_HELD		(FAULT == 5)
#define ROOT_NOT_RELEASED_AT_THRESHOLD	(FAULT == 6)
#define ROOT_NOT_RELEASED_WITH_LEAF	(FAULT == 7)
#define COUNT_STARTS_AGAIN_UNSEEN	(FAULT == 8)
/* With KEEP: */
#define COUNTED_AT_ROOT_NOT_LOOKED_AT	(FAULT == 9)
#define TOLD_AT_ROOT_IGNORED		(FAULT == 10)
#define LEAF_KEPT_WITH_DEBT		(FAULT == 11)

#define N	4
#define NOBODY	255
#ifndef T_L
#define T_L	2
#endif
#define element(n)	((n) / 2)

/* Queues: 0 is the root, 1 and 2 are those of the elements. */
#define ROOT	0
#define leaf(n)	(1 + element(n))

bool taken[3], owed[3];
byte counted[3];
chan waiting[3] = [N] of { byte };

/* A node */
#define NONE		0
#define LEAF_WAITING	1
#define LEAF_HELD	2	/* and the root is not */
#define ROOT_WAITING	3
#define HELD		4
#define KEPT		5

byte state[N], passes[N];
bool told_leaf[N], told_root[N];
bool alone_leaf[N], alone_root[N];

bool inside;
byte wait_leaf[N], wait_root[N];	/* locked meanwhile by others */

/* Who has the leaf alone is about to ask at the root, or to leave: it may be slow. */
#define in_queues(n)	((state[n] == LEAF_WAITING || state[n] == ROOT_WAITING) && \
			 state[(n) ^ 1] != LEAF_HELD)

inline overtakes(n)
{
	if
	:: in_queues(n) ->
		wait_leaf[n]++;
		assert(wait_leaf[n] <= 3 * T_L)			/* bypass */
	:: else
	fi;
	if
	:: state[n] == ROOT_WAITING ->
		wait_root[n]++;
		assert(wait_root[n] <= T_L)			/* bypass */
	:: else
	fi
}

/* Enqueue */
inline tell(q)
{
	if
	:: len(waiting[q]) == 0 && !owed[q] ->
		who = counted[q];
		if
		:: q == ROOT && alone_root[who] && !TOLD_AT_ROOT_IGNORED -> told_root[who] = true
		:: q != ROOT && alone_leaf[who] -> told_leaf[who] = true
		:: else		/* Who has just passed it on. */
		fi;
		who = 0
	:: else
	fi
}

inline enqueue(q, is_alone, got, waits)
{
	if
	:: !taken[q] ->
		taken[q] = true;
		counted[q] = me;
		is_alone = true;
		state[me] = got
	:: else ->
		tell(q);
		waiting[q]!me;
		state[me] = waits
	fi
}

/* A fetch-and-add that takes the debt away and counts me for who was counted */
inline look(q, is_alone)
{
	owed[q] = false;
	counted[q] = me;
	is_alone = len(waiting[q]) == 0
}

/*
 * To the successor, or to nobody. Who has been told does not subtract itself, and is a
 * debt.
 */
inline next_at(q, is_told, is_alone)
{
	who = NOBODY;
	if
	:: len(waiting[q]) > 0 ->
		is_alone = len(waiting[q]) == 1 && !is_told;
		owed[q] = is_told;
		waiting[q]?who;
		counted[q] = who
	:: else ->
		assert(!is_told);
		is_alone = false;
		taken[q] = false;
		owed[q] = false
	fi
}

inline release_root()
{
	next_at(ROOT, told_root[me], next_alone);
	if
	:: who != NOBODY ->
		assert(state[who] == ROOT_WAITING);
		alone_root[who] = next_alone;
		passes[who] = 0;
		wait_root[who] = 0;
		state[who] = HELD
	:: else
	fi;
	alone_root[me] = false;
	told_root[me] = false;
	passes[me] = 0;
	next_alone = false;
	who = 0
}

/* `with` the root, or without */
inline release_leaf(with)
{
	next_at(leaf(me), told_leaf[me], next_alone);
	if
	:: who != NOBODY ->
		assert(state[who] == LEAF_WAITING);
		alone_leaf[who] = next_alone;
		if
		:: (with) && !ROOT_NOT_PASSED_ON ->
			passes[who] = (COUNT_NOT_PASSED_ON -> 0 : passes[me]);
			/* Who is told at the root is me, if I am counted there. */
			alone_root[who] = false;
			state[who] = HELD
		:: else -> state[who] = (ROOT_TAKEN_FOR_HELD -> HELD : LEAF_HELD)
		fi;
		has_root = false
	:: else -> has_root = (with)
	fi;
	alone_leaf[me] = false;
	told_leaf[me] = false;
	if
	:: !has_root ->
		alone_root[me] = false;
		told_root[me] = false;
		passes[me] = 0
	:: else
	fi;
	next_alone = false;
	who = 0
}

inline leave_root()
{
	has_root = false;
	state[me] = LEAF_HELD
}

/* The lock goes. */
inline release()
{
	has_root = true;
	if
	:: passes[me] >= T_L && !ROOT_NOT_RELEASED_AT_THRESHOLD ->
		if
		:: d_step { release_root(); leave_root() }
		/* Or it looks whether anybody waits there. */
		:: d_step { !told_root[me] -> look(ROOT, alone_root[me]) };
			if
			:: d_step { alone_root[me] || COUNT_STARTS_AGAIN_UNSEEN ->
				passes[me] = 0 }
			:: d_step { !alone_root[me] && !COUNT_STARTS_AGAIN_UNSEEN ->
				release_root(); leave_root() }
			fi
		fi
	:: else
	fi;
	d_step {
		release_leaf(has_root);
		state[me] = (has_root -> HELD : NONE)
	};
	if
	:: state[me] == HELD ->
		/* Others may have the leaf by now, and wait for me at the root. */
		d_step {
			if
			:: !ROOT_NOT_RELEASED_WITH_LEAF -> release_root()
			:: else -> passes[me] = 0; alone_root[me] = false; told_root[me] = false
			fi;
			state[me] = NONE
		}
	:: else
	fi;
	has_root = false
}

proctype node(byte me)
{
	byte who;
	bool next_alone, has_root;

end:	do
	:: d_step { state[me] == NONE ->
		enqueue(leaf(me), alone_leaf[me], LEAF_HELD, LEAF_WAITING) };
		if
		:: state[me] == HELD
		:: d_step { state[me] == LEAF_HELD ->
			enqueue(ROOT, alone_root[me], HELD, ROOT_WAITING) };
			state[me] == HELD
		fi;
locked:		atomic {
			wait_leaf[me] = 0;
			if
			:: !inside -> inside = true
			:: else -> assert(false)			/* exclusion */
			fi;
			/* How often it has been taken, this time included. */
			passes[me] = passes[me] + (passes[me] <= T_L && !PASSES_NOT_COUNTED);
			if
			:: me != 0 -> overtakes(0)
			:: else
			fi;
			if
			:: me != 1 -> overtakes(1)
			:: else
			fi;
			if
			:: me != 2 -> overtakes(2)
			:: else
			fi;
			if
			:: me != 3 -> overtakes(3)
			:: else
			fi
		};
		inside = false;
		if
		/* Another thread of the node. */
		:: d_step { passes[me] < T_L || LOCAL_PASSES_NOT_COUNTED ->
			passes[me] = passes[me] - LOCAL_PASSES_NOT_COUNTED };
			goto locked
		:: true ->
#ifdef KEEP
			/* Nobody wants it now. */
			if
			:: !alone_leaf[me] && !told_leaf[me] && !LEAF_KEPT_WITH_DEBT ->
				d_step { look(leaf(me), alone_leaf[me]) }
			:: else
			fi;
			if
			:: (alone_leaf[me] || LEAF_KEPT_WITH_DEBT) && !told_leaf[me] &&
			   !alone_root[me] && !COUNTED_AT_ROOT_NOT_LOOKED_AT ->
				d_step { look(ROOT, alone_root[me]) }
			:: else
			fi;
			if
			:: d_step {
				(alone_leaf[me] || LEAF_KEPT_WITH_DEBT) && !told_leaf[me] &&
				(alone_root[me] || COUNTED_AT_ROOT_NOT_LOOKED_AT) &&
				!told_root[me] -> state[me] = KEPT; passes[me] = 0 }
			:: else -> release()
			fi
#else
			release()
#endif
		fi
#ifdef KEEP
	:: state[me] == KEPT && (told_leaf[me] || told_root[me]) ->
		state[me] = HELD;
		release()
	:: d_step { state[me] == KEPT -> state[me] = HELD }; goto locked
#endif
	od
}

init {
	atomic { run node(0); run node(1); run node(2); run node(3) }
}

#ifdef LTL
ltl gets { [] (state[0] == LEAF_WAITING -> <> (state[0] == HELD)) }
#endif
