/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that the programs of this folder share besides <kdsm/job.h>: the command line, the
 * measurement of a part of the program, and the verdict over all members.
 */
#ifndef PROGRAMS_FRAME_H
#define PROGRAMS_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <kdsm/job.h>
#include <kdsm/uapi_netlink.h>

/* Measurements of the part between frame_begin() and frame_end(), of all nodes */
struct total {
	uint64_t ns;			/* time of rank 0 */
	uint64_t expected;		/* blocks, from frame_expects() */
	uint64_t gets, puts, messages;	/* remote operations; messages: atomics included */
	uint64_t bytes;			/* moved by gets and puts */
	uint64_t coherence[KDSM_COHERENCE_COUNT];
};

struct frame {
	char class;			/* 'S' or 'W' */
	struct kdsm_job *job;
	uint32_t rank, size;		/* of the job */
	unsigned int nodes;
	bool first;			/* it is the first member of its node */
	struct total total;		/* after frame_end() */
};

struct program {
	const char *doc;
	uint64_t sync;			/* as of struct kdsm_job_attr */
	/* Runs in each member; returns whether all its results were right. */
	bool (*work)(struct frame *frame);
	/* Prints, at rank 0, the results and figures. */
	void (*print)(const struct frame *frame);
};

/* Begin and end the part that is measured. Collective. */
void frame_begin(struct frame *frame);
void frame_end(struct frame *frame);
/*
 * Report how many blocks this node has to read because other nodes wrote them, between
 * frame_begin() and frame_end(). Of the members of a node, the first one is heard.
 */
void frame_expects(struct frame *frame, uint64_t blocks);

/* Whether a member is on another node than this one. */
static inline bool is_elsewhere(const struct frame *frame, uint32_t rank)
{
	return kdsm_job_node(frame->job, rank) != kdsm_job_node(frame->job, frame->rank);
}

/* If error is a negative errno, end the process, and so the job, with a message. */
void frame_check(const char *what, int error);
/* Zeroed private memory; ends the process if there is none. */
void *frame_private(size_t count, size_t size);

/* Run the program from command line to output. Returns an exit status. */
int frame_main(int argc, char **argv, const struct program *program);

#endif /* PROGRAMS_FRAME_H */
