// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Successors and predecessors by a circuit, whose relation is a conjunction of clusters
 * (clusters.c). The states are multiplied with one cluster after another, and each product
 * quantifies at once the variables that no later cluster has. So the whole relation is never
 * made, and neither is the conjunction of states and relation.
 *
 * Clusters are private nodes, and results are in the table. So a product goes on to the end of
 * the cluster, even if it could return part of the cluster.
 */
#include "circuit.h"
#include "internal.h"

/*
 * A step may also rename variables: KD_CURRENT makes next variables of the result current ones,
 * and KD_NEXT takes current variables of the states as next ones.
 */
enum { KD_SAME, KD_CURRENT, KD_NEXT, KD_RENAMES };

#pragma GCC visibility push(hidden)
/* The product of a and cluster b without the variables of the cube; b and cube are private. */
KDSM_TASK_DECLARE(kdsm_bdd, kd_image, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, cube, uint32_t, rename,
		  uint32_t, above)
#pragma GCC visibility pop

/* The node of a private edge, or of a terminal */
static bool private_top(struct kdsm_bdd_worker *w, kdsm_bdd e, struct kd_top *top)
{
	struct kdsm_node node;

	*top = (struct kd_top){ KD_NO_VARIABLE, e, e };
	if (kd_terminal(e))
		return true;
	if (!kd_node_private(w, e, &node))
		return false;
	*top = (struct kd_top){ kd_variable(&node), kd_high(&node, e), kd_low(&node, e) };
	return true;
}

/* The key of a step. The cube is a private node, whose index leaves room for rename. */
static struct kd_key image_key(kdsm_bdd a, kdsm_bdd b, kdsm_bdd cube, uint32_t rename)
{
	uint64_t index = kd_terminal(cube) ? 0 : kd_number(cube) - KD_PRIVATE_FIRST + 1;

	return kd_key(KD_OP_IMAGE, a, b, index * KD_RENAMES + rename);
}

KDSM_TASK_DEFINE(kdsm_bdd, kd_image, kdsm_bdd, a, kdsm_bdd, b, kdsm_bdd, cube, uint32_t, rename,
		 uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	struct kd_top ta = { KD_NO_VARIABLE, a, a }, tb, tc;
	kdsm_bdd ah, al, bh, bl, high, low, result;
	uint32_t variable;
	struct kd_key key;
	bool quantified;

	if (a == KDSM_BDD_FALSE || b == KDSM_BDD_FALSE)
		return KDSM_BDD_FALSE;
	if (a == KDSM_BDD_TRUE && b == KDSM_BDD_TRUE)
		return KDSM_BDD_TRUE;
	if ((!kd_terminal(a) && !kd_top(w, a, &ta)) || !private_top(w, b, &tb) ||
	    !private_top(w, cube, &tc))
		return kd_give_up(w);
	if (rename == KD_NEXT && !kd_terminal(a))
		ta.variable++;
	variable = ta.variable < tb.variable ? ta.variable : tb.variable;
	if (!kd_descends(w, variable, above))
		return kd_give_up(w);
	while (tc.variable < variable) {
		cube = tc.high;
		if (!private_top(w, cube, &tc))
			return kd_give_up(w);
	}
	if (b == KDSM_BDD_TRUE && cube == KDSM_BDD_TRUE && rename == KD_SAME)
		return a;

	key = image_key(a, b, cube, rename);
	if (kd_cache_get(w, &key, &result))
		return result;
	kd_split(&ta, a, variable, &ah, &al);
	kd_split(&tb, b, variable, &bh, &bl);
	quantified = tc.variable == variable;
	if (quantified)
		cube = tc.high;
	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ ah, al }, 2);
	KDSM_SPAWN(kd_image, al, bl, cube, rename, variable + 1);
	high = KDSM_CALL(kd_image, ah, bh, cube, rename, variable + 1);
	if (!kd_valid(high)) {
		KDSM_DROP();
		return high;
	}
	if (quantified && high == KDSM_BDD_TRUE) {
		KDSM_DROP();
		result = high;
	} else {
		low = KDSM_SYNC(kd_image);
		if (!kd_valid(low))
			return low;
		result = quantified ? KD_OR(high, low, 0) :
			 kd_make(w, variable - (rename == KD_CURRENT), high, low);
	}
	if (kd_valid(result))
		kd_cache_put(w, &key, result);
	return result;
}

kdsm_bdd kd_clusters_successors(struct kdsm_worker *kdsm_worker, struct kdsm_task *kdsm_head,
				kdsm_bdd from, const struct kd_clusters *clusters)
{
	const struct kd_cluster *c = clusters->cluster;
	uint32_t i;

	for (i = 0; i < clusters->count && kd_valid(from); i++)
		from = KDSM_CALL(kd_image, from, c[i].relation, c[i].forward,
				 i == clusters->count - 1 ? KD_CURRENT : KD_SAME, 0);
	return from;
}

kdsm_bdd kd_clusters_predecessors(struct kdsm_bdd_worker *w, kdsm_bdd to,
				  const struct kd_clusters *clusters)
{
	const struct kd_cluster *c = clusters->cluster;
	uint32_t i;

	for (i = 0; i < clusters->count && kd_valid(to); i++)
		to = KD_OPERATE(w, kd_image, to, c[i].relation, c[i].backward,
				i ? KD_SAME : KD_NEXT, 0);
	return to;
}
