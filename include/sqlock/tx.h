/*
 * sqlock/tx.h - locks and checks in a transaction on the application's tables
 *
 * The transaction is in the database that has the lock table.  It is begun on a
 * connection of the registry, or on one that the application has opened with
 * its own client library, an adopted connection.  There are three ways to keep
 * others out:
 *
 *     sqlock_tx_guard()    the database checks that a lease is still held, and
 *                          nobody else can take the lock until the transaction
 *                          ends
 *     sqlock_tx_lock()     names or a row are locked until the transaction ends
 *     sqlock_tx_update()   compare-and-set by a version column
 *
 * Calling sequence
 *     sqlock_tx *tx = NULL;
 *     sqlock_value amount = sqlock_integer(100);
 *
 *     rc = sqlock_acquire(lock, 5000, NULL, &err);
 *     if (rc != 0)
 *         return rc;
 *     rc = sqlock_tx_begin(&tx, registry, &err);
 *     if (rc == 0)
 *         rc = sqlock_tx_guard(tx, lock, &err);
 *     if (rc == 0)
 *         rc = sqlock_tx_execute(tx, "UPDATE account SET amount = ? "
 *                                "WHERE id = 7", &amount, 1, NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_tx_commit(tx, &err);
 *     else
 *         sqlock_tx_rollback(tx, NULL);
 *     if (sqlock_release(lock, NULL) != 0)
 *         puts("the lease had ended by the release");
 *
 * Threads
 *     One thread at a time uses a transaction.
 *
 * Lifetime
 *     A transaction ends before its registry is closed.  It may outlive the
 *     references to the locks that it guards: see sqlock_abandon()
 *     of lease.h.
 *
 * Errors
 *     The transaction is over after ERETRY, ELOST or EUNCERTAIN, on PostgreSQL
 *     after any statement that failed, and on SQLite after one that wrote and
 *     was ended by its limit of time: further calls return the same code,
 *     except those that end the transaction, which is still to be done.
 *     ROLLBACK TO SAVEPOINT undoes what failed on PostgreSQL, and the
 *     transaction goes on.
 *
 * Limits of time
 *     On a connection of the registry a statement takes statement_timeout_ms at
 *     most.  Then the functions here return ETIMEDOUT, with the server's words;
 *     sqlock_tx_begin() and those of sqlock/stock.h return EBUSY.  If the
 *     server does not end the statement in time (as Oracle's MySQL, whose limit
 *     is for SELECT), it is ELOST, and EUNCERTAIN for the commit itself.  On an
 *     adopted connection the application's own limits hold.  They give
 *     ECANCELED, as KILL QUERY and pg_cancel_backend() do everywhere.
 */
#ifndef SQLOCK_TX_H
#define SQLOCK_TX_H

#include <sqlock.h>
#include <sqlock/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open transaction. */
typedef struct sqlock_tx sqlock_tx;

/* --------------------------------------------------------- begin and end -- */

/**
 * Begin a transaction on a connection of the registry, READ COMMITTED.  It has
 * the connection to itself, so at most `pool_size` transactions are open at a
 * time; the next one waits.  On SQLite it has the file's write lock from here
 * on (BEGIN IMMEDIATE).  Afterwards the connection is used again, unless
 * sqlock_tx_execute() has sent something else than statements about rows and
 * savepoints: then the connection is closed, which undoes what SET, USE or
 * PRAGMA have changed.  After EREADONLY of a server the idle connections are
 * closed, too: it may be a standby now.
 *
 * PostgreSQL, MySQL and MariaDB end the transaction when no statement comes for
 * twice the registry's `ttl_ms`, or that of the longest lease that it guards,
 * and for 5 s at least: the client may have vanished.  Then it is ELOST.  A
 * longer pause needs a statement, or a setting by sqlock_tx_execute():
 * idle_in_transaction_session_timeout, idle_transaction_timeout, wait_timeout.
 *
 * @param[out] out ended by sqlock_tx_commit() or sqlock_tx_rollback(); NULL on
 *                 failure
 * @return 0           begun
 *         EBUSY       SQLite: somebody else writes
 *         ERESOURCE   pool_size transactions were open for as long as
 *                     statement_timeout_ms
 */
SQLOCK_MUSTUSE int sqlock_tx_begin(sqlock_tx **out, sqlock_registry *registry,
                                   sqlock_error *err);

