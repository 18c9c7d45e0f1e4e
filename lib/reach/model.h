/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Models: a set of initial states and a transition relation in parts, read from
 * a file. Everything in a model is made of private nodes, the same on every node
 * of the cluster that reads the same file.
 */
#ifndef KD_MODEL_H
#define KD_MODEL_H

#include <stdbool.h>

#include <kdsm/bdd.h>

/* One sentence about what went wrong: what, where, and what to do. */
struct kd_message {
	char text[512];
};

void kd_say(struct kd_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What is to hold in every state that is reached. */
struct kd_property {
	char *name;
	kdsm_bdd bad;			/* private: the states where it does not hold */
};

struct kd_net;			/* net.h: the Petri net that a model was made of */

struct kd_model {
	char *name;			/* of the file, without directory and suffix */
	const char *kind;		/* what the file is, for people */
	unsigned int bits;		/* of a state; bit i is variable 2i */
	uint32_t *variables;		/* 2 * 0 .. 2 * (bits - 1) */
	kdsm_bdd initial;		/* private */
	unsigned int relations;
	struct kdsm_relation **relation;
	/*
	 * Of a Petri net: relation i may be taken from a state of trap[i] only
	 * if the net is not 1-safe. NULL entries: that cannot be.
	 */
	struct kdsm_relation **trap;
	struct kd_net *net;
	unsigned int properties;
	struct kd_property *property;
};

/*
 * Read the model in the file at path. By its name, *.pnml is a Petri net, *.aag and
 * *.aig an and-inverter graph, and everything else the .bdd format. The worker makes
 * private nodes. On failure a negative errno, and *message says what a person has to
 * know.
 */
int kd_model_load(struct kdsm_bdd_worker *worker, const char *path,
		  struct kd_model *model, struct kd_message *message);
void kd_model_free(struct kd_model *model);

/* The formats. The file is in memory; model is zero but for the name. */
int kd_model_read_bdd(struct kdsm_bdd_worker *worker, const char *path,
		      const unsigned char *file, size_t size,
		      struct kd_model *model, struct kd_message *message);
int kd_model_read_pnml(struct kdsm_bdd_worker *worker, const char *path,
		       const unsigned char *file, size_t size,
		       struct kd_model *model, struct kd_message *message);

int kd_model_read_aiger(struct kdsm_bdd_worker *worker, const char *path,
			const unsigned char *file, size_t size,
			struct kd_model *model, struct kd_message *message);

/*
 * Of a net that turned out not to be 1-safe: put into message a place and a
 * transition that show it, from the states (in the table) of which some are in
 * the trap of the relation.
 */
int kd_model_blame(const struct kd_model *model, struct kdsm_bdd_worker *worker,
		   kdsm_bdd states, unsigned int relation,
		   struct kd_message *message);

#endif /* KD_MODEL_H */
