/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Readers of a lock, when messages are lost or late and nodes die: kmod/lock/gate.c, pass.c,
 * reader.c, and the gate in home.c, errand.c and survey.c. Node 0 is the home and, as a last
 * resort, a reader home; node 1 is the reader home; nodes 2 and 3 read. Names of functions say which code
 * an inline models.
 *
 * Pass n and reader n are of node n. Gates 0 and 1 are those of the reader homes, gate 2 is the
 * home's. The queue of writers is a number; lock-home.pml models the queue. T_W is 1, and T_R
 * admits both readers. Each node has one thread that reads.
 *
 * The receiver serves a message in one step. The answer to ENTER arrives in a later step, that
 * to LEFT at once. LOSSES times a message is lost for its sender, and a copy of it arrives at any
 * later time, or never. Messages that change nothing are no steps, so that spin finds a
 * parent or a child that repeats its message without end.
 *
 * DEATHS times node 1 or 2 dies, or is given up and continues. Node 1 is given up by the home,
 * and by each reader at any other time or never; so its readers may hear it after the home has
 * struck it off. A node that continues learns at any later time that it was given up.
 *
 * Asserted: no node reads while another one writes, and readers that were given up do not count
 * (both); when nothing can happen any more, all living nodes have read, and the writers have
 * written (served).
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define REVOKED_ADMISSION_TAKEN		(FAULT == 1)
#define ERA_IGNORED			(FAULT == 2)
#define COUNTED_WHEN_ANSWERED		(FAULT == 3)
#define DISMISS_ANSWERED_INSIDE		(FAULT == 4)
#define NOT_DISMISSED			(FAULT == 5)
#define LEFT_BEFORE_THE_CHILDREN	(FAULT == 6)
#define LEFT_OF_OLD_REQUEST_TAKEN	(FAULT == 7)
#define REVOKE_NOT_REPEATED		(FAULT == 8)
#define ORPHANS_WAIT			(FAULT == 9)

#ifndef READS
#define READS		1	/* times that node 2 reads */
#endif
#ifndef READS_TOO
#define READS_TOO	1	/* times that node 3 reads */
#endif
#ifndef WRITES
#define WRITES		1
#endif
#ifndef LOSSES
#define LOSSES		1
#endif
#ifndef DEATHS
#define DEATHS		0
#endif
#define NOBODY		7

/* ---- a child: struct kdsm_pass ---- */

#define NONE		0
#define ASKING		1
#define WAITING		2
#define READING		3
#define LAST		4
#define LEAVING		5
byte pass[4], request[4], life[4], era[4];
byte parent[4] = NOBODY;		/* a gate */
bool once[4];
byte owed_to[4] = NOBODY, owed[4], owed_life[4];
byte dismissal[4], dismissed[4];
bool struck[4];				/* the reader has given up node 1 */

/* The answer to ENTER that has not arrived yet; with the request and the parent */
#define LATER		1
#define IN		2
#define ONCE		3
byte a_mode[4], a_request[4], a_parent[4], a_life[4], a_era[4];

bool reads[4];				/* a thread of the node reads */
byte left[4];				/* times that it still reads */

/* ---- parents: struct kdsm_gate ---- */

#define SHUT		0
#define OPEN		1
#define SHARE		2		/* KDSM_GATE_ONCE */
#define CLOSING		3
byte gate[3];
/* Each gate has two children: passes 0 and 1 those of the home, 2 and 3 the others. */
#define at(g, p)	((g) * 2 + ((p) & 1))
#define OUT		0
#define WAITS		1
#define INSIDE		2
byte k_state[6], k_life[6], k_request[6], k_done[6];
bool untold[6];
#define waiting(g)	(k_state[(g) * 2] == WAITS || k_state[(g) * 2 + 1] == WAITS)
#define inside(g)	(k_state[(g) * 2] == INSIDE || k_state[(g) * 2 + 1] == INSIDE)
#define OVER		255		/* k_done: nothing of that life counts */

/* ---- the home ---- */

#define IDLE		0
#define READERS		1		/* KDSM_HOME_READING */
#define REVOKING	2
#define WRITING		3
byte home, now = 1, writers, row, writes = WRITES;
byte number;				/* of the last DISMISS */
bool orphans;				/* node 1 is in kdsm_lock_home.dismissed */
bool undismissed[4];

/* ---- the world ---- */

