/*
 * cmd_lease.c - `sqlock renew`, `release` and `guard-sql`: commands on a lease
 * that another process has acquired, and that is given by its id
 */
#include "cli.h"
#include "sqlock/lease.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

static char *values[1];

static const struct poptOption renew_options[] = {
    {"ttl", 't', POPT_ARG_STRING, NULL, CLI_OWN, NULL, NULL}, POPT_TABLEEND};

/* Begin a command whose only argument is the id of a lease, and open the
 * registry.  @return CLI_OK, or an exit status after a message */
static int begin(const cli *app, sqlock_registry **registry)
{
    int status = cli_want_name(app, "LEASE");

    return status == CLI_OK ? cli_open(app, registry) : status;
}

static int read_ttl(uint32_t *ttl_ms)
{
    int64_t given = 0;

    if (values[0] != NULL && (!cli_parse_duration(values[0], &given) ||
                              given < 1000 || given > (int64_t)7 * 86400000)) {
        cli_error("renew: --ttl must be a time from 1s to 7d");
        return CLI_USAGE;
    }
    *ttl_ms = (uint32_t)given;
    return CLI_OK;
}

static int run_renew(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int64_t remaining_ms;
    uint32_t ttl_ms;
    int status = read_ttl(&ttl_ms);

    if (status == CLI_OK)
        status = begin(app, &registry);
    if (status != CLI_OK)
        return status;
    if (sqlock_lease_renew(registry, app->args[0], ttl_ms, &remaining_ms,
                           &err) < 0)
        status = cli_fail(&err);
    else if (app->json)
        status = cli_print_json(
            json_pack("{s:I}", "remaining_ms", (json_int_t)remaining_ms));
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

static int run_release(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int status = begin(app, &registry);

    if (status != CLI_OK)
        return status;
    if (sqlock_lease_release(registry, app->args[0], &err) < 0)
        status = cli_fail(&err);
    else if (app->json)
        status = cli_print_json(json_pack("{s:b}", "released", 1));
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

static int run_guard_sql(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    char *text = NULL;
    int status = begin(app, &registry);

    if (status != CLI_OK)
        return status;
    if (sqlock_lease_guard_text(&text, registry, app->args[0], &err) < 0)
        status = cli_fail(&err);
    else if (app->json)
        status = cli_print_json(json_pack("{s:o}", "sql", cli_json_text(text)));
    else
        printf("%s;\n", text);
    sqlock_free(text);
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

const cli_command cli_renew = {
    .name = "renew",
    .summary = "renew a lease, by its id",
    .options = renew_options,
    .values = values,
    .value_count = 1,
    .run = run_renew,
};

const cli_command cli_release = {
    .name = "release",
    .summary = "release a lock, by the id of its lease",
    .run = run_release,
};

const cli_command cli_guard_sql = {
    .name = "guard-sql",
    .summary = "print the SQL that guards a lease in a transaction",
    .run = run_guard_sql,
};
