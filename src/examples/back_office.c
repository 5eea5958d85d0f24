/*
 * back_office.c - a nightly job on the application's own tables, in its own
 * client library, that must run once and must not write after it lost its lock
 *
 *     back_office URL
 *
 * The job books what is open in back_office_entry to back_office_balance.  It
 * holds the lock "close-day", which says who may run; and it guards that lock
 * in its transaction, so that the database itself refuses the commit of a job
 * that was stopped for too long.  Exit status: 0 booked, 1 failed, 75 another
 * one runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlock.h"
#include "sqlock/tx.h"

#ifdef SQLOCK_WITH_POSTGRES
#include <libpq-fe.h>
#endif
#ifdef SQLOCK_WITH_MYSQL
#include <mysql.h>
#endif
#ifdef SQLOCK_WITH_SQLITE
#include <sqlite3.h>
#endif

enum { EXIT_ANOTHER = 75, PART = 128 };

/* The application's connection: one of these libraries. */
struct office {
    void *connection; /* PGconn *, MYSQL *, sqlite3 * */
    int (*run)(void *connection, const char *sql);
    void (*close)(void *connection);
};

static int complain(const char *what, const char *why)
{
    (void)fprintf(stderr, "back_office: %s: %s\n", what, why);
    return -1;
}

/* --- the three client libraries --- */

#ifdef SQLOCK_WITH_POSTGRES
static int run_postgres(void *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    int rc = 0;

    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        rc = complain(sql, PQerrorMessage(connection));
    PQclear(result);
    return rc;
}

static void close_postgres(void *connection)
{
    PQfinish(connection);
}

static int open_postgres(struct office *office, const char *url)
{
    office->connection = PQconnectdb(url);
    office->run = run_postgres;
    office->close = close_postgres;
    if (PQstatus(office->connection) != CONNECTION_OK)
        return complain("connecting", PQerrorMessage(office->connection));
    if (PQsetClientEncoding(office->connection, "UTF8") != 0)
        return complain("UTF-8", PQerrorMessage(office->connection));
    return run_postgres(office->connection,
                        "SET client_min_messages = warning");
}
#endif

#ifdef SQLOCK_WITH_MYSQL
static int run_mysql(void *connection, const char *sql)
{
    if (mysql_query(connection, sql) != 0)
        return complain(sql, mysql_error(connection));
    return 0;
}

static void close_mysql(void *connection)
{
    mysql_close(connection);
}

/* "mysql://user:password@host:port/database", nothing escaped. */
static int open_mysql(struct office *office, const char *url)
{
    char user[PART], password[PART], host[PART], database[PART];
    unsigned port;
    unsigned protocol = MYSQL_PROTOCOL_TCP;

    if (sscanf(url, "%*[a-z]://%127[^:]:%127[^@]@%127[^:]:%5u/%127[^?]", user,
               password, host, &port, database) != 5)
        return complain("the URL",
                        "mysql://user:password@host:port/database is needed");
    office->connection = mysql_init(NULL);
    office->run = run_mysql;
    office->close = close_mysql;
    if (office->connection == NULL)
        return complain("connecting", "out of memory");
    (void)mysql_options(office->connection, MYSQL_OPT_PROTOCOL, &protocol);
    (void)mysql_options(office->connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (mysql_real_connect(office->connection, host, user, password, database,
                           port, NULL, 0) == NULL)
        return complain("connecting", mysql_error(office->connection));
    return 0;
}
#endif

#ifdef SQLOCK_WITH_SQLITE
static int run_sqlite(void *connection, const char *sql)
{
    if (sqlite3_exec(connection, sql, NULL, NULL, NULL) != SQLITE_OK)
        return complain(sql, sqlite3_errmsg(connection));
    return 0;
}

static void close_sqlite(void *connection)
{
    (void)sqlite3_close(connection);
}

static int open_sqlite(struct office *office, const char *url)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open(strchr(url, ':') + 1, &db);

    office->connection = db;
    office->run = run_sqlite;
    office->close = close_sqlite;
    if (rc != SQLITE_OK)
        return complain("opening", sqlite3_errmsg(db));
    (void)sqlite3_busy_timeout(db, 5000);
    return 0;
}
#endif

