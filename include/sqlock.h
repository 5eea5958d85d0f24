/*
 * sqlock.h - locks kept in the SQL database an application already has
 *
 * This header has what an application needs to take, hold and release a lock.
 * Each header in sqlock/ adds one topic, such as many.h, async.h or tx.h.
 *
 * Calling sequence
 *     rc = sqlock_schema_create(url, NULL, SQLOCK_LAYOUT_SQLOCK, &err);
 *     if (rc == 0)
 *         rc = sqlock_registry_open(&registry, url, NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_obtain(&lock, registry, "invoice/4711", &err);
 *     if (rc == 0)
 *         rc = sqlock_acquire(lock, 5000, NULL, &err);
 *     if (rc == 0) {
 *         while (work_to_do() && sqlock_remaining_ms(lock) > 0)
 *             do_a_step();
 *         rc = sqlock_release(lock, &err);
 *     }
 *     sqlock_registry_close(registry, NULL);
 *
 * What a lock promises
 *     The database's clock decides when a lease has expired.  The holder stops
 *     earlier: its own deadline is the time on this host's CLOCK_BOOTTIME just
 *     before the claim was sent, plus the TTL, minus a margin.  The deadline
 *     passes without any I/O.  A process that is paused can still write after
 *     its lease has ended.  Where that must not happen, guard the writes
 *     (tx.h), or send sqlock_token() with each write, and let the receiver
 *     refuse tokens smaller than the greatest it has seen.
 *
 * Time
 *     Names of milliseconds end in _ms; of microseconds since 1970-01-01 UTC,
 *     on the database's clock, in _at_us.
 *
 * Threads
 *     Any thread may use a registry and its locks at any time; `ownership` says
 *     who owns a lock that is held.  pthread_cancel() has to wait: until a call
 *     that acquires, renews or releases ends, by itself; else by the caller.
 *
 * Child processes
 *     A registry works only in the process that opened it.  In a child each
 *     call returns EFORK and touches no connection; the child opens a registry
 *     of its own.  If the parent had a SQLite file open at the fork, the child
 *     cannot open any (EFORK): fork first, or exec.
 *
 * Structs
 *     The caller's begin with their size, set by an _INIT macro; rows get
 *     theirs by a function in _sized.  They may grow at their end;
 *     sqlock_error, sqlock_value and others without a size stay as they are.
 *
 * Strings
 *     Strings are UTF-8, end with NUL, and are copied before a call returns.
 *
 * Results
 *     Functions return 0 or a negative code; none of the library's codes is
 *     positive, so `if (rc)` and `if (rc < 0)` both notice every failure.  The
 *     headers write codes without SQLOCK_ in front.  Each function lists those
 *     that a caller handles one by one.  Any other code means: not held,
 *     nothing was done, the message says why.  Either the call is wrong
 *     (EINVAL, EFORK, ENOTSUP), or the database is away (EUNREACHABLE), refuses
 *     (EACCESS, ESCHEMA, EREADONLY, EDATABASE) or has no room (ERESOURCE,
 *     ENOMEM).  A new release may add codes: take an unknown one for "not
 *     held".
 *
 * Errors
 *     The last argument of most functions is a sqlock_error of the caller, or
 *     NULL.  It is written on failure only.  Its message has no password in it.
 */
#ifndef SQLOCK_H
#define SQLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQLOCK_API __attribute__((visibility("default")))
#define SQLOCK_MUSTUSE SQLOCK_API __attribute__((warn_unused_result))
#define SQLOCK_INLINE static inline __attribute__((unused, warn_unused_result))

/* An option struct with all defaults.  C++ before C++20 has no designated
 * initializers, and warns of members that a list leaves out. */
#ifdef __cplusplus
extern "C++" {
template <class type> inline type sqlock_sized()
{
    type defaults = type();

    defaults.size = sizeof(type);
    return defaults;
}
}
#define SQLOCK_SIZED(type) sqlock_sized<type>()
#else
#define SQLOCK_SIZED(type)                                                     \
    {                                                                          \
        .size = sizeof(type)                                                   \
    }
