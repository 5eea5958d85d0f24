/*
 * diagnose_tables.c - check the tables that have the lock table's prefix: for
 * run-once records, and for stock
 *
 * Rights are tried with statements that touch no row.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "db/table.h"
#include "admin/diagnose.h"

#define TABLES_MAX 4
enum { COL_UNFIT = 4, DESCRIBED_COLUMNS };

/* Tables that are used together. */
struct group {
    const char *check;
    const char *names[TABLES_MAX + 1]; /* without the prefix */
    const char *what_for;
    const char *create;              /* a command, given as advice */
    bool is_updated;                 /* UPDATE is needed as well as INSERT */
    const char *columns[TABLES_MAX]; /* of each table, a column to update */
    const char *aged; /* the table whose rows are removed by age */
};

static const struct group groups[] = {
    {.check = "once",
     .names = {"DONE"},
     .what_for = "`sqlock run --once`",
     .create = "`sqlock init --once`"},
    {.check = "stock",
     .names = {"STOCK", "STOCK_ENTRY", "STOCK_RESERVATION", "STOCK_BUCKET"},
     .what_for = "stock",
     .create = "`sqlock stock init`",
     .is_updated = true,
     .columns = {"ITEM", "ORDER_ID", "ORDER_ID", "ITEM"},
     .aged = "STOCK_ENTRY"},
};

/* The check of one group. */
struct look {
    struct lk_checks *checks;
    struct lk_db *db;
    const struct group *group;
    int64_t deadline_ns;
    struct lk_table table; /* the one that is looked at now */
};

static int run(const struct look *look, const sqlock_template *template,
               struct lk_arguments *arguments, bool is_write,
               sqlock_result *result, sqlock_error *err)
{
    struct lk_run run = {
        .arguments = arguments,
        .deadline_ns = look->deadline_ns,
        .is_repeatable = true,
        .is_write = is_write,
    };

    return lk_db_run_template(look->db, template, &look->table, &run, result,
                              err);
}

/* Check that the table exists and can be used.  Return 0; ENOTFOUND, without an
 * error in err; ESCHEMA if it is unfit, such as a view; or another code. */
static int describe(const struct look *look, sqlock_error *err)
{
    const sqlock_template *template =
        &look->db->driver->dialect->statements[SQLOCK_SQL_DESCRIBE];
    const struct lk_table *table = &look->table;
    struct lk_arguments arguments = {0};
    sqlock_result columns = {0};
    int rc;

    lk_table_arguments(table, &arguments);
    rc = run(look, template, &arguments, false, &columns, err);
    if (rc == 0 && columns.rows == 0)
        rc = SQLOCK_ENOTFOUND;
    else if (rc == 0 && columns.columns >= DESCRIBED_COLUMNS &&
             columns.cells[COL_UNFIT].type == SQLOCK_TEXT)
        rc = lk_error(err, SQLOCK_ESCHEMA, "%s is %s", table->plain,
                      columns.cells[COL_UNFIT].text);
    sqlock_result_clear(&columns);
    return rc;
}

static int try_rights(const struct look *look, const char *column,
                      sqlock_error *err)
{
    static const sqlock_template insert = {
        .text = "INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0"};
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    char text[128];
    const sqlock_template update = {.text = text};
    int rc;

    rc = run(look, &insert, &arguments, true, &result, err);
    sqlock_result_clear(&result);
    if (rc < 0 || !look->group->is_updated)
        return rc;
    (void)snprintf(text, sizeof text, "UPDATE {table} SET %s = %s WHERE 1 = 0",
                   column, column);
    rc = run(look, &update, &arguments, true, &result, err);
    sqlock_result_clear(&result);
    return rc;
}