bool alive[4] = true, away[4], gone[4];
byte deaths, losses;

/* A message that was lost for its sender: the copy that may arrive */
#define ENTER		1
#define LEFT		2
#define ADMIT		3
#define REVOKE		4
#define DISMISS		5
byte g_kind, g_gate, g_pass, g_life, g_request, g_era;
bool g_once;

hidden byte i, j, mode, strikes;

/* Messages pass between a child and the node of a parent. */
#define linked(g, p)	(alive[p] && ((g) == 2 -> !away[p] : \
			 ((g) == 0 -> !away[p] : alive[1] && !struck[p] && !away[p])))
/* The reader counts: nobody has given it up. */
#define counts(r)	(alive[r] && !away[r] && reads[r])
#define is_in(p)	(pass[p] == READING || pass[p] == LAST)
#define asks(p)		(pass[p] == ASKING || pass[p] == WAITING)

inline check()
{
	assert(home != WRITING || !counts(2) && !counts(3))	/* both */
}

/* ---- gate.c ---- */

inline admit(c)
{
	k_state[c] = INSIDE;
	untold[c] = true
}

/* kdsm_gate_open() */
inline open(g, for_once)
{
	gate[g] = (for_once -> SHARE : OPEN);
	if
	:: k_state[(g) * 2] == WAITS -> admit((g) * 2)
	:: else
	fi;
	if
	:: k_state[(g) * 2 + 1] == WAITS -> admit((g) * 2 + 1)
	:: else
	fi
}

/* kdsm_gate_is_done() */
inline end_gate(g)
{
	gate[g] = (!inside(g) && (gate[g] == CLOSING || gate[g] == SHARE) -> SHUT : gate[g])
}

/* kdsm_gate_close() */
inline close(g)
{
	if
	:: gate[g] != SHUT ->
		gate[g] = CLOSING;
		untold[(g) * 2] = (k_state[(g) * 2] == INSIDE);
		untold[(g) * 2 + 1] = (k_state[(g) * 2 + 1] == INSIDE);
		end_gate(g)
	:: else
	fi
}

/* kdsm_gate_remove() */
inline remove(g, c)
{
	k_state[c] = OUT;
	untold[c] = false;
	end_gate(g)
}

/* kdsm_gate_strike() */
inline strike(g, c)
{
	remove(g, c);
	k_request[c] = 0;
	k_done[c] = OVER
}

/* kdsm_gate_leave() */
inline leave(g, c, in_life, asked)
{
	if
	:: k_state[c] == INSIDE && k_life[c] <= in_life &&
	   !(k_life[c] == in_life && k_request[c] > asked && !LEFT_OF_OLD_REQUEST_TAKEN) ->
		k_done[c] = k_request[c];
		remove(g, c)
	:: else
	fi
}

#define mode_of(g, c)	(k_state[c] != INSIDE -> LATER : (gate[g] == OPEN -> IN : ONCE))

/* kdsm_gate_enter() */
inline enter(g, c, in_life, asked)
{
	mode = LATER;
	strikes = (in_life > k_life[c] && k_state[c] == INSIDE);
	if
	:: in_life > k_life[c] && !strikes ->
		k_life[c] = in_life;
		k_request[c] = 0;
		k_done[c] = 0
	:: else
	fi;
	if
	:: strikes || in_life < k_life[c] || asked <= k_done[c]
	:: else ->
		if
		:: k_state[c] == INSIDE && asked > k_request[c] -> remove(g, c)
		:: else
		fi;
		k_request[c] = (asked > k_request[c] -> asked : k_request[c]);
		k_state[c] = (k_state[c] == OUT -> WAITS : k_state[c]);
		if
		:: k_state[c] == WAITS && gate[g] == OPEN -> k_state[c] = INSIDE
		:: else
		fi;
		mode = mode_of(g, c)
	fi
}

/* ---- the home ---- */

/* kdsm_home_next() */
inline next()
{
	if
	:: orphans -> home = REVOKING
	:: !orphans && waiting(2) && (writers == 0 || row > 0) ->
		row = 0;
		home = READERS;
		now++;
		open(2, writers > 0)
	:: !orphans && !(waiting(2) && (writers == 0 || row > 0)) && writers > 0 ->
		writers--;
		row = waiting(2);
		home = WRITING;
		check()
	:: else -> home = IDLE
	fi
}

