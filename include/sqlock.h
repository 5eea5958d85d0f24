/*
 * sqlock.h - locks kept in the SQL database an application already has
 *
 * This header, and sqlock/stock.h for those who sell something, are the whole
 * contract with applications: what is not written there may change.  A registry
 * is a table of locks (INT_LOCK) in one database; a lock is a name in a region
 * of it; a holder has a lease: the lock is its own until the lease's end,
 * unless it is renewed.
 *
 * Calling sequence
 *     sqlock_schema_create()  once per database (or `sqlock init`, or a DBA)
 *     sqlock_registry_open()  once per process
 *     sqlock_obtain()         a counted reference to a lock, by name
 *     sqlock_acquire()        ... the critical section, while
 *                             sqlock_remaining_ms() > 0 ...
 *     sqlock_release()
 *     sqlock_drop()           the reference
 *     sqlock_registry_close()
 *
 * What a lock promises
 *     Expiry is judged by the database's clock.  The holder's own deadline is
 *     this host's CLOCK_BOOTTIME, read before the claim was sent, plus the TTL,
 *     minus a margin: it ends sooner than the database's, and it ends without
 *     any I/O.  A process that is paused may still write after its lease ended;
 *     pass sqlock_token() along with each write and refuse smaller tokens where
 *     that must not happen.
 *
 * Time      Durations are milliseconds and end in _ms; points in time are
 *           microseconds since 1970-01-01 UTC on the database's clock and end
 *           in _at_us.
 * Threads   A registry and its locks may be used from any thread at any time.
 *           Who owns a held lock is said by sqlock_options.ownership.
 * fork()    A registry works only in the process that opened it.  In a child
 *           every call answers SQLOCK_EFORK and touches no connection; open
 *           another registry there.  With SQLite that is refused too (EFORK)
 *           while the parent had one open at the fork: fork first, or exec.
 * Strings   UTF-8, NUL-terminated, copied before the call returns.
 * Results   0 or a negative code, never positive: both `if (rc)` and
 *           `if (rc < 0)` refuse to enter the critical section.  New codes may
 *           appear in any release: treat an unknown one as "not held".
 *           Predicates return bool.
 * Errors    The last argument of most functions is a sqlock_error owned by the
 *           caller; NULL is allowed.  It is filled on failure only, and holds
 *           one line without any password.
 */
#ifndef SQLOCK_H
#define SQLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SQLOCK_API __attribute__((visibility("default")))
#define SQLOCK_MUSTUSE SQLOCK_API __attribute__((warn_unused_result))

/* An option struct that is all defaults.  C++ before 20 has no designated
 * initializer, and warns of members that a list leaves out. */
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
    X(EREADONLY,   -15, "the server is read-only (a replica?)")               \
    X(ERESOURCE,   -16, "the server is out of a resource")                    \
    X(ECANCELED,   -17, "cancelled, nothing was written")   \
    X(EDATABASE,   -18, "the database reported an error")                     \
    X(ENOTFOUND,   -19, "there is no such row in the table")                  \
    X(EINUSE,      -20, "the lock is still held or waited for")               \
    X(ECONFLICT,   -21, "the row is not in the state that was expected")      \
    X(EINSUFFICIENT, -22, "there is not enough of the item in stock")         \
    X(EORDER,      -23, "the order id was used for something else")
/* clang-format on */

enum {
#define SQLOCK_X(name, value, text) SQLOCK_##name = (value),
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
};

typedef struct sqlock_registry sqlock_registry; /* a table of locks, opened */
typedef struct sqlock_lock sqlock_lock;         /* one name in a registry */
typedef struct sqlock_request sqlock_request;   /* one acquire or release */

/** What went wrong, in the caller's memory. */
typedef struct sqlock_error {
    int code;          /* as returned */
    int native;        /* error number of the client library, or 0 */
    char sqlstate[6];  /* "" when the database gave none */
    char message[506]; /* one line, no trailing newline */
} sqlock_error;

/** Text of a result code, a constant; never NULL, also for unknown codes. */
SQLOCK_API const char *sqlock_strerror(int code);

/** "0.1.0": of the library that was loaded, not of the header. */
SQLOCK_API const char *sqlock_version(void);

/* ------------------------------------------------------------- registry -- */

/* Wait as long as it takes. */
#define SQLOCK_FOREVER (-INT64_C(1))

