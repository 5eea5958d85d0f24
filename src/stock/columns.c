/*
 * columns.c - asking the catalogue about a table of stock
 */
#include "stock/columns.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

enum { COL_NAME, COL_TYPE };

int lk_columns_read(struct lk_columns *out, struct lk_db *db,
                    const struct lk_table *table, int64_t deadline_ns,
                    sqlock_error *err)
{
    const sqlock_dialect *dialect = db->driver->dialect;
    struct lk_statement statement;
    struct lk_arguments arguments = {0};
    struct lk_run run = {
        .statement = &statement,
        .arguments = &arguments,
        .deadline_ns = deadline_ns,
        .is_repeatable = true,
        .is_first = true,
    };
    int rc;

    memset(out, 0, sizeof *out);
    lk_argument_text(&arguments, SQLOCK_P_KEY, table->name);
    lk_argument_text(&arguments, SQLOCK_P_REGION,
                     table->schema[0] != '\0' ? table->schema : NULL);
    rc = lk_statement_render(&statement, dialect,
                             &dialect->statements[SQLOCK_SQL_DESCRIBE], "", 0);
    if (rc < 0)
        (void)lk_error(err, rc, "cannot prepare to read the catalogue");
    else
        rc = lk_db_run(db, &run, &out->rows, err);
    lk_statement_clear(&statement);
    return rc;
}

void lk_columns_clear(struct lk_columns *columns)
{
    sqlock_result_clear(&columns->rows);
}

bool lk_columns_are_there(const struct lk_columns *columns)
{
    return columns->rows.rows > 0;
}

/* The catalogue's names come in upper case. */
const char *lk_columns_type(const struct lk_columns *columns, const char *name)
{
    for (size_t row = 0; row < columns->rows.rows; row++) {
        const sqlock_value *cells =
            &columns->rows.cells[row * columns->rows.columns];

        if (cells[COL_NAME].type == SQLOCK_TEXT &&
            strcasecmp(cells[COL_NAME].text, name) == 0)
            return cells[COL_TYPE].type == SQLOCK_TEXT ? cells[COL_TYPE].text
                                                       : "";
    }
    return NULL;
}
