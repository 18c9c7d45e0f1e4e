/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue for a lock when nodes die (kmod/lock/recover.c, death.c): 3 nodes, of which node 0
 * is the home and lives. DEATHS of the other nodes die at any time, with the lock or without.
 *
 * The home gives each recovery a new epoch. It drops the operations on its memory that the
 * dead node still has in flight, and tells all nodes to freeze. A node that freezes first
 * waits for the answer of its own fetch-and-add, and of its HAND unless that went to the dead
 * node. The node then reports its state. Until the node is told to resume it neither hands
 * the lock over nor enters the queue, and it accepts only a HAND of the same epoch. When all
 * nodes have reported, the home rebuilds word and ring from the living nodes, in their order,
 * with new tickets. A RESUME may be of an older epoch if another node has died meanwhile.
 *
 * If no node has the lock then, the first waiting node gets it with DEAD (EOWNERDEAD). If no
 * node waits but some node was in the queue, the home takes the lock with DEAD and keeps it
 * until a node enters. Every node that gets the lock with DEAD and does not use it does the
 * same, because a word that says "free" could not carry DEAD. A node that sent HAND to the
 * dead node and got no answer has the lock no more, because the dead node may have used it.
 *
 * The queue is a list here, with the holder at its head; lock-queue.pml models the queue. A
 * fetch-and-add is in flight, is done, and is answered, in separate steps. HAND and its
 * answer take arbitrarily long, and outlive their sender.
 *
 * Asserted: one node has the lock (one); a node that uses the lock after a user that died has
 * been told so (told). Checked by spin: no living node waits forever (invalid end state).
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define OLD_RESUME_TAKEN		(FAULT == 1)
#define HAND_OF_OLD_EPOCH_TAKEN		(FAULT == 2)
#define DEAD_NOT_FENCED			(FAULT == 3)
#define SAID_WITH_HAND_UNDER_WAY	(FAULT == 4)
#define SAID_WHILE_ENQUEUEING		(FAULT == 5)
#define FREE_THOUGH_HOLDER_DIED		(FAULT == 6)
#define KEPT_IF_NOT_ANSWERED		(FAULT == 7)
#define HANDED_OVER_WHILE_FROZEN	(FAULT == 8)
#define DEAD_NOT_PASSED_ON		(FAULT == 9)
#define WRITTEN_BEFORE_ALL_HAVE_SAID	(FAULT == 10)
#define FREED_WITH_DEAD			(FAULT == 11)

#define N		3
#ifndef DEATHS
#define DEATHS		1
#endif
#ifndef ROUNDS
#define ROUNDS		2
#endif
#define NOBODY		255

#define NONE		0
#define ENQUEUEING	1
#define WAITING		2
#define HELD		3
#define LEAVING		4

/* The home */
byte queue[N + 1], length, epoch_now;

/* A node */
byte state[N], epoch[N], to[N];
bool alive[N], frozen[N], dead[N];		/* dead: EOWNERDEAD comes with the lock */
bool on_its_way[N], done[N], was_free[N];	/* the node's fetch-and-add */
byte said[N], said_to[N];			/* state and successor that the node reported */
/* RESUME tells the node that it has the lock, or that it lost the lock. */
bool granted[N], gone[N];

/* To a node: sender, epoch, DEAD; to the sender of a HAND: whether the node accepted it */
chan hand[N] = [N] of { byte, byte, bool };
chan answer[N] = [1] of { bool };
chan freeze[N] = [1] of { byte };
chan resume[N] = [2] of { byte };

bool used[N];			/* a thread of the node uses the lock */
bool dirty;			/* a node died while it used the lock */
bool handled[N];		/* the home has begun the recovery from this node's death */
byte deaths;

#define has_it(n)	(alive[n] && state[n] == HELD)

inline check()
{
	assert(has_it(0) + has_it(1) + has_it(2) <= 1)		/* one */
}

inline shift()
{
	queue[0] = queue[1];
	queue[1] = queue[2];
	queue[2] = queue[3];
	queue[3] = 0;
	length--
}