static void report_failure(const struct look *look, int rc,
                           const sqlock_error *err)
{
    const char *check = look->group->check;

    if (rc == SQLOCK_ESCHEMA)
        lk_check(look->checks, check, SQLOCK_FAILURE,
                 "make it an ordinary durable table of this database, or a "
                 "crash will lose its records",
                 "%s", err->message);
    else if (rc == SQLOCK_EACCESS)
        lk_check(look->checks, check, SQLOCK_WARNING,
                 "if this login needs the rights, grant them with "
                 "grants-application.sql beside the schema",
                 "this login cannot write to %s, as %s does: %s",
                 look->table.plain, look->group->what_for, err->message);
    else
        lk_check(look->checks, check, SQLOCK_FAILURE, NULL,
                 "%s cannot be checked: %s", look->table.plain, err->message);
}

static void report_missing(const struct look *look, const char *missing,
                           size_t found)
{
    if (found == 0)
        lk_check(look->checks, look->group->check, SQLOCK_FINE, NULL,
                 "there is no table %s, or this login may not see it: %s "
                 "creates it, for %s",
                 missing, look->group->create, look->group->what_for);
    else
        lk_check(look->checks, look->group->check, SQLOCK_FAILURE,
                 look->group->create,
                 "there is no table %s, or this login may not see it, but "
                 "other tables for %s exist",
                 missing, look->group->what_for);
}

/* Return whether the table with aged rows, if the group has one, has an index
 * by CREATED_AT, which earlier versions did not create; also true if that is
 * unknown.  If it has none, append a warning. */
static bool has_age_index(struct look *look, const char *prefix)
{
    const sqlock_stock_dialect *stock = look->db->driver->stock;
    const sqlock_template template = {
        .text = stock != NULL ? stock->has_age_index : NULL};
    struct lk_arguments arguments = {0};
    sqlock_result result = {0};
    sqlock_error err = {0};
    bool is_missing;
    int rc;

    if (look->group->aged == NULL || template.text == NULL ||
        lk_table_named(&look->table, prefix, look->group->aged,
                       look->db->driver->dialect, &err) < 0)
        return true;
    lk_argument_text(&arguments, SQLOCK_P_KEY, look->table.name);
    lk_argument_text(&arguments, SQLOCK_P_REGION,
                     look->table.schema[0] != '\0' ? look->table.schema : NULL);
    rc = run(look, &template, &arguments, false, &result, &err);
    is_missing = rc == 0 && result.rows == 0;
    sqlock_result_clear(&result);
    if (is_missing)
        lk_check(
            look->checks, look->group->check, SQLOCK_WARNING,
            "`sqlock stock init` adds it; writers of the table wait meanwhile",
            "%s has no index that begins with CREATED_AT, so `sqlock stock "
            "reap` reads the whole table for each page that it removes",
            look->table.plain);
    return !is_missing;
}

static void look_at_group(struct look *look, const char *prefix)
{
    const struct group *group = look->group;
    char missing[sizeof look->table.plain] = "";
    sqlock_error err = {0};
    size_t found = 0;
    size_t count = 0;
    int rc = 0;

    for (; group->names[count] != NULL; count++) {
        rc = lk_table_named(&look->table, prefix, group->names[count],
                            look->db->driver->dialect, &err);
        if (rc == 0)
            rc = describe(look, &err);
        if (rc == SQLOCK_ENOTFOUND) {
            if (missing[0] == '\0')
                memcpy(missing, look->table.plain, sizeof missing);
            continue;
        }
        if (rc == 0)
            rc = try_rights(look, group->columns[count], &err);
        if (rc < 0)
            break;
        found++;
    }
    if (rc < 0 && rc != SQLOCK_ENOTFOUND)
        report_failure(look, rc, &err);
    else if (found < count)
        report_missing(look, missing, found);
    else if (has_age_index(look, prefix))
        lk_check(look->checks, group->check, SQLOCK_FINE, NULL,
                 "this login can read and write the tables of %s",
                 group->what_for);
}

void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        struct look look = {.checks = checks,
                            .db = db,
                            .group = &groups[i],
                            .deadline_ns = deadline_ns};

        look_at_group(&look, options->table_prefix);
    }
}
