/*
 * arguments.c - check the arguments of an operation, and its lines, before
 * anything is sent, so that all databases refuse the same
 */
#include "stock/stock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

int lk_stock_check(const sqlock_stock *stock, sqlock_tx *tx, sqlock_error *err)
{
    if (stock == NULL)
        return lk_error_null(err, "stock");
    return lk_stock_told(lk_stock_tables_check(&stock->tables, tx, err), err);
}

int lk_stock_check_orders(const sqlock_stock *stock, sqlock_error *err)
{
    if (stock->tables.has_orders)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "the tables for orders and reservations are missing in "
                    "this database: create them with `sqlock stock init`");
}

int lk_stock_check_text(const char *what, const char *text, size_t most,
                        sqlock_error *err)
{
    size_t length = text != NULL ? strlen(text) : 0;

    if (length == 0)
        return lk_error(err, SQLOCK_EINVAL, "%s is missing", what);
    if (length > most)
        return lk_error(err, SQLOCK_EINVAL,
                        "%s has %zu bytes, at most %zu are allowed", what,
                        length, most);
    if (!lk_utf8_is_valid(text))
        return lk_error(err, SQLOCK_EINVAL, "%s is not valid UTF-8", what);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
            return lk_error(err, SQLOCK_EINVAL, "%s has a control character",
                            what);
    /* Databases differ in whether trailing blanks count. */
    if (text[length - 1] == ' ')
        return lk_error(err, SQLOCK_EINVAL, "%s ends with a blank", what);
    return 0;
}

int lk_stock_line_init(const sqlock_stock *stock, struct lk_stock_line *line,
                       const char *item, int64_t quantity, sqlock_error *err)
{
    int64_t number;
    int rc;

    memset(line, 0, sizeof *line);
    line->left = -1;
    rc = lk_stock_check_text("the item", item, SQLOCK_ITEM_MAX, err);
    if (rc < 0)
        return rc;
    line->name = item;
    line->item = sqlock_text(item);
    line->quantity = quantity;
    if (!stock->tables.has_integer_items)
        return 0;
    if (!lk_text_integer(item, &number))
        return lk_error(err, SQLOCK_EINVAL,
                        "the items of this stock are integers, but %s is not",
                        item);
    (void)snprintf(line->number, sizeof line->number, "%" PRId64, number);
    line->item = sqlock_integer(number);
    return 0;
}

void lk_stock_changed(struct lk_stock_line *line, int64_t delta, int64_t left)
{
    line->delta = delta;
    line->left = left;
    line->result = 0;
}

int lk_stock_insufficient(struct lk_stock_line *line, int64_t there,
                          sqlock_error *err)
{
    line->left = there;
    line->result = SQLOCK_EINSUFFICIENT;
    return lk_error(err, SQLOCK_EINSUFFICIENT,
                    "of %s there are %" PRId64 ", %" PRId64 " were asked for",
                    line->name, there, line->quantity);
}

int lk_stock_no_item(struct lk_stock_line *line, sqlock_error *err)
{
    line->result = SQLOCK_ENOTFOUND;
    return lk_error(err, SQLOCK_ENOTFOUND, "there is no item %s", line->name);
}
