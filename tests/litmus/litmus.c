// SPDX-License-Identifier: GPL-2.0
/* Parsing of forms, and conditions. The outcomes that models allow are in explore.c. */
#include <stdio.h>
#include <string.h>

#include "litmus.h"

/* ---- parsing ---- */

/* False: the role has too many steps. */
static bool step_add(struct litmus *litmus, unsigned int role, struct litmus_step step)
{
	if (litmus->steps[role] == LITMUS_STEPS)
		return false;
	litmus->step[role][litmus->steps[role]++] = step;
	return true;
}

static bool step_parse(const char *token, struct litmus_step *step)
{
	static const char marks[] = "#!?()";
	const char *mark = strchr(marks, token[0]);

	*step = (struct litmus_step) { .kind = LITMUS_STORE };
	if (mark) {
		step->kind = LITMUS_BARRIER + (mark - marks);
		step->which = *mark == '#' ? 0 : token[1] - '0';
		return step->which < (step->kind >= LITMUS_LOCK ? LITMUS_LOCKS :
							       LITMUS_SIGNATURES);
	}
	if (token[1] != '=' || !token[2])
		return false;
	if (token[0] >= 'x') {
		step->variable = token[0] - 'x';
		step->value = token[2] - '0';
		return step->variable < LITMUS_VARIABLES && step->value < LITMUS_STRANGE;
	}
	step->kind = token[3] == ':' ? LITMUS_EXCHANGE : LITMUS_LOAD;
	step->which = token[0] - 'a';
	step->variable = token[2] - 'x';
	step->value = token[3] == ':' ? token[4] - '0' : 0;
	return step->which < LITMUS_REGISTERS && step->variable < LITMUS_VARIABLES &&
	       step->value < LITMUS_STRANGE;
}

/* Add an access, with the synchronisation that belongs to it. */
static bool access_add(struct litmus *litmus, unsigned int role, struct litmus_step access)
{
	struct litmus_step step = { .which = access.variable };

	if (access.kind != LITMUS_STORE)
		litmus->loader[access.which] = role;
	if (litmus->sync == LITMUS_LOCKED) {
		step.kind = LITMUS_LOCK;
		if (!step_add(litmus, role, step))
			return false;
	}
	if (!step_add(litmus, role, access))
		return false;
	step.kind = litmus->sync == LITMUS_LOCKED ? LITMUS_UNLOCK : LITMUS_BARRIER;
	return litmus->sync == LITMUS_ALONE || litmus->sync == LITMUS_CHAIN ||
	       step_add(litmus, role, step);
}

static bool role_begin(struct litmus *litmus, unsigned int role)
{
	struct litmus_step step = { .kind = LITMUS_RECEIVE, .which = role - 1 };

	return litmus->sync != LITMUS_CHAIN || !role || step_add(litmus, role, step);
}

static bool role_end(struct litmus *litmus, unsigned int role)
{
	struct litmus_step step = { .kind = LITMUS_SEND, .which = role };

	return litmus->sync != LITMUS_CHAIN || step_add(litmus, role, step);
}

static unsigned int barriers(const struct litmus *litmus, unsigned int role)
{
	unsigned int i, count = 0;

	for (i = 0; i < litmus->steps[role]; i++)
		count += litmus->step[role][i].kind == LITMUS_BARRIER;
	return count;
}

/* All roles have the same number of barriers. False: they do not, or have no room for them. */
static bool barriers_level(struct litmus *litmus)
{
	struct litmus_step step = { .kind = LITMUS_BARRIER };
	unsigned int role;

	for (role = 0; role < litmus->roles; role++)
		if (barriers(litmus, role) > litmus->barriers)
			litmus->barriers = barriers(litmus, role);
	for (role = 0; role < litmus->roles; role++)
		while (barriers(litmus, role) < litmus->barriers)
			if (litmus->sync != LITMUS_PHASES || !step_add(litmus, role, step))
				return false;
	return true;
}

/* The last role of a chain sends to nobody. */
static void chain_cut(struct litmus *litmus)
{
	if (litmus->sync == LITMUS_CHAIN)
		litmus->steps[litmus->roles - 1]--;
}

const char *litmus_parse(const struct litmus_form *form, enum litmus_sync sync,
			 struct litmus *litmus)
{
	static char text[128];
	struct litmus_step step;
	char *token, *rest;
	unsigned int i;

