/*
 * tables.c - find the tables of a stock and check their columns, so that
 * nothing fails halfway later
 */
#include "stock/sql/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "db/columns.h"
#include "lease/store.h"
#include "stock/sql/names.h"
#include "tx/tx.h"

#define COLUMNS_MAX 9

/* Our tables, each with the columns that it must have. */
static const struct {
    const char *suffix;
    const char *columns[COLUMNS_MAX + 1];
} ours[LK_STOCK_TABLES] = {
    [LK_TABLE_STOCK] = {"STOCK", {"ITEM"}}, /* the others: as of any table */
    [LK_TABLE_ENTRY] = {"STOCK_ENTRY",
                        {"ORDER_ID", "LINE", "ITEM", "KIND", "QUANTITY",
                         "DELTA", "STATUS", "BALANCE", "CREATED_AT"}},
    [LK_TABLE_RESERVATION] = {"STOCK_RESERVATION",
                              {"ORDER_ID", "STOCK", "STATE", "EXPIRES_AT",
                               "CREATED_AT"}},
};

int lk_stock_name_tables(struct lk_table out[LK_STOCK_TABLES],
                         const char *prefix, const sqlock_dialect *dialect,
                         sqlock_error *err)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < LK_STOCK_TABLES; i++)
        rc = lk_table_named(&out[i], prefix, ours[i].suffix, dialect, err);
    return rc;
}

/* --- columns --- */

/* The search for the tables of a stock. */
struct search {
    struct lk_stock_tables *found;
    const sqlock_driver *driver;
    int64_t deadline_ns;
    struct lk_table tables[LK_STOCK_TABLES];
    struct lk_table items; /* the application's table, or INT_STOCK */
    const char *item, *quantity, *version; /* its columns */
    struct lk_tx_table quoted;
    struct lk_stock_names names;
};

static int read_columns(const struct search *search, sqlock_result *columns,
                        const struct lk_table *table, sqlock_error *err)
{
    return lk_columns_read(columns, &search->found->store->db, table,
                           search->deadline_ns, err);
}

static int tell_missing(const struct search *search,
                        const struct lk_table *table, sqlock_error *err)
{
    return lk_columns_missing(&search->found->store->db, table,
                              search->deadline_ns, LK_STOCK_COMMAND, err);
}

static int check_column(const sqlock_result *columns,
                        const struct lk_table *table, const char *name,
                        sqlock_error *err)
{
    if (lk_column(columns, name) != NULL)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA, "the table %s has no column %s",
                    table->plain, name);
}

/* Check the columns of one of our tables: texts must compare by bytes, else two
 * orders would be one, or one item two. */
static int check_columns_of(const sqlock_result *columns,
                            const struct lk_table *table,
                            const char *const *names, sqlock_error *err)
{
    int rc = lk_columns_check_kind(columns, table, LK_STOCK_COMMAND, err);

    for (; rc == 0 && *names != NULL; names++) {
        const char *loose = lk_column_text(columns, *names, LK_COLUMN_LOOSE);

        rc = check_column(columns, table, *names, err);
        if (loose != NULL)
            rc = lk_error(err, SQLOCK_ESCHEMA,
                          "%s.%s compares texts by %s, which takes different "
                          "ones for equal: `sqlock doctor` names the statement "
                          "that changes it",
                          table->plain, *names, loose);
    }
    return rc;
}

/* Return the greatest integer that the column holds; 0: it is of another
 * type. */
static int64_t most_of(const struct search *search,
                       const sqlock_result *columns, const char *name)
{
    const sqlock_integer_type *types = search->driver->stock->integers;
    const char *type = lk_column_text(columns, name, LK_COLUMN_TYPE);

    while (types->patterns != NULL &&
           !lk_text_matches(type != NULL ? type : "", types->patterns))
        types++;
    return types->most;
}

static int check_integer(const struct search *search,
                         const sqlock_result *columns, const char *name,
                         int64_t *most, sqlock_error *err)
{
    int rc = check_column(columns, &search->items, name, err);

    if (rc < 0)
        return rc;
    *most = most_of(search, columns, name);
    if (*most > 0)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "%s.%s is of type %s, but must be an integer",
                    search->items.plain, name,
                    lk_column_text(columns, name, LK_COLUMN_TYPE));
}

