/*
 * pipeline.c - several statements in one round trip: a commit on a condition, a
 * statement with the settings that it needs, and a BEGIN in a session that is
 * to be recognized
 *
 * After an error the server skips the rest, also the COMMIT.
 */
#include <stdio.h>
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

/* End the pipeline: from here on what was queued may reach the server. */
static int send_end(lk_pg *session, sqlock_error *err)
{
    return PQpipelineSync(session->conn) == 0
               ? lk_pg_lose(session, SQLOCK_EUNCERTAIN,
                            PQerrorMessage(session->conn), err)
               : 0;
}

static int send_commit(lk_pg *session, sqlock_error *err)
{
    int rc = send_text(session, "COMMIT", err);

    return rc < 0 ? rc : send_end(session, err);
}

/* The answers of a pipeline. */
struct answers {
    size_t done;       /* statements before the first error */
    PGresult *last[2]; /* the results of the last two; NULL: none */
};

static void clear(struct answers *answers)
{
    PQclear(answers->last[0]);
    PQclear(answers->last[1]);
}

/* Read the results of `count` statements, and the end of the pipeline.  Return
 * 0, or the code of the first error.  The caller clears the answers. */
static int read_answers(lk_pg *session, size_t count, int64_t deadline_ns,
                        struct answers *answers, sqlock_error *err)
{
    int rc = 0;

    *answers = (struct answers){0};
    for (size_t i = 0; i <= count; i++) {
        PGresult *result = NULL;
        int one = lk_pg_read(session, deadline_ns, SQLOCK_EUNCERTAIN, &result,
                             rc < 0 ? NULL : err);

        if (rc == 0)
            rc = one;
        if (i == count) {
            PQclear(result);
            break;
        }
        answers->done += rc == 0;
        PQclear(answers->last[0]);
        answers->last[0] = answers->last[1];
        answers->last[1] = result;
    }
    return rc;
}

/* Read the results of `count` statements and of the COMMIT, and the end of the
 * pipeline, as read_answers() does. */
static int read_committed(lk_pg *session, size_t count, int64_t deadline_ns,
                          struct answers *answers, sqlock_error *err)
{
    int rc = read_answers(session, count + 1, deadline_ns, answers, err);

    return rc == 0 ? lk_pg_judge_commit(PQcmdStatus(answers->last[1]), err)
                   : rc;
}

static int enter(lk_pg *session, sqlock_error *err)
{
    if (PQpipelineStatus(session->conn) != PQ_PIPELINE_OFF)
        return lk_error(err, SQLOCK_EINVAL,
                        "the application has begun a pipeline on the "
                        "connection: call PQexitPipelineMode() first");
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
    struct answers answers = {0};
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
        rc = read_committed(session, times, deadline_ns, &answers, err);
    clear(&answers);
    rc = leave(session, rc, err);
    /* A trigger that is deferred to the COMMIT may divide by 0, too. */
    if (rc == SQLOCK_EDATABASE && answers.done < times &&
        strcmp(session->sqlstate, DIVISION_BY_ZERO) == 0)
        return lk_error(err, SQLOCK_ENOTFOUND, "the row does not exist");
    if (rc < 0 && !session->dead && lk_pg_forget_stale(session, statement))
        return lk_error(err, SQLOCK_ERETRY,
                        "a prepared statement is no longer valid");
    return rc;
}

/* --------------------- a session that the application lends repeatedly -- */

/* A pooler has made up the number that the client library knows.  Then this
 * fails, and the server skips the rest. */
#define IS_OURS_ALONE "SELECT 1 / (pg_backend_pid() = %d)::integer"

static int send_prepare(lk_pg *session, const sqlock_call *call,
                        sqlock_error *err)
{
    const sqlock_statement *statement = call->statement;
    struct lk_pg_arguments arguments;
    int rc = lk_pg_fill_arguments(&arguments, call->values, call->count, err);

    if (rc == 0 &&
        PQsendPrepare(session->conn, session->prepared[statement->id - 1],
                      statement->text, arguments.count, arguments.types) == 0)
        rc = lk_pg_not_sent(session, err);
    return rc;
}

