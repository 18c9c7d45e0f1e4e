/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A deque and the thieves that steal from it. The processes are:
 *
 * owner	spawns SPAWNS tasks in DEPTH slots, publishes them, takes them back, waits for
 *		stolen tasks, and steals proxies back from the local thief
 *		(lib/task/spawn.c, deque.c, steal.c)
 * local_thief	a thief of the owner's node: steals STEALS times, runs one task and pushes a
 *		proxy for another (lib/task/steal.c)
 * far_thief	THIEVES thieves of other nodes: each steals ROBBERIES times from both deques
 *		by KDSM_OP_STEAL (kmod/fabric/steal.c, lib/task/kernel_steal.c)
 * wire		the puts of the results (lib/task/result.c), one process for each slot
 * ringer	another worker of the node, which rings the owner RINGS times for other
 *		reasons (lib/task/wake.c)
 *
 * Steps: each access to the word of both ends, to a mark, a bell, arguments, a result, to
 * asleep, or to the word that a sleeper waits on is a step of its own. A put stores the
 * first byte of the bell, the other bytes, and the result, in any order, and then sends a
 * notification. The notification wakes the sleeper if the word differs from the value that
 * the sleeper saw, because kdsm_wait() compares the two. Events that the owner waits for are
 * not undone, so the owner looks for all of them in one step.
 *
 * A nap ends, and an owner that looks without a nap looks again, when there is something to
 * see: ending earlier only repeats known states. With NAPS=0 naps do not end. With NAPS=1 a
 * nap ends only if the kernel hands out the task that the sleeper waits for after the nap
 * began, because the kernel does not ring the sleeper.
 *
 * Asserted: each task runs once (once); the arguments or the result that a process reads are
 * complete and belong to this task (whole); a slot is used again only when no put to the
 * slot is in flight (used); a thief never zeroes a result (result). Checked by spin: the
 * owner gets all results (invalid end state).
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define TAKEN_BY_TAIL_ALONE		(FAULT == 1)
#define TAKEN_BACK_BY_WRITE		(FAULT == 2)
#define OFFERED_BEFORE_WRITTEN		(FAULT == 3)
#define MARKED_BEFORE_ZEROED		(FAULT == 4)
#define MARKED_BEFORE_COPIED		(FAULT == 5)
#define ZEROED_AFTER_ANSWER		(FAULT == 6)
#define BELL_NOT_ZEROED			(FAULT == 7)
#define DROPPED_BEFORE_RESULT_CAME	(FAULT == 8)
#define RESULT_TAKEN_BY_BELL		(FAULT == 9)
#define RESULT_TAKEN_WITHOUT_BELL	(FAULT == 10)
#define RING_TAKEN_FOR_RESULT		(FAULT == 11)
#define MARK_LEFT			(FAULT == 12)
#define DONE_BEFORE_RESULT		(FAULT == 13)
#define PROXY_DONE_BEFORE_READ		(FAULT == 14)
#define MARKED_AFTER_PROXY_OFFERED	(FAULT == 15)
#define RUNG_BY_WRITE			(FAULT == 16)
#define RUNG_INTO_RESULT		(FAULT == 17)
#define WOKEN_BY_WRITE			(FAULT == 18)
#define LOOKED_BEFORE_ASLEEP		(FAULT == 19)
#define PLACE_OF_SLEEP_NOT_LOOKED_AT	(FAULT == 20)
#define SLEPT_WHILE_IT_COMES		(FAULT == 21)

#ifndef SPAWNS
#define SPAWNS		3
#endif
#ifndef DEPTH
#define DEPTH		2
#endif
#ifndef STEALS
#define STEALS		1
#endif
#ifndef THIEVES
#define THIEVES		1
#endif
#ifndef ROBBERIES
#define ROBBERIES	2
#endif
#ifndef RINGS
#define RINGS		0
#endif
#ifndef NAPS
#define NAPS		2
#endif

/* Deques, by their owners */
#define OWNER		0
#define LOCAL		1

/* Both ends of the public portion, which share one word */
byte tail[2], split[2];

/* The local thief's only slot, which holds a proxy. The owner's slots are 0..DEPTH-1. */
#define PROXY		DEPTH

#define DONE		1
#define NEAR		2
#define FAR		3
byte mark[DEPTH + 1];

/* The bell: its first byte, and all others as one */
#define PUT		128
byte low[DEPTH], high[DEPTH];
#define comes(low, high) ((low) >= PUT || (high) != 0)

/* Arguments (the number of the task, or in a proxy the number of the slot), or a result */
#define RESULT		64
byte data[DEPTH + 1];

