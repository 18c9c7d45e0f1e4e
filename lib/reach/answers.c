// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Numbers about the set of the states found: its nodes and states and, of a Petri net, fired
 * transitions, most tokens, and upper bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "answers.h"

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

/* The largest sum of the tokens of the chosen places, by place */
static int most_of(struct kd_states *states, const bool *chosen, uint64_t *most)
{
	uint64_t *weight = calloc((uint64_t)states->model->bits + 1, sizeof(*weight));
	unsigned int i;
	int r;

	if (!weight)
		return -ENOMEM;
	for (i = 0; i < states->model->bits; i++)
		if (chosen[states->bit[i].place])
			weight[i] = UINT64_C(1) << states->bit[i].bit;
	r = kd_states_most(states, weight, most);
	free(weight);
	return r;
}

static int bound_places(const struct kd_search *s, struct kd_states *states,
			const struct kd_places *places, struct kdsm_reach_upper_bound *bound)
{
	bool *chosen = calloc((uint64_t)s->model.net->places + 1, sizeof(*chosen));
	unsigned int i;
	int r = -ENOMEM;

	bound->places = kd_places_name(s->model.net, places);
	if (chosen && bound->places) {
		for (i = 0; i < places->count; i++)
			chosen[places->place[i]] = true;
		r = most_of(states, chosen, &bound->tokens);
	}
	free(chosen);
	return r;
}

static int bound_all(const struct kd_search *s, struct kd_states *states,
		     struct kdsm_reach_result *result)
{
	unsigned int i;
	int r = 0;

	result->upper_bound = calloc(s->options->upper_bounds + 1, sizeof(*result->upper_bound));
	if (!result->upper_bound)
		return -ENOMEM;
	for (i = 0; r == 0 && i < s->options->upper_bounds; i++) {
		result->upper_bounds++;
		r = bound_places(s, states, &s->upper_bound[i], &result->upper_bound[i]);
	}
	return r;
}

static int count_all(struct kd_states *states, struct kdsm_reach_result *result)
{
	bool *all = malloc((uint64_t)states->model->net->places + 1);
	int r;

	if (!all)
		return -ENOMEM;
	memset(all, true, states->model->net->places);
	r = kd_states_fired(states, result->fired);
	if (r == 0)
		r = kd_states_place(states, &result->place_tokens);
	if (r == 0)
		r = most_of(states, all, &result->marking_tokens);
	free(all);
	return r;
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
	int r;

	if (!s->options->counts && !s->options->upper_bounds)
		return 0;
	r = begin_states(s, &states);
	if (r == 0 && s->options->counts)
		r = count_all(&states, result);
	if (r == 0)
		r = bound_all(s, &states, result);
	end_states(&states);
	result->counted = r == 0;
	return r;
}
