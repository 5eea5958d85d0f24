/*
 * entry.c - the turns at a lock in this process: entering, holding and leaving
 * it.  No I/O in here.
 */
#include "wait/entry.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/owner.h"
#include "wait/overdue.h"
#include "wait/peers.h"

/* Called with the mutex held: nobody of this process is at it any more; the
 * first one that waits is next. */
void lk_leave(struct lk_entry *entry)
{
    struct lk_waiter *next = lk_fifo_take(&entry->fifo);

    entry->handoffs = 0;
    entry->outage = 0;
    entry->phase = next != NULL ? LK_BUSY : LK_FREE;
    entry->turn = next;
    entry->is_left_behind = next != NULL && next->is_abandoned;
    if (next != NULL)
        lk_fifo_wake(next, LK_WAKE_TURN);
}

bool lk_is_owned_by(const struct lk_entry *entry, uint64_t owner)
{
    return entry->phase == LK_OCCUPIED && entry->owner == owner;
}

int64_t lk_remaining_ns(const struct lk_entry *entry)
{
    int64_t left = entry->deadline_boot_ns - lk_boottime_ns();

    return entry->lost != 0 || left < 0 ? 0 : left;
}

static bool is_owner(uint64_t wanted, uint64_t owner)
{
    return wanted == 0 || wanted == owner;
}

bool lk_entry_is_in_use(struct lk_entry *entry, uint64_t owner)
{
    bool in_use = false;

    pthread_mutex_lock(&entry->mutex);
    if (entry->phase == LK_OCCUPIED)
        in_use = is_owner(owner, entry->owner) &&
                 !(lk_is_overdue(entry) && lk_has_ended(entry->owner));
    else if (entry->phase == LK_BUSY)
        in_use = is_owner(owner, entry->turn != NULL ? entry->turn->owner
                                                     : entry->owner);
    in_use = (in_use && !entry->is_left_behind) || lk_is_missed(entry, owner) ||
             lk_fifo_has_waiters(&entry->fifo, owner);
    pthread_mutex_unlock(&entry->mutex);
    return in_use;
}

static int twice(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EINUSE,
                    "this handle holds the lock or waits for it already: "
                    "obtain one for each owner");
}

/* Called with the mutex held. */
static int enter_again(struct lk_entry *entry, const struct lk_waiter *self,
                       sqlock_error *err)
{
    if (entry->store->options.ownership == SQLOCK_OWNED_BY_HANDLE)
        return twice(err);
    if (entry->lost == SQLOCK_ELOST)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease of this lock is lost: release it first");
    if (lk_remaining_ns(entry) == 0)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease of this lock ran out: release it first");
    if (entry->hold_count == UINT32_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "the lock has been acquired too often");
    entry->hold_count++;
    entry->is_left_behind = entry->is_left_behind && self->is_abandoned;
    return LK_ENTRY_AGAIN;
}

/* Called with the mutex held: of a lease that others have been let past. */
static int overdue_again(const struct lk_entry *entry, uint64_t owner,
                         sqlock_error *err)
{
    return lk_error(err, lk_overdue_of(entry, owner)->lost,
                    "the lease of this lock is over: release it first");
}

/* Called with the lock's mutex held: whoever cancels the waiter finds it there;
 * false: it was cancelled before. */
