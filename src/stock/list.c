/*
 * list.c - list all items with their quantities, of our tables and of the
 * application's, in one block that the caller frees
 */
#include "stock/stock.h"

#include <stddef.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/error.h"

enum { ITEM, QUANTITY, COLUMNS };

/* Write the item as text with a NUL, truncated to `size` bytes.  Return the
 * size of the whole text with its NUL. */
static size_t write_name(char *out, size_t size, const sqlock_value *item)
{
    int length = item->type == SQLOCK_INT64
                     ? snprintf(out, size, "%" PRId64, item->integer)
                     : snprintf(out, size, "%s",
                                item->type == SQLOCK_TEXT ? item->text : "");

    return (size_t)length + 1;
}

/* Copy the items, followed by their names, into one block of memory. */
static int copy(sqlock_stock_item **out, const sqlock_result *rows,
                sqlock_error *err)
{
    size_t head = rows->rows * sizeof **out;
    size_t size = head;
    char nothing[1];
    char *at;

    for (size_t i = 0; i < rows->rows; i++)
        size += write_name(nothing, 0, &rows->cells[i * COLUMNS + ITEM]);
    *out = malloc(size > 0 ? size : 1);
    if (*out == NULL)
        return lk_error_nomem(err);
    at = (char *)*out + head;
    for (size_t i = 0; i < rows->rows; i++) {
        const sqlock_value *cells = &rows->cells[i * COLUMNS];
        const char *end = (char *)*out + size;

        (*out)[i].name = at;
        at += write_name(at, (size_t)(end - at), &cells[ITEM]);
        (*out)[i].quantity =
            cells[QUANTITY].type == SQLOCK_INT64 ? cells[QUANTITY].integer : -1;
    }
    return 0;
}

int sqlock_stock_list_sized(sqlock_stock *stock, sqlock_stock_item **items,
                            size_t *count, size_t size, sqlock_error *err)
{
    static const struct lk_row_size row = {"sqlock_stock_item",
                                           sizeof(sqlock_stock_item),
                                           sizeof(sqlock_stock_item)};
    struct lk_stock_operation op = {.stock = stock};
    struct lk_stock_arguments arguments;
    sqlock_result rows = {0};
    int rc;

    if (items == NULL || count == NULL)
        return lk_error_null(err, "items and count");
    *items = NULL;
    *count = 0;
    rc = lk_row_check(&row, size, err);
    if (rc == 0)
        rc = lk_stock_check(stock, NULL, err);
    if (rc < 0)
        return rc;
    lk_stock_arguments_of(&op, NULL, &arguments);
    rc = lk_stock_send(&op, SQLOCK_STOCK_SQL_LIST, &arguments, &rows, err);
    if (rc == 0)
        rc = copy(items, &rows, err);
    if (rc == 0)
        *count = rows.rows;
    sqlock_result_clear(&rows);
    lk_rows_pack(*items, *count, sizeof **items, size);
    return rc;
}