/* kdsm_home_shut() */
inline shut()
{
	if
	:: gate[2] == SHUT && (home == READERS || home == REVOKING) -> next()
	:: else
	fi
}

/* kdsm_home_revoke() */
inline revoke()
{
	home = REVOKING;
	close(2);
	shut()
}

/* kdsm_home_came() */
inline came()
{
	if
	:: home == IDLE -> next()
	:: home == READERS && writers > 0 && gate[2] == OPEN -> revoke()
	:: else
	fi
}

/* kdsm_home_bury_reader_home(), kdsm_home_orphan(): node 1 */
inline bury_reader_home()
{
	if
	:: k_state[5] == INSIDE && !NOT_DISMISSED ->
		number++;
		now++;
		orphans = true;
		undismissed[2] = alive[2] && !gone[2];
		undismissed[3] = true
	:: else
	fi;
	strike(2, 5);
	if
	:: home == READERS && orphans -> revoke()
	:: else
	fi;
	shut()
}

/* kdsm_home_serve_left(): the answer to DISMISS */
inline answered(r)
{
	undismissed[r] = false;
	if
	:: !undismissed[2] && !undismissed[3] -> orphans = false; shut()
	:: else
	fi
}

/* kdsm_home_serve_enter(), kdsm_reader_home_serve_enter() */
inline serve_enter(g, p, in_life, asked)
{
	enter(g, at(g, p), in_life, asked);
	if
	:: strikes && g == 2 -> bury_reader_home()
	:: strikes && g != 2 -> strike(g, at(g, p))
	:: else
	fi;
	if
	:: g == 2 ->
		shut();
		if
		:: mode == LATER && waiting(2) && !strikes -> came()
		:: else
		fi
	:: else
	fi
}

/* kdsm_home_serve_left(), kdsm_reader_home_serve_left() */
inline serve_left(g, p, in_life, asked)
{
	leave(g, at(g, p), in_life, asked);
	if
	:: g == 2 -> shut()
	:: else
	fi
}

/* ---- pass.c ---- */

/* kdsm_pass_want(), and ops.parent(): a new life asks the home. */
#define parent_of(p)	((p) < 2 -> 2 : (era[p] == 0 || struck[p] -> 0 : 1))

/* kdsm_pass_void() */
inline ask_anew(p)
{
	request[p] = (REVOKED_ADMISSION_TAKEN -> request[p] : request[p] + 1);
	pass[p] = ASKING
}

/* kdsm_pass_owe() */
inline owe(p, g, in_life, asked)
{
	owed_to[p] = g;
	owed[p] = asked;
	owed_life[p] = in_life
}

/* kdsm_pass_admit(); i: whether it is taken */
inline take(p, in_era, how)
{
	i = (in_era >= era[p] || ERA_IGNORED);
	if
	:: i ->
		era[p] = (in_era > era[p] -> in_era : era[p]);
		once[p] = (how == ONCE);
		pass[p] = (how == ONCE -> LAST : READING)
	:: else
	fi
}

#define about(p, g, in_life, asked) \
	(parent[p] == (g) && life[p] == (in_life) && request[p] == (asked))

/* kdsm_pass_serve_admit() */
inline serve_admit(p, g, in_life, asked, in_era, how)
{
	if
	:: !about(p, g, in_life, asked) || pass[p] == NONE -> owe(p, g, in_life, asked)
	:: about(p, g, in_life, asked) && asks(p) ->
		take(p, in_era, how);
		if
		:: !i -> owe(p, g, in_life, asked); ask_anew(p)
		:: else
		fi
	:: else
	fi
}

/* kdsm_pass_serve_revoke() */
inline serve_revoke(p, g, in_life, asked)
{
	if
	:: about(p, g, in_life, asked) && is_in(p) -> once[p] = false; pass[p] = LAST
	:: about(p, g, in_life, asked) && !is_in(p) && pass[p] != LEAVING ->
		owe(p, g, in_life, asked);
		if
		:: asks(p) -> ask_anew(p)
		:: else
		fi
	:: !about(p, g, in_life, asked) -> owe(p, g, in_life, asked)
	:: else
	fi
}

/* kdsm_pass_orphan() */
inline orphan(p)
{
	if
	:: pass[p] == NONE
	:: else ->
		parent[p] = NOBODY;
		if
		:: asks(p) -> ask_anew(p)
		:: is_in(p) -> once[p] = false; pass[p] = LAST
		:: else -> pass[p] = NONE
		fi
	fi
}

