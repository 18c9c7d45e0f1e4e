// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Place/transition nets from PNML (ISO/IEC 15909-2), as the Model Checking Contest uses it:
 * nested pages, references to nodes of other pages, initial markings, inscriptions of arcs,
 * and inhibitor and read arcs as other tools write them. Names, graphics and tool-specific
 * elements are skipped. All other elements might change what the net means, so they are
 * refused. This file reads the XML; net.c makes a net of its objects.
 */
#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_DEPTH	200	/* nested elements */
#define MAX_TEXT	32	/* characters of a number and the blanks around it */
#define MOST_TOKENS	INT32_MAX	/* of an initial marking, and weight of an arc */

enum element {
	E_NONE, E_PNML, E_NET, E_PAGE, E_PLACE, E_TRANSITION, E_ARC,
	E_REFERENCE_PLACE, E_REFERENCE_TRANSITION, E_MARKING, E_INSCRIPTION, E_ARC_TYPE, E_TEXT,
	E_NUPN, E_STRUCTURE, E_UNIT, E_UNIT_PLACES,	/* of toolspecific, for the tool nupn */
	E_FOREIGN,	/* skipped, with all that is in it */
	E_UNKNOWN,	/* refused */
};

struct reader {
	XML_Parser parser;
	struct kd_pnml *pnml;
	enum element stack[MAX_DEPTH];
	unsigned int depth, nets;
	char text[MAX_TEXT + 1];
	size_t text_length;
	bool text_seen;
	int error;
};

static void fail(struct reader *r, int error, const char *what, const char *which)
{
	if (r->error)
		return;
	r->error = error;
	kd_say(r->pnml->message, "%s:%lu: %s%s%s", r->pnml->path,
	       (unsigned long)XML_GetCurrentLineNumber(r->parser), what,
	       which ? " " : "", which ? which : "");
	XML_StopParser(r->parser, XML_FALSE);
}

/* expat gives element names as "namespace|name". */
static const char *local_name(const char *name)
{
	const char *bar = strrchr(name, '|');

	return bar ? bar + 1 : name;
}

/* The elements that mean something, and those that mean nothing, by the element around them */
static const struct known {
	enum element parent;
	const char *name;
	enum element element;
} known[] = {
	{ E_NONE, "pnml", E_PNML },
	{ E_PNML, "net", E_NET },
	{ E_NET, "page", E_PAGE },
	{ E_NET, "place", E_PLACE },
	{ E_NET, "transition", E_TRANSITION },
	{ E_NET, "arc", E_ARC },
	{ E_NET, "referencePlace", E_REFERENCE_PLACE },
	{ E_NET, "referenceTransition", E_REFERENCE_TRANSITION },
	{ E_NET, "finalmarkings", E_FOREIGN },
	{ E_PLACE, "initialMarking", E_MARKING },
	{ E_ARC, "inscription", E_INSCRIPTION },
	{ E_ARC, "type", E_ARC_TYPE },
	{ E_ARC, "arctype", E_ARC_TYPE },
	{ E_ARC, "arcpath", E_FOREIGN },
	{ E_MARKING, "text", E_TEXT },
	{ E_INSCRIPTION, "text", E_TEXT },
	{ E_ARC_TYPE, "text", E_TEXT },
	{ E_NUPN, "structure", E_STRUCTURE },
	{ E_STRUCTURE, "unit", E_UNIT },
	{ E_UNIT, "places", E_UNIT_PLACES },
};

/* Elements that mean nothing wherever they are */
static const char *const labels[] = { "name", "graphics", "toolspecific", "documentation" };

static enum element element_of(const char *name, enum element parent)
{
	size_t i;

	if (parent == E_FOREIGN)
		return E_FOREIGN;
	if (parent == E_PAGE)
		parent = E_NET;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (parent == known[i].parent && !strcmp(name, known[i].name))
			return known[i].element;
	if (parent >= E_NUPN && parent <= E_UNIT_PLACES)
		return E_FOREIGN;
	for (i = 0; parent != E_NONE && i < sizeof(labels) / sizeof(*labels); i++)
		if (!strcmp(name, labels[i]))
			return E_FOREIGN;
	return E_UNKNOWN;
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return NULL;
}

