// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files of sets of states, which a search writes (options.save) and an invariant is
 * (options.invariant). A set of markings belongs to an order of the places, so the note of the
 * file has the order in which the search found the states.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ORDER	UINT64_C(0x0a726564724f646b)	/* "kdOrder\n": the places in order follow */

static int set_note(struct kd_bdd_content *c, const struct kd_marking *m)
{
	unsigned int i;

	if (!m)
		return 0;
	c->note = malloc((m->places + UINT64_C(1)) * sizeof(*c->note));
	if (!c->note)
		return -ENOMEM;
	c->note[c->words++] = ORDER;
	for (i = 0; i < m->places; i++)
		c->note[c->words++] = m->order[i];
	return 0;
}

/*
 * Without room in the table for the cube of all bits, the file has only the variables on which the
 * set depends.
 */
static int write_states(struct kd_search *s, FILE *file)
{
	kdsm_bdd variables = kdsm_bdd_cube(s->worker, s->model.variables, s->model.bits);
	struct kd_bdd_content content = {
		.function = &s->visited, .variables = &variables, .count = 1,
	};
	int r;

	if (!kd_valid(variables)) {
		kdsm_bdd_error(s->worker);
		content.variables = NULL;
	}
	kd_marking_to_file(s->model.marking, &content.to_file);
	r = set_note(&content, s->model.marking);
	if (r == 0)
		r = kd_bdd_save(s->worker, file, &content);
	free(content.note);
	return r;
}

void kd_states_save(struct kd_search *s, struct kdsm_reach_result *result)
{
	struct kd_output output;
	int r;

	if (!s->options->save)
		return;
	r = kd_output_open(&output, s->options->save);
	if (r == 0) {
		r = write_states(s, output.file);
		r = kd_output_close(&output, r);
	}
	if (r < 0)
		kd_search_warn(s, "%s: cannot be written: %s", s->options->save, strerror(-r));
	result->unsaved |= r < 0;
}

bool kd_states_fit(const struct kd_bdd_content *c, const struct kd_marking *m)
{
	uint64_t i;

	if (!m || !c->whole || !c->words)
		return true;
	if (c->note[0] != ORDER)
		return kd_checkpoint_fits(c, m);
	/* a net may have got more places, which are behind those of the file */
	for (i = 1; i < c->words && i <= m->places; i++)
		if (c->note[i] != m->order[i - 1])
			return false;
	return true;
}