static int open_office(struct office *office, const char *url)
{
#ifdef SQLOCK_WITH_POSTGRES
    if (strncmp(url, "postgres", 8) == 0)
        return open_postgres(office, url);
#endif
#ifdef SQLOCK_WITH_MYSQL
    if (strncmp(url, "mysql:", 6) == 0 || strncmp(url, "mariadb:", 8) == 0)
        return open_mysql(office, url);
#endif
#ifdef SQLOCK_WITH_SQLITE
    if (strncmp(url, "sqlite:", 7) == 0)
        return open_sqlite(office, url);
#endif
    (void)office;
    return complain(url, "no client library for it");
}

/* --- the job --- */

static const char *const tables[] = {
    "CREATE TABLE IF NOT EXISTS back_office_balance "
    "(account INTEGER PRIMARY KEY, amount BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS back_office_entry "
    "(id INTEGER PRIMARY KEY, account INTEGER NOT NULL, "
    "amount BIGINT NOT NULL, booked INTEGER NOT NULL)",
    NULL,
};

static const char *const job[] = {
    "UPDATE back_office_balance SET amount = amount + COALESCE("
    "(SELECT SUM(e.amount) FROM back_office_entry e "
    "WHERE e.account = back_office_balance.account AND e.booked = 0), 0)",
    "UPDATE back_office_entry SET booked = 1 WHERE booked = 0",
    NULL,
};

static int run_all(const struct office *office, const char *const *statements)
{
    int rc = 0;

    for (; rc == 0 && *statements != NULL; statements++)
        rc = office->run(office->connection, *statements);
    return rc;
}

/* The guard is the first statement of the transaction, and the commit goes
 * through the library, which knows whether the guard held. */
static int book(sqlock_registry *registry, sqlock_lock *lock,
                const struct office *office)
{
    sqlock_error err;
    sqlock_tx *tx;
    int rc;

    rc = sqlock_tx_adopt(&tx, registry, office->connection, &err);
    if (rc < 0)
        return complain("adopting the connection", err.message);
    rc = sqlock_tx_guard(tx, lock, &err);
    if (rc < 0)
        (void)complain("the guard", err.message);
    if (rc == 0)
        rc = run_all(office, job);
    if (rc < 0) {
        (void)sqlock_tx_rollback(tx, NULL);
        return rc;
    }
    rc = sqlock_tx_commit(tx, &err);
    return rc < 0 ? complain("the commit", err.message) : 0;
}

static int run_job(sqlock_registry *registry, const struct office *office)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = NULL;
    sqlock_error err;
    int status = EXIT_FAILURE;
    int rc;

    options.auto_renew = true; /* renewed, however long the job takes */
    rc = sqlock_obtain(&lock, registry, "close-day", &err);
    if (rc == 0)
        rc = sqlock_acquire(lock, 0, &options, &err);
    if (rc == SQLOCK_EBUSY) {
        (void)sqlock_drop(lock, NULL);
        (void)complain("close-day", "another job runs");
        return EXIT_ANOTHER;
    }
    if (rc < 0) {
        (void)complain("close-day", err.message);
    } else {
        if (book(registry, lock, office) == 0)
            status = EXIT_SUCCESS;
        rc = sqlock_release(lock, &err);
        if (rc < 0)
            (void)complain("releasing close-day", err.message);
    }
    (void)sqlock_drop(lock, NULL);
    return status;
}

int main(int argc, char **argv)
{
    struct office office = {0};
    sqlock_registry *registry = NULL;
    sqlock_error err;
    int status = EXIT_FAILURE;
    int rc;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: back_office URL\n");
        return 2;
    }
    rc = sqlock_schema_create(argv[1], NULL, SQLOCK_LAYOUT_SQLOCK, &err);
    if (rc == 0)
        rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    if (rc < 0 || registry == NULL) {
        (void)complain("the lock table", err.message);
        return EXIT_FAILURE;
    }
    if (open_office(&office, argv[1]) == 0 && run_all(&office, tables) == 0)
        status = run_job(registry, &office);
    if (office.connection != NULL)
        office.close(office.connection);
    (void)sqlock_registry_close(registry, NULL);
    if (status == EXIT_SUCCESS)
        (void)printf("booked\n");
    return status;
}
