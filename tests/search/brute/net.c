// SPDX-License-Identifier: GPL-2.0
/* The places and transitions of a PNML file */
#include <err.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "brute.h"

enum kind { PLACE, TRANSITION, REFERENCE };
enum arc_type { NORMAL, READ, INHIBITOR };

struct node {
	char *id, *ref;
	enum kind kind;
	unsigned int index;	/* among the places or transitions */
	uint32_t tokens;
};

struct arc {
	char *from, *to;
	uint32_t weight;
	enum arc_type type;
};

struct place *place;
struct transition *transition;
unsigned int places, transitions;

static struct node *nodes;
static struct arc *arcs;
static size_t node_count, arc_count;

static XML_Parser parser;
static enum { NOTHING, TOKENS, WEIGHT } number;	/* the meaning of the text */
static unsigned int foreign;	/* depth of elements that mean nothing */
static char text[64];

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (!strcmp(*attributes, name))
			return attributes[1];
	return NULL;
}

static char *copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	if (s && !c)
		errx(2, "no memory");
	return c;
}

static void add_node(enum kind kind, const char **attributes)
{
	nodes = grow(nodes, node_count + 1, sizeof(*nodes));
	nodes[node_count++] = (struct node){
		.id = copy(attribute(attributes, "id")), .kind = kind,
		.ref = copy(attribute(attributes, "ref")),
		.index = kind == PLACE ? places++ : kind == TRANSITION ? transitions++ : 0,
	};
}

static void add_arc(const char **attributes)
{
	const char *type = attribute(attributes, "type");

	arcs = grow(arcs, arc_count + 1, sizeof(*arcs));
	arcs[arc_count++] = (struct arc){
		copy(attribute(attributes, "source")), copy(attribute(attributes, "target")), 1,
		!type || !strcmp(type, "normal") ? NORMAL :
		!strcmp(type, "inhibitor") ? INHIBITOR : READ,
	};
}

static void start(void *data, const char *name, const char **attributes)
{
	(void)data;
	if (foreign || !strcmp(name, "name") || !strcmp(name, "graphics") ||
	    !strcmp(name, "toolspecific"))
		foreign++;
	else if (!strcmp(name, "place"))
		add_node(PLACE, attributes);
	else if (!strcmp(name, "transition"))
		add_node(TRANSITION, attributes);
	else if (!strcmp(name, "referencePlace") || !strcmp(name, "referenceTransition"))
		add_node(REFERENCE, attributes);
	else if (!strcmp(name, "arc"))
		add_arc(attributes);
	else if (!strcmp(name, "initialMarking"))
		number = TOKENS;
	else if (!strcmp(name, "inscription"))
		number = WEIGHT;
	text[0] = 0;
}

static void characters(void *data, const char *s, int length)
{
	size_t n = strlen(text);

	(void)data;
	if (foreign || number == NOTHING)
		return;
	if (n + length >= sizeof(text))
		errx(2, "a number is too long");
	memcpy(text + n, s, length);
	text[n + length] = 0;
}

static void end(void *data, const char *name)
{
	(void)data;
	if (foreign) {
		foreign--;
	} else if (number != NOTHING && !strcmp(name, "text")) {
		if (number == TOKENS)
			nodes[node_count - 1].tokens = strtoul(text, NULL, 10);
		else
			arcs[arc_count - 1].weight = strtoul(text, NULL, 10);
		number = NOTHING;
	}
}

static int compare_nodes(const void *a, const void *b)
{
	return strcmp(((const struct node *)a)->id, ((const struct node *)b)->id);
}

static struct node *node_of(const char *id)
{
	struct node key = { .id = (char *)id }, *found;

	do {
		found = bsearch(&key, nodes, node_count, sizeof(*nodes), compare_nodes);
		if (!found)
			errx(2, "no node %s", key.id);
		key.id = found->ref;
	} while (found->kind == REFERENCE);
	return found;
}

static struct touch *touch_of(struct transition *t, unsigned int p)
{
	unsigned int i;

	for (i = 0; i < t->touches; i++)
		if (t->touch[i].place == p)
			return &t->touch[i];
	t->touch = grow(t->touch, t->touches + 1, sizeof(*t->touch));
	t->touch[t->touches] = (struct touch){ p, 0, UINT64_MAX, 0 };
	return &t->touch[t->touches++];
}

/* A transition needs all tokens that its normal arcs take together, whatever it puts back. */
static void connect(const struct arc *a)
{
	const struct node *from = node_of(a->from), *to = node_of(a->to);
	struct touch *t;

	if (from->kind == TRANSITION) {
		touch_of(&transition[from->index], to->index)->change += a->weight;
		return;
	}
	t = touch_of(&transition[to->index], from->index);
	if (a->type == INHIBITOR && t->most > a->weight - 1)
		t->most = a->weight - 1;
	if (a->type != NORMAL)
		return;
	t->change -= a->weight;
	t->least += a->weight;
}

/* After all normal arcs */
static void connect_read(const struct arc *a)
{
	struct touch *t;

	if (a->type != READ)
		return;
	t = touch_of(&transition[node_of(a->to)->index], node_of(a->from)->index);
	if (t->least < a->weight)
		t->least = a->weight;
}

void read_net(const char *path)
{
	FILE *file = fopen(path, "re");
	char buffer[65536];
	size_t n, i;

	if (!file)
		err(2, "%s", path);
	parser = XML_ParserCreate(NULL);
	XML_SetElementHandler(parser, start, end);
	XML_SetCharacterDataHandler(parser, characters);
	do {
		n = fread(buffer, 1, sizeof(buffer), file);
		if (XML_Parse(parser, buffer, n, n == 0) != XML_STATUS_OK)
			errx(2, "%s: not well-formed", path);
	} while (n);
	XML_ParserFree(parser);
	fclose(file);
	qsort(nodes, node_count, sizeof(*nodes), compare_nodes);
	place = grow(NULL, places, sizeof(*place));
	transition = calloc(transitions + 1, sizeof(*transition));
	if (!transition)
		errx(2, "no memory");
	for (i = 0; i < node_count; i++) {
		if (nodes[i].kind == PLACE)
			place[nodes[i].index] = (struct place){ nodes[i].id, nodes[i].tokens };
		else if (nodes[i].kind == TRANSITION)
			transition[nodes[i].index].id = nodes[i].id;
	}
	for (i = 0; i < arc_count; i++)
		connect(&arcs[i]);
	for (i = 0; i < arc_count; i++)
		connect_read(&arcs[i]);
}
