// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Results of tasks, as messages that one put brings whole.
 *
 * What a put writes appears in any order, byte by byte on some devices. The receiver
 * zeroes the place before it lets anybody put to it, and no byte of a message is zero:
 * each has 7 bits of content and the top bit. So when all bytes are there, all have been
 * written, and nothing of the put is left that could come later and hit what the place is
 * used for next. No checksum, no flag behind it and no order is needed; it costs one
 * byte in eight.
 */
#include <string.h>
#include "internal.h"

#define CONTENT 7	/* bytes in a word */

unsigned int kd_task_words(size_t bytes)
{
	return bytes ? (bytes + CONTENT - 1) / CONTENT : 1;
}

void kd_task_encode(uint64_t *words, const void *from, size_t bytes)
{
	const uint8_t *rest = from;
	uint64_t content, word;
	size_t n;
	int i;

	do {
		n = bytes < CONTENT ? bytes : CONTENT;
		content = 0;
		memcpy(&content, rest, n);
		for (word = 0, i = 0; i < 8; i++)
			word |= (0x80 | (content >> 7 * i & 0x7f)) << 8 * i;
		*words++ = word;
		rest += n;
		bytes -= n;
	} while (bytes);
}

void kd_task_decode(void *to, const uint64_t *words, size_t bytes)
{
	uint8_t *rest = to;
	uint64_t content;
	size_t n;
	int i;

	for (; bytes; words++) {
		n = bytes < CONTENT ? bytes : CONTENT;
		for (content = 0, i = 0; i < 8; i++)
			content |= (*words >> 8 * i & 0x7f) << 7 * i;
		memcpy(rest, &content, n);
		rest += n;
		bytes -= n;
	}
}

bool kd_task_arrived(uint64_t *to, const void *place, unsigned int words)
{
	const uint8_t *bytes = place;
	size_t i;
	uint8_t byte;

	for (i = 0; i < words * sizeof(*to); i++) {
		byte = __atomic_load_n(&bytes[i], __ATOMIC_ACQUIRE);
		if (!byte)
			return false;
		((uint8_t *)to)[i] = byte;
	}
	return true;
}
