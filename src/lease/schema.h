/*
 * schema.h - the SQL that creates sqlock's tables: write it, and run it
 *
 * These calls take a URL, because a registry cannot be opened before its table
 * exists.
 */
#ifndef LK_SCHEMA_H
#define LK_SCHEMA_H

#include "db/db.h"
#include "db/table.h"
#include "lease/options.h"

/* The database in which tables are created. */
struct lk_site {
    sqlock_options options;
    struct lk_table table; /* of locks: its prefix is that of all */
    struct lk_db db;
};

/* Write the SQL of a schema, an index into sqlock_dialect.schema, for the
 * database of that URL.  Return 0, EINVAL, ENOTSUP or ENOMEM. */
int lk_schema_text(char **text, const char *url, const sqlock_options *options,
                   int schema, sqlock_error *err);

/* Check options and URL, and initialize *site, without connecting yet;
 * may_create as in sqlock_connect.  After a success call lk_db_clear(). */
int lk_site_open(struct lk_site *site, const char *url,
                 const sqlock_options *options, bool may_create,
                 sqlock_error *err);

/* Run statements that create tables or indexes, written for INT_.  With `again`
 * EBUSY is tried again: another session is creating the same table, which then
 * exists, or else the next attempt creates it.  Return as
 * lk_db_run_script(). */
int lk_schema_run(struct lk_site *site, const char *schema, bool again,
                  sqlock_error *err);

/* Create the tables of a schema that are missing; that of locks has layouts,
 * and calls of its own.  Each table, which may have been there before, must be
 * of sqlock's, as it has the column of that index, and of a kind that can hold
 * its rows; `command` as lk_columns_check_kind().  Return 0, ESCHEMA; ECONFLICT
 * if other sessions may find one that this session does not; or as
 * lk_schema_run(). */
int lk_schema_create(struct lk_site *site, int schema,
                     const struct lk_table *tables, const char *const *columns,
                     size_t count, const char *command, sqlock_error *err);

#endif
