/*
 * sqlock.h - locks kept in the SQL database an application already has
 *
 * This header, and sqlock_stock.h for those who sell something, are the whole
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

/**
 * The drivers compiled in and registered, in the order in which they are asked,
 * each as "name (client library and version)"; NULL past the last one.
 */
SQLOCK_API const char *sqlock_driver_info(size_t index);

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

/* What the library has to say that is no result: one line, no newline. */
typedef void (*sqlock_log_fn)(void *context, const char *line);

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
    sqlock_log_fn log;         /* may be called from any thread; NULL: silent */
    void *log_context;
    uint32_t handoff_limit; /* how often in a row a lock may go from thread to
                                thread of this registry before other processes
                                have their chance; 16 */
    sqlock_waiting waiting;
} sqlock_options;
#define SQLOCK_OPTIONS_INIT SQLOCK_SIZED(sqlock_options)

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

/** The layout that was found. */
SQLOCK_API sqlock_layout
sqlock_registry_layout(const sqlock_registry *registry);

#define SQLOCK_EPOCH_SIZE 64

/**
 * Whose history of the data the sessions of this registry have found, the one
 * opened last: with PostgreSQL the system identifier and the timeline, which a
 * promotion changes; with Oracle's MySQL the server's UUID; with MariaDB its
 * server_id.  When it changes, a standby has been promoted or another server
 * answers: where that one did not have everything, locks acknowledged before
 * may be gone.  A lease that is kept is found lost by its next renewal then; a
 * guard or a token keeps its holder out of the data.  `log` is told, too.  A
 * session is opened when it is needed first and after one broke, so it takes a
 * call until a change is noticed.  No I/O.
 *
 * @param[out] epoch filled in any case; "" before the first, and where there is
 *             none: SQLite, Galera, whose nodes are all alike
 * @return how often it has changed
 */
SQLOCK_API uint32_t sqlock_registry_epoch(sqlock_registry *registry,
                                          char epoch[SQLOCK_EPOCH_SIZE]);

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

#define SQLOCK_TAG_SIZE 64

/**
 * What sessions that are to do the holder's work are called at the server, so
 * that sqlock_stale_sessions() can tell them later: with PostgreSQL their
 * application_name.  It is made of the lock and its token.  No I/O.
 *
 * @param[out] tag filled in any case; "" when not held, and on databases whose
 *             sessions have no such name: MySQL, SQLite
 */
SQLOCK_API void sqlock_session_tag(sqlock_lock *lock,
                                   char tag[SQLOCK_TAG_SIZE]);

/**
 * How many sessions of this database, called by the tag of an earlier lease of
 * this lock, are still within a statement or a transaction: their client is
 * gone or has lost the lock, their work is not done.  To be asked by a new
 * holder before it begins.  It tells what is at work when it is asked and no
 * more: only a guard or a token keeps out what comes later.
 *
 * @return 0, EEXPIRED (not held), ENOTSUP (sessions have no such name), or as
 *         sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_stale_sessions(sqlock_lock *lock, int64_t *count,
                                         sqlock_error *err);

/**
 * A descriptor that poll(2) finds readable once the lease is over before it was
 * released, for event loops: an eventfd, cleared by the next acquisition.
 * Owned by the lock; do not read or close it.
 *
 * @param[out] fd valid while the caller has a reference
 * @return 0, EINVAL, EFORK, ERESOURCE
 */
SQLOCK_MUSTUSE int sqlock_lost_fd(int *fd, sqlock_lock *lock,
                                  sqlock_error *err);

/** The name it was obtained by first, and its LOCK_KEY; valid while the caller
 *  has a reference. */
SQLOCK_API const char *sqlock_name(const sqlock_lock *lock);
SQLOCK_API const char *sqlock_key(const sqlock_lock *lock);

/* ------------------------------------------------------------ lease ids -- */

/*
 * A lease that is to outlive the process that acquired it, such as one for the
 * body of a shell script, is named by an id, one word of printable characters.
 * Whoever has it renews, releases and guards the lease through any registry of
 * the same table and region.  A process that ends without releasing a lock, by
 * _exit() for instance, leaves its lease to whoever has the id.
 */
