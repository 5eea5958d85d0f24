/*
 * cmd_show.c - `sqlock show`: print everything known about one lock, and say of
 * each fact that it is unknown where the row does not record it
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#define INDENT 11 /* where a value begins */

/* The end of a lease and its holder are not recorded by Spring services, nor by
 * earlier versions of sqlock. */
#define NOT_KNOWN "unknown (not recorded in the row)"

static void print_text(const char *label, const char *text)
{
    char *escaped = text != NULL ? cli_escape(text) : NULL;

    printf("%-*s", INDENT, label);
    cli_print_wrapped(escaped != NULL ? escaped : "-", INDENT);
    free(escaped);
}

/* Return how the last lease ended, NULL if it has not ended. */
static const char *end_of(const sqlock_info *row)
{
    if (row->state == SQLOCK_HELD)
        return NULL;
    if (cli_is_broken(row))
        return "broken";
    if (row->state == SQLOCK_EXPIRED)
        return "expired, not released";
    return row->last_holder != NULL ? "released" : NOT_KNOWN;
}

/* Print each of the lines on a line of its own; the first has the label. */
static void print_lines(const char *label, const char *lines)
{
    const char *at = lines;
    char *line;

    while ((line = cli_next_line(&at)) != NULL) {
        print_text(label, line);
        free(line);
        label = "";
    }
}

/* Print the processes that wait, in order. */
static void print_waiting(const sqlock_info *row)
{
    if (row->waiters <= 0)
        print_text("waiting", row->waiters < 0 ? NOT_KNOWN : "none");
    else
        print_lines("waiting", row->waiter_names);
}

static void print_permits(const sqlock_info *row)
{
    char text[CLI_NUMBER_SIZE];

    if (row->permits == 0)
        return;
    (void)snprintf(text, sizeof text, "%u of %u taken", row->taken,
                   row->permits);
    print_text("permits", text);
}

/* Print who has the lock, or those who share it. */
static void print_holders(const sqlock_info *row)
{
    if (row->mode == SQLOCK_SHARED && row->sharer_names != NULL)
        print_lines("shared by", row->sharer_names);
    else
        print_text("holder", row->holder);
}

static void print_row(const char *region, const sqlock_info *row)
{
    bool is_held = row->state == SQLOCK_HELD;
    int64_t token = cli_token(row);
    char number[CLI_NUMBER_SIZE];

    print_text("name", row->name);
    print_text("key", row->key);
    print_text("region", region);
    print_text("state", is_held && cli_is_broken(row)
                            ? "held, but broken: free when the lease expires"
                            : cli_state_name(row->state));
    print_permits(row);
    print_holders(row);
    if (row->text != NULL)
        print_text("text", row->text);
    print_text("client id", row->client_id[0] != '\0' ? row->client_id : NULL);
    print_text("token", token != 0 ? cli_number_text(number, token) : NULL);
    print_text("acquired",
               row->acquired_at_us != 0
                   ? cli_time_text(number, row->acquired_at_us, true)
                   : NOT_KNOWN);
    print_text("expires", cli_time_text(number, row->expires_at_us, true));
    print_text("remaining",
               is_held ? cli_duration_text(number, row->remaining_ms) : NULL);
    if (is_held) {
        print_text("held for", row->held_ms >= 0
                                   ? cli_duration_text(number, row->held_ms)
                                   : NOT_KNOWN);
        print_waiting(row);
        return;
    }
    print_text("ended", end_of(row));
    if (row->state == SQLOCK_FREE && row->holder == NULL)
        print_text("last",
                   row->last_holder != NULL ? row->last_holder : NOT_KNOWN);
}

static int print_json(const cli *app, const sqlock_info *row)
{
    json_t *value = cli_info_json(app, row);
    const char *end = end_of(row);

    if (value != NULL)
        (void)json_object_set_new(value, "ended",
                                  end != NULL ? json_string(end) : json_null());
    return cli_print_json(value);
}

static int run_show(cli *app)
{
    sqlock_info *row = NULL;
    sqlock_error err = {0};
    int status = CLI_OK;
    int rc;

    cli_note_grace(app);
    rc = sqlock_show(app->registry, app->args[0], &row, &err);
    if (rc < 0)
        return rc == SQLOCK_ENOTFOUND ? cli_no_lock(app) : cli_fail(&err);
    if (app->json)
        status = print_json(app, row);
    else
        print_row(cli_region(app), row);
    sqlock_info_free(row, 1);
    return status;
}

const cli_command cli_show = {
    .name = "show",
    .summary = "show one lock",
    .argument = "KEY",
    .opens = true,
    .run = run_show,
};
