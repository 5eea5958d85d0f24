/*
 * database.h - the databases the suites run on, and plain SQL on them
 *
 * A database is named by the environment (NAME is POSTGRES, MYSQL, SQLITE):
 *     SQLOCK_TEST_NAME_URL        where the tests make their tables
 *     SQLOCK_TEST_NAME_ADMIN_URL  the same database as its administrator;
 *                                 without it, the first one is tried
 *     SQLOCK_TEST_NAME_POOLER     set when the first one is a pooler's
 *     SQLOCK_TEST_NAME_PID        the server's process, where it may be stopped
 *     SQLOCK_TEST_NAME_PIDFILE    the same; and a server that ends is started
 *                                 again, with its new number in this file
 *
 * SQL goes through the driver's own functions, past everything above them.
 */
#ifndef TESTS_DATABASE_H
#define TESTS_DATABASE_H

#include <sys/types.h>

#include "check.h"
#include "sqlock/driver.h"

enum {
    ON_POSTGRES = 1 << 0,
    ON_MYSQL = 1 << 1, /* and MariaDB */
    ON_SQLITE = 1 << 2,
    ON_SERVERS = ON_POSTGRES | ON_MYSQL,
    ON_ALL = ON_SERVERS | ON_SQLITE
};

struct database {
    unsigned bit;
    const char *name;          /* "postgres" */
    const char *variable;      /* "POSTGRES" */
    const char *clock_us;      /* SQL: its clock in us; NULL: this host's */
    const char *connection_id; /* SQL: this session's number; NULL: none */
};

#define DATABASES 3
extern const struct database databases[DATABASES];

/* Return the database's URL; NULL when the environment names none. */
const char *database_url(const struct database *database);
const char *database_admin_url(const struct database *database);

/* Tell whether the URL leads through a connection pooler, which answers logins
 * by itself. */
bool database_is_pooled(const struct database *database);

/* Tell whether the URL says waiting=poll: nothing wakes a waiter. */
bool database_is_polled(const struct database *database);

/* Return the server's process; 0 when unknown, or while it restarts. */
pid_t database_pid(const struct database *database);

/* Return the process whose number is in a file, which follows a server over a
 * restart; 0 for none. */
pid_t database_pid_in(const char *path);

/* A session for plain SQL. */
struct sql {
    const struct database *database;
    const sqlock_driver *driver;
    void *connection;
    sqlock_error err; /* of the last failure */
};

/* Open a session; return a code instead of failing the test. */
int sql_open(struct sql *sql, const struct database *database, const char *url);
void sql_close(struct sql *sql);

/* Run one statement; return its code, and the affected rows (may be NULL). */
int sql_try(struct sql *sql, int64_t *affected, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Run one statement, which must succeed; return the number of affected rows. */
int64_t sql_run(struct sql *sql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Return the first cell of the first row; a failure or no row fails the
 * test. */
int64_t sql_integer(struct sql *sql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Read the first cell of the first row as text, "" for null; false when there
 * is no row. */
bool sql_text(struct sql *sql, char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int sql_begin(struct sql *sql);
int sql_commit(struct sql *sql);
int sql_rollback(struct sql *sql);

/* Return the database's clock, read independently of the library's
 * statements. */
int64_t sql_now_us(struct sql *sql);

#endif