#define SQLOCK_LEASE_ID_SIZE 128

/**
 * The id of the lease that the caller holds.  No I/O.
 *
 * @param ttl_ms what sqlock_lease_renew() asks for where it is told no other
 * @return 0, EEXPIRED (not held), EINVAL
 */
SQLOCK_MUSTUSE int sqlock_lease_id(char id[SQLOCK_LEASE_ID_SIZE],
                                   sqlock_lock *lock, uint32_t ttl_ms,
                                   sqlock_error *err);

/**
 * Let the lease begin anew, with @p ttl_ms or, for 0, that of its id.
 *
 * @param[out] remaining_ms how long its holder may believe; may be NULL
 * @return 0, EINVAL (that is no id), or as sqlock_renew()
 */
SQLOCK_MUSTUSE int sqlock_lease_renew(sqlock_registry *registry, const char *id,
                                      uint32_t ttl_ms, int64_t *remaining_ms,
                                      sqlock_error *err);

/**
 * Give the lock back.  A process in which it is still held, and renewed, is
 * told that it is lost.
 *
 * @return 0; ELOST: it was over, another owner may have had the lock; EEXPIRED:
 *         it had run out, nobody else had the lock; EINVAL (that is no id), or
 *         as sqlock_release(): the registry goes on trying until it is closed
 */
SQLOCK_MUSTUSE int sqlock_lease_release(sqlock_registry *registry,
                                        const char *id, sqlock_error *err);

/**
 * The SQL that guards the lease in a transaction of another program, such as
 * psql: a statement to be sent first.  It is an error unless the lease is still
 * its holder's, and nobody takes the lock over before the transaction ends.  A
 * program that goes on after an error (sqlite3 without -bail) is not stopped.
 * On Galera it holds on one node only.
 *
 * @param[out] text without a semicolon, to be given to sqlock_free(); NULL on
 *             failure
 * @return 0, EINVAL (that is no id), ENOTSUP, ENOMEM, EFORK
 */
SQLOCK_MUSTUSE int sqlock_lease_guard_text(char **text,
                                           sqlock_registry *registry,
                                           const char *id, sqlock_error *err);

/* ------------------------------------------------------------- requests -- */

/*
 * Acquiring and releasing without blocking, for event loops and for waiting for
 * many locks in one thread.  None of these calls waits for the database or for
 * another owner: a bounded number of the registry's own threads does the work,
 * on the pool's connections.
 *
 *     int done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
 *     sqlock_request *request;
 *
 *     rc = sqlock_request_acquire(&request, lock, 30000, NULL, done, &err);
 *     ... poll(2) finds `done` readable; read it ...
 *     if (sqlock_request_status(request) != SQLOCK_REQUEST_FETCHING)
 *         rc = sqlock_request_finish(request, &err);   0: the lock is ours
 *
 * A request is a contender of its own: it takes its place in the queue by its
 * start, among the threads of the registry, and it is never re-entrant where
 * threads own: asked for by a thread that owns the lock, it waits until that
 * one has released it.  What it was granted belongs to nobody but the request
 * until sqlock_request_finish() makes it the lock of the thread that calls it,
 * or, owned by the registry, counts as one more of the registry's.  The
 * options, `auto_renew` and `on_lost` among them, work from the grant on.
 *
 * At a time, half as many requests as the pool has connections wait in queues
 * of the database; the rows of all others are looked at together, every
 * poll_ms.
 *
 * A request keeps its lock alive: the caller may drop its reference when it has
 * abandoned it.  sqlock_registry_close() abandons all that are left, and frees
 * them.  In a child process they do not exist: FREE, and EFORK.
 */

/** Where a request stands. */
typedef enum sqlock_request_state {
    SQLOCK_REQUEST_FREE = 0, /* over: it did not get the lock, or it has given
                                it back; finish it, for the reason */
    SQLOCK_REQUEST_FETCHING,
    SQLOCK_REQUEST_HELD, /* over: finish it, and the lock is the caller's */
    SQLOCK_REQUEST_RELEASING,
    SQLOCK_REQUEST_LOST /* over: it was held, but the lease is over; finish it,
                           and it is given back */
} sqlock_request_state;

