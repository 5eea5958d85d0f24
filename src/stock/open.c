/*
 * open.c - open a stock: check the options, the table, its columns and the
 * strategy against the database, so that nothing fails halfway later
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "stock/columns.h"
#include "stock/names.h"
#include "stock/stock.h"

#define BUCKETS_DEFAULT 16u
#define BATCH_DEFAULT 256u
#define ATTEMPTS_DEFAULT 100u
#define DEADLINE_DEFAULT_MS 30000u

static const struct {
    const char *name;
    const struct lk_stock_strategy *strategy;
} strategies[SQLOCK_STOCK_STRATEGIES] = {
    [SQLOCK_STOCK_CONDITIONAL] = {"conditional", &lk_stock_conditional},
    [SQLOCK_STOCK_PESSIMISTIC] = {"pessimistic", &lk_stock_pessimistic},
    [SQLOCK_STOCK_OPTIMISTIC] = {"optimistic", &lk_stock_optimistic},
    [SQLOCK_STOCK_BUCKETS] = {"buckets", &lk_stock_buckets},
    [SQLOCK_STOCK_COALESCED] = {"coalesced", &lk_stock_coalesced},
};

static bool is_strategy(sqlock_stock_strategy strategy)
{
    return (int)strategy >= 0 && strategy < SQLOCK_STOCK_STRATEGIES;
}

const char *sqlock_stock_strategy_name(sqlock_stock_strategy strategy)
{
    return is_strategy(strategy) ? strategies[strategy].name : NULL;
}

/* --- options --- */

static int complete(sqlock_stock_options *out,
                    const sqlock_stock_options *given, sqlock_error *err)
{
    static const struct lk_sized sized = {"sqlock_stock_options",
                                          "SQLOCK_STOCK_INIT", sizeof *out};
    int rc = lk_sized_read(out, &sized, given, err);

    if (rc < 0)
        return rc;
    if (!is_strategy(out->strategy))
        return lk_error(err, SQLOCK_EINVAL, "unknown stock strategy %d",
                        (int)out->strategy);
    if (out->table == NULL &&
        (out->item_column != NULL || out->quantity_column != NULL ||
         out->version_column != NULL))
        return lk_error(err, SQLOCK_EINVAL,
                        "columns of a stock are given without a table");
    rc =
        lk_check_number("buckets", &out->buckets, BUCKETS_DEFAULT, 2, 256, err);
    if (rc == 0)
        rc = lk_check_number("batch", &out->batch, BATCH_DEFAULT, 1, 1000, err);
    if (rc == 0)
        rc = lk_check_number("attempts", &out->attempts, ATTEMPTS_DEFAULT, 1,
                             UINT32_MAX, err);
    if (rc == 0)
        rc = lk_check_number("deadline_ms", &out->deadline_ms,
                             DEADLINE_DEFAULT_MS, 10, 3600000, err);
    return rc;
}

/* --- tables --- */

static int check_column(const struct lk_columns *columns, const char *table,
                        const char *name, sqlock_error *err)
{
    if (lk_columns_type(columns, name) != NULL)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA, "the table %s has no column %s", table,
                    name);
}

/* Check that a text column of ours compares by bytes: else two orders would be
 * one, or one item two. */
static int check_exact(const struct lk_columns *columns, const char *table,
                       const char *name, sqlock_error *err)
{
    const char *loose = lk_columns_loose(columns, name);

    if (loose == NULL)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "%s.%s compares texts by %s, which takes different ones "
                    "for equal: `sqlock doctor` names the statement that "
                    "changes it",
                    table, name, loose);
}

/* Return the greatest integer that a column of this type holds; 0: the type is
 * not an integer's. */
static int64_t most_of(const sqlock_integer_type *types, const char *type)
{
    while (types->patterns != NULL && !lk_text_matches(type, types->patterns))
        types++;
    return types->most;
}

static int check_integer(const struct lk_columns *columns, const char *table,
                         const char *name, const sqlock_integer_type *types,
                         int64_t *most, sqlock_error *err)
{
    int rc = check_column(columns, table, name, err);

    if (rc < 0)
        return rc;
    *most = most_of(types, lk_columns_type(columns, name));
    if (*most > 0)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "%s.%s is of type %s, but must be an integer", table, name,
                    lk_columns_type(columns, name));
}

/* The table of the items, the application's or INT_STOCK, and its columns. */
struct described {
    struct lk_table table;                 /* for the catalogue */
    char plain[2 * LK_IDENTIFIER_MAX + 2]; /* for messages */
    const char *item, *quantity, *version;
};

