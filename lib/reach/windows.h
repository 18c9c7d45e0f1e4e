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
	struct kdsm *own;		/* this node alone, as a cluster of one */
	struct kdsm_region *region;	/* of own; the store is in it */
	struct kd_gang alone;		/* of own */
	uint64_t exchanges;		/* so far; odd and even ones use different parcels */
	uint64_t parcels;		/* filled so far */
	uint64_t threshold;		/* on node 0: a round of so many ns ends its time alone */
	bool count;			/* node 0 asks in this round for the number of states */
	struct kd_window {
		kdsm_bdd states;	/* the window: all states that the node owns */
		kdsm_bdd rest;		/* found states that are not yet sent to the node */
		kdsm_bdd packed;	/* the part of the rest that is in the node's parcel */
		kdsm_bdd part;		/* while windows are chosen: visited states in this one */
		struct kd_parcel in;	/* from the node */
	} *window;			/* by node */
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
 * Pack for each node as much of window->rest as the node's parcel has room for, and remove it from
 * the rest. If broadcast is true, node 0 packs only its own window's rest, into a parcel that all
 * other nodes get, and the others pack nothing.
 */
int kd_windows_pack(struct kd_search *s, bool broadcast);
/*
 * Add to *received what other nodes have packed for this one. All nodes have closed the step in
 * which they packed.
 */
int kd_windows_receive(struct kd_search *s, bool broadcast, kdsm_bdd *received);
/* Whether some rest is left */
bool kd_windows_more(const struct kd_search *s);

/* windows_split.c: choose the windows by the visited states, which all nodes have. */
int kd_windows_split(struct kd_search *s);

#endif /* KD_REACH_WINDOWS_H */