static int send_all_prepares(lk_pg *session, const sqlock_call *calls,
                             size_t count, sqlock_error *err)
{
    char text[sizeof IS_OURS_ALONE + 24];
    int rc;

    (void)snprintf(text, sizeof text, IS_OURS_ALONE,
                   PQbackendPID(session->conn));
    rc = send_text(session, text, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = send_prepare(session, &calls[i], err);
    return rc == 0 ? send_end(session, err) : rc;
}

static void give_names(lk_pg *session, const char *owner,
                       const sqlock_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        lk_pg_give_name(session, calls[i].statement, owner);
}

static bool has_failed_by(const lk_pg *session, const char *sqlstate)
{
    return !session->dead && strcmp(session->sqlstate, sqlstate) == 0;
}

int lk_pg_prepare_named(void *connection, const char *owner,
                        const sqlock_call *calls, size_t count,
                        int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    struct answers answers;
    int rc;

    rc = lk_pg_check(session, deadline_ns, err);
    if (rc == 0)
        rc = enter(session, err);
    if (rc < 0)
        return rc;
    give_names(session, owner, calls, count);
    rc = send_all_prepares(session, calls, count, err);
    if (rc == 0) {
        rc = read_answers(session, count + 1, deadline_ns, &answers, err);
        clear(&answers);
    }
    rc = leave(session, rc, err);
    if (rc < 0 && has_failed_by(session, DIVISION_BY_ZERO))
        return lk_error(err, SQLOCK_ENOTSUP, "a pooler lends the session");
    /* They were prepared before, and forgotten here. */
    if (rc < 0 && has_failed_by(session, LK_PG_KNOWN_STATEMENT))
        rc = 0;
    session->is_unprepared = rc < 0;
    return rc;
}

static int send_resume(lk_pg *session, const sqlock_statement *proof,
                       sqlock_error *err)
{
    int rc = send_text(session, "BEGIN", err);

    /* To describe it takes no snapshot. */
    if (rc == 0 && PQsendDescribePrepared(
                       session->conn, session->prepared[proof->id - 1]) == 0)
        rc = lk_pg_not_sent(session, err);
    return rc == 0 ? send_end(session, err) : rc;
}

int lk_pg_resume(void *connection, const char *owner, const sqlock_call *calls,
                 size_t count, int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    struct answers answers;
    bool is_another;
    int rc;

    rc = lk_pg_check(session, deadline_ns, err);
    if (rc == 0)
        rc = enter(session, err);
    if (rc < 0)
        return rc;
    give_names(session, owner, calls, count);
    rc = send_resume(session, calls[0].statement, err);
    if (rc == 0) {
        rc = read_answers(session, 2, deadline_ns, &answers, err);
        clear(&answers);
    }
    rc = leave(session, rc, err);
    session->is_unprepared = rc < 0;
    if (rc == 0 || session->dead)
        return rc;
    is_another = has_failed_by(session, LK_PG_UNKNOWN_STATEMENT);
    if (PQtransactionStatus(session->conn) != PQTRANS_IDLE &&
        lk_pg_simple(session, "ROLLBACK", deadline_ns, NULL, err) < 0)
        return lk_pg_lose(session, SQLOCK_EUNREACHABLE,
                          "its transaction did not end", err);
    return is_another ? lk_error(err, SQLOCK_ENOTFOUND,
                                 "the session has none of our statements")
                      : rc;
}

#endif

/* ----------------------------- a statement with settings of its own -- */

/* Run BEGIN, the settings, the statement and COMMIT: in one round trip, or,
 * with a libpq that has no pipelines, in three. */
static int run_between(lk_pg *session, const sqlock_statement *statement,
                       const struct lk_pg_arguments *arguments,
                       int64_t deadline_ns, PGresult **out, sqlock_error *err)
{
#ifdef LIBPQ_HAS_PIPELINING
    struct answers answers = {0};
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
        rc = read_committed(session, 3, deadline_ns, &answers, err);
    if (rc == 0) {
        *out = answers.last[0];
        answers.last[0] = NULL;
    }
    clear(&answers);
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
