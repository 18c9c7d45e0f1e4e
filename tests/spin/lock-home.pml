/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A lock whose home has the queue, when messages are lost or late and nodes die: kmod/lock/turn.c,
 * network.c, home.c, errand.c, survey.c, without readers. 3 nodes, of which node 0 is the home.
 * Documentation/design/locks.md explains words, states and messages. Names of functions
 * say which code an inline models.
 *
 * One thread a node locks, and unlocks with or without the wish to keep the lock. The order of
 * the queue is that of arrival; lists have up to LIST nodes. Numbers of processes, thresholds and
 * quotas, signatures, and threads that die with the lock are left out.
 *
 * A node, or the home, has one operation or message in flight. The receiver serves it in one
 * step, and the sender gets the answer in a later one; the home gets the answer to SURVEY at once.
 * LOSSES times a message or swap is lost for its sender, and a copy of it arrives at any later
 * time, or never. So a lost answer is a copy that arrives at once. An answer that changes
 * nothing (-EAGAIN, or WAIT for a node that waits) is no step, so that spin finds a node
 * that repeats its message without end.
 *
 * DEATHS times a node from 1 to MORTAL dies, or is given up and continues. The home strikes it off at any
 * later time, when the fabric has dropped what is in flight between them. The node may come up
 * again, or learn that it was given up, with a new life. Until then the node sends and takes HAND,
 * because other nodes may still reach it.
 *
 * Asserted: one node has the lock, and nodes that were given up do not count (one); a node that
 * uses the lock after a user that died learns of the death (told), and only if a node died
 * (nobody); when nothing can happen any more, every living node has used the lock LEFT
 * times (served). With -DNP -l: no run is endless.
 *
 * FAULT=n builds one mistake into the model. tests/spin/check must find each of them.
 */
#ifndef FAULT
#define FAULT	0
#endif
#define LATE_SWAP_WITHOUT_SERIAL	(FAULT == 1)
#define LOST_HAND_TAKEN_FOR_DONE	(FAULT == 2)
#define TURN_TAKEN_TWICE		(FAULT == 3)
#define KEPT_WITHOUT_A_NEW_TURN		(FAULT == 4)
#define KEEP_NOT_REMEMBERED		(FAULT == 5)
#define HANDED_NOT_ASKED		(FAULT == 6)
#define HAND_OF_OLD_EPOCH_TAKEN		(FAULT == 7)
#define HAND_OF_OLD_LIFE_TAKEN		(FAULT == 8)
#define LIST_KEPT_AFTER_SURVEY		(FAULT == 9)
#define DEAD_NOT_PASSED_ON		(FAULT == 10)
#define DEAD_RECEIVER_FORGOTTEN		(FAULT == 11)
#define NOT_QUEUED_AGAIN		(FAULT == 12)
#define NAME_BELIEVED			(FAULT == 13)

#ifndef LEFT
#define LEFT		2	/* times that nodes 1 and 2 use the lock */
#endif
#ifndef LEFT_HOME
#define LEFT_HOME	1
#endif
#ifndef LOSSES
#define LOSSES		1
#endif
#ifndef DEATHS
#define DEATHS		0
#endif
#ifndef MORTAL
#define MORTAL		1	/* nodes 1 to MORTAL may die */
#endif
#ifndef LIST
#define LIST		2
#endif

#define N		3
#define HOME		0
#define NOBODY		7

/* ---- words, lists ---- */

#define FREE		0
#define QUEUED		1
#define NAMED		2	/* QUEUED; the home found a node's name before */
#define held(n, l, s)	(128 + (n) * 32 + (l) * 8 + (LATE_SWAP_WITHOUT_SERIAL -> 0 : (s)))
#define node_of(w)	(((w) >> 5) & 3)
#define life_of(w)	(((w) >> 3) & 3)

/* Of a list: node and life. 0: the list is shorter. */
#define item(n, l)	((n) + 4 * (l))
#define item_node(i)	((i) & 3)
#define item_life(i)	((i) >> 2)

/* ---- a node: struct kdsm_turn ---- */

#define NONE		0
#define TAKING		1
#define ASKING		2
#define WAITING		3
#define SOLE		4
#define KEPT		5
#define HELD		6
#define FREEING		7
#define HANDING		8
#define LEAVING		9

byte state[N], life[N], serial[N], turn[N], epoch[N];
bool contended[N], dead[N], keep[N], named[N];
byte list_first[N], list_0[N], list_1[N];
bool doubt[N];				/* a HAND was not answered */
/* Report to a survey */
byte r_epoch[N], r_life[N], r_serial[N], r_turn[N], r_state[N], r_to[N], r_gave[N], gave[N];
bool r_dead[N];

/* The thread: how often it still locks; has not used the lock that it asked for; uses the lock */
byte left[N];
bool fresh[N], used[N];

/* The answer to the node's message, which has not arrived yet; with fields of the message */
#define TOOK		1	/* the swap found what it expected */
#define FAILED		2	/* the swap found another value */
#define WAIT		3
#define GONE		4
#define GONE_FREE	5	/* GONE, and nobody waits */
#define KEEP		6
#define GIVEN		7	/* LIST */
#define DONE		8	/* HAND */
byte a_kind[N], a_state[N], a_life[N], a_serial[N], a_epoch[N], a_turn[N];
byte a_0[N], a_1[N], a_now[N];		/* the list, and the home's epoch */

/* ---- the home: struct kdsm_lock_home ---- */

#define OPEN		0
#define CLOSING		1
#define OWN		2
#define OPENING		3
#define GRANTING	4
#define TAKEN		5
#define IDLE		6	/* KDSM_HOME_KEPT */
#define SURVEY		7