#endif

#define SQLOCK_VERSION_MAJOR 0
#define SQLOCK_VERSION_MINOR 1
#define SQLOCK_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
/* X(name, value, text): the enum and sqlock_strerror() share this table. */
#define SQLOCK_ERRORS(X)                                                      \
    X(EBUSY,        -1, "the lock is held by another owner")                  \
    X(ETIMEDOUT,    -2, "the lock was not free before the deadline")          \
    X(ELOST,        -3, "the lease is lost: another owner has had the lock")  \
    X(EEXPIRED,     -4, "the lease ran out before it was renewed")            \
    X(EUNCERTAIN,   -5, "the connection broke with a statement in flight: "   \
                        "it may or may not have been carried out")            \
    X(EUNREACHABLE, -6, "the database cannot be reached, nothing was done")   \
    X(ERETRY,       -7, "the database asks to run the transaction again")     \
    X(EOWNER,       -8, "this thread does not own the lock")                  \
    X(EINVAL,       -9, "an argument is not valid")                           \
    X(ENOMEM,      -10, "out of memory")                                      \
    X(EFORK,       -11, "used in a child process of the one that opened it")  \
    X(ENOTSUP,     -12, "not supported by this database or table layout")     \
    X(ESCHEMA,     -13, "a table is missing or has the wrong shape")          \
    X(EACCESS,     -14, "the database refuses the login or the privilege")    \
    X(EREADONLY,   -15, "the database is read-only")               \
    X(ERESOURCE,   -16, "the server is out of a resource")                    \
    X(ECANCELED,   -17, "cancelled, nothing was written")                     \
    X(EDATABASE,   -18, "the database reported an error")                     \
    X(ENOTFOUND,   -19, "there is no such row in the table")                  \
    X(EINUSE,      -20, "the lock is still held or waited for")               \
    X(ECONFLICT,   -21, "the row is not in the state that was expected")      \
    X(EINSUFFICIENT, -22, "there is not enough of the item in stock")         \
    X(EORDER,      -23, "the order id was used for something else")           \
    X(EDEADLOCK,   -24, "the wait would never end: for itself, or crosswise")
/* clang-format on */

enum {
#define SQLOCK_X(name, value, text) SQLOCK_##name = (value),
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
};

/** An open table of locks. */
typedef struct sqlock_registry sqlock_registry;

/** A reference to one lock, by its name, in a registry. */
typedef struct sqlock_lock sqlock_lock;

/** Description of a failure.  The caller owns the memory.  It never grows: a
 *  new member would take the end of `message`. */
typedef struct sqlock_error {
    int code;          /* the code that the function returned */
    int native;        /* the client library's; errno of ERESOURCE here; or 0 */
    char sqlstate[6];  /* SQLSTATE, or "" when the database gave none */
    char message[506]; /* one line without a newline */
} sqlock_error;

/** Text of a result code: a constant, never NULL, also for unknown codes. */
SQLOCK_API const char *sqlock_strerror(int code);

/** Version of the library that was loaded, "0.1.0"; not the header's. */
SQLOCK_API const char *sqlock_version(void);

/* ------------------------------------------------------------- registry -- */

/* As a time to wait: no limit. */
#define SQLOCK_FOREVER (-INT64_C(1))

/* Size of a LOCK_KEY or a CLIENT_ID: 36 characters and the NUL. */
#define SQLOCK_KEY_SIZE 37

/** Owner of a lock that is held. */
typedef enum sqlock_ownership {
    SQLOCK_OWNED_BY_THREAD = 0, /* the thread that acquired it; re-entrant */
    /* Any thread of the process.  Acquires are counted, and THREADS DO NOT
     * EXCLUDE EACH OTHER. */
    SQLOCK_OWNED_BY_REGISTRY,
    /* One handle: each sqlock_obtain() gives a new owner, for any thread to
     * use, not re-entrant.  For coroutines, thread pools, other languages. */
    SQLOCK_OWNED_BY_HANDLE
} sqlock_ownership;

