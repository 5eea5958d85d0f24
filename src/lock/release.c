/*
 * release.c - release leases, to the next waiter or to the database (release.h)
 */
#include "lock/release.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "lock/call.h"
#include "lock/care.h"
#include "sqlock/tx.h"

/* --- undoing an acquire; the caller holds the mutex --- */

/* Undo the last acquire of a lease that a transaction guards, so that
 * lk_guard_end() releases it. */
static void owe(struct lk_hold *hold)
{
    hold->count = 0;
    hold->is_left_behind = true;
    hold->is_to_be_told = false;
    hold->asked.on_lost = NULL;
    lk_care_end(hold);
}

/* The share of the hold is released: the leases of others that had it are over,
 * and nothing is left for them to release. */
static void end_share(const struct lk_hold *hold)
{
    struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        if (other == hold || other->state != LK_HOLD_HELD ||
            !lk_is_same_lease(other, hold))
            continue;
        if (other->lost == 0)
            (void)lk_lose(other, SQLOCK_EEXPIRED);
        other->has_no_share = true;
    }
}

/* Leave the session of the share, if it has one, to another that has it. */
static void leave_place(struct lk_hold *hold)
{
    struct lk_hold *other;

    DL_FOREACH(hold->slot->holds, other)
    {
        if (other == hold || other->state != LK_HOLD_HELD ||
            !lk_is_same_lease(other, hold) ||
            other->lease.place.connection != NULL)
            continue;
        other->lease.place = hold->lease.place;
        hold->lease.place = (struct lk_place){0};
        return;
    }
}

/* Others of this process rely on the share of the part, or it is gone: nothing
 * is sent. */
static int leave_share(struct lk_release_part *part)
{
    struct lk_hold *hold = part->hold;
    int rc = hold->lost;

    if (hold->lease.place.connection != NULL)
        leave_place(hold);
    if (rc == 0) {
        rc = lk_remaining_ns(hold) == 0 ? SQLOCK_EEXPIRED : 0;
        lk_count_over(&part->slot->store->db.stats, part->slot->key, rc);
    }
    part->is_handed_off = true;
    lk_hold_end(hold);
    return rc;
}

/* Undo one acquire; the last one begins the release.  Return 0 or EINUSE. */
static int undo_one(struct lk_release_part *part, struct lk_hold *hold,
                    bool may_owe, sqlock_error *err)
{
    int rc;

    if (hold->count > 1) {
        hold->count--;
        return 0;
    }
    rc = lk_care_check(hold, err);
    if (rc < 0)
        return rc;
    if (hold->guards > 0 && !may_owe)
        return lk_error(err, SQLOCK_EINUSE,
                        "an open transaction guards this lock: end it first");
    if (hold->guards > 0) {
        owe(hold);
        return 0;
    }
    hold->pins++;
    part->hold = hold;
    if (hold->state == LK_HOLD_HELD) {
        lk_hold_begin_release(hold);
        if (hold->has_no_share || lk_is_joined(hold))
            rc = leave_share(part);
        else
            end_share(hold);
    } else {
        lk_count(&part->slot->store->db.stats, LK_COUNT_RELEASED);
        lk_hold_end(hold);
    }
    lk_care_end(hold);
    return rc;
}

static struct lk_hold *find(const struct lk_slot *slot,
                            const struct lk_undo *undo)
{
    return undo->grant != 0 ? lk_hold_by_grant(slot, undo->grant)
                            : lk_hold_to_release(slot, undo->owner);
}

/* --- beginning --- */

/* Begin a release of one lock, which needs no memory. */
static void begin_one(struct lk_release *release, struct lk_set *set)
{
    memset(release, 0, sizeof *release);
    release->set = set;
    release->parts = &release->one;
    release->batch.items = &release->one_item;
}

int lk_release_begin(struct lk_release *release, struct lk_set *set,
                     sqlock_error *err)
{
    begin_one(release, set);
    if (set->count == 1)
        return 0;
    release->parts = calloc(set->count, sizeof *release->parts);
    release->batch.items = calloc(set->count, sizeof *release->batch.items);
    if (release->parts != NULL && release->batch.items != NULL)
        return 0;
    free(release->parts);
    free(release->batch.items);
    return lk_error_nomem(err);
}

void lk_release_add(struct lk_release *release, size_t i,
                    const struct lk_undo *undo, sqlock_error *err)
{
    struct lk_release_part *part = &release->parts[i];
    sqlock_lock *lock = release->set->members[i].lock;
    struct lk_hold *hold;

    part->slot = lock->slot;
    pthread_mutex_lock(&lk_mutex);
    hold = find(part->slot, undo);
    part->rc = hold != NULL ? undo_one(part, hold, undo->may_owe, err)
                            : lk_not_owner(err);
    pthread_mutex_unlock(&lk_mutex);
    release->set->members[i].rc = part->rc;
}