#define OUT		0
#define IN_ORDER	1	/* KDSM_ENTRY_QUEUED */
#define LISTED		2

byte word;
byte home, now = 1, first = 1, last, listed, sole, kept, push, found;
bool flag;				/* DEAD */
byte holder[4];				/* by turn, modulo; 0 if the turn is over */
byte e_state[N], e_life[N], e_serial[N], e_turn[N];
bool known[N];
byte order[N], waiting;			/* nodes in the queue, and their number */
bool unheard[N];
/* struct kdsm_finding */
#define NOWHERE		0
#define AT_HOME		1
#define HERE		2
byte f_turn, f_node, f_state, f_where;
bool f_dead;
/* The answer to the home's HAND or EXTEND; with fields of the message */
#define GRANTED		1
#define EXTENDED	2
#define DENIED		3
byte b_kind, b_epoch, b_turn, b_sole, b_life;

/* ---- the world ---- */

bool alive[N], away[N];		/* away: given up by the home, and does not know */
bool gone[N];			/* the home gave the node up, and it has not come back */
bool dirty;			/* a node died while it used the lock */
byte deaths, losses;

/* A message that was lost for its sender: the copy that may arrive */
#define SWAP		1
#define ENQUEUE		2
#define HAND		3
#define LEAVE		4
#define EXTEND		5
#define ASK		6	/* SURVEY */
#define BY_HOME		3	/* sender */
byte g_kind, g_from, g_to, g_life, g_serial, g_turn, g_epoch, g_0, g_1;
bool g_dead, g_keep, g_handed;

/* The message that is being served, and the answer; within one step */
#define AGAIN		9
#define STALE		10
hidden byte m_kind, m_to, m_life, m_serial, m_turn, m_epoch, m_0, m_1;
hidden byte m_dead, m_keep, m_handed;
hidden byte answer, t, i, j, n, x;

#define is_here(n)	(state[n] == SOLE || state[n] == KEPT || state[n] == HELD)
#define counts(n)	(alive[n] && !away[n] && is_here(n))
/* Messages and operations pass between the node and the home. */
#define linked(n)	(alive[n] && !away[n])

inline check()
{
	assert(counts(0) + counts(1) + counts(2) <= 1)		/* one */
}

/* ---- home.c: turns ---- */

#define holder_of(t)	holder[(t) & 3]

/* kdsm_home_put() */
inline put(node, number)
{
	last = number;
	holder_of(last) = node;
	e_state[node] = LISTED;
	e_turn[node] = last
}

/* kdsm_order_add(), kdsm_order_remove() */
inline add(node)
{
	assert(waiting < N);
	order[waiting] = node;
	waiting++
}

inline remove(node)
{
	i = 0;
	do
	:: i < waiting && order[i] != node -> i++
	:: else -> break
	od;
	assert(i < waiting);
	waiting--;
	do
	:: i < waiting -> order[i] = order[i + 1]; i++
	:: else -> order[i] = 0; break
	od
}

/* kdsm_home_over() */
inline over(number)
{
	t = number;
	if
	:: home == GRANTING && first <= t -> home = TAKEN; flag = false
	:: else
	fi;
	sole = (first <= t -> 0 : sole);
	push = (push <= t -> 0 : push);
	do
	:: first <= t ->
		i = holder_of(first);
		if
		:: e_state[i] == LISTED && e_turn[i] == first -> e_state[i] = OUT; e_turn[i] = 0
		:: else
		fi;
		holder_of(first) = 0;
		first++
	:: else -> break
	od
}

/* kdsm_home_list() */
inline make_list()
{
	listed = 0;
	do
	:: waiting > 0 && listed < LIST && last + 1 - first < 4 ->
		n = order[0];
		remove(n);
		put(n, last + 1);
		listed++
	:: else -> break
	od
}

/* kdsm_home_after() */
#define after_0(t)	((t) + 1 <= last -> \
			 item(holder_of((t) + 1), e_life[holder_of((t) + 1)]) : 0)
#define after_1(t)	((t) + 2 <= last -> \
			 item(holder_of((t) + 2), e_life[holder_of((t) + 2)]) : 0)

/* kdsm_home_extend(): lists of LIST nodes are extended early only with EARLY. */
inline extend()
{
	if
	:: waiting > 0 && (home == IDLE || (home == GRANTING || home == TAKEN) && !push && !sole &&
#ifdef EARLY
			   last == first) ->
#else
			   false) ->
#endif
		home = (home == IDLE -> TAKEN : home);
		x = last;
		make_list();
		push = x
	:: else
	fi
}

/* kdsm_home_next() */
inline choose()
{
	sole = 0;
	kept = 0;
	push = 0;
	home = OWN;
	if
	:: waiting > 0 ->
		first = last + 1;
		make_list();
		home = GRANTING
	:: waiting == 0 && !flag -> home = OPENING; listed = 0
	:: else
	fi
}

/* kdsm_home_own() */
inline own(is_dead)
{
	over(last);
	flag = is_dead;
	choose()
}

/* kdsm_home_came() */
inline came()
{
	if
	:: home == OPEN -> home = CLOSING
	:: home == OWN -> choose()
	:: else -> extend()
	fi
}

/* kdsm_home_recall() */
inline list_waits_again()
{
	j = first + 1;
	do
	:: j <= last ->
		n = holder_of(j);
		holder_of(j) = 0;
		e_state[n] = IN_ORDER;
		e_turn[n] = 0;
		add(n);
		j++
	:: else -> break
	od;
	last = first
}

/* ---- survey.c: deaths ---- */

