/*
 * driver.h - what a database's driver provides, and what it may rely on
 *
 * A driver is one client library and one dialect (dialect.h).  It sends
 * one statement at a time, returns rows and counts, and classifies errors.  It
 * does not wait for a lock except in its wait-queue functions, does not retry,
 * reconnect, log or print, and starts no thread; the library does that, once
 * for all drivers.  It reads the clock only to keep the deadline that it was
 * given.
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
 *     EBUSY          not applied: another session's lock of a row or table
 *                    (SQLite: of the database file), or a duplicate key
 *     ECANCELED      not applied: it was ended, by a time limit or by abort
 *     EREADONLY      not applied: wrong node
 *     ERESOURCE      not applied: connections, memory, disk
 *     EACCESS        not applied: login or privilege
 *     ESCHEMA        not applied: no such database, table or column
 *     EDATABASE      not applied: any other error of the statement
 *     EUNREACHABLE   nothing was sent; the connection is unusable now
 *     EUNCERTAIN     sent, but not answered; the connection is unusable now
 *     EINVAL, ENOTSUP, ENOMEM   not sent
 */
#ifndef LK_DRIVER_H
#define LK_DRIVER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/url.h"
#include "base/watchdog.h"
#include "db/dialect.h"
#include "sqlock/value.h"

/* --------------------------------------------------------------- values -- */

/**
 * Begin a result with that number of columns; earlier rows are discarded.
 *
 * @return 0        begun
 *         ENOMEM   out of memory
 */
int sqlock_result_start(sqlock_result *result, size_t columns);

/**
 * Append one cell to a result.  Every `columns` cells make a row.  A text is
 * copied, and need not end with NUL.
 *
 * @return 0        appended
 *         ENOMEM   out of memory
 *         EINVAL   sqlock_result_start() was not called
 */
int sqlock_result_push(sqlock_result *result, const sqlock_value *value);

/** Return the text of a cell; NULL: it has none. */
const char *lk_cell_text(const sqlock_value *cell);
/** Return the integer of a cell; 0: it has none. */
int64_t lk_cell_integer(const sqlock_value *cell);
/** Copy the id, or the key, in a cell, truncated to fit; "": it has none. */
void lk_cell_id(char out[SQLOCK_KEY_SIZE], const sqlock_value *cell);

/* --------------------------------------------------------- transactions -- */

/* State of the transaction on a connection. */
typedef enum sqlock_tx_state {
    SQLOCK_TX_NONE,    /* none is open */
    SQLOCK_TX_OPEN,    /* it can be committed */
    SQLOCK_TX_ABORTED, /* it can only be rolled back, or the server has ended
                          it */
    SQLOCK_TX_GONE     /* connection and transaction are lost */
} sqlock_tx_state;

/* A statement with its parameters. */
typedef struct sqlock_call {
    const sqlock_statement *statement;
    const sqlock_value *values;
    size_t count;
} sqlock_call;

/* Functions of a driver for transactions of the application, and parts of
 * statements about its tables.  Nothing of them is left changed in the
 * session. */
