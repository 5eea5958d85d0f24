/*
 * columns.h - read the columns and indexes of a table from the catalogue
 */
#ifndef LK_STOCK_COLUMNS_H
#define LK_STOCK_COLUMNS_H

#include "db/db.h"
#include "db/table.h"

struct lk_columns {
    sqlock_result rows; /* of SQLOCK_SQL_DESCRIBE */
};

/* Read the columns of a table; a table that does not exist has none.  The
 * caller clears *out, also after a failure. */
int lk_columns_read(struct lk_columns *out, struct lk_db *db,
                    const struct lk_table *table, int64_t deadline_ns,
                    sqlock_error *err);
void lk_columns_clear(struct lk_columns *columns);

/* Set *out to whether an index of the table begins with CREATED_AT. */
int lk_columns_have_age_index(bool *out, struct lk_db *db,
                              const struct lk_table *table, int64_t deadline_ns,
                              sqlock_error *err);

/* Return whether the table exists. */
bool lk_columns_are_there(const struct lk_columns *columns);

/* Return the type of a column in lower case, which is valid until the columns
 * are cleared; NULL: there is no such column. */
const char *lk_columns_type(const struct lk_columns *columns, const char *name);

/* Return the collation, or type, by which texts of other bytes may be equal in
 * the column, valid as lk_columns_type(); NULL: there is none. */
const char *lk_columns_loose(const struct lk_columns *columns,
                             const char *name);

#endif
