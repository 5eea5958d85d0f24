/*
 * schema.c - the SQL that creates sqlock's tables; create the lock table
 */
#include "lease/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/retry.h"
#include "db/columns.h"
#include "db/drivers.h"
#include "db/statement.h"
#include "lease/layout.h"

/* --- any of the tables --- */

/* Return the text for a prefix, which was checked, or NULL. */
static char *render(const sqlock_dialect *dialect, const char *schema,
                    const char *prefix)
{
    char *own = malloc(strlen(prefix) + 1);
    char *text = NULL;

    if (own != NULL) {
        lk_table_write_prefix(own, prefix, dialect);
        text = lk_schema_render(schema, own);
    }
    free(own);
    return text;
}

int lk_schema_text(char **text, const char *url, const sqlock_options *options,
                   int schema, sqlock_error *err)
{
    const sqlock_driver *driver;
    sqlock_options complete;
    struct lk_table table;
    int rc;

    if (text == NULL)
        return lk_error_null(err, "text");
    *text = NULL;
    rc = lk_options_complete(&complete, options, err);
    if (rc < 0)
        return rc;
    rc = lk_driver_find(&driver, url, err);
    if (rc < 0)
        return rc;
    rc = lk_table_from_prefix(&table, complete.table_prefix, driver->dialect,
                              err);
    if (rc < 0)
        return rc;
    *text = render(driver->dialect, driver->dialect->schema[schema],
                   complete.table_prefix);
    return *text != NULL ? 0 : lk_error_nomem(err);
}

int lk_site_open(struct lk_site *site, const char *url,
                 const sqlock_options *options, bool may_create,
                 sqlock_error *err)
{
    int rc;

    rc = lk_options_complete(&site->options, options, err);
    if (rc == 0)
        rc = lk_db_init_for_schema(
            &site->db, url, site->options.connect_timeout_ms, may_create, err);
    if (rc < 0)
        return rc;
    rc = lk_table_from_prefix(&site->table, site->options.table_prefix,
                              site->db.driver->dialect, err);
    if (rc < 0)
        lk_db_clear(&site->db);
    return rc;
}

int lk_schema_run(struct lk_site *site, const char *schema, bool again,
                  sqlock_error *err)
{
    static const struct lk_retry_policy policy = {
        .first_us = 1000,
        .longest_us = 50000,
        .classes = LK_RETRY_BUSY,
        .last = LK_RETRY_WITHIN,
    };
    char *text =
        render(site->db.driver->dialect, schema, site->options.table_prefix);
    int64_t deadline_ns = lk_db_schema_deadline(&site->db);
    struct lk_retry retry;
    sqlock_error own = {0};
    int rc;

    if (text == NULL)
        return lk_error_nomem(err);
    lk_retry_begin(&retry, &policy, deadline_ns);
    do
        rc = lk_db_run_script(&site->db, text, deadline_ns, &own);
    while (again && lk_retry_goes_on(&retry, rc));
    free(text);
    return lk_error_pass(err, &own, rc);
}

/* Refuse to create a table that is missing here, and that others may find. */
static int check_place(struct lk_site *site, const struct lk_table *table,
                       sqlock_error *err)
{
    int64_t deadline_ns = lk_db_schema_deadline(&site->db);
    sqlock_result columns = {0};
    int rc = lk_columns_read(&columns, &site->db, table, deadline_ns, err);

    if (rc == 0 && columns.rows == 0)
        rc = lk_columns_check_others(&site->db, table, deadline_ns,
                                     SQLOCK_ECONFLICT, err);
    sqlock_result_clear(&columns);
    return rc;
}

static int check_table(struct lk_site *site, const struct lk_table *table,
                       const char *column, const char *command,
                       sqlock_error *err)
{
    sqlock_result columns = {0};
    int rc = lk_columns_read(&columns, &site->db, table,
                             lk_db_schema_deadline(&site->db), err);

    if (rc == 0)
        rc = lk_columns_check_kind(&columns, table, command, err);
    if (rc == 0 && lk_column(&columns, column) == NULL)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "the table %s has no column %s, so it is not one of "
                      "sqlock's tables",
                      table->plain, column);
    sqlock_result_clear(&columns);
    return rc;
}

