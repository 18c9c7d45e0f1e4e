/* SPDX-License-Identifier: GPL-2.0 */
/* The counters of kdsmctl stats */
#ifndef GUEST_COUNTER_H
#define GUEST_COUNTER_H

#include <json-c/json.h>

#include "guest.h"

/* Return a counter that this node keeps about a node */
static inline int64_t guest_counter(unsigned int about, const char *name)
{
	FILE *pipe = popen("kdsmctl stats --json", "re");
	static char text[1 << 18];
	struct json_object *stats, *row;
	int64_t value = -1;
	size_t length;

	if (!pipe)
		guest_die("kdsmctl", -errno);
	length = fread(text, 1, sizeof(text) - 1, pipe);
	text[length] = '\0';
	pclose(pipe);
	stats = json_tokener_parse(text);
	row = json_object_array_get_idx(json_object_object_get(stats, "nodes"), about);
	if (row)
		value = json_object_get_int64(json_object_object_get(row, name));
	json_object_put(stats);
	return value;
}

#endif /* GUEST_COUNTER_H */
