// SPDX-License-Identifier: GPL-2.0
/* Tables as text, see table.h. */
#include <err.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libsmartcols/libsmartcols.h>

#include "common/table.h"

struct table {
	struct libscols_table *table;
	struct libscols_line *row;	/* of the next cell */
	struct libscols_line *first;	/* row that is not printed yet */
	unsigned int columns, cells;	/* cells of row */
	bool printed;			/* the names of columns have been printed */
};

static void *check(void *memory)
{
	if (!memory)
		errx(EXIT_FAILURE, "out of memory");
	return memory;
}

static char *text_of(const char *format, va_list args)
{
	char *text;

	return check(vasprintf(&text, format, args) < 0 ? NULL : text);
}

static void add_column(struct table *table, enum table_align align, unsigned int width,
		       const char *name)
{
	int flags = align == TABLE_RIGHT ? SCOLS_FL_RIGHT : 0;

	/* Without the flag, libsmartcols takes the width of the name if cells are narrower. */
	if (width > strlen(name))
		flags |= SCOLS_FL_STRICTWIDTH;
	check(scols_table_new_column(table->table, name, width, flags));
	table->columns++;
}

struct table *table_new(const struct column *columns)
{
	struct table *table = check(calloc(1, sizeof(*table)));

	table->table = check(scols_new_table());
	scols_table_set_column_separator(table->table, "  ");
	/* Do not cut wide tables to the width of the terminal. */
	scols_table_set_termforce(table->table, SCOLS_TERMFORCE_NEVER);
	for (; columns && columns->name; columns++)
		add_column(table, columns->align, columns->width, columns->name);
	return table;
}

void table_free(struct table *table)
{
	scols_unref_table(table->table);
	free(table);
}

void table_column(struct table *table, enum table_align align, unsigned int width,
		  const char *format, ...)
{
	va_list args;
	char *name;

	va_start(args, format);
	name = text_of(format, args);
	va_end(args);
	add_column(table, align, width, name);
	free(name);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list args;
	char *text;

	if (table->cells == 0) {
		table->row = check(scols_table_new_line(table->table, NULL));
		if (!table->first)
			table->first = table->row;
	}
	va_start(args, format);
	text = text_of(format, args);
	va_end(args);
	/* The row owns the text from here on. */
	if (scols_line_refer_data(table->row, table->cells, text))
		errx(EXIT_FAILURE, "out of memory");
	table->cells = (table->cells + 1) % table->columns;
}

/* libsmartcols prints nothing if there are no rows: print the names of columns as one. */
static void print_names(struct table *table)
{
	struct libscols_line *row = check(scols_table_new_line(table->table, NULL));
	unsigned int i;

	for (i = 0; i < table->columns; i++) {
		struct libscols_column *column = scols_table_get_column(table->table, i);

		if (scols_line_set_data(row, i, scols_column_get_name(column)))
			errx(EXIT_FAILURE, "out of memory");
	}
	scols_table_enable_noheadings(table->table, 1);
	scols_table_print_range(table->table, row, row);
	scols_table_remove_line(table->table, row);
	putchar('\n');
}

void table_print(struct table *table)
{
	if (table->first) {
		scols_table_print_range(table->table, table->first, table->row);
		putchar('\n');
	} else if (!table->printed) {
		print_names(table);
	}
	table->first = NULL;
	table->printed = true;
}
