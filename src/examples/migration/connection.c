/*
 * connection.c - run SQL and take session locks, by each of the three client
 * libraries
 */
#include "connection.h"

#include <stdio.h>
#include <string.h>

#ifdef SQLOCK_WITH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SQLOCK_WITH_MYSQL
#include <mysql.h>
#endif
#ifdef SQLOCK_WITH_SQLITE
#include <sqlite3.h>
#endif

enum { PART = 128 };

int complain(const char *what, const char *why)
{
    (void)fprintf(stderr, "migration: %s: %s%s", what, why,
                  strchr(why, '\n') != NULL ? "" : "\n");
    return -1;
}

#ifdef SQLOCK_WITH_POSTGRES
/* In a transaction, all statements of the text belong to it. */
static int run_postgres(void *handle, const char *sql)
{
    PGresult *result = PQexec(handle, sql);
    ExecStatusType status = PQresultStatus(result);
    int rc = 0;

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
        status != PGRES_EMPTY_QUERY)
        rc = complain("PostgreSQL", PQerrorMessage(handle));
    PQclear(result);
    return rc;
}

/* The lock is tried, not waited for: CREATE INDEX CONCURRENTLY in the session
 * that has the lock would not end as long as this statement waits. */
static int lock_postgres(void *handle)
{
    PGresult *result =
        PQexec(handle, "SELECT pg_try_advisory_lock(hashtext('migration'))");
    int rc;

    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        rc = complain("PostgreSQL", PQerrorMessage(handle));
    else
        rc = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return rc;
}

static void close_postgres(void *handle)
{
    PQfinish(handle);
}

static int open_postgres(struct connection *connection, const char *url)
{
    connection->handle = PQconnectdb(url);
    connection->has_transactional_ddl = true;
    connection->run = run_postgres;
    connection->lock_session = lock_postgres;
    connection->close = close_postgres;
    if (PQstatus(connection->handle) != CONNECTION_OK)
        return complain("connecting", PQerrorMessage(connection->handle));
    if (PQsetClientEncoding(connection->handle, "UTF8") != 0)
        return complain("UTF-8", PQerrorMessage(connection->handle));
    return run_postgres(connection->handle,
                        "SET client_min_messages = warning");
}
#endif

#ifdef SQLOCK_WITH_MYSQL
static int run_mysql(void *handle, const char *sql)
{
    int more = mysql_query(handle, sql);

    while (more == 0) {
        mysql_free_result(mysql_store_result(handle));
        if (mysql_errno(handle) != 0)
            break;
        more = mysql_next_result(handle); /* -1: that was the last one */
    }
    if (mysql_errno(handle) != 0)
        return complain("MySQL", mysql_error(handle));
    return 0;
}

/* All databases of a server share the names of GET_LOCK(). */
static int lock_mysql(void *handle)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    int rc = -1;

    if (mysql_query(handle,
                    "SELECT GET_LOCK(LEFT(CONCAT('migration.', DATABASE()), "
                    "64), 0)") != 0)
        return complain("MySQL", mysql_error(handle));
    result = mysql_store_result(handle);
    row = result != NULL ? mysql_fetch_row(result) : NULL;
    if (row != NULL && row[0] != NULL)
        rc = strcmp(row[0], "1") == 0;
    else
        (void)complain("MySQL", "GET_LOCK has no answer");
    mysql_free_result(result);
    return rc;
}

static void close_mysql(void *handle)
{
    mysql_close(handle);
}

/* Open "mysql://user:password@host:port/database"; nothing in it is decoded. */
static int open_mysql(struct connection *connection, const char *url)
{
    char user[PART], password[PART], host[PART], database[PART];
    unsigned port;
    unsigned protocol = MYSQL_PROTOCOL_TCP;

    if (sscanf(url, "%*[a-z]://%127[^:]:%127[^@]@%127[^:]:%5u/%127[^?]", user,
               password, host, &port, database) != 5)
        return complain("the URL",
                        "mysql://user:password@host:port/database is needed");
    connection->handle = mysql_init(NULL);
    connection->run = run_mysql;
    connection->lock_session = lock_mysql;
    connection->close = close_mysql;
    if (connection->handle == NULL)
        return complain("connecting", "out of memory");
    (void)mysql_options(connection->handle, MYSQL_OPT_PROTOCOL, &protocol);
    (void)mysql_options(connection->handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(connection->handle, host, user, password, database,
                           port, NULL, CLIENT_MULTI_STATEMENTS) == NULL)
        return complain("connecting", mysql_error(connection->handle));
    return 0;
}
#endif

#ifdef SQLOCK_WITH_SQLITE
static int run_sqlite(void *handle, const char *sql)
{
    if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK)
        return complain("SQLite", sqlite3_errmsg(handle));
    return 0;
}

static void close_sqlite(void *handle)
{
    (void)sqlite3_close(handle);
}

static int open_sqlite(struct connection *connection, const char *url)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open(strchr(url, ':') + 1, &db);

    connection->handle = db;
    connection->has_transactional_ddl = true;
    connection->run = run_sqlite;
    connection->close = close_sqlite;
    if (rc != SQLITE_OK)
        return complain("opening", sqlite3_errmsg(db));
    (void)sqlite3_busy_timeout(db, 10000);
    return 0;
}
#endif

int connection_open(struct connection *connection, const char *url)
{
#ifdef SQLOCK_WITH_POSTGRES
    if (strncmp(url, "postgres", 8) == 0)
        return open_postgres(connection, url);
#endif
#ifdef SQLOCK_WITH_MYSQL
    if (strncmp(url, "mysql:", 6) == 0 || strncmp(url, "mariadb:", 8) == 0)
        return open_mysql(connection, url);
#endif
#ifdef SQLOCK_WITH_SQLITE
    if (strncmp(url, "sqlite:", 7) == 0)
        return open_sqlite(connection, url);
#endif
    (void)connection;
    return complain("the URL", "no client library for it");
}

void connection_close(struct connection *connection)
{
    if (connection->handle != NULL)
        connection->close(connection->handle);
    connection->handle = NULL;
}