/* The units of a nested-unit Petri net are in an element of the net or of a page. */
static bool is_nupn(const char *name, enum element parent, const char **attributes)
{
	const char *tool = attribute(attributes, "tool");

	return (parent == E_NET || parent == E_PAGE) && !strcmp(name, "toolspecific") && tool &&
	       !strcmp(tool, "nupn");
}

static bool is_place_transition(const char *type)
{
	static const char *const types[] = {
		"ptnet", "ptNetb", "PTNet", "P/T net", "pnmlcoremodel",
	};
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

static void start_net(struct reader *r, const char **attributes)
{
	const char *type = attribute(attributes, "type");
	const char *last = type ? strrchr(type, '/') : NULL;

	if (r->nets++)
		fail(r, -EINVAL, "a second net; split the file", NULL);
	else if (!type)
		fail(r, -EINVAL, "the net has no type", NULL);
	else if (!is_place_transition(last ? last + 1 : type) && !is_place_transition(type))
		fail(r, -EINVAL, "only place/transition nets can be read, this one is of type",
		     type);
}

/* How an arc's type is written: in an attribute, or in an element of the arc */
static void set_arc_type(struct reader *r, const char *type)
{
	struct kd_object *arc = &r->pnml->object[r->pnml->objects - 1];

	if (!strcmp(type, "inhibitor") || !strcmp(type, "tapnInhibitor"))
		arc->arc = KD_INHIBITOR;
	else if (!strcmp(type, "read") || !strcmp(type, "test"))
		arc->arc = KD_READ;
	else if (strcmp(type, "normal"))
		fail(r, -EINVAL, "only normal, read and inhibitor arcs can be read, this one is of type",
		     type);
}

static void start_object(struct reader *r,
			 enum element element, const char **attributes)
{
	const char *id = attribute(attributes, "id");
	const char *from = NULL, *to = NULL;
	struct kd_object *object;

	if (element == E_ARC) {
		from = attribute(attributes, "source");
		to = attribute(attributes, "target");
		if (!from || !to)
			return fail(r, -EINVAL, "an arc without source or target:", id);
	} else if (element == E_REFERENCE_PLACE || element == E_REFERENCE_TRANSITION) {
		from = attribute(attributes, "ref");
		if (!from)
			return fail(r, -EINVAL, "a reference without ref:", id);
	}
	if (!id && element != E_ARC)
		return fail(r, -EINVAL, "a place or transition without id", NULL);
	object = kd_pnml_add(r->pnml);
	if (!object)
		return fail(r, -ENOMEM, "no memory", NULL);
	object->kind = element == E_PLACE ? KD_PLACE :
		       element == E_TRANSITION ? KD_TRANSITION :
		       element == E_ARC ? KD_ARC :
		       element == E_REFERENCE_PLACE ? KD_REFERENCE_PLACE :
		       KD_REFERENCE_TRANSITION;
	object->line = XML_GetCurrentLineNumber(r->parser);
	object->number = element == E_ARC;	/* defaults: weight 1, marking 0 */
	object->id = strdup(id ? id : "");
	object->from = from ? strdup(from) : NULL;
	object->to = to ? strdup(to) : NULL;
	if (!object->id || (from && !object->from) || (to && !object->to))
		return fail(r, -ENOMEM, "no memory", NULL);
	if (element == E_ARC && attribute(attributes, "type"))
		set_arc_type(r, attribute(attributes, "type"));
}

static void start(void *data, const char *name, const char **attributes)
{
	struct reader *r = data;
	enum element parent = r->depth ? r->stack[r->depth - 1] : E_NONE;
	enum element element;

	if (r->error)
		return;
	name = local_name(name);
	if (r->depth == MAX_DEPTH)
		return fail(r, -EINVAL, "elements nested too deep", NULL);
	element = element_of(name, parent);
	if (is_nupn(name, parent, attributes))
		element = E_NUPN;
	if (r->depth == 0 && element != E_PNML)
		return fail(r, -EINVAL, "no PNML: the outermost element is", name);
	if (element == E_UNKNOWN)
		return fail(r, -EINVAL, "not of a place/transition net, or not supported:", name);
	r->stack[r->depth++] = element;

	if (element == E_NET)
		start_net(r, attributes);
	else if (element >= E_PLACE && element <= E_REFERENCE_TRANSITION)
		start_object(r, element, attributes);
	else if (element == E_MARKING || element == E_INSCRIPTION)
		r->text_seen = false;
	else if (element == E_ARC_TYPE && attribute(attributes, "value"))
		set_arc_type(r, attribute(attributes, "value"));
	else if (element == E_TEXT)
		r->text_length = 0;
	else if (element == E_UNIT && kd_pnml_add_unit(r->pnml) < 0)
		fail(r, -ENOMEM, "no memory", NULL);
}

static void text(void *data, const char *s, int length)
{
	struct reader *r = data;

	if (!r->error && r->depth && r->stack[r->depth - 1] == E_UNIT_PLACES &&
	    kd_pnml_add_places(r->pnml, s, length) < 0)
		return fail(r, -ENOMEM, "no memory", NULL);
	if (r->error || !r->depth || r->stack[r->depth - 1] != E_TEXT)
		return;
	if (r->text_length + length > MAX_TEXT)
		return fail(r, -EINVAL, "too long, or not a number of tokens", NULL);
	memcpy(r->text + r->text_length, s, length);
	r->text_length += length;
}

/* Take the text of a marking, an inscription or a type for the object that was added last. */
static void end_text(struct reader *r)
{
	unsigned long value;
	char *p = r->text, *end;

	r->text[r->text_length] = 0;
	while (isspace((unsigned char)*p))
		p++;
	if (r->stack[r->depth - 1] == E_ARC_TYPE) {
		p[strcspn(p, " \t\r\n")] = 0;
		return set_arc_type(r, p);
	}
	errno = 0;
	value = strtoul(p, &end, 10);
	if (end == p || !isdigit((unsigned char)*p))
		return fail(r, -EINVAL, "not a number of tokens:", r->text);
	while (isspace((unsigned char)*end))
		end++;
	if (*end)
		return fail(r, -EINVAL, "not a number of tokens:", r->text);
	if (errno || value > MOST_TOKENS)
		return fail(r, -EINVAL, "a place or an arc has at most 2147483647 tokens:",
			    r->text);
	r->pnml->object[r->pnml->objects - 1].number = value;
	r->text_seen = true;
}

static void end(void *data, const char *name)
{
	struct reader *r = data;
	enum element element;

	(void)name;
	if (r->error || !r->depth)
		return;
	element = r->stack[--r->depth];
	if (element == E_TEXT)
		end_text(r);
	else if ((element == E_MARKING || element == E_INSCRIPTION) && !r->text_seen)
		fail(r, -EINVAL, "a marking or inscription without text", NULL);
	else if (element == E_UNIT_PLACES && kd_pnml_add_places(r->pnml, " ", 1) < 0)
		fail(r, -ENOMEM, "no memory", NULL);
}

int kd_pnml_parse(struct kd_pnml *pnml, const unsigned char *file, size_t size)
{
	struct reader r = { .pnml = pnml };
	size_t at, chunk;

	r.parser = XML_ParserCreateNS(NULL, '|');
	if (!r.parser)
		return -ENOMEM;
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, start, end);
	XML_SetCharacterDataHandler(r.parser, text);
	for (at = 0; !r.error; at += chunk) {	/* expat takes an int as length */
		chunk = size - at < 1 << 20 ? size - at : 1 << 20;
		if (XML_Parse(r.parser, (const char *)file + at, chunk, at + chunk == size) !=
		    XML_STATUS_OK && !r.error) {
			enum XML_Error e = XML_GetErrorCode(r.parser);

			fail(&r, -EINVAL, "not well-formed XML:", XML_ErrorString(e));
		}
		if (at + chunk == size)
			break;
	}
	if (!r.error && !r.nets)
		fail(&r, -EINVAL, "there is no net in it", NULL);
	XML_ParserFree(r.parser);
	return r.error;
}
