/*
 * cmd_init.c - `sqlock init`: create the lock table, or the table of --once, or
 * print the SQL that does
 */
#include "cli.h"
#include "sqlock/admin.h"
#include "sqlock/once.h"

#include <string.h>

static bool is_print;
static bool is_once;
static int layout = -1;
static int64_t longest_ms = -1;

static const cli_option init_options[] = {
    {"print", .flag = &is_print},
    {"layout", .word = &layout, .words = cli_layouts},
    {"once", .flag = &is_once},
    {"longest-ttl", .ms = &longest_ms},
    {.name = NULL}};

/* ------------------------------------------------------------ the tables -- */

static int lock_text(char **sql, const char *url, const sqlock_options *options,
                     sqlock_error *err)
{
    return sqlock_schema_text(sql, url, options, (sqlock_layout)layout, err);
}

static int create_lock(const char *url, const sqlock_options *options,
                       sqlock_error *err)
{
    return sqlock_schema_create(url, options, (sqlock_layout)layout, err);
}

static bool has_once(sqlock_registry *registry)
{
    sqlock_once_info *rows = NULL;
    size_t count = 0;
    bool is_there = sqlock_once_list(registry, "", &rows, &count, NULL) == 0;

    sqlock_once_free(rows, count);
    return is_there;
}

/* Return whether a lock of the region has a holder that does not run sqlock,
 * such as a Spring service.  Any failure counts as no. */
static bool has_peers(sqlock_registry *registry)
{
    sqlock_info *rows = NULL;
    size_t count = 0;
    bool is_found = false;
    size_t i;

    (void)!sqlock_find(registry, NULL, &rows, &count, NULL);
    for (i = 0; i < count && !is_found; i++)
        is_found =
            rows[i].holder != NULL && strcmp(rows[i].holder, "peer") == 0;
    sqlock_info_free(rows, count);
    return is_found;
}

/* Say that Spring Integration before 7 must not use the table: as a note if
 * Spring seems to be in use, otherwise only with --verbose. */
static void warn_of_spring(const cli *app, bool was_there)
{
    static const char text[] =
        "Spring Integration before 7 must not use this table: two could hold "
        "one lock; for it, use --layout spring6";

    if (layout == SQLOCK_LAYOUT_SPRING6)
        return;
    if (layout == SQLOCK_LAYOUT_SPRING7 ||
        (was_there && cli_says_so(app, has_peers)))
        cli_note("%s", text);
    else
        cli_info("%s", text);
}

static int set_longest(cli *app)
{
    sqlock_error err = {0};
    int status = cli_open(app, 0);

    if (status == CLI_OK &&
        sqlock_grace_longest(app->registry, longest_ms, &err) < 0)
        status = cli_fail(&err);
    return status;
}

static int run_init(cli *app)
{
    static const cli_tables once = {.what =
                                        "the table of what was done once was",
                                    .text = sqlock_once_schema_text,
                                    .create = sqlock_once_schema_create,
                                    .exist = has_once};
    cli_tables lock = {
        .what = "the lock table was", .text = lock_text, .create = create_lock};
    const cli_tables *tables = is_once ? &once : &lock;
    bool was_there;
    int status;

    if (is_once && layout >= 0) {
        cli_error("init: give either --once or --layout");
        return CLI_USAGE;
    }
    if (longest_ms >= 0 && (is_once || is_print)) {
        cli_error("init: --longest-ttl changes a row of the lock table: give "
                  "it without --once and --print");
        return CLI_USAGE;
    }
    layout = layout >= 0 ? layout : SQLOCK_LAYOUT_SQLOCK;
    lock.layout = cli_layouts[layout];
    if (is_print)
        return cli_print_tables(app, tables);
    status = cli_create_tables(app, tables, &was_there);
    if (status == CLI_OK && !is_once)
        warn_of_spring(app, was_there);
    return status == CLI_OK && longest_ms >= 0 ? set_longest(app) : status;
}

const cli_command cli_init = {
    .name = "init",
    .summary = "create the lock table, or print its SQL",
    .options = init_options,
    .run = run_init,
};
