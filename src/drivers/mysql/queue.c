/*
 * queue.c - the wait queue of MySQL and MariaDB: a user lock (GET_LOCK)
 *
 * A session that waits for a user lock holds no snapshot and no row lock, so it
 * may wait for any time.  The server checks every second whether the waiting
 * client is still connected.  NAME gives a user lock the same name as the
 * fragment `queue` of dialect.c.
 *
 * The queue's number is in the statement's text, where the server's list of
 * sessions shows it (SQLOCK_SQL_WAITERS); the list does not show parameters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "drivers/mysql/connection.h"
#include "drivers/own_session.h"

#define LONGEST_MS 3000000            /* an hour, less ten minutes */
#define ANSWER_NS INT64_C(5000000000) /* for an answer that is due at once */

#define TIME_IS_UP 3024 /* max_execution_time */

#define NAME "CONCAT('sqlock:', %" PRId64 ", ':', CRC32(DATABASE()))"
#define TEXT_MAX 192

static int run(struct lk_mysql_connection *connection, const char *text,
               int64_t deadline_ns, int64_t *answer, sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};
    sqlock_result result = {0};
    int rc = lk_mysql_execute(connection, &statement, NULL, 0, deadline_ns,
                              &result, err);

    if (rc == 0)
        *answer = result.rows == 1 && result.cells[0].type == SQLOCK_INT64
                      ? result.cells[0].integer
                      : -1;
    sqlock_result_clear(&result);
    return rc;
}

static int mysql_leave(void *handle, int64_t queue, int64_t deadline_ns,
                       sqlock_error *err)
{
    char text[TEXT_MAX];
    int64_t answer = 0;

    (void)snprintf(text, sizeof text, "SELECT RELEASE_LOCK(" NAME ")", queue);
    return run(handle, text, deadline_ns, &answer, err);
}

/* Return the time until `until_ns`, from 0 to LONGEST_MS: GET_LOCK would wait
 * for ever with a negative time. */
static int64_t milliseconds_until(int64_t until_ns)
{
    int64_t left_ms = (until_ns - sqlock_monotonic_ns()) / 1000000;

    if (left_ms < 0)
        return 0;
    return left_ms < LONGEST_MS ? left_ms : LONGEST_MS;
}

/* Write the statement that waits.  MariaDB's GET_LOCK takes fractions of
 * seconds.  MySQL's takes whole seconds: they are rounded up, and the
 * statement's time limit ends the wait earlier. */
static void write_wait(bool is_mariadb, int64_t queue, int64_t left_ms,
                       char text[TEXT_MAX])
{
    if (is_mariadb)
        (void)snprintf(text, TEXT_MAX,
                       "SELECT GET_LOCK(" NAME ", %" PRId64 ".%03" PRId64 ")",
                       queue, left_ms / 1000, left_ms % 1000);
    else
        (void)snprintf(text, TEXT_MAX,
                       "SELECT /*+ MAX_EXECUTION_TIME(%" PRId64
                       ") */ GET_LOCK(" NAME ", %" PRId64 ")",
                       left_ms, queue, (left_ms + 999) / 1000);
}

static int mysql_queue(void *handle, int64_t queue, int64_t until_ns,
                       sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int64_t left_ms = milliseconds_until(until_ns);
    char text[TEXT_MAX];
    sqlock_error why = {0};
    int64_t answer = 0;
    int rc;

    write_wait(lk_mysql_is_mariadb(connection->mysql), queue, left_ms, text);
    rc = run(connection, text,
             sqlock_monotonic_ns() + left_ms * 1000000 + ANSWER_NS, &answer,
             &why);
    /* The lock may have been granted in the same instant: give it up. */
    if (rc < 0 && why.native == TIME_IS_UP)
        rc = mysql_leave(connection, queue, sqlock_monotonic_ns() + ANSWER_NS,
                         &why);
    else if (rc == 0 && answer < 0)
        rc = lk_error(&why, SQLOCK_ECANCELED, "the wait was cancelled");
    else if (rc == 0 && answer > 0)
        return 0;
    if (rc == 0)
        rc = lk_error(&why, SQLOCK_EBUSY, "another session has the queue lock");
    if (err != NULL)
        *err = why;
    return rc;
}

static int mysql_has_own_session(void *one, void *other, int64_t deadline_ns,
                                 sqlock_error *err)
{
    return lk_own_session(&lk_driver_mysql,
                          "SELECT CAST(CONNECTION_ID() AS CHAR)", one, other,
                          deadline_ns, err);
}

const sqlock_wait_queue lk_mysql_wait_queue = {
    .layouts = 1u << SQLOCK_LAYOUT_SQLOCK,
    .holders_keep_it = true,
    .has_own_session = mysql_has_own_session,
    .enqueue = mysql_queue,
    .leave = mysql_leave,
};
