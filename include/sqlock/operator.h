/*
 * sqlock/operator.h - what the command and scripts of operators need
 *
 * A lease id is one word of printable characters that names a lease.  Any
 * process that has the id can renew, release and guard the lease through a
 * registry of the same table and region, as can a shell script by the command.
 * A process that ends by _exit(2) without releasing the lock leaves the lease
 * to those that have its id.
 *
 * Calling sequence
 *     char id[SQLOCK_LEASE_ID_SIZE];
 *
 *     rc = sqlock_lease_id(id, lock, 60000, &err);
 *     if (rc == 0)
 *         rc = sqlock_lease_renew(registry, id, 0, NULL, &err);
 *     if (rc == 0)
 *         rc = sqlock_lease_release(registry, id, &err);
 */
#ifndef SQLOCK_OPERATOR_H
#define SQLOCK_OPERATOR_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- leases -- */

/* Size of a lease id with its NUL. */
#define SQLOCK_LEASE_ID_SIZE 128

/**
 * The id of the lease that the caller holds.  No I/O.
 *
 * @param ttl_ms the TTL that sqlock_lease_renew() uses when it is given 0
 * @return 0           done
 *         EEXPIRED    not held, or over
 *         EINUSE      other readers of the registry have the same share
 *                     (shared.h); once an id was told, later ones have others
 *         EFORK       this is a child process
 */
SQLOCK_MUSTUSE int sqlock_lease_id(char id[SQLOCK_LEASE_ID_SIZE],
                                   sqlock_lock *lock, uint32_t ttl_ms,
                                   sqlock_error *err);

/**
 * Start the lease of an id anew.
 *
 * @param ttl_ms            length from now; 0: that of the id
 * @param[out] remaining_ms how long its holder may use the lock; NULL: not
 *                          wanted
 * @return 0                 renewed
 *         EEXPIRED, ELOST   the lease is over
 *         EINVAL            this is no lease id
 */
SQLOCK_MUSTUSE int sqlock_lease_renew(sqlock_registry *registry, const char *id,
                                      uint32_t ttl_ms, int64_t *remaining_ms,
                                      sqlock_error *err);

/**
 * Release the lease of an id.  A process that still holds and renews it finds
 * the lease lost.
 *
 * @return 0           released
 *         EEXPIRED    it had expired; nobody else had the lock
 *         ELOST       it was over; another owner may have had the lock
 *         EINVAL      this is no lease id
 *         any other   the registry goes on trying until it is closed
 */
SQLOCK_MUSTUSE int sqlock_lease_release(sqlock_registry *registry,
                                        const char *id, sqlock_error *err);

/**
 * The SQL that guards the lease of an id in a transaction of another program,
 * such as psql.  As the transaction's first statement it fails unless the
 * holder still has the lease, and it keeps the lock from others until the
 * transaction ends.  It does not stop a program that goes on after an error
 * (sqlite3 without -bail).  On Galera it holds on one node only.
 *
 * @param[out] text freed by sqlock_free(), without a semicolon; NULL on failure
 * @return 0           done
 *         EINVAL      this is no lease id
 *         ENOTSUP     the lease shares its lock: only one that has it alone can
 *                     be guarded
 */
SQLOCK_MUSTUSE int sqlock_lease_guard_text(char **text,
                                           sqlock_registry *registry,
                                           const char *id, sqlock_error *err);

/**
 * Let the registry act for a lease whose holder waits for this process, as the
 * command of a `sqlock run` does: deadlocks are looked for, as with the option
 * `detect_deadlocks`, and as if the holder's locks were held here.  Call it
 * before the registry has any lock.  No I/O.
 *
 * @param client_id of the lease
 * @return 0           done
 *         EINVAL      this is no CLIENT_ID
 */
SQLOCK_API int sqlock_act_for(sqlock_registry *registry, const char *client_id,
                              sqlock_error *err);

/* -------------------------------------------------------------- sessions -- */

/* Size of a session's tag with its NUL. */
#define SQLOCK_TAG_SIZE 64

/**
 * A name for the database sessions that do the holder's work, made of the lock
 * and its token; with PostgreSQL, set it as application_name.
 * sqlock_stale_sessions() finds them by it.  No I/O.
 *
 * @param[out] tag written in any case; "" when not held, lost or over, and on
 *                 databases whose sessions have no such name: MySQL, SQLite
 */
SQLOCK_API void sqlock_session_tag(sqlock_lock *lock,
                                   char tag[SQLOCK_TAG_SIZE]);

/**
 * Count the sessions of earlier holders that are still in a statement or
 * transaction: those with the tag of an earlier lease of this lock, whose
 * client is gone or has lost the lock.  A new holder asks before it begins its
 * work.  The answer is of this moment: only a guard or a token keeps later
 * statements out.
 *
 * @return 0           done
 *         EEXPIRED    not held, or over
 *         ENOTSUP     sessions of this database have no such name
 */
SQLOCK_MUSTUSE int sqlock_stale_sessions(sqlock_lock *lock, int64_t *count,
                                         sqlock_error *err);

/* -------------------------------------------------------------- database -- */

/**
 * Describe one of the drivers: "name (client library and version)", a constant.
 * They are numbered from 0 in the order in which they are tried for a URL.
 * NULL: there is none with that number.
 */
SQLOCK_API const char *sqlock_driver_info(size_t index);

/** Level of support for a feature. */
typedef enum sqlock_support {
    SQLOCK_SUPPORT_REFUSED = 0, /* calls that need it return ENOTSUP */
    SQLOCK_SUPPORT_WEAKER,      /* it works, with a limit: see the feature */
    SQLOCK_SUPPORT_FULL         /* it works */
} sqlock_support;

/** Features that a database supports. */
typedef struct sqlock_capabilities {
    size_t size;              /* sizeof(sqlock_capabilities): it may grow */
    sqlock_support leases;    /* weaker: tokens are the clock alone (Spring's
                                 layouts); refused: two sessions got one lease,
                                 do not use this database */
    sqlock_support row_locks; /* sqlock_tx_lock(), sqlock_tx_lock_row() */
    sqlock_support guards;    /* sqlock_tx_guard() */
    sqlock_support wakeups;   /* a release wakes those who wait; weaker: only
                                 those on the same node (Galera); refused
                                 (Spring's layouts, a pooler, waiting=poll):
                                 waiters read the row */
} sqlock_capabilities;
#define SQLOCK_CAPABILITIES_INIT SQLOCK_SIZED(sqlock_capabilities)

/**
 * Find out by trial what the database supports, whatever it calls itself.  Two
 * sessions compete for locks in the region "sqlock-doctor", whose rows are
 * removed.
 *
 * @param[in,out] found begins with SQLOCK_CAPABILITIES_INIT
 * @return 0              done
 *         ETIMEDOUT      another process is doing the same
 *         EBUSY          the database was too slow
 *         ESCHEMA        there is no table for locks
 */
SQLOCK_MUSTUSE int sqlock_capabilities_of(const char *url,
                                          const sqlock_options *options,
                                          sqlock_capabilities *found,
                                          sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_OPERATOR_H */
