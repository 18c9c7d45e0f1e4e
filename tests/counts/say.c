// SPDX-License-Identifier: GPL-2.0
/*
 * Passes its standard input to plugin.c, one byte with each no-op. Without the plugin this
 * program has no effect.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "kdsm-bench/mark.h"

/* A function for one byte: nopl disp32(%rax), ret */
struct function {
	uint8_t nop[3], byte, magic[3], ret;
};

int main(void)
{
	struct function *functions;
	int byte;

	functions = mmap(NULL, 256 * sizeof(*functions), PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (functions == MAP_FAILED) {
		perror("say");
		return 1;
	}
	for (byte = 0; byte < 256; byte++)
		functions[byte] = (struct function){
			.nop = { 0x0f, 0x1f, 0x80 },
			.byte = byte,
			.magic = { MARK_MAGIC & 0xff, MARK_MAGIC >> 8 & 0xff, MARK_MAGIC >> 16 },
			.ret = 0xc3,
		};
	while ((byte = getchar()) != EOF)
		((void (*)(void))&functions[byte])();
	return 0;
}
