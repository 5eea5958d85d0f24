/*
 * diagnose_tables.c - check the tables that have the lock table's prefix: for
 * locks, for run-once records, and for stock
 *
 * Rights are tried with statements that touch no row.  By a collation that
 * ignores case, accents or trailing blanks, regions, raw keys, items or order
 * ids that differ for the library are one row; a table that Spring's script has
 * made on MySQL has the database's collation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "base/writer.h"
#include "db/columns.h"
#include "db/table.h"
#include "db/statement.h"
#include "admin/diagnose.h"

/* Tables that are used together. */
struct group {
    const char *check;
    const char *what_for;
    const char *create; /* a command, given as advice */
};

static const struct group once = {"once", "`sqlock run --once`",
                                  "`sqlock init --once`"};
static const struct group stock = {"stock", "stock", "`sqlock stock init`"};

/* clang-format off */
static const struct {
    const char *suffix; /* of the name, behind the prefix */
    const struct group *group;
    const char *updated; /* UPDATE is needed, too, and tried with this column */
    bool is_aged;        /* old rows are removed */
    /* the columns, as patterns, that must be compared by their bytes; what they
     * are; and how bad it is otherwise: a failure if the library refuses it */
    const char *columns, *texts;
    sqlock_severity loose;
} tables[] = {
    {"LOCK", NULL, NULL, false, "LOCK_KEY|REGION|CLIENT_ID",
     "regions and raw keys", SQLOCK_WARNING},
    {"DONE", &once, NULL, false, "LOCK_KEY|REGION",
     "regions and raw keys", SQLOCK_WARNING},
    {"STOCK", &stock, "ITEM", false, "*", "items", SQLOCK_FAILURE},
    {"STOCK_ENTRY", &stock, "ORDER_ID", true, "*",
     "order ids or items", SQLOCK_FAILURE},
    {"STOCK_RESERVATION", &stock, "ORDER_ID", false, "*",
     "order ids", SQLOCK_FAILURE},
};
/* clang-format on */
#define TABLES (sizeof tables / sizeof tables[0])

/* A table as it was found. */
struct found {
    struct lk_table table;
    sqlock_result columns; /* none: there is no such table */
    int rc;                /* 0, or why it could not be looked at */
    sqlock_error err;
};

struct look {
    struct lk_checks *checks;
    struct lk_db *db;
    int64_t deadline_ns;
    struct found found[TABLES];
};

/* --- rights --- */

/* Run a write that touches no row. */
static int run(const struct look *look, const char *text, sqlock_error *err)
{
    const struct lk_statement statement = {.sent = {.text = text}};
    const struct lk_arguments none = {0};
    struct lk_run run = {
        .statement = &statement,
        .arguments = &none,
        .deadline_ns = look->deadline_ns,
        .is_repeatable = true,
        .is_write = true,
    };
    sqlock_result result = {0};
    int rc = lk_db_run(look->db, &run, &result, err);

    sqlock_result_clear(&result);
    return rc;
}

static int try_rights(const struct look *look, const struct lk_table *table,
                      const char *updated, sqlock_error *err)
{
    char text[2 * sizeof table->quoted + 128];
    int rc;

    (void)snprintf(text, sizeof text,
                   "INSERT INTO %s SELECT * FROM %s WHERE 1 = 0", table->quoted,
                   table->quoted);
    rc = run(look, text, err);
    if (rc < 0 || updated == NULL)
        return rc;
    (void)snprintf(text, sizeof text, "UPDATE %s SET %s = %s WHERE 1 = 0",
                   table->quoted, updated, updated);
    return run(look, text, err);
}

/* Check that a table exists and can be used.  Return 0; ENOTFOUND, without an
 * error in err; ESCHEMA if it is unfit, such as a view; or another code. */