static bool may_queue(struct lk_waiter *self, struct lk_entry *entry)
{
    bool cancelled;

    pthread_mutex_lock(&self->mutex);
    self->queued_at = entry;
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
static int not_in_time(const struct lk_entry *entry,
                       const struct lk_waiter *self, sqlock_error *err)
{
    if (entry->outage == 0)
        return lk_not_in_time(self->wait_ms, err);
    return lk_error(err, entry->outage,
                    "%s: another thread of this process waits for it, with the "
                    "turn at this lock",
                    sqlock_strerror(entry->outage));
}

/* Called with the mutex held: whether a handle that owns is used by two at a
 * time. */
static bool is_here_already(const struct lk_entry *entry,
                            const struct lk_waiter *self)
{
    return entry->store->options.ownership == SQLOCK_OWNED_BY_HANDLE &&
           ((entry->turn != NULL && entry->turn->owner == self->owner) ||
            lk_fifo_has_waiters(&entry->fifo, self->owner));
}

/* Called with the mutex held: what there is to do for one who was called so. */
static int step_in(struct lk_entry *entry, struct lk_waiter *self,
                   enum lk_wake_reason reason, sqlock_error *err)
{
    if (reason == LK_WAKE_GRANTED)
        return LK_ENTRY_GRANTED;
    if (reason == LK_WAKE_CANCELED)
        return lk_canceled(err);
    if (reason == LK_WAKE_NONE)
        return not_in_time(entry, self, err);
    if (reason != LK_WAKE_TURN && lk_is_owned_by(entry, self->owner))
        return enter_again(entry, self, err);
    if (reason != LK_WAKE_TURN && lk_overdue_of(entry, self->owner) != NULL)
        return overdue_again(entry, self->owner, err);
    if (reason != LK_WAKE_TURN && is_here_already(entry, self))
        return twice(err);
    if (lk_fifo_is_empty(&entry->fifo) && lk_is_overdue(entry))
        (void)lk_set_aside(entry);
    if (reason == LK_WAKE_TURN || entry->phase == LK_FREE) {
        entry->phase = LK_BUSY;
        entry->turn = self;
        entry->is_left_behind = self->is_abandoned;
        return LK_ENTRY_CLAIM;
    }
    if (self->wait_ms == 0 || (entry->outage != 0 && is_hasty(self)))
        return not_in_time(entry, self, err);
    return LK_ENTRY_SUSPENDED;
}

/* Called with the mutex held: who is first in the queue goes past a holder
 * whose lease is over. */
static bool goes_past(struct lk_entry *entry, struct lk_waiter *self)
{
    if (entry->fifo.first != self || !lk_is_overdue(entry) ||
        !lk_set_aside(entry))
        return false;
    lk_fifo_unlink(&entry->fifo, self);
    self->reason = LK_WAKE_RETRY;
    return true;
}

/* Called with the mutex held: at the end of the queue until called or the
 * deadline; who is being served then waits for what comes of it. */
static enum lk_wake_reason wait_in_queue(struct lk_entry *entry,
                                         struct lk_waiter *self)
{
    lk_fifo_append(&entry->fifo, self);
    while (self->reason == LK_WAKE_NONE && !goes_past(entry, self)) {
        if (self->is_granting) {
            lk_fifo_wait(&entry->mutex, self, LK_NEVER);
            continue;
        }
        if (sqlock_monotonic_ns() >= self->deadline_ns) {
            lk_fifo_unlink(&entry->fifo, self);
            break;
        }
        lk_fifo_wait(&entry->mutex, self,
                     lk_sooner(self->deadline_ns, lk_overdue_at(entry)));
    }
    return self->reason;
}

/* Called with the mutex held: go on from there, waiting as often as need be. */
static int step_on(struct lk_entry *entry, struct lk_waiter *self,
                   enum lk_wake_reason reason, sqlock_error *err)
{
    int rc = step_in(entry, self, reason, err);

    while (rc == LK_ENTRY_SUSPENDED) {
        reason = LK_WAKE_CANCELED;
        if (may_queue(self, entry)) {
            if (self->on_wake != NULL) {
                lk_fifo_append(&entry->fifo, self);
                return rc;
            }
            reason = wait_in_queue(entry, self);
        }
        leave_queue(self);
        rc = step_in(entry, self, reason, err);
    }
    return rc;
}

/* Wait for the threads of this process that came before. */
int lk_enter(struct lk_entry *entry, struct lk_waiter *self, sqlock_error *err)
{
    int rc;

    pthread_mutex_lock(&entry->mutex);
    rc = step_on(entry, self, LK_WAKE_RETRY, err);
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}

int lk_enter_on(struct lk_entry *entry, struct lk_waiter *self,
                sqlock_error *err)
{
    bool is_late = sqlock_monotonic_ns() >= self->deadline_ns;
    int rc = LK_ENTRY_SUSPENDED;

    pthread_mutex_lock(&entry->mutex);
    if (self->is_queued && !goes_past(entry, self) && is_late)
        lk_fifo_unlink(&entry->fifo, self);
    /* Who is served has left the queue and is not called yet. */
    if (self->reason != LK_WAKE_NONE ||
        (is_late && !self->is_queued && !self->is_granting)) {
        leave_queue(self);
        rc = step_on(entry, self, self->reason, err);
    }
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}

int64_t lk_suspended_until(struct lk_entry *entry, const struct lk_waiter *self)
{
    int64_t until_ns = self->deadline_ns;

    if (self->paused_until_ns != 0)
        return self->paused_until_ns;
    pthread_mutex_lock(&entry->mutex);
    if (self->is_queued)
        until_ns = lk_sooner(until_ns, lk_overdue_at(entry));
    else if (self->is_granting && self->reason == LK_WAKE_NONE)
        until_ns = LK_NEVER;
    pthread_mutex_unlock(&entry->mutex);
    return until_ns;
}

void lk_note_outage(struct lk_entry *entry, int rc)
{
    struct lk_waiter *waiter;
    struct lk_waiter *next;

    if (rc == SQLOCK_EUNCERTAIN) /* nothing of the others was sent */
        rc = SQLOCK_EUNREACHABLE;
    pthread_mutex_lock(&entry->mutex);
    entry->outage = rc;
    for (waiter = rc != 0 ? entry->fifo.first : NULL; waiter != NULL;
         waiter = next) {
        next = waiter->next;
        if (!is_hasty(waiter))
            continue;
        lk_fifo_unlink(&entry->fifo, waiter);
        lk_fifo_wake(waiter, LK_WAKE_RETRY);
    }
    pthread_mutex_unlock(&entry->mutex);
}

/* Called with the mutex held. */
uint64_t lk_hold(struct lk_entry *entry, const struct lk_lease *lease,
                 const sqlock_acquire_options *options, uint64_t owner)
{
    entry->phase = LK_OCCUPIED;
    entry->turn = NULL;
    entry->outage = 0;
    entry->owner = owner;
    entry->grant++;
    entry->hold_count = 1;
    memcpy(entry->client_id, lease->client_id, sizeof entry->client_id);
    entry->place = lease->place;
    entry->token = lease->token;
    entry->ttl_ms = lease->ttl_ms;
    entry->cap_ms = lease->cap_ms;
    entry->is_claim_late = lease->is_claim_late;
    entry->deadline_boot_ns = lease->deadline_boot_ns;
    entry->renewals = NULL; /* those of another lease do not matter */
    entry->lost = 0;
    entry->is_to_be_told = options->on_lost != NULL;
    entry->acquired_boot_ns = lk_boottime_ns();
    if (entry->store->options.ownership == SQLOCK_OWNED_BY_REGISTRY)
        lk_fifo_wake_all(&entry->fifo, 0, LK_WAKE_RETRY); /* it is theirs too */
    return entry->grant;
}

/* Called with the mutex held. */
void lk_copy_lease(const struct lk_entry *entry, struct lk_lease *out)
{
    memset(out, 0, sizeof *out);
    out->key = entry->key;
    out->ttl_ms = entry->ttl_ms;
    out->cap_ms = entry->cap_ms;
    out->is_claim_late = entry->is_claim_late;
    out->place = entry->place;
    out->token = entry->token;
    out->deadline_boot_ns = entry->deadline_boot_ns;
    memcpy(out->client_id, entry->client_id, sizeof out->client_id);
}

int lk_not_owner(sqlock_error *err)
{
    return lk_error(err, SQLOCK_EOWNER, "the caller does not own this lock");
}

/* Called with the mutex held: the same of a lease that was set aside. */
static int begin_overdue(struct lk_entry *entry, struct lk_overdue *overdue,
                         struct lk_lease *lease, int *lost)
{
    if (--overdue->hold_count > 0)
        return 0;
    *lease = overdue->lease;
    *lost = overdue->lost;
    lk_overdue_end(entry, overdue);
    return LK_RELEASE_OVERDUE;
}

/* Count one less.  0: nested, all done; 1: the outermost one, phase LK_BUSY. */
int lk_begin_release(struct lk_entry *entry, uint64_t owner,
                     struct lk_lease *lease, uint64_t *grant, int *lost,
                     sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&entry->mutex);
    if (!lk_is_owned_by(entry, owner)) {
        struct lk_overdue *overdue = lk_overdue_of(entry, owner);

        if (overdue != NULL)
            *grant = overdue->grant;
        rc = overdue != NULL ? begin_overdue(entry, overdue, lease, lost)
                             : lk_not_owner(err);
    } else if (entry->hold_count > 1) {
        entry->hold_count--;
    } else if (entry->guards > 0) {
        rc = lk_error(err, SQLOCK_EINUSE,
                      "an open transaction guards this lock: end it first");
    } else {
        lk_copy_lease(entry, lease);
        *lost = entry->lost;
        *grant = entry->grant;
        entry->phase = LK_BUSY;
        rc = 1;
    }
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}

