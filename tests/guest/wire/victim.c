// SPDX-License-Identifier: GPL-2.0
/* Node 1 of hostile-wire: reports the counters of its module through an ordinary socket. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "../hostile.h"
#include "victim.h"

struct json_object *own_status(void)
{
	struct json_object *status = NULL;
	FILE *pipe = popen("kdsmctl status --json", "re");
	static char text[1 << 16];
	size_t length;

	if (pipe) {
		length = fread(text, 1, sizeof(text) - 1, pipe);
		text[length] = '\0';
		if (!pclose(pipe))
			status = json_tokener_parse(text);
	}
	if (!status)
		tap_bail("kdsmctl status failed");
	return status;
}

int64_t member(struct json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

static int log_lines(void)
{
	FILE *pipe = popen("dmesg | grep -c 'kdsm: refused a connection'", "re");
	int lines = 0;

	if (!pipe || fscanf(pipe, "%d", &lines) != 1)
		tap_bail("dmesg failed");
	pclose(pipe);
	return lines;
}

static int listener(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(file, (struct sockaddr *)&any, sizeof(any)) || listen(file, 64))
		tap_bail("cannot listen: %s", strerror(errno));
	return file;
}

/* Answer each question mark with one line of counters. */
int answer_questions(unsigned int others)
{
	/* In the order of struct counters */
	static const char *const reasons[] = {
		"cluster", "version", "node", "message", "key", "proof", "port", "silent",
	};
	int end = listener(THE_END), questions = listener(QUESTIONS), file;
	FILE *stream;

	/* The connections of the other nodes end with this process. */
	while (others--)
		if (accept(end, NULL, NULL) < 0)
			tap_bail("accept: %s", strerror(errno));
	file = accept(questions, NULL, NULL);
	stream = fdopen(file, "r+");
	if (!stream)
		tap_bail("nobody asks");
	setvbuf(stream, NULL, _IONBF, 0);
	while (fgetc(stream) == '?') {
		struct json_object *status = own_status();
		struct json_object *refused = json_object_object_get(status, "refused");

		for (unsigned int i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
			fprintf(stream, "%jd ", (intmax_t)member(refused, reasons[i]));
		fprintf(stream, "%d\n", log_lines());
		json_object_put(status);
	}
	return EXIT_SUCCESS;
}
