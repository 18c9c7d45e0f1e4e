// SPDX-License-Identifier: GPL-2.0
/*
 * Pictures of searches: they are well-formed whatever the values are, and a long search loses
 * points evenly.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <expat.h>

#include "kdsm-reach/plot.h"

struct found {
	unsigned int lines, circles, outside;
	char text[4096];
};

static void element(void *data, const char *name, const char **at)
{
	struct found *found = data;
	double x, y;

	if (!strcmp(name, "circle")) {
		found->circles++;
		x = atof(at[1]);
		y = atof(at[3]);
		found->outside += !(x >= 0 && x <= 800 && y >= 0 && y <= 700);
	}
	for (; *at; at += 2) {
		if (strcmp(at[0], "d") || strcmp(name, "path"))
			continue;
		assert_null(strstr(at[1], "nan"));
		assert_null(strstr(at[1], "inf"));
		for (name = at[1]; (name = strchr(name, 'L')); name++)
			found->lines++;
		name = "";
	}
}

static void text(void *data, const char *bytes, int length)
{
	struct found *found = data;

	if (strlen(found->text) + length < sizeof(found->text))
		strncat(found->text, bytes, length);
}

/* Write the picture, and read it as XML. */
static void check(const struct plot *plot, const char *title, struct found *found)
{
	static char file[1 << 20];
	char path[] = "/tmp/kdsm-plot.XXXXXX";
	XML_Parser parser = XML_ParserCreate(NULL);
	int fd = mkstemp(path);
	ssize_t size;

	memset(found, 0, sizeof(*found));
	assert_true(fd >= 0);
	assert_int_equal(plot_write(plot, path, title), 0);
	size = read(fd, file, sizeof(file));
	assert_in_range(size, 1, sizeof(file) - 1);
	close(fd);
	unlink(path);
	XML_SetUserData(parser, found);
	XML_SetStartElementHandler(parser, element);
	XML_SetCharacterDataHandler(parser, text);
	if (!XML_Parse(parser, file, size, 1))
		fail_msg("%s", XML_ErrorString(XML_GetErrorCode(parser)));
	XML_ParserFree(parser);
}

static struct plot plot;

static void nothing(void **state)
{
	struct found found;

	(void)state;
	memset(&plot, 0, sizeof(plot));
	check(&plot, "a <&> \"b\"\xff\x01", &found);
	assert_non_null(strstr(found.text, "a <&> \"b\"??"));
	assert_int_equal(found.circles, 0);
}

static void extremes(void **state)
{
	struct found found;
	mpz_t states;

	(void)state;
	memset(&plot, 0, sizeof(plot));
	mpz_init(states);
	plot_add(&plot, 0, states, 0, 0);
	mpz_ui_pow_ui(states, 10, 100000);
	plot_add(&plot, 1, states, UINT64_MAX, 0.000001);
	plot_add(&plot, UINT64_MAX, states, 1, 1e12);
	check(&plot, "", &found);
	assert_int_equal(found.circles, 9);
	assert_int_equal(found.outside, 0);
	assert_int_equal(found.lines, 6);
	/* in another order the level begins again */
	plot_add(&plot, 1, states, 1, 1);
	check(&plot, "", &found);
	assert_int_equal(found.lines, 6);
	mpz_clear(states);
}

static void many_levels(void **state)
{
	struct found found;
	unsigned int i;
	mpz_t states;

	(void)state;
	memset(&plot, 0, sizeof(plot));
	mpz_init(states);
	for (i = 1; i <= 1000000; i++) {
		mpz_set_ui(states, i);
		plot_add(&plot, i, states, i, i);
	}
	plot_end(&plot, 1000001, states, 5, 1e6);
	assert_in_range(plot.count, PLOT_POINTS / 2, PLOT_POINTS);
	for (i = 2; i < plot.count - 1; i++)
		assert_true(plot.point[i].level - plot.point[i - 1].level ==
			    plot.point[1].level - plot.point[0].level);
	assert_true(plot.point[plot.count - 1].level == 1000001);
	assert_true(fabs(plot.point[plot.count - 1].states - 6) < 0.000001);
	plot_end(&plot, 1000001, states, 7, 1e6);
	assert_true(plot.point[plot.count - 1].nodes == 7);
	check(&plot, "counter", &found);
	assert_int_equal(found.circles, 0);
	assert_int_equal(found.lines, 3 * (plot.count - 1));
	mpz_clear(states);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing),
		cmocka_unit_test(extremes),
		cmocka_unit_test(many_levels),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
