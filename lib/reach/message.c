// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages for users: the one that explains an error, and warnings */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

/* Names and words of a hostile file must neither look like other lines nor control a terminal. */
static void write_line(struct kdsm_reach_message *message, const char *format, va_list args)
{
	char *c;

	vsnprintf(message->text, sizeof(message->text), format, args);
	for (c = message->text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
}

void kd_say(struct kdsm_reach_message *message, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(message, format, args);
	va_end(args);
}

void kd_search_warn(struct kd_search *s, const char *format, ...)
{
	struct kdsm_reach_message message;
	va_list args;

	va_start(args, format);
	write_line(&message, format, args);
	va_end(args);
	if (!s->options->warn)
		return;
	kd_mutex_lock(&s->progress.calls);
	s->options->warn(s->options->context, message.text);
	kd_mutex_unlock(&s->progress.calls);
}
