/*
 * floor.h - the least that two durable statements cost
 *
 * A floor driver talks to a database through the same client library as
 * sqlock's driver, on connections of its own, with nothing around it: it
 * prepares one UPDATE of one row by its primary key and repeats it.  Its table
 * has the columns and the width of the lock table.  Each commits by itself, as
 * durably as the server is set to; the two of a floor are less than any lock
 * can do with: they change 8 bytes of one column and ask for no clock, on
 * sessions as the server makes them, without limits of time.  The cost
 * that sqlock adds is on its side of the ratio.
 *
 * And what a shop does without sqlock: a sale of one item in a transaction that
 * locks its row FOR UPDATE, five statements with the order's row.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "bench.h"

#define FLOOR_REGION "DEFAULT"

/* Column values of a row as wide as that of a held lock; the caller puts the
   LOCK_KEY before them and the two times, which each database writes in its own
   way, behind them. */
#define FLOOR_COLUMNS                                                          \
    "LOCK_KEY, REGION, CLIENT_ID, FENCE, LOCK_NAME, HOLDER, CREATED_DATE, "    \
    "EXPIRED_AFTER"
#define FLOOR_VALUES                                                           \
    "'" FLOOR_REGION "', '00000000-0000-4000-8000-000000000000', 1, "          \
    "'bench client', '00000000-0000-4000-8000-000000000000 host 1 bench'"
#define FLOOR_UPDATE "FENCE = FENCE + 1"

struct floor_driver {
    const char *database; /* as in bench_target */

    /** Connect client @p client, make its row and prepare; the connection is
     *  given to close(), also after a failure. */
    int (*open)(void **connection, const struct bench_target *target,
                unsigned client, struct bench_failure *failure);
    void (*close)(void *connection);

    /** One autocommit UPDATE of the client's row. */
    int (*update)(void *connection, struct bench_failure *failure);

    /** SELECT 1: a round trip that writes nothing. */
    int (*select)(void *connection, struct bench_failure *failure);

    /** From now on, wait for other writers as the client library does by itself
     *  (SQLite's busy timeout) and, with @p is_full, commit as it does by
     *  itself (synchronous=FULL); NULL: there is nothing like it. */
    int (*contend)(void *connection, bool is_full,
                   struct bench_failure *failure);

    /** Describe the server, and whether a commit there is durable. */
    int (*describe)(void *connection, struct bench_server *server,
                    struct bench_failure *failure);

    /** One statement without rows. */
    int (*run)(void *connection, const char *text,
               struct bench_failure *failure);

    /** A statement with one row of one number. */
    int (*number)(void *connection, const char *text, int64_t *number,
                  struct bench_failure *failure);

    /** Prepare sell() of @p item in the tables ITEM (ITEM, QUANTITY) and SALE
     *  (ORDER_ID, ITEM, QUANTITY) with the prefix of @p target. */
    int (*prepare_sale)(void *connection, const struct bench_target *target,
                        const char *item, struct bench_failure *failure);

    /** Sell one: BEGIN, SELECT ... FOR UPDATE, UPDATE, COMMIT.
     *
     *  @param order of a row that is put in before the COMMIT; NULL: none */
    int (*sell)(void *connection, const char *order,
                struct bench_failure *failure);
};

/* Members of a driver: functions open_DATABASE() and so on. */
#define FLOOR_MEMBERS(name)                                                    \
    .database = #name, .open = open_##name, .close = close_##name,             \
    .update = update_##name, .select = select_##name,                          \
    .describe = describe_##name, .run = run_##name, .number = number_##name,   \
    .prepare_sale = prepare_sale_##name, .sell = sell_##name

extern const struct floor_driver floor_postgres;
extern const struct floor_driver floor_mysql;
extern const struct floor_driver floor_sqlite;

/* The statements of a sale between BEGIN and COMMIT. */
struct floor_sale {
    char select[192];
    char update[192];
    char insert[192];
};

/** Write them.  @p locking is what a SELECT ends with, @p parameter how a
 *  database writes its first one. */
void floor_sale_texts(struct floor_sale *to, const struct bench_target *target,
                      const char *item, const char *locking,
                      const char *parameter);

/** The driver of a database, or NULL. */
const struct floor_driver *floor_driver_find(const char *database);

#endif /* BENCH_FLOOR_H */