/**
 * Begin to take the lock, as sqlock_acquire() does with the same arguments.
 *
 * @param done_fd a descriptor of the caller's, an eventfd or the like, to which
 *                the 8 bytes of a uint64_t 1 are written when the request is
 *                over; many may share it.  -1: none.  It must not block, and
 *                stays open until the request is finished or abandoned, as
 *                cancel_fd does
 * @param[out] out to be given to sqlock_request_finish() or
 *                 sqlock_request_abandon(); NULL on failure
 * @return 0: it is under way, whatever comes of it; EINVAL, EFORK, ENOMEM,
 *         ERESOURCE (no thread): nothing was done
 */
SQLOCK_MUSTUSE int sqlock_request_acquire(sqlock_request **out,
                                          sqlock_lock *lock, int64_t wait_ms,
                                          const sqlock_acquire_options *options,
                                          int done_fd, sqlock_error *err);

/**
 * Begin to undo one acquire of the calling thread's, as sqlock_release() does.
 * From here on the lock is not the caller's any more.  Once begun, a release is
 * carried out: abandoned, its result is not told.
 *
 * @param done_fd, out as above
 * @return 0; EOWNER, EINUSE (guarded), EINVAL, EFORK, ENOMEM, ERESOURCE: it is
 *         held as before
 */
SQLOCK_MUSTUSE int sqlock_request_release(sqlock_request **out,
                                          sqlock_lock *lock, int done_fd,
                                          sqlock_error *err);

/** Where it stands now; no I/O.  NULL: FREE. */
SQLOCK_API sqlock_request_state sqlock_request_status(sqlock_request *request);

/**
 * The result of a request that is over, which is freed.
 *
 * @return as sqlock_acquire() or sqlock_release(): 0 of an acquire, and the
 *         lock is the caller's.  ELOST, EEXPIRED: it was granted, but the lease
 *         was over before this call; it is given back by itself.  EINUSE: it is
 *         not over yet; EFORK: neither is freed
 */
SQLOCK_MUSTUSE int sqlock_request_finish(sqlock_request *request,
                                         sqlock_error *err);

/**
 * Want it no longer, at whatever stage it is, and let go of @p request.  A
 * claim on its way is let finish, and what was granted is given back, by the
 * registry's threads: no lease stays.  NULL is allowed.
 *
 * @return 0, EFORK
 */
SQLOCK_API int sqlock_request_abandon(sqlock_request *request,
                                      sqlock_error *err);

/* ----------------------------------------------------------- many locks -- */

/* The most locks of one call. */
#define SQLOCK_MANY_MAX 10000

/**
 * Take all of @p locks, each given once and all of one registry, in one
 * statement (on MySQL one more, for the tokens), whatever their order: keys are
 * sorted, so that two callers never wait for each other crosswise.  PostgreSQL
 * needs an entry of its lock table for each key while the statement runs: with
 * its default settings 10,000 fit, for more at a time raise its
 * max_locks_per_transaction (else ERESOURCE, and none is taken).  All or
 * nothing, unless `partial` is set: then those that are free are taken, and
 * @p wait_ms must be 0.  A lock that is owned already counts one more.  While
 * it waits for one of them, first come, first served, the call keeps none of
 * the others from anybody; sqlock_cancel() of any of them ends the wait.
 *
 * @param[out] results of each lock, as sqlock_acquire() gives them; may be NULL
 * @return 0 when all were taken; EBUSY, ETIMEDOUT (with `partial`, EBUSY: at
 *         least one was not), or as sqlock_acquire(): then none was.
 *         EUNCERTAIN also when some were taken, others were not to be had, and
 *         the former could not be given back: their rows are freed in the
 *         background
 */
SQLOCK_MUSTUSE int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                                       int64_t wait_ms,
                                       const sqlock_acquire_options *options,
                                       int *results, sqlock_error *err);

/**
 * Undo one acquire of each, in one statement.
 *
 * @param[out] results of each lock, as sqlock_release() gives them; may be
 *             NULL.  Not written when the call was refused at once (EINVAL,
 *             EFORK, ENOMEM): then all are held as before
 * @return 0 or the first of the results that is not
 */
