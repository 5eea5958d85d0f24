/*
 * acquire.c - taking, renewing and giving back a lock: who of this process has
 * a say, and how long to wait.  What is said to the database is in lease.c.
 *
 * A thread goes through an acquisition in one go, asleep where there is nothing
 * to do; a request (request.c) leaves it there, suspended, and goes on later.
 * While the database is away, both make attempt after attempt (patience.c).
 */
#include "locks/acquire.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "locks/entry.h"
#include "locks/overdue.h"
#include "locks/peers.h"
#include "locks/wait.h"

/* After one that met others who wait, or overtook them, so many acquisitions go
 * to their queue first: a releaser does not overtake those it has just
 * woken. */
#define QUEUE_FIRST 16

/* Before the first claim: what is known to be taken is waited for. */
static int wait_first(struct lk_acquisition *a, sqlock_error *err)
{
    sqlock_lock *lock = a->lock;
    int rc = 0;

    if (lock->store->options.observe_before_steal)
        return lk_wait_for_row(lock, &a->self, err);
    /* Peers have their chance while others of ours wait behind this one. */
    if ((lock->queue_first > 0 || lk_peers_are_due(lock)) &&
        a->self.wait_ms != 0 && lk_queue_is_there(&a->wait)) {
        if (lock->queue_first > 0)
            lock->queue_first--;
        rc = lk_queue_await(&a->wait, err);
        if (rc == 0 && !a->wait.has_turn) {
            lock->is_queue_stalled = true;
            lock->queue_first = 0;
        }
    }
    return rc;
}

/* Who overtook others who wait goes behind them the next time; not behind one
 * who has the queue lock for other reasons. */
static void note_contention(const struct lk_acquisition *a)
{
    sqlock_lock *lock = a->lock;

    if (!a->lease.is_contended)
        lock->is_queue_stalled = false;
    else if (!a->wait.has_turn && !lock->is_queue_stalled)
        lock->queue_first = QUEUE_FIRST;
}

/* Where nobody waits for the thread, or none at all, peers get their chance
 * from the others. */
static bool may_pause(const struct lk_acquisition *a)
{
    return a->self.wait_ms != 0 && !a->self.may_not_block;
}

static int claim_in_turn(struct lk_acquisition *a, sqlock_error *err)
{
    sqlock_lock *lock = a->lock;
    struct lk_waiter *self = &a->self;
    bool was_refused = false;
    int rc = self->is_polling ? lk_wait_for_row(lock, self, err)
                              : wait_first(a, err);

    while (rc == 0) {
        lk_peers_note(lock, &self->subscription.seen);
        if (self->wait_ms != 0 && lk_waiter_is_cancelled(self))
            return lk_canceled(err);
        if (may_pause(a) && lk_peers_are_due(lock)) {
            rc = lk_peers_wait(lock, self, err);
            if (rc < 0)
                return rc;
        }
        rc = lk_lease_claim(lock->store, &a->lease, err);
        if (rc == 0) {
            note_contention(a);
            lk_peers_granted(lock, &a->lease, was_refused);
        }
        if (rc != SQLOCK_EBUSY || self->wait_ms == 0)
            return rc;
        lk_patience_end(&a->patience, lock);
        was_refused = true;
        lk_queue_refused(&a->wait);
        lock->queue_first = QUEUE_FIRST;
        /* A row that a transaction keeps locked may look free all the time. */
        if (sqlock_monotonic_ns() >= self->deadline_ns)
            return lk_not_in_time(self->wait_ms, err);
        rc = lk_queue_await(&a->wait, err);
    }
    return rc;
}

/* The options of this call in `complete`, its TTL filled in. */
int lk_check_acquire(const sqlock_lock *lock, int64_t wait_ms,
                     const sqlock_acquire_options *options,
                     sqlock_acquire_options *complete, sqlock_error *err)
{
    int rc;

    memset(complete, 0, sizeof *complete);
    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    if (wait_ms < SQLOCK_FOREVER)
        return lk_error(err, SQLOCK_EINVAL,
                        "wait_ms is %lld: use 0, a time in ms, or "
                        "SQLOCK_FOREVER",
                        (long long)wait_ms);
    if (options != NULL) {
        if (options->size < sizeof options->size ||
            options->size > sizeof *options)
            return lk_error(err, SQLOCK_EINVAL,
                            "sqlock_acquire_options.size is %zu: begin with "
                            "SQLOCK_ACQUIRE_INIT",
                            options->size);
        memcpy(complete, options, options->size);
    }
    return lk_ttl_check(&lock->store->options, &complete->ttl_ms,
                        complete->ttl_ms, lock->store->options.ttl_ms, err);
}

