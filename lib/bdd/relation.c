// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transition relations and the relational product with them. The product also renames next
 * variables to current variables (van Dijk, van de Pol, "Sylvan", TACAS 2015). The
 * relation's variables are in an array, as in section 5.4.4 of the thesis of Oortwijn.
 */
#include <stdlib.h>

#include "bdd/product.h"

/* Return 1 and fill *result, 0 if the result is absent, or a negative errno. */
int kd_home_get(struct kdsm_bdd_worker *w, const struct kd_key *key, kdsm_bdd *result)
{
	int r = kd_opcache_get_home(w->cache, key, result);

	w->home_get++;
	if (r <= 0)
		return r;
	*result &= KD_EDGE;
	w->home_hit++;
	kd_cache_put(w, key, *result);
	return r;
}

int kd_home_put(struct kdsm_bdd_worker *w, const struct kd_key *key, kdsm_bdd result)
{
	w->home_put++;
	return kd_opcache_put_home(w->cache, key, result);
}

/* The disjunction of product(a0, b0, at) and product(a1, b1, at) */
#pragma GCC visibility push(hidden)
KDSM_TASK_DECLARE(kdsm_bdd, kd_either, kdsm_bdd, a0, kdsm_bdd, b0, kdsm_bdd, a1, kdsm_bdd, b1,
		  uint32_t, at, uint32_t, above)
#pragma GCC visibility pop

KDSM_TASK_DEFINE(kdsm_bdd, kd_either, kdsm_bdd, a0, kdsm_bdd, b0, kdsm_bdd, a1, kdsm_bdd, b1,
		 uint32_t, at, uint32_t, above)
{
	kdsm_bdd first, second;

	if (kd_either_one(&a0, &b0, a1, b1))
		return KDSM_CALL(kd_product, a0, b0, at, above);
	KDSM_SPAWN(kd_product, a1, b1, at, above);
	first = KDSM_CALL(kd_product, a0, b0, at, above);
	if (kd_unlikely(!kd_valid(first)) || first == KDSM_BDD_TRUE) {
		KDSM_DROP();
		return first;
	}
	second = KDSM_SYNC(kd_product);
	if (kd_unlikely(!kd_valid(second)))
		return second;
	return KD_OR(first, second, above);
}

/* The relation does not mention the bit of o->variable, so only a is split. */
static inline kdsm_bdd product_unmentioned(struct kdsm_worker *kdsm_worker,
					   struct kdsm_task *kdsm_head, const struct kd_operands *o,
					   kdsm_bdd b, uint32_t at, kdsm_bdd *low)
{
	const uint32_t above = o->variable + 2;
	kdsm_bdd high;

	KDSM_SPAWN(kd_product, o->low_a, b, at, above);
	high = KDSM_CALL(kd_product, o->high_a, b, at, above);
	if (kd_unlikely(!kd_valid(high)))
		KDSM_DROP();
	else
		*low = KDSM_SYNC(kd_product);
	return high;
}

/* The relation mentions the bit of o->variable: split b at the next variable, too. */
static inline kdsm_bdd product_mentioned(struct kdsm_worker *kdsm_worker,
					 struct kdsm_task *kdsm_head, const struct kd_operands *o,
					 uint32_t at, uint32_t backward, kdsm_bdd *low)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const uint32_t above = o->variable + 2;
	kdsm_bdd bhh, bhl, blh, bll, high;

	if (!kd_split_relation(w, o->high_b, o->variable + 1, &bhh, &bhl) ||
	    !kd_split_relation(w, o->low_b, o->variable + 1, &blh, &bll))
		return kd_give_up(w);
	if (backward) {
		/*
		 * Backward quantifies the next value and keeps the current one, so current
		 * and next value change places.
		 */
		kdsm_bdd t = bhl;

		bhl = blh;
		blh = t;
	}
	at = (at + 1) | backward;
	KDSM_SPAWN(kd_either, o->high_a, bhl, o->low_a, bll, at, above);
	high = KDSM_CALL(kd_either, o->high_a, bhh, o->low_a, blh, at, above);
	if (kd_unlikely(!kd_valid(high)))
		KDSM_DROP();
	else
		*low = KDSM_SYNC(kd_either);
	return high;
}

