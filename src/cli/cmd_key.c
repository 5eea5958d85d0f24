/*
 * cmd_key.c - `sqlock key`: print the LOCK_KEY of a name; needs no database
 */
#include "cli.h"

#include <stdio.h>

#include <jansson.h>

static int run_key(cli *app)
{
    const char *rule_name = app->globals[CLI_RULE];
    sqlock_key_rule rule = SQLOCK_KEY_CURRENT;
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    int status;
    int rc;

    if (rule_name != NULL && !cli_parse_rule(rule_name, &rule)) {
        cli_error("--rule must be current, legacy or raw");
        return CLI_USAGE;
    }
    status = cli_want_name(app, "NAME");
    if (status != CLI_OK)
        return status;
    rc = sqlock_key_of(key, app->args[0], rule, &err);
    if (rc < 0)
        return cli_fail(&err);
    if (app->json)
        return cli_print_json(
            json_pack("{s:o, s:s, s:o}", "name", cli_json_text(app->args[0]),
                      "rule", rule_name != NULL ? rule_name : "current", "key",
                      cli_json_text(key)));
    printf("%s\n", key);
    return CLI_OK;
}

const cli_command cli_key = {
    .name = "key",
    .summary = "print the LOCK_KEY of a name",
    .run = run_key,
};
