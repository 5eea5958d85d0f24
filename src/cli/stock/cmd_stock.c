/*
 * cmd_stock.c - `sqlock stock`: show and change stock, as programs do with
 * sqlock/stock.h
 */
#include "stock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum {
    TABLE,
    ITEM_COLUMN,
    QUANTITY_COLUMN,
    VERSION_COLUMN,
    ORDER,
    FOR,
    OLDER_THAN,
    VALUES
};

static char *values[VALUES];
static int is_print;
static int is_dry_run;

static const struct poptOption stock_options[] = {
    {"table", 0, POPT_ARG_STRING, NULL, CLI_OWN + TABLE, NULL, NULL},
    {"item-column", 0, POPT_ARG_STRING, NULL, CLI_OWN + ITEM_COLUMN, NULL,
     NULL},
    {"quantity-column", 0, POPT_ARG_STRING, NULL, CLI_OWN + QUANTITY_COLUMN,
     NULL, NULL},
    {"version-column", 0, POPT_ARG_STRING, NULL, CLI_OWN + VERSION_COLUMN, NULL,
     NULL},
    {"order", 0, POPT_ARG_STRING, NULL, CLI_OWN + ORDER, NULL, NULL},
    {"for", 0, POPT_ARG_STRING, NULL, CLI_OWN + FOR, NULL, NULL},
    {"older-than", 0, POPT_ARG_STRING, NULL, CLI_OWN + OLDER_THAN, NULL, NULL},
    {"dry-run", 0, POPT_ARG_NONE, &is_dry_run, 0, NULL, NULL},
    {"print", 0, POPT_ARG_NONE, &is_print, 0, NULL, NULL},
    POPT_TABLEEND};

int stock_refuse(const sqlock_error *err)
{
    int status = cli_fail(err);

    return err->code == SQLOCK_EEXPIRED ? CLI_NO : status;
}

int stock_misuse(const stock_till *till, const char *what)
{
    cli_error("stock %s: %s; see `sqlock stock --help`", till->action, what);
    return CLI_USAGE;
}

/* --- the tables --- */

/* Return whether the tables exist.  Any failure counts as no: only messages
 * depend on the result. */
static bool has_tables(const char *url, const sqlock_options *options)
{
    sqlock_stock_options ours = SQLOCK_STOCK_INIT;
    sqlock_registry *registry = NULL;
    sqlock_stock *stock = NULL;
    bool are_there = sqlock_registry_open(&registry, url, options, NULL) == 0 &&
                     sqlock_stock_open(&stock, registry, &ours, NULL) == 0;

    sqlock_stock_close(stock);
    (void)sqlock_registry_close(registry, NULL);
    return are_there;
}

static int run_init(const stock_till *till)
{
    const char *url = cli_url(till->app);
    sqlock_options options;
    sqlock_error err = {0};
    char *text = NULL;
    int status;

    if (till->count != 0)
        return stock_misuse(till, "it takes no arguments");
    if (url == NULL)
        return CLI_USAGE;
    status = cli_registry_options(till->app, &options);
    if (status != CLI_OK)
        return status;
    if (!is_print) {
        bool were_there = has_tables(url, &options);

        if (sqlock_stock_schema_create(url, &options, &err) < 0)
            return cli_fail(&err);
        cli_note("the stock tables %s",
                 were_there ? "were there" : "were created");
        return till->app->json
                   ? cli_print_json(json_pack("{s:b}", "created", !were_there))
                   : CLI_OK;
    }
    if (sqlock_stock_schema_text(&text, url, &options, &err) < 0)
        return cli_fail(&err);
    if (till->app->json)
        status = cli_print_json(json_pack("{s:o}", "sql", cli_json_text(text)));
    else
        fputs(text, stdout);
    sqlock_free(text);
    return status;
}

/* --- the command --- */

/* Options that only some actions take. */
enum {
    OF_TABLE = 1 << 0, /* --table and its columns */
    OF_ORDER = 1 << 1,
    OF_FOR = 1 << 2,
    OF_AGE = 1 << 3,
    OF_DRY_RUN = 1 << 4,
    OF_PRINT = 1 << 5
};

