// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Numbers about the set of the states found: its nodes and states and, of a Petri net, fired
 * transitions, most tokens, and upper bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "formula.h"

int kd_answers_begin(struct kd_search *s)
{
	const struct kdsm_reach_options *options = s->options;
	unsigned int i;
	int r = 0;

	if (options->counts && !s->model.net) {
		kd_say(s->message, "--counts: the model has no transitions; only a Petri net has");
		return -EINVAL;
	}
	s->upper_bound = calloc(options->upper_bounds + 1, sizeof(*s->upper_bound));
	if (!s->upper_bound)
		return -ENOMEM;
	for (i = 0; r == 0 && i < options->upper_bounds; i++) {
		const char *text = options->upper_bound[i];

		r = kd_places_parse(&s->upper_bound[i], s->model.net, "--upper-bound", text,
				    text + strlen(text), s->message);
	}
	return r;
}

void kd_answers_end(struct kd_search *s)
{
	unsigned int i;

	for (i = 0; s->upper_bound && i < s->options->upper_bounds; i++)
		free(s->upper_bound[i].place);
	free(s->upper_bound);
}

/* Fill in the ranks of the walk's variables, which are among the model's. */
static int rank_levels(struct kd_states *states)
{
	const struct kd_model *model = states->model;
	struct kd_walk *walk = &states->walk;
	uint32_t rank = 0, level;

	states->rank = malloc(((uint64_t)walk->variables + 1) * sizeof(*states->rank));
	if (!states->rank)
		return -ENOMEM;
	for (level = 0; level < walk->variables; level++) {
		while (rank < model->bits && model->variables[rank] < walk->variable[level])
			rank++;
		if (rank == model->bits || model->variables[rank] != walk->variable[level])
			return -EIO;
		states->rank[level] = rank;
	}
	states->rank[level] = model->bits;
	walk->node[0] = (struct kdsm_node){ .b = (uint64_t)level << KD_VARIABLE_SHIFT };
	return 0;
}

static int list_bits(struct kd_states *states)
{
	const struct kd_model *model = states->model;
	unsigned int i;

	states->bit = malloc(((uint64_t)model->bits + 1) * sizeof(*states->bit));
	if (!states->bit)
		return -ENOMEM;
	for (i = 0; model->net && i < model->bits; i++)
		states->bit[i].place = kd_marking_place(model->marking, model->variables[i],
							&states->bit[i].bit);
	return 0;
}

/* The most tokens that these places have together in a state; NULL means the first ones. */
static int most_of(const struct kd_search *s, const unsigned int *place, unsigned int count,
		   uint64_t *most)
{
	struct kd_sum sum = { 0 };
	int64_t tokens = 0;
	unsigned int i;
	int r = 0;

	*most = 0;
	if (s->visited == KDSM_BDD_FALSE)
		return 0;
	for (i = 0; r == 0 && i < count; i++)
		r = kd_sum_add_place(&sum, place ? place[i] : i, 1);
	if (r == 0)
		r = kd_sum_most(s->worker, s->model.marking, &sum, s->visited, &tokens);
	free(sum.addend);
	*most = tokens;
	return r;
}

static int bound_places(const struct kd_search *s, const struct kd_places *places,
			struct kdsm_reach_upper_bound *bound)
{
	bound->places = kd_places_name(s->model.net, places);
	return bound->places ? most_of(s, places->place, places->count, &bound->tokens) : -ENOMEM;
}

static int bound_all(const struct kd_search *s, struct kdsm_reach_result *result)
{
	unsigned int i;
	int r = 0;

	result->upper_bound = calloc(s->options->upper_bounds + 1, sizeof(*result->upper_bound));
	if (!result->upper_bound)
		return -ENOMEM;
	for (i = 0; r == 0 && i < s->options->upper_bounds; i++) {
		result->upper_bounds++;
		r = bound_places(s, &s->upper_bound[i], &result->upper_bound[i]);
	}
	return r;
}

static int count_all(const struct kd_search *s, struct kd_states *states,
		     struct kdsm_reach_result *result)
{
	int r = kd_states_fired(states, result->fired);

	if (r == 0)
		r = kd_states_place(states, &result->place_tokens);
	return r < 0 ? r : most_of(s, NULL, s->model.net->places, &result->marking_tokens);
}

/* The caller calls end_states(), whatever the result. */
static int begin_states(const struct kd_search *s, struct kd_states *states)
{
	int r;

	states->model = &s->model;
	states->root = s->visited;
	states->rank = NULL;
	states->bit = NULL;
	r = kd_walk(&states->walk, s->worker, states->root);
	if (r == 0)
		r = kd_walk_sort(&states->walk, &states->root, 1);
	if (r == 0)
		r = rank_levels(states);
	return r < 0 ? r : list_bits(states);
}

static void end_states(struct kd_states *states)
{
	kd_walk_destroy(&states->walk);
	free(states->rank);
	free(states->bit);
}

int kd_answers_count(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kd_states states;
	int r = begin_states(s, &states);

	if (r == 0) {
		result->nodes = states.walk.count;
		kd_count_all(&states.walk, states.root, s->model.bits, result->states);
	}
	end_states(&states);
	return r;
}

int kd_answers_find(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kd_states states;
	int r = 0;

	if (!s->options->counts && !s->options->upper_bounds)
		return 0;
	if (s->options->counts) {
		r = begin_states(s, &states);
		if (r == 0)
			r = count_all(s, &states, result);
		end_states(&states);
	}
	if (r == 0)
		r = bound_all(s, result);
	result->counted = r == 0;
	return r;
}
