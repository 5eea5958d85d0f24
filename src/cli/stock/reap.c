/*
 * reap.c - `sqlock stock reap`: remove rows that are older than the retention
 *
 * It may run for long: a terminal is shown the progress, and a run that fails
 * says how many rows were removed before.
 */
#include "stock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

/* Callback of sqlock_stock_reap(): print the progress if stderr is a terminal,
 * at most once in each second.  @p context is the time of the last message.
 * Returns 0, which means to go on. */
static int tell_progress(void *context, const sqlock_stock_reaped *so_far)
{
    struct timespec *last = context;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == last->tv_sec)
        return 0;
    *last = now;
    if (isatty(STDERR_FILENO))
        cli_note("%" PRId64 " rows so far",
                 so_far->entries + so_far->reservations);
    return 0;
}

static int print_reaped(const stock_till *till,
                        const sqlock_stock_reaped *reaped)
{
    if (till->app->json)
        return cli_print_json(
            json_pack("{s:I, s:I, s:b}", "entries", (json_int_t)reaped->entries,
                      "reservations", (json_int_t)reaped->reservations,
                      "dry_run", till->is_dry_run));
    printf("%" PRId64 "\n", reaped->entries + reaped->reservations);
    return CLI_OK;
}

int stock_reap(const stock_till *till)
{
    sqlock_stock_reap_options options = SQLOCK_STOCK_REAP_INIT;
    sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;
    sqlock_error err = {0};
    struct timespec last;
    int status = CLI_OK;

    options.retention_ms = till->retention_ms;
    options.dry_run = till->is_dry_run;
    options.progress = tell_progress;
    options.context = &last;
    (void)clock_gettime(CLOCK_MONOTONIC, &last);
    if (sqlock_stock_reap(till->stock, &options, &reaped, &err) < 0) {
        status = stock_refuse(&err);
        if (reaped.entries + reaped.reservations > 0)
            cli_note("%" PRId64 " rows were %s before",
                     reaped.entries + reaped.reservations,
                     till->is_dry_run ? "counted" : "removed");
        return status;
    }
    if (till->is_dry_run)
        cli_note("dry run: %" PRId64 " rows would be removed",
                 reaped.entries + reaped.reservations);
    return print_reaped(till, &reaped);
}
