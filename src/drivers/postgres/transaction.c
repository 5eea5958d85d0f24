/*
 * transaction.c - begin and end a transaction, with limits for a client that
 * vanishes in it
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "drivers/postgres/session.h"

static PGTransactionStatusType state_of(const lk_pg *session)
{
    return session->conn == NULL ? PQTRANS_UNKNOWN
                                 : PQtransactionStatus(session->conn);
}

/* A machine that dies, or a network that is cut, says nothing to the server,
 * whose session keeps its row locks for as long as it waits for the next
 * statement.  So the limit of an idle transaction, and the probes of TCP, which
 * notice the loss while the server sends, go with each BEGIN, in one round
 * trip.  They end with the transaction: the session may be another client's
 * then, behind a pooler. */
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

/* Write BEGIN, the settings that a session lacks which a pooler lends, and the
 * limits. */
static void write_begin(const lk_pg *session, char *text, size_t size)
{
    uint32_t ms = session->idle_ms;
    size_t used;

    used = (size_t)snprintf(text, size, "%s%s%s", LK_PG_BEGIN,
                            session->settings[0] != '\0' ? "; " : "",
                            session->settings);
    if (ms != 0)
        (void)snprintf(text + used, size - used, "; " SET_IDLE SET_TCP, ms, ms,
                       ms, lk_pg_probe_after_s(session),
                       lk_pg_probe_every_s(session));
}

int lk_pg_begin(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    char text[LK_PG_SETTINGS_SIZE + 640];
    int rc;

    if (state_of(session) == PQTRANS_INTRANS ||
        state_of(session) == PQTRANS_INERROR)
        return lk_error(err, SQLOCK_EINVAL, "there is a transaction already");
    if (session->is_adopted)
        return lk_pg_simple(session, "BEGIN", deadline_ns, NULL, err);
    session->present_idle_ms = session->idle_ms;
    write_begin(session, text, sizeof text);
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

/* After an error in the transaction a COMMIT rolls back, and only its command
 * tag says so (F26). */
int lk_pg_judge_commit(const char *tag, sqlock_error *err)
{
    if (strcmp(tag, "COMMIT") == 0)
        return 0;
    return lk_error(err, SQLOCK_EDATABASE,
                    "rolled back instead of committed: a statement of the "
                    "transaction had failed");
}

int lk_pg_commit(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    char tag[16];
    int rc;

    if (state_of(session) == PQTRANS_IDLE)
        return lk_error(err, SQLOCK_EINVAL, "there is no transaction");
    rc = lk_pg_simple(session, "COMMIT", deadline_ns, tag, err);
    return rc < 0 ? rc : lk_pg_judge_commit(tag, err);
}

int lk_pg_rollback(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;

    if (state_of(session) == PQTRANS_IDLE)
        return 0;
    return lk_pg_simple(session, "ROLLBACK", deadline_ns, NULL, err);
}
