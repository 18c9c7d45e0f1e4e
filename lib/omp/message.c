// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages to the user of a program. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "internal.h"

static void print(const char *format, va_list list)
{
	char text[512];

	vsnprintf(text, sizeof(text), format, list);
	/* One call, so that messages of several threads do not mix */
	dprintf(STDERR_FILENO, "libkdsm-omp: %s\n", text);
}

void ko_warn(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	print(format, list);
	va_end(list);
}

void ko_fatal(const char *format, ...)
{
	static bool ended;
	va_list list;

	/* Threads of a team meet the same error together: one message suffices. */
	while (__atomic_exchange_n(&ended, true, __ATOMIC_SEQ_CST))
		pause();
	va_start(list, format);
	print(format, list);
	va_end(list);
	/* Destructors of the program must not run while its other threads use what they destroy. */
	_exit(EXIT_FAILURE);
}

void ko_unsupported(const char *what)
{
	ko_fatal("%s is not supported", what);
}
