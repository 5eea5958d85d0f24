/*
 * session.h - one PostgreSQL session, shared by the files of this driver
 *
 * wait.c waits for its socket, open.c connects it, query.c runs statements on
 * it and pipeline.c several in one round trip, values.c converts parameters and
 * results, outcome.c judges outcomes, adopt.c borrows a session of the
 * application; driver.c puts these together.
 */
#ifndef LK_POSTGRES_SESSION_H
#define LK_POSTGRES_SESSION_H

#include <stdatomic.h>
#include <sys/types.h>

#include "drivers/postgres/client.h"
#include "db/driver.h"

#define LK_PG_LIMITS 2
#define LK_PG_NAME_SIZE 48 /* of a prepared statement */
/* FOR KEY SHARE would not stop an UPDATE that takes the lease over, since such
 * an UPDATE changes no key column. */
#define LK_PG_BEGIN "BEGIN ISOLATION LEVEL READ COMMITTED"
#define LK_PG_SETTINGS_SIZE 1536
#define LK_PG_UNKNOWN_STATEMENT "26000" /* invalid_sql_statement_name */
#define LK_PG_KNOWN_STATEMENT "42P05"   /* duplicate_prepared_statement */

/* All zero is a session that was never opened. */
typedef struct lk_pg {
    PGconn *conn;
    pid_t pid;       /* the process that opened it (F17) */
    bool is_adopted; /* conn is the application's */

    /* Under the mutex of wait.c, for abort from another thread. */
    int fd;       /* valid while waiting */
    bool waiting; /* in poll(): libpq cannot close or replace the socket now */
    atomic_bool aborted; /* for good */

    bool dead;                  /* not to be used any more, only closed */
    bool was_looked_at;         /* by is_alive, and nothing was sent since */
    bool watches_commit;        /* a warning now means an unsafe commit (F58) */
    bool unsafe_commit;         /* ... and there was one */
    char sqlstate[6];           /* of the last statement that failed, or "" */
    sqlock_tls_check tls_check; /* what libpq has checked, by sslmode */
    char epoch[SQLOCK_EPOCH_SIZE];
    bool is_standby; /* when the session was opened */
    char forgets[sizeof((sqlock_description *)0)->forgets];

    /* Names of prepared statements by id - 1; "": not prepared. */
    char prepared[SQLOCK_STATEMENT_IDS][LK_PG_NAME_SIZE];
    bool was_sent[SQLOCK_STATEMENT_IDS]; /* by id - 1 */
    /* by id - 1: its table has changed; a trigger may give the same state */
    bool is_plain[SQLOCK_STATEMENT_IDS];
    /* none is prepared: a pooler lends backends, or the session is the
     * application's, and only those are prepared that have names already */
    bool is_unprepared;
    /* A pooler may lend the session to others between two transactions, so
     * nothing is left on it. */
    bool is_lent;
    /* the statement that makes the settings for one transaction: those that a
     * lent session lacks; or, with durability=fast, the one by which its commit
     * waits for the disk.  "": they were made for the session */
    char settings[LK_PG_SETTINGS_SIZE];
    unsigned generation; /* a number in the names */

    uint32_t idle_ms;         /* a transaction's limit of idle time; 0: none */
    uint32_t present_idle_ms; /* of the present transaction */
    bool was_too_idle;        /* the server ended the session by that limit */
    char limits[LK_PG_LIMITS][32]; /* time limits that unlimit restores */
} lk_pg;

/* ---------------------------------------------------------------- wait.c -- */

enum { LK_PG_READY = 1, LK_PG_TIME_IS_UP = 0, LK_PG_ABORTED = -1 };

/* Wait until fd is ready for `events`, as of poll().  Return LK_PG_READY, and
 * in *ready (may be NULL) the revents; LK_PG_TIME_IS_UP at the deadline; or
 * LK_PG_ABORTED after lk_pg_abort(). */
int lk_pg_wait(lk_pg *session, int fd, short events, int64_t deadline_ns,
               short *ready);

/* End the present wait and refuse all later ones.  Any thread may call this at
 * any time. */
void lk_pg_abort(lk_pg *session);

/* ------------------------------------------------------------- outcome.c -- */

/* Set a notice receiver that prints nothing, and notes in the session when the
 * server ends it, or warns that a commit is unsafe. */
void lk_pg_watch_notices(lk_pg *session);

/* Return the result code for the SQLSTATE of a failed statement: EUNCERTAIN if
 * there is none ("" or NULL), or it leaves the outcome open. */
int lk_pg_code_of(const char *sqlstate);

/* Fill err from a PGRES_FATAL_ERROR, keep its SQLSTATE in the session, and
 * return its code.  If the outcome is not known, return `lost` instead, and
 * mark the session as dead. */