/** Rule that makes a LOCK_KEY of a name, as Spring's UUIDConverter does. */
typedef enum sqlock_key_rule {
    SQLOCK_KEY_CURRENT = 0, /* as Spring 6.0.8+, 6.1.4+, 6.2+ and 7 */
    SQLOCK_KEY_LEGACY,      /* as Spring up to 6.0.7 and 6.1.3 */
    SQLOCK_KEY_RAW          /* the name itself, 1 to 36 bytes of ASCII */
} sqlock_key_rule;

/** Columns of the lock table. */
typedef enum sqlock_layout {
    SQLOCK_LAYOUT_SQLOCK = 0, /* sqlock's, with tokens and names; services of
                                 Spring 7, called peers, may share the table */
    SQLOCK_LAYOUT_SPRING7,    /* the five columns of Spring 7 */
    SQLOCK_LAYOUT_SPRING6     /* the four columns of Spring 5.4 to 6.5 */
} sqlock_layout;

/** Way to wait for a lock that another process holds. */
typedef enum sqlock_waiting {
    SQLOCK_WAITING_AUTO = 0, /* the release wakes the waiter, where it can */
    SQLOCK_WAITING_POLL      /* read the row every `poll_ms` */
} sqlock_waiting;

/** Level of an event. */
typedef enum sqlock_level {
    SQLOCK_LEVEL_DEBUG = -1, /* each grant and release */
    SQLOCK_LEVEL_INFO = 0,   /* worth a line in a log */
    SQLOCK_LEVEL_WARNING,    /* locks work; somebody should look at it */
    SQLOCK_LEVEL_ERROR       /* something does not work */
} sqlock_level;

/** Something that happened; sqlock/event.h has its members. */
typedef struct sqlock_event sqlock_event;

/** Function that receives an event (event.h), in any thread, and in several at
 *  a time.  Its calls of its registry return EINUSE. */
typedef void (*sqlock_event_fn)(void *context, const sqlock_event *event);

/** Options of a registry.  Zero means the default. */
typedef struct sqlock_options {
    size_t size; /* sizeof(sqlock_options): the struct may grow */
    /* Name space of the locks, 1 to 97 bytes, not ending with "#tx" or a blank;
     * default "DEFAULT". */
    const char *region;
    /* default "INT_" for INT_LOCK; a schema: "app.INT_", "\"My-app\".INT_" */
    const char *table_prefix;
    uint32_t ttl_ms; /* length of a lease, 10 ms to 7 days; default 10 000 */
    /* How long before the lease's end on the database's clock a holder stops;
     * less than any TTL; default max(1, TTL / 20). */
    uint32_t margin_ms;
    const char *holder_note; /* shown with the holder, up to 80 bytes */
    /* Connections for calls, 1 to 64; default 4.  More are opened when needed:
     * one for renewals, one when all are in transactions, and one for waiting.
     * MySQL: half of pool_size for waiting, and one for each lease that was
     * waited for, 16 at most; further waits read the row. */
    uint32_t pool_size;
    sqlock_ownership ownership; /* default SQLOCK_OWNED_BY_THREAD */
    sqlock_key_rule key_rule;   /* default SQLOCK_KEY_CURRENT */
    /* Longest TTL of the Spring peers; default 10 000.  It decides expiry on
     * the four-column layout, and not that of sqlock's own leases there. */
    uint32_t peer_ttl_ms;
    /* Limit for opening a connection, in addition to that of the statement that
     * needs it, 10 ms to 1 hour; default 5000.  For renewals it is at most
     * TTL / 4, or statement_timeout_ms where that is more. */
    uint32_t connect_timeout_ms;
    /* Limit for one statement, 10 ms to 1 hour; default TTL / 8, but at least
     * 500 and at most 5000.  Many locks take several: sqlock/many.h. */
    uint32_t statement_timeout_ms;
    uint32_t poll_ms;         /* pause between polls of a row; default 100 */
    uint32_t renew_period_ms; /* at most TTL / 3; default TTL / 4 */
    sqlock_event_fn on_event; /* receives events; NULL: nobody does */
    void *event_context;      /* first argument of `on_event` */
    sqlock_level event_level; /* lowest level for `on_event`; default INFO */
    sqlock_waiting waiting;   /* default SQLOCK_WAITING_AUTO */
    /* End a wait by EDEADLOCK within two seconds if the holder (of a shared
     * lock: so many that the others leave too little) waits, at once or through
     * others, for a lock of the waiter, also in other processes: by a query of
     * each wait of a holder each 700 ms.  Set it in all; on sqlock's layout.
     * Circles of handles, where these own locks, are found within the process
     * only. */
    bool detect_deadlocks;
    bool no_peers; /* no Spring service shares the table: wait for none */
} sqlock_options;
#define SQLOCK_OPTIONS_INIT SQLOCK_SIZED(sqlock_options)

