// SPDX-License-Identifier: GPL-2.0
/*
 * Small helps for what is printed: JSON by json-c, and names of numbers.
 */
#include <stdio.h>

#include "print.h"

void json_text(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

void json_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

void json_print(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
}

const char *name_of(const char *const *names, size_t count, uint64_t value)
{
	return value < count && names[value] ? names[value] : "?";
}
