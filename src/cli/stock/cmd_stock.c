/*
 * cmd_stock.c - `sqlock stock`: show and change stock, as programs do with
 * sqlock/stock.h
 */
#include "stock.h"

#include <stdio.h>
#include <string.h>

/* Bits of options that only some actions take. */
enum {
    OF_TABLE = 1 << 0, /* --table and its columns */
    OF_ORDER = 1 << 1,
    OF_FOR = 1 << 2,
    OF_REAP = 1 << 3,
    OF_INIT = 1 << 4
};

static bool is_print;
static stock_till till = {.hold_ms = -1,
                          .retention_ms = SQLOCK_STOCK_RETENTION_DEFAULT_MS};
static sqlock_stock_options names = SQLOCK_STOCK_INIT;

static const cli_option stock_options[] = {
    {"table", .text = &names.table, .actions = OF_TABLE},
    {"item-column", .text = &names.item_column, .actions = OF_TABLE},
    {"quantity-column", .text = &names.quantity_column, .actions = OF_TABLE},
    {"version-column", .text = &names.version_column, .actions = OF_TABLE},
    {"order", .text = &till.order, .actions = OF_ORDER},
    {"for", .ms = &till.hold_ms, .actions = OF_FOR},
    {"older-than", .ms = &till.retention_ms, .actions = OF_REAP,
     .least = SQLOCK_STOCK_RETENTION_MIN_MS},
    {"dry-run", .flag = &till.is_dry_run, .actions = OF_REAP},
    {"print", .flag = &is_print, .actions = OF_INIT},
    {.name = NULL}};

/* ------------------------------------------------------------ the tables -- */

static bool has_tables(sqlock_registry *registry)
{
    sqlock_stock *stock = NULL;
    bool are_there = sqlock_stock_open(&stock, registry, NULL, NULL) == 0;

    sqlock_stock_close(stock);
    return are_there;
}

static int init(const stock_till *used)
{
    static const cli_tables tables = {.what = "the stock tables were",
                                      .text = sqlock_stock_schema_text,
                                      .create = sqlock_stock_schema_create,
                                      .exist = has_tables};
    bool were_there;

    return is_print ? cli_print_tables(used->app, &tables)
                    : cli_create_tables(used->app, &tables, &were_there);
}

/* ----------------------------------------------------------- the command -- */

struct action {
    const char *name;
    unsigned options;
    int count;         /* of arguments; -1: the action counts them */
    const char *wants; /* if it gets another number */
    int (*run)(const stock_till *till);
};

static const struct action actions[] = {
    {"init", OF_INIT, 0, "it takes no arguments", init},
    {"ls", OF_TABLE, 0, "it takes no arguments", stock_ls},
    {"show", OF_TABLE, 1, "give an ITEM", stock_show},
    {"set", OF_TABLE | OF_ORDER, 2, "give an ITEM and a QUANTITY", stock_set},
    {"deduct", OF_TABLE | OF_ORDER, -1, "", stock_deduct},
    {"restore", OF_TABLE | OF_ORDER, -1, "", stock_restore},
    {"reserve", OF_TABLE | OF_ORDER | OF_FOR, -1, "", stock_reserve},
    {"claim", OF_TABLE, 1, "give an ORDER", stock_claim},
    {"cancel", OF_TABLE, 1, "give an ORDER", stock_cancel},
    {"look", OF_TABLE, 1, "give an ORDER", stock_look},
    {"expire", OF_TABLE, 0, "it takes no arguments", stock_expire},
    {"reap", OF_TABLE | OF_REAP, 0, "it takes no arguments", stock_reap},
};

static const struct action *action; /* the one that is given */

/* Refuse options that the action does not take: if it ignored --dry-run, for
 * example, it would change the stock. */
static int check_action(void)
{
    char what[64];

    for (size_t i = 0; stock_options[i].name != NULL; i++) {
        if (till.app->given[i] == NULL ||
            (action->options & stock_options[i].actions) != 0)
            continue;
        (void)snprintf(what, sizeof what, "it takes no --%s",
                       stock_options[i].name);
        return stock_misuse(&till, what);
    }
    if (action->count >= 0 && till.count != (size_t)action->count)
        return stock_misuse(&till, action->wants);
    return CLI_OK;
}

static int check(const cli *app)
{
    cli_guess guess = {.word = app->count > 0 ? app->args[0] : NULL};

    if (app->count == 0) {
        cli_error("stock: an action is missing; see `sqlock stock --help`");
        return CLI_USAGE;
    }
    till.app = app;
    till.args = app->args + 1;
    till.count = app->count - 1;
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        cli_guess_try(&guess, actions[i].name);
        if (strcmp(actions[i].name, app->args[0]) == 0)
            action = &actions[i];
    }
    if (action != NULL)
        return check_action();
    return cli_refuse_word("stock: unknown action ", "\"", &guess, "\"",
                           "stock");
}

static int run_stock(cli *app)
{
    sqlock_error err = {0};
    int status;

    if (action->run == init)
        return init(&till);
    status = cli_open(app, 0);
    if (status != CLI_OK)
        return status;
    if (sqlock_stock_open(&till.stock, app->registry, &names, &err) < 0)
        return cli_fail(&err);
    status = action->run(&till);
    sqlock_stock_close(till.stock);
    return status;
}

const cli_command cli_stock = {
    .name = "stock",
    .summary = "show stock and change it",
    .check = check,
    .options = stock_options,
    .run = run_stock,
};