/* kdsm_pass_serve_dismiss() */
inline serve_dismiss(p, in_era, in_number)
{
	dismissal[p] = in_number;
	dismissed[p] = 0;
	era[p] = (in_era > era[p] -> in_era : era[p]);
	if
	:: parent[p] == 1 && !ORPHANS_WAIT -> orphan(p)
	:: else
	fi
}

/* kdsm_pass_reset() */
inline reset(p)
{
	life[p]++;
	era[p] = 0;
	owed_to[p] = NOBODY;
	owed[p] = 0;
	owed_life[p] = 0;
	once[p] = false;
	pass[p] = NONE
}

/* ---- a child sends ---- */

#define c_of(p)		at(parent[p], p)
/* ENTER changes something: a child that waits asks again once a second. */
#define enters(p) \
	(pass[p] == ASKING || pass[p] == WAITING && \
	 (k_state[c_of(p)] != WAITS || k_life[c_of(p)] != life[p] || \
	  k_request[c_of(p)] != request[p]))

inline clear_answer(p)
{
	a_mode[p] = 0; a_request[p] = 0; a_parent[p] = 0; a_life[p] = 0; a_era[p] = 0
}

inline clear_copy()
{
	g_kind = 0; g_gate = 0; g_pass = 0; g_life = 0; g_request = 0; g_era = 0; g_once = false
}

#define era_of(g)	((g) == 2 -> now : era[g])

proctype child(byte p)
{
	byte g, q;

end:	do
	/* kdsm_pass_want() */
	:: d_step {
		alive[p] && pass[p] == NONE &&
		(p < 2 -> waiting(p % 2) : left[p] > 0) ->
		request[p]++;
		parent[p] = NOBODY;
		pass[p] = ASKING
	   }
	/* kdsm_pass_choose() */
	:: d_step { alive[p] && pass[p] == ASKING && parent[p] == NOBODY -> parent[p] = parent_of(p) }
	/* kdsm_pass_ask() */
	:: d_step {
		a_mode[p] == 0 && asks(p) && parent[p] != NOBODY && linked(parent[p], p) &&
		enters(p) ->
		g = parent[p];
		serve_enter(g, p, life[p], request[p]);
		if
		:: strikes
		:: else ->
			a_mode[p] = mode;
			a_request[p] = request[p];
			a_parent[p] = g;
			/* kdsm_gate_life() */
			a_life[p] = k_life[at(g, p)] + (k_done[at(g, p)] == OVER);
			a_era[p] = era_of(g)
		fi;
		g = 0
	   }
	:: d_step {
		alive[p] && a_mode[p] ->
		if
		:: !asks(p) || request[p] != a_request[p] || parent[p] != a_parent[p]
		:: else ->
			if
			:: life[p] < a_life[p] -> life[p] = a_life[p]; pass[p] = ASKING
			:: life[p] >= a_life[p] && a_mode[p] == LATER -> pass[p] = WAITING
			:: life[p] >= a_life[p] && a_mode[p] != LATER ->
				take(p, a_era[p], a_mode[p])
			fi
		fi;
		clear_answer(p)
	   }
	/* kdsm_pass_send_leaving() */
	:: d_step {
		alive[p] && pass[p] == LEAVING && parent[p] != NOBODY && linked(parent[p], p) ->
		g = parent[p];
		pass[p] = NONE;
		serve_left(g, p, life[p], request[p]);
		g = 0
	   }
	/* kdsm_pass_pay() */
	:: d_step {
		alive[p] && owed_to[p] != NOBODY ->
		g = owed_to[p];
		owed_to[p] = NOBODY;
		if
		:: linked(g, p) -> serve_left(g, p, owed_life[p], owed[p])
		:: else
		fi;
		owed[p] = 0;
		owed_life[p] = 0;
		g = 0
	   }
	/* kdsm_pass_answer() */
	:: d_step {
		alive[p] && !away[p] && dismissal[p] != dismissed[p] &&
		(!is_in(p) || DISMISS_ANSWERED_INSIDE) ->
		dismissed[p] = dismissal[p];
		if
		:: dismissal[p] == number -> answered(p)
		:: else
		fi
	   }
	/* kdsm_pass_leave() of a reader, when no thread reads or may still read */
	:: d_step {
		p >= 2 && alive[p] && pass[p] == LAST && !reads[p] && !(once[p] && left[p] > 0) ->
		once[p] = false;
		pass[p] = (parent[p] == NOBODY -> NONE : LEAVING)
	   }
	/* kdsm_pass_strike(): the reader gives up the dead reader home. */
	:: d_step {
		p >= 2 && alive[p] && gone[1] && !struck[p] ->
		struck[p] = true;
		if
		:: parent[p] == 1 -> orphan(p)
		:: else
		fi
	   }
	/* A message is lost for the child. */
	:: d_step {
		losses < LOSSES && !g_kind && alive[p] && p != 0 && a_mode[p] == 0 &&
		parent[p] != NOBODY && (asks(p) || pass[p] == LEAVING) ->
		losses++;
		g_kind = (pass[p] == LEAVING -> LEFT : ENTER);
		g_gate = parent[p];
		g_pass = p;
		g_life = life[p];
		g_request = request[p];
		if
		:: pass[p] != LEAVING ->
			parent[p] = NOBODY;
			request[p]++;
			pass[p] = ASKING
		:: else
		fi
	   }
	:: d_step {
		(g_kind == ENTER || g_kind == LEFT) && g_pass == p && linked(g_gate, p) ->
		g = g_kind;
		q = g_gate;
		i = g_life;
		j = g_request;
		clear_copy();
		if
		:: g == ENTER -> serve_enter(q, p, i, j)
		:: else -> serve_left(q, p, i, j)
		fi;
		g = 0;
		q = 0
	   }
	:: d_step { (g_kind == ENTER || g_kind == LEFT) && g_pass == p -> clear_copy() }
	od
}

