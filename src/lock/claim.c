/*
 * claim.c - claim the rows of the parts that have the turn (claim.h)
 */
#include "lock/claim.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/bell.h"
#include "lease/row.h"
#include "lease/sharer.h"
#include "lock/hold.h"
#include "lock/peers.h"
#include "lock/registry.h"
#include "lock/seen.h"
#include "lock/ticket.h"

void lk_clear_aside(struct lk_slot *slot, bool is_outage)
{
    struct lk_place place;

    pthread_mutex_lock(&lk_mutex);
    place = lk_place_aside(slot);
    pthread_mutex_unlock(&lk_mutex);
    (void)lk_place_end(slot->store, &place, false, is_outage);
}

static bool has_had_none(const struct lk_store *store)
{
    return lk_stats_count(&store->db.stats, LK_COUNT_GRANTED) == 0;
}

void lk_claim_clear_aside(const struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->reach; i++)
        if (a->parts[i].state == LK_PART_TURN)
            lk_clear_aside(a->parts[i].slot, false);
}

/* Return whether the row is likely to be there, free and without tickets: this
 * process left it so; or the registry has had no lock yet, and so the program
 * may be one that is started for this lock, which it mostly finds free. */
static bool is_likely_free(const struct lk_acquisition *a,
                           const struct lk_part *part)
{
    return part->weight == 0 &&
           (part->slot->is_unqueued ||
            (has_had_none(a->store) && lk_store_has_tickets(a->store)));
}

/* Prepare the part's lease for the claim.  A claim in doubt, and that of a kept
 * row, has the same CLIENT_ID again; any other begins with an empty lease. */
static void prepare(const struct lk_acquisition *a, struct lk_part *part)
{
    struct lk_slot *slot = part->slot;

    if (part->is_kept) {
        part->lease.asked.may_wait = false;
        part->lease.asked.has_ticket = false;
        part->lease.asked.takes_bell = false;
        part->lease.believed.is_unqueued = false;
    }
    part->lease.answered.is_reserved = false;
    if (part->is_kept || part->lease.believed.fate == LK_CLAIM_IN_DOUBT)
        return;
    part->lease = (struct lk_lease){
        .key = slot->key,
        .name = slot->name,
        .owner = part->marked_as,
        .asked.ttl_ms = a->options.ttl_ms,
        .asked.weight = slot->peers.is_host ? 0 : part->weight,
        .asked.permits = part->weight > 0 ? a->options.permits : LK_NO_LIMIT,
        .asked.has_ticket = slot->ticket[0] != '\0',
        .believed.is_unqueued = is_likely_free(a, part),
        .asked.at_ns = a->self.asked_ns,
        .asked.began_ns = slot->ticket[0] != '\0'
                              ? lk_sooner(slot->began_ns, a->began_ns)
                              : a->began_ns,
    };
    slot->is_unqueued = false;
    memcpy(part->lease.client_id, slot->ticket, sizeof slot->ticket);
}

void lk_claim_collect(struct lk_acquisition *a)
{
    a->batch.count = 0;
    for (size_t i = 0; i < a->reach; i++) {
        struct lk_part *part = &a->parts[i];

        if (part->state != LK_PART_TURN)
            continue;
        prepare(a, part);
        a->batch.items[a->batch.count++] =
            (struct lk_item){.lease = part->lease, .owner = part};
    }
}

/* Where each waiter has a session of its own, let the slot have one. */
static void have_session(const struct lk_acquisition *a, struct lk_slot *slot)
{
    const sqlock_bell *bell = lk_bell_of(a->store);
    const struct lk_wish wish = {.latest_ns = lk_store_deadline(a->store)};

    if (slot->session != NULL && !lk_pool_is_usable(slot->session))
        lk_ticket_drop_session(slot);
    if (bell == NULL || !bell->is_of_one || slot->session != NULL ||
        !lk_bell_is_there(&slot->registry->bell))
        return;
    if (lk_pool_take_as(&a->store->db.waiting, &wish, &slot->session, NULL) < 0)
        slot->session = NULL;
}

