/*
 * cmd_show.c - `sqlock show`: one lock, everything that is known of it.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static void print_text(const char *label, const char *text)
{
    char *escaped = text != NULL ? cli_escape(text) : NULL;

    printf("%-10s %s\n", label, escaped != NULL ? escaped : "-");
    free(escaped);
}

/* How the last lease came to its end; NULL: it has not. */
static const char *end_of(const sqlock_info *row)
{
    static const char broken[] = "broken by ";

    if (row->state == SQLOCK_HELD)
        return NULL;
    if (row->holder != NULL &&
        strncmp(row->holder, broken, sizeof broken - 1) == 0)
        return "broken";
    return row->state == SQLOCK_EXPIRED ? "expired, not released" : "released";
}

static void print_row(const char *region, const sqlock_info *row)
{
    bool is_held = row->state == SQLOCK_HELD;
    char number[CLI_NUMBER_SIZE];

    print_text("name", row->name);
    print_text("key", row->key);
    print_text("region", region);
    print_text("state", cli_state_name(row->state));
    print_text("holder", row->holder);
    print_text("client id", row->client_id[0] != '\0' ? row->client_id : NULL);
    print_text("token",
               row->token != 0 ? cli_number_text(number, row->token) : NULL);
    print_text("acquired", cli_time_text(number, row->acquired_at_us, true));
    print_text("expires", cli_time_text(number, row->expires_at_us, true));
    print_text("remaining",
               is_held ? cli_duration_text(number, row->remaining_ms) : NULL);
    if (is_held)
        print_text("held for", cli_duration_text(number, row->held_ms));
    else
        print_text("ended", end_of(row));
}

static int print_json(const sqlock_info *row)
{
    json_t *value = cli_info_json(row);
    const char *end = end_of(row);

    if (value != NULL)
        (void)json_object_set_new(value, "ended",
                                  end != NULL ? json_string(end) : json_null());
    return cli_print_json(value);
}

static int run_show(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_info *row = NULL;
    sqlock_error err = {0};
    int status;
    int rc;

    status = cli_want_name(app, "KEY");
    if (status != CLI_OK)
        return status;
    status = cli_open(app, &registry);
    if (status != CLI_OK)
        return status;
    rc = sqlock_show(registry, app->args[0], &row, &err);
    if (rc == SQLOCK_ENOTFOUND) {
        cli_error("no lock \"%s\" in region %s", app->args[0], cli_region(app));
        status = CLI_NO;
    } else if (rc < 0) {
        status = cli_fail(&err);
    } else if (app->json) {
        status = print_json(row);
    } else {
        print_row(cli_region(app), row);
    }
    sqlock_info_free(row, 1);
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

const cli_command cli_show = {
    .name = "show",
    .summary = "show one lock",
    .help =
        "Usage: sqlock show KEY [--json]\n"
        "Show all that is known of the lock KEY (a name, or a LOCK_KEY as "
        "`ls` shows\n"
        "it).  Exit status 1: there is no such lock.\n"
        "\n"
        "JSON: { key, name, state, holder, client_id, token, acquired_at,\n"
        "expires_at, remaining_ms, ahead_ms, held_ms, ended }, null where not "
        "known.\n",
    .run = run_show,
};
