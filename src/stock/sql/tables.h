/*
 * tables.h - the tables of a stock: find them, check them, and send statements
 * about them
 *
 * With sqlock/tx.h, this is all that src/stock knows of a database.
 */
#ifndef LK_STOCK_TABLES_H
#define LK_STOCK_TABLES_H

#include "db/dialect.h"
#include "sqlock/stock.h"

struct lk_stock_tables {
    bool is_ours;    /* the items are in INT_STOCK */
    bool has_orders; /* our tables for orders and reservations exist */
    bool takes_back; /* and the login may end reservations */
    bool has_integer_items;
    bool has_one_writer; /* the database admits one writer at a time */
    int64_t most;        /* the greatest value of the quantity's column */
    struct lk_store *store;
    struct lk_statement *statements; /* by sqlock_stock_kind */
};

/* Find the tables, check their columns and write the statements.  The registry
 * cannot be closed before lk_stock_tables_close(), which is called after a
 * success only.  Return as sqlock_stock_open(). */
int lk_stock_tables_open(struct lk_stock_tables *out, sqlock_registry *registry,
                         const sqlock_stock_options *options,
                         sqlock_error *err);
void lk_stock_tables_close(struct lk_stock_tables *tables);

/* Check that the registry, and the transaction unless NULL, can be used.
 * Return 0, EFORK, EINUSE, EINVAL or the code that ended the transaction. */
int lk_stock_tables_check(const struct lk_stock_tables *tables, sqlock_tx *tx,
                          sqlock_error *err);

/* Report that there is no item to which a reservation could give back. */
void lk_stock_tell_missing(const struct lk_stock_tables *tables,
                           const char *order, const char *item,
                           int64_t quantity);

/* Arguments of a statement, by sqlock_stock_parameter.  All zero: nulls. */
struct lk_stock_arguments {
    sqlock_value values[SQLOCK_SP_STOCK + 1];
};

/* Return whether the database has the statement. */
bool lk_stock_has(const struct lk_stock_tables *tables, sqlock_stock_kind kind);

/* Send a statement in a transaction; or, with tx NULL, by itself until the
 * deadline, or with 0 for as long as one statement may take.  The caller clears
 * the result, also after a failure. */
int lk_stock_execute(const struct lk_stock_tables *tables, sqlock_tx *tx,
                     sqlock_stock_kind kind,
                     const struct lk_stock_arguments *arguments,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err);

#endif
