/*
 * sqlock/many.h - many locks in one call
 *
 * One statement takes, renews or releases up to 1000 locks of one registry; on
 * MySQL taking them needs a second one, for the tokens.  More go in several, in
 * order of the keys, each with statement_timeout_ms for itself.  Where that is
 * less than 500, a statement has 2 locks for each millisecond of it.  If one
 * that takes locks times out, its locks are tried in smaller statements.  Each
 * lock is given once, in any order: the keys are sorted, so two callers never
 * deadlock, and of two that want the same locks one gets them.
 *
 * Locks that are shared are taken, renewed and released by a statement each.
 * All of a call together have the time of one, statement_timeout_ms; where they
 * are taken, that begins with the end of wait_ms, but the first lease must last
 * until the end.  A call that takes longer ends by ETIMEDOUT; what it has not
 * renewed or released then has EBUSY, and is released in the background.
 *
 * Calling sequence
 *     size_t count = 2;
 *
 *     rc = sqlock_obtain(&locks[0], registry, "account/1", &err);
 *     if (rc == 0)
 *         rc = sqlock_obtain(&locks[1], registry, "account/2", &err);
 *     if (rc == 0)
 *         rc = sqlock_acquire_many(locks, count, 5000, NULL, NULL, &err);
 *     if (rc == 0) {
 *         do_a_step();
 *         rc = sqlock_release_many(locks, count, NULL, &err);
 *     }
 */
#ifndef SQLOCK_MANY_H
#define SQLOCK_MANY_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most locks of one call. */
#define SQLOCK_MANY_MAX 10000

/**
 * Take all of the locks, or none.  The hold count of a lock that the caller has
 * already rises by one.  sqlock_cancel() of any of the locks ends the wait.
 *
 * At first, the call keeps none of the locks from anybody while it waits for
 * another one.  Beside callers that take them one by one, all might never be
 * free together: so when it has had to give back three times what it had, it
 * takes them in the order of their keys, in each one's queue, and keeps those
 * that it has, renewed.  If somebody has one of them and waits for another, the
 * two would wait for each other; so after 0.1 s it gives back what it kept,
 * though not its place in a queue, and begins anew for twice as long.
 *
 * So the wait has a bound.  Let T be the time of all queues one after the
 * other: for each lock, how long those before the call in its queue hold it.
 * The attempts that are too short add up to less than 2 T, and the next is long
 * enough: the call has all within 3 T, the three times at the beginning, and
 * 0.1 s.  Where waiters poll, other processes may overtake it, and there is no
 * such bound.
 *
 * With `modes`, an array with a mode for each lock, some may be shared and
 * others not; `permits` and `weight` are for those that are.
 *
 * PostgreSQL needs an entry of its lock table for each key while its statement
 * runs.  Its default settings have room for ten such statements at a time; for
 * more raise max_locks_per_transaction, or get ERESOURCE.
 *
 * The message of a call that fails because of one lock, such as the one that it
 * was waiting for when its time was over, begins with the lock's name.
 *
 * @param[out] results one for each lock, as sqlock_acquire() returns; after a
 *                     failure those that were not refused themselves have the
 *                     code of the call; NULL: not wanted
 * @return 0            all are held
 *         EBUSY        at least one is not free, and @p wait_ms is 0
 *         ETIMEDOUT    not all were free in time, or a statement timed out, as
 *                      the text says; none is held
 *         EUNCERTAIN   the outcome is not known.  NONE IS HELD: rows that were
 *                      taken are freed in the background, or expire
 *         any other    none is held, as sqlock_acquire() returns
 */
SQLOCK_MUSTUSE int sqlock_acquire_many(sqlock_lock *const *locks, size_t count,
                                       int64_t wait_ms,
                                       const sqlock_acquire_options *options,
                                       int *results, sqlock_error *err);

/**
 * Undo one acquire of each lock, as sqlock_release() or sqlock_abandon() of
 * lease.h does.
 *
 * @param[out] results of each lock; NULL: not wanted.  Not written after
 *                     EINVAL, EFORK and ENOMEM: refused, and all are held as
 *                     before
 * @return 0           all are released
 *         any other   the first result that is not 0
 */
SQLOCK_MUSTUSE int sqlock_release_many(sqlock_lock *const *locks, size_t count,
                                       int *results, sqlock_error *err);
SQLOCK_API int sqlock_abandon_many(sqlock_lock *const *locks, size_t count,
                                   int *results, sqlock_error *err);

/**
 * Renew each lease for its own TTL.  A lease whose row a transaction has
 * locked is passed over: its result is EBUSY and its deadline stays.  A row
 * that another renewal of this process has, such as one in the background, is
 * waited for.  A single lock is renewed as by sqlock_renew(), which waits for
 * its row.
 *
 * @param[out] results one for each lock, as sqlock_renew() returns; NULL: not
 *                     wanted
 * @return 0                 all are renewed
 *         ELOST, EEXPIRED   a lease is over: stop work under that lock
 *         EBUSY             a row is locked: try again before the deadline
 *         any other         the first result that is not 0, as sqlock_renew()
 *                           returns
 */
SQLOCK_MUSTUSE int sqlock_renew_many(sqlock_lock *const *locks, size_t count,
                                     int *results, sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_MANY_H */
