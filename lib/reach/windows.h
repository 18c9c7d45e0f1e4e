/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A search in windows: every node of the cluster owns part of the states, and keeps them in a
 * store of its own. windows.c describes the search.
 */
#ifndef KD_REACH_WINDOWS_H
#define KD_REACH_WINDOWS_H

#include "bdd/parcel.h"
#include "internal.h"

struct kd_windows {
	struct kd_gang *team;		/* the nodes that exchange states */
	struct kd_gang some;		/* a team of some nodes of the cluster */
	uint64_t exchanges;		/* so far; odd and even ones use different parcels */
	uint64_t parcels;		/* filled so far */
	uint64_t threshold;		/* on node 0: a round of so many ns ends its time alone */
	bool count;			/* node 0 asks in this round for the number of states */
	struct kd_window {
		kdsm_bdd states;	/* the window: all states that the node owns */
		kdsm_bdd rest;		/* found states that are not yet sent to the node */
		kdsm_bdd part;		/* while windows are chosen: visited states in this one */
		/* A parcel from the node; one for it that takes several exchanges; or no array */
		struct kd_parcel in, out;
		uint64_t received, sent;	/* nodes of these parcels */
	} *window;			/* by node of the team */
	/* Sets that garbage collection must keep, as it keeps those of the windows */
	kdsm_bdd before;		/* visited states before this round */
	kdsm_bdd fresh;			/* that this node found; after kd_windows_cut(): to keep */
	kdsm_bdd received;		/* from other nodes in this round */
	kdsm_bdd arrived;		/* of the last exchange; or an operand */
};

/* windows_room.c */

/*
 * Check the result of an operation, and make room if the table was full. Return 0 if the result is
 * valid, 1 if the caller must repeat the operation, or a negative errno.
 */
int kd_windows_check(struct kd_search *s, kdsm_bdd result);
/* *result = a and b; a and b are terminals, private, or edges that the search keeps */
int kd_windows_and(struct kd_search *s, kdsm_bdd a, kdsm_bdd b, kdsm_bdd *result);
int kd_windows_or(struct kd_search *s, kdsm_bdd a, kdsm_bdd b, kdsm_bdd *result);

/*
 * Run a step for each of count > 0 numbers, from first on, as tasks of this node. *result is the
 * union of the sets that the steps return; a step may return a failure. The return value is that
 * of kd_windows_check().
 */
typedef kdsm_bdd kd_windows_step(struct kd_search *s, struct kdsm_worker *kdsm_worker,
				 struct kdsm_task *kdsm_head, unsigned int number, void *data);
int kd_windows_steps(struct kd_search *s, kd_windows_step *step, void *data, unsigned int first,
		     unsigned int count, kdsm_bdd *result);

/* windows_exchange.c */

/* Divide the states in fresh: those of other nodes' windows become their rests. */
int kd_windows_cut(struct kd_search *s);
/*
 * Pack window->rest for each node, or the next part of a parcel that has begun. If broadcast is
 * true, node 0 packs only its own window's rest, into a parcel that all other nodes get, and the
 * others pack nothing.
 */
int kd_windows_pack(struct kd_search *s, bool broadcast);
/*
 * Get what other nodes have packed for this one, and add parcels that are complete to *received.
 * All nodes have closed the step in which they packed.
 */
int kd_windows_receive(struct kd_search *s, bool broadcast, kdsm_bdd *received);
/* Whether a parcel needs another exchange */
bool kd_windows_more(const struct kd_search *s);
/* Forget parcels that are under way. */
void kd_windows_forget(struct kd_search *s);

/*
 * windows_choose.c. A literal is 2 * bit + value: all states in which this bit of the state has
 * this value. kd_windows_choose() finds a good one: of these states, those with the literal and
 * those without it have BDDs whose numbers of nodes are like keep and give. No literal divides a
 * single state. kd_windows_cube() makes the BDD of a literal; -EIO if there is no such bit.
 */
#define KD_NO_LITERAL	UINT64_MAX
int kd_windows_choose(struct kd_search *s, kdsm_bdd states, unsigned int keep, unsigned int give,
		      uint64_t *literal);
int kd_windows_cube(struct kd_search *s, uint64_t literal, kdsm_bdd *cube);

/* windows_split.c: choose the windows by the visited states, which all nodes have. */
int kd_windows_split(struct kd_search *s);

#endif /* KD_REACH_WINDOWS_H */