/* Begin a ticket: that of a claim in doubt, which is repeated; or a new one. */
static void begin_ticket(const struct lk_acquisition *a, struct lk_slot *slot)
{
    const struct lk_lease *lease = &a->first->lease;

    slot->late_until_ns = 0;
    slot->began_ns = a->began_ns;
    if (lease->believed.fate == LK_CLAIM_IN_DOUBT) {
        memcpy(slot->ticket, lease->client_id, sizeof slot->ticket);
        lk_ticket_note_late(slot);
    } else {
        lk_store_client_id(a->store, a->first->marked_as, slot->ticket);
    }
    slot->place = -1;
}

static bool is_of_ticket(const struct lk_part *part)
{
    return part->slot->ticket[0] != '\0' &&
           strcmp(part->lease.client_id, part->slot->ticket) == 0;
}

void lk_claim_collect_first(struct lk_acquisition *a)
{
    struct lk_slot *slot = a->first->slot;

    a->batch.count = 1;
    if (slot->ticket[0] == '\0')
        begin_ticket(a, slot);
    prepare(a, a->first);
    a->first->lease.asked.queue = slot->peers.queue;
    /* A row that may be had at once takes a shorter statement. */
    a->first->lease.asked.may_wait = a->hint == LK_HINT_NONE;
    a->first->lease.answered.is_reserved = a->hint == LK_HINT_RESERVED;
    have_session(a, slot);
    a->batch.session = slot->session;
    /* Only the whole statement takes a bell. */
    if (a->hint != LK_HINT_NONE || slot->place >= 0 || slot->session != NULL)
        a->first->lease.believed.is_unqueued = false;
    a->first->lease.asked.takes_bell =
        a->hint == LK_HINT_NONE && slot->session != NULL;
    a->batch.items[0] =
        (struct lk_item){.lease = a->first->lease, .owner = a->first};
}

/* Give up the session of a claim that failed: others may be kept out by what it
 * has (sql/mysql/statements.sql, the gate).  It is closed if it is broken, as
 * the claim has found, which was sent elsewhere, too; or if its server is of no
 * use now. */
static void note_session(struct lk_acquisition *a,
                         const struct lk_connection *session, int rc)
{
    struct lk_slot *slot = a->first->slot;
    struct lk_place place = {.connection = slot->session};
    bool is_useless =
        a->batch.session == NULL || lk_is_outage(rc) || rc == SQLOCK_EREADONLY;

    a->batch.session = NULL;
    if (session == NULL || (rc == 0 && !is_useless))
        return;
    slot->session = NULL;
    (void)lk_place_end(a->store, &place, false, is_useless);
}

/* Return whether a statement with the part's CLIENT_ID may arrive yet. */
static bool is_late(const struct lk_part *part)
{
    return is_of_ticket(part)
               ? lk_ticket_is_late(part->slot)
               : part->is_kept && part->lease.believed.fate == LK_CLAIM_LATE;
}

/* Return whether the result is that of a statement about several that timed
 * out or was refused as a whole, or was not sent after one that was: it is no
 * single lock's. */
static bool is_of_all(const struct lk_acquisition *a,
                      const struct lk_item *item, int rc)
{
    return rc < 0 || (a->batch.count > 1 && item->is_left_out);
}

/* Copy each item's result to its part. */
static void copy_back(const struct lk_acquisition *a, int rc)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        struct lk_part *part = a->batch.items[i].owner;
        bool was_late = is_late(part);

        part->lease = a->batch.items[i].lease;
        if (part->lease.believed.fate != LK_CLAIM_ANSWERED &&
            is_of_ticket(part))
            lk_ticket_note_late(part->slot);
        if (was_late && part->lease.believed.fate == LK_CLAIM_ANSWERED) {
            part->lease.believed.fate = LK_CLAIM_LATE;
            lk_lease_cap(&part->lease, a->options.ttl_ms);
        }
        part->rc =
            is_of_all(a, &a->batch.items[i], rc) ? 0 : a->batch.items[i].rc;
        if (part->rc == 0 && !a->batch.items[i].is_left_out)
            lk_seen_forget(part->slot);
        if (part->rc == SQLOCK_EBUSY)
            part->permits = a->batch.items[i].row.permits;
    }
}

