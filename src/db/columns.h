/*
 * columns.h - read the columns of a table from the catalogue
 */
#ifndef LK_COLUMNS_H
#define LK_COLUMNS_H

#include "db/db.h"
#include "db/table.h"

/* The cells of a column, as SQLOCK_SQL_DESCRIBE returns them. */
enum {
    LK_COLUMN_NAME,     /* in upper case */
    LK_COLUMN_TYPE,     /* in lower case */
    LK_COLUMN_NULLABLE, /* 1 or 0 */
    LK_COLUMN_PLACE,    /* in the primary key; 0: it is not in it */
    LK_COLUMN_UNFIT,    /* what makes the table unfit for locks, or null */
    /* the collation or type by which texts of other bytes may be equal, or
     * null */
    LK_COLUMN_LOOSE,
    LK_COLUMN_SCHEMA,    /* in which the table was found */
    LK_COLUMN_READ_ONLY, /* 1: the server takes no writes; or 0 */
    /* of this login: 0: none; 1: to read it; 2: to change it, too */
    LK_COLUMN_RIGHTS,
    LK_COLUMN_CELLS,
    /* how far the table with "_SERVER" behind its name can be used; only where
     * the server may forget leases */
    LK_COLUMN_BESIDE = LK_COLUMN_CELLS
};

/* Read the columns of a table, a row each, into *out; a table that does not
 * exist has none.  The caller clears *out, also after a failure. */
int lk_columns_read(sqlock_result *out, struct lk_db *db,
                    const struct lk_table *table, int64_t deadline_ns,
                    sqlock_error *err);

/* Read where the table is, and which others another session may find in its
 * place, into *out, two cells (SQLOCK_SQL_PLACE).  The caller clears *out.
 * Return whether they are known. */
bool lk_columns_place(sqlock_result *out, struct lk_db *db,
                      const struct lk_table *table, int64_t deadline_ns);

/* Of a table that was not found: return that code, with an error, if there is
 * one of its name that other sessions may find; 0: there is none, or it is not
 * known. */
int lk_columns_check_others(struct lk_db *db, const struct lk_table *table,
                            int64_t deadline_ns, int code, sqlock_error *err);

/* Say that a table was not found, and which there is in its place, or else
 * which command creates it.  Return ESCHEMA. */
int lk_columns_missing(struct lk_db *db, const struct lk_table *table,
                       int64_t deadline_ns, const char *command,
                       sqlock_error *err);

/* Refuse a table of a kind that cannot hold what sqlock writes, with ESCHEMA
 * and a sentence that names the command, in ``, which creates one that can.
 * The kinds of each database stand in its SQLOCK_SQL_DESCRIBE. */
int lk_columns_check_kind(const sqlock_result *columns,
                          const struct lk_table *table, const char *command,
                          sqlock_error *err);

/* Return the cells of a column, whose name's case is ignored; NULL: there is no
 * such column. */
const sqlock_value *lk_column(const sqlock_result *columns, const char *name);

/* Return one of these cells as text, "" if it is none; NULL if it is null, or
 * there is no such column. */
const char *lk_column_text(const sqlock_result *columns, const char *name,
                           int cell);

/* Set *out to whether an index of the table begins with CREATED_AT. */
int lk_columns_have_age_index(bool *out, struct lk_db *db,
                              const struct lk_table *table, int64_t deadline_ns,
                              sqlock_error *err);

#endif
