// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Petri nets as models: a bit for each place, and a relation for each transition. The net
 * must be 1-safe, which only the search can show. Each relation has a trap, the states in
 * which the transition would put a second token on a place. Reading PNML is in pnml.c and
 * net.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define FIRST_ACTION	1000000

/* The tokens that a transition takes from a place and puts on it; sorted by place in arrays */
struct touch {
	unsigned int place, in, out;
};

static int compare_touches(const void *x, const void *y)
{
	const struct touch *a = x, *b = y;

	return (a->place > b->place) - (a->place < b->place);
}

static struct touch *touches(const struct kd_transition *t, unsigned int *count)
{
	struct touch *touch = calloc(t->ins + t->outs + 1, sizeof(*touch));
	unsigned int n = 0, i;

	if (!touch)
		return NULL;
	for (i = 0; i < t->ins; i++, n++)
		touch[n] = (struct touch){
			t->in[i].place, t->in[i].weight,
			kd_net_weight(t->out, t->outs, t->in[i].place),
		};
	for (i = 0; i < t->outs; i++)
		if (!kd_net_weight(t->in, t->ins, t->out[i].place))
			touch[n++] = (struct touch){ t->out[i].place, 0, t->out[i].weight };
	qsort(touch, n, sizeof(*touch), compare_touches);
	*count = n;
	return touch;
}

static int new_relation(struct kdsm_bdd_worker *w, kdsm_bdd relation,
			const struct touch *touch, unsigned int count,
			struct kdsm_relation **result)
{
	kdsm_bdd set = KDSM_BDD_TRUE;

	if (relation == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	while (count--) {
		set = kd_literal(w, 2 * touch[count].place + 1, true, set);
		set = kd_literal(w, 2 * touch[count].place, true, set);
	}
	if (set == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	return kdsm_relation_new(w, relation, set, FIRST_ACTION, result);
}

/*
 * Tell whether the transition never fires, because it takes two tokens from a place of a
 * 1-safe net.
 */
static bool is_dead(const struct touch *touch, unsigned int count)
{
	while (count--)
		if (touch[count].in > 1)
			return true;
	return false;
}

static int make_relation(struct kdsm_bdd_worker *w, const struct touch *touch,
			 unsigned int count, struct kdsm_relation **result)
{
	kdsm_bdd relation = KDSM_BDD_TRUE;
	unsigned int i;

	for (i = count; i--; ) {
		relation = kd_literal(w, 2 * touch[i].place + 1, touch[i].out > 0, relation);
		relation = kd_literal(w, 2 * touch[i].place, touch[i].in > 0, relation);
	}
	return new_relation(w, relation, touch, count, result);
}

/*
 * The trap is the states in which the transition is enabled and some place gets a second
 * token: a place with a token that the transition does not take, or a place that gets two
 * tokens at once.
 */
static int make_trap(struct kdsm_bdd_worker *w, const struct touch *touch,
		     unsigned int count, struct kdsm_relation **result)
{
	kdsm_bdd enabled = KDSM_BDD_TRUE, some = KDSM_BDD_FALSE;
	unsigned int i;

	for (i = count; i--; ) {
		if (touch[i].in)
			enabled = kd_literal(w, 2 * touch[i].place, true, enabled);
		if (touch[i].out > 1)
			some = KDSM_BDD_TRUE;
		else if (touch[i].out && !touch[i].in)
			some = kdsm_bdd_or(w, some,
					   kdsm_bdd_variable(w, 2 * touch[i].place));
	}
	some = kdsm_bdd_and(w, some, enabled);
	if (some == KDSM_BDD_FALSE)
		return 0;
	return new_relation(w, some, touch, count, result);
}

static int add_transition(struct kdsm_bdd_worker *w, const struct kd_transition *t,
			  struct kd_model *model)
{
	unsigned int count, at = model->relations;
	struct touch *touch = touches(t, &count);
	int r = 0;

	if (!touch)
		return -ENOMEM;
	if (!is_dead(touch, count)) {
		r = make_relation(w, touch, count, &model->relation[at]);
		if (r == 0)
			r = make_trap(w, touch, count, &model->trap[at]);
	} else {
		/* keep an empty relation, so that relation i is transition i */
		r = new_relation(w, KDSM_BDD_FALSE, touch, count, &model->relation[at]);
	}
	model->relations++;
	free(touch);
	return r;
}

static int add_places(struct kdsm_bdd_worker *w, const char *path,
		      const struct kd_net *net, struct kd_model *model,
		      struct kdsm_reach_message *message)
{
	kdsm_bdd initial = KDSM_BDD_TRUE;
	unsigned int i;

	model->bits = net->places;
	model->variables = malloc(net->places * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	for (i = net->places; i--; ) {
		if (net->place[i].marking > 1) {
			kd_say(message,
			       "%s: the net is not 1-safe: place %s has %u tokens initially; only 1-safe nets can be searched",
			       path, net->place[i].id, net->place[i].marking);
			return -EINVAL;
		}
		model->variables[i] = 2 * i;
		initial = kd_literal(w, 2 * i, net->place[i].marking, initial);
	}
	model->initial = initial;
	return initial == KDSM_BDD_INVALID ? kdsm_bdd_error(w) : 0;
}

int kd_model_read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		       const unsigned char *file, size_t size,
		       struct kd_model *model, struct kdsm_reach_message *message)
{
	const struct kd_net *net;
	unsigned int i;
	int r;

	r = kd_net_read(path, file, size, &model->net, message);
	if (r < 0)
		return r;
	net = model->net;
	r = add_places(worker, path, net, model, message);
	if (r < 0)
		return r;
	model->relation = calloc(net->transitions, sizeof(*model->relation));
	model->trap = calloc(net->transitions, sizeof(*model->trap));
	if (!model->relation || !model->trap)
		return -ENOMEM;
	for (i = 0; r == 0 && i < net->transitions; i++)
		r = add_transition(worker, &net->transition[i], model);
	return r;
}

/* Tell whether the transition is enabled in some of the states while the place is marked. */
static int enabled_with(struct kdsm_bdd_worker *w, const struct kd_transition *t,
			unsigned int place, kdsm_bdd states)
{
	unsigned int i;

	for (i = 0; i < t->ins; i++)
		states = kdsm_bdd_and(w, states, kdsm_bdd_variable(w, 2 * t->in[i].place));
	states = kdsm_bdd_and(w, states, kdsm_bdd_variable(w, 2 * place));
	if (states == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	return states != KDSM_BDD_FALSE;
}

int kd_model_blame(const struct kd_model *model, struct kdsm_bdd_worker *worker,
		   kdsm_bdd states, unsigned int relation, struct kdsm_reach_message *message)
{
	const struct kd_transition *t = &model->net->transition[relation];
	unsigned int i;
	int r = 0;

	for (i = 0; i < t->outs; i++) {
		r = t->out[i].weight > 1;
		if (!r && !kd_net_weight(t->in, t->ins, t->out[i].place))
			r = enabled_with(worker, t, t->out[i].place, states);
		if (r)
			break;
	}
	if (r <= 0)
		return r < 0 ? r : -EINVAL;
	kd_say(message,
	       "%s: the net is not 1-safe: firing transition %s puts a second token on place %s; only 1-safe nets can be searched",
	       model->name, t->id, model->net->place[t->out[i].place].id);
	return 0;
}