static void keep(struct lk_acquisition *a, struct lk_part *part)
{
    lk_ticket_becomes_lease(part);
    lk_kept_add(a, part);
}

void lk_claim_keep(struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++)
        keep(a, a->batch.items[i].owner);
}

/* Return whether the claim has left the row as it was.  One that got no answer
 * may have been given to the resolver, which frees the row. */
static bool is_unchanged(const struct lk_item *item)
{
    return item->is_left_out && item->lease.believed.fate == LK_CLAIM_ANSWERED;
}

/* Return whether the acquisition does not go on with a lease that its claim
 * got.  Keep the one with which it does, and note a kept one that was lost. */
static bool is_to_undo(struct lk_acquisition *a, const struct lk_item *item,
                       const struct lk_part *taken)
{
    struct lk_part *part = item->owner;

    if (item->rc == SQLOCK_EBUSY && part->is_kept && !is_unchanged(item))
        lk_kept_lost(a, part);
    if (item->rc == 0 && lk_kept_stays(a, part, taken))
        keep(a, part);
    else if (!item->is_left_out &&
             (item->rc == 0 || item->rc == SQLOCK_ETIMEDOUT))
        return true;
    return false;
}

/* Note which leases could not be released, as the release of all came to rc.
 * Return rc, or the result of one of them. */
static int note_unreleased(const struct lk_batch *granted, int rc)
{
    int result = rc;

    for (size_t i = 0; i < granted->count; i++) {
        const struct lk_item *item = &granted->items[i];
        struct lk_part *part = item->owner;

        if (rc == 0 && !lk_is_outage(item->rc))
            continue;
        part->rc = SQLOCK_EUNCERTAIN;
        result = result == 0 ? item->rc : result;
    }
    return result;
}

/* Release the leases that a claim got, if the acquisition cannot keep them
 * while it waits for the part that was refused (NULL: it keeps none).  Their
 * items move to the front of the batch.  Return 0; or EUNCERTAIN if they could
 * not be released: then each of their parts has that rc, and the rows are freed
 * in the background. */
static int undo_grants(struct lk_acquisition *a, const struct lk_part *taken,
                       sqlock_error *err)
{
    struct lk_batch granted = {.items = a->batch.items,
                               .deadline_ns = lk_store_deadline(a->store)};
    int rc = 0;

    for (size_t i = 0; i < a->batch.count; i++) {
        struct lk_part *part = a->batch.items[i].owner;

        if (!is_to_undo(a, &a->batch.items[i], taken))
            continue;
        if (is_of_ticket(part)) {
            (void)lk_bell_forget(part);
            lk_ticket_becomes_lease(part);
        }
        granted.items[granted.count++] =
            (struct lk_item){.lease = part->lease, .owner = part};
        part->lease.answered.place = (struct lk_place){0};
        part->is_kept = false;
    }
    if (granted.count > 0)
        rc = lk_batch_release(a->store, &granted, NULL);
    rc = note_unreleased(&granted, rc);
    if (rc < 0)
        rc = lk_error(err, SQLOCK_EUNCERTAIN,
                      "not all of the locks were free, and those acquired "
                      "could not be released: they will be free when the "
                      "database answers, or when their leases expire");
    return rc;
}

int lk_claim_undo(struct lk_acquisition *a, int rc, sqlock_error *err)
{
    int undone = undo_grants(a, NULL, err);

    return undone < 0 ? undone : rc;
}

bool lk_claim_is_as_wanted(const struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        const struct lk_part *part = a->batch.items[i].owner;

        if (part->lease.asked.weight != part->weight)
            return false;
    }
    return true;
}

/* Return whether a lease was already over when the answer came. */
static bool is_too_late(const struct lk_acquisition *a)
{
    int64_t now = lk_boottime_ns();

    for (size_t i = 0; i < a->batch.count; i++) {
        const struct lk_item *item = &a->batch.items[i];

        if (!item->is_left_out &&
            (item->rc == SQLOCK_ETIMEDOUT ||
             (item->rc == 0 && item->lease.believed.until_boot_ns <= now)))
            return true;
    }
    return false;
}

