/*
 * cmd_ls.c - `sqlock ls`: the locks of a region.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { NAME, STATE, HOLDER, SINCE, REMAINING, TOKEN, COLUMNS };

static bool fill_row(char **cells, const sqlock_info *row)
{
    cells[NAME] = cli_escape(row->name != NULL ? row->name : row->key);
    cells[STATE] = strdup(cli_state_name(row->state));
    if (row->holder != NULL)
        cells[HOLDER] = cli_escape(row->holder);
    if (row->state != SQLOCK_FREE)
        cells[SINCE] = cli_time_text(row->acquired_at_us, false);
    if (row->state == SQLOCK_HELD)
        cells[REMAINING] = cli_duration_text(row->remaining_ms);
    if (row->token != 0)
        cells[TOKEN] = cli_number_text(row->token);
    return cells[NAME] != NULL && cells[STATE] != NULL;
}

static int print_rows(const sqlock_info *rows, size_t count)
{
    static const char *const heads[COLUMNS] = {"NAME",  "STATE",     "HOLDER",
                                               "SINCE", "REMAINING", "TOKEN"};
    static const size_t spare[] = {TOKEN, SINCE, HOLDER, REMAINING, COLUMNS};
    cli_table table = {
        .heads = heads,
        .columns = COLUMNS,
        .flexible = 1U << NAME | 1U << HOLDER,
        .right = 1U << REMAINING | 1U << TOKEN,
        .spare = spare,
    };
    bool is_whole = cli_table_init(&table, count);
    size_t i;

    for (i = 0; is_whole && i < count; i++)
        is_whole = fill_row(&table.cells[i * COLUMNS], &rows[i]);
    if (is_whole)
        cli_table_print(&table);
    else
        cli_error("out of memory");
    cli_table_clear(&table);
    return is_whole ? CLI_OK : CLI_SYSTEM;
}

static int print_json(const cli *app, sqlock_layout layout,
                      const sqlock_info *rows, size_t count)
{
    json_t *locks = json_array();
    size_t i;

    for (i = 0; locks != NULL && i < count; i++) {
        if (json_array_append_new(locks, cli_info_json(&rows[i])) != 0) {
            json_decref(locks);
            locks = NULL;
        }
    }
    return cli_print_json(json_pack("{s:o, s:s, s:o}", "region",
                                    cli_json_text(cli_region(app)), "layout",
                                    cli_layout_name(layout), "locks", locks));
}

/* A lock of the future stays taken until then, whatever becomes of its holder:
 * who looks at the list should know. */
static void warn_of_clocks(const sqlock_info *rows, size_t count)
{
    char *name;
    char *ahead;
    size_t i;

    for (i = 0; i < count; i++) {
        if (rows[i].ahead_ms == 0)
            continue;
        name = cli_escape(rows[i].name != NULL ? rows[i].name : rows[i].key);
        ahead = cli_duration_text(rows[i].ahead_ms);
        if (name != NULL && ahead != NULL)
            cli_note("%s: the clock of its holder is %s ahead of the "
                     "database's, or its TTL longer than --peer-ttl",
                     name, ahead);
        free(name);
        free(ahead);
    }
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
