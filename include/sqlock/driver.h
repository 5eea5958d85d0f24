/*
 * sqlock/driver.h - connecting another database to sqlock
 *
 * A driver is one client library and one dialect (sqlock/dialect.h).  It sends
 * one statement at a time, returns rows and counts, and classifies errors.  It
 * does not wait for a lock except in its wait-queue functions, does not retry,
 * reconnect, log or print, and starts no thread; the library does that, once
 * for all drivers.  It reads the clock only to keep the deadline that it was
 * given.
 *
 * This header is younger than sqlock.h and may change in a minor release.
 *
 * Calling sequence
 *     static sqlock_driver mine;
 *     const sqlock_driver *postgres = sqlock_driver_named("postgres");
 *
 *     if (postgres != NULL) {
 *         mine = *postgres;
 *         mine.name = "mine";
 *         mine.schemes = "mine";
 *         rc = sqlock_driver_register(&mine, &err);
 *     }
 *
 * Threads
 *     One thread at a time uses a connection, not always the same one.  Only
 *     `abort` may be called meanwhile, by any thread.
 *
 * Results
 *     Functions of a driver (open, execute, begin, commit, rollback) return 0
 *     or one of these codes.  A result that is not known to be a success is
 *     never 0.
 *
 *     ERETRY         not applied; the transaction, if any, is gone
 *     EBUSY          not applied: another session's row or table lock (SQLite:
 *                    of the database file), or a duplicate key
 *     ECANCELED      not applied: cancelled, or a time limit of the server
 *     EREADONLY      not applied: wrong node
 *     ERESOURCE      not applied: connections, memory, disk
 *     EACCESS        not applied: login or privilege
 *     ESCHEMA        not applied: no such database, table or column
 *     EDATABASE      not applied: any other error of the statement
 *     EUNREACHABLE   nothing was sent; the connection cannot be used again
 *     EUNCERTAIN     sent, but not answered; it cannot be used again
 *     EINVAL, ENOTSUP, ENOMEM   not sent
 */
#ifndef SQLOCK_DRIVER_H
#define SQLOCK_DRIVER_H

#include <sqlock/dialect.h>
#include <sqlock/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- values -- */

/**
 * Begin a result with that number of columns; earlier rows are dropped.
 *
 * @return 0        begun
 *         ENOMEM   out of memory
 */
SQLOCK_API int sqlock_result_start(sqlock_result *result, size_t columns);

/**
 * Append one cell to a result.  Every `columns` cells make a row.  A text is
 * copied, and need not end with NUL.
 *
 * @return 0        appended
 *         ENOMEM   out of memory
 */
SQLOCK_API int sqlock_result_push(sqlock_result *result,
                                  const sqlock_value *value);

/**
 * Fill an error and return its code, in one expression.  Control characters and
 * bytes that are not UTF-8 are escaped, and the text is cut to one line.
 *
 * @param err      NULL is allowed
 * @param sqlstate NULL: none
 * @return code
 */
