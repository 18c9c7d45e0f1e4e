// SPDX-License-Identifier: GPL-2.0
/* Errors: a line of the program, and a reason */
#include <ctype.h>
#include <err.h>
#include <stdarg.h>

#include "machine.h"

static void __attribute__((format(printf, 3, 0)))
store(struct dass_error *error, unsigned int line, const char *format, va_list list)
{
	char *at;

	error->line = line;
	vsnprintf(error->reason, sizeof(error->reason), format, list);
	/* A program may have any bytes, and a terminal would obey some. */
	for (at = error->reason; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
}

int dass_fail(struct dass_error *error, unsigned int line, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	store(error, line, format, list);
	va_end(list);
	return -1;
}

void dass_warn(const char *path, const struct dass_error *error)
{
	if (error->line)
		warnx("%s:%u: %s", path, error->line, error->reason);
	else
		warnx("%s: %s", path, error->reason);
}

int thread_fail(struct thread *thread, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	store(&thread->error, thread->at->line, format, list);
	va_end(list);
	return -1;
}
