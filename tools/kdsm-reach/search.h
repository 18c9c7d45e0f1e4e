/* SPDX-License-Identifier: GPL-2.0 */
/* A search: that of this process, or of all nodes of a virtual run in this process */
#ifndef SEARCH_H
#define SEARCH_H

#include <stdbool.h>
#include <kdsm/reach.h>

#include "common/virtual.h"

/* Exit statuses; tools/common/cli.h has that of wrong usage */
enum { HOLDS, VIOLATED, REFUSED, FAILED };

struct search {
	const struct kdsm_reach_options *options;
	const struct virtual_options *virtual;	/* NULL: no virtual run */
	struct kdsm_reach_result result;	/* of this process' node, or of node 0 */
	/*
	 * 0, or a negative errno, why, and the exit status unless the search had begun. In a
	 * virtual run they are those of the node that failed first: other nodes fail after it,
	 * because of it.
	 */
	int error;
	struct kdsm_reach_message message;
	int status;
	int caught;				/* the signal that stopped the search, or 0 */
	struct kdsm_virtual_times times;	/* of a virtual run */
};

/* The caller frees search->result with kdsm_reach_result_free(). */
void search_init(struct search *search, const struct kdsm_reach_options *options);
/* Open the model and search on this node. */
void search_run(struct search *search, struct kdsm *kdsm);
/* Open the model and search on all nodes of a virtual run. */
void search_virtual(struct search *search, const struct virtual_options *virtual);

/* A search of one node, to compare with */
struct search_base {
	unsigned int workers;
	double seconds;		/* virtual */
};

#define SEARCH_BASES	2

/* Times of a virtual run, for the output */
struct search_times {
	const struct virtual_options *options;
	struct kdsm_virtual_times times;
	struct search_base base[SEARCH_BASES];
	unsigned int bases;
};

/*
 * Search again with one node, and one worker or as many workers as each node of the search, and
 * add the times to *times. Returns whether both searches succeeded; otherwise a message was
 * printed.
 */
bool search_compare(const struct search *search, struct search_times *times);

#endif /* SEARCH_H */
