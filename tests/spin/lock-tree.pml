/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock of kind rma-mcs (kmod/lock/tree.c): four nodes, two in each of two elements. A node
 * queues in the leaf queue of its element. A node that has the leaf but not the root queues
 * at the root, for its element. A node that hands the leaf over hands the root over with it,
 * as long as the element has had the lock fewer than T_L times since it got the root, or
 * since a look at the root's word last showed that no other element waits. Turns of threads
 * of one node count, too. At T_L the node releases the root first, so the node that gets the
 * leaf has to queue at the root.
 *
 * The queues are those of lock-queue.pml. Here each queue is a list; a fetch-and-add together
 * with the read of the ring is one step, and so are TELL and HAND. This model keeps two
 * properties of TELL: it goes to the node that is counted in the word, which at the root may
 * have handed the root over already; and a node sends it only if no other node waits and
 * there is no debt.
 *
 * With KEEP a lock that no thread of its node wants stays at the node if the node is alone
 * in both queues, because only then the next node tells it. At the root the node must be the
 * counted one, so it replaces the node that was counted before.
 *
 * Asserted: mutual exclusion (exclusion); a node that has queued at the root waits for at
 * most T_L turns, those of the other element, and a node that has queued in its element for
 * at most (2 * 2 - 1) * T_L turns (bypass). Checked by spin: no node waits forever (invalid
 * end state); with LTL, node 0 gets the lock although all nodes lock forever.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
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

/* Queues: 0 is the root, 1 and 2 are the leaves of the elements. */
#define ROOT	0
#define leaf(n)	(1 + element(n))

bool taken[3], owed[3];
byte counted[3];
chan waiting[3] = [N] of { byte };

/* A node */
#define NONE		0
#define LEAF_WAITING	1
#define LEAF_HELD	2	/* without the root */
#define ROOT_WAITING	3
#define HELD		4
#define KEPT		5

byte state[N], passes[N];
bool told_leaf[N], told_root[N];
bool alone_leaf[N], alone_root[N];

bool inside;
byte wait_leaf[N], wait_root[N];	/* turns of other nodes since this node queued */

/*
 * The bound does not hold while the other node of the element is LEAF_HELD: that node is
 * about to queue at the root, or to leave, and may be slow.
 */
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

/* TELL to the node that is counted in the word of queue q */
inline tell(q)
{
	if
	:: len(waiting[q]) == 0 && !owed[q] ->
		who = counted[q];
		if
		:: q == ROOT && alone_root[who] && !TOLD_AT_ROOT_IGNORED -> told_root[who] = true
		:: q != ROOT && alone_leaf[who] -> told_leaf[who] = true
		:: else		/* That node has handed the lock over. */
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

/* A fetch-and-add that removes the debt, and counts node me instead of the counted node */
inline look(q, is_alone)
{
	owed[q] = false;
	counted[q] = me;
	is_alone = len(waiting[q]) == 0
}

/*
 * Hand queue q over to the successor, or free it. A node that has been told does not subtract
 * itself from the word, and becomes the debt.
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

/* Release the leaf, and hand the root over if `with` is true. */
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
			/* At the root, later nodes tell the counted node, not the successor. */
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

/* The node gives the lock up. */
inline release()
{
	has_root = true;
	if
	:: passes[me] >= T_L && !ROOT_NOT_RELEASED_AT_THRESHOLD ->
		if
		:: d_step { release_root(); leave_root() }
		/* Or the node looks whether another element waits at the root. */
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
		/* The other node may have the leaf by now, and wait at the root for this one. */
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
			/* Turns since the element got the root, with this one */
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
		/* Another thread of the node takes the lock. */
		:: d_step { passes[me] < T_L || LOCAL_PASSES_NOT_COUNTED ->
			passes[me] = passes[me] - LOCAL_PASSES_NOT_COUNTED };
			goto locked
		:: true ->
#ifdef KEEP
			/* No thread of the node wants the lock now. */
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
