/*
 * cmd_show.c - `sqlock show`: print everything known about one lock, and say of
 * each fact that it is unknown where the row does not record it
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Print the waiters that the database knows of: there may be more.  A row of
 * NULL means that they are unknown. */
static void print_waiting(const sqlock_info *row)
{
    char text[32];

    if (row == NULL || row->waiters < 0) {
        print_text("waiting", "unknown (this database does not list them)");
    } else if (row->waiter_names != NULL) {
        print_text("waiting", row->waiter_names);
    } else if (row->waiters > 0) {
        (void)snprintf(text, sizeof text, "at least %d", row->waiters);
        print_text("waiting", text);
    } else {
        print_text("waiting", "none that the database knows of");
    }
}

static void print_row(const char *region, const sqlock_info *row,
                      const sqlock_info *waited_for)
{
    bool is_held = row->state == SQLOCK_HELD;
    char number[CLI_NUMBER_SIZE];

    print_text("name", row->name);
    print_text("key", row->key);
    print_text("region", region);
    print_text("state", is_held && cli_is_broken(row)
                            ? "held, but broken: free when the lease expires"
                            : cli_state_name(row->state));
    print_text("holder", row->holder);
    print_text("client id", row->client_id[0] != '\0' ? row->client_id : NULL);
    print_text("token",
               row->token != 0 ? cli_number_text(number, row->token) : NULL);
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
        print_waiting(waited_for);
        return;
    }
    print_text("ended", end_of(row));
    if (row->state == SQLOCK_FREE && row->holder == NULL)
        print_text("last",
                   row->last_holder != NULL ? row->last_holder : NOT_KNOWN);
}

/* Read the row of a held lock again, with its waiters.  The name serves as a
 * pattern, which may match other names, too: the key identifies the row.
 * Return the row, which is one of @p rows, to be freed by the caller; NULL: the
 * lock is not held, or the waiters are unknown. */
static const sqlock_info *find_waited(sqlock_registry *registry,
                                      const sqlock_info *row,
                                      sqlock_info **rows, size_t *count)
{
    sqlock_find_options options = SQLOCK_FIND_INIT;

    options.pattern = row->name != NULL ? row->name : row->key;
    options.waiters = true;
    if (row->state != SQLOCK_HELD ||
        sqlock_find(registry, &options, rows, count, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*rows)[i].key, row->key) == 0)
            return &(*rows)[i];
    }
    return NULL;
}

static json_t *waiting_json(const sqlock_info *waited_for)
{
    return waited_for == NULL || waited_for->waiters < 0
               ? json_null()
               : json_integer(waited_for->waiters);
}

static int print_json(const sqlock_info *row, const sqlock_info *waited_for)
{
    json_t *value = cli_info_json(row);
    const char *end = end_of(row);

    if (value != NULL)
        (void)json_object_set_new(value, "ended",
                                  end != NULL ? json_string(end) : json_null());
    if (value != NULL)
        (void)json_object_set_new(value, "waiters", waiting_json(waited_for));
    if (value != NULL)
        (void)json_object_set_new(value, "waiter_names",
                                  cli_json_text(waited_for != NULL
                                                    ? waited_for->waiter_names
                                                    : NULL));
    return cli_print_json(value);
}

static int run_show(cli *app)
{
    sqlock_info *row = NULL;
    sqlock_info *rows = NULL;
    const sqlock_info *waited_for;
    sqlock_error err = {0};
    size_t count = 0;
    int status = cli_open(app, 0);
    int rc;

    if (status != CLI_OK)
        return status;
    rc = sqlock_show(app->registry, app->args[0], &row, &err);
    if (rc < 0)
        return rc == SQLOCK_ENOTFOUND ? cli_no_lock(app) : cli_fail(&err);
    waited_for = find_waited(app->registry, row, &rows, &count);
    if (app->json)
        status = print_json(row, waited_for);
    else
        print_row(cli_region(app), row, waited_for);
    sqlock_info_free(rows, count);
    sqlock_info_free(row, 1);
    return status;
}

const cli_command cli_show = {
    .name = "show",
    .summary = "show one lock",
    .argument = "KEY",
    .run = run_show,
};