SQLOCK_MUSTUSE int sqlock_release_many(sqlock_lock *const *locks, size_t count,
                                       int *results, sqlock_error *err);

/**
 * Let the lease of each begin anew with its own TTL, in one statement.  A lease
 * whose row a transaction has locked is passed over: EBUSY, its deadline stays,
 * and the others are renewed.
 *
 * @param[out] results of each lock, as sqlock_renew() gives them; may be NULL
 * @return 0 or the first of the results that is not
 */
SQLOCK_MUSTUSE int sqlock_renew_many(sqlock_lock *const *locks, size_t count,
                                     int *results, sqlock_error *err);

/* --------------------------------------------------------- transactions -- */

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

typedef enum sqlock_type {
    SQLOCK_NULL = 0,
    SQLOCK_INT64,
    SQLOCK_TEXT /* UTF-8, any bytes but NUL */
} sqlock_type;

/* A parameter or a result cell.  Other types travel as their text. */
typedef struct sqlock_value {
    sqlock_type type;
    int64_t integer;  /* SQLOCK_INT64 */
    const char *text; /* SQLOCK_TEXT: NUL-terminated, not NULL */
    size_t length;    /* of text, in bytes, without the NUL */
} sqlock_value;

/* What a statement gave.  All zero before the first use. */
typedef struct sqlock_result {
    size_t rows;
    size_t columns;
    sqlock_value *cells; /* rows x columns, row by row */
    int64_t affected;    /* rows inserted, changed or deleted */
    void *memory;        /* of the cells, private to the library */
} sqlock_result;

/** Free what a result holds and zero it.  NULL is allowed. */
SQLOCK_API void sqlock_result_clear(sqlock_result *result);

/** A value of each type; the text is not copied. */
SQLOCK_API sqlock_value sqlock_integer(int64_t integer);
SQLOCK_API sqlock_value sqlock_text(const char *text); /* NULL: null */

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

/* ------------------------------------------------- done once and for all -- */

/*
 * A table beside the lock table, INT_DONE by default, tells what was done and
 * is not to be done again: a row for each key, which nothing here removes.
 * The process that does it holds the lock of that name: check, acquire, check
 * again, do it, record it, release.
 */

/**
 * Whether it was recorded, of the registry's region.
 * @return 0: it was; ENOTFOUND: it was not; ESCHEMA: there is no such table;
 *         ENOTSUP: nothing can be recorded, since a lease cannot be guarded
 *         (Galera); or as sqlock_show()
 */
SQLOCK_MUSTUSE int sqlock_once_check(sqlock_registry *registry,
                                     const char *name, sqlock_error *err);

/**
 * Record that what @p lock, held by the caller, stands for is done, in a
 * transaction that guards the lease.
 * @return 0; ELOST, EEXPIRED: nothing was recorded; ESCHEMA; or as
 *         sqlock_tx_retry()
 */
SQLOCK_MUSTUSE int sqlock_once_record(sqlock_lock *lock, sqlock_error *err);

/** One record. */
typedef struct sqlock_once_info {
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE]; /* of the lease under which it was done */
    int64_t token;                   /* likewise */
    int64_t done_at_us;
    char *name; /* NULL where not known */
} sqlock_once_info;

/**
 * The records of the registry's region, by name; or that of @p name alone.
 *
 * @param name NULL: all
 * @param[out] rows to be given to sqlock_once_free() with @p count, which may
 *             be 0
 * @return 0; ESCHEMA: there is no such table; or as sqlock_show()
 */
SQLOCK_MUSTUSE int sqlock_once_list(sqlock_registry *registry, const char *name,
                                    sqlock_once_info **rows, size_t *count,
                                    sqlock_error *err);

/** Free what sqlock_once_list() gave.  NULL is allowed. */
SQLOCK_API void sqlock_once_free(sqlock_once_info *rows, size_t count);

/**
 * Remove a record, so that it may be done again.
 * @return 0; ENOTFOUND: there is none; ESCHEMA; or as sqlock_break()
 */
