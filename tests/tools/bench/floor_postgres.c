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
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/url.h"

struct connection {
    PGconn *conn;
    char key[37];
};

static int fail(struct bench_failure *failure, const char *what,
                const PGconn *conn)
{
    return bench_fail(failure, "libpq, %s: %s", what,
                      conn != NULL ? PQerrorMessage(conn) : "out of memory");
}

static PGconn *connect_to(const char *text, struct bench_failure *failure)
{
    const char *names[LK_URL_PARAMETERS_MAX + 6] = {"user", "password",
                                                    "dbname", "host", "port"};
    const char *values[LK_URL_PARAMETERS_MAX + 6] = {NULL};
    PGconn *conn = NULL;
    struct lk_url url;
    sqlock_error err;
    size_t used = 5;

    if (lk_url_parse(&url, text, &err) != 0 ||
        lk_url_password(&url, &values[1], &err) != 0) {
        (void)bench_fail(failure, "%s", err.message);
        lk_url_clear(&url);
        return NULL;
    }
    (void)lk_url_take(&url, "password_env");
    values[0] = url.user;
    values[2] = url.path[0] == '/' ? url.path + 1 : NULL;
    values[3] = url.host;
    values[4] = url.port;
    for (size_t i = 0; i < url.count; i++) {
        names[used] = url.parameters[i].name;
        values[used++] = url.parameters[i].value;
    }
    conn = PQconnectdbParams(names, values, 0);
    if (PQstatus(conn) != CONNECTION_OK) {
        (void)fail(failure, "connect", conn);
        PQfinish(conn);
        conn = NULL;
    }
    lk_url_clear(&url);
    return conn;
}

static void ignore_notice(void *context, const PGresult *result)
{
    (void)context;
    (void)result;
}

/* Free @p result.  Return 0 if its status was @p expected, or -1 with the
 * reason. */
static int check(PGconn *conn, PGresult *result, ExecStatusType expected,
                 const char *what, struct bench_failure *failure)
{
    int rc = 0;

    if (PQresultStatus(result) != expected)
        rc = fail(failure, what, conn);
    PQclear(result);
    return rc;
}

static int run(PGconn *conn, const char *text, struct bench_failure *failure)
{
    return check(conn, PQexec(conn, text), PGRES_COMMAND_OK, text, failure);
}

static int prepare(PGconn *conn, const char *name, const char *text,
                   struct bench_failure *failure)
{
    return check(conn, PQprepare(conn, name, text, 0, NULL), PGRES_COMMAND_OK,
                 text, failure);
}

static int open_postgres(void **out, const struct bench_target *target,
                         unsigned client, struct bench_failure *failure)
{
    struct connection *me = calloc(1, sizeof *me);
    char text[640];
    int rc;

    *out = me;
    if (me == NULL)
        return bench_fail(failure, "out of memory");
    (void)snprintf(me->key, sizeof me->key, "%036u", client);
    me->conn = connect_to(target->url, failure);
    if (me->conn == NULL)
        return -1;
    (void)PQsetNoticeReceiver(me->conn, ignore_notice, NULL);
    (void)snprintf(text, sizeof text,
                   "INSERT INTO %sLOCK (" FLOOR_COLUMNS
                   ") VALUES ('%s', " FLOOR_VALUES
                   ", '2000-01-01', '2000-01-02') "
                   "ON CONFLICT DO NOTHING",
                   target->floor_prefix, me->key);
    rc = run(me->conn, text, failure);
    if (rc != 0)
        return rc;
    (void)snprintf(text, sizeof text,
                   "UPDATE %sLOCK SET " FLOOR_UPDATE
                   " WHERE LOCK_KEY = $1 AND REGION = $2",
                   target->floor_prefix);
    return prepare(me->conn, "update_row", text, failure);
}

static void close_postgres(void *connection)
{
    struct connection *me = connection;

    if (me == NULL)
        return;
    PQfinish(me->conn);
    free(me);
}