static int check_items(struct search *search, sqlock_error *err)
{
    struct lk_stock_tables *found = search->found;
    sqlock_result columns = {0};
    int64_t ignored;
    int rc;

    rc = read_columns(search, &columns, &search->items, err);
    if (rc == 0 && columns.rows == 0)
        rc = found->is_ours ? tell_missing(search, &search->items, err)
                            : lk_error(err, SQLOCK_ESCHEMA,
                                       "there is no table %s in this database",
                                       search->items.plain);
    if (rc == 0)
        rc = check_column(&columns, &search->items, search->item, err);
    if (rc == 0 && found->is_ours)
        rc = check_columns_of(&columns, &search->items,
                              ours[LK_TABLE_STOCK].columns, err);
    if (rc == 0)
        rc = check_integer(search, &columns, search->quantity, &found->most,
                           err);
    if (rc == 0 && search->version != NULL)
        rc = check_integer(search, &columns, search->version, &ignored, err);
    search->names.is_loose =
        lk_column_text(&columns, search->item, LK_COLUMN_LOOSE) != NULL;
    found->has_integer_items = most_of(search, &columns, search->item) > 0;
    sqlock_result_clear(&columns);
    return rc;
}

/* Return whether the login may change the column. */
static bool may_change(const sqlock_result *columns, const char *name)
{
    const sqlock_value *cells = lk_column(columns, name);

    return cells != NULL && cells[LK_COLUMN_RIGHTS].integer == 2;
}

/* Check our tables for orders and reservations.  Return ESCHEMA if one is
 * missing or lacks a column; but all of them may be missing if the items are
 * in a table of the application. */
static int check_ours(const struct search *search, sqlock_error *err)
{
    struct lk_stock_tables *found = search->found;
    const struct lk_table *missing = NULL;
    size_t count = 0;
    int rc = 0;

    found->takes_back = true;
    for (int i = LK_TABLE_ENTRY; rc == 0 && i < LK_STOCK_TABLES; i++) {
        const struct lk_table *table = &search->tables[i];
        sqlock_result columns = {0};

        rc = read_columns(search, &columns, table, err);
        if (rc == 0 && columns.rows > 0) {
            count++;
            rc = check_columns_of(&columns, table, ours[i].columns, err);
        } else if (missing == NULL) {
            missing = table;
        }
        found->takes_back =
            found->takes_back &&
            may_change(&columns, i == LK_TABLE_ENTRY ? "STATUS" : "STATE");
        sqlock_result_clear(&columns);
    }
    found->has_orders = missing == NULL;
    if (rc == 0 && missing != NULL && (found->is_ours || count > 0))
        rc = tell_missing(search, missing, err);
    return rc;
}

/* --- names --- */

/* Split "table" or "schema.table" for the catalogue. */
static int split_name(struct lk_table *out, const char *name, sqlock_error *err)
{
    const char *dot = strchr(name, '.');
    size_t schema = dot != NULL ? (size_t)(dot - name) : 0;
    const char *base = dot != NULL ? dot + 1 : name;

    if (schema > LK_IDENTIFIER_MAX || strlen(base) > LK_IDENTIFIER_MAX)
        return lk_error(err, SQLOCK_EINVAL, "the table's name is too long");
    memcpy(out->schema, name, schema);
    memcpy(out->name, base, strlen(base) + 1);
    (void)snprintf(out->plain, sizeof out->plain, "%s", name);
    return 0;
}

/* Check and quote the names of the application's table and columns. */
static int name_theirs(struct search *search,
                       const sqlock_stock_options *options, sqlock_error *err)
{
    const sqlock_dialect *dialect = search->driver->dialect;
    struct lk_tx_table *quoted = &search->quoted;
    const struct lk_tx_role roles[] = {{"the item column", quoted->key},
                                       {"the version column", quoted->version},
                                       {"the quantity column", quoted->owner}};
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
        rc = lk_tx_check_roles(roles, sizeof roles / sizeof *roles, dialect,
                               err);
    if (rc == 0)
        rc = split_name(&search->items, options->table, err);
    search->item = options->item_column;
    search->quantity = options->quantity_column;
    search->version = options->version_column;
    search->names.stock = quoted->name;
    search->names.item = quoted->key;
    search->names.quantity = quoted->owner;
    search->names.version = search->version != NULL ? quoted->version : NULL;
    return rc;
}

