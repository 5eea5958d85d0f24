/*
 * schema.c - create the tables of stock, or return the SQL for a DBA; a table
 * that exists is checked, and gets an index that earlier versions did not
 * create
 */
#include "base/error.h"
#include "db/columns.h"
#include "lease/schema.h"
#include "sqlock/stock.h"
#include "stock/sql/names.h"

int sqlock_stock_schema_text(char **text, const char *url,
                             const sqlock_options *options, sqlock_error *err)
{
    return lk_schema_text(text, url, options, SQLOCK_SCHEMA_STOCK, err);
}

/* Add an index by CREATED_AT to a table of entries that has none, because an
 * earlier version created it. */
static int add_age_index(struct lk_site *site, const struct lk_table *entries,
                         sqlock_error *err)
{
    bool is_there = false;
    int rc = lk_columns_have_age_index(&is_there, &site->db, entries,
                                       lk_db_schema_deadline(&site->db), err);

    return rc < 0 || is_there
               ? rc
               : lk_schema_run(site, site->db.driver->stock->add_age_index,
                               true, err);
}

int sqlock_stock_schema_create(const char *url, const sqlock_options *options,
                               sqlock_error *err)
{
    static const char *const telling[LK_STOCK_TABLES] = {"QUANTITY", "BALANCE",
                                                         "STOCK"};
    struct lk_table tables[LK_STOCK_TABLES];
    struct lk_site site;
    int rc;

    rc = lk_site_open(&site, url, options, true, err);
    if (rc < 0)
        return rc;
    rc = lk_stock_name_tables(tables, site.options.table_prefix,
                              site.db.driver->dialect, err);
    if (rc == 0)
        rc = lk_schema_create(&site, SQLOCK_SCHEMA_STOCK, tables, telling,
                              LK_STOCK_TABLES, LK_STOCK_COMMAND, err);
    if (rc == 0)
        rc = add_age_index(&site, &tables[LK_TABLE_ENTRY], err);
    lk_db_clear(&site.db);
    return rc;
}