static int update_postgres(void *connection, struct bench_failure *failure)
{
    struct connection *me = connection;
    const char *values[] = {me->key, FLOOR_REGION};
    PGresult *result;
    int rc = 0;

    result = PQexecPrepared(me->conn, "update_row", 2, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_COMMAND_OK ||
        strcmp(PQcmdTuples(result), "1") != 0)
        rc = fail(failure, "update", me->conn);
    PQclear(result);
    return rc;
}

static void *native_postgres(void *connection)
{
    struct connection *me = connection;

    return me->conn;
}

static int describe_postgres(void *connection, struct bench_server *server,
                             struct bench_failure *failure)
{
    struct connection *me = connection;
    PGresult *result;
    const char *fsync;
    const char *commit;

    result = PQexec(me->conn, "SELECT current_setting('server_version'), "
                              "current_setting('fsync'), "
                              "current_setting('synchronous_commit')");
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        PQclear(result);
        return fail(failure, "describe", me->conn);
    }
    fsync = PQgetvalue(result, 0, 1);
    commit = PQgetvalue(result, 0, 2);
    (void)snprintf(server->version, sizeof server->version, "PostgreSQL %s",
                   PQgetvalue(result, 0, 0));
    (void)snprintf(server->settings, sizeof server->settings,
                   "fsync=%s synchronous_commit=%s", fsync, commit);
    server->is_durable = strcmp(fsync, "on") == 0 && strcmp(commit, "off") != 0;
    PQclear(result);
    return 0;
}

static int run_postgres(void *connection, const char *text,
                        struct bench_failure *failure)
{
    struct connection *me = connection;

    return run(me->conn, text, failure);
}

static int number_postgres(void *connection, const char *text, int64_t *number,
                           struct bench_failure *failure)
{
    struct connection *me = connection;
    PGresult *result = PQexec(me->conn, text);

    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
        *number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    return check(me->conn, result, PGRES_TUPLES_OK, text, failure);
}

static int written_postgres(void *connection, struct bench_traffic *to,
                            struct bench_failure *failure)
{
    int64_t bytes = 0;
    int rc = number_postgres(connection,
                             "SELECT pg_current_wal_insert_lsn() - '0/0'",
                             &bytes, failure);

    to->log_bytes = (double)bytes;
    return rc;
}

static int prepare_sale_postgres(void *connection,
                                 const struct bench_target *target,
                                 const char *item,
                                 struct bench_failure *failure)
{
    struct connection *me = connection;
    struct floor_sale sale;
    int rc;

    floor_sale_texts(&sale, target, item, " FOR UPDATE", "$1");
    rc = prepare(me->conn, "sale_select", sale.select, failure);
    if (rc == 0)
        rc = prepare(me->conn, "sale_update", sale.update, failure);
    if (rc == 0)
        rc = prepare(me->conn, "sale_insert", sale.insert, failure);
    return rc;
}

static int execute(PGconn *conn, const char *name, const char *parameter,
                   ExecStatusType expected, struct bench_failure *failure)
{
    PGresult *result = PQexecPrepared(conn, name, parameter != NULL ? 1 : 0,
                                      &parameter, NULL, NULL, 0);

    return check(conn, result, expected, name, failure);
}

static int sell_postgres(void *connection, const char *order,
                         struct bench_failure *failure)
{
    struct connection *me = connection;

    if (run(me->conn, "BEGIN", failure) != 0 ||
        execute(me->conn, "sale_select", NULL, PGRES_TUPLES_OK, failure) != 0 ||
        execute(me->conn, "sale_update", NULL, PGRES_COMMAND_OK, failure) != 0)
        return -1;
    if (order != NULL &&
        execute(me->conn, "sale_insert", order, PGRES_COMMAND_OK, failure) != 0)
        return -1;
    return run(me->conn, "COMMIT", failure);
}

const struct floor_driver floor_postgres = {
    FLOOR_MEMBERS(postgres),
    .begin = "BEGIN",
    .written = written_postgres,
};

#endif /* SQLOCK_WITH_POSTGRES */
