/*
 * sqlock/shared.h - locks that several owners have at a time: readers, permits
 *
 * An acquisition with `mode` SQLOCK_SHARED shares the lock with others of that
 * mode, also in other processes, and excludes those of SQLOCK_EXCLUSIVE.  Each
 * has a lease, a token and a loss of its own.  Both modes wait in one queue:
 * readers let no writer wait that came before them, and the reverse.
 *
 * With `permits` N the weights of all who have the lock at a time are N at
 * most, as of a semaphore.  This acquisition takes `weight` of them, all or
 * none; 0 stands for 1.  The lock's row has N, and what it says counts: the
 * first acquisition sets it, sqlock_set_permits() changes it, and an
 * acquisition with another N, or with 0, means the row's.  More `weight` than N
 * is refused with ECONFLICT, also while it waits.  Where the row has no N, 0
 * sets none: any number may share the lock.
 *
 * The row loses N when it is reaped, ten minutes after the last holder or
 * later; and when a Spring service has had the lock, as it deletes the row.  So
 * whoever counts on N gives it with each acquisition.
 *
 * Readers of one registry, without permits, have one share together: one token
 * and one entry in the row.  The first of them takes it, the last one releases
 * it, and the others come and go without a statement.  Each has a TTL, an
 * auto_renew and a loss of its own.  A reader relies on the share for at least
 * 7/8 of its TTL (half of it with auto_renew), or takes another share.  At most
 * 16 of them come in a row; then one reads the row, whether others wait, and if
 * so, the next readers wait behind those.  A reader waits for a writer of the
 * registry that came before it.  sqlock_break() ends the share of all.  A lease
 * whose id was told (operator.h) is shared with nobody, and with the option
 * detect_deadlocks each reader has its own share.
 *
 * A nested acquire of the same owner has the same mode, and takes no other
 * permit; one of more `weight` than the first is refused with EINVAL.  An owner
 * that has the lock in one mode and asks for the other is refused with EINVAL:
 * two readers that both wanted to write would wait for each other for ever.
 * sqlock_downgrade() goes the other way.
 *
 * This needs the table of sqlock's layout, ENOTSUP otherwise; a Spring service
 * on it sees the lock held until the last sharer has left.  A lock has 200
 * sharers at most, the readers of a registry being one: so many leases of 5 s
 * are kept, renewed in the background.  A shared lease guards no transaction.
 *
 * Calling sequence
 *     sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
 *
 *     options.mode = SQLOCK_SHARED;
 *     options.permits = 3;
 *     rc = sqlock_acquire(lock, 5000, &options, &err);
 *     if (rc == 0) {
 *         do_a_step();
 *         rc = sqlock_release(lock, &err);
 *     }
 */
#ifndef SQLOCK_SHARED_H
#define SQLOCK_SHARED_H

#include "sqlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Turn the caller's exclusive lease into a shared one, with its token, without
 * a moment in which another owner could take the lock.  All acquires of the
 * owner become shared.  A lease that is shared already is renewed.  Another
 * thread's release, renewal or guard of the lock waits for this call.
 *
 * @return 0           shared now, and renewed
 *         EOWNER      the caller does not hold the lock
 *         EINUSE      an open transaction guards it
 *         ELOST, EEXPIRED
 *                     the lease is over, perhaps as a share
 *         ECONFLICT   the lock has permits
 *         EUNCERTAIN  the mode is not known: call again, which does no harm
 *         ENOTSUP     the table has one of Spring's layouts
 *         any other   as it was, and still held until the old deadline
 */
SQLOCK_MUSTUSE int sqlock_downgrade(sqlock_lock *lock, sqlock_error *err);

/**
 * Change the number of a lock's permits; 0 makes it one for readers.  Those
 * that are granted stay granted, also if they are more; and whoever waits goes
 * on with the new number.
 *
 * @return 0          changed
 *         ENOTFOUND  the lock has no row: nobody has acquired it lately
 *         ECONFLICT  a Spring service has the lock, and will delete its row
 *         EINVAL     more than 999 999
 *         ENOTSUP    the table has one of Spring's layouts
 */
SQLOCK_MUSTUSE int sqlock_set_permits(sqlock_registry *registry,
                                      const char *name, uint32_t permits,
                                      sqlock_error *err);

#ifdef __cplusplus
}
#endif

#endif
