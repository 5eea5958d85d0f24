/*
 * cmd_stock.c - `sqlock stock`: show and change stock, as programs do with
 * sqlock/stock.h
 */
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "sqlock/stock.h"

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

/* The context of an action. */
struct till {
    const cli *app;
    const char *action;
    const char **args; /* the words after the action's name */
    size_t count;
    sqlock_stock *stock;
};

typedef int (*lines_call)(sqlock_stock *, sqlock_tx *, const char *,
                          sqlock_stock_line *, size_t, sqlock_stock_answer *,
                          sqlock_error *);
typedef int (*order_call)(sqlock_stock *, sqlock_tx *, const char *,
                          sqlock_stock_answer *, sqlock_error *);

/* Report a failure.  An overdue reservation is not reported as a lost lease. */
static int refuse(const sqlock_error *err)
{
    int status = cli_fail(err);

    return err->code == SQLOCK_EEXPIRED ? CLI_NO : status;
}

/* --- arguments --- */

static int misuse(const struct till *till, const char *what)
{
    cli_error("stock %s: %s; see `sqlock stock --help`", till->action, what);
    return CLI_USAGE;
}

/* Read ITEM QUANTITY ...; the caller frees them. */
static int read_lines(const struct till *till, sqlock_stock_line **out,
                      size_t *count)
{
    sqlock_stock_line *lines;

    *out = NULL;
    *count = till->count / 2;
    if (till->count == 0 || till->count % 2 != 0)
        return misuse(till, "give an ITEM and a QUANTITY, or several pairs");
    lines = calloc(*count, sizeof *lines);
    if (lines == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    for (size_t i = 0; i < *count; i++) {
        lines[i].item = till->args[2 * i];
        if (!cli_parse_int64(till->args[2 * i + 1], &lines[i].quantity)) {
            free(lines);
            return misuse(till, "a QUANTITY must be a whole number");
        }
    }
    *out = lines;
    return CLI_OK;
}

/* --- answers --- */

static json_t *json_left(int64_t left)
{
    return left >= 0 ? json_integer((json_int_t)left) : json_null();
}

static int print_lines(const struct till *till, const sqlock_stock_line *lines,
                       size_t count, const sqlock_stock_answer *answer)
{
    json_t *all;

    if (answer->is_duplicate)
        cli_note("the order was carried out before; nothing was changed");
    if (!till->app->json) {
        for (size_t i = 0; i < count; i++) {
            if (lines[i].left >= 0)
                printf("%" PRId64 "\n", lines[i].left);
            else
                printf("-\n");
        }
        return CLI_OK;
    }
    all = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            all,
            json_pack("{s:o, s:I, s:o}", "item", cli_json_text(lines[i].item),
                      "quantity", (json_int_t)lines[i].quantity, "left",
                      json_left(lines[i].left)));
    return cli_print_json(json_pack("{s:b, s:o}", "duplicate",
                                    (int)answer->is_duplicate, "items", all));
}

/* --- actions on quantities --- */

static int change(const struct till *till, lines_call call)
{
    sqlock_stock_answer answer;
    sqlock_stock_line *lines = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;
    int rc;

    status = read_lines(till, &lines, &count);
    if (status != CLI_OK)
        return status;
    rc = call(till->stock, NULL, values[ORDER], lines, count, &answer, &err);
    status = rc < 0 ? refuse(&err) : print_lines(till, lines, count, &answer);
    free(lines);
    return status;
}

static int run_deduct(const struct till *till)
{
    return change(till, sqlock_stock_deduct_many);
}

static int run_restore(const struct till *till)
{
    return change(till, sqlock_stock_restore_many);
}

/* Set one item, with the arguments of operations on many. */
static int set_one(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                   sqlock_stock_line *lines, size_t count,
                   sqlock_stock_answer *answer, sqlock_error *err)
{
    int rc = sqlock_stock_set(stock, tx, order, lines[0].item,
                              lines[0].quantity, answer, err);

    (void)count;
    lines[0].left = answer->left;
    return rc;
}