/* kdsm_home_survey(), kdsm_home_known() */
inline survey()
{
	if
	:: home != SURVEY ->
		f_turn = (home == GRANTING -> first - 1 : first);
		f_where = (home == GRANTING -> AT_HOME : NOWHERE);
		f_node = holder_of(first);
		f_state = 0;
		f_dead = flag
	:: home == SURVEY && f_where == HERE -> f_where = NOWHERE
	:: else
	fi;
	home = SURVEY;
	now++;
	i = 0;
	do
	:: i < N ->
		unheard[i] = unheard[i] || known[i] || (sole && i == holder_of(first));
		i++
	:: else -> break
	od
}

/* kdsm_home_bury(): the life is below the new one. */
inline bury(node)
{
	t = known[node] || (sole && holder_of(first) == node);
	known[node] = false;
	e_serial[node] = 0;
	unheard[node] = false;
	if
	:: e_state[node] == IN_ORDER -> remove(node); e_state[node] = OUT
	:: else
	fi;
	sole = (sole && holder_of(first) == node -> 0 : sole);
	if
	:: (home == SURVEY -> t : e_state[node] == LISTED) -> survey()
	:: else
	fi
}

/* kdsm_home_meet() */
inline meet(node, born)
{
	e_life[node] = (e_life[node] < born -> born : e_life[node]);
	known[node] = true
}

/* ---- home.c: ENQUEUE, LEAVE ---- */

/* kdsm_home_is_sole() */
#define is_sole(node, born, request) \
	(sole && (home == TAKEN || home == IDLE) && sole == held(node, born, request))

/* kdsm_home_serve_enqueue() returns -EAGAIN, but for a new life. */
#define enqueue_waits(node, born, request) \
	(home == SURVEY || sole && !is_sole(node, born, request) && holder_of(first) == node)

/* kdsm_home_enqueue(), kdsm_home_returned(), kdsm_home_queue() */
inline serve_enqueue(node)
{
	answer = WAIT;
	if
	:: enqueue_waits(node, m_life, m_serial) -> answer = AGAIN
	:: !enqueue_waits(node, m_life, m_serial) && is_sole(node, m_life, m_serial) ->
		meet(node, m_life);
		list_waits_again();
		e_state[node] = IN_ORDER;
		e_turn[node] = 0;
		holder_of(first) = 0;
		e_serial[node] = m_serial;
		add(node);
		first = last + 1;
		flag = false;
		choose()
	:: else ->
		if
		:: m_life < e_life[node] || m_life == e_life[node] && !known[node]
		:: m_life > e_life[node] && e_state[node] != OUT -> bury(node); answer = AGAIN
		:: else ->
			e_serial[node] = (m_life > e_life[node] -> 0 : e_serial[node]);
			meet(node, m_life);
			if
			:: m_serial > e_serial[node] ->
				if
				:: e_state[node] == LISTED -> over(e_turn[node])
				:: else
				fi;
				if
				:: e_state[node] != IN_ORDER ->
					e_serial[node] = m_serial;
					e_state[node] = IN_ORDER;
					add(node);
					came()
				:: else
				fi
			:: else
			fi
		fi
	fi
}

/* kdsm_home_turn_of() */
#define turn_of(node, number, born, request, at) \
	(home != GRANTING && home != TAKEN && home != IDLE -> 0 : \
	 ((number) == 0 -> (is_sole(node, born, request) -> first : 0) : \
	  ((number) < first || (number) > last || holder_of(number) != (node) || (at) != now -> 0 : \
	   (number))))
/* kdsm_home_key() */
#define key(node, number, born, request)	((number) -> (number) : held(node, born, request))

/* kdsm_home_serve_leave(), kdsm_home_leave(), kdsm_home_keep() */
inline serve_leave(node)
{
	j = turn_of(node, m_turn, m_life, m_serial, m_epoch);
	if
	:: home == SURVEY || home == CLOSING || j && m_handed -> answer = AGAIN
	:: else ->
		answer = GONE;
		if
		:: kept && kept == key(node, m_turn, m_life, m_serial) &&
		   !KEEP_NOT_REMEMBERED ->
			answer = KEEP
		:: !(kept && kept == key(node, m_turn, m_life, m_serial) && !KEEP_NOT_REMEMBERED) &&
		   j ->
			meet(node, m_life);
			if
			:: j < last ->
				x = j;
				over(j - 1);
				j = x;
				home = TAKEN;
				answer = GIVEN
			:: j == last && waiting == 0 && m_keep ->
				answer = KEEP;
				x = key(node, m_turn, m_life, m_serial);
				if
				:: KEPT_WITHOUT_A_NEW_TURN && m_turn
				:: else ->
					over(last);
					put(node, last + 1);
					kept = x
				fi;
				sole = 0;
				push = 0;
				home = IDLE
			:: else -> own(m_dead)
			fi
		:: else
		fi
	fi
}

/* ---- turn.c: HAND, EXTEND, SURVEY at a node ---- */

/* kdsm_turn_accepts() */
#define hand_stale(to, born, at) \
	((born) != life[to] && !HAND_OF_OLD_LIFE_TAKEN || \
	 (at) < epoch[to] && !HAND_OF_OLD_EPOCH_TAKEN)
#define hand_had(to, number, at) \
	((at) == epoch[to] && (number) <= turn[to] && !TURN_TAKEN_TWICE)
#define hand_fits(to)	(state[to] == NONE || state[to] == ASKING || state[to] == WAITING)
/* A new life that hears of its former one makes itself known. */
#define hand_wakes(to, born)	((born) != life[to] && epoch[to] == 0 && state[to] == NONE)
/* The message has an effect, or an answer other than -EAGAIN and -ESTALE. */
#define hand_counts(to, number, born, at) \
	(hand_stale(to, born, at) -> hand_wakes(to, born) : hand_had(to, number, at) || hand_fits(to))