void lk_end_release(struct lk_entry *entry)
{
    pthread_mutex_lock(&entry->mutex);
    entry->hold_count = 0;
    entry->lost = 0;
    entry->token = 0;
    lk_leave(entry);
    pthread_mutex_unlock(&entry->mutex);
}

/* A hand-off is not for a lease that may be over, nor once too often in a row:
 * other processes wait as well. */
struct lk_waiter *lk_begin_hand_off(struct lk_entry *entry)
{
    uint32_t limit = entry->store->options.handoff_limit;
    struct lk_waiter *next = NULL;

    pthread_mutex_lock(&entry->mutex);
    if (entry->handoffs < limit && !lk_peers_are_due(entry) &&
        !lk_fifo_is_empty(&entry->fifo) && entry->fifo.first->options != NULL &&
        lk_remaining_ns(entry) > 0) {
        next = lk_fifo_take(&entry->fifo);
        next->is_granting = true;
        entry->turn = next; /* who cancels it finds it there */
        entry->is_left_behind = entry->is_left_behind && next->is_abandoned;
    }
    pthread_mutex_unlock(&entry->mutex);
    return next;
}

void lk_end_hand_off(struct lk_entry *entry, struct lk_waiter *next,
                     const struct lk_lease *lease)
{
    pthread_mutex_lock(&entry->mutex);
    entry->is_left_behind = next->is_abandoned;
    if (lease != NULL) {
        entry->handoffs++;
        next->grant = lk_hold(entry, lease, next->options, next->owner);
    } else {
        entry->handoffs = 0;
        entry->hold_count = 0;
        entry->lost = 0;
        entry->token = 0;
    }
    lk_fifo_wake(next, lease != NULL ? LK_WAKE_GRANTED : LK_WAKE_TURN);
    pthread_mutex_unlock(&entry->mutex);
}