static int run_set(const struct till *till)
{
    if (till->count != 2)
        return misuse(till, "give an ITEM and a QUANTITY");
    return change(till, set_one);
}

static int64_t reserve_ms;

static int reserve_lines(sqlock_stock *stock, sqlock_tx *tx, const char *order,
                         sqlock_stock_line *lines, size_t count,
                         sqlock_stock_answer *answer, sqlock_error *err)
{
    return sqlock_stock_reserve(stock, tx, order, lines, count, reserve_ms,
                                answer, err);
}

static int run_reserve(const struct till *till)
{
    if (values[ORDER] == NULL)
        return misuse(till, "--order is missing: it is the reservation's name");
    if (values[FOR] == NULL || !cli_parse_duration(values[FOR], &reserve_ms))
        return misuse(till, "--for must be a time, such as 600 or 10m");
    return change(till, reserve_lines);
}

static int run_show(const struct till *till)
{
    sqlock_error err = {0};
    int64_t quantity = 0;
    int rc;

    if (till->count != 1)
        return misuse(till, "give an ITEM");
    rc = sqlock_stock_read(till->stock, NULL, till->args[0], &quantity, &err);
    if (rc < 0)
        return refuse(&err);
    if (till->app->json)
        return cli_print_json(json_pack("{s:o, s:I}", "item",
                                        cli_json_text(till->args[0]),
                                        "quantity", (json_int_t)quantity));
    printf("%" PRId64 "\n", quantity);
    return CLI_OK;
}

static int print_json_list(const sqlock_stock_item *items, size_t count)
{
    json_t *all = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            all, json_pack("{s:o, s:o}", "item", cli_json_text(items[i].name),
                           "quantity", json_left(items[i].quantity)));
    return cli_print_json(json_pack("{s:o}", "items", all));
}

static bool fill_row(cli_row *row, const void *context, size_t number)
{
    const sqlock_stock_item *item = (const sqlock_stock_item *)context + number;

    if (item->quantity >= 0)
        row->cells[1] = cli_number_text(row->numbers[1], item->quantity);
    return cli_row_text(row, 0, item->name);
}

static int print_list(const sqlock_stock_item *items, size_t count)
{
    static const char *const heads[] = {"ITEM", "QUANTITY"};
    const cli_table table = {.heads = heads,
                             .columns = 2,
                             .flexible = 1u << 0,
                             .right = 1u << 1,
                             .rows = count,
                             .context = items,
                             .fill = fill_row};

    return cli_table_print(&table);
}

static int run_ls(const struct till *till)
{
    sqlock_stock_item *items = NULL;
    sqlock_error err = {0};
    size_t count = 0;
    int status;

    if (till->count != 0)
        return misuse(till, "it takes no arguments");
    if (sqlock_stock_list(till->stock, &items, &count, &err) < 0)
        return refuse(&err);
    status = till->app->json ? print_json_list(items, count)
                             : print_list(items, count);
    sqlock_free(items);
    return status;
}

/* --- actions on reservations --- */

static int end(const struct till *till, order_call call)
{
    sqlock_stock_answer answer;
    sqlock_error err = {0};
    int rc;

    if (till->count != 1)
        return misuse(till, "give an ORDER");
    rc = call(till->stock, NULL, till->args[0], &answer, &err);
    if (rc < 0)
        return refuse(&err);
    if (answer.is_duplicate)
        cli_note("it was in this state already; nothing was changed");
    if (!till->app->json)
        return CLI_OK;
    return cli_print_json(
        json_pack("{s:b}", "duplicate", (int)answer.is_duplicate));
}

static int run_claim(const struct till *till)
{
    return end(till, sqlock_stock_claim);
}

static int run_cancel(const struct till *till)
{
    return end(till, sqlock_stock_cancel);
}