/* Return the item of a lock that cannot be had in this way at all, or NULL. */
static const struct lk_item *first_unfit(const struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++)
        if (a->batch.items[i].rc == SQLOCK_ECONFLICT)
            return &a->batch.items[i];
    return NULL;
}

/* Return ECONFLICT with its text, or EUNCERTAIN as lk_claim_undo(). */
static int unfit(struct lk_acquisition *a, const struct lk_item *item,
                 sqlock_error *err)
{
    struct lk_part *part = item->owner;
    int rc = lk_claim_error(item, err);
    int undone = lk_claim_undo(a, rc, err);

    part->rc = rc;
    return undone;
}

/* Return the item of a claim that was sent in parts and failed otherwise than
 * because a lock is taken, or NULL. */
static const struct lk_item *first_failed(const struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        const struct lk_item *item = &a->batch.items[i];

        if (item->rc == 0 || item->rc == SQLOCK_EBUSY ||
            item->rc == SQLOCK_ECONFLICT)
            continue;
        if (item->is_left_out || item->rc != SQLOCK_ETIMEDOUT)
            return item;
    }
    return NULL;
}

/* Set *taken to the part of the first lock that is not had; NULL: all are had.
 * It is not one that is kept: another one of its statement is locked.  Return
 * 0, or EBUSY if all that are not had are kept. */
static int find_taken(const struct lk_acquisition *a, struct lk_part **taken)
{
    int rc = 0;

    *taken = NULL;
    for (size_t i = 0; i < a->batch.count && *taken == NULL; i++) {
        const struct lk_item *item = &a->batch.items[i];
        struct lk_part *part = item->owner;

        if (item->rc == 0)
            continue;
        rc = SQLOCK_EBUSY;
        if (!part->is_kept || !is_unchanged(item))
            *taken = part;
    }
    return *taken != NULL ? 0 : rc;
}

static int too_late(struct lk_acquisition *a, sqlock_error *err)
{
    return lk_claim_undo(a,
                         lk_error(err, SQLOCK_ETIMEDOUT,
                                  "the claim took longer than the TTL of its "
                                  "leases: raise ttl_ms"),
                         err);
}

/* Nothing was changed.  But a claim of a kept row that got no answer may have
 * been given to the resolver, which frees the row: then keep none.  Return 0,
 * or EBUSY if there is no part to wait for. */
static int refused_as_a_whole(struct lk_acquisition *a, struct lk_part **taken)
{
    bool is_late = false;

    for (size_t i = a->batch.count; i-- > 0;) {
        struct lk_part *part = a->batch.items[i].owner;

        if (!part->is_kept)
            *taken = part;
        else
            is_late = is_late || part->lease.believed.fate != LK_CLAIM_ANSWERED;
    }
    if (is_late)
        lk_kept_give_back(a, NULL, false);
    return *taken != NULL ? 0 : SQLOCK_EBUSY;
}

static int is_cancelled(void *waiter, sqlock_error *err)
{
    return lk_waiter_is_cancelled(waiter) ? lk_canceled(err) : 0;
}

/* Send the claims.  Where that takes several statements, they have the time of
 * the wait, and end with it. */
static int send(struct lk_acquisition *a, sqlock_error *err)
{
    struct lk_batch *batch = &a->batch;
    int64_t now_ns = sqlock_monotonic_ns();
    int rc;

    batch->deadline_ns = lk_store_deadline(a->store);
    batch->latest_ns =
        lk_batch_latest(a->store, batch, lk_later(a->self.deadline_ns, now_ns));
    batch->stops = a->self.wait_ms != 0 ? is_cancelled : NULL;
    batch->caller = &a->self;
    rc = lk_batch_claim(a->store, batch, err);
    batch->latest_ns = 0;
    return rc;
}

