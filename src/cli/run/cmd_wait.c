/*
 * cmd_wait.c - `sqlock wait`: wait until nobody has a lock, or until its work
 * is recorded as done, without taking the lock
 *
 * The row is read again and again, after pauses that grow to a second: who does
 * not want the lock has no ticket in its queue, so no release wakes him.
 */
#include "run.h"
#include "sqlock/once.h"

#include <jansson.h>

static bool awaits_record;
static int64_t wait_ms = SQLOCK_FOREVER;

static const cli_option options_table[] = {{"wait", 'w', .ms = &wait_ms},
                                           {"once", .flag = &awaits_record},
                                           {.name = NULL}};

/* Return 0: nobody has the lock; EBUSY; or why that is not known. */
static int look_at_lock(sqlock_registry *registry, const char *name,
                        sqlock_error *err)
{
    sqlock_info *row = NULL;
    int rc = sqlock_show(registry, name, &row, err);

    if (rc == 0 && row->state == SQLOCK_HELD)
        rc = SQLOCK_EBUSY;
    sqlock_info_free(row, row != NULL);
    return rc == SQLOCK_ENOTFOUND ? 0 : rc;
}

static int wait_for_lock(run_wait *wait, sqlock_registry *registry,
                         sqlock_error *err)
{
    for (;;) {
        int rc = look_at_lock(registry, wait->options->name, err);

        if (rc == SQLOCK_EBUSY) {
            if (!run_wait_watches(wait, registry))
                return rc;
        } else if (!run_wait_goes_on(wait, rc, err)) {
            return run_wait_tell(rc, err);
        }
    }
}

/* Return 0: it is recorded; ENOTFOUND: it was not in time. */
static int wait_for_record(run_wait *wait, sqlock_registry *registry,
                           sqlock_error *err)
{
    for (;;) {
        int rc = sqlock_once_check(registry, wait->options->name, err);

        if (!run_wait_goes_on(wait, rc == SQLOCK_ENOTFOUND ? SQLOCK_EBUSY : rc,
                              err))
            return run_wait_tell(rc, err);
    }
}

/* Return the exit status for the result of the wait, of which nothing was said
 * yet if it is no CLI_BUSY. */
static int status_of(const run_options *options, int rc,
                     const sqlock_error *err)
{
    if (rc == SQLOCK_ENOTFOUND) {
        cli_error("\"%s\" is not recorded as done", options->name);
        return CLI_BUSY;
    }
    return cli_status_of(rc) == CLI_BUSY || rc == 0 ? cli_status_of(rc)
                                                    : cli_fail(err);
}

/* Return the status, or that of a failure to print. */
static int print_outcome(const run_options *options, int status)
{
    int printed = cli_print_json(
        json_pack("{s:o, s:b}", "name", cli_json_text(options->name),
                  awaits_record ? "done" : "free", status == CLI_OK));

    return printed == CLI_OK ? status : printed;
}

static int wait_until(const run_options *options, bool prints)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    run_wait wait;
    int rc, status;

    run_wait_begin(&wait, options, NULL, 0);
    rc = run_wait_open(&wait, &options->registry, &registry, &err);
    if (rc == 0)
        rc = awaits_record ? wait_for_record(&wait, registry, &err)
                           : wait_for_lock(&wait, registry, &err);
    (void)sqlock_registry_close(registry, NULL);
    status = status_of(options, rc, &err);
    return prints && (status == CLI_OK || status == CLI_BUSY)
               ? print_outcome(options, status)
               : status;
}

static int run_wait_command(cli *app)
{
    run_options options = {
        .name = app->args[0], .wait_ms = wait_ms, .is_observer = true};

    options.url = cli_where(app, &options.registry);
    return options.url != NULL ? wait_until(&options, app->json) : CLI_USAGE;
}

const cli_command cli_wait = {
    .name = "wait",
    .summary = "wait until nobody has a lock, or its work is done",
    .argument = "NAME",
    .options = options_table,
    .run = run_wait_command,
};
