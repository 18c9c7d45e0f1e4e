/* SPDX-License-Identifier: GPL-2.0 */
/* Node 1 of hostile-wire, the node that is attacked */
#ifndef KDSM_TESTS_VICTIM_H
#define KDSM_TESTS_VICTIM_H

#include <stdint.h>
#include <json-c/json.h>

#define QUESTIONS	18816	/* port of the ordinary socket */
#define THE_END		18817	/* port; connections to it end when the test does */

/*
 * Wait until that many nodes have connected to THE_END, then answer questions until the
 * node that asks closes its connection. Return an exit status.
 */
int answer_questions(unsigned int others);

/* Return kdsmctl status --json of this node; end the program if that fails. */
struct json_object *own_status(void);
int64_t member(struct json_object *object, const char *key);

#endif /* KDSM_TESTS_VICTIM_H */
