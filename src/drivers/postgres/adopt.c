/*
 * adopt.c - the application's own transactions on its PGconn, and the
 * statements that lock and guard rows in them
 *
 * Nothing on the connection is changed for long, but for statements that are
 * prepared where it is adopted repeatedly (pipeline.c): settings are changed by
 * set_config(..., true) and set back, and the notice receiver is not replaced,
 * because libpq does not return the argument that is needed to restore the old
 * one.  So a warning that a commit did not wait for its standby (F58) reaches
 * only the application's notice receiver.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

/* Check that the server takes texts as UTF-8, without a round trip: the server
 * reports each change of the encoding to libpq.  With another encoding, one
 * order id could be stored as two texts. */
static int check_encoding(const PGconn *conn, sqlock_error *err)
{
    const char *encoding = PQparameterStatus(conn, "client_encoding");

    if (encoding != NULL && strcmp(encoding, "UTF8") == 0)
        return 0;
    return lk_error(err, SQLOCK_EINVAL,
                    "the client encoding of the connection is %s, and texts "
                    "are sent in UTF-8: call PQsetClientEncoding(conn, "
                    "\"UTF8\") first",
                    encoding == NULL ? "not known" : encoding);
}

/* Refuse a pipeline of the application's: our statements would go behind its
 * own, and their results, too. */
static int check_pipeline(const PGconn *conn, sqlock_error *err)
{
#ifdef LIBPQ_HAS_PIPELINING
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return lk_error(err, SQLOCK_EINVAL,
                        "the PostgreSQL connection is in pipeline mode: call "
                        "PQexitPipelineMode() first");
#else
    (void)conn;
    (void)err;
#endif
    return 0;
}

static int check_adopted(void *connection, sqlock_error *err)
{
    const lk_pg *session = connection;
    int rc;

    /* The statement itself reports a lost connection. */
    if (PQstatus(session->conn) != CONNECTION_OK)
        return 0;
    rc = check_pipeline(session->conn, err);
    return rc < 0 ? rc : check_encoding(session->conn, err);
}

static int adopt(void *connection, void *native, sqlock_error *err)
{
    lk_pg *session = connection;
    PGconn *conn = native;
    int rc;

    rc = lk_library_adopt(&lk_pg_library, err);
    if (rc < 0)
        return rc;
    if (PQstatus(conn) != CONNECTION_OK)
        return lk_error(err, SQLOCK_EINVAL,
                        "the PostgreSQL connection is not open");
    rc = check_pipeline(conn, err);
    if (rc < 0)
        return rc;
    switch (PQtransactionStatus(conn)) {
    case PQTRANS_IDLE:
    case PQTRANS_INTRANS:
        break;
    case PQTRANS_INERROR:
        return lk_error(err, SQLOCK_EINVAL,
                        "the transaction of this connection is aborted: roll "
                        "it back first");
    default:
        return lk_error(err, SQLOCK_EINVAL,
                        "a command is in progress on this connection: read its "
                        "results first");
    }
    rc = check_encoding(conn, err);
    if (rc < 0)
        return rc;
    session->conn = conn;
    session->pid = getpid();
    session->is_adopted = true;
    session->is_unprepared = true;
    return 0;
}

static void unadopt(void *connection, bool may_use)
{
    (void)may_use;
    memset(connection, 0, sizeof(lk_pg));
}

static sqlock_tx_state state(void *connection)
{
    const lk_pg *session = connection;

    if (session->conn == NULL || session->dead)
        return SQLOCK_TX_GONE;
    switch (PQtransactionStatus(session->conn)) {
    case PQTRANS_IDLE:
        return SQLOCK_TX_NONE;
    case PQTRANS_INTRANS:
        return SQLOCK_TX_OPEN;
    case PQTRANS_UNKNOWN:
        return SQLOCK_TX_GONE;
    default:
        return SQLOCK_TX_ABORTED;
    }
}

#ifdef LIBPQ_HAS_PIPELINING
static int64_t session_number(void *connection)
{
    const lk_pg *session = connection;

    return PQbackendPID(session->conn);
}

static bool is_prepared(void *connection)
{
    const lk_pg *session = connection;

    return !session->is_unprepared;
}
#endif

/* --- limits of time --- */

static int limit(void *connection, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err)
{
    /* Returns the old limits and sets the new ones: a select list is evaluated
     * from left to right. */
    static const sqlock_statement statement = {
        .text = "SELECT current_setting('lock_timeout'), "
                "current_setting('statement_timeout'), "
                "set_config('lock_timeout', $1, true), "
                "set_config('statement_timeout', '0', true)"};
    lk_pg *session = connection;
    sqlock_result result = {0};
    char number[24];
    sqlock_value value;
    int rc;

    (void)snprintf(number, sizeof number, "%lld", (long long)wait_ms);
    value = sqlock_text(number);
    rc = lk_pg_execute(session, &statement, &value, 1, deadline_ns, &result,
                       err);
    for (size_t i = 0; rc == 0 && i < LK_PG_LIMITS; i++)
        (void)snprintf(session->limits[i], sizeof session->limits[i], "%s",
                       result.cells[i].text);
    sqlock_result_clear(&result);
    return rc;
}

static int unlimit(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    static const sqlock_statement statement = {
        .text = "SELECT set_config('lock_timeout', $1, true), "
                "set_config('statement_timeout', $2, true)"};
    lk_pg *session = connection;
    sqlock_value values[LK_PG_LIMITS];
    sqlock_result result = {0};
    int rc;

    for (size_t i = 0; i < LK_PG_LIMITS; i++)
        values[i] = sqlock_text(session->limits[i]);
    rc = lk_pg_execute(session, &statement, values, LK_PG_LIMITS, deadline_ns,
                       &result, err);
    sqlock_result_clear(&result);
    return rc;
}

/* --- statements --- */

/* clang-format off */
#define IN_US(value) "(extract(epoch FROM " value ") * 1000000)::bigint"
/* clang-format on */

const sqlock_transactions lk_pg_transactions = {
    .update_free = " FOR UPDATE SKIP LOCKED",
    .update_wait = " FOR UPDATE",
    .share_free = " FOR SHARE SKIP LOCKED",
    .share_wait = " FOR SHARE",
    .wait_unit_ms = 1,
    .timestamp_us = IN_US("{column}"),
    /* Microseconds are added to the column's own value, so that no time zone
     * matters, whatever the column's type. */
    .next_timestamp =
        "{column} + greatest(1, " IN_US("clock_timestamp()") " - " IN_US(
            "{column}") ") * interval '1 microsecond'",
    .same_text = "{column}::text COLLATE \"C\" = {value}",
    .adopt = adopt,
    .unadopt = unadopt,
    .state = state,
    .limit = limit,
    .unlimit = unlimit,
    .outlast = lk_pg_outlast,
    .check_adopted = check_adopted,
#ifdef LIBPQ_HAS_PIPELINING
    .commit_if = lk_pg_commit_if,
    .session = session_number,
    .prepare = lk_pg_prepare_named,
    .resume = lk_pg_resume,
    .is_prepared = is_prepared,
#endif
};
