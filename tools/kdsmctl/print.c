// SPDX-License-Identifier: GPL-2.0
/* Output of JSON, and names of numbers, see print.h. */
#include <stdio.h>

#include "print.h"

void json_print(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
}

const char *name_of(const char *const *names, size_t count, uint64_t value)
{
	return value < count && names[value] ? names[value] : "?";
}