/**
 * Create the lock table where it does not exist, and check it.  Call it once
 * per database.  `sqlock init` does the same; a DBA may run the files of sql/.
 *
 * @return 0           the table is there, with this layout
 *         ECONFLICT   it exists with another layout
 *         ESCHEMA     it exists, and cannot hold locks
 *         EBUSY       it is missing, and another session is in the way
 */
SQLOCK_MUSTUSE int sqlock_schema_create(const char *url,
                                        const sqlock_options *options,
                                        sqlock_layout layout,
                                        sqlock_error *err);

/**
 * Open the lock table of a database, and find out its layout.  URLs are
 *
 *     postgresql://user:password@host:port,host2:port2/db?...   as in libpq
 *     mysql://user:password@host:port/db?socket=...&tls=verify&ca=...
 *     sqlite:relative/path   sqlite:/absolute/path?synchronous=full
 *
 * sqlock-databases(7) has their parameters, where passwords come from, and TLS.
 * TLS that the URL demands is checked on the open connection.  This call does
 * not create a SQLite file.
 *
 * @param[out] out closed by sqlock_registry_close(); NULL on failure
 * @param options  NULL: all defaults
 * @return 0              open
 *         EUNREACHABLE   the database cannot be reached; try again later
 *         ESCHEMA        there is no such table or file, or it cannot hold
 *                        locks: not durable, no primary key, wrong columns
 *         EACCESS        login, privilege or TLS
 *         EINVAL         the URL leads nowhere: no such host or directory
 *         ENOTSUP        there is no driver for this URL
 */
SQLOCK_MUSTUSE int sqlock_registry_open(sqlock_registry **out, const char *url,
                                        const sqlock_options *options,
                                        sqlock_error *err);

/**
 * Release all that this registry holds, and free it with its locks.  It closes
 * the connections and ends the threads, within about two statement deadlines
 * when the database is away.  No other call may be running.  NULL is allowed.
 *
 * @return 0                 all was released
 *         EFORK             this is a child process: nothing was touched
 *         EINUSE            refused: its transaction, stock or callback goes on
 *         ELOST, EEXPIRED   closed; a lease was lost, or had expired
 *         any other         closed, but some leases may end only by their TTL,
 *                           as after EUNREACHABLE or EUNCERTAIN
 */
SQLOCK_API int sqlock_registry_close(sqlock_registry *registry,
                                     sqlock_error *err);

/* ----------------------------------------------------------------- lock -- */

/**
 * Get a reference to the lock of a name.  No I/O.  While there is a reference,
 * the same name gives the same handle; with SQLOCK_OWNED_BY_HANDLE each call
 * gives another one, for one thread at a time.
 *
 * @param[out] out dropped by sqlock_drop(); NULL on failure
 * @param name     0 to 10 000 bytes of UTF-8; with SQLOCK_KEY_RAW 1 to 36 bytes
 *                 of printable ASCII
 */
SQLOCK_MUSTUSE int sqlock_obtain(sqlock_lock **out, sqlock_registry *registry,
                                 const char *name, sqlock_error *err);

