// SPDX-License-Identifier: LGPL-2.1-or-later
/* The variables OMP_*, and what they say about new teams. */
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "internal.h"

struct ko_settings ko_settings;

unsigned int ko_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	while (value && isspace((unsigned char)*value))
		value++;
	return value && *value ? value : NULL;
}

static void __attribute__((noreturn)) refuse(const char *name)
{
	ko_fatal("%s: \"%s\" is not supported", name, getenv(name));
}

/* Parse a number. Returns the first character behind it. */
static const char *number(const char *name, const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (end == text || *text == '-' || errno || *value > most)
		refuse(name);
	while (isspace((unsigned char)*end))
		end++;
	return end;
}

static bool read_number(const char *name, uint64_t most, uint64_t *result)
{
	const char *text = value_of(name);

	if (text && *number(name, text, most, result))
		refuse(name);
	return text;
}

/* Returns the index of a word in a list that NULL ends. *text is moved behind the word. */
static int word(const char *name, const char **text, const char *const *words)
{
	size_t length = strcspn(*text, " \t,");
	int i;

	for (i = 0; words[i]; i++)
		if (strlen(words[i]) == length && !strncasecmp(*text, words[i], length)) {
			*text += length;
			while (isspace((unsigned char)**text))
				++*text;
			return i;
		}
	refuse(name);
}

static bool read_flag(const char *name)
{
	static const char *const words[] = { "false", "true", "0", "1", NULL };
	const char *text = value_of(name);

	return text && word(name, &text, words) % 2;
}

static void read_threads(void)
{
	const char *text = value_of("OMP_NUM_THREADS");
	unsigned int level = 0;
	uint64_t value;

	while (text) {
		text = number("OMP_NUM_THREADS", text, INT32_MAX, &value);
		if (!value || (*text && *text != ','))
			refuse("OMP_NUM_THREADS");
		if (level < KO_NEST_LISTS)
			ko_settings.nested[level++] = value;
		text = *text ? text + 1 : NULL;
	}
	if (ko_settings.nested[0])
		ko_settings.icv.threads = ko_settings.nested[0];
	if (level > 1)
		ko_settings.icv.active_levels = level;
}

static void read_schedule(void)
{
	static const char *const words[] = { "static", "dynamic", "guided", "auto", NULL };
	const char *text = value_of("OMP_SCHEDULE");
	const char *colon = text ? strchr(text, ':') : NULL;

	if (!text)
		return;
	/* The modifiers monotonic and nonmonotonic: all schedules here are monotonic. */
	if (colon && (!strncasecmp(text, "monotonic", 9) || !strncasecmp(text, "nonmonotonic", 12)))
		text = colon + 1;
	ko_settings.icv.kind = KO_STATIC + word("OMP_SCHEDULE", &text, words);
	if (*text == ',')
		text = number("OMP_SCHEDULE", text + 1, INT64_MAX, &ko_settings.icv.chunk);
	if (*text)
		refuse("OMP_SCHEDULE");
}

static void read_stack(void)
{
	const char *text = value_of("OMP_STACKSIZE");
	unsigned int shift = 10;
	uint64_t value;

	if (!text)
		return;
	text = number("OMP_STACKSIZE", text, UINT64_MAX >> 31, &value);
	if (*text) {
		const char *units = "bkmg", *unit = strchr(units, tolower((unsigned char)*text));

		if (!unit || text[1])
			refuse("OMP_STACKSIZE");
		shift = (unit - units) * 10;
	}
	ko_settings.stack = value << shift;
}

static void read_bind(void)
{
	static const char *const words[] = { "false", "true", "primary", "close", "spread", "master",
					     NULL };
	const char *text = value_of("OMP_PROC_BIND");

	if (text)
		ko_settings.bind = word("OMP_PROC_BIND", &text, words);
	if (ko_settings.bind == 5)
		ko_settings.bind = 2;
	if (ko_settings.bind == 2)
		refuse("OMP_PROC_BIND");
	if (value_of("OMP_PLACES"))
		ko_warn("OMP_PLACES has no effect: OMP_PROC_BIND binds each thread to one CPU");
}

void ko_env_read(void)
{
	static const char *const policies[] = { "passive", "active", NULL };
	const char *text = value_of("OMP_WAIT_POLICY");
	uint64_t value;

	ko_settings.icv = (struct ko_icv){
		.threads = ko_processors(), .active_levels = 1, .kind = KO_DYNAMIC,
	};
	ko_settings.limit = INT32_MAX;
	if (value_of("OMP_NESTED") && read_flag("OMP_NESTED"))
		ko_settings.icv.active_levels = INT32_MAX;
	read_threads();
	read_schedule();
	read_stack();
	read_bind();
	ko_settings.icv.dynamic = read_flag("OMP_DYNAMIC");
	if (read_number("OMP_MAX_ACTIVE_LEVELS", INT32_MAX, &value))
		ko_settings.icv.active_levels = value;
	if (read_number("OMP_THREAD_LIMIT", INT32_MAX, &value)) {
		if (!value)
			refuse("OMP_THREAD_LIMIT");
		ko_settings.limit = value;
	}
	if (text)
		ko_settings.spin = word("OMP_WAIT_POLICY", &text, policies);
	if (read_flag("OMP_CANCELLATION"))
		refuse("OMP_CANCELLATION");
}

static void __attribute__((constructor)) begin(void)
{
	ko_env_read();
}
