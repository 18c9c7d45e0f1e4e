// SPDX-License-Identifier: GPL-2.0
/* The frame of the programs, see frame.h. */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/cli.h"
#include "common/counters.h"
#include "frame.h"

struct arguments {
	const char *class;
	uint64_t block_size;
	bool local;
};

#define AT(member)	.offset = offsetof(struct arguments, member)

static int parse_block(void *values, const char *text, char *reason)
{
	return block_parse(text, &((struct arguments *)values)->block_size, reason);
}

static const char *const classes[] = { "S", "W", NULL };

static const struct cli_option options[] = {
	{ "class", 'c', "CLASS", "Size of the problem, S or W (S)", CLI_WORD, AT(class),
	  .words = classes },
	{ "block", 'b', "SIZE", "Block size of the memory, a power of two from 4K to 2M (4K)",
	  CLI_PARSED, .parse = parse_block },
	{ "local", 0, NULL, "Use this machine alone, even if there is a cluster", CLI_FLAG,
	  AT(local) },
	{ 0 }
};

void frame_check(const char *what, int error)
{
	if (error < 0)
		errx(EXIT_FAILURE, "%s: %s", what, kdsm_error(error));
}

void *frame_private(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		frame_check("private memory", -ENOMEM);
	return memory;
}

/* ---- measuring ---- */

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/* Add the counters of this node to those of total, or subtract them: once for each node. */
static void count(struct frame *frame, int sign)
{
	struct total *total = &frame->total;
	struct counters counters = { 0 };
	const uint64_t *operations = counters.operations;
	unsigned int i;

	if (!frame->first || kdsm_is_local(kdsm_job_cluster(frame->job)))
		return;
	if (counters_read(kdsm_job_name(frame->job), &counters))
		exit(EXIT_FAILURE);
	total->gets += sign * operations[KDSM_STAT_GET];
	total->puts += sign * (operations[KDSM_STAT_PUT] + operations[KDSM_STAT_PUT_NOTIFY]);
	/* Atomics of the device take the place of messages in other domains. */
	total->messages += sign * (operations[KDSM_STAT_AM] + operations[KDSM_STAT_CAS] +
				   operations[KDSM_STAT_FAA]);
	total->bytes += sign * (operations[KDSM_STAT_GET_BYTES] +
				operations[KDSM_STAT_PUT_BYTES]);
	for (i = 0; i < KDSM_COHERENCE_COUNT; i++)
		total->coherence[i] += sign * counters.coherence[i];
}

void frame_begin(struct frame *frame)
{
	kdsm_job_barrier(frame->job);
	count(frame, -1);
	frame->total.ns = now();
	kdsm_job_barrier(frame->job);
}

void frame_end(struct frame *frame)
{
	uint64_t ns;

	kdsm_job_barrier(frame->job);
	ns = now() - frame->total.ns;
	count(frame, 1);
	kdsm_job_allreduce(frame->job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &frame->total,
			   sizeof(frame->total) / sizeof(uint64_t));
	frame->total.ns = ns;
}

void frame_expects(struct frame *frame, uint64_t blocks)
{
	if (frame->first)
		frame->total.expected = blocks;
}

/* ---- output ---- */

static void print_coherence(const uint64_t *c)
{
	printf("faults: %" PRIu64 " read, %" PRIu64 " write; blocks read: %" PRIu64
	       " of a known writer, %" PRIu64 " of an owner that was asked\n",
	       c[KDSM_COHERENCE_READ_FAULTS], c[KDSM_COHERENCE_WRITE_FAULTS],
	       c[KDSM_COHERENCE_FAST_READS], c[KDSM_COHERENCE_SLOW_READS]);
	printf("blocks released: %" PRIu64 " by their owner, %" PRIu64
	       " taken over; made invalid: %" PRIu64 "; merges: %" PRIu64
	       "; data races seen: %" PRIu64 "\n",
	       c[KDSM_COHERENCE_FAST_RELEASES], c[KDSM_COHERENCE_SLOW_RELEASES],
	       c[KDSM_COHERENCE_INVALIDATIONS], c[KDSM_COHERENCE_MERGES],
	       c[KDSM_COHERENCE_RACES]);
	printf("ranges remapped: %" PRIu64 "; bytes of blocks brought: %" PRIu64
	       "; blocks looked at by acquires: %" PRIu64 "; leases renewed: %" PRIu64 "\n",
	       c[KDSM_COHERENCE_FLUSHES], c[KDSM_COHERENCE_BYTES], c[KDSM_COHERENCE_LOOKED],
	       c[KDSM_COHERENCE_RENEWALS]);
}

static void print(const struct frame *frame, const struct program *program, uint64_t failures)
{
	const struct total *total = &frame->total;

	printf("%s class %c, %u member%s on %u node%s, blocks of %u bytes\n",
	       program_invocation_short_name, frame->class, frame->size,
	       frame->size == 1 ? "" : "s", frame->nodes, frame->nodes == 1 ? "" : "s",
	       kdsm_region_block_size(kdsm_job_region(frame->job)));
	program->print(frame);
	printf("time: %.3f s\n", total->ns / 1e9);
	if (frame->nodes > 1) {
		printf("remote operations: %" PRIu64 " reads, %" PRIu64 " messages, %" PRIu64
		       " writes; %" PRIu64 " bytes\n", total->gets, total->messages, total->puts,
		       total->bytes);
		print_coherence(total->coherence);
		if (total->expected)
			printf("blocks that must move: %" PRIu64 "\n", total->expected);
	}
	if (failures)
		printf("FAILED at %" PRIu64 " members\n", failures);
	else
		printf("VERIFIED\n");
}

int frame_main(int argc, char **argv, const struct program *program)
{
	const struct cli cli = { .doc = program->doc, .options = { options } };
	struct arguments arguments = { .class = classes[0], .block_size = 4096 };
	struct kdsm_job_attr attr = { .argsz = sizeof(attr), .sync = program->sync };
	struct frame frame = { 0 };
	uint64_t failures;
	uint32_t rank;

	cli_parse(&cli, argc, argv, &arguments);
	attr.flags = arguments.local ? KDSM_JOB_LOCAL : 0;
	attr.block_size = arguments.block_size;
	frame_check("cannot join the job", kdsm_job_join(&attr, &frame.job));
	frame.class = *arguments.class;
	frame.rank = kdsm_job_rank(frame.job);
	frame.size = kdsm_job_size(frame.job);
	frame.nodes = kdsm_job_nodes(frame.job);
	for (rank = 0; is_elsewhere(&frame, rank); rank++)
		;
	frame.first = rank == frame.rank;

	failures = !program->work(&frame);
	kdsm_job_allreduce(frame.job, KDSM_JOB_UINT64, KDSM_JOB_SUM, &failures, 1);
	if (!frame.rank)
		print(&frame, program, failures);
	frame_check("cannot leave the job", kdsm_job_leave(frame.job));
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
