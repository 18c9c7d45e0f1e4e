// SPDX-License-Identifier: LGPL-2.1-or-later
/* Output of functions: enumerating cubes of assignments, and pictures for Graphviz. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bdd/bdd.h"

struct cubes {
	struct kdsm_bdd_worker *worker;
	const uint32_t *variables;
	unsigned int count;
	int8_t *values;
	kdsm_bdd_visit *visit;
	void *context;
};

/* Visit the cubes of a. values[0..at - 1] are set; a does not depend on their variables. */
static int visit_cubes(struct cubes *c, kdsm_bdd a, unsigned int at)
{
	struct kd_top top;
	int ret;

	if (a == KDSM_BDD_FALSE)
		return 0;
	if (a == KDSM_BDD_TRUE) {
		memset(c->values + at, -1, c->count - at);
		return c->visit(c->context, c->values);
	}
	if (!kd_top(c->worker, a, &top))
		return c->worker->why;
	while (at < c->count && c->variables[at] < top.variable)
		c->values[at++] = -1;
	if (at == c->count || c->variables[at] != top.variable)
		return kd_because(-EINVAL,
				  "the function depends on variable %u, which is not given",
				  top.variable);
	c->values[at] = 0;
	ret = visit_cubes(c, top.low, at + 1);
	if (ret)
		return ret;
	c->values[at] = 1;
	return visit_cubes(c, top.high, at + 1);
}

int kdsm_bdd_cubes(struct kdsm_bdd_worker *worker, kdsm_bdd a, const uint32_t *variables,
		   unsigned int count, kdsm_bdd_visit *visit, void *context)
{
	struct cubes c = {
		.worker = worker, .variables = variables, .count = count, .visit = visit,
		.context = context,
	};
	int ret;

	if (!kd_valid(a))
		return kd_invalid_edge();
	c.values = malloc(count + 1);
	if (!c.values)
		return -ENOMEM;
	ret = visit_cubes(&c, a, 0);
	free(c.values);
	return ret;
}

static void print_edge(FILE *file, uint64_t from, kdsm_bdd to, const char *style)
{
	fprintf(file, "\tn%" PRIu64 " -> n%" PRIu64 " [style=%s%s];\n", from, kd_number(to), style,
		to & KDSM_BDD_COMPLEMENT ? ",arrowhead=dot" : "");
}

int kdsm_bdd_dot(struct kdsm_bdd_worker *worker, FILE *file, kdsm_bdd a)
{
	const struct kdsm_node *node;
	struct kd_walk walk;
	uint64_t i;
	int ret;

	if (!kd_valid(a))
		return kd_invalid_edge();
	ret = kd_walk(&walk, worker, a);
	if (!ret) {
		fprintf(file, "digraph bdd {\n\troot [shape=none,label=\"\"];\n");
		fprintf(file, "\tn0 [shape=box,label=\"0\"];\n");
		fprintf(file, "\troot -> n%" PRIu64 "%s;\n", kd_number(a),
			a & KDSM_BDD_COMPLEMENT ? " [arrowhead=dot]" : "");
		for (i = 1; i <= walk.count; i++) {
			node = &walk.node[i];
			fprintf(file, "\tn%" PRIu64 " [label=\"%u\"];\n", walk.number[i],
				(unsigned int)kd_variable(node));
			print_edge(file, walk.number[i], kd_high(node, 0), "solid");
			print_edge(file, walk.number[i], kd_low(node, 0), "dashed");
		}
		fprintf(file, "}\n");
		if (fflush(file) || ferror(file))
			ret = -EIO;
	}
	kd_walk_destroy(&walk);
	return ret;
}
