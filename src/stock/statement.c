/*
 * statement.c - render the templates into statements about this stock's tables,
 * and send them, in a transaction or each by itself
 */
#include "stock/stock.h"

#include <string.h>

#include "base/error.h"
#include "db/lock_sql.h"
#include "stock/sql.h"

/* --- rendering --- */

/* Render a statement from the driver's or the library's template, if there is
 * one. */
static int render_one(sqlock_stock *stock, const struct lk_fragments *fragments,
                      sqlock_stock_kind kind, sqlock_error *err)
{
    const sqlock_driver *driver = stock->store->db.driver;
    sqlock_template template = driver->stock->statements[kind];
    struct lk_statement *out = &stock->statements[kind];
    int rc;

    if (template.text == NULL)
        template.text = lk_stock_templates[kind];
    rc = lk_statement_write(out, driver->dialect, &template, fragments, 0);
    if (rc == SQLOCK_ENOTSUP)
        return 0;
    if (rc < 0)
        return lk_error(err, rc, "stock statement %d of the driver %s: %s",
                        (int)kind, driver->name, sqlock_strerror(rc));
    out->sent.id = lk_ids_of(&stock->store->db.ids, out->text);
    return 0;
}

int lk_stock_render(sqlock_stock *stock, const struct lk_stock_names *names,
                    sqlock_error *err)
{
    const sqlock_driver *driver = stock->store->db.driver;
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
        rc = render_one(stock, &fragments, (sqlock_stock_kind)kind, err);
    return rc;
}

bool lk_stock_can(const sqlock_stock *stock, sqlock_stock_kind kind)
{
    return stock->statements[kind].text != NULL;
}

/* --- arguments --- */

void lk_stock_argument(struct lk_arguments *arguments,
                       sqlock_stock_parameter which, const char *text)
{
    arguments->values[which] = sqlock_text(text);
}

void lk_stock_argument_integer(struct lk_arguments *arguments,
                               sqlock_stock_parameter which, int64_t integer)
{
    arguments->values[which] = sqlock_integer(integer);
}

void lk_stock_arguments(const struct lk_stock_operation *op,
                        const struct lk_stock_line *line,
                        struct lk_arguments *out)
{
    memset(out, 0, sizeof *out);
    lk_stock_argument(out, SQLOCK_SP_ORDER, op->order);
    lk_stock_argument(out, SQLOCK_SP_STOCK, op->stock->name);
    if (line == NULL)
        return;
    out->values[SQLOCK_SP_ITEM] = line->item;
    lk_stock_argument(out, SQLOCK_SP_NAME, line->name);
    lk_stock_argument_integer(out, SQLOCK_SP_QUANTITY, line->quantity);
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

int lk_stock_told(int rc, sqlock_error *err)
{
    return rc == SQLOCK_ECANCELED ? lk_db_not_applied(rc, err) : rc;
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
    return lk_stock_told(lk_tx_send(tx, &sent, values, statement->count,
                                    lk_tx_deadline(tx), result, err),
                         err);
}

int lk_stock_send(struct lk_stock_operation *op, sqlock_stock_kind kind,
                  const struct lk_arguments *arguments, sqlock_result *result,
                  sqlock_error *err)
{
    const struct lk_statement *statement = &op->stock->statements[kind];
    struct lk_run run = {
        .statement = statement,
        .arguments = arguments,
        .deadline_ns = op->deadline_ns,
        .is_write = is_write(kind),
        .is_repeatable = is_repeatable(kind),
    };

    if (statement->text == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver lacks a statement about stock that this "
                        "operation needs");
    if (op->tx != NULL)
        return send_in(op->tx, statement, arguments, result, err);
    return lk_db_run(&op->stock->store->db, &run, result, err);
}

int lk_stock_ask(struct lk_stock_operation *op, sqlock_stock_kind kind,
                 const struct lk_stock_line *line, int64_t *out,
                 sqlock_error *err)
{
    struct lk_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_stock_arguments(op, line, &arguments);
    rc = lk_stock_send(op, kind, &arguments, &result, err);
    if (rc == 0 && result.rows > 0 && result.cells[0].type != SQLOCK_INT64)
        rc = lk_error(err, SQLOCK_EDATABASE,
                      "the quantity of %s is not an integer", line->name);
    if (rc == 0 && result.rows > 0) {
        *out = result.cells[0].integer;
        rc = 1;
    }
    sqlock_result_clear(&result);
    return rc;
}

int lk_stock_ask_total(struct lk_stock_operation *op,
                       const struct lk_stock_line *line, int64_t *out,
                       sqlock_error *err)
{
    sqlock_stock_kind kind =
        op->stock->is_ours ? SQLOCK_STOCK_SQL_TOTAL : SQLOCK_STOCK_SQL_READ;

    return lk_stock_ask(op, kind, line, out, err);
}

int lk_stock_do(struct lk_stock_operation *op, sqlock_stock_kind kind,
                const struct lk_arguments *arguments, int64_t *affected,
                sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = lk_stock_send(op, kind, arguments, &result, err);

    if (rc == 0 && affected != NULL)
        *affected = result.affected;
    sqlock_result_clear(&result);
    return rc;
}
