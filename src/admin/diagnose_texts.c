/*
 * diagnose_texts.c - check that the tables compare texts by their bytes
 *
 * By a collation that ignores case, accents or trailing blanks, regions, raw
 * keys, items or order ids that differ for the library are one row.  A table
 * that Spring's script has made on MySQL has the database's collation.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/diagnose.h"
#include "base/error.h"
#include "base/writer.h"
#include "db/table.h"
#include "db/template.h"

enum { COL_NAME, COL_TYPE, COL_NULLABLE, COL_LOOSE = 5, COL_COUNT };

#define COLUMNS_MAX 3

struct texts {
    const char *suffix;                   /* of the table's name */
    const char *columns[COLUMNS_MAX + 1]; /* none: every column */
    sqlock_severity severity; /* a failure: the library refuses the table */
    const char *what;
};

static const struct texts all[] = {
    {"LOCK",
     {"LOCK_KEY", "REGION", "CLIENT_ID"},
     SQLOCK_WARNING,
     "regions and raw keys"},
    {"DONE", {"LOCK_KEY", "REGION"}, SQLOCK_WARNING, "regions and raw keys"},
    {"STOCK", {NULL}, SQLOCK_FAILURE, "items"},
    {"STOCK_ENTRY", {NULL}, SQLOCK_FAILURE, "order ids or items"},
    {"STOCK_RESERVATION", {NULL}, SQLOCK_FAILURE, "order ids"},
    {"STOCK_BUCKET", {NULL}, SQLOCK_FAILURE, "items"},
};

/* Return whether the column, given by its cells, is one of those texts, and
 * does not compare by bytes. */
static bool is_loose(const struct texts *texts, const sqlock_value *cells)
{
    for (const char *const *name = texts->columns; *name != NULL; name++)
        if (strcmp(cells[COL_NAME].text, *name) == 0)
            return cells[COL_LOOSE].type == SQLOCK_TEXT;
    return texts->columns[0] == NULL && cells[COL_LOOSE].type == SQLOCK_TEXT;
}

/* Write "REGION (utf8mb4_general_ci)" and its like, and the part of ALTER TABLE
 * for that column. */
static void write_column(FILE *names, FILE *cure, const char *template,
                         const sqlock_value *cells, const char *separator)
{
    const sqlock_fragment marks[] = {
        {"column", cells[COL_NAME].text},
        {"type", cells[COL_TYPE].text},
        {"null", cells[COL_NULLABLE].integer == 0 ? " NOT NULL" : ""},
        {NULL, NULL},
    };
    const struct lk_fragments fragments = {{marks}};

    (void)fprintf(names, "%s%s (%s)", separator, cells[COL_NAME].text,
                  cells[COL_LOOSE].text);
    (void)fputs(separator, cure);
    if (template != NULL)
        (void)lk_template_write(cure, template, &fragments);
}

static void report(struct lk_checks *checks, const struct texts *texts,
                   const char *table, const char *names, const char *cure,
                   bool has_cure)
{
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *advice;

    if (out == NULL) {
        checks->is_short = true;
        return;
    }
    if (has_cure)
        (void)fprintf(out, "while no program uses the table: ALTER TABLE %s %s",
                      table, cure);
    else
        (void)fputs("make the table anew, as `sqlock init --print` or `sqlock "
                    "stock init --print` has it, and copy its rows",
                    out);
    advice = lk_writer_close(&writer);
    if (advice == NULL)
        checks->is_short = true;
    else
        lk_check(checks, "collation", texts->severity, advice,
                 "%s takes %s that differ in case, accents or trailing blanks "
                 "for the same: %s",
                 table, texts->what, names);
    free(advice);
}

/* Report the columns among the rows of DESCRIBE that do not compare by bytes.
 * Return whether there is one. */
static bool look_at_columns(struct lk_checks *checks, const struct texts *texts,
                            const char *table, const char *template,
                            const sqlock_result *columns)
{
    struct lk_writer names_writer;
    struct lk_writer cure_writer;
    FILE *names = lk_writer_open(&names_writer);
    FILE *cure = lk_writer_open(&cure_writer);
    char *names_text = NULL;
    char *cure_text = NULL;
    size_t found = 0;

    for (size_t row = 0; names != NULL && cure != NULL && row < columns->rows;
         row++) {
        const sqlock_value *cells = &columns->cells[row * columns->columns];

        if (is_loose(texts, cells))
            write_column(names, cure, template, cells, found++ > 0 ? ", " : "");
    }
    if (names != NULL)
        names_text = lk_writer_close(&names_writer);
    if (cure != NULL)
        cure_text = lk_writer_close(&cure_writer);
    if (names_text == NULL || cure_text == NULL)
        checks->is_short = true;
    else if (found > 0)
        report(checks, texts, table, names_text, cure_text, template != NULL);
    free(names_text);
    free(cure_text);
    return found > 0;
}

void lk_diagnose_texts(struct lk_checks *checks, struct lk_db *db,
                       const sqlock_options *options, int64_t deadline_ns)
{
    const sqlock_dialect *dialect = db->driver->dialect;
    const char *template =
        dialect->checks != NULL ? dialect->checks->compare_bytes : NULL;
    size_t found = 0;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct lk_table table;
        sqlock_result columns = {0};
        sqlock_error err = {0};

        if (lk_table_named(&table, options->table_prefix, all[i].suffix,
                           dialect, &err) == 0 &&
            lk_db_query_catalogue(db, &dialect->statements[SQLOCK_SQL_DESCRIBE],
                                  &table, deadline_ns, &columns, &err) == 0 &&
            columns.columns >= COL_COUNT)
            found += look_at_columns(checks, &all[i], table.plain, template,
                                     &columns);
        sqlock_result_clear(&columns);
    }
    if (found == 0)
        lk_check(checks, "collation", SQLOCK_FINE, NULL,
                 "keys, regions, items and order ids are compared by their "
                 "bytes");
}