static const struct action {
    const char *name;
    unsigned options;
    bool needs_no_stock;
    int (*run)(const stock_till *till);
} actions[] = {
    {"init", OF_PRINT, true, run_init},
    {"ls", OF_TABLE, false, stock_ls},
    {"show", OF_TABLE, false, stock_show},
    {"set", OF_TABLE | OF_ORDER, false, stock_set},
    {"deduct", OF_TABLE | OF_ORDER, false, stock_deduct},
    {"restore", OF_TABLE | OF_ORDER, false, stock_restore},
    {"reserve", OF_TABLE | OF_ORDER | OF_FOR, false, stock_reserve},
    {"claim", OF_TABLE, false, stock_claim},
    {"cancel", OF_TABLE, false, stock_cancel},
    {"look", OF_TABLE, false, stock_look},
    {"expire", OF_TABLE, false, stock_expire},
    {"reap", OF_TABLE | OF_AGE | OF_DRY_RUN, false, stock_reap},
};

/* Refuse options that the action does not take: if it ignored --dry-run, for
 * example, it would change the stock. */
static int check_options(const stock_till *till, const struct action *action)
{
    const struct {
        const char *name;
        unsigned of;
        bool is_given;
    } given[] = {
        {"--table", OF_TABLE, values[TABLE] != NULL},
        {"--item-column", OF_TABLE, values[ITEM_COLUMN] != NULL},
        {"--quantity-column", OF_TABLE, values[QUANTITY_COLUMN] != NULL},
        {"--version-column", OF_TABLE, values[VERSION_COLUMN] != NULL},
        {"--order", OF_ORDER, values[ORDER] != NULL},
        {"--for", OF_FOR, values[FOR] != NULL},
        {"--older-than", OF_AGE, values[OLDER_THAN] != NULL},
        {"--dry-run", OF_DRY_RUN, is_dry_run != 0},
        {"--print", OF_PRINT, is_print != 0},
    };
    char what[64];

    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (!given[i].is_given || (action->options & given[i].of) != 0)
            continue;
        (void)snprintf(what, sizeof what, "it takes no %s", given[i].name);
        return stock_misuse(till, what);
    }
    return CLI_OK;
}

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static int refuse_action(const char *name)
{
    cli_guess guess = {.word = name};

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        cli_guess_try(&guess, actions[i].name);
    if (guess.nearest != NULL)
        cli_error("stock: unknown action \"%s\": did you mean \"%s\"?",
                  cli_shown(name), guess.nearest);
    else
        cli_error("stock: unknown action \"%s\"; see `sqlock stock --help`",
                  cli_shown(name));
    return CLI_USAGE;
}

static int with_stock(stock_till *till, const struct action *action)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    int status = cli_open(till->app, &registry);

    if (status != CLI_OK)
        return status;
    options.table = values[TABLE];
    options.item_column = values[ITEM_COLUMN];
    options.quantity_column = values[QUANTITY_COLUMN];
    options.version_column = values[VERSION_COLUMN];
    if (sqlock_stock_open(&till->stock, registry, &options, &err) < 0)
        status = cli_fail(&err);
    else
        status = action->run(till);
    sqlock_stock_close(till->stock);
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

static int run_stock(cli *app)
{
    stock_till till = {.app = app,
                       .order = values[ORDER],
                       .hold = values[FOR],
                       .older_than = values[OLDER_THAN],
                       .is_dry_run = is_dry_run != 0};
    const struct action *action;
    int status;

    if (app->count == 0) {
        cli_error("stock: an action is missing; see `sqlock stock --help`");
        return CLI_USAGE;
    }
    till.action = app->args[0];
    till.args = app->args + 1;
    till.count = app->count - 1;
    action = find_action(till.action);
    if (action == NULL)
        return refuse_action(till.action);
    status = check_options(&till, action);
    if (status != CLI_OK)
        return status;
    return action->needs_no_stock ? action->run(&till)
                                  : with_stock(&till, action);
}

const cli_command cli_stock = {
    .name = "stock",
    .summary = "show stock and change it",
    .options = stock_options,
    .values = values,
    .value_count = VALUES,
    .run = run_stock,
};
