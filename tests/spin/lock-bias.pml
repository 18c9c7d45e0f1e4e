/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers that enter a lock by their slots in mapped memory: kmod/lock/word.h, word.c. READERS
 * threads of a node use the slots 0 to SLOTS - 1; two threads may share a slot. The module lets
 * readers in by bias, and keeps them out for a writer, ROUNDS times. Threads that find no
 * bias, or their slot in use, call the module, which is not modelled.
 *
 * A store waits in the thread's store buffer until it is drained; an exchange drains the buffer
 * first, and is visible at once. So the model has the reorderings of x86: loads overtake earlier
 * stores of the same thread.
 *
 * A thread may die between any two accesses. A new thread may then use the slot, as thread READERS
 * above the old one.
 *
 * Asserted: no living thread reads by its slot while the writer writes (both). Checked by spin: the
 * writer does not wait forever for a dead thread (invalid end state).
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define BIAS_LOADED_FIRST		(FAULT == 1)
#define SLOT_STORED_WITHOUT_BARRIER	(FAULT == 2)
#define SCANNED_BEFORE_BIAS_IS_CLEARED	(FAULT == 3)
#define SLOT_OF_DEAD_THREAD_STAYS	(FAULT == 4)
#define SLOT_CLEARED_WITHOUT_COMPARING	(FAULT == 5)
#define BIAS_CLEARED_WITHOUT_BARRIER	(FAULT == 6)

#define READERS		2
#ifndef SLOTS
#define SLOTS		1
#endif
#ifndef ROUNDS
#define ROUNDS		2
#endif

byte slot[SLOTS];		/* number of the thread, from 1; or 0 */
bool bias = true;
bool buffered[2 * READERS + 1];	/* the store of the slot is in the thread's store buffer */
bool clears;			/* bias = 0 is in the module's store buffer */
bool lives[2 * READERS + 1], reads[2 * READERS + 1], dies[2 * READERS + 1];
bool writes;

#define slot_of(me)	slot[((me) - 1) % SLOTS]

#define is_in(me)	(lives[me] && reads[me])

inline check()
{
	assert(!writes || !is_in(1) && !is_in(2) && !is_in(3) && !is_in(4))	/* both */
}

/* A thread, and after its death another one with the same slot */
proctype reader(byte me)
{
	byte rounds;
	bool saw;

again:	lives[me] = true;
	{
end:	do
	:: rounds < ROUNDS ->
		rounds++;
		if
		:: BIAS_LOADED_FIRST -> saw = bias
		:: else
		fi;
		/* The exchange of the thread's slot; if the slot is in use, the call */
		if
		:: atomic {
			slot_of(me) == 0 ->
			if
			:: SLOT_STORED_WITHOUT_BARRIER -> buffered[me] = true
			:: else -> slot_of(me) = me
			fi
		   };
			if
			:: BIAS_LOADED_FIRST
			:: else -> saw = bias
			fi;
			if
			:: saw ->
				atomic { reads[me] = true; check() };
				reads[me] = false
			:: else
			fi;
			saw = false;
			/* The release store comes after the store before. */
			atomic { !buffered[me] -> slot_of(me) = 0 }
		:: slot_of(me) != 0 -> saw = false
		fi
	:: else -> break
	od
	} unless { dies[me] };
	atomic {
		saw = false;
		rounds = 0;
		reads[me] = false;
		lives[me] = false
	};
	if
	:: dies[me] && me <= READERS -> me = me + READERS; goto again
	:: else
	fi
}

/* Stores of a thread leave its store buffer. */
proctype buffer(byte me)
{
end:	do
	:: atomic { buffered[me] -> buffered[me] = false; slot_of(me) = me }
	od
}

/* bias leaves the store buffer of the module. */
proctype drain()
{
end:	do
	:: atomic { clears -> clears = false; bias = false }
	od
}

proctype death()
{
end:	do
	:: lives[1] && !dies[1] -> dies[1] = true; break
	:: lives[2] && !dies[2] -> dies[2] = true; break
	od
}

proctype module()
{
	byte rounds, k, found;
	bool drained;

	do
	:: rounds < ROUNDS ->
		rounds++;
		/* kdsm_word_bar() */
		if
		:: BIAS_CLEARED_WITHOUT_BARRIER -> clears = true
		:: SCANNED_BEFORE_BIAS_IS_CLEARED
		:: else -> bias = false
		fi;
		/* kdsm_word_drained(), until it returns true */
		do
		:: drained -> break
		:: else ->
			drained = true;
			k = 0;
			do
			:: k < SLOTS ->
				found = slot[k];
				if
				:: found == 0
				:: found > 0 && (lives[found] || SLOT_OF_DEAD_THREAD_STAYS) ->
					drained = false;
					/* Without a change, the next scan finds the same. */
					slot[k] != found || !lives[found] && !SLOT_OF_DEAD_THREAD_STAYS
				:: else ->
					atomic {
						if
						:: slot[k] == found || SLOT_CLEARED_WITHOUT_COMPARING ->
							slot[k] = 0
						:: else -> drained = false
						fi
					}
				fi;
				found = 0;
				k++
			:: else -> k = 0; break
			od
		od;
		drained = false;
		if
		:: SCANNED_BEFORE_BIAS_IS_CLEARED -> bias = false
		:: else
		fi;
		d_step { writes = true; check() };
		d_step { writes = false; bias = true; clears = false }	/* kdsm_word_admit() */
	:: else -> break
	od
}

init {
	atomic {
		run reader(1);
		run reader(2);
		run buffer(1);
		run buffer(2);
		run buffer(3);
		run buffer(4);
		run drain();
		run death();
		run module()
	}
}
