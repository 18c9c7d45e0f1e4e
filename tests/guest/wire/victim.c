// SPDX-License-Identifier: GPL-2.0
/* Node 1 of hostile-wire: reports the counters of its module through an ordinary socket. */
#include "../hostile.h"
#include "meeting.h"
#include "victim.h"

static int log_lines(void)
{
	FILE *pipe = popen("dmesg | grep -c 'kdsm: refused a connection'", "re");
	int lines = 0;

	if (!pipe || fscanf(pipe, "%d", &lines) != 1)
		tap_bail("dmesg failed");
	pclose(pipe);
	return lines;
}

static void tell_counters(FILE *stream)
{
	/* In the order of struct counters */
	static const char *const reasons[] = {
		"cluster", "version", "node", "message", "key", "proof", "port", "silent",
	};

	struct json_object *status = own_status();
	struct json_object *refused = json_object_object_get(status, "refused");

	for (unsigned int i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		fprintf(stream, "%jd ", (intmax_t)member(refused, reasons[i]));
	fprintf(stream, "%d\n", log_lines());
	json_object_put(status);
}

int answer_questions(FILE *stream)
{
	int question;

	while ((question = fgetc(stream)) == '?' || question == '>') {
		if (question == '?') {
			tell_counters(stream);
		} else {
			meeting_pass();
			fputc('.', stream);
		}
	}
	return EXIT_SUCCESS;
}
