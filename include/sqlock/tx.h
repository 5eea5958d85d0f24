/*
 * sqlock/tx.h - locks and checks in an application's own transaction
 */
#ifndef SQLOCK_TX_H
#define SQLOCK_TX_H

#include <sqlock.h>
#include <sqlock/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Locks and checks inside a transaction of the application's own, on its own
 * tables, in the database that has the lock table.
 *
 * A transaction is begun on a connection of the registry, or on one that the
 * application has open already, in its own client library.  Three ways to be
 * right:
 *     sqlock_tx_lock()    names (or a row) locked until the transaction ends
 *     sqlock_tx_guard()   the database itself checks that a lease is still
 *                         ours, and keeps it ours until the transaction ends
 *     sqlock_tx_update()  compare-and-set by a version column
 *
 * A sqlock_tx belongs to one thread at a time, and ends before its registry is
 * closed.  After a result that ends the transaction (ERETRY, ELOST, EUNCERTAIN,
 * or a failed statement where the database then refuses all others, as
 * PostgreSQL does) every call but the ones that end it is refused with that
 * result.  Statements on a connection of the registry are bounded by
 * statement_timeout_ms; on an adopted one, the application's own limits hold.
 */
typedef struct sqlock_tx sqlock_tx;

/**
 * Begin a transaction on a connection of the registry, READ COMMITTED.  On
 * SQLite it has the file's write lock from here on (BEGIN IMMEDIATE).  Until it
 * ends it has the connection for itself: at most `pool_size` transactions are
 * open at a time, and the next one waits for the end of another.  Calls on the
 * registry within a transaction always find a connection.
 *
 * @param[out] out to be given to sqlock_tx_commit() or sqlock_tx_rollback()
 * @return 0, EBUSY (SQLite: another writes), ERESOURCE (pool_size transactions
 *         were open until statement_timeout_ms), ENOTSUP (the driver), or as
 *         sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_tx_begin(sqlock_tx **out, sqlock_registry *registry,
                                   sqlock_error *err);

/**
 * Use the application's own connection: an open PGconn *, MYSQL * or sqlite3 *
 * of the client library that this one was built with, on the registry's
 * database.  Its transaction is joined; where none is open one is begun, with
 * the session's own isolation level.  Settings and handlers of the connection
 * stay as they are; what must be set for one statement is put back after it,
 * also after an error.  The application does not use the connection while a
 * call on the transaction runs, and closes it after the transaction.
 *
 * Texts are sent in UTF-8, so a connection in another client encoding or
 * character set is refused: PQsetClientEncoding(conn, "UTF8"), or
 * mysql_set_character_set(mysql, "utf8mb4"), before.  One that is changed after
 * that is refused by the next call where the client library knows of it, libpq
 * always, a MYSQL * unless SET NAMES was sent as a statement: leave it as it
 * is.
 *
 * @return 0, EINVAL (NULL; closed; a command or a result in progress; an
 *         aborted transaction; another database; another character set than
 *         UTF-8; automatic reconnection; MySQL's CLIENT_FOUND_ROWS, which hides
 *         what was changed),
 *         EBUSY (SQLite: a transaction was begun and another writes), ENOTSUP,
 *         EREADONLY (a member outside its group, of MySQL Group Replication),
 *         EACCESS (nor may its state be seen), EUNREACHABLE, ENOMEM, EFORK,
 *         EDATABASE
 */
SQLOCK_MUSTUSE int sqlock_tx_adopt(sqlock_tx **out, sqlock_registry *registry,
                                   void *connection, sqlock_error *err);

/**
 * Commit, also a transaction that was joined, and free @p tx whatever comes.  0
 * is only what the server has confirmed.  After a failed guard, or another
 * result that has ended the transaction, it is rolled back and that result is
 * given.  Leases that were guarded are checked once more, on PostgreSQL with
 * the commit, on MySQL in one more round trip; but not where nothing can have
 * let go of them: on a connection of the registry, to which sqlock_tx_execute()
 * has sent nothing but statements that begin with SELECT, INSERT, UPDATE,
 * DELETE, REPLACE or WITH.
 *
 * @return 0; EUNCERTAIN: the connection broke under the commit, which may have
 *         happened; anything else: it is rolled back.  ELOST: the connection
 *         was gone, or a guarded lease is another owner's by now; ERETRY: the
 *         transaction had let go of a guarded lease, and somebody has its row
 *         locked; or as sqlock_tx_execute()
 */
SQLOCK_MUSTUSE int sqlock_tx_commit(sqlock_tx *tx, sqlock_error *err);

/** Roll back, also a transaction that was joined, and free @p tx.  NULL is
 *  allowed.  @return 0; or why the server could not be told: it rolls back when
 *  it notices that the connection is gone */
SQLOCK_API int sqlock_tx_rollback(sqlock_tx *tx, sqlock_error *err);

