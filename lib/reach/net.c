// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Petri nets: make places, transitions and arcs of the objects of a PNML file (pnml.c), and
 * resolve references to the places and transitions that they lead to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_PLACES	32768	/* limits the depth of recursion of operations on markings */
#define MAX_WEIGHT	INT32_MAX	/* merged arcs add up no further, so no sum overflows */

struct kd_object *kd_pnml_add(struct kd_pnml *pnml)
{
	if (pnml->objects == pnml->capacity) {
		size_t capacity = pnml->capacity ? 2 * pnml->capacity : 256;
		void *p = reallocarray(pnml->object, capacity, sizeof(*pnml->object));

		if (!p)
			return NULL;
		pnml->object = p;
		pnml->capacity = capacity;
	}
	memset(&pnml->object[pnml->objects], 0, sizeof(*pnml->object));
	return &pnml->object[pnml->objects++];
}

int kd_pnml_add_unit(struct kd_pnml *pnml)
{
	if (pnml->units == pnml->most_units) {
		size_t most = pnml->most_units ? 2 * pnml->most_units : 64;
		void *p = reallocarray(pnml->unit, most, sizeof(*pnml->unit));

		if (!p)
			return -ENOMEM;
		pnml->unit = p;
		pnml->most_units = most;
	}
	pnml->unit[pnml->units++] = (struct kd_unit){ 0 };
	return 0;
}

int kd_pnml_add_places(struct kd_pnml *pnml, const char *text, size_t length)
{
	struct kd_unit *unit = &pnml->unit[pnml->units - 1];
	size_t room = unit->room ? unit->room : 64;
	char *p = unit->places;

	while (room < unit->length + length + 1)
		room *= 2;
	if (room != unit->room)
		p = realloc(unit->places, room);
	if (!p)
		return -ENOMEM;
	unit->places = p;
	unit->room = room;
	memcpy(unit->places + unit->length, text, length);
	unit->length += length;
	unit->places[unit->length] = 0;
	return 0;
}

static void pnml_free(struct kd_pnml *pnml)
{
	size_t i;

	for (i = 0; i < pnml->units; i++)
		free(pnml->unit[i].places);
	free(pnml->unit);
	for (i = 0; i < pnml->objects; i++) {
		free(pnml->object[i].id);
		free(pnml->object[i].from);
		free(pnml->object[i].to);
	}
	free(pnml->object);
}

static int bad(const struct kd_pnml *pnml, const struct kd_object *object,
	       const char *what, const char *which)
{
	kd_say(pnml->message, "%s:%lu: %s %s", pnml->path, object->line, what, which);
	return -EINVAL;
}

/* All objects except arcs, sorted by id */
struct ids {
	struct kd_object **object;
	size_t count;
};

static int compare_ids(const void *x, const void *y)
{
	const struct kd_object *const *a = x, *const *b = y;

	return strcmp((*a)->id, (*b)->id);
}

static int sort_ids(const struct kd_pnml *pnml, struct ids *ids)
{
	size_t i;

	ids->object = malloc((pnml->objects + 1) * sizeof(*ids->object));
	if (!ids->object)
		return -ENOMEM;
	for (i = 0; i < pnml->objects; i++)
		if (pnml->object[i].kind != KD_ARC)
			ids->object[ids->count++] = &pnml->object[i];
	qsort(ids->object, ids->count, sizeof(*ids->object), compare_ids);
	for (i = 1; i < ids->count; i++)
		if (!strcmp(ids->object[i - 1]->id, ids->object[i]->id))
			return bad(pnml, ids->object[i], "a second node with the id",
				   ids->object[i]->id);
	return 0;
}

static struct kd_object *find(const struct ids *ids, char *id)
{
	struct kd_object key = { .id = id }, *k = &key, **found;

	found = bsearch(&k, ids->object, ids->count, sizeof(*ids->object), compare_ids);
	return found ? *found : NULL;
}

static bool is_reference(const struct kd_object *object)
{
	return object->kind == KD_REFERENCE_PLACE || object->kind == KD_REFERENCE_TRANSITION;
}

/* Find the place or transition of an id; follow references. */
static struct kd_object *resolve(const struct ids *ids, char *id)
{
	struct kd_object *object = find(ids, id);
	size_t steps;