void lk_abandon_entry(struct lk_entry *entry, struct lk_waiter *self)
{
    struct lk_overdue *overdue;

    pthread_mutex_lock(&entry->mutex);
    self->is_abandoned = true;
    overdue = lk_overdue_of(entry, self->owner);
    if (overdue != NULL)
        overdue->is_left_behind = true;
    if (entry->turn == self ||
        (entry->phase == LK_OCCUPIED && entry->owner == self->owner &&
         entry->hold_count == 1))
        entry->is_left_behind = true;
    pthread_mutex_unlock(&entry->mutex);
}

void lk_abandon_release(struct lk_entry *entry, const struct lk_lease *lease)
{
    pthread_mutex_lock(&entry->mutex);
    if (entry->phase == LK_BUSY &&
        strcmp(entry->client_id, lease->client_id) == 0)
        entry->is_left_behind =
            entry->turn == NULL || entry->turn->is_abandoned;
    pthread_mutex_unlock(&entry->mutex);
}

int lk_begin_renew(struct lk_entry *entry, uint64_t owner, uint32_t *ttl_ms,
                   struct lk_renewal *renewal, struct lk_lease *lease,
                   sqlock_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&entry->mutex);
    if (lk_overdue_of(entry, owner) != NULL)
        rc = overdue_again(entry, owner, err);
    else if (!lk_is_owned_by(entry, owner))
        rc = lk_not_owner(err);
    else if (entry->lost == SQLOCK_ELOST)
        rc = lk_error(err, SQLOCK_ELOST, "the lease of this lock is lost");
    else if (lk_remaining_ns(entry) == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease ran out before it was renewed");
    else if (entry->guards > 0)
        rc =
            lk_error(err, SQLOCK_EBUSY, "an open transaction guards this lock");
    else
        rc = lk_ttl_check(&entry->store->options, ttl_ms, *ttl_ms,
                          entry->ttl_ms, err);
    if (rc == 0) {
        lk_copy_lease(entry, lease);
        lk_renewal_begin(entry, renewal, *ttl_ms);
    }
    pthread_mutex_unlock(&entry->mutex);
    return rc;
}
