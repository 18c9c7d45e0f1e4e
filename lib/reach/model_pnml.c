// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Petri nets as models: a relation for each transition. Places have as many bits as their
 * numbers of tokens are known to need. Where that is not proved, a relation has a trap for
 * each place that would get more tokens than its bits can hold: the search that meets the
 * trap widens the place. How markings are encoded is in marking.c. Reading PNML is in pnml.c
 * and net.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define ENOUGH_BITS	8	/* to widen a place by, so that several orders are tried */
#define MOST_BITS	32768	/* of a state; limits the depth of recursion of operations */

/* The effect of a transition on a place; arrays of these are sorted by the places' variables */
struct touch {
	unsigned int place;
	uint32_t variable;
	struct kd_change change;
};

static int compare_touches(const void *x, const void *y)
{
	const struct touch *a = x, *b = y;

	return (a->variable > b->variable) - (a->variable < b->variable);
}

/* Merge the touches of each place into one. */
static unsigned int merge(struct touch *touch, unsigned int count)
{
	unsigned int n = 0, i;

	for (i = 1; i < count; i++) {
		struct kd_change *into = &touch[n].change;
		const struct kd_change *from = &touch[i].change;

		if (touch[i].place != touch[n].place) {
			touch[++n] = touch[i];
			continue;
		}
		into->delta += from->delta;
		if (into->least < from->least)
			into->least = from->least;
		if (into->most > from->most)
			into->most = from->most;
	}
	return count ? n + 1 : 0;
}

static struct touch *touches(const struct kd_transition *t, const struct kd_marking *m,
			     unsigned int *count)
{
	unsigned int most = t->ins + t->outs + t->reads + t->inhibitors, n = 0, i;
	struct touch *touch = calloc(most + 1, sizeof(*touch));

	if (!touch)
		return NULL;
	for (i = 0; i < t->ins; i++)
		touch[n++] = (struct touch){ t->in[i].place, 0, {
			t->in[i].weight, UINT64_MAX, -(int64_t)t->in[i].weight } };
	for (i = 0; i < t->outs; i++)
		touch[n++] = (struct touch){ t->out[i].place, 0, {
			0, UINT64_MAX, t->out[i].weight } };
	for (i = 0; i < t->reads; i++)
		touch[n++] = (struct touch){ t->read[i].place, 0, {
			t->read[i].weight, UINT64_MAX, 0 } };
	for (i = 0; i < t->inhibitors; i++)
		touch[n++] = (struct touch){ t->inhibitor[i].place, 0, {
			0, t->inhibitor[i].weight - 1, 0 } };
	for (i = 0; i < n; i++)
		touch[i].variable = m->first[touch[i].place];
	qsort(touch, n, sizeof(*touch), compare_touches);
	*count = merge(touch, n);
	return touch;
}

static bool touches_place(const struct kd_transition *t, unsigned int place)
{
	return kd_net_weight(t->in, t->ins, place) || kd_net_weight(t->out, t->outs, place) ||
	       kd_net_weight(t->read, t->reads, place) ||
	       kd_net_weight(t->inhibitor, t->inhibitors, place);
}

/* The trap of touch[at]: the later places allow the transition. */
static kdsm_bdd make_trap(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			  const struct touch *touch, unsigned int count, unsigned int at)
{
	kdsm_bdd trap = kd_trap(w, touch[at].place);
	unsigned int i;

	for (i = count; --i > at; ) {
		struct kd_change stay = touch[i].change;

		stay.delta = 0;
		trap = kd_marking_change(w, m, touch[i].place, &stay, trap, KDSM_BDD_FALSE);
	}
	return trap;
}

static bool may_overflow(const struct kd_model *model, const struct touch *touch)
{
	return touch->change.delta > 0 &&
	       model->net->place[touch->place].bound >> model->marking->width[touch->place];
}

static kdsm_bdd make_relation(struct kdsm_bdd_worker *w, const struct kd_model *model,
			      const struct touch *touch, unsigned int count)
{
	kdsm_bdd relation = KDSM_BDD_TRUE, trap;
	unsigned int i;

	for (i = count; i--; ) {
		trap = may_overflow(model, &touch[i]) ?
		       make_trap(w, model->marking, touch, count, i) : KDSM_BDD_FALSE;
		relation = kd_marking_change(w, model->marking, touch[i].place,
					     &touch[i].change, relation, trap);
	}
	return relation;
}