	for (steps = 0; object && is_reference(object); steps++) {
		struct kd_object *next = steps < ids->count ? find(ids, object->from) : NULL;
		bool place = object->kind == KD_REFERENCE_PLACE;

		if (next && place != (next->kind == KD_PLACE ||
				      next->kind == KD_REFERENCE_PLACE))
			next = NULL;
		object = next;
	}
	return object;
}

static int collect(struct kd_net *net, struct kd_pnml *pnml)
{
	size_t i, places = 0, transitions = 0;

	for (i = 0; i < pnml->objects; i++) {
		places += pnml->object[i].kind == KD_PLACE;
		transitions += pnml->object[i].kind == KD_TRANSITION;
	}
	if (!places || places > MAX_PLACES) {
		kd_say(pnml->message,
		       "%s: the net has %zu places; there must be at least one, and at most %d",
		       pnml->path, places, MAX_PLACES);
		return -EINVAL;
	}
	net->place = calloc(places, sizeof(*net->place));
	net->transition = calloc(transitions + 1, sizeof(*net->transition));
	if (!net->place || !net->transition)
		return -ENOMEM;
	for (i = 0; i < pnml->objects; i++) {
		struct kd_object *object = &pnml->object[i];

		if (object->kind == KD_PLACE) {
			object->index = net->places++;
			net->place[object->index].id = strdup(object->id);
			net->place[object->index].marking = object->number;
			net->place[object->index].seen = object->number;
			net->place[object->index].bound = UINT64_MAX;
			if (!net->place[object->index].id)
				return -ENOMEM;
		} else if (object->kind == KD_TRANSITION) {
			object->index = net->transitions++;
			net->transition[object->index].id = strdup(object->id);
			if (!net->transition[object->index].id)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Append an arc. The array is full when the count is 0 or a power of two. */
static int add_arc(struct kd_arc **arcs, unsigned int *count, unsigned int place,
		   unsigned int weight)
{
	if ((*count & (*count - 1)) == 0) {
		void *p = reallocarray(*arcs, *count ? 2 * (size_t)*count : 1,
				       sizeof(**arcs));

		if (!p)
			return -ENOMEM;
		*arcs = p;
	}
	(*arcs)[(*count)++] = (struct kd_arc){ place, weight };
	return 0;
}

static int compare_arcs(const void *x, const void *y)
{
	const struct kd_arc *a = x, *b = y;

	return (a->place > b->place) - (a->place < b->place);
}

/*
 * Sort the arcs by place, and merge the arcs of each place into one. Normal arcs add up. Of
 * several read or inhibitor arcs the strictest one counts.
 */
static void merge_arcs(struct kd_arc *arcs, unsigned int *count, enum kd_arc_type type)
{
	unsigned int n = 0, i;

	if (!*count)
		return;
	qsort(arcs, *count, sizeof(*arcs), compare_arcs);
	for (i = 1; i < *count; i++) {
		if (arcs[i].place != arcs[n].place)
			arcs[++n] = arcs[i];
		else if (type == KD_NORMAL)
			arcs[n].weight += arcs[n].weight <= MAX_WEIGHT ? arcs[i].weight : 0;
		else if ((arcs[i].weight < arcs[n].weight) == (type == KD_INHIBITOR))
			arcs[n].weight = arcs[i].weight;
	}
	*count = n + 1;
}

static int connect_input(struct kd_transition *t, unsigned int place, const struct kd_object *arc)
{
	switch (arc->arc) {
	case KD_INHIBITOR:
		return add_arc(&t->inhibitor, &t->inhibitors, place, arc->number);
	case KD_READ:
		return add_arc(&t->read, &t->reads, place, arc->number);
	default:
		return add_arc(&t->in, &t->ins, place, arc->number);
	}
}

static int connect(struct kd_net *net, const struct kd_pnml *pnml, const struct ids *ids,
		   const struct kd_object *arc)
{
	struct kd_object *from = resolve(ids, arc->from), *to = resolve(ids, arc->to);
	struct kd_transition *t;

	if (!from)
		return bad(pnml, arc, "an arc from what is not there:", arc->from);
	if (!to)
		return bad(pnml, arc, "an arc to what is not there:", arc->to);
	if (from->kind == to->kind)
		return bad(pnml, arc, "an arc between two places or two transitions, to",
			   arc->to);
	if (arc->number == 0)
		return bad(pnml, arc, "an arc of weight 0 to", arc->to);
	if (arc->arc != KD_NORMAL && from->kind != KD_PLACE)
		return bad(pnml, arc, "a read or inhibitor arc that begins at a transition, to",
			   arc->to);
	if (from->kind == KD_PLACE) {
		t = &net->transition[to->index];
		return connect_input(t, from->index, arc);
	}
	t = &net->transition[from->index];
	return add_arc(&t->out, &t->outs, to->index, arc->number);
}

#define NO_UNIT	UINT32_MAX

/* The first unit that names a place has it. */
static void take_units(struct kd_net *net, struct kd_pnml *pnml, const struct ids *ids)
{
	char *id, *rest;
	struct kd_object *object;
	unsigned int i, first;
	size_t u;

	for (i = 0; i < net->places; i++)
		net->place[i].unit = NO_UNIT;
	for (u = 0; u < pnml->units; u++) {
		first = net->units;
		id = pnml->unit[u].places ?
		     strtok_r(pnml->unit[u].places, " \t\r\n", &rest) : NULL;
		for (; id; id = strtok_r(NULL, " \t\r\n", &rest)) {
			object = find(ids, id);
			if (!object || object->kind != KD_PLACE ||
			    net->place[object->index].unit != NO_UNIT)
				continue;
			net->place[object->index].unit = first;
			net->units = first + 1;
		}
	}
	for (i = 0; i < net->places; i++)
		if (net->place[i].unit == NO_UNIT)
			net->place[i].unit = net->units++;
}

static int build(struct kd_net *net, struct kd_pnml *pnml)
{
	struct ids ids = { 0 };
	size_t i;
	int r;

	r = sort_ids(pnml, &ids);
	if (r == 0)
		r = collect(net, pnml);
	for (i = 0; r == 0 && i < pnml->objects; i++) {
		struct kd_object *object = &pnml->object[i];

		if (object->kind == KD_ARC)
			r = connect(net, pnml, &ids, object);
		else if (is_reference(object) && !resolve(&ids, object->id))
			r = bad(pnml, object, "a reference that leads to no node:", object->id);
	}
	for (i = 0; i < net->transitions; i++) {
		struct kd_transition *t = &net->transition[i];

		merge_arcs(t->in, &t->ins, KD_NORMAL);
		merge_arcs(t->out, &t->outs, KD_NORMAL);
		merge_arcs(t->read, &t->reads, KD_READ);
		merge_arcs(t->inhibitor, &t->inhibitors, KD_INHIBITOR);
	}
	if (r == 0)
		take_units(net, pnml, &ids);
	free(ids.object);
	return r;
}

int kd_net_read(const char *path, const unsigned char *file, size_t size,
		struct kd_net **net, struct kdsm_reach_message *message)
{
	struct kd_pnml pnml = { .path = path, .message = message };
	int r;

	*net = calloc(1, sizeof(**net));
	if (!*net)
		return -ENOMEM;
	r = kd_pnml_parse(&pnml, file, size);
	if (r == 0)
		r = build(*net, &pnml);
	pnml_free(&pnml);
	return r;
}

void kd_net_free(struct kd_net *net)
{
	unsigned int i;

	if (!net)
		return;
	for (i = 0; i < net->places; i++)
		free(net->place[i].id);
	for (i = 0; i < net->transitions; i++) {
		free(net->transition[i].id);
		free(net->transition[i].in);
		free(net->transition[i].out);
		free(net->transition[i].read);
		free(net->transition[i].inhibitor);
	}
	free(net->place);
	free(net->transition);
	free(net);
}

unsigned int kd_net_weight(const struct kd_arc *arcs, unsigned int count,
			   unsigned int place)
{
	struct kd_arc key = { .place = place }, *arc = NULL;

	if (count)
		arc = bsearch(&key, arcs, count, sizeof(*arcs), compare_arcs);
	return arc ? arc->weight : 0;
}