typedef struct sqlock_transactions {
    /* Clause to append to the SELECT of a row: FOR UPDATE without a wait; EBUSY
     * or no row if it is locked.  NULL: rows are not locked one by one. */
    const char *update_free;
    const char *update_wait; /* FOR UPDATE that waits */
    const char *share_free;  /* FOR SHARE without a wait */
    const char *share_wait;  /* FOR SHARE that waits */
    uint32_t wait_unit_ms;   /* unit of `limit`; 0: no statement waits */
    /* The client library gives up a connection, not of an application's handle,
     * a second or two after the statement_timeout_ms with which it was opened:
     * no single wait may take longer. */
    bool reads_in_time;

    const char *timestamp_us;   /* {column}, a point in time, as us */
    const char *next_timestamp; /* a point in time later than {column} */
    /* A condition: the text in {column} has the bytes of the parameter {value},
     * whatever collation and padding the column has. */
    const char *same_text;
    /* A text that is compared with an integer is made a number, so that it
     * equals 0: send integers of the application's keys as text. */
    bool keys_are_text;

    /** Make a connection of the application's open handle, without changing the
     *  handle.  Refuse a handle whose texts are not UTF-8.
     *  @return 0, EINVAL, ... */
    int (*adopt)(void *connection, void *native, sqlock_error *err);
    /** May be NULL.  Ask the session of an adopted handle for what `adopt` has
     *  to know and the client library does not: its encoding, and the state of
     *  its transaction.  Not called where `resume` has returned 0.
     *  @return 0, EINVAL, ... */
    int (*ask)(void *connection, sqlock_error *err);
    /** End the use of an adopted handle; called instead of close.  Without
     *  @p may_use it may be in use, or closed: free what is the library's, and
     *  leave what cannot be freed without the handle. */
    void (*unadopt)(void *connection, bool may_use);
    /** Return the state of the transaction, without a round trip. */
    sqlock_tx_state (*state)(void *connection);
    /** Let statements wait for a lock at most @p wait_ms, a multiple of
     *  wait_unit_ms, and disable other time limits, until `unlimit` restores
     *  them.  Before a wait the library has set a savepoint, and returns to it
     *  after EBUSY.  If wait_unit_ms is 0, @p wait_ms is 0 and statements must
     *  not wait. */
    int (*limit)(void *connection, int64_t wait_ms, int64_t deadline_ns,
                 sqlock_error *err);
    /** Restore what `limit` has changed. */
    int (*unlimit)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** May be NULL: the server ends no transaction because it is idle.  Let the
     *  open one, not an adopted one, be idle for @p idle_ms, more than
     *  sqlock_connect.idle_ms. */
    int (*outlast)(void *connection, uint32_t idle_ms, int64_t deadline_ns,
                   sqlock_error *err);

    /* `unadopt` removes all prepared statements, so those of adopted
     * transactions may be prepared, too. */
    bool unprepares;
    /** May be NULL.  Check, before each statement on an adopted connection,
     *  that its texts are still UTF-8, without a round trip.
     *  @return 0, EINVAL */
    int (*check_adopted)(void *connection, sqlock_error *err);

    /*
     * An application adopts the same connection again and again.  These four
     * may be NULL: then each adoption is like the first one.
     */
    /** Return the server's number of the adopted session, without a round trip.
     *  Sessions of two servers may have the same. */
    int64_t (*session)(void *connection);
    /** Prepare GUARD, and ASSERT where there is one, while no transaction is
     *  open, by names that begin with @p owner, which no other registry has.
     *  They stay after `unadopt`, and until then run by those names.
     *  @return 0; ENOTSUP: a pooler lends the session, or it does not keep
     *  them; or as execute */
    int (*prepare)(void *connection, const char *owner,
                   const sqlock_call *calls, size_t count, int64_t deadline_ns,
                   sqlock_error *err);
    /** Begin a transaction on a session of that number in which `prepare` was
     *  called for the same statements in an earlier adoption; in the same round
     *  trip let the names prove that.  The transaction has no snapshot yet.
     *  @return 0; ENOTFOUND: it is another session, or has them no longer;
     *  ECONFLICT: `ask` and IDENTITY are to be asked again; with both, nothing
     *  was begun; or as begin */
    int (*resume)(void *connection, const char *owner, const sqlock_call *calls,
                  size_t count, int64_t deadline_ns, sqlock_error *err);
    /** Return whether `prepare` or `resume` has succeeded, and no statement has
     *  found since that the application has deallocated it. */
    bool (*is_prepared)(void *connection);

    /** Run ASSERT @p times times, each time with the next @p count of the
     *  values, and commit unless one fails, all in one round trip.  May be
     *  NULL: then the library sends GUARD again for each lease, and `commit`.
     *  @return ENOTFOUND: an ASSERT found no row, and nothing was committed; or
     *  as commit */
    int (*commit_if)(void *connection, const sqlock_statement *statement,
                     const sqlock_value *values, size_t count, size_t times,
                     int64_t deadline_ns, sqlock_error *err);
    /** Commit, in one round trip, if the session has run GUARD by its name, and
     *  nothing since the last time can have released the row that it locked.
     *  May be NULL.
     *  @return ENOTFOUND: that is not certain, and nothing was committed; or as
     *  commit */
    int (*commit_same)(void *connection, int64_t deadline_ns,
                       sqlock_error *err);
} sqlock_transactions;

/* ---------------------------------------------------------------- bells -- */

/* Characters of a bell's name at most. */
#define SQLOCK_BELL_MAX 32

/*
 * How a session learns that a lock for which it waits may have been given to
 * it.  A bell says no more than "look": the row decides.  So a bell may ring in
 * vain, and whoever hears must look now and then anyway, since a ring can be
 * lost with a connection, and whoever would ring may have died.
 *
 * A bell has a name: 1 to SQLOCK_BELL_MAX characters of [0-9a-f].
 *
 * No function waits but `begin` and `end`, until their deadline.
 */
