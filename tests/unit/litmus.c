// SPDX-License-Identifier: GPL-2.0
/*
 * The table of litmus tests, and the outcomes that models allow: those written by hand against
 * those found by enumeration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "../litmus/litmus.h"

static struct litmus_set sc, other;

/* Number of outcomes of the set for which the condition holds, or all if NULL */
static unsigned int count(const struct litmus_set *set, const char *condition)
{
	unsigned int outcome, found = 0;

	for (outcome = 0; outcome < LITMUS_OUTCOMES; outcome++)
		found += litmus_has(set, outcome) &&
			 (!condition || litmus_holds(condition, outcome));
	return found;
}

static const struct litmus_form *find(const char *name)
{
	const struct litmus_form *form;

	for (form = litmus_forms; form->name; form++)
		if (!strcmp(form->name, name))
			return form;
	fail_msg("there is no form %s", name);
	return NULL;
}

static void parse(const struct litmus_form *form, enum litmus_sync sync, struct litmus *litmus)
{
	const char *wrong = litmus_parse(form, sync, litmus);

	if (wrong)
		fail_msg("%s: what is %s", form->name, wrong);
}

/* Each signature goes from one role to one other, and each lock that is taken is given back. */
static void check_pairs(const struct litmus *litmus)
{
	int signatures[LITMUS_SIGNATURES] = {}, locks[LITMUS_LOCKS] = {};
	unsigned int role, i;

	for (role = 0; role < litmus->roles; role++)
		for (i = 0; i < litmus->steps[role]; i++) {
			const struct litmus_step *step = &litmus->step[role][i];

			signatures[step->which] += (step->kind == LITMUS_SEND) -
						   (step->kind == LITMUS_RECEIVE);
			if (step->kind >= LITMUS_LOCK)
				locks[step->which] += step->kind == LITMUS_LOCK ? 1 : -1;
		}
	for (i = 0; i < LITMUS_SIGNATURES; i++)
		assert_int_equal(signatures[i], 0);
	for (i = 0; i < LITMUS_LOCKS; i++)
		assert_int_equal(locks[i], 0);
}

/* Sequential consistency allows no forbidden outcome, and the one that must be seen. */
static void forms_by_hand(void **state)
{
	const struct litmus_form *form;
	struct litmus litmus;

	(void)state;
	for (form = litmus_forms; form->name; form++) {
		parse(form, LITMUS_ALONE, &litmus);
		check_pairs(&litmus);
		litmus_explore(&litmus, LITMUS_SC, &sc);
		assert_int_equal(count(&sc, NULL), sc.count);
		assert_false(sc.stuck);
		if (!sc.count || count(&sc, form->forbidden))
			fail_msg("%s: %u of %u outcomes are forbidden", form->name,
				 count(&sc, form->forbidden), sc.count);
		if (!litmus.has_own_sync && !count(&sc, form->seen))
			fail_msg("%s: %s is impossible", form->name, form->seen);
		assert_true(litmus.has_own_sync || litmus.roles == 1 || sc.racy);
	}
}

/* Each part of a forbidden outcome would be possible if a role did its steps in any order. */
static void forms_without_order(void **state)
{
	const struct litmus_form *form;
	struct litmus litmus;

	(void)state;
	for (form = litmus_forms; form->name; form++) {
		parse(form, LITMUS_ALONE, &litmus);
		/* An exchange that is atomic has no such outcome in any order. */
		if (litmus.has_own_sync || strstr(form->programs, ":"))
			continue;
		litmus_explore(&litmus, LITMUS_ANY, &other);
		if (!count(&other, form->forbidden))
			fail_msg("%s: %s is impossible in any order", form->name, form->forbidden);
	}
}

/* A buffer of stores lets a later load of another variable pass a store, and nothing else. */
static void store_buffers(void **state)
{
	static const char *const weak[] = {
		"SB", "R", "SB+rfi-pos", "RWC", "W+RWC", "WRW+WR", "Z6.0", "Z6.4", "Z6.5",
		"3.SB",
	};
	const struct litmus_form *form;
	struct litmus litmus;
	unsigned int i, j;
	bool is_weak;

	(void)state;
	for (form = litmus_forms; form->name; form++) {
		parse(form, LITMUS_ALONE, &litmus);
		if (litmus.has_own_sync)
			continue;
		litmus_explore(&litmus, LITMUS_SC, &sc);
		litmus_explore(&litmus, LITMUS_TSO, &other);
		for (i = 0; i < LITMUS_OUTCOMES / 64; i++)
			assert_int_equal(sc.bits[i] & ~other.bits[i], 0);
		for (j = 0; j < sizeof(weak) / sizeof(weak[0]); j++)
			if (!strcmp(weak[j], form->name))
				break;
		is_weak = count(&other, form->forbidden);
		if (is_weak != (j < sizeof(weak) / sizeof(weak[0])))
			fail_msg("%s: %s is %spossible with buffers of stores", form->name,
				 form->forbidden, is_weak ? "" : "im");
	}
}

