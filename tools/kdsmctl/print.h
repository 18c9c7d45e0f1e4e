/* SPDX-License-Identifier: GPL-2.0 */
/* Output of JSON, and names of numbers. */
#ifndef KDSMCTL_PRINT_H
#define KDSMCTL_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <json-c/json.h>

/* Print object as one line on stdout. */
void json_print(struct json_object *object);

/* Return names[value], or "?" if there is no name, because the module is newer. */
const char *name_of(const char *const *names, size_t count, uint64_t value);

#endif /* KDSMCTL_PRINT_H */
