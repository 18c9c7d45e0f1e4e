/* SPDX-License-Identifier: GPL-2.0 */
/* Functions on top of json-c that turn any bytes into strings of valid UTF-8 */
#ifndef COMMON_JSON_H
#define COMMON_JSON_H

#include <stdint.h>
#include <json-c/json.h>

/*
 * Make a string object of text, with U+FFFD for each byte that is not part of a character in
 * UTF-8. The caller owns the object.
 */
struct json_object *json_string(const char *text);

/* Add a member to an object. Without memory the process ends. */
void json_text(struct json_object *object, const char *key, const char *value);
void json_number(struct json_object *object, const char *key, uint64_t value);
void json_seconds(struct json_object *object, const char *key, double seconds);

#endif /* COMMON_JSON_H */
