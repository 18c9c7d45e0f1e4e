// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that visit every node of a BDD: counts and support. */
#include "bdd/bdd.h"

int kdsm_bdd_count_nodes(struct kdsm_bdd_worker *worker, kdsm_bdd a, uint64_t *count)
{
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return kd_invalid_edge();
	r = kd_walk(&walk, worker, a);
	*count = walk.count;
	kd_walk_destroy(&walk);
	return r;
}

kdsm_bdd kdsm_bdd_support(struct kdsm_bdd_worker *worker, kdsm_bdd a)
{
	kdsm_bdd cube = KDSM_BDD_INVALID;
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return a;
	r = kd_walk(&walk, worker, a);
	if (r == 0)
		r = kd_walk_variables(&walk);
	if (r < 0)
		kd_end(worker, kd_failure(r));
	else
		cube = kdsm_bdd_cube(worker, walk.variable, walk.variables);
	kd_walk_destroy(&walk);
	return cube;
}

/* ---- residues ---- */

void kd_residues_init(struct kd_residues *r)
{
	mpz_inits(r->value, r->product, r->inverse, r->step, NULL);
	mpz_set_ui(r->product, 1);
}

void kd_residues_clear(struct kd_residues *r)
{
	mpz_clears(r->value, r->product, r->inverse, r->step, NULL);
}

void kd_residues_next(const struct kd_residues *r, struct kd_modulus *m)
{
	m->less = m->m ? m->less + 2 : 1;
	while (mpz_gcd_ui(NULL, r->product, (UINT64_C(1) << 63) - m->less) != 1)
		m->less += 2;
	m->m = (UINT64_C(1) << 63) - m->less;
}

/* value + k * product has the residue for k = (residue - value) / product modulo m. */
void kd_residues_add(struct kd_residues *r, const struct kd_modulus *m, uint64_t residue)
{
	uint64_t k = kd_mod_sub(m, residue, mpz_fdiv_ui(r->value, m->m));

	mpz_set_ui(r->step, m->m);
	mpz_invert(r->inverse, r->product, r->step);
	k = kd_mod_multiply(m, k, mpz_get_ui(r->inverse));
	mpz_addmul_ui(r->value, r->product, k);
	mpz_mul_ui(r->product, r->product, m->m);
}

/* ---- states ---- */

void kd_parts(const struct kd_walk *walk, const struct kd_modulus *m, uint64_t *part)
{
	uint64_t i;

	part[0] = 0;
	for (i = 1; i <= walk->count; i++) {
		uint64_t high = kd_part(m, part, kd_high(&walk->node[i], 0));

		part[i] = kd_mod_half(m, kd_mod_add(m, high,
						    kd_part(m, part, kd_low(&walk->node[i], 0))));
	}
}

uint64_t kd_part_count(const struct kd_modulus *m, uint64_t part, unsigned int variables)
{
	while (variables--)
		part = kd_mod_add(m, part, part);
	return part;
}

/*
 * Upper bounds of parts, as numbers with an exponent of 20 bits and a fraction of 12 bits:
 * (1 + fraction / 2^12) * 2^(exponent - MOST). 0 is 0.
 */
#define MOST	((1 << 20) - 1)
#define ONE	((uint32_t)MOST << 12)

/* At least the mean of a and b */
static uint32_t mean(uint32_t a, uint32_t b)
{
	uint32_t large = a > b ? a : b, small = a > b ? b : a;
	uint32_t exponent = large >> 12, shift = exponent - (small >> 12), sum;

	if (!large)
		return 0;
	sum = (1 << 12) + large % (1 << 12);
	if (small)
		sum += shift > 12 ? 1 : ((1 << 12) + small % (1 << 12) + (1 << shift) - 1) >> shift;
	if (sum >= 2 << 12)
		sum = (sum + 1) / 2;
	else if (exponent > 1)
		exponent--;
	return exponent << 12 | (sum - (1 << 12));
}

/* The bounds of an edge and of its complement, in the upper and the lower half of the result */
static uint64_t both(const uint64_t *bound, kdsm_bdd e)
{
	uint64_t b = bound[kd_number(e)];

	return e & KDSM_BDD_COMPLEMENT ? b << 32 | b >> 32 : b;
}

uint64_t kd_count_bits(struct kd_walk *walk, kdsm_bdd e, unsigned int variables)
{
	uint64_t *bound = walk->number, i, missing;

	bound[0] = ONE;
	for (i = 1; i <= walk->count; i++) {
		uint64_t high = both(bound, kd_high(&walk->node[i], 0));
		uint64_t low = both(bound, kd_low(&walk->node[i], 0));

		bound[i] = (uint64_t)mean(high >> 32, low >> 32) << 32 | mean(high, low);
	}
	/* the part is less than 2^(1 - missing) */
	missing = MOST - (both(bound, e) >> 44);
	return missing < variables ? variables + 1 - missing : 1;
}

int kd_bdd_count_bits(struct kdsm_bdd_worker *worker, kdsm_bdd e, unsigned int variables,
		      uint64_t *bits)
{
	struct kd_walk walk;
	int r;

	r = kd_walk(&walk, worker, e);
	if (r == 0)
		r = kd_walk_sort(&walk, &e, 1);
	if (r == 0)
		*bits = kd_count_bits(&walk, e, variables);
	kd_walk_destroy(&walk);
	return r;
}

void kd_count_all(struct kd_walk *walk, kdsm_bdd e, unsigned int variables, mpz_t result)
{
	/* finding out how many bits are needed takes as long as counting with two moduli */
	uint64_t bits = variables < 180 ? variables + 1 : kd_count_bits(walk, e, variables);
	struct kd_modulus m = { 0 };
	struct kd_residues r;

	kd_residues_init(&r);
	while (mpz_sizeinbase(r.product, 2) <= bits) {
		kd_residues_next(&r, &m);
		kd_parts(walk, &m, walk->number);
		kd_residues_add(&r, &m, kd_part_count(&m, kd_part(&m, walk->number, e), variables));
	}
	mpz_set(result, r.value);
	kd_residues_clear(&r);
}

/* Return -EINVAL if a node has a variable that is not among these. */
static int check_variables(const struct kd_walk *walk, const uint32_t *variables,
			   unsigned int count)
{
	unsigned int i, at = 0;

	for (i = 0; i < walk->variables; i++) {
		while (at < count && variables[at] < walk->variable[i])
			at++;
		if (at == count || variables[at] != walk->variable[i])
			return kd_because(-EINVAL,
					  "the function depends on variable %u, which is not given",
					  walk->variable[i]);
	}
	return 0;
}

int kdsm_bdd_count_states(struct kdsm_bdd_worker *worker, kdsm_bdd a,
			  const uint32_t *variables, unsigned int count, mpz_t result)
{
	struct kd_walk walk;
	int r;

	if (a == KDSM_BDD_INVALID)
		return kd_invalid_edge();
	r = kd_walk(&walk, worker, a);
	if (r == 0)
		r = kd_walk_sort(&walk, &a, 1);
	if (r == 0)
		r = check_variables(&walk, variables, count);
	if (r == 0)
		kd_count_all(&walk, a, count, result);
	kd_walk_destroy(&walk);
	return r;
}
