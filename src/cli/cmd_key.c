/*
 * cmd_key.c - `sqlock key`: print the LOCK_KEY of a name; needs no database
 */
#include "cli.h"

#include <stdio.h>

#include <jansson.h>

static int run_key(cli *app)
{
    const char *rule_name = app->settings[CLI_RULE];
    sqlock_key_rule rule;
    char key[SQLOCK_KEY_SIZE];
    sqlock_error err = {0};
    int status = cli_key_rule(app, &rule);

    if (status != CLI_OK)
        return status;
    if (sqlock_key_of(key, app->args[0], rule, &err) < 0)
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
    .argument = "NAME",
    .run = run_key,
};
