/* SPDX-License-Identifier: GPL-2.0 */
/* Node 1 of hostile-wire, the node that is attacked */
#ifndef KDSM_TESTS_VICTIM_H
#define KDSM_TESTS_VICTIM_H

#include <stdio.h>

/*
 * Answer questions of node 0 until it closes the stream: '?' asks for the counters, '>' for the
 * turn of the other nodes. Return an exit status.
 */
int answer_questions(FILE *stream);

#endif /* KDSM_TESTS_VICTIM_H */