/* kdsm_turn_serve_hand(), kdsm_turn_accept() */
inline serve_hand(to)
{
	if
	:: hand_stale(to, m_life, m_epoch) -> answer = STALE
	:: !hand_stale(to, m_life, m_epoch) && hand_had(to, m_turn, m_epoch) -> answer = DONE
	:: !hand_stale(to, m_life, m_epoch) && !hand_had(to, m_turn, m_epoch) && !hand_fits(to) ->
		answer = AGAIN
	:: else ->
		answer = DONE;
		epoch[to] = m_epoch;
		turn[to] = m_turn;
		dead[to] = m_dead;
		named[to] = false;
		if
		:: m_0 || list_first[to] != m_turn + 1 ->
			list_first[to] = m_turn + 1;
			list_0[to] = m_0;
			list_1[to] = m_1
		:: else
		fi;
		state[to] = HELD;
		check()
	fi;
	if
	:: hand_wakes(to, m_life) -> serial[to]++; state[to] = ASKING
	:: else
	fi
}

/* kdsm_turn_take_list() */
inline take_list(to, number, item_0, item_1)
{
	turn[to] = number;
	list_first[to] = number + 1;
	list_0[to] = item_0;
	list_1[to] = item_1;
	named[to] = false;
	state[to] = HELD
}

#define is_moving(to)	(state[to] == TAKING || state[to] == ASKING || state[to] == FREEING || \
			 state[to] == LEAVING)

/* kdsm_turn_extend_sole() returns an error that makes the home repeat EXTEND. */
#define extend_waits(to, number, name, at) \
	((name) && ((at) < epoch[to] || turn[to] < (number) && \
	 (name) == held(to, life[to], serial[to]) && is_moving(to)))

/* kdsm_turn_serve_extend(); the name is in m_serial. */
inline serve_extend(to)
{
	answer = DONE;
	if
	:: extend_waits(to, m_turn, m_serial, m_epoch) -> answer = AGAIN
	:: m_serial && !extend_waits(to, m_turn, m_serial, m_epoch) ->
		if
		:: turn[to] >= m_turn
		:: turn[to] < m_turn && m_serial == held(to, life[to], serial[to]) &&
		   state[to] == SOLE ->
			epoch[to] = m_epoch;
			take_list(to, m_turn, m_0, m_1)
		:: else -> answer = GONE
		fi
	:: !m_serial ->
		if
		:: m_epoch != epoch[to] -> answer = GONE
		:: m_epoch == epoch[to] && (state[to] == ASKING || state[to] == WAITING) &&
		   turn[to] < m_turn ->
			list_first[to] = m_turn + 1;
			list_0[to] = m_0;
			list_1[to] = m_1
		:: m_epoch == epoch[to] && state[to] == HELD && turn[to] == m_turn ->
			if
			:: !list_0[to] ->
				list_first[to] = m_turn + 1;
				list_0[to] = m_0;
				list_1[to] = m_1
			:: else
			fi
		:: m_epoch == epoch[to] && state[to] == KEPT && turn[to] == m_turn ->
			take_list(to, m_turn, m_0, m_1)
		:: m_epoch == epoch[to] && state[to] == LEAVING && turn[to] <= m_turn ->
			list_first[to] = m_turn + 1;
			list_0[to] = m_0;
			list_1[to] = m_1
		:: else -> answer = GONE
		fi
	fi
}

/* kdsm_turn_serve_survey(), kdsm_turn_report() */
inline serve_survey(to)
{
	answer = DONE;
	x = (state[to] == HANDING || state[to] == LEAVING);
	if
	:: m_life && m_life != life[to] -> answer = STALE
	:: !(m_life && m_life != life[to]) && m_epoch > epoch[to] ->
		epoch[to] = m_epoch;
		r_epoch[to] = m_epoch;
		r_serial[to] = serial[to];
		r_state[to] = state[to];
		if
		:: !x && r_gave[to] && gave[to] == turn[to]
		:: else ->
			r_life[to] = life[to];
			r_turn[to] = (named[to] -> (x -> held(to, life[to], serial[to]) : 0) : turn[to]);
			r_dead[to] = dead[to];
			r_gave[to] = (x -> state[to] : 0);
			r_to[to] = (state[to] == HANDING -> item_node(list_0[to]) : NOBODY);
			if
			:: x ->
				gave[to] = turn[to];
				contended[to] = true;
				named[to] = false;
				state[to] = (LIST_KEPT_AFTER_SURVEY && state[to] == HANDING ->
					     HANDING : NONE);
				doubt[to] = false
			:: else
			fi;
			list_0[to] = (state[to] == HANDING -> list_0[to] : 0);
			list_1[to] = (state[to] == HANDING -> list_1[to] : 0)
		fi
	:: !(m_life && m_life != life[to]) && m_epoch <= epoch[to] && m_epoch != r_epoch[to] ->
		answer = STALE
	:: else
	fi
}

/* ---- network.c: what a node sends ---- */

#define next_of(me)	item_node(list_0[me])
#define leave_waits()	(home == SURVEY || home == CLOSING)
/* A HAND was not answered, or refused: the node may ask the home. */
#define in_doubt(me)	(doubt[me] || !alive[next_of(me)] || \
			 hand_stale(next_of(me), item_life(list_0[me]), epoch[me]))

/* The message that the state requires has an effect. */
#define enqueues(me)	(linked(me) && !enqueue_waits(me, life[me], serial[me]) && \
			 (state[me] == ASKING || state[me] == WAITING && \
			  (is_sole(me, life[me], serial[me]) || life[me] != e_life[me] || \
			   !known[me] || serial[me] > e_serial[me])))
