/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small helps for what is printed: JSON by json-c, and names of numbers.
 */
#ifndef KDSMCTL_PRINT_H
#define KDSMCTL_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

void json_text(struct json_object *object, const char *key, const char *value);
void json_number(struct json_object *object, const char *key, uint64_t value);
/* One object, one line on stdout. */
void json_print(struct json_object *object);

/* names[value], or "?" where a newer module says what we do not know. */
const char *name_of(const char *const *names, size_t count, uint64_t value);

#endif /* KDSMCTL_PRINT_H */
