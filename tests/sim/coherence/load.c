// SPDX-License-Identifier: GPL-2.0
/* Common to programs of both kinds: calls that may fail, hints, and unmapping. */
#include "sim.h"

/* Retries after which a fault counts as permanent */
#define TRIES_MAX	10000

bool try_again(int err, unsigned int *tries, const char *what)
{
	bool may_time_out = sim.error || config.stall || config.outage;
	bool may_break = sim.error || config.outage;

	if (!err)
		return false;
	counts.errors++;
	sim_event(SIM_NONE, "%s: error %d", what, err);
	if (!(err == -ENOMEM && sim.nomem) &&
	    !((err == -EIO || err == -EHOSTDOWN) && may_break) &&
	    !(err == -ETIMEDOUT && may_time_out))
		sim_fail(SIM_NONE, "%s: error %d", what, err);
	if (++*tries > TRIES_MAX)
		sim_fail(SIM_NONE, "%s: error %d %u times", what, err, *tries);
	sim_sleep(10);
	return true;
}

/* Choose blocks that follow each other. */
static void choose_range(u64 *first, u64 *last)
{
	unsigned int i = sim_below(config.blocks);

	*first = config.index[i];
	*last = *first;
	while (sim_chance(2) && i + 1 < config.blocks && config.index[i + 1] == *last + 1) {
		i++;
		++*last;
	}
}

static void advise(unsigned int node, enum kdsm_advice advice, u64 first, u64 last)
{
	unsigned int tries = 0;
	int err;

	do {
		sim_event(first, "advice %u up to block %llu", advice, last);
		err = kdsm_coherence_advise(&nodes[node].coherence, advice, first, last);
	} while (try_again(err, &tries, "advise"));
}

void advise_some(unsigned int node)
{
	enum kdsm_advice advice = sim_between(KDSM_ADVICE_PREFETCH, KDSM_ADVICE_OWN);
	u64 first, last;

	choose_range(&first, &last);
	advise(node, advice, first, last);
}

void unmap_some(unsigned int node)
{
	u64 first, last;

	choose_range(&first, &last);
	if (sim_chance(3))
		process_protect(node, sim_below(config.processes), first, last);
	else
		process_unmap(node, sim_below(config.processes), first, last);
}

void load_start(void)
{
	if (config.policy == KDSM_POLICY_STRICT)
		racing_start();
	else
		race_free_start();
}

/* Own all blocks, also those without words, because nodes gave hints for these. */
static void own_all(void *arg)
{
	unsigned int node = (unsigned long)arg, i;

	for (i = 0; i < config.blocks; i++)
		advise(node, KDSM_ADVICE_OWN, config.index[i], config.index[i]);
}

void load_again(void)
{
	unsigned int i;

	for (i = 0; i < sim.nodes; i++)
		sim_spawn(i, "owns all", 1, own_all, (void *)(unsigned long)i);
	if (config.policy == KDSM_POLICY_STRICT)
		racing_again();
	else
		race_free_again();
}
