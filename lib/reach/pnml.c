// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Place/transition nets from PNML (ISO/IEC 15909-2), as the Model Checking Contest uses it:
 * nested pages, references to nodes of other pages, initial markings, inscriptions of arcs.
 * Names, graphics and tool-specific elements are skipped. This file reads the XML; net.c
 * makes a net of its objects.
 */
#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define MAX_DEPTH	200	/* nested elements */
#define MAX_TEXT	32	/* characters of a number and the blanks around it */

enum element {
	E_OTHER, E_PNML, E_NET, E_PAGE, E_PLACE, E_TRANSITION, E_ARC,
	E_REFERENCE_PLACE, E_REFERENCE_TRANSITION, E_MARKING, E_INSCRIPTION, E_TEXT,
	E_FOREIGN,
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

static enum element element_of(const char *name, enum element parent)
{
	static const struct {
		const char *name;
		enum element element;
	} known[] = {
		{ "page", E_PAGE },
		{ "place", E_PLACE },
		{ "transition", E_TRANSITION },
		{ "arc", E_ARC },
		{ "referencePlace", E_REFERENCE_PLACE },
		{ "referenceTransition", E_REFERENCE_TRANSITION },
	};
	size_t i;

	switch (parent) {
	case E_OTHER:
		return !strcmp(name, "pnml") ? E_PNML : E_FOREIGN;
	case E_PNML:
		return !strcmp(name, "net") ? E_NET : E_FOREIGN;
	case E_NET:
	case E_PAGE:
		for (i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (!strcmp(name, known[i].name))
				return known[i].element;
		return E_FOREIGN;
	case E_PLACE:
		return !strcmp(name, "initialMarking") ? E_MARKING :
		       !strcmp(name, "type") || !strcmp(name, "hlinitialMarking") ?
		       E_OTHER : E_FOREIGN;
	case E_ARC:
		return !strcmp(name, "inscription") ? E_INSCRIPTION :
		       !strcmp(name, "hlinscription") ? E_OTHER : E_FOREIGN;
	case E_MARKING:
	case E_INSCRIPTION:
		return !strcmp(name, "text") ? E_TEXT : E_FOREIGN;
	default:
		return E_FOREIGN;
	}
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return NULL;
}

static void start_net(struct reader *r, const char **attributes)
{
	const char *type = attribute(attributes, "type");
	const char *last = type ? strrchr(type, '/') : NULL;

	if (r->nets++)
		fail(r, -EINVAL, "a second net; split the file", NULL);
	else if (!type)
		fail(r, -EINVAL, "the net has no type", NULL);
	else if (strcmp(last ? last + 1 : type, "ptnet"))
		fail(r, -EINVAL, "only place/transition nets can be read, this one is of type",
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
		fail(r, -ENOMEM, "no memory", NULL);
}

static void start(void *data, const char *name, const char **attributes)
{
	struct reader *r = data;
	enum element parent = r->depth ? r->stack[r->depth - 1] : E_OTHER;
	enum element element;

	if (r->error)
		return;
	name = local_name(name);
	if (r->depth == MAX_DEPTH)
		return fail(r, -EINVAL, "elements nested too deep", NULL);
	element = element_of(name, parent);
	if (r->depth == 0 && element != E_PNML)
		return fail(r, -EINVAL, "no PNML: the outermost element is", name);
	if (element == E_OTHER)
		return fail(r, -EINVAL, "not of a place/transition net:", name);
	r->stack[r->depth++] = element;

	if (element == E_NET)
		start_net(r, attributes);
	else if (element >= E_PLACE && element <= E_REFERENCE_TRANSITION)
		start_object(r, element, attributes);
	else if (element == E_MARKING || element == E_INSCRIPTION)
		r->text_seen = false;
	else if (element == E_TEXT)
		r->text_length = 0;
}

static void text(void *data, const char *s, int length)
{
	struct reader *r = data;

	if (r->error || !r->depth || r->stack[r->depth - 1] != E_TEXT)
		return;
	if (r->text_length + length > MAX_TEXT)
		return fail(r, -EINVAL, "not a number of tokens", NULL);
	memcpy(r->text + r->text_length, s, length);
	r->text_length += length;
}

/* Parse the number of a marking or inscription into the object that was added last. */
static void end_text(struct reader *r)
{
	unsigned long value;
	char *p = r->text, *end;

	r->text[r->text_length] = 0;
	while (isspace((unsigned char)*p))
		p++;
	errno = 0;
	value = strtoul(p, &end, 10);
	if (end == p || !isdigit((unsigned char)*p))
		return fail(r, -EINVAL, "not a number of tokens:", r->text);
	while (isspace((unsigned char)*end))
		end++;
	if (*end || errno || value > 1000000)
		return fail(r, -EINVAL, "not a number of tokens that a net can have:", r->text);
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