/* Attempt by attempt while the database is away, as long as the caller
 * waits. */
static int claim_patiently(struct lk_acquisition *a, sqlock_error *err)
{
    for (;;) {
        int rc = lk_patience_await(&a->self, err);

        if (rc == 0)
            rc = claim_in_turn(a, err);
        if (rc == LK_SUSPENDED)
            return rc;
        lk_queue_finish(&a->wait, &a->lease.place, rc);
        if (!lk_patience_pause(&a->patience, a->lock, &a->self, rc))
            return lk_patience_result(&a->self, &a->lease, rc, err);
        lk_queue_begin(&a->wait, a->lock, &a->self);
    }
}

/* The lock's phase is LK_BUSY, for the caller: take the row. */
static int take(struct lk_acquisition *a, sqlock_error *err)
{
    sqlock_lock *lock = a->lock;
    int rc;

    if (!a->has_turn) { /* it begins */
        a->has_turn = true;
        lk_clear_aside(lock);
        a->lease = (struct lk_lease){
            .key = lock->key,
            .name = lock->name,
            .ttl_ms = a->options.ttl_ms,
            .is_left_free = lock->is_left_free,
            .asked_ns = a->self.asked_ns,
        };
        if (lock->store->options.observe_before_steal)
            a->lease.observed = &a->self.subscription.seen;
        lk_queue_begin(&a->wait, lock, &a->self);
    }
    rc = claim_patiently(a, err);
    if (rc == LK_SUSPENDED)
        return rc;

    a->has_turn = false;
    if (a->lease.is_in_doubt)
        lk_resolver_add_claim(lock->store, &a->lease, lk_boottime_ns());
    lock->is_left_free = false;
    pthread_mutex_lock(&lock->mutex);
    if (rc == 0)
        lk_hold(lock, &a->lease, &a->options, a->self.owner);
    else
        lk_leave(lock);
    pthread_mutex_unlock(&lock->mutex);
    return rc;
}

/* From this lease to that of the thread that is next, in one statement: true
 * when it was done, or *rc says that the release is done all the same. */
static bool hand_off_lease(sqlock_lock *lock, const struct lk_lease *lease,
                           const struct lk_waiter *next, struct lk_lease *given,
                           int *rc, sqlock_error *err)
{
    memset(given, 0, sizeof *given);
    given->key = lock->key;
    given->name = lock->name;
    given->ttl_ms = next->options->ttl_ms;
    *rc = lk_lease_hand_off(lock->store, lease, given, err);
    return *rc == 0 || *rc == SQLOCK_ETIMEDOUT;
}

static int lost_before(sqlock_error *err)
{
    return lk_error(err, SQLOCK_ELOST,
                    "the lease was lost before the release: what the lock "
                    "protects may be compromised");
}

/* The end of a lease that nobody was there to take over, or whose hand-off did
 * not come about. */
static int release_row(sqlock_lock *lock, struct lk_lease *lease, int lost,
                       sqlock_error *err)
{
    int rc = lk_lease_release(lock->store, lease, err);

    lock->is_left_free = rc == 0;
    /* Given up by ourselves, it may well have been ours still. */
    if (lost == SQLOCK_ELOST)
        rc = lost_before(err);
    else if (lost == SQLOCK_EEXPIRED && rc == 0)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease had run out before the release; nobody else "
                      "has had the lock");
    return rc;
}

/* As a hand-off left it; the lock goes to the next thread whatever the result.
 */
static int hand_off(sqlock_lock *lock, struct lk_lease *lease,
                    struct lk_waiter *next, sqlock_error *err)
{
    struct lk_lease given;
    int handed;
    int rc = 0;

    if (!hand_off_lease(lock, lease, next, &given, &handed, err)) {
        rc = release_row(lock, lease, 0, err);
        /* It may have been carried out after all, by the late statement. */
        if (handed == SQLOCK_EUNCERTAIN && rc == SQLOCK_ELOST)
            rc = lk_error(err, SQLOCK_EUNCERTAIN,
                          "the connection broke under the release, and the row "
                          "does not say whether the lock had been lost before");
    }
    lk_end_hand_off(lock, next, handed == 0 ? &given : NULL);
    return rc;
}

