/*
 * bell.c - the bell of MySQL and MariaDB: the user lock 'sqlock:NAME', which
 * its owner takes by GET_LOCK and the server frees when the owner's session
 * ends, however that ends
 *
 * A session that waits for a user lock holds no snapshot and no row lock, so it
 * may wait for any time.  The statement that waits gives the lock back at once:
 * nothing is left on the session.  The server sends nothing else, so a readable
 * socket means its answer, also with TLS, and reading that does not block; one
 * that breaks off in the middle is a lost connection after a second.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "drivers/bell.h"
#include "drivers/mysql/connection.h"

#define LONGEST_MS 86400000 /* a day: within every limit of the servers */

#define ANSWER_NS INT64_C(1000000000) /* for the rest of an answer */

#define DEADLOCK 1213
#define TIME_IS_UP 3024 /* max_execution_time */
#define USER_LOCK_DEADLOCK 3058

#define TEXT_MAX 256

/* Return the time until `until_ns`, from 0 to LONGEST_MS. */
static int64_t milliseconds_until(int64_t until_ns)
{
    int64_t left_ms = (until_ns - sqlock_monotonic_ns()) / LK_NS_PER_MS;

    if (left_ms < 0)
        return 0;
    return left_ms < LONGEST_MS ? left_ms : LONGEST_MS;
}

/* Write the statement that waits, whatever limit the session has.  The select
 * list is evaluated from left to right.  MariaDB's GET_LOCK takes fractions of
 * seconds; MySQL's takes whole seconds, so the statement's own limit ends it
 * earlier. */
static void write_wait(bool is_mariadb, const char *name, int64_t left_ms,
                       char text[TEXT_MAX])
{
    if (is_mariadb)
        (void)snprintf(text, TEXT_MAX,
                       "SET STATEMENT max_statement_time = 0 FOR "
                       "SELECT GET_LOCK('sqlock:%s', %" PRId64 ".%03" PRId64
                       "), RELEASE_LOCK('sqlock:%s')",
                       name, left_ms / 1000, left_ms % 1000, name);
    else
        (void)snprintf(text, TEXT_MAX,
                       "SELECT /*+ MAX_EXECUTION_TIME(%" PRId64 ") */ "
                       "GET_LOCK('sqlock:%s', %" PRId64 "), "
                       "RELEASE_LOCK('sqlock:%s')",
                       left_ms > 0 ? left_ms : 1, name, (left_ms + 999) / 1000,
                       name);
}

static int give_up(struct lk_mysql_connection *connection, const char *text,
                   int64_t deadline_ns, sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};
    int rc = lk_mysql_execute(connection, &statement, NULL, 0, deadline_ns,
                              NULL, err);

    if (rc == 0)
        connection->bell[0] = '\0';
    return rc;
}

/* Give up a lock that the session may have been given in the instant in which
 * its statement's time was over. */
static int give_up_heard(struct lk_mysql_connection *connection,
                         int64_t deadline_ns, sqlock_error *err)
{
    char text[TEXT_MAX];

    if (connection->bell[0] == '\0')
        return 0;
    (void)snprintf(text, sizeof text, "SELECT RELEASE_LOCK('sqlock:%s')",
                   connection->bell);
    return give_up(connection, text, deadline_ns, err);
}

/* Give up what was heard, and the session's own bells. */
static int mysql_end(void *handle, int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;

    if (connection->awaits_bell)
        return lk_error(err, SQLOCK_EBUSY,
                        "a statement on the connection still waits");
    return give_up(connection, "SELECT RELEASE_ALL_LOCKS()", deadline_ns, err);
}

static int send_wait(struct lk_mysql_connection *connection, const char *name,
                     int64_t until_ns, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;
    char text[TEXT_MAX];
    int rc = lk_mysql_stay_in_group(connection, err);

    if (rc == 0)
        rc = lk_mysql_unset_idle(connection, err);
    if (rc < 0)
        return rc;
    write_wait(lk_mysql_is_mariadb(mysql), name, milliseconds_until(until_ns),
               text);
    if (mysql_send_query(mysql, text, strlen(text)) != 0)
        return lk_mysql_fail(connection, LK_MYSQL_PREPARING, err);
    (void)snprintf(connection->bell, sizeof connection->bell, "%s", name);
    connection->awaits_bell = true;
    return 0;
}

static int mysql_begin(void *handle, const char *name, int64_t until_ns,
                       int64_t deadline_ns, sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int rc = lk_check_bell(name, err);

    if (rc < 0)
        return rc;
    if (connection->in_transaction)
        return lk_error(err, SQLOCK_EINVAL,
                        "a session does not wait in a transaction");
    if (!connection->awaits_bell)
        rc = give_up_heard(connection, deadline_ns, err);
    if (rc == 0)
        rc = lk_mysql_call_begin(connection, deadline_ns, err);
    if (rc < 0)
        return rc;
    rc = send_wait(connection, name, until_ns, err);
    lk_mysql_call_end(connection);
    return rc;
}

static int mysql_descriptor(void *handle)
{
    const struct lk_mysql_connection *connection = handle;

    return connection->has_alarm ? connection->alarm : -1;
}

/* Return the text to hand on after an error of the statement that waited; NULL:
 * the connection is lost, or was killed. */
static const char *judge(struct lk_mysql_connection *connection,
                         unsigned int number)
{
    /* The lock may have been granted in the same instant. */
    if (number == TIME_IS_UP)
        return "time";
    connection->bell[0] = '\0';
    return number == DEADLOCK || number == USER_LOCK_DEADLOCK ? "time" : NULL;
}

/* Read the answer: GET_LOCK gives 1 if the lock was given, 0 if the time was
 * over, and null if the wait was killed.  Return as judge(). */
static const char *read_answer(struct lk_mysql_connection *connection)
{
    MYSQL *mysql = connection->mysql;
    const char *text = NULL;
    MYSQL_RES *rows;
    MYSQL_ROW row;

    if (mysql_read_query_result(mysql) != 0)
        return judge(connection, mysql_errno(mysql));
    rows = mysql_store_result(mysql);
    if (rows == NULL)
        return judge(connection, mysql_errno(mysql));
    row = mysql_fetch_row(rows);
    if (row != NULL && row[0] != NULL)
        text = strcmp(row[0], "1") == 0 ? "free" : "time";
    mysql_free_result(rows);
    connection->bell[0] = '\0';
    return text;
}

static int mysql_hear(void *handle, void (*rung)(void *, const char *),
                      void *context)
{
    struct lk_mysql_connection *connection = handle;
    const char *text = NULL;

    if (!connection->has_alarm || connection->is_broken ||
        atomic_load(&connection->was_aborted))
        return SQLOCK_EUNREACHABLE;
    if (lk_mysql_is_quiet(connection))
        return SQLOCK_EBUSY;
    connection->awaits_bell = false;
    connection->was_looked_at = true;
    if (lk_mysql_call_begin(connection, sqlock_monotonic_ns() + ANSWER_NS,
                            NULL) == 0) {
        text = read_answer(connection);
        lk_mysql_call_end(connection);
    }
    if (text == NULL) {
        connection->is_broken = true;
        return SQLOCK_EUNREACHABLE;
    }
    rung(context, text);
    return 0;
}

const sqlock_bell lk_mysql_bell = {
    .is_of_one = true,
    .begin = mysql_begin,
    .descriptor = mysql_descriptor,
    .hear = mysql_hear,
    .end = mysql_end,
};
