// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Encoding of the results of tasks, as messages whose arrival the receiver can see. result.c
 * sends and receives them.
 *
 * The bytes of a put become visible in any order, on some devices one by one. The receiver
 * zeroes the place before another node may put to it, and no byte of a message is zero: each
 * byte carries 7 bits of content and a set top bit. So when no byte of the place is zero, the
 * whole put has been written, and no byte of the put can arrive later and overwrite the next
 * use of the place. The encoding needs no checksum, no flag and no order of writes, and costs
 * one byte in eight.
 */
#include <string.h>
#include "internal.h"

#define CONTENT 7	/* Bytes of content in a word of 8 bytes */

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