	if (snprintf(text, sizeof(text), "%s", form->programs) >= (int)sizeof(text))
		return "a text that is too long";
	*litmus = (struct litmus) { .form = form, .sync = sync };
	litmus->has_own_sync = strpbrk(text, "#!?(");
	for (i = 0; i < LITMUS_REGISTERS; i++)
		litmus->loader[i] = LITMUS_ROLES;
	role_begin(litmus, 0);
	for (token = strtok_r(text, " ", &rest); token; token = strtok_r(NULL, " ", &rest)) {
		if (*token == '|') {
			if (!role_end(litmus, litmus->roles) || ++litmus->roles == LITMUS_ROLES ||
			    !role_begin(litmus, litmus->roles))
				return token;
			continue;
		}
		if (!step_parse(token, &step))
			return token;
		if (litmus_is_access(&step) ? !access_add(litmus, litmus->roles, step) :
					      !step_add(litmus, litmus->roles, step))
			return token;
	}
	if (!role_end(litmus, litmus->roles++))
		return "too many steps";
	chain_cut(litmus);
	return barriers_level(litmus) ? NULL : "the number of barriers";
}

/* ---- outcomes ---- */

static unsigned int value_of(unsigned int outcome, char name)
{
	return outcome >> 2 * (name >= 'a' ? name - 'a' : LITMUS_REGISTERS + name - 'X') & 3;
}

bool litmus_holds(const char *condition, unsigned int outcome)
{
	bool all = true;
	const char *at;

	for (at = condition; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
		if (at[0] == 'o') {
			if (all)
				return true;
			all = true;
			continue;
		}
		if (!strchr("abcdefXYZ", at[0]))
			return false;
		all &= (value_of(outcome, at[0]) == (unsigned int)(at[2] - '0')) ==
		       (at[1] == '=');
	}
	return all;
}

/* Set of the values that roles store to the variable */
static unsigned int values_stored(const struct litmus *litmus, unsigned int variable)
{
	unsigned int role, i, values = 0;

	for (role = 0; role < litmus->roles; role++)
		for (i = 0; i < litmus->steps[role]; i++) {
			const struct litmus_step *step = &litmus->step[role][i];

			if (litmus_is_access(step) && step->kind != LITMUS_LOAD &&
			    step->variable == variable)
				values |= 1U << step->value;
		}
	return values;
}

bool litmus_is_sane(const struct litmus *litmus, unsigned int outcome)
{
	unsigned int role, i, values;

	for (role = 0; role < litmus->roles; role++)
		for (i = 0; i < litmus->steps[role]; i++) {
			const struct litmus_step *step = &litmus->step[role][i];

			if (!litmus_is_access(step) || step->kind == LITMUS_STORE)
				continue;
			values = values_stored(litmus, step->variable) | 1U << LITMUS_OLD;
			if (!(values >> value_of(outcome, 'a' + step->which) & 1))
				return false;
		}
	for (i = 0; i < LITMUS_VARIABLES; i++) {
		values = values_stored(litmus, i) ?: 1U << LITMUS_OLD;
		if (!(values >> value_of(outcome, 'X' + i) & 1))
			return false;
	}
	return true;
}

void litmus_print(const struct litmus *litmus, unsigned int outcome, char *text, size_t size)
{
	size_t at = 0;
	char name;

	*text = '\0';
	for (name = 'a'; name < 'a' + LITMUS_REGISTERS && at < size; name++)
		if (litmus->loader[name - 'a'] < LITMUS_ROLES)
			at += snprintf(text + at, size - at, " %c=%u", name,
				       value_of(outcome, name));
	for (name = 'X'; name < 'X' + LITMUS_VARIABLES && at < size; name++)
		if (values_stored(litmus, name - 'X'))
			at += snprintf(text + at, size - at, " %c=%u", name,
				       value_of(outcome, name));
}

bool litmus_is_test(const struct litmus *litmus, const struct litmus_set *sc)
{
	return litmus->sync == LITMUS_ALONE || !(litmus->has_own_sync || sc->racy);
}

bool litmus_release_allows(const struct litmus *litmus, const struct litmus_set *sc,
			   unsigned int outcome)
{
	const struct litmus_form *form = litmus->form;

	if (!sc->racy)
		return litmus_has(sc, outcome);
	if ((litmus->has_own_sync || form->weak == LITMUS_NEVER) &&
	    litmus_holds(form->forbidden, outcome))
		return false;
	return litmus_is_sane(litmus, outcome);
}
