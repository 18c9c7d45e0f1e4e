// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The store of a node among several nodes. Steps of BDD operations take about 0.15 us, and remote
 * operations 2 to 3 us. So every node searches in a store of its own, as if it were alone, and
 * nodes exchange whole sets of states (windows_exchange.c).
 */
#include "internal.h"

int kd_own_open(struct kd_search *s, uint64_t bytes)
{
	struct kdsm_region_attr attr = { .argsz = sizeof(attr), .size = bytes };
	struct kd_own *own = &s->own;
	int r;

	r = kdsm_open(KDSM_OPEN_LOCAL | KDSM_OPEN_ALONE, &own->kdsm);
	if (r == 0)
		r = kdsm_region_open(own->kdsm, "kdsm-reach", &attr, &own->region);
	if (r == 0)
		r = kd_gang_join(&own->gang, own->region, 0, s->options->timeout);
	s->gang = &own->gang;
	return r;
}

void kd_own_close(struct kd_search *s)
{
	kd_gang_leave(&s->own.gang);
	kdsm_region_close(s->own.region);
	kdsm_close(s->own.kdsm);
}
