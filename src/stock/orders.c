/*
 * orders.c - write and read the entries of orders
 *
 * Entries are written in the transaction that changes the quantity, so that an
 * order that is sent again finds its first answer (F34).  If one order is sent
 * twice at once, the primary key of the entries decides which is first.
 */
#include "stock/stock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/writer.h"

/* Columns of SQLOCK_STOCK_SQL_ENTRIES, behind ORDER_ID. */
enum {
    COL_LINE = 1,
    COL_ITEM,
    COL_KIND,
    COL_QUANTITY,
    COL_STATUS,
    COL_BALANCE,
    COL_COUNT = LK_ENTRY_COLUMNS
};

/* --- writing --- */

/* A line that was undone for another's sake is written without a quantity: that
 * which was left after its change is not there any more. */
void lk_entry_write(FILE *out, const char *order, size_t number,
                    const struct lk_stock_line *line, char kind, char status)
{
    (void)fputs("{\"o\":", out);
    lk_json_text(out, order);
    (void)fprintf(out, ",\"l\":%zu,\"i\":", number);
    lk_json_text(out, line->name);
    (void)fprintf(out,
                  ",\"k\":\"%c\",\"q\":%" PRId64 ",\"d\":%" PRId64
                  ",\"s\":\"%c\",\"b\":%" PRId64 "}",
                  kind, line->quantity,
                  status == LK_ENTRY_DONE ? line->delta : 0, status,
                  status == LK_ENTRY_NOTHING ? -1 : line->left);
}

static char status_of(const struct lk_stock_line *line, bool is_done)
{
    if (is_done)
        return LK_ENTRY_DONE;
    return line->result == SQLOCK_EINSUFFICIENT ? LK_ENTRY_INSUFFICIENT
                                                : LK_ENTRY_NOTHING;
}

char *lk_entries_write(const struct lk_stock_operation *op, bool is_done)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);

    if (stream == NULL)
        return NULL;
    for (size_t i = 0; i < op->count; i++) {
        (void)fputc(i == 0 ? '[' : ',', stream);
        lk_entry_write(stream, op->order, i, &op->lines[i], op->kind,
                       status_of(&op->lines[i], is_done));
    }
    (void)fputc(']', stream);
    return lk_writer_close(&writer);
}

static int enter(struct lk_stock_operation *op, bool is_done, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    char *entries = lk_entries_write(op, is_done);
    int64_t affected = 0;
    int rc;

    if (entries == NULL)
        return lk_error_nomem(err);
    lk_stock_arguments_of(op, NULL, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, entries);
    rc = lk_stock_do(op, SQLOCK_STOCK_SQL_RECORD, &arguments, &affected, err);
    free(entries);
    if (rc == 0 && affected != (int64_t)op->count)
        rc = LK_STOCK_KNOWN;
    return rc;
}

int lk_stock_combine(struct lk_stock_operation *op,
                     const struct lk_stock_line *line, const char *entries,
                     int64_t *left, sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    sqlock_result result = {0};
    int rc;

    lk_stock_arguments_of(op, line, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, entries);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_COMBINE, &arguments, &result, err);
    if (rc == 0 && result.rows > 0) {
        *left = result.cells[0].integer;
        rc = 1;
    } else if (rc == SQLOCK_EBUSY) {
        /* or the row is locked: the caller finds no entries then */
        rc = LK_STOCK_KNOWN;
    }
    sqlock_result_clear(&result);
    return rc;
}

int lk_stock_record(struct lk_stock_operation *op, sqlock_error *err)
{
    return enter(op, true, err);
}

int lk_stock_refuse(struct lk_stock_operation *op, sqlock_error *err)
{
    return enter(op, false, err);
}

/* --- reading --- */

static bool is_text(const sqlock_value *cell, const char *text)
{
    return cell->type == SQLOCK_TEXT && strcmp(cell->text, text) == 0;
}

static bool is_letter(const sqlock_value *cell, char letter)
{
    return cell->type == SQLOCK_TEXT && cell->text[0] == letter;
}

/* Return whether a recorded row of an order, with these cells, is line `number`
 * of that kind: of the same item and quantity. */
static bool is_same(const sqlock_value *cells, size_t number,
                    const struct lk_stock_line *line, char kind)
{
    return cells[COL_LINE].integer == (int64_t)number &&
           is_text(&cells[COL_ITEM], line->name) &&
           is_letter(&cells[COL_KIND], kind) &&
           cells[COL_QUANTITY].integer == line->quantity;
}

static int answered(const sqlock_value *cells, struct lk_stock_line *line,
                    sqlock_error *err)
{
    line->left = cells[COL_BALANCE].integer;
    line->result = 0;
    if (is_letter(&cells[COL_STATUS], LK_ENTRY_INSUFFICIENT))
        return lk_stock_insufficient(line, line->left, err);
    if (is_letter(&cells[COL_STATUS], LK_ENTRY_NOTHING))
        line->result = SQLOCK_ECANCELED;
    return 0;
}

int lk_stock_compare(struct lk_stock_operation *op, const sqlock_value *cells,
                     size_t rows, sqlock_error *err)
{
    bool is_known = rows == op->count;
    int rc = 0;

    for (size_t i = 0; is_known && i < op->count; i++)
        is_known = is_same(&cells[i * COL_COUNT], i, &op->lines[i], op->kind);
    if (!is_known)
        return lk_error(err, SQLOCK_EORDER,
                        "the order %s was given before with other items, "
                        "quantities, or another operation",
                        op->order);
    op->is_duplicate = true;
    for (size_t i = 0; i < op->count; i++) {
        int one =
            answered(&cells[i * COL_COUNT], &op->lines[i], rc < 0 ? NULL : err);

        rc = rc < 0 ? rc : one;
    }
    return rc;
}

int lk_stock_entries(struct lk_stock_operation *op, sqlock_result *entries,
                     sqlock_error *err)
{
    struct lk_stock_arguments arguments;
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);
    char *orders;
    int rc;

    if (stream == NULL)
        return lk_error_nomem(err);
    (void)fputc('[', stream);
    lk_json_text(stream, op->order);
    (void)fputc(']', stream);
    orders = lk_writer_close(&writer);
    if (orders == NULL)
        return lk_error_nomem(err);
    lk_stock_arguments_of(op, NULL, &arguments);
    lk_stock_argument(&arguments, SQLOCK_SP_ROWS, orders);
    rc = lk_stock_send(op, SQLOCK_STOCK_SQL_ENTRIES, &arguments, entries, err);
    free(orders);
    return rc;
}

int lk_stock_recall(struct lk_stock_operation *op, sqlock_error *err)
{
    sqlock_result entries = {0};
    int rc = lk_stock_entries(op, &entries, err);

    if (rc == 0)
        rc = entries.rows == 0
                 ? LK_STOCK_UNKNOWN
                 : lk_stock_compare(op, entries.cells, entries.rows, err);
    sqlock_result_clear(&entries);
    return rc;
}
