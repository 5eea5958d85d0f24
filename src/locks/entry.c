/*
 * entry.c - who of this process has a say about a lock: entering, holding and
 * leaving it.  No I/O in here.
 */
#include "locks/entry.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/overdue.h"
#include "locks/peers.h"

/* Called with the mutex held: nobody of this process is at it any more; the
 * first one that waits is next. */
void lk_leave(sqlock_lock *lock)
{
    struct lk_waiter *next = lk_fifo_take(&lock->fifo);

    lock->handoffs = 0;
    lock->outage = 0;
    lock->phase = next != NULL ? LK_BUSY : LK_FREE;
    lock->turn = next;
    lock->is_left_behind = next != NULL && next->is_abandoned;
    if (next != NULL)
        lk_fifo_wake(next, LK_WAKE_TURN);
}

/* Called with the mutex held. */
static int enter_again(sqlock_lock *lock, const struct lk_waiter *self,
                       sqlock_error *err)
{
    if (lock->lost == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease of this lock is lost: release it first");
    if (lk_remaining_ns(lock) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease of this lock ran out: release it first");
    if (lock->hold_count == UINT32_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock has been acquired too often");
    lock->hold_count++;
    lock->is_left_behind = lock->is_left_behind && self->is_abandoned;
    return LK_ENTRY_AGAIN;
}

/* Called with the mutex held: of a lease that others have been let past. */
static int overdue_again(const sqlock_lock *lock, uint64_t owner,
                         sqlock_error *err)
{
    return lk_error(err, lk_overdue_of(lock, owner)->lost,
                    "the lease of this lock is over: release it first");
}

/* Called with the lock's mutex held: whoever cancels the waiter finds it there;
 * false: it was cancelled before. */
static bool may_queue(struct lk_waiter *self, sqlock_lock *lock)
{
    bool cancelled;

    pthread_mutex_lock(&self->mutex);
    self->queued_at = lock;
    cancelled = self->is_cancelled;
    pthread_mutex_unlock(&self->mutex);
    return !cancelled;
}

static void leave_queue(struct lk_waiter *self)
{
    pthread_mutex_lock(&self->mutex);
    self->queued_at = NULL;
    pthread_mutex_unlock(&self->mutex);
}

static bool is_hasty(const struct lk_waiter *self)
{
    return self->options != NULL && self->options->fail_fast;
}

/* Called with the mutex held. */
static int not_in_time(const sqlock_lock *lock, const struct lk_waiter *self,
                       sqlock_error *err)
{
    if (lock->outage == 0)
        return lk_not_in_time(self->wait_ms, err);
    return lk_error(err, lock->outage,
                    "%s: another thread of this process waits for it, with the "
                    "turn at this lock",
                    sqlock_strerror(lock->outage));
}

/* Called with the mutex held: what there is to do for one who was called so. */
static int step_in(sqlock_lock *lock, struct lk_waiter *self,
                   enum lk_wake_reason reason, sqlock_error *err)
{
    if (reason == LK_WAKE_GRANTED)
        return LK_ENTRY_GRANTED;
    if (reason == LK_WAKE_CANCELED)
        return lk_canceled(err);
    if (reason == LK_WAKE_NONE)
        return not_in_time(lock, self, err);
    if (reason != LK_WAKE_TURN && lk_is_owned_by(lock, self->owner))
        return enter_again(lock, self, err);
    if (reason != LK_WAKE_TURN && lk_overdue_of(lock, self->owner) != NULL)
        return overdue_again(lock, self->owner, err);
    if (lk_fifo_is_empty(&lock->fifo) && lk_is_overdue(lock))
        (void)lk_set_aside(lock);
    if (reason == LK_WAKE_TURN || lock->phase == LK_FREE) {
        lock->phase = LK_BUSY;
        lock->turn = self;
        lock->is_left_behind = self->is_abandoned;
        return LK_ENTRY_CLAIM;
    }
    if (self->wait_ms == 0 || (lock->outage != 0 && is_hasty(self)))
        return not_in_time(lock, self, err);
    return LK_ENTRY_SUSPENDED;
}

/* Called with the mutex held: who is first in the queue goes past a holder
 * whose lease is over. */
static bool goes_past(sqlock_lock *lock, struct lk_waiter *self)
{
    if (lock->fifo.first != self || !lk_is_overdue(lock) || !lk_set_aside(lock))
        return false;
    lk_fifo_unlink(&lock->fifo, self);
    self->reason = LK_WAKE_RETRY;
    return true;
}

/* Called with the mutex held: at the end of the queue until called or the
 * deadline; who is being served then waits for what comes of it. */
static enum lk_wake_reason wait_in_queue(sqlock_lock *lock,
                                         struct lk_waiter *self)
{
    lk_fifo_append(&lock->fifo, self);
    while (self->reason == LK_WAKE_NONE && !goes_past(lock, self)) {
        if (self->is_granting) {
            lk_fifo_wait(&lock->mutex, self, LK_NEVER);
            continue;
        }
        if (sqlock_monotonic_ns() >= self->deadline_ns) {
            lk_fifo_unlink(&lock->fifo, self);
            break;
        }
        lk_fifo_wait(&lock->mutex, self,
                     lk_sooner(self->deadline_ns, lk_overdue_at(lock)));
    }
    return self->reason;
}

/* Called with the mutex held: go on from there, waiting as often as need be. */
static int step_on(sqlock_lock *lock, struct lk_waiter *self,
                   enum lk_wake_reason reason, sqlock_error *err)
{
    int rc = step_in(lock, self, reason, err);

    while (rc == LK_ENTRY_SUSPENDED) {
        reason = LK_WAKE_CANCELED;
        if (may_queue(self, lock)) {
            if (self->on_wake != NULL) {
                lk_fifo_append(&lock->fifo, self);
                return rc;
            }
            reason = wait_in_queue(lock, self);
        }
        leave_queue(self);
        rc = step_in(lock, self, reason, err);
    }
    return rc;
}

/* Wait for the threads of this process that came before. */
int lk_enter(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err)
{
    int rc;

    if (self->owner == 0)
        self->owner = lk_thread_id();
    pthread_mutex_lock(&lock->mutex);
    rc = step_on(lock, self, LK_WAKE_RETRY, err);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

int lk_enter_on(sqlock_lock *lock, struct lk_waiter *self, sqlock_error *err)
{
    bool is_late = sqlock_monotonic_ns() >= self->deadline_ns;
    int rc = LK_ENTRY_SUSPENDED;

    pthread_mutex_lock(&lock->mutex);
    if (self->is_queued && !goes_past(lock, self) && is_late)
        lk_fifo_unlink(&lock->fifo, self);
    /* Who is served has left the queue and is not called yet. */
    if (self->reason != LK_WAKE_NONE ||
        (is_late && !self->is_queued && !self->is_granting)) {
        leave_queue(self);
        rc = step_on(lock, self, self->reason, err);
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

int64_t lk_suspended_until(sqlock_lock *lock, const struct lk_waiter *self)
{
    int64_t until_ns = self->deadline_ns;

    if (self->paused_until_ns != 0)
        return self->paused_until_ns;
    pthread_mutex_lock(&lock->mutex);
    if (self->is_queued)
        until_ns = lk_sooner(until_ns, lk_overdue_at(lock));
    else if (self->is_granting && self->reason == LK_WAKE_NONE)
        until_ns = LK_NEVER;
    pthread_mutex_unlock(&lock->mutex);
    return until_ns;
}

void lk_note_outage(sqlock_lock *lock, int rc)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    if (rc == SQLOCK_EUNCERTAIN) /* nothing of the others was sent */
        rc = SQLOCK_EUNREACHABLE;
    pthread_mutex_lock(&lock->mutex);
    lock->outage = rc;
    for (waiter = rc != 0 ? lock->fifo.first : NULL; waiter != NULL;
         waiter = next) {
        next = waiter->next;
        if (!is_hasty(waiter))
            continue;
        lk_fifo_unlink(&lock->fifo, waiter);
        lk_fifo_wake(waiter, LK_WAKE_RETRY);
    }
    pthread_mutex_unlock(&lock->mutex);
}

/* Called with the mutex held. */
void lk_hold(sqlock_lock *lock, const struct lk_lease *lease,
             const sqlock_acquire_options *options, uint64_t owner)
{
    lock->phase = LK_OCCUPIED;
    lock->turn = NULL;
    lock->outage = 0;
    lock->owner = owner;
    lock->hold_count = 1;
    memcpy(lock->client_id, lease->client_id, sizeof lock->client_id);
    lock->place = lease->place;
    lock->token = lease->token;
    lock->ttl_ms = lease->ttl_ms;
    lock->cap_ms = lease->cap_ms;
    lock->is_claim_late = lease->is_claim_late;
    lock->deadline_boot_ns = lease->deadline_boot_ns;
    lock->renewals = NULL; /* those of another lease do not matter */
    lock->lost = 0;
    lock->is_told = false;
    lock->is_fenced = options->fenced;
    lock->max_hold_ms = options->max_hold_ms;
    lock->acquired_boot_ns = lk_boottime_ns();
    lock->on_lost = options->on_lost;
    lock->lost_context = options->lost_context;
    lk_lost_fd_clear(lock);
    if (lock->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_fifo_wake_all(&lock->fifo, LK_WAKE_RETRY); /* it is theirs too */
}

/* Watching and renewing, as the acquisition asked for. */
int lk_begin_care(sqlock_lock *lock, const sqlock_acquire_options *options,
                  sqlock_error *err)
{
    sqlock_registry *registry = lock->registry;
    bool has_fd;
    int rc = 0;

    pthread_mutex_lock(&lock->mutex);
    has_fd = lock->lost_fd >= 0;
    pthread_mutex_unlock(&lock->mutex);
    if (options->auto_renew || options->on_lost != NULL || has_fd)
        rc = lk_expiry_watch(&registry->expiry, lock, err);
    if (rc == 0 && options->auto_renew)
        rc = lk_renewer_add(&registry->renewer, lock, err);
    return rc;
}

/* In this order: no renewal begins after the first, no callback runs after the
 * second (F4). */
void lk_end_care(sqlock_lock *lock)
{
    lk_renewer_remove(&lock->registry->renewer, lock);
    lk_expiry_forget(&lock->registry->expiry, lock);
}

/* Called with the mutex held. */
void lk_copy_lease(const sqlock_lock *lock, struct lk_lease *out)
{
    memset(out, 0, sizeof *out);
    out->key = lock->key;
    out->ttl_ms = lock->ttl_ms;
    out->cap_ms = lock->cap_ms;
    out->is_claim_late = lock->is_claim_late;
    out->place = lock->place;
    out->token = lock->token;
    out->deadline_boot_ns = lock->deadline_boot_ns;
    memcpy(out->client_id, lock->client_id, sizeof out->client_id);
}

int lk_not_owner(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EOWNER,
                    "the calling thread does not own this lock");
}

/* Called with the mutex held: the same of a lease that was set aside. */
static int begin_overdue(sqlock_lock *lock, struct lk_overdue *overdue,
                         struct lk_lease *lease, int *lost)
{
    if (--overdue->hold_count > 0)
        return 0;
    *lease = overdue->lease;
    *lost = overdue->lost;
    lk_overdue_end(lock, overdue);
    return LK_RELEASE_OVERDUE;
}

/* Count one less.  0: nested, all done; 1: the outermost one, phase LK_BUSY. */
int lk_begin_release(sqlock_lock *lock, uint64_t owner, struct lk_lease *lease,
                     int *lost, sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lock->mutex);
    if (!lk_is_owned_by(lock, owner)) {
        struct lk_overdue *overdue = lk_overdue_of(lock, owner);

        rc = overdue != NULL ? begin_overdue(lock, overdue, lease, lost)
                             : lk_not_owner(err);
    } else if (lock->hold_count > 1) {
        lock->hold_count--;
    } else if (lock->guards > 0) {
        rc = lk_error(err, SQLOCK_EINUSE,
                      "an open transaction guards this lock: end it first");
    } else {
        lk_copy_lease(lock, lease);
        *lost = lock->lost;
        lock->phase = LK_BUSY;
        rc = 1;
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

void lk_end_release(sqlock_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    lock->hold_count = 0;
    lock->lost = 0;
    lock->token = 0;
    lk_leave(lock);
    pthread_mutex_unlock(&lock->mutex);
}

/* A hand-off is not for a lease that may be over, nor once too often in a row:
 * other processes wait as well. */
struct lk_waiter *lk_begin_hand_off(sqlock_lock *lock)
{
    uint32_t limit = lock->store->options.handoff_limit;
    struct lk_waiter *next = NULL;

    pthread_mutex_lock(&lock->mutex);
    if (lock->handoffs < limit && !lk_peers_are_due(lock) &&
        !lk_fifo_is_empty(&lock->fifo) && lock->fifo.first->options != NULL &&
        lk_remaining_ns(lock) > 0) {
        next = lk_fifo_take(&lock->fifo);
        next->is_granting = true;
        lock->turn = next; /* who cancels it finds it there */
        lock->is_left_behind = lock->is_left_behind && next->is_abandoned;
    }
    pthread_mutex_unlock(&lock->mutex);
    return next;
}

void lk_end_hand_off(sqlock_lock *lock, struct lk_waiter *next,
                     const struct lk_lease *lease)
{
    pthread_mutex_lock(&lock->mutex);
    lock->is_left_behind = next->is_abandoned;
    if (lease != NULL) {
        lock->handoffs++;
        lk_hold(lock, lease, next->options, next->owner);
    } else {
        lock->handoffs = 0;
        lock->hold_count = 0;
        lock->lost = 0;
        lock->token = 0;
    }
    lk_fifo_wake(next, lease != NULL ? LK_WAKE_GRANTED : LK_WAKE_TURN);
    pthread_mutex_unlock(&lock->mutex);
}

void lk_abandon_entry(sqlock_lock *lock, struct lk_waiter *self)
{
    struct lk_overdue *overdue;

    pthread_mutex_lock(&lock->mutex);
    self->is_abandoned = true;
    overdue = lk_overdue_of(lock, self->owner);
    if (overdue != NULL)
        overdue->is_left_behind = true;
    if (lock->turn == self ||
        (lock->phase == LK_OCCUPIED && lock->owner == self->owner &&
         lock->hold_count == 1))
        lock->is_left_behind = true;
    pthread_mutex_unlock(&lock->mutex);
}

void lk_abandon_release(sqlock_lock *lock, const struct lk_lease *lease)
{
    pthread_mutex_lock(&lock->mutex);
    if (lock->phase == LK_BUSY &&
        strcmp(lock->client_id, lease->client_id) == 0)
        lock->is_left_behind = lock->turn == NULL || lock->turn->is_abandoned;
    pthread_mutex_unlock(&lock->mutex);
}

int lk_begin_renew(sqlock_lock *lock, uint32_t *ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&lock->mutex);
    if (lk_overdue_of(lock, lk_thread_id()) != NULL)
        rc = overdue_again(lock, lk_thread_id(), err);
    else if (!lk_is_mine(lock))
        rc = lk_not_owner(err);
    else if (lock->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST, "the lease of this lock is lost");
    else if (lk_remaining_ns(lock) == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease ran out before it was renewed");
    else if (lock->guards > 0)
        rc =
            lk_error(err, SQLOCK_EBUSY, "an open transaction guards this lock");
    else
        rc = lk_ttl_check(&lock->store->options, ttl_ms, *ttl_ms, lock->ttl_ms,
                          err);
    if (rc == 0) {
        lk_copy_lease(lock, lease);
        lk_renewal_begin(lock, renewal, *ttl_ms);
    }
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}
