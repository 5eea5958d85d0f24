/*
 * query.c - run one statement on a session: send it, wait until the deadline,
 * read all the server sends, return rows and count
 *
 * Only lk_pg_wait() waits, until the deadline; libpq's calls never block.
 * Nothing is sent twice, except a prepared statement that the server no longer
 * knows, and so has not executed.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "drivers/postgres/session.h"

/* ------------------------------------------------------------ the socket -- */

bool lk_pg_is_alive(lk_pg *session)
{
    struct pollfd entry = {.events = POLLIN};

    /* To an idle session the server sends only notifications, changes of
     * settings and its goodbye: read until nothing is left. */
    while (session->conn != NULL && !session->dead) {
        if (atomic_load(&session->aborted) ||
            PQstatus(session->conn) != CONNECTION_OK) {
            session->dead = true;
            break;
        }
        entry.fd = PQsocket(session->conn);
        if (poll(&entry, 1, 0) <= 0)
            return true;
        if (PQconsumeInput(session->conn) == 0)
            session->dead = true;
        else
            (void)PQisBusy(session->conn); /* parses the input */
    }
    return false;
}

int lk_pg_check(lk_pg *session, int64_t deadline_ns, sqlock_error *err)
{
    bool was_looked_at;

    session->sqlstate[0] = '\0';
    if (session->conn != NULL && atomic_load(&session->aborted))
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it was sent");
    was_looked_at = session->was_looked_at && !session->dead;
    session->was_looked_at = false;
    if (!was_looked_at && !lk_pg_is_alive(session))
        return lk_error(err, SQLOCK_EUNREACHABLE,
                        "the connection to PostgreSQL is closed%s",
                        session->was_too_idle
                            ? ": its transaction was idle for too long"
                            : "");
    if (sqlock_monotonic_ns() >= deadline_ns)
        return lk_error(err, SQLOCK_ECANCELED,
                        "the statement timed out before it was sent");
    return 0;
}

int lk_pg_lose(lk_pg *session, int code, const char *reason, sqlock_error *err)
{
    session->dead = true;
    return lk_error(err, code, "lost the connection to PostgreSQL: %.*s",
                    (int)strcspn(reason, "\n"), reason);
}

/* Wait until the next result can be read without blocking.  Return 0; or `lost`
 * if that fails or the deadline passes, and the session is dead. */
static int await_result(lk_pg *session, int64_t deadline_ns, int lost,
                        sqlock_error *err)
{
    short ready = 0;
    int unsent;

    for (;;) {
        unsent = PQflush(session->conn);
        if (unsent < 0)
            return lk_pg_lose(session, lost, PQerrorMessage(session->conn),
                              err);
        if (PQisBusy(session->conn) == 0)
            return 0;
        switch (lk_pg_wait(session, PQsocket(session->conn),
                           unsent > 0 ? POLLIN | POLLOUT : POLLIN, deadline_ns,
                           &ready)) {
        case LK_PG_READY:
            break;
        case LK_PG_TIME_IS_UP:
            /* No cancel request: it needs another connection to the same silent
             * server.  The time limits of the session end the statement. */
            return lk_pg_lose(session, lost, "no answer in time", err);
        default:
            return lk_pg_lose(session, lost, "aborted", err);
        }
        if ((ready & ~POLLOUT) != 0 && PQconsumeInput(session->conn) == 0)
            return lk_pg_lose(session, lost, PQerrorMessage(session->conn),
                              err);
    }
}

/* Return 0 for a result that is a success, or the code of its error, which is
 * `lost` if the outcome is not known. */
static int judge(lk_pg *session, const PGresult *result, int lost,
                 sqlock_error *err)
{
    switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
        return 0;
    case PGRES_FATAL_ERROR:
        return lk_pg_statement_error(session, result, lost, err);
#ifdef LIBPQ_HAS_PIPELINING
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: /* by an error that was reported before */
        return 0;
#endif
    case PGRES_EMPTY_QUERY:
        return lk_error(err, SQLOCK_EDATABASE, "the statement is empty");
    default: /* COPY, or what a later libpq may have */
        return lk_pg_lose(session, lost, "the answer is invalid", err);
    }
}

