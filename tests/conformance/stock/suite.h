/*
 * suite.h - shared by the tests of stock, helpers for its tables (shop_)
 */
#ifndef TESTS_STOCK_SUITE_H
#define TESTS_STOCK_SUITE_H

#include "sqlock/stock.h"
#include "support/shop.h"
#include "support/suite_main.h"

/* Be a process that sells (seller.c).  Return the exit status. */
int sell(int argc, char **argv);

/* --- shop.c --- */

/* A function that does not succeed fails the test. */

/* Insert a new item with that quantity into sqlock's table.  Return its name,
 * which is valid until the 16th call from here. */
const char *shop_item(struct fixture *f, int64_t quantity);

/* Open a stock of that strategy, on fixture->a or `registry`. */
sqlock_stock *shop_open(struct fixture *f, sqlock_stock_strategy strategy);
sqlock_stock *shop_open_at(sqlock_registry *registry,
                           sqlock_stock_strategy strategy);

/* Create a table of the application with those columns.  Its name, the prefix
 * and `name` in lower case, is written to `table`. */
void shop_make_goods(struct fixture *f, const char *name, char table[64],
                     const char *columns);
/* Return options for a table with the columns "id" and "num". */
sqlock_stock_options shop_described(const char *table);

/* Open a stock on a table with the columns "id" and "num". */
sqlock_stock *shop_open_described(struct fixture *f, const char *table);

/* Run what follows with each `strategy` in turn, whose name is printed
 * first. */
#define each_strategy                                                          \
    for (sqlock_stock_strategy strategy = SQLOCK_STOCK_CONDITIONAL;            \
         shop_is_strategy(strategy);                                           \
         strategy = (sqlock_stock_strategy)(strategy + 1))
bool shop_is_strategy(sqlock_stock_strategy strategy);

/* Return the id of an order about an item, valid until the 16th call from
 * here. */
const char *shop_order(const char *item, const char *what);

/* Read the tables past the library: the quantity of an item (there), and
 * the sum of the changes that its orders made (sum). */
int64_t shop_there(struct fixture *f, const char *item);
int64_t shop_sum(struct fixture *f, const char *item);
/* Assert both. */
#define assert_stock(f, item, there, sum)                                      \
    do {                                                                       \
        assert_int_equal(shop_there((f), (item)), (there));                    \
        assert_int_equal(shop_sum((f), (item)), (sum));                        \
    } while (0)
/* Count the rows of a table for which the condition holds. */
int64_t shop_count(struct fixture *f, const char *table, const char *where);

/* Read the quantity of an item by the library. */
int64_t shop_read(struct fixture *f, sqlock_stock *stock, const char *item);

/* --- reservations --- */

#define SHOP_LONG_MS INT64_C(3600000)

/* Move the end of a reservation that lasts SHOP_LONG_MS two hours back, into
 * the past of the database's clock. */
void shop_let_time_pass(struct fixture *f, const char *order);

#endif