/* --- what it comes to --- */

int lk_release_outcome(const struct lk_hold *hold, int rc)
{
    if (hold->lost == SQLOCK_ELOST)
        return SQLOCK_ELOST;
    /* This process had given the lease up, but no other has taken it. */
    return hold->lost == SQLOCK_EEXPIRED && rc == 0 ? SQLOCK_EEXPIRED : rc;
}

/* Combine the result of the release with what was known before. */
static int outcome(const struct lk_release_part *part, int rc)
{
    rc = lk_release_outcome(part->hold, rc);
    /* The row may have been lost to our own hand-off, carried out late. */
    return part->is_handed_off_maybe && rc == SQLOCK_ELOST &&
                   part->hold->lost != SQLOCK_ELOST
               ? SQLOCK_EUNCERTAIN
               : rc;
}

/* --- to the next waiter of this process --- */

static struct lk_part *choose(struct lk_slot *slot)
{
    struct lk_part *next;

    pthread_mutex_lock(&lk_mutex);
    next = lk_choose(slot);
    pthread_mutex_unlock(&lk_mutex);
    return next;
}

/* The old lease has ended: make the next part the holder of the new one, or
 * give it the turn if that one (NULL) is over. */
static void pass_on(struct lk_hold *old, struct lk_part *next,
                    const struct lk_lease *given)
{
    struct lk_slot *slot = old->slot;

    pthread_mutex_lock(&lk_mutex);
    lk_hold_end(old);
    if (given != NULL) {
        lk_count(&slot->store->db.stats, LK_COUNT_HANDED_OFF);
        lk_slot_grant(next, given);
    } else {
        lk_pass_turn(slot);
    }
    pthread_mutex_unlock(&lk_mutex);
}

/* Hand the lease off to that part, in one statement.  Return 0 if the old lease
 * has ended; otherwise as lk_lease_hand_off(): the old lease is still to be
 * released. */
static int hand_off(struct lk_release_part *part, struct lk_part *next)
{
    struct lk_slot *slot = part->slot;
    struct lk_lease given = {
        .key = slot->key,
        .name = slot->name,
        .owner = next->marked_as,
        .ttl_ms = next->waiter->options->ttl_ms,
        /* others may have waited in the table for as long as the hand-offs */
        .began_ns = part->hold->lease.began_ns,
    };
    int rc = lk_lease_hand_off(slot->store, &part->hold->lease, &given);

    if (rc != 0 && rc != SQLOCK_ETIMEDOUT)
        return rc;
    /* after ETIMEDOUT it was handed off, but already over, and released */
    pass_on(part->hold, next, rc == 0 ? &given : NULL);
    part->is_handed_off = true;
    part->rc = outcome(part, 0);
    return 0;
}

/* Hand off each lease for which there is a next waiter, each in a statement of
 * its own.  After an outage no more are tried: the rest is released
 * together. */
static void hand_off_all(struct lk_release *release)
{
    bool is_outage = false;

    for (size_t i = 0; i < release->set->count; i++) {
        struct lk_release_part *part = &release->parts[i];
        struct lk_part *next;
        int rc;

        if (part->hold == NULL || part->hold->state != LK_HOLD_RELEASING ||
            lk_is_share(part->hold))
            continue;
        next = is_outage ? NULL : choose(part->slot);
        if (next == NULL)
            continue;
        rc = hand_off(part, next);
        part->is_handed_off_maybe = rc == SQLOCK_EUNCERTAIN;
        is_outage = lk_is_outage(rc);
    }
}

/* --- to the database --- */

/* Note the result of the release, of which all came to `all`, and give the turn
 * to the next waiter. */
static void end_part(struct lk_release_part *part, const struct lk_item *item,
                     int all)
{
    struct lk_slot *slot = part->slot;
    int rc = all < 0 ? all : item->rc;

    pthread_mutex_lock(&lk_mutex);
    if (part->hold->state == LK_HOLD_RELEASING) {
        lk_hold_end(part->hold);
        if (!lk_is_share(part->hold)) { /* else others may have the turn */
            slot->is_unqueued = rc == 0 && item->lease.is_unqueued;
            lk_pass_turn(slot);
        }
    }
    pthread_mutex_unlock(&lk_mutex);
    part->rc = outcome(part, rc);
    part->is_told = (all < 0 || item->is_told) && part->rc == rc;
    if (part->hold->lost == 0)
        lk_count_over(&slot->store->db.stats, slot->key, part->rc);
}