static int run_look(const struct till *till)
{
    static const char *const names[] = {"reserved", "claimed", "cancelled",
                                        "expired"};
    sqlock_stock_state state = SQLOCK_STOCK_RESERVED;
    sqlock_error err = {0};
    int64_t remaining_ms = 0;
    char remaining[CLI_NUMBER_SIZE];
    int rc;

    if (till->count != 1)
        return misuse(till, "give an ORDER");
    rc = sqlock_stock_status(till->stock, NULL, till->args[0], &state,
                             &remaining_ms, &err);
    if (rc < 0)
        return refuse(&err);
    if (till->app->json)
        return cli_print_json(json_pack(
            "{s:o, s:s, s:I}", "order", cli_json_text(till->args[0]), "state",
            names[state], "remaining_ms", (json_int_t)remaining_ms));
    if (state == SQLOCK_STOCK_RESERVED)
        printf("%s %s\n", names[state],
               cli_duration_text(remaining, remaining_ms));
    else
        puts(names[state]);
    return CLI_OK;
}

static int run_expire(const struct till *till)
{
    sqlock_error err = {0};
    int64_t expired = 0;
    int rc;

    if (till->count != 0)
        return misuse(till, "it takes no arguments");
    rc = sqlock_stock_expire(till->stock, &expired, &err);
    if (rc < 0)
        return refuse(&err);
    if (till->app->json)
        return cli_print_json(
            json_pack("{s:I}", "expired", (json_int_t)expired));
    printf("%" PRId64 "\n", expired);
    return CLI_OK;
}

/* --- retention --- */

/* Report progress once a second on a terminal. */
static int tell_progress(void *context, const sqlock_stock_reaped *so_far)
{
    struct timespec *last = context;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == last->tv_sec)
        return 0;
    *last = now;
    if (isatty(STDERR_FILENO))
        cli_note("%" PRId64 " rows so far",
                 so_far->entries + so_far->reservations);
    return 0;
}

static int print_reaped(const struct till *till,
                        const sqlock_stock_reaped *reaped)
{
    if (till->app->json)
        return cli_print_json(
            json_pack("{s:I, s:I, s:b}", "entries", (json_int_t)reaped->entries,
                      "reservations", (json_int_t)reaped->reservations,
                      "dry_run", is_dry_run));
    printf("%" PRId64 "\n", reaped->entries + reaped->reservations);
    return CLI_OK;
}

static int run_reap(const struct till *till)
{
    sqlock_stock_reap_options options = SQLOCK_STOCK_REAP_INIT;
    sqlock_stock_reaped reaped;
    sqlock_error err = {0};
    struct timespec last;
    int status = CLI_OK;

    if (till->count != 0)
        return misuse(till, "it takes no arguments");
    if (values[OLDER_THAN] != NULL &&
        (!cli_parse_duration(values[OLDER_THAN], &options.retention_ms) ||
         options.retention_ms == 0))
        return misuse(till, "--older-than must be a time, such as 90d");
    options.dry_run = is_dry_run;
    options.progress = tell_progress;
    options.context = &last;
    (void)clock_gettime(CLOCK_MONOTONIC, &last);
    if (sqlock_stock_reap(till->stock, &options, &reaped, &err) < 0) {
        status = refuse(&err);
        cli_note("%" PRId64 " rows were %s before",
                 reaped.entries + reaped.reservations,
                 is_dry_run ? "counted" : "removed");
        return status;
    }
    if (is_dry_run)
        cli_note("nothing was removed: so many rows would be");
    return print_reaped(till, &reaped);
}

/* As part of `sqlock reap`; without tables of ours there are no
 * reservations. */
int cli_expire_reservations(sqlock_registry *registry, int64_t *expired,
                            sqlock_error *err)
{
    sqlock_stock *stock = NULL;
    int rc = sqlock_stock_open(&stock, registry, NULL, err);

    *expired = 0;
    if (rc == SQLOCK_ESCHEMA || rc == SQLOCK_ENOTSUP) {
        cli_info("reservations are not checked: %s", err->message);
        return 0;
    }
    if (rc == 0)
        rc = sqlock_stock_expire(stock, expired, err);
    sqlock_stock_close(stock);
    return rc;
}

