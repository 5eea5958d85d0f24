/*
 * sqlock/lease.h - a lease that is held: who has it, and an end for cleaning up
 *
 * Calling sequence
 *     char client_id[SQLOCK_KEY_SIZE];
 *
 *     rc = sqlock_acquire(lock, 5000, NULL, &err);
 *     if (rc == 0) {
 *         sqlock_client_id(lock, client_id);
 *         printf("UPDATE job ... WHERE EXISTS (SELECT 1 FROM INT_LOCK "
 *                "WHERE CLIENT_ID = '%s')", client_id);
 *         rc = sqlock_abandon(lock, &err);
 *     }
 */
#ifndef SQLOCK_LEASE_H
#define SQLOCK_LEASE_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * CLIENT_ID of this acquisition, a new one each time; "" when not held, lost or
 * over.  A statement can compare it with the row to see whether the lock is
 * still the holder's.  No I/O.
 *
 * @param[out] client_id written in any case
 */
SQLOCK_API void sqlock_client_id(sqlock_lock *lock,
                                 char client_id[SQLOCK_KEY_SIZE]);

/**
 * Say who has the lease from now on, as the option `actor` of its acquisition
 * said.  An actor is a thread or task, by a number of the caller's, that does
 * nothing else while it waits.  Where handles own locks, an actor that waits
 * for a lock which it has itself by another handle is told EDEADLOCK, and so
 * are those that wait crosswise.  If it gives the lease to another one, which
 * is to release it, that one has to be named here.  Nothing happens unless the
 * lock is held.  No I/O.
 *
 * @param actor 0: not known.  Numbers from 2^61 on are taken: Python's callers
 *              count from there, and the threads of C++ from 2^62
 */
SQLOCK_API void sqlock_set_actor(sqlock_lock *lock, uint64_t actor);

/**
 * Undo one acquire where nobody can come again, as in a destructor or on a path
 * that cleans up: as sqlock_release(), but a guard does not prevent it.  The
 * lock is then released when the transaction ends; the caller does not hold it
 * any more and may drop it, and `on_lost` is not called.
 */
SQLOCK_API int sqlock_abandon(sqlock_lock *lock, sqlock_error *err);

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_LEASE_H */