int lk_pg_read(lk_pg *session, int64_t deadline_ns, int lost, PGresult **out,
               sqlock_error *err)
{
    PGresult *last = NULL;
    PGresult *next;
    bool complete = false;
    int rc = 0;
    int bad;

    while (!session->dead) {
        bad = await_result(session, deadline_ns, lost, rc < 0 ? NULL : err);
        if (bad < 0) {
            rc = rc < 0 ? rc : bad;
            break;
        }
        next = PQgetResult(session->conn);
        if (next == NULL) {
            complete = true;
            break;
        }
        bad = judge(session, next, lost, rc < 0 ? NULL : err);
        if (rc == 0)
            rc = bad;
        PQclear(last);
        last = next;
    }
    /* Without memory libpq before 15 returns no result at all. */
    if (rc == 0 && (!complete || last == NULL))
        rc = lk_pg_lose(session, lost, "it ended early", err);
    if (rc == 0 && out != NULL) {
        *out = last;
        return 0;
    }
    PQclear(last);
    return rc;
}

void lk_pg_begin_watching(lk_pg *session, bool commits)
{
    session->watches_commit = commits;
    session->unsafe_commit = false;
}

int lk_pg_end_watching(lk_pg *session, int rc, sqlock_error *err)
{
    session->watches_commit = false;
    if (rc < 0 || !session->unsafe_commit)
        return rc;
    session->dead = true;
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "committed, but the wait for the synchronous standby was "
                    "ended before its answer");
}

int lk_pg_not_sent(lk_pg *session, sqlock_error *err)
{
    const char *reason = PQerrorMessage(session->conn);

    session->dead = true;
    return lk_error(err, SQLOCK_EUNREACHABLE, "cannot send to PostgreSQL: %.*s",
                    (int)strcspn(reason, "\n"), reason);
}

static int run_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                      PGresult **result, sqlock_error *err)
{
    int rc;

    rc = lk_pg_check(session, deadline_ns, err);
    if (rc < 0)
        return rc;
    if (PQsendQuery(session->conn, text) == 0)
        return lk_pg_not_sent(session, err);
    lk_pg_begin_watching(session, true);
    rc = lk_pg_read(session, deadline_ns, SQLOCK_EUNCERTAIN, result, err);
    return lk_pg_end_watching(session, rc, err);
}

int lk_pg_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                 char tag[16], sqlock_error *err)
{
    PGresult *result = NULL;
    int rc = run_simple(session, text, deadline_ns, &result, err);

    if (rc == 0 && tag != NULL)
        (void)snprintf(tag, 16, "%s",
                       result == NULL ? "" : PQcmdStatus(result));
    PQclear(result);
    return rc;
}

int lk_pg_ask(lk_pg *session, const char *text, int64_t deadline_ns, char *cell,
              size_t size, sqlock_error *err)
{
    PGresult *result = NULL;
    int rc = run_simple(session, text, deadline_ns, &result, err);

    *cell = '\0';
    if (rc == 0 && PQntuples(result) > 0) /* PQgetvalue: "" for null */
        (void)snprintf(cell, size, "%s",
                       PQgetvalue(result, 0, PQnfields(result) - 1));
    PQclear(result);
    return rc;
}

/* --------------------------------------------------- prepared statements -- */

static bool may_be_prepared(const lk_pg *session,
                            const sqlock_statement *statement)
{
    return statement->id > 0 && !session->is_unprepared &&
           !session->is_plain[statement->id - 1];
}

static bool is_prepared(const lk_pg *session, const sqlock_statement *statement)
{
    return may_be_prepared(session, statement) &&
           session->prepared[statement->id - 1][0] != '\0';
}

/* Return whether a statement that has a number is sent for the first time.  To
 * prepare it then would be a round trip more for a program that takes one lock
 * and ends. */
static bool is_first_time(lk_pg *session, const sqlock_statement *statement)
{
    bool was_sent = session->was_sent[statement->id - 1];

    session->was_sent[statement->id - 1] = true;
    return !was_sent;
}

/* Write the name of a prepared statement.  The name contains a hash of the
 * text: behind a pooler, where sessions share backends, another program may
 * have a statement with the same id. */
static void name_it(char name[LK_PG_NAME_SIZE], const lk_pg *session,
                    const sqlock_statement *statement)
{
    (void)snprintf(name, LK_PG_NAME_SIZE, "sqlock_%u_%016llx_%u", statement->id,
                   (unsigned long long)lk_hash_text(statement->text),
                   session->generation);
}