/* --- the tables --- */

static int run_init(const struct till *till)
{
    const char *url = cli_url(till->app);
    sqlock_options options;
    sqlock_error err = {0};
    char *text = NULL;
    int status;

    if (till->count != 0)
        return misuse(till, "it takes no arguments");
    if (url == NULL)
        return CLI_USAGE;
    status = cli_registry_options(till->app, &options);
    if (status != CLI_OK)
        return status;
    if (!is_print) {
        if (sqlock_stock_schema_create(url, &options, &err) < 0)
            return cli_fail(&err);
        cli_note("the stock tables exist");
        return till->app->json ? cli_print_json(json_object()) : CLI_OK;
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

static const struct action {
    const char *name;
    bool needs_no_stock;
    int (*run)(const struct till *till);
} actions[] = {
    {"init", true, run_init},        {"ls", false, run_ls},
    {"show", false, run_show},       {"set", false, run_set},
    {"deduct", false, run_deduct},   {"restore", false, run_restore},
    {"reserve", false, run_reserve}, {"claim", false, run_claim},
    {"cancel", false, run_cancel},   {"look", false, run_look},
    {"expire", false, run_expire},   {"reap", false, run_reap},
};

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

static int with_stock(struct till *till, const struct action *action)
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
    struct till till = {.app = app};
    const struct action *action;

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
    return action->needs_no_stock ? action->run(&till)
                                  : with_stock(&till, action);
}

const cli_command cli_stock = {
    .name = "stock",
    .summary = "show stock and change it",
    .help =
        "Usage: sqlock stock init [--print]\n"
        "       sqlock stock ls\n"
        "       sqlock stock show ITEM\n"
        "       sqlock stock set ITEM QUANTITY [--order ID]\n"
        "       sqlock stock deduct|restore ITEM QUANTITY ... [--order ID]\n"
        "       sqlock stock reserve ITEM QUANTITY ... --order ID --for TIME\n"
        "       sqlock stock claim|cancel|look ORDER\n"
        "       sqlock stock expire\n"
        "       sqlock stock reap [--older-than TIME] [--dry-run]\n"
        "Show stock and change it: all items of a call or none.  init creates "
        "the\n"
        "tables.  Prints what is left of each item; look: the state of a "
        "reservation;\n"
        "expire: how many overdue reservations were ended and their quantities "
        "restored.\n"
        "reap removes the rows of old orders and of old ended reservations, "
        "and prints\n"
        "how many; an order id used again after that is a new order.\n"
        "\n"
        "      --order ID     an order id; if it is given again, nothing is "
        "changed and\n"
        "                     the first answer is repeated\n"
        "      --for TIME     how long to reserve\n"
        "      --older-than TIME  1h or more; 90d\n"
        "      --dry-run      count, and remove nothing\n"
        "      --table NAME   the application's table instead of ours, and its "
        "columns:\n"
        "      --item-column NAME\n"
        "      --quantity-column NAME\n"
        "      --version-column NAME\n"
        "      --print        print the SQL instead; --url mysql: is enough\n"
        "\n"
        "Exit status 1: there is not enough, no such item or reservation, or "
        "it is in\n"
        "another state.\n"
        "JSON: set, deduct, restore, reserve { duplicate, items: [ { item, "
        "quantity,\n"
        "left } ] }, ls { items: [ { item, quantity } ] }, show { item, "
        "quantity },\n"
        "look { order, state, remaining_ms },\n"
        "claim, cancel { duplicate }, expire { expired },\n"
        "reap { entries, reservations, dry_run }, init --print { sql }.\n",
    .options = stock_options,
    .values = values,
    .value_count = VALUES,
    .run = run_stock,
};