int lk_end_lease(sqlock_lock *lock, struct lk_lease *lease, int lost,
                 sqlock_error *err)
{
    struct lk_waiter *next;
    int rc;

    lk_end_care(lock);
    lk_peers_charge(lock);
    next = lk_begin_hand_off(lock);
    if (next != NULL)
        return hand_off(lock, lease, next, err);
    rc = release_row(lock, lease, lost, err);
    lk_end_release(lock);
    return rc;
}

int lk_end_overdue(sqlock_lock *lock, struct lk_lease *lease, int lost,
                   sqlock_error *err)
{
    int rc = lk_lease_release(lock->store, lease, err);

    return lost == SQLOCK_ELOST ? lost_before(err) : rc;
}

int lk_give_back(sqlock_lock *lock, uint64_t owner, sqlock_error *err)
{
    struct lk_lease lease;
    int lost = 0;
    int rc = lk_begin_release(lock, owner, &lease, &lost, err);

    if (rc == LK_RELEASE_OVERDUE)
        return lk_end_overdue(lock, &lease, lost, err);
    return rc <= 0 ? rc : lk_end_lease(lock, &lease, lost, err);
}

int lk_acquisition_begin(struct lk_acquisition *a, sqlock_lock *lock,
                         int64_t wait_ms, const sqlock_acquire_options *options,
                         sqlock_error *err)
{
    int rc;

    memset(a, 0, sizeof *a);
    rc = lk_check_acquire(lock, wait_ms, options, &a->options, err);
    if (rc < 0)
        return rc;
    a->lock = lock;
    lk_waiter_init(&a->self, wait_ms, &a->options);
    return 0;
}

int lk_acquisition_enter(struct lk_acquisition *a, sqlock_error *err)
{
    int rc = lk_canceller_watch(&a->lock->registry->canceller, &a->self,
                                a->options.cancel_fd, err);

    return rc < 0 ? rc : lk_enter(a->lock, &a->self, err);
}

/* rc as lk_enter() and lk_enter_on() give it. */
int lk_acquisition_go_on(struct lk_acquisition *a, int rc, sqlock_error *err)
{
    if (rc < 0)
        return rc;
    if (rc == LK_ENTRY_AGAIN)
        return 0;
    if (rc == LK_ENTRY_SUSPENDED)
        return LK_SUSPENDED;
    if (rc == LK_ENTRY_CLAIM)
        rc = take(a, err);
    else
        rc = 0;
    if (rc != 0)
        return rc;
    rc = lk_begin_care(a->lock, &a->options, err);
    if (rc < 0) /* not held as it was asked for */
        (void)lk_give_back(a->lock, a->self.owner, NULL);
    return rc;
}

void lk_acquisition_end(struct lk_acquisition *a)
{
    lk_canceller_forget(&a->lock->registry->canceller, &a->self);
    lk_waiter_clear(&a->self);
}

int sqlock_acquire(sqlock_lock *lock, int64_t wait_ms,
                   const sqlock_acquire_options *options, sqlock_error *err)
{
    struct lk_acquisition a;
    int rc;

    rc = lk_acquisition_begin(&a, lock, wait_ms, options, err);
    if (rc < 0)
        return rc;
    rc = lk_acquisition_go_on(&a, lk_acquisition_enter(&a, err), err);
    lk_acquisition_end(&a);
    return rc;
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    int rc = lk_lock_check(lock, err);

    return rc < 0 ? rc : lk_give_back(lock, lk_thread_id(), err);
}

int sqlock_renew(sqlock_lock *lock, uint32_t ttl_ms, sqlock_error *err)
{
    struct lk_renewal renewal = {0};
    struct lk_lease lease = {0};
    int rc;

    rc = lk_lock_check(lock, err);
    if (rc < 0)
        return rc;
    rc = lk_begin_renew(lock, &ttl_ms, &renewal, &lease, err);
    if (rc < 0)
        return rc;
    if (ttl_ms < lease.ttl_ms) /* it ends sooner from here on */
        lk_expiry_wake(&lock->registry->expiry);
    rc = lk_lease_renew(lock->store, &lease, ttl_ms, err);

    pthread_mutex_lock(&lock->mutex);
    (void)lk_renewal_end(lock, &renewal, &lease, rc, lk_boottime_ns());
    pthread_mutex_unlock(&lock->mutex);
    lk_expiry_wake(&lock->registry->expiry);
    if (ttl_ms != renewal.old_ttl_ms || renewal.others_ns != LK_NEVER)
        lk_renewer_wake(&lock->registry->renewer); /* due sooner than it was */
    return rc;
}
