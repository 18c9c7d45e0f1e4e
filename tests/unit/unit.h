/* SPDX-License-Identifier: GPL-2.0 */
/* Common setup of the library's unit tests: cmocka, and a region of the local backend */
#ifndef UNIT_H
#define UNIT_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* Last, because cmocka.h needs the headers above. */
#include <cmocka.h>
#include <kdsm/kdsm.h>

#define UNIT_PART 65536

struct unit {
	struct kdsm *kdsm;
	struct kdsm_region *region;	/* "unit", UNIT_PART bytes */
};

static inline int unit_setup(void **state)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = UNIT_PART };
	static struct unit unit;

	if (kdsm_open(KDSM_OPEN_LOCAL, &unit.kdsm))
		return -1;
	if (kdsm_region_open(unit.kdsm, "unit", &attr, &unit.region))
		return -1;
	*state = &unit;
	return 0;
}

static inline int unit_teardown(void **state)
{
	struct unit *unit = *state;

	kdsm_region_close(unit->region);
	kdsm_close(unit->kdsm);
	return 0;
}

#define unit_case(function) \
	cmocka_unit_test_setup_teardown(function, unit_setup, unit_teardown)

/* Threads and child processes cannot use cmocka's assertions, so they count failures. */
#define UNIT_CHECK(failures, condition) \
	((condition) ? 0 : __atomic_fetch_add(failures, 1, __ATOMIC_RELAXED))

#define UNIT_RUN(tests) \
	(cmocka_set_message_output(CM_OUTPUT_TAP), cmocka_run_group_tests(tests, NULL, NULL))

#endif /* UNIT_H */
