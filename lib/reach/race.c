// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A search on several nodes: which nodes search, and how. No strategy and no order of variables is
 * the best one for all models, and a bad one may take a thousand times as long as a good one. So
 * nodes race: each searches in its own way and in its own store, and the first node that has all
 * states gives the result. Node 0 searches by the strategy that it would use alone.
 *
 *   model                      node 0        other nodes
 *   Petri net, order to choose portfolio     each by saturation, with an order of its own
 *   other models               saturation    all together: breadth first in windows
 *   breadth first              all nodes together: in windows, without a race
 *
 * With properties, traces, checkpoints, a picture of the levels or chaining, node 0 searches and
 * the other nodes wait. They also wait if the options name saturation for a model that is no net,
 * or the order of a net's places, and if the portfolio has one order.
 *
 * The winner is the first node that crosses the finishing line (finish.c). The tasks of all other
 * nodes then end as after a request to stop. Node 0 takes over the order of variables and the
 * widths of places from the winner, and then all members of the winner's team send their states to
 * node 0.
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

enum kd_plan kd_race_plan(const struct kd_search *s)
{
	if (all_in_windows(s))
		return KD_TOGETHER;
	if (!races(s))
		return KD_ALONE;
	return s->portfolio ? KD_RACE_OF_ORDERS : KD_RACE_OF_STRATEGIES;
}

/*
 * The order for another node. Odd nodes get further orders. Even nodes get those of net->best,
 * which node 0 tries one by one.
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
	if (s->plan == KD_TOGETHER) {
		*role = WINDOWS;
		return 0;
	}
	if (!node || s->plan == KD_ALONE)
		return 0;
	if (s->plan == KD_RACE_OF_STRATEGIES) {
		*role = WINDOWS;
		kd_windows_team(s, 1);
		kd_search_breadth_first(s);
	} else {
		*role = SEARCH;
		s->model.net->interrupt = kd_finish_word(s);
		r = kd_portfolio_adopt(s, order_of(s->model.net, node), 0);
	}
	return r < 0 ? r : kd_search_first(s);
}

/* ---- the end ---- */

static int unite_words(void *context, uint64_t *mine, const uint64_t *theirs)
{
	unsigned int i;

	(void)context;
	for (i = 0; i < KD_GANG_WORDS; i++)
		mine[i] |= theirs[i];
	return 0;
}

/* Give all nodes the winner's words. All other nodes pass 0. */
static int tell(struct kd_search *s, uint64_t *words)
{
	int r = kd_gang_gather(&s->cluster, words, unite_words, NULL);

	return r < 0 ? r : kd_gang_scatter(&s->cluster, words);
}

/* Tell node 0 the widths of the places. A step carries one place in each byte of its words. */
static int tell_widths(struct kd_search *s, bool won)
{
	unsigned int places = s->model.net ? s->model.net->places : 0, at, more;
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
	s->found = KDSM_BDD_FALSE;
	s->saved = KDSM_BDD_FALSE;
	s->before_slice = KDSM_BDD_FALSE;
	s->message->text[0] = 0;	/* of an attempt that failed */
	return r;
}

/* Move the states of windows to node 0. Then it can finish without other nodes. */
static int collect(struct kd_search *s)
{
	int r = kd_windows_collect(s);

	s->helps = r == 0 && s->cluster.node;
	return r;
}

/*
 * Move the states of another node, or of the team that it leads, to node 0. won: this node is the
 * winner
 */
static int take_over(struct kd_search *s, bool won)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r;

	s->helps = false;
	s->current = KDSM_BDD_FALSE;
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
	return collect(s);
}

/* Wait until all nodes have ended, and learn who has won; 0: nobody. won: this node has */
static int settle(struct kd_search *s, bool won, unsigned int *winner)
{
	uint64_t words[KD_GANG_WORDS] = { 0 };
	int r = kd_gang_gather(&s->cluster, words, NULL, NULL);

	if (r == 0 && s->cluster.node == 0) {
		words[0] = won ? 1 : kd_finish_winner(s);
		if (words[0] > s->cluster.nodes || (!won && words[0] == 1))
			r = -EIO;
	}
	if (r == 0)
		r = kd_gang_scatter(&s->cluster, words);
	*winner = words[0];
	return r;
}

/* Whether an error concerns the whole cluster, not only the attempt of this node or its team */
static bool is_lost(const struct kd_search *s, int error)
{
	if (error == -ECANCELED)
		return kd_gang_aborted(&s->cluster, NULL);
	return error == -EHOSTDOWN || error == -ETIMEDOUT;
}

/* On node 0: the result of a search with this error, after a step that a node has missed */
static int without(struct kd_search *s, int missed, int error)
{
	if (error < 0)
		return error;
	/* It has all states, or the user has stopped it. */
	if (!s->stopped || !kd_finish_crossed(s))
		return kd_finish_without(s, missed);
	return missed;
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
	if (s->plan == KD_TOGETHER)
		return error < 0 || !s->divided ? error : collect(s);
	s->helps = s->cluster.node;
	if (is_lost(s, error))
		return error;
	if (error < 0 && role == WINDOWS)
		kd_gang_abort(s->windows->team, error);
	leads = role == SEARCH || (role == WINDOWS && s->windows->team->node == 0);
	r = leads && error == 0 && !s->stopped ? kd_finish_claim(s, &won) : 0;
	if (r == 0)
		r = settle(s, won, &winner);
	if (r < 0)
		return s->cluster.node ? r : without(s, r, error);
	if (!winner)
		return s->cluster.node ? 0 : error;
	s->winner = winner - 1;
	s->stopped = false;	/* other tasks than those of the winner failed */
	return winner == 1 ? 0 : take_over(s, winner - 1 == s->cluster.node);
}