int lk_claim_all(struct lk_acquisition *a, struct lk_part **taken,
                 sqlock_error *err)
{
    const struct lk_connection *session = a->batch.session;
    int rc = send(a, err);

    copy_back(a, rc);
    note_session(a, session, rc);
    if (rc == 0 && first_failed(a) != NULL)
        return lk_claim_undo(a, first_failed(a)->rc, err);
    if (rc == 0 && is_too_late(a))
        return too_late(a, err);
    if (rc == 0 && first_unfit(a) != NULL)
        return unfit(a, first_unfit(a), err);
    if (rc == 0 && find_taken(a, taken) < 0)
        return lk_claim_undo(a, SQLOCK_EBUSY, err);
    /* A batch is refused as a whole if one of its rows is locked, and one that
     * has timed out may have met such a row: a wait goes on. */
    if (rc == SQLOCK_EBUSY || (rc == SQLOCK_ETIMEDOUT && a->self.wait_ms != 0))
        return refused_as_a_whole(a, taken);
    if (rc < 0 || *taken == NULL || a->count == 1)
        return rc;
    return undo_grants(a, *taken, err);
}

/* Copy the lease that the part has.  The caller does not hold the mutex. */
static struct lk_lease lease_of(const struct lk_part *part)
{
    struct lk_lease lease = {.key = part->slot->key};
    const struct lk_hold *hold;

    pthread_mutex_lock(&lk_mutex);
    hold = lk_hold_by_grant(part->slot, part->grant);
    if (hold != NULL)
        lease = hold->lease;
    pthread_mutex_unlock(&lk_mutex);
    return lease;
}

void lk_claim_look(struct lk_acquisition *a, bool may_read)
{
    const struct lk_lease lease = lease_of(a->first);
    struct lk_row row = {.exists = false};

    if (may_read)
        (void)lk_row_read_as(a->store, &lease, lk_store_deadline(a->store),
                             &row, NULL);
    pthread_mutex_lock(&lk_mutex);
    lk_joined(a->first, row.weight > 0 && row.is_taken &&
                            row.permits == LK_NO_LIMIT && !row.is_waited_for);
    pthread_mutex_unlock(&lk_mutex);
}

/* Return whether the acquisition is over with the grant of the part: it has all
 * that it wants, and not a lock for services (peers.h). */
static bool is_turn(const struct lk_acquisition *a, const struct lk_part *part)
{
    bool has_all = a->state == LK_CLAIMING && a->reach == a->count;

    return part->lease.asked.weight == part->weight &&
           (a->count == 1 || has_all);
}

void lk_claim_note_contention(const struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        struct lk_part *part = a->batch.items[i].owner;
        struct lk_slot *slot = part->slot;

        if (part->rc < 0)
            continue;
        slot->is_contended =
            part->lease.answered.is_contended || a->hint != LK_HINT_NONE;
        part->lease.believed.is_unqueued = !slot->is_contended &&
                                           part->weight == 0 &&
                                           lk_store_has_tickets(a->store);
        lk_peers_granted(part, is_turn(a, part));
        part->lease.asked.queue = NULL;
    }
}

void lk_claim_hold(struct lk_acquisition *a)
{
    for (size_t i = 0; i < a->batch.count; i++) {
        struct lk_part *part = a->batch.items[i].owner;

        lk_ticket_becomes_lease(part);
        part->is_kept = false;
        pthread_mutex_lock(&lk_mutex);
        lk_slot_grant(part, &part->lease);
        pthread_mutex_unlock(&lk_mutex);
    }
}

void lk_claim_count(const struct lk_acquisition *a)
{
    struct lk_stats *stats = &a->store->db.stats;
    int64_t wait_ns = 0;

    for (size_t i = 0; i < a->count; i++) {
        const struct lk_part *part = &a->parts[i];

        if (part->state == LK_PART_NESTED && a->rc == 0) {
            lk_count(stats, LK_COUNT_NESTED);
            continue;
        }
        if (wait_ns == 0)
            wait_ns = sqlock_monotonic_ns() - a->began_ns;
        lk_count_acquired(stats, part->slot->key, a->rc, wait_ns);
    }
}

bool lk_claim_is_first(const struct lk_acquisition *a)
{
    const sqlock_bell *bell = lk_bell_of(a->store);

    return has_had_none(a->store) && (bell == NULL || !bell->is_of_one);
}
