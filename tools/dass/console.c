// SPDX-License-Identifier: GPL-2.0
/* The console of the node on which a thread runs: its standard input and output */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

void console_out(int64_t value)
{
	printf("%" PRId64 "\n", value);
}

/* Take a line, without spaces around the number. */
int console_in(struct thread *thread, int64_t *value)
{
	size_t room = 0, length;
	char *line = NULL, *text;
	int ret;

	fflush(stdout);
	if (getline(&line, &room, stdin) < 0) {
		free(line);
		return thread_fail(thread, "the input has ended");
	}
	text = line + strspn(line, " \t");
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	ret = integer_parse(text, length, value);
	if (ret)
		thread_fail(thread, "the input '%.*s' is not an integer of 64 bits",
			    (int)(length < 32 ? length : 32), text);
	free(line);
	return ret;
}