/* Added synchronisation leaves no data race, but for phases in which roles conflict. */
static void added_synchronisation(void **state)
{
	const struct litmus_form *form;
	unsigned int sync, phases = 0;
	struct litmus litmus;

	(void)state;
	for (form = litmus_forms; form->name; form++) {
		parse(form, LITMUS_ALONE, &litmus);
		if (litmus.has_own_sync)
			continue;
		litmus_explore(&litmus, LITMUS_SC, &sc);
		for (sync = LITMUS_LOCKED; sync < LITMUS_SYNCS; sync++) {
			unsigned int i;

			parse(form, sync, &litmus);
			check_pairs(&litmus);
			litmus_explore(&litmus, LITMUS_SC, &other);
			assert_false(other.stuck);
			assert_true(other.count);
			for (i = 0; i < LITMUS_OUTCOMES / 64; i++)
				assert_int_equal(other.bits[i] & ~sc.bits[i], 0);
			if (sync == LITMUS_PHASES) {
				phases += !other.racy;
				continue;
			}
			assert_false(other.racy);
			if (sync == LITMUS_LOCKED)
				assert_int_equal(other.count, sc.count);
			else
				assert_int_equal(other.count, 1);
		}
	}
	assert_true(phases >= 10);
}

/* Races are found where they are, and what policy release allows depends on them. */
static void races(void **state)
{
	static const struct {
		const char *name;
		bool racy;
	} forms[] = {
		{ "MP by a signature", true }, { "MP by a barrier", true },
		{ "SB, and a barrier", true }, { "WRC by signatures", false },
		{ "ISA2 by signatures", false }, { "IRIW, all ordered", false },
		{ "IRIW, one half ordered", true }, { "CoRR by signatures", true },
		{ "CoWW by signatures", false }, { "2+2W by a signature", false },
		{ "3.SB, and a barrier", false }, { "MP by a lock", false },
		{ "MP by two locks", false }, { "WRC, seen at second hand", true },
		{ "3.2W by a lock", false }, { "exchange by a lock", false },
	};
	unsigned int i, outcome, allowed;
	struct litmus litmus;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		parse(find(forms[i].name), LITMUS_ALONE, &litmus);
		litmus_explore(&litmus, LITMUS_SC, &sc);
		if (sc.racy != forms[i].racy)
			fail_msg("%s: races: %d", forms[i].name, sc.racy);
		for (outcome = 0, allowed = 0; outcome < LITMUS_OUTCOMES; outcome++) {
			bool allows = litmus_release_allows(&litmus, &sc, outcome);

			allowed += allows;
			assert_true(allows || !litmus_has(&sc, outcome));
			assert_false(allows && litmus_holds(litmus.form->forbidden, outcome));
		}
		assert_true(sc.racy ? allowed >= sc.count : allowed == sc.count);
	}
	parse(find("LB"), LITMUS_ALONE, &litmus);
	litmus_explore(&litmus, LITMUS_SC, &sc);
	/* a=1 b=1 X=1 Y=1; then a=1 b=0; then a=2, which no role stores */
	assert_false(litmus_release_allows(&litmus, &sc, 0x5005));
	assert_true(litmus_release_allows(&litmus, &sc, 0x5001));
	assert_false(litmus_release_allows(&litmus, &sc, 0x5002));
}

static void texts(void **state)
{
	static const char *const wrong[] = {
		"w=1", "x=3", "a=w", "g=x", "x", "x=", "!6", "(3", ")3", "% x=1",
		"x=1 | x=1 | x=1 | x=1 | x=1", "# x=1 | x=2",
		"x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1 x=1",
	};
	struct litmus_form form = { .name = "wrong" };
	struct litmus litmus;
	char text[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		form.programs = wrong[i];
		if (!litmus_parse(&form, LITMUS_ALONE, &litmus))
			fail_msg("%s is right", wrong[i]);
	}
	parse(find("R"), LITMUS_ALONE, &litmus);
	litmus_print(&litmus, 1 | 1 << 12 | 2 << 14, text, sizeof(text));
	assert_string_equal(text, " a=1 X=1 Y=2");
	assert_true(litmus_holds("a=0 or Y=2 a=1", 1 | 1 << 12 | 2 << 14));
	assert_false(litmus_holds("a=0 or Y=2 a!1", 1 | 1 << 12 | 2 << 14));
	assert_false(litmus_holds("g=1", 0x15555));
	assert_true(litmus_is_sane(&litmus, 1 | 1 << 12 | 2 << 14));
	/* No store to Y arrived; no role stores 2 to X */
	assert_false(litmus_is_sane(&litmus, 1 | 1 << 12));
	assert_false(litmus_is_sane(&litmus, 1 | 2 << 12 | 2 << 14));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms_by_hand),
		cmocka_unit_test(forms_without_order),
		cmocka_unit_test(store_buffers),
		cmocka_unit_test(added_synchronisation),
		cmocka_unit_test(races),
		cmocka_unit_test(texts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
