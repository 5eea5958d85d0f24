/*
 * common.c - open a registry with the global options
 */
#include "cli.h"

const char *cli_url(const cli *app)
{
    const char *url = app->globals[CLI_URL];

    if (url == NULL || *url == '\0') {
        cli_error("no database URL: set SQLOCK_URL, give --url, or put url "
                  "into a configuration file");
        return NULL;
    }
    return url;
}

const char *cli_region(const cli *app)
{
    const char *region = app->globals[CLI_REGION];

    return region != NULL && *region != '\0' ? region : "DEFAULT";
}

int cli_registry_options(const cli *app, sqlock_options *options)
{
    const char *rule = app->globals[CLI_RULE];
    const char *peer_ttl = app->globals[CLI_PEER_TTL];
    int64_t ms;

    *options = (sqlock_options)SQLOCK_OPTIONS_INIT;
    options->region = cli_region(app);
    options->table_prefix = app->globals[CLI_PREFIX];
    options->pool_size = 1;
    if (rule != NULL && !cli_parse_rule(rule, &options->key_rule)) {
        cli_error("--rule must be current, legacy or raw");
        return CLI_USAGE;
    }
    if (peer_ttl == NULL)
        return CLI_OK;
    if (!cli_parse_duration(peer_ttl, &ms) || ms < 1 || ms > UINT32_MAX) {
        cli_error("--peer-ttl must be a time, such as 10 or 500ms");
        return CLI_USAGE;
    }
    options->peer_ttl_ms = (uint32_t)ms;
    return CLI_OK;
}

int cli_open_for(const cli *app, uint32_t statement_timeout_ms,
                 sqlock_registry **registry)
{
    sqlock_options options;
    sqlock_error err = {0};
    const char *url = cli_url(app);
    int rc;

    if (url == NULL)
        return CLI_USAGE;
    rc = cli_registry_options(app, &options);
    if (rc != CLI_OK)
        return rc;
    options.statement_timeout_ms = statement_timeout_ms;
    rc = sqlock_registry_open(registry, url, &options, &err);
    if (rc < 0)
        return cli_fail(&err);
    return CLI_OK;
}

int cli_open(const cli *app, sqlock_registry **registry)
{
    return cli_open_for(app, 0, registry);
}
