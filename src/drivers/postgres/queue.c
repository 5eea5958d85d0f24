/*
 * queue.c - the wait queue of PostgreSQL: a session advisory lock, and LISTEN
 * for longer waits
 *
 * While a statement waits for an advisory lock, VACUUM cannot remove rows that
 * its snapshot may see, and CREATE INDEX CONCURRENTLY waits for it: so such a
 * wait is a second at most.  After that a waiter listens, outside any
 * transaction.  A listening session also shares the advisory lock whose number
 * is the queue lock's + 1: by that lock a release finds out whether it has to
 * notify (dialect.c), since a NOTIFY slows all commits down.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "drivers/own_session.h"
#include "drivers/postgres/session.h"

#define LONGEST_MS 1000
#define ANSWER_NS INT64_C(5000000000) /* for an answer that is due at once */

static int run(lk_pg *session, const char *text, const sqlock_value *parameters,
               size_t count, int64_t deadline_ns, sqlock_result *result,
               sqlock_error *err)
{
    const sqlock_statement statement = {.text = text};

    return lk_pg_execute(session, &statement, parameters, count, deadline_ns,
                         result, err);
}

static int pg_enqueue(void *connection, int64_t queue, int64_t until_ns,
                      sqlock_error *err)
{
    int64_t left_ms = (until_ns - sqlock_monotonic_ns()) / 1000000 + 1;
    char limit[24];
    sqlock_value parameters[] = {
        {.type = SQLOCK_INT64, .integer = queue},
        {.type = SQLOCK_TEXT, .text = limit},
    };
    sqlock_result result = {0};
    int rc;

    if (left_ms < 1)
        left_ms = 1;
    if (left_ms > LONGEST_MS)
        left_ms = LONGEST_MS;
    (void)snprintf(limit, sizeof limit, "%" PRId64 "ms", left_ms);
    parameters[1].length = strlen(limit);
    /* WHERE is evaluated before the select list, so the time limit is set
     * before the wait.  The limit ends with the statement. */
    rc = run(connection,
             "SELECT pg_advisory_lock($1) IS NULL "
             "WHERE set_config('lock_timeout', $2, true) IS NOT NULL",
             parameters, 2,
             sqlock_monotonic_ns() + left_ms * 1000000 + ANSWER_NS, &result,
             err);
    sqlock_result_clear(&result);
    return rc;
}

static int pg_subscribe(void *connection, int64_t queue, int64_t deadline_ns,
                        sqlock_error *err)
{
    const sqlock_value number = {.type = SQLOCK_INT64, .integer = queue + 1};
    sqlock_result result = {0};
    char text[64];
    bool is_heard = false;
    int rc;

    (void)snprintf(text, sizeof text, "LISTEN sqlock_%" PRIx64, queue);
    rc = lk_pg_simple(connection, text, deadline_ns, NULL, err);
    if (rc == 0)
        rc = run(connection, "SELECT pg_try_advisory_lock_shared($1)", &number,
                 1, deadline_ns, &result, err);
    if (rc == 0)
        is_heard = result.rows == 1 && result.cells[0].integer != 0;
    sqlock_result_clear(&result);
    if (rc == 0 && !is_heard)
        rc = lk_error(err, SQLOCK_EBUSY,
                      "another session prevents listening to the queue lock");
    return rc;
}

/* Return whether a notification for the queue is among those that libpq has
 * read, and discard them all.  Reads nothing from the socket. */
static bool was_notified(lk_pg *session, int64_t queue)
{
    char channel[64];
    bool notified = false;
    PGnotify *note;

    (void)snprintf(channel, sizeof channel, "sqlock_%" PRIx64, queue);
    while ((note = PQnotifies(session->conn)) != NULL) {
        notified = notified || strcmp(note->relname, channel) == 0;
        PQfreemem(note);
    }
    return notified;
}

static int gone(lk_pg *session, sqlock_error *err)
{
    session->dead = true;
    return lk_error(err, SQLOCK_EUNREACHABLE,
                    "the connection to PostgreSQL was lost during the wait");
}

