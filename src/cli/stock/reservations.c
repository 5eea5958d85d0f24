/*
 * reservations.c - actions of `sqlock stock` that end or look at a reservation:
 * they take no items, since the order's entries have them
 */
#include "stock.h"

#include <stdio.h>

#include <jansson.h>

typedef int (*order_call)(sqlock_stock *, sqlock_tx *, const char *,
                          sqlock_stock_answer *, sqlock_error *);

static int end(const stock_till *till, order_call call)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};

    if (call(till->stock, NULL, till->args[0], &answer, &err) < 0)
        return stock_refuse(&err);
    if (answer.is_duplicate)
        cli_note("it was in this state already; nothing was changed");
    if (!till->app->json)
        return CLI_OK;
    return cli_print_json(
        json_pack("{s:b}", "duplicate", (int)answer.is_duplicate));
}

int stock_claim(const stock_till *till)
{
    return end(till, sqlock_stock_claim);
}

int stock_cancel(const stock_till *till)
{
    return end(till, sqlock_stock_cancel);
}

int stock_look(const stock_till *till)
{
    static const char *const names[] = {"reserved", "claimed", "cancelled",
                                        "expired"};
    sqlock_stock_state state = SQLOCK_STOCK_RESERVED;
    sqlock_error err = {0};
    int64_t remaining_ms = 0;
    char remaining[CLI_NUMBER_SIZE];

    if (sqlock_stock_status(till->stock, NULL, till->args[0], &state,
                            &remaining_ms, &err) < 0)
        return stock_refuse(&err);
    if (till->app->json)
        return cli_print_json(json_pack(
            "{s:o, s:s, s:I}", "order", cli_json_text(till->args[0]), "state",
            names[state], "remaining_ms", (json_int_t)remaining_ms));
    if (state == SQLOCK_STOCK_RESERVED)
        printf("%s %s\n", names[state],
               cli_duration_text(remaining, remaining_ms));
    else
        puts(names[state]);
    return CLI_OK;
}

int stock_expire(const stock_till *till)
{
    sqlock_error err = {0};
    int64_t expired = 0;

    if (sqlock_stock_expire(till->stock, &expired, &err) < 0)
        return stock_refuse(&err);
    return cli_print_count(till->app, "expired", expired);
}
