/*
 * cmd_ls.c - `sqlock ls`: list locks
 */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

static sqlock_find_options how = SQLOCK_FIND_INIT;
static int64_t limit;
static int sort = -1;
static bool has_names;

/* in the order of sqlock_sort */
static const char *const sorts[] = {"name", "held", "ttl", "token", NULL};

static const cli_option options_table[] = {
    {"all", 'a', .flag = &how.free_too},
    {"regions", .flag = &how.all_regions},
    {"sort", .word = &sort, .words = sorts},
    {"limit", .number = &limit, .least = 1, .most = UINT32_MAX},
    {"waiters", .flag = &has_names},
    {.name = NULL}};

static int check(const cli *app)
{
    how.limit = (uint32_t)limit;
    how.sort = sort >= 0 ? (sqlock_sort)sort : SQLOCK_SORT_NAME;
    how.pattern = app->count > 0 ? app->args[0] : NULL;
    if (app->count > 1)
        return cli_want_args(app, 1, "PATTERN");
    /* The URL may contain a password: the message does not repeat it. */
    if (how.pattern != NULL && strstr(how.pattern, "://") != NULL) {
        cli_error("ls: PATTERN is a database URL: give that with --url");
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int print_rows(const sqlock_info *rows, size_t count)
{
    const cli_locks locks = {.rows = rows,
                             .count = count,
                             .has_regions = how.all_regions,
                             .has_names = has_names};

    return cli_locks_print(&locks);
}

/* Print the rows one by one, each on a line of its own: a JSON tree of all rows
 * would take several times their memory. */
static int print_json(const cli *app, const sqlock_info *rows, size_t count)
{
    bool is_whole;
    size_t i;

    fputs("{\"region\": ", stdout);
    is_whole = cli_write_json(cli_json_text(cli_region(app)), false);
    printf(", \"layout\": \"%s\", \"locks\": [",
           cli_layouts[sqlock_registry_layout(app->registry)]);
    for (i = 0; is_whole && i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stdout);
        is_whole = cli_write_json(cli_info_json(app, &rows[i]), false);
    }
    if (!is_whole)
        return CLI_SYSTEM;
    fputs(count > 0 ? "\n]}\n" : "]}\n", stdout);
    return CLI_OK;
}

/* Buffer stdout in large blocks if it is a file or pipe: with the size that
 * stdio chooses, a million rows of 100 bytes would take 25,000 writes. */
static void buffer_output(void)
{
    static char buffer[1 << 17];

    if (!isatty(STDOUT_FILENO))
        (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

static int run_ls(cli *app)
{
    sqlock_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;

    cli_note_grace(app);
    buffer_output();
    if (sqlock_find(app->registry, &how, &rows, &count, &err) < 0)
        return cli_fail(&err);
    status = app->json ? print_json(app, rows, count) : print_rows(rows, count);
    sqlock_info_free(rows, count);
    return status;
}

const cli_command cli_ls = {
    .name = "ls",
    .summary = "list the locks that are held or expired",
    .check = check,
    .opens = true,
    .options = options_table,
    .run = run_ls,
};
