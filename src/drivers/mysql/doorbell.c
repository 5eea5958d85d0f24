/*
 * doorbell.c - waiting in MySQL and MariaDB: a user lock (GET_LOCK) as the queue
 *
 * A session that waits for one holds no snapshot and no row, so it may wait for
 * as long as it likes.  The name is that of dialect.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "drivers/mysql/connection.h"
#include "drivers/mysql/mysql.h"

#define LONGEST_MS 3000000            /* an hour, less ten minutes */
#define ANSWER_NS INT64_C(5000000000) /* for an answer that is due at once */

#define NAME "CONCAT('sqlock:', ?, ':', CRC32(DATABASE()))"

static int run(struct lk_mysql_connection *connection, const char *text,
               const sqlock_value *parameters, size_t count,
               int64_t deadline_ns, int64_t *answer, sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};
    sqlock_result result = {0};
    int rc = lk_mysql_execute(connection, &statement, parameters, count,
                              deadline_ns, &result, err);

    if (rc == 0)
        *answer = result.rows == 1 && result.cells[0].type == SQLOCK_INT64
                      ? result.cells[0].integer
                      : -1;
    sqlock_result_clear(&result);
    return rc;
}

/* MySQL counts in whole seconds and would wait for ever if it were asked for
 * less than none; MariaDB takes parts of them. */
static int mysql_queue(void *handle, int64_t bell, int64_t until_ns,
                       sqlock_error *err)
{
    struct lk_mysql_connection *connection = handle;
    int64_t left_ms = (until_ns - sqlock_monotonic_ns()) / 1000000;
    char limit[32];
    sqlock_value parameters[] = {
        {.type = SQLOCK_INT64, .integer = bell},
        {.type = SQLOCK_TEXT, .text = limit},
    };
    int64_t answer = 0;
    int rc;

    if (left_ms < 0)
        left_ms = 0;
    if (left_ms > LONGEST_MS)
        left_ms = LONGEST_MS;
    if (lk_mysql_is_mariadb(connection->mysql))
        (void)snprintf(limit, sizeof limit, "%" PRId64 ".%03" PRId64,
                       left_ms / 1000, left_ms % 1000);
    else
        (void)snprintf(limit, sizeof limit, "%" PRId64, left_ms / 1000);
    parameters[1].length = strlen(limit);
    rc = run(connection, "SELECT GET_LOCK(" NAME ", ?)", parameters, 2,
             sqlock_monotonic_ns() + left_ms * 1000000 + ANSWER_NS, &answer,
             err);
    if (rc == 0 && answer < 0)
        rc = lk_error(err, SQLOCK_ECANCELED, "the wait was cancelled");
    else if (rc == 0 && answer == 0)
        rc = lk_error(err, SQLOCK_EBUSY, "the doorbell is another's");
    return rc;
}

static int mysql_leave(void *handle, int64_t bell, int64_t deadline_ns,
                       sqlock_error *err)
{
    const sqlock_value number = {.type = SQLOCK_INT64, .integer = bell};
    int64_t answer = 0;

    return run(handle, "SELECT RELEASE_LOCK(" NAME ")", &number, 1, deadline_ns,
               &answer, err);
}

const sqlock_doorbells lk_mysql_doorbells = {
    .size = sizeof(sqlock_doorbells),
    .layouts = 1u << SQLOCK_LAYOUT_SQLOCK,
    .holders_have_it = true,
    .session = "SELECT CAST(CONNECTION_ID() AS CHAR)",
    .end_session = "KILL",
    .queue = mysql_queue,
    .leave = mysql_leave,
};
