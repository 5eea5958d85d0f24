/*
 * columns.c - read the columns of a table from the catalogue
 */
#include "db/columns.h"

#include <strings.h>

#include "base/error.h"

int lk_columns_read(sqlock_result *out, struct lk_db *db,
                    const struct lk_table *table, int64_t deadline_ns,
                    sqlock_error *err)
{
    int rc = lk_db_query_catalogue(db, SQLOCK_SQL_DESCRIBE, table, deadline_ns,
                                   out, err);

    if (rc == 0 && out->rows > 0 && out->columns < LK_COLUMN_CELLS)
        rc = lk_error(err, SQLOCK_EDATABASE,
                      "the database's catalogue returned an unexpected result");
    return rc;
}

bool lk_columns_place(sqlock_result *out, struct lk_db *db,
                      const struct lk_table *table, int64_t deadline_ns)
{
    return lk_db_query_catalogue(db, SQLOCK_SQL_PLACE, table, deadline_ns, out,
                                 NULL) == 0 &&
           out->rows == 1 && out->columns == 2;
}

int lk_columns_check_others(struct lk_db *db, const struct lk_table *table,
                            int64_t deadline_ns, int code, sqlock_error *err)
{
    sqlock_result place = {0};
    const char *others = NULL;
    int rc = 0;

    if (lk_columns_place(&place, db, table, deadline_ns))
        others = lk_cell_text(&place.cells[1]);
    if (others != NULL)
        rc = lk_error(err, code,
                      "this session finds no table %s, but there is %s, which "
                      "others may find by the same URL: give all one table "
                      "prefix, spelt as the table is, on PostgreSQL with its "
                      "schema, such as app.INT_",
                      table->plain, others);
    sqlock_result_clear(&place);
    return rc;
}

int lk_columns_missing(struct lk_db *db, const struct lk_table *table,
                       int64_t deadline_ns, const char *command,
                       sqlock_error *err)
{
    int rc =
        lk_columns_check_others(db, table, deadline_ns, SQLOCK_ESCHEMA, err);

    return rc < 0 ? rc
                  : lk_error(err, SQLOCK_ESCHEMA,
                             "there is no table %s in this database: create it "
                             "with %s",
                             table->plain, command);
}

int lk_columns_check_kind(const sqlock_result *columns,
                          const struct lk_table *table, const char *command,
                          sqlock_error *err)
{
    const sqlock_value *unfit =
        columns->rows > 0 ? &columns->cells[LK_COLUMN_UNFIT] : NULL;

    if (unfit == NULL || unfit->type != SQLOCK_TEXT)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "%s is %s: rename it, and let %s create an ordinary "
                    "durable table",
                    table->plain, unfit->text, command);
}

const sqlock_value *lk_column(const sqlock_result *columns, const char *name)
{
    for (size_t row = 0; row < columns->rows; row++) {
        const sqlock_value *cells = &columns->cells[row * columns->columns];

        if (cells[LK_COLUMN_NAME].type == SQLOCK_TEXT &&
            strcasecmp(cells[LK_COLUMN_NAME].text, name) == 0)
            return cells;
    }
    return NULL;
}

const char *lk_column_text(const sqlock_result *columns, const char *name,
                           int cell)
{
    const sqlock_value *cells = lk_column(columns, name);

    if (cells == NULL || cells[cell].type == SQLOCK_NULL)
        return NULL;
    return cells[cell].type == SQLOCK_TEXT ? cells[cell].text : "";
}

int lk_columns_have_age_index(bool *out, struct lk_db *db,
                              const struct lk_table *table, int64_t deadline_ns,
                              sqlock_error *err)
{
    sqlock_result rows = {0};
    int rc = lk_db_query_catalogue(db, SQLOCK_SQL_HAS_AGE_INDEX, table,
                                   deadline_ns, &rows, err);

    *out = rows.rows > 0;
    sqlock_result_clear(&rows);
    return rc;
}
