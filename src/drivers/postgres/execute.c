/*
 * execute.c - run one statement, and hand up its rows
 */
#include "base/error.h"
#include "drivers/postgres/session.h"

/* Return whether a statement outside of a transaction needs one that begins
 * with session->settings. */
static bool needs_settings(const lk_pg *session,
                           const sqlock_statement *statement)
{
    return session->settings[0] != '\0' &&
           (session->is_lent || !statement->may_be_lost);
}

/* Run a statement, and once more if the server no longer knows what was
 * prepared. */
static int run_again(lk_pg *session, const sqlock_statement *statement,
                     const struct lk_pg_arguments *arguments,
                     int64_t deadline_ns, PGresult **out, sqlock_error *err)
{
    bool in_transaction = PQtransactionStatus(session->conn) != PQTRANS_IDLE;
    int (*run)(lk_pg *, const sqlock_statement *,
               const struct lk_pg_arguments *, int64_t, PGresult **,
               sqlock_error *) =
        !in_transaction && needs_settings(session, statement) ? lk_pg_run_lent
                                                              : lk_pg_run;
    int rc = run(session, statement, arguments, deadline_ns, out, err);

    if (rc == 0 || session->dead || !lk_pg_forget_stale(session, statement))
        return rc;
    if (in_transaction) /* which the error has aborted */
        return lk_error(err, SQLOCK_ERETRY,
                        "a prepared statement is no longer valid");
    return run(session, statement, arguments, deadline_ns, out, err);
}

int lk_pg_execute(void *connection, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  int64_t deadline_ns, sqlock_result *result, sqlock_error *err)
{
    lk_pg *session = connection;
    struct lk_pg_arguments arguments;
    PGresult *source = NULL;
    int rc;

    if (statement->id > SQLOCK_STATEMENT_IDS)
        return lk_error(err, SQLOCK_EINVAL, "statement id %u is too large",
                        statement->id);
    rc = lk_pg_fill_arguments(&arguments, parameters, count, err);
    if (rc < 0)
        return rc;
    rc = lk_pg_check(session, deadline_ns, err);
    if (rc < 0)
        return rc;

    rc = run_again(session, statement, &arguments, deadline_ns, &source, err);
    if (rc == 0 && source != NULL)
        rc = lk_pg_hand_up(result, source, err);
    PQclear(source); /* also if the commit behind its statement failed */
    return rc;
}
