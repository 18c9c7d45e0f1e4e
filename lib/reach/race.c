// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A search on several nodes: which nodes search, and how. No strategy and no order of variables is
 * the best one for all models, and a bad one may take a thousand times as long as a good one. So
 * nodes race: each searches in its own way and in its own store, and the first node that has all
 * states gives the result. Node 0 searches as it would alone, so other nodes can only make the
 * search faster.
 *
 *   model                      node 0        other nodes
 *   Petri net, order to choose portfolio     each by saturation, with an order of its own
 *   other models               saturation    all together: breadth first in windows
 *   breadth first              all nodes together: in windows, without a race
 *
 * With properties, traces, checkpoints or a limit of levels, node 0 searches and the other nodes
 * wait. They also wait if the options name the strategy, or the order of a net's places.
 *
 * The winner is the first node that crosses the finishing line (finish.c). The tasks of all other
 * nodes then end as after a request to stop. Node 0 takes over
 * the order of variables and the widths of places from the winner, and then all members of the
 * winner's team send their states to node 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows.h"

/* ---- roles ---- */

enum role { WAIT, SEARCH, WINDOWS };

static bool has_extras(const struct kd_search *s)
{
	const struct kdsm_reach_options *o = s->options;

	return o->trace || o->stop_at_violation || o->checkpoint || s->model.properties;
}

/* Whether all nodes search breadth first in windows */
static bool all_in_windows(const struct kd_search *s)
{
	return !s->saturation && !s->options->chaining && !s->options->level && !has_extras(s);
}

static bool races(const struct kd_search *s)
{
	return s->saturation && !s->options->levels && !has_extras(s) &&
	       (s->portfolio || (!s->model.net && s->options->race));
}

/*
 * The order for another node. Node 0 already tries the orders of net->best, so further orders take
 * turns with them, and begin.
 */
static enum kdsm_reach_order order_of(const struct kd_net *net, unsigned int node)
{
	unsigned int number = node - 1, best = (number + 1) / 2;

	if (number % 2 && number / 2 < net->orders)
		return net->best[number / 2];
	return KDSM_REACH_ORDER_FURTHER + number - (best < net->orders ? best : net->orders);
}

/* Select the role of this node, and prepare the node for it. */
static int begin(struct kd_search *s, enum role *role)
{
	unsigned int node = s->cluster.node;
	int r = 0;

	*role = node ? WAIT : SEARCH;
	if (all_in_windows(s)) {
		*role = WINDOWS;
		return 0;
	}
	if (!node || !races(s))
		return 0;
	if (!s->portfolio) {
		*role = WINDOWS;
		kd_windows_team(s, 1);
		kd_search_breadth_first(s);
	} else {
		*role = SEARCH;
		r = kd_portfolio_adopt(s, order_of(s->model.net, node), 0);
	}
	return r < 0 || *role == WAIT ? r : kd_search_first(s);
}

/* ---- the end ---- */

static int first_word(void *context, uint64_t *mine, const uint64_t *theirs)
{
	unsigned int i;

	(void)context;
	for (i = 0; i < KD_GANG_WORDS; i++)
		mine[i] |= theirs[i];
	return 0;
}

/* Give all nodes the words of one of them; those of all others are 0. */
static int tell(struct kd_search *s, uint64_t *words)
{
	int r = kd_gang_gather(&s->cluster, words, first_word, NULL);

	return r < 0 ? r : kd_gang_scatter(&s->cluster, words);
}

/* Tell node 0 the widths of the places, as many in a step as its words have bytes. */
static int tell_widths(struct kd_search *s, bool won)
{
	unsigned int places = s->model.marking ? s->model.marking->places : 0, at, more;
	uint64_t words[KD_GANG_WORDS];
	uint8_t *widths = malloc(places + 1);
	int r = widths ? 0 : -ENOMEM;

	for (at = 0; r == 0 && at < places; at += more) {
		more = places - at < sizeof(words) ? places - at : sizeof(words);
		memset(words, 0, sizeof(words));
		if (won)
			memcpy(words, s->model.marking->width + at, more);
		r = tell(s, words);
		memcpy(widths + at, words, more);
	}
	if (r == 0 && s->cluster.node == 0 && places) {
		s->widths = widths;
		return 0;
	}
	free(widths);
	return r;
}

/* Words that the winner tells all nodes */
enum { BREADTH_FIRST, ORDER, SHARE, LEVELS };

/* On node 0: take over what the winner's states depend on. */
static int adopt(struct kd_search *s, const uint64_t *words)
{
	int r = 0;

	if (words[BREADTH_FIRST])
		kd_search_breadth_first(s);
	else if (s->model.net)
		r = kd_portfolio_adopt(s, words[ORDER], words[SHARE]);
	if (r == 0)
		r = kd_search_widen(s);
	s->levels = words[LEVELS];
	s->current = KDSM_BDD_FALSE;
	return r;
}

/* Move the states of another node, or of the team that it leads, to node 0. won: of this node */
static int take_over(struct kd_search *s, bool won)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	if (won) {
		words[BREADTH_FIRST] = !s->saturation;
		words[ORDER] = s->model.order;
		words[SHARE] = s->model.share;
		words[LEVELS] = s->levels;
	}
	r = tell(s, words);
	if (r == 0)
		r = tell_widths(s, won);
	if (r == 0 && s->cluster.node == 0)
		r = adopt(s, words);
	if (r < 0)
		return r;
	if (!won && !(words[BREADTH_FIRST] && s->windows->team != &s->cluster))
		s->visited = KDSM_BDD_FALSE;
	return kd_windows_collect(s);
}

/* Wait until all nodes have ended, and learn who has won; 0: nobody. */
static int settle(struct kd_search *s, unsigned int *winner)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r = kd_gang_gather(&s->cluster, words, NULL, NULL);

	if (r == 0 && s->cluster.node == 0)
		words[0] = kd_finish_winner(s);
	if (r == 0)
		r = kd_gang_scatter(&s->cluster, words);
	*winner = words[0];
	return r;
}

/* Whether an error concerns the whole cluster, not only the attempt of this node */
static bool is_lost(int error)
{
	return error == -ECANCELED || error == -EHOSTDOWN || error == -ETIMEDOUT;
}

int kd_race_run(struct kd_search *s)
{
	bool leads, won = false;
	unsigned int winner = 0;
	enum role role;
	int r, error;

	error = begin(s, &role);
	s->store->interrupt = kd_finish_word(s);
	if (error == 0 && role == SEARCH)
		error = kd_search_run(s);
	else if (error == 0 && role == WINDOWS)
		error = kd_windows_run(s);
	s->store->interrupt = NULL;
	if (s->windows->team == &s->cluster && role == WINDOWS)
		return error < 0 || !s->divided ? error : kd_windows_collect(s);
	s->helps = s->cluster.node;
	if (is_lost(error))
		return error;
	leads = role == SEARCH || (role == WINDOWS && s->windows->team->node == 0);
	r = leads && error == 0 && !s->stopped ? kd_finish_claim(s, &won) : 0;
	if (r == 0)
		r = settle(s, &winner);
	if (won && s->cluster.node == 0)
		return kd_finish_without(s, r);
	if (r < 0)
		return r;
	if (!winner)
		return s->cluster.node ? 0 : error;
	s->winner = winner - 1;
	s->stopped = false;
	return winner == 1 ? 0 : take_over(s, winner - 1 == s->cluster.node);
}