SQLOCK_MUSTUSE int sqlock_once_forget(sqlock_registry *registry,
                                      const char *name, sqlock_error *err);

/** As sqlock_schema_text(), for this table. */
SQLOCK_MUSTUSE int sqlock_once_schema_text(char **text, const char *url,
                                           const sqlock_options *options,
                                           sqlock_error *err);

/** Create the table where it does not exist yet.
 *  @return 0, or as sqlock_registry_open() */
SQLOCK_MUSTUSE int sqlock_once_schema_create(const char *url,
                                             const sqlock_options *options,
                                             sqlock_error *err);

/* ------------------------------------------------------- administration -- */

/**
 * The LOCK_KEY of a name.
 * @return 0, EINVAL
 */
SQLOCK_MUSTUSE int sqlock_key_of(char key[SQLOCK_KEY_SIZE], const char *name,
                                 sqlock_key_rule rule, sqlock_error *err);

/**
 * The SQL that creates the lock table for the database of @p url (its scheme
 * is enough: "mysql:") with the prefix of @p options (NULL: "INT_").
 *
 * @param[out] text to be given to sqlock_free(); NULL on failure
 * @return 0, EINVAL, ENOTSUP, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_schema_text(char **text, const char *url,
                                      const sqlock_options *options,
                                      sqlock_layout layout, sqlock_error *err);

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
 * Check the lock table as sqlock_registry_open() does.
 * @param[out] layout which one was found; may be NULL
 */
SQLOCK_MUSTUSE int sqlock_schema_check(const char *url,
                                       const sqlock_options *options,
                                       sqlock_layout *layout,
                                       sqlock_error *err);

typedef enum sqlock_state {
    SQLOCK_FREE = 0, /* a row that keeps the last token */
    SQLOCK_HELD,
    SQLOCK_EXPIRED /* the holder did not release it */
} sqlock_state;

/** One row of the lock table. */
typedef struct sqlock_info {
    char key[SQLOCK_KEY_SIZE];
    char client_id[SQLOCK_KEY_SIZE]; /* "" when free */
    sqlock_state state;              /* by the database's clock */
    int64_t token;                   /* the key's last; 0 where the layout has
                                        none */
    int64_t acquired_at_us;
    int64_t expires_at_us;
    int64_t remaining_ms; /* 0 when not held */
    char *name;           /* NULL where not known */
    char *holder;         /* "host pid program note"; "peer" for a holder that
                             is no sqlock; "broken by ..." after
                             sqlock_break(), also when free; else NULL when
                             free or not known */
    int64_t ahead_ms;     /* held, but acquired in the future of the database's
                             clock, or by a peer for longer than peer_ttl_ms: by
                             so much the clock of its holder is ahead, at least;
                             0: nothing is known against it */
    int64_t held_ms;      /* since it was acquired; 0 when free */
    char *region;         /* sqlock_find(); else NULL */
    int32_t waiters;      /* sqlock_find() with `waiters`; -1: not known */
    char *waiter_names;   /* likewise: who they are, as far as the database
                             knows, with ", " between; else NULL */
} sqlock_info;

/**
 * The rows of the registry's region, by key.
 * @param[out] rows to be given to sqlock_info_free() with @p count
 * @return 0, EUNREACHABLE, EBUSY (the database did not end a statement within
 *         its time limit, or a SQLite file is locked), EACCESS, ESCHEMA,
 *         EREADONLY, ERESOURCE, EDATABASE, EINVAL, ENOMEM, EFORK
 */
SQLOCK_MUSTUSE int sqlock_list(sqlock_registry *registry, sqlock_info **rows,
                               size_t *count, sqlock_error *err);

/**
 * The row of one lock.
 * @param[out] row to be given to sqlock_info_free() with a count of 1
 * @return 0, ENOTFOUND, or as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_show(sqlock_registry *registry, const char *name,
                               sqlock_info **row, sqlock_error *err);

typedef enum sqlock_sort {
    SQLOCK_SORT_NAME = 0,  /* by the bytes of the name, or of LOCK_KEY
                              where none is known */
    SQLOCK_SORT_HELD,      /* held for longest first */
    SQLOCK_SORT_REMAINING, /* least time left first */
    SQLOCK_SORT_TOKEN      /* latest token first */
} sqlock_sort;