static int try_table(const struct look *look, size_t i, sqlock_error *err)
{
    const struct found *found = &look->found[i];
    int rc;

    *err = found->err;
    if (found->rc < 0)
        return found->rc;
    if (found->columns.rows == 0) {
        rc = lk_columns_check_others(look->db, &found->table, look->deadline_ns,
                                     SQLOCK_ESCHEMA, err);
        return rc < 0 ? rc : SQLOCK_ENOTFOUND;
    }
    rc = lk_columns_check_kind(&found->columns, &found->table,
                               tables[i].group->create, err);
    if (rc < 0)
        return rc;
    return try_rights(look, &found->table, tables[i].updated, err);
}

static void report_failure(const struct look *look, size_t i, int rc,
                           const sqlock_error *err)
{
    const struct group *group = tables[i].group;
    const char *name = look->found[i].table.plain;

    if (rc == SQLOCK_ESCHEMA)
        lk_check(look->checks, group->check, SQLOCK_FAILURE, NULL, "%s",
                 err->message);
    else if (rc == SQLOCK_EACCESS)
        lk_check(look->checks, group->check, SQLOCK_WARNING,
                 "if this login needs the rights, grant them with "
                 "grants-application.sql beside the schema",
                 "this login cannot write to %s, as %s does: %s", name,
                 group->what_for, err->message);
    else
        lk_check(look->checks, group->check, SQLOCK_FAILURE, NULL,
                 "%s cannot be checked: %s", name, err->message);
}

static void report_missing(const struct look *look, const struct group *group,
                           const char *missing, bool others_exist)
{
    if (!others_exist)
        lk_check(look->checks, group->check, SQLOCK_FINE, NULL,
                 "there is no table %s, or this login may not see it: %s "
                 "creates it, for %s",
                 missing, group->create, group->what_for);
    else
        lk_check(look->checks, group->check, SQLOCK_FAILURE, group->create,
                 "there is no table %s, or this login may not see it, but "
                 "other tables for %s exist",
                 missing, group->what_for);
}

/* Return whether a table without an index by CREATED_AT was reported, which
 * earlier versions did not create. */
static bool lacks_age_index(const struct look *look, size_t i)
{
    const struct lk_table *table = &look->found[i].table;
    bool is_there = true;

    if (!tables[i].is_aged ||
        lk_columns_have_age_index(&is_there, look->db, table, look->deadline_ns,
                                  NULL) < 0 ||
        is_there)
        return false;
    lk_check(look->checks, tables[i].group->check, SQLOCK_WARNING,
             "`sqlock stock init` adds it; writers of the table wait meanwhile",
             "%s has no index that begins with CREATED_AT, so `sqlock stock "
             "reap` reads the whole table for each page that it removes",
             table->plain);
    return true;
}

static void look_at_group(const struct look *look, const struct group *group)
{
    const char *missing = NULL;
    bool is_slow = false;
    size_t there = 0;

    for (size_t i = 0; i < TABLES; i++) {
        sqlock_error err;
        int rc = tables[i].group == group ? try_table(look, i, &err) : 1;

        if (rc == SQLOCK_ENOTFOUND && missing == NULL) {
            missing = look->found[i].table.plain;
        } else if (rc < 0 && rc != SQLOCK_ENOTFOUND) {
            report_failure(look, i, rc, &err);
            return;
        }
        there += rc == 0;
    }
    if (missing != NULL) {
        report_missing(look, group, missing, there > 0);
        return;
    }
    for (size_t i = 0; i < TABLES; i++)
        is_slow =
            is_slow || (tables[i].group == group && lacks_age_index(look, i));
    if (!is_slow)
        lk_check(look->checks, group->check, SQLOCK_FINE, NULL,
                 "this login can read and write the tables of %s",
                 group->what_for);
}

/* --- texts --- */

/* Write "REGION (utf8mb4_general_ci)" and its like, and the part of ALTER TABLE
 * for that column. */