#define swaps(me)	(linked(me) && (state[me] == TAKING || state[me] == FREEING))
#define leaves(me)	(linked(me) && state[me] == LEAVING && !leave_waits())
#define hands(me)	(state[me] == HANDING && alive[next_of(me)] && \
			 hand_counts(next_of(me), list_first[me], item_life(list_0[me]), epoch[me]))
#define asks_home(me)	(state[me] == HANDING && linked(me) && !leave_waits() && \
			 in_doubt(me) && !HANDED_NOT_ASKED && kept != turn[me] && \
			 turn_of(me, turn[me], life[me], serial[me], epoch[me]) == 0)
#define sends(me)	(alive[me] && a_kind[me] == 0 && \
			 (enqueues(me) || swaps(me) || leaves(me) || hands(me)))

/* kdsm_turn_prepare() */
inline prepare(me)
{
	m_life = life[me];
	m_serial = serial[me];
	m_epoch = epoch[me];
	m_dead = dead[me];
	m_turn = 0;
	m_0 = 0;
	m_1 = 0;
	m_keep = false;
	m_handed = false;
	m_to = HOME;
	if
	:: state[me] == TAKING || state[me] == FREEING ->
		m_kind = SWAP;
		m_0 = (state[me] == FREEING)
	:: state[me] == ASKING || state[me] == WAITING -> m_kind = ENQUEUE
	:: state[me] == LEAVING ->
		m_kind = LEAVE;
		m_turn = (named[me] -> 0 : turn[me]);
		m_keep = keep[me]
	:: state[me] == HANDING ->
		m_kind = HAND;
		m_to = next_of(me);
		m_life = item_life(list_0[me]);
		m_turn = list_first[me];
		m_0 = list_1[me]
	fi
}

/* kdsm_turn_hand() after KDSM_TURN_MISSES */
inline prepare_handed(me)
{
	m_kind = LEAVE;
	m_to = HOME;
	m_life = life[me];
	m_serial = serial[me];
	m_epoch = epoch[me];
	m_dead = dead[me];
	m_turn = turn[me];
	m_0 = 0;
	m_1 = 0;
	m_keep = false;
	m_handed = true
}

inline clear_copy()
{
	g_kind = 0; g_from = 0; g_to = 0; g_life = 0; g_serial = 0; g_turn = 0; g_epoch = 0;
	g_0 = 0; g_1 = 0; g_dead = false; g_keep = false; g_handed = false
}

inline lose(me)
{
	losses++;
	g_kind = m_kind; g_from = me; g_to = m_to; g_life = m_life; g_serial = m_serial;
	g_turn = m_turn; g_epoch = m_epoch; g_0 = m_0; g_1 = m_1; g_dead = m_dead;
	g_keep = m_keep; g_handed = m_handed
}

inline take_copy()
{
	m_kind = g_kind; m_to = g_to; m_life = g_life; m_serial = g_serial; m_turn = g_turn;
	m_epoch = g_epoch; m_0 = g_0; m_1 = g_1; m_dead = g_dead; m_keep = g_keep;
	m_handed = g_handed;
	clear_copy()
}

/* The message is served at its receiver. */
inline deliver(me)
{
	if
	:: m_kind == SWAP ->
		x = held(me, m_life, m_serial);
		if
		:: word == (m_0 -> x : FREE) -> word = (m_0 -> FREE : x); answer = TOOK
		:: else -> answer = FAILED
		fi
	:: m_kind == ENQUEUE -> serve_enqueue(me)
	:: m_kind == LEAVE -> serve_leave(me)
	:: m_kind == HAND -> serve_hand(m_to)
	fi
}

inline clear_answer(me)
{
	a_kind[me] = 0; a_state[me] = 0; a_life[me] = 0; a_serial[me] = 0; a_epoch[me] = 0;
	a_turn[me] = 0; a_0[me] = 0; a_1[me] = 0; a_now[me] = 0
}

/* The answer is on its way. */
inline reply(me)
{
	if
	:: answer == AGAIN || answer == STALE
	:: else ->
		a_kind[me] = answer;
		a_state[me] = (m_handed -> HANDING : state[me]);
		a_life[me] = life[me];
		a_serial[me] = m_serial;
		a_epoch[me] = m_epoch;
		if
		:: answer == WAIT ->
			a_life[me] = e_life[me] + !known[me];
			a_epoch[me] = now
		:: answer == GONE && home == OPENING -> a_kind[me] = GONE_FREE
		:: answer == KEEP -> a_turn[me] = first
		:: answer == GIVEN ->
			a_turn[me] = j;
			a_0[me] = after_0(j);
			a_1[me] = after_1(j);
			a_now[me] = now
		:: answer == DONE -> a_turn[me] = m_turn
		:: else
		fi
	fi
}

