/*
 * schema.c - return, or run, the SQL that creates the tables of stock
 *
 * Both calls take a URL, because a stock cannot be opened before its tables
 * exist.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/retry.h"
#include "base/writer.h"
#include "db/drivers.h"
#include "lease/options.h"
#include "stock/columns.h"
#include "stock/names.h"
#include "sqlock/stock.h"

#define PREFIX "INT_"
#define WORD PREFIX "STOCK"

static bool is_word_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* Return the schema with the prefix of the lock table instead of INT_, in each
 * word that begins with INT_STOCK.  The caller frees it; NULL: out of
 * memory. */
static char *render(const char *schema, const struct lk_table *lock)
{
    struct lk_writer writer;
    FILE *stream = lk_writer_open(&writer);

    if (stream == NULL)
        return NULL;
    for (const char *at = schema; *at != '\0'; at++) {
        bool starts = at == schema || !is_word_character(at[-1]);

        if (starts && strncmp(at, WORD, strlen(WORD)) == 0) {
            (void)fprintf(stream, "%.*s", lk_stock_prefix_length(lock->plain),
                          lock->plain);
            at += strlen(PREFIX);
        }
        (void)fputc(*at, stream);
    }
    return lk_writer_close(&writer);
}

static int find_lock_table(const sqlock_driver *driver,
                           const sqlock_options *options, struct lk_table *out,
                           sqlock_error *err)
{
    if (driver->stock == NULL)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "the driver %s does not support stock", driver->name);
    return lk_table_from_prefix(out, options->table_prefix, driver->dialect,
                                err);
}

int sqlock_stock_schema_text(char **text, const char *url,
                             const sqlock_options *options, sqlock_error *err)
{
    const sqlock_driver *driver = NULL;
    sqlock_options all;
    struct lk_table lock;
    int rc;

    if (text == NULL)
        return lk_error(err, SQLOCK_EINVAL, "the text argument is NULL");
    *text = NULL;
    rc = lk_options_complete(&all, options, err);
    if (rc == 0)
        rc = lk_driver_find(&driver, url, err);
    if (rc == 0)
        rc = find_lock_table(driver, &all, &lock, err);
    if (rc != 0)
        return rc;
    *text = render(driver->stock->schema, &lock);
    return *text != NULL ? 0 : lk_error_nomem(err);
}

/* Run the statements of a schema.  EBUSY is tried again: another session is
 * creating the same table, which then exists, or else the next attempt creates
 * it. */
static int apply(struct lk_db *db, const char *schema,
                 const struct lk_table *lock, int64_t deadline_ns,
                 sqlock_error *err)
{
    static const struct lk_retry_policy policy = {
        .first_us = 1000,
        .longest_us = 50000,
        .classes = LK_RETRY_BUSY,
        .last = LK_RETRY_WITHIN,
    };
    char *text = render(schema, lock);
    struct lk_retry retry;
    int rc;

    if (text == NULL)
        return lk_error_nomem(err);
    lk_retry_begin(&retry, &policy, deadline_ns);
    do
        rc = lk_db_run_script(db, text, deadline_ns, err);
    while (lk_retry_goes_on(&retry, rc));
    free(text);
    return rc;
}

/* Add an index by CREATED_AT to a table of entries that has none, because an
 * earlier version created it. */
static int add_age_index(struct lk_db *db, const struct lk_table *lock,
                         int64_t deadline_ns, sqlock_error *err)
{
    const sqlock_stock_dialect *stock = db->driver->stock;
    struct lk_table entries;
    bool is_there = false;
    int rc;

    rc = lk_stock_table(&entries, lock, LK_TABLE_ENTRY, db->driver->dialect,
                        err);
    if (rc == 0)
        rc = lk_columns_have_age_index(&is_there, db, &entries, deadline_ns,
                                       err);
    if (rc < 0 || is_there)
        return rc;
    return apply(db, stock->add_age_index, lock, deadline_ns, err);
}

static int check(struct lk_db *db, const struct lk_table *lock,
                 int64_t deadline_ns, sqlock_error *err)
{
    /* Columns that a table of another kind would not have. */
    static const char *const telling[LK_STOCK_TABLES] = {"QUANTITY", "BALANCE",
                                                         "STOCK", "BUCKET"};
    int rc = 0;

    for (int i = 0; rc == 0 && i < LK_STOCK_TABLES; i++) {
        struct lk_columns columns = {.rows = {0}};
        struct lk_table table;

        rc = lk_stock_table(&table, lock, i, db->driver->dialect, err);
        if (rc == 0)
            rc = lk_columns_read(&columns, db, &table, deadline_ns, err);
        if (rc == 0 && lk_columns_type(&columns, telling[i]) == NULL)
            rc = lk_error(err, SQLOCK_ESCHEMA,
                          "the table %s has no column %s, so it is not one of "
                          "sqlock's tables",
                          table.plain, telling[i]);
        lk_columns_clear(&columns);
    }
    return rc;
}

int sqlock_stock_schema_create(const char *url, const sqlock_options *options,
                               sqlock_error *err)
{
    sqlock_options all;
    struct lk_table lock;
    struct lk_db db;
    int64_t deadline_ns;
    int rc;

    rc = lk_options_complete(&all, options, err);
    if (rc < 0)
        return rc;
    rc = lk_db_init_for_schema(&db, url, all.connect_timeout_ms, true, err);
    if (rc < 0)
        return rc;
    deadline_ns = lk_db_schema_deadline(&db);
    rc = find_lock_table(db.driver, &all, &lock, err);
    if (rc == 0)
        rc = apply(&db, db.driver->stock->schema, &lock, deadline_ns, err);
    if (rc == 0)
        rc = check(&db, &lock, deadline_ns, err);
    if (rc == 0)
        rc = add_age_index(&db, &lock, deadline_ns, err);
    lk_db_clear(&db);
    return rc;
}
