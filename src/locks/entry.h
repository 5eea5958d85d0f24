/*
 * entry.h - the turns of a process's threads at a lock, and what is kept of it
 * while one of them has it
 */
#ifndef LK_ENTRY_H
#define LK_ENTRY_H

#include "locks/holding.h"
#include "lease/lease.h"
#include "locks/registry.h"

enum lk_entry {
    LK_ENTRY_AGAIN,    /* nested: counted, nothing to send */
    LK_ENTRY_CLAIM,    /* the lock's phase is LK_BUSY, for the caller */
    LK_ENTRY_GRANTED,  /* handed off by the holder: it is the caller's */
    LK_ENTRY_SUSPENDED /* in the queue, to be woken by a call */
};

/* Wait for the threads that came before.  lk_entry, or as sqlock_acquire(). */
int lk_enter(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err);

/* The same for who was suspended and has been woken, or whose deadline has
 * come. */
int lk_enter_on(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err);

/* When who is suspended is to go on unless it is woken before, CLOCK_MONOTONIC.
 * Who is being served is called in any case: no deadline ends that. */
int64_t lk_suspended_until(sqlock_lock *lock, const struct lk_waiter *self);

/* With the mutex held: the caller's turn is over; the first one that waits is
 * next. */
void lk_leave(sqlock_lock *lock);

/* With the mutex held: the caller's turn became a lease. */
void lk_hold(sqlock_lock *lock, const struct lk_lease *lease,
             const sqlock_acquire_options *options, uint64_t owner);

/* Whose turn it is has met an outage of the database, which waiters of this
 * process share: what it was told; 0: it is over. */
void lk_note_outage(sqlock_lock *lock, int rc);

/* Watching and renewing, as the acquisition asked for.  0, ERESOURCE. */
int lk_begin_care(sqlock_lock *lock, const sqlock_acquire_options *options,
                  sqlock_error *err);

/* No renewal begins and no callback runs after it (F4). */
void lk_end_care(sqlock_lock *lock);

/* What lk_begin_release() gives of a lease that was set aside (overdue.h): it
 * is to be released, and the lock is another's by now. */
#define LK_RELEASE_OVERDUE 2

/* Count one less of that owner's.  0: nested, all done; 1: the outermost one,
 * whose lease is copied and whose turn it is, until lk_end_release();
 * LK_RELEASE_OVERDUE; EOWNER, EINUSE. */
int lk_begin_release(sqlock_lock *lock, uint64_t owner, struct lk_lease *lease,
                     int *lost, sqlock_error *err);
void lk_end_release(sqlock_lock *lock);

/* In place of a release: who is next, to be served by the caller, who has the
 * lock's turn; NULL: release it.  Then it holds what it was given, or (NULL)
 * has the turn itself. */
struct lk_waiter *lk_begin_hand_off(sqlock_lock *lock);
void lk_end_hand_off(sqlock_lock *lock, struct lk_waiter *next,
                     const struct lk_lease *lease);

/* Nobody waits any more for the request that acquires, or that releases this
 * lease: whatever it is at, it does not keep the lock in use. */
void lk_abandon_entry(sqlock_lock *lock, struct lk_waiter *self);
void lk_abandon_release(sqlock_lock *lock, const struct lk_lease *lease);

/* The lease to renew, with that TTL (0: its own, which is filled in), until
 * lk_renewal_end().  0, EOWNER, EEXPIRED, ELOST, EBUSY, EINVAL. */
int lk_begin_renew(sqlock_lock *lock, uint32_t *ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err);

/* With the mutex held. */
void lk_copy_lease(const sqlock_lock *lock, struct lk_lease *out);

/* EOWNER. */
int lk_not_owner(sqlock_error *err);

/* An acquire call's options, completed.  EINVAL, EFORK. */
int lk_check_acquire(const sqlock_lock *lock, int64_t wait_ms,
                     const sqlock_acquire_options *options,
                     sqlock_acquire_options *complete, sqlock_error *err);

#endif