/* The parts of a put that are still in flight, and the task whose result the put carries */
#define LOW		1
#define HIGH		2
#define DATA		4
#define ALL		7
#define NOTICE		8
byte due[DEPTH], number[DEPTH];

bool ran[SPAWNS + 1];

#define ASLEEP		1
#define ASLEEP_RESULT	2
byte asleep, awaited, wake;

/* The owner is in kdsm_wait(): on which word, and the values that it saw. */
bool waits;
byte waits_how, waits_slot, seen, seen_high;

/* The mark of the awaited task when the owner went to sleep */
byte marked;

#define differs()	((waits_how == ASLEEP && wake != seen) || \
			 (waits_how == ASLEEP_RESULT && \
			  (low[waits_slot] != seen || high[waits_slot] != seen_high)))

inline wake_up(how_, slot_)
{
	d_step {
		if
		:: waits && waits_how == how_ && (how_ == ASLEEP || waits_slot == slot_) &&
		   differs() -> waits = false
		:: else
		fi
	}
}

/* kd_task_ring() */
inline ring()
{
	d_step { how = asleep; asleep = 0 }
	if
	:: how == ASLEEP && WOKEN_BY_WRITE -> value = wake; wake = value + 1;
		wake_up(ASLEEP, 0)
	:: how == ASLEEP && !WOKEN_BY_WRITE -> wake++;
		wake_up(ASLEEP, 0)
	:: how == ASLEEP_RESULT ->
		d_step { rung = awaited; value = low[rung]; value_high = high[rung] }
		do
		:: comes(value, value_high) && !RUNG_INTO_RESULT -> break
		:: !comes(value, value_high) && RUNG_BY_WRITE ->
			d_step { low[rung] = (value + 1) % 4; high[rung] = 0 }
			break
		:: else ->
			d_step {
				if
				:: low[rung] == value && high[rung] == value_high ->
					low[rung] = (value + 1) % 4;
					high[rung] = 0;
					rung_ = true
				:: else -> value = low[rung]; value_high = high[rung]
				fi
			}
			if
			:: rung_ -> break
			:: else
			fi
		od;
		wake_up(ASLEEP_RESULT, rung)
	:: else
	fi;
	d_step { how = 0; rung = 0; value = 0; value_high = 0; rung_ = false }
}

inline once(id)
{
	assert(!ran[id]);						/* once */
	ran[id] = true
}

/* kd_task_run() */
inline run_in_place(slot, me)
{
	mark[slot] = me;
	d_step {
		id = data[slot];
		assert(id > 0 && id <= SPAWNS);				/* whole */
		once(id)
	}
	if
	:: DONE_BEFORE_RESULT -> mark[slot] = DONE
	:: else
	fi;
	data[slot] = RESULT + id;
	mark[slot] = DONE;
	if
	:: asleep -> ring()
	:: else
	fi;
	id = 0
}

/* kd_task_take(), kdsm_ends_take() */
inline take(victim)
{
	d_step {
		from = tail[victim];
		to = split[victim];
		count = to - from
	}
	if
	:: count ->
		d_step {
			got = (tail[victim] == from &&
			       (split[victim] == to || TAKEN_BY_TAIL_ALONE));
			if
			:: got -> tail[victim] = from + count
			:: else -> count = 0
			fi;
			got = false;
			to = 0
		}
	:: else -> to = 0
	fi
}

/* ---- the owner ---- */

inline spawn()
{
	d_step {
		assert(!(due[head] & ALL));				/* used */
		spawned++;
		task[head] = spawned
	}
	if
	:: OFFERED_BEFORE_WRITTEN && mine == head -> mine++; split[OWNER] = mine
	:: else
	fi;
	d_step { data[head] = spawned; head++ }
}

inline offer()
{
	d_step {
		mine = mine + (head - mine + 1) / 2;
		split[OWNER] = mine
	}
}

inline take_back()
{
	do
	:: d_step { from = tail[OWNER]; to = split[OWNER] }
	   if
	   :: from == to -> break
	   :: else ->
		d_step {
			got = (tail[OWNER] == from || TAKEN_BACK_BY_WRITE);
			if
			:: got ->
				tail[OWNER] = from;
				mine = from + (to - from) / 2;
				split[OWNER] = mine
			:: else
			fi
		}
		if
		:: got -> break
		:: else
		fi
	   fi
	od;
	from = 0;
	to = 0
}

