/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Between the reader of PNML (pnml.c) and the maker of nets (net.c). */
#ifndef KD_PNML_H
#define KD_PNML_H

#include "model.h"

enum kd_kind {
	KD_PLACE, KD_TRANSITION, KD_ARC, KD_REFERENCE_PLACE, KD_REFERENCE_TRANSITION,
};

/* An element as it stands in the file. */
struct kd_object {
	enum kd_kind kind;
	char *id;
	char *from, *to;	/* source and target of an arc; from: ref */
	unsigned int number;	/* of tokens: initial marking, or weight of an arc */
	unsigned long line;
	unsigned int index;	/* net.c: of the place or transition that it is */
};

struct kd_pnml {
	const char *path;
	struct kd_message *message;
	struct kd_object *object;
	size_t objects, capacity;
};

/* A new object, all zero; NULL: no memory. It stays in place until the next. */
struct kd_object *kd_pnml_add(struct kd_pnml *pnml);
int kd_pnml_parse(struct kd_pnml *pnml, const unsigned char *file, size_t size);

#endif /* KD_PNML_H */
