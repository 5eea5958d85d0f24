/*
 * cmd_lease.c - `sqlock renew`, `release` and `guard-sql`: commands on a lease
 * that another process has acquired, and that is given by its id
 */
#include "cli.h"
#include "sqlock/operator.h"

#include <stdio.h>

#include <jansson.h>

static int64_t ttl_ms;

static const cli_option renew_options[] = {
    {"ttl", 't', .ms = &ttl_ms, .least = 1000, .most = INT64_C(604800000)},
    {.name = NULL}};

static int run_renew(cli *app)
{
    sqlock_error err = {0};
    int64_t remaining_ms;

    if (sqlock_lease_renew(app->registry, app->args[0], (uint32_t)ttl_ms,
                           &remaining_ms, &err) < 0)
        return cli_fail(&err);
    if (!app->json)
        return CLI_OK;
    return cli_print_json(
        json_pack("{s:I}", "remaining_ms", (json_int_t)remaining_ms));
}

static int run_release(cli *app)
{
    sqlock_error err = {0};

    if (sqlock_lease_release(app->registry, app->args[0], &err) < 0)
        return cli_fail(&err);
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack("{s:b}", "released", 1));
}

/* Print what no database accepts: where there is no guard, a program that goes
 * on must not commit without one. */
static void print_no_guard(const cli *app)
{
    if (!app->json)
        puts("sqlock: no guard;");
}

static int run_guard_sql(cli *app)
{
    sqlock_error err = {0};
    char *text = NULL;
    int status = CLI_OK;

    if (sqlock_lease_guard_text(&text, app->registry, app->args[0], &err) < 0) {
        print_no_guard(app);
        return cli_fail(&err);
    }
    if (app->json)
        status = cli_print_json(json_pack("{s:o}", "sql", cli_json_text(text)));
    else
        printf("%s;\n", text);
    sqlock_free(text);
    return status;
}

const cli_command cli_renew = {
    .name = "renew",
    .summary = "renew a lease, by its id",
    .argument = "LEASE",
    .opens = true,
    .options = renew_options,
    .run = run_renew,
};

const cli_command cli_release = {
    .name = "release",
    .summary = "release a lock, by the id of its lease",
    .argument = "LEASE",
    .opens = true,
    .run = run_release,
};

const cli_command cli_guard_sql = {
    .name = "guard-sql",
    .summary = "print the SQL that guards a lease in a transaction",
    .argument = "LEASE",
    .opens = true,
    .run = run_guard_sql,
    .refused = print_no_guard,
};