/**
 * Drop one reference.  NULL is allowed.
 *
 * @return 0        dropped
 *         EINUSE   refused: this is the last reference, and the lock is held or
 *                  waited for
 *         EFORK    this is a child process: nothing was touched
 */
SQLOCK_API int sqlock_drop(sqlock_lock *lock, sqlock_error *err);

/**
 * Function for a lost lease.  It is called once when a lease ends before it was
 * released, at most 50 ms after the holder's deadline, whatever the database
 * does.  @p code is ELOST or EEXPIRED.  It runs on a thread of the library and
 * delays the calls for other locks, so keep it short.  It may query the lock,
 * but must not acquire, renew, release or drop it, nor release a lock whose
 * on_lost waits for it: EINUSE, since a release waits until on_lost has ended.
 */
typedef void (*sqlock_lost_fn)(void *context, sqlock_lock *lock, int code);

/** Mode of an acquisition. */
typedef enum sqlock_mode {
    SQLOCK_EXCLUSIVE = 0, /* the owner has the lock alone */
    SQLOCK_SHARED         /* it has it with others: sqlock/shared.h */
} sqlock_mode;

/** Options of one acquisition.  Zero means the default. */
typedef struct sqlock_acquire_options {
    size_t size; /* sizeof(sqlock_acquire_options): the struct may grow */
    /* Length of the lease, above margin_ms; default the registry's ttl_ms. */
    uint32_t ttl_ms;
    /* Renew in the background until the release, or until the owning thread
     * ends. */
    bool auto_renew;
    /* The application checks the token with its writes, so a step of the
     * database's clock does not end the lease.  Otherwise renewals of
     * `auto_renew` notice a step forward and end the lease; without them only a
     * token or a guard protects.  After a step back a lease lasts longer. */
    bool fenced;
    uint32_t max_hold_ms;   /* how long `auto_renew` goes on; 0: no limit */
    sqlock_lost_fn on_lost; /* called when the lease is lost; NULL: none */
    void *lost_context;     /* first argument of `on_lost` */
    /* A descriptor of the caller's, such as an eventfd, that the library does
     * not read; 0: none.  The wait ends with ECANCELED when it becomes readable
     * or all writers of a pipe are gone.  Signal handlers may write to it. */
    int cancel_fd;
    bool fail_fast;   /* end the wait at the first error of the database */
    sqlock_mode mode; /* default SQLOCK_EXCLUSIVE */
    uint32_t permits; /* with SQLOCK_SHARED, of a row that has none; 0: none */
    uint32_t weight;  /* how many of them to take; 0 stands for 1 */
    const sqlock_mode *modes; /* of each of many locks; NULL: `mode` for all */
    uint64_t actor;           /* who waits: sqlock_set_actor() of lease.h */
} sqlock_acquire_options;
#define SQLOCK_ACQUIRE_INIT SQLOCK_SIZED(sqlock_acquire_options)

/**
 * Take the lock.  If the owner has it already, nothing is sent, and its hold
 * count rises by one.  Threads of one registry are served in order, and so are
 * processes, but for 16 threads in a row, and Spring services: see
 * sqlock-waiting(7).
 *
 * A wait also waits for the database: while that cannot be reached, is a
 * standby or is out of connections, the call tries again after 50 ms to a
 * second, unless `fail_fast` is set.  EINVAL, EACCESS, ESCHEMA, EDATABASE and,
 * with SQLite, EREADONLY end the wait at once.  The call returns within the sum
 * of @p wait_ms, statement_timeout_ms and, where it connects,
 * connect_timeout_ms.  Both timeouts count twice where a connection broke and
 * the claim is in doubt, statement_timeout_ms also where other threads claim.
 *
 * @param wait_ms 0: try once; SQLOCK_FOREVER: no limit
 * @param options NULL: all defaults
 * @return 0                  held
 *         EBUSY              another owner holds it or waits for it, and
 *                            @p wait_ms is 0
 *         ETIMEDOUT          it was not free in time, or the claim took longer
 *                            than its lease or than statement_timeout_ms
 *         EUNCERTAIN         the connection broke, and the outcome is not
 *                            known.  NOT HELD: the row is freed in the
 *                            background, or expires
 *         EDEADLOCK          the holder is the `actor`, or waits, directly or
 *                            through others, for a lock of this one: release it
 *         any other          not held.  ECANCELED: sqlock_cancel() or
 *                            `cancel_fd`.  ELOST, EEXPIRED: the caller's lease
 *                            is over, release it first.  EINUSE: this handle
 *                            holds the lock or waits for it.  EINVAL, also: the
 *                            caller holds the lock, and asks for a TTL, renewal
 *                            or callback that its first acquire did not
 */
