/*
 * statement.c - render the templates into statements about this stock's tables,
 * and send them, in a transaction or each by itself
 */
#include "stock/sql/names.h"
#include "stock/sql/tables.h"

#include <string.h>

#include "base/error.h"
#include "db/lock_sql.h"
#include "lease/store.h"
#include "stock/sql/sql.h"
#include "tx/tx.h"

/* --- rendering --- */

/* Render a statement from the driver's or the library's template, if there is
 * one. */
static int render_one(struct lk_statement *out, const sqlock_driver *driver,
                      struct lk_ids *ids, const struct lk_fragments *fragments,
                      sqlock_stock_kind kind, sqlock_error *err)
{
    sqlock_template template = driver->stock->statements[kind];
    int rc;

    if (template.text == NULL)
        template.text = lk_stock_templates[kind];
    rc = lk_statement_write(out, driver->dialect, &template, fragments, 0);
    if (rc == SQLOCK_ENOTSUP)
        return 0;
    if (rc < 0)
        return lk_error(err, rc, "stock statement %d of the driver %s: %s",
                        (int)kind, driver->name, sqlock_strerror(rc));
    out->sent.id = lk_ids_of(ids, out->text);
    return 0;
}

int lk_stock_render(struct lk_statement *out, const sqlock_driver *driver,
                    struct lk_ids *ids, const struct lk_stock_names *names,
                    sqlock_error *err)
{
    bool has_version = names->version != NULL;
    const sqlock_fragment of_tables[] = {
        {"stock", names->stock},
        {"item", names->item},
        {"this_item",
         names->is_loose ? "{item} = {1} AND {same_text}" : "{item} = {1}"},
        {"same_text", driver->transactions->same_text},
        {"column", "{item}"},
        {"value", "{1}"},
        {"quantity", names->quantity},
        {"version", has_version ? names->version : names->quantity},
        {"bump", has_version ? ", {version} = {version} + 1" : ""},
        {"most", names->most},
        {"entry", names->entry},
        {"reservation", names->reservation},
        {"bucket", names->bucket},
        {"in_buckets", names->has_buckets ? "{sum_in_buckets {5}}" : "0"},
        {NULL, NULL},
    };
    const struct lk_fragments fragments = {.lists = {
                                               of_tables,
                                               driver->dialect->overrides,
                                               driver->stock->fragments,
                                               driver->dialect->fragments,
                                               lk_stock_fragments,
                                               lk_lock_fragments,
                                           }};
    int rc = 0;

    for (int kind = 0; rc == 0 && kind < SQLOCK_STOCK_KINDS; kind++)
        rc = render_one(&out[kind], driver, ids, &fragments,
                        (sqlock_stock_kind)kind, err);
    return rc;
}

bool lk_stock_has(const struct lk_stock_tables *tables, sqlock_stock_kind kind)
{
    return tables->statements[kind].text != NULL;
}

/* --- sending --- */

static bool is_write(sqlock_stock_kind kind)
{
    switch (kind) {
    case SQLOCK_STOCK_SQL_READ:
    case SQLOCK_STOCK_SQL_READ_VERSION:
    case SQLOCK_STOCK_SQL_TOTAL:
    case SQLOCK_STOCK_SQL_LIST:
    case SQLOCK_STOCK_SQL_LIST_TOTAL:
    case SQLOCK_STOCK_SQL_ENTRIES:
    case SQLOCK_STOCK_SQL_STATUS:
    case SQLOCK_STOCK_SQL_OLD:
    case SQLOCK_STOCK_SQL_DUE:
        return false;
    default:
        return true;
    }
}

/* Return whether a statement may be sent twice: the second time it changes
 * nothing more, and at most the number of affected rows is less, for which its
 * caller allows. */
static bool is_repeatable(sqlock_stock_kind kind)
{
    return !is_write(kind) || kind == SQLOCK_STOCK_SQL_RECORD ||
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
        .deadline_ns =
            deadline_ns != 0 ? deadline_ns : lk_store_deadline(tables->store),
        .is_write = is_write(kind),
        .is_repeatable = is_repeatable(kind),
    };

    if (statement->text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver lacks a statement about stock that this "
                        "operation needs");
    memcpy(arguments.values, given->values, sizeof given->values);
    return tx != NULL ? send_in(tx, statement, &arguments, result, err)
                      : lk_db_run(&tables->store->db, &run, result, err);
}
