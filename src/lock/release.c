/*
 * release.c - release leases, to the next waiter or to the database (release.h)
 */
#include "lock/release.h"

#include <utlist.h>

#include "base/error.h"
#include "base/thread.h"
#include "lock/call.h"
#include "lock/care.h"
#include "sqlock/lease.h"
#include "sqlock/many.h"

/* --- undoing an acquire; the caller holds the mutex --- */

/* Undo the last acquire of a lease that a transaction guards, so that
 * lk_guard_end() releases it. */
static void owe(struct lk_hold *hold)
{
    hold->count = 0;
    hold->is_left_behind = true;
    /* nobody waits for the news, if its release fails */
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

/* Others of this process rely on the share of the member, or it is gone:
 * nothing is sent. */
static int leave_share(struct lk_member *member)
{
    struct lk_hold *hold = member->hold;
    int rc = hold->lost;

    if (rc == 0) {
        rc = lk_remaining_ns(hold) == 0 ? SQLOCK_EEXPIRED : 0;
        lk_count_over(&member->lock->slot->store->db.stats,
                      member->lock->slot->key, rc);
    }
    member->is_handed_off = true;
    lk_hold_end(hold);
    return rc;
}

/* Undo one acquire; the last one begins the release.  Return 0 or EINUSE. */
static int undo_one(struct lk_member *member, struct lk_hold *hold,
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
    member->hold = hold;
    if (hold->state == LK_HOLD_HELD) {
        lk_hold_begin_release(hold);
        if (hold->has_no_share || lk_is_joined(hold))
            rc = leave_share(member);
        else
            end_share(hold);
    } else {
        lk_count(&member->lock->slot->store->db.stats, LK_COUNT_RELEASED);
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

void lk_release_add(struct lk_member *member, const struct lk_undo *undo,
                    sqlock_error *err)
{
    struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    hold = find(member->lock->slot, undo);
    member->rc = hold != NULL ? undo_one(member, hold, undo->may_owe, err)
                              : lk_not_owner(err);
    pthread_mutex_unlock(&lk_mutex);
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
static int outcome(const struct lk_member *member, int rc)
{
    rc = lk_release_outcome(member->hold, rc);
    /* The row may have been lost to our own hand-off, carried out late. */
    return member->is_handed_off_maybe && rc == SQLOCK_ELOST &&
                   member->hold->lost != SQLOCK_ELOST
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
static int hand_off(struct lk_member *member, struct lk_part *next)
{
    struct lk_slot *slot = member->lock->slot;
    struct lk_lease given = {
        .key = slot->key,
        .name = slot->name,
        .owner = next->marked_as,
        .asked.ttl_ms = next->waiter->options->ttl_ms,
        /* others may have waited in the table for as long as the hand-offs */
        .asked.began_ns = member->hold->lease.asked.began_ns,
    };
    int rc = lk_lease_hand_off(slot->store, &member->hold->lease, &given);

    if (rc != 0 && rc != SQLOCK_ETIMEDOUT)
        return rc;
    /* after ETIMEDOUT it was handed off, but already over, and released */
    pass_on(member->hold, next, rc == 0 ? &given : NULL);
    member->is_handed_off = true;
    member->rc = outcome(member, 0);
    return 0;
}

/* Hand off each lease for which there is a next waiter, each in a statement of
 * its own.  After an outage no more are tried: the rest is released
 * together. */
static void hand_off_all(struct lk_set *set)
{
    bool is_outage = false;

    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];
        struct lk_part *next;
        int rc;

        if (member->hold == NULL || member->hold->state != LK_HOLD_RELEASING ||
            lk_is_share(member->hold))
            continue;
        next = is_outage ? NULL : choose(member->lock->slot);
        if (next == NULL)
            continue;
        rc = hand_off(member, next);
        member->is_handed_off_maybe = rc == SQLOCK_EUNCERTAIN;
        is_outage = lk_is_outage(rc);
    }
}

/* --- to the database --- */

/* Note the result of the release, of which all came to `all`, and give the turn
 * to the next waiter. */
static void end_part(struct lk_member *member, const struct lk_item *item,
                     int all)
{
    struct lk_slot *slot = member->lock->slot;
    int rc = all < 0 ? all : item->rc;

    pthread_mutex_lock(&lk_mutex);
    if (member->hold->state == LK_HOLD_RELEASING) {
        lk_hold_end(member->hold);
        if (!lk_is_share(member->hold)) { /* else others may have the turn */
            slot->is_unqueued = rc == 0 && item->lease.believed.is_unqueued;
            lk_pass_turn(slot);
        }
    }
    pthread_mutex_unlock(&lk_mutex);
    member->rc = outcome(member, rc);
    member->is_told = (all < 0 || item->is_told) && member->rc == rc;
    if (member->hold->lost == 0)
        lk_count_over(&slot->store->db.stats, slot->key, member->rc);
}

/* Release the remaining leases, and set each member's rc. */
static void release_rest(struct lk_set *set, sqlock_error *err)
{
    struct lk_store *store = &set->registry->store;
    struct lk_batch *batch = &set->batch;
    int rc;

    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];

        if (member->hold == NULL || member->is_handed_off)
            continue;
        batch->items[batch->count++] =
            (struct lk_item){.lease = member->hold->lease, .owner = member};
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
static void await_calls(const struct lk_set *set)
{
    pthread_mutex_lock(&lk_mutex);
    for (size_t i = 0; i < set->count; i++)
        if (set->members[i].hold != NULL)
            lk_call_await(set->members[i].hold);
    pthread_mutex_unlock(&lk_mutex);
}

/* Release all, and return the first result that is not 0. */
static int run(struct lk_set *set, sqlock_error *err)
{
    await_calls(set);
    hand_off_all(set);
    release_rest(set, err);
    for (size_t i = 0; i < set->count; i++) {
        const struct lk_member *member = &set->members[i];

        if (member->rc < 0)
            return member->is_told ? member->rc
                                   : lk_release_error(member->rc, err);
    }
    return 0;
}

/* Report the release of a lease by an event, and before that the loss of the
 * lease if no event has told it. */
static void tell(const struct lk_member *member)
{
    const struct lk_hold *hold = member->hold;
    int64_t token = hold->lease.answered.token;
    bool is_over = member->rc == SQLOCK_ELOST || member->rc == SQLOCK_EEXPIRED;
    int lost = is_over ? member->rc : hold->lost;

    if (lost != 0 && !hold->is_reported)
        lk_tell(member->lock, SQLOCK_EVENT_LOST, token, lost);
    lk_tell(member->lock, SQLOCK_EVENT_RELEASED, token, member->rc);
}

int lk_release_end(struct lk_set *set, sqlock_error *err)
{
    int rc = run(set, err);

    for (size_t i = 0; i < set->count; i++) {
        struct lk_member *member = &set->members[i];

        if (member->hold == NULL)
            continue;
        tell(member);
        pthread_mutex_lock(&lk_mutex);
        lk_hold_unpin(member->hold);
        member->hold = NULL;
        pthread_mutex_unlock(&lk_mutex);
    }
    /* with several locks, each member has its own result */
    return set->count == 1 ? rc : 0;
}

/* --- the calls --- */

void lk_undo(sqlock_lock *lock, uint64_t grant)
{
    const struct lk_undo undo = {.grant = grant, .may_owe = true};
    struct lk_set set;

    lk_set_of_one(&set, lock);
    lk_release_add(&set.one, &undo, NULL);
    (void)lk_set_end(&set, lk_release_end(&set, NULL), NULL);
}

/* Undo one acquire of each lock for the calling owner. */
static int release_all(sqlock_lock *const *locks, size_t count, bool may_owe,
                       int *results, sqlock_error *err)
{
    struct lk_set set;
    sqlock_error own = {0};
    int before = lk_cancel_defer();
    int rc = lk_set_begin(&set, locks, count, results, &own);

    for (size_t i = 0; rc == 0 && i < set.count; i++) {
        const struct lk_undo undo = {.owner = lk_caller(set.members[i].lock),
                                     .may_owe = may_owe};

        lk_release_add(&set.members[i], &undo, &own);
    }
    if (rc == 0)
        rc = lk_release_end(&set, &own);
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
