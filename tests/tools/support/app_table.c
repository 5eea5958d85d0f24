/*
 * app_table.c - see app_table.h
 */
#include "app_table.h"

#include <stdio.h>
#include <unistd.h>

const char *stock_name(const struct fixture *fixture)
{
    static char name[64];

    (void)snprintf(name, sizeof name, "tx_stock_%ld_%d", (long)getpid(),
                   (int)fixture->layout);
    return name;
}

void stock_create(struct fixture *fixture)
{
    const char *moment = fixture->database->bit == ON_POSTGRES ? "timestamptz"
                         : fixture->database->bit == ON_MYSQL  ? "DATETIME(6)"
                                                               : "TEXT";
    const char *tail =
        fixture->database->bit == ON_MYSQL ? " ENGINE=InnoDB" : "";

    (void)sql_try(&fixture->sql, NULL, "DROP TABLE %s", stock_name(fixture));
    (void)sql_run(&fixture->sql,
                  "CREATE TABLE %s (id INTEGER PRIMARY KEY, a BIGINT, "
                  "version BIGINT, state VARCHAR(20), moment %s, "
                  "fence BIGINT DEFAULT 0 NOT NULL, owner VARCHAR(255), "
                  "narrow SMALLINT)%s",
                  stock_name(fixture), moment, tail);
}

void stock_drop(struct fixture *fixture)
{
    (void)sql_try(&fixture->sql, NULL, "DROP TABLE %s", stock_name(fixture));
}

void stock_fill(struct fixture *fixture)
{
    (void)sql_run(&fixture->sql, "DELETE FROM %s", stock_name(fixture));
    for (int id = 1; id <= 4; id++)
        (void)sql_run(&fixture->sql,
                      "INSERT INTO %s (id, a, version, state, moment, narrow) "
                      "VALUES (%d, 100, 1, 'new', '2024-05-06 07:08:09', 1)",
                      stock_name(fixture), id);
}

bool stock_is_untouched(struct fixture *fixture)
{
    const char *name = stock_name(fixture);

    return sql_integer(&fixture->sql, "SELECT count(*) FROM %s", name) == 4 &&
           sql_integer(&fixture->sql,
                       "SELECT count(*) FROM %s WHERE a = 100 AND version = 1 "
                       "AND state = 'new' AND fence = 0",
                       name) == 4;
}

long long stock_value(struct fixture *fixture, int id)
{
    return sql_integer(&fixture->sql, "SELECT a FROM %s WHERE id = %d",
                       stock_name(fixture), id);
}

sqlock_table stock_table(struct fixture *fixture)
{
    sqlock_table table = SQLOCK_TABLE_INIT;

    table.name = stock_name(fixture);
    table.key_column = "id";
    table.version_column = "version";
    table.fence_column = "fence";
    table.fence_owner_column = "owner";
    return table;
}
