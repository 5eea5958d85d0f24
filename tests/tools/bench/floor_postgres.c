/*
 * floor_postgres.c - the floor driver of PostgreSQL, with libpq's blocking
 * calls
 *
 * It uses libpq as simply as possible: connect, prepare, execute prepared.  It
 * has no deadlines and no session settings, and prints no notices.
 */
#include "floor.h"

#ifdef SQLOCK_WITH_POSTGRES

#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/url.h"

static const char *const names[FLOOR_STATEMENTS] = {"u", "s", "d", "i"};

static int fail(struct bench_failure *failure, const char *what,
                const PGconn *conn)
{
    return bench_fail(failure, "libpq, %s: %s", what, PQerrorMessage(conn));
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

static int open_postgres(void **client, const char *text,
                         struct bench_failure *failure)
{
    const char *option[LK_URL_PARAMETERS_MAX + 6] = {"user", "password",
                                                     "dbname", "host", "port"};
    const char *values[LK_URL_PARAMETERS_MAX + 6] = {NULL};
    struct lk_url url;
    sqlock_error err;
    size_t used = 5;
    int rc = 0;

    if (lk_url_parse(&url, text, &err) != 0 ||
        lk_url_password(&url, &values[1], &err) != 0) {
        lk_url_clear(&url);
        return bench_fail(failure, "%s", err.message);
    }
    (void)lk_url_take(&url, "password_env");
    values[0] = url.user;
    values[2] = url.path[0] == '/' ? url.path + 1 : NULL;
    values[3] = url.host;
    values[4] = url.port;
    for (size_t i = 0; i < url.count; i++) {
        option[used] = url.parameters[i].name;
        values[used++] = url.parameters[i].value;
    }
    *client = PQconnectdbParams(option, values, 0);
    if (PQstatus(*client) != CONNECTION_OK)
        rc = fail(failure, "connect", *client);
    (void)PQsetNoticeReceiver(*client, ignore_notice, NULL);
    lk_url_clear(&url);
    return rc;
}

static void close_postgres(void *client)
{
    PQfinish(client);
}

static void *native_postgres(void *client)
{
    return client;
}

/* Free the result, and fail unless it is one of success and, if is_one, about
 * one row. */
static int check(PGconn *conn, PGresult *result, bool is_one, const char *what,
                 struct bench_failure *failure)
{
    ExecStatusType status = PQresultStatus(result);
    int rc = 0;

    if ((status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) ||
        (is_one && strcmp(PQcmdTuples(result), "1") != 0))
        rc = fail(failure, what, conn);
    PQclear(result);
    return rc;
}

static int prepare_postgres(void *client, enum floor_statement which,
                            const char *text, struct bench_failure *failure)
{
    return check(client, PQprepare(client, names[which], text, 0, NULL), false,
                 text, failure);
}

static int execute_postgres(void *client, enum floor_statement which,
                            const char *const *values, unsigned count,
                            struct bench_failure *failure)
{
    return check(
        client,
        PQexecPrepared(client, names[which], (int)count, values, NULL, NULL, 0),
        true, "execute", failure);
}

static int run_postgres(void *client, const char *text,
                        struct bench_failure *failure)
{
    return check(client, PQexec(client, text), false, text, failure);
}

static int row_postgres(void *client, const char *text,
                        char cells[FLOOR_CELLS][FLOOR_CELL_SIZE],
                        struct bench_failure *failure)
{
    PGresult *result = PQexec(client, text);
    int count = PQnfields(result);

    for (int i = 0; i < count; i++)
        (void)snprintf(cells[i], FLOOR_CELL_SIZE, "%s",
                       PQntuples(result) > 0 ? PQgetvalue(result, 0, i) : "");
    return check(client, result, false, text, failure) == 0 ? count : -1;
}

const struct floor_driver floor_postgres = {
    FLOOR_MEMBERS(postgres),
    .begin = "BEGIN",
    .locking = " FOR UPDATE",
    .insert = "INSERT",
    .times = "'2000-01-01', '2000-01-02'",
    .unless = " ON CONFLICT DO NOTHING",
    .places = {"$1", "$2"},
    .describe =
        "SELECT 'PostgreSQL ' || current_setting('server_version'), "
        "'fsync=' || current_setting('fsync') || ' synchronous_commit=' || "
        "current_setting('synchronous_commit'), "
        "(current_setting('fsync') = 'on' AND "
        "current_setting('synchronous_commit') <> 'off')::int",
    .written = "SELECT pg_current_wal_insert_lsn() - '0/0'",
};

#endif /* SQLOCK_WITH_POSTGRES */
