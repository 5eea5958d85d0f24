/*
 * cmd_once.c - `sqlock once`: list and show the records of `sqlock run --once`,
 * and remove one, so that its command may run again
 */
#include "cli.h"
#include "sqlock/once.h"

#include <string.h>

#include <jansson.h>

enum { NAME, DONE, TOKEN, COLUMNS };

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const sqlock_once_info *info = (const sqlock_once_info *)context + number;

    row->cells[DONE] =
        cli_time_text(row->numbers[DONE], info->done_at_us, false);
    row->cells[TOKEN] = cli_number_text(row->numbers[TOKEN], info->token);
    return cli_row_text(row, NAME, info->name != NULL ? info->name : info->key);
}

static int print_table(const sqlock_once_info *rows, size_t count)
{
    static const char *const heads[COLUMNS] = {"NAME", "DONE", "TOKEN"};
    static const size_t spare[] = {TOKEN, DONE, COLUMNS};
    const cli_table table = {
        .heads = heads,
        .columns = COLUMNS,
        .flexible = 1U << NAME,
        .right = 1U << TOKEN,
        .spare = spare,
        .rows = count,
        .context = rows,
        .fill = fill_row,
    };

    return cli_table_print(&table);
}

static json_t *as_json(const sqlock_once_info *row)
{
    char done[CLI_NUMBER_SIZE];

    return json_pack(
        "{s:o, s:o, s:o, s:I, s:o}", "name", cli_json_text(row->name), "key",
        cli_json_text(row->key), "done_at",
        cli_json_text(cli_time_text(done, row->done_at_us, true)), "token",
        (json_int_t)row->token, "client_id", cli_json_text(row->client_id));
}

static int print_rows(const cli *app, const sqlock_once_info *rows,
                      size_t count)
{
    json_t *records;
    size_t i;

    if (!app->json)
        return print_table(rows, count);
    records = json_array();
    for (i = 0; i < count; i++)
        records = cli_json_append(records, as_json(&rows[i]));
    return cli_print_json(
        json_pack("{s:s, s:o}", "region", cli_region(app), "records", records));
}

static int fail(const cli *app, const sqlock_error *err)
{
    if (err->code != SQLOCK_ENOTFOUND)
        return cli_fail(err);
    cli_error("there is no record of \"%s\" in region %s", app->args[1],
              cli_region(app));
    return CLI_NO;
}

static int look(const cli *app, const char *name)
{
    sqlock_once_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;

    if (sqlock_once_list(app->registry, name, &rows, &count, &err) < 0)
        return cli_fail(&err);
    if (name != NULL && count == 0) {
        err.code = SQLOCK_ENOTFOUND;
        status = fail(app, &err);
    } else if (name != NULL && app->json) {
        status = cli_print_json(as_json(&rows[0]));
    } else {
        status = print_rows(app, rows, count);
    }
    sqlock_once_free(rows, count);
    return status;
}

static int forget(const cli *app)
{
    sqlock_error err = {0};

    if (sqlock_once_forget(app->registry, app->args[1], &err) < 0)
        return fail(app, &err);
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack("{s:b}", "forgotten", 1));
}

static int check(const cli *app)
{
    const char *action = app->count > 0 ? app->args[0] : "";
    bool is_list = strcmp(action, "list") == 0 || strcmp(action, "ls") == 0;
    int status;

    if (!is_list && strcmp(action, "show") != 0 &&
        strcmp(action, "forget") != 0) {
        cli_error(
            "once: give one of list, show or forget; see `sqlock once --help`");
        return CLI_USAGE;
    }
    status = cli_want_args(app, is_list ? 1 : 2, "NAME");
    return status == CLI_OK && !is_list ? cli_want_text(app, 1, "NAME")
                                        : status;
}

static int run_once(cli *app)
{
    if (strcmp(app->args[0], "forget") == 0)
        return forget(app);
    return look(app, app->count > 1 ? app->args[1] : NULL);
}

const cli_command cli_once = {
    .name = "once",
    .summary = "show the records of `run --once`, or remove one",
    .check = check,
    .opens = true,
    .run = run_once,
};