/* The cube of the current and next variables of the places */
static kdsm_bdd variables_of(struct kdsm_bdd_worker *w, const struct kd_marking *m,
			     const struct touch *touch, unsigned int count)
{
	kdsm_bdd set = KDSM_BDD_TRUE;
	unsigned int b;
	uint32_t v;

	while (count--)
		for (b = 0; b < m->width[touch[count].place]; b++) {
			v = kd_marking_variable(m, touch[count].place, b);
			set = kd_literal(w, v, true, kd_literal(w, v + 1, true, set));
		}
	return set;
}

static int set_relation(struct kdsm_bdd_worker *w, struct kd_model *model, unsigned int at)
{
	struct touch *touch;
	kdsm_bdd relation, set;
	unsigned int count;
	int r;

	touch = touches(&model->net->transition[at], model->marking, &count);
	if (!touch)
		return -ENOMEM;
	relation = make_relation(w, model, touch, count);
	set = variables_of(w, model->marking, touch, count);
	free(touch);
	if (relation == KDSM_BDD_INVALID || set == KDSM_BDD_INVALID)
		return kdsm_bdd_error(w);
	kdsm_relation_free(model->relation[at]);
	model->relation[at] = NULL;
	r = kdsm_relation_new(w, relation, set, KD_FIRST_TRAP, &model->relation[at]);
	return r;
}

static unsigned int bits_of(uint64_t tokens)
{
	unsigned int bits = 1;

	while (bits < 64 && tokens >> bits)
		bits++;
	return bits;
}

/*
 * A place gets the bits that its bound needs, if that is not much more than what was seen.
 * Otherwise it gets one more than was seen, but for a place that never had two tokens.
 */
static unsigned int first_width(const struct kd_place *place)
{
	unsigned int seen = bits_of(place->seen), bound = bits_of(place->bound);

	if (bound <= seen + 2)
		return bound;
	return place->seen > 1 ? seen + 1 : 1;
}

static int too_wide(const struct kd_model *model, const char *name, unsigned int place,
		    struct kdsm_reach_message *message)
{
	kd_say(message,
	       "%s: place %s gets more than %" PRIu64 " tokens, which is more than this program can count; it may have no bound",
	       name, model->net->place[place].id,
	       (UINT64_C(1) << model->marking->room) - 1);
	return -EDOM;
}

/* Check that operations on markings do not recurse too deep. */
static int check_bits(const struct kd_model *model, struct kdsm_reach_message *message)
{
	unsigned int bits = kd_marking_bits(model->marking);

	if (bits <= MOST_BITS)
		return 0;
	kd_say(message, "%s: the tokens of all places need %u bits; there may be at most %u",
	       model->name, bits, MOST_BITS);
	return -EFBIG;
}

/* Set all that depends on the widths of places but relations and properties. */
static int set_markings(struct kdsm_bdd_worker *w, struct kd_model *model)
{
	const struct kd_marking *m = model->marking;
	kdsm_bdd initial = KDSM_BDD_TRUE;
	unsigned int i;

	model->bits = kd_marking_bits(m);
	free(model->variables);
	model->variables = malloc((model->bits + 1) * sizeof(*model->variables));
	if (!model->variables)
		return -ENOMEM;
	kd_marking_variables(m, model->variables);
	for (i = m->places; i--; )
		initial = kd_marking_equals(w, m, m->order[i],
					    model->net->place[m->order[i]].marking, initial);
	model->initial = initial;
	return initial == KDSM_BDD_INVALID ? kdsm_bdd_error(w) : 0;
}

static int set_widths(struct kd_model *model, const char *path,
		      struct kdsm_reach_message *message)
{
	struct kd_marking *m = model->marking;
	unsigned int i, width;

	for (i = 0; i < m->places; i++) {
		width = first_width(&model->net->place[i]);
		if (width > m->room)
			return too_wide(model, path, i, message);
		m->width[i] = width;
	}
	return 0;
}

/* Find out how many tokens places may have. */
static int look_at_places(struct kd_net *net, const char *path, struct kdsm_reach_message *message)
{
	uint32_t unbounded = 0;
	int r;

	r = kd_net_semiflows(net);
	if (r == 0)
		r = kd_net_walk(net, &unbounded);
	if (r < 0)
		return r;
	if (unbounded) {
		kd_say(message,
		       "%s: place %s has no bound: a sequence of transitions can repeat, and adds tokens to the place each time",
		       path, net->place[unbounded - 1].id);
		return -EDOM;
	}
	return 0;
}

/* Make the model in an order of the places: that of the file at path or, if it is NULL, which. */
static int make(struct kdsm_bdd_worker *worker, struct kd_model *model,
		enum kdsm_reach_order which, const char *path, struct kdsm_reach_message *message)
{
	const struct kd_net *net = model->net;
	uint32_t *order = malloc((net->places + 1) * sizeof(*order));
	int r = -ENOMEM;

