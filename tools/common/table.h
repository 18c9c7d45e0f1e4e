/* SPDX-License-Identifier: GPL-2.0 */
/* Tables as text, by libsmartcols. Without memory these functions end the process. */
#ifndef COMMON_TABLE_H
#define COMMON_TABLE_H

struct table;

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct column {
	const char *name;
	enum table_align align;
	unsigned int width;	/* in characters; 0: as wide as its cells */
};

/*
 * Make a table, which the caller frees with table_free(). A column without a name ends columns;
 * with NULL the caller adds columns by table_column().
 */
struct table *table_new(const struct column *columns);
void table_free(struct table *table);

/*
 * Add a column; the caller does so before the first cell. A caller that prints the table more
 * than once gives widths, so that the columns of all prints are aligned.
 */
void table_column(struct table *table, enum table_align align, unsigned int width,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Add the next cell, row by row. */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Print the rows since the last call to stdout; the first call prints the names of columns. */
void table_print(struct table *table);

#endif /* COMMON_TABLE_H */
