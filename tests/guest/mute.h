/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node whose packets reach nobody: it has wrong hardware addresses for the others. It
 * still hears them, which is worse than silence.
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