void lk_pg_give_name(lk_pg *session, const sqlock_statement *statement,
                     const char *owner)
{
    (void)snprintf(session->prepared[statement->id - 1], LK_PG_NAME_SIZE,
                   "sqlock_%s_%u", owner, statement->id);
}

static int prepare(lk_pg *session, const sqlock_statement *statement,
                   const struct lk_pg_arguments *arguments, int64_t deadline_ns,
                   sqlock_error *err)
{
    char *name = session->prepared[statement->id - 1];
    int rc;

    name_it(name, session, statement);
    rc = PQsendPrepare(session->conn, name, statement->text, arguments->count,
                       arguments->types);
    if (rc == 0)
        return lk_pg_not_sent(session, err);
    /* If the answer is lost, the statement itself has not been sent. */
    rc = lk_pg_read(session, deadline_ns, SQLOCK_EUNREACHABLE, NULL, err);
    /* The backend had the statement before a pooler lent it to us. */
    if (rc < 0 && strcmp(session->sqlstate, LK_PG_KNOWN_STATEMENT) == 0 &&
        PQtransactionStatus(session->conn) == PQTRANS_IDLE)
        rc = 0;
    if (rc < 0)
        name[0] = '\0';
    return rc;
}

int lk_pg_prepare_once(lk_pg *session, const sqlock_statement *statement,
                       const struct lk_pg_arguments *arguments,
                       int64_t deadline_ns, sqlock_error *err)
{
    int rc;

    session->sqlstate[0] = '\0';
    if (!may_be_prepared(session, statement) ||
        is_prepared(session, statement) || is_first_time(session, statement))
        return 0;
    rc = prepare(session, statement, arguments, deadline_ns, err);
    if (rc == 0)
        session->sqlstate[0] = '\0';
    return rc;
}

/* Return whether the state is one that a statement has whose table has changed
 * since it was prepared: no such table, column or function, or another type. */
static bool is_outdated(const char *sqlstate)
{
    return lk_text_is_listed("42P01|42703|42883|42804", sqlstate,
                             strlen(sqlstate));
}

bool lk_pg_forget_stale(lk_pg *session, const sqlock_statement *statement)
{
    if (!may_be_prepared(session, statement))
        return false;
    if (strcmp(session->sqlstate, LK_PG_UNKNOWN_STATEMENT) == 0 ||
        strcmp(session->sqlstate, LK_PG_KNOWN_STATEMENT) == 0 ||
        (session->is_adopted && strcmp(session->sqlstate, "0A000") == 0)) {
        session->is_unprepared = true;
        return true;
    }
    if (is_outdated(session->sqlstate) && is_prepared(session, statement)) {
        session->is_plain[statement->id - 1] = true;
        return true;
    }
    if (strcmp(session->sqlstate, "0A000") == 0) {
        memset(session->prepared, 0, sizeof session->prepared);
        session->generation++;
        return true;
    }
    return false;
}

/* ------------------------------------------------------------- execution -- */

int lk_pg_send(lk_pg *session, const sqlock_statement *statement,
               const struct lk_pg_arguments *arguments)
{
    const char *const *values = arguments->values;

    if (is_prepared(session, statement))
        return PQsendQueryPrepared(session->conn,
                                   session->prepared[statement->id - 1],
                                   arguments->count, values, NULL, NULL, 0);
    /* Not PQsendQuery(), which takes several statements. */
    return PQsendQueryParams(session->conn, statement->text, arguments->count,
                             arguments->types, values, NULL, NULL, 0);
}

int lk_pg_run(lk_pg *session, const sqlock_statement *statement,
              const struct lk_pg_arguments *arguments, int64_t deadline_ns,
              PGresult **out, sqlock_error *err)
{
    bool commits = PQtransactionStatus(session->conn) == PQTRANS_IDLE;
    int rc =
        lk_pg_prepare_once(session, statement, arguments, deadline_ns, err);

    if (rc < 0)
        return rc;
    if (lk_pg_send(session, statement, arguments) == 0)
        return lk_pg_not_sent(session, err);
    lk_pg_begin_watching(session, commits);
    rc = lk_pg_read(session, deadline_ns, SQLOCK_EUNCERTAIN, out, err);
    rc = lk_pg_end_watching(session, rc, err);
    if (rc < 0) {
        PQclear(*out);
        *out = NULL;
    }
    return rc;
}
