/*
 * suite.h - the topics of this suite, and the shop that they all go to
 */
#ifndef TESTS_STOCK_SUITE_H
#define TESTS_STOCK_SUITE_H

#include "sqlock/stock.h"
#include "support/suite_main.h"

extern const struct topic topic_answers;
extern const struct topic topic_orders;
extern const struct topic topic_transactions;
extern const struct topic topic_reservations;
extern const struct topic topic_expiry;
extern const struct topic topic_retention;
extern const struct topic topic_coalesced;
extern const struct topic topic_input;
extern const struct topic topic_limits;
extern const struct topic topic_codes;
extern const struct topic topic_crowd;
extern const struct topic topic_limping;

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

/* A table of the application: made of those columns, its name with the prefix
 * in `table`; and described, where its columns are "id" and "num". */
void shop_make_goods(struct fixture *f, const char *name, char table[64],
                     const char *columns);
sqlock_stock_options shop_described(const char *table);

/* Open a stock on such a table. */
sqlock_stock *shop_open_described(struct fixture *f, const char *table);

/* `strategy` is one after the other, each printed before a failure is. */
#define each_strategy                                                          \
    for (sqlock_stock_strategy strategy = SQLOCK_STOCK_CONDITIONAL;            \
         shop_is_strategy(strategy);                                           \
         strategy = (sqlock_stock_strategy)(strategy + 1))
bool shop_is_strategy(sqlock_stock_strategy strategy);

/* The id of an order about an item; valid until the next test. */
const char *shop_order(const char *item, const char *what);

/* Read the tables past the library: the quantity of an item with its buckets,
 * and the sum of the changes that its orders made; and assert both. */
int64_t shop_there(struct fixture *f, const char *item);
int64_t shop_sum(struct fixture *f, const char *item);
#define assert_stock(f, item, there, sum)                                      \
    do {                                                                       \
        assert_int_equal(shop_there((f), (item)), (there));                    \
        assert_int_equal(shop_sum((f), (item)), (sum));                        \
    } while (0)
int64_t shop_count(struct fixture *f, const char *table, const char *where);

/* Read by the library, which must succeed. */
int64_t shop_read(struct fixture *f, sqlock_stock *stock, const char *item);

/* --- reservations --- */

#define SHOP_LONG_MS INT64_C(3600000)

/* Reserve, under an order id made of the item and the time, which is valid
 * until the next one. */
const char *shop_reserve(struct fixture *f, sqlock_stock *stock,
                         const char *item, int64_t quantity, int64_t ttl_ms);
void shop_expect_state(struct fixture *f, sqlock_stock *stock,
                       const char *order, sqlock_stock_state expected);
/* Let expire what is due; how many were. */
int64_t shop_expire(struct fixture *f, sqlock_stock *stock);
/* Put its end, of SHOP_LONG_MS, into the past, as the database's clock has it;
 * and back. */
void shop_let_time_pass(struct fixture *f, const char *order);
void shop_give_time(struct fixture *f, const char *order);

#endif
