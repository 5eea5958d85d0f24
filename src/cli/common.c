/*
 * common.c - open a registry, and create or print tables, by the settings: the
 * commands agree on what a URL, a region, a prefix and a rule for keys mean,
 * and on the messages about them
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

static const char *url_of(const cli *app)
{
    const char *url = app->settings[CLI_URL];

    if (url == NULL || *url == '\0') {
        cli_error("no database URL: set SQLOCK_URL, give --url, or put url "
                  "into a configuration file");
        return NULL;
    }
    return url;
}

int cli_key_rule(const cli *app, sqlock_key_rule *rule)
{
    static const char *const rules[] = {"current", "legacy", "raw", NULL};
    int which = SQLOCK_KEY_CURRENT;
    const cli_option option = {"rule", .word = &which, .words = rules};

    if (app->settings[CLI_RULE] != NULL &&
        !cli_read_value(&option, NULL, app->settings[CLI_RULE]))
        return CLI_USAGE;
    *rule = (sqlock_key_rule)which;
    return CLI_OK;
}

/* Make the options of a registry from the settings.  Return CLI_OK, or
 * CLI_USAGE after a message. */
static int read_options(const cli *app, sqlock_options *options)
{
    int64_t ms = 0;
    const cli_option peer_ttl = {"peer-ttl", .ms = &ms, .least = 1,
                                 .most = UINT32_MAX};

    *options = (sqlock_options)SQLOCK_OPTIONS_INIT;
    options->region = cli_region(app);
    options->table_prefix = app->settings[CLI_PREFIX];
    options->pool_size = 1;
    if (app->settings[CLI_PEER_TTL] != NULL &&
        !cli_read_value(&peer_ttl, NULL, app->settings[CLI_PEER_TTL]))
        return CLI_USAGE;
    options->peer_ttl_ms = (uint32_t)ms;
    return cli_key_rule(app, &options->key_rule);
}

const char *cli_where(const cli *app, sqlock_options *options)
{
    const char *url = url_of(app);

    return url != NULL && read_options(app, options) == CLI_OK ? url : NULL;
}

int cli_open(cli *app, uint32_t statement_timeout_ms)
{
    sqlock_options options;
    sqlock_error err = {0};
    const char *url = cli_where(app, &options);

    if (url == NULL)
        return CLI_USAGE;
    options.statement_timeout_ms = statement_timeout_ms;
    if (sqlock_registry_open(&app->registry, url, &options, &err) < 0)
        return cli_fail(&err);
    return CLI_OK;
}

void cli_note_grace(const cli *app)
{
    int64_t left_ms = sqlock_registry_grace_ms(app->registry);

    if (left_ms > 0)
        cli_note("the server may have forgotten leases, since it was promoted, "
                 "restored or has crashed: it grants nothing for another "
                 "%" PRId64 ".%03d s",
                 left_ms / 1000, (int)(left_ms % 1000));
}

int cli_print_tables(const cli *app, const cli_tables *tables)
{
    sqlock_options options;
    sqlock_error err = {0};
    const char *url = cli_where(app, &options);
    char *sql = NULL;
    int status = CLI_OK;

    if (url == NULL)
        return CLI_USAGE;
    if (tables->text(&sql, url, &options, &err) < 0)
        return cli_fail(&err);
    if (app->json)
        status =
            cli_print_json(json_pack("{s:s*, s:o}", "layout", tables->layout,
                                     "sql", cli_json_text(sql)));
    else
        fputs(sql, stdout);
    sqlock_free(sql);
    return status;
}

bool cli_says_so(const cli *app, bool (*asks)(sqlock_registry *registry))
{
    sqlock_registry *registry = NULL;
    sqlock_options options;
    const char *url = cli_where(app, &options);
    bool says_so = url != NULL &&
                   sqlock_registry_open(&registry, url, &options, NULL) == 0 &&
                   (asks == NULL || asks(registry));

    (void)sqlock_registry_close(registry, NULL);
    return says_so;
}

int cli_create_tables(const cli *app, const cli_tables *tables, bool *was_there)
{
    const char *layout = tables->layout;
    sqlock_options options;
    sqlock_error err = {0};
    const char *url = cli_where(app, &options);

    if (url == NULL)
        return CLI_USAGE;
    *was_there = cli_says_so(app, tables->exist);
    if (tables->create(url, &options, &err) < 0)
        return cli_fail(&err);
    cli_note("%s %s%s%s", tables->what, *was_there ? "there" : "created",
             layout != NULL ? ", in the layout " : "",
             layout != NULL ? layout : "");
    if (!app->json)
        return CLI_OK;
    return cli_print_json(
        json_pack("{s:s*, s:b}", "layout", layout, "created", !*was_there));
}

int cli_no_lock(const cli *app)
{
    cli_error("no lock \"%s\" in region %s", app->args[0], cli_region(app));
    return CLI_NO;
}