/* kd_task_result_came(): got */
inline came()
{
	got = (low[head] == PUT || RESULT_TAKEN_WITHOUT_BELL ||
	       (low[head] != 0 && RING_TAKEN_FOR_RESULT)) &&
	      (high[head] == PUT || RESULT_TAKEN_WITHOUT_BELL) &&
	      (data[head] != 0 || RESULT_TAKEN_BY_BELL)
}

/* The owner's nap ends by its timeout. */
#define nap_ends()	((NAPS == 2 && changed()) || \
			 (NAPS == 1 && marked != FAR && mark[head] == FAR))

/* There is news that the owner has not seen. */
#define changed()	(mark[head] != thief || \
			 (thief == FAR && low[head] == PUT && high[head] == PUT && \
			  data[head] != 0))

inline choose_sleep()
{
	d_step {
		if
		:: mark[head] == FAR -> waits_how = ASLEEP_RESULT; awaited = head
		:: else -> waits_how = ASLEEP
		fi
	}
	d_step {
		if
		:: waits_how == ASLEEP -> seen = wake; got = true
		:: else ->
			waits_slot = head;
			seen = low[head];
			seen_high = high[head];
			got = !comes(seen, seen_high) || SLEPT_WHILE_IT_COMES
		fi
	}
}

inline anything()
{
	d_step {
		marked = mark[head];
		got = (mark[head] != DONE &&
		       (waits_how != ASLEEP || mark[head] != FAR ||
			PLACE_OF_SLEEP_NOT_LOOKED_AT))
	}
}

inline nap()
{
	choose_sleep();
	if
	:: !got -> changed()
	:: else ->
		if
		:: LOOKED_BEFORE_ASLEEP -> anything(); asleep = waits_how
		:: else -> asleep = waits_how; anything()
		fi;
		if
		:: got ->
			d_step { waits = !differs() }
			if
			:: !waits
			:: nap_ends() -> waits = false
			fi
		:: else
		fi;
		asleep = 0
	fi;
	d_step {
		waits_how = 0; waits_slot = 0; seen = 0; seen_high = 0; marked = 0; got = false
	}
}

/* Steal the local thief's proxy, and run the task that the proxy stands for. */
inline leap()
{
	take(LOCAL);
	if
	:: count ->
		slot = data[PROXY];
		run_in_place(slot, NEAR);
		mark[PROXY] = DONE
	:: else
	fi;
	d_step { from = 0; count = 0; slot = 0 }
}

inline await()
{
	do
	:: thief = mark[head];
	   if
	   :: thief == DONE -> break
	   :: thief == FAR && DROPPED_BEFORE_RESULT_CAME -> break
	   :: thief == FAR && !DROPPED_BEFORE_RESULT_CAME ->
		came();
		if
		:: got -> break
		:: else
		fi
	   :: else
	   fi;
	   if
	   :: thief == NEAR && tail[LOCAL] < split[LOCAL] -> leap()
	   :: nap()
	   :: changed()
	   fi
	od
}

/* Sync the newest task. */
inline sync()
{
	d_step { head--; got = (mine <= head) }
	if
	:: !got -> take_back()
	:: else
	fi;
	if
	:: got ->
		d_step {
			assert(data[head] == task[head]);		/* whole */
			once(task[head])
		}
	:: else ->
		await();
		thief = 0;
		d_step {
			assert(data[head] == RESULT + task[head]);	/* whole */
			if
			:: !MARK_LEFT -> mark[head] = 0
			:: else
			fi;
			tail[OWNER] = head;
			split[OWNER] = head;
			mine = head
		}
	fi;
	d_step { task[head] = 0; got = false }
}

proctype owner()
{
	byte task[DEPTH];
	byte head, mine, spawned, thief, from, to, count, slot, id;
	byte how, rung, value, value_high;
	bool got, rung_;

	do
	:: spawned < SPAWNS && head < DEPTH -> spawn()
	:: mine < head -> offer()
	:: head -> sync()
	:: spawned == SPAWNS && !head -> break
	od
}

/* ---- thieves ---- */

