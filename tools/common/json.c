// SPDX-License-Identifier: GPL-2.0
/* JSON, see json.h. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"

static const char replacement[] = "\xef\xbf\xbd";	/* U+FFFD */

/*
 * Number of bytes of the character at the beginning of text. 0: there is no valid character,
 * because the first byte begins none, bytes are missing, or the bytes are an overlong form, a
 * surrogate, or above U+10FFFF.
 */
static unsigned int character_length(const unsigned char *text)
{
	unsigned int length = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 :
			      *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;
	unsigned char low = *text == 0xe0 ? 0xa0 : *text == 0xf0 ? 0x90 : 0x80;
	unsigned char high = *text == 0xed ? 0x9f : *text == 0xf4 ? 0x8f : 0xbf;
	unsigned int i;

	for (i = 1; i < length; i++) {
		if (text[i] < low || text[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

struct json_object *json_string(const char *text)
{
	struct json_object *string;
	unsigned int length;
	char *copy, *to;

	copy = malloc(strlen(text) * (sizeof(replacement) - 1) + 1);
	if (!copy)
		errx(EXIT_FAILURE, "out of memory");
	for (to = copy; *text; ) {
		length = character_length((const unsigned char *)text);
		if (length)
			to = mempcpy(to, text, length);
		else
			to = stpcpy(to, replacement);
		text += length ? length : 1;
	}
	*to = '\0';
	string = json_object_new_string(copy);
	free(copy);
	return string;
}

void json_text(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_string(value));
}

void json_seconds(struct json_object *object, const char *key, double seconds)
{
	char text[64];

	snprintf(text, sizeof(text), "%.6f", seconds);
	json_object_object_add(object, key, json_object_new_double_s(seconds, text));
}

void json_number(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}
