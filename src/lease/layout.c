/*
 * layout.c - check the lock table in the catalogue before the first lock is
 * taken
 *
 * A table without its primary key grants a lock twice (F37), one that is not
 * durable forgets grants (F61), and one with other columns is not a lock table.
 */
#include "lease/layout.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "db/columns.h"

static int refuse_read_only(const struct lk_db *db, sqlock_error *err)
{
    if (db->driver->has_one_writer)
        return lk_error(err, SQLOCK_EREADONLY,
                        "this user may not write to the database's file: give "
                        "it the right to write to the file and its directory");
    return lk_error(err, SQLOCK_EREADONLY,
                    "the server is read-only (a replica?): connect to the one "
                    "that takes writes");
}

/* Return ENOTFOUND for a table that does not exist, unless the server is
 * read-only, where it may be that of a replica that lags. */
static int find_server(struct lk_db *db, const struct lk_table *table,
                       int64_t deadline_ns, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc;

    rc = lk_db_query_catalogue(db, SQLOCK_SQL_SERVER, table, deadline_ns,
                               &result, err);
    if (rc == 0 && (result.rows != 1 || result.columns < 3))
        rc = lk_error(err, SQLOCK_EDATABASE,
                      "the server's answer to the query for its version and "
                      "clock is incomplete");
    if (rc == 0)
        rc = result.cells[0].integer != 0 ? refuse_read_only(db, err)
                                          : SQLOCK_ENOTFOUND;
    sqlock_result_clear(&result);
    return rc;
}

/* Check that this login may read the columns. */
static int check_access(const sqlock_result *columns,
                        const struct lk_table *table,
                        const sqlock_dialect *dialect, sqlock_error *err)
{
    for (const sqlock_column *wanted = dialect->columns; wanted->name != NULL;
         wanted++) {
        const sqlock_value *cells = lk_column(columns, wanted->name);

        if (cells != NULL && cells[LK_COLUMN_RIGHTS].integer == 0)
            return lk_error(err, SQLOCK_EACCESS,
                            "this login may not read %s.%s: grant it what "
                            "grants-application.sql grants",
                            table->plain, wanted->name);
    }
    return 0;
}

static int check_types(const sqlock_result *columns,
                       const struct lk_table *table,
                       const sqlock_dialect *dialect, sqlock_error *err)
{
    for (const sqlock_column *wanted = dialect->columns; wanted->name != NULL;
         wanted++) {
        const char *type =
            lk_column_text(columns, wanted->name, LK_COLUMN_TYPE);

        if (type != NULL && !lk_text_matches(type, wanted->types))
            return lk_error(err, SQLOCK_ESCHEMA,
                            "%s.%s has the wrong type %s: compare the table "
                            "with `sqlock init --print`",
                            table->plain, wanted->name, type);
    }
    return 0;
}

/* Check that the primary key is LOCK_KEY and REGION, in either order. */
static int check_key(const sqlock_result *columns, const struct lk_table *table,
                     sqlock_error *err)
{
    size_t in_key = 0;
    size_t wanted = 0;

    for (size_t row = 0; row < columns->rows; row++) {
        const sqlock_value *cells = &columns->cells[row * columns->columns];

        if (cells[LK_COLUMN_PLACE].integer == 0)
            continue;
        in_key++;
        if (strcmp(cells[LK_COLUMN_NAME].text, "LOCK_KEY") == 0 ||
            strcmp(cells[LK_COLUMN_NAME].text, "REGION") == 0)
            wanted++;
    }
    if (in_key != 2 || wanted != 2)
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s has no primary key (LOCK_KEY, REGION), so it would "
                        "let two owners in: ALTER TABLE %s ADD PRIMARY KEY "
                        "(LOCK_KEY, REGION)",
                        table->plain, table->plain);
    return 0;
}

