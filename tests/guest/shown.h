/* SPDX-License-Identifier: GPL-2.0 */
/* The output of kdsmctl region show on this node */
#ifndef GUEST_SHOWN_H
#define GUEST_SHOWN_H

#include "guest.h"

/* Fill text, of size bytes, with the output of kdsmctl region show, with options. */
static inline void region_shown(const char *region, const char *options, char *text, size_t size)
{
	char command[128];
	size_t length = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "kdsmctl region show %s %s", region, options);
	pipe = popen(command, "r");
	if (pipe)
		length = fread(text, 1, size - 1, pipe);
	if (!length)
		guest_die(command, -EIO);
	text[length] = '\0';
	pclose(pipe);
}

/* A number that kdsmctl shows of the region; -1 if there is none. */
static inline long region_number(const char *region, const char *name)
{
	char key[64], text[4096], *at;

	region_shown(region, "--json", text, sizeof(text));
	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(text, key);
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

#endif /* GUEST_SHOWN_H */