static int pg_await(void *connection, int64_t queue, int64_t until_ns,
                    sqlock_error *err)
{
    lk_pg *session = connection;

    if (session->conn == NULL || session->dead ||
        atomic_load(&session->aborted))
        return gone(session, err);
    while (!was_notified(session, queue)) {
        switch (lk_pg_wait(session, PQsocket(session->conn), POLLIN, until_ns,
                           NULL)) {
        case LK_PG_READY:
            if (PQconsumeInput(session->conn) == 0)
                return gone(session, err);
            break;
        case LK_PG_TIME_IS_UP:
            return lk_error(err, SQLOCK_EBUSY,
                            "the lock was not released in time");
        default:
            return gone(session, err);
        }
    }
    return 0;
}

static int pg_leave(void *connection, int64_t queue, int64_t deadline_ns,
                    sqlock_error *err)
{
    lk_pg *session = connection;
    int rc =
        lk_pg_simple(session, "SELECT pg_advisory_unlock_all(); UNLISTEN *",
                     deadline_ns, NULL, err);

    (void)queue;
    while (rc == 0 && was_notified(session, queue))
        ;
    return rc;
}

/* Call an advisory lock function that returns a boolean.  *answer gets it, or
 * false on failure. */
static int ask(lk_pg *session, const char *text, const sqlock_value *number,
               int64_t deadline_ns, bool *answer, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = run(session, text, number, 1, deadline_ns, &result, err);

    *answer = rc == 0 && result.rows == 1 && result.cells[0].integer != 0;
    sqlock_result_clear(&result);
    return rc;
}

/* Check that a session is refused an advisory lock that another session has:
 * some servers that speak PostgreSQL's protocol grant all such locks, or have
 * none.  The locks end with a transaction, so that none is left if a pooler was
 * not noticed.  Return 0 if it is refused, EBUSY if not, or any other code if
 * that is not known. */
static int exclude_each_other(void *one, void *other, int64_t deadline_ns,
                              sqlock_error *err)
{
    static const char take[] = "SELECT pg_try_advisory_xact_lock($1)";
    /* Random, so that nobody else uses it. */
    const sqlock_value number = {.type = SQLOCK_INT64,
                                 .integer = lk_random_between(1, INT64_MAX)};
    bool is_ours = false;
    bool is_theirs = false;
    int rc;

    rc = lk_pg_begin(one, deadline_ns, err);
    if (rc == 0)
        rc = ask(one, take, &number, deadline_ns, &is_ours, err);
    if (rc == 0)
        rc = ask(other, take, &number, deadline_ns, &is_theirs, err);
    (void)lk_driver_postgres.rollback(one, deadline_ns, NULL);
    switch (rc) {
    case 0:
        if (is_ours && !is_theirs)
            return 0;
        break;
    case SQLOCK_EDATABASE:
    case SQLOCK_ENOTSUP:
    case SQLOCK_EACCESS:
        break;
    case SQLOCK_EBUSY: /* a time limit */
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the advisory locks could not be tried in time");
    default:
        return rc;
    }
    return lk_error(err, SQLOCK_EBUSY,
                    "this server has no advisory locks, or they exclude "
                    "nobody");
}

static int pg_has_own_session(void *one, void *other, int64_t deadline_ns,
                              sqlock_error *err)
{
    int rc =
        lk_own_session(&lk_driver_postgres, "SELECT pg_backend_pid()::text",
                       one, other, deadline_ns, err);

    return rc < 0 ? rc : exclude_each_other(one, other, deadline_ns, err);
}

const sqlock_wait_queue lk_pg_wait_queue = {
    .layouts = 1u << SQLOCK_LAYOUT_SQLOCK,
    .has_own_session = pg_has_own_session,
    .enqueue = pg_enqueue,
    .subscribe = pg_subscribe,
    .await = pg_await,
    .leave = pg_leave,
};
