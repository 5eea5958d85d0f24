/*
 * cmd_permits.c - `sqlock permits`: change how many may have a lock at a time
 */
#include "cli.h"
#include "sqlock/shared.h"

#include <jansson.h>

#define PERMITS_MAX 999999

static int64_t permits;

/* Read the arguments, a name and a number. */
static int check(const cli *app)
{
    int status = cli_want_args(app, 2, app->count == 0 ? "KEY" : "N");

    if (status != CLI_OK)
        return status;
    status = cli_want_text(app, 0, "KEY");
    if (status != CLI_OK)
        return status;
    if (!lk_text_integer(app->args[1], &permits) || permits < 0 ||
        permits > PERMITS_MAX) {
        cli_error("permits: \"%s\" is no number from 0 to %d",
                  cli_shown(app->args[1]), PERMITS_MAX);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int run_permits(cli *app)
{
    sqlock_error err = {0};
    int rc;

    rc = sqlock_set_permits(app->registry, app->args[0], (uint32_t)permits,
                            &err);
    if (rc < 0)
        return rc == SQLOCK_ENOTFOUND ? cli_no_lock(app) : cli_fail(&err);
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack("{s:o, s:I}", "name",
                                    cli_json_text(app->args[0]), "permits",
                                    (json_int_t)permits));
}

const cli_command cli_permits = {
    .name = "permits",
    .summary = "change how many may have a lock at a time",
    .check = check,
    .opens = true,
    .run = run_permits,
};
