/*
 * cmd_ls.c - `sqlock ls`: list the locks of a region
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { SORT, LIMIT, VALUES };

#define WARNED_MAX 10 /* locks that a warning names */

static char *values[VALUES];
static int is_all;
static int has_regions;
static int has_names;

static const struct poptOption options_table[] = {
    {"all", 'a', POPT_ARG_NONE, &is_all, 0, NULL, NULL},
    {"regions", 0, POPT_ARG_NONE, &has_regions, 0, NULL, NULL},
    {"sort", 0, POPT_ARG_STRING, NULL, CLI_OWN + SORT, NULL, NULL},
    {"limit", 0, POPT_ARG_STRING, NULL, CLI_OWN + LIMIT, NULL, NULL},
    {"waiters", 0, POPT_ARG_NONE, &has_names, 0, NULL, NULL},
    POPT_TABLEEND};

static int read_options(const cli *app, sqlock_find_options *options)
{
    *options = (sqlock_find_options)SQLOCK_FIND_INIT;
    options->free_too = is_all != 0;
    options->all_regions = has_regions != 0;
    options->waiters = true;
    if (app->count > 1)
        return cli_want_args(app, 1, "PATTERN");
    /* The URL may contain a password: the message does not repeat it. */
    if (app->count == 1 && strstr(app->args[0], "://") != NULL) {
        cli_error("ls: PATTERN is a database URL: give that with --url");
        return CLI_USAGE;
    }
    if (app->count == 1)
        options->pattern = app->args[0];
    if (values[SORT] != NULL && !cli_parse_sort(values[SORT], &options->sort)) {
        cli_error("ls: --sort must be name, held, ttl or token");
        return CLI_USAGE;
    }
    if (values[LIMIT] != NULL &&
        !cli_parse_count(values[LIMIT], &options->limit)) {
        cli_error("ls: --limit must be a number above 0");
        return CLI_USAGE;
    }
    return CLI_OK;
}

/* Return whether all rows of the region are requested, in any order.  There may
 * be a million: sqlock_list() reads them in pages, ordered by key. */
static bool wants_all(const sqlock_find_options *options)
{
    return options->free_too && options->pattern == NULL &&
           !options->all_regions && values[SORT] == NULL &&
           options->limit == 0 && !has_names;
}

static int print_rows(const sqlock_info *rows, size_t count)
{
    const cli_locks locks = {.rows = rows,
                             .count = count,
                             .has_regions = has_regions != 0,
                             .has_names = has_names != 0};

    return cli_locks_print(&locks);
}

/* Print the rows one by one, each on a line of its own: a JSON tree of all rows
 * would take several times their memory. */
static int print_json(const cli *app, sqlock_layout layout,
                      const sqlock_info *rows, size_t count)
{
    bool is_whole;
    size_t i;

    fputs("{\"region\": ", stdout);
    is_whole = cli_write_json(cli_json_text(cli_region(app)), 0);
    printf(", \"layout\": \"%s\", \"locks\": [", cli_layout_name(layout));
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
    sqlock_find_options options;
    sqlock_registry *registry = NULL;
    sqlock_info *rows = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;
    int rc;

    status = read_options(app, &options);
    if (status != CLI_OK)
        return status;
    status = cli_open(app, &registry);
    if (status != CLI_OK)
        return status;
    buffer_output();
    rc = wants_all(&options)
             ? sqlock_list(registry, &rows, &count, &err)
             : sqlock_find(registry, &options, &rows, &count, &err);
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
    .summary = "list the locks that are held or expired",
    .options = options_table,
    .values = values,
    .value_count = VALUES,
    .run = run_ls,
};