static int check_stock_table(sqlock_stock *stock,
                             const struct described *described,
                             int64_t deadline_ns, sqlock_error *err)
{
    struct lk_db *db = &stock->store->db;
    const sqlock_integer_type *types = db->driver->stock->integers;
    struct lk_columns columns;
    int64_t ignored;
    int rc;

    rc = lk_columns_read(&columns, db, &described->table, deadline_ns, err);
    if (rc == 0 && !lk_columns_are_there(&columns))
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "there is no table %s in this database%s",
                      described->plain,
                      stock->is_ours ? ": create it, see "
                                       "sqlock_stock_schema_create()"
                                     : "");
    if (rc == 0)
        rc = check_column(&columns, described->plain, described->item, err);
    if (rc == 0)
        stock->has_loose_items =
            lk_columns_loose(&columns, described->item) != NULL;
    if (rc == 0 && stock->is_ours)
        rc = check_exact(&columns, described->plain, described->item, err);
    if (rc == 0)
        rc = check_integer(&columns, described->plain, described->quantity,
                           types, &stock->most, err);
    if (rc == 0 && described->version != NULL)
        rc = check_integer(&columns, described->plain, described->version,
                           types, &ignored, err);
    if (rc == 0)
        stock->has_integer_items =
            most_of(types, lk_columns_type(&columns, described->item)) > 0;
    lk_columns_clear(&columns);
    return rc;
}

/* Check our tables for orders, reservations and buckets.  Return ESCHEMA if one
 * is missing or lacks a column; but all of them may be missing if the items are
 * in a table of the application. */
static int check_our_tables(sqlock_stock *stock, const struct lk_table *tables,
                            int64_t deadline_ns, sqlock_error *err)
{
    static const char *const columns_of[LK_STOCK_TABLES][9] = {
        [LK_TABLE_ENTRY] = {"ORDER_ID", "LINE", "ITEM", "KIND", "QUANTITY",
                            "DELTA", "STATUS", "BALANCE", "CREATED_AT"},
        [LK_TABLE_RESERVATION] = {"ORDER_ID", "STOCK", "STATE", "EXPIRES_AT",
                                  "CREATED_AT"},
        [LK_TABLE_BUCKET] = {"ITEM", "BUCKET", "QUANTITY"},
    };
    const char *missing = NULL;
    size_t found = 0;
    int rc = 0;

    for (int i = LK_TABLE_ENTRY; rc == 0 && i < LK_STOCK_TABLES; i++) {
        struct lk_columns columns;

        rc = lk_columns_read(&columns, &stock->store->db, &tables[i],
                             deadline_ns, err);
        if (rc == 0 && lk_columns_are_there(&columns)) {
            found++;
            for (int k = 0; rc == 0 && k < 9 && columns_of[i][k] != NULL; k++) {
                rc = check_column(&columns, tables[i].plain, columns_of[i][k],
                                  err);
                if (rc == 0)
                    rc = check_exact(&columns, tables[i].plain,
                                     columns_of[i][k], err);
            }
        } else if (missing == NULL) {
            missing = tables[i].plain;
        }
        lk_columns_clear(&columns);
    }
    stock->has_orders = missing == NULL;
    if (rc == 0 && missing != NULL && (stock->is_ours || found > 0))
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "there is no table %s in this database: create it with "
                      "`sqlock stock init`",
                      missing);
    return rc;
}

/* Split "table" or "schema.table" for the catalogue. */
static int split_name(struct described *out, const char *name,
                      sqlock_error *err)
{
    const char *dot = strchr(name, '.');
    size_t schema = dot != NULL ? (size_t)(dot - name) : 0;
    const char *base = dot != NULL ? dot + 1 : name;

    if (schema > LK_IDENTIFIER_MAX || strlen(base) > LK_IDENTIFIER_MAX)
        return lk_error(err, SQLOCK_EINVAL, "the table's name is too long");
    memcpy(out->table.schema, name, schema);
    memcpy(out->table.name, base, strlen(base) + 1);
    (void)snprintf(out->plain, sizeof out->plain, "%s", name);
    return 0;
}

/* Check the names of the application's table and columns, and quote them into
 * `quoted`, to which `names` then points. */
static int render_described(sqlock_stock *stock, struct described *out,
                            struct lk_stock_names *names,
                            struct lk_tx_table *quoted, sqlock_error *err)
{
    const sqlock_stock_options *options = &stock->options;
    const sqlock_dialect *dialect = stock->store->db.driver->dialect;
    sqlock_table table = SQLOCK_TABLE_INIT;
    int rc;

    table.name = options->table;
    table.key_column = options->item_column;
    table.version_column = options->version_column;
    rc = lk_tx_table_read(
        quoted, &table,
        table.version_column != NULL ? LK_TX_VERSION : LK_TX_KEY, dialect, err);
    if (rc == 0) /* `owner` is free: it gets the quantity's column */
        rc = lk_tx_quote(quoted->owner, "the quantity column",
                         options->quantity_column, dialect, err);
    if (rc == 0)
        rc = split_name(out, options->table, err);
    if (rc < 0)
        return rc;
    out->item = options->item_column;
    out->quantity = options->quantity_column;
    out->version = options->version_column;
    names->stock = quoted->name;
    names->item = quoted->key;
    names->quantity = quoted->owner;
    names->version = out->version != NULL ? quoted->version : NULL;
    return 0;
}

static void render_ours(const struct lk_table *table, struct described *out,
                        struct lk_stock_names *names)
{
    out->table = *table;
    memcpy(out->plain, table->plain, sizeof out->plain);
    out->item = names->item = "ITEM";
    out->quantity = names->quantity = "QUANTITY";
    out->version = names->version = "VERSION";
    names->stock = table->quoted;
}

