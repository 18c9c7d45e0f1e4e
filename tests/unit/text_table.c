// SPDX-License-Identifier: GPL-2.0
/* Tables that tools print */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/table.h"

static const struct column columns[] = {
	{ "NAME", TABLE_LEFT, 0 },
	{ "SIZE", TABLE_RIGHT, 0 },
	{ "KIND", TABLE_LEFT, 0 },
	{ 0 }
};

static const struct column fixed[] = {
	{ "what", TABLE_LEFT, 8 },
	{ "us", TABLE_RIGHT, 6 },
	{ "as wide", TABLE_RIGHT, 7 },
	{ 0 }
};

static int saved = -1;

/* Redirect stdout to a file, until captured(). */
static void capture(void)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	assert_true(saved >= 0 && dup2(fileno(file), STDOUT_FILENO) == STDOUT_FILENO);
	fclose(file);
}

static void captured(const char *expected)
{
	char text[1000] = "";
	ssize_t length;

	fflush(stdout);
	length = pread(STDOUT_FILENO, text, sizeof(text) - 1, 0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_true(length >= 0);
	assert_string_equal(text, expected);
}

static void columns_are_as_wide_as_cells(void **state)
{
	struct table *table = table_new(columns);

	(void)state;
	table_cell(table, "%s", "memory");
	table_cell(table, "%d", 7);
	table_cell(table, "%s", "release");
	table_cell(table, "x");
	table_cell(table, "%s", "1234567");
	table_cell(table, "partitioned");
	capture();
	table_print(table);
	captured("NAME       SIZE  KIND\n"
		 "memory        7  release\n"
		 "x       1234567  partitioned\n");
	table_free(table);
}

static void names_are_printed_without_rows(void **state)
{
	struct table *table = table_new(columns);

	(void)state;
	capture();
	table_print(table);
	table_print(table);
	captured("NAME  SIZE  KIND\n");
	table_free(table);
}

/* Column names made at run time, and characters that must not reach a terminal */
static void made_columns(void **state)
{
	struct table *table = table_new(NULL);

	(void)state;
	table_column(table, TABLE_RIGHT, 0, "NODE %u", 17);
	table_column(table, TABLE_LEFT, 0, "NAME");
	table_cell(table, "0");
	table_cell(table, "a\033[2Jb\nc");
	capture();
	table_print(table);
	captured("NODE 17  NAME\n"
		 "      0  a\\x1b[2Jb\\x0ac\n");
	table_free(table);
}

static void rows_are_printed_as_they_come(void **state)
{
	struct table *table = table_new(fixed);

	(void)state;
	capture();
	table_cell(table, "get");
	table_cell(table, "%.2f", 1.5);
	table_cell(table, "3");
	table_print(table);
	table_cell(table, "put");
	table_cell(table, "%.2f", 123.456);
	table_cell(table, "4");
	table_cell(table, "cas");
	table_cell(table, "1");
	table_cell(table, "12345");
	table_print(table);
	table_print(table);
	captured("what          us  as wide\n"
		 "get         1.50        3\n"
		 "put       123.46        4\n"
		 "cas            1    12345\n");
	table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_cells),
		cmocka_unit_test(names_are_printed_without_rows),
		cmocka_unit_test(made_columns),
		cmocka_unit_test(rows_are_printed_as_they_come),
	};

	setlocale(LC_CTYPE, "");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
