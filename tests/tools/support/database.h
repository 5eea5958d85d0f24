/*
 * database.h - the databases the suites run on, and plain SQL on them
 *
 * A database is named by the environment (NAME is POSTGRES, MYSQL, SQLITE):
 *     SQLOCK_TEST_NAME_URL        the database in which the tests make tables
 *     SQLOCK_TEST_NAME_ADMIN_URL  that database, for its administrator; default
 *                                 SQLOCK_TEST_NAME_URL
 *     SQLOCK_TEST_NAME_POOLER     set if SQLOCK_TEST_NAME_URL leads to a pooler
 *     SQLOCK_TEST_NAME_PID        the server's process id, if it may be stopped
 *     SQLOCK_TEST_NAME_PIDFILE    a file with the process id of a server that
 *                                 is started again when it ends; the file then
 *                                 has the new process id
 *
 * SQL is executed by the driver's functions, without the layers above them.
 */
#ifndef TESTS_DATABASE_H
#define TESTS_DATABASE_H

#include <sys/types.h>

#include "check.h"
#include "db/driver.h"

enum {
    ON_POSTGRES = 1 << 0,
    ON_MYSQL = 1 << 1, /* and MariaDB */
    ON_SQLITE = 1 << 2,
    ON_SERVERS = ON_POSTGRES | ON_MYSQL,
    ON_ALL = ON_SERVERS | ON_SQLITE
};

enum {
    IN_SQLOCK = 1 << SQLOCK_LAYOUT_SQLOCK,
    IN_SPRING7 = 1 << SQLOCK_LAYOUT_SPRING7,
    IN_SPRING6 = 1 << SQLOCK_LAYOUT_SPRING6,
    IN_SPRING = IN_SPRING7 | IN_SPRING6,
    HAS_EXPIRY = IN_SQLOCK | IN_SPRING7, /* have the column EXPIRED_AFTER */
    IN_ALL = IN_SQLOCK | IN_SPRING
};

struct database {
    unsigned bit;
    const char *name;          /* "postgres" */
    const char *variable;      /* "POSTGRES" */
    const char *clock_us;      /* SQL for its clock in us; NULL: this host's */
    const char *connection_id; /* SQL for the session's number; NULL: none */
};

#define DATABASES 3
extern const struct database databases[DATABASES];

/* Return the database's URL; NULL if the environment has none. */
const char *database_url(const struct database *database);
const char *database_admin_url(const struct database *database);

/* Return whether the URL leads through a connection pooler, which answers
 * logins by itself. */
bool database_is_pooled(const struct database *database);

/* Return whether the URL has waiting=poll: waiters poll the row. */
bool database_is_polled(const struct database *database);

/* Return the server's process id; 0: unknown, or the server is restarting. */
pid_t database_pid(const struct database *database);

/* Return the process id in a file such as SQLOCK_TEST_NAME_PIDFILE; 0: no
 * file, or no number in it. */
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

/* Call check_url, and open, of a driver with the text of a URL. */
int driver_check(const sqlock_driver *driver, const char *text,
                 sqlock_error *err);
int driver_open(const sqlock_driver *driver, void *connection, const char *text,
                const sqlock_connect *how, sqlock_error *err);
void sql_close(struct sql *sql);

/* Run one statement and return its code; set *affected (may be NULL) to the
 * number of affected rows. */
int sql_try(struct sql *sql, int64_t *affected, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Run one statement and return the number of affected rows; fail the test if
 * the statement fails. */
int64_t sql_run(struct sql *sql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drop the tables and the view that `sqlock init` makes, as far as they are
 * there. */
void sql_drop_locks(struct sql *sql, const char *prefix);

/* Return the number in the first cell of the first row; fail the test if the
 * statement fails or there is no number. */
int64_t sql_integer(struct sql *sql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write the first cell of the first row to out as text, "" for null.  Return
 * false if there is no row; fail the test if the statement fails. */
bool sql_text(struct sql *sql, char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

int sql_begin(struct sql *sql);
int sql_commit(struct sql *sql);
int sql_rollback(struct sql *sql);

/* Return the time of the database's clock, read without the library's
 * statements. */
int64_t sql_now_us(struct sql *sql);

#endif