proctype thread(byte p)
{
end:	do
	:: d_step {
		alive[p] && !reads[p] && left[p] > 0 &&
		(pass[p] == READING || pass[p] == LAST && once[p]) ->
		left[p]--;
		once[p] = false;
		reads[p] = true;
		check()
	   }
	:: reads[p] -> reads[p] = false
	od
}

/* kdsm_reader_home_follow() */
proctype reader_home(byte g)
{
end:	do
	:: d_step { alive[g] && pass[g] == READING && gate[g] == SHUT -> open(g, false) }
	:: d_step {
		alive[g] && pass[g] == LAST && gate[g] == SHUT && once[g] ->
		once[g] = false;
		open(g, true);
		end_gate(g)
	   }
	:: d_step {
		alive[g] && pass[g] == LAST && (gate[g] == OPEN || gate[g] != SHUT && !inside(g)) ->
		close(g)
	   }
	:: d_step {
		alive[g] && pass[g] == LAST && !once[g] &&
		(gate[g] == SHUT || LEFT_BEFORE_THE_CHILDREN) ->
		pass[g] = LEAVING
	   }
	od
}

/* The message that kdsm_gate_due() finds has an effect, when it is repeated. */
#define same(g, p)	about(p, g, k_life[at(g, p)], k_request[at(g, p)])
#define will_leave(g, p) \
	(owed_to[p] == (g) && owed[p] == k_request[at(g, p)] && owed_life[p] == k_life[at(g, p)])
#define again(g, p) \
	(!REVOKE_NOT_REPEATED && \
	 (gate[g] == CLOSING -> \
	  (same(g, p) && is_in(p) -> once[p] || pass[p] == READING : \
	   (!same(g, p) || pass[p] != LEAVING) && !will_leave(g, p)) : \
	  gate[g] == SHARE && \
	  (same(g, p) && pass[p] != NONE -> asks(p) : !will_leave(g, p))))
#define due(g, p) \
	(k_state[at(g, p)] == INSIDE && linked(g, p) && (untold[at(g, p)] || again(g, p)))

