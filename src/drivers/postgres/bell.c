/*
 * bell.c - the bell of PostgreSQL: LISTEN, and pg_notify('sqlock_' || NAME,
 * TEXT) in the statement of whoever rings; or 'sqlock_leaders', at all bells
 *
 * The server sends a notification at the commit, to sessions that are in no
 * transaction; one that only listens keeps no snapshot, so it may wait for any
 * time.
 */
#include <stdio.h>

#include "base/error.h"
#include "drivers/bell.h"
#include "drivers/postgres/session.h"

#define LISTEN "LISTEN sqlock_leaders; LISTEN sqlock_"

static int pg_begin(void *connection, const char *name, int64_t until_ns,
                    int64_t deadline_ns, sqlock_error *err)
{
    lk_pg *session = connection;
    char text[sizeof LISTEN + SQLOCK_BELL_MAX];
    int rc = lk_check_bell(name, err);

    (void)until_ns;
    if (rc < 0)
        return rc;
    if (session->is_lent)
        return lk_error(err, SQLOCK_ENOTSUP,
                        "a pooler lends this connection changing sessions of "
                        "the server, and none of them would listen for it");
    if (lk_pg_transactions.state(session) != SQLOCK_TX_NONE &&
        lk_pg_transactions.state(session) != SQLOCK_TX_GONE)
        return lk_error(err, SQLOCK_EINVAL,
                        "a session listens only outside of a transaction");
    (void)snprintf(text, sizeof text, LISTEN "%s", name);
    return lk_pg_simple(session, text, deadline_ns, NULL, err);
}

static int pg_descriptor(void *connection)
{
    const lk_pg *session = connection;

    return session->conn == NULL ? -1 : PQsocket(session->conn);
}

/* Call `rung`, if there is one, for each notification that libpq has read, and
 * return how many there were. */
static size_t hand_on(lk_pg *session, void (*rung)(void *, const char *),
                      void *context)
{
    PGnotify *note;
    size_t count = 0;

    while ((note = PQnotifies(session->conn)) != NULL) {
        if (rung != NULL)
            rung(context, note->extra);
        PQfreemem(note);
        count++;
    }
    return count;
}

/* Read as long as something comes: what libpq and, with TLS, OpenSSL have read
 * of the socket, poll() does not see. */
static int pg_hear(void *connection, void (*rung)(void *, const char *),
                   void *context)
{
    lk_pg *session = connection;
    size_t count = 0;
    size_t more;

    if (session->conn == NULL || atomic_load(&session->aborted))
        return SQLOCK_EUNREACHABLE;
    do {
        if (PQconsumeInput(session->conn) == 0)
            session->dead = true;
        more = hand_on(session, rung, context);
        count += more;
    } while (more > 0);
    if (session->dead || PQstatus(session->conn) != CONNECTION_OK)
        return SQLOCK_EUNREACHABLE;
    return count > 0 ? 0 : SQLOCK_EBUSY;
}

static int pg_end(void *connection, int64_t deadline_ns, sqlock_error *err)
{
    int rc = lk_pg_simple(connection, "UNLISTEN *", deadline_ns, NULL, err);

    if (rc == 0)
        (void)hand_on(connection, NULL, NULL);
    return rc;
}

const sqlock_bell lk_pg_bell = {
    .keeps_rings = true,
    .begin = pg_begin,
    .descriptor = pg_descriptor,
    .hear = pg_hear,
    .end = pg_end,
};
