/*
 * pipeline.c - several statements in one round trip, with a COMMIT at the end:
 * a commit on a condition, and a statement with the settings that it needs
 *
 * After an error the server skips the rest, also the COMMIT.
 */
#include <string.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

#ifdef LIBPQ_HAS_PIPELINING

#define DIVISION_BY_ZERO "22012"

static int send_text(lk_pg *session, const char *text, sqlock_error *err)
{
    return PQsendQueryParams(session->conn, text, 0, NULL, NULL, NULL, NULL,
                             0) == 0
               ? lk_pg_not_sent(session, err)
               : 0;
}

static int send_commit(lk_pg *session, sqlock_error *err)
{
    int rc = send_text(session, "COMMIT", err);

    if (rc == 0 && PQpipelineSync(session->conn) == 0)
        rc = lk_pg_lose(session, SQLOCK_EUNCERTAIN,
                        PQerrorMessage(session->conn), err);
    return rc;
}

/* Read the results of `count` statements and of the COMMIT, and the end of the
 * pipeline.  Return 0, or the code of the first error.  On success *out (may be
 * NULL) gets the result of the last statement, which the caller clears. */
static int read_pipeline(lk_pg *session, size_t count, int64_t deadline_ns,
                         PGresult **out, sqlock_error *err)
{
    PGresult *committed = NULL;
    PGresult *last = NULL;
    int rc = 0;

    for (size_t i = 0; i < count + 2; i++) {
        PGresult *result = NULL;
        int one = lk_pg_read(session, deadline_ns, SQLOCK_EUNCERTAIN, &result,
                             rc < 0 ? NULL : err);

        if (rc == 0)
            rc = one;
        if (one == 0 && i == count)
            committed = result;
        else if (one == 0 && i + 1 == count)
            last = result;
        else
            PQclear(result);
    }
    if (rc == 0)
        rc = lk_pg_judge_commit(PQcmdStatus(committed), err);
    PQclear(committed);
    if (rc == 0 && out != NULL)
        *out = last;
    else
        PQclear(last);
    return rc;
}

static int enter(lk_pg *session, sqlock_error *err)
{
    if (PQenterPipelineMode(session->conn) == 0)
        return lk_pg_not_sent(session, err);
    lk_pg_begin_watching(session, true);
    return 0;
}

/* Leave the pipeline mode after a pipeline that ended with rc. */
static int leave(lk_pg *session, int rc, sqlock_error *err)
{
    rc = lk_pg_end_watching(session, rc, err);
    if (PQexitPipelineMode(session->conn) == 0)
        session->dead = true;
    return rc;
}

/* ----------------------------------------------- a commit on a condition -- */

/* Send the statement `times` times, each with `count` of the values. */
static int send_times(lk_pg *session, const sqlock_statement *statement,
                      const sqlock_value *values, size_t count, size_t times,
                      sqlock_error *err)
{
    struct lk_pg_arguments arguments;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < times; i++) {
        rc = lk_pg_fill_arguments(&arguments, values + i * count, count, err);
        if (rc == 0 && lk_pg_send(session, statement, &arguments) == 0)
            rc = lk_pg_not_sent(session, err);
    }
    return rc;
}

int lk_pg_commit_if(void *connection, const sqlock_statement *statement,
                    const sqlock_value *values, size_t count, size_t times,
                    int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    struct lk_pg_arguments arguments;
    int rc;

    rc = lk_pg_check(session, deadline_ns, err);
    if (rc == 0)
        rc = lk_pg_fill_arguments(&arguments, values, count, err);
    if (rc == 0)
        rc = lk_pg_prepare_once(session, statement, &arguments, deadline_ns,
                                err);
    if (rc == 0)
        rc = enter(session, err);
    if (rc < 0)
        return rc;
    rc = send_times(session, statement, values, count, times, err);
    if (rc == 0)
        rc = send_commit(session, err);
    if (rc == 0)
        rc = read_pipeline(session, times, deadline_ns, NULL, err);
    rc = leave(session, rc, err);
    if (rc == SQLOCK_EDATABASE &&
        strcmp(session->sqlstate, DIVISION_BY_ZERO) == 0)
        return lk_error(err, SQLOCK_ENOTFOUND, "the row does not exist");
    if (rc < 0 && !session->dead && lk_pg_forget_stale(session, statement))
        return lk_error(err, SQLOCK_ERETRY,
                        "a prepared statement is no longer valid");
    return rc;
}

#endif

/* ------------------------------------- a statement in a lent session -- */

/* Run BEGIN, the settings, the statement and COMMIT: in one round trip, or,
 * with a libpq that has no pipelines, in three. */
static int run_between(lk_pg *session, const sqlock_statement *statement,
                       const struct lk_pg_arguments *arguments,
                       int64_t deadline_ns, PGresult **out, sqlock_error *err)
{
#ifdef LIBPQ_HAS_PIPELINING
    int rc = enter(session, err);

    if (rc < 0)
        return rc;
    rc = send_text(session, LK_PG_BEGIN, err);
    if (rc == 0)
        rc = send_text(session, session->settings, err);
    if (rc == 0 && lk_pg_send(session, statement, arguments) == 0)
        rc = lk_pg_not_sent(session, err);
    if (rc == 0)
        rc = send_commit(session, err);
    if (rc == 0)
        rc = read_pipeline(session, 3, deadline_ns, out, err);
    return leave(session, rc, err);
#else
    int rc = lk_pg_begin(session, deadline_ns, err);

    if (rc == SQLOCK_EUNCERTAIN)
        rc = lk_error(err, SQLOCK_EUNREACHABLE,
                      "the connection was lost before the transaction began");
    if (rc == 0)
        rc = lk_pg_run(session, statement, arguments, deadline_ns, out, err);
    return rc < 0 ? rc : lk_pg_commit(session, deadline_ns, err);
#endif
}

int lk_pg_run_lent(lk_pg *session, const sqlock_statement *statement,
                   const struct lk_pg_arguments *arguments, int64_t deadline_ns,
                   PGresult **out, sqlock_error *err)
{
    char sqlstate[sizeof session->sqlstate];
    int rc = run_between(session, statement, arguments, deadline_ns, out, err);

    if (rc == 0 || session->dead ||
        PQtransactionStatus(session->conn) == PQTRANS_IDLE)
        return rc;
    /* The transaction, which has failed, commits nothing: so the outcome is
     * known, even if the rollback gets no answer. */
    memcpy(sqlstate, session->sqlstate, sizeof sqlstate);
    if (lk_pg_simple(session, "ROLLBACK", deadline_ns, NULL, NULL) < 0)
        session->dead = true;
    memcpy(session->sqlstate, sqlstate, sizeof sqlstate);
    return rc;
}