proctype local_thief()
{
	byte n, first, from, to, count, slot, id;
	byte how, rung, value, value_high;
	bool got, rung_, more;

end:	do
	:: n < STEALS && tail[OWNER] < split[OWNER] ->
		take(OWNER);
		if
		:: count -> n++
		:: else
		fi;
		d_step { first = from; more = (count > 1); from = 0; got = (count > 0); count = 0 }
		if
		:: !got -> skip
		:: else ->
			got = false;
			if
			:: more && !MARKED_AFTER_PROXY_OFFERED -> mark[first + 1] = NEAR
			:: else
			fi;
			if
			:: more ->
				data[PROXY] = first + 1;
				/* Publish the proxy, or keep it private. */
				if
				:: split[LOCAL] = 1
				:: skip
				fi
			:: else
			fi;
			if
			:: more && MARKED_AFTER_PROXY_OFFERED -> mark[first + 1] = NEAR
			:: else
			fi;
			run_in_place(first, NEAR);
			if
			:: more ->
				/* Take the proxy back. */
				d_step {
					got = (tail[LOCAL] == 0);
					if
					:: got -> split[LOCAL] = 0
					:: else
					fi
				}
				if
				:: got -> slot = first + 1; run_in_place(slot, NEAR)
				:: else ->
					mark[PROXY] == DONE;
					mark[PROXY] = 0;
					d_step { tail[LOCAL] = 0; split[LOCAL] = 0 }
				fi
			:: else
			fi;
			d_step { data[PROXY] = 0; first = 0; slot = 0; more = false; got = false }
		fi
	od
}

inline zero()
{
	if
	:: BELL_NOT_ZEROED
	:: else -> d_step { low[slot] = 0; high[slot] = 0 }
	fi;
	d_step {
		assert(data[slot] < RESULT);				/* result */
		data[slot] = 0
	}
}

inline copy()
{
	d_step {
		id = data[slot];
		assert(id > 0 && id <= SPAWNS)				/* whole */
	}
}

/* kdsm_task_pack() */
inline pack()
{
	if
	:: MARKED_BEFORE_COPIED -> mark[slot] = FAR; copy(); zero()
	:: MARKED_BEFORE_ZEROED -> copy(); mark[slot] = FAR; zero()
	:: ZEROED_AFTER_ANSWER -> copy(); mark[slot] = FAR
	:: else -> copy(); zero(); mark[slot] = FAR
	fi
}

inline hand_out()
{
	if
	:: victim == OWNER -> slot = from + i; pack()
	:: else ->
		if
		:: PROXY_DONE_BEFORE_READ -> mark[PROXY] = DONE
		:: else
		fi;
		slot = data[PROXY];
		pack();
		if
		:: !PROXY_DONE_BEFORE_READ -> mark[PROXY] = DONE
		:: else
		fi
	fi
}

/* kd_task_send_result(), which does not wait for its put */
inline send(slot_, id_)
{
	d_step {
		once(id_);
		assert(!(due[slot_] & ALL));				/* used */
		due[slot_] = ALL | NOTICE;
		number[slot_] = id_
	}
}

proctype far_thief()
{
	byte n, i, from, to, count, victim, slot, id;
	byte slots[2], ids[2];
	bool got;

end:	do
	:: n < ROBBERIES && (tail[OWNER] < split[OWNER] || tail[LOCAL] < split[LOCAL]) ->
		if
		:: tail[OWNER] < split[OWNER] -> victim = OWNER
		:: tail[LOCAL] < split[LOCAL] -> victim = LOCAL
		:: else -> victim = OWNER
		fi;
		take(victim);
		if
		:: count -> n++
		:: else
		fi;
		do
		:: i < count ->
			hand_out();
			d_step { slots[i] = slot; ids[i] = id; slot = 0; id = 0; i++ }
		:: else -> break
		od;
		/* The far thief has the kernel's answer. */
		do
		:: i > 0 ->
			i--;
			send(slots[i], ids[i]);
			if
			:: ZEROED_AFTER_ANSWER -> slot = slots[i]; zero(); slot = 0
			:: else
			fi;
			d_step { slots[i] = 0; ids[i] = 0 }
		:: else -> break
		od;
		victim = 0;
		d_step { from = 0; count = 0 }
	od
}

#define arrive(what, place, with) \
	d_step { due[i] & what -> due[i] = due[i] - what; place[i] = with }

proctype wire(byte i)
{
end:	do
	:: arrive(LOW, low, PUT)
	:: arrive(HIGH, high, PUT)
	:: arrive(DATA, data, RESULT + number[i])
	:: d_step { due[i] == NOTICE -> due[i] = 0; number[i] = 0 }
		wake_up(ASLEEP_RESULT, i)
	od
}

proctype ringer()
{
	byte n, how, rung, value, value_high;
	bool rung_;

end:	do
	:: n < RINGS && asleep -> n++; ring()
	od
}

init
{
	byte i;

	atomic {
		run owner();
		run local_thief();
		for (i : 1 .. THIEVES) {
			run far_thief()
		}
		for (i : 0 .. DEPTH - 1) {
			run wire(i)
		}
		run ringer()
	}
}
