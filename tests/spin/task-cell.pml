/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The request cell of a node (lib/task_remote.c): WORKERS of the node, which come to be
 * busy and leave, ROUNDS times each, and THIEVES of other nodes, which rob it ROBBERIES
 * times each. The cell is closed while nobody is busy, open, or says who wants a task.
 *
 * What is a step: an addition to busy, which gives the sum; a look at busy or at the cell;
 * a compare-and-swap of the cell; an answer. Any worker of the node may serve at any time:
 * busy ones do so between spawns, the others while they wait for something. Who is not busy
 * may be stopped for good, as a process that leaves the job stops its workers.
 *
 * Checked: a request has one answer (once); the cell is not closed (closed) when a worker is
 * busy and none is between the two.
 * And by spin: no thief waits for an answer that does not come (invalid end state).
 *
 * FAULT=n puts a mistake into it. Each must be found (tests/spin/check).
 */
#ifndef FAULT
#define FAULT	0
#endif
#define OPENED_FOR_WHO_HAS_LEFT		(FAULT == 1)
#define NOT_OPENED_AGAIN		(FAULT == 2)
#define CLOSED_BY_WRITE			(FAULT == 3)
#define CLOSED_WITHOUT_ANSWER		(FAULT == 4)
#define CELL_LOOKED_AT_BEFORE_BUSY	(FAULT == 5)
#define SERVED_BY_WRITE			(FAULT == 6)

#ifndef WORKERS
#define WORKERS		2
#endif
#ifndef ROUNDS
#define ROUNDS		2
#endif
#ifndef THIEVES
#define THIEVES		1
#endif
#ifndef ROBBERIES
#define ROBBERIES	2
#endif

#define CLOSED		0
#define OPEN		1
#define REQUEST		2
#define request(t, n)	(REQUEST + (t) * ROBBERIES + (n))
#define thief_of(word)	(((word) - REQUEST) / ROBBERIES)

byte cell;
byte busy;

#define AWAY		0
#define MOVING		1
#define BUSY		2
byte state[WORKERS];

bool waits[THIEVES], answered[THIEVES];

inline look()
{
	word = cell
}

inline change(from, to)
{
	d_step {
		got = (cell == from);
		if
		:: got -> cell = to
		:: else
		fi
	}
}

inline answer()
{
	d_step {
		assert(waits[thief_of(word)] && !answered[thief_of(word)]);	/* once */
		answered[thief_of(word)] = true
	}
}

inline serve()
{
	look();
	if
	:: word >= REQUEST && SERVED_BY_WRITE -> cell = OPEN; answer()
	:: word >= REQUEST && !SERVED_BY_WRITE ->
		change(word, OPEN);
		if
		:: got -> answer()
		:: else
		fi
	:: else
	fi
}

inline come()
{
	state[me] = MOVING;
	if
	:: CELL_LOOKED_AT_BEFORE_BUSY -> look(); busy++
	:: else -> busy++; look()
	fi;
	if
	:: word == CLOSED -> change(CLOSED, OPEN)
	:: else
	fi;
	state[me] = BUSY
}

inline close()
{
	do
	:: look();
	   if
	   :: word == CLOSED -> break
	   :: word != CLOSED && CLOSED_BY_WRITE -> cell = CLOSED; break
	   :: else ->
		change(word, CLOSED);
		if
		:: got -> break
		:: else
		fi
	   fi
	od;
	if
	:: word >= REQUEST && !CLOSED_WITHOUT_ANSWER -> answer()
	:: else
	fi
}

inline leave()
{
	d_step {
		state[me] = MOVING;
		busy--;
		last = (busy == 0)
	}
	do
	:: !last -> break
	:: else ->
		close();
		last = (busy == 0);
		if
		:: last || NOT_OPENED_AGAIN -> break
		:: else
		fi;
		change(CLOSED, OPEN);
		if
		:: OPENED_FOR_WHO_HAS_LEFT -> break
		:: else
		fi;
		last = (busy == 0)
	od;
	state[me] = AWAY
}

/* So that there are fewer states. */
inline forget()
{
	d_step { word = 0; got = false; last = false }
}

proctype worker(byte me)
{
	byte word, n;
	bool got, last;

end:	do
	:: state[me] == AWAY && n < ROUNDS -> n++; come(); forget()
	:: state[me] == BUSY -> leave(); forget()
	:: cell >= REQUEST -> serve(); forget()
	:: state[me] == AWAY -> break
	od
}

proctype thief(byte me)
{
	byte n;
	bool got;

end:	do
	:: n < ROBBERIES && cell == OPEN ->
		d_step {
			got = (cell == OPEN);
			if
			:: got -> cell = request(me, n); waits[me] = true
			:: else
			fi
		}
		if
		:: got ->
			answered[me];
			d_step { answered[me] = false; waits[me] = false; got = false; n++ }
		:: else
		fi
	od
}

#define moves(w)	(state[w] == MOVING)
#define is_busy(w)	(state[w] == BUSY)

/* It looks once, at any time. */
proctype watcher()
{
end:	d_step {
		!moves(0) && !moves(1) && !moves(WORKERS - 1) &&
		(is_busy(0) || is_busy(1) || is_busy(WORKERS - 1)) ->
		assert(cell != CLOSED)				/* closed */
	}
}

init
{
	byte i;

	atomic {
		for (i : 0 .. WORKERS - 1) {
			run worker(i)
		}
		for (i : 0 .. THIEVES - 1) {
			run thief(i)
		}
		run watcher()
	}
}
