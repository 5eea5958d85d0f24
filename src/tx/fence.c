/*
 * fence.c - write fencing tokens to the application's rows: a row keeps the
 * greatest token that was written to it, with that token's owner, and refuses a
 * lower token
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/writer.h"
#include "tx/tx.h"

#define TEXT_SIZE (10 * LK_QUOTED_SIZE)
#define OWNER_MAX 255

/* Find out why the row was not changed.  Return 0 if it has this token of this
 * owner already, ENOTFOUND if it is missing, ECONFLICT if it has another token
 * or owner, or another error. */
static int examine(sqlock_tx *tx, const struct lk_tx_table *table,
                   const sqlock_value *key, int64_t token, const char *owner,
                   sqlock_error *err)
{
    sqlock_result result = {0};
    char text[TEXT_SIZE];
    int rc;

    /* Lock the row, so that its newest version is judged. */
    (void)snprintf(text, sizeof text, "SELECT %s, %s FROM %s WHERE %s = ?%s",
                   table->fence, table->owner, table->name, table->key,
                   tx->part->update_wait != NULL ? tx->part->update_wait : "");
    rc = lk_tx_query(tx, text, key, 1, &result, err);
    if (rc == 0 && result.rows == 0)
        rc = lk_error(err, SQLOCK_ENOTFOUND, "there is no such row");
    else if (rc == 0 && result.cells[0].type != SQLOCK_INT64)
        rc = lk_error(err, SQLOCK_EINVAL,
                      "the fence column does not contain an integer");
    else if (rc == 0 && (result.cells[0].integer != token ||
                         result.cells[1].type != SQLOCK_TEXT ||
                         strcmp(result.cells[1].text, owner) != 0))
        rc = lk_error(err, SQLOCK_ECONFLICT,
                      "the row has had token %" PRId64 " of %.100s: %" PRId64
                      " of %.100s is refused",
                      result.cells[0].integer,
                      result.cells[1].type == SQLOCK_TEXT ? result.cells[1].text
                                                          : "nobody",
                      token, owner);
    sqlock_result_clear(&result);
    return rc;
}

/* Write token and owner, unless the row has a greater token, or this token of
 * another owner.  *affected is the number of changed rows. */
static int write_fence(sqlock_tx *tx, const struct lk_tx_table *table,
                       const sqlock_value *key, int64_t token,
                       const char *owner, int64_t *affected, sqlock_error *err)
{
    const sqlock_value values[] = {
        sqlock_integer(token), sqlock_text(owner),    *key,
        sqlock_integer(token), sqlock_integer(token), sqlock_text(owner),
    };
    sqlock_result result = {0};
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *text;
    int rc;

    if (out == NULL)
        return lk_error_nomem(err);
    (void)fprintf(out,
                  "UPDATE %s SET %s = ?, %s = ? WHERE %s = ? AND "
                  "(%s IS NULL OR %s < ? OR (%s = ? AND ",
                  table->name, table->fence, table->owner, table->key,
                  table->fence, table->fence, table->fence);
    lk_tx_write_expression(out, tx->part->same_text, table->owner);
    (void)fputs("))", out);
    text = lk_writer_close(&writer);
    if (text == NULL)
        return lk_error_nomem(err);
    rc = lk_tx_query(tx, text, values, sizeof values / sizeof *values, &result,
                     err);
    free(text);
    *affected = result.affected;
    sqlock_result_clear(&result);
    return rc;
}

int sqlock_tx_fence(sqlock_tx *tx, const sqlock_table *table,
                    const sqlock_value *key, int64_t token, const char *owner,
                    sqlock_error *err)
{
    struct lk_tx_row row;
    int64_t affected = 0;
    int rc = lk_tx_row_read(&row, tx, table, LK_TX_FENCE, key, err);

    if (rc == 0 && (token <= 0 || owner == NULL || *owner == '\0' ||
                    strlen(owner) > OWNER_MAX))
        rc = lk_error(err, SQLOCK_EINVAL,
                      "a fence needs a token above 0 and an owner of 1 to %d "
                      "bytes",
                      OWNER_MAX);
    if (rc == 0)
        rc =
            write_fence(tx, &row.table, &row.key, token, owner, &affected, err);
    if (rc < 0 || affected == 1)
        return rc;
    if (affected > 1)
        return lk_tx_spoil(tx,
                           "several rows have that key: the key column must be "
                           "unique",
                           err);
    return examine(tx, &row.table, &row.key, token, owner, err);
}
