/*
 * statement.c - the statements of an operation: fill in the arguments, send
 * one, and read the integer that it returns, with errors that name the item
 */
#include "stock/stock.h"

#include <string.h>

#include "base/error.h"

void lk_stock_argument(struct lk_stock_arguments *arguments,
                       sqlock_stock_parameter which, const char *text)
{
    arguments->values[which] = sqlock_text(text);
}

void lk_stock_argument_integer(struct lk_stock_arguments *arguments,
                               sqlock_stock_parameter which, int64_t integer)
{
    arguments->values[which] = sqlock_integer(integer);
}

void lk_stock_arguments_of(const struct lk_stock_operation *op,
                           const struct lk_stock_line *line,
                           struct lk_stock_arguments *out)
{
    memset(out, 0, sizeof *out);
    lk_stock_argument(out, SQLOCK_SP_ORDER, op->order);
    lk_stock_argument(out, SQLOCK_SP_STOCK, op->stock->name);
    if (line == NULL)
        return;
    out->values[SQLOCK_SP_ITEM] = line->item;
    lk_stock_argument_integer(out, SQLOCK_SP_QUANTITY, line->quantity);
}

int lk_stock_told(int rc, sqlock_error *err)
{
    return rc == SQLOCK_ECANCELED || rc == SQLOCK_ETIMEDOUT
               ? lk_error(err, SQLOCK_EBUSY,
                          "the statement timed out, and was not carried out: "
                          "the database is slow (raise statement_timeout_ms), "
                          "or a transaction has locked the row or the table")
               : rc;
}

int lk_stock_send(struct lk_stock_operation *op, sqlock_stock_kind kind,
                  const struct lk_stock_arguments *arguments,
                  sqlock_result *result, sqlock_error *err)
{
    return lk_stock_told(lk_stock_execute(&op->stock->tables, op->tx, kind,
                                          arguments, op->deadline_ns, result,
                                          err),
                         err);
}

/* Read what a statement has left that was carried out and did not tell it.
 * Return 0 with a row in `result`, or a negative code: EUNCERTAIN outside of a
 * transaction. */
static int read_left(struct lk_stock_operation *op,
                     const struct lk_stock_line *line,
                     const struct lk_stock_arguments *arguments,
                     sqlock_result *result, sqlock_error *err)
{
    int rc;

    sqlock_result_clear(result);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_READ, arguments, result, err);
    if ((rc == 0 && result->rows > 0) || (rc < 0 && op->tx != NULL))
        return rc;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "%s was changed, but what is left could not be read",
                    line->name);
}

int lk_stock_ask(struct lk_stock_operation *op, sqlock_stock_kind kind,
                 const struct lk_stock_line *line, int64_t *out,
                 sqlock_error *err)
{
    bool is_change =
        kind == SQLOCK_STOCK_SQL_DEDUCT || kind == SQLOCK_STOCK_SQL_RESTORE;
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_stock_arguments_of(op, line, &arguments);
    rc = lk_stock_send(op, kind, &arguments, &result, err);
    if (rc == 0 && is_change && result.rows > 0 &&
        result.cells[0].type == SQLOCK_NULL)
        rc = read_left(op, line, &arguments, &result, err);
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

int lk_stock_do(struct lk_stock_operation *op, sqlock_stock_kind kind,
                const struct lk_stock_arguments *arguments, int64_t *affected,
                sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = lk_stock_send(op, kind, arguments, &result, err);

    if (rc == 0 && affected != NULL)
        *affected = result.affected;
    sqlock_result_clear(&result);
    return rc;
}
