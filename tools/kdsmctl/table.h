/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tables for people: columns as wide as what is in them.
 */
#ifndef KDSMCTL_TABLE_H
#define KDSMCTL_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table;

/* Columns are added first; right: numbers. Nothing here fails: it exits. */
struct table *table_new(void);
void table_column(struct table *table, int right, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The next cell, row by row. */
void table_cell(struct table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Print to stdout and free. */
void table_print(struct table *table);

#endif /* KDSMCTL_TABLE_H */