int lk_pg_statement_error(lk_pg *session, const PGresult *result, int lost,
                          sqlock_error *err);

/* Fill err for a connection that could not be made.  Return EUNREACHABLE,
 * EACCESS, EINVAL (the server refuses a setting), ESCHEMA or ERESOURCE. */
int lk_pg_connect_error(PGconn *conn, sqlock_error *err);

/* As lk_pg_connect_error(), after PQconnectStartParams(); also EINVAL: libpq
 * refuses a parameter, or no host has that name. */
int lk_pg_start_error(PGconn *conn, sqlock_error *err);

/* As lk_pg_connect_error(), after a failed TLS handshake with a server that has
 * answered; EACCESS in place of EUNREACHABLE. */
int lk_pg_tls_error(PGconn *conn, sqlock_error *err);

/* Look at the first answer of a server, and leave it unread.  Return 0; EINVAL
 * if it is not one of PostgreSQL. */
int lk_pg_check_peer(PGconn *conn, sqlock_error *err);

/* ---------------------------------------------------------------- open.c -- */

int lk_pg_check_url(struct lk_url *url, sqlock_error *err);

/* Return when TCP begins to probe a silent peer, and how often it repeats that:
 * three probes fit into idle_ms, which is not 0. */
unsigned lk_pg_probe_after_s(const lk_pg *session);
unsigned lk_pg_probe_every_s(const lk_pg *session);
#define LK_PG_PROBES "3"

/* Connect to the first host of the URL that accepts, without making settings.
 * Return as sqlock_driver.open; after a failure session->conn is NULL. */
int lk_pg_connect(lk_pg *session, const struct lk_url *url, int64_t deadline_ns,
                  sqlock_error *err);

/* -------------------------------------------------------------- values.c -- */

#define LK_PG_PARAMETERS_MAX 64
#define LK_PG_INTEGER_SIZE 24

/* Parameters as libpq takes them, in text format.  Integers are declared as
 * such; the type of a text is left to the server, which infers it: with a
 * LOCK_KEY that is declared as text, the primary key, which is CHAR, would not
 * be used. */
struct lk_pg_arguments {
    int count;
    Oid types[LK_PG_PARAMETERS_MAX];
    const char *values[LK_PG_PARAMETERS_MAX];
    char integers[LK_PG_PARAMETERS_MAX][LK_PG_INTEGER_SIZE];
};

/* Convert parameters.  Texts are not copied, so they must stay valid as long as
 * `arguments`.  Return 0, or EINVAL if there are too many. */
int lk_pg_fill_arguments(struct lk_pg_arguments *arguments,
                         const sqlock_value *parameters, size_t count,
                         sqlock_error *err);

/* Copy the rows of a successful result, and set the number of changed rows.
 * Return 0, or EUNCERTAIN if memory is out; `result` is then empty. */
int lk_pg_hand_up(sqlock_result *result, PGresult *source, sqlock_error *err);

/* --------------------------------------------------------------- query.c -- */

bool lk_pg_is_alive(lk_pg *session);

/* Check that a statement can be sent now.  Return 0; EUNREACHABLE if the
 * connection is closed; or ECANCELED if the session was aborted or the deadline
 * has passed. */
int lk_pg_check(lk_pg *session, int64_t deadline_ns, sqlock_error *err);

/* Run a text of the driver's own as a simple query, which may have several
 * statements.  On success, tag (may be NULL) gets the command tag of the last.
 * Return as sqlock_driver.execute. */
int lk_pg_simple(lk_pg *session, const char *text, int64_t deadline_ns,
                 char tag[16], sqlock_error *err);

/* Run a text as lk_pg_simple() does, and copy the last cell of its first row to
 * `cell`, of `size` bytes; "" on failure, without a row, and for null. */
int lk_pg_ask(lk_pg *session, const char *text, int64_t deadline_ns, char *cell,
              size_t size, sqlock_error *err);

/* Run a statement: sqlock_driver.execute. */
int lk_pg_execute(void *connection, const sqlock_statement *statement,
                  const sqlock_value *parameters, size_t count,
                  int64_t deadline_ns, sqlock_result *result,
                  sqlock_error *err);

/* Mark the session dead: its connection was lost with a statement in flight.
 * Return `code`. */
int lk_pg_lose(lk_pg *session, int code, const char *reason, sqlock_error *err);

/* Return EUNREACHABLE for a statement that libpq could not even queue: the
 * server does nothing with an incomplete statement. */
int lk_pg_not_sent(lk_pg *session, sqlock_error *err);