/**
 * Let go of an adopted connection and leave its transaction as it is, for the
 * application to end; frees @p tx.  Leases that were guarded are checked once
 * more, and the guards end here: leave after the statements that they guard
 * only if the application commits before it releases the lock.
 *
 * @return 0; EINVAL: not adopted (nothing was done); the result that a failed
 *         guard or a lost transaction gave, or as sqlock_tx_commit(): roll back
 */
SQLOCK_MUSTUSE int sqlock_tx_leave(sqlock_tx *tx, sqlock_error *err);

/**
 * One statement with bound parameters, each written as '?' ("??" is a question
 * mark on PostgreSQL).
 *
 * @param[in,out] result zeroed, or used before; NULL: not wanted
 * @return 0; EBUSY (somebody's lock, or a duplicate key); ERETRY, ELOST (the
 *         connection is gone; nothing of the transaction was committed); EINVAL
 *         (the number of parameters; or the statement ended the transaction);
 *         ECANCELED (a limit of time, or KILL QUERY); ESCHEMA, EACCESS,
 *         EDATABASE, EREADONLY, ERESOURCE, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_tx_execute(sqlock_tx *tx, const char *sql,
                                     const sqlock_value *parameters,
                                     size_t count, sqlock_result *result,
                                     sqlock_error *err);

/**
 * Lock names until the transaction ends.  They are others than the leases of
 * the same names: rows of their own, made where missing, on a connection of the
 * registry.  Taken in the order of
 * their keys.  @p wait_ms as in sqlock_acquire(), for all together; with
 * @p skip_locked it must be 0, and those that nobody has are taken.  What was
 * taken stays locked until the transaction ends, also after a failure.  On
 * SQLite any lock is the file's write lock.
 *
 * @param[out] results of each name: 0, EBUSY, ETIMEDOUT, or why the call ended
 *             before it; may be NULL
 * On a Galera cluster, where row locks hold on one node only, this,
 * sqlock_tx_lock_row() and sqlock_tx_guard() are refused with ENOTSUP.
 *
 * @return 0; EBUSY (with @p skip_locked: at least one); ETIMEDOUT; ERETRY: a
 *         deadlock, a snapshot older than the row, a row that was reaped at
 *         that moment (adopted, MySQL), or MariaDB's
 *         innodb_rollback_on_timeout: roll back and run the transaction again;
 *         EUNREACHABLE: no connection to make a name's row on; or as
 *         sqlock_tx_execute().  After EBUSY, ETIMEDOUT and EUNREACHABLE the
 *         transaction goes on
 */
SQLOCK_MUSTUSE int sqlock_tx_lock(sqlock_tx *tx, const char *const *names,
                                  size_t count, int64_t wait_ms,
                                  bool skip_locked, int *results,
                                  sqlock_error *err);

/* What makes a row's version. */
typedef enum sqlock_version_kind {
    SQLOCK_VERSION_INTEGER = 0, /* rises by one with each update */
    SQLOCK_VERSION_TIMESTAMP,   /* of microseconds (SQLite: a text of
                                   milliseconds); always later than before */
    SQLOCK_VERSION_STATE /* the application's own: an update expects one value
                            and assigns the next */
} sqlock_version_kind;

/** A table of the application.  Names are letters, digits and '_', as the
 *  database's catalogue has them. */
typedef struct sqlock_table {
    size_t size;                /* sizeof(sqlock_table): the struct may grow */
    const char *name;           /* "stock" or "schema.stock" */
    const char *key_column;     /* unique */
    const char *version_column; /* sqlock_tx_version(), sqlock_tx_update() */
    sqlock_version_kind version_kind;
    const char *fence_column;       /* sqlock_tx_fence() */
    const char *fence_owner_column; /* likewise */
} sqlock_table;
#define SQLOCK_TABLE_INIT SQLOCK_SIZED(sqlock_table)

/**
 * Lock a row FOR UPDATE, or with @p share FOR SHARE, until the transaction
 * ends.
 *
 * @return as sqlock_tx_lock(), and ENOTFOUND: there is no such row
 */
SQLOCK_MUSTUSE int sqlock_tx_lock_row(sqlock_tx *tx, const sqlock_table *table,
                                      const sqlock_value *key, bool share,
                                      int64_t wait_ms, sqlock_error *err);

/**
 * Let the database check that the lease of @p lock, held by the caller, is
 * still ours and has not run out, and keep anybody from taking it over before
 * the transaction ends.  One statement.  The lease is not renewed meanwhile:
 * the transaction may still commit after its end, but the lease is then over.
 * Until the transaction ends, releasing the lock is refused with EINUSE.  Asked
 * again, the database checks again.
 *
 * ROLLBACK TO SAVEPOINT may let go of the lease, and so does a commit that is
 * not sqlock_tx_commit(): COMMIT AND CHAIN, DDL on MySQL, or a COMMIT and a
 * BEGIN of the application's on the same connection.  The commit finds out: it
 * succeeds only if nobody else has had the lock until then.  What the
 * application has committed by itself stays committed.
 *
 * Under REPEATABLE READ and SERIALIZABLE guard before anything else, or a
 * renewal that the snapshot does not have makes it ERETRY.  On SQLite the guard
 * is the file's write lock, which stops the renewals of all leases: their TTL
 * must exceed the transaction.
 *
 * @return 0; ELOST: another owner has had the lock, the message says who has it
 *         now; EEXPIRED; EOWNER; ERETRY; EBUSY: somebody has the row locked;
 *         EUNREACHABLE: it could not be found out why there is no such row; or
 *         as sqlock_tx_execute().  After a failure the transaction does not
 *         commit through us
 */
