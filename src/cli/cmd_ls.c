/*
 * cmd_ls.c - `sqlock ls`: list locks, and warn of those whose holder's clock is
 * off, since such a lock stays held for longer than a lease lasts
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define WARNED_MAX 10 /* locks that a warning names */

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

static int read_options(const cli *app)
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
    is_whole = cli_write_json(cli_json_text(cli_region(app)), 0);
    printf(", \"layout\": \"%s\", \"locks\": [",
           cli_layouts[sqlock_registry_layout(app->registry)]);
    for (i = 0; is_whole && i < count; i++) {
        fputs(i > 0 ? ",\n" : "\n", stdout);
        is_whole = cli_write_json(cli_info_json(&rows[i]), 0);
    }
    if (!is_whole)
        return CLI_SYSTEM;
    fputs(count > 0 ? "\n]}\n" : "]}\n", stdout);
    return CLI_OK;
}

/* Warn of locks that, by the database's clock, were acquired in the future or
 * for longer than --peer-ttl; name the first WARNED_MAX.  If its holder dies,
 * such a lock stays held for longer than a lease lasts. */
static void warn_of_clocks(const sqlock_info *rows, size_t count)
{
    char ahead[CLI_NUMBER_SIZE];
    size_t warned = 0;
    char *name;
    size_t i;

    for (i = 0; i < count; i++) {
        if (rows[i].ahead_ms == 0 || ++warned > WARNED_MAX)
            continue;
        name = cli_escape(rows[i].name != NULL ? rows[i].name : rows[i].key);
        if (name != NULL)
            cli_note("%s: the clock of its holder is at least %s ahead of the "
                     "database's, or its TTL is longer than --peer-ttl",
                     name, cli_duration_text(ahead, rows[i].ahead_ms));
        free(name);
    }
    if (warned > WARNED_MAX)
        cli_note("and %zu more locks have such a holder", warned - WARNED_MAX);
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
    int status = read_options(app);
    int rc;

    if (status == CLI_OK)
        status = cli_open(app, 0);
    if (status != CLI_OK)
        return status;
    buffer_output();
    rc = sqlock_find(app->registry, &how, &rows, &count, &err);
    if (rc < 0)
        return cli_fail(&err);
    status = app->json ? print_json(app, rows, count) : print_rows(rows, count);
    warn_of_clocks(rows, count);
    sqlock_info_free(rows, count);
    return status;
}

const cli_command cli_ls = {
    .name = "ls",
    .summary = "list the locks that are held or expired",
    .checks_arguments = true,
    .options = options_table,
    .run = run_ls,
};
