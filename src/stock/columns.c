/*
 * columns.c - read the columns of a stock table from the catalogue
 */
#include "stock/columns.h"

#include <string.h>
#include <strings.h>

#include "base/error.h"

enum { COL_NAME, COL_TYPE, COL_LOOSE = 5 };

int lk_columns_read(struct lk_columns *out, struct lk_db *db,
                    const struct lk_table *table, int64_t deadline_ns,
                    sqlock_error *err)
{
    memset(out, 0, sizeof *out);
    return lk_db_query_catalogue(
        db, &db->driver->dialect->statements[SQLOCK_SQL_DESCRIBE], table,
        deadline_ns, &out->rows, err);
}

int lk_columns_have_age_index(bool *out, struct lk_db *db,
                              const struct lk_table *table, int64_t deadline_ns,
                              sqlock_error *err)
{
    const sqlock_template template = {.text = db->driver->stock->has_age_index};
    sqlock_result rows = {0};
    int rc =
        lk_db_query_catalogue(db, &template, table, deadline_ns, &rows, err);

    *out = rows.rows > 0;
    sqlock_result_clear(&rows);
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

/* Return the cells of a column; NULL: there is no such column.  The case of
 * `name` is ignored: DESCRIBE returns names in upper case. */
static const sqlock_value *find(const struct lk_columns *columns,
                                const char *name)
{
    for (size_t row = 0; row < columns->rows.rows; row++) {
        const sqlock_value *cells =
            &columns->rows.cells[row * columns->rows.columns];

        if (cells[COL_NAME].type == SQLOCK_TEXT &&
            strcasecmp(cells[COL_NAME].text, name) == 0)
            return cells;
    }
    return NULL;
}

const char *lk_columns_type(const struct lk_columns *columns, const char *name)
{
    const sqlock_value *cells = find(columns, name);

    if (cells == NULL)
        return NULL;
    return cells[COL_TYPE].type == SQLOCK_TEXT ? cells[COL_TYPE].text : "";
}

const char *lk_columns_loose(const struct lk_columns *columns, const char *name)
{
    const sqlock_value *cells = find(columns, name);

    if (cells == NULL || columns->rows.columns <= COL_LOOSE ||
        cells[COL_LOOSE].type != SQLOCK_TEXT)
        return NULL;
    return cells[COL_LOOSE].text;
}