/*
 * Forward: the result holds for x if there is a y such that a(y) and b(y, x'), where x' is
 * renamed to x. Backward: it holds for x if there is a y such that a(y) and b(x, y'), where
 * y' is renamed to y. Both concern the bits of a relation from number at on; the other bits
 * of a stay as they are.
 */
KDSM_TASK_DEFINE(kdsm_bdd, kd_product, kdsm_bdd, a, kdsm_bdd, b, uint32_t, at, uint32_t, above)
{
	struct kdsm_bdd_worker *w = KDSM_CONTEXT();
	const uint32_t backward = at & KD_BACKWARD;
	kdsm_bdd high, low = KDSM_BDD_FALSE, result;
	const struct kd_bit *bit;
	struct kd_operands o;
	struct kd_key key;
	bool home;
	int r;

	if (kd_product_none(a, b))
		return KDSM_BDD_FALSE;
	if (a == KDSM_BDD_TRUE && b == KDSM_BDD_TRUE)
		return KDSM_BDD_TRUE;
	at ^= backward;
	/* The index may come from another node. */
	if (kd_unlikely(at >= w->store->bit_count))
		return kd_fail(w, -EIO);
	bit = w->store->bits + at;
	if (bit->variable == KD_NO_VARIABLE)
		return kd_product_end(w, a, b, backward);
	if (!kd_split_operands(w, a, b, above, &o))
		return kd_give_up(w);
	while (bit->variable < o.variable)
		bit++;
	if (bit->variable == KD_NO_VARIABLE)
		return kd_product_end(w, a, b, backward);
	at = bit - w->store->bits;

	key = kd_key(backward ? KD_OP_PREDECESSORS : KD_OP_SUCCESSORS, a, b, bit->rest);
	r = kd_find_result(w, &key, at, &home, &result);
	if (r)
		return r < 0 ? kd_fail(w, r) : result;
	if (kd_unlikely(kd_interrupted(w)))
		return kd_failure(-EINTR);
	if (kd_unlikely(!w->alone))
		kd_nodes_ahead(w, (kdsm_bdd[]){ o.high_a, o.low_a }, 2);
	if (bit->variable != o.variable)
		high = product_unmentioned(kdsm_worker, kdsm_head, &o, b, at | backward, &low);
	else
		high = product_mentioned(kdsm_worker, kdsm_head, &o, at, backward, &low);
	if (kd_unlikely(!kd_valid(high)))
		return high;
	if (kd_unlikely(!kd_valid(low)))
		return low;
	result = kd_make(w, o.variable, high, low);
	if (kd_unlikely(!kd_valid(result)))
		return result;
	r = kd_keep_result(w, &key, home, result);
	return r < 0 ? kd_fail(w, r) : result;
}

kdsm_bdd kd_trap(struct kdsm_bdd_worker *w, uint32_t number)
{
	w->store->traps = true;
	return kdsm_bdd_variable(w, KD_FIRST_TRAP + number);
}

kdsm_bdd kdsm_bdd_successors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			     const struct kdsm_relation *relation)
{
	return kd_valid(states) ? KD_OPERATE(worker, kd_product, states, relation->relation,
					 relation->at, 0) : states;
}

kdsm_bdd kdsm_bdd_predecessors(struct kdsm_bdd_worker *worker, kdsm_bdd states,
			       const struct kdsm_relation *relation)
{
	return kd_valid(states) ? KD_OPERATE(worker, kd_product, states, relation->relation,
					 relation->at | KD_BACKWARD, 0) : states;
}

/*
 * Advance *cube to its first variable that is not below variable. Return 1 if the cube
 * contains variable, 0 if it does not, or a negative errno.
 */
static int advance(struct kdsm_bdd_worker *w, kdsm_bdd *cube, uint32_t variable)
{
	uint32_t v;
	kdsm_bdd high, low;
	int r;

	while (!kd_terminal(*cube)) {
		r = kdsm_bdd_look(w, *cube, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= variable)
			return v == variable;
		*cube = high;
	}
	return 0;
}

