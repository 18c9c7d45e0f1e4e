/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The queue for a lock when nodes die: 3 nodes, of which node 0 is the home and lives;
 * DEATHS of the others die at any time, with the lock or without.
 *
 * The home gives each recovery a new epoch. It drops what the dead node still has under
 * way to its memory, and tells all nodes to freeze. A node that freezes hears of its own
 * fetch-and-add first, and of what it has handed over, but if that was to the dead; then
 * it says what it is, and until it is told to resume it hands nothing over and does not
 * queue. It takes only what is of the same epoch. When all have said so, the home writes
 * word and ring anew from those who live, in their order, with new tickets. RESUME may be
 * of an older epoch, too, if another one has died meanwhile.
 *
 * If nobody has the lock then, the first who waits gets it with DEAD (EOWNERDEAD). If nobody
 * waits, but somebody was in the queue, the home itself has it with DEAD, and keeps it
 * until somebody comes; so does everybody who gets it with DEAD and does not use it. A word
 * that says "free" could not say that. Who handed over to the dead and got no answer does
 * not have it any more, as the dead may have used it.
 *
 * The queue is a list here, with the holder at its head; it is in lock-queue.pml. A
 * fetch-and-add is on its way, is done, and is heard of. HAND and its answer take
 * arbitrarily long, and outlive who sent them.
 *
 * Checked: one node has the lock; who uses it after one that died while it used it has
 * been told; and by spin: nobody who lives waits for what does not come (invalid end
 * state).
 *
 * FAULT=n puts a mistake into the protocol. Each must be found (tests/spin/check).
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
bool on_its_way[N], done[N], was_free[N];	/* its fetch-and-add */
byte said[N], said_to[N];			/* what it was when it froze */
bool granted[N], gone[N];			/* what RESUME says: it has the lock; it has not */

/* To a node: from, epoch, DEAD; to who sent it: whether it was taken. */
chan hand[N] = [N] of { byte, byte, bool };
chan answer[N] = [1] of { bool };
chan freeze[N] = [1] of { byte };
chan resume[N] = [2] of { byte };

bool used[N];			/* by a thread, now */
bool dirty;			/* who died used it */
bool handled[N];
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

/* Atomics arrive at the home, messages at a node. */
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
			/* Nobody waits for an answer of the dead any more. */
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
	/* It is kept until somebody comes. */
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
		/* It is said again. */
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
			/* It is put in order. */
			dirty = false;
			dead[me] = false;
			used[me] = true
		};
		used[me] = false;
		leave()
	/* The home has it for a dead one. */
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
	/* Its answer may not have got out. */
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

/* The home finds it out, at any time later. */
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
		/* Another one has died meanwhile. */
		:: !alive[1] && !handled[1] || !alive[2] && !handled[2] ->
			goto again
		:: else
		fi;
		atomic {
			/* Written anew */
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
