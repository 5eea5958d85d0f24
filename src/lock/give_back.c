/*
 * release.c - release leases, to the next waiter or to the database (release.h)
 */
#include "lock/give_back.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lock/peers.h"

int lk_release_begin(struct lk_release *release, struct lk_store *store,
                     size_t count, sqlock_error *err)
{
    memset(release, 0, sizeof *release);
    release->store = store;
    release->count = count;
    release->parts = &release->one;
    release->batch.items = &release->one_item;
    if (count > 1) {
        release->parts = calloc(count, sizeof *release->parts);
        release->batch.items = calloc(count, sizeof *release->batch.items);
    }
    if (release->parts != NULL && release->batch.items != NULL)
        return 0;
    lk_release_end(release);
    return lk_error_nomem(err);
}

void lk_release_end(struct lk_release *release)
{
    if (release->parts == &release->one)
        return;
    free(release->parts);
    free(release->batch.items);
}

/* --- to the next waiter of this process --- */

/* Hand the lease off to that part, in one statement.  Return 0 if the old lease
 * has ended; otherwise as lk_lease_hand_off(): the old lease is still to be
 * released. */
static int hand_off(struct lk_release_part *part, struct lk_part *next)
{
    struct lk_slot *slot = part->slot;
    struct lk_lease given = {
        .key = slot->key,
        .name = slot->name,
        .ttl_ms = next->waiter->options->ttl_ms,
    };
    int rc = lk_lease_hand_off(slot->store, &part->lease, &given);

    if (rc != 0 && rc != SQLOCK_ETIMEDOUT)
        return rc;
    if (rc == 0)
        lk_end_hand_off(next, &given);
    else /* handed off, but already over, and released */
        lk_end_release(slot);
    part->state = LK_RELEASE_OVER;
    return 0;
}

/* Hand off each lease for which there is a next waiter, each in a statement of
 * its own.  After an outage no more are tried: the rest is released
 * together. */
static void hand_off_all(struct lk_release *release)
{
    bool is_outage = false;

    for (size_t i = 0; i < release->count; i++) {
        struct lk_release_part *part = &release->parts[i];
        struct lk_part *next;
        int rc;

        if (part->state != LK_RELEASE_TURN)
            continue;
        lk_peers_charge(part->slot);
        if (is_outage)
            continue;
        next = lk_begin_hand_off(part->slot);
        if (next == NULL)
            continue;
        rc = hand_off(part, next);
        part->is_handed_off_maybe = rc == SQLOCK_EUNCERTAIN;
        is_outage = lk_is_outage(rc);
    }
}

/* --- to the database --- */

/* Combine the result of the release with what was known before. */
static int outcome(const struct lk_release_part *part, int rc)
{
    if (part->lost == SQLOCK_ELOST)
        return SQLOCK_ELOST;
    /* This process had given the lease up, but no other has taken it. */
    if (part->lost == SQLOCK_EEXPIRED && rc == 0)
        return SQLOCK_EEXPIRED;
    /* The row may have been lost to our own hand-off, carried out late. */
    if (part->is_handed_off_maybe && rc == SQLOCK_ELOST)
        return SQLOCK_EUNCERTAIN;
    return rc;
}

/* Note the result of the release, and give the turn to the next waiter. */
static void end_part(struct lk_release_part *part, int rc)
{
    if (part->state == LK_RELEASE_TURN)
        lk_end_release(part->slot);
    part->rc = outcome(part, rc);
    if (part->lost == 0)
        lk_count_over(&part->slot->store->db.stats, part->slot->key, part->rc);
    part->state = LK_RELEASE_OVER;
}

/* Release the remaining leases in one statement, and set each part's rc.
 * Return as lk_batch_release(). */
static int release_rest(struct lk_release *release, sqlock_error *err)
{
    struct lk_batch *batch = &release->batch;
    int rc;

    batch->count = 0;
    for (size_t i = 0; i < release->count; i++) {
        struct lk_release_part *part = &release->parts[i];

        if (part->state == LK_RELEASE_OVER)
            continue;
        part->lease.is_for_peers = lk_peers_are_due(part->slot);
        batch->items[batch->count++] =
            (struct lk_item){.lease = part->lease, .owner = part};
    }
    if (batch->count == 0)
        return 0;
    batch->deadline_ns = lk_store_deadline(release->store);
    rc = lk_batch_release(release->store, batch, err);
    for (size_t i = 0; i < batch->count; i++)
        end_part(batch->items[i].owner, rc < 0 ? rc : batch->items[i].rc);
    return rc;
}

int lk_release_run(struct lk_release *release, sqlock_error *err)
{
    int answer;

    hand_off_all(release);
    answer = release_rest(release, err);
    for (size_t i = 0; i < release->count; i++) {
        int rc = release->parts[i].rc;

        if (rc < 0)
            return rc == answer ? rc : lk_release_error(rc, err);
    }
    return 0;
}