/* Who owns a held lock. */
typedef enum sqlock_ownership {
    SQLOCK_OWNED_BY_THREAD = 0, /* the thread that acquired it, re-entrant */
    SQLOCK_OWNED_BY_REGISTRY,   /* any thread; acquire and release are counted,
                                 and threads do not exclude each other */
    SQLOCK_OWNED_BY_HANDLE /* the handle: each sqlock_obtain() gives an owner
                                 of its own, for any thread to use, which is
                                 not re-entrant; for coroutines, thread pools
                                 and other languages */
} sqlock_ownership;

/* How a name becomes a LOCK_KEY (Spring's UUIDConverter). */
typedef enum sqlock_key_rule {
    SQLOCK_KEY_CURRENT = 0, /* Spring 6.0.8+, 6.1.4+, 6.2+, 7 */
    SQLOCK_KEY_LEGACY,      /* Spring up to 6.0.7 and 6.1.3: lenient UUIDs */
    SQLOCK_KEY_RAW          /* the name itself, 1 to 36 bytes of ASCII */
} sqlock_key_rule;

/* Shape of the lock table. */
typedef enum sqlock_layout {
    SQLOCK_LAYOUT_SQLOCK = 0, /* ours: tokens, names; Spring 7 may share it */
    SQLOCK_LAYOUT_SPRING7,    /* five columns, EXPIRED_AFTER */
    SQLOCK_LAYOUT_SPRING6     /* four columns, Spring 5.4 to 6.5 */
} sqlock_layout;

/* How to wait for a lock of another process. */
typedef enum sqlock_waiting {
    SQLOCK_WAITING_AUTO = 0, /* to be woken by the release, where the database
                                and the way to it can do that */
    SQLOCK_WAITING_POLL      /* to look at the row every poll_ms */
} sqlock_waiting;

/* How much an event matters. */
typedef enum sqlock_level {
    SQLOCK_LEVEL_DEBUG = -1, /* each grant and release */
    SQLOCK_LEVEL_INFO = 0,
    SQLOCK_LEVEL_WARNING, /* locks work; somebody should look at it */
    SQLOCK_LEVEL_ERROR
} sqlock_level;

typedef struct sqlock_event sqlock_event; /* sqlock/event.h */

/** Called from any thread, also during calls of the application's own; several
 *  threads may call it at a time.  It must not call this library. */
typedef void (*sqlock_event_fn)(void *context, const sqlock_event *event);

/**
 * Options of a registry.  Zero means the default in every field; begin with
 * SQLOCK_OPTIONS_INIT.  Strings are copied.
 */
typedef struct sqlock_options {
    size_t size;              /* sizeof(sqlock_options): the struct may grow */
    const char *region;       /* 1 to 97 bytes; "DEFAULT".  Not ending "#tx" */
    const char *table_prefix; /* "INT_" makes INT_LOCK; "app.INT_" names a
                                  schema too */
    uint32_t ttl_ms;          /* lease length, 10 ms to 7 days; 10 000 */
    uint32_t margin_ms;       /* how much sooner than the database the holder
                                  stops believing, less than any TTL; max(1,
                                  TTL / 20) of each lease's */
    const char *holder_note;  /* up to 80 bytes, shown with the holder */
    uint32_t pool_size;       /* connections at most, 1 to 64; 4.  Besides, one
                                 for what is renewed, one when all are in
                                 transactions of sqlock_tx_begin(), half as many
                                 (at least one) while other processes are
                                 waited for, and one, 16 at most, for each lease
                                 that was waited for there */
    sqlock_ownership ownership;
    sqlock_key_rule key_rule;
    uint32_t peer_ttl_ms;          /* the longest TTL of the Spring peers, which
                                  on the four-column layout decides expiry, and
                                  with observe_before_steal how long to look; a
                                  longer lease of a peer is told as that of a
                                  clock that is off; 10 000 */
    uint32_t connect_timeout_ms;   /* opening a connection, in addition to the
                                      time of the statement that needs it, 10 ms
                                      to 1 hour; 5000.  For renewals at most
                                      TTL / 4, or statement_timeout_ms where
                                      that is more */
    uint32_t statement_timeout_ms; /* one statement, 10 ms to 1 hour; TTL / 8
                                      within 500 to 5000 */
    uint32_t poll_ms;          /* pause between looks at a lock whose release
                                      is not heard; 100 */
    uint32_t renew_period_ms;  /* how often the renewer renews; at most a
                                      third of the TTL; a quarter of each
                                      lease's */
    bool observe_before_steal; /* take over an expired lease only after its
                                  row has stayed unchanged on this host's clock
                                  for the longest of ttl_ms, peer_ttl_ms and
                                  what lies between the row's own stamps, of
                                  that no more than ten times the others, and
                                  no other row than that: for peers whose
                                  clocks are not known */
    sqlock_event_fn on_event;  /* NULL: silent */
    void *event_context;
    sqlock_level event_level; /* the least that is told; INFO */
    uint32_t handoff_limit;   /* how often in a row a lock may go from thread to
                                thread of this registry before other processes
                                have their chance; 16 */
    sqlock_waiting waiting;
} sqlock_options;
#define SQLOCK_OPTIONS_INIT SQLOCK_SIZED(sqlock_options)

