/* SPDX-License-Identifier: GPL-2.0 */
/* Real threads that compute at a price; see pace.c. */
#ifndef TESTS_SEARCH_PACE_H
#define TESTS_SEARCH_PACE_H

#include <stdint.h>

/* Let the steps of the calling thread, and of threads that it starts, take step ns each. */
void pace_begin(uint64_t step);

#endif
