// SPDX-License-Identifier: GPL-2.0
/*
 * Unfair programs without end, for policy strict: a thread on each node reads one word, or
 * increments it, without pause, until simulated time is over. How often and how soon do the nodes
 * get the block? A request is an access that faults; an access to what a node has already does not
 * count.
 */
#include <stdio.h>

#include "sim.h"

/* Requests of one node; times in us */
struct requests {
	u64 count, total, longest;
};

static struct requests *requests;

static u64 faults(unsigned int node)
{
	const struct kdsm_coherence *coherence = &nodes[node].coherence;

	return coherence->stats[KDSM_COHERENCE_READ_FAULTS].counter +
	       coherence->stats[KDSM_COHERENCE_WRITE_FAULTS].counter;
}

static bool is_writer(unsigned int node)
{
	return node < config.writers;
}

static void access_word(struct thread *thread)
{
	struct word *word = &words[0];
	u64 value = 0;
	int err;

	if (is_writer(thread->node))
		err = cpu_add(thread->node, 0, word->offset, 1, word->size, &value);
	else
		err = cpu_load(thread->node, 0, word->offset, &value, word->size);
	if (err)
		sim_fail(config.index[0], "node %u: error %d", thread->node, err);
	word_seen(thread, word, "sees", value);
	if (is_writer(thread->node))
		word_stored(thread, word, value + 1);
}

static void thread_run(void *arg)
{
	struct thread *thread = arg;
	struct requests *own = &requests[thread->node];
	u64 before, start, wait;

	while (sim_now() < config.endless) {
		before = faults(thread->node);
		start = sim_now();
		access_word(thread);
		if (faults(thread->node) == before)
			continue;
		/* An access that ends because the others have stopped was not served before. */
		if (sim_now() <= config.endless)
			own->count++;
		wait = min(sim_now(), config.endless) - start;
		own->total += wait;
		own->longest = max(own->longest, wait);
	}
}

void unfair_start(void)
{
	requests = calloc(sim.nodes, sizeof(*requests));
	words[0] = (struct word) {
		.offset = used_start(0),
		.size = 8,
	};
	word_count = 1;
	threads_start(thread_run);
}

/* Check the longest wait against the mean of all requests. */
static void check_fairness(u64 longest, u64 mean)
{
	if (config.fair && longest > config.fair * mean)
		sim_fail(config.index[0], "a request waited %llu us, and the mean is %llu us",
			 longest, mean);
}

void unfair_stop(void)
{
	u64 count = 0, total = 0, longest = 0, mean;
	unsigned int node;

	for (node = 0; node < sim.nodes; node++) {
		count += requests[node].count;
		total += requests[node].total;
		longest = max(longest, requests[node].longest);
		if (is_writer(node)) {
			counts.writes += requests[node].count;
		} else {
			counts.reads += requests[node].count;
			counts.read_nodes++;
			counts.starved += !requests[node].count;
		}
	}
	mean = count ? total / count : total;
	counts.waits += total;
	counts.longest = max(counts.longest, longest);
	counts.unfair = max(counts.unfair, mean ? longest / mean : 0);
	sim_event(SIM_NONE, "%llu requests, mean wait %llu us, longest %llu us", count, mean,
		  longest);
	check_fairness(longest, mean);
	free(requests);
}

void unfair_report(void)
{
	u64 all = counts.reads + counts.writes;

	if (!counts.read_nodes && !counts.writes)
		return;
	printf("%.1f read requests a reader, %llu of %llu readers had none, %llu write requests\n",
	       counts.read_nodes ? (double)counts.reads / counts.read_nodes : 0, counts.starved,
	       counts.read_nodes, counts.writes);
	printf("a request waits %.1f us; the longest wait is %llu us, %llu times the mean of its seed\n",
	       all ? (double)counts.waits / all : 0, counts.longest, counts.unfair);
}