/** Which locks sqlock_find() is to find.  Zero means the default in every
 *  field; begin with SQLOCK_FIND_INIT. */
typedef struct sqlock_find_options {
    size_t size;         /* sizeof(sqlock_find_options) */
    const char *pattern; /* of the name, or LOCK_KEY where none is known: '*'
                            stands for any characters, '?' for one; at most 255
                            bytes.  SQLite ignores the case of ASCII letters.
                            NULL: all */
    bool free_too;       /* rows that nobody holds, too */
    bool all_regions;    /* but those of names that transactions lock */
    bool waiters;        /* count who waits in the database: PostgreSQL tells
                            it */
    uint32_t limit;      /* rows at most; 0: all */
    sqlock_sort sort;    /* then by name, then by region */
} sqlock_find_options;
#define SQLOCK_FIND_INIT SQLOCK_SIZED(sqlock_find_options)

/**
 * The locks that are held or expired, as @p options say.  With a limit they are
 * ordered and limited by the database, in one statement; without one they are
 * read in pages, each within statement_timeout_ms, and ordered here.
 *
 * @param options NULL for the defaults
 * @param[out] rows to be given to sqlock_info_free() with @p count
 * @return as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_find(sqlock_registry *registry,
                               const sqlock_find_options *options,
                               sqlock_info **rows, size_t *count,
                               sqlock_error *err);

/** Free what sqlock_list(), sqlock_find() or sqlock_show() gave.  NULL is
 *  allowed. */
SQLOCK_API void sqlock_info_free(sqlock_info *rows, size_t count);

/** Which holder sqlock_break() is to end, as sqlock_show() and sqlock_list()
 *  tell it: by client id, by token, or by both.  Client ids name every holder;
 *  one of sqlock has a fresh one for each acquisition, a Spring service one for
 *  all. */
typedef struct sqlock_break_options {
    size_t size;           /* sizeof(sqlock_break_options) */
    int64_t token;         /* our layout: its token, which a Spring service has
                              not, though the row shows an old one; 0: any */
    const char *client_id; /* its CLIENT_ID; NULL: any */
    const char *reason;    /* up to 80 bytes: why */
    const char *who;       /* up to 80 bytes: who answers for it, such as
                              "user@host"; NULL: this process */
    bool now;              /* free the lock at once.  Unsafe: the old holder may
                              still believe */
} sqlock_break_options;
#define SQLOCK_BREAK_INIT SQLOCK_SIZED(sqlock_break_options)

/**
 * End another owner's lease: its next renewal or release finds it lost.  The
 * lock passes on when the lease would have run out anyway, unless `now` is set.
 * Our layout keeps who and why in the row, until the next owner's name takes
 * the place.
 *
 * @return 0, ECONFLICT (not held by that client id, or with that token, any
 *         more: the message says who holds it), ENOTFOUND, EINVAL (neither is
 *         given, or, on Spring's layouts, no client id), EUNCERTAIN, EBUSY (a
 *         transaction has the row locked), or as sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_break(sqlock_registry *registry, const char *name,
                                const sqlock_break_options *options,
                                sqlock_error *err);

/* What sqlock_reap() keeps at the least. */
#define SQLOCK_RETENTION_DEFAULT_MS ((int64_t)600000)

/**
 * Remove the rows of the region that have been free or expired for longer than
 * @p retention_ms.  A row whose token is younger than that stays, so that a
 * token never comes again.  Never touches a lease that has not run out.  On the
 * four-column layout, expiry is judged with sqlock_options.peer_ttl_ms.
 *
 * Removes, too, the rows of names that sqlock_tx_lock() has made longer than
 * that ago and that no transaction has locked.  One that is asked for again is
 * made again.
 *
 * @param[out] removed how many, also before a failure; may be NULL
 * @return 0, EUNCERTAIN, EBUSY (a transaction has a row locked), or as
 *         sqlock_list()
 */
