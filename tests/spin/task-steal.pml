/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A deque and who steals from it: its owner, which spawns SPAWNS tasks in DEPTH places,
 * makes them public, takes them back, waits for those that are stolen, and takes proxies
 * from who stole them (lib/deque.c, lib/steal.c); a thief of its node, which
 * steals STEALS times, runs one task and pushes a proxy for another; thieves of other
 * nodes, which steal ROBBERIES times each by KDSM_OP_STEAL (kmod/steal.c, lib/steal.c), out
 * of both deques, and the puts of their results (lib/task/result.c); somebody of the node
 * who rings the owner RINGS times for other reasons (lib/sleep.c).
 *
 * What is a step: an access to the word of both ends, to a mark, a bell, arguments or a
 * result, to asleep, or to the word that a sleeper waits for. A put brings the first byte
 * of the bell, the others, and the result, in any order, and a notice after them. Who
 * sleeps is woken if the word differs then, as kdsm_wait() looks at it. What comes does not
 * go, so to look for all of it is one step.
 *
 * Naps end, and who looks without a nap looks again, when there is something to see: that
 * they do so before only makes the same states again. With NAPS=0 they do not end; with
 * NAPS=1 a nap ends only if the kernel gives away, after its begin, the task that the
 * sleeper waits for: the kernel does not ring.
 *
 * Checked: a task is run once (once); what is read, arguments or a result, is whole, and of
 * this task (whole); a place is used again only when nothing that was put there is on its
 * way (used); what is zeroed is no result (result).
 * And by spin: the owner gets all results (invalid end state).
 *
 * FAULT=n puts a mistake into it. Each must be found (tests/spin/check).
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

/* Whose a deque is. */
#define OWNER		0
#define LOCAL		1

/* The word of both ends. */
byte tail[2], split[2];

/* The places of the owner, and the one of the local thief, of a proxy. */
#define PROXY		DEPTH

#define DONE		1
#define NEAR		2
#define FAR		3
byte mark[DEPTH + 1];

/* The bell: its first byte, and the others. */
#define PUT		128
byte low[DEPTH], high[DEPTH];
#define comes(low, high) ((low) >= PUT || (high) != 0)

/* Arguments: the number of the task, or (of a proxy) of the place; or a result. */
#define RESULT		64
byte data[DEPTH + 1];

/* What is to come of a put, and whose result it is. */
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

/* In kdsm_wait(). */
bool waits;
byte waits_how, waits_slot, seen, seen_high;

/* The mark of the task that it waits for, as it went to sleep. */
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

/* The nap of the sleeper ends. */
#define nap_ends()	((NAPS == 2 && changed()) || \
			 (NAPS == 1 && marked != FAR && mark[head] == FAR))

/* Something that it has not seen. */
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

/* Take the proxy, and run what is behind it. */
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

/* It is the last. */
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
				/* Or it stays private. */
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
				/* Take it back. */
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

/* kd_task_send_result(): nobody waits for it. */
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
		/* The answer is there. */
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