/**
 * Use a connection of the application: a PGconn, MYSQL or sqlite3 handle of the
 * client library that this library was built with, on the registry's database.
 * Its open transaction is joined.  Where none is open one is begun, with the
 * session's isolation level.  The connection's settings stay as they are; a
 * setting that a statement needs is made for that statement only.  The
 * application does not use the connection during a call, and closes it after
 * the transaction.
 *
 * On PostgreSQL and MariaDB a connection that is adopted again is recognized,
 * which saves round trips: from the second time on it keeps two prepared
 * statements of the registry, on MariaDB three, which count towards its
 * max_prepared_stmt_count.  DISCARD ALL, DEALLOCATE ALL and
 * mysql_reset_connection() are allowed; on PostgreSQL, between the adoption and
 * the commit, they may make that return ERETRY, once.
 *
 * Texts are sent in UTF-8.  A connection with another encoding is refused, now
 * or, where the client library knows of a later change, by the next call: call
 * PQsetClientEncoding(conn, "UTF8") or mysql_set_character_set(mysql,
 * "utf8mb4") before, and send no SET NAMES.
 *
 * @param connection the open handle
 * @return 0           joined or begun
 *         EINVAL      the connection cannot be used: closed, busy with a
 *                     command or result, in a failed transaction, on another
 *                     database, not UTF-8, with automatic reconnection or
 *                     CLIENT_FOUND_ROWS
 *         EBUSY       SQLite: a transaction was begun, and somebody else writes
 */
SQLOCK_MUSTUSE int sqlock_tx_adopt(sqlock_tx **out, sqlock_registry *registry,
                                   void *connection, sqlock_error *err);

/**
 * Commit a transaction, also one that was joined, and free it.  The result is
 * 0 only if the server has confirmed the commit.  Guarded leases are checked
 * again: on PostgreSQL with the commit, on MySQL in one more round trip, on
 * MariaDB so, too, unless the connection was recognized and one lease is
 * guarded.  That check is left out on a connection of the registry whose
 * statements all began, after comments and parentheses, with SELECT, INSERT,
 * UPDATE, DELETE, REPLACE, MERGE, WITH, VALUES, TABLE, SHOW, EXPLAIN, DESCRIBE,
 * SAVEPOINT or RELEASE.
 *
 * @return 0            committed
 *         EUNCERTAIN   the connection broke: it may be committed or not
 *         ELOST        rolled back: the connection was gone, or another owner
 *                      has a guarded lock
 *         ERETRY       rolled back: run the transaction again
 *         any other    rolled back, also after ETIMEDOUT
 */
SQLOCK_MUSTUSE int sqlock_tx_commit(sqlock_tx *tx, sqlock_error *err);

/**
 * Roll a transaction back, also one that was joined, and free it.  NULL is
 * allowed.
 *
 * @return 0           rolled back
 *         any other   the server has not answered; it rolls back once it
 *                     notices that the connection is gone
 */
SQLOCK_API int sqlock_tx_rollback(sqlock_tx *tx, sqlock_error *err);

/**
 * Free the transaction of an adopted connection, and leave it to the
 * application to commit or roll back.  Guarded leases are checked again, and
 * are guarded no longer: call it after the statements that the guard protects,
 * and commit before the lock is released.
 *
 * @return 0           left open
 *         EINVAL      not adopted; nothing was done
 *         ELOST       roll back: a guarded lease, the connection or the
 *                     transaction itself is lost
 *         any other   roll back: the transaction must not be committed
 */
SQLOCK_MUSTUSE int sqlock_tx_leave(sqlock_tx *tx, sqlock_error *err);

/**
 * Free a transaction that nobody has ended, for garbage collectors: they call
 * late, when the application's connection may be in another transaction or be
 * closed.  An adopted connection is not touched, and what was begun on it is
 * left to the application; leases are not guarded any more.  A transaction on a
 * connection of the registry is rolled back.  Any thread may call it.  NULL is
 * allowed.
 *
 * @return as sqlock_tx_rollback()
 */
SQLOCK_API int sqlock_tx_abandon(sqlock_tx *tx, sqlock_error *err);

/**
 * Run one statement, with a `?` for each parameter.  On PostgreSQL `??` is a
 * question mark.  A text of several statements is refused.
 *
 * A connection of the registry is closed after the transaction if a statement
 * may have changed the session: one that begins neither with a word listed at
 * sqlock_tx_commit(), nor with ROLLBACK, or that names set_config() without
 * `true` at its end, pg_advisory_lock() or GET_LOCK().
 *
 * After a ROLLBACK TO SAVEPOINT that fails, the transaction is over: what was
 * to be undone must not be committed.
 *
 * An INSERT, UPDATE or DELETE with parameters that returns no rows is prepared
 * once per connection of the registry, for the first 32 texts that a program
 * sends.  On PostgreSQL it gives ERETRY once if its table has changed since.
 *
 * @param count          of the parameters; on PostgreSQL 64 at most
 * @param[in,out] result zero, or used before; freed by sqlock_result_clear();
 *                       NULL: not wanted
 * @return 0           done
 *         EBUSY       somebody's lock, or a duplicate key
 *         ERETRY      run the transaction again
 *         ELOST       the connection is gone; nothing was committed
 *         EUNCERTAIN  the connection broke during a statement that may have
 *                     committed: one that may have changed the session
 *         ETIMEDOUT   it took longer than statement_timeout_ms, on a connection
 *                     of the registry
 *         any other   the statement failed: EINVAL (the number of parameters,
 *                     or the statement ended the transaction), ECANCELED (the
 *                     application's own limit of time, or KILL QUERY), ESCHEMA,
 *                     EACCESS, EREADONLY, ERESOURCE, EDATABASE, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_tx_execute(sqlock_tx *tx, const char *sql,
                                     const sqlock_value *parameters,
                                     size_t count, sqlock_result *result,
                                     sqlock_error *err);

/* ---------------------------------------------------------------- guard -- */