static void write_column(FILE *names, FILE *cure, const char *template,
                         const sqlock_value *cells, const char *separator)
{
    const struct lk_name marks[] = {
        {"column", cells[LK_COLUMN_NAME].text},
        {"type", cells[LK_COLUMN_TYPE].text},
        {"null", cells[LK_COLUMN_NULLABLE].integer == 0 ? " NOT NULL" : ""},
        {NULL, NULL},
    };

    (void)fprintf(names, "%s%s (%s)", separator, cells[LK_COLUMN_NAME].text,
                  cells[LK_COLUMN_LOOSE].text);
    if (template == NULL)
        return;
    (void)fputs(separator, cure);
    lk_names_write(cure, template, marks);
}

/* Write the columns of a table that must compare by bytes and do not.  Return
 * how many there are. */
static size_t write_columns(FILE *names, FILE *cure, const char *template,
                            const sqlock_result *columns, const char *patterns)
{
    size_t count = 0;

    for (size_t row = 0; row < columns->rows; row++) {
        const sqlock_value *cells = &columns->cells[row * columns->columns];

        if (cells[LK_COLUMN_LOOSE].type == SQLOCK_TEXT &&
            lk_text_matches(cells[LK_COLUMN_NAME].text, patterns))
            write_column(names, cure, template, cells, count++ > 0 ? ", " : "");
    }
    return count;
}

/* Report the columns of a table that must compare by bytes and do not.  Return
 * whether there is one. */
static bool look_at_texts(const struct look *look, size_t i)
{
    const char *table = look->found[i].table.plain;
    const char *template = look->db->driver->dialect->compare_bytes;
    struct lk_writer names_writer;
    struct lk_writer cure_writer;
    FILE *names = lk_writer_open(&names_writer);
    FILE *cure = lk_writer_open(&cure_writer);
    char *names_text = NULL;
    char *cure_text = NULL;
    size_t count = 0;

    if (names != NULL && cure != NULL) {
        if (template != NULL)
            (void)fprintf(cure,
                          "while no program uses the table: ALTER TABLE %s ",
                          table);
        else
            (void)fputs("make the table anew, as `sqlock init --print` or "
                        "`sqlock stock init --print` has it, and copy its rows",
                        cure);
        count = write_columns(names, cure, template, &look->found[i].columns,
                              tables[i].columns);
    }
    if (names != NULL)
        names_text = lk_writer_close(&names_writer);
    if (cure != NULL)
        cure_text = lk_writer_close(&cure_writer);
    if (names_text == NULL || cure_text == NULL)
        look->checks->is_short = true;
    else if (count > 0)
        lk_check(look->checks, "collation", tables[i].loose, cure_text,
                 "%s takes %s that differ in case, accents or trailing blanks "
                 "for the same: %s",
                 table, tables[i].texts, names_text);
    free(names_text);
    free(cure_text);
    return count > 0;
}

/* --- all of it --- */

void lk_diagnose_tables(struct lk_checks *checks, struct lk_db *db,
                        const sqlock_options *options, int64_t deadline_ns)
{
    struct look look = {.checks = checks, .db = db, .deadline_ns = deadline_ns};
    bool is_loose = false;

    for (size_t i = 0; i < TABLES; i++) {
        struct found *found = &look.found[i];

        found->rc =
            lk_table_named(&found->table, options->table_prefix,
                           tables[i].suffix, db->driver->dialect, &found->err);
        if (found->rc == 0)
            found->rc = lk_columns_read(&found->columns, db, &found->table,
                                        deadline_ns, &found->err);
    }
    look_at_group(&look, &once);
    look_at_group(&look, &stock);
    for (size_t i = 0; i < TABLES; i++)
        if (look_at_texts(&look, i))
            is_loose = true;
    if (!is_loose)
        lk_check(checks, "collation", SQLOCK_FINE, NULL,
                 "keys, regions, items and order ids are compared by their "
                 "bytes");
    for (size_t i = 0; i < TABLES; i++)
        sqlock_result_clear(&look.found[i].columns);
}
