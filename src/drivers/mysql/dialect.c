/*
 * dialect.c - the SQL of MySQL and MariaDB (sql/mysql), and what the columns of
 * the lock table must be
 */
#include "drivers/mysql/dialect.h"

/* The build makes these of sql/mysql. */
extern const struct lk_sql lk_sql_mysql_statements[];
extern const char lk_sql_mysql_schema[];
extern const char lk_sql_mysql_doctor[];
extern const char lk_sql_mysql_once[];
extern const char lk_sql_mysql_stock[];
extern const char lk_sql_mysql_schema_spring7[];
extern const char lk_sql_mysql_schema_spring6[];

/* clang-format off */
/* Texts of at least 36, 100 and 255 characters. */
#define CLIENT_TYPES                                                          \
    "char(36)|varchar(3[6-9])|varchar([4-9][0-9])|varchar([1-9][0-9][0-9]*)"
#define REGION_TYPES "char(1[0-9][0-9])|char(2[0-9][0-9])|"                   \
    "varchar([1-9][0-9][0-9]*)"
#define TEXT_TYPES                                                            \
    "varchar(25[5-9])|varchar(2[6-9][0-9])|varchar([3-9][0-9][0-9])|"         \
    "varchar([1-9][0-9][0-9][0-9]*)|text|mediumtext|longtext"
/* clang-format on */
/* Longer than any number of waiters needs. */
#define LONG_TYPES "mediumtext|longtext"

static const sqlock_column columns[] = {
    {"LOCK_KEY", CLIENT_TYPES},
    {"REGION", REGION_TYPES},
    {"CLIENT_ID", CLIENT_TYPES},
    {"CREATED_DATE", "datetime|datetime([1-6])"},
    {"EXPIRED_AFTER", "datetime|datetime([1-6])"},
    {"FENCE", "bigint|bigint([0-9]*[0-9])"},
    {"LOCK_NAME", TEXT_TYPES},
    {"HOLDER", TEXT_TYPES},
    {"QUEUE", LONG_TYPES},
    {"SHARERS", LONG_TYPES},
    {"LEADER", LONG_TYPES},
    {NULL, NULL},
};

const sqlock_dialect lk_mysql_dialect = {
    .placeholder = SQLOCK_PLACEHOLDER_QUESTION,
    .quote = '`',
    .strict_quote = '`',
    .folds_to_lower = false,
    .ignores_case = true,
    .identifier_max = 64,
    .columns = columns,
    .schema =
        {
            [SQLOCK_LAYOUT_SQLOCK] = lk_sql_mysql_schema,
            [SQLOCK_LAYOUT_SPRING7] = lk_sql_mysql_schema_spring7,
            [SQLOCK_LAYOUT_SPRING6] = lk_sql_mysql_schema_spring6,
            [SQLOCK_SCHEMA_DONE] = lk_sql_mysql_once,
            [SQLOCK_SCHEMA_STOCK] = lk_sql_mysql_stock,
        },
    .statements = lk_sql_mysql_statements,
    .doctor = lk_sql_mysql_doctor,
    .session = "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    .compare_bytes = "MODIFY {column} {type} CHARACTER SET utf8mb4 COLLATE "
                     "utf8mb4_bin{null}",
};
