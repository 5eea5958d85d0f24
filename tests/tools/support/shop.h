/*
 * shop.h - sqlock's tables of stock, with the fixture's prefix
 */
#ifndef TESTS_SHOP_H
#define TESTS_SHOP_H

#include "fixture.h"

/* Create the tables, and drop them; the latter never fails. */
void shop_create(struct fixture *f);
void shop_drop(struct fixture *f);

/* Write the name of a table, with the fixture's prefix, to `out`; return it. */
const char *shop_table(const struct fixture *f, const char *name, char out[64]);

#endif
