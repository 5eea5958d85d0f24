/*
 * connection.c - classify the last error of a connection, check that it can be
 * used, and abort its call from another thread
 *
 * lk_mysql_abort() shuts the socket down.  The server notices that only when it
 * next writes; until then the session's own time limits apply (F39).
 */
#include "drivers/mysql/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"

/* Keeps lk_mysql_abort() and the closing of `alarm` apart, so that only a
   socket that still belongs to its connection is shut down.  One mutex serves
   all connections: an all-zero connection has no mutex yet, and no thread holds
   this one for longer than a system call. */
LK_STATIC_MUTEX(alarm_guard);

static int fail(struct lk_mysql_connection *connection, unsigned int number,
                const char *state, const char *message,
                enum lk_mysql_stage stage, sqlock_error *err)
{
    bool was_sent = stage != LK_MYSQL_CONNECTING && stage != LK_MYSQL_PREPARING;
    int code;

    /* Callers pass RUNNING for both of these stages. */
    if (stage == LK_MYSQL_RUNNING && !connection->in_transaction)
        stage = LK_MYSQL_AUTOCOMMIT;
    code = lk_mysql_classify(number, stage);
    if (code == SQLOCK_EUNCERTAIN || lk_mysql_breaks(number))
        connection->is_broken = true;
    /* The call was aborted: report only what is certain. */
    if (atomic_load(&connection->was_aborted) && connection->is_broken)
        return sqlock_error_set(
            err, was_sent ? SQLOCK_EUNCERTAIN : SQLOCK_EUNREACHABLE,
            (int)number, state,
            "no answer from the MySQL server before the deadline");
    return sqlock_error_set(err, code, (int)number, state, "%s%s", message,
                            lk_mysql_hint(number));
}

int lk_mysql_fail(struct lk_mysql_connection *connection,
                  enum lk_mysql_stage stage, sqlock_error *err)
{
    MYSQL *mysql = connection->mysql;

    return fail(connection, mysql_errno(mysql), mysql_sqlstate(mysql),
                mysql_error(mysql), stage, err);
}

int lk_mysql_fail_statement(struct lk_mysql_connection *connection,
                            MYSQL_STMT *statement, enum lk_mysql_stage stage,
                            sqlock_error *err)
{
    return fail(connection, mysql_stmt_errno(statement),
                mysql_stmt_sqlstate(statement), mysql_stmt_error(statement),
                stage, err);
}

bool lk_mysql_is_quiet(const struct lk_mysql_connection *connection)
{
    struct pollfd watched = {.fd = connection->alarm, .events = POLLIN};

    return poll(&watched, 1, 0) <= 0; /* a signal may interrupt it */
}

/* Check that the connection can be used, before anything is sent. */
static int check(struct lk_mysql_connection *connection, int64_t deadline_ns,
                 sqlock_error *err)
{
    bool was_looked_at;
    int rc;

    rc = lk_mysql_client_enter(err);
    if (rc < 0)
        return rc;
    if (sqlock_monotonic_ns() >= deadline_ns)
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it was sent");
    if (atomic_load(&connection->was_aborted) && !connection->is_broken) {
        connection->is_broken = true;
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it was sent");
    }
    if (connection->awaits_bell && !connection->is_broken)
        return lk_error(err, SQLOCK_EINVAL,
                        "the connection waits for a bell: hear that first");
    was_looked_at = connection->was_looked_at;
    connection->was_looked_at = false;
    if (connection->is_broken || (connection->has_alarm && !was_looked_at &&
                                  !lk_mysql_is_quiet(connection))) {
        connection->is_broken = true;
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection to the MySQL server is closed");
    }
    return 0;
}

/* --- SIGPIPE --- */

/* With TLS both client libraries write through OpenSSL, which does not suppress
 * SIGPIPE, and which writes (an alert) even while it reads from a closed
 * connection.  By default the signal would end the program.  A library must not
 * change the program's handling of signals, so SIGPIPE is blocked in the
 * calling thread during a call, and discarded if it came.  This costs three
 * system calls; it is skipped where the client library suppresses SIGPIPE
 * itself. */
void lk_mysql_sigpipe_hold(struct lk_mysql_connection *connection)
{
    connection->holds_sigpipe =
        !lk_mysql_client_spares_sigpipe(connection->mysql);
    if (connection->holds_sigpipe)
        lk_signal_hold(&connection->sigpipe, SIGPIPE);
}

void lk_mysql_sigpipe_release(struct lk_mysql_connection *connection)
{
    if (connection->holds_sigpipe)
        lk_signal_release(&connection->sigpipe);
}

/* --- a call --- */

int lk_mysql_call_begin(struct lk_mysql_connection *connection,
                        int64_t deadline_ns, sqlock_error *err)
{
    int rc = check(connection, deadline_ns, err);

    if (rc == 0 && connection->dog != NULL)
        rc = lk_watchdog_arm(connection->dog, &connection->watch, deadline_ns,
                             err);
    if (rc == 0)
        lk_mysql_sigpipe_hold(connection);
    return rc;
}

void lk_mysql_call_end(struct lk_mysql_connection *connection)
{
    lk_mysql_sigpipe_release(connection);
    if (connection->dog != NULL)
        lk_watchdog_disarm(connection->dog, &connection->watch);
}

/* Duplicate the socket's descriptor for lk_mysql_abort().  The library may
 * close its own descriptor whenever a call fails, and the number may then
 * belong to another file; the duplicate stays valid until it is closed here. */
int lk_mysql_set_alarm(struct lk_mysql_connection *connection,
                       sqlock_error *err)
{
    int alarm =
        fcntl(lk_mysql_client_socket(connection->mysql), F_DUPFD_CLOEXEC, 3);

    if (alarm < 0)
        return lk_error_limit(err, "cannot watch a MySQL connection", errno);
    (void)pthread_mutex_lock(&alarm_guard);
    if (connection->has_alarm)
        (void)close(connection->alarm);
    connection->alarm = alarm;
    connection->has_alarm = true;
    (void)pthread_mutex_unlock(&alarm_guard);
    if (atomic_load(&connection->was_aborted))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "connecting to the MySQL server timed out: raise "
                        "connect_timeout_ms");
    return 0;
}

void lk_mysql_clear_alarm(struct lk_mysql_connection *connection)
{
    (void)pthread_mutex_lock(&alarm_guard);
    if (connection->has_alarm)
        (void)close(connection->alarm);
    memset(connection, 0, sizeof *connection);
    (void)pthread_mutex_unlock(&alarm_guard);
}

void lk_mysql_abort(void *handle)
{
    struct lk_mysql_connection *connection = handle;

    (void)pthread_mutex_lock(&alarm_guard);
    atomic_store(&connection->was_aborted, true);
    if (connection->has_alarm)
        (void)shutdown(connection->alarm, SHUT_RDWR);
    (void)pthread_mutex_unlock(&alarm_guard);
}
