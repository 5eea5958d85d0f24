/*
 * floor.h - floor drivers: bare statements, with which sqlock is compared
 *
 * A floor driver uses the same client library as sqlock's driver, on
 * connections of its own, and as directly as possible: it prepares one UPDATE
 * of one row by its primary key, and repeats it.  Its table has the columns of
 * the lock table, and a row as wide.  Each UPDATE commits by itself, as durably
 * as the server is configured.
 *
 * The case "floor" is two such UPDATEs.  That is less than any lock needs: they
 * change 8 bytes of one column and do not read the clock, and their sessions
 * have the server's defaults and no time limits.  So everything that sqlock
 * adds counts against it in the ratio.
 *
 * A floor driver also sells an item as a shop does without sqlock: in a
 * transaction that locks the item's row FOR UPDATE, five statements if it also
 * inserts the order's row.
 */
#ifndef BENCH_FLOOR_H
#define BENCH_FLOOR_H

#include "bench.h"

#define FLOOR_REGION "DEFAULT"

/* Values of a row as wide as that of a held lock.  The caller writes the
   LOCK_KEY before them and the two times, in the database's own form, after
   them. */
#define FLOOR_COLUMNS                                                          \
    "LOCK_KEY, REGION, CLIENT_ID, FENCE, LOCK_NAME, HOLDER, CREATED_DATE, "    \
    "EXPIRED_AFTER"
#define FLOOR_VALUES                                                           \
    "'" FLOOR_REGION "', '00000000-0000-4000-8000-000000000000', 1, "          \
    "'bench client', '00000000-0000-4000-8000-000000000000 host 1 bench'"
#define FLOOR_UPDATE "FENCE = FENCE + 1"

struct floor_driver {
    const char *database; /* as in bench_target */
    const char *begin;    /* begins a transaction that writes */

    /** Connect client @p client, insert its row and prepare the statements.
     *  The caller closes *connection by close(), also after a failure. */
    int (*open)(void **connection, const struct bench_target *target,
                unsigned client, struct bench_failure *failure);
    void (*close)(void *connection);

    /** Run one autocommit UPDATE of the client's row. */
    int (*update)(void *connection, struct bench_failure *failure);

    /** Return the client library's own handle. */
    void *(*native)(void *connection);

    /** Describe the server, and whether a commit there is durable. */
    int (*describe)(void *connection, struct bench_server *server,
                    struct bench_failure *failure);

    /** Write how much the server has written to its logs.  NULL: there is no
     *  server (SQLite). */
    int (*written)(void *connection, struct bench_traffic *to,
                   struct bench_failure *failure);

    /** Run one statement that returns no rows. */
    int (*run)(void *connection, const char *text,
               struct bench_failure *failure);

    /** Run one statement that returns one row, and write the number in it to
     *  *number. */
    int (*number)(void *connection, const char *text, int64_t *number,
                  struct bench_failure *failure);

    /** Prepare the statements of sell() for @p item.  The tables are ITEM
     *  (ITEM, QUANTITY) and SALE (ORDER_ID, ITEM, QUANTITY), with the
     *  floor_prefix of @p target before their names. */
    int (*prepare_sale)(void *connection, const struct bench_target *target,
                        const char *item, struct bench_failure *failure);

    /** Sell one unit: BEGIN, SELECT ... FOR UPDATE, UPDATE, COMMIT.
     *
     *  @param order the ORDER_ID of a row of SALE that is inserted before the
     *               COMMIT; NULL: none */
    int (*sell)(void *connection, const char *order,
                struct bench_failure *failure);
};

/* The members that all drivers have: functions open_DATABASE() and so on. */
#define FLOOR_MEMBERS(name)                                                    \
    .database = #name, .open = open_##name, .close = close_##name,             \
    .update = update_##name, .native = native_##name,                          \
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

/** Write the texts of the statements.
 *
 *  @param locking   the end of the SELECT, such as " FOR UPDATE"
 *  @param parameter the first parameter, such as "$1" */
void floor_sale_texts(struct floor_sale *to, const struct bench_target *target,
                      const char *item, const char *locking,
                      const char *parameter);

/** Return the floor driver of a database, or NULL. */
const struct floor_driver *floor_driver_find(const char *database);

#endif /* BENCH_FLOOR_H */
