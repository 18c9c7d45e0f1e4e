// SPDX-License-Identifier: GPL-2.0
/* kdsm_open(), and the properties of a struct kdsm */
#include <fcntl.h>
#include <unistd.h>
#include "unit.h"

static void open_local(void **state)
{
	char location[KDSM_LOCATION_SIZE] = "x";
	struct kdsm_counts counts = { .argsz = sizeof(counts) };
	struct kdsm *kdsm;

	(void)state;
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &kdsm), 0);
	assert_int_equal(kdsm_location(kdsm, 1, location), -EINVAL);
	assert_int_equal(kdsm_location(kdsm, 0, location), 0);
	assert_string_equal(location, "");
	assert_int_equal(kdsm_node(kdsm), 0);
	assert_int_equal(kdsm_nodes(kdsm), 1);
	assert_int_equal(kdsm_domain(kdsm), KDSM_DOMAIN_SW);
	assert_int_equal(kdsm_is_local(kdsm), 1);
	assert_string_equal(kdsm_cluster_name(kdsm), "local");
	memset(&counts, 0xff, sizeof(counts));
	counts.argsz = sizeof(counts);
	kdsm_counts(kdsm, &counts);
	assert_int_equal(counts.get | counts.put | counts.cas | counts.faa | counts.am |
			 counts.bytes | counts.calls, 0);
	kdsm_close(kdsm);
}

static void open_bad(void **state)
{
	struct kdsm *kdsm = (void *)1;

	(void)state;
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, NULL), -EINVAL);
	assert_int_equal(kdsm_open(1U << 31, &kdsm), -EINVAL);
	assert_null(kdsm);
	kdsm_close(NULL);
}

/* Without the module: -ENOENT, or the local backend if the caller allows it */
static void open_absent(void **state)
{
	struct kdsm *kdsm;

	(void)state;
	if (!access(KDSM_DEVICE, F_OK))
		skip();
	assert_int_equal(kdsm_open(0, &kdsm), -ENOENT);
	assert_null(kdsm);
	assert_int_equal(kdsm_open(KDSM_OPEN_ALLOW_LOCAL, &kdsm), 0);
	assert_int_equal(kdsm_is_local(kdsm), 1);
	kdsm_close(kdsm);
}

/* Two clusters in one program are independent. */
static void two_clusters(void **state)
{
	struct kdsm *a, *b;
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = 4096 };
	struct kdsm_region *ra, *rb;

	(void)state;
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &a), 0);
	assert_int_equal(kdsm_open(KDSM_OPEN_LOCAL, &b), 0);
	/* Each struct kdsm has names of its own. */
	assert_int_equal(kdsm_region_open(a, "x", &attr, &ra), 0);
	assert_int_equal(kdsm_region_open(b, "x", NULL, &rb), -ENOENT);
	assert_int_equal(kdsm_region_open(b, "x", &attr, &rb), 0);
	assert_ptr_not_equal(kdsm_region_part(ra), kdsm_region_part(rb));
	assert_ptr_equal(kdsm_region_cluster(rb), b);
	kdsm_region_close(ra);
	kdsm_region_close(rb);
	kdsm_close(a);
	kdsm_close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_local),
		cmocka_unit_test(open_bad),
		cmocka_unit_test(open_absent),
		cmocka_unit_test(two_clusters),
	};

	return UNIT_RUN(tests);
}