typedef struct sqlock_bell {
    /* False: a bell is the process's own, and one connection hears for all
     * waiters of the process.  Others ring in SQL, by a statement that also
     * changes the row; that is heard after the commit, and a rollback forgets
     * it.  A text may be rung at all bells, too: SQLOCK_SQL_TELL.
     * True: the database tells a session of one other only, when it has gone:
     * of whom it waits for, the one before.  A bell is then a lock of the
     * database that its owner takes when it begins to hold or to wait, and that
     * is free once its owner gives it up or dies.  It is given up at once, not
     * with a commit. */
    bool is_of_one;
    /* If !is_of_one: the connection may run statements, too, until `end`, but
     * none while another thread calls hear().  Rings that come meanwhile are
     * kept. */
    bool keeps_rings;

    /** Begin to hear on this connection, on which no transaction is open, and
     *  which is used for nothing else until `end` unless it keeps_rings.
     *  If !is_of_one, @p name is the process's own bell; @p until_ns is not
     *  used.  Rings before the call are not heard, those after it are.
     *  If is_of_one, @p name is the bell of the one before: send the statement
     *  that waits for it, until @p until_ns at the latest, and do not wait for
     *  the answer.  No statement is sent before that is heard: EINVAL.
     *  @return 0; ENOTSUP: a pooler shares the session, or there is no room for
     *  a bell; EINVAL: not a name, or it hears already; or as execute */
    int (*begin)(void *connection, const char *name, int64_t until_ns,
                 int64_t deadline_ns, sqlock_error *err);

    /** Return the descriptor, to be polled for reading, that becomes readable
     *  when hear() has something to do, or the connection is lost; -1: lost.
     *  Poll it after hear(), also for the first time: what came during `begin`
     *  it does not show. */
    int (*descriptor)(void *connection);

    /** Take what has arrived, and call @p rung for each.  Its text is
     *  !is_of_one: what was rung, or "" if rings may have been lost: look at
     *  everything;
     *  is_of_one: "free": the one before has gone, and its bell is nobody's;
     *  "time": it is not waited for any longer.  Statements can be sent again.
     *  @p rung may not use the connection.
     *  @return 0: something had; EBUSY: nothing; EUNREACHABLE: the connection
     *  is lost, or nobody can ring any more */
    int (*hear)(void *connection, void (*rung)(void *context, const char *text),
                void *context);

    /** End hearing, so that the connection can be used for anything else.
     *  Rings that were not heard are forgotten.  If is_of_one, it also gives up
     *  the bells that the connection has.
     *  @return 0; EBUSY if is_of_one: a statement waits, and only close() ends
     *  that; or as execute */
    int (*end)(void *connection, int64_t deadline_ns, sqlock_error *err);
} sqlock_bell;

/* --------------------------------------------------------------- driver -- */

/* Options of a new connection. */
typedef struct sqlock_connect {
    int64_t deadline_ns;           /* CLOCK_MONOTONIC */
    uint32_t statement_timeout_ms; /* server-side limits are set on this
                                      connection no longer than this, where the
                                      server has them, so that a statement that
                                      was given up does not run on */
    uint32_t lock_timeout_ms;      /* longest wait for somebody's row lock,
                                      as near as the database can: then EBUSY */
    uint32_t idle_ms;              /* in a transaction of `begin` the server
                                      ends the session once its client has
                                      said nothing for so long, as near as it
                                      can: the client may be gone, and its row
                                      locks with it; 0: never */
    struct lk_watchdog *dog;       /* for a client library whose calls have no
                                      deadline: a thread that calls `abort`;
                                      may be NULL in tests */
    bool may_create;               /* tables are to be created: if the database
                                      is a file that does not exist, create it.
                                      Otherwise return ESCHEMA for it */
    bool was_there;                /* a connection to it was open before: if it
                                      is a file that does not exist now, return
                                      EUNREACHABLE, as it may come back */
} sqlock_connect;

/* Proof of the server's identity by TLS, from the weakest to the strongest. */
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
    char epoch[SQLOCK_EPOCH_SIZE]; /* changes when another server has taken over
                                      that may lack what the one before it has
                                      acknowledged; "": not known */
    sqlock_tls_check tls_check;    /* what TLS has checked */
    char forgets[96]; /* settings by which a crash of the server may lose what
                         it has committed: "fsync = off"; "": none */
    bool is_narrow;   /* the database's encoding lacks characters of UTF-8 */
    bool returns_no_rows; /* an INSERT cannot return the rows that it writes:
                             the server lacks RETURNING */
    bool is_standby; /* the server was one when the session was opened, so its
                        epoch is not known */
} sqlock_description;