/**
 * Create the lock table where it does not exist yet, then check it.
 * @return 0, ECONFLICT (it exists in another layout), or as
 *         sqlock_registry_open()
 */
SQLOCK_MUSTUSE int sqlock_schema_create(const char *url,
                                        const sqlock_options *options,
                                        sqlock_layout layout,
                                        sqlock_error *err);

/**
 * Open the lock table that @p url leads to and find out its layout.
 *
 *     postgresql://user:password@host:port,host2:port2/db?...   as in libpq
 *     mysql://user:password@host:port/db?socket=...&tls=verify&ca=...
 *     sqlite:relative/path   sqlite:/absolute/path?synchronous=full
 *
 * With synchronous=full each commit to a SQLite file waits for the disk;
 * without it, or with normal, a power failure may take back the last ones.  A
 * SQLite file that does not exist is not made here: only sqlock_schema_create()
 * and its like do that.
 *
 * A password may be left out of the URL: PGPASSWORD, PGPASSFILE and
 * PGSERVICEFILE work as in libpq; MySQL reads the [client] group of ~/.my.cnf;
 * both take `password_env=NAME`, the name of an environment variable.
 *
 * waiting=poll in a URL of PostgreSQL or MySQL sends nothing that takes part
 * in a wait queue of the database: no advisory lock, NOTIFY or GET_LOCK; for
 * servers and engines of their protocols that have none.  Waiters look at the
 * row every poll_ms; a process whose threads hand the lock to each other leaves
 * it free for a poll at times, so that the others get it, too, with as long a
 * poll_ms.  Tokens of our layout then rise as long as the row stays:
 * a claim that the server delays while a Spring peer takes and deletes the row
 * gets an older one.  On Spring's layouts tokens may come in the wrong order.
 *
 * TLS that the URL demands (sslmode=require, verify-ca, verify-full;
 * tls=require, verify) is looked for in the connection that was made.  Where it
 * is missing, or a certificate to be verified is not as it should be: EACCESS,
 * or EUNREACHABLE where the client library cannot tell it from a broken
 * network.
 *
 * @param[out] out to be given to sqlock_registry_close(); NULL on failure
 * @return 0, EINVAL, ENOTSUP (no driver), EUNREACHABLE, EACCESS, ESCHEMA (table
 *         or SQLite file missing, not durable, no primary key, wrong columns),
 *         EREADONLY, ERESOURCE, EBUSY (a SQLite file is locked), EDATABASE,
 *         ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_registry_open(sqlock_registry **out, const char *url,
                                        const sqlock_options *options,
                                        sqlock_error *err);

/**
 * Release what this registry holds, in one statement, end its connections and
 * threads, and free it with every lock obtained from it, within about two
 * statement deadlines when the database is away.  No other call may be
 * running.  The registry is gone whatever the result, except for EFORK: then
 * nothing was touched.  NULL is allowed.
 *
 * @return 0, EFORK, or the first error met while releasing: those leases run
 *         out by themselves, unless they could be freed after all
 */
SQLOCK_API int sqlock_registry_close(sqlock_registry *registry,
                                     sqlock_error *err);

/* ----------------------------------------------------------------- lock -- */

/* Of a LOCK_KEY and a CLIENT_ID: 36 characters and the NUL. */
#define SQLOCK_KEY_SIZE 37