/* kdsm_turn_take(), kdsm_turn_free(), kdsm_turn_ask(), kdsm_turn_hand(), kdsm_turn_left() */
inline take_answer(me)
{
	answer = a_kind[me];
	if
	:: (answer == TOOK || answer == FAILED) && state[me] == a_state[me] &&
	   life[me] == a_life[me] && serial[me] == a_serial[me] ->
		if
		:: answer == TOOK && state[me] == TAKING ->
			named[me] = true;
			state[me] = SOLE;
			check()
		:: answer == TOOK && state[me] == FREEING -> state[me] = NONE
		:: answer == FAILED && state[me] == TAKING -> state[me] = ASKING
		:: answer == FAILED && state[me] == FREEING ->
			contended[me] = true;
			list_first[me] = 0;
			state[me] = LEAVING
		fi
	:: answer == WAIT && (state[me] == ASKING || state[me] == WAITING) &&
	   life[me] < a_life[me] ->
		life[me] = a_life[me];
		assert(life[me] < 4);
		turn[me] = 0;
		state[me] = ASKING
	:: answer == WAIT && life[me] == a_life[me] ->
		epoch[me] = (epoch[me] < a_epoch[me] -> a_epoch[me] : epoch[me]);
		if
		:: state[me] == ASKING && serial[me] == a_serial[me] -> state[me] = WAITING
		:: else
		fi
	:: answer == DONE && state[me] == HANDING && turn[me] == a_turn[me] - 1 ->
		list_0[me] = 0;
		list_1[me] = 0;
		contended[me] = true;
		doubt[me] = false;
		state[me] = NONE
	:: (answer == GONE || answer == GONE_FREE || answer == KEEP || answer == GIVEN) &&
	   state[me] == a_state[me] && life[me] == a_life[me] && serial[me] == a_serial[me] &&
	   epoch[me] == a_epoch[me] ->
		if
		:: answer == GONE || answer == GONE_FREE ->
			contended[me] = (answer == GONE);
			named[me] = false;
			list_0[me] = 0;
			list_1[me] = 0;
			doubt[me] = false;
			state[me] = NONE
		:: answer == KEEP && state[me] != HANDING ->
			turn[me] = a_turn[me];
			named[me] = false;
			if
			:: list_first[me] != turn[me] + 1 -> state[me] = KEPT; check()
			:: list_first[me] == turn[me] + 1 && list_0[me] -> state[me] = HANDING
			:: else
			fi
		:: answer == GIVEN && state[me] != HANDING ->
			epoch[me] = (epoch[me] < a_now[me] -> a_now[me] : epoch[me]);
			take_list(me, a_turn[me], a_0[me], a_1[me]);
			state[me] = HANDING
		:: else
		fi
	:: else
	fi;
	clear_answer(me)
}

/* kdsm_turn_done() */
inline done(me, keeps)
{
	/* A node that was given up has ended its use before another node noticed. */
	dirty = dirty && !(used[me] && away[me]);
	used[me] = false;
	keep[me] = false;
	if
	:: state[me] == SOLE -> state[me] = (keeps || dead[me] -> SOLE : FREEING)
	:: state[me] == KEPT -> state[me] = (keeps -> KEPT : LEAVING)
	:: state[me] == HELD -> state[me] = (list_0[me] -> HANDING : LEAVING)
	fi;
	if
	:: state[me] == LEAVING -> list_first[me] = 0; keep[me] = keeps
	:: else
	fi
}

proctype member(byte me)
{
end:	do
	/* Threads */
	:: d_step {
		alive[me] && state[me] == NONE && left[me] > 0 ->	/* kdsm_turn_want() */
		serial[me]++;
		assert(serial[me] < 8);
		dead[me] = false;
		fresh[me] = true;
		state[me] = (contended[me] -> ASKING : TAKING)
	   }
	:: d_step {
		alive[me] && is_here(me) && !used[me] && left[me] > 0 ->
		left[me]--;
		fresh[me] = false;
		used[me] = true;
		if
		:: !away[me] ->
			assert(!dirty || dead[me]);		/* told */
			assert(!dead[me] || deaths > 0);	/* nobody */
			dirty = false
		:: else
		fi;
		dead[me] = false
	   }
	:: d_step {
		alive[me] && is_here(me) && !(fresh[me] && left[me] > 0) &&
		(used[me] || state[me] != SOLE || !dead[me]) ->
		done(me, false)
	   }
	:: d_step {
		alive[me] && is_here(me) && !(fresh[me] && left[me] > 0) &&
		(used[me] || state[me] == HELD && !list_0[me]) ->
		done(me, true)
	   }
	/* Messages */
	:: d_step { sends(me) -> prepare(me); deliver(me); reply(me) }
	:: d_step {
		alive[me] && a_kind[me] == 0 && asks_home(me) ->
		prepare_handed(me);
		deliver(me);
		reply(me)
	   }
	:: d_step { alive[me] && a_kind[me] -> take_answer(me) }
	/* The message is lost for the sender. */
	:: d_step {
		losses < LOSSES && !g_kind && alive[me] && a_kind[me] == 0 &&
		(state[me] == HANDING || me != HOME && linked(me) &&
		 (swaps(me) || state[me] == ASKING || state[me] == LEAVING)) ->
		prepare(me);
		lose(me);
		if
		:: state[me] == TAKING -> state[me] = ASKING
		:: state[me] == HANDING && LOST_HAND_TAKEN_FOR_DONE ->
			list_0[me] = 0;
			list_1[me] = 0;
			state[me] = NONE
		:: state[me] == HANDING && !LOST_HAND_TAKEN_FOR_DONE -> doubt[me] = true
		:: else
		fi
	   }
	/* It arrives after all. */
	:: d_step {
		g_kind && g_from == me && (g_to == HOME || alive[g_to]) ->
		take_copy();
		deliver(me)
	   }
	:: d_step { g_kind && g_from == me -> clear_copy() }
	od
}

/* ---- errand.c ---- */

/* kdsm_home_found() */
inline name_found(name)
{
	n = node_of(name);
	if
	:: e_state[n] == IN_ORDER && name == held(n, e_life[n], e_serial[n]) -> own(false)
	:: else ->
		if
		:: e_state[n] == IN_ORDER -> remove(n); e_serial[n] = 0
		:: else
		fi;
		first = last + 1;
		put(n, first);
		sole = name;
		home = TAKEN;
		make_list();
		push = first
	fi
}

/* kdsm_home_write() */
inline write(kind, number)
{
	m_kind = kind;
	m_to = holder_of(number);
	m_turn = number;
	m_epoch = now;
	m_dead = flag;
	m_life = e_life[holder_of(number)];
	m_serial = 0;
	m_keep = false;
	m_handed = false;
	m_0 = after_0(number);
	m_1 = after_1(number)
}