/* Delivers a node's atomics to the home, and messages to the node. */
proctype wire(byte me)
{
	byte from, at;
	bool is_dead;

end:	do
	:: d_step {
		on_its_way[me] ->
		on_its_way[me] = false;
		done[me] = true;
		was_free[me] = (length == 0);
		queue[length] = me;
		length++;
		assert(length <= N)
	   }
	:: d_step {
		alive[me] && nempty(hand[me]) && state[me] != ENQUEUEING ->
		hand[me]?from,at,is_dead;
		if
		:: state[me] == WAITING && (at == epoch[me] || HAND_OF_OLD_EPOCH_TAKEN) ->
			state[me] = HELD;
			dead[me] = is_dead;
			if
			:: length > 0 && queue[0] == from -> shift()
			:: else
			fi;
			at = 1
		:: else -> at = 0
		fi;
		check();
		if
		:: alive[from] && len(answer[from]) == 0 -> answer[from]!at
		:: else
		fi;
		from = 0;
		at = 0;
		is_dead = false
	   }
	:: d_step {
		alive[me] && nempty(freeze[me]) &&
		(state[me] != ENQUEUEING || SAID_WHILE_ENQUEUEING) &&
		(state[me] != LEAVING || !alive[to[me]] || SAID_WITH_HAND_UNDER_WAY) ->
		freeze[me]?epoch[me];
		said[me] = state[me];
		said_to[me] = to[me];
		frozen[me] = true
	   }
	:: d_step {
		alive[me] && nempty(resume[me]) ->
		resume[me]?at;
		if
		:: at == epoch[me] || OLD_RESUME_TAKEN ->
			frozen[me] = false;
			/* The node no longer waits for an answer of the dead node. */
			if
			:: gone[me] && len(answer[me]) > 0 -> answer[me]?_
			:: else
			fi;
			if
			:: granted[me] -> state[me] = HELD; dead[me] = true
			:: !granted[me] && gone[me] ->
				state[me] = (KEPT_IF_NOT_ANSWERED -> HELD : NONE);
				dead[me] = false
			:: else
			fi;
			granted[me] = false;
			gone[me] = false
		:: else
		fi;
		at = 0;
		check()
	   }
	od
}

#define may_go(me)	(!frozen[me] || HANDED_OVER_WHILE_FROZEN)

inline leave()
{
	do
	:: state[me] == NONE -> break
	/* A lock with DEAD is kept until another node enters the queue. */
	:: state[me] == HELD && length <= 1 && dead[me] && !FREED_WITH_DEAD -> break
	:: d_step {
		state[me] == HELD && may_go(me) && length <= 1 && (!dead[me] || FREED_WITH_DEAD) ->
		assert(length == 1 && queue[0] == me);
		shift();
		state[me] = NONE;
		dead[me] = false
	   };
		break
	:: d_step {
		state[me] == HELD && may_go(me) && length > 1 ->
		to[me] = queue[1];
		hand[to[me]]!me,epoch[me],dead[me] && !DEAD_NOT_PASSED_ON;
		state[me] = LEAVING
	   };
		if
		:: d_step {
			answer[me]?true ->
			if
			:: state[me] == LEAVING -> state[me] = NONE; dead[me] = false
			:: else
			fi
		   }
		/* Repeat the HAND. */
		:: d_step {
			answer[me]?false ->
			if
			:: state[me] == LEAVING -> state[me] = HELD
			:: else
			fi
		   }
		:: state[me] != LEAVING
		fi
	od;
	to[me] = 0
}

proctype node(byte me)
{
	byte rounds;

	{
end:	do
	:: d_step {
		state[me] == NONE && rounds < ROUNDS && !frozen[me] ->
		rounds++;
		state[me] = ENQUEUEING;
		on_its_way[me] = true
	   };
		d_step {
			done[me] ->
			done[me] = false;
			state[me] = (was_free[me] -> HELD : WAITING);
			was_free[me] = false;
			check()
		};
		state[me] == HELD;
use:		atomic {
			assert(!dirty || dead[me]);	/* told */
			/* The user repairs its data. */
			dirty = false;
			dead[me] = false;
			used[me] = true
		};
		used[me] = false;
		leave()
	/* The node has kept the lock with DEAD, and uses it now. */
	:: d_step { state[me] == HELD && rounds < ROUNDS -> rounds++ }; goto use
	:: state[me] == HELD && length > 1 -> leave()
	od
	} unless { !alive[me] }
}

