// SPDX-License-Identifier: GPL-2.0
/*
 * Tables for people: columns as wide as what is in them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

struct column {
	int right;
	int width;
};

struct table {
	struct column *columns;
	size_t column_count;
	char **cells;		/* the first row are the columns' names */
	size_t cell_count, cell_room;
};

static void *check(void *memory)
{
	if (!memory) {
		fprintf(stderr, "kdsmctl: out of memory\n");
		exit(EXIT_FAILURE);
	}
	return memory;
}

struct table *table_new(void)
{
	return check(calloc(1, sizeof(struct table)));
}

static void add(struct table *table, const char *format, va_list args)
{
	struct column *column;
	char *text;
	int width;

	width = vasprintf(&text, format, args);
	check(width < 0 ? NULL : text);
	if (table->cell_count == table->cell_room) {
		table->cell_room = 2 * table->cell_room + 64;
		table->cells = check(realloc(table->cells, table->cell_room *
							   sizeof(*table->cells)));
	}
	column = &table->columns[table->cell_count % table->column_count];
	if (width > column->width)
		column->width = width;
	table->cells[table->cell_count++] = text;
}

void table_column(struct table *table, int right, const char *format, ...)
{
	size_t size = (table->column_count + 1) * sizeof(*table->columns);
	va_list args;

	table->columns = check(realloc(table->columns, size));
	table->columns[table->column_count++] = (struct column){ .right = right };
	va_start(args, format);
	add(table, format, args);
	va_end(args);
}

void table_cell(struct table *table, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(table, format, args);
	va_end(args);
}

void table_print(struct table *table)
{
	for (size_t i = 0; i < table->cell_count; i++) {
		size_t at = i % table->column_count;
		int last = at == table->column_count - 1;
		int width = table->columns[at].width;

		/* Nothing hangs over on the right: no spaces before a newline. */
		if (last && !table->columns[at].right)
			width = 0;
		printf("%s%*s%s", at ? "  " : "",
		       table->columns[at].right ? width : -width,
		       table->cells[i], last ? "\n" : "");
		free(table->cells[i]);
	}
	free(table->cells);
	free(table->columns);
	free(table);
}
