/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Node 1 of hostile-wire: the side that is attacked.
 */
#ifndef KDSM_TESTS_VICTIM_H
#define KDSM_TESTS_VICTIM_H

#include <stdint.h>
#include <json-c/json.h>

#define QUESTIONS	18816	/* port of the ordinary socket */
#define THE_END		18817	/* who connects there hears when all is over */

/*
 * Wait for so many that wait for the end, then serve questions until who asks them
 * goes: an exit status.
 */
int answer_questions(unsigned int others);

/* kdsmctl status --json of this node; ends the program if that fails. */
struct json_object *own_status(void);
int64_t member(struct json_object *object, const char *key);

#endif /* KDSM_TESTS_VICTIM_H */