/* Return -EINVAL if the relation has a variable below first_action that is not in the set. */
static int check_support(struct kdsm_bdd_worker *w, kdsm_bdd relation, kdsm_bdd set,
			 uint32_t first_action)
{
	kdsm_bdd cube = kdsm_bdd_support(w, relation);
	kdsm_bdd high, low;
	uint32_t v;
	int r;

	if (!kd_valid(cube))
		return kdsm_bdd_error(w);
	for (; !kd_terminal(cube); cube = high) {
		r = kdsm_bdd_look(w, cube, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= first_action)
			break;
		r = advance(w, &set, v);
		if (r <= 0)
			return r < 0 ? r :
			       kd_because(-EINVAL,
					  "the relation depends on variable %u, which is not given",
					  v);
	}
	return 0;
}

static int add_bit(struct kdsm_bdd_store *store, uint32_t variable)
{
	uint32_t room = store->bit_room;
	struct kd_bit *more;

	if (store->bit_count == room) {
		room = room ? 2 * room : 1024;
		if (room >= KD_BACKWARD)
			return -ENOMEM;
		more = reallocarray(store->bits, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		store->bits = more;
		store->bit_room = room;
	}
	store->bits[store->bit_count++] = (struct kd_bit){ variable, KDSM_BDD_TRUE };
	return 0;
}

static int collect_bits(struct kdsm_bdd_worker *w, struct kdsm_relation *rel,
			kdsm_bdd set, uint32_t first_action)
{
	struct kdsm_bdd_store *store = w->store;
	kdsm_bdd high, low;
	uint32_t v;
	int r;

	for (; !kd_terminal(set); set = high) {
		r = kdsm_bdd_look(w, set, &v, &high, &low);
		if (r < 0)
			return r;
		if (v >= first_action)
			return kd_because(-EINVAL, "variable %u is not below first_action, %u",
					  v, first_action);
		if (rel->count && store->bits[store->bit_count - 1].variable == (v & ~1u))
			continue;
		r = add_bit(store, v & ~1u);
		if (r < 0)
			return r;
		rel->count++;
		if (!(v & 1)) {
			kdsm_bdd next = high;

			r = advance(w, &next, v + 1);
			if (r < 0)
				return r;
			if (r == 0) {
				/* The relation only reads this bit, so the bit keeps its value. */
				kdsm_bdd x = kdsm_bdd_variable(w, v);
				kdsm_bdd y = kdsm_bdd_variable(w, v + 1);
				kdsm_bdd same = kdsm_bdd_not(kdsm_bdd_xor(w, x, y));

				rel->relation = kdsm_bdd_and(w, rel->relation, same);
			}
		}
	}
	return add_bit(store, KD_NO_VARIABLE);
}

int kdsm_relation_new(struct kdsm_bdd_worker *worker, kdsm_bdd relation,
		      kdsm_bdd variables, uint32_t first_action,
		      struct kdsm_relation **result)
{
	struct kdsm_bdd_store *store = worker->store;
	struct kdsm_relation *rel;
	kdsm_bdd set, cube = KDSM_BDD_TRUE;
	bool was_private = worker->private;
	unsigned int i;
	int r;

	if (kd_of_pool(worker))
		return kd_because(-EDEADLK, "kdsm_relation_new: the caller is a task");
	rel = calloc(1, sizeof(*rel));
	if (!rel)
		return -ENOMEM;
	rel->relation = relation;
	rel->at = store->bit_count;
	worker->private = true;
	set = kdsm_bdd_support(worker, variables);
	r = kd_valid(set) ? check_support(worker, relation, set, first_action) :
	    kdsm_bdd_error(worker);
	if (r == 0)
		r = collect_bits(worker, rel, set, first_action);
	for (i = rel->count; r == 0 && i--; ) {
		struct kd_bit *bit = &store->bits[rel->at + i];

		cube = kdsm_bdd_make(worker, bit->variable, cube, KDSM_BDD_FALSE);
		bit->rest = cube;
	}
	worker->private = was_private;
	if (r == 0 && (!kd_valid(cube) || !kd_valid(rel->relation)))
		r = kdsm_bdd_error(worker);
	if (r < 0) {
		store->bit_count = rel->at;
		free(rel);
		return r;
	}
	*result = rel;
	return 0;
}

/* The relation's bits stay in store->bits. */
void kdsm_relation_free(struct kdsm_relation *relation)
{
	free(relation);
}
