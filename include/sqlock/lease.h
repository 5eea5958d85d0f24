/*
 * sqlock/lease.h - a lease seen from outside of the process that holds it
 */
#ifndef SQLOCK_LEASE_H
#define SQLOCK_LEASE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_LEASE_H */