/**
 * A counted reference to the lock @p name: 0 to 10 000 bytes of valid UTF-8
 * (raw keys: 1 to 36 bytes of printable ASCII).  No I/O.  While anyone refers
 * to it, the same LOCK_KEY gives the same handle; with SQLOCK_OWNED_BY_HANDLE
 * each call gives another one, which any thread may use, one at a time.
 *
 * @param[out] out to be given to sqlock_drop(); NULL on failure
 * @return 0, EINVAL, EFORK, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_obtain(sqlock_lock **out, sqlock_registry *registry,
                                 const char *name, sqlock_error *err);

/**
 * Let go of one reference.  The last one is refused while the lock is held or
 * waited for (by handle: by this one).  NULL is allowed.
 *
 * @return 0, EINUSE, EFORK
 */
SQLOCK_API int sqlock_drop(sqlock_lock *lock, sqlock_error *err);

/**
 * Called once when a lease is over before it was released: code is ELOST or
 * EEXPIRED.  No later than 50 ms after the holder's own deadline, whatever the
 * database does.  It runs on a thread of the library and delays the signals of
 * other locks and the cancelling of waits by a descriptor, so it should be
 * short; it may query the lock, and must not acquire, renew, release or drop
 * it.  sqlock_release() waits until it has returned.
 */
typedef void (*sqlock_lost_fn)(void *context, sqlock_lock *lock, int code);

/** Options of one acquisition; zero means the default in every field. */
typedef struct sqlock_acquire_options {
    size_t size;     /* sizeof(sqlock_acquire_options): the struct may grow */
    uint32_t ttl_ms; /* lease length of this acquisition, more than the
                        registry's margin_ms; the registry's ttl_ms */
    bool auto_renew; /* renew it in the background until it is released, or,
                        owned by a thread, that one has ended */
    bool fenced;     /* the application guards its writes by the token: a step
                        of the database's clock does not end the lease.  Such
                        a step, by more than the margin, is noticed by the
                        renewals of `auto_renew`, and only by them: without
                        them the token or a guard is needed against it */
    bool partial;    /* sqlock_acquire_many() only: keep those that are free */
    uint32_t max_hold_ms;   /* with auto_renew: no longer than this after the
                               acquisition; 0: no limit */
    sqlock_lost_fn on_lost; /* NULL: nobody is called */
    void *lost_context;
    int cancel_fd;  /* a descriptor of the caller's, such as an eventfd: once it
                      is readable the wait ends with ECANCELED, and also once
                      all writers of a pipe are gone, or there is an error.  A
                      signal handler may write to it.  Never read; 0: none */
    bool fail_fast; /* the first error of the database ends the wait, instead of
                       being waited for as a holder is */
} sqlock_acquire_options;
#define SQLOCK_ACQUIRE_INIT SQLOCK_SIZED(sqlock_acquire_options)

/**
 * Take the lock, waiting at most @p wait_ms: 0 tries once, SQLOCK_FOREVER waits
 * as long as it takes.  A wait waits for the database, too: while it cannot be
 * reached, does not answer, has no connection or resource left, or is a
 * standby, the attempt is made again until the wait is over, after pauses that
 * grow from 50 ms to a second; `fail_fast` ends the wait at once then.  Errors
 * that stay until somebody puts them right (EINVAL, EACCESS, ESCHEMA,
 * EDATABASE, on SQLite EREADONLY) end each wait at once.  A thread that owns it
 * already counts one more and sends nothing.  A thread whose lease is over does
 * not keep the others of its registry out: when it comes back to release, it is
 * told.  Threads of one registry are served in order; processes nearly so, and
 * a lock that others wait for is overtaken by one acquisition in 17 at most.
 *
 * The call returns within wait_ms plus statement_timeout_ms, and
 * connect_timeout_ms more where a connection has to be opened; twice both where
 * the outcome of a claim has to be found out after a connection broke.
 *
 * At the end of a wait the last attempt tells its cause: ETIMEDOUT where the
 * lock was held, EUNREACHABLE, ERESOURCE or EREADONLY where the database was
 * away, also to those of this process who waited behind the one that made the
 * attempts.
 *
 * After EUNCERTAIN the row may be ours although nobody holds the lock: do not
 * enter the critical section; the row is cleaned up or runs out after the TTL.
 * A claim that took longer than its lease is given back: ETIMEDOUT.
 *
 * @param options NULL for the defaults
 * @return 0, EBUSY (wait_ms was 0), ETIMEDOUT, ECANCELED (the wait was
 *         cancelled), ELOST or EEXPIRED (owned already, but the lease is over:
 *         release it first), EINUSE (by handle: it holds the lock or waits for
 *         it already), EUNCERTAIN, EUNREACHABLE, EINVAL, EACCESS,
 *         ESCHEMA, EREADONLY, ERESOURCE, EDATABASE, ENOMEM, EFORK
 */
