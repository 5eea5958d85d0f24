/*
 * execute.c - make the statements about a stock's tables, and send them, in a
 * transaction or each by itself
 */
#include "stock/sql/names.h"
#include "stock/sql/tables.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/store.h"
#include "tx/tx.h"

/* --- rendering --- */

static uint32_t variant_of(const struct lk_stock_names *names)
{
    uint32_t versioned = names->is_ours    ? LK_OURS_VERSIONED
                         : names->is_loose ? LK_LOOSE_VERSIONED
                                           : LK_EXACT_VERSIONED;

    return names->version != NULL ? versioned : versioned << 1;
}

int lk_stock_render(struct lk_statement *out, const sqlock_driver *driver,
                    struct lk_ids *ids, const struct lk_stock_names *names,
                    sqlock_error *err)
{
    const struct lk_name put_in[] = {
        {"INT_STOCK", names->stock},
        {"INT_STOCK_ENTRY", names->entry},
        {"INT_STOCK_RESERVATION", names->reservation},
        {"item", names->item},
        {"quantity", names->quantity},
        {"version", names->version != NULL ? names->version : names->quantity},
        {"most", names->most},
        {NULL, NULL},
    };
    uint32_t variant = variant_of(names);

    for (const struct lk_sql *sql = driver->stock->statements;
         sql->text != NULL; sql++) {
        if ((sql->variants & variant) == 0)
            continue;
        if (lk_statement_render(&out[sql->kind], sql, put_in, 0) < 0)
            return lk_error_nomem(err);
        out[sql->kind].sent.id = lk_ids_of(ids, out[sql->kind].text, 0);
    }
    return 0;
}

bool lk_stock_has(const struct lk_stock_tables *tables, sqlock_stock_kind kind)
{
    return tables->statements[kind].text != NULL;
}

/* --- sending --- */

/* Return whether a statement may be sent twice: the second time it changes
 * nothing more, and at most the number of affected rows is less, for which its
 * caller allows. */
static bool is_repeatable(const struct lk_statement *statement,
                          sqlock_stock_kind kind)
{
    return statement->is_read || kind == SQLOCK_STOCK_SQL_RECORD ||
           kind == SQLOCK_STOCK_SQL_FORGET_ENTRIES ||
           kind == SQLOCK_STOCK_SQL_FORGET_RESERVATIONS;
}

static int send_in(sqlock_tx *tx, const struct lk_statement *statement,
                   const struct lk_arguments *arguments, sqlock_result *result,
                   sqlock_error *err)
{
    sqlock_statement sent = statement->sent;
    sqlock_value values[LK_PLACES_MAX];

    if (tx->is_adopted) /* prepare nothing on the application's connection */
        sent.id = 0;
    lk_statement_order(statement, arguments, values);
    return lk_tx_send(tx, &sent, values, statement->count, lk_tx_deadline(tx),
                      result, err);
}

int lk_stock_execute(const struct lk_stock_tables *tables, sqlock_tx *tx,
                     sqlock_stock_kind kind,
                     const struct lk_stock_arguments *given,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err)
{
    const struct lk_statement *statement = &tables->statements[kind];
    struct lk_arguments arguments = {0};
    struct lk_run run = {
        .statement = statement,
        .arguments = &arguments,
        /* A client that gives up before the server knows no outcome. */
        .deadline_ns = lk_later(deadline_ns, lk_store_deadline(tables->store)),
        .is_write = !statement->is_read,
        .is_repeatable = is_repeatable(statement, kind),
    };

    if (statement->text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver lacks a statement about stock that this "
                        "operation needs");
    memcpy(arguments.values, given->values, sizeof given->values);
    return tx != NULL ? send_in(tx, statement, &arguments, result, err)
                      : lk_db_run(&tables->store->db, &run, result, err);
}