/* kdsm_home_sole_denied() */
inline sole_denied(born)
{
	x = life_of(sole);
	list_waits_again();
	/* With NAME_BELIEVED, another life of the node counts as the one that the word named. */
	if
	:: x == born || NAME_BELIEVED -> own(false)
	:: else -> own(true)
	fi
}

inline clear_result()
{
	b_kind = 0; b_epoch = 0; b_turn = 0; b_sole = 0; b_life = 0
}

/* kdsm_home_find(), kdsm_finding_add(), kdsm_home_requeue(): the answer of a node to SURVEY */
inline heard(node)
{
	unheard[node] = false;
	meet(node, r_life[node]);
	if
	:: r_gave[node] ->
		x = AT_HOME;
		t = r_turn[node];
		if
		:: t >= 128 && t != sole -> t = 0; x = NOWHERE
		:: t >= 128 && t == sole -> t = first
		:: else
		fi
	:: !r_gave[node] && (r_state[node] == HELD || r_state[node] == KEPT) ->
		x = HERE;
		t = r_turn[node]
	:: !r_gave[node] && (r_state[node] == SOLE || r_state[node] == TAKING ||
	   r_state[node] == ASKING || r_state[node] == FREEING) &&
	   sole == held(node, r_life[node], r_serial[node]) ->
		x = HERE;
		t = first
	:: else ->
		x = NOWHERE;
		t = r_turn[node] + 1
	fi;
	if
	:: t > f_turn || t == f_turn && x > f_where ->
		f_turn = t;
		f_where = x;
		f_node = (x == HERE -> node : (x == AT_HOME -> r_to[node] : 0));
		f_state = (x == HERE -> r_state[node] : 0);
		f_dead = (x == AT_HOME && r_dead[node])
	:: else
	fi;
	if
	:: e_state[node] == OUT
	:: else ->
		if
		:: e_state[node] == IN_ORDER -> remove(node)
		:: else
		fi;
		e_state[node] = OUT;
		e_turn[node] = 0;
		if
		:: (r_state[node] == WAITING || r_state[node] == ASKING) && !NOT_QUEUED_AGAIN ->
			e_serial[node] = r_serial[node];
			e_state[node] = IN_ORDER;
			add(node)
		:: else
		fi
	fi
}

/* kdsm_home_conclude() */
inline conclude()
{
	i = 0;
	do
	:: i < N ->
		if
		:: e_state[i] == LISTED -> e_state[i] = OUT; e_turn[i] = 0
		:: else
		fi;
		i++
	:: else -> break
	od;
	holder[0] = 0; holder[1] = 0; holder[2] = 0; holder[3] = 0;
	push = 0;
	if
	:: f_where == AT_HOME && f_node < N && !known[f_node] && !DEAD_RECEIVER_FORGOTTEN ->
		f_where = NOWHERE
	:: else
	fi;
	if
	:: f_where != HERE ->
		last = f_turn + 1;
		first = last + 1;
		own((f_where == NOWHERE -> !DEAD_NOT_PASSED_ON : f_dead))
	:: else ->
		if
		:: e_state[f_node] == IN_ORDER -> remove(f_node)
		:: else
		fi;
		first = f_turn;
		put(f_node, f_turn);
		listed = 0;
		home = (f_state == KEPT -> IDLE : TAKEN);
		sole = (f_state == HELD || f_state == KEPT -> 0 : sole);
		push = (sole -> f_turn : push);
		extend()
	fi;
	f_turn = 0; f_node = 0; f_state = 0; f_where = 0; f_dead = false
}

#define due()		(unheard[0] -> 0 : (unheard[1] -> 1 : (unheard[2] -> 2 : NOBODY)))
#define target()	(home == GRANTING -> holder_of(first) : \
			 (home == TAKEN && push -> holder_of(push) : \
			  (home == SURVEY -> due() : NOBODY)))
#define grants()	(home == GRANTING && linked(holder_of(first)) && \
			 hand_counts(holder_of(first), first, e_life[holder_of(first)], now))
#define pushes()	(home == TAKEN && push && linked(holder_of(push)) && \
			 !extend_waits(holder_of(push), push, sole, now))

