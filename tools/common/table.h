/* SPDX-License-Identifier: GPL-2.0 */
/* Tables as text, by libsmartcols. No function here fails: without memory the process ends. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

struct table;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct column {
	const char *name;
	enum table_align align;
	unsigned int width;	/* in characters; 0: as wide as its cells */
};

/* columns end with one without a name; NULL: table_column() adds them. */
struct table *table_new(const struct column *columns);
void table_free(struct table *table);

/* Add a column, before the first cell. A table that is printed while it grows needs widths. */
void table_column(struct table *table, enum table_align align, unsigned int width,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Add the next cell, row by row. */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Print the rows since the last call to stdout, and before the first row the names of columns. */
void table_print(struct table *table);

#endif /* COMMON_TABLE_H */