/**
 * Let the database check that the caller still holds the lock, and keep anybody
 * from taking it before the transaction ends.  One statement.  Meanwhile the
 * lease is not renewed, and releasing the lock returns EINUSE.  The transaction
 * may commit after the lease has expired.  A second call checks again.
 *
 * A guard ends early by ROLLBACK TO SAVEPOINT, and by a commit that is not
 * sqlock_tx_commit(): COMMIT AND CHAIN, DDL on MySQL, or the application's own
 * COMMIT.  sqlock_tx_commit() notices, and succeeds only if nobody else has had
 * the lock; what the application has committed by itself stays.
 *
 * Under REPEATABLE READ and SERIALIZABLE guard before any other statement, or
 * get ERETRY when the lease was renewed since.  On SQLite the guard is the
 * file's write lock and stops all renewals: TTLs must exceed the transaction.
 *
 * @return 0           guarded
 *         ELOST       another owner has had the lock; the message says who has
 *                     it now
 *         EEXPIRED    the lease has expired
 *         ERETRY      run the transaction again
 *         any other   not guarded, and the transaction cannot commit.  EBUSY:
 *                     somebody has locked the row.  ENOTSUP: the lock is
 *                     shared, or may be since a downgrade without an answer.
 *                     ETIMEDOUT: a statement took too long
 */
SQLOCK_MUSTUSE int sqlock_tx_guard(sqlock_tx *tx, sqlock_lock *lock,
                                   sqlock_error *err);

/* -------------------------------------------------------- names and rows -- */

/**
 * Lock names until the transaction ends.  These locks have nothing to do with
 * the leases of the same names: they are rows of their own, which are made on
 * another connection where they are missing.  Names are locked in the order of
 * their keys.  A name that was locked stays so until the transaction ends, also
 * after a failure.  On SQLite each lock is the file's write lock.
 *
 * @param wait_ms     for all of them, as in sqlock_acquire()
 * @param skip_locked lock those that nobody has; @p wait_ms must be 0
 * @param[out] results of each name: 0, EBUSY, ETIMEDOUT, or why the call ended
 *                     before it; NULL: not wanted
 * @return 0           all are locked
 *         EBUSY, ETIMEDOUT   at least one is not; the transaction goes on, but
 *                     not on PostgreSQL where the call's own statement took
 *                     longer than statement_timeout_ms
 *         ERETRY      run the transaction again: a deadlock, an old snapshot,
 *                     or a row that was just removed
 *         any other   not all are locked, as sqlock_tx_execute() returns;
 *                     EUNREACHABLE: no connection to make a row on, the
 *                     transaction goes on
 */
SQLOCK_MUSTUSE int sqlock_tx_lock(sqlock_tx *tx, const char *const *names,
                                  size_t count, int64_t wait_ms,
                                  bool skip_locked, int *results,
                                  sqlock_error *err);

/** Kind of a row's version. */
typedef enum sqlock_version_kind {
    SQLOCK_VERSION_INTEGER = 0, /* rises by one with each update */
    SQLOCK_VERSION_TIMESTAMP,   /* in microseconds (SQLite: a text, in
                                   milliseconds); each is later than before */
    SQLOCK_VERSION_STATE /* the application's own: an update expects one value
                            and assigns the next */
} sqlock_version_kind;

/** A table of the application.  Names are letters, digits and '_', as the
 *  database's catalogue has them; no column has two roles (EINVAL). */
typedef struct sqlock_table {
    size_t size;                /* sizeof(sqlock_table): the struct may grow */
    const char *name;           /* "stock" or "schema.stock" */
    const char *key_column;     /* unique */
    const char *version_column; /* for sqlock_tx_version() and _update() */
    sqlock_version_kind version_kind; /* of version_column */
    const char *fence_column; /* the token, for sqlock_tx_fence(): an integer of
                                 64 bits, 0 at first */
    const char *fence_owner_column; /* the token's owner, a text */
} sqlock_table;
#define SQLOCK_TABLE_INIT SQLOCK_SIZED(sqlock_table)

