// SPDX-License-Identifier: GPL-2.0
/* Strings of JSON output are UTF-8, whatever bytes a name contains. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/json.h"

#define R "\xef\xbf\xbd"	/* U+FFFD */

static void is(const char *text, const char *expected)
{
	struct json_object *string = json_string(text);

	assert_string_equal(json_object_get_string(string), expected);
	json_object_put(string);
}

static void characters_stay(void **state)
{
	static const char *const texts[] = {
		"", "plain \"quoted\"\n", ("gr\xc3\xb6\xc3\x9f" "er"), "\xc2\x80", "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf4\x8f\xbf\xbf",
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		is(texts[i], texts[i]);
}

static void other_bytes_are_replaced(void **state)
{
	(void)state;
	is("\xff", R);
	is("a\x80z", "a" R "z");
	is("\xc3", R);
	is("\xc3(", R "(");
	is("\xe2\x82", R R);
	is("\xe2\x82\xc3\xb6", R R "\xc3\xb6");
	is("\xc0\xaf", R R);			/* overlong */
	is("\xc1\xbf", R R);
	is("\xe0\x9f\xbf", R R R);
	is("\xf0\x8f\xbf\xbf", R R R R);
	is("\xed\xa0\x80", R R R);		/* a surrogate */
	is("\xf4\x90\x80\x80", R R R R);	/* above U+10FFFF */
	is("\xf5\x80\x80\x80", R R R R);
}

static void values(void **state)
{
	struct json_object *object = json_object_new_object();

	(void)state;
	json_text(object, "name", "a\xfe");
	json_number(object, "size", UINT64_MAX);
	assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN),
			    "{\"name\":\"a" R "\",\"size\":18446744073709551615}");
	json_object_put(object);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_stay),
		cmocka_unit_test(other_bytes_are_replaced),
		cmocka_unit_test(values),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
