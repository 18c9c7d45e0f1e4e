/* SPDX-License-Identifier: GPL-2.0 */
/* Shorthands over json-c; strings are valid UTF-8 whatever bytes they come from. */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdint.h>
#include <json-c/json.h>

/* text, with U+FFFD for each byte that is not part of a character in UTF-8. */
struct json_object *json_string(const char *text);

void json_text(struct json_object *object, const char *key, const char *value);
void json_number(struct json_object *object, const char *key, uint64_t value);

#endif /* COMMON_JSON_H */