SQLOCK_MUSTUSE int sqlock_reap(sqlock_registry *registry, int64_t retention_ms,
                               int64_t *removed, sqlock_error *err);

/**
 * After the database was restored from a backup, cloned, or failed over to a
 * server that had not got everything: free every lock of the table, in all
 * regions, and raise the tokens that it keeps above all that were given before
 * (by a server whose clock was not ahead of this one's).  The holders of before
 * find themselves lost, but believe until then: no program that uses the locks
 * should be running.
 *
 * @param[out] rows how many were changed (Spring's layouts: removed); may be
 *             NULL
 * @return as sqlock_reap(), and ENOTSUP: the driver cannot
 */
SQLOCK_MUSTUSE int sqlock_after_restore(sqlock_registry *registry,
                                        int64_t *rows, sqlock_error *err);

typedef enum sqlock_severity {
    SQLOCK_FINE = 0,
    SQLOCK_WARNING, /* locks work; less is promised, or it may go wrong */
    SQLOCK_FAILURE  /* locks do not work, or two could hold one */
} sqlock_severity;

/** One thing that sqlock_diagnose() has looked at. */
typedef struct sqlock_check {
    const char *check; /* a constant: connection, tls, durability, failover,
                          isolation, timeouts, pooler, clock, layout, rights,
                          once, stock, waiting, peers */
    sqlock_severity severity;
    char *found;  /* one line */
    char *advice; /* what to change, one line; NULL when nothing */
} sqlock_check;

/**
 * Look at all that the promises of locks rest on: the connection, the server's
 * settings, the table, our rights on it (a lock in the region "sqlock-doctor"
 * is taken, renewed, released and its row removed), whoever else uses it.
 * Takes a URL, because a registry may not open for what is wrong.
 *
 * @param[out] checks to be given to sqlock_checks_free() with @p count;
 *             those made so far also after a failure
 * @return 0: all was looked at, whatever was found; or why the rest could not
 *         be: EINVAL, ENOTSUP, EUNREACHABLE, EBUSY, EACCESS, ESCHEMA,
 *         EREADONLY, ERESOURCE, EDATABASE, ENOMEM
 */
SQLOCK_MUSTUSE int sqlock_diagnose(const char *url,
                                   const sqlock_options *options,
                                   sqlock_check **checks, size_t *count,
                                   sqlock_error *err);

typedef enum sqlock_support {
    SQLOCK_SUPPORT_REFUSED = 0, /* ENOTSUP; wake-ups: done without */
    SQLOCK_SUPPORT_WEAKER,      /* what is weaker is said below */
    SQLOCK_SUPPORT_FULL
} sqlock_support;

/** What a database gives. */
typedef struct sqlock_capabilities {
    size_t size;              /* sizeof(sqlock_capabilities) */
    sqlock_support leases;    /* weaker: tokens are the clock alone (Spring's
                                 layouts); refused: two had one, do not use */
    sqlock_support row_locks; /* sqlock_tx_lock(), sqlock_tx_lock_row() */
    sqlock_support guards;    /* sqlock_tx_guard() */
    sqlock_support wakeups;   /* who waits is woken by the release; weaker: by
                                 that on the same node (Galera); refused, as on
                                 Spring's layouts: waiters look at the row */
} sqlock_capabilities;
#define SQLOCK_CAPABILITIES_INIT SQLOCK_SIZED(sqlock_capabilities)

/**
 * Find out what the database gives, by two sessions that get in each other's
 * way, whatever it calls itself: in the region "sqlock-doctor", whose rows are
 * removed.
 *
 * @return 0, EINVAL, ETIMEDOUT (somebody else is at it), or as
 *         sqlock_registry_open()
 */
SQLOCK_MUSTUSE int sqlock_capabilities_of(const char *url,
                                          const sqlock_options *options,
                                          sqlock_capabilities *found,
                                          sqlock_error *err);

/** Free what sqlock_diagnose() gave.  NULL is allowed. */
SQLOCK_API void sqlock_checks_free(sqlock_check *checks, size_t count);

/** Free text given by this library.  NULL is allowed. */
SQLOCK_API void sqlock_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_H */
