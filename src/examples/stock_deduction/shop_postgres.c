/*
 * shop_postgres.c - the demo's tables in PostgreSQL
 *
 * Statements are run in autocommit, so that nothing but the caller's own lock
 * stands between a read and the write that follows it.
 */
#include "shop.h"

#ifdef SQLOCK_WITH_POSTGRES

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (INT64_MAX / 16)

/* DROP TABLE IF EXISTS has something to say that nobody wants to hear. */
static void ignore_notice(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static int postgres_open(struct shop *shop, const char *url)
{
    const char *names[] = {"dbname", "password", NULL};
    const char *values[] = {NULL, NULL, NULL};
    char *variable = NULL;
    char *rest = shop_url_take(url, "password_env", &variable);
    PGconn *connection;
    int version;

    /* The URL goes to libpq as it is, but for sqlock's own parameter. */
    values[0] = rest;
    if (variable != NULL)
        values[1] = getenv(variable);
    connection = PQconnectdbParams(names, values, 1);
    free(variable);
    free(rest);
    shop->handle = connection;
    if (PQstatus(connection) != CONNECTION_OK)
        return shop_fail(shop, "PostgreSQL: %s", PQerrorMessage(connection));
    (void)PQsetNoticeProcessor(connection, ignore_notice, NULL);
    version = PQserverVersion(connection);
    (void)snprintf(shop->server, sizeof shop->server, "PostgreSQL %d.%d",
                   version / 10000, version % 10000);
    return 0;
}

static void postgres_close(struct shop *shop)
{
    PQfinish(shop->handle);
    shop->handle = NULL;
}

/* Take over @p result, which is to have the status @p expected. */
static int check(struct shop *shop, PGresult *result, ExecStatusType expected)
{
    int rc = 0;

    if (PQresultStatus(result) != expected)
        rc = shop_fail(shop, "PostgreSQL: %s", PQerrorMessage(shop->handle));
    PQclear(result);
    return rc;
}

static int postgres_run(struct shop *shop, const char *sql)
{
    return check(shop, PQexec(shop->handle, sql), PGRES_COMMAND_OK);
}

static int postgres_read(struct shop *shop, int64_t item, struct stock *out)
{
    char number[24];
    const char *values[] = {number};
    char sql[160];
    PGresult *result;

    (void)snprintf(number, sizeof number, "%" PRId64, item);
    (void)snprintf(sql, sizeof sql,
                   "SELECT quantity, sales FROM %s WHERE item = $1",
                   shop->table);
    result = PQexecParams(shop->handle, sql, 1, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_TUPLES_OK &&
        (PQntuples(result) != 1 ||
         shop_number(&out->quantity, PQgetvalue(result, 0, 0), 0, MOST) < 0 ||
         shop_number(&out->sales, PQgetvalue(result, 0, 1), 0, MOST) < 0)) {
        PQclear(result);
        return shop_fail(shop, "PostgreSQL: no such item");
    }
    return check(shop, result, PGRES_TUPLES_OK);
}

static int postgres_write(struct shop *shop, int64_t item,
                          const struct stock *stock)
{
    char numbers[3][24];
    const char *values[] = {numbers[0], numbers[1], numbers[2]};
    char sql[160];
    PGresult *result;

    (void)snprintf(numbers[0], sizeof numbers[0], "%" PRId64, stock->quantity);
    (void)snprintf(numbers[1], sizeof numbers[1], "%" PRId64, stock->sales);
    (void)snprintf(numbers[2], sizeof numbers[2], "%" PRId64, item);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE %s SET quantity = $1, sales = $2 WHERE item = $3",
                   shop->table);
    result = PQexecParams(shop->handle, sql, 3, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_COMMAND_OK &&
        strcmp(PQcmdTuples(result), "1") != 0) {
        PQclear(result);
        return shop_fail(shop, "PostgreSQL: no row was changed");
    }
    return check(shop, result, PGRES_COMMAND_OK);
}

const struct shop_library shop_postgres = {
    .scheme = "postgres" /* postgres: and postgresql: */,
    .open = postgres_open,
    .close = postgres_close,
    .run = postgres_run,
    .read = postgres_read,
    .write = postgres_write,
};

#else
typedef int shop_postgres_left_out; /* a file must not be empty in ISO C */
#endif