/**
 * Lock a row until the transaction ends, FOR UPDATE or FOR SHARE.
 *
 * @param share   FOR SHARE
 * @param wait_ms as in sqlock_acquire()
 * @return 0           locked
 *         ENOTFOUND   there is no such row
 *         EBUSY, ETIMEDOUT   not locked; the transaction goes on, except as
 *                     sqlock_tx_lock() says
 *         ERETRY      run the transaction again
 */
SQLOCK_MUSTUSE int sqlock_tx_lock_row(sqlock_tx *tx, const sqlock_table *table,
                                      const sqlock_value *key, bool share,
                                      int64_t wait_ms, sqlock_error *err);

/* --------------------------------------------------------------- fencing -- */

/**
 * Refuse an old token.  Sets the fence column of a row to @p token and its
 * owner column to @p owner, unless the row has a greater token, or the same one
 * of another owner.  For tables in another database than the lock's.
 *
 * @return 0           the token is in the row: write
 *         ECONFLICT   a later holder has been here: do not write
 *         ENOTFOUND   there is no such row
 */
SQLOCK_MUSTUSE int sqlock_tx_fence(sqlock_tx *tx, const sqlock_table *table,
                                   const sqlock_value *key, int64_t token,
                                   const char *owner, sqlock_error *err);

/* ------------------------------------------------------ compare-and-set -- */

/** Version of a row, as it was read. */
typedef struct sqlock_row_version {
    sqlock_type type; /* SQLOCK_INT64 or SQLOCK_TEXT */
    int64_t integer;  /* with SQLOCK_INT64 */
    char text[64];    /* with SQLOCK_TEXT, at most 63 bytes and NUL */
} sqlock_row_version;

/**
 * Read the version of a row.
 *
 * @return 0           done
 *         ENOTFOUND   there is no such row
 *         EINVAL      the version is null, or not of the table's kind
 */
SQLOCK_MUSTUSE int sqlock_tx_version(sqlock_tx *tx, const sqlock_table *table,
                                     const sqlock_value *key,
                                     sqlock_row_version *version,
                                     sqlock_error *err);

/** One assignment of an update, column = value. */
typedef struct sqlock_assignment {
    const char *column; /* name of the column */
    sqlock_value value; /* its new value */
} sqlock_assignment;

/**
 * Update a row if it still has the expected version, and give it the next one.
 *
 * @param set       assignments, 32 at most, not of the version; but with
 *                  SQLOCK_VERSION_STATE the next state is among them
 * @param[out] next the new version; NULL: not wanted
 * @return 0           updated
 *         ECONFLICT   it has another version: read it again
 *         ENOTFOUND   there is no such row
 *         EINVAL      there is no next version: null, the greatest integer, a
 *                     state of more than 63 bytes, a column that is too coarse
 *         any other   also if the row was written and its next version cannot
 *                     be read: then the transaction can only be rolled back
 */
SQLOCK_MUSTUSE int sqlock_tx_update(sqlock_tx *tx, const sqlock_table *table,
                                    const sqlock_value *key,
                                    const sqlock_row_version *expected,
                                    const sqlock_assignment *set, size_t count,
                                    sqlock_row_version *next,
                                    sqlock_error *err);

/* ----------------------------------------------------------------- retry -- */

/** An attempt of sqlock_tx_retry().  It must not end the transaction.  It
 *  returns 0 to have it committed, otherwise it is rolled back. */
typedef int (*sqlock_tx_fn)(void *context, sqlock_tx *tx, sqlock_error *err);

/** Limits of sqlock_tx_retry().  Zero means the default. */
typedef struct sqlock_retry_options {
    size_t size;          /* sizeof(sqlock_retry_options): it may grow */
    uint32_t attempts;    /* at most; default 100 */
    uint32_t deadline_ms; /* for all attempts; default 30 000 */
    uint32_t pause_ms;    /* longest pause between two; default 50.
                                   Pauses begin at 1 ms, double, and are
                                   random */
} sqlock_retry_options;
#define SQLOCK_RETRY_INIT SQLOCK_SIZED(sqlock_retry_options)

/**
 * Run a function in a transaction, and commit it.  Begin again while the
 * function or the commit returns ECONFLICT, ERETRY, EBUSY or ETIMEDOUT.
 *
 * @return 0            committed
 *         ECONFLICT, ERETRY, EBUSY, ETIMEDOUT   attempts or time ran out;
 *                      nothing was committed
 *         EUNCERTAIN   it may be committed or not; it is not tried again
 *         any other    rolled back: the result of the last attempt, also a
 *                      positive one of the function
 */
SQLOCK_MUSTUSE int sqlock_tx_retry(sqlock_registry *registry, sqlock_tx_fn fn,
                                   void *context,
                                   const sqlock_retry_options *options,
                                   sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_TX_H */