inline die(n)
{
	alive[n] = false;
	deaths++;
	dirty = dirty || used[n];
	used[n] = false;
	/* An answer that the node was sending may be lost. */
	if
	:: state[0] == LEAVING && to[0] == n && len(answer[0]) > 0 -> answer[0]?_
	:: state[3 - n] == LEAVING && to[3 - n] == n && len(answer[3 - n]) > 0 -> answer[3 - n]?_
	:: true
	fi
}

proctype death()
{
end:	do
	:: atomic { deaths < DEATHS && alive[1] -> die(1) }
	:: atomic { deaths < DEATHS && alive[2] -> die(2) }
	:: deaths < DEATHS -> break
	od
}

#define has_said(n)	(!alive[n] || frozen[n] && epoch[n] == epoch_now)

/* The home finds out that a node is dead, at any later time. */
proctype recovery()
{
	byte n, i, holder;
	byte old[N + 1], old_length;

end:	do
	:: !alive[1] && !handled[1] || !alive[2] && !handled[2] ->
again:		atomic {
			epoch_now++;
			handled[1] = !alive[1];
			handled[2] = !alive[2];
			on_its_way[1] = on_its_way[1] && (alive[1] || DEAD_NOT_FENCED);
			on_its_way[2] = on_its_way[2] && (alive[2] || DEAD_NOT_FENCED)
		};
		atomic {
			do
			:: n < N ->
				if
				:: alive[n] && len(freeze[n]) == 0 -> freeze[n]!epoch_now
				:: else
				fi;
				n++
			:: else -> n = 0; break
			od
		};
		(has_said(0) && has_said(1) && has_said(2)) || WRITTEN_BEFORE_ALL_HAVE_SAID;
		if
		/* Another node has died meanwhile. */
		:: !alive[1] && !handled[1] || !alive[2] && !handled[2] ->
			goto again
		:: else
		fi;
		atomic {
			/* Rebuild the queue. */
			i = 0;
			holder = NOBODY;
			do
			:: i < length -> old[i] = queue[i]; queue[i] = 0; i++
			:: else -> break
			od;
			old_length = length;
			length = 0;
			i = 0;
			do
			:: n < N ->
				granted[n] = false;
				gone[n] = (!handled[n] && said[n] == LEAVING && handled[said_to[n]]);
				if
				:: gone[n] && KEPT_IF_NOT_ANSWERED ->
					holder = n;
					queue[0] = n;
					length = 1
				:: else
				fi;
				n++
			:: else -> n = 0; break
			od;
			do
			:: i < old_length ->
				n = old[i];
				if
				:: handled[n] || gone[n] -> skip
				:: else ->
					queue[length] = n;
					length++;
					holder = (said[n] == HELD -> n : holder)
				fi;
				old[i] = 0;
				i++
			:: else -> break
			od;
			n = 0;
			if
			:: holder != NOBODY || old_length == 0 -> skip
			:: holder == NOBODY && length > 0 -> granted[queue[0]] = true
			:: holder == NOBODY && old_length > 0 && length == 0 ->
				if
				:: !FREE_THOUGH_HOLDER_DIED ->
					granted[0] = true;
					queue[0] = 0;
					length = 1
				:: else
				fi
			fi;
			old_length = 0;
			holder = 0;
			i = 0;
			n = 0;
			do
			:: n < N ->
				if
				:: !handled[n] && len(resume[n]) < 2 -> resume[n]!epoch_now
				:: else
				fi;
				n++
			:: else -> n = 0; break
			od
		}
	od
}

init {
	atomic {
		alive[0] = true;
		alive[1] = true;
		alive[2] = true;
		run wire(0);
		run wire(1);
		run wire(2);
		run node(0);
		run node(1);
		run node(2);
		run death();
		run recovery()
	}
}
