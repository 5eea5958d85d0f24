/*
 * dialect.c - SQLite's SQL (sql/sqlite), and what the columns of the lock table
 * must be
 */
#include "drivers/sqlite/sqlite.h"

/* The build makes these of sql/sqlite. */
extern const struct lk_sql lk_sql_sqlite_statements[];
extern const char lk_sql_sqlite_schema[];
extern const char lk_sql_sqlite_doctor[];
extern const char lk_sql_sqlite_once[];
extern const char lk_sql_sqlite_stock[];
extern const char lk_sql_sqlite_schema_spring7[];
extern const char lk_sql_sqlite_schema_spring6[];

/* A column may have any type's name in SQLite, so the names that Spring's and
 * our own schemas for other databases use for text are accepted, too.  Times
 * must be integers: the name TIMESTAMP does not say what a column holds. */
#define TEXT_TYPES "text|char(*)|varchar(*)|character(*)|nvarchar(*)"
#define INTEGER_TYPES "integer|bigint|int|int8"

static const sqlock_column columns[] = {
    {"LOCK_KEY", TEXT_TYPES},
    {"REGION", TEXT_TYPES},
    {"CLIENT_ID", TEXT_TYPES},
    {"CREATED_DATE", INTEGER_TYPES},
    {"EXPIRED_AFTER", INTEGER_TYPES},
    {"FENCE", INTEGER_TYPES},
    {"LOCK_NAME", TEXT_TYPES},
    {"HOLDER", TEXT_TYPES},
    {"QUEUE", TEXT_TYPES},
    {"SHARERS", TEXT_TYPES},
    {"LEADER", TEXT_TYPES},
    {NULL, NULL},
};

const sqlock_dialect lk_dialect_sqlite = {
    .placeholder = SQLOCK_PLACEHOLDER_QUESTION,
    .quote = '"',
    .strict_quote = '`', /* "x" is the text x where there is no column x */
    .folds_to_lower = false,
    .ignores_case = true,
    .identifier_max = 200,
    .columns = columns,
    .schema =
        {
            [SQLOCK_LAYOUT_SQLOCK] = lk_sql_sqlite_schema,
            [SQLOCK_LAYOUT_SPRING7] = lk_sql_sqlite_schema_spring7,
            [SQLOCK_LAYOUT_SPRING6] = lk_sql_sqlite_schema_spring6,
            [SQLOCK_SCHEMA_DONE] = lk_sql_sqlite_once,
            [SQLOCK_SCHEMA_STOCK] = lk_sql_sqlite_stock,
        },
    .statements = lk_sql_sqlite_statements,
    .doctor = lk_sql_sqlite_doctor,
};