	model->order = path ? KDSM_REACH_ORDER_GIVEN : which;
	if (order)
		r = path ? kd_net_read_order(net, path, order, message) :
			   kd_net_order(net, which, order);
	if (r == 0)
		r = kd_marking_new(&model->marking, net->places, order, model->share,
				   model->shares);
	free(order);
	if (r == 0)
		r = set_widths(model, model->name, message);
	if (r == 0)
		r = check_bits(model, message);
	if (r == 0)
		r = set_markings(worker, model);
	if (r < 0)
		return r;
	model->relation = calloc(net->transitions + 1, sizeof(*model->relation));
	if (!model->relation)
		return -ENOMEM;
	for (; r == 0 && model->relations < net->transitions; model->relations++)
		r = kd_net_interrupted(net) ? -EINTR :
					      set_relation(worker, model, model->relations);
	return r;
}

int kd_model_order(struct kdsm_bdd_worker *worker, struct kd_model *model,
		   enum kdsm_reach_order which, struct kdsm_reach_message *message)
{
	return make(worker, model, which, NULL, message);
}

/* All orders of net->best can be tried if the variables suffice for places with many tokens. */
static unsigned int shares(const struct kd_net *net)
{
	unsigned int widest = 1, most, i;

	for (i = 0; i < net->places; i++)
		if (widest < first_width(&net->place[i]))
			widest = first_width(&net->place[i]);
	most = KD_FILE_MAX_BITS / (widest + ENOUGH_BITS) / net->places;
	return most > net->orders ? net->orders : most > 1 ? most : 1;
}

static int make_best(struct kdsm_bdd_worker *worker, struct kd_model *model,
		     struct kdsm_reach_message *message)
{
	int r = kd_net_orders(model->net);

	if (r < 0)
		return r;
	model->shares = shares(model->net);
	return kd_model_order(worker, model, model->net->best[0], message);
}

int kd_model_read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		       const struct kd_model_choice *choice,
		       const unsigned char *file, size_t size,
		       struct kd_model *model, struct kdsm_reach_message *message)
{
	int r;

	r = kd_net_read(path, file, size, &model->net, message);
	if (r == 0)
		r = look_at_places(model->net, path, message);
	if (r < 0)
		return r;
	model->shares = 1;
	if (!choice->order_file && choice->order == KDSM_REACH_ORDER_AUTO)
		return make_best(worker, model, message);
	return make(worker, model, choice->order, choice->order_file, message);
}

kdsm_bdd kd_model_extend(struct kdsm_bdd_worker *worker, const struct kd_model *model,
			 unsigned int place, unsigned int bits, kdsm_bdd states)
{
	kdsm_bdd zero = KDSM_BDD_TRUE;

	for (; bits < model->marking->width[place]; bits++)
		zero = kd_literal(worker, kd_marking_variable(model->marking, place, bits), false,
				  zero);
	return kdsm_bdd_and(worker, states, zero);
}

static bool may_widen(const struct kd_model *model, const struct kd_arc *arcs, unsigned int count)
{
	while (count--)
		if (model->net->place[arcs[count].place].bound >>
		    model->marking->width[arcs[count].place])
			return true;
	return false;
}

bool kd_model_widens(const struct kd_model *model, unsigned int relation)
{
	const struct kd_transition *t = model->net ? &model->net->transition[relation] : NULL;

	return t && (may_widen(model, t->in, t->ins) || may_widen(model, t->out, t->outs) ||
		     may_widen(model, t->read, t->reads) ||
		     may_widen(model, t->inhibitor, t->inhibitors));
}

int kd_model_widen(struct kdsm_bdd_worker *worker, struct kd_model *model, unsigned int place,
		   struct kdsm_reach_message *message)
{
	struct kd_marking *m = model->marking;
	unsigned int bits, i;
	int r;

	if (!m || place >= m->places)
		return -EIO;
	bits = m->width[place];
	if (bits == m->room)
		return too_wide(model, model->name, place, message);
	m->width[place]++;
	r = check_bits(model, message);
	if (r < 0)
		return r;
	kdsm_bdd_private(worker, 1);
	r = set_markings(worker, model);
	for (i = 0; r == 0 && i < model->relations; i++)
		if (touches_place(&model->net->transition[i], place))
			r = set_relation(worker, model, i);
	for (i = 0; r == 0 && i < model->properties; i++)
		r = kd_property_widen(worker, model, i, place);
	kdsm_bdd_private(worker, 0);
	return r < 0 ? r : (int)bits;
}