SQLOCK_MUSTUSE int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                                  const sqlock_acquire_options *options,
                                  sqlock_error *err);

/**
 * End all waits for the lock in this registry; with SQLOCK_OWNED_BY_HANDLE,
 * those of this handle.  Any thread may call it, but no signal handler.  A
 * claim that is being sent is completed: its caller may still get 0.
 */
SQLOCK_API int sqlock_cancel(sqlock_lock *lock, sqlock_error *err);

/**
 * Undo one acquire; undoing the last one gives the lock back.  The caller then
 * holds it no longer, whatever the result, except EOWNER, EINUSE and EFORK.
 *
 * @return 0           released
 *         EEXPIRED    the lease had expired; nobody else had the lock
 *         ELOST       somebody else has had the lock: what it protects may be
 *                     damaged
 *         EOWNER, EINUSE   nothing was done: the caller does not own it, or an
 *                     open transaction guards it
 *         any other   given up; the registry goes on trying to free the row
 *                     until the lease expires
 */
SQLOCK_MUSTUSE int sqlock_release(sqlock_lock *lock, sqlock_error *err);

/**
 * Start the lease anew.  A lease that has expired is not revived.  After a
 * claim or renewal that got no answer, the lease does not get longer than that
 * statement would make it: the statement may still arrive.
 *
 * @param ttl_ms length from now; 0: that of the acquisition or last renewal
 * @return 0           renewed
 *         EEXPIRED, ELOST   the lease is over: stop, and release
 *         EOWNER, EINUSE    not the caller's; a transaction guards it
 *         any other   not renewed, still held until the old deadline; try
 *                     again.  EBUSY: the row is locked, or it timed out
 */
SQLOCK_MUSTUSE int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms,
                                sqlock_error *err);

/** True while the caller holds a lease that is not over.  No I/O. */
SQLOCK_API bool sqlock_is_held(sqlock_lock *lock);

/** Number of acquires that the caller has not yet released, also of a lease
 *  that is over.  No I/O. */
SQLOCK_API uint32_t sqlock_hold_count(sqlock_lock *lock);

/** Milliseconds until the holder's deadline; 0: not held, lost or over.  No
 *  I/O: ask before each step that has effects. */
SQLOCK_API int64_t sqlock_remaining_ms(sqlock_lock *lock);

/**
 * Fencing token of this acquisition; 0 when not held, though a lease that is
 * over may keep its token until its release.  No I/O.  The token is greater
 * than all earlier ones of this lock, also after the database's clock was set
 * back.  But where no row keeps the last token (on Spring's layouts, or after a
 * Spring peer has deleted the row), it is the database's clock in microseconds
 * alone.  That may be smaller after the clock was set back and, with MySQL and
 * MariaDB, after a claim was delayed at the server while others held the lock.
 */
SQLOCK_API int64_t sqlock_token(sqlock_lock *lock);

/** The name that the lock was obtained by first, and its LOCK_KEY.  Valid while
 *  the caller has a reference. */
SQLOCK_API const char *sqlock_name(const sqlock_lock *lock);
SQLOCK_API const char *sqlock_key(const sqlock_lock *lock);

/** Free a text or list that says "freed by sqlock_free()".  NULL is allowed. */
SQLOCK_API void sqlock_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_H */
