/*
 * quantities.c - actions of `sqlock stock` that change or print quantities:
 * they take pairs of an item and a quantity, and answer with what is left of
 * each
 */
#include "stock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

typedef int (*lines_call)(sqlock_stock *, sqlock_tx *, const char *,
                          sqlock_stock_line *, size_t, sqlock_stock_answer *,
                          sqlock_error *);

/* Read the arguments ITEM QUANTITY ... into *out, an array that the caller
 * frees; the texts are not copied.  On failure *out is NULL.  Return CLI_OK, or
 * an exit status after a message. */
static int read_lines(const stock_till *till, sqlock_stock_line **out,
                      size_t *count)
{
    sqlock_stock_line *lines;

    *out = NULL;
    *count = till->count / 2;
    if (till->count == 0 || till->count % 2 != 0)
        return stock_misuse(till,
                            "give an ITEM and a QUANTITY, or several pairs");
    lines = calloc(*count, sizeof *lines);
    if (lines == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    for (size_t i = 0; i < *count; i++) {
        lines[i].item = till->args[2 * i];
        if (!lk_text_integer(till->args[2 * i + 1], &lines[i].quantity)) {
            free(lines);
            return stock_misuse(till, "a QUANTITY must be a whole number");
        }
    }
    *out = lines;
    return CLI_OK;
}

/* --- answers --- */

/* An application's table may hold less than nothing: only -1 is unknown. */
static bool is_known(int64_t quantity)
{
    return quantity != -1;
}

static json_t *json_quantity(int64_t quantity)
{
    return cli_json_number(quantity, is_known(quantity));
}

static int print_lines(const stock_till *till, const sqlock_stock_line *lines,
                       size_t count, const sqlock_stock_answer *answer)
{
    json_t *all;

    if (answer->is_duplicate)
        cli_note("the order was carried out before; nothing was changed");
    if (!till->app->json) {
        for (size_t i = 0; i < count; i++) {
            if (is_known(lines[i].left))
                printf("%" PRId64 "\n", lines[i].left);
            else
                printf("-\n");
        }
        return CLI_OK;
    }
    all = json_array();
    for (size_t i = 0; i < count; i++)
        all = cli_json_append(
            all,
            json_pack("{s:o, s:I, s:o}", "item", cli_json_text(lines[i].item),
                      "quantity", (json_int_t)lines[i].quantity, "left",
                      json_quantity(lines[i].left)));
    return cli_print_json(json_pack("{s:b, s:o}", "duplicate",
                                    (int)answer->is_duplicate, "items", all));
}

/* --- actions on quantities --- */

static int change(const stock_till *till, lines_call call)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_stock_line *lines = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;
    int rc;

    status = read_lines(till, &lines, &count);
    if (lines == NULL)
        return status;
    rc = call(till->stock, NULL, till->order, lines, count, &answer, &err);
    status =
        rc < 0 ? stock_refuse(&err) : print_lines(till, lines, count, &answer);
    free(lines);
    return status;
}

int stock_deduct(const stock_till *till)
{
    return change(till, sqlock_stock_deduct_many);
}

int stock_restore(const stock_till *till)
{
    return change(till, sqlock_stock_restore_many);
}

/* Set one item.  A lines_call: the arguments are as for several items. */
static int set_one(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                   sqlock_stock_line *lines, size_t count,
                   sqlock_stock_answer *answer, sqlock_error *err)
{
    int rc = sqlock_stock_set(stock, tx, order, lines[0].item,
                              lines[0].quantity, answer, err);

    (void)count;
    lines[0].left = answer->left;
    return rc;
}

int stock_set(const stock_till *till)
{
    return change(till, set_one);
}

static int64_t reserve_ms;

static int reserve_lines(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         sqlock_stock_line *lines, size_t count,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    return sqlock_stock_reserve(stock, tx, order, lines, count, reserve_ms,
                                answer, err);
}

int stock_reserve(const stock_till *till)
{
    if (till->order == NULL)
        return stock_misuse(till,
                            "--order is missing: it is the reservation's name");
    if (till->hold_ms < 0)
        return stock_misuse(till, "--for is missing: how long to reserve");
    reserve_ms = till->hold_ms;
    return change(till, reserve_lines);
}

int stock_show(const stock_till *till)
{
    sqlock_error err = {0};
    int64_t quantity = 0;

    if (sqlock_stock_read(till->stock, NULL, till->args[0], &quantity, &err) <
        0)
        return stock_refuse(&err);
    if (till->app->json)
        return cli_print_json(json_pack("{s:o, s:I}", "item",
                                        cli_json_text(till->args[0]),
                                        "quantity", (json_int_t)quantity));
    printf("%" PRId64 "\n", quantity);
    return CLI_OK;
}

static int print_json_list(const sqlock_stock_item *items, size_t count)
{
    json_t *all = json_array();

    for (size_t i = 0; i < count; i++)
        all = cli_json_append(
            all, json_pack("{s:o, s:o}", "item", cli_json_text(items[i].name),
                           "quantity", json_quantity(items[i].quantity)));
    return cli_print_json(json_pack("{s:o}", "items", all));
}

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const sqlock_stock_item *item = (const sqlock_stock_item *)context + number;

    if (is_known(item->quantity))
        row->cells[1] = cli_number_text(row->numbers[1], item->quantity);
    return cli_row_text(row, 0, item->name);
}

static int print_list(const sqlock_stock_item *items, size_t count)
{
    static const char *const heads[] = {"ITEM", "QUANTITY"};
    const cli_table table = {.heads = heads,
                             .columns = 2,
                             .flexible = 1u << 0,
                             .right = 1u << 1,
                             .rows = count,
                             .context = items,
                             .fill = fill_row};

    return cli_table_print(&table);
}

int stock_ls(const stock_till *till)
{
    sqlock_stock_item *items = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;

    if (sqlock_stock_list(till->stock, &items, &count, &err) < 0)
        return stock_refuse(&err);
    status = till->app->json ? print_json_list(items, count)
                             : print_list(items, count);
    sqlock_free(items);
    return status;
}
