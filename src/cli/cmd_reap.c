/*
 * cmd_reap.c - `sqlock reap`: remove the rows of locks that have long been free
 * or expired, and let overdue reservations of stock expire
 */
#include "cli.h"
#include "sqlock/stock.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#define RETENTION_MOST_MS (INT64_C(3650) * 86400000)

static int64_t retention_ms = SQLOCK_RETENTION_DEFAULT_MS;

static const cli_option reap_options[] = {
    {"older-than", .ms = &retention_ms, .most = RETENTION_MOST_MS},
    {.name = NULL}};

/* End overdue reservations in sqlock's stock tables, restore their quantities,
 * and store in *expired how many there were; without such tables, none.  Return
 * 0 or a negative code. */
static int expire_reservations(sqlock_registry *registry, int64_t *expired,
                               sqlock_error *err)
{
    sqlock_stock *stock = NULL;
    int rc = sqlock_stock_open(&stock, registry, NULL, err);

    *expired = 0;
    if (rc == SQLOCK_ESCHEMA || rc == SQLOCK_ENOTSUP) {
        cli_info("reservations are not checked: %s", err->message);
        return 0;
    }
    if (rc == 0)
        rc = sqlock_stock_expire(stock, expired, err);
    sqlock_stock_close(stock);
    return rc;
}

static int run_reap(cli *app)
{
    sqlock_error err = {0};
    int64_t removed = 0;
    int64_t expired = 0;
    int status = CLI_OK;
    int rc;

    rc = sqlock_reap(app->registry, retention_ms, &removed, &err);
    if (rc == 0)
        rc = expire_reservations(app->registry, &expired, &err);
    if (rc < 0)
        status = cli_fail(&err);
    else if (app->json)
        status = cli_print_json(json_pack("{s:I, s:I}", "removed",
                                          (json_int_t)removed, "expired",
                                          (json_int_t)expired));
    else
        printf("%" PRId64 "\n", removed);
    if (expired > 0)
        cli_note("%" PRId64 " reservations of stock have expired", expired);
    return status;
}

const cli_command cli_reap = {
    .name = "reap",
    .summary = "remove rows of locks that are long free or expired",
    .options = reap_options,
    .opens = true,
    .run = run_reap,
};