SQLOCK_MUSTUSE int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                                  const sqlock_acquire_options *options,
                                  sqlock_error *err);

/**
 * End every wait for the lock that is under way in this registry (by handle: of
 * this handle), from any thread but not from a signal handler (see
 * sqlock_acquire_options.cancel_fd).  A claim that is on its way is let finish:
 * who gets the lock all the same is told 0.  Waits that begin later are not
 * concerned.
 *
 * @return 0, EINVAL, EFORK
 */
SQLOCK_API int sqlock_cancel(sqlock_lock *lock, sqlock_error *err);

/**
 * Undo one acquire; the outermost one gives the lock back.  It is no longer
 * held afterwards whatever the result, except for EOWNER, EINUSE and EFORK.
 *
 * @return 0; EEXPIRED: the lease had run out, nobody else had the lock; ELOST:
 *         somebody else has had it, what it protects may be compromised;
 *         EUNCERTAIN, EUNREACHABLE, EBUSY (a transaction has the row locked),
 *         EACCESS, ESCHEMA, EREADONLY, ERESOURCE, EDATABASE, ENOMEM: a thread
 *         of the registry goes on trying to free the row, until the lease is
 *         over; EOWNER; EINUSE: an open transaction guards it; EFORK
 */
SQLOCK_MUSTUSE int sqlock_release(sqlock_lock *lock, sqlock_error *err);

/**
 * Let the lease begin anew, with @p ttl_ms or, for 0, the TTL it was acquired
 * with.  A lease that has run out is not revived.
 *
 * After a renewal or claim that got no answer, the lease is not made longer
 * than that one's TTL any more until it is released: the statement may be late,
 * and would shorten it behind the holder's back.  From its start on, a renewal
 * for a shorter time is reckoned with; of several at the same time, by other
 * threads or by `auto_renew`, none makes the lease longer than another does.
 *
 * @return 0, EOWNER, EEXPIRED, ELOST (both stay until the lock is released),
 *         EUNCERTAIN or EUNREACHABLE (the old deadline stands; may be tried
 *         again), EBUSY (a transaction has the row locked: likewise), EACCESS,
 *         ESCHEMA, EREADONLY, ERESOURCE, EDATABASE, ENOMEM (likewise), EINVAL,
 *         EFORK
 */
SQLOCK_MUSTUSE int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms,
                                sqlock_error *err);

/** Whether the calling thread (or the registry) owns a lease that is not over;
 *  no I/O. */
SQLOCK_API bool sqlock_is_held(sqlock_lock *lock);

/** How often the calling thread (or the registry) has acquired the lock and not
 *  yet released it, whether or not the lease is over; no I/O. */
SQLOCK_API uint32_t sqlock_hold_count(sqlock_lock *lock);

/** How long the holder may still believe; 0 when not held, lost or over.  No
 *  I/O.  Ask before each side effect. */
SQLOCK_API int64_t sqlock_remaining_ms(sqlock_lock *lock);

/** Fencing token of the current acquisition, 0 when not held.  It is greater
 *  than every token given for this lock before: the row keeps the last one,
 *  also when the database's clock is set back.  A Spring peer that shares our
 *  layout deletes the row when it unlocks, and Spring's layouts keep no token:
 *  then the next token is the database's clock alone, in microseconds.  It is
 *  smaller than an earlier one after the clock was set back by more than the
 *  time between the two; on MySQL and MariaDB, where the clock is that of the
 *  claim's start, also when the server delays a claim while others hold and
 *  release the lock and a peer deletes the row. */
SQLOCK_API int64_t sqlock_token(sqlock_lock *lock);

/** CLIENT_ID of the current acquisition, "" when not held: with it the database
 *  can tell whether the row is still ours.  Another one each time.
 *  @param[out] client_id filled in any case */
SQLOCK_API void sqlock_client_id(sqlock_lock *lock,
                                 char client_id[SQLOCK_KEY_SIZE]);

/** The name it was obtained by first, and its LOCK_KEY; valid while the caller
 *  has a reference. */
SQLOCK_API const char *sqlock_name(const sqlock_lock *lock);
SQLOCK_API const char *sqlock_key(const sqlock_lock *lock);

/** Free text given by this library.  NULL is allowed. */
SQLOCK_API void sqlock_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_H */
