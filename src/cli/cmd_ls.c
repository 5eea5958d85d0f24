/*
 * cmd_ls.c - `sqlock ls`: the locks of a region.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

enum { NAME, STATE, HOLDER, SINCE, REMAINING, TOKEN, COLUMNS };

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const sqlock_info *info = (const sqlock_info *)context + number;

    row->cells[STATE] = cli_state_name(info->state);
    if (info->state != SQLOCK_FREE)
        row->cells[SINCE] =
            cli_time_text(row->numbers[SINCE], info->acquired_at_us, false);
    if (info->state == SQLOCK_HELD)
        row->cells[REMAINING] =
            cli_duration_text(row->numbers[REMAINING], info->remaining_ms);
    if (info->token != 0)
        row->cells[TOKEN] = cli_number_text(row->numbers[TOKEN], info->token);
    return cli_row_text(row, NAME,
                        info->name != NULL ? info->name : info->key) &&
           (info->holder == NULL || cli_row_text(row, HOLDER, info->holder));
}

static int print_rows(const sqlock_info *rows, size_t count)
{
    static const char *const heads[COLUMNS] = {"NAME",  "STATE",     "HOLDER",
                                               "SINCE", "REMAINING", "TOKEN"};
    static const size_t spare[] = {TOKEN, SINCE, HOLDER, REMAINING, COLUMNS};
    const cli_table table = {
        .heads = heads,
        .columns = COLUMNS,
        .flexible = 1U << NAME | 1U << HOLDER,
        .right = 1U << REMAINING | 1U << TOKEN,
        .spare = spare,
        .rows = count,
        .context = rows,
        .fill = fill_row,
    };

    return cli_table_print(&table);
}

/* In ASCII, as cli_print_json(). */
static bool print_value(json_t *value)
{
    char *text = value != NULL
                     ? json_dumps(value, JSON_ENSURE_ASCII | JSON_ENCODE_ANY)
                     : NULL;

    json_decref(value);
    if (text != NULL)
        (void)fputs(text, stdout);
    free(text);
    return text != NULL;
}

/* Row by row, each on a line of its own: a tree of all would take several times
 * the memory of the rows. */
static int print_json(const cli *app, sqlock_layout layout,
                      const sqlock_info *rows, size_t count)
{
    bool is_whole;
    size_t i;

    fputs("{\"region\": ", stdout);
    is_whole = print_value(cli_json_text(cli_region(app)));
    printf(", \"layout\": \"%s\", \"locks\": [", cli_layout_name(layout));
    for (i = 0; is_whole && i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stdout);
        is_whole = cli_info_write(stdout, &rows[i]);
    }
    if (!is_whole) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    fputs(count > 0 ? "\n]}\n" : "]}\n", stdout);
    return CLI_OK;
}

/* A lock of the future stays taken until then, whatever becomes of its holder:
 * who looks at the list should know. */
static void warn_of_clocks(const sqlock_info *rows, size_t count)
{
    char ahead[CLI_NUMBER_SIZE];
    char *name;
    size_t i;

    for (i = 0; i < count; i++) {
        if (rows[i].ahead_ms == 0)
            continue;
        name = cli_escape(rows[i].name != NULL ? rows[i].name : rows[i].key);
        if (name != NULL)
            cli_note("%s: the clock of its holder is %s ahead of the "
                     "database's, or its TTL longer than --peer-ttl",
                     name, cli_duration_text(ahead, rows[i].ahead_ms));
        free(name);
    }
}

/* To a file or pipe in large pieces: 100 bytes a row are 25,000 writes of what
 * stdio takes otherwise. */
static void buffer_output(void)
{
    static char buffer[1 << 17];

    if (!isatty(STDOUT_FILENO))
        (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

static int run_ls(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;
    int rc;

    status = cli_want_args(app, 0, "");
    if (status != CLI_OK)
        return status;
    status = cli_open(app, &registry);
    if (status != CLI_OK)
        return status;
    buffer_output();
    rc = sqlock_list(registry, &rows, &count, &err);
    if (rc < 0)
        status = cli_fail(&err);
    else if (app->json)
        status = print_json(app, sqlock_registry_layout(registry), rows, count);
    else
        status = print_rows(rows, count);
    if (rc == 0)
        warn_of_clocks(rows, count);
    sqlock_info_free(rows, count);
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

const cli_command cli_ls = {
    .name = "ls",
    .summary = "list the locks of the region",
    .help =
        "Usage: sqlock ls [--json]\n"
        "List the locks of the region, by key: name (or LOCK_KEY, where no "
        "name is\n"
        "known), state, holder, since when (UTC), time left, fencing token.\n"
        "\n"
        "States: held; expired (its holder did not release it: the next one "
        "may take\n"
        "it); free (the row keeps the last token).  Cut to the width of a "
        "terminal,\n"
        "a narrow one does without tokens and times; whole when stdout is "
        "none.\n"
        "\n"
        "Written by a clock that is ahead of the database's: said on stderr.\n"
        "\n"
        "JSON: { region, layout, locks: [ { key, name, state, holder, "
        "client_id,\n"
        "token, acquired_at, expires_at, remaining_ms, ahead_ms } ] }, null "
        "where not\n"
        "known.  ahead_ms: how far the clock of its holder is ahead, at least; "
        "0.\n",
    .run = run_ls,
};