static int find_layout(const sqlock_result *columns,
                       const struct lk_table *table, sqlock_layout *out,
                       sqlock_error *err)
{
    static const char *const common[] = {"LOCK_KEY", "REGION", "CLIENT_ID",
                                         "CREATED_DATE"};
    static const char *const ours[] = {"FENCE", "LOCK_NAME", "HOLDER",
                                       "QUEUE", "SHARERS",   "LEADER"};
    bool has_expiry = lk_column(columns, "EXPIRED_AFTER") != NULL;
    size_t found = 0;

    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++)
        if (lk_column(columns, common[i]) == NULL)
            return lk_error(err, SQLOCK_ESCHEMA,
                            "%s has no column %s: compare the table with "
                            "`sqlock init --print`",
                            table->plain, common[i]);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        found += lk_column(columns, ours[i]) != NULL;
    if (found == 3 && lk_column(columns, "HOLDER") != NULL)
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s is of an older version: run upgrade-queue.sql, "
                        "which adds the columns QUEUE, SHARERS and LEADER",
                        table->plain);
    if (found == 5 && lk_column(columns, "LEADER") == NULL)
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s is of an older version: run upgrade-leader.sql, "
                        "which adds the column LEADER",
                        table->plain);
    if (found != 0 && (found != 6 || !has_expiry))
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s has only some of the columns EXPIRED_AFTER, FENCE, "
                        "LOCK_NAME, HOLDER, QUEUE, SHARERS, LEADER: compare "
                        "the table with `sqlock init --print`",
                        table->plain);
    if (found == 6)
        *out = SQLOCK_LAYOUT_SQLOCK;
    else
        *out = has_expiry ? SQLOCK_LAYOUT_SPRING7 : SQLOCK_LAYOUT_SPRING6;
    return 0;
}

/* Refuse a table in which an end of a lease may be missing: an upgrade from
 * four columns is not complete, and programs that know only these see no lease
 * of others. */
static int check_expiry(const sqlock_result *columns,
                        const struct lk_table *table, sqlock_error *err)
{
    const sqlock_value *expiry = lk_column(columns, "EXPIRED_AFTER");

    if (expiry == NULL || expiry[LK_COLUMN_NULLABLE].integer == 0)
        return 0;
    return lk_error(err, SQLOCK_ESCHEMA,
                    "%s.EXPIRED_AFTER allows NULL: an upgrade of the table is "
                    "not complete: run its script again",
                    table->plain);
}

static int judge(const sqlock_result *columns, const struct lk_table *table,
                 const sqlock_dialect *dialect, sqlock_layout *out,
                 sqlock_error *err)
{
    const sqlock_value *client;
    int rc;

    rc = lk_columns_check_kind(columns, table, "`sqlock init`", err);
    if (rc < 0)
        return rc;
    rc = find_layout(columns, table, out, err);
    if (rc < 0)
        return rc;
    client = lk_column(columns, "CLIENT_ID");
    if (*out == SQLOCK_LAYOUT_SQLOCK && client[LK_COLUMN_NULLABLE].integer == 0)
        return lk_error(err, SQLOCK_ESCHEMA, "%s.CLIENT_ID must allow NULL",
                        table->plain);
    rc = check_expiry(columns, table, err);
    if (rc < 0)
        return rc;
    rc = check_types(columns, table, dialect, err);
    if (rc == 0)
        rc = check_key(columns, table, err);
    return rc < 0 ? rc : check_access(columns, table, dialect, err);
}

int lk_layout_detect(struct lk_db *db, struct lk_table *table,
                     int64_t deadline_ns, sqlock_layout *out, sqlock_error *err)
{
    sqlock_result columns = {0};
    int rc;

    rc = lk_columns_read(&columns, db, table, deadline_ns, err);
    if (rc == 0 && columns.rows == 0)
        rc = find_server(db, table, deadline_ns, err);
    else if (rc == 0 && columns.cells[LK_COLUMN_READ_ONLY].integer != 0)
        rc = refuse_read_only(db, err);
    if (rc == 0)
        rc = judge(&columns, table, db->driver->dialect, out, err);
    if (rc == 0 && columns.cells[LK_COLUMN_SCHEMA].type == SQLOCK_TEXT)
        lk_table_qualify(table, columns.cells[LK_COLUMN_SCHEMA].text,
                         db->driver->dialect);
    if (rc == 0 && columns.columns > LK_COLUMN_BESIDE)
        table->beside = columns.cells[LK_COLUMN_BESIDE].integer;
    sqlock_result_clear(&columns);
    return rc;
}

int lk_layout_require(struct lk_db *db, struct lk_table *table,
                      int64_t deadline_ns, sqlock_layout *out,
                      sqlock_error *err)
{
    int rc = lk_layout_detect(db, table, deadline_ns, out, err);

    return rc != SQLOCK_ENOTFOUND ? rc
                                  : lk_columns_missing(db, table, deadline_ns,
                                                       "`sqlock init`", err);
}
