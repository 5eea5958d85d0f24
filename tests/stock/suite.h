/*
 * suite.h - the topics of this suite, and the shop that they all go to
 */
#ifndef TESTS_STOCK_SUITE_H
#define TESTS_STOCK_SUITE_H

#include "sqlock_stock.h"
#include "support/suite_main.h"

extern const struct topic topic_answers;
extern const struct topic topic_orders;
extern const struct topic topic_transactions;
extern const struct topic topic_reservations;
extern const struct topic topic_coalesced;
extern const struct topic topic_input;
extern const struct topic topic_crowd;

/* A seller in a process of its own (seller.c); its exit status. */
int sell(int argc, char **argv);

/* --- shop.c --- */

void shop_create(struct fixture *f);
void shop_drop(struct fixture *f);

/* A table of the fixture: its name with the fixture's prefix. */
const char *shop_table(const struct fixture *f, const char *name, char out[64]);

/* An item nobody has used, in our table, with that quantity; valid until the
 * next test. */
const char *shop_item(struct fixture *f, int64_t quantity);

/* Open a stock of that strategy on fixture->a; a failure fails the test. */
sqlock_stock *shop_open(struct fixture *f, sqlock_stock_strategy strategy);
sqlock_stock *shop_open_at(sqlock_registry *registry,
                           sqlock_stock_strategy strategy);

/* A table of the application: made of those columns, its name with the prefix in
 * `table`; and described, where its columns are "id" and "num". */
void shop_make_goods(struct fixture *f, const char *name, char table[64],
                     const char *columns);
sqlock_stock_options shop_described(const char *table);

/* `strategy` is one after the other. */
#define each_strategy                                                          \
    for (sqlock_stock_strategy strategy = SQLOCK_STOCK_CONDITIONAL;            \
         strategy < SQLOCK_STOCK_STRATEGIES;                                   \
         strategy = (sqlock_stock_strategy)(strategy + 1))

/* What the tables say, asked past the library: of an item with its buckets, and
 * the sum of what its orders have done to it. */
int64_t shop_there(struct fixture *f, const char *item);
int64_t shop_sum(struct fixture *f, const char *item);
int64_t shop_count(struct fixture *f, const char *table, const char *where);

#endif
