/*
 * dialect.c - PostgreSQL's SQL (sql/postgres), and what the columns of the lock
 * table must be
 */
#include "drivers/postgres/session.h"

/* The build makes these of sql/postgres. */
extern const struct lk_sql lk_sql_postgres_statements[];
extern const char lk_sql_postgres_schema[];
extern const char lk_sql_postgres_doctor[];
extern const char lk_sql_postgres_once[];
extern const char lk_sql_postgres_stock[];
extern const char lk_sql_postgres_schema_spring7[];
extern const char lk_sql_postgres_schema_spring6[];

/* CHAR(36) in our scripts; a table made by hand may have VARCHAR or TEXT. */
#define KEY_TYPES "character(36)|character varying|character varying(*)|text"
#define NAME_TYPES "character(*)|character varying|character varying(*)|text"
/* Of any length. */
#define LONG_TYPES "character varying|text"
/* With microseconds, and no time zone: the session's would be applied. */
#define TIME_TYPES "timestamp without time zone|timestamp(6) without time zone"

static const sqlock_column columns[] = {
    {"LOCK_KEY", KEY_TYPES},       {"REGION", NAME_TYPES},
    {"CLIENT_ID", KEY_TYPES},      {"CREATED_DATE", TIME_TYPES},
    {"EXPIRED_AFTER", TIME_TYPES}, {"FENCE", "bigint"},
    {"LOCK_NAME", NAME_TYPES},     {"HOLDER", NAME_TYPES},
    {"QUEUE", LONG_TYPES},         {"SHARERS", LONG_TYPES},
    {"LEADER", LONG_TYPES},        {NULL, NULL},
};

const sqlock_dialect lk_pg_dialect = {
    .placeholder = SQLOCK_PLACEHOLDER_DOLLAR,
    .quote = '"',
    .strict_quote = '"',
    .folds_to_lower = true,
    .ignores_case = false,
    .identifier_max = 63,
    .columns = columns,
    .schema =
        {
            [SQLOCK_LAYOUT_SQLOCK] = lk_sql_postgres_schema,
            [SQLOCK_LAYOUT_SPRING7] = lk_sql_postgres_schema_spring7,
            [SQLOCK_LAYOUT_SPRING6] = lk_sql_postgres_schema_spring6,
            [SQLOCK_SCHEMA_DONE] = lk_sql_postgres_once,
            [SQLOCK_SCHEMA_STOCK] = lk_sql_postgres_stock,
        },
    .statements = lk_sql_postgres_statements,
    .doctor = lk_sql_postgres_doctor,
    .session = "SELECT pg_backend_pid()::bigint",
    .compare_bytes = "ALTER COLUMN {column} TYPE {type} COLLATE \"C\"",
};