SQLOCK_API int sqlock_error_set(sqlock_error *err, int code, int native,
                                const char *sqlstate, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/** Return CLOCK_MONOTONIC in nanoseconds, the clock of all deadlines. */
SQLOCK_API int64_t sqlock_monotonic_ns(void);

/* --------------------------------------------------------- transactions -- */

/* State of the transaction on a connection. */
typedef enum sqlock_tx_state {
    SQLOCK_TX_NONE,    /* none is open */
    SQLOCK_TX_OPEN,    /* it can be committed */
    SQLOCK_TX_ABORTED, /* it can only be rolled back, or the server has ended
                          it */
    SQLOCK_TX_GONE     /* connection and transaction are lost */
} sqlock_tx_state;

/* A driver's part in transactions of the application.  Templates as in a
 * dialect; none of them leaves a trace in the session. */
typedef struct sqlock_transactions {
    size_t size;                             /* sizeof(sqlock_transactions) */
    const char *statements[SQLOCK_TX_KINDS]; /* as a template's text */

    /* The last cell of the first row tells which server, database and {table},
     * in schema {1} (null: none was named), this is. */
    const char *identity;
    /* One text: "read committed" in upper or lower case, unless the transaction
     * reads from a snapshot that its first statement takes.  Takes no snapshot
     * itself.  NULL: `identity` takes none. */
    const char *isolation;

    /* Returns a row if row locks exclude only the sessions of one node of a
     * cluster with several writable nodes.  Takes no snapshot.  NULL: the
     * database has no such clusters. */
    const char *one_node;

    /* Appended to a SELECT of a row: FOR UPDATE, not waiting: EBUSY or no row
     * if it is locked.  NULL: rows are not locked one by one. */
    const char *update_free;
    const char *update_wait; /* FOR UPDATE, waiting */
    const char *share_free;  /* FOR SHARE, not waiting */
    const char *share_wait;  /* FOR SHARE, waiting */
    /* For a database with one write lock: take it and change nothing. */
    const char *take_write_lock;
    uint32_t wait_unit_ms; /* unit of `limit`; 0: nothing waits */

    const char *timestamp_us;   /* {column}, a point in time, in us */
    const char *next_timestamp; /* a point in time later than {column} */
    const char *fence_type;     /* type of a fence column */
    const char *owner_type;     /* type of a fence's owner column */

    /** Make a connection of the application's open handle, without changing it.
     *  Refuse a handle whose texts are not UTF-8.
     *  @return 0, EINVAL, ... */
    int (*adopt)(void *connection, void *native, sqlock_error *err);
    /** End the use of an adopted handle; called instead of close. */
    void (*unadopt)(void *connection);
    /** Return the state of the transaction, without a round trip. */
    sqlock_tx_state (*state)(void *connection);
    /** Let statements wait for a lock at most @p wait_ms, a multiple of
     *  wait_unit_ms, and disable other time limits, until `unlimit` restores
     *  them.  The caller has set a savepoint, and returns to it after EBUSY. */
    int (*limit)(void *connection, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err);
    /** Restore what `limit` has changed. */
    int (*unlimit)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /* `unadopt` removes all prepared statements, so those of adopted
     * transactions may be prepared, too. */
    bool unprepares;
    /** May be NULL.  Check, before each statement on an adopted connection,
     *  that its texts are still UTF-8, without a round trip.
     *  @return 0, EINVAL */
    int (*check_adopted)(void *connection, sqlock_error *err);
    /** May be NULL: then leases are guarded again, and `commit` follows.  In
     *  one round trip run ASSERT @p times times, each with
     *  @p count of the values, and commit unless one of them fails.
     *  @return ENOTFOUND: an ASSERT found no row, nothing was committed; or as
     *  commit */
    int (*commit_if)(void *connection, const sqlock_statement *statement,
                     const sqlock_value *values, size_t count, size_t times,
                     int64_t deadline_ns, sqlock_error *err);
} sqlock_transactions;

/* ----------------------------------------------------------- wait queues -- */

/*
 * A wait queue in the database.  It is a lock of the database's own, or of the
 * operating system's, that a session has from when it is its turn to claim
 * until it releases the lease; the others queue for it.
 * It is a hint: the lease's row alone decides, and a queue lock that is
 * missing, that notifies falsely or is in a stranger's hands costs time.  A
 * session that has one, or waits for one, is used for nothing that waits for
 * another.  One whose client has closed it must give up both by itself, within
 * a second: nobody ends it over another connection.
 *
 * Results as in sqlock_driver.  The number is of 62 bits, and even.
 */
typedef struct sqlock_wait_queue {
    size_t size;      /* sizeof(sqlock_wait_queue) */
    uint32_t layouts; /* 1 << sqlock_layout of those that have them */
    /* A CLAIM or TAKE that grants takes the queue lock for its session where it
     * is to be had at once, and the RELEASE on that session gives it back. */
    bool holders_keep_it;
    /* EBUSY of `enqueue` keeps the session's place in the queue for the next
     * `enqueue`, until `leave`: the row can be read between them. */
    bool keeps_place;

    /** May be NULL: every connection has a session of its own.  Tell whether
     *  connection @p one has, or a proxy lends it the sessions of a server by
     *  turns, by comparison with @p other.  Neither is in a transaction.
     *  @return 0: it has; EBUSY: a proxy is between, or the server's queue
     *  locks exclude nobody; any other: not known, asked at the next wait */
    int (*has_own_session)(void *one, void *other, int64_t deadline_ns,
                           sqlock_error *err);
    /** Wait for the queue lock; until it comes or, at the latest, @p until_ns.
     *  @return 0: the session has it; EBUSY: not in time, or sooner, so that
     *  the row is read again */
    int (*enqueue)(void *connection, int64_t queue, int64_t until_ns,
                   sqlock_error *err);
    /** From now on hear whoever releases, without having the queue lock.  NULL:
     *  not to be had.  @return 0; EBUSY: it would not be heard */
    int (*subscribe)(void *connection, int64_t queue, int64_t deadline_ns,
                     sqlock_error *err);
    /** Wait until somebody releases, in no transaction and without sending
     *  anything.  @return 0: notified; EBUSY: not until @p until_ns */
    int (*await)(void *connection, int64_t queue, int64_t until_ns,
                 sqlock_error *err);
    /** Give up the queue lock, and hear nobody any more. */
    int (*leave)(void *connection, int64_t queue, int64_t deadline_ns,
                 sqlock_error *err);
} sqlock_wait_queue;

/* --------------------------------------------------------------- driver -- */

/* Options of a new connection. */
typedef struct sqlock_connect {
    size_t size;                   /* sizeof(sqlock_connect) */
    int64_t deadline_ns;           /* CLOCK_MONOTONIC */
    uint32_t statement_timeout_ms; /* server-side limits are set on this
                                      connection no longer than this, where the
                                      server has them, so that a statement that
                                      was given up does not run on */
    uint32_t lock_timeout_ms;      /* longest wait for somebody's row lock,
                                      as near as the database can: then EBUSY */
    bool may_create;               /* tables are to be made: a database that is
                                      a file is made with them.  Otherwise one
                                      that is not there is ESCHEMA */
} sqlock_connect;

/* Proof of the identity of the server by TLS, from least to most. */
typedef enum sqlock_tls_check {
    SQLOCK_TLS_CHECK_NONE = 0,  /* nothing: TLS was not demanded */
    SQLOCK_TLS_CHECK_DEMANDED,  /* nothing, though TLS was demanded: the
                                   certificate is not checked */
    SQLOCK_TLS_CHECK_AUTHORITY, /* who signed its certificate, not its name */
    SQLOCK_TLS_CHECK_FULL       /* authority and name */
} sqlock_tls_check;

/* Description of a connection. */
typedef struct sqlock_description {
    char server[96];       /* "PostgreSQL 15.18"; "" when not known */
    char client[96];       /* client library and version */
    char tls[64];          /* cipher or protocol; "" when there is no TLS */
    int64_t connection_id; /* backend pid or connection id; 0: none */
    char epoch[SQLOCK_EPOCH_SIZE]; /* another one when the server has taken over
                                      from another, which may have acknowledged
                                      what it does not have; "": not known */
    sqlock_tls_check tls_check;    /* what TLS has checked */
    char forgets[96]; /* settings by which a crash of the server may lose what
                         it has committed: "fsync = off"; "": none */
} sqlock_description;

enum {
    /* execute, begin, commit, rollback keep their deadline by themselves.
     * Without it a thread of the library calls abort at the deadline. */
    SQLOCK_CAP_KEEPS_DEADLINE = 1 << 0,
    /* The database has one writer at a time: a process sends its writes on one
     * connection and commits those that have gathered together.  A statement
     * that fails with EBUSY, EDATABASE, ESCHEMA or EINVAL must leave the
     * transaction usable.  Goes with SQLOCK_CAP_KEEPS_DEADLINE. */
    SQLOCK_CAP_ONE_WRITER = 1 << 1
};

/** A client library and its database.  Members must be set unless they say that
 *  they may be NULL. */
typedef struct sqlock_driver {
    size_t size;         /* sizeof(sqlock_driver): the struct may grow */
    const char *name;    /* "postgres" */
    const char *schemes; /* of URLs, with '|' between: "postgresql|postgres" */
    size_t connection_bytes; /* the library allocates this much, zeroed; all
                                zero must be a state that close() accepts */
    uint32_t capabilities;   /* SQLOCK_CAP_KEEPS_DEADLINE... */
    const sqlock_dialect *dialect; /* the database's SQL */

    /** Client library and version, a constant. */
    const char *(*client)(void);

    /** Check the URL without connecting.  @return 0, EINVAL with what is wrong
     *  (never with the password) */
    int (*check_url)(const char *url, sqlock_error *err);

    /** Connect: autocommit, READ COMMITTED, UTC, own settings on this session
     *  only.  After a failure close() is called all the same. */
    int (*open)(void *connection, const char *url, const sqlock_connect *how,
                sqlock_error *err);

    /** End the session, if any.  Never blocks for the network. */
    void (*close)(void *connection);

    /** False when the server has closed an idle connection, or a transaction is
     *  open on it; no round trip.  Such a connection is not used again: what is
     *  sent by itself would wait for a commit that nobody sends. */
    bool (*is_alive)(void *connection);

    /** Run one statement, and refuse a text of several: what follows the first
     *  could end the transaction.  @p parameters are in the statement's order.
     *  @p result is filled on success only. */
    int (*execute)(void *connection, const sqlock_statement *statement,
                   const sqlock_value *parameters, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err);

    /** Begin a transaction that may write (SQLite: BEGIN IMMEDIATE).  After a
     *  failure there is none, or the connection is not alive. */
    int (*begin)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** Commit.  0 only when the server has said that it committed: not when it
     *  rolled back instead, nor when it only says so with a warning
     *  (EUNCERTAIN). */
    int (*commit)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** Roll back; 0 also when there is no transaction. */
    int (*rollback)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** End the call in flight, from another thread, or the one that is about to
     *  begin: it returns EUNCERTAIN or ECANCELED, or EUNREACHABLE when nothing
     *  had been sent.  The connection may be of no use any more. */
    void (*abort)(void *connection);

    /** The client library's own handle: PGconn *, MYSQL *, sqlite3 *. */
    void *(*native)(void *connection);

    /** Describe the server and the session; no round trip. */
    void (*describe)(void *connection, sqlock_description *description);

    /** May be NULL.  The URL as it leads to the same place from anywhere, for
     *  one that depends on the working directory: malloc'd, or NULL in *out
     *  when it is that already.  Called once, after check_url; connections are
     *  opened with what it gave.  @return 0, EINVAL, ENOMEM */
    int (*resolve_url)(const char *url, char **out, sqlock_error *err);

    /** Its part in transactions of the application; may be NULL. */
    const sqlock_transactions *transactions;

    /** Its part in stock; may be NULL. */
    const sqlock_stock_dialect *stock;

    /** Its wait queue; may be NULL: waiters look at the row. */
    const sqlock_wait_queue *wait_queue;

    /**
     * The `overrides` of the dialect for URLs with the parameter waiting=poll,
     * where nothing is sent that takes part in a wait queue; `wait_queue` is
     * passed over.  The driver gets the URL as it is.  NULL: such a URL is
     * refused if there is a `wait_queue`.
     *
     * Where the row's lock alone makes claims of a key take turns, tokens of
     * our layout rise as long as the row stays: not past a Spring peer, whose
     * unlock deletes it, nor past a reaper with a retention shorter than a
     * statement may take.  On Spring's layouts two tokens may then come in the
     * wrong order.
     */
    const sqlock_fragment *polling;
} sqlock_driver;

/**
 * Register a driver for this process, before a registry is opened with it.
 *
 * @param driver must stay valid as long as the process
 * @return 0           registered
 *         EINVAL      a function or a statement is missing
 *         ECONFLICT   another driver has the name or a scheme
 *         any other   ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_driver_register(const sqlock_driver *driver,
                                          sqlock_error *err);

/**
 * Find a driver by its name: "postgres", "mysql" or "sqlite" where it is
 * compiled in, or the name of one that was registered.  NULL: there is none.
 *
 * To build another on it, copy the struct, give the copy a name and schemes of
 * its own, change what is different, and register it.  Its functions know URLs
 * by their own schemes: a copy's `check_url` and `resolve_url` put them in.  A
 * copy of its dialect may write some fragments otherwise (`overrides`, which
 * may be `polling`), and leave out statements that its database does not know.
 */
SQLOCK_API const sqlock_driver *sqlock_driver_named(const char *name);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_DRIVER_H */
