// SPDX-License-Identifier: GPL-2.0
/* Searches of one node, or of all nodes of a virtual run; see search.h. */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "search.h"
#include "signals.h"

void search_init(struct search *search, const struct kdsm_reach_options *options)
{
	memset(search, 0, sizeof(*search));
	search->options = options;
	search->status = FAILED;
	search->result.argsz = sizeof(search->result);
	kdsm_reach_result_init(&search->result);
}

/* Keep the reason of the first failure. */
static void fail(struct search *search, int error, int status,
		 const struct kdsm_reach_message *message)
{
	if (search->error)
		return;
	search->error = error;
	search->status = status;
	search->message = *message;
	/* The message has the remedy of a cluster: other memory is on other nodes there. */
	if (search->virtual && (error == -ENOMEM || error == -EAGAIN))
		snprintf(search->message.text, sizeof(search->message.text),
			 "this machine has no memory for %u nodes of %u workers each: simulate fewer of them, or make --table and --cache smaller, or raise the limit of the address space (ulimit -v)",
			 search->virtual->attr.nodes, search->virtual->workers);
}

/* The exit status if the model cannot be opened */
static int refusal(int error)
{
	return error == -ENOMEM || error == -EAGAIN || error == -ENOSPC || error == -EBUSY ?
	       FAILED : REFUSED;
}

/* Search on a node that gets the signals, measures, and whose result is printed. */
static int search_first(struct search *search, struct kdsm_reach *reach,
			struct kdsm_reach_message *message)
{
	int r;

	signals_catch(reach);
	kdsm_virtual_reset();
	r = kdsm_reach_search(reach, &search->result, message);
	search->times.argsz = sizeof(search->times);
	kdsm_virtual_times(&search->times);
	search->caught = signals_release();
	return r;
}

static int search_other(struct kdsm_reach *reach, struct kdsm_reach_message *message)
{
	struct kdsm_reach_result result = { .argsz = sizeof(result) };
	int r;

	kdsm_reach_result_init(&result);
	r = kdsm_reach_search(reach, &result, message);
	kdsm_reach_result_free(&result);
	return r;
}

void search_run(struct search *search, struct kdsm *kdsm)
{
	bool first = !search->virtual || !kdsm_node(kdsm);
	struct kdsm_reach_message message;
	struct kdsm_reach *reach;
	int r;

	r = kdsm_reach_open(kdsm, search->options, &reach, &message);
	if (r < 0) {
		fail(search, r, refusal(r), &message);
		return;
	}
	r = first ? search_first(search, reach, &message) : search_other(reach, &message);
	if (r < 0)
		fail(search, r, FAILED, &message);
	kdsm_reach_close(reach);
}

static int run_node(struct kdsm *kdsm, void *argument)
{
	search_run(argument, kdsm);
	return 0;
}

void search_virtual(struct search *search, const struct virtual_options *virtual)
{
	struct kdsm_reach_message message;
	int r;

	search->virtual = virtual;
	r = kdsm_virtual_run(&virtual->attr, run_node, search);
	if (r < 0) {
		snprintf(message.text, sizeof(message.text), "%s", virtual_reason(r));
		fail(search, r, FAILED, &message);
	}
	/* the peak of the simulation says nothing about a node */
	search->result.memory = 0;
}

/* Returns whether the search of one node found what the other search had found. */
static bool compare(const struct search *search, const struct kdsm_reach_options *options,
		    struct search_times *times)
{
	struct virtual_options virtual = *search->virtual;
	struct search other;
	bool good;

	virtual.attr.nodes = 1;
	virtual.workers = options->workers;
	search_init(&other, options);
	search_virtual(&other, &virtual);
	good = !other.error && !other.result.stopped;
	if (other.error)
		warnx("--speed-up: 1x%u: %s", options->workers, other.message.text);
	else if (other.result.stopped)
		warnx("--speed-up: 1x%u: stopped by a signal", options->workers);
	else
		times->base[times->bases++] = (struct search_base){
			options->workers, other.result.seconds,
		};
	kdsm_reach_result_free(&other.result);
	return good;
}

bool search_compare(const struct search *search, struct search_times *times)
{
	struct kdsm_reach_options options = *search->options;
	const unsigned int workers = search->virtual->workers;
	unsigned int i;
	bool good = true;

	/* Nothing is written or reported a second time. */
	options.checkpoint = NULL;
	options.save = NULL;
	options.save_order = NULL;
	options.witness = NULL;
	options.known = NULL;
	options.level = NULL;
	options.progress = NULL;
	for (i = workers == 1; good && i < SEARCH_BASES; i++) {
		options.workers = i ? workers : 1;
		if (search->virtual->attr.nodes == 1 && options.workers == workers)
			times->base[times->bases++] = (struct search_base){
				workers, search->result.seconds,
			};
		else
			good = compare(search, &options, times);
	}
	return good;
}