/* Render the statements, with the fragments that the table requires. */
static int render_statements(sqlock_stock *stock,
                             const struct lk_stock_names *of_tables,
                             sqlock_error *err)
{
    struct lk_stock_names names = *of_tables;
    char most[24];

    (void)snprintf(most, sizeof most, "%" PRId64, stock->most);
    names.most = most;
    names.has_buckets = stock->is_ours;
    names.is_loose = stock->has_loose_items;
    return lk_stock_render(stock, &names, err);
}

static int find_tables(sqlock_stock *stock, sqlock_error *err)
{
    struct lk_store *store = stock->store;
    struct lk_table tables[LK_STOCK_TABLES];
    struct described described = {0};
    struct lk_stock_names names = {0};
    struct lk_tx_table quoted;
    int64_t deadline_ns =
        lk_after_ms(sqlock_monotonic_ns(), store->options.connect_timeout_ms);
    int rc = 0;

    for (int i = 0; rc == 0 && i < LK_STOCK_TABLES; i++)
        rc = lk_stock_table(&tables[i], &store->table, i,
                            store->db.driver->dialect, err);
    if (rc < 0)
        return rc;
    if (stock->is_ours)
        render_ours(&tables[LK_TABLE_STOCK], &described, &names);
    else
        rc = render_described(stock, &described, &names, &quoted, err);
    names.entry = tables[LK_TABLE_ENTRY].quoted;
    names.reservation = tables[LK_TABLE_RESERVATION].quoted;
    names.bucket = tables[LK_TABLE_BUCKET].quoted;
    if (rc == 0)
        rc = check_stock_table(stock, &described, deadline_ns, err);
    if (rc == 0)
        rc = check_our_tables(stock, tables, deadline_ns, err);
    return rc < 0 ? rc : render_statements(stock, &names, err);
}

/* --- opening and closing --- */

static int check_strategy(const sqlock_stock *stock, sqlock_error *err)
{
    if (stock->options.strategy != SQLOCK_STOCK_BUCKETS || stock->is_ours)
        return 0;
    return lk_error(err, SQLOCK_ENOTSUP,
                    "the strategy BUCKETS needs sqlock's own stock table, "
                    "since other programs would not see the buckets of yours");
}

static int set_up(sqlock_stock *stock, const sqlock_stock_options *options,
                  sqlock_error *err)
{
    const sqlock_driver *driver = stock->store->db.driver;
    int rc;

    rc = complete(&stock->options, options, err);
    if (rc < 0)
        return rc;
    if (driver->stock == NULL || driver->transactions == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s does not support stock", driver->name);
    stock->is_ours = stock->options.table == NULL;
    stock->name = strdup(stock->is_ours ? "" : stock->options.table);
    if (stock->name == NULL)
        return lk_error_nomem(err);
    stock->takes_turns = driver->has_one_writer;
    stock->strategy = strategies[stock->options.strategy].strategy;
    rc = find_tables(stock, err);
    /* Do not keep the application's strings. */
    stock->options.table = NULL;
    stock->options.item_column = NULL;
    stock->options.quantity_column = NULL;
    stock->options.version_column = NULL;
    return rc < 0 ? rc : check_strategy(stock, err);
}

int sqlock_stock_open(sqlock_stock **out, sqlock_registry *registry,
                      const sqlock_stock_options *options, sqlock_error *err)
{
    struct lk_store *store;
    sqlock_stock *stock;
    int rc;

    if (out == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the stock argument is NULL");
    *out = NULL;
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    stock = calloc(1, sizeof *stock);
    if (stock == NULL)
        return lk_error_nomem(err);
    stock->store = store;
    atomic_fetch_add(&store->users, 1);
    (void)pthread_mutex_init(&stock->mutex, NULL);
    lk_condition_init(&stock->written);
    rc = set_up(stock, options, err);
    if (rc < 0)
        sqlock_stock_close(stock);
    else
        *out = stock;
    return rc;
}

void sqlock_stock_close(sqlock_stock *stock)
{
    if (stock == NULL)
        return;
    lk_combine_clear(stock);
    for (size_t kind = 0; kind < SQLOCK_STOCK_KINDS; kind++)
        lk_statement_clear(&stock->statements[kind]);
    free(stock->name);
    (void)pthread_cond_destroy(&stock->written);
    (void)pthread_mutex_destroy(&stock->mutex);
    atomic_fetch_sub(&stock->store->users, 1);
    free(stock);
}

void sqlock_stock_statistics(sqlock_stock *stock, sqlock_stock_stats *stats)
{
    if (stats == NULL)
        return;
    memset(stats, 0, sizeof *stats);
    if (stock == NULL)
        return;
    stats->operations = atomic_load(&stock->operations);
    stats->retries = atomic_load(&stock->retries);
    stats->rounds = atomic_load(&stock->rounds);
    stats->combined = atomic_load(&stock->combined);
    stats->most_rounds = atomic_load(&stock->most_rounds);
    stats->rebalances = atomic_load(&stock->rebalances);
}
