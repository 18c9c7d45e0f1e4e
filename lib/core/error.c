// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors: the text of each thread's last error, and the meaning of each errno in libkdsm. A call
 * that fails because of an argument or an object gives the text where it detects the error, because
 * only that place knows which one it is.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/core.h"

/* Size of the text of an error with its NUL, in bytes; a longer text is cut */
#define TEXT_SIZE	320

static _Thread_local struct {
	int error;		/* 0: there is no text */
	char text[TEXT_SIZE];
} last;

int kd_because(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(last.text, sizeof(last.text), format, arguments);
	va_end(arguments);
	last.error = error;
	return error;
}

int kd_no_reason(int error)
{
	if (error < 0)
		last.error = 0;
	return error;
}

const char *kdsm_strerror(int error)
{
	static const struct {
		int error;
		const char *text;
	} meaning[] = {
		{ 0, "success" },
		{ EADDRINUSE, "this process uses the address of the region for another mapping" },
		{ ECANCELED, "the job, or what the call would wait for, was ended" },
		{ EDEADLK, "the caller would wait for itself" },
		{ EHOSTDOWN, "a node cannot be reached" },
		{ EINVAL, "an argument is invalid, or does not fit the object" },
		{ EIO, "a connection broke, or memory holds what the library did not store" },
		{ ENETDOWN, "the cluster is not up on this node" },
		{ ENOTRECOVERABLE, "a holder unlocked the lock without making it consistent" },
		{ ENOTTY, "the module is older than this library" },
		{ EOPNOTSUPP, "the region has another policy than the call needs" },
		{ EOWNERDEAD, "a thread, process or node died that held the lock or took part" },
		{ EPIPE, "the barrier is broken" },
		{ EPROTO, "the other side has another version, or memory was overwritten" },
		{ ERANGE, "the bytes are not inside the region or part" },
		{ ESTALE, "other nodes took this node for dead, and discarded blocks" },
		{ ETIMEDOUT, "the time was over, or a node did not answer in time" },
		{ EUSERS, "the job has as many workers or processes as it may have" },
	};
	size_t i;

	error = abs(error);
	for (i = 0; i < sizeof(meaning) / sizeof(meaning[0]); i++)
		if (meaning[i].error == error)
			return meaning[i].text;
	return strerror(error);
}

const char *kdsm_error(int error)
{
	return error && last.error == -abs(error) ? last.text : kdsm_strerror(error);
}