int lk_schema_create(struct lk_site *site, int schema,
                     const struct lk_table *tables, const char *const *columns,
                     size_t count, const char *command, sqlock_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_place(site, &tables[i], err);
    if (rc == 0)
        rc = lk_schema_run(site, site->db.driver->dialect->schema[schema], true,
                           err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = check_table(site, &tables[i], columns[i], command, err);
    return rc;
}

/* --- the lock table --- */

static int check_layout(sqlock_layout layout, sqlock_error *err)
{
    if ((int)layout < 0 || (int)layout >= SQLOCK_LAYOUTS)
        return lk_error(err, SQLOCK_EINVAL, "unknown table layout %d",
                        (int)layout);
    return 0;
}

/* Check that the longest name beside that of the lock table is not too long. */
static int check_beside(const sqlock_dialect *dialect, const char *prefix,
                        sqlock_layout layout, sqlock_error *err)
{
    bool has_grace = lk_sql_find(dialect->statements, SQLOCK_SQL_GRACE,
                                 LK_SQLOCK_QUEUE) != NULL;
    struct lk_table beside;

    if (layout != SQLOCK_LAYOUT_SQLOCK)
        return 0;
    return lk_table_named(&beside, prefix,
                          has_grace ? "LOCK_SERVER" : "LOCK_NOW", dialect, err);
}

int sqlock_schema_text(char **text, const char *url,
                       const sqlock_options *options, sqlock_layout layout,
                       sqlock_error *err)
{
    int rc;

    if (text != NULL)
        *text = NULL;
    rc = check_layout(layout, err);
    return rc < 0 ? rc : lk_schema_text(text, url, options, (int)layout, err);
}

/* Create the missing table, and detect its layout.  After EBUSY another session
 * may have created the table, and after EUNCERTAIN this session may have; after
 * EACCESS this one has, without the view. */
static int create_missing(struct lk_site *site, sqlock_layout layout,
                          sqlock_layout *found, sqlock_error *err)
{
    sqlock_error why = {0};
    int created = lk_schema_run(site, site->db.driver->dialect->schema[layout],
                                false, &why);
    int rc;

    if (created == 0)
        return lk_layout_require(&site->db, &site->table,
                                 lk_db_schema_deadline(&site->db), found, err);
    if (created == SQLOCK_EBUSY || created == SQLOCK_EUNCERTAIN ||
        created == SQLOCK_EACCESS) {
        rc = lk_layout_detect(&site->db, &site->table,
                              lk_db_schema_deadline(&site->db), found, err);
        if (rc != SQLOCK_ENOTFOUND)
            return rc;
    }
    if (err != NULL)
        *err = why;
    return lk_db_of_reading(created, err); /* no table: nothing is in doubt */
}

static const char *name_of(sqlock_layout layout)
{
    switch (layout) {
    case SQLOCK_LAYOUT_SPRING7:
        return "spring7";
    case SQLOCK_LAYOUT_SPRING6:
        return "spring6";
    default:
        return "sqlock";
    }
}

static int create_in(struct lk_site *site, sqlock_layout layout,
                     sqlock_error *err)
{
    sqlock_error own = {0};
    sqlock_layout found;
    int rc;

    rc = lk_layout_detect(&site->db, &site->table,
                          lk_db_schema_deadline(&site->db), &found, &own);
    if (rc == SQLOCK_ENOTFOUND) {
        rc = check_beside(site->db.driver->dialect, site->options.table_prefix,
                          layout, &own);
        if (rc == 0)
            rc = lk_columns_check_others(&site->db, &site->table,
                                         lk_db_schema_deadline(&site->db),
                                         SQLOCK_ECONFLICT, &own);
        if (rc == 0)
            rc = create_missing(site, layout, &found, &own);
    }
    if (rc == 0 && found != layout)
        rc = lk_error(&own, SQLOCK_ECONFLICT,
                      "the table %s exists with the layout %s, not %s",
                      site->table.plain, name_of(found), name_of(layout));
    return lk_error_pass(err, &own, rc);
}

int sqlock_schema_create(const char *url, const sqlock_options *options,
                         sqlock_layout layout, sqlock_error *err)
{
    struct lk_site site;
    int rc;

    rc = check_layout(layout, err);
    if (rc < 0)
        return rc;
    rc = lk_site_open(&site, url, options, true, err);
    if (rc < 0)
        return rc;
    rc = create_in(&site, layout, err);
    lk_db_clear(&site.db);
    return rc;
}

void sqlock_free(void *memory)
{
    free(memory);
}