/** A client library and its database.  Members must be set unless they say that
 *  they may be NULL. */
typedef struct sqlock_driver {
    const char *name;    /* "postgres" */
    const char *schemes; /* of URLs, with '|' between: "postgresql|postgres" */
    size_t connection_bytes; /* the library allocates this much, zeroed; all
                                zero must be a state that close() accepts */
    /* The database has one writer at a time: a process sends its writes on one
     * connection, and commits together those that have gathered.  A statement
     * that fails with EBUSY, EDATABASE, ESCHEMA or EINVAL must leave the
     * transaction usable. */
    bool has_one_writer;
    const sqlock_dialect *dialect; /* the database's SQL */

    /* With durability=fast in the URL, a commit of a statement that may be lost
     * does not wait for the disk, nor for a standby; all others do. */
    bool can_be_fast;

    /** Client library, a constant, without loading it: "libpq.so.5". */
    const char *(*client)(void);

    /** Check the URL without connecting, and load the client library if that
     *  was not done.  Make a path that depends on the working directory
     *  absolute.  Called once, before `open`.  @return 0; EINVAL: the message
     *  says what is wrong, without the password; ENOTSUP: the library is not
     *  there, and the message says what to install; ENOMEM */
    int (*check_url)(struct lk_url *url, sqlock_error *err);

    /** Connect, and set autocommit, READ COMMITTED, UTC and own settings, on
     *  this session only.  If a pooler may lend the session to others, leave
     *  nothing on it, and make the settings with each statement and
     *  transaction.  After a failure close() is called all the same. */
    int (*open)(void *connection, const struct lk_url *url,
                const sqlock_connect *how, sqlock_error *err);

    /** End the session, if any.  Never blocks for the network. */
    void (*close)(void *connection);

    /** Return false if the server has closed the idle connection, or if a
     *  transaction is open on it; no round trip.  The connection is then not
     *  used again: in an open transaction, a statement sent by itself would
     *  wait for a commit that nobody sends. */
    bool (*is_alive)(void *connection);

    /** Run one statement, and refuse a text with several, as one of them could
     *  end the transaction.  @p parameters are in the statement's order.
     *  @p result is filled on success only. */
    int (*execute)(void *connection, const sqlock_statement *statement,
                   const sqlock_value *parameters, size_t count,
                   int64_t deadline_ns, sqlock_result *result,
                   sqlock_error *err);

    /** Begin a transaction that may write (SQLite: BEGIN IMMEDIATE).  After a
     *  failure there is none, or the connection is not alive. */
    int (*begin)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** Commit.  Return 0 only if the server has confirmed the commit: an error
     *  if it rolled back instead, EUNCERTAIN if it confirmed with a warning. */
    int (*commit)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** Roll back.  Return 0 also if there is no transaction. */
    int (*rollback)(void *connection, int64_t deadline_ns, sqlock_error *err);

    /** End the call in flight, or the one that is about to begin; called by
     *  another thread.  That call returns EUNCERTAIN or ECANCELED, or
     *  EUNREACHABLE if nothing had been sent.  The connection may be unusable
     *  afterwards. */
    void (*abort)(void *connection);

    /** Return the client library's own handle: PGconn *, MYSQL *, sqlite3 *. */
    void *(*native)(void *connection);

    /** Describe the server and the session; no round trip. */
    void (*describe)(void *connection, sqlock_description *description);

    /** Transactions of the application; may be NULL: they are refused. */
    const sqlock_transactions *transactions;

    /** SQL about stock; may be NULL: sqlock_stock_open() refuses. */
    const sqlock_stock_dialect *stock;

    /**
     * Bell; may be NULL: waiters read the row every `poll_ms`.  With the
     * parameter waiting=poll of a URL, which the driver gets with it, the bell
     * is not used, and statements ring none and take no advisory locks.
     *
     * If only the row's lock serializes the claims of a key, tokens of sqlock's
     * layout rise as long as the row stays.  They may not rise where a Spring
     * peer's unlock deletes the row, or a reaper with a retention shorter than
     * a statement may take.  On Spring's layouts two tokens may then come in
     * the wrong order.
     */
    const sqlock_bell *bell;
} sqlock_driver;

#endif