SQLOCK_MUSTUSE int sqlock_tx_guard(sqlock_tx *tx, sqlock_lock *lock,
                                   sqlock_error *err);

/**
 * The token form, for tables of another database than the lock's: set the fence
 * column of a row to @p token and its owner column to @p owner, unless it has
 * had a greater token, or the same one of another owner.
 *
 * @return 0, ECONFLICT, ENOTFOUND, or as sqlock_tx_execute()
 */
SQLOCK_MUSTUSE int sqlock_tx_fence(sqlock_tx *tx, const sqlock_table *table,
                                   const sqlock_value *key, int64_t token,
                                   const char *owner, sqlock_error *err);

/**
 * The SQL that adds the fence columns of @p table, for the database of @p url
 * (its scheme is enough).
 *
 * @param[out] text to be given to sqlock_free(); NULL on failure
 */
SQLOCK_MUSTUSE int sqlock_fence_ddl(char **text, const char *url,
                                    const sqlock_table *table,
                                    sqlock_error *err);

/** A version as it was read: an integer, or a text of at most 63 bytes. */
typedef struct sqlock_row_version {
    sqlock_type type;
    int64_t integer;
    char text[64];
} sqlock_row_version;

/**
 * Read the version of a row.
 * @return 0, ENOTFOUND, EINVAL (null, or no version of that kind)
 */
SQLOCK_MUSTUSE int sqlock_tx_version(sqlock_tx *tx, const sqlock_table *table,
                                     const sqlock_value *key,
                                     sqlock_row_version *version,
                                     sqlock_error *err);

/* column = value */
typedef struct sqlock_assignment {
    const char *column;
    sqlock_value value;
} sqlock_assignment;

/**
 * Update a row that still has the version @p expected, and give it the next.
 * Of a state column the next is among the assignments.
 *
 * @param[out] next the new version; may be NULL
 * @return 0; ECONFLICT: it has another version; ENOTFOUND; EINVAL: no next
 *         version (null, the greatest integer, a column that is too coarse); or
 *         as sqlock_tx_execute()
 */
SQLOCK_MUSTUSE int sqlock_tx_update(sqlock_tx *tx, const sqlock_table *table,
                                    const sqlock_value *key,
                                    const sqlock_row_version *expected,
                                    const sqlock_assignment *set, size_t count,
                                    sqlock_row_version *next,
                                    sqlock_error *err);

/* What sqlock_tx_retry() runs. */
typedef struct sqlock_attempt {
    uint32_t number;  /* from 1 */
    bool pessimistic; /* lock the row first: too many attempts have failed */
} sqlock_attempt;
typedef int (*sqlock_tx_fn)(void *context, sqlock_tx *tx,
                            const sqlock_attempt *attempt, sqlock_error *err);

/** Zero means the default in every field; begin with SQLOCK_RETRY_INIT. */
typedef struct sqlock_retry_options {
    size_t size;                /* sizeof(sqlock_retry_options) */
    uint32_t attempts;          /* at most; 100 */
    uint32_t deadline_ms;       /* for all of them; 30 000 */
    uint32_t pause_ms;          /* the longest pause; 50.  Pauses begin at 1 ms,
                                   double, and are drawn at random */
    uint32_t pessimistic_after; /* attempts that failed; 0: never */
} sqlock_retry_options;
#define SQLOCK_RETRY_INIT SQLOCK_SIZED(sqlock_retry_options)

/** What came of it; filled in any case. */
typedef struct sqlock_retry_stats {
    uint32_t attempts;
    uint32_t conflicts; /* ECONFLICT */
    uint32_t retries;   /* ERETRY, EBUSY, ETIMEDOUT */
} sqlock_retry_stats;

/**
 * Run @p fn in a transaction of its own and commit it when it returns 0, again
 * from the start while it returns, or the commit gives, ECONFLICT, ERETRY,
 * EBUSY or ETIMEDOUT.  @p fn must not end the transaction.
 *
 * @param stats may be NULL
 * @return 0; what the last attempt gave; ECONFLICT and the like when attempts
 *         or time have run out; EUNCERTAIN is never tried again
 */
SQLOCK_MUSTUSE int sqlock_tx_retry(sqlock_registry *registry, sqlock_tx_fn fn,
                                   void *context,
                                   const sqlock_retry_options *options,
                                   sqlock_retry_stats *stats,
                                   sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_TX_H */
