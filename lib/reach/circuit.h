/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Circuits: what a model of an and-inverter graph has besides its BDDs. Internal. */
#ifndef KD_REACH_CIRCUIT_H
#define KD_REACH_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

#include <kdsm/bdd.h>
#include <kdsm/task.h>

/* All BDDs are private. */
struct kd_cluster {
	kdsm_bdd relation;
	kdsm_bdd forward;	/* cube of the variables to quantify in successors */
	kdsm_bdd backward;	/* the same in predecessors */
};

struct kd_clusters {
	uint32_t count;		/* at least 1 */
	struct kd_cluster *cluster;
};

/*
 * The conjuncts of the relation: for each latch its next value, and the constraints. Each depends
 * on current variables, on inputs, and on at most one next variable.
 */
struct kd_conjuncts {
	uint32_t count;
	kdsm_bdd *relation;
};

/*
 * clusters.c: sort the conjuncts, unite them to clusters, and plan when each variable is
 * quantified. Variables 2 * p with is_input[p] are inputs, for p below positions; the other even
 * variables are current ones. Inputs that only one cluster has are quantified in the cluster
 * already. Return 0 or a negative errno; the caller frees *clusters even then.
 */
int kd_clusters_new(struct kdsm_bdd_worker *w, const struct kd_conjuncts *conjuncts,
		    const bool *is_input, uint32_t positions, struct kd_clusters **clusters);
/* Most BDD nodes of a cluster of several conjuncts. Only tests change it. */
extern uint64_t kd_most_cluster;

void kd_clusters_free(struct kd_clusters *clusters);	/* NULL is ignored */

/*
 * Position p of the order is variable 2 * p: a latch, whose next value is variable 2 * p + 1, or an
 * input.
 */
struct kd_circuit {
	uint32_t latches, inputs, constraints, properties;
	uint32_t positions;
	/* by position: the number of the latch or input, and which of them it is */
	uint32_t *number;
	bool *is_input;
	uint32_t *position;		/* by latch */
	/* All functions are private and depend on latches and inputs. */
	kdsm_bdd *next;			/* by latch */
	kdsm_bdd *constraint, *bad;	/* bad: by property of the file */
	struct kd_clusters *clusters;
};

void kd_circuit_free(struct kd_circuit *circuit);	/* NULL is ignored */

/* order_circuit.c */
struct kd_aiger;

/*
 * Store the variables of a graph that are latches or needed inputs in a good order, and return
 * their number, or -ENOMEM. In the order of the file the latches come first.
 */
int64_t kd_circuit_order(const struct kd_aiger *aiger, const bool *needed, bool file,
			 uint32_t *order);

/*
 * witness.c. kd_circuit_inputs() finds inputs that lead from a state to the next one, or that
 * violate a property of the file in the state if next is NULL; inputs has room for circuit->inputs
 * and a 0. A state or inputs are a string of the characters 0 and 1. kd_witness_write() writes
 * the witnesses of the violated properties, and warns if it fails. kd_witness_check() refuses
 * options.witness for models that are no circuits.
 */
struct kd_search;
struct kdsm_reach_result;

int kd_circuit_inputs(struct kdsm_bdd_worker *w, const struct kd_circuit *circuit,
		      const char *state, const char *next, uint32_t property, char *inputs);
int kd_witness_check(const struct kd_search *s);
void kd_witness_write(struct kd_search *s, struct kdsm_reach_result *result);

/* image.c: the successors of states, in a task, and their predecessors */
kdsm_bdd kd_clusters_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
				kdsm_bdd from, const struct kd_clusters *clusters);
kdsm_bdd kd_clusters_predecessors(struct kdsm_bdd_worker *w, kdsm_bdd to,
				  const struct kd_clusters *clusters);

#endif /* KD_REACH_CIRCUIT_H */
