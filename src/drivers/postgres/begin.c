/*
 * begin.c - begin a transaction, which the server ends when its client vanishes
 *
 * A machine that dies, or a network that is cut, says nothing to the server,
 * whose session keeps its row locks for as long as it waits for the next
 * statement.  So the limit of an idle transaction, and the probes of TCP, which
 * notice the loss while the server sends, go with each BEGIN, in one round
 * trip.  They end with the transaction: the session may be another client's
 * then, behind a pooler.
 */
#include <stdio.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

#define OURS "BEGIN ISOLATION LEVEL READ COMMITTED"
#define IDLE "current_setting('idle_in_transaction_session_timeout')"

/* A shorter limit of the role or the server stays; 0 is none. */
#define SET_IDLE                                                               \
    "SELECT CASE WHEN " IDLE " = '0' OR " IDLE "::interval > '%u ms' "         \
    "THEN set_config('idle_in_transaction_session_timeout', '%u', true) END"
#define SET_TCP                                                                \
    ", set_config('tcp_user_timeout', '%u', true)"                             \
    ", set_config('tcp_keepalives_idle', '%u', true)"                          \
    ", set_config('tcp_keepalives_interval', '%u', true)"                      \
    ", set_config('tcp_keepalives_count', '" LK_PG_PROBES "', true)"

static PGTransactionStatusType state_of(const lk_pg *session)
{
    return session->conn == NULL ? PQTRANS_UNKNOWN
                                 : PQtransactionStatus(session->conn);
}

int lk_pg_begin(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    uint32_t ms = session->idle_ms;
    char text[640];
    int rc;

    if (state_of(session) == PQTRANS_INTRANS ||
        state_of(session) == PQTRANS_INERROR)
        return lk_error(err, SQLOCK_EINVAL, "there is a transaction already");
    if (session->is_adopted)
        return lk_pg_simple(session, "BEGIN", deadline_ns, NULL, err);
    if (ms == 0)
        return lk_pg_simple(session, OURS, deadline_ns, NULL, err);
    session->present_idle_ms = ms;
    (void)snprintf(text, sizeof text, OURS "; " SET_IDLE SET_TCP, ms, ms, ms,
                   lk_pg_probe_after_s(session), lk_pg_probe_every_s(session));
    rc = lk_pg_simple(session, text, deadline_ns, NULL, err);
    if (rc < 0 && !session->dead && state_of(session) != PQTRANS_IDLE)
        (void)lk_pg_simple(session, "ROLLBACK", deadline_ns, NULL, NULL);
    return rc;
}

/* A limit that is not ours is shorter, and stays. */
int lk_pg_outlast(void *connection, uint32_t idle_ms, int64_t deadline_ns,
                  sqlock_error *err)
{
    lk_pg *session = connection;
    char text[320];
    int rc;

    (void)snprintf(text, sizeof text,
                   "SELECT set_config('idle_in_transaction_session_timeout', "
                   "'%u', true) WHERE " IDLE "::interval = '%u ms'",
                   idle_ms, session->present_idle_ms);
    rc = lk_pg_simple(session, text, deadline_ns, NULL, err);
    if (rc == 0)
        session->present_idle_ms = idle_ms;
    return rc;
}
