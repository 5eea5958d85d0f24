/*
 * session.h - one PostgreSQL session, shared by the files of this driver
 *
 * wait.c waits for its socket, open.c connects it, query.c runs statements on
 * it, values.c converts parameters and results, outcome.c judges outcomes,
 * adopt.c borrows a session of the application; driver.c puts these together.
 */
#ifndef LK_POSTGRES_SESSION_H
#define LK_POSTGRES_SESSION_H

#include <libpq-fe.h>
#include <sys/types.h>

#include "sqlock/driver.h"

#define LK_PG_LIMITS 2
#define LK_PG_NAME_SIZE 48 /* of a prepared statement */
/* FOR KEY SHARE would let a takeover pass: it changes no key. */
#define LK_PG_SHARE_FREE " FOR SHARE SKIP LOCKED"

/* All zero is a session that was never opened. */
typedef struct lk_pg {
    PGconn *conn;
    pid_t pid;       /* the process that opened it (F17) */
    bool is_adopted; /* the application's */

    /* Under the mutex of wait.c, for abort from another thread. */
    int fd;       /* valid while waiting */
    bool waiting; /* in poll(): libpq cannot close or replace the socket now */
    bool aborted; /* for good */

    bool dead;           /* not to be used any more, only closed */
    bool was_looked_at;  /* by is_alive, and nothing was sent since */
    bool watches_commit; /* a warning now means an unsafe commit (F58) */
    bool unsafe_commit;  /* ... and there was one */
    char sqlstate[6];    /* of the last statement that failed, or "" */
    char epoch[SQLOCK_EPOCH_SIZE];
    char forgets[sizeof((sqlock_description *)0)->forgets];

    /* Prepared statements: their names by id - 1, "" for none. */
    char prepared[SQLOCK_STATEMENT_IDS][LK_PG_NAME_SIZE];
    bool is_unprepared;  /* behind a pooler that lends backends: none is */
    unsigned generation; /* part of their names */

    char limits[LK_PG_LIMITS][32]; /* of time, as they were set before */
} lk_pg;

/* ---------------------------------------------------------------- wait.c -- */

enum { LK_PG_READY = 1, LK_PG_TIME_IS_UP = 0, LK_PG_ABORTED = -1 };

/* Wait until fd is ready for events; *ready (may be NULL) gets revents. */
int lk_pg_wait(lk_pg *session, int fd, short events, int64_t deadline_ns,
               short *ready);

/* End the present wait and refuse all later ones.  Called from any thread. */
void lk_pg_abort(lk_pg *session);

bool lk_pg_is_aborted(lk_pg *session);

/* ------------------------------------------------------------- outcome.c -- */

/* Watch the server's notices.  Prints nothing. */
void lk_pg_watch_notices(lk_pg *session);

/* The result code of a failed statement, by SQLSTATE ("" when there is
 * none).  A SQLSTATE whose outcome is not known for sure is EUNCERTAIN. */
int lk_pg_code_of(const char *sqlstate);

/* Fill err from a PGRES_FATAL_ERROR and keep its SQLSTATE; `lost` is the code
 * for "the outcome is not known". */
int lk_pg_statement_error(lk_pg *session, const PGresult *result, int lost,
                          sqlock_error *err);

/* Fill err from a connection that could not be made. */
int lk_pg_connect_error(PGconn *conn, sqlock_error *err);

/* ---------------------------------------------------------------- open.c -- */

int lk_pg_check_url(const char *url, sqlock_error *err);

/* How far libpq has checked the server, by sslmode. */
sqlock_tls_check lk_pg_tls_check(const lk_pg *session);

/* Connect to the first host that accepts; settings are not made yet. */
int lk_pg_connect(lk_pg *session, const char *url, int64_t deadline_ns,
                  sqlock_error *err);

/* --------------------------------------------------------------- query.c -- */

bool lk_pg_is_alive(lk_pg *session);

/* Check that a statement can be sent now: 0, EUNREACHABLE, ECANCELED. */
int lk_pg_check(lk_pg *session, int64_t deadline_ns, sqlock_error *err);

/* Run one simple query of the driver's own; *tag (may be NULL) gets the
 * command tag. */
int lk_pg_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                 char tag[16], sqlock_error *err);

/* Run one simple query, and give the last cell of its first row as text, ""
 * when there is none or it is null. */
int lk_pg_ask(lk_pg *session, const char *text, int64_t deadline_ns, char *cell,
              size_t size, sqlock_error *err);

/* Run a statement: sqlock_driver.execute. */
int lk_pg_execute(void *connection, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  int64_t deadline_ns, sqlock_result *result,
                  sqlock_error *err);

#ifdef LIBPQ_HAS_PIPELINING
/* Assert and commit in one round trip: sqlock_transactions.commit_if. */
int lk_pg_commit_if(void *connection, const sqlock_statement *statement,
                    const sqlock_value *values, size_t count, size_t times,
                    int64_t deadline_ns, sqlock_error *err);
#endif

/* Judge by its tag what the server has made of a COMMIT. */
int lk_pg_judge_commit(const char *tag, sqlock_error *err);

/* ------------------------------------------------------------- dialect.c -- */

extern const sqlock_dialect lk_pg_dialect;
extern const sqlock_fragment lk_pg_polling[];
extern const sqlock_checks lk_pg_checks;

/* --------------------------------------------------------------- adopt.c -- */

extern const sqlock_transactions lk_pg_transactions;

/* --------------------------------------------------------------- stock.c -- */

extern const sqlock_stock_dialect lk_pg_stock;

/* ------------------------------------------------------------ queue.c -- */

extern const sqlock_wait_queue lk_pg_wait_queue;

#endif /* LK_POSTGRES_SESSION_H */