/* Release the remaining leases, and set each part's rc. */
static void release_rest(struct lk_release *release, sqlock_error *err)
{
    struct lk_store *store = &release->set->registry->store;
    struct lk_batch *batch = &release->batch;
    int rc;

    for (size_t i = 0; i < release->set->count; i++) {
        struct lk_release_part *part = &release->parts[i];

        if (part->hold == NULL || part->is_handed_off)
            continue;
        batch->items[batch->count++] =
            (struct lk_item){.lease = part->hold->lease, .owner = part};
    }
    if (batch->count == 0)
        return;
    batch->deadline_ns = lk_store_deadline(store);
    rc = lk_batch_release(store, batch, err);
    for (size_t i = 0; i < batch->count; i++)
        end_part(batch->items[i].owner, &batch->items[i], rc);
}

/* Other threads may be in calls about the leases.  None begins any more, and
 * each is as long as its statements. */
static void await_calls(const struct lk_release *release)
{
    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; i < release->set->count; i++)
        if (release->parts[i].hold != NULL)
            lk_call_await(release->parts[i].hold);
    pthread_mutex_unlock(&lk_mutex);
}

/* Release all, and return the first result that is not 0. */
static int run(struct lk_release *release, sqlock_error *err)
{
    await_calls(release);
    hand_off_all(release);
    release_rest(release, err);
    for (size_t i = 0; i < release->set->count; i++) {
        const struct lk_release_part *part = &release->parts[i];

        if (part->rc < 0)
            return part->is_told ? part->rc : lk_release_error(part->rc, err);
    }
    return 0;
}

/* Report the release of a lease by an event, and before that the loss of the
 * lease if no event has told it. */
static void tell(sqlock_lock *lock, const struct lk_release_part *part)
{
    const struct lk_hold *hold = part->hold;
    int64_t token = hold->lease.token;
    bool is_over = part->rc == SQLOCK_ELOST || part->rc == SQLOCK_EEXPIRED;
    int lost = is_over ? part->rc : hold->lost;

    if (lost != 0 && !hold->is_reported)
        lk_tell(lock, SQLOCK_EVENT_LOST, token, lost);
    lk_tell(lock, SQLOCK_EVENT_RELEASED, token, part->rc);
}

int lk_release_end(struct lk_release *release, sqlock_error *err)
{
    struct lk_set *set = release->set;
    int rc = run(release, err);

    for (size_t i = 0; i < set->count; i++) {
        struct lk_release_part *part = &release->parts[i];

        set->members[i].rc = part->rc;
        set->members[i].is_told = part->is_told;
        if (part->hold == NULL)
            continue;
        tell(set->members[i].lock, part);
        pthread_mutex_lock(&lk_mutex);
        lk_hold_unpin(part->hold);
        part->hold = NULL;
        pthread_mutex_unlock(&lk_mutex);
    }
    if (release->parts != &release->one) {
        free(release->parts);
        free(release->batch.items);
    }
    /* with several locks, each member has its own result */
    return set->count == 1 ? rc : 0;
}

/* --- the calls --- */

/* Undo one acquire of each lock for the calling owner. */
static int release_set(struct lk_set *set, bool may_owe, sqlock_error *err)
{
    struct lk_release release;
    int rc = lk_release_begin(&release, set, err);

    if (rc < 0) {
        set->results = NULL; /* nothing was released: write no results */
        return rc;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct lk_undo undo = {.owner = lk_caller(set->members[i].lock),
                                     .may_owe = may_owe};

        lk_release_add(&release, i, &undo, err);
    }
    return lk_release_end(&release, err);
}

void lk_undo(sqlock_lock *lock, uint64_t grant)
{
    const struct lk_undo undo = {.grant = grant, .may_owe = true};
    struct lk_release release;
    struct lk_set set;

    lk_set_of_one(&set, lock);
    begin_one(&release, &set);
    lk_release_add(&release, 0, &undo, NULL);
    (void)lk_set_end(&set, lk_release_end(&release, NULL), NULL);
}

static int release_all(sqlock_lock *const *locks, size_t count, bool may_owe,
                       int *results, sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int before = lk_cancel_defer();
    int rc = lk_set_begin(&set, locks, count, results, &own);

    if (rc == 0)
        rc = release_set(&set, may_owe, &own);
    lk_cancel_allow(before);
    return lk_error_pass(err, &own, lk_set_end(&set, rc, &own));
}

int sqlock_release_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    return release_all(locks, count, false, results, err);
}

int sqlock_abandon_many(sqlock_lock *const *locks, size_t count, int *results,
                        sqlock_error *err)
{
    return release_all(locks, count, true, results, err);
}

int sqlock_abandon(sqlock_lock *lock, sqlock_error *err)
{
    return sqlock_abandon_many(&lock, 1, NULL, err);
}

int sqlock_release(sqlock_lock *lock, sqlock_error *err)
{
    return release_all(&lock, 1, false, NULL, err);
}
