/*
 * seen.c - the lease that was last seen in a lock's row (seen.h)
 */
#include "lock/seen.h"

#include <string.h>

#include "base/clock.h"

/* How much later a waiter takes a row that is over, or that is gone, with all
 * tickets, for each ticket before its own, of which so many count. */
#define PLACE_MS 20
#define GONE_PLACE_MS 250
#define PLACES_MAX 50

/* How long a look at the row may take, which delays the claim behind it; also
 * where it connects. */
#define LOOK_MS 250

static int64_t places(const struct lk_slot *slot)
{
    if (slot->place < 0)
        return 0;
    return slot->place < PLACES_MAX ? slot->place : PLACES_MAX;
}

/* Return whether the row has a lease of sqlock's, of another process, whose
 * release leaves the row where it is. */
static bool is_to_stay(const struct lk_slot *slot, const struct lk_row *row)
{
    return lk_store_has_tickets(slot->store) && row->is_taken &&
           row->client_id[0] != '\0' && !lk_row_is_of_peer(slot->store, row) &&
           strcmp(row->client_id, slot->ticket) != 0;
}

/* Return whether a row that was gone is that of before: a service that has had
 * a turn meanwhile had deleted it.  One that was inserted after a deletion by
 * hand has no ticket of this process. */
static bool is_back(const struct lk_slot *slot, const struct lk_row *row)
{
    return row->exists &&
           (row->place >= 0 || lk_row_is_of_peer(slot->store, row) ||
            (row->is_taken && strcmp(row->client_id, slot->ticket) == 0));
}

void lk_seen_note(struct lk_slot *slot, const struct lk_row *row)
{
    int64_t now = sqlock_monotonic_ns();

    if (slot->gone_ns != 0 && !is_back(slot, row))
        return;
    slot->gone_ns = 0;
    if (!row->exists) {
        if (slot->seen_ns > now && slot->peers.seen[0].opening == 0)
            slot->gone_ns =
                lk_after_ms(slot->seen_ns, 1 + GONE_PLACE_MS * places(slot));
        return;
    }
    slot->seen_ns =
        is_to_stay(slot, row) ? lk_after_ns(now, lk_row_blocked_ns(row)) : 0;
}

void lk_seen_forget(struct lk_slot *slot)
{
    slot->seen_ns = 0;
    slot->gone_ns = 0;
}

int64_t lk_seen_own_time(const struct lk_slot *slot)
{
    return lk_after_ms(lk_later(slot->seen_ns, sqlock_monotonic_ns()),
                       1 + PLACE_MS * places(slot));
}

int64_t lk_seen_left_ns(const struct lk_slot *slot)
{
    return lk_later(slot->gone_ns - sqlock_monotonic_ns(), 0);
}

void lk_seen_look(struct lk_slot *slot)
{
    int64_t now = sqlock_monotonic_ns();
    int64_t until_ns =
        lk_sooner(lk_after_ms(now, LOOK_MS), lk_store_deadline(slot->store));
    struct lk_pool *pool = &slot->store->db.pool;
    const struct lk_wish wish = {
        .wait_until_ns = until_ns, .latest_ns = until_ns, .is_brief = true};
    const struct lk_lease lease = {.key = slot->key};
    struct lk_batch batch;
    struct lk_item item;

    lk_batch_of_one(&batch, &item, &lease, until_ns);
    if (slot->gone_ns != 0 || slot->seen_ns <= now ||
        lk_pool_take_as(pool, &wish, &batch.session, NULL) < 0)
        return;
    if (lk_rows_read(slot->store, &batch, NULL) == 0)
        lk_seen_note(slot, &item.row);
    lk_pool_return(pool, batch.session);
}
