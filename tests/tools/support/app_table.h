/*
 * app_table.h - a table of the application, created, filled and read past the
 * library
 */
#ifndef TESTS_APP_TABLE_H
#define TESTS_APP_TABLE_H

#include "fixture.h"
#include "sqlock/tx.h"

/* The application's table: id, a, version, state, moment, fence, owner,
 * narrow. */
void stock_create(struct fixture *fixture);
void stock_drop(struct fixture *fixture);
/* Replace all rows by 1 to 4, each with a = 100, version = 1, state 'new'. */
void stock_fill(struct fixture *fixture);
/* Return whether the table still has these four rows, and no other. */
bool stock_is_untouched(struct fixture *fixture);
/* Return the column `a` of a row. */
long long stock_value(struct fixture *fixture, int id);
/* Describe the table, with its integer version and its fence columns. */
sqlock_table stock_table(struct fixture *fixture);
/* Return the table's name, unique to the process and the layout. */
const char *stock_name(const struct fixture *fixture);

#endif