static void name_ours(struct search *search)
{
    search->items = search->tables[LK_TABLE_STOCK];
    search->item = search->names.item = "ITEM";
    search->quantity = search->names.quantity = "QUANTITY";
    search->version = search->names.version = "VERSION";
    search->names.stock = search->items.quoted;
}

/* --- all of it --- */

static int find(struct search *search, const sqlock_stock_options *options,
                sqlock_error *err)
{
    struct lk_store *store = search->found->store;
    struct lk_stock_names *names = &search->names;
    char most[24];
    int rc;

    rc = lk_stock_name_tables(search->tables, store->options.table_prefix,
                              search->driver->dialect, err);
    if (rc == 0 && options->table == NULL)
        name_ours(search);
    else if (rc == 0)
        rc = name_theirs(search, options, err);
    if (rc == 0)
        rc = check_items(search, err);
    if (rc == 0)
        rc = check_ours(search, err);
    if (rc < 0)
        return rc;
    (void)snprintf(most, sizeof most, "%" PRId64, search->found->most);
    names->most = most;
    names->is_ours = search->found->is_ours;
    names->entry = search->tables[LK_TABLE_ENTRY].quoted;
    names->reservation = search->tables[LK_TABLE_RESERVATION].quoted;
    return lk_stock_render(search->found->statements, search->driver,
                           &store->db.ids, names, err);
}

int lk_stock_tables_open(struct lk_stock_tables *out, sqlock_registry *registry,
                         const sqlock_stock_options *options, sqlock_error *err)
{
    struct search search = {.found = out};
    struct lk_store *store;
    int rc;

    memset(out, 0, sizeof *out);
    rc = lk_store_of(registry, &store, err);
    if (rc < 0)
        return rc;
    search.driver = store->db.driver;
    search.deadline_ns =
        lk_after_ms(sqlock_monotonic_ns(), store->options.connect_timeout_ms);
    if (search.driver->stock == NULL || search.driver->transactions == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s does not support stock",
                        search.driver->name);
    out->is_ours = options->table == NULL;
    out->has_one_writer = search.driver->has_one_writer;
    out->statements = calloc(SQLOCK_STOCK_KINDS, sizeof *out->statements);
    if (out->statements == NULL)
        return lk_error_nomem(err);
    out->store = store;
    atomic_fetch_add(&store->users, 1);
    rc = find(&search, options, err);
    if (rc < 0)
        lk_stock_tables_close(out);
    return rc;
}

void lk_stock_tables_close(struct lk_stock_tables *tables)
{
    for (size_t kind = 0; kind < SQLOCK_STOCK_KINDS; kind++)
        lk_statement_clear(&tables->statements[kind]);
    free(tables->statements);
    atomic_fetch_sub(&tables->store->users, 1);
}

int lk_stock_tables_check(const struct lk_stock_tables *tables, sqlock_tx *tx,
                          sqlock_error *err)
{
    int rc = lk_store_check(tables->store, err);

    if (rc < 0 || tx == NULL)
        return rc;
    if (tx->store != tables->store)
        return lk_error(
            err, SQLOCK_EINVAL,
            "the transaction belongs to another registry than the stock");
    return lk_tx_check(tx, err);
}

void lk_stock_tell_missing(const struct lk_stock_tables *tables,
                           const char *order, const char *item,
                           int64_t quantity)
{
    lk_store_tell(tables->store,
                  &(sqlock_event){.kind = SQLOCK_EVENT_ITEM_MISSING,
                                  .code = SQLOCK_ENOTFOUND},
                  "reservation %s ends, and there is no item %s any more to "
                  "which to give back %" PRId64,
                  order, item, quantity);
}
