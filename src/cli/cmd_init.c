/*
 * cmd_init.c - `sqlock init`: create the lock table, or the table of --once, or
 * print the SQL that does
 */
#include "cli.h"
#include "sqlock/once.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

static char *values[1];
static int is_print;
static int is_once;

static const struct poptOption init_options[] = {
    {"print", 0, POPT_ARG_NONE, &is_print, 0, NULL, NULL},
    {"layout", 0, POPT_ARG_STRING, NULL, CLI_OWN, NULL, NULL},
    {"once", 0, POPT_ARG_NONE, &is_once, 0, NULL, NULL},
    POPT_TABLEEND};

static int print_schema(const cli *app, const char *url,
                        const sqlock_options *options, sqlock_layout layout)
{
    sqlock_error err = {0};
    char *text = NULL;
    int status = CLI_OK;
    int rc;

    if (is_once)
        rc = sqlock_once_schema_text(&text, url, options, &err);
    else
        rc = sqlock_schema_text(&text, url, options, layout, &err);
    if (rc < 0)
        return cli_fail(&err);
    if (app->json)
        status = cli_print_json(json_pack("{s:s, s:o}", "layout",
                                          cli_layout_name(layout), "sql",
                                          cli_json_text(text)));
    else
        fputs(text, stdout);
    sqlock_free(text);
    return status;
}

/* Return whether the table of --once exists.  Any failure counts as no, for
 * example a missing right to read the lock table: only messages depend on the
 * result. */
static bool has_once(const char *url, const sqlock_options *options)
{
    sqlock_registry *registry = NULL;
    sqlock_once_info *rows = NULL;
    size_t count = 0;
    bool is_there;

    if (sqlock_registry_open(&registry, url, options, NULL) < 0)
        return false;
    is_there = sqlock_once_list(registry, "", &rows, &count, NULL) == 0;
    sqlock_once_free(rows, count);
    (void)sqlock_registry_close(registry, NULL);
    return is_there;
}

/* Return whether a lock of the region has a holder that does not run sqlock,
 * such as a Spring service.  Any failure counts as no. */
static bool has_peers(const char *url, const sqlock_options *options)
{
    sqlock_registry *registry = NULL;
    sqlock_info *rows = NULL;
    size_t count = 0;
    bool is_found = false;
    size_t i;

    if (sqlock_registry_open(&registry, url, options, NULL) < 0)
        return false;
    if (sqlock_find(registry, NULL, &rows, &count, NULL) == 0) {
        for (i = 0; i < count && !is_found; i++)
            is_found =
                rows[i].holder != NULL && strcmp(rows[i].holder, "peer") == 0;
    }
    sqlock_info_free(rows, count);
    (void)sqlock_registry_close(registry, NULL);
    return is_found;
}

/* Say that Spring Integration before 7 must not use the table: as a note if
 * Spring seems to be in use, otherwise only with --verbose. */
static void warn_of_spring(const char *url, const sqlock_options *options,
                           sqlock_layout layout, bool was_there)
{
    static const char text[] =
        "Spring Integration before 7 must not use this table: two could hold "
        "one lock; for it, use --layout spring6";

    if (layout == SQLOCK_LAYOUT_SPRING7 ||
        (layout == SQLOCK_LAYOUT_SQLOCK && was_there &&
         has_peers(url, options)))
        cli_note("%s", text);
    else if (layout == SQLOCK_LAYOUT_SQLOCK)
        cli_info("%s", text);
}

static int create_once(const cli *app, const char *url,
                       const sqlock_options *options)
{
    sqlock_error err = {0};
    bool was_there;
    int rc;

    was_there = has_once(url, options);
    rc = sqlock_once_schema_create(url, options, &err);
    if (rc < 0)
        return cli_fail(&err);
    cli_note("the table of what was done once %s",
             was_there ? "was there" : "was created");
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack("{s:b}", "created", !was_there));
}

static int create_schema(const cli *app, const char *url,
                         const sqlock_options *options, sqlock_layout layout)
{
    sqlock_error err = {0};
    bool was_there;
    int rc;

    was_there = sqlock_schema_check(url, options, NULL, NULL) == 0;
    rc = sqlock_schema_create(url, options, layout, &err);
    if (rc < 0)
        return cli_fail(&err);
    cli_note("the lock table %s, in the layout %s",
             was_there ? "was there" : "was created", cli_layout_name(layout));
    warn_of_spring(url, options, layout, was_there);
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack("{s:s, s:b}", "layout",
                                    cli_layout_name(layout), "created",
                                    !was_there));
}

static int run_init(cli *app)
{
    sqlock_layout layout = SQLOCK_LAYOUT_SQLOCK;
    sqlock_options options;
    const char *url;
    int status;

    status = cli_want_args(app, 0, "");
    if (status != CLI_OK)
        return status;
    if (values[0] != NULL && !cli_parse_layout(values[0], &layout)) {
        cli_error("init: --layout must be sqlock, spring7 or spring6");
        return CLI_USAGE;
    }
    if (is_once && values[0] != NULL) {
        cli_error("init: give either --once or --layout");
        return CLI_USAGE;
    }
    url = cli_url(app);
    if (url == NULL)
        return CLI_USAGE;
    status = cli_registry_options(app, &options);
    if (status != CLI_OK)
        return status;
    if (is_print)
        return print_schema(app, url, &options, layout);
    if (is_once)
        return create_once(app, url, &options);
    return create_schema(app, url, &options, layout);
}

const cli_command cli_init = {
    .name = "init",
    .summary = "create the lock table, or print its SQL",
    .options = init_options,
    .values = values,
    .value_count = 1,
    .run = run_init,
};