/* Read all results of a statement.  Outside a transaction it commits after
 * sending its result: success is only known when nothing is left to read.
 * Return 0, or the code of the first error; `lost` is the code for an unknown
 * outcome.  On success *out (may be NULL) gets the last result, which the
 * caller clears. */
int lk_pg_read(lk_pg *session, int64_t deadline_ns, int lost, PGresult **out,
               sqlock_error *err);

/* Forget earlier notices and, if `commits`, watch for the warning that a commit
 * is unsafe (F58): of a COMMIT, or of a statement outside a transaction. */
void lk_pg_begin_watching(lk_pg *session, bool commits);

/* End the watch over a statement that ended with rc.  Return rc, or EUNCERTAIN
 * after that warning. */
int lk_pg_end_watching(lk_pg *session, int rc, sqlock_error *err);

/* Prepare a statement that has a number, unless it is prepared, or is sent for
 * the first time. */
int lk_pg_prepare_once(lk_pg *session, const sqlock_statement *statement,
                       const struct lk_pg_arguments *arguments,
                       int64_t deadline_ns, sqlock_error *err);

/* Return whether an error of a statement only means that it is not prepared as
 * it was, so that it was not executed and can be sent again.  A statement that
 * is unknown was prepared on another backend; one that exists already was
 * prepared on this backend by another client.  Both show a pooler that lends
 * backends, so no more statements are prepared.  If DDL has changed the type of
 * a result (0A000), all statements are prepared anew.  On an adopted session no
 * statement is executed by its name after any of these. */
bool lk_pg_forget_stale(lk_pg *session, const sqlock_statement *statement);

/* Let the statement be executed by a prepared one of that name. */
void lk_pg_give_name(lk_pg *session, const sqlock_statement *statement,
                     const char *owner);

/* Queue a statement for sending.  Return 0 on failure, as libpq does. */
int lk_pg_send(lk_pg *session, const sqlock_statement *statement,
               const struct lk_pg_arguments *arguments);

/* Run one statement, by its name if it is prepared; *out gets its last result.
 * Return as sqlock_driver.execute. */
int lk_pg_run(lk_pg *session, const sqlock_statement *statement,
              const struct lk_pg_arguments *arguments, int64_t deadline_ns,
              PGresult **out, sqlock_error *err);

/* -------------------------------------------------------------- driver.c -- */

extern const sqlock_driver lk_driver_postgres;

/* sqlock_driver.begin */
int lk_pg_begin(void *connection, int64_t deadline_ns, sqlock_error *err);
/* sqlock_transactions.outlast */
int lk_pg_outlast(void *connection, uint32_t idle_ms, int64_t deadline_ns,
                  sqlock_error *err);

/* As sqlock_driver.commit. */
int lk_pg_commit(void *connection, int64_t deadline_ns, sqlock_error *err);
int lk_pg_rollback(void *connection, int64_t deadline_ns, sqlock_error *err);

/* Return 0 if `tag`, the command tag of a COMMIT, says that the server has
 * committed, or EDATABASE: it has rolled back. */
int lk_pg_judge_commit(const char *tag, sqlock_error *err);

/* ------------------------------------------------------------ pipeline.c -- */

/* Run a statement in a transaction of its own, which begins with
 * session->settings; otherwise as lk_pg_run(). */
int lk_pg_run_lent(lk_pg *session, const sqlock_statement *statement,
                   const struct lk_pg_arguments *arguments, int64_t deadline_ns,
                   PGresult **out, sqlock_error *err);

#ifdef LIBPQ_HAS_PIPELINING
/* Run an assertion, and COMMIT if it holds, in one round trip:
 * sqlock_transactions.commit_if. */
int lk_pg_commit_if(void *connection, const sqlock_statement *statement,
                    const sqlock_value *values, size_t count, size_t times,
                    int64_t deadline_ns, sqlock_error *err);

/* sqlock_transactions.prepare and .resume */
int lk_pg_prepare_named(void *connection, const char *owner,
                        const sqlock_call *calls, size_t count,
                        int64_t deadline_ns, sqlock_error *err);
int lk_pg_resume(void *connection, const char *owner, const sqlock_call *calls,
                 size_t count, int64_t deadline_ns, sqlock_error *err);
#endif

/* ------------------------------------------------------------- dialect.c -- */

extern const sqlock_dialect lk_pg_dialect;

/* --------------------------------------------------------------- adopt.c -- */

extern const sqlock_transactions lk_pg_transactions;

/* --------------------------------------------------------------- stock.c -- */

extern const sqlock_stock_dialect lk_pg_stock;

/* --------------------------------------------------------------- bell.c -- */

extern const sqlock_bell lk_pg_bell;

#endif /* LK_POSTGRES_SESSION_H */