proctype errands()
{
end:	do
	/* kdsm_home_take_word(), kdsm_home_close(): the swaps in turn */
	:: d_step {
		home == CLOSING && b_kind == 0 && (word == FREE || word == QUEUED) ->
		word = QUEUED;
		own(false)
	   }
	:: d_step {
		home == CLOSING && b_kind == 0 && word >= 128 && found != word -> found = word
	   }
	:: d_step {
		home == CLOSING && b_kind == 0 && (word == NAMED || word >= 128 && found == word) ->
		word = NAMED;
		x = found;
		found = 0;
		name_found(x)
	   }
	/* The swap has an effect, and its answer is lost. */
	:: d_step {
		losses < LOSSES && home == CLOSING && b_kind == 0 &&
		(word == FREE || word >= 128 && found == word) ->
		losses++;
		word = (word == FREE -> QUEUED : NAMED)
	   }
	/* kdsm_home_free_word() */
	:: d_step {
		losses < LOSSES && home == OPENING && b_kind == 0 &&
		(word == QUEUED || word == NAMED) ->
		losses++;
		word = FREE
	   }
	:: d_step {
		home == OPENING && b_kind == 0 ->
		word = (word == QUEUED || word == NAMED -> FREE : word);
		home = (waiting > 0 -> CLOSING : OPEN)
	   }
	/* kdsm_home_grant() */
	:: d_step {
		b_kind == 0 && grants() ->
		write(HAND, first);
		b_epoch = now;
		b_turn = first;
		serve_hand(m_to);
		if
		:: answer == DONE -> b_kind = GRANTED
		:: else -> clear_result()
		fi
	   }
	/* kdsm_home_push() */
	:: d_step {
		b_kind == 0 && pushes() ->
		write(EXTEND, push);
		m_serial = sole;
		b_epoch = now;
		b_turn = push;
		b_sole = sole;
		b_life = life[m_to];
		serve_extend(m_to);
		b_kind = (answer == GONE -> DENIED : EXTENDED)
	   }
	:: d_step {
		b_kind == GRANTED ->
		if
		:: home == GRANTING && now == b_epoch && first == b_turn ->
			home = TAKEN;
			flag = false
		:: else
		fi;
		clear_result()
	   }
	/* kdsm_home_pushed() */
	:: d_step {
		b_kind == EXTENDED || b_kind == DENIED ->
		if
		:: push != b_turn || sole != b_sole || now != b_epoch
		:: push == b_turn && sole == b_sole && now == b_epoch && sole && b_kind == DENIED ->
			sole_denied(b_life)
		:: else ->
			if
			:: sole -> meet(holder_of(push), b_life)
			:: else
			fi;
			sole = 0;
			push = 0
		fi;
		clear_result()
	   }
	/* kdsm_home_ask() */
	:: d_step {
		home == SURVEY && b_kind == 0 && due() != NOBODY && linked(due()) ->
		n = due();
		m_epoch = now;
		m_life = (known[n] -> e_life[n] : 0);
		serve_survey(n);
		if
		:: answer == DONE -> heard(n)
		:: else -> bury(n)
		fi
	   }
	:: d_step { home == SURVEY && b_kind == 0 && due() == NOBODY -> conclude() }
	/* The message is lost for the home. */
	:: d_step {
		losses < LOSSES && !g_kind && b_kind == 0 && target() != NOBODY &&
		target() != HOME && linked(target()) ->
		if
		:: home == GRANTING -> write(HAND, first)
		:: home == TAKEN -> write(EXTEND, push); m_serial = sole
		:: home == SURVEY ->
			write(ASK, first);
			m_to = due();
			m_life = (known[m_to] -> e_life[m_to] : 0)
		fi;
		lose(BY_HOME);
		if
		:: home == GRANTING && LOST_HAND_TAKEN_FOR_DONE -> home = TAKEN; flag = false
		:: else
		fi
	   }
	/* It arrives after all. */
	:: d_step {
		g_kind && g_from == BY_HOME && linked(g_to) ->
		take_copy();
		if
		:: m_kind == HAND -> serve_hand(m_to)
		:: m_kind == EXTEND -> serve_extend(m_to)
		:: m_kind == ASK -> serve_survey(m_to)
		fi
	   }
	:: d_step { g_kind && g_from == BY_HOME -> clear_copy() }
	/* A message meets a node that was given up: it is struck off once more. */
	:: d_step {
		b_kind == 0 && target() != NOBODY && gone[target() & 3] &&
		(home == SURVEY || e_state[target() & 3] == LISTED) ->
		n = target();
		bury(n)
	   }
	od
}

/* ---- deaths ---- */

/* kdsm_home_strike(), after the fabric has dropped what was in flight */
inline strike(node)
{
	gone[node] = true;
	if
	:: g_kind && (g_from == node && g_to == HOME || g_from == BY_HOME && g_to == node) ->
		clear_copy()
	:: else
	fi;
	bury(node)
}

/* kdsm_turn_out() */
inline forget(node)
{
	life[node]++;
	assert(life[node] < 4);
	epoch[node] = 0;
	turn[node] = 0;
	list_0[node] = 0;
	list_1[node] = 0;
	dead[node] = false;
	doubt[node] = false;
	used[node] = false;
	fresh[node] = false;
	state[node] = NONE
}

proctype death(byte me)
{
end:	do
	:: d_step {
		alive[me] && !away[me] && deaths < DEATHS ->
		deaths++;
		alive[me] = false;
		dirty = dirty || used[me];
		/* Its memory */
		forget(me);
		serial[me] = 0;
		contended[me] = false;
		named[me] = false;
		keep[me] = false;
		list_first[me] = 0;
		gave[me] = 0;
		r_epoch[me] = 0; r_life[me] = 0; r_serial[me] = 0; r_turn[me] = 0;
		r_state[me] = 0; r_to[me] = 0; r_gave[me] = 0; r_dead[me] = false;
		clear_answer(me)
	   }
	:: d_step { !alive[me] && !gone[me] -> strike(me) }
	/* It comes up again. */
	:: d_step { !alive[me] && gone[me] -> alive[me] = true; gone[me] = false }
	:: d_step {
		alive[me] && !away[me] && deaths < DEATHS ->
		deaths++;
		away[me] = true;
		dirty = dirty || used[me];
		strike(me)
	   }
	:: d_step {
		away[me] ->
		away[me] = false;
		gone[me] = false;
		forget(me)
	   }
	/* It is dead for good. */
	:: !alive[me] && gone[me] -> break
	od
}

#define served(n)	(!alive[n] || left[n] == 0 && \
			 (state[n] == NONE || state[n] == SOLE || state[n] == KEPT))

proctype judge()
{
	timeout -> assert(served(0) && served(1) && served(2))	/* served */
}

init {
	d_step {
		alive[0] = true; alive[1] = true; alive[2] = true;
		life[0] = 1; life[1] = 1; life[2] = 1;
		left[0] = LEFT_HOME; left[1] = LEFT; left[2] = LEFT
	};
	atomic {
		run member(0);
		run member(1);
		run member(2);
		run errands();
#if DEATHS > 0
		run death(1);
#if MORTAL > 1
		run death(2);
#endif
#endif
		run judge()
	}
}
