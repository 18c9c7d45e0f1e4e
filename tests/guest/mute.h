/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cut off the packets that this node sends: it gets wrong hardware addresses for all other
 * nodes. It still receives their packets, which is a harder case than silence in both
 * directions.
 */
#ifndef KDSM_TESTS_MUTE_H
#define KDSM_TESTS_MUTE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void mute(bool on)
{
	const char *command = on ?
		"while read -r word id address rest; do"
		"	[ \"$word\" != node ] || [ \"$id\" = \"$KDSM_NODE\" ] || ip neighbour"
		"	replace \"$address\" lladdr 02:00:00:00:00:99 nud permanent dev eth0;"
		" done <\"$KDSM_CONFIG\"" :
		"ip neighbour flush dev eth0 nud permanent";

	if (system(command)) {
		puts("Bail out! cannot change the neighbours");
		exit(EXIT_FAILURE);
	}
}

#endif /* KDSM_TESTS_MUTE_H */
