/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Petri nets (place/transition nets), as read from PNML. */
#ifndef KD_NET_H
#define KD_NET_H

#include <stdbool.h>
#include <stddef.h>

struct kd_message;

struct kd_arc {
	unsigned int place, weight;
};

struct kd_place {
	char *id;
	unsigned int marking;
};

struct kd_transition {
	char *id;
	struct kd_arc *in, *out;	/* by place, each place once */
	unsigned int ins, outs;
};

struct kd_net {
	struct kd_place *place;
	struct kd_transition *transition;
	unsigned int places, transitions;
};

/* pnml.c. On failure a negative errno and a message; *net is to be freed anyway. */
int kd_net_read(const char *path, const unsigned char *file, size_t size,
		struct kd_net **net, struct kd_message *message);
void kd_net_free(struct kd_net *net);	/* NULL is ignored */

/* What firing a transition moves at a place, of 0 or more tokens. */
unsigned int kd_net_weight(const struct kd_arc *arcs, unsigned int count,
			   unsigned int place);

#endif /* KD_NET_H */