/* kdsm_home_tell(), kdsm_reader_home_tell(): one parent and one child */
proctype tell(byte g, p)
{
	byte c = at(g, p);

end:	do
	:: d_step {
		(g == 2 || alive[g % 2]) && due(g, p) ->
		untold[c] = false;
		if
		:: gate[g] == CLOSING -> serve_revoke(p, g, k_life[c], k_request[c])
		:: else ->
			mode = mode_of(g, c);
			j = era_of(g);
			serve_admit(p, g, k_life[c], k_request[c], j, mode)
		fi
	   }
	:: d_step {
		losses < LOSSES && !g_kind && p != 0 && (g == 2 || alive[g % 2]) && due(g, p) ->
		losses++;
		untold[c] = false;
		g_kind = (gate[g] == CLOSING -> REVOKE : ADMIT);
		g_gate = g;
		g_pass = p;
		g_life = k_life[c];
		g_request = k_request[c];
		g_era = era_of(g);
		g_once = (mode_of(g, c) == ONCE);
		if
		:: COUNTED_WHEN_ANSWERED && g_kind == ADMIT ->
			leave(g, c, k_life[c], k_request[c]);
			if
			:: g == 2 -> shut()
			:: else
			fi
		:: else
		fi
	   }
	:: d_step {
		(g_kind == ADMIT || g_kind == REVOKE) && g_gate == g && g_pass == p &&
		linked(g, p) ->
		if
		:: g_kind == REVOKE -> serve_revoke(p, g, g_life, g_request)
		:: else ->
			mode = (g_once -> ONCE : IN);
			serve_admit(p, g, g_life, g_request, g_era, mode)
		fi;
		clear_copy()
	   }
	:: d_step {
		(g_kind == ADMIT || g_kind == REVOKE) && g_gate == g && g_pass == p ->
		clear_copy()
	   }
	od
}

/* Writers, and DISMISS */
proctype writer()
{
end:	do
	:: d_step { writes > 0 && writers == 0 -> writes--; writers++; came() }
	:: d_step { home == WRITING -> next() }
#if DEATHS > 0
	:: d_step {
		orphans && undismissed[2] && linked(2, 2) &&
		!(dismissal[2] == number && dismissed[2] != number) ->
		serve_dismiss(2, now, number)
	   }
	:: d_step {
		orphans && undismissed[3] && linked(2, 3) &&
		!(dismissal[3] == number && dismissed[3] != number) ->
		serve_dismiss(3, now, number)
	   }
#endif
	od
}

/* ---- deaths ---- */

proctype death_of_reader_home()
{
end:	do
	:: atomic {
		alive[1] && !away[1] && deaths < DEATHS ->
		deaths++;
		if
		:: alive[1] = false; clear_answer(1)
		:: away[1] = true
		fi
	   };
		d_step {
			gone[1] = true;
			if
			:: g_kind && (g_gate == 2 && g_pass == 1) -> clear_copy()
			:: else
			fi;
			bury_reader_home()
		}
	/* kdsm_reader_home_out() */
	:: d_step {
		away[1] ->
		reset(1);
		gate[1] = SHUT;
		remove(1, 2);
		remove(1, 3);
		away[1] = false;
		gone[1] = false;
		struck[2] = false;
		struck[3] = false
	   }
	od
}

proctype death_of_reader()
{
end:	do
	:: atomic {
		alive[2] && !away[2] && deaths < DEATHS ->
		deaths++;
		if
		:: alive[2] = false; reads[2] = false; clear_answer(2)
		:: true
		fi
	   };
		/* kdsm_reader_home_strike(), kdsm_home_strike() */
		d_step {
			gone[2] = true;
			away[2] = alive[2];
			if
			:: g_kind && g_pass == 2 -> clear_copy()
			:: else
			fi;
			strike(0, 0);
			strike(1, 2);
			if
			:: orphans && undismissed[2] -> answered(2)
			:: else
			fi
		}
	/* kdsm_pass_out() */
	:: d_step {
		away[2] ->
		reads[2] = false;
		reset(2);
		away[2] = false;
		gone[2] = false
	   }
	od
}

#define served(r)	(!alive[r] || left[r] == 0)

proctype judge()
{
	timeout ->
	assert(served(2) && served(3) && writes == 0 && writers == 0 && home != WRITING)
}

init {
	d_step {
		i = 0;
		do
		:: i < 4 -> life[i] = 1; era[i] = 1; i++
		:: else -> break
		od;
		left[2] = READS;
		left[3] = READS_TOO;
		i = 0
	};
	atomic {
		run child(0);
		run child(1);
		run child(2);
		run child(3);
		run thread(2);
		run thread(3);
		run reader_home(0);
		run reader_home(1);
		run tell(2, 0);
		run tell(2, 1);
		run tell(0, 2);
		run tell(0, 3);
		run tell(1, 2);
		run tell(1, 3);
		run writer();
#if DEATHS > 0
		run death_of_reader_home();
		run death_of_reader();
#endif
		run judge()
	}
}
